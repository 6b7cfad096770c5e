/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing blocks to children (see fanout.h).
 */
#include "bench/castbench/fanout.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct piece
piece_get(const struct run_ctx *run, uint64_t block, unsigned piece)
{
    const struct shared *shared = run->shared;
    const struct content *content = &shared->content;
    uint32_t len = content_block_len(content, block), chunk = shared->chunk;

    if (piece >= shared->n_chunks) {
        return (struct piece){.ofs = 0, .len = sizeof(uint64_t), .is_tail = true};
    }
    /* A file's last block may be shorter.  It has as many pieces as others, some of length 0. */
    uint32_t begin = piece * chunk < len ? piece * chunk : len;
    uint32_t left = len - begin;
    return (struct piece){.ofs = content_block_ofs(content, block) + begin,
                          .len = left < chunk ? left : chunk};
}

unsigned
notices_per_block(const struct run_ctx *run, unsigned member)
{
    enum operation op = run->options->op;

    if (op == OP_SEND || is_relay(run, member)) {
        return run->shared->n_pieces;
    }
    return op == OP_WRITE_IMM ? 1 : 0;
}

static unsigned
child_of(const struct fanout *f, unsigned lane)
{
    return f->run->shared->plan.members[f->member].children[lane];
}

static const char *
child_name(const struct fanout *f, unsigned lane)
{
    return is_mcast(f->run) ? "the group" : f->run->options->receivers[child_of(f, lane) - 1];
}

/* Blocks of one packet leave in the order in which they are posted.  So the children of a binomial
 * tree get one in turn without a wait for each, which would be a round trip and a wake-up that no
 * broadcast pays for.  Longer blocks would share the uplink, and all be late. */
static bool
posts_in_order(const struct run_ctx *run)
{
    return run->options->scheme == SCHEME_BTREE && run->options->size <= run->shared->mtu;
}

bool
fanout_open(struct fanout *f, const struct run_ctx *run, unsigned member, struct endpoint *ep,
            const unsigned char *region, char *error, size_t size)
{
    const struct run_options *o = run->options;
    struct shared *shared = run->shared;

    *f = (struct fanout){
        .run = run,
        .ep = ep,
        .region = region,
        .member = member,
        .n_lanes = is_mcast(run) ? 1 : shared->plan.members[member].n_children,
        .serial = shared->plan.serial && !posts_in_order(run),
    };
    f->lanes = calloc(f->n_lanes, sizeof *f->lanes);
    f->n_have = calloc(o->qps, sizeof *f->n_have);
    if (!f->lanes || !f->n_have) {
        return refuse(error, size, "out of memory");
    }
    for (unsigned i = 0; i < f->n_lanes; i++) {
        for (unsigned q = 0; q < o->qps; q++) {
            struct lane *lane = &f->lanes[i][q];

            lane->qp = endpoint_qp_create(ep, o->depth * shared->n_pieces, 1);
            if (!lane->qp) {
                return refuse(error, size, "%s", ep->error);
            }
            if (is_mcast(run)) {
                shared->members[0].qpn[q] = lane->qp->qp_num;
                /* All members of a group are leaves. */
                lane->notices = notices_per_block(run, 1);
            } else {
                shared->members[child_of(f, i)].child_qpn[q] = lane->qp->qp_num;
                lane->notices = notices_per_block(run, child_of(f, i));
            }
        }
    }
    return true;
}

struct endpoint_peer
run_peer(const struct run_ctx *run, unsigned member, uint32_t qpn)
{
    return (struct endpoint_peer){
        .address = run->shared->addresses[member],
        .qpn = qpn,
        .rq_psn = run->shared->psn,
        .sq_psn = run->shared->psn,
        .mtu = run->shared->mtu,
        .timeout = run->options->qp_timeout,
        .ecn = run->options->ecn,
    };
}

struct endpoint_peer
group_peer(const struct run_ctx *run, const struct rocecast_epoch *group)
{
    return (struct endpoint_peer){
        .address = group->proxy,
        .qpn = group->designated_qpn,
        .rq_psn = group->start_psn,
        .sq_psn = group->start_psn,
        .mtu = group->mtu,
        .timeout = (uint8_t) group->qp_timeout,
        .ecn = run->options->ecn,
    };
}

