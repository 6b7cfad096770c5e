/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON of runs (see report.h).  It has a version: a field may be added, but the meaning of one
 * changes only with a new version.
 */
#include "bench/castbench/report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench/castbench/clock.h"
#include "bench/castbench/out-file.h"
#include "version.h"

#define JSON_VERSION 2
#define DIGITS       JSON_REAL_PRECISION(12) /* nanoseconds of 18 minutes, in microseconds. */

struct json_report {
    json_t *command;
    json_t *started;
    json_t *runs;
};

static void __attribute__((noreturn)) out_of_memory(void)
{
    fprintf(stderr, "castbench: out of memory\n");
    exit(2);
}

static json_t *
must(json_t *value)
{
    if (!value) {
        out_of_memory();
    }
    return value;
}

static void
set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, must(value))) {
        out_of_memory();
    }
}

static void
append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, must(value))) {
        out_of_memory();
    }
}

static json_t *
array(void)
{
    return must(json_array());
}

static json_t *
object(void)
{
    return must(json_object());
}

/* JSON is UTF-8.  Text that is not, a file's name for example, loses all that is not ASCII. */
static json_t *
text_len(const char *s, size_t len)
{
    json_t *value = json_stringn(s, len);

    if (!value) {
        char *ascii = strndup(s, len);
        for (char *p = ascii; p && *p; p++) {
            *p = (signed char) *p < 0 ? '?' : *p;
        }
        value = ascii ? json_string(ascii) : NULL;
        free(ascii);
    }
    return value;
}

static json_t *
text(const char *s)
{
    return s ? text_len(s, strlen(s)) : json_null();
}

static json_t *
count(uint64_t n)
{
    return json_integer((json_int_t) n);
}

/* A number that is not known is null; a whole one has no point. */
static json_t *
number(double v)
{
    if (!isfinite(v)) {
        return json_null();
    }
    return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t) v) : json_real(v);
}

static json_t *
microseconds(uint64_t ns)
{
    return number((double) ns / 1e3);
}

/* 0 is not known. */
static json_t *
milliseconds(uint64_t ns)
{
    return ns ? number((double) ns / 1e6) : json_null();
}

/* Those that were asked for. */
static json_t *
percentiles(const struct histogram *h, const struct percentiles *p)
{
    json_t *list = array();

    for (unsigned i = 0; i < p->n; i++) {
        json_t *one = array();
        append(one, number(p->percent[i]));
        append(one, microseconds(histogram_percentile(h, p->percent[i])));
        append(list, one);
    }
    return list;
}

static json_t *
latency(const struct histogram *h, const struct run_options *options, bool with_buckets)
{
    if (!h->n) {
        return json_null();
    }
    json_t *l = object();
    set(l, "n", count(h->n));
    set(l, "mean_us", number((double) h->sum / (double) h->n / 1e3));
    set(l, "min_us", microseconds(h->min));
    set(l, "p50_us", microseconds(histogram_percentile(h, 50)));
    set(l, "p90_us", microseconds(histogram_percentile(h, 90)));
    set(l, "p95_us", microseconds(histogram_percentile(h, 95)));
    set(l, "p99_us", microseconds(histogram_percentile(h, 99)));
    set(l, "p999_us", microseconds(histogram_percentile(h, 99.9)));
    set(l, "max_us", microseconds(h->max));
    if (options->percentiles.n) {
        set(l, "percentiles", percentiles(h, &options->percentiles));
    }
    if (with_buckets) {
        json_t *buckets = array();
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
            if (h->counts[i]) {
                json_t *bucket = array();
                append(bucket, microseconds(histogram_low(i)));
                append(bucket, count(h->counts[i]));
                append(buckets, bucket);
            }
        }
        set(l, "histogram", buckets);
    }
    return l;
}

static json_t *
device(const struct device_count *d)
{
    json_t *o = object();

    set(o, "device", text(d->where));
    set(o, "tx_bytes", count(d->tx_bytes));
    set(o, "tx_packets", count(d->tx_packets));
    return o;
}

