/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's routes, from the next hop to each other node and from where hosts are.  The former is all
 * that differs from node to node: with N nodes and H hosts N next hops and H locations take the place of
 * N + H routes at each node.
 */
#ifndef LIB_ROUTES_H
#define LIB_ROUTES_H 1

#include "lib/node-config.h"

/* Packets to this node, and to hosts behind it, leave by the port, to what is on its other end. */
struct next_hop {
    uint16_t node; /* id; 0: packets that no other route is for. */
    uint16_t port; /* number, of one of the node's ports; its other end is a node. */
};

/* The host with this address is behind this node. */
struct host_location {
    struct in6_addr address;
    uint16_t node; /* id. */
};

/* For qsort(): by prefix, the shorter one first. */
int route_compare(const void *, const void *);

/* Makes the routes of *config, which has none, from its ports, sorted by number, and these: to hosts on its own ports, to the
 * locator of each node that has a next hop, and to the hosts behind such nodes, but not the node's own.
 * Sorted by prefix. */
void routes_derive(struct node_config *config, const struct next_hop *, size_t n_next_hops,
                   const struct host_location *, size_t n_locations);

#endif /* lib/routes.h */
