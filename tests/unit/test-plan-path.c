/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: paths between two hosts, their ranks, names and programs.
 */
#include <config.h>

#include "ctl/plan/path.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

/* The figure of draft-filsfils-srv6ops-srv6-ai-backend section 7: leaves 1 to 4, spines 5 and 6, four
 * agents, each linked to two leaves. */
#define FIGURE                                                                                   \
    "n256-n1280 n256-n1536 n512-n1280 n512-n1536 n768-n1280 n768-n1536 n1024-n1280 n1024-n1536 " \
    "a161-n256 a161-n512 a162-n256 a162-n512 a163-n768 a163-n1024 a164-n768 a164-n1024 "         \
    "r1-a161 r2-a162 r3-a163 r4-a164"

static struct plan_topology topology;

static void
teardown(void)
{
    plan_topology_uninit(&topology);
}

/* "NAME PROGRAM", or "NAME (PROBLEM)"; "!" before it: excluded, "*": disjoint; "[PLANE]" behind it.
 * Joined by "; ". */
static char *
paths_text(const char *from, const char *to)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    struct plan_path *paths;
    size_t n;
    char *error = plan_paths(&topology, from, to, &paths, &n);

    if (error) {
        ck_assert_ptr_null(paths);
        ck_assert_uint_eq(n, 0);
        return error;
    }
    for (size_t i = 0; i < n; i++) {
        const struct plan_path *p = &paths[i];
        char program[PROGRAM_TEXT_SIZE];

        program_format(&p->program, program);
        ck_assert_int_eq(!p->problem, p->program.n != 0);
        ds_put_format(&s, "%s%s%s%s ", i ? "; " : "", p->excluded ? "!" : "",
                      p->disjoint ? "*" : "", p->name);
        ds_put_format(&s, p->problem ? "(%s)" : "%s", p->problem ? p->problem : program);
        if (p->plane[0]) {
            ds_put_format(&s, " [%s]", p->plane);
        }
    }
    plan_paths_free(paths, n);
    return ds_steal_cstr(&s);
}

static void
check_paths(const char *from, const char *to, const char *want)
{
    char *text = paths_text(from, to);

    ck_assert_str_eq(text, want);
    free(text);
}

/* Proves AB-18, AB-19 and AB-28: the programs to the byte, in the form that the draft has. */
START_TEST(figure)
    {
        plan_fixture_topology(&topology, FIGURE);
        topology.path_form = PATH_FORM_USD;
        check_paths(
            "r1", "r3",
            "*n256,n1280,n768 5f00:0:100:500:300::; *n512,n1536,n1024 5f00:0:200:600:400::; "
            "n256,n1536,n768 5f00:0:100:600:300::; n512,n1280,n1024 5f00:0:200:500:400::; "
            "n256,n1280,n1024 5f00:0:100:500:400::; n512,n1536,n768 5f00:0:200:600:300::; "
            "n256,n1536,n1024 5f00:0:100:600:400::; n512,n1280,n768 5f00:0:200:500:300::");
        check_paths("r1", "r2", "*n256 5f00:0:100::; *n512 5f00:0:200::");
        topology.path_form = PATH_FORM_DT6;
        check_paths("r1", "r2", "*n256 5f00:0:100:e003::; *n512 5f00:0:200:e003::");
        topology.path_form = PATH_FORM_AUTO;
        check_paths("r1", "r2", "*n256 5f00:0:100:a2::; *n512 5f00:0:200:a2::");
    }
END_TEST


