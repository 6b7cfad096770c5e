/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts of private data, and the regions that answers have by them.
 */
#include <config.h>

#include "ctl/registry/private-data.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "util.h"

/* What a program puts there: 64 bits, 32 bits, 64 bits, all different. */
static const uint8_t answer[196] = {
    0x00,         0x00, 0x7f, 0x12, 0x34, 0x56, 0x78, 0x00, /* 0 */
    0x00,         0x00, 0x1a, 0x2b,                         /* 8 */
    0x00,         0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, /* 12 */
    0xff,         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* 20 */
    [195] = 0x05,
};

static const struct {
    const char *layout;
    uint64_t va;
    uint32_t rkey;
    uint64_t len;
} regions[] = {
    {"", 0x7f1234567800, 0x1a2b, 0x100000},
    {PRIVATE_DATA_DEFAULT, 0x7f1234567800, 0x1a2b, 0x100000},
    {"len:be64@12,va:be64@0,rkey:be32@8", 0x7f1234567800, 0x1a2b, 0x100000},
    {"va:be64@0,rkey:be32@8,len:4096", 0x7f1234567800, 0x1a2b, 4096},
    {"va:0,rkey:le32@8,len:0x1000", 0, 0x2b1a0000, 4096},
    {"va:le64@0,rkey:7,len:be32@16", 0x00785634127f0000, 7, 0x100000},
    {"va:be32@2,rkey:be16@10,len:le16@10", 0x7f123456, 0x1a2b, 0x2b1a},
    {"va:0,rkey:be16@194,len:1", 0, 5, 1},
    {"va:0xfffffffffffffffe,rkey:0xffffffff,len:1", UINT64_MAX - 1, UINT32_MAX, 1},
};

START_TEST(a_region_is_where_its_layout_says)
    {
        struct private_data_layout layout;
        uint64_t va, len;
        uint32_t rkey;
        char *error;

        ck_assert(private_data_parse(regions[_i].layout, &layout, &error));
        ck_assert(private_data_extract(&layout, answer, sizeof answer, &va, &rkey, &len, &error));
        ck_assert_uint_eq(va, regions[_i].va);
        ck_assert_uint_eq(rkey, regions[_i].rkey);
        ck_assert_uint_eq(len, regions[_i].len);
    }
END_TEST

#define TYPES "the type must be be16, be32, be64, le16, le32 or le64"
#define FORM  "must be FIELD:TYPE@BYTE or FIELD:NUMBER"

static const struct {
    const char *layout, *error;
} wrong[] = {
    {"va", "field 1, \"va\": " FORM},
    {"va:", "field 1, \"va:\": " FORM},
    {"va:-1", "field 1, \"va:-1\": " FORM},
    {"va:be64", "field 1, \"va:be64\": " FORM},
    {",", "field 1, \"\": the field must be va, rkey or len"},
    {"va:0,qpn:be32@0", "field 2, \"qpn:be32@0\": the field must be va, rkey or len"},
    {"va:0, rkey:0", "field 2, \" rkey:0\": the field must be va, rkey or len"},
    {"va:0,rkey:be24@0", "field 2, \"rkey:be24@0\": " TYPES},
    {"va:0,rkey:BE32@0", "field 2, \"rkey:BE32@0\": " TYPES},
    {"va:0,rkey:@0", "field 2, \"rkey:@0\": " TYPES},
    {"va:be64@189",
     "field 1, \"va:be64@189\": the byte that it begins at must be 0..188: an answer "
     "has 196 bytes of private data"},
    {"va:le16@195",
     "field 1, \"va:le16@195\": the byte that it begins at must be 0..194: an answer "
     "has 196 bytes of private data"},
    {"va:be32@18446744073709551616",
     "field 1, \"va:be32@18446744073709551616\": the byte that it begins at must be 0..192: an "
     "answer has 196 bytes of private data"},
    {"va:be32@", "field 1, \"va:be32@\": the byte that it begins at must be 0..192: an answer has "
                 "196 bytes of private data"},
    {"va:0,rkey:0x100000000", "field 2, \"rkey:0x100000000\": the number must be 0..4294967295"},
    {"len:0", "field 1, \"len:0\": the number must be 1..9223372036854775807"},
    {"va:0x10000000000000000",
     "field 1, \"va:0x10000000000000000\": the number must be 0..18446744073709551615"},
    {"va:0,va:be64@0,rkey:0", "field 2, \"va:be64@0\": va is there twice"},
    {"va:0,rkey:0,", "field 3, \"\": the field must be va, rkey or len"},
    {"rkey:0,len:1", "va is missing: va:TYPE@BYTE or va:NUMBER"},
    {"len:1,va:0", "rkey is missing: rkey:TYPE@BYTE or rkey:NUMBER"},
    {"va:be64@0,rkey:be32@8", "len is missing: len:TYPE@BYTE or len:NUMBER"},
};