static json_t *
cpu(const struct totals *t, double unit)
{
    json_t *o = object();

    set(o, "source", number(t->cpu_source / unit));
    set(o, "fabric", number(t->cpu_fabric / unit));
    set(o, "receivers", number(t->cpu_receivers / unit));
    set(o, "busy", number(t->cpu_busy / unit));
    return o;
}

static json_t *
index_of(int i)
{
    return i < 0 ? json_null() : count((uint64_t) i);
}

/* What came when: only of runs with events. */
static void
set_life(json_t *o, const struct replica *r)
{
    set(o, "begin", index_of(r->begin));
    set(o, "end", index_of(r->end));
    set(o, "first_psn", r->has_first ? count(r->first_psn) : json_null());
    set(o, "first_message", r->end_block > r->first_block ? count(r->first_block) : json_null());
    set(o, "last_message", r->end_block > r->first_block ? count(r->end_block - 1) : json_null());
}

static json_t *
events(const struct run_options *options, const struct run_result *r)
{
    json_t *list = array();

    for (unsigned i = 0; i < options->n_events; i++) {
        const struct event *e = &options->events[i];
        const struct event_result *result = &r->events[i];
        json_t *o = object();

        set(o, "at_s", number(e->ms / 1e3));
        set(o, "event", text(event_kind_name(e->kind)));
        set(o, "host", text(e->host));
        set(o, "made_ms", result->is_made ? count(result->made_ms) : json_null());
        set(o, "registered_ms", result->registered_ms ? count(result->registered_ms) : json_null());
        set(o, "state", result->state[0] ? text(result->state) : json_null());
        set(o, "told_ms", result->state[0] ? count(result->told_ms) : json_null());
        set(o, "status", result->status[0] ? text(result->status) : json_null());
        append(list, o);
    }
    return list;
}

static json_t *
goodput(const struct run_result *r)
{
    json_t *list = array();

    for (unsigned second = 0; !isnan(goodput_of_second(r, second)); second++) {
        append(list, number(goodput_of_second(r, second)));
    }
    return list;
}

static void
set_gap(json_t *o, const struct gap *gap)
{
    set(o, "longest_gap_us", gap->longest ? microseconds(gap->longest) : json_null());
    set(o, "longest_gap_at_ms", gap->longest ? number((double) gap->began / 1e6) : json_null());
}

/* NULL: the receiver is on this machine. */
static const char *
server_of(const struct run_options *options, const char *host)
{
    for (unsigned i = 0; i < options->n_receivers; i++) {
        if (!strcmp(options->receivers[i], host)) {
            return options->servers[i];
        }
    }
    return NULL;
}

static json_t *
replica(const struct replica *r, const struct run_result *result, const struct run_options *options)
{
    bool is_bad = result->complete && r->bytes_ok != result->region_len;
    json_t *o = object();

    set(o, "host", text(r->host));
    if (server_of(options, r->host)) {
        set(o, "server", text(server_of(options, r->host)));
    }
    set(o, "bytes_ok", count(r->bytes_ok));
    set(o, "first_bad", is_bad ? count(r->first_bad) : json_null());
    if (is_bad && r->why[0]) {
        set(o, "why", text(r->why));
    }
    set(o, "confirmed", latency(&r->confirmed, options, false));
    set(o, "arrived", latency(&r->arrived, options, false));
    set_gap(o, &r->gap);
    set(o, "cpu_s", number(r->host_count.cpu_seconds));
    if (options->rdma_cm) {
        set(o, "connect_ms", milliseconds(r->connect_ns));
    }
    set(o, "repeated_packets",
        r->host_count.has_rdma ? count(r->host_count.repeated) : json_null());
    if (options->n_events) {
        set_life(o, r);
    }
    return o;
}

