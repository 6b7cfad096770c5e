/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain IPv6 forwarding of a node: longest-prefix routes, neighbour discovery
 * (RFC 4861: asks for next hops, answers for what is ours) and output.
 *
 * Pure: frames go out through a callback, time is an argument (microseconds).
 */
#ifndef LIB_L3_H
#define LIB_L3_H 1

#include <stdbool.h>

#include "lib/drop.h"
#include "lib/node-config.h"
#include "lib/packet.h"
#include "lib/parse.h"
#include "lib/path-health.h"
#include "lib/trace.h"
#include "lib/wire.h"

struct l3;

/* Where frames go: tx() consumes 'p', which leaves by port 'number', complete with Ethernet header.
 * It may wait there, so bytes that it shares with another packet stay as they are.  mtu() is the
 * largest IPv6 packet that the port sends (NULL: no limit). */
struct node_io {
    void (*tx)(void *aux, uint16_t port, struct packet *p);
    uint32_t (*mtu)(void *aux, uint16_t port);
    bool (*up)(void *aux, uint16_t port); /* is the link up?  NULL: all are. */
    /* How good the way of a probe is.  NULL: the node's own prober says so. */
    enum path_state (*way_state)(void *aux, uint16_t probe);
    void *aux;
    uint32_t seed; /* where RDMA-CM connections' IDs begin: random, see lib/cm-conn.h. */
    bool follows;  /* another worker of the same node sends probes, and takes all (lib/steer.h). */
    uint64_t posix_usec; /* what POSIX time in microseconds is ahead of the node's. */
};

/* 'drops' are the node's counters.  What no return value can say is counted here: packets that
 * were held and given up, packets made here that cannot be sent, and invalid neighbour discovery
 * messages. */
struct l3 *l3_create(const struct node_io *, struct packet_pool *, uint64_t drops[N_DROP_REASONS]);
/* Returns packets that wait to the pool without a word. */
void l3_destroy(struct l3 *);

/* Frames go there from now on. */
void l3_set_io(struct l3 *, const struct node_io *);

/* Applies ports, routes and own address as a difference: neighbours of ports
 * that stay as they are are kept.  'config' is not kept. */
void l3_configure(struct l3 *, const struct node_config *config);

/* Neighbour solicitations are answered for the node address on all ports, for fe80::1 and all Proxy
 * Addresses on host ports, and for one host on all of an agent's uplinks.  A null 'host' ends the
 * latter.
 *
 * A QP's move to RTR must not wait for anything behind the node.  Who asks for a Proxy Address that
 * no group has is to hear so from RDMA-CM, not to wait for a neighbour. */
void l3_proxy_host(struct l3 *, const struct in6_addr *host);

/* Who is told what packets meet; NULL: nobody. */
void l3_set_tracer(struct l3 *, const struct tracer *);

/* The port with this number, or NULL; valid until the next l3_configure(). */
const struct port_config *l3_port(const struct l3 *, uint16_t number);
/* Number of the port that this host is on by the routes, or 0. */
uint16_t l3_host_port(const struct l3 *, const struct in6_addr *host);

/* Number of the port that leads to the node with this address at its other end, or 0; of several
 * the lowest. */
uint16_t l3_port_to(const struct l3 *, const struct in6_addr *node);

/* Is this address the node's own? */
bool l3_is_local(const struct l3 *, const struct in6_addr *);

/* Takes a frame that concerns the link only: neighbour discovery and whatever is
 * sent to a link-local group.  True: it is done with, and still the caller's to
 * free.  parse_outer() is enough for it. */
bool
l3_input(struct l3 *, uint16_t port, const struct packet *, const struct parsed *, uint64_t now);

/* Is the frame's Ethernet destination this port (or multicast)? */
bool l3_mac_ok(const struct l3 *, uint16_t port, const struct packet *);

/* Which ICMPv6 errors may answer a packet that cannot be sent.  What RFC 4443 section
 * 2.4(e) forbids is never sent. */
enum l3_errors {
    L3_ERRORS_NONE, /* made here, or a copy that nobody can do anything about. */
    L3_ERRORS_PTB,  /* Packet Too Big only: multicast (RFC 9524 section 2.2.3). */
    L3_ERRORS_ALL,  /* ordinary forwarding. */
};

/* Sends the IPv6 packet p (data at the IPv6 header, no Ethernet header, headroom
 * for one) towards its destination address by the routes, or answers it with the
 * ICMPv6 error message that is due and allowed.  Consumes p in every case.  Hop limit
 * is not touched.  Returns DROP_none if sent or waiting for a neighbour.
 *
 * No route goes into the node's own locator.  A destination there that was not found
 * to be a SID or an address of the node before is dropped as sid_unknown. */
enum drop_reason l3_output(struct l3 *, struct packet *p, enum l3_errors, uint64_t now);

