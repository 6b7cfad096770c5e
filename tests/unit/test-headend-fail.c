/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows that leave a path which has failed (docs/draft-notes.md, R21, R23): where they go, and what
 * their hosts and peers hear.  Planned moves are in test-headend-plan.c, random worlds in
 * test-path-switch.c.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/in-flight.h"
#include "lib/roce.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/suites.h"

#define QP      0x11
#define OTHER   0x4713 /* another queue pair of the host, */
#define ANOTHER 0x4714 /* and one more. */

/* An agent with n paths to the peer, which is in no doubt. */
static struct fixture *
agent(enum path_policy policy, unsigned n)
{
    struct fixture *f = path_agent();

    path_add(f, &path_peer, policy, n, 1);
    fixture_configure(f);
    f->now += IN_FLIGHT_LIFE;
    return f;
}

static unsigned
sends(struct fixture *f, uint8_t opcode, uint32_t qp, uint32_t psn)
{
    struct roce_spec spec = path_request(opcode, qp, psn);

    return path_taken(f, &spec);
}

static void
acks(struct fixture *f, uint32_t own, uint32_t psn)
{
    path_answer_to(f, own, RC_ACK, AETH_ACK_UNLIMITED, psn);
}

/* Frame i is a NAK as from the peer to the host's queue pair. */
static void
check_told(const struct fixture *f, size_t i, uint32_t own, uint32_t psn, uint8_t syndrome)
{
    ck_assert_uint_gt(f->n_frames, i);
    const struct frame *frame = &f->frames[i];
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct udp_hdr *udp = (const void *) (ip + 1);
    const struct bth *bth = (const void *) (udp + 1);
    const struct aeth *aeth = (const void *) (bth + 1);

    ck_assert_uint_eq(frame->port, HOST_PORT);
    ck_assert_uint_eq(frame->h.inner.ofs, 0);
    ck_assert_mem_eq(&ip->src, &path_peer, 16);
    ck_assert_mem_eq(&ip->dst, &star_source, 16);
    ck_assert_uint_eq(be16_get(udp->csum), 0);
    ck_assert_uint_eq(bth->opcode, RC_ACK);
    ck_assert_uint_eq(be24_get(bth->dest_qp), own);
    ck_assert_uint_eq(bth_psn(bth).v, psn & PSN_MASK);
    ck_assert_uint_eq(aeth->syndrome, syndrome);
    ck_assert_uint_eq(be24_get(aeth->msn), 0x77);
    ck_assert(frame_icrc_ok(frame));
}

static void
check_nak(const struct fixture *f, size_t i, uint32_t own, uint32_t psn)
{
    check_told(f, i, own, psn, AETH_NAK_PSN_SEQ);
}

/* In the event in which a probe says that a path is bad its flows have another one, and the host hears
 * what to send again.  Nothing else leaves, and nothing is dropped.  Proves AB-28, AB-29, AB-30, AB-37. */
START_TEST(path_becomes_bad)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START), 1);
        acks(f, OWN_QPN, START);
        ck_assert_uint_eq(sends(f, RC_WRITE_FIRST, QP, START + 1), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_LAST, QP, START + 2), 1);
        path_set_state(f, 1, PATH_SUSPECT);
        ck_assert_uint_eq(f->n_frames, 0);
        uint64_t passed = fixture_drops(f, DROP_none);
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 1);
        check_nak(f, 0, OWN_QPN, START + 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_none), passed + 1);
        ck_assert_uint_eq(path_info(f, 1).n_flows, 0);
        ck_assert_uint_eq(path_info(f, 2).n_flows, 1);
        path_set_state(f, 1, PATH_BAD); /* once. */
        ck_assert_uint_eq(f->n_frames, 0);

        ck_assert_uint_eq(sends(f, RC_WRITE_FIRST, QP, START + 1), 2);
        ck_assert_uint_eq(sends(f, RC_WRITE_LAST, QP, START + 2), 2);
        path_set_state(f, 1, PATH_RECOVERING);
        path_set_state(f, 1, PATH_GOOD);
        ck_assert_uint_eq(sends(f, RC_WRITE_LAST, QP, START + 3), 2);

        struct path_info to = path_info(f, 2);
        ck_assert_int_eq(path_info(f, 1).state, PATH_GOOD);
        ck_assert_uint_eq(to.n_moved, 1);
        ck_assert_uint_eq(to.n_moved_by[PATH_MOVE_FAILED], 1);
        ck_assert_uint_eq(to.n_moved_by[PATH_MOVE_PLANNED], 0);
        ck_assert_uint_eq(to.n_naks, 1);
        ck_assert_uint_eq(to.n_repeated, 0);
        ck_assert_uint_eq(to.last_switch, f->now);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Nobody is told, if that is what an experiment wants: the flow has another path all the same. */
