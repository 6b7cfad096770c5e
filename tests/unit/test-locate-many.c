/* SPDX-License-Identifier: Apache-2.0
 *
 * What is broken, by the probes that fail: several faults, in the draft's figure and in small random
 * networks.
 *
 * The answer is compared with all explanations that there are, found by trying each.
 */
#include <config.h>

#include "ctl/plan/locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/prng.h"
#include "tests/unit/locate-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

static struct world world;

static void
teardown(void)
{
    world_uninit(&world);
    memset(&world, 0, sizeof world);
}

#define MAX_FAULTS 3

/* What may be broken: as in the answer, a link stands for both directions if both are under suspicion. */
struct suspects {
    unsigned n;
    set sets[MAX_ELEMENTS];
    char names[MAX_ELEMENTS][48];
};

/* All that is on no way that works. */
static void
find_suspects(const struct world *w, struct suspects *s)
{
    set good = set_none, failing = set_none;
    bool both_ways = false;

    s->n = 0;
    for (unsigned i = 0; i < w->n_ways; i++) {
        const struct locate_probe *p = &w->probes[i];

        good = set_both(good, p->result == LOCATE_WORKS ? world_way_elements(&w->ways[i])
                              : p->heard                ? w->ways[i].back
                                                        : good);
        failing = p->result == LOCATE_FAILS ? set_both(failing, world_way_elements(&w->ways[i]))
                                            : failing;
    }
    for (unsigned i = world_n_single_faults(w); i--;) {
        set fault = world_single_fault(w, i, s->names[s->n]);
        bool is_link = world_is_both_ways(w, i);
        bool is_suspect = set_meet(fault, failing) && !set_meet(fault, good);

        both_ways = is_link ? is_suspect : both_ways;
        if (is_suspect && (is_link || i < w->n_nodes || !both_ways)) {
            s->sets[s->n++] = fault;
        }
    }
}

/* Do these suspects explain all probes that fail, but those whose whole way is good? */
static bool
explains(const struct world *w, const struct suspects *s, const unsigned chosen[], unsigned n)
{
    for (unsigned i = 0; i < w->n_ways; i++) {
        bool any = false, explained = false;

        for (unsigned j = 0; j < s->n; j++) {
            any |= set_meet(s->sets[j], world_way_elements(&w->ways[i]));
        }
        for (unsigned j = 0; j < n; j++) {
            explained |= set_meet(s->sets[chosen[j]], world_way_elements(&w->ways[i]));
        }
        if (w->probes[i].result == LOCATE_FAILS && any && !explained) {
            return false;
        }
    }
    return true;
}

/* Notes which suspects are in this explanation; each fault that was found has one of them. */
static void
check_explanation(const struct world *w, const struct suspects *s, const unsigned chosen[],
                  unsigned n, bool in_any[])
{
    for (size_t i = 0; i < w->n_faults; i++) {
        bool found = w->faults[i].elements[0].kind == FAULT_PATH;

        for (unsigned j = 0; j < n; j++) {
            found |= world_is_candidate(&w->faults[i], s->names[chosen[j]]);
        }
        ck_assert_msg(found, "fault of %s is not in an explanation with %s",
                      w->faults[i].elements[0].name, s->names[chosen[0]]);
    }
    for (unsigned j = 0; j < n; j++) {
        in_any[chosen[j]] = true;
    }
}

/* Tries all choices of 'size' suspects.  Returns how many explain it. */
static unsigned
try_choices(const struct world *w, const struct suspects *s, unsigned size, bool in_any[])
{
    unsigned chosen[MAX_FAULTS] = {0}, n = 0;

    for (unsigned i = 0; i < size; i++) {
        chosen[i] = i;
    }
    while (size <= s->n) {
        unsigned at = size;

        if (explains(w, s, chosen, size)) {
            check_explanation(w, s, chosen, size, in_any);
            n++;
        }
        while (at && chosen[at - 1] == s->n - size + at - 1) {
            at--;
        }
        if (!at) {
            break;
        }
        chosen[at - 1]++;
        for (; at < size; at++) {
            chosen[at] = chosen[at - 1] + 1;
        }
    }
    return n;
}

/* The answer has all candidates of the smallest explanations and no other, and each of these explanations
 * is in each fault.  Returns how many elements the smallest ones have. */
