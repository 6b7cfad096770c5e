/* SPDX-License-Identifier: Apache-2.0
 *
 * How many Fast CNPs a node makes.
 *
 * What was sent is in a ring, the newest in the place of the oldest.  Two sets of chains go through
 * it, by flow and by sender, each from the newest to the oldest.  A link is the number of a packet
 * sent, counted from 1: one of a packet that is no longer in the ring ends the chain, and so does
 * one that was sent an interval ago.
 */
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/fast-cnp.h"
#include "lib/hash-index.h"

#define N_UNWANTED  64 /* senders; the oldest is overwritten. */
#define SECOND_USEC UINT64_C(1000000)

struct sent {
    struct in6_addr sender, original;
    uint32_t dest_qp;
    uint64_t at;
    uint64_t by_flow, by_sender; /* the one before in the chain; 0: none. */
};

struct fast_cnp_limit {
    uint32_t interval_usec, per_second;
    uint64_t n_sent;
    struct sent ring[FAST_CNP_FLOWS];
    uint64_t flows[FAST_CNP_FLOWS]; /* the newest of each chain. */
    uint64_t senders[FAST_CNP_FLOWS];

    uint64_t second_began; /* the node's limit counts in such seconds. */
    uint32_t n_second;

    struct {
        struct in6_addr sender;
        uint64_t until;
    } unwanted[N_UNWANTED];
    uint64_t n_unwanted; /* so far. */
};

struct fast_cnp_limit *
fast_cnp_limit_create(void)
{
    return must_calloc(1, sizeof(struct fast_cnp_limit));
}

void
fast_cnp_limit_destroy(struct fast_cnp_limit *l)
{
    free(l);
}

void
fast_cnp_limit_configure(struct fast_cnp_limit *l, uint32_t interval_usec, uint32_t per_second)
{
    l->interval_usec = interval_usec;
    l->per_second = per_second;
}

/* Packet number 'n' if it was sent in this interval, or NULL. */
static struct sent *
sent_lately(struct fast_cnp_limit *l, uint64_t n, uint64_t now)
{
    if (!n || l->n_sent - n >= FAST_CNP_FLOWS) {
        return NULL;
    }
    struct sent *s = &l->ring[n % FAST_CNP_FLOWS];
    return now - s->at < l->interval_usec ? s : NULL;
}

static bool
flow_had_one(struct fast_cnp_limit *l, uint64_t newest, const struct sent *flow)
{
    const struct sent *s;

    for (uint64_t n = newest; (s = sent_lately(l, n, flow->at)); n = s->by_flow) {
        if (s->dest_qp == flow->dest_qp && IN6_ARE_ADDR_EQUAL(&s->sender, &flow->sender)
            && IN6_ARE_ADDR_EQUAL(&s->original, &flow->original)) {
            return true;
        }
    }
    return false;
}

static bool
sender_had_all(struct fast_cnp_limit *l, uint64_t newest, const struct sent *flow)
{
    const struct sent *s;
    unsigned had = 0;

    for (uint64_t n = newest; had < FAST_CNP_PER_DST && (s = sent_lately(l, n, flow->at));
         n = s->by_sender) {
        had += IN6_ARE_ADDR_EQUAL(&s->sender, &flow->sender);
    }
    return had == FAST_CNP_PER_DST;
}

enum fast_cnp_verdict
fast_cnp_limit_ask(struct fast_cnp_limit *l, const struct in6_addr *sender,
                   const struct in6_addr *original, uint32_t dest_qp, uint64_t now)
{
    uint64_t sender_hash = hash_addr(0, sender);
    uint64_t flow_hash = hash_number(hash_addr(sender_hash, original), dest_qp);
    uint64_t *by_sender = &l->senders[sender_hash % FAST_CNP_FLOWS];
    uint64_t *by_flow = &l->flows[flow_hash % FAST_CNP_FLOWS];
    struct sent flow = {*sender, *original, dest_qp, now, *by_flow, *by_sender};

    if (fast_cnp_limit_is_unwanted(l, sender, now)) {
        return FAST_CNP_UNWANTED;
    }
    if (flow_had_one(l, *by_flow, &flow)) {
        return FAST_CNP_TOO_SOON;
    }
    if (sender_had_all(l, *by_sender, &flow)) {
        return FAST_CNP_DST_LIMIT;
    }
    if (now - l->second_began >= SECOND_USEC) {
        l->second_began = now;
        l->n_second = 0;
    }
    if (l->n_second >= l->per_second) {
        return FAST_CNP_NODE_LIMIT;
    }
    l->n_second++;
    l->n_sent++;
    l->ring[l->n_sent % FAST_CNP_FLOWS] = flow;
    *by_flow = *by_sender = l->n_sent;
    return FAST_CNP_SEND;
}

void
fast_cnp_limit_unwanted(struct fast_cnp_limit *l, const struct in6_addr *sender, uint64_t now)
{
    if (!fast_cnp_limit_is_unwanted(l, sender, now)) {
        size_t i = l->n_unwanted++ % N_UNWANTED;

        l->unwanted[i].sender = *sender;
        l->unwanted[i].until = now + FAST_CNP_UNWANTED_USEC;
    }
}

bool
fast_cnp_limit_is_unwanted(const struct fast_cnp_limit *l, const struct in6_addr *sender,
                           uint64_t now)
{
    size_t n = l->n_unwanted < N_UNWANTED ? l->n_unwanted : N_UNWANTED;

    for (size_t i = 0; i < n; i++) {
        if (now < l->unwanted[i].until && IN6_ARE_ADDR_EQUAL(&l->unwanted[i].sender, sender)) {
            return true;
        }
    }
    return false;
}
