/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix (see plan.h): what must hold for all its runs, and which runs it has.
 */
#include "bench/castbench/plan.h"

#include <inttypes.h>
#include <string.h>

#include "bench/castbench/content.h"
#include "bench/castbench/out-file.h"
#include "bench/castbench/refuse.h"

const char *
operation_name(enum operation op)
{
    static const char *const names[N_OPERATIONS] = {
        [OP_WRITE] = "write", [OP_WRITE_IMM] = "write-imm", [OP_SEND] = "send"};

    return names[op];
}

const char *
pattern_name(enum pattern pattern)
{
    static const char *const names[] = {
        [PATTERN_SEQ] = "seq", [PATTERN_RANDOM] = "random", [PATTERN_APPEND] = "append"};

    return names[pattern];
}

bool
plan_has_scheme(const struct plan *plan, enum scheme scheme)
{
    for (unsigned i = 0; i < plan->n_schemes; i++) {
        if (plan->schemes[i] == scheme) {
            return true;
        }
    }
    return false;
}

static bool
check_hosts(const struct plan *plan, char *error, size_t size)
{
    const struct run_options *base = &plan->base;
    bool has_group = plan_has_scheme(plan, SCHEME_MCAST);

    if (!base->source || !base->n_receivers) {
        return refuse(error, size, "%s is missing (castbench --help)",
                      base->source ? "--receivers" : "--source");
    }
    if (has_group && !plan->n_groups) {
        return refuse(error, size, "--group is missing: scheme mcast has one (castbench --help)");
    }
    if (!has_group && plan->n_groups) {
        return refuse(error, size, "--group %s: only scheme mcast has one (castbench --help)",
                      base->groups[0]);
    }
    if (has_group && base->qps != plan->n_groups) {
        return refuse(error, size, "-q %u: there %s %u group%s, and each has one QP", base->qps,
                      plan->n_groups == 1 ? "is" : "are", plan->n_groups,
                      plan->n_groups == 1 ? "" : "s");
    }
    return true;
}

static bool
check_replicas(const struct plan *plan, char *error, size_t size)
{
    unsigned n_receivers = plan->base.n_receivers, least = n_receivers;

    for (unsigned i = 0; i < plan->n_replica_counts; i++) {
        unsigned n = plan->replica_counts[i];

        if (n > n_receivers) {
            return refuse(error, size, "--replicas %u: there %s %u receiver%s", n,
                          n_receivers == 1 ? "is" : "are", n_receivers,
                          n_receivers == 1 ? "" : "s");
        }
        least = n < least ? n : least;
    }
    return plan->quorum <= least
           || refuse(error, size, "--quorum %u: of %u replica%s", plan->quorum, least,
                     least == 1 ? "" : "s");
}

static bool
check_sizes(const struct plan *plan, char *error, size_t size)
{
    const struct run_options *base = &plan->base;

    for (unsigned i = 0; i < plan->n_sizes; i++) {
        uint32_t block = plan->sizes[i];
        unsigned n_pieces = (block - 1) / base->chunk + 1;

        if (!base->file && !content_init(base->pattern, block, 0, base->region_max, 0).n_slots) {
            return refuse(error, size, "-s %" PRIu32 ": larger than the region of %zu bytes%s",
                          block, base->region_max,
                          base->pattern == PATTERN_APPEND ? " behind the log's tail" : "");
        }
        if (plan_has_scheme(plan, SCHEME_CHAIN_PIPE) && n_pieces > MAX_PIECES) {
            return refuse(error, size,
                          "--chunk %" PRIu32 ": a block of %" PRIu32 " bytes would be %u "
                          "chunks, more than %u",
                          base->chunk, block, n_pieces, MAX_PIECES);
        }
    }
    return true;
}

static bool
on_stdout(const char *path)
{
    return path && out_file_is_stdout(path);
}

