/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Reliable Connection has in flight, as somebody between its ends sees it: requests pass, and
 * answers that confirm them (docs/draft-notes.md, R20).
 *
 * Answers do not name the queue pair that they are for in the way that requests do.  So the same
 * structure also says which answers may be the flow's.
 *
 * Pure: 'now' is in microseconds.
 */
#ifndef LIB_IN_FLIGHT_H
#define LIB_IN_FLIGHT_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire.h"

/* No packet, and no answer to it, is in the network for longer.  In twice that time a flow sends
 * fewer than 2^23 packets. */
#define IN_FLIGHT_LIFE 2000000

/* All zero: nothing was seen. */
struct in_flight {
    bool any; /* a request was seen; the rest is valid. */
    /* Requests below it have arrived, and their sender knows that: it goes back no further. */
    psn_t una;
    psn_t h;   /* behind the first PSN of the highest request. */
    psn_t end; /* answers are below it: a READ has as many PSNs as its answer has packets. */
    /* Lowest PSNs that answers may have: since 'begun', and in the time before that. */
    psn_t low, low_before;
    uint64_t begun;
    uint64_t used; /* when a request, or what may be an answer, was last seen. */
};

/* A request passes; dma_len is a READ's, otherwise 0.  False: its PSN has nothing to do with earlier
 * ones, so the queue pair is another one with the same number. */
bool in_flight_sent(struct in_flight *, psn_t psn, uint32_t dma_len, bool is_read, uint64_t now);
/* Has everything arrived that was sent? */
bool in_flight_is_idle(const struct in_flight *);
/* May an answer with this PSN that comes now be one to the flow? */
bool in_flight_may_answer(const struct in_flight *, psn_t psn, uint64_t now);
/* Such an answer is one to the flow, and says that requests below 'una' have arrived. */
void in_flight_answered(struct in_flight *, psn_t una);

#endif /* lib/in-flight.h */
