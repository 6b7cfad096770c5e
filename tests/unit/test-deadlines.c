/* SPDX-License-Identifier: Apache-2.0
 *
 * The heap of deadlines against looking at all of them.
 */
#include "lib/deadlines.h"

#include <stdlib.h>

#include "tests/unit/suites.h"

#define N 100

static struct deadlines ds;
static struct deadline entries[N];
static uint64_t expected[N];

static void
setup(void)
{
    ds = (struct deadlines){0};
    deadlines_reserve(&ds, N);
    for (size_t i = 0; i < N; i++) {
        entries[i] = (struct deadline){0};
        expected[i] = UINT64_MAX;
    }
}

static void
teardown(void)
{
    deadlines_uninit(&ds);
}

static void
set(size_t i, uint64_t when)
{
    deadlines_set(&ds, &entries[i], when, &expected[i]);
    expected[i] = when;
}

static uint64_t
earliest(void)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < N; i++) {
        first = expected[i] < first ? expected[i] : first;
    }
    return first;
}

START_TEST(first_of_all)
    {
        srand((unsigned) _i);
        for (unsigned k = 0; k < 5000; k++) {
            size_t i = (size_t) rand() % N;

            set(i, rand() % 4 ? (uint64_t) rand() % 50 : UINT64_MAX);
            uint64_t first = earliest();
            ck_assert_uint_eq(deadlines_first(&ds), first);
            if (first == UINT64_MAX) {
                ck_assert_ptr_null(deadlines_due(&ds, UINT64_MAX - 1));
                continue;
            }
            const uint64_t *owner = deadlines_due(&ds, first);
            ck_assert_ptr_nonnull(owner);
            ck_assert_uint_eq(*owner, first);
            ck_assert(!first || !deadlines_due(&ds, first - 1));
        }
    }
END_TEST

/* Each is called, in order, and nobody twice. */
START_TEST(all_are_called)
    {
        uint64_t before = 0;
        unsigned n = 0;
        uint64_t *owner;

        for (size_t i = 0; i < N; i++) {
            set(i, i * 37 % N / 2);
        }
        while ((owner = deadlines_due(&ds, 1000))) {
            ck_assert_uint_ge(*owner, before);
            before = *owner;
            set((size_t) (owner - expected), UINT64_MAX);
            n++;
        }
        ck_assert_uint_eq(n, N);
        ck_assert_uint_eq(deadlines_first(&ds), UINT64_MAX);
    }
END_TEST

START_TEST(room_is_made_for_more)
    {
        static struct deadline more[3 * N];

        for (size_t i = 0; i < N; i++) {
            set(i, N - i);
        }
        deadlines_reserve(&ds, 4 * N);
        for (size_t i = 0; i < 3 * N; i++) {
            deadlines_set(&ds, &more[i], N + i, &more[i]);
        }
        ck_assert_uint_eq(deadlines_first(&ds), 1);
        for (size_t i = 0; i < N; i++) {
            set(i, UINT64_MAX);
        }
        ck_assert_ptr_eq(deadlines_due(&ds, N), &more[0]);
    }
END_TEST

Suite *
deadlines_suite(void)
{
    Suite *suite = suite_create("deadlines");
    TCase *tc = tcase_create("deadlines");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, first_of_all, 0, 5);
    tcase_add_test(tc, all_are_called);
    tcase_add_test(tc, room_is_made_for_more);
    suite_add_tcase(suite, tc);
    return suite;
}
