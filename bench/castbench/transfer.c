/* SPDX-License-Identifier: Apache-2.0
 *
 * The source's transfers.
 *
 * A block is outstanding until every replica has it.  Each QP has up to 'depth'
 * outstanding blocks.  Blocks are sent from one buffer laid out like the region.
 * A block's slot is stamped before the block is posted.  That must not happen
 * while the slot's earlier block is still under way anywhere, so the source waits
 * for all blocks that are 'n_slots' older.
 *
 * A QP's blocks end in order: each child and each relay tells of them in order.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/castbench/source.h"

#define HELD_LOOK_NS (50 * (uint64_t) NS_PER_MS)

/* The oldest block that not all replicas have. */
static uint64_t
oldest(const struct source *s)
{
    unsigned qps = s->run->options->qps;
    uint64_t min = UINT64_MAX;

    for (unsigned q = 0; q < qps; q++) {
        uint64_t block = s->stripes[q].done * qps + q;
        min = block < min ? block : min;
    }
    return min;
}

/* When a block is due, in open loop. */
static uint64_t
due(const struct source *s, uint64_t block)
{
    double rate = s->phase == PHASE_WORK ? s->run->options->rate : 0;

    return rate > 0 ? s->start + (uint64_t) ((double) (block - s->first) / rate * NS_PER_SEC) : 0;
}

/* The first block that is not due by 'time'. */
static uint64_t
first_after(const struct source *s, uint64_t time)
{
    const struct run_options *o = s->run->options;
    uint64_t block = s->first + (uint64_t) (o->rate * o->duration);

    while (due(s, block) < time) {
        block++;
    }
    return block;
}

static bool
is_over(const struct source *s, uint64_t now)
{
    return s->timed && now >= s->until && !atomic_load(&s->run->shared->is_held);
}

/* When it is to be looked again whether the time is over. */
static uint64_t
next_look(const struct source *s, uint64_t now)
{
    return !s->timed ? UINT64_MAX : now < s->until ? s->until : now + HELD_LOOK_NS;
}

/* Once the time is over, blocks are completed up to the last that was posted, so that none is
 * missing between those of different QPs.  In open loop more blocks may have been due.  They had to
 * wait for longer than any that is measured, so they are counted as overdue. */
static void
end_if_over(struct source *s, uint64_t now)
{
    const struct run_options *o = s->run->options;
    uint64_t posted = s->first;

    if (!is_over(s, now)) {
        return;
    }
    for (unsigned q = 0; q < o->qps; q++) {
        const struct stripe *stripe = &s->stripes[q];
        uint64_t end = stripe->posted ? (stripe->posted - 1) * o->qps + q + 1 : 0;

        posted = end > posted ? end : posted;
    }
    if (o->rate > 0) {
        uint64_t end = first_after(s, s->until);

        s->run->shared->overdue = end > posted ? end - posted : 0;
    }
    s->timed = false;
    s->end = posted;
}

/* Is a block under way that this member does not have?  0: that not all replicas have. */
static bool
lacks(const struct source *s, unsigned member)
{
    uint64_t posted = 0, has = s->n_confirmed[member];

    for (unsigned q = 0; q < s->run->options->qps; q++) {
        posted += s->stripes[q].posted;
        has += member ? 0 : s->stripes[q].done;
    }
    return posted > has;
}

/* Times are since the phase began. */
static void
gaps_begin(struct source *s, uint64_t now)
{
    struct shared *shared = s->run->shared;

    if (s->phase != PHASE_WORK) {
        return;
    }
    gap_begin(&shared->gap, now - s->start);
    for (unsigned i = 0; i < s->run->options->n_receivers; i++) {
        gap_begin(&shared->gaps[i], now - s->start);
    }
}

/* What is under way at a failure, at 'now', is waited for no longer. */
static void
gaps_end(struct source *s, uint64_t now)
{
    struct shared *shared = s->run->shared;

    if (s->phase != PHASE_WORK) {
        return;
    }
    gap_end(&shared->gap, now - s->start, false);
    for (unsigned i = 0; i < s->run->options->n_receivers; i++) {
        gap_end(&shared->gaps[i], now - s->start, false);
    }
}

static bool
post(struct source *s, unsigned q, uint64_t block, uint64_t now, char *error, size_t size)
{
    struct shared *shared = s->run->shared;
    struct stripe *stripe = &s->stripes[q];
    uint64_t began = due(s, block);

    for (; s->stamped <= block; s->stamped++) {
        content_stamp(&shared->content, s->buf, s->stamped);
    }
    if (!began) {
        began = now;
    }
    gaps_begin(s, now);
    stripe->blocks[stripe->posted++ % s->run->options->depth] = (struct block){.began = began};
    shared->began[block % RING_SIZE] = began;
    return fanout_block(&s->fanout, block, error, size);
}

