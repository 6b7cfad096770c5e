/* SPDX-License-Identifier: Apache-2.0
 *
 * The opcode table, the RNR timers, flow labels.
 */
#include <string.h>

#include "lib/roce.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"

/* Lengths from the extended headers' definitions. */
static void
check_ext_len(int opcode)
{
    const struct roce_opcode_info *info = roce_opcode_info((uint8_t) opcode);
    unsigned expected = 0;

    if (!info->name) {
        ck_assert_uint_eq(info->flags, 0);
        ck_assert_uint_eq(info->ext_len, 0);
        return;
    }
    switch (opcode) {
    case RC_ATOMIC_ACK: expected = 4 + 8; break;
    case RC_FLUSH: expected = 4 + 16; break;
    case UD_SEND_ONLY: expected = 8; break;
    case ROCE_CNP: expected = 16; break;
    default:
        expected = (info->flags & ROCE_F_RETH ? 16 : 0) + (info->flags & ROCE_F_AETH ? 4 : 0)
                   + (info->flags & ROCE_F_IMM ? 4 : 0) + (info->flags & ROCE_F_IETH ? 4 : 0)
                   + (info->flags & ROCE_F_ATOMIC ? 28 : 0);
    }
    ck_assert_uint_eq(info->ext_len, expected);

    /* The name says what it is. */
    ck_assert_int_eq(!!(info->flags & ROCE_F_IMM), !!strstr(info->name, "_IMM"));
    ck_assert_int_eq(!!(info->flags & ROCE_F_IETH), !!strstr(info->name, "_INV"));
    if (info->flags & ROCE_F_PAYLOAD && opcode != RC_ATOMIC_WRITE) {
        bool only = strstr(info->name, "ONLY");
        ck_assert_int_eq(!!(info->flags & ROCE_F_START), only || strstr(info->name, "FIRST"));
        ck_assert_int_eq(!!(info->flags & ROCE_F_END), only || strstr(info->name, "LAST"));
    }
}

static void
check_kind(int opcode)
{
    const struct roce_opcode_info *info = roce_opcode_info((uint8_t) opcode);
    bool rc = ROCE_TRANSPORT(opcode) == ROCE_TRANSPORT_RC;
    bool response = opcode >= RC_READ_RESP_FIRST && opcode <= RC_ATOMIC_ACK;
    bool known =
        (rc && opcode <= RC_ATOMIC_WRITE && opcode != 0x15 && (opcode < 0x18 || opcode > 0x1b))
        || opcode == UD_SEND_ONLY || opcode == ROCE_CNP;

    ck_assert_int_eq(info->name != NULL, known);
    ck_assert_int_eq(!!(info->flags & ROCE_F_RESPONSE), response);
    ck_assert_int_eq(!!(info->flags & ROCE_F_REQUEST), known && rc && !response);
    ck_assert_int_eq(!!(info->flags & ROCE_F_MULTICAST), opcode <= RC_WRITE_ONLY_IMM);
    if (opcode <= RC_WRITE_ONLY_IMM) {
        ck_assert_int_eq(!!(info->flags & ROCE_F_RETH), opcode == RC_WRITE_FIRST
                                                            || opcode == RC_WRITE_ONLY
                                                            || opcode == RC_WRITE_ONLY_IMM);
    }
}

START_TEST(table)
    {
        for (int opcode = 0; opcode < 256; opcode++) {
            check_ext_len(opcode);
            check_kind(opcode);
        }
    }
END_TEST

START_TEST(rnr)
    {
        ck_assert_uint_eq(roce_rnr_usec(1), 10);
        ck_assert_uint_eq(roce_rnr_usec(12), 640);
        ck_assert_uint_eq(roce_rnr_usec(13), 960);
        ck_assert_uint_eq(roce_rnr_usec(31), 491520);
        ck_assert_uint_eq(roce_rnr_usec(0), 655360);
        for (uint8_t code = 1; code < 31; code++) {
            ck_assert_uint_lt(roce_rnr_usec(code), roce_rnr_usec(code + 1));
            ck_assert_uint_eq(roce_rnr_longer(code, code + 1), code + 1);
            ck_assert_uint_eq(roce_rnr_longer(code + 1, code), code + 1);
            ck_assert_uint_eq(roce_rnr_longer(code, 0), 0);
            ck_assert_uint_eq(roce_rnr_longer(0, code), 0);
        }
        ck_assert_uint_eq(roce_rnr_longer(0, 0), 0);
    }
END_TEST

/* Proves MT-6-R8754-14. */
START_TEST(flow_label)
    {
        struct ip6_hdr_wire ip = {.src = hex_addr("fd00:1::100"), .dst = hex_addr("fd00:ffff::1")};
        struct udp_hdr udp = {.sport = be16_put(0xc001), .dport = be16_put(UDP_PORT_ROCE)};
        struct bth bth = {.dest_qp = be24_put(0x101)};
        uint32_t label = roce_flow_label(&ip, &udp, &bth);

        for (uint32_t i = 0; i < 100000; i++) {
            bth.dest_qp = be24_put(i);
            uint32_t other = roce_flow_label(&ip, &udp, &bth);
            ck_assert_uint_ge(other, 1);
            ck_assert_uint_le(other, 0xfffff);
        }
        bth.dest_qp = be24_put(0x101);

        /* Equal for all packets of a QP. */
        bth_set_psn(&bth, psn_make(5));
        bth.opcode = 7;
        bth.ack_req = BTH_ACK_REQ;
        ip6_set_vtf(&ip, 3, 0x77);
        ip.hlim = 1;
        udp.len = be16_put(100);
        ck_assert_uint_eq(roce_flow_label(&ip, &udp, &bth), label);

        udp.sport = be16_put(0xc002);
        ck_assert_uint_ne(roce_flow_label(&ip, &udp, &bth), label);
        udp.sport = be16_put(0xc001);
        bth.dest_qp = be24_put(0x102);
        ck_assert_uint_ne(roce_flow_label(&ip, &udp, &bth), label);
    }
END_TEST

Suite *
roce_suite(void)
{
    Suite *suite = suite_create("roce");
    TCase *tc = tcase_create("roce");

    tcase_add_test(tc, table);
    tcase_add_test(tc, rnr);
    tcase_add_test(tc, flow_label);
    suite_add_tcase(suite, tc);
    return suite;
}
