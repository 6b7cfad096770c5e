/* SPDX-License-Identifier: Apache-2.0
 *
 * What the source's agent says of the rate of its host's flows (docs/congestion.md): asked at its
 * control socket, which is a file of the machine that the agent runs on.
 */
#ifndef BENCH_CASTBENCH_AGENT_H
#define BENCH_CASTBENCH_AGENT_H 1

#include <stdbool.h>

#include "bench/castbench/run.h"

struct agent {
    const struct run_options *options;
    int fd;               /* -1: nobody can be asked. */
    struct json_t *nodes; /* what castctl node list says; NULL: nothing. */
    uint64_t n_cuts;      /* of all flows of the run, when it was asked last. */
};

/* Connects to the agent of the source.  If there is none, or it is on another machine, no question
 * is answered.  Asks once: cuts that were before do not count. */
void agent_open(struct agent *, const struct run_options *);
void agent_close(struct agent *);

/* Asks for the lowest rate of the run's flows, the cuts since it was asked last, and who caused the
 * newest.  False: there is no answer. */
bool agent_ask(struct agent *, struct rate_sample *);

#endif /* bench/castbench/agent.h */