START_TEST(a_wrong_layout_is_named)
    {
        struct private_data_layout layout;
        char *error;

        ck_assert(!private_data_parse(wrong[_i].layout, &layout, &error));
        ck_assert_str_eq(error, wrong[_i].error);
        free(error);
    }
END_TEST

static const struct {
    const char *layout;
    size_t data_len;
    const char *error;
} refused[] = {
    {"", 0, "the answer has 0 bytes of private data, va is at 0 to 7"},
    {"", 7, "the answer has 7 bytes of private data, va is at 0 to 7"},
    {"", 8, "the answer has 8 bytes of private data, rkey is at 8 to 11"},
    {"", 11, "the answer has 11 bytes of private data, rkey is at 8 to 11"},
    {"", 19, "the answer has 19 bytes of private data, len is at 12 to 19"},
    {"va:0,rkey:0,len:be32@12", 196,
     "len in the answer's private data is 0: must be 1..9223372036854775807"},
    {"va:0,rkey:0,len:be64@20", 196,
     "len in the answer's private data is 18446744073709551615: must be 1..9223372036854775807"},
    {"va:0,rkey:be64@4,len:1", 196,
     "rkey in the answer's private data is 3771333679364708907: must be 0..4294967295"},
    {"va:be64@20,rkey:0,len:1", 196,
     "the region in the answer's private data, 1 bytes at 0xffffffffffffffff, runs over the end of "
     "the address space"},
    {"va:0xffffffffffffffff,rkey:0,len:1", 0,
     "the region in the answer's private data, 1 bytes at 0xffffffffffffffff, runs over the end of "
     "the address space"},
};

START_TEST(an_answer_without_a_region_is_refused)
    {
        struct private_data_layout layout;
        uint64_t va, len;
        uint32_t rkey;
        char *error;

        ck_assert(private_data_parse(refused[_i].layout, &layout, &error));
        /* A copy of its own length, so that a byte beyond it is a fault that sanitizers see. */
        uint8_t *data = xmemdup(answer, MAX(refused[_i].data_len, 1));
        ck_assert(
            !private_data_extract(&layout, data, refused[_i].data_len, &va, &rkey, &len, &error));
        ck_assert_str_eq(error, refused[_i].error);
        free(error);
        free(data);
    }
END_TEST

Suite *
private_data_suite(void)
{
    Suite *suite = suite_create("private_data");
    TCase *layouts = tcase_create("layouts");

    tcase_add_loop_test(layouts, a_region_is_where_its_layout_says, 0, ARRAY_SIZE(regions));
    tcase_add_loop_test(layouts, a_wrong_layout_is_named, 0, ARRAY_SIZE(wrong));
    tcase_add_loop_test(layouts, an_answer_without_a_region_is_refused, 0, ARRAY_SIZE(refused));
    suite_add_tcase(suite, layouts);
    return suite;
}
