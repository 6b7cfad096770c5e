/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent: encapsulation, the gate, refusals, and what reaches the host.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/icmp6.h"
#include "lib/icrc.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/suites.h"

/* Proves MT-3-7, MT-5.1-4, MT-5.1-6, MT-5.2-1, MT-5.2-2, MT-6-R2473-1, MT-6-R9524-5, MT-7.1-2. */
START_TEST(encapsulation)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);
        uint8_t inner[PACKET_ROOM];
        size_t inner_len = roce_build(inner, &spec);
        struct in6_addr outer_src = node_address(STAR_AGENT_ID);
        struct in6_addr outer_dst = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);

        fixture_input(f, HOST_PORT, inner, inner_len);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct frame *frame = &f->frames[0];
        const struct ip6_hdr_wire *outer = (const void *) (frame->bytes + frame->h.ip.ofs);
        ck_assert_uint_eq(frame->port, UPLINK);
        ck_assert_mem_eq(&outer->src, &outer_src, 16);
        ck_assert_mem_eq(&outer->dst, &outer_dst, 16);
        ck_assert_uint_eq(outer->hlim, 64);
        ck_assert_uint_eq(ip6_tc(outer), 2);
        ck_assert_uint_ne(ip6_flow_label(outer), 0);
        ck_assert_uint_eq(frame->h.segments_left, 1);
        ck_assert_uint_eq(frame->h.n_segments, 1);
        ck_assert_uint_eq(frame->h.n_mt_tlvs, 1);
        ck_assert_mem_eq(frame->bytes + frame->h.srh_ofs + 8, &star_proxy, 16);
        const struct mt_tlv *mt = (const void *) (frame->bytes + frame->h.mt_tlv_ofs[0]);
        const struct mt_receiver *named = (const void *) (mt + 1);
        struct in6_addr edge = node_address(STAR_EDGE_ID);
        ck_assert_mem_eq(&mt->edge, &edge, 16);
        ck_assert_uint_eq(mt->n_receivers, 2);
        for (unsigned i = 0; i < 2; i++) {
            struct in6_addr receiver = star_receiver(i);
            ck_assert_mem_eq(&named[i].addr, &receiver, 16);
            ck_assert_uint_eq(be24_get(named[i].qpn), star_qpn(i));
        }
        inner[7]--;
        ck_assert_uint_eq(frame->len, frame->h.inner.ofs + inner_len);
        ck_assert_mem_eq(frame->bytes + frame->h.inner.ofs, inner, inner_len);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* The whole traffic class goes outside, marks too (RFC 6040, normal mode); inside it stays.
 *
 * Proves MT-6-R6040-1. */
START_TEST(traffic_class)
    {
        struct fixture *f = agent_create(1);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);
        uint8_t bytes[PACKET_ROOM];
        size_t len = roce_build(bytes, &spec);

        for (unsigned tc = 0; tc < 256; tc++) {
            ip6_set_vtf((struct ip6_hdr_wire *) bytes, (uint8_t) tc, 0x777);
            fixture_input(f, HOST_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 1);
            const struct frame *frame = &f->frames[0];
            const struct ip6_hdr_wire *outer = (const void *) (frame->bytes + frame->h.ip.ofs);
            const struct ip6_hdr_wire *inner = (const void *) (frame->bytes + frame->h.inner.ofs);
            ck_assert_uint_eq(ip6_tc(outer), tc);
            ck_assert_uint_eq(ip6_tc(inner), tc);
            ck_assert_uint_eq(ip6_flow_label(inner), 0x777);
        }
        fixture_destroy(f);
    }
END_TEST

/* The outer flow label is that of the inner flow: others for other flows, one for all packets of
 * each.
 *
 * Proves MT-6-R8754-14. */
START_TEST(flow_label)
    {
        struct fixture *f = agent_create(1);
        uint32_t first[16];
        unsigned n_others = 0;

        for (uint32_t i = 0; i < 2 * 16; i++) {
            struct roce_spec spec = agent_request(RC_WRITE_ONLY, START + i / 16);
            uint8_t bytes[PACKET_ROOM];
            size_t len = roce_build(bytes, &spec);
            const struct ip6_hdr_wire *inner = (const void *) bytes;
            struct udp_hdr *udp = (void *) (bytes + sizeof *inner);

            udp->sport = be16_put((uint16_t) (0xc000 + i % 16));
            icrc_store(bytes + len - 4, icrc_compute(bytes, len - 4));
            fixture_input(f, HOST_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 1);
            const struct frame *frame = &f->frames[0];
            uint32_t label = ip6_flow_label((const void *) (frame->bytes + frame->h.ip.ofs));
            ck_assert_uint_eq(label, roce_flow_label(inner, udp, (const void *) (udp + 1)));
            if (i < 16) {
                first[i] = label;
                n_others += label != first[0];
            } else {
                ck_assert_uint_eq(label, first[i % 16]);
            }
        }
        ck_assert_uint_eq(n_others, 15);
        fixture_destroy(f);
    }
