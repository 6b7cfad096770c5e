/* SPDX-License-Identifier: Apache-2.0
 *
 * What hosts and source agents may not send, and what passes although it looks
 * like the business of groups.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/icmp6.h"
#include "lib/roce.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

/* The packet goes nowhere, for this reason only. */
static void
check_refused(struct fixture *f, uint16_t port, const uint8_t *ip, size_t len, enum drop_reason why)
{
    uint64_t before = fixture_drops(f, why);
    uint64_t total = fixture_total_drops(f);

    fixture_input(f, port, ip, len);
    ck_assert_uint_eq(f->n_frames, 0);
    ck_assert_uint_eq(fixture_drops(f, why), before + 1);
    ck_assert_uint_eq(fixture_total_drops(f), total + 1);
}

/* The packet leaves as it is, but for the hop. */
static void
check_forwarded(struct fixture *f, uint16_t port, uint8_t *ip, size_t len, uint16_t out_port)
{
    uint64_t total = fixture_total_drops(f);

    fixture_input(f, port, ip, len);
    ck_assert_uint_eq(f->n_frames, 1);
    ck_assert_uint_eq(f->frames[0].port, out_port);
    ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + len);
    ip[7]--;
    ck_assert_mem_eq(f->frames[0].bytes + sizeof(struct eth_hdr), ip, len);
    ck_assert_uint_eq(fixture_total_drops(f), total);
}

/* A tunnel, a routing header and SIDs, from the host 'src' on 'port' to 'dst', which it may
 * reach. */
static void
check_host(struct fixture *f, uint16_t port, uint16_t own_id, struct in6_addr src,
           struct in6_addr dst, uint16_t out_port)
{
    struct in6_addr sids[] = {
        node_sid(own_id, SID_FUNC_RESPONSE),
        node_sid(own_id, 0x123),
        node_sid(CHILD_A, SID_FUNC_END_MT),
        node_sid(0x777, GROUP_RS),
    };
    uint8_t bytes[256];

    uint8_t *upper = ip6_build(bytes, src, dst, IP6_NH_IPV6, IP6_HDR_LEN);
    ip6_build(upper, src, dst, IP6_NH_NONE, 0);
    check_refused(f, port, bytes, 2 * IP6_HDR_LEN, DROP_source_guard);
    upper = ip6_build(bytes, src, dst, IP6_NH_ROUTING, 24);
    srh_build(upper, &dst, 1, 0, IP6_NH_NONE);
    check_refused(f, port, bytes, IP6_HDR_LEN + 24, DROP_source_guard);
    for (size_t i = 0; i < sizeof sids / sizeof *sids; i++) {
        ip6_build(bytes, src, sids[i], IP6_NH_NONE, 0);
        check_refused(f, port, bytes, IP6_HDR_LEN, DROP_source_guard);
    }
    ip6_build(bytes, src, dst, IP6_NH_NONE, 0);
    check_forwarded(f, port, bytes, IP6_HDR_LEN, out_port);

    /* A Routing header of another kind is the business of who is addressed. */
    upper = ip6_build(bytes, src, dst, IP6_NH_ROUTING, 8);
    memcpy(upper, (uint8_t[8]){IP6_NH_NONE, 0, 3, 1}, 8);
    check_forwarded(f, port, bytes, IP6_HDR_LEN + 8, out_port);
    upper = ip6_build(bytes, src, sids[0], IP6_NH_ROUTING, 8);
    memcpy(upper, (uint8_t[8]){IP6_NH_NONE, 0, 3, 1}, 8);
    check_refused(f, port, bytes, IP6_HDR_LEN + 8, DROP_routing_header);
}

