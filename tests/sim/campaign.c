/* SPDX-License-Identifier: Apache-2.0
 *
 * Many seeds: each is a few labs of groups, one of connections and one of paths, run in one of several processes,
 * so that a crash is a failure of its seed and no more.
 *
 * A process that has met a failure ends, and another goes on with the next seed.  What
 * they have in common is in shared memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/castsim.h"

#define MAX_JOBS       64
#define GROUPS_OF_SEED 3 /* one after the other. */

struct job {
    uint64_t seed; /* that it is at. */
    char why[512]; /* the seed failed. */
};

static struct shared {
    uint64_t next; /* seed that is to be run. */
    uint64_t n_run;
    uint64_t n_seen[N_LAB_EVENTS];
    uint64_t n_cm_seen[N_CM_EVENTS];
    struct job jobs[MAX_JOBS];
} * shared;
static pid_t pids[MAX_JOBS];
static struct job *self; /* of this process; NULL: the first one. */
static struct {
    uint64_t seed;
    const char *options;
} running;

static void
print_failure(uint64_t seed, const char *why, const char *options)
{
    printf("seed %" PRIu64 ": %s\n  replay: castsim%s --seed %" PRIu64 " --trace\n", seed, why,
           options, seed);
    fflush(stdout);
}

static void
seed_failed(const char *why)
{
    if (self) {
        snprintf(self->why, sizeof self->why, "%s", why);
        _exit(1);
    }
    print_failure(running.seed, why, running.options);
    fflush(NULL);
    _exit(1);
}

static void
group_failed(const struct lab *lab, const char *condition, const char *text)
{
    char why[sizeof self->why];

    snprintf(why, sizeof why, "%s (%s) at virtual time %" PRIu64 " us", text, condition,
             lab->fabric.now);
    seed_failed(why);
}

static void
connections_failed(const char *text, uint64_t now)
{
    char why[sizeof self->why];

    snprintf(why, sizeof why, "connections: %s at virtual time %" PRIu64 " us", text, now);
    seed_failed(why);
}

/* Most groups are small, since much of what goes wrong needs few to go wrong.  Where time passes
 * until somebody is lost, a large one takes long. */
static unsigned
choose_n_receivers(struct fabric *chance, enum scenario_kind kind)
{
    unsigned dice = fabric_random(chance, 1000);
    unsigned n = 1 + fabric_random(chance, dice < 650 ? 8 : dice < 950 ? 24 : 75);

    if (dice >= 990 && kind < SCENARIO_LOSING) {
        n = 100 + fabric_random(chance, LAB_MAX_RECEIVERS - 100 + 1);
    }
    return n + (kind == SCENARIO_DYING ? 5 : 0);
}

/* What happens seldom in a run of its kind gets more runs.  One that is congested is in each seed,
 * and one with planes, whatever the others are. */
static enum scenario_kind
choose_kind(struct fabric *chance)
{
    static const unsigned weights[N_SCENARIO_KINDS] = {
        [SCENARIO_EXACT] = 1,    [SCENARIO_DISORDER] = 1,
        [SCENARIO_LOSSY] = 1,    [SCENARIO_SPOILT] = 1,
        [SCENARIO_RNR] = 2,      [SCENARIO_FORGED] = 3,
        [SCENARIO_FAILING] = 28, [SCENARIO_SHRINKING] = 8,
        [SCENARIO_RESTART] = 4,  [SCENARIO_EPOCH] = 5,
        [SCENARIO_MIXED] = 5,    [SCENARIO_LOSING] = 11,
        [SCENARIO_DYING] = 8,    [SCENARIO_LOSING_RESTART] = 6,
        [SCENARIO_JOINING] = 12, [SCENARIO_SLOW] = 12,
    };
    unsigned total = 0;

    for (unsigned i = 0; i < N_SCENARIO_KINDS; i++) {
        total += weights[i];
    }
    unsigned kind = 0;
    for (unsigned dice = fabric_random(chance, total); dice >= weights[kind]; kind++) {
        dice -= weights[kind];
    }
    return (enum scenario_kind) kind;
}

static void
run_group(struct fabric *chance, enum scenario_kind kind, const struct sim_policy *policy,
          bool trace)
{
    unsigned n = choose_n_receivers(chance, kind);
    char *topology = kind == SCENARIO_PATHS ? scenario_path_topology(chance)
                     : kind == SCENARIO_PLANES
                         ? scenario_plane_topology(chance, n)
                         : scenario_topology(chance, n, kind == SCENARIO_DYING);

    if (kind == SCENARIO_CONGESTED) {
        topology = scenario_add_hosts(chance, topology);
    }

    if (trace) {
        fprintf(stderr, "%s, %u receivers: %s\n", scenario_name(kind), n, topology);
    }
    struct lab *lab = scenario_create(topology, kind, chance->random, trace, group_failed);
    if (policy) {
        lab->nak = policy->nak;
        lab->filter = policy->filter;
    }
    lab_run(lab);
    for (unsigned i = 0; shared && i < N_LAB_EVENTS; i++) {
        __atomic_fetch_add(&shared->n_seen[i], lab->n_seen[i], __ATOMIC_RELAXED);
    }
    lab_destroy(lab);
    free(topology);
}

