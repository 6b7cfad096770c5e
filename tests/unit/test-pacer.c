/* SPDX-License-Identifier: Apache-2.0
 *
 * Pacing: spacing, bursts, and the order in a queue when its sender goes back.
 */
#include "lib/pacer.h"

#include <string.h>

#include "lib/roce-packet.h"
#include "lib/roce.h"
#include "tests/unit/suites.h"

#define FRAME   1102u
#define MBIT    UINT64_C(1000000)
#define SEC     UINT64_C(1000000)
#define T0      (100 * SEC)
#define N_POOL  400
#define N_FLOWS 3

static struct packet_pool *pool;
static struct pacer pacer;
static struct pacer_flow flows[N_FLOWS];

static void
setup(void)
{
    pool = packet_pool_create(N_POOL);
    pacer_init(&pacer);
    memset(flows, 0, sizeof flows);
    for (size_t i = 0; i < N_FLOWS; i++) {
        flows[i].owner = &flows[i];
    }
}

static void
teardown(void)
{
    for (size_t i = 0; i < N_FLOWS; i++) {
        pacer_remove(&pacer, &flows[i]);
    }
    ck_assert_uint_eq(pacer.n_waiting, 0);
    ck_assert_uint_eq(pacer_deadline(&pacer), UINT64_MAX);
    ck_assert_uint_eq(packet_pool_n_free(pool), N_POOL);
    pacer_uninit(&pacer);
    packet_pool_destroy(pool);
}

/* The AckReq bit tells a packet that comes again from the first one. */
static bool
put(struct pacer_flow *flow, uint8_t opcode, uint32_t psn, bool again)
{
    struct in6_addr addr = {{{0}}};
    struct packet *p =
        roce_packet_begin(pool, FRAME - 14, &addr, &addr, 0, opcode, 1, psn_make(psn));

    ck_assert_ptr_nonnull(p);
    struct bth *bth = (struct bth *) (p->data + IP6_HDR_LEN + sizeof(struct udp_hdr));
    bth->ack_req = again ? BTH_ACK_REQ : 0;
    return pacer_put(&pacer, flow, p, FRAME, T0);
}

static void
put_range(struct pacer_flow *flow, uint32_t first, uint32_t last)
{
    for (uint32_t psn = first; psn <= last; psn++) {
        ck_assert(put(flow, RC_SEND_ONLY, psn, false));
    }
}

/* The next packet of any flow, and whether it came again. */
static psn_t
get(uint64_t now, struct pacer_flow **flow, bool *again)
{
    struct packet *p = pacer_get(&pacer, now, flow);

    ck_assert_ptr_nonnull(p);
    struct bth *bth = (struct bth *) (p->data + IP6_HDR_LEN + sizeof(struct udp_hdr));
    psn_t psn = bth_psn(bth);
    *again = bth->ack_req & BTH_ACK_REQ;
    packet_put(p);
    return psn;
}

static unsigned
get_all(uint64_t now)
{
    struct pacer_flow *flow;
    struct packet *p;
    unsigned n = 0;

    while ((p = pacer_get(&pacer, now, &flow)) != NULL) {
        packet_put(p);
        n++;
    }
    return n;
}

/* After any number of packets the time is exact, at rates that nanoseconds do not divide. */
START_TEST(spacing_is_exact)
    {
        static const uint64_t rates[] = {MBIT, 7 * MBIT + 1, 999 * MBIT, 33333 * MBIT};
        uint64_t rate = rates[_i], n = 100000, now = T0;

        pacer_set_rate(&pacer, &flows[0], rate, now);
        for (uint64_t i = 0; i < n; i++) {
            put(&flows[0], RC_SEND_ONLY, (uint32_t) i, false);
            now = pacer_deadline(&pacer) > now ? pacer_deadline(&pacer) : now;
            ck_assert_uint_eq(get_all(now), 1);
        }
        uint64_t expected = T0 * 1000 + (uint64_t) ((double) n * FRAME * 8e9 / (double) rate);
        ck_assert_uint_ge(flows[0].next, expected - 1);
        ck_assert_uint_le(flows[0].next, expected + 1);
        ck_assert_uint_eq(flows[0].max_n, 1);
    }
