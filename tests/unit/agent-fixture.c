/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent on a bench: what its host and the fabric send.
 */
#include "tests/unit/agent-fixture.h"

#include <check.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

struct fixture *
agent_create(unsigned n_receivers)
{
    return fixture_create(&srcagent_class, n_receivers);
}

void
agent_congestion(struct fixture *f, uint64_t line)
{
    struct congestion_config *c = &f->config.congestion;
    const struct in6_addr edge = node_address(STAR_EDGE_ID);

    c->interval_usec = AGENT_INTERVAL;
    c->fast_cnp = true;
    c->rate_control = RATE_BY_AGENT;
    c->rate = rate_params_default(line, 0);
    free(c->trusted);
    c->trusted = must_copy(&edge, 1, sizeof edge);
    c->n_trusted = 1;
}

struct flow_info
agent_flow(const struct fixture *f, const struct in6_addr *dst, uint32_t dest_qp)
{
    struct flow_info info = {.group = NULL};

    for (size_t i = 0; i < srcagent_class.n_flows(f->node); i++) {
        srcagent_class.flow(f->node, i, &info);
        if (info.dest_qp == dest_qp && !memcmp(&info.dst, dst, sizeof *dst)) {
            return info;
        }
    }
    ck_abort_msg("no such flow was told");
    return info;
}

uint32_t
agent_psn(const struct fixture *f, size_t i)
{
    ck_assert_uint_lt(i, f->n_frames);
    return bth_psn((const void *) (f->frames[i].bytes + f->frames[i].h.bth_ofs)).v;
}

struct roce_spec
agent_request(uint8_t opcode, uint32_t psn)
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

void
agent_from_host(struct fixture *f, const struct roce_spec *spec)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len = roce_build(bytes, spec);
    fixture_input(f, HOST_PORT, bytes, len);
}

void
agent_write(struct fixture *f, uint32_t psn)
{
    struct roce_spec spec = agent_request(RC_WRITE_ONLY, psn);
    agent_from_host(f, &spec);
}

void
agent_response(struct fixture *f, uint8_t syndrome, uint32_t psn, uint32_t dest_qp)
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

void
agent_make_root(struct fixture *f, uint16_t node_a, uint16_t node_b)
{
    fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
    fixture_add_node_branch(f, node_a);
    fixture_add_node_branch(f, node_b);
    f->config.trees[0].root = true;
}

struct fixture *
agent_create_root(uint16_t node_a, uint16_t node_b)
{
    struct fixture *f = agent_create(2);

    agent_make_root(f, node_a, node_b);
    fixture_configure(f);
    return f;
}

void
agent_node_responds(struct fixture *f, uint16_t node, uint32_t dqpn, uint8_t syndrome, uint32_t psn)
{
    uint8_t bytes[PACKET_ROOM];
    size_t len = tunnelled_response(bytes, node, STAR_AGENT_ID, dqpn, syndrome, psn);

    fixture_input(f, UPLINK, bytes, len);
}

void
agent_check_made(const struct fixture *f, size_t i, uint8_t syndrome, uint32_t psn)
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
