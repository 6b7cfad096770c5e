/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix of runs: all combinations of some schemes, sizes and numbers of replicas, repeated.
 */
#ifndef BENCH_CASTBENCH_PLAN_H
#define BENCH_CASTBENCH_PLAN_H 1

#include "bench/castbench/fail-if.h"
#include "bench/castbench/run.h"

#define MAX_SIZES   64
#define MAX_LABELS  64
#define MAX_FAIL_IF 32

/* What the command line says.  Strings point into it. */
struct plan {
    struct run_options base; /* what all runs have in common. */
    unsigned n_groups;
    unsigned quorum; /* 0: the majority. */
    unsigned n_schemes;
    enum scheme schemes[N_SCHEMES];
    unsigned n_sizes;
    uint32_t sizes[MAX_SIZES];
    unsigned n_replica_counts;
    unsigned replica_counts[MAX_RECEIVERS];
    unsigned repeat;
    const char *counted[MAX_COUNTED]; /* base.counted points to it. */
    struct event events[MAX_EVENTS];  /* base.events points to it. */
    unsigned n_labels;
    struct label {
        const char *key; /* '=' ends it, not NUL. */
        size_t key_len;
        const char *value;
    } labels[MAX_LABELS];
    unsigned n_fail_if;
    struct fail_if fail_if[MAX_FAIL_IF];
    const char *json; /* a file; "-": standard output; NULL: none. */
    const char *csv;  /* a file; "-": standard output; NULL: none. */
};

/* One run of the matrix. */
struct cell {
    enum scheme scheme;
    unsigned n_replicas;
    uint32_t size;
    unsigned repeat; /* from 0. */
};

bool plan_has_scheme(const struct plan *, enum scheme);

/* Is the plan possible, as far as it shows by itself?  False: 'error' says why not. */
bool plan_check(const struct plan *, char *error, size_t size);

/* The number of runs. */
unsigned plan_n_runs(const struct plan *);
/* The number of runs per repeat: the first so many runs differ in more than their repeat. */
unsigned plan_n_cells(const struct plan *);
/* Run i.  For each repeat, size and number of replicas all schemes come one after the other. */
struct cell plan_cell(const struct plan *, unsigned i);
struct run_options plan_run_options(const struct plan *, const struct cell *);

/* As users write them. */
const char *operation_name(enum operation);
const char *pattern_name(enum pattern);

#endif /* bench/castbench/plan.h */
