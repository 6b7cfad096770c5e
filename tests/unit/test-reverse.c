/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/reverse.c: scenarios for each clause of the rule.  H numbers:
 * docs/draft-notes.md.
 */
#include <check.h>
#include <errno.h>

#include "tests/unit/reverse-fixture.h"
#include "tests/unit/suites.h"

/* Proves MT-5.3.1-2, MT-5.3.1-3, MT-5.3.1-4, MT-8-1. */
START_TEST(h9_start_psn)
    {
        /* With an initial AckPSN of 0 the minimum would be 0 or meaningless. */
        setup_group(2, 0x900000);
        ck_assert_uint_eq(branch(1).una.v, 0x900000);
        down(0x900000, 0x900004);
        expect_nothing(ack(1, 0x900004));
        expect_ack(ack(2, 0x900001), 0x900001);
        expect_ack(ack(2, 0x900004), 0x900004);
        ck_assert_uint_eq(info().f.v, 0x900005);
    }
END_TEST

/* Proves MT-5.3.1-4. */
START_TEST(h9_wrap)
    {
        setup_group(2, 0xfffffe);
        down(0xfffffe, 0x1000003);
        expect_nothing(ack(1, 2));
        expect_ack(ack(2, 0xfffffe), 0xfffffe);
        expect_ack(ack(2, 0xffffff), 0xffffff);
        expect_ack(ack(2, 0), 0);
        expect_ack(ack(2, 3), 2);
        expect_refused(2, AETH_ACK_UNLIMITED, 4, DROP_psn_not_sent);
        expect_ack(ack(1, 3), 3);
    }
END_TEST

/* Proves MT-5.3.1-2, MT-5.3.1-3. */
START_TEST(h10_ack_does_not_go_back)
    {
        setup_group(1, 100);
        down(100, 109);
        expect_ack(ack(1, 107), 107);
        /* Overtaken on the way: a duplicate, answered with what is known. */
        expect_ack(ack(1, 103), 107);
        ck_assert_uint_eq(branch(1).una.v, 108);
        ck_assert_uint_eq(branch(1).n_dups, 1);
    }
END_TEST

/* Proves MT-5.3.2-1, MT-5.3.2-2. */
START_TEST(h11_nak_acknowledges_what_is_below)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(ack(1, 109));
        expect_nak(nak(2, 105), 105);
        ck_assert_uint_eq(info().f.v, 105);
        ck_assert_uint_eq(branch(2).una.v, 105);
        /* An ACK that passes e clears it. */
        expect_ack(ack(2, 106), 106);
        ck_assert_int_eq(branch(2).cond, REVERSE_NONE);
    }
END_TEST

/* Who has only confirmed expects what follows.  Proves MT-5.3.2-3, MT-5.3.2-4, MT-8-2. */
START_TEST(epsn_of_a_branch_without_nak)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(ack(2, 102));
        expect_ack(ack(1, 104), 102);
        expect_nothing(nak(1, 107));
        now += REVERSE_HOLD_USEC;
        expect_nak(reverse_timer(r, now), 103);
    }
END_TEST

START_TEST(stale_nak_is_ignored)
    {
        setup_group(1, 100);
        down(100, 109);
        expect_ack(ack(1, 107), 107);
        expect_nothing(nak(1, 107));
        expect_nothing(nak(1, 103));
        expect_nothing(respond(1, AETH_NAK_REM_ACCESS, 107));
        ck_assert_int_eq(branch(1).cond, REVERSE_NONE);
        ck_assert_uint_eq(branch(1).una.v, 108);
    }
END_TEST

START_TEST(duplicate_does_not_clear_nak)
    {
        /* rxe answers every duplicate with an ACK of una - 1, and never repeats its NAK. */
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(nak(1, 105));
        expect_nothing(ack(1, 104));
        expect_nothing(ack(1, 104));
        ck_assert_int_eq(branch(1).cond, REVERSE_NAK);
        expect_nak(ack(2, 109), 105);
    }
END_TEST

START_TEST(nak_once_per_setting)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(ack(2, 108));
        expect_nak(nak(1, 105), 105);
        expect_nothing(nak(1, 105)); /* Duplicated by the network. */
        expect_nothing(ack(2, 109));
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        /* Served again, and lost again: a new setting. */
        down(105, 105);
        ck_assert_int_eq(branch(1).cond, REVERSE_NONE);
        expect_nak(nak(1, 105), 105);
    }
