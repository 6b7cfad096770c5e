/* SPDX-License-Identifier: Apache-2.0
 *
 * uN, uA, End.X and End.DX6 of a swedge: programs hop by hop, to the byte, and each reason why a
 * program ends before its end.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/ecn.h"
#include "lib/fast-cnp.h"
#include "lib/icmp6.h"
#include "lib/icrc.h"
#include "swedge/swedge.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"
#include "tests/unit/usid-fixture.h"

#define UNKNOWN 0x777 /* a node that no link leads to. */

static struct fixture *
create(void)
{
    return usid_create(STAR_EDGE_ID, SPINE_A, SPINE_B);
}

/* A packet by a program, with an inner packet in it to 'to'.  Who is told of errors is on PORT_SA,
 * the inner source on AGENT_PORT. */
static size_t
build(uint8_t *out, struct in6_addr da, struct in6_addr to)
{
    uint8_t *inner = ip6_build(out, node_address(SPINE_A), da, IP6_NH_IPV6, IP6_HDR_LEN + 8);

    ip6_build(inner, star_source, to, IP6_NH_NONE, 8);
    return 2 * IP6_HDR_LEN + 8;
}

/* The same with an SRH; segments[0] is the last one. */
static size_t
build_srh(uint8_t *out, struct in6_addr da, const struct in6_addr *segments, uint8_t n,
          uint8_t segments_left, struct in6_addr to)
{
    size_t srh_len = 8 + 16u * n;
    uint8_t *srh =
        ip6_build(out, node_address(SPINE_A), da, IP6_NH_ROUTING, srh_len + IP6_HDR_LEN + 8);

    srh_build(srh, segments, n, segments_left, IP6_NH_IPV6);
    ip6_build(srh + srh_len, star_source, to, IP6_NH_NONE, 8);
    return 2 * IP6_HDR_LEN + srh_len + 8;
}

static const uint8_t *
sent(const struct fixture *f)
{
    return f->frames[0].bytes + sizeof(struct eth_hdr);
}

/* What comes in leaves by 'port', byte for byte as 'want'. */
static void
check_sent(struct fixture *f, uint16_t in_port, const uint8_t *ip, size_t len, uint16_t port,
           const uint8_t *want, size_t want_len)
{
    uint64_t total = fixture_total_drops(f);

    fixture_input(f, in_port, ip, len);
    ck_assert_uint_eq(fixture_total_drops(f), total);
    ck_assert_uint_eq(f->n_frames, 1);
    ck_assert_uint_eq(f->frames[0].port, port);
    ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + want_len);
    ck_assert_mem_eq(sent(f), want, want_len);
}

/* The packet goes on by 'port' with this destination and so many hops less; nothing else changes. */
static void
check_shifted(struct fixture *f, const uint8_t *ip, size_t len, uint16_t port, struct in6_addr da,
              uint8_t hops)
{
    uint8_t want[PACKET_ROOM];

    memcpy(want, ip, len);
    ((struct ip6_hdr_wire *) want)->dst = da;
    want[7] -= hops;
    check_sent(f, PORT_SA, ip, len, port, want, len);
}

/* What comes in leaves by 'port' as the inner packet alone, one hop on. */
static void
check_unwrapped(struct fixture *f, const uint8_t *ip, size_t len, uint16_t port)
{
    const size_t inner_len = IP6_HDR_LEN + 8;
    uint8_t want[IP6_HDR_LEN + 8];

    memcpy(want, ip + len - inner_len, inner_len);
    want[7]--;
    check_sent(f, PORT_SA, ip, len, port, want, inner_len);
}

/* The packet ends here for this reason.  Nobody is told. */
static void
check_dropped(struct fixture *f, uint16_t port, const uint8_t *ip, size_t len, enum drop_reason why)
{
    uint64_t before = fixture_drops(f, why), total = fixture_total_drops(f);

    fixture_input(f, port, ip, len);
    ck_assert_msg(fixture_drops(f, why) == before + 1, "not %s", drop_name(why));
    ck_assert_uint_eq(fixture_total_drops(f), total + 1);
    ck_assert_uint_eq(f->n_frames, 0);
}

/* The same, but the sender is told. */
static void
check_refused(struct fixture *f, const uint8_t *ip, size_t len, enum drop_reason why, uint8_t type,
              uint8_t code, uint32_t param)
{
    uint64_t before = fixture_drops(f, why), total = fixture_total_drops(f);

    fixture_input(f, PORT_SA, ip, len);
    ck_assert_msg(fixture_drops(f, why) == before + 1, "not %s", drop_name(why));
    ck_assert_uint_eq(fixture_total_drops(f), total + 1);
    ck_assert_uint_eq(f->n_frames, 1);
    check_icmp6_error(&f->frames[0], PORT_SA, type, code, param);
    /* It quotes what came, as it came. */
    ck_assert_mem_eq(f->frames[0].bytes + f->frames[0].h.ip.l4_ofs + sizeof(struct icmp6_wire), ip,
                     len);
}

/*
 * Programs hop by hop.  Destinations are those of draft-filsfils-srv6ops-srv6-ai-backend section
 * 7.2, and of programs like them.
 */

