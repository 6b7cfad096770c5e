/* SPDX-License-Identifier: Apache-2.0
 *
 * ICMPv6 messages.
 *
 * Checksums and extension headers are from scapy 2.5.0: IPv6(src="5f00:0:100::1", dst="fd00:1::1",
 * hlim=64)/ICMPv6...(...)/bytes(offender).
 */
#include <stdlib.h>
#include <string.h>

#include "lib/icmp6.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"

#define N_PACKETS 8
#define ADDRS     "fd00000100000000 0000000000000001 fd00000900000000 0000000000000009"

static struct packet_pool *pool;
static struct in6_addr node;

static void
setup(void)
{
    pool = packet_pool_create(N_PACKETS);
    node = hex_addr("5f00:0:100::1");
}

static void
teardown(void)
{
    ck_assert_uint_eq(packet_pool_n_free(pool), N_PACKETS);
    packet_pool_destroy(pool);
}

/* IPv6(src="fd00:1::1", dst="fd00:9::9", hlim=1)/UDP(sport=1234, dport=33434)/b"probe". */
static const char offender_hex[] = "60000000000d1101" ADDRS "04d2829a000d397d 70726f6265";

static const struct {
    struct icmp6_error error;
    const char *message; /* as on the wire, without what it quotes. */
} errors[] = {
    {{ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_NO_ROUTE, 0}, "01003094 00000000"},
    {{ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_ADDRESS, 0}, "01033091 00000000"},
    {{ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_PORT, 0}, "01043090 00000000"},
    {{ICMP6_TOO_BIG, 0, 1500}, "020029b8 000005dc"},
    {{ICMP6_TIME, ICMP6_TIME_HOP_LIMIT, 0}, "03002e94 00000000"},
    {{ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD, 42}, "04002d6a 0000002a"},
    {{ICMP6_PARAMETER, ICMP6_PARAMETER_NEXT_HEADER, 6}, "04012d8d 00000006"},
};

/* Behind a link header of 14 bytes and before padding of 7, in one piece, in two and in three. */
START_TEST(errors_as_scapy_makes_them)
    {
        uint8_t frame[128] = {0}, want[128], got[128];
        size_t len = 14 + hex_bytes(offender_hex, frame + 14, sizeof frame - 14) + 7;
        const char *why;

        size_t want_len =
            hex_bytes("60000000003d3a40 5f00000001000000 0000000000000001 fd00000100000000"
                      "0000000000000001",
                      want, sizeof want);
        want_len += hex_bytes(errors[_i].message, want + want_len, sizeof want - want_len);
        want_len += hex_bytes(offender_hex, want + want_len, sizeof want - want_len);

        struct packet *whole = packet_from_bytes(pool, frame, len);
        for (uint32_t head = 14 + 40; head <= len; head++) {
            for (uint8_t tail = 0; tail <= PACKET_TAIL && tail <= len - head; tail++) {
                struct packet *offender = packet_replicate(whole, 0, head, tail);
                struct packet *p =
                    icmp6_error_build(pool, &errors[_i].error, &node, offender, 14, &why);
                ck_assert_ptr_nonnull(p);
                ck_assert_uint_eq(packet_flatten(p, got, sizeof got), want_len);
                ck_assert_mem_eq(got, want, want_len);
                packet_put(p);
                packet_put(offender);
            }
        }
        packet_put(whole);
    }
END_TEST

/* To be filled from the IPv6 header on, which is aligned as behind an Ethernet header. */
static struct packet *
empty(void)
{
    struct packet *p = packet_get(pool);
    p->data += 14;
    return p;
}

/* An IPv6 packet whose payload is 0, 1, 2... */
static struct packet *
counting(uint16_t len)
{
    struct packet *p = empty();

    hex_bytes("6000000000003b01" ADDRS, p->data, IP6_HDR_LEN);
    ((struct ip6_hdr_wire *) p->data)->plen = be16_put((uint16_t) (len - IP6_HDR_LEN));
    for (uint32_t i = IP6_HDR_LEN; i < len; i++) {
        p->data[i] = (uint8_t) (i - IP6_HDR_LEN);
    }
    p->len = len;
    return p;
}

static const struct {
    uint16_t len, quoted;
} sizes[] = {
    {40, 40}, {41, 41}, {1231, 1231}, {1232, 1232}, {1233, 1232}, {2040, 1232}, {9216, 1232},
};

