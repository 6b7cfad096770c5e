/* SPDX-License-Identifier: Apache-2.0
 *
 * ICRC: against vectors, which bits count, and that changes agree with
 * computing afresh.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lib/icrc.h"
#include "lib/roce.h"
#include "lib/wire.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"

/* Made by an independent program that also reproduces the ICRCs of two frames
 * captured from hardware. */
static const char *const vectors[] = {
    /* ACK. */
    "60000000 001c1140 20010db8ffff00000000000000000100 20010db8000a00000000000000000001"
    "c00112b7001c0000 1100ffff0000001100123456 1f000001 dc31cda7",
    /* SEND only. */
    "60200000 001c1140 20010db8000a00000000000000000001 20010db8ffff00000000000000000100"
    "d00012b7001c0000 0400ffff0000010080000001 deadbeef 78c72e06",
};

START_TEST(vector)
    {
        uint8_t bytes[128];
        size_t len = hex_bytes(vectors[_i], bytes, sizeof bytes) - ROCE_ICRC_LEN;
        uint8_t stored[ROCE_ICRC_LEN];

        ck_assert(icrc_ok(bytes, len));
        icrc_store(stored, icrc_compute(bytes, len));
        ck_assert_mem_eq(stored, bytes + len, sizeof stored);
        ck_assert_uint_eq(icrc_load(stored), icrc_compute(bytes, len));
        bytes[len] ^= 1;
        ck_assert(!icrc_ok(bytes, len));
    }
END_TEST

/* An IPv6 CNP: 16 reserved bytes behind the BTH. */
static size_t
make_cnp(uint8_t *out, size_t size)
{
    return hex_bytes("60000000 00281140 20010db8ffff00000000000000000100 "
                     "20010db8000a00000000000000000001 c00112b700280000 "
                     "8100ffff4000011800000000 00000000000000000000000000000000",
                     out, size);
}

static bool
is_masked(size_t bit)
{
    size_t byte = bit / 8;

    return (byte == 0 && bit % 8 >= 4) || /* traffic class, high half. */
           (byte >= 1 && byte <= 3) ||    /* the rest of it and the flow label. */
           byte == 7 ||                   /* hop limit. */
           byte == 46 || byte == 47 ||    /* UDP checksum. */
           byte == 52;                    /* FECN, BECN, reserved. */
}

START_TEST(masked_fields)
    {
        uint8_t bytes[128];
        size_t len = make_cnp(bytes, sizeof bytes);
        uint32_t icrc = icrc_compute(bytes, len);

        ck_assert_uint_eq(len, 40 + 8 + 12 + 16);
        for (size_t bit = 0; bit < len * 8; bit++) {
            uint8_t mask = (uint8_t) (0x80 >> bit % 8);

            bytes[bit / 8] ^= mask;
            ck_assert_msg((icrc_compute(bytes, len) == icrc) == is_masked(bit), "byte %zu, bit %zu",
                          bit / 8, bit % 8);
            bytes[bit / 8] ^= mask;
        }
    }
END_TEST

/* Any implementation gives what zlib gives over the bytes as the IBTA defines
 * them, at all lengths. */
START_TEST(all_lengths)
    {
        uint8_t bytes[60 + 4200], masked[8 + sizeof bytes];

        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (uint8_t) (i * i + 7 * i);
        }
        bytes[0] = 0x60;
        memset(masked, 0xff, 8);
        memcpy(masked + 8, bytes, sizeof bytes);
        for (size_t bit = 0; bit < 60 * 8; bit++) {
            masked[8 + bit / 8] |= is_masked(bit) ? 0x80 >> bit % 8 : 0;
        }
        for (size_t len = 60; len <= sizeof bytes; len += len < 400 ? 1 : 61) {
            ck_assert_uint_eq(icrc_compute(bytes, len), crc32(0, masked, (uInt) (8 + len)));
        }
    }
END_TEST

/* A destination and QPN changed, and the ICRC with them, at all kinds of
 * distances. */
static void
check_update(size_t after, uint8_t *bytes)
{
    size_t len = IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof(struct bth) + after;
    const size_t dst = offsetof(struct ip6_hdr_wire, dst);
    const size_t end = IP6_HDR_LEN + sizeof(struct udp_hdr) + offsetof(struct bth, ack_req);
    uint32_t icrc = icrc_compute(bytes, len);
    uint8_t diff[128] = {0};

    /* Fields masked in between contribute nothing to the difference. */
    for (size_t i = dst; i < dst + 16; i++) {
        diff[i - dst] = (uint8_t) (0x5a + i);
        bytes[i] ^= diff[i - dst];
    }
    for (size_t i = end - 3; i < end; i++) {
        diff[i - dst] = (uint8_t) (0xc3 + i);
        bytes[i] ^= diff[i - dst];
    }
    uint32_t change = icrc_shift(icrc_diff(diff, end - dst), len - end);
    ck_assert_msg((icrc ^ change) == icrc_compute(bytes, len), "%zu bytes after", after);

    /* In two parts, with the shift for the unchanged middle. */
    uint32_t parts = icrc_shift(icrc_diff(diff, 16), end - 3 - (dst + 16));
    parts = icrc_diff_more(parts, diff + (end - 3 - dst), 3);
    ck_assert_uint_eq(icrc_shift(parts, len - end), change);
}

