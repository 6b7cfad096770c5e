/* SPDX-License-Identifier: Apache-2.0
 *
 * A network in virtual time.
 *
 * Events are a binary heap by time; of two at the same time the one that was
 * made first comes first, so that a run depends on nothing but its seed.
 */
#include "tests/model/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "lib/wire.h"

struct fabric_event {
    uint64_t at;
    uint64_t order;                                 /* of two at the same time. */
    void (*run)(void *aux, unsigned a, unsigned b); /* NULL: a frame. */
    unsigned a, b;
    struct fabric_end to;
    size_t len;
    uint8_t bytes[];
};

void
fabric_init(struct fabric *f, uint64_t seed,
            void (*deliver)(void *aux, struct fabric_end, const uint8_t *frame, size_t len),
            void *aux)
{
    *f = (struct fabric){.deliver = deliver, .aux = aux, .random = seed, .now = 1000000};
}

void
fabric_uninit(struct fabric *f)
{
    for (size_t i = 0; i < f->n_heap; i++) {
        free(f->heap[i]);
    }
    free(f->heap);
}

uint32_t
fabric_random(struct fabric *f, uint32_t limit)
{
    /* splitmix64. */
    uint64_t z = f->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t) ((z ^ z >> 31) >> 32) % limit;
}

/* Events. */

static bool
is_before(const struct fabric_event *a, const struct fabric_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static struct fabric_event *
event_create(struct fabric *f, uint64_t at, size_t len)
{
    struct fabric_event *e = calloc(1, sizeof *e + len);
    if (f->n_heap == f->heap_size) {
        f->heap_size = f->heap_size ? 2 * f->heap_size : 256;
        f->heap = realloc(f->heap, f->heap_size * sizeof(struct fabric_event *));
    }
    if (!e || !f->heap) {
        abort();
    }
    e->at = at;
    e->order = f->n_events++;
    e->len = len;
    size_t i = f->n_heap++;
    for (; i && is_before(e, f->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        f->heap[i] = f->heap[(i - 1) / 2];
    }
    f->heap[i] = e;
    return e;
}

static struct fabric_event *
event_pop(struct fabric *f)
{
    struct fabric_event *first = f->heap[0];
    struct fabric_event *last = f->heap[--f->n_heap];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < f->n_heap; i = child) {
        child += child + 1 < f->n_heap && is_before(f->heap[child + 1], f->heap[child]);
        if (!is_before(f->heap[child], last)) {
            break;
        }
        f->heap[i] = f->heap[child];
    }
    f->heap[i] = last;
    return first;
}

void
fabric_schedule(struct fabric *f, uint64_t at, void (*run)(void *aux, unsigned a, unsigned b),
                unsigned a, unsigned b)
{
    struct fabric_event *e = event_create(f, at, 0);

    e->run = run;
    e->a = a;
    e->b = b;
}

uint64_t
fabric_next(const struct fabric *f)
{
    return f->n_heap ? f->heap[0]->at : UINT64_MAX;
}

void
fabric_run(struct fabric *f)
{
    struct fabric_event *e = event_pop(f);

    if (e->run) {
        e->run(f->aux, e->a, e->b);
    } else {
        f->deliver(f->aux, e->to, e->bytes, e->len);
    }
    free(e);
}

/* Links. */

/* Where the index has this end, or has room for it. */
static uint16_t *
find_end(struct fabric *f, struct fabric_end end)
{
    uint32_t i = (end.station * 4096u + end.port) * 0x9e3779b1u >> 19;

    for (;; i++) {
        uint16_t *slot = &f->ends[i % FABRIC_MAX_ENDS];
        if (!*slot) {
            return slot;
        }
        const struct fabric_end *e = &f->links[(*slot - 1) / 2].ends[(*slot - 1) % 2];
        if (e->station == end.station && e->port == end.port) {
            return slot;
        }
    }
}

void
fabric_connect(struct fabric *f, struct fabric_end a, struct fabric_end b)
{
    if (f->n_links == FABRIC_MAX_LINKS) {
        abort();
    }
    f->links[f->n_links] = (struct fabric_link){.ends = {a, b}};
    *find_end(f, a) = (uint16_t) (1 + 2 * f->n_links);
    *find_end(f, b) = (uint16_t) (2 + 2 * f->n_links);
    f->n_links++;
}

/* The link at this end; *side says which end it is. */
static struct fabric_link *
find_link(struct fabric *f, struct fabric_end end, unsigned *side)
{
    uint16_t slot = *find_end(f, end);

    if (!slot) {
        abort();
    }
    *side = (slot - 1u) % 2;
    return &f->links[(slot - 1) / 2];
}

struct fabric_end
fabric_peer(struct fabric *f, struct fabric_end end)
{
    unsigned side;
    return find_link(f, end, &side)->ends[!side];
}

static struct fabric_event *
send_copy(struct fabric *f, struct fabric_end to, uint64_t at, const uint8_t *frame, size_t len)
{
    struct fabric_event *e = event_create(f, at, len);

    memcpy(e->bytes, frame, len);
    e->to = to;
    return e;
}

/* When a frame that is sent now arrives, if it is not late. */
static uint64_t
arrival(struct fabric *f, struct fabric_link *link, unsigned side)
{
    const struct fabric_quality *q = &link->quality[side];
    uint64_t at = f->now + q->delay;

    if (q->jitter && f->now >= FABRIC_JITTER_FROM) {
        at += fabric_random(f, q->jitter);
        at = link->last[side] = at > link->last[side] ? at : link->last[side];
    }
    return at;
}

void
fabric_send(struct fabric *f, struct fabric_end from, const uint8_t *frame, size_t len, bool ideal)
{
    unsigned side;
    struct fabric_link *link = find_link(f, from, &side);
    const struct fabric_quality *q = &link->quality[side];
    unsigned copies = 1;

    if (!ideal) {
        copies = fabric_random(f, 10000) < q->loss ? 0 : fabric_random(f, 10000) < q->twice ? 2 : 1;
    }
    f->last_loss = copies ? f->last_loss : f->now;
    f->n_lost += !copies;
    f->n_twice += copies == 2;
    if (copies && q->stray && !ideal && fabric_random(f, 10000) < q->stray) {
        uint64_t at = f->now + q->delay + fabric_random(f, FABRIC_STRAY_USEC);

        send_copy(f, link->ends[!side], at, frame, len);
        f->n_twice++;
    }
    for (unsigned i = 0; i < copies; i++) {
        bool late = !ideal && fabric_random(f, 10000) < q->reorder;
        uint64_t at = late || i ? f->now + q->delay + 1 + fabric_random(f, 30 * q->delay)
                                : arrival(f, link, side);
        struct fabric_event *e = send_copy(f, link->ends[!side], at, frame, len);
        f->n_late += late;
        if (!ideal && fabric_random(f, 10000) < q->spoil) {
            uint32_t bit = fabric_random(f, (uint32_t) (len - sizeof(struct eth_hdr)) * 8);
            e->bytes[sizeof(struct eth_hdr) + bit / 8] ^= (uint8_t) (1 << bit % 8);
            f->last_loss = f->now;
            f->n_spoilt++;
        }
    }
}

void
fabric_calm(struct fabric *f)
{
    for (unsigned i = 0; i < f->n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            struct fabric_quality *q = &f->links[i].quality[side];
            *q = (struct fabric_quality){.delay = q->delay, .jitter = q->jitter};
        }
    }
}
