/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: topology and groups in, what each node is to do out.
 *
 * Trees so far have one replicator, which is edge and root at once: the source
 * host hangs on a source agent, the agent on a switch, and all members on that
 * same switch.  Anything else is refused by name.
 */
#include <config.h>

#include "ctl/plan.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "util.h"

#define MAX_PORT      4095

/* What comes before the SRH in front of the inner packet, and the RoCE headers
 * around the largest payload: IPv6 40, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4. */
#define OUTER_IP6_LEN 40
#define ROCE_OVERHEAD 84

static int
compare_nodes(const void *a_, const void *b_)
{
    const struct plan_node *a = a_, *b = b_;

    return a->id < b->id ? -1 : a->id > b->id;
}

static int
compare_hosts(const void *a_, const void *b_)
{
    const struct plan_host *a = a_, *b = b_;

    return strcmp(a->name, b->name);
}

static int
compare_links(const void *a_, const void *b_)
{
    const struct plan_link *a = a_, *b = b_;
    int cmp = strcmp(a->a, b->a);

    return cmp ? cmp : strcmp(a->a_port, b->a_port);
}

static void
sort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    if (n) {
        qsort(array, n, size, compare);
    }
}

void
plan_topology_prepare(struct plan_topology *t)
{
    sort(t->nodes, t->n_nodes, sizeof *t->nodes, compare_nodes);
    sort(t->hosts, t->n_hosts, sizeof *t->hosts, compare_hosts);
    sort(t->links, t->n_links, sizeof *t->links, compare_links);
}

void
plan_topology_uninit(struct plan_topology *t)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        free(t->nodes[i].ports);
    }
    free(t->nodes);
    free(t->hosts);
    free(t->links);
    memset(t, 0, sizeof *t);
}

const struct plan_node *
plan_find_node(const struct plan_topology *t, const char *name)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (!strcmp(t->nodes[i].name, name)) {
            return &t->nodes[i];
        }
    }
    return NULL;
}

const struct plan_host *
plan_find_host(const struct plan_topology *t, const char *name)
{
    for (size_t i = 0; i < t->n_hosts; i++) {
        if (!strcmp(t->hosts[i].name, name)) {
            return &t->hosts[i];
        }
    }
    return NULL;
}

/* A link seen from one of its ends. */
struct end {
    const char *port;
    const char *peer;
    enum port_kind kind;
};

/* Is 'name' an end of 'link'?  Then *end is the view from there. */
static bool
link_end(const struct plan_link *link, const char *name, struct end *end)
{
    if (!strcmp(link->a, name)) {
        *end = (struct end){link->a_port, link->b, link->kind};
    } else if (!strcmp(link->b, name)) {
        *end = (struct end){link->b_port, link->a, link->kind};
    } else {
        return false;
    }
    return strcmp(link->a, link->b) != 0;
}

const struct plan_node *
plan_attachment(const struct plan_topology *t, const char *host)
{
    struct end end;

    for (size_t i = 0; i < t->n_links; i++) {
        if (link_end(&t->links[i], host, &end) && plan_find_node(t, end.peer)) {
            return plan_find_node(t, end.peer);
        }
    }
    return NULL;
}

/* The switch that serves a source agent: of its neighbours the one with the lowest id. */
static const struct plan_node *
agent_switch(const struct plan_topology *t, const struct plan_node *agent)
{
    const struct plan_node *best = NULL;
    struct end end;

    ovs_assert(agent); /* the callers have asked plan_check_source(). */
    for (size_t i = 0; i < t->n_links; i++) {
        if (link_end(&t->links[i], agent->name, &end)) {
            const struct plan_node *peer = plan_find_node(t, end.peer);

            if (peer && !peer->agent && (!best || peer->id < best->id)) {
                best = peer;
            }
        }
    }
    return best;
}

