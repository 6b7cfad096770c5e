/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, groups: trees of replication and aggregation.
 *
 * Replication: the shortest ways from the source agent's first switch to the edges of all
 * receivers.  They make one tree, because the way from a switch back to the first is the same
 * whichever edge asks for it.  A node sends one copy to each of its children.  The copy goes to
 * the child's Replication-SID if that has children itself (it may have receivers too), and to
 * its End.MT SID if it is only an edge.
 *
 * Aggregation: a node that aggregates merges its receivers and the nearest aggregating nodes
 * below it.  The first switch is the root, which answers the source.  Nodes that do not
 * aggregate only replicate, and none of them can be an edge.  If the first switch is one of
 * them, the source agent is the root.  A node waits at least one liveness time longer than each
 * node that it merges.  The reason is that responses stop at all nodes above a silent receiver
 * at about the same time, and the nearest one is to find it.
 *
 * That is mode replicate.  The others:
 *
 * mcast: the same ways down, on which packets keep one multicast destination.
 * Switches on the way forward it as any multicast router would, and must not look
 * behind an IPv6 header that is not addressed to them (RFC 8754 section 4.2).  So
 * they do not merge, but edges do, and the source agent merges what edges say.
 *
 * ingress: a packet to each edge, by the fabric's routes.  Other switches have no
 * part in the group; edges and source agent merge as with mcast.
 *
 * Plain routers are in no tree: with replicate the node above sends a copy to each
 * node behind them, by their routes, and mcast cannot go through them.
 *
 * A receiver may be behind a source agent: that is an edge then, and never more than that.  It is
 * reached from the neighbour that is nearest to the root, of several the one with the lowest id.
 *
 * A group with 'via' has its root at the end of that path.  Packets come there with the uSIDs of the
 * nodes before it in front of the root's SID, and responses go back by the same way; the tree below
 * is as above.  In a group with 'via' or 'plane' nobody has a part who is excluded, or whose link is,
 * or who is in another plane; a group with neither does not ask.
 *
 * A group with 'planes' has several trees (planes.c).
 */
#include <config.h>

#include "ctl/plan/tree-impl.h"

#include <stdlib.h>

#include "ctl/plan/planes.h"
#include "util.h"

/*
 * Receivers.
 */

int
plan_compare_branches(const void *a_, const void *b_)
{
    const struct branch_config *a = a_, *b = b_;
    int cmp = memcmp(&a->edge, &b->edge, sizeof a->edge);

    return cmp ? cmp : a->id < b->id ? -1 : a->id > b->id;
}

void
tree_add_receivers(const struct plan_topology *t, const struct plan_group *g,
                   const struct plan_node *edge, struct branch_config *branches, size_t *np)
{
    for (size_t i = 0; i < g->n_members; i++) {
        const struct plan_member *m = &g->members[i];
        const struct plan_host *host;
        struct branch_config *b;

        if (!(edge ? m->provision : m->copy)) {
            continue;
        }
        host = plan_find_host(t, m->host);
        if (edge && host->node != edge) {
            continue;
        }
        b = &branches[(*np)++];
        b->id = m->branch;
        b->kind = BRANCH_RECEIVER;
        ovs_strlcpy(b->name, m->host, sizeof b->name);
        b->address = host->address;
        b->edge = node_address(host->node->id);
        b->qpn = m->qpn;
        b->rkey = m->rkey;
        b->va = m->va;
        b->len = m->len;
        b->psn = m->psn;
        b->join = m->ask ? BRANCH_ASKED : BRANCH_COUNTS;
        b->designated_qpn = m->designated_qpn;
        b->late = edge && !m->ask && !psn_eq(m->psn, g->start_psn);
        b->first = g->start_psn;
    }
    qsort(branches, *np, sizeof *branches, plan_compare_branches);
}

struct branch_config *
tree_copies(const struct plan_topology *t, const struct plan_group *g, size_t *np)
{
    struct branch_config *copies = xcalloc(g->n_members + 1, sizeof *copies);

    tree_add_receivers(t, g, NULL, copies, np);
    return copies;
}

/*
 * The shape of a tree.
 */

struct shape {
    const struct plan_topology *t;
    const struct plan_node *agent;
    struct via via;
    struct via_ways ways;
    const struct plan_node *first;   /* the root, or the first switch if the agent is the root. */
    const struct plan_node **parent; /* by index in t->nodes; NULL: not in the tree. */
    bool *merges;                    /* by index in t->nodes: does it aggregate? */
};

/* The next node towards the first switch that has a part in trees. */
static const struct plan_node *
node_above(const struct shape *s, const struct plan_node *node)
{
    do {
        node = via_ways_next(&s->ways, node);
    } while (!node_role_replicates(node->role)); /* the first switch does. */
    return node;
}

