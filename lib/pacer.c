/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows that leave at a rate each.
 *
 * Theory of operation.  A flow has a token bucket, kept as the time 'next' at which its next packet
 * may leave.  A packet of S bytes moves it on by S * 8 / R, from no earlier than now - burst, and no
 * more than burst * R / (S * 8) + 1 packets leave at once.  The burst is small for a flow that had
 * nothing to send.  For packets that wait it is longer, since then it is the caller that is late: on a
 * machine whose timers are some milliseconds late a flow would otherwise have less than its rate,
 * whatever that is.  The remainder of the division is kept, so a rate is exact over any time.
 *
 * The order inside a flow is that in which its sender has sent last.  An RC requester sends PSNs in
 * order, and goes back to a PSN after a NAK or a time-out; then it sends everything from there on
 * again.  When that happens some of what it sends again has left and some still waits.  Say 100 to
 * 110 wait and 95 comes:
 *
 *   - Behind 110, 95 would be late by the whole queue, and 100 to 110 would be lost on receivers
 *     that wait for 95.  Coming again they would find themselves in the queue, so they would be
 *     missing behind 99 once more.
 *   - In front of 100 it is right only if 96 to 99 come before the next packet is due.  If not, 100
 *     leaves behind 95, and the receivers ask for 96.
 *   - So the queue from that PSN on is freed and the packet put at its end.  What leaves next is
 *     what the sender sends next, and receivers see no gap that the sender has not made.  If the
 *     sender goes back to 105, 100 to 104 stay and 105 has the place that it had.
 *
 * This loses nothing: what is freed comes again, and if its sender has got an acknowledgement
 * meanwhile and goes on behind it, nobody needs it.
 *
 * Only RC requests are treated so: other packets never come again, and several UD queue pairs, each
 * with its own PSNs, may be one flow.  These are first in, first out.
 */
#include "lib/pacer.h"

#include <assert.h>

#include "lib/roce.h"

#define NSEC_PER_USEC 1000
#define NSEC_PER_SEC  UINT64_C(1000000000)

#define SAVED_MAX     2 /* packets. */

static uint64_t
max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void
pacer_init(struct pacer *pacer)
{
    *pacer = (struct pacer){0};
}

void
pacer_uninit(struct pacer *pacer)
{
    assert(!pacer->n_flows && !pacer->n_waiting);
    deadlines_uninit(&pacer->deadlines);
}

/* Makes room for the flow's deadline, once. */
static void
remember(struct pacer *pacer, struct pacer_flow *flow)
{
    if (!flow->is_known) {
        flow->is_known = true;
        deadlines_reserve(&pacer->deadlines, ++pacer->n_flows);
    }
}

static const struct bth *
bth_of(const struct packet *p)
{
    const struct bth *bth = (const struct bth *) (p->data + IP6_HDR_LEN + sizeof(struct udp_hdr));

    assert(p->len >= IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof *bth);
    return bth;
}

/* Does its sender send it again, with all that follows, if it gets lost? */
static bool
may_come_again(const struct bth *bth)
{
    return ROCE_TRANSPORT(bth->opcode) == ROCE_TRANSPORT_RC
           && roce_opcode_info(bth->opcode)->flags & ROCE_F_REQUEST;
}

/* A packet of 'frame' bytes leaves: 'next' moves on. */
static void
charge(struct pacer_flow *flow, uint32_t frame, unsigned max_saved, uint64_t now)
{
    if (!flow->rate) {
        return;
    }
    uint64_t work = (uint64_t) frame * 8 * NSEC_PER_SEC; /* in units of 1/R nanoseconds. */
    uint64_t burst = max_u64(max_saved * work / flow->rate, PACER_BURST_USEC * NSEC_PER_USEC);
    uint64_t now_nsec = now * NSEC_PER_USEC;

    if (flow->next + burst < now_nsec) {
        flow->next = now_nsec - burst;
        flow->rest = 0;
    }
    work += flow->rest;
    flow->next += work / flow->rate;
    flow->rest = work % flow->rate;
}

static void
update_deadline(struct pacer *pacer, struct pacer_flow *flow)
{
    uint64_t when = UINT64_MAX;

    if (flow->n && !flow->stopped) {
        when = flow->rate ? (flow->next + NSEC_PER_USEC - 1) / NSEC_PER_USEC : 0;
    }
    deadlines_set(&pacer->deadlines, &flow->deadline, when, flow);
}