bool
fanout_connect(struct fanout *f, char *error, size_t size)
{
    const struct run_options *o = f->run->options;
    const struct shared *shared = f->run->shared;

    for (unsigned i = 0; i < f->n_lanes; i++) {
        unsigned child = child_of(f, i);
        const struct shared_member *m = &shared->members[child];

        for (unsigned q = 0; q < o->qps; q++) {
            struct endpoint_peer peer = run_peer(f->run, child, m->qpn[q]);

            if (endpoint_qp_connect(f->ep, f->lanes[i][q].qp, &peer)) {
                return refuse(error, size, "%s", f->ep->error);
            }
            f->lanes[i][q].va = m->va;
            f->lanes[i][q].rkey = m->rkey;
        }
    }
    return true;
}

/* Is the child told of this piece? */
static bool
is_noticed(const struct fanout *f, const struct lane *lane, unsigned piece)
{
    unsigned n_pieces = f->run->shared->n_pieces;

    return lane->notices == n_pieces || (lane->notices && piece == n_pieces - 1);
}

static enum ibv_wr_opcode
opcode(const struct fanout *f, const struct lane *lane, unsigned piece)
{
    if (f->run->options->op == OP_SEND) {
        return IBV_WR_SEND_WITH_IMM;
    }
    return is_noticed(f, lane, piece) ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
}

/* Only the last piece of a block has a completion, which stands for all pieces. */
static bool
post_piece(struct fanout *f, unsigned index, uint64_t block, unsigned piece, char *error,
           size_t size)
{
    const struct shared *shared = f->run->shared;
    unsigned q = (unsigned) (block % f->run->options->qps);
    struct lane *lane = &f->lanes[index][q];
    struct piece p = piece_get(f->run, block, piece);
    uint64_t tail = p.is_tail ? content_tail(&shared->content, block) : 0;
    struct ibv_sge sge = {
        .addr = p.is_tail ? (uintptr_t) &tail : (uintptr_t) (f->region + p.ofs),
        .length = p.len,
        .lkey = f->ep->mr->lkey,
    };
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = wr_id(WR_LANE, index, q),
                                 .sg_list = &sge,
                                 .num_sge = p.len ? 1 : 0,
                                 .opcode = opcode(f, lane, piece),
                                 .imm_data = htonl((uint32_t) block),
                                 .wr.rdma = {.remote_addr = lane->va + p.ofs, .rkey = lane->rkey},
                             };

    wr.send_flags =
        (piece == shared->n_pieces - 1 ? IBV_SEND_SIGNALED : 0) | (p.is_tail ? IBV_SEND_INLINE : 0);
    int status = ibv_post_send(lane->qp, &wr, &bad);
    return !status
           || refuse(error, size, "post block %" PRIu64 " to %s: %s", block, child_name(f, index),
                     strerror(status));
}

static bool
post_block(struct fanout *f, unsigned lane, uint64_t block, char *error, size_t size)
{
    bool ok = true;

    for (unsigned piece = 0; ok && piece < f->run->shared->n_pieces; piece++) {
        ok = post_piece(f, lane, block, piece, error, size);
    }
    return ok;
}

bool
fanout_piece(struct fanout *f, uint64_t block, unsigned piece, char *error, size_t size)
{
    bool ok = true;

    if (f->serial) {
        return piece < f->run->shared->n_pieces - 1 || post_block(f, 0, block, error, size);
    }
    for (unsigned i = 0; ok && i < f->n_lanes; i++) {
        ok = post_piece(f, i, block, piece, error, size);
    }
    return ok;
}

bool
fanout_block(struct fanout *f, uint64_t block, char *error, size_t size)
{
    bool ok = true;

    for (unsigned piece = 0; ok && piece < f->run->shared->n_pieces; piece++) {
        ok = fanout_piece(f, block, piece, error, size);
    }
    return ok;
}

bool
fanout_completion(struct fanout *f, const struct ibv_wc *wc, unsigned *index, uint64_t *block,
                  bool *all, char *error, size_t size)
{
    const struct run_options *o = f->run->options;
    unsigned q = wr_qp(wc);

    *index = wr_index(wc);
    struct lane *lane = &f->lanes[*index][q];
    *block = lane->done * o->qps + q;
    if (wc->status != IBV_WC_SUCCESS) {
        return refuse(error, size, "block %" PRIu64 " to %s: %s", *block, child_name(f, *index),
                      ibv_wc_status_str(wc->status));
    }
    uint8_t *n_have = &f->n_have[q][lane->done++ % o->depth];
    *all = ++*n_have == f->n_lanes;
    if (*all) {
        *n_have = 0;
    } else if (f->serial) {
        return post_block(f, *index + 1, *block, error, size);
    }
    return true;
}
