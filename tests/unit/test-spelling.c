/* SPDX-License-Identifier: Apache-2.0
 *
 * Words that are likely to be meant, and what is said of options.
 */
#include "lib/spelling.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"

static const char *const words[] = {"group", "list", "show", "up", "set", "policy", NULL};

static const struct {
    const char *word, *meant;
} cases[] = {
    {"group", "group"},
    {"gruop", "group"},
    {"grup", "group"},
    {"lsit", "list"},
    {"lits", "list"},
    {"pollicy", "policy"},
    {"xup", "up"},
    {"u", "up"},
    {"pu", "up"},
    {"opcily", "policy"},
    {"xyz", NULL},
    {"nonsense", NULL},
    {"", NULL},
    {"grxxxxp", NULL},
    {"polices", "policy"},
    /* Longer than any word that is compared. */
    {"policypolicypolicypolicypolicypolicy", NULL},
};

START_TEST(closest)
    {
        const char *meant = closest_word(cases[_i].word, words);

        ck_assert_pstr_eq(meant, cases[_i].meant);
        char *hint = did_you_mean(cases[_i].word, words);
        ck_assert_int_eq(hint[0] != '\0', meant != NULL);
        free(hint);
    }
END_TEST

static const struct {
    const char *arg; /* the only one. */
    const char *said, *meant;
} options[] = {
    {"--qnp=1", "unrecognized option '--qnp=1'", NULL},
    {"--membres=1", "unrecognized option '--membres=1' (did you mean '--members'?)", "members"},
    {"--mem", "option '--mem' is ambiguous; possibilities: '--members' '--memory'", NULL},
    {"--members", "option '--members' requires an argument", NULL},
    {"--keep=yes", "option '--keep' doesn't allow an argument", NULL},
    {"--ke=yes", "option '--keep' doesn't allow an argument", NULL},
    {"-x", "invalid option -- 'x'", NULL},
    {"-:", "invalid option -- ':'", NULL},
    {"-kx", "invalid option -- 'x'", NULL},
    {"-p", "option requires an argument -- 'p'", NULL},
};

START_TEST(option_errors)
    {
        static const struct option known[] = {
            {"members", required_argument, NULL, 'm'},
            {"memory", required_argument, NULL, 'M'},
            {"keep", no_argument, NULL, 'k'},
            {NULL, 0, NULL, 0},
        };
        char program[] = "program", *arg = strdup(options[_i].arg);
        char *argv[] = {program, arg, NULL};
        const char *meant;
        int c;

        optind = 0;
        do {
            c = getopt_long(2, argv, ":kp:", known, NULL);
        } while (c == 'k');
        ck_assert(c == ':' || c == '?');
        char *said = option_complaint(c, argv, known, &meant);
        ck_assert_str_eq(said, options[_i].said);
        ck_assert_pstr_eq(meant, options[_i].meant);
        free(said);
        free(arg);
    }
END_TEST

Suite *
spelling_suite(void)
{
    Suite *suite = suite_create("spelling");
    TCase *tcase = tcase_create("spelling");

    tcase_add_loop_test(tcase, closest, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tcase, option_errors, 0, sizeof options / sizeof *options);
    suite_add_tcase(suite, tcase);
    return suite;
}
