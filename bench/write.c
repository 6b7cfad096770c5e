/* SPDX-License-Identifier: Apache-2.0
 *
 * One run: prepares what the processes share, starts them and gives the turns.
 *
 * Order, for both schemes: all open their devices; the source arms, then the
 * receivers (in a group it is the source that starts the epoch, and receivers
 * register in it); the source transfers; the receivers compare.
 */
#include "bench/write.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench/counter.h"
#include "bench/registry.h"
#include "bench/worker.h"
#include "bench/write-run.h"

/* More than what a process itself waits for anything, so that its own
 * sentence, which says more, comes first. */
#define GRACE       5
/* How long a failure waits for its reason from the registry, in milliseconds. */
#define WAIT_REASON 2000

bool
write_fail(char *error, size_t size, const char *text)
{
    snprintf(error, size, "%s", text);
    return false;
}

void *
write_buffer(size_t len)
{
    return aligned_alloc(4096, (len + 4095) & ~(size_t) 4095);
}

static bool
resolve(const char *host, struct in6_addr *address, char *error, size_t size)
{
    return inet_pton(AF_INET6, host, address) == 1
           || !registry_host_address(host, address, error, size);
}

/* Maps the shared memory and fills in what is the parent's. */
static struct write_shared *
shared_create(const struct write_options *o, char *error, size_t size)
{
    size_t file_len = 0;
    int status = o->file ? content_file_len(o->file, &file_len) : 0;

    if (status || (o->file && (!file_len || file_len > REGION_MAX))) {
        snprintf(error, size, "--file %s: %s", o->file,
                 status ? strerror(status) : "must have 1 byte to 64 MiB");
        return NULL;
    }
    struct content content = content_init(o->size, o->count, file_len);
    struct write_shared *shared = mmap(NULL, sizeof *shared + content.region_len,
                                       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        snprintf(error, size, "cannot map %zu bytes: %s", content.region_len, strerror(errno));
        return NULL;
    }
    shared->content = content;
    shared->unicast_psn = (uint32_t) (o->seed * 0x9e3779b1 & 0xffffff);
    if (o->file) {
        status = content_file_read(o->file, shared->expected, content.region_len);
    } else {
        content_generate(&content, shared->expected, o->seed);
        content_finish(&content, shared->expected);
    }
    if (status) {
        snprintf(error, size, "--file %s: %s", o->file, strerror(status));
        goto error;
    }
    if (!resolve(o->source, &shared->source, error, size)) {
        goto error;
    }
    for (unsigned i = 0; i < o->n_receivers; i++) {
        if (!resolve(o->receivers[i], &shared->receivers[i], error, size)) {
            goto error;
        }
    }
    status =
        o->out ? content_file_write(o->out, "source", shared->expected, content.region_len) : 0;
    if (status) {
        snprintf(error, size, "--out %s: %s", o->out, strerror(status));
        goto error;
    }
    return shared;

error:
    munmap(shared, sizeof *shared + content.region_len);
    return NULL;
}

static long long
now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

const struct write_lost *
write_find_lost(const struct write_result *r, const char *host)
{
    for (unsigned i = 0; i < r->n_lost; i++) {
        if (!strcmp(r->lost[i].host, host)) {
            return &r->lost[i];
        }
    }
    return NULL;
}

/* Notes the receivers that are lost by now, or within 'wait_ms' if none is. */
static void
note_lost(struct write_run *run, int wait_ms)
{
    struct write_result *r = run->result;
    struct lost_info info;

    while (run->watch && r->n_lost < MAX_RECEIVERS
           && registry_watch_lost(run->watch, wait_ms, &info)) {
        wait_ms = 0;
        if (!write_find_lost(r, info.host)) {
            struct write_lost *lost = &r->lost[r->n_lost++];

            memcpy(lost->host, info.host, sizeof lost->host);
            memcpy(lost->why, info.why, sizeof lost->why);
            lost->after_ms = (unsigned long) (now_ms() - run->started);
            fprintf(stderr, "%scastbench: %s is lost after %lu ms: %s\n",
                    isatty(STDERR_FILENO) ? "\r" : "", lost->host, lost->after_ms, lost->why);
        }
    }
}

/* Called while workers are awaited: a line on a terminal, and the value whose
 * change is progress. */
static unsigned long
progress(void *aux)
{
    struct write_run *run = aux;
    const struct write_options *o = run->options;

    note_lost(run, 0);
    unsigned long done = atomic_load(&run->shared->completed);
    unsigned long total =
        run->shared->content.count * (o->scheme == SCHEME_UNICAST ? o->n_receivers : 1);

    if (done != run->shown && isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%lu of %lu writes done%s", done, total, done == total ? "\n" : "");
        run->shown = done;
    }
    return done;
}

static bool
start(struct worker *w, const char *role, const char *host, worker_step *step, void *aux,
      char *error, size_t size)
{
    snprintf(w->name, sizeof w->name, "%s %s", role, host);
    int status = worker_start(w, N_WRITE_STEPS, step, aux);
    if (status) {
        snprintf(error, size, "cannot start %s: %s", w->name, strerror(status));
    }
    return !status;
}

