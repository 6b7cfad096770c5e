/* SPDX-License-Identifier: Apache-2.0
 *
 * What the policies of the reverse path do to the copies of a node that has both receivers
 * and nodes below it: AckReq for those that are to be asked, none for those that have confirmed.
 */
#include <check.h>

#include "lib/roce.h"
#include "swedge/swedge.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

/* Frames in the order in which they go out if nobody is left out. */
enum { RECEIVER_0, RECEIVER_1, NODE_A, NODE_B, N_BRANCHES };

static uint16_t
port_of(unsigned branch)
{
    return branch < NODE_A ? star_port(branch) : branch == NODE_A ? PORT_A : PORT_B;
}

static struct fixture *
bud(enum reverse_nak nak, bool filter)
{
    struct fixture *f = transit_create(2);

    f->config.trees[0].policy.nak = nak;
    f->config.trees[0].policy.filter = filter;
    fixture_configure(f);
    return f;
}

/* PSN 'psn' comes down, without AckReq. */
static void
down(struct fixture *f, uint32_t psn)
{
    uint8_t bytes[PACKET_ROOM];
    struct in6_addr dst = transit_rs();
    struct roce_spec spec = transit_write(psn);

    spec.ack_req = false;
    fixture_input(f, AGENT_PORT, bytes, transit_encapsulated(bytes, &dst, &spec, 2));
}

/* The frames are sound copies for these branches (bit i), and these of them are asked. */
static void
check_copies(const struct fixture *f, uint32_t psn, unsigned copied, unsigned asked)
{
    size_t n = 0;

    ck_assert_uint_eq(f->n_frames, (unsigned) __builtin_popcount(copied));
    for (unsigned i = 0; i < N_BRANCHES; i++) {
        if (!(copied & 1u << i)) {
            continue;
        }
        const struct frame *frame = &f->frames[n++];
        const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);

        ck_assert_uint_eq(frame->port, port_of(i));
        ck_assert_uint_eq(bth_psn(bth).v, psn & PSN_MASK);
        ck_assert_uint_eq(bth->ack_req, asked & 1u << i ? BTH_ACK_REQ : 0);
        ck_assert(frame_icrc_ok(frame));
    }
}

#define ALL 0xfu

/* Proves MT-5.2-8, MT-6-S09, MT-6-Ref2, MT-6-R9524-4. */
START_TEST(those_behind_are_asked)
    {
        struct fixture *f = bud(NAK_SOLICIT, false);

        for (uint32_t i = 0; i < 3; i++) {
            down(f, START + i);
            check_copies(f, START + i, ALL, 0);
        }
        transit_receiver_responds(f, AETH_NAK_PSN_SEQ, START + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        down(f, START + 3);
        check_copies(f, START + 3, ALL, ALL & ~(1u << RECEIVER_0));
        down(f, START + 4);
        check_copies(f, START + 4, ALL, 0);
        /* A node's NAK: the other node has got further, and is not asked. */
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START + 3);
        transit_respond(f, CHILD_A, AETH_NAK_PSN_SEQ, START + 2);
        down(f, START + 5);
        check_copies(f, START + 5, ALL, 1u << RECEIVER_0 | 1u << RECEIVER_1);
        /* Only the last one, which is the original itself. */
        transit_respond(f, CHILD_A, AETH_NAK_PSN_SEQ, START + 5);
        transit_receiver_responds(f, AETH_ACK_UNLIMITED, START + 5);
        down(f, START + 6);
        check_copies(f, START + 6, ALL, 1u << RECEIVER_1 | 1u << NODE_B);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

START_TEST(hold_asks_nobody)
    {
        struct fixture *f = bud(NAK_HOLD, false);

        for (uint32_t i = 0; i < 3; i++) {
            down(f, START + i);
        }
        transit_receiver_responds(f, AETH_NAK_PSN_SEQ, START + 1);
        down(f, START + 3);
        check_copies(f, START + 3, ALL, 0);
        fixture_destroy(f);
    }
END_TEST

START_TEST(literal_sends_the_source_back)
    {
        struct fixture *f = bud(NAK_LITERAL, false);

        for (uint32_t i = 0; i < 3; i++) {
            down(f, START + i);
        }
        transit_receiver_responds(f, AETH_NAK_PSN_SEQ, START + 1);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-5.2-6, MT-6-S06, MT-6-R9524-3. */
START_TEST(no_copy_of_what_is_confirmed)
    {
        struct fixture *f = bud(NAK_HOLD, true);
        struct reverse_branch_info b;

        for (uint32_t i = 0; i < 4; i++) {
            down(f, START + i);
            check_copies(f, START + i, ALL, 0);
        }
        transit_receiver_responds(f, AETH_ACK_UNLIMITED, START + 1);
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START + 2);
        down(f, START + 1);
        check_copies(f, START + 1, 1u << RECEIVER_1 | 1u << NODE_A, 0);
        down(f, START + 2);
        check_copies(f, START + 2, ALL & ~(1u << NODE_B), 0);
        transit_respond(f, CHILD_A, AETH_ACK_UNLIMITED, START + 2);
        down(f, START + 2);
        check_copies(f, START + 2, 1u << RECEIVER_0 | 1u << RECEIVER_1, 0);
        ck_assert(swedge_class.branch(f->node, 0, BRANCH_ID_NODE(CHILD_B), &b));
        ck_assert_uint_eq(b.n_filtered, 3);
        ck_assert_uint_eq(b.n_repeats, 0);
        ck_assert(swedge_class.branch(f->node, 0, BRANCH_ID_NODE(CHILD_A), &b));
        ck_assert_uint_eq(b.n_filtered, 1);
        ck_assert_uint_eq(b.n_repeats, 2);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A node that was lost as a receiver that was: nobody behind it counts. */
START_TEST(no_copy_for_who_is_lost)
    {
        static const uint16_t nodes[] = {CHILD_A, CHILD_B};
        struct fixture *f = transit_create(2);

        f->config.trees[0].policy.prune = true;
        fixture_configure(f);
        down(f, START);
        check_copies(f, START, ALL, 0);
        transit_respond(f, nodes[_i], AETH_NAK_REM_OP, START);
        down(f, START + 1);
        check_copies(f, START + 1, ALL & ~(1u << (NODE_A + _i)), 0);
        transit_receiver_responds(f, AETH_NAK_REM_OP, START);
        down(f, START + 2);
        check_copies(f, START + 2, 1u << RECEIVER_1 | 1u << (NODE_B - _i), 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_member_lost), 3);
        ck_assert_uint_eq(fixture_total_drops(f), 3);
        fixture_destroy(f);
    }
END_TEST

/* What nobody gets a copy of is answered here. */
START_TEST(what_all_have_is_answered)
    {
        struct fixture *f = transit_create(1);

        f->config.trees[0].policy.filter = true;
        fixture_configure(f);
        for (uint32_t i = 0; i < 3; i++) {
            down(f, START + i);
        }
        transit_receiver_responds(f, AETH_ACK_UNLIMITED, START + 2);
        transit_respond(f, CHILD_A, AETH_ACK_UNLIMITED, START + 1);
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START + 2);
        transit_check_up(f, AETH_ACK_UNLIMITED, START + 1);
        down(f, START);
        transit_check_up(f, AETH_ACK_UNLIMITED, START + 1);
        down(f, START + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_timer(f);
        transit_check_up(f, AETH_ACK_UNLIMITED, START + 1);
        down(f, START + 2);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, PORT_A);
        fixture_destroy(f);
    }
