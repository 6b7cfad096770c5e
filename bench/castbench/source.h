/* SPDX-License-Identifier: Apache-2.0
 *
 * The source process of a run.
 */
#ifndef BENCH_CASTBENCH_SOURCE_H
#define BENCH_CASTBENCH_SOURCE_H 1

#include "bench/castbench/fanout.h"
#include "bench/castbench/run-private.h"

/* A block on its way. */
struct block {
    uint64_t began; /* when it began, or in open loop was due. */
    uint64_t first; /* when the first replica had it. */
    unsigned n_have;
};

/* Blocks of one QP, in order: its block k is block k * qps + qp of the run. */
struct stripe {
    uint64_t posted;
    uint64_t done;        /* blocks that all replicas have. */
    struct block *blocks; /* [depth]. */
};

struct source {
    const struct run_ctx *run;
    struct endpoint ep;
    unsigned char *buf; /* laid out as the region. */
    struct fanout fanout;
    struct stripe stripes[MAX_QPS];
    uint64_t stamped;                        /* blocks. */
    uint64_t n_confirmed[1 + MAX_RECEIVERS]; /* blocks, by member; not with mcast. */
    struct ibv_qp *acks[1 + MAX_RECEIVERS];  /* connections from relays, by member. */
    struct host_count before;

    /* Of this phase. */
    enum phase phase;
    uint64_t first; /* block. */
    uint64_t end;   /* block; an upper bound if 'timed'; UINT64_MAX: not known. */
    uint64_t start;
    bool timed;     /* the time says how many blocks there are, and it is not over. */
    uint64_t until; /* when the time is over. */
};

/* Writes a phase's blocks to all replicas.  Returns when every replica has every block. */
bool source_transfer(struct source *, enum phase, char *error, size_t size);

/* Posts a receive for a relay's next message. */
bool source_expect_ack(struct source *, unsigned member, char *error, size_t size);

#endif /* bench/castbench/source.h */
