/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/routes.h"

#include <stdlib.h>
#include <string.h>

#include "lib/address-plan.h"
#include "lib/alloc.h"

int
route_compare(const void *a_, const void *b_)
{
    const struct route_config *a = a_, *b = b_;
    int cmp = memcmp(&a->prefix, &b->prefix, sizeof a->prefix);

    return cmp ? cmp : a->plen - b->plen;
}

static int
compare_next_hops(const void *a_, const void *b_)
{
    const struct next_hop *a = a_, *b = b_;

    return a->node < b->node ? -1 : a->node > b->node;
}

/* The port, of the first 'n', that this host is on; NULL: none. */
static const struct port_config *
port_of_host(const struct node_config *c, size_t n, const struct in6_addr *address)
{
    for (size_t i = 0; i < n; i++) {
        if (c->ports[i].role == ROLE_HOST
            && IN6_ARE_ADDR_EQUAL(&c->ports[i].peer_address, address)) {
            return &c->ports[i];
        }
    }
    return NULL;
}

static int
compare_port_numbers(const void *a_, const void *b_)
{
    const struct port_config *a = a_, *b = b_;

    return a->number < b->number ? -1 : a->number > b->number;
}

static void
add_route(struct node_config *c, struct in6_addr prefix, uint8_t plen, uint16_t number)
{
    const struct port_config key = {.number = number};
    const struct port_config *port =
        bsearch(&key, c->ports, c->n_ports, sizeof *c->ports, compare_port_numbers);

    c->routes[c->n_routes++] = (struct route_config){
        .prefix = prefix,
        .plen = plen,
        .port = number,
        .next_hop = port->role == ROLE_HOST ? in6addr_any : port->peer_address,
    };
}

void
routes_derive(struct node_config *c, const struct next_hop *hops_, size_t n_hops,
              const struct host_location *locations, size_t n_locations)
{
    struct next_hop *hops = must_calloc(n_hops + 1, sizeof *hops);

    if (n_hops) {
        memcpy(hops, hops_, n_hops * sizeof *hops);
    }
    c->routes = must_calloc(c->n_ports + n_hops + n_locations + 1, sizeof *c->routes);
    qsort(hops, n_hops, sizeof *hops, compare_next_hops);
    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_config *port = &c->ports[i];

        if (port->role == ROLE_HOST && !port_of_host(c, i, &port->peer_address)) {
            add_route(c, port->peer_address, 128, port->number);
        }
    }
    for (size_t i = 0; i < n_hops; i++) {
        if (hops[i].node) {
            add_route(c, node_locator(hops[i].node), NODE_LOCATOR_PLEN, hops[i].port);
        } else {
            add_route(c, in6addr_any, 0, hops[i].port);
        }
    }
    for (size_t i = 0; i < n_locations; i++) {
        const struct host_location *host = &locations[i];
        const struct next_hop key = {.node = host->node};
        const struct next_hop *hop = bsearch(&key, hops, n_hops, sizeof *hops, compare_next_hops);

        if (hop && !port_of_host(c, c->n_ports, &host->address)) {
            add_route(c, host->address, 128, hop->port);
        }
    }
    qsort(c->routes, c->n_routes, sizeof *c->routes, route_compare);
    free(hops);
}
