/* SPDX-License-Identifier: Apache-2.0
 *
 * The longest time in which nothing was completed though something was under way: what a transfer
 * feels of a fault.
 *
 * Plain data without pointers: it may be in memory that processes share, with one writer at a time.
 */
#ifndef BENCH_CASTBENCH_GAP_H
#define BENCH_CASTBENCH_GAP_H 1

#include <stdbool.h>
#include <stdint.h>

/* Times are nanoseconds of one clock. */
struct gap {
    uint64_t longest; /* 0: there was none. */
    uint64_t began;   /* the longest one did. */
    bool is_open;     /* something is under way. */
    uint64_t since;   /* if so: nothing was completed since then. */
};

/* Something begins, at 'now'. */
void gap_begin(struct gap *, uint64_t now);
/* Something is completed, at 'now'.  'more': something else is under way. */
void gap_end(struct gap *, uint64_t now, bool more);

#endif /* bench/castbench/gap.h */
