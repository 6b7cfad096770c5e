/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for bench/castbench/run.c, perftest.c and serve.c: castbench with runs that are made up,
 * and need neither RDMA nor time.
 *
 * CASTBENCH_FAKE says how each run ends, a word per run, of which the last one stays: ok; slowed (as
 * ok, after the source's agent has slowed it down, and let it go again); lost (the
 * last receiver was); wrong (its bytes are); died (not complete); none (no run is possible); stop
 * (as ok, after a SIGTERM).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/perftest.h"
#include "bench/castbench/remote.h"
#include "bench/castbench/run.h"

#define FIRST_NS (1u << 30) /* of the latencies; the others follow by a nanosecond each. */

static unsigned n_run;

/* Of run i. */
static bool
is(unsigned i, const char *word)
{
    const char *p = getenv("CASTBENCH_FAKE");

    while (p && i-- && strchr(p, ',')) {
        p = strchr(p, ',') + 1;
    }
    return p && strcspn(p, ",") == strlen(word) && !strncmp(p, word, strlen(word));
}

static int
refuse_all(int argc, char *argv[])
{
    fprintf(stderr, "castbench: %s with %d words: made up: none is possible\n", argv[0], argc);
    return 2;
}

int
perftest_main(int argc, char *argv[])
{
    return refuse_all(argc, argv);
}

int
serve_main(int argc, char *argv[])
{
    return refuse_all(argc, argv);
}

struct run_result *
run_result_new(void)
{
    return calloc(1, sizeof(struct run_result));
}

bool
run_check(const struct run_options *o, char *error, size_t size)
{
    (void) o;
    snprintf(error, size, "made up: none is possible");
    return !is(0, "none");
}

const struct lost *
run_find_lost(const struct run_result *r, const char *host)
{
    return r->n_lost && !strcmp(r->lost[0].host, host) ? &r->lost[0] : NULL;
}

static void
fill_measured(const struct run_options *o, struct run_result *r)
{
    r->count = o->count ? o->count : 10;
    r->bytes = r->count * o->size;
    r->mtu = o->mtu ? o->mtu : 1024;
    r->seconds = 0.5;
    r->overdue = 3;
    r->packets = o->n_receivers * r->count * ((o->size - 1) / r->mtu + 1);
    for (uint64_t i = 0; i < r->count; i++) {
        for (int rule = 0; rule < N_RULES; rule++) {
            histogram_add(&r->latency[rule], FIRST_NS + i);
        }
    }
    r->first_block_at = 1700000000250000000;
    r->gap = (struct gap){.longest = 2500000, .began = 125000000};
    r->connect_ns = o->rdma_cm ? 12500000 : 0;
    r->source_count = (struct host_count){.cpu_seconds = 0.125, .has_rdma = true};
    for (unsigned i = 0; i < r->n_replicas; i++) {
        r->replicas[i].bytes_ok = r->region_len;
        r->replicas[i].gap = (struct gap){.longest = (i + 1) * 1000000, .began = 50000000};
        r->replicas[i].connect_ns = o->rdma_cm ? (i + 1) * 20000000 : 0;
        r->replicas[i].host_count = (struct host_count){.cpu_seconds = 0.25, .has_rdma = true};
    }
    r->machine.busy_seconds = 2;
    r->machine.has_fabric = o->counted.lab != NULL;
    r->machine.fabric_seconds = o->counted.lab ? 0.375 : 0;
    r->machine.n_devices = o->counted.n_devices;
    for (unsigned i = 0; i < o->counted.n_devices; i++) {
        struct device_count *d = &r->machine.devices[i];
        snprintf(d->where, sizeof d->where, "%s", o->counted.devices[i]);
        d->tx_bytes = r->bytes + 1;
        d->tx_packets = r->packets;
    }
    r->samples[r->n_samples++] = (struct sample){.ms = 500, .bytes = r->bytes};
}

static void
slow_down(struct run_result *r)
{
    const struct rate_sample slowed = {
        .known = true, .rate = 12500000, .n_cuts = 2, .cause = "fast-cnp", .node = "n4"};
    uint64_t half = r->bytes / 2;

    r->samples[0] = (struct sample){250, half, slowed};
    r->samples[1] = (struct sample){500, r->bytes - half, {.known = true, .cause = "cnp"}};
    r->n_samples = 2;
}

/* The last receiver has but half of its bytes. */
static void
spoil(const struct run_options *o, struct run_result *r, bool is_lost)
{
    struct replica *last = &r->replicas[o->n_receivers - 1];

    last->bytes_ok = r->region_len / 2;
    last->first_bad = r->region_len / 2;
    snprintf(last->why, sizeof last->why, "made up: \"block 1\"\xff");
    r->outcome = is_lost ? OUTCOME_PARTIAL : OUTCOME_FAILED;
    if (is_lost) {
        r->n_lost = 1;
        snprintf(r->lost[0].host, sizeof r->lost[0].host, "%s", last->host);
        snprintf(r->lost[0].why, sizeof r->lost[0].why, "made up");
    }
}

/* Each event is made 7 ms late, and told of half a second later; the second message is the first of
 * who comes late, the fifth the last of who goes early. */
static void
fill_events(const struct run_options *o, struct run_result *r, const struct life lives[])
{
    static const char *const states[N_EVENT_KINDS] = {
        [EVENT_JOIN] = "active", [EVENT_KILL] = "lost",  [EVENT_START] = "active",
        [EVENT_LEAVE] = "left",  [EVENT_DRAIN] = "left", [EVENT_REMOVE] = "removed",
    };

    for (unsigned k = 0; k < o->n_events; k++) {
        struct event_result *e = &r->events[k];

        e->is_made = true;
        e->made_ms = o->events[k].ms + 7;
        e->registered_ms = event_begins(o->events[k].kind) ? e->made_ms + 100 : 0;
        e->told_ms = e->made_ms + 500;
        snprintf(e->state, sizeof e->state, "%s", states[o->events[k].kind]);
    }
    for (unsigned i = 0; i < r->n_replicas; i++) {
        struct replica *replica = &r->replicas[i];

        replica->begin = lives[i].begin;
        replica->end = lives[i].end;
        replica->has_first = true;
        replica->first_psn = lives[i].begin < 0 ? 1000 : 1016;
        replica->first_block = lives[i].begin >= 0;
        replica->end_block = lives[i].end < 0 ? r->count : 5;
    }
    r->samples[0].ms = 2000;
}

void
bench_run(const struct run_options *o, struct run_result *r)
{
    struct life lives[MAX_LIVES];
    char why[256];
    unsigned i = n_run++;

    r->n_replicas =
        lives_of(o->receivers, o->n_receivers, o->events, o->n_events, lives, why, sizeof why);
    r->region_len = (size_t) o->size * 2;
    r->outcome = OUTCOME_OK;
    for (unsigned k = 0; k < r->n_replicas; k++) {
        snprintf(r->replicas[k].host, sizeof r->replicas[k].host, "%s",
                 o->receivers[lives[k].receiver]);
    }
    if (is(i, "died")) {
        r->outcome = OUTCOME_FAILED;
        snprintf(r->error, sizeof r->error, "made up: a, \"b\"\nc");
        return;
    }
    r->complete = true;
    fill_measured(o, r);
    if (o->n_events) {
        fill_events(o, r, lives);
    }
    if (is(i, "slowed")) {
        slow_down(r);
    }
    if (is(i, "lost") || is(i, "wrong")) {
        spoil(o, r, is(i, "lost"));
    }
    if (is(i, "stop")) {
        raise(SIGTERM);
    }
}
