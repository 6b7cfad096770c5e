/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways between two nodes, link by link: for path.c, which makes paths of them.
 */
#ifndef CTL_PLAN_SEARCH_H
#define CTL_PLAN_SEARCH_H 1

#include "ctl/plan/topology.h"

/* A link between nodes, in one direction. */
struct plan_arc {
    size_t tail, head; /* from and to: indexes in the topology's nodes. */
    const struct plan_link *link;
    const char *port; /* of the tail. */
    uint16_t number;  /* of the port, if several links lead to the head; else 0. */
};

/* What there is to search, of a prepared topology. */
struct plan_graph {
    const struct plan_topology *topology;
    size_t n_arcs;
    struct plan_arc *arcs; /* by tail, head and number. */
    size_t *first;         /* of each node: its first arc; one more: n_arcs. */
};

void plan_graph_init(struct plan_graph *, const struct plan_topology *);
void plan_graph_uninit(struct plan_graph *);

struct plan_way {
    size_t n;
    const struct plan_arc **arcs; /* malloc'd. */
    bool disjoint;                /* from all that are before it. */
};

/* Fills in the ways between two different nodes, in the order of struct plan_path's ranks, and
 * returns how many.  'any_last_link': of parallel links to a source agent all count, not only the
 * first. */
size_t plan_find_ways(const struct plan_graph *, size_t from, size_t to, bool any_last_link,
                      struct plan_way ways[PATHS_MAX]);
void plan_ways_uninit(struct plan_way *, size_t n);

#endif /* ctl/plan/search.h */
