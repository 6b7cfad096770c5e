/* SPDX-License-Identifier: Apache-2.0
 *
 * castbench's histogram, trees of relays and samples of the progress.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/gap.h"
#include "bench/castbench/histogram.h"
#include "bench/castbench/sampler.h"
#include "bench/castbench/scheme.h"
#include "tests/unit/suites.h"

#define ARRAY_LEN(A) (sizeof(A) / sizeof *(A))

static uint64_t
random64(void)
{
    return (uint64_t) rand() << 42 ^ (uint64_t) rand() << 21 ^ (uint64_t) rand();
}

/*
 * Histogram.
 */

#define N_VALUES 1000

static uint64_t
below_100(void)
{
    return random64() % 100;
}

static uint64_t
below_second(void)
{
    return random64() % 1000000000;
}

/* As many of each power of two. */
static uint64_t
any_magnitude(void)
{
    return (random64() % (UINT64_C(1) << HISTOGRAM_BITS)) >> rand() % HISTOGRAM_BITS;
}

static uint64_t
rare_outliers(void)
{
    return rand() % 200 ? 4000 + random64() % 100 : 200000000 + random64() % 1000000000;
}

/* At both sides of where buckets become wider. */
static uint64_t
about_powers(void)
{
    return (UINT64_C(1) << rand() % HISTOGRAM_BITS) - (uint64_t) (rand() % 2);
}

static uint64_t (*const distributions[])(void) = {below_100, below_second, any_magnitude,
                                                  rare_outliers, about_powers};

static const struct {
    double percent;
    size_t num, den; /* the same, exactly. */
} percentiles[] = {{0.1, 1, 1000},    {50, 1, 2},           {90, 9, 10}, {99, 99, 100},
                   {99.9, 999, 1000}, {99.99, 9999, 10000}, {100, 1, 1}};

static int
compare_u64(const void *a_, const void *b_)
{
    uint64_t a = *(const uint64_t *) a_, b = *(const uint64_t *) b_;

    return a < b ? -1 : a > b;
}

/* The last time that counts as 'value'. */
static uint64_t
bucket_end(uint64_t value)
{
    size_t i = 0;

    while (histogram_low(i + 1) <= value) {
        i++;
    }
    return histogram_low(i + 1) - 1;
}

START_TEST(histogram_values)
    {
        uint64_t values[N_VALUES] = {0}, sum = 0;
        struct histogram h = {0};
        size_t n;

        srand((unsigned) _i);
        n = _i % 2 ? N_VALUES : 1 + (size_t) rand() % N_VALUES;
        for (size_t i = 0; i < n; i++) {
            values[i] = distributions[(size_t) _i % ARRAY_LEN(distributions)]();
            sum += values[i];
            histogram_add(&h, values[i]);
        }
        qsort(values, n, sizeof *values, compare_u64);
        ck_assert_uint_eq(h.n, n);
        ck_assert_uint_eq(h.sum, sum);
        ck_assert_uint_eq(h.min, values[0]);
        ck_assert_uint_eq(h.max, values[n - 1]);
        for (size_t i = 0; i < ARRAY_LEN(percentiles); i++) {
            size_t need = (n * percentiles[i].num + percentiles[i].den - 1) / percentiles[i].den;
            uint64_t exact = values[need - 1], end = bucket_end(exact);
            uint64_t got = histogram_percentile(&h, percentiles[i].percent);

            ck_assert_uint_eq(got, end < h.max ? end : h.max);
            ck_assert_uint_ge(got, exact);
            ck_assert_uint_le(got - exact, exact / 64);
        }
    }
END_TEST

START_TEST(histogram_buckets)
    {
        ck_assert_uint_eq(histogram_low(0), 0);
        ck_assert_uint_eq(histogram_low(HISTOGRAM_BUCKETS), UINT64_C(1) << HISTOGRAM_BITS);
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
            uint64_t low = histogram_low(i), next = histogram_low(i + 1);
            struct histogram h = {0};

            ck_assert_uint_gt(next, low);
            ck_assert(next - low == 1 || (next - low) * 64 <= low);
            histogram_add(&h, low);
            histogram_add(&h, next - 1);
            ck_assert_uint_eq(h.counts[i], 2);
        }
    }