END_TEST

/* What a node of the tree says about a packet that does not fit ends here, counted: the host has no
 * use for it.
 *
 * Proves MT-6-R9524-8. */
START_TEST(packet_too_big)
    {
        struct fixture *f = agent_create(1);
        struct packet_pool *pool = packet_pool_create(2);
        struct in6_addr node = node_address(STAR_EDGE_ID);
        const struct icmp6_error error = {.type = ICMP6_TOO_BIG, .param = 1280};
        const char *why;
        uint8_t bytes[PACKET_ROOM];

        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct frame *sent = &f->frames[0];
        struct packet *p = packet_from_bytes(pool, sent->bytes, sent->len);
        struct packet *answer = icmp6_error_build(pool, &error, &node, p, sent->h.ip.ofs, &why);
        ck_assert_ptr_nonnull(answer);
        size_t len = packet_flatten(answer, bytes, sizeof bytes);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_icmp_error), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        packet_put(p);
        packet_put(answer);
        packet_pool_destroy(pool);
        fixture_destroy(f);
    }
END_TEST

/* Held while closed, at most as many as a requester has in flight; then sent in
 * order.
 *
 * Proves MT-5.1-1. */
START_TEST(gate)
    {
        struct fixture *f = agent_create(2);

        f->config.trees[0].open = false;
        fixture_configure(f);
        for (unsigned i = 0; i < 40; i++) {
            agent_write(f, START + i);
            ck_assert_uint_eq(f->n_frames, 0);
        }
        f->config.trees[0].open = true;
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 40);
        for (unsigned i = 0; i < 40; i++) {
            const struct bth *bth = (const void *) (f->frames[i].bytes + f->frames[i].h.bth_ofs);
            ck_assert_uint_eq(bth_psn(bth).v, (START + i) & PSN_MASK);
        }

        f->config.trees[0].open = false;
        fixture_configure(f);
        for (unsigned i = 0; i < PACER_QUEUE_MAX + 3; i++) {
            agent_write(f, START + 40 + i);
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_group_closed), 3);
        ck_assert_uint_eq(fixture_total_drops(f), 3);
        fixture_destroy(f); /* returns what is held. */
    }
END_TEST

static void
check_down(const struct fixture *f, uint64_t n_packets, uint64_t n_bytes)
{
    struct tree_info info;

    srcagent_class.tree(f->node, 0, &info);
    ck_assert_uint_eq(info.down->n_packets, n_packets);
    ck_assert_uint_eq(info.down->n_bytes, n_bytes);
}

/* What goes down is counted, also again; not what is held or refused. */
START_TEST(counts)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec write_spec = agent_request(RC_WRITE_ONLY, START);
        struct roce_spec bad = agent_request(RC_READ_REQ, START + 2),
                         small = agent_request(RC_SEND_ONLY, START + 2);
        uint8_t bytes[PACKET_ROOM];
        uint64_t write = roce_build(bytes, &write_spec);

        check_down(f, 0, 0);
        agent_write(f, START);
        agent_write(f, START);
        check_down(f, 2, 2 * write);
        f->config.trees[0].open = false;
        fixture_configure(f);
        agent_write(f, START + 1);
        check_down(f, 2, 2 * write);
        f->config.trees[0].open = true;
        fixture_configure(f);
        check_down(f, 3, 3 * write);
        agent_from_host(f, &bad);
        check_down(f, 3, 3 * write);
        agent_from_host(f, &small);
        check_down(f, 4, 3 * write + roce_build(bytes, &small));
        fixture_destroy(f);
    }
END_TEST

/* Feeds a packet of a SEND. */
static void
send_part(struct fixture *f, uint8_t opcode, uint32_t psn)
{
    struct roce_spec spec = agent_request(opcode, psn);

    agent_from_host(f, &spec);
}

