/* SPDX-License-Identifier: Apache-2.0
 *
 * dp-packets CASE N: takes N packets through a node, without ports and without a
 * clock.  tests/perf/instructions counts what that costs.
 *
 * Nothing is done but what a packet needs: frames are made before the first
 * packet, and what the node sends is counted and forgotten.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/icrc.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "swedge/swedge.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/transit-fixture.h"

#define FAN_OUT 8

/* A frame that is fed again and again with other PSNs. */
struct sample {
    uint16_t port;
    size_t len;
    struct parsed h;
    uint8_t bytes[PACKET_ROOM];
};

static void
sample_init(struct sample *s, const struct fixture *f, uint16_t port, const uint8_t *ip, size_t len)
{
    s->port = port;
    s->len = fixture_frame(f, port, ip, len, s->bytes);
    ck_assert_int_eq(parse_outer(s->bytes, (uint32_t) s->len, &s->h), DROP_none);
    ck_assert_int_eq(parse_rest(s->bytes, (uint32_t) s->len, &s->h), DROP_none);
}

/* The ICRC of a request is let become wrong: no node looks at it while PSNs come in order. */
static void
feed(struct fixture *f, struct sample *s, uint32_t psn)
{
    struct bth *bth = (struct bth *) (s->bytes + s->h.bth_ofs);

    bth->psn = be24_put(psn & PSN_MASK);
    if (bth->opcode == RC_ACK) {
        icrc_store(s->bytes + s->h.icrc_ofs,
                   icrc_compute(s->bytes + s->h.ip.ofs, (size_t) (s->h.icrc_ofs - s->h.ip.ofs)));
    }
    struct packet *p = packet_from_bytes(f->pool, s->bytes, s->len);
    ck_assert_ptr_nonnull(p);
    f->class->input(f->node, s->port, p, f->now);
}

/* The source's WRITE in IPv6 with SRH, for all receivers of the star, as it comes to 'sid'. */
static void
down_sample(struct sample *s, const struct fixture *f, const struct in6_addr *sid)
{
    struct roce_spec spec = transit_write(START);
    struct in6_addr agent = node_address(STAR_AGENT_ID);
    struct srh_copy copies[FAN_OUT];
    struct encap_template t;
    uint8_t bytes[PACKET_ROOM];

    for (unsigned i = 0; i < FAN_OUT; i++) {
        copies[i] = (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(i), star_qpn(i)};
    }
    ck_assert_int_eq(encap_template_build(&t, &agent, sid, &star_proxy, copies, FAN_OUT), 0);
    size_t inner_len = roce_build(bytes + t.len, &spec);
    encap_template_stamp(&t, bytes, (uint16_t) inner_len, 2, 0x12345);
    sample_init(s, f, AGENT_PORT, bytes, t.len + inner_len);
}

/* An edge with FAN_OUT receivers. */
static struct fixture *
edge(struct sample *s)
{
    struct fixture *f = fixture_create(&swedge_class, FAN_OUT);
    struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);

    down_sample(s, f, &sid);
    return f;
}

/* A transit node with FAN_OUT nodes below it. */
static struct fixture *
transit(struct sample *s)
{
    struct fixture *f = fixture_create(&swedge_class, 0);
    struct in6_addr rs = transit_rs();
    struct in6_addr das[FAN_OUT];

    fixture_add_sid(f, SID_FUNC_END_REPLICATE, 52, SID_END_REPLICATE);
    for (uint16_t i = 0; i < FAN_OUT; i++) {
        uint16_t id = (uint16_t) (CHILD_A + i);

        fixture_add_node(f, (uint16_t) (PORT_A + i), id);
        fixture_add_node_branch(f, id);
        das[i] = node_sid(id, SID_FUNC_END_MT);
    }
    fixture_set_outer_das(f, das, FAN_OUT);
    f->config.trees[0].replication_sid = rs;
    fixture_configure(f);
    down_sample(s, f, &rs);
    return f;
}

/* A source agent whose group has FAN_OUT receivers behind one edge. */
static struct fixture *
agent(struct sample *s)
{
    struct fixture *f = agent_create(FAN_OUT);
    struct roce_spec spec = transit_write(START);
    uint8_t bytes[PACKET_ROOM];

    sample_init(s, f, HOST_PORT, bytes, roce_build(bytes, &spec));
    return f;
}

static void
ack_samples(struct sample *acks, const struct fixture *f)
{
    for (unsigned i = 0; i < FAN_OUT; i++) {
        struct in6_addr r = star_receiver(i);
        struct roce_spec ack = {.src = &r,
                                .dst = &star_proxy,
                                .dest_qp = STAR_DQPN,
                                .opcode = RC_ACK,
                                .syndrome = 0x1f};
        uint8_t bytes[PACKET_ROOM];

        sample_init(&acks[i], f, star_port(i), bytes, roce_build(bytes, &ack));
    }
}

static const struct test_case {
    const char *name;
    struct fixture *(*create)(struct sample *);
    size_t n_sent; /* frames for each packet. */
    bool acked;    /* each receiver answers each packet. */
} cases[] = {
    {"end-mt", edge, FAN_OUT, false},
    {"end-mt-acked", edge, FAN_OUT + 1, true},
    {"replicate", transit, FAN_OUT, false},
    {"srcagent", agent, 1, false},
};

static void
run_case(const struct test_case *c, uint32_t n)
{
    struct sample down = {0};
    struct sample acks[FAN_OUT] = {0};
    struct fixture *f = c->create(&down);

    if (c->acked) {
        ack_samples(acks, f);
    }
    for (uint32_t i = 0; i <= n; i++) {
        f->now++;
        feed(f, &down, START + i);
        for (unsigned b = 0; c->acked && b < FAN_OUT; b++) {
            feed(f, &acks[b], START + i);
        }
        if (!i) { /* who the neighbours are is known now. */
            f->discard = true;
            f->n_frames = 0;
        }
    }
    ck_assert_uint_eq(fixture_total_drops(f), 0);
    ck_assert_uint_eq(f->n_frames, n * c->n_sent);
    fixture_destroy(f);
}

int
main(int argc, char *argv[])
{
    char *end = NULL;
    unsigned long n = argc == 3 ? strtoul(argv[2], &end, 10) : 0;

    for (size_t i = 0; n && n < 1 << 22 && !*end && i < sizeof cases / sizeof *cases; i++) {
        if (!strcmp(cases[i].name, argv[1])) {
            run_case(&cases[i], (uint32_t) n);
            return 0;
        }
    }
    fprintf(stderr, "usage: dp-packets CASE N, N below %d, CASE one of:\n", 1 << 22);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        puts(cases[i].name);
    }
    return argc > 1 ? 2 : 0;
}
