/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a bad link.
 *
 * Theory of operation
 * -------------------
 * A frame's whole future is decided when it comes.  With a rate the link is busy
 * until 'free_at', so the frame leaves the queue at max(now, free_at) plus its
 * own time on the wire; how many wait is found from a ring of these departures.
 * Then it is under way until 'due'.  Frames under way are in a heap by 'due'.
 *
 * Each frame takes the same number of random numbers whatever the parameters
 * are, so that one more impairment does not change which frames the others hit.
 */
#include "lib/impair.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
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
    uint64_t free_at; /* ns. */
    uint64_t last_due;
    uint64_t order;

    uint64_t *departures; /* ring of params.queue, ns. */
    uint32_t first, n_waiting;

    struct held *heap;
    uint32_t n_held, allocated;
    struct impair_stats stats;
};

static uint64_t
next_random(struct impair *im)
{
    /* splitmix64. */
    uint64_t z = im->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform below 'limit', which is not 0. */
static uint64_t
random_below(struct impair *im, uint64_t limit)
{
    return (next_random(im) >> 32) * limit >> 32;
}

static bool
happens(struct impair *im, uint32_t ppm)
{
    return random_below(im, IMPAIR_PPM) < ppm;
}

struct impair *
impair_create(const struct impair_params *params, uint64_t salt)
{
    struct impair *im = must_calloc(1, sizeof *im);
    uint64_t *departures = must_calloc(params->queue + (size_t) 1, sizeof *departures);
    im->params = *params;
    im->departures = departures;
    im->random = salt * 0x9e3779b97f4a7c15u ^ params->seed;
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
    free(im->heap);
    free(im->departures);
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

/* The queue. */

/* Sets *departed: when a frame that comes now has left at the rate, in ns.  False: the queue is
 * full. */
static bool
depart(struct impair *im, size_t size, uint64_t now, uint64_t *departed)
{
    const struct impair_params *c = &im->params;

    *departed = now;
    if (!c->rate) {
        return true;
    }
    while (im->n_waiting && im->departures[im->first] <= now) {
        im->first = (im->first + 1) % c->queue;
        im->n_waiting--;
    }
    if (im->n_waiting == c->queue) {
        return false;
    }
    im->free_at =
        (im->free_at > now ? im->free_at : now) + size * 8 * UINT64_C(1000000000) / c->rate;
    im->departures[(im->first + im->n_waiting++) % c->queue] = im->free_at;
    *departed = im->free_at;
    return true;
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

void
impair_input(struct impair *im, struct packet_pool *pool, const struct packet *src, uint64_t now)
{
    const struct impair_params *c = &im->params;
    bool lost = happens(im, c->loss);
    bool corrupted = happens(im, c->corrupt);
    bool late = happens(im, c->reorder);
    int n = happens(im, c->duplicate) ? 2 : 1;
    uint64_t jitter = random_below(im, 2 * (uint64_t) c->jitter_usec + 1);
    uint64_t where = next_random(im);

    im->stats.n_frames++;
    uint64_t departed;
    if (!depart(im, packet_size(src), now * 1000, &departed)) {
        im->stats.n_queue_full++;
        return;
    }
    if (lost) {
        im->stats.n_lost++;
        return;
    }
    for (int i = 0; i < n; i++) {
        struct packet *p = reserve(im) ? copy(pool, src) : NULL;
        if (!p) {
            im->stats.n_no_buffer++;
            return;
        }
        if (corrupted) {
            corrupt(p, where);
        }
        hold(im, p, arrival(im, (departed + 999) / 1000, jitter, late));
        im->stats.n_duplicated += i > 0;
    }
    im->stats.n_corrupted += corrupted;
    im->stats.n_late += late;
}

uint64_t
impair_deadline(const struct impair *im)
{
    return im->n_held ? im->heap[0].due : UINT64_MAX;
}

struct packet *
impair_output(struct impair *im, uint64_t now)
{
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
    return im->n_held;
}
