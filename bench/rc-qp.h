/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a reliable queue pair whose peer may only write: a group can carry neither READ nor ATOMIC.
 *
 * All return 0 or a positive errno, as ibv_modify_qp() does.
 */
#ifndef BENCH_RC_QP_H
#define BENCH_RC_QP_H 1

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define RC_QP_PORT 1 /* of the device. */

struct rc_qp {
    uint8_t gid_index; /* of the own address. */
    struct in6_addr peer;
    uint32_t dest_qpn;
    uint32_t rq_psn; /* what the peer starts with. */
    uint32_t sq_psn; /* what this side starts with. */
    uint32_t mtu;    /* path MTU in bytes: 256..4096, a power of two. */
    uint8_t timeout; /* local ACK timeout: 4.096 us * 2^timeout. */
    uint8_t retry_cnt, rnr_retry;
    uint8_t min_rnr_timer; /* as the field of a queue pair has it. */
    uint8_t traffic_class;
};

/* 'remote': the peer may write. */
int rc_qp_to_init(struct ibv_qp *qp, bool remote);
/* ETIMEDOUT: no neighbour on the way to the peer answers. */
int rc_qp_to_rtr(struct ibv_qp *qp, const struct rc_qp *);
int rc_qp_to_rts(struct ibv_qp *qp, const struct rc_qp *);

#endif /* bench/rc-qp.h */
