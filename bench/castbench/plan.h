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

/* What the command line says; strings are its. */
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
    const char *counted[MAX_COUNTED]; /* base.counted has its address. */
    unsigned n_labels;
    struct label {
        const char *key; /* without an end: '=' follows. */
        size_t key_len;
        const char *value;
    } labels[MAX_LABELS];
    unsigned n_fail_if;
    struct fail_if fail_if[MAX_FAIL_IF];
    const char *json; /* files, "-" for standard output; or NULL. */
    const char *csv;
};

/* One run of the matrix. */
struct cell {
    enum scheme scheme;
    unsigned n_replicas;
    uint32_t size;
    unsigned repeat; /* from 0. */
};

bool plan_has_scheme(const struct plan *, enum scheme);

/* What of it cannot be, as far as can be seen without looking at anything: false with a sentence. */
bool plan_check(const struct plan *, char *error, size_t size);

/* Runs, and what differs among them apart from repeats: the first so many. */
unsigned plan_n_runs(const struct plan *);
unsigned plan_n_cells(const struct plan *);
/* Run i: for each repeat, size and number of replicas all schemes, one after the other. */
struct cell plan_cell(const struct plan *, unsigned i);
struct run_options plan_run_options(const struct plan *, const struct cell *);

/* As users write them. */
const char *operation_name(enum operation);
const char *pattern_name(enum pattern);

#endif /* bench/castbench/plan.h */