/* Programs of one container and of more.  Each way is the only one. */
static const struct {
    const char *topology;
    enum path_form form;
    const char *paths; /* from r1 to r2. */
} programs[] = {
    /* Three tiers, by any form: six uSIDs. */
    {"r1-a1 a1-n11 n11-n21 n21-n31 n31-n22 n22-n12 n12-a2 a2-r2", PATH_FORM_AUTO,
     "*n11,n21,n31,n22,n12 5f00:0:b:15:1f:16:c:2"},
    {"r1-a1 a1-n11 n11-n21 n21-n31 n31-n22 n22-n12 n12-a2 a2-r2", PATH_FORM_DT6,
     "*n11,n21,n31,n22,n12 5f00:0:b:15:1f:16:c:e003"},
    /* A host's switch is the first node itself: the program begins behind it. */
    {"r1-n11 n11-n21 n21-n31 n31-r2", PATH_FORM_AUTO, "*n21,n31 5f00:0:15:1f::"},
    {"r1-n11 n11-n21 n21-n31 n31-r2", PATH_FORM_DT6, "*n21,n31 5f00:0:15:1f:e003::"},
    {"r1-n11 n11-n31 n31-r2", PATH_FORM_USD, "*n31 5f00:0:1f::"},
    {"r1-a1 a1-n31 n31-r2", PATH_FORM_USD, "*n31 5f00:0:1f::"},
    /* Straight to the agent. */
    {"r1-n11 n11-a2 a2-r2", PATH_FORM_AUTO, "*direct 5f00:0:2::"},
    {"r1-n11 n11-a2 a2-r2", PATH_FORM_USD,
     "*direct (no switch is between n11 and a2: none can end a path)"},
    {"r1-a1 a1-a2 a2-r2", PATH_FORM_AUTO, "*direct 5f00:0:2::"},
    /* More than six. */
    {"r1-a1 a1-n11 n11-n12 n12-n13 n13-n14 n14-n15 n15-n16 n16-n17 n17-a2 a2-r2", PATH_FORM_AUTO,
     "*n11,n12,n13,n14,n15,n16,n17 5f00:0:b:c:d:e:f:10,5f00:0:11:2::"},
    {"r1-a1 a1-n11 n11-n12 n12-n13 n13-n14 n14-n15 n15-n16 n16-a2 a2-r2", PATH_FORM_DT6,
     "*n11,n12,n13,n14,n15,n16 5f00:0:b:c:d:e:f:0,5f00:0:10:e003::"},
    {"r1-a1 a1-n11 n11-n12 n12-n13 n13-n14 n14-n15 n15-n16 n16-n17 n17-a2 a2-r2 ~n16",
     PATH_FORM_AUTO,
     "*n11,n12,n13,n14,n15,n16,n17 (n16 is of role router: it cannot end a container that another "
     "one follows)"},
    {"r1-a1 a1-n11 n11-n12 n12-n13 n13-n14 n14-n15 n15-n16 n16-n17 n17-a2 a2-r2 ~n15 @n17",
     PATH_FORM_AUTO, "*n11,n12,n13,n14,n15,n16,n17 5f00:0:b:c:d:e:f:10,5f00:0:11:2::"},
    {"r1-a1 a1-n11 n11-n12 n12-n13 n13-n14 n14-n15 n15-n16 n16-n17 n17-n18 n18-n19 n19-n20 n20-n21 "
     "n21-n22 n22-n23 n23-n24 n24-n25 n25-n26 n26-n27 n27-n28 n28-n29 n29-n30 n30-n31 n31-n32 "
     "n32-n33 n33-n34 n34-n35 n35-r2",
     PATH_FORM_AUTO,
     "*n11,n12,n13,n14,n15,n16,n17,n18,n19,n20,n21,n22,n23,n24,n25,n26,n27,n28,n29,n30,n31,n32,n33,"
     "n34,n35 (it has 25 steps, and a program has room for 4 containers)"},
    /* Who can end a path. */
    {"r1-a1 a1-n11 n11-a2 a2-r2 @n11", PATH_FORM_USD, "*n11 (n11 is an ovs: it cannot end a path)"},
    {"r1-a1 a1-n11 n11-a2 a2-r2 @n11", PATH_FORM_DT6, "*n11 (n11 is an ovs: it cannot end a path)"},
    {"r1-a1 a1-n11 n11-a2 a2-r2 @n11", PATH_FORM_AUTO, "*n11 5f00:0:b:2::"},
    {"r1-a1 a1-n11 n11-r2 @n11", PATH_FORM_AUTO, "*n11 (n11 is an ovs: it cannot end a path)"},
    {"r1-a1 a1-n11 n11-r2", PATH_FORM_AGENT, "*n11 (n11 is no source agent: it cannot end a path)"},
    {"r1-a1 a1-n11 n11-r2 ~n11", PATH_FORM_AUTO, "*n11 5f00:0:b:e003::"},
    {"r1-a1 a1-n11 n11-r2 ~n11", PATH_FORM_USD, "*n11 5f00:0:b::"},
    {"r1-a1 a1-n11 n11-a2 a2-r2 ~n11", PATH_FORM_AUTO, "*n11 5f00:0:b:2::"},
    /* Agents are no way. */
    {"r1-a1 a1-n11 n11-a3 a3-n12 n12-r2", PATH_FORM_AUTO, "no way from a1 to n12"},
    {"r1-a1 a1-n11 n11-a3 a3-n12 n11-n13 n13-n12 n12-r2", PATH_FORM_AUTO,
     "*n11,n13,n12 5f00:0:b:d:c::"},
    /* Parallel links: the port says which, where somebody can tell them apart. */
    {"r1-a1 a1-n11 n11-n12 n11-n12 n12-r2", PATH_FORM_AUTO,
     "*n11:n12,n12 5f00:0:b:e102:c::; n11:n12.1,n12 5f00:0:b:e103:c::"},
    {"r1-a1 a1-n11 n11-n12 n11-n12 n12-r2 @n11", PATH_FORM_AUTO, "*n11,n12 5f00:0:b:c::"},
    {"r1-n11 n11-n12 n11-n12 n12-r2", PATH_FORM_AUTO,
     "*n11:n12,n12 5f00:0:c::; *n11:n12.1,n12 5f00:0:c::"},
    {"r1-a1 a1-n11 a1-n11 n11-r2", PATH_FORM_AUTO,
     "*a1:n11,n11 5f00:0:b::; *a1:n11.1,n11 5f00:0:b::"},
    {"r1-a1 a1-n11 n11-a2 n11-a2 a2-r2", PATH_FORM_AUTO,
     "*n11:a2 5f00:0:b:e102:2::; n11:a2.1 5f00:0:b:e103:2::"},
    {"r1-a1 a1-n11 n11-a2 n11-a2 a2-r2", PATH_FORM_USD, "*n11 5f00:0:b::"},
    /* The most disjoint ways, even if the only shortest one is in none of them: by n5, two have to
     * be given up for it. */
    {"r1-n1 n1-n3 n3-n4 n4-n2 n1-n5 n5-n4 n3-n6 n6-n2 n2-r2", PATH_FORM_AUTO,
     "*n3,n6,n2 5f00:0:3:6:2::; *n5,n4,n2 5f00:0:5:4:2::; n3,n4,n2 5f00:0:3:4:2::"},
    {"r1-n1 n1-n3 n3-n4 n4-n2 n1-n5 n5-n6 n6-n4 n3-n7 n7-n8 n8-n2 n2-r2", PATH_FORM_AUTO,
     "*n3,n7,n8,n2 5f00:0:3:7:8:2::; *n5,n6,n4,n2 5f00:0:5:6:4:2::; n3,n4,n2 5f00:0:3:4:2::"},
    /* Hosts between which there is nothing to choose, and none. */
    {"r1-n1 n1-r2", PATH_FORM_AUTO, "r1 and r2 are both behind n1: there is nothing to choose"},
    {"r1-n1 r2", PATH_FORM_AUTO, "host r2 has no link to a node"},
    {"r1 r2-n1", PATH_FORM_AUTO, "host r1 has no link to a node"},
    {"r1-n1", PATH_FORM_AUTO, "host r2: no such host"},
    {"r2-n1", PATH_FORM_AUTO, "host r1: no such host"},
    {"r1-n1 n1-n2 n2-r2 @n1", PATH_FORM_AUTO,
     "host r1 is behind n1, which has role ovs: it cannot place packets"},
};

