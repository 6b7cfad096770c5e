/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/node-congestion.c in whole nodes: who is told that a queue is deep, and how; what crosses the
 * border; traces.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/ecn.h"
#include "lib/fast-cnp.h"
#include "lib/icmp6.h"
#include "lib/inet-csum.h"
#include "lib/ioam.h"
#include "lib/node-congestion.h"
#include "lib/prober.h"
#include "lib/roce.h"
#include "lib/stamp.h"
#include "swedge/swedge.h"
#include "tests/unit/edge-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

#define N_DOWN   6                 /* packets that come at once. */
#define TIMES_US 10000             /* N. */
#define SLOW     UINT64_C(1000000) /* bit/s of a congested port. */

static struct fixture *f;

static struct port_config *
port_of(uint16_t number)
{
    for (size_t i = 0; i < f->config.n_ports; i++) {
        if (f->config.ports[i].number == number) {
            return &f->config.ports[i];
        }
    }
    abort();
}

/* The port has a slow queue that RED hits from the second frame on. */
static void
slow_down(uint16_t number)
{
    struct impair_params *tx = &port_of(number)->tx;

    tx->rate = SLOW;
    tx->queue = 64;
    tx->kmin = 1;
    tx->kmax = 1;
    tx->pmax = IMPAIR_PPM;
}

static void
use_fast_cnps(const struct in6_addr *capable, size_t n)
{
    struct congestion_config *c = &f->config.congestion;

    c->interval_usec = TIMES_US;
    c->fast_cnp = true;
    c->fast_cnp_rate = 1000;
    free(c->capable);
    c->capable = malloc(n * sizeof *capable + 1);
    memcpy(c->capable, capable, n * sizeof *capable);
    c->n_capable = n;
}

static void
create_edge(void)
{
    f = fixture_create(&swedge_class, 2);
    slow_down(star_port(0));
}

static void
teardown(void)
{
    fixture_destroy(f);
    f = NULL;
}

/* N_DOWN packets of the group come at the same time. */
static void
send_group(uint32_t psn)
{
    for (unsigned i = 0; i < N_DOWN; i++) {
        struct roce_spec spec = edge_write(psn + i);
        uint8_t bytes[PACKET_ROOM];

        size_t len = edge_encapsulated(bytes, &spec, 2);
        ((struct ip6_hdr_wire *) bytes)->vtf.b[1] |= ECN_ECT0 << 4;
        /* The inner packet is ECT, too: its ICRC does not cover that. */
        bytes[len - roce_build((uint8_t[PACKET_ROOM]){0}, &spec) + 1] |= ECN_ECT0 << 4;
        fixture_input_more(f, 1, bytes, len);
    }
}

/* Lets time pass until all queues are empty. */
static void
drain(void)
{
    uint64_t until = f->now + 1000000;

    while (f->class->deadline(f->node) < until) {
        f->now = f->class->deadline(f->node);
        f->class->timer(f->node, f->now);
        fixture_settle(f);
    }
}

static const struct ip6_hdr_wire *
ip_of(const struct frame *frame)
{
    return (const struct ip6_hdr_wire *) (frame->bytes + sizeof(struct eth_hdr));
}

/* The Fast CNPs among what was sent; the last one in *last. */
static unsigned
count_fast_cnps(struct fast_cnp *last, uint16_t *port)
{
    unsigned n = 0;

    for (size_t i = 0; i < f->n_frames; i++) {
        struct parsed h;
        const struct frame *frame = &f->frames[i];

        ck_assert_int_eq(parse_outer(frame->bytes, (uint32_t) frame->len, &h), DROP_none);
        if (fast_cnp_seen(frame->bytes, (uint32_t) frame->len, &h)) {
            ck_assert_int_eq(fast_cnp_parse(frame->bytes, (uint32_t) frame->len, &h, false, last),
                             DROP_none);
            *port = frame->port;
            n++;
        }
    }
    return n;
}

/* Frames that were sent from this port with CE in their outermost header. */
static unsigned
count_ce(uint16_t port)
{
    unsigned n = 0;

    for (size_t i = 0; i < f->n_frames; i++) {
        n += f->frames[i].port == port && (ip6_tc(ip_of(&f->frames[i])) & ECN_MASK) == ECN_CE;
    }
    return n;
}