START_TEST(says_nothing)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        f->class->make_naks(f->node, false);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START), 1);
        acks(f, OWN_QPN, START);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 1), 1);
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(path_info(f, 2).n_naks, 0);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 1), 2);

        f->class->make_naks(f->node, true);
        path_set_state(f, 1, PATH_GOOD);
        path_set_state(f, 2, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 1);
        check_told(f, 0, OWN_QPN, START + 1, AETH_RNR_AT_ONCE);
        fixture_destroy(f);
    }
END_TEST

/* A queue pair that has gone back, since its peer has said NAK, or this node, or by its timer, does not
 * for another sequence NAK until something is confirmed. */
START_TEST(has_gone_back)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START), 1);
        acks(f, OWN_QPN, START);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 1), 1);
        path_answer_to(f, OWN_QPN, RC_ACK, AETH_NAK_PSN_SEQ, START + 1);
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 1);
        check_told(f, 0, OWN_QPN, START + 1, AETH_RNR_AT_ONCE);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 1), 2);
        acks(f, OWN_QPN, START); /* confirms nothing new. */
        f->now++;
        path_set_state(f, 1, PATH_GOOD);
        path_set_state(f, 2, PATH_BAD);
        check_told(f, 0, OWN_QPN, START + 1, AETH_RNR_AT_ONCE);

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 1), 1);
        acks(f, OWN_QPN, START + 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 2), 1);
        f->now++;
        path_set_state(f, 2, PATH_GOOD);
        path_set_state(f, 1, PATH_BAD);
        check_nak(f, 0, OWN_QPN, START + 2);
        f->now++;
        path_set_state(f, 1, PATH_GOOD);
        path_set_state(f, 2, PATH_BAD);
        check_told(f, 0, OWN_QPN, START + 2, AETH_RNR_AT_ONCE);

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 2), 1);
        acks(f, OWN_QPN, START + 2);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 3), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 3), 1); /* its timer. */
        f->now++;
        path_set_state(f, 2, PATH_GOOD);
        path_set_state(f, 1, PATH_BAD);
        check_told(f, 0, OWN_QPN, START + 3, AETH_RNR_AT_ONCE);
        fixture_destroy(f);
    }
END_TEST

/* Of what is as good, a flow takes a path that has carried something since its own one failed.  With
 * failover it stays there until the first one has, too. */
START_TEST(fails_alike)
    {
        static const enum path_policy policies[] = {PATH_SPREAD, PATH_FAILOVER};

        for (unsigned i = 0; i < 2; i++) {
            struct fixture *f = agent(policies[i], 3);

            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START), 1);
            acks(f, OWN_QPN, START);
            path_set_silent(2, true);
            path_set_state(f, 1, PATH_BAD);
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 1), 3);
            acks(f, OWN_QPN, START + 1);
            path_set_state(f, 2, PATH_SUSPECT);
            path_set_state(f, 2, PATH_GOOD);
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 2), 3);
            acks(f, OWN_QPN, START + 2);
            path_set_silent(2, false);
            path_set_state(f, 2, PATH_SUSPECT);
            path_set_state(f, 2, PATH_GOOD);
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 3),
                              policies[i] == PATH_FAILOVER ? 2 : 3);
            /* There is nothing better. */
            acks(f, OWN_QPN, START + 3);
            path_set_silent(2, true);
            path_set_state(f, 2, PATH_GOOD);
            path_set_state(f, 3, PATH_BAD);
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 4), 2);
            fixture_destroy(f);
        }
    }
