/* SPDX-License-Identifier: Apache-2.0
 *
 * STAMP test packets: byte for byte what scapy builds; each length and field at its limits; cookies.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/inet-csum.h"
#include "lib/siphash.h"
#include "lib/stamp.h"
#include "tests/unit/hex.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define FILE_NAME "tests/vectors/stamp-scapy.pcap"
#define SPORT     49862
#define SECONDS   UINT64_C(1764106200)
#define NSEC      UINT64_C(1000000000)
#define COOKIE    UINT64_C(0x0123456789abcdef)
#define ROOM      2048

enum frame { LOOP, THERE, LONG, BACK, OTHER, OTHER_BACK, N_FRAMES };

static struct in6_addr
dpu(unsigned i)
{
    return hex_addr(i == 1 ? "5f00:0:a1::1" : "5f00:0:a3::1");
}

static struct program
programs(const char *text)
{
    struct program program;

    ck_assert(program_parse(text, &program));
    return program;
}

/* What the probes of the file say. */
static struct stamp
probe_said(enum frame i)
{
    struct stamp s = {.sent_nsec = SECONDS * NSEC + 1000, .has_cookie = true, .cookie = COOKIE};

    s.ssid = i == LOOP ? 7 : 9;
    s.seq = i == LOOP ? 1 : i == THERE ? 0xfffffffe : i == LONG ? 0xffffffff : 3;
    if (i != LOOP) {
        s.back = programs("5f00:0:300:500:100:a1::");
    }
    if (i == THERE || i == LONG) {
        s.has_cos = true;
        s.dscp = 26;
    }
    return s;
}

/* Frame i of the file; what is in it behind the UDP header. */
static uint8_t *
frame(enum frame i, uint32_t *len, const uint8_t **payload, size_t *payload_len)
{
    uint8_t *bytes = pcap_file_frame(FILE_NAME, i, len);
    struct parsed h;

    ck_assert_int_eq(parse_check(bytes, *len, &h), DROP_none);
    ck_assert_int_eq(h.ip.proto, IP6_NH_UDP);
    *payload = bytes + h.ip.l4_ofs + sizeof(struct udp_hdr);
    *payload_len = h.ip.end - (size_t) (*payload - bytes);
    return bytes;
}

/* In a buffer of exactly 'len' bytes; *s refers to it no more. */
static bool
parse(const uint8_t *payload, size_t len, bool is_answer, struct stamp *s)
{
    uint8_t *exact = malloc(len ? len : 1);

    memcpy(exact, payload, len);
    bool ok = stamp_parse(exact, len, is_answer, s);
    free(exact);
    return ok;
}

static void
check_same(const struct stamp *a, const struct stamp *b)
{
    REQUIRE(a->is_answer == b->is_answer && a->seq == b->seq && a->sent_nsec == b->sent_nsec);
    REQUIRE(a->ssid == b->ssid && a->asked_seq == b->asked_seq && a->asked_nsec == b->asked_nsec);
    REQUIRE(a->asked_hop_limit == b->asked_hop_limit && a->came_nsec == b->came_nsec);
    REQUIRE(a->has_cos == b->has_cos && a->dscp == b->dscp && a->dscp_seen == b->dscp_seen);
    REQUIRE(a->ecn_seen == b->ecn_seen && a->has_cookie == b->has_cookie && a->cookie == b->cookie);
    REQUIRE(a->back.n == b->back.n
            && !memcmp(a->back.containers, b->back.containers,
                       a->back.n * sizeof a->back.containers[0]));
}

