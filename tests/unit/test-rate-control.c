/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the rate controllers, one by one.
 */
#include "lib/rate-control.h"

#include "tests/unit/suites.h"

#define MBIT UINT64_C(1000000)
#define LINE (1000 * MBIT)
#define T0   UINT64_C(5000000)

static const struct rate_signal cnp = {.cause = RATE_CNP};

static struct rate_params params;
static struct rate_control rc;

static void
setup(void)
{
    params = rate_params_default(LINE, 0);
    rc = (struct rate_control){0};
}

/* Runs the timers one by one, with something sent before each. */
static void
run_until(uint64_t now)
{
    uint64_t when;

    while ((when = rate_control_deadline(&rc)) <= now) {
        rate_control_sent(&rc, &params, 1000, when);
        rate_control_timer(&rc, &params, when);
        ck_assert_uint_gt(rate_control_deadline(&rc), when - 1);
        ck_assert(!rc.active || rc.rate >= params.floor);
        ck_assert_uint_le(rc.rate, params.line);
    }
}

START_TEST(nothing_before_the_first_signal)
    {
        rate_control_sent(&rc, &params, 1000, T0);
        rate_control_timer(&rc, &params, T0);
        ck_assert_uint_eq(rate_control_rate(&rc), 0);
        ck_assert_uint_eq(rate_control_deadline(&rc), UINT64_MAX);
    }
END_TEST

START_TEST(the_first_signal_halves)
    {
        ck_assert(rate_control_signal(&rc, &params, &cnp, T0));
        ck_assert_uint_eq(rate_control_rate(&rc), LINE / 2);
        ck_assert_uint_eq(rc.target, LINE);
        ck_assert_uint_eq(rc.last_cut, T0);
    }
END_TEST

/* 100,000 signals a second: one cut in an interval, and never below the floor. */
START_TEST(one_cut_in_an_interval)
    {
        uint64_t cut_at = 0;

        for (uint64_t now = T0; now < T0 + 10 * MBIT; now += 10) {
            if (rate_control_signal(&rc, &params, &cnp, now)) {
                ck_assert_uint_ge(now, cut_at + params.interval_usec);
                cut_at = now;
            }
            ck_assert_uint_ge(rate_control_rate(&rc), params.floor);
        }
        ck_assert_uint_eq(rc.n_signals, 1000000);
        ck_assert_uint_eq(rc.n_cuts, 1000);
        ck_assert_uint_eq(rate_control_rate(&rc), LINE / 200);
        ck_assert_uint_eq(rc.target, LINE);
    }
END_TEST

/* F - 1 stages of fast recovery, an additive one, hyper ones that grow. */
START_TEST(stages)
    {
        uint64_t target = LINE / 2, rate = LINE / 4;

        rate_control_signal(&rc, &params, &cnp, T0);
        rc.target = target;
        rc.rate = rate;
        for (unsigned i = 1; i <= 9; i++) {
            uint64_t when = T0 + i * params.timer_usec;

            run_until(when - 1);
            ck_assert_uint_eq(rc.rate, rate);
            run_until(when);
            target += i < 5 ? 0 : i == 5 ? LINE / 1000 : LINE / 100 * (i - 5);
            rate = (rate + target + 1) / 2;
            ck_assert_uint_eq(rc.target, target);
            ck_assert_uint_eq(rc.rate, rate);
        }
        /* A cut begins the stages anew. */
        rate_control_signal(&rc, &params, &cnp, T0 + 100000);
        ck_assert_uint_eq(rc.timer_stage, 0);
        ck_assert_uint_eq(rate_control_deadline(&rc), T0 + 111000);
    }
END_TEST

/* With a byte counter: additive when one count of stages has reached F, hyper when both have. */
START_TEST(byte_counter)
    {
        static const struct {
            unsigned timer, byte; /* stages before, */
            unsigned permille;    /* what a stage by bytes adds to the target. */
        } cases[] = {{0, 0, 0},  {3, 3, 0},  {0, 4, 1},   {5, 0, 1},
                     {4, 20, 1}, {5, 4, 10}, {20, 5, 20}, {6, 20, 20}};

        params.byte_counter = 10000;
        rate_control_signal(&rc, &params, &cnp, T0);
        rc.target = LINE / 2;
        rc.rate = LINE / 4;
        rc.timer_stage = cases[_i].timer;
        rc.byte_stage = cases[_i].byte;
        rate_control_sent(&rc, &params, 9999, T0);
        ck_assert_uint_eq(rc.rate, LINE / 4);
        rate_control_sent(&rc, &params, 1, T0);
        ck_assert_uint_eq(rc.target, LINE / 2 + LINE / 1000 * cases[_i].permille);
        ck_assert_uint_eq(rc.byte_stage, cases[_i].byte + 1);
    }
