/* SPDX-License-Identifier: Apache-2.0
 *
 * IOAM traces: the header on its way through three nodes, byte for byte; traces of other types;
 * what is not touched.
 */
#include <stdlib.h>

#include "lib/ioam.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define FILE_NAME   "tests/vectors/congestion-scapy.pcap"
#define FIRST_FRAME 4 /* the empty one. */
#define ETH_LEN     sizeof(struct eth_hdr)
#define HBH_LEN     IOAM_HBH_LEN(4)
#define TRACE_OFS   8 /* in the Hop-by-Hop header. */
#define LIST_OFS    (TRACE_OFS + IOAM_TRACE_HDR_LEN)

#define HBH         "2b0b0100 315a0000 0001"
#define BY_AGENT    "40000200 68400000 0003d090 0012d687 00000000"
#define BY_N6       "3f000106 68400000 0003d234 00a1b2c3 0000044e"
#define BY_N5       "3e000105 68400000 0003d41e 00fe0001 0000cea0"
#define ZEROS       "00000000 00000000 00000000 00000000 00000000"

static const char *const worked[] = {
    HBH "2814 b6000000" ZEROS ZEROS ZEROS ZEROS,
    HBH "280f b6000000" ZEROS ZEROS ZEROS BY_AGENT,
    HBH "280a b6000000" ZEROS ZEROS BY_N6 BY_AGENT,
    HBH "2805 b6000000" ZEROS BY_N5 BY_N6 BY_AGENT,
};
#define N_WORKED (sizeof worked / sizeof *worked)

static const struct ioam_element elements[] = {
    {64, 0x200, 0x68400000, 250000, 1234567, 0},
    {63, 0x106, 0x68400000, 250420, 0xa1b2c3, 1102},
    {62, 0x105, 0x68400000, 250910, 0xfe0001, 52896},
};

static void
assert_same(const struct ioam_element *a, const struct ioam_element *b)
{
    ck_assert_uint_eq(a->hop_limit, b->hop_limit);
    ck_assert_uint_eq(a->node_id, b->node_id);
    ck_assert_uint_eq(a->seconds, b->seconds);
    ck_assert_uint_eq(a->usec, b->usec);
    ck_assert_uint_eq(a->sent_bytes, b->sent_bytes);
    ck_assert_uint_eq(a->queue_bytes, b->queue_bytes);
}

START_TEST(three_nodes)
    {
        uint8_t made[HBH_LEN], expected[HBH_LEN];

        ioam_build(made, 43, 4);
        for (unsigned i = 0; i < N_WORKED; i++) {
            uint32_t len;
            uint8_t *frame = pcap_file_frame(FILE_NAME, FIRST_FRAME + i, &len);

            ck_assert_uint_eq(hex_bytes(worked[i], expected, sizeof expected), HBH_LEN);
            ck_assert_mem_eq(made, expected, HBH_LEN);
            ck_assert_mem_eq(frame + ETH_LEN + IP6_HDR_LEN, expected, HBH_LEN);
            free(frame);
            if (i < N_WORKED - 1) {
                ck_assert_int_eq(ioam_fill(made + TRACE_OFS, HBH_LEN - TRACE_OFS, &elements[i]),
                                 IOAM_FILLED);
            }
        }
    }
END_TEST

START_TEST(read_back)
    {
        for (unsigned n = 0; n < N_WORKED; n++) {
            uint32_t len;
            uint8_t trace_len, *frame = pcap_file_frame(FILE_NAME, FIRST_FRAME + n, &len);
            uint8_t *trace = ioam_find(frame + ETH_LEN, len - (uint32_t) ETH_LEN, &trace_len);
            struct ioam_element e;

            ck_assert_ptr_eq(trace, frame + ETH_LEN + IP6_HDR_LEN + TRACE_OFS);
            ck_assert_uint_eq(trace_len, HBH_LEN - TRACE_OFS);
            for (unsigned i = 0; i < n; i++) {
                ck_assert(ioam_read(trace, trace_len, i, &e));
                assert_same(&e, &elements[n - 1 - i]);
            }
            ck_assert(!ioam_read(trace, trace_len, n, &e));
            ck_assert(!ioam_read(trace, trace_len, UINT32_MAX, &e));
            free(frame);
        }
    }
END_TEST

START_TEST(all_sizes)
    {
        for (unsigned slots = 1; slots <= IOAM_MAX_SLOTS; slots++) {
            uint8_t packet[IP6_HDR_LEN + 256] = {0x60}, trace_len;
            uint32_t len = IOAM_HBH_LEN(slots);

            memset(packet + IP6_HDR_LEN, 0xee, 256);
            packet[5] = (uint8_t) len;
            ioam_build(packet + IP6_HDR_LEN, 59, slots);
            ck_assert_uint_eq(packet[IP6_HDR_LEN + len], 0xee);
            ck_assert_uint_eq(packet[IP6_HDR_LEN], 59);
            ck_assert_uint_eq((packet[IP6_HDR_LEN + 1] + 1u) * 8, len);
            uint8_t *trace = ioam_find(packet, IP6_HDR_LEN + len, &trace_len);
            ck_assert_ptr_nonnull(trace);
            ck_assert_uint_eq(trace_len, IOAM_TRACE_HDR_LEN + IOAM_ELEMENT_LEN * slots);
            /* Behind it there is padding that says so. */
            uint8_t *behind = trace + trace_len, *end = packet + IP6_HDR_LEN + len;
            ck_assert(behind == end || (behind[0] == 1 && behind + 2 + behind[1] == end));
            for (unsigned i = 0; i < slots; i++) {
                ck_assert_int_eq(ioam_fill(trace, trace_len, &elements[0]), IOAM_FILLED);
            }
            ck_assert_int_eq(ioam_fill(trace, trace_len, &elements[1]), IOAM_OVERFLOW);
        }
    }
