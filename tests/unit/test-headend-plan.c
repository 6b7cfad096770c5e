/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows that change their path because somebody wants it: what waits for what (docs/draft-notes.md,
 * R23).
 */
#include <check.h>
#include <stdlib.h>

#include "lib/in-flight.h"
#include "lib/pacer.h"
#include "lib/roce.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/suites.h"

#define QP        0x11
#define DRAIN_MAX 500000

/* An agent with paths 1 and 2 to the peer, and a flow on path 1 whose request 10 is confirmed. */
static struct fixture *
agent(enum path_policy policy)
{
    struct fixture *f = path_agent();
    struct roce_spec first = path_request(RC_WRITE_ONLY, QP, 10);

    path_add(f, &path_peer, policy, 2, 1);
    fixture_configure(f);
    f->now += IN_FLIGHT_LIFE;
    ck_assert_uint_eq(path_taken(f, &first), 1);
    path_answer(f, RC_ACK, AETH_ACK_UNLIMITED, 10);
    return f;
}

/* Feeds a WRITE of the host, which may have to wait. */
static void
writes(struct fixture *f, uint8_t opcode, uint32_t psn, bool ack_req)
{
    struct roce_spec spec = path_request(opcode, QP, psn);

    spec.ack_req = ack_req;
    agent_from_host(f, &spec);
}

/* It leaves at once, on this path. */
static void
passes(struct fixture *f, uint8_t opcode, uint32_t psn, bool ack_req, unsigned path)
{
    struct roce_spec spec = path_request(opcode, QP, psn);

    spec.ack_req = ack_req;
    ck_assert_uint_eq(path_taken(f, &spec), path);
}

static void
waits(struct fixture *f, uint8_t opcode, uint32_t psn, bool ack_req)
{
    uint32_t before = path_info(f, 1).n_held;

    writes(f, opcode, psn, ack_req);
    ck_assert_uint_eq(f->n_frames, 0);
    ck_assert_uint_eq(path_info(f, 1).n_held, before + 1);
}

static void
acks(struct fixture *f, uint32_t psn)
{
    path_answer_to(f, OWN_QPN, RC_ACK, AETH_ACK_UNLIMITED, psn);
}

static void
deny(struct fixture *f, unsigned path, bool denied)
{
    f->config.destinations[0].paths[path - 1].usable = !denied;
    f->n_frames = 0;
    fixture_configure(f);
}

/* Frame i is the request with this PSN, on path 2. */
static void
check_request(const struct fixture *f, size_t i, uint32_t psn)
{
    ck_assert_uint_gt(f->n_frames, i);
    ck_assert_uint_eq(agent_psn(f, i), psn);
    const struct ip6_hdr_wire *outer = (const void *) (f->frames[i].bytes + f->frames[i].h.ip.ofs);
    ck_assert_uint_eq(f->frames[i].port, OTHER_UPLINK);
    ck_assert_uint_eq(ip6_flow_label(outer) >> 8, 2);
    ck_assert(frame_icrc_ok(&f->frames[i]));
}

/* Frame i is a sequence NAK to the host. */
static void
check_nak(const struct fixture *f, size_t i, uint32_t psn)
{
    ck_assert_uint_gt(f->n_frames, i);
    ck_assert_uint_eq(f->frames[i].port, HOST_PORT);
    ck_assert_uint_eq(agent_psn(f, i), psn);
    ck_assert_uint_eq(f->frames[i].bytes[f->frames[i].h.ext_ofs], AETH_NAK_PSN_SEQ);
}

/* A path is denied: what is in flight passes up to a request that wants an answer, what comes then waits,
 * and leaves on the other path when all is confirmed.  Nothing is sent again, no NAK is made. */