#define HOPS_MAX 7
static const char *const programs[][HOPS_MAX] = {
    {"5f000000010005000300000000000000", "5f000000050003000000000000000000",
     "5f000000030000000000000000000000"},
    {"5f000000020006000400000000000000", "5f000000060004000000000000000000",
     "5f000000040000000000000000000000"},
    {"5f000000010006000300000000000000", "5f000000060003000000000000000000",
     "5f000000030000000000000000000000"},
    /* The last node's End.DT6. */
    {"5f000000010005000300e00300000000", "5f00000005000300e003000000000000",
     "5f0000000300e0030000000000000000"},
    /* A loop back to the agent. */
    {"5f0000000100050003000500010000a1", "5f000000050003000500010000a10000",
     "5f00000003000500010000a100000000", "5f0000000500010000a1000000000000",
     "5f000000010000a10000000000000000", "5f00000000a100000000000000000000"},
    /* Three tiers. */
    {"5f00000001010201030102020102e003", "5f0000000201030102020102e0030000",
     "5f000000030102020102e00300000000", "5f00000002020102e003000000000000",
     "5f0000000102e0030000000000000000"},
    /* To the Replication-SID of a group's root. */
    {"5f000000010005000300f00700000000", "5f00000005000300f007000000000000",
     "5f0000000300f0070000000000000000"},
};

static struct in6_addr
address_of_hex(const char *text)
{
    struct in6_addr addr = IN6ADDR_ANY_INIT;

    ck_assert_uint_eq(hex_bytes(text, addr.s6_addr, sizeof addr), sizeof addr);
    return addr;
}

START_TEST(hop_by_hop)
    {
        for (size_t i = 0; i + 1 < HOPS_MAX && programs[_i][i + 1]; i++) {
            struct in6_addr da = address_of_hex(programs[_i][i]);
            struct in6_addr next = address_of_hex(programs[_i][i + 1]);
            struct fixture *f = usid_create(node_id_of(&da), SPINE_A + 1, node_id_of(&next));
            uint8_t bytes[256] = {0};

            check_shifted(f, bytes, build(bytes, da, FAR_HOST), PORT_SB, next, 1);
            fixture_destroy(f);
        }
    }
END_TEST

/* The whole packet through Leaf1, Spine5 and Leaf3. */
START_TEST(whole_packet)
    {
        static const char inner_text[] = "60200000001c113ffd00000a000000000000000000000001"
                                         "fd00000a000000000000000000000003c00012b7001c0000"
                                         "0400ffff0000001180000001deadbeef5c769f59";
        static const char *const outer_texts[] = {
            "60212345004429405f00000000a1000000000000000000015f000000010005000300000000000000",
            "602123450044293f5f00000000a1000000000000000000015f000000050003000000000000000000",
            "602123450044293e5f00000000a1000000000000000000015f000000030000000000000000000000",
        };
        static const uint16_t nodes[][2] = {{0x100, 0x500}, {0x500, 0x300}, {0x300, 0x500}};
        uint8_t in[256], out[256];

        for (size_t i = 0; i < 3; i++) {
            struct fixture *f = usid_create(nodes[i][0], SPINE_A + 1, nodes[i][1]);
            bool last = i == 2;
            size_t len = hex_bytes(outer_texts[i], in, sizeof in);
            len += hex_bytes(inner_text, in + len, sizeof in - len);
            size_t out_len = last ? 0 : hex_bytes(outer_texts[i + 1], out, sizeof out);
            out_len += hex_bytes(inner_text, out + out_len, sizeof out - out_len);

            f->config.ports[1].peer_address = addr_of("fd00:a::3");
            f->config.routes[0].prefix = addr_of("fd00:a::3");
            fixture_configure(f);
            f->mangled = false;
            out[7] = last ? 0x3e : out[7];
            check_sent(f, PORT_SA, in, len, last ? HOST : PORT_SB, out, out_len);
            ck_assert(frame_icrc_ok(&f->frames[0]));
            fixture_destroy(f);
        }
    }
END_TEST

/* Blocks and uSIDs of other lengths; what is not in the plan's block goes by the routes. */
START_TEST(other_lengths)
    {
        static const struct {
            const char *sid;
            uint8_t block_len, plen;
            const char *da, *next;
        } cases[] = {
            {"5f00:100::", 16, 32, "5f00:100:500:300::", "5f00:500:300::"},
            {"5f00:0:0:100::", 48, 64, "5f00:0:0:100:500:300::", "5f00:0:0:500:300::"},
            {"fcbb:bb00:100::", 32, 40, "fcbb:bb00:102:304::", "fcbb:bb00:203:400::"},
            {"fcbb:bb00:100::", 32, 40, "fcbb:bb00:100:304::", "fcbb:bb00:3:400::"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct fixture *f = create();
            struct route_config *route = &f->config.routes[f->config.n_routes - 1];
            uint8_t bytes[256];

            usid_add_sid(f, hex_addr(cases[i].sid), cases[i].plen, SID_UN, 0);
            f->config.sids[f->config.n_sids - 1].block_len = cases[i].block_len;
            route->prefix = hex_addr(cases[i].next);
            route->plen = (uint8_t) (2 * cases[i].plen - cases[i].block_len);
            fixture_configure(f);
            size_t len = build(bytes, hex_addr(cases[i].da), FAR_HOST);
            if (i == 3) { /* the next 8 bits are 0. */
                check_dropped(f, PORT_SA, bytes, len, DROP_usid_zero);
            } else {
                check_shifted(f, bytes, len, PORT_SB, hex_addr(cases[i].next), 1);
            }
            fixture_destroy(f);
        }
    }
END_TEST

/* uA: behind the node's uSID, and without it; whatever comes behind. */
START_TEST(ua)
    {
        static const struct {
            const char *da, *next;
        } cases[] = {
            {"5f00:0:100:e115:300::", "5f00:0:300::"},
            {"5f00:0:e115:300::", "5f00:0:300::"},
            {"5f00:0:100:e115:e107:e108::", "5f00:0:e107:e108::"}, /* interfaces only. */
            {"5f00:0:e115:e107:e108::", "5f00:0:e107:e108::"},
            {"5f00:0:e115:777::", "5f00:0:777::"},
            {"5f00:0:e115:0:300::", "5f00:0:0:300::"},
            {"5f00:0:e115:100::", "5f00:0:100::"}, /* also if that is this node's. */
        };
        struct fixture *f = create();
        uint8_t bytes[256];

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            size_t len = build(bytes, hex_addr(cases[i].da), FAR_HOST);
            check_shifted(f, bytes, len, PORT_SB, hex_addr(cases[i].next), 1);
        }
        /* The way ends behind the link: the inner packet takes it. */
        check_unwrapped(f, bytes, build(bytes, hex_addr("5f00:0:e115::"), OWN_HOST), PORT_SB);
        check_unwrapped(f, bytes, build(bytes, hex_addr("5f00:0:100:e115::"), FAR_HOST), PORT_SB);
        /* Behind own uSIDs. */
        check_shifted(f, bytes, build(bytes, hex_addr("5f00:0:100:100:e115:300::"), FAR_HOST),
                      PORT_SB, hex_addr("5f00:0:300::"), 2);

        f->down[PORT_SB] = true;
        check_dropped(f, PORT_SA, bytes, build(bytes, hex_addr("5f00:0:e115:300::"), FAR_HOST),
                      DROP_usid_link_down);
        check_dropped(f, PORT_SA, bytes, build(bytes, hex_addr("5f00:0:100:e115::"), FAR_HOST),
                      DROP_usid_link_down);
        bytes[7] = 1;
        ((struct ip6_hdr_wire *) bytes)->dst = hex_addr("5f00:0:e115:300::");
        check_refused(f, bytes, 2 * IP6_HDR_LEN + 8, DROP_hop_limit, ICMP6_TIME,
                      ICMP6_TIME_HOP_LIMIT, 0);
        f->config.n_ports--; /* the port is no more. */
        f->config.n_routes--;
        fixture_configure(f);
        check_dropped(f, PORT_SA, bytes, build(bytes, hex_addr("5f00:0:e115:300::"), FAR_HOST),
                      DROP_usid_link_down);
        fixture_destroy(f);
    }
