/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge as an edge that is also root: packet in, packets and one counter out.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/roce.h"
#include "lib/srh.h"
#include "swedge/swedge.h"
#include "tests/unit/edge-fixture.h"
#include "tests/unit/suites.h"

/* Proves MT-3-4, MT-5.2-4, MT-5.2-6, MT-5.2-7, MT-5.2-8, MT-5.2-9, MT-5.2-10, MT-5.2-11, MT-6-S06,
 * MT-6-S07, MT-6-S08, MT-6-S09, MT-6-S10, MT-6-S11, MT-6-S12, MT-6-Ref2, MT-6-Ref3. */
START_TEST(copies_are_exact)
    {
        static const uint8_t opcodes[] = {RC_WRITE_ONLY, RC_WRITE_FIRST};
        struct fixture *f = fixture_create(&swedge_class, 5);

        for (unsigned n = 1; n <= 5; n++) {
            struct roce_spec spec = edge_write(START + n - 1);
            spec.opcode = opcodes[n % 2];
            spec.psn &= PSN_MASK;
            spec.payload_len = spec.dma_len = 100 + n;
            edge_down(f, &spec, n);
            ck_assert_uint_eq(f->n_frames, n);
            for (unsigned i = 0; i < n; i++) {
                check_copy(&f->frames[i], i, &spec);
            }
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Only 06, 0a and 0b have an RETH; the others keep their payload untouched.
 *
 * Proves MT-5.2-8, MT-6-S09. */
START_TEST(middle_and_send_have_no_reth)
    {
        static const uint8_t opcodes[] = {RC_SEND_ONLY, RC_WRITE_MIDDLE, RC_WRITE_LAST,
                                          RC_SEND_LAST_IMM};
        struct fixture *f = fixture_create(&swedge_class, 2);

        for (unsigned k = 0; k < 4; k++) {
            struct roce_spec spec = edge_write((START + k) & PSN_MASK);
            spec.opcode = opcodes[k];
            spec.payload_len = 1024;
            edge_down(f, &spec, 2);
            ck_assert_uint_eq(f->n_frames, 2);
            check_copy(&f->frames[0], 0, &spec);
            check_copy(&f->frames[1], 1, &spec);
        }
        fixture_destroy(f);
    }
END_TEST

/* A WRITE of no bytes touches no memory: an endpoint takes it with any rkey and address, so the
 * edge lets these through as they are.
 *
 * Proves MT-6-S09. */
START_TEST(zero_length_write)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);

        spec.dma_len = spec.payload_len = 0;
        spec.rkey = STAR_RKEY + 1;
        spec.va = UINT64_MAX;
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        for (unsigned i = 0; i < 2; i++) {
            const struct frame *frame = &f->frames[i];
            const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);
            const struct reth *reth = (const void *) (frame->bytes + frame->h.ext_ofs);

            ck_assert_uint_eq(frame->port, star_port(i));
            ck_assert_uint_eq(be24_get(bth->dest_qp), star_qpn(i));
            ck_assert_uint_eq(be64_get(reth->va), spec.va);
            ck_assert_uint_eq(be32_get(reth->rkey), spec.rkey);
            ck_assert_uint_eq(be32_get(reth->dma_len), 0);
            ck_assert(frame_icrc_ok(frame));
        }

        /* One byte is checked. */
        spec.psn = psn_make(START + 1).v;
        spec.dma_len = spec.payload_len = 1;
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_rkey), 1);
        fixture_destroy(f);
    }
END_TEST

/* H22: what arrives corrupt stays corrupt.
 *
 * Proves MT-5.2-9, MT-6-S10. */
START_TEST(corruption_is_not_laundered)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);
        uint8_t bytes[PACKET_ROOM];
        size_t len = edge_encapsulated(bytes, &spec, 2);

        bytes[len - 10] ^= 1;
        fixture_input(f, 1, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert(!frame_icrc_ok(&f->frames[0]));
        ck_assert(!frame_icrc_ok(&f->frames[1]));
        fixture_destroy(f);
    }
