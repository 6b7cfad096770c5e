/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of groups in modes mcast and ingress, and of groups whose receivers are
 * provisioned: what the source agent sends, what switches forward, what edges
 * copy.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/icmp6.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "srcagent/srcagent.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/modes-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

/* Their headers cannot both be included: each names its own things. */
extern const struct node_class swedge_class;

static const struct ip6_hdr_wire *
outer_of(const struct frame *frame)
{
    return (const void *) (frame->bytes + frame->h.ip.ofs);
}

static bool
asks(const struct frame *frame)
{
    const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);

    return bth->ack_req & BTH_ACK_REQ;
}

/*
 * The source agent.
 */

static void
edge_responds(struct fixture *f, uint16_t edge, uint8_t syndrome, uint32_t psn)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len =
        tunnelled_response(bytes, edge, STAR_AGENT_ID, STAR_DQPN, syndrome, psn & PSN_MASK);

    fixture_input(f, UPLINK, bytes, len);
}

/* The frame is the request with this PSN for an edge with n receivers, of which the first is
 * r<i+1>. */
static void
check_edge_copy(const struct frame *frame, uint16_t edge, unsigned n, unsigned i, uint32_t psn)
{
    struct roce_spec spec = agent_request(RC_WRITE_ONLY, psn);
    struct in6_addr dst = node_sid(edge, SID_FUNC_END_MT), address = node_address(edge);
    struct in6_addr receiver = star_receiver(i);
    uint8_t inner[PACKET_ROOM];
    size_t inner_len = roce_build(inner, &spec);

    inner[7]--;
    ck_assert_uint_eq(frame->port, UPLINK);
    ck_assert_mem_eq(&outer_of(frame)->dst, &dst, sizeof dst);
    ck_assert_uint_eq(frame->h.n_mt_tlvs, 1);
    const struct mt_tlv *tlv = (const void *) (frame->bytes + frame->h.mt_tlv_ofs[0]);
    ck_assert_mem_eq(&tlv->edge, &address, sizeof address);
    ck_assert_uint_eq(tlv->n_receivers, n);
    ck_assert_mem_eq(&((const struct mt_receiver *) (tlv + 1))->addr, &receiver, sizeof receiver);
    ck_assert_uint_eq(frame->len, frame->h.inner.ofs + inner_len);
    ck_assert_mem_eq(frame->bytes + frame->h.inner.ofs, inner, inner_len);
}

/* A packet to each edge, with its receivers; their responses are merged here.
 * Proves MT-5.1-4, MT-5.1-6, MT-5.2-2, MT-7.2-9. */
