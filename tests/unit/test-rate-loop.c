/* SPDX-License-Identifier: Apache-2.0
 *
 * Rate control and pacing in a closed loop, in virtual time: sources with the window of an rxe
 * queue pair behind a pacer each, one queue with RED whose rate falls and rises again, receivers
 * that expect PSNs in order, and the signals that go back.
 *
 *     source -> pacer -> delay -> queue of rate L, C, L -> delay -> receiver
 *        ^------------- ACK, NAK, CNP, Fast CNP: delay ---------------'
 */
#include <assert.h>
#include <string.h>

#include "lib/pacer.h"
#include "lib/rate-control.h"
#include "lib/roce-packet.h"
#include "lib/roce.h"
#include "tests/unit/suites.h"

#define MSEC        UINT64_C(1000)
#define SEC         UINT64_C(1000000)
#define FRAME       1102u /* path MTU 1024. */
#define PACKET      (FRAME - 14)
#define WINDOW      129
#define DELAY       125 /* microseconds: source to queue, queue to receiver. */
#define LIMIT       64
#define KMIN        5
#define KMAX        20
#define TIMEOUT     (268 * MSEC) /* t = 16. */
#define MAX_SOURCES 2
#define MAX_EVENTS  16384

/* What happens at a fixed delay, so that a ring is in order of time. */
enum kind { AT_QUEUE, AT_RECEIVER, AT_SOURCE };
struct event {
    uint64_t when;
    unsigned source;
    psn_t psn;
    bool ce, nak, is_signal;
    struct rate_signal signal;
};
struct ring {
    struct event events[MAX_EVENTS];
    uint64_t first, end;
};

struct source {
    struct pacer_flow flow;
    struct rate_control rate;
    psn_t una, next, newest; /* to be acknowledged, to be sent; the newest one sent. */
    uint64_t timeout_at;
    uint64_t n_again; /* packets sent again. */
    psn_t expected;   /* of its receiver, */
    bool has_nakked;
    uint64_t n_delivered;
    uint64_t told_at; /* it is told no more before. */
};

static struct loop {
    struct rate_params params;
    enum rate_cause cause;
    uint64_t now;
    struct packet_pool *pool;
    struct pacer pacer;
    unsigned n_sources;
    struct source sources[MAX_SOURCES];
    struct ring rings[AT_SOURCE + 1];
    uint64_t random;

    uint64_t rate; /* of the queue; */
    uint64_t busy; /* nanoseconds: when its first frame has left. */
    struct event queue[LIMIT];
    unsigned first, depth;
    uint64_t n_drops, dropped_at;
    uint64_t depth_sum, depth_since; /* frames x microseconds. */
} loop;

static void
push(enum kind kind, uint64_t delay, struct event e)
{
    struct ring *ring = &loop.rings[kind];

    assert(ring->end - ring->first < MAX_EVENTS); /* ck_assert() is a system call each. */
    e.when = loop.now + delay;
    ring->events[ring->end++ % MAX_EVENTS] = e;
}

/* RED at a depth of so many frames, with Pmax 1. */
static bool
red_hits(unsigned depth)
{
    loop.random = loop.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return depth > KMIN && (loop.random >> 33) % (KMAX - KMIN) < depth - KMIN;
}

/* The congestion point, or the receiver, tells a source, at most once in an interval. */
static void
tell(unsigned i, uint64_t delay)
{
    struct source *s = &loop.sources[i];

    if (loop.now < s->told_at) {
        return;
    }
    s->told_at = loop.now + loop.params.interval_usec;
    push(AT_SOURCE, delay,
         (struct event){.source = i,
                        .is_signal = true,
                        .signal = {.cause = loop.cause,
                                   .has_depth = loop.params.controller == RATE_DEPTH,
                                   .queue_bytes = loop.depth * FRAME,
                                   .queue_rate = loop.rate}});
}

static uint64_t
frame_nsec(void)
{
    return FRAME * UINT64_C(8000000000) / loop.rate;
}

static void
count_depth(void)
{
    loop.depth_sum += (loop.now - loop.depth_since) * loop.depth;
    loop.depth_since = loop.now;
}

static void
at_queue(struct event e)
{
    count_depth();
    if (loop.cause == RATE_FAST_CNP && red_hits(loop.depth)) {
        tell(e.source, DELAY);
    }
    if (loop.depth == LIMIT) {
        loop.n_drops++;
        loop.dropped_at = loop.now;
        return;
    }
    if (!loop.depth++) {
        uint64_t now = loop.now * 1000;

        loop.busy = (loop.busy > now ? loop.busy : now) + frame_nsec();
    }
    loop.queue[(loop.first + loop.depth - 1) % LIMIT] = e;
}

static void
run_queue(void)
{
    while (loop.depth && loop.busy <= loop.now * 1000) {
        struct event e = loop.queue[loop.first];

        count_depth();
        loop.first = (loop.first + 1) % LIMIT;
        loop.busy += --loop.depth ? frame_nsec() : 0;
        e.ce = loop.cause == RATE_CNP && red_hits(loop.depth);
        push(AT_RECEIVER, DELAY, e);
    }
}