START_TEST(program)
    {
        plan_fixture_topology(&topology, programs[_i].topology);
        topology.path_form = programs[_i].form;
        check_paths("r1", "r2", programs[_i].paths);
    }
END_TEST

static struct plan_path_rule *
add_rule(enum path_rule_kind kind, const char *from, const char *to, const char *path)
{
    struct plan_path_rule *rule;

    if (!topology.path_rules) {
        topology.path_rules = xcalloc(200, sizeof *rule);
    }
    rule = &topology.path_rules[topology.n_path_rules++];
    rule->kind = kind;
    ovs_strlcpy(rule->from, from, sizeof rule->from);
    ovs_strlcpy(rule->to, to, sizeof rule->to);
    ovs_strlcpy(rule->path, path, sizeof rule->path);
    return rule;
}

/* A path is in a plane if no node of it says otherwise. */
START_TEST(planes)
    {
        plan_fixture_topology(&topology, "r1-a1 a1-n11 n11-n5 n11-n6 n11-n7 n5-n12 n6-n12 n7-n12 "
                                         "n12-r2");
        strcpy(plan_fixture_node(&topology, "n5")->plane, "left");
        strcpy(plan_fixture_node(&topology, "n6")->plane, "right");
        check_paths("r1", "r2",
                    "*n11,n5,n12 5f00:0:b:5:c:: [left]; n11,n6,n12 5f00:0:b:6:c:: [right]; "
                    "n11,n7,n12 5f00:0:b:7:c::");
        strcpy(plan_fixture_node(&topology, "n12")->plane, "left");
        check_paths("r1", "r2",
                    "*n11,n5,n12 5f00:0:b:5:c:: [left]; n11,n6,n12 5f00:0:b:6:c::; "
                    "n11,n7,n12 5f00:0:b:7:c:: [left]");
        strcpy(plan_fixture_node(&topology, "n11")->plane, "right");
        check_paths("r1", "r2",
                    "*n11,n5,n12 5f00:0:b:5:c::; n11,n6,n12 5f00:0:b:6:c::; "
                    "n11,n7,n12 5f00:0:b:7:c::");
    }
