/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: which trees that are under way can grow by a member, and what they become.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

#define MAX_MEMBERS 5

static struct plan_topology topology, other;
static struct plan_member members[MAX_MEMBERS];
static struct plan_group group;
static struct plan have, want;

static void
setup(void)
{
    plan_fixture_group(&group, members);
}

static void
teardown(void)
{
    plan_uninit(&have);
    plan_uninit(&want);
    plan_topology_uninit(&topology);
    plan_topology_uninit(&other);
}

static void
plan_for(const struct plan_topology *t, struct plan *out)
{
    char *error = plan_group(t, &group, out);

    ck_assert_msg(!error, "%s", error);
}

/* r1 to rN. */
static void
add_members(int n)
{
    for (int i = 1; i <= n; i++) {
        char name[16];

        snprintf(name, sizeof name, "r%d", i);
        plan_fixture_add_member(&group, name);
    }
}

static void
set_member(struct plan_member *m, bool is_in)
{
    m->provision = m->copy = is_in;
}

/* Of testbed/topologies. */
#define FIG1    "h0-a9 a9-n6 n6-n4 n6-n5 n4-n1 n4-n2 n5-n2 n5-n3 n1-r1 n1-r2 n2-r3 n3-r4 n3-r5"
#define BUD     "h0-a9 a9-n1 n1-n2 n2-n3 n1-r1 n2-r2 n3-r3"
#define CHAIN   "h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-n6 n6-r1 n3-r2"
#define DIAMOND "h0-a9 a9-n1 n1-n3 n3-n4 n1-n2 n2-n4 n4-r1 n3-r2"
#define NOAGG   "h0-a9 a9-n1 n1-n2 n1-n6 n2-n3 n3-n4 n3-n5 n2-r1 n4-r2 n5-r3 n6-r4 !n1 !n3"
#define OTHERS  FIG1_WITH_ROUTER " @n4 ~n7"
#define FIG1_WITH_ROUTER \
    "h0-a9 a9-n6 n6-n4 n6-n7 n7-n5 n4-n1 n4-n2 n5-n2 n5-n3 n1-r1 n1-r2 n2-r3 n3-r4 n3-r5"
#define STAR  "h0-a9 a9-n1 n1-r1 n1-r2"

#define MODES (MODE_INGRESS + 1)

static const struct {
    const char *topology;
    int n_members;
    /* The only member that cannot come last in mode replicate, and why. */
    int refused;
    const char *why;
} trees[] = {
    {FIG1, 5, 0, NULL},
    {BUD, 3, 3,
     "n3 would be behind n2, which gets packets by another SID as long as no node is behind it"},
    {CHAIN, 2, 1,
     "n4 would be behind n3, which gets packets by another SID as long as no node is behind it"},
    {DIAMOND, 2, 0, NULL},
    {NOAGG, 4, 0, NULL},
    {OTHERS, 5, 0, NULL},
    {STAR, 2, 0, NULL},
};

static const struct tree_config *
tree_of(const struct plan *plan, const struct plan_node *node)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        if (plan->trees[i].node == node) {
            return &plan->trees[i].config;
        }
    }
    return NULL;
}

static const struct branch_config *
branch_of(const struct tree_config *tree, uint32_t id)
{
    for (size_t i = 0; tree && i < tree->n_branches; i++) {
        if (tree->branches[i].id == id) {
            return &tree->branches[i];
        }
    }
    return NULL;
}

/* What waits is what 'have' has not. */
static void
check_joining(void)
{
    size_t n_waiting = 0;

    for (size_t i = 0; i < want.n_trees; i++) {
        const struct tree_config *c = &want.trees[i].config;
        const struct tree_config *old = tree_of(&have, want.trees[i].node);

        for (size_t j = 0; j < c->n_branches; j++) {
            bool is_new = !branch_of(old, c->branches[j].id);

            ck_assert_int_eq(c->branches[j].join, is_new ? BRANCH_WAITS : BRANCH_COUNTS);
            n_waiting += is_new;
        }
        for (size_t j = 0; j < c->n_copies; j++) {
            ck_assert_int_eq(c->copies[j].join, BRANCH_COUNTS);
        }
    }
    ck_assert_uint_ge(n_waiting, 1);
    ck_assert_ptr_null(plan_grows(&have, &want));
}

