/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies of the reverse path: NAKs above the minimum (docs/draft-notes.md, R7)
 * and the filter for copies (R13).
 */
#include <check.h>

#include "tests/unit/reverse-fixture.h"
#include "tests/unit/suites.h"

/* NAKs above the minimum. */

/* Proves MT-5.3.2-4. */
START_TEST(literal_is_at_once)
    {
        setup_policy(3, (struct reverse_policy){.nak = NAK_LITERAL});
        down(100, 109);
        expect_nothing(ack(1, 103));
        expect_nothing(ack(2, 102));
        /* The NAK raises the minimum to 103 and goes up as NAK(103), not as an ACK. */
        expect_nak(nak(3, 106), 103);
        ck_assert(reverse_deadline(r) == UINT64_MAX);
        /* Once per setting. */
        expect_nothing(nak(3, 106));
        expect_nothing(ack(1, 109));
        /* Not served by the time the minimum has got there: it stands at m then. */
        expect_nak(ack(2, 109), 106);
    }
END_TEST

/* Where a condition stands at m the source was sent back already. */
START_TEST(literal_is_silent_behind_a_condition)
    {
        setup_policy(2, (struct reverse_policy){.nak = NAK_LITERAL});
        down(100, 109);
        expect_nothing(ack(1, 103));
        expect_nak(nak(2, 102), 102);
        expect_nothing(nak(1, 105));
        ck_assert(reverse_deadline(r) == UINT64_MAX);
    }
END_TEST

START_TEST(literal_holds_rnr_and_fatal)
    {
        setup_policy(2, (struct reverse_policy){.nak = NAK_LITERAL});
        down(100, 109);
        expect_nothing(respond(1, AETH_RNR | 5, 104));
        expect_nothing(respond(1, AETH_NAK_REM_ACCESS, 106));
        expect(ack(2, 109), AETH_NAK_REM_ACCESS, 106);
    }
END_TEST

/* What was held goes up when the policy says that nothing is. */
START_TEST(policy_changes)
    {
        setup_policy(2, (struct reverse_policy){.nak = NAK_HOLD});
        down(100, 109);
        expect_nothing(nak(1, 104));
        ck_assert_uint_eq(reverse_deadline(r), now + REVERSE_HOLD_USEC);
        reverse_set_policy(r, &(struct reverse_policy){.nak = NAK_LITERAL});
        ck_assert_uint_eq(reverse_deadline(r), 0);
        expect_nak(reverse_branches_remove(r, NULL, 0, now), 100);
    }
END_TEST

START_TEST(solicit_asks_those_behind)
    {
        setup_policy(4, (struct reverse_policy){.nak = NAK_SOLICIT});
        down(100, 109);
        expect_nothing(ack(2, 107));
        expect_nothing(ack(3, 102));
        ck_assert(!reverse_asks_any(r) && !reverse_asks(r, 3));
        expect_nothing(nak(1, 105));
        ck_assert(reverse_asks_any(r));
        ck_assert(!reverse_asks(r, 1)); /* It stands there, */
        ck_assert(!reverse_asks(r, 2)); /* it is beyond, */
        ck_assert(reverse_asks(r, 3) && reverse_asks(r, 4));
        ck_assert(!reverse_asks(r, 5)); /* and it is no branch. */
        /* With the next copy that goes out, once. */
        reverse_down(r, psn_make(110), false, now);
        reverse_copied(r, 3, psn_make(110), true);
        reverse_copied(r, 4, psn_make(110), false);
        ck_assert(!reverse_asks(r, 3) && reverse_asks(r, 4));
        /* A new NAK, a new question. */
        expect_nothing(nak(2, 109));
        ck_assert(reverse_asks(r, 3) && reverse_asks(r, 4) && reverse_asks(r, 1));
        /* They answer: the first NAK's turn, which ends the holding of all. */
        expect_nothing(ack(3, 110));
        expect_nak(ack(4, 110), 105);
        ck_assert(!reverse_asks_any(r));
    }
END_TEST

/* The time is as with hold if nobody answers. */
START_TEST(solicit_waits_as_hold)
    {
        setup_policy(2, (struct reverse_policy){.nak = NAK_SOLICIT});
        down(100, 109);
        expect_nothing(nak(1, 104));
        ck_assert_uint_eq(reverse_deadline(r), now + REVERSE_HOLD_USEC);
        now += REVERSE_HOLD_USEC;
        expect_nak(reverse_timer(r, now), 100);
        ck_assert(!reverse_asks(r, 2));
    }
END_TEST

START_TEST(hold_asks_nobody)
    {
        setup_policy(2, (struct reverse_policy){.nak = NAK_HOLD});
        down(100, 109);
        expect_nothing(nak(1, 104));
        ck_assert(!reverse_asks_any(r) && !reverse_asks(r, 2));
    }
END_TEST

/* The filter. */