/* Of each sample of the timeline; nothing if nobody has answered. */
static json_t *
rates(const struct run_result *r)
{
    json_t *list = array();

    for (unsigned i = 0; i < r->n_samples; i++) {
        const struct rate_sample *s = &r->samples[i].rate;
        json_t *o;

        if (!s->known) {
            continue;
        }
        o = object();
        set(o, "ms", count(r->samples[i].ms));
        set(o, "mbit_per_s", s->rate ? number((double) s->rate / 1e6) : json_null());
        set(o, "cuts", count(s->n_cuts));
        set(o, "cause", s->cause[0] ? text(s->cause) : json_null());
        set(o, "node", s->node[0] ? text(s->node) : json_null());
        append(list, o);
    }
    return list;
}

static void
set_lists(json_t *o, const struct run_options *options, const struct run_result *r)
{
    json_t *timeline = array(), *lost = array(), *replicas = array();

    for (unsigned i = 0; i < r->n_samples; i++) {
        json_t *sample = array();
        append(sample, count(r->samples[i].ms));
        append(sample, count(r->samples[i].bytes));
        append(timeline, sample);
    }
    for (unsigned i = 0; i < r->n_lost; i++) {
        json_t *one = object();
        set(one, "host", text(r->lost[i].host));
        set(one, "why", text(r->lost[i].why));
        set(one, "after_ms", count(r->lost[i].after_ms));
        append(lost, one);
    }
    for (unsigned i = 0; i < r->n_replicas; i++) {
        append(replicas, replica(&r->replicas[i], r, options));
    }
    set(o, "timeline", timeline);
    set(o, "rates", rates(r));
    set(o, "lost", lost);
    set(o, "replicas", replicas);
    if (options->n_events) {
        set(o, "events", events(options, r));
        set(o, "goodput_mb_per_s", goodput(r));
    }
}

static void
set_counted(json_t *o, const struct run_options *options, const struct run_result *r)
{
    struct totals t = totals_of(options, r);
    json_t *counted = array();

    for (unsigned i = 0; i < r->machine.n_devices; i++) {
        append(counted, device(&r->machine.devices[i]));
    }
    set(o, "packets", count(r->packets));
    set(o, "repeated_packets", number(t.repeated_packets));
    set(o, "retries", number(t.retries));
    set(o, "rnr_naks", number(t.rnr_naks));
    set(o, "resent_packets", number(t.resent_packets));
    set(o, "uplink", t.uplink ? device(t.uplink) : json_null());
    set(o, "counted", counted);
    set(o, "counted_bytes", number(t.counted_bytes));
    set(o, "cpu_s", cpu(&t, 1));
    /* If nothing was written, the quotient is infinite, and counts as not known. */
    set(o, "cpu_s_per_gb", cpu(&t, (double) r->bytes / 1e9));
}

static void
set_cell(json_t *o, const struct cell *cell)
{
    set(o, "scheme", text(scheme_name(cell->scheme)));
    set(o, "replicas_n", count(cell->n_replicas));
    set(o, "size", count(cell->size));
}

