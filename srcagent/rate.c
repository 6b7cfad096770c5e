/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the host's flows leave.
 *
 * Theory of operation
 * -------------------
 * A flow is what the host sends to one queue pair: the requests of a group epoch, or those with
 * one (destination address, DestQP) elsewhere.  That pair is all that a Fast CNP says.  A flow
 * leaves as it comes until it is told of congestion.  Then lib/rate-control.c has a rate for it,
 * and lib/pacer.c a queue.
 *
 *     host -> [waits in the pacer] -> down_admit() or headend_forward()
 *
 * What waits has not been looked at but for what flow it is of: PSNs are believed, refused and
 * counted when packets leave.  So nobody awaits an answer for what is still here.  A closed group
 * is a flow that is stopped, whatever its rate.
 *
 * Frames come from the host as fast as it likes and are all taken: a tap that is not read would
 * lose them without a word, and those of other flows with them.  A requester has at most
 * PACER_QUEUE_MAX packets in flight; beyond that, or if all flows together have AGENT_QUEUE_TOTAL,
 * a packet is dropped and counted.  The others of the host's packets overtake: responses, RDMA-CM,
 * neighbour discovery and all flows that are not slowed down.
 *
 * Rates are of Ethernet frames without FCS as the host sends them.  That is also what a receiver's
 * link carries; on the uplink there is the encapsulation in addition.
 *
 * Flows that are no group's become known by their packets.  The table is as large as it is; in a
 * full set the flow takes the place of the one that has been silent for longest.  One that is
 * limited is not overwritten, since it would be back at its full speed with its next packet.  If all
 * are limited the new flow is not noted, and cannot be slowed down until one of them is idle.  A
 * flow that was overwritten is noted again with its next packet.
 */
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/cnp.h"
#include "lib/hash-index.h"
#include "lib/headend.h"
#include "lib/ioam.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

/* Has the agent rates to control?  A line rate of 0 is one that nobody knows. */
static bool
controls(const struct rates *r)
{
    return r->config.rate_control == RATE_BY_AGENT && r->config.rate.line;
}

/* Can a Fast CNP about other flows than groups' be of use?  A CNP for a NIC cannot be made of it:
 * no packet of such a flow says what the source's QPN is. */
static bool
notes_unicast(const struct rates *r)
{
    return r->config.fast_cnp && r->config.rate_control != RATE_BY_NIC;
}

/* The flow's controller has changed. */
static void
update(struct rates *r, struct flow *f, uint64_t now)
{
    uint64_t rate = rate_control_rate(&f->control);

    if (rate && rate < f->params->floor) {
        rate = f->params->floor; /* it was raised meanwhile. */
    }
    pacer_set_rate(&r->pacer, &f->pacing, rate, now);
    deadlines_set(&r->deadlines, &f->deadline, rate_control_deadline(&f->control), f);
}

/*
 * Life of flows.
 */

/* Nothing refers to the flow any more, and nothing of it waits. */
static void
flow_uninit(struct rates *r, struct flow *f)
{
    deadlines_set(&r->deadlines, &f->deadline, UINT64_MAX, f);
    pacer_remove(&r->pacer, &f->pacing);
}

void
rate_uninit(struct srcagent *sa)
{
    struct rates *r = &sa->rates;

    for (size_t i = 0; i < FLOW_TABLE; i++) {
        flow_uninit(r, &r->unicast[i]);
    }
    pacer_uninit(&r->pacer);
    deadlines_uninit(&r->deadlines);
    free(r->config.queue_rates);
}

static void
forget_control(struct rates *r, struct flow *f, uint64_t now)
{
    f->control = (struct rate_control){.active = false};
    update(r, f, now);
}

void
rate_configure(struct srcagent *sa, const struct node_config *config, uint64_t now)
{
    struct rates *r = &sa->rates;
    bool controlled = controls(r);
    size_t n_flows = FLOW_TABLE + sa->sources.n + config->n_trees;

    free(r->config.queue_rates);
    r->config = config->congestion;
    r->config.capable = NULL;
    r->config.n_capable = 0;
    r->config.trusted = NULL;
    r->config.n_trusted = 0;
    r->config.queue_rates = must_copy(config->congestion.queue_rates, r->config.n_queue_rates,
                                      sizeof *r->config.queue_rates);
    deadlines_reserve(&r->deadlines, n_flows);
    deadlines_reserve(&r->pacer.deadlines, n_flows);
    if (!controlled || controls(r)) {
        return;
    }
    for (size_t i = 0; i < FLOW_TABLE; i++) {
        if (r->unicast[i].params) {
            forget_control(r, &r->unicast[i], now);
        }
    }
    for (size_t i = 0; i < sa->sources.n; i++) {
        forget_control(r, &sa->sources.v[i]->flow, now);
    }
}