END_TEST

START_TEST(overflow)
    {
        uint8_t hbh[HBH_LEN], before[HBH_LEN];
        uint8_t *trace = hbh + TRACE_OFS, len = HBH_LEN - TRACE_OFS;
        struct ioam_element e;

        ioam_build(hbh, 43, 4);
        trace[3] = 4; /* RemainingLen: a word less than an element. */
        memcpy(before, hbh, sizeof before);
        ck_assert_int_eq(ioam_fill(trace, len, &elements[0]), IOAM_OVERFLOW);
        before[TRACE_OFS + 2] |= 4;
        ck_assert_mem_eq(hbh, before, sizeof hbh);
        /* A node behind one that had no room adds nothing either, though it had some. */
        trace[3] = before[TRACE_OFS + 3] = 10;
        ck_assert_int_eq(ioam_fill(trace, len, &elements[0]), IOAM_OVERFLOW);
        ck_assert_mem_eq(hbh, before, sizeof hbh);
        ck_assert(ioam_read(trace, len, 0, &e)); /* what others have written is still there. */
    }
END_TEST

static const struct {
    const char *what;
    const char *hdr; /* of a trace with 10 words. */
} ignored[] = {
    {"another namespace", "0002 280a b6000000"},
    {"RemainingLen beyond the option", "0001 280b b6000000"},
    {"RemainingLen beyond the option, and Overflow", "0001 2c7f b6000000"},
    {"NodeLen below that of the type", "0001 200a b6000000"},
    {"NodeLen above that of the type", "0001 300a b6000000"},
    {"NodeLen of a wide field", "0001 080a 00800000"},
    {"NodeLen without undefined fields", "0001 080a 80080400"},
};

/* Proves FC-36. */
START_TEST(not_touched)
    {
        uint8_t trace[8 + 40] = {0}, before[sizeof trace];
        struct ioam_element e;

        hex_bytes(ignored[_i].hdr, trace, sizeof trace);
        memcpy(before, trace, sizeof trace);
        ck_assert_int_eq(ioam_fill(trace, sizeof trace, &elements[0]), IOAM_IGNORED);
        ck_assert_mem_eq(trace, before, sizeof trace);
        ck_assert_msg(!ioam_read(trace, sizeof trace, 0, &e), "%s", ignored[_i].what);
    }
END_TEST

static const struct {
    const char *before;
    const char *after;
} types[] = {
    /* Namespace 0 is known to all. */
    {"0000 0801 80000000 00000000", "0000 0800 80000000 3e000105"},
    /* All short fields: 0 to 7 and 11. */
    {"0001 4809 ff100000" ZEROS "00000000000000000000000000000000",
     "0001 4800 ff100000 3e000105 ffffffff 68400000 0003d41e ffffffff 00fe0001 0000cea0 ffffffff"
     "ffffffff"},
    /* The wide ones. */
    {"0001 3006 00e00000" ZEROS "00000000",
     "0001 3000 00e00000 3e00000000000105 ffffffffffffffff ffffffffffffffff"},
    /* Undefined bits 12 and 21, behind those that are known. */
    {"0001 1803 80080400 000000000000000000000000",
     "0001 1800 80080400 3e000105 ffffffff ffffffff"},
    /* Opaque: behind the element, and not in NodeLen. */
    {"0001 0803 80000200 000000000000000000000000",
     "0001 0801 80000200 00000000 3e000105 00ffffff"},
    {"0001 0802 80000200 0000000000000000", "0001 0800 80000200 3e000105 00ffffff"},
    /* Bit 23 and Reserved are of no account; other flags stay. */
    {"0001 0b01 800001ff 00000000", "0001 0b00 800001ff 3e000105"},
    {"0001 0a81 80000000 00000000", "0001 0a80 80000000 3e000105"},
};

START_TEST(any_type)
    {
        uint8_t trace[64], expected[64];
        size_t len = hex_bytes(types[_i].before, trace, sizeof trace);

        ck_assert_uint_eq(hex_bytes(types[_i].after, expected, sizeof expected), len);
        ck_assert_int_eq(ioam_fill(trace, (uint8_t) len, &elements[2]), IOAM_FILLED);
        ck_assert_mem_eq(trace, expected, len);
    }
END_TEST