/* Builds; what came out must be the frame without its Ethernet header. */
static void
check_built(enum frame i, const struct stamp *say, const struct in6_addr *src,
            const struct program *program, const char *final, uint8_t tc, uint16_t sport,
            uint16_t dport, uint32_t len)
{
    struct packet_pool *pool = packet_pool_create(1);
    const struct in6_addr end = hex_addr(final);
    const uint8_t *payload;
    size_t payload_len;
    uint32_t frame_len;
    uint8_t *bytes = frame(i, &frame_len, &payload, &payload_len);
    struct packet *p = stamp_build(pool, say, src, program, &end, tc, (uint32_t) say->ssid << 8,
                                   sport, dport, len);

    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(p->len, frame_len - sizeof(struct eth_hdr));
    ck_assert_mem_eq(p->data, bytes + sizeof(struct eth_hdr), p->len);
    packet_put(p);
    packet_pool_destroy(pool);
    free(bytes);
}

/* Proves AB-36. */
START_TEST(as_scapy_builds)
    {
        const struct in6_addr dpu1 = dpu(1), dpu3 = dpu(3);
        const struct program loop = programs("5f00:0:100:500:100:a1::");
        const struct program there = programs("5f00:0:100:500:300:a3::");
        const struct program more = programs("5f00:0:100:600:300:400:500:200,5f00:0:300:a3::");
        const struct program back = programs("5f00:0:300:500:100:a1::");
        struct stamp say = probe_said(LOOP);

        check_built(LOOP, &say, &dpu1, &loop, "5f00:0:a1::", 2, SPORT, 862, 0);
        say = probe_said(THERE);
        check_built(THERE, &say, &dpu1, &there, "5f00:0:a3::", 26 << 2 | 2, SPORT, 862, 0);
        say = probe_said(LONG);
        check_built(LONG, &say, &dpu1, &more, "5f00:0:a3::", 26 << 2 | 2, SPORT, 862,
                    40 + 24 + 8 + 44 + 8 + 12 + 24 + 1004);
        for (enum frame asked = THERE; asked <= OTHER; asked += OTHER - THERE) {
            const uint8_t *payload;
            size_t payload_len;
            uint32_t frame_len;
            uint8_t *bytes = frame(asked, &frame_len, &payload, &payload_len);
            struct stamp came, answer;

            ck_assert(stamp_parse(payload, payload_len, false, &came));
            answer = (struct stamp){
                .is_answer = true,
                .seq = asked == THERE ? 5 : 6,
                .sent_nsec = SECONDS * NSEC + 502000,
                .ssid = 9,
                .asked_seq = came.seq,
                .asked_nsec = came.sent_nsec,
                .asked_hop_limit = 61,
                .came_nsec = SECONDS * NSEC + 501000,
                .dscp = came.dscp,
                .dscp_seen = 10,
                .ecn_seen = 3,
                .tlvs = came.tlvs,
                .tlvs_len = came.tlvs_len,
            };
            check_built(asked == THERE ? BACK : OTHER_BACK, &answer, &dpu3, &back,
                        "5f00:0:a1::", asked == THERE ? 26 << 2 | 2 : 2, 862, SPORT, 0);
            free(bytes);
        }
    }
END_TEST

START_TEST(reads_what_scapy_builds)
    {
        for (enum frame i = LOOP; i < N_FRAMES; i++) {
            bool is_answer = i == BACK || i == OTHER_BACK;
            struct stamp expected = probe_said(i == BACK ? THERE : i == OTHER_BACK ? OTHER : i), s;
            const uint8_t *payload;
            size_t payload_len;
            uint32_t frame_len;
            uint8_t *bytes = frame(i, &frame_len, &payload, &payload_len);

            if (is_answer) {
                expected.is_answer = true;
                expected.asked_seq = expected.seq;
                expected.asked_nsec = expected.sent_nsec;
                expected.asked_hop_limit = 61;
                expected.seq = i == BACK ? 5 : 6;
                expected.sent_nsec = SECONDS * NSEC + 502000;
                expected.came_nsec = SECONDS * NSEC + 501000;
            }
            if (i == BACK) {
                expected.dscp_seen = 10;
                expected.ecn_seen = 3;
            }
            ck_assert(parse(payload, payload_len, is_answer, &s));
            check_same(&s, &expected);
            free(bytes);
        }
    }
