/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast CNPs: what is taken for one says the same once it is built again.  The input is a frame, and
 * a trace that one carries.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/fast-cnp.h"
#include "lib/ioam.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"

static bool
same(const struct fast_cnp *a, const struct fast_cnp *b)
{
    return IN6_ARE_ADDR_EQUAL(&a->node, &b->node) && IN6_ARE_ADDR_EQUAL(&a->sender, &b->sender)
           && IN6_ARE_ADDR_EQUAL(&a->original, &b->original) && a->dest_qp == b->dest_qp
           && a->trace_len == b->trace_len && !a->trace == !b->trace
           && (!a->trace || !memcmp(a->trace, b->trace, a->trace_len));
}

/* What is built from 'say' must be found and taken.  Its frame is left in 'frame'. */
static size_t
build(const struct fast_cnp *say, uint8_t *frame, struct fast_cnp *back)
{
    struct packet_pool *pool = packet_pool_create(1);
    struct packet *p = fast_cnp_build(pool, say, 0xc123);
    struct eth_hdr *eth = packet_push(p, sizeof *eth);
    struct parsed h;
    size_t len = p->len;

    memset(eth, 0, sizeof *eth);
    eth->type = be16_put(ETH_TYPE_IP6);
    memcpy(frame, p->data, len);
    packet_put(p);
    packet_pool_destroy(pool);
    REQUIRE(parse_frame(frame, (uint32_t) len, &h) == DROP_none);
    REQUIRE(fast_cnp_seen(frame, (uint32_t) len, &h));
    REQUIRE(fast_cnp_parse(frame, (uint32_t) len, &h, false, back) == DROP_none);
    return len;
}

static void
try_frame(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    uint8_t first[512], second[512];
    struct fast_cnp said, built, again;
    struct parsed h;

    memcpy(exact, data, size);
    if (parse_outer(exact, (uint32_t) size, &h) == DROP_none) {
        bool seen = fast_cnp_seen(exact, (uint32_t) size, &h);
        enum drop_reason loose = fast_cnp_parse(exact, (uint32_t) size, &h, true, &said);
        enum drop_reason strict = fast_cnp_parse(exact, (uint32_t) size, &h, false, &said);

        REQUIRE(loose == DROP_none || loose == DROP_fast_cnp_malformed);
        REQUIRE(strict == loose || (!loose && strict == DROP_fast_cnp_icrc));
        if (loose == DROP_none) {
            REQUIRE(seen);
            size_t len = build(&said, first, &built);
            REQUIRE(same(&said, &built));
            REQUIRE(build(&built, second, &again) == len);
            REQUIRE(!memcmp(first, second, len));
        }
    }
    free(exact);
}

static void
try_trace(const uint8_t *data, size_t size)
{
    uint8_t len = size < UINT8_MAX ? (uint8_t) (size & ~(size_t) 3) : 252;
    uint8_t frame[512], compact[UINT8_MAX];
    struct fast_cnp said = {.dest_qp = 0xabc, .trace = data, .trace_len = len}, back;

    if (len < IOAM_TRACE_HDR_LEN) {
        return;
    }
    said.node.s6_addr[0] = 0x5f;
    build(&said, frame, &back);
    if (len > FAST_CNP_TRACE_MAX) {
        said.trace_len = ioam_compact(data, len, compact);
        said.trace = compact;
        if (said.trace_len > FAST_CNP_TRACE_MAX) {
            said.trace = NULL;
            said.trace_len = 0;
        }
    }
    REQUIRE(same(&said, &back));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_frame(data, size);
    try_trace(data, size);
    return 0;
}
