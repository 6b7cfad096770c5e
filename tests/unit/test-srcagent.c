/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent: encapsulation, the gate, refusals, and what reaches the host.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/icrc.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"
#include "tests/unit/node-fixture.h"
#include "tests/unit/suites.h"

#define START     0xfffffeu
#define HOST_PORT 1
#define UPLINK    2

static struct roce_spec
request(uint8_t opcode, uint32_t psn)
{
    return (struct roce_spec){
        .src = &star_source,
        .dst = &star_proxy,
        .dest_qp = STAR_DQPN,
        .opcode = opcode,
        .ack_req = true,
        .psn = psn & PSN_MASK,
        .va = 0,
        .rkey = STAR_RKEY,
        .dma_len = 64,
        .payload_len = roce_opcode_info(opcode)->flags & ROCE_F_PAYLOAD ? 64 : 0,
    };
}

static void
from_host(struct fixture *f, const struct roce_spec *spec)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len = roce_build(bytes, spec);
    fixture_input(f, HOST_PORT, bytes, len);
}

static void
write_at(struct fixture *f, uint32_t psn)
{
    struct roce_spec spec = request(RC_WRITE_ONLY, psn);
    from_host(f, &spec);
}

static void
response(struct fixture *f, uint8_t syndrome, uint32_t psn, uint32_t dest_qp)
{
    uint8_t bytes[256];
    size_t len = roce_build(bytes, &(struct roce_spec){
                                       .src = &star_proxy,
                                       .dst = &star_source,
                                       .dest_qp = dest_qp,
                                       .opcode = RC_ACK,
                                       .psn = psn & PSN_MASK,
                                       .syndrome = syndrome,
                                       .msn = 7,
                                   });
    fixture_input(f, UPLINK, bytes, len);
}

/* Frame i is a response made here for the host. */
static void
check_made(const struct fixture *f, size_t i, uint8_t syndrome, uint32_t psn)
{
    ck_assert_uint_gt(f->n_frames, i);
    const struct frame *frame = &f->frames[i];
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);

    ck_assert_uint_eq(frame->port, HOST_PORT);
    ck_assert_mem_eq(&ip->src, &star_proxy, 16);
    ck_assert_mem_eq(&ip->dst, &star_source, 16);
    ck_assert_uint_eq(be24_get(bth->dest_qp), STAR_SOURCE_QPN);
    ck_assert_uint_eq(bth_psn(bth).v, psn & PSN_MASK);
    ck_assert_uint_eq(frame->bytes[frame->h.ext_ofs], syndrome);
    ck_assert(frame_icrc_ok(frame));
}

START_TEST(encapsulation)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct roce_spec spec = request(RC_WRITE_ONLY, START);
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
        inner[7]--;
        ck_assert_uint_eq(frame->len, frame->h.inner.ofs + inner_len);
        ck_assert_mem_eq(frame->bytes + frame->h.inner.ofs, inner, inner_len);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Held while closed, at most as many as a requester has in flight; then sent in
 * order. */
START_TEST(gate)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);

        f->config.trees[0].open = false;
        fixture_configure(f);
        for (unsigned i = 0; i < 40; i++) {
            write_at(f, START + i);
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
        for (unsigned i = 0; i < AGENT_QUEUE_MAX + 3; i++) {
            write_at(f, START + 40 + i);
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_group_closed), 3);
        ck_assert_uint_eq(fixture_total_drops(f), 3);
        fixture_destroy(f); /* returns what is held. */
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
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct roce_spec spec = request(refused[_i].opcode, START + 2);
        spec.va = refused[_i].va;
        spec.rkey = refused[_i].rkey;

        write_at(f, START);
        write_at(f, START + 1);
        from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        write_at(f, START + 3);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_refused), 1);

        response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 1); /* just passed on. */
        response(f, AETH_ACK_UNLIMITED, START + 1, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 2);
        check_made(f, 0, refused[_i].syndrome, START + 2);
        check_made(f, 1, AETH_ACK_UNLIMITED, START + 1);

        from_host(f, &spec); /* asked again, said again. */
        ck_assert_uint_eq(f->n_frames, 1);
        check_made(f, 0, refused[_i].syndrome, START + 2);
        fixture_destroy(f);
    }
END_TEST

