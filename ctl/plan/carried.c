/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, epochs under way: does a topology still carry the trees that nodes have?
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/epoch-impl.h"
#include "ctl/plan/planes.h"
#include "util.h"

static char *
check_children(const struct plan_topology *t, const struct plan *plan, const struct plan_tree *tree)
{
    for (size_t i = 0; i < tree->config.n_outer_da; i++) {
        uint16_t id = node_id_of(&tree->config.outer_da[i]);
        const struct plan_tree *child = epoch_tree(plan, id);

        if (!child) {
            char *name = epoch_node_name(plan, id);
            char *error = xasprintf("node %s, which the tree goes through, was deleted", name);

            free(name);
            return error;
        }
        bool is_neighbour = tree_mode(tree->config.mode)->addressed_to_group;
        if (is_neighbour ? !plan_linked(t, tree->node->name, child->node->name)
                         : plan_hops(t, tree->node, child->node) == PLAN_NO_WAY) {
            return xasprintf("no %s from %s to %s, which the tree goes through",
                             is_neighbour ? "link" : "path", tree->node->name, child->node->name);
        }
    }
    return NULL;
}

static const struct plan_node *
find_node(const struct plan_topology *t, uint16_t id)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (t->nodes[i].id == id) {
            return &t->nodes[i];
        }
    }
    return NULL;
}

/* A program is carried by the links between its nodes, and by no other way. */
static char *
check_program(const struct plan_topology *t, const struct plan_node *from,
              const struct in6_addr *program)
{
    for (size_t i = 0; i < EPOCH_USIDS; i++) {
        uint16_t usid = epoch_usid(program, i);
        const struct plan_node *node = find_node(t, usid);

        if (!usid || usid >= USID_FIRST_FUNCTION) {
            return NULL;
        } else if (!node) {
            return xasprintf("node with id %u, which the group's path goes through, was deleted",
                             usid);
        } else if (!plan_linked(t, from->name, node->name)) {
            return xasprintf("no link from %s to %s, which the group's path goes through",
                             from->name, node->name);
        }
        from = node;
    }
    return NULL;
}

static char *
check_receivers(const struct plan_topology *t, const struct plan_tree *tree)
{
    for (size_t i = 0; i < tree->config.n_branches; i++) {
        const struct branch_config *b = &tree->config.branches[i];
        const struct plan_host *host = plan_find_host(t, b->name);

        if (b->kind == BRANCH_RECEIVER
            && (!host || !IN6_ARE_ADDR_EQUAL(&host->address, &b->address)
                || !plan_linked(t, b->name, tree->node->name))) {
            return xasprintf("member %s is not behind %s any more", b->name, tree->node->name);
        }
    }
    return NULL;
}

/* A group with planes needs one of them. */
static char *
check_planes(const struct plan_topology *t, const struct plan *plan,
             const struct tree_config *agent)
{
    char *error = NULL;

    for (size_t i = 0; i < agent->n_planes; i++) {
        char *why = planes_check_carried(t, plan, &agent->planes[i]);

        if (!why) {
            free(error);
            return NULL;
        }
        if (error) {
            free(why);
        } else {
            error = why;
        }
    }
    return error;
}

static char *
check_ways(const struct plan_topology *t, const struct plan *plan, const struct plan_tree *tree)
{
    char *error = check_children(t, plan, tree);

    error = error ? error : check_program(t, tree->node, &tree->config.outer_program);
    return error ? error : check_program(t, tree->node, &tree->config.parent_program);
}

char *
plan_check_carried(const struct plan_topology *t, const struct plan_group *g,
                   const struct plan *plan)
{
    const struct plan_tree *agent = plan_agent_tree(plan);
    bool has_planes = agent && agent->config.n_planes;
    char *error = has_planes ? check_planes(t, plan, &agent->config) : NULL;

    for (size_t i = 0; !error && i < plan->n_trees; i++) {
        const struct plan_tree *tree = &plan->trees[i];

        error = has_planes ? NULL : check_ways(t, plan, tree);
        if (!error) {
            error = check_receivers(t, tree);
        }
        if (!error && plan_tree_is_source(tree)
            && !plan_linked(t, g->source_host, tree->node->name)) {
            error =
                xasprintf("source %s is not behind %s any more", g->source_host, tree->node->name);
        }
    }
    return error;
}
