/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames as text, and from text.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/packet-text.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define ETH      "020000000001 020000000002 86dd"
/* Next header and hop limit are to be followed by the payload; its length comes before. */
#define IP(PLEN) "60000000 " PLEN
#define A        "fd000001000000000000000000000001"
#define B        "fd000001000000000000000000000002"

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
};

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

    tcase_add_loop_test(tc, frame_texts, 0, sizeof frames / sizeof frames[0]);
    tcase_add_test(tc, cut_frames);
    tcase_add_loop_test(tc, from_text, 0, sizeof texts / sizeof texts[0]);
    suite_add_tcase(suite, tc);
    return suite;
}
