/* SPDX-License-Identifier: Apache-2.0
 *
 * castsim: what its files share (docs/simulation.md).
 *
 *   castsim.c   the command line
 *   campaign.c  many seeds, in processes of their own
 *   compare.c   policies for NAKs above the minimum against an ideal aggregator
 */
#ifndef TESTS_SIM_CASTSIM_H
#define TESTS_SIM_CASTSIM_H 1

#include "tests/model/scenario.h"

struct campaign {
    uint64_t first, last; /* seeds. */
    unsigned n_jobs;
    bool stop;           /* at the first seed that fails. */
    bool quiet;          /* about seeds that fail. */
    const char *options; /* that a replay needs besides. */
    /* Results. */
    uint64_t n_run, n_failed;
    uint64_t failed; /* the lowest seed that did. */
    char why[512];   /* it did. */
    uint64_t n_seen[N_LAB_EVENTS];
};

/* Runs this seed here; does not return if it fails. */
void campaign_run_seed(uint64_t seed, bool trace, const char *options);
void campaign_run(struct campaign *);

/* Prints the table. */
void compare_run(void);

#endif /* tests/sim/castsim.h */
