/* SPDX-License-Identifier: Apache-2.0
 *
 * The outcome of runs: a table for people, JSON and CSV for programs.
 */
#ifndef BENCH_CASTBENCH_REPORT_H
#define BENCH_CASTBENCH_REPORT_H 1

#include "bench/castbench/matrix.h"

/* A line on a terminal before each of several runs. */
void table_begin(const struct plan *, unsigned i, const struct cell *);
/* Removes what a run has left there of its progress. */
void table_end(const struct run_options *);
/* Run i: its line; of a single run also each replica, of several those that are wrong. */
void table_run(const struct plan *, unsigned i, const struct row *, const struct run_options *,
               const struct run_result *);
/* Medians, if there were repeats. */
void table_summary(const struct matrix *);

/* JSON is gathered while runs end.  What does not fit into memory ends the program. */
struct json_report;

struct json_report *json_report_new(int argc, char *argv[]);
void json_report_run(struct json_report *, const struct row *, const struct run_options *,
                     const struct run_result *);
/* Writes it and frees the report: 0 or an errno.  Of a matrix without a plan there is why. */
int json_report_write(struct json_report *, const struct matrix *, const char *path);

/* A line for each run, RFC 4180.  0 or an errno. */
int csv_write(const struct matrix *, const char *path);

#endif /* bench/castbench/report.h */