END_TEST

/* One that recovers and has carried something is preferred to one that is suspect, or good as far as is
 * known, and has not: that may share what is broken. */
START_TEST(recovering_outlives)
    {
        static const enum path_state others[] = {PATH_SUSPECT, PATH_GOOD};

        for (unsigned i = 0; i < 2; i++) {
            struct fixture *f = agent(PATH_SPREAD, 3);

            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START), 1);
            path_set_silent(2, true);
            path_set_state(f, 2, others[i]);
            path_set_state(f, 3, PATH_RECOVERING);
            path_set_state(f, 1, PATH_BAD);
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 1), 3);
            /* It is gone, too: then there is nothing better. */
            path_set_silent(1, true);
            path_set_state(f, 1, PATH_RECOVERING);
            path_set_state(f, 3, PATH_BAD);
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 2), 2);
            fixture_destroy(f);
        }
    }
END_TEST

/* Where everything is confirmed, or nothing was ever sent, or nobody knows which queue pair it is, the
 * host hears nothing. */
START_TEST(nothing_to_say)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 1);
        path_set_state(f, 1, PATH_BAD); /* no answer has come yet. */
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(path_info(f, 2).n_flows, 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 2);
        acks(f, OWN_QPN, 10);
        path_set_state(f, 1, PATH_GOOD);
        path_set_state(f, 2, PATH_BAD); /* nothing is in flight. */
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), 1);
        ck_assert_uint_eq(path_info(f, 1).n_naks + path_info(f, 2).n_naks, 0);
        fixture_destroy(f);
    }
END_TEST

/* The link of the path's port: seen with the next packet, or soon without one. */
START_TEST(port_goes_down)
    {
        for (unsigned timer = 0; timer < 2; timer++) {
            struct fixture *f = agent(PATH_FAILOVER, 2);
            struct roce_spec next = path_request(RC_WRITE_ONLY, QP, 12);

            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 1);
            acks(f, OWN_QPN, 10);
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), 1);
            f->down[UPLINK] = true;
            uint64_t before = f->now;
            if (timer) {
                fixture_timer(f);
                ck_assert_uint_le(f->now, before + 10000);
            } else {
                agent_from_host(f, &next);
            }
            ck_assert_uint_eq(f->n_frames, timer ? 1 : 2);
            check_nak(f, 0, OWN_QPN, 11);
            ck_assert_uint_eq(path_info(f, 2).n_packets, timer ? 0 : 1);
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), 2);
            fixture_destroy(f);
        }
    }
END_TEST

/* A path that is not in the configuration any more. */
START_TEST(path_is_gone)
    {
        struct fixture *f = agent(PATH_SPREAD, 3);
        struct destination_config *d = &f->config.destinations[0];

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 1);
        acks(f, OWN_QPN, 10);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), 1);
        d->paths[0] = d->paths[2];
        d->n_paths = 2;
        f->n_frames = 0;
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 1);
        check_nak(f, 0, OWN_QPN, 11);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), 2);
        ck_assert_uint_eq(path_info(f, 2).n_moved, 1);
        ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_FAILED], 1);
        fixture_destroy(f);
    }
END_TEST

/* Timers stop when hosts do. */
START_TEST(timers_stop)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 1);
        unsigned n = 0;
        while (f->class->deadline(f->node) != UINT64_MAX) {
            fixture_timer(f);
            ck_assert_uint_lt(n++, 300);
        }
        ck_assert_uint_gt(n, 100);
        fixture_destroy(f);
    }
END_TEST

/* States of paths 1 to 4, of which 1 and 3 are of plane A, and where new flows, and one that is on path
 * 1 when the states become so, go to. */
