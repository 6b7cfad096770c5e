/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from elsewhere (the registry, a file, another machine) as a terminal or a log may have it.
 */
#ifndef LIB_PRINTABLE_H
#define LIB_PRINTABLE_H 1

#include <stdarg.h>
#include <stdio.h>

/* The text on one line that commands no terminal; malloc'd.  Written as escapes are:
 *
 *     \n \r \t \xHH    control characters (C0), and bytes that are not UTF-8
 *     \uHHHH           other control characters (DEL, C1), line and paragraph separators, and what
 *                      changes the direction of the text behind it
 *
 * Everything else stays as it is, a backslash too.  So a line of JSON, which has no C0, is the same
 * JSON afterwards. */
char *printable(const char *text);

/* Prints a line that begins with 'before'; what the format makes is printable. */
void printable_line(FILE *, const char *before, const char *format, va_list)
    __attribute__((format(printf, 3, 0)));

/* Likewise. */
void printable_put(FILE *, const char *before, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif /* lib/printable.h */
