/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: groups with planes.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/rollout.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

#define MAX_MEMBERS 10

/* Two spines, four leaves, four agents with two uplinks, as in
 * draft-filsfils-srv6ops-srv6-ai-backend section 7. */
#define FIGURE                                                                            \
    "n1-n5 n1-n6 n2-n5 n2-n6 n3-n5 n3-n6 n4-n5 n4-n6 a11-n1 a11-n2 a12-n1 a12-n2 a13-n3 " \
    "a13-n4 a14-n3 a14-n4 h0-a11 r2-a12 r3-a13 r4-a14"
#define SPINES "A:n5 B:n6"
#define ALL    "A:n5 B:n6 A:n1 B:n2 A:n3 B:n4"

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

/* "A:n1": the node gets that label; "-n1" and "-n1=n2" exclude a node or link. */
static void
mark(const char *marks)
{
    char *copy = xstrdup(marks), *save = NULL;

    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *peer = strchr(word, '='), *label = strchr(word, ':');

        if (peer) {
            *peer++ = '\0';
            plan_fixture_link(&topology, word + 1, peer)->excluded = true;
        } else if (label) {
            *label++ = '\0';
            ovs_strlcpy(plan_fixture_node(&topology, label)->plane, word, NAME_SIZE);
        } else {
            plan_fixture_node(&topology, word + 1)->excluded = true;
        }
    }
    free(copy);
}

static void
prepare(const char *text, const char *marks)
{
    plan_fixture_topology(&topology, text);
    mark(marks);
    group.n_planes = 2;
    ovs_strlcpy(group.planes[0], "B", NAME_SIZE); /* in whatever order. */
    ovs_strlcpy(group.planes[1], "A", NAME_SIZE);
}

/* Plans for all receivers that there are, by number. */
static char *
make(struct plan *out)
{
    group.n_members = 0;
    for (int i = 1; i < MAX_MEMBERS; i++) {
        char name[8];

        snprintf(name, sizeof name, "r%d", i);
        if (plan_find_host(&topology, name)) {
            plan_fixture_add_member(&group, name);
        }
    }
    return plan_group(&topology, &group, out);
}

