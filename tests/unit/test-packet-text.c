/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames as text, and from text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/packet-text.h"
#include "lib/program.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define ETH        "020000000001 020000000002 86dd"
/* Next header and hop limit are to be followed by the payload; its length comes before. */
#define IP(PLEN)   "60000000 " PLEN
#define A          "fd000001000000000000000000000001"
#define B          "fd000001000000000000000000000002"

#define ZEROS_28   "00000000000000000000000000000000000000000000000000000000"
#define SID(USIDS) "5f000000" USIDS

static const struct {
    const char *hex;
    const char *text;
} frames[] = {
    {"", "shorter than an Ethernet header"},
    {"020000000001 020000000002 0806 0001", "Ethernet type 0x0806"},
    {"020000000001 020000000002 8100 604d 86dd", "VLAN 77"},
    {"020000000001 020000000002 8100 60", "Ethernet type 0x8100"},
    {ETH "60", "shorter than an IPv6 header or its payload length"},
    {ETH IP("0000 3b07") A B, "fd00:1::1 > fd00:1::2, hop limit 7, next header 59"},
    {ETH IP("0004 3a40") A B "80000000",
     "fd00:1::1 > fd00:1::2, hop limit 64, ICMPv6 type 128 code 0 (Echo Request)"},
    {ETH IP("0004 3a40") A B "c8050000",
     "fd00:1::1 > fd00:1::2, hop limit 64, ICMPv6 type 200 code 5"},
    {ETH IP("0001 3a40") A B "80", "fd00:1::1 > fd00:1::2, hop limit 64, ICMPv6, cut short"},
    {ETH IP("0008 1140") A B "1234003500080000",
     "fd00:1::1 > fd00:1::2, hop limit 64, UDP port 4660 > 53"},
    {ETH IP("0008 1140") A B "c00012b700070000",
     "fd00:1::1 > fd00:1::2, hop limit 64; UDP shorter than its header or length field wrong"},
    {ETH IP("0008 2c40") A B "3b00000000000001", "fd00:1::1 > fd00:1::2, hop limit 64, a fragment"},
    /* A sequence NAK in IPv6. */
    {ETH IP("0044 2940") A B IP("001c 1140") B A
     "c00012b7001c0000 11 00 ffff 00 000012 00 000029 60 000003 00000000",
     "fd00:1::1 > fd00:1::2, hop limit 64; inside fd00:1::2 > fd00:1::1, hop limit 64, "
     "RoCE ACK, DestQP 0x12, PSN 41, NAK: PSN sequence error"},
    {ETH IP("001c 1140") B A "c00012b7001c0000 11 00 ffff 00 000012 00 000029 2c 000003 00000000",
     "fd00:1::2 > fd00:1::1, hop limit 64, RoCE ACK, DestQP 0x12, PSN 41, RNR NAK, timer code 12"},
    {ETH IP("001c 1140") B A "c00012b7001c0000 11 00 ffff 00 000012 00 000029 1f 000003 00000000",
     "fd00:1::2 > fd00:1::1, hop limit 64, RoCE ACK, DestQP 0x12, PSN 41, ACK"},
    {ETH IP("001c 1140") B A "c00012b7001c0000 04 00 ffff 00 000101 80 000005 41424344 00000000",
     "fd00:1::2 > fd00:1::1, hop limit 64, RoCE SEND_ONLY, DestQP 0x101, PSN 5, AckReq, "
     "4 bytes of data"},
    /* A probe, its answer, and what is neither. */
    {ETH IP("0034 1140") A B "c2c6035e00340000 00000005 6926000000000001 5601 0007" ZEROS_28,
     "fd00:1::1 > fd00:1::2, hop limit 64, UDP port 49862 > 862, probe 7, sequence number 5"},
    {ETH IP("0034 1140") A B "035ec2c600340000 00000003 6926000000000001 5601 0007"
                             "6926000000000001 00000005 6926000000000001 5601 0000 40000000",
     "fd00:1::1 > fd00:1::2, hop limit 64, UDP port 862 > 49862, answer 3 to probe 7, "
     "sequence number 5"},
    {ETH IP("0034 1140") A B "c2c6035e00350000 00000005 6926000000000001 5601 0007" ZEROS_28,
     "fd00:1::1 > fd00:1::2, hop limit 64, UDP port 49862 > 862"},
    {ETH IP("0034 1140") A B "c2c6035e00340000 00000005 6926000000000001 0000 0007" ZEROS_28,
     "fd00:1::1 > fd00:1::2, hop limit 64, UDP port 49862 > 862"},
    /* Programs: uSIDs, one of them only, with a label, in an SRH, and behind a uA. */
    {ETH IP("0000 3b40") A SID("0100 0500 0300 0000 0000 0000"),
     "fd00:1::1 > 5f00:0:100:500:300::, hop limit 64, uSIDs 0100 0500 0300, flow label 0x00000, "
     "next header 59"},
    {ETH "60012345 0000 3b40" A SID("0300 0000 0000 0000 0000 0000"),
     "fd00:1::1 > 5f00:0:300::, hop limit 64, uSIDs 0300, flow label 0x12345, next header 59"},
    {ETH IP("0018 2b40") A SID("0100 0500 0000 0000 0000 0000") "3b 02 04 01 00 00 0000" SID(
         "0600 0300 0000 0000 0000 0000"),
     "fd00:1::1 > 5f00:0:100:500::, hop limit 64, SRH with SL 1, uSIDs 0100 0500 | 0600 0300, "
     "flow label 0x00000, next header 59"},
    {ETH IP("0018 2b40") A SID("0100 0500 0000 0000 0000 0000") "3b 02 04 00 00 00 0000" SID(
         "0600 0300 0000 0000 0000 0000"),
     "fd00:1::1 > 5f00:0:100:500::, hop limit 64, SRH with SL 0, uSIDs 0100 0500, "
     "flow label 0x00000, next header 59"},
    {ETH IP("0000 3b40") A SID("0100 e101 0300 0000 0000 0000"),
     "fd00:1::1 > 5f00:0:100:e101:300::, hop limit 64, uSIDs 0100 e101 0300, flow label 0x00000, "
     "next header 59"},
    {ETH IP("0000 3b40") A SID("e101 0000 0000 0000 0000 0000"),
     "fd00:1::1 > 5f00:0:e101::, hop limit 64, uSIDs e101, flow label 0x00000, next header 59"},
    /* A SID of a node, and a node's address. */
    {ETH IP("0000 3b40") A SID("0100 e003 0000 0000 0000 0000"),
     "fd00:1::1 > 5f00:0:100:e003::, hop limit 64, next header 59"},
    {ETH IP("0000 3b40") A SID("0100 0000 0000 0000 0000 0001"),
     "fd00:1::1 > 5f00:0:100::1, hop limit 64, next header 59"},
};

