/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies of the reverse path: NAKs above the minimum (docs/draft-notes.md, R7), the
 * filter for copies (R13), losses that nobody reports (R14), and what an event costs.
 */
#include "lib/reverse-impl.h"

#include <check.h>

#include "tests/unit/suites.h"

#define START 100u

static struct reverse *r;
static uint64_t now;

static void
setup_group(uint32_t n, struct reverse_policy policy)
{
    now = 1000000;
    r = reverse_create(&(struct reverse_params){
        .start_psn = psn_make(START),
        .dup_ack_usec = REVERSE_DUP_ACK_USEC,
        .hold_usec = REVERSE_HOLD_USEC,
    });
    reverse_set_policy(r, &policy);
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

/* PSNs first..last go down for the first time, a copy for each of n branches. */
static void
down(uint32_t first, uint32_t last, uint32_t n)
{
    for (uint32_t q = first; q <= last; q++) {
        ck_assert(!reverse_down(r, psn_make(q), false, now).send);
        for (uint32_t id = 1; id <= n; id++) {
            ck_assert(!reverse_filters(r, id, psn_make(q)));
            reverse_copied(r, id, psn_make(q), true);
        }
    }
}

static struct reverse_out
respond(uint32_t id, uint8_t syndrome, uint32_t psn)
{
    enum drop_reason why;
    struct reverse_out out = reverse_response(r, id, psn_make(psn), syndrome, 0, now, &why);
    ck_assert_str_eq(drop_name(why), drop_name(DROP_none));
    return out;
}

#define ack(ID, PSN) respond(ID, AETH_ACK_UNLIMITED, PSN)
#define nak(ID, PSN) respond(ID, AETH_NAK_PSN_SEQ, PSN)

static void
expect_nothing(struct reverse_out out)
{
    ck_assert_msg(!out.send, "unexpected response: syndrome %#x, PSN %u", out.syndrome, out.psn.v);
}

static void
expect(struct reverse_out out, uint8_t syndrome, uint32_t psn)
{
    ck_assert_msg(out.send, "nothing sent, expected syndrome %#x, PSN %u", syndrome, psn);
    ck_assert_uint_eq(out.syndrome, syndrome);
    ck_assert_uint_eq(out.psn.v, psn);
}

#define expect_ack(OUT, PSN) expect(OUT, AETH_ACK_UNLIMITED, PSN)
#define expect_nak(OUT, PSN) expect(OUT, AETH_NAK_PSN_SEQ, PSN)

/* NAKs above the minimum. */

/* Proves MT-5.3.2-4. */
START_TEST(literal_is_at_once)
    {
        setup_group(3, (struct reverse_policy){.nak = NAK_LITERAL});
        down(100, 109, 3);
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
        setup_group(2, (struct reverse_policy){.nak = NAK_LITERAL});
        down(100, 109, 2);
        expect_nothing(ack(1, 103));
        expect_nak(nak(2, 102), 102);
        expect_nothing(nak(1, 105));
        ck_assert(reverse_deadline(r) == UINT64_MAX);
    }
END_TEST

START_TEST(literal_holds_rnr_and_fatal)
    {
        setup_group(2, (struct reverse_policy){.nak = NAK_LITERAL});
        down(100, 109, 2);
        expect_nothing(respond(1, AETH_RNR | 5, 104));
        expect_nothing(respond(1, AETH_NAK_REM_ACCESS, 106));
        expect(ack(2, 109), AETH_NAK_REM_ACCESS, 106);
    }
END_TEST

/* What was held goes up when the policy says that nothing is. */
START_TEST(policy_changes)
    {
        setup_group(2, (struct reverse_policy){.nak = NAK_HOLD});
        down(100, 109, 2);
        expect_nothing(nak(1, 104));
        ck_assert_uint_eq(reverse_deadline(r), now + REVERSE_HOLD_USEC);
        reverse_set_policy(r, &(struct reverse_policy){.nak = NAK_LITERAL});
        ck_assert_uint_eq(reverse_deadline(r), 0);
        expect_nak(reverse_branches_remove(r, NULL, 0, now), 100);
    }
END_TEST

START_TEST(solicit_asks_those_behind)
    {
        setup_group(4, (struct reverse_policy){.nak = NAK_SOLICIT});
        down(100, 109, 4);
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
        setup_group(2, (struct reverse_policy){.nak = NAK_SOLICIT});
        down(100, 109, 2);
        expect_nothing(nak(1, 104));
        ck_assert_uint_eq(reverse_deadline(r), now + REVERSE_HOLD_USEC);
        now += REVERSE_HOLD_USEC;
        expect_nak(reverse_timer(r, now), 100);
        ck_assert(!reverse_asks(r, 2));
    }
END_TEST

START_TEST(hold_asks_nobody)
    {
        setup_group(2, (struct reverse_policy){.nak = NAK_HOLD});
        down(100, 109, 2);
        expect_nothing(nak(1, 104));
        ck_assert(!reverse_asks_any(r) && !reverse_asks(r, 2));
    }
END_TEST

/* The filter. */

START_TEST(filter_spares_what_is_confirmed)
    {
        setup_group(2, (struct reverse_policy){.filter = true});
        down(100, 109, 2);
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

        setup_group(2, (struct reverse_policy){.filter = false});
        down(100, 109, 2);
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
        setup_group(2, (struct reverse_policy){.filter = _i});
        down(100, 109, 2);
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
        setup_group(2, (struct reverse_policy){.filter = true});
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
        setup_group(2, (struct reverse_policy){.filter = true});
        down(100, 109, 2);
        expect_nothing(ack(1, 109));
        expect(respond(2, AETH_NAK_REM_ACCESS, 105), AETH_NAK_REM_ACCESS, 105);
        expect(reverse_down(r, psn_make(103), false, now), AETH_NAK_REM_ACCESS, 105);
        expect_nothing(reverse_down(r, psn_make(105), false, now));
    }
END_TEST

/* Losses that nobody reports. */

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
    setup_group(2, (struct reverse_policy){.filter = true, .presume_usec = LEAST_WAIT});
    ask(100, 2);
    now += 60;
    expect_nothing(ack(1, 100));
    expect_ack(ack(2, 100), 100);
    expect_deadline(UINT64_MAX);
}

