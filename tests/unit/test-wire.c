/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte order, sub-fields and the circular order of PSNs.
 */
#include "lib/wire.h"
#include "tests/unit/suites.h"

START_TEST(big_endian)
    {
        static const uint8_t bytes[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};

        ck_assert_mem_eq(be16_put(0x0123).b, bytes, 2);
        ck_assert_mem_eq(be24_put(0xff012345).b, bytes, 3); /* the low 24 bits. */
        ck_assert_mem_eq(be32_put(0x01234567).b, bytes, 4);
        ck_assert_mem_eq(be64_put(0x0123456789abcdef).b, bytes, 8);

        ck_assert_uint_eq(be16_get(be16_put(0xfedc)), 0xfedc);
        ck_assert_uint_eq(be24_get(be24_put(0xfedcba)), 0xfedcba);
        ck_assert_uint_eq(be32_get(be32_put(0xfedcba98)), 0xfedcba98);
        ck_assert_uint_eq(be64_get(be64_put(0xfedcba9876543210)), 0xfedcba9876543210);
    }
END_TEST

START_TEST(ip6_sub_fields)
    {
        struct ip6_hdr_wire ip;

        for (unsigned tc = 0; tc < 256; tc++) {
            ip6_set_vtf(&ip, (uint8_t) tc, 0xfedcba98);
            ck_assert_uint_eq(ip.vtf.b[0] >> 4, 6);
            ck_assert_uint_eq(ip6_tc(&ip), tc);
            ck_assert_uint_eq(ip6_flow_label(&ip), 0xcba98);
        }
    }
END_TEST

START_TEST(bth_sub_fields)
    {
        struct bth bth;

        memset(&bth, 0xff, sizeof bth);
        bth_set_psn(&bth, psn_make(0x123456));
        ck_assert_uint_eq(bth_psn(&bth).v, 0x123456);
        ck_assert_uint_eq(bth.ack_req, 0xff);
        ck_assert_uint_eq(BTH_PAD(0xcf), 0);
        ck_assert_uint_eq(BTH_PAD(0x30), 3);
        ck_assert_uint_eq(BTH_TVER(0xf0), 0);
        ck_assert_uint_eq(BTH_TVER(0x0f), 15);

        ck_assert_int_eq(aeth_class(0x00), AETH_CLASS_ACK);
        ck_assert_int_eq(aeth_class(AETH_ACK_UNLIMITED), AETH_CLASS_ACK);
        ck_assert_int_eq(aeth_class(AETH_RNR), AETH_CLASS_RNR);
        ck_assert_int_eq(aeth_class(0x3f), AETH_CLASS_RNR);
        ck_assert_int_eq(aeth_class(0x40), AETH_CLASS_RESERVED);
        ck_assert_int_eq(aeth_class(AETH_NAK_PSN_SEQ), AETH_CLASS_NAK);
        ck_assert_int_eq(aeth_class(AETH_NAK_INV_RD_REQ), AETH_CLASS_NAK);
    }
END_TEST

static const struct {
    uint32_t a, b;
    int32_t distance;
} psn_cases[] = {
    {0, 0, 0},
    {1, 0, 1},
    {0, 1, -1},
    {0, 0xffffff, 1}, /* the wrap. */
    {0xffffff, 0, -1},
    {5, 0xfffffb, 10},
    {0xfffffb, 5, -10},
    {0x7fffff, 0, 0x7fffff},
    {0, 0x7fffff, -0x7fffff},
    {0x800000, 0, -0x800000}, /* opposite: before, whichever way round. */
    {0, 0x800000, -0x800000},
    {0x800001, 0, -0x7fffff},
    {0x123456, 0x923455, -0x7fffff},
};

START_TEST(psn)
    {
        psn_t a = psn_make(psn_cases[_i].a), b = psn_make(psn_cases[_i].b);

        ck_assert_int_eq(psn_cmp(a, b), psn_cases[_i].distance);
        ck_assert(psn_eq(psn_add(b, psn_cases[_i].distance), a));
        ck_assert_int_eq(psn_eq(a, b), psn_cases[_i].distance == 0);
        ck_assert_uint_eq(psn_make(psn_cases[_i].a | 0xff000000).v, a.v);
    }
END_TEST

Suite *
wire_suite(void)
{
    Suite *suite = suite_create("wire");
    TCase *tc = tcase_create("wire");

    tcase_add_test(tc, big_endian);
    tcase_add_test(tc, ip6_sub_fields);
    tcase_add_test(tc, bth_sub_fields);
    tcase_add_loop_test(tc, psn, 0, sizeof psn_cases / sizeof psn_cases[0]);
    suite_add_tcase(suite, tc);
    return suite;
}
