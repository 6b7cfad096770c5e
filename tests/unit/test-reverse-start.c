/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/reverse.c: a node that does not see an epoch's first packets, or not for
 * the first time (docs/draft-notes.md, R8).
 */
#include <check.h>
#include <errno.h>

#include "tests/unit/parse-check.h"
#include "tests/unit/reverse-fixture.h"
#include "tests/unit/suites.h"

START_TEST(start_without_state)
    {
        setup_group(2, 100);
        down(5000, 5004);
        ck_assert(!info().anchored);
        expect_refused(1, AETH_ACK_UNLIMITED, 5000 + REVERSE_AHEAD_WINDOW, DROP_psn_not_sent);
        expect_refused(1, AETH_ACK_UNLIMITED, psn_make(5000u - (1 << 22) - 1).v, DROP_psn_not_sent);
        expect_nothing(ack(1, 4990));
        expect_nothing(ack(1, 4990)); /* A duplicate of an unanchored group. */
        expect_nothing(ack(1, 5004));
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        expect_nothing(reverse_timer(r, now + 1000000));
        ck_assert_int_eq(reverse_branch_add(r, 3, now), EBUSY);
        expect_ack(ack(2, psn_make(5000u - (1 << 22)).v), 5000u - (1 << 22));
        expect_ack(ack(2, 5002), 5002);
    }
END_TEST

/* Receivers have more than what is sent again, since before the node was started again. */
START_TEST(start_without_state_ahead)
    {
        setup_group(3, 100);
        down(5000, 5004);
        expect_refused(1, AETH_NAK_REM_OP, 5005, DROP_psn_not_sent);
        expect_nothing(ack(1, 5000 + REVERSE_AHEAD_WINDOW - 1));
        expect_nothing(nak(2, 5006));
        ck_assert_int_eq(branch(2).cond, REVERSE_NONE);
        expect_ack(respond(3, AETH_RNR | 5, 5005), 5004);
        ck_assert_int_eq(branch(3).cond, REVERSE_NONE);
        ck_assert_uint_eq(branch(1).una.v, 5005);

        down(5005, 5006);
        expect_nothing(ack(1, 5009));
        expect_nothing(ack(2, 5007));
        expect_ack(ack(3, 5005), 5005);
        expect_nak(nak(3, 5006), 5006);
        expect_ack(ack(3, 5006), 5006);
    }
END_TEST

/* Once as much has been sent as may have been before, what was never sent is refused again, for ever. */
START_TEST(start_without_state_no_longer_ahead)
    {
        setup_group(1, 100);
        down_only(5000);
        for (uint32_t q = 5001; q < 5000 + REVERSE_AHEAD_WINDOW - 1; q++) {
            down_only(q);
            expect_ack(ack(1, q + 1), q);
        }
        for (uint32_t n = 0; n < 1 << 24; n++) {
            uint32_t q = psn_add(psn_make(5000 + REVERSE_AHEAD_WINDOW - 1), (int32_t) n).v;
            down_only(q);
            if (!(n & 0xffff)) {
                expect_refused(1, AETH_ACK_UNLIMITED, psn_add(psn_make(q), 1).v, DROP_psn_not_sent);
            }
            REQUIRE(respond(1, AETH_ACK_UNLIMITED, q).send);
        }
    }
END_TEST

START_TEST(start_without_state_by_nak)
    {
        setup_group(2, 100);
        down(5000, 5004);
        expect_nothing(nak(1, 4998));
        now += 5 * REVERSE_HOLD_USEC;
        expect_nothing(reverse_timer(r, now));
        expect_nak(ack(2, 5000), 4998);
    }
END_TEST

START_TEST(start_without_state_by_removal)
    {
        setup_group(2, 100);
        down(5000, 5004);
        expect_nothing(ack(1, 5001));
        expect_ack(leave(2), 5001);
    }
END_TEST

/* The source has gone through all PSNs, and is at the start PSN again. */
START_TEST(start_without_state_at_the_start_psn)
    {
        setup_life(2, 100, true);
        ck_assert(reverse_jump_suspicious(r, psn_make(100)));
        down(100, 100);
        ck_assert(!info().anchored);
        expect_nothing(nak(1, 95));
        expect_nak(respond(2, AETH_RNR | 5, 100), 95);
        down(95, 100);
        expect_ack(ack(1, 99), 99);
    }
END_TEST

/* The same PSN, and it has sent no other: the node was started again before anybody said
 * anything. */
START_TEST(start_again_with_the_first_packet)
    {
        setup_life(2, 100, true);
        down(100, 101);
        expect_nothing(nak(1, 100));
        expect_nak(nak(2, 100), 100);
        down(100, 101);
        expect_nothing(ack(1, 101));
        expect_ack(ack(2, 101), 101);
    }
END_TEST

/* The last packets are those before the start PSN: the source waits for this ACK. */
START_TEST(start_without_state_below_the_start_psn)
    {
        setup_life(2, 100, _i);
        down(90, 99);
        expect_nothing(ack(1, 99));
        expect_ack(ack(2, 99), 99);
        now += REVERSE_DUP_ACK_USEC;
        expect_ack(ack(2, 99), 99);
    }
END_TEST

START_TEST(first_packet_lost_before_this_node)
    {
        /* Looks like a start without state, but nothing is confirmed: no ACK(99). */
        setup_group(2, 100);
        down(101, 104);
        expect_nothing(nak(1, 100));
        expect_nak(nak(2, 100), 100);
        expect_nothing(ack(1, 99));
        down(100, 104);
        expect_nothing(ack(1, 104));
        expect_ack(ack(2, 104), 104);
    }
END_TEST

/* What it said before it left the tree and came back arrives within 1 s. */
START_TEST(node_joins_with_what_it_says_in_this_life)
    {
        setup_group(2, 100);
        down(100, 110);
        expect_nothing(ack(1, 109));
        expect_ack(ack(2, 109), 109);
        ck_assert_int_eq(reverse_branch_wait(r, 3, true, psn_make(0), now), 0);
        now += REVERSE_LIFETIME_USEC - 1;
        expect_nothing(ack(3, 110));
        ck_assert(branch(3).waits);
        now++;
        expect_nothing(ack(3, 105)); /* Counts, but is behind what went up. */
        ck_assert(!branch(3).waits && !branch(3).late);
        expect_nothing(ack(1, 110));
        expect_nothing(ack(2, 110));
        expect_ack(ack(3, 110), 110);
        ck_assert(branch(3).late);
    }
END_TEST

Suite *
reverse_start_suite(void)
{
    Suite *s = suite_create("reverse_start");
    TCase *tc = tcase_create("scenarios");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, start_without_state);
    tcase_add_test(tc, start_without_state_ahead);
    tcase_add_test(tc, start_without_state_no_longer_ahead);
    tcase_add_test(tc, start_without_state_by_nak);
    tcase_add_test(tc, start_without_state_by_removal);
    tcase_add_test(tc, start_without_state_at_the_start_psn);
    tcase_add_test(tc, start_again_with_the_first_packet);
    tcase_add_test(tc, first_packet_lost_before_this_node);
    tcase_add_loop_test(tc, start_without_state_below_the_start_psn, 0, 2);
    tcase_add_test(tc, node_joins_with_what_it_says_in_this_life);
    suite_add_tcase(s, tc);
    return s;
}
