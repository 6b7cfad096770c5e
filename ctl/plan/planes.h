/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes of a group: several trees from its source agent to the same edges, of which one is used at a
 * time (docs/draft-notes.md, R24).
 *
 * A plane's tree goes over nodes that have its label or none.  Nodes between the source agent and the
 * edges only replicate; all edges answer to the source agent, over the nodes by which packets come.
 *
 * A node is told once what it copies to.  So one that is in several trees has the same nodes behind it
 * in all of them.  The plane that is planned later goes along with that:
 *
 *   - it avoids what is in the trees before it, as far as receivers can be reached otherwise;
 *   - where it cannot, it has the part of the tree that is behind that node, too;
 *   - nodes that have one node behind them and no receivers, seen from the source agent, need not copy:
 *     if two trees go apart behind such a node, the root is behind it, and it only shifts.
 *
 * A plane that cannot be is left out, and a sentence says why.
 */
#ifndef CTL_PLAN_PLANES_H
#define CTL_PLAN_PLANES_H 1

#include "ctl/plan/via.h"

/* The tree of one plane. */
struct plane_tree {
    char name[NAME_SIZE];
    size_t n_front; /* nodes before the root: packets have their uSIDs. */
    const struct plan_node *front[VIA_MAX];
    const struct plan_node *root;    /* packets are addressed to a SID of it. */
    const struct plan_node **parent; /* by index in the topology's nodes; of the first switch it is
                                      * the source agent.  NULL: not in the tree. */
};

struct planes {
    const struct plan_topology *t;
    const struct plan_node *agent;
    size_t n;
    struct plane_tree v[PLANES_MAX]; /* by name. */
    char *problem; /* why there are fewer than the group asks for; NULL: there are not. */
};

/* The node before this one in a tree; NULL: it is not in it. */
static inline const struct plan_node *
planes_parent(const struct planes *p, const struct plane_tree *tree, const struct plan_node *node)
{
    return tree->parent[node - p->t->nodes];
}

/* Finds the planes for those members that have 'provision' or 'copy', and for 'host' if it is not
 * NULL.  Supposes that source and members may be ends of trees.  NULL, or a malloc'd sentence why
 * there is none, with *out empty. */
char *planes_find(const struct plan_topology *, const struct plan_group *, const char *host,
                  struct planes *out);
void planes_uninit(struct planes *);

/* What plan_check_source() asks besides in a group with planes. */
char *planes_check_source(const struct plan_topology *, const struct plan_group *);

/* planes-tree.c: the trees of a group with planes, into *out, in which region_len is set. */
char *planes_trees(const struct plan_topology *, const struct plan_group *, struct plan *out);

/*
 * planes-epoch.c: planes of trees that are there.
 */

/* Is nothing of this plane of the source agent's gone?  NULL, or a malloc'd sentence. */
char *planes_check_carried(const struct plan_topology *, const struct plan *,
                           const struct plane_config *);

/* Have two nodes, or a node at two times, the same planes, with the same ways? */
bool
planes_same(const struct plane_config *, size_t n, const struct plane_config *, size_t n_others);
/* Do they have the same names?  NULL, or a malloc'd sentence about what 'group' would have. */
char *planes_same_names(const struct plane_config *have, size_t n_have,
                        const struct plane_config *want, size_t n_want);
/* 'want' keeps the ways of 'have'. */
void planes_keep(const struct plane_config *have, size_t n_have, struct plane_config *want,
                 size_t n_want);

#endif /* ctl/plan/planes.h */
