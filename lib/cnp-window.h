/* SPDX-License-Identifier: Apache-2.0
 *
 * CNPs of a group's branches at one node, merged (draft-li section 5.3.3): CCount of each branch in
 * a window of time T.  At its end one CNP goes up if any came, and all counts are zero again.
 *
 * A window begins with the first CNP after silence, so that an idle group has no timer.  It is longer
 * than T if a CNP has gone up less than N ago: none goes up earlier than N after another.  The branch
 * with the highest count, of several the one with the lowest id, is the congested one: that is in no
 * byte of the CNP, but in what is shown.  Counts saturate.  Pure; time in microseconds.
 */
#ifndef LIB_CNP_WINDOW_H
#define LIB_CNP_WINDOW_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/drop.h"

#define CNP_WINDOW_USEC 1000 /* T, unless the group says otherwise. */

struct cnp_branch_stats {
    uint64_t n;         /* CNPs that counted. */
    uint64_t n_limited; /* CNPs that did not: more than one in an interval. */
    uint64_t n_own;     /* of both: it sent them itself.  The others were made for it here. */
    uint64_t n_chosen;  /* windows in which it was the congested one. */
    uint32_t max;       /* most in one window. */
    uint32_t count;     /* CCount: in this window. */
};

struct cnp_window;

struct cnp_window *cnp_window_create(void);
void cnp_window_destroy(struct cnp_window *);
/* T, N, and the branches that there are, by id in any order; those that stay keep their counts. */
void cnp_window_configure(struct cnp_window *, uint32_t window_usec, uint32_t gap_usec,
                          const uint32_t *ids, size_t n);
/* A CNP of this branch, which it sent itself ('own') or which is made for it here.  At most one in
 * 'interval_usec' counts (0: all do).  DROP_cnp: it counts; DROP_cnp_soon: it does not;
 * DROP_unknown_branch. */
enum drop_reason
cnp_window_note(struct cnp_window *, uint32_t id, bool own, uint32_t interval_usec, uint64_t now);
/* When cnp_window_timer() wants to be called; UINT64_MAX: never. */
uint64_t cnp_window_deadline(const struct cnp_window *);
/* True: the window is over, and one CNP goes up, on account of branch *id. */
bool cnp_window_timer(struct cnp_window *, uint64_t now, uint32_t *id);
/* CNPs that went up, and the branch that was chosen last, 0: none was. */
uint64_t cnp_window_n_sent(const struct cnp_window *, uint32_t *last);
bool cnp_window_get(const struct cnp_window *, uint32_t id, struct cnp_branch_stats *);

#endif /* lib/cnp-window.h */
