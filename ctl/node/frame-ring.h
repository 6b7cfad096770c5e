/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames from one thread to another, copied: a ring with one writer and one reader, without locks.
 */
#ifndef CTL_NODE_FRAME_RING_H
#define CTL_NODE_FRAME_RING_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_ring;

/* Aborts if there is no memory. */
struct frame_ring *frame_ring_create(void);
void frame_ring_destroy(struct frame_ring *);

/* False: it is full, nothing was done.  'len' is at most PACKET_ROOM. */
bool frame_ring_put(struct frame_ring *, uint16_t port, const uint8_t *frame, size_t len);
/* The oldest frame, or NULL.  It is valid until frame_ring_drop(), which removes it. */
const uint8_t *frame_ring_peek(struct frame_ring *, uint16_t *port, size_t *len);
void frame_ring_drop(struct frame_ring *);

#endif /* ctl/node/frame-ring.h */
