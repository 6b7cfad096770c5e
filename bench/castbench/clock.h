/* SPDX-License-Identifier: Apache-2.0
 *
 * The time.
 */
#ifndef BENCH_CASTBENCH_CLOCK_H
#define BENCH_CASTBENCH_CLOCK_H 1

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000u
#define NS_PER_MS  1000000u

/* Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share. */
static inline uint64_t
now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * NS_PER_SEC + (uint64_t) ts.tv_nsec;
}

/* Nanoseconds since 1970, which what the registry says can be compared with. */
static inline uint64_t
wall_clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t) ts.tv_sec * NS_PER_SEC + (uint64_t) ts.tv_nsec;
}

#endif /* bench/castbench/clock.h */
