/* SPDX-License-Identifier: Apache-2.0
 *
 * The index against looking at all of them.
 */
#include "lib/hash-index.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/unit/suites.h"

#define N      500
#define HASHES 50 /* so that many have the same. */

static struct hash_index ix;
static struct hash_entry entries[N];
static uint64_t expected[N]; /* its hash; UINT64_MAX: it is not there. */

static void
setup(void)
{
    ix = (struct hash_index){0};
    for (size_t i = 0; i < N; i++) {
        entries[i] = (struct hash_entry){0};
        expected[i] = UINT64_MAX;
    }
}

static void
teardown(void)
{
    hash_index_uninit(&ix);
}

/* All that have this hash, each once. */
static void
check_hash(uint64_t hash)
{
    bool found[N] = {false};
    size_t n = 0, n_expected = 0;

    for (const struct hash_entry *e = hash_index_first(&ix, hash); e; e = hash_index_next(e)) {
        size_t i = (size_t) (e - entries);
        ck_assert_ptr_eq(e->owner, &expected[i]);
        ck_assert_uint_eq(expected[i], hash);
        ck_assert(!found[i]);
        found[i] = true;
        n++;
    }
    for (size_t i = 0; i < N; i++) {
        n_expected += expected[i] == hash;
    }
    ck_assert_uint_eq(n, n_expected);
}

START_TEST(all_of_a_hash)
    {
        size_t n = 0;

        srand((unsigned) _i);
        check_hash(1); /* of none. */
        for (unsigned k = 0; k < 3000; k++) {
            size_t i = (size_t) rand() % N;
            if (expected[i] == UINT64_MAX && rand() % 3) {
                expected[i] = (uint64_t) rand() % HASHES * 1000003;
                hash_index_insert(&ix, &entries[i], expected[i], &expected[i]);
                n++;
            } else {
                n -= expected[i] != UINT64_MAX;
                hash_index_remove(&ix, &entries[i]); /* also what is not there. */
                expected[i] = UINT64_MAX;
            }
            ck_assert_uint_eq(ix.n, n);
            check_hash((uint64_t) rand() % HASHES * 1000003);
        }
    }
END_TEST

START_TEST(hashes_differ)
    {
        struct in6_addr a, b;

        ck_assert_int_eq(inet_pton(AF_INET6, "fd00:1::1", &a), 1);
        ck_assert_int_eq(inet_pton(AF_INET6, "fd00:1::2", &b), 1);
        ck_assert_uint_ne(hash_addr(0, &a), hash_addr(0, &b));
        ck_assert_uint_ne(hash_addr(hash_addr(0, &a), &b), hash_addr(hash_addr(0, &b), &a));
        ck_assert_uint_ne(hash_number(0, 1), hash_number(0, 2));
        ck_assert_uint_ne(hash_number(1, 2), hash_number(2, 2));
    }
END_TEST

Suite *
hash_index_suite(void)
{
    Suite *suite = suite_create("hash_index");
    TCase *tc = tcase_create("hash_index");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, all_of_a_hash, 0, 5);
    tcase_add_test(tc, hashes_differ);
    suite_add_tcase(suite, tc);
    return suite;
}