END_TEST

/* Where each TLV of a frame begins, and where the last one ends. */
static size_t
tlv_bounds(const uint8_t *payload, size_t len, size_t at[8])
{
    size_t n = 0;

    for (size_t ofs = STAMP_BASE_LEN; ofs < len;) {
        at[n++] = ofs;
        ofs += 4u + (size_t) (payload[ofs + 2] << 8 | payload[ofs + 3]);
    }
    at[n] = len;
    return n;
}

/* Between TLVs a packet may end; anywhere else it is malformed. */
START_TEST(truncated)
    {
        for (enum frame i = LOOP; i < N_FRAMES; i++) {
            const uint8_t *payload;
            size_t payload_len, at[8];
            uint32_t frame_len;
            uint8_t *bytes = frame(i, &frame_len, &payload, &payload_len);
            size_t n = tlv_bounds(payload, payload_len, at);

            for (size_t len = 0; len <= payload_len; len++) {
                bool whole = false;
                struct stamp s;

                for (size_t j = 0; j <= n; j++) {
                    whole |= at[j] == len;
                }
                REQUIRE(parse(payload, len, i == BACK || i == OTHER_BACK, &s) == whole);
            }
            free(bytes);
        }
    }
END_TEST

/* Bytes at an offset of frame i's payload, and whether it is still well formed. */
static const struct {
    enum frame i;
    unsigned ofs;
    const char *bytes;
    bool ok;
} changes[] = {
    {LOOP, 0, "ffffffff", true}, /* sequence number. */
    {LOOP, 4, "ffffffff", true}, /* seconds, */
    {LOOP, 8, "3b9ac9ff", true}, /* nanoseconds: 999,999,999 at most. */
    {LOOP, 8, "3b9aca00", false},
    {LOOP, 8, "ffffffff", false},
    {LOOP, 12, "ff01", true}, /* error estimate: Z, */
    {LOOP, 12, "bf01", false},
    {LOOP, 12, "4001", true},
    {LOOP, 12, "40ff", true},
    {LOOP, 12, "4000", false}, /* and a multiplier that is not 0. */
    {LOOP, 14, "ffff", true},  /* SSID. */
    {LOOP, 16, "ffffffffffffffffffffffffffffffffffffffffffffffffffffffff", true}, /* ignored. */
    {BACK, 20, "3b9ac9ff", true}, /* of an answer: the time at which it came, */
    {BACK, 20, "3b9aca00", false},
    {BACK, 32, "3b9aca00", false}, /* the sender's time, */
    {BACK, 36, "0001", false},     /* and its error estimate. */
    {BACK, 40, "ff", true},
    {BACK, 38, "ffff", true},
    {BACK, 41, "ffffff", true},
    {LOOP, 44, "00", true}, /* flags of a TLV say nothing in a probe. */
    {LOOP, 44, "ff", true},
    {LOOP, 45, "00", true}, /* another type: not known. */
    {LOOP, 45, "ff", true},
    {LOOP, 45, "01", true},
    {LOOP, 46, "0007", false}, /* cookie: too short, */
    {LOOP, 46, "0009", false}, /* too long. */
    {LOOP, 46, "ffff", false},
    {LOOP, 45, "04", false},       /* a Class of Service TLV of 8 bytes. */
    {THERE, 45, "fc", false},      /* a cookie of 4 bytes, */
    {THERE, 53, "04", false},      /* and two Class of Service TLVs. */
    {THERE, 48, "ffffffff", true}, /* each field of Class of Service. */
    {THERE, 46, "0003", false},
    {THERE, 67, "14", true}, /* return path: its list ends where it does. */
    {THERE, 66, "0013", false},
    {THERE, 66, "0000", false},
    {THERE, 70, "0011", false}, /* the list runs over its end, */
    {THERE, 70, "000f", false}, /* or is no list of segments. */
    {THERE, 70, "ffff", false},
    {THERE, 69, "01", true}, /* another sub-TLV: no list. */
};