START_TEST(ingress)
    {
        struct fixture *f = ingress_create();

        for (uint32_t i = 0; i < 4; i++) {
            agent_write(f, START + i);
            ck_assert_uint_eq(f->n_frames, 2);
            check_edge_copy(&f->frames[0], STAR_EDGE_ID, 2, 0, START + i);
            check_edge_copy(&f->frames[1], EDGE_2, 1, 2, START + i);
        }
        edge_responds(f, STAR_EDGE_ID, AETH_ACK_UNLIMITED, START + 3);
        ck_assert_uint_eq(f->n_frames, 0);
        edge_responds(f, EDGE_2, AETH_ACK_UNLIMITED, START + 1);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START + 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* An edge for which no receiver is left is not sent to, although it still counts. */
START_TEST(ingress_edge_is_left)
    {
        struct fixture *f = ingress_create();

        agent_write(f, START);
        f->config.trees[0].n_copies = 2;
        fixture_configure(f);
        agent_write(f, START + 1);
        ck_assert_uint_eq(f->n_frames, 1);
        check_edge_copy(&f->frames[0], STAR_EDGE_ID, 2, 0, START + 1);
        edge_responds(f, STAR_EDGE_ID, AETH_ACK_UNLIMITED, START + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_destroy(f);
    }
END_TEST

/* A receiver that no packet would be for, or nobody that is sent to. */
START_TEST(ingress_refused)
    {
        struct fixture *f = ingress_create();
        struct tree_config *t = &f->config.trees[0];
        char *error = NULL;

        if (_i) {
            t->n_copies = 0;
        } else {
            t->n_outer_da = 1;
        }
        ck_assert_int_eq(f->class->configure(f->node, &f->config, f->now, &error), EINVAL);
        ck_assert_str_eq(error, _i ? "group g: 2 outer destinations, SRH for 0 receivers: Invalid "
                                     "argument"
                                   : "group g: 1 outer destinations, SRH for 3 receivers: Invalid "
                                     "argument");
        free(error);
        agent_write(f, START); /* as before. */
        ck_assert_uint_eq(f->n_frames, 2);
        fixture_destroy(f);
    }
END_TEST

/* The edge that is behind a NAK is asked, alone; the one that has confirmed a PSN does not get it
 * again. */
START_TEST(ingress_policies)
    {
        struct fixture *f = ingress_create();
        struct tree_config *t = &f->config.trees[0];
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START + 2);

        t->policy.nak = NAK_SOLICIT;
        t->policy.filter = true;
        fixture_configure(f);
        agent_write(f, START);
        agent_write(f, START + 1);
        edge_responds(f, STAR_EDGE_ID, AETH_NAK_PSN_SEQ, START + 1);
        spec.ack_req = false;
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert(!asks(&f->frames[0]));
        ck_assert(asks(&f->frames[1]));
        ck_assert(frame_icrc_ok(&f->frames[0]));
        ck_assert(frame_icrc_ok(&f->frames[1]));

        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        check_edge_copy(&f->frames[0], EDGE_2, 1, 2, START);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* An edge that was lost is sent no more, whichever it is. */
START_TEST(ingress_edge_is_lost)
    {
        static const uint16_t edges[] = {STAR_EDGE_ID, EDGE_2};
        struct fixture *f = ingress_create();

        f->config.trees[0].policy.prune = true;
        fixture_configure(f);
        agent_write(f, START);
        edge_responds(f, edges[_i], AETH_NAK_REM_OP, START);
        ck_assert_uint_eq(f->n_frames, 0);
        agent_write(f, START + 1);
        ck_assert_uint_eq(f->n_frames, 1);
        if (_i) {
            check_edge_copy(&f->frames[0], STAR_EDGE_ID, 2, 0, START + 1);
        } else {
            check_edge_copy(&f->frames[0], EDGE_2, 1, 2, START + 1);
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_member_lost), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        edge_responds(f, edges[!_i], AETH_ACK_UNLIMITED, START + 1);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START + 1);
        fixture_destroy(f);
    }
END_TEST

/* Neither route nor neighbour: the group's Ethernet address, on the port to the first switch.
 * Proves MT-5.2-2, MT-6-R4607-1, MT-7.1-2. */
START_TEST(mcast_agent)
    {
        struct fixture *f = mcast_agent_create(2);
        struct in6_addr next = node_address(EDGE_2); /* to which there is no port. */
        struct in6_addr wanted = addr_of("ff3e::8000:7");

        f->config.n_routes = 0;
        f->mute = true;
        fixture_configure(f);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct frame *frame = &f->frames[0];
        ck_assert_uint_eq(frame->port, UPLINK);
        ck_assert_mem_eq(frame->bytes, ((uint8_t[]){0x33, 0x33, 0x80, 0, 0, 7}), 6);
        ck_assert_mem_eq(&outer_of(frame)->dst, &wanted, sizeof wanted);
        ck_assert_mem_eq(&outer_of(frame)->src, &f->config.address, sizeof wanted);
        ck_assert_uint_eq(frame->h.n_segments, 1);
        ck_assert_uint_eq(frame->h.segments_left, 1);
        ck_assert_mem_eq(frame->bytes + frame->h.srh_ofs + 8, &star_proxy, 16);
        ck_assert_uint_eq(frame->h.n_mt_tlvs, 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);

        fixture_set_outer_das(f, &next, 1);
        fixture_configure(f);
        agent_write(f, START + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_port_down), 1);
        fixture_destroy(f);
    }
END_TEST

/* 40 + 24 bytes, whoever the receivers are. */
START_TEST(provisioned_agent)
    {
        struct fixture *f = agent_create(14);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);
        uint8_t inner[PACKET_ROOM];
        size_t inner_len = roce_build(inner, &spec);

        f->config.trees[0].provisioned = true;
        fixture_configure(f);
        fixture_input(f, HOST_PORT, inner, inner_len);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct frame *frame = &f->frames[0];
        ck_assert_uint_eq(frame->len, sizeof(struct eth_hdr) + 40 + 24 + inner_len);
        ck_assert_uint_eq(frame->h.srh_len, 24);
        ck_assert_uint_eq(frame->h.n_mt_tlvs, 0);
        ck_assert_uint_eq(frame->h.segments_left, 1);
        ck_assert_mem_eq(frame->bytes + frame->h.srh_ofs + 8, &star_proxy, 16);
        fixture_destroy(f);
    }