static void
at_receiver(struct event e)
{
    struct source *s = &loop.sources[e.source];
    int32_t ahead = psn_cmp(e.psn, s->expected);

    if (e.ce) {
        tell(e.source, 2 * DELAY);
    }
    e.nak = false;
    if (!ahead) {
        s->expected = psn_add(s->expected, 1);
        s->has_nakked = false;
        s->n_delivered++;
    } else if (ahead > 0) {
        if (s->has_nakked) {
            return;
        }
        e.nak = s->has_nakked = true;
    }
    e.psn = s->expected;
    push(AT_SOURCE, 2 * DELAY, e);
}

static void
at_source(struct event e)
{
    struct source *s = &loop.sources[e.source];

    if (e.is_signal) {
        rate_control_signal(&s->rate, &loop.params, &e.signal, loop.now);
        return;
    }
    if (psn_cmp(e.psn, s->una) > 0) {
        s->una = e.psn;
        s->timeout_at = loop.now + TIMEOUT;
        if (psn_cmp(s->next, s->una) < 0) {
            s->next = s->una;
        }
    }
    if (e.nak) {
        s->next = s->una;
    }
}

static void
leave(struct source *s, psn_t psn)
{
    rate_control_sent(&s->rate, &loop.params, FRAME, loop.now);
    push(AT_QUEUE, DELAY, (struct event){.source = (unsigned) (s - loop.sources), .psn = psn});
}

/* What its window lets it send goes to the pacer at once. */
static void
run_source(struct source *s)
{
    if (loop.now >= s->timeout_at) {
        s->next = s->una;
        s->timeout_at = loop.now + TIMEOUT;
    }
    rate_control_timer(&s->rate, &loop.params, loop.now);
    pacer_set_rate(&loop.pacer, &s->flow, rate_control_rate(&s->rate), loop.now);
    while (psn_cmp(s->next, s->una) < WINDOW) {
        if (psn_cmp(s->next, s->newest) > 0) {
            s->newest = s->next;
        } else {
            s->n_again++;
        }
        if (pacer_must_wait(&s->flow, loop.now)) {
            struct in6_addr addr = {{{0}}};
            struct packet *p =
                roce_packet_begin(loop.pool, PACKET, &addr, &addr, 0, RC_SEND_ONLY, 1, s->next);

            assert(p);
            bool queued = pacer_put(&loop.pacer, &s->flow, p, FRAME, loop.now);
            assert(queued);
        } else {
            pacer_sent(&s->flow, FRAME, loop.now);
            leave(s, s->next);
        }
        s->next = psn_add(s->next, 1);
    }
}

