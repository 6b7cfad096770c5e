/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's trees: each shape that matters as text, and random ones checked
 * by walking them.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

#define MAX_MEMBERS 16

static struct plan_topology topology;
static struct plan_member members[MAX_MEMBERS];
static struct plan_group group;
static struct plan plan;

static void
setup(void)
{
    plan_fixture_group(&group, members);
}

static void
teardown(void)
{
    plan_uninit(&plan);
    plan_topology_uninit(&topology);
}

/* Plans for all receivers, r1 and so on, in the order of their branch ids. */
static void
make_plan(const char *text)
{
    char *error;

    plan_fixture_topology(&topology, text);
    for (int i = 1; i < MAX_MEMBERS; i++) {
        char name[8];

        snprintf(name, sizeof name, "r%d", i);
        if (plan_find_host(&topology, name)) {
            plan_fixture_add_member(&group, name);
        }
    }
    error = plan_group(&topology, &group, &plan);
    ck_assert_msg(!error, "%s", error);
}

#define FIGURE_1 "h0-a9 a9-n6 n6-n4 n6-n5 n4-n1 n4-n2 n5-n2 n5-n3 n1-r1 n1-r2 n2-r3 n3-r4 n3-r5"

static const struct {
    const char *topology, *trees;
} shapes[] = {
    /* Figure 1 of the draft: n2 hangs on n4 and n5. */
    {FIGURE_1, "n1 <n4 r1 r2; n2 <n4 r3; n3 <n5 r4 r5; n4 R >n1 >n2 <n6 n1 n2; n5 R >n3 <n6 n3; "
               "n6 R >>n4 >>n5 <source n4 n5; a9 >>n6 [r1 r2 r3 r4 r5]"},
    /* Root and edge are one node, with one host and with several. */
    {"h0-a9 a9-n1 n1-r1", "n1 <source r1; a9 >n1 [r1]"},
    {"h0-a9 a9-n1 n1-r1 n1-r2 n1-r3 n1-n2", "n1 <source r1 r2 r3; a9 >n1 [r1 r2 r3]"},
    /* A star of edges, the root itself an edge or not. */
    {"h0-a9 a9-n5 n5-n1 n5-n2 n5-n3 n1-r1 n2-r2 n3-r3",
     "n1 <n5 r1; n2 <n5 r2; n3 <n5 r3; n5 R >n1 >n2 >n3 <source n1 n2 n3; a9 >>n5 [r1 r2 r3]"},
    {"h0-a9 a9-n5 n5-n1 n1-r1 n5-r2", "n1 <n5 r1; n5 R >n1 <source n1 r2; a9 >>n5 [r1 r2]"},
    /* Bud nodes all the way down. */
    {"h0-a9 a9-n1 n1-n2 n2-n3 n1-r1 n2-r2 n3-r3",
     "n1 R >>n2 <source n2 r1; n2 R >n3 <n1 n3 r2; n3 <n2 r3; a9 >>n1 [r1 r2 r3]"},
    /* A diamond: by n2, and nobody goes by n3. */
    {"h0-a9 a9-n1 n1-n3 n1-n2 n3-n4 n2-n4 n4-r1",
     "n1 R >>n2 <source n2; n2 R >n4 <n1 n4; n4 <n2 r1; a9 >>n1 [r1]"},
    /* The id decides, not the name: n9 is before n10. */
    {"h0-a30 a30-n1 n1-n10 n1-n9 n10-n20 n9-n20 n20-r1",
     "n1 R >>n9 <source n9; n9 R >n20 <n1 n20; n20 <n9 r1; a30 >>n1 [r1]"},
    /* Two ways of which the longer has the lower ids: the shorter. */
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n5 n1-n4 n4-n5 n5-r1",
     "n1 R >>n4 <source n4; n4 R >n5 <n1 n5; n5 <n4 r1; a9 >>n1 [r1]"},
    /* A chain of six, with loops and parallel links. */
    {"h0-a9 a9-n6 n6-n5 n5-n4 n4-n3 n3-n2 n2-n1 n1-r1 n5-n5 n4-n3 n6-n5",
     "n1 <n2 r1; n2 R >n1 <n3 n1; n3 R >>n2 <n4 n2; n4 R >>n3 <n5 n3; n5 R >>n4 <n6 n4; "
     "n6 R >>n5 <source n5; a9 >>n6 [r1]"},
    /* Transit that does not aggregate: its children answer to the node above it. */
    {FIGURE_1 " !n4", "n1 <n6 r1 r2; n2 <n6 r3; n3 <n5 r4 r5; n4 R >n1 >n2; n5 R >n3 <n6 n3; "
                      "n6 R >>n4 >>n5 <source n1 n2 n5; a9 >>n6 [r1 r2 r3 r4 r5]"},
    /* So does one two levels above. */
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-r1 !n2 !n3",
     "n1 R >>n2 <source n4; n2 R >>n3; n3 R >n4; n4 <n1 r1; a9 >>n1 [r1]"},
    /* A first switch that does not aggregate: the source agent is the root. */
    {FIGURE_1 " !n6", "n1 <n4 r1 r2; n2 <n4 r3; n3 <n5 r4 r5; n4 R >n1 >n2 <a9 n1 n2; "
                      "n5 R >n3 <a9 n3; n6 R >>n4 >>n5; a9 >>n6 <source n4 n5 [r1 r2 r3 r4 r5]"},
    {FIGURE_1 " !n6 !n5", "n1 <n4 r1 r2; n2 <n4 r3; n3 <a9 r4 r5; n4 R >n1 >n2 <a9 n1 n2; "
                          "n5 R >n3; n6 R >>n4 >>n5; a9 >>n6 <source n3 n4 [r1 r2 r3 r4 r5]"},
    /* Open vSwitch replicates; a router has no part: the node above sends a copy to each behind
     * it. */
    {FIGURE_1 " @n4", "n1 <n6 r1 r2; n2 <n6 r3; n3 <n5 r4 r5; n4 R >n1 >n2; n5 R >n3 <n6 n3; "
                      "n6 R >>n4 >>n5 <source n1 n2 n5; a9 >>n6 [r1 r2 r3 r4 r5]"},
    {FIGURE_1 " ~n4", "n1 <n6 r1 r2; n2 <n6 r3; n3 <n5 r4 r5; n5 R >n3 <n6 n3; "
                      "n6 R >n1 >n2 >>n5 <source n1 n2 n5; a9 >>n6 [r1 r2 r3 r4 r5]"},
    /* Two routers in a row, and Open vSwitch above them. */
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-r1 n3-n6 n6-r2 n4-n7 n7-r3 @n2 ~n3 ~n4",
     "n1 R >>n2 <source n5 n6 n7; n2 R >n5 >n6 >n7; n5 <n1 r1; n6 <n1 r2; n7 <n1 r3; "
     "a9 >>n1 [r1 r2 r3]"},
    /* Agents are not gone through: a8 would be the shorter way to n3. */
    {"h0-a9 a9-n1 n1-a8 a8-n3 n1-n2 n2-n4 n4-n3 n3-r1",
     "n1 R >>n2 <source n2; n2 R >>n4 <n1 n4; n3 <n4 r1; n4 R >n3 <n2 n3; a9 >>n1 [r1]"},
    /* An agent with two switches: the lowest id is the first. */
    {"h0-a9 a9-n2 a9-n1 n1-n2 n2-r1", "n1 R >n2 <source n2; n2 <n1 r1; a9 >>n1 [r1]"},
};