END_TEST

/* Each way in which a program can be no good.  The routes lead to UNKNOWN and away from SPINE_B. */
START_TEST(drops)
    {
        struct fixture *f = create();
        struct route_config *route = &f->config.routes[f->config.n_routes - 1];
        uint8_t bytes[256];
        size_t len;

        route->prefix = node_locator(UNKNOWN);
        route->plen = 48;
        fixture_configure(f);
        check_dropped(f, PORT_SA, bytes, build(bytes, hex_addr("5f00:0:100:777:300::"), OWN_HOST),
                      DROP_usid_unknown);
        check_dropped(f, PORT_SA, bytes, build(bytes, hex_addr("5f00:0:100:0:500::"), OWN_HOST),
                      DROP_usid_zero);
        check_dropped(f, PORT_SA, bytes, build(bytes, hex_addr("5f00:0:100::2"), OWN_HOST),
                      DROP_usid_zero);

        f->config.routes[f->config.n_routes - 1].prefix = node_locator(SPINE_B);
        f->config.routes[f->config.n_routes - 1].port = PORT_SA;
        f->config.routes[f->config.n_routes - 1].next_hop = node_address(SPINE_A);
        fixture_configure(f);
        len = build(bytes, hex_addr("5f00:0:100:600:300::"), OWN_HOST);
        check_shifted(f, bytes, len, PORT_SB, hex_addr("5f00:0:600:300::"), 1);
        f->down[PORT_SB] = true;
        check_dropped(f, PORT_SA, bytes, len, DROP_usid_link_down);
        f->down[PORT_SB] = false;

        /* Functions that the node has not. */
        len = build(bytes, hex_addr("5f00:0:100:e177:300::"), OWN_HOST);
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_SA, ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_NO_ROUTE, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_unknown), 1);

        len = build(bytes, hex_addr("5f00:0:100:500:300::"), OWN_HOST);
        bytes[7] = 1;
        check_refused(f, bytes, len, DROP_hop_limit, ICMP6_TIME, ICMP6_TIME_HOP_LIMIT, 0);
        bytes[7] = 2;
        check_shifted(f, bytes, len, PORT_SA, hex_addr("5f00:0:500:300::"), 1);
        fixture_destroy(f);
    }
END_TEST

/* Own uSIDs in a row cost a hop each; a container full of them is taken, and one more. */
START_TEST(own_usids)
    {
        struct in6_addr full = hex_addr("5f00:0:100:100:100:100:100:100");
        struct in6_addr end[] = {hex_addr("5f00:0:100::")}, more[] = {hex_addr("5f00:0:100:100::")};
        struct in6_addr ends_far[] = {hex_addr("5f00:0:100:500:300::")};
        struct fixture *f = create();
        uint8_t bytes[256];
        size_t len = build(bytes, hex_addr("5f00:0:100:100:100:500:300::"), OWN_HOST);

        check_shifted(f, bytes, len, PORT_SA, hex_addr("5f00:0:500:300::"), 3);
        bytes[7] = 4;
        check_shifted(f, bytes, len, PORT_SA, hex_addr("5f00:0:500:300::"), 3);
        bytes[7] = 3;
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_SA, ICMP6_TIME, ICMP6_TIME_HOP_LIMIT, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_hop_limit), 1);

        check_unwrapped(f, bytes, build(bytes, full, OWN_HOST), HOST);
        check_unwrapped(f, bytes, build_srh(bytes, full, end, 1, 1, OWN_HOST), HOST);
        check_dropped(f, PORT_SA, bytes, build_srh(bytes, full, more, 1, 1, OWN_HOST),
                      DROP_usid_own_limit);
        len = build_srh(bytes, full, ends_far, 1, 1, OWN_HOST);
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, PORT_SA);
        fixture_destroy(f);
    }