/* Where packets to one destination address leave, as l3_output() has found it.  All zero at first
 * and when the destination is another one.  Belongs to one struct l3. */
struct l3_next {
    uint64_t until;          /* holds before this time, 0: not at all, */
    const uint64_t *changes; /* and while this counter of the port's neighbours */
    uint64_t seen;           /* has this value. */
    uint16_t port;
    struct eth_hdr eth;
};
/* As l3_output(), but out of this port to the node or host on its other end, whatever the routes
 * say. */
enum drop_reason
l3_output_port(struct l3 *, struct packet *p, uint16_t port, enum l3_errors, uint64_t now);
/* Is the port there, and its link up as far as the device knows? */
bool l3_port_is_up(const struct l3 *, uint16_t port);

/* The same as l3_output() in all respects.  Looks for the destination only if *next does not hold
 * any more. */
enum drop_reason
l3_output_next(struct l3 *, struct packet *p, struct l3_next *next, enum l3_errors, uint64_t now);

/* Likewise for a packet with a multicast destination, out of one port, to whoever listens there. */
enum drop_reason
l3_multicast(struct l3 *, struct packet *p, uint16_t port, enum l3_errors, uint64_t now);

/* Forwards a received frame: addresses that may be forwarded, hop limit, then as
 * l3_output() with all errors.  Consumes p.  parse_outer() is enough for it. */
enum drop_reason l3_forward(struct l3 *, struct packet *p, const struct parsed *, uint64_t now);
/* The same, but out of this port as l3_output_port(). */
enum drop_reason
l3_forward_port(struct l3 *, struct packet *p, const struct parsed *, uint16_t port, uint64_t now);

/* The first half of l3_forward(): DROP_none if p may go on.  It then begins with its IPv6 header,
 * whose hop limit has been decremented, and is the caller's; otherwise it is consumed. */
enum drop_reason
l3_forward_begin(struct l3 *, struct packet *p, const struct parsed *, uint64_t now);

/* Does p, from its IPv6 header on, fit port 'number' with a header of header_len bytes in front?  0
 * is the port that 'dst' has by the routes.  If it does not, its sender is told with Packet Too Big
 * what would fit.  'p' stays the caller's. */
bool l3_fits_with_header(struct l3 *, const struct packet *p, size_t header_len, uint16_t number,
                         const struct in6_addr *dst, uint64_t now);

/* Takes a frame for the node itself (l3_is_local(), or a SID that takes ICMPv6) that
 * l3_input() did not take: replies to echo requests, and answers what nothing here listens for with
 * an error message.  'p' stays the caller's.  parse_outer() is enough for it.
 *
 *   DROP_none           replied
 *   DROP_icmp_error     is an error message about a packet of this node
 *   DROP_icmp_malformed, DROP_ext_chain, DROP_ip6_src
 *   DROP_not_for_us     anything else; other reasons: the reply could not be sent */
enum drop_reason l3_local_input(struct l3 *, uint16_t port, const struct packet *p,
                                const struct parsed *, uint64_t now);

/* Error messages about a received frame p that is as it was parsed (parse_outer() is
 * enough) and stays the caller's, by the same rules and rate limit as those of
 * forwarding.  'code' is an ICMP6_PARAMETER_* (lib/icmp6.h), 'pointer' counts from the
 * outermost IPv6 header. */
void
l3_icmp_time_exceeded(struct l3 *, const struct packet *p, const struct parsed *, uint64_t now);
void l3_icmp_param_problem(struct l3 *, const struct packet *p, const struct parsed *, uint8_t code,
                           uint32_t pointer, uint64_t now);

/* Does a received frame p for this node, which was parsed to its upper layer, have an option that a
 * node must know to go on?  Then DROP_ip6_option.  An error message answers it only if one is due
 * however many have received the packet. */
enum drop_reason
l3_check_options(struct l3 *, const struct packet *p, const struct parsed *, uint64_t now);

/* When l3_timer() wants to be called; UINT64_MAX: never. */
uint64_t l3_deadline(const struct l3 *);
void l3_timer(struct l3 *, uint64_t now);

/* For display: neighbour i of l3_n_neighs(), route i of l3_n_routes(). */
struct l3_neigh_info {
    uint16_t port;
    struct in6_addr addr;
    uint8_t mac[6];
    bool resolved;
};
size_t l3_n_neighs(const struct l3 *);
bool l3_get_neigh(const struct l3 *, size_t i, struct l3_neigh_info *);
size_t l3_n_routes(const struct l3 *);
bool l3_get_route(const struct l3 *, size_t i, struct route_config *);

/* Port and next hop that an address would use. */
bool
l3_lookup(const struct l3 *, const struct in6_addr *, uint16_t *port, struct in6_addr *next_hop);

#endif /* lib/l3.h */