/* Is there a way between two nodes over any links? */
static bool
nodes_connected(const struct plan_topology *t, const struct plan_node *from,
                const struct plan_node *to)
{
    bool *seen = xcalloc(t->n_nodes, sizeof *seen);
    bool grew = true;
    bool found;

    seen[from - t->nodes] = true;
    while (grew) {
        grew = false;
        for (size_t i = 0; i < t->n_links; i++) {
            const struct plan_node *a = plan_find_node(t, t->links[i].a);
            const struct plan_node *b = plan_find_node(t, t->links[i].b);

            if (a && b && seen[a - t->nodes] != seen[b - t->nodes]) {
                seen[a - t->nodes] = seen[b - t->nodes] = true;
                grew = true;
            }
        }
    }
    found = seen[to - t->nodes];
    free(seen);
    return found;
}

/*
 * A node's ports, routes and SIDs.
 */

/* The number that 'name' has already, 0: none. */
static uint16_t
known_port_number(const struct plan_node *node, const char *name)
{
    for (size_t i = 0; i < node->n_ports; i++) {
        if (!strcmp(node->ports[i].name, name)) {
            return node->ports[i].number;
        }
    }
    return 0;
}

static bool
port_number_taken(const struct node_config *config, const struct plan_node *node, uint16_t number)
{
    for (size_t i = 0; i < node->n_ports; i++) {
        if (node->ports[i].number == number) {
            return true;
        }
    }
    for (size_t i = 0; i < config->n_ports; i++) {
        if (config->ports[i].number == number) {
            return true;
        }
    }
    return false;
}

static int
compare_port_configs(const void *a_, const void *b_)
{
    const struct port_config *a = a_, *b = b_;

    return a->number < b->number ? -1 : a->number > b->number;
}

/* Fills in what the other end of 'port' decides.  False: no such node or host. */
static bool
port_set_peer(const struct plan_topology *t, struct port_config *port, const char *peer)
{
    const struct plan_node *node = plan_find_node(t, peer);
    const struct plan_host *host = plan_find_host(t, peer);

    if (node) {
        port->role = node->agent ? ROLE_AGENT : ROLE_FABRIC;
        port->peer_address = node_address(node->id);
    } else if (host) {
        port->role = ROLE_HOST;
        port->peer_address = host->address;
    } else {
        return false;
    }
    ovs_strlcpy(port->peer, peer, sizeof port->peer);
    return true;
}

static char *
plan_ports(const struct plan_topology *t, const struct plan_node *node, struct node_config *out)
{
    uint16_t next = 1;

    out->ports = xcalloc(t->n_links + 1, sizeof *out->ports);
    for (size_t i = 0; i < t->n_links; i++) {
        struct port_config *port = &out->ports[out->n_ports];
        struct end end;

        if (!link_end(&t->links[i], node->name, &end) || !port_set_peer(t, port, end.peer)) {
            continue;
        }
        ovs_strlcpy(port->name, end.port, sizeof port->name);
        port->kind = end.kind;
        port->number = known_port_number(node, end.port);
        if (!port->number) {
            while (port_number_taken(out, node, next)) {
                next++;
            }
            port->number = next;
        }
        if (port->number > MAX_PORT) {
            return xasprintf("node %s: more than %d ports", node->name, MAX_PORT);
        }
        node_port_mac(node->id, port->number, port->mac);
        out->n_ports++;
    }
    sort(out->ports, out->n_ports, sizeof *out->ports, compare_port_configs);
    for (size_t i = 1; i < out->n_ports; i++) {
        if (out->ports[i].number == out->ports[i - 1].number) {
            return xasprintf("node %s: interface %s is used by two links", node->name,
                             out->ports[i].name);
        }
    }
    return NULL;
}