END_TEST

START_TEST(each_branch_naks_once)
    {
        setup_group(3, 100);
        down(100, 109);
        expect_nothing(nak(1, 105));
        expect_nothing(nak(2, 105));
        expect_nak(ack(3, 109), 105); /* One NAK for both. */
        /* Lost again at both; the second NAK comes after the first was passed on. */
        down(105, 109);
        expect_nak(nak(2, 105), 105);
        expect_nak(nak(1, 105), 105);
        expect_nothing(nak(2, 105));
    }
END_TEST

START_TEST(copy_serves_only_its_branch)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nak(nak(1, 100), 100);
        expect_nak(nak(2, 100), 100);
        down_only(100);
        reverse_copied(r, 1, psn_make(100), true);
        reverse_copied(r, 2, psn_make(101), true); /* Not what it waits for. */
        reverse_copied(r, 99, psn_make(100), true);
        ck_assert_int_eq(branch(1).cond, REVERSE_NONE);
        ck_assert_int_eq(branch(2).cond, REVERSE_NAK);
    }
END_TEST

/* Proves MT-5.3.2-4. */
START_TEST(h12_held_until_the_minimum_arrives)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(nak(1, 105));
        ck_assert_uint_eq(reverse_deadline(r), now + REVERSE_HOLD_USEC);
        now += REVERSE_HOLD_USEC - 1;
        expect_nothing(reverse_timer(r, now));
        expect_ack(ack(2, 102), 102);
        expect_nak(ack(2, 106), 105);
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
    }
END_TEST

/* Proves MT-5.3.2-4. */
START_TEST(h12_hold_is_bounded)
    {
        setup_group(3, 100);
        down(100, 109);
        expect_nothing(nak(1, 105));
        now += 400;
        expect_nothing(nak(2, 103));
        now += 600;
        expect_nak(reverse_timer(r, now), 100); /* For both held NAKs. */
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        now += 10000;
        expect_nothing(reverse_timer(r, now));
        /* Still not served when the minimum gets there: the source did not hear of 103. */
        expect_nak(ack(3, 109), 103);
        expect_nak(ack(2, 109), 105);
    }
END_TEST

START_TEST(h12_served_while_held)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(nak(1, 105));
        down(105, 109);
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        expect_ack(ack(2, 109), 104);
    }
END_TEST

START_TEST(h12_nak_at_the_minimum_serves_the_held)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(nak(1, 105));
        expect_nak(nak(2, 102), 102); /* The source goes back and passes 105. */
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        /* Held while a condition stands at the minimum: no second way back. */
        expect_nothing(nak(1, 107));
        now += REVERSE_HOLD_USEC;
        expect_nothing(reverse_timer(r, now));
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
    }
END_TEST

START_TEST(h12_hold_counts_from_the_first)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(nak(1, 105));
        now += 700;
        expect_nothing(nak(1, 105)); /* A repetition does not prolong it. */
        now += 300;
        expect_nak(reverse_timer(r, now), 100);
    }
END_TEST

START_TEST(h13_trailing_ack)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(ack(1, 109));
        expect_ack(ack(2, 109), 109);
        expect_ack(ack(1, 109), 109); /* First duplicate: at once. */
        now += 100;
        expect_nothing(ack(2, 109)); /* Too early, but not forgotten. */
        ck_assert_uint_eq(reverse_deadline(r), now + REVERSE_DUP_ACK_USEC - 100);
        now += REVERSE_DUP_ACK_USEC - 101;
        expect_nothing(ack(1, 105));
        expect_nothing(reverse_timer(r, now));
        now++;
        expect_ack(reverse_timer(r, now), 109);
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        expect_nothing(reverse_timer(r, now + 10000));
        ck_assert_uint_eq(info().n_sent_dups, 2);
        ck_assert_uint_eq(info().n_sent_acks, 3);
    }
END_TEST

START_TEST(h13_progress_replaces_the_trailing_ack)
    {
        setup_group(1, 100);
        down(100, 109);
        expect_ack(ack(1, 104), 104);
        expect_ack(ack(1, 104), 104);
        expect_nothing(ack(1, 104));
        expect_ack(ack(1, 109), 109);
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
    }
END_TEST

START_TEST(h13_duplicate_at_a_reported_nak)
    {
        /* The ACK tells a source that missed the NAK how far everybody is. */
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(ack(2, 109));
        expect_nak(nak(1, 105), 105);
        expect_ack(ack(2, 109), 104);
    }
