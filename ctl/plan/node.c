/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, nodes: ports, routes and SIDs, and what it does about congestion, from the topology
 * alone.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "util.h"

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

/* Fills in what the other end of 'port' decides, except its MAC address.  False: there is no such
 * node or host. */
static bool
port_set_peer(const struct plan_topology *t, struct port_config *port, const char *peer)
{
    const struct plan_node *node = plan_find_node(t, peer);
    const struct plan_host *host = plan_find_host(t, peer);

    if (node) {
        port->role = plan_is_agent(node) ? ROLE_AGENT : ROLE_FABRIC;
        port->peer_address = node_address(node->id);
        if (node->n_programs) {
            port->n_programs = node->n_programs;
            port->programs = xmemdup(node->programs, node->n_programs * sizeof *node->programs);
        }
    } else if (host) {
        port->role = ROLE_HOST;
        port->peer_address = host->address;
    } else {
        return false;
    }
    ovs_strlcpy(port->peer, peer, sizeof port->peer);
    return true;
}

char *
plan_ports(const struct plan_topology *t, const struct plan_node *node, struct node_config *out)
{
    uint16_t next = 1;

    out->ports = xcalloc(t->n_links + 1, sizeof *out->ports);
    for (size_t i = 0; i < t->n_links; i++) {
        struct port_config *port = &out->ports[out->n_ports];
        struct plan_end end;

        if (!plan_link_end(&t->links[i], node->name, &end) || !port_set_peer(t, port, end.peer)) {
            continue;
        }
        ovs_strlcpy(port->name, end.port, sizeof port->name);
        port->kind = end.kind;
        port->external = end.external;
        if (!node_role_is_foreign(node->role)) {
            port->tx = *end.to_peer;
        }
        if (port->role == ROLE_HOST) {
            port->rx = *end.from_peer; /* a node would do it itself. */
        }
        port->number = known_port_number(node, end.port);
        if (!port->number) {
            while (port_number_taken(out, node, next)) {
                next++;
            }
            port->number = next;
        }
        if (port->number > PORT_NUMBER_MAX) {
            return xasprintf("node %s: more than %d ports", node->name, PORT_NUMBER_MAX);
        }
        node_port_mac(node->id, port->number, port->mac);
        out->n_ports++;
    }
    qsort(out->ports, out->n_ports, sizeof *out->ports, compare_port_configs);
    for (size_t i = 1; i < out->n_ports; i++) {
        if (out->ports[i].number == out->ports[i - 1].number) {
            return xasprintf("node %s: interface %s is used by two links", node->name,
                             out->ports[i].name);
        }
    }
    return NULL;
}

/* The port with this name; NULL: none. */
static struct port_config *
find_port(const struct node_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_ports; i++) {
        if (!strcmp(config->ports[i].name, name)) {
            return &config->ports[i];
        }
    }
    return NULL;
}

/* Fills in the MAC addresses of the other ends, for a node that does not ask for them. */
static char *
plan_peer_macs(const struct plan_topology *t, const struct plan_node *node, struct node_config *out)
{
    for (size_t i = 0; i < t->n_links; i++) {
        struct node_config peer_config = {.n_ports = 0};
        const struct plan_node *peer;
        struct plan_end end;

        if (!plan_link_end(&t->links[i], node->name, &end)
            || !(peer = plan_find_node(t, end.peer))) {
            continue;
        }
        char *error = plan_ports(t, peer, &peer_config);
        if (error) {
            return error;
        }
        struct port_config *port = find_port(out, end.port);
        const struct port_config *other = find_port(&peer_config, end.peer_port);
        if (port && other) {
            memcpy(port->peer_mac, other->mac, sizeof port->peer_mac);
        }
        node_config_uninit(&peer_config);
    }
    return NULL;
}

/* The port with the lowest number of those that lead to 'peer'; NULL: none. */
static const struct port_config *
port_to_peer(const struct node_config *out, const char *peer)
{
    for (size_t i = 0; i < out->n_ports; i++) {
        if (!strcmp(out->ports[i].peer, peer)) {
            return &out->ports[i];
        }
    }
    return NULL;
}

struct neighbour {
    const struct plan_node *node;
    uint16_t port; /* the lowest number. */
};

static int
compare_neighbours(const void *a_, const void *b_)
{
    const struct neighbour *a = a_, *b = b_;

    return a->node->id < b->node->id ? -1 : a->node->id > b->node->id;
}

/* By id, each once. */
static struct neighbour *
find_neighbours(const struct plan_topology *t, const struct node_config *c, size_t *n)
{
    struct neighbour *neighbours = xcalloc(c->n_ports + 1, sizeof *neighbours);

    *n = 0;
    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_config *port = &c->ports[i];

        if (port->role != ROLE_HOST && port == port_to_peer(c, port->peer)) {
            neighbours[(*n)++] = (struct neighbour){plan_find_node(t, port->peer), port->number};
        }
    }
    qsort(neighbours, *n, sizeof *neighbours, compare_neighbours);
    return neighbours;
}