END_TEST

/* The target follows only if a stage has ended since the cut before. */
START_TEST(clamp)
    {
        rate_control_signal(&rc, &params, &cnp, T0);
        rate_control_signal(&rc, &params, &cnp, T0 + 10000);
        ck_assert_uint_eq(rc.target, LINE);
        ck_assert_uint_eq(rc.rate, LINE / 4);
        run_until(T0 + 21000);
        uint64_t before = rc.rate;
        ck_assert_uint_eq(before, LINE / 8 * 5);
        rate_control_signal(&rc, &params, &cnp, T0 + 21000);
        ck_assert_uint_eq(rc.target, before);
        ck_assert_uint_lt(rc.rate, before);
    }
END_TEST

START_TEST(alpha)
    {
        rate_control_signal(&rc, &params, &cnp, T0);
        ck_assert_uint_eq(rc.alpha, 1 << 20);
        run_until(T0 + 11000);
        ck_assert_uint_eq(rc.alpha, (1 << 20) / 256 * 255);
        run_until(T0 + 2200000); /* (255/256)^200 */
        ck_assert_uint_le(rc.alpha, 479500);
        ck_assert_uint_ge(rc.alpha, 479100);
        uint32_t before = rc.alpha;
        rate_control_signal(&rc, &params, &cnp, T0 + 2200000);
        ck_assert_uint_eq(rc.alpha, before + ((1 << 20) - before) / 256);
    }
END_TEST

START_TEST(depth)
    {
        static const struct {
            uint64_t bytes, rate;
            double left; /* of LINE; the default base is 352 us. */
        } cases[] = {
            {0, LINE, 0.95},
            {44080, LINE, 0.475}, /* as many bytes as LINE takes in the base. */
            {44080, 4 * LINE, 0.76},
            {0, LINE / 10, 0.095}, /* never more than the queue's rate. */
            {4408, LINE / 10, 0.0475},
            {UINT32_MAX, LINE, 0.005}, /* the floor. */
            {UINT64_MAX, UINT64_MAX, 0.005},
            {1, 1, 0.005},
            {44080, 0, 0.5}, /* as dcqcn: its rate is not known. */
        };
        struct rate_signal signal = {RATE_FAST_CNP, true, cases[_i].bytes, cases[_i].rate};

        params.controller = RATE_DEPTH;
        params.base_usec = 352640 / 1000;
        ck_assert(rate_control_signal(&rc, &params, &signal, T0));
        ck_assert_double_eq_tol((double) rate_control_rate(&rc) / LINE, cases[_i].left, 0.001);
        ck_assert(!rate_control_signal(&rc, &params, &signal, T0 + 9999));

        /* Without depth it cuts as dcqcn. */
        rc = (struct rate_control){0};
        signal.has_depth = false;
        rate_control_signal(&rc, &params, &signal, T0);
        ck_assert_uint_eq(rate_control_rate(&rc), LINE / 2);

        /* And dcqcn does not look at the depth. */
        rc = (struct rate_control){0};
        signal.has_depth = true;
        params.controller = RATE_DCQCN;
        rate_control_signal(&rc, &params, &signal, T0);
        ck_assert_uint_eq(rate_control_rate(&rc), LINE / 2);
    }
END_TEST

/* Up to the line rate and no further; forgotten after the idle time, and begun anew. */
START_TEST(idle)
    {
        rate_control_signal(&rc, &params, &cnp, T0);
        while (rc.rate < LINE) {
            run_until(rate_control_deadline(&rc));
        }
        uint64_t full = rc.idle_since;
        ck_assert_uint_lt(full, T0 + MBIT);
        run_until(full + RATE_IDLE_USEC - 1);
        ck_assert_uint_eq(rate_control_rate(&rc), LINE);
        run_until(full + RATE_IDLE_USEC);
        ck_assert_uint_eq(rate_control_rate(&rc), 0);
        ck_assert_uint_eq(rate_control_deadline(&rc), UINT64_MAX);
        rate_control_signal(&rc, &params, &cnp, full + 2 * RATE_IDLE_USEC);
        ck_assert_uint_eq(rate_control_rate(&rc), LINE / 2);
        ck_assert_uint_eq(rc.n_cuts, 2);
    }