END_TEST

/* Behind the node's own uSID its address is not meant, but as a destination it is. */
START_TEST(own_address_wins)
    {
        struct fixture *f = create();
        struct in6_addr own = node_address(STAR_EDGE_ID);
        uint8_t bytes[256];

        uint8_t *udp = ip6_build(bytes, node_address(SPINE_A), own, IP6_NH_UDP, 8);
        udp[5] = 8;
        check_refused(f, bytes, IP6_HDR_LEN + 8, DROP_not_for_us, ICMP6_UNREACHABLE,
                      ICMP6_UNREACHABLE_PORT, 0);

        /* As the next segment, too: uN does not answer in its place. */
        struct in6_addr sids[] = {node_sid(STAR_EDGE_ID, SID_FUNC_END), node_locator(STAR_EDGE_ID)};
        for (size_t i = 0; i < 2; i++) {
            udp = ip6_build(bytes, node_address(SPINE_A), sids[i], IP6_NH_ROUTING, 24 + 8);
            srh_build(udp, &own, 1, 1, IP6_NH_UDP);
            udp[24 + 5] = 8;
            fixture_input(f, PORT_SA, bytes, IP6_HDR_LEN + 24 + 8);
            ck_assert_uint_eq(fixture_drops(f, DROP_not_for_us), i + 2);
            ck_assert_uint_eq(f->n_frames, 1);
            check_icmp6_error(&f->frames[0], PORT_SA, ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_PORT, 0);
        }
        fixture_destroy(f);
    }
END_TEST

/* A node that only shifts does not look behind the IPv6 header; one at which the path ends does. */
START_TEST(malformed)
    {
        struct in6_addr segment = hex_addr("5f00:0:600::"), to = OWN_HOST;
        struct fixture *f = create();
        uint8_t bytes[256], *srh = bytes + IP6_HDR_LEN;
        size_t len =
            build_srh(bytes, hex_addr("5f00:0:100:500:300::"), &segment, 1, 9, to); /* too many. */
        uint32_t pointer = IP6_HDR_LEN + offsetof(struct srh_hdr, segments_left);

        check_shifted(f, bytes, len, PORT_SA, hex_addr("5f00:0:500:300::"), 1);
        ((struct ip6_hdr_wire *) bytes)->dst = hex_addr("5f00:0:e115:300::");
        check_shifted(f, bytes, len, PORT_SB, hex_addr("5f00:0:300::"), 1);
        ((struct ip6_hdr_wire *) bytes)->dst = hex_addr("5f00:0:100::");
        check_refused(f, bytes, len, DROP_srh_malformed, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                      pointer);
        ((struct ip6_hdr_wire *) bytes)->dst = hex_addr("5f00:0:e115::");
        check_refused(f, bytes, len, DROP_srh_malformed, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                      pointer);

        /* A TLV that runs over the SRH's end, room for 8 bytes of which is made. */
        len = build_srh(bytes, hex_addr("5f00:0:100:500:300::"), &segment, 1, 1, to);
        memmove(srh + 32, srh + 24, IP6_HDR_LEN + 8);
        memcpy(srh + 24, (uint8_t[8]){200, 99}, 8);
        srh[1]++;
        ((struct ip6_hdr_wire *) bytes)->plen = be16_put((uint16_t) (len + 8 - IP6_HDR_LEN));
        check_shifted(f, bytes, len + 8, PORT_SA, hex_addr("5f00:0:500:300::"), 1);
        ((struct ip6_hdr_wire *) bytes)->dst = hex_addr("5f00:0:100::");
        check_dropped(f, PORT_SA, bytes, len + 8, DROP_srh_tlv);

        /* A header chain that ends nowhere, and an inner packet that is cut off. */
        uint8_t *hop = ip6_build(bytes, node_address(SPINE_A), hex_addr("5f00:0:100:500:300::"),
                                 IP6_NH_DSTOPT, 8);
        memcpy(hop, (uint8_t[8]){IP6_NH_NONE, 77}, 8);
        check_shifted(f, bytes, IP6_HDR_LEN + 8, PORT_SA, hex_addr("5f00:0:500:300::"), 1);
        ((struct ip6_hdr_wire *) bytes)->dst = hex_addr("5f00:0:100::");
        check_dropped(f, PORT_SA, bytes, IP6_HDR_LEN + 8, DROP_ext_chain);
        ip6_build(bytes, node_address(SPINE_A), hex_addr("5f00:0:100::"), IP6_NH_IPV6, 8);
        check_dropped(f, PORT_SA, bytes, IP6_HDR_LEN + 8, DROP_inner_malformed);
        fixture_destroy(f);
    }
END_TEST

