/* SPDX-License-Identifier: Apache-2.0
 *
 * Every drop reason has a name of its own and an explanation.
 */
#include <string.h>

#include "lib/drop.h"
#include "tests/unit/suites.h"

START_TEST(names)
    {
        for (int i = 0; i < N_DROP_REASONS; i++) {
            ck_assert_uint_gt(strlen(drop_help((enum drop_reason) i)), 0);
            for (int j = 0; j < i; j++) {
                ck_assert_str_ne(drop_name((enum drop_reason) i), drop_name((enum drop_reason) j));
            }
        }
        ck_assert_int_eq(DROP_none, 0);
        ck_assert_str_eq(drop_name(DROP_none), "none");
        ck_assert_str_eq(drop_name(DROP_cnp), "cnp");
    }
END_TEST

Suite *
drop_suite(void)
{
    Suite *suite = suite_create("drop");
    TCase *tc = tcase_create("drop");

    tcase_add_test(tc, names);
    suite_add_tcase(suite, tc);
    return suite;
}
