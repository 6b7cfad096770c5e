/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups with planes (docs/draft-notes.md, R24): which plane is used, and whole groups in virtual time
 * that lose one or change it.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/planes.h"
#include "tests/model/lab.h"
#include "tests/unit/suites.h"

/*
 * Which one?
 */

/* By plane, letters g ? s r b are its state, ! that it is excluded, + that it is preferred; the one
 * that is used is in capitals. */
static const struct {
    const char *planes;
    enum plane_move move;
    size_t to;
} choices[] = {
    {"G g", PLANE_STAYS, 0},
    {"? G", PLANE_STAYS, 0},
    {"S g", PLANE_STAYS, 0}, /* only a doubt. */
    {"R g", PLANE_STAYS, 0},
    {"B g", PLANE_FAILED, 1},
    {"B ?", PLANE_FAILED, 1},
    {"B s", PLANE_FAILED, 1},
    {"B r", PLANE_FAILED, 1},
    {"B b", PLANE_STAYS, 0}, /* one is always used. */
    {"g B", PLANE_FAILED, 0},
    {"b G", PLANE_STAYS, 1},
    {"g G", PLANE_STAYS, 1}, /* no reason to go back. */
    {"B s g", PLANE_FAILED, 2},
    {"B ! s! g!", PLANE_FAILED, 2},
    {"B r g!", PLANE_FAILED, 1},
    /* Excluded. */
    {"G! g", PLANE_PLANNED, 1},
    {"G! s", PLANE_PLANNED, 1},
    {"S! r", PLANE_PLANNED, 1},
    {"G! b", PLANE_STAYS, 0}, /* excluded is better than bad. */
    {"B! g!", PLANE_FAILED, 1},
    {"B g!", PLANE_FAILED, 1},
    {"G! g!", PLANE_STAYS, 0},
    {"B! b", PLANE_FAILED, 1},
    {"B b!", PLANE_STAYS, 0},
    /* Preferred. */
    {"G g+", PLANE_PLANNED, 1},
    {"? ?+", PLANE_PLANNED, 1},
    {"G s+", PLANE_STAYS, 0},
    {"G r+", PLANE_STAYS, 0},
    {"S g+", PLANE_PLANNED, 1},
    {"G b+", PLANE_STAYS, 0},
    {"G g+!", PLANE_STAYS, 0},
    {"G+ g", PLANE_STAYS, 0},
    {"B+ g", PLANE_FAILED, 1},
    {"g+ G", PLANE_PLANNED, 0},
    {"B g g+", PLANE_FAILED, 2},
    {"G", PLANE_STAYS, 0},
    {"B", PLANE_STAYS, 0},
};

START_TEST(choice)
    {
        static const char letters[] = "g?srb", used_letters[] = "G?SRB";
        struct plane_view v[PLANES_MAX];
        size_t n = 0, used = 0, to;

        for (const char *c = choices[_i].planes; *c; c++) {
            const char *letter = strchr(letters, *c), *capital = strchr(used_letters, *c);

            if (*c == '!') {
                v[n - 1].usable = false;
            } else if (*c == '+') {
                v[n - 1].preferred = true;
            } else if (letter || capital) {
                used = capital && (!letter || !n) ? n : used;
                v[n++] = (struct plane_view){
                    .usable = true,
                    .state = (enum path_state)(letter ? letter - letters : capital - used_letters),
                };
            }
        }
        ck_assert_int_eq(plane_choose(v, n, used, &to), choices[_i].move);
        if (choices[_i].move != PLANE_STAYS) {
            ck_assert_uint_eq(to, choices[_i].to);
        }
    }
END_TEST

/* The plane in use keeps its name, wherever it is in the list. */
START_TEST(configuration)
    {
        const struct plane_config abc[] = {{.name = "A"}, {.name = "B"}, {.name = "C"}};
        struct plane_use use = {0};

        ck_assert(!plane_use_configure(&use, NULL, 0, abc, 3));
        plane_use_move(&use, 2, PLANE_FAILED, 7);
        ck_assert(plane_use_configure(&use, abc, 3, abc + 1, 2));
        ck_assert_uint_eq(use.used, 1);
        ck_assert(!plane_use_configure(&use, abc + 1, 2, abc, 2));
        ck_assert_uint_eq(use.used, 0);
        ck_assert(use.n_failed == 1 && use.n_planned == 0 && use.since == 7);
    }
END_TEST

