/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows change their paths (docs/draft-notes.md, R23).
 *
 * Theory of operation
 * -------------------
 *     a path fails    -> the flow takes another one, and its host hears what is missing
 *     somebody wants  -> requests pass up to one that wants an answer, and what comes then waits
 *                        -> all is confirmed: the flow takes the other path, and what waits leaves
 *                        -> it takes too long: as if the path had failed
 *
 * What was in flight on a path that has failed is lost, and a requester that is not told sends it again
 * when its timer ends, after some hundred milliseconds.  So the headend tells it, with a NAK of the lowest
 * PSN that is not confirmed, as from its peer.  Answers of the host may be lost likewise:
 * the last one is said again.
 *
 * A host is not told in the midst of a READ's answer: older kernels take an acknowledgement there for a
 * fatal error.  It is when that answer is over.
 *
 * Answers, and what is no Reliable Connection, do not wait: nobody says that they have arrived.  Nor do
 * requests of which it is not known whose answers are theirs.  They stay as long as others may wait,
 * and go without a word: most of what was in flight has arrived.
 */
#include "lib/defect.h"
#include "lib/headend-impl.h"
#include "lib/response.h"
#include "lib/roce.h"

/* No answer that was given longer ago says where a queue pair is now: it may be another one with the same
 * number. */
#define LATELY IN_FLIGHT_LIFE

/* Is all confirmed that the flow has sent, as far as it was watched? */
static bool
is_idle(const struct flow *f)
{
    return f->in_flight.any && in_flight_is_idle(&f->in_flight);
}

static void
take(struct flow *f, struct path *to, enum path_move why, uint64_t now)
{
    if (to != f->path) {
        to->n_moved += !f->path; /* it was on one that is not there any more. */
        to->n_moved_by[why]++;
        to->last_switch = now;
    }
    headend_flow_take(f, to);
}

/*
 * What waits.
 */

/* May requests wait until all is confirmed?  Nobody sees that where it is not known whose answers are
 * the flow's. */
static bool
may_hold(const struct flow *f)
{
    return f->requests && f->own && f->asked && !f->holds;
}

/* Requests from here on wait. */
static void
hold(struct headend *h, struct flow *f)
{
    f->holds = true;
    f->hold_from = f->in_flight.h;
    pacer_stop(&h->pacer, &f->held, true);
}

/* The flow does not leave its path, or has left it: what waits goes on the path that it has. */
static void
release(struct headend *h, struct flow *f, uint64_t now)
{
    struct pacer_flow *of;
    struct packet *p;

    f->going_to = NULL;
    f->holds = false;
    deadlines_set(&h->deadlines, &f->deadline, UINT64_MAX, f);
    pacer_stop(&h->pacer, &f->held, false);
    while ((p = pacer_get(&h->pacer, now, &of))) {
        const struct seen s = headend_look(p->data, p->len);

        headend_flow_sent(h, f, &s, now);
        node_count_drop(h->base, headend_send_on(h, p, f->path, f->label, now));
    }
}

void
headend_finish(struct headend *h, struct flow *f, uint64_t now)
{
    take(f, f->going_to, f->why, now);
    release(h, f, now);
}

void
headend_stay(struct headend *h, struct flow *f, uint64_t now)
{
    release(h, f, now);
}

/* An eighth of the buffers stays for what does not wait. */
static bool
may_keep(const struct headend *h, const struct flow *f)
{
    const struct packet_pool *pool = h->base->pool;

    return f->held.n < PACER_QUEUE_MAX && packet_pool_n_free(pool) >= packet_pool_size(pool) / 8;
}

/* A packet of a flow that is about to leave its path: the rest of headend_may_leave(). */
static bool
leaves_or_waits(struct headend *h, struct flow *f, const struct seen *s, struct packet *p,
                uint64_t now)
{
    if (!f->requests) {
        if (s->opcode != RC_READ_RESP_MIDDLE && s->opcode != RC_READ_RESP_LAST) {
            headend_finish(h, f, now);
        }
        return true;
    }
    if (is_idle(f) || f->gap >= HEADEND_GAP) {
        headend_finish(h, f, now);
        return true;
    }
    if (!f->holds || psn_cmp(s->psn, f->hold_from) < 0) {
        return true; /* below it: is sent again, since it was lost. */
    }
    if (!may_keep(h, f)) {
        headend_fail(h, f, f->going_to, now);
        return true;
    }
    TRACE(&h->base->tracer, "path %u: waits, since its flow is about to leave for path %u",
          f->path->config.number, f->going_to->config.number);
    pacer_put(&h->pacer, &f->held, p, (uint32_t) packet_size(p), now);
    return false;
}

bool
headend_may_leave(struct headend *h, struct flow *f, const struct seen *s, struct packet *p,
                  uint64_t now)
{
    if (f->going_to && !leaves_or_waits(h, f, s, p, now)) {
        return false;
    }
    headend_flow_sent(h, f, s, now);
    if (f->going_to && may_hold(f)) {
        hold(h, f);
    }
    return true;
}