/* Proves MT-8-4. */
START_TEST(shape)
    {
        char *text;

        make_plan(shapes[_i].topology);
        text = plan_fixture_plan_text(&topology, &group, &plan);
        ck_assert_str_eq(text, shapes[_i].trees);
        free(text);
    }
END_TEST

/* In other modes.  Nobody between edges and source agent merges. */
static const struct {
    enum tree_mode mode;
    const char *topology, *trees;
} other_modes[] = {
    {MODE_MCAST, FIGURE_1,
     "n1 =n4 <a9 r1 r2; n2 =n4 <a9 r3; n3 =n5 <a9 r4 r5; n4 *n1 *n2 =n6; n5 *n3 =n6; "
     "n6 *n4 *n5 =a9; a9 *n6 <source n1 n2 n3 [r1 r2 r3 r4 r5]"},
    {MODE_INGRESS, FIGURE_1,
     "n1 <a9 r1 r2; n2 <a9 r3; n3 <a9 r4 r5; a9 >n1 >n2 >n3 <source n1 n2 n3 [r1 r2 r3 r4 r5]"},
    /* One node. */
    {MODE_MCAST, "h0-a9 a9-n1 n1-r1", "n1 =a9 <a9 r1; a9 *n1 <source n1 [r1]"},
    {MODE_INGRESS, "h0-a9 a9-n1 n1-r1", "n1 <a9 r1; a9 >n1 <source n1 [r1]"},
    /* Bud nodes: the agent merges what each says of its own receivers. */
    {MODE_MCAST, "h0-a9 a9-n1 n1-n2 n2-n3 n1-r1 n2-r2 n3-r3",
     "n1 *n2 =a9 <a9 r1; n2 *n3 =n1 <a9 r2; n3 =n2 <a9 r3; a9 *n1 <source n1 n2 n3 [r1 r2 r3]"},
    {MODE_INGRESS, "h0-a9 a9-n1 n1-n2 n2-n3 n1-r1 n2-r2 n3-r3",
     "n1 <a9 r1; n2 <a9 r2; n3 <a9 r3; a9 >n1 >n2 >n3 <source n1 n2 n3 [r1 r2 r3]"},
    /* Switches that do not aggregate make no difference. */
    {MODE_MCAST, "h0-a9 a9-n1 n1-n2 n2-n4 n4-r1 !n1 !n2",
     "n1 *n2 =a9; n2 *n4 =n1; n4 =n2 <a9 r1; a9 *n1 <source n4 [r1]"},
    {MODE_INGRESS, "h0-a9 a9-n1 n1-n2 n2-n4 n4-r1 !n1 !n2", "n4 <a9 r1; a9 >n4 <source n4 [r1]"},
    /* A diamond: by n2, and nobody goes by n3. */
    {MODE_MCAST, "h0-a9 a9-n1 n1-n3 n1-n2 n3-n4 n2-n4 n4-r1",
     "n1 *n2 =a9; n2 *n4 =n1; n4 =n2 <a9 r1; a9 *n1 <source n4 [r1]"},
};