END_TEST

/* ... unless the node is told to look. */
START_TEST(verify_always)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);
        uint8_t bytes[PACKET_ROOM];
        size_t len = edge_encapsulated(bytes, &spec, 2);

        f->config.verify_always = true;
        fixture_configure(f);
        fixture_input(f, 1, bytes, len);
        ck_assert_uint_eq(f->n_frames, 2);
        bytes[len - 10] ^= 1;
        fixture_input(f, 1, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_icrc), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* H1, H11, H19: the slower branch decides, addressed as the source's QP expects.
 *
 * Proves MT-5.3.1-4, MT-5.3.1-5. */
START_TEST(acks_are_merged)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);

        for (unsigned k = 0; k < 3; k++) {
            struct roce_spec spec = edge_write((START + k) & PSN_MASK);
            edge_down(f, &spec, 2);
        }
        edge_respond(f, 0, AETH_ACK_UNLIMITED, 0, STAR_DQPN);
        ck_assert_uint_eq(f->n_frames, 0);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, 0, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, 0);
        edge_respond(f, 1, AETH_NAK_REM_OP, 0, STAR_DQPN); /* below una: changes nothing. */
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_destroy(f);
    }
END_TEST

/* H28 and epochs: nothing that was not sent is acknowledged.
 *
 * Proves MT-9-3. */
START_TEST(forged_responses)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);
        struct in6_addr r1 = star_receiver(1);
        uint8_t bytes[256];

        edge_down(f, &spec, 2);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, (START + 1) & PSN_MASK, STAR_DQPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);

        /* In the name of another receiver: the port knows its host. */
        size_t len = roce_build(bytes, &(struct roce_spec){
                                           .src = &r1,
                                           .dst = &star_proxy,
                                           .dest_qp = STAR_DQPN,
                                           .opcode = RC_ACK,
                                           .psn = START,
                                           .syndrome = AETH_ACK_UNLIMITED,
                                       });
        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), 1);
        bytes[len - 1] ^= 1;
        fixture_input(f, star_port(1), bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_icrc), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 4);
        fixture_destroy(f);
    }
END_TEST

/* What no endpoint sends as an answer is not merged into an answer that looks sound.  A P_Key of
 * the default partition is right with both kinds of membership. */
static const struct {
    uint16_t pkey;
    size_t payload_len;
    enum drop_reason why;
} odd_answers[] = {
    {0, 0, DROP_none},      {0x7fff, 0, DROP_none},    {0xfffe, 0, DROP_pkey},    {1, 0, DROP_pkey},
    {0x8000, 0, DROP_pkey}, {0, 4, DROP_resp_payload}, {0, 1, DROP_resp_payload},
};

START_TEST(odd_responses)
    {
        struct fixture *f = fixture_create(&swedge_class, 1);
        struct roce_spec spec = edge_write(START);
        struct in6_addr r = star_receiver(0);
        enum drop_reason why = odd_answers[_i].why;
        uint8_t bytes[256];

        edge_down(f, &spec, 1);
        size_t len = roce_build(bytes, &(struct roce_spec){
                                           .src = &r,
                                           .dst = &star_proxy,
                                           .dest_qp = STAR_DQPN,
                                           .opcode = RC_ACK,
                                           .psn = START,
                                           .syndrome = AETH_ACK_UNLIMITED,
                                           .pkey = odd_answers[_i].pkey,
                                           .payload_len = odd_answers[_i].payload_len,
                                       });
        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(fixture_total_drops(f), why != DROP_none);
        if (why) {
            ck_assert_uint_eq(f->n_frames, 0);
            ck_assert_uint_eq(fixture_drops(f, why), 1);
        } else {
            edge_check_response(f, AETH_ACK_UNLIMITED, START);
        }
        fixture_destroy(f);
    }
END_TEST

