/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes of a node.
 *
 * Theory of operation
 * -------------------
 *     time for a probe -> round -> lost -> health: suspect -> confirmation -> lost -> health: bad
 *                              -> came back -> health
 *
 * A round is one packet, or up to three within some milliseconds if there is reason to doubt.  The round is
 * lost if none of its packets comes back within the timeout, and counts as one probe.  After a loss that
 * makes the way suspect, or while it recovers, the next round is at once.  So a fault is known after at most one interval, until
 * the first probe meets it, and two timeouts, which are an interval each at most.
 *
 * If data are lost on the way there is a survey besides (lib/survey.h): what loses every fifth packet answers most
 * rounds.
 *
 * Each probe has a phase of its own, so that they spread over the interval.  Every sixteenth one is long,
 * one after each change, and every second one while long ones are lost.
 *
 * What is kept of packets under way is the sequence number of the next one, and which of the last 64 came
 * back.  The rest is in the packets, and the cookie says that it is true, also where there is no UDP
 * checksum.  The key of cookies is the node's as long as it runs: what a former one has sent counts as
 * forged.
 */
#include "lib/prober.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/deadlines.h"
#include "lib/defect.h"
#include "lib/ecn.h"
#include "lib/headend.h"
#include "lib/inet-csum.h"
#include "lib/prng.h"
#include "lib/reflector.h"
#include "lib/seq-window.h"
#include "lib/stamp.h"
#include "lib/survey.h"

#define MORE_PACKETS     3    /* of a round that is to say for sure. */
#define MORE_GAP_MAX     2000 /* between them. */
#define LONG_EVERY       16
#define MARKS            16 /* of so many that came back. */
#define FLOW_LABEL_SHIFT 8  /* as of paths (lib/headend.h). */
#define NSEC_PER_USEC    1000
#define RTT_WEIGHT       8

enum round_kind {
    ROUND_NONE, /* none is under way. */
    ROUND_REGULAR,
    ROUND_DOUBT,   /* data gave reason to. */
    ROUND_CONFIRM, /* after a loss. */
};

struct round {
    enum round_kind kind;
    bool large;
    bool answered;          /* one of them came back. */
    uint8_t n_sent, n_back; /* packets. */
    uint32_t first, end;    /* sequence numbers; those of a survey may be between them. */
    uint64_t until;         /* what has not come back by then is lost. */
    uint64_t next;          /* when the next packet is due, if it is to have more. */
};

/* For what an answer's two sequence numbers say about losses. */
struct answers {
    bool any;
    uint32_t asked, seq; /* of the newest. */
};

struct probe {
    struct probe_config config;
    struct in6_addr end; /* that the program ends in. */
    struct path_health health;
    struct deadline deadline;
    struct round round;
    struct survey survey;
    uint64_t tick;     /* time of the last regular round; an interval before the first one. */
    bool urgent;       /* the next regular round is due, and a long one. */
    uint64_t doubted;  /* when it was doubted last; 0: never. */
    uint64_t carried;  /* when the newest packet that came back in time was sent; 0: none. */
    uint64_t loses;    /* likewise, the first one since then; 0: that was not lost. */
    uint32_t n_rounds; /* regular ones. */
    bool was_large;    /* the last one was. */
    uint8_t dscp;
    struct seq_window
        back;       /* which came back, by sequence number; the next one is that to be sent. */
    uint16_t marks; /* of the last ones that came back, a bit each. */
    struct answers answers;
    struct probe_info stats; /* without 'config', 'health', 'heard'. */
};

struct prober {
    struct node_base *base;
    struct reflector *reflector;
    struct stamp_key key;
    bool follows;        /* another worker of the node probes. */
    uint64_t posix_usec; /* what POSIX time is ahead of the node's. */
    uint64_t random;
    uint64_t now; /* of the last event. */
    size_t n;
    struct probe *probes;
    struct deadlines deadlines;
    uint16_t index[PROBE_NUMBER_MAX + 1]; /* by number, in 'probes' plus 1; 0: there is none. */
};

struct prober *
prober_create(struct node_base *base, const struct node_io *io)
{
    struct prober *p = must_calloc(1, sizeof *p);

    p->base = base;
    p->follows = io->follows;
    p->posix_usec = io->posix_usec;
    p->random = io->seed;
    p->reflector = reflector_create(base, io->posix_usec);
    for (size_t i = 0; i < sizeof p->key.secret; i += sizeof(uint64_t)) {
        uint64_t word = prng_next(&p->random);

        memcpy(p->key.secret + i, &word, sizeof word);
    }
    return p;
}