END_TEST

/* A node that does not aggregate has others behind it, which answer for themselves: the copy that
 * is for all of them goes as long as one needs it, and asks if one is to be asked. */
START_TEST(nodes_behind_a_plain_one)
    {
        struct fixture *f = transit_create(0);
        struct in6_addr plain = node_sid(CHILD_A, GROUP_RS);
        struct reverse_branch_info b;

        fixture_set_outer_das(f, &plain, 1);
        f->config.trees[0].branches[0].address = node_address(0x311);
        f->config.trees[0].branches[0].id = BRANCH_ID_NODE(0x311);
        f->config.trees[0].branches[1].address = node_address(0x312);
        f->config.trees[0].branches[1].id = BRANCH_ID_NODE(0x312);
        f->config.trees[0].policy.filter = true;
        f->config.trees[0].policy.nak = NAK_SOLICIT;
        fixture_configure(f);
        for (uint32_t i = 0; i < 3; i++) {
            down(f, START + i);
            check_copies(f, START + i, 1u << NODE_A, 0);
        }
        transit_respond(f, 0x311, AETH_NAK_PSN_SEQ, START + 2);
        down(f, START + 1);
        check_copies(f, START + 1, 1u << NODE_A, 1u << NODE_A);
        down(f, START + 3);
        check_copies(f, START + 3, 1u << NODE_A, 0);
        transit_respond(f, 0x312, AETH_ACK_UNLIMITED, START + 2);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START + 2);
        down(f, START + 1);
        transit_check_up(f, AETH_ACK_UNLIMITED, START + 1);
        ck_assert(swedge_class.branch(f->node, 0, BRANCH_ID_NODE(0x312), &b));
        ck_assert_uint_eq(b.n_filtered, 1);
        ck_assert_uint_eq(b.n_repeats, 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
copies_suite(void)
{
    Suite *s = suite_create("copies");
    TCase *tc = tcase_create("policies");

    tcase_add_test(tc, those_behind_are_asked);
    tcase_add_test(tc, hold_asks_nobody);
    tcase_add_test(tc, literal_sends_the_source_back);
    tcase_add_test(tc, no_copy_of_what_is_confirmed);
    tcase_add_loop_test(tc, no_copy_for_who_is_lost, 0, 2);
    tcase_add_test(tc, what_all_have_is_answered);
    tcase_add_test(tc, nodes_behind_a_plain_one);
    suite_add_tcase(s, tc);
    return s;
}
