/* SPDX-License-Identifier: Apache-2.0
 *
 * What is printed and written of a measurement (see report.h).
 */
#include <config.h>

#include "bench/castscale/report.h"
#include "ctl/registry/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "openvswitch/json.h"
#include "util.h"
#include "version.h"

#define REPORT_VERSION 1

static const struct {
    const char *key, *text;
} measures[N_MEASURES] = {
#define MEASURE(NAME, KEY, TEXT) {KEY, TEXT},
    MEASURES(MEASURE)
#undef MEASURE
};

static const char *const parts[N_PARTS] = {
    [PART_CASTD] = "castd",
    [PART_REGISTRY] = "registry",
    [PART_AGENTS] = "agents",
};

void
samples_add(struct samples *s, double msec)
{
    if (s->n == s->allocated) {
        s->msec = x2nrealloc(s->msec, &s->allocated, sizeof *s->msec);
    }
    s->msec[s->n++] = msec;
}

void
step_uninit(struct step *step)
{
    for (size_t i = 0; i < N_MEASURES; i++) {
        free(step->samples[i].msec);
    }
}

static int
compare_doubles(const void *a_, const void *b_)
{
    const double *a = a_, *b = b_;

    return *a < *b ? -1 : *a > *b;
}

struct spread {
    double p50, p90, p99, max;
};

/* The least sample that so many percent of all do not exceed; 'msec' is in order. */
static double
percentile(const double *msec, size_t n, double percent)
{
    size_t rank = (size_t) ceil(percent / 100 * (double) n);

    return msec[MAX(rank, 1) - 1];
}

static struct spread
spread_of(const struct samples *s)
{
    double *sorted = xmemdup(s->msec, s->n * sizeof *sorted);

    qsort(sorted, s->n, sizeof *sorted, compare_doubles);
    struct spread spread = {percentile(sorted, s->n, 50), percentile(sorted, s->n, 90),
                            percentile(sorted, s->n, 99), sorted[s->n - 1]};
    free(sorted);
    return spread;
}

void
report_print_head(const struct report *r, FILE *out)
{
    const struct fabric *f = &r->fabric;

    fprintf(
        out,
        "%u nodes (%u cores, %u spines, %u leaves, %u source agents), %u hosts; %u members a group\n",
        f->n_nodes, f->n_cores, f->n_spines, f->n_leaves, f->n_agents, f->n_agents + f->n_receivers,
        f->n_members);
    fprintf(out, "all agents have applied the topology after %.2f s\n", r->agents_sec);
    fflush(out);
}

void
report_print_step(const struct report *r, const struct step *step, FILE *out)
{
    fprintf(out, "\n%u groups, %u members: filled in %.2f s\n", step->n_groups,
            step->n_groups * r->fabric.n_members, step->fill_sec);
    fprintf(out, "  %-36s %5s %9s %9s %9s %9s\n", "ms", "n", "p50", "p90", "p99", "max");
    for (size_t i = 0; i < N_MEASURES; i++) {
        if (step->samples[i].n) {
            struct spread s = spread_of(&step->samples[i]);

            fprintf(out, "  %-36s %5zu %9.2f %9.2f %9.2f %9.2f\n", measures[i].text,
                    step->samples[i].n, s.p50, s.p90, s.p99, s.max);
        }
    }
    if (step->n_changes) {
        fprintf(out, "  for each member added or removed: %.1f groups computed; CPU ms:",
                (double) step->n_computed / (double) step->n_changes);
        for (size_t i = 0; i < N_PARTS; i++) {
            fprintf(out, " %s %.2f", parts[i],
                    (double) step->cpu_msec[i] / (double) step->n_changes);
        }
        fputc('\n', out);
    }
    fputs("  memory, MiB (peak):", out);
    for (size_t i = 0; i < N_PARTS; i++) {
        fprintf(out, " %s %.1f (%.1f)", parts[i], (double) step->use[i].rss_kib / 1024,
                (double) step->use[i].peak_kib / 1024);
    }
    fputc('\n', out);
    fflush(out);
}

void
report_print_start(const struct step *step, FILE *out)
{
    if (step->restarted) {
        fprintf(out, "  castd ends %.0f ms after SIGTERM, and serves %.2f s after its start\n",
                step->stop_msec, step->start_sec);
    }
    fflush(out);
}

void
report_print_end(const struct report *r, FILE *out)
{
    const struct step *first = &r->steps[0], *last = &r->steps[r->n_steps - 1];

    if (r->n_steps < 2) {
        return;
    }
    fprintf(out, "\np99 at %u groups, as a multiple of that at %u:\n", last->n_groups,
            first->n_groups);
    for (size_t i = 0; i < N_MEASURES; i++) {
        if (first->samples[i].n && last->samples[i].n) {
            fprintf(out, "  %-36s %9.2f\n", measures[i].text,
                    spread_of(&last->samples[i]).p99 / spread_of(&first->samples[i]).p99);
        }
    }
}

/* JSON. */

/* To a microsecond: more digits say nothing. */
static struct json *
real(double value)
{
    return json_real_create(round(value * 1000) / 1000);
}

