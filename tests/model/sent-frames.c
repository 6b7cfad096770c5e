/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that a node has sent and that still wait.
 */
#include "tests/model/sent-frames.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

struct sent_frame {
    struct sent_frame *next;
    struct packet *p;
    size_t len;
    uint8_t bytes[]; /* of 'p' when it was put in. */
};

void
sent_frames_put(struct sent_frames *frames, struct packet *p)
{
    struct sent_frame *frame = must_calloc(1, sizeof *frame + packet_size(p));

    frame->next = frames->first;
    frame->p = p;
    frame->len = packet_flatten(p, frame->bytes, packet_size(p));
    frames->first = frame;
}

static bool
is_unchanged(const struct sent_frame *frame)
{
    uint8_t bytes[PACKET_HEADROOM + PACKET_ROOM];

    return packet_flatten(frame->p, bytes, sizeof bytes) == frame->len
           && !memcmp(bytes, frame->bytes, frame->len);
}

bool
sent_frames_flush(struct sent_frames *frames)
{
    bool unchanged = true;

    while (frames->first) {
        struct sent_frame *frame = frames->first;

        frames->first = frame->next;
        unchanged &= is_unchanged(frame);
        packet_put(frame->p);
        free(frame);
    }
    return unchanged;
}