static const struct {
    const char *topology, *marks, *trees, *problem;
} cases[] = {
    /* The figure, labels on spines only: the second plane takes the other leaves. */
    {FIGURE, SPINES,
     "n1 R >>n5 >a12; n2 R >>n6 >a12; n3 R >a13 >a14; n4 R >a13 >a14; n5 R >>n3; n6 R >>n4; "
     "a12 <a11 {A a11 ~n1} {B a11 ~n2} r2; a13 <a11 {A a11 ~n3,n5,n1} {B a11 ~n4,n6,n2} r3; "
     "a14 <a11 {A a11 ~n3,n5,n1} {B a11 ~n4,n6,n2} r4; "
     "a11 >>n1 >>n2 {A n1} {B n2} <source a12 a13 a14 [r2 r3 r4]",
     NULL},
    /* Also on leaves. */
    {FIGURE, "A:n5 B:n6 A:n2 B:n1 A:n3 B:n4",
     "n1 R >>n6 >a12; n2 R >>n5 >a12; n3 R >a13 >a14; n4 R >a13 >a14; n5 R >>n3; n6 R >>n4; "
     "a12 <a11 {A a11 ~n2} {B a11 ~n1} r2; a13 <a11 {A a11 ~n3,n5,n2} {B a11 ~n4,n6,n1} r3; "
     "a14 <a11 {A a11 ~n3,n5,n2} {B a11 ~n4,n6,n1} r4; "
     "a11 >>n2 >>n1 {A n2} {B n1} <source a12 a13 a14 [r2 r3 r4]",
     NULL},
    /* No labels at all: what is in the first tree is avoided. */
    {"h0-a11 a11-n1 a11-n2 n1-a12 n2-a12 r2-a12", "",
     "n1 R >a12; n2 R >a12; a12 <a11 {A a11 ~n1} {B a11 ~n2} r2; "
     "a11 >>n1 >>n2 {A n1} {B n2} <source a12 [r2]",
     NULL},
    /* A receiver behind one leaf: that is in both trees, with all that is behind it. */
    {FIGURE " r5-n3", SPINES,
     "n1 R >>n5 >a12; n2 R >>n6 >a12; n3 R >a13 >a14 <a11 {A a11 ~n5,n1} {B a11 ~n6,n2} r5; "
     "n5 R >>n3; n6 R >>n3; a12 <a11 {A a11 ~n1} {B a11 ~n2} r2; "
     "a13 <a11 {A a11 ~n3,n5,n1} {B a11 ~n3,n6,n2} r3; "
     "a14 <a11 {A a11 ~n3,n5,n1} {B a11 ~n3,n6,n2} r4; "
     "a11 >>n1 >>n2 {A n1} {B n2} <source n3 a12 a13 a14 [r5 r2 r3 r4]",
     NULL},
    /* Behind a leaf that would be the second plane's for others: these stay where they are. */
    {FIGURE " r5-n4", SPINES,
     "n1 R >>n5 >a12; n2 R >>n6 >a12; n3 R >a13 >a14; n4 <a11 {A a11 ~n5,n1} {B a11 ~n6,n2} r5; "
     "n5 R >>n3 >n4; n6 R >>n3 >n4; a12 <a11 {A a11 ~n1} {B a11 ~n2} r2; "
     "a13 <a11 {A a11 ~n3,n5,n1} {B a11 ~n3,n6,n2} r3; "
     "a14 <a11 {A a11 ~n3,n5,n1} {B a11 ~n3,n6,n2} r4; "
     "a11 >>n1 >>n2 {A n1} {B n2} <source n4 a12 a13 a14 [r5 r2 r3 r4]",
     NULL},
    /* An agent with one uplink: both roots are behind its leaf, which only shifts. */
    {"h0-a11 a11-n1 n1-n5 n1-n6 n5-n3 n5-n4 n6-n3 n6-n4 n3-r1 n4-r2", SPINES,
     "n3 <a11 {A a11 ~n5,n1} {B a11 ~n6,n1} r1; n4 <a11 {A a11 ~n5,n1} {B a11 ~n6,n1} r2; "
     "n5 R >n3 >n4; n6 R >n3 >n4; "
     "a11 >>n5 >>n6 {A n5 ~n1} {B n6 ~n1} <source n3 n4 [r1 r2]",
     NULL},
    /* A chain of switches in front of both. */
    {"h0-a11 a11-n1 n1-n2 n2-n5 n2-n6 n5-n3 n6-n3 n3-r1", SPINES,
     "n3 <a11 {A a11 ~n5,n2,n1} {B a11 ~n6,n2,n1} r1; n5 R >n3; n6 R >n3; "
     "a11 >>n5 >>n6 {A n5 ~n1,n2} {B n6 ~n1,n2} <source n3 [r1]",
     NULL},
    /* A receiver at the only first switch, which has to copy for it. */
    {"h0-a11 a11-n1 n1-n5 n1-n6 n5-n3 n6-n3 n3-r1 n1-r2", SPINES,
     "n1 R >>n5 <a11 {A a11} r2; n3 <a11 {A a11 ~n5,n1} r1; n5 R >n3; "
     "a11 >>n1 {A n1} <source n1 n3 [r2 r1]",
     "plane B has no way: member r1: no path from n1 to n3 in it"},
    /* One edge, right behind the agent. */
    {"h0-a11 a11-n1 a11-n2 n1-r1 n1-n2", "",
     "n1 <a11 {A a11} {B a11 ~n2} r1; n2 R >n1; "
     "a11 >n1 >>n2 {A n1} {B n2} <source n1 [r1]",
     NULL},
    /* An Open vSwitch replicates, a plain router has no part, and what does not merge only copies. */
    {"h0-a11 a11-n1 a11-n2 n1-n5 n2-n6 n5-n3 n6-n3 n1-n7 n7-n3 n3-r1 @n5 !n6 ~n7", "",
     "n1 R >>n5; n2 R >>n6; n3 <a11 {A a11 ~n5,n1} {B a11 ~n6,n2} r1; n5 R >n3; n6 R >n3; "
     "a11 >>n1 >>n2 {A n1} {B n2} <source n3 [r1]",
     NULL},
    /* One way only. */
    {FIGURE, SPINES " -n6",
     "n1 R >>n5 >a12; n3 R >a13 >a14; n5 R >>n3; "
     "a12 <a11 {A a11 ~n1} r2; a13 <a11 {A a11 ~n3,n5,n1} r3; a14 <a11 {A a11 ~n3,n5,n1} r4; "
     "a11 >>n1 {A n1} <source a12 a13 a14 [r2 r3 r4]",
     "plane B has no way: member r3: no path from n2 to a13 in it"},
    {FIGURE, SPINES " -n5",
     "n1 R >>n6 >a12; n3 R >a13 >a14; n6 R >>n3; "
     "a12 <a11 {B a11 ~n1} r2; a13 <a11 {B a11 ~n3,n6,n1} r3; a14 <a11 {B a11 ~n3,n6,n1} r4; "
     "a11 >>n1 {B n1} <source a12 a13 a14 [r2 r3 r4]",
     "plane A has no way: member r3: no path from n1 to a13 in it"},
    {"h0-a11 a11-n1 n1-r1", "", "n1 <a11 {A a11} r1; a11 >n1 {A n1} <source n1 [r1]",
     "plane B has no way: it would be the same as plane A"},
    {"h0-a11 a11-n1 a11-n2 n1-n3 n2-n3 n3-r1", "B:n3 A:n1 A:n2", NULL,
     "plane A has no way: member r1: no path from n1 to n3 in it; "
     "plane B has no way: source agent a11 has no link to a switch in it"},
    {FIGURE, SPINES " -n5 -n6", NULL,
     "plane A has no way: member r3: no path from n1 to a13 in it; "
     "plane B has no way: member r3: no path from n1 to a13 in it"},
    /* Too many nodes on the way back. */
    {"h0-a11 a11-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-n6 n6-r1", "", NULL,
     "n6 answers to a11 over 5 nodes in plane A, and 4 are the most"},
};

