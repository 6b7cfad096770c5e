/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge as an edge that asks receivers, and whose receivers join in mid-stream, or have served an
 * earlier source (docs/draft-notes.md, R16 to R18).
 */
#include <check.h>

#include "lib/roce.h"
#include "swedge/swedge.h"
#include "tests/unit/edge-fixture.h"
#include "tests/unit/suites.h"

#define LIVENESS_MSEC 3200
#define EXPECTED      0xfffffeu /* by the queue pair of who comes late: it wraps soon. */

/* The only frame is a question to this receiver, with this PSN. */
static void
check_question(const struct fixture *f, unsigned receiver, uint32_t psn)
{
    struct in6_addr to = star_receiver(receiver);

    ck_assert_uint_eq(f->n_frames, 1);
    const struct frame *frame = &f->frames[0];
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);
    const struct reth *reth = (const void *) (frame->bytes + frame->h.ext_ofs);

    ck_assert_uint_eq(frame->port, star_port(receiver));
    ck_assert_mem_eq(&ip->src, &star_proxy, 16);
    ck_assert_mem_eq(&ip->dst, &to, 16);
    ck_assert_uint_eq(frame->h.opcode, RC_WRITE_ONLY);
    ck_assert_uint_eq(be24_get(bth->dest_qp), star_qpn(receiver));
    ck_assert_uint_eq(bth_psn(bth).v, psn);
    ck_assert_uint_eq(bth->ack_req, BTH_ACK_REQ);
    ck_assert_uint_eq(be32_get(reth->dma_len), 0);
    ck_assert(frame_icrc_ok(frame));
}

static struct reverse_branch_info
branch(const struct fixture *f, unsigned receiver)
{
    struct reverse_branch_info info;

    ck_assert(swedge_class.branch(f->node, 0, f->config.trees[0].branches[receiver].id, &info));
    return info;
}

static struct fixture *
edge(unsigned n, bool prune)
{
    struct fixture *f = fixture_create(&swedge_class, n);

    f->config.trees[0].policy.liveness_msec = LIVENESS_MSEC;
    f->config.trees[0].policy.prune = prune;
    fixture_configure(f);
    return f;
}

/* Who has nothing to say is asked, and an answer goes no further. */
START_TEST(idle_is_asked)
    {
        struct fixture *f = edge(1, false);
        struct roce_spec spec = edge_write(START);

        edge_down(f, &spec, 1);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        fixture_timer(f); /* It was heard in this tick. */
        ck_assert_uint_eq(f->n_frames, 0);
        for (unsigned i = 0; i < 100; i++) {
            fixture_timer(f);
            if (f->n_frames) {
                check_question(f, 0, START);
                edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
                ck_assert_uint_eq(f->n_frames, 0);
            }
        }
        ck_assert_int_eq(branch(f, 0).lost, LOSS_NONE);
        ck_assert_uint_gt(branch(f, 0).n_dups, 40);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Who does not answer is lost within a liveness time and a tick.  The source is told when it
 * asks. */
START_TEST(idle_is_lost)
    {
        bool prune = _i;
        struct fixture *f = edge(2, prune);
        struct roce_spec spec = edge_write(START);

        edge_down(f, &spec, 2);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        uint64_t since = f->now;
        while (!branch(f, 1).lost) {
            fixture_timer(f);
            ck_assert_uint_le(f->now - since, LIVENESS_MSEC * 1000 * 34 / 32);
            bool asked = false;
            for (size_t i = 0; i < f->n_frames; i++) {
                asked |= f->frames[i].port == star_port(0);
            }
            if (asked) {
                edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
                ck_assert_uint_eq(f->n_frames, 0);
            }
        }
        ck_assert_uint_ge(f->now - since, LIVENESS_MSEC * 1000 * 30 / 32);
        ck_assert_int_eq(branch(f, 1).lost, LOSS_UNANSWERED);
        ck_assert_int_eq(branch(f, 0).lost, LOSS_NONE);

        spec = edge_write(START + 1);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, prune ? 1 : 3);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START + 1, STAR_DQPN);
        if (prune) {
            edge_check_response(f, AETH_ACK_UNLIMITED, START + 1);
        }
        fixture_destroy(f);
    }