static const struct {
    enum path_policy policy;
    enum path_state states[4];
    unsigned fresh, leaves;
} choices[] = {
    {PATH_SPREAD, {PATH_BAD, PATH_GOOD, PATH_GOOD, PATH_GOOD}, 2, 3},
    {PATH_SPREAD, {PATH_BAD, PATH_UNKNOWN, PATH_UNKNOWN, PATH_GOOD}, 2, 3},
    {PATH_SPREAD, {PATH_BAD, PATH_GOOD, PATH_SUSPECT, PATH_GOOD}, 2, 2}, /* the better one. */
    {PATH_SPREAD, {PATH_BAD, PATH_BAD, PATH_RECOVERING, PATH_SUSPECT}, 4, 4},
    {PATH_SPREAD, {PATH_BAD, PATH_BAD, PATH_BAD, PATH_RECOVERING}, 4, 4},
    {PATH_SPREAD, {PATH_BAD, PATH_BAD, PATH_BAD, PATH_BAD}, 1, 1}, /* never none. */
    {PATH_SPREAD, {PATH_SUSPECT, PATH_GOOD, PATH_GOOD, PATH_GOOD}, 2, 1},
    {PATH_SPREAD, {PATH_RECOVERING, PATH_GOOD, PATH_GOOD, PATH_GOOD}, 2, 1},
    {PATH_MESSAGE, {PATH_BAD, PATH_GOOD, PATH_GOOD, PATH_GOOD}, 2, 3},
    {PATH_FAILOVER, {PATH_BAD, PATH_GOOD, PATH_GOOD, PATH_GOOD}, 2, 2},
    {PATH_FAILOVER, {PATH_BAD, PATH_SUSPECT, PATH_GOOD, PATH_GOOD}, 3, 3},
    {PATH_FAILOVER, {PATH_BAD, PATH_BAD, PATH_BAD, PATH_BAD}, 1, 1},
    {PATH_FAILOVER, {PATH_SUSPECT, PATH_GOOD, PATH_GOOD, PATH_GOOD}, 2, 1},
};

START_TEST(choice)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, choices[_i].policy, 4, 1);

        for (unsigned i = 0; i < 4; i++) {
            strcpy(d->paths[i].plane, i % 2 ? "B" : "A");
        }
        fixture_configure(f);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 1);
        for (uint16_t i = 4; i-- > 0;) {
            path_set_state(f, (uint16_t) (i + 1), choices[_i].states[i]);
        }
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), choices[_i].leaves);
        fixture_destroy(f);

        f = path_agent();
        path_add(f, &path_peer, choices[_i].policy, 4, 1);
        fixture_configure(f);
        for (uint16_t i = 0; i < 4; i++) {
            path_set_state(f, (uint16_t) (i + 1), choices[_i].states[i]);
        }
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), choices[_i].fresh);
        fixture_destroy(f);
    }
END_TEST

/* A pin is an order: its flow stays on the path although that is bad. */
START_TEST(pinned_stays)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, PATH_SPREAD, 2, 1);

        path_pin(d, QP, 1);
        fixture_configure(f);
        f->now += IN_FLIGHT_LIFE;
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 1);
        acks(f, OWN_QPN, 10);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), 1);
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 12), 1);
        ck_assert_int_eq(path_info(f, 1).state, PATH_BAD);
        ck_assert_uint_eq(path_info(f, 1).n_flows, 1);
        fixture_destroy(f);
    }
END_TEST

/*
 * Whose answers they are (R21).
 */

/* Once an answer says whose it is, later ones are that flow's whatever others have in flight; and when the
 * flow's path fails its own queue pair hears, and no other. */