void
prober_destroy(struct prober *p)
{
    deadlines_uninit(&p->deadlines);
    reflector_destroy(p->reflector);
    free(p->probes);
    free(p);
}

static struct probe *
find_probe(const struct prober *p, uint16_t number)
{
    uint16_t at = number <= PROBE_NUMBER_MAX ? p->index[number] : 0;

    return at ? &p->probes[at - 1] : NULL;
}

/*
 * When.
 */

static uint64_t
next_tick(const struct probe *pr)
{
    return pr->tick + (uint64_t) pr->config.interval_usec * path_health_backoff(&pr->health);
}

static bool
wants_more(const struct round *r)
{
    return r->kind != ROUND_REGULAR && !r->answered && r->n_sent < MORE_PACKETS;
}

static uint64_t
probe_deadline(const struct probe *pr)
{
    const struct round *r = &pr->round;
    uint64_t tick = pr->urgent ? 0 : next_tick(pr);
    uint64_t survey = survey_deadline(&pr->survey, pr->config.timeout_usec), first = tick;

    if (r->kind != ROUND_NONE) {
        uint64_t next = r->answered ? tick : wants_more(r) ? r->next : r->until;

        first = next < r->until ? next : r->until;
    }
    return first < survey ? first : survey;
}

static void
note_deadline(struct prober *p, struct probe *pr)
{
    if (!p->follows) {
        deadlines_set(&p->deadlines, &pr->deadline, probe_deadline(pr), pr);
    }
}

/*
 * Configuration.
 */

static bool
same_program(const struct program *a, const struct program *b)
{
    return a->n == b->n && !memcmp(a->containers, b->containers, a->n * sizeof *a->containers);
}

/* Do both say the same about a way? */
static bool
same_way(const struct probe_config *a, const struct probe_config *b)
{
    return a->kind == b->kind && a->port == b->port && a->large == b->large
           && a->no_checksum == b->no_checksum && same_program(&a->program, &b->program)
           && (a->kind == PROBE_LOOP
               || (IN6_ARE_ADDR_EQUAL(&a->peer, &b->peer) && same_program(&a->back, &b->back)));
}

/* A phase of its own, from now on. */
static uint64_t
first_tick(struct prober *p, uint32_t interval, uint64_t now)
{
    return now + prng_below(&p->random, interval) - interval;
}

/* 'old' is the probe with this number, or NULL. */
static void
probe_init(struct prober *p, struct probe *pr, const struct probe_config *config,
           const struct probe *old, uint64_t now)
{
    assert(config->interval_usec && config->timeout_usec);
    const struct in6_addr *last = config->kind == PROBE_LOOP ? &p->base->address : &config->peer;

    if (old && same_way(&old->config, config)) {
        *pr = *old;
    } else {
        uint32_t seq = old ? old->back.next : (uint32_t) prng_next(&p->random);

        *pr = (struct probe){
            .back = {.next = seq},
            .tick = first_tick(p, config->interval_usec, now),
        };
        path_health_init(&pr->health, now);
    }
    if (pr->config.interval_usec && pr->config.interval_usec != config->interval_usec) {
        pr->tick = first_tick(p, config->interval_usec, now);
    }
    pr->config = *config;
    pr->end = node_locator(node_id_of(last));
    pr->deadline = (struct deadline){0};
}

void
prober_configure(struct prober *p, const struct node_config *config, uint64_t now)
{
    struct probe *probes = must_calloc(config->n_probes, sizeof *probes);

    p->now = now;
    for (size_t i = 0; i < config->n_probes; i++) {
        const struct probe_config *c = &config->probes[i];

        probe_init(p, &probes[i], c, find_probe(p, c->number), now);
    }
    deadlines_uninit(&p->deadlines);
    deadlines_reserve(&p->deadlines, config->n_probes);
    memset(p->index, 0, sizeof p->index);
    free(p->probes);
    p->probes = probes;
    p->n = config->n_probes;
    for (size_t i = 0; i < p->n; i++) {
        p->index[probes[i].config.number] = (uint16_t) (i + 1);
        note_deadline(p, &probes[i]);
    }
    reflector_configure(p->reflector, config);
}

