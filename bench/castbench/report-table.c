/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of runs (see report.h), in perftest's manner.
 */
#include "bench/castbench/report.h"
#include "lib/printable.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* How many decimals of 'v' say something. */
static int
decimals(double v)
{
    return v < 10 ? 3 : v < 100 ? 2 : v < 10000 ? 1 : 0;
}

/* Prints a number; "-": it is not known. */
static void
put_number(int width, double v)
{
    if (isfinite(v)) {
        printf("  %*.*f", width, decimals(v), v);
    } else {
        printf("  %*s", width, "-");
    }
}

static const char *
size_text(uint32_t size, char *buf, size_t buf_size)
{
    unsigned shift = size % (1u << 20) == 0 ? 20 : size % (1u << 10) == 0 ? 10 : 0;

    snprintf(buf, buf_size, "%" PRIu32 " %s", size >> shift,
             shift == 20 ? "MiB"
             : shift     ? "KiB"
                         : "bytes");
    return buf;
}

void
table_begin(const struct plan *plan, unsigned i, const struct cell *cell)
{
    char size[32];

    if (plan_n_runs(plan) > 1 && isatty(STDERR_FILENO)) {
        fprintf(stderr, "run %u of %u: %s %u replica%s %s ...\n", i + 1, plan_n_runs(plan),
                scheme_name(cell->scheme), cell->n_replicas, cell->n_replicas == 1 ? "" : "s",
                size_text(cell->size, size, sizeof size));
    }
}

void
table_end(const struct run_options *o)
{
    if (isatty(STDERR_FILENO) && !o->show_interval) {
        fprintf(stderr, "\r%40s\r", "");
    }
}

static void
table_counted(const struct run_options *o, const struct run_result *r)
{
    struct totals t = totals_of(o, r);

    if (!r->machine.n_devices) {
        return;
    }
    if (r->machine.n_devices == 1) {
        printf(" %s sent", r->machine.devices[0].where);
    } else {
        printf(" %u devices sent together", r->machine.n_devices);
    }
    printf(" %.0f bytes, %.3f of the %" PRIu64 " bytes written\n", t.counted_bytes,
           t.counted_bytes / (double) r->bytes, r->bytes);
}

/* The replica that the event has begun; NULL: it began none. */
static const struct replica *
begun_by(const struct run_result *r, unsigned event)
{
    for (unsigned i = 0; i < r->n_replicas; i++) {
        if (r->replicas[i].begin == (int) event) {
            return &r->replicas[i];
        }
    }
    return NULL;
}

static void
table_event(const struct run_options *o, const struct run_result *r, unsigned k)
{
    const struct event *e = &o->events[k];
    const struct event_result *result = &r->events[k];
    const struct replica *replica = begun_by(r, k);

    printf("  %.3f s %s %s: ", result->made_ms / 1e3, event_kind_name(e->kind), e->host);
    if (result->registered_ms) {
        printf("registered %.3f s, ", (result->registered_ms - result->made_ms) / 1e3);
    }
    if (result->state[0]) {
        printf("%s %.3f s later", result->state, (result->told_ms - result->made_ms) / 1e3);
    } else {
        printf("the registry has said nothing");
    }
    if (replica && replica->has_first) {
        printf(", from message %" PRIu64 " (PSN %" PRIu32 ") on", replica->first_block,
               replica->first_psn);
    }
}

/* Goodput of each second, and the events that were made in it. */
static void
table_events(const struct run_options *o, const struct run_result *r)
{
    unsigned k = 0;

    printf("   second       MB/s\n");
    for (unsigned second = 0; k < o->n_events || isfinite(goodput_of_second(r, second)); second++) {
        unsigned n = 0;

        printf(" %8u", second);
        put_number(9, goodput_of_second(r, second));
        for (; k < o->n_events && (!r->events[k].is_made || r->events[k].made_ms / 1000 == second);
             k++) {
            if (r->events[k].is_made) {
                printf("%*s", n++ ? 20 : 0, "");
                table_event(o, r, k);
                putchar('\n');
            }
        }
        if (!n) {
            putchar('\n');
        }
    }
}

/* With events: which messages a replica has. */
static const char *
messages_of(const struct run_options *o, const struct replica *r, char *text, size_t size)
{
    text[0] = '\0';
    if (o->n_events && r->first_block == r->end_block) {
        snprintf(text, size, ", no messages");
    } else if (o->n_events) {
        snprintf(text, size, ", messages %" PRIu64 " to %" PRIu64, r->first_block,
                 r->end_block - 1);
    }
    return text;
}

static void
table_replica(const struct run_options *o, const struct replica *replica,
              const struct run_result *r, bool only_bad)
{
    char text[64];

    if (replica->bytes_ok != r->region_len) {
        printable_put(
            stdout, " ", "%s: %s%zu of %zu bytes right, first difference at offset %zu%s%s",
            replica->host, run_find_lost(r, replica->host) ? "lost, " : "", replica->bytes_ok,
            r->region_len, replica->first_bad, replica->why[0] ? ": " : "", replica->why);
    } else if (!only_bad) {
        printable_put(stdout, " ", "%s: all %zu bytes right%s", replica->host, r->region_len,
                      messages_of(o, replica, text, sizeof text));
    }
}