/* PSP: the SRH goes at the node before the last container, whatever uSIDs that still has. */
START_TEST(psp)
    {
        struct in6_addr segments[] = {hex_addr("5f00:0:500:300::"), hex_addr("5f00:0:600:100::")};
        struct in6_addr sids[] = {hex_addr("5f00:0:100::"), hex_addr("5f00:0:e114::"),
                                  hex_addr("5f00:0:100:e114::")};
        struct fixture *f = create();
        uint8_t bytes[256], want[256];

        for (size_t i = 0; i < sizeof sids / sizeof *sids; i++) {
            size_t len = build_srh(bytes, sids[i], segments, 2, 1, FAR_HOST);
            size_t want_len = build(want, segments[0], FAR_HOST);

            want[7]--;
            check_sent(f, PORT_SB, bytes, len, PORT_SA, want, want_len);

            /* Behind options, which are then in front of the inner packet. */
            memmove(bytes + IP6_HDR_LEN + 8, bytes + IP6_HDR_LEN, len - IP6_HDR_LEN);
            memcpy(bytes + IP6_HDR_LEN, (uint8_t[8]){IP6_NH_ROUTING, 0, 1, 4}, 8);
            bytes[6] = IP6_NH_DSTOPT;
            bytes[5] += 8;
            memmove(want + IP6_HDR_LEN + 8, want + IP6_HDR_LEN, want_len - IP6_HDR_LEN);
            memcpy(want + IP6_HDR_LEN, (uint8_t[8]){IP6_NH_IPV6, 0, 1, 4}, 8);
            want[6] = IP6_NH_DSTOPT;
            want[5] += 8;
            check_sent(f, PORT_SB, bytes, len + 8, PORT_SA, want, want_len + 8);
        }

        /* A segment is left: the SRH stays.  So it does at End and End.X, which have no flavors. */
        size_t len = build_srh(bytes, sids[0], segments, 2, 2, FAR_HOST);
        memcpy(want, bytes, len);
        ((struct ip6_hdr_wire *) want)->dst = segments[1];
        want[7]--;
        want[IP6_HDR_LEN + offsetof(struct srh_hdr, segments_left)] = 1;
        check_sent(f, PORT_SA, bytes, len, PORT_SB, want, len);
        struct in6_addr plain[] = {node_sid(STAR_EDGE_ID, SID_FUNC_END),
                                   node_sid(STAR_EDGE_ID, SID_FUNC_END_X + PORT_SA)};
        for (size_t i = 0; i < 2; i++) {
            len = build_srh(bytes, plain[i], segments, 1, 1, FAR_HOST);
            memcpy(want, bytes, len);
            ((struct ip6_hdr_wire *) want)->dst = segments[0];
            want[7]--;
            want[IP6_HDR_LEN + offsetof(struct srh_hdr, segments_left)] = 0;
            check_sent(f, PORT_SB, bytes, len, PORT_SA, want, len);
        }

        /* The next container's node has to be adjacent, too, and there may be no hop left. */
        segments[0] = hex_addr("5f00:0:777:300::");
        check_dropped(f, PORT_SA, bytes, build_srh(bytes, sids[0], segments, 1, 1, FAR_HOST),
                      DROP_usid_unknown);
        segments[0] = hex_addr("5f00:0:500:300::");
        f->down[PORT_SA] = true;
        check_dropped(f, PORT_SB, bytes, build_srh(bytes, sids[0], segments, 1, 1, FAR_HOST),
                      DROP_usid_link_down);
        f->down[PORT_SA] = false;
        len = build_srh(bytes, sids[0], segments, 1, 1, FAR_HOST);
        bytes[7] = 1;
        check_refused(f, bytes, len, DROP_hop_limit, ICMP6_TIME, ICMP6_TIME_HOP_LIMIT, 0);
        fixture_destroy(f);
    }
END_TEST

/* The end of a path: USD, with or without an SRH that has nothing left, and what else may be there. */
START_TEST(path_end)
    {
        const struct in6_addr sids[] = {hex_addr("5f00:0:100::"), hex_addr("5f00:0:e115::")};
        struct in6_addr segment = hex_addr("5f00:0:100::");
        struct fixture *f = create();
        uint8_t bytes[256];
        size_t len;

        check_unwrapped(f, bytes, build(bytes, sids[0], OWN_HOST), HOST);
        check_unwrapped(f, bytes, build(bytes, sids[0], star_source), AGENT_PORT);
        check_unwrapped(f, bytes, build_srh(bytes, sids[0], &segment, 1, 0, OWN_HOST), HOST);
        check_unwrapped(f, bytes, build_srh(bytes, sids[1], &segment, 1, 0, OWN_HOST), PORT_SB);

        /* Its last hop is the inner packet's. */
        len = build(bytes, sids[0], OWN_HOST);
        bytes[7] = 1;
        check_unwrapped(f, bytes, len, HOST);
        bytes[IP6_HDR_LEN + 7] = 1;
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], AGENT_PORT, ICMP6_TIME, ICMP6_TIME_HOP_LIMIT, 0);

        for (size_t i = 0; i < 2; i++) {
            uint8_t *udp = ip6_build(bytes, node_address(SPINE_A), sids[i], IP6_NH_UDP, 8);
            udp[5] = 8;
            check_refused(f, bytes, IP6_HDR_LEN + 8, DROP_sid_upper, ICMP6_PARAMETER,
                          ICMP6_PARAMETER_SR_UPPER, IP6_HDR_LEN);
            /* An echo request that is none. */
            ip6_build(bytes, node_address(SPINE_A), sids[i], IP6_NH_ICMPV6, 8);
            check_dropped(f, PORT_SA, bytes, IP6_HDR_LEN + 8, DROP_icmp_malformed);
        }
        fixture_destroy(f);
    }
END_TEST

/* RFC 6040 where a path ends. */
START_TEST(path_end_ecn)
    {
        const struct in6_addr sids[] = {hex_addr("5f00:0:100::"), hex_addr("5f00:0:e115::"),
                                        hex_addr("5f00:0:100:e003::"),
                                        hex_addr("5f00:0:100:e202::")};
        struct fixture *f = create();
        uint8_t bytes[256];

        for (size_t i = 0; i < sizeof sids / sizeof *sids; i++) {
            size_t len = build(bytes, sids[i], OWN_HOST);

            ip6_set_vtf((struct ip6_hdr_wire *) bytes, 0x54 | ECN_CE, 0);
            ip6_set_vtf((struct ip6_hdr_wire *) (bytes + IP6_HDR_LEN), 0xb8 | ECN_ECT0, 0x54321);
            fixture_input(f, PORT_SA, bytes, len);
            ck_assert_uint_eq(f->n_frames, 1);
            const struct ip6_hdr_wire *ip = (const void *) sent(f);
            ck_assert_uint_eq(ip6_tc(ip), 0xb8 | ECN_CE);
            ck_assert_uint_eq(ip6_flow_label(ip), 0x54321);
            ip6_set_vtf((struct ip6_hdr_wire *) (bytes + IP6_HDR_LEN), 0xb8, 0x54321);
            check_dropped(f, PORT_SA, bytes, len, DROP_ecn_ce);
        }
        fixture_destroy(f);
    }
