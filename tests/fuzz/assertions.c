/* SPDX-License-Identifier: Apache-2.0
 *
 * libcheck's assertions for programs that use the fixtures of tests/unit and run no suite.  Linked
 * in place of libcheck's own, which report to the process that runs a suite.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
_ck_assert_failed(const char *file, int line, const char *expr, const char *msg, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: %s", file, line, expr);
    if (msg) {
        fputs(": ", stderr);
        va_start(args, msg);
        vfprintf(stderr, msg, args);
        va_end(args);
    }
    fputc('\n', stderr);
    abort();
}

void
_mark_point(const char *file, int line)
{
    (void) file;
    (void) line;
}
