/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: the fewest sets that have all items in them.
 */
#include <config.h>

#include "ctl/plan/cover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/prng.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/suites.h"
#include "util.h"

#define MAX_SETS  12
#define MAX_ITEMS 16

struct problem {
    size_t n_sets, n_items;
    struct cover_set sets[MAX_SETS];
    size_t items[MAX_SETS][MAX_ITEMS];
    unsigned masks[MAX_SETS];
    size_t group[MAX_SETS];
    size_t n_groups;
};

static void
set_masks(struct problem *p)
{
    for (size_t i = 0; i < p->n_sets; i++) {
        p->sets[i] = (struct cover_set){0, p->items[i]};
        for (size_t j = 0; j < p->n_items; j++) {
            if (p->masks[i] >> j & 1) {
                p->items[i][p->sets[i].n++] = j;
            }
        }
    }
}

static unsigned
all_items(const struct problem *p)
{
    return (1u << p->n_items) - 1;
}

static void
solve(struct problem *p)
{
    set_masks(p);
    p->n_groups = cover_find(p->sets, p->n_sets, p->n_items, p->group);
}

/* Sets as words of letters, their items; the answer is groups of such words. */
static const struct {
    const char *sets;
    const char *groups;
} cases[] = {
    {"", ""},
    {"a", "a"},
    {"a a", "a=a"},
    {"a b", "a, b"},
    /* One instead of two. */
    {"a b ab", "ab"},
    {"ab ab a", "ab=ab"},
    /* One is certain; the other item may be either's. */
    {"ab bc c", "ab, bc=c"},
    /* Each two of three: which, is open. */
    {"ab bc ac", "ab=bc=ac"},
    /* No exchange leads from the one to the other. */
    {"ab cd ac bd", "ab=cd=ac=bd"},
    /* A greedy choice would take three. */
    {"abde abcg defh cf gh", "abcg, defh"},
    /* Parts have nothing to do with each other. */
    {"ab a cd c d", "ab, cd"},
    {"ab ab cd cd ef", "ab=ab, cd=cd, ef"},
};

static char *
groups_text(const struct problem *p, char words[MAX_SETS][MAX_ITEMS + 1])
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < p->n_sets; i++) {
        bool is_first = p->group[i] != COVER_NONE;

        for (size_t j = 0; j < i; j++) {
            is_first = is_first && p->group[j] != p->group[i];
        }
        for (size_t j = i; j < p->n_sets && is_first; j++) {
            if (p->group[j] == p->group[i]) {
                ds_put_format(&s, "%s%s", j > i ? "=" : s.length ? ", " : "", words[j]);
            }
        }
    }
    return ds_steal_cstr(&s);
}

START_TEST(by_table)
    {
        struct problem p = {.n_sets = 0};
        char words[MAX_SETS][MAX_ITEMS + 1];
        char letters[27] = "";
        const char *at = cases[_i].sets;
        int len;

        for (; sscanf(at, "%16s%n", words[p.n_sets], &len) == 1; at += len, p.n_sets++) {
            for (const char *c = words[p.n_sets]; *c; c++) {
                if (!strchr(letters, *c)) {
                    letters[strlen(letters)] = *c;
                }
                p.masks[p.n_sets] |= 1u << (strchr(letters, *c) - letters);
            }
        }
        p.n_items = strlen(letters);
        solve(&p);
        char *text = groups_text(&p, words);
        ck_assert_str_eq(text, cases[_i].groups);
        free(text);
    }
END_TEST

static unsigned
covered(const struct problem *p, unsigned sets)
{
    unsigned items = 0;

    for (size_t i = 0; i < p->n_sets; i++) {
        items |= sets >> i & 1 ? p->masks[i] : 0;
    }
    return items;
}

static unsigned
group_mask(const struct problem *p, size_t group)
{
    unsigned sets = 0;

    for (size_t i = 0; i < p->n_sets; i++) {
        sets |= p->group[i] == group ? 1u << i : 0;
    }
    return sets;
}

/* Against all covers: what is in a smallest one has a group, and each smallest one is in each group. */
START_TEST(brute_force)
    {
        uint64_t seed = (uint64_t) _i + 1;

        for (int round = 0; round < 300; round++) {
            struct problem p = {
                .n_sets = 1 + prng_below(&seed, MAX_SETS),
                .n_items = 1 + prng_below(&seed, 10),
            };
            unsigned density = 2 + (unsigned) prng_below(&seed, 5), every = 0, smallest = UINT_MAX;

            for (size_t i = 0; i < p.n_sets * p.n_items; i++) {
                p.masks[i % p.n_sets] |= prng_below(&seed, density) ? 0 : 1u << i / p.n_sets;
            }
            p.masks[0] |= all_items(&p) & ~covered(&p, (1u << p.n_sets) - 1);
            solve(&p);
            for (unsigned sets = 0; sets < 1u << p.n_sets; sets++) {
                if (covered(&p, sets) == all_items(&p)) {
                    smallest = MIN(smallest, (unsigned) __builtin_popcount(sets));
                }
            }
            for (unsigned sets = 0; sets < 1u << p.n_sets; sets++) {
                if ((unsigned) __builtin_popcount(sets) == smallest
                    && covered(&p, sets) == all_items(&p)) {
                    every |= sets;
                    for (size_t i = 0; i < p.n_groups; i++) {
                        ck_assert_msg(sets & group_mask(&p, i), "round %d: %x misses group %zu",
                                      round, sets, i);
                    }
                }
            }
            ck_assert_uint_le(p.n_groups, smallest);
            ck_assert_uint_eq(every, ((1u << p.n_sets) - 1) & ~group_mask(&p, COVER_NONE));
        }
    }
END_TEST

/* More than can be searched: a cover all the same. */
START_TEST(big)
    {
        enum { N = 400 };
        struct cover_set *sets = xcalloc(N, sizeof *sets);
        size_t *items = xcalloc(N * 3, sizeof *items), *group = xcalloc(N, sizeof *group);
        bool *done = xcalloc(N, sizeof *done);
        size_t n_groups;

        for (size_t i = 0; i < N; i++) { /* a ring, in which each item is in three sets. */
            size_t first = MIN(i, N - 3);

            sets[i] = (struct cover_set){3, &items[i * 3]};
            for (size_t j = 0; j < 3; j++) {
                items[i * 3 + j] = i < N - 2 ? first + j : j ? N - 3 + j : i - (N - 2);
            }
        }
        n_groups = cover_find(sets, N, N, group);
        ck_assert_uint_ge(n_groups, 1);
        ck_assert_uint_le(n_groups, N / 2);
        for (size_t i = 0; i < N; i++) {
            for (size_t j = 0; j < 3 && group[i] != COVER_NONE; j++) {
                done[sets[i].items[j]] = true;
            }
        }
        for (size_t i = 0; i < N; i++) {
            ck_assert(done[i]);
        }
        free(sets);
        free(items);
        free(group);
        free(done);
    }
END_TEST

Suite *
cover_suite(void)
{
    Suite *s = suite_create("cover");
    TCase *tc = tcase_create("cover");

    tcase_add_loop_test(tc, by_table, 0, ARRAY_SIZE(cases));
    tcase_add_loop_test(tc, brute_force, 0, 8);
    tcase_add_test(tc, big);
    suite_add_tcase(s, tc);
    return s;
}