END_TEST

/* Where a path ends the packet goes to a host or agent of this node, or nowhere. */
START_TEST(no_detour)
    {
        const struct in6_addr sids[] = {hex_addr("5f00:0:100::"), hex_addr("5f00:0:100:e003::")};
        struct in6_addr next = hex_addr("5f00:0:100:e000::");
        struct fixture *f = create();
        uint8_t bytes[256];

        for (size_t i = 0; i < 2; i++) {
            check_dropped(f, PORT_SA, bytes, build(bytes, sids[i], FAR_HOST), DROP_usid_link_down);
            check_dropped(f, PORT_SB, bytes, build(bytes, sids[i], FAR_HOST), DROP_usid_link_down);
            check_dropped(f, PORT_SA, bytes, build(bytes, sids[i], node_address(SPINE_A)),
                          DROP_usid_link_down);
            check_unwrapped(f, bytes, build(bytes, sids[i], OWN_HOST), HOST);
            f->down[HOST] = true;
            check_dropped(f, PORT_SA, bytes, build(bytes, sids[i], OWN_HOST), DROP_usid_link_down);
            f->down[HOST] = false;

            /* To this node itself. */
            size_t len = build(bytes, sids[i], node_address(STAR_EDGE_ID));
            bytes[IP6_HDR_LEN + 6] = IP6_NH_ICMPV6;
            check_dropped(f, PORT_SA, bytes, len, DROP_icmp_malformed);
            /* Inside is a program of its own. */
            len = build(bytes, sids[i], hex_addr("5f00:0:100:600:300::"));
            uint8_t want[IP6_HDR_LEN + 8];
            memcpy(want, bytes + IP6_HDR_LEN, sizeof want);
            ((struct ip6_hdr_wire *) want)->dst = hex_addr("5f00:0:600:300::");
            want[7]--;
            check_sent(f, PORT_SA, bytes, len, PORT_SB, want, sizeof want);
            check_dropped(f, PORT_SA, bytes, build(bytes, sids[i], hex_addr("5f00:0:500::")),
                          DROP_usid_link_down);

            fixture_input(f, PORT_SA, bytes, build(bytes, sids[i], addr_of("fd00:77::7")));
            ck_assert_uint_eq(fixture_drops(f, DROP_no_route), 2 * i + 1);
            /* A segment list inside is no way out. */
            uint8_t *inner =
                ip6_build(bytes, node_address(SPINE_A), sids[i], IP6_NH_IPV6, IP6_HDR_LEN + 24);
            uint8_t *srh = ip6_build(inner, node_address(SPINE_A), next, IP6_NH_ROUTING, 24);
            struct in6_addr far = FAR_HOST;
            srh_build(srh, &far, 1, 1, IP6_NH_NONE);
            check_dropped(f, PORT_SA, bytes, 2 * IP6_HDR_LEN + 24, DROP_usid_link_down);
            fixture_input(f, PORT_SA, bytes, build(bytes, sids[i], addr_of("fd00:77::8")));
            ck_assert_uint_eq(fixture_drops(f, DROP_no_route), 2 * i + 2);
        }
        fixture_destroy(f);
    }
END_TEST

/* End.X and End.DX6: out of their port, whatever the routes say. */
START_TEST(of_ports)
    {
        const struct in6_addr end_x = hex_addr("5f00:0:100:e315::");
        const struct in6_addr dx6_host = hex_addr("5f00:0:100:e202::");
        const struct in6_addr dx6_agent = hex_addr("5f00:0:100:e201::");
        struct in6_addr segments[] = {node_address(SPINE_A)};
        struct fixture *f = create();
        uint8_t bytes[256], want[256];

        size_t len = build_srh(bytes, end_x, segments, 1, 1, FAR_HOST);
        memcpy(want, bytes, len);
        ((struct ip6_hdr_wire *) want)->dst = segments[0];
        want[7]--;
        want[IP6_HDR_LEN + offsetof(struct srh_hdr, segments_left)] = 0;
        check_sent(f, PORT_SA, bytes, len, PORT_SB, want, len);
        len = build(bytes, end_x, FAR_HOST);
        check_refused(f, bytes, len, DROP_sid_upper, ICMP6_PARAMETER, ICMP6_PARAMETER_SR_UPPER,
                      IP6_HDR_LEN);

        check_unwrapped(f, bytes, build(bytes, dx6_host, FAR_HOST), HOST);
        check_unwrapped(f, bytes, build(bytes, dx6_agent, OWN_HOST), AGENT_PORT);
        len = build_srh(bytes, dx6_host, segments, 1, 1, FAR_HOST);
        check_refused(f, bytes, len, DROP_sid_segments_left, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                      IP6_HDR_LEN + offsetof(struct srh_hdr, segments_left));
        ip6_build(bytes, node_address(SPINE_A), dx6_host, IP6_NH_NONE, 0);
        check_refused(f, bytes, IP6_HDR_LEN, DROP_sid_upper, ICMP6_PARAMETER,
                      ICMP6_PARAMETER_SR_UPPER, IP6_HDR_LEN);
        /* No router passes these on, whoever says where to. */
        const struct in6_addr of_link[] = {addr_of("fe80::9"), addr_of("ff02::1"), in6addr_any};
        for (size_t i = 0; i < sizeof of_link / sizeof *of_link; i++) {
            uint64_t before = fixture_drops(f, DROP_no_route);

            fixture_input(f, PORT_SA, bytes, build(bytes, dx6_host, of_link[i]));
            segments[0] = of_link[i];
            ck_assert(!f->n_frames || f->frames[0].port != HOST);
            fixture_input(f, PORT_SA, bytes, build_srh(bytes, end_x, segments, 1, 1, FAR_HOST));
            ck_assert(!f->n_frames || f->frames[0].port != PORT_SB);
            ck_assert_uint_eq(fixture_drops(f, DROP_no_route), before + 2);
        }
        segments[0] = node_address(SPINE_A);
        f->down[HOST] = f->down[PORT_SB] = true;
        check_dropped(f, PORT_SA, bytes, build(bytes, dx6_host, FAR_HOST), DROP_usid_link_down);
        check_dropped(f, PORT_SA, bytes, build_srh(bytes, end_x, segments, 1, 1, FAR_HOST),
                      DROP_usid_link_down);
        fixture_destroy(f);
    }
