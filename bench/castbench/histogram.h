/* SPDX-License-Identifier: Apache-2.0
 *
 * Times in a log-linear histogram of fixed size.  Every power of two is cut into
 * the same number of equal parts, so that every time is known to 1.6 %.
 *
 * Plain data without pointers: it may be in memory that processes share, with
 * one writer at a time.
 */
#ifndef BENCH_CASTBENCH_HISTOGRAM_H
#define BENCH_CASTBENCH_HISTOGRAM_H 1

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_PARTS_LOG2 6  /* parts of a power of two. */
#define HISTOGRAM_BITS       40 /* longer times count as the longest, 2^40 ns = 18 minutes. */
#define HISTOGRAM_BUCKETS    ((HISTOGRAM_BITS - HISTOGRAM_PARTS_LOG2 + 1) << HISTOGRAM_PARTS_LOG2)

struct histogram {
    uint64_t n;
    uint64_t sum; /* nanoseconds. */
    uint64_t min; /* exact; 0 if n is 0. */
    uint64_t max; /* exact; 0 if n is 0. */
    uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *, uint64_t ns);

/* The time that 'percent' (0..100] of all times do not exceed.  It is rounded up
 * to the end of its bucket, but never above the longest time.  It is 0 if the
 * histogram is empty. */
uint64_t histogram_percentile(const struct histogram *, double percent);

/* Bucket i holds times from histogram_low(i) to histogram_low(i + 1) - 1. */
uint64_t histogram_low(size_t bucket);

#endif /* bench/castbench/histogram.h */
