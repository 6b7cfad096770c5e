/* SPDX-License-Identifier: Apache-2.0
 *
 * Queue pairs over a fabric in which things break, in virtual time: the draft's fabric (clos.h) with
 * probes, hosts whose policy is failover or spread, and endpoints as rxe has them (rc-endpoint.h).
 *
 *   path-lab.c        a run, and the queue pairs
 *   path-lab-fault.c  what breaks, what operators want, and probes that are forged
 *   path-lab-check.c  what must hold
 *
 * Everything follows from the seed.  There are runs in which only breaks what probes can see, runs with
 * nothing but planned moves, and runs with all that and links that lose, congestion and agents that are
 * started again.
 */
#ifndef TESTS_MODEL_PATH_LAB_H
#define TESTS_MODEL_PATH_LAB_H 1

#include <stdbool.h>
#include <stdint.h>

#include "tests/model/lab-event.h"

/* fail() is called with what is wrong and the virtual time, and does not return.  What happened is
 * added to 'n_seen'. */
void path_lab_run(uint64_t seed, bool trace, uint64_t n_seen[N_LAB_EVENTS],
                  void (*fail)(const char *text, uint64_t now));

/* A run in which a link that busy queue pairs are on begins to lose every fifth packet. */
struct path_lab_lossy {
    bool one_way;      /* in one direction only. */
    uint64_t interval; /* of probes; all in microseconds. */
    uint64_t longest;  /* time in which a queue pair completed nothing. */
    uint64_t left;     /* until one has left the link; UINT64_MAX: none has. */
};
struct path_lab_lossy
path_lab_run_lossy(uint64_t seed, bool trace, void (*fail)(const char *text, uint64_t now));

#endif /* tests/model/path-lab.h */
