/* SPDX-License-Identifier: Apache-2.0
 *
 * Who sends what to whom, as a headend sees it.
 *
 * Theory of operation
 * -------------------
 * Flows become known by their packets.  The table is in sets, by a hash of the key; in a full set
 * the flow that was silent for longest makes room.  The requests of a queue pair and its answers are
 * two flows: nobody needs them in order with one another, and only for requests there is something
 * that says that they have arrived.
 *
 * lib/in-flight.c knows what of a flow is confirmed.  Answers have the number of the queue pair that
 * they go to, requests that of the one that they go to: nothing says which of the one kind belong to
 * which of the other (docs/draft-notes.md, R20, R21).
 *
 *     an answer to an own queue pair -> its flow, if that is known
 *                                    -> else the only flow that has its PSN in flight, from now on
 *
 * The second is right only if all flows that it may be are known.  They are not for a time after the
 * node or the policy begins, and after a flow had to make room or its queue pair was replaced: for
 * that long the destination is in doubt, and no queue pair gets a flow.  One that has it already is
 * in no doubt: it has one peer.
 *
 * Searching for the only flow takes time that grows with the flows.  A search in vain is not repeated
 * for a time that grows with them, too.
 *
 * Of a node's workers only the first has packets that are no group's (lib/steer.h), so it sees all.
 */
#include "lib/defect.h"
#include "lib/hash-index.h"
#include "lib/headend-impl.h"
#include "lib/roce.h"

/* Flows that are asked in a microsecond, if none of them turns out to be the one. */
#define ASKED_PER_USEC 8

struct seen
headend_look(const uint8_t *ip_, size_t len)
{
    const struct ip6_hdr_wire *ip = (const void *) ip_;
    const struct udp_hdr *udp = (const void *) (ip + 1);
    const struct bth *bth = (const void *) (udp + 1);
    size_t before = sizeof *ip + sizeof *udp;

    if (len < before + sizeof *bth || ip->nh != IP6_NH_UDP
        || be16_get(udp->dport) != UDP_PORT_ROCE) {
        return (struct seen){.bth = NULL};
    }
    return (struct seen){
        .requests = ROCE_TRANSPORT(bth->opcode) == ROCE_TRANSPORT_RC
                    && roce_opcode_info(bth->opcode)->flags & ROCE_F_REQUEST,
        .opcode = bth->opcode,
        .psn = bth_psn(bth),
        .dest_qp = be24_get(bth->dest_qp),
        .bth = bth,
        .len = len - before,
    };
}

/* The packet's AETH; NULL: it has none. */
static const struct aeth *
aeth_of(const struct seen *s)
{
    const struct aeth *aeth = (const void *) (s->bth + 1);

    return roce_opcode_info(s->opcode)->flags & ROCE_F_AETH
                   && s->len >= sizeof *s->bth + sizeof *aeth
               ? aeth
               : NULL;
}

/* How much a READ request asks for. */
static uint32_t
read_len(const struct seen *s)
{
    const struct reth *reth = (const void *) (s->bth + 1);

    return s->len >= sizeof *s->bth + sizeof *reth ? be32_get(reth->dma_len) : UINT32_MAX;
}

/* Does more of a READ's answer follow? */
static bool
goes_on(uint8_t opcode)
{
    return opcode == RC_READ_RESP_FIRST || opcode == RC_READ_RESP_MIDDLE;
}

/*
 * Own queue pairs.
 */

void
headend_unbind(struct own_qp *q)
{
    if (q && q->flow) {
        q->flow->own = NULL;
        q->flow = NULL;
    }
}

static void
bind_flow(struct own_qp *q, struct flow *f)
{
    headend_unbind(q);
    headend_unbind(f->own);
    q->flow = f;
    f->own = q;
}

/* The queue pair that a packet of the destination goes to.  NULL: it is not known, and '*place' is where
 * it would be noted. */
