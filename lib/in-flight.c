/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Reliable Connection has in flight.
 */
#include "lib/in-flight.h"

/* Requests are no further from each other than this unless their queue pairs are different ones. */
#define MAX_GAP  65536

/* As few bytes as one PSN of a READ's answer may carry, and as many PSNs as one may have. */
#define MIN_MTU  256
#define MAX_SPAN ((1 << 23) - 1)

/* PSNs that a READ of so many bytes takes, at most: the path MTU is not known here. */
static int32_t
span_of_read(uint32_t dma_len)
{
    uint32_t n = dma_len ? (dma_len - 1) / MIN_MTU + 1 : 1;

    return n < MAX_SPAN ? (int32_t) n : MAX_SPAN;
}

static psn_t
lower(psn_t a, psn_t b)
{
    return psn_cmp(a, b) < 0 ? a : b;
}

bool
in_flight_sent(struct in_flight *f, psn_t psn, uint32_t dma_len, bool is_read, uint64_t now)
{
    bool other = f->any && (psn_cmp(psn, f->end) > MAX_GAP || psn_cmp(f->una, psn) > MAX_GAP);

    if (!f->any || other) {
        *f = (struct in_flight){.any = true,
                                .una = psn,
                                .h = psn,
                                .end = psn,
                                .low = psn,
                                .low_before = psn,
                                .begun = now};
    }
    if (now - f->begun >= IN_FLIGHT_LIFE) {
        f->low_before = f->low;
        f->low = f->una;
        f->begun = now;
    }
    f->low = lower(f->low, psn);
    f->una = lower(f->una, psn);
    psn_t h = psn_add(psn, 1);
    if (psn_cmp(h, f->h) >= 0) {
        f->h = h;
        f->end = is_read ? psn_add(psn, span_of_read(dma_len)) : h;
    }
    f->used = now;
    return !other;
}

bool
in_flight_is_idle(const struct in_flight *f)
{
    return !f->any || psn_eq(f->una, f->h);
}

bool
in_flight_may_answer(const struct in_flight *f, psn_t psn, uint64_t now)
{
    int32_t low = (int32_t) lower(f->low, f->low_before).v;

    return f->any && now - f->used <= IN_FLIGHT_LIFE
           && psn_add(psn, -low).v < psn_add(f->end, -low).v;
}

void
in_flight_answered(struct in_flight *f, psn_t una)
{
    if (psn_cmp(una, f->una) > 0) {
        f->una = lower(una, f->h);
    }
}