static void
check_message(const struct fixture *f, uint32_t psn, enum messages_answer want, uint64_t number)
{
    uint64_t found = 0;

    ck_assert_int_eq(srcagent_class.message(f->node, 0, psn_make(psn), &found), want);
    ck_assert_uint_eq(found, number);
}

/* Messages are those that went down, however often: not what is held or refused. */
START_TEST(messages)
    {
        struct fixture *f = agent_create(2);

        check_message(f, START, MESSAGE_KNOWN, 0);
        send_part(f, RC_SEND_FIRST, START);
        send_part(f, RC_SEND_MIDDLE, START + 1);
        check_message(f, START + 2, MESSAGE_KNOWN, 0);
        send_part(f, RC_SEND_LAST, START + 2);
        send_part(f, RC_SEND_FIRST, START);
        check_message(f, START, MESSAGE_KNOWN, 0);
        check_message(f, START + 3, MESSAGE_KNOWN, 1);
        agent_write(f, START + 4);
        check_message(f, START + 4, MESSAGE_NOT_YET, 0);
        f->config.trees[0].open = false;
        fixture_configure(f);
        agent_write(f, START + 3);
        check_message(f, START + 4, MESSAGE_NOT_YET, 0);
        f->config.trees[0].open = true;
        fixture_configure(f);
        check_message(f, START + 4, MESSAGE_KNOWN, 2);
        send_part(f, RC_READ_REQ, START + 5);
        check_message(f, START + 5, MESSAGE_KNOWN, 3);
        check_message(f, START + 6, MESSAGE_NOT_YET, 0);
        check_message(f, START - 1, MESSAGE_UNKNOWN, 0);
        fixture_destroy(f);
    }
END_TEST

/* An agent that was started again in mid-epoch knows no numbers, whatever comes.  In the next epoch
 * it does. */
START_TEST(messages_after_restart)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

        for (unsigned i = 0; i < 2; i++) {
            bool started = i == 0;

            f->config.trees[0].epoch++;
            spec.dest_qp = ++f->config.trees[0].designated_qpn;
            f->config.trees[0].started = started;
            fixture_configure(f);
            agent_from_host(f, &spec);
            ck_assert_uint_eq(f->n_frames, 1);
            check_message(f, START, started ? MESSAGE_UNKNOWN : MESSAGE_KNOWN, 0);
        }
        fixture_destroy(f);
    }
END_TEST

static const struct {
    uint64_t va;
    uint32_t rkey;
    uint8_t opcode;
    uint8_t syndrome;
} refused[] = {
    {0, STAR_RKEY, RC_READ_REQ, AETH_NAK_INVALID_REQ},
    {0, STAR_RKEY, RC_CMP_SWAP, AETH_NAK_INVALID_REQ},
    {0, STAR_RKEY, RC_FETCH_ADD, AETH_NAK_INVALID_REQ},
    {0, STAR_RKEY, RC_SEND_ONLY_INV, AETH_NAK_INVALID_REQ},
    {0, STAR_RKEY, 0x1e, AETH_NAK_INVALID_REQ},
    {0, STAR_RKEY + 1, RC_WRITE_ONLY, AETH_NAK_REM_ACCESS},
    {STAR_REGION - 63, STAR_RKEY, RC_WRITE_ONLY, AETH_NAK_REM_ACCESS},
    {UINT64_MAX, STAR_RKEY, RC_WRITE_FIRST, AETH_NAK_REM_ACCESS},
    {STAR_REGION + 1, STAR_RKEY, RC_WRITE_ONLY_IMM, AETH_NAK_REM_ACCESS},
};

/* H17: the NAK acknowledges what is before it, so it waits for the group. */
START_TEST(refusals)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(refused[_i].opcode, START + 2);
        spec.va = refused[_i].va;
        spec.rkey = refused[_i].rkey;

        agent_write(f, START);
        agent_write(f, START + 1);
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        agent_write(f, START + 3);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_refused), 1);

        agent_response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 1); /* just passed on. */
        agent_response(f, AETH_ACK_UNLIMITED, START + 1, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 2);
        agent_check_made(f, 0, refused[_i].syndrome, START + 2);
        agent_check_made(f, 1, AETH_ACK_UNLIMITED, START + 1);

        agent_from_host(f, &spec); /* asked again, said again. */
        ck_assert_uint_eq(f->n_frames, 1);
        agent_check_made(f, 0, refused[_i].syndrome, START + 2);
        fixture_destroy(f);
    }
