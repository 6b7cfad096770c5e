/* SPDX-License-Identifier: Apache-2.0
 *
 * What End.MT and End.Replicate make of the IPv6 headers around an SRH: extension headers before
 * it, ECN, hop limits, the inner packet.
 */
#include <check.h>

#include "lib/ecn.h"
#include "lib/icmp6.h"
#include "swedge/swedge.h"
#include "tests/unit/outer-fixture.h"
#include "tests/unit/suites.h"

/* What is inside has to be what an endpoint takes: IPv6, UDP right behind it, nothing behind
 * that. */
static const struct {
    const char *what;
    uint8_t nh;       /* of the SRH; 0: IPv6. */
    uint8_t inner_nh; /* of the inner packet; 0: UDP. */
    uint16_t ofs;     /* of a byte of the inner packet to change, if there is 'with' (XOR). */
    uint8_t with;
    uint8_t option; /* bytes of Destination Options before UDP. */
    uint8_t trailer;
    enum drop_reason why;
} inners[] = {
    {"UDP", IP6_NH_UDP, 0, 0, 0, 0, 0, DROP_mt_inner},
    {"IPv4", 4, 0, 0, 0, 0, 0, DROP_mt_inner},
    {"nothing", IP6_NH_NONE, 0, 0, 0, 0, 0, DROP_mt_inner},
    {"ICMPv6", IP6_NH_ICMPV6, 0, 0, 0, 0, 0, DROP_mt_inner},
    {"a fragment", IP6_NH_FRAGMENT, 0, 0, 0, 0, 0, DROP_mt_inner},
    {"version 4", 0, 0, 0, 0x20, 0, 0, DROP_inner_malformed},
    {"too short", 0, 0, 4, 0x10, 0, 0, DROP_inner_malformed},
    {"multicast source", 0, 0, 8, 0xff ^ 0xfd, 0, 0, DROP_inner_malformed},
    {"IPv6 in IPv6 in IPv6", 0, IP6_NH_IPV6, 0, 0, 0, 0, DROP_mt_inner},
    {"TCP", 0, 6, 0, 0, 0, 0, DROP_mt_inner},
    {"another port", 0, 0, 40 + 3, 1, 0, 0, DROP_mt_inner},
    {"an option", 0, IP6_NH_DSTOPT, 0, 0, 8, 0, DROP_mt_inner},
    {"hop-by-hop options", 0, IP6_NH_HOPOPT, 0, 0, 8, 0, DROP_mt_inner},
    {"a transport version", 0, 0, 40 + 8 + 1, 1, 0, 0, DROP_roce_tver},
    {"something behind it", 0, 0, 0, 0, 0, 4, DROP_mt_inner},
};

/* Proves MT-6-R8200-3. */
START_TEST(inner_packet)
    {
        struct fixture *f = fixture_create(&swedge_class, 1);
        struct roce_spec spec = transit_write(START);
        struct outer o = outer_plain();
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
        size_t len = roce_build(inner, &spec);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) inner;

        if (inners[_i].option) {
            memmove(inner + IP6_HDR_LEN + 8, inner + IP6_HDR_LEN, len - IP6_HDR_LEN);
            memcpy(inner + IP6_HDR_LEN, (uint8_t[8]){IP6_NH_UDP, 0, 1, 4}, 8); /* PadN. */
            len += 8;
            ip->plen = be16_put((uint16_t) (len - IP6_HDR_LEN));
        }
        ip->nh = inners[_i].inner_nh || inners[_i].option ? inners[_i].inner_nh : ip->nh;
        inner[inners[_i].ofs] ^= inners[_i].with;
        memset(inner + len, 0, inners[_i].trailer);
        o.inner_nh = inners[_i].nh ? inners[_i].nh : o.inner_nh;
        outer_put_mt(&o, STAR_EDGE_ID, 0, 1, 0);
        fixture_input(f, AGENT_PORT, bytes,
                      outer_build(bytes, &o, inner, len + inners[_i].trailer));
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_msg(fixture_drops(f, inners[_i].why) == 1, "%s: not counted as %s",
                      inners[_i].what, drop_name(inners[_i].why));
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* RFC 6040 figure 4: by inner, then by outer field, Not-ECT, ECT(1), ECT(0), CE. */
#define DROPPED 0xff
static const uint8_t marks[4][4] = {
    {ECN_NOT_ECT, ECN_NOT_ECT, ECN_NOT_ECT, DROPPED},
    {ECN_ECT1, ECN_ECT1, ECN_ECT1, ECN_CE},
    {ECN_ECT0, ECN_ECT1, ECN_ECT0, ECN_CE},
    {ECN_CE, ECN_CE, ECN_CE, ECN_CE},
};

