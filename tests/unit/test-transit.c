/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge between other nodes: End.Replicate and End.Response at transit, bud and
 * root nodes, and the behaviours that know no groups.
 *
 * The node has two nodes below it and one above; receivers as a test asks for.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/icmp6.h"
#include "lib/icrc.h"
#include "lib/inet-csum.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "swedge/swedge.h"
#include "tests/unit/node-fixture.h"
#include "tests/unit/suites.h"

#define START       0xfffffeu
#define AGENT_PORT  1
#define CHILD_A     0x301
#define CHILD_B     0x302
#define PARENT      0x400
#define PORT_A      20
#define PORT_B      21
#define PORT_PARENT 22
#define GROUP_RS    (SID_FUNC_REPLICATION + 7)

static struct in6_addr
own_rs(void)
{
    return node_sid(STAR_EDGE_ID, GROUP_RS);
}

static struct fixture *
transit(unsigned n_receivers)
{
    struct fixture *f = fixture_create(&swedge_class, n_receivers);
    struct tree_config *t = &f->config.trees[0];
    struct in6_addr das[] = {
        node_sid(CHILD_A, GROUP_RS),
        node_sid(CHILD_B, SID_FUNC_END_MT),
    };

    fixture_add_node(f, PORT_A, CHILD_A);
    fixture_add_node(f, PORT_B, CHILD_B);
    fixture_add_node(f, PORT_PARENT, PARENT);
    fixture_add_sid(f, SID_FUNC_END, 64, SID_END);
    fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
    fixture_add_sid(f, SID_FUNC_END_DT6, 64, SID_END_DT6);
    fixture_add_sid(f, SID_FUNC_REPLICATION, 52, SID_END_REPLICATE);
    fixture_add_node_branch(f, CHILD_A);
    fixture_add_node_branch(f, CHILD_B);
    fixture_set_outer_das(f, das, 2);
    t->replication_sid = own_rs();
    t->root = false;
    t->parent_sid = node_sid(PARENT, SID_FUNC_RESPONSE);
    fixture_configure(f);
    return f;
}

static struct roce_spec
write_only(uint32_t psn)
{
    return (struct roce_spec){
        .src = &star_source,
        .dst = &star_proxy,
        .dest_qp = STAR_DQPN,
        .opcode = RC_WRITE_ONLY,
        .ack_req = true,
        .psn = psn & PSN_MASK,
        .va = 0x40,
        .rkey = STAR_RKEY,
        .dma_len = 700,
        .payload_len = 700,
    };
}

/* The packet to 'dst', with a TLV for n receivers here and one for another edge. */
static size_t
encapsulated(uint8_t *out, const struct in6_addr *dst, uint32_t psn, unsigned n)
{
    struct srh_copy copies[8];
    struct encap_template t;
    struct in6_addr src = node_address(STAR_AGENT_ID);
    struct in6_addr other = addr_of("fd00:2::1");
    struct roce_spec spec = write_only(psn);
    uint8_t inner[PACKET_ROOM];
    size_t inner_len = roce_build(inner, &spec);

    for (unsigned i = 0; i < n; i++) {
        copies[i] = (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(i), star_qpn(i)};
    }
    copies[n] = (struct srh_copy){node_address(CHILD_A), other, 0x77};
    ck_assert_int_eq(encap_template_build(&t, &src, dst, &star_proxy, copies, n + 1), 0);
    encap_template_stamp(&t, out, (uint16_t) inner_len, 2, 0x12345);
    memcpy(out + t.len, inner, inner_len);
    return t.len + inner_len;
}

static size_t
down(struct fixture *f, uint8_t *bytes, uint32_t psn, unsigned n)
{
    struct in6_addr dst = own_rs();
    size_t len = encapsulated(bytes, &dst, psn, n);

    fixture_input(f, AGENT_PORT, bytes, len);
    return len;
}

/* The frame is 'bytes' with this destination and one hop less. */
static void
check_replica(const struct frame *frame, uint16_t port, struct in6_addr dst, const uint8_t *bytes,
              size_t len)
{
    uint8_t expected[PACKET_ROOM];
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) expected;

    memcpy(expected, bytes, len);
    ip->dst = dst;
    ip->hlim = 63;
    ck_assert_uint_eq(frame->port, port);
    ck_assert_uint_eq(frame->len, sizeof(struct eth_hdr) + len);
    ck_assert_mem_eq(frame->bytes + sizeof(struct eth_hdr), expected, len);
}

