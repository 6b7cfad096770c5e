/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers by which runs are compared.  NaN: the number is not known.
 */
#ifndef BENCH_CASTBENCH_METRIC_H
#define BENCH_CASTBENCH_METRIC_H 1

#include "bench/castbench/run.h"

/* Each metric and its name in files.  MB are 10^6 bytes, GB 10^9, counted once however many
 * replicas there are.  Latencies are until all replicas have a block. */
#define METRICS(METRIC)                                                             \
    METRIC(MB_PER_S, "mb_per_s")                                                    \
    METRIC(MESSAGES_PER_S, "messages_per_s")                                        \
    METRIC(MEAN, "mean_us")                                                         \
    METRIC(P50, "p50_us")                                                           \
    METRIC(P90, "p90_us")                                                           \
    METRIC(P95, "p95_us")                                                           \
    METRIC(P99, "p99_us")                                                           \
    METRIC(P999, "p999_us")                                                         \
    METRIC(MAX, "max_us")                                                           \
    METRIC(SKEW, "skew_p50_us")                                                     \
    METRIC(GAP, "longest_gap_us")                                                   \
    METRIC(RETRANSMISSIONS, "retransmissions_percent") /* of the packets needed. */ \
    METRIC(UPLINK, "uplink_bytes")                                                  \
    METRIC(UPLINK_PER_BYTE, "uplink_per_byte") /* that is written. */               \
    METRIC(COUNTED, "counted_bytes")                                                \
    METRIC(CPU_FABRIC, "cpu_fabric_s_per_gb") /* of the lab's forwarders. */        \
    METRIC(CPU_BUSY, "cpu_busy_s_per_gb")                                           \
    METRIC(OVERDUE, "overdue") /* blocks, in open loop. */

enum metric {
#define METRIC(M, NAME) METRIC_##M,
    METRICS(METRIC)
#undef METRIC
        N_METRICS
};

const char *metric_name(enum metric);

void metrics_of(const struct run_options *, const struct run_result *, double values[N_METRICS]);

/* Sums of what a run has counted; NaN: nothing was counted. */
struct totals {
    const struct device_count *uplink; /* or NULL. */
    double counted_bytes;
    double repeated_packets; /* those that receivers have noticed. */
    double retries;          /* of all hosts. */
    double rnr_naks;
    double resent_packets; /* an upper bound. */
    double cpu_source;     /* seconds. */
    double cpu_fabric;     /* of the lab's forwarders. */
    double cpu_receivers;
    double cpu_busy;
};

struct totals totals_of(const struct run_options *, const struct run_result *);

/* MB/s of a second of the run, 0 is the first, from the samples.  NaN: the run was over before the
 * second was. */
double goodput_of_second(const struct run_result *, unsigned second);

#endif /* bench/castbench/metric.h */
