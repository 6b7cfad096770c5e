/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge's behaviours that know no groups: End and End.DT6.
 */
#include <check.h>

#include "lib/ecn.h"
#include "lib/icmp6.h"
#include "swedge/swedge.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

#define SEGMENTS_LEFT offsetof(struct srh_hdr, segments_left)

/* Proves MT-3-2. */
START_TEST(end)
    {
        struct fixture *f = transit_create(0);
        struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END);
        struct in6_addr segments[] = {node_address(CHILD_B), sid, sid};
        uint8_t bytes[256];

        /* Two segments here, then on: one packet out. */
        uint8_t *upper = ip6_build(bytes, node_address(PARENT), sid, IP6_NH_ROUTING, 56 + 16);
        srh_build(upper, segments, 3, 2, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, IP6_HDR_LEN + 56 + 16);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct ip6_hdr_wire *ip = (const void *) (f->frames[0].bytes + f->frames[0].h.ip.ofs);
        ck_assert_uint_eq(f->frames[0].port, PORT_B);
        ck_assert_mem_eq(&ip->dst, &segments[0], 16);
        ck_assert_uint_eq(ip->hlim, 7);
        ck_assert_uint_eq(f->frames[0].h.segments_left, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 0);

        /* The hop limit of an ordinary packet is answered. */
        bytes[7] = 1;
        srh_build(upper, segments, 3, 2, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, IP6_HDR_LEN + 56 + 16);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_PARENT, ICMP6_TIME, ICMP6_TIME_HOP_LIMIT, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_hop_limit), 1);

        /* The path's end takes no upper layer but ICMPv6: Parameter Problem, code 4. */
        bytes[7] = 9;
        srh_build(upper, segments, 3, 0, IP6_NH_UDP);
        fixture_input(f, PORT_PARENT, bytes, IP6_HDR_LEN + 56 + 16);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_PARENT, ICMP6_PARAMETER, ICMP6_PARAMETER_SR_UPPER,
                          IP6_HDR_LEN + 56);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_upper), 1);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-3-2. */
START_TEST(end_dt6)
    {
        struct fixture *f = transit_create(0);
        struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6);
        struct in6_addr segment = sid;
        uint8_t bytes[256];

        uint8_t *srh =
            ip6_build(bytes, node_address(PARENT), sid, IP6_NH_ROUTING, 24 + IP6_HDR_LEN + 8);
        size_t srh_len = srh_build(srh, &segment, 1, 0, IP6_NH_IPV6);
        ip6_build(srh + srh_len, node_address(PARENT), star_source, IP6_NH_UDP, 8);
        size_t len = IP6_HDR_LEN + srh_len + IP6_HDR_LEN + 8;
        srh[srh_len + IP6_HDR_LEN + 5] = 8; /* UDP length. */
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, AGENT_PORT);
        ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + IP6_HDR_LEN + 8);
        srh[srh_len + 7] = 8; /* the hop that it makes here. */
        ck_assert_mem_eq(f->frames[0].bytes + sizeof(struct eth_hdr), srh + srh_len,
                         IP6_HDR_LEN + 8);
        ck_assert_uint_eq(fixture_total_drops(f), 0);

        /* Segments Left is not 0: Parameter Problem, code 0, at that field. */
        srh_build(srh, &segment, 1, 1, IP6_NH_IPV6);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_PARENT, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                          IP6_HDR_LEN + SEGMENTS_LEFT);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_segments_left), 1);

        srh_build(srh, &segment, 1, 0, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_upper), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        fixture_destroy(f);
    }
END_TEST

/* An SRH that contradicts itself: Parameter Problem at Segments Left (RFC 8754
 * section 4.3.1.1), wherever the SRH is; but hosts hear nothing of SIDs. */
START_TEST(end_malformed_srh)
    {
        struct fixture *f = transit_create(1);
        struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END);
        uint8_t bytes[256];
        uint8_t *srh = ip6_build(bytes, node_address(PARENT), sid, IP6_NH_ROUTING, 24);
        size_t len = IP6_HDR_LEN + srh_build(srh, &sid, 1, 2, IP6_NH_NONE);

        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_PARENT, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                          IP6_HDR_LEN + SEGMENTS_LEFT);
        ck_assert_uint_eq(fixture_drops(f, DROP_srh_malformed), 1);

        ip6_build(bytes, star_receiver(0), sid, IP6_NH_ROUTING, 24);
        srh_build(srh, &sid, 1, 2, IP6_NH_NONE);
        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_srh_malformed), 2);

        uint8_t *option = ip6_build(bytes, node_address(PARENT), sid, IP6_NH_DSTOPT, 8 + 24);
        memcpy(option, (uint8_t[8]){IP6_NH_ROUTING, 0, 1, 4}, 8); /* PadN. */
        srh_build(option + 8, &sid, 1, 2, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, len + 8);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_PARENT, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                          IP6_HDR_LEN + 8 + SEGMENTS_LEFT);

        ip6_build(bytes, node_address(PARENT), node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6),
                  IP6_NH_ROUTING, 24);
        srh_build(srh, &sid, 1, 2, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_PARENT, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                          IP6_HDR_LEN + SEGMENTS_LEFT);

        /* No SID of a group says so: each copy of a group's packet would raise one. */
        ip6_build(bytes, node_address(PARENT), transit_rs(), IP6_NH_ROUTING, 24);
        srh_build(srh, &sid, 1, 2, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_srh_malformed), 5);
        ck_assert_uint_eq(fixture_total_drops(f), 5);
        fixture_destroy(f);
    }
