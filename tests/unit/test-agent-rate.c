/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent: flows that are slowed down.  What waits, what overtakes, and what counts when.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/suites.h"

#define MBIT  UINT64_C(1000000)
#define SEC   UINT64_C(1000000)
#define LINE  (8 * MBIT) /* a byte a microsecond. */
#define FRAME 158u       /* Ethernet frame of agent_write(). */

static struct fixture *
rate_agent(void)
{
    struct fixture *f = agent_create(2);

    agent_congestion(f, LINE);
    fixture_configure(f);
    return f;
}

static struct source *
tree_of(const struct fixture *f)
{
    return ((struct srcagent *) f->node)->sources.v[0];
}

/* A CNP for the group's source is due. */
static void
cnp(struct fixture *f)
{
    ck_assert_int_eq(rate_cnp(f->node, tree_of(f), NULL, f->now), DROP_cnp);
}

static struct flow_info
group_flow(const struct fixture *f)
{
    return agent_flow(f, &star_proxy, STAR_DQPN);
}

static uint32_t
n_waiting(const struct fixture *f)
{
    struct tree_info info;

    srcagent_class.tree(f->node, 0, &info);
    return info.n_waiting;
}

/* Calls the node's timer until it has sent something. */
static void
next_frames(struct fixture *f)
{
    do {
        fixture_timer(f);
    } while (!f->n_frames);
}

