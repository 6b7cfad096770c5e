/* SPDX-License-Identifier: Apache-2.0
 *
 * Members that come and go (see live.h).
 *
 * castctl does what an operator does: it watches the group, a line of JSON for
 * each event, and takes members out.  A receiver process registers itself, as any
 * receiver does.
 *
 * Three things are known of a life independently, and must fit together:
 * - the registry's PSN of the member's first packet, from which its first block
 *   follows, as all blocks have as many packets;
 * - the source's completions: a block that all members had when an event was made is the member's;
 * - the bytes in its region.
 */
#include "bench/castbench/live.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/castbench/castctl.h"
#include "bench/castbench/interrupt.h"
#include "lib/wire.h"

/* How long the watch may take to say what there is. */
#define WATCH_BEGIN_MS    10000
#define COMMANDS_AGAIN_US 20000

struct live_member {
    bool active;          /* the registry has said so. */
    uint64_t known_begin; /* blocks that all members had when it began, ... */
    uint64_t known_end;   /* ... and when it was ended. */
};

struct live {
    const struct run_ctx *run;
    struct worker *workers;
    struct receiver_ctx *receivers;
    struct run_result *result;
    uint64_t started;   /* CLOCK_MONOTONIC, ... */
    int64_t started_ms; /* ... and CLOCK_REALTIME in milliseconds, as castctl has it. */
    unsigned n_made;    /* events. */
    struct castctl watch;
    struct castctl commands[MAX_EVENTS]; /* by event. */
    struct live_member members[MAX_LIVES];
    unsigned n_lost, n_lost_taken;
    struct lost_info lost[MAX_LIVES];
    unsigned char *scratch; /* of a region's length. */
};

static const struct life *
life(const struct live *l, unsigned i)
{
    return &l->run->shared->lives[i];
}

static const char *
host_of(const struct live *l, unsigned i)
{
    return l->run->options->receivers[life(l, i)->receiver];
}

static bool
is_ended(const struct live *l, unsigned i)
{
    return life(l, i)->end >= 0 && (unsigned) life(l, i)->end < l->n_made;
}

static bool
is_begun(const struct live *l, unsigned i)
{
    return life(l, i)->begin < (int) l->n_made;
}

/* The newest life that has this registration; n_lives: none has. */
static unsigned
find_life(const struct live *l, const char *host, int64_t qpn)
{
    const struct shared *shared = l->run->shared;
    unsigned found = shared->n_lives;

    for (unsigned i = 0; i < shared->n_lives; i++) {
        if (is_begun(l, i) && !strcmp(host_of(l, i), host)
            && shared->members[1 + i].qpn[0] == qpn) {
            found = i;
        }
    }
    return found;
}

static void
note_error(struct live *l, const char *what)
{
    struct run_result *r = l->result;

    if (!r->error[0]) {
        snprintf(r->error, sizeof r->error, "%s", what);
    }
}

static void
note_event_error(struct live *l, unsigned k, const char *why)
{
    const struct event *e = &l->run->options->events[k];
    char text[sizeof l->result->error];

    snprintf(text, sizeof text, "event %g:%s:%s: %s", e->ms / 1e3, event_kind_name(e->kind),
             e->host, why);
    note_error(l, text);
}

/*
 * What the registry says.
 */

/* The registry has said what an event leads to. */
static void
note_told(struct live *l, int k, const char *state, const char *status, int64_t ms)
{
    struct event_result *e = k >= 0 ? &l->result->events[k] : NULL;

    if (e && e->is_made && !e->state[0]) {
        snprintf(e->state, sizeof e->state, "%s", state);
        snprintf(e->status, sizeof e->status, "%s", status);
        e->told_ms = ms > e->made_ms ? (uint32_t) ms : e->made_ms;
    }
}