/*
 * Sent.
 */

/* Sends the next packet.  False: there is no buffer for it. */
static bool
send_one(struct prober *p, struct probe *pr, bool large, uint64_t now)
{
    const struct probe_config *c = &pr->config;
    struct stamp say = {
        .seq = pr->back.next,
        .sent_nsec = (p->posix_usec + now) * NSEC_PER_USEC,
        .ssid = c->number,
        .no_checksum = c->no_checksum,
        .has_cookie = true,
    };

    if (c->kind == PROBE_PEER) {
        say.has_cos = true;
        say.dscp = pr->dscp;
        say.back = c->back;
    }
    say.cookie = stamp_cookie(&p->key, say.ssid, say.seq, say.sent_nsec);
    struct packet *packet =
        stamp_build(p->base->pool, &say, &p->base->address, &c->program, &pr->end,
                    (uint8_t) (pr->dscp << 2 | ECN_ECT0), (uint32_t) c->number << FLOW_LABEL_SHIFT,
                    PROBER_SPORT, UDP_PORT_STAMP, large ? c->large : 0);
    if (!packet) {
        node_count_drop(p->base, DROP_pool_empty);
        return false;
    }
    seq_window_advance(&pr->back, say.seq);
    pr->stats.n_sent++;
    enum drop_reason why = DROP_port_down;
    if (l3_port_is_up(p->base->l3, c->port)) {
        why = l3_output_port(p->base->l3, packet, c->port, L3_ERRORS_NONE, now);
    } else {
        packet_put(packet);
    }
    if (why) {
        node_count_drop(p->base, why);
    }
    return true;
}

/* The next packet of the round. */
static void
send_of_round(struct prober *p, struct probe *pr, uint64_t now)
{
    struct round *r = &pr->round;
    uint32_t gap = pr->config.timeout_usec / 8;

    r->next = now + (gap < MORE_GAP_MAX ? gap + 1 : MORE_GAP_MAX);
    if (send_one(p, pr, r->large, now)) {
        r->n_sent++;
        r->end = pr->back.next;
    }
}

static void
send_of_survey(struct prober *p, struct probe *pr, uint64_t now)
{
    uint32_t gap = pr->config.interval_usec / SURVEY_PACKETS;

    if (send_one(p, pr, false, now)) {
        survey_sent(&pr->survey, pr->back.next - 1, gap, now);
    } else {
        pr->survey.next = now + gap;
    }
}

static void
begin_round(struct prober *p, struct probe *pr, enum round_kind kind, bool large, uint64_t now)
{
    pr->round = (struct round){
        .kind = kind,
        .large = large,
        .first = pr->back.next,
        .until = now + pr->config.timeout_usec,
    };
    send_of_round(p, pr, now);
    if (!pr->round.n_sent) {
        pr->round.kind = ROUND_NONE; /* what was not sent says nothing. */
    }
}

static void
begin_regular(struct prober *p, struct probe *pr, uint64_t now)
{
    uint64_t due = next_tick(pr);
    bool long_lost = pr->health.n_large_lost && !pr->was_large;
    bool large = pr->urgent || long_lost || pr->n_rounds % LONG_EVERY == LONG_EVERY - 1;

    /* Otherwise it is one more.  The phase stays. */
    if (now >= due) {
        pr->tick = now - (now - due) % pr->config.interval_usec;
    }
    pr->urgent = false;
    pr->n_rounds++;
    pr->was_large = large && pr->config.large;
    begin_round(p, pr, ROUND_REGULAR, pr->was_large, now);
}

/*
 * What became of it.
 */

/* The way is another one now. */
static void
tell(struct prober *p, const struct probe *pr, uint64_t now)
{
    headend_way_changed(p->base->headend, pr->config.number, now);
    if (p->base->way_changed) {
        p->base->way_changed(p->base, pr->config.number, now);
    }
}

/* What was seen has been judged. */
static void
look_at_health(struct prober *p, struct probe *pr, enum path_state before, uint64_t now)
{
    if (pr->health.state != before) {
        /* Is it as good for long packets?  A suspect way is confirmed first, a bad one has time. */
        pr->urgent = pr->config.large
                     && (pr->health.state == PATH_GOOD || pr->health.state == PATH_RECOVERING);
        if (pr->health.state == PATH_BAD) {
            pr->survey.on = false; /* it is known. */
        }
        tell(p, pr, now);
    }
}

