/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames: lib/parse.c against a second parser, what shows frames as text, and
 * what reads them as people give them to 'castctl trace'.  The input is a frame,
 * and that text.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/packet-text.h"
#include "lib/packet.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/slow-parse.h"
#include "tests/unit/parse-check.h"

#define HEX_ROOM 64

static void
same_ip6(const struct parsed_ip6 *a, const struct parsed_ip6 *b)
{
    REQUIRE(a->ofs == b->ofs && a->end == b->end && a->l4_ofs == b->l4_ofs);
    REQUIRE(a->proto == b->proto && a->n_ext == b->n_ext);
}

static void
compare(const uint8_t *data, size_t size)
{
    struct parsed a, b;
    enum drop_reason why = parse_check(data, size, &a);

    REQUIRE(why == slow_parse(data, size, &b));
    if (why) {
        return;
    }
    same_ip6(&a.ip, &b.ip);
    same_ip6(&a.inner, &b.inner);
    REQUIRE(a.srh_ofs == b.srh_ofs && a.srh_len == b.srh_len);
    REQUIRE(a.n_segments == b.n_segments && a.segments_left == b.segments_left);
    REQUIRE(a.n_mt_tlvs == b.n_mt_tlvs);
    REQUIRE(!memcmp(a.mt_tlv_ofs, b.mt_tlv_ofs, a.n_mt_tlvs * sizeof *a.mt_tlv_ofs));
    REQUIRE(a.auth_ofs == b.auth_ofs && a.hmac_ofs == b.hmac_ofs && a.data_ofs == b.data_ofs);
    REQUIRE(a.udp_ofs == b.udp_ofs && a.bth_ofs == b.bth_ofs && a.ext_ofs == b.ext_ofs);
    REQUIRE(a.payload_ofs == b.payload_ofs && a.payload_len == b.payload_len);
    REQUIRE(a.icrc_ofs == b.icrc_ofs && a.opcode == b.opcode);
}

/* A frame that is written out is read back the same. */
static void
hex_round_trip(const uint8_t *data, size_t size)
{
    char *hex = malloc(2 * size + 1);
    uint8_t *back = malloc(size + 1);
    size_t len;
    char *error = NULL;

    for (size_t i = 0; i < size; i++) {
        snprintf(hex + 2 * i, 3, "%02x", data[i]);
    }
    hex[2 * size] = '\0';
    bool ok = packet_from_text(hex, back, size, &len, &error);
    REQUIRE(ok == (size >= sizeof(struct eth_hdr)));
    REQUIRE(!ok || (len == size && !memcmp(back, data, size)));
    REQUIRE(ok == !error);
    free(error);
    free(back);
    free(hex);
}

static void
check_printable(const char *text)
{
    for (; *text; text++) {
        REQUIRE(*text >= ' ' && *text <= '~');
    }
}

static void
show(const uint8_t *data, size_t size)
{
    char text[PACKET_TEXT_SIZE];
    uint8_t *exact = malloc(size ? size : 1);

    memcpy(exact, data, size);
    packet_text(exact, size, text);
    REQUIRE(strlen(text) < sizeof text);
    check_printable(text);
    free(exact);
}

static void
read_hex(struct fuzz_input in)
{
    char *text = fuzz_text(&in), *error = NULL;
    uint8_t *bytes = malloc(HEX_ROOM);
    size_t len, n_digits = 0;

    for (const char *c = text; *c; c++) {
        n_digits += isxdigit((unsigned char) *c) != 0;
    }
    if (packet_from_text(text, bytes, HEX_ROOM, &len, &error)) {
        REQUIRE(!error);
        REQUIRE(len <= HEX_ROOM && 2 * len == n_digits);
        REQUIRE(!text[strspn(text, "0123456789abcdefABCDEF: \t\n\v\f\r")]);
    } else {
        REQUIRE(error && *error);
        check_printable(error);
    }
    free(error);
    free(bytes);
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_hex((struct fuzz_input){data, size});
    compare(data, size);
    hex_round_trip(data, size);
    show(data, size);
    return 0;
}