START_TEST(group_case)
    {
        char *error, *text;

        prepare(cases[_i].topology, cases[_i].marks);
        error = make(&plan);
        if (!cases[_i].trees) {
            ck_assert_uint_eq(plan.n_trees, 0);
            ck_assert_ptr_nonnull(error);
            ck_assert_str_eq(error, cases[_i].problem);
            free(error);
            return;
        }
        ck_assert_msg(!error, "%s", error);
        text = plan_fixture_plan_text(&topology, &group, &plan);
        ck_assert_str_eq(text, cases[_i].trees);
        free(text);
        text = plan_planes_problem(&topology, &group, &plan);
        ck_assert_int_eq(!text, !cases[_i].problem);
        if (text) {
            ck_assert_str_eq(text, cases[_i].problem);
        }
        free(text);
        ck_assert_uint_eq(plan_height(&plan), 2);
    }
END_TEST

/* Whatever a plan is, each plane leads to each edge once, and no node has two answers to what it
 * copies to. */
START_TEST(to_the_byte)
    {
        static const uint8_t down[16] = {0x5f, 0, 0, 0, 0, 1, 0, 5, 0xf0, 5};
        static const uint8_t up[16] = {0x5f, 0, 0, 0, 0, 5, 0, 1, 0, 11, 0xe0, 2};

        prepare(cases[5].topology, cases[5].marks);
        ck_assert_ptr_null(make(&plan));
        const struct tree_config *agent = &plan_agent_tree(&plan)->config;
        ck_assert_mem_eq(&agent->planes[0].program, down, sizeof down);
        ck_assert_mem_eq(&plan.trees[0].config.parent_planes[0].program, up, sizeof up);
        ck_assert(agent->root && agent->policy.liveness_msec == 2 * group.policy.liveness_msec);
    }
