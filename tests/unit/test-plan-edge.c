/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: trees under way in which a receiver is behind a source agent that is its edge.  The
 * trees are made by hand: those of a switch, given to an agent with the same id.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "ctl/plan/rollout-auth.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

/* r2 is behind node 3, with links to both switches. */
#define WITH_SWITCH "h0-a9 a9-n1 n1-n2 n2-r1 n1-n3 n2-n3 n3-r2"
#define WITH_AGENT  "h0-a9 a9-n1 n1-n2 n2-r1 n1-a3 n2-a3 a3-r2"

static struct plan_topology with_switch, topology;
static struct plan_member members[2];
static struct plan_group group;
static struct plan have, less;

/* The trees become those of this topology's nodes, by id. */
static void
give_trees_to(const struct plan_topology *t)
{
    for (size_t i = 0; i < have.n_trees; i++) {
        uint16_t id = have.trees[i].node->id;

        for (size_t j = 0; j < t->n_nodes; j++) {
            if (t->nodes[j].id == id) {
                have.trees[i].node = &t->nodes[j];
            }
        }
    }
}

static void
setup(void)
{
    char *error;

    plan_fixture_group(&group, members);
    plan_fixture_topology(&with_switch, WITH_SWITCH);
    plan_fixture_topology(&topology, WITH_AGENT);
    plan_fixture_add_member(&group, "r1");
    plan_fixture_add_member(&group, "r2");
    error = plan_group(&with_switch, &group, &have);
    ck_assert_msg(!error, "%s", error);
    give_trees_to(&topology);
}

static void
teardown(void)
{
    plan_uninit(&have);
    plan_uninit(&less);
    plan_topology_uninit(&with_switch);
    plan_topology_uninit(&topology);
}

static const struct plan_tree *
tree_of(const struct plan *plan, uint16_t id)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        if (plan->trees[i].node->id == id) {
            return &plan->trees[i];
        }
    }
    return NULL;
}

/* Of two agents that have a part, whatever their order, one is the source's. */
START_TEST(one_source_agent)
    {
        struct plan_tree first = have.trees[0];

        ck_assert(plan_is_agent(tree_of(&have, 3)->node));
        for (size_t i = 0; i < have.n_trees; i++) {
            ck_assert_uint_eq(plan_agent_tree(&have)->node->id, 9);
            ck_assert(plan_is_copied(&have, 2));
            memmove(&have.trees[0], &have.trees[1], (have.n_trees - 1) * sizeof have.trees[0]);
            have.trees[have.n_trees - 1] = first;
            first = have.trees[0];
        }
        ck_assert(!plan_tree_is_source(tree_of(&have, 3)));
        ck_assert(plan_is_provisioned(&have, 2));
    }
END_TEST

/* An agent that has lost its receiver goes, as a switch does, and the source's opens alone. */
START_TEST(reduced)
    {
        group.open = true;
        plan_reduce(&have, &group, &less);
        ck_assert_uint_eq(less.n_trees, 4);
        ck_assert(tree_of(&less, 9)->config.open);
        ck_assert(!tree_of(&less, 3)->config.open);
        ck_assert_uint_eq(tree_of(&less, 3)->config.n_branches, 1);
        plan_uninit(&less);

        members[1].provision = members[1].copy = false;
        plan_reduce(&have, &group, &less);
        ck_assert_uint_eq(less.n_trees, 3);
        ck_assert_ptr_null(tree_of(&less, 3));
        ck_assert_uint_eq(tree_of(&less, 1)->config.n_branches, 1);
        ck_assert_uint_eq(tree_of(&less, 1)->config.n_outer_da, 1);
        ck_assert_uint_eq(tree_of(&less, 9)->config.n_copies, 1);
    }
END_TEST

/* A receiver is copied to by the source agent only. */
START_TEST(copies)
    {
        members[1].copy = false;
        plan_reduce(&have, &group, &less);
        ck_assert(!plan_is_copied(&less, 2));
        plan_add_copy(&less, 2);
        ck_assert(plan_is_copied(&less, 2));
        ck_assert_uint_eq(tree_of(&less, 9)->config.n_copies, 2);
        ck_assert_uint_eq(tree_of(&less, 3)->config.n_copies, 0);
    }
END_TEST

/* The trees are carried as long as the receiver is linked to its agent, and that to a switch. */
START_TEST(carried)
    {
        struct plan_topology torn = {.n_nodes = 0};
        char *error = plan_check_carried(&topology, &group, &have);

        ck_assert_msg(!error, "%s", error);
        plan_fixture_topology(&torn, "h0-a9 a9-n1 n1-n2 n2-r1 n1-a3 r2");
        give_trees_to(&torn);
        error = plan_check_carried(&torn, &group, &have);
        ck_assert_str_eq(error, "member r2 is not behind a3 any more");
        free(error);
        give_trees_to(&topology);
        plan_topology_uninit(&torn);
        plan_fixture_topology(&torn, "h0-a9 a9-n1 n1-n2 n2-r1 a3-r2");
        give_trees_to(&torn);
        error = plan_check_carried(&torn, &group, &have);
        ck_assert_str_eq(error, "no path from n1 to a3, which the tree goes through");
        free(error);
        give_trees_to(&topology);
        plan_topology_uninit(&torn);
    }
END_TEST

/* The source agent signs with the key, edges accept it: an agent that is an edge among them. */
START_TEST(keys)
    {
        struct rollout r = {.topology = &topology, .group = group};

        r.group.auth.tlvs = AUTH_MT;
        r.group.auth.key = 7;
        plan_reduce(&have, &group, &r.plan);
        rollout_auth(&r); /* there are no trees yet. */
        ck_assert_uint_eq(tree_of(&r.plan, 9)->config.auth.key, 7);
        ck_assert_uint_eq(tree_of(&r.plan, 3)->config.auth.tlvs, AUTH_MT);
        ck_assert_uint_eq(tree_of(&r.plan, 3)->config.auth.key, 0);
        ck_assert_ptr_nonnull(auth_find_key(&tree_of(&r.plan, 3)->config.auth, 7));
        ck_assert_ptr_null(auth_find_key(&tree_of(&r.plan, 1)->config.auth, 7));
        plan_uninit(&r.plan);
    }
END_TEST

/* The floor of its rate is the source's. */
START_TEST(rate_floor)
    {
        group.rate_floor = 1000;
        plan_set_policy(&group, &have);
        ck_assert_uint_eq(tree_of(&have, 9)->config.rate_floor, 1000);
        ck_assert_uint_eq(tree_of(&have, 3)->config.rate_floor, 0);
    }
END_TEST

Suite *
plan_edge_suite(void)
{
    Suite *s = suite_create("plan-edge");
    TCase *tc = tcase_create("plan-edge");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_source_agent);
    tcase_add_test(tc, reduced);
    tcase_add_test(tc, copies);
    tcase_add_test(tc, carried);
    tcase_add_test(tc, keys);
    tcase_add_test(tc, rate_floor);
    suite_add_tcase(s, tc);
    return s;
}
