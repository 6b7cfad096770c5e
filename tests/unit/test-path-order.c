/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether packets overtake one another where a headend places them (docs/draft-notes.md, R20).
 *
 * Queue pairs of the agent's host send messages to one peer, over two paths whose delays differ; each
 * path keeps its packets in order.  The peer answers as RC does, by a way of its own.  Packets and
 * answers get lost, and requests are sent again, also without need.  A request is overtaken if a
 * higher one of its queue pair, sent later, arrives before it, and the peer still needs it.
 */
#include <check.h>
#include <string.h>

#include "lib/in-flight.h"
#include "lib/prng.h"
#include "lib/roce.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/suites.h"

#define N_PATHS 2
#define MAX_QPS 4
#define N_WORLDS \
    BY_CHANCE(300) /* so many show that answers of one queue pair are not taken for another's. */
#define N_FEW      40
#define N_REQUESTS 60 /* of a queue pair. */
#define WINDOW     16
#define MAX_EVENTS 4096
#define MTU        1024
#define TIMEOUT    20000
#define FIRST_QPN  0x20
#define NUMBER     7 /* of the first path. */

/* One packet of a message, or a READ. */
struct request {
    uint8_t opcode;
    psn_t psn;
    int32_t n_psns;
    bool ack_req;
};

struct qp {
    struct request requests[N_REQUESTS]; /* all that there will be. */
    unsigned next;                       /* to be sent, for the first time or again. */
    unsigned n_sent;                     /* of them, at least once. */
    unsigned n_confirmed;
    uint64_t progress_at;
    bool pauses; /* the next message begins when everything is confirmed. */
    /* The peer. */
    psn_t expected;
    bool said_nak;
};

enum kind { TICK, ARRIVES, ANSWERS };

struct event {
    enum kind kind;
    uint64_t at;
    uint64_t sent; /* counts what is put in. */
    unsigned qp;
    struct request request; /* ARRIVES; ANSWERS: opcode and PSN. */
    uint8_t syndrome;
};

static struct world {
    struct fixture *f;
    uint64_t random;
    unsigned n_qps;
    struct qp qps[MAX_QPS];
    uint64_t delay[N_PATHS], last[N_PATHS]; /* of a path; when its last packet arrives. */
    uint64_t answer_delay, last_answer;
    unsigned loss; /* of so many packets one is lost; 0: none. */
    bool forges;   /* answers that nobody gave confirm each request at once. */
    size_t n_events;
    struct event events[MAX_EVENTS];
    uint64_t n_put;
    unsigned n_overtaken;
    unsigned n_placed[N_PATHS];
} w;

static uint32_t
below(uint32_t limit)
{
    return (uint32_t) prng_below(&w.random, limit);
}

static void
put(struct event e)
{
    ck_assert_uint_lt(w.n_events, MAX_EVENTS);
    e.sent = w.n_put++;
    w.events[w.n_events++] = e;
}

static struct event
get(void)
{
    size_t first = 0;

    for (size_t i = 1; i < w.n_events; i++) {
        const struct event *a = &w.events[i], *b = &w.events[first];

        if (a->at < b->at || (a->at == b->at && a->sent < b->sent)) {
            first = i;
        }
    }
    struct event e = w.events[first];
    w.events[first] = w.events[--w.n_events];
    return e;
}

/* Nothing overtakes on one way. */
static uint64_t
arrival(uint64_t *last, uint64_t delay)
{
    uint64_t at = w.f->now + delay + below(20);

    *last = at > *last ? at : *last + 1;
    return *last;
}

/*
 * The host.
 */

static void
make_requests(struct qp *qp, psn_t psn)
{
    unsigned left = 0, len = 0;

    *qp = (struct qp){.expected = psn, .pauses = true, .progress_at = w.f->now};
    for (unsigned i = 0; i < N_REQUESTS; i++) {
        struct request *r = &qp->requests[i];

        if (!left) {
            left = len = 1 + below(12);
        }
        *r = (struct request){RC_WRITE_MIDDLE, psn, 1, below(4) == 0};
        if (left == len && below(6) == 0) {
            left = 1;
            r->opcode = RC_READ_REQ;
            r->n_psns = 1 + (int32_t) below(6);
        } else if (len == 1) {
            r->opcode = below(2) ? RC_SEND_ONLY : RC_WRITE_ONLY;
        } else if (left == len) {
            r->opcode = RC_WRITE_FIRST;
        } else if (left == 1) {
            r->opcode = RC_WRITE_LAST;
        }
        left--;
        r->ack_req |= !left || i == N_REQUESTS - 1;
        psn = psn_add(psn, r->n_psns);
    }
}

