/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that several processes share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/castsim.h"

unsigned
jobs_run(unsigned n_jobs, void (*work)(unsigned job, unsigned n_jobs))
{
    unsigned n_failed = 0;

    for (unsigned job = 0; job < n_jobs; job++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0) {
            perror("fork");
            exit(1);
        }
        if (!pid) {
            work(job, n_jobs);
            exit(0);
        }
    }
    for (int status; wait(&status) > 0;) {
        n_failed += status != 0;
    }
    return n_failed;
}
