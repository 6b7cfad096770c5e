/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a command line (see command.h).
 */
#include "bench/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
command_fail(int status, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(status);
}

unsigned
command_number(const char *option, const char *text, unsigned min, unsigned max)
{
    char *end;

    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || v < min || v > max) {
        command_fail(COMMAND_USAGE, "%s %s: must be %u..%u", option, text, min, max);
    }
    return (unsigned) v;
}
