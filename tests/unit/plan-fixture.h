/* SPDX-License-Identifier: Apache-2.0
 *
 * Topologies from text, and the planner's trees as text.
 */
#ifndef TESTS_UNIT_PLAN_FIXTURE_H
#define TESTS_UNIT_PLAN_FIXTURE_H 1

#include "ctl/plan/plan.h"

/* What a name stands for is in its letter and number: n7 is a switch with id 7, a7 a source agent
 * with id 7, any other letter a host: r7 has address fd00:1::7, h7 has fd00:1::107. */
void plan_fixture_add_node(struct plan_topology *, const char *name);
void plan_fixture_add_host(struct plan_topology *, const char *name);
/* The interfaces have the peer's name, and a number from the second link on. */
void plan_fixture_add_link(struct plan_topology *, const char *a, const char *b);

/* What is there, to be changed. */
struct plan_node *plan_fixture_node(struct plan_topology *, const char *name);
struct plan_link *plan_fixture_link(struct plan_topology *, const char *a, const char *b);

/* Links are "a-b", and make what they connect; "c" alone makes c; "!n7" a switch that does not
 * aggregate, "@n7" an Open vSwitch, "~n7" a plain router.  The result is prepared. */
void plan_fixture_topology(struct plan_topology *, const char *text);

/* Group g with source h0, with no members; plan_fixture_add_member() gives them branch ids from 1
 * on. */
void plan_fixture_group(struct plan_group *, struct plan_member *members);
void plan_fixture_add_member(struct plan_group *, const char *host);

/* The same as text, "n4 R >n1 >>n2 <n6 n1 n2; ...", one part for each tree: the node, R if packets
 * come by its Replication-SID, its children (> by End.MT, >> by Replication-SID, * by the group's
 * multicast address, in which case = is from whom that is taken), its parent (<source: none, it is
 * the root), its branches; of the source agent also [copies].  ~n1,n2 behind what a node sends to are
 * the nodes of the program in front of it.  {A+ n5 ~n1} is plane A, to n5 by n1; "+": preferred, "!":
 * not usable. */
char *plan_fixture_plan_text(const struct plan_topology *, const struct plan_group *,
                             const struct plan *);

#endif /* tests/unit/plan-fixture.h */
