/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent: Fast CNPs to its host, good ones and all others.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/icrc.h"
#include "lib/ioam.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/suites.h"

#define MBIT UINT64_C(1000000)
#define LINE (8 * MBIT)

static const struct in6_addr other_host = {.s6_addr = {0xfd, 0, 0, 1, [15] = 0x77}};

static struct fixture *
fast_agent(void)
{
    struct fixture *f = agent_create(2);

    agent_congestion(f, LINE);
    fixture_configure(f);
    return f;
}

/* A Fast CNP of the star's edge about the group. */
static struct fast_cnp
about_group(void)
{
    return (struct fast_cnp){
        .node = node_address(STAR_EDGE_ID),
        .sender = star_source,
        .original = star_proxy,
        .dest_qp = STAR_DQPN,
    };
}

static size_t
build(const struct fixture *f, const struct fast_cnp *said, uint8_t *out)
{
    struct packet *p = fast_cnp_build(f->pool, said, 0xc123);
    size_t len = packet_flatten(p, out, PACKET_ROOM);

    packet_put(p);
    return len;
}

static void
feed(struct fixture *f, const struct fast_cnp *said)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len = build(f, said, bytes);

    fixture_input(f, UPLINK, bytes, len);
    ck_assert_uint_eq(f->n_frames, 0);
}

/* A request of the host that is no group's. */
static void
unicast(struct fixture *f, uint8_t opcode, uint32_t dest_qp, uint32_t psn)
{
    struct roce_spec spec = agent_request(opcode, psn);

    spec.dst = &other_host;
    spec.dest_qp = dest_qp;
    agent_from_host(f, &spec);
}

static struct fast_cnp
about_unicast(uint32_t dest_qp)
{
    struct fast_cnp said = about_group();

    said.original = other_host;
    said.dest_qp = dest_qp;
    return said;
}

/* What no flow can have is no entry of the table that was never used. */
START_TEST(about_nothing)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_group();

        said.original = in6addr_any;
        said.dest_qp = 0;
        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_flow), 1);
        ck_assert_uint_eq(srcagent_class.n_flows(f->node), 0);
        fixture_destroy(f);
    }
END_TEST

/* What waits leaves buffers to the rest, however few there are. */
START_TEST(leaves_some_of_a_small_pool)
    {
        struct fixture *f = fast_agent();

        for (uint32_t qp = 9; qp < 12; qp++) {
            struct fast_cnp said = about_unicast(qp);

            unicast(f, RC_WRITE_ONLY, qp, 0);
            feed(f, &said);
            for (uint32_t psn = 1; psn < 100; psn++) {
                unicast(f, RC_WRITE_ONLY, qp, psn);
            }
        }
        ck_assert_uint_gt(packet_pool_n_free(f->pool), packet_pool_size(f->pool) / 16);
        ck_assert_uint_gt(fixture_drops(f, DROP_pacer_full), 0);
        fixture_destroy(f);
    }
END_TEST

/* What waits is not overtaken by the rest of its flow when Fast CNPs are switched off. */
START_TEST(order_when_switched_off)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_unicast(9);

        unicast(f, RC_WRITE_ONLY, 9, 0);
        feed(f, &said);
        for (uint32_t psn = 1; psn < 6; psn++) {
            unicast(f, RC_WRITE_ONLY, 9, psn);
        }
        uint32_t next = 6 - agent_flow(f, &other_host, 9).n_waiting;
        ck_assert_uint_lt(next, 6);
        f->config.congestion.fast_cnp = false;
        fixture_configure(f);
        unicast(f, RC_WRITE_ONLY, 9, 6);
        for (;;) {
            for (size_t k = 0; k < f->n_frames; k++) {
                ck_assert_uint_eq(agent_psn(f, k), next++);
            }
            if (next == 7) {
                break;
            }
            fixture_timer(f);
        }
        ck_assert_uint_eq(packet_pool_n_free(f->pool), packet_pool_size(f->pool));
        fixture_destroy(f);
    }
END_TEST