/* H28: a PSN out of nowhere is believed only if the packet is sound. */
START_TEST(psn_jump)
    {
        struct fixture *f = fixture_create(&swedge_class, 1);
        struct roce_spec spec = edge_write(START);
        uint8_t bytes[PACKET_ROOM];

        edge_down(f, &spec, 1);
        spec.psn = psn_make(START + 1 + REVERSE_MAX_UNVERIFIED_JUMP).v;
        size_t len = edge_encapsulated(bytes, &spec, 1);
        bytes[len - 1] ^= 1;
        fixture_input(f, 1, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_jump), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, psn_make(START + 1).v, STAR_DQPN); /* not sent. */
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        edge_down(f, &spec, 1);
        ck_assert_uint_eq(f->n_frames, 1);
        spec.psn = psn_make(START + 1 + 2 * REVERSE_MAX_UNVERIFIED_JUMP).v; /* just near enough. */
        len = edge_encapsulated(bytes, &spec, 1);
        bytes[len - 1] ^= 1;
        fixture_input(f, 1, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        fixture_destroy(f);
    }
END_TEST

/* A host that is on two ports answers on the one that it is reached by.
 *
 * Proves MT-9-3. */
START_TEST(wrong_port)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);
        struct in6_addr r0 = star_receiver(0);
        uint8_t bytes[256];

        for (size_t i = 0; i < f->config.n_ports; i++) {
            if (f->config.ports[i].number == star_port(1)) {
                f->config.ports[i].peer_address = r0;
            }
        }
        f->config.trees[0].n_branches = 1;
        fixture_configure(f);
        edge_down(f, &spec, 1);
        size_t len = roce_build(bytes, &(struct roce_spec){
                                           .src = &r0,
                                           .dst = &star_proxy,
                                           .dest_qp = STAR_DQPN,
                                           .opcode = RC_ACK,
                                           .psn = START,
                                           .syndrome = AETH_ACK_UNLIMITED,
                                       });
        fixture_input(f, star_port(1), bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_wrong_port), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_input(f, star_port(0), bytes, len);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

/* Each way in which a packet to the End.MT SID can be wrong, and its counter. */
static const struct {
    enum drop_reason why;
    int ofs; /* of the byte to change, from the outer IPv6 header; -1: from 'spec'. */
    uint8_t value;
} bad_down[] = {
    {DROP_hop_limit, 7, 1},
    {DROP_source_guard, 8 + 15, 2}, /* outer source is not the agent. */
    {DROP_mt_segments_left, 40 + 3, 0},
    {DROP_srh_malformed, 40 + 3, 2},   /* Segments Left > Last Entry + 1. */
    {DROP_srh_malformed, 40 + 4, 99},  /* Last Entry. */
    {DROP_mt_context, 40 + 8 + 15, 9}, /* Segment List[0] is not the Proxy. */
    {DROP_mt_tlv_malformed, 40 + 24 + 1, 61},
    {DROP_mt_no_tlv, 40 + 24 + 4 + 15, 9}, /* another edge. */
    {DROP_ecn_ce, 40 + 112 + 1, 0},        /* outer CE below, inner not ECT. */
};

/* Proves MT-6-S14. */
START_TEST(bad_packets_are_named)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);
        uint8_t bytes[PACKET_ROOM];
        size_t len = edge_encapsulated(bytes, &spec, 2);

        if (bad_down[_i].why == DROP_ecn_ce) {
            struct ip6_hdr_wire *outer = (void *) bytes;
            ip6_set_vtf(outer, 3, 0);
            bytes[len - roce_build((uint8_t[PACKET_ROOM]){0}, &spec) + 1] &= 0xf;
        } else {
            bytes[bad_down[_i].ofs] = bad_down[_i].value;
        }
        fixture_input(f, 1, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, bad_down[_i].why), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-5.2-5, MT-8-5. */
