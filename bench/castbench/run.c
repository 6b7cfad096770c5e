/* SPDX-License-Identifier: Apache-2.0
 *
 * One run: prepares what the processes share, starts them and gives the turns.
 *
 * The order is the same for all schemes.  All open their devices.  The source
 * arms, then the receivers, or the other way round: see arm().  The source
 * transfers, and meanwhile receivers do their part.  The receivers compare.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/castbench/agent.h"
#include "bench/castbench/interrupt.h"
#include "bench/castbench/live.h"
#include "bench/castbench/remote.h"
#include "bench/castbench/run-private.h"
#include "bench/castbench/sampler.h"
#include "bench/castbench/worker.h"
#include "lib/printable.h"

/* The parent waits so many seconds longer than a process itself, whose own
 * sentence says more and so comes first. */
#define GRACE         5
/* How long a failure waits for its reason from the registry, in nanoseconds. */
#define LIVE_AGAIN_US 20000
#define WAIT_REASON   (5 * (uint64_t) NS_PER_SEC)

/* What only the parent has. */
struct parent {
    struct run_ctx run;
    struct run_result *result;
    struct worker workers[1 + MAX_LIVES]; /* the source is the first. */
    struct receiver_ctx receivers[MAX_LIVES];
    unsigned n_initial; /* lives that begin with the run. */
    struct live *live;  /* with events. */

    /* From the transfer on. */
    struct registry_watch *watches[MAX_QPS];
    uint64_t started;
    uint64_t reason_until; /* end of the wait for the registry's word; 0: not begun. */
    bool sampling;
    unsigned long before; /* blocks completed before the transfer. */
    struct sampler sampler;
    struct agent agent;
    unsigned long shown; /* last progress on the terminal. */
};

struct run_result *
run_result_new(void)
{
    return calloc(1, sizeof(struct run_result));
}

const struct lost *
run_find_lost(const struct run_result *r, const char *host)
{
    for (unsigned i = 0; i < r->n_lost; i++) {
        if (!strcmp(r->lost[i].host, host)) {
            return &r->lost[i];
        }
    }
    return NULL;
}

static void
note_lost(struct parent *p, const struct lost_info *info)
{
    struct run_result *r = p->result;

    if (r->n_lost == MAX_RECEIVERS || run_find_lost(r, info->host)) {
        return;
    }
    struct lost *lost = &r->lost[r->n_lost++];
    snprintf(lost->host, sizeof lost->host, "%s", info->host);
    snprintf(lost->why, sizeof lost->why, "%s", info->why);
    lost->after_ms = (unsigned long) ((now_ns() - p->started) / NS_PER_MS);
    printable_put(stderr, isatty(STDERR_FILENO) ? "\rcastbench: " : "castbench: ",
                  "%s is lost after %lu ms: %s", lost->host, lost->after_ms, lost->why);
}

/* look_for_lost(), of a run with events. */
static void
look_for_lost_live(struct parent *p, uint64_t until)
{
    struct lost_info info;
    bool found = false;

    do {
        live_watch(p->live);
        while (live_next_lost(p->live, &info)) {
            found = true;
            note_lost(p, &info);
        }
    } while (!found && now_ns() < until && !interrupt_signal() && !usleep(LIVE_AGAIN_US));
}

/* Notes the receivers that are lost by now.  If there are none, waits until 'until' for one. */
static void
look_for_lost(struct parent *p, uint64_t until)
{
    struct lost_info info;
    bool found = false;

    if (p->live) {
        look_for_lost_live(p, until);
        return;
    }

    for (unsigned q = 0; q < MAX_QPS && p->watches[q]; q++) {
        uint64_t now = now_ns();
        int wait_ms = !found && until > now ? (int) ((until - now) / NS_PER_MS) : 0;

        while (registry_watch_lost(p->watches[q], found ? 0 : wait_ms, &info)) {
            found = true;
            note_lost(p, &info);
        }
    }
}