/* Proves MT-1.1-1, MT-5.1-5. */
START_TEST(other_mode)
    {
        struct in6_addr address = mcast_group_address(group.replication_id);
        struct in6_addr agent = node_address(9);
        bool mcast = other_modes[_i].mode == MODE_MCAST;
        char *text;

        group.mode = other_modes[_i].mode;
        group.provisioned = _i % 2;
        make_plan(other_modes[_i].topology);
        text = plan_fixture_plan_text(&topology, &group, &plan);
        ck_assert_str_eq(text, other_modes[_i].trees);
        free(text);
        for (size_t i = 0; i < plan.n_trees; i++) {
            const struct tree_config *c = &plan.trees[i].config;

            ck_assert_int_eq(c->mode, group.mode);
            ck_assert_int_eq(c->provisioned, group.provisioned);
            ck_assert(IN6_IS_ADDR_UNSPECIFIED(&c->replication_sid));
            ck_assert_int_eq(IN6_ARE_ADDR_EQUAL(&c->mcast_group, &address), mcast);
            ck_assert(IN6_ARE_ADDR_EQUAL(&c->outer_source, &agent));
        }
    }
END_TEST

/* One edge's receivers leave; the others keep their part, and the agent sends there no more. */
START_TEST(edge_leaves)
    {
        static const char *const left[] = {
            [MODE_MCAST] = "n1 =n4 <a9 r1 r2; n2 =n4 <a9 r3; n4 *n1 *n2 =n6; n6 *n4 =a9; "
                           "a9 *n6 <source n1 n2 [r1 r2 r3]",
            [MODE_INGRESS] = "n1 <a9 r1 r2; n2 <a9 r3; a9 >n1 >n2 <source n1 n2 [r1 r2 r3]",
        };
        struct plan less, want;
        char *text;

        group.mode = (enum tree_mode) _i;
        make_plan(FIGURE_1);
        members[3].copy = members[4].copy = false; /* r4, r5 behind n3. */
        plan_reduce(&plan, &group, &less);
        ck_assert_uint_eq(less.n_trees, plan.n_trees);
        ck_assert(plan_same_shape(&less, &plan));
        plan_uninit(&less);
        members[3].provision = members[4].provision = false;
        plan_reduce(&plan, &group, &less);
        text = plan_fixture_plan_text(&topology, &group, &less);
        ck_assert_str_eq(text, left[_i]);
        free(text);
        ck_assert_ptr_null(plan_check_carried(&topology, &group, &less));
        ck_assert_ptr_null(plan_group(&topology, &group, &want));
        ck_assert(plan_same_shape(&less, &want));
        want.trees[0].config.provisioned = true;
        ck_assert(!plan_same_shape(&less, &want));
        want.trees[0].config.provisioned = false;
        want.trees[0].config.mode = MODE_REPLICATE;
        ck_assert(!plan_same_shape(&less, &want));
        plan_uninit(&want);
        plan_uninit(&less);
    }
