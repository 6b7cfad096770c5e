/* SPDX-License-Identifier: Apache-2.0
 *
 * What is broken, by the probes that fail: single faults of the draft's figure, and other cases.
 */
#include <config.h>

#include "ctl/plan/locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/prng.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/locate-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

#define REPORT 1200000 /* so late may a report be. */

static struct world world;

static void
teardown(void)
{
    world_uninit(&world);
    memset(&world, 0, sizeof world);
}

/* Do the probes say the same with 'b' broken as with 'a'?  Of silent nodes nothing is known. */
static bool
look_alike(const struct world *w, set a, set b)
{
    for (unsigned i = 0; i < w->n_ways; i++) {
        const struct way *way = &w->ways[i];

        if (!set_has(w->silent, way->nodes[0])
            && (set_meet(world_way_elements(way), a) != set_meet(world_way_elements(way), b)
                || (way->is_peer && set_meet(way->back, a) != set_meet(way->back, b)))) {
            return false;
        }
    }
    return true;
}

/* Which single faults the probes cannot tell from this one, as world_faults_text() would have them.  A link
 * stands for its directions if they cannot be told from it. */
static char *
indistinguishable(const struct world *w, set fault)
{
    struct ds nodes = DS_EMPTY_INITIALIZER, links = DS_EMPTY_INITIALIZER;
    struct ds directions = DS_EMPTY_INITIALIZER, *lists[] = {&nodes, &links, &directions};
    struct ds s = DS_EMPTY_INITIALIZER;
    bool link = false;

    for (unsigned i = world_n_single_faults(w); i--;) {
        char name[48];
        set other = world_single_fault(w, i, name);
        bool is_link = world_is_both_ways(w, i);
        struct ds *list = i < w->n_nodes ? &nodes : is_link ? &links : &directions;
        bool alike = look_alike(w, fault, other);

        link = is_link ? alike : link;
        if (alike && (list != &directions || !link)) {
            char *rest = ds_steal_cstr(list);

            ds_put_format(list, "%s%s%s", name, rest[0] ? "|" : "", rest);
            free(rest);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (lists[i]->length) {
            ds_put_format(&s, "%s%s", s.length ? "|" : "", ds_cstr(lists[i]));
        }
        ds_destroy(lists[i]);
    }
    return ds_steal_cstr(&s);
}

/* Of all single faults, two-way ones or one-way ones: how many are not seen at all, and how many are
 * named without doubt.  What is found is always the smallest possible. */
static void
try_single_faults(struct world *w, bool one_way, unsigned *n_unseen, unsigned *n_named)
{
    *n_unseen = *n_named = 0;
    for (unsigned i = 0; i < world_n_single_faults(w); i++) {
        char name[48];
        set fault = world_single_fault(w, i, name);

        if (world_is_one_way(w, i) != one_way) {
            continue;
        }
        /* An agent that is broken does not report. */
        w->silent = !strncmp(name, "dpu", 3) && i < w->n_nodes ? set_of(i) : set_none;
        world_break(w, fault);
        if (look_alike(w, fault, set_none)) {
            (*n_unseen)++;
            world_check_faults(w, name, "");
            continue;
        }
        char *want = indistinguishable(w, fault);
        world_check_faults(w, name, want);
        *n_named += !strcmp(want, name);
        free(want);
    }
    w->silent = set_none;
}

static const struct {
    enum probing probing;
    bool one_way;
    bool stale; /* what an agent has said stays when it is dead. */
    unsigned n_unseen, n_named;
} singles[] = {
    /* An agent that cannot report is not seen by itself. */
    {ONE_LOOPS, false, false, 16, 6},      {ONE_FAR_LOOPS, false, false, 10, 16},
    {ONE_WITH_PEERS, false, false, 1, 21}, {ALL_LOOPS, false, false, 4, 22},
    {ALL_LOOPS, false, true, 4, 22},       {ALL_WITH_PEERS, false, false, 0, 26},
    {ALL_WITH_PEERS, false, true, 0, 26},  {ALL_LOOPS, true, false, 0, 0},
    {ALL_WITH_PEERS, true, false, 0, 32},
};

/* Proves AB-35: all 26 single faults of the figure are named, and all 32 one-way faults; by
 * loops alone no direction is. */
START_TEST(single_faults)
    {
        unsigned n_unseen, n_named;

        world_figure(&world, singles[_i].probing);
        world.stale = singles[_i].stale;
        try_single_faults(&world, singles[_i].one_way, &n_unseen, &n_named);
        ck_assert_msg(n_unseen == singles[_i].n_unseen && n_named == singles[_i].n_named,
                      "%u unseen, %u named", n_unseen, n_named);
    }
END_TEST

/*
 * Other cases.
 */

static struct locate_probe *
find_probe(const char *name)
{
    unsigned i = 0;

    while (strcmp(world.probes[i].name, name)) {
        i++;
        ck_assert_uint_lt(i, world.n_ways);
    }
    return &world.probes[i];
}

/* What a way as a whole fails of, and what it is called. */
START_TEST(way_as_a_whole)
    {
        world_figure(&world, ALL_WITH_PEERS);
        world_break(&world, set_none);
        world_check_faults(&world, "nothing", "");
        find_probe("dpu1,leaf1,spine5,leaf3,dpu3")->result = LOCATE_FAILS;
        find_probe("dpu1,leaf1,spine5,leaf3,dpu3")->since = 1000;
        find_probe("dpu3,leaf3,spine5,leaf1,dpu1")->result = LOCATE_UNKNOWN;
        world_check_faults(&world, "a way", "dpu1,leaf1,spine5,leaf3,dpu3");
        ck_assert_int_eq(world.faults[0].elements[0].kind, FAULT_PATH);
        ck_assert_uint_eq(world.faults[0].n_evidence, 1);
        ck_assert_uint_eq(fault_agreement_usec(&world.faults[0], 2400), 2 * INTERVAL + REPORT);
    }
END_TEST

/* Who does not report may be what the others' probes fail at.  Of two that have their switches for
 * themselves it may be these.  If nobody reports nothing is known. */
START_TEST(dead_agents)
    {
        world_figure(&world, ALL_WITH_PEERS);
        world.silent = set_of(world_find(&world, "dpu1"));
        world_break(&world, world.silent);
        world_check_faults(&world, "one", "dpu1");
        ck_assert_uint_eq(world.faults[0].n_evidence, 18); /* 2 of dpu2, 8 of each other one. */
        ck_assert_str_eq(world.faults[0].evidence[0]->node, "dpu2");
        ck_assert_uint_eq(fault_agreement_usec(&world.faults[0], 1000), 2 * INTERVAL + REPORT);
        world.silent = set_both(world.silent, set_of(world_find(&world, "dpu2")));
        world_break(&world, world.silent);
        world_check_faults(&world, "both of a side", "dpu1|dpu2|leaf1|leaf2");
        world.stale = true; /* that each works is all that the one says of the other. */
        world_break(&world, world.silent);
        world_check_faults(&world, "what they said", "dpu1|dpu2|leaf1|leaf2");
        for (unsigned i = 0; i < world.n_ways; i++) {
            world.probes[i].result = LOCATE_UNKNOWN;
        }
        world_check_faults(&world, "nobody reports", "");
        world_uninit(&world);
        locate_faults(NULL, 0, &world.faults, &world.n_faults);
        ck_assert_uint_eq(world.n_faults, 0);
    }
END_TEST

/* Which of two statements over the same links counts. */
START_TEST(contradictions)
    {
        struct locate_probe *there, *back;

        world_figure(&world, ALL_WITH_PEERS);
        there = find_probe("dpu1,leaf1,spine5,leaf3,dpu3");
        back = find_probe("dpu3,leaf3,spine5,leaf1,dpu1");
        ck_assert_ptr_eq(there->reverse, back);
        /* dpu3 may not have noticed yet, but is there: others confirm what it says of other ways. */
        world_break(&world, set_none);
        there->result = LOCATE_FAILS;
        there->since = 1000;
        world_check_faults(&world, "fails later", there->name);
        /* It works again, and dpu1 has not tried. */
        back->since = 2000;
        world_check_faults(&world, "works later", "");
        /* What is known is known of both. */
        world_break(&world, set_of(world_find(&world, "leaf1>spine5")));
        there->result = LOCATE_WORKS;
        there->since = 2000;
        world_check_faults(&world, "one is back, others are late", "");
        /* Others may be late, too, where one that is back says nothing. */
        world_break(&world, set_of(world_find(&world, "spine5")));
        world_locate(&world);
        ck_assert_uint_eq(fault_agreement_usec(&world.faults[0], 2400), 2 * INTERVAL + REPORT);
        ck_assert_uint_eq(fault_agreement_usec(&world.faults[0], 2401), 32 * INTERVAL + REPORT);
    }
END_TEST

/* Parallel links are told apart by their ports. */
START_TEST(parallel_links)
    {
        struct locate_probe probes[] = {
            {.name = "x,a:p1,b", .node = "x", .kind = PROBE_PEER, .result = LOCATE_WORKS},
            {.name = "x,a:p2,b", .node = "x", .kind = PROBE_PEER, .result = LOCATE_FAILS},
        };

        probes[0].elements = "x>a a a:p1>b b b:q1>a a a>x x";
        probes[1].elements = "x>a a a:p2>b b b:q2>a a a>x x";
        locate_faults(probes, 2, &world.faults, &world.n_faults);
        char *text = world_faults_text(&world);
        ck_assert_str_eq(text, "a:p2<>b:q2");
        ck_assert_int_eq(world.faults[0].elements[0].kind, FAULT_LINK);
        free(text);
        world_uninit(&world);
        probes[1].heard = true;
        locate_faults(probes, 2, &world.faults, &world.n_faults);
        text = world_faults_text(&world);
        ck_assert_str_eq(text, "a:p2>b");
        ck_assert_int_eq(world.faults[0].elements[0].kind, FAULT_DIRECTION);
        free(text);
    }
END_TEST

/* Whatever the words are. */
START_TEST(odd_elements)
    {
        static const char *const odd[] = {
            "",    " ",       ">",     "> >", "a>",  ">a a>",       "a>b>c b>c>a",
            "a>a", "a>b a>b", "a b c", ":",   "a>b", "a>b b>a b>a", "<> <>> ><",
        };

        for (size_t i = 0; i < 2 * ARRAY_SIZE(odd); i++) {
            struct locate_probe probe = {
                .name = "odd,",
                .node = "a>b",
                .kind = PROBE_PEER,
                .elements = odd[i / 2],
                .result = LOCATE_FAILS,
                .heard = i % 2,
            };

            world_uninit(&world);
            locate_faults(&probe, 1, &world.faults, &world.n_faults);
            ck_assert_uint_eq(world.n_faults, 1);
        }
    }
END_TEST

static const struct {
    const char *text;
    enum fault_kind kind;
} kinds[] = {
    {"spine5", FAULT_NODE},
    {"leaf1<>spine5", FAULT_LINK},
    {"leaf1:eth3<>spine5:eth0", FAULT_LINK},
    {"leaf1>spine5", FAULT_DIRECTION},
    {"dpu1,leaf1:eth3,spine5", FAULT_PATH},
};

START_TEST(kinds_of_elements)
    {
        ck_assert_int_eq(fault_element_kind(kinds[_i].text), kinds[_i].kind);
    }
END_TEST

/*
 * Random loss.
 */

#define LOSS     1000 /* one of so many is lost. */
#define N_ROUNDS 6000 /* of 100 ms: ten minutes. */

/* One interval: a probe that was lost is sent again at once, and fails if that is lost, too.  It works
 * again with the first that comes back. */
static bool
probe_all(struct world *w, uint64_t *seed, set broken, unsigned now)
{
    bool changed = false;

    for (unsigned i = 0; i < w->n_ways; i++) {
        struct locate_probe *p = &w->probes[i];
        bool dead = set_meet(world_way_elements(&w->ways[i]), broken);
        bool lost = dead || !prng_below(seed, LOSS);
        bool fails = lost && (p->result == LOCATE_FAILS || dead || !prng_below(seed, LOSS));

        if (fails != (p->result == LOCATE_FAILS)) {
            changed = true;
            p->since = now * (INTERVAL / 1000);
        }
        p->result = fails ? LOCATE_FAILS : LOCATE_WORKS;
        p->heard = w->ways[i].is_peer && !set_meet(w->ways[i].back, broken);
    }
    return changed;
}

/* What castd does, with an interval as the unit of time: the fault has been found since then. */
struct found {
    char *name; /* NULL: none is. */
    unsigned since;
};

static bool
is_confirmed(struct world *w, struct found *found, unsigned now)
{
    char *name = world_faults_text(w);

    if (!found->name || strcmp(found->name, name)) {
        free(found->name);
        *found = (struct found){name, now};
    } else {
        free(name);
    }
    return w->n_faults
           && (now - found->since) * (uint64_t) INTERVAL
                  >= fault_agreement_usec(&w->faults[0], found->since * (INTERVAL / 1000));
}

/* Probes fail by chance now and then, but no fault is found twice; one that is there is. */
START_TEST(random_loss)
    {
        uint64_t seed = (uint64_t) _i + 1;
        struct found found = {NULL, 0};
        unsigned n_found = 0;

        world_figure(&world, ALL_WITH_PEERS);
        set broken = set_none;
        world_break(&world, broken);
        for (unsigned now = 0; now < N_ROUNDS * 4; now++) {
            if (probe_all(&world, &seed, broken, now)) {
                world_locate(&world);
                n_found += world.n_faults > 0;
            }
            ck_assert(!is_confirmed(&world, &found, now));
        }
        ck_assert_uint_ge(n_found, 1);
        unsigned now = N_ROUNDS * 4;
        broken = set_of(world_find(&world, "leaf1>spine5"));
        do {
            probe_all(&world, &seed, broken, now);
            world_locate(&world);
            now++;
        } while (!is_confirmed(&world, &found, now));
        ck_assert_str_eq(found.name, "leaf1>spine5");
        ck_assert_uint_le(now, N_ROUNDS * 4 + 20);
        free(found.name);
    }
END_TEST

Suite *
locate_suite(void)
{
    Suite *s = suite_create("locate");
    TCase *tc = tcase_create("locate");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, single_faults, 0, ARRAY_SIZE(singles));
    tcase_add_test(tc, way_as_a_whole);
    tcase_add_test(tc, dead_agents);
    tcase_add_test(tc, contradictions);
    tcase_add_test(tc, parallel_links);
    tcase_add_test(tc, odd_elements);
    tcase_add_loop_test(tc, kinds_of_elements, 0, ARRAY_SIZE(kinds));
    tcase_add_loop_test(tc, random_loss, 0, 3);
    suite_add_tcase(s, tc);
    return s;
}