/* What a node below sends up.  'bend' changes bytes of it. */
struct bend {
    size_t ofs;
    uint8_t with;
};

static void
respond(struct fixture *f, uint16_t node, uint8_t syndrome, uint32_t psn, const struct bend *bend)
{
    struct in6_addr src = node_address(node);
    struct in6_addr dst = node_sid(STAR_EDGE_ID, SID_FUNC_RESPONSE);
    struct packet *p = response_build(f->pool, &star_proxy, &star_source, 0xc001, STAR_DQPN,
                                      psn_make(psn), syndrome, 1);
    response_wrap(p, &src, &dst);
    if (bend) {
        p->data[bend->ofs] ^= bend->with;
    }
    uint8_t bytes[256];
    size_t len = packet_flatten(p, bytes, sizeof bytes);
    packet_put(p);
    fixture_input(f, node == CHILD_A ? PORT_A : PORT_B, bytes, len);
}

static void
check_up(const struct fixture *f, uint8_t syndrome, uint32_t psn)
{
    struct in6_addr own = node_address(STAR_EDGE_ID);
    struct in6_addr parent = node_sid(PARENT, SID_FUNC_RESPONSE);

    ck_assert_uint_eq(f->n_frames, 1);
    const struct frame *frame = &f->frames[0];
    ck_assert_uint_eq(frame->port, PORT_PARENT);
    ck_assert_uint_ne(frame->h.inner.ofs, 0);
    const struct ip6_hdr_wire *outer = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct ip6_hdr_wire *inner = (const void *) (frame->bytes + frame->h.inner.ofs);
    const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);

    ck_assert_mem_eq(&outer->src, &own, 16);
    ck_assert_mem_eq(&outer->dst, &parent, 16);
    ck_assert_uint_eq(outer->hlim, 64);
    ck_assert_mem_eq(&inner->src, &star_proxy, 16);
    ck_assert_mem_eq(&inner->dst, &star_source, 16);
    ck_assert_uint_eq(be24_get(bth->dest_qp), STAR_DQPN);
    ck_assert_uint_eq(bth_psn(bth).v, psn & PSN_MASK);
    ck_assert_uint_eq(frame->bytes[frame->h.ext_ofs], syndrome);
    ck_assert(frame_icrc_ok(frame));
}

