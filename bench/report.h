/* SPDX-License-Identifier: Apache-2.0
 *
 * The outcome of a run: a table for people, JSON for programs.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H 1

#include "bench/write.h"

void report_table(const struct write_options *, const struct write_result *, enum write_outcome);

/* Can JSON be written to 'path'?  0 or an errno; makes no file. */
int report_json_check(const char *path);
/* Writes JSON to file 'path', "-" for standard output.  0 or an errno. */
int report_json(const struct write_options *, const struct write_result *, enum write_outcome,
                const char *path);

#endif /* bench/report.h */
