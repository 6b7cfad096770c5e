/* SPDX-License-Identifier: Apache-2.0
 *
 * STAMP test packets: what is understood of one says the same once it is built again, and so does the
 * answer to it.  The input's first byte says whether the rest is an answer.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/inet-csum.h"
#include "lib/stamp.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"

static const struct in6_addr src = {.s6_addr = {0x5f, [5] = 0xa1, [15] = 1}};
static const struct in6_addr final = {.s6_addr = {0x5f, [5] = 0xa3}};
static const struct program program = {.n = 1, .containers = {{{{0x5f, [4] = 1, [7] = 0xa3}}}}};

/* Of those that an answer has from what it answers to. */
static bool
same_tlvs(const struct stamp *a, const struct stamp *b)
{
    return a->has_cookie == b->has_cookie && a->cookie == b->cookie && a->back.n == b->back.n
           && !memcmp(a->back.containers, b->back.containers, sizeof a->back.containers);
}

/* Builds a packet and reads it. */
static bool
build(const struct stamp *say, struct stamp *back, uint8_t room[PACKET_ROOM])
{
    struct packet_pool *pool = packet_pool_create(1);
    struct packet *p = stamp_build(pool, say, &src, &program, &final, 2, 0, 49862, 862, 0);

    if (p) {
        size_t len = packet_flatten(p, room, PACKET_ROOM), udp_len = len - IP6_HDR_LEN;
        const uint8_t *udp = room + IP6_HDR_LEN;

        REQUIRE(!be16_get(inet_csum_ip6(&src, &final, IP6_NH_UDP, udp, udp_len)));
        REQUIRE(stamp_parse(udp + sizeof(struct udp_hdr), udp_len - sizeof(struct udp_hdr),
                            say->is_answer, back));
    }
    packet_put(p);
    packet_pool_destroy(pool);
    return p != NULL;
}

static void
try_probe(const struct stamp *said)
{
    const struct stamp answer = {
        .is_answer = true,
        .seq = said->ssid,
        .sent_nsec = said->sent_nsec,
        .ssid = said->ssid,
        .asked_seq = said->seq,
        .asked_nsec = said->sent_nsec,
        .asked_hop_limit = 61,
        .came_nsec = said->sent_nsec,
        .dscp = said->dscp,
        .dscp_seen = 11,
        .ecn_seen = 3,
        .tlvs = said->tlvs,
        .tlvs_len = said->tlvs_len,
    };
    uint8_t room[PACKET_ROOM];
    struct stamp back;

    REQUIRE(build(said, &back, room));
    REQUIRE(back.seq == said->seq && back.sent_nsec == said->sent_nsec && back.ssid == said->ssid);
    REQUIRE(back.has_cos == said->has_cos && back.dscp == said->dscp
            && back.dscp_seen == said->dscp_seen && back.ecn_seen == said->ecn_seen);
    REQUIRE(same_tlvs(&back, said));
    if (build(&answer, &back, room)) {
        REQUIRE(back.tlvs_len == said->tlvs_len && same_tlvs(&back, said));
        REQUIRE(back.asked_seq == said->seq && back.asked_nsec == said->sent_nsec);
        REQUIRE(back.has_cos == said->has_cos && back.dscp == said->dscp);
        REQUIRE(!back.has_cos || (back.dscp_seen == 11 && back.ecn_seen == 3));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    bool is_answer = fuzz_byte(&in) & 1;
    uint8_t *exact = malloc(in.n ? in.n : 1);
    struct stamp said;

    if (in.n) {
        memcpy(exact, in.data, in.n);
    }
    if (stamp_parse(exact, in.n, is_answer, &said) && !is_answer) {
        try_probe(&said);
    }
    free(exact);
    return 0;
}
