/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows that leave congested paths, and what data say of a way (docs/draft-notes.md, R23).
 */
#include <check.h>
#include <stdlib.h>

#include "lib/fast-cnp.h"
#include "lib/headend.h"
#include "lib/in-flight.h"
#include "lib/roce.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/suites.h"

#define QP       0x11
#define INTERVAL 100000
#define SECOND   UINT64_C(1000000)

static struct fixture *
agent(enum path_policy policy, unsigned n)
{
    struct fixture *f = path_agent();

    path_add(f, &path_peer, policy, n, 1);
    agent_congestion(f, 1000000000);
    fixture_configure(f);
    f->now += IN_FLIGHT_LIFE;
    return f;
}

/* The path of a WRITE that is answered at once, so that nothing is in flight. */
static unsigned
writes(struct fixture *f, unsigned i, uint32_t psn)
{
    struct roce_spec spec = path_request(RC_WRITE_ONLY, QP + i, psn + i * 0x100000);
    unsigned path = path_taken(f, &spec);

    path_answer_to(f, OWN_QPN + i, RC_ACK, AETH_ACK_UNLIMITED, spec.psn);
    return path;
}

/* Goes on for so long, calling timers, while n flows write. */
static void
run(struct fixture *f, uint64_t usec, unsigned n_flows)
{
    static uint32_t psn = 100;
    uint64_t end = f->now + usec;

    while (f->now < end) {
        f->now += 10000;
        f->n_frames = 0;
        f->class->timer(f->node, f->now);
        fixture_settle(f);
        for (unsigned i = 0; i < n_flows; i++) {
            writes(f, i, psn);
        }
        psn++;
    }
}

static uint64_t
n_left(const struct fixture *f)
{
    uint64_t n = 0;

    for (size_t i = 0; i < f->config.destinations[0].n_paths; i++) {
        n += path_info(f, (uint16_t) (i + 1)).n_moved_by[PATH_MOVE_CONGESTED];
    }
    return n;
}

/* Probes of a path are marked: after some intervals, and a random time, its flow is on another one; not
 * if only some are.  Proves AB-27. */
START_TEST(marked)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        ck_assert_uint_eq(writes(f, 0, 10), 1);
        path_set_marked(1, 120);
        run(f, 3 * SECOND, 1);
        ck_assert_uint_eq(n_left(f), 0);
        path_set_marked(1, 256);
        run(f, 4 * INTERVAL, 1);
        ck_assert_uint_eq(n_left(f), 0);
        run(f, 6 * INTERVAL, 1);
        ck_assert_uint_eq(n_left(f), 1);
        ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_CONGESTED], 1);
        ck_assert_uint_eq(path_info(f, 2).n_flows, 1);
        ck_assert_uint_eq(path_info(f, 2).n_naks, 0);
        ck_assert_uint_ge(path_info(f, 1).congested, 192);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A signal that ends before the flow has left. */
START_TEST(passes_by)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        ck_assert_uint_eq(writes(f, 0, 10), 1);
        for (unsigned i = 0; i < 20; i++) {
            path_set_marked(1, 256);
            run(f, 3 * INTERVAL, 1);
            path_set_marked(1, 0);
            run(f, 2 * INTERVAL, 1);
        }
        ck_assert_uint_eq(n_left(f), 0);
        fixture_destroy(f);
    }
END_TEST

static void
fast_cnp(struct fixture *f, const struct in6_addr *node, unsigned i)
{
    headend_congested(((struct node_base *) f->node)->headend, &path_peer, QP + i, node, f->now);
}

/* Fast CNPs from a node have flows leave the path through it, if there is one that is not.
 * Proves FC-16. */
