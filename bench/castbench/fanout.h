/* SPDX-License-Identifier: Apache-2.0
 *
 * How a member writes blocks to its children: the source to all that its
 * scheme gives it, or to a group; a relay to those behind it.
 *
 * There is a lane for each child and QP of the run.  Lane and child are
 * counted from 0 in the order of the plan; block b takes QP b modulo 'qps'.
 * Functions that can fail put a sentence into 'error' and return false.
 */
#ifndef BENCH_CASTBENCH_FANOUT_H
#define BENCH_CASTBENCH_FANOUT_H 1

#include "bench/castbench/endpoint.h"
#include "bench/castbench/run-private.h"

struct lane {
    struct ibv_qp *qp;
    uint64_t va; /* of the child's region. */
    uint32_t rkey;
    unsigned notices; /* completions that the child takes per block. */
    uint64_t done;    /* blocks of this QP that the child has. */
};

struct fanout {
    const struct run_ctx *run;
    struct endpoint *ep;
    const unsigned char *region; /* blocks are sent from here. */
    unsigned member;
    unsigned n_lanes;
    bool serial;
    struct lane (*lanes)[MAX_QPS]; /* [lane][qp]. */
    uint8_t (*n_have)[MAX_DEPTH];  /* [qp][i]: children that have the QP's block i modulo depth. */
};

/* Creates the queue pairs. */
bool fanout_open(struct fanout *, const struct run_ctx *, unsigned member, struct endpoint *,
                 const unsigned char *region, char *error, size_t size);

/* Connects them to those of the children, which have opened theirs.  Not for a group. */
bool fanout_connect(struct fanout *, char *error, size_t size);

/* Writes a piece of a block to all children.  If the children take turns, the
 * last piece writes the whole block to the first child; others do nothing. */
bool fanout_piece(struct fanout *, uint64_t block, unsigned piece, char *error, size_t size);
/* fanout_piece() for all pieces. */
bool fanout_block(struct fanout *, uint64_t block, char *error, size_t size);

/* Takes a completion, which says that '*block' has arrived at child '*lane'.
 * '*all' is true if now all children have it.  Goes on with the next child, if
 * the children take turns. */
bool fanout_completion(struct fanout *, const struct ibv_wc *, unsigned *lane, uint64_t *block,
                       bool *all, char *error, size_t size);

/* A work request's id consists of its kind, an index and the QP. */
enum wr_kind {
    WR_LANE,   /* a block to a child; 'index' is the lane. */
    WR_NOTICE, /* something has arrived. */
    WR_ACK,    /* a relay's word that its children have a block; 'index' is its member. */
    WR_ACK_SENT,
};

static inline uint64_t
wr_id(enum wr_kind kind, unsigned index, unsigned qp)
{
    return (uint64_t) kind << 32 | index << 16 | qp;
}

static inline enum wr_kind
wr_kind(const struct ibv_wc *wc)
{
    return (enum wr_kind)(wc->wr_id >> 32);
}

static inline unsigned
wr_index(const struct ibv_wc *wc)
{
    return wc->wr_id >> 16 & 0xffff;
}

static inline unsigned
wr_qp(const struct ibv_wc *wc)
{
    return wc->wr_id & 0xffff;
}

#endif /* bench/castbench/fanout.h */