static void
show_sample(const struct sample *s, uint32_t since)
{
    const struct rate_sample *r = &s->rate;

    printf(" %8.3f s %12" PRIu64 " bytes %10.2f MB/s", s->ms / 1e3, s->bytes,
           (double) s->bytes / 1e3 / (s->ms - since));
    if (r->rate) {
        printf("  rate %.2f Mbit/s", (double) r->rate / 1e6);
    }
    if (r->n_cuts) {
        printf("  %" PRIu64 " cuts, %s%s%s", r->n_cuts, r->cause, r->node[0] ? " of " : "",
               r->node);
    }
    putchar('\n');
    fflush(stdout);
}

/* Notes how far the transfer is, at its 'end' for the last time. */
static void
sample(struct parent *p, bool end)
{
    const struct run_options *o = p->run.options;
    const struct run_result *r = p->result;
    unsigned long n = atomic_load(&p->run.shared->completed) - p->before;
    uint64_t total = content_bytes(&p->run.shared->content, o->warmup, o->warmup + n);
    uint64_t ms = (now_ns() - p->started) / NS_PER_MS;
    uint32_t since = r->n_samples ? r->samples[r->n_samples - 1].ms : 0;
    struct sample *s = (end ? sampler_end : sampler_add)(&p->sampler, ms, total);

    if (s) {
        agent_ask(&p->agent, &s->rate);
    }
    if (s && o->show_interval && s->ms > since) {
        show_sample(s, since);
    }
}

/* Called while workers are awaited.  The value changes while there is progress. */
static unsigned long
progress(void *aux)
{
    struct parent *p = aux;
    const struct shared *shared = p->run.shared;

    if (p->sampling && p->live) {
        live_run(p->live);
    }
    look_for_lost(p, 0);
    if (p->sampling) {
        sample(p, false);
    }
    unsigned long done = atomic_load(&shared->completed);
    if (done != p->shown && isatty(STDERR_FILENO) && !p->run.options->show_interval) {
        fprintf(stderr, "\r%lu blocks written ", done);
        p->shown = done;
    }
    return atomic_load(&shared->events);
}

static bool
start(struct worker *w, const char *what, const char *host, unsigned n_steps, worker_step *step,
      void *aux, char *error, size_t size)
{
    snprintf(w->name, sizeof w->name, "%s %s", what, host);
    int status = worker_start(w, n_steps, step, aux);
    return !status || refuse(error, size, "cannot start %s: %s", w->name, strerror(status));
}

bool
receiver_start(struct worker *w, struct receiver_ctx *ctx, const struct run_ctx *run, unsigned life,
               char *error, size_t size)
{
    const struct life *l = &run->shared->lives[life];

    *ctx = (struct receiver_ctx){.run = run, .index = life};
    return start(w, "receiver", run->options->receivers[l->receiver],
                 l->begin < 0 ? N_RUN_STEPS : N_LATE_STEPS,
                 run->options->servers[l->receiver] ? remote_step : receiver_step, ctx, error,
                 size);
}

/* Gives a turn to those of workers first..end-1 that run.  The source is told last: relays should
 * wait for its first block, rather than that block for relays that are still asleep. */
static bool
turn(struct parent *p, unsigned first, unsigned end)
{
    const struct run_options *o = p->run.options;

    for (unsigned i = end; i-- > first;) {
        if (p->workers[i].steps_left) {
            worker_go(&p->workers[i]);
        }
    }
    return workers_await(p->workers, 1 + p->run.shared->n_lives, o->timeout + GRACE, o->interval_ms,
                         progress, p, p->result->error, sizeof p->result->error);
}

static bool
start_all(struct parent *p)
{
    struct run_result *r = p->result;
    bool ok = start(&p->workers[0], "source", p->run.options->source, N_RUN_STEPS, source_step,
                    &p->run, r->error, sizeof r->error);

    for (unsigned i = 0; ok && i < p->n_initial; i++) {
        ok = receiver_start(&p->workers[1 + i], &p->receivers[i], &p->run, i, r->error,
                            sizeof r->error);
    }
    return ok;
}