END_TEST

static const struct {
    const char *topology, *marks, *via, *plane;
    enum tree_mode mode;
    const char *why;
} refusals[] = {
    {FIGURE, SPINES, "n1", "", MODE_REPLICATE,
     "planes: a group with a path or a plane to its root has no planes"},
    {FIGURE, SPINES, "", "A", MODE_REPLICATE,
     "planes: a group with a path or a plane to its root has no planes"},
    {FIGURE, SPINES, "", "", MODE_INGRESS, "planes: mode ingress has none, only replicate"},
    {FIGURE, SPINES, "", "", MODE_MCAST, "planes: mode mcast has none, only replicate"},
    {"h0-n1 n1-r1", "", "", "", MODE_REPLICATE,
     "source h0 is behind switch n1: a source must be behind a source agent"},
    {"h0-a9 n1-r1", "", "", "", MODE_REPLICATE,
     "plane A has no way: source agent a9 has no link to a switch in it; "
     "plane B has no way: source agent a9 has no link to a switch in it"},
    {"h0-a9 a9-n1 n1-n2 r1-n2 !n2", "", "", "", MODE_REPLICATE,
     "member r1: its edge n2 does not aggregate"},
};

START_TEST(refusal)
    {
        prepare(refusals[_i].topology, refusals[_i].marks);
        ovs_strlcpy(group.via, refusals[_i].via, sizeof group.via);
        ovs_strlcpy(group.plane, refusals[_i].plane, sizeof group.plane);
        group.mode = refusals[_i].mode;
        char *error = make(&plan);
        ck_assert_ptr_nonnull(error);
        ck_assert_str_eq(error, refusals[_i].why);
        free(error);
    }
END_TEST

/* A member is checked with those that are in the tree: there must be a plane to all of them. */
START_TEST(members_share_a_plane)
    {
        prepare("h0-a11 a11-n1 a11-n2 n1-r1 n2-r2", "A:n1 B:n2");
        ck_assert_ptr_nonnull(plan_find_host(&topology, "r1"));
        plan_fixture_add_member(&group, "r1");
        plan_fixture_add_member(&group, "r2");
        members[0].copy = members[1].copy = false;
        ck_assert_ptr_null(plan_check_member(&topology, &group, "r1"));
        ck_assert_ptr_null(plan_check_member(&topology, &group, "r2"));
        members[0].copy = true;
        char *error = plan_check_member(&topology, &group, "r2");
        ck_assert_str_eq(error, "plane A has no way: member r2: no path from n1 to n2 in it; "
                                "plane B has no way: member r1: no path from n2 to n1 in it");
        free(error);
    }
END_TEST

/*
 * Epochs under way.
 */

static void
check_text(const struct plan *p, const char *want)
{
    char *text = plan_fixture_plan_text(&topology, &group, p);

    ck_assert_str_eq(text, want);
    free(text);
}

/* Who leaves takes along what only he needs, in both planes. */
START_TEST(members_leave)
    {
        struct plan reduced;

        prepare(FIGURE, SPINES);
        ck_assert_ptr_null(make(&plan));
        members[1].provision = members[1].copy = members[2].provision = members[2].copy = false;
        plan_reduce(&plan, &group, &reduced);
        check_text(&reduced, "n1 R >a12; n2 R >a12; a12 <a11 {A a11 ~n1} {B a11 ~n2} r2; "
                             "a11 >>n1 >>n2 {A n1} {B n2} <source a12 [r2]");
        plan_uninit(&reduced);
        /* An edge with others behind it answers no more. */
        plan_uninit(&plan);
        plan_topology_uninit(&topology);
        prepare(FIGURE " r5-n3", SPINES);
        ck_assert_ptr_null(make(&plan));
        members[3].provision = members[3].copy = false;
        plan_reduce(&plan, &group, &reduced);
        check_text(&reduced,
                   "n1 R >>n5 >a12; n2 R >>n6 >a12; n3 R >a13 >a14; n5 R >>n3; n6 R >>n3; "
                   "a12 <a11 {A a11 ~n1} {B a11 ~n2} r2; "
                   "a13 <a11 {A a11 ~n3,n5,n1} {B a11 ~n3,n6,n2} r3; "
                   "a14 <a11 {A a11 ~n3,n5,n1} {B a11 ~n3,n6,n2} r4; "
                   "a11 >>n1 >>n2 {A n1} {B n2} <source a12 a13 a14 [r2 r3 r4]");
        plan_uninit(&reduced);
    }
