/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/node-egress.c: what a node sends from a port with a rate.
 */
#include "lib/node-egress.h"

#include <check.h>
#include <string.h>

#include "lib/ecn.h"
#include "lib/roce.h"
#include "swedge/swedge.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/suites.h"

#define RATE 1000000 /* bit/s. */

/* A port that packets come from and one that they leave by, with an address behind it. */
static struct fixture *f;
static uint16_t from, to;

static struct port_config *
port(uint16_t number)
{
    for (size_t i = 0; i < f->config.n_ports; i++) {
        if (f->config.ports[i].number == number) {
            return &f->config.ports[i];
        }
    }
    ck_abort();
}

static void
limit(struct impair_params tx)
{
    port(to)->tx = tx;
    fixture_configure(f);
}

static struct impair_params
red(uint32_t kmax)
{
    return (struct impair_params){.rate = RATE, .queue = 100, .kmax = kmax, .pmax = EGRESS_PPM};
}

/* A plain RoCE packet to the first receiver, or, to an agent's node, to its host.  'tc' is its
 * traffic class. */
static void
feed(uint8_t opcode, uint8_t tc, uint32_t psn)
{
    struct in6_addr receiver = star_receiver(0);
    struct roce_spec spec = {.src = from == UPLINK ? &receiver : &star_source,
                             .dst = from == UPLINK ? &star_source : &receiver,
                             .dest_qp = 7,
                             .opcode = opcode,
                             .psn = psn,
                             .payload_len =
                                 roce_opcode_info(opcode)->flags & ROCE_F_PAYLOAD ? 64 : 16};
    uint8_t bytes[PACKET_ROOM];
    size_t len = roce_build(bytes, &spec);

    ip6_set_vtf((void *) bytes, tc, 0);
    fixture_input_more(f, from, bytes, len);
}

/* An edge: from the fabric to a receiver. */
static void
setup_edge(void)
{
    f = fixture_create(&swedge_class, 2);
    from = 1;
    to = star_port(0);
    feed(RC_SEND_ONLY, ECN_ECT0, 0); /* finds the neighbour. */
    ck_assert_uint_eq(f->n_frames, 1);
    f->n_frames = 0;
}

/* A source agent: from the fabric to its host. */
static void
setup_agent(void)
{
    f = agent_create(2);
    from = UPLINK;
    to = HOST_PORT;
    feed(RC_SEND_ONLY, ECN_ECT0, 0);
    ck_assert_uint_eq(f->n_frames, 1);
    f->n_frames = 0;
}

static void
teardown(void)
{
    fixture_destroy(f);
}

/* Lets everything leave; frames are kept in order. */
static void
drain(void)
{
    struct egress_stats s;

    while (f->class->egress(f->node, to, &s) && s.depth) {
        f->now = f->class->deadline(f->node);
        f->class->timer(f->node, f->now);
        fixture_settle(f);
    }
}

static struct egress_stats
stats(void)
{
    struct egress_stats s;

    ck_assert(f->class->egress(f->node, to, &s));
    return s;
}

static const struct ip6_hdr_wire *
ip_at(size_t i, const struct parsed_ip6 *at)
{
    return (const void *) (f->frames[i].bytes + at->ofs);
}

static uint8_t
outer_ecn(size_t i)
{
    return ip6_tc(ip_at(i, &f->frames[i].h.ip)) & ECN_MASK;
}

static uint32_t
psn_of(size_t i)
{
    return be24_get(
        ((const struct bth *) (const void *) (f->frames[i].bytes + f->frames[i].h.bth_ofs))->psn);
}

START_TEST(without_rate_nothing_waits)
    {
        struct egress_stats s;

        feed(RC_SEND_ONLY, ECN_ECT0, 1);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert(!f->class->egress(f->node, to, &s));
        ck_assert(!f->class->egress(f->node, 4095, &s));
    }
END_TEST