END_TEST

/* The last receiver comes late. */
static struct fixture *
edge_with_late(unsigned n, enum branch_join join)
{
    struct fixture *f = edge(n, true);
    struct branch_config *late = &f->config.trees[0].branches[n - 1];
    struct roce_spec spec = edge_write(START);

    f->config.trees[0].n_branches = n - 1;
    fixture_configure(f);
    edge_down(f, &spec, n - 1);
    f->config.trees[0].n_branches = n;
    late->join = join;
    late->psn = psn_make(EXPECTED);
    f->n_frames = 0;
    fixture_configure(f);
    return f;
}

/* The frame is the copy for this receiver, with this PSN and otherwise the payload of 'other'. */
static void
check_moved(const struct frame *frame, unsigned receiver, const struct frame *other, uint32_t psn)
{
    const struct bth *bth = (const void *) (frame->bytes + frame->h.bth_ofs);

    ck_assert_uint_eq(frame->port, star_port(receiver));
    ck_assert_uint_eq(be24_get(bth->dest_qp), star_qpn(receiver));
    ck_assert_uint_eq(bth_psn(bth).v, psn);
    ck_assert_uint_eq(frame->len, other->len);
    ck_assert_mem_eq(frame->bytes + frame->h.payload_ofs, other->bytes + other->h.payload_ofs,
                     (size_t) (frame->h.icrc_ofs - frame->h.payload_ofs));
    ck_assert(frame_icrc_ok(frame));
}

START_TEST(joins_at_a_message)
    {
        struct fixture *f = edge_with_late(2, BRANCH_ADMITTED);
        struct roce_spec spec = edge_write(START + 1);

        fixture_settle(f);
        check_question(f, 1, EXPECTED - 1);
        /* Not before it has answered. */
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 1);
        check_copy(&f->frames[0], 0, &spec);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, EXPECTED - 1, STAR_DQPN);
        ck_assert_uint_eq(f->n_frames, 0);
        /* Nor in the middle of a message, nor with one that comes again. */
        spec = edge_write(START + 2);
        spec.opcode = RC_SEND_MIDDLE;
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 1);
        spec = edge_write(START + 1);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert(branch(f, 1).waits);

        for (uint32_t i = 0; i < 5; i++) {
            spec = edge_write((START + 3 + i) & PSN_MASK);
            spec.opcode = i == 2 ? RC_SEND_ONLY : RC_WRITE_ONLY;
            edge_down(f, &spec, 2);
            ck_assert_uint_eq(f->n_frames, 2);
            check_copy(&f->frames[0], 0, &spec);
            check_moved(&f->frames[1], 1, &f->frames[0], (EXPECTED + i) & PSN_MASK);
        }
        ck_assert(branch(f, 1).late);
        ck_assert_uint_eq(branch(f, 1).first.v, (START + 3) & PSN_MASK);

        /* It counts, in the epoch's numbers. */
        edge_respond(f, 0, AETH_ACK_UNLIMITED, (START + 7) & PSN_MASK, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, (START + 2) & PSN_MASK);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, (EXPECTED + 3) & PSN_MASK, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, (START + 6) & PSN_MASK);
        edge_respond(f, 1, AETH_NAK_PSN_SEQ, (EXPECTED + 4) & PSN_MASK, STAR_DQPN);
        edge_check_response(f, AETH_NAK_PSN_SEQ, (START + 7) & PSN_MASK);
        /* What is below its first PSN is not sent to it. */
        spec = edge_write((START + 2) & PSN_MASK);
        edge_down(f, &spec, 2);
        for (size_t i = 0; i < f->n_frames; i++) {
            ck_assert_uint_ne(f->frames[i].port, star_port(1));
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Its queue pair is where it was not said to be; or it refuses. */
START_TEST(is_elsewhere)
    {
        static const struct {
            uint8_t syndrome;
            uint32_t psn;
        } answers[] = {
            {AETH_ACK_UNLIMITED, EXPECTED},
            {AETH_ACK_UNLIMITED, EXPECTED - 2},
            {AETH_NAK_PSN_SEQ, EXPECTED + 1},
            {AETH_NAK_REM_OP, EXPECTED},
        };
        struct fixture *f = edge_with_late(2, BRANCH_ADMITTED);
        struct roce_spec spec = edge_write(START + 1);

        edge_respond(f, 1, answers[_i].syndrome, answers[_i].psn, STAR_DQPN);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_int_eq(branch(f, 1).lost, LOSS_ELSEWHERE);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 1);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START + 1, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START + 1);
        fixture_destroy(f);
    }