START_TEST(bound)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 1);
        acks(f, OWN_QPN, 10); /* only one flow may have it. */
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 10), 2);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 2, 10), 1);
        acks(f, OTHER, 10);
        acks(f, ANOTHER, 10);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 12), 1);
        acks(f, OWN_QPN, 11);
        /* The second flow's queue pair may be each of the two others. */
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 11), 2);
        path_set_state(f, 2, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 2);
        check_nak(f, f->frames[0].bytes[f->frames[0].h.bth_ofs + 7] == (OTHER & 0xff) ? 0 : 1,
                  OTHER, 11);
        check_nak(f, f->frames[0].bytes[f->frames[0].h.bth_ofs + 7] == (OTHER & 0xff) ? 1 : 0,
                  ANOTHER, 11);
        path_set_state(f, 2, PATH_GOOD);
        /* The first and, since it is not known, the others: once each. */
        f->now++;
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 3);
        ck_assert_uint_eq(path_info(f, 2).n_naks, 3);
        fixture_destroy(f);
    }
END_TEST

/* The last answer of each queue pair that a flow may be was long ago, or not in its window: no NAK. */
START_TEST(not_lately)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        for (unsigned i = 0; i < 3; i++) {
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + i, i < 2 ? 10 : 1000), i % 2 + 1);
        }
        acks(f, OTHER, 10);
        acks(f, ANOTHER, 1000); /* it is the third flow's. */
        acks(f, ANOTHER + 1, 5000);
        for (unsigned i = 0; i < 5; i++) {
            f->now += IN_FLIGHT_LIFE / 4;
            sends(f, RC_WRITE_ONLY, QP, 11);
        }
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_destroy(f);
    }
END_TEST

/* The binding ends with the queue pair that it is of: a request with another PSN, an answer that cannot be
 * the flow's. */
START_TEST(unbound)
    {
        for (unsigned how = 0; how < 3; how++) {
            struct fixture *f = agent(PATH_SPREAD, 2);

            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 10), 1);
            acks(f, OWN_QPN, 10);
            switch (how) {
            case 0: /* the peer's queue pair has the same number. */
                ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 0x700000), 1);
                f->now += IN_FLIGHT_LIFE;
                ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 0x700000), 1);
                acks(f, OTHER, 0x700000);
                break;
            case 1: /* the host's has. */
                ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 5000), 2);
                acks(f, OWN_QPN, 5000);
                break;
            case 2: /* another answers. */
                ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 11), 1);
                acks(f, OTHER, 11);
                break;
            }
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, how ? 12 : 0x700001), 1);
            path_set_state(f, 1, PATH_BAD);
            switch (how) {
            case 0:
                ck_assert_uint_eq(f->n_frames, 1);
                check_nak(f, 0, OTHER, 0x700001);
                break;
            case 1: ck_assert_uint_eq(f->n_frames, 0); break;
            case 2:
                ck_assert_uint_eq(f->n_frames, 1);
                check_nak(f, 0, OTHER, 12);
                break;
            }
            fixture_destroy(f);
        }
    }
END_TEST

/* What the NAK says has arrived is never more than the host has heard: a host that goes back has not
 * heard, and a late answer says less. */
START_TEST(no_more_than_heard)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        for (uint32_t psn = 10; psn < 20; psn++) {
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, psn), 1);
        }
        acks(f, OWN_QPN, 15);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 13), 1);
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 1);
        check_told(f, 0, OWN_QPN, 13, AETH_RNR_AT_ONCE);
        f->now++;
        acks(f, OWN_QPN, 18);
        acks(f, OWN_QPN, 16);
        path_set_state(f, 1, PATH_GOOD);
        path_set_state(f, 2, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 1);
        check_nak(f, 0, OWN_QPN, 17);
        fixture_destroy(f);
    }
END_TEST

/* In the midst of a READ's answer a NAK would end the queue pair: it waits for the end. */
START_TEST(in_a_read)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);
        struct roce_spec read = path_request(RC_READ_REQ, QP, 10);

        read.dma_len = 3 * 1024;
        ck_assert_uint_eq(path_taken(f, &read), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 13), 1);
        path_answer_to(f, OWN_QPN, RC_READ_RESP_FIRST, AETH_ACK_UNLIMITED, 10);
        path_set_state(f, 1, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 0);
        path_answer_to(f, OWN_QPN, RC_READ_RESP_MIDDLE, 0, 11);
        ck_assert_uint_gt(f->class->deadline(f->node), f->now);
        path_answer_to(f, OWN_QPN, RC_READ_RESP_LAST, AETH_ACK_UNLIMITED, 12);
        ck_assert_uint_eq(f->n_frames, 1); /* the answer is in front of it. */
        ck_assert_uint_le(f->class->deadline(f->node), f->now);
        fixture_timer(f);
        ck_assert_uint_eq(f->n_frames, 1);
        check_nak(f, 0, OWN_QPN, 13);
        ck_assert_uint_eq(path_info(f, 2).n_naks, 1);
        fixture_destroy(f);
    }
