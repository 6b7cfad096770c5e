/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner's files about trees share.
 */
#ifndef CTL_PLAN_TREE_IMPL_H
#define CTL_PLAN_TREE_IMPL_H 1

#include "ctl/plan/plan.h"
#include "lib/usid.h"

/* Has the host an edge, which can be one of the group at all?  NULL, or a malloc'd sentence. */
char *tree_check_edge(const struct plan_topology *, const struct plan_group *, const char *host);

/* Adds the provisioned receivers behind 'edge' to branches[*np].  With 'edge' NULL: the receivers
 * behind all edges that copies are made for. */
void tree_add_receivers(const struct plan_topology *, const struct plan_group *,
                        const struct plan_node *edge, struct branch_config *branches, size_t *np);

/* What the source agent's TLVs name, by edge, malloc'd. */
struct branch_config *
tree_copies(const struct plan_topology *, const struct plan_group *, size_t *np);

/* Adds a node's part, of which everything is filled in that is the same at all nodes.  There is room
 * for destinations and branches. */
struct tree_config *tree_add(struct plan *, const struct plan_topology *, const struct plan_group *,
                             const struct plan_node *);

struct usid_step tree_usid(const struct plan_node *);
/* The SID behind the uSIDs of the n nodes in 'steps', which has room for one more; :: if there are
 * none.  False: that does not fit one container. */
bool tree_put_in_front(struct usid_step *steps, size_t n, const struct in6_addr *sid,
                       struct in6_addr *out);

#endif /* ctl/plan/tree-impl.h */