END_TEST

/* Who is excluded is in no path that is used, but in the list. */
START_TEST(excluded)
    {
        plan_fixture_topology(&topology, "r1-a1 a1-n11 n11-n5 n11-n6 n5-n12 n6-n12 n12-a2 a2-r2 "
                                         "a2-r3 a1-r4");
        plan_fixture_node(&topology, "n5")->excluded = true;
        check_paths("r1", "r2", "!*n11,n5,n12 5f00:0:b:5:c:2::; n11,n6,n12 5f00:0:b:6:c:2::");
        plan_fixture_node(&topology, "n5")->excluded = false;
        plan_fixture_link(&topology, "n6", "n12")->excluded = true;
        check_paths("r1", "r2", "*n11,n5,n12 5f00:0:b:5:c:2::; !n11,n6,n12 5f00:0:b:6:c:2::");
        check_paths("r2", "r1", "*n12,n5,n11 5f00:0:c:5:b:1::; !n12,n6,n11 5f00:0:c:6:b:1::");
        plan_fixture_link(&topology, "n6", "n12")->excluded = false;
        plan_fixture_link(&topology, "a2", "n12")->excluded = true;
        check_paths("r1", "r2", "!*n11,n5,n12 5f00:0:b:5:c:2::; !n11,n6,n12 5f00:0:b:6:c:2::");
        plan_fixture_link(&topology, "a2", "n12")->excluded = false;
        /* Not the ends: they are on no way. */
        plan_fixture_node(&topology, "a1")->excluded =
            plan_fixture_node(&topology, "a2")->excluded = true;
        /* A rule is for one direction, and for all hosts of the first node. */
        add_rule(PATH_EXCLUDE, "r1", "r2", "n11,n6,n12");
        add_rule(PATH_EXCLUDE, "nobody", "r2", "n11,n5,n12");
        check_paths("r1", "r2", "*n11,n5,n12 5f00:0:b:5:c:2::; !n11,n6,n12 5f00:0:b:6:c:2::");
        check_paths("r4", "r2", "*n11,n5,n12 5f00:0:b:5:c:2::; !n11,n6,n12 5f00:0:b:6:c:2::");
        check_paths("r1", "r3", "*n11,n5,n12 5f00:0:b:5:c:2::; n11,n6,n12 5f00:0:b:6:c:2::");
        check_paths("r2", "r1", "*n12,n5,n11 5f00:0:c:5:b:1::; n12,n6,n11 5f00:0:c:6:b:1::");
    }
END_TEST

/* The programs that an agent's neighbours take from it. */
START_TEST(permitted)
    {
        plan_fixture_topology(&topology, "r1-a1 a1-n11 a1-n12 n11-n5 n12-n5 n5-r2");
        plan_fixture_node(&topology, "a1")->n_programs = 1;
        plan_fixture_node(&topology, "a1")->programs = xcalloc(1, sizeof(struct prefix));
        plan_fixture_node(&topology, "a1")->programs[0] =
            (struct prefix){node_locator(12), NODE_LOCATOR_PLEN};
        check_paths("r1", "r2",
                    "*n11,n5 (a1 may not use it, as an operator has said); *n12,n5 5f00:0:c:5::");
        /* Its neighbours know. */
        struct node_config c;
        ck_assert_ptr_null(plan_node_config(&topology, plan_fixture_node(&topology, "n11"), &c));
        ck_assert_uint_eq(c.ports[0].n_programs, 1);
        ck_assert_mem_eq(&c.ports[0].programs[0], &plan_fixture_node(&topology, "a1")->programs[0],
                         sizeof(struct prefix));
        ck_assert_ptr_ne(c.ports[0].programs, plan_fixture_node(&topology, "a1")->programs);
        ck_assert_uint_eq(c.ports[1].n_programs, 0);
        node_config_uninit(&c);
    }
