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

Suite *
plan_path_suite(void)
{
    Suite *suite = suite_create("plan-path");
    TCase *path = tcase_create("path");

    tcase_add_checked_fixture(path, NULL, teardown);
    tcase_add_test(path, figure);
    suite_add_tcase(suite, path);
    return suite;
}