END_TEST

/* A bud whose receivers have left only forwards: whoever counted it would wait for ever. */
START_TEST(bud_without_receivers)
    {
        struct plan less, want;
        char *text;

        group.mode = MODE_MCAST;
        make_plan("h0-a9 a9-n1 n1-n2 n1-r1 n2-r2");
        members[0].copy = members[0].provision = false;
        plan_reduce(&plan, &group, &less);
        text = plan_fixture_plan_text(&topology, &group, &less);
        ck_assert_str_eq(text, "n1 *n2 =a9; n2 =n1 <a9 r2; a9 *n1 <source n2 [r2]");
        free(text);
        ck_assert_ptr_null(plan_group(&topology, &group, &want));
        ck_assert(plan_same_shape(&less, &want));
        plan_uninit(&want);
        plan_uninit(&less);
    }
END_TEST

/* Trees of a registry that was converted do not say from where packets come.  They are told, also
 * in an epoch that has started: nobody takes its packets otherwise. */
START_TEST(outer_source_of_older_trees)
    {
        struct plan less;

        make_plan("h0-a9 a9-n1 n1-n2 n1-r1 n2-r2");
        for (size_t i = 0; i < plan.n_trees; i++) {
            plan.trees[i].config.outer_source = in6addr_any;
        }
        plan_reduce(&plan, &group, &less);
        free(plan_fixture_plan_text(&topology, &group, &less)); /* checks it. */
        plan_uninit(&less);
    }
END_TEST

/* Multicast is not routed around a link that has gone; unicast to SIDs is. */
START_TEST(link_goes)
    {
        char *error;

        group.mode = (enum tree_mode) _i;
        make_plan("h0-a9 a9-n1 n1-n2 n2-n4 n1-n3 n3-n4 n4-r1");
        plan_topology_uninit(&topology);
        plan_fixture_topology(&topology, "h0-a9 a9-n1 n2-n4 n1-n3 n3-n4 n4-r1 n1-n5 n5-n2");
        for (size_t i = 0; i < plan.n_trees; i++) {
            plan.trees[i].node = plan_find_node(
                &topology, (const char *[]){"n1", "n2", "n4", "a9"}[plan.n_trees == 2 ? 2 + i : i]);
        }
        error = plan_check_carried(&topology, &group, &plan);
        if (group.mode == MODE_MCAST) {
            ck_assert_str_eq(error, "no link from n1 to n2, which the tree goes through");
        } else {
            ck_assert_ptr_null(error);
        }
        free(error);
    }