/* Proves FC-5, FC-7, FC-14, FC-23. */
START_TEST(slows_group_down)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_group();

        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        struct flow_info info = agent_flow(f, &star_proxy, STAR_DQPN);
        ck_assert_uint_eq(info.rate, LINE / 2);
        ck_assert_uint_eq(info.n_fast_cnps, 1);
        ck_assert_uint_eq(info.n_cnps, 0);
        ck_assert_int_eq(info.last_cause, RATE_FAST_CNP);
        ck_assert_mem_eq(&info.last_node, &said.node, 16);
        ck_assert_uint_eq(info.last_depth, 0);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_write(f, START + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_timer(f);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(agent_psn(f, 0), (START + 1) & PSN_MASK);
        fixture_destroy(f);
    }
END_TEST

/* A trace says how deep the queues are; the deepest counts.
 *
 * Proves FC-28. */
START_TEST(slows_down_by_depth)
    {
        /* The second one's queue is emptied faster, and of the last one nothing is known. */
        static const struct queue_rate rates[] = {{7, LINE}, {8, 10 * LINE}};
        static const struct {
            uint32_t node_id, depth;
        } queues[] = {{7, 100}, {8, 30000}, {7, 4000}, {7, UINT32_MAX}, {7, 30}, {9, 100000}};
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_group();
        uint8_t hbh[IOAM_HBH_LEN(6)], trace_len;
        uint8_t ip[IP6_HDR_LEN + sizeof hbh] = {0};

        ip6_build(ip, said.node, star_source, IP6_NH_HOPOPT, sizeof hbh);
        ioam_build(ip + IP6_HDR_LEN, IP6_NH_NONE, 6);
        uint8_t *trace = ioam_find(ip, sizeof ip, &trace_len);
        ck_assert_ptr_nonnull(trace);
        for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
            const struct ioam_element e = {.node_id = queues[i].node_id,
                                           .queue_bytes = queues[i].depth};
            ck_assert_int_eq(ioam_fill(trace, trace_len, &e), IOAM_FILLED);
        }
        said.trace = trace;
        said.trace_len = trace_len;
        f->config.congestion.rate.controller = RATE_DEPTH;
        f->config.congestion.rate.base_usec = 4000;
        f->config.congestion.queue_rates = must_copy(rates, 2, sizeof *rates);
        f->config.congestion.n_queue_rates = 2;
        fixture_configure(f);
        feed(f, &said);
        struct flow_info info = agent_flow(f, &star_proxy, STAR_DQPN);
        ck_assert_uint_eq(info.last_depth, 4000);
        /* u = 2 with as many bytes as B has in T_b; 0.95 / u. */
        ck_assert_uint_eq(info.rate, LINE * 95 / 100 / 2);
        fixture_destroy(f);
    }
END_TEST

/* One in an interval counts, of each flow.  Proves FC-30. */
START_TEST(one_in_an_interval)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_group();

        fixture_add_epoch(f);
        feed(f, &said);
        f->now += AGENT_INTERVAL - 1;
        said.node = node_address(STAR_EDGE_ID);
        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_soon), 1);
        said.dest_qp++;
        feed(f, &said);
        said.dest_qp--;
        f->now++;
        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), 3);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_soon), 1);
        ck_assert_uint_eq(agent_flow(f, &star_proxy, STAR_DQPN).n_cuts, 2);
        ck_assert_uint_eq(agent_flow(f, &star_proxy, STAR_DQPN + 1).n_cuts, 1);
        fixture_destroy(f);
    }
END_TEST

/* What is forged, by whom it would have to be stopped, and how. */
enum forgery {
    SWITCHED_OFF,
    NOT_TRUSTED,
    OTHER_HOST,
    WRONG_ICRC,
    OTHER_OPCODE,
    CUT_SHORT,
    TWO_OPTIONS,
    OTHER_QP,
    OTHER_DESTINATION,
    FROM_HOST,
    FROM_HOST_OFF,
    FROM_HOST_TUNNELLED,
    TUNNELLED,
};