START_TEST(quotes_what_fits)
    {
        const struct icmp6_error too_big = {ICMP6_TOO_BIG, 0, 1400};
        struct packet *offender = counting(sizes[_i].len);
        const char *why;

        struct packet *p = icmp6_error_build(pool, &too_big, &node, offender, 0, &why);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq(p->len, 48u + sizes[_i].quoted);
        ck_assert_uint_eq(be16_get(((struct ip6_hdr_wire *) p->data)->plen), p->len - 40);
        ck_assert_mem_eq(p->data + 48, offender->data, sizes[_i].quoted);
        ck_assert(icmp6_is_valid((struct ip6_hdr_wire *) p->data, p->data + 40, p->len - 40));
        if (sizes[_i].len == 2040) {
            ck_assert_mem_eq(p->data + 40, "\x02\x00\xa0\xdf\x00\x00\x05\x78", 8); /* scapy. */
        }
        packet_put(p);
        packet_put(offender);
    }
END_TEST

START_TEST(no_buffer)
    {
        const struct icmp6_error error = {ICMP6_TIME, 0, 0};
        struct packet *all[N_PACKETS] = {counting(100)};
        const char *why = NULL;

        for (unsigned i = 1; i < N_PACKETS; i++) {
            all[i] = packet_get(pool);
        }
        const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) all[0]->data;
        ck_assert_ptr_null(icmp6_error_build(pool, &error, &node, all[0], 0, &why));
        ck_assert_ptr_nonnull(why);
        ck_assert_ptr_null(icmp6_echo_build(pool, ip, all[0]->data + 40, 8));
        for (unsigned i = 0; i < N_PACKETS; i++) {
            packet_put(all[i]);
        }
    }
END_TEST

/* RFC 4443 section 2.4(e): which packets no error message may be about. */
static const struct {
    const char *packet; /* IPv6 header and more; Payload Length is made good. */
    bool allowed;       /* Time Exceeded. */
    bool exception;     /* Packet Too Big, Parameter Problem code 2. */
} offenders[] = {
#define IP(NH) "600000000000" NH "01" ADDRS
#define HOST   "fd00000100000000 0000000000000001"
#define PEER   "fd00000900000000 0000000000000009"
    {IP("11") "0035003500080000", true, true},
    {IP("3b"), true, true},
    {IP("3a") "8000000000000000", true, true},   /* echo request. */
    {IP("3a") "8700000000000000", true, true},   /* neighbour solicitation. */
    {IP("3a") "0100000000000000", false, false}, /* (e.1): errors, and what will be. */
    {IP("3a") "0400000000000000", false, false},
    {IP("3a") "7f00000000000000", false, false},
    {IP("3a") "8900000000000000", false, false}, /* (e.2): redirect. */
    {IP("3a"), false, false},                    /* cut off: not known. */
    /* Error messages behind Hop-by-Hop and Destination Options, a Routing header, as first
     * fragment, and behind an Authentication Header. */
    {IP("00") "3c00010400000000 3a00010400000000 03000000", false, false},
    {IP("2b") "3a02040100000000 fd00000000000000 0000000000000001 01000000", false, false},
    {IP("2b") "3a02040100000000 fd00000000000000 0000000000000001 80000000", true, true},
    {IP("2c") "3a00000100000000 02000000", false, false},
    {IP("2c") "1100000100000000 0035003500080000", true, true},
    {IP("2c") "110005c800000000 3132333435363738", false, false}, /* not the first. */
    {IP("33") "3a04000000000001000000000000000000000000 00000000 01000000", false, false},
    {IP("33") "1104000000000001000000000000000000000000 00000000 00350035", true, true},
    {IP("00") "3a01010400000000", false, false}, /* longer than the packet. */
    {IP("2b"), false, false},
    /* (e.3): to a group. */
    {"6000000000001101" HOST "ff0e000000000000 0000000000000005", false, true},
    {"6000000000003a01" HOST "ff0e000000000000 0000000000000005 01000000", false, false},
    /* (e.6): from nobody, oneself, a group, a Proxy Address. */
    {"6000000000001101 0000000000000000 0000000000000000" PEER, false, false},
    {"6000000000001101 0000000000000000 0000000000000001" PEER, false, false},
    {"6000000000001101 ff0e000000000000 0000000000000001" PEER, false, false},
    {"6000000000001101 fd00ffff00000000 0000000000000001" PEER, false, false},
    {"6000000000001101 fd00fffe00000000 0000000000000001" PEER, true, true},
#undef IP
};