/* Each cell; DSCP, flow label and hop limit are the inner packet's, and each makes one hop.
 *
 * Proves MT-6-R6040-2, MT-6-R2473-2. */
START_TEST(ecn_and_hop)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct outer o = outer_plain();
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
        unsigned n_dropped = 0;

        outer_put_mt(&o, STAR_EDGE_ID, 0, 2, 0);
        for (uint8_t cell = 0; cell < 16; cell++) {
            struct roce_spec spec = transit_write(START + cell);
            uint8_t mark = marks[cell >> 2][cell & 3];
            size_t inner_len = roce_build(inner, &spec);

            ip6_set_vtf((struct ip6_hdr_wire *) inner, 0xb8 | cell >> 2, 0x54321);
            inner[7] = 2;
            size_t len = outer_build(bytes, &o, inner, inner_len);
            ip6_set_vtf((struct ip6_hdr_wire *) bytes, 0x54 | (cell & 3), 0x12345);
            fixture_input(f, AGENT_PORT, bytes, len);
            n_dropped += mark == DROPPED;
            ck_assert_uint_eq(f->n_frames, mark == DROPPED ? 0 : 2);
            ck_assert_uint_eq(fixture_drops(f, DROP_ecn_ce), n_dropped);
            for (unsigned i = 0; i < f->n_frames; i++) {
                const struct ip6_hdr_wire *ip =
                    (const void *) (f->frames[i].bytes + f->frames[i].h.ip.ofs);
                ck_assert_uint_eq(ip6_tc(ip), 0xb8u | mark);
                ck_assert_uint_eq(ip6_flow_label(ip), 0x54321);
                ck_assert_uint_eq(ip->hlim, 1);
                ck_assert(frame_icrc_ok(&f->frames[i]));
            }
        }
        ck_assert_uint_eq(n_dropped, 1);
        for (uint8_t hlim = 0; hlim < 2; hlim++) {
            struct roce_spec spec = transit_write(START + 16);
            size_t inner_len = roce_build(inner, &spec);

            inner[7] = hlim;
            fixture_input(f, AGENT_PORT, bytes, outer_build(bytes, &o, inner, inner_len));
            ck_assert_uint_eq(f->n_frames, 0);
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_hop_limit), 2);
        ck_assert_uint_eq(fixture_total_drops(f), 3);
        fixture_destroy(f);
    }
END_TEST

