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
 */
#include <config.h>

#include "ctl/plan/plan.h"

#include <stdlib.h>

#include "ctl/plan/via.h"
#include "lib/auth.h"
#include "lib/ioam.h"
#include "lib/srh.h"
#include "lib/usid.h"
#include "util.h"

/*
 * Who can be served?
 */

char *
plan_check_source(const struct plan_topology *t, const struct plan_group *g)
{
    const struct plan_node *agent, *root;
    struct via via;
    char *error;

    if (!plan_find_host(t, g->source_host)) {
        return xasprintf("source %s: no such host", g->source_host);
    }
    agent = plan_attachment(t, g->source_host);
    if (!agent) {
        return xasprintf("source %s: no path, the host has no link", g->source_host);
    }
    if (!plan_is_agent(agent)) {
        return xasprintf("source %s is behind switch %s: a source must be behind a source agent",
                         g->source_host, agent->name);
    }
    error = via_read(t, g, &via);
    if (error) {
        return error;
    }
    root = via_root(t, g, &via);
    if (!root) {
        return xasprintf("source %s: no path, source agent %s has no link to a switch%s",
                         g->source_host, agent->name,
                         via_is_limited(g) ? " that the group may use" : "");
    }
    if (tree_mode(g->mode)->switches_replicate && !node_role_replicates(root->role)) {
        return via.n ? xasprintf("via: %s would be the root, a plain router: it cannot replicate",
                                 root->name)
                     : xasprintf("source %s: the first switch after source agent %s is %s, a plain "
                                 "router: it cannot replicate, which mode ingress does not need",
                                 g->source_host, agent->name, root->name);
    }
    return NULL;
}

/* Can this node be an edge of the group at all? */
static char *
check_edge(const struct plan_topology *t, const struct plan_group *g, const char *host,
           const struct plan_node *edge)
{
    if (edge == plan_attachment(t, g->source_host)) {
        return xasprintf("member %s is behind source agent %s, which sends the group's packets: it "
                         "cannot be an edge of the same group",
                         host, edge->name);
    }
    if (node_role_is_foreign(edge->role)) {
        return xasprintf("member %s is behind %s, which has role %s: a receiver must be behind a "
                         "switch",
                         host, edge->name, node_role_name(edge->role));
    }
    if (edge->no_aggregation) {
        return xasprintf("member %s: its edge %s does not aggregate", host, edge->name);
    }
    return NULL;
}

/* Can the group's packets come to this edge? */
static char *
check_way(const struct via_ways *w, const struct plan_group *g, const char *host,
          const struct plan_node *edge)
{
    if (edge != w->root && !via_ways_next(w, edge)) {
        return xasprintf("member %s: no path from %s to %s%s", host, w->root->name, edge->name,
                         via_is_limited(g) ? " that the group may use" : "");
    }
    for (const struct plan_node *node = edge; node && tree_mode(g->mode)->addressed_to_group;
         node = via_ways_next(w, node)) {
        if (node->role != NODE_SWITCH) {
            return xasprintf("member %s is reached by %s, which has role %s: mode %s is for "
                             "switches only",
                             host, node->name, node_role_name(node->role), tree_mode_name(g->mode));
        }
    }
    return NULL;
}

char *
plan_check_member(const struct plan_topology *t, const struct plan_group *g, const char *host)
{
    const struct plan_node *edge;
    struct via_ways ways;
    struct via via;
    char *error;

    if (!plan_find_host(t, host)) {
        return xasprintf("member %s: no such host", host);
    }
    edge = plan_attachment(t, host);
    if (!edge) {
        return xasprintf("member %s: no path, the host has no link", host);
    }
    error = check_edge(t, g, host, edge);
    if (!error) {
        error = via_read(t, g, &via);
    }
    if (!error) {
        via_ways_init(&ways, t, g, via_root(t, g, &via));
        error = check_way(&ways, g, host, edge);
        via_ways_uninit(&ways);
    }
    return error;
}

int
plan_compare_branches(const void *a_, const void *b_)
{
    const struct branch_config *a = a_, *b = b_;
    int cmp = memcmp(&a->edge, &b->edge, sizeof a->edge);

    return cmp ? cmp : a->id < b->id ? -1 : a->id > b->id;
}

/* Adds the provisioned receivers behind 'edge' to branches[*np].  With 'edge' NULL: the receivers
 * behind all edges that copies are made for. */
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
        b->psn = m->psn;
        b->join = m->ask ? BRANCH_ASKED : BRANCH_COUNTS;
        b->designated_qpn = m->designated_qpn;
        b->late = edge && !m->ask && !psn_eq(m->psn, g->start_psn);
        b->first = g->start_psn;
    }
    qsort(branches, *np, sizeof *branches, plan_compare_branches);
}

/* What the source agent's TLVs name, by edge. */
static struct branch_config *
copies_of(const struct plan_topology *t, const struct plan_group *g, size_t *np)
{
    struct branch_config *copies = xcalloc(g->n_members + 1, sizeof *copies);

    add_receivers(t, g, NULL, copies, np);
    return copies;
}

