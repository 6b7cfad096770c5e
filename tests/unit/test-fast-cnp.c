/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast CNPs: byte for byte what scapy builds; what is taken and what is not; where the option is
 * seen; how many are made.
 *
 * The ICRCs of forms B and C are from an independent program that also makes those of form A.
 */
#include <stdlib.h>

#include "lib/cnp.h"
#include "lib/fast-cnp.h"
#include "lib/icrc.h"
#include "lib/ioam.h"
#include "lib/roce.h"
#include "tests/unit/hex.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define FILE_NAME   "tests/vectors/congestion-scapy.pcap"
#define FIRST_FRAME 1
#define ETH_LEN     sizeof(struct eth_hdr)
#define DSTOPT_OFS  (ETH_LEN + IP6_HDR_LEN)
#define L4_LEN      (CNP_LEN - IP6_HDR_LEN)
#define ROOM        1024

#define ETH         "020000000100 025f01050001 86dd"
#define IP(PLEN) \
    "6c000000" PLEN "3c40 5f000000010500000000000000000001 fd000001000000000000000000000100"
#define ORIGINAL  "fd00ffff000000000000000000000007"
#define CNP(ICRC) "c12312b700280000 8100ffff40000abc00000000 00000000000000000000000000000000" ICRC
#define ELEMENTS                                                                        \
    "3e000105684000000003d41e00fe00010000cea0 3f000106684000000003d23400a1b2c30000044e" \
    "40000200684000000003d0900012d68700000000"
#define ZEROS    "0000000000000000000000000000000000000000"
#define TRACE    "00012805b6000000" ZEROS ELEMENTS
#define COMPACT  "00012800b6000000" ELEMENTS
#define OPTION_1 "1102010200009e10" ORIGINAL
#define OPTION_2 "110d010200009e68" TRACE ORIGINAL

static const struct {
    const char *frame;
    const char *trace;
    const char *icrc_b, *icrc_c;
} worked[] = {
    {ETH IP("0040") OPTION_1 CNP("97bff411"), "", "df87190b", "a81d21d8"},
    {ETH IP("0098") OPTION_2 CNP("97bff411"), TRACE, "6f6ca3ee", "fe0bdace"},
    {ETH IP("0080") "110a9e54" COMPACT ORIGINAL CNP("97bff411"), COMPACT, NULL, NULL},
};
#define N_WORKED (sizeof worked / sizeof *worked)

/* What all of them say, but for the trace. */
static struct fast_cnp
worked_content(void)
{
    return (struct fast_cnp){.node = hex_addr("5f00:0:105::1"),
                             .sender = hex_addr("fd00:1::100"),
                             .original = hex_addr("fd00:ffff::7"),
                             .dest_qp = 0xabc};
}

static size_t
worked_frame(unsigned i, uint8_t *frame)
{
    return hex_bytes(worked[i].frame, frame, ROOM);
}

/* In a buffer of exactly 'len' bytes.  *out refers to it no more: its trace is copied to 'trace',
 * if that is not NULL. */
static enum drop_reason
parse(const uint8_t *frame, size_t len, bool any_icrc, struct fast_cnp *out, uint8_t *trace)
{
    uint8_t *exact = malloc(len ? len : 1);
    struct parsed h;

    memcpy(exact, frame, len);
    enum drop_reason why = parse_outer(exact, (uint32_t) len, &h);
    if (why == DROP_none) {
        why = fast_cnp_parse(exact, (uint32_t) len, &h, any_icrc, out);
    }
    if (why == DROP_none && trace && out->trace) {
        memcpy(trace, out->trace, out->trace_len);
    }
    free(exact);
    return why;
}

static enum drop_reason
judge(const uint8_t *frame, size_t len, bool any_icrc)
{
    struct fast_cnp out;

    return parse(frame, len, any_icrc, &out, NULL);
}

static bool
seen(const uint8_t *frame, size_t len)
{
    uint8_t *exact = malloc(len ? len : 1);
    struct parsed h;

    memcpy(exact, frame, len);
    bool is = parse_outer(exact, (uint32_t) len, &h) == DROP_none
              && fast_cnp_seen(exact, (uint32_t) len, &h);
    free(exact);
    return is;
}

