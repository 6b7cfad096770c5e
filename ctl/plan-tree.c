/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, groups: trees of replication and aggregation.
 *
 * Replication: the shortest ways from the source agent's first switch to the
 * edges of all receivers, one tree because the way from a switch back to the
 * first is the same whichever edge asks for it.  A node sends one copy to each
 * of its children: to the child's Replication-SID if that has children itself
 * (it may have receivers too), to its End.MT SID if it is only an edge.
 *
 * Aggregation: a node that aggregates merges its receivers and those nodes
 * below it between which and itself no other node aggregates; the first switch
 * is the root, which answers the source.  Nodes that do not aggregate only
 * replicate, and none of them can be an edge; if the first switch is one of
 * them, the source agent is the root.  A node gives the one below it its liveness
 * time once more than that gives the next one: responses stop at all nodes above
 * a silent receiver at about the same time, and the one that it is behind is to
 * find it.
 */
#include <config.h>

#include "ctl/plan.h"

#include <stdlib.h>

#include "lib/srh.h"
#include "util.h"

char *
plan_check_source(const struct plan_topology *t, const struct plan_group *g)
{
    const struct plan_node *agent;

    if (!plan_find_host(t, g->source_host)) {
        return xasprintf("source %s: no such host", g->source_host);
    }
    agent = plan_attachment(t, g->source_host);
    if (!agent) {
        return xasprintf("source %s: no path, the host has no link", g->source_host);
    }
    if (!agent->agent) {
        return xasprintf("source %s is behind switch %s: a source must be behind a source agent",
                         g->source_host, agent->name);
    }
    if (!plan_agent_switch(t, agent)) {
        return xasprintf("source %s: no path, source agent %s has no link to a switch",
                         g->source_host, agent->name);
    }
    return NULL;
}

char *
plan_check_member(const struct plan_topology *t, const struct plan_group *g, const char *host)
{
    const struct plan_node *root = plan_agent_switch(t, plan_attachment(t, g->source_host));
    const struct plan_node *edge;

    if (!plan_find_host(t, host)) {
        return xasprintf("member %s: no such host", host);
    }
    edge = plan_attachment(t, host);
    if (!edge) {
        return xasprintf("member %s: no path, the host has no link", host);
    }
    if (edge->agent) {
        return xasprintf("member %s is behind source agent %s: a receiver must be behind a switch",
                         host, edge->name);
    }
    if (edge->no_aggregation) {
        return xasprintf("member %s: its edge %s does not aggregate", host, edge->name);
    }
    if (plan_hops(t, root, edge) == PLAN_NO_WAY) {
        return xasprintf("member %s: no path from %s to %s", host, root->name, edge->name);
    }
    return NULL;
}

static int
compare_branches(const void *a_, const void *b_)
{
    const struct branch_config *a = a_, *b = b_;
    int cmp = memcmp(&a->edge, &b->edge, sizeof a->edge);

    return cmp ? cmp : a->id < b->id ? -1 : a->id > b->id;
}

/* Adds the receivers behind 'edge' that are provisioned to branches[*np]; NULL: those of all edges
 * that copies are made for. */
static void
add_receivers(const struct plan_topology *t, const struct plan_group *g,
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
    }
    qsort(branches, *np, sizeof *branches, compare_branches);
}

/* What the source agent's TLVs name, by edge. */
static struct branch_config *
copies_of(const struct plan_topology *t, const struct plan_group *g, size_t *np)
{
    struct branch_config *copies = xcalloc(g->n_members + 1, sizeof *copies);

    add_receivers(t, g, NULL, copies, np);
    return copies;
}

char *
plan_check_size(const struct plan_topology *t, const struct plan_group *g)
{
    size_t n = 0;
    struct branch_config *branches = copies_of(t, g, &n);
    struct srh_copy *copies = xcalloc(n + 1, sizeof *copies);
    size_t len, total;

    for (size_t i = 0; i < n; i++) {
        copies[i] = (struct srh_copy){branches[i].edge, branches[i].address, branches[i].qpn};
    }
    len = srh_len(copies, n);
    total = g->mtu + ROCE_OVERHEAD + IP6_HDR_LEN + len;
    free(copies);
    free(branches);
    if (len > SRH_MAX_LEN) {
        return xasprintf("%" PRIuSIZE " members need an SRH of %" PRIuSIZE
                         " bytes, and %d is the most",
                         n, len, SRH_MAX_LEN);
    }
    if (total > t->fabric_mtu) {
        return xasprintf("path MTU %" PRIu32 " with %" PRIuSIZE
                         " members makes packets of %" PRIuSIZE " bytes (%" PRIu32
                         " + %d RoCE + %d IPv6 + %" PRIuSIZE " SRH), and the fabric MTU is %u",
                         g->mtu, n, total, g->mtu, ROCE_OVERHEAD, (int) IP6_HDR_LEN, len,
                         t->fabric_mtu);
    }
    return NULL;
}

/*
 * The shape of a tree.
 */

struct shape {
    const struct plan_topology *t;
    const struct plan_node *agent;
    const struct plan_node *first;   /* switch. */
    const struct plan_node **parent; /* by index in t->nodes; NULL: not in the tree. */
};