START_TEST(drains)
    {
        struct fixture *f = agent(PATH_SPREAD);

        passes(f, RC_WRITE_FIRST, 11, false, 1);
        deny(f, 1, true);
        ck_assert_uint_eq(f->n_frames, 0);
        passes(f, RC_WRITE_MIDDLE, 12, false, 1); /* nobody would confirm what is before it. */
        passes(f, RC_WRITE_LAST, 13, true, 1);
        waits(f, RC_WRITE_FIRST, 14, false);
        waits(f, RC_WRITE_LAST, 15, true);
        acks(f, 12);
        ck_assert_uint_eq(f->n_frames, 1);
        waits(f, RC_WRITE_ONLY, 16, true);
        acks(f, 13);
        ck_assert_uint_eq(f->n_frames, 4);
        ck_assert_uint_eq(f->frames[3].port, HOST_PORT); /* the answer itself. */
        for (uint32_t i = 0; i < 3; i++) {
            check_request(f, i, 14 + i);
        }
        passes(f, RC_WRITE_ONLY, 17, true, 2);
        struct path_info to = path_info(f, 2);
        ck_assert_uint_eq(to.n_moved, 1);
        ck_assert_uint_eq(to.n_moved_by[PATH_MOVE_PLANNED], 1);
        ck_assert_uint_eq(to.n_moved_by[PATH_MOVE_FAILED], 0);
        ck_assert_uint_eq(to.n_naks, 0);
        ck_assert_uint_eq(path_info(f, 1).n_held, 0);
        ck_assert_uint_eq(to.last_switch, f->now);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        f->now += DRAIN_MAX;
        f->n_frames = 0;
        f->class->timer(f->node, f->now);
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_destroy(f);
    }
END_TEST

/* The request with the highest PSN has wanted an answer: nothing passes any more.  Nothing is in flight:
 * the flow goes at once. */
START_TEST(begins)
    {
        struct fixture *f = agent(PATH_SPREAD);

        passes(f, RC_WRITE_ONLY, 11, true, 1);
        deny(f, 1, true);
        waits(f, RC_WRITE_ONLY, 12, true);
        acks(f, 11);
        check_request(f, 0, 12);
        acks(f, 12);
        deny(f, 1, false);
        passes(f, RC_WRITE_ONLY, 13, true, 2);
        acks(f, 13);
        deny(f, 2, true);
        ck_assert_uint_eq(path_info(f, 1).n_flows, 1);
        passes(f, RC_WRITE_ONLY, 14, true, 1);
        fixture_destroy(f);

        /* A READ wants one by itself, and has arrived when that begins. */
        f = agent(PATH_SPREAD);
        passes(f, RC_READ_REQ, 11, false, 1);
        deny(f, 1, true);
        waits(f, RC_WRITE_ONLY, 12, true);
        path_answer_to(f, OWN_QPN, RC_READ_RESP_ONLY, AETH_ACK_UNLIMITED, 11);
        check_request(f, 0, 12);
        fixture_destroy(f);
    }
END_TEST

/* What is lost on the old path is sent again there, and what waits gives way if that comes again, too. */
START_TEST(lost_while_it_waits)
    {
        struct fixture *f = agent(PATH_SPREAD);

        passes(f, RC_WRITE_ONLY, 11, true, 1);
        passes(f, RC_WRITE_ONLY, 12, true, 1);
        deny(f, 1, true);
        waits(f, RC_WRITE_ONLY, 13, true);
        waits(f, RC_WRITE_ONLY, 14, true);
        path_answer_to(f, OWN_QPN, RC_ACK, AETH_NAK_PSN_SEQ, 11);
        ck_assert_uint_eq(f->n_frames, 1);
        passes(f, RC_WRITE_ONLY, 11, true, 1);
        passes(f, RC_WRITE_ONLY, 12, true, 1);
        writes(f, RC_WRITE_ONLY, 13, true);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(path_info(f, 1).n_held, 1);
        acks(f, 12);
        ck_assert_uint_eq(f->n_frames, 2);
        check_request(f, 0, 13);
        ck_assert_uint_eq(path_info(f, 2).n_naks, 0);
        fixture_destroy(f);
    }
END_TEST