END_TEST

START_TEST(refusal_at_the_start)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_READ_REQ, START);

        agent_from_host(f, &spec);
        agent_check_made(f, 0, AETH_NAK_INVALID_REQ, START);
        fixture_destroy(f);
    }
END_TEST

/* Without state: only a rewind, or a response, says what is confirmed. */
START_TEST(refusal_after_restart)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_READ_REQ, 0x1234);

        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        agent_write(f, 0x1230); /* the rewind starts lower. */
        for (int i = 0; i < 2; i++) {
            agent_from_host(f, &spec);
            ck_assert_uint_eq(f->n_frames, 0);
        }
        agent_from_host(f, &spec);
        agent_check_made(f, 0, AETH_NAK_INVALID_REQ, 0x1234);
        fixture_destroy(f);
    }
END_TEST

/* Neither does the start PSN: the host has gone through all of them. */
START_TEST(refusal_after_restart_at_the_start)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_READ_REQ, START);

        f->config.trees[0].started = true;
        fixture_configure(f);
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        for (uint32_t psn = START - 5; psn != START; psn++) {
            agent_write(f, psn);
        }
        agent_response(f, AETH_NAK_PSN_SEQ, START - 5, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 1); /* just passed on. */
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        agent_response(f, AETH_ACK_UNLIMITED, START - 1, STAR_SOURCE_QPN);
        agent_check_made(f, 0, AETH_NAK_INVALID_REQ, START);
        fixture_destroy(f);
    }
END_TEST

START_TEST(responses)
    {
        struct fixture *f = agent_create(2);

        agent_response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        agent_write(f, START);
        agent_response(f, AETH_ACK_UNLIMITED, START + 1, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 2);
        agent_response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        agent_response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 1);
        fixture_destroy(f);
    }
END_TEST

/* A response that is wrapped once more goes nowhere, although each of its headers is right: the
 * host has no use for a tunnel, and what is inside was not sent by the root.  The agent learns
 * nothing from it.
 *
 * Proves MT-9-3. */
START_TEST(response_in_a_tunnel)
    {
        struct fixture *f = agent_create(2);
        uint8_t inner[256], bytes[512];
        struct tree_info info;

        agent_write(f, START);
        size_t len = roce_build(inner, &(struct roce_spec){
                                           .src = &star_proxy,
                                           .dst = &star_source,
                                           .dest_qp = STAR_SOURCE_QPN,
                                           .opcode = RC_ACK,
                                           .psn = START,
                                           .syndrome = AETH_ACK_UNLIMITED,
                                       });
        memcpy(ip6_build(bytes, star_proxy, star_source, IP6_NH_IPV6, len), inner, len);
        fixture_input(f, UPLINK, bytes, IP6_HDR_LEN + len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_not_for_us), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        srcagent_class.tree(f->node, 0, &info);
        ck_assert_uint_eq(info.reverse.m.v, START);
        fixture_input(f, UPLINK, inner, len);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

/* A WRITE of no bytes is not refused for its rkey or its address. */
START_TEST(zero_length_write)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

        spec.dma_len = spec.payload_len = 0;
        spec.rkey = STAR_RKEY + 1;
        spec.va = UINT64_MAX;
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A request with a P_Key that no member of the group can have goes nowhere: each receiver would
 * drop it. */
START_TEST(foreign_pkey)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

        spec.pkey = 0xfffe;
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_pkey), 1);
        agent_response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        spec.pkey = 0x7fff;
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        fixture_destroy(f);
    }
END_TEST

/* What is not multicast passes both ways; a host has one address.
 *
 * Proves MT-9-4. */
START_TEST(plain_traffic)
    {
        struct fixture *f = agent_create(2);
        struct in6_addr other = star_receiver(0);
        struct roce_spec spec = agent_request(RC_READ_REQ, 1);
        uint8_t bytes[PACKET_ROOM];

        spec.dst = &other;
        size_t len = roce_build(bytes, &spec);
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        bytes[7]--;
        ck_assert_mem_eq(f->frames[0].bytes + sizeof(struct eth_hdr), bytes, len);

        fixture_input(f, UPLINK, bytes, len); /* not for our host. */
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_not_for_us), 1);

        spec.src = &other;
        len = roce_build(bytes, &spec);
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), 1);

        spec.dst = &star_source;
        len = roce_build(bytes, &spec);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, HOST_PORT);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-5.2-1. */