START_TEST(rate_delays)
    {
        uint64_t start = f->now;

        limit((struct impair_params){.rate = RATE, .queue = 10});
        for (uint32_t i = 0; i < 3; i++) {
            feed(RC_SEND_ONLY, ECN_ECT0, i);
        }
        ck_assert_uint_eq(f->n_frames, 0);
        struct egress_stats s = stats();
        ck_assert_uint_eq(s.depth, 3);
        uint64_t each = s.depth_bytes / 3 * 8;
        for (uint32_t i = 0; i < 3; i++) {
            ck_assert_uint_eq(f->class->deadline(f->node), start + (i + 1) * each);
            fixture_timer(f);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(psn_of(0), i);
            ck_assert_uint_eq(f->frames[0].port, to);
            ck_assert_uint_eq(f->frames[0].len * 8, each);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        ck_assert_uint_eq(stats().n_sent, 3);
    }
END_TEST

START_TEST(limit_drops)
    {
        limit((struct impair_params){.rate = RATE, .queue = 4});
        for (uint32_t i = 0; i < 7; i++) {
            feed(RC_SEND_ONLY, ECN_NOT_ECT, i);
        }
        drain();
        ck_assert_uint_eq(f->n_frames, 4);
        ck_assert_uint_eq(fixture_drops(f, DROP_egress_full), 3);
        ck_assert_uint_eq(fixture_total_drops(f), 3);
    }
END_TEST

/* ECT is marked, Not-ECT dropped; responses, CNPs and what is no RoCE pass. */
START_TEST(red_by_kind)
    {
        static const struct {
            uint8_t opcode, tc;
            uint8_t ecn; /* that it leaves with. */
            bool dropped;
        } rows[] = {
            {RC_SEND_ONLY, ECN_ECT0, ECN_CE, false},
            {RC_SEND_ONLY, 0xb8 | ECN_ECT1, ECN_CE, false},
            {RC_SEND_ONLY, ECN_CE, ECN_CE, false},
            {RC_SEND_ONLY, ECN_NOT_ECT, 0, true},
            {RC_ACK, ECN_NOT_ECT, ECN_NOT_ECT, false},
            {RC_ACK, ECN_ECT0, ECN_ECT0, false},
            {RC_READ_RESP_ONLY, ECN_NOT_ECT, ECN_NOT_ECT, false},
            {ROCE_CNP, 48 << 2, ECN_NOT_ECT, false},
            {ROCE_CNP, ECN_ECT0, ECN_ECT0, false},
        };

        limit(red(1));
        feed(RC_SEND_ONLY, ECN_ECT0, 0);
        feed(RC_SEND_ONLY, ECN_ECT0, 1);
        feed(rows[_i].opcode, rows[_i].tc, 2);
        ck_assert_uint_eq(fixture_drops(f, DROP_egress_red), rows[_i].dropped);
        ck_assert_uint_eq(fixture_total_drops(f), rows[_i].dropped);
        feed(RC_SEND_ONLY, ECN_ECT0, 3);
        feed(RC_SEND_ONLY, ECN_ECT0, 4);
        drain();
        ck_assert_uint_eq(f->n_frames, 5 - rows[_i].dropped);
        if (!rows[_i].dropped) {
            ck_assert_uint_eq(psn_of(2), 2);
            ck_assert_uint_eq(outer_ecn(2), rows[_i].ecn);
            ck_assert_uint_eq(ip6_tc(ip_at(2, &f->frames[2].h.ip)) >> 2, rows[_i].tc >> 2);
        }
        ck_assert_uint_eq(outer_ecn(f->n_frames - 1), ECN_ECT0); /* none is behind the last. */
    }
END_TEST

START_TEST(other_rate_keeps_frames)
    {
        limit((struct impair_params){.rate = RATE, .queue = 10});
        for (uint32_t i = 0; i < 5; i++) {
            feed(RC_SEND_ONLY, ECN_ECT0, i);
        }
        limit((struct impair_params){.rate = 10 * RATE, .queue = 10});
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(stats().depth, 5);
        /* No rate any more: all leave at once, in order, and nothing waits again. */
        limit((struct impair_params){.rate = 0});
        feed(RC_SEND_ONLY, ECN_ECT0, 5);
        ck_assert_uint_eq(f->n_frames, 6);
        for (uint32_t i = 0; i < 6; i++) {
            ck_assert_uint_eq(psn_of(i), i);
        }
    }
END_TEST

/* Frames of a port that goes, or becomes another, are lost; the fixture counts its packets. */
START_TEST(port_that_goes)
    {
        struct egress_stats s;

        limit((struct impair_params){.rate = RATE, .queue = 10});
        for (uint32_t i = 0; i < 5; i++) {
            feed(RC_SEND_ONLY, ECN_ECT0, i);
        }
        if (_i) {
            strcpy(port(to)->name, "other");
        } else {
            *port(to) = f->config.ports[--f->config.n_ports];
        }
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert(f->class->egress(f->node, to, &s) == _i);
        ck_assert(!_i || !s.n_frames);
    }
END_TEST

/* A listener hears at once what is sent. */
static void
on_line(void *n, const char *line)
{
    *(int *) n += !strncmp(line, "queue of port ", 14);
}

START_TEST(explained_frames_do_not_wait)
    {
        int n = 0;
        struct tracer tracer = {.line = on_line, .aux = &n};

        limit((struct impair_params){.rate = RATE, .queue = 10});
        f->class->set_tracer(f->node, &tracer);
        feed(RC_SEND_ONLY, ECN_ECT0, 1);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_int_eq(n, 1);
    }
END_TEST

/* What a source agent sends down is marked in its outer header only. */
START_TEST(tunnelled_packets)
    {
        f = agent_create(2);
        from = HOST_PORT;
        to = UPLINK;
        agent_write(f, START); /* finds the neighbour. */
        ck_assert_uint_eq(f->n_frames, 1);
        limit(red(1));
        for (uint32_t i = 1; i <= 4; i++) {
            agent_write(f, START + i);
        }
        f->n_frames = 0;
        drain();
        ck_assert_uint_eq(f->n_frames, 4);
        for (size_t i = 0; i < 4; i++) {
            const struct parsed *h = &f->frames[i].h;

            ck_assert_uint_ne(h->inner.ofs, 0);
            ck_assert_uint_eq(outer_ecn(i), i < 3 ? ECN_CE : ECN_ECT0);
            ck_assert_uint_eq(ip6_tc(ip_at(i, &h->inner)) & ECN_MASK, ECN_ECT0);
            ck_assert(frame_icrc_ok(&f->frames[i]));
        }
        ck_assert_uint_eq(stats().n_marked, 3);
    }
END_TEST

static void
add_tests(TCase *tc)
{
    tcase_add_test(tc, without_rate_nothing_waits);
    tcase_add_test(tc, rate_delays);
    tcase_add_test(tc, limit_drops);
    tcase_add_loop_test(tc, red_by_kind, 0, 9);
    tcase_add_test(tc, other_rate_keeps_frames);
    tcase_add_loop_test(tc, port_that_goes, 0, 2);
    tcase_add_test(tc, explained_frames_do_not_wait);
}

Suite *
node_egress_suite(void)
{
    Suite *s = suite_create("node_egress");
    TCase *edge = tcase_create("edge");
    TCase *agent = tcase_create("agent");
    TCase *down = tcase_create("down");

    tcase_add_checked_fixture(edge, setup_edge, teardown);
    add_tests(edge);
    suite_add_tcase(s, edge);
    tcase_add_checked_fixture(agent, setup_agent, teardown);
    add_tests(agent);
    suite_add_tcase(s, agent);
    tcase_add_checked_fixture(down, NULL, teardown);
    tcase_add_test(down, tunnelled_packets);
    suite_add_tcase(s, down);
    return s;
}