END_TEST

START_TEST(histogram_few)
    {
        struct histogram h = {0};

        ck_assert_uint_eq(histogram_percentile(&h, 50), 0);
        ck_assert_uint_eq(histogram_percentile(&h, 100), 0);
        histogram_add(&h, 1000001);
        for (size_t i = 0; i < ARRAY_LEN(percentiles); i++) {
            ck_assert_uint_eq(histogram_percentile(&h, percentiles[i].percent), 1000001);
        }
        ck_assert_uint_eq(h.min, 1000001);

        /* Longer than what is told apart, but the longest is known. */
        histogram_add(&h, UINT64_C(3) << HISTOGRAM_BITS);
        ck_assert_uint_eq(h.counts[HISTOGRAM_BUCKETS - 1], 1);
        ck_assert_uint_eq(h.min, 1000001);
        ck_assert_uint_eq(histogram_percentile(&h, 50), bucket_end(1000001));
        ck_assert_uint_eq(histogram_percentile(&h, 50.1), UINT64_C(3) << HISTOGRAM_BITS);
        histogram_add(&h, UINT64_C(1) << HISTOGRAM_BITS);
        ck_assert_uint_eq(h.counts[HISTOGRAM_BUCKETS - 1], 2);
    }
END_TEST

/* So many that their product with a percentage does not fit 64 bits. */
START_TEST(histogram_many)
    {
        struct histogram h = {0};

        for (int i = 0; i < 10; i++) {
            histogram_add(&h, i < 9 ? 10 : 50);
        }
        h.n <<= 50;
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
            h.counts[i] <<= 50;
        }
        ck_assert_uint_eq(h.n, UINT64_C(10) << 50);
        ck_assert_uint_eq(histogram_percentile(&h, 90), 10);
        ck_assert_uint_eq(histogram_percentile(&h, 90.001), 50);
    }
END_TEST

/* Tenths of a percent of 1000 are whole numbers, whatever a double makes of them. */
START_TEST(histogram_tenths)
    {
        struct histogram h = {0};

        for (unsigned i = 0; i < 1000; i++) {
            histogram_add(&h, 50);
        }
        for (unsigned i = 1; i <= 1000; i++) {
            h.counts[50]--;
            h.counts[10]++;
            ck_assert_uint_eq(histogram_percentile(&h, i / 10.0), 10);
            ck_assert_uint_eq(histogram_percentile(&h, i / 10.0 + 0.001), 50);
        }
    }
END_TEST

/*
 * Schemes.
 */

START_TEST(scheme_names)
    {
        static const char *const bad[] = {"",           "unicas", "unicast ",   "Chain",
                                          "chain_pipe", "all",    "mcast,chain"};
        enum scheme scheme = SCHEME_PRIMARY;

        for (unsigned i = 0; i < N_SCHEMES; i++) {
            ck_assert(scheme_from_name(scheme_name((enum scheme) i), &scheme));
            ck_assert_uint_eq(scheme, i);
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
            scheme = SCHEME_PRIMARY;
            ck_assert(!scheme_from_name(bad[i], &scheme));
            ck_assert_uint_eq(scheme, SCHEME_PRIMARY);
        }
        ck_assert(scheme_from_name("chain-pipe", &scheme) && scheme == SCHEME_CHAIN_PIPE);
        ck_assert(scheme_from_name("unicast-serial", &scheme) && scheme == SCHEME_UNICAST_SERIAL);
    }
END_TEST

static unsigned
log2_up(unsigned n)
{
    unsigned k = 0;

    while (1u << k < n) {
        k++;
    }
    return k;
}

/* When a plan's members have a block, if a write takes one round.  Checks that it reaches each
 * once, and that each is in the list of its parent. */