END_TEST

/* One that may not be admitted is not asked; nor does a packet admit whose ICRC is wrong. */
START_TEST(is_not_admitted)
    {
        struct fixture *f = edge_with_late(2, _i ? BRANCH_ADMITTED : BRANCH_WAITS);
        struct roce_spec spec = edge_write(START + 1);
        uint8_t bytes[PACKET_ROOM];

        fixture_settle(f);
        ck_assert_uint_eq(f->n_frames, (unsigned) _i);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, EXPECTED - 1, STAR_DQPN);
        size_t len = edge_encapsulated(bytes, &spec, 2);
        bytes[len - 1] ^= 1;
        fixture_input(f, 1, bytes, len);
        ck_assert_uint_eq(f->n_frames, _i ? 0 : 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_icrc), (unsigned) _i);
        ck_assert(branch(f, 1).waits);
        fixture_destroy(f);
    }
END_TEST

/* A receiver that is ready is asked on, and is not admitted once it is dead; with or without a
 * liveness time. */
START_TEST(dies_while_it_waits)
    {
        struct fixture *f = edge_with_late(2, BRANCH_ADMITTED);
        struct roce_spec spec = edge_write(START + 1);
        unsigned n_asked = 0;

        f->config.trees[0].policy.liveness_msec = _i ? 0 : LIVENESS_MSEC;
        fixture_configure(f);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_respond(f, 1, AETH_ACK_UNLIMITED, EXPECTED - 1, STAR_DQPN);
        ck_assert(branch(f, 1).waits);
        for (unsigned i = 0; i < 200 && !branch(f, 1).lost; i++) {
            fixture_timer(f);
            for (size_t k = 0; k < f->n_frames; k++) {
                n_asked += f->frames[k].port == star_port(1);
            }
            edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        }
        ck_assert_uint_ge(n_asked, 31);
        ck_assert_int_eq(branch(f, 1).lost, LOSS_UNANSWERED);
        ck_assert_int_eq(branch(f, 0).lost, LOSS_NONE);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert(branch(f, 1).waits);
        fixture_destroy(f);
    }
END_TEST

/* When the last that counts has left, the edge confirms what the source repeats, until the newcomer
 * has its message; but nothing whose ICRC is wrong. */
START_TEST(only_one_waits)
    {
        struct fixture *f = edge_with_late(2, BRANCH_ADMITTED);
        struct tree_config *t = &f->config.trees[0];
        struct roce_spec spec = edge_write(START);
        uint8_t bytes[PACKET_ROOM];

        edge_respond(f, 1, AETH_ACK_UNLIMITED, EXPECTED - 1, STAR_DQPN);
        t->branches[0] = t->branches[1];
        t->n_branches = 1;
        fixture_configure(f);
        fixture_settle(f);
        struct roce_spec spoilt = edge_write(START + 1000);
        size_t len = edge_encapsulated(bytes, &spoilt, 2);
        bytes[len - 1] ^= 1;
        fixture_input(f, 1, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_icrc), 1);
        edge_down(f, &spec, 2);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        spec = edge_write(START + 1);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, star_port(1));
        edge_respond(f, 1, AETH_ACK_UNLIMITED, EXPECTED, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START + 1);
        fixture_destroy(f);
    }
END_TEST

/* A message of one packet goes down: is there a copy for receiver 1? */
static bool
admits(struct fixture *f, uint32_t psn)
{
    struct roce_spec spec = edge_write(psn);
    bool found = false;

    edge_down(f, &spec, 2);
    for (size_t i = 0; i < f->n_frames; i++) {
        found |= f->frames[i].port == star_port(1);
    }
    return found;
}

