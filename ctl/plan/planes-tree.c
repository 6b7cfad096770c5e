/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, planes of a group: what the nodes of their trees are told.
 *
 * Nodes in between only replicate.  All edges answer to the source agent, which merges what they say.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/planes.h"
#include "ctl/plan/tree-impl.h"
#include "util.h"

/* Is the node in one of the trees, and does it more than shift? */
static bool
has_part(const struct planes *p, const struct plane_tree *tree, const struct plan_node *node)
{
    for (size_t i = 0; i < tree->n_front; i++) {
        if (tree->front[i] == node) {
            return false;
        }
    }
    return planes_parent(p, tree, node) != NULL;
}

/* Number of the port with the lowest one of those that lead to 'to'. */
static uint16_t
port_to(const struct plan_topology *t, const struct plan_node *node, const struct plan_node *to)
{
    struct node_config ports = {.n_ports = 0};
    uint16_t number = 0;

    free(plan_ports(t, node, &ports)); /* it has a plan of its own that fails. */
    for (size_t i = 0; i < ports.n_ports && !number; i++) {
        number = strcmp(ports.ports[i].peer, to->name) ? 0 : ports.ports[i].number;
    }
    node_config_uninit(&ports);
    return number;
}

static bool
is_leaf(const struct planes *p, const struct plane_tree *tree, const struct plan_node *node)
{
    for (size_t i = 0; i < p->t->n_nodes; i++) {
        if (tree->parent[i] == node) {
            return false;
        }
    }
    return true;
}

/* Fills in the copies of 'node', which are the same in all trees that have it. */
static void
plan_copies(const struct planes *p, const struct plan_group *g, const struct plan_node *node,
            struct tree_config *c)
{
    const struct plane_tree *tree = p->v;

    while (!has_part(p, tree, node)) {
        tree++;
    }
    for (size_t i = 0; i < p->t->n_nodes; i++) {
        const struct plan_node *child = &p->t->nodes[i];

        if (tree->parent[i] == node) {
            c->outer_da[c->n_outer_da++] = is_leaf(p, tree, child)
                                               ? node_sid(child->id, SID_FUNC_END_MT)
                                               : node_replication_sid(child->id, g->replication_id);
        }
    }
    if (c->n_outer_da) {
        c->replication_sid = node_replication_sid(node->id, g->replication_id);
    }
}

/* How the edge answers in one plane: over the nodes by which packets come. */
static char *
plan_way_back(const struct planes *p, const struct plane_tree *tree, const struct plan_node *edge,
              const struct tree_config *c, struct plane_config *out)
{
    struct usid_step *steps = xcalloc(p->t->n_nodes + 1, sizeof *steps);
    const struct plan_node *first = planes_parent(p, tree, edge);
    size_t n = 0;

    for (const struct plan_node *at = first; at != p->agent; at = planes_parent(p, tree, at)) {
        steps[n++] = tree_usid(at);
    }
    /* The source agent has a locator of its own in front of the SID's function. */
    bool fits = tree_put_in_front(steps, n, &c->parent_sid, &out->program);
    ovs_strlcpy(out->name, tree->name, sizeof out->name);
    out->sid = c->parent_sid;
    out->program = n ? out->program : out->sid;
    out->port = port_to(p->t, edge, first);
    out->usable = true;
    free(steps);
    return fits ? NULL
                : xasprintf("%s answers to %s over %" PRIuSIZE " nodes in plane %s, and %d are the "
                            "most",
                            edge->name, p->agent->name, n, tree->name, VIA_MAX);
}

/* All edges answer to the source agent. */
static char *
plan_edge(const struct planes *p, const struct plan_group *g, const struct plan_node *node,
          struct tree_config *c)
{
    char *error = NULL;

    tree_add_receivers(p->t, g, node, c->branches, &c->n_branches);
    if (!c->n_branches) {
        return NULL;
    }
    c->parent_sid = node_sid(p->agent->id, SID_FUNC_RESPONSE);
    c->parent_planes = xcalloc(p->n, sizeof *c->parent_planes);
    while (c->n_parent_planes < p->n && !error) {
        error = plan_way_back(p, &p->v[c->n_parent_planes], node, c,
                              &c->parent_planes[c->n_parent_planes]);
        c->n_parent_planes++;
    }
    return error;
}

static void
plan_source(const struct planes *p, const struct plan_group *g, const struct plan *plan,
            struct tree_config *c)
{
    struct usid_step steps[VIA_MAX + 1];

    c->open = g->open;
    c->root = true;
    c->planes = xcalloc(p->n, sizeof *c->planes);
    for (size_t i = 0; i < p->n; i++) {
        const struct plane_tree *tree = &p->v[i];
        struct plane_config *plane = &c->planes[c->n_planes++];

        ovs_strlcpy(plane->name, tree->name, sizeof plane->name);
        plane->sid = is_leaf(p, tree, tree->root)
                         ? node_sid(tree->root->id, SID_FUNC_END_MT)
                         : node_replication_sid(tree->root->id, g->replication_id);
        for (size_t j = 0; j < tree->n_front; j++) {
            steps[j] = tree_usid(tree->front[j]);
        }
        tree_put_in_front(steps, tree->n_front, &plane->sid, &plane->program);
        plane->program = tree->n_front ? plane->program : plane->sid;
        plane->port = port_to(p->t, p->agent, tree->n_front ? tree->front[0] : tree->root);
        plane->usable = true;
        c->outer_da[c->n_outer_da++] = plane->sid;
    }
    c->copies = tree_copies(p->t, g, &c->n_copies);
    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *edge = &plan->trees[i];

        if (&edge->config != c && edge->config.n_branches) {
            struct branch_config *b = &c->branches[c->n_branches++];

            b->id = BRANCH_ID_NODE(edge->node->id);
            b->kind = BRANCH_NODE;
            ovs_strlcpy(b->name, edge->node->name, sizeof b->name);
            b->address = node_address(edge->node->id);
        }
    }
}

static bool
is_edge(const struct plan_topology *t, const struct plan_group *g, const struct plan_node *node)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->members[i].provision && plan_attachment(t, g->members[i].host) == node) {
            return true;
        }
    }
    return false;
}

char *
planes_trees(const struct plan_topology *t, const struct plan_group *g, struct plan *out)
{
    struct plan_group provisioned = *g;
    struct planes p;
    char *error;

    provisioned.members = xmemdup(g->members, g->n_members * sizeof *g->members);
    for (size_t i = 0; i < g->n_members; i++) {
        provisioned.members[i].copy &= g->members[i].provision;
    }
    error = planes_find(t, &provisioned, NULL, &p);
    for (size_t i = 0; i < t->n_nodes && !error; i++) {
        const struct plan_node *node = &t->nodes[i];
        bool serves = false;

        for (size_t j = 0; j < p.n; j++) {
            serves |= has_part(&p, &p.v[j], node)
                      && (!is_leaf(&p, &p.v[j], node) || is_edge(t, &provisioned, node));
        }
        if (serves) {
            struct tree_config *c = tree_add(out, t, g, node);

            plan_copies(&p, g, node, c);
            error = plan_edge(&p, g, node, c);
        }
    }
    if (!error && g->agent) {
        struct tree_config *c = tree_add(out, t, g, p.agent);

        plan_source(&p, g, out, c);
    }
    free(provisioned.members);
    planes_uninit(&p);
    return error;
}
