/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/egress.c: the queue in front of a rate, and RED.
 */
#include "lib/egress.h"

#include <check.h>
#include <string.h>

#include "lib/ecn.h"
#include "lib/wire.h"
#include "tests/unit/suites.h"

#define POOL  400
#define FRAME 1000    /* bytes: a millisecond at RATE. */
#define RATE  8000000 /* bit/s. */

static struct packet_pool *pool;
static struct egress *queue;

static void
setup(void)
{
    pool = packet_pool_create(POOL);
}

static void
teardown(void)
{
    egress_destroy(queue);
    queue = NULL;
    ck_assert_uint_eq(packet_pool_n_free(pool), POOL);
    packet_pool_destroy(pool);
}

static void
start(struct egress_params params, uint64_t seed)
{
    egress_destroy(queue);
    queue = egress_create(&params, seed);
}

static struct egress_params
tail_drop(uint32_t limit)
{
    return (struct egress_params){.rate = RATE, .limit = limit};
}

static struct egress_params
red(uint32_t kmin, uint32_t kmax, uint32_t pmax)
{
    return (struct egress_params){
        .rate = RATE, .limit = 300, .kmin = kmin, .kmax = kmax, .pmax = pmax};
}

static struct ip6_hdr_wire *
ip_of(struct packet *p)
{
    return (void *) (p->data + sizeof(struct eth_hdr));
}

static struct packet *
make(uint8_t ecn, uint32_t number)
{
    uint8_t bytes[FRAME] = {[12] = 0x86, [13] = 0xdd};
    struct packet *p = packet_from_bytes(pool, bytes, sizeof bytes);

    ck_assert_ptr_nonnull(p);
    ip6_set_vtf(ip_of(p), 0xb8 | ecn, number);
    return p;
}

/* A frame comes; one that is refused is freed. */
static enum egress_result
put_as(enum egress_kind kind, uint8_t ecn, uint32_t number, uint64_t now, bool *congested)
{
    struct packet *p = make(ecn, number);
    enum egress_result result = egress_put(queue, p, kind, now, congested);

    if (result != EGRESS_QUEUED) {
        packet_put(p);
    }
    return result;
}

static enum egress_result
put(uint32_t number, uint64_t now)
{
    bool congested;

    return put_as(EGRESS_MARKABLE, ECN_ECT0, number, now, &congested);
}

/* The next frame, which has left: its number, and whether it says CE. */
static uint32_t
get(uint64_t now, bool *ce)
{
    bool marked;
    struct packet *p = egress_get(queue, now, &marked);

    ck_assert_ptr_nonnull(p);
    uint32_t number = ip6_flow_label(ip_of(p));
    *ce = (ip6_tc(ip_of(p)) & ECN_MASK) == ECN_CE;
    ck_assert_uint_eq(ip6_tc(ip_of(p)) & ~ECN_MASK, 0xb8);
    ck_assert(marked == *ce);
    packet_put(p);
    return number;
}

static void
expect(uint64_t now, uint32_t number)
{
    bool ce;

    ck_assert_uint_eq(get(now, &ce), number);
}

static void
expect_none(uint64_t now)
{
    bool marked;

    ck_assert_ptr_null(egress_get(queue, now, &marked));
}

static struct egress_stats
stats(void)
{
    struct egress_stats s;

    egress_get_stats(queue, &s);
    return s;
}

START_TEST(rate_spaces_frames)
    {
        start(tail_drop(100), 1);
        ck_assert_uint_eq(egress_deadline(queue), UINT64_MAX);
        for (uint32_t i = 0; i < 5; i++) {
            ck_assert_int_eq(put(i, 7), EGRESS_QUEUED);
        }
        for (uint32_t i = 0; i < 5; i++) {
            ck_assert_uint_eq(egress_deadline(queue), 7 + 1000 * (i + 1));
            expect_none(7 + 1000 * (i + 1) - 1);
            expect(7 + 1000 * (i + 1), i);
        }
        expect_none(49999);
        put(5, 50000); /* It was idle: it does not save up. */
        ck_assert_uint_eq(egress_deadline(queue), 51000);
    }
END_TEST