static void
send_request(unsigned i, const struct request *r)
{
    struct roce_spec spec = path_request(r->opcode, FIRST_QPN + i, r->psn.v);

    spec.ack_req = r->ack_req;
    spec.dma_len = (uint32_t) r->n_psns * MTU;
    unsigned path = path_taken(w.f, &spec) - NUMBER;
    ck_assert_uint_lt(path, N_PATHS);
    w.n_placed[path]++;
    if (!w.loss || below(w.loss)) {
        put((struct event){
            .kind = ARRIVES, .at = arrival(&w.last[path], w.delay[path]), .qp = i, .request = *r});
    }
    if (w.forges) {
        path_answer(w.f, RC_ACK, AETH_ACK_UNLIMITED, r->psn.v);
    }
}

static bool
starts_message(const struct request *r)
{
    return roce_opcode_info(r->opcode)->flags & ROCE_F_START;
}

static void
tick(unsigned i)
{
    struct qp *qp = &w.qps[i];

    if (qp->n_confirmed == N_REQUESTS) {
        return;
    }
    if ((w.f->now - qp->progress_at > TIMEOUT && qp->next == qp->n_sent) || below(150) == 0) {
        qp->next = qp->n_confirmed;
        qp->progress_at = w.f->now;
    }
    bool is_new = qp->next == qp->n_sent;
    const struct request *r = qp->next < N_REQUESTS ? &qp->requests[qp->next] : NULL;
    bool waits = is_new
                 && (qp->n_sent - qp->n_confirmed >= WINDOW
                     || (r && starts_message(r) && qp->pauses && qp->n_confirmed < qp->n_sent));
    if (r && !waits) {
        send_request(i, r);
        qp->next++;
        if (is_new) {
            qp->n_sent++;
            qp->pauses = below(2);
        }
    }
    put((struct event){.kind = TICK, .at = w.f->now + 1 + below(below(8) ? 30 : 1000), .qp = i});
}

/* The host hears: an ACK, a NAK, or the last response to a READ. */
static void
hears(unsigned i, uint8_t opcode, psn_t psn, uint8_t syndrome)
{
    struct qp *qp = &w.qps[i];
    bool nak = opcode == RC_ACK && syndrome != AETH_ACK_UNLIMITED;
    psn_t una = psn_add(psn, nak ? 0 : 1);

    while (qp->n_confirmed < qp->n_sent) {
        const struct request *r = &qp->requests[qp->n_confirmed];

        if (psn_cmp(psn_add(r->psn, r->n_psns), una) > 0
            || (r->opcode == RC_READ_REQ && opcode == RC_ACK)) {
            break;
        }
        qp->n_confirmed++;
        qp->progress_at = w.f->now;
    }
    if (qp->next < qp->n_confirmed || nak) {
        qp->next = qp->n_confirmed;
    }
}

/*
 * The peer.
 */

static void
answer(unsigned i, uint8_t opcode, psn_t psn, uint8_t syndrome)
{
    if (!w.loss || below(w.loss)) {
        put((struct event){.kind = ANSWERS,
                           .at = arrival(&w.last_answer, w.answer_delay),
                           .qp = i,
                           .request = {.opcode = opcode, .psn = psn},
                           .syndrome = syndrome});
    }
}

static void
answer_read(unsigned i, const struct request *r)
{
    for (int32_t j = 0; j < r->n_psns; j++) {
        uint8_t opcode = r->n_psns == 1      ? RC_READ_RESP_ONLY
                         : !j                ? RC_READ_RESP_FIRST
                         : j < r->n_psns - 1 ? RC_READ_RESP_MIDDLE
                                             : RC_READ_RESP_LAST;
        answer(i, opcode, psn_add(r->psn, j), AETH_ACK_UNLIMITED);
    }
}

static void
arrives(const struct event *e)
{
    struct qp *qp = &w.qps[e->qp];
    const struct request *r = &e->request;

    for (size_t i = 0; i < w.n_events; i++) {
        const struct event *other = &w.events[i];

        w.n_overtaken += other->kind == ARRIVES && other->qp == e->qp && other->sent < e->sent
                         && psn_cmp(other->request.psn, r->psn) < 0
                         && psn_cmp(other->request.psn, qp->expected) >= 0;
    }
    int32_t ahead = psn_cmp(r->psn, qp->expected);
    if (ahead > 0) {
        if (!qp->said_nak) {
            answer(e->qp, RC_ACK, qp->expected, AETH_NAK_PSN_SEQ);
        }
        qp->said_nak = true;
        return;
    }
    if (!ahead) {
        qp->expected = psn_add(qp->expected, r->n_psns);
        qp->said_nak = false;
    }
    if (r->opcode == RC_READ_REQ) {
        answer_read(e->qp, r);
    } else if (r->ack_req) {
        answer(e->qp, RC_ACK, psn_add(qp->expected, -1), AETH_ACK_UNLIMITED);
    }
}