/* Frees all that waits behind 'last'; NULL: all. */
static uint32_t
free_behind(struct pacer *pacer, struct pacer_flow *flow, struct packet *last)
{
    struct packet **rest = last ? &last->next : &flow->head;
    uint32_t n = 0;
    struct packet *p;

    while ((p = *rest) != NULL) {
        *rest = p->next;
        packet_put(p);
        n++;
    }
    flow->tail = last;
    flow->n -= n;
    pacer->n_waiting -= n;
    return n;
}

/* The sender has gone back to 'psn', if that is not behind all that waits. */
static void
go_back(struct pacer *pacer, struct pacer_flow *flow, psn_t psn)
{
    if (!flow->tail || psn_cmp(bth_psn(bth_of(flow->tail)), psn) < 0) {
        return;
    }
    struct packet *last = NULL;

    for (struct packet *p = flow->head; psn_cmp(bth_psn(bth_of(p)), psn) < 0; p = p->next) {
        last = p;
    }
    flow->n_replaced += free_behind(pacer, flow, last);
}

/* The first packet gives its place to a later one. */
static void
replace_first(struct pacer *pacer, struct pacer_flow *flow)
{
    struct packet *p = flow->head;

    flow->head = p->next;
    packet_put(p);
    flow->n--;
    pacer->n_waiting--;
    flow->n_replaced++;
}

bool
pacer_must_wait(const struct pacer_flow *flow, uint64_t now)
{
    return flow->n || flow->stopped || (flow->rate && flow->next > now * NSEC_PER_USEC);
}

bool
pacer_put(struct pacer *pacer, struct pacer_flow *flow, struct packet *p, uint32_t frame,
          uint64_t now)
{
    (void) now;
    const struct bth *bth = bth_of(p);

    if (may_come_again(bth)) {
        go_back(pacer, flow, bth_psn(bth));
    }
    /* Its requester has no more in flight: the first one was sent again, and confirmed meanwhile. */
    if (flow->n == PACER_QUEUE_MAX && may_come_again(bth) && !flow->stopped) {
        replace_first(pacer, flow);
    }
    if (flow->n == PACER_QUEUE_MAX) {
        packet_put(p);
        flow->n_full++;
        return false;
    }
    remember(pacer, flow);
    p->next = NULL;
    *(flow->tail ? &flow->tail->next : &flow->head) = p;
    flow->tail = p;
    flow->n++;
    pacer->n_waiting++;
    flow->n_delayed++;
    flow->max_n = flow->n > flow->max_n ? flow->n : flow->max_n;
    flow->overhead = frame - (uint32_t) packet_size(p);
    update_deadline(pacer, flow);
    return true;
}

void
pacer_sent(struct pacer_flow *flow, uint32_t frame, uint64_t now)
{
    charge(flow, frame, SAVED_MAX, now);
}

void
pacer_set_rate(struct pacer *pacer, struct pacer_flow *flow, uint64_t rate, uint64_t now)
{
    if (rate == flow->rate) {
        return;
    }
    if (!flow->rate) {
        flow->next = now * NSEC_PER_USEC; /* it has saved up nothing. */
    }
    remember(pacer, flow);
    flow->rate = rate;
    flow->rest = 0;
    update_deadline(pacer, flow);
}

void
pacer_stop(struct pacer *pacer, struct pacer_flow *flow, bool stopped)
{
    flow->stopped = stopped;
    update_deadline(pacer, flow);
}

void
pacer_remove(struct pacer *pacer, struct pacer_flow *flow)
{
    free_behind(pacer, flow, NULL);
    update_deadline(pacer, flow);
    pacer->n_flows -= flow->is_known;
    *flow = (struct pacer_flow){.owner = flow->owner};
}

uint64_t
pacer_deadline(const struct pacer *pacer)
{
    return deadlines_first(&pacer->deadlines);
}

struct packet *
pacer_get(struct pacer *pacer, uint64_t now, struct pacer_flow **flowp)
{
    struct pacer_flow *flow = deadlines_due(&pacer->deadlines, now);

    if (!flow) {
        return NULL;
    }
    struct packet *p = flow->head;

    flow->head = p->next;
    if (!flow->head) {
        flow->tail = NULL;
    }
    p->next = NULL;
    flow->n--;
    pacer->n_waiting--;
    charge(flow, (uint32_t) packet_size(p) + flow->overhead, PACER_LATE_MAX - 1, now);
    update_deadline(pacer, flow);
    *flowp = flow;
    return p;
}