END_TEST

static void
check_size(const char *wanted)
{
    char *error = plan_check_size(&topology, &group);

    if (wanted) {
        ck_assert_ptr_nonnull(error);
        ck_assert_str_eq(error, wanted);
    } else {
        ck_assert_msg(!error, "%s", error);
    }
    free(error);
}

/* A packet that names all, one for each edge that names its own, one that names nobody. */
START_TEST(sizes)
    {
        make_plan("h0-a9 a9-n1 n1-n2 n1-r1 n1-r2 n1-r3 n2-r4 n2-r5");
        topology.fabric_mtu = 1024 + 84 + 40 + 24 + 24 + 3 * 20 + 4; /* n1 alone. */
        check_size("path MTU 1024 with 5 members makes packets of 1324 bytes (1024 + 84 RoCE + 40 "
                   "IPv6 + 176 SRH), and the fabric MTU is 1260");
        group.mode = MODE_MCAST;
        check_size("path MTU 1024 with 5 members makes packets of 1324 bytes (1024 + 84 RoCE + 40 "
                   "IPv6 + 176 SRH), and the fabric MTU is 1260");
        group.mode = MODE_INGRESS;
        check_size(NULL);
        topology.fabric_mtu--;
        check_size("path MTU 1024 with 3 members behind n1 makes packets of 1260 bytes (1024 + 84 "
                   "RoCE + 40 IPv6 + 112 SRH), and the fabric MTU is 1259");
        group.provisioned = true;
        topology.fabric_mtu = 1024 + 84 + 40 + 24;
        check_size(NULL);
        group.mode = MODE_REPLICATE;
        check_size(NULL);
        topology.fabric_mtu--;
        check_size("path MTU 1024 with 5 members makes packets of 1172 bytes (1024 + 84 RoCE + 40 "
                   "IPv6 + 24 SRH), and the fabric MTU is 1171");
    }
END_TEST

/* What the trees say besides their shape.  Proves MT-5.1-4, MT-8-5. */
START_TEST(contents)
    {
        make_plan(FIGURE_1);
        members[3].len = 4095; /* r4. */
        members[4].copy = false;
        members[2].psn = psn_make(7); /* r3. */
        plan_uninit(&plan);
        ck_assert_ptr_null(plan_group(&topology, &group, &plan));
        ck_assert_uint_eq(plan.region_len, 4095);
        ck_assert_uint_eq(plan.n_trees, 7);
        for (size_t i = 0; i < plan.n_trees; i++) {
            const struct tree_config *c = &plan.trees[i].config;

            ck_assert_str_eq(c->group, "g");
            ck_assert_uint_eq(c->epoch, 3);
            ck_assert_uint_eq(c->designated_qpn, 0x103);
            ck_assert_uint_eq(c->start_psn.v, 0xffffff);
            ck_assert_uint_eq(c->mtu, 1024);
            ck_assert_uint_eq(c->designated_rkey, 9);
            ck_assert_uint_eq(c->region_len, 4095);
            ck_assert_mem_eq(&c->proxy, &group.proxy, sizeof c->proxy);
            ck_assert_mem_eq(&c->source, &plan_find_host(&topology, "h0")->address, 16);
            ck_assert_uint_eq(c->source_qpn, 18);
            ck_assert_int_eq(c->open, i == 6);
        }

        const struct branch_config *receiver = &plan.trees[2].config.branches[0];
        struct in6_addr n3 = node_address(3), n5 = node_address(5);
        ck_assert_str_eq(receiver->name, "r4");
        ck_assert_int_eq(receiver->kind, BRANCH_RECEIVER);
        ck_assert_mem_eq(&receiver->edge, &n3, sizeof n3);
        ck_assert_uint_eq(receiver->id, 4);
        ck_assert_uint_eq(receiver->qpn, 104);
        ck_assert_uint_eq(receiver->rkey, 204);
        ck_assert_uint_eq(receiver->va, 0x4000);
        ck_assert_uint_eq(receiver->len, 4095);
        ck_assert_uint_eq(receiver->psn.v, 0xffffff);
        ck_assert(!receiver->late);

        receiver = &plan.trees[1].config.branches[0];
        ck_assert_str_eq(receiver->name, "r3");
        ck_assert_uint_eq(receiver->psn.v, 7);
        ck_assert(receiver->late);
        ck_assert_uint_eq(receiver->first.v, 0xffffff);

        const struct branch_config *node = &plan.trees[5].config.branches[1];
        ck_assert_int_eq(node->kind, BRANCH_NODE);
        ck_assert_uint_eq(node->id, BRANCH_ID_NODE(5));
        ck_assert_mem_eq(&node->address, &n5, sizeof n5);

        ck_assert_uint_eq(plan.trees[6].config.n_copies, 4); /* not r5. */
    }