struct next_hop *
plan_next_hops(const struct plan_topology *t, const struct plan_node *node,
               const struct node_config *config, size_t *n)
{
    const struct plan_node *uplink = plan_is_agent(node) ? plan_agent_switch(t, node) : NULL;
    struct next_hop *hops = xcalloc(t->n_nodes + 1, sizeof *hops);
    size_t n_neighbours;
    struct neighbour *neighbours = find_neighbours(t, config, &n_neighbours);

    *n = 0;
    if (uplink) {
        hops[(*n)++] = (struct next_hop){0, port_to_peer(config, uplink->name)->number};
    }
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct plan_node *to = &t->nodes[i];

        for (size_t j = 0; j < n_neighbours; j++) {
            if (plan_is_next_node(t, node, neighbours[j].node, to)) {
                hops[(*n)++] = (struct next_hop){to->id, neighbours[j].port};
                break;
            }
        }
    }
    free(neighbours);
    return hops;
}

struct host_location *
plan_locations(const struct plan_topology *t, size_t *n)
{
    struct host_location *locations = xcalloc(t->n_hosts + 1, sizeof *locations);

    *n = 0;
    for (size_t i = 0; i < t->n_hosts; i++) {
        const struct plan_host *host = &t->hosts[i];

        if (host->node) {
            locations[(*n)++] = (struct host_location){host->address, host->node->id};
        }
    }
    return locations;
}

void
plan_routes(const struct plan_topology *t, const struct plan_node *node, struct node_config *config)
{
    size_t n_hops, n_locations;
    struct next_hop *hops = plan_next_hops(t, node, config, &n_hops);
    struct host_location *locations = plan_locations(t, &n_locations);

    routes_derive(config, hops, n_hops, locations, n_locations);
    free(hops);
    free(locations);
}

static void
add_sid(struct node_config *out, enum sid_behaviour behaviour, struct in6_addr prefix, uint8_t plen,
        uint16_t port)
{
    bool shifts = behaviour == SID_UN || behaviour == SID_UA;

    out->sids[out->n_sids++] = (struct sid_config){
        .prefix = prefix,
        .plen = plen,
        .behaviour = behaviour,
        .block_len = shifts ? SID_BLOCK_PLEN : 0,
        .port = port,
    };
}

/* Has a port of this role a SID with this behaviour? */
static bool
port_has_sid(enum port_role role, enum sid_behaviour behaviour)
{
    switch (role) {
    case ROLE_HOST: return behaviour == SID_END_DX6;
    case ROLE_FABRIC: return behaviour != SID_END_DX6;
    case ROLE_AGENT: return true;
    }
    OVS_NOT_REACHED();
}

/* SIDs of ports with higher numbers than SID_PORT_MAX do not exist. */
static void
add_port_sids(const struct plan_node *node, enum sid_behaviour behaviour, struct node_config *out)
{
    const struct sid_behaviour_row *row = sid_behaviour(behaviour);

    for (size_t i = 0; i < out->n_ports && out->ports[i].number <= SID_PORT_MAX; i++) {
        uint16_t number = out->ports[i].number;
        uint16_t function = (uint16_t) (row->function + number);

        if (!port_has_sid(out->ports[i].role, behaviour)) {
            continue;
        }
        add_sid(out, behaviour, node_sid(node->id, function), row->plen, number);
        if (behaviour == SID_UA) {
            add_sid(out, behaviour, local_sid(function), NODE_LOCATOR_PLEN, number);
        }
    }
}

static int
compare_sids(const void *a_, const void *b_)
{
    const struct sid_config *a = a_, *b = b_;
    int cmp = memcmp(&a->prefix, &b->prefix, sizeof a->prefix);

    return cmp ? cmp : a->plen - b->plen;
}

static void
plan_sids(const struct plan_node *node, struct node_config *out)
{
    /* Those of the node, and up to four of each port. */
    out->sids = xcalloc(sid_behaviour_words.n + 4 * out->n_ports, sizeof *out->sids);
    for (size_t i = 0; i < sid_behaviour_words.n; i++) {
        enum sid_behaviour behaviour = (enum sid_behaviour) i;
        const struct sid_behaviour_row *row = sid_behaviour(behaviour);

        if (!(row->roles & 1u << node->role)) {
            continue;
        } else if (sid_behaviour_is_of_port(behaviour)) {
            add_port_sids(node, behaviour, out);
        } else {
            add_sid(out, behaviour, node_sid(node->id, row->function), row->plen, 0);
        }
    }
    qsort(out->sids, out->n_sids, sizeof *out->sids, compare_sids);
}

char *
plan_node_base(const struct plan_topology *t, const struct plan_node *node, struct node_config *out)
{
    char *error;

    memset(out, 0, sizeof *out);
    ovs_strlcpy(out->name, node->name, sizeof out->name);
    out->role = node->role;
    out->id = node->id;
    out->address = node_address(node->id);
    error = plan_ports(t, node, out);
    if (!error && node_role_is_foreign(node->role)) {
        error = plan_peer_macs(t, node, out);
    }
    if (error) {
        node_config_uninit(out);
        return error;
    }
    plan_sids(node, out);
    plan_congestion(t, node, &out->congestion);
    return NULL;
}

char *
plan_node_config(const struct plan_topology *t, const struct plan_node *node,
                 struct node_config *out)
{
    char *error = plan_node_base(t, node, out);

    if (!error) {
        plan_routes(t, node, out);
    }
    return error;
}