static bool
watch_groups(struct parent *p)
{
    const struct run_options *o = p->run.options;
    bool ok = true;

    if (o->n_events) {
        p->live = live_open(&p->run, p->workers, p->receivers, p->result, p->result->error,
                            sizeof p->result->error);
        return p->live;
    }
    for (unsigned q = 0; ok && o->scheme == SCHEME_MCAST && q < o->qps; q++) {
        ok = !registry_watch_open(o->groups[q], &p->watches[q], p->result->error,
                                  sizeof p->result->error);
    }
    return ok;
}

/* The transfer that is measured. */
static bool
work(struct parent *p)
{
    const struct run_options *o = p->run.options;
    struct run_result *r = p->result;
    struct machine_count before;

    if (!watch_groups(p) || !machine_count_read(&o->counted, &before, r->error, sizeof r->error)) {
        return false;
    }
    agent_open(&p->agent, o);
    p->before = atomic_load(&p->run.shared->completed);
    p->started = now_ns();
    p->sampling = true;
    sampler_init(&p->sampler, r, o->interval_ms);
    if (p->live) {
        live_begin(p->live);
    }
    bool ok = turn(p, 0, 1 + p->n_initial);
    p->sampling = false;
    sample(p, true);
    agent_close(&p->agent);
    if (!ok) {
        look_for_lost(p, now_ns() + WAIT_REASON);
        return false;
    }
    return machine_count_read(&o->counted, &r->machine, r->error, sizeof r->error)
           && machine_count_since(&r->machine, &before, r->error, sizeof r->error);
}

/* Makes what regions must hold at the end.  With events each is another's, and compared here. */
static bool
finish_expected(struct parent *p)
{
    const struct run_options *o = p->run.options;
    struct shared *shared = p->run.shared;

    if (p->live) {
        live_compare(p->live, shared->expected);
    }
    content_finish(&shared->content, shared->expected, (struct block_range){0, shared->end});
    int status =
        o->out ? content_file_write(o->out, "source", shared->expected, shared->content.region_len)
               : 0;
    return !status
           || refuse(p->result->error, sizeof p->result->error, "--out %s: %s", o->out,
                     strerror(status));
}

/* In a group the source starts the epoch, and receivers register in it.  By RDMA-CM it is the other
 * way round: a group without members takes no source. */
static bool
arm(struct parent *p, unsigned n)
{
    return p->run.options->rdma_cm ? turn(p, 1, n) && turn(p, 0, 1)
                                   : turn(p, 0, 1) && turn(p, 1, n);
}

/* Groups go on looking for receivers that have listened until they are told that these are no
 * more. */
static void
end_listening(struct parent *p)
{
    const struct run_options *o = p->run.options;
    const struct shared *shared = p->run.shared;
    const char *hosts[MAX_RECEIVERS];
    char error[512];

    for (unsigned q = 0; q < o->qps; q++) {
        unsigned n = 0;

        for (unsigned i = 0; i < o->n_receivers; i++) {
            if (shared->members[1 + i].listens[q]) {
                hosts[n++] = o->receivers[i];
            }
        }
        if (n && registry_members_leave(o->groups[q], hosts, n, error, sizeof error)) {
            printable_put(stderr, "castbench: ", "group %s: %s", o->groups[q], error);
        }
    }
}

static bool
run_workers(struct parent *p)
{
    unsigned n = 1 + p->n_initial, n_all = 1 + p->run.shared->n_lives;
    bool ok = start_all(p) && turn(p, 0, n)                  /* open */
              && arm(p, n) && turn(p, 0, n) && turn(p, 0, n) /* warm up; count */
              && work(p)                                     /* work */
              && finish_expected(p) && turn(p, 0, n_all);    /* compare */

    workers_stop(p->workers, n_all);
    return ok;
}

