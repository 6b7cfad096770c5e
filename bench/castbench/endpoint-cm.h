/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM: the counterpart of endpoint_qp_connect() for queue pairs that a group connects
 * (docs/joining.md).
 *
 * A connection lives as long as its process, whose kernel tells the group of its end.
 *
 * All functions return whether they have succeeded, otherwise with a sentence for the user in
 * ep->error.
 */
#ifndef BENCH_CASTBENCH_ENDPOINT_CM_H
#define BENCH_CASTBENCH_ENDPOINT_CM_H 1

#include "bench/castbench/endpoint.h"
#include "lib/group-answer.h"

/* Who connects to whom. */
struct endpoint_cm_peer {
    struct in6_addr own;
    struct in6_addr address;
    uint16_t port;
};

/* What a group has answered, and how it is connected. */
struct endpoint_cm_group {
    struct group_answer answer;
    uint32_t mtu;        /* path MTU: 256..4096. */
    uint64_t connect_ns; /* from rdma_connect() until the connection was established. */
};

/* Takes a source's queue pair from INIT to RTS, as the group answers within 'timeout' seconds.
 * 'ecn': packets say ECT(0) instead of Not-ECT. */
bool endpoint_cm_connect(struct endpoint *, struct ibv_qp *, const struct endpoint_cm_peer *,
                         bool ecn, unsigned timeout, struct endpoint_cm_group *);

struct endpoint_cm_listener {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    uint64_t since;
};

/* Listens at this port of the endpoint's own address. */
bool endpoint_cm_listen(struct endpoint *, const struct in6_addr *own, uint16_t port,
                        struct endpoint_cm_listener *);
/* Takes a receiver's queue pair from INIT to RTS for the group that connects within 'timeout'
 * seconds, tells it where the endpoint's memory region is, and listens no longer.  '*connect_ns' is
 * the time since endpoint_cm_listen(). */
bool endpoint_cm_accept(struct endpoint *, struct endpoint_cm_listener *, struct ibv_qp *, bool ecn,
                        unsigned timeout, uint64_t *connect_ns);

#endif /* bench/castbench/endpoint-cm.h */
