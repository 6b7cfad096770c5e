/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of a lab.  Each is in the journal before it runs anything.  It is
 * ended only if it is provably the same one.
 */
#ifndef TESTBED_CASTLAB_CHILD_H
#define TESTBED_CASTLAB_CHILD_H 1

#include <stdbool.h>

#include "testbed/labs/labs.h"

/* A process that has been forked and waits for the word to go. */
struct child {
    struct process_id id;
    int go_fd;
};

/* Forks a process that will run argv in a session of its own and append its standard output and
 * error to 'output'.  It waits for child_release().  It ends if child_abandon() is called or this
 * program dies first.  Functions return NULL or a malloc'd error. */
char *child_prepare(struct child *, char *const argv[], const char *output);
char *child_release(struct child *);
void child_abandon(struct child *);

/* Sends SIGTERM and after a while SIGKILL, or with 'at_once' only SIGKILL.  Waits until the process
 * is gone.  A process that is not there is no error. */
char *child_stop(struct process_id, bool at_once);

/* Runs a program to its end; an error if it does not end with status 0. */
char *child_run(char *const argv[]);

/* SIGINT, SIGTERM and SIGHUP from now on only set what interrupted() returns. */
void child_catch_signals(void);
bool child_interrupted(void);

#endif /* testbed/castlab/child.h */
