/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates every kind of RC traffic between two RDMA devices of this machine,
 * to be captured as test vectors.
 *
 *     rcgen [-m PATH_MTU] [-s START_PSN] SOURCE_DEVICE TARGET_DEVICE OPERATION...
 *
 * Each operation runs on a queue pair of its own, so that one that ends in the
 * error state does not spoil the next, and checks the memory it should have
 * changed.  Both ends live in this process: what it takes to connect them needs
 * no second channel.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUF_SIZE = 64 * 1024, SINGLE_LEN = 101, PAUSE_MS = 50, TIMEOUT_MS = 20000 };

struct operation {
    const char *name;
    enum ibv_wr_opcode opcode;
    enum ibv_wc_status status; /* What the source's completion must say. */
    bool takes_recv;           /* Consumes a receive request at the target. */
    bool late_recv;            /* ... which is posted only after a while. */
    bool bad_rkey;
    bool no_access; /* The target's queue pair allows no remote access. */
    unsigned len;   /* Of each message; 0: one short, one of three packets. */
    unsigned n_messages;
};

/* Messages of odd length, so that the pad count is not always zero. */
static const struct operation operations[] = {
    {.name = "send", .opcode = IBV_WR_SEND, .takes_recv = true},
    {.name = "send-imm", .opcode = IBV_WR_SEND_WITH_IMM, .takes_recv = true},
    {.name = "write", .opcode = IBV_WR_RDMA_WRITE},
    {.name = "write-imm", .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .takes_recv = true},
    {.name = "read", .opcode = IBV_WR_RDMA_READ},
    {.name = "cmp-swap", .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .len = 8, .n_messages = 1},
    {.name = "fetch-add", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .n_messages = 1},
    {.name = "rnr", .opcode = IBV_WR_SEND, .takes_recv = true, .late_recv = true},
    {.name = "access",
     .opcode = IBV_WR_RDMA_WRITE,
     .status = IBV_WC_REM_ACCESS_ERR,
     .bad_rkey = true,
     .len = SINGLE_LEN,
     .n_messages = 1},
    {.name = "invalid",
     .opcode = IBV_WR_RDMA_WRITE,
     .status = IBV_WC_REM_INV_REQ_ERR,
     .no_access = true,
     .len = SINGLE_LEN,
     .n_messages = 1},
    {.name = "bulk", .opcode = IBV_WR_RDMA_WRITE, .len = 4096, .n_messages = 4},
};

/* One end of the connection. */
struct end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    union ibv_gid gid;
    uint8_t gid_index;
    uint8_t *buf;
};

static enum ibv_mtu path_mtu = IBV_MTU_1024;
static uint32_t start_psn;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
    va_list args;

    fputs("rcgen: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void *
must(void *p, const char *what)
{
    if (!p) {
        die("%s: %m", what);
    }
    return p;
}

static void
pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Index 0 is the link-local address, which is not routed: takes the first other IPv6 one. */
static void
find_gid(struct end *e)
{
    static const uint8_t v4_mapped[12] = {[10] = 0xff, 0xff}, zero[16];
    struct ibv_port_attr port;

    if (ibv_query_port(e->ctx, 1, &port)) {
        die("query port: %m");
    }
    for (int i = 0; i < port.gid_tbl_len; i++) {
        if (!ibv_query_gid(e->ctx, 1, i, &e->gid) && e->gid.raw[0] != 0xfe
            && memcmp(e->gid.raw, zero, sizeof zero)
            && memcmp(e->gid.raw, v4_mapped, sizeof v4_mapped)) {
            e->gid_index = (uint8_t) i;
            return;
        }
    }
    die("%s has no routable IPv6 address", ibv_get_device_name(e->ctx->device));
}

static void
end_open(struct end *e, const char *name)
{
    int n, i;
    struct ibv_device **list = must(ibv_get_device_list(&n), "device list");

    for (i = 0; i < n && strcmp(ibv_get_device_name(list[i]), name); i++) {
        continue;
    }
    if (i == n) {
        die("no device %s", name);
    }
    e->ctx = must(ibv_open_device(list[i]), name);
    ibv_free_device_list(list);
    find_gid(e);
    e->buf = must(calloc(1, BUF_SIZE), "buffer");
    e->pd = must(ibv_alloc_pd(e->ctx), "protection domain");
    e->cq = must(ibv_create_cq(e->ctx, 64, NULL, NULL, 0), "completion queue");
    e->mr = must(ibv_reg_mr(e->pd, e->buf, BUF_SIZE,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
                                | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC),
                 "memory region");
}

static void
end_close(struct end *e)
{
    ibv_dereg_mr(e->mr);
    ibv_destroy_cq(e->cq);
    ibv_dealloc_pd(e->pd);
    ibv_close_device(e->ctx);
    free(e->buf);
}

static void
create_qp(struct end *e, unsigned access)
{
    struct ibv_qp_init_attr init = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};

    e->qp = must(ibv_create_qp(e->pd, &init), "queue pair");
    if (ibv_modify_qp(e->qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
        die("INIT: %m");
    }
}

static void
connect_qp(struct end *e, const struct end *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = path_mtu,
        .dest_qp_num = peer->qp->qp_num,
        .rq_psn = start_psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 22, /* 20.48 ms: PAUSE_MS sees two or three of them. */
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = peer->gid, .sgid_index = e->gid_index, .hop_limit = 64}},
    };

    if (ibv_modify_qp(e->qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                          | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
        die("RTR: %m");
    }
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = start_psn,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 1};
    if (ibv_modify_qp(e->qp, &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT
                          | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)) {
        die("RTS: %m");
    }
}