/* Proves FC-18, FC-20, FC-21, FC-22, FC-25, FC-26, FC-27, FC-37. */
START_TEST(as_scapy_makes_them)
    {
        struct packet_pool *pool = packet_pool_create(1);
        uint8_t expected[ROOM], trace[256];
        size_t expected_len = worked_frame((unsigned) _i, expected);
        struct fast_cnp say = worked_content();
        uint32_t len;
        uint8_t *frame = pcap_file_frame(FILE_NAME, FIRST_FRAME + (unsigned) _i, &len);

        say.trace_len = (uint8_t) hex_bytes(worked[_i].trace, trace, sizeof trace);
        say.trace = say.trace_len ? trace : NULL;
        struct packet *p = fast_cnp_build(pool, &say, 0xc123);
        ck_assert_uint_eq(len, expected_len);
        ck_assert_mem_eq(frame, expected, len);
        ck_assert_uint_eq(packet_size(p), len - ETH_LEN);
        ck_assert_mem_eq(p->data, frame + ETH_LEN, len - ETH_LEN);
        ck_assert_ptr_null(fast_cnp_build(pool, &say, 0xc123));
        free(frame);
        packet_put(p);
        packet_pool_destroy(pool);
    }
END_TEST

START_TEST(taken)
    {
        uint8_t frame[ROOM], trace[256], want_trace[256];
        size_t len = worked_frame((unsigned) _i, frame);
        size_t want_len = hex_bytes(worked[_i].trace, want_trace, sizeof want_trace);
        struct fast_cnp want = worked_content(), got;

        ck_assert(seen(frame, len));
        ck_assert_int_eq(parse(frame, len, false, &got, trace), DROP_none);
        ck_assert_mem_eq(&got.node, &want.node, sizeof want.node);
        ck_assert_mem_eq(&got.sender, &want.sender, sizeof want.sender);
        ck_assert_mem_eq(&got.original, &want.original, sizeof want.original);
        ck_assert_uint_eq(got.dest_qp, want.dest_qp);
        ck_assert_uint_eq(got.trace_len, want_len);
        ck_assert_int_eq(got.trace != NULL, want_len != 0);
        ck_assert_mem_eq(trace, want_trace, want_len);
    }
END_TEST

START_TEST(icrc_forms)
    {
        for (unsigned i = 0; i < N_WORKED; i++) {
            const char *const forms[] = {worked[i].icrc_b, worked[i].icrc_c};
            uint8_t frame[ROOM];
            size_t len = worked_frame(i, frame);

            for (unsigned k = 0; k < 2 && forms[k]; k++) {
                hex_bytes(forms[k], frame + len - ROCE_ICRC_LEN, ROCE_ICRC_LEN);
                ck_assert_int_eq(judge(frame, len, false), DROP_none);
            }
            frame[len - 1]++;
            ck_assert_int_eq(judge(frame, len, false), DROP_fast_cnp_icrc);
            ck_assert_int_eq(judge(frame, len, true), DROP_none);
        }
    }
END_TEST

/* Bits that routers change. */
static bool
is_masked(size_t byte, size_t bit, size_t l4_ofs)
{
    return (byte == 0 && bit % 8 >= 4) || (byte >= 1 && byte <= 3) || byte == 7
           || byte == l4_ofs + 6 || byte == l4_ofs + 7 || byte == l4_ofs + 12;
}

/* Form C covers all of the packet. */
START_TEST(every_bit_of_form_c)
    {
        uint8_t frame[ROOM];
        size_t len = worked_frame((unsigned) _i, frame);

        hex_bytes(worked[_i].icrc_c, frame + len - ROCE_ICRC_LEN, ROCE_ICRC_LEN);
        for (size_t bit = 0; bit < (len - ETH_LEN) * 8; bit++) {
            size_t byte = bit / 8;
            uint8_t mask = (uint8_t) (0x80 >> bit % 8);

            frame[ETH_LEN + byte] ^= mask;
            ck_assert_msg((judge(frame, len, false) == DROP_none)
                              == is_masked(byte, bit, len - ETH_LEN - L4_LEN),
                          "byte %zu, bit %zu", byte, bit % 8);
            frame[ETH_LEN + byte] ^= mask;
        }
    }