END_TEST

START_TEST(no_port_function)
    {
        plan_fixture_topology(&topology, "r1-a1 a1-n11 n11-n12 n11-n12 n12-r2");
        plan_fixture_node(&topology, "n11")->ports = xcalloc(1, sizeof(struct plan_port));
        plan_fixture_node(&topology, "n11")->n_ports = 1;
        plan_fixture_node(&topology, "n11")->ports[0] = (struct plan_port){"n12", 256};
        check_paths("r1", "r2",
                    "*n11:n12.1,n12 5f00:0:b:e102:c::; "
                    "n11:n12,n12 (port n12 of n11 has number 256, and ports above 255 have no uA)");
    }
END_TEST

/* Four nodes with the longest names just fit: 4 * 63 and 3 commas. */
START_TEST(long_name)
    {
        struct ds s = DS_EMPTY_INITIALIZER;
        struct plan_path *paths;
        size_t n;

        ds_put_cstr(&s, "r1-n1 n1");
        for (int i = 2; i < 6 + _i; i++) {
            char name[NAME_SIZE] = "n?";

            name[1] = (char) ('0' + i);
            memset(&name[2], 'x', sizeof name - 3);
            ds_put_format(&s, "-%s %s", name, name);
        }
        ds_put_cstr(&s, "-r2");
        plan_fixture_topology(&topology, ds_cstr(&s));
        ds_destroy(&s);
        ck_assert_ptr_null(plan_paths(&topology, "r1", "r2", &paths, &n));
        ck_assert_uint_eq(n, 1);
        ck_assert_int_eq(paths[0].problem != NULL, _i);
        if (!_i) {
            ck_assert_uint_eq(strlen(paths[0].name), PATH_NAME_SIZE - 1);
        } else {
            ck_assert_uint_eq(strspn(paths[0].name, "unamed-0123456789bcf"),
                              strlen("unnamed-") + 16);
            ck_assert_str_eq(paths[0].problem, "its name is longer than 255 characters");
        }
        plan_paths_free(paths, n);
    }
END_TEST

/* Registry and agents know paths by name: so two that cannot have theirs differ, too. */
START_TEST(no_names)
    {
        struct plan_path *paths;
        size_t n;

        plan_fixture_topology(&topology, "r1-n11 n11-n12 n11-n12 n12-r2");
        ovs_strlcpy(plan_fixture_link(&topology, "n11", "n12")->a_port, "a,1", IFNAMSIZ);
        plan_topology_prepare(&topology);
        ck_assert_ptr_null(plan_paths(&topology, "r1", "r2", &paths, &n));
        ck_assert_uint_eq(n, 2);
        const struct plan_path *bad = &paths[paths[1].problem != NULL],
                               *good = &paths[!paths[1].problem];
        ck_assert_ptr_null(good->problem);
        ck_assert_str_eq(bad->problem, "a port on it has a comma in its name");
        ck_assert_ptr_null(strchr(bad->name, ','));
        plan_paths_free(paths, n);
    }
END_TEST

/* Two paths whose names differ only behind what there is room for. */
START_TEST(same_start)
    {
        struct ds s = DS_EMPTY_INITIALIZER;
        struct plan_path *paths;
        char name[NAME_SIZE];
        size_t n;

        ds_put_cstr(&s, "r1-n1 n1");
        for (int i = 2; i < 6; i++) {
            memset(name, 'x', sizeof name - 1);
            name[0] = 'n';
            name[1] = (char) ('0' + i);
            name[sizeof name - 1] = '\0';
            ds_put_format(&s, "-%s %s", name, name);
        }
        ds_put_format(&s, "-n6 %s-n7 n6-n8 n7-n8 n8-r2", name);
        plan_fixture_topology(&topology, ds_cstr(&s));
        ds_destroy(&s);
        ck_assert_ptr_null(plan_paths(&topology, "r1", "r2", &paths, &n));
        ck_assert_uint_eq(n, 2);
        ck_assert_str_ne(paths[0].name, paths[1].name);
        plan_paths_free(paths, n);
    }
END_TEST

