/* SPDX-License-Identifier: Apache-2.0
 *
 * What is printed and written of a run.
 */
#ifndef BENCH_CASTPROBE_REPORT_H
#define BENCH_CASTPROBE_REPORT_H 1

#include <jansson.h>
#include <stdio.h>

struct probe;

enum verdict { VERDICT_AS_EXPECTED, VERDICT_CANNOT_TELL, VERDICT_DIFFERS };

struct result {
    unsigned id; /* P1 is 1. */
    const char *expected;
    char *observed; /* malloc'd. */
    enum verdict verdict;
};

/* 'hello' is what the target says of the device. */
void report_head(FILE *, json_t *hello);
void report_row(FILE *, const struct result *);
/* Returns the most severe verdict. */
enum verdict report_end(FILE *, const struct result *, unsigned n);

/* '-' is standard output.  Those that cannot do it end the program. */
FILE *report_open(const char *path);
void report_json(FILE *, const char *path, json_t *hello, const struct probe *,
                 const struct result *, unsigned n);
/* A file that report_json() has written; and what was observed there.  A check that it has not is
 * expected as "nothing", which nobody observes. */
json_t *report_load(const char *path);
const char *report_expected(json_t *, unsigned id);

#endif /* bench/castprobe/report.h */