END_TEST

/* Plans with the first n members, and with all of them. */
static char *
grow(size_t n, struct plan *want)
{
    char *error = make(want);

    ck_assert_msg(!error, "%s", error);
    for (size_t i = 0; i < group.n_members; i++) {
        members[i].provision = members[i].copy = i < n;
    }
    error = plan_group(&topology, &group, &plan);
    ck_assert_msg(!error, "%s", error);
    return plan_grows(&plan, want);
}

START_TEST(members_join)
    {
        struct plan want;

        prepare(FIGURE, SPINES);
        ck_assert_ptr_null(grow(1, &want));
        ck_assert(!plan_same_shape(&plan, &want));
        plan_join(&plan, &want);
        ck_assert_str_eq(plan_agent_tree(&want)->config.planes[1].name, "B");
        for (size_t i = 0; i < want.n_trees; i++) {
            for (size_t j = 0; j < want.trees[i].config.n_branches; j++) {
                const struct branch_config *b = &want.trees[i].config.branches[j];
                bool old = !strcmp(b->name, "r2") || !strcmp(b->name, "a12");

                ck_assert_int_eq(b->join, old ? BRANCH_COUNTS : BRANCH_WAITS);
            }
        }
        plan_uninit(&want);
    }
END_TEST

/* A newcomer that would move others in one of the planes has to wait. */
START_TEST(newcomer_waits)
    {
        struct plan want;

        prepare(FIGURE " r5-n3", SPINES);
        char *error = grow(3, &want);
        ck_assert_str_eq(error, "n4 would have no part in the tree");
        free(error);
        plan_uninit(&want);
        plan_uninit(&plan);
        plan_topology_uninit(&topology);
        prepare("h0-a11 a11-n1 a11-n2 n1-r1 n2-n1 n1-n3 n3-r3", "B:n2 A:n3");
        error = grow(1, &want);
        ck_assert_str_eq(error, "the group would have no plane B");
        free(error);
        plan_uninit(&want);
    }
END_TEST

/* An epoch goes on with the planes that it has, when there could be more. */
START_TEST(epoch_keeps_planes)
    {
        struct plan want;
        struct plan_group kept;

        prepare(FIGURE, SPINES " -n6");
        ck_assert_ptr_null(make(&plan));
        plan_fixture_node(&topology, "n6")->excluded = false;
        ck_assert_ptr_null(make(&want));
        ck_assert(!plan_same_shape(&plan, &want));
        char *error = plan_grows(&plan, &want);
        ck_assert_str_eq(error, "the group would have a plane B");
        free(error);
        plan_uninit(&want);
        kept = group;
        plan_keep_planes(&plan, &kept);
        ck_assert_uint_eq(kept.n_planes, 1);
        ck_assert_str_eq(kept.planes[0], "A");
        ck_assert_ptr_null(plan_group(&topology, &kept, &want));
        ck_assert(plan_same_shape(&plan, &want));
        plan_uninit(&want);
        error = plan_planes_problem(&topology, &group, &plan);
        ck_assert_str_eq(error, "it has 1 of 2 planes as long as this epoch lasts");
        free(error);
    }
END_TEST

/* What an operator excludes, or what goes, takes one plane out of use; the group lasts as long as
 * one is carried. */
