/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of messages, against a list of all packets that there were.
 */
#include "lib/messages.h"

#include <inttypes.h>

#include "lib/roce.h"
#include "tests/unit/suites.h"

#define N_SOURCE 20000

/* What a source sends: packet i of the epoch is of message number[i]. */
static struct {
    uint64_t number[N_SOURCE];
    bool begins[N_SOURCE], ends[N_SOURCE];
} source;

static uint64_t random_state;

static uint32_t
below(uint32_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t) (random_state >> 33) % limit;
}

/* Messages of up to 'longest' packets. */
static void
make_source(uint64_t seed, uint32_t longest)
{
    uint64_t number = 0;

    random_state = seed;
    for (uint32_t i = 0; i < N_SOURCE; number++) {
        uint32_t len = 1 + below(longest);

        for (uint32_t j = 0; j < len && i < N_SOURCE; j++, i++) {
            source.number[i] = number;
            source.begins[i] = j == 0;
            source.ends[i] = j == len - 1;
        }
    }
}

static void
note(struct messages *m, psn_t psn, bool begins, bool ends)
{
    messages_note(m, psn,
                  (uint16_t) (ROCE_F_MULTICAST | ROCE_F_REQUEST | (begins ? ROCE_F_START : 0)
                              | (ends ? ROCE_F_END : 0)));
}

static void
send_packet(struct messages *m, psn_t start, uint32_t i)
{
    note(m, psn_add(start, (int32_t) i), source.begins[i], source.ends[i]);
}

/* (libcheck writes to a file for every ck_assert(), even one that holds, and these are many.) */
static void
expect(const struct messages *m, psn_t psn, uint64_t want)
{
    uint64_t number = UINT64_MAX;
    enum messages_answer answer = messages_find(m, psn, &number);

    if (answer != MESSAGE_KNOWN || number != want) {
        ck_abort_msg("PSN %06x: answer %d, message %" PRIu64 ", should be %" PRIu64, psn.v, answer,
                     number, want);
    }
}

static void
expect_no(const struct messages *m, psn_t psn, enum messages_answer want)
{
    uint64_t number = UINT64_MAX;

    ck_assert_int_eq(messages_find(m, psn, &number), want);
    ck_assert_uint_eq(number, UINT64_MAX);
}

/* All of the first n packets are known, and what comes next. */
static void
expect_all(const struct messages *m, psn_t start, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        expect(m, psn_add(start, (int32_t) i), source.number[i]);
    }
    expect(m, psn_add(start, (int32_t) n), n ? source.number[n - 1] + source.ends[n - 1] : 0);
    expect_no(m, psn_add(start, (int32_t) n + 1), MESSAGE_NOT_YET);
    expect_no(m, psn_add(start, -1), MESSAGE_UNKNOWN);
}

START_TEST(in_order)
    {
        static const uint32_t starts[] = {0, 1, 63, 0x7fffff, PSN_MASK - 100, PSN_MASK};
        psn_t start = psn_make(starts[_i]);
        struct messages *m = messages_create(start, true);

        make_source(1, 5);
        for (uint32_t n = 0; n < 300; n++) {
            expect_all(m, start, n);
            send_packet(m, start, n);
        }
        messages_destroy(m);
    }
END_TEST

/* Each packet may be lost, overtaken, sent again, alone or with all behind it, as long as the
 * source has not got so far that it would no longer repeat it. */
START_TEST(any_order)
    {
        psn_t start = psn_make(_i % 2 ? PSN_MASK - 5000 : 17);
        struct messages *m = messages_create(start, true);
        static bool seen[N_SOURCE];
        uint32_t n_seen = 0, to = 0; /* all below; the highest sent, + 1. */

        make_source((uint64_t) _i, 1 + (uint32_t) _i % 7);
        for (uint32_t i = 0; i < N_SOURCE; i++) {
            seen[i] = false;
        }
        while (n_seen < N_SOURCE - 1) {
            uint32_t from = n_seen < 100 ? 0 : n_seen - 100;
            uint32_t i = below(4) ? to : below(2) ? n_seen : from + below(to - from + 1);

            if (i >= N_SOURCE || i >= n_seen + MESSAGES_AHEAD) {
                i = n_seen;
            }
            to = i >= to ? i + 1 : to;
            if (below(10)) {
                send_packet(m, start, i);
                seen[i] = true;
            }
            while (n_seen < N_SOURCE && seen[n_seen]) {
                n_seen++;
            }
            i = from + below(to - from + 1);
            if (i < n_seen) {
                expect(m, psn_add(start, (int32_t) i), source.number[i]);
            } else if (i > n_seen) {
                expect_no(m, psn_add(start, (int32_t) i), MESSAGE_NOT_YET);
            }
        }
        expect_all(m, start, n_seen);
        messages_destroy(m);
    }
