/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict values: names, numbers, prefixes, addresses.
 */
#include <config.h>

#include "ctl/registry/values.h"

#include "tests/unit/suites.h"
#include "util.h"

static const struct {
    const char *text;
    uint64_t min, max, value;
    bool valid;
} numbers[] = {
    {"0", 0, 1, 0, true},
    {"0x10", 2, 16, 16, true},
    {"18446744073709551615", 0, UINT64_MAX, UINT64_MAX, true},
    {"18446744073709551616", 0, UINT64_MAX, 0, false},
    {"0xffffffffffffffff", 0, UINT64_MAX, UINT64_MAX, true},
    {"010", 0, 10, 10, true},
    {"17", 2, 16, 0, false},
    {"1", 2, 16, 0, false},
    {"", 0, 9, 0, false},
    {"0x", 0, 9, 0, false},
    {"-1", 0, 9, 0, false},
    {"+1", 0, 9, 0, false},
    {" 1", 0, 9, 0, false},
    {"1 ", 0, 9, 0, false},
    {"1x", 0, 9, 0, false},
};

START_TEST(number_values)
    {
        uint64_t value;
        bool valid = number_parse(numbers[_i].text, numbers[_i].min, numbers[_i].max, &value);

        ck_assert_int_eq(valid, numbers[_i].valid);
        ck_assert(!valid || value == numbers[_i].value);
    }
END_TEST

START_TEST(name_values)
    {
        char name[65];

        memset(name, 'x', sizeof name);
        name[64] = '\0';
        ck_assert(!name_is_valid(name));
        name[63] = '\0';
        ck_assert(name_is_valid(name));
        ck_assert(name_is_valid("a.B_9-"));
        ck_assert(!name_is_valid(""));
        ck_assert(!name_is_valid("a b"));
        ck_assert(!name_is_valid("a\n"));
        ck_assert(ifname_is_valid("abcdefghijklmno"));
        ck_assert(!ifname_is_valid("abcdefghijklmnop"));
        ck_assert(!ifname_is_valid(".."));
        ck_assert(!ifname_is_valid("a:b"));
    }
END_TEST

START_TEST(prefix_values)
    {
        struct in6_addr a;
        uint8_t plen;

        ck_assert(ip6_prefix_parse("5f00:0:1::/48", &a, &plen));
        ck_assert_uint_eq(plen, 48);
        ck_assert(ip6_prefix_parse("::/0", &a, &plen));
        ck_assert(ip6_prefix_parse("fd00::1/128", &a, &plen));
        ck_assert(!ip6_prefix_parse("fd00::1/127", &a, &plen));
        ck_assert(!ip6_prefix_parse("fd00::/129", &a, &plen));
        ck_assert(!ip6_prefix_parse("fd00::", &a, &plen));
        ck_assert(!ip6_prefix_parse("/64", &a, &plen));
    }
END_TEST

static const struct {
    const char *text;
    bool allowed;
} addresses[] = {
    {"fd00::1", true},
    {"2001:db8::1", true},
    {"::", false},
    {"::1", false},
    {"ff02::1", false},
    {"fe80::1", false},
    {"::ffff:1.2.3.4", false},
    {"5f00::1", false},
    {"5f01::1", true},
    {"fd00:ffff::1", false},
    {"fd00:fffe::1", true},
};

START_TEST(host_addresses)
    {
        struct in6_addr a;

        ck_assert(ip6_parse(addresses[_i].text, &a));
        ck_assert_int_eq(!host_address_check(&a), addresses[_i].allowed);
    }
END_TEST

Suite *
values_suite(void)
{
    Suite *suite = suite_create("values");
    TCase *values = tcase_create("values");

    tcase_add_loop_test(values, number_values, 0, ARRAY_SIZE(numbers));
    tcase_add_test(values, name_values);
    tcase_add_test(values, prefix_values);
    tcase_add_loop_test(values, host_addresses, 0, ARRAY_SIZE(addresses));
    suite_add_tcase(suite, values);
    return suite;
}