START_TEST(field)
    {
        const uint8_t *payload;
        size_t payload_len;
        uint32_t frame_len;
        uint8_t *bytes = frame(changes[_i].i, &frame_len, &payload, &payload_len);
        uint8_t changed[ROOM];
        struct stamp s;

        memcpy(changed, payload, payload_len);
        hex_bytes(changes[_i].bytes, changed + changes[_i].ofs, ROOM - changes[_i].ofs);
        ck_assert_msg(parse(changed, payload_len, changes[_i].i == BACK, &s) == changes[_i].ok,
                      "%u: %s", changes[_i].ofs, changes[_i].bytes);
        free(bytes);
    }
END_TEST

/* A probe with one Return Path TLV of these bytes. */
static bool
return_path(const char *text, struct stamp *s)
{
    uint8_t payload[ROOM] = {[12] = 0x40, [13] = 1};
    size_t len = hex_bytes(text, payload + STAMP_BASE_LEN + 4, ROOM - STAMP_BASE_LEN - 4);

    payload[STAMP_BASE_LEN + 1] = 10;
    payload[STAMP_BASE_LEN + 2] = (uint8_t) (len >> 8);
    payload[STAMP_BASE_LEN + 3] = (uint8_t) len;
    return parse(payload, STAMP_BASE_LEN + 4 + len, false, s);
}

#define SEGMENT    "5f000000030005000100 00a10000 0000"
#define SEGMENTS_4 SEGMENT SEGMENT SEGMENT SEGMENT

START_TEST(return_paths)
    {
        struct stamp s;

        ck_assert(return_path("", &s) && !s.back.n);
        ck_assert(return_path("80010004 00000001", &s) && !s.back.n); /* a control code. */
        ck_assert(return_path("80040000", &s) && !s.back.n);
        ck_assert(return_path("80040040" SEGMENTS_4, &s) && s.back.n == PROGRAM_MAX);
        ck_assert(return_path("80010000 80040010" SEGMENT, &s) && s.back.n == 1);
        ck_assert(return_path("80040010" SEGMENT "80010000", &s) && s.back.n == 1);
        /* One more than a program can have: as good as none. */
        ck_assert(return_path("80040050" SEGMENTS_4 SEGMENT, &s) && !s.back.n);
        ck_assert(!return_path("80040010" SEGMENT "80040010" SEGMENT, &s));
        ck_assert(!return_path("800400", &s));
        ck_assert(!return_path("80040010" SEGMENT "80", &s));
    }
END_TEST

/* Of two Return Path TLVs nobody knows which one is meant. */
START_TEST(two_return_paths)
    {
        uint8_t payload[STAMP_BASE_LEN + 8] = {[12] = 0x40, [13] = 1, [45] = 10, [49] = 10};
        struct stamp s;

        ck_assert(!parse(payload, sizeof payload, false, &s));
        payload[49] = 11;
        ck_assert(parse(payload, sizeof payload, false, &s));
    }
END_TEST

/* A reflector that does not know the Class of Service TLV says nothing by it. */
START_TEST(not_understood)
    {
        const uint8_t *payload;
        size_t payload_len;
        uint32_t frame_len;
        uint8_t *bytes = frame(BACK, &frame_len, &payload, &payload_len);
        struct stamp s;

        bytes[payload - bytes + STAMP_BASE_LEN] = 0x80;
        ck_assert(parse(payload, payload_len, true, &s));
        ck_assert(!s.has_cos && s.has_cookie && s.back.n == 1);
        free(bytes);
    }
END_TEST

/* The worked value of UDP 50000 > 862 with 44 bytes of zeros from 5f00:0:a1::1: 0x7994 for the
 * destination 5f00:0:a1::, in which the program ends.  An error estimate is never 0, so it is taken
 * out again. */
