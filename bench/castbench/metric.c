/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of a run (see metric.h).
 */
#include "bench/castbench/metric.h"

#include <math.h>

const char *
metric_name(enum metric m)
{
    static const char *const names[] = {
#define METRIC(M, NAME) NAME,
        METRICS(METRIC)
#undef METRIC
    };
    return names[m];
}

/* 0 is a value only if the run came to its end; otherwise nobody has looked. */
static double
seconds_known(const struct run_result *r, double seconds)
{
    return r->complete || seconds > 0 ? seconds : NAN;
}

/* Soft-RoCE has at most so many packets of a queue pair under way. */
#define WINDOW 129

/* A sender that goes back sends all again that is under way.  Receivers cannot tell how much that
 * is: behind a gap they count nothing. */
static double
resent_packets(const struct run_options *o, const struct run_result *r, const struct totals *t)
{
    double each = r->mtu ? o->depth * ceil((double) o->size / r->mtu) : WINDOW;
    double copies = o->scheme == SCHEME_MCAST ? r->n_replicas : 1;
    double at_most = (t->retries + t->rnr_naks) * (each < WINDOW ? each : WINDOW) * copies;

    return fmax(t->repeated_packets, at_most);
}

struct totals
totals_of(const struct run_options *o, const struct run_result *r)
{
    const struct machine_count *machine = &r->machine;
    struct totals t = {
        .counted_bytes = machine->n_devices ? 0 : NAN,
        .repeated_packets = NAN,
        .retries = r->source_count.has_rdma ? (double) r->source_count.retries : NAN,
        .rnr_naks = r->source_count.has_rdma ? (double) r->source_count.rnr_naks : NAN,
        .cpu_source = seconds_known(r, r->source_count.cpu_seconds),
        .cpu_fabric = machine->has_fabric ? machine->fabric_seconds : NAN,
        .cpu_busy = seconds_known(r, machine->busy_seconds),
    };

    /* The devices of the command line come first. */
    if (o->counted.n_devices && machine->n_devices) {
        t.uplink = &machine->devices[0];
    }
    for (unsigned i = 0; i < machine->n_devices; i++) {
        t.counted_bytes += (double) machine->devices[i].tx_bytes;
    }
    for (unsigned i = 0; i < r->n_replicas; i++) {
        const struct host_count *c = &r->replicas[i].host_count;

        t.cpu_receivers += c->cpu_seconds;
        if (c->has_rdma) {
            t.repeated_packets =
                (isnan(t.repeated_packets) ? 0 : t.repeated_packets) + (double) c->repeated;
            t.retries = (isnan(t.retries) ? 0 : t.retries) + (double) c->retries;
            t.rnr_naks = (isnan(t.rnr_naks) ? 0 : t.rnr_naks) + (double) c->rnr_naks;
        }
    }
    t.resent_packets = resent_packets(o, r, &t);
    t.cpu_receivers = seconds_known(r, t.cpu_receivers);
    return t;
}

static double
per(double what, double of)
{
    return of > 0 ? what / of : NAN;
}

static double
microseconds(const struct histogram *h, double percent)
{
    return h->n ? (double) histogram_percentile(h, percent) / 1e3 : NAN;
}

void
metrics_of(const struct run_options *o, const struct run_result *r, double values[N_METRICS])
{
    const struct histogram *all = &r->latency[RULE_ALL];
    struct totals t = totals_of(o, r);

    values[METRIC_MB_PER_S] = per((double) r->bytes / 1e6, r->seconds);
    values[METRIC_MESSAGES_PER_S] = per((double) r->count, r->seconds);
    values[METRIC_MEAN] = per((double) all->sum / 1e3, (double) all->n);
    values[METRIC_P50] = microseconds(all, 50);
    values[METRIC_P90] = microseconds(all, 90);
    values[METRIC_P95] = microseconds(all, 95);
    values[METRIC_P99] = microseconds(all, 99);
    values[METRIC_P999] = microseconds(all, 99.9);
    values[METRIC_MAX] = all->n ? (double) all->max / 1e3 : NAN;
    values[METRIC_SKEW] = r->has_skew ? microseconds(&r->skew, 50) : NAN;
    values[METRIC_GAP] = r->gap.longest ? (double) r->gap.longest / 1e3 : NAN;
    values[METRIC_RETRANSMISSIONS] = per(100 * t.resent_packets, (double) r->packets);
    values[METRIC_UPLINK] = t.uplink ? (double) t.uplink->tx_bytes : NAN;
    values[METRIC_UPLINK_PER_BYTE] = per(values[METRIC_UPLINK], (double) r->bytes);
    values[METRIC_COUNTED] = t.counted_bytes;
    values[METRIC_CPU_FABRIC] = per(t.cpu_fabric, (double) r->bytes / 1e9);
    values[METRIC_CPU_BUSY] = per(t.cpu_busy, (double) r->bytes / 1e9);
    values[METRIC_OVERDUE] = o->rate > 0 && r->seconds > 0 ? (double) r->overdue : NAN;
}

double
goodput_of_second(const struct run_result *r, unsigned second)
{
    double from = second * 1000.0, to = from + 1000, bytes = 0, begin = 0;

    if (!r->n_samples || r->samples[r->n_samples - 1].ms < to) {
        return NAN;
    }
    for (unsigned i = 0; i < r->n_samples; i++) {
        double end = r->samples[i].ms;
        double common = fmin(end, to) - fmax(begin, from);

        if (common > 0) {
            bytes += (double) r->samples[i].bytes * common / (end - begin);
        }
        begin = end;
    }
    return bytes / 1e6;
}