/* uSIDs as text, and back. */
static const struct {
    const char *containers;
    const char *usids;
} programs[] = {
    {"5f00:0:300::", "0300"},
    {"5f00:0:100:500:300::", "0100 0500 0300"},
    {"5f00:0:100:0:300::", "0100 0000 0300"},
    {"5f00:0:1:2:3:4:5:6", "0001 0002 0003 0004 0005 0006"},
    {"5f00:0:1:2:3:4:5:6,5f00:0:7::,5f00::,5f00:0:8:9::",
     "0001 0002 0003 0004 0005 0006 | 0007 | 0000 | 0008 0009"},
};

START_TEST(usid_texts)
    {
        char text[PROGRAM_USIDS_SIZE], all[PROGRAM_USIDS_SIZE + 16];
        struct program want, got;

        ck_assert(program_parse(programs[_i].containers, &want));
        program_format_usids(&want, text);
        ck_assert_str_eq(text, programs[_i].usids);
        snprintf(all, sizeof all, "%s, and so on", text);
        ck_assert_ptr_eq(program_parse_usids(all, &got), all + strlen(text));
        ck_assert_mem_eq(&got, &want, sizeof want);
    }
END_TEST

START_TEST(no_usids)
    {
        static const char *const texts[] = {
            "",       "100",     "01g0",     "0100 ",
            "0100 0", "0100 | ", "0100 | x", "0001 0002 0003 0004 0005 0006 0007",
        };
        static const bool some[] = {false, false, false, true, false, false, false, false};
        struct program program;

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            ck_assert_int_eq(program_parse_usids(texts[i], &program) != NULL, some[i]);
        }
    }