END_TEST

/* A Fast CNP does not leave the domain, whichever SID brought it to the host. */
START_TEST(fast_cnp_border)
    {
        static const uint16_t functions[] = {SID_FUNC_END_DT6, SID_FUNC_END_DX6 + HOST};
        struct fixture *f = create();
        struct fast_cnp cnp = {.node = node_address(SPINE_A), .sender = OWN_HOST};
        uint8_t bytes[512];

        for (size_t i = 0; i < 2; i++) {
            struct packet *p = fast_cnp_build(f->pool, &cnp, 0xc000);
            uint32_t len = p->len;
            uint8_t *inner = ip6_build(bytes, node_address(SPINE_A),
                                       node_sid(STAR_EDGE_ID, functions[i]), IP6_NH_IPV6, len);

            packet_flatten(p, inner, sizeof bytes - IP6_HDR_LEN);
            packet_put(p);
            check_dropped(f, PORT_SA, bytes, IP6_HDR_LEN + len, DROP_fast_cnp_border);
        }
        fixture_destroy(f);
    }
END_TEST

static void
allow(struct fixture *f, const struct prefix *allowed, size_t n)
{
    struct port_config *port = &f->config.ports[0];

    ck_assert_uint_eq(port->role, ROLE_AGENT);
    free(port->programs);
    port->programs = calloc(n, sizeof *allowed);
    ck_assert_ptr_nonnull(port->programs);
    memcpy(port->programs, allowed, n * sizeof *allowed);
    port->n_programs = n;
    fixture_configure(f);
    /* The node keeps what it was told, and nothing of the one who told it. */
    memset(port->programs, 0xff, n * sizeof *allowed);
}

/* A packet of the fixture's agent. */
static size_t
build_agent(uint8_t *out, const char *da, struct in6_addr to)
{
    size_t len = build(out, hex_addr(da), to);

    ((struct ip6_hdr_wire *) out)->src = node_address(STAR_AGENT_ID);
    return len;
}

/* An agent's allowed: by prefix, also of those that it hides in others. */
START_TEST(guard)
    {
        const struct prefix allowed[] = {
            {hex_addr("5f00:0:100:500::"), 64},
            {hex_addr("5f00:0:600::"), 48},
            {hex_addr("5f00:0:100::"), 49}, /* functions are in the other half. */
            {hex_addr("5f00:0:100:e202::"), 63},
        };
        struct fixture *f = create();
        struct in6_addr segment = hex_addr("5f00:0:500:300::");
        uint8_t bytes[256];
        size_t len;

        len = build_agent(bytes, "5f00:0:100:500:300::", OWN_HOST);
        fixture_input(f, AGENT_PORT, bytes, len); /* without a list: all. */
        ck_assert_uint_eq(f->n_frames, 1);
        allow(f, allowed, 2);
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, PORT_SA);
        const char *const bad[] = {
            "5f00:0:100:600:300::", "5f00:0:100::",      "5f00:0:100:501::", "5f00:0:e114:500::",
            "5f00:0:500::",         "5f00:0:100:e003::", "5f00:0:777::",     "5f00:0:e114::1"};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            check_dropped(f, AGENT_PORT, bytes, build_agent(bytes, bad[i], OWN_HOST),
                          DROP_program_guard);
        }
        /* In another's name, and as somebody else's neighbour. */
        check_dropped(f, AGENT_PORT, bytes,
                      build(bytes, hex_addr("5f00:0:100:500:300::"), OWN_HOST), DROP_source_guard);
        fixture_input(f, PORT_SA, bytes, build(bytes, hex_addr("5f00:0:100:600::"), OWN_HOST));
        ck_assert_uint_eq(f->n_frames, 1);
        /* What is no SID is not meant. */
        ip6_build(bytes, star_source, OWN_HOST, IP6_NH_NONE, 0);
        fixture_input(f, AGENT_PORT, bytes, IP6_HDR_LEN);
        ck_assert_uint_eq(f->n_frames, 1);

        /* The node itself may be a step: what is behind it has to be allowed, too. */
        allow(f, allowed, 4);
        len = build_agent(bytes, "5f00:0:100::", hex_addr("5f00:0:777::"));
        memcpy(bytes + IP6_HDR_LEN + 8, bytes + 8, sizeof(struct in6_addr));
        check_dropped(f, AGENT_PORT, bytes, len, DROP_program_guard);
        len = build_agent(bytes, "5f00:0:100:e202::", hex_addr("5f00:0:500:300::"));
        memcpy(bytes + IP6_HDR_LEN + 8, bytes + 8, sizeof(struct in6_addr));
        check_dropped(f, AGENT_PORT, bytes, len, DROP_program_guard);
        len = build_srh(bytes, hex_addr("5f00:0:100::"), &segment, 1, 1, OWN_HOST);
        ((struct ip6_hdr_wire *) bytes)->src = node_address(STAR_AGENT_ID);
        check_dropped(f, AGENT_PORT, bytes, len, DROP_program_guard);
        /* A host may use none, whatever is allowed. */
        len = build_agent(bytes, "5f00:0:100:500:300::", OWN_HOST);
        ((struct ip6_hdr_wire *) bytes)->src = OWN_HOST;
        check_dropped(f, HOST, bytes, len, DROP_source_guard);
        ((struct ip6_hdr_wire *) bytes)->dst = addr_of("5f00:0:e114::1"); /* no node's address. */
        bytes[6] = IP6_NH_NONE;
        check_dropped(f, HOST, bytes, len, DROP_source_guard);
        fixture_destroy(f);
    }