/*
 * Whole groups.
 */

/* A source and receivers behind agents with two uplinks, and one behind a leaf. */
#define CLOS                                                                                        \
    "s-a9 a9-n1 a9-n2 n1-n5 n1-n6 n2-n5 n2-n6 n5-n3 n5-n4 n6-n3 n6-n4 n3-a10 n4-a10 a10-r1 n3-a11 " \
    "n4-a11 a11-r2 n1-a12 n2-a12 a12-r3"
#define LABELS "A:n5 B:n6"

static uint64_t seed;

static void
lab_failed(const struct lab *lab, const char *condition, const char *text)
{
    ck_abort_msg("seed %" PRIu64 ", time %" PRIu64 ": %s: %s", seed, lab->fabric.now, condition,
                 text);
}

static struct lab *
create(const char *topology, uint64_t number)
{
    seed = number;
    struct lab *lab = lab_create(topology, seed, getenv("PLANES_TRACE") != NULL, lab_failed);

    ck_assert(lab_set_planes(lab, LABELS));
    lab->start_psn = psn_make(0xffffe0);
    lab->gap = 5;
    lab->filter = seed % 2;
    lab->timeout_usec = 500000; /* so that it is seen whether the source had to wait for it. */
    lab->timeout = 17;
    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            lab->fabric.links[i].quality[side].delay = 1 + lab_random(lab, 20);
        }
    }
    lab->writes_only = true;
    lab_choose_messages(lab, 400, false);
    return lab;
}

static struct lab_node *
node(struct lab *lab, const char *name)
{
    return &lab->nodes[lab_station_of(lab, name)];
}

/* What it uses in its first tree. */
static struct tree_info
info_of(struct lab *lab, const char *name)
{
    struct tree_info info;
    struct lab_node *n = node(lab, name);

    n->class->tree(n->node, 0, &info);
    ck_assert_uint_eq(info.n_planes, 2);
    return info;
}

static void
check_used(struct lab *lab, const char *name, size_t used, uint64_t failed, uint64_t moved)
{
    struct tree_info info = info_of(lab, name);

    ck_assert_msg(info.plane_used == used, "%s uses plane %zu", name, info.plane_used);
    ck_assert_msg(info.n_planes_failed == failed && info.n_planes_moved == moved,
                  "%s: %" PRIu64 " failed, %" PRIu64 " moved", name, info.n_planes_failed,
                  info.n_planes_moved);
}

/* Called after each event: does it once. */
static uint64_t at_packet;
static void (*what)(struct lab *);

static void
do_once(struct lab *lab)
{
    struct rc_info info;

    rc_get_info(lab->source, &info);
    if (what && info.n_sent >= at_packet) {
        void (*now)(struct lab *) = what;

        what = NULL;
        now(lab);
    }
}

static void
plan_to(struct lab *lab, void (*does)(struct lab *), uint64_t packet)
{
    lab->probe = do_once;
    what = does;
    at_packet = packet;
}

static uint64_t died_at;

static void
plane_a_dies(struct lab *lab)
{
    died_at = lab->fabric.now;
    lab_kill_plane(lab, 0, 1, true);
}

/* Long enough for packets and answers to get lost. */
static void
plane_a_dies_soon(struct lab *lab)
{
    died_at = lab->fabric.now;
    lab_kill_plane(lab, 0, 3000, true);
}

static void
plane_a_dies_slowly(struct lab *lab)
{
    lab_kill_plane(lab, 0, 30000, true);
}

static void
plane_b_is_wanted(struct lab *lab)
{
    lab->preferred_plane = 2;
    lab_prefer_in_plan(lab, 0);
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        lab_node_configure(lab, i);
    }
}

/* In mid-stream, and in the same instant all know: the source is taken back once, and needs no
 * timer. */
START_TEST(a_plane_dies)
    {
        struct lab *lab = create(CLOS, (uint64_t) _i + 1);
        struct rc_info info;

        plan_to(lab, plane_a_dies, 5);
        lab_run(lab);
        rc_get_info(lab->source, &info);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert_uint_eq(info.n_timeouts, 0);
        ck_assert_uint_le(info.n_retries, 1);
        ck_assert(!what);
        check_used(lab, "a9", 1, 1, 0);
        check_used(lab, "a10", 1, 1, 0);
        check_used(lab, "a12", 1, 1, 0);
        lab_destroy(lab);
    }
END_TEST