static const struct {
    const char *marks; /* that are made later, */
    const char *a, *b; /* the link that goes; */
    const char *gone;  /* the node that goes. */
    const char *agent, *problem, *carried;
} later[] = {
    {"-n5", NULL, NULL, NULL, "{A! n1} {B n2}", "plane A is out of use: n5 is excluded", NULL},
    {"-n6=n4", NULL, NULL, NULL, "{A n1} {B! n2}",
     "plane B is out of use: the link between n6 and n4 is excluded", NULL},
    {"-a11=n2", NULL, NULL, NULL, "{A n1} {B! n2}",
     "plane B is out of use: the link between a11 and n2 is excluded", NULL},
    {"-n6=n3", NULL, NULL, NULL, "{A n1} {B n2}", NULL, NULL},
    {"-n5 -n4", NULL, NULL, NULL, "{A! n1} {B! n2}", "plane A is out of use: n5 is excluded", NULL},
    {"", "n1", "n5", NULL, "{A! n1} {B n2}",
     "plane A is out of use: no link from n1 to n5, which it goes through", NULL},
    {"", "a13", "n4", NULL, "{A n1} {B! n2}",
     "plane B is out of use: no link from n4 to a13, which it goes through", NULL},
    {"", NULL, NULL, "n5", "{A! n1} {B n2}",
     "plane A is out of use: node with id 5, which it goes through, was deleted", NULL},
    {"", "n2", "n6", "n5", "{A! n1} {B! n2}",
     "plane A is out of use: node with id 5, which it goes through, was deleted",
     "plane A: node with id 5, which it goes through, was deleted"},
    {"", "a13", "r3", NULL, "{A n1} {B n2}", NULL, "member r3 is not behind a13 any more"},
    {"", "a11", "h0", NULL, "{A n1} {B n2}", NULL, "source h0 is not behind a11 any more"},
};

static void
remove_node(const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < topology.n_links; i++) {
        if (strcmp(topology.links[i].a, name) && strcmp(topology.links[i].b, name)) {
            topology.links[n++] = topology.links[i];
        }
    }
    topology.n_links = n;
    for (size_t i = 0; i < plan.n_trees; i++) {
        if (!strcmp(plan.trees[i].node->name, name)) {
            tree_config_uninit(&plan.trees[i].config);
            memmove(&plan.trees[i], &plan.trees[i + 1],
                    (--plan.n_trees - i) * sizeof plan.trees[0]);
        }
    }
    /* Nodes that come before it stay where they are; the plan refers to them. */
    for (size_t i = 0; i < topology.n_nodes; i++) {
        if (!strcmp(topology.nodes[i].name, name)) {
            topology.nodes[i].id = 999;
            ovs_strlcpy(topology.nodes[i].name, "gone", NAME_SIZE);
        }
    }
}

/* "{A n1} {B n2}". */
static char *
agent_planes(void)
{
    char *text = plan_fixture_plan_text(&topology, &group, &plan);
    char *planes = strstr(text, " {A");
    char *last = NULL;

    for (; planes; planes = strstr(planes + 1, " {A")) {
        last = planes + 1;
    }
    ck_assert_ptr_nonnull(last);
    char *result = xmemdup0(last, strcspn(last, "<") - 1);
    free(text);
    return result;
}

START_TEST(what_goes)
    {
        prepare(FIGURE, SPINES);
        ck_assert_ptr_null(make(&plan));
        if (later[_i].gone) {
            remove_node(later[_i].gone);
        }
        if (later[_i].a) {
            struct plan_link *l = plan_fixture_link(&topology, later[_i].a, later[_i].b);

            topology.n_links--; /* they stay sorted. */
            memmove(l, l + 1, (size_t) (&topology.links[topology.n_links] - l) * sizeof *l);
        }
        mark(later[_i].marks);
        ovs_strlcpy(group.preferred_plane, "C", NAME_SIZE);
        plan_set_planes(&topology, &group, &plan);
        struct plan_tree *agent = CONST_CAST(struct plan_tree *, plan_agent_tree(&plan));
        for (size_t i = 0; i < plan.n_trees; i++) {
            const struct tree_config *c = &plan.trees[i].config;

            for (size_t j = 0; j < c->n_parent_planes; j++) {
                ck_assert_int_eq(c->parent_planes[j].usable, agent->config.planes[j].usable);
            }
        }
        char *problem = plan_planes_problem(&topology, &group, &plan);
        ck_assert_int_eq(!problem, !later[_i].problem);
        if (problem) {
            ck_assert_str_eq(problem, later[_i].problem);
        }
        free(problem);
        char *error = plan_check_carried(&topology, &group, &plan);
        ck_assert_int_eq(!error, !later[_i].carried);
        if (error) {
            ck_assert_str_eq(error, later[_i].carried);
        }
        free(error);
        bool is_text = !later[_i].gone && (!later[_i].a || later[_i].a[0] != 'a');
        if (is_text) { /* else ports and names are gone, too. */
            char *text = agent_planes();
            ck_assert_str_eq(text, later[_i].agent);
            free(text);
        }
    }