END_TEST

/* Two groups differ in their Replication-SIDs, and in nothing else that trees are addressed by. */
START_TEST(two_groups)
    {
        struct plan other;

        make_plan(FIGURE_1);
        group.replication_id = REPLICATION_ID_MAX;
        ck_assert_ptr_null(plan_group(&topology, &group, &other));
        for (size_t i = 3; i < 6; i++) { /* n4, n5, n6. */
            uint16_t id = plan.trees[i].node->id;
            struct in6_addr first = node_sid(id, 0xf005), last = node_sid(id, 0xffff);

            ck_assert_mem_eq(&plan.trees[i].config.replication_sid, &first, sizeof first);
            ck_assert_mem_eq(&other.trees[i].config.replication_sid, &last, sizeof last);
        }
        plan_uninit(&other);
    }
END_TEST

/* One member without a region: no WRITE for anybody. */
START_TEST(no_common_region)
    {
        make_plan("h0-a9 a9-n1 n1-r1 n1-r2");
        members[1].len = 0;
        ck_assert_uint_eq(plan_region_len(&group), 0);
    }
END_TEST

/*
 * Random trees.
 */

static const struct plan_tree *
tree_of(const struct in6_addr *sid)
{
    for (size_t i = 0; i < plan.n_trees; i++) {
        struct in6_addr own = node_locator(plan.trees[i].node->id);

        if (!memcmp(sid, &own, 6)) {
            return &plan.trees[i];
        }
    }
    return NULL;
}

/* Follows a copy that is addressed to 'sid'; notes each receiver that gets one. */
static void
walk(const struct in6_addr *sid, unsigned *reached, size_t depth)
{
    const struct plan_tree *tree = tree_of(sid);
    struct in6_addr end_mt;

    ck_assert_uint_lt(depth, plan.n_trees);
    ck_assert_ptr_nonnull(tree);
    ck_assert(tree->node->role != NODE_AGENT);
    end_mt = node_sid(tree->node->id, SID_FUNC_END_MT);
    for (size_t i = 0; i < tree->config.n_branches; i++) {
        if (tree->config.branches[i].kind == BRANCH_RECEIVER) {
            reached[tree->config.branches[i].id]++;
        }
    }
    if (IN6_ARE_ADDR_EQUAL(sid, &end_mt)) {
        ck_assert_uint_eq(tree->config.n_outer_da, 0);
        ck_assert(IN6_IS_ADDR_UNSPECIFIED(&tree->config.replication_sid));
    } else {
        ck_assert(IN6_ARE_ADDR_EQUAL(sid, &tree->config.replication_sid));
        ck_assert_uint_gt(tree->config.n_outer_da, 0);
    }
    for (size_t i = 0; i < tree->config.n_outer_da; i++) {
        walk(&tree->config.outer_da[i], reached, depth + 1);
    }
}

