/* SPDX-License-Identifier: Apache-2.0
 *
 * What path.c and destination.c share.
 */
#ifndef CTL_PLAN_PATH_IMPL_H
#define CTL_PLAN_PATH_IMPL_H 1

#include "ctl/plan/path.h"
#include "ctl/plan/search.h"

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

uint64_t plan_hash_text(uint64_t hash, const char *);

#endif /* ctl/plan/path-impl.h */
