/* SPDX-License-Identifier: Apache-2.0
 *
 * How castctl ends when something is wrong: with a sentence on standard error, and with -j also
 * with an object on standard output, which has nothing else then.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/printable.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

static bool as_json, in_lines;

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
    list = as_json ? NULL : list;
    printable_put(stderr, "castctl: ", list ? "%s:" : "%s", why);
    fputs(list ? list : "", stderr);
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
    printable_line(stderr, "castctl: ", format, args);
    va_end(args);
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

/* Fails with the options that begin with 'arg', or because none does. */
static void OVS_NO_RETURN
fail_over_name(const char *where, const char *arg, const struct option *options)
{
    size_t len = strcspn(arg + 2, "=");
    struct ds names = DS_EMPTY_INITIALIZER;

    for (const struct option *o = options; o->name; o++) {
        if (!strncmp(o->name, arg + 2, len)) {
            ds_put_format(&names, " '--%s'", o->name);
        }
    }
    if (names.length) {
        ctl_fail(CTL_USAGE, "%soption '%s' is ambiguous; possibilities:%s", where, arg,
                 ds_cstr(&names));
    }
    ctl_fail(CTL_USAGE, "%sunrecognized option '%s'", where, arg);
}

void
ctl_fail_over_option(int c, char *const argv[], const char *short_options,
                     const struct option *options, const char *command)
{
    const char *where = command ? xasprintf("%s: ", command) : "";
    const char *arg = argv[optind - 1];
    const struct option *option = options;

    while (option->name && option->val != optopt) {
        option++;
    }
    if (c == ':' && !strncmp(arg, "--", 2)) {
        ctl_fail(CTL_USAGE, "%soption '--%s' requires an argument", where, option->name);
    } else if (c == ':') {
        ctl_fail(CTL_USAGE, "%soption requires an argument -- '%c'", where, optopt);
    } else if (!optopt) {
        fail_over_name(where, arg, options);
    } else if (optopt == ':' || (optopt <= UCHAR_MAX && !strchr(short_options, optopt))) {
        ctl_fail(CTL_USAGE, "%sinvalid option -- '%c'", where, optopt);
    } else {
        ctl_fail(CTL_USAGE, "%soption '--%s' doesn't allow an argument", where, option->name);
    }
}