/* Fractions of a microsecond are not lost: 3 frames in 1 ms. */
START_TEST(rate_is_kept_in_ns)
    {
        start((struct egress_params){.rate = 3 * RATE, .limit = 100}, 1);
        for (uint32_t i = 0; i < 99; i++) {
            put(i, 0);
        }
        for (uint32_t i = 0; i < 98; i++) {
            expect(egress_deadline(queue), i);
        }
        ck_assert_uint_eq(egress_deadline(queue), 33000);
    }
END_TEST

START_TEST(limit_counts_what_is_sent)
    {
        start(tail_drop(3), 1);
        for (uint32_t i = 0; i < 5; i++) {
            ck_assert_int_eq(put(i, 0), i < 3 ? EGRESS_QUEUED : EGRESS_FULL);
        }
        /* There is room at the time at which a frame has left, fetched or not. */
        ck_assert_int_eq(put(5, 999), EGRESS_FULL);
        ck_assert_int_eq(put(5, 1000), EGRESS_QUEUED);
        ck_assert_int_eq(put(6, 1000), EGRESS_FULL);
        ck_assert_uint_eq(egress_deadline(queue), 0);
        expect(4000, 0);
        expect(4000, 1);
        expect(4000, 2);
        expect(4000, 5);
        expect_none(UINT64_MAX);
        ck_assert_uint_eq(stats().n_full, 4);
    }
END_TEST

/* RED's share of each depth: kmin 2, kmax 6, pmax 80 %. */
START_TEST(red_by_depth)
    {
        static const uint32_t shares[] = {0, 0, 0, 20, 40, 60, 80, 100, 100};
        enum { N = 2000 };
        unsigned hits = 0;

        for (uint32_t i = 0; i < N; i++) {
            bool congested;

            start(red(2, 6, 800000), i);
            for (int q = 0; q < _i; q++) {
                put_as(EGRESS_EXEMPT, ECN_NOT_ECT, 0, 0, &congested);
                ck_assert(!congested);
            }
            ck_assert_uint_eq(stats().depth, _i);
            ck_assert_int_eq(put_as(EGRESS_TOLD, ECN_ECT0, 1, 0, &congested), EGRESS_QUEUED);
            hits += congested;
            ck_assert_uint_eq(stats().n_congested, congested);
        }
        /* A standard deviation is at most 23. */
        if (shares[_i] == 0 || shares[_i] == 100) {
            ck_assert_uint_eq(hits, N * shares[_i] / 100);
        } else {
            ck_assert_uint_ge(hits, N * shares[_i] / 100 - 135);
            ck_assert_uint_le(hits, N * shares[_i] / 100 + 135);
        }
    }
END_TEST

/* kmin == kmax: nothing up to there, everything above. */
START_TEST(red_as_a_step)
    {
        bool congested;

        start(red(3, 3, 1), 1);
        for (uint32_t i = 0; i < 8; i++) {
            put_as(EGRESS_TOLD, ECN_ECT0, i, 0, &congested);
            ck_assert(congested == (i > 3));
        }
        start(tail_drop(5), 1);
        ck_assert(!egress_has_red(queue));
        for (uint32_t i = 0; i < 8; i++) {
            put_as(EGRESS_NOT_ECT, ECN_NOT_ECT, i, 0, &congested);
            ck_assert(!congested);
        }
        ck_assert_uint_eq(stats().n_full, 3);
    }
END_TEST

/* A frame is marked by what is behind it when it leaves, not by what was before it. */
START_TEST(marks_are_set_on_leaving)
    {
        bool ce;

        start(red(2, 2, EGRESS_PPM), 1);
        ck_assert(egress_has_red(queue));
        for (uint32_t i = 0; i < 6; i++) {
            put(i, 0);
        }
        for (uint32_t i = 0; i < 6; i++) {
            ck_assert_uint_eq(get(1000 * (i + 1), &ce), i);
            ck_assert(ce == (i < 3)); /* 5, 4, 3, then 2 behind it. */
        }
        ck_assert_uint_eq(stats().n_marked, 3);
        ck_assert_uint_eq(stats().n_congested, 3); /* the last three, when they came. */
    }
END_TEST