/* Very many shortest ways: the first ones are taken, and the list is full. */
START_TEST(mesh)
    {
        struct ds s = DS_EMPTY_INITIALIZER;
        struct plan_path *paths;
        size_t n, n_disjoint = 0;

        ds_put_cstr(&s, "r1-n1 r2-n2");
        for (int layer = 1; layer <= 4; layer++) {
            for (int i = 0; i < 6; i++) {
                if (layer == 1) {
                    ds_put_format(&s, " n1-n%d", 100 + i);
                }
                for (int j = 0; layer < 4 && j < 6; j++) {
                    ds_put_format(&s, " n%d-n%d", 100 * layer + i, 100 * (layer + 1) + j);
                }
                if (layer == 4) {
                    ds_put_format(&s, " n2-n%d", 400 + i);
                }
            }
        }
        plan_fixture_topology(&topology, ds_cstr(&s));
        ds_destroy(&s);
        ck_assert_ptr_null(plan_paths(&topology, "r1", "r2", &paths, &n));
        ck_assert_uint_eq(n, PATHS_MAX);
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_eq(paths[i].n_nodes, 5);
            n_disjoint += paths[i].disjoint;
            ck_assert_int_eq(paths[i].disjoint, i < 6);
            for (size_t j = 0; j < i; j++) {
                ck_assert_str_ne(paths[i].name, paths[j].name);
            }
        }
        ck_assert_uint_eq(n_disjoint, 6);
        plan_paths_free(paths, n);
    }
END_TEST

/*
 * Random topologies.
 */

#define MOST_NODES 8

static void
shuffle(void *array_, size_t n, size_t size)
{
    char *array = array_;
    char tmp[1024];

    ck_assert_uint_le(size, sizeof tmp);
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t) rand() % i;

        memcpy(tmp, &array[j * size], size);
        memcpy(&array[j * size], &array[(i - 1) * size], size);
        memcpy(&array[(i - 1) * size], tmp, size);
    }
}

/* r1 and r2 are behind two nodes of some. */
static void
random_topology(void)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    int n_nodes = 3 + rand() % (MOST_NODES - 2);

    for (int i = 1; i <= n_nodes; i++) {
        ds_put_format(&s, "%c%d ", i <= 2 && rand() % 2 ? 'a' : rand() % 8 ? 'n' : 'a', i);
    }
    plan_fixture_topology(&topology, ds_cstr(&s));
    ds_destroy(&s);
    for (int i = rand() % (3 * n_nodes); i > 0; i--) {
        plan_fixture_add_link(&topology, topology.nodes[rand() % n_nodes].name,
                              topology.nodes[rand() % n_nodes].name);
    }
    for (int i = 1; i <= 2; i++) {
        char name[8];

        snprintf(name, sizeof name, "r%d", i);
        plan_fixture_add_host(&topology, name);
        plan_fixture_add_link(&topology, topology.nodes[i - 1].name, name);
    }
    plan_topology_prepare(&topology);
}

/* All simple ways from the first node to the second, as sets of the nodes in between. */
struct all_ways {
    size_t n;
    unsigned sets[4096];
};

static unsigned
n_links(size_t a, size_t b)
{
    unsigned n = 0;
    struct plan_end end;

    for (size_t i = 0; i < topology.n_links; i++) {
        n += plan_link_end(&topology.links[i], topology.nodes[a].name, &end)
             && !strcmp(end.peer, topology.nodes[b].name);
    }
    return n;
}

static void
find_all(size_t at, unsigned set, struct all_ways *all)
{
    for (unsigned i = n_links(at, 1); i > 0; i--) {
        ck_assert_uint_lt(all->n, ARRAY_SIZE(all->sets));
        all->sets[all->n++] = set;
        if (at) {
            break; /* parallel links in between make no other set. */
        }
    }
    for (size_t i = 2; i < topology.n_nodes; i++) {
        if (!(set & 1u << i) && n_links(at, i) && topology.nodes[i].role == NODE_SWITCH) {
            find_all(i, set | 1u << i, all);
        }
    }
}

/* The most ways from 'first' on that share nothing, and the fewest links of so many. */
static void
find_most(const struct all_ways *all, size_t first, unsigned used, unsigned n, unsigned hops,
          unsigned *most, unsigned *fewest)
{
    if (n > *most || (n == *most && hops < *fewest)) {
        *most = n;
        *fewest = hops;
    }
    for (size_t i = first; i < all->n; i++) {
        if (!(all->sets[i] & used)) {
            find_most(all, i + 1, used | all->sets[i], n + 1,
                      hops + 1 + (unsigned) __builtin_popcount(all->sets[i]), most, fewest);
        }
    }
}

