/* SPDX-License-Identifier: Apache-2.0
 *
 * End.Response: what a node takes from nodes below it, and what it does not.
 */
#include <check.h>

#include "lib/icrc.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "swedge/swedge.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

enum {
    OUTER_NODE = 8 + 5, /* of the source address: the node id. */
    OUTER_NH = 6,
    INNER = IP6_HDR_LEN,
    INNER_SRC = INNER + 8 + 15,
    INNER_DST = INNER + 24 + 15,
    INNER_BTH = INNER + IP6_HDR_LEN + sizeof(struct udp_hdr),
    INNER_PKEY = INNER_BTH + offsetof(struct bth, pkey),
    INNER_QPN = INNER_BTH + offsetof(struct bth, dest_qp) + 2,
    INNER_AETH = INNER_BTH + sizeof(struct bth),
    RESPONSE_SIZE = IP6_HDR_LEN + RESPONSE_LEN,
};

/* One byte is not what it should be.  The ICRC is made good again unless 'corrupt',
 * so that nothing but the check meant can refuse the packet. */
static const struct {
    size_t ofs;
    uint8_t with; /* XOR */
    bool corrupt;
    enum drop_reason why;
} bent[] = {
    {OUTER_NODE, 7, false, DROP_unknown_branch},
    {OUTER_NH, IP6_NH_IPV6 ^ IP6_NH_UDP, false, DROP_response_outer},
    {INNER_SRC, 2, true, DROP_icrc},
    {INNER_SRC, 2, false, DROP_group_unknown},
    {INNER_DST, 2, false, DROP_response_outer},
    {INNER_QPN, 4, false, DROP_stale_epoch},
    {INNER_PKEY, 1, false, DROP_pkey},
    {INNER_PKEY + 1, 1, false, DROP_pkey},
    {INNER_BTH, RC_ACK ^ RC_SEND_ONLY, false, DROP_resp_opcode},
    {INNER_AETH, 0x80, false, DROP_resp_opcode}, /* reserved syndrome. */
};

/* Child A has confirmed START and child B has not; feeds a response of B's for START, which is not
 * taken: it does not move the minimum. */
static void
check_refused(const uint8_t *ip, size_t len, enum drop_reason why)
{
    struct fixture *f = transit_create(0);
    uint8_t bytes[PACKET_ROOM];

    transit_down(f, bytes, START, 0);
    transit_respond(f, CHILD_A, AETH_ACK_UNLIMITED, START);
    fixture_input(f, PORT_B, ip, len);
    ck_assert_uint_eq(f->n_frames, 0);
    ck_assert_uint_eq(fixture_drops(f, why), 1);
    ck_assert_uint_eq(fixture_total_drops(f), 1);
    transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START);
    transit_check_up(f, AETH_ACK_UNLIMITED, START);
    fixture_destroy(f);
}

static size_t
response_of_b(uint8_t *out, uint32_t psn)
{
    return tunnelled_response(out, CHILD_B, STAR_EDGE_ID, STAR_DQPN, AETH_ACK_UNLIMITED, psn);
}

/* Proves MT-9-3. */
START_TEST(bent_responses)
    {
        uint8_t bytes[PACKET_ROOM];
        size_t len = response_of_b(bytes, START);

        bytes[bent[_i].ofs] ^= bent[_i].with;
        if (!bent[_i].corrupt) {
            icrc_store(bytes + len - ROCE_ICRC_LEN,
                       icrc_compute(bytes + INNER, RESPONSE_LEN - ROCE_ICRC_LEN));
        }
        check_refused(bytes, len, bent[_i].why);
    }
END_TEST

START_TEST(not_sent)
    {
        uint8_t bytes[PACKET_ROOM];
        size_t len = response_of_b(bytes, START + 1);

        check_refused(bytes, len, DROP_psn_not_sent);
    }
END_TEST

