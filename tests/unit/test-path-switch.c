/* SPDX-License-Identifier: Apache-2.0
 *
 * Queue pairs whose paths come and go (docs/draft-notes.md, R21, R23).
 *
 * Between a host and one peer there are several queue pairs, endpoints as rxe has them, which write in
 * one direction or the other.  What the host sends, requests and answers, goes through the headend and
 * one of two paths of different delay; what the peer sends comes by a way of its own.
 *
 *   - A path becomes a black hole, and some time later a probe says so.
 *   - The operator denies a path, and thinks again.
 *   - The headend starts again; a queue pair ends, and another one has its number at the peer.
 *
 * In the end everything must be written, no completion may come before its message has, and what it
 * takes is counted: packets sent, time-outs, NAKs.  Mistakes that are made on purpose must be seen.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/icrc.h"
#include "lib/in-flight.h"
#include "lib/prng.h"
#include "lib/roce.h"
#include "tests/model/rc-endpoint.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/suites.h"

#define N_PATHS    2
#define MAX_QPS    4
#define N_WORLDS   BY_CHANCE(300)
#define N_FEW      40
#define N_MESSAGES 60 /* of a queue pair. */
#define MAX_LEN    20 /* packets of a message. */
#define MTU        256
#define TIMEOUT    200000
#define LINK       5 /* between host and agent, microseconds. */
#define PEER_QPN   0x20
#define RKEY       7
#define REGION     (MAX_LEN * MTU)

/* What happens in a world, besides traffic. */
enum trouble {
    HOLES, /* paths lose everything, and are said to be bad when nothing of what was sent before is left. */
    DENIALS, /* the operator denies paths. */
    ALARMS,  /* paths are said to be bad that are not. */
    LIFE,    /* all that, losses, restarts and queue pairs that are replaced. */
};

/* Made on purpose. */
enum mistake {
    NO_MISTAKE,
    NAK_LOST,    /* no NAK is made. */
    NAK_LOW,     /* it says less than what is confirmed, */
    NAK_HIGH,    /* or more. */
    NAK_OTHER,   /* it goes to a queue pair that is not the flow's any more. */
    REPEAT_LOST, /* answers are not said again. */
    HOLD_EARLY,  /* requests wait for one that nobody acknowledges. */
};

struct packet_at {
    struct packet_at *next;
    uint64_t at;
    enum { TO_AGENT_FROM_HOST, TO_AGENT, TO_HOST, TO_PEER } where;
    size_t len;
    uint8_t ip[];
};

struct qp {
    struct rc_endpoint *ours, *theirs;
    bool by_peer; /* who writes. */
    uint32_t own_qpn;
    unsigned n_posted, n_done, n_failed;
    uint64_t n_packets; /* of all that was posted. */
    uint64_t post_at;
};

static struct world {
    struct fixture *f;
    uint64_t random;
    enum trouble trouble;
    enum mistake mistake;
    unsigned n_qps;
    struct qp qps[MAX_QPS];
    struct packet_at *packets; /* by time. */
    uint64_t delay[N_PATHS], last_at_peer[N_PATHS], back, last_back, last_to_host;
    bool hole[N_PATHS];
    unsigned loss; /* of so many packets one is lost; 0: none. */
    uint64_t trouble_at;
    unsigned trouble_path, trouble_step, n_troubles;
    enum trouble what;
    bool restarted;
    unsigned n_early;  /* completions before the message was there. */
    unsigned n_made;   /* NAKs that the headend made, */
    unsigned n_strays; /* and those of them for no queue pair. */
} w;

static uint8_t data[REGION], region[REGION];

static uint32_t
below(uint32_t limit)
{
    return (uint32_t) prng_below(&w.random, limit);
}

static void
put(int where, uint64_t at, const uint8_t *ip, size_t len)
{
    struct packet_at *p = must_calloc(1, sizeof *p + len), **rest = &w.packets;

    p->where = where;
    p->at = at;
    p->len = len;
    memcpy(p->ip, ip, len);
    while (*rest && (*rest)->at <= at) {
        rest = &(*rest)->next;
    }
    p->next = *rest;
    *rest = p;
}

