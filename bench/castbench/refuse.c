/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences (see refuse.h).
 */
#include "bench/castbench/refuse.h"

#include <stdarg.h>
#include <stdio.h>

void
refuse_say(char *error, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
}