START_TEST(fast_cnps)
    {
        static const struct {
            uint16_t node;
            bool leaves;
        } cases[] = {
            {0x500, true},         /* the spine of path 1. */
            {0x100, true},         /* its first leaf. */
            {0x300, false},        /* the last leaf, which is on both. */
            {STAR_AGENT_ID, true}, /* this node's own port. */
            {0x501, true},         /* on the other path only. */
        };

        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            struct fixture *f = agent(PATH_SPREAD, 2);
            const struct in6_addr node = node_address(cases[c].node);

            for (unsigned i = 0; i < 2; i++) {
                struct program *p = &f->config.destinations[0].paths[i].program;

                p->containers[0] = addr_of(i ? "5f00:0:101:501:300::" : "5f00:0:100:500:300::");
            }
            fixture_configure(f);
            ck_assert_uint_eq(writes(f, 0, 10), 1);
            for (unsigned i = 0; i < 12; i++) {
                fast_cnp(f, &node, 0);
                run(f, INTERVAL, 1);
            }
            bool sees_it = cases[c].node != 0x501;
            ck_assert_uint_eq(n_left(f), cases[c].leaves && sees_it);
            ck_assert_uint_gt(path_n_doubts(1), 0);
            fixture_destroy(f);
        }
    }
END_TEST

/* The packet itself, as it comes to the agent: exactly one counter, and both who limit rates and who choose
 * paths have heard. */
START_TEST(fast_cnp_packet)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);
        const struct fast_cnp said = {
            .node = node_address(STAR_EDGE_ID), /* the first leaf of path 1. */
            .sender = star_source,
            .original = path_peer,
            .dest_qp = QP,
        };

        ck_assert_uint_eq(writes(f, 0, 10), 1);
        for (unsigned i = 0; i < 12; i++) {
            uint64_t taken = fixture_drops(f, DROP_fast_cnp);
            struct packet *p = fast_cnp_build(f->pool, &said, 0xc123);
            uint8_t bytes[PACKET_ROOM];
            size_t len = packet_flatten(p, bytes, sizeof bytes);

            packet_put(p);
            fixture_input(f, UPLINK, bytes, len);
            ck_assert_uint_eq(f->n_frames, 0);
            ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp), taken + 1);
            run(f, INTERVAL, 1);
        }
        ck_assert_uint_eq(n_left(f), 1);
        ck_assert_uint_eq(agent_flow(f, &path_peer, QP).n_fast_cnps, 12);
        fixture_destroy(f);
    }
END_TEST

/* CNPs that the peer has made do not say where. */
START_TEST(cnps)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        ck_assert_uint_eq(writes(f, 0, 10), 1);
        for (unsigned i = 0; i < 12; i++) {
            path_answer_to(f, OWN_QPN, ROCE_CNP, 0, 0);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(f->frames[0].port, HOST_PORT);
            path_answer_to(f, OWN_QPN + 9, ROCE_CNP, 0, 0); /* of nobody. */
            run(f, INTERVAL, 1);
        }
        ck_assert_uint_eq(n_left(f), 1);
        ck_assert_uint_eq(path_n_doubts(1), 0);
        fixture_destroy(f);
    }
END_TEST

/* Who does not move: with other policies, with all paths congested, or none that is good, a pinned flow,
 * and one that has nothing to send. */
START_TEST(stays)
    {
        for (unsigned how = 0; how < 6; how++) {
            static const enum path_policy some[] = {PATH_SPREAD, PATH_SPREAD,   PATH_SPREAD,
                                                    PATH_SPREAD, PATH_FAILOVER, PATH_SPREAD};
            struct fixture *f = agent(some[how], 2);
            unsigned n = 1;

            ck_assert_uint_eq(writes(f, 0, 10), 1);
            path_set_marked(1, 256);
            switch (how) {
            case 0: path_set_marked(2, 256); break;
            case 1: path_set_state(f, 2, PATH_SUSPECT); break;
            case 2:
                path_pin(&f->config.destinations[0], QP, 1);
                fixture_configure(f);
                break;
            case 3: n = 0; break;
            case 4: break;
            case 5: path_set_marked(2, 100); break;
            }
            run(f, 3 * SECOND, n);
            ck_assert_uint_eq(n_left(f), 0);
            ck_assert_uint_eq(path_info(f, 1).n_flows, 1);
            fixture_destroy(f);
        }
    }
