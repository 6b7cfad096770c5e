/* SPDX-License-Identifier: Apache-2.0
 *
 * The headend of paths: where a host's packets come to first.  A packet to a host that there are
 * paths to gets one of them: the program is put in front (H.Encaps.Red), and the packet leaves by
 * the path's port.  Requests and answers alike, so both directions are placed, each by the headend of
 * who sends.
 *
 * What a path is chosen by:
 *
 *   - a pin of the packet's DestQP, or of the destination
 *   - else the destination's policy.  A flow is (destination, DestQP), packets that are no RoCE are
 *     one flow.  Flows are noted in a table of fixed size; in a full set the one that was silent for
 *     longest makes room, and is placed anew with its next packet.
 *
 * A path is usable if castd says so and its port is up.  If none is: failover, spread, message and
 * spray take the first path all the same (never none); a pin that is not usable drops.
 *
 * PATH_MESSAGE moves a flow only at a packet that begins a message, and only if all that the flow has
 * sent is confirmed.  Requests do not say whose answers will confirm them, so answers are ascribed
 * by peer and PSN: to the only flow to that peer that has it in flight.  If there are several, none
 * is confirmed, and none moves.
 *
 * The outer header: SA is the node's address, hop limit 64, traffic class that of the packet (RFC 6040
 * normal mode), flow label the path's number (12 bits) and 8 bits of a hash of the flow: routers may
 * quote an address that was never sent, but the label says which path it was.
 */
#ifndef LIB_HEADEND_H
#define LIB_HEADEND_H 1

#include "lib/node-base.h"
#include "lib/path-health.h"

struct headend;

/* Who says how good ways are, as lib/prober.h: of which the first argument is the node's prober. */
struct headend_ways {
    enum path_state (*state)(const struct prober *, uint16_t number);
    bool (*outlives)(const struct prober *, uint16_t number, uint16_t failed);
    unsigned (*marked)(const struct prober *, uint16_t number);
    void (*doubt)(struct prober *, uint16_t number, bool lost, uint64_t now);
};

/* 'seed' is for what is random. */
struct headend *headend_create(struct node_base *, uint32_t seed);
/* Others than the prober say it from the next headend_configure() on: of tests. */
void headend_set_ways(struct headend *, const struct headend_ways *);
void headend_destroy(struct headend *);

/* Destinations that stay keep their flows and counters, paths theirs (by name). */
void headend_configure(struct headend *, const struct node_config *, uint64_t now);

/* Does the node have paths to this host? */
bool headend_has(const struct headend *, const struct in6_addr *dst);

/* Forwards a received frame of a host of this node: as l3_forward(), on a path if there is one.
 * Consumes p.  A frame that does not fit the path's port with its header is answered with Packet Too
 * Big, of the MTU that does. */
enum drop_reason
headend_forward(struct headend *, struct packet *p, const struct parsed *, uint64_t now);
/* The same from the IPv6 header on, whose hop limit has been decremented. */
enum drop_reason headend_output(struct headend *, struct packet *p, uint64_t now);

/* A packet from the fabric goes to a host of this node: 'ip' is from its IPv6 header on, 'len' bytes
 * that are there.  It may confirm what the host has sent. */
void headend_note_arrival(struct headend *, const uint8_t *ip, size_t len, uint64_t now);

/* An ICMPv6 error to this node, as l3_local_input() takes it: counts it for the path that it is
 * about. */
void headend_icmp(struct headend *, const struct packet *, const struct parsed *);

/* What a probe says of its way has changed (lib/prober.h): flows on paths that are bad now take
 * others. */
void headend_way_changed(struct headend *, uint16_t probe, uint64_t now);

/* A packet to this host, and queue pair of it, has met congestion at the node; ::: nobody says where.
 * If it stays so, flows leave paths through the node. */
void headend_congested(struct headend *, const struct in6_addr *dst, uint32_t dest_qp,
                       const struct in6_addr *node, uint64_t now);

/* When headend_timer() wants to be called; UINT64_MAX: never. */
uint64_t headend_deadline(const struct headend *);
void headend_timer(struct headend *, uint64_t now);

/* Members of struct node_class. */
void headend_make_naks(void *node, bool);
bool headend_path(const void *node, size_t i, struct path_info *);

#endif /* lib/headend.h */