/* The edge was started again, as one that answers to a node (0) or to the source (1), when its only
 * receiver waited.  What passed in its earlier life it has confirmed: so that receiver can join
 * when nobody repeats that any more, which the root finds out, or in another tree. */
START_TEST(started_again_when_one_waits)
    {
        bool root = _i;
        struct fixture *f = fixture_create(&swedge_class, 2);
        struct tree_config *t = &f->config.trees[0];
        struct tree_info info;

        t->branches[0] = t->branches[1];
        t->branches[0].join = BRANCH_ADMITTED;
        t->branches[0].psn = psn_make(EXPECTED);
        t->n_branches = 1;
        t->policy.liveness_msec = LIVENESS_MSEC;
        t->row++; /* not the fixture's. */
        t->restarted = true;
        t->root = root;
        fixture_configure(f);
        fixture_settle(f);
        swedge_class.tree(f->node, 0, &info);
        ck_assert_int_eq(info.reverse.blank, !root);

        ck_assert(!admits(f, START + 7));
        edge_respond(f, 1, AETH_ACK_UNLIMITED, EXPECTED - 1, STAR_DQPN);
        f->now += 2 * REVERSE_LIFETIME_USEC - 1;
        ck_assert(!admits(f, START + 8));
        f->now++;
        ck_assert(!admits(f, START + 7));
        ck_assert_int_eq(admits(f, START + 9), root);
        swedge_class.tree(f->node, 0, &info);
        ck_assert_int_eq(info.reverse.blank, !root);
        ck_assert_int_eq(branch(f, 0).waits, !root);

        t->row++;
        t->restarted = false;
        fixture_configure(f);
        fixture_settle(f);
        swedge_class.tree(f->node, 0, &info);
        ck_assert(!info.reverse.blank);
        ck_assert(!admits(f, START + 10));
        edge_respond(f, 1, AETH_ACK_UNLIMITED, EXPECTED - 1, STAR_DQPN);
        ck_assert(admits(f, START + 11));
        fixture_destroy(f);
    }
END_TEST

/* Somebody wants to know at once whether receiver 1 lives; it lacks nothing (0), or something
 * (1). */