END_TEST

/* Proves MT-5.3.1-1, MT-8-1. */
START_TEST(no_ack_before_the_first_confirmation)
    {
        /* 99 was never sent: re-sending "ACK(m - 1)" would confirm it. */
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(ack(1, 109));
        expect_nothing(ack(1, 109));
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        expect_nak(nak(2, 100), 100);
        expect_nothing(ack(1, 109));
    }
END_TEST

START_TEST(h14_rnr_with_the_longest_timer)
    {
        setup_group(4, 100);
        down(100, 109);
        expect_nothing(respond(1, AETH_RNR | 14, 105));
        expect_nothing(respond(2, AETH_RNR | 20, 105));
        expect_nothing(nak(3, 105));
        expect(ack(4, 109), AETH_RNR | 20, 105);
        /* Code 0 is the longest of all. */
        expect(respond(1, AETH_RNR | 0, 105), AETH_RNR | 0, 105);
        /* A shorter one changes nothing. */
        expect_nothing(respond(3, AETH_RNR | 31, 105));
        /* rxe sends a sequence NAK of the same PSN after its RNR NAK. */
        expect_nothing(nak(1, 105));
        ck_assert_int_eq(branch(1).cond, REVERSE_RNR);
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
    }
END_TEST

START_TEST(h14_rnr_waits_for_the_minimum)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(respond(1, AETH_RNR | 12, 105));
        /* No NAK(m) in its place: that would bring the packet back before the timer. */
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        expect_nothing(reverse_timer(r, now + 1000000));
        expect(ack(2, 109), AETH_RNR | 12, 105);
        down(105, 109);
        ck_assert_int_eq(branch(1).cond, REVERSE_NONE);
        expect(respond(1, AETH_RNR | 12, 105), AETH_RNR | 12, 105);
    }
END_TEST

START_TEST(h14_uncovered_nak)
    {
        setup_group(2, 100);
        down(100, 109);
        expect(respond(1, AETH_RNR | 12, 100), AETH_RNR | 12, 100);
        expect_nothing(nak(2, 100)); /* The RNR NAK takes precedence... */
        down_only(100);
        reverse_copied(r, 1, psn_make(100), true); /* ...but only branch 1 got a copy. */
        ck_assert_uint_eq(reverse_deadline(r), 0);
        expect_nak(reverse_timer(r, now), 100);
    }
END_TEST

START_TEST(h15_fatal_is_latched)
    {
        setup_group(2, 100);
        down(100, 109);
        expect_nothing(respond(1, AETH_NAK_REM_ACCESS, 105)); /* Above the minimum: waits. */
        expect_nothing(reverse_timer(r, now + 1000000));
        expect_ack(ack(2, 103), 103);
        expect(ack(2, 109), AETH_NAK_REM_ACCESS, 105);
        /* Again on every later AckReq and duplicate, with PSN m. */
        expect(reverse_down(r, psn_make(105), true, now), AETH_NAK_REM_ACCESS, 105);
        down_only(106);
        expect(ack(2, 109), AETH_NAK_REM_ACCESS, 105);
        expect(ack(1, 104), AETH_NAK_REM_ACCESS, 105);
        /* Neither a copy nor a response of that branch clears it. */
        reverse_copied(r, 1, psn_make(105), true);
        expect(ack(1, 109), AETH_NAK_REM_ACCESS, 105);
        expect_nothing(nak(1, 107));
        ck_assert_int_eq(branch(1).cond, REVERSE_FATAL);
        ck_assert_uint_eq(branch(1).una.v, 105);
        ck_assert_uint_eq(info().n_sent_fatals, 5);
        /* Removal does. */
        expect_ack(leave(1), 109);
    }
END_TEST

START_TEST(h15_fatal_before_rnr_before_nak)
    {
        setup_group(3, 100);
        down(100, 109);
        expect_nak(nak(1, 100), 100);
        expect(respond(2, AETH_RNR | 0, 100), AETH_RNR | 0, 100);
        expect(respond(3, AETH_NAK_INVALID_REQ, 100), AETH_NAK_INVALID_REQ, 100);
        expect_nothing(respond(1, AETH_RNR | 0, 100));
    }
END_TEST