#define PADN         1, 4, 0, 0, 0, 0 /* the IPv6 option. */
#define HEADERS(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* Extension headers before the SRH.  'pointer': of the option that is complained about. */
static const struct {
    uint8_t first;
    const uint8_t *bytes;
    size_t len;
    enum drop_reason why;
    uint8_t pointer;
} headers[] = {
    {IP6_NH_HOPOPT, HEADERS(43, 0, PADN), DROP_none, 0},
    {IP6_NH_DSTOPT, HEADERS(43, 0, PADN), DROP_none, 0},
    {IP6_NH_HOPOPT, HEADERS(60, 0, PADN, 43, 0, PADN), DROP_none, 0},
    {IP6_NH_DSTOPT, HEADERS(43, 0, 0x1e, 4, 0, 0, 0, 0), DROP_none, 0}, /* unknown: skip. */
    {IP6_NH_DSTOPT, HEADERS(0, 0, PADN, 43, 0, PADN), DROP_ext_chain, 0},
    /* Two SRHs, the first with a list of its own. */
    {IP6_NH_ROUTING,
     HEADERS(43, 2, 4, 0, 0, 0, 0, 0, 0xfd, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
     DROP_srh_malformed, 0},
    /* Routing headers of unknown type, without and with segments left. */
    {IP6_NH_ROUTING, HEADERS(43, 0, 0, 0, 0, 0, 0, 0), DROP_none, 0},
    {IP6_NH_ROUTING, HEADERS(43, 0, 0, 1, 0, 0, 0, 0), DROP_routing_header, 0},
    {IP6_NH_HOPOPT, HEADERS(43, 0, PADN, 43, 0, 253, 255, 0, 0, 0, 0), DROP_routing_header, 0},
    /* Nine headers with the SRH. */
    {IP6_NH_DSTOPT,
     HEADERS(60, 0, PADN, 60, 0, PADN, 60, 0, PADN, 60, 0, PADN, 60, 0, PADN, 60, 0, PADN, 60, 0,
             PADN, 43, 0, PADN),
     DROP_ext_chain, 0},
    /* Unknown options of action 01, 10 and 11; behind another one. */
    {IP6_NH_DSTOPT, HEADERS(43, 0, 0x5e, 4, 0, 0, 0, 0), DROP_ip6_option, 0},
    {IP6_NH_DSTOPT, HEADERS(43, 0, 0x9e, 4, 0, 0, 0, 0), DROP_ip6_option, 42},
    {IP6_NH_DSTOPT, HEADERS(43, 0, 0xde, 4, 0, 0, 0, 0), DROP_ip6_option, 0},
    {IP6_NH_HOPOPT, HEADERS(60, 0, PADN, 43, 0, 1, 0, 0x9e, 2, 0, 0), DROP_ip6_option, 52},
    {IP6_NH_HOPOPT, HEADERS(43, 0, 0x9e, 4, 0, 0, 0, 0), DROP_ip6_option, 42},
};

/* By the End.MT SID of an edge, and by the replication SID of a bud.
 *
 * Proves MT-6-R8200-1, MT-6-R8200-2, MT-6-R8200-4, MT-6-R9524-7. */
START_TEST(extension_headers)
    {
        static const char *const functions[] = {"mt", "rs"};
        struct in6_addr agent = node_address(STAR_AGENT_ID);

        for (unsigned i = 0; i < 2; i++) {
            struct fixture *f = i ? transit_create(1) : fixture_create(&swedge_class, 1);
            struct outer o = outer_plain();

            o.dst_function = functions[i];
            o.first_nh = headers[_i].first;
            o.before = headers[_i].bytes;
            o.before_len = headers[_i].len;
            outer_put_mt(&o, STAR_EDGE_ID, 0, 1, 0);
            struct roce_spec spec = outer_feed(f, &o, START);
            ck_assert_uint_eq(fixture_total_drops(f), headers[_i].why != DROP_none);
            if (headers[_i].why) {
                ck_assert_uint_eq(fixture_drops(f, headers[_i].why), 1);
            }
            if (!headers[_i].why) {
                ck_assert_uint_eq(f->n_frames, i ? 3 : 1);
                check_copy(&f->frames[0], 0, &spec);
            } else if (headers[_i].pointer) {
                ck_assert_uint_eq(f->n_frames, 1);
                check_icmp6_error(&f->frames[0], AGENT_PORT, ICMP6_PARAMETER,
                                  ICMP6_PARAMETER_OPTION, headers[_i].pointer);
                ck_assert_mem_eq(f->frames[0].bytes + f->frames[0].h.ip.ofs
                                     + offsetof(struct ip6_hdr_wire, dst),
                                 &agent, sizeof agent);
            } else {
                ck_assert_uint_eq(f->n_frames, 0);
            }
            fixture_destroy(f);
        }
    }
END_TEST

/* A Routing header behind the SRH is the business of the nodes that take the SRH off: receivers get
 * no copy if it has segments left, nodes do.
 *
 * Proves MT-6-R8200-4. */
START_TEST(routing_header_behind_srh)
    {
        static const char *const functions[] = {"mt", "rs"};

        for (unsigned i = 0; i < 4; i++) {
            bool bud = i / 2, stops = i % 2;
            struct fixture *f = bud ? transit_create(1) : fixture_create(&swedge_class, 1);
            struct roce_spec spec = transit_write(START);
            struct outer o = outer_plain();
            uint8_t inner[PACKET_ROOM] = {IP6_NH_IPV6, 0, 253, stops}, bytes[PACKET_ROOM];

            o.dst_function = functions[bud];
            o.inner_nh = IP6_NH_ROUTING;
            outer_put_mt(&o, STAR_EDGE_ID, 0, 1, 0);
            size_t inner_len = 8 + roce_build(inner + 8, &spec);
            fixture_input(f, AGENT_PORT, bytes, outer_build(bytes, &o, inner, inner_len));
            ck_assert_uint_eq(f->n_frames, !stops + 2u * bud);
            if (!stops) {
                check_copy(&f->frames[0], 0, &spec);
            }
            ck_assert_uint_eq(fixture_drops(f, DROP_routing_header), stops);
            ck_assert_uint_eq(fixture_total_drops(f), stops);
            fixture_destroy(f);
        }
    }
END_TEST

/* All that a replicator need not understand goes on as it came.
 *
 * Proves MT-6-R9524-3, MT-6-R9524-4. */
START_TEST(replica_of_anything)
    {
        struct fixture *f = transit_create(0);
        struct roce_spec spec = transit_write(START);
        struct outer o = outer_plain();
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];

        o.dst_function = "rs";
        o.before = (const uint8_t[]){43, 0, PADN};
        o.before_len = 8;
        o.first_nh = IP6_NH_DSTOPT;
        o.flags = 0x5a;
        o.tag = 0x1234;
        outer_put_pad1(&o);
        outer_put_mt(&o, OTHER_EDGE, 0, 2, 0xa5);
        outer_put_tlv(&o, 200, 17, 0x77);
        outer_put_tlv(&o, SRH_TLV_PADN, 3, 0xff);
        size_t len = outer_build(bytes, &o, inner, roce_build(inner, &spec));
        ip6_set_vtf((struct ip6_hdr_wire *) bytes, 0xff, 0xfffff);
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        transit_check_replica(&f->frames[0], PORT_A, node_sid(CHILD_A, GROUP_RS), bytes, len);
        transit_check_replica(&f->frames[1], PORT_B, node_sid(CHILD_B, SID_FUNC_END_MT), bytes,
                              len);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* An SRH is the business of the node that the destination is of: others forward whatever it says.
 *
 * Proves MT-6-R8754-12. */
START_TEST(srh_of_another_node)
    {
        struct fixture *f = transit_create(1);
        struct roce_spec spec = transit_write(START);
        struct outer o = outer_plain();
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;

        f->mangled = true;
        outer_put_mt(&o, STAR_EDGE_ID, 0, 1, 0)->len = 3;
        outer_put_tlv(&o, 77, 200, 0);
        o.tlvs_len = 64; /* which ends in the middle of that. */
        size_t len = outer_build(bytes, &o, inner, roce_build(inner, &spec));
        ip->dst = node_sid(CHILD_A, SID_FUNC_END_MT);
        for (unsigned left = 0; left < 256; left += 5) {
            bytes[IP6_HDR_LEN + offsetof(struct srh_hdr, segments_left)] = (uint8_t) left;
            bytes[IP6_HDR_LEN + offsetof(struct srh_hdr, last_entry)] = (uint8_t) (255 - left);
            fixture_input(f, AGENT_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 1);
            transit_check_replica(&f->frames[0], PORT_A, ip->dst, bytes, len);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* That of the original would be wrong, and an endpoint checks any but 0.
 * Proves MT-5.2-9. */
START_TEST(udp_checksum)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = transit_write(START);
        struct outer o = outer_plain();
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
        size_t len = roce_build(inner, &spec);

        ((struct udp_hdr *) (inner + IP6_HDR_LEN))->csum = be16_put(0x1234);
        outer_put_mt(&o, STAR_EDGE_ID, 0, 2, 0);
        fixture_input(f, AGENT_PORT, bytes, outer_build(bytes, &o, inner, len));
        ck_assert_uint_eq(f->n_frames, 2);
        check_copy(&f->frames[0], 0, &spec);
        check_copy(&f->frames[1], 1, &spec);
        fixture_destroy(f);
    }
END_TEST

Suite *
end_mt_ip_suite(void)
{
    Suite *s = suite_create("end_mt_ip");
    TCase *tc = tcase_create("end_mt_ip");

    tcase_add_loop_test(tc, inner_packet, 0, sizeof inners / sizeof *inners);
    tcase_add_test(tc, ecn_and_hop);
    tcase_add_loop_test(tc, extension_headers, 0, sizeof headers / sizeof *headers);
    tcase_add_test(tc, routing_header_behind_srh);
    tcase_add_test(tc, replica_of_anything);
    tcase_add_test(tc, srh_of_another_node);
    tcase_add_test(tc, udp_checksum);
    suite_add_tcase(s, tc);
    return s;
}
