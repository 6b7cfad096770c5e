/* SPDX-License-Identifier: Apache-2.0
 *
 * Times in a log-linear histogram (see histogram.h).
 *
 * Bucket i < PARTS is time i.  From there on PARTS buckets are as wide as 1 ns,
 * the next PARTS 2 ns, and so on.
 */
#include "bench/castbench/histogram.h"

#define PARTS (1u << HISTOGRAM_PARTS_LOG2) /* of a power of two. */
#define LAST  (HISTOGRAM_BUCKETS - 1)

static size_t
bucket_of(uint64_t ns)
{
    if (ns < PARTS) {
        return ns;
    }
    if (ns >> HISTOGRAM_BITS) {
        return LAST;
    }
    unsigned shift = 63 - (unsigned) __builtin_clzll(ns) - HISTOGRAM_PARTS_LOG2;
    return shift * PARTS + (ns >> shift);
}

uint64_t
histogram_low(size_t bucket)
{
    if (bucket < PARTS) {
        return bucket;
    }
    return (uint64_t) (PARTS + bucket % PARTS) << (bucket / PARTS - 1);
}

void
histogram_add(struct histogram *h, uint64_t ns)
{
    h->min = h->n && h->min < ns ? h->min : ns;
    h->max = h->max > ns ? h->max : ns;
    h->n++;
    h->sum += ns;
    h->counts[bucket_of(ns)]++;
}

uint64_t
histogram_percentile(const struct histogram *h, double percent)
{
    /* Whole millionths of a percent: 99.9 % of 1000 are 999, and not one more because 99.9 has no
     * exact representation. */
    const uint64_t whole = 100000000;
    uint64_t part = (uint64_t) (percent * 1e6 + 0.5);
    uint64_t rest = h->n % whole * part;
    uint64_t need = h->n / whole * part + rest / whole + !!(rest % whole);
    uint64_t n = 0;

    for (size_t i = 0; i < LAST; i++) {
        n += h->counts[i];
        if (n && n >= need) {
            uint64_t end = histogram_low(i + 1) - 1;
            return end < h->max ? end : h->max;
        }
    }
    return h->max; /* the last bucket has no end. */
}
