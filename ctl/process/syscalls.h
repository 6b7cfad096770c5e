/* SPDX-License-Identifier: Apache-2.0
 *
 * Which system calls a daemon may make: a seccomp filter, by libseccomp.
 *
 * The kernel ends a process that makes another one, by SIGSYS.  docs/security.md has the lists of syscalls.c.
 */
#ifndef CTL_PROCESS_SYSCALLS_H
#define CTL_PROCESS_SYSCALLS_H 1

#include <stddef.h>

enum syscalls {
    SYSCALLS_CONTROLLER,   /* castd. */
    SYSCALLS_FORWARDER,    /* swedge, srcagent. */
    SYSCALLS_OPENER,       /* the process that opens a forwarder's ports. */
    SYSCALLS_OPENER_NETNS, /* the same, if it enters another network namespace. */
    SYSCALLS_RUNNER,       /* runs programs, whose calls are not known: all calls but some. */
};

/* Filters the calls of all threads of the process, of those that it starts later, and of programs that it executes;
 * for good.  0 or an errno; then calls are as free as before. */
int syscalls_restrict(enum syscalls);

/* The name of each system call in the lists, for tests; NULL behind the last one. */
const char *syscalls_name(size_t i);

#endif /* ctl/process/syscalls.h */
