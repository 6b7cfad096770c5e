/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames from one thread to another.
 *
 * Records follow each other in a buffer; one that would not fit before its end begins at its start
 * again, and a record without a frame says so.  Positions only grow: the buffer's index is their
 * remainder.  What lies between 'head' and 'tail' is the reader's, the rest the writer's.
 */
#include <config.h>

#include "ctl/node/frame-ring.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/packet.h"
#include "util.h"

#define RING_SIZE (256 * 1024) /* power of two. */
#define NO_FRAME  UINT32_MAX   /* the next record is at the start of the buffer. */

struct record {
    uint32_t len;
    uint16_t port;
    uint8_t frame[];
};

struct frame_ring {
    _Alignas(64) _Atomic size_t head;
    _Alignas(64) _Atomic size_t tail;
    _Alignas(64) uint8_t bytes[RING_SIZE];
};

struct frame_ring *
frame_ring_create(void)
{
    struct frame_ring *r = xmalloc_cacheline(sizeof *r);

    atomic_init(&r->head, 0);
    atomic_init(&r->tail, 0);
    return r;
}

void
frame_ring_destroy(struct frame_ring *r)
{
    free_cacheline(r);
}

static size_t
record_size(size_t len)
{
    return ROUND_UP(offsetof(struct record, frame) + len, sizeof(uint64_t));
}

static struct record *
record_at(struct frame_ring *r, size_t position)
{
    return ALIGNED_CAST(struct record *, &r->bytes[position % RING_SIZE]);
}

bool
frame_ring_put(struct frame_ring *r, uint16_t port, const uint8_t *frame, size_t len)
{
    size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    size_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    size_t to_end = RING_SIZE - tail % RING_SIZE;
    size_t size = record_size(len);
    size_t skipped = size > to_end ? to_end : 0;

    ovs_assert(len <= PACKET_ROOM);
    if (skipped + size > RING_SIZE - (tail - head)) {
        return false;
    }
    if (skipped) {
        record_at(r, tail)->len = NO_FRAME;
        tail += skipped;
    }
    struct record *rec = record_at(r, tail);
    rec->len = (uint32_t) len;
    rec->port = port;
    memcpy(rec->frame, frame, len);
    atomic_store_explicit(&r->tail, tail + size, memory_order_release);
    return true;
}

const uint8_t *
frame_ring_peek(struct frame_ring *r, uint16_t *port, size_t *len)
{
    size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

    if (head == atomic_load_explicit(&r->tail, memory_order_acquire)) {
        return NULL;
    }
    struct record *rec = record_at(r, head);
    if (rec->len == NO_FRAME) {
        /* A frame follows: both were added at once. */
        head += RING_SIZE - head % RING_SIZE;
        atomic_store_explicit(&r->head, head, memory_order_relaxed);
        rec = record_at(r, head);
    }
    *port = rec->port;
    *len = rec->len;
    return rec->frame;
}

void
frame_ring_drop(struct frame_ring *r)
{
    size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

    atomic_store_explicit(&r->head, head + record_size(record_at(r, head)->len),
                          memory_order_release);
}