static struct own_qp *
find_own(struct headend *h, const struct destination *d, const struct in6_addr *host, uint32_t qpn,
         struct own_qp **place)
{
    uint64_t hash = hash_number(d->hash, qpn);
    struct own_qp *set = &h->own_qps[hash % HEADEND_SETS * HEADEND_SET_SIZE];

    *place = set;
    for (size_t i = 0; i < HEADEND_SET_SIZE; i++) {
        struct own_qp *q = &set[i];

        if (q->peer == d && q->qpn == qpn && IN6_ARE_ADDR_EQUAL(&q->host, host)) {
            return q;
        }
        if (!q->peer || ((*place)->peer && q->used < (*place)->used)) {
            *place = q;
        }
    }
    return NULL;
}

/* The same, which is noted if it is new. */
static struct own_qp *
note_own(struct headend *h, struct destination *d, const struct in6_addr *host, uint32_t qpn,
         uint64_t now)
{
    struct own_qp *place;
    struct own_qp *q = find_own(h, d, host, qpn, &place);

    if (!q) {
        q = place;
        headend_unbind(q);
        *q = (struct own_qp){.peer = d, .qpn = qpn, .host = *host, .nak_at = UINT64_MAX};
    }
    q->used = now;
    return q;
}

/*
 * Flows.
 */

/* The flow makes room for another. */
static void
flow_leave(struct headend *h, struct flow *f, uint64_t now)
{
    struct destination *d = f->to;
    struct flow **p = &d->flows;

    if (f->going_to) {
        headend_finish(h, f, now);
    }
    while (*p != f) {
        p = &(*p)->next;
    }
    *p = f->next;
    if (f->path) {
        f->path->n_flows--;
    }
    if (in_flight_may_answer(&f->in_flight, f->in_flight.low, now)) {
        d->doubt_until = now + IN_FLIGHT_LIFE;
    }
    headend_unbind(f->own);
    deadlines_set(&h->deadlines, &f->deadline, UINT64_MAX, f);
    pacer_remove(&h->pacer, &f->held);
}

/* A queue pair has one peer, so that its host would tell nothing more. */
uint64_t
headend_hash(const struct destination *d, const struct seen *s)
{
    return hash_number(d->hash, (uint64_t) s->requests << 24 | s->dest_qp);
}

/* A flow that is new takes an entry of its set. */
static struct flow *
flow_begin(struct headend *h, struct flow *f, struct destination *d, const struct in6_addr *host,
           const struct seen *s, uint64_t hash, uint64_t now)
{
    if (f->to) {
        flow_leave(h, f, now);
    }
    *f = (struct flow){
        .to = d,
        .next = d->flows,
        .requests = s->requests,
        .dest_qp = s->dest_qp,
        .host = *host,
        .label = (uint8_t) hash,
        .used = now,
    };
    d->flows = f;
    return f;
}

struct flow *
headend_flow(struct headend *h, struct destination *d, const struct in6_addr *host,
             const struct seen *s, uint64_t now)
{
    uint64_t hash = headend_hash(d, s);
    struct flow *set = &h->flows[hash % HEADEND_SETS * HEADEND_SET_SIZE];
    struct flow *oldest = set;

    for (struct flow *f = set; f < set + HEADEND_SET_SIZE; f++) {
        if (f->to == d && f->dest_qp == s->dest_qp && f->requests == s->requests
            && IN6_ARE_ADDR_EQUAL(&f->host, host)) {
            f->gap = now - f->used;
            f->used = now;
            return f;
        }
    }
    for (struct flow *f = set; f < set + HEADEND_SET_SIZE; f++) {
        if (!f->to || (oldest->to && f->used < oldest->used)) {
            oldest = f;
        }
    }
    return flow_begin(h, oldest, d, host, s, hash, now);
}

void
headend_flow_take(struct flow *f, struct path *path)
{
    if (f->path == path) {
        return;
    }
    if (f->path) {
        f->path->n_flows--;
        path->n_moved++;
    }
    path->n_flows++;
    f->path = path;
}