END_TEST

/* Form A covers all but the Destination Options header. */
START_TEST(every_bit_of_form_a)
    {
        uint8_t frame[ROOM];
        size_t len = worked_frame((unsigned) _i, frame), l4_ofs = len - ETH_LEN - L4_LEN;

        for (size_t bit = 0; bit < (len - ETH_LEN) * 8; bit++) {
            size_t byte = bit / 8;
            uint8_t mask = (uint8_t) (0x80 >> bit % 8);

            if (byte >= IP6_HDR_LEN && byte < l4_ofs) {
                continue;
            }
            frame[ETH_LEN + byte] ^= mask;
            ck_assert_msg((judge(frame, len, false) == DROP_none) == is_masked(byte, bit, l4_ofs),
                          "byte %zu, bit %zu", byte, bit % 8);
            frame[ETH_LEN + byte] ^= mask;
        }
    }
END_TEST

START_TEST(truncated)
    {
        uint8_t frame[ROOM];
        size_t len = worked_frame((unsigned) _i, frame);

        for (size_t n = 0; n < len; n++) {
            ck_assert_int_ne(judge(frame, n, true), DROP_none);
            ck_assert(!seen(frame, n)); /* shorter than it says. */
        }
        /* With a payload length that fits what is left. */
        for (size_t n = 0; n < len - DSTOPT_OFS; n++) {
            frame[ETH_LEN + 5] = (uint8_t) n;
            ck_assert_int_eq(judge(frame, DSTOPT_OFS + n, true), DROP_fast_cnp_malformed);
            ck_assert_int_eq(seen(frame, DSTOPT_OFS + n), n >= len - DSTOPT_OFS - L4_LEN);
        }
    }
END_TEST

static const struct {
    const char *what;
    const char *dstopt;
    bool good;
} paddings[] = {
    {"behind the option", "11029e10" ORIGINAL "01020000", true},
    {"Pad1s", "1102000000009e10" ORIGINAL, true},
    {"many", "1104 010a00000000000000000000 0000 010400000000 9e10" ORIGINAL, true},
    {"of no bytes", "1102 0100 0100 9e10" ORIGINAL, true},
    {"not zero", "1102 0102abcd 9e10" ORIGINAL, true},
    {"both sides", "1103 0000 9e10" ORIGINAL "01080000000000000000", true},
    {"no option", "1102 0114" ORIGINAL "00000000", false},
    {"another option", "1102 01020000 9f10" ORIGINAL, false},
    {"another one in front", "1102 1e020000 9e10" ORIGINAL, false},
    {"another one behind", "1102 9e10" ORIGINAL "1e020000", false},
    {"twice", "1104 9e10" ORIGINAL "9e10" ORIGINAL "0000", false},
    {"an option behind it runs over", "1102 9e10" ORIGINAL "01030000", false},
    {"runs over the header", "1102 010200009e11" ORIGINAL, false},
    {"type without length", "1102 9e10" ORIGINAL "0000009e", false},
    {"data of 0 bytes", "1100 9e00 0102 0000", false},
    {"data of 15 bytes", "1102 0103000000 9e0f fd00ffff0000000000000000000000", false},
    {"data of 20 bytes", "1102 9e14 00000000" ORIGINAL, false},
    {"data of 24 bytes", "1103 01020000 9e18 00012800b6000000" ORIGINAL, true},
    {"data of 26 bytes", "1103 0100 9e1a 00012800b60000000000" ORIGINAL, false},
    {"another next header", "3a02010200009e10" ORIGINAL, false},
};

/* Around the CNP with a good ICRC. */
START_TEST(shapes)
    {
        uint8_t frame[ROOM], opt_len;
        size_t len = hex_bytes(ETH IP("0000"), frame, ROOM);

        opt_len = (uint8_t) hex_bytes(paddings[_i].dstopt, frame + len, ROOM - len);
        ck_assert_msg(opt_len == (frame[len + 1] + 1) * 8, "%s: %u bytes", paddings[_i].what,
                      opt_len);
        len += opt_len;
        len += hex_bytes(CNP("97bff411"), frame + len, ROOM - len);
        frame[ETH_LEN + 5] = (uint8_t) (len - DSTOPT_OFS);
        ck_assert_msg(judge(frame, len, false)
                          == (paddings[_i].good ? DROP_none : DROP_fast_cnp_malformed),
                      "%s", paddings[_i].what);
        frame[len] = 0; /* Ethernet's padding does not count. */
        ck_assert_int_eq(judge(frame, len + 1, false) == DROP_none, paddings[_i].good);
    }
