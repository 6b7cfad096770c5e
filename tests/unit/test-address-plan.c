/* SPDX-License-Identifier: Apache-2.0
 *
 * The address plan, against addresses as text, and its prefixes as text.
 */
#include <config.h>

#include <arpa/inet.h>
#include <stdio.h>

#include "ctl/registry/values.h"
#include "lib/address-plan.h"
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
        assert_addr(node_address(NODE_ID_MAX), "5f00:0:dfff::1");
        assert_addr(node_locator(0x203), "5f00:0:203::");
        assert_addr(node_sid(0x100, SID_FUNC_END_MT), "5f00:0:100:e001::");
        assert_addr(node_replication_sid(1, REPLICATION_ID_MAX), "5f00:0:1:ffff::");
        assert_addr(proxy_address(0x12345), "fd00:ffff::1:2345");
        assert_addr(mcast_group_address(REPLICATION_ID_MAX), "ff3e::8000:fff");
    }
END_TEST

/* A prefix ends at any bit. */
START_TEST(covers)
    {
        struct in6_addr addr = node_sid(0x100, 0x5a5a);

        for (uint8_t plen = 0; plen <= 128; plen++) {
            for (uint8_t bit = 0; bit < 128; bit++) {
                struct prefix prefix = {addr, plen};

                ck_assert(prefix_covers(&prefix, &addr));
                prefix.address.s6_addr[bit / 8] ^= (uint8_t) (0x80 >> bit % 8);
                ck_assert_int_eq(prefix_covers(&prefix, &addr), bit >= plen);
            }
        }
    }
END_TEST

START_TEST(limit_as_text)
    {
        uint64_t max;

        ck_assert(number_parse(NODE_ID_MAX_TEXT, NODE_ID_MAX, NODE_ID_MAX, &max));
    }
END_TEST

START_TEST(port_mac)
    {
        static const uint8_t expected[6] = {0x02, 0x5f, 0x12, 0x34, 0x0f, 0xff};
        uint8_t mac[6];

        node_port_mac(0x1234, PORT_NUMBER_MAX, mac);
        ck_assert_mem_eq(mac, expected, sizeof mac);
    }
END_TEST

START_TEST(back)
    {
        struct in6_addr sid = node_replication_sid(0x203, 0xabc);
        struct in6_addr address = node_address(0x203);

        ck_assert_uint_eq(replication_id_of(&sid), 0xabc);
        ck_assert_uint_eq(node_id_of(&sid), 0x203);
        ck_assert(address_is_of_node(&sid, 0x203) && address_is_of_node(&address, 0x203));
        ck_assert(!address_is_of_node(&sid, 0x204));
        ck_assert(address_is_sid(&sid) && !address_is_sid(&address));
        /* No node has these, but functions and their arguments may look like it. */
        for (size_t i = 0; i < 2; i++) {
            struct in6_addr like = node_address(i ? SID_FUNC_UA + 1 : 0);

            ck_assert(address_is_sid(&like));
        }
        ck_assert(address_is_in_sid_space(&sid) && address_is_in_sid_space(&address));
    }
END_TEST

/* What a prefix says, and the predicate that says the same. */
static const struct prefix_text {
    const char *text;
    bool (*contains)(const struct in6_addr *);
} prefixes[] = {
    {SID_SPACE_TEXT, address_is_in_sid_space},
    {SID_BLOCK_TEXT, address_is_sid},
    {PROXY_PREFIX_TEXT, is_proxy_address},
    {MCAST_PREFIX_TEXT, is_mcast_group_address},
};

/* The prefix's first and last address are in, those with its last bit turned are not. */
START_TEST(prefixes_as_text)
    {
        struct in6_addr first, last;
        uint8_t plen;

        ck_assert(ip6_prefix_parse(prefixes[_i].text, &first, &plen));
        last = first;
        for (unsigned int bit = plen; bit < 128; bit++) {
            last.s6_addr[bit / 8] |= (uint8_t) (0x80 >> bit % 8);
        }
        ck_assert(prefixes[_i].contains(&first));
        ck_assert(prefixes[_i].contains(&last));
        first.s6_addr[(plen - 1) / 8] ^= (uint8_t) (0x80 >> (plen - 1) % 8);
        last.s6_addr[(plen - 1) / 8] ^= (uint8_t) (0x80 >> (plen - 1) % 8);
        ck_assert(!prefixes[_i].contains(&first));
        ck_assert(!prefixes[_i].contains(&last));
    }
END_TEST

/* A node's SIDs are in the order of their prefixes, and none is within another's. */
START_TEST(behaviours)
    {
        const struct sid_behaviour_row *row = sid_behaviour((enum sid_behaviour) _i);

        if (_i == SID_UN) {
            ck_assert_uint_eq(row->function, 0);
            ck_assert_uint_eq(row->plen, NODE_LOCATOR_PLEN);
            return;
        }
        ck_assert_uint_ge(row->function, USID_FIRST_FUNCTION);
        ck_assert_uint_eq(row->function & ((1u << (64 - row->plen)) - 1), 0);
        ck_assert(row->roles);
        if (_i) {
            ck_assert_uint_gt(row->function, sid_behaviour((enum sid_behaviour)(_i - 1))->function);
        }
    }
END_TEST

Suite *
address_plan_suite(void)
{
    Suite *suite = suite_create("address-plan");
    TCase *tc = tcase_create("address-plan");

    tcase_add_test(tc, addresses);
    tcase_add_test(tc, covers);
    tcase_add_test(tc, limit_as_text);
    tcase_add_test(tc, port_mac);
    tcase_add_test(tc, back);
    tcase_add_loop_test(tc, prefixes_as_text, 0, sizeof prefixes / sizeof *prefixes);
    tcase_add_loop_test(tc, behaviours, 0, (int) sid_behaviour_words.n);
    suite_add_tcase(suite, tc);
    return suite;
}
