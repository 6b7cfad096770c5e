/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the bytes that a network device sends during a run.
 */
#ifndef BENCH_COUNTER_H
#define BENCH_COUNTER_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct counter {
    const char *where; /* [NETNS:]DEV. */
    uint64_t before;
};

/* 'where' must stay as long as the counter.  False: reason in 'error'. */
bool counter_start(struct counter *, const char *where, char *error, size_t size);
bool counter_stop(const struct counter *, uint64_t *tx_bytes, char *error, size_t size);

#endif /* bench/counter.h */