END_TEST

/* Several flows leave one by one, to the path that is least congested, and in turn. */
START_TEST(one_by_one)
    {
        struct fixture *f = agent(PATH_SPREAD, 3);
        uint64_t last = 0, n_moves = 0;

        f->config.destinations[0].paths[1].usable = false;
        f->config.destinations[0].paths[2].usable = false;
        fixture_configure(f);
        for (unsigned i = 0; i < 8; i++) {
            ck_assert_uint_eq(writes(f, i, 10), 1);
        }
        f->config.destinations[0].paths[1].usable = true;
        f->config.destinations[0].paths[2].usable = true;
        fixture_configure(f);
        path_set_marked(1, 256);
        for (unsigned i = 0; i < 20; i++) {
            run(f, INTERVAL, 8);
            ck_assert_uint_le(n_left(f) - last, 1);
            n_moves += n_left(f) != last;
            last = n_left(f);
        }
        ck_assert_uint_eq(n_moves, 8);
        ck_assert_uint_eq(path_info(f, 2).n_flows, 4);
        ck_assert_uint_eq(path_info(f, 3).n_flows, 4);
        fixture_destroy(f);
    }
END_TEST

/* A flow does not go back soon: the path that it has left counts as congested, and it rests for longer
 * each time. */
START_TEST(rests)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);
        uint64_t moved[3], now;

        ck_assert_uint_eq(writes(f, 0, 10), 1);
        path_set_marked(1, 256);
        run(f, SECOND, 1);
        ck_assert_uint_eq(n_left(f), 1);
        moved[0] = path_info(f, 2).last_switch;
        path_set_marked(1, 0);
        path_set_marked(2, 256);
        run(f, 50 * SECOND, 1);
        ck_assert_uint_eq(n_left(f), 1); /* the penalty. */
        run(f, 60 * SECOND, 1);
        ck_assert_uint_eq(n_left(f), 2);
        moved[1] = path_info(f, 1).last_switch;
        ck_assert_uint_gt(moved[1] - moved[0], 59 * SECOND);
        fixture_destroy(f);

        /* With more paths than flows there is always one without penalty. */
        f = agent(PATH_SPREAD, 6);
        now = f->now;
        ck_assert_uint_eq(writes(f, 0, 10), 1);
        for (unsigned i = 0; i < 3; i++) {
            for (uint16_t p = 1; p <= 6; p++) {
                path_set_marked(p, path_info(f, p).n_flows ? 256 : 0);
            }
            uint64_t before = n_left(f);
            for (unsigned j = 0; n_left(f) == before; j++) {
                ck_assert_uint_lt(j, 200);
                run(f, INTERVAL, 1);
            }
            moved[i] = f->now;
        }
        ck_assert_uint_lt(moved[0] - now, SECOND + INTERVAL);
        ck_assert_uint_ge(moved[1] - moved[0], 4 * SECOND - INTERVAL);
        ck_assert_uint_lt(moved[1] - moved[0], 5 * SECOND);
        ck_assert_uint_ge(moved[2] - moved[1], 8 * SECOND - INTERVAL);
        ck_assert_uint_lt(moved[2] - moved[1], 9 * SECOND);
        fixture_destroy(f);
    }
END_TEST

/*
 * Loss.
 */