/* A tree that merges hands on to one that has it as a branch, and so on up to the root. */
static void
check_aggregator(const struct plan_tree *tree)
{
    size_t n = 0;

    while (!tree->config.root) {
        const struct plan_tree *parent = tree_of(&tree->config.parent_sid);
        struct in6_addr sid = node_sid(parent->node->id, SID_FUNC_RESPONSE);
        size_t n_branches = 0;

        ck_assert_mem_eq(&sid, &tree->config.parent_sid, sizeof sid);
        ck_assert(parent->node->role == NODE_AGENT || !parent->node->no_aggregation);
        for (size_t i = 0; i < parent->config.n_branches; i++) {
            n_branches += parent->config.branches[i].id == BRANCH_ID_NODE(tree->node->id);
        }
        ck_assert_uint_eq(n_branches, 1);
        tree = parent;
        ck_assert_uint_lt(n++, plan.n_trees);
    }
}

static void
check_trees(void)
{
    unsigned reached[MAX_MEMBERS + 1] = {0};
    size_t n_roots = 0, n_nodes = 0, n_node_branches = 0;

    for (size_t i = 0; i < plan.n_trees; i++) {
        const struct plan_tree *tree = &plan.trees[i];
        bool merges = tree->config.root || !IN6_IS_ADDR_UNSPECIFIED(&tree->config.parent_sid);

        n_roots += tree->config.root;
        if (tree->node->role != NODE_AGENT) {
            ck_assert_int_eq(merges, !tree->node->no_aggregation);
        }
        for (size_t j = 0; j < tree->config.n_branches; j++) {
            n_node_branches += tree->config.branches[j].kind == BRANCH_NODE;
            ck_assert(merges);
        }
        if (merges) {
            check_aggregator(tree);
            n_nodes += !tree->config.root;
        }
    }
    ck_assert_uint_eq(n_roots, 1);
    ck_assert_uint_eq(n_node_branches, n_nodes);

    walk(&plan.trees[plan.n_trees - 1].config.outer_da[0], reached, 0);
    for (size_t i = 0; i < group.n_members; i++) {
        ck_assert_uint_eq(reached[members[i].branch], members[i].provision);
    }
}

/* The next node is, of those on shortest ways, the one with the lowest id. */
static void
check_next_nodes(void)
{
    const struct plan_topology *t = &topology;

    for (size_t i = 0; i < t->n_nodes * t->n_nodes; i++) {
        const struct plan_node *from = &t->nodes[i / t->n_nodes], *to = &t->nodes[i % t->n_nodes];
        const struct plan_node *want = NULL;

        for (size_t j = 0; j < t->n_nodes && !want; j++) {
            want = plan_is_next_node(t, from, &t->nodes[j], to) ? &t->nodes[j] : NULL;
        }
        ck_assert_ptr_eq(plan_next_node(t, from, to), want);
    }
}

START_TEST(random_trees)
    {
        srand((unsigned int) _i);
        for (int run = 0; run < 50; run++) {
            bool any = false;

            plan_fixture_topology(&topology, "h0-a30 a30-n8 n1 n2 n3 n4 n5 n6 n7");
            plan_fixture_group(&group, members);
            for (int i = rand() % 16; i > 0; i--) {
                plan_fixture_add_link(&topology, topology.nodes[rand() % 8].name,
                                      topology.nodes[rand() % 8].name);
            }
            for (size_t i = 0; i < topology.n_nodes; i++) {
                topology.nodes[i].no_aggregation = rand() % 4 == 0;
            }
            for (int i = 1; i < 8; i++) {
                char name[8];

                snprintf(name, sizeof name, "r%d", i);
                plan_fixture_add_host(&topology, name);
                plan_fixture_add_link(&topology, topology.nodes[rand() % 8].name, name);
            }
            plan_topology_prepare(&topology);
            check_next_nodes();
            for (size_t i = 0; i < topology.n_hosts; i++) {
                char *error;

                if (topology.hosts[i].name[0] == 'r') {
                    error = plan_check_member(&topology, &group, topology.hosts[i].name);
                    plan_fixture_add_member(&group, topology.hosts[i].name);
                    any |= !error;
                    members[group.n_members - 1].provision = !error;
                    members[group.n_members - 1].copy = !error;
                    free(error);
                }
            }
            ck_assert_ptr_null(plan_group(&topology, &group, &plan));
            if (any) {
                check_trees();
            } else {
                ck_assert_uint_eq(plan.n_trees, 1);
            }
            teardown();
        }
    }
