/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge between other nodes: End.Replicate at transit, bud and root nodes, and
 * what these send up.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/icmp6.h"
#include "lib/roce.h"
#include "swedge/swedge.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

/* Proves MT-1.1-1, MT-3-3, MT-5.2-3, MT-6-R9524-3, MT-6-R9524-4. */
START_TEST(replicas_are_exact)
    {
        struct fixture *f = transit_create(0);
        uint8_t bytes[PACKET_ROOM];

        for (uint32_t i = 0; i < 4; i++) {
            size_t len = transit_down(f, bytes, START + i, 0);
            ck_assert_uint_eq(f->n_frames, 2);
            transit_check_replica(&f->frames[0], PORT_A, node_sid(CHILD_A, GROUP_RS), bytes, len);
            transit_check_replica(&f->frames[1], PORT_B, node_sid(CHILD_B, SID_FUNC_END_MT), bytes,
                                  len);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A receiver's copy changes headers that a replica shares with the original.
 *
 * Proves MT-5.2-4, MT-6-R9524-6. */
START_TEST(bud)
    {
        struct fixture *f = transit_create(2);
        uint8_t bytes[PACKET_ROOM];

        size_t len = transit_down(f, bytes, START, 2);
        ck_assert_uint_eq(f->n_frames, 4);
        for (unsigned i = 0; i < 2; i++) {
            struct roce_spec spec = transit_write(START);
            check_copy(&f->frames[i], i, &spec);
        }
        transit_check_replica(&f->frames[2], PORT_A, node_sid(CHILD_A, GROUP_RS), bytes, len);
        transit_check_replica(&f->frames[3], PORT_B, node_sid(CHILD_B, SID_FUNC_END_MT), bytes,
                              len);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Nobody gets a copy, one counter says why, and the PSN does not count as sent. */
static void
check_not_taken(struct fixture *f, uint16_t port, const uint8_t *bytes, size_t len,
                enum drop_reason why)
{
    struct tree_info info;

    fixture_input(f, port, bytes, len);
    ck_assert_uint_eq(f->n_frames, 0);
    swedge_class.tree(f->node, 0, &info);
    ck_assert(!info.started);
    ck_assert_uint_eq(fixture_drops(f, why), 1);
    ck_assert_uint_eq(fixture_total_drops(f), 1);
}

/* A bud gets the group's packets by its Replication-SID.  By its End.MT SID a packet would reach
 * its receivers, but no node below it. */
START_TEST(end_mt_sid_of_a_bud)
    {
        struct fixture *f = transit_create(2);
        struct in6_addr end_mt = node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);
        struct roce_spec spec = transit_write(START);
        uint8_t bytes[PACKET_ROOM];

        size_t len = transit_encapsulated(bytes, &end_mt, &spec, 2);
        check_not_taken(f, AGENT_PORT, bytes, len, DROP_mt_not_planned);
        fixture_destroy(f);
    }
END_TEST

/* A group's packets come from its source agent, whichever way: another node's address as outer
 * source makes nothing of them, at a bud, a node without receivers and an edge. */
START_TEST(foreign_outer_source)
    {
        static const unsigned n_receivers[] = {2, 0, 2};
        bool edge = _i == 2;
        struct fixture *f = transit_create(n_receivers[_i]);
        struct in6_addr other = node_address(CHILD_A);
        struct in6_addr dst = edge ? node_sid(STAR_EDGE_ID, SID_FUNC_END_MT) : transit_rs();
        struct roce_spec spec = transit_write(START);
        struct in6_addr agent = node_address(STAR_AGENT_ID);
        uint8_t bytes[PACKET_ROOM];

        if (edge) {
            f->config.trees[0].replication_sid = in6addr_any;
            f->config.trees[0].n_outer_da = 0;
            f->config.trees[0].n_branches = 2;
            fixture_configure(f);
        }
        size_t len = transit_encapsulated(bytes, &dst, &spec, n_receivers[_i]);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;
        ip->src = other;
        check_not_taken(f, PORT_A, bytes, len, DROP_outer_source);
        ip->src = agent;
        fixture_input(f, PORT_A, bytes, len); /* routed that way. */
        ck_assert_uint_eq(f->n_frames, n_receivers[_i] + (edge ? 0 : 2));
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* What only an edge may mind does not stop the way to the other nodes.
 *
 * Proves MT-6-R6040-2, MT-6-R2473-2. */
START_TEST(receivers_problems)
    {
        static const struct {
            size_t ofs; /* behind the outer headers if 'inner'. */
            bool inner;
            uint8_t value;
            enum drop_reason why;
        } cases[] = {
            {7, true, 1, DROP_hop_limit},
            {1, true, 0, DROP_ecn_ce}, /* Not-ECT inside, CE outside. */
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct fixture *f = transit_create(1);
            uint8_t bytes[PACKET_ROOM];
            struct in6_addr dst = transit_rs();
            struct roce_spec spec = transit_write(START);
            size_t len = transit_encapsulated(bytes, &dst, &spec, 1);
            size_t inner_len = IP6_HDR_LEN + be16_get(((struct ip6_hdr_wire *) bytes)->plen);
            uint8_t plain[PACKET_ROOM];
            size_t inner_ofs = inner_len - roce_build(plain, &spec);

            bytes[1] |= 0x30; /* CE */
            bytes[inner_ofs + 1] |= 0x20;
            bytes[inner_ofs + cases[i].ofs] = cases[i].value;
            fixture_input(f, AGENT_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 2);
            ck_assert_uint_eq(f->frames[0].port, PORT_A);
            ck_assert_uint_eq(fixture_drops(f, cases[i].why), 1);
            ck_assert_uint_eq(fixture_total_drops(f), 1);
            fixture_destroy(f);
        }
    }
END_TEST

/* No ICMPv6 error, and one counter.
 *
 * Proves MT-6-R9524-1, MT-6-R9524-2, MT-6-R9524-7. */
START_TEST(refused_silently)
    {
        static const struct {
            uint16_t function;
            uint16_t ofs; /* of a byte to change. */
            uint8_t with; /* XOR */
            enum drop_reason why;
        } cases[] = {
            {GROUP_RS + 1, 0, 0, DROP_rs_unknown},
            {GROUP_RS, 7, 64 ^ 1, DROP_hop_limit},
            {GROUP_RS, 7, 64, DROP_hop_limit},
            {GROUP_RS, IP6_HDR_LEN + 3, 1, DROP_mt_segments_left},
            {GROUP_RS, IP6_HDR_LEN + 8, 1, DROP_mt_context},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct fixture *f = transit_create(0);
            uint8_t bytes[PACKET_ROOM];
            struct in6_addr dst = node_sid(STAR_EDGE_ID, cases[i].function);
            struct roce_spec spec = transit_write(START);
            size_t len = transit_encapsulated(bytes, &dst, &spec, 0);

            bytes[cases[i].ofs] ^= cases[i].with;
            fixture_input(f, AGENT_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 0);
            ck_assert_uint_eq(fixture_drops(f, cases[i].why), 1);
            ck_assert_uint_eq(fixture_total_drops(f), 1);
            fixture_destroy(f);
        }
    }
END_TEST

/* Proves MT-5.3-1, MT-5.3.1-4, MT-5.3.2-4. */
START_TEST(merged_for_the_parent)
    {
        struct fixture *f = transit_create(1);
        uint8_t bytes[PACKET_ROOM];

        for (uint32_t i = 0; i < 3; i++) {
            transit_down(f, bytes, START + i, 1);
        }
        transit_respond(f, CHILD_A, AETH_ACK_UNLIMITED, START + 2);
        ck_assert_uint_eq(f->n_frames, 0);
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);
        transit_receiver_responds(f, AETH_ACK_UNLIMITED, START + 1);
        transit_check_up(f, AETH_ACK_UNLIMITED, START);
        transit_respond(f, CHILD_B, AETH_NAK_PSN_SEQ, START + 1);
        transit_check_up(f, AETH_NAK_PSN_SEQ, START + 1);
        /* The retransmission serves all; the NAK is not sent twice. */
        transit_down(f, bytes, START + 1, 1);
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START + 2);
        transit_check_up(f, AETH_ACK_UNLIMITED, START + 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Proves MT-5.3.1-5. */
START_TEST(root_speaks_to_the_source)
    {
        struct fixture *f = transit_create(0);
        uint8_t bytes[PACKET_ROOM];

        f->config.trees[0].root = true;
        f->config.trees[0].parent_sid = (struct in6_addr){0};
        fixture_configure(f);
        transit_down(f, bytes, START, 0);
        transit_respond(f, CHILD_A, AETH_ACK_UNLIMITED, START);
        transit_respond(f, CHILD_B, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct frame *frame = &f->frames[0];
        const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
        const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);
        ck_assert_uint_eq(frame->port, AGENT_PORT);
        ck_assert_uint_eq(frame->h.inner.ofs, 0);
        ck_assert_mem_eq(&ip->src, &star_proxy, 16);
        ck_assert_mem_eq(&ip->dst, &star_source, 16);
        ck_assert_uint_eq(be24_get(bth->dest_qp), STAR_SOURCE_QPN);
        ck_assert_uint_eq(bth_psn(bth).v, START);
        fixture_destroy(f);
    }
END_TEST

/* A node that does not aggregate: copies go on, responses are not for it. */
START_TEST(replicates_only)
    {
        struct fixture *f = transit_create(0);
        uint8_t bytes[PACKET_ROOM];

        f->config.trees[0].n_branches = 0;
        f->config.trees[0].parent_sid = (struct in6_addr){0};
        fixture_configure(f);
        transit_down(f, bytes, START + 5000, 0); /* no state that a PSN could spoil. */
        ck_assert_uint_eq(f->n_frames, 2);
        transit_respond(f, CHILD_A, AETH_ACK_UNLIMITED, START);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_unknown_branch), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* Bytes behind the packet on the link do not go on; behind the inner packet in the
 * outer one there may be none.
 *
 * Proves MT-6-Ref2. */
START_TEST(padding)
    {
        struct fixture *nodes[] = {transit_create(1), fixture_create(&swedge_class, 1)};
        struct in6_addr dsts[] = {transit_rs(), node_sid(STAR_EDGE_ID, SID_FUNC_END_MT)};
        struct roce_spec spec = transit_write(START);
        uint8_t bytes[PACKET_ROOM];

        for (unsigned i = 0; i < 2; i++) {
            struct fixture *f = nodes[i];
            size_t len = transit_encapsulated(bytes, &dsts[i], &spec, 1);
            struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;
            size_t copy_len = roce_build((uint8_t[PACKET_ROOM]){0}, &spec);

            memset(bytes + len, 0xaa, 10);
            fixture_input(f, AGENT_PORT, bytes, len + 10);
            ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + copy_len);
            ck_assert(frame_icrc_ok(&f->frames[0]));
            if (i == 0) {
                ck_assert_uint_eq(f->n_frames, 3);
                transit_check_replica(&f->frames[1], PORT_A, node_sid(CHILD_A, GROUP_RS), bytes,
                                      len);
                transit_check_replica(&f->frames[2], PORT_B, node_sid(CHILD_B, SID_FUNC_END_MT),
                                      bytes, len);
            } else {
                /* The receiver's copy made of the packet itself. */
                ck_assert_uint_eq(f->n_frames, 1);
            }
            ck_assert_uint_eq(fixture_total_drops(f), 0);

            ip->plen = be16_put((uint16_t) (be16_get(ip->plen) + 4));
            fixture_input(f, AGENT_PORT, bytes, len + 10);
            ck_assert_uint_eq(f->n_frames, 0);
            ck_assert_uint_eq(fixture_drops(f, DROP_mt_inner), 1);
            ck_assert_uint_eq(fixture_total_drops(f), 1);
            fixture_destroy(f);
        }
    }
END_TEST

/* RFC 9524 section 2.2.3: a replica may be answered with Packet Too Big and with
 * nothing else; the rest of the tree has its copies.
 *
 * Proves MT-6-R9524-7, MT-6-R9524-8. */
START_TEST(replica_cannot_be_sent)
    {
        struct fixture *f = transit_create(0);
        struct in6_addr das[] = {node_sid(0x777, GROUP_RS), node_sid(CHILD_B, SID_FUNC_END_MT)};
        struct in6_addr agent = node_address(STAR_AGENT_ID);
        uint8_t bytes[PACKET_ROOM];

        f->mtu[PORT_A] = 640; /* less than IPv6 wants, and than the packet has. */
        size_t len = transit_down(f, bytes, START, 0);
        ck_assert_uint_gt(len, f->mtu[PORT_A]);
        ck_assert_uint_eq(f->n_frames, 2);
        check_icmp6_error(&f->frames[0], AGENT_PORT, ICMP6_TOO_BIG, 0, f->mtu[PORT_A]);
        ck_assert_mem_eq(f->frames[0].bytes + f->frames[0].h.ip.ofs
                             + offsetof(struct ip6_hdr_wire, dst),
                         &agent, sizeof agent);
        transit_check_replica(&f->frames[1], PORT_B, node_sid(CHILD_B, SID_FUNC_END_MT), bytes,
                              len);
        ck_assert_uint_eq(fixture_drops(f, DROP_too_long), 1);

        f->mtu[PORT_A] = (uint32_t) len; /* just enough. */
        transit_down(f, bytes, START, 0);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(f->frames[0].port, PORT_A);
        ck_assert_uint_eq(fixture_total_drops(f), 1);

        fixture_set_outer_das(f, das, 2); /* no route to the first one. */
        fixture_configure(f);
        transit_down(f, bytes, START, 0);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, PORT_B);
        ck_assert_uint_eq(fixture_drops(f, DROP_no_route), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        fixture_destroy(f);
    }
END_TEST

/* A receiver's copy is a packet that nobody has sent: no error is due.
 *
 * Proves MT-6-R9524-7. */
START_TEST(copy_cannot_be_sent)
    {
        struct fixture *f = transit_create(1);
        uint8_t bytes[PACKET_ROOM];

        f->mtu[star_port(0)] = 640;
        transit_down(f, bytes, START, 1);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(f->frames[0].port, PORT_A);
        ck_assert_uint_eq(f->frames[1].port, PORT_B);
        ck_assert_uint_eq(fixture_drops(f, DROP_too_long), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* A packet of a host that is too long for the way to child A; is it told so? */
static bool
is_told(struct fixture *f, unsigned receiver)
{
    uint8_t bytes[IP6_HDR_LEN + 1400];

    f->mtu[PORT_A] = 1300;
    ip6_build(bytes, star_receiver(receiver), node_address(CHILD_A), IP6_NH_NONE, 1400);
    fixture_input(f, star_port(receiver), bytes, sizeof bytes);
    if (f->n_frames) {
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], star_port(receiver), ICMP6_TOO_BIG, 0, 1300);
    }
    return f->n_frames;
}

/* A host has a route traced, and again, and again. */
static void
flood(struct fixture *f, unsigned receiver)
{
    uint8_t bytes[IP6_HDR_LEN];

    ip6_build(bytes, star_receiver(receiver), node_address(CHILD_A), IP6_NH_NONE, 0);
    bytes[offsetof(struct ip6_hdr_wire, hlim)] = 1;
    do {
        fixture_input(f, star_port(receiver), bytes, sizeof bytes);
    } while (f->n_frames);
    ck_assert(!is_told(f, receiver));
}

/* What one port's packets draw leaves other ports' Packet Too Big alone. */
START_TEST(errors_by_port)
    {
        struct fixture *f = transit_create(2);

        flood(f, 0);
        for (unsigned i = 0; i < ICMP6_ERRORS_BURST; i++) {
            ck_assert(is_told(f, 1));
        }
        ck_assert(!is_told(f, 1));
        f->now += 1000000 / ICMP6_ERRORS_PER_SEC;
        ck_assert(is_told(f, 0));
        ck_assert(!is_told(f, 0));
        ck_assert(is_told(f, 1));
        ck_assert(!is_told(f, 1));
        fixture_destroy(f);
    }
END_TEST

/* A packet that waited for a neighbour in vain is the business of the port that it came in on. */
START_TEST(errors_by_port_after_a_wait)
    {
        struct fixture *f = transit_create(2);
        uint8_t bytes[IP6_HDR_LEN];

        ck_assert(is_told(f, 0)); /* the hosts' own addresses are known. */
        ck_assert(is_told(f, 1));
        f->mute = true;
        for (unsigned i = 0; i < 2; i++) {
            ip6_build(bytes, star_receiver(i), node_address(PARENT), IP6_NH_NONE, 0);
            fixture_input(f, star_port(i), bytes, sizeof bytes);
            ck_assert_uint_eq(f->n_frames, 0);
        }
        while (!fixture_drops(f, DROP_no_neighbour)) {
            f->now = f->class->deadline(f->node);
            flood(f, 0);
            fixture_timer(f);
        }
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], star_port(1), ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_ADDRESS,
                          0);
        fixture_destroy(f);
    }