/* Makes the packet longer: 8 bytes at 'ofs', which belong to the 'n_headers' outer IPv6 headers. */
static void
insert(uint8_t *bytes, size_t ofs, unsigned n_headers, const uint8_t *what)
{
    memmove(bytes + ofs + 8, bytes + ofs, RESPONSE_SIZE - ofs);
    memcpy(bytes + ofs, what, 8);
    for (unsigned i = 0; i < n_headers; i++) {
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (bytes + i * IP6_HDR_LEN);
        ip->plen = be16_put((uint16_t) (be16_get(ip->plen) + 8));
    }
}

/* A response in nothing but IPv6, and nothing in it but that. */
START_TEST(something_between)
    {
        static const uint8_t before_ip[8] = {IP6_NH_IPV6, 0, 1, 4}; /* options: PadN. */
        static const uint8_t before_udp[8] = {IP6_NH_UDP, 0, 1, 4};
        static const uint8_t zeros[8];
        uint8_t bytes[PACKET_ROOM];
        size_t len = response_of_b(bytes, START);

        insert(bytes, INNER, 1, before_ip);
        bytes[OUTER_NH] = IP6_NH_DSTOPT;
        check_refused(bytes, len + 8, DROP_response_outer);

        response_of_b(bytes, START);
        insert(bytes, INNER + IP6_HDR_LEN, 2, before_udp);
        bytes[INNER + OUTER_NH] = IP6_NH_DSTOPT;
        icrc_store(bytes + len + 8 - ROCE_ICRC_LEN,
                   icrc_compute(bytes + INNER, RESPONSE_LEN + 8 - ROCE_ICRC_LEN));
        check_refused(bytes, len + 8, DROP_not_for_us);

        response_of_b(bytes, START);
        insert(bytes, len - ROCE_ICRC_LEN, 2, zeros); /* a payload. */
        ((struct udp_hdr *) (bytes + INNER + IP6_HDR_LEN))->len =
            be16_put(RESPONSE_LEN + 8 - IP6_HDR_LEN);
        icrc_store(bytes + len + 8 - ROCE_ICRC_LEN,
                   icrc_compute(bytes + INNER, RESPONSE_LEN + 8 - ROCE_ICRC_LEN));
        check_refused(bytes, len + 8, DROP_resp_payload);

        response_of_b(bytes, START);
        insert(bytes, len, 2, zeros); /* behind the ICRC. */
        check_refused(bytes, len + 8, DROP_not_for_us);
    }
END_TEST

/* Two epochs of a group: the older one is over here too, whatever it still has to say. */
START_TEST(superseded_epoch)
    {
        struct fixture *f = transit_create(0);
        uint8_t bytes[PACKET_ROOM];

        transit_down(f, bytes, START, 0);
        transit_down(f, bytes, START + 1, 0);
        transit_respond(f, CHILD_A, AETH_NAK_PSN_SEQ, START + 1);
        f->n_frames = 0;
        fixture_add_epoch(f);
        fixture_timer(f); /* the NAK was held until now. */
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        transit_down(f, bytes, START, 0);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 2);
        ck_assert_uint_eq(fixture_total_drops(f), 2);

        struct roce_spec spec = transit_write(START);
        struct in6_addr dst = transit_rs();
        spec.dest_qp++;
        size_t len = transit_encapsulated(bytes, &dst, &spec, 0);
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        fixture_destroy(f);
    }
END_TEST

/* A sequence NAK that is repeated says something new once the packet was sent again. */
START_TEST(nak_again_after_a_copy)
    {
        struct fixture *f = transit_create(1);
        uint8_t bytes[PACKET_ROOM];

        transit_down(f, bytes, START, 1);
        transit_down(f, bytes, START + 1, 1);
        for (int i = 0; i < 3; i++) {
            transit_respond(f, CHILD_A, AETH_NAK_PSN_SEQ, START);
            transit_check_up(f, AETH_NAK_PSN_SEQ, START);
            transit_respond(f, CHILD_A, AETH_NAK_PSN_SEQ, START);
            ck_assert_uint_eq(f->n_frames, 0);
            transit_down(f, bytes, START + 1, 1); /* is not what it asks for. */
            transit_respond(f, CHILD_A, AETH_NAK_PSN_SEQ, START);
            ck_assert_uint_eq(f->n_frames, 0);
            transit_down(f, bytes, START, 1);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* ... which it was not if the copy for this node could not be sent. */
START_TEST(nak_again_without_a_copy)
    {
        struct fixture *f = transit_create(0);
        uint8_t bytes[PACKET_ROOM];

        transit_down(f, bytes, START, 0);
        transit_respond(f, CHILD_B, AETH_NAK_PSN_SEQ, START);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START);
        f->mtu[PORT_B] = 200;
        transit_down(f, bytes, START, 0);
        transit_respond(f, CHILD_B, AETH_NAK_PSN_SEQ, START);
        ck_assert_uint_eq(f->n_frames, 0);
        f->mtu[PORT_B] = 0;
        f->mtu[PORT_A] = 200;
        transit_down(f, bytes, START, 0);
        transit_respond(f, CHILD_B, AETH_NAK_PSN_SEQ, START);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START);
        fixture_destroy(f);
    }
