/* SPDX-License-Identifier: Apache-2.0
 *
 * The star's edge: what comes down, what receivers say, what goes up.
 */
#include "tests/unit/edge-fixture.h"

#include <check.h>

#include "lib/roce.h"
#include "lib/srh.h"

size_t
edge_encapsulated(uint8_t *out, const struct roce_spec *spec, unsigned n)
{
    struct srh_copy copies[32];
    struct encap_template t;
    struct in6_addr src = node_address(STAR_AGENT_ID);
    struct in6_addr dst = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);
    uint8_t inner[PACKET_ROOM];
    size_t inner_len = roce_build(inner, spec);

    for (unsigned i = 0; i < n; i++) {
        copies[i] = (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(i), star_qpn(i)};
    }
    ck_assert_int_eq(encap_template_build(&t, &src, &dst, &star_proxy, copies, n), 0);
    encap_template_stamp(&t, out, (uint16_t) inner_len, 2, 0x12345);
    memcpy(out + t.len, inner, inner_len);
    return t.len + inner_len;
}

struct roce_spec
edge_write(uint32_t psn)
{
    return (struct roce_spec){
        .src = &star_source,
        .dst = &star_proxy,
        .dest_qp = STAR_DQPN,
        .opcode = RC_WRITE_ONLY,
        .ack_req = true,
        .psn = psn,
        .va = 0x40,
        .rkey = STAR_RKEY,
        .dma_len = 101,
        .payload_len = 101,
    };
}

void
edge_respond(struct fixture *f, unsigned receiver, uint8_t syndrome, uint32_t psn, uint32_t dest_qp)
{
    edge_respond_msn(f, receiver, syndrome, psn, 1, dest_qp);
}

void
edge_respond_msn(struct fixture *f, unsigned receiver, uint8_t syndrome, uint32_t psn, uint32_t msn,
                 uint32_t dest_qp)
{
    struct in6_addr src = star_receiver(receiver);
    uint8_t bytes[256];
    size_t len = roce_build(bytes, &(struct roce_spec){
                                       .src = &src,
                                       .dst = &star_proxy,
                                       .dest_qp = dest_qp,
                                       .opcode = RC_ACK,
                                       .psn = psn,
                                       .syndrome = syndrome,
                                       .msn = msn,
                                   });
    fixture_input(f, star_port(receiver), bytes, len);
}

void
edge_down(struct fixture *f, const struct roce_spec *spec, unsigned n)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len = edge_encapsulated(bytes, spec, n);
    fixture_input(f, 1, bytes, len);
}

void
edge_check_response(const struct fixture *f, uint8_t syndrome, uint32_t psn)
{
    ck_assert_uint_eq(f->n_frames, 1);
    const struct frame *frame = &f->frames[0];
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);
    const struct aeth *aeth = (const void *) (frame->bytes + frame->h.ext_ofs);

    ck_assert_uint_eq(frame->port, 1);
    ck_assert_mem_eq(&ip->src, &star_proxy, 16);
    ck_assert_mem_eq(&ip->dst, &star_source, 16);
    ck_assert_uint_eq(be24_get(bth->dest_qp), STAR_SOURCE_QPN);
    ck_assert_uint_eq(bth_psn(bth).v, psn);
    ck_assert_uint_eq(aeth->syndrome, syndrome);
    ck_assert(frame_icrc_ok(frame));
}