END_TEST

static char lines[512];

static void
note_line(void *aux, const char *text)
{
    (void) aux;
    size_t len = strlen(lines);
    snprintf(lines + len, sizeof lines - len, "%s\n", text);
}

static void
check_trace(struct fixture *f, const char *da, const char *line)
{
    uint8_t bytes[256];

    lines[0] = '\0';
    fixture_input(f, PORT_SA, bytes, build(bytes, hex_addr(da), OWN_HOST));
    ck_assert_msg(strstr(lines, line), "%s", lines);
}

/* What people are told: of each step, and how often each SID was used. */
START_TEST(shown)
    {
        const struct tracer tracer = {.line = note_line};
        struct fixture *f = create();
        struct sid_info info;

        snprintf(f->config.ports[f->config.n_ports - 2].peer, NAME_SIZE, "spine5");
        fixture_configure(f);
        f->class->set_tracer(f->node, &tracer);
        check_trace(f, "5f00:0:100:500:300::", "\nuN: next uSID 0500, to port p20 (spine5)\n");
        check_trace(f, "5f00:0:100:100:500::", "\nuN: next uSID 0100, here again\n");
        check_trace(f, "5f00:0:100:777::", "\nuN: next uSID 0777, no link leads there\n");
        check_trace(f, "5f00:0:e114:300::", "\nuA: next uSID 0300, to port p20 (spine5)\n");
        check_trace(f, "5f00:0:100::", "\nuN: inner packet to fd00:1::1\n");
        f->down[PORT_SA] = true;
        check_trace(f, "5f00:0:e114:300::", "\nits link is down\n");

        ck_assert_uint_ge(f->config.n_sids, 3);
        for (size_t i = 0; f->class->sid(f->node, i, &info); i++) {
            struct in6_addr node = node_locator(STAR_EDGE_ID),
                            port = local_sid(SID_FUNC_UA + PORT_SA);

            if (IN6_ARE_ADDR_EQUAL(&info.prefix, &node)) {
                ck_assert_str_eq(info.behaviour, "uN");
                ck_assert_uint_eq(info.n_packets, 5);
                ck_assert_uint_eq(info.port, 0);
            } else if (IN6_ARE_ADDR_EQUAL(&info.prefix, &port)) {
                ck_assert_str_eq(info.behaviour, "uA");
                ck_assert_uint_eq(info.n_packets, 2);
                ck_assert_uint_eq(info.port, PORT_SA);
            } else {
                ck_assert_uint_eq(info.n_packets, 0);
            }
        }
        fixture_destroy(f);
    }
END_TEST

/* A packet that does not fit the program's link: Packet Too Big.  A frame for many stations is not
 * forwarded. */
START_TEST(like_forwarding)
    {
        struct fixture *f = create();
        uint8_t bytes[PACKET_ROOM];
        size_t len = 1400;

        ip6_build(bytes, node_address(SPINE_A), hex_addr("5f00:0:100:600:300::"), IP6_NH_NONE,
                  len - IP6_HDR_LEN);
        f->mtu[PORT_SB] = 1300;
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], PORT_SA, ICMP6_TOO_BIG, 0, 1300);
        ck_assert_uint_eq(fixture_drops(f, DROP_too_long), 1);

        f->mtu[PORT_SB] = 0;
        uint8_t frame[PACKET_ROOM];
        size_t frame_len = fixture_frame(f, PORT_SA, bytes, len, frame);
        memset(frame, 0x33, 2);
        struct packet *p = packet_from_bytes(f->pool, frame, frame_len);
        f->n_frames = 0;
        f->class->input(f->node, PORT_SA, p, f->now);
        fixture_settle(f);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_eth_not_mine), 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
usid_node_suite(void)
{
    Suite *s = suite_create("usid-node");
    TCase *tc = tcase_create("usid-node");

    tcase_add_loop_test(tc, hop_by_hop, 0, sizeof programs / sizeof *programs);
    tcase_add_test(tc, whole_packet);
    tcase_add_test(tc, other_lengths);
    tcase_add_test(tc, ua);
    tcase_add_test(tc, drops);
    tcase_add_test(tc, own_usids);
    tcase_add_test(tc, own_address_wins);
    tcase_add_test(tc, malformed);
    tcase_add_test(tc, psp);
    tcase_add_test(tc, path_end);
    tcase_add_test(tc, path_end_ecn);
    tcase_add_test(tc, no_detour);
    tcase_add_test(tc, of_ports);
    tcase_add_test(tc, fast_cnp_border);
    tcase_add_test(tc, guard);
    tcase_add_test(tc, shown);
    tcase_add_test(tc, like_forwarding);
    suite_add_tcase(s, tc);
    return s;
}
