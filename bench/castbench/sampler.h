/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of a run's progress at equal intervals: for its curve over time, and for --interval.
 */
#ifndef BENCH_CASTBENCH_SAMPLER_H
#define BENCH_CASTBENCH_SAMPLER_H 1

#include "bench/castbench/run.h"

/* Fills 'result->samples'. */
struct sampler {
    struct run_result *result;
    unsigned interval_ms;
    uint64_t next_ms; /* when the next one is due. */
    uint64_t bytes;   /* of all samples so far. */
};

void sampler_init(struct sampler *, struct run_result *, unsigned interval_ms);

/* Notes that 'total' bytes were written by 'ms' since the transfer began.  NULL: no sample yet.  The
 * caller fills in its rate. */
struct sample *sampler_add(struct sampler *, uint64_t ms, uint64_t total);

/* Adds the last sample, whether it is due or not.  NULL: nothing has come since the one before. */
struct sample *sampler_end(struct sampler *, uint64_t ms, uint64_t total);

#endif /* bench/castbench/sampler.h */