/* How far the newest block may be ahead of the oldest that not all replicas have.  A fast QP gets
 * no further ahead of a slow one.  Otherwise a run would end with the slow QP alone, which catches
 * up on a region's worth of blocks. */
static uint64_t
window(const struct source *s)
{
    const struct run_options *o = s->run->options;
    uint64_t n_slots = s->run->shared->content.n_slots, lead = 2 * (uint64_t) o->depth * o->qps;

    return n_slots < lead ? n_slots : lead;
}

/* Posts what depth, slots and time allow.  If only the time forbids more, '*next' is when it will
 * allow it. */
static bool
post_all(struct source *s, uint64_t *next, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    uint64_t limit = oldest(s) + window(s), now = now_ns();

    *next = next_look(s, now);
    for (unsigned q = 0; q < o->qps; q++) {
        struct stripe *stripe = &s->stripes[q];

        for (;;) {
            uint64_t block = stripe->posted * o->qps + q;

            if (block >= s->end || block >= limit || stripe->posted - stripe->done >= o->depth) {
                break;
            }
            if (due(s, block) > now) {
                *next = due(s, block) < *next ? due(s, block) : *next;
                break;
            }
            /* In open loop a block that was due in time begins, however long this process slept. */
            if (o->rate <= 0 && is_over(s, now)) {
                break;
            }
            if (!post(s, q, block, now, error, size)) {
                return false;
            }
            now = now_ns();
        }
    }
    end_if_over(s, now);
    return true;
}

static void
note_confirmed(struct source *s, const struct block *b, unsigned n_more, uint64_t now)
{
    const struct run_options *o = s->run->options;
    struct shared *shared = s->run->shared;
    const unsigned rules[N_RULES] = {
        [RULE_ANY] = 1, [RULE_QUORUM] = o->quorum, [RULE_ALL] = o->n_receivers};

    for (unsigned i = 0; i < N_RULES; i++) {
        if (b->n_have < rules[i] && b->n_have + n_more >= rules[i]) {
            histogram_add(&shared->latency[i], now - b->began);
        }
    }
}

/* 'n_more' replicas have the block.  They have told of the QP's blocks before it earlier. */
static void
confirmed(struct source *s, uint64_t block, unsigned n_more, uint64_t now)
{
    const struct run_options *o = s->run->options;
    struct shared *shared = s->run->shared;
    struct stripe *stripe = &s->stripes[block % o->qps];
    struct block *b = &stripe->blocks[block / o->qps % o->depth];

    if (!b->n_have) {
        b->first = now;
    }
    if (s->phase == PHASE_WORK) {
        note_confirmed(s, b, n_more, now);
    }
    b->n_have += n_more;
    if (b->n_have == o->n_receivers) {
        stripe->done++;
        if (s->phase == PHASE_WORK) {
            histogram_add(&shared->confirm_skew, now - b->first);
            gap_end(&shared->gap, now - s->start, lacks(s, 0));
        }
        atomic_fetch_add(&shared->completed, 1);
    }
}

static void
replica_confirmed(struct source *s, unsigned member, uint64_t block, uint64_t now)
{
    const struct block *b = &s->stripes[block % s->run->options->qps]
                                 .blocks[block / s->run->options->qps % s->run->options->depth];

    s->n_confirmed[member]++;
    if (s->phase == PHASE_WORK) {
        histogram_add(&s->run->shared->confirmed[member - 1], now - b->began);
        gap_end(&s->run->shared->gaps[member - 1], now - s->start, lacks(s, member));
    }
}

/* A child of the source's own, or the group, has a block. */
static bool
lane_completion(struct source *s, const struct ibv_wc *wc, char *error, size_t size)
{
    unsigned lane;
    uint64_t block, now = now_ns();
    bool all;

    if (!fanout_completion(&s->fanout, wc, &lane, &block, &all, error, size)) {
        return false;
    }
    if (is_mcast(s->run)) {
        confirmed(s, block, s->run->options->n_receivers, now);
    } else {
        replica_confirmed(s, s->run->shared->plan.members[0].children[lane], block, now);
        confirmed(s, block, 1, now);
    }
    return true;
}