START_TEST(who_is_told)
    {
        static const struct {
            struct icmp6_error error;
            bool is_exception;
        } messages[] = {
            {{ICMP6_TIME, 0, 0}, false},
            {{ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_ADDRESS, 0}, false},
            {{ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD, 0}, false},
            {{ICMP6_PARAMETER, ICMP6_PARAMETER_NEXT_HEADER, 0}, false},
            {{ICMP6_TOO_BIG, 0, 1280}, true},
            {{ICMP6_PARAMETER, ICMP6_PARAMETER_OPTION, 0}, true},
        };
        struct packet *offender = empty();
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) offender->data;

        offender->len = (uint32_t) hex_bytes(offenders[_i].packet, offender->data, 200);
        ip->plen = be16_put((uint16_t) (offender->len - IP6_HDR_LEN));
        for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
            const char *why = NULL;
            struct packet *p =
                icmp6_error_build(pool, &messages[i].error, &node, offender, 0, &why);
            ck_assert_int_eq(p != NULL, messages[i].is_exception ? offenders[_i].exception
                                                                 : offenders[_i].allowed);
            ck_assert_int_eq(why == NULL, p != NULL);
            packet_put(p);
        }
        packet_put(offender);
    }
END_TEST

/* The end of extension headers. */
static const struct {
    const char *rest;
    struct icmp6_upper want; /* ofs 0: not found. */
    uint8_t nh;
} chains[] = {
    {"", {17, false, 40, 6, 0, 0}, 17},
    {"", {59, false, 40, 6, 0, 0}, 59},
    {"3c00010400000000 1100010400000000 0035003500080000", {17, false, 56, 48, 0, 0}, 0},
    {"3a02040100000000 fd00000000000000 0000000000000001 80", {58, false, 64, 40, 40, 0}, 43},
    {"3a02040000000000 fd00000000000000 0000000000000001 80", {58, false, 64, 40, 0, 0}, 43},
    {"2b00040000000000 1100050100000000", {17, false, 56, 48, 48, 0}, 43}, /* of any type. */
    {"2b00040200000000 1100050100000000", {17, false, 56, 48, 40, 0}, 43},
    {"1100000100000000 0035", {17, true, 48, 40, 0, 0}, 44},
    {"1100000000000000 0035", {17, false, 48, 40, 0, 0}, 44},   /* RFC 6946: atomic. */
    {"110005c800000000 31323334", {44, true, 40, 6, 0, 0}, 44}, /* the middle. */
    {"1104000000000001000000000000000000000000 00000000", {17, false, 64, 40, 0, 0}, 51},
    /* Options: skipped, and not; behind Pad1, PadN and others; over the header's end. */
    {"1100 1e0401020304", {17, false, 48, 40, 0, 0}, 60},
    {"1100 c20401020304", {17, false, 48, 40, 0, 42}, 60},
    {"3c00 1e0080020000 1100 00000101ff40", {17, false, 56, 48, 0, 44}, 0},
    {"1100 00000101ff40", {17, false, 48, 40, 0, 47}, 60},
    {"1100 1e0580ffffff", {17, false, 48, 40, 0, 0}, 60},
    {"1101010400000000", {0}, 0},
    {"1100", {0}, 0},
    {"11000001000000", {0}, 44},
    {"1104000000000001", {0}, 51},
/* 16 headers, 17. */
#define OPT  "3c00010400000000"
#define OPT4 OPT OPT OPT OPT
    {OPT4 OPT4 OPT4 OPT OPT OPT "1100010400000000", {17, false, 168, 160, 0, 0}, 60},
    {OPT4 OPT4 OPT4 OPT4 "1100010400000000", {0}, 60},
};

START_TEST(upper_layer)
    {
        uint8_t ip[256];
        struct icmp6_upper upper;
        const struct icmp6_upper *want = &chains[_i].want;
        size_t len = hex_bytes("6000000000000001" ADDRS, ip, sizeof ip);

        ip[6] = chains[_i].nh;
        len += hex_bytes(chains[_i].rest, ip + len, sizeof ip - len);
        ck_assert_int_eq(icmp6_find_upper(ip, len, &upper), want->ofs != 0);
        if (want->ofs) {
            ck_assert_uint_eq(upper.proto, want->proto);
            ck_assert_int_eq(upper.is_fragment, want->is_fragment);
            ck_assert_uint_eq(upper.ofs, want->ofs);
            ck_assert_uint_eq(upper.proto_ofs, want->proto_ofs);
            ck_assert_uint_eq(upper.routing_ofs, want->routing_ofs);
            ck_assert_uint_eq(upper.option_ofs, want->option_ofs);
        }

        /* Cut at any length, in memory that ends there: not found before it is there. */
        for (size_t cut = IP6_HDR_LEN; cut < len; cut++) {
            uint8_t *part = malloc(cut);
            memcpy(part, ip, cut);
            bool found = icmp6_find_upper(part, cut, &upper);
            if (want->ofs && want->proto != IP6_NH_FRAGMENT) {
                ck_assert_int_eq(found, cut >= want->ofs);
            }
            ck_assert(!found || upper.ofs <= cut);
            free(part);
        }
    }