/* Nothing overtakes on one way. */
static uint64_t
arrival(uint64_t *last, uint64_t delay)
{
    uint64_t at = w.f->now + delay;

    *last = at > *last ? at : *last;
    return *last;
}

static bool
is_lost(void)
{
    return w.loss && !below(w.loss);
}

/*
 * Endpoints.
 */

static struct bth *
bth_at(uint8_t *ip)
{
    return (struct bth *) (ip + IP6_HDR_LEN + sizeof(struct udp_hdr));
}

static void
host_sends(void *qp, const uint8_t *ip, size_t len)
{
    (void) qp;
    put(TO_AGENT_FROM_HOST, w.f->now + LINK, ip, len);
}

static void
peer_sends(void *qp, const uint8_t *ip, size_t len)
{
    (void) qp;
    if (!is_lost()) {
        put(TO_AGENT, arrival(&w.last_back, w.back), ip, len);
    }
}

static void
completes(void *qp_, uint64_t id, enum rc_status status)
{
    struct qp *qp = qp_;
    struct rc_info other;

    rc_get_info(qp->by_peer ? qp->ours : qp->theirs, &other);
    qp->n_done++;
    qp->n_failed += status != RC_WC_SUCCESS;
    w.n_early += other.msn <= id;
}

static void
qp_create(struct qp *qp, unsigned i, uint32_t own_qpn, psn_t start)
{
    struct rc_config c = {
        .own = star_source,
        .peer = path_peer,
        .qpn = own_qpn,
        .dest_qpn = PEER_QPN + i,
        .start_psn = start,
        .mtu = MTU,
        .timeout_usec = TIMEOUT,
        .retry_cnt = RC_RETRY_FOREVER,
        .rnr_retry = RC_RETRY_FOREVER,
        .gap_usec = 2 + below(w.trouble == DENIALS ? 150 : 10), /* messages are cut in two. */
        .region = region,
        .region_len = sizeof region,
        .rkey = RKEY,
    };

    qp->own_qpn = own_qpn;
    qp->ours = rc_create(&c, &(struct rc_ops){host_sends, completes, qp});
    c.own = path_peer;
    c.peer = star_source;
    c.qpn = PEER_QPN + i;
    c.dest_qpn = own_qpn;
    qp->theirs = rc_create(&c, &(struct rc_ops){peer_sends, completes, qp});
}

static void
qp_post(struct qp *qp)
{
    uint32_t n = below(2) ? 1 + below(4) : 1 + below(MAX_LEN);
    struct rc_wr wr = {
        .id = qp->n_posted, .op = RC_OP_WRITE, .data = data, .len = n * MTU, .rkey = RKEY};

    if (qp->n_posted < N_MESSAGES && qp->n_posted - qp->n_done < 6) {
        qp->n_posted++;
        qp->n_packets += n;
        REQUIRE(rc_post(qp->by_peer ? qp->theirs : qp->ours, &wr, w.f->now));
    }
    qp->post_at = qp->n_posted < N_MESSAGES ? w.f->now + below(below(4) ? 300 : 3000) : UINT64_MAX;
}

/* The endpoint that a packet is for; NULL: there is none. */
static struct rc_endpoint *
endpoint_of(bool host, uint8_t *ip)
{
    uint32_t qpn = be24_get(bth_at(ip)->dest_qp);

    for (unsigned i = 0; i < w.n_qps; i++) {
        if (qpn == (host ? w.qps[i].own_qpn : PEER_QPN + i)) {
            return host ? w.qps[i].ours : w.qps[i].theirs;
        }
    }
    return NULL;
}

/*
 * The headend.
 */

/* It has made a NAK for the host, or does 'mistake' not let it? */
static bool
nak_made(uint8_t *ip, size_t len)
{
    struct bth *bth = bth_at(ip);

    w.n_made++;
    switch (w.mistake) {
    case NAK_LOST: return false;
    case NAK_LOW: bth_set_psn(bth, psn_add(bth_psn(bth), -1)); break;
    case NAK_HIGH: bth_set_psn(bth, psn_add(bth_psn(bth), 3)); break;
    case NAK_OTHER: bth->dest_qp = be24_put(be24_get(bth->dest_qp) ^ 0x100); break;
    default: break;
    }
    if (w.mistake) {
        icrc_store(ip + len - ROCE_ICRC_LEN, icrc_compute(ip, len - ROCE_ICRC_LEN));
    }
    w.n_strays += !endpoint_of(true, ip);
    return true;
}

