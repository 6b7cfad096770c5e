/* SPDX-License-Identifier: Apache-2.0
 *
 * What path.c and destination.c share.
 */
#ifndef CTL_PLAN_PATH_IMPL_H
#define CTL_PLAN_PATH_IMPL_H 1

#include "ctl/plan/path.h"
#include "lib/usid.h"

/* Fills *paths (malloc'd, by rank) with those between hosts of two different nodes, and returns how
 * many.  'excluded' does not know of rules. */
size_t plan_paths_between(const struct plan_graph *, const struct plan_node *from,
                          const struct plan_node *to, struct plan_path **paths);

/* Is the rule for packets of a host behind this node? */
bool plan_path_rule_is_for(const struct plan_topology *, const struct plan_path_rule *,
                           const struct plan_node *from, const struct plan_host *to);

/* By a rule, too? */
bool plan_path_is_excluded(const struct plan_topology *, const struct plan_node *from,
                           const struct plan_host *to, const struct plan_path *);

/* For a node of role NODE_SWITCH each container but the last may end there: others do not know what
 * to do with an SRH.  Packs steps to a program; nodes[i] takes steps[i] out.  False: it would have too
 * many containers, or *culprit is such another node. */
bool plan_pack(const struct usid_step *, const struct plan_node *const nodes[], size_t n,
               struct program *, const struct plan_node **culprit);
/* What takes a packet on at a node: by its port with this number, or, of 0, to whichever node is
 * next. */
struct usid_step plan_step(const struct plan_node *, uint16_t port);
/* Do a source agent's neighbours take this program from it? */
bool plan_may_use(const struct plan_node *, const struct program *);
/* The label that all nodes have which have one, "" if there is none. */
void plan_set_plane(char plane[NAME_SIZE], const struct plan_node *const nodes[], size_t n);

uint64_t plan_hash_text(uint64_t hash, const char *);

#endif /* ctl/plan/path-impl.h */
