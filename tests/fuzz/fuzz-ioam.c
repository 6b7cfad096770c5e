/* SPDX-License-Identifier: Apache-2.0
 *
 * IOAM traces: what a transit node finds in a packet, writes into it, and reads back.  The input is
 * an IPv6 packet.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/ioam.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"

#define LENS_OFS 2 /* of NodeLen, Flags and RemainingLen in the trace. */
#define MAX_FILL 200

static bool
same(const struct ioam_element *a, const struct ioam_element *b)
{
    return a->hop_limit == b->hop_limit && a->node_id == b->node_id && a->seconds == b->seconds
           && a->usec == b->usec && a->sent_bytes == b->sent_bytes
           && a->queue_bytes == b->queue_bytes;
}

/* The elements of 'trace' that can be read are also in 'compact'. */
static unsigned
count_elements(const uint8_t *trace, uint8_t len, const uint8_t *compact, uint8_t compact_len)
{
    struct ioam_element a, b;
    unsigned n = 0;

    while (ioam_read(trace, len, n, &a)) {
        REQUIRE(ioam_read(compact, compact_len, n, &b));
        REQUIRE(same(&a, &b));
        n++;
    }
    REQUIRE(!ioam_read(compact, compact_len, n, &b));
    return n;
}

static unsigned
check_trace(const uint8_t *trace, uint8_t len)
{
    uint8_t compact[UINT8_MAX], twice[UINT8_MAX];
    uint8_t compact_len = ioam_compact(trace, len, compact);

    REQUIRE(compact_len <= len && compact_len >= IOAM_TRACE_HDR_LEN);
    REQUIRE(ioam_compact(compact, compact_len, twice) == compact_len);
    REQUIRE(!memcmp(compact, twice, compact_len));
    return count_elements(trace, len, compact, compact_len);
}

static unsigned
free_len(const uint8_t *trace)
{
    return (trace[LENS_OFS + 1] & 0x7fu) * 4;
}

/* Only RemainingLen, Overflow and what was free may change. */
static void
check_change(const uint8_t *before, const uint8_t *after, uint8_t len, enum ioam_result result)
{
    unsigned behind = IOAM_TRACE_HDR_LEN + free_len(before);

    if (result == IOAM_IGNORED) {
        REQUIRE(!memcmp(before, after, len));
        return;
    }
    REQUIRE(!memcmp(before, after, LENS_OFS) && !memcmp(before + 4, after + 4, 4));
    REQUIRE((before[LENS_OFS] & ~4) == (after[LENS_OFS] & ~4));
    REQUIRE((before[LENS_OFS + 1] & 0x80) == (after[LENS_OFS + 1] & 0x80));
    REQUIRE(!memcmp(before + behind, after + behind, len - behind));
    if (result == IOAM_OVERFLOW) {
        REQUIRE(after[LENS_OFS] & 4);
        REQUIRE(free_len(before) == free_len(after));
        REQUIRE(!memcmp(before + 4, after + 4, len - 4));
    }
}

static void
fill(uint8_t *trace, uint8_t len)
{
    static const struct ioam_element e = {64, 0x105, 1, 2, 3, 4};
    uint8_t before[UINT8_MAX];
    unsigned n = check_trace(trace, len);

    for (int i = 0; i < MAX_FILL; i++) {
        memcpy(before, trace, len);
        enum ioam_result result = ioam_fill(trace, len, &e);
        check_change(before, trace, len, result);
        unsigned now = check_trace(trace, len);
        struct ioam_element back;
        bool readable = result == IOAM_FILLED && ioam_read(trace, len, 0, &back);
        REQUIRE(now == n + readable);
        REQUIRE(!readable || same(&e, &back));
        n = now;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *packet = malloc(size ? size : 1);
    uint8_t len = 0;

    memcpy(packet, data, size);
    uint8_t *trace = ioam_find(packet, (uint32_t) size, &len);
    if (trace) {
        REQUIRE(len >= IOAM_TRACE_HDR_LEN && len % 4 == 0);
        REQUIRE(trace > packet && trace + len <= packet + size);
        fill(trace, len);
    }
    free(packet);
    return 0;
}
