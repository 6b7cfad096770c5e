/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: groups that take a path to their root, or one plane, and receivers behind agents.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/rollout.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

#define MAX_MEMBERS 8

/* Two spines, four leaves, four agents with two uplinks, as in
 * draft-filsfils-srv6ops-srv6-ai-backend section 7. */
#define FIGURE                                                                            \
    "n1-n5 n1-n6 n2-n5 n2-n6 n3-n5 n3-n6 n4-n5 n4-n6 a11-n1 a11-n2 a12-n1 a12-n2 a13-n3 " \
    "a13-n4 a14-n3 a14-n4 h0-a11 r2-a12 r3-a13 r4-a14"

static struct plan_topology topology;
static struct plan_member members[MAX_MEMBERS];
static struct plan_group group;
static struct plan plan;
static char text_buffer[32];

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

/* "plane:n1,n5", "plane:": the nodes get that label; "-n1" and "-n1=n2" exclude a node or link. */
static void
prepare(const char *text, const char *marks)
{
    char *copy = xstrdup(marks), *save = NULL;

    plan_fixture_topology(&topology, text);
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
set_via(const char *via)
{
    ovs_strlcpy(group.via, via, sizeof group.via);
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
    const char *topology, *marks, *via, *plane;
    const char *trees; /* or the sentence why not. */
} cases[] = {
    /* Agents are edges, and reached from the nearest of their neighbours, the lowest id first. */
    {FIGURE, "", "", "",
     "n1 R >>n5 >a12 <source n5 a12; n3 R >a13 >a14 <n5 a13 a14; n5 R >>n3 <n1 n3; a12 <n1 r2; "
     "a13 <n3 r3; a14 <n3 r4; a11 >>n1 [r2 r3 r4]"},
    /* Both programs of the figure as paths of groups. */
    {FIGURE, "", "n1,n5,n3", "",
     "n1 R >a12 <n5 a12; n3 R >>n5 >a13 >a14 <source n5 a13 a14; n5 R >>n1 <n3 n1; a12 <n1 r2; "
     "a13 <n3 r3; a14 <n3 r4; a11 >>n3 ~n1,n5 [r2 r3 r4]"},
    {FIGURE, "", "n2,n6,n4", "",
     "n1 R >a12 <n5 a12; n4 R >>n5 >a13 >a14 <source n5 a13 a14; n5 R >>n1 <n4 n1; a12 <n1 r2; "
     "a13 <n4 r3; a14 <n4 r4; a11 >>n4 ~n2,n6 [r2 r3 r4]"},
    /* A spine as root, and the first switch. */
    {FIGURE, "", "n2,n6", "",
     "n1 R >a12 <n6 a12; n3 R >a13 >a14 <n6 a13 a14; n6 R >>n1 >>n3 <source n1 n3; a12 <n1 r2; "
     "a13 <n3 r3; a14 <n3 r4; a11 >>n6 ~n2 [r2 r3 r4]"},
    {FIGURE, "", "n2", "",
     "n2 R >>n5 >a12 <source n5 a12; n3 R >a13 >a14 <n5 a13 a14; n5 R >>n3 <n2 n3; a12 <n2 r2; "
     "a13 <n3 r3; a14 <n3 r4; a11 >>n2 [r2 r3 r4]"},
    /* A plane: n6 and what is of no plane. */
    {FIGURE, "left:n5 right:n6", "", "right",
     "n1 R >>n6 >a12 <source n6 a12; n3 R >a13 >a14 <n6 a13 a14; n6 R >>n3 <n1 n3; a12 <n1 r2; "
     "a13 <n3 r3; a14 <n3 r4; a11 >>n1 [r2 r3 r4]"},
    {FIGURE, "left:n5 right:n6 left:n1 left:n3", "", "right",
     "n2 R >>n6 >a12 <source n6 a12; n4 R >a13 >a14 <n6 a13 a14; n6 R >>n4 <n2 n4; a12 <n2 r2; "
     "a13 <n4 r3; a14 <n4 r4; a11 >>n2 [r2 r3 r4]"},
    /* What is excluded has no part, if the group asks for a plane or path. */
    {FIGURE, "-n5 -n3=a13", "", "any",
     "n1 R >>n6 >a12 <source n6 a12; n3 R >a14 <n6 a14; n4 R >a13 <n6 a13; "
     "n6 R >>n3 >>n4 <n1 n3 n4; a12 <n1 r2; a13 <n4 r3; a14 <n3 r4; a11 >>n1 [r2 r3 r4]"},
    {FIGURE, "-n5 -n3=a13 -n1", "", "",
     "n1 R >>n5 >a12 <source n5 a12; n3 R >a13 >a14 <n5 a13 a14; n5 R >>n3 <n1 n3; a12 <n1 r2; "
     "a13 <n3 r3; a14 <n3 r4; a11 >>n1 [r2 r3 r4]"},
    {FIGURE, "-a11=n1", "", "any",
     "n2 R >>n5 >a12 <source n5 a12; n3 R >a13 >a14 <n5 a13 a14; n5 R >>n3 <n2 n3; a12 <n2 r2; "
     "a13 <n3 r3; a14 <n3 r4; a11 >>n2 [r2 r3 r4]"},
    /* Whoever does not merge is on the way of responses to whoever does. */
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-r1 !n4", "", "n1,n2,n3", "",
     "n3 R >>n4 <source n5; n4 R >n5; n5 <n3 ~n4 r1; a9 >>n3 ~n1,n2 [r1]"},
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-r1 ~n3", "", "n1,n2", "",
     "n2 R >n4 <source n4; n4 <n2 ~n3 r1; a9 >>n2 ~n1 [r1]"},
    /* The root does not merge: all answer to the agent, by the way that packets have come. */
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-r1 n3-r2 !n2", "", "n1,n2", "",
     "n2 R >>n3; n3 R >n4 <a9 ~n2,n1 n4 r2; n4 <n3 r1; a9 >>n2 ~n1 <source n3 [r2 r1]"},
    /* One edge, which is the root; and a root that others forward to. */
    {"h0-a9 a9-n1 n1-n2 n2-r1 @n1", "", "n1,n2", "", "n2 <source r1; a9 >n2 ~n1 [r1]"},
    {"h0-a9 a9-n1 n1-n2 n2-r1 ~n1", "", "n1,n2", "", "n2 <source r1; a9 >n2 ~n1 [r1]"},
    /* The longest path. */
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-r1", "", "n1,n2,n3,n4,n5", "",
     "n5 <source r1; a9 >n5 ~n1,n2,n3,n4 [r1]"},
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-n6 n6-r1", "", "n1,n2,n3,n4,n5,n6", "",
     "via: at most 4 nodes may be in front of the root"},
    {"h0-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-n6 n6-n7 n7-r1 !n2 !n3 !n4 !n5 !n6", "", "n1", "",
     "n7 answers to n1 over 5 nodes, and 4 are the most"},
    /* Paths that cannot be. */
    {FIGURE, "", "n1,n7", "", "via: no node is called n7"},
    {FIGURE, "", "n3", "", "via: no link from a11 to n3 that may be used"},
    {FIGURE, "", "n1,n3", "", "via: no link from n1 to n3 that may be used"},
    {FIGURE, "", "n1,n5,n1", "", "via: n1 is in it twice"},
    {FIGURE, "", "n1,a12", "", "via: a12 is a source agent, and no way leads through one"},
    {FIGURE, "left:n5", "n1,n5", "right", "via: n5 is in plane left, and the group in plane right"},
    {FIGURE, "-n5", "n1,n5", "", "via: n5 is excluded"},
    {FIGURE, "-n1=n5", "n1,n5", "", "via: no link from n1 to n5 that may be used"},
    {"h0-a9 a9-n1 n1-n2 n2-r1 ~n2", "", "n1,n2", "",
     "via: n2 would be the root, a plain router: it cannot replicate"},
    {FIGURE, "left:n1 left:n2", "", "right",
     "source h0: no path, source agent a11 has no link to a switch that the group may use"},
    {FIGURE, "left:n5 left:n6", "", "right",
     "member r3: no path from n1 to a13 that the group may use"},
    {"h0-a9 a9-n1 n1-n2 r1-a9", "", "", "",
     "member r1 is behind source agent a9, which sends the group's packets: it cannot be an edge of "
     "the same group"},
    /* An agent is no way to another, nor to a switch. */
    {"h0-a9 a9-a10 a9-n1 r1-a10", "", "", "", "member r1: no path from n1 to a10"},
    {"h0-a9 a9-n1 n1-a10 a10-n2 n2-r1", "", "", "", "member r1: no path from n1 to n2"},
};