END_TEST

START_TEST(preferred)
    {
        prepare(FIGURE, SPINES);
        ovs_strlcpy(group.preferred_plane, "B", NAME_SIZE);
        ck_assert_ptr_null(make(&plan));
        char *text = agent_planes();
        ck_assert_str_eq(text, "{A n1} {B+ n2}");
        free(text);
    }
END_TEST

/* A step of a group whose members are all registered. */
static void
step(struct rollout *r, bool started)
{
    *r = (struct rollout){
        .topology = &topology,
        .have = plan,
        .source = true,
        .started = started,
        .agent_applied = true,
        .switches_applied = true,
        .was_serving = true,
        .group = group,
        .members = xcalloc(group.n_members, sizeof *r->members),
    };
    r->group.members = xmemdup(group.members, group.n_members * sizeof *group.members);
    for (size_t i = 0; i < group.n_members; i++) {
        r->members[i].registered = true;
    }
    rollout_step(r);
    plan = r->plan;
    r->plan = (struct plan){.n_trees = 0};
}

/* An epoch under way gets to know what is excluded, and goes on; before its first packet it is built
 * anew. */
START_TEST(rollout_of_an_exclusion)
    {
        struct rollout r;

        prepare(FIGURE, SPINES);
        ck_assert_ptr_null(make(&plan));
        step(&r, true);
        ck_assert(!r.error && r.serving && !r.outdated);
        rollout_uninit(&r);
        mark("-n6");
        step(&r, true);
        ck_assert(!r.error && r.serving && r.outdated);
        ck_assert(plan_agent_tree(&plan)->config.open);
        char *text = agent_planes();
        ck_assert_str_eq(text, "{A n1} {B! n2}");
        free(text);
        rollout_uninit(&r);
        for (int i = 0; i < 3; i++) {
            step(&r, false);
            ck_assert_msg(!r.error, "%s", r.error);
            ck_assert_int_eq(r.serving, 0);
            rollout_uninit(&r);
        }
        step(&r, false);
        ck_assert(r.serving);
        rollout_uninit(&r);
        text = agent_planes();
        ck_assert_str_eq(text, "{A n1}");
        free(text);
    }
END_TEST

Suite *
plan_planes_suite(void)
{
    Suite *suite = suite_create("plan-planes");
    TCase *planes = tcase_create("planes");

    tcase_add_checked_fixture(planes, setup, teardown);
    tcase_add_loop_test(planes, group_case, 0, ARRAY_SIZE(cases));
    tcase_add_test(planes, to_the_byte);
    tcase_add_loop_test(planes, refusal, 0, ARRAY_SIZE(refusals));
    tcase_add_test(planes, members_share_a_plane);
    tcase_add_test(planes, members_leave);
    tcase_add_test(planes, members_join);
    tcase_add_test(planes, newcomer_waits);
    tcase_add_test(planes, epoch_keeps_planes);
    tcase_add_loop_test(planes, what_goes, 0, ARRAY_SIZE(later));
    tcase_add_test(planes, preferred);
    tcase_add_test(planes, rollout_of_an_exclusion);
    suite_add_tcase(suite, planes);
    return suite;
}