START_TEST(bad_requests_are_named)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct in6_addr other = star_receiver(7);
        struct roce_spec spec;

        spec = edge_write(START), spec.dest_qp++;
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        spec = edge_write(START), spec.src = &other;
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(fixture_drops(f, DROP_inner_source), 1);
        spec = edge_write(START), spec.rkey++;
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(fixture_drops(f, DROP_rkey), 1);
        spec = edge_write(START), spec.opcode = RC_READ_REQ;
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(fixture_drops(f, DROP_opcode), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 4);
        ck_assert_uint_eq(f->n_frames, 0);
        spec = edge_write(START), spec.va = STAR_REGION - 100;
        edge_down(f, &spec, 2); /* a drop for each receiver. */
        ck_assert_uint_eq(fixture_drops(f, DROP_mr_range), 2);
        spec = edge_write(START);
        edge_down(f, &spec, 3); /* one receiver too many in the TLV. */
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(fixture_drops(f, DROP_not_provisioned), 1);
        fixture_destroy(f);
    }
END_TEST

/* A new epoch starts from nothing; the same one keeps its progress.
 * Proves MT-8-6. */
START_TEST(epochs)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);

        edge_down(f, &spec, 2);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        fixture_configure(f);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);

        f->config.trees[0].epoch = 2;
        f->config.trees[0].designated_qpn++;
        fixture_configure(f);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        fixture_destroy(f);
    }
END_TEST

/* An old epoch beside a new one is over: the source may have the same QPN in
 * both, and would take what is late for what is new. */
START_TEST(superseded_epoch)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);

        edge_down(f, &spec, 2);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        f->n_frames = 0;
        fixture_add_epoch(f);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        ck_assert_uint_eq(f->n_frames, 0);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 2);
        f->config.trees[0].n_branches = 1; /* moves its minimum, but says nothing. */
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 0);

        spec.dest_qp++;
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 2);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN + 1);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN + 1);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

/* What receivers say in one group is nothing to another that they are in, whose Designated QPN
 * may be
 * the same.  Proves MT-8-6. */
START_TEST(two_groups)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);
        struct in6_addr r1 = star_receiver(1), other = star_proxy;
        uint8_t bytes[256];

        other.s6_addr[15]++;
        fixture_add_epoch(f);
        f->config.trees[1].epoch = f->config.trees[0].epoch;
        f->config.trees[1].designated_qpn = STAR_DQPN;
        f->config.trees[1].proxy = other;
        fixture_configure(f);
        edge_down(f, &spec, 2);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        size_t len = roce_build(bytes, &(struct roce_spec){
                                           .src = &r1,
                                           .dst = &other,
                                           .dest_qp = STAR_DQPN,
                                           .opcode = RC_ACK,
                                           .psn = START,
                                           .syndrome = AETH_ACK_UNLIMITED,
                                       });
        fixture_input(f, star_port(1), bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

/* H27: the branch that held everything back leaves. */
START_TEST(removal_moves_the_minimum)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);

        edge_down(f, &spec, 2);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        ck_assert_uint_eq(f->n_frames, 0);
        f->config.trees[0].n_branches = 1;
        fixture_configure(f);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

/* H26: no join while data is in flight, and then nothing changes. */
START_TEST(no_join_in_flight)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct roce_spec spec = edge_write(START);
        char *error = NULL;

        f->config.trees[0].n_branches = 1;
        fixture_configure(f);
        edge_down(f, &spec, 1);
        f->config.trees[0].n_branches = 2;
        ck_assert_int_ne(swedge_class.configure(f->node, &f->config, f->now, &error), 0);
        ck_assert_str_eq(error, "group g: r2 cannot join while packets are in flight");
        free(error);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        fixture_configure(f);
        spec = edge_write(START + 1);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 2);
        fixture_destroy(f);
    }
END_TEST

/* A TLV that names a receiver many times does not multiply packets.
 *
 * Proves MT-5.2-6, MT-6-S06. */