static void
shape_uninit(struct shape *s)
{
    via_ways_uninit(&s->ways);
    free(s->parent);
    free(s->merges);
}

static void
shape_init(struct shape *s, const struct plan_topology *t, const struct plan_group *g)
{
    char *error = via_read(t, g, &s->via);

    s->t = t;
    s->agent = plan_attachment(t, g->source_host);
    s->first = via_root(t, g, &s->via);
    ovs_assert(!error && s->agent && s->first); /* plan_check_source() was content. */
    via_ways_init(&s->ways, t, g, s->first);
    s->parent = xcalloc(t->n_nodes, sizeof *s->parent);
    s->merges = xcalloc(t->n_nodes, sizeof *s->merges);
    for (size_t i = 0; i < t->n_nodes; i++) {
        s->merges[i] = tree_mode(g->mode)->switches_merge && !t->nodes[i].no_aggregation;
    }
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->members[i].provision) {
            const struct plan_node *node = plan_attachment(t, g->members[i].host);

            s->merges[node - t->nodes] = true;
            while (node != s->agent && !s->parent[node - t->nodes]) {
                const struct plan_node *parent =
                    node == s->first || tree_mode(g->mode)->packet_per_edge ? s->agent
                                                                            : node_above(s, node);

                s->parent[node - t->nodes] = parent;
                node = parent;
            }
        }
    }
}

/* NULL: not in the tree. */
static const struct plan_node *
shape_parent(const struct shape *s, const struct plan_node *node)
{
    return s->parent[node - s->t->nodes];
}

static bool
shape_is_leaf(const struct shape *s, const struct plan_node *node)
{
    for (size_t i = 0; i < s->t->n_nodes; i++) {
        if (s->parent[i] == node) {
            return false;
        }
    }
    return true;
}

static bool
shape_merges(const struct shape *s, const struct plan_node *node)
{
    return s->merges[node - s->t->nodes];
}

/* Is the source agent the root, because no switch can be? */
static bool
shape_agent_is_root(const struct shape *s, const struct plan_group *g)
{
    return tree_mode(g->mode)->agent_is_root || s->first->no_aggregation;
}

/* The node that merges the responses of 'node', which aggregates: the nearest node above it that
 * does so too.  Where switches do not merge it is the source agent: with mcast even a bud only has
 * an edge's part in that.  NULL at the root. */
static const struct plan_node *
shape_aggregator(const struct shape *s, const struct plan_group *g, const struct plan_node *node)
{
    if (node == s->agent || (node == s->first && !shape_agent_is_root(s, g))) {
        return NULL;
    }
    if (!tree_mode(g->mode)->switches_merge) {
        return s->agent;
    }
    do {
        node = shape_parent(s, node);
    } while (!plan_is_agent(node) && !shape_merges(s, node));
    return node;
}

/*
 * Trees.
 */

static struct in6_addr
replication_sid(const struct plan_group *g, const struct plan_node *node)
{
    return node_replication_sid(node->id, g->replication_id);
}

/* The SID by which packets of the group reach 'node'. */
static struct in6_addr
arrival_sid(const struct shape *s, const struct plan_group *g, const struct plan_node *node)
{
    return shape_is_leaf(s, node) ? node_sid(node->id, SID_FUNC_END_MT) : replication_sid(g, node);
}

struct tree_config *
tree_add(struct plan *plan, const struct plan_topology *t, const struct plan_group *g,
         const struct plan_node *node)
{
    struct plan_tree *tree = &plan->trees[plan->n_trees++];
    struct tree_config *c = &tree->config;

    tree->node = node;
    ovs_strlcpy(c->group, g->name, sizeof c->group);
    c->epoch = g->epoch;
    c->proxy = g->proxy;
    c->designated_qpn = g->designated_qpn;
    c->start_psn = g->start_psn;
    c->mtu = g->mtu;
    c->designated_rkey = g->designated_rkey;
    c->region_len = plan->region_len;
    c->source = plan_find_host(t, g->source_host)->address;
    c->source_qpn = g->source_qpn;
    c->mode = g->mode;
    c->provisioned = g->provisioned;
    c->outer_source = node_address(plan_attachment(t, g->source_host)->id);
    c->outer_da = xcalloc(t->n_nodes, sizeof *c->outer_da);
    c->branches = xcalloc(t->n_nodes + g->n_members, sizeof *c->branches);
    return c;
}

/* 'node' merges the responses of the nodes whose aggregator it is. */
static void
plan_aggregation(const struct shape *s, const struct plan_group *g, const struct plan_node *node,
                 struct tree_config *c)
{
    const struct plan_node *aggregator = shape_aggregator(s, g, node);

