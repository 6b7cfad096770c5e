/* SPDX-License-Identifier: Apache-2.0
 *
 * Queue pairs over a fabric in which things break.
 *
 * Headends take no answer for one to a flow at first (docs/draft-notes.md, R20), and flows begin when
 * that is over; probes, shortly before.  So the quiet time costs nothing.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/in-flight.h"
#include "lib/roce.h"
#include "tests/model/path-lab-impl.h"

#define RKEY        7
#define FIRST_QPN   0x100
#define ANOTHER_QPN 0x1000 /* of the next life. */
#define TIME_LIMIT  UINT64_C(120000000)
#define REST        200000 /* at the end, for what is under way. */

void
path_lab_fail(const struct path_lab *lab, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lab->fail(text, lab->clos->fabric.now);
    abort();
}

static void
clos_failed(void *lab, const char *text)
{
    path_lab_fail(lab, "%s", text);
}

void
path_lab_at(struct path_lab *lab, uint64_t at, void (*run)(void *, unsigned, unsigned), unsigned a)
{
    fabric_schedule(&lab->clos->fabric, at, run, a, 0);
}

/*
 * Queue pairs.
 */

static void
completed(void *f_, uint64_t id, enum rc_status status)
{
    struct flow *f = f_;
    unsigned slot = f->n_done % f->window;

    PATH_REQUIRE(f->lab, !status && id == f->n_done, "message %u: status %d", (unsigned) id,
                 status);
    PATH_REQUIRE(f->lab, !memcmp(f->memory[slot], f->data[slot], f->len[slot]),
                 "message %u completed, and is not there", (unsigned) id);
    path_lab_check_completed(f->lab, f, f->posted_at[slot]);
    f->done_at = f->lab->clos->fabric.now;
    f->n_done++;
}

static void
sender_tx(void *f_, const uint8_t *ip, size_t len)
{
    struct flow *f = f_;

    clos_send(f->lab->clos, f->from, ip, len);
}

static void
receiver_tx(void *f_, const uint8_t *ip, size_t len)
{
    struct flow *f = f_;
    const struct bth *bth = (const void *) (ip + IP6_HDR_LEN + sizeof(struct udp_hdr));

    if (bth->opcode == RC_ACK && ((const struct aeth *) (bth + 1))->syndrome == AETH_NAK_PSN_SEQ) {
        f->nak_said = true;
        f->nak_psn = bth_psn(bth);
    }
    clos_send(f->lab->clos, f->to, ip, len);
}

static void
create_pair(struct flow *f, uint32_t psn)
{
    struct path_lab *lab = f->lab;
    const struct rc_config sender = {
        .own = clos_host(lab->clos, f->from)->address,
        .peer = clos_host(lab->clos, f->to)->address,
        .qpn = f->qpn,
        .dest_qpn = f->dest_qpn,
        .start_psn = psn_make(psn),
        .mtu = MTU,
        .timeout_usec = lab->timeout_usec,
        .retry_cnt = lab->kind == RUN_SEEN ? 4 : RC_RETRY_FOREVER,
        .rnr_retry = RC_RETRY_FOREVER,
        .gap_usec = 1 + path_lab_random(lab, 50),
        .ecn = lab->ecn,
    };
    struct rc_config receiver = {
        .own = sender.peer,
        .peer = sender.own,
        .qpn = f->dest_qpn,
        .dest_qpn = f->qpn,
        .start_psn = sender.start_psn,
        .mtu = MTU,
        .cnp_usec = lab->ecn ? 1000 : 0,
        .region = f->memory[0],
        .region_len = sizeof f->memory,
        .rkey = RKEY,
    };

    f->heard = sender.start_psn;
    f->heard_at = lab->clos->fabric.now;
    f->sender = rc_create(&sender, &(struct rc_ops){sender_tx, completed, f});
    f->receiver = rc_create(&receiver, &(struct rc_ops){.tx = receiver_tx, .aux = f});
}

static void
destroy_pair(struct flow *f)
{
    struct rc_info info;

    rc_get_info(f->sender, &info);
    f->n_sent += info.n_sent;
    rc_destroy(f->sender);
    rc_destroy(f->receiver);
}

