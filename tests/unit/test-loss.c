/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches that are lost: fatal NAKs and silence, and the policies fail-group
 * and prune (lib/reverse.h; docs/draft-notes.md, H15, H16 and H27).
 */
#include "lib/reverse.h"

#include <check.h>

#include "lib/roce.h"
#include "tests/unit/suites.h"

#define START    1000u
#define LIVENESS 32000u /* a tick is 1,000 us. */
#define RETRY    8000u  /* the source repeats after this time: a fourth. */
#define MAX_OUT  16

static struct reverse *r;
static uint32_t n_ids;
static uint64_t now;
static struct reverse_out last; /* the last response that went up. */
static size_t n_out;

static void
note(struct reverse_out out)
{
    if (out.send) {
        last = out;
        n_out++;
    }
}

static void
set_policy(bool prune, uint64_t liveness_usec)
{
    reverse_set_policy(r, &(struct reverse_policy){.prune = prune, .liveness_usec = liveness_usec});
}

static void
setup_group(uint32_t n, bool prune)
{
    r = reverse_create(&(struct reverse_params){
        .start_psn = psn_make(START),
        .dup_ack_usec = REVERSE_DUP_ACK_USEC,
        .hold_usec = REVERSE_HOLD_USEC,
    });
    now = 5000000;
    n_ids = n;
    n_out = 0;
    set_policy(prune, LIVENESS);
    for (uint32_t id = 1; id <= n; id++) {
        ck_assert_int_eq(reverse_branch_add(r, id, now), 0);
    }
}

static void
teardown(void)
{
    reverse_destroy(r);
    r = NULL;
}

static void
down(uint32_t first, uint32_t end)
{
    for (uint32_t q = first; q != end; q++) {
        note(reverse_down(r, psn_make(q), q + 1 == end, now));
        for (uint32_t id = 1; id <= n_ids; id++) {
            reverse_copied(r, id, psn_make(q), true);
        }
    }
}

static void
respond(uint32_t id, uint8_t syndrome, uint32_t psn)
{
    enum drop_reason why;

    note(reverse_response(r, id, psn_make(psn), syndrome, 0, now, &why));
    ck_assert_int_eq(why, DROP_none);
}

static void
ack(uint32_t id, uint32_t psn)
{
    respond(id, AETH_ACK_UNLIMITED, psn);
}

/* Until 'end', as the node's main loop does. */
static void
run_until(uint64_t end)
{
    while (reverse_deadline(r) <= end) {
        uint64_t when = reverse_deadline(r);
        now = when > now ? when : now;
        note(reverse_timer(r, now));
    }
    now = end;
}

/* For that long the source repeats first..end - 1. */
static void
repeat_for(uint64_t usec, uint32_t first, uint32_t end)
{
    for (uint64_t until = now + usec; now < until;) {
        uint64_t next = now + RETRY;
        down(first, end);
        run_until(next < until ? next : until);
    }
}

static struct reverse_branch_info
branch(uint32_t id)
{
    struct reverse_branch_info info;
    ck_assert(reverse_get_branch(r, id, &info));
    return info;
}

static size_t
n_lost(void)
{
    struct reverse_info info;
    reverse_get_info(r, &info);
    return info.n_lost;
}

static void
expect_up(uint8_t syndrome, uint32_t psn)
{
    ck_assert_uint_gt(n_out, 0);
    ck_assert_uint_eq(last.syndrome, syndrome);
    ck_assert_uint_eq(last.psn.v, psn);
}

/* Of three branches the third confirms START..START+3 and then nothing. */
static void
silence(bool prune)
{
    setup_group(3, prune);
    down(START, START + 10);
    ack(3, START + 3);
    ack(1, START + 9);
    ack(2, START + 9);
    expect_up(AETH_ACK_UNLIMITED, START + 3);
    n_out = 0;
}

START_TEST(silent_branch_fails_the_group)
    {
        silence(false);
        repeat_for(LIVENESS * 30 / 32 - 1, START + 4, START + 10);
        ck_assert_uint_eq(n_lost(), 0);
        repeat_for(LIVENESS * 2 / 32 + 1, START + 4, START + 10);
        ck_assert_uint_eq(n_lost(), 1);
        expect_up(AETH_NAK_REM_OP, START + 4);
        ck_assert_int_eq(branch(3).lost, LOSS_SILENT);
        ck_assert(!branch(3).pruned);
        ck_assert_uint_eq(branch(3).una.v, START + 4);

        n_out = 0;
        down(START + 4, START + 10); /* asks for an answer again: the NAK got lost. */
        ck_assert_uint_eq(n_out, 1);
        expect_up(AETH_NAK_REM_OP, START + 4);
    }