START_TEST(group_case)
    {
        char *text;

        prepare(cases[_i].topology, cases[_i].marks);
        set_via(cases[_i].via);
        ovs_strlcpy(group.plane, cases[_i].plane, sizeof group.plane);
        text = make(&plan);
        if (text) {
            ck_assert_uint_eq(plan.n_trees, 0);
        } else {
            text = plan_fixture_plan_text(&topology, &group, &plan);
        }
        ck_assert_str_eq(text, cases[_i].trees);
        free(text);
    }
END_TEST

/* To the byte. */
START_TEST(outer_program)
    {
        static const uint8_t want[16] = {0x5f, 0, 0, 0, 0, 1, 0, 5, 0, 3, 0xf0, 5};

        prepare(FIGURE, "");
        set_via("n1,n5,n3");
        ck_assert_ptr_null(make(&plan));
        ck_assert_mem_eq(&plan_agent_tree(&plan)->config.outer_program, want, sizeof want);
    }
END_TEST

static const struct {
    enum tree_mode mode;
    const char *via, *why;
} modes[] = {
    {MODE_MCAST, "n1,n5", "via: mode mcast has no such path, only replicate"},
    {MODE_INGRESS, "n1", "via: mode ingress has no such path, only replicate"},
    {MODE_MCAST, "",
     "member r2 is reached by a12, which has role agent: mode mcast is for switches only"},
    {MODE_INGRESS, "", NULL},
};

