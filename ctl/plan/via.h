/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways of a group: its path to the root, and from there the shortest ways that it may use.
 *
 * A group with 'via' or 'plane' goes over no node and no link that is excluded, and over no node of
 * another plane.  A group with neither takes the shortest ways of all, whether they are good for paths
 * or not.
 *
 * Between two nodes of a tree the routes decide all the same.  So behind a plain router, which is in no
 * tree, and between parallel links, planes and exclusions say nothing.
 */
#ifndef CTL_PLAN_VIA_H
#define CTL_PLAN_VIA_H 1

#include "ctl/plan/plan.h"

/* uSIDs that fit in front of a SID of a node, with the block, in one container. */
#define VIA_MAX 4

/* Nodes from the source agent's first switch to the root. */
struct via {
    size_t n; /* 0: nobody has said. */
    const struct plan_node *nodes[VIA_MAX + 1];
};

/* Does the group go only where paths may? */
bool via_is_limited(const struct plan_group *);
/* May it go over this node, over this link, from one neighbour to the other? */
bool via_may_use_node(const struct plan_group *, const struct plan_node *);
bool via_may_use_link(const struct plan_group *, const struct plan_link *);
bool via_may_pass(const struct plan_topology *, const struct plan_group *,
                  const struct plan_node *from, const struct plan_node *to);

/* Reads the group's 'via'; its source must be behind a source agent.  NULL, or a malloc'd
 * sentence. */
char *via_read(const struct plan_topology *, const struct plan_group *, struct via *);

/* The last of 'via', or of the agent's neighbours the one with the lowest id; NULL: there is none. */
const struct plan_node *
via_root(const struct plan_topology *, const struct plan_group *, const struct via *);

/* The shortest ways to the root, which are one tree. */
struct via_ways {
    const struct plan_topology *t;
    const struct plan_node *root;
    /* By index in t->nodes: towards the root, NULL: no way.  The array is NULL if the group may go
     * everywhere: then the topology has them. */
    const struct plan_node **next;
};

void via_ways_init(struct via_ways *, const struct plan_topology *, const struct plan_group *,
                   const struct plan_node *root);
void via_ways_uninit(struct via_ways *);
const struct plan_node *via_ways_next(const struct via_ways *, const struct plan_node *);

#endif /* ctl/plan/via.h */