END_TEST

static void
check_liveness(const char *node, uint32_t msec)
{
    for (size_t i = 0; i < plan.n_trees; i++) {
        if (!strcmp(plan.trees[i].node->name, node)) {
            ck_assert_msg(plan.trees[i].config.policy.liveness_msec == msec, "%s: %u instead of %u",
                          node, plan.trees[i].config.policy.liveness_msec, msec);
            ck_assert(plan.trees[i].config.policy.prune);
            ck_assert_uint_eq(plan.trees[i].config.policy.timeout, 14);
            ck_assert(plan.trees[i].config.policy.nak == NAK_LITERAL
                      && plan.trees[i].config.policy.filter);
            return;
        }
    }
    ck_abort_msg("%s has no tree", node);
}

/* The time of a node is that of its highest branch, and once more the group's. */
START_TEST(liveness)
    {
        struct plan less;

        group.policy.prune = true;
        group.policy.nak = NAK_LITERAL;
        group.policy.filter = true;
        group.policy.timeout = 14;
        group.policy.liveness_msec = 100;
        make_plan(FIGURE_1 " n5-r6 !n6");
        check_liveness("n1", 100);
        check_liveness("n4", 200);
        check_liveness("n5", 200);
        check_liveness("n6", 0); /* merges nothing. */
        check_liveness("a9", 300);

        /* As much as fits. */
        group.policy.liveness_msec = UINT32_MAX / 2;
        plan_set_policy(&group, &plan);
        check_liveness("n4", UINT32_MAX - 1);
        check_liveness("a9", UINT32_MAX);

        /* Below n5 only r6 is left, and n4 is gone. */
        group.policy.liveness_msec = 100;
        for (size_t i = 0; i < 5; i++) {
            members[i].provision = members[i].copy = false;
        }
        plan_reduce(&plan, &group, &less);
        plan_uninit(&plan);
        plan = less;
        check_liveness("n5", 100);
        check_liveness("a9", 200);
    }
END_TEST

/* Rows that castd has not written do not keep it from coming to an end. */
START_TEST(liveness_in_circle)
    {
        group.policy.prune = true;
        group.policy.liveness_msec = 100;
        make_plan("h0-a9 a9-n1 n1-n2 n2-r2 n1-r1");
        ck_assert_uint_eq(plan.trees[1].config.n_branches, 1);
        plan.trees[1].config.branches[0] =
            (struct branch_config){.id = BRANCH_ID_NODE(1), .kind = BRANCH_NODE};
        plan_set_policy(&group, &plan);
        ck_assert_uint_gt(plan.trees[0].config.policy.liveness_msec, 0);
    }
END_TEST

Suite *
plan_tree_suite(void)
{
    Suite *suite = suite_create("plan-tree");
    TCase *tcase = tcase_create("plan-tree");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, shape, 0, ARRAY_SIZE(shapes));
    tcase_add_loop_test(tcase, other_mode, 0, ARRAY_SIZE(other_modes));
    tcase_add_loop_test(tcase, edge_leaves, MODE_MCAST, MODE_INGRESS + 1);
    tcase_add_test(tcase, bud_without_receivers);
    tcase_add_test(tcase, outer_source_of_older_trees);
    tcase_add_loop_test(tcase, link_goes, MODE_REPLICATE, MODE_INGRESS + 1);
    tcase_add_test(tcase, sizes);
    tcase_add_test(tcase, contents);
    tcase_add_test(tcase, two_groups);
    tcase_add_test(tcase, no_common_region);
    tcase_add_test(tcase, liveness);
    tcase_add_test(tcase, liveness_in_circle);
    tcase_add_loop_test(tcase, random_trees, 0, 10);
    suite_add_tcase(suite, tcase);
    return suite;
}