void
json_report_run(struct json_report *report, const struct row *row,
                const struct run_options *options, const struct run_result *r)
{
    json_t *o = object(), *latencies = object();

    set_cell(o, &row->cell);
    set(o, "repeat", count(row->cell.repeat));
    set(o, "started_ms", count(row->started_ms));
    set(o, "ok", json_boolean(row->outcome == OUTCOME_OK));
    if (row->error[0]) {
        set(o, "error", text(row->error));
    }
    set(o, "count", count(r->count));
    set(o, "bytes", count(r->bytes));
    set(o, "overdue", number(row->values[METRIC_OVERDUE]));
    set(o, "region_len", count(r->region_len));
    set(o, "mtu", count(r->mtu));
    if (options->scheme == SCHEME_MCAST) {
        json_t *epochs = array();
        for (unsigned i = 0; i < options->qps; i++) {
            append(epochs, count(r->epochs[i]));
        }
        set(o, "epochs", epochs);
    }
    if (options->rdma_cm) {
        set(o, "connect_ms", milliseconds(r->connect_ns));
    }
    /* Whole, since DIGITS would not do. */
    set(o, "first_block_at_ms",
        r->first_block_at ? count(r->first_block_at / NS_PER_MS) : json_null());
    set(o, "seconds", r->seconds > 0 ? number(r->seconds) : json_null());
    set(o, "mb_per_s", number(row->values[METRIC_MB_PER_S]));
    set(o, "messages_per_s", number(row->values[METRIC_MESSAGES_PER_S]));
    set(latencies, "any", latency(&r->latency[RULE_ANY], options, false));
    set(latencies, "quorum", latency(&r->latency[RULE_QUORUM], options, false));
    set(latencies, "all", latency(&r->latency[RULE_ALL], options, true));
    set(o, "latency", latencies);
    set(o, "quorum", count(options->quorum));
    set(o, "skew", r->has_skew ? latency(&r->skew, options, false) : json_null());
    set_gap(o, &r->gap);
    set_counted(o, options, r);
    set_lists(o, options, r);
    append(report->runs, o);
}

struct json_report *
json_report_new(int argc, char *argv[])
{
    struct json_report *report = calloc(1, sizeof *report);
    char now[sizeof "YYYY-MM-DDThh:mm:ssZ"] = "";
    time_t t = time(NULL);
    struct tm tm;

    if (!report) {
        out_of_memory();
    }
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    report->started = must(text(now));
    report->runs = array();
    report->command = array();
    for (int i = 0; i < argc; i++) {
        append(report->command, text(argv[i]));
    }
    return report;
}

static json_t *
host(void)
{
    json_t *o = object();
    struct utsname u = {.nodename = ""};

    uname(&u);
    set(o, "name", text(u.nodename));
    set(o, "kernel", text(u.release));
    set(o, "machine", text(u.machine));
    set(o, "cpus", count((uint64_t) sysconf(_SC_NPROCESSORS_ONLN)));
    return o;
}

static json_t *
names(const char *const list[], unsigned n)
{
    json_t *a = array();

    for (unsigned i = 0; i < n; i++) {
        append(a, text(list[i]));
    }
    return a;
}

/* As the option has them. */
static json_t *
asked_percentiles(const struct percentiles *p)
{
    char list[MAX_PERCENTILES * 24] = "";
    size_t n = 0;

    for (unsigned i = 0; i < p->n; i++) {
        n += (size_t) snprintf(list + n, sizeof list - n, "%s%.10g", i ? "," : "", p->percent[i]);
    }
    return p->n ? text(list) : json_null();
}

static json_t *
options_of(const struct plan *plan)
{
    const struct run_options *base = &plan->base;
    json_t *o = object();

    set(o, "pattern", text(pattern_name(base->pattern)));
    set(o, "count", base->count ? count(base->count) : json_null());
    set(o, "depth", count(base->depth));
    set(o, "qps", count(base->qps));
    set(o, "duration_s", base->duration ? count(base->duration) : json_null());
    set(o, "warmup", count(base->warmup));
    set(o, "rate", base->rate > 0 ? number(base->rate) : json_null());
    set(o, "chunk", count(base->chunk));
    set(o, "quorum", plan->quorum ? count(plan->quorum) : json_null());
    set(o, "mtu", base->mtu ? count(base->mtu) : json_null());
    set(o, "qp_timeout", count(base->qp_timeout));
    set(o, "rdma_cm", base->rdma_cm ? json_true() : json_null());
    set(o, "poll", base->poll ? json_true() : json_null());
    set(o, "percentiles", asked_percentiles(&base->percentiles));
    set(o, "seed", count(base->seed));
    set(o, "file", text(base->file));
    set(o, "store", text(base->store));
    set(o, "region_max", count(base->region_max));
    set(o, "repeat", count(plan->repeat));
    return o;
}