static void
flow_init(struct flow *f, const struct in6_addr *dst, uint32_t dest_qp,
          const struct rate_params *params)
{
    *f = (struct flow){.dst = *dst, .dest_qp = dest_qp, .params = params, .pacing = {.owner = f}};
}

void
rate_tree_configure(struct srcagent *sa, struct source *t, uint64_t now)
{
    const struct tree_config *c = &t->config;
    struct rates *r = &sa->rates;
    struct flow *f = &t->flow;

    if (!f->tree) {
        flow_init(f, &c->proxy, c->designated_qpn, &t->rate_params);
        f->tree = t;
    }
    t->rate_params = r->config.rate;
    if (t->rate_params.floor < c->rate_floor) {
        t->rate_params.floor =
            c->rate_floor < t->rate_params.line ? c->rate_floor : t->rate_params.line;
    }
    update(r, f, now);
    rate_tree_stop(sa, t);
}

void
rate_tree_stop(struct srcagent *sa, struct source *t)
{
    pacer_stop(&sa->rates.pacer, &t->flow.pacing,
               !tree_config_passes(&t->config) || t->drain.holds);
}

void
rate_tree_remove(struct srcagent *sa, struct source *t)
{
    flow_uninit(&sa->rates, &t->flow);
}

/* Where the flow would be. */
static struct flow *
set_of(struct rates *r, const struct in6_addr *dst, uint32_t dest_qp)
{
    return &r->unicast[hash_number(hash_addr(0, dst), dest_qp) % FLOW_SETS * FLOW_SET_SIZE];
}

/* An entry that was never used has no parameters. */
static struct flow *
find_unicast(struct rates *r, const struct in6_addr *dst, uint32_t dest_qp)
{
    struct flow *set = set_of(r, dst, dest_qp);

    for (size_t i = 0; i < FLOW_SET_SIZE; i++) {
        if (set[i].params && set[i].dest_qp == dest_qp && IN6_ARE_ADDR_EQUAL(&set[i].dst, dst)) {
            return &set[i];
        }
    }
    return NULL;
}

struct flow *
rate_find(struct srcagent *sa, const struct in6_addr *dst, uint32_t dest_qp)
{
    struct source *t = addr_map_find(sa->sources.by_key, dst, dest_qp);

    return t ? &t->flow : notes_unicast(&sa->rates) ? find_unicast(&sa->rates, dst, dest_qp) : NULL;
}

/* A place for a flow that is not in the table; NULL: there is none. */
static struct flow *
place_for(struct rates *r, const struct in6_addr *dst, uint32_t dest_qp)
{
    struct flow *set = set_of(r, dst, dest_qp);
    struct flow *oldest = NULL;

    for (size_t i = 0; i < FLOW_SET_SIZE; i++) {
        if (flow_is_free(&set[i]) && (!oldest || set[i].used < oldest->used)) {
            oldest = &set[i];
        }
    }
    return oldest;
}

/* May this packet have to wait with others of its flow?  Requests may, whatever they carry, since
 * they have to stay in order.  Those of RDMA-CM (to QP 1) may not. */
static bool
is_request(const struct parsed *h, uint32_t dest_qp)
{
    if (!h->bth_ofs || h->ip.n_ext || h->inner.ofs) {
        return false;
    }
    switch (ROCE_TRANSPORT(h->opcode)) {
    case ROCE_TRANSPORT_RC: return roce_opcode_info(h->opcode)->flags & ROCE_F_REQUEST;
    case ROCE_TRANSPORT_UC: return true;
    case ROCE_TRANSPORT_UD: return dest_qp > 1;
    default: return false;
    }
}

struct flow *
rate_note(struct srcagent *sa, const struct rx *rx)
{
    struct rates *r = &sa->rates;

    /* When no more are noted, those that wait are not overtaken. */
    if (!rx->h.bth_ofs || (!notes_unicast(r) && !r->pacer.n_waiting)) {
        return NULL;
    }
    const struct in6_addr *dst = &rx_ip(rx)->dst;
    uint32_t dest_qp = be24_get(((const struct bth *) rx_at(rx, rx->h.bth_ofs))->dest_qp);
    if (!is_request(&rx->h, dest_qp)) {
        return NULL;
    }
    struct flow *f = find_unicast(r, dst, dest_qp);
    if (!f && notes_unicast(r) && rx->h.payload_len && (f = place_for(r, dst, dest_qp))) {
        flow_uninit(r, f); /* what it was before. */
        flow_init(f, dst, dest_qp, &r->config.rate);
    }
    if (!f) {
        return NULL;
    }
    f->used = rx->now;
    return flow_is_free(f) ? NULL : f;
}

