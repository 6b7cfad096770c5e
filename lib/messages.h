/* SPDX-License-Identifier: Apache-2.0
 *
 * Which message of a group epoch is at which PSN: the source's messages are numbered from 0 on.
 *
 * Memory is bounded: what is further back than MESSAGES_HISTORY packets is forgotten.
 */
#ifndef LIB_MESSAGES_H
#define LIB_MESSAGES_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire.h"

#define MESSAGES_HISTORY (1 << 18)
/* Packets may overtake others by less than this, and are counted when those have come. */
#define MESSAGES_AHEAD   (1 << 10)

enum messages_answer {
    MESSAGE_KNOWN,
    MESSAGE_NOT_YET, /* a packet before this PSN has not come yet. */
    MESSAGE_UNKNOWN, /* and never will be known. */
};

struct messages;

/* 'known': nothing went down before, so that the first message is at the start PSN.  Otherwise no
 * number is ever known. */
struct messages *messages_create(psn_t start_psn, bool known);
void messages_destroy(struct messages *);

/* A packet of the source goes down, perhaps not for the first time.  'flags' are those of its
 * opcode (struct roce_opcode_info). */
void messages_note(struct messages *, psn_t, uint16_t flags);

/* Finds the number of the message that begins at this PSN or contains it.  The PSN may be the one
 * that comes next. */
enum messages_answer messages_find(const struct messages *, psn_t, uint64_t *number);

#endif /* lib/messages.h */
