/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of a reliable connection: device, memory region, queue pairs.
 *
 * All functions return 0 or a positive errno and leave a sentence for the user
 * in ep->error.
 */
#ifndef BENCH_CASTBENCH_ENDPOINT_H
#define BENCH_CASTBENCH_ENDPOINT_H 1

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct endpoint {
    struct ibv_context *ctx;
    int gid_index;
    bool remote; /* the peer may write to the memory region. */
    bool poll;   /* endpoint_completion() looks again and again, and never sleeps; the caller's. */
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char error[256];
};

/* What a queue pair needs to know about the other side, a group or a host. */
struct endpoint_peer {
    struct in6_addr address;
    uint32_t qpn;
    uint32_t rq_psn; /* what the peer starts with. */
    uint32_t sq_psn; /* what this side starts with. */
    uint32_t mtu;    /* path MTU: 256..4096. */
    uint8_t timeout; /* local ACK timeout: 4.096 us * 2^timeout. */
    bool ecn;        /* ECT(0) instead of Not-ECT. */
};

/* How long a peer without a receive is told to wait: 0.64 ms, as the field of a QP has it. */
#define ENDPOINT_MIN_RNR_TIMER 12

/* ECT(0), or Not-ECT. */
static inline uint8_t
endpoint_traffic_class(bool ecn)
{
    return ecn ? 2 : 0;
}

/* Where to look for a host's address; NULL and -1: everywhere. */
struct endpoint_where {
    const char *device;
    int gid_index;
};

/* Opens the device whose GID table has 'address' and registers 'len' bytes at
 * 'buf'; 'remote' allows the peer to write there.  'n_cqe' completions fit. */
int
endpoint_open(struct endpoint *ep, const struct in6_addr *address, const struct endpoint_where *,
              void *buf, size_t len, bool remote, unsigned n_cqe);
void endpoint_close(struct endpoint *ep);

/* A queue pair in INIT; 'n_send' and 'n_recv' work requests may be outstanding.
 * NULL on error. */
struct ibv_qp *endpoint_qp_create(struct endpoint *ep, unsigned n_send, unsigned n_recv);

/* Takes a queue pair from INIT to RTS. */
int endpoint_qp_connect(struct endpoint *ep, struct ibv_qp *qp, const struct endpoint_peer *peer);

/* Takes a completion into 'wc'.  Waits until there is one, but no longer than
 * until 'deadline', in nanoseconds of CLOCK_MONOTONIC, or until 'stop_fd' (-1:
 * none) is readable.  Returns 0, EAGAIN if there was no completion in time,
 * ECANCELED if there is none and 'stop_fd' is readable, or another errno. */
int endpoint_completion(struct endpoint *ep, struct ibv_wc *wc, uint64_t deadline, int stop_fd);

#endif /* bench/castbench/endpoint.h */
