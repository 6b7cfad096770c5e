/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/impair.c: what a bad link does to frames, and its parameters as text.
 */
#include "lib/impair.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ecn.h"
#include "tests/unit/suites.h"

#define POOL  3000
#define FRAME 1000 /* bytes. */

static struct packet_pool *pool;
static struct impair *im;

static void
setup(void)
{
    pool = packet_pool_create(POOL);
}

static void
teardown(void)
{
    impair_destroy(im);
    im = NULL;
    ck_assert_uint_eq(packet_pool_n_free(pool), POOL);
    packet_pool_destroy(pool);
}

static void
start(const char *text)
{
    struct impair_params params;
    char *error;

    ck_assert_msg(impair_parse(text, &params, &error), "%s", text);
    impair_destroy(im);
    im = impair_create(&params, 1);
}

/* A frame with 'number' in its first bytes behind the Ethernet header. */
static void
input(uint32_t number, uint64_t now)
{
    uint8_t bytes[FRAME] = {0};
    memcpy(bytes + 14, &number, sizeof number);
    struct packet *p = packet_from_bytes(pool, bytes, sizeof bytes);
    ck_assert_ptr_nonnull(p);
    impair_input(im, pool, p, now);
    packet_put(p);
}

/* The number of the next frame that has left by 'now'. */
static uint32_t
output(uint64_t now)
{
    uint32_t number;
    struct packet *p = impair_output(im, now);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(p->len, FRAME);
    memcpy(&number, p->data + 14, sizeof number);
    packet_put(p);
    return number;
}

static void
expect_none(uint64_t now)
{
    ck_assert_ptr_null(impair_output(im, now));
}

static struct impair_stats
stats(void)
{
    struct impair_stats s;
    impair_get_stats(im, &s);
    return s;
}

START_TEST(delay_keeps_order)
    {
        start("delay=10ms jitter=5ms seed=3");
        for (uint32_t i = 0; i < 500; i++) {
            input(i, i);
        }
        ck_assert_uint_ge(impair_deadline(im), 5000);
        expect_none(impair_deadline(im) - 1);
        for (uint32_t i = 0; i < 500; i++) {
            uint64_t due = impair_deadline(im);
            ck_assert_uint_le(due, 15000 + 500);
            ck_assert_uint_eq(output(due), i);
        }
        ck_assert_uint_eq(impair_deadline(im), UINT64_MAX);
    }
END_TEST

START_TEST(delay_alone_is_exact)
    {
        start("delay=250us");
        input(1, 1000);
        input(2, 1001);
        ck_assert_uint_eq(impair_deadline(im), 1250);
        ck_assert_uint_eq(output(1250), 1);
        expect_none(1250);
        ck_assert_uint_eq(output(1251), 2);
    }
END_TEST

/* All that it holds leaves at the end of time, as when its parameters change. */
START_TEST(all_of_a_queue_leaves)
    {
        start("rate=8M delay=1ms");
        for (uint32_t i = 0; i < 5; i++) {
            input(i, 7);
        }
        for (uint32_t i = 0; i < 5; i++) {
            ck_assert_uint_eq(output(UINT64_MAX), i);
        }
        expect_none(UINT64_MAX);
        ck_assert_uint_eq(impair_n_held(im), 0);
    }
END_TEST

/* Several frames may leave a fast queue in one microsecond: each is late by the same. */
START_TEST(late_of_a_fast_queue)
    {
        start("rate=100G reorder=100% late=1ms");
        for (uint32_t i = 0; i < 30; i++) {
            input(i, 5000);
        }
        expect_none(5999);
        for (uint32_t i = 0; i < 30; i++) {
            ck_assert_uint_eq(output(6004), i);
        }
    }
END_TEST

START_TEST(rate_spaces_frames)
    {
        start("rate=8M delay=1ms"); /* 1 us a byte. */
        for (uint32_t i = 0; i < 5; i++) {
            input(i, 7);
        }
        for (uint32_t i = 0; i < 5; i++) {
            expect_none(7 + 1000 * (i + 1) + 999);
            ck_assert_uint_eq(output(7 + 1000 * (i + 1) + 1000), i);
        }
        input(5, 50000); /* The link was idle: it does not save up. */
        expect_none(51999);
        ck_assert_uint_eq(output(52000), 5);
    }