END_TEST

/* A port that stays keeps what it has used; a new one in its place has used nothing. */
START_TEST(errors_of_ports_that_come_and_go)
    {
        struct fixture *f = transit_create(2);
        size_t n_ports = f->config.n_ports, i = 0;

        while (f->config.ports[i].number != star_port(1)) {
            i++;
        }
        struct port_config *port = &f->config.ports[i], last = f->config.ports[n_ports - 1];

        flood(f, 0);
        flood(f, 1);
        fixture_configure(f);
        ck_assert(!is_told(f, 0));
        ck_assert(!is_told(f, 1));

        port->name[0]++;
        fixture_configure(f);
        ck_assert(!is_told(f, 0));
        ck_assert(is_told(f, 1));

        flood(f, 1);
        f->config.ports[n_ports - 1] = *port;
        *port = last;
        f->config.n_ports--;
        fixture_configure(f);
        f->config.n_ports++;
        fixture_configure(f);
        ck_assert(!is_told(f, 0));
        ck_assert(is_told(f, 1));
        fixture_destroy(f);
    }
END_TEST

/* H28: a PSN out of nowhere is believed only if the packet is sound; but what has no
 * state has nothing to protect. */
START_TEST(psn_jump)
    {
        static const struct {
            bool aggregates;
            uint32_t psn;
            bool passes;
        } cases[] = {
            {true, START, true},
            {true, START + 1, false},
            {false, START + 1, true},
            {false, START + 5000, true},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct fixture *f = transit_create(0);
            struct roce_spec spec = transit_write(cases[i].psn);
            struct in6_addr dst = transit_rs();
            uint8_t bytes[PACKET_ROOM];
            size_t len = transit_encapsulated(bytes, &dst, &spec, 0);

            if (!cases[i].aggregates) {
                f->config.trees[0].n_branches = 0;
                f->config.trees[0].parent_sid = (struct in6_addr){0};
                fixture_configure(f);
            }
            bytes[len - 1] ^= 1;
            fixture_input(f, AGENT_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, cases[i].passes ? 2 : 0);
            ck_assert_uint_eq(fixture_drops(f, DROP_psn_jump), !cases[i].passes);
            ck_assert_uint_eq(fixture_total_drops(f), !cases[i].passes);
            fixture_destroy(f);
        }
    }