/* The ACK of a branch, its NAK, or the packet and all behind it got lost: all look alike. */
START_TEST(presumes_what_is_overdue)
    {
        setup_root();
        down(101, 102, 2);
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

/* What was sent again got lost again.  The source would ignore another sequence NAK. */
START_TEST(presumes_lost_again)
    {
        setup_root();
        down(101, 101, 2);
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
        setup_group(1, (struct reverse_policy){.presume_usec = LEAST_WAIT});
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

        setup_group(1, (struct reverse_policy){.presume_usec = timeout / 5});
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

/* From a question to an answer it may take a NAK; what had to wait for a timer is no answer's time. */
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
        setup_group(1, (struct reverse_policy){.filter = true});
        ask(100, 1);
        expect_deadline(UINT64_MAX);
    }
END_TEST

/* Cost. */

struct cost {
    uint64_t most; /* branches that one event looked at. */
    uint64_t before;
};

static void
begin(struct cost *c)
{
    c->before = reverse_n_visits;
}

static void
end(struct cost *c)
{
    uint64_t n = reverse_n_visits - c->before;
    c->most = n > c->most ? n : c->most;
}

static uint32_t
pick(uint64_t *random, uint32_t limit)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ((*random >> 33) * limit >> 31);
}

static void
costly_copies(struct cost *c, uint32_t n, uint32_t q)
{
    begin(c);
    reverse_down(r, psn_make(q), q % 8 == 0, now);
    end(c);
    for (uint32_t id = 1; id <= n; id++) {
        begin(c);
        if (!reverse_filters(r, id, psn_make(q))) {
            reverse_asks(r, id);
            reverse_copied(r, id, psn_make(q), true);
        }
        reverse_is_pruned(r, id);
        end(c);
    }
}

static void
costly_responses(struct cost *c, uint32_t n, uint32_t h, uint64_t *random)
{
    static const uint8_t syndromes[] = {
        AETH_ACK_UNLIMITED, AETH_ACK_UNLIMITED, AETH_ACK_UNLIMITED,
        AETH_NAK_PSN_SEQ,   AETH_RNR | 7,       AETH_NAK_REM_OP,
    };

    for (uint32_t i = 0; i < 2 * n; i++) {
        /* One after the other, then whoever it may be, some fatally. */
        uint32_t id = i < n ? i + 1 : 1 + pick(random, n);
        uint32_t kind = i < n ? 0 : pick(random, pick(random, 50) ? 5 : 6);
        uint32_t psn = i < n ? h - 3 : h - 1 - pick(random, 8);
        enum drop_reason why;

        begin(c);
        reverse_response(r, id, psn_make(psn), syndromes[kind], 0, now, &why);
        end(c);
        now += pick(random, 100);
        begin(c);
        if (reverse_deadline(r) <= now) {
            reverse_timer(r, now);
        }
        end(c);
    }
}

