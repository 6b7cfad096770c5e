/* SPDX-License-Identifier: Apache-2.0
 *
 * Private data of a group's connections.  The bytes are those of docs/joining.md.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/group-answer.h"
#include "tests/unit/suites.h"

static const uint8_t bytes[GROUP_ANSWER_LEN] = {
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, /* va */
    0x11, 0x12, 0x13, 0x14,                         /* rkey */
    0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, /* len */
    0x31, 0x32, 0x33, 0x34,                         /* epoch */
    0x41, 0x42,                                     /* members */
    0x00, 0x00, 'r',  'o',  'c',  'e',  'c',  'a',  's', 't',
};
static const struct group_answer answer = {
    .va = 0x0102030405060708,
    .rkey = 0x11121314,
    .len = 0x2122232425262728,
    .epoch = 0x31323334,
    .n_members = 0x4142,
};

START_TEST(there_and_back)
    {
        uint8_t data[GROUP_ANSWER_LEN];
        struct group_answer got = {.rkey = 0};

        group_answer_put(&answer, data);
        ck_assert_mem_eq(data, bytes, sizeof data);
        ck_assert(group_answer_get(&got, bytes, sizeof bytes));
        ck_assert_uint_eq(got.va, answer.va);
        ck_assert_uint_eq(got.rkey, answer.rkey);
        ck_assert_uint_eq(got.len, answer.len);
        ck_assert_uint_eq(got.epoch, answer.epoch);
        ck_assert_uint_eq(got.n_members, answer.n_members);
    }
END_TEST

/* A REP's private data has 196 bytes, most of them 0. */
START_TEST(more_bytes)
    {
        uint8_t data[196] = {0};
        struct group_answer got = {.rkey = 0};

        memcpy(data, bytes, sizeof bytes);
        ck_assert(group_answer_get(&got, data, sizeof data));
        ck_assert_uint_eq(got.rkey, answer.rkey);
    }
END_TEST

START_TEST(no_group)
    {
        struct group_answer got;
        uint8_t data[GROUP_ANSWER_LEN];

        for (size_t len = 0; len < sizeof bytes; len++) {
            uint8_t *copy = malloc(len + 1);

            memcpy(copy, bytes, len);
            ck_assert(!group_answer_get(&got, copy, len));
            free(copy);
        }
        for (size_t i = 28; i < sizeof bytes; i++) {
            memcpy(data, bytes, sizeof data);
            data[i] ^= 1;
            ck_assert(!group_answer_get(&got, data, sizeof data));
        }
    }
END_TEST

Suite *
group_answer_suite(void)
{
    Suite *s = suite_create("group_answer");
    TCase *tc = tcase_create("group_answer");

    tcase_add_test(tc, there_and_back);
    tcase_add_test(tc, more_bytes);
    tcase_add_test(tc, no_group);
    suite_add_tcase(s, tc);
    return s;
}
