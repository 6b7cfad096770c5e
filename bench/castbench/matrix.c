/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of runs (see matrix.h).  Schemes take turns within a repeat, and the repeats of a cell
 * are far apart, so that whatever else the machine does affects all schemes alike.
 */
#include "bench/castbench/matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/clock.h"
#include "bench/castbench/interrupt.h"

bool
matrix_init(struct matrix *m, const struct plan *plan)
{
    *m = (struct matrix){.plan = plan, .since = now_ns()};
    m->rows = calloc(plan_n_runs(plan), sizeof *m->rows);
    return m->rows != NULL;
}

void
matrix_uninit(struct matrix *m)
{
    free(m->rows);
}

/* Is every run possible?  An impossible one is reported before the first one has taken its time. */
static bool
check_all(struct matrix *m)
{
    for (unsigned i = 0; i < plan_n_cells(m->plan); i++) {
        struct cell cell = plan_cell(m->plan, i);
        struct run_options o = plan_run_options(m->plan, &cell);

        if (!run_check(&o, m->error, sizeof m->error)) {
            return false;
        }
    }
    m->error[0] = '\0';
    return true;
}

static void
describe(struct row *row, const struct run_result *r)
{
    const char *error = "";

    if (r->outcome == OUTCOME_PARTIAL) {
        error = "replicas differ from the source, only of receivers that are lost";
    } else if (r->outcome == OUTCOME_FAILED) {
        error = r->error[0] ? r->error : "replicas differ from the source";
    }
    snprintf(row->error, sizeof row->error, "%s", error);
}

void
matrix_sentence(const struct plan *plan, unsigned i, const struct row *row, char *text, size_t size)
{
    unsigned n = plan_n_runs(plan);

    if (n == 1) {
        snprintf(text, size, "%s", row->error);
    } else {
        snprintf(text, size, "run %u of %u, scheme %s to %u, size %u: %s", i + 1, n,
                 scheme_name(row->cell.scheme), row->cell.n_replicas, row->cell.size, row->error);
    }
}

void
matrix_run(struct matrix *m, const struct matrix_observer *observer)
{
    struct run_result *result = NULL;
    unsigned n = plan_n_runs(m->plan);

    if (!check_all(m)) {
        return;
    }
    while (m->n_rows < n && !m->error[0]) {
        struct row *row = &m->rows[m->n_rows];

        if (interrupt_signal()) {
            snprintf(m->error, sizeof m->error, "interrupted (%s)", strsignal(interrupt_signal()));
            break;
        }
        row->cell = plan_cell(m->plan, m->n_rows);
        row->started_ms = (unsigned long) ((now_ns() - m->since) / NS_PER_MS);
        struct run_options o = plan_run_options(m->plan, &row->cell);
        result = run_result_new();
        if (!result) {
            snprintf(m->error, sizeof m->error, "out of memory");
            break;
        }
        observer->begin(observer->aux, m->plan, m->n_rows, &row->cell);
        bench_run(&o, result);
        row->outcome = result->outcome;
        row->count = result->count;
        metrics_of(&o, result, row->values);
        describe(row, result);
        observer->end(observer->aux, m->plan, m->n_rows, row, &o, result);
        free(result);
        m->n_rows++;
        if (row->outcome == OUTCOME_FAILED) {
            matrix_sentence(m->plan, m->n_rows - 1, row, m->error, sizeof m->error);
        }
    }
}

enum outcome
matrix_outcome(const struct matrix *m)
{
    enum outcome worst = m->error[0] ? OUTCOME_FAILED : OUTCOME_OK;

    for (unsigned i = 0; i < m->n_rows; i++) {
        worst = m->rows[i].outcome > worst ? m->rows[i].outcome : worst;
    }
    return worst;
}

static int
compare(const void *a_, const void *b_)
{
    double a = *(const double *) a_, b = *(const double *) b_;

    return (a > b) - (a < b);
}

struct spread
spread_of(double values[], unsigned n)
{
    unsigned known = 0;

    for (unsigned i = 0; i < n; i++) {
        if (!isnan(values[i])) {
            values[known++] = values[i];
        }
    }
    if (!known) {
        return (struct spread){NAN, NAN, NAN};
    }
    qsort(values, known, sizeof values[0], compare);
    return (struct spread){
        .median = (values[(known - 1) / 2] + values[known / 2]) / 2,
        .min = values[0],
        .max = values[known - 1],
    };
}

bool
matrix_summary(const struct matrix *m, unsigned i, struct summary *s)
{
    unsigned n_cells = plan_n_cells(m->plan);
    double *values = calloc(m->plan->repeat, sizeof *values);

    *s = (struct summary){.cell = plan_cell(m->plan, i)};
    for (unsigned metric = 0; values && metric < N_METRICS; metric++) {
        s->n_runs = 0;
        for (unsigned row = i; row < m->n_rows; row += n_cells) {
            if (m->rows[row].outcome != OUTCOME_FAILED) {
                values[s->n_runs++] = m->rows[row].values[metric];
            }
        }
        s->values[metric] = spread_of(values, s->n_runs);
    }
    free(values);
    return s->n_runs;
}

bool
matrix_verdict(const struct matrix *m, unsigned i, unsigned cell, struct verdict *v)
{
    const struct fail_if *f = &m->plan->fail_if[i];
    struct summary s;

    if (!matrix_summary(m, cell, &s) || (f->has_scheme && f->scheme != s.cell.scheme)) {
        return false;
    }
    double value = s.values[f->metric].median;
    *v = (struct verdict){
        .condition = f, .cell = s.cell, .value = value, .holds = fail_if_holds(f, value)};
    return true;
}
