/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path: losses that nobody reports (docs/draft-notes.md, R14).
 */
#include <check.h>

#include "tests/unit/reverse-fixture.h"
#include "tests/unit/suites.h"

#define FIRST_WAIT 1000000u /* before an answer was timed. */
#define LEAST_WAIT 4000u
#define RNR_TIME   10000u /* that a source may take for an RNR NAK. */

/* PSN q goes down, for the first time or again, with AckReq, a copy for each of n branches. */
static void
ask(uint32_t q, uint32_t n)
{
    expect_nothing(reverse_down(r, psn_make(q), true, now));
    for (uint32_t id = 1; id <= n; id++) {
        if (!reverse_filters(r, id, psn_make(q))) {
            reverse_copied(r, id, psn_make(q), true);
        }
    }
}

static void
expect_deadline(uint64_t at)
{
    ck_assert_uint_eq(reverse_deadline(r), at);
}

/* The time passes that the machine waits, which is to be 'usec' from now. */
static struct reverse_out
overdue(uint64_t usec)
{
    expect_deadline(now + usec);
    now += usec;
    return reverse_timer(r, now);
}

/* A root with two branches that have answered so quickly that the wait is the least. */
static void
setup_root(void)
{
    setup_policy(2, (struct reverse_policy){.filter = true, .presume_usec = LEAST_WAIT});
    ask(100, 2);
    now += 60;
    expect_nothing(ack(1, 100));
    expect_ack(ack(2, 100), 100);
    expect_deadline(UINT64_MAX);
}

/* The ACK of a branch, its NAK, or the packet and all behind it got lost: all look alike.
 *
 * Proves MT-5.3.2-1, MT-5.3.2-4. */
START_TEST(presumes_what_is_overdue)
    {
        setup_root();
        down(101, 102);
        expect_deadline(UINT64_MAX); /* Nobody was asked. */
        ask(103, 2);
        expect_nothing(ack(1, 103));
        expect_nak(overdue(LEAST_WAIT), 101);
        struct reverse_info info;
        reverse_get_info(r, &info);
        ck_assert_uint_eq(info.n_sent_presumed, 1);
        ck_assert_uint_eq(info.n_sent_naks, 1);
        /* It comes again, and this time the answer does, too. */
        now += 20;
        for (uint32_t q = 101; q <= 102; q++) {
            expect_nothing(reverse_down(r, psn_make(q), false, now));
        }
        expect_deadline(UINT64_MAX);
        ask(103, 2);
        expect_deadline(now + 2 * LEAST_WAIT);
        expect_ack(ack(2, 103), 103);
        expect_deadline(UINT64_MAX);
    }
END_TEST

/* What was sent again got lost again.  The source would ignore another sequence NAK.
 *
 * Proves MT-5.3.2-1, MT-5.3.2-4. */
START_TEST(presumes_lost_again)
    {
        setup_root();
        down(101, 101);
        ask(102, 2);
        expect_nothing(ack(1, 102));
        expect_nak(nak(2, 101), 101);
        expect_deadline(now + LEAST_WAIT); /* for the source to come back. */
        now += 60;
        expect_nothing(reverse_down(r, psn_make(101), false, now));
        reverse_copied(r, 2, psn_make(101), true);
        expect_deadline(UINT64_MAX);
        ask(102, 2);
        expect(overdue(LEAST_WAIT), AETH_RNR | 1, 101);
        /* The NAK got lost, or the source did not come back: each time twice as long. */
        for (unsigned i = 1; i < 6; i++) {
            expect(overdue(RNR_TIME + (LEAST_WAIT << i)), AETH_RNR | 1, 101);
        }
        expect_deadline(UINT64_MAX); /* Now it is up to the source. */
        ask(101, 2);
        ask(102, 2);
        expect_deadline(UINT64_MAX);
        /* And all anew where the minimum gets to, but nobody knows what an answer takes now. */
        expect_ack(ack(2, 101), 101);
        expect_nak(overdue(8 * LEAST_WAIT), 102);
    }
END_TEST

/* Asks with PSN q, and is answered that much later. */
static void
ask_and_answer(uint32_t q, uint64_t usec)
{
    ask(q, 1);
    now += usec;
    expect_ack(ack(1, q), q);
}

START_TEST(waits_twice_as_long_as_answers_take)
    {
        setup_policy(1, (struct reverse_policy){.presume_usec = LEAST_WAIT});
        ask(100, 1);
        expect_deadline(now + FIRST_WAIT);
        now += 20000;
        expect_ack(ack(1, 100), 100);
        ask(101, 1);
        expect_deadline(now + 40000);
        now += 30000;
        expect_ack(ack(1, 101), 101);
        /* The longest of the last second, */
        ask_and_answer(102, 60);
        ask(103, 1);
        expect_deadline(now + 60000);
        now += 1000000;
        expect_ack(ack(1, 103), 103);
        ask(104, 1);
        expect_deadline(now + FIRST_WAIT); /* and no longer than that. */
        /* ...and of the one before. */
        now += 70;
        expect_ack(ack(1, 104), 104);
        now += 1000000;
        ask_and_answer(105, 5000);
        ask_and_answer(106, 60);
        ask(107, 1);
        expect_deadline(now + FIRST_WAIT);
        expect_ack(ack(1, 107), 107);
        now += 1000000;
        ask_and_answer(108, 60);
        ask(109, 1);
        expect_deadline(now + 2 * 5000);
    }
