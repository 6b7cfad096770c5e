/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses that follow from a node id, and what node_config_uninit() frees.
 */
#include <arpa/inet.h>
#include <stdlib.h>

#include "lib/node-config.h"
#include "tests/unit/suites.h"

static void
assert_addr(struct in6_addr addr, const char *text)
{
    char buf[INET6_ADDRSTRLEN];

    ck_assert_str_eq(inet_ntop(AF_INET6, &addr, buf, sizeof buf), text);
}

START_TEST(addresses)
    {
        assert_addr(node_address(0x100), "5f00:0:100::1");
        assert_addr(node_address(0xdfff), "5f00:0:dfff::1");
        assert_addr(node_locator(0x203), "5f00:0:203::");
        assert_addr(node_sid(0x100, SID_FUNC_END_MT), "5f00:0:100:e001::");
        assert_addr(node_sid(1, SID_FUNC_REPLICATION + 4095), "5f00:0:1:ffff::");
    }
END_TEST

START_TEST(port_mac)
    {
        static const uint8_t expected[6] = {0x02, 0x5f, 0x12, 0x34, 0x0f, 0xff};
        uint8_t mac[6];

        node_port_mac(0x1234, 4095, mac);
        ck_assert_mem_eq(mac, expected, sizeof mac);
    }
END_TEST

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

    tcase_add_test(tc, addresses);
    tcase_add_test(tc, port_mac);
    tcase_add_test(tc, uninit);
    suite_add_tcase(suite, tc);
    return suite;
}
