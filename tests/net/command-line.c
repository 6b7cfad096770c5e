/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program's commands on standard input.
 */
#include "tests/net/command-line.h"

#include <stdio.h>
#include <string.h>

static void
do_command(const struct command *commands, char *line)
{
    char *words[COMMAND_MAX_WORDS], *save = NULL;
    const char *why = "no such command, or another number of words";
    unsigned n = 0;

    for (char *w = strtok_r(line, " \n", &save); w && n < COMMAND_MAX_WORDS;
         w = strtok_r(NULL, " \n", &save)) {
        words[n++] = w;
    }
    for (const struct command *c = commands; n && c->name; c++) {
        if (!strcmp(c->name, words[0]) && c->n_words == n - 1) {
            why = c->function(&words[1]);
            if (!why && !c->answers) {
                puts("ok");
            }
        }
    }
    if (why) {
        printf("error: %s\n", why);
    }
    fflush(stdout);
}

bool
commands_read(const struct command *commands)
{
    static char buffer[1 << 16];
    static size_t n;
    ssize_t got = read(STDIN_FILENO, buffer + n, sizeof buffer - n);
    char *line = buffer, *end;

    if (got <= 0) {
        return false;
    }
    n += (size_t) got;
    while ((end = memchr(line, '\n', n)) != NULL) {
        *end++ = '\0';
        n -= (size_t) (end - line);
        do_command(commands, line);
        line = end;
    }
    memmove(buffer, line, n);
    return n < sizeof buffer;
}
