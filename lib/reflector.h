/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to other nodes' probes: the session-reflector of RFC 8762, which counts for each session how
 * many packets it has answered (stateful mode).
 *
 * Only nodes that the configuration names are answered, along a program that is in the probe (RFC 9503)
 * and that ends at the node which asks.  Each of them is answered so often only.  One of theirs without
 * UDP checksum gets an answer without: what would harm if it was spoilt is checked here (who asks, and
 * that the way leads to it), or by who has asked (the cookie, and whether this probe is to have none).
 */
#ifndef LIB_REFLECTOR_H
#define LIB_REFLECTOR_H 1

#include "lib/node-base.h"
#include "lib/stamp.h"

/* Answers to one node: so many in a second, and at once if it was silent before. */
#define REFLECTOR_RATE  10000
#define REFLECTOR_BURST 1000

struct reflector;

/* 'posix_usec': what POSIX time is ahead of the node's. */
struct reflector *reflector_create(struct node_base *, uint64_t posix_usec);
void reflector_destroy(struct reflector *);
void reflector_configure(struct reflector *, const struct node_config *);

/* A sound probe of another node, which came from UDP port 'sport'.  DROP_none: it is answered. */
enum drop_reason
reflector_input(struct reflector *, const struct rx *, const struct stamp *, uint16_t sport);

/* Does the session of this node still send?  'interval' is how often it does at least, as long as
 * nothing is wrong; who backs off needs up to twice as long each time. */
bool reflector_hears(const struct reflector *, const struct in6_addr *prober, uint16_t ssid,
                     uint64_t interval, uint64_t now);

#endif /* lib/reflector.h */