START_TEST(refusal_at_the_start)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct roce_spec spec = request(RC_READ_REQ, START);

        from_host(f, &spec);
        check_made(f, 0, AETH_NAK_INVALID_REQ, START);
        fixture_destroy(f);
    }
END_TEST

/* Without state: only a rewind, or a response, says what is confirmed. */
START_TEST(refusal_after_restart)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct roce_spec spec = request(RC_READ_REQ, 0x1234);

        from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        write_at(f, 0x1230); /* the rewind starts lower. */
        for (int i = 0; i < 2; i++) {
            from_host(f, &spec);
            ck_assert_uint_eq(f->n_frames, 0);
        }
        from_host(f, &spec);
        check_made(f, 0, AETH_NAK_INVALID_REQ, 0x1234);
        fixture_destroy(f);
    }
END_TEST

START_TEST(responses)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);

        response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        write_at(f, START);
        response(f, AETH_ACK_UNLIMITED, START + 1, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 2);
        response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        check_made(f, 0, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 1);
        fixture_destroy(f);
    }
END_TEST

/* What is not multicast passes both ways; a host has one address. */
START_TEST(plain_traffic)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct in6_addr other = star_receiver(0);
        struct roce_spec spec = request(RC_READ_REQ, 1);
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

START_TEST(stale_epoch)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct roce_spec spec = request(RC_WRITE_ONLY, START);

        write_at(f, START);
        f->config.trees[0].epoch++;
        f->config.trees[0].designated_qpn++;
        fixture_configure(f);
        from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN); /* nothing sent in this epoch. */
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_destroy(f);
    }
END_TEST

START_TEST(mangled_packets)
    {
        struct fixture *f = fixture_create(&srcagent_class, 3);
        struct roce_spec spec = request(RC_WRITE_ONLY, START);
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
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct roce_spec spec = request(RC_WRITE_ONLY, START + 1);

        f->config.trees[0].region_len = 32;
        fixture_configure(f);
        write_at(f, START); /* 64 bytes: refused at once. */
        check_made(f, 0, AETH_NAK_REM_ACCESS, START);
        f->config.trees[0].region_len = STAR_REGION;
        fixture_configure(f);
        write_at(f, START);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        fixture_destroy(f);
    }
END_TEST

/* What the group has confirmed is not refused when it comes again, whatever the
 * region is by then: the receivers will acknowledge it again. */
START_TEST(confirmed_is_not_refused)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);

        write_at(f, START);
        response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        f->config.trees[0].region_len = 32;
        fixture_configure(f);
        write_at(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        fixture_destroy(f);
    }
END_TEST

/* A closed group has no region to measure by: requests wait. */
START_TEST(closed_group_refuses_nothing)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);

        f->config.trees[0].open = false;
        f->config.trees[0].region_len = 0;
        fixture_configure(f);
        write_at(f, START);
        ck_assert_uint_eq(f->n_frames, 0);
        f->config.trees[0].open = true;
        fixture_configure(f);
        check_made(f, 0, AETH_NAK_REM_ACCESS, START);
        fixture_destroy(f);
    }
END_TEST

/* H28: a corrupt PSN does not raise the bound for acknowledgements. */
START_TEST(corrupt_psn)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct roce_spec spec = request(RC_WRITE_ONLY, 0x3ffffe);
        uint8_t bytes[PACKET_ROOM];
        size_t len = roce_build(bytes, &spec);

        write_at(f, START);
        bytes[len - 1] ^= 1;
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_jump), 1);
        response(f, AETH_ACK_UNLIMITED, START + 1000, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        fixture_destroy(f);
    }
END_TEST