/* Its program has ended, and another one's queue pair has its number at the peer.  Numbers are not
 * used again at once. */
static void
replace(struct flow *f)
{
    destroy_pair(f);
    f->first_life = 0;
    f->n_posted = f->n_done = 0;
    f->qpn += ANOTHER_QPN;
    f->n_made = 0;
    create_pair(f, path_lab_random(f->lab, PSN_MASK + 1));
    f->post_at = f->lab->clos->fabric.now + IN_FLIGHT_LIFE + 1000;
}

static void
post(struct flow *f)
{
    struct path_lab *lab = f->lab;
    uint64_t now = lab->clos->fabric.now;
    unsigned slot = f->n_posted % f->window;
    struct rc_info info;

    rc_get_info(f->sender, &info);
    bool over = (f->first_life && f->n_posted == f->first_life)
                || (now >= lab->over_at && (f->n_done == f->n_posted || !info.stuck));
    if (over) {
        f->post_at = UINT64_MAX;
        return;
    }
    f->post_at = now + 1 + path_lab_random(lab, f->max_pause);
    if (f->n_posted - f->n_done == f->window) {
        return;
    }
    f->len[slot] = (1 + path_lab_random(lab, MAX_MESSAGE)) * MTU;
    f->n_packets += f->len[slot] / MTU;
    for (unsigned i = 0; i < f->len[slot]; i++) {
        f->data[slot][i] = (uint8_t) (f->n_posted * 31 + i / MTU + i);
    }
    f->posted_at[slot] = now;
    f->n_posted++;
    const struct rc_wr wr = {
        .id = f->n_posted - 1,
        .op = RC_OP_WRITE,
        .data = f->data[slot],
        .len = f->len[slot],
        .va = (uint64_t) slot * SLOT,
        .rkey = RKEY,
    };
    PATH_REQUIRE(lab, rc_post(f->sender, &wr, now), "a queue pair takes no work");
}

struct flow *
path_lab_flow(struct path_lab *lab, unsigned host, uint32_t qpn, bool *is_sender)
{
    for (unsigned i = 0; i < lab->n_flows; i++) {
        struct flow *f = &lab->flows[i];

        *is_sender = f->from == host && f->qpn == qpn;
        if (*is_sender || (f->to == host && f->dest_qpn == qpn)) {
            return f;
        }
    }
    return NULL;
}

static void
to_host(void *lab_, unsigned host, const uint8_t *ip, size_t len)
{
    struct path_lab *lab = lab_;
    const struct bth *bth = (const void *) (ip + IP6_HDR_LEN + sizeof(struct udp_hdr));
    bool is_sender;
    struct flow *f = len > IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof *bth
                             && ip[offsetof(struct ip6_hdr_wire, nh)] == IP6_NH_UDP
                         ? path_lab_flow(lab, host, be24_get(bth->dest_qp), &is_sender)
                         : NULL;

    if (f) {
        rc_input(is_sender ? f->sender : f->receiver, ip, len, lab->clos->fabric.now);
    }
}

/* Of a flow: whatever is due. */
static void
flow_run(struct flow *f)
{
    uint64_t now = f->lab->clos->fabric.now;

    if (rc_deadline(f->sender) <= now) {
        struct rc_info before, after;

        rc_get_info(f->sender, &before);
        rc_timer(f->sender, now);
        rc_get_info(f->sender, &after);
        if (after.n_timeouts > before.n_timeouts && f->lab->trace) {
            fprintf(stderr, "%10" PRIu64 " the timer of qp %x ends\n", now, f->qpn);
        }
    }
    if (f->first_life && f->n_done == f->first_life) {
        replace(f);
    }
    if (f->post_at <= now) {
        post(f);
    }
}

static uint64_t
flow_next(const struct flow *f)
{
    uint64_t t = rc_deadline(f->sender);
    bool ends = f->first_life && f->n_done == f->first_life;

    return ends ? 0 : t < f->post_at ? t : f->post_at;
}