static void
note_active(struct live *l, unsigned i, const json_t *line, int64_t ms)
{
    struct replica *r = &l->result->replicas[i];
    const json_t *psn = json_object_get(line, "first_psn");

    if (l->members[i].active || life(l, i)->begin < 0) {
        return;
    }
    l->members[i].active = true;
    r->has_first = json_is_integer(psn);
    r->first_psn = r->has_first ? (uint32_t) json_integer_value(psn) : 0;
    note_told(l, life(l, i)->begin, "active", "", ms);
}

/* A registration was lost that no event has killed. */
static void
note_lost(struct live *l, unsigned i, const char *status)
{
    if (l->n_lost < MAX_LIVES) {
        struct lost_info *lost = &l->lost[l->n_lost++];

        snprintf(lost->host, sizeof lost->host, "%s", host_of(l, i));
        snprintf(lost->why, sizeof lost->why, "%s", status);
    }
}

/* Milliseconds since the transfer's begin of a time as castctl writes it. */
static int64_t
since_begin(const struct live *l, const char *time)
{
    struct tm tm = {0};
    const char *rest = strptime(time, "%Y-%m-%dT%H:%M:%S", &tm);
    long ms = rest && *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;

    return (int64_t) timegm(&tm) * 1000 + ms - l->started_ms;
}

static const char *
text_of(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));

    return text ? text : "";
}

/* Is this what the registry says when such an event has done what it is for? */
static bool
is_end_of(const char *state, enum event_kind kind)
{
    switch (kind) {
    case EVENT_KILL: return !strcmp(state, "lost") || !strcmp(state, "replaced");
    case EVENT_LEAVE:
    case EVENT_DRAIN: return !strcmp(state, "left");
    case EVENT_REMOVE: return !strcmp(state, "removed");
    case EVENT_JOIN:
    case EVENT_START:
    case N_EVENT_KINDS: break;
    }
    return false;
}

static void
take_event(struct live *l, const json_t *line)
{
    const char *event = text_of(line, "event"), *status = text_of(line, "status");
    const char *qpn = strcmp(event, "replaced") ? "qpn" : "qpn_before";
    int64_t ms = since_begin(l, text_of(line, "time"));
    unsigned i =
        find_life(l, text_of(line, "member"), json_integer_value(json_object_get(line, qpn)));

    if (i == l->run->shared->n_lives) {
        return;
    }
    int end = is_ended(l, i) ? life(l, i)->end : -1;
    bool is_killed = end >= 0 && l->run->options->events[end].kind == EVENT_KILL;
    if (!strcmp(event, "active")) {
        note_active(l, i, line, ms);
    } else if (end >= 0 && is_end_of(event, l->run->options->events[end].kind)) {
        note_told(l, end, event, status, ms);
    } else if (!is_killed && (!strcmp(event, "lost") || !strcmp(event, "failed"))) {
        note_lost(l, i, status);
    }
}

/* Takes the watch's next line; NULL: none comes within 'wait_ms'.  '*text' is the line. */
static json_t *
next_line(struct live *l, int wait_ms, char *text, size_t size)
{
    return castctl_line(&l->watch, wait_ms, text, size) ? json_loads(text, 0, NULL) : NULL;
}

static void
take_lines(struct live *l)
{
    char text[sizeof l->watch.buf];

    while (castctl_line(&l->watch, 0, text, sizeof text)) {
        json_t *line = json_loads(text, 0, NULL);

        if (line) {
            take_event(l, line);
        }
        json_decref(line);
    }
    int status;
    if (castctl_ended(&l->watch, &status)) {
        note_error(l, "castctl watch has ended");
    }
}

/*
 * Events.
 */

static void
begin_life(struct live *l, unsigned i)
{
    char error[256];

    l->members[i].known_begin = atomic_load(&l->run->shared->completed);
    if (!receiver_start(&l->workers[1 + i], &l->receivers[i], l->run, i, error, sizeof error)) {
        note_event_error(l, (unsigned) life(l, i)->begin, error);
    }
}

