/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes on a bench whose group is in mode mcast or ingress.
 */
#ifndef TESTS_UNIT_MODES_FIXTURE_H
#define TESTS_UNIT_MODES_FIXTURE_H 1

#include "tests/unit/node-fixture.h"

#define EDGE_2         0x301
#define REPLICATION_ID 7

/* Mode ingress: an agent, the root, with two edges: the star's with r1 and r2, EDGE_2 with r3. */
struct fixture *ingress_create(void);
/* Mode mcast: an agent of n receivers, whose first switch is the star's edge. */
struct fixture *mcast_agent_create(unsigned n_receivers);
/* Mode mcast: a switch between the agent and two others, with n receivers. */
struct fixture *mcast_create(unsigned n_receivers);

#endif /* tests/unit/modes-fixture.h */