/* The receiver's own port is congested: the source hears of it in its own words.
 *
 * Proves FC-6, FC-7, FC-8, FC-10, FC-12, FC-13, FC-15, FC-17, FC-19, FC-34. */
START_TEST(edge_tells_the_source)
    {
        struct fast_cnp cnp;
        uint16_t port;

        use_fast_cnps(&star_source, 1);
        fixture_configure(f);
        f->n_frames = 0;
        send_group(START);
        drain();
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 1);
        ck_assert_uint_eq(port, 1); /* towards the source agent. */
        ck_assert_mem_eq(&cnp.node, &f->config.address, sizeof cnp.node);
        ck_assert_mem_eq(&cnp.sender, &star_source, sizeof cnp.sender);
        ck_assert_mem_eq(&cnp.original, &star_proxy, sizeof cnp.original);
        ck_assert_uint_eq(cnp.dest_qp, STAR_DQPN);
        ck_assert_ptr_null(cnp.trace);
        ck_assert_uint_eq(count_ce(star_port(0)), 0);
        ck_assert_uint_eq(f->n_frames, 2 * N_DOWN + 1);

        /* Another one only after the interval. */
        f->n_frames = 0;
        f->now += TIMES_US;
        send_group(START + N_DOWN);
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 1);
        ck_assert_uint_eq(node_congestion_stats(swedge_of(f->node)->base->congestion)->n_fast_cnps,
                          2);
        drain();
    }
END_TEST

/* Nobody has switched them on, or the sender does not take them: packets are marked.
 *
 * Proves FC-9, FC-11, FC-35. */
START_TEST(others_are_marked)
    {
        const struct in6_addr other = addr_of("fd00:1::77");
        struct fast_cnp cnp;
        uint16_t port;

        if (_i == 1) {
            use_fast_cnps(&other, 1);
        } else if (_i == 2) {
            use_fast_cnps(&star_source, 1);
            f->config.congestion.fast_cnp = false;
        }
        fixture_configure(f);
        f->n_frames = 0;
        send_group(START);
        drain();
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 0);
        /* When a frame leaves, one less is behind it than in front of it; below 2 none is hit. */
        ck_assert_uint_eq(count_ce(star_port(0)), N_DOWN - 2);
        ck_assert_uint_eq(count_ce(star_port(1)), 0);
    }
END_TEST

/* The host answers the Fast CNP among the frames with Parameter Problem, code 2. */
static void
answer_problem(void)
{
    uint8_t bytes[PACKET_ROOM];
    const struct in6_addr own = f->config.address;
    size_t i = 0;
    while (ip_of(&f->frames[i])->nh != IP6_NH_DSTOPT) {
        i++;
    }
    size_t about_len = f->frames[i].len - sizeof(struct eth_hdr);
    uint8_t *icmp = ip6_build(bytes, star_source, own, IP6_NH_ICMPV6, 8 + about_len);
    icmp[0] = ICMP6_PARAMETER;
    icmp[1] = ICMP6_PARAMETER_OPTION;
    memcpy(icmp + 8, ip_of(&f->frames[i]), about_len);
    while (icmp[8 + icmp[7]] != FAST_CNP_OPTION || icmp[7] < IP6_HDR_LEN) {
        icmp[7]++;
    }
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) bytes;
    be16_t sum = inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_ICMPV6, icmp, 8 + about_len);
    memcpy(icmp + 2, &sum, sizeof sum);
    fixture_input(f, 1, bytes, IP6_HDR_LEN + 8 + about_len);
}

/* A host says that it does not understand them.
 *
 * Proves FC-11. */
START_TEST(parameter_problem_ends_them)
    {
        struct fast_cnp cnp;
        uint16_t port;

        use_fast_cnps(&star_source, 1);
        fixture_configure(f);
        f->n_frames = 0;
        send_group(START);
        drain();
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 1);

        answer_problem();

        f->now += TIMES_US;
        f->n_frames = 0;
        send_group(START + N_DOWN);
        drain();
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 0);
        ck_assert_uint_eq(count_ce(star_port(0)), N_DOWN - 2);

        /* Not for ever. */
        f->now += FAST_CNP_UNWANTED_USEC;
        f->n_frames = 0;
        send_group(START + 2 * N_DOWN);
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 1);
        drain();
    }
END_TEST