END_TEST

/*
 * Answers of the host.
 */

static void
answers(struct fixture *f, uint8_t opcode, uint8_t syndrome, uint32_t psn)
{
    struct roce_spec spec = path_request(opcode, QP, psn);

    spec.ack_req = false;
    spec.syndrome = syndrome;
    spec.msn = psn + 1000;
    (void) path_taken(f, &spec);
}

/* Frame 0 is this answer of the host, on path 2. */
static void
check_repeated(const struct fixture *f, uint8_t syndrome, uint32_t psn)
{
    const struct frame *frame = &f->frames[0];
    const struct ip6_hdr_wire *outer = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct ip6_hdr_wire *ip = outer + 1;
    const struct udp_hdr *udp = (const void *) (ip + 1);
    const struct bth *bth = (const void *) (udp + 1);
    const struct aeth *aeth = (const void *) (bth + 1);

    ck_assert_uint_eq(f->n_frames, 1);
    ck_assert_uint_eq(frame->port, OTHER_UPLINK);
    ck_assert_uint_eq(ip6_flow_label(outer) >> 8, 2);
    ck_assert_mem_eq(&ip->src, &star_source, 16);
    ck_assert_mem_eq(&ip->dst, &path_peer, 16);
    ck_assert_uint_eq(bth->opcode, RC_ACK);
    ck_assert_uint_eq(be24_get(bth->dest_qp), QP);
    ck_assert_uint_eq(bth_psn(bth).v, psn);
    ck_assert_uint_eq(aeth->syndrome, syndrome);
    ck_assert_uint_eq(be24_get(aeth->msn), psn + 1000);
    ck_assert(frame_icrc_ok(frame));
}

/* The host's answers in turn; the last one that counts is said again when their path fails. */
static const struct {
    struct {
        uint8_t opcode, syndrome;
        uint32_t psn;
    } said[3];
    uint8_t syndrome; /* 0: nothing is said again. */
    uint32_t psn;
} repeated[] = {
    {{{RC_ACK, 0x1f, 10}}, 0x1f, 10},
    {{{RC_ACK, 0x1f, 10}, {RC_ACK, 0x1f, 11}}, 0x1f, 11},
    {{{RC_ACK, 0x1f, 10}, {RC_ACK, 0x60, 11}}, 0x60, 11},
    /* Duplicates do not serve it, what it asks for does. */
    {{{RC_ACK, 0x60, 11}, {RC_ACK, 0x1f, 10}}, 0x60, 11},
    {{{RC_ACK, 0x60, 11}, {RC_ACK, 0x1f, 11}}, 0x1f, 11},
    {{{RC_ACK, 0x2c, 11}, {RC_ACK, 0x60, 11}}, 0x60, 11},
    {{{RC_ACK, 0x61, 11}, {RC_ACK, 0x1f, 10}}, 0x61, 11},
    /* Not in the midst of a READ's answer. */
    {{{RC_ACK, 0x1f, 10}, {RC_READ_RESP_FIRST, 0x1f, 11}}, 0, 0},
    {{{RC_ACK, 0x1f, 10}, {RC_READ_RESP_FIRST, 0x1f, 11}, {RC_READ_RESP_MIDDLE, 0, 12}}, 0, 0},
    {{{RC_ACK, 0x1f, 10}, {RC_READ_RESP_FIRST, 0x1f, 11}, {RC_READ_RESP_LAST, 0x1f, 12}}, 0x1f, 10},
    {{{RC_ACK, 0x1f, 10}, {RC_READ_RESP_ONLY, 0x1f, 11}}, 0x1f, 10},
    {{{RC_READ_RESP_ONLY, 0x1f, 11}}, 0, 0},
    {{{ROCE_CNP, 0, 0}}, 0, 0},
    {{{UD_SEND_ONLY, 0, 7}}, 0, 0},
};