/* Each member comes last, in each mode. */
START_TEST(comes_last)
    {
        int row = _i / MODES;

        group.mode = (enum tree_mode)(_i % MODES);
        if (group.mode == MODE_MCAST && !strcmp(trees[row].topology, OTHERS)) {
            return; /* that mode is for switches only. */
        }
        plan_fixture_topology(&topology, trees[row].topology);
        add_members(trees[row].n_members);
        for (int last = 0; last < trees[row].n_members; last++) {
            bool refused = group.mode == MODE_REPLICATE && last + 1 == trees[row].refused;
            struct plan all;

            plan_for(&topology, &all);
            set_member(&members[last], false);
            plan_for(&topology, &have);
            set_member(&members[last], true);
            plan_for(&topology, &want);
            char *error = plan_grows(&have, &want);
            if (refused) {
                ck_assert_str_eq(error, trees[row].why);
                free(error);
            } else {
                ck_assert_msg(!error, "r%d: %s", last + 1, error);
                plan_join(&have, &want);
                check_joining();
                ck_assert(plan_same_shape(&want, &all) && plan_same_addresses(&want, &all));
                /* Backwards it is less. */
                error = plan_grows(&want, &have);
                ck_assert_ptr_nonnull(error);
                free(error);
            }
            plan_uninit(&all);
            plan_uninit(&have);
            plan_uninit(&want);
        }
    }
END_TEST

/* A node whose last child has left is still sent to by its Replication-SID, and so it can get a
 * child again. */
START_TEST(comes_back)
    {
        struct plan whole;

        plan_fixture_topology(&topology, BUD);
        add_members(3);
        plan_for(&topology, &whole);
        set_member(&members[2], false);
        plan_reduce(&whole, &group, &have);
        ck_assert(!IN6_IS_ADDR_UNSPECIFIED(&tree_of(&have, &topology.nodes[1])->replication_sid));

        /* Somebody else comes meanwhile: planned anew, n2 would be only an edge. */
        set_member(&members[0], false);
        struct plan less;
        plan_reduce(&have, &group, &less);
        set_member(&members[0], true);
        plan_for(&topology, &want);
        ck_assert_ptr_null(plan_grows(&less, &want));
        ck_assert(!plan_same_addresses(&have, &want));
        plan_join(&less, &want);
        ck_assert(plan_same_addresses(&have, &want));
        plan_uninit(&less);
        plan_uninit(&want);

        set_member(&members[2], true);
        plan_for(&topology, &want);
        ck_assert_ptr_null(plan_grows(&have, &want));
        plan_join(&have, &want);
        ck_assert(plan_same_addresses(&whole, &want));
        check_joining();
        plan_uninit(&whole);
    }
END_TEST

/* What is on its way in stays there when the tree grows again. */
START_TEST(keeps_state)
    {
        plan_fixture_topology(&topology, FIG1);
        add_members(4);
        set_member(&members[3], false);
        plan_for(&topology, &have);
        for (size_t i = 0; i < have.n_trees; i++) {
            for (size_t j = 0; j < have.trees[i].config.n_branches; j++) {
                struct branch_config *b = &have.trees[i].config.branches[j];

                if (b->id == 1) {
                    b->join = BRANCH_ADMITTED;
                } else if (b->id == 2) {
                    b->late = true;
                    b->first = psn_make(77);
                } else if (b->id == BRANCH_ID_NODE(2)) {
                    b->join = BRANCH_WAITS;
                }
            }
        }
        set_member(&members[3], true);
        members[3].psn = psn_make(5);
        plan_for(&topology, &want);
        ck_assert_ptr_null(plan_grows(&have, &want));
        plan_join(&have, &want);
        const struct tree_config *n1 = tree_of(&want, plan_find_node(&topology, "n1"));
        const struct tree_config *n4 = tree_of(&want, plan_find_node(&topology, "n4"));
        const struct tree_config *n3 = tree_of(&want, plan_find_node(&topology, "n3"));
        ck_assert_int_eq(branch_of(n1, 1)->join, BRANCH_ADMITTED);
        ck_assert(branch_of(n1, 2)->late && branch_of(n1, 2)->first.v == 77);
        ck_assert_int_eq(branch_of(n1, 2)->join, BRANCH_COUNTS);
        ck_assert_int_eq(branch_of(n4, BRANCH_ID_NODE(1))->join, BRANCH_COUNTS);
        ck_assert_int_eq(branch_of(n4, BRANCH_ID_NODE(2))->join, BRANCH_WAITS);
        ck_assert_int_eq(branch_of(n3, 4)->join, BRANCH_WAITS);
        ck_assert_uint_eq(branch_of(n3, 4)->psn.v, 5);
        ck_assert(!branch_of(n3, 4)->late);
    }