END_TEST

START_TEST(silent_branch_is_pruned)
    {
        silence(true);
        repeat_for(LIVENESS, START + 4, START + 10);
        expect_up(AETH_ACK_UNLIMITED, START + 9);
        ck_assert_uint_eq(n_out, 1);
        ck_assert(branch(3).pruned && reverse_is_pruned(r, 3) && !reverse_is_pruned(r, 1));

        /* It is back, too late: it has no say any more. */
        respond(3, AETH_NAK_PSN_SEQ, START + 4);
        ack(3, START + 9);
        ck_assert_uint_eq(n_out, 1);
        down(START + 10, START + 11);
        ack(1, START + 10);
        ack(2, START + 10);
        expect_up(AETH_ACK_UNLIMITED, START + 10);
    }
END_TEST

START_TEST(silence_counts_while_the_source_asks)
    {
        for (uint64_t ticks = 18; ticks < 300; ticks++) {
            silence(true);
            run_until(now + ticks * LIVENESS / 32); /* the source is dead. */
            ck_assert_uint_eq(n_lost(), 0);
            repeat_for(LIVENESS * 30 / 32 - 1, START + 4, START + 10);
            ck_assert_uint_eq(n_lost(), 0);
            repeat_for(LIVENESS * 2 / 32 + 1, START + 4, START + 10);
            ck_assert_uint_eq(n_lost(), 1);
            teardown();
        }
    }
END_TEST

START_TEST(asked_for_other_packets_is_not_asked)
    {
        silence(true);
        repeat_for(2 * LIVENESS, START + 5, START + 10);
        ck_assert_uint_eq(n_lost(), 0);
    }
END_TEST

START_TEST(copies_that_did_not_go_out_ask_too)
    {
        silence(true); /* The port to the branch is gone, for good. */
        for (unsigned i = 0; i < 2 * LIVENESS / RETRY; i++) {
            note(reverse_down(r, psn_make(START + 4), true, now));
            reverse_copied(r, 3, psn_make(START + 4), false);
            run_until(now + RETRY);
        }
        ck_assert(branch(3).pruned);
    }
END_TEST

START_TEST(rnr_is_a_sign_of_life)
    {
        silence(false);
        for (unsigned i = 0; i < 3 * LIVENESS / RETRY; i++) {
            down(START + 4, START + 10);
            respond(3, AETH_RNR | 12, START + 4);
            run_until(now + RETRY);
        }
        ck_assert_uint_eq(n_lost(), 0);
    }
END_TEST

START_TEST(repeating_itself_is_no_sign_of_life)
    {
        silence(true);
        for (unsigned i = 0; i < LIVENESS / RETRY; i++) {
            down(START + 4, START + 10);
            respond(3, AETH_NAK_PSN_SEQ, START + 4);
            ack(3, START + 3);
            run_until(now + RETRY);
        }
        ck_assert(branch(3).pruned);
    }
END_TEST

START_TEST(progress_is_a_sign_of_life)
    {
        silence(true);
        for (uint32_t psn = START + 4; psn < START + 9; psn++) {
            repeat_for(LIVENESS * 29 / 32, START + 4, START + 10);
            ack(3, psn);
        }
        ck_assert_uint_eq(n_lost(), 0);
    }
END_TEST

START_TEST(idle_branches_are_not_silent)
    {
        setup_group(3, true);
        down(START, START + 1);
        ack(1, START);
        ack(2, START);
        run_until(now + LIVENESS / 2);
        ack(3, START);
        run_until(now + LIVENESS);
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        /* Branch 3 keeps the group busy; then it is about something that all lack. */
        down(START + 1, START + 2);
        ack(1, START + 1);
        ack(2, START + 1);
        repeat_for(LIVENESS * 29 / 32, START + 1, START + 2);
        ack(3, START + 1);
        down(START + 2, START + 3);
        repeat_for(LIVENESS * 29 / 32, START + 2, START + 3);
        ck_assert_uint_eq(n_lost(), 0);
    }
END_TEST

START_TEST(liveness_zero_is_never)
    {
        silence(false);
        set_policy(false, 0);
        repeat_for(100 * LIVENESS, START + 4, START + 10);
        ck_assert_uint_eq(n_lost(), 0);
    }
END_TEST

