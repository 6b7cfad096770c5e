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
    /* Why some runs of the plan were not run, or why the last one failed; empty if all is well. */
    char error[700];
};

/* matrix_run() calls it. */
struct matrix_observer {
    void *aux;
    void (*begin)(void *aux, const struct plan *, unsigned i, const struct cell *);
    void (*end)(void *aux, const struct plan *, unsigned i, const struct row *,
                const struct run_options *, const struct run_result *);
};

/* False: out of memory. */
bool matrix_init(struct matrix *, const struct plan *);
void matrix_uninit(struct matrix *);

/* Says what is wrong with run i and, if the plan has several runs, which one that is. */
void matrix_sentence(const struct plan *, unsigned i, const struct row *, char *text, size_t size);

/* Runs the plan.  Ends after a run that fails, and sets the matrix's 'error'. */
void matrix_run(struct matrix *, const struct matrix_observer *);

/* The worst of all rows; a matrix with an error has failed. */
enum outcome matrix_outcome(const struct matrix *);

struct spread {
    double median, min, max; /* NaN if there is no value. */
};

/* The spread of those values that are not NaN.  Reorders them. */
struct spread spread_of(double values[], unsigned n);

/* What the repeats of a cell come to. */
struct summary {
    struct cell cell;
    unsigned n_runs;
    struct spread values[N_METRICS];
};

/* Sums up cell i of plan_n_cells(), from its runs that have not failed.  False: it has none. */
bool matrix_summary(const struct matrix *, unsigned i, struct summary *);

/* What a condition says of a cell's median. */
struct verdict {
    const struct fail_if *condition;
    struct cell cell;
    double value; /* the median; NaN if it is not known. */
    bool holds;
};

/* Judges a cell by condition i of the plan.  False: the condition is for another scheme, or
 * matrix_summary() of the cell is false. */
bool matrix_verdict(const struct matrix *, unsigned i, unsigned cell, struct verdict *);

#endif /* bench/castbench/matrix.h */
