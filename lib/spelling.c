/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody meant who wrote a word that is none of those known.
 */
#include "lib/spelling.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/why.h"

#define MAX_WORD 32

static size_t
smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to insert, delete, replace or swap with the next one; words longer than MAX_WORD are far from everything. */
static size_t
edit_distance(const char *a, const char *b)
{
    size_t rows[3][MAX_WORD + 1]; /* of the beginnings of 'a' with i letters, i modulo 3. */
    size_t n_a = strlen(a), n_b = strlen(b);

    if (n_a > MAX_WORD || n_b > MAX_WORD) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= n_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            if (!i) {
                row[j] = j;
                continue;
            }
            row[j] =
                smaller(above[j - 1] + (a[i - 1] != b[j - 1]), smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[n_a % 3][n_b];
}

const char *
closest_word(const char *word, const char *const words[])
{
    size_t len = strlen(word);
    size_t best_distance = len <= 3 ? 2 : len / 3 + 2;
    const char *best = NULL;

    for (size_t i = 0; words[i]; i++) {
        size_t distance = edit_distance(word, words[i]);

        if (distance < best_distance) {
            best_distance = distance;
            best = words[i];
        }
    }
    return best;
}

char *
did_you_mean(const char *word, const char *const words[])
{
    const char *meant = closest_word(word, words);
    char *text;

    say_why(&text, meant ? " (did you mean '%s'?)" : "%s", meant ? meant : "");
    return text;
}

/* The option with a name close to 'arg', which is "--NAME" or "--NAME=VALUE"; or NULL. */
static const char *
closest_option(const char *arg, const struct option *options)
{
    size_t n = 0;

    while (options[n].name) {
        n++;
    }
    const char **words = calloc(n + 1, sizeof *words);
    char *word = strndup(arg + 2, strcspn(arg + 2, "="));
    if (!words || !word) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        words[i] = options[i].name;
    }
    const char *meant = closest_word(word, words);
    free(word);
    free(words);
    return meant;
}

/* The options that begin with 'arg', or that none does. */
static char *
name_complaint(const char *arg, const struct option *options, const char **meant)
{
    size_t len = strcspn(arg + 2, "="), size;
    char *names, *text;
    FILE *stream = open_memstream(&names, &size);

    if (!stream) {
        abort();
    }
    for (const struct option *o = options; o->name; o++) {
        if (!strncmp(o->name, arg + 2, len)) {
            fprintf(stream, " '--%s'", o->name);
        }
    }
    if (fclose(stream)) {
        abort();
    }
    if (names[0]) {
        say_why(&text, "option '%s' is ambiguous; possibilities:%s", arg, names);
    } else {
        *meant = closest_option(arg, options);
        say_why(&text, "unrecognized option '%s'%s%s%s", arg, *meant ? " (did you mean '--" : "",
                *meant ? *meant : "", *meant ? "'?)" : "");
    }
    free(names);
    return text;
}

/* Has 'arg' a value for this option, which takes none? */
static bool
is_with_value(const char *arg, const struct option *option)
{
    size_t len = strcspn(arg, "=");

    return option->name && option->has_arg == no_argument && !strncmp(arg, "--", 2) && arg[len]
           && !strncmp(option->name, arg + 2, len - 2);
}

char *
option_complaint(int c, char *const argv[], const struct option *options, const char **meant)
{
    const char *arg = argv[optind - 1];
    const struct option *option = options;
    char *text;

    *meant = NULL;
    while (option->name && option->val != optopt) {
        option++;
    }
    if (c == ':' && !strncmp(arg, "--", 2)) {
        say_why(&text, "option '--%s' requires an argument", option->name);
    } else if (c == ':') {
        say_why(&text, "option requires an argument -- '%c'", optopt);
    } else if (!optopt) {
        text = name_complaint(arg, options, meant);
    } else if (is_with_value(arg, option)) {
        say_why(&text, "option '--%s' doesn't allow an argument", option->name);
    } else {
        say_why(&text, "invalid option -- '%c'", optopt);
    }
    return text;
}
