/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent as the root of a tree: it merges what nodes below send to its
 * response SID.
 */
#include <check.h>

#include "lib/roce.h"
#include "srcagent/srcagent.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/suites.h"

/* Proves MT-5.3.1-5. */
START_TEST(agent_is_root)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);
        struct reverse_branch_info info;
        struct tree_info tree;

        for (uint32_t i = 0; i < 3; i++) {
            agent_write(f, START + i);
            ck_assert_uint_eq(f->n_frames, 1);
        }
        agent_node_responds(f, NODE_A, STAR_DQPN, AETH_ACK_UNLIMITED, START + 2);
        ck_assert_uint_eq(f->n_frames, 0);
        agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START);
        agent_node_responds(f, NODE_B, STAR_DQPN, AETH_NAK_PSN_SEQ, START + 1);
        agent_check_made(f, 0, AETH_NAK_PSN_SEQ, START + 1);
        srcagent_class.tree(f->node, 0, &tree);
        ck_assert_uint_eq(tree.reverse.m.v, (START + 1) & PSN_MASK);
        ck_assert_uint_eq(tree.reverse.h.v, (START + 3) & PSN_MASK);
        ck_assert(srcagent_class.branch(f->node, 0, BRANCH_ID_NODE(NODE_B), &info));
        ck_assert_uint_eq(info.n_naks, 1);
        /* Node B leaves: what remains has confirmed everything. */
        f->config.trees[0].n_branches = 1;
        f->n_frames = 0;
        fixture_configure(f);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START + 2);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A refusal waits for what the agent itself has merged. */
START_TEST(root_refuses_in_turn)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);
        struct roce_spec read = agent_request(RC_READ_REQ, START + 1);

        agent_write(f, START);
        agent_from_host(f, &read);
        ck_assert_uint_eq(f->n_frames, 0);
        agent_node_responds(f, NODE_A, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);
        agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 2);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START);
        agent_check_made(f, 1, AETH_NAK_INVALID_REQ, START + 1);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-9-3. */
START_TEST(root_takes_only_branches)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);

        agent_write(f, START);
        agent_node_responds(f, NODE_B + 1, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(fixture_drops(f, DROP_unknown_branch), 1);
        agent_node_responds(f, NODE_A, STAR_DQPN, AETH_ACK_UNLIMITED, START + 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        uint8_t bytes[PACKET_ROOM];
        size_t len =
            tunnelled_response(bytes, NODE_A, STAR_AGENT_ID, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), 1);
        /* What claims to be merged already is not for the host. */
        agent_response(f, AETH_ACK_UNLIMITED, START, STAR_SOURCE_QPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_unknown_branch), 2);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 4);
        fixture_destroy(f);
    }
END_TEST

/* The one packet for all carries AckReq if one of them is to be asked. */
START_TEST(root_asks)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

        f->config.trees[0].policy.nak = NAK_SOLICIT;
        fixture_configure(f);
        spec.ack_req = false;
        for (uint32_t i = 0; i < 4; i++) {
            spec.psn = (START + i) & PSN_MASK;
            agent_from_host(f, &spec);
            ck_assert_uint_eq(f->n_frames, 1);
            const struct frame *frame = &f->frames[0];
            const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);
            ck_assert_uint_eq(bth->ack_req, i == 2 ? BTH_ACK_REQ : 0);
            ck_assert(frame_icrc_ok(frame));
            if (i == 1) {
                agent_node_responds(f, NODE_A, STAR_DQPN, AETH_NAK_PSN_SEQ, START + 1);
                ck_assert_uint_eq(f->n_frames, 0);
            }
        }
        fixture_destroy(f);
    }
END_TEST

/* What all have confirmed goes nowhere; the host hears it again. */
START_TEST(root_filters)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);
        struct reverse_branch_info info;

        f->config.trees[0].policy.filter = true;
        fixture_configure(f);
        for (uint32_t i = 0; i < 3; i++) {
            agent_write(f, START + i);
        }
        agent_node_responds(f, NODE_A, STAR_DQPN, AETH_ACK_UNLIMITED, START + 1);
        agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, START + 2);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START + 1);
        agent_write(f, START + 1);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START + 1);
        ck_assert(srcagent_class.branch(f->node, 0, BRANCH_ID_NODE(NODE_A), &info));
        ck_assert_uint_eq(info.n_filtered, 1);
        agent_write(f, START + 2);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A sequence NAK that is repeated says something new once the packet was sent again. */