/* The requests of a group leave at its rate, in order, once it was told to slow down. */
START_TEST(group_is_paced)
    {
        struct fixture *f = rate_agent();

        for (unsigned i = 0; i < 8; i++) {
            agent_write(f, START + i); /* nothing is known of congestion. */
            ck_assert_uint_eq(f->n_frames, 1);
        }
        ck_assert_uint_eq(srcagent_class.n_flows(f->node), 0);
        cnp(f);
        struct flow_info info = group_flow(f);
        ck_assert_uint_eq(info.rate, LINE / 2);
        ck_assert_uint_eq(info.n_cuts, 1);
        ck_assert_uint_eq(info.last_cut, f->now);
        ck_assert_int_eq(info.last_cause, RATE_CNP);
        ck_assert_str_eq(info.group, "g");

        uint64_t start = f->now;
        agent_write(f, START + 8);
        ck_assert_uint_eq(f->n_frames, 1);
        for (unsigned i = 1; i < 20; i++) {
            agent_write(f, START + 8 + i);
            ck_assert_uint_eq(f->n_frames, 0);
        }
        ck_assert_uint_eq(n_waiting(f), 19);
        for (unsigned i = 1; i < 20; i++) {
            next_frames(f);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(agent_psn(f, 0), (START + 8 + i) & PSN_MASK);
            /* Two microseconds a byte, while no stage of increase is over. */
            ck_assert_uint_ge(f->now, start + 2 * FRAME * i);
            ck_assert_uint_le(f->now, start + 2 * FRAME * i + 1);
        }
        info = group_flow(f);
        ck_assert_uint_eq(info.n_delayed, 19);
        ck_assert_uint_eq(info.max_waiting, 19);
        ck_assert_uint_eq(info.n_waiting, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A flow that goes on without signals is let go faster. */
START_TEST(rate_grows_again)
    {
        struct fixture *f = rate_agent();

        cnp(f);
        uint64_t start = f->now;
        for (unsigned i = 0; f->now < start + SEC / 20; i++) {
            agent_write(f, START + i);
            fixture_timer(f);
        }
        ck_assert_uint_gt(group_flow(f).rate, LINE / 2);
        fixture_destroy(f);
    }
END_TEST

/* What is not a request of the flow overtakes: other groups, responses, RDMA-CM, other hosts. */
START_TEST(others_overtake)
    {
        struct fixture *f = rate_agent();
        struct in6_addr other = addr_of("fd00:1::77");
        struct roce_spec ack = {.src = &star_source,
                                .dst = &other,
                                .dest_qp = 5,
                                .opcode = RC_ACK,
                                .psn = 3,
                                .syndrome = AETH_ACK_UNLIMITED};
        struct roce_spec write = agent_request(RC_WRITE_ONLY, 3);

        fixture_add_epoch(f);
        cnp(f);
        /* The newest epoch is the first one. */
        write.dest_qp = STAR_DQPN + 1;
        for (unsigned i = 0; i < 5; i++) {
            write.psn = (START + i) & PSN_MASK;
            agent_from_host(f, &write);
            ck_assert_uint_eq(f->n_frames, !i);
        }
        ck_assert_uint_eq(n_waiting(f), 4);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_from_host(f, &ack);
        ck_assert_uint_eq(f->n_frames, 1);
        write.dst = &other;
        write.dest_qp = 5;
        agent_from_host(f, &write);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert(fixture_solicit(f, HOST_PORT, star_proxy));
        ck_assert_uint_eq(n_waiting(f), 4);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A PSN that waits has not gone down: nobody can have answered it, and it is in no count. */
START_TEST(what_waits_does_not_count)
    {
        struct fixture *f = rate_agent();
        struct tree_info info;
        uint64_t number;

        cnp(f);
        agent_write(f, START);
        agent_write(f, START + 1);
        ck_assert_uint_eq(n_waiting(f), 1);
        agent_response(f, AETH_ACK_UNLIMITED, START + 1, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        srcagent_class.tree(f->node, 0, &info);
        ck_assert_uint_eq(info.down->n_packets, 1);
        ck_assert_uint_eq(info.reverse.h.v, (START + 1) & PSN_MASK);
        ck_assert_int_eq(srcagent_class.message(f->node, 0, psn_make(START + 2), &number),
                         MESSAGE_NOT_YET);
        next_frames(f);
        agent_response(f, AETH_ACK_UNLIMITED, START + 1, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 1);
        srcagent_class.tree(f->node, 0, &info);
        ck_assert_uint_eq(info.down->n_packets, 2);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* A request that no receiver may see waits for its turn, and is refused then: the NAK is right
 * where those before it have gone down. */
START_TEST(refusal_waits_its_turn)
    {
        struct fixture *f = rate_agent();
        struct roce_spec read = agent_request(RC_READ_REQ, START + 2);

        cnp(f);
        agent_write(f, START);
        agent_write(f, START + 1);
        agent_from_host(f, &read);
        agent_write(f, START + 3);
        ck_assert_uint_eq(n_waiting(f), 3);
        next_frames(f);
        ck_assert_uint_eq(agent_psn(f, 0), (START + 1) & PSN_MASK);
        agent_response(f, AETH_ACK_UNLIMITED, START + 1, STAR_SOURCE_QPN);
        ck_assert_uint_eq(f->n_frames, 1); /* just passed on. */
        next_frames(f);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_check_made(f, 0, AETH_NAK_INVALID_REQ, START + 2);
        while (n_waiting(f)) {
            fixture_timer(f);
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_opcode), 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_refused), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        fixture_destroy(f);
    }
END_TEST

/* A requester that sends more has had the first ones confirmed. */
START_TEST(queue_is_bounded)
    {
        struct fixture *f = rate_agent();

        cnp(f);
        for (unsigned i = 0; i < 1 + PACER_QUEUE_MAX + 3; i++) {
            agent_write(f, START + i);
        }
        ck_assert_uint_eq(n_waiting(f), PACER_QUEUE_MAX);
        ck_assert_uint_eq(group_flow(f).n_replaced, 3);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f); /* returns what waits. */
    }
END_TEST

/* So are they if all flows together hold half of the buffers. */
START_TEST(queues_are_bounded)
    {
        struct fixture *f = fixture_create_with(&srcagent_class, 2, 2 * AGENT_QUEUE_TOTAL);
        unsigned n_trees = AGENT_QUEUE_TOTAL / PACER_QUEUE_MAX + 1;
        struct tree_config *first = f->config.trees;

        f->config.trees = must_calloc(n_trees, sizeof *f->config.trees);
        for (unsigned i = 0; i < n_trees; i++) {
            tree_config_clone(&f->config.trees[i], first);
            f->config.trees[i].designated_qpn += i;
            f->config.trees[i].open = false;
        }
        tree_config_uninit(first);
        free(first);
        f->config.n_trees = n_trees;
        fixture_configure(f);
        for (unsigned i = 0; i < n_trees * PACER_QUEUE_MAX; i++) {
            struct roce_spec spec = agent_request(RC_WRITE_ONLY, START + i % PACER_QUEUE_MAX);

            spec.dest_qp += i / PACER_QUEUE_MAX;
            agent_from_host(f, &spec);
        }
        ck_assert_uint_eq(packet_pool_n_free(f->pool), AGENT_QUEUE_TOTAL);
        ck_assert_uint_eq(fixture_drops(f, DROP_group_closed),
                          n_trees * PACER_QUEUE_MAX - AGENT_QUEUE_TOTAL);
        fixture_destroy(f);
    }
END_TEST

/* A group that closes while packets of it wait keeps them, and a rate outlives that. */
START_TEST(closes_while_paced)
    {
        enum { N = 2 * PACER_LATE_MAX };
        struct fixture *f = rate_agent();

        cnp(f);
        for (unsigned i = 0; i < N; i++) {
            agent_write(f, START + i);
        }
        f->config.trees[0].open = false;
        fixture_configure(f);
        f->n_frames = 0;
        f->now += 5000;
        if (srcagent_class.deadline(f->node) <= f->now) {
            srcagent_class.timer(f->node, f->now);
        }
        ck_assert_uint_eq(f->n_frames, 0);
        agent_write(f, START + N);
        ck_assert_uint_eq(n_waiting(f), N);
        f->config.trees[0].open = true;
        f->n_frames = 0;
        fixture_configure(f);
        ck_assert_uint_ge(f->n_frames, 1); /* its turn is past. */
        ck_assert_uint_le(f->n_frames, PACER_LATE_MAX);
        uint32_t psn = (START + 1) & PSN_MASK;
        for (;;) {
            for (size_t i = 0; i < f->n_frames; i++, psn = (psn + 1) & PSN_MASK) {
                ck_assert_uint_eq(agent_psn(f, i), psn);
            }
            if (psn == ((START + N + 1) & PSN_MASK)) {
                break;
            }
            next_frames(f);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Who slows the host down is another one now: what waits leaves at once, in order. */
START_TEST(control_ends)
    {
        struct fixture *f = rate_agent();

        cnp(f);
        for (unsigned i = 0; i < 6; i++) {
            agent_write(f, START + i);
        }
        f->config.congestion.rate_control = RATE_BY_NONE;
        f->n_frames = 0;
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 5);
        for (unsigned i = 0; i < 5; i++) {
            ck_assert_uint_eq(agent_psn(f, i), (START + 1 + i) & PSN_MASK);
        }
        cnp(f); /* counted, without effect. */
        ck_assert_uint_eq(group_flow(f).n_cnps, 2);
        ck_assert_uint_eq(group_flow(f).rate, 0);
        agent_write(f, START + 6);
        agent_write(f, START + 7);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(n_waiting(f), 0);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* The epoch ends, or the node does, while packets wait: they are returned. */
START_TEST(epoch_ends)
    {
        struct fixture *f = rate_agent();

        cnp(f);
        for (unsigned i = 0; i < 6; i++) {
            agent_write(f, START + i);
        }
        ck_assert_uint_eq(packet_pool_n_free(f->pool), packet_pool_size(f->pool) - 5);
        f->config.trees[0].epoch++;
        f->config.trees[0].designated_qpn++;
        fixture_configure(f);
        ck_assert_uint_eq(packet_pool_n_free(f->pool), packet_pool_size(f->pool));
        ck_assert_uint_eq(srcagent_class.n_flows(f->node), 0);
        ck_assert_uint_eq(rate_deadline(f->node), UINT64_MAX);
        fixture_destroy(f);
    }
END_TEST

/* The group's floor is above the agent's, also if it comes later than the cuts. */
START_TEST(floor_of_group)
    {
        struct fixture *f = rate_agent();

        for (unsigned i = 0; i < 40; i++) {
            cnp(f);
            f->now += AGENT_INTERVAL;
        }
        ck_assert_uint_eq(group_flow(f).rate, LINE / 200);
        f->config.trees[0].rate_floor = LINE / 4;
        fixture_configure(f);
        ck_assert_uint_eq(group_flow(f).rate, LINE / 4);
        for (unsigned i = 0; i < 10; i++) {
            cnp(f);
            ck_assert_uint_eq(group_flow(f).rate, LINE / 4);
            f->now += AGENT_INTERVAL;
        }
        fixture_destroy(f);
    }
END_TEST

/* Whatever comes, one cut an interval.  Without signals the rate comes back, and at last the flow
 * is not limited. */
START_TEST(cuts_and_recovers)
    {
        struct fixture *f = rate_agent();

        for (unsigned i = 0; i < 100; i++) {
            cnp(f);
            f->now += AGENT_INTERVAL / 10;
        }
        ck_assert_uint_eq(group_flow(f).n_cnps, 100);
        ck_assert_uint_eq(group_flow(f).n_cuts, 10);
        uint64_t start = f->now;
        while (rate_deadline(f->node) != UINT64_MAX) {
            fixture_timer(f);
            ck_assert_uint_lt(f->now, start + 2 * RATE_IDLE_USEC);
        }
        ck_assert_uint_eq(group_flow(f).rate, 0);
        ck_assert_uint_eq(group_flow(f).n_cuts, 10);
        fixture_destroy(f);
    }
END_TEST

/* The host's NIC slows it down: the agent passes CNPs on, or as the root makes them. */
START_TEST(control_by_nic)
    {
        struct fixture *f = rate_agent();
        struct packet *p = packet_get(f->pool);

        f->config.congestion.rate_control = RATE_BY_NIC;
        fixture_configure(f);
        f->n_frames = 0;
        ck_assert_int_eq(rate_cnp(f->node, tree_of(f), p, f->now), DROP_none);
        ck_assert_uint_eq(f->n_frames, 0);
        packet_put(p);
        ck_assert_int_eq(rate_cnp(f->node, tree_of(f), NULL, f->now), DROP_none);
        fixture_settle(f);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct frame *frame = &f->frames[0];
        const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
        const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);
        ck_assert_uint_eq(frame->port, HOST_PORT);
        ck_assert_uint_eq(frame->h.opcode, ROCE_CNP);
        ck_assert_mem_eq(&ip->src, &star_proxy, 16);
        ck_assert_mem_eq(&ip->dst, &star_source, 16);
        ck_assert_uint_eq(be24_get(bth->dest_qp), STAR_SOURCE_QPN);
        ck_assert(frame_icrc_ok(frame));
        agent_write(f, START);
        agent_write(f, START + 1);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(group_flow(f).n_cnps, 2);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* The agent is the root, and answers are overdue after 13 ms. */
static struct fixture *
root_agent(void)
{
    struct fixture *f = rate_agent();

    agent_make_root(f, NODE_A, NODE_B);
    f->config.trees[0].policy.timeout = 14;
    fixture_configure(f);
    return f;
}

/* Both nodes confirm what has come to them last; the host hears of it. */
static void
both_confirm(struct fixture *f, uint32_t psn)
{
    agent_node_responds(f, NODE_A, STAR_DQPN, AETH_ACK_UNLIMITED, psn);
    ck_assert_uint_eq(f->n_frames, 0);
    agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, psn);
    agent_check_made(f, 0, AETH_ACK_UNLIMITED, psn);
}

/* What waits for longer than an answer takes is not presumed lost, what has left is.  The host goes
 * back while packets wait, and all PSNs leave once more, in order. */
START_TEST(root_goes_back)
    {
        struct fixture *f = root_agent();
        struct tree_info info;
        uint32_t next = START;

        f->config.congestion.rate.timer_usec = 10 * SEC; /* the rate stays. */
        fixture_configure(f);
        /* It knows how quickly they answer. */
        agent_write(f, next);
        f->now += 100;
        both_confirm(f, next++);
        for (unsigned i = 0; i < 40; i++) {
            cnp(f);
            f->now += AGENT_INTERVAL;
        }
        while (rate_deadline(f->node) <= f->now) {
            fixture_timer(f);
        }
        cnp(f);
        ck_assert_uint_eq(group_flow(f).rate, LINE / 200); /* 32 ms a packet. */
        uint32_t end = next + 10;
        for (uint32_t psn = next; psn != end; psn++) {
            agent_write(f, psn);
        }
        uint32_t waiting = n_waiting(f);
        ck_assert_uint_ge(waiting, 7); /* the first ones have left at once. */
        for (; next != end - waiting; next++) {
            both_confirm(f, next);
        }
        for (; next != end - 4; next++) {
            next_frames(f);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(f->frames[0].port, UPLINK); /* no NAK to the host. */
            ck_assert_uint_eq(agent_psn(f, 0), next & PSN_MASK);
            f->now += 100;
            both_confirm(f, next);
        }
        /* The next packet is lost on its way to B.  That is presumed before another one leaves. */
        next_frames(f);
        ck_assert_uint_eq(agent_psn(f, 0), next & PSN_MASK);
        agent_node_responds(f, NODE_A, STAR_DQPN, AETH_ACK_UNLIMITED, next);
        next_frames(f);
        ck_assert_uint_eq(f->n_frames, 1);
        agent_check_made(f, 0, AETH_NAK_PSN_SEQ, next);
        ck_assert_uint_eq(n_waiting(f), 3);
        for (uint32_t psn = next; psn != end; psn++) {
            agent_write(f, psn);
            ck_assert_uint_eq(f->n_frames, 0);
        }
        ck_assert_uint_eq(n_waiting(f), 4);
        ck_assert_uint_eq(group_flow(f).n_replaced, 3);
        for (; next != end; next++) {
            next_frames(f);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(f->frames[0].port, UPLINK);
            ck_assert_uint_eq(agent_psn(f, 0), next & PSN_MASK);
            f->now += 100;
            agent_node_responds(f, NODE_A, STAR_DQPN, AETH_ACK_UNLIMITED, next);
            agent_node_responds(f, NODE_B, STAR_DQPN, AETH_ACK_UNLIMITED, next);
        }
        srcagent_class.tree(f->node, 0, &info);
        ck_assert_uint_eq(info.reverse.m.v, end & PSN_MASK);
        ck_assert_uint_eq(info.reverse.n_sent_presumed, 1);
        ck_assert_uint_eq(info.reverse.n_sent_naks, 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

Suite *
agent_rate_suite(void)
{
    Suite *s = suite_create("agent_rate");
    TCase *tc = tcase_create("agent_rate");

    tcase_add_test(tc, group_is_paced);
    tcase_add_test(tc, rate_grows_again);
    tcase_add_test(tc, others_overtake);
    tcase_add_test(tc, what_waits_does_not_count);
    tcase_add_test(tc, refusal_waits_its_turn);
    tcase_add_test(tc, queue_is_bounded);
    tcase_add_test(tc, queues_are_bounded);
    tcase_add_test(tc, closes_while_paced);
    tcase_add_test(tc, control_ends);
    tcase_add_test(tc, epoch_ends);
    tcase_add_test(tc, floor_of_group);
    tcase_add_test(tc, cuts_and_recovers);
    tcase_add_test(tc, control_by_nic);
    tcase_add_test(tc, root_goes_back);
    suite_add_tcase(s, tc);
    return s;
}
