/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that castscale starts, and what the kernel says of them.
 *
 * They end with castscale, however that ends.
 */
#ifndef BENCH_CASTSCALE_PROCESS_H
#define BENCH_CASTSCALE_PROCESS_H 1

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* SIGINT, SIGTERM and SIGHUP from now on only set what process_interrupted() returns. */
void process_catch_signals(void);
bool process_interrupted(void);
/* Arranges for poll_block() to wake up for one. */
void process_interrupted_wait(void);

struct process {
    const char *name; /* as in sentences. */
    char *output;     /* the file that has what it says. */
    pid_t pid;        /* 0: it does not run. */
};

/* Starts a program; 'argv' ends with NULL.  What it says goes to a file NAME.log in 'folder'.  NULL,
 * or a malloc'd sentence. */
char *
process_start(struct process *, const char *name, const char *folder, const char *const argv[]);
/* Likewise a function in a process of its own. */
char *process_fork(struct process *, const char *name, const char *folder,
                   void (*run)(const void *aux), const void *aux);
/* Runs a program to its end; a sentence if it does not end with status 0. */
char *process_run(const char *name, const char *folder, const char *const argv[]);
/* NULL if it runs, otherwise a malloc'd sentence with the last line that it has said. */
char *process_check(struct process *);
/* Sends SIGTERM and waits for its end; after 'patience_msec' SIGKILL, and false. */
bool process_stop(struct process *, int patience_msec);
void process_uninit(struct process *);

struct process_usage {
    uint64_t cpu_msec; /* of the CPU, its own and the kernel's on its behalf. */
    uint64_t rss_kib;  /* its memory now. */
    uint64_t peak_kib; /* and the most that it has had. */
};

/* All 0 if it does not run. */
struct process_usage process_usage(const struct process *);

#endif /* bench/castscale/process.h */