END_TEST

/* ... or if the receiver that asks had none, although the nodes had. */
START_TEST(nak_of_a_receiver)
    {
        struct fixture *f = transit_create(1);
        uint8_t bytes[PACKET_ROOM];

        transit_down(f, bytes, START, 1);
        transit_receiver_responds(f, AETH_NAK_PSN_SEQ, START);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START);
        transit_down(f, bytes, START, 0);
        ck_assert_uint_eq(f->n_frames, 2);
        transit_receiver_responds(f, AETH_NAK_PSN_SEQ, START);
        ck_assert_uint_eq(f->n_frames, 0);
        transit_down(f, bytes, START, 1);
        ck_assert_uint_eq(f->n_frames, 3);
        transit_receiver_responds(f, AETH_NAK_PSN_SEQ, START);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START);
        fixture_destroy(f);
    }
END_TEST

START_TEST(timers)
    {
        struct fixture *f = transit_create(0);
        uint8_t bytes[PACKET_ROOM];

        transit_down(f, bytes, START, 0);
        transit_down(f, bytes, START + 1, 0);
        /* A NAK above the minimum. */
        transit_respond(f, CHILD_A, AETH_NAK_PSN_SEQ, START + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(swedge_class.deadline(f->node), f->now + REVERSE_HOLD_USEC);
        fixture_timer(f);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START);

        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START + 1);
        /* An acknowledgement that is asked for again and again. */
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START);
        transit_check_up(f, AETH_ACK_UNLIMITED, START);
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(swedge_class.deadline(f->node), f->now + REVERSE_DUP_ACK_USEC);
        fixture_timer(f);
        transit_check_up(f, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

/* A failed group says so whenever the source asks for an answer, and only then. */
START_TEST(fatal_is_repeated)
    {
        struct fixture *f = transit_create(0);
        struct roce_spec spec = transit_write(START);
        struct in6_addr dst = transit_rs();
        uint8_t bytes[PACKET_ROOM];

        transit_down(f, bytes, START, 0);
        transit_respond(f, CHILD_A, AETH_NAK_REM_OP, START);
        transit_check_up(f, AETH_NAK_REM_OP, START);
        transit_down(f, bytes, START, 0);
        ck_assert_uint_eq(f->n_frames, 3);
        ck_assert_uint_eq(f->frames[2].port, PORT_PARENT);
        ck_assert_uint_eq(f->frames[2].bytes[f->frames[2].h.ext_ofs], AETH_NAK_REM_OP);
        spec.ack_req = false;
        size_t len = transit_encapsulated(bytes, &dst, &spec, 0);
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

Suite *
tunnelled_suite(void)
{
    Suite *s = suite_create("tunnelled");
    TCase *tc = tcase_create("tunnelled");

    tcase_add_loop_test(tc, bent_responses, 0, sizeof bent / sizeof bent[0]);
    tcase_add_test(tc, not_sent);
    tcase_add_test(tc, something_between);
    tcase_add_test(tc, superseded_epoch);
    tcase_add_test(tc, nak_again_after_a_copy);
    tcase_add_test(tc, nak_again_without_a_copy);
    tcase_add_test(tc, nak_of_a_receiver);
    tcase_add_test(tc, timers);
    tcase_add_test(tc, fatal_is_repeated);
    suite_add_tcase(s, tc);
    return s;
}