static void
run_pacer(void)
{
    struct pacer_flow *flow;
    struct packet *p;

    while ((p = pacer_get(&loop.pacer, loop.now, &flow)) != NULL) {
        const struct bth *bth = (const struct bth *) (p->data + IP6_HDR_LEN + 8);

        leave(flow->owner, bth_psn(bth));
        packet_put(p);
    }
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void
run_until(uint64_t end)
{
    static void (*const handle[])(struct event) = {at_queue, at_receiver, at_source};

    while (loop.now < end) {
        uint64_t next = earlier(end, pacer_deadline(&loop.pacer));

        run_queue();
        for (enum kind kind = AT_QUEUE; kind <= AT_SOURCE; kind++) {
            struct ring *ring = &loop.rings[kind];

            while (ring->first < ring->end
                   && ring->events[ring->first % MAX_EVENTS].when <= loop.now) {
                handle[kind](ring->events[ring->first++ % MAX_EVENTS]);
            }
        }
        for (unsigned i = 0; i < loop.n_sources; i++) {
            struct source *s = &loop.sources[i];

            run_source(s);
            next = earlier(next, earlier(s->timeout_at, rate_control_deadline(&s->rate)));
        }
        run_pacer();
        next = earlier(next, pacer_deadline(&loop.pacer));
        for (enum kind kind = AT_QUEUE; kind <= AT_SOURCE; kind++) {
            struct ring *ring = &loop.rings[kind];

            if (ring->first < ring->end) {
                next = earlier(next, ring->events[ring->first % MAX_EVENTS].when);
            }
        }
        if (loop.depth) {
            next = earlier(next, (loop.busy + 999) / 1000);
        }
        loop.now = next > loop.now ? next : loop.now + 1;
    }
}

static void
start(const struct rate_params *params, enum rate_cause cause, unsigned n_sources, uint64_t seed)
{
    memset(&loop, 0, sizeof loop);
    loop.params = *params;
    loop.cause = cause;
    loop.now = SEC;
    loop.depth_since = loop.now;
    loop.random = seed;
    loop.pool = packet_pool_create(MAX_SOURCES * PACER_QUEUE_MAX + 1);
    loop.rate = params->line;
    loop.n_sources = n_sources;
    pacer_init(&loop.pacer);
    for (unsigned i = 0; i < n_sources; i++) {
        struct source *s = &loop.sources[i];

        s->flow.owner = s;
        s->una = s->next = s->expected = psn_make(0xffffc0 + i);
        s->newest = psn_add(s->next, -1);
        s->timeout_at = loop.now + TIMEOUT;
    }
}

static void
stop(void)
{
    for (unsigned i = 0; i < loop.n_sources; i++) {
        pacer_remove(&loop.pacer, &loop.sources[i].flow);
    }
    pacer_uninit(&loop.pacer);
    ck_assert_uint_eq(packet_pool_n_free(loop.pool), packet_pool_size(loop.pool));
    packet_pool_destroy(loop.pool);
}

#define ONSET  (1200 * MSEC)
#define SETTLE (2200 * MSEC)
#define RELIEF (12200 * MSEC)

static const struct way {
    enum rate_controller controller;
    enum rate_cause cause;
} ways[] = {{RATE_DCQCN, RATE_CNP}, {RATE_DCQCN, RATE_FAST_CNP}, {RATE_DEPTH, RATE_FAST_CNP}};
static const uint64_t branches[] = {5000000, 10000000, 100000000, 1000000000};

#define N_WAYS     (int) (sizeof ways / sizeof *ways)
#define N_BRANCHES (int) (sizeof branches / sizeof *branches)

/* Of a queue of rate 'branch', by each source, from the onset to the relief. */
static void
congest(int way, uint64_t branch, unsigned n_sources, uint64_t seed, double share[])
{
    struct rate_params params = rate_params_default(10 * branch, rate_floor_for(FRAME, 20));
    uint64_t before[MAX_SOURCES];

    params.controller = ways[way].controller;
    start(&params, ways[way].cause, n_sources, seed);
    run_until(ONSET);
    loop.rate = branch;
    run_until(SETTLE);
    count_depth();
    loop.depth_sum = 0;
    for (unsigned i = 0; i < n_sources; i++) {
        before[i] = loop.sources[i].n_delivered;
    }
    run_until(RELIEF);
    count_depth();
    for (unsigned i = 0; i < n_sources; i++) {
        uint64_t n = loop.sources[i].n_delivered - before[i];

        share[i] = (double) n * FRAME * 8 * SEC / (RELIEF - SETTLE) / (double) branch;
    }
    loop.rate = params.line;
}

/* One flow: 0.92 to 1 of the queue, no drop later than 0.5 s, and back within 0.5 s (2 s at
 * 5 Mb/s) of relief, at 0.95 of the line or of what its window allows. */
START_TEST(one_flow_has_the_branch)
    {
        uint64_t branch = branches[_i % N_BRANCHES];
        uint64_t window = WINDOW * FRAME * 8 * SEC / (4 * DELAY);
        double share;

        for (uint64_t seed = 1; seed <= 3; seed++) {
            congest(_i / N_BRANCHES, branch, 1, seed, &share);
            ck_assert_double_ge(share, 0.92);
            ck_assert_double_le(share, 1.0);
            ck_assert_uint_le(loop.dropped_at, ONSET + 500 * MSEC);
            run_until(RELIEF + (branch == branches[0] ? 2000 : 500) * MSEC);
            ck_assert_uint_ge(rate_control_rate(&loop.sources[0].rate),
                              earlier(10 * branch, window) / 100 * 95);
            stop();
        }
    }
END_TEST

/* Two flows have about half of it each. */
START_TEST(two_flows_share_it)
    {
        double share[MAX_SOURCES];

        congest(_i / N_BRANCHES, branches[_i % N_BRANCHES], 2, 1, share);
        for (unsigned i = 0; i < 2; i++) {
            ck_assert_double_ge(share[i], 0.4);
            ck_assert_double_le(share[i], 0.6);
        }
        stop();
    }
END_TEST

/* Nobody is told: the window keeps the queue full, or overflows it. */
START_TEST(without_control_it_overflows)
    {
        struct rate_params params = rate_params_default(100000000, 0);

        start(&params, RATE_CNP, 1, 1);
        loop.sources[0].told_at = UINT64_MAX;
        run_until(ONSET);
        loop.rate = 10000000;
        run_until(RELIEF);
        ck_assert_uint_gt(loop.n_drops, 1000);
        ck_assert_uint_gt(loop.dropped_at, RELIEF - SEC);
        stop();
    }
END_TEST

Suite *
rate_loop_suite(void)
{
    Suite *s = suite_create("rate_loop");
    TCase *tc = tcase_create("rate_loop");

    tcase_add_loop_test(tc, one_flow_has_the_branch, 0, N_WAYS * N_BRANCHES);
    tcase_add_loop_test(tc, two_flows_share_it, 0, N_WAYS * N_BRANCHES);
    tcase_add_test(tc, without_control_it_overflows);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    return s;
}