END_TEST

/*
 * Switches, mode mcast.
 */

/* A packet of the source to the group; 'bytes' is what was fed. */
static size_t
mcast_down(struct fixture *f, uint8_t *bytes, uint32_t psn, unsigned n)
{
    struct in6_addr dst = mcast_group_address(REPLICATION_ID);
    struct roce_spec spec = transit_write(psn);
    size_t len = transit_encapsulated(bytes, &dst, &spec, n);

    fixture_input(f, AGENT_PORT, bytes, len);
    return len;
}

static void
check_forwarded(const struct frame *frame, uint16_t port, const uint8_t *bytes, size_t len)
{
    transit_check_replica(frame, port, mcast_group_address(REPLICATION_ID), bytes, len);
    ck_assert_mem_eq(frame->bytes, ((uint8_t[]){0x33, 0x33, 0x80, 0, 0, 7}), 6);
}

/* Nothing is changed but the hop limit, nothing is looked at, and nobody has to be resolved.
 * Proves MT-1.1-1, MT-3-3, MT-5.2-3, MT-6-R7761-1. */
START_TEST(mcast_forwards)
    {
        struct fixture *f = mcast_create(0);
        uint8_t bytes[PACKET_ROOM];

        f->mute = true;
        size_t len = mcast_down(f, bytes, START, 0);
        ck_assert_uint_eq(f->n_frames, 2);
        check_forwarded(&f->frames[0], PORT_A, bytes, len);
        check_forwarded(&f->frames[1], PORT_B, bytes, len);

        memset(bytes + IP6_HDR_LEN, 0xff, len - IP6_HDR_LEN);
        f->mangled = true;
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        check_forwarded(&f->frames[0], PORT_A, bytes, len);
        check_forwarded(&f->frames[1], PORT_B, bytes, len);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* One counter, and no ICMPv6 error.
 * Proves MT-6-R4443-1, MT-6-R7761-1. */
START_TEST(mcast_refused)
    {
        static const struct {
            uint16_t ofs, port;
            uint8_t with; /* XOR */
            enum drop_reason why;
        } cases[] = {
            {39, AGENT_PORT, 1, DROP_mcast_unknown}, /* another group, another source. */
            {13, AGENT_PORT, 1, DROP_mcast_unknown},
            {0, PORT_A, 0, DROP_mcast_rpf},
            {0, 2, 0, DROP_mcast_rpf}, /* a host. */
            {7, AGENT_PORT, 64 ^ 1, DROP_hop_limit},
            {7, AGENT_PORT, 64, DROP_hop_limit},
        };
        struct fixture *f = mcast_create(1);
        struct in6_addr dst = mcast_group_address(REPLICATION_ID);
        struct roce_spec spec = transit_write(START);
        uint8_t bytes[PACKET_ROOM];
        size_t len = transit_encapsulated(bytes, &dst, &spec, 1);

        bytes[cases[_i].ofs] ^= cases[_i].with;
        fixture_input(f, cases[_i].port, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, cases[_i].why), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* Of a port that is too small the agent hears; the other copy goes on.
 * Proves MT-6-R4443-1. */
START_TEST(mcast_too_big)
    {
        struct fixture *f = mcast_create(0);
        uint8_t bytes[PACKET_ROOM];

        f->mtu[PORT_A] = 800;
        size_t len = mcast_down(f, bytes, START, 0);
        ck_assert_uint_eq(f->n_frames, 2);
        check_icmp6_error(&f->frames[0], AGENT_PORT, ICMP6_TOO_BIG, 0, 800);
        check_forwarded(&f->frames[1], PORT_B, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_too_long), 1);
        fixture_destroy(f);
    }
END_TEST

/* A listener takes the packet as by its End.MT SID, and forwards it whatever becomes of that.
 * Proves MT-5.1-5, MT-5.2-4, MT-5.2-5, MT-6-R8200-4. */
START_TEST(mcast_bud)
    {
        struct fixture *f = mcast_create(2);
        struct in6_addr dst = mcast_group_address(REPLICATION_ID);
        struct roce_spec spec = transit_write(START + 1);
        uint8_t bytes[PACKET_ROOM];

        size_t len = mcast_down(f, bytes, START, 2);
        ck_assert_uint_eq(f->n_frames, 4);
        for (unsigned i = 0; i < 2; i++) {
            struct in6_addr r = star_receiver(i);
            ck_assert_uint_eq(f->frames[i].port, star_port(i));
            ck_assert_mem_eq(&outer_of(&f->frames[i])->dst, &r, sizeof r);
            ck_assert(frame_icrc_ok(&f->frames[i]));
        }
        check_forwarded(&f->frames[2], PORT_A, bytes, len);
        check_forwarded(&f->frames[3], PORT_B, bytes, len);
        ck_assert_uint_eq(fixture_total_drops(f), 0);

        len = transit_encapsulated(bytes, &dst, &spec, 2);
        bytes[IP6_HDR_LEN + 3] = 0; /* Segments Left. */
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        check_forwarded(&f->frames[0], PORT_A, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_mt_segments_left), 1);

        len = transit_encapsulated(bytes, &dst, &spec, 2);
        bytes[IP6_HDR_LEN + 1] = 255; /* SRH's length. */
        f->mangled = true;
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        check_forwarded(&f->frames[1], PORT_B, bytes, len);
        ck_assert_uint_eq(fixture_total_drops(f), 2);

        len = transit_encapsulated(bytes, &dst, &spec, 2);
        memmove(bytes + IP6_HDR_LEN + 8, bytes + IP6_HDR_LEN, len - IP6_HDR_LEN);
        memcpy(bytes + IP6_HDR_LEN, (uint8_t[8]){IP6_NH_ROUTING, 0, 253, 1}, 8);
        len += 8;
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;
        ip->plen = be16_put((uint16_t) (len - IP6_HDR_LEN));
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        check_forwarded(&f->frames[0], PORT_A, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_routing_header), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 3);

        transit_receiver_responds(f, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0); /* the other receiver has not. */
        fixture_destroy(f);
    }
