/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a joinrc source, and the receives that its receivers post for
 * them.  Both are given the same list, so that every message has its place in a
 * receiver's region: a WRITE names it, a SEND's receive has it as its buffer.
 */
#include "tests/verbs/joinrc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Immediate data of message k is this plus k. */
#define IMM_BASE 0xc0de0000u

static const struct {
    const char *name;
    enum ibv_wr_opcode opcode;
    bool takes_receive, into_receive, needs_region;
} ops[N_OPS] = {
    [OP_WRITE] = {"write", IBV_WR_RDMA_WRITE, false, false, true},
    [OP_WRITE_IMM] = {"write-imm", IBV_WR_RDMA_WRITE_WITH_IMM, true, false, true},
    [OP_SEND] = {"send", IBV_WR_SEND, true, true, false},
    [OP_SEND_IMM] = {"send-imm", IBV_WR_SEND_WITH_IMM, true, true, false},
    [OP_READ] = {"read", IBV_WR_RDMA_READ, false, false, true},
    [OP_ATOMIC] = {"atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, false, false, true},
};

enum op
op_parse(const char *text)
{
    for (enum op op = 0; op < N_OPS; op++) {
        if (!strcmp(text, ops[op].name)) {
            return op;
        }
    }
    die(EXIT_USAGE, "operation %s: must be write, write-imm, send, send-imm, read or atomic", text);
}

static void
append(struct messages *m, enum op op, uint32_t len)
{
    m->list = realloc(m->list, (m->n + 1) * sizeof *m->list);
    if (!m->list) {
        die(EXIT_USAGE, "no memory for %zu messages", m->n + 1);
    }
    m->list[m->n++] = (struct message){.op = op, .ofs = m->bytes, .len = len};
    m->bytes += len;
}

struct messages
messages_parse(const char *text)
{
    struct messages m = {.n = 0};
    char *copy = strdup(text);

    for (char *save, *item = copy ? strtok_r(copy, ",", &save) : NULL; item;
         item = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(item, ':'), *end = NULL;
        errno = 0;
        unsigned long len = colon ? strtoul(colon + 1, &end, 10) : 0;

        if (!end || end == colon + 1 || *end || errno || len > 1u << 20) {
            die(EXIT_USAGE, "--messages: '%s' must be OP:LEN, LEN up to 1 MiB", item);
        }
        *colon = '\0';
        append(&m, op_parse(item), (uint32_t) len);
    }
    free(copy);
    if (!m.n) {
        die(EXIT_USAGE, "--messages: there are none");
    }
    return m;
}

struct messages
messages_of_blocks(enum op op, size_t bytes, uint32_t size)
{
    struct messages m = {.n = 0};

    while (m.bytes < bytes) {
        append(&m, op, bytes - m.bytes < size ? (uint32_t) (bytes - m.bytes) : size);
    }
    return m;
}

bool
messages_need_region(const struct messages *m)
{
    for (size_t k = 0; k < m->n; k++) {
        if (ops[m->list[k].op].needs_region) {
            return true;
        }
    }
    return false;
}

struct ibv_send_wr
message_request(const struct messages *m, size_t k)
{
    return (struct ibv_send_wr){
        .wr_id = k,
        .opcode = ops[m->list[k].op].opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .imm_data = htonl(IMM_BASE + (uint32_t) k),
    };
}

static void
receive_post(struct ibv_qp *qp, const struct ibv_mr *mr, size_t k, size_t ofs, uint32_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t) mr->addr + ofs, .length = len, .lkey = mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = k, .sg_list = &sge, .num_sge = len ? 1 : 0};
    int error = ibv_post_recv(qp, &wr, &bad);

    if (error) {
        die(EXIT_USAGE, "post receive for message %zu: %s", k, strerror(error));
    }
}

void
receives_post(struct ibv_qp *qp, const struct ibv_mr *mr, const struct messages *m, size_t *k,
              size_t max, bool too_short)
{
    for (; *k < m->n; ++*k) {
        const struct message *message = &m->list[*k];
        uint32_t len = ops[message->op].into_receive ? message->len : 0;

        if (!ops[message->op].takes_receive) {
            continue;
        }
        if (!max--) {
            return;
        }
        receive_post(qp, mr, *k, message->ofs, too_short ? len / 2 : len);
    }
    receive_post(qp, mr, m->n, 0, 0);
}

void
receive_print(const struct ibv_wc *wc)
{
    const char *what = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? "write" : "send";

    if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        return; /* The QP is in error; another line has said why. */
    }
    if (wc->status != IBV_WC_SUCCESS) {
        printf("receive status %d %s\n", wc->status, ibv_wc_status_str(wc->status));
    } else if (wc->wc_flags & IBV_WC_WITH_IMM) {
        printf("received %s-imm %u 0x%x\n", what, wc->byte_len, ntohl(wc->imm_data));
    } else {
        printf("received %s %u\n", what, wc->byte_len);
    }
}
