/* SPDX-License-Identifier: Apache-2.0
 *
 * Congestion at a node: what RED may do to a frame, who is told that it was hit, what IOAM traces
 * say, and what Fast CNPs may cross the border of their domain.  Frames are as they leave, with
 * Ethernet header.
 *
 * Only here, on the way into a queue with RED, a node looks behind a Segment Routing
 * header of packets that are not for it (docs/conformance.md): nothing but who is told depends
 * on it.
 */
#ifndef LIB_NODE_CONGESTION_H
#define LIB_NODE_CONGESTION_H 1

#include "lib/egress.h"
#include "lib/fast-cnp.h"
#include "lib/node-base.h"

struct node_congestion;

/* 'posix_usec': struct node_io. */
struct node_congestion *node_congestion_create(struct node_base *, uint64_t posix_usec);
void node_congestion_destroy(struct node_congestion *);
void node_congestion_configure(struct node_congestion *, const struct node_config *);
/* Does the node take Fast CNPs from this address? */
bool node_congestion_trusts(const struct node_congestion *, const struct in6_addr *node);

/* What may RED do to this frame? */
enum egress_kind
node_congestion_kind(struct node_congestion *, const struct packet *, uint64_t now);
/* RED has hit this frame on its way into the queue of 'port': a Fast CNP may be due. */
void
node_congestion_met(struct node_congestion *, uint16_t port, const struct packet *, uint64_t now);
/* This frame left the queue of 'port' with a CE that it got there. */
void node_congestion_marked(struct node_congestion *, uint16_t port, const struct packet *,
                            uint64_t now);

/* May this packet be forwarded?  A Fast CNP may not out of its domain, nor to a host without
 * agent. */
bool node_congestion_may_leave(const struct node_congestion *, const struct rx *);

/* Writes this node's element into the frame's IOAM trace, if it has one and the port is to. */
void node_congestion_trace(struct node_congestion *, uint16_t port, struct packet *,
                           uint64_t queue_bytes, uint64_t sent_bytes);

/* A packet for this node, parsed by parse_outer() at least: a host may say that it does not
 * understand Fast CNPs (Parameter Problem, code 2). */
void node_congestion_icmp(struct node_congestion *, const struct packet *, const struct parsed *,
                          uint64_t now);

const struct congestion_stats *node_congestion_stats(const struct node_congestion *);

#endif /* lib/node-congestion.h */