static void
end_life(struct live *l, unsigned i, const struct event *e, unsigned k)
{
    const struct run_options *o = l->run->options;
    char timeout[32], error[256];
    const char *const argv[] = {timeout,      "member", event_kind_name(e->kind),
                                o->groups[0], e->host,  NULL};

    l->members[i].known_end = atomic_load(&l->run->shared->completed);
    if (e->kind == EVENT_KILL) {
        worker_kill(&l->workers[1 + i]);
        return;
    }
    snprintf(timeout, sizeof timeout, "--timeout=%u", o->timeout);
    if (!castctl_start(&l->commands[k], argv, error, sizeof error)) {
        note_event_error(l, k, error);
    }
}

/* May the event happen, as far as the registry has said what follows from those before?  A member
 * can be ended that is active, and can join again when it is out. */
static bool
may_happen(const struct live *l, unsigned k)
{
    const struct event *e = &l->run->options->events[k];

    for (unsigned i = 0; i < l->run->shared->n_lives; i++) {
        int end = life(l, i)->end;

        if (end == (int) k && life(l, i)->begin >= 0 && !l->members[i].active) {
            return false;
        }
        if (e->kind == EVENT_JOIN && is_ended(l, i) && !strcmp(host_of(l, i), e->host)
            && !l->result->events[end].state[0]) {
            return false;
        }
    }
    return true;
}

static void
make_event(struct live *l, unsigned k, uint32_t ms)
{
    const struct event *e = &l->run->options->events[k];
    unsigned n = l->run->shared->n_lives;

    l->result->events[k].is_made = true;
    l->result->events[k].made_ms = ms;
    for (unsigned i = 0; i < n; i++) {
        if (life(l, i)->begin == (int) k) {
            begin_life(l, i);
        } else if (life(l, i)->end == (int) k) {
            end_life(l, i, e, k);
        }
    }
    l->n_made = k + 1;
}

/* Takes in how castctl's commands have ended. */
static void
reap_commands(struct live *l)
{
    for (unsigned k = 0; k < l->n_made; k++) {
        char line[512] = "";
        int status;

        if (castctl_ended(&l->commands[k], &status)) {
            castctl_line(&l->commands[k], 0, line, sizeof line);
            if (!WIFEXITED(status) || WEXITSTATUS(status)) {
                note_event_error(l, k, line[0] ? line : "castctl has failed");
            }
        }
    }
}

/* A receiver that began late goes on with its next step as soon as one is done; the last one is
 * everybody's. */
static void
advance(struct live *l, uint32_t ms)
{
    for (unsigned i = 0; i < l->run->shared->n_lives; i++) {
        struct worker *w = &l->workers[1 + i];
        int begin = life(l, i)->begin;

        if (begin >= 0 && w->pid > 0 && !w->busy && w->steps_left > 1) {
            if (w->steps_left == N_LATE_STEPS - STEP_ARM - 1) {
                l->result->events[begin].registered_ms = ms;
            }
            worker_go(w);
        }
    }
}

/* Has everything been made and told?  If not, the run is held, but not for ever. */
static bool
is_settled(const struct live *l, uint32_t ms)
{
    const struct run_options *o = l->run->options;

    for (unsigned k = 0; k < o->n_events && !l->result->error[0]; k++) {
        if (!l->result->events[k].state[0] || l->commands[k].pid) {
            return ms / 1000 >= o->duration + o->timeout;
        }
    }
    return true;
}

void
live_watch(struct live *l)
{
    take_lines(l);
    reap_commands(l);
}

void
live_run(struct live *l)
{
    const struct run_options *o = l->run->options;
    uint32_t ms = (uint32_t) ((now_ns() - l->started) / NS_PER_MS);

    live_watch(l);
    while (l->n_made < o->n_events && o->events[l->n_made].ms <= ms && may_happen(l, l->n_made)) {
        make_event(l, l->n_made, ms);
    }
    advance(l, ms);
    atomic_store(&l->run->shared->is_held, !is_settled(l, ms));
}

bool
live_next_lost(struct live *l, struct lost_info *lost)
{
    if (l->n_lost_taken == l->n_lost) {
        return false;
    }
    *lost = l->lost[l->n_lost_taken++];
    return true;
}

