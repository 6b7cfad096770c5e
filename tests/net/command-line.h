/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program's commands on standard input, a line each, and its answers on standard output:
 * "ok", what the command prints, or "error: " and why.
 */
#ifndef TESTS_NET_COMMAND_LINE_H
#define TESTS_NET_COMMAND_LINE_H 1

#include <stdbool.h>
#include <unistd.h>

#define COMMAND_MAX_WORDS 16

/* The last of a list has no name. */
struct command {
    const char *name;
    unsigned n_words;                       /* behind the name. */
    const char *(*function)(char *words[]); /* returns NULL, or what is wrong. */
    bool answers;                           /* it prints the answer. */
};

/* Does what is on standard input; false: it has ended. */
bool commands_read(const struct command *);

#endif /* tests/net/command-line.h */