START_TEST(h18_msn_of_the_branch_at_the_minimum)
    {
        setup_group(3, 100);
        down(100, 109);
        expect_nothing(respond_msn(1, AETH_ACK_UNLIMITED, 109, 7));
        expect_nothing(respond_msn(2, AETH_ACK_UNLIMITED, 105, 5));
        struct reverse_out out = respond_msn(3, AETH_ACK_UNLIMITED, 103, 4);
        expect_ack(out, 103);
        ck_assert_uint_eq(out.msn, 4);
        out = respond_msn(3, AETH_ACK_UNLIMITED, 107, 6);
        expect_ack(out, 105);
        ck_assert_uint_eq(out.msn, 5);
    }
END_TEST

START_TEST(h26_add_while_quiesced)
    {
        setup_group(1, 100);
        ck_assert_int_eq(reverse_branch_add(r, 1, now), EEXIST);
        down(100, 109);
        ck_assert_int_eq(reverse_branch_add(r, 2, now), EBUSY);
        expect_nak(nak(1, 105), 105);
        ck_assert_int_eq(reverse_branch_add(r, 2, now), EBUSY);
        expect_ack(ack(1, 109), 109);
        ck_assert_int_eq(reverse_branch_add(r, 2, now), 0);
        ck_assert_uint_eq(branch(2).una.v, 110);
        down(110, 119);
        expect_nothing(ack(1, 119));
        expect_ack(ack(2, 119), 119);
    }
END_TEST

START_TEST(h27_removal_advances_the_minimum)
    {
        setup_group(3, 100);
        down(100, 109);
        expect_nothing(ack(1, 109));
        expect_nothing(nak(2, 105));
        expect_nak(leave(3), 105);
        expect_ack(leave(2), 109);
        expect_nothing(leave(2));
        expect_refused(2, AETH_ACK_UNLIMITED, 105, DROP_unknown_branch);
    }
END_TEST

START_TEST(h27_nobody_left)
    {
        setup_group(1, 100);
        down(100, 104);
        expect_ack(ack(1, 101), 101);
        expect_ack(ack(1, 101), 101);
        expect_nothing(ack(1, 101));
        /* 102..104 were confirmed by nobody: nobody may confirm them now, nor join as if they
         * were. */
        expect_nothing(leave(1));
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        expect_nothing(reverse_timer(r, now + 1000000));
        down(105, 109);
        ck_assert_uint_eq(info().h.v, 105);
        ck_assert_int_eq(reverse_branch_add(r, 2, now), EBUSY);
    }
END_TEST

START_TEST(no_branches_nothing_went_down)
    {
        setup_group(0, 100);
        down(100, 104);
        ck_assert(!info().started);
        n_ids = 1;
        ck_assert_int_eq(reverse_branch_add(r, 1, now), 0);
        ck_assert_uint_eq(branch(1).una.v, 100);
        expect_refused(1, AETH_ACK_UNLIMITED, 104, DROP_psn_not_sent);
        down(100, 104);
        expect_ack(ack(1, 104), 104);
        /* Quiesced and empty: what is sent meanwhile is not acknowledged on behalf of a later
         * one. */
        expect_nothing(leave(1));
        down(105, 109);
        ck_assert_int_eq(reverse_branch_add(r, 1, now), 0);
        ck_assert_uint_eq(branch(1).una.v, 105);
        expect_nothing(reverse_timer(r, now + 1000000));
        down(105, 109);
        expect_ack(ack(1, 109), 109);
    }
END_TEST

/* Proves MT-5.3.1-1. */
START_TEST(h28_never_beyond_h)
    {
        setup_group(1, 100);
        expect_refused(1, AETH_ACK_UNLIMITED, 100, DROP_psn_not_sent);
        down(100, 104);
        expect_refused(1, AETH_ACK_UNLIMITED, 105, DROP_psn_not_sent);
        expect_refused(1, AETH_NAK_PSN_SEQ, 105, DROP_psn_not_sent);
        expect_refused(1, AETH_RNR | 12, 105, DROP_psn_not_sent);
        expect_refused(1, AETH_NAK_REM_OP, 105, DROP_psn_not_sent);
        expect_refused(1, AETH_ACK_UNLIMITED, 105 + (1 << 23) - 1, DROP_psn_not_sent);
        expect_refused(2, AETH_ACK_UNLIMITED, 104, DROP_unknown_branch);
        expect_ack(ack(1, 104), 104);
    }
END_TEST