/*
 * Begin and end.
 */

/* Waits until the watch has said what there is: the group comes last. */
static bool
await_watch(struct live *l, char *error, size_t size)
{
    char text[sizeof l->watch.buf] = "";
    uint64_t end = now_ns() + WATCH_BEGIN_MS * (uint64_t) NS_PER_MS;
    bool ready = false;

    while (!ready && now_ns() < end) {
        json_t *line = next_line(l, WATCH_BEGIN_MS, text, sizeof text);

        if (!line) {
            break;
        }
        ready = json_is_null(json_object_get(line, "member"))
                && strcmp(text_of(line, "event"), "source-set") != 0;
        json_decref(line);
    }
    return ready || refuse(error, size, "castctl watch: %s", text[0] ? text : "it says nothing");
}

struct live *
live_open(const struct run_ctx *run, struct worker *workers, struct receiver_ctx *receivers,
          struct run_result *result, char *error, size_t size)
{
    const char *const argv[] = {"-j", "watch", run->options->groups[0], NULL};
    struct live *l = calloc(1, sizeof *l);

    if (!l || !(l->scratch = malloc(run->shared->content.region_len))) {
        refuse(error, size, "out of memory");
        free(l);
        return NULL;
    }
    l->run = run;
    l->workers = workers;
    l->receivers = receivers;
    l->result = result;
    for (unsigned k = 0; k < MAX_EVENTS; k++) {
        l->commands[k].fd = -1;
    }
    if (!castctl_start(&l->watch, argv, error, size) || !await_watch(l, error, size)) {
        live_close(l);
        return NULL;
    }
    return l;
}

void
live_close(struct live *l)
{
    if (l) {
        castctl_stop(&l->watch);
        for (unsigned k = 0; k < MAX_EVENTS; k++) {
            castctl_stop(&l->commands[k]);
        }
        free(l->scratch);
        free(l);
    }
}