/* It takes too long: as if the path had failed.  So does a queue that is full. */
START_TEST(not_drained)
    {
        struct fixture *f = agent(PATH_SPREAD);

        passes(f, RC_WRITE_ONLY, 11, true, 1);
        deny(f, 1, true);
        waits(f, RC_WRITE_ONLY, 12, true);
        f->now += DRAIN_MAX - 1;
        f->n_frames = 0;
        f->class->timer(f->node, f->now);
        ck_assert_uint_eq(f->n_frames, 0);
        f->now++;
        ck_assert_uint_le(f->class->deadline(f->node), f->now);
        f->class->timer(f->node, f->now);
        fixture_settle(f);
        ck_assert_uint_eq(f->n_frames, 2);
        check_request(f, 0, 12);
        check_nak(f, 1, 11);
        ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_FAILED], 1);
        ck_assert_uint_eq(path_info(f, 2).n_naks, 1);
        fixture_destroy(f);

        f = agent(PATH_SPREAD);
        passes(f, RC_WRITE_ONLY, 11, true, 1);
        deny(f, 1, true);
        f->sink = NULL;
        for (uint32_t i = 0; i < 40; i++) {
            waits(f, RC_WRITE_ONLY, 12 + i, true);
        }
        /* The rest of the buffers is somebody else's. */
        struct packet *taken = NULL, *p;
        while (packet_pool_n_free(f->pool) > packet_pool_size(f->pool) / 8) {
            p = packet_get(f->pool);
            p->next = taken;
            taken = p;
        }
        writes(f, RC_WRITE_ONLY, 52, true);
        ck_assert_uint_eq(f->n_frames, 42);
        for (uint32_t i = 0; i < 40; i++) {
            check_request(f, i, 12 + i);
        }
        check_nak(f, 40, 11);
        check_request(f, 41, 52);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        while ((p = taken)) {
            taken = p->next;
            packet_put(p);
        }
        fixture_destroy(f);
    }
END_TEST

/* Whose answers are the flow's is not known, so nothing waits: nobody would see that all has arrived.  It
 * goes when others would have waited long enough, or as soon as it is known and all is confirmed. */
START_TEST(answers_unknown)
    {
        for (unsigned known = 0; known < 2; known++) {
            struct fixture *f = path_agent();

            path_add(f, &path_peer, PATH_SPREAD, 2, 1);
            fixture_configure(f);
            passes(f, RC_WRITE_ONLY, 11, true, 1);
            acks(f, 11); /* but the agent is in doubt. */
            deny(f, 1, true);
            passes(f, RC_WRITE_ONLY, 12, true, 1);
            uint64_t end = f->now + DRAIN_MAX;
            uint32_t psn = 13;
            while (f->now + 40000 < end) { /* it never pauses. */
                f->now += 40000;
                passes(f, RC_WRITE_ONLY, psn++, true, 1);
            }
            f->now = end - 1;
            f->n_frames = 0;
            f->class->timer(f->node, f->now);
            passes(f, RC_WRITE_ONLY, psn++, true, 1);
            if (known) {
                deny(f, 1, false);
                f->now += IN_FLIGHT_LIFE;
                deny(f, 1, true);
                acks(f, psn - 1);
            } else {
                f->now++;
                f->class->timer(f->node, f->now);
            }
            fixture_settle(f);
            passes(f, RC_WRITE_ONLY, psn, true, 2);
            ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_PLANNED], 1);
            ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_FAILED], 0);
            ck_assert_uint_eq(path_info(f, 2).n_naks, 0);
            ck_assert_uint_eq(fixture_total_drops(f), 0);
            fixture_destroy(f);
        }
    }
END_TEST

/* While it waits: its path fails, the other one does, or the operator thinks again. */
START_TEST(overtaken_by_events)
    {
        for (unsigned how = 0; how < 5; how++) {
            struct fixture *f = agent(PATH_SPREAD);

            passes(f, RC_WRITE_ONLY, 11, true, 1);
            deny(f, 1, true);
            waits(f, RC_WRITE_ONLY, 12, true);
            switch (how) {
            case 0:
                path_set_state(f, 1, PATH_BAD);
                ck_assert_uint_eq(f->n_frames, 2);
                check_request(f, 0, 12);
                check_nak(f, 1, 11);
                break;
            case 1: /* bad is better than denied. */
                path_set_state(f, 2, PATH_BAD);
                ck_assert_uint_eq(f->n_frames, 0);
                acks(f, 11);
                check_request(f, 0, 12);
                break;
            case 2: /* there is nowhere to go. */
                deny(f, 2, true);
                ck_assert_uint_eq(f->n_frames, 1);
                ck_assert_uint_eq(f->frames[0].port, UPLINK);
                ck_assert_uint_eq(agent_psn(f, 0), 12);
                passes(f, RC_WRITE_ONLY, 13, true, 1);
                break;
            case 3: /* it goes all the same. */
                deny(f, 1, false);
                ck_assert_uint_eq(f->n_frames, 0);
                acks(f, 11);
                check_request(f, 0, 12);
                break;
            case 4: /* the destination has no paths any more: nothing is lost. */
                f->config.n_destinations = 0;
                f->n_frames = 0;
                fixture_configure(f);
                ck_assert_uint_eq(f->n_frames, 1);
                check_request(f, 0, 12);
                free(f->config.destinations[0].paths);
                break;
            }
            ck_assert_uint_eq(fixture_total_drops(f), 0);
            fixture_destroy(f);
        }
    }
