/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from elsewhere, and what a terminal gets of it.
 */
#include "lib/printable.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"h0 -> n1 \\ 100%", "h0 -> n1 \\ 100%"},
    {"a\nb\r\tc", "a\\nb\\r\\tc"},
    {"\033[2J\007\010\177", "\\x1b[2J\\x07\\x08\\u007f"},
    {"\001\037 ~", "\\x01\\x1f ~"},
    {"gr\303\274n \342\202\254 \360\237\230\200", "gr\303\274n \342\202\254 \360\237\230\200"},
    {"\302\200\302\233m\302\237\302\240", "\\u0080\\u009bm\\u009f\302\240"},
    {"\342\200\256x\342\201\246y\342\200\250z", "\\u202ex\\u2066y\\u2028z"},
    {"\330\234\342\200\217\342\200\220", "\\u061c\\u200f\342\200\220"},
    /* Not UTF-8: a byte alone, cut short, overlong, a surrogate, too large. */
    {"\233m\377", "\\x9bm\\xff"},
    {"\342\202", "\\xe2\\x82"},
    {"\342\202x", "\\xe2\\x82x"},
    {"\300\212\340\200\212", "\\xc0\\x8a\\xe0\\x80\\x8a"},
    {"\355\240\200", "\\xed\\xa0\\x80"},
    {"\364\220\200\200", "\\xf4\\x90\\x80\\x80"},
};

START_TEST(shown)
    {
        char *got = printable(cases[_i].text);

        ck_assert_str_eq(got, cases[_i].shown);
        free(got);
    }
END_TEST

/* Every sequence of two bytes: no control character is left, and no more is written than fits, as
 * sanitizers see. */
START_TEST(all_pairs)
    {
        for (unsigned int first = 1; first < 256; first++) {
            for (unsigned int second = 1; second < 256; second++) {
                const char text[] = {(char) first, (char) second, '\0'};
                char *got = printable(text);

                ck_assert_uint_ge(strlen(got), 2);
                for (const char *c = got; *c; c++) {
                    ck_assert_msg((unsigned char) *c >= 0x20 && *c != 0x7f, "%02x %02x", first,
                                  second);
                }
                free(got);
            }
        }
    }
END_TEST

Suite *
printable_suite(void)
{
    Suite *suite = suite_create("printable");
    TCase *tcase = tcase_create("printable");

    tcase_add_loop_test(tcase, shown, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tcase, all_pairs);
    suite_add_tcase(suite, tcase);
    return suite;
}