START_TEST(stale_epoch)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

        agent_write(f, START);
        f->config.trees[0].epoch++;
        f->config.trees[0].designated_qpn++;
        fixture_configure(f);
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        agent_response(f, AETH_ACK_UNLIMITED, START,
                       STAR_SOURCE_QPN); /* nothing sent in this epoch. */
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_destroy(f);
    }
END_TEST

/* RoCEv2 has other transports besides RC, and responses: nothing of that goes down.
 * Proves MT-3-1. */
START_TEST(only_rc_requests)
    {
        struct fixture *f = agent_create(1);
        unsigned n_refused = 0;

        for (unsigned opcode = 0; opcode < 256; opcode++) {
            struct roce_spec spec = agent_request((uint8_t) opcode, START);

            if (ROCE_TRANSPORT(opcode) != ROCE_TRANSPORT_RC
                || roce_opcode_info((uint8_t) opcode)->flags & ROCE_F_RESPONSE) {
                agent_from_host(f, &spec);
                ck_assert_uint_eq(f->n_frames, 0);
                ck_assert_uint_eq(fixture_drops(f, DROP_opcode), ++n_refused);
            }
        }
        ck_assert_uint_eq(fixture_total_drops(f), n_refused);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        fixture_destroy(f);
    }
END_TEST

START_TEST(mangled_packets)
    {
        struct fixture *f = agent_create(3);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);
        uint8_t good[PACKET_ROOM], bytes[PACKET_ROOM];
        size_t len = roce_build(good, &spec);

        f->mangled = true;
        srandom(1);
        for (int i = 0; i < 100000; i++) {
            memcpy(bytes, good, len);
            for (long k = random() % 3; k >= 0; k--) {
                bytes[(size_t) random() % len] = (uint8_t) random();
            }
            fixture_input(f, (uint16_t) (1 + random() % 2), bytes,
                          random() % 4 ? len : (size_t) random() % len);
            ck_assert_uint_le(f->n_frames, 2);
        }
        fixture_destroy(f);
    }
END_TEST

/* A refusal whose reason is gone must not block what is behind it. */
START_TEST(refusal_withdrawn)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START + 1);

        f->config.trees[0].region_len = 32;
        fixture_configure(f);
        agent_write(f, START); /* 64 bytes: refused at once. */
        agent_check_made(f, 0, AETH_NAK_REM_ACCESS, START);
        f->config.trees[0].region_len = STAR_REGION;
        fixture_configure(f);
        agent_write(f, START);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        fixture_destroy(f);
    }
END_TEST

/* What the group has confirmed is not refused when it comes again, whatever the
 * region is by then: the receivers will acknowledge it again. */
START_TEST(confirmed_is_not_refused)
    {
        struct fixture *f = agent_create(2);

        agent_write(f, START);
        agent_response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        f->config.trees[0].region_len = 32;
        fixture_configure(f);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        fixture_destroy(f);
    }
END_TEST

/* A closed group has no region to measure by: requests wait. */
START_TEST(closed_group_refuses_nothing)
    {
        struct fixture *f = agent_create(2);

        f->config.trees[0].open = false;
        f->config.trees[0].region_len = 0;
        fixture_configure(f);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 0);
        f->config.trees[0].open = true;
        fixture_configure(f);
        agent_check_made(f, 0, AETH_NAK_REM_ACCESS, START);
        fixture_destroy(f);
    }
END_TEST

/* H28: a corrupt PSN does not raise the bound for acknowledgements. */
START_TEST(corrupt_psn)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, 0x3ffffe);
        uint8_t bytes[PACKET_ROOM];
        size_t len = roce_build(bytes, &spec);

        agent_write(f, START);
        bytes[len - 1] ^= 1;
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_jump), 1);
        agent_response(f, AETH_ACK_UNLIMITED, START + 1000, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        fixture_destroy(f);
    }
END_TEST

/* Ethernet padding does not go down; what is too long for the fabric is counted.
 *
 * Proves MT-6-R2473-3. */