END_TEST

/* The entry of an epoch that is over is no more: the newest one's is. */
START_TEST(mcast_new_epoch)
    {
        struct fixture *f = mcast_create(0);
        struct in6_addr next = node_address(CHILD_B);
        uint8_t bytes[PACKET_ROOM];

        fixture_add_epoch(f);
        f->config.trees[1].outer_da[0] = next;
        f->config.trees[1].n_outer_da = 1;
        fixture_configure(f);
        size_t len = mcast_down(f, bytes, START, 0);
        ck_assert_uint_eq(f->n_frames, 1);
        check_forwarded(&f->frames[0], PORT_B, bytes, len);
        fixture_destroy(f);
    }
END_TEST

/* Outside is what one group's packets have, inside is a packet of another group, which this node
 * has too: by Replication-SIDs and by multicast addresses it is neither's, and no receiver gets a
 * copy.  A multicast router forwards it all the same, as it looks at the outside only. */
START_TEST(packet_of_another_group)
    {
        bool mcast = _i;
        struct fixture *f = mcast ? mcast_create(1) : transit_create(1);
        struct in6_addr dst = mcast ? mcast_group_address(REPLICATION_ID) : transit_rs();
        struct in6_addr other = star_proxy;
        struct roce_spec spec = transit_write(START);
        uint8_t bytes[PACKET_ROOM];
        struct tree_info info;

        other.s6_addr[15]++;
        fixture_add_epoch(f); /* makes the second tree, of which another group is made. */
        struct tree_config *b = &f->config.trees[1];
        b->epoch = f->config.trees[0].epoch;
        b->proxy = other;
        b->replication_sid = mcast ? in6addr_any : node_sid(STAR_EDGE_ID, GROUP_RS + 1);
        b->mcast_group = mcast_group_address(REPLICATION_ID + 1);
        fixture_configure(f);
        spec.dst = &other;
        spec.dest_qp = b->designated_qpn;

        size_t len = transit_encapsulated(bytes, &dst, &spec, 1);
        /* The Segment List says what is inside. */
        memcpy(bytes + IP6_HDR_LEN + sizeof(struct srh_hdr), &other, sizeof other);
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, mcast ? 2 : 0);
        ck_assert_uint_eq(fixture_drops(f, mcast ? DROP_mcast_unknown : DROP_rs_unknown), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        for (size_t i = 0; i < 2; i++) {
            swedge_class.tree(f->node, i, &info);
            ck_assert(!info.started);
        }

        /* By its own address it is taken. */
        ((struct ip6_hdr_wire *) bytes)->dst = mcast ? b->mcast_group : b->replication_sid;
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 3);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* In mode mcast nothing comes by the End.MT SID. */
START_TEST(mcast_by_end_mt_sid)
    {
        struct fixture *f = mcast_create(1);
        struct in6_addr end_mt = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);
        struct roce_spec spec = transit_write(START);
        uint8_t bytes[PACKET_ROOM];
        struct tree_info info;

        size_t len = transit_encapsulated(bytes, &end_mt, &spec, 1);
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_mt_not_planned), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        swedge_class.tree(f->node, 0, &info);
        ck_assert(!info.started);
        fixture_destroy(f);
    }