START_TEST(nak_again_after_a_copy)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);

        agent_write(f, START);
        agent_write(f, START + 1);
        for (int i = 0; i < 3; i++) {
            agent_node_responds(f, NODE_A, STAR_DQPN, AETH_NAK_PSN_SEQ, START);
            agent_check_made(f, 0, AETH_NAK_PSN_SEQ, START);
            agent_node_responds(f, NODE_A, STAR_DQPN, AETH_NAK_PSN_SEQ, START);
            ck_assert_uint_eq(f->n_frames, 0);
            agent_write(f, START + 1); /* is not what it asks for. */
            agent_node_responds(f, NODE_A, STAR_DQPN, AETH_NAK_PSN_SEQ, START);
            ck_assert_uint_eq(f->n_frames, 0);
            agent_write(f, START);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

START_TEST(timers)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);
        struct tree_info tree;

        agent_write(f, START);
        agent_write(f, START + 1);
        /* A NAK above the minimum. */
        agent_node_responds(f, NODE_A, STAR_DQPN, AETH_NAK_PSN_SEQ, START + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(srcagent_class.deadline(f->node), f->now + REVERSE_HOLD_USEC);
        fixture_timer(f);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_check_made(f, 0, AETH_NAK_PSN_SEQ, START);

        agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        /* The source went back once, and does so again only behind an ACK. */
        ck_assert_uint_eq(f->n_frames, 2);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START);
        agent_check_made(f, 1, AETH_NAK_PSN_SEQ, START + 1);
        srcagent_class.tree(f->node, 0, &tree);
        ck_assert_uint_eq(tree.reverse.n_sent_acks, 1);
        ck_assert_uint_eq(tree.reverse.n_sent_naks, 2);
        /* An acknowledgement that is asked for again and again. */
        agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START);
        agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(srcagent_class.deadline(f->node), f->now + REVERSE_DUP_ACK_USEC);
        fixture_timer(f);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

/* A failed group says so whenever the host asks for an answer, and only then. */
START_TEST(fatal_is_repeated)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

        agent_write(f, START);
        agent_node_responds(f, NODE_A, STAR_DQPN, AETH_NAK_REM_OP, START);
        agent_check_made(f, 0, AETH_NAK_REM_OP, START);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        agent_check_made(f, 1, AETH_NAK_REM_OP, START);
        spec.ack_req = false;
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        fixture_destroy(f);
    }
END_TEST

/* Two epochs, and the host uses the same QPN in both: what the old one merges
 * would be taken for the new one's. */
START_TEST(old_epoch_is_silent)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

        fixture_add_epoch(f);
        agent_write(f, START);
        agent_node_responds(f, NODE_A, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);

        spec.dest_qp++;
        agent_from_host(f, &spec);
        agent_node_responds(f, NODE_A, STAR_DQPN + 1, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);
        agent_node_responds(f, NODE_B, STAR_DQPN + 1, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_check_made(f, 0, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* H28: an agent that becomes the root later has sent nothing as the root yet, so that
 * any PSN but the first one has to be proven; one that is no root minds jumps only. */
START_TEST(corrupt_psn_at_the_root)
    {
        struct fixture *f = agent_create_root(NODE_A, NODE_B);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START + 1);
        uint8_t bytes[PACKET_ROOM];
        size_t len = roce_build(bytes, &spec);

        f->config.trees[0].root = false;
        f->config.trees[0].n_branches = 0;
        fixture_configure(f);
        bytes[len - 1] ^= 1;
        agent_write(f, START);
        fixture_input(f, HOST_PORT, bytes, len); /* near enough: the receivers will see. */
        ck_assert_uint_eq(f->n_frames, 1);

        f->config.trees[0].root = true;
        f->config.trees[0].n_branches = 2;
        fixture_configure(f);
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_jump), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        bytes[len - 1] ^= 1;
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
srcagent_root_suite(void)
{
    Suite *s = suite_create("srcagent_root");
    TCase *tc = tcase_create("srcagent_root");

    tcase_add_test(tc, agent_is_root);
    tcase_add_test(tc, root_refuses_in_turn);
    tcase_add_test(tc, root_takes_only_branches);
    tcase_add_test(tc, root_asks);
    tcase_add_test(tc, root_filters);
    tcase_add_test(tc, nak_again_after_a_copy);
    tcase_add_test(tc, timers);
    tcase_add_test(tc, fatal_is_repeated);
    tcase_add_test(tc, old_epoch_is_silent);
    tcase_add_test(tc, corrupt_psn_at_the_root);
    suite_add_tcase(s, tc);
    return s;
}