static const struct {
    enum forgery what;
    enum drop_reason why;
} forged[] = {
    {SWITCHED_OFF, DROP_fast_cnp_off},       {NOT_TRUSTED, DROP_fast_cnp_source},
    {OTHER_HOST, DROP_not_for_us},           {WRONG_ICRC, DROP_fast_cnp_icrc},
    {OTHER_OPCODE, DROP_fast_cnp_malformed}, {CUT_SHORT, DROP_fast_cnp_malformed},
    {TWO_OPTIONS, DROP_fast_cnp_malformed},  {OTHER_QP, DROP_fast_cnp_flow},
    {OTHER_DESTINATION, DROP_fast_cnp_flow}, {FROM_HOST, DROP_fast_cnp_border},
    {FROM_HOST_OFF, DROP_fast_cnp_border},   {FROM_HOST_TUNNELLED, DROP_fast_cnp_border},
    {TUNNELLED, DROP_fast_cnp_malformed},
};

/* Puts an IPv6 header in front of the packet. */
static size_t
tunnel(uint8_t *bytes, size_t len, struct in6_addr src, struct in6_addr dst)
{
    memmove(bytes + IP6_HDR_LEN, bytes, len);
    uint8_t first[IP6_HDR_LEN];
    ip6_build(first, src, dst, IP6_NH_IPV6, 0);
    ((struct ip6_hdr_wire *) first)->plen = be16_put((uint16_t) len);
    memcpy(bytes, first, sizeof first);
    return len + IP6_HDR_LEN;
}

/* It has no effect, but on one counter.
 *
 * Proves FC-31, FC-33, FC-34, FC-35. */
START_TEST(forgeries)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_group();
        enum forgery what = forged[_i].what;
        uint8_t bytes[PACKET_ROOM];
        bool from_host = what >= FROM_HOST && what <= FROM_HOST_TUNNELLED;

        f->config.congestion.fast_cnp = what != SWITCHED_OFF && what != FROM_HOST_OFF;
        fixture_configure(f);
        said.node = what == NOT_TRUSTED ? node_address(STAR_AGENT_ID + 1) : said.node;
        said.sender = what == OTHER_HOST ? other_host : said.sender;
        said.dest_qp += what == OTHER_QP;
        said.original = what == OTHER_DESTINATION ? other_host : said.original;
        if (from_host) {
            said.node = star_source;
            said.sender = other_host;
        }
        size_t len = build(f, &said, bytes);
        struct ip6_hdr_wire *ip = (void *) bytes;
        uint8_t *options = bytes + IP6_HDR_LEN; /* of 24 bytes. */
        bytes[len - 1] ^= what == WRONG_ICRC;
        if (what == OTHER_OPCODE) {
            options[24 + 8] = RC_ACK;
        } else if (what == CUT_SHORT) {
            len -= 4;
            ip->plen = be16_put((uint16_t) (len - IP6_HDR_LEN));
            ((struct udp_hdr *) (options + 24))->len = be16_put(36);
        } else if (what == TWO_OPTIONS) {
            memmove(options + 48, options + 24, len - IP6_HDR_LEN - 24);
            memcpy(options + 24, options, 24);
            options[1] = 48 / 8 - 1;
            options[24] = options[25] = 0; /* Pad1. */
            len += 24;
            ip->plen = be16_put((uint16_t) (len - IP6_HDR_LEN));
        }
        if (what == FROM_HOST_TUNNELLED) {
            len = tunnel(bytes, len, star_source, other_host);
        } else if (what == TUNNELLED) {
            len = tunnel(bytes, len, node_address(STAR_EDGE_ID), star_source);
        }
        fixture_input(f, from_host ? HOST_PORT : UPLINK, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, forged[_i].why), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        ck_assert_uint_eq(srcagent_class.n_flows(f->node), 0);
        agent_write(f, START);
        agent_write(f, START + 1);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(packet_pool_n_free(f->pool), packet_pool_size(f->pool));
        fixture_destroy(f);
    }
END_TEST

/* Senders whose ICRC is in no form that is known, by request. */
START_TEST(any_icrc)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_group();
        uint8_t bytes[PACKET_ROOM];
        size_t len = build(f, &said, bytes);

        bytes[len - 1] ^= 1;
        f->config.congestion.any_icrc = true;
        fixture_configure(f);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* With a NIC that slows down itself, a group's becomes a CNP; others cannot. */
