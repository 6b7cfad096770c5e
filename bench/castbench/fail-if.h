/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions under which castbench's exit status says that runs are not good enough:
 * [SCHEME:]METRIC OPERATOR NUMBER[UNIT], for example "p99>2ms" or "mcast:throughput < 90".
 */
#ifndef BENCH_CASTBENCH_FAIL_IF_H
#define BENCH_CASTBENCH_FAIL_IF_H 1

#include "bench/castbench/metric.h"

enum comparison { COMPARE_GREATER, COMPARE_GREATER_EQUAL, COMPARE_LESS, COMPARE_LESS_EQUAL };

struct fail_if {
    const char *text; /* as the user wrote it. */
    bool has_scheme;
    enum scheme scheme; /* with 'has_scheme': the only one that the condition is for. */
    enum metric metric;
    enum comparison comparison;
    double limit; /* in the metric's own unit. */
};

/* Keeps 'text'.  False: 'error' says what is wrong with it. */
bool fail_if_parse(struct fail_if *, const char *text, char *error, size_t size);

/* Does the condition hold for 'value'?  It also holds for a value that is not known (NaN): what
 * nobody has measured is not good enough. */
bool fail_if_holds(const struct fail_if *, double value);

/* The metric that it is about, as users write it. */
const char *fail_if_metric(const struct fail_if *);
/* The unit of the metric's values; "": none. */
const char *fail_if_unit(const struct fail_if *);

#endif /* bench/castbench/fail-if.h */