/* Proves MT-6-R8754-13, MT-9-1, MT-9-4. */
START_TEST(hosts_of_an_edge)
    {
        struct fixture *f = transit_create(2);

        check_host(f, star_port(0), STAR_EDGE_ID, star_receiver(0), star_receiver(1), star_port(1));
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-6-R8754-13, MT-9-1, MT-9-4. */
START_TEST(host_of_an_agent)
    {
        struct fixture *f = agent_create(2);

        fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
        fixture_configure(f);
        check_host(f, HOST_PORT, STAR_AGENT_ID, star_source, star_receiver(1), UPLINK);
        fixture_destroy(f);
    }
END_TEST

/* What an agent sends to SIDs comes from the agent, also when it is in a tunnel
 * to this node; its host's other packets pass.
 *
 * Proves MT-9-4. */
START_TEST(agents)
    {
        struct in6_addr sids[] = {
            node_sid(STAR_EDGE_ID, SID_FUNC_END),
            node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6),
            node_sid(CHILD_A, SID_FUNC_END_MT),
            transit_rs(),
        };
        struct in6_addr agent = node_address(STAR_AGENT_ID);
        struct in6_addr end_dt6 = node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6);
        struct fixture *f = transit_create(1);
        uint8_t bytes[256];
        uint8_t *inner;

        for (size_t i = 0; i < sizeof sids / sizeof *sids; i++) {
            ip6_build(bytes, star_source, sids[i], IP6_NH_NONE, 0);
            check_refused(f, AGENT_PORT, bytes, IP6_HDR_LEN, DROP_source_guard);
            inner = ip6_build(bytes, agent, end_dt6, IP6_NH_IPV6, IP6_HDR_LEN);
            ip6_build(inner, star_source, sids[i], IP6_NH_NONE, 0);
            check_refused(f, AGENT_PORT, bytes, 2 * IP6_HDR_LEN, DROP_source_guard);
        }
        ip6_build(bytes, agent, node_sid(CHILD_A, SID_FUNC_END_MT), IP6_NH_NONE, 0);
        check_forwarded(f, AGENT_PORT, bytes, IP6_HDR_LEN, PORT_A);
        ip6_build(bytes, star_source, star_receiver(0), IP6_NH_NONE, 0);
        check_forwarded(f, AGENT_PORT, bytes, IP6_HDR_LEN, star_port(0));
        fixture_destroy(f);
    }
END_TEST

/* An SRH that makes no sense is answered to who may send to SIDs, not to others in whose name
 * somebody does. */
START_TEST(agents_malformed)
    {
        struct in6_addr agent = node_address(STAR_AGENT_ID);
        struct in6_addr end = node_sid(STAR_EDGE_ID, SID_FUNC_END);
        struct fixture *f = transit_create(1);
        uint8_t bytes[256];

        uint8_t *srh = ip6_build(bytes, star_receiver(0), end, IP6_NH_ROUTING, 24);
        srh_build(srh, &agent, 1, 3, IP6_NH_NONE);
        f->mangled = true;
        check_refused(f, AGENT_PORT, bytes, IP6_HDR_LEN + 24, DROP_srh_malformed);
        memcpy(bytes + offsetof(struct ip6_hdr_wire, src), &agent, sizeof agent);
        fixture_input(f, AGENT_PORT, bytes, IP6_HDR_LEN + 24);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], AGENT_PORT, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                          IP6_HDR_LEN + offsetof(struct srh_hdr, segments_left));
        fixture_destroy(f);
    }
END_TEST

/* Two things to UDP port 4791 that are not RoCE. */
static const struct {
    uint16_t len; /* of UDP. */
    uint8_t tver;
    enum drop_reason why;
} not_roce[] = {
    {20, 0, DROP_roce_short},
    {40, 1, DROP_roce_tver},
};

static size_t
put_not_roce(uint8_t *upper, size_t i)
{
    struct udp_hdr *udp = (struct udp_hdr *) upper;
    struct bth *bth = (struct bth *) (udp + 1);

    udp->dport = be16_put(UDP_PORT_ROCE);
    udp->len = be16_put(not_roce[i].len);
    bth->flags = not_roce[i].tver;
    return not_roce[i].len;
}

/* The same as an IPv6 packet. */
static size_t
build_not_roce(uint8_t *out, struct in6_addr src, struct in6_addr dst, size_t i)
{
    return IP6_HDR_LEN + put_not_roce(ip6_build(out, src, dst, IP6_NH_UDP, not_roce[i].len), i);
}