END_TEST

static const struct {
    const char *data;
    const char *request, *reply; /* checksums. */
} echoes[] = {
    {"", "107e", "0f7e"},
    {"61", "af7c", "ae7c"},
    {"6162", "af19", "ae19"},
    {"616263", "4c18", "4b18"},
};

START_TEST(echo)
    {
        struct packet *request = empty();
        uint8_t *icmp = request->data + IP6_HDR_LEN, want[32];
        const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) request->data;

        hex_bytes("6000000000003a05 fd00000100000000 0000000000000001 5f00000001000000"
                  "0000000000000001",
                  request->data, IP6_HDR_LEN);
        size_t len = 8 + hex_bytes(echoes[_i].data, icmp + 8, 8);
        hex_bytes("8000000012340007", icmp, 8);
        hex_bytes(echoes[_i].request, icmp + 2, 2);
        ck_assert(icmp6_is_valid(ip, icmp, len));

        struct packet *p = icmp6_echo_build(pool, ip, icmp, len);
        const struct ip6_hdr_wire *reply = (const struct ip6_hdr_wire *) p->data;
        memcpy(want, icmp, len);
        want[0] = ICMP6_REPLY;
        hex_bytes(echoes[_i].reply, want + 2, 2);
        ck_assert_uint_eq(p->len, IP6_HDR_LEN + len);
        ck_assert_mem_eq(p->data + IP6_HDR_LEN, want, len);
        ck_assert_mem_eq(&reply->src, &node, 16);
        ck_assert_mem_eq(&reply->dst, &ip->src, 16);
        ck_assert_uint_eq(reply->hlim, 64);
        ck_assert_uint_eq(be16_get(reply->plen), len);
        packet_put(p);

        /* Any byte changed, and anything missing. */
        for (size_t i = 0; i < len; i++) {
            icmp[i] ^= 0x10;
            ck_assert(!icmp6_is_valid(ip, icmp, len));
            icmp[i] ^= 0x10;
            ck_assert(!icmp6_is_valid(ip, icmp, i));
        }
        packet_put(request);
    }
END_TEST

static unsigned
take_all(struct icmp6_limit *limit, uint64_t now)
{
    unsigned n = 0;

    while (icmp6_limit_take(limit, now)) {
        n++;
    }
    return n;
}

START_TEST(rate_limit)
    {
        struct icmp6_limit limit = {0};
        const uint64_t token = 1000000 / ICMP6_ERRORS_PER_SEC;

        ck_assert_uint_eq(take_all(&limit, 0), ICMP6_ERRORS_BURST);
        ck_assert_uint_eq(take_all(&limit, token - 1), 0);
        ck_assert_uint_eq(take_all(&limit, token), 1);
        ck_assert_uint_eq(take_all(&limit, 4 * token), 3);
        ck_assert_uint_eq(take_all(&limit, 3600u * 1000000u), ICMP6_ERRORS_BURST);

        unsigned n = 0;
        for (uint64_t now = 7200u * (uint64_t) 1000000; now < 7210u * (uint64_t) 1000000;
             now += 100) {
            n += icmp6_limit_take(&limit, now);
        }
        ck_assert_uint_eq(n, ICMP6_ERRORS_BURST + 10 * ICMP6_ERRORS_PER_SEC - 1);
    }
END_TEST

Suite *
icmp6_suite(void)
{
    Suite *s = suite_create("icmp6");
    TCase *tc = tcase_create("icmp6");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, errors_as_scapy_makes_them, 0, sizeof errors / sizeof errors[0]);
    tcase_add_loop_test(tc, quotes_what_fits, 0, sizeof sizes / sizeof sizes[0]);
    tcase_add_test(tc, no_buffer);
    tcase_add_loop_test(tc, who_is_told, 0, sizeof offenders / sizeof offenders[0]);
    tcase_add_loop_test(tc, upper_layer, 0, sizeof chains / sizeof chains[0]);
    tcase_add_loop_test(tc, echo, 0, sizeof echoes / sizeof echoes[0]);
    tcase_add_test(tc, rate_limit);
    suite_add_tcase(s, tc);
    return s;
}
