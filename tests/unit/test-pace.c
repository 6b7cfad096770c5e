/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches that are slow (docs/draft-notes.md, R15), and RNR NAKs without end (R3).
 */
#include <check.h>

#include "lib/roce.h"
#include "tests/unit/reverse-fixture.h"
#include "tests/unit/suites.h"

#define LIVENESS UINT64_C(3200000) /* a tick is 100 ms. */
#define TICK     (LIVENESS / 32)
#define RATE     10 /* PSNs a second: 32 in the liveness time. */

static const struct reverse_policy report = {.liveness_usec = LIVENESS, .min_rate = RATE};
static const struct reverse_policy lose = {
    .liveness_usec = LIVENESS, .min_rate = RATE, .lose_slow = true, .prune = true};

/* PSNs first..last go down, the last with AckReq. */
static void
send_down(uint32_t first, uint32_t last)
{
    for (uint32_t q = first; q <= last; q++) {
        expect_nothing(reverse_down(r, psn_make(q), q == last, now));
        for (uint32_t id = 1; id <= n_ids; id++) {
            reverse_copied(r, id, psn_make(q), true);
        }
    }
}

/* A tick passes, in which the source repeats PSN q and asks. */
static struct reverse_out
tick(uint32_t q)
{
    struct reverse_out out;

    reverse_down(r, psn_make(q), true, now);
    for (uint32_t id = 1; id <= n_ids; id++) {
        reverse_copied(r, id, psn_make(q), true);
    }
    now += TICK;
    out = reverse_timer(r, now);
    return out;
}

/* So many ticks, in which branch 1 asks for time. */
static void
ask_for_time(unsigned n, uint32_t q)
{
    for (unsigned i = 0; i < n; i++) {
        tick(q);
        respond(1, AETH_RNR | 12, q);
    }
}

/* A receiver says RNR once for each copy.  What it says besides is not said again. */
START_TEST(codes_that_alternate_go_up_once)
    {
        setup_group(1, START);
        down(START, START + 9);
        expect(respond(1, AETH_RNR | 12, START), AETH_RNR | 12, START);
        for (unsigned i = 0; i < 1000; i++) {
            expect_nothing(respond(1, (uint8_t) (AETH_RNR | (11 + i % 2)), START));
        }
        ck_assert_uint_eq(info().n_sent_rnrs, 1);
        /* It is served, and says so again. */
        reverse_copied(r, 1, psn_make(START), true);
        expect(respond(1, AETH_RNR | 11, START), AETH_RNR | 11, START);
    }
END_TEST

/* A longer time replaces a shorter one, also that of a node whose slower receiver got there: at
 * most once for each of the times. */
START_TEST(longer_times_go_up)
    {
        setup_group(1, START);
        down(START, START + 9);
        for (uint8_t code = 1; code < 32; code++) {
            expect(respond(1, AETH_RNR | code, START), AETH_RNR | code, START);
        }
        expect(respond(1, AETH_RNR, START), AETH_RNR, START); /* The longest of all. */
        for (uint8_t code = 0; code < 32; code++) {
            expect_nothing(respond(1, AETH_RNR | code, START));
        }
        ck_assert_uint_eq(info().n_sent_rnrs, 32);
    }
END_TEST

/* Between them another may be longer: a node speaks for those that stand at m. */
START_TEST(shorter_time_of_another_is_said_when_the_longer_leaves)
    {
        setup_group(2, START);
        down(START, START + 9);
        expect(respond(1, AETH_RNR | 14, START), AETH_RNR | 14, START);
        expect_nothing(respond(2, AETH_RNR | 11, START));
        expect(leave(1), AETH_RNR | 11, START);
    }
END_TEST

START_TEST(rnr_for_ever_is_slow)
    {
        setup_policy(2, report);
        send_down(START, START + 9);
        expect_nothing(ack(2, START + 9));
        ask_for_time(31, START);
        ck_assert(!branch(1).slow);
        ask_for_time(2, START);
        ck_assert(branch(1).slow && !branch(1).lost);
        ck_assert_uint_eq(branch(1).n_confirmed, 0);
        ck_assert(!branch(2).slow);
        ck_assert_uint_eq(info().n_paced, 1);
        /* News after as long again, not with each tick. */
        ask_for_time(31, START);
        ck_assert_uint_eq(info().n_paced, 1);
        ask_for_time(1, START);
        ck_assert_uint_eq(info().n_paced, 2);
    }
END_TEST

/* It confirms one PSN of ten in a tick, or one in 'every' ticks. */
static void
confirm_slowly(unsigned n_ticks, unsigned every, uint32_t *una)
{
    for (unsigned i = 1; i <= n_ticks; i++) {
        tick(*una);
        if (i % every == 0) {
            ack(1, (*una)++);
        }
    }
}

