/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that take turns with their parent.
 *
 * A run is a few steps that every process takes when the parent says so.  Data
 * is in memory that all share.  The socket between a worker and the parent only
 * carries turns, so whatever was written before a turn is seen after it.  A
 * worker that dies, at any time, ends the run with its name and how it died.
 * Workers and what they started die with the parent.
 */
#ifndef BENCH_CASTBENCH_WORKER_H
#define BENCH_CASTBENCH_WORKER_H 1

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct worker {
    char name[80]; /* for messages: "receiver r1". */
    pid_t pid;
    int fd;
    bool busy;           /* was told to go and has not reported yet. */
    unsigned steps_left; /* 0: its end is no accident. */
};

/* Takes a worker's next step when told to; see worker_serve(). */
typedef bool worker_step(void *aux, unsigned step, char *error, size_t size);

/* Starts a process that takes 'n_steps' steps.  Returns 0 or an errno. */
int worker_start(struct worker *, unsigned n_steps, worker_step *, void *aux);

/* Lets a worker take its next step. */
void worker_go(struct worker *);

/* Waits until no worker is busy.  Calls 'progress' every 'tick_ms' or, if that
 * is less, 250 ms.  The wait fails when for 'timeout' seconds that value has not
 * changed and no worker has reported.  It also fails as soon as any worker fails
 * or dies, or a signal comes that ends the program (interrupt.h).  On failure
 * returns false with a sentence in 'error'. */
bool workers_await(struct worker *, size_t n, unsigned timeout, unsigned tick_ms,
                   unsigned long (*progress)(void *), void *aux, char *error, size_t size);

/* Kills a worker whose end is no accident, and waits for it.  One that does not run stays so. */
void worker_kill(struct worker *);

/* Kills all and waits for them. */
void workers_stop(struct worker *, size_t n);

#endif /* bench/castbench/worker.h */