/* A NAK from the peer has the way probed, but for the one that follows from a switch; it moves nothing. */
START_TEST(naks_are_doubts)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 12);

        ck_assert_uint_eq(writes(f, 0, 11), 1);
        ck_assert_uint_eq(path_taken(f, &spec), 1);
        path_answer_to(f, OWN_QPN, RC_ACK, AETH_RNR | 1, 12);
        ck_assert_uint_eq(path_n_doubts(1), 0);
        path_answer_to(f, OWN_QPN, RC_ACK, AETH_NAK_PSN_SEQ, 12);
        ck_assert_uint_eq(path_n_doubts(1), 1);
        path_set_state(f, 1, PATH_BAD);
        path_answer_to(f, OWN_QPN, RC_ACK, AETH_NAK_PSN_SEQ, 12);
        ck_assert_uint_eq(path_n_doubts(2), 0);
        path_answer_to(f, OWN_QPN, RC_ACK, AETH_NAK_PSN_SEQ, 12);
        ck_assert_uint_eq(path_n_doubts(2), 1);
        ck_assert_uint_eq(path_n_lost(1) + path_n_lost(2), 2);
        ck_assert_uint_eq(path_info(f, 2).n_flows, 1);
        fixture_destroy(f);
    }
END_TEST

/* Two flows are at the same PSNs, so nobody knows whose the answers are: a NAK may be about either. */
START_TEST(nak_for_some)
    {
        struct fixture *f = agent(PATH_SPREAD, 3);

        for (unsigned i = 0; i < 3; i++) {
            struct roce_spec spec = path_request(RC_WRITE_ONLY, QP + i, i < 2 ? 12 : 5000);

            ck_assert_uint_eq(path_taken(f, &spec), i + 1);
        }
        path_answer_to(f, OWN_QPN, RC_ACK, AETH_NAK_PSN_SEQ, 12);
        for (uint16_t path = 1; path <= 3; path++) {
            ck_assert_uint_eq(path_n_lost(path), path < 3);
        }
        fixture_destroy(f);
    }
END_TEST

/* What the host says again, or asks for again, may have been lost on either way. */
START_TEST(answers_are_doubts)
    {
        static const struct {
            uint8_t opcode, syndrome;
            uint32_t psn;
            bool lost;
        } said[] = {
            {RC_ACK, AETH_ACK_UNLIMITED, 10, false},
            {RC_ACK, AETH_ACK_UNLIMITED, 11, false},
            {RC_ACK, AETH_ACK_UNLIMITED, 11, true},
            {RC_ACK, AETH_ACK_UNLIMITED, 9, true},
            {RC_ACK, AETH_ACK_UNLIMITED, 12, false},
            {RC_READ_RESP_ONLY, AETH_ACK_UNLIMITED, 12, false},
            {RC_ACK, AETH_RNR | 1, 13, false},
            {RC_ACK, AETH_NAK_PSN_SEQ, 13, true},
            {RC_ACK, AETH_ACK_UNLIMITED, 13, true}, /* it has not been sent before, but the NAK has. */
            {RC_ACK, AETH_ACK_UNLIMITED, 14, false},
            {ROCE_CNP, 0, 0, false},
        };
        struct fixture *f = agent(PATH_SPREAD, 2);
        unsigned n = 0;

        for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
            struct roce_spec spec = path_request(said[i].opcode, QP, said[i].psn);

            spec.syndrome = said[i].syndrome;
            spec.payload_len = 0;
            ck_assert_uint_eq(path_taken(f, &spec), 1);
            n += said[i].lost;
            ck_assert_msg(path_n_lost(1) == n, "after answer %zu: %u, not %u", i, path_n_lost(1),
                          n);
        }
        fixture_destroy(f);
    }
END_TEST

/* No progress while something is in flight. */
START_TEST(silence_is_doubt)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 12);

        ck_assert_uint_eq(writes(f, 0, 11), 1);
        run(f, SECOND, 0);
        ck_assert_uint_eq(path_n_doubts(1), 0);
        ck_assert_uint_eq(path_taken(f, &spec), 1);
        run(f, INTERVAL / 2, 0);
        ck_assert_uint_eq(path_n_doubts(1), 0);
        run(f, 3 * INTERVAL, 0);
        ck_assert_uint_ge(path_n_lost(1), 2);
        ck_assert_uint_le(path_n_lost(1), 3);
        ck_assert_uint_eq(path_info(f, 1).n_flows, 1);
        fixture_destroy(f);
    }
END_TEST

