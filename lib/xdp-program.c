/* SPDX-License-Identifier: Apache-2.0
 *
 * The XDP program of a port, put together when it is loaded: no compiler and no object file.
 *
 * A veth may hand a frame over whose VLAN tag is not in the bytes any more but beside them, as the
 * kernel at the other end left it.  Linux 6.8 has a function by which the program asks for that
 * tag.  It serves programs under the GPL only, so the instructions below may be used under the
 * 2-clause BSD licence or the GPL, version 2, too.
 */
#include "lib/xdp-program.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Of Linux 6.3; Debian's headers are older. */
#ifndef BPF_F_XDP_DEV_BOUND_ONLY
#define BPF_F_XDP_DEV_BOUND_ONLY (1U << 6)
#endif

#define LICENCE "Dual BSD/GPL"

struct program {
    struct bpf_insn insns[64];
    unsigned n;
};

/* Where a jump goes, until finish() knows. */
enum { TO_KERNEL = INT16_MAX, TO_SOCKET = INT16_MAX - 1 };

static void
emit(struct program *p, int code, int dst, int src, int off, int32_t imm)
{
    p->insns[p->n++] = (struct bpf_insn){
        .code = (uint8_t) code,
        .dst_reg = (uint8_t) (dst & 0xf),
        .src_reg = (uint8_t) (src & 0xf),
        .off = (int16_t) off,
        .imm = imm,
    };
}

static void
move(struct program *p, int dst, int src)
{
    emit(p, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void
add(struct program *p, int dst, int32_t n)
{
    /* NOLINTNEXTLINE(misc-redundant-expression): BPF_ADD and BPF_K are both 0. */
    emit(p, BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, n);
}

static void
load(struct program *p, int size, int dst, int src, size_t ofs)
{
    emit(p, BPF_LDX | BPF_MEM | size, dst, src, (int) ofs, 0);
}

static void
jump_if(struct program *p, int condition, int dst, int32_t value, int to)
{
    emit(p, BPF_JMP | condition | BPF_K, dst, 0, to, value);
}

/* A tag control information in network byte order, which has a VLAN or not. */
static void
keep_vlan(struct program *p, int dst, uint16_t vid_mask)
{
    emit(p, BPF_ALU64 | BPF_AND | BPF_K, dst, 0, 0, vid_mask);
    jump_if(p, BPF_JNE, dst, 0, TO_KERNEL);
}

/* What is beside the frame: r6 is the context. */
static void
check_hidden_tag(struct program *p, int32_t function)
{
    const int type_ofs = -8, tci_ofs = -4;

    emit(p, BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, type_ofs, 0);
    move(p, BPF_REG_1, BPF_REG_6);
    move(p, BPF_REG_2, BPF_REG_10);
    add(p, BPF_REG_2, type_ofs);
    move(p, BPF_REG_3, BPF_REG_10);
    add(p, BPF_REG_3, tci_ofs);
    emit(p, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, function);
    jump_if(p, BPF_JNE, BPF_REG_0, 0, 3); /* there is none. */
    emit(p, BPF_LDX | BPF_MEM | BPF_H, BPF_REG_1, BPF_REG_10, tci_ofs, 0);
    keep_vlan(p, BPF_REG_1, 0x0fff);
}

/* What is in the frame. */
static void
check_type(struct program *p)
{
    enum { MAX_TAGS = 2, TAG_LEN = 4, TYPE_OFS = 2 * ETH_ALEN };

    load(p, BPF_W, BPF_REG_2, BPF_REG_6, offsetof(struct xdp_md, data));
    load(p, BPF_W, BPF_REG_3, BPF_REG_6, offsetof(struct xdp_md, data_end));
    for (int n_tags = 0;; n_tags++) {
        const int type_ofs = TYPE_OFS + n_tags * TAG_LEN;

        move(p, BPF_REG_4, BPF_REG_2);
        add(p, BPF_REG_4, type_ofs + 2);
        emit(p, BPF_JMP | BPF_JGT | BPF_X, BPF_REG_4, BPF_REG_3, TO_KERNEL, 0);
        if (n_tags) {
            load(p, BPF_H, BPF_REG_5, BPF_REG_2, (size_t) type_ofs - 2);
            keep_vlan(p, BPF_REG_5, htons(0x0fff));
        }
        load(p, BPF_H, BPF_REG_5, BPF_REG_2, (size_t) type_ofs);
        jump_if(p, BPF_JEQ, BPF_REG_5, htons(ETH_P_IPV6), TO_SOCKET);
        if (n_tags == MAX_TAGS) {
            emit(p, BPF_JMP | BPF_JA, 0, 0, TO_KERNEL, 0);
            break;
        }
        jump_if(p, BPF_JEQ, BPF_REG_5, htons(ETH_P_8021Q), 1);
        jump_if(p, BPF_JNE, BPF_REG_5, htons(ETH_P_8021AD), TO_KERNEL);
    }
}

static void
finish(struct program *p, int map_fd)
{
    unsigned to_socket = p->n;
    emit(p, BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd);
    emit(p, 0, 0, 0, 0, 0);
    load(p, BPF_W, BPF_REG_2, BPF_REG_6, offsetof(struct xdp_md, rx_queue_index));
    emit(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, XDP_PASS);
    emit(p, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map);
    emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);

    unsigned to_kernel = p->n;
    emit(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS);
    emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);

    for (unsigned i = 0; i < p->n; i++) {
        int16_t *off = &p->insns[i].off;
        if (*off == TO_SOCKET || *off == TO_KERNEL) {
            *off = (int16_t) ((*off == TO_SOCKET ? to_socket : to_kernel) - i - 1);
        }
    }
}

/* The kernel's number for its function; 0 and errno: it has none. */
static int32_t
kernel_function(const char *name)
{
    struct btf *btf = btf__load_vmlinux_btf();
    int32_t id = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) : -1;

    btf__free(btf);
    errno = EOPNOTSUPP;
    return id > 0 ? id : 0;
}

int
xdp_program_load(int map_fd, const struct xdp_program_options *options, const char **why)
{
    struct program p = {.n = 0};
    LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_XDP);

    move(&p, BPF_REG_6, BPF_REG_1);
    if (options->veth) {
        int32_t function = kernel_function("bpf_xdp_metadata_rx_vlan_tag");
        if (!function) {
            *why = "cannot tell VLANs apart on a veth; that needs Linux 6.8 with BTF";
            return -1;
        }
        check_hidden_tag(&p, function);
        opts.prog_ifindex = (uint32_t) options->veth;
        opts.prog_flags |= BPF_F_XDP_DEV_BOUND_ONLY;
    }
    if (options->fragments) {
        opts.prog_flags |= BPF_F_XDP_HAS_FRAGS;
    }
    check_type(&p);
    finish(&p, map_fd);

    int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "rocecast", LICENCE, p.insns, p.n, &opts);
    if (fd < 0) {
        *why = "cannot load the XDP program";
    }
    return fd;
}