/*
 * A path fails.
 */

/* Tells the host's queue pair that the peer lacks what is from 'una' on.  One that has gone back goes back
 * again for an RNR NAK only, or when its timer ends. */
static void
make_nak(struct headend *h, const struct flow *f, struct own_qp *q, psn_t una, uint64_t now)
{
    const struct in6_addr *peer = &q->peer->address;
    bool again = (q->back || f->back) && !DEFECT(NAK_AGAIN);

    if (q->nak_at == now || DEFECT(SWITCH_SILENT)) {
        return;
    }
    q->nak_at = now;
    una = DEFECT(NAK_BEYOND) ? f->in_flight.h : una;
    struct packet *p =
        response_build(h->base->pool, peer, &q->host, response_sport(peer, q->qpn), q->qpn, una,
                       again ? AETH_RNR_AT_ONCE : AETH_NAK_PSN_SEQ, q->msn);
    if (!p) {
        node_count_drop(h->base, DROP_pool_empty);
        return;
    }
    q->back = true;
    f->path->n_naks++;
    TRACE(&h->base->tracer,
          "NAK to QPN 0x%x: PSN %u and what follows was on a path that has failed", q->qpn, una.v);
    node_count_drop(h->base, l3_output(h->base->l3, p, L3_ERRORS_NONE, now));
}

/* The flow's queue pair is not known: tells all that it may be. */
static void
make_naks(struct headend *h, const struct flow *f, uint64_t now)
{
    for (size_t i = 0; i < HEADEND_TABLE; i++) {
        struct own_qp *q = &h->own_qps[i];

        if (q->peer == f->to && !q->flow && !q->in_read && now - q->used <= LATELY
            && IN6_ARE_ADDR_EQUAL(&q->host, &f->host)
            && in_flight_may_answer(&f->in_flight, q->psn, now)
            && psn_cmp(q->una, f->in_flight.h) < 0) {
            make_nak(h, f, q, q->una, now);
        }
    }
}

void
headend_ask_again(struct headend *h, struct flow *f, uint64_t now)
{
    struct own_qp *q = f->own;

    f->owes_nak = false;
    f->told_at = now;
    f->n_told++;
    f->switched = true;
    f->switch_h = f->in_flight.h;
    if (h->silent || in_flight_is_idle(&f->in_flight)) {
        return;
    }
    if (!q) {
        make_naks(h, f, now);
    } else if (q->in_read) {
        f->owes_nak = true;
    } else {
        make_nak(h, f, q, psn_cmp(q->una, f->in_flight.una) < 0 ? q->una : f->in_flight.una, now);
    }
}

/* The host's last answer, again. */
static void
repeat_answer(struct headend *h, struct flow *f, uint64_t now)
{
    const struct last_answer *a = &f->answered;

    if (h->silent || !a->any || a->in_read || now - a->at > LATELY) {
        return;
    }
    struct packet *p = response_build(h->base->pool, &f->host, &f->to->address, a->sport,
                                      f->dest_qp, a->psn, a->syndrome, a->msn);
    if (!p) {
        node_count_drop(h->base, DROP_pool_empty);
        return;
    }
    f->path->n_repeated++;
    node_count_drop(h->base, headend_send_on(h, p, f->path, f->label, now));
}

void
headend_fail(struct headend *h, struct flow *f, struct path *to, uint64_t now)
{
    f->failed = f->path ? f->path->config.probe : 0;
    take(f, to, PATH_MOVE_FAILED, now);
    if (!f->requests) {
        f->going_to = NULL;
        repeat_answer(h, f, now);
        return;
    }
    release(h, f, now);
    headend_ask_again(h, f, now);
}

/*
 * Somebody wants another path.
 */

void
headend_plan(struct headend *h, struct flow *f, struct path *to, enum path_move why, uint64_t now)
{
    bool pauses = now - f->used >= HEADEND_GAP;
    bool waits =
        headend_tracks(f->to) && !pauses && (f->requests ? !is_idle(f) : f->answered.in_read);

    f->why = why;
    if (f->going_to) {
        f->going_to = to;
    } else {
        f->going_to = to;
        deadlines_set(&h->deadlines, &f->deadline, now + HEADEND_DRAIN_MAX, f);
    }
    if (!waits) {
        /* What it sent before the pause would have been confirmed by now: it was lost, or its answer.
         * Once it is on another path nobody hears that the one before has failed. */
        bool lost = pauses && f->requests && !is_idle(f);

        headend_finish(h, f, now);
        if (lost) {
            headend_ask_again(h, f, now);
        } else if (aeth_class(f->answered.syndrome) == AETH_CLASS_ACK) {
            repeat_answer(h, f, now); /* likewise, if it is a flow of answers. */
        }
    } else if (may_hold(f)) {
        hold(h, f);
    }
}