/* The last packets are in flight, and nothing comes behind them: without the agent's word the source
 * would wait for its timer, or for what R14 presumes, 100 ms. */
#define AT_ONCE 20000

START_TEST(the_tail_is_lost)
    {
        struct lab *lab = create(CLOS, (uint64_t) _i + 1);
        struct rc_info info;

        plan_to(lab, plane_a_dies_soon, lab->n_packets);
        lab_run(lab);
        rc_get_info(lab->source, &info);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert_uint_eq(info.n_timeouts, 0);
        ck_assert_uint_le(info.n_retries, 2); /* also if answers of the first copies come late. */
        ck_assert_uint_lt(lab->over_since, died_at + AT_ONCE);
        lab_destroy(lab);
    }
END_TEST

/* All have everything, and only the answers are lost: edges say them again, by the other plane. */
START_TEST(the_last_answers_are_lost)
    {
        struct lab *lab = create(CLOS, (uint64_t) _i + 1);
        struct rc_info info;

        node(lab, "a9")->ways[0] = PATH_BAD;
        plan_to(lab, plane_a_dies_soon, lab->n_packets);
        lab_run(lab);
        rc_get_info(lab->source, &info);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert_uint_eq(info.n_retries, 0);
        ck_assert_uint_lt(lab->over_since, died_at + AT_ONCE);
        check_used(lab, "a9", 1, 1, 0);
        check_used(lab, "a10", 1, 1, 0);
        lab_destroy(lab);
    }
END_TEST

/* A leaf with a receiver of its own copies for those behind it, whatever its receiver has. */
START_TEST(a_bud_copies_for_others)
    {
        struct lab *lab = create(CLOS " n3-r4", (uint64_t) _i + 1);

        lab->filter = true;
        lab->timeout_usec = 20000;
        lab->timeout = 12;
        for (unsigned i = 0; i < lab->fabric.n_links; i++) {
            struct fabric_link *link = &lab->fabric.links[i];

            if (link->ends[1].station == lab_station_of(lab, "a10")) {
                link->quality[0].loss = link->quality[1].loss = 1000;
            }
        }
        lab_run(lab);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        lab_destroy(lab);
    }
END_TEST

/* Each end hears of it in its own time; meanwhile packets go down by one plane, and answers come up by
 * the other, which is dead.  What a source cannot be told then its timer finds out. */
START_TEST(ends_know_at_different_times)
    {
        struct lab *lab = create(CLOS, (uint64_t) _i + 1);

        plan_to(lab, plane_a_dies_slowly, 1 + lab_random(lab, lab->n_packets));
        lab_run(lab);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert(!lab->failure);
        lab_destroy(lab);
    }
END_TEST

/* Down by one plane, up by the other, from the start, and in all combinations. */
START_TEST(each_end_has_its_plane)
    {
        static const char *const edges[] = {"a10", "a11", "a12"};
        struct lab *lab = create(CLOS, 3);
        struct rc_info info;

        node(lab, "a9")->ways[_i & 1] = PATH_BAD;
        for (unsigned i = 0; i < 3; i++) {
            node(lab, edges[i])->ways[_i >> (i + 1) & 1] = PATH_BAD;
        }
        lab_run(lab);
        rc_get_info(lab->source, &info);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert(!info.n_retries && !info.n_timeouts);
        check_used(lab, "a9", !(_i & 1), !(_i & 1), 0);
        for (unsigned i = 0; i < 3; i++) {
            bool b = !(_i >> (i + 1) & 1);

            check_used(lab, edges[i], b, b, 0);
        }
        lab_destroy(lab);
    }
END_TEST

/* The operator wants another plane: nothing is sent again. */
START_TEST(planned)
    {
        struct lab *lab = create(CLOS, (uint64_t) _i + 1);
        struct rc_info info;

        plan_to(lab, plane_b_is_wanted, 5);
        lab_run(lab);
        rc_get_info(lab->source, &info);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert_uint_eq(info.n_retries, 0);
        ck_assert_uint_eq(info.n_timeouts, 0);
        ck_assert_uint_eq(info.n_sent, lab->n_packets);
        check_used(lab, "a9", 1, 0, 1);
        check_used(lab, "a10", 1, 0, 1);
        for (unsigned i = 0; i < lab->n; i++) {
            struct rc_info r;

            rc_get_info(lab->receivers[i].endpoint, &r);
            ck_assert_uint_eq(r.n_ahead, 0);
        }
        lab_destroy(lab);
    }