/*
 * A run.
 */

static void
choose_flows(struct path_lab *lab, uint64_t begin)
{
    uint32_t base = path_lab_random(lab, PSN_MASK + 1);
    /* Whose answer is whose is not to be known by PSNs. */
    bool alike = lab->kind == RUN_MIXED && path_lab_random(lab, 2);
    bool replaced =
        (lab->kind == RUN_SEEN || lab->kind == RUN_MIXED) && path_lab_random(lab, 3) == 0;

    lab->n_flows = 1 + path_lab_random(lab, MAX_FLOWS);
    for (unsigned i = 0; i < lab->n_flows; i++) {
        struct flow *f = &lab->flows[i];

        f->lab = lab;
        f->from = path_lab_random(lab, lab->clos->n_agents);
        f->to = (f->from + 1 + path_lab_random(lab, lab->clos->n_agents - 1)) % lab->clos->n_agents;
        f->qpn = FIRST_QPN + 2 * i;
        f->dest_qpn = f->qpn + 1;
        f->window = 1 + path_lab_random(lab, MAX_WINDOW);
        f->max_pause = 1000 + path_lab_random(lab, 60000);
        f->first_life = replaced && i == 0 ? 1 + path_lab_random(lab, 4) : 0;
        f->post_at = begin + path_lab_random(lab, 1000) + (replaced && i ? IN_FLIGHT_LIFE : 0);
        create_pair(f, alike ? base + path_lab_random(lab, 4) : path_lab_random(lab, PSN_MASK + 1));
    }
    lab->probes_from = begin + (replaced ? IN_FLIGHT_LIFE : 0);
}

static void
begin_probes(void *clos, unsigned unused, unsigned unused2)
{
    struct clos *c = clos;

    (void) unused, (void) unused2;
    c->probes = true;
    clos_replan(c);
}

static bool
is_over(const struct path_lab *lab)
{
    bool over = lab->clos->fabric.now >= lab->over_at;

    for (unsigned i = 0; i < lab->n_flows; i++) {
        over &= lab->flows[i].n_done == lab->flows[i].n_posted && !lab->flows[i].first_life;
    }
    return over;
}

static void
step(struct path_lab *lab)
{
    uint64_t when = clos_next(lab->clos);
    struct flow *first = NULL;

    for (unsigned i = 0; i < lab->n_flows; i++) {
        uint64_t t = flow_next(&lab->flows[i]);

        if (t < when) {
            when = t;
            first = &lab->flows[i];
        }
    }
    PATH_REQUIRE(lab, when < TIME_LIMIT, "no end");
    if (!first) {
        clos_step(lab->clos);
        return;
    }
    lab->clos->fabric.now = when > lab->clos->fabric.now ? when : lab->clos->fabric.now;
    flow_run(first);
}

static void
choose(struct path_lab *lab)
{
    static const enum path_policy policies[] = {PATH_FAILOVER, PATH_SPREAD};
    static const enum run_kind kinds[] = {RUN_SEEN, RUN_SEEN, RUN_PLANNED, RUN_MIXED, RUN_MIXED};
    struct clos *c = lab->clos;
    uint32_t msec = 20 + path_lab_random(lab, 81);
    enum run_kind kind = kinds[path_lab_random(lab, 5)];

    lab->kind = lab->kind == RUN_LOSSY ? RUN_LOSSY : kind;
    lab->interval = msec * 1000;
    /* rxe's timer ends now and then although all is well.  Where nothing is sent again there is none. */
    if (lab->kind != RUN_PLANNED) {
        lab->timeout_usec = 4096u * (UINT64_C(1) << (18 + path_lab_random(lab, 3))) / 1000;
    }
    lab->ecn = lab->kind == RUN_MIXED && path_lab_random(lab, 2);
    lab->forges = lab->kind == RUN_SEEN && path_lab_random(lab, 3) == 0;
    lab->n_faults = lab->kind == RUN_LOSSY ? 1 : 1 + path_lab_random(lab, MAX_FAULTS);
    lab->over_at = UINT64_MAX;
    clos_set_interval(c, msec);
    for (unsigned i = 0; i < c->n_agents; i++) {
        clos_host(c, i)->path_policy = policies[path_lab_random(lab, 2)];
    }
}