/* A prefix that is there already keeps its first route: ports come in the order of their numbers. */
static void
add_route(struct node_config *out, const struct in6_addr *prefix, uint8_t plen,
          const struct port_config *port, const struct in6_addr *next_hop)
{
    for (size_t i = 0; i < out->n_routes; i++) {
        const struct route_config *r = &out->routes[i];

        if (r->plen == plen && !memcmp(&r->prefix, prefix, sizeof *prefix)) {
            return;
        }
    }
    out->routes[out->n_routes++] = (struct route_config){
        .prefix = *prefix, .plen = plen, .port = port->number, .next_hop = *next_hop};
}

static int
compare_routes(const void *a_, const void *b_)
{
    const struct route_config *a = a_, *b = b_;
    int cmp = memcmp(&a->prefix, &b->prefix, sizeof a->prefix);

    return cmp ? cmp : a->plen - b->plen;
}

/* Hosts on the node's own links; then each neighbour's locator and hosts, by way of the neighbour;
 * a source agent also sends everything else to its switch. */
static void
plan_routes(const struct plan_topology *t, const struct plan_node *node, struct node_config *out)
{
    const struct plan_node *uplink = node->agent ? agent_switch(t, node) : NULL;
    const struct in6_addr any = IN6ADDR_ANY_INIT;

    out->routes = xcalloc(out->n_ports * (t->n_hosts + 2) + 1, sizeof *out->routes);
    for (size_t i = 0; i < out->n_ports; i++) {
        if (out->ports[i].role == ROLE_HOST) {
            add_route(out, &out->ports[i].peer_address, 128, &out->ports[i], &any);
        }
    }
    for (size_t i = 0; i < out->n_ports; i++) {
        const struct port_config *port = &out->ports[i];
        const struct plan_node *peer = plan_find_node(t, port->peer);
        struct in6_addr locator;

        if (!peer) {
            continue;
        }
        locator = node_locator(peer->id);
        add_route(out, &locator, 48, port, &port->peer_address);
        for (size_t j = 0; j < t->n_hosts; j++) {
            if (plan_attachment(t, t->hosts[j].name) == peer) {
                add_route(out, &t->hosts[j].address, 128, port, &port->peer_address);
            }
        }
        if (peer == uplink) {
            add_route(out, &any, 0, port, &port->peer_address);
        }
    }
    sort(out->routes, out->n_routes, sizeof *out->routes, compare_routes);
}

static void
plan_sids(const struct plan_node *node, struct node_config *out)
{
    if (node->agent) {
        return;
    }
    out->n_sids = 1;
    out->sids = xcalloc(out->n_sids, sizeof *out->sids);
    out->sids[0] = (struct sid_config){
        .prefix = node_sid(node->id, SID_FUNC_END_MT),
        .plen = 64,
        .behaviour = SID_END_MT,
    };
}

char *
plan_node_config(const struct plan_topology *t, const struct plan_node *node,
                 struct node_config *out)
{
    char *error;

    memset(out, 0, sizeof *out);
    ovs_strlcpy(out->name, node->name, sizeof out->name);
    out->id = node->id;
    out->address = node_address(node->id);
    error = plan_ports(t, node, out);
    if (error) {
        node_config_uninit(out);
        return error;
    }
    plan_routes(t, node, out);
    plan_sids(node, out);
    return NULL;
}

/*
 * A group's trees.
 */

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
    if (!agent_switch(t, agent)) {
        return xasprintf("source %s: no path, source agent %s has no link to a switch",
                         g->source_host, agent->name);
    }
    return NULL;
}

char *
plan_check_member(const struct plan_topology *t, const struct plan_group *g, const char *host)
{
    const struct plan_node *root = agent_switch(t, plan_attachment(t, g->source_host));
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
    if (!nodes_connected(t, root, edge)) {
        return xasprintf("member %s: no path from %s to %s", host, root->name, edge->name);
    }
    if (edge != root) {
        return xasprintf("member %s is behind %s: trees with transit nodes are not supported by "
                         "this version",
                         host, edge->name);
    }
    return NULL;
}