END_TEST

/* Answers suddenly take much longer, but nothing is lost.  What the source sends again in vain
 * hides how long they take, so it has to get less until that is seen. */
START_TEST(waits_longer_for_late_answers)
    {
        const uint64_t late = 7 * LEAST_WAIT;
        unsigned n_in_vain = 0;

        setup_root();
        for (uint32_t q = 101; q < 120; q++) {
            uint64_t asked = now;

            ask(q, 2);
            n_in_vain = 0;
            while (reverse_deadline(r) < asked + late) {
                now = reverse_deadline(r);
                ck_assert(reverse_timer(r, now).send);
                n_in_vain++;
                now += 60;
                ask(q, 2); /* The source has come back. */
            }
            now = asked + late;
            expect_nothing(ack(1, q));
            expect_ack(ack(2, q), q);
        }
        ck_assert_uint_eq(n_in_vain, 0);
        ask(120, 2);
        expect_deadline(now + 2 * late);
    }
END_TEST

/* A timeout is chosen four times as long as answers may take (docs/draft-notes.md, section 5). */
START_TEST(waits_for_a_quarter_of_the_timeout)
    {
        const uint64_t timeout = 4294967; /* 4.096 us * 2^20. */

        setup_policy(1, (struct reverse_policy){.presume_usec = timeout / 5});
        ask(100, 1);
        now += 900000;
        expect_ack(ack(1, 100), 100);
        for (uint32_t q = 101; q < 105; q++) {
            ask(q, 1);
            ck_assert_uint_gt(reverse_deadline(r), now + timeout / 4);
            now += timeout / 4;
            expect_ack(ack(1, q), q);
        }
        /* But never for longer than the source does. */
        ask_and_answer(105, timeout);
        ask(106, 1);
        expect_deadline(now + timeout / 5 * 5);
    }
END_TEST

/* From a question to an answer it may take a NAK; what had to wait for a timer is no answer's
 * time. */
START_TEST(times_answers_only)
    {
        setup_root();
        ask(101, 2);
        expect_nothing(ack(1, 101));
        /* The source's timer, or ours. */
        if (_i) {
            expect_nak(overdue(LEAST_WAIT), 101);
        }
        now += 30000;
        ask(101, 2);
        now += 60;
        expect_ack(ack(2, 101), 101);
        ask(102, 2);
        /* No answer was timed yet, so what was presumed may have been wrong. */
        expect_deadline(now + (LEAST_WAIT << _i));
        expect_nothing(ack(1, 102));
        /* It was late: that it was presumed lost was wrong, and is to be so less often. */
        if (_i) {
            expect_nak(overdue(2 * LEAST_WAIT), 102);
            now += 5000;
            expect_ack(ack(2, 102), 102);
            ask(103, 2);
            expect_deadline(now + 2 * (2 * LEAST_WAIT + 5000));
            return;
        }
        now += 1000;
        expect_nak(nak(2, 102), 102);
        now += 3900;
        ask(102, 2);
        now += 100;
        expect_ack(ack(2, 102), 102);
        ask(103, 2);
        expect_deadline(now + 2 * 5000);
    }
END_TEST

/* It is not lost but slow, or dead. */
START_TEST(presumes_nothing_behind_rnr_or_fatal)
    {
        uint8_t syndrome = _i ? AETH_NAK_REM_OP : AETH_RNR | 20;

        setup_root();
        ask(101, 2);
        expect_nothing(ack(1, 101));
        expect(respond(2, syndrome, 101), syndrome, 101);
        expect_nothing(overdue(LEAST_WAIT));
        expect_deadline(UINT64_MAX);
        /* Once it was sent again it may have got lost. */
        struct reverse_out out = reverse_down(r, psn_make(101), true, now);
        reverse_copied(r, 2, psn_make(101), true);
        if (_i) {
            expect(out, syndrome, 101);
            expect_nothing(overdue(LEAST_WAIT));
        } else {
            expect_nothing(out);
            expect_nak(overdue(LEAST_WAIT), 101);
        }
    }
END_TEST

/* The node above will. */
START_TEST(presumes_nothing_below_the_root)
    {
        setup_policy(1, (struct reverse_policy){.filter = true});
        ask(100, 1);
        expect_deadline(UINT64_MAX);
    }
END_TEST

Suite *
presume_suite(void)
{
    Suite *s = suite_create("presume");
    TCase *tc = tcase_create("presumed");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, presumes_what_is_overdue);
    tcase_add_test(tc, presumes_lost_again);
    tcase_add_test(tc, waits_twice_as_long_as_answers_take);
    tcase_add_test(tc, waits_longer_for_late_answers);
    tcase_add_test(tc, waits_for_a_quarter_of_the_timeout);
    tcase_add_loop_test(tc, times_answers_only, 0, 2);
    tcase_add_loop_test(tc, presumes_nothing_behind_rnr_or_fatal, 0, 2);
    tcase_add_test(tc, presumes_nothing_below_the_root);
    suite_add_tcase(s, tc);
    return s;
}
