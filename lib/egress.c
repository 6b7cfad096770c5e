/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue in front of a port's rate.
 *
 * Theory of operation
 * -------------------
 * Frames are in one list, in the order in which they came: first those that have left but were not
 * fetched yet, then, from 'head' on, those that wait.  'leaves' is when the one at 'head' has been
 * sent.  Every call first goes to its time: frames leave one after the other, and each is marked by
 * what is behind it then.  Nothing came in between, or there would have been a call, so a frame's
 * mark does not depend on when it is fetched.
 *
 * When less than an eighth of the pool is free, a frame finds the queue full whatever its limit:
 * slow ports leave buffers to the others, and to what keeps the node going.
 */
#include "lib/egress.h"

#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/ecn.h"
#include "lib/prng.h"
#include "lib/wire.h"

/* What struct packet's 'red' says of a frame in a queue. */
enum red { RED_NOTHING, RED_MAY_MARK, RED_HAS_MARKED };

struct egress {
    struct egress_params params;
    uint64_t random;
    uint64_t leaves;      /* ns. */
    struct packet *left;  /* first that has left, or 'head'. */
    struct packet *head;  /* first that waits: it is being sent. */
    struct packet **last; /* where the next frame goes. */
    struct egress_stats stats;
};

struct egress *
egress_create(const struct egress_params *params, uint64_t seed)
{
    struct egress *e = must_calloc(1, sizeof *e);

    e->params = *params;
    e->random = seed;
    e->last = &e->left;
    return e;
}

void
egress_destroy(struct egress *e)
{
    if (!e) {
        return;
    }
    while (e->left) {
        struct packet *p = e->left;

        e->left = p->next;
        packet_put(p);
    }
    free(e);
}

/* ns that a frame takes. */
static uint64_t
time_of(const struct egress *e, const struct packet *p)
{
    return packet_size(p) * 8 * UINT64_C(1000000000) / e->params.rate;
}

/* The first time at which the frame at 'head' has left. */
static uint64_t
leaves_usec(const struct egress *e)
{
    return e->leaves / 1000 + (e->leaves % 1000 > 0);
}

/* RED's share of a depth, of a million. */
static uint32_t
share(const struct egress_params *c, uint32_t depth)
{
    if (!c->kmax || depth <= c->kmin) {
        return 0;
    }
    if (depth > c->kmax) {
        return EGRESS_PPM;
    }
    return (uint32_t) ((uint64_t) c->pmax * (depth - c->kmin) / (c->kmax - c->kmin));
}

static bool
red_hits(struct egress *e, uint32_t depth)
{
    uint32_t p = share(&e->params, depth);

    return p && prng_below(&e->random, EGRESS_PPM) < p;
}

uint8_t
egress_ecn(const struct packet *p)
{
    const struct eth_hdr *eth = (const void *) p->data;
    const struct ip6_hdr_wire *ip = (const void *) (eth + 1);

    if (p->len < sizeof *eth + sizeof *ip || be16_get(eth->type) != ETH_TYPE_IP6) {
        return ECN_NOT_ECT;
    }
    return ip6_tc(ip) & ECN_MASK;
}

static void
set_ce(struct packet *p)
{
    struct ip6_hdr_wire *ip = (void *) (p->data + sizeof(struct eth_hdr));

    ip6_set_vtf(ip, ip6_tc(ip) | ECN_CE, ip6_flow_label(ip));
}

/* The frame at 'head' leaves. */
static void
leave(struct egress *e)
{
    struct packet *p = e->head;

    e->stats.depth--;
    e->stats.depth_bytes -= packet_size(p);
    e->stats.n_sent++;
    e->stats.n_sent_bytes += packet_size(p);
    if (p->red == RED_MAY_MARK && red_hits(e, e->stats.depth)) {
        set_ce(p);
        p->red = RED_HAS_MARKED;
        e->stats.n_marked++;
    }
    e->head = p->next;
    if (e->head) {
        e->leaves += time_of(e, e->head);
    }
}

static void
go_to(struct egress *e, uint64_t now)
{
    while (e->head && leaves_usec(e) <= now) {
        leave(e);
    }
}

void
egress_configure(struct egress *e, const struct egress_params *params, uint64_t now)
{
    uint64_t now_ns = now * 1000;

    go_to(e, now);
    if (e->head && e->leaves > now_ns) {
        /* At most the bits of one frame, times 10^9. */
        e->leaves = now_ns + (e->leaves - now_ns) * e->params.rate / params->rate;
    }
    e->params = *params;
}

bool
egress_has_red(const struct egress *e)
{
    return e->params.kmax != 0;
}

/* A mark that a frame came with is not ours. */
static bool
may_mark(const struct packet *p, enum egress_kind kind)
{
    uint8_t ecn = egress_ecn(p);

    return kind == EGRESS_MARKABLE && ecn != ECN_NOT_ECT && ecn != ECN_CE;
}

static bool
is_full(const struct egress *e, const struct packet *p)
{
    return e->stats.depth >= e->params.limit
           || packet_pool_n_free(p->pool) < packet_pool_size(p->pool) / 8;
}

static void
append(struct egress *e, struct packet *p, uint64_t now)
{
    struct egress_stats *s = &e->stats;

    p->next = NULL;
    *e->last = p;
    e->last = &p->next;
    if (!e->head) {
        e->head = p;
        e->leaves = now * 1000 + time_of(e, p);
    }
    s->depth++;
    s->depth_bytes += packet_size(p);
    s->max_depth = s->depth > s->max_depth ? s->depth : s->max_depth;
    s->max_depth_bytes = s->depth_bytes > s->max_depth_bytes ? s->depth_bytes : s->max_depth_bytes;
}

enum egress_result
egress_put(struct egress *e, struct packet *p, enum egress_kind kind, uint64_t now, bool *congested)
{
    go_to(e, now);
    *congested = kind != EGRESS_EXEMPT && red_hits(e, e->stats.depth);
    e->stats.n_frames++;
    e->stats.n_bytes += packet_size(p);
    e->stats.n_congested += *congested;
    if (is_full(e, p)) {
        e->stats.n_full++;
        return EGRESS_FULL;
    }
    if (*congested && kind == EGRESS_NOT_ECT) {
        e->stats.n_red++;
        return EGRESS_RED;
    }
    p->red = may_mark(p, kind) ? RED_MAY_MARK : RED_NOTHING;
    append(e, p, now);
    return EGRESS_QUEUED;
}

struct packet *
egress_get(struct egress *e, uint64_t now, bool *marked)
{
    go_to(e, now);
    struct packet *p = e->left;
    if (p == e->head) {
        return NULL;
    }
    e->left = p->next;
    if (!e->left) {
        e->last = &e->left;
    }
    p->next = NULL;
    *marked = p->red == RED_HAS_MARKED;
    return p;
}

uint64_t
egress_deadline(const struct egress *e)
{
    if (e->left != e->head) {
        return 0;
    }
    return e->head ? leaves_usec(e) : UINT64_MAX;
}

void
egress_get_stats(const struct egress *e, struct egress_stats *stats)
{
    *stats = e->stats;
}