START_TEST(length)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);
        uint8_t bytes[PACKET_ROOM];
        size_t len = roce_build(bytes, &spec);

        memset(bytes + len, 0xaa, 10);
        fixture_input(f, HOST_PORT, bytes, len + 10);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].len, f->frames[0].h.inner.ofs + len);
        ck_assert(frame_icrc_ok(&f->frames[0]));
        f->mtu[UPLINK] = (uint32_t) len;
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0); /* the outer source is the agent itself. */
        ck_assert_uint_eq(fixture_drops(f, DROP_too_long), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* What the host does leaves the fabric's ICMPv6 errors alone. */
START_TEST(errors_by_port)
    {
        struct fixture *f = agent_create(2);
        uint8_t bytes[IP6_HDR_LEN];

        ip6_build(bytes, star_source, star_receiver(1), IP6_NH_NONE, 0);
        bytes[offsetof(struct ip6_hdr_wire, hlim)] = 1;
        do {
            fixture_input(f, HOST_PORT, bytes, sizeof bytes);
        } while (f->n_frames);
        ip6_build(bytes, star_receiver(1), star_source, IP6_NH_NONE, 0);
        bytes[offsetof(struct ip6_hdr_wire, hlim)] = 1;
        fixture_input(f, UPLINK, bytes, sizeof bytes);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], UPLINK, ICMP6_TIME, ICMP6_TIME_HOP_LIMIT, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_hop_limit), ICMP6_ERRORS_BURST + 2);
        fixture_destroy(f);
    }
END_TEST

START_TEST(sids_of_agents_only)
    {
        struct fixture *f = agent_create(1);
        char *error = NULL;

        fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
        fixture_add_sid(f, SID_FUNC_END_MT, 64, SID_END_MT);
        fixture_add_sid(f, SID_FUNC_END_DT6, 64, SID_END_DT6);
        fixture_configure(f);
        fixture_add_sid(f, SID_FUNC_END, 64, SID_END);
        ck_assert_int_eq(srcagent_class.configure(f->node, &f->config, f->now, &error), EOPNOTSUPP);
        ck_assert_str_eq(error, "a source agent has no SID with behaviour End");
        free(error);
        fixture_destroy(f);
    }
END_TEST

/* Two epochs of one Proxy, while the controller moves from one to the other. */
START_TEST(two_epochs)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

        fixture_add_epoch(f);
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        spec.dest_qp++;
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* The newer epoch's QP would take the old one's refusal for its own. */
START_TEST(old_epoch_refuses_nothing)
    {
        struct fixture *f = agent_create(2);
        struct roce_spec spec = agent_request(RC_READ_REQ, START);

        fixture_add_epoch(f);
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_opcode), 1);
        spec.dest_qp++;
        agent_from_host(f, &spec);
        agent_check_made(f, 0, AETH_NAK_INVALID_REQ, START);
        fixture_destroy(f);
    }
END_TEST

Suite *
srcagent_suite(void)
{
    Suite *s = suite_create("srcagent");
    TCase *tc = tcase_create("agent");

    tcase_add_test(tc, encapsulation);
    tcase_add_test(tc, traffic_class);
    tcase_add_test(tc, flow_label);
    tcase_add_test(tc, packet_too_big);
    tcase_add_test(tc, gate);
    tcase_add_test(tc, counts);
    tcase_add_test(tc, messages);
    tcase_add_test(tc, messages_after_restart);
    tcase_add_loop_test(tc, refusals, 0, sizeof refused / sizeof refused[0]);
    tcase_add_test(tc, refusal_at_the_start);
    tcase_add_test(tc, refusal_after_restart);
    tcase_add_test(tc, refusal_after_restart_at_the_start);
    tcase_add_test(tc, responses);
    tcase_add_test(tc, response_in_a_tunnel);
    tcase_add_test(tc, zero_length_write);
    tcase_add_test(tc, foreign_pkey);
    tcase_add_test(tc, plain_traffic);
    tcase_add_test(tc, stale_epoch);
    tcase_add_test(tc, refusal_withdrawn);
    tcase_add_test(tc, confirmed_is_not_refused);
    tcase_add_test(tc, closed_group_refuses_nothing);
    tcase_add_test(tc, corrupt_psn);
    tcase_add_test(tc, length);
    tcase_add_test(tc, errors_by_port);
    tcase_add_test(tc, sids_of_agents_only);
    tcase_add_test(tc, two_epochs);
    tcase_add_test(tc, old_epoch_refuses_nothing);
    tcase_add_test(tc, only_rc_requests);
    tcase_add_test(tc, mangled_packets);
    suite_add_tcase(s, tc);
    return s;
}