/* Who is outside of the domain may say so of nobody. */
START_TEST(parameter_problem_from_outside)
    {
        const struct node_base *base = f->node;

        use_fast_cnps(&star_source, 1);
        fixture_configure(f);
        f->n_frames = 0;
        send_group(START);
        drain();
        port_of(1)->external = true;
        fixture_configure(f);
        answer_problem();
        ck_assert_uint_eq(node_congestion_stats(base->congestion)->n_unwanted, 0);
    }
END_TEST

/* A packet that is only passed on, in a tunnel or not: who sent what is inside is told.
 *
 * Proves FC-8, FC-13, FC-17, FC-18, FC-22. */
START_TEST(transit_looks_inside)
    {
        const struct in6_addr sender = addr_of("fd00:1::55"), dst = addr_of("fd00:2::66");
        struct roce_spec spec = {
            .src = &sender,
            .dst = &dst,
            .dest_qp = 0x77,
            .opcode = RC_SEND_ONLY,
            .psn = 5,
            .payload_len = 64,
        };
        struct in6_addr outer_dst = node_sid(CHILD_A, SID_FUNC_END_MT);
        struct in6_addr outer_src = node_address(PARENT);
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
        bool tunnel = _i == 1;
        struct fast_cnp cnp;
        uint16_t port;

        teardown();
        f = transit_create(0);
        slow_down(PORT_A);
        use_fast_cnps(&sender, 1);
        /* The sender is behind the parent, its peer behind child A. */
        f->config.routes =
            realloc(f->config.routes, (f->config.n_routes + 2) * sizeof *f->config.routes);
        f->config.routes[f->config.n_routes++] = (struct route_config){
            .prefix = sender, .plen = 128, .port = PORT_PARENT, .next_hop = node_address(PARENT)};
        f->config.routes[f->config.n_routes++] = (struct route_config){
            .prefix = dst, .plen = 128, .port = PORT_A, .next_hop = node_address(CHILD_A)};
        fixture_configure(f);
        f->n_frames = 0;

        size_t len = roce_build(inner, &spec);
        size_t total = tunnel ? IP6_HDR_LEN + len : len;
        if (tunnel) {
            memcpy(ip6_build(bytes, outer_src, outer_dst, IP6_NH_IPV6, len), inner, len);
        } else {
            memcpy(bytes, inner, len);
        }
        for (unsigned i = 0; i < 3; i++) {
            fixture_input_more(f, PORT_PARENT, bytes, total);
        }
        drain();
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 1);
        ck_assert_uint_eq(port, PORT_PARENT);
        ck_assert_mem_eq(&cnp.node, &f->config.address, sizeof cnp.node);
        ck_assert_mem_eq(&cnp.sender, &sender, sizeof cnp.sender);
        ck_assert_mem_eq(&cnp.original, &dst, sizeof cnp.original);
        ck_assert_uint_eq(cnp.dest_qp, 0x77);
        ck_assert_uint_eq(f->n_frames, 4);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
    }
END_TEST

/* What RED does not look at: responses, requests without payload, CNPs, datagrams to QP 1. */
START_TEST(control_is_exempt)
    {
        static const struct {
            uint8_t opcode;
            uint32_t qpn;
            size_t payload_len;
        } cases[] = {
            {RC_ACK, 0x77, 0},   {RC_READ_REQ, 0x77, 0}, {RC_READ_RESP_ONLY, 0x77, 64},
            {ROCE_CNP, 0x77, 0}, {UD_SEND_ONLY, 1, 256},
        };
        const struct in6_addr sender = star_receiver(1), dst = star_receiver(0);
        struct fast_cnp cnp;
        uint16_t port;

        use_fast_cnps(&sender, 1);
        fixture_configure(f);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct roce_spec spec = {
                .src = &sender,
                .dst = &dst,
                .dest_qp = cases[i].qpn,
                .opcode = cases[i].opcode,
                .payload_len = cases[i].payload_len,
            };
            uint8_t bytes[PACKET_ROOM];

            size_t len = roce_build(bytes, &spec);
            f->n_frames = 0;
            for (unsigned j = 0; j < 4; j++) {
                fixture_input_more(f, star_port(1), bytes, len);
            }
            drain();
            ck_assert_uint_eq(f->n_frames, 4);
            ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 0);
            ck_assert_uint_eq(count_ce(star_port(0)), 0);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
    }
END_TEST

/* Probes of paths are marked as data are, and so are their answers; nobody is told, and none is
 * dropped.  Other datagrams are left alone. */