/* Runs one world until all requests are confirmed. */
static void
run(enum path_policy policy, uint64_t seed, bool forges)
{
    memset(&w, 0, sizeof w);
    w.random = seed;
    w.forges = forges;
    w.f = path_agent();
    path_add(w.f, &path_peer, policy, N_PATHS, NUMBER);
    fixture_configure(w.f);
    w.f->now += IN_FLIGHT_LIFE;
    w.n_qps = 1 + below(MAX_QPS);
    w.loss = below(2) ? 0 : 20 + below(100);
    w.answer_delay = 10 + below(500);
    for (unsigned i = 0; i < N_PATHS; i++) {
        w.delay[i] = 10 + below(1000);
    }
    uint32_t base = below(PSN_MASK + 1);
    uint32_t apart = below(3) ? 1 << 20 : 1 + below(3);
    for (unsigned i = 0; i < w.n_qps; i++) {
        make_requests(&w.qps[i], psn_make(base + below(apart)));
        put((struct event){.kind = TICK, .at = w.f->now + below(100), .qp = i});
    }
    while (w.n_events) {
        struct event e = get();

        w.f->now = e.at;
        switch (e.kind) {
        case TICK: tick(e.qp); break;
        case ARRIVES: arrives(&e); break;
        case ANSWERS:
            path_answer(w.f, e.request.opcode, e.syndrome, e.request.psn.v);
            hears(e.qp, e.request.opcode, e.request.psn, e.syndrome);
            break;
        }
    }
    for (unsigned i = 0; i < w.n_qps; i++) {
        ck_assert_uint_eq(w.qps[i].n_confirmed, N_REQUESTS);
    }
    ck_assert_uint_eq(fixture_total_drops(w.f), 0);
}

/* Over many worlds: how many requests were overtaken, and in how many worlds both paths were used. */
static void
run_all(enum path_policy policy, bool forges, unsigned n_worlds, unsigned *n_overtaken,
        unsigned *n_mixed)
{
    *n_overtaken = *n_mixed = 0;
    for (uint64_t seed = 1; seed <= n_worlds; seed++) {
        run(policy, seed, forges);
        if (policy == PATH_MESSAGE && !forges) {
            ck_assert_msg(!w.n_overtaken, "seed %u: %u overtaken", (unsigned) seed, w.n_overtaken);
        }
        *n_overtaken += w.n_overtaken;
        *n_mixed += w.n_placed[0] > 5 && w.n_placed[1] > 5;
        fixture_destroy(w.f);
    }
}

/* A flow that moves when nothing of it is in flight overtakes nothing, and does move. */
START_TEST(message_keeps_order)
    {
        unsigned n_overtaken, n_mixed;

        run_all(PATH_MESSAGE, false, N_WORLDS, &n_overtaken, &n_mixed);
        ck_assert_uint_gt(n_mixed, N_WORLDS / 2);
    }
END_TEST

/* The harness would see it: a headend that moves at each message's begin, whatever is in flight,
 * since it believes that everything is confirmed as soon as it is sent. */
START_TEST(not_waiting_is_found)
    {
        unsigned n_overtaken, n_mixed;

        run_all(PATH_MESSAGE, true, N_FEW, &n_overtaken, &n_mixed);
        ck_assert_uint_gt(n_overtaken, 100);
    }
END_TEST

/* One path after the other: packets overtake. */
START_TEST(spray_does_not)
    {
        unsigned n_overtaken, n_mixed;

        run_all(PATH_SPRAY, false, N_FEW, &n_overtaken, &n_mixed);
        ck_assert_uint_gt(n_overtaken, 1000);
    }
END_TEST

/* A queue pair stays where it is: nothing overtakes. */
START_TEST(spread_keeps_order)
    {
        unsigned n_overtaken, n_mixed;

        run_all(PATH_SPREAD, false, N_FEW, &n_overtaken, &n_mixed);
        ck_assert_uint_eq(n_overtaken, 0);
        ck_assert_uint_gt(n_mixed, N_FEW / 4); /* several queue pairs. */
    }
END_TEST

Suite *
path_order_suite(void)
{
    Suite *s = suite_create("path_order");
    TCase *tc = tcase_create("path_order");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, message_keeps_order);
    tcase_add_test(tc, not_waiting_is_found);
    tcase_add_test(tc, spray_does_not);
    tcase_add_test(tc, spread_keeps_order);
    suite_add_tcase(s, tc);
    return s;
}