/* Checks options that exclude each other. */
static bool
check_content(const struct plan *plan, char *error, size_t size)
{
    const struct run_options *base = &plan->base;

    if (base->count && base->duration) {
        return refuse(error, size, "-n and -D: only one of them");
    }
    if (base->file && base->duration) {
        return refuse(error, size, "--file and -D: only one of them");
    }
    if (base->file && base->pattern != PATTERN_SEQ) {
        return refuse(error, size, "--file and --pattern %s: a file is sent in sequence",
                      pattern_name(base->pattern));
    }
    if (base->store && base->out) {
        return refuse(error, size, "--store and --out: only one of them");
    }
    if (plan->json && plan->csv
        && (!strcmp(plan->json, plan->csv) || (on_stdout(plan->json) && on_stdout(plan->csv)))) {
        return refuse(error, size, "--json and --csv: both are %s", plan->csv);
    }
    return !base->show_interval || (!on_stdout(plan->json) && !on_stdout(plan->csv))
           || refuse(error, size, "--interval: standard output is for %s",
                     on_stdout(plan->json) ? "JSON" : "CSV");
}

/* Events of members: what they need, and what cannot be told of blocks then. */
static bool
check_events(const struct plan *plan, char *error, size_t size)
{
    const struct run_options *base = &plan->base;
    const struct event *last = base->n_events ? &base->events[base->n_events - 1] : NULL;
    struct life lives[MAX_LIVES];

    if (!last) {
        return true;
    }
    for (unsigned i = 0; i < plan->n_schemes; i++) {
        if (plan->schemes[i] != SCHEME_MCAST) {
            return refuse(error, size, "--event: scheme %s has no members that come and go",
                          scheme_name(plan->schemes[i]));
        }
    }
    if (!base->duration) {
        return refuse(error, size, "--event: -D is missing: it says how long the run lasts");
    }
    if (last->ms >= (uint64_t) base->duration * 1000) {
        return refuse(error, size, "--event %g:%s:%s: the run lasts %u s (-D)", last->ms / 1e3,
                      event_kind_name(last->kind), last->host, base->duration);
    }
    if (plan->n_groups > 1) {
        return refuse(error, size, "--event: must have one group, there are %u", plan->n_groups);
    }
    if (plan->n_replica_counts != 1 || plan->replica_counts[0] != base->n_receivers) {
        return refuse(error, size, "--event and --replicas: only one of them");
    }
    if (base->op == OP_SEND) {
        return refuse(error, size,
                      "--event: must be write or write-imm: a late receiver does not "
                      "know which block its first SEND brings, and so where it goes");
    }
    if (base->pattern == PATTERN_APPEND) {
        return refuse(error, size,
                      "--event and --pattern append: a member may begin between a "
                      "record and its tail");
    }
    if (base->store) {
        return refuse(error, size, "--event and --store: only one of them");
    }
    for (unsigned i = 0; i < plan->n_sizes; i++) {
        if (plan->sizes[i] < CONTENT_FIND_MIN) {
            return refuse(error, size,
                          "--event and -s %" PRIu32 ": blocks of less than %d bytes "
                          "cannot be told apart",
                          plan->sizes[i], CONTENT_FIND_MIN);
        }
    }
    char why[256];
    return lives_of(base->receivers, base->n_receivers, base->events, base->n_events, lives, why,
                    sizeof why)
           || refuse(error, size, "--event%s", why);
}

/* RDMA-CM: what it needs, and what it decides by itself. */
static bool
check_rdma_cm(const struct plan *plan, char *error, size_t size)
{
    const struct run_options *base = &plan->base;

    for (unsigned i = 0; base->rdma_cm && i < plan->n_schemes; i++) {
        if (plan->schemes[i] != SCHEME_MCAST) {
            return refuse(error, size, "-R: scheme %s has no group that could be connected",
                          scheme_name(plan->schemes[i]));
        }
    }
    if (base->rdma_cm && base->n_events) {
        return refuse(error, size, "-R and --event: only one of them");
    }
    if (base->rdma_cm && base->gid_index >= 0) {
        return refuse(error, size, "-R and -x: only one of them, RDMA-CM finds the GID");
    }
    return base->port + base->qps - 1 <= UINT16_MAX
           || refuse(error, size, "-p %u: %u groups need as many ports", base->port, base->qps);
}