START_TEST(slower_than_the_least_rate_is_slow)
    {
        uint32_t una = START;

        setup_policy(2, report);
        send_down(START, START + 199);
        ack(2, START + 199);
        confirm_slowly(80, 2, &una);
        ck_assert(branch(1).slow);
        ck_assert_uint_eq(branch(1).n_confirmed, 16); /* of 32. */
        /* It gets faster, and is so for a liveness time. */
        confirm_slowly(64, 1, &una);
        ck_assert(!branch(1).slow);
    }
END_TEST

START_TEST(as_fast_as_the_least_rate_is_not_slow)
    {
        uint32_t una = START;

        setup_policy(2, report);
        send_down(START, START + 199);
        ack(2, START + 199);
        confirm_slowly(150, 1, &una);
        ck_assert_uint_eq(info().n_paced, 0);
    }
END_TEST

/* A source that sends little makes nobody slow, nor does one that stops in mid-message. */
START_TEST(who_caught_up_is_not_slow)
    {
        setup_policy(2, report);
        for (uint32_t q = START; q < START + 100; q++) {
            send_down(q, q);
            now += TICK / 2;
            ack(2, q);
            ack(1, q);
            send_down(q + 1, q + 1);
            now += TICK / 2;
            reverse_timer(r, now);
            ack(1, ++q);
            ack(2, q);
        }
        ck_assert_uint_eq(info().n_paced, 0);
    }
END_TEST

START_TEST(source_that_stops_makes_nobody_slow)
    {
        setup_policy(2, report);
        send_down(START, START + 9);
        ack(2, START + 9);
        for (unsigned i = 0; i < 200; i++) {
            now += TICK;
            reverse_timer(r, now);
        }
        ck_assert(!branch(1).slow && !branch(1).lost);
    }
END_TEST

/* The others have all of the window, but were not asked about its end.  The source waits for
 * one. */
START_TEST(who_was_not_asked_is_not_slow)
    {
        setup_policy(3, report);
        send_down(START, START + 9);
        for (uint32_t q = START + 10; q < START + 60; q++) {
            expect_nothing(reverse_down(r, psn_make(q), false, now));
        }
        ack(2, START + 9);
        ack(3, START + 9);
        ask_for_time(100, START);
        ck_assert(branch(1).slow);
        ck_assert(!branch(2).slow && !branch(3).slow);
    }
END_TEST

/* Asking for time where nothing was asked about yet: a long message, whose source stops at an RNR
 * NAK before its next AckReq. */
START_TEST(rnr_without_ack_req_is_slow)
    {
        setup_policy(2, report);
        down(START, START + 9);
        respond(1, AETH_RNR | 12, START);
        for (unsigned i = 0; i < 34; i++) {
            expect_nothing(reverse_down(r, psn_make(START), false, now));
            reverse_copied(r, 1, psn_make(START), true);
            respond(1, AETH_RNR | 12, START);
            now += TICK;
            reverse_timer(r, now);
        }
        ck_assert(branch(1).slow);
        ck_assert(!branch(2).slow);
    }
END_TEST

/* A source that has always something open, and sends little: answers come within a tick. */
START_TEST(source_that_sends_little_makes_nobody_slow)
    {
        setup_policy(2, report);
        send_down(START, START);
        for (uint32_t q = START; q < START + 200; q++) {
            now += TICK / 2;
            send_down(q + 1, q + 1);
            now += TICK / 2;
            reverse_timer(r, now);
            ack(1, q);
            ack(2, q);
        }
        ck_assert_uint_eq(info().n_paced, 0);
    }
END_TEST

/* Others wait for branch 1, and for branch 2 nobody. */
START_TEST(who_is_not_at_the_minimum_is_not_slow)
    {
        setup_policy(2, report);
        send_down(START, START + 9);
        expect_nothing(ack(2, START + 4));
        ask_for_time(100, START);
        ck_assert(branch(1).slow && !branch(2).slow);
    }
END_TEST

/* They may owe as long as the one that is lost has held them up. */
START_TEST(others_begin_anew_when_one_is_lost)
    {
        setup_policy(3, lose);
        send_down(START, START + 9);
        expect_nothing(ack(2, START + 4));
        expect_nothing(ack(3, START + 9));
        for (unsigned i = 0; i < 40; i++) {
            tick(START);
            respond(1, AETH_RNR | 12, START);
        }
        ck_assert(branch(1).pruned && !branch(2).lost);
        for (unsigned i = 0; i < 24; i++) {
            tick(START + 5);
        }
        ck_assert(!branch(2).lost);
    }
END_TEST

