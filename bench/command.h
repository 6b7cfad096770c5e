/* SPDX-License-Identifier: Apache-2.0
 *
 * What castprobe and castscale say when their command line, or what it asks for, is wrong.
 */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H 1

enum { COMMAND_USAGE = 1, COMMAND_FAILED = 2 };

/* Says "PROGRAM: ..." on standard error and ends the program with this status. */
void __attribute__((noreturn, format(printf, 2, 3)))
command_fail(int status, const char *format, ...);
/* The decimal number that an option has.  Another text, or a number out of bounds, ends the program. */
unsigned command_number(const char *option, const char *text, unsigned min, unsigned max);

#endif /* bench/command.h */