bool
headend_flow_pauses(const struct flow *f, const struct seen *s)
{
    /* What it sent before it was watched may be under way. */
    bool idle = (f->in_flight.any && in_flight_is_idle(&f->in_flight)) || DEFECT(MOVE_IN_FLIGHT);

    return idle && roce_opcode_info(s->opcode)->flags & ROCE_F_START;
}

static void
request_sent(struct flow *f, const struct seen *s, uint64_t now)
{
    bool is_read = s->opcode == RC_READ_REQ;

    if (f->in_flight.any && psn_cmp(s->psn, f->in_flight.h) < 0) {
        f->back = true;
    }
    if (in_flight_is_idle(&f->in_flight)) {
        f->progress_at = now;
        f->n_told = 0;
    }
    if (!in_flight_sent(&f->in_flight, s->psn, is_read ? read_len(s) : 0, is_read, now)) {
        f->to->doubt_until = now + IN_FLIGHT_LIFE;
        headend_unbind(DEFECT(BINDING_KEPT) ? NULL : f->own);
    }
    if (psn_eq(psn_add(s->psn, 1), f->in_flight.h)) {
        f->asked = s->bth->ack_req & BTH_ACK_REQ || is_read
                   || roce_opcode_info(s->opcode)->flags & ROCE_F_ATOMIC;
    }
}

/* Is it not above the last one, or a NAK?  Then what the host had to hear of, or what it said, was lost. */
static bool
says_again(const struct last_answer *a, const struct seen *s)
{
    const struct aeth *aeth = aeth_of(s);

    return s->opcode == RC_ACK && aeth
           && (aeth->syndrome == AETH_NAK_PSN_SEQ
               || (aeth_class(aeth->syndrome) == AETH_CLASS_ACK && a->any
                   && psn_cmp(s->psn, a->psn) <= 0));
}

/* Notes the last answer.  A NAK stands until what it asks for has been served: a duplicate draws an ACK
 * of what is before it, and the NAK is never said again. */
static void
answer_sent(struct last_answer *a, const struct seen *s, uint64_t now)
{
    const struct udp_hdr *udp = (const void *) ((const uint8_t *) s->bth - sizeof *udp);
    const struct aeth *aeth = aeth_of(s);

    a->in_read = goes_on(s->opcode);
    if (s->opcode != RC_ACK || !aeth) {
        return;
    }
    if (a->any && aeth_class(a->syndrome) != AETH_CLASS_ACK
        && aeth_class(aeth->syndrome) == AETH_CLASS_ACK && psn_cmp(s->psn, a->psn) < 0) {
        return;
    }
    *a = (struct last_answer){
        .any = true,
        .syndrome = aeth->syndrome,
        .sport = be16_get(udp->sport),
        .psn = s->psn,
        .msn = be24_get(aeth->msn),
        .at = now,
    };
}

void
headend_flow_sent(struct headend *h, struct flow *f, const struct seen *s, uint64_t now)
{
    if (f->requests) {
        request_sent(f, s, now);
    } else if (s->bth) {
        if (says_again(&f->answered, s)) {
            headend_doubt(h, f->path, true, now);
        }
        answer_sent(&f->answered, s, now);
    }
}

/*
 * Answers.
 */

/* The only flow that the answer may be to, if there is one, and no doubt. */
static struct flow *
ascribe(struct destination *d, struct own_qp *q, uint64_t now)
{
    struct flow *found = NULL;
    size_t n_asked = 0, n_found = 0;

    if (now < q->try_at) {
        return NULL;
    }
    for (struct flow *f = d->flows; f; f = f->next, n_asked++) {
        if (f->requests && IN6_ARE_ADDR_EQUAL(&f->host, &q->host)
            && in_flight_may_answer(&f->in_flight, q->psn, now)) {
            f->in_flight.used = now;
            n_found++;
            found = f;
        }
    }
    if (n_found != 1 || now < d->doubt_until) {
        q->try_at = now + n_asked / ASKED_PER_USEC;
        return NULL;
    }
    bind_flow(q, found);
    return found;
}

