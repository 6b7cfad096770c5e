/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes on a bench whose group is in mode mcast or ingress.
 */
#include "tests/unit/modes-fixture.h"

#include "tests/unit/agent-fixture.h"
#include "tests/unit/transit-fixture.h"

struct fixture *
ingress_create(void)
{
    struct fixture *f = agent_create(3);
    struct tree_config *t = &f->config.trees[0];
    const struct in6_addr das[] = {
        node_sid(STAR_EDGE_ID, SID_FUNC_END_MT),
        node_sid(EDGE_2, SID_FUNC_END_MT),
    };

    t->mode = MODE_INGRESS;
    t->root = true;
    t->copies[2].edge = node_address(EDGE_2);
    fixture_set_outer_das(f, das, 2);
    fixture_add_node_branch(f, STAR_EDGE_ID);
    fixture_add_node_branch(f, EDGE_2);
    fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
    fixture_configure(f);
    return f;
}

/* Gives tree 0 the mode, and what goes with it. */
static void
set_mcast(struct fixture *f, const struct in6_addr *next, size_t n_next)
{
    struct tree_config *t = &f->config.trees[0];

    t->mode = MODE_MCAST;
    t->mcast_group = mcast_group_address(REPLICATION_ID);
    t->replication_sid = in6addr_any;
    fixture_set_outer_das(f, next, n_next);
}

struct fixture *
mcast_agent_create(unsigned n_receivers)
{
    struct fixture *f = agent_create(n_receivers);
    struct in6_addr next = node_address(STAR_EDGE_ID);

    set_mcast(f, &next, 1);
    fixture_configure(f);
    return f;
}

struct fixture *
mcast_create(unsigned n_receivers)
{
    struct fixture *f = transit_create(n_receivers);
    struct tree_config *t = &f->config.trees[0];
    const struct in6_addr next[] = {node_address(CHILD_A), node_address(CHILD_B)};

    set_mcast(f, next, 2);
    t->n_branches = n_receivers; /* without the nodes. */
    t->upstream = node_address(STAR_AGENT_ID);
    if (!n_receivers) {
        t->parent_sid = in6addr_any;
    }
    fixture_configure(f);
    return f;
}
