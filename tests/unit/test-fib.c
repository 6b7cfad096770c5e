/* SPDX-License-Identifier: Apache-2.0
 *
 * Longest-prefix table: by example, and against a linear search.
 */
#include <arpa/inet.h>
#include <stdlib.h>

#include "lib/fib.h"
#include "tests/unit/suites.h"

static struct in6_addr
addr(const char *s)
{
    struct in6_addr a;
    ck_assert_int_eq(inet_pton(AF_INET6, s, &a), 1);
    return a;
}

static void
set(struct fib *fib, const char *prefix, uint8_t plen, uint32_t value)
{
    struct in6_addr a = addr(prefix);
    fib_set(fib, &a, plen, value);
}

/* -1: none. */
static int64_t
get(const struct fib *fib, const char *s)
{
    struct in6_addr a = addr(s);
    uint32_t value;
    return fib_lookup(fib, &a, &value) ? (int64_t) value : -1;
}

START_TEST(longest_wins)
    {
        struct fib *fib = fib_create();

        ck_assert_int_eq(get(fib, "::"), -1);
        set(fib, "5f00:0:100::1", 128, 1);
        set(fib, "5f00:0:100:e000::", 64, 2);
        set(fib, "5f00:0:100::", 48, 3);
        set(fib, "5f00::", 32, 4);
        ck_assert_int_eq(get(fib, "5f00:0:100::1"), 1);
        ck_assert_int_eq(get(fib, "5f00:0:100::2"), 3);
        ck_assert_int_eq(get(fib, "5f00:0:100:e000::77"), 2);
        ck_assert_int_eq(get(fib, "5f00:0:101::1"), 4);
        ck_assert_int_eq(get(fib, "fd00::1"), -1);

        set(fib, "::", 0, 5);
        ck_assert_int_eq(get(fib, "fd00::1"), 5);
        ck_assert_int_eq(get(fib, "5f00:0:100::1"), 1);
        fib_destroy(fib);
    }
END_TEST

START_TEST(replace)
    {
        struct fib *fib = fib_create();

        set(fib, "fd00:1::", 64, 1);
        set(fib, "fd00:1::7", 128, 2);
        set(fib, "fd00:1::ffff", 64, 3); /* host bits do not count: the same prefix. */
        ck_assert_int_eq(get(fib, "fd00:1::7"), 2);
        ck_assert_int_eq(get(fib, "fd00:1::8"), 3);
        set(fib, "fd00:1::7", 128, 4);
        ck_assert_int_eq(get(fib, "fd00:1::7"), 4);
        ck_assert_int_eq(get(fib, "fd00:2::7"), -1);
        fib_destroy(fib);
    }
END_TEST

START_TEST(every_length)
    {
        struct fib *fib = fib_create();
        struct in6_addr ones;
        memset(&ones, 0xff, sizeof ones);

        for (unsigned plen = 0; plen <= 128; plen++) {
            fib_set(fib, &ones, (uint8_t) plen, plen);
        }
        for (unsigned bit = 0; bit < 128; bit++) {
            struct in6_addr a = ones;
            uint32_t value;
            a.s6_addr[bit / 8] ^= (uint8_t) (0x80 >> bit % 8);
            ck_assert(fib_lookup(fib, &a, &value));
            ck_assert_uint_eq(value, bit); /* differs from that bit on. */
        }
        fib_destroy(fib);
    }
END_TEST

/* A random history on few, crowded prefixes, checked against a linear search. */
#define N_MODEL 400

struct model_entry {
    struct in6_addr prefix;
    uint8_t plen;
    bool present;
    uint32_t value;
};

static bool
covers(const struct model_entry *e, const struct in6_addr *a)
{
    for (unsigned bit = 0; bit < e->plen; bit++) {
        if ((a->s6_addr[bit / 8] ^ e->prefix.s6_addr[bit / 8]) & 0x80 >> bit % 8) {
            return false;
        }
    }
    return true;
}

static bool
model_lookup(const struct model_entry *m, const struct in6_addr *a, uint32_t *value)
{
    int best = -1;

    for (size_t i = 0; i < N_MODEL; i++) {
        if (m[i].present && m[i].plen > best && covers(&m[i], a)) {
            best = m[i].plen;
            *value = m[i].value;
        }
    }
    return best >= 0;
}

START_TEST(history)
    {
        static const uint8_t plens[] = {48, 64, 127, 128};
        struct model_entry m[N_MODEL] = {0};
        struct fib *fib = fib_create();
        unsigned short seed[3] = {1, 2, 3};

        for (size_t i = 0; i < N_MODEL; i++) { /* distinct prefixes: i is in the bits that count. */
            m[i].plen = i ? plens[i % 4] : 0;
            if (i) {
                m[i].prefix =
                    (struct in6_addr){.s6_addr = {[4] = (uint8_t) (i >> 8), [5] = (uint8_t) i}};
            }
        }
        for (uint32_t step = 0; step < 4000; step++) {
            struct model_entry *e = &m[(size_t) nrand48(seed) % N_MODEL];

            fib_set(fib, &e->prefix, e->plen, step);
            e->present = true;
            e->value = step;

            uint32_t want = 0, got = 0;
            struct in6_addr a = m[(size_t) nrand48(seed) % N_MODEL].prefix;
            a.s6_addr[15] ^= (uint8_t) (nrand48(seed) & 1);
            ck_assert_int_eq(fib_lookup(fib, &a, &got), model_lookup(m, &a, &want));
            ck_assert_uint_eq(got, want);
        }
        fib_destroy(fib);
    }
END_TEST

Suite *
fib_suite(void)
{
    Suite *s = suite_create("fib");
    TCase *tc = tcase_create("fib");

    tcase_add_test(tc, longest_wins);
    tcase_add_test(tc, replace);
    tcase_add_test(tc, every_length);
    tcase_add_test(tc, history);
    suite_add_tcase(s, tc);
    return s;
}