START_TEST(probes_are_marked)
    {
        static const struct {
            uint16_t sport, dport;
            uint8_t ecn;
            bool marked;
        } cases[] = {
            {PROBER_SPORT, UDP_PORT_STAMP, ECN_ECT0, true},
            {UDP_PORT_STAMP, PROBER_SPORT, ECN_ECT0, true},
            {PROBER_SPORT, UDP_PORT_STAMP, ECN_NOT_ECT, false},
            {PROBER_SPORT, UDP_PORT_STAMP + 1, ECN_ECT0, false},
        };
        const struct in6_addr prober = addr_of("fd00:1::55"),
                              dst = node_sid(CHILD_A, SID_FUNC_END_MT);
        const struct program program = {.n = 1, .containers = {dst}};
        const struct stamp say = {.seq = 1, .is_answer = _i == 1, .has_cookie = true};
        uint8_t bytes[PACKET_ROOM];
        struct fast_cnp cnp;
        uint16_t port;

        teardown();
        f = transit_create(0);
        slow_down(PORT_A);
        use_fast_cnps(&prober, 1);
        fixture_configure(f);
        struct packet *p = stamp_build(f->pool, &say, &prober, &program, &dst, cases[_i].ecn, 0,
                                       cases[_i].sport, cases[_i].dport, 0);
        size_t len = packet_flatten(p, bytes, sizeof bytes);
        packet_put(p);
        f->n_frames = 0;
        for (unsigned i = 0; i < N_DOWN; i++) {
            fixture_input_more(f, PORT_PARENT, bytes, len);
        }
        drain();
        ck_assert_uint_eq(f->n_frames, N_DOWN);
        ck_assert_uint_eq(count_ce(PORT_A), cases[_i].marked ? N_DOWN - 2 : 0);
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 0);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
    }
END_TEST

/* Fast CNPs neither come in from hosts and from outside, nor go there.
 *
 * Proves FC-29, FC-32, FC-33. */
START_TEST(border_is_closed)
    {
        const struct in6_addr hosts[] = {star_receiver(0), star_receiver(1)};
        const struct fast_cnp made = {.node = _i & 1 ? hosts[1] : node_address(STAR_AGENT_ID),
                                      .sender = hosts[0],
                                      .original = hosts[1],
                                      .dest_qp = 5};
        uint16_t in = _i & 1 ? star_port(1) : 1;
        uint8_t bytes[PACKET_ROOM];

        teardown();
        f = fixture_create(&swedge_class, 2);
        if (_i >= 2) {
            port_of(1)->external = true;
            fixture_configure(f);
        }
        f->n_frames = 0;
        struct packet *p = fast_cnp_build(f->pool, &made, 0xc123);
        size_t len = packet_flatten(p, bytes, sizeof bytes);
        packet_put(p);
        if (_i == 3) { /* out to where the agent would be. */
            ((struct ip6_hdr_wire *) bytes)->dst = star_source;
        }
        fixture_input(f, in, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_border), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
    }
END_TEST

/* A host that takes Fast CNPs without an agent gets those of other nodes, too. */
START_TEST(capable_host_gets_them)
    {
        const struct in6_addr hosts[] = {star_receiver(0), star_receiver(1)};
        const struct fast_cnp made = {.node = node_address(STAR_AGENT_ID),
                                      .sender = hosts[0],
                                      .original = hosts[1],
                                      .dest_qp = 5};
        uint8_t bytes[PACKET_ROOM];

        use_fast_cnps(hosts, 1);
        fixture_configure(f);
        struct packet *p = fast_cnp_build(f->pool, &made, 0xc123);
        size_t len = packet_flatten(p, bytes, sizeof bytes);
        packet_put(p);
        f->n_frames = 0;
        fixture_input_more(f, 1, bytes, len);
        drain();
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
    }
END_TEST

/* This node's own do not leave by a link to the outside, either: who is there is marked. */
START_TEST(own_do_not_leave)
    {
        struct fast_cnp cnp;
        uint16_t port;

        use_fast_cnps(&star_source, 1);
        port_of(1)->external = true;
        fixture_configure(f);
        f->n_frames = 0;
        send_group(START);
        drain();
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 0);
        ck_assert_uint_eq(count_ce(star_port(0)), N_DOWN - 2);
    }
END_TEST

/* A trace gets this node's element, each copy its own, and comes back in the Fast CNP.
 *
 * Proves FC-24, FC-27. */
