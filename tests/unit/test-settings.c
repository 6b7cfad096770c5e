/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a group's settings agrees with itself.
 */
#include <config.h>

#include "ctl/registry/group-settings.h"

#include <errno.h>
#include <stdlib.h>

#include "smap.h"
#include "svec.h"
#include "tests/unit/suites.h"
#include "util.h"

static const struct group_setting *
find_setting(const char *option)
{
    for (const struct group_setting *s = group_settings_table; s->option; s++) {
        if (!strcmp(s->option, option)) {
            return s;
        }
    }
    ck_abort_msg("no setting %s", option);
}

static int
parse(const char *option, const char *text, struct group_settings *s, const char *message)
{
    char *why;
    int error = group_setting_parse(find_setting(option), text, s, &why);

    ck_assert_int_eq(!error, !why);
    ck_assert_pstr_eq(why, message);
    free(why);
    return error;
}

/* Every word is a value, and no other is; the default is one, but for those in words. */
START_TEST(settings_read_what_they_show)
    {
        const struct group_setting *s = &group_settings_table[_i];
        struct group_settings settings = group_settings_default();
        struct svec texts = SVEC_EMPTY_INITIALIZER;
        char *why, *text = group_setting_text(s, &settings);

        if (strcmp(s->option, "psn") && strcmp(s->option, "liveness")) {
            ck_assert_str_eq(text, s->otherwise);
        }
        if (text) {
            svec_add_nocopy(&texts, text);
        }
        if (s->words) {
            char *words = group_setting_argument(s), *save = NULL;

            for (char *w = strtok_r(words, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
                svec_add(&texts, w);
            }
            free(words);
            ck_assert_uint_gt(texts.n, 2);
        }
        for (size_t i = 0; i < texts.n; i++) {
            ck_assert_msg(!group_setting_parse(s, texts.names[i], &settings, &why), "%s", why);
            text = group_setting_text(s, &settings);
            ck_assert_str_eq(text, texts.names[i]);
            free(text);
        }
        ck_assert_int_eq(group_setting_parse(s, "nonsense", &settings, &why), EINVAL);
        ck_assert_msg(!strncmp(why, "must be ", 8), "%s", why);
        free(why);
        svec_destroy(&texts);
    }
END_TEST

START_TEST(messages)
    {
        struct group_settings s = group_settings_default();

        ck_assert_int_eq(parse("nak", "HOLD", &s, "must be hold, literal or solicit"), EINVAL);
        ck_assert_int_eq(parse("filter", "yes", &s, "must be off or on"), EINVAL);
        ck_assert_int_eq(parse("timeout", "0", &s, "must be 1..31"), EINVAL);
        ck_assert_int_eq(parse("min-rate", "-1", &s, "must be 0..100000000"), EINVAL);
        ck_assert_int_eq(parse("cnp", "agent", &s, "must be auto, edge, nic or off"), EINVAL);
        ck_assert_int_eq(parse("cnp-window", "9", &s, "must be 10..1000000"), EINVAL);
        ck_assert_int_eq(parse("trace", "12", &s, "must be 0..11"), EINVAL);
        ck_assert_int_eq(parse("slow", "prune", &s, "must be report or lose"), EINVAL);
        ck_assert_int_eq(parse("liveness", "3600001", &s, "must be 0..3600000"), EINVAL);
        ck_assert_int_eq(parse("liveness", "17179", &s,
                               "must be 0 (never) or at least 17180 ms, 4 times the QPs' time-out "
                               "(4.096 us * 2^20)"),
                         ERANGE);
    }
END_TEST

/* The liveness time follows the time-out, unless it is given. */
START_TEST(liveness_follows_timeout)
    {
        struct group_settings s = group_settings_default();

        ck_assert_uint_eq(s.policy.liveness_msec, 17180);
        ck_assert_int_eq(parse("timeout", "14", &s, NULL), 0);
        ck_assert_uint_eq(s.policy.liveness_msec, 10000);
        ck_assert_int_eq(parse("liveness", "0x10d", &s, NULL), 0);
        ck_assert_uint_eq(s.policy.liveness_msec, 269);
        ck_assert_int_eq(parse("timeout", "31", &s, NULL), 0);
        ck_assert_int_eq(parse("liveness", "35184373", &s, NULL), 0);
    }
END_TEST

static int
take(const char *option, const char *text, struct group_settings *s, const char *message)
{
    struct smap given = SMAP_CONST1(&given, option, text);
    const struct group_setting *wrong = NULL;
    char *why = NULL;
    int error = group_settings_take(s, &given, &wrong, &why);

    ck_assert(!error || !strcmp(wrong->option, option));
    ck_assert_pstr_eq(why, message);
    free(why);
    return error;
}

/* A port is of no use to a group that takes no connections, also if it is the default. */
START_TEST(port_needs_connect)
    {
        struct group_settings s = group_settings_default();

        ck_assert(!s.connect && s.connect_port == 7174);
        ck_assert_int_eq(take("port", "7174", &s, "the group takes no connections (connect)"),
                         ERANGE);
        ck_assert_int_eq(take("port", "65536", &s, "must be 1..65535"), EINVAL);
        ck_assert_int_eq(take("connect", "on", &s, NULL), 0);
        ck_assert_int_eq(take("port", "7180", &s, NULL), 0);
        ck_assert(s.connect && s.connect_port == 7180);
        ck_assert_ptr_null(group_settings_mend(&s));
        ck_assert(s.connect && s.connect_port == 7180);
    }
END_TEST

/* What makes no sense gets its default, and nothing else does. */
START_TEST(mended)
    {
        struct group_settings s = group_settings_default();
        char *problem;

        s.mode = MODE_MCAST;
        s.psn = 7;
        s.policy.prune = true;
        s.policy.timeout = 14;
        s.policy.liveness_msec = 269;
        ck_assert_ptr_null(group_settings_mend(&s));
        ck_assert_uint_eq(s.policy.liveness_msec, 269);
        s.policy.liveness_msec = 268;
        problem = group_settings_mend(&s);
        ck_assert_str_eq(problem, "liveness 268: must be 0 (never) or at least 269 ms, 4 times the "
                                  "QPs' time-out (4.096 us * 2^14)");
        free(problem);
        ck_assert_uint_eq(s.policy.liveness_msec, 10000);
        ck_assert(s.mode == MODE_MCAST && s.psn == 7 && s.policy.prune && s.policy.timeout == 14);
    }
END_TEST

Suite *
settings_suite(void)
{
    Suite *suite = suite_create("settings");
    TCase *settings = tcase_create("table");

    tcase_add_loop_test(settings, settings_read_what_they_show, 0, (int) group_settings_count());
    tcase_add_test(settings, messages);
    tcase_add_test(settings, liveness_follows_timeout);
    tcase_add_test(settings, port_needs_connect);
    tcase_add_test(settings, mended);
    suite_add_tcase(suite, settings);
    return suite;
}
