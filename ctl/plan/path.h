/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths between two hosts, and the programs for them.
 *
 * A path is made of switches, each the neighbour of the one before.  It begins at the source host's
 * node, which places its packets, and ends at the destination's.  In the list are all shortest paths, and
 * as many that have no node (but the ends) and no link in common as there are, be they longer.
 * Ranks: first such a set of disjoint ones, with the fewest hops in all; then the others, those that
 * have less in common with those before them first; then by the nodes' ids.
 */
#ifndef CTL_PLAN_PATH_H
#define CTL_PLAN_PATH_H 1

#include "ctl/plan/search.h"

/* Name of the path from a host's switch straight to the other's source agent. */
#define PLAN_PATH_DIRECT "direct"

struct plan_path {
    size_t n_nodes;
    const struct plan_node **nodes; /* switches, in order; without a node that the source host's
                                     * packets come to first. */
    size_t n_arcs;
    struct plan_arc *arcs; /* links, from the source host's node to the destination's. */
    /* Their names, joined by commas; of parallel links "leaf1:eth3": the port that the path leaves
     * leaf1 by.  If that is where the source host is, it is the first one.  Of a path that cannot be
     * named so: "unnamed-" and a hash. */
    char name[PATH_NAME_SIZE];
    char plane[NAME_SIZE];
    char uplink[IFNAMSIZ]; /* port of the source host's node. */
    bool disjoint;         /* from all that are before it. */
    bool excluded;         /* by an operator: a node or link of it, or itself. */
    char *problem;         /* why there is no program for it, malloc'd; NULL: there is one. */
    struct program program;
};

/* Fills *paths (malloc'd, by rank) and *n with the paths from one host to another; at most PATHS_MAX,
 * the first ones.  NULL, or a malloc'd sentence why there are none. */
char *plan_paths(const struct plan_topology *, const char *from, const char *to,
                 struct plan_path **paths, size_t *n);
void plan_paths_free(struct plan_path *, size_t n);

/* What the topology has of ways to one node, which are the paths to all of its hosts. */
struct plan_node_paths {
    size_t n;
    struct plan_path *paths; /* 'excluded' does not know of rules. */
};

/* Fills in the destinations of a node's configuration, whose ports are there: paths to all hosts of
 * other nodes, if one of its own has a policy.  *found, malloc'd, has the paths to each node, by its
 * index in the topology; NULL: there are no destinations.  Returns NULL, or a malloc'd sentence about
 * the first destination that is left out. */
char *plan_destinations(const struct plan_topology *, const struct plan_node *,
                        struct node_config *out, struct plan_node_paths **found);
void plan_node_paths_free(const struct plan_topology *, struct plan_node_paths *found);

#endif /* ctl/plan/path.h */