END_TEST

/* Failover goes back to the better path when that is good again, and not before. */
START_TEST(failover_returns)
    {
        struct fixture *f = agent(PATH_FAILOVER);

        path_set_state(f, 1, PATH_BAD);
        passes(f, RC_WRITE_ONLY, 11, true, 2);
        path_set_state(f, 1, PATH_RECOVERING);
        acks(f, 11);
        passes(f, RC_WRITE_ONLY, 12, true, 2);
        path_set_state(f, 1, PATH_GOOD);
        writes(f, RC_WRITE_ONLY, 13, true);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(path_info(f, 2).n_held, 1);
        acks(f, 12);
        ck_assert_uint_eq(f->n_frames, 2);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        passes(f, RC_WRITE_ONLY, 14, true, 1);
        ck_assert_uint_eq(path_info(f, 1).n_moved_by[PATH_MOVE_PLANNED], 1);
        ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_FAILED], 1);

        /* A port that is up again is seen soon. */
        acks(f, 14);
        f->down[UPLINK] = true;
        fixture_timer(f);
        passes(f, RC_WRITE_ONLY, 15, true, 2);
        acks(f, 15);
        f->down[UPLINK] = false;
        fixture_timer(f);
        passes(f, RC_WRITE_ONLY, 16, true, 1);

        /* A path that is only suspect is not left. */
        path_set_state(f, 1, PATH_SUSPECT);
        acks(f, 16);
        passes(f, RC_WRITE_ONLY, 17, true, 1);
        fixture_destroy(f);
    }
END_TEST

/* A flow that pauses moves at once.  What it sent before is not confirmed, so it was lost, as by a path
 * that nobody has found bad yet: the host hears so.  There is nothing to say if all is confirmed. */
START_TEST(lost_before_a_pause)
    {
        for (unsigned lost = 0; lost < 2; lost++) {
            struct fixture *f = agent(PATH_FAILOVER);

            deny(f, 1, true);
            passes(f, RC_WRITE_ONLY, 11, true, 2);
            acks(f, 11);
            passes(f, RC_WRITE_FIRST, 12, false, 2);
            passes(f, RC_WRITE_LAST, 13, true, 2);
            if (!lost) {
                acks(f, 13);
            }
            f->now += 50000;
            deny(f, 1, false);
            ck_assert_uint_eq(f->n_frames, lost);
            if (lost) {
                check_nak(f, 0, 12);
            }
            ck_assert_uint_eq(path_info(f, 1).n_naks, lost);
            ck_assert_uint_eq(path_info(f, 1).n_moved_by[PATH_MOVE_FAILED], 0);
            passes(f, RC_WRITE_ONLY, 14, true, 1);
            fixture_destroy(f);
        }
    }
END_TEST

/* Failover thinks again: the path that the flow is about to leave is the best one after all. */
START_TEST(failover_stays)
    {
        struct fixture *f = agent(PATH_FAILOVER);

        path_set_state(f, 1, PATH_BAD);
        passes(f, RC_WRITE_ONLY, 11, true, 2);
        path_set_state(f, 1, PATH_RECOVERING);
        path_set_state(f, 1, PATH_GOOD);
        writes(f, RC_WRITE_ONLY, 12, true);
        ck_assert_uint_eq(f->n_frames, 0);
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 1);
        check_request(f, 0, 12);
        acks(f, 12);
        passes(f, RC_WRITE_ONLY, 13, true, 2);
        ck_assert_uint_eq(path_info(f, 1).n_moved, 0);
        fixture_destroy(f);
    }
END_TEST

/* An operator's pin is obeyed in the same way. */
START_TEST(pinned)
    {
        struct fixture *f = agent(PATH_SPREAD);

        passes(f, RC_WRITE_ONLY, 11, true, 1);
        path_pin(&f->config.destinations[0], QP, 2);
        fixture_configure(f);
        waits(f, RC_WRITE_ONLY, 12, true);
        acks(f, 11);
        check_request(f, 0, 12);
        ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_PLANNED], 1);
        f->config.destinations[0].pins[0].number = 9; /* no such path. */
        fixture_configure(f);
        writes(f, RC_WRITE_ONLY, 13, true);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_path_none), 1);
        fixture_destroy(f);
    }
