/* SPDX-License-Identifier: Apache-2.0
 *
 * Single steps of a roll-out to a group that has started and that somebody joins.
 *
 * r1 and r2 are there, r3 joins; n3 is what r3 brings with it.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "ctl/plan/rollout.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

#define N_MEMBERS 3
#define TREE      "h0-a9 a9-n1 n1-n2 n1-n4 n4-n3 n2-r1 n4-r2 n3-r3"

static struct plan_topology topology;
static struct plan_member members[N_MEMBERS];
static struct plan_group group;
static struct plan have;
static bool r3_has_counted;
static struct rollout r;

static void
make_members(void)
{
    plan_fixture_group(&group, members);
    for (int i = 1; i <= N_MEMBERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "r%d", i);
        plan_fixture_add_member(&group, name);
    }
}

static void
setup(void)
{
    memset(&r, 0, sizeof r); /* as no test has used them. */
    memset(&have, 0, sizeof have);
    plan_fixture_topology(&topology, TREE);
    make_members();
    r3_has_counted = false;
}

static void
teardown(void)
{
    rollout_uninit(&r);
    plan_uninit(&have);
    plan_topology_uninit(&topology);
}

/* The nodes have the trees for the first 'n' members. */
static void
have_members(size_t n)
{
    for (size_t i = 0; i < N_MEMBERS; i++) {
        members[i].provision = members[i].copy = i < n;
    }
    ck_assert_ptr_null(plan_group(&topology, &group, &have));
}

static struct branch_config *
find_branch(const struct plan *plan, uint32_t id)
{
    const struct plan_tree *tree;

    return CONST_CAST(struct branch_config *, plan_find_branch(plan, id, &tree));
}

/* Another topology, with the trees of before; what it has no node for is gone with that. */
static void
change_topology(const char *text)
{
    struct plan_topology before = topology;
    size_t n = 0;

    plan_fixture_topology(&topology, text);
    for (size_t i = 0; i < have.n_trees; i++) {
        struct plan_tree tree = have.trees[i];

        tree.node = plan_find_node(&topology, tree.node->name);
        if (tree.node) {
            have.trees[n++] = tree;
        } else {
            tree_config_uninit(&tree.config);
        }
    }
    have.n_trees = n;
    plan_topology_uninit(&before);
}

/* A step with what the nodes have, who all run it. */
static void
step(void)
{
    rollout_uninit(&r);
    r = (struct rollout){
        .topology = &topology,
        .source = true,
        .started = true,
        .agent_applied = true,
        .switches_applied = true,
        .was_serving = true,
        .group = group,
        .members = xcalloc(N_MEMBERS, sizeof *r.members),
    };
    r.group.members = xmemdup(members, sizeof members);
    r.have.n_trees = have.n_trees;
    r.have.region_len = have.region_len;
    r.have.trees = xcalloc(have.n_trees + 1, sizeof *r.have.trees);
    for (size_t i = 0; i < have.n_trees; i++) {
        r.have.trees[i].node = have.trees[i].node;
        tree_config_clone(&r.have.trees[i].config, &have.trees[i].config);
    }
    for (size_t i = 0; i < N_MEMBERS; i++) {
        r.members[i].registered = true;
        r.members[i].has_counted = i < 2 || r3_has_counted;
    }
    rollout_step(&r);
}

/* The nodes have what the step has told them. */
static void
apply(void)
{
    plan_uninit(&have);
    have = r.plan;
    r.plan = (struct plan){.n_trees = 0};
}

static void
check_plan(const char *want)
{
    char *text = plan_fixture_plan_text(&topology, &group, &r.plan);

    ck_assert_str_eq(text, want);
    free(text);
}

/* Topologies that do not carry r3 any more, and what its error is. */
static const struct {
    const char *topology, *why;
} torn[] = {
    {"h0-a9 a9-n1 n1-n2 n1-n4 n4-n3 n2-r1 n4-r2 r3", "member r3 is not behind n3 any more"},
    {"h0-a9 a9-n1 n1-n2 n1-n4 n3 n2-r1 n4-r2 n3-r3", "no path from n4 to n3, which the tree goes "
                                                     "through"},
    {"h0-a9 a9-n1 n1-n2 n1-n4 n2-r1 n4-r2 r3", "node n3, which the tree goes through, was deleted"},
};

/* Who has not joined yet fails alone, and is taken out as one that leaves. */
START_TEST(newcomer_is_torn_off)
    {
        have_members(3);
        find_branch(&have, 3)->join = _i % 2 ? BRANCH_ADMITTED : BRANCH_WAITS;
        change_topology(torn[_i / 2].topology);
        step();
        ck_assert_msg(!r.error, "%s", r.error);
        ck_assert_ptr_nonnull(r.members[2].error);
        ck_assert_str_eq(r.members[2].error, torn[_i / 2].why);
        ck_assert(r.serving && r.members[0].target && r.members[1].target);
        ck_assert(!plan_is_copied(&r.plan, 3));
        apply();
        step();
        ck_assert_msg(!r.error, "%s", r.error);
        apply();
        step();
        ck_assert_msg(!r.error, "%s", r.error);
        ck_assert(r.serving);
        check_plan("n1 R >n2 >>n4 <source n2 n4; n2 <n1 r1; n4 R <n1 r2; a9 >>n1 [r1 r2]");
    }
END_TEST

/* Who has joined is the group's: it fails, and keeps what it has. */
START_TEST(member_is_torn_off)
    {
        have_members(3);
        r3_has_counted = true;
        change_topology(torn[_i].topology);
        step();
        ck_assert_ptr_nonnull(r.error);
        ck_assert_str_eq(r.error, torn[_i].why);
        ck_assert(plan_is_copied(&r.plan, 3));
    }
END_TEST

/* Who leaves takes no room from who joins. */
START_TEST(size_of_replacement)
    {
        have_members(3);
        topology.fabric_mtu = 1024 + ROCE_OVERHEAD + IP6_HDR_LEN + 24 + 3 * 44 + 4;
        members[2].branch = 4;
        step();
        ck_assert_msg(!r.members[2].error, "%s", r.members[2].error);
        ck_assert_ptr_null(r.members[2].too_late);
        ck_assert(!plan_is_copied(&r.plan, 3));
        apply();
        step();
        ck_assert_ptr_null(r.members[2].error);
        ck_assert(!plan_is_provisioned(&r.plan, 3));
        apply();
        step();
        ck_assert_ptr_null(r.members[2].error);
        ck_assert_int_eq(find_branch(&r.plan, 4)->join, BRANCH_WAITS);
    }
END_TEST

Suite *
rollout_join_suite(void)
{
    Suite *suite = suite_create("rollout-join");
    TCase *tcase = tcase_create("rollout-join");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, newcomer_is_torn_off, 0, 2 * ARRAY_SIZE(torn));
    tcase_add_loop_test(tcase, member_is_torn_off, 0, ARRAY_SIZE(torn));
    tcase_add_test(tcase, size_of_replacement);
    suite_add_tcase(suite, tcase);
    return suite;
}