START_TEST(reserved_syndromes)
    {
        static const uint8_t reserved[] = {0x40, 0x5f, 0x64, 0x65, 0x7f, 0x80, 0x9f, 0xe0, 0xff};
        setup_group(1, 100);
        down(100, 104);
        expect_refused(1, reserved[_i], 104, DROP_resp_opcode);
        ck_assert_uint_eq(branch(1).una.v, 100);
    }
END_TEST

START_TEST(any_credit_count_is_an_ack)
    {
        setup_group(1, 100);
        down(100, 104);
        expect_ack(respond(1, (uint8_t) _i, 104), 104);
    }
END_TEST

START_TEST(suspicious_jump)
    {
        setup_group(1, 0xfffff0);
        ck_assert(!reverse_jump_suspicious(r, psn_make(0xfffff0)));
        ck_assert(reverse_jump_suspicious(r, psn_make(0xfffff1)));
        ck_assert(reverse_jump_suspicious(r, psn_make(0xffffef)));
        down(0xfffff0, 0xfffff0); /* H = 0xfffff1. */
        ck_assert(!reverse_jump_suspicious(r, psn_make(0xfffff1)));
        ck_assert(!reverse_jump_suspicious(r, psn_make(0xfffff1 + 4095)));
        ck_assert(reverse_jump_suspicious(r, psn_make(0xfffff1 + 4096)));
        ck_assert(!reverse_jump_suspicious(r, psn_make(0xffffd0)));
    }
END_TEST

START_TEST(h_stays_within_the_window)
    {
        /* H - una must stay below half the PSN space, or "old" and "not sent" are the same. */
        setup_group(1, 100);
        down(100, 100);
        down_only(100 + (1 << 23) - 2);
        ck_assert_uint_eq(info().h.v, 100 + (1 << 23) - 1);
        down_only(100 + (1 << 23) - 1);
        down_only(100 + (1 << 23) + 50);
        ck_assert_uint_eq(info().h.v, 100 + (1 << 23) - 1);
        expect_ack(ack(1, 100), 100);
        down_only(100 + (1 << 23) - 1);
        ck_assert_uint_eq(info().h.v, 100 + (1 << 23));
    }
END_TEST

/* Proves MT-5.3.1-4. */
START_TEST(thousand_branches)
    {
        setup_group(1000, 0xffff00);
        down(0xffff00, 0xffff00 + 511);
        for (uint32_t id = 1000; id > 1; id--) {
            expect_nothing(ack(id, 0xffff00 + id % 512));
        }
        expect_ack(ack(1, 0xffff00 + 511), 0xffff00);
        for (uint32_t id = 2; id <= 1000; id++) {
            leave(id);
        }
        ck_assert_uint_eq(info().f.v, psn_make(0xffff00 + 512).v);
    }
END_TEST

Suite *
reverse_suite(void)
{
    const TTest *const scenarios[] = {
        h9_start_psn,
        h9_wrap,
        h10_ack_does_not_go_back,
        h11_nak_acknowledges_what_is_below,
        epsn_of_a_branch_without_nak,
        stale_nak_is_ignored,
        duplicate_does_not_clear_nak,
        nak_once_per_setting,
        each_branch_naks_once,
        copy_serves_only_its_branch,
        h12_held_until_the_minimum_arrives,
        h12_hold_is_bounded,
        h12_served_while_held,
        h12_nak_at_the_minimum_serves_the_held,
        h12_hold_counts_from_the_first,
        h13_trailing_ack,
        h13_progress_replaces_the_trailing_ack,
        h13_duplicate_at_a_reported_nak,
        no_ack_before_the_first_confirmation,
        h14_rnr_with_the_longest_timer,
        h14_rnr_waits_for_the_minimum,
        h14_uncovered_nak,
        h15_fatal_is_latched,
        h15_fatal_before_rnr_before_nak,
        h18_msn_of_the_branch_at_the_minimum,
        h26_add_while_quiesced,
        h27_removal_advances_the_minimum,
        h27_nobody_left,
        no_branches_nothing_went_down,
        h28_never_beyond_h,
        suspicious_jump,
        h_stays_within_the_window,
        thousand_branches,
    };
    Suite *s = suite_create("reverse");
    TCase *tc = tcase_create("scenarios");

    tcase_add_checked_fixture(tc, NULL, teardown);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        tcase_add_test(tc, scenarios[i]);
    }
    tcase_add_loop_test(tc, reserved_syndromes, 0, 9);
    tcase_add_loop_test(tc, any_credit_count_is_an_ack, 0, 0x20);
    suite_add_tcase(s, tc);
    return s;
}