/* 'who' are the members that the packet is for. */
static char *
check_packet(const struct plan_topology *t, const struct plan_group *g, const char *who,
             const struct srh_copy *named, size_t n_named)
{
    size_t auth = auth_len(g->auth.tlvs);
    size_t len = srh_len(named, n_named) + auth;
    size_t trace = g->policy.trace_slots ? IOAM_HBH_LEN(g->policy.trace_slots) : 0;
    size_t total = g->mtu + ROCE_OVERHEAD + IP6_HDR_LEN + trace + len;

    if (len > SRH_MAX_LEN) {
        char *share = auth ? xasprintf(", %" PRIuSIZE " of them for authentication", auth) : NULL;
        char *error = xasprintf("%s need an SRH of %" PRIuSIZE " bytes%s, and %d is the most", who,
                                len, share ? share : "", SRH_MAX_LEN);

        free(share);
        return error;
    }
    if (total > t->fabric_mtu) {
        char *traced = trace ? xasprintf(" + %" PRIuSIZE " IOAM", trace) : xstrdup("");
        char *error =
            xasprintf("path MTU %" PRIu32 " with %s makes packets of %" PRIuSIZE " bytes (%" PRIu32
                      " + %d RoCE + %d IPv6%s + %" PRIuSIZE " SRH), and the fabric MTU is %u",
                      g->mtu, who, total, g->mtu, ROCE_OVERHEAD, (int) IP6_HDR_LEN, traced, len,
                      t->fabric_mtu);

        free(traced);
        return error;
    }
    return NULL;
}

char *
plan_check_size(const struct plan_topology *t, const struct plan_group *g)
{
    size_t n = 0, n_of_edge;
    struct branch_config *branches = copies_of(t, g, &n);
    struct srh_copy *copies = xcalloc(n + 1, sizeof *copies);
    char *error = NULL;

    for (size_t i = 0; i < n; i++) {
        copies[i] = (struct srh_copy){branches[i].edge, branches[i].address, branches[i].qpn};
    }
    for (size_t i = 0; i < n && !error; i += n_of_edge) {
        bool all = !tree_mode(g->mode)->packet_per_edge;
        char *who;

        for (n_of_edge = 1; i + n_of_edge < n; n_of_edge++) {
            if (!all && !IN6_ARE_ADDR_EQUAL(&copies[i].edge, &copies[i + n_of_edge].edge)) {
                break;
            }
        }
        who = all ? xasprintf("%" PRIuSIZE " members", n_of_edge)
                  : xasprintf("%" PRIuSIZE " members behind %s", n_of_edge,
                              plan_attachment(t, branches[i].name)->name);
        error = check_packet(t, g, who, &copies[i], g->provisioned ? 0 : n_of_edge);
        free(who);
    }
    free(copies);
    free(branches);
    return error;
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

static struct tree_config *
add_tree(struct plan *plan, const struct shape *s, const struct plan_group *g,
         const struct plan_node *node)
{
    const struct plan_topology *t = s->t;
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
    c->outer_source = node_address(s->agent->id);
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

static struct usid_step
step_of(const struct plan_node *node)
{
    return (struct usid_step){node_locator(node->id), SID_BLOCK_PLEN, NODE_LOCATOR_PLEN};
}

/* The SID behind the uSIDs of the n nodes in 'steps', which has room for one more; :: if there are
 * none.  False: that does not fit one container. */
static bool
put_in_front(struct usid_step *steps, size_t n, const struct in6_addr *sid, struct in6_addr *out)
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
            steps[n++] = step_of(at);
        }
        if (aggregator == s->agent) {
            for (size_t i = s->via.n - 1; i-- > 0;) {
                steps[n++] = step_of(s->via.nodes[i]);
            }
        }
        fits = put_in_front(steps, n, &c->parent_sid, &c->parent_program);
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
        steps[i] = step_of(s->via.nodes[i]);
    }
    if (s->via.n) {
        put_in_front(steps, s->via.n - 1, &c->outer_da[0], &c->outer_program);
    }
}

static char *
plan_switch(const struct shape *s, const struct plan_group *g, const struct plan_node *node,
            struct plan *out)
{
    struct tree_config *c = add_tree(out, s, g, node);

    plan_replication(s, g, node, c);
    if (tree_mode(g->mode)->addressed_to_group) {
        c->upstream = node_address(shape_parent(s, node)->id);
    } else if (c->n_outer_da) {
        c->replication_sid = replication_sid(g, node);
    }
    if (shape_merges(s, node)) {
        plan_aggregation(s, g, node, c);
        add_receivers(s->t, g, node, c->branches, &c->n_branches);
        return plan_parent_program(s, g, node, c);
    }
    return NULL;
}

static void
plan_agent(const struct shape *s, const struct plan_group *g, struct plan *out)
{
    struct tree_config *c = add_tree(out, s, g, s->agent);

    c->open = g->open;
    plan_replication(s, g, s->agent, c);
    if (!c->n_outer_da && !tree_mode(g->mode)->packet_per_edge) {
        add_child(s, g, s->first, c); /* before there is anybody behind it. */
    }
    plan_outer_program(s, c);
    c->copies = copies_of(s->t, g, &c->n_copies);
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
    for (size_t i = 0; i < t->n_nodes && !error; i++) {
        if (shape.parent[i]) {
            error = plan_switch(&shape, g, &t->nodes[i], out);
        }
    }
    if (g->agent) {
        plan_agent(&shape, g, out);
    }
    shape_uninit(&shape);
    if (error) {
        plan_uninit(out);
        return error;
    }
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