START_TEST(becomes_a_cnp)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_group();
        uint8_t bytes[PACKET_ROOM];
        size_t len = build(f, &said, bytes);

        f->config.congestion.rate_control = RATE_BY_NIC;
        fixture_configure(f);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, HOST_PORT);
        ck_assert_uint_eq(f->frames[0].h.opcode, ROCE_CNP);
        const struct bth *bth = (const void *) (f->frames[0].bytes + f->frames[0].h.bth_ofs);
        ck_assert_uint_eq(be24_get(bth->dest_qp), STAR_SOURCE_QPN);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_soon), 1);
        unicast(f, RC_WRITE_ONLY, 9, 0);
        said = about_unicast(9);
        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_flow), 1);
        fixture_destroy(f);
    }
END_TEST

/* A flow that is no group's: its requests wait, all of them in order.  What it does not have to
 * keep in order overtakes. */
START_TEST(slows_unicast_down)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_unicast(9);

        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_flow), 1);
        unicast(f, RC_READ_REQ, 9, 0); /* carries nothing, and nothing is noted. */
        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_flow), 2);
        unicast(f, RC_WRITE_ONLY, 9, 1);
        ck_assert_uint_eq(f->n_frames, 1);
        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), 1);
        struct flow_info info = agent_flow(f, &other_host, 9);
        ck_assert_ptr_null(info.group);
        ck_assert_uint_eq(info.rate, LINE / 2);

        unicast(f, RC_WRITE_ONLY, 9, 2);
        ck_assert_uint_eq(f->n_frames, 1);
        unicast(f, RC_WRITE_ONLY, 9, 3);
        unicast(f, RC_READ_REQ, 9, 4);
        unicast(f, RC_SEND_ONLY, 9, 5);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(agent_flow(f, &other_host, 9).n_waiting, 3);
        unicast(f, RC_ACK, 9, 77);
        ck_assert_uint_eq(f->n_frames, 1);
        unicast(f, RC_WRITE_ONLY, 10, 1);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        for (uint32_t psn = 3; psn <= 5; psn++) {
            fixture_timer(f);
            ck_assert_uint_eq(f->n_frames, 1);
            const struct frame *frame = &f->frames[0];
            const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
            ck_assert_uint_eq(frame->port, UPLINK);
            ck_assert_mem_eq(&ip->dst, &other_host, 16);
            ck_assert_uint_eq(ip->hlim, 63);
            ck_assert_uint_eq(agent_psn(f, 0), psn);
            ck_assert(frame_icrc_ok(frame));
        }
        ck_assert_uint_eq(fixture_total_drops(f), 3);
        fixture_destroy(f);
    }
END_TEST

/* RDMA-CM's messages are no flow; those of other UD queue pairs are. */
START_TEST(ud_flows)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_unicast(1);

        unicast(f, UD_SEND_ONLY, 1, 0);
        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_flow), 1);
        unicast(f, UD_SEND_ONLY, 2, 0);
        said.dest_qp = 2;
        feed(f, &said);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), 1);
        unicast(f, UD_SEND_ONLY, 2, 1);
        unicast(f, UD_SEND_ONLY, 2, 2);
        unicast(f, UD_SEND_ONLY, 2, 2); /* of another queue pair. */
        ck_assert_uint_eq(agent_flow(f, &other_host, 2).n_waiting, 2);
        fixture_destroy(f);
    }
END_TEST

/* The table of flows is bounded.  One that is slowed down stays slow, however many others come; the
 * one that was silent for longest is forgotten, until it sends again. */
START_TEST(flows_are_bounded)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_unicast(9);
        struct fast_cnp idle = about_unicast(8);

        unicast(f, RC_WRITE_ONLY, 8, 0);
        unicast(f, RC_WRITE_ONLY, 9, 0);
        feed(f, &said);
        for (uint32_t qpn = 100; qpn < 100 + 20 * FLOW_TABLE; qpn++) {
            f->now++;
            unicast(f, RC_WRITE_ONLY, qpn, 0);
            ck_assert_uint_eq(f->n_frames, 1);
        }
        ck_assert_uint_ne(agent_flow(f, &other_host, 9).rate, 0);
        for (uint32_t psn = 1; psn < 5; psn++) {
            unicast(f, RC_WRITE_ONLY, 9, psn); /* the first of them without delay. */
        }
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        feed(f, &idle);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_flow), 1);
        unicast(f, RC_WRITE_ONLY, 8, 1);
        feed(f, &idle);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), 2);
        fixture_destroy(f);
    }