/* Follows the program as nodes do: each uSID is a neighbour of the node before, or its own port's
 * function.  Returns where it ends. */
static const struct plan_node *
walk(const struct plan_path *path)
{
    const struct plan_node *at = &topology.nodes[0];
    const struct program *p = &path->program;

    for (size_t c = 0; c < p->n; c++) {
        for (size_t i = 4; i < 16; i += 2) {
            uint16_t usid =
                (uint16_t) (p->containers[c].s6_addr[i] << 8 | p->containers[c].s6_addr[i + 1]);

            if (!usid || usid >= 0xe000) {
                ck_assert(!usid || usid >> 8 == 0xe1);
                continue;
            }
            size_t next = 0;
            while (topology.nodes[next].id != usid) {
                ck_assert_uint_lt(++next, topology.n_nodes);
            }
            ck_assert(n_links((size_t) (at - topology.nodes), next));
            at = &topology.nodes[next];
        }
    }
    return at;
}

START_TEST(random_paths)
    {
        static struct all_ways all;

        srand((unsigned int) _i);
        for (int run = 0; run < 60; run++) {
            struct plan_path *paths;
            size_t n, n_disjoint = 0, n_shortest = 0;
            unsigned most = 0, fewest = 0, hops = 0;

            random_topology();
            all.n = 0;
            find_all(0, 0, &all);
            find_most(&all, 0, 0, 0, 0, &most, &fewest);
            char *error = plan_paths(&topology, "r1", "r2", &paths, &n);
            ck_assert_int_eq(!error, all.n != 0);
            free(error);
            unsigned distance = plan_hops(&topology, &topology.nodes[0], &topology.nodes[1]);
            for (size_t i = 0; i < n; i++) {
                const struct plan_path *p = &paths[i];
                unsigned len = (unsigned) p->n_nodes + (topology.nodes[1].role == NODE_AGENT);

                ck_assert(!i || p->disjoint <= paths[i - 1].disjoint);
                n_disjoint += p->disjoint;
                hops += p->disjoint ? len : 0;
                ck_assert(p->disjoint || len == distance);
                n_shortest += len == distance;
                ck_assert_msg(!p->problem, "%s", p->problem);
                ck_assert_ptr_eq(walk(p), &topology.nodes[1]);
                for (size_t j = 0; j < i; j++) {
                    ck_assert_str_ne(p->name, paths[j].name);
                }
            }
            if (n < PATHS_MAX) {
                size_t n_all = 0;

                for (size_t i = 0; i < all.n; i++) {
                    n_all += (unsigned) __builtin_popcount(all.sets[i]) + 1 == distance;
                }
                ck_assert_uint_ge(n_shortest, n_all); /* more by parallel links. */
            }
            ck_assert_uint_eq(n_disjoint, most);
            ck_assert_uint_eq(hops, fewest);
            plan_paths_free(paths, n);

            /* Whatever the order in which all this came. */
            char *text = paths_text("r1", "r2");
            shuffle(topology.nodes, topology.n_nodes, sizeof *topology.nodes);
            shuffle(topology.links, topology.n_links, sizeof *topology.links);
            shuffle(topology.hosts, topology.n_hosts, sizeof *topology.hosts);
            plan_topology_prepare(&topology);
            check_paths("r1", "r2", text);
            free(text);
            plan_topology_uninit(&topology);
        }
    }
END_TEST

Suite *
plan_path_suite(void)
{
    Suite *suite = suite_create("plan-path");
    TCase *path = tcase_create("path");

    tcase_add_checked_fixture(path, NULL, teardown);
    tcase_add_test(path, figure);
    tcase_add_loop_test(path, program, 0, ARRAY_SIZE(programs));
    tcase_add_test(path, planes);
    tcase_add_test(path, excluded);
    tcase_add_test(path, permitted);
    tcase_add_test(path, no_port_function);
    tcase_add_loop_test(path, long_name, 0, 2);
    tcase_add_test(path, no_names);
    tcase_add_test(path, same_start);
    tcase_add_test(path, mesh);
    tcase_add_loop_test(path, random_paths, 0, 10);
    suite_add_tcase(suite, path);
    return suite;
}
