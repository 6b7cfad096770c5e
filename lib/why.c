/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences that say what is wrong.
 */
#include "lib/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool
say_why(char **errp, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (vasprintf(errp, format, args) < 0) {
        abort();
    }
    va_end(args);
    return false;
}