/* What the headend has sent in an event goes on its way.  The event was a packet from the host, or from
 * the peer, or none. */
static void
harvest(bool from_host, bool from_peer)
{
    struct fixture *f = w.f;

    for (size_t i = 0; i < f->n_frames; i++) {
        struct frame *frame = &f->frames[i];
        const struct parsed_ip6 *in = parsed_innermost(&frame->h);
        uint8_t *ip = frame->bytes + in->ofs;
        size_t len = (size_t) (in->end - in->ofs);

        if (frame->port == HOST_PORT) {
            if (from_peer || nak_made(ip, len)) {
                put(TO_HOST, arrival(&w.last_to_host, LINK), ip, len);
            }
            continue;
        }
        struct bth *bth = bth_at(ip);
        const struct ip6_hdr_wire *outer = (const void *) (frame->bytes + frame->h.ip.ofs);
        unsigned path = (ip6_flow_label(outer) >> 8) - 1;
        bool is_answer = roce_opcode_info(bth->opcode)->flags & ROCE_F_RESPONSE;

        if (w.restarted && path >= N_PATHS) {
            path = 0; /* there were no paths. */
        }
        REQUIRE(path < N_PATHS);
        if (bth->ack_req & 1) { /* HOLD_EARLY. */
            bth->ack_req = 0;
        }
        if (w.hole[path] || is_lost()
            || (w.mistake == REPEAT_LOST && is_answer && !from_host && !from_peer)) {
            continue;
        }
        put(TO_PEER, arrival(&w.last_at_peer[path], w.delay[path]), ip, len);
    }
    f->n_frames = 0;
}

static void
arrives(struct packet_at *p)
{
    struct bth *bth = bth_at(p->ip);
    struct rc_endpoint *e;

    switch (p->where) {
    case TO_AGENT_FROM_HOST:
        if (w.mistake == HOLD_EARLY && !(bth->ack_req & BTH_ACK_REQ)
            && roce_opcode_info(bth->opcode)->flags & ROCE_F_REQUEST) {
            bth->ack_req = BTH_ACK_REQ | 1; /* as the headend sees it. */
        }
        fixture_input(w.f, HOST_PORT, p->ip, p->len);
        harvest(true, false);
        break;
    case TO_AGENT:
        fixture_input(w.f, UPLINK, p->ip, p->len);
        harvest(false, true);
        break;
    case TO_HOST:
    case TO_PEER:
        e = endpoint_of(p->where == TO_HOST, p->ip);
        if (e) {
            rc_input(e, p->ip, p->len, w.f->now);
        }
        break;
    }
}

/*
 * Trouble.
 */

static void
deny(unsigned path, bool denied)
{
    w.f->config.destinations[0].paths[path].usable = !denied;
    w.f->n_frames = 0;
    fixture_configure(w.f);
    harvest(false, false);
}

static void
says(unsigned path, enum path_state state)
{
    path_set_state(w.f, (uint16_t) (path + 1), state);
    harvest(false, false);
}

/* The node is another process. */
static void
restart(void)
{
    w.restarted = true;
    w.f->config.n_destinations = 0;
    w.f->n_frames = 0;
    fixture_configure(w.f);
    harvest(false, false);
    w.f->config.n_destinations = 1;
    fixture_configure(w.f);
}

static void
qp_destroy(struct qp *qp)
{
    rc_destroy(qp->ours);
    rc_destroy(qp->theirs);
}

/* Its program has ended, and begins again. */
static void
replace(unsigned i)
{
    struct qp *qp = &w.qps[i];

    qp_destroy(qp);
    qp_create(qp, i, qp->own_qpn + MAX_QPS, psn_make(below(PSN_MASK)));
    *qp = (struct qp){.ours = qp->ours,
                      .theirs = qp->theirs,
                      .by_peer = qp->by_peer,
                      .own_qpn = qp->own_qpn,
                      /* Numbers are not used again at once. */
                      .post_at = w.f->now + IN_FLIGHT_LIFE + 1000};
}