static json_t *
labels(const struct plan *plan)
{
    json_t *o = object();

    for (unsigned i = 0; i < plan->n_labels; i++) {
        json_t *key = must(text_len(plan->labels[i].key, plan->labels[i].key_len));
        set(o, json_string_value(key), text(plan->labels[i].value));
        json_decref(key);
    }
    return o;
}

static json_t *
summaries(const struct matrix *m)
{
    json_t *a = array();
    struct summary s;

    for (unsigned i = 0; i < plan_n_cells(m->plan) && matrix_summary(m, i, &s); i++) {
        json_t *o = object();
        set_cell(o, &s.cell);
        set(o, "runs", count(s.n_runs));
        for (unsigned metric = 0; metric < N_METRICS; metric++) {
            const struct spread *spread = &s.values[metric];
            json_t *value = json_null();

            if (!isnan(spread->median)) {
                value = object();
                set(value, "median", number(spread->median));
                set(value, "min", number(spread->min));
                set(value, "max", number(spread->max));
            }
            set(o, metric_name((enum metric) metric), value);
        }
        append(a, o);
    }
    return a;
}

/* "run" is the index of the cell in "summary", and of the cell's first run in "runs". */
static json_t *
conditions(const struct matrix *m)
{
    json_t *a = array();
    struct verdict v;

    for (unsigned i = 0; i < m->plan->n_fail_if; i++) {
        for (unsigned cell = 0; cell < plan_n_cells(m->plan); cell++) {
            if (matrix_verdict(m, i, cell, &v)) {
                json_t *o = object();
                set(o, "condition", text(v.condition->text));
                set(o, "value", number(v.value));
                set(o, "failed", json_boolean(v.holds));
                set(o, "run", count(cell));
                append(a, o);
            }
        }
    }
    return a;
}

/* Writes what was asked for, or null if the command line is wrong and nobody knows. */
static void
set_plan(json_t *root, const struct plan *plan)
{
    const struct run_options *base = plan ? &plan->base : NULL;

    set(root, "labels", plan ? labels(plan) : json_null());
    set(root, "test", plan ? text(operation_name(base->op)) : json_null());
    set(root, "source", plan ? text(base->source) : json_null());
    set(root, "receivers", plan ? names(base->receivers, base->n_receivers) : json_null());
    set(root, "groups", plan ? names(base->groups, plan->n_groups) : json_null());
    set(root, "options", plan ? options_of(plan) : json_null());
}

/* Writes a line for each key and for each run. */
static void
dump(FILE *f, json_t *root)
{
    const char *key, *separator = "{";
    json_t *value, *element;
    size_t i;

    json_object_foreach(root, key, value)
    {
        fprintf(f, "%s\n  \"%s\": ", separator, key);
        if (!strcmp(key, "runs") && json_array_size(value)) {
            json_array_foreach(value, i, element)
            {
                fputs(i ? ",\n    " : "[\n    ", f);
                json_dumpf(element, f, DIGITS);
            }
            fputs("\n  ]", f);
        } else {
            json_dumpf(value, f, JSON_ENCODE_ANY | DIGITS);
        }
        separator = ",";
    }
    fputs("\n}\n", f);
}

int
json_report_write(struct json_report *report, const struct matrix *m, const char *path)
{
    json_t *root = object();
    struct out_file file;

    set(root, "castbench", count(JSON_VERSION));
    set(root, "ok", json_boolean(matrix_outcome(m) == OUTCOME_OK));
    if (m->error[0]) {
        set(root, "error", text(m->error));
    }
    set(root, "started", report->started);
    set(root, "command", report->command);
    set(root, "host", host());
    set(root, "version", text(ROCECAST_VERSION));
    set_plan(root, m->plan);
    set(root, "runs", report->runs);
    set(root, "summary", m->plan ? summaries(m) : array());
    set(root, "fail_if", m->plan ? conditions(m) : array());
    free(report);

    int error = out_file_open(&file, path);
    if (!error) {
        dump(file.stream, root);
        error = out_file_close(&file);
    }
    json_decref(root);
    return error;
}
