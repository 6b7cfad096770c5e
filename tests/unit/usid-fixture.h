/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge on a bench, as a node of paths: a host, a source agent, two other nodes, and all SIDs that
 * know no groups.
 */
#ifndef TESTS_UNIT_USID_FIXTURE_H
#define TESTS_UNIT_USID_FIXTURE_H 1

#include "tests/unit/node-fixture.h"

#define AGENT_PORT 1
#define HOST       2
#define PORT_SA    20 /* 0x14. */
#define PORT_SB    21 /* 0x15. */
#define SPINE_A    0x500
#define SPINE_B    0x600

/* Its host, and one that the routes go to by PORT_SB. */
#define OWN_HOST   star_receiver(0)
#define FAR_HOST   addr_of("fd00:9::9")

/* The node 'id', with node 'a' on PORT_SA, and 'b' on PORT_SB.  No route leads to b's locator: what
 * goes there goes by its link. */
struct fixture *usid_create(uint16_t id, uint16_t a, uint16_t b);
/* To be followed by fixture_configure(). */
void usid_add_sid(struct fixture *, struct in6_addr prefix, uint8_t plen, enum sid_behaviour,
                  uint16_t port);

#endif /* tests/unit/usid-fixture.h */