START_TEST(checksum)
    {
        struct packet_pool *pool = packet_pool_create(1);
        const struct in6_addr src = dpu(1), final = hex_addr("5f00:0:a1::");
        const struct program loop = programs("5f00:0:100:500:300:500:100:a1");
        const struct stamp say = {.seq = 0};
        struct packet *p = stamp_build(pool, &say, &src, &loop, &final, 0, 0, 50000, 862, 0);
        struct udp_hdr *udp = (struct udp_hdr *) (p->data + IP6_HDR_LEN);
        uint8_t *error = (uint8_t *) (udp + 1) + 12;

        ck_assert_uint_eq(p->len, IP6_HDR_LEN + sizeof *udp + STAMP_BASE_LEN);
        ck_assert(be16_get(inet_csum_ip6(&src, &final, IP6_NH_UDP, udp, p->len - IP6_HDR_LEN))
                  == 0);
        uint16_t estimate = (uint16_t) (error[0] << 8 | error[1]);
        ck_assert_uint_eq(be16_get(udp->csum), 0x7994 - estimate);
        error[0] = error[1] = 0;
        udp->csum = be16_put(0);
        ck_assert_uint_eq(
            be16_get(inet_csum_ip6(&src, &final, IP6_NH_UDP, udp, p->len - IP6_HDR_LEN)), 0x7994);
        packet_put(p);
        packet_pool_destroy(pool);
    }
END_TEST

/* A checksum that comes to 0 is sent as 0xffff: 0 would mean that there is none. */
START_TEST(checksum_zero)
    {
        struct packet_pool *pool = packet_pool_create(1);
        const struct in6_addr src = dpu(1), final = hex_addr("5f00:0:a1::");
        const struct program loop = programs("5f00:0:100:a1::");
        unsigned n_ones = 0;

        for (uint32_t seq = 0; seq <= UINT16_MAX; seq++) {
            const struct stamp say = {.seq = seq};
            struct packet *p = stamp_build(pool, &say, &src, &loop, &final, 0, 0, 50000, 862, 0);
            const struct udp_hdr *udp = (const struct udp_hdr *) (p->data + IP6_HDR_LEN);

            REQUIRE(be16_get(udp->csum));
            n_ones += be16_get(udp->csum) == UINT16_MAX;
            packet_put(p);
        }
        ck_assert_uint_eq(n_ones, 1);
        packet_pool_destroy(pool);
    }
END_TEST

START_TEST(lengths)
    {
        struct packet_pool *pool = packet_pool_create(1);
        const struct in6_addr src = dpu(1), final = hex_addr("5f00:0:a1::");
        const struct program loop = programs("5f00:0:100:a1::");
        const struct stamp say = probe_said(LOOP);
        const uint32_t least = IP6_HDR_LEN + 8 + STAMP_BASE_LEN + 12;
        const uint32_t most = PACKET_ROOM - sizeof(struct eth_hdr);

        for (uint32_t len = 0; len < most + 10; len++) {
            struct packet *p = stamp_build(pool, &say, &src, &loop, &final, 0, 0, SPORT, 862, len);
            bool fits = !len || len == least || (len >= least + 4 && len <= most);

            REQUIRE(!p == !fits);
            if (p) {
                const struct udp_hdr *udp = (const struct udp_hdr *) (p->data + IP6_HDR_LEN);
                size_t udp_len = p->len - IP6_HDR_LEN;
                struct stamp s;

                REQUIRE(p->len == (len ? len : least));
                REQUIRE(be16_get(udp->len) == udp_len);
                REQUIRE(!be16_get(inet_csum_ip6(&src, &final, IP6_NH_UDP, udp, udp_len)));
                REQUIRE(stamp_parse((const uint8_t *) (udp + 1), udp_len - sizeof *udp, false, &s));
                REQUIRE(s.has_cookie && s.cookie == COOKIE);
                packet_put(p);
            }
        }
        struct packet *only = packet_get(pool);
        ck_assert_ptr_null(stamp_build(pool, &say, &src, &loop, &final, 0, 0, SPORT, 862, 0));
        packet_put(only);
        packet_pool_destroy(pool);
    }
