/* SPDX-License-Identifier: Apache-2.0
 *
 * A switch as headend of its hosts, and responses of nodes that take a path.
 */
#include <check.h>

#include "lib/in-flight.h"
#include "lib/roce.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

#define QP 0x11

static struct fixture *
headend(void)
{
    struct fixture *f = transit_create(2);
    struct destination_config *d = path_add(f, &path_peer, PATH_MESSAGE, 2, 1);

    d->paths[0].port = PORT_A;
    d->paths[1].port = PORT_B;
    fixture_configure(f);
    f->now += IN_FLIGHT_LIFE;
    return f;
}

/* The path that a WRITE of host 'i' takes. */
static unsigned
sends(struct fixture *f, unsigned i, uint32_t psn)
{
    const struct in6_addr host = star_receiver(i);
    struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, psn);
    uint8_t bytes[PACKET_ROOM];

    spec.src = &host;
    fixture_input(f, star_port(i), bytes, roce_build(bytes, &spec));
    ck_assert_uint_eq(f->n_frames, 1);
    const struct frame *frame = &f->frames[0];
    const struct ip6_hdr_wire *outer = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct in6_addr own = node_address(STAR_EDGE_ID);
    unsigned number = ip6_flow_label(outer) >> 8;

    ck_assert_uint_eq(frame->port, number == 1 ? PORT_A : PORT_B);
    ck_assert_mem_eq(&outer->src, &own, 16);
    ck_assert_uint_eq(outer->hlim, 64);
    ck_assert_uint_eq(frame->bytes[frame->h.inner.ofs + 7], 63);
    return number;
}

static size_t
make_ack(uint8_t *out, const struct in6_addr *to, uint32_t psn)
{
    return roce_build(out, &(struct roce_spec){.src = &path_peer,
                                               .dst = to,
                                               .dest_qp = 0x99,
                                               .opcode = RC_ACK,
                                               .psn = psn,
                                               .syndrome = AETH_ACK_UNLIMITED});
}

/* What hosts send gets a path; what comes back to them, also in a tunnel, confirms it, and what
 * passes on its way to others does not. */
START_TEST(serves_its_hosts)
    {
        struct fixture *f = headend();
        const struct in6_addr host = star_receiver(0);
        uint8_t bytes[PACKET_ROOM], tunnelled[PACKET_ROOM];

        ck_assert_uint_eq(sends(f, 0, 1), 1);
        fixture_input(f, PORT_A, bytes, make_ack(bytes, &host, 1));
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, star_port(0));
        ck_assert_uint_eq(sends(f, 0, 2), 2);

        size_t len = make_ack(bytes, &host, 2);
        memcpy(ip6_build(tunnelled, node_address(PARENT), node_sid(STAR_EDGE_ID, SID_FUNC_END_DT6),
                         IP6_NH_IPV6, len),
               bytes, len);
        fixture_input(f, PORT_PARENT, tunnelled, IP6_HDR_LEN + len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, star_port(0));
        ck_assert_uint_eq(sends(f, 0, 3), 1);

        fixture_input(f, PORT_A, bytes, make_ack(bytes, &star_source, 3));
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, AGENT_PORT);
        ck_assert_uint_eq(sends(f, 0, 4), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* What comes from other nodes has had its path. */
START_TEST(only_hosts)
    {
        struct fixture *f = headend();
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 1);
        uint8_t bytes[PACKET_ROOM];

        fixture_input(f, PORT_A, bytes, roce_build(bytes, &spec));
        fixture_input(f, AGENT_PORT, bytes, roce_build(bytes, &spec));
        ck_assert_uint_eq(fixture_drops(f, DROP_no_route), 2);
        ck_assert_uint_eq(path_info(f, 1).n_packets + path_info(f, 2).n_packets, 0);
        fixture_destroy(f);
    }
END_TEST

/* A response to a parent that is reached by a path: another destination, nothing else; it leaves to
 * the path's first node. */
START_TEST(parent_program)
    {
        struct frame sent[2];
        const struct in6_addr program = addr_of("5f00:0:301:500:400:e002::");
        const struct in6_addr sid = node_sid(PARENT, SID_FUNC_RESPONSE);

        for (unsigned i = 0; i < 2; i++) {
            struct fixture *f = transit_create(0);
            uint8_t bytes[PACKET_ROOM];

            f->config.trees[0].parent_program = i ? program : in6addr_any;
            fixture_configure(f);
            transit_down(f, bytes, START, 0);
            transit_respond(f, CHILD_A, AETH_ACK_UNLIMITED, START);
            transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START);
            ck_assert_uint_eq(f->n_frames, 1);
            sent[i] = f->frames[0];
            fixture_destroy(f);
        }
        ck_assert_uint_eq(sent[0].port, PORT_PARENT);
        ck_assert_uint_eq(sent[1].port, PORT_A);
        struct ip6_hdr_wire *with = (void *) (sent[1].bytes + sizeof(struct eth_hdr));
        ck_assert_mem_eq(&with->dst, &program, 16);
        with->dst = sid;
        ck_assert_uint_eq(sent[0].len, sent[1].len);
        ck_assert_mem_eq(sent[0].bytes + sizeof(struct eth_hdr), with,
                         sent[0].len - sizeof(struct eth_hdr));
    }
END_TEST

Suite *
headend_edge_suite(void)
{
    Suite *s = suite_create("headend_edge");
    TCase *tc = tcase_create("headend_edge");

    tcase_add_test(tc, serves_its_hosts);
    tcase_add_test(tc, only_hosts);
    tcase_add_test(tc, parent_program);
    suite_add_tcase(s, tc);
    return s;
}
