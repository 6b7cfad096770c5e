/* SPDX-License-Identifier: Apache-2.0
 *
 * A measurement: a registry of its own, castd, model agents, and groups by the thousand.
 */
#ifndef BENCH_CASTSCALE_RUN_H
#define BENCH_CASTSCALE_RUN_H 1

#include <stddef.h>
#include <stdint.h>

#include "bench/castscale/report.h"

#define RUN_STEPS_MAX 16

struct run_options {
    unsigned n_nodes, n_receivers, n_members;
    size_t n_steps;
    unsigned groups[RUN_STEPS_MAX]; /* ascending. */
    unsigned n_changes;             /* members that are removed and added at each step. */
    unsigned n_castctl;             /* likewise by castctl. */
    unsigned n_topology;            /* changes of the topology. */
    unsigned batch;                 /* groups that are added by one request. */
    unsigned seed;                  /* chooses which members. */
    unsigned patience_sec;
};

/* Measures and prints as it goes on.  NULL, or a malloc'd sentence: then the report has the steps that
 * were completed.  The caller ends the report with run_uninit(). */
char *run(const struct run_options *, struct report *, FILE *out);
void run_uninit(struct report *);

#endif /* bench/castscale/run.h */
