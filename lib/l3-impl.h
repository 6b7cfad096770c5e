/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of plain forwarding share; for lib/l3*.c only.
 */
#ifndef LIB_L3_IMPL_H
#define LIB_L3_IMPL_H 1

#include "lib/icmp6.h"
#include "lib/l3.h"
#include "lib/neigh.h"

struct l3 {
    struct node_io io;
    uint64_t *drops; /* [N_DROP_REASONS] */
    struct tracer tracer;
    struct packet_pool *pool;
    struct in6_addr address;
    struct in6_addr locator;                /* /48. */
    struct port_config *ports[NEIGH_PORTS]; /* by number; NULL: no such port. */
    struct addr_map *nodes;                 /* ports to nodes, by address and 0. */
    struct route_config *routes;
    size_t n_routes;
    struct fib *fib; /* value: index in routes. */
    struct neigh_table *neighs;
    struct packet *unreachable; /* packets given up, to be answered; linked by next. */
    struct in6_addr host;       /* answered for on uplinks. */
    bool has_host;
    struct icmp6_limit errors[NEIGH_PORTS]; /* by the port that the offender came in on. */
};

/* What the node calls itself on host ports: fe80::1. */
extern const struct in6_addr l3_gateway;

/* Puts an Ethernet header in front and sends.  Consumes p. */
enum drop_reason
l3_send_to_mac(struct l3 *, const struct port_config *, struct packet *p, const uint8_t mac[6]);

/* Was this frame sent to many stations? */
static inline bool
l3_is_group_frame(const struct packet *p)
{
    return ((const struct eth_hdr *) p->data)->dst[0] & 1;
}

/* Sends the error message that is due for the packet whose IPv6 header is at byte 'ofs', which
 * goes no further for this reason, if 'errors' allows one.  'mtu' is the output port's, for
 * DROP_too_long.  The packet stays the caller's. */
void l3_answer_drop(struct l3 *, const struct packet *, uint32_t ofs, enum l3_errors,
                    enum drop_reason, uint32_t mtu, uint64_t now);

#endif /* lib/l3-impl.h */