/* The flow that the last answer to the queue pair was to; NULL: nobody knows. */
static struct flow *
flow_of(struct destination *d, struct own_qp *q, uint64_t now)
{
    struct flow *f = q->flow;

    if (f && in_flight_may_answer(&f->in_flight, q->psn, now)) {
        f->in_flight.used = now;
        return f;
    }
    headend_unbind(q);
    return ascribe(d, q, now);
}

/* The peer lacks what the flow has sent.  Once that follows from the switch. */
static void
nak_came(struct headend *h, struct flow *f, psn_t psn, uint64_t now)
{
    bool expected = f->switched && psn_cmp(psn, f->switch_h) < 0;

    f->switched = false;
    if (!expected) {
        headend_doubt(h, f->path, true, now);
    }
}

/* Likewise, of one of some flows. */
static void
nak_for_some(struct headend *h, const struct destination *d, const struct own_qp *q, uint64_t now)
{
    for (struct flow *f = d->flows; f; f = f->next) {
        if (f->requests && IN6_ARE_ADDR_EQUAL(&f->host, &q->host)
            && in_flight_may_answer(&f->in_flight, q->psn, now)) {
            headend_doubt(h, f->path, true, now);
        }
    }
}

/* An answer of the destination. */
static void
answered(struct headend *h, struct destination *d, const struct in6_addr *host,
         const struct seen *s, uint64_t now)
{
    struct own_qp *q = note_own(h, d, host, s->dest_qp, now);
    const struct aeth *aeth = aeth_of(s);
    bool nak = aeth && aeth_class(aeth->syndrome) != AETH_CLASS_ACK;
    bool lost = nak && aeth->syndrome == AETH_NAK_PSN_SEQ;

    if (nak) {
        q->back |= lost;
    } else if (psn_cmp(psn_add(s->psn, 1), q->una) > 0) {
        q->back = false;
    }
    q->psn = s->psn;
    q->una = psn_add(s->psn, nak ? 0 : 1);
    q->msn = aeth ? be24_get(aeth->msn) : q->msn;
    q->in_read = goes_on(s->opcode);
    struct flow *f = flow_of(d, q, now);
    if (!f) {
        if (lost) {
            nak_for_some(h, d, q, now);
        }
        return;
    }
    if (psn_cmp(q->una, f->in_flight.una) > 0) {
        f->progress_at = now;
        f->n_told = 0;
        f->back = f->back && nak;
    }
    in_flight_answered(&f->in_flight, q->una);
    if (lost) {
        nak_came(h, f, s->psn, now);
    }
    headend_progress(h, f, q, now);
}

/* A CNP of the destination. */
static void
cnp_came(struct headend *h, const struct destination *d, const struct in6_addr *host,
         const struct seen *s, uint64_t now)
{
    struct own_qp *place;
    const struct own_qp *q = find_own(h, d, host, s->dest_qp, &place);

    if (q && q->flow) {
        headend_signal(h, q->flow, &in6addr_any, now);
    }
}

void
headend_note_arrival(struct headend *h, const uint8_t *ip_, size_t len, uint64_t now)
{
    const struct ip6_hdr_wire *ip = (const void *) ip_;

    if (!h->tracks) {
        return;
    }
    struct destination *d = headend_find(h, &ip->src);
    const struct seen s = headend_look(ip_, len);
    if (!d || !headend_tracks(d) || !s.bth || !l3_host_port(h->base->l3, &ip->dst)) {
        return;
    }
    if (s.opcode == ROCE_CNP) {
        cnp_came(h, d, &ip->dst, &s, now);
    } else if (roce_opcode_info(s.opcode)->flags & ROCE_F_RESPONSE) {
        answered(h, d, &ip->dst, &s, now);
    }
}
