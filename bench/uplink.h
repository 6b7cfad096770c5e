/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the bytes that a network device sends during a run.
 */
#ifndef BENCH_UPLINK_H
#define BENCH_UPLINK_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uplink {
    const char *where; /* [NETNS:]DEV. */
    uint64_t before;
};

/* 'where' must stay as long as the uplink.  False: reason in 'error'. */
bool uplink_start(struct uplink *, const char *where, char *error, size_t size);
bool uplink_stop(const struct uplink *, uint64_t *tx_bytes, char *error, size_t size);

#endif /* bench/uplink.h */