/* A relay says that its children have a block.  It sends the low half of the block's number. */
static bool
ack_completion(struct source *s, const struct ibv_wc *wc, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    unsigned member = wr_index(wc);
    const struct relay_member *relay = &s->run->shared->plan.members[member];
    uint64_t from = oldest(s), now = now_ns();

    if (wc->status != IBV_WC_SUCCESS) {
        return refuse(error, size, "receive from %s: %s", o->receivers[member - 1],
                      ibv_wc_status_str(wc->status));
    }
    uint64_t block = from + (uint32_t) (ntohl(wc->imm_data) - (uint32_t) from);
    const struct stripe *stripe = &s->stripes[block % o->qps];
    if (block / o->qps < stripe->done || block / o->qps >= stripe->posted) {
        return refuse(error, size, "%s confirms block %" PRIu64 ", which is not under way",
                      o->receivers[member - 1], block);
    }
    for (unsigned i = 0; i < relay->n_children; i++) {
        replica_confirmed(s, relay->children[i], block, now);
    }
    confirmed(s, block, relay->n_children, now);
    return source_expect_ack(s, member, error, size);
}

static bool
completion(struct source *s, const struct ibv_wc *wc, char *error, size_t size)
{
    atomic_fetch_add(&s->run->shared->events, 1);
    return wr_kind(wc) == WR_ACK ? ack_completion(s, wc, error, size)
                                 : lane_completion(s, wc, error, size);
}

static bool
is_idle(const struct source *s)
{
    for (unsigned q = 0; q < s->run->options->qps; q++) {
        if (s->stripes[q].posted > s->stripes[q].done) {
            return false;
        }
    }
    return true;
}

static bool
nothing_came(const struct source *s, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    unsigned last = 1;
    int n = snprintf(error, size, "no completion for %u s, after %lu blocks", o->timeout,
                     atomic_load(&s->run->shared->completed));

    for (unsigned member = 2; member < s->run->shared->plan.n_members; member++) {
        last = s->n_confirmed[member] < s->n_confirmed[last] ? member : last;
    }
    if (!is_mcast(s->run) && n > 0 && (size_t) n < size) {
        snprintf(error + n, size - (size_t) n, "; %s is the first that lacks the next",
                 o->receivers[last - 1]);
    }
    return false;
}

/* Decides where the phase ends. */
static void
set_end(struct source *s)
{
    const struct run_options *o = s->run->options;
    uint64_t blocks = s->phase == PHASE_WARMUP ? o->warmup : s->run->shared->n_blocks;

    s->until = s->start + (uint64_t) o->duration * NS_PER_SEC;
    s->timed = !blocks && s->phase == PHASE_WORK;
    s->end = !s->timed                     ? s->first + blocks
             : o->rate > 0 && !o->n_events ? first_after(s, s->until)
                                           : UINT64_MAX;
}

/* Writes the phase's blocks.  '*last' is when the last one was completed. */
static bool
transfer(struct source *s, uint64_t *last, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    uint64_t news = s->start, next;

    for (;;) {
        struct ibv_wc wc;

        if (!post_all(s, &next, error, size)) {
            return false;
        }
        if (oldest(s) >= s->end) {
            return true;
        }
        news = is_idle(s) ? now_ns() : news;
        uint64_t limit = news + (uint64_t) o->timeout * NS_PER_SEC;
        int status = endpoint_completion(&s->ep, &wc, next < limit ? next : limit, -1);
        if (status == EAGAIN && now_ns() >= limit) {
            return nothing_came(s, error, size);
        }
        if (status == EAGAIN) {
            continue;
        }
        if (status) {
            return refuse(error, size, "%s", s->ep.error);
        }
        news = *last = now_ns();
        if (!completion(s, &wc, error, size)) {
            return false;
        }
    }
}

bool
source_transfer(struct source *s, enum phase phase, char *error, size_t size)
{
    struct shared *shared = s->run->shared;
    uint64_t last = now_ns();

    s->phase = phase;
    s->first = oldest(s);
    s->start = last;
    if (phase == PHASE_WORK) {
        shared->first_block_at = wall_clock_ns();
    }
    set_end(s);
    if (!transfer(s, &last, error, size)) {
        gaps_end(s, now_ns());
        return false;
    }
    shared->end = s->end;
    if (phase == PHASE_WORK) {
        shared->seconds = (double) (last - s->start) / NS_PER_SEC;
    }
    /* Receivers stop waiting for more. */
    return write(shared->over[phase][1], "", 1) == 1
           || refuse(error, size, "cannot tell the receivers that it is over");
}