END_TEST

/* Who looks at the end gets the same as who looks at each deadline. */
START_TEST(late_looks_change_nothing)
    {
        uint32_t order[2][40] = {{0}};

        for (int late = 0; late < 2; late++) {
            uint32_t n = 0;

            start("rate=8M queue=30 delay=1ms jitter=900us reorder=20% late=3ms seed=4");
            for (uint32_t i = 0; i <= 40; i++) {
                uint64_t until = i < 40 ? 100 * i : 1000000;

                while ((i == 40 || !late) && impair_deadline(im) <= until) {
                    uint64_t when = late ? until : impair_deadline(im);
                    struct packet *p = impair_output(im, when);

                    if (p) {
                        memcpy(&order[late][n++], p->data + 14, sizeof order[late][0]);
                        packet_put(p);
                    }
                }
                if (i < 40) {
                    input(i, until);
                }
            }
            ck_assert_uint_gt(stats().n_late, 2);
            ck_assert_uint_eq(stats().n_queue_full, 40 - n);
            ck_assert_uint_gt(40 - n, 0);
        }
        ck_assert_mem_eq(order[0], order[1], sizeof order[0]);
    }
END_TEST

/* What comes marked by the queue: frames that say ECT only. */
START_TEST(red_marks_ect_only)
    {
        static const uint8_t ecns[] = {ECN_NOT_ECT, ECN_ECT0, ECN_ECT1, ECN_CE};
        uint8_t bytes[FRAME] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60};

        start("rate=8M kmax=1");
        for (size_t i = 0; i < 12; i++) {
            bytes[15] = (uint8_t) (ecns[i % 4] << 4 | 5);
            struct packet *p = packet_from_bytes(pool, bytes, sizeof bytes);
            impair_input(im, pool, p, 0);
            packet_put(p);
        }
        for (size_t i = 0; i < 12; i++) {
            struct packet *p = impair_output(im, 1000000);
            bool marked = i < 11 && ecns[i % 4] != ECN_NOT_ECT; /* one behind it. */
            uint8_t ecn = marked ? ECN_CE : ecns[i % 4];

            ck_assert_uint_eq(p->data[14], 0x60);
            ck_assert_uint_eq(p->data[15], ecn << 4 | 5);
            packet_put(p);
        }
        ck_assert_uint_eq(stats().n_marked, 6);
        ck_assert_uint_eq(stats().n_queue_full, 0);
    }
END_TEST

START_TEST(queue_has_a_limit)
    {
        start("rate=8M queue=3");
        for (uint32_t i = 0; i < 5; i++) {
            input(i, 0);
        }
        ck_assert_uint_eq(stats().n_queue_full, 2);
        ck_assert_uint_eq(output(1000), 0);
        input(5, 1000); /* There is room for one more. */
        input(6, 1000);
        ck_assert_uint_eq(stats().n_queue_full, 3);
        ck_assert_uint_eq(output(4000), 1);
        ck_assert_uint_eq(output(4000), 2);
        ck_assert_uint_eq(output(4000), 5);
        expect_none(1000000);
    }
END_TEST

/* Shares of 2,000 frames, within five standard deviations. */
START_TEST(shares_are_met)
    {
        uint32_t n = 0, n_spoilt = 0, n_back = 0, last = 0;

        start("loss=5% duplicate=10% reorder=4% late=100us corrupt=3% seed=9");
        for (uint32_t i = 0; i < 2000; i++) {
            input(i << 3, i * 10);
        }
        for (struct packet *p; (p = impair_output(im, UINT64_MAX - 1)); n++) {
            uint32_t number, ones = 0;

            memcpy(&number, p->data + 14, sizeof number);
            for (size_t j = 14 + sizeof number; j < p->len; j++) {
                ones += (uint32_t) __builtin_popcount(p->data[j]);
            }
            ck_assert_uint_le(ones, 1);
            n_spoilt += ones;
            n_back += number < last;
            last = number;
            packet_put(p);
        }
        struct impair_stats s = stats();
        ck_assert_uint_eq(s.n_frames, 2000);
        ck_assert_uint_eq(n, 2000 - s.n_lost + s.n_duplicated);
        ck_assert_uint_ge(s.n_lost, 51);
        ck_assert_uint_le(s.n_lost, 149);
        ck_assert_uint_ge(s.n_duplicated, 120);
        ck_assert_uint_le(s.n_duplicated, 260);
        ck_assert_uint_ge(s.n_late, 32);
        ck_assert_uint_le(s.n_late, 120);
        ck_assert_uint_ge(n_back, 20);
        ck_assert_uint_ge(s.n_corrupted, 20);
        ck_assert_uint_le(s.n_corrupted, 98);
        ck_assert_uint_ge(n_spoilt + 3, s.n_corrupted); /* few hit the number. */
    }