    c->root = !aggregator;
    if (aggregator) {
        c->parent_sid = node_sid(aggregator->id, SID_FUNC_RESPONSE);
    }
    for (size_t i = 0; i < s->t->n_nodes; i++) {
        const struct plan_node *below = &s->t->nodes[i];

        if (s->parent[i] && shape_merges(s, below) && shape_aggregator(s, g, below) == node) {
            struct branch_config *b = &c->branches[c->n_branches++];

            b->id = BRANCH_ID_NODE(below->id);
            b->kind = BRANCH_NODE;
            ovs_strlcpy(b->name, below->name, sizeof b->name);
            b->address = node_address(below->id);
        }
    }
}

/* Adds what a copy for 'child' is addressed to, or goes by. */
static void
add_child(const struct shape *s, const struct plan_group *g, const struct plan_node *child,
          struct tree_config *c)
{
    c->outer_da[c->n_outer_da++] =
        tree_mode(g->mode)->addressed_to_group ? node_address(child->id) : arrival_sid(s, g, child);
}

/* Adds to whom 'node' sends copies. */
static void
plan_replication(const struct shape *s, const struct plan_group *g, const struct plan_node *node,
                 struct tree_config *c)
{
    for (size_t i = 0; i < s->t->n_nodes; i++) {
        if (s->parent[i] == node) {
            add_child(s, g, &s->t->nodes[i], c);
        }
    }
    if (tree_mode(g->mode)->addressed_to_group) {
        c->mcast_group = mcast_group_address(g->replication_id);
    }
}

struct usid_step
tree_usid(const struct plan_node *node)
{
    return (struct usid_step){node_locator(node->id), SID_BLOCK_PLEN, NODE_LOCATOR_PLEN};
}

bool
tree_put_in_front(struct usid_step *steps, size_t n, const struct in6_addr *sid,
                  struct in6_addr *out)
{
    *out = in6addr_any;
    steps[n] = (struct usid_step){*sid, SID_BLOCK_PLEN, 64};
    return !n || usid_pack(steps, n + 1, out, 1) == 1;
}

/* If the group has a path, responses take the same way back: over the nodes between 'node' and the
 * one that merges what it says. */
static char *
plan_parent_program(const struct shape *s, const struct plan_group *g, const struct plan_node *node,
                    struct tree_config *c)
{
    const struct plan_node *aggregator = shape_aggregator(s, g, node);
    struct usid_step *steps = xcalloc(s->t->n_nodes + VIA_MAX + 1, sizeof *steps);
    size_t n = 0;
    bool fits = true;

    if (aggregator && s->via.n) {
        const struct plan_node *at = node;

        while (at != s->first && (at = via_ways_next(&s->ways, at)) != aggregator) {
            steps[n++] = tree_usid(at);
        }
        if (aggregator == s->agent) {
            for (size_t i = s->via.n - 1; i-- > 0;) {
                steps[n++] = tree_usid(s->via.nodes[i]);
            }
        }
        fits = tree_put_in_front(steps, n, &c->parent_sid, &c->parent_program);
    }
    free(steps);
    return fits ? NULL
                : xasprintf("%s answers to %s over %" PRIuSIZE " nodes, and %d are the most",
                            node->name, aggregator->name, n, VIA_MAX);
}

/* The path to the root. */
static void
plan_outer_program(const struct shape *s, struct tree_config *c)
{
    struct usid_step steps[VIA_MAX + 1];

    for (size_t i = 0; i + 1 < s->via.n; i++) {
        steps[i] = tree_usid(s->via.nodes[i]);
    }
    if (s->via.n) {
        tree_put_in_front(steps, s->via.n - 1, &c->outer_da[0], &c->outer_program);
    }
}

static char *
plan_switch(const struct shape *s, const struct plan_group *g, const struct plan_node *node,
            struct plan *out)
{
    struct tree_config *c = tree_add(out, s->t, g, node);

    plan_replication(s, g, node, c);
    if (tree_mode(g->mode)->addressed_to_group) {
        c->upstream = node_address(shape_parent(s, node)->id);
    } else if (c->n_outer_da) {
        c->replication_sid = replication_sid(g, node);
    }
    if (shape_merges(s, node)) {
        plan_aggregation(s, g, node, c);
        tree_add_receivers(s->t, g, node, c->branches, &c->n_branches);
        return plan_parent_program(s, g, node, c);
    }
    return NULL;
}