/* Request packets that one replica needs for the blocks that are measured. */
static uint64_t
packets_each(const struct run_ctx *run, uint64_t first, uint64_t end)
{
    uint64_t n = 0;

    for (uint64_t block = first; block < end; block++) {
        for (unsigned i = 0; i < run->shared->n_pieces; i++) {
            uint32_t len = piece_get(run, block, i).len;

            n += len ? (len + run->shared->mtu - 1) / run->shared->mtu : 1;
        }
    }
    return n;
}

/* The same, of all lives, for the blocks that each was there for. */
static uint64_t
packets_of_lives(const struct run_ctx *run, const struct run_result *r)
{
    uint64_t n = 0, warmup = run->options->warmup;

    for (unsigned i = 0; i < r->n_replicas; i++) {
        const struct replica *replica = &r->replicas[i];

        n += packets_each(run, replica->first_block > warmup ? replica->first_block : warmup,
                          replica->end_block);
    }
    return n;
}

static void
fill_replica(struct run_result *r, const struct run_ctx *run, unsigned i)
{
    const struct shared *shared = run->shared;
    const struct shared_replica *from = &shared->replicas[i];
    struct replica *to = &r->replicas[i];

    to->begin = shared->lives[i].begin;
    to->end = shared->lives[i].end;
    to->bytes_ok = from->bytes_ok;
    to->first_bad = from->first_bad;
    memcpy(to->why, from->why, sizeof to->why);
    to->arrived = from->arrived;
    to->confirmed = is_mcast(run) ? shared->latency[RULE_ALL] : shared->confirmed[i];
    to->gap = is_mcast(run) ? shared->gap : shared->gaps[i];
    to->host_count = shared->members[1 + i].count;
    to->connect_ns = shared->members[1 + i].connect_ns;
}

static bool
any_is_remote(const struct run_options *o)
{
    bool any = false;

    for (unsigned i = 0; i < o->n_receivers; i++) {
        any = any || o->servers[i];
    }
    return any;
}

static void
fill_result(struct run_result *r, const struct run_ctx *run)
{
    const struct run_options *o = run->options;
    const struct shared *shared = run->shared;

    r->first_block = o->warmup;
    r->region_len = shared->content.region_len;
    for (unsigned q = 0; q < o->qps; q++) {
        r->epochs[q] = shared->groups[q].epoch;
    }
    r->mtu = shared->mtu;
    r->seconds = shared->seconds;
    r->overdue = shared->overdue;
    memcpy(r->latency, shared->latency, sizeof r->latency);
    r->gap = shared->gap;
    r->first_block_at = shared->first_block_at;
    if (shared->seconds > 0) {
        r->count = shared->end - o->warmup;
        r->bytes = content_bytes(&shared->content, o->warmup, shared->end);
        r->packets = o->n_events ? packets_of_lives(run, r)
                                 : packets_each(run, o->warmup, shared->end) * o->n_receivers;
    }
    bool told = o->op != OP_WRITE; /* then leaves are told, too; relays always are. */
    r->has_skew = !r->n_lost && !o->n_events && (told || o->scheme != SCHEME_MCAST)
                  && !(told && any_is_remote(o)); /* their clocks are others. */
    if (r->has_skew) {
        r->skew = told ? shared->arrival_skew : shared->confirm_skew;
    }
    r->source_count = shared->members[0].count;
    r->connect_ns = shared->members[0].connect_ns;
    for (unsigned i = 0; i < shared->n_lives; i++) {
        fill_replica(r, run, i);
    }
}

/* Was the replica's receiver lost?  The registry may hear of it later than the source goes on. */
static bool
is_lost(struct parent *p, unsigned replica)
{
    const struct run_result *r = p->result;
    const char *host = r->replicas[replica].host;

    p->reason_until = p->reason_until ? p->reason_until : now_ns() + WAIT_REASON;
    while ((p->watches[0] || p->live) && !run_find_lost(r, host) && now_ns() < p->reason_until
           && !interrupt_signal()) {
        look_for_lost(p, p->reason_until); /* others may be lost before it. */
    }
    return run_find_lost(r, host);
}