START_TEST(roce_port_at_an_edge)
    {
        struct fixture *f = transit_create(2);
        struct in6_addr end = node_sid(STAR_EDGE_ID, SID_FUNC_END);
        struct in6_addr end_dt6 = node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6);
        struct in6_addr segments[] = {node_address(CHILD_B), end};
        struct in6_addr takers[] = {
            node_sid(STAR_EDGE_ID, SID_FUNC_END_MT),
            node_sid(STAR_EDGE_ID, SID_FUNC_RESPONSE),
            transit_rs(),
        };
        uint8_t bytes[256];
        size_t len;

        f->mangled = true;
        len = build_not_roce(bytes, star_receiver(0), star_receiver(1), (size_t) _i);
        check_forwarded(f, star_port(0), bytes, len, star_port(1));

        uint8_t *srh = ip6_build(bytes, node_address(PARENT), end, IP6_NH_ROUTING,
                                 40 + (size_t) not_roce[_i].len);
        srh_build(srh, segments, 2, 1, IP6_NH_UDP);
        len = IP6_HDR_LEN + 40 + put_not_roce(srh + 40, (size_t) _i);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, PORT_B);
        ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + len);

        len = IP6_HDR_LEN + not_roce[_i].len;
        uint8_t *inner = ip6_build(bytes, node_address(PARENT), end_dt6, IP6_NH_IPV6, len);
        build_not_roce(inner, star_source, star_receiver(1), (size_t) _i);
        fixture_input(f, PORT_PARENT, bytes, IP6_HDR_LEN + len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, star_port(1));
        ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + len);
        ck_assert_uint_eq(fixture_total_drops(f), 0);

        /* What wants RoCE names what it is not. */
        for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
            len = build_not_roce(bytes, node_address(STAR_AGENT_ID), takers[i], (size_t) _i);
            check_refused(f, AGENT_PORT, bytes, len, not_roce[_i].why);
        }
        len = build_not_roce(bytes, star_receiver(0), star_proxy, (size_t) _i);
        check_refused(f, star_port(0), bytes, len, not_roce[_i].why);
        fixture_destroy(f);
    }
END_TEST

START_TEST(roce_port_at_an_agent)
    {
        struct fixture *f = agent_create(2);
        uint8_t bytes[256];
        size_t len;

        f->mangled = true;
        len = build_not_roce(bytes, star_source, star_receiver(0), (size_t) _i);
        check_forwarded(f, HOST_PORT, bytes, len, UPLINK);
        len = build_not_roce(bytes, star_receiver(0), star_source, (size_t) _i);
        check_forwarded(f, UPLINK, bytes, len, HOST_PORT);
        len = build_not_roce(bytes, star_source, star_proxy, (size_t) _i);
        check_refused(f, HOST_PORT, bytes, len, not_roce[_i].why);
        len = build_not_roce(bytes, star_proxy, star_source, (size_t) _i);
        check_refused(f, UPLINK, bytes, len, not_roce[_i].why);
        fixture_destroy(f);
    }
END_TEST

/* A Proxy is a neighbour of hosts, whether a group has it or not: neither a QP's move to RTR nor an
 * RDMA-CM request may wait for anything. */
START_TEST(proxies_are_announced)
    {
        struct fixture *edge = transit_create(1);
        struct fixture *agent = agent_create(1);
        struct in6_addr unknown = proxy_address(0x12345);

        ck_assert(fixture_solicit(edge, star_port(0), star_proxy));
        ck_assert(fixture_solicit(edge, star_port(0), unknown));
        ck_assert(!fixture_solicit(edge, star_port(0), star_source));
        ck_assert(!fixture_solicit(edge, PORT_A, star_proxy));
        ck_assert(!fixture_solicit(edge, AGENT_PORT, star_proxy));
        ck_assert(!fixture_solicit(edge, PORT_A, unknown));
        ck_assert(fixture_solicit(agent, HOST_PORT, star_proxy));
        ck_assert(fixture_solicit(agent, HOST_PORT, unknown));
        ck_assert(!fixture_solicit(agent, UPLINK, star_proxy));
        ck_assert(fixture_solicit(agent, UPLINK, star_source));
        fixture_destroy(edge);
        fixture_destroy(agent);
    }
END_TEST

/* Kinds of packets, all of them good where they belong. */
enum kind {
    RESPONSE,       /* of receiver 1 to the Proxy. */
    TUNNELLED,      /* response of child B, to this node's response SID. */
    DOWN,           /* the group's, from the agent, to this node's Replication-SID. */
    DOWN_FROM_NODE, /* likewise, with a node's source address. */
    MERGED,         /* response of the root to the source. */
    OTHERS_PROXY,   /* of receiver 1, as to a group that is not here. */
    LINK_LOCAL,     /* from fe80::1:1 to a receiver. */
    FROM_NOBODY,    /* from :: to a receiver. */
    OWN,            /* of receiver 1, to receiver 2. */
    N_KINDS,
};