START_TEST(mode)
    {
        prepare(FIGURE, "");
        group.mode = modes[_i].mode;
        set_via(modes[_i].via);
        char *error = make(&plan);
        ck_assert_int_eq(!error, !modes[_i].why);
        if (error) {
            ck_assert_str_eq(error, modes[_i].why);
        } else {
            error = plan_fixture_plan_text(&topology, &group, &plan);
            ck_assert_str_eq(error, "a12 <a11 r2; a13 <a11 r3; a14 <a11 r4; "
                                    "a11 >a12 >a13 >a14 <source a12 a13 a14 [r2 r3 r4]");
        }
        free(error);
    }
END_TEST

/*
 * Epochs under way.
 */

/* Another path to the same root is another shape, but nothing that a newcomer must wait for: the
 * epoch goes on with the path that it has. */
START_TEST(another_path)
    {
        struct plan want;

        prepare(FIGURE, "");
        set_via("n1,n5,n3");
        ck_assert_ptr_null(make(&plan));
        ck_assert(plan_same_shape(&plan, &plan));
        set_via("n1,n6,n3");
        ck_assert_ptr_null(make(&want));
        ck_assert(!plan_same_shape(&plan, &want));
        ck_assert(plan_same_addresses(&plan, &want));
        ck_assert_ptr_null(plan_grows(&plan, &want));
        plan_join(&plan, &want);
        ck_assert(plan_same_shape(&plan, &want));
        ck_assert_mem_eq(&plan_agent_tree(&plan)->config.outer_program,
                         &plan_agent_tree(&want)->config.outer_program, 16);
        plan_uninit(&want);
        /* Another root is another tree. */
        set_via("n1,n5,n4");
        ck_assert_ptr_null(make(&want));
        char *error = plan_grows(&plan, &want);
        ck_assert_str_eq(error, "n3 would have no part in the tree");
        free(error);
        plan_uninit(&want);
    }
END_TEST

/* A root that has lost all nodes below it keeps the SID that it has, also behind a path. */
START_TEST(lost_children)
    {
        struct plan reduced, want;

        prepare("h0-a9 a9-n1 n1-n2 n2-n3 n3-r1 n2-r2", "");
        set_via("n1,n2");
        ck_assert_ptr_null(make(&plan));
        members[0].provision = members[0].copy = false;
        plan_reduce(&plan, &group, &reduced);
        char *text = plan_fixture_plan_text(&topology, &group, &reduced);
        ck_assert_str_eq(text, "n2 R <source r2; a9 >>n2 ~n1 [r2]");
        free(text);
        ck_assert_ptr_null(plan_group(&topology, &group, &want));
        text = plan_fixture_plan_text(&topology, &group, &want);
        ck_assert_str_eq(text, "n2 <source r2; a9 >n2 ~n1 [r2]");
        free(text);
        ck_assert(plan_same_shape(&reduced, &want));
        ck_assert(!plan_same_addresses(&reduced, &want));
        plan_join(&reduced, &want);
        ck_assert(plan_same_addresses(&reduced, &want));
        plan_uninit(&reduced);
        plan_uninit(&want);
    }
END_TEST

/* An agent that is an edge is no source agent: it leaves with its last receiver. */
START_TEST(edges_leave)
    {
        struct plan reduced;

        prepare(FIGURE, "");
        ck_assert_ptr_null(make(&plan));
        ck_assert_str_eq(plan_agent_tree(&plan)->node->name, "a11");
        for (size_t i = 0; i < plan.n_trees; i++) {
            ck_assert_int_eq(plan_tree_is_source(&plan.trees[i]),
                             !strcmp(plan.trees[i].node->name, "a11"));
            ck_assert_int_eq(plan.trees[i].config.open, plan_tree_is_source(&plan.trees[i]));
        }
        members[2].provision = members[2].copy = false;
        plan_reduce(&plan, &group, &reduced);
        char *text = plan_fixture_plan_text(&topology, &group, &reduced);
        ck_assert_str_eq(text,
                         "n1 R >>n5 >a12 <source n5 a12; n3 R >a13 <n5 a13; n5 R >>n3 <n1 n3; "
                         "a12 <n1 r2; a13 <n3 r3; a11 >>n1 [r2 r3]");
        free(text);
        plan_uninit(&reduced);
    }