START_TEST(kinds)
    {
        static const struct {
            enum egress_kind kind;
            uint8_t ecn;
            enum egress_result result;
            bool congested, marked;
        } rows[] = {
            {EGRESS_EXEMPT, ECN_ECT0, EGRESS_QUEUED, false, false},
            {EGRESS_EXEMPT, ECN_NOT_ECT, EGRESS_QUEUED, false, false},
            {EGRESS_MARKABLE, ECN_ECT0, EGRESS_QUEUED, true, true},
            {EGRESS_MARKABLE, ECN_ECT1, EGRESS_QUEUED, true, true},
            {EGRESS_MARKABLE, ECN_NOT_ECT, EGRESS_QUEUED, true, false},
            {EGRESS_NOT_ECT, ECN_NOT_ECT, EGRESS_RED, true, false},
            {EGRESS_TOLD, ECN_ECT0, EGRESS_QUEUED, true, false},
        };
        bool congested, ce;

        start(red(0, 1, EGRESS_PPM), 1);
        put(0, 0);
        put(1, 0);
        ck_assert_int_eq(put_as(rows[_i].kind, rows[_i].ecn, 2, 0, &congested), rows[_i].result);
        ck_assert(congested == rows[_i].congested);
        ck_assert_uint_eq(stats().n_red, rows[_i].result == EGRESS_RED);
        put(3, 0);
        put(4, 0);
        expect(5000, 0);
        expect(5000, 1);
        if (rows[_i].result == EGRESS_QUEUED) {
            ck_assert_uint_eq(get(5000, &ce), 2);
            ck_assert(ce == rows[_i].marked);
        }
    }
END_TEST

/* A CE that it came with is no mark of this queue. */
START_TEST(older_mark_is_not_ours)
    {
        bool congested, marked;

        start(red(0, 1, EGRESS_PPM), 1);
        for (uint32_t i = 0; i < 4; i++) {
            put_as(EGRESS_MARKABLE, ECN_CE, i, 0, &congested);
        }
        struct packet *p = egress_get(queue, 1000, &marked);
        ck_assert_uint_eq(ip6_tc(ip_of(p)) & ECN_MASK, ECN_CE);
        ck_assert(!marked);
        packet_put(p);
        ck_assert_uint_eq(stats().n_marked, 0);
    }
END_TEST

/* Only what has an IPv6 header has an ECN field. */
START_TEST(other_frames_are_left_alone)
    {
        struct packet *p = make(ECN_ECT0, 0);

        ck_assert_uint_eq(egress_ecn(p), ECN_ECT0);
        p->data[12] = 0x08;
        ck_assert_uint_eq(egress_ecn(p), ECN_NOT_ECT);
        p->data[12] = 0x86;
        p->len = sizeof(struct eth_hdr) + sizeof(struct ip6_hdr_wire);
        ck_assert_uint_eq(egress_ecn(p), ECN_ECT0);
        p->len--;
        ck_assert_uint_eq(egress_ecn(p), ECN_NOT_ECT);
        packet_put(p);
    }
END_TEST

/* Frames come in bursts; marks of them all, as one string. */
static void
run(uint64_t seed, bool late, char marks[121])
{
    uint32_t n = 0;
    bool ce;

    start(red(2, 20, EGRESS_PPM), seed);
    for (uint32_t i = 0; i < 120; i++) {
        uint64_t now = i / 30 * 20000 + i % 30 * 100;

        while (!late && egress_deadline(queue) <= now) {
            ck_assert_uint_eq(get(egress_deadline(queue), &ce), n);
            marks[n++] = ce ? 'm' : '.';
        }
        put(i, now);
    }
    while (n < 120) {
        ck_assert_uint_eq(get(1000000, &ce), n);
        marks[n++] = ce ? 'm' : '.';
    }
    marks[n] = '\0';
}

START_TEST(late_caller_changes_no_mark)
    {
        char prompt[121], late[121], other[121];

        run(5, false, prompt);
        run(5, true, late);
        run(6, true, other);
        ck_assert_str_eq(prompt, late);
        ck_assert_str_ne(prompt, other);
        ck_assert_ptr_nonnull(strchr(prompt, 'm'));
    }
END_TEST

START_TEST(other_rate_keeps_frames)
    {
        struct egress_params params = tail_drop(10);

        start(params, 1);
        for (uint32_t i = 0; i < 6; i++) {
            put(i, 0);
        }
        /* At 1.5 ms one has left and half of the next is sent; the other half takes 1/10. */
        params.rate = 10 * RATE;
        params.limit = 2;
        egress_configure(queue, &params, 1500);
        ck_assert_uint_eq(stats().depth, 5);
        expect(1500, 0);
        ck_assert_uint_eq(egress_deadline(queue), 1550);
        ck_assert_int_eq(put(9, 1500), EGRESS_FULL);
        for (uint32_t i = 1; i < 6; i++) {
            expect_none(1550 + 100 * (i - 1) - 1);
            expect(1550 + 100 * (i - 1), i);
        }
        put(6, 2000);
        put(7, 2000);
        ck_assert_int_eq(put(8, 2000), EGRESS_FULL);
    }