static void
trouble_begins(void)
{
    static const enum trouble some[] = {HOLES, DENIALS, ALARMS};

    w.trouble_path = below(N_PATHS);
    w.what = w.trouble == LIFE ? some[below(3)] : w.trouble;
    switch (w.what) {
    case HOLES:
        w.hole[w.trouble_path] = true;
        /* Until then what was sent before has arrived, or the peer may hear it in the wrong order. */
        w.trouble_at = w.f->now + 1500 + below(3000);
        break;
    case DENIALS:
        deny(w.trouble_path, true);
        w.trouble_at = w.f->now + 5000 + below(3000);
        break;
    case ALARMS:
    case LIFE:
        says(w.trouble_path, PATH_BAD);
        w.trouble_at = w.f->now + 5000;
        break;
    }
    w.trouble_step = 1;
}

static void
trouble(void)
{
    if (w.trouble_step == 0) {
        trouble_begins();
        return;
    }
    if (w.what == HOLES && w.trouble_step == 1) {
        says(w.trouble_path, PATH_BAD);
        w.trouble_step = 2;
        w.trouble_at = w.f->now + 5000;
        return;
    }
    w.hole[w.trouble_path] = false;
    if (w.what == DENIALS) {
        deny(w.trouble_path, false);
    } else {
        says(w.trouble_path, PATH_GOOD);
    }
    if (w.trouble == LIFE) {
        switch (below(3)) {
        case 0: restart(); break;
        case 1: replace(below(w.n_qps)); break;
        default: break;
        }
    }
    w.trouble_step = 0;
    w.trouble_at = --w.n_troubles ? w.f->now + 4000 + below(10000) : UINT64_MAX;
}

/*
 * Worlds.
 */

static void
begin(enum trouble what, enum path_policy policy, uint64_t seed, enum mistake mistake)
{
    memset(&w, 0, sizeof w);
    w.random = seed;
    w.trouble = what;
    w.mistake = mistake;
    w.f = path_agent();
    path_add(w.f, &path_peer, policy, N_PATHS, 1);
    fixture_configure(w.f);
    w.f->now += IN_FLIGHT_LIFE;
    w.n_qps = 1 + below(MAX_QPS);
    w.back = 10 + below(500);
    w.loss = what == LIFE && below(2) ? 50 + below(200) : 0;
    for (unsigned i = 0; i < N_PATHS; i++) {
        w.delay[i] = 10 + below(1000);
    }
    uint32_t base = below(PSN_MASK + 1), apart = what == LIFE && below(2) ? 4 : PSN_MASK;
    for (unsigned i = 0; i < w.n_qps; i++) {
        struct qp *qp = &w.qps[i];

        qp->by_peer = below(2);
        qp->post_at = w.f->now + below(500);
        qp_create(qp, i, OWN_QPN + i, psn_make(base + below(apart)));
    }
    w.n_troubles = 1 + below(4);
    w.trouble_at = w.f->now + 8000 + below(8000); /* each has had an answer. */
}

static uint64_t
next_time(void)
{
    uint64_t t = w.trouble_at;
    uint64_t node = w.f->class->deadline(w.f->node);

    t = w.packets && w.packets->at < t ? w.packets->at : t;
    t = node < t ? node : t;
    for (unsigned i = 0; i < w.n_qps; i++) {
        const struct qp *qp = &w.qps[i];
        const uint64_t times[] = {qp->post_at, rc_deadline(qp->ours), rc_deadline(qp->theirs)};

        for (unsigned j = 0; j < 3; j++) {
            t = times[j] < t ? times[j] : t;
        }
    }
    return t;
}

static bool
is_done(void)
{
    bool done = w.trouble_at == UINT64_MAX;

    for (unsigned i = 0; i < w.n_qps; i++) {
        done &= w.qps[i].n_done == N_MESSAGES;
    }
    return done;
}

