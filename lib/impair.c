/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a bad link.
 *
 * Theory of operation
 * -------------------
 * With a rate, frames wait in 'queue'.  When one leaves that, or comes and there is no rate, it is
 * decided what becomes of it on the way and when it arrives: 'due'.  Frames under way are in a heap
 * by 'due'.
 *
 * Each frame that comes takes the same number of random numbers whatever the parameters are, so
 * that one more impairment does not change which frames the others hit.  For those that wait, the
 * state that gives theirs is in a ring of the queue's order.
 */
#include "lib/impair.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/ecn.h"
#include "lib/prng.h"
#include "lib/wire.h"

#define MAX_HELD 65536 /* frames under way; the pool has fewer packets. */

struct held {
    uint64_t due;
    uint64_t order; /* of frames that are due at the same time. */
    struct packet *p;
};

struct impair {
    struct impair_params params;
    uint64_t random;
    uint64_t last_due;
    uint64_t order;

    struct egress *queue; /* NULL: there is no rate. */
    uint64_t *fates;      /* ring of params.queue: 'random' when each of its frames came. */
    uint32_t first, n_waiting;

    struct held *heap;
    uint32_t n_held, allocated;
    struct impair_stats stats;
};

struct egress_params
impair_queue(const struct impair_params *c)
{
    return (struct egress_params){
        .rate = c->rate, .limit = c->queue, .kmin = c->kmin, .kmax = c->kmax, .pmax = c->pmax};
}

struct impair_params
impair_way(const struct impair_params *params)
{
    struct impair_params way = *params;

    way.rate = 0;
    way.queue = IMPAIR_QUEUE;
    way.kmin = way.kmax = 0;
    way.pmax = EGRESS_PPM;
    return way;
}

struct impair *
impair_create(const struct impair_params *params, uint64_t salt)
{
    struct impair *im = must_calloc(1, sizeof *im);
    im->params = *params;
    im->random = salt * PRNG_STEP ^ params->seed;
    if (params->rate) {
        struct egress_params queue = impair_queue(params);

        im->queue = egress_create(&queue, ~im->random);
        im->fates = must_calloc(params->queue, sizeof *im->fates);
    }
    return im;
}

void
impair_destroy(struct impair *im)
{
    if (!im) {
        return;
    }
    for (uint32_t i = 0; i < im->n_held; i++) {
        packet_put(im->heap[i].p);
    }
    egress_destroy(im->queue);
    free(im->heap);
    free(im->fates);
    free(im);
}

/* Heap. */