END_TEST

START_TEST(upper_layers)
    {
        static const struct {
            size_t ofs; /* from UDP on. */
            uint8_t value;
        } wrong[] = {
            {3, 0xb8},   /* destination port. */
            {5, 0x27},   /* UDP length, */
            {5, 0x29},   /* longer than the packet. */
            {8, RC_ACK}, /* opcode. */
            {9, 1},      /* transport version. */
        };

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            uint8_t frame[ROOM];
            size_t len = worked_frame(0, frame);

            frame[len - L4_LEN + wrong[i].ofs] = wrong[i].value;
            ck_assert_int_eq(judge(frame, len, true), DROP_fast_cnp_malformed);
        }
        uint8_t frame[ROOM] = {0};
        size_t len = worked_frame(0, frame);
        frame[ETH_LEN + 5] += 8; /* bytes behind UDP that belong to the packet. */
        ck_assert_int_eq(judge(frame, len + 8, true), DROP_fast_cnp_malformed);
        len = worked_frame(0, frame);
        frame[ETH_LEN + 6] = IP6_NH_HOPOPT; /* the option is in another header. */
        ck_assert_int_eq(judge(frame, len, true), DROP_fast_cnp_malformed);
        ck_assert(!seen(frame, len));
    }
END_TEST

/* A trace of as many slots, of which so many are filled. */
static uint8_t
make_trace(uint8_t *trace, unsigned slots, unsigned filled)
{
    uint8_t hbh[512], len = (uint8_t) (IOAM_TRACE_HDR_LEN + IOAM_ELEMENT_LEN * slots);

    ioam_build(hbh, 43, 1);
    memset(trace, 0, len);
    memcpy(trace, hbh + 8, IOAM_TRACE_HDR_LEN);
    trace[3] = (uint8_t) (5 * slots);
    for (unsigned i = 0; i < filled; i++) {
        struct ioam_element e = {.hop_limit = 64, .node_id = i};

        ck_assert_int_eq(ioam_fill(trace, len, &e), IOAM_FILLED);
    }
    return len;
}

/* All 11 slots that a sender leaves here fit.  Of 12, which RFC 9486 allows, 11 filled ones do. */
START_TEST(long_traces)
    {
        static const struct {
            unsigned slots, filled, kept;
            bool verbatim;
        } cases[] = {{1, 0, 0, true},   {11, 0, 0, true},    {11, 11, 11, true},
                     {12, 0, 0, false}, {12, 11, 11, false}, {12, 12, 0, false}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct packet_pool *pool = packet_pool_create(1);
            struct fast_cnp say = worked_content(), got;
            uint8_t trace[256], back[256], frame[ROOM];
            struct ioam_element e;

            say.trace = trace;
            say.trace_len = make_trace(trace, cases[i].slots, cases[i].filled);
            struct packet *p = fast_cnp_build(pool, &say, 0xc123);
            size_t len = hex_bytes(ETH, frame, ROOM);
            memcpy(frame + len, p->data, p->len);
            ck_assert_int_eq(parse(frame, len + p->len, false, &got, back), DROP_none);
            ck_assert_int_eq(!got.trace, cases[i].filled == 12);
            if (cases[i].verbatim) {
                ck_assert_uint_eq(got.trace_len, say.trace_len);
                ck_assert_mem_eq(back, trace, say.trace_len);
            } else if (got.trace) {
                ck_assert_uint_eq(back[3], 0); /* RemainingLen. */
            }
            ck_assert(!got.trace || ioam_read(back, got.trace_len, 0, &e) == (cases[i].kept > 0));
            ck_assert(!got.trace || !ioam_read(back, got.trace_len, cases[i].kept, &e));
            packet_put(p);
            packet_pool_destroy(pool);
        }
    }
END_TEST