START_TEST(answer_is_repeated)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        for (size_t i = 0; i < 3 && repeated[_i].said[i].opcode; i++) {
            answers(f, repeated[_i].said[i].opcode, repeated[_i].said[i].syndrome,
                    repeated[_i].said[i].psn);
        }
        path_set_state(f, 1, PATH_BAD);
        if (repeated[_i].syndrome) {
            check_repeated(f, repeated[_i].syndrome, repeated[_i].psn);
        } else {
            ck_assert_uint_eq(f->n_frames, 0);
        }
        ck_assert_uint_eq(path_info(f, 2).n_repeated, repeated[_i].syndrome != 0);
        ck_assert_uint_eq(path_info(f, 2).n_packets, repeated[_i].syndrome != 0);
        ck_assert_uint_eq(path_info(f, 2).n_moved_by[PATH_MOVE_FAILED], 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* What was said long ago may be to another queue pair now, and would confirm what that has not sent. */
START_TEST(answer_is_old)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);

        answers(f, RC_ACK, AETH_ACK_UNLIMITED, 10);
        f->now += IN_FLIGHT_LIFE;
        path_set_state(f, 1, PATH_BAD);
        check_repeated(f, AETH_ACK_UNLIMITED, 10);
        path_set_state(f, 1, PATH_GOOD);
        f->now++;
        path_set_state(f, 2, PATH_BAD);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(path_info(f, 1).n_flows, 1);
        fixture_destroy(f);
    }
END_TEST

/* There is no buffer for what has to be said: that is counted, and the flow moves all the same. */
START_TEST(pool_is_empty)
    {
        struct fixture *f = agent(PATH_SPREAD, 2);
        struct packet *taken = NULL, *p;

        ck_assert_uint_eq(sends(f, RC_ACK, QP, 10), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 10), 2);
        acks(f, OWN_QPN, 10);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 11), 2);
        while ((p = packet_get(f->pool))) {
            p->next = taken;
            taken = p;
        }
        path_set_state(f, 1, PATH_BAD);
        path_set_state(f, 1, PATH_GOOD);
        path_set_state(f, 2, PATH_BAD);
        ck_assert_uint_eq(fixture_drops(f, DROP_pool_empty), 3);
        ck_assert_uint_eq(path_info(f, 1).n_flows, 2);
        while ((p = taken)) {
            taken = p->next;
            packet_put(p);
        }
        fixture_destroy(f);
    }
END_TEST

Suite *
headend_fail_suite(void)
{
    Suite *s = suite_create("headend_fail");
    TCase *tc = tcase_create("headend_fail");

    tcase_add_test(tc, path_becomes_bad);
    tcase_add_test(tc, says_nothing);
    tcase_add_test(tc, has_gone_back);
    tcase_add_test(tc, fails_alike);
    tcase_add_test(tc, recovering_outlives);
    tcase_add_test(tc, nothing_to_say);
    tcase_add_test(tc, port_goes_down);
    tcase_add_test(tc, path_is_gone);
    tcase_add_test(tc, timers_stop);
    tcase_add_loop_test(tc, choice, 0, sizeof choices / sizeof choices[0]);
    tcase_add_test(tc, pinned_stays);
    tcase_add_test(tc, bound);
    tcase_add_test(tc, not_lately);
    tcase_add_test(tc, unbound);
    tcase_add_test(tc, no_more_than_heard);
    tcase_add_test(tc, in_a_read);
    tcase_add_loop_test(tc, answer_is_repeated, 0, sizeof repeated / sizeof repeated[0]);
    tcase_add_test(tc, answer_is_old);
    tcase_add_test(tc, pool_is_empty);
    suite_add_tcase(s, tc);
    return s;
}