/* The round was answered, or is lost. */
static void
judge(struct prober *p, struct probe *pr, bool came_back, uint64_t now)
{
    enum path_state before = pr->health.state;

    if (came_back) {
        path_health_came_back(&pr->health, pr->round.large, now);
    } else {
        path_health_lost(&pr->health, pr->round.large, now);
    }
    look_at_health(p, pr, before, now);
}

/* A packet of the survey came back, or is lost. */
static void
judge_one(struct prober *p, struct probe *pr, bool came_back, uint64_t now)
{
    enum path_state before = pr->health.state;

    path_health_surveyed(&pr->health, came_back, now);
    look_at_health(p, pr, before, now);
}

static void
end_round(struct prober *p, struct probe *pr, uint64_t now)
{
    struct round *r = &pr->round;
    bool confirmed = r->kind == ROUND_CONFIRM, lost = !r->answered, large = r->large;

    pr->stats.n_lost += (uint64_t) (r->n_sent - r->n_back);
    r->kind = ROUND_NONE;
    if (!lost) {
        return;
    }
    if (!pr->loses) {
        pr->loses = r->until - pr->config.timeout_usec;
    }
    judge(p, pr, false, now);
    bool in_doubt = pr->health.state == PATH_SUSPECT || pr->health.state == PATH_RECOVERING;
    if (in_doubt && !confirmed && r->kind == ROUND_NONE) {
        begin_round(p, pr, ROUND_CONFIRM, large, now);
    }
}

static void
probe_timer(struct prober *p, struct probe *pr, uint64_t now)
{
    struct round *r = &pr->round;

    if (r->kind != ROUND_NONE) {
        if (now >= r->until || (r->answered && (pr->urgent || now >= next_tick(pr)))) {
            end_round(p, pr, now);
        } else if (wants_more(r) && now >= r->next) {
            send_of_round(p, pr, now);
        }
    }
    while (survey_take_lost(&pr->survey, pr->config.timeout_usec, now)) {
        pr->stats.n_lost++;
        pr->loses = pr->loses ? pr->loses : now - pr->config.timeout_usec;
        judge_one(p, pr, false, now);
    }
    if (survey_is_due(&pr->survey, now)) {
        send_of_survey(p, pr, now);
    }
    if (r->kind == ROUND_NONE && (pr->urgent || now >= next_tick(pr))) {
        begin_regular(p, pr, now);
    }
    note_deadline(p, pr);
}

uint64_t
prober_deadline(const struct prober *p)
{
    return deadlines_first(&p->deadlines);
}

void
prober_timer(struct prober *p, uint64_t now)
{
    struct probe *pr;

    p->now = now;
    while ((pr = deadlines_due(&p->deadlines, now))) {
        probe_timer(p, pr, now);
    }
}

/* What the sequence numbers of answers say: the other end counts those that it has answered. */
static void
count_directions(struct probe *pr, const struct stamp *s)
{
    struct answers *last = &pr->answers;
    uint32_t asked = s->asked_seq - last->asked, answered = s->seq - last->seq;

    if (last->any && (int32_t) asked <= 0) { /* overtaken: it counts as lost already. */
        pr->stats.n_lost_back -= pr->stats.n_lost_back > 0;
        return;
    }
    if (last->any && answered && answered <= asked) {
        pr->stats.n_lost_there += asked - answered;
        pr->stats.n_lost_back += answered - 1;
    } /* else the other end was started again. */
    *last = (struct answers){.any = true, .asked = s->asked_seq, .seq = s->seq};
}

static void
count_marks(struct probe *pr, const struct stamp *s, uint8_t tc)
{
    bool ce = (tc & ECN_MASK) == ECN_CE;
    bool ce_there = s->has_cos && s->ecn_seen == ECN_CE;
    bool marked = pr->config.kind == PROBE_LOOP ? ce : ce_there;

    pr->marks = (uint16_t) (pr->marks << 1 | marked);
    pr->stats.n_marked += marked;
    pr->stats.n_marked_back += pr->config.kind == PROBE_PEER && ce;
}