END_TEST

/* When the node's timer is to be called, by looking at each tree. */
static uint64_t
deadline_of_all(const struct fixture *f)
{
    const struct swedge *sw = swedge_of(f->node);
    uint64_t when = l3_deadline(sw->base->l3);

    for (size_t i = 0; i < sw->trees.n; i++) {
        const struct tree *t = sw->trees.v[i];
        uint64_t auth = t->auth ? auth_verifier_deadline(t->auth) : UINT64_MAX;
        uint64_t reverse = reverse_deadline(t->aggregate->reverse);

        uint64_t cnps = cnp_window_deadline(t->aggregate->cnps);

        when = reverse < when ? reverse : when;
        when = cnps < when ? cnps : when;
        when = auth < when ? auth : when;
    }
    return when;
}

/* The node knows its deadline whatever happens to its groups: copies, responses, marks, timers,
 * branches that leave. */
START_TEST(deadline_is_the_earliest)
    {
        static const uint8_t syndromes[] = {AETH_ACK_UNLIMITED, AETH_NAK_PSN_SEQ, AETH_RNR | 7};
        struct fixture *f = transit_create(2);
        uint8_t bytes[PACKET_ROOM];
        struct node_base *base = f->node;
        unsigned n_timers = 0;

        fixture_add_epoch(f);
        f->config.trees[0].epoch = f->config.trees[1].epoch + 1; /* the one that packets are of. */
        fixture_configure(f);
        srand((unsigned) _i);
        for (uint32_t i = 0; i < 400; i++) {
            struct tree_config *t = &f->config.trees[rand() % 2];
            uint32_t psn = START + i / 8;
            uint8_t syndrome = syndromes[rand() % 3];

            f->now += (uint64_t) (rand() % 600);
            switch (rand() % 9) {
            case 0:
            case 1: transit_down(f, bytes, psn, 2); break;
            case 2:
            case 3: transit_respond(f, rand() % 2 ? CHILD_A : CHILD_B, syndrome, psn - 1); break;
            case 4:
            case 5: transit_receiver_responds(f, syndrome, psn - 1); break;
            case 6:
                t->policy.liveness_msec = (uint32_t) (rand() % 3);
                fixture_configure(f);
                break;
            case 7: base->ce_left(base, &star_proxy, STAR_DQPN, 1, f->now); break;
            default:
                if (deadline_of_all(f) != UINT64_MAX) {
                    fixture_timer(f);
                    n_timers++;
                }
            }
            ck_assert_uint_eq(f->class->deadline(f->node), deadline_of_all(f));
        }
        ck_assert_uint_gt(n_timers, 10);
        fixture_destroy(f);
    }
END_TEST

Suite *
transit_suite(void)
{
    Suite *s = suite_create("transit");
    TCase *tc = tcase_create("transit");

    tcase_add_test(tc, replicas_are_exact);
    tcase_add_test(tc, bud);
    tcase_add_test(tc, end_mt_sid_of_a_bud);
    tcase_add_loop_test(tc, foreign_outer_source, 0, 3);
    tcase_add_test(tc, receivers_problems);
    tcase_add_test(tc, refused_silently);
    tcase_add_test(tc, merged_for_the_parent);
    tcase_add_test(tc, root_speaks_to_the_source);
    tcase_add_test(tc, replicates_only);
    tcase_add_test(tc, padding);
    tcase_add_test(tc, replica_cannot_be_sent);
    tcase_add_test(tc, copy_cannot_be_sent);
    tcase_add_test(tc, errors_by_port);
    tcase_add_loop_test(tc, deadline_is_the_earliest, 0, 10);
    tcase_add_test(tc, errors_by_port_after_a_wait);
    tcase_add_test(tc, errors_of_ports_that_come_and_go);
    tcase_add_test(tc, psn_jump);
    suite_add_tcase(s, tc);
    return s;
}
