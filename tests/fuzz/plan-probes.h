/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds of the probes of any topology, for fuzz-plan.c.
 */
#ifndef TESTS_FUZZ_PLAN_PROBES_H
#define TESTS_FUZZ_PLAN_PROBES_H 1

#include "ctl/plan/topology.h"

/* Plans the probes of all nodes, with all hosts' packets on paths; both are the same topology, prepared
 * from rows in different orders. */
void check_probes(struct plan_topology *, struct plan_topology *);

#endif /* tests/fuzz/plan-probes.h */
