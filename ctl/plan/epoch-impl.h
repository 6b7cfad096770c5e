/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner's files about epochs under way share.
 */
#ifndef CTL_PLAN_EPOCH_IMPL_H
#define CTL_PLAN_EPOCH_IMPL_H 1

#include "ctl/plan/plan.h"

/* The uSIDs of a container, in the order in which they come. */
#define EPOCH_USIDS 6

static inline uint16_t
epoch_usid(const struct in6_addr *container, size_t i)
{
    return (uint16_t) (container->s6_addr[4 + 2 * i] << 8 | container->s6_addr[5 + 2 * i]);
}

/* The part of the node with this id, or NULL. */
const struct plan_tree *epoch_tree(const struct plan *, uint16_t id);
const struct branch_config *
epoch_branch(const struct branch_config *branches, size_t n, uint32_t id);
/* The name of the node with this id, which the plan may have no tree of. */
char *epoch_node_name(const struct plan *, uint16_t id);

/* Do both go over the same nodes?  It makes no difference to which function of the last one. */
bool epoch_same_program(const struct in6_addr *, const struct in6_addr *);

#endif /* ctl/plan/epoch-impl.h */
