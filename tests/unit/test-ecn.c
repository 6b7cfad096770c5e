/* SPDX-License-Identifier: Apache-2.0
 *
 * RFC 6040 figure 4, all sixteen cells; the DSCP is the inner one.
 */
#include "lib/ecn.h"
#include "tests/unit/suites.h"

#define DROPPED 0xff

static const struct {
    uint8_t inner, outer, result;
} cells[] = {
    {ECN_NOT_ECT, ECN_NOT_ECT, ECN_NOT_ECT},
    {ECN_NOT_ECT, ECN_ECT0, ECN_NOT_ECT},
    {ECN_NOT_ECT, ECN_ECT1, ECN_NOT_ECT},
    {ECN_NOT_ECT, ECN_CE, DROPPED},
    {ECN_ECT0, ECN_NOT_ECT, ECN_ECT0},
    {ECN_ECT0, ECN_ECT0, ECN_ECT0},
    {ECN_ECT0, ECN_ECT1, ECN_ECT1},
    {ECN_ECT0, ECN_CE, ECN_CE},
    {ECN_ECT1, ECN_NOT_ECT, ECN_ECT1},
    {ECN_ECT1, ECN_ECT0, ECN_ECT1},
    {ECN_ECT1, ECN_ECT1, ECN_ECT1},
    {ECN_ECT1, ECN_CE, ECN_CE},
    {ECN_CE, ECN_NOT_ECT, ECN_CE},
    {ECN_CE, ECN_ECT0, ECN_CE},
    {ECN_CE, ECN_ECT1, ECN_CE},
    {ECN_CE, ECN_CE, ECN_CE},
};

/* Proves MT-6-R6040-2. */
START_TEST(cell)
    {
        uint8_t outer_tc = (uint8_t) (0x54 | cells[_i].outer);
        uint8_t inner_tc = (uint8_t) (0xb8 | cells[_i].inner);
        uint8_t tc = 0x77;

        bool pass = ecn_decap(outer_tc, inner_tc, &tc);
        ck_assert_int_eq(pass, cells[_i].result != DROPPED);
        ck_assert_uint_eq(tc, pass ? 0xb8u | cells[_i].result : 0x77u);
    }
END_TEST

Suite *
ecn_suite(void)
{
    Suite *suite = suite_create("ecn");
    TCase *tc = tcase_create("ecn");

    tcase_add_loop_test(tc, cell, 0, sizeof cells / sizeof cells[0]);
    suite_add_tcase(suite, tc);
    return suite;
}