/* Receivers on other machines: what goes with them. */
static bool
check_servers(const struct plan *plan, char *error, size_t size)
{
    const struct run_options *base = &plan->base;
    const char *host = NULL;

    for (unsigned i = 0; i < base->n_receivers; i++) {
        host = base->servers[i] ? base->receivers[i] : host;
    }
    for (unsigned i = 0; host && i < plan->n_schemes; i++) {
        enum scheme s = plan->schemes[i];

        if (s != SCHEME_MCAST && s != SCHEME_UNICAST && s != SCHEME_UNICAST_SERIAL) {
            return refuse(error, size,
                          "--receivers %s=...: scheme %s has receivers that pass blocks on, which "
                          "must be on this machine",
                          host, scheme_name(s));
        }
    }
    const struct {
        const char *name;
        bool given;
    } local[] = {{"--event", base->n_events},
                 {"--file", base->file},
                 {"--out", base->out},
                 {"--store", base->store}};
    for (unsigned i = 0; host && i < sizeof local / sizeof local[0]; i++) {
        if (local[i].given) {
            return refuse(error, size,
                          "%s and --receivers %s=...: all receivers must be on this "
                          "machine",
                          local[i].name, host);
        }
    }
    return true;
}

static bool
check_fail_if(const struct plan *plan, char *error, size_t size)
{
    for (unsigned i = 0; i < plan->n_fail_if; i++) {
        const struct fail_if *f = &plan->fail_if[i];

        if (f->has_scheme && !plan_has_scheme(plan, f->scheme)) {
            return refuse(error, size, "--fail-if %s: there is no run with scheme %s", f->text,
                          scheme_name(f->scheme));
        }
        if (f->metric == METRIC_UPLINK && !plan->base.counted.n_devices) {
            return refuse(error, size, "--fail-if %s: --count-bytes is missing", f->text);
        }
        if (f->metric == METRIC_OVERDUE && plan->base.rate <= 0) {
            return refuse(error, size, "--fail-if %s: --rate is missing", f->text);
        }
    }
    return true;
}

bool
plan_check(const struct plan *plan, char *error, size_t size)
{
    return check_hosts(plan, error, size) && check_replicas(plan, error, size)
           && check_sizes(plan, error, size) && check_content(plan, error, size)
           && check_events(plan, error, size) && check_rdma_cm(plan, error, size)
           && check_servers(plan, error, size) && check_fail_if(plan, error, size);
}

unsigned
plan_n_cells(const struct plan *plan)
{
    return plan->n_sizes * plan->n_replica_counts * plan->n_schemes;
}

unsigned
plan_n_runs(const struct plan *plan)
{
    return plan->repeat * plan_n_cells(plan);
}

struct cell
plan_cell(const struct plan *plan, unsigned i)
{
    struct cell cell;

    cell.scheme = plan->schemes[i % plan->n_schemes];
    i /= plan->n_schemes;
    cell.n_replicas = plan->replica_counts[i % plan->n_replica_counts];
    i /= plan->n_replica_counts;
    cell.size = plan->sizes[i % plan->n_sizes];
    cell.repeat = i / plan->n_sizes;
    return cell;
}

struct run_options
plan_run_options(const struct plan *plan, const struct cell *cell)
{
    struct run_options o = plan->base;

    o.scheme = cell->scheme;
    o.size = cell->size;
    o.n_receivers = cell->n_replicas;
    o.quorum = plan->quorum ? plan->quorum : cell->n_replicas / 2 + 1;
    return o;
}
