/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of a plan, one after the other, and what they come to together.
 */
#ifndef BENCH_CASTBENCH_MATRIX_H
#define BENCH_CASTBENCH_MATRIX_H 1

#include "bench/castbench/plan.h"

/* What is kept of a run. */
struct row {
    struct cell cell;
    unsigned long started_ms; /* since matrix_init(). */
    enum outcome outcome;
    uint64_t count; /* blocks. */
    double values[N_METRICS];
    char error[600]; /* empty: the outcome is OUTCOME_OK. */
};

struct matrix {
    const struct plan *plan; /* NULL: the command line is wrong. */
    uint64_t since;          /* nanoseconds of CLOCK_MONOTONIC. */
    unsigned n_rows;         /* runs that are over. */
    struct row *rows;
    /* Why not all runs of the plan were run, or the last one failed; empty if neither is so. */
    char error[700];
};

/* Told by matrix_run(). */
struct matrix_observer {
    void *aux;
    void (*begin)(void *aux, const struct plan *, unsigned i, const struct cell *);
    void (*end)(void *aux, const struct plan *, unsigned i, const struct row *,
                const struct run_options *, const struct run_result *);
};

/* False: out of memory. */
bool matrix_init(struct matrix *, const struct plan *);
void matrix_uninit(struct matrix *);

/* What is wrong with run i, and if there are several of them, which that is. */
void matrix_sentence(const struct plan *, unsigned i, const struct row *, char *text, size_t size);

/* Ends after a run that fails, with 'error'. */
void matrix_run(struct matrix *, const struct matrix_observer *);

/* The worst of all rows; a matrix with an error has failed. */
enum outcome matrix_outcome(const struct matrix *);

struct spread {
    double median, min, max; /* NaN if there is no value. */
};

/* Of those that are not NaN; reorders them. */
struct spread spread_of(double values[], unsigned n);

/* What the repeats of a cell come to. */
struct summary {
    struct cell cell;
    unsigned n_runs;
    struct spread values[N_METRICS];
};

/* Cell i, of plan_n_cells(), from the runs that have not failed.  False: there is none. */
bool matrix_summary(const struct matrix *, unsigned i, struct summary *);

/* A condition, and a cell's median. */
struct verdict {
    const struct fail_if *condition;
    struct cell cell;
    double value; /* NaN if it is not known. */
    bool holds;
};

/* Condition i of the plan for a cell.  False: it is not for that one, or there was no run. */
bool matrix_verdict(const struct matrix *, unsigned i, unsigned cell, struct verdict *);

#endif /* bench/castbench/matrix.h */