END_TEST

START_TEST(seeds_repeat_and_differ)
    {
        uint64_t lost[3];
        const char *const texts[] = {"loss=30% seed=5", "loss=30% seed=5", "loss=30% seed=6"};
        char which[3][201];

        for (int t = 0; t < 3; t++) {
            start(texts[t]);
            for (uint32_t i = 0; i < 200; i++) {
                uint64_t before = stats().n_lost;
                input(i, i);
                which[t][i] = stats().n_lost > before ? '1' : '0';
            }
            which[t][200] = '\0';
            lost[t] = stats().n_lost;
        }
        ck_assert_uint_gt(lost[0], 0);
        ck_assert_str_eq(which[0], which[1]);
        ck_assert_str_ne(which[0], which[2]);
    }
END_TEST

/* One more impairment does not change which frames get lost. */
START_TEST(impairments_are_independent)
    {
        uint64_t lost[2];
        const char *const texts[] = {"loss=10% seed=5", "loss=10% seed=5 duplicate=50% jitter=1ms"};

        for (int t = 0; t < 2; t++) {
            uint64_t hash = 0;
            start(texts[t]);
            for (uint32_t i = 0; i < 500; i++) {
                uint64_t before = stats().n_lost;
                input(i, i);
                hash = hash * 31 + (stats().n_lost > before);
            }
            lost[t] = hash;
        }
        ck_assert_uint_eq(lost[0], lost[1]);
    }
END_TEST

/* What a bad link holds does not keep the node from anything else. */
START_TEST(pool_is_not_used_up)
    {
        start("delay=1s");
        struct packet *p = packet_from_bytes(pool, "0123456789abcdefgh", 18);
        for (int i = 0; i < POOL; i++) {
            impair_input(im, pool, p, 0);
        }
        packet_put(p);
        ck_assert_uint_eq(packet_pool_n_free(pool), POOL / 8 + 1);
        ck_assert_uint_eq(impair_n_held(im), POOL - POOL / 8 - 1);
        ck_assert_uint_eq(stats().n_no_buffer, POOL / 8 + 1);
    }
END_TEST

START_TEST(text_round_trips)
    {
        static const char *const texts[][2] = {
            {"", ""},
            {"none", ""},
            {"loss=0%", ""},
            {"seed=4 queue=7", ""},
            {"loss=1%,delay=10ms", "delay=10ms loss=1%"},
            {"rate=2.5G", "rate=2500M"},
            {"rate=1000000", "rate=1M"},
            {"delay=0.5ms jitter=1.000s", "delay=500us jitter=1s"},
            {"rate=1M kmax=20 kmin=5 pmax=100%", "rate=1M kmin=5 kmax=20"},
            {"rate=1M kmax=1 pmax=0%", "rate=1M kmax=1 pmax=0%"},
            {"queue=7 pmax=100%", ""},
            {"rate=999999999999 queue=999999 kmin=999998 kmax=999999 pmax=99.9999% delay=59999999us "
             "jitter=59999999us loss=99.9999% duplicate=99.9999% reorder=99.9999% late=59999999us "
             "corrupt=99.9999% seed=4294967295",
             "rate=999999999999 queue=999999 kmin=999998 kmax=999999 pmax=99.9999% delay=59999999us "
             "jitter=59999999us loss=99.9999% duplicate=99.9999% reorder=99.9999% late=59999999us "
             "corrupt=99.9999% seed=4294967295"},
            {"loss=0.0001% reorder=100% late=0us", "loss=0.0001% reorder=100% late=0us"},
            {"rate=100M queue=200 delay=1ms jitter=1us loss=12.5% duplicate=3% reorder=4% late=2ms "
             "corrupt=0.25% seed=4294967295",
             "rate=100M queue=200 delay=1ms jitter=1us loss=12.5% duplicate=3% reorder=4% late=2ms "
             "corrupt=0.25% seed=4294967295"},
        };
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            struct impair_params params;
            char text[IMPAIR_TEXT_SIZE];
            char *error;

            ck_assert_msg(impair_parse(texts[i][0], &params, &error), "%s", texts[i][0]);
            impair_format(&params, text);
            ck_assert_str_eq(text, texts[i][1]);
        }
    }
