/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees in virtual time (tests/model/lab.h): the shapes that a planner can make,
 * each through every kind of run (tests/model/scenario.h) once or twice.  castsim
 * does the same with random shapes and many more numbers.
 *
 * Everything follows from topology, kind of run and a number.  A failure names
 * them; TREE_SIM=TOPOLOGY/KIND/NUMBER in the environment runs that one only and
 * traces every packet:
 *
 *     TREE_SIM=figure-1/restart/1 CK_RUN_SUITE=tree_sim build/tests/unit
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/scenario.h"
#include "tests/unit/suites.h"

#define RUNS 2 /* of each kind. */

static const struct {
    const char *name;
    const char *topology;
} shapes[] = {
    {"star", "s-a9 a9-n1 n1-r1 n1-r2 n1-r3"},
    {"figure-1", "s-a9 a9-n6 n6-n4 n6-n5 n4-n1 n4-n2 n5-n2 n5-n3 n1-r1 n1-r2 n2-r3 n3-r4 n3-r5"},
    {"diamond", "s-a9 a9-n1 n1-n2 n1-n3 n2-n4 n3-n4 n3-r1 n4-r2 n4-r3 n4-r4"},
    {"bud", "s-a9 a9-n1 n1-n2 n2-r1 n2-n3 n2-n4 n3-r2 n3-r3 n4-r4"},
    {"root-is-edge", "s-a9 a9-n1 n1-r1 n1-r2 n1-n2 n2-r3"},
    {"chain", "s-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-n6 n6-r1 n6-r2"},
    {"agent-is-root", "s-a9 a9-t1 t1-n2 t1-n3 n2-r1 n2-r2 n3-r3"},
    {"edge-agents", "s-a9 a9-n1 n1-n2 n1-n3 n2-a4 n3-a4 a4-r1 a5-n3 a5-n2 a5-r2 n3-r3"},
    {"planes", "s-a9 a9-n1 a9-n2 n1-n20 n1-n21 n2-n20 n2-n21 n20-n3 n20-n4 n21-n3 n21-n4 n3-a30 "
               "n4-a30 a30-r1 n3-a31 n4-a31 a31-r2 n3-r3 n1-a32 n2-a32 a32-r4"},
    {"plain-transit", "s-a9 a9-n1 n1-t2 n1-n3 t2-n4 t2-n5 n4-r1 n5-r2 n5-r3 n3-r4"},
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static char name[64]; /* of this run. */

static void
lab_failed(const struct lab *lab, const char *condition, const char *text)
{
    ck_abort_msg("TREE_SIM=%s, time %" PRIu64 ": %s: %s", name, lab->fabric.now, condition, text);
}

/* Proves MT-5.3-1, MT-5.3.1-1, MT-5.3.2-1. */
START_TEST(trees)
    {
        size_t shape = (size_t) _i / N_SCENARIO_KINDS;
        enum scenario_kind kind = (enum scenario_kind)(_i % N_SCENARIO_KINDS);
        const char *only = getenv("TREE_SIM");

        for (unsigned i = 0; i < RUNS; i++) {
            snprintf(name, sizeof name, "%s/%s/%u", shapes[shape].name, scenario_name(kind), i);
            if (!only || !strcmp(only, name)) {
                struct lab *lab =
                    scenario_create(shapes[shape].topology, kind,
                                    ((uint64_t) i << 16) + (unsigned) _i, only != NULL, lab_failed);
                lab_run(lab);
                lab_destroy(lab);
            }
        }
    }
END_TEST

Suite *
tree_sim_suite(void)
{
    Suite *s = suite_create("tree_sim");
    TCase *tc = tcase_create("runs");

    tcase_add_loop_test(tc, trees, 0, (int) (N_SHAPES * N_SCENARIO_KINDS));
    suite_add_tcase(s, tc);
    return s;
}