/* One turn of workers first..end-1; worker 0 is the source. */
static bool
turn(struct write_run *run, struct worker *w, unsigned first, unsigned end, char *error,
     size_t size)
{
    for (unsigned i = first; i < end; i++) {
        worker_go(&w[i]);
    }
    return workers_await(w, run->options->n_receivers + 1, run->options->timeout + GRACE, progress,
                         run, error, size);
}

static bool
counters_start(const struct write_options *o, struct counter *counters, char *error, size_t size)
{
    bool ok = true;

    for (unsigned i = 0; ok && i < o->n_counted; i++) {
        ok = counter_start(&counters[i], o->counted[i], error, size);
    }
    return ok;
}

static bool
counters_stop(const struct write_options *o, const struct counter *counters,
              struct write_result *result)
{
    bool ok = true;

    for (unsigned i = 0; ok && i < o->n_counted; i++) {
        ok = counter_stop(&counters[i], &result->tx_bytes[i], result->error, sizeof result->error);
    }
    return ok;
}

/* What would else be found wrong when the group is in a new epoch already, or after the run. */
static bool
check_first(const struct write_options *o, char *error, size_t size)
{
    struct counter counters[MAX_COUNTED];
    struct group_info group;

    if (o->group) {
        if (registry_group_show(o->group, &group, error, size)) {
            return false;
        }
        if (o->mtu && o->mtu != group.mtu) {
            snprintf(error, size, "-m %" PRIu32 ": the group's path MTU is %" PRIu32, o->mtu,
                     group.mtu);
            return false;
        }
    }
    return counters_start(o, counters, error, size);
}

static bool
watch_start(struct write_run *run, char *error, size_t size)
{
    run->started = now_ms();
    return run->options->scheme == SCHEME_UNICAST
           || !registry_watch_open(run->options->group, &run->watch, error, size);
}

static bool
run_workers(struct write_run *run, struct write_result *result)
{
    const struct write_options *o = run->options;
    struct worker workers[1 + MAX_RECEIVERS] = {{.pid = 0}};
    struct write_receiver receivers[MAX_RECEIVERS];
    unsigned n = o->n_receivers + 1;
    struct counter counters[MAX_COUNTED];
    char *error = result->error;
    size_t size = sizeof result->error;

    bool ok = start(&workers[0], "source", o->source, write_source_step, run, error, size);
    for (unsigned i = 0; ok && i < o->n_receivers; i++) {
        receivers[i] = (struct write_receiver){.run = run, .index = i};
        ok = start(&workers[i + 1], "receiver", o->receivers[i], write_receiver_step, &receivers[i],
                   error, size);
    }
    ok = ok && turn(run, workers, 0, n, error, size) /* open */
         && turn(run, workers, 0, 1, error, size)    /* arm the source */
         && turn(run, workers, 1, n, error, size)    /* arm the receivers */
         && watch_start(run, error, size) && counters_start(o, counters, error, size);
    bool sent = ok && turn(run, workers, 0, 1, error, size); /* transfer */
    if (ok && !sent) {
        note_lost(run, WAIT_REASON);
    }
    ok = sent && counters_stop(o, counters, result)
         && turn(run, workers, 1, n, error, size); /* compare */
    workers_stop(workers, n);
    return ok;
}

/* Which receivers lack bytes, and is there a reason? */
static enum write_outcome
judge(struct write_run *run)
{
    struct write_result *r = run->result;
    enum write_outcome outcome = r->complete ? WRITE_OK : WRITE_FAILED;

    for (unsigned i = 0; i < r->n_replicas && outcome != WRITE_FAILED; i++) {
        if (r->replicas[i].bytes_ok != r->region_len) {
            /* The registry may hear of it later than the source can go on. */
            if (!write_find_lost(r, r->replicas[i].host)) {
                note_lost(run, WAIT_REASON);
            }
            outcome = write_find_lost(r, r->replicas[i].host) ? WRITE_PARTIAL : WRITE_FAILED;
        }
    }
    return outcome;
}

enum write_outcome
write_run(const struct write_options *o, struct write_result *result)
{
    *result = (struct write_result){.n_replicas = o->n_receivers};
    if (!check_first(o, result->error, sizeof result->error)) {
        return WRITE_FAILED;
    }
    struct write_shared *shared = shared_create(o, result->error, sizeof result->error);
    if (!shared) {
        return WRITE_FAILED;
    }
    const struct content *content = &shared->content;
    struct write_run run = {.options = o, .shared = shared, .result = result};
    result->complete = run_workers(&run, result);
    result->count = content->count;
    result->bytes = content_total(content);
    result->region_len = content->region_len;
    result->epoch = shared->epoch;
    result->mtu = shared->mtu;
    result->seconds = shared->seconds;

    for (unsigned i = 0; i < o->n_receivers; i++) {
        const struct write_remote *remote = &shared->remotes[i];

        result->replicas[i] = (struct write_replica){
            .host = o->receivers[i],
            .bytes_ok = remote->bytes_ok,
            .first_bad = remote->first_bad,
        };
    }
    enum write_outcome outcome = judge(&run);
    registry_watch_close(run.watch);
    munmap(shared, sizeof *shared + content->region_len);
    return outcome;
}