static void
shape_init(struct shape *s, const struct plan_topology *t, const struct plan_group *g)
{
    s->t = t;
    s->agent = plan_attachment(t, g->source_host);
    s->first = plan_agent_switch(t, s->agent);
    ovs_assert(s->agent && s->first); /* plan_check_source() was content. */
    s->parent = xcalloc(t->n_nodes, sizeof *s->parent);
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->members[i].provision) {
            const struct plan_node *node = plan_attachment(t, g->members[i].host);

            while (node != s->agent && !s->parent[node - t->nodes]) {
                const struct plan_node *parent =
                    node == s->first ? s->agent : plan_next_node(t, node, s->first);

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

/* Who merges the responses of 'node', which aggregates: the nearest node above it that does so too,
 * NULL at the root. */
static const struct plan_node *
shape_aggregator(const struct shape *s, const struct plan_node *node)
{
    if (node == s->agent || (node == s->first && !node->no_aggregation)) {
        return NULL;
    }
    do {
        node = shape_parent(s, node);
    } while (!node->agent && node->no_aggregation);
    return node;
}

/*
 * Trees.
 */

static struct in6_addr
replication_sid(const struct plan_group *g, const struct plan_node *node)
{
    return node_sid(node->id, (uint16_t) (SID_FUNC_REPLICATION + g->replication_id));
}

/* By which packets of the group reach 'node'. */
static struct in6_addr
arrival_sid(const struct shape *s, const struct plan_group *g, const struct plan_node *node)
{
    return shape_is_leaf(s, node) ? node_sid(node->id, SID_FUNC_END_MT) : replication_sid(g, node);
}

static struct tree_config *
add_tree(struct plan *plan, const struct plan_topology *t, const struct plan_group *g,
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
    c->outer_da = xcalloc(t->n_nodes, sizeof *c->outer_da);
    c->branches = xcalloc(t->n_nodes + g->n_members, sizeof *c->branches);
    return c;
}

/* 'node' merges the responses of the nodes whose aggregator it is. */
static void
plan_aggregation(const struct shape *s, const struct plan_node *node, struct tree_config *c)
{
    const struct plan_node *aggregator = shape_aggregator(s, node);

    c->root = !aggregator;
    if (aggregator) {
        c->parent_sid = node_sid(aggregator->id, SID_FUNC_RESPONSE);
    }
    for (size_t i = 0; i < s->t->n_nodes; i++) {
        const struct plan_node *below = &s->t->nodes[i];

        if (s->parent[i] && !below->no_aggregation && shape_aggregator(s, below) == node) {
            struct branch_config *b = &c->branches[c->n_branches++];

            b->id = BRANCH_ID_NODE(below->id);
            b->kind = BRANCH_NODE;
            ovs_strlcpy(b->name, below->name, sizeof b->name);
            b->address = node_address(below->id);
        }
    }
}

static void
plan_switch(const struct shape *s, const struct plan_group *g, const struct plan_node *node,
            struct plan *out)
{
    struct tree_config *c = add_tree(out, s->t, g, node);

    for (size_t i = 0; i < s->t->n_nodes; i++) {
        if (s->parent[i] == node) {
            c->outer_da[c->n_outer_da++] = arrival_sid(s, g, &s->t->nodes[i]);
        }
    }
    if (c->n_outer_da) {
        c->replication_sid = replication_sid(g, node);
    }
    if (!node->no_aggregation) {
        plan_aggregation(s, node, c);
        add_receivers(s->t, g, node, c->branches, &c->n_branches);
    }
}

static void
plan_agent(const struct shape *s, const struct plan_group *g, struct plan *out)
{
    struct tree_config *c = add_tree(out, s->t, g, s->agent);

    c->open = g->open;
    c->outer_da[c->n_outer_da++] = arrival_sid(s, g, s->first);
    c->copies = copies_of(s->t, g, &c->n_copies);
    if (s->first->no_aggregation) {
        plan_aggregation(s, s->agent, c);
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

char *
plan_group(const struct plan_topology *t, const struct plan_group *g, struct plan *out)
{
    struct shape shape;
    char *error;

    memset(out, 0, sizeof *out);
    error = plan_check_source(t, g);
    for (size_t i = 0; !error && i < g->n_members; i++) {
        if (g->members[i].provision || g->members[i].copy) {
            error = plan_check_member(t, g, g->members[i].host);
        }
    }
    if (error) {
        return error;
    }

    shape_init(&shape, t, g);
    out->region_len = plan_region_len(g);
    out->trees = xcalloc(t->n_nodes + 1, sizeof *out->trees);
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (shape.parent[i]) {
            plan_switch(&shape, g, &t->nodes[i], out);
        }
    }
    if (g->agent) {
        plan_agent(&shape, g, out);
    }
    free(shape.parent);
    plan_set_policy(g, out);
    return NULL;
}

/* The height of a node in the tree of aggregation, from those of its children; 0: it merges nothing. */
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

void
plan_set_policy(const struct plan_group *g, struct plan *plan)
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
    for (size_t i = 0; i < plan->n_trees; i++) {
        struct tree_config *c = &plan->trees[i].config;

        c->prune = g->prune;
        c->liveness_msec = (uint32_t) MIN((uint64_t) g->liveness_msec * heights[i], UINT32_MAX);
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