/* The same, and what is behind it. */
static size_t
build_kind(uint8_t *out, enum kind kind)
{
    struct in6_addr receiver = star_receiver(0), unknown = addr_of("fd00:ffff::77");
    struct in6_addr rs = transit_rs();
    struct roce_spec write = transit_write(START);
    struct roce_spec ack = {
        .src = &receiver,
        .dst = &star_proxy,
        .dest_qp = STAR_DQPN,
        .opcode = RC_ACK,
        .psn = START,
        .syndrome = AETH_ACK_UNLIMITED,
    };

    switch (kind) {
    case RESPONSE: return roce_build(out, &ack);
    case TUNNELLED:
        return tunnelled_response(out, CHILD_B, STAR_EDGE_ID, STAR_DQPN, AETH_ACK_UNLIMITED, START);
    case DOWN: return transit_encapsulated(out, &rs, &write, 2);
    case DOWN_FROM_NODE: {
        size_t len = transit_encapsulated(out, &rs, &write, 2);
        ((struct ip6_hdr_wire *) out)->src = node_address(CHILD_A);
        return len;
    }
    case MERGED:
        ack.src = &star_proxy;
        ack.dst = &star_source;
        ack.dest_qp = STAR_SOURCE_QPN;
        return roce_build(out, &ack);
    case OTHERS_PROXY: ack.dst = &unknown; return roce_build(out, &ack);
    case LINK_LOCAL:
        ip6_build(out, addr_of("fe80::1:1"), star_receiver(1), IP6_NH_NONE, 0);
        return IP6_HDR_LEN;
    case FROM_NOBODY:
        ip6_build(out, addr_of("::"), star_receiver(1), IP6_NH_NONE, 0);
        return IP6_HDR_LEN;
    case OWN: ip6_build(out, receiver, star_receiver(1), IP6_NH_NONE, 0); return IP6_HDR_LEN;
    default: abort();
    }
}

/* By kind, what becomes of it on the port of receiver 1, of receiver 2, of the source agent and of
 * a node: DROP_none is that it is taken or sent on. */
static const enum drop_reason roles[N_KINDS][4] = {
    [RESPONSE] = {DROP_none, DROP_source_guard, DROP_no_route, DROP_no_route},
    [TUNNELLED] = {DROP_source_guard, DROP_source_guard, DROP_source_guard, DROP_none},
    [DOWN] = {DROP_source_guard, DROP_source_guard, DROP_none, DROP_none},
    [DOWN_FROM_NODE] = {DROP_source_guard, DROP_source_guard, DROP_source_guard, DROP_outer_source},
    [MERGED] = {DROP_source_guard, DROP_source_guard, DROP_none, DROP_none},
    [OTHERS_PROXY] = {DROP_no_route, DROP_source_guard, DROP_no_route, DROP_no_route},
    [LINK_LOCAL] = {DROP_ip6_src, DROP_ip6_src, DROP_ip6_src, DROP_ip6_src},
    [FROM_NOBODY] = {DROP_ip6_src, DROP_ip6_src, DROP_ip6_src, DROP_ip6_src},
    [OWN] = {DROP_none, DROP_source_guard, DROP_none, DROP_none},
};

/* Each role of a port with each kind of packet: one counter, or none.  Nothing that is refused is
 * answered, but what has no route, by ICMPv6.  Proves MT-9-1, MT-9-3, MT-9-4. */
START_TEST(roles_and_kinds)
    {
        const uint16_t ports[] = {star_port(0), star_port(1), AGENT_PORT, PORT_B};

        for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
            struct fixture *f = transit_create(2);
            enum drop_reason why = roles[_i][i];
            uint8_t bytes[PACKET_ROOM];

            f->mangled = true;
            transit_down(f, bytes, START, 2);
            uint64_t total = fixture_total_drops(f);
            size_t len = build_kind(bytes, (enum kind) _i);
            fixture_input(f, ports[i], bytes, len);
            ck_assert_msg(fixture_total_drops(f) == total + (why != DROP_none), "port %zu", i);
            ck_assert_msg(!why || fixture_drops(f, why) == 1, "port %zu", i);
            ck_assert_msg(!why || why == DROP_no_route || !f->n_frames, "port %zu", i);
            fixture_destroy(f);
        }
    }
END_TEST

Suite *
guard_suite(void)
{
    Suite *s = suite_create("guard");
    TCase *tc = tcase_create("guard");

    tcase_add_test(tc, hosts_of_an_edge);
    tcase_add_test(tc, host_of_an_agent);
    tcase_add_test(tc, agents);
    tcase_add_test(tc, agents_malformed);
    tcase_add_loop_test(tc, roles_and_kinds, 0, N_KINDS);
    tcase_add_loop_test(tc, roce_port_at_an_edge, 0, sizeof not_roce / sizeof not_roce[0]);
    tcase_add_loop_test(tc, roce_port_at_an_agent, 0, sizeof not_roce / sizeof not_roce[0]);
    tcase_add_test(tc, proxies_are_announced);
    suite_add_tcase(s, tc);
    return s;
}