END_TEST

START_TEST(nonsense_is_named)
    {
        static const char *const texts[][2] = {
            {"loss", "\"loss\": must be NAME=VALUE, with rate, queue"},
            {"los=1%", "\"los=1%\": must be NAME=VALUE"},
            {"loss=1", "\"loss=1\": must be a number with %, e.g. 0.1%"},
            {"loss=-1%", "\"loss=-1%\": must be a number with %"},
            {"loss=101%", "\"loss=101%\": must be 0% to 100%"},
            {"loss=0.00001%", "\"loss=0.00001%\": must be a number with %"},
            {"loss=.5%", "\"loss=.5%\""},
            {"loss=5.%", "\"loss=5.%\""},
            {"delay=10", "\"delay=10\": must be a number with us, ms or s"},
            {"delay=61s", "\"delay=61s\": must be 0us to 60s"},
            {"delay=0.0001ms", "\"delay=0.0001ms\""},
            {"rate=0", "\"rate=0\": must be 1k to 1000G"},
            {"rate=9999999999999999999999", "\"rate=9999999999999999999999\""},
            {"rate=999999999999G", "\"rate=999999999999G\""},
            {"queue=0", "\"queue=0\": must be 1 to 1000000"},
            {"queue=1.5", "\"queue=1.5\": must be a number"},
            {"seed=4294967296", "\"seed=4294967296\": must be 0 to 4294967295"},
            {"rate=1M kmax=0", "\"kmax=0\": must be 1 to 1000000"},
            {"rate=1M kmax=20 pmax=101%", "\"pmax=101%\": must be 0% to 100%"},
            {"kmax=20", "kmin, kmax and pmax need a rate"},
            {"loss=1% kmin=20", "kmin, kmax and pmax need a rate"},
            {"pmax=50%", "kmin, kmax and pmax need a rate"},
            {"rate=1M kmin=20", "kmin needs a kmax that is not less"},
            {"rate=1M kmin=21 kmax=20", "kmin needs a kmax that is not less"},
            {"rate=1M pmax=50%", "pmax needs a kmax"},
            {"loss=1% loss=1%", "\"loss=1%\": loss is there twice"},
            {"none loss=1%", "\"none\""},
        };
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            struct impair_params params;
            char *error = NULL;

            ck_assert_msg(!impair_parse(texts[i][0], &params, &error), "%s", texts[i][0]);
            ck_assert_msg(!strncmp(error, texts[i][1], strlen(texts[i][1])), "%s, expected %s",
                          error, texts[i][1]);
            free(error);
        }
    }
END_TEST

Suite *
impair_suite(void)
{
    Suite *s = suite_create("impair");
    TCase *tc = tcase_create("impair");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, delay_keeps_order);
    tcase_add_test(tc, delay_alone_is_exact);
    tcase_add_test(tc, rate_spaces_frames);
    tcase_add_test(tc, all_of_a_queue_leaves);
    tcase_add_test(tc, late_of_a_fast_queue);
    tcase_add_test(tc, late_looks_change_nothing);
    tcase_add_test(tc, red_marks_ect_only);
    tcase_add_test(tc, queue_has_a_limit);
    tcase_add_test(tc, shares_are_met);
    tcase_add_test(tc, seeds_repeat_and_differ);
    tcase_add_test(tc, impairments_are_independent);
    tcase_add_test(tc, pool_is_not_used_up);
    tcase_add_test(tc, text_round_trips);
    tcase_add_test(tc, nonsense_is_named);
    suite_add_tcase(s, tc);
    return s;
}