#define PLAIN(PLEN, NH) "60000000" PLEN NH "40" ADDRS
#define ADDRS           "5f000000010500000000000000000001 fd000001000000000000000000000100"
#define OPT             "3b02010200009e10" ORIGINAL
#define HARMLESS        "00010400000000"

static const struct {
    const char *what;
    const char *packet;
    bool seen;
} places[] = {
    {"at once", PLAIN("0018", "3c") OPT, true},
    {"behind Hop-by-Hop Options", PLAIN("0020", "00") "3c" HARMLESS OPT, true},
    {"behind a Routing header", PLAIN("0020", "2b") "3c00040000000000" OPT, true},
    {"behind other Destination Options", PLAIN("0020", "3c") "3c" HARMLESS OPT, true},
    {"behind nine of them",
     PLAIN("0060", "3c") "3c" HARMLESS "3c" HARMLESS "3c" HARMLESS "3c" HARMLESS "3c" HARMLESS
                         "3c" HARMLESS "3c" HARMLESS "3c" HARMLESS "3c" HARMLESS OPT,
     true},
    {"behind another option", PLAIN("0008", "3c") "3b00 0500 9e02 0000", true},
    {"in a tunnel", PLAIN("0040", "29") PLAIN("0018", "3c") OPT, true},
    {"in the tunnel's header", PLAIN("0040", "3c") "2902010200009e10" ORIGINAL PLAIN("0000", "3b"),
     true},
    {"in a tunnel in a tunnel", PLAIN("0068", "29") PLAIN("0040", "29") PLAIN("0018", "3c") OPT,
     true},
    {"in a tunnel behind an SRH",
     PLAIN("0058", "2b") "2902040000000000" ORIGINAL PLAIN("0018", "3c") OPT, true},
    {"in the first fragment", PLAIN("0020", "2c") "3c00000100000001" OPT, true},
    {"in a later fragment", PLAIN("0020", "2c") "3c00000800000001" OPT, false},
    {"in Hop-by-Hop Options", PLAIN("0018", "00") OPT, false},
    {"in the payload", PLAIN("0018", "3b") OPT, false},
    {"in another option's data", PLAIN("0008", "3c") "3b00 0504 9e02 0000", false},
    {"no option of it", PLAIN("0008", "3c") "3b" HARMLESS, false},
    {"behind one that runs over", PLAIN("0008", "3c") "3b00 0510 9e02 0000", false},
    {"header runs over", PLAIN("0010", "3c") OPT, false},
    {"tunnel's packet runs over", PLAIN("0040", "29") PLAIN("0019", "3c") OPT, false},
    {"tunnel's packet is shorter", PLAIN("0040", "29") PLAIN("0010", "3c") OPT, false},
    {"tunnel's packet is another version", PLAIN("0040", "29") "40000000 0018 3c40" ADDRS OPT,
     false},
};

START_TEST(seen_anywhere)
    {
        uint8_t frame[ROOM];
        size_t len = hex_bytes(ETH, frame, ROOM);

        len += hex_bytes(places[_i].packet, frame + len, ROOM - len);
        ck_assert_msg(seen(frame, len) == places[_i].seen, "%s", places[_i].what);
    }
END_TEST

/* Limits. */

#define INTERVAL   10000
#define PER_SECOND 100

static struct in6_addr
addr(uint32_t n)
{
    struct in6_addr a = hex_addr("fd00:1::");
    be32_t low = be32_put(n);

    memcpy(&a.s6_addr[12], &low, sizeof low);
    return a;
}

static struct fast_cnp_limit *
limit_create(uint32_t per_second)
{
    struct fast_cnp_limit *l = fast_cnp_limit_create();

    fast_cnp_limit_configure(l, INTERVAL, per_second);
    return l;
}

static enum fast_cnp_verdict
ask(struct fast_cnp_limit *l, uint32_t sender, uint32_t original, uint32_t qpn, uint64_t now)
{
    struct in6_addr from = addr(sender), to = addr(original);

    return fast_cnp_limit_ask(l, &from, &to, qpn, now);
}

