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
        ip6_build(srh + srh_len, star_source, node_address(CHILD_A), IP6_NH_UDP, 8);
        size_t len = IP6_HDR_LEN + srh_len + IP6_HDR_LEN + 8;
        srh[srh_len + IP6_HDR_LEN + 5] = 8; /* UDP length. */
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, PORT_A);
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

        /* Only End says so: each copy of a group's packet would raise one. */
        ip6_build(bytes, node_address(PARENT), transit_rs(), IP6_NH_ROUTING, 24);
        srh_build(srh, &sid, 1, 2, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_srh_malformed), 4);
        ck_assert_uint_eq(fixture_total_drops(f), 4);
        fixture_destroy(f);
    }
END_TEST

/* A packet to End.DT6, with nothing in the inner one. */
static size_t
to_end_dt6(uint8_t *out, uint8_t outer_tc, uint8_t inner_tc)
{
    struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6);
    uint8_t *inner = ip6_build(out, node_address(PARENT), sid, IP6_NH_IPV6, IP6_HDR_LEN);

    ip6_build(inner, star_source, node_address(CHILD_A), IP6_NH_NONE, 0);
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
    tcase_add_test(tc, end_dt6);
    tcase_add_test(tc, end_dt6_ecn);
    tcase_add_test(tc, end_dt6_padding);
    suite_add_tcase(s, tc);
    return s;
}
