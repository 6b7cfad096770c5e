/* SPDX-License-Identifier: Apache-2.0
 *
 * A survey: how many of the packets on a way are lost?  Some are sent in close order, and each counts for
 * itself (docs/draft-notes.md, R22).
 *
 * A survey of which more than one was lost is followed by another one.  Pure; all time in microseconds.
 */
#ifndef LIB_SURVEY_H
#define LIB_SURVEY_H 1

#include <stdbool.h>
#include <stdint.h>

#define SURVEY_PACKETS 16

/* All zero: none is under way. */
struct survey {
    bool on;
    uint8_t n_sent, n_decided, n_lost;
    uint64_t next; /* when the next packet is due. */
    struct survey_packet {
        uint32_t seq;
        bool decided; /* it came back, or is lost. */
        uint64_t sent;
    } packets[SURVEY_PACKETS];
};

/* Unless one is under way. */
void survey_begin(struct survey *, uint64_t now);
/* Its packet 'seq' was sent; the next one is due 'gap' later. */
void survey_sent(struct survey *, uint32_t seq, uint64_t gap, uint64_t now);
/* Packet 'seq' came back.  False: it is none of the survey's that is awaited. */
bool survey_came_back(struct survey *, uint32_t seq, uint64_t now);
/* Takes a packet that was sent 'timeout' ago and did not come back: it is lost.  False: there is none. */
bool survey_take_lost(struct survey *, uint64_t timeout, uint64_t now);

/* Is a packet to be sent now? */
bool survey_is_due(const struct survey *, uint64_t now);
/* When one is to be sent, or is lost. */
uint64_t survey_deadline(const struct survey *, uint64_t timeout);

#endif /* lib/survey.h */