START_TEST(one_per_interval)
    {
        struct fast_cnp_limit *l = limit_create(PER_SECOND);

        ck_assert_int_eq(ask(l, 1, 2, 3, 5), FAST_CNP_SEND);
        ck_assert_int_eq(ask(l, 1, 2, 3, 5), FAST_CNP_TOO_SOON);
        ck_assert_int_eq(ask(l, 1, 2, 4, 6), FAST_CNP_SEND);
        ck_assert_int_eq(ask(l, 1, 3, 3, 6), FAST_CNP_SEND);
        ck_assert_int_eq(ask(l, 2, 2, 3, 6), FAST_CNP_SEND);
        ck_assert_int_eq(ask(l, 1, 2, 3, 5 + INTERVAL - 1), FAST_CNP_TOO_SOON);
        ck_assert_int_eq(ask(l, 1, 2, 3, 5 + INTERVAL), FAST_CNP_SEND);
        ck_assert_int_eq(ask(l, 1, 2, 3, 5 + INTERVAL + 1), FAST_CNP_TOO_SOON);
        fast_cnp_limit_destroy(l);
    }
END_TEST

START_TEST(per_destination)
    {
        struct fast_cnp_limit *l = limit_create(PER_SECOND);

        for (uint32_t qpn = 0; qpn < FAST_CNP_PER_DST; qpn++) {
            ck_assert_int_eq(ask(l, 1, 2, qpn, qpn), FAST_CNP_SEND);
        }
        ck_assert_int_eq(ask(l, 1, 2, 100, 10), FAST_CNP_DST_LIMIT);
        ck_assert_int_eq(ask(l, 1, 2, 0, 10), FAST_CNP_TOO_SOON);
        ck_assert_int_eq(ask(l, 2, 2, 100, 10), FAST_CNP_SEND);
        ck_assert_int_eq(ask(l, 1, 2, 100, INTERVAL - 1), FAST_CNP_DST_LIMIT);
        ck_assert_int_eq(ask(l, 1, 2, 100, INTERVAL), FAST_CNP_SEND); /* the first is over. */
        ck_assert_int_eq(ask(l, 1, 2, 101, INTERVAL), FAST_CNP_DST_LIMIT);
        fast_cnp_limit_destroy(l);
    }
END_TEST

START_TEST(per_node)
    {
        struct fast_cnp_limit *l = limit_create(PER_SECOND);

        for (uint32_t i = 0; i < PER_SECOND; i++) {
            ck_assert_int_eq(ask(l, i, 2, 3, i * 1000), FAST_CNP_SEND);
        }
        ck_assert_int_eq(ask(l, PER_SECOND, 2, 3, 999999), FAST_CNP_NODE_LIMIT);
        ck_assert_int_eq(ask(l, PER_SECOND, 2, 3, 1000000), FAST_CNP_SEND);
        fast_cnp_limit_configure(l, INTERVAL, 1);
        ck_assert_int_eq(ask(l, PER_SECOND + 1, 2, 3, 1000000), FAST_CNP_NODE_LIMIT);
        fast_cnp_limit_destroy(l);
    }
END_TEST

/* More flows than the table has: the newest are known, the oldest are not. */
START_TEST(oldest_is_overwritten)
    {
        struct fast_cnp_limit *l = limit_create(10 * FAST_CNP_FLOWS);
        const uint32_t n = FAST_CNP_FLOWS + 10;

        for (uint32_t i = 0; i < n; i++) {
            ck_assert_int_eq(ask(l, i, 2, 3, 1), FAST_CNP_SEND);
        }
        for (uint32_t i = 10; i < n; i++) {
            ck_assert_int_eq(ask(l, i, 2, 3, 2), FAST_CNP_TOO_SOON);
        }
        for (uint32_t i = 0; i < 10; i++) {
            ck_assert_int_eq(ask(l, i, 2, 3, 2), FAST_CNP_SEND);
        }
        fast_cnp_limit_destroy(l);
    }
END_TEST

