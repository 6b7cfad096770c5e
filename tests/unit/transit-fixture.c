/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge on a bench, between other nodes.
 */
#include "tests/unit/transit-fixture.h"

#include <check.h>

#include "lib/roce.h"
#include "lib/srh.h"
#include "swedge/swedge.h"

struct in6_addr
transit_rs(void)
{
    return node_sid(STAR_EDGE_ID, GROUP_RS);
}

struct fixture *
transit_create(unsigned n_receivers)
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
    fixture_add_sid(f, SID_FUNC_END_REPLICATE, 52, SID_END_REPLICATE);
    fixture_add_node_branch(f, CHILD_A);
    fixture_add_node_branch(f, CHILD_B);
    fixture_set_outer_das(f, das, 2);
    t->replication_sid = transit_rs();
    t->root = false;
    t->parent_sid = node_sid(PARENT, SID_FUNC_RESPONSE);
    fixture_configure(f);
    return f;
}

struct roce_spec
transit_write(uint32_t psn)
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

size_t
transit_encapsulated(uint8_t *out, const struct in6_addr *dst, const struct roce_spec *spec,
                     unsigned n)
{
    struct srh_copy copies[8];
    struct encap_template t;
    struct in6_addr src = node_address(STAR_AGENT_ID);
    struct in6_addr other = addr_of("fd00:2::1");
    uint8_t inner[PACKET_ROOM];
    size_t inner_len = roce_build(inner, spec);

    for (unsigned i = 0; i < n; i++) {
        copies[i] = (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(i), star_qpn(i)};
    }
    copies[n] = (struct srh_copy){node_address(CHILD_A), other, 0x77};
    ck_assert_int_eq(encap_template_build(&t, &src, dst, &star_proxy, copies, n + 1), 0);
    encap_template_stamp(&t, out, (uint16_t) inner_len, 2, 0x12345);
    memcpy(out + t.len, inner, inner_len);
    return t.len + inner_len;
}

size_t
transit_down(struct fixture *f, uint8_t *bytes, uint32_t psn, unsigned n)
{
    struct in6_addr dst = transit_rs();
    struct roce_spec spec = transit_write(psn);
    size_t len = transit_encapsulated(bytes, &dst, &spec, n);

    fixture_input(f, AGENT_PORT, bytes, len);
    return len;
}

void
transit_check_replica(const struct frame *frame, uint16_t port, struct in6_addr dst,
                      const uint8_t *bytes, size_t len)
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

void
transit_respond(struct fixture *f, uint16_t node, uint8_t syndrome, uint32_t psn)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len = tunnelled_response(bytes, node, STAR_EDGE_ID, STAR_DQPN, syndrome, psn);

    fixture_input(f, node == CHILD_A ? PORT_A : PORT_B, bytes, len);
}

void
transit_receiver_responds(struct fixture *f, uint8_t syndrome, uint32_t psn)
{
    struct in6_addr r = star_receiver(0);
    uint8_t bytes[PACKET_ROOM];
    size_t len = roce_build(bytes, &(struct roce_spec){
                                       .src = &r,
                                       .dst = &star_proxy,
                                       .dest_qp = STAR_DQPN,
                                       .opcode = RC_ACK,
                                       .psn = psn & PSN_MASK,
                                       .syndrome = syndrome,
                                   });

    fixture_input(f, star_port(0), bytes, len);
}

void
transit_check_up(const struct fixture *f, uint8_t syndrome, uint32_t psn)
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
