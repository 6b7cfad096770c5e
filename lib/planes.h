/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of several planes one end uses (docs/draft-notes.md, R24): the source agent for a group's
 * packets, an edge for its responses.
 *
 * A plane is as good as the worst of its probes.  One is always used, however bad all are, and it stays
 * as long as there is no reason to leave it:
 *
 *   - it is bad, and another one is better: what is in flight is lost;
 *   - the operator excludes something of it, or prefers another one that is good: nothing is lost if
 *     the end waits for what is in flight.
 */
#ifndef LIB_PLANES_H
#define LIB_PLANES_H 1

#include "lib/node-base.h"

struct plane_view {
    bool usable, preferred;
    enum path_state state;
};

enum plane_move { PLANE_STAYS, PLANE_PLANNED, PLANE_FAILED };

/* Should 'used' of n planes be left?  Then *to is the one to be used. */
enum plane_move plane_choose(const struct plane_view *, size_t n, size_t used, size_t *to);

/* What an end uses.  All zero at first. */
struct plane_use {
    size_t used;                  /* index of the plane. */
    uint64_t since;               /* when it was taken; 0: it is the first one. */
    uint64_t n_failed, n_planned; /* moves. */
};

/* 'now' takes the place of 'old': the plane in use keeps its name.  False: it is gone. */
bool plane_use_configure(struct plane_use *, const struct plane_config *old, size_t n_old,
                         const struct plane_config *new, size_t n);
/* As plane_choose(), by what the node's probes and ports say. */
enum plane_move plane_use_look(const struct plane_use *, const struct node_base *,
                               const struct plane_config *, size_t n, size_t *to);
void plane_use_move(struct plane_use *, size_t to, enum plane_move, uint64_t now);
/* How good the plane is. */
enum path_state plane_state(const struct node_base *, const struct plane_config *);
/* Has the plane in use a port that is down? */
bool plane_is_down(const struct node_base *, const struct plane_config *);
/* For display. */
void plane_use_info(const struct plane_use *, const struct node_base *, const struct plane_config *,
                    size_t n, struct tree_info *);
/* Data on the plane in use were lost: its probes are told (prober_doubt()). */
void plane_doubt(const struct plane_use *, const struct node_base *, const struct plane_config *,
                 size_t n, uint64_t now);
/* Is the probe one of some plane's? */
bool planes_have_probe(const struct plane_config *, size_t n, uint16_t probe);

#endif /* lib/planes.h */