START_TEST(as_a_plain_list_says)
    {
        static struct {
            uint32_t sender, original, qpn;
            uint64_t at;
        } log[20000];
        struct fast_cnp_limit *l = limit_create(UINT32_MAX);
        size_t n = 0;
        uint64_t now = 0;
        unsigned seen_verdicts[FAST_CNP_UNWANTED + 1] = {0};

        srand(1);
        for (int i = 0; i < 20000; i++) {
            uint32_t sender = (uint32_t) rand() % 12, original = (uint32_t) rand() % 3;
            uint32_t qpn = (uint32_t) rand() % 8;
            unsigned same = 0, to_sender = 0;

            now += (uint64_t) rand() % 200;
            for (size_t k = n; k-- > 0 && now - log[k].at < INTERVAL;) {
                to_sender += log[k].sender == sender;
                same += log[k].sender == sender && log[k].original == original && log[k].qpn == qpn;
            }
            enum fast_cnp_verdict want = same                            ? FAST_CNP_TOO_SOON
                                         : to_sender >= FAST_CNP_PER_DST ? FAST_CNP_DST_LIMIT
                                                                         : FAST_CNP_SEND;
            ck_assert_int_eq(ask(l, sender, original, qpn, now), want);
            seen_verdicts[want]++;
            if (want == FAST_CNP_SEND) {
                log[n].sender = sender;
                log[n].original = original;
                log[n].qpn = qpn;
                log[n++].at = now;
            }
        }
        ck_assert_uint_gt(n, FAST_CNP_FLOWS);
        ck_assert_uint_gt(seen_verdicts[FAST_CNP_TOO_SOON], 100);
        ck_assert_uint_gt(seen_verdicts[FAST_CNP_DST_LIMIT], 100);
        fast_cnp_limit_destroy(l);
    }
END_TEST

START_TEST(unwanted)
    {
        struct fast_cnp_limit *l = limit_create(PER_SECOND);
        struct in6_addr a = addr(1), b = addr(2);

        ck_assert(!fast_cnp_limit_is_unwanted(l, &a, 7));
        fast_cnp_limit_unwanted(l, &a, 7);
        ck_assert(fast_cnp_limit_is_unwanted(l, &a, 7));
        ck_assert(!fast_cnp_limit_is_unwanted(l, &b, 7));
        ck_assert_int_eq(ask(l, 1, 2, 3, 8), FAST_CNP_UNWANTED);
        ck_assert_int_eq(ask(l, 2, 2, 3, 8), FAST_CNP_SEND);
        ck_assert_int_eq(ask(l, 1, 2, 3, 7 + FAST_CNP_UNWANTED_USEC - 1), FAST_CNP_UNWANTED);
        ck_assert_int_eq(ask(l, 1, 2, 3, 7 + FAST_CNP_UNWANTED_USEC), FAST_CNP_SEND);

        /* Many: the newest is always known, and one that repeats it takes no place of others. */
        for (uint32_t i = 100; i < 1000; i++) {
            struct in6_addr many = addr(i), before = addr(i - 1);

            fast_cnp_limit_unwanted(l, &many, 8);
            fast_cnp_limit_unwanted(l, &many, 8);
            ck_assert(fast_cnp_limit_is_unwanted(l, &many, 8));
            ck_assert(i == 100 || fast_cnp_limit_is_unwanted(l, &before, 8));
        }
        fast_cnp_limit_destroy(l);
    }
END_TEST

Suite *
fast_cnp_suite(void)
{
    Suite *suite = suite_create("fast_cnp");
    TCase *tc = tcase_create("fast_cnp");

    tcase_add_loop_test(tc, as_scapy_makes_them, 0, N_WORKED);
    tcase_add_loop_test(tc, taken, 0, N_WORKED);
    tcase_add_test(tc, icrc_forms);
    tcase_add_loop_test(tc, every_bit_of_form_c, 0, 2);
    tcase_add_loop_test(tc, every_bit_of_form_a, 0, N_WORKED);
    tcase_add_loop_test(tc, truncated, 0, N_WORKED);
    tcase_add_loop_test(tc, shapes, 0, sizeof paddings / sizeof *paddings);
    tcase_add_test(tc, upper_layers);
    tcase_add_test(tc, long_traces);
    tcase_add_loop_test(tc, seen_anywhere, 0, sizeof places / sizeof *places);
    tcase_add_test(tc, one_per_interval);
    tcase_add_test(tc, per_destination);
    tcase_add_test(tc, per_node);
    tcase_add_test(tc, oldest_is_overwritten);
    tcase_add_test(tc, as_a_plain_list_says);
    tcase_add_test(tc, unwanted);
    suite_add_tcase(suite, tc);
    return suite;
}