START_TEST(replicas_are_exact)
    {
        struct fixture *f = transit(0);
        uint8_t bytes[PACKET_ROOM];

        for (uint32_t i = 0; i < 4; i++) {
            size_t len = down(f, bytes, START + i, 0);
            ck_assert_uint_eq(f->n_frames, 2);
            check_replica(&f->frames[0], PORT_A, node_sid(CHILD_A, GROUP_RS), bytes, len);
            check_replica(&f->frames[1], PORT_B, node_sid(CHILD_B, SID_FUNC_END_MT), bytes, len);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A receiver's copy changes headers that a replica shares with the original. */
START_TEST(bud)
    {
        struct fixture *f = transit(2);
        uint8_t bytes[PACKET_ROOM];
        struct in6_addr end_mt = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);

        size_t len = down(f, bytes, START, 2);
        ck_assert_uint_eq(f->n_frames, 4);
        for (unsigned i = 0; i < 2; i++) {
            struct in6_addr r = star_receiver(i);
            struct roce_spec spec = write_only(START);
            uint8_t expected[PACKET_ROOM];
            spec.src = &star_proxy;
            spec.dst = &r;
            spec.dest_qp = star_qpn(i);
            spec.va += star_va(i);
            spec.rkey = star_rkey(i);
            size_t expected_len = roce_build(expected, &spec);
            expected[7] = 63;
            ck_assert_uint_eq(f->frames[i].port, star_port(i));
            ck_assert_uint_eq(f->frames[i].len, sizeof(struct eth_hdr) + expected_len);
            ck_assert_mem_eq(f->frames[i].bytes + sizeof(struct eth_hdr), expected, expected_len);
        }
        check_replica(&f->frames[2], PORT_A, node_sid(CHILD_A, GROUP_RS), bytes, len);
        check_replica(&f->frames[3], PORT_B, node_sid(CHILD_B, SID_FUNC_END_MT), bytes, len);

        /* By its End.MT SID it serves its receivers only. */
        len = encapsulated(bytes, &end_mt, START + 1, 2);
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(f->frames[1].port, star_port(1));
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* What only an edge may mind does not stop the way to the other nodes. */
START_TEST(receivers_problems)
    {
        static const struct {
            size_t ofs; /* behind the outer headers if 'inner'. */
            bool inner;
            uint8_t value;
            enum drop_reason why;
        } cases[] = {
            {7, true, 1, DROP_hop_limit},
            {1, true, 0, DROP_ecn_ce}, /* Not-ECT inside, CE outside. */
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct fixture *f = transit(1);
            uint8_t bytes[PACKET_ROOM];
            struct in6_addr dst = own_rs();
            size_t len = encapsulated(bytes, &dst, START, 1);
            size_t inner_len = IP6_HDR_LEN + be16_get(((struct ip6_hdr_wire *) bytes)->plen);
            struct roce_spec spec = write_only(START);
            uint8_t plain[PACKET_ROOM];
            size_t inner_ofs = inner_len - roce_build(plain, &spec);

            bytes[1] |= 0x30; /* CE */
            bytes[inner_ofs + 1] |= 0x20;
            bytes[inner_ofs + cases[i].ofs] = cases[i].value;
            fixture_input(f, AGENT_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 2);
            ck_assert_uint_eq(f->frames[0].port, PORT_A);
            ck_assert_uint_eq(fixture_drops(f, cases[i].why), 1);
            ck_assert_uint_eq(fixture_total_drops(f), 1);
            fixture_destroy(f);
        }
    }
END_TEST

/* No ICMPv6 error, and one counter. */
START_TEST(refused_silently)
    {
        static const struct {
            uint16_t function;
            struct bend bend;
            enum drop_reason why;
        } cases[] = {
            {GROUP_RS + 1, {0, 0}, DROP_rs_unknown},
            {GROUP_RS, {7, 64 ^ 1}, DROP_hop_limit},
            {GROUP_RS, {7, 64}, DROP_hop_limit},
            {GROUP_RS, {IP6_HDR_LEN + 3, 1}, DROP_mt_segments_left},
            {GROUP_RS, {IP6_HDR_LEN + 8, 1}, DROP_mt_context},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct fixture *f = transit(0);
            uint8_t bytes[PACKET_ROOM];
            struct in6_addr dst = node_sid(STAR_EDGE_ID, cases[i].function);
            size_t len = encapsulated(bytes, &dst, START, 0);

            bytes[cases[i].bend.ofs] ^= cases[i].bend.with;
            fixture_input(f, AGENT_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 0);
            ck_assert_uint_eq(fixture_drops(f, cases[i].why), 1);
            ck_assert_uint_eq(fixture_total_drops(f), 1);
            fixture_destroy(f);
        }
    }
END_TEST

START_TEST(merged_for_the_parent)
    {
        struct fixture *f = transit(1);
        uint8_t bytes[PACKET_ROOM];
        struct in6_addr r = star_receiver(0);

        for (uint32_t i = 0; i < 3; i++) {
            down(f, bytes, START + i, 1);
        }
        respond(f, CHILD_A, AETH_ACK_UNLIMITED, START + 2, NULL);
        ck_assert_uint_eq(f->n_frames, 0);
        respond(f, CHILD_B, AETH_ACK_UNLIMITED, START, NULL);
        ck_assert_uint_eq(f->n_frames, 0);
        size_t len = roce_build(bytes, &(struct roce_spec){
                                           .src = &r,
                                           .dst = &star_proxy,
                                           .dest_qp = STAR_DQPN,
                                           .opcode = RC_ACK,
                                           .psn = (START + 1) & PSN_MASK,
                                           .syndrome = AETH_ACK_UNLIMITED,
                                       });
        fixture_input(f, star_port(0), bytes, len);
        check_up(f, AETH_ACK_UNLIMITED, START);
        respond(f, CHILD_B, AETH_NAK_PSN_SEQ, START + 1, NULL);
        check_up(f, AETH_NAK_PSN_SEQ, START + 1);
        /* The retransmission serves all; the NAK is not sent twice. */
        down(f, bytes, START + 1, 1);
        respond(f, CHILD_B, AETH_ACK_UNLIMITED, START + 2, NULL);
        check_up(f, AETH_ACK_UNLIMITED, START + 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

START_TEST(root_speaks_to_the_source)
    {
        struct fixture *f = transit(0);
        uint8_t bytes[PACKET_ROOM];

        f->config.trees[0].root = true;
        f->config.trees[0].parent_sid = (struct in6_addr){0};
        fixture_configure(f);
        down(f, bytes, START, 0);
        respond(f, CHILD_A, AETH_ACK_UNLIMITED, START, NULL);
        respond(f, CHILD_B, AETH_ACK_UNLIMITED, START, NULL);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct frame *frame = &f->frames[0];
        const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
        const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);
        ck_assert_uint_eq(frame->port, AGENT_PORT);
        ck_assert_uint_eq(frame->h.inner.ofs, 0);
        ck_assert_mem_eq(&ip->src, &star_proxy, 16);
        ck_assert_mem_eq(&ip->dst, &star_source, 16);
        ck_assert_uint_eq(be24_get(bth->dest_qp), STAR_SOURCE_QPN);
        ck_assert_uint_eq(bth_psn(bth).v, START);
        fixture_destroy(f);
    }
END_TEST

START_TEST(forged_responses)
    {
        enum {
            OUTER_SRC = 8 + 15,
            OUTER_NH = 6,
            INNER = IP6_HDR_LEN,
            INNER_SRC = INNER + 8 + 15,
            INNER_DST = INNER + 24 + 15,
            INNER_BTH = INNER + IP6_HDR_LEN + 8,
        };
        static const struct {
            uint32_t psn;
            struct bend bend;
            enum drop_reason why;
        } cases[] = {
            {START, {OUTER_SRC - 10, 7}, DROP_unknown_branch},
            {START, {OUTER_NH, IP6_NH_IPV6 ^ IP6_NH_UDP}, DROP_response_outer},
            {START, {INNER_SRC, 2}, DROP_icrc},
            {START, {INNER_DST, 2}, DROP_icrc},
            {START, {INNER_BTH, RC_ACK ^ RC_SEND_ONLY}, DROP_icrc},
            {START + 1, {0, 0}, DROP_psn_not_sent},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct fixture *f = transit(0);
            uint8_t bytes[PACKET_ROOM];

            down(f, bytes, START, 0);
            respond(f, CHILD_A, AETH_ACK_UNLIMITED, START, NULL);
            respond(f, CHILD_B, AETH_ACK_UNLIMITED, cases[i].psn, &cases[i].bend);
            ck_assert_uint_eq(f->n_frames, 0);
            ck_assert_msg(fixture_drops(f, cases[i].why) == 1 && fixture_total_drops(f) == 1,
                          "case %zu", i);
            fixture_destroy(f);
        }
    }
END_TEST

/* A node that does not aggregate: copies go on, responses are not for it. */
START_TEST(replicates_only)
    {
        struct fixture *f = transit(0);
        uint8_t bytes[PACKET_ROOM];

        f->config.trees[0].n_branches = 0;
        f->config.trees[0].parent_sid = (struct in6_addr){0};
        fixture_configure(f);
        down(f, bytes, START + 5000, 0); /* no state that a PSN could spoil. */
        ck_assert_uint_eq(f->n_frames, 2);
        respond(f, CHILD_A, AETH_ACK_UNLIMITED, START, NULL);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_unknown_branch), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* An IPv6 packet with 'len' bytes of upper layer; returns where those go. */
static uint8_t *
plain(uint8_t *out, struct in6_addr src, struct in6_addr dst, uint8_t nh, size_t len)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) out;

    memset(out, 0, IP6_HDR_LEN + len);
    ip6_set_vtf(ip, 0, 0);
    ip->plen = be16_put((uint16_t) len);
    ip->nh = nh;
    ip->hlim = 9;
    ip->src = src;
    ip->dst = dst;
    return out + IP6_HDR_LEN;
}

/* An SRH with these segments, the last one first. */
static size_t
put_srh(uint8_t *out, const struct in6_addr *segments, uint8_t n, uint8_t segments_left, uint8_t nh)
{
    struct srh_hdr *srh = (struct srh_hdr *) out;

    *srh = (struct srh_hdr){
        .nh = nh,
        .hdr_ext_len = (uint8_t) (2 * n),
        .type = SRH_ROUTING_TYPE,
        .segments_left = segments_left,
        .last_entry = (uint8_t) (n - 1),
    };
    memcpy(srh + 1, segments, n * sizeof *segments);
    return sizeof *srh + n * sizeof *segments;
}

START_TEST(end)
    {
        struct fixture *f = transit(0);
        struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END);
        struct in6_addr segments[] = {node_address(CHILD_B), sid, sid};
        uint8_t bytes[256];

        /* Two segments here, then on: one packet out. */
        uint8_t *upper = plain(bytes, node_address(PARENT), sid, IP6_NH_ROUTING, 56 + 16);
        put_srh(upper, segments, 3, 2, IP6_NH_NONE);
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
        put_srh(upper, segments, 3, 2, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, IP6_HDR_LEN + 56 + 16);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, PORT_PARENT);
        ck_assert_uint_eq(f->frames[0].h.ip.proto, IP6_NH_ICMPV6);
        ck_assert_uint_eq(f->frames[0].bytes[f->frames[0].h.ip.ofs + IP6_HDR_LEN], 3);
        ck_assert_uint_eq(fixture_drops(f, DROP_hop_limit), 1);

        /* The path's end takes no upper layer but ICMPv6: Parameter Problem, code 4. */
        bytes[7] = 9;
        put_srh(upper, segments, 3, 0, IP6_NH_UDP);
        fixture_input(f, PORT_PARENT, bytes, IP6_HDR_LEN + 56 + 16);
        ck_assert_uint_eq(f->n_frames, 1);
        const uint8_t *icmp = f->frames[0].bytes + f->frames[0].h.ip.ofs + IP6_HDR_LEN;
        ck_assert_uint_eq(icmp[0], 4);
        ck_assert_uint_eq(icmp[1], 4);
        ck_assert_uint_eq(icmp[7], IP6_HDR_LEN + 56);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_upper), 1);
        fixture_destroy(f);
    }
