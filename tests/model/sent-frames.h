/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that a node has sent and that still wait in the queues of its ports, as they do until a
 * burst is done (lib/tx-queues.h).  Until then nobody may change their bytes.
 */
#ifndef TESTS_MODEL_SENT_FRAMES_H
#define TESTS_MODEL_SENT_FRAMES_H 1

#include <stdbool.h>

#include "lib/packet.h"

struct sent_frame;

/* Starts empty: all zero. */
struct sent_frames {
    struct sent_frame *first;
};

/* Consumes 'p', and notes its bytes. */
void sent_frames_put(struct sent_frames *, struct packet *p);
/* The event is over: frees all frames.  False: one has other bytes than when it was put in. */
bool sent_frames_flush(struct sent_frames *);

#endif /* tests/model/sent-frames.h */