/* Checks that each receiver that is told of blocks was told of all that are its own.  Of one that
 * an event has ended nobody knows when it was told of the last. */
static void
check_told(struct parent *p)
{
    const struct run_ctx *run = &p->run;
    struct run_result *r = p->result;

    for (unsigned i = 0; r->complete && i < r->n_replicas; i++) {
        const struct replica *replica = &r->replicas[i];
        uint64_t n = run->shared->replicas[i].n_told;
        uint64_t all = p->live ? replica->end_block - replica->first_block : run->shared->end;

        if (notices_per_block(run, 1 + i) && n != all && replica->end < 0 && !is_lost(p, i)) {
            snprintf(r->error, sizeof r->error,
                     "receiver %s was told of %" PRIu64 " of %" PRIu64 " blocks", replica->host, n,
                     all);
            r->complete = false;
        }
    }
}

/* Judges by the receivers that lack bytes, and by whether each was lost. */
static enum outcome
judge(struct parent *p)
{
    struct run_result *r = p->result;
    /* With events an error may be known though all was compared. */
    enum outcome outcome = r->complete && !r->error[0] ? OUTCOME_OK : OUTCOME_FAILED;

    for (unsigned i = 0; i < r->n_replicas && outcome != OUTCOME_FAILED; i++) {
        if (r->replicas[i].bytes_ok != r->region_len) {
            outcome = is_lost(p, i) ? OUTCOME_PARTIAL : OUTCOME_FAILED;
        }
    }
    return outcome;
}

/* Gives each life a result.  With events also a region, which outlives its process. */
static bool
make_lives(struct parent *p)
{
    const struct run_options *o = p->run.options;
    const struct shared *shared = p->run.shared;
    struct run_result *r = p->result;

    r->n_replicas = shared->n_lives;
    for (unsigned i = 0; i < shared->n_lives; i++) {
        struct replica *replica = &r->replicas[i];

        snprintf(replica->host, sizeof replica->host, "%s",
                 o->receivers[shared->lives[i].receiver]);
        p->n_initial += shared->lives[i].begin < 0;
        if (o->n_events) {
            void *region = mmap(NULL, shared->content.region_len, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (region == MAP_FAILED) {
                return refuse(r->error, sizeof r->error, "cannot map %zu bytes: %s",
                              shared->content.region_len, strerror(errno));
            }
            p->run.regions[i] = region;
        }
    }
    return true;
}

static void
free_lives(struct parent *p)
{
    live_close(p->live);
    for (unsigned i = 0; i < MAX_LIVES; i++) {
        if (p->run.regions[i]) {
            munmap(p->run.regions[i], p->run.shared->content.region_len);
        }
    }
}

void
bench_run(const struct run_options *o, struct run_result *r)
{
    static struct parent p;

    memset(r, 0, sizeof *r);
    r->outcome = OUTCOME_FAILED;
    r->n_replicas = o->n_receivers;
    for (unsigned i = 0; i < o->n_receivers; i++) {
        snprintf(r->replicas[i].host, sizeof r->replicas[i].host, "%s", o->receivers[i]);
    }
    struct shared *shared = shared_new(o, r->error, sizeof r->error);
    if (!shared) {
        return;
    }
    p = (struct parent){.run = {.options = o, .shared = shared}, .result = r};
    r->complete = make_lives(&p) && run_workers(&p);
    fill_result(r, &p.run);
    check_told(&p);
    r->outcome = judge(&p);
    end_listening(&p); /* who is out is no longer known to be lost. */
    for (unsigned q = 0; q < MAX_QPS; q++) {
        registry_watch_close(p.watches[q]);
    }
    free_lives(&p);
    shared_free(shared);
}
