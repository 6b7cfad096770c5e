/* SPDX-License-Identifier: Apache-2.0
 *
 * When a refused transaction is written again.
 */
#include <config.h>

#include "ctl/registry/retry.h"

#include <stdlib.h>

#include "openvswitch/vlog.h"
#include "tests/unit/suites.h"
#include "util.h"

/* How long the n-th refusal in a row makes one wait. */
static long long int
pause_after(unsigned int n, uint32_t random)
{
    struct registry_retry r = {0};

    for (unsigned int i = 0; i < n; i++) {
        registry_retry_refused(&r, "I/O error", 1000, random);
    }
    long long int pause = r.next - 1000;
    ck_assert(registry_retry_waits(&r, 1000 + pause - 1));
    ck_assert(!registry_retry_waits(&r, 1000 + pause));
    registry_retry_uninit(&r);
    return pause;
}

START_TEST(pauses_grow_up_to_a_bound)
    {
        static const long long int least[] = {100, 200, 400, 800, 1600, 3200, 6400, 6400, 6400};

        for (unsigned int n = 1; n <= ARRAY_SIZE(least); n++) {
            long long int low = least[n - 1], high = 0;

            for (uint32_t random = 0; random < 20000; random += 7) {
                long long int pause = pause_after(n, random);

                ck_assert_int_ge(pause, low);
                ck_assert_int_le(pause, MIN(2 * low, REGISTRY_RETRY_MAX_MSEC));
                high = MAX(high, pause);
            }
            ck_assert_int_ge(high, MIN(2 * low, REGISTRY_RETRY_MAX_MSEC) - 7); /* it is spread. */
        }
        ck_assert_int_le(pause_after(100000, UINT32_MAX), REGISTRY_RETRY_MAX_MSEC);
    }
END_TEST

START_TEST(what_is_taken_ends_it)
    {
        struct registry_retry r = {0};

        ck_assert_ptr_null(registry_retry_text(&r));
        ck_assert(!registry_retry_waits(&r, 0));
        registry_retry_refused(&r, "first", 5, 0);
        registry_retry_refused(&r, "second", 5, 0);
        char *text = registry_retry_text(&r);
        ck_assert_str_eq(text,
                         "the registry refuses what is written (2 times, tried again): second");
        free(text);
        registry_retry_taken(&r);
        ck_assert_ptr_null(registry_retry_text(&r));
        ck_assert(!registry_retry_waits(&r, 5));
        registry_retry_refused(&r, "third", 5, 0);
        ck_assert_int_eq(r.next, 5 + REGISTRY_RETRY_MIN_MSEC);
        registry_retry_uninit(&r);
    }
END_TEST

Suite *
retry_suite(void)
{
    Suite *suite = suite_create("retry");
    TCase *tc = tcase_create("core");

    vlog_set_levels(vlog_module_from_name("registry_retry"), VLF_ANY_DESTINATION, VLL_OFF);
    tcase_add_test(tc, pauses_grow_up_to_a_bound);
    tcase_add_test(tc, what_is_taken_ends_it);
    suite_add_tcase(suite, tc);
    return suite;
}