END_TEST

/* A sender that sends nothing does not get a higher rate by that, but is forgotten too. */
START_TEST(silent_sender)
    {
        rate_control_signal(&rc, &params, &cnp, T0);
        rate_control_timer(&rc, &params, T0 + RATE_IDLE_USEC - 1);
        ck_assert_uint_eq(rate_control_rate(&rc), LINE / 2);
        rate_control_timer(&rc, &params, T0 + RATE_IDLE_USEC);
        ck_assert_uint_eq(rate_control_rate(&rc), 0);
    }
END_TEST

/* 1 Mb/s to 1 Tb/s: nothing overflows, nothing gets stuck. */
START_TEST(any_line)
    {
        static const uint64_t lines[] = {MBIT, 50 * MBIT, 100000 * MBIT, 1000000 * MBIT};
        struct rate_signal signal = {RATE_FAST_CNP, true, 1000000, lines[_i / 2] / 10};

        params = rate_params_default(lines[_i / 2], 0);
        params.controller = _i % 2 ? RATE_DEPTH : RATE_DCQCN;
        for (unsigned i = 0; i < 20; i++) {
            uint64_t before = rc.active ? rc.rate : params.line;

            rate_control_signal(&rc, &params, &signal, T0 + i * 10000);
            ck_assert(rc.rate < before || rc.rate == params.floor);
            ck_assert_uint_ge(rc.rate, params.floor);
        }
        run_until(T0 + 9 * MBIT);
        ck_assert_uint_eq(rc.rate, params.line);
        run_until(T0 + 30 * MBIT);
        ck_assert_uint_eq(rate_control_rate(&rc), 0);
    }
END_TEST

START_TEST(floors)
    {
        static const struct {
            uint32_t frame;
            uint8_t timeout;
            double mbit;
        } cases[] = {{1102, 20, 0.271}, {4174, 20, 1.026}, {1102, 18, 1.084}, {4174, 14, 65.68}};
        double floor = (double) rate_floor_for(cases[_i].frame, cases[_i].timeout) / MBIT;

        ck_assert_double_eq_tol(floor / cases[_i].mbit, 1, 0.002);

        uint64_t line = 1000 * rate_floor_for(1102, 20);
        ck_assert_uint_eq(rate_params_default(line, 0).floor, line / 200);
        ck_assert_uint_eq(rate_params_default(line, line / 100).floor, line / 100);
        ck_assert_uint_eq(rate_params_default(line, line * 2).floor, line);
    }
END_TEST

START_TEST(words)
    {
        enum rate_controller controller;
        enum rate_cause cause;

        ck_assert(rate_controller_parse("depth", &controller) && controller == RATE_DEPTH);
        ck_assert_str_eq(rate_controller_name(RATE_DCQCN), "dcqcn");
        ck_assert(rate_cause_parse("fast-cnp", &cause) && cause == RATE_FAST_CNP);
        ck_assert_str_eq(rate_cause_name(RATE_CNP), "cnp");
    }
END_TEST

Suite *
rate_control_suite(void)
{
    Suite *s = suite_create("rate_control");
    TCase *tc = tcase_create("rate_control");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, nothing_before_the_first_signal);
    tcase_add_test(tc, the_first_signal_halves);
    tcase_add_test(tc, one_cut_in_an_interval);
    tcase_add_test(tc, stages);
    tcase_add_loop_test(tc, byte_counter, 0, 8);
    tcase_add_test(tc, clamp);
    tcase_add_test(tc, alpha);
    tcase_add_loop_test(tc, depth, 0, 9);
    tcase_add_test(tc, idle);
    tcase_add_test(tc, silent_sender);
    tcase_add_loop_test(tc, any_line, 0, 8);
    tcase_add_loop_test(tc, floors, 0, 4);
    tcase_add_test(tc, words);
    suite_add_tcase(s, tc);
    return s;
}