START_TEST(trace_is_told)
    {
        struct roce_spec spec;
        struct in6_addr rs = transit_rs();
        struct fast_cnp cnp;
        struct ioam_element e;
        uint16_t port;
        uint8_t plain[PACKET_ROOM], bytes[PACKET_ROOM];
        const unsigned slots = 2;

        teardown();
        f = transit_create(0);
        slow_down(PORT_A);
        use_fast_cnps(&star_source, 1);
        f->config.congestion.trace = true;
        f->config.routes =
            realloc(f->config.routes, (f->config.n_routes + 1) * sizeof *f->config.routes);
        f->config.routes[f->config.n_routes++] =
            (struct route_config){.prefix = star_source, .plen = 128, .port = AGENT_PORT};
        fixture_configure(f);
        f->n_frames = 0;
        for (unsigned i = 0; i < 3; i++) {
            spec = transit_write(START + i);
            size_t len = transit_encapsulated(plain, &rs, &spec, 0);
            struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;

            memcpy(bytes, plain, IP6_HDR_LEN);
            ioam_build(bytes + IP6_HDR_LEN, ip->nh, slots);
            ip->nh = IP6_NH_HOPOPT;
            ip->plen = be16_put((uint16_t) (len - IP6_HDR_LEN + IOAM_HBH_LEN(slots)));
            memcpy(bytes + IP6_HDR_LEN + IOAM_HBH_LEN(slots), plain + IP6_HDR_LEN,
                   len - IP6_HDR_LEN);
            fixture_input_more(f, AGENT_PORT, bytes, len + IOAM_HBH_LEN(slots));
        }
        drain();
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        ck_assert_uint_eq(count_fast_cnps(&cnp, &port), 1);
        ck_assert_ptr_nonnull(cnp.trace);
        ck_assert_mem_eq(&cnp.original, &star_proxy, sizeof cnp.original);
        ck_assert_uint_eq(cnp.dest_qp, STAR_DQPN);
        ck_assert(ioam_read(cnp.trace, cnp.trace_len, 0, &e));
        ck_assert_uint_eq(e.node_id, f->config.id);
        ck_assert_uint_gt(e.queue_bytes, 0);
        ck_assert(!ioam_read(cnp.trace, cnp.trace_len, 1, &e));

        /* The last copies for both nodes: one port has a queue, the other has none. */
        uint32_t depth[2] = {0, 0};
        for (size_t i = 0; i < f->n_frames; i++) {
            struct frame *frame = &f->frames[i];
            uint8_t trace_len;

            if (frame->port == PORT_A || frame->port == PORT_B) {
                const uint8_t *trace =
                    ioam_find(frame->bytes + sizeof(struct eth_hdr),
                              (uint32_t) (frame->len - sizeof(struct eth_hdr)), &trace_len);
                ck_assert_ptr_nonnull(trace);
                ck_assert(ioam_read(trace, trace_len, 0, &e));
                ck_assert_uint_eq(e.node_id, f->config.id);
                ck_assert_uint_eq(e.hop_limit, ip_of(frame)->hlim);
                ck_assert_uint_eq(e.seconds, f->now / 1000000);
                depth[frame->port == PORT_B] = e.queue_bytes;
            }
        }
        ck_assert_uint_gt(depth[0], 0);
        ck_assert_uint_eq(depth[1], 0);
    }
END_TEST

Suite *
congestion_suite(void)
{
    Suite *s = suite_create("congestion");
    TCase *tc = tcase_create("congestion");

    tcase_add_checked_fixture(tc, create_edge, teardown);
    tcase_add_test(tc, edge_tells_the_source);
    tcase_add_loop_test(tc, others_are_marked, 0, 3);
    tcase_add_test(tc, parameter_problem_ends_them);
    tcase_add_test(tc, parameter_problem_from_outside);
    tcase_add_loop_test(tc, transit_looks_inside, 0, 2);
    tcase_add_test(tc, control_is_exempt);
    tcase_add_loop_test(tc, probes_are_marked, 0, 4);
    tcase_add_loop_test(tc, border_is_closed, 0, 4);
    tcase_add_test(tc, capable_host_gets_them);
    tcase_add_test(tc, own_do_not_leave);
    tcase_add_test(tc, trace_is_told);
    suite_add_tcase(s, tc);
    return s;
}