/*
 * Packets.
 */

/* A packet of the flow that is so long has its turn. */
static void
note_sent(struct rates *r, struct flow *f, size_t len, uint64_t now)
{
    if (f->pacing.rate) {
        rate_control_sent(&f->control, f->params, (uint32_t) (sizeof(struct eth_hdr) + len), now);
        update(r, f, now);
    }
}

static enum drop_reason
leave(struct srcagent *sa, struct flow *f, struct packet *p, uint64_t now)
{
    struct parsed h;

    if (f->tree) {
        return down_admit(sa, f->tree, p, now);
    }
    packet_push(p, sizeof(struct eth_hdr)); /* which it came with. */
    enum drop_reason why = parse_outer(p->data, p->len, &h);
    if (why) {
        packet_put(p);
        return why;
    }
    return headend_forward(sa->base.headend, p, &h, now);
}

/* An eighth of the buffers stays for what does not wait, also in a small pool. */
static bool
may_keep(const struct srcagent *sa)
{
    const struct packet_pool *pool = sa->base.pool;

    return sa->rates.pacer.n_waiting < AGENT_QUEUE_TOTAL
           && packet_pool_n_free(pool) >= packet_pool_size(pool) / 8;
}

enum drop_reason
rate_send(struct srcagent *sa, struct flow *f, struct packet *p, uint64_t now)
{
    struct rates *r = &sa->rates;
    uint32_t frame = (uint32_t) sizeof(struct eth_hdr) + p->len;

    if (!pacer_must_wait(&f->pacing, now)) {
        pacer_sent(&f->pacing, frame, now);
        note_sent(r, f, p->len, now);
        return leave(sa, f, p, now);
    }
    bool closed = f->tree && !tree_config_passes(&f->tree->config);
    TRACE(&sa->base.tracer, "%s: %u packets of its flow wait",
          closed                            ? "the group is not open"
          : f->tree && f->tree->drain.holds ? "the group changes its plane"
                                            : "slowed down",
          f->pacing.n);
    if (!may_keep(sa)) {
        packet_put(p);
    } else if (pacer_put(&r->pacer, &f->pacing, p, frame, now)) {
        return DROP_none;
    }
    return closed ? DROP_group_closed : DROP_pacer_full;
}

uint64_t
rate_deadline(const struct srcagent *sa)
{
    uint64_t control = deadlines_first(&sa->rates.deadlines);
    uint64_t pacer = pacer_deadline(&sa->rates.pacer);

    return control < pacer ? control : pacer;
}

void
rate_timer(struct srcagent *sa, uint64_t now)
{
    struct rates *r = &sa->rates;
    struct pacer_flow *pacing;
    struct packet *p;
    struct flow *f;

    while ((f = deadlines_due(&r->deadlines, now))) {
        rate_control_timer(&f->control, f->params, now);
        update(r, f, now);
    }
    while ((p = pacer_get(&r->pacer, now, &pacing))) {
        f = pacing->owner;
        note_sent(r, f, p->len, now);
        node_count_drop(&sa->base, leave(sa, f, p, now));
    }
}

/*
 * Signals.
 */

static void
tell(struct rates *r, struct flow *f, const struct rate_signal *signal, const struct in6_addr *node,
     uint64_t now)
{
    if (!controls(r)) {
        return;
    }
    if (rate_control_signal(&f->control, f->params, signal, now)) {
        f->last_cause = signal->cause;
        f->last_node = *node;
        f->last_depth = signal->has_depth ? signal->queue_bytes : 0;
    }
    update(r, f, now);
}

/* A CNP for the source's queue pair, from the group. */
static enum drop_reason
send_cnp(struct srcagent *sa, const struct source *t, uint64_t now)
{
    const struct tree_config *c = &t->config;

    if (!source_may_answer(sa, t)) {
        return DROP_stale_epoch;
    }
    struct packet *p =
        cnp_build(sa->base.pool, &c->proxy, &c->source, t->aggregate->sport, c->source_qpn);
    return p ? l3_output(sa->base.l3, p, L3_ERRORS_NONE, now) : DROP_pool_empty;
}