END_TEST

/*
 * Edges, receivers provisioned.
 */

/* To the edge's End.MT SID, with TLVs for n receivers. */
static void
to_edge(struct fixture *f, uint32_t psn, unsigned n)
{
    struct in6_addr src = node_address(STAR_AGENT_ID);
    struct in6_addr dst = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);
    struct srh_copy copies[4];
    struct encap_template t;
    struct roce_spec spec = transit_write(psn);
    uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
    size_t inner_len = roce_build(inner, &spec);

    for (unsigned i = 0; i < n; i++) {
        copies[i] = (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(i), star_qpn(i)};
    }
    ck_assert_int_eq(encap_template_build(&t, &src, &dst, &star_proxy, copies, n), 0);
    encap_template_stamp(&t, bytes, (uint16_t) inner_len, 2, 1);
    memcpy(bytes + t.len, inner, inner_len);
    fixture_input(f, AGENT_PORT, bytes, t.len + inner_len);
}

static void
receiver_acks(struct fixture *f, unsigned i, uint32_t psn)
{
    struct in6_addr r = star_receiver(i);
    uint8_t bytes[PACKET_ROOM];
    struct roce_spec spec = {
        .src = &r,
        .dst = &star_proxy,
        .dest_qp = STAR_DQPN,
        .opcode = RC_ACK,
        .psn = psn & PSN_MASK,
        .syndrome = AETH_ACK_UNLIMITED,
    };

    fixture_input(f, star_port(i), bytes, roce_build(bytes, &spec));
}

/* To all that count, and to nobody else, whatever the packet says; both change at once. */
START_TEST(provisioned_edge)
    {
        struct fixture *f = fixture_create(&swedge_class, 3);

        to_edge(f, START, 0);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_mt_no_tlv), 1);

        f->config.trees[0].provisioned = true;
        fixture_configure(f);
        for (unsigned n = 0; n < 3; n++) { /* in TLVs. */
            to_edge(f, START + n, n);
            ck_assert_uint_eq(f->n_frames, 3);
            for (unsigned i = 0; i < 3; i++) {
                struct in6_addr r = star_receiver(i);
                ck_assert_uint_eq(f->frames[i].port, star_port(i));
                ck_assert_mem_eq(&outer_of(&f->frames[i])->dst, &r, sizeof r);
                ck_assert(frame_icrc_ok(&f->frames[i]));
            }
        }
        receiver_acks(f, 0, START + 2);
        receiver_acks(f, 1, START + 2);
        ck_assert_uint_eq(f->n_frames, 0);
        f->config.trees[0].n_branches = 2; /* r3 is out. */
        f->n_frames = 0;
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 1); /* what the others have confirmed. */
        to_edge(f, START + 3, 3);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
modes_suite(void)
{
    Suite *s = suite_create("modes");
    TCase *tc = tcase_create("modes_agent");

    tcase_add_test(tc, ingress);
    tcase_add_test(tc, ingress_edge_is_left);
    tcase_add_loop_test(tc, ingress_refused, 0, 2);
    tcase_add_test(tc, ingress_policies);
    tcase_add_loop_test(tc, ingress_edge_is_lost, 0, 2);
    tcase_add_test(tc, mcast_agent);
    tcase_add_test(tc, provisioned_agent);
    suite_add_tcase(s, tc);
    tc = tcase_create("modes_switch");
    tcase_add_test(tc, mcast_forwards);
    tcase_add_loop_test(tc, mcast_refused, 0, 6);
    tcase_add_test(tc, mcast_too_big);
    tcase_add_test(tc, mcast_bud);
    tcase_add_test(tc, mcast_new_epoch);
    tcase_add_loop_test(tc, packet_of_another_group, 0, 2);
    tcase_add_test(tc, mcast_by_end_mt_sid);
    tcase_add_test(tc, provisioned_edge);
    suite_add_tcase(s, tc);
    return s;
}