static void
run_connections(struct fabric *chance, bool trace)
{
    uint64_t n_seen[N_CM_EVENTS] = {0};

    cm_lab_run(chance->random, trace, n_seen, connections_failed);
    for (unsigned i = 0; shared && i < N_CM_EVENTS; i++) {
        __atomic_fetch_add(&shared->n_cm_seen[i], n_seen[i], __ATOMIC_RELAXED);
    }
}

static void
paths_failed(const char *text, uint64_t now)
{
    char why[sizeof self->why];

    snprintf(why, sizeof why, "paths: %s at virtual time %" PRIu64 " us", text, now);
    seed_failed(why);
}

static void
run_paths(struct fabric *chance, bool trace)
{
    uint64_t n_seen[N_LAB_EVENTS] = {0};

    path_lab_run(chance->random, trace, n_seen, paths_failed);
    for (unsigned i = 0; shared && i < N_LAB_EVENTS; i++) {
        __atomic_fetch_add(&shared->n_seen[i], n_seen[i], __ATOMIC_RELAXED);
    }
}

void
campaign_run_seed(const struct campaign *c, uint64_t seed, bool trace)
{
    struct fabric chance = {.random = seed};

    running.seed = seed;
    running.options = c->options;
    for (unsigned i = 0; i < GROUPS_OF_SEED; i++) {
        run_group(&chance, choose_kind(&chance), c->policy, trace);
    }
    run_connections(&chance, trace);
    run_group(&chance, SCENARIO_CONGESTED, c->policy, trace);
    run_group(&chance, SCENARIO_PATHS, c->policy, trace);
    run_group(&chance, SCENARIO_PLANES, c->policy, trace);
    run_paths(&chance, trace);
}

static void
work(struct campaign *c)
{
    for (;;) {
        self->seed = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
        if (self->seed > c->last) {
            exit(0);
        }
        campaign_run_seed(c, self->seed, false);
        __atomic_fetch_add(&shared->n_run, 1, __ATOMIC_RELAXED);
    }
}

static void
start_job(struct campaign *c, unsigned i)
{
    fflush(NULL);
    shared->jobs[i].why[0] = '\0';
    pids[i] = fork();
    if (pids[i] < 0) {
        perror("fork");
        exit(1);
    }
    if (!pids[i]) {
        self = &shared->jobs[i];
        work(c);
    }
}

static void
note_failure(struct campaign *c, struct job *job, int status)
{
    if (!job->why[0]) {
        snprintf(job->why, sizeof job->why, "%s %d",
                 WIFSIGNALED(status) ? "killed by signal" : "ended with status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (!c->n_failed++ || job->seed < c->failed) {
        c->failed = job->seed;
        snprintf(c->why, sizeof c->why, "%s", job->why);
    }
    if (!c->quiet) {
        print_failure(job->seed, job->why, c->options);
    }
    if (c->stop) {
        __atomic_store_n(&shared->next, c->last + 1, __ATOMIC_RELAXED);
    }
}

/* Waits for one of the jobs to end; starts it again if there may be more to do.  False: it was the
 * last. */
static bool
wait_for_job(struct campaign *c, unsigned *n_running)
{
    int status;
    pid_t pid = wait(&status);

    if (pid < 0) {
        perror("wait");
        exit(1);
    }

    for (unsigned i = 0; i < c->n_jobs; i++) {
        if (pids[i] != pid) {
            continue;
        }
        pids[i] = 0;
        if (status) {
            note_failure(c, &shared->jobs[i], status);
        }
        if (status && __atomic_load_n(&shared->next, __ATOMIC_RELAXED) <= c->last) {
            start_job(c, i);
        } else {
            --*n_running;
        }
    }
    return *n_running;
}

void
campaign_run(struct campaign *c)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    unsigned n_running = c->n_jobs = c->n_jobs < MAX_JOBS ? c->n_jobs : MAX_JOBS;

    shared->next = c->first;
    for (unsigned i = 0; i < c->n_jobs; i++) {
        start_job(c, i);
    }
    while (wait_for_job(c, &n_running)) {
    }
    c->n_run = shared->n_run + c->n_failed;
    memcpy(c->n_seen, shared->n_seen, sizeof c->n_seen);
    memcpy(c->n_cm_seen, shared->n_cm_seen, sizeof c->n_cm_seen);
    munmap(shared, sizeof *shared);
    shared = NULL;
}