START_TEST(receiver_named_twice)
    {
        struct fixture *f = fixture_create(&swedge_class, 1);
        struct in6_addr src = node_address(STAR_AGENT_ID);
        struct in6_addr dst = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);
        struct srh_copy copies[9];
        struct encap_template t;
        struct roce_spec spec = edge_write(START);
        uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
        size_t inner_len = roce_build(inner, &spec);

        for (unsigned i = 0; i < 9; i++) {
            copies[i] =
                (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(0), star_qpn(0)};
        }
        ck_assert_int_eq(encap_template_build(&t, &src, &dst, &star_proxy, copies, 9), 0);
        encap_template_stamp(&t, bytes, (uint16_t) inner_len, 2, 1);
        memcpy(bytes + t.len, inner, inner_len);
        fixture_input(f, 1, bytes, t.len + inner_len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_copy(&f->frames[0], 0, &spec);
        ck_assert_uint_eq(fixture_drops(f, DROP_mt_repeated), 8);
        fixture_destroy(f);
    }
END_TEST

/* Plain traffic between hosts passes with one hop less. */
START_TEST(plain_forwarding)
    {
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct in6_addr a = star_receiver(0), b = star_receiver(1);
        uint8_t bytes[PACKET_ROOM];
        struct roce_spec spec = edge_write(5);
        spec.src = &a;
        spec.dst = &b;
        size_t len = roce_build(bytes, &spec);

        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, star_port(1));
        bytes[7]--;
        ck_assert_mem_eq(f->frames[0].bytes + sizeof(struct eth_hdr), bytes, len);
        bytes[7] = 1;
        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(f->n_frames, 1); /* Time Exceeded, to who sent it. */
        ck_assert_uint_eq(f->frames[0].port, star_port(0));
        ck_assert_uint_eq(f->frames[0].h.ip.proto, IP6_NH_ICMPV6);
        ck_assert_uint_eq(fixture_drops(f, DROP_hop_limit), 1);
        fixture_destroy(f);
    }
END_TEST

/* Every truncation and many corruptions: no crash (sanitizers watch), nothing
 * leaks, nothing multiplies. */
START_TEST(mangled_packets)
    {
        struct fixture *f = fixture_create(&swedge_class, 3);
        struct roce_spec spec = edge_write(START);
        uint8_t good[PACKET_ROOM], bytes[PACKET_ROOM];
        size_t len = edge_encapsulated(good, &spec, 3);

        for (size_t n = 0; n <= len; n++) {
            fixture_input(f, 1, good, n);
            ck_assert_uint_le(f->n_frames, 3);
        }
        srandom(1);
        for (int i = 0; i < 100000; i++) {
            memcpy(bytes, good, len);
            for (long k = random() % 4; k >= 0; k--) {
                bytes[(size_t) random() % (k % 2 ? len + 1 : 160)] = (uint8_t) random();
            }
            fixture_input(f, (uint16_t) (1 + random() % 4), bytes, len);
            ck_assert_uint_le(f->n_frames, 4);
        }
        fixture_destroy(f);
    }
END_TEST

Suite *
swedge_suite(void)
{
    Suite *s = suite_create("swedge");
    TCase *tc = tcase_create("edge");

    tcase_add_test(tc, copies_are_exact);
    tcase_add_test(tc, middle_and_send_have_no_reth);
    tcase_add_test(tc, zero_length_write);
    tcase_add_test(tc, corruption_is_not_laundered);
    tcase_add_test(tc, verify_always);
    tcase_add_test(tc, acks_are_merged);
    tcase_add_test(tc, forged_responses);
    tcase_add_loop_test(tc, odd_responses, 0, sizeof odd_answers / sizeof odd_answers[0]);
    tcase_add_test(tc, psn_jump);
    tcase_add_test(tc, wrong_port);
    tcase_add_loop_test(tc, bad_packets_are_named, 0, sizeof bad_down / sizeof bad_down[0]);
    tcase_add_test(tc, bad_requests_are_named);
    tcase_add_test(tc, epochs);
    tcase_add_test(tc, superseded_epoch);
    tcase_add_test(tc, two_groups);
    tcase_add_test(tc, removal_moves_the_minimum);
    tcase_add_test(tc, no_join_in_flight);
    tcase_add_test(tc, receiver_named_twice);
    tcase_add_test(tc, plain_forwarding);
    tcase_add_test(tc, mangled_packets);
    suite_add_tcase(s, tc);
    return s;
}