/* After a restart it is not known what a branch has that never speaks. */
static void
silence_after_restart(bool prune)
{
    setup_group(3, prune);
    down(START + 20, START + 30); /* the rest of a flight, ... */
    ack(1, START + 29);
    ack(2, START + 29);
    ck_assert_uint_eq(n_out, 0);
    repeat_for(LIVENESS, START + 14, START + 30); /* ... of which the source repeats all. */
    ck_assert_int_eq(branch(3).lost, LOSS_SILENT);
}

START_TEST(silent_since_restart_fails_the_group)
    {
        silence_after_restart(false);
        expect_up(AETH_NAK_REM_OP, START + 14);
    }
END_TEST

START_TEST(silent_since_restart_is_pruned)
    {
        silence_after_restart(true);
        expect_up(AETH_ACK_UNLIMITED, START + 29);
    }
END_TEST

START_TEST(refusal_is_pruned_at_once)
    {
        setup_group(2, true);
        down(START, START + 10);
        ack(1, START + 9);
        n_out = 0;
        respond(2, AETH_NAK_REM_ACCESS, START + 4);
        ck_assert_uint_eq(n_out, 1);
        expect_up(AETH_ACK_UNLIMITED, START + 9);
        ck_assert_int_eq(branch(2).lost, LOSS_REFUSED);
        ck_assert_uint_eq(branch(2).code, AETH_NAK_REM_ACCESS);
        ck_assert_uint_eq(branch(2).una.v, START + 4);
    }
END_TEST

START_TEST(refusal_above_the_minimum_is_pruned_at_once)
    {
        setup_group(2, true);
        down(START, START + 10);
        respond(2, AETH_NAK_REM_ACCESS, START + 4);
        ck_assert(branch(2).pruned);
        ck_assert_uint_eq(n_out, 0);
        ack(1, START + 2);
        expect_up(AETH_ACK_UNLIMITED, START + 2);
    }
END_TEST

START_TEST(last_branch_is_not_pruned)
    {
        setup_group(3, true);
        down(START, START + 10);
        respond(1, AETH_NAK_REM_ACCESS, START + 4);
        respond(2, AETH_NAK_INVALID_REQ, START + 6);
        respond(3, AETH_NAK_REM_OP, START + 5);
        ck_assert(branch(1).pruned && branch(2).pruned && !branch(3).pruned);
        ck_assert_uint_eq(n_lost(), 3);
        expect_up(AETH_NAK_REM_OP, START + 5);
    }
END_TEST

START_TEST(all_silent_at_once)
    {
        setup_group(3, true);
        down(START, START + 10);
        ack(2, START + 3);
        repeat_for(LIVENESS, START, START + 10);
        ck_assert_uint_eq(n_lost(), 3);
        ck_assert_uint_eq(branch(1).pruned + branch(2).pruned + branch(3).pruned, 2);
        ck_assert_uint_eq(last.syndrome, AETH_NAK_REM_OP);
    }
END_TEST

/* All died when they had everything, and what said so got lost: nobody lacks anything, so nobody is
 * missed, and the source would repeat its last packet for ever. */
START_TEST(all_silent_with_everything)
    {
        setup_group(3, _i);
        down(START, START + 5);
        ack(1, START + 4);
        ack(2, START + 4);
        ack(3, START + 4);
        n_out = 0;
        repeat_for(RETRY, START + 4, START + 5);
        ck_assert_uint_eq(n_out, 1);
        expect_up(AETH_ACK_UNLIMITED, START + 4);
        ck_assert_uint_eq(n_lost(), 0);
        /* Of what comes next they lack something. */
        repeat_for(LIVENESS, START + 5, START + 6);
        ck_assert_uint_eq(n_lost(), 3);
        expect_up(AETH_NAK_REM_OP, START + 5);
    }
END_TEST

START_TEST(policy_can_change_after_the_loss)
    {
        silence(false);
        repeat_for(LIVENESS, START + 4, START + 10);
        expect_up(AETH_NAK_REM_OP, START + 4);
        set_policy(true, LIVENESS);
        note(reverse_branches_remove(r, NULL, 0, now));
        expect_up(AETH_ACK_UNLIMITED, START + 9);
    }
END_TEST

/* What a branch did in ticks of another length says nothing. */
START_TEST(another_liveness_time_begins_anew)
    {
        silence(true);
        repeat_for(LIVENESS * 29 / 32, START + 4, START + 10);
        set_policy(true, LIVENESS); /* The same: nothing changes. */
        repeat_for(LIVENESS * 3 / 32, START + 4, START + 10);
        ck_assert(branch(3).pruned);
        teardown();

        silence(true);
        repeat_for(LIVENESS * 29 / 32, START + 4, START + 10);
        set_policy(true, 4 * LIVENESS);
        repeat_for(4 * LIVENESS * 30 / 32 - 1, START + 4, START + 10);
        ck_assert_uint_eq(n_lost(), 0);
        set_policy(true, 1000 * LIVENESS);
        repeat_for(RETRY, START + 4, START + 10);
        set_policy(true, LIVENESS);
        repeat_for(LIVENESS + RETRY, START + 4, START + 10);
        ck_assert(branch(3).pruned);
    }