END_TEST

START_TEST(end_dt6)
    {
        struct fixture *f = transit(0);
        struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6);
        struct in6_addr segment = sid;
        uint8_t bytes[256];

        uint8_t *srh =
            plain(bytes, node_address(PARENT), sid, IP6_NH_ROUTING, 24 + IP6_HDR_LEN + 8);
        size_t srh_len = put_srh(srh, &segment, 1, 0, IP6_NH_IPV6);
        plain(srh + srh_len, star_source, node_address(CHILD_A), IP6_NH_UDP, 8);
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
        put_srh(srh, &segment, 1, 1, IP6_NH_IPV6);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        const uint8_t *icmp = f->frames[0].bytes + f->frames[0].h.ip.ofs + IP6_HDR_LEN;
        ck_assert_uint_eq(icmp[0], 4);
        ck_assert_uint_eq(icmp[1], 0);
        ck_assert_uint_eq(icmp[7], IP6_HDR_LEN + 3);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_segments_left), 1);

        put_srh(srh, &segment, 1, 0, IP6_NH_NONE);
        fixture_input(f, PORT_PARENT, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_upper), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        fixture_destroy(f);
    }
END_TEST

/* A host's packet to a SID, here or anywhere else, goes nowhere. */
START_TEST(hosts_do_not_reach_sids)
    {
        struct in6_addr dsts[] = {
            node_sid(STAR_EDGE_ID, SID_FUNC_RESPONSE),
            node_sid(CHILD_A, SID_FUNC_END_MT),
            own_rs(),
            node_sid(0x777, 1),
        };
        struct fixture *f = transit(1);
        uint8_t bytes[256];

        for (size_t i = 0; i < sizeof dsts / sizeof *dsts; i++) {
            plain(bytes, star_receiver(0), dsts[i], IP6_NH_NONE, 0);
            fixture_input(f, star_port(0), bytes, IP6_HDR_LEN);
            ck_assert_uint_eq(f->n_frames, 0);
            ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), i + 1);
        }
        ck_assert_uint_eq(fixture_total_drops(f), sizeof dsts / sizeof *dsts);
        fixture_destroy(f);
    }
END_TEST

Suite *
transit_suite(void)
{
    Suite *s = suite_create("transit");
    TCase *tc = tcase_create("transit");

    tcase_add_test(tc, replicas_are_exact);
    tcase_add_test(tc, bud);
    tcase_add_test(tc, receivers_problems);
    tcase_add_test(tc, refused_silently);
    tcase_add_test(tc, merged_for_the_parent);
    tcase_add_test(tc, root_speaks_to_the_source);
    tcase_add_test(tc, forged_responses);
    tcase_add_test(tc, replicates_only);
    tcase_add_test(tc, end);
    tcase_add_test(tc, end_dt6);
    tcase_add_test(tc, hosts_do_not_reach_sids);
    suite_add_tcase(s, tc);
    return s;
}