END_TEST

/* What waits of flows that are no group's leaves when the agent controls rates no more. */
START_TEST(unicast_control_ends)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_unicast(9);

        unicast(f, RC_WRITE_ONLY, 9, 0);
        feed(f, &said);
        for (uint32_t psn = 1; psn < 5; psn++) {
            unicast(f, RC_WRITE_ONLY, 9, psn);
        }
        f->config.congestion.rate_control = RATE_BY_NIC;
        f->n_frames = 0;
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 3);
        unicast(f, RC_WRITE_ONLY, 9, 5);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(rate_deadline(f->node), UINT64_MAX);
        fixture_destroy(f);
    }
END_TEST

/* 100,000 a second for 10 s: the rate is never below the floor, nothing piles up, and another group
 * does not notice. */
START_TEST(storm)
    {
        struct fixture *f = fast_agent();
        struct fast_cnp said = about_group();
        uint8_t bytes[PACKET_ROOM];
        size_t len = build(f, &said, bytes);
        const uint32_t n = BY_CHANCE(1000000);
        uint32_t psn = START;
        struct roce_spec other = agent_request(RC_WRITE_ONLY, START);
        uint64_t start = f->now, n_sent = 0;

        fixture_add_epoch(f);
        other.dest_qp++;
        for (uint32_t i = 0; i < n; i++) {
            f->now = start + 10 * i;
            fixture_input(f, UPLINK, bytes, len);
            ck_assert_uint_eq(f->n_frames, 0);
            if (srcagent_class.deadline(f->node) <= f->now) {
                srcagent_class.timer(f->node, f->now);
                fixture_settle(f);
                n_sent += f->n_frames;
            }
            if (i % 100 == 0) {
                ck_assert_uint_ge(agent_flow(f, &star_proxy, STAR_DQPN).rate, LINE / 200);
                other.psn = (START + i / 100) & PSN_MASK;
                agent_from_host(f, &other);
                ck_assert_uint_eq(f->n_frames, 1);
                /* The host's window is full all the time. */
                if (agent_flow(f, &star_proxy, STAR_DQPN).n_waiting < 64) {
                    agent_write(f, psn++);
                    n_sent += f->n_frames;
                }
            }
        }
        struct flow_info info = agent_flow(f, &star_proxy, STAR_DQPN);
        ck_assert_uint_le(info.n_cuts, 10 * n / AGENT_INTERVAL);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), info.n_fast_cnps);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_soon), n - info.n_fast_cnps);
        ck_assert_uint_eq(fixture_total_drops(f), n);
        /* 10 us for each at the floor, frames of 158 bytes. */
        ck_assert_uint_ge(n_sent, LINE / 200 * n / 100000 / 8 / 158);
        ck_assert_uint_eq(packet_pool_size(f->pool) - packet_pool_n_free(f->pool), info.n_waiting);
        ck_assert_uint_eq(srcagent_class.n_flows(f->node), 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
agent_signals_suite(void)
{
    Suite *s = suite_create("agent_signals");
    TCase *tc = tcase_create("agent_signals");

    tcase_add_test(tc, slows_group_down);
    tcase_add_test(tc, leaves_some_of_a_small_pool);
    tcase_add_test(tc, order_when_switched_off);
    tcase_add_test(tc, about_nothing);
    tcase_add_test(tc, slows_down_by_depth);
    tcase_add_test(tc, one_in_an_interval);
    tcase_add_loop_test(tc, forgeries, 0, sizeof forged / sizeof forged[0]);
    tcase_add_test(tc, any_icrc);
    tcase_add_test(tc, becomes_a_cnp);
    tcase_add_test(tc, slows_unicast_down);
    tcase_add_test(tc, ud_flows);
    tcase_add_test(tc, flows_are_bounded);
    tcase_add_test(tc, unicast_control_ends);
    tcase_add_test(tc, storm);
    suite_add_tcase(s, tc);
    return s;
}
