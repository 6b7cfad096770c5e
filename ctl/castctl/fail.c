/* SPDX-License-Identifier: Apache-2.0
 *
 * How castctl ends when something is wrong: with a sentence on standard error.  With -j that is an object on one line,
 * and standard output has an object with sentence and status, and nothing else.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/printable.h"
#include "lib/spelling.h"
#include "util.h"

static bool as_json, in_lines;
static const char *about; /* the command, once it is known; or NULL. */
static const char *meant; /* what was likely meant instead of what is wrong; or NULL. */

void
ctl_fail_as_json(void)
{
    as_json = true;
}

void
ctl_fail_in_lines(void)
{
    in_lines = true;
}

static struct ctl_place place;
static const struct ctl_place *places; /* for failures that name an option. */
static size_t n_places;

void
ctl_fail_at(const struct ctl_place *at, const struct ctl_place *others, size_t n)
{
    place = at ? *at : (struct ctl_place){.file = NULL};
    places = others;
    n_places = n;
}

/* Has the sentence "--OPTION"? */
static bool
names_option(const char *why, const char *option)
{
    size_t len = strlen(option);

    for (const char *s = why; (s = strstr(s, "--")); s += 2) {
        if (!strncmp(s + 2, option, len) && !islower((unsigned char) s[2 + len])
            && s[2 + len] != '-') {
            return true;
        }
    }
    return false;
}

/* Where it is in a file what the sentence is about. */
static const struct ctl_place *
place_of(const char *why)
{
    for (size_t i = 0; i < n_places; i++) {
        if (names_option(why, places[i].option)) {
            return &places[i];
        }
    }
    return &place;
}

/* The sentence with its place before it, malloc'd. */
static char *
with_place(const char *why)
{
    const struct ctl_place *p = place_of(why);
    char *line = p->line ? xasprintf(":%zu:%zu", p->line, p->column) : xstrdup("");

    return !p->file ? xstrdup(why)
                    : xasprintf("%s%s: %s%s%s", p->file, line, p->path ? p->path : "",
                                p->path ? ": " : "", why);
}

void
ctl_fail_about(const char *command)
{
    about = command;
}

void
ctl_fail_suggest(const char *suggestion)
{
    meant = suggestion;
}

/* Null for 0. */
static void
put_number(struct json *o, const char *key, size_t number)
{
    int64_t value = (int64_t) number;

    ctl_put_int_or_null(o, key, number ? &value : NULL);
}

/* A line on standard error; 'code' is CTL_OK if castctl goes on. */
static void
say_as_json(const char *why, enum ctl_exit code)
{
    struct json *o = json_object_create();
    const struct ctl_place *p = place_of(why);

    json_object_put_string(o, "program", "castctl");
    ctl_put_string_or_null(o, "command", about);
    json_object_put_string(o, "message", why);
    ctl_put_string_or_null(o, "suggestion", meant);
    ctl_put_string_or_null(o, "file", p->file);
    put_number(o, "line", p->line);
    put_number(o, "column", p->line ? p->column : 0);
    put_number(o, "exit_status", code);
    char *line = json_to_string(o, JSSF_SORT);
    printable_put(stderr, "", "%s", line);
    free(line);
    json_destroy(o);
}

/* 'list': lines of our own that follow in text; NULL: none. */
static void OVS_NO_RETURN
fail(enum ctl_exit code, const char *what, const char *list)
{
    char *why = with_place(what);

    if (as_json && !ferror(stdout)) {
        struct json *o = json_object_create();

        json_object_put_string(o, "error", why);
        ctl_put_int(o, "status", code);
        if (in_lines) {
            ctl_print_json_line(o);
        } else {
            ctl_print(&(struct ctl){.json = true}, o, NULL);
        }
    }
    fflush(stdout);
    if (as_json) {
        say_as_json(why, code);
    } else {
        printable_put(stderr, "castctl: ", list ? "%s:" : "%s", why);
        fputs(list ? list : "", stderr);
    }
    exit(code);
}

void
ctl_fail(enum ctl_exit code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *why = xvasprintf(format, args);
    va_end(args);
    fail(code, why, NULL);
}

void
ctl_fail_with_list(enum ctl_exit code, const char *list, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *why = xvasprintf(format, args);
    va_end(args);
    fail(code, why, list);
}

void
ctl_warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *why = xvasprintf(format, args);
    va_end(args);
    if (as_json) {
        say_as_json(why, CTL_OK);
    } else {
        printable_put(stderr, "castctl: ", "%s", why);
    }
    free(why);
}

void
ctl_refuse(const struct ctl *ctl, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *why = xvasprintf(format, args);
    va_end(args);
    fail(CTL_REFUSED,
         xasprintf("%s: %s%s", ctl->command->name, why,
                   ctl->uncertain
                       ? " (the connection was lost before: perhaps it has been done then)"
                       : ""),
         NULL);
}

void
ctl_fail_over_option(int c, char *const argv[], const struct option *options, const char *command)
{
    const char *option;
    char *why = option_complaint(c, argv, options, &option);

    ctl_fail_suggest(option ? xasprintf("--%s", option) : NULL);
    ctl_fail(CTL_USAGE, "%s%s%s", command ? command : "", command ? ": " : "", why);
}