/* Each event, and each copy, looks at no more branches than some times log2 n, whatever happens and
 * however many there are: events are as many as branches, so anything linear would be their square. */
START_TEST(cost_grows_with_log_n)
    {
        static const uint32_t sizes[] = {10, 100, 1000, 4000};
        const struct reverse_policy policy = {
            .nak = (enum reverse_nak)(_i % 3),
            .filter = _i / 3 % 2,
            .prune = _i / 6,
            .presume_usec = LEAST_WAIT,
        };

        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            uint32_t n = sizes[k], log2_n = 32 - (uint32_t) __builtin_clz(n);
            uint64_t random = k;
            struct cost c = {0};

            setup_group(n, policy);
            for (uint32_t q = START; q < START + 24; q += 8) {
                for (uint32_t i = 0; i < 8; i++) {
                    costly_copies(&c, n, q + i);
                }
                costly_responses(&c, n, q + 8, &random);
                for (uint32_t i = 4; i < 8; i++) {
                    costly_copies(&c, n, q + i);
                }
            }
            ck_assert_uint_gt(c.most, 0);
            ck_assert_msg(c.most <= 6 * log2_n, "%u branches: %u looked at", n, (unsigned) c.most);
            teardown();
        }
    }
END_TEST

/* Branches that share copies are not looked at for a PSN that comes next, and all of them once when one is
 * sent again or when a NAK is held that they are to be asked for. */
START_TEST(cost_of_shared_copies)
    {
        enum { N = 1000 };
        struct cost c = {0};

        setup_group(N, (struct reverse_policy){.nak = NAK_SOLICIT, .liveness_usec = 32000});
        for (uint32_t id = 1; id <= N; id++) {
            reverse_share(r, id, true);
        }
        for (uint32_t q = 100; q < 200; q++) {
            begin(&c);
            reverse_down(r, psn_make(q), q % 8 == 0, now);
            ck_assert(!reverse_asks_shared(r));
            reverse_copied_shared(r, psn_make(q), true);
            end(&c);
        }
        ck_assert_uint_eq(c.most, 0);

        nak(N, 150);
        reverse_down(r, psn_make(200), false, now);
        ck_assert(reverse_asks_shared(r));
        reverse_copied_shared(r, psn_make(200), true);
        begin(&c);
        reverse_down(r, psn_make(201), false, now);
        ck_assert(!reverse_asks_shared(r));
        reverse_copied_shared(r, psn_make(201), true);
        end(&c);
        ck_assert_uint_eq(c.most, 0);

        begin(&c);
        reverse_down(r, psn_make(150), false, now);
        reverse_copied_shared(r, psn_make(150), true);
        end(&c);
        ck_assert_uint_ge(c.most, N);
        ck_assert_uint_le(c.most, 2 * N);
    }
END_TEST

/* A tick of the liveness time looks at each branch once, and takes out many at a time. */
START_TEST(cost_of_a_tick)
    {
        enum { N = 1000 };

        setup_group(N, (struct reverse_policy){.prune = true, .liveness_usec = 32000});
        down(100, 100, N);
        ack(N, 100);
        for (int i = 0; i < 40; i++) {
            uint64_t before = reverse_n_visits;
            struct reverse_info info;

            now += 1000;
            reverse_timer(r, now);
            reverse_get_info(r, &info);
            ck_assert_uint_le(reverse_n_visits - before, info.n_lost ? 50 * N : 2 * N);
            for (uint32_t id = 1; id < N; id++) {
                reverse_copied(r, id, psn_make(100), true);
            }
        }
        struct reverse_info info;
        reverse_get_info(r, &info);
        ck_assert_uint_eq(info.n_lost, N - 1);
        ck_assert_uint_eq(info.f.v, 101);
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
    tc = tcase_create("presumed");
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
    tc = tcase_create("cost");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, cost_grows_with_log_n, 0, 12);
    tcase_add_test(tc, cost_of_shared_copies);
    tcase_add_test(tc, cost_of_a_tick);
    suite_add_tcase(s, tc);
    return s;
}