END_TEST

/* Routing headers before and behind the SRH; NO: there is none. */
#define NO 0xff
struct routing {
    uint8_t before_left, before_type;
    uint8_t segments_left; /* of the SRH. */
    uint8_t behind_left, behind_type;
    enum drop_reason why;
    uint32_t pointer; /* of the Parameter Problem. */
};

static uint8_t *
put_routing(uint8_t *at, uint8_t nh, uint8_t type, uint8_t segments_left)
{
    memcpy(at, (uint8_t[8]){nh, 0, type, segments_left}, 8);
    return at + 8;
}

#define SRH_LEN (8 + 2 * 16)

/* Writes the packet up to the upper layer 'nh'; returns where that begins. */
static uint8_t *
put_headers(uint8_t *out, const struct routing *r, struct in6_addr sid, uint8_t nh,
            size_t upper_len)
{
    struct in6_addr segments[] = {node_address(CHILD_B), sid};
    bool before = r->before_left != NO, srh = r->segments_left != NO, behind = r->behind_left != NO;
    size_t len = before * 8u + srh * SRH_LEN + behind * 8u + upper_len;
    uint8_t *at = ip6_build(out, node_address(PARENT), sid, IP6_NH_ROUTING, len);

    if (before) {
        at = put_routing(at, srh || behind ? IP6_NH_ROUTING : nh, r->before_type, r->before_left);
    }
    if (srh) {
        at += srh_build(at, segments, 2, r->segments_left, behind ? IP6_NH_ROUTING : nh);
    }
    return behind ? put_routing(at, nh, r->behind_type, r->behind_left) : at;
}

static void
check_routing(struct fixture *f, const struct routing *r, const uint8_t *bytes, size_t len,
              uint16_t out_port)
{
    uint64_t before = fixture_drops(f, r->why), total = fixture_total_drops(f);

    fixture_input(f, PORT_PARENT, bytes, len);
    ck_assert_uint_eq(f->n_frames, 1);
    ck_assert_uint_eq(fixture_total_drops(f), total + (r->why != DROP_none));
    if (r->why == DROP_none) {
        ck_assert_uint_eq(f->frames[0].port, out_port);
        return;
    }
    ck_assert_uint_eq(fixture_drops(f, r->why), before + 1);
    check_icmp6_error(&f->frames[0], PORT_PARENT, ICMP6_PARAMETER,
                      r->why == DROP_sid_upper ? ICMP6_PARAMETER_SR_UPPER : ICMP6_PARAMETER_FIELD,
                      r->pointer);
}

/* RFC 8200 section 4.4: a Routing header of unknown type stops the packet here if it has segments
 * left, and is ignored if not.  One behind an SRH with segments left is for the next segment.
 *
 * Proves MT-6-R8200-4. */
