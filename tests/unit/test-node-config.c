/* SPDX-License-Identifier: Apache-2.0
 *
 * What node_config_uninit() frees.
 */
#include <stdlib.h>

#include "lib/node-config.h"
#include "tests/unit/suites.h"

/* Leaks are AddressSanitizer's to find. */
START_TEST(uninit)
    {
        struct node_config config = {
            .generation = 7,
            .n_ports = 1,
            .ports = calloc(1, sizeof *config.ports),
            .n_routes = 1,
            .routes = calloc(1, sizeof *config.routes),
            .n_sids = 1,
            .sids = calloc(1, sizeof *config.sids),
            .n_trees = 1,
            .trees = calloc(1, sizeof *config.trees),
        };
        config.trees[0].branches = calloc(1, sizeof *config.trees[0].branches);
        config.trees[0].outer_da = calloc(1, sizeof *config.trees[0].outer_da);
        config.trees[0].copies = calloc(1, sizeof *config.trees[0].copies);

        node_config_uninit(&config);
        ck_assert_uint_eq(config.n_trees, 0);
        ck_assert_ptr_null(config.trees);
        node_config_uninit(&config);
    }
END_TEST

Suite *
node_config_suite(void)
{
    Suite *suite = suite_create("node-config");
    TCase *tc = tcase_create("node-config");

    tcase_add_test(tc, uninit);
    suite_add_tcase(suite, tc);
    return suite;
}
