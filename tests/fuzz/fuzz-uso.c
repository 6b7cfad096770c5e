/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining frames into super-frames: what lib/port-gso.c cuts out of one must be the frames.
 * The input says of each frame how long it is, what is wrong with it, and in which pieces it is.
 */
#include <string.h>

#include "lib/port-uso.h"
#include "lib/wire.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/uso-frames.h"

#define MAX_FRAMES 24
#define HEADERS    62 /* to the end of UDP. */
#define CSUM_OFS   60

static const struct uso_flow flows[] = {
    {{2, [5] = 1}, {.s6_addr = {0xfd, [15] = 1}}, 49152},
    {{2, [5] = 2}, {.s6_addr = {0xfd, [15] = 2}}, 49152},
};

static struct packet *
make_frame(struct fuzz_input *in, struct packet_pool *pool, uint32_t psn, size_t len)
{
    const uint8_t choices = fuzz_byte(in);
    struct packet *p = uso_frame(pool, &flows[choices & 1], psn_make(psn), len, false);

    if (choices & 2) {
        p->data[fuzz_below(in, HEADERS)] ^= fuzz_byte(in);
    }
    if (choices & 4) {
        p->len -= fuzz_below(in, p->len + 1);
    }
    if (!(choices & 8)) {
        return p;
    }
    uint32_t head_len = fuzz_below(in, p->len + 1), rest = p->len - head_len;
    struct packet *copy =
        packet_replicate(p, 0, head_len, rest < PACKET_TAIL ? (uint8_t) rest : PACKET_TAIL);
    packet_put(p);
    return copy;
}

static void
check_run(struct packet *const *frames, size_t n)
{
    static struct gso gso;
    static uint8_t want[PACKET_ROOM], got[PACKET_ROOM];
    struct virtio_net_hdr vnet;
    size_t len = uso_join(frames, n, &vnet, gso.frame);

    REQUIRE(len <= sizeof gso.frame);
    REQUIRE(gso_start(&gso, &vnet, len, sizeof got));
    for (size_t i = 0; i < n; i++) {
        size_t want_len = packet_flatten(frames[i], want, sizeof want);

        REQUIRE(gso_next(&gso, got, sizeof got) == want_len);
        REQUIRE(got[CSUM_OFS] || got[CSUM_OFS + 1]);
        memset(got + CSUM_OFS, 0, 2);
        REQUIRE(!memcmp(got, want, want_len));
    }
    REQUIRE(!gso_next(&gso, got, sizeof got));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct packet_pool *pool = packet_pool_create(2 * MAX_FRAMES);
    struct packet *frames[MAX_FRAMES];
    size_t n = 0, len = USO_FRAME_MIN;

    while (in.n && n < MAX_FRAMES) {
        if (!fuzz_below(&in, 4)) {
            len = USO_FRAME_MIN + fuzz_below(&in, PACKET_ROOM - USO_FRAME_MIN + 1);
        }
        frames[n] = make_frame(&in, pool, (uint32_t) n, len);
        n++;
    }
    for (size_t i = 0, count; i < n; i += count) {
        count = uso_count(frames + i, n - i);
        REQUIRE(count && count <= n - i);
        if (count > 1) {
            check_run(frames + i, count);
        }
    }
    while (n) {
        packet_put(frames[--n]);
    }
    packet_pool_destroy(pool);
    return 0;
}