/* Two epochs of one Proxy, while the controller moves from one to the other. */
START_TEST(two_epochs)
    {
        struct fixture *f = fixture_create(&srcagent_class, 2);
        struct roce_spec spec = request(RC_WRITE_ONLY, START);

        fixture_add_epoch(f);
        from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        spec.dest_qp++;
        from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* No switch aggregates: nodes 0x301 and 0x302 send to the agent what they have merged. */
static struct fixture *
root_agent(void)
{
    struct fixture *f = fixture_create(&srcagent_class, 2);

    fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
    fixture_add_node_branch(f, 0x301);
    fixture_add_node_branch(f, 0x302);
    f->config.trees[0].root = true;
    fixture_configure(f);
    return f;
}

static void
node_responds(struct fixture *f, uint16_t port, uint16_t node, uint8_t syndrome, uint32_t psn)
{
    struct in6_addr src = node_address(node);
    struct in6_addr dst = node_sid(STAR_AGENT_ID, SID_FUNC_RESPONSE);
    struct packet *p = response_build(f->pool, &star_proxy, &star_source, 0xc001, STAR_DQPN,
                                      psn_make(psn), syndrome, 1);
    uint8_t bytes[256];

    response_wrap(p, &src, &dst);
    size_t len = packet_flatten(p, bytes, sizeof bytes);
    packet_put(p);
    fixture_input(f, port, bytes, len);
}

START_TEST(agent_is_root)
    {
        struct fixture *f = root_agent();
        struct reverse_branch_info info;
        struct tree_info tree;

        for (uint32_t i = 0; i < 3; i++) {
            write_at(f, START + i);
            ck_assert_uint_eq(f->n_frames, 1);
        }
        node_responds(f, UPLINK, 0x301, AETH_ACK_UNLIMITED, START + 2);
        ck_assert_uint_eq(f->n_frames, 0);
        node_responds(f, UPLINK, 0x302, AETH_ACK_UNLIMITED, START);
        check_made(f, 0, AETH_ACK_UNLIMITED, START);
        node_responds(f, UPLINK, 0x302, AETH_NAK_PSN_SEQ, START + 1);
        check_made(f, 0, AETH_NAK_PSN_SEQ, START + 1);
        srcagent_class.tree(f->node, 0, &tree);
        ck_assert_uint_eq(tree.reverse.m.v, (START + 1) & PSN_MASK);
        ck_assert_uint_eq(tree.reverse.h.v, (START + 3) & PSN_MASK);
        ck_assert(srcagent_class.branch(f->node, 0, BRANCH_ID_NODE(0x302), &info));
        ck_assert_uint_eq(info.n_naks, 1);
        /* Node 0x302 leaves: what remains has confirmed everything. */
        f->config.trees[0].n_branches = 1;
        f->n_frames = 0;
        fixture_configure(f);
        check_made(f, 0, AETH_ACK_UNLIMITED, START + 2);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A refusal waits for what the agent itself has merged. */
START_TEST(root_refuses_in_turn)
    {
        struct fixture *f = root_agent();
        struct roce_spec read = request(RC_READ_REQ, START + 1);

        write_at(f, START);
        from_host(f, &read);
        ck_assert_uint_eq(f->n_frames, 0);
        node_responds(f, UPLINK, 0x301, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);
        node_responds(f, UPLINK, 0x302, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 2);
        check_made(f, 0, AETH_ACK_UNLIMITED, START);
        check_made(f, 1, AETH_NAK_INVALID_REQ, START + 1);
        fixture_destroy(f);
    }
END_TEST

START_TEST(root_takes_only_branches)
    {
        struct fixture *f = root_agent();

        write_at(f, START);
        node_responds(f, UPLINK, 0x303, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(fixture_drops(f, DROP_unknown_branch), 1);
        node_responds(f, UPLINK, 0x301, AETH_ACK_UNLIMITED, START + 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        node_responds(f, HOST_PORT, 0x301, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), 1);
        /* What claims to be merged already is not for the host. */
        response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_unknown_branch), 2);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 4);
        fixture_destroy(f);
    }
END_TEST

Suite *
srcagent_suite(void)
{
    Suite *s = suite_create("srcagent");
    TCase *tc = tcase_create("agent");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, encapsulation);
    tcase_add_test(tc, gate);
    tcase_add_loop_test(tc, refusals, 0, sizeof refused / sizeof refused[0]);
    tcase_add_test(tc, refusal_at_the_start);
    tcase_add_test(tc, refusal_after_restart);
    tcase_add_test(tc, responses);
    tcase_add_test(tc, plain_traffic);
    tcase_add_test(tc, stale_epoch);
    tcase_add_test(tc, refusal_withdrawn);
    tcase_add_test(tc, confirmed_is_not_refused);
    tcase_add_test(tc, closed_group_refuses_nothing);
    tcase_add_test(tc, corrupt_psn);
    tcase_add_test(tc, two_epochs);
    tcase_add_test(tc, agent_is_root);
    tcase_add_test(tc, root_refuses_in_turn);
    tcase_add_test(tc, root_takes_only_branches);
    tcase_add_test(tc, mangled_packets);
    suite_add_tcase(s, tc);
    return s;
}