/* It stays, if that is what it has to. */
static void
stay(struct headend *h, struct flow *f, uint64_t now)
{
    if (f->going_to) {
        headend_stay(h, f, now);
    }
}

/* With failover: the first path wins if it is good, and better than where the flow is. */
static void
review_rank(struct headend *h, struct flow *f, enum path_class class, uint64_t now)
{
    struct path *first = headend_choose(h, f->to, NULL);

    if (first == f->path) {
        stay(h, f, now);
    } else if (headend_class(h, first) == CLASS_GOOD && headend_outlives(h, first, f->failed)
               && (first < f->path || class == CLASS_RECOVERING)) {
        headend_plan(h, f, first, PATH_MOVE_PLANNED, now);
    }
}

static void
review_pinned(struct headend *h, struct flow *f, uint16_t pin, uint64_t now)
{
    if (f->path->config.number == pin) {
        stay(h, f, now);
        return;
    }
    for (size_t i = 0; i < f->to->n_paths; i++) {
        if (f->to->paths[i].config.number == pin) {
            headend_plan(h, f, &f->to->paths[i], PATH_MOVE_PLANNED, now);
        }
    }
}

static void
review_flow(struct headend *h, struct flow *f, uint64_t now)
{
    uint16_t pin = headend_pin_of(f->to, f->dest_qp);
    enum path_class class = headend_class(h, f->path);
    const struct path_config *c = &f->path->config;

    if (pin) {
        review_pinned(h, f, pin, now);
        return;
    }
    if (class < CLASS_BAD) {
        if (f->to->policy == PATH_FAILOVER) {
            review_rank(h, f, class, now);
        } else if (f->going_to && headend_class(h, f->going_to) >= CLASS_BAD) {
            stay(h, f, now);
        }
        return;
    }
    struct path *to = headend_choose(h, f->to, f->path);
    if (headend_class(h, to) >= class) {
        stay(h, f, now);
    } else if (class == CLASS_NONE && f->path->state != PATH_BAD
               && (!c->port || l3_port_is_up(h->base->l3, c->port))) {
        headend_plan(h, f, to, PATH_MOVE_PLANNED, now);
    } else {
        headend_fail(h, f, to, now);
    }
}

void
headend_review(struct headend *h, struct destination *d, uint64_t now)
{
    if (!headend_tracks(d)) {
        return;
    }
    for (struct flow *f = d->flows; f; f = f->next) {
        if (f->path) {
            review_flow(h, f, now);
        }
    }
}

void
headend_way_changed(struct headend *h, uint16_t probe, uint64_t now)
{
    enum path_state state = h->ways->state(h->base->prober, probe);

    for (size_t i = 0; i < h->n; i++) {
        struct destination *d = &h->destinations[i];
        bool changed = false;

        for (size_t j = 0; j < d->n_paths; j++) {
            if (d->paths[j].config.probe == probe && d->paths[j].state != state) {
                d->paths[j].state = state;
                changed = true;
            }
        }
        if (changed) {
            headend_review(h, d, now);
        }
    }
}

/*
 * What answers and time bring.
 */

void
headend_progress(struct headend *h, struct flow *f, const struct own_qp *q, uint64_t now)
{
    if (f->owes_nak && !q->in_read && !f->going_to) {
        /* The answer itself has still to leave for the host. */
        deadlines_set(&h->deadlines, &f->deadline, now, f);
    }
    if (f->going_to && is_idle(f)) {
        headend_finish(h, f, now);
    }
}

/* Ports' links have no events here. */
static void
look_at_ports(struct headend *h, uint64_t now)
{
    bool changed = false;

    for (size_t i = 0; i < h->n_ports; i++) {
        bool up = l3_port_is_up(h->base->l3, h->ports[i]);

        changed |= up != h->ports_up[i];
        h->ports_up[i] = up;
    }
    for (size_t i = 0; changed && i < h->n; i++) {
        headend_review(h, &h->destinations[i], now);
    }
}

uint64_t
headend_deadline(const struct headend *h)
{
    uint64_t flows = deadlines_first(&h->deadlines);

    return flows < h->tick_at ? flows : h->tick_at;
}

void
headend_timer(struct headend *h, uint64_t now)
{
    struct flow *f;

    while ((f = deadlines_due(&h->deadlines, now))) {
        deadlines_set(&h->deadlines, &f->deadline, UINT64_MAX, f);
        if (f->going_to && f->requests && (f->own || f->holds)) {
            headend_fail(h, f, f->going_to, now);
        } else if (f->going_to) {
            headend_finish(h, f, now);
        } else if (f->owes_nak) {
            headend_ask_again(h, f, now);
        }
    }
    if (h->tick_at <= now) {
        h->tick_at = now < h->busy_until ? now + HEADEND_TICK : UINT64_MAX;
        look_at_ports(h, now);
        if (h->load_at <= now) {
            h->load_at = now + HEADEND_INTERVAL;
            headend_look_at_load(h, now);
        }
    }
}