/* It leaves a path that loses probes, too, for a good one, unless it is pinned.  If only another one loses
 * some, answers may be lost there. */
START_TEST(leaves_if_it_stands_still)
    {
        static const struct {
            enum path_state states[2];
            bool pinned;
            unsigned path;
            bool told;
        } cases[] = {
            {{PATH_SUSPECT, PATH_GOOD}, false, 2, true},
            {{PATH_RECOVERING, PATH_GOOD}, false, 2, true},
            {{PATH_SUSPECT, PATH_SUSPECT}, false, 1, true},
            {{PATH_SUSPECT, PATH_GOOD}, true, 1, true},
            {{PATH_GOOD, PATH_BAD}, false, 1, true},
            {{PATH_GOOD, PATH_GOOD}, false, 1, false},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct fixture *f = agent(PATH_SPREAD, 2);
            struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 12);

            ck_assert_uint_eq(writes(f, 0, 11), 1);
            if (cases[i].pinned) {
                path_pin(&f->config.destinations[0], QP, 1);
                fixture_configure(f);
            }
            ck_assert_uint_eq(path_taken(f, &spec), 1);
            path_set_state(f, 1, cases[i].states[0]);
            path_set_state(f, 2, cases[i].states[1]);
            ck_assert_uint_eq(path_info(f, 1).n_flows, 1);
            run(f, 4 * INTERVAL, 0);
            ck_assert_uint_eq(path_info(f, (uint16_t) cases[i].path).n_flows, 1);
            ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_FAILED], cases[i].path == 2);
            ck_assert_uint_eq(path_info(f, (uint16_t) cases[i].path).n_naks, cases[i].told);
            fixture_destroy(f);
        }
    }
END_TEST

/* If the way loses probes, too, the host hears what is missing, after twice as long each time; not if it is
 * good, nor if something gets confirmed. */
START_TEST(stands_still)
    {
        static const struct {
            enum path_state state;
            bool confirmed;
            unsigned told;
        } cases[] = {
            {PATH_SUSPECT, false, 3}, /* 0.2, 0.6 and 1.4 s, when somebody looks. */
            {PATH_GOOD, false, 0},
            {PATH_SUSPECT, true, 0},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct fixture *f = agent(PATH_SPREAD, 1);
            struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 12);

            ck_assert_uint_eq(writes(f, 0, 11), 1);
            path_set_state(f, 1, cases[i].state);
            ck_assert_uint_eq(path_taken(f, &spec), 1);
            run(f, INTERVAL, 0);
            ck_assert_uint_eq(path_info(f, 1).n_naks, 0);
            if (cases[i].confirmed) {
                path_answer_to(f, OWN_QPN, RC_ACK, AETH_ACK_UNLIMITED, 12);
            }
            run(f, 3 * INTERVAL, 0);
            ck_assert_uint_eq(path_info(f, 1).n_naks, cases[i].told > 0);
            run(f, 14 * INTERVAL, 0);
            ck_assert_uint_eq(path_info(f, 1).n_naks, cases[i].told);
            fixture_destroy(f);
        }
    }
END_TEST

Suite *
headend_load_suite(void)
{
    Suite *s = suite_create("headend_load");
    TCase *tc = tcase_create("headend_load");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, marked);
    tcase_add_test(tc, passes_by);
    tcase_add_test(tc, fast_cnps);
    tcase_add_test(tc, fast_cnp_packet);
    tcase_add_test(tc, cnps);
    tcase_add_test(tc, stays);
    tcase_add_test(tc, one_by_one);
    tcase_add_test(tc, rests);
    tcase_add_test(tc, naks_are_doubts);
    tcase_add_test(tc, nak_for_some);
    tcase_add_test(tc, answers_are_doubts);
    tcase_add_test(tc, leaves_if_it_stands_still);
    tcase_add_test(tc, silence_is_doubt);
    tcase_add_test(tc, stands_still);
    suite_add_tcase(s, tc);
    return s;
}