static struct ibv_wc
next_completion(struct end *e, const char *who)
{
    struct ibv_wc wc;

    for (int ms = 0; ms < TIMEOUT_MS; ms++) {
        if (ibv_poll_cq(e->cq, 1, &wc) > 0) {
            return wc;
        }
        pause_ms(1);
    }
    die("%s: no completion", who);
}

static void
post_recv(struct end *e, unsigned len)
{
    struct ibv_sge sge = {.addr = (uintptr_t) e->buf, .length = len, .lkey = e->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    if (ibv_post_recv(e->qp, &wr, &bad)) {
        die("post receive: %m");
    }
}

static void
post_send(const struct operation *op, struct end *source, const struct end *target, unsigned len)
{
    struct ibv_sge sge = {.addr = (uintptr_t) source->buf, .length = len, .lkey = source->mr->lkey};
    struct ibv_send_wr wr = {.opcode = op->opcode, .sg_list = &sge, .num_sge = 1}, *bad;
    uint32_t rkey = op->bad_rkey ? target->mr->rkey ^ 0x5a : target->mr->rkey;

    wr.imm_data = htonl(0x12345678);
    if (op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t) target->buf;
        wr.wr.atomic.rkey = rkey;
        memcpy(&wr.wr.atomic.compare_add, target->buf, sizeof wr.wr.atomic.compare_add);
        wr.wr.atomic.swap = 0x0123456789abcdef;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t) target->buf;
        wr.wr.rdma.rkey = rkey;
    }
    if (ibv_post_send(source->qp, &wr, &bad)) {
        die("post send: %m");
    }
}

/* Whether the target's, and for what returns data the source's, memory is as it must be, given
 * what both were before. */
static bool
memory_is_right(const struct operation *op, const struct end *source, const struct end *target,
                const uint8_t *source_was, const uint8_t *target_was, unsigned len)
{
    uint64_t was, is;

    switch (op->opcode) {
    case IBV_WR_RDMA_READ:
        return !memcmp(source->buf, target_was, len) && !memcmp(target->buf, target_was, len);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        memcpy(&was, target_was, sizeof was);
        memcpy(&is, target->buf, sizeof is);
        return !memcmp(source->buf, target_was, len)
               && is
                      == (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? was + was
                                                                    : 0x0123456789abcdef);
    default:
        return !memcmp(target->buf, op->status == IBV_WC_SUCCESS ? source_was : target_was, len);
    }
}

static void
run(const struct operation *op, struct end *source, struct end *target)
{
    static uint8_t source_was[BUF_SIZE], target_was[BUF_SIZE];
    unsigned n = op->n_messages ? op->n_messages : 2;

    create_qp(source, 0);
    create_qp(target, op->no_access ? 0
                                    : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
                                          | IBV_ACCESS_REMOTE_ATOMIC);
    connect_qp(target, source);
    connect_qp(source, target);
    for (unsigned i = 0; i < n; i++) {
        unsigned len = op->len  ? op->len
                       : i == 0 ? SINGLE_LEN
                                : (128U << path_mtu) * 2 + SINGLE_LEN;
        struct ibv_wc wc;

        for (unsigned j = 0; j < len; j++) {
            source->buf[j] = source_was[j] = (uint8_t) (j + 7 * i + 1);
            target->buf[j] = target_was[j] = (uint8_t) (j * 3 + i);
        }
        if (op->takes_recv && !op->late_recv) {
            post_recv(target, len);
        }
        post_send(op, source, target, len);
        if (op->late_recv) {
            pause_ms(PAUSE_MS);
            post_recv(target, len);
        }
        wc = next_completion(source, op->name);
        if (wc.status != op->status) {
            die("%s: %s", op->name, ibv_wc_status_str(wc.status));
        }
        if (op->takes_recv) {
            wc = next_completion(target, op->name);
            if (wc.status != IBV_WC_SUCCESS) {
                die("%s at the target: %s", op->name, ibv_wc_status_str(wc.status));
            }
        }
        if (!memory_is_right(op, source, target, source_was, target_was, len)) {
            die("%s: memory is wrong after message %u", op->name, i);
        }
    }
    ibv_destroy_qp(source->qp);
    ibv_destroy_qp(target->qp);
    printf("%s: ok\n", op->name);
}

static const struct operation *
find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (!strcmp(operations[i].name, name)) {
            return &operations[i];
        }
    }
    die("unknown operation %s", name);
}

static void __attribute__((noreturn)) usage(void)
{
    fputs("usage: rcgen [-m PATH_MTU] [-s START_PSN] SOURCE_DEVICE TARGET_DEVICE OPERATION...\n"
          "operations:",
          stderr);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        fprintf(stderr, " %s", operations[i].name);
    }
    fputc('\n', stderr);
    exit(2);
}

int
main(int argc, char *argv[])
{
    struct end source = {0}, target = {0};
    int opt;

    while ((opt = getopt(argc, argv, "m:s:")) != -1) {
        switch (opt) {
        case 'm': {
            unsigned long bytes = strtoul(optarg, NULL, 0);

            for (path_mtu = IBV_MTU_256; path_mtu <= IBV_MTU_4096; path_mtu++) {
                if (128UL << path_mtu == bytes) {
                    break;
                }
            }
            if (path_mtu > IBV_MTU_4096) {
                usage();
            }
            break;
        }
        case 's': start_psn = strtoul(optarg, NULL, 0) & 0xffffff; break;
        default: usage();
        }
    }
    if (argc - optind < 3) {
        usage();
    }
    end_open(&source, argv[optind]);
    end_open(&target, argv[optind + 1]);
    for (int i = optind + 2; i < argc; i++) {
        run(find_operation(argv[i]), &source, &target);
    }
    end_close(&target);
    end_close(&source);
    return 0;
}