START_TEST(update)
    {
        static uint8_t bytes[65536 + 64];
        static const size_t lengths[] = {1023, 1024, 1025, 4095, 4096, 9000, 32768, 65527};

        srand(1);
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (uint8_t) rand();
        }
        for (size_t after = 0; after < 600; after++) {
            check_update(after, bytes);
        }
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            check_update(lengths[i], bytes);
        }
    }
END_TEST

START_TEST(shift)
    {
        static const uint8_t zeros[65535];
        uint32_t crc = icrc_diff((const uint8_t *) "rocecast", 8);
        static const size_t lengths[] = {0, 1, 2, 3, 7, 8, 255, 256, 4096, 65534, 65535};

        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            uint32_t expected = icrc_diff_more(crc, zeros, lengths[i]);

            ck_assert_uint_eq(icrc_shift(crc, lengths[i]), expected);
            ck_assert_uint_eq(icrc_shift(crc, lengths[i]), expected); /* from the table. */
            ck_assert_uint_eq(icrc_shift(0, lengths[i]), 0);
        }
        ck_assert_uint_eq(icrc_shift(crc, 0), crc);
        ck_assert_uint_eq(icrc_diff(zeros, 100), 0);
    }
END_TEST

/* More lengths than are remembered, in turn, and again those that were displaced. */
START_TEST(shift_by_many_lengths)
    {
        uint32_t crc = icrc_diff((const uint8_t *) "lengths", 7);

        for (size_t n = 0; n < 65536; n += n < 1200 ? 1 : 337) {
            uint32_t expected = (uint32_t) crc32_combine_op(crc, 0, crc32_combine_gen((z_off_t) n));

            ck_assert_uint_eq(icrc_shift(crc, n), expected);
            ck_assert_uint_eq(icrc_shift(crc, 3), icrc_diff_more(crc, (uint8_t[3]){0}, 3));
            for (unsigned bit = 0; bit < 32; bit++) {
                ck_assert_uint_eq(icrc_shift(crc ^ UINT32_C(1) << bit, n) ^ expected,
                                  icrc_shift(UINT32_C(1) << bit, n));
            }
        }
    }
END_TEST

START_TEST(diff_of_8_bytes)
    {
        static const uint64_t diffs[] = {0, 1, UINT64_C(1) << 63, UINT64_C(0x0123456789abcdef)};
        static const size_t lengths[] = {0, 1, 4, 12, 1024, 65527};

        for (size_t i = 0; i < sizeof diffs / sizeof *diffs; i++) {
            be64_t bytes = be64_put(diffs[i]);
            uint32_t crc = icrc_diff((const uint8_t *) &bytes, sizeof bytes);

            for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
                ck_assert_uint_eq(icrc_diff_be64(diffs[i], lengths[k]),
                                  icrc_shift(crc, lengths[k]));
            }
        }
    }
END_TEST

/* What was corrupt stays corrupt, by exactly the same difference. */
START_TEST(update_keeps_corruption)
    {
        uint8_t bytes[128];
        size_t len = hex_bytes(vectors[1], bytes, sizeof bytes) - ROCE_ICRC_LEN;
        static const uint8_t diff[3] = {0, 0, 0x30}; /* DestQP 0x100 to 0x130. */
        size_t qpn = 48 + offsetof(struct bth, dest_qp);

        bytes[len - 1] ^= 0x10; /* payload. */
        ck_assert(!icrc_ok(bytes, len));
        bytes[qpn + 2] ^= diff[2];
        icrc_store(bytes + len,
                   icrc_load(bytes + len) ^ icrc_shift(icrc_diff(diff, 3), len - qpn - 3));
        ck_assert(!icrc_ok(bytes, len));
        bytes[len - 1] ^= 0x10;
        ck_assert(icrc_ok(bytes, len));
    }
END_TEST

START_TEST(implementation)
    {
#ifdef HAVE_ISAL
        ck_assert_str_eq(icrc_implementation(), "isa-l");
#else
        ck_assert_str_eq(icrc_implementation(), "zlib");
#endif
    }
END_TEST

Suite *
icrc_suite(void)
{
    Suite *suite = suite_create("icrc");
    TCase *tc = tcase_create("icrc");

    tcase_add_loop_test(tc, vector, 0, sizeof vectors / sizeof vectors[0]);
    tcase_add_test(tc, masked_fields);
    tcase_add_test(tc, all_lengths);
    tcase_add_test(tc, update);
    tcase_add_test(tc, shift);
    tcase_add_test(tc, shift_by_many_lengths);
    tcase_add_test(tc, diff_of_8_bytes);
    tcase_add_test(tc, update_keeps_corruption);
    tcase_add_test(tc, implementation);
    suite_add_tcase(suite, tc);
    return suite;
}