static struct json *
json_of_samples(const struct samples *s)
{
    struct json *o = json_object_create(), *all = json_array_create_empty();
    struct spread spread = spread_of(s);

    for (size_t i = 0; i < s->n; i++) {
        json_array_add(all, real(s->msec[i]));
    }
    json_object_put(o, "p50", real(spread.p50));
    json_object_put(o, "p90", real(spread.p90));
    json_object_put(o, "p99", real(spread.p99));
    json_object_put(o, "max", real(spread.max));
    json_object_put(o, "all", all);
    return o;
}

static struct json *
json_of_use(const struct step *step, size_t part)
{
    struct json *o = json_object_create();

    ctl_put_int(o, "cpu_ms", step->cpu_msec[part]);
    ctl_put_int(o, "rss_kib", step->use[part].rss_kib);
    ctl_put_int(o, "peak_kib", step->use[part].peak_kib);
    return o;
}

static struct json *
json_of_step(const struct step *step)
{
    struct json *o = json_object_create(), *ms = json_object_create();
    struct json *processes = json_object_create();

    ctl_put_int(o, "groups", step->n_groups);
    json_object_put(o, "fill_s", real(step->fill_sec));
    for (size_t i = 0; i < N_MEASURES; i++) {
        if (step->samples[i].n) {
            json_object_put(ms, measures[i].key, json_of_samples(&step->samples[i]));
        }
    }
    json_object_put(o, "ms", ms);
    ctl_put_int(o, "changes", step->n_changes);
    ctl_put_int(o, "groups_computed", step->n_computed);
    for (size_t i = 0; i < N_PARTS; i++) {
        json_object_put(processes, parts[i], json_of_use(step, i));
    }
    json_object_put(o, "processes", processes);
    if (step->restarted) {
        json_object_put(o, "castd_stop_ms", real(step->stop_msec));
        json_object_put(o, "castd_start_s", real(step->start_sec));
    }
    return o;
}

static struct json *
json_of_machine(void)
{
    struct json *o = json_object_create();
    struct utsname u;

    uname(&u);
    json_object_put_string(o, "kernel", u.release);
    json_object_put_string(o, "machine", u.machine);
    ctl_put_int(o, "cpus", (uint64_t) sysconf(_SC_NPROCESSORS_ONLN));
    return o;
}

static struct json *
json_of_fabric(const struct fabric *f)
{
    struct json *o = json_object_create();

    ctl_put_int(o, "nodes", f->n_nodes);
    ctl_put_int(o, "cores", f->n_cores);
    ctl_put_int(o, "spines", f->n_spines);
    ctl_put_int(o, "leaves", f->n_leaves);
    ctl_put_int(o, "agents", f->n_agents);
    ctl_put_int(o, "receivers", f->n_receivers);
    ctl_put_int(o, "members", f->n_members);
    return o;
}

void
report_write_json(const struct report *r, FILE *out)
{
    struct json *o = json_object_create(), *steps = json_array_create_empty();
    time_t now = time(NULL);
    char text[32];

    ctl_put_int(o, "castscale", REPORT_VERSION);
    json_object_put_string(o, "version", ROCECAST_VERSION);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    json_object_put_string(o, "time", text);
    json_object_put(o, "machine", json_of_machine());
    json_object_put(o, "fabric", json_of_fabric(&r->fabric));
    json_object_put(o, "agents_s", real(r->agents_sec));
    for (size_t i = 0; i < r->n_steps; i++) {
        json_array_add(steps, json_of_step(&r->steps[i]));
    }
    json_object_put(o, "steps", steps);
    char *s = json_to_string(o, JSSF_SORT);
    fprintf(out, "%s\n", s);
    free(s);
    json_destroy(o);
}

/* One line for each sample; what was taken once is a sample, too. */
void
report_write_csv(const struct report *r, FILE *out)
{
    fputs("groups,what,value\n", out);
    for (size_t i = 0; i < r->n_steps; i++) {
        const struct step *step = &r->steps[i];

        fprintf(out, "%u,fill_s,%.3f\n", step->n_groups, step->fill_sec);
        for (size_t j = 0; j < N_MEASURES; j++) {
            for (size_t k = 0; k < step->samples[j].n; k++) {
                fprintf(out, "%u,%s_ms,%.3f\n", step->n_groups, measures[j].key,
                        step->samples[j].msec[k]);
            }
        }
        for (size_t j = 0; j < N_PARTS; j++) {
            fprintf(out, "%u,%s_rss_kib,%" PRIu64 "\n", step->n_groups, parts[j],
                    step->use[j].rss_kib);
            fprintf(out, "%u,%s_peak_kib,%" PRIu64 "\n", step->n_groups, parts[j],
                    step->use[j].peak_kib);
            fprintf(out, "%u,%s_cpu_ms,%" PRIu64 "\n", step->n_groups, parts[j], step->cpu_msec[j]);
        }
        if (step->restarted) {
            fprintf(out, "%u,castd_stop_ms,%.3f\n", step->n_groups, step->stop_msec);
            fprintf(out, "%u,castd_start_s,%.3f\n", step->n_groups, step->start_sec);
        }
    }
}
