/* SPDX-License-Identifier: Apache-2.0
 *
 * Acknowledgements that a node makes itself.
 */
#include "lib/icrc.h"
#include "lib/parse.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"

/* The ACK vector of tests/unit/test-icrc.c.
 *
 * Proves MT-5.3.1-5. */
START_TEST(vector)
    {
        struct packet_pool *pool = packet_pool_create(1);
        struct in6_addr src = hex_addr("2001:db8:ffff::100"), dst = hex_addr("2001:db8:a::1");
        struct packet *p = response_build(pool, &src, &dst, 0xc001, 0x11, psn_make(0x123456),
                                          AETH_ACK_UNLIMITED, 1);
        uint8_t expected[RESPONSE_LEN];

        hex_bytes(
            "60000000 001c1140 20010db8ffff00000000000000000100 20010db8000a00000000000000000001"
            "c00112b7001c0000 1100ffff0000001100123456 1f000001 dc31cda7",
            expected, sizeof expected);
        ck_assert_uint_eq(packet_size(p), RESPONSE_LEN);
        ck_assert_mem_eq(p->data, expected, RESPONSE_LEN);
        ck_assert_ptr_null(response_build(pool, &src, &dst, 1, 2, psn_make(3), 4, 5));
        packet_put(p);
        packet_pool_destroy(pool);
    }
END_TEST

START_TEST(parses)
    {
        static const uint8_t syndromes[] = {AETH_ACK_UNLIMITED, AETH_RNR, AETH_RNR | 31,
                                            AETH_NAK_PSN_SEQ, AETH_NAK_REM_ACCESS};
        struct packet_pool *pool = packet_pool_create(1);
        struct in6_addr src = hex_addr("fd00:ffff::1"), dst = hex_addr("fd00:1::100");

        for (size_t i = 0; i < sizeof syndromes; i++) {
            struct packet *p = response_build(pool, &src, &dst, 0xffff, 0xfffffe,
                                              psn_make(0xffffff), syndromes[i], 0xffffff);
            struct parsed h;

            struct eth_hdr *eth = packet_push(p, sizeof *eth);
            memset(eth, 0, sizeof *eth);
            eth->type = be16_put(ETH_TYPE_IP6);
            ck_assert_int_eq(parse_frame(p->data, p->len, &h), DROP_none);
            ck_assert_uint_eq(h.opcode, RC_ACK);
            ck_assert_uint_eq(h.payload_len, 0);
            ck_assert_uint_eq(h.icrc_ofs + ROCE_ICRC_LEN, p->len);
            ck_assert(icrc_ok(p->data + h.ip.ofs, h.icrc_ofs - h.ip.ofs));

            const struct bth *bth = (const struct bth *) (p->data + h.bth_ofs);
            const struct aeth *aeth = (const struct aeth *) (p->data + h.ext_ofs);
            ck_assert_uint_eq(bth_psn(bth).v, 0xffffff);
            ck_assert_uint_eq(be24_get(bth->dest_qp), 0xfffffe);
            ck_assert_uint_eq(aeth->syndrome, syndromes[i]);
            ck_assert_uint_eq(be24_get(aeth->msn), 0xffffff);
            packet_put(p);
        }
        packet_pool_destroy(pool);
    }
END_TEST

START_TEST(sport)
    {
        struct in6_addr proxy = hex_addr("fd00:ffff::1"), other = hex_addr("fd00:ffff::2");
        uint16_t first = response_sport(&proxy, 0x101);

        for (uint32_t qpn = 2; qpn < 5000; qpn++) {
            ck_assert_uint_ge(response_sport(&proxy, qpn), 0xc000);
        }
        ck_assert_uint_eq(response_sport(&proxy, 0x101), first);
        ck_assert_uint_ne(response_sport(&proxy, 0x102), first);
        ck_assert_uint_ne(response_sport(&other, 0x101), first);
    }
END_TEST

Suite *
response_suite(void)
{
    Suite *suite = suite_create("response");
    TCase *tc = tcase_create("response");

    tcase_add_test(tc, vector);
    tcase_add_test(tc, parses);
    tcase_add_test(tc, sport);
    suite_add_tcase(suite, tc);
    return suite;
}