static void
plan_agent(const struct shape *s, const struct plan_group *g, struct plan *out)
{
    struct tree_config *c = tree_add(out, s->t, g, s->agent);

    c->open = g->open;
    plan_replication(s, g, s->agent, c);
    if (!c->n_outer_da && !tree_mode(g->mode)->packet_per_edge) {
        add_child(s, g, s->first, c); /* before there is anybody behind it. */
    }
    plan_outer_program(s, c);
    c->copies = tree_copies(s->t, g, &c->n_copies);
    if (shape_agent_is_root(s, g)) {
        plan_aggregation(s, g, s->agent, c);
    }
}

uint64_t
plan_region_len(const struct plan_group *g)
{
    uint64_t len = UINT64_MAX;

    for (size_t i = 0; i < g->n_members; i++) {
        if (g->members[i].provision) {
            len = MIN(len, g->members[i].len);
        }
    }
    return len == UINT64_MAX ? 0 : len;
}

/* Can all who are to have a part?  In a group with planes the tree is what is looked for. */
static char *
check(const struct plan_topology *t, const struct plan_group *g)
{
    char *error = plan_check_source(t, g);

    for (size_t i = 0; !error && i < g->n_members; i++) {
        if (g->members[i].provision || g->members[i].copy) {
            error = g->n_planes ? tree_check_edge(t, g, g->members[i].host)
                                : plan_check_member(t, g, g->members[i].host);
        }
    }
    return error;
}

/* The trees of a group without planes. */
static char *
plan_one_tree(const struct plan_topology *t, const struct plan_group *g, struct plan *out)
{
    struct shape shape;
    char *error = NULL;

    shape_init(&shape, t, g);
    for (size_t i = 0; i < t->n_nodes && !error; i++) {
        if (shape.parent[i]) {
            error = plan_switch(&shape, g, &t->nodes[i], out);
        }
    }
    if (g->agent) {
        plan_agent(&shape, g, out);
    }
    shape_uninit(&shape);
    return error;
}

char *
plan_group(const struct plan_topology *t, const struct plan_group *g, struct plan *out)
{
    char *error = check(t, g);

    memset(out, 0, sizeof *out);
    if (error) {
        return error;
    }
    out->region_len = plan_region_len(g);
    out->trees = xcalloc(t->n_nodes + 1, sizeof *out->trees);
    error = g->n_planes ? planes_trees(t, g, out) : plan_one_tree(t, g, out);
    if (error) {
        plan_uninit(out);
        return error;
    }
    plan_set_planes(t, g, out);
    plan_set_policy(g, out);
    return NULL;
}

/* The height of a node in the tree of aggregation, from those of its children; 0: it merges
 * nothing. */
static uint32_t
height_above(const struct plan *plan, const struct tree_config *c, const uint32_t heights[])
{
    uint32_t below = 0;

    for (size_t i = 0; i < c->n_branches; i++) {
        for (size_t j = 0; j < plan->n_trees; j++) {
            if (c->branches[i].id == BRANCH_ID_NODE(plan->trees[j].node->id)) {
                below = MAX(below, heights[j]);
            }
        }
    }
    return c->n_branches ? below + 1 : 0;
}

/* The heights of all nodes in the tree of aggregation, malloc'd. */
static uint32_t *
find_heights(const struct plan *plan)
{
    uint32_t *heights = xcalloc(plan->n_trees + 1, sizeof *heights);
    bool changed = true;

    /* As many rounds as there may be levels: rows of the registry could have a circle. */
    for (size_t round = 0; changed && round < plan->n_trees; round++) {
        changed = false;
        for (size_t i = 0; i < plan->n_trees; i++) {
            uint32_t height = height_above(plan, &plan->trees[i].config, heights);

            changed |= height != heights[i];
            heights[i] = height;
        }
    }
    return heights;
}

uint32_t
plan_height(const struct plan *plan)
{
    uint32_t *heights = find_heights(plan), most = 0;

    for (size_t i = 0; i < plan->n_trees; i++) {
        most = MAX(most, heights[i]);
    }
    free(heights);
    return most;
}

void
plan_set_policy(const struct plan_group *g, struct plan *plan)
{
    uint32_t *heights = find_heights(plan);

    for (size_t i = 0; i < plan->n_trees; i++) {
        struct tree_config *c = &plan->trees[i].config;

        c->policy = g->policy;
        c->policy.liveness_msec =
            (uint32_t) MIN((uint64_t) g->policy.liveness_msec * heights[i], UINT32_MAX);
        c->policy.min_rate = heights[i] ? g->policy.min_rate / heights[i] : 0;
        c->rate_floor = plan_tree_is_source(&plan->trees[i]) ? g->rate_floor : 0;
    }
    free(heights);
}

void
plan_uninit(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        tree_config_uninit(&plan->trees[i].config);
    }
    free(plan->trees);
    memset(plan, 0, sizeof *plan);
}