static void
step(void)
{
    struct fixture *f = w.f;
    uint64_t t = next_time();

    REQUIRE(t != UINT64_MAX);
    f->now = t > f->now ? t : f->now;
    while (w.packets && w.packets->at <= f->now) {
        struct packet_at *p = w.packets;

        w.packets = p->next;
        arrives(p);
        free(p);
    }
    for (unsigned i = 0; i < w.n_qps; i++) {
        struct qp *qp = &w.qps[i];

        if (qp->post_at <= f->now) {
            qp_post(qp);
        }
        if (rc_deadline(qp->ours) <= f->now) {
            rc_timer(qp->ours, f->now);
        }
        if (rc_deadline(qp->theirs) <= f->now) {
            rc_timer(qp->theirs, f->now);
        }
    }
    if (f->class->deadline(f->node) <= f->now) {
        f->n_frames = 0;
        f->class->timer(f->node, f->now);
        fixture_settle(f);
        harvest(false, false);
    }
    if (w.trouble_at <= f->now) {
        trouble();
    }
}

/* Of a world that is over, or all worlds. */
struct outcome {
    unsigned n_early, n_strays, n_made, n_unfinished;
    uint64_t n_extra; /* packets beyond those that had to be sent. */
    uint64_t n_ahead, n_timeouts, n_naks, n_repeated;
    uint64_t n_moved_by[N_PATH_MOVES];
};

static struct outcome
run(enum trouble what, enum path_policy policy, uint64_t seed, enum mistake mistake)
{
    struct outcome o = {.n_early = 0};

    begin(what, policy, seed, mistake);
    uint64_t end = w.f->now + 60000000;
    while (!is_done() && w.f->now < end) {
        step();
    }
    o.n_unfinished = !is_done();
    o.n_early = w.n_early;
    o.n_strays = w.n_strays;
    o.n_made = w.n_made;
    for (unsigned i = 0; i < w.n_qps; i++) {
        struct rc_info from, to;

        rc_get_info(w.qps[i].by_peer ? w.qps[i].theirs : w.qps[i].ours, &from);
        rc_get_info(w.qps[i].by_peer ? w.qps[i].ours : w.qps[i].theirs, &to);
        o.n_extra += from.n_sent - w.qps[i].n_packets;
        o.n_timeouts += from.n_timeouts;
        o.n_ahead += to.n_ahead;
        o.n_naks += to.n_naks;
        o.n_unfinished += w.qps[i].n_failed;
        qp_destroy(&w.qps[i]);
    }
    for (uint16_t i = 0; i < N_PATHS; i++) {
        struct path_info info = path_info(w.f, (uint16_t) (i + 1));

        o.n_repeated += info.n_repeated;
        for (unsigned j = 0; j < N_PATH_MOVES; j++) {
            o.n_moved_by[j] += info.n_moved_by[j];
        }
    }
    ck_assert_uint_eq(fixture_total_drops(w.f), 0);
    while (w.packets) {
        struct packet_at *p = w.packets;

        w.packets = p->next;
        free(p);
    }
    fixture_destroy(w.f);
    return o;
}

static enum path_policy
policy_of(uint64_t seed)
{
    static const enum path_policy some[] = {PATH_SPREAD, PATH_FAILOVER, PATH_MESSAGE};

    return some[seed % 3];
}

static void
add(struct outcome *sum, const struct outcome *o)
{
    sum->n_early += o->n_early;
    sum->n_strays += o->n_strays;
    sum->n_made += o->n_made;
    sum->n_unfinished += o->n_unfinished;
    sum->n_extra += o->n_extra;
    sum->n_ahead += o->n_ahead;
    sum->n_timeouts += o->n_timeouts;
    sum->n_naks += o->n_naks;
    sum->n_repeated += o->n_repeated;
    for (unsigned j = 0; j < N_PATH_MOVES; j++) {
        sum->n_moved_by[j] += o->n_moved_by[j];
    }
}

