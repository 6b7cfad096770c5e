/* SPDX-License-Identifier: Apache-2.0
 *
 * The device that is probed: one reliable queue pair at a time, set up as the other end says, and
 * a buffer that it may write to.
 */
#ifndef BENCH_CASTPROBE_DEVICE_H
#define BENCH_CASTPROBE_DEVICE_H 1

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define DEVICE_BUFFER (256u * 1024)
#define DEVICE_WRS    64 /* work requests, and receives, at a time. */

struct device {
    struct ibv_context *ctx;
    struct ibv_device_attr attr;
    union ibv_gid gid;
    uint8_t gid_index;
    uint32_t mtu; /* bytes. */
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp; /* NULL: none. */
    uint8_t *buffer;
    char error[256]; /* why the last call failed. */
};

struct device_qp {
    struct in6_addr peer;
    uint32_t dest_qpn, start_psn; /* in both directions. */
    uint32_t mtu;
    int timeout, retry_cnt, rnr_retry, min_rnr_timer, traffic_class;
};

/* 'name' NULL: the only one there is.  'gid_index' -1: that of its first IPv6 address that can be
 * routed.  All return false and say in 'error' why not. */
bool device_open(struct device *, const char *name, int gid_index);
void device_close(struct device *);

/* In place of the one before.  It takes RDMA WRITE only, as receivers of a group do. The buffer
 * has zeros afterwards. */
bool device_qp_create(struct device *, const struct device_qp *);
void device_qp_destroy(struct device *);
/* -1: there is no queue pair, or its state is not known. */
int device_qp_state(const struct device *);

/* Receives of 'len' bytes, at the begin of the buffer. */
bool device_post_recv(struct device *, unsigned n, uint32_t len);
/* 'n' requests of the buffer's first bytes, to the address 0x10000 with the key 0x1234. */
bool device_post_send(struct device *, enum ibv_wr_opcode, unsigned n, uint32_t len);
/* Up to 'n' completions, waiting for 'ms' at most; returns how many. */
unsigned device_poll(struct device *, struct ibv_wc *, unsigned n, unsigned ms);
/* "rdma_rxe", "mlx5_core", ...; empty: not known. */
void device_driver(const struct device *, char *text, size_t size);

#endif /* bench/castprobe/device.h */
