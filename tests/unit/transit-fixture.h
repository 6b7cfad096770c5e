/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge on a bench, between other nodes: two below it and one above, a source
 * agent beside it, and receivers as a test asks for (from port 2 on).
 */
#ifndef TESTS_UNIT_TRANSIT_FIXTURE_H
#define TESTS_UNIT_TRANSIT_FIXTURE_H 1

#include "tests/unit/node-fixture.h"

#define AGENT_PORT  1
#define CHILD_A     0x301
#define CHILD_B     0x302
#define PARENT      0x400
#define PORT_A      20
#define PORT_B      21
#define PORT_PARENT 22
#define GROUP_RS    (SID_FUNC_END_REPLICATE + 7)

/* Child A goes on with the replication, child B is an edge; both aggregate. */
struct fixture *transit_create(unsigned n_receivers);
/* The SID by which the group's packets come to the node. */
struct in6_addr transit_rs(void);

/* A WRITE of the source. */
struct roce_spec transit_write(uint32_t psn);
/* Such a packet to 'dst', with a TLV for n receivers here and one for another edge. */
size_t transit_encapsulated(uint8_t *out, const struct in6_addr *dst, const struct roce_spec *,
                            unsigned n);
/* Feeds transit_write() by the replication SID; 'bytes' is what was fed. */
size_t transit_down(struct fixture *, uint8_t *bytes, uint32_t psn, unsigned n);
/* The frame is 'bytes' with this destination and one hop less. */
void transit_check_replica(const struct frame *, uint16_t port, struct in6_addr dst,
                           const uint8_t *bytes, size_t len);

/* Feeds what a node below sends up. */
void transit_respond(struct fixture *, uint16_t node, uint8_t syndrome, uint32_t psn);
/* Feeds what the first receiver here answers. */
void transit_receiver_responds(struct fixture *, uint8_t syndrome, uint32_t psn);
/* The only frame is this response to the parent. */
void transit_check_up(const struct fixture *, uint8_t syndrome, uint32_t psn);

#endif /* tests/unit/transit-fixture.h */
