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

static const struct {
    const char *text;
    bool allowed;
} programs[] = {
    {"5f00::/16", true},         {"5f00:0:100::/48", true},
    {"5f00:0:100::1/128", true}, {"5f00::/15", false},
    {"5f00::/8", false},         {"::/0", false},
    {"5f00:0:100::1/48", false}, {"5f00:0:100::", false},
    {"fd00::/16", false},        {"", false},
};

START_TEST(program_prefixes)
    {
        struct prefix p;

        ck_assert_int_eq(program_prefix_parse(programs[_i].text, &p), programs[_i].allowed);
        if (programs[_i].allowed) {
            char text[IP6_PREFIX_TEXT_SIZE];

            ip6_prefix_format(&p.address, p.plen, text);
            ck_assert_str_eq(text, programs[_i].text);
        }
    }
END_TEST

static const struct {
    const char *text;
    bool is_path, is_pin;
} path_texts[] = {
    {"leaf1", true, true},
    {"leaf1,spine5,leaf3", true, true},
    {"leaf1:eth3,spine5,leaf3", true, true},
    {"", false, false},
    {",", false, false},
    {"leaf1,", false, false},
    {"leaf1,,leaf3", false, false},
    {"leaf1:,spine5", false, false},
    {"leaf1:a/b", false, false},
    {":eth3", false, false},
    {"leaf1 5f00:0:100:300::", false, true},
    {"leaf1 5f00:0:100:300::,5f00:0:400::", false, true},
    {"leaf1 ", false, false},
    {" 5f00:0:100::", false, false},
    {"leaf1  5f00:0:100::", false, false},
    {"leaf1 ::,::,::,::,::", false, false},
    {"leaf1,leaf2 5f00::", false, false},
};

START_TEST(path_values)
    {
        ck_assert_int_eq(!path_text_check(path_texts[_i].text, false), path_texts[_i].is_path);
        ck_assert_int_eq(!path_text_check(path_texts[_i].text, true), path_texts[_i].is_pin);
    }
END_TEST

START_TEST(path_lengths)
    {
        char text[PATH_NAME_SIZE + 1];

        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = i % 2 ? ',' : 'n';
        }
        text[PATH_NAME_SIZE - 1] = '\0';
        ck_assert_ptr_null(path_text_check(text, false));
        text[PATH_NAME_SIZE - 1] = 'n';
        text[PATH_NAME_SIZE] = '\0';
        ck_assert_str_eq(path_text_check(text, true), "must be at most 255 characters");
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
    tcase_add_loop_test(values, program_prefixes, 0, ARRAY_SIZE(programs));
    tcase_add_loop_test(values, path_values, 0, ARRAY_SIZE(path_texts));
    tcase_add_test(values, path_lengths);
    suite_add_tcase(suite, values);
    return suite;
}