END_TEST

/* What passes without waiting counts as well. */
START_TEST(sent_past_the_queue)
    {
        ck_assert(!pacer_must_wait(&flows[0], T0));
        pacer_sent(&flows[0], FRAME, T0); /* not limited: nothing is counted. */
        pacer_set_rate(&pacer, &flows[0], 8 * FRAME * 100, T0);
        ck_assert(!pacer_must_wait(&flows[0], T0));
        pacer_sent(&flows[0], FRAME, T0);
        ck_assert(pacer_must_wait(&flows[0], T0 + 9999));
        ck_assert(!pacer_must_wait(&flows[0], T0 + 10000));
        put_range(&flows[0], 1, 1);
        ck_assert_uint_eq(pacer_deadline(&pacer), T0 + 10000);
        ck_assert(pacer_must_wait(&flows[0], T0 + 10000));
    }
END_TEST

/* Late by any time: PACER_LATE_MAX packets, or what PACER_BURST_USEC are, and the one that is due. */
START_TEST(late_wake_up)
    {
        static const struct {
            uint64_t rate; /* packets a second. */
            uint64_t late; /* microseconds. */
            unsigned n;    /* that leave at once. */
        } cases[] = {{100, 0, 1},       {100, 9999, 1},   {100, 10000, 2},   {100, 20000, 3},
                     {100, SEC, 16},    {100000, 50, 6},  {100000, 100, 11}, {100000, 5000, 16},
                     {100000, SEC, 16}, {500000, SEC, 51}};

        pacer_set_rate(&pacer, &flows[0], 8 * FRAME * cases[_i].rate, T0);
        put_range(&flows[0], 1, 100);
        ck_assert_uint_eq(get_all(T0 + cases[_i].late), cases[_i].n);
        ck_assert_uint_gt(pacer_deadline(&pacer), T0 + cases[_i].late);
    }
END_TEST

#define B_FIRST 0xfffffcu

/* The sender goes back: what leaves is what it sends last, each PSN once, none behind a later
 * one. */
START_TEST(sender_goes_back)
    {
        static const struct {
            uint32_t first, last; /* that wait, */
            uint32_t back, until; /* sent again; */
            uint32_t n_replaced;  /* then these leave: first..until or back..until. */
        } cases[] = {
            {100, 110, 105, 110, 6}, /* to one that waits: its place is kept. */
            {100, 110, 100, 110, 11},
            {100, 110, 110, 110, 1},
            {100, 110, 95, 110, 11}, /* to one that has left. */
            {100, 110, 95, 95, 11},
            {100, 110, 111, 112, 0},
            {100, 110, 120, 121, 0},
            {B_FIRST, 0x1000005, 0xfffffe, 0x1000005, 8}, /* where PSNs wrap. */
            {0x1000002, 0x1000005, 0xfffffe, 0x1000005, 4},
        };
        uint32_t first = cases[_i].first, back = cases[_i].back;
        uint32_t expected = back < first ? back : first;

        pacer_set_rate(&pacer, &flows[0], MBIT, T0);
        put_range(&flows[0], first, cases[_i].last);
        for (uint32_t psn = back; psn <= cases[_i].until; psn++) {
            ck_assert(put(&flows[0], RC_SEND_ONLY, psn, true));
        }
        ck_assert_uint_eq(flows[0].n_replaced, cases[_i].n_replaced);
        ck_assert_uint_eq(pacer.n_waiting, flows[0].n);
        ck_assert_uint_eq(packet_pool_n_free(pool), N_POOL - flows[0].n);
        while (flows[0].n) {
            struct pacer_flow *flow;
            bool again;
            psn_t psn = get(pacer_deadline(&pacer), &flow, &again);

            if (expected == cases[_i].last + 1 && back > expected) {
                expected = back; /* a gap of the sender's. */
            }
            ck_assert_uint_eq(psn.v, psn_make(expected).v);
            ck_assert(again == (expected >= back));
            expected++;
        }
        ck_assert_uint_eq(expected, cases[_i].until + 1);
    }