static unsigned
check_smallest(struct world *w)
{
    struct suspects s;
    bool in_any[MAX_ELEMENTS] = {false};
    unsigned size = 0, n_candidates = 0, n_in_any = 0;

    world_locate(w);
    find_suspects(w, &s);
    while (!try_choices(w, &s, size, in_any)) {
        size++;
        ck_assert_uint_le(size, MAX_FAULTS);
    }
    for (unsigned i = 0; i < s.n; i++) {
        bool found = false;

        for (size_t j = 0; j < w->n_faults; j++) {
            found |= world_is_candidate(&w->faults[j], s.names[i]);
        }
        ck_assert_msg(found == in_any[i], "%s: %d instead of %d", s.names[i], found, in_any[i]);
        n_in_any += in_any[i];
    }
    for (size_t i = 0; i < w->n_faults; i++) {
        const struct fault *f = &w->faults[i];

        n_candidates += f->elements[0].kind == FAULT_PATH ? 0 : (unsigned) f->n_elements;
        ck_assert_uint_ge(f->n_evidence, 1);
        for (size_t j = 0; j < f->n_evidence; j++) {
            ck_assert_int_eq(f->evidence[j]->result, LOCATE_FAILS);
        }
    }
    ck_assert_uint_eq(n_candidates, n_in_any);
    return size;
}

/* All pairs of faults of the figure: never more than two elements, and most pairs are both named. */
START_TEST(pairs)
    {
        unsigned n = 0, n_both_named = 0;

        world_figure(&world, ALL_WITH_PEERS);
        for (unsigned i = 0; i < world_n_single_faults(&world); i++) {
            for (unsigned j = 0; j < i; j++) {
                char a[48], b[48];
                set fault =
                    set_both(world_single_fault(&world, i, a), world_single_fault(&world, j, b));

                world_break(&world, fault);
                ck_assert_uint_le(check_smallest(&world), 2);
                bool both_named = world.n_faults == 2;
                for (size_t k = 0; k < world.n_faults; k++) {
                    const struct fault *f = &world.faults[k];

                    both_named &= f->n_elements == 1
                                  && (world_is_candidate(f, a) || world_is_candidate(f, b));
                }
                n++;
                n_both_named += both_named;
            }
        }
        ck_assert_msg(n_both_named * 10 >= n * 8, "%u of %u", n_both_named, n);
    }
END_TEST

/* A random network: a tree, and some links more. */
static void
random_network(struct world *w, uint64_t *seed)
{
    unsigned n = 4 + (unsigned) prng_below(seed, 5), more = (unsigned) prng_below(seed, 5);
    bool reverse;

    for (unsigned i = 0; i < n; i++) {
        char name[8];

        snprintf(name, sizeof name, "n%u", i);
        world_add_node(w, name);
    }
    for (unsigned i = 1; i < n; i++) {
        world_add_link(w, (unsigned) prng_below(seed, i), i);
    }
    while (more--) {
        unsigned a = (unsigned) prng_below(seed, n), b = (unsigned) prng_below(seed, n);

        if (a != b && world_find_link(w, a, b, &reverse) == MAX_LINKS) {
            world_add_link(w, MIN(a, b), MAX(a, b));
        }
    }
}

/* A way without a node twice, as far as it goes. */
static void
random_way(struct world *w, unsigned from, uint64_t *seed)
{
    unsigned nodes[MAX_WAY] = {from}, n = 1, length = 2 + (unsigned) prng_below(seed, 3);
    set seen = set_of(from);

    for (unsigned tries = 0; n < length && tries < 30; tries++) {
        unsigned next = (unsigned) prng_below(seed, w->n_nodes);
        bool reverse;

        if (!set_has(seen, next) && world_find_link(w, nodes[n - 1], next, &reverse) != MAX_LINKS) {
            nodes[n++] = next;
            set_add(&seen, next);
        }
    }
    if (n > 1) {
        world_add_way(w, prng_below(seed, 2), n, nodes);
    }
}

START_TEST(small_networks)
    {
        uint64_t seed = (uint64_t) _i + 1;

        for (int round = 0; round < 200; round++) {
            unsigned n_faults = 1 + (unsigned) prng_below(&seed, MAX_FAULTS);
            set broken = set_none;
            char name[48];

            teardown();
            random_network(&world, &seed);
            for (unsigned n = 5 + (unsigned) prng_below(&seed, 25); n--;) {
                random_way(&world, (unsigned) prng_below(&seed, 3), &seed);
            }
            world_fill_probes(&world);
            for (unsigned i = 0; i < n_faults; i++) {
                broken = set_both(
                    broken,
                    world_single_fault(
                        &world, (unsigned) prng_below(&seed, world_n_single_faults(&world)), name));
            }
            set_add(&world.silent, (unsigned) prng_below(&seed, world.n_nodes));
            world_break(&world, broken);
            ck_assert_uint_le(check_smallest(&world), n_faults);
        }
    }
END_TEST

Suite *
locate_many_suite(void)
{
    Suite *s = suite_create("locate_many");
    TCase *tc = tcase_create("locate_many");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, pairs);
    tcase_add_loop_test(tc, small_networks, 0, 8);
    suite_add_tcase(s, tc);
    return s;
}