END_TEST

/* A path is carried by its links only: a tree that could be reached otherwise is not. */
static const struct {
    const char *a, *b, *why; /* the link that goes. */
} gone[] = {
    {"n1", "n5", "no link from n1 to n5, which the group's path goes through"},
    {"n5", "n3", "no link from n5 to n3, which the group's path goes through"},
    {"a11", "n1", "no link from a11 to n1, which the group's path goes through"},
    {"n2", "n6", NULL},
    {"a11", "n2", NULL},
    {"a13", "n3", NULL}, /* as ever: some way is enough for the tree below. */
    {"a13", "r3", "member r3 is not behind a13 any more"},
};

START_TEST(carried)
    {
        prepare(FIGURE, "");
        set_via("n1,n5,n3");
        ck_assert_ptr_null(make(&plan));
        struct plan_link *l = plan_fixture_link(&topology, gone[_i].a, gone[_i].b);
        *l = topology.links[--topology.n_links];
        plan_topology_prepare(&topology);
        char *error = plan_check_carried(&topology, &group, &plan);
        ck_assert_int_eq(!error, !gone[_i].why);
        if (error) {
            ck_assert_str_eq(error, gone[_i].why);
        }
        free(error);
    }
END_TEST

/* The next step of a group that serves all members, with this path. */
static void
step(struct rollout *r, struct plan *have, const char *via, bool started)
{
    *r = (struct rollout){
        .topology = &topology,
        .have = *have,
        .source = true,
        .started = started,
        .agent_applied = true,
        .switches_applied = true,
        .was_serving = true,
        .group = group,
        .members = xcalloc(group.n_members, sizeof *r->members),
    };
    *have = (struct plan){.n_trees = 0};
    ovs_strlcpy(r->group.via, via, sizeof r->group.via);
    r->group.members = xmemdup(group.members, group.n_members * sizeof *group.members);
    for (size_t i = 0; i < group.n_members; i++) {
        r->members[i].registered = true;
    }
    rollout_step(r);
    ck_assert_msg(!r->error, "%s", r->error);
}

/* What the source agent is told: "open ~n1,n5". */
static const char *
agent_text(const struct plan *p)
{
    const struct tree_config *c = &plan_agent_tree(p)->config;

    snprintf(text_buffer, sizeof text_buffer, "%s ~n%u,n%u", c->open ? "open" : "closed",
             c->outer_program.s6_addr[5], c->outer_program.s6_addr[7]);
    return text_buffer;
}

/* Before an epoch's first packet the agent closes, all get the other path, and it opens.  After it the
 * epoch keeps the one that it has, and somebody is told. */
START_TEST(path_changes)
    {
        static const char *const agents[][2] = {
            {"closed ~n1,n5", "open ~n1,n5"},
            {"closed ~n1,n6", "open ~n1,n5"},
            {"open ~n1,n6", "open ~n1,n5"},
        };
        bool started = _i;

        prepare(FIGURE, "");
        set_via("n1,n5,n3");
        ck_assert_ptr_null(make(&plan));
        ck_assert_str_eq(agent_text(&plan), "open ~n1,n5");
        for (size_t i = 0; i < ARRAY_SIZE(agents); i++) {
            struct rollout r;

            step(&r, &plan, "n1,n6,n3", started);
            ck_assert_str_eq(agent_text(&r.plan), agents[i][started]);
            ck_assert_int_eq(r.outdated, started);
            ck_assert_int_eq(r.serving, started);
            plan = r.plan;
            r.plan = (struct plan){.n_trees = 0};
            rollout_uninit(&r);
        }
    }
END_TEST

Suite *
plan_via_suite(void)
{
    Suite *suite = suite_create("plan-via");
    TCase *via = tcase_create("via");

    tcase_add_checked_fixture(via, setup, teardown);
    tcase_add_loop_test(via, group_case, 0, ARRAY_SIZE(cases));
    tcase_add_test(via, outer_program);
    tcase_add_loop_test(via, mode, 0, ARRAY_SIZE(modes));
    tcase_add_test(via, another_path);
    tcase_add_test(via, lost_children);
    tcase_add_test(via, edges_leave);
    tcase_add_loop_test(via, carried, 0, ARRAY_SIZE(gone));
    tcase_add_loop_test(via, path_changes, 0, 2);
    suite_add_tcase(suite, via);
    return suite;
}