START_TEST(filter_spares_what_is_confirmed)
    {
        setup_policy(2, (struct reverse_policy){.filter = true});
        down(100, 109);
        expect_nothing(ack(1, 104));
        expect_nothing(reverse_down(r, psn_make(104), true, now));
        ck_assert(!reverse_filters_all(r, psn_make(104)));
        ck_assert(reverse_filters(r, 1, psn_make(104)));
        ck_assert(!reverse_filters(r, 2, psn_make(104)));
        reverse_copied(r, 2, psn_make(104), true);
        ck_assert(!reverse_filters(r, 1, psn_make(105)));
        ck_assert(!reverse_filters(r, 3, psn_make(104))); /* There is no such branch. */

        struct reverse_branch_info b;
        ck_assert(reverse_get_branch(r, 1, &b));
        ck_assert(b.n_filtered == 1 && b.n_repeats == 0);
        ck_assert(reverse_get_branch(r, 2, &b));
        ck_assert(b.n_filtered == 0 && b.n_repeats == 1 && b.n_useless == 0);
    }
END_TEST

START_TEST(without_filter_useless_copies_are_counted)
    {
        struct reverse_branch_info b;

        setup_policy(2, (struct reverse_policy){.filter = false});
        down(100, 109);
        expect_nothing(ack(1, 104));
        expect_nothing(ack(2, 99)); /* A duplicate before anything is confirmed. */
        for (uint32_t q = 103; q <= 106; q++) {
            expect_nothing(reverse_down(r, psn_make(q), true, now));
            ck_assert(!reverse_filters(r, 1, psn_make(q)));
            reverse_copied(r, 1, psn_make(q), true);
        }
        ck_assert(reverse_get_branch(r, 1, &b));
        ck_assert(b.n_filtered == 0 && b.n_repeats == 4 && b.n_useless == 2);
    }
END_TEST

/* All have it: the answer must have got lost, and it may be that nobody below repeats it.  With the
 * filter nobody below is asked. */
START_TEST(filter_answers_itself)
    {
        setup_policy(2, (struct reverse_policy){.filter = _i});
        down(100, 109);
        expect_nothing(ack(1, 109));
        expect_ack(ack(2, 104), 104);
        expect_ack(reverse_down(r, psn_make(102), false, now), 104);
        ck_assert_int_eq(reverse_filters_all(r, psn_make(102)), _i);
        /* Not for each packet, but not without a last one either. */
        expect_nothing(reverse_down(r, psn_make(103), false, now));
        expect_nothing(reverse_down(r, psn_make(104), true, now));
        ck_assert_uint_eq(reverse_deadline(r), now + REVERSE_DUP_ACK_USEC);
        now += REVERSE_DUP_ACK_USEC;
        expect_ack(reverse_timer(r, now), 104);
        ck_assert(reverse_deadline(r) == UINT64_MAX);
        /* What somebody lacks is answered by that one. */
        expect_nothing(reverse_down(r, psn_make(105), true, now));
    }
END_TEST

/* Of a branch that was not heard of since the node started nothing is known. */
START_TEST(filter_lets_pass_what_is_unknown)
    {
        setup_policy(2, (struct reverse_policy){.filter = true});
        expect_nothing(reverse_down(r, psn_make(200), true, now));
        reverse_copied(r, 1, psn_make(200), true);
        reverse_copied(r, 2, psn_make(200), true);
        expect_nothing(ack(1, 200));
        expect_nothing(reverse_down(r, psn_make(150), true, now));
        ck_assert(reverse_filters(r, 1, psn_make(150)));
        ck_assert(!reverse_filters(r, 2, psn_make(150)));
        ck_assert(!reverse_filters_all(r, psn_make(150)));
    }
END_TEST

/* A group that failed says so to whoever asks, also for what the filter spares. */
START_TEST(filter_and_fatal)
    {
        setup_policy(2, (struct reverse_policy){.filter = true});
        down(100, 109);
        expect_nothing(ack(1, 109));
        expect(respond(2, AETH_NAK_REM_ACCESS, 105), AETH_NAK_REM_ACCESS, 105);
        expect(reverse_down(r, psn_make(103), false, now), AETH_NAK_REM_ACCESS, 105);
        expect_nothing(reverse_down(r, psn_make(105), false, now));
    }
END_TEST

Suite *
policy_suite(void)
{
    Suite *s = suite_create("policy");
    TCase *tc = tcase_create("naks");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, literal_is_at_once);
    tcase_add_test(tc, literal_is_silent_behind_a_condition);
    tcase_add_test(tc, literal_holds_rnr_and_fatal);
    tcase_add_test(tc, policy_changes);
    tcase_add_test(tc, solicit_asks_those_behind);
    tcase_add_test(tc, solicit_waits_as_hold);
    tcase_add_test(tc, hold_asks_nobody);
    suite_add_tcase(s, tc);
    tc = tcase_create("filter");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, filter_spares_what_is_confirmed);
    tcase_add_test(tc, without_filter_useless_copies_are_counted);
    tcase_add_loop_test(tc, filter_answers_itself, 0, 2);
    tcase_add_test(tc, filter_lets_pass_what_is_unknown);
    tcase_add_test(tc, filter_and_fatal);
    suite_add_tcase(s, tc);
    return s;
}
