/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent on a bench: what its host and the fabric send.
 */
#ifndef TESTS_UNIT_AGENT_FIXTURE_H
#define TESTS_UNIT_AGENT_FIXTURE_H 1

#include "tests/unit/node-fixture.h"

#define HOST_PORT 1
#define UPLINK    2

/* A star of n receivers. */
struct fixture *agent_create(unsigned n_receivers);

/* To be followed by fixture_configure(): the agent controls rates on an uplink of so many bit/s, and
 * takes Fast CNPs of the star's edge. */
#define AGENT_INTERVAL 10000u
void agent_congestion(struct fixture *, uint64_t line);
/* The flow with this destination that was told of congestion; asserts that there is one. */
struct flow_info agent_flow(const struct fixture *, const struct in6_addr *dst, uint32_t dest_qp);
/* PSN of frame i. */
uint32_t agent_psn(const struct fixture *, size_t i);

/* A request of the host to the group, of 64 bytes if it carries data. */
struct roce_spec agent_request(uint8_t opcode, uint32_t psn);
void agent_from_host(struct fixture *, const struct roce_spec *);
/* Feeds a WRITE of the host. */
void agent_write(struct fixture *, uint32_t psn);
/* Feeds a response of the root. */
void agent_response(struct fixture *, uint8_t syndrome, uint32_t psn, uint32_t dest_qp);
/* To be followed by fixture_configure(): no switch aggregates, and two nodes send to the agent what
 * they have merged. */
#define NODE_A 0x301
#define NODE_B 0x302
void agent_make_root(struct fixture *, uint16_t node_a, uint16_t node_b);
/* An agent with two receivers for which that is done. */
struct fixture *agent_create_root(uint16_t node_a, uint16_t node_b);
/* Feeds what node 'node' sends to the agent's response SID. */
void
agent_node_responds(struct fixture *, uint16_t node, uint32_t dqpn, uint8_t syndrome, uint32_t psn);
/* Frame i is this response to the host. */
void agent_check_made(const struct fixture *, size_t i, uint8_t syndrome, uint32_t psn);

#endif /* tests/unit/agent-fixture.h */