END_TEST

static void
a_dies_unseen_and_b_is_wanted(struct lab *lab)
{
    lab_kill_plane(lab, 0, 1, true);
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        lab->nodes[i].ways[0] = PATH_GOOD; /* nobody hears of it. */
    }
    plane_b_is_wanted(lab);
}

static void
keep_unseen(struct lab *lab)
{
    do_once(lab);
    for (unsigned i = 0; i < lab->n_nodes && !what; i++) {
        lab->nodes[i].ways[0] = PATH_GOOD;
    }
}

/* What is in flight when a plane is to be changed never arrives: the agent waits no longer than it
 * has to. */
START_TEST(planned_in_vain)
    {
        struct lab *lab = create(CLOS, 1);
        struct rc_info info;

        lab->timeout_usec = 4000000;
        lab->timeout = 20;
        plan_to(lab, a_dies_unseen_and_b_is_wanted, 5);
        lab->probe = keep_unseen;
        lab_run(lab);
        rc_get_info(lab->source, &info);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert_uint_eq(info.n_timeouts, 0);
        check_used(lab, "a9", 1, 1, 0);
        lab_destroy(lab);
    }
END_TEST

static void
an_edge_starts_again(struct lab *lab)
{
    lab->actions[lab->n_actions++] =
        (struct lab_action){.kind = LAB_RESTART, .node = lab_station_of(lab, "a10"), .after = 0};
}

static void
dies_then_restarts(struct lab *lab)
{
    plane_a_dies(lab);
    at_packet += 10;
    what = an_edge_starts_again;
}

/* An edge starts again while the group is on plane B: it finds out by itself which one to use. */
START_TEST(restart_of_an_edge)
    {
        struct lab *lab = create(CLOS, (uint64_t) _i + 1);

        plan_to(lab, dies_then_restarts, 5);
        lab_run(lab);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert(lab->restarts);
        check_used(lab, "a9", 1, 1, 0);
        check_used(lab, "a10", 1, 1, 0);
        lab_destroy(lab);
    }
END_TEST

/* A receiver joins while the group is on plane B. */
START_TEST(join)
    {
        struct lab *lab = create(CLOS, (uint64_t) _i + 1);
        struct lab_receiver *late = &lab->receivers[1];

        lab->gap = 300;
        lab->liveness_msec = 1500;
        lab->prune = true;
        lab->timeout_usec = 20000;
        lab->timeout = 12;
        lab->max_pause = 300000;
        late->is_late = late->absent = true;
        late->psn = psn_make(77);
        plan_to(lab, plane_a_dies, 5);
        lab_add_action(lab, LAB_JOIN, 0, 10);
        lab->n_messages = 0, lab->n_packets = 0, lab->region_len = 0;
        lab->short_messages = true;
        while (lab->n_messages < 30) {
            lab_choose_messages(lab, 4000, false);
        }
        lab_run(lab);
        ck_assert_uint_eq(lab->n_done, lab->n_messages);
        ck_assert(late->joined);
        check_used(lab, "a9", 1, 1, 0);
        check_used(lab, "a11", 1, 1, 0);
        lab_destroy(lab);
    }
END_TEST

Suite *
planes_suite(void)
{
    Suite *s = suite_create("planes");
    TCase *tc = tcase_create("choice");

    tcase_add_loop_test(tc, choice, 0, (int) (sizeof choices / sizeof *choices));
    tcase_add_test(tc, configuration);
    suite_add_tcase(s, tc);
    tc = tcase_create("groups");
    tcase_add_loop_test(tc, a_plane_dies, 0, 8);
    tcase_add_loop_test(tc, the_tail_is_lost, 0, 8);
    tcase_add_loop_test(tc, the_last_answers_are_lost, 0, 8);
    tcase_add_loop_test(tc, a_bud_copies_for_others, 0, 4);
    tcase_add_loop_test(tc, ends_know_at_different_times, 0, 30);
    tcase_add_loop_test(tc, each_end_has_its_plane, 0, 16);
    tcase_add_loop_test(tc, planned, 0, 8);
    tcase_add_test(tc, planned_in_vain);
    tcase_add_loop_test(tc, restart_of_an_edge, 0, 8);
    tcase_add_loop_test(tc, join, 0, 4);
    suite_add_tcase(s, tc);
    return s;
}