START_TEST(is_doubted)
    {
        bool lacks = _i;
        struct fixture *f = edge(2, true);
        struct branch_config *doubted = &f->config.trees[0].branches[1];
        struct roce_spec spec = edge_write(START);
        unsigned n_asked = 0;

        edge_down(f, &spec, 2);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        if (!lacks) {
            edge_respond(f, 1, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        }
        uint64_t since = f->now;
        for (uint32_t n = 1; n <= 2; n++) {
            doubted->doubt = n;
            fixture_configure(f);
            fixture_configure(f); /* It is asked once. */
            ck_assert(branch(f, 1).doubted);
            fixture_timer(f);
            check_question(f, 1, lacks ? START - 1 : START);
            if (n == 1) {
                edge_respond(f, 1, AETH_ACK_UNLIMITED, lacks ? START - 1 : START, STAR_DQPN);
                ck_assert(!branch(f, 1).doubted && !branch(f, 1).unanswered);
            }
        }
        while (branch(f, 1).doubted) {
            fixture_timer(f);
            for (size_t i = 0; i < f->n_frames; i++) {
                n_asked += f->frames[i].port == star_port(1);
            }
            ck_assert_uint_lt(f->now - since, 1000000);
        }
        ck_assert_uint_ge(n_asked, 7);
        ck_assert_int_eq(branch(f, 1).lost, lacks ? LOSS_UNANSWERED : LOSS_NONE);
        ck_assert_int_eq(branch(f, 1).unanswered, !lacks);
        fixture_destroy(f);
    }
END_TEST

/* An edge that was started again, and that nothing has come to since; receiver 1 is doubted. */
static struct fixture *
edge_that_doubts(void)
{
    struct fixture *f = fixture_create(&swedge_class, 2);

    f->config.trees[0].policy.prune = true; /* and no liveness time. */
    f->config.trees[0].started = true;
    f->config.n_trees = 0;
    fixture_configure(f);
    f->config.n_trees = 1;
    fixture_configure(f);
    f->config.trees[0].branches[1].doubt = 1;
    fixture_configure(f);
    return f;
}

/* What such an edge asks in turn: one of the two is behind what any queue pair expects. */
static uint32_t
blind_psn(unsigned i)
{
    return (i % 2 ? START - (1u << 22) : START + (1u << 22)) & PSN_MASK;
}

/* Until the next question, which has this PSN. */
static void
await_question(struct fixture *f, uint32_t psn)
{
    do {
        fixture_timer(f);
    } while (!f->n_frames);
    check_question(f, 1, psn);
}

/* It is decided while nothing is sent: any answer will do (0..2), and none (3) ends in the 'silent'
 * of who lacks nothing.  Not so one that may have executed a question (4..6). */
START_TEST(is_doubted_after_restart)
    {
        const struct {
            uint8_t syndrome;
            uint32_t psn;
            uint32_t msn;
            bool answers;
            enum reverse_loss lost;
        } cases[] = {
            {AETH_ACK_UNLIMITED, START + 99, 7, true, LOSS_NONE},
            {AETH_NAK_PSN_SEQ, START + 99, 7, true, LOSS_NONE},
            {AETH_ACK_UNLIMITED, PSN_MASK, 0, true, LOSS_NONE},
            {.answers = false},
            {AETH_ACK_UNLIMITED, blind_psn(1), 7, true, LOSS_ELSEWHERE},
            {AETH_NAK_PSN_SEQ, blind_psn(0) + 1, 7, true, LOSS_ELSEWHERE},
            {AETH_NAK_PSN_SEQ, blind_psn(0), 7, true, LOSS_ELSEWHERE},
        };
        struct fixture *f = edge_that_doubts();
        uint64_t since = f->now;

        for (unsigned i = 1; i <= (cases[_i].answers ? 2 : 8); i++) {
            await_question(f, blind_psn(i));
        }
        ck_assert_uint_ge(f->now - since, REVERSE_LIFETIME_USEC);
        if (cases[_i].answers) {
            edge_respond_msn(f, 1, cases[_i].syndrome, cases[_i].psn & PSN_MASK, cases[_i].msn,
                             STAR_DQPN);
        } else {
            fixture_timer(f);
        }
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert(!branch(f, 1).doubted);
        ck_assert_int_eq(branch(f, 1).unanswered, !cases[_i].answers);
        ck_assert_int_eq(branch(f, 1).lost, cases[_i].lost);
        ck_assert_uint_lt(f->now - since, 2 * REVERSE_LIFETIME_USEC);
        fixture_destroy(f);
    }
END_TEST

/* The source sends before that is decided: what is sent may be what it has executed (0), or not
 * (1), and then it is asked with what it has.  What it lacks is not known, so it is not lost. */
START_TEST(is_doubted_when_the_source_goes_on)
    {
        bool near = !_i;
        uint32_t psn = (blind_psn(1) + (near ? 1000 : 3 << 20)) & PSN_MASK;
        struct roce_spec spec = edge_write(psn);
        struct fixture *f = edge_that_doubts();

        await_question(f, blind_psn(1));
        edge_down(f, &spec, 2);
        ck_assert_int_eq(branch(f, 1).lost, near ? LOSS_UNANSWERED : LOSS_NONE);
        ck_assert_uint_eq(f->n_frames, near ? 1 : 2);
        for (unsigned i = 0; !near && i < 7; i++) {
            await_question(f, (psn - (1 << 22) - 1) & PSN_MASK);
        }
        fixture_timer(f);
        ck_assert_int_eq(branch(f, 1).lost, near ? LOSS_UNANSWERED : LOSS_NONE);
        ck_assert_int_eq(branch(f, 1).unanswered, !near);
        fixture_destroy(f);
    }
END_TEST

#define EARLIER_QPN 0x77u /* Designated QPN of an earlier epoch. */

/* An edge that takes over receiver 1, whose queue pair was connected in an earlier epoch. */
static struct fixture *
edge_that_takes_over(void)
{
    struct fixture *f = edge(2, true);
    struct branch_config *b = &f->config.trees[0].branches[1];

    f->config.trees[0].policy.liveness_msec = 0; /* nobody else is asked. */
    f->config.trees[0].n_branches = 1;
    fixture_configure(f);
    f->config.trees[0].n_branches = 2;
    b->join = BRANCH_ASKED;
    b->psn = psn_make(EXPECTED);
    b->designated_qpn = EARLIER_QPN;
    fixture_configure(f);
    fixture_timer(f);
    check_question(f, 1, EXPECTED - 1);
    edge_respond_msn(f, 1, AETH_ACK_UNLIMITED, EXPECTED + 3, 7, EARLIER_QPN);
    fixture_timer(f);
    check_question(f, 1, (EXPECTED + 4) & PSN_MASK);
    return f;
}

START_TEST(takes_over)
    {
        struct fixture *f = edge_that_takes_over();
        struct branch_config *b = &f->config.trees[0].branches[1];
        struct roce_spec spec = edge_write(START);
        struct tree_info info;

        /* Nothing is copied to it before, and nobody else may speak for that QPN. */
        ck_assert(!branch(f, 1).found);
        edge_respond_msn(f, 0, AETH_ACK_UNLIMITED, START, 8, EARLIER_QPN);
        edge_respond_msn(f, 1, AETH_ACK_UNLIMITED, EXPECTED + 4, 8, STAR_DQPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 2);
        ck_assert(!branch(f, 1).found);
        edge_respond_msn(f, 1, AETH_ACK_UNLIMITED, (EXPECTED + 4) & PSN_MASK, 8, EARLIER_QPN);
        swedge_class.tree(f->node, 0, &info);
        ck_assert_uint_eq(info.reverse.n_decided, 1);
        ck_assert(branch(f, 1).found);
        ck_assert_uint_eq(branch(f, 1).una.v, (EXPECTED + 5) & PSN_MASK);
        fixture_timer(f);
        ck_assert_uint_eq(f->n_frames, 0);

        b->join = BRANCH_COUNTS;
        b->psn = branch(f, 1).una;
        b->late = true;
        b->first = psn_make(START);
        fixture_configure(f);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 2);
        check_copy(&f->frames[0], 0, &spec);
        check_moved(&f->frames[1], 1, &f->frames[0], (EXPECTED + 5) & PSN_MASK);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        ck_assert_uint_eq(f->n_frames, 0);
        edge_respond_msn(f, 1, AETH_ACK_UNLIMITED, (EXPECTED + 5) & PSN_MASK, 9, EARLIER_QPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

START_TEST(has_half_a_message)
    {
        struct fixture *f = edge_that_takes_over();
        struct roce_spec spec = edge_write(START);

        edge_respond_msn(f, 1, AETH_NAK_INVALID_REQ, (EXPECTED + 4) & PSN_MASK, 7, EARLIER_QPN);
        ck_assert_int_eq(branch(f, 1).lost, LOSS_HALF);
        edge_down(f, &spec, 2);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_not_provisioned), 1);
        edge_respond(f, 0, AETH_ACK_UNLIMITED, START, STAR_DQPN);
        edge_check_response(f, AETH_ACK_UNLIMITED, START);
        fixture_destroy(f);
    }
END_TEST

Suite *
join_suite(void)
{
    Suite *s = suite_create("join");
    TCase *tc = tcase_create("edge");

    tcase_add_test(tc, idle_is_asked);
    tcase_add_loop_test(tc, idle_is_lost, 0, 2);
    tcase_add_test(tc, joins_at_a_message);
    tcase_add_loop_test(tc, is_elsewhere, 0, 4);
    tcase_add_loop_test(tc, is_not_admitted, 0, 2);
    tcase_add_loop_test(tc, dies_while_it_waits, 0, 2);
    tcase_add_test(tc, only_one_waits);
    tcase_add_loop_test(tc, started_again_when_one_waits, 0, 2);
    tcase_add_loop_test(tc, is_doubted, 0, 2);
    tcase_add_loop_test(tc, is_doubted_after_restart, 0, 7);
    tcase_add_loop_test(tc, is_doubted_when_the_source_goes_on, 0, 2);
    tcase_add_test(tc, takes_over);
    tcase_add_test(tc, has_half_a_message);
    suite_add_tcase(s, tc);
    return s;
}