/* How long connecting has taken. */
static void
table_connected(const struct run_result *r)
{
    uint64_t least = UINT64_MAX, most = 0;

    for (unsigned i = 0; i < r->n_replicas; i++) {
        uint64_t ns = r->replicas[i].connect_ns;

        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    printf(" connected by RDMA-CM: the source in %.1f ms, receivers in %.1f to %.1f ms\n",
           (double) r->connect_ns / 1e6, (double) least / 1e6, (double) most / 1e6);
}

/* The percentiles of the table's columns. */
static struct percentiles
shown_percentiles(const struct run_options *o)
{
    return o->percentiles.n ? o->percentiles
                            : (struct percentiles){.n = 3, .percent = {50, 99, 99.9}};
}

static void
table_head(const struct percentiles *p)
{
    printf(" scheme          replicas   #bytes  #iterations  depth       MB/s      msg/s");
    for (unsigned i = 0; i < p->n; i++) {
        char name[32];

        snprintf(name, sizeof name, "p%.10g[us]", p->percent[i]);
        printf("  %9s", name);
    }
    printf("    max[us]     uplink  fwd[s/GB]\n");
}

void
table_run(const struct plan *plan, unsigned i, const struct row *row, const struct run_options *o,
          const struct run_result *r)
{
    const struct percentiles shown = shown_percentiles(o);
    const struct histogram *all = &r->latency[RULE_ALL];
    bool is_single = plan_n_runs(plan) == 1;

    if (!r->complete) {
        return;
    }
    if (!i) {
        table_head(&shown);
    }
    printf(" %-14s  %8u  %7" PRIu32 "  %11" PRIu64 "  %5u", scheme_name(o->scheme),
           row->cell.n_replicas, o->size, r->count, o->depth);
    put_number(9, row->values[METRIC_MB_PER_S]);
    put_number(9, row->values[METRIC_MESSAGES_PER_S]);
    for (unsigned k = 0; k < shown.n; k++) {
        put_number(9, all->n ? (double) histogram_percentile(all, shown.percent[k]) / 1e3 : NAN);
    }
    put_number(9, row->values[METRIC_MAX]);
    put_number(9, row->values[METRIC_UPLINK_PER_BYTE]);
    put_number(9, row->values[METRIC_CPU_FABRIC]);
    putchar('\n');
    if (r->overdue) {
        printf(" %" PRIu64
               " more blocks were due and had not begun when the time was over: latency "
               "lacks them\n",
               r->overdue);
    }
    if (o->rdma_cm) {
        table_connected(r);
    }
    if (is_single && r->gap.longest) {
        printf(" longest gap between completions: %.3f ms, %.3f s after the first block's start\n",
               (double) r->gap.longest / 1e6, (double) r->gap.began / 1e9);
    }
    if (is_single) {
        table_counted(o, r);
    }
    if (o->n_events) {
        table_events(o, r);
    }
    for (unsigned k = 0; k < r->n_replicas; k++) {
        table_replica(o, &r->replicas[k], r, !is_single);
    }
    fflush(stdout);
}

void
table_summary(const struct matrix *m)
{
    static const struct {
        const char *name;
        enum metric metric;
    } columns[] = {
        {"MB/s", METRIC_MB_PER_S},        {"p50[us]", METRIC_P50},
        {"p99[us]", METRIC_P99},          {"uplink", METRIC_UPLINK_PER_BYTE},
        {"fwd[s/GB]", METRIC_CPU_FABRIC},
    };
    const size_t n_columns = sizeof columns / sizeof columns[0];
    struct summary s;

    if (m->plan->repeat == 1 || !matrix_summary(m, 0, &s)) {
        return;
    }
    printf("\n Medians of the repeats, and from the lowest to the highest:\n"
           " scheme          replicas   #bytes  runs");
    for (size_t k = 0; k < n_columns; k++) {
        printf("  %24s", columns[k].name);
    }
    putchar('\n');
    for (unsigned i = 0; i < plan_n_cells(m->plan) && matrix_summary(m, i, &s); i++) {
        printf(" %-14s  %8u  %7" PRIu32 "  %4u", scheme_name(s.cell.scheme), s.cell.n_replicas,
               s.cell.size, s.n_runs);
        for (size_t k = 0; k < n_columns; k++) {
            const struct spread *v = &s.values[columns[k].metric];
            int n = decimals(v->median);
            char text[64] = "-";

            if (isfinite(v->median)) {
                snprintf(text, sizeof text, "%.*f (%.*f..%.*f)", n, v->median, n, v->min, n,
                         v->max);
            }
            printf("  %24s", text);
        }
        putchar('\n');
    }
}