static bool
goes_first(const struct held *a, const struct held *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static bool
reserve(struct impair *im)
{
    if (im->n_held < im->allocated) {
        return true;
    }
    uint32_t n = im->allocated ? 2 * im->allocated : 64;
    struct held *heap = n <= MAX_HELD ? realloc(im->heap, n * sizeof *heap) : NULL;
    if (heap) {
        im->heap = heap;
        im->allocated = n;
    }
    return heap != NULL;
}

static void
hold(struct impair *im, struct packet *p, uint64_t due)
{
    struct held h = {.due = due, .order = im->order++, .p = p};
    uint32_t pos = im->n_held++;

    while (pos > 0 && goes_first(&h, &im->heap[(pos - 1) / 2])) {
        im->heap[pos] = im->heap[(pos - 1) / 2];
        pos = (pos - 1) / 2;
    }
    im->heap[pos] = h;
}

static struct packet *
take_first(struct impair *im)
{
    struct packet *p = im->heap[0].p;
    struct held last = im->heap[--im->n_held];
    uint32_t pos = 0;

    for (uint32_t child; (child = 2 * pos + 1) < im->n_held; pos = child) {
        if (child + 1 < im->n_held && goes_first(&im->heap[child + 1], &im->heap[child])) {
            child++;
        }
        if (!goes_first(&im->heap[child], &last)) {
            break;
        }
        im->heap[pos] = im->heap[child];
    }
    im->heap[pos] = last;
    return p;
}

/* The way. */

/* An eighth of the pool is left for links that are not bad, and for what keeps the node going. */
static struct packet *
copy(struct packet_pool *pool, const struct packet *src)
{
    bool may_take = packet_pool_n_free(pool) > packet_pool_size(pool) / 8;
    struct packet *p = may_take ? packet_get(pool) : NULL;
    if (p) {
        p->len = (uint32_t) packet_flatten(src, p->data, PACKET_ROOM);
    }
    return p;
}

/* Flips one bit behind the Ethernet header: a frame to another station would only be lost. */
static void
corrupt(struct packet *p, uint64_t where)
{
    if (p->len > sizeof(struct eth_hdr)) {
        size_t bit = where % ((p->len - sizeof(struct eth_hdr)) * 8);
        p->data[sizeof(struct eth_hdr) + bit / 8] ^= (uint8_t) (1 << bit % 8);
    }
}

/* Time on the way of a frame that left at 'departed', in order unless it is late. */
static uint64_t
arrival(struct impair *im, uint64_t departed, uint64_t jitter, bool late)
{
    uint64_t due = departed + im->params.delay_usec + jitter;

    due = due > im->params.jitter_usec ? due - im->params.jitter_usec : 0;
    due = due > departed ? due : departed;
    if (late) {
        return due + im->params.late_usec;
    }
    im->last_due = due > im->last_due ? due : im->last_due;
    return im->last_due;
}

/* What becomes of a frame on the way. */
struct fate {
    bool lost, corrupted, late, twice;
    uint64_t jitter;
    uint64_t where; /* it is corrupted. */
};

static bool
happens(uint64_t *random, uint32_t ppm)
{
    return prng_below(random, IMPAIR_PPM) < ppm;
}

static struct fate
draw_fate(const struct impair_params *c, uint64_t *random)
{
    struct fate f;

    f.lost = happens(random, c->loss);
    f.corrupted = happens(random, c->corrupt);
    f.late = happens(random, c->reorder);
    f.twice = happens(random, c->duplicate);
    f.jitter = prng_below(random, 2 * (uint64_t) c->jitter_usec + 1);
    f.where = prng_next(random);
    return f;
}

/* A frame enters the way at 'now'.  Consumes p, which may be NULL: there was no packet for it. */
static void
enter(struct impair *im, struct packet *p, const struct fate *f, uint64_t now)
{
    if (f->lost) {
        im->stats.n_lost++;
        packet_put(p);
        return;
    }
    if (!p || !reserve(im)) {
        im->stats.n_no_buffer++;
        packet_put(p);
        return;
    }
    if (f->corrupted) {
        corrupt(p, f->where);
    }
    uint64_t due = arrival(im, now, f->jitter, f->late);
    hold(im, p, due);
    im->stats.n_corrupted += f->corrupted;
    im->stats.n_late += f->late;
    if (f->twice) {
        struct packet *again = reserve(im) ? copy(p->pool, p) : NULL;

        if (again) {
            hold(im, again, due);
        }
        im->stats.n_duplicated += again != NULL;
        im->stats.n_no_buffer += !again;
    }
}

/* Frames that have left the queue by 'now' enter the way, each at its time. */
static void
leave_queue(struct impair *im, uint64_t now)
{
    uint64_t left = 0, deadline;

    while (im->n_waiting && (deadline = egress_deadline(im->queue)) <= now) {
        bool marked;

        left = deadline ? deadline : left; /* 0: it left with the one before. */
        struct packet *p = egress_get(im->queue, left, &marked);
        struct fate fate = draw_fate(&im->params, &im->fates[im->first]);

        im->first = (im->first + 1) % im->params.queue;
        im->n_waiting--;
        im->stats.n_marked += marked;
        enter(im, p, &fate, left);
    }
}

static void
enter_queue(struct impair *im, struct packet *p, uint64_t random, uint64_t now)
{
    enum egress_kind kind = egress_ecn(p) == ECN_NOT_ECT ? EGRESS_EXEMPT : EGRESS_MARKABLE;
    bool congested;

    if (egress_put(im->queue, p, kind, now, &congested) == EGRESS_QUEUED) {
        im->fates[(im->first + im->n_waiting++) % im->params.queue] = random;
    } else {
        im->stats.n_queue_full++;
        packet_put(p);
    }
}

void
impair_input(struct impair *im, struct packet_pool *pool, const struct packet *src, uint64_t now)
{
    uint64_t random = im->random;
    struct fate fate = draw_fate(&im->params, &im->random);
    struct packet *p = copy(pool, src);

    im->stats.n_frames++;
    leave_queue(im, now);
    if (!im->queue) {
        enter(im, p, &fate, now);
    } else if (p) {
        enter_queue(im, p, random, now);
    } else {
        im->stats.n_no_buffer++;
    }
}

uint64_t
impair_deadline(const struct impair *im)
{
    uint64_t queue = im->queue ? egress_deadline(im->queue) : UINT64_MAX;
    uint64_t way = im->n_held ? im->heap[0].due : UINT64_MAX;

    return queue < way ? queue : way;
}

struct packet *
impair_output(struct impair *im, uint64_t now)
{
    leave_queue(im, now);
    return im->n_held && im->heap[0].due <= now ? take_first(im) : NULL;
}

void
impair_get_stats(const struct impair *im, struct impair_stats *stats)
{
    *stats = im->stats;
}

uint32_t
impair_n_held(const struct impair *im)
{
    return im->n_held + im->n_waiting;
}
