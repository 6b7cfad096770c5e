/* SPDX-License-Identifier: Apache-2.0
 *
 * The outcome of runs: a table for people, JSON and CSV for programs.
 */
#ifndef BENCH_CASTBENCH_REPORT_H
#define BENCH_CASTBENCH_REPORT_H 1

#include "bench/castbench/matrix.h"

/* Prints a line on a terminal before each of several runs. */
void table_begin(const struct plan *, unsigned i, const struct cell *);
/* Removes from the terminal what a run has left of its progress. */
void table_end(const struct run_options *);
/* Prints the line of run i, with each replica if there is a single run, and with those that are
 * wrong if there are several. */
void table_run(const struct plan *, unsigned i, const struct row *, const struct run_options *,
               const struct run_result *);
/* Prints medians, if there were repeats. */
void table_summary(const struct matrix *);

/* JSON, gathered while runs end.  If memory does not suffice, the program ends. */
struct json_report;

struct json_report *json_report_new(int argc, char *argv[]);
void json_report_run(struct json_report *, const struct row *, const struct run_options *,
                     const struct run_result *);
/* Writes the report and frees it.  Returns 0 or an errno.  A matrix without a plan is reported with
 * the reason. */
int json_report_write(struct json_report *, const struct matrix *, const char *path);

/* Writes a line for each run, RFC 4180.  Returns 0 or an errno. */
int csv_write(const struct matrix *, const char *path);

#endif /* bench/castbench/report.h */