END_TEST

/* The topology, or the group, is another than that of the tree. */
static const struct {
    enum tree_mode mode;
    const char *before, *after, *why;
} changes[] = {
    {MODE_REPLICATE, FIG1,
     "h0-a9 a9-n6 n6-n5 n6-n4 n5-n1 n5-n2 n5-n3 n1-r1 n1-r2 n2-r3 n3-r4 n3-r5",
     "n1 would answer to another node"},
    {MODE_MCAST, FIG1, "h0-a9 a9-n6 n6-n5 n6-n4 n5-n1 n5-n2 n5-n3 n1-r1 n1-r2 n2-r3 n3-r4 n3-r5",
     "n1 would get packets from another node"},
    {MODE_REPLICATE, STAR, "h0-a8 a8-n1 n1-r1 n1-r2",
     "n1 would get packets from another source agent"},
    {MODE_REPLICATE, STAR, "h0-a9 a9-n1 n1-n2 n2-r1 n1-r2",
     "n2 would be behind n1, which gets packets by another SID as long as no node is behind it"},
    {MODE_INGRESS, STAR, "h0-a9 a9-n1 n1-n2 n2-r1 n1-r2",
     "r1 would answer to another node than n1"},
    {MODE_INGRESS, STAR, "h0-a9 a9-n1 n1-n2 n2-r1 n2-r2", "n1 would have no part in the tree"},
    {MODE_REPLICATE, "h0-a9 a9-n1 n1-n2 n2-n3 n3-r1 n1-r2 !n2",
     "h0-a9 a9-n1 n1-n2 n2-n3 n3-r1 n1-r2", "n3 would answer to another node than n1"},
};

START_TEST(other_topology)
    {
        char *error;

        group.mode = changes[_i].mode;
        plan_fixture_topology(&topology, changes[_i].before);
        plan_fixture_topology(&other, changes[_i].after);
        add_members(2);
        plan_for(&topology, &have);
        plan_for(&other, &want);
        error = plan_grows(&have, &want);
        ck_assert_ptr_nonnull(error);
        ck_assert_str_eq(error, changes[_i].why);
        free(error);
    }
END_TEST

START_TEST(other_settings)
    {
        char *error;

        plan_fixture_topology(&topology, STAR);
        plan_fixture_add_member(&group, "r1");
        plan_for(&topology, &have);
        group.provisioned = true;
        plan_for(&topology, &want);
        error = plan_grows(&have, &want);
        ck_assert_str_eq(error, "mode replicate with receivers tlv would be replicate with "
                                "provisioned");
        free(error);
        plan_uninit(&want);
        group.provisioned = false;
        group.mode = MODE_INGRESS;
        plan_for(&topology, &want);
        error = plan_grows(&have, &want);
        ck_assert_str_eq(error, "mode replicate with receivers tlv would be ingress with tlv");
        free(error);
        plan_uninit(&want);
        group.mode = MODE_REPLICATE;
        topology.hosts[1].address.s6_addr[15] ^= 0x40;
        plan_for(&topology, &want);
        error = plan_grows(&have, &want);
        ck_assert_str_eq(error, "r1 would have another address");
        free(error);
    }
END_TEST

Suite *
plan_grow_suite(void)
{
    Suite *suite = suite_create("plan-grow");
    TCase *tcase = tcase_create("plan-grow");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, comes_last, 0, (int) ARRAY_SIZE(trees) * MODES);
    tcase_add_test(tcase, comes_back);
    tcase_add_test(tcase, keeps_state);
    tcase_add_loop_test(tcase, other_topology, 0, ARRAY_SIZE(changes));
    tcase_add_test(tcase, other_settings);
    suite_add_tcase(suite, tcase);
    return suite;
}