static struct outcome
run_all(enum trouble what, unsigned n, enum mistake mistake)
{
    struct outcome sum = {.n_early = 0};

    for (uint64_t seed = 1; seed <= n; seed++) {
        struct outcome o = run(what, policy_of(seed), seed, mistake);

        if (!mistake) {
            ck_assert_msg(!o.n_early && !o.n_unfinished, "seed %u: %u early, %u unfinished",
                          (unsigned) seed, o.n_early, o.n_unfinished);
            /* A queue pair that is gone may be told once more. */
            ck_assert(!o.n_strays || what == LIFE);
            if (what == HOLES) {
                ck_assert_msg(!o.n_timeouts, "seed %u: %u timeouts", (unsigned) seed,
                              (unsigned) o.n_timeouts);
                ck_assert_uint_le(o.n_naks, o.n_moved_by[PATH_MOVE_FAILED]);
            }
            if (what == DENIALS) {
                ck_assert_msg(!o.n_extra && !o.n_ahead && !o.n_naks && !o.n_made,
                              "seed %u: %u sent again, %u overtaken, %u NAKs made", (unsigned) seed,
                              (unsigned) o.n_extra, (unsigned) o.n_ahead, o.n_made);
                ck_assert_uint_eq(o.n_moved_by[PATH_MOVE_FAILED], 0);
            }
        }
        add(&sum, &o);
    }
    return sum;
}

/* Paths that lose everything: nobody waits for a timer, and at most one NAK besides comes of it. */
START_TEST(holes)
    {
        struct outcome sum = run_all(HOLES, N_WORLDS, NO_MISTAKE);

        ck_assert_uint_gt(sum.n_made, N_WORLDS / 2);
        ck_assert_uint_gt(sum.n_repeated, N_WORLDS / 4);
        ck_assert_uint_gt(sum.n_moved_by[PATH_MOVE_PLANNED], 10); /* failover goes back. */
    }
END_TEST

/* Moves that are planned: nothing is sent again, and nothing overtakes. */
START_TEST(denials)
    {
        struct outcome sum = run_all(DENIALS, N_WORLDS, NO_MISTAKE);

        ck_assert_uint_gt(sum.n_moved_by[PATH_MOVE_PLANNED], N_WORLDS);
    }
END_TEST

/* Paths that are given up although they are all right; whatever is late does no harm. */
START_TEST(alarms)
    {
        struct outcome sum = run_all(ALARMS, N_FEW, NO_MISTAKE);

        ck_assert_uint_gt(sum.n_made, N_FEW / 4);
    }
END_TEST

/* Everything together, with losses, restarts, queue pairs that are replaced, and PSNs that are alike. */
START_TEST(life)
    {
        run_all(LIFE, N_WORLDS, NO_MISTAKE);
    }
END_TEST

/* The harness sees mistakes. */
START_TEST(mistakes)
    {
        struct outcome o = run_all(HOLES, N_FEW, NAK_LOST);

        ck_assert_uint_gt(o.n_timeouts, N_FEW / 4);
        o = run_all(HOLES, N_FEW, NAK_LOW);
        ck_assert_uint_gt(o.n_timeouts, N_FEW / 4);
        o = run_all(HOLES, N_FEW, NAK_HIGH);
        ck_assert_uint_gt(o.n_early, N_FEW / 4);
        o = run_all(HOLES, N_FEW, NAK_OTHER);
        ck_assert_uint_gt(o.n_strays, N_FEW / 4);
        ck_assert_uint_gt(o.n_timeouts, N_FEW / 4);
        o = run_all(HOLES, N_FEW, REPEAT_LOST);
        ck_assert_uint_gt(o.n_timeouts, N_FEW / 8);
        o = run_all(DENIALS, N_FEW, HOLD_EARLY);
        ck_assert_uint_gt(o.n_timeouts, N_FEW / 8);
    }
END_TEST

Suite *
path_switch_suite(void)
{
    Suite *s = suite_create("path_switch");
    TCase *tc = tcase_create("path_switch");

    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, holes);
    tcase_add_test(tc, denials);
    tcase_add_test(tc, alarms);
    tcase_add_test(tc, life);
    if (BY_CHANCE(N_FEW) == N_FEW) { /* it says that the others see mistakes: once is enough. */
        tcase_add_test(tc, mistakes);
    }
    suite_add_tcase(s, tc);
    return s;
}