START_TEST(end_unknown_routing)
    {
        static const struct routing cases[] = {
            {1, 0, 1, NO, 0, DROP_routing_header, 42},
            {254, 253, 1, NO, 0, DROP_routing_header, 42},
            {1, 0, 0, NO, 0, DROP_routing_header, 42},
            {1, 3, NO, NO, 0, DROP_routing_header, 42},
            {0, 0, 1, NO, 0, DROP_none, 0},
            {0, 3, 0, NO, 0, DROP_sid_upper, 40 + 8 + SRH_LEN},
            {NO, 0, 1, 1, 0, DROP_none, 0},
            {NO, 0, 0, 1, 0, DROP_routing_header, 40 + SRH_LEN + 2},
            {NO, 0, 0, 0, 0, DROP_sid_upper, 40 + SRH_LEN + 8},
            {0, 0, 0, 1, 0, DROP_routing_header, 40 + 8 + SRH_LEN + 2},
            {1, 0, 0, 1, 0, DROP_routing_header, 42},
            {1, 0, 3, NO, 0, DROP_routing_header, 42}, /* that SRH would be wrong. */
        };
        struct fixture *f = transit_create(1);
        struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END);
        uint8_t bytes[256];

        f->mangled = true; /* forwarded with headers that are the next node's. */
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            uint8_t *upper = put_headers(bytes, &cases[i], sid, IP6_NH_NONE, 0);
            check_routing(f, &cases[i], bytes, (size_t) (upper - bytes), PORT_B);
        }

        /* Hosts hear nothing of SIDs. */
        uint8_t *upper = put_headers(bytes, &cases[0], sid, IP6_NH_NONE, 0);
        ((struct ip6_hdr_wire *) bytes)->src = star_receiver(0);
        fixture_input(f, star_port(0), bytes, (size_t) (upper - bytes));
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-6-R8200-4. */
START_TEST(end_dt6_unknown_routing)
    {
        static const struct routing cases[] = {
            {1, 0, NO, NO, 0, DROP_routing_header, 42},
            {1, 0, 0, NO, 0, DROP_routing_header, 42},
            {0, 0, 0, 0, 0, DROP_none, 0},
            {NO, 0, 0, 9, 5, DROP_routing_header, 40 + SRH_LEN + 2},
            {NO, 0, 1, 9, 5, DROP_sid_segments_left, 40 + SEGMENTS_LEFT},
        };
        struct fixture *f = transit_create(0);
        struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6);
        uint8_t bytes[256];

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            uint8_t *inner = put_headers(bytes, &cases[i], sid, IP6_NH_IPV6, IP6_HDR_LEN);
            ip6_build(inner, node_address(PARENT), star_source, IP6_NH_NONE, 0);
            check_routing(f, &cases[i], bytes, (size_t) (inner - bytes) + IP6_HDR_LEN, AGENT_PORT);
        }
        fixture_destroy(f);
    }
END_TEST

/* A packet to End.DT6, with nothing in the inner one. */
static size_t
to_end_dt6(uint8_t *out, uint8_t outer_tc, uint8_t inner_tc)
{
    struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6);
    uint8_t *inner = ip6_build(out, node_address(PARENT), sid, IP6_NH_IPV6, IP6_HDR_LEN);

    ip6_build(inner, node_address(PARENT), star_source, IP6_NH_NONE, 0);
    ip6_set_vtf((struct ip6_hdr_wire *) out, outer_tc, 0);
    ip6_set_vtf((struct ip6_hdr_wire *) inner, inner_tc, 0x54321);
    return 2 * IP6_HDR_LEN;
}

/* RFC 6040: what the path has marked, the receiver is to see. */
START_TEST(end_dt6_ecn)
    {
        static const struct {
            uint8_t outer, inner, result;
        } cases[] = {
            {ECN_CE, ECN_ECT0, ECN_CE},           {ECN_CE, ECN_ECT1, ECN_CE},
            {ECN_ECT1, ECN_ECT0, ECN_ECT1},       {ECN_NOT_ECT, ECN_ECT0, ECN_ECT0},
            {ECN_ECT0, ECN_NOT_ECT, ECN_NOT_ECT},
        };
        struct fixture *f = transit_create(0);
        uint8_t bytes[256];
        size_t len;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            len = to_end_dt6(bytes, 0x54 | cases[i].outer, 0xb8 | cases[i].inner);
            fixture_input(f, PORT_PARENT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 1);
            const struct ip6_hdr_wire *ip =
                (const void *) (f->frames[0].bytes + f->frames[0].h.ip.ofs);
            ck_assert_uint_eq(ip6_tc(ip), 0xb8u | cases[i].result);
            ck_assert_uint_eq(ip6_flow_label(ip), 0x54321);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        len = to_end_dt6(bytes, ECN_CE, ECN_NOT_ECT);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_ecn_ce), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* What is behind the packet on the link, or behind the inner packet in the outer
 * one, does not go on. */
START_TEST(end_dt6_padding)
    {
        struct fixture *f = transit_create(0);
        uint8_t bytes[256] = {0};
        size_t len = to_end_dt6(bytes, 0, 0);

        fixture_input(f, PORT_PARENT, bytes, len + 10);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + IP6_HDR_LEN);
        ((struct ip6_hdr_wire *) bytes)->plen = be16_put(IP6_HDR_LEN + 4);
        fixture_input(f, PORT_PARENT, bytes, len + 10);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + IP6_HDR_LEN);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

Suite *
end_suite(void)
{
    Suite *s = suite_create("end");
    TCase *tc = tcase_create("end");

    tcase_add_test(tc, end);
    tcase_add_test(tc, end_malformed_srh);
    tcase_add_test(tc, end_unknown_routing);
    tcase_add_test(tc, end_dt6);
    tcase_add_test(tc, end_dt6_unknown_routing);
    tcase_add_test(tc, end_dt6_ecn);
    tcase_add_test(tc, end_dt6_padding);
    suite_add_tcase(s, tc);
    return s;
}
