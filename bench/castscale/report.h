/* SPDX-License-Identifier: Apache-2.0
 *
 * What castscale has measured, and how it is printed and written.
 */
#ifndef BENCH_CASTSCALE_REPORT_H
#define BENCH_CASTSCALE_REPORT_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/castscale/fabric.h"
#include "bench/castscale/process.h"

/* What is measured several times, in milliseconds. */
#define MEASURES(MEASURE)                                               \
    MEASURE(ANSWER, "add_answered", "member added: castd has answered") \
    MEASURE(ACTIVE, "add_active", "member added: it is active")         \
    MEASURE(AGENTS, "add_applied", "member added: all agents agree")    \
    MEASURE(REMOVE, "remove", "member removed: it is gone")             \
    MEASURE(CASTCTL, "castctl_add", "castctl --wait=agents member add") \
    MEASURE(TOPOLOGY, "topology", "topology changed: all agents agree")

enum measure {
#define MEASURE(NAME, KEY, TEXT) MEASURE_##NAME,
    MEASURES(MEASURE)
#undef MEASURE
        N_MEASURES,
};

struct samples {
    size_t n, allocated;
    double *msec; /* in the order in which they were taken. */
};

void samples_add(struct samples *, double msec);

/* Processes, in the order in which they are printed. */
enum part { PART_CASTD, PART_REGISTRY, PART_AGENTS, N_PARTS };

/* Of one number of groups. */
struct step {
    unsigned n_groups;
    double fill_sec;
    struct samples samples[N_MEASURES];
    uint64_t n_changes;                /* members that were added and removed by requests. */
    uint64_t n_computed;               /* groups that castd has computed for these. */
    uint64_t cpu_msec[N_PARTS];        /* likewise. */
    struct process_usage use[N_PARTS]; /* at the end. */
    bool restarted;
    double stop_msec, start_sec; /* of castd. */
};

void step_uninit(struct step *);

struct report {
    struct fabric fabric;
    double agents_sec; /* from nothing until all agents have applied the topology. */
    size_t n_steps;
    struct step *steps;
};

void report_print_head(const struct report *, FILE *);
void report_print_step(const struct report *, const struct step *, FILE *);
void report_print_start(const struct step *, FILE *);
/* How the last step compares with the first. */
void report_print_end(const struct report *, FILE *);
void report_write_json(const struct report *, FILE *);
void report_write_csv(const struct report *, FILE *);

#endif /* bench/castscale/report.h */