END_TEST

START_TEST(frame_texts)
    {
        uint8_t bytes[256];
        char text[PACKET_TEXT_SIZE];
        size_t len = hex_bytes(frames[_i].hex, bytes, sizeof bytes);

        packet_text(bytes, len, text);
        ck_assert_str_eq(text, frames[_i].text);
    }
END_TEST

/* Whatever a frame is cut off to, its text stays in bounds (sanitizers) and says something. */
START_TEST(cut_frames)
    {
        uint32_t len;
        uint8_t *whole = pcap_file_frame("tests/vectors/srh-scapy.pcap", 0, &len);

        for (uint32_t n = 0; n <= len; n++) {
            uint8_t *part = malloc(n + 1);
            char text[PACKET_TEXT_SIZE];

            memcpy(part + 1, whole, n); /* the heap's guard is right behind the last byte. */
            packet_text(part + 1, n, text);
            ck_assert_uint_gt(strlen(text), 0);
            free(part);
        }
        free(whole);
    }
END_TEST

#define REST "02000000000286dd6000"

static const struct {
    const char *text;
    const char *error; /* NULL: the bytes are 12 34 ab cd, REST, 5f. */
} texts[] = {
    {"1234abcd" REST "5f", NULL},
    {" 12:34\n\tABcD " REST " 5F\n", NULL},
    {"12 3", "character 4: half a byte: '3' alone"},
    {"12 3 4", "character 4: half a byte: '3' alone"},
    {"1:2", "character 1: half a byte: '1' alone"},
    {"12 3g", "character 5: 'g' is no hexadecimal digit"},
    {"0x12", "character 2: 'x' is no hexadecimal digit"},
    {"12\x80", "character 3: byte 0x80 is no hexadecimal digit"},
    {"1234abcd" REST "5f60", "longer than 15 bytes"},
    {"123456" REST, "13 bytes: an Ethernet header has 14"},
    {"", "0 bytes: an Ethernet header has 14"},
};

START_TEST(from_text)
    {
        uint8_t want[15], bytes[15];
        char *error = NULL;
        size_t len;
        bool ok = packet_from_text(texts[_i].text, bytes, sizeof bytes, &len, &error);

        if (texts[_i].error) {
            ck_assert(!ok);
            ck_assert_str_eq(error, texts[_i].error);
            free(error);
        } else {
            ck_assert(ok);
            ck_assert_uint_eq(len, hex_bytes(texts[0].text, want, sizeof want));
            ck_assert_mem_eq(bytes, want, sizeof want);
        }
    }
END_TEST

Suite *
packet_text_suite(void)
{
    Suite *suite = suite_create("packet_text");
    TCase *tc = tcase_create("packet_text");

    tcase_add_loop_test(tc, usid_texts, 0, sizeof programs / sizeof programs[0]);
    tcase_add_test(tc, no_usids);

    tcase_add_loop_test(tc, frame_texts, 0, sizeof frames / sizeof frames[0]);
    tcase_add_test(tc, cut_frames);
    tcase_add_loop_test(tc, from_text, 0, sizeof texts / sizeof texts[0]);
    suite_add_tcase(suite, tc);
    return suite;
}