/* A node above may have called its branch slow for as long as the policy was to say so. */
START_TEST(losing_begins_anew)
    {
        setup_policy(2, report);
        send_down(START, START + 9);
        expect_nothing(ack(2, START + 9));
        ask_for_time(40, START);
        ck_assert(branch(1).slow);
        reverse_set_policy(r, &lose);
        ck_assert(!branch(1).slow);
        ask_for_time(31, START);
        ck_assert(!branch(1).lost);
        ask_for_time(3, START);
        ck_assert(branch(1).lost == LOSS_SLOW);
    }
END_TEST

/* Nobody can confirm what a spoilt PSN, which nobody has verified, makes of H. */
START_TEST(spoilt_psn_makes_nobody_slow)
    {
        setup_policy(2, report);
        send_down(START, START);
        ack(1, START);
        ack(2, START);
        reverse_down(r, psn_make(START + 2049), true, now);
        for (uint32_t q = START + 1; q < START + 80; q++) {
            reverse_down(r, psn_make(q), true, now);
            reverse_copied(r, 1, psn_make(q), true);
            reverse_copied(r, 2, psn_make(q), true);
            ack(1, q);
            ack(2, q);
            now += TICK;
            reverse_timer(r, now);
        }
        ck_assert_uint_eq(info().n_paced, 0);
    }
END_TEST

START_TEST(slow_ends_when_it_caught_up)
    {
        setup_policy(2, report);
        send_down(START, START + 9);
        expect_nothing(ack(2, START + 9));
        ask_for_time(40, START);
        ck_assert(branch(1).slow);
        expect_ack(ack(1, START + 9), START + 9);
        now += TICK;
        reverse_timer(r, now);
        ck_assert(!branch(1).slow);
        ck_assert(reverse_deadline(r) == UINT64_MAX);
    }
END_TEST

/* With another rate, or another liveness time, nothing is known yet. */
START_TEST(policy_begins_anew)
    {
        struct reverse_policy none = report;

        none.min_rate = 0;
        setup_policy(2, report);
        send_down(START, START + 9);
        expect_nothing(ack(2, START + 9));
        ask_for_time(40, START);
        ck_assert(branch(1).slow);
        reverse_set_policy(r, &none);
        ck_assert(!branch(1).slow);
        ask_for_time(100, START);
        ck_assert(!branch(1).slow);
    }
END_TEST

START_TEST(slow_branch_is_lost)
    {
        setup_policy(2, lose);
        send_down(START, START + 9);
        expect_nothing(ack(2, START + 9));
        for (unsigned i = 0; i < 32; i++) {
            expect_nothing(tick(START));
            respond(1, AETH_RNR | 12, START);
        }
        /* What it held up goes on. */
        expect_ack(tick(START), START + 9);
        ck_assert(branch(1).lost == LOSS_SLOW && branch(1).pruned && !branch(1).slow);
    }
END_TEST

/* Nobody else could confirm anything: then the node above has to know. */
START_TEST(last_slow_branch_says_so)
    {
        setup_policy(1, lose);
        send_down(START, START + 9);
        for (unsigned i = 0; i < 32; i++) {
            tick(START);
            respond(1, AETH_RNR | 12, START);
        }
        expect(tick(START), AETH_NAK_REM_OP, START);
        ck_assert(branch(1).lost == LOSS_SLOW && !branch(1).pruned);
    }
END_TEST

Suite *
pace_suite(void)
{
    Suite *s = suite_create("pace");
    TCase *tc = tcase_create("rnr");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, codes_that_alternate_go_up_once);
    tcase_add_test(tc, longer_times_go_up);
    tcase_add_test(tc, shorter_time_of_another_is_said_when_the_longer_leaves);
    suite_add_tcase(s, tc);
    tc = tcase_create("rate");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, rnr_for_ever_is_slow);
    tcase_add_test(tc, slower_than_the_least_rate_is_slow);
    tcase_add_test(tc, as_fast_as_the_least_rate_is_not_slow);
    tcase_add_test(tc, who_caught_up_is_not_slow);
    tcase_add_test(tc, source_that_stops_makes_nobody_slow);
    tcase_add_test(tc, who_was_not_asked_is_not_slow);
    tcase_add_test(tc, rnr_without_ack_req_is_slow);
    tcase_add_test(tc, source_that_sends_little_makes_nobody_slow);
    tcase_add_test(tc, who_is_not_at_the_minimum_is_not_slow);
    tcase_add_test(tc, others_begin_anew_when_one_is_lost);
    tcase_add_test(tc, losing_begins_anew);
    tcase_add_test(tc, spoilt_psn_makes_nobody_slow);
    tcase_add_test(tc, slow_ends_when_it_caught_up);
    tcase_add_test(tc, policy_begins_anew);
    tcase_add_test(tc, slow_branch_is_lost);
    tcase_add_test(tc, last_slow_branch_says_so);
    suite_add_tcase(s, tc);
    return s;
}