END_TEST

/* Those that counted leave, and one that is lost is all that is left. */
START_TEST(only_pruned_branches_are_left)
    {
        uint32_t ids[] = {1, 2};

        silence(true);
        repeat_for(LIVENESS, START + 4, START + 10);
        expect_up(AETH_ACK_UNLIMITED, START + 9);
        n_out = 0;
        note(reverse_branches_remove(r, ids, 2, now));
        ck_assert(!branch(3).pruned && branch(3).lost == LOSS_SILENT);
        ck_assert_uint_eq(reverse_deadline(r), UINT64_MAX);
        ack(3, START + 9); /* Asks, but START + 10 did not go down. */
        ck_assert(!n_out || last.psn.v != START + 10);
        n_out = 0;
        down(START + 10, START + 12);
        ck_assert_uint_eq(n_out, 1);
        expect_up(AETH_NAK_REM_OP, START + 10);
    }
END_TEST

/* Nobody joins once all are lost: neither a receiver (0), with a packet that begins a message and
 * asks for nothing, nor a node (1).  So the source is told. */
START_TEST(lost_branches_let_nobody_join)
    {
        bool is_node = _i;

        setup_group(2, true);
        down(START, START + 2);
        ack(1, START + 1);
        ack(2, START + 1);
        ck_assert_int_eq(reverse_branch_wait(r, 3, is_node, psn_make(7), now), 0);
        reverse_position(r, 3, true, now);
        respond(1, AETH_NAK_REM_ACCESS, START + 1);
        down(START + 2, START + 3);
        respond(1, AETH_NAK_REM_ACCESS, START + 2);
        ck_assert(branch(1).pruned);
        ck_assert_int_eq(reverse_may_admit(r, psn_make(START + 3)), !is_node);
        ack(2, START + 2);
        /* The other one refuses what it has asked for nothing about. */
        note(reverse_down(r, psn_make(START + 3), false, now));
        respond(2, AETH_NAK_REM_ACCESS, START + 3);
        ck_assert_uint_eq(n_lost(), 2);
        expect_up(AETH_NAK_REM_ACCESS, START + 3);
        ck_assert(!reverse_may_admit(r, psn_make(START + 4)));
        note(reverse_down(r, psn_make(START + 4), false, now));
        if (is_node) {
            now += REVERSE_LIFETIME_USEC;
            ack(3, START + 4);
        }
        ck_assert(branch(3).waits && !branch(2).pruned);
        n_out = 0;
        down(START + 3, START + 5);
        ck_assert_uint_eq(n_out, 1);
        expect_up(AETH_NAK_REM_ACCESS, START + 3);
        /* It is not for good: nobody is left who counts. */
        uint32_t ids[] = {1, 2};
        note(reverse_branches_remove(r, ids, 2, now));
        ck_assert_int_eq(reverse_may_admit(r, psn_make(START + 5)), !is_node);
    }
END_TEST

START_TEST(last_lost_branch_makes_way)
    {
        uint32_t ids[] = {1, 2};

        silence(true);
        repeat_for(LIVENESS, START + 4, START + 10);
        note(reverse_branches_remove(r, ids, 2, now));
        ck_assert_int_eq(reverse_branch_add(r, 4, now), 0);
        ck_assert(branch(3).pruned);
        n_ids = 4;
        n_out = 0;
        down(START + 10, START + 12);
        ck_assert_uint_eq(n_out, 0);
        ack(4, START + 11);
        expect_up(AETH_ACK_UNLIMITED, START + 11);
    }
END_TEST

/* The source was going back over START + 10.. when the node was started, and has got further
 * since. */
START_TEST(lowest_of_an_earlier_round_is_forgotten)
    {
        setup_group(2, false);
        down(START + 10, START + 30);
        ack(1, START + 29);
        repeat_for(3 * LIVENESS, START + 20, START + 30);
        ck_assert_int_eq(branch(2).lost, LOSS_SILENT);
        expect_up(AETH_NAK_REM_OP, START + 20);
        teardown();

        setup_group(2, false);
        down(START + 10, START + 30);
        ack(1, START + 29);
        run_until(now + LIVENESS * 258 / 32); /* For how long does not matter. */
        repeat_for(LIVENESS + RETRY, START + 20, START + 30);
        ck_assert_int_eq(branch(2).lost, LOSS_SILENT);
        expect_up(AETH_NAK_REM_OP, START + 20);
    }