static unsigned
rounds(const struct relay_plan *plan)
{
    unsigned at[1 + MAX_RECEIVERS] = {0}, queue[1 + MAX_RECEIVERS] = {0};
    unsigned n_reached = 1, last = 0;

    for (unsigned next = 0; next < n_reached; next++) {
        const struct relay_member *m = &plan->members[queue[next]];

        for (unsigned i = 0; i < m->n_children; i++) {
            unsigned child = m->children[i];

            ck_assert_uint_gt(child, 0);
            ck_assert_uint_lt(child, plan->n_members);
            ck_assert_uint_eq(plan->members[child].parent, queue[next]);
            ck_assert_uint_eq(at[child], 0);
            at[child] = at[queue[next]] + 1 + (plan->serial ? i : 0);
            last = at[child] > last ? at[child] : last;
            queue[n_reached++] = child;
        }
    }
    ck_assert_uint_eq(n_reached, plan->n_members);
    ck_assert_uint_eq(plan->members[0].parent, 0);
    return last;
}

static unsigned
subtree(const struct relay_plan *plan, unsigned member)
{
    const struct relay_member *m = &plan->members[member];
    unsigned n = 1;

    for (unsigned i = 0; i < m->n_children; i++) {
        n += subtree(plan, m->children[i]);
    }
    return n;
}

START_TEST(relay_plans)
    {
        static struct relay_plan plan; /* reused: nothing may be left of the one before. */
        const unsigned n = (unsigned) _i;
        const struct {
            enum scheme scheme;
            unsigned rounds, of_source;
            bool serial;
        } expected[] = {
            {SCHEME_BTREE, log2_up(n + 1), log2_up(n + 1), true},
            {SCHEME_UNICAST, 1, n, false},
            {SCHEME_UNICAST_SERIAL, n, n, true},
            {SCHEME_PRIMARY, n > 1 ? 2 : 1, 1, false},
            {SCHEME_CHAIN, n, 1, false},
            {SCHEME_CHAIN_PIPE, n, 1, false},
        };

        for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
            relay_plan_make(&plan, expected[i].scheme, n);
            ck_assert_uint_eq(plan.n_members, n + 1);
            ck_assert_uint_eq(rounds(&plan), expected[i].rounds);
            ck_assert_uint_eq(plan.members[0].n_children, expected[i].of_source);
            ck_assert_uint_eq(plan.serial, expected[i].serial);
            for (unsigned k = 0; k < plan.n_members; k++) {
                const struct relay_member *m = &plan.members[k];

                /* The first that is written to has most to pass on. */
                for (unsigned j = 1; j < m->n_children; j++) {
                    ck_assert_uint_ge(subtree(&plan, m->children[j - 1]),
                                      subtree(&plan, m->children[j]));
                }
            }
        }
        relay_plan_make(&plan, SCHEME_PRIMARY, n);
        ck_assert_uint_eq(plan.members[1].n_children, n - 1);
    }
END_TEST

/* One of them in full: 0 writes to 1, then 2 and 4 (1 to 3 and 5, 2 to 6), and 3 to 7 last. */
START_TEST(btree_of_seven)
    {
        static const struct {
            unsigned n, children[3];
        } expected[] = {{3, {1, 2, 4}}, {2, {3, 5}}, {1, {6}}, {1, {7}}, {0}, {0}, {0}, {0}};
        struct relay_plan plan;

        relay_plan_make(&plan, SCHEME_BTREE, 7);
        for (unsigned i = 0; i < plan.n_members; i++) {
            ck_assert_uint_eq(plan.members[i].n_children, expected[i].n);
            ck_assert_mem_eq(plan.members[i].children, expected[i].children,
                             expected[i].n * sizeof(unsigned));
        }
    }
END_TEST

/*
 * Samples.
 */

static struct run_result *result;
static struct sampler sampler;

static void
setup_sampler(void)
{
    result = calloc(1, sizeof *result);
    ck_assert(result);
    sampler_init(&sampler, result, 100);
}

static void
free_sampler(void)
{
    free(result);
}

static void
assert_sample(const struct sample *s, unsigned ms, unsigned bytes)
{
    ck_assert(s);
    ck_assert_uint_eq(s->ms, ms);
    ck_assert_uint_eq(s->bytes, bytes);
    ck_assert_ptr_eq(s, &result->samples[result->n_samples - 1]);
}