enum drop_reason
rate_cnp(struct srcagent *sa, struct source *t, const struct packet *cnp, uint64_t now)
{
    const struct rate_signal signal = {.cause = RATE_CNP};

    t->flow.n_cnps++;
    if (sa->rates.config.rate_control == RATE_BY_NIC) {
        return cnp ? DROP_none : send_cnp(sa, t, now);
    }
    tell(&sa->rates, &t->flow, &signal, &in6addr_any, now);
    return DROP_cnp;
}

/* How fast a node's queue is emptied; 0: nobody knows. */
static uint64_t
rate_of_queue(const struct rates *r, uint32_t node_id)
{
    struct queue_rate key = {.node = (uint16_t) node_id};
    const struct queue_rate *found = NULL;

    if (r->config.n_queue_rates && key.node == node_id) {
        found = bsearch(&key, r->config.queue_rates, r->config.n_queue_rates, sizeof key,
                        queue_rate_compare);
    }
    return found ? found->rate : 0;
}

/* What the trace, if there is one, says of the queue on the way that takes longest to empty; of the
 * deepest one, if nobody knows how long any of them takes. */
static struct rate_signal
fast_cnp_signal(const struct rates *r, const struct fast_cnp *said)
{
    struct rate_signal signal = {.cause = RATE_FAST_CNP};
    struct ioam_element element;
    uint64_t longest = 0; /* nanoseconds; bytes, as long as no rate is known. */

    for (unsigned i = 0; said->trace && ioam_read(said->trace, said->trace_len, i, &element); i++) {
        uint64_t rate = rate_of_queue(r, element.node_id);

        if (element.queue_bytes == UINT32_MAX || (!rate && signal.queue_rate)) {
            continue; /* the node cannot say, or others say more. */
        }
        uint64_t time =
            rate ? element.queue_bytes * UINT64_C(8000000) / (rate / 1000) : element.queue_bytes;

        if ((rate && !signal.queue_rate) || time >= longest) {
            longest = time;
            signal.has_depth = true;
            signal.queue_bytes = element.queue_bytes;
            signal.queue_rate = rate;
        }
    }
    return signal;
}

enum drop_reason
rate_fast_cnp(struct srcagent *sa, struct flow *f, const struct fast_cnp *said, uint64_t now)
{
    struct rates *r = &sa->rates;

    if (f->n_fast_cnps && now < f->fast_cnp_at + r->config.interval_usec) {
        return DROP_fast_cnp_soon;
    }
    f->n_fast_cnps++;
    f->fast_cnp_at = now;
    if (r->config.rate_control == RATE_BY_NIC) {
        /* It is a group's: others are not known. */
        node_count_drop(&sa->base, send_cnp(sa, f->tree, now));
    } else {
        const struct rate_signal signal = fast_cnp_signal(r, said);

        tell(r, f, &signal, &said->node, now);
    }
    return DROP_fast_cnp;
}

/*
 * Display: flows that were told of congestion, groups' first.
 */

/* Flow 'i' of those; *n is how many there are up to it. */
static const struct flow *
find_told(const struct srcagent *sa, size_t i, size_t *n)
{
    *n = 0;
    for (size_t j = 0; j < sa->sources.n + FLOW_TABLE; j++) {
        const struct flow *f =
            j < sa->sources.n ? &sa->sources.v[j]->flow : &sa->rates.unicast[j - sa->sources.n];

        if ((f->n_cnps || f->n_fast_cnps) && (*n)++ == i) {
            return f;
        }
    }
    return NULL;
}

size_t
rate_n_flows(const void *sa)
{
    size_t n;

    find_told(sa, SIZE_MAX, &n);
    return n;
}

void
rate_flow(const void *sa, size_t i, struct flow_info *info)
{
    size_t n;
    const struct flow *f = find_told(sa, i, &n);

    *info = (struct flow_info){
        .dst = f->dst,
        .dest_qp = f->dest_qp,
        .group = f->tree ? f->tree->config.group : NULL,
        .rate = f->pacing.rate,
        .n_waiting = f->pacing.n,
        .max_waiting = f->pacing.max_n,
        .n_delayed = f->pacing.n_delayed,
        .n_replaced = f->pacing.n_replaced,
        .n_cnps = f->n_cnps,
        .n_fast_cnps = f->n_fast_cnps,
        .n_cuts = f->control.n_cuts,
        .last_cut = f->control.last_cut,
        .last_cause = f->last_cause,
        .last_node = f->last_node,
        .last_depth = f->last_depth,
    };
}