END_TEST

/* What anchored it was under way while the source got further: nobody will send it START + 12. */
START_TEST(anchored_by_an_old_response)
    {
        setup_group(2, false);
        down(START + 10, START + 30);
        ack(2, START + 11);
        ack(1, START + 29);
        repeat_for(3 * LIVENESS, START + 20, START + 30);
        ck_assert_int_eq(branch(2).lost, LOSS_SILENT);
        expect_up(AETH_NAK_REM_OP, START + 20);
    }
END_TEST

/* Only what is asked for again draws an answer from all. */
START_TEST(going_on_does_not_ask_after_restart)
    {
        setup_group(2, true);
        for (uint32_t psn = START + 10; psn < START + 74; psn++) {
            down(psn, psn + 1);
            run_until(now + LIVENESS / 20);
        }
        ck_assert_uint_eq(n_lost(), 0);
    }
END_TEST

START_TEST(pruned_branch_keeps_what_it_was_lost_at)
    {
        setup_group(2, true);
        down(START, START + 10);
        respond(2, AETH_NAK_REM_ACCESS, START + 4);
        ack(1, START + 9);
        down(START + 10, START + 20);
        down(START + 4, START + 5);
        respond(2, AETH_RNR | 12, START + 12);
        ck_assert_uint_eq(branch(2).una.v, START + 4);
        ck_assert_uint_eq(branch(2).code, AETH_NAK_REM_ACCESS);
        ck_assert_uint_eq(branch(2).n_dups, 1);
    }
END_TEST

START_TEST(removing_a_lost_branch)
    {
        uint32_t id = 3;

        silence(true);
        repeat_for(LIVENESS, START + 4, START + 10);
        note(reverse_branches_remove(r, &id, 1, now));
        ck_assert_uint_eq(n_lost(), 0);
        n_ids = 2;
        down(START + 10, START + 12);
        ack(1, START + 11);
        respond(2, AETH_NAK_PSN_SEQ, START + 10);
        expect_up(AETH_NAK_PSN_SEQ, START + 10);
        ack(2, START + 11);
        expect_up(AETH_ACK_UNLIMITED, START + 11);
    }
END_TEST

Suite *
loss_suite(void)
{
    Suite *s = suite_create("loss");
    TCase *tc = tcase_create("loss");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, silent_branch_fails_the_group);
    tcase_add_test(tc, silent_branch_is_pruned);
    tcase_add_test(tc, silence_counts_while_the_source_asks);
    tcase_add_test(tc, asked_for_other_packets_is_not_asked);
    tcase_add_test(tc, copies_that_did_not_go_out_ask_too);
    tcase_add_test(tc, rnr_is_a_sign_of_life);
    tcase_add_test(tc, repeating_itself_is_no_sign_of_life);
    tcase_add_test(tc, progress_is_a_sign_of_life);
    tcase_add_test(tc, idle_branches_are_not_silent);
    tcase_add_test(tc, liveness_zero_is_never);
    tcase_add_test(tc, silent_since_restart_fails_the_group);
    tcase_add_test(tc, silent_since_restart_is_pruned);
    tcase_add_test(tc, refusal_is_pruned_at_once);
    tcase_add_test(tc, refusal_above_the_minimum_is_pruned_at_once);
    tcase_add_test(tc, last_branch_is_not_pruned);
    tcase_add_test(tc, all_silent_at_once);
    tcase_add_loop_test(tc, all_silent_with_everything, 0, 2);
    tcase_add_test(tc, policy_can_change_after_the_loss);
    tcase_add_test(tc, another_liveness_time_begins_anew);
    tcase_add_test(tc, only_pruned_branches_are_left);
    tcase_add_loop_test(tc, lost_branches_let_nobody_join, 0, 2);
    tcase_add_test(tc, last_lost_branch_makes_way);
    tcase_add_test(tc, lowest_of_an_earlier_round_is_forgotten);
    tcase_add_test(tc, anchored_by_an_old_response);
    tcase_add_test(tc, going_on_does_not_ask_after_restart);
    tcase_add_test(tc, pruned_branch_keeps_what_it_was_lost_at);
    tcase_add_test(tc, removing_a_lost_branch);
    suite_add_tcase(s, tc);
    return s;
}
