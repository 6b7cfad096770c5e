/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/reverse.c on random event strings.  A failure names the seed of its string:
 * run_string() repeats it.
 */
#include "lib/reverse.h"

#include <check.h>
#include <stdio.h>

#include "tests/unit/reverse-compare.h"
#include "tests/unit/suites.h"

#define N_STRINGS        30000
#define N_EVENTS         80
#define STRINGS_PER_CASE 1000

static uint32_t
choose(void *random, uint32_t limit)
{
    /* splitmix64. */
    uint64_t z = *(uint64_t *) random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t) ((z ^ z >> 31) >> 32) % limit;
}

static void
run_string(unsigned int seed)
{
    uint64_t random = seed;
    char title[32];

    snprintf(title, sizeof title, "seed %u", seed);
    reverse_compare(&(struct reverse_string){
        .title = title,
        .choose = choose,
        .aux = &random,
        .n_events = N_EVENTS,
        .many = seed % 200 == 0,
        .policy = seed % 3 == 0,
    });
}

/* Proves MT-5.3.1-1, MT-5.3.2-1. */
START_TEST(same_as_model)
    {
        for (unsigned int i = 0; i < STRINGS_PER_CASE; i++) {
            run_string((unsigned int) _i * STRINGS_PER_CASE + i);
        }
    }
END_TEST

Suite *
reverse_model_suite(void)
{
    Suite *s = suite_create("reverse_model");
    TCase *tc = tcase_create("random");

    tcase_add_loop_test(tc, same_as_model, 0, N_STRINGS / STRINGS_PER_CASE);
    suite_add_tcase(s, tc);
    return s;
}
