/* SPDX-License-Identifier: Apache-2.0
 *
 * How good a way is, by what became of the probes on it (docs/draft-notes.md, R22).
 *
 *     good --a probe is lost--> suspect --another one, or some of the last 16--> bad
 *     suspect --some good ones in a row--> good
 *     bad --a probe comes back--> recovering --two are lost, or some of the last 16--> bad
 *     recovering --some good ones in a row, and the hold-down is over--> good
 *
 * One lost probe is no relapse: a way of many links with a loss now and then would never be good again
 * once its hold-down is long.
 *
 * The hold-down grows with each relapse and shrinks in quiet times, so a link that flaps stays out of
 * use.  Long probes are counted apart: a way that carries only short packets is bad.
 *
 * Whether an operator denies a path is none of this: that is its configuration, and never ends by
 * itself.
 *
 * Pure; 'now' is in microseconds.
 */
#ifndef LIB_PATH_HEALTH_H
#define LIB_PATH_HEALTH_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/words.h"

/* In the order of preference. */
enum path_state {
    PATH_GOOD,
    PATH_UNKNOWN, /* nothing was heard yet. */
    PATH_SUSPECT,
    PATH_RECOVERING,
    PATH_BAD,
};
WORDS_DECLARE(path_state, enum path_state);

/* All zero but for 'state': see path_health_init(). */
struct path_health {
    enum path_state state;
    uint64_t since;      /* when it got into this state. */
    uint64_t bad_since;  /* when it last became bad; 0: never. */
    uint64_t hold_down;  /* for so long it is not good after that. */
    uint64_t quiet_from; /* when the hold-down was last made shorter. */
    uint8_t n_lost;      /* in a row, */
    uint8_t n_good;      /* likewise. */
    uint8_t n_large_lost;
    uint16_t lost; /* of the last 16 probes, a bit each. */
};

void path_health_init(struct path_health *, uint64_t now);
/* A probe came back in time, or did not. */
void path_health_came_back(struct path_health *, bool large, uint64_t now);
void path_health_lost(struct path_health *, bool large, uint64_t now);
/* Likewise a short packet that is one of many in close order: it counts among the last 16, and not in a row. */
void path_health_surveyed(struct path_health *, bool came_back, uint64_t now);
/* Is the way bad only because of long packets?  Short ones come back. */
bool path_health_loses_long(const struct path_health *);
/* By how much the interval between probes is stretched: 1 unless the way is bad. */
unsigned path_health_backoff(const struct path_health *);

#endif /* lib/path-health.h */