void
live_begin(struct live *l)
{
    struct timespec now;

    atomic_store(&l->run->shared->is_held, true);
    l->started = now_ns();
    clock_gettime(CLOCK_REALTIME, &now);
    l->started_ms = (int64_t) now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

/*
 * Comparison.
 */

/* Finds a late member's first block: the one that begins with its first PSN, and that not all
 * members had when it was started.  False: the PSN is that of no block's first packet. */
static bool
find_first(const struct live *l, unsigned i, uint64_t *first)
{
    const struct shared *shared = l->run->shared;
    uint32_t size = l->run->options->size;
    uint64_t n_packets = (size + shared->mtu - 1) / shared->mtu;
    uint64_t known = l->members[i].known_begin * n_packets;
    uint32_t psn = l->result->replicas[i].first_psn - shared->groups[0].start_psn;
    uint64_t packet = known + ((psn - (uint32_t) known) & PSN_MASK);

    *first = packet / n_packets;
    return packet % n_packets == 0 && *first <= shared->end;
}

/* The blocks that the life must have, given what is in its region if that alone tells.  Makes
 * 'scratch' what the region must hold. */
static struct block_range
find_range(struct live *l, unsigned i, const unsigned char *generated)
{
    const struct shared *shared = l->run->shared;
    const struct content *content = &shared->content;
    const unsigned char *region = l->run->regions[i];
    const struct replica *r = &l->result->replicas[i];
    struct block_range range = {r->first_block, shared->end};
    uint64_t lowest, highest;

    memcpy(l->scratch, generated, content->region_len);
    if (!is_ended(l, i) && r->has_first) {
        content_finish(content, l->scratch, range);
        return range;
    }
    range.end = range.first;
    bool found = content_find(content, region, shared->end, &lowest, &highest);
    if (found) {
        /* The registry had no time to say where one began that was ended soon. */
        range.first = r->has_first ? range.first : lowest;
        range.end = highest > range.first ? highest : range.first;
    }
    content_finish(content, l->scratch, range);
    if (found && range.end == highest && content_finish_begun(content, l->scratch, range, region)) {
        range.end++; /* 'scratch' has it already. */
    }
    return range;
}

static bool
was_lost(const struct live *l, const char *host)
{
    for (unsigned i = 0; i < l->n_lost; i++) {
        if (!strcmp(l->lost[i].host, host)) {
            return true;
        }
    }
    return false;
}

/* What is wrong with a life, bytes aside; true: nothing is. */
static bool
check_life(const struct live *l, unsigned i, char *why, size_t size)
{
    const struct shared *shared = l->run->shared;
    const struct replica *r = &l->result->replicas[i];
    const struct live_member *m = &l->members[i];
    const struct shared_replica *told = &shared->replicas[i];

    if (!is_ended(l, i) && life(l, i)->begin >= 0 && !m->active) {
        return refuse(why, size, "it did not become active while the run lasted");
    }
    if (m->active && !r->has_first) {
        return refuse(why, size,
                      "the registry does not say with which PSN its first message begins");
    }
    if (is_ended(l, i) && !was_lost(l, r->host) && r->has_first && r->end_block < m->known_end
        && r->first_block < m->known_end) {
        return refuse(why, size,
                      "it has messages up to %" PRIu64 ", though %" PRIu64
                      " were confirmed when it was ended",
                      r->end_block, m->known_end);
    }
    if (l->run->options->op != OP_WRITE && r->has_first && told->n_told
        && told->first_told != r->first_block) {
        return refuse(why, size,
                      "it was told of message %" PRIu64
                      " first, and its first PSN is that of %" PRIu64,
                      told->first_told, r->first_block);
    }
    return true;
}

static void
compare_life(struct live *l, unsigned i, const unsigned char *generated)
{
    const struct run_options *o = l->run->options;
    struct shared *shared = l->run->shared;
    const struct content *content = &shared->content;
    struct shared_replica *mine = &shared->replicas[i];
    struct replica *r = &l->result->replicas[i];
    char why[256], text[sizeof l->result->error];
    bool ok = true;

    if (life(l, i)->begin < 0) {
        r->has_first = true;
        r->first_psn = shared->groups[0].start_psn;
    } else if (r->has_first && !find_first(l, i, &r->first_block)) {
        ok = refuse(why, sizeof why, "its first PSN %u is not that of a message's first packet",
                    r->first_psn);
        r->has_first = false;
    }
    struct block_range range = find_range(l, i, generated);
    r->first_block = range.first;
    r->end_block = range.end;
    mine->bytes_ok = content_compare(content, l->run->regions[i], l->scratch, range,
                                     &mine->first_bad, mine->why, sizeof mine->why);
    ok = ok && check_life(l, i, why, sizeof why);
    if (!ok) {
        snprintf(text, sizeof text, "receiver %s: %s", r->host, why);
        note_error(l, text);
    }
    int status =
        o->out ? content_file_write(o->out, r->host, l->run->regions[i], content->region_len) : 0;
    if (status) {
        snprintf(text, sizeof text, "cannot write the region to %s: %s", o->out, strerror(status));
        note_error(l, text);
    }
}

/* Waits until castctl's commands have ended, which each has a time-out of its own. */
static void
await_commands(struct live *l)
{
    unsigned n_running;

    do {
        live_watch(l);
        n_running = 0;
        for (unsigned k = 0; k < l->n_made; k++) {
            n_running += l->commands[k].pid != 0;
        }
    } while (n_running && !interrupt_signal() && !usleep(COMMANDS_AGAIN_US));
}

void
live_compare(struct live *l, const unsigned char *generated)
{
    await_commands(l);
    if (l->n_made < l->run->options->n_events) {
        note_event_error(l, l->n_made, "it could not happen while the run lasted");
    }
    for (unsigned i = 0; i < l->run->shared->n_lives; i++) {
        if (is_begun(l, i)) {
            compare_life(l, i, generated);
        }
    }
}