END_TEST

/* Somewhat more than all PSNs: what is too far back is not known, nor is the last lap's. */
START_TEST(history)
    {
        const psn_t start = psn_make(5);
        struct messages *m = messages_create(start, true);
        const uint32_t n = PSN_MASK + 1 + 2 * MESSAGES_HISTORY + 77;

        for (uint32_t i = 0; i < n; i++) { /* messages of 3 packets. */
            note(m, psn_add(start, (int32_t) i), i % 3 == 0, i % 3 == 2);
        }
        for (uint32_t back = 1; back <= MESSAGES_HISTORY; back += below(100) + 1) {
            expect(m, psn_add(start, (int32_t) (n - back)), (n - back) / 3);
        }
        expect(m, psn_add(start, (int32_t) (n - MESSAGES_HISTORY)), (n - MESSAGES_HISTORY) / 3);
        expect_no(m, psn_add(start, (int32_t) (n - MESSAGES_HISTORY - 1)), MESSAGE_UNKNOWN);
        expect_no(m, psn_add(start, (int32_t) n + MESSAGES_AHEAD - 1), MESSAGE_NOT_YET);
        expect_no(m, psn_add(start, (int32_t) n + MESSAGES_AHEAD), MESSAGE_UNKNOWN);
        messages_destroy(m);
    }
END_TEST

START_TEST(without_start)
    {
        const psn_t start = psn_make(5);
        struct messages *m = messages_create(start, false);

        make_source(3, 4);
        for (uint32_t i = 0; i < 100; i++) {
            expect_no(m, psn_add(start, (int32_t) i), MESSAGE_UNKNOWN);
            send_packet(m, start, i);
        }
        messages_destroy(m);
    }
END_TEST

/* A source that went on without what is missing here: nothing is believed when PSNs come round. */
START_TEST(jump)
    {
        const psn_t start = psn_make(5);
        struct messages *m = messages_create(start, true);

        make_source(3, 1);
        send_packet(m, start, 0);
        note(m, psn_add(start, 1 + MESSAGES_AHEAD), true, true);
        expect(m, start, 0);
        expect_no(m, psn_add(start, 2), MESSAGE_NOT_YET);
        note(m, psn_add(start, 1 << 22), true, true);
        expect(m, start, 0);
        note(m, psn_add(start, 1 + (1 << 22)), true, true);
        expect_no(m, start, MESSAGE_UNKNOWN);
        note(m, psn_add(start, 1), true, true);
        expect_no(m, psn_add(start, 1), MESSAGE_UNKNOWN);
        messages_destroy(m);
    }
END_TEST

/* One packet comes with a wrong opcode, and again as receivers have dropped it: whichever it is and
 * whatever it says, no number is wrong at any time, and all are known in the end. */
START_TEST(damaged)
    {
        const psn_t start = psn_make(PSN_MASK - 20);

        make_source((uint64_t) _i, 4);
        for (uint32_t bad = 0; bad < 60; bad++) {
            for (unsigned kind = 0; kind < 4; kind++) {
                struct messages *m = messages_create(start, true);
                uint64_t number;

                for (uint32_t i = 0; i < bad; i++) {
                    send_packet(m, start, i);
                }
                note(m, psn_add(start, (int32_t) bad), kind & 1, kind & 2);
                for (uint32_t i = bad + 1; i < bad + 10; i++) {
                    send_packet(m, start, i);
                    for (uint32_t j = 0; j < i; j++) {
                        psn_t psn = psn_add(start, (int32_t) j);

                        if (messages_find(m, psn, &number) == MESSAGE_KNOWN) {
                            expect(m, psn, source.number[j]);
                        }
                    }
                }
                for (uint32_t i = bad; i < bad + 100; i++) {
                    send_packet(m, start, i);
                }
                expect_all(m, start, bad + 100);
                messages_destroy(m);
            }
        }
    }
END_TEST

Suite *
messages_suite(void)
{
    Suite *suite = suite_create("messages");
    TCase *tc = tcase_create("core");

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, in_order, 0, 6);
    tcase_add_loop_test(tc, any_order, 0, 40);
    tcase_add_test(tc, history);
    tcase_add_test(tc, without_start);
    tcase_add_test(tc, jump);
    tcase_add_loop_test(tc, damaged, 0, 5);
    return suite;
}