END_TEST

/* The place in the queue is also a time: going back makes nothing earlier or later. */
START_TEST(going_back_keeps_the_time)
    {
        pacer_set_rate(&pacer, &flows[0], MBIT, T0);
        put_range(&flows[0], 1, 10);
        get_all(T0);
        uint64_t when = pacer_deadline(&pacer);
        for (uint32_t i = 0; i < 100; i++) {
            put(&flows[0], RC_SEND_ONLY, 1 + i % 10, true);
            ck_assert_uint_eq(pacer_deadline(&pacer), when);
        }
        ck_assert_uint_eq(flows[0].n, 10);
    }
END_TEST

/* UD and UC, and what is no request: first in, first out, whatever their PSNs. */
START_TEST(others_do_not_come_again)
    {
        static const uint8_t opcodes[] = {UD_SEND_ONLY, 0x24 /* UC SEND only */, RC_ACK, 0xff};
        static const uint32_t psns[] = {5, 1000, 5, 4, 1001, 1001};
        struct pacer_flow *flow;
        bool again;

        pacer_set_rate(&pacer, &flows[0], MBIT, T0);
        for (size_t i = 0; i < 6; i++) {
            ck_assert(put(&flows[0], opcodes[_i], psns[i], false));
        }
        for (size_t i = 0; i < 6; i++) {
            ck_assert_uint_eq(get(pacer_deadline(&pacer), &flow, &again).v, psns[i]);
        }
    }
END_TEST

START_TEST(queue_is_bounded)
    {
        pacer_set_rate(&pacer, &flows[0], MBIT, T0);
        put_range(&flows[0], 1, PACER_QUEUE_MAX);
        ck_assert(!put(&flows[0], UD_SEND_ONLY, PACER_QUEUE_MAX + 1, false));
        ck_assert_uint_eq(flows[0].n_full, 1);
        ck_assert_uint_eq(flows[0].n, PACER_QUEUE_MAX);
        ck_assert(put(&flows[0], RC_SEND_ONLY, PACER_QUEUE_MAX, true)); /* replaces. */
        ck_assert_uint_eq(flows[0].n_replaced, 1);
        /* A requester that sends this one has the first one confirmed. */
        ck_assert(put(&flows[0], RC_SEND_ONLY, PACER_QUEUE_MAX + 1, false));
        ck_assert_uint_eq(flows[0].n_replaced, 2);
        ck_assert_uint_eq(flows[0].max_n, PACER_QUEUE_MAX);
        struct pacer_flow *flow;
        bool again;
        ck_assert_uint_eq(get(T0, &flow, &again).v, 2);
        ck_assert(put(&flows[0], RC_SEND_ONLY, PACER_QUEUE_MAX + 2, false));
        ck_assert_uint_eq(packet_pool_n_free(pool), N_POOL - PACER_QUEUE_MAX);
    }
END_TEST

/* Each flow at its own rate; a slow one holds nobody up. */
START_TEST(flows_are_independent)
    {
        static const uint64_t rates[N_FLOWS] = {10, 1000, 3000}; /* packets a second. */
        unsigned n[N_FLOWS] = {0};

        for (size_t i = 0; i < N_FLOWS; i++) {
            pacer_set_rate(&pacer, &flows[i], 8 * FRAME * rates[i], T0);
            put_range(&flows[i], 1, 100);
        }
        for (uint64_t now = T0; now < T0 + SEC; now = pacer_deadline(&pacer)) {
            struct pacer_flow *flow;
            bool again;
            psn_t psn = get(now, &flow, &again);
            size_t i = (size_t) (flow - flows);

            ck_assert_ptr_eq(flow->owner, flow);
            n[i]++;
            ck_assert_uint_eq(psn.v, psn_make(n[i]).v);
            put(flow, RC_SEND_ONLY, 100 + n[i], false);
        }
        for (size_t i = 0; i < N_FLOWS; i++) {
            ck_assert_uint_eq(n[i], rates[i]);
        }
    }
