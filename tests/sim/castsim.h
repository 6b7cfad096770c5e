/* SPDX-License-Identifier: Apache-2.0
 *
 * castsim: what its files share (docs/simulation.md).
 *
 *   castsim.c     the command line
 *   campaign.c    many seeds, in processes of their own
 *   compare.c     policies for NAKs above the minimum against an ideal aggregator
 *   congestion.c  what control of congestion reaches, in courses (course.h)
 *   paths.c       what is found broken, of the draft's figure
 *   jobs.c        work that several processes share
 */
#ifndef TESTS_SIM_CASTSIM_H
#define TESTS_SIM_CASTSIM_H 1

#include "tests/model/cm-lab.h"
#include "tests/model/path-lab.h"
#include "tests/model/scenario.h"

/* What a group may do with NAKs above the minimum, and with copies. */
struct sim_policy {
    const char *name;
    enum reverse_nak nak;
    bool filter;
};
#define N_SIM_POLICIES 6
extern const struct sim_policy sim_policies[N_SIM_POLICIES];

struct campaign {
    uint64_t first, last; /* seeds. */
    unsigned n_jobs;
    bool stop;                       /* at the first seed that fails. */
    bool quiet;                      /* about seeds that fail. */
    const char *options;             /* that a replay needs besides. */
    const struct sim_policy *policy; /* of all groups; NULL: as the seed says. */
    /* Results. */
    uint64_t n_run, n_failed;
    uint64_t failed; /* the lowest seed that did. */
    char why[512];   /* it did. */
    uint64_t n_seen[N_LAB_EVENTS];
    uint64_t n_cm_seen[N_CM_EVENTS];
};

/* Runs the first seed here; does not return if it fails. */
void campaign_run_seed(const struct campaign *, uint64_t seed, bool trace);
void campaign_run(struct campaign *);

/* Calls 'work' in so many processes; returns how many of them failed. */
unsigned jobs_run(unsigned n_jobs, void (*work)(unsigned job, unsigned n_jobs));

struct compare {
    const struct sim_policy *only; /* NULL: all. */
    unsigned n_runs;               /* of a cell. */
    unsigned n_jobs;
    bool lose_down, lose_up;
};
/* Prints the tables.  0, or 1 if a cell does not reach what it should. */
int compare_run(const struct compare *);

/* Prints what control of congestion reaches.  0, or 1 if that is not enough. */
int congestion_run(unsigned n_jobs);

/* Prints for how long queue pairs stand still on links that lose every fifth packet.  Is it short enough? */
bool paths_lossy(unsigned n_jobs);
/* Prints what probes find of each fault.  0, or 1 if that is not all, or more than there is. */
int paths_run(unsigned n_jobs);

#endif /* tests/sim/castsim.h */