char *
plan_check_size(const struct plan_topology *t, uint32_t path_mtu, size_t n)
{
    size_t n_tlvs = DIV_ROUND_UP(n, MT_TLV_MAX_RECEIVERS);
    size_t tlvs_len = n_tlvs * sizeof(struct mt_tlv) + n * sizeof(struct mt_receiver);
    size_t srh_len = sizeof(struct srh_hdr) + sizeof(struct in6_addr) + ROUND_UP(tlvs_len, 8);
    size_t total = path_mtu + ROCE_OVERHEAD + OUTER_IP6_LEN + srh_len;

    if (srh_len > SRH_MAX_LEN) {
        return xasprintf("%" PRIuSIZE " members need an SRH of %" PRIuSIZE
                         " bytes, and %d is the most",
                         n, srh_len, SRH_MAX_LEN);
    }
    if (total > t->fabric_mtu) {
        return xasprintf("path MTU %" PRIu32 " with %" PRIuSIZE
                         " members makes packets of %" PRIuSIZE " bytes (%" PRIu32
                         " + %d RoCE + %d IPv6 + %" PRIuSIZE " SRH), and the fabric MTU is %u",
                         path_mtu, n, total, path_mtu, ROCE_OVERHEAD, OUTER_IP6_LEN, srh_len,
                         t->fabric_mtu);
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

/* The members that have 'provision' (or 'copy', if 'copies'), as branches. */
static struct branch_config *
member_branches(const struct plan_topology *t, const struct plan_group *g, bool copies, size_t *np)
{
    struct branch_config *branches = xcalloc(g->n_members + 1, sizeof *branches);
    size_t n = 0;

    for (size_t i = 0; i < g->n_members; i++) {
        const struct plan_member *m = &g->members[i];

        if (copies ? m->copy : m->provision) {
            struct branch_config *b = &branches[n++];

            b->id = m->branch;
            b->kind = BRANCH_RECEIVER;
            ovs_strlcpy(b->name, m->host, sizeof b->name);
            b->address = plan_find_host(t, m->host)->address;
            b->edge = node_address(plan_attachment(t, m->host)->id);
            b->qpn = m->qpn;
            b->rkey = m->rkey;
            b->va = m->va;
            b->len = m->len;
        }
    }
    sort(branches, n, sizeof *branches, compare_branches);
    *np = n;
    return branches;
}

static struct plan_tree *
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
    return tree;
}

/* The least region of those provisioned; 0 as soon as one has none. */
static uint64_t
common_region_len(const struct plan_group *g)
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
    const struct plan_node *agent, *root;
    size_t n_provisioned = 0;
    char *error;

    memset(out, 0, sizeof *out);
    error = plan_check_source(t, g);
    for (size_t i = 0; !error && i < g->n_members; i++) {
        if (g->members[i].provision || g->members[i].copy) {
            error = plan_check_member(t, g, g->members[i].host);
            n_provisioned += g->members[i].provision;
        }
    }
    if (error) {
        return error;
    }

    agent = plan_attachment(t, g->source_host);
    root = agent_switch(t, agent);
    out->region_len = common_region_len(g);
    out->trees = xcalloc(2, sizeof *out->trees);
    if (n_provisioned) {
        struct tree_config *c = &add_tree(out, t, g, root)->config;

        c->root = true;
        c->branches = member_branches(t, g, false, &c->n_branches);
    }
    if (g->agent) {
        struct tree_config *c = &add_tree(out, t, g, agent)->config;

        c->open = g->open;
        c->n_outer_da = 1;
        c->outer_da = xmalloc(sizeof *c->outer_da);
        c->outer_da[0] = node_sid(root->id, SID_FUNC_END_MT);
        c->copies = member_branches(t, g, true, &c->n_copies);
    }
    return NULL;
}

void
plan_uninit(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        free(plan->trees[i].config.branches);
        free(plan->trees[i].config.outer_da);
        free(plan->trees[i].config.copies);
    }
    free(plan->trees);
    memset(plan, 0, sizeof *plan);
}