/* They are due at multiples of 100 ms, however late they come. */
START_TEST(samples_in_time)
    {
        ck_assert(!sampler_add(&sampler, 99, 10));
        assert_sample(sampler_add(&sampler, 100, 20), 100, 20);
        ck_assert(!sampler_add(&sampler, 199, 30));
        assert_sample(sampler_add(&sampler, 290, 40), 290, 20);
        assert_sample(sampler_add(&sampler, 300, 40), 300, 0);
        assert_sample(sampler_add(&sampler, 777, 100), 777, 60);
        ck_assert(!sampler_add(&sampler, 799, 110));
        assert_sample(sampler_end(&sampler, 799, 110), 799, 10);
        ck_assert_uint_eq(result->n_samples, 5);
    }
END_TEST

/* At the end there is none of nothing. */
START_TEST(last_sample)
    {
        ck_assert(!sampler_end(&sampler, 50, 0));
        assert_sample(sampler_end(&sampler, 60, 10), 60, 10);
        assert_sample(sampler_add(&sampler, 100, 10), 100, 0);
        ck_assert(!sampler_end(&sampler, 120, 10));
        ck_assert_uint_eq(result->n_samples, 2);
    }
END_TEST

/* More than there is room for: none of the bytes is missing, and they lie as far apart as the
 * interval is by then. */
START_TEST(many_samples)
    {
        const unsigned n = 5 * MAX_SAMPLES;
        uint64_t bytes = 0;

        for (unsigned i = 1; i <= n; i++) {
            sampler_add(&sampler, 100 * i, 3 * i);
        }
        ck_assert_uint_eq(sampler.interval_ms, 800);
        ck_assert_uint_gt(result->n_samples, MAX_SAMPLES / 2);
        for (unsigned i = 0; i < result->n_samples; i++) {
            ck_assert_uint_eq(result->samples[i].ms, 800 * (i + 1));
            bytes += result->samples[i].bytes;
        }
        ck_assert_uint_eq(bytes, 3 * n);
        ck_assert(!sampler_end(&sampler, 100 * n + 1, 3 * n));
    }
END_TEST

/* Idle time is none, and the first of equal ones stays. */
START_TEST(gaps)
    {
        struct gap g = {0};

        gap_begin(&g, 100);
        gap_begin(&g, 130); /* another one, while the first is under way. */
        ck_assert_uint_eq(g.longest, 0);
        gap_end(&g, 150, true);
        ck_assert_uint_eq(g.longest, 50);
        ck_assert_uint_eq(g.began, 100);
        gap_end(&g, 200, false);
        ck_assert_uint_eq(g.began, 100);
        gap_begin(&g, 900); /* nothing was under way since 200. */
        gap_end(&g, 960, false);
        ck_assert_uint_eq(g.longest, 60);
        ck_assert_uint_eq(g.began, 900);
        gap_end(&g, 5000, false);
        ck_assert_uint_eq(g.longest, 60);
    }
END_TEST

Suite *
bench_suite(void)
{
    Suite *suite = suite_create("bench");
    TCase *tcase = tcase_create("histogram");

    tcase_add_loop_test(tcase, histogram_values, 0, 8 * ARRAY_LEN(distributions));
    tcase_add_test(tcase, histogram_buckets);
    tcase_add_test(tcase, histogram_few);
    tcase_add_test(tcase, histogram_many);
    tcase_add_test(tcase, histogram_tenths);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("scheme");
    tcase_add_test(tcase, scheme_names);
    tcase_add_loop_test(tcase, relay_plans, 1, MAX_RECEIVERS + 1);
    tcase_add_test(tcase, btree_of_seven);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("gap");
    tcase_add_test(tcase, gaps);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("sampler");
    tcase_add_checked_fixture(tcase, setup_sampler, free_sampler);
    tcase_add_test(tcase, samples_in_time);
    tcase_add_test(tcase, last_sample);
    tcase_add_test(tcase, many_samples);
    suite_add_tcase(suite, tcase);
    return suite;
}