END_TEST

/* Answers move at once, but for the rest of a READ's. */
START_TEST(answers)
    {
        struct fixture *f = agent(PATH_SPREAD);
        const struct {
            uint8_t opcode;
            unsigned path;
        } said[] = {{RC_READ_RESP_MIDDLE, 2},
                    {RC_READ_RESP_LAST, 2},
                    {RC_READ_RESP_FIRST, 1},
                    {RC_READ_RESP_LAST, 1},
                    {RC_ACK, 1}};
        struct roce_spec spec = path_request(RC_ACK, QP + 1, 1);

        ck_assert_uint_eq(path_taken(f, &spec), 2);
        deny(f, 2, true);
        ck_assert_uint_eq(f->n_frames, 1); /* the path may have been dead, and nobody knew. */
        ck_assert_uint_eq(agent_psn(f, 0), 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        spec.psn++;
        ck_assert_uint_eq(path_taken(f, &spec), 1);
        deny(f, 2, false);
        spec.dest_qp = QP + 2;
        spec.opcode = RC_READ_RESP_FIRST;
        spec.payload_len = 64;
        ck_assert_uint_eq(path_taken(f, &spec), 2);
        deny(f, 2, true);
        for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
            spec.psn++;
            spec.opcode = said[i].opcode;
            ck_assert_uint_eq(path_taken(f, &spec), said[i].path);
        }
        ck_assert_uint_eq(path_info(f, 1).n_moved_by[PATH_MOVE_PLANNED], 2);
        ck_assert_uint_eq(path_info(f, 1).n_repeated, 1);

        deny(f, 2, false);
        spec.dest_qp = QP + 3;
        spec.opcode = RC_READ_RESP_FIRST;
        ck_assert_uint_eq(path_taken(f, &spec), 2);
        deny(f, 2, true);
        spec.opcode = RC_READ_RESP_MIDDLE;
        ck_assert_uint_eq(path_taken(f, &spec), 2);
        f->now += DRAIN_MAX; /* not for ever. */
        f->class->timer(f->node, f->now);
        ck_assert_uint_eq(path_taken(f, &spec), 1);
        fixture_destroy(f);
    }
END_TEST

/* Who makes room in the table has what waits sent; who waits at the end of the node has it freed. */
START_TEST(makes_room)
    {
        struct fixture *f = agent(PATH_SPREAD);
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 1);

        passes(f, RC_WRITE_ONLY, 11, true, 1);
        deny(f, 1, true);
        waits(f, RC_WRITE_ONLY, 12, true);
        for (spec.dest_qp = 0x1000; path_info(f, 1).n_held && spec.dest_qp < 0x4000;
             spec.dest_qp++) {
            f->now += 10;
            agent_from_host(f, &spec);
        }
        ck_assert_uint_eq(f->n_frames, 2);
        check_request(f, 0, 12);
        f->now += IN_FLIGHT_LIFE;
        spec.dest_qp = QP;
        spec.psn = 100;
        (void) path_taken(f, &spec);
        acks(f, 100);
        spec.psn = 101;
        (void) path_taken(f, &spec);
        deny(f, 1, false);
        deny(f, 2, true);
        spec.psn = 102;
        agent_from_host(f, &spec);
        ck_assert_uint_eq(path_info(f, 2).n_held, 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
headend_plan_suite(void)
{
    Suite *s = suite_create("headend_plan");
    TCase *tc = tcase_create("headend_plan");

    tcase_add_test(tc, drains);
    tcase_add_test(tc, begins);
    tcase_add_test(tc, lost_while_it_waits);
    tcase_add_test(tc, not_drained);
    tcase_add_test(tc, answers_unknown);
    tcase_add_test(tc, overtaken_by_events);
    tcase_add_test(tc, failover_returns);
    tcase_add_test(tc, lost_before_a_pause);
    tcase_add_test(tc, failover_stays);
    tcase_add_test(tc, pinned);
    tcase_add_test(tc, answers);
    tcase_add_test(tc, makes_room);
    suite_add_tcase(s, tc);
    return s;
}
