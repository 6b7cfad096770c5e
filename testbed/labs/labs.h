/* SPDX-License-Identifier: Apache-2.0
 *
 * The labs of this machine: their folders, <rundir>/lab/<name>, and processes
 * as their journals name them.
 */
#ifndef TESTBED_LABS_LABS_H
#define TESTBED_LABS_LABS_H 1

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "svec.h"
#include "testbed/labs/journal.h"

/* A process as the kernel knows it: the pid alone may have been reused. */
struct process_id {
    pid_t pid;
    unsigned long long start; /* field 22 of /proc/PID/stat. */
};

/* The process that has this pid now; false: there is none. */
bool process_identify(pid_t, struct process_id *);
/* Does it still run?  A zombie does not. */
bool process_alive(struct process_id);

/* A name or a path, by value.  One that is cut off is too long for every system call. */
struct lab_text {
    char text[PATH_MAX + 16];
};
struct lab_text lab_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct lab_text lab_folder(const char *name);
struct lab_text lab_file(const char *name, const char *file);
/* Names of all labs, sorted. */
void lab_list(struct svec *names);
bool lab_exists(const char *name);
char *lab_read(const char *name, struct journal_list *);
struct process_id lab_process_id(const struct journal_entry *);
/* The newest process of the lab with this name; NULL: there is none. */
const struct journal_entry *lab_find_process(const struct journal_list *, const char *name);

#endif /* testbed/labs/labs.h */
