/* SPDX-License-Identifier: Apache-2.0
 *
 * How castctl ends when something is wrong: with a sentence on standard error.  With -j that is an object on one line,
 * and standard output has an object with sentence and status, and nothing else.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

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

/* A line on standard error; 'code' is CTL_OK if castctl goes on. */
static void
say_as_json(const char *why, enum ctl_exit code)
{
    struct json *o = json_object_create();

    json_object_put_string(o, "program", "castctl");
    ctl_put_string_or_null(o, "command", about);
    json_object_put_string(o, "message", why);
    ctl_put_string_or_null(o, "suggestion", meant);
    ctl_put_int_or_null(o, "exit_status", code ? &(int64_t){code} : NULL);
    char *line = json_to_string(o, JSSF_SORT);
    printable_put(stderr, "", "%s", line);
    free(line);
    json_destroy(o);
}

/* 'list': lines of our own that follow in text; NULL: none. */
static void OVS_NO_RETURN
fail(enum ctl_exit code, const char *why, const char *list)
{
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