END_TEST

/* A flow that is limited no more leaves at once, in order; a faster one is not early. */
START_TEST(rate_changes)
    {
        pacer_set_rate(&pacer, &flows[0], 8 * FRAME, T0);
        put_range(&flows[0], 1, 20);
        ck_assert_uint_eq(get_all(T0), 1);
        pacer_set_rate(&pacer, &flows[0], 8 * FRAME * 10, T0);
        ck_assert_uint_eq(get_all(T0 + SEC - 1), 0);
        ck_assert_uint_eq(get_all(T0 + SEC), 1);
        ck_assert_uint_eq(pacer_deadline(&pacer), T0 + SEC + SEC / 10);
        pacer_set_rate(&pacer, &flows[0], 0, T0 + SEC);
        ck_assert(pacer_must_wait(&flows[0], T0 + SEC)); /* behind what waits. */
        ck_assert_uint_eq(get_all(T0 + SEC), 18);
        ck_assert(!pacer_must_wait(&flows[0], T0 + SEC));
        ck_assert_uint_eq(pacer_deadline(&pacer), UINT64_MAX);
    }
END_TEST

/* What comes for a flow that is stopped waits, limited or not, and leaves in order when it goes on;
 * at its rate if it has one. */
START_TEST(stops)
    {
        static const uint64_t rates[] = {0, 8 * FRAME};

        for (size_t i = 0; i < 2; i++) {
            pacer_set_rate(&pacer, &flows[i], rates[i], T0);
            pacer_stop(&pacer, &flows[i], true);
            ck_assert(pacer_must_wait(&flows[i], T0));
            put_range(&flows[i], 1, 5);
        }
        ck_assert_uint_eq(pacer_deadline(&pacer), UINT64_MAX);
        ck_assert_uint_eq(get_all(T0), 0);
        pacer_stop(&pacer, &flows[0], false);
        ck_assert_uint_eq(get_all(T0), 5);
        pacer_stop(&pacer, &flows[1], false);
        ck_assert_uint_eq(get_all(T0), 1);
        pacer_stop(&pacer, &flows[1], true);
        ck_assert_uint_eq(get_all(T0 + SEC), 0);
        pacer_stop(&pacer, &flows[1], false);
        ck_assert_uint_eq(get_all(T0 + SEC), 1);
    }
END_TEST

START_TEST(remove_frees)
    {
        for (size_t i = 0; i < 2; i++) {
            pacer_set_rate(&pacer, &flows[i], MBIT, T0);
            put_range(&flows[i], 1, 50);
        }
        pacer_remove(&pacer, &flows[0]);
        ck_assert_uint_eq(packet_pool_n_free(pool), N_POOL - 50);
        ck_assert_uint_eq(pacer.n_waiting, 50);
        ck_assert_uint_eq(flows[0].rate, 0);
        ck_assert_ptr_eq(flows[0].owner, &flows[0]);
        ck_assert_uint_eq(get_all(T0 + 100 * SEC), PACER_LATE_MAX);
    }
END_TEST

Suite *
pacer_suite(void)
{
    Suite *s = suite_create("pacer");
    TCase *tc = tcase_create("pacer");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, spacing_is_exact, 0, 4);
    tcase_add_test(tc, sent_past_the_queue);
    tcase_add_loop_test(tc, late_wake_up, 0, 10);
    tcase_add_loop_test(tc, sender_goes_back, 0, 9);
    tcase_add_test(tc, going_back_keeps_the_time);
    tcase_add_loop_test(tc, others_do_not_come_again, 0, 4);
    tcase_add_test(tc, queue_is_bounded);
    tcase_add_test(tc, flows_are_independent);
    tcase_add_test(tc, rate_changes);
    tcase_add_test(tc, stops);
    tcase_add_test(tc, remove_frees);
    suite_add_tcase(s, tc);
    return s;
}