static const struct {
    const char *what;
    const char *packet; /* from the Hop-by-Hop header on. */
    unsigned found;     /* offset of the trace; 0: none. */
} packets[] = {
    {"as built", "3b020100 310e0000 00010801 80000000 00000000 01020000", 8},
    {"Pad1s in front", "3b020000 310e0000 00010801 80000000 00000000 01020000", 8},
    {"another option in front",
     "3b030502 00000104 00000000 310e0000 00010801 80000000 00000000"
     "01020000",
     16},
    {"not at a multiple of 4", "3b020000 00310e00 00000108 01800000 00000000 00000000", 0},
    {"another IOAM option", "3b020100 310e0003 00010801 80000000 00000000 01020000", 0},
    {"too short for a trace", "3b010100 31060000 00010801 01020000", 0},
    {"no whole words", "3b020100 310f0000 00010801 80000000 00000000 00010100", 0},
    {"runs over the header", "3b010100 310e0000 00010801 80000000 00000000 01020000", 0},
    {"behind one that runs over", "3b010140 310a0000 00010800 00000000", 0},
    {"a length at the end", "3b000104 00000000 31", 0},
    {"type without length", "3b000103 00000031", 0},
};

/* In a buffer of exactly 'len' bytes. */
static unsigned
find(const uint8_t *packet, size_t len, uint8_t *trace_len)
{
    uint8_t *exact = malloc(len ? len : 1);

    memcpy(exact, packet, len);
    const uint8_t *trace = ioam_find(exact, (uint32_t) len, trace_len);
    unsigned ofs = trace ? (unsigned) (trace - exact) : 0;
    free(exact);
    return ofs;
}

START_TEST(found)
    {
        uint8_t packet[IP6_HDR_LEN + 64] = {0x60}, trace_len = 0;
        size_t n = hex_bytes(packets[_i].packet, packet + IP6_HDR_LEN, 64);
        unsigned want = packets[_i].found ? IP6_HDR_LEN + packets[_i].found : 0;

        packet[5] = (uint8_t) n;
        ck_assert_msg(find(packet, IP6_HDR_LEN + n, &trace_len) == want, "%s", packets[_i].what);
        ck_assert(!want || trace_len == 12);
        packet[6] = 60; /* it is no Hop-by-Hop header. */
        ck_assert_uint_eq(find(packet, IP6_HDR_LEN + n, &trace_len), 0);
    }
END_TEST

START_TEST(truncated)
    {
        uint32_t len;
        uint8_t *frame = pcap_file_frame(FILE_NAME, FIRST_FRAME, &len), trace_len;
        uint8_t *packet = frame + ETH_LEN;

        for (uint32_t n = 0; n < IP6_HDR_LEN + HBH_LEN; n++) {
            ck_assert_msg(!find(packet, n, &trace_len), "%u bytes", n);
        }
        ck_assert_uint_ne(find(packet, IP6_HDR_LEN + HBH_LEN, &trace_len), 0);
        for (unsigned n = 0; n < HBH_LEN; n++) { /* the packet says that it ends before. */
            packet[4] = 0;
            packet[5] = (uint8_t) n;
            ck_assert_msg(!find(packet, len - ETH_LEN, &trace_len), "%u bytes", n);
        }
        free(frame);
    }
END_TEST

START_TEST(compacted)
    {
        uint8_t hbh[HBH_LEN], out[HBH_LEN], expected[HBH_LEN], again[HBH_LEN];
        uint8_t *trace = hbh + TRACE_OFS, len = HBH_LEN - TRACE_OFS;

        hex_bytes(worked[3], hbh, sizeof hbh);
        size_t n = hex_bytes("0001 2800 b6000000" BY_N5 BY_N6 BY_AGENT, expected, sizeof expected);
        ck_assert_uint_eq(ioam_compact(trace, len, out), n);
        ck_assert_mem_eq(out, expected, n);
        ck_assert_uint_eq(ioam_compact(out, (uint8_t) n, again), n);
        ck_assert_mem_eq(again, expected, n);

        trace[2] |= 4; /* Overflow stays. */
        expected[2] |= 4;
        ck_assert_uint_eq(ioam_compact(trace, len, out), n);
        ck_assert_mem_eq(out, expected, n);

        trace[3] = 21; /* beyond the option: copied as it is. */
        ck_assert_uint_eq(ioam_compact(trace, len, out), len);
        ck_assert_mem_eq(out, trace, len);
    }
END_TEST

Suite *
ioam_suite(void)
{
    Suite *suite = suite_create("ioam");
    TCase *tc = tcase_create("ioam");

    tcase_add_test(tc, three_nodes);
    tcase_add_test(tc, read_back);
    tcase_add_test(tc, all_sizes);
    tcase_add_test(tc, overflow);
    tcase_add_loop_test(tc, not_touched, 0, sizeof ignored / sizeof *ignored);
    tcase_add_loop_test(tc, any_type, 0, sizeof types / sizeof *types);
    tcase_add_loop_test(tc, found, 0, sizeof packets / sizeof *packets);
    tcase_add_test(tc, truncated);
    tcase_add_test(tc, compacted);
    suite_add_tcase(suite, tc);
    return suite;
}