static void
measure(struct probe *pr, uint64_t rtt)
{
    uint32_t usec = rtt < UINT32_MAX ? (uint32_t) rtt : UINT32_MAX;

    pr->stats.rtt_usec = usec;
    if (pr->stats.n_returned == 1) {
        pr->stats.rtt_mean_usec = usec;
    } else {
        int64_t change = ((int64_t) usec - pr->stats.rtt_mean_usec) / RTT_WEIGHT;
        pr->stats.rtt_mean_usec = (uint32_t) (pr->stats.rtt_mean_usec + change);
    }
}

/* Packet 'seq', which was sent at 'sent', came back for the first time. */
static enum drop_reason
came_back(struct prober *p, struct probe *pr, const struct stamp *s, uint8_t tc, uint32_t seq,
          uint64_t sent, uint64_t now)
{
    struct round *r = &pr->round;

    if (DEFECT(PROBE_STALE)) {
        seq = pr->back.next - 1;
        sent = now;
    }
    if (now - sent > pr->config.timeout_usec) {
        pr->stats.n_late++;
        return DROP_probe_late;
    }
    pr->stats.n_returned++;
    pr->carried = sent > pr->carried ? sent : pr->carried;
    pr->loses = 0;
    measure(pr, now - sent);
    count_marks(pr, s, tc);
    if (survey_came_back(&pr->survey, seq, now)) {
        judge_one(p, pr, true, now);
        note_deadline(p, pr);
        return DROP_none;
    }
    if (r->kind == ROUND_NONE || seq - r->first >= r->end - r->first) {
        pr->stats.n_lost -= pr->stats.n_lost > 0; /* its round ended before its time was over. */
        return DROP_none;
    }
    r->n_back++;
    if (!r->answered) {
        r->answered = true;
        judge(p, pr, true, now);
    }
    if (r->n_back == r->n_sent) {
        end_round(p, pr, now);
    }
    note_deadline(p, pr);
    return DROP_none;
}

/* An own probe, or the answer to one, as says 's'. */
static enum drop_reason
take_back(struct prober *p, const struct rx *rx, const struct stamp *s)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    uint32_t seq = s->is_answer ? s->asked_seq : s->seq;
    uint64_t sent_nsec = s->is_answer ? s->asked_nsec : s->sent_nsec;
    uint64_t sent = sent_nsec / NSEC_PER_USEC - p->posix_usec;
    struct probe *pr = find_probe(p, s->ssid);

    if (!s->has_cookie
        || (s->cookie != stamp_cookie(&p->key, s->ssid, seq, sent_nsec) && !DEFECT(PROBE_FORGED))) {
        return DROP_probe_forged;
    }
    if (!pr) {
        return DROP_probe_late; /* it was taken out of the configuration. */
    }
    if ((pr->config.kind == PROBE_PEER) != s->is_answer
        || (s->is_answer && !IN6_ARE_ADDR_EQUAL(&ip->src, &pr->config.peer))) {
        return DROP_probe_forged;
    }
    if (s->no_checksum && !pr->config.no_checksum) {
        return DROP_probe_malformed;
    }
    switch (seq_window_note(&pr->back, seq)) {
    case SEQ_NEW: break;
    case SEQ_SEEN: return DROP_probe_replayed;
    case SEQ_OLD: pr->stats.n_late++; return DROP_probe_late;
    }
    if (s->is_answer) {
        count_directions(pr, s);
    }
    enum drop_reason why = came_back(p, pr, s, ip6_tc(ip), seq, sent, rx->now);
    TRACE(&p->base->tracer, "probe %u, %s: sequence number %u came back after %llu us, way is %s",
          pr->config.number, pr->config.name, seq, (unsigned long long) (rx->now - sent),
          path_state_name(pr->health.state));
    return why;
}

/*
 * Packets.
 */

static const struct udp_hdr *
udp_of(const struct rx *rx)
{
    const struct parsed_ip6 *ip = &rx->h.ip;
    bool is_udp = !rx->h.inner.ofs && ip->l4_ofs && ip->proto == IP6_NH_UDP
                  && (size_t) (ip->end - ip->l4_ofs) >= sizeof(struct udp_hdr);

    return is_udp ? rx_at(rx, ip->l4_ofs) : NULL;
}

static bool
is_answer(const struct udp_hdr *udp)
{
    return be16_get(udp->sport) == UDP_PORT_STAMP && be16_get(udp->dport) == PROBER_SPORT;
}