END_TEST

/* The slowest rate against the fastest: nothing overflows, nothing waits for ever. */
START_TEST(far_apart_rates)
    {
        struct egress_params slow = {.rate = 1000, .limit = 10};
        struct egress_params fast = {.rate = UINT64_C(1000000000000), .limit = 10};

        start(slow, 1);
        put(0, 0);
        put(1, 0);
        ck_assert_uint_eq(egress_deadline(queue), 8000000);
        egress_configure(queue, &fast, 10);
        ck_assert_uint_eq(egress_deadline(queue), 11);
        egress_configure(queue, &slow, 10);
        ck_assert_uint_ge(egress_deadline(queue), 7000000); /* 7.99 ns were 7. */
        ck_assert_uint_le(egress_deadline(queue), 8000010);
    }
END_TEST

START_TEST(counters)
    {
        bool congested;

        start((struct egress_params){RATE, .limit = 4, .kmin = 2, .kmax = 2, .pmax = 1}, 1);
        for (uint32_t i = 0; i < 6; i++) {
            put_as(i == 3 ? EGRESS_NOT_ECT : EGRESS_MARKABLE, ECN_ECT0, i, 0, &congested);
        }
        /* 0 1 2 wait, 3 is dropped by RED, 4 waits, 5 finds it full. */
        struct egress_stats s = stats();
        ck_assert_uint_eq(s.n_frames, 6);
        ck_assert_uint_eq(s.n_bytes, 6 * FRAME);
        ck_assert_uint_eq(s.n_full, 1);
        ck_assert_uint_eq(s.n_red, 1);
        ck_assert_uint_eq(s.n_congested, 3);
        ck_assert_uint_eq(s.depth, 4);
        ck_assert_uint_eq(s.depth_bytes, 4 * FRAME);
        ck_assert_uint_eq(s.n_sent, 0);
        expect(3000, 0);
        s = stats();
        ck_assert_uint_eq(s.n_sent, 3); /* two of them were not fetched yet. */
        ck_assert_uint_eq(s.n_sent_bytes, 3 * FRAME);
        ck_assert_uint_eq(s.n_marked, 1);
        ck_assert_uint_eq(s.depth, 1);
        ck_assert_uint_eq(s.depth_bytes, FRAME);
        ck_assert_uint_eq(s.max_depth, 4);
        ck_assert_uint_eq(s.max_depth_bytes, 4 * FRAME);
    }
END_TEST

/* Whatever the limit is, an eighth of the pool is left. */
START_TEST(pool_is_not_used_up)
    {
        uint32_t n = 0;

        start(tail_drop(POOL), 1);
        while (put(n, 0) == EGRESS_QUEUED) {
            n++;
        }
        ck_assert_uint_eq(packet_pool_n_free(pool), POOL / 8);
        ck_assert_uint_eq(n, POOL - POOL / 8);
        ck_assert_uint_eq(stats().n_full, 1);
    }
END_TEST

Suite *
egress_suite(void)
{
    Suite *s = suite_create("egress");
    TCase *tc = tcase_create("egress");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, rate_spaces_frames);
    tcase_add_test(tc, rate_is_kept_in_ns);
    tcase_add_test(tc, limit_counts_what_is_sent);
    tcase_add_loop_test(tc, red_by_depth, 0, 9);
    tcase_add_test(tc, red_as_a_step);
    tcase_add_test(tc, marks_are_set_on_leaving);
    tcase_add_loop_test(tc, kinds, 0, 7);
    tcase_add_test(tc, older_mark_is_not_ours);
    tcase_add_test(tc, other_frames_are_left_alone);
    tcase_add_test(tc, late_caller_changes_no_mark);
    tcase_add_test(tc, other_rate_keeps_frames);
    tcase_add_test(tc, far_apart_rates);
    tcase_add_test(tc, counters);
    tcase_add_test(tc, pool_is_not_used_up);
    suite_add_tcase(s, tc);
    return s;
}
