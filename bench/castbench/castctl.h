/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl, run as an operator runs it.  It is the program beside this one.
 */
#ifndef BENCH_CASTBENCH_CASTCTL_H
#define BENCH_CASTBENCH_CASTCTL_H 1

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct castctl {
    pid_t pid; /* 0: it does not run. */
    int fd;    /* of what it prints, errors too. */
    size_t len;
    char buf[16384]; /* printed, and not yet taken; a longer line is cut off. */
};

/* Puts the path of the program of that name that is beside this one into 'path'.  Returns 0 or an
 * errno. */
int program_beside(const char *name, char *path, size_t size);

/* Starts "castctl ARGV...", which ends with NULL.  It dies with this process. */
bool castctl_start(struct castctl *, const char *const argv[], char *error, size_t size);

/* Takes the next line that it has printed, without the newline.  Waits at most 'wait_ms' for it.
 * False: there is none. */
bool castctl_line(struct castctl *, int wait_ms, char *line, size_t size);

/* Has it ended?  '*status' is what waitpid() says.  All that it has printed can still be taken. */
bool castctl_ended(struct castctl *, int *status);

/* Runs "castctl ARGV..." to its end, which Ctrl-C does not hasten.  Returns its exit status, or -1.  If
 * that is not 0, 'error' is what it has said last. */
int castctl_run(const char *const argv[], char *error, size_t size);

/* Ends it if it runs, and forgets it. */
void castctl_stop(struct castctl *);

#endif /* bench/castbench/castctl.h */