static void
choose_delays(struct path_lab *lab)
{
    for (unsigned i = 0; i < clos_n_links(lab->clos); i++) {
        uint32_t most = path_lab_random(lab, 2) ? 20 : 1500;
        struct fabric_quality *q = lab->clos->fabric.links[i].quality;

        q[0].delay = q[1].delay = 1 + path_lab_random(lab, most);
    }
}

/* Probes end, and what is under way comes to its end. */
static void
rest(struct path_lab *lab)
{
    struct clos *c = lab->clos;
    uint64_t end = c->fabric.now + REST;

    c->probes = false;
    clos_replan(c);
    while (clos_next(c) < end) {
        clos_step(c);
    }
}

static const char *const run_names[] = {
    [RUN_SEEN] = "seen", [RUN_PLANNED] = "planned", [RUN_MIXED] = "mixed", [RUN_LOSSY] = "lossy"};

/* Of any kind but RUN_LOSSY, or of this one. */
static struct path_lab_lossy
run(uint64_t seed, bool lossy, bool trace, uint64_t n_seen[N_LAB_EVENTS],
    void (*fail)(const char *text, uint64_t now))
{
    struct path_lab *lab = must_calloc(1, sizeof *lab);
    struct fabric chance = {.random = seed};
    unsigned n_agents = 2 + (fabric_random(&chance, 4) == 0);
    unsigned n_spines = 2 + (fabric_random(&chance, 4) == 0);

    lab->trace = trace;
    lab->n_seen = n_seen;
    lab->fail = fail;
    lab->seed = seed;
    lab->kind = lossy ? RUN_LOSSY : N_RUN_KINDS;
    lab->lossy.left = UINT64_MAX;
    lab->clos = clos_create(n_agents, n_spines, chance.random,
                            &(struct clos_ops){
                                .sent = path_lab_sent,
                                .after = path_lab_after,
                                .to_host = to_host,
                                .fail = clos_failed,
                                .aux = lab,
                            });
    choose(lab);
    lab->clos->probes = false;
    clos_start(lab->clos);
    choose_delays(lab);
    uint64_t begin = lab->clos->fabric.now + IN_FLIGHT_LIFE + 1000;
    choose_flows(lab, begin);
    path_lab_at(lab, lab->probes_from, begin_probes, 0);
    path_lab_begin_faults(lab, lab->probes_from + (3 + path_lab_random(lab, 3)) * lab->interval
                                   + path_lab_random(lab, (uint32_t) lab->interval));
    if (trace) {
        fprintf(stderr, "paths, %s: %u agents, %u spines, %u flows, interval %" PRIu64 " us%s\n",
                run_names[lab->kind], n_agents, n_spines, lab->n_flows, lab->interval,
                lab->forges ? ", forged answers" : "");
    }
    while (!is_over(lab)) {
        step(lab);
    }
    path_lab_count(lab);
    rest(lab);
    path_lab_check_end(lab);
    for (unsigned i = 0; i < lab->n_flows; i++) {
        rc_destroy(lab->flows[i].sender);
        rc_destroy(lab->flows[i].receiver);
    }
    clos_destroy(lab->clos);
    struct path_lab_lossy seen = lab->lossy;
    seen.interval = lab->interval;
    seen.one_way = lab->now.kind == FAULT_LOSSY_WAY;
    free(lab);
    return seen;
}

void
path_lab_run(uint64_t seed, bool trace, uint64_t n_seen[N_LAB_EVENTS],
             void (*fail)(const char *text, uint64_t now))
{
    run(seed, false, trace, n_seen, fail);
}

struct path_lab_lossy
path_lab_run_lossy(uint64_t seed, bool trace, void (*fail)(const char *text, uint64_t now))
{
    uint64_t n_seen[N_LAB_EVENTS] = {0};

    return run(seed, true, trace, n_seen, fail);
}