bool
prober_takes(const struct rx *rx)
{
    const struct udp_hdr *udp = udp_of(rx);

    return udp && (be16_get(udp->dport) == UDP_PORT_STAMP || is_answer(udp));
}

/* Is the UDP packet whole, with a checksum that is right, or with none? */
static bool
udp_ok(const struct rx *rx, const struct udp_hdr *udp)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    size_t len = be16_get(udp->len), room = (size_t) (rx->h.ip.end - rx->h.ip.l4_ofs);

    return len >= sizeof *udp && len <= room
           && (!be16_get(udp->csum)
               || !be16_get(inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_UDP, udp, len)));
}

enum drop_reason
prober_input(struct prober *p, struct rx *rx)
{
    const struct udp_hdr *udp = udp_of(rx);
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    bool answer = is_answer(udp);
    struct stamp s;

    p->now = rx->now;
    if (!udp_ok(rx, udp)
        || !stamp_parse((const uint8_t *) (udp + 1), be16_get(udp->len) - sizeof *udp, answer,
                        &s)) {
        return DROP_probe_malformed;
    }
    s.no_checksum = !be16_get(udp->csum);
    if (answer || IN6_ARE_ADDR_EQUAL(&ip->src, &p->base->address)) {
        return take_back(p, rx, &s);
    }
    return reflector_input(p->reflector, rx, &s, be16_get(udp->sport));
}

/*
 * For others.
 */

void
prober_note_data(struct prober *p, uint16_t number, uint8_t tc)
{
    struct probe *pr = find_probe(p, number);

    if (pr) {
        pr->dscp = tc >> 2;
    }
}

enum path_state
prober_state(const struct prober *p, uint16_t number)
{
    const struct probe *pr = find_probe(p, number);

    return pr ? pr->health.state : PATH_UNKNOWN;
}

bool
prober_outlives(const struct prober *p, uint16_t number, uint16_t failed)
{
    const struct probe *pr = find_probe(p, number), *other = find_probe(p, failed);

    return !pr || !other || !other->loses || pr->carried >= other->loses;
}

unsigned
prober_marked(const struct prober *p, uint16_t number)
{
    const struct probe *pr = find_probe(p, number);

    return pr ? (unsigned) __builtin_popcount(pr->marks) * 256 / MARKS : 0;
}

void
prober_doubt(struct prober *p, uint16_t number, bool lost, uint64_t now)
{
    struct probe *pr = find_probe(p, number);

    if (!pr || p->follows || pr->health.state == PATH_BAD) {
        return;
    }
    if (lost && !DEFECT(NO_SURVEY)) {
        survey_begin(&pr->survey, now);
        note_deadline(p, pr);
    }
    if ((pr->doubted && now - pr->doubted < pr->config.interval_usec)
        || (pr->round.kind != ROUND_NONE && !pr->round.answered)) {
        return;
    }
    if (pr->round.kind != ROUND_NONE) {
        end_round(p, pr, now);
    }
    pr->doubted = now;
    begin_round(p, pr, ROUND_DOUBT, false, now);
    note_deadline(p, pr);
}

void
prober_follow(struct prober *p, const struct prober *other, uint64_t now)
{
    for (size_t i = 0; i < p->n; i++) {
        struct probe *pr = &p->probes[i];
        const struct probe *theirs = find_probe(other, pr->config.number);
        enum path_state before = pr->health.state;

        if (theirs && same_way(&theirs->config, &pr->config)) {
            pr->health = theirs->health;
            pr->marks = theirs->marks;
        }
        if (pr->health.state != before) {
            tell(p, pr, now);
        }
    }
}

bool
prober_probe(const void *node, size_t i, struct probe_info *info)
{
    const struct prober *p = ((const struct node_base *) node)->prober;

    if (i >= p->n) {
        return false;
    }
    const struct probe *pr = &p->probes[i];
    *info = pr->stats;
    info->config = &pr->config;
    info->health = pr->health;
    /* Short packets that arrive say nothing of a way that loses long ones. */
    info->heard = pr->config.kind == PROBE_PEER && pr->config.reverse
                  && !path_health_loses_long(&pr->health)
                  && reflector_hears(p->reflector, &pr->config.peer, pr->config.reverse,
                                     pr->config.interval_usec, p->now);
    return true;
}