END_TEST

/* Without checksum a packet is the same otherwise. */
START_TEST(no_checksum)
    {
        struct packet_pool *pool = packet_pool_create(2);
        const struct in6_addr src = dpu(1), end = hex_addr("5f00:0:a1::");
        const struct program loop = programs("5f00:0:100:500:100:a1::");
        struct stamp say = probe_said(LOOP);
        struct packet *p = stamp_build(pool, &say, &src, &loop, &end, 2, 0, SPORT, 862, 200);

        say.no_checksum = true;
        struct packet *without = stamp_build(pool, &say, &src, &loop, &end, 2, 0, SPORT, 862, 200);
        struct udp_hdr *udp = (struct udp_hdr *) (p->data + IP6_HDR_LEN);
        ck_assert_uint_ne(be16_get(udp->csum), 0);
        udp->csum = be16_put(0);
        ck_assert_uint_eq(without->len, p->len);
        ck_assert_mem_eq(without->data, p->data, p->len);
        packet_put(p);
        packet_put(without);
        packet_pool_destroy(pool);
    }
END_TEST

/* Appendix A of the paper, and vectors of the reference implementation: message i is 00 01 02 ... of i
 * bytes. */
START_TEST(siphash_vectors)
    {
        static const struct {
            size_t len;
            uint64_t mac;
        } vectors[] = {
            {0, 0x726fdb47dd0e0e31}, {1, 0x74f839c593dc67fd},  {7, 0xab0200f58b01d137},
            {8, 0x93f5f5799a932462}, {15, 0xa129ca6149be45e5},
        };
        uint8_t key[SIPHASH_KEY_LEN], message[15];

        for (size_t i = 0; i < sizeof key; i++) {
            key[i] = (uint8_t) i;
        }
        for (size_t i = 0; i < sizeof message; i++) {
            message[i] = (uint8_t) i;
        }
        for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
            ck_assert(siphash(key, message, vectors[i].len) == vectors[i].mac);
        }
    }
END_TEST

/* Whatever tells two packets apart, or two nodes, makes another cookie. */
START_TEST(cookies)
    {
        const struct stamp_key key = {{1}}, other = {{2}};
        uint64_t cookie = stamp_cookie(&key, 1, 2, 3);

        ck_assert(stamp_cookie(&key, 1, 2, 3) == cookie);
        ck_assert(stamp_cookie(&other, 1, 2, 3) != cookie);
        ck_assert(stamp_cookie(&key, 2, 2, 3) != cookie);
        ck_assert(stamp_cookie(&key, 1, 3, 3) != cookie);
        ck_assert(stamp_cookie(&key, 1, 2, 4) != cookie);
    }
END_TEST

Suite *
stamp_suite(void)
{
    Suite *s = suite_create("stamp");
    TCase *tc = tcase_create("stamp");

    tcase_add_test(tc, as_scapy_builds);
    tcase_add_test(tc, reads_what_scapy_builds);
    tcase_add_test(tc, truncated);
    tcase_add_loop_test(tc, field, 0, sizeof changes / sizeof changes[0]);
    tcase_add_test(tc, return_paths);
    tcase_add_test(tc, two_return_paths);
    tcase_add_test(tc, not_understood);
    tcase_add_test(tc, checksum);
    tcase_add_test(tc, checksum_zero);
    tcase_add_test(tc, no_checksum);
    tcase_add_test(tc, lengths);
    tcase_add_test(tc, siphash_vectors);
    tcase_add_test(tc, cookies);
    suite_add_tcase(s, tc);
    return s;
}
