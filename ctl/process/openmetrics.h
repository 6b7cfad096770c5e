/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics as text in the format of OpenMetrics 1.0, which Prometheus reads.
 *
 * A program's listings are JSON.  A table says which of their numbers are metrics, and what these
 * are called.  So a number that is a metric is counted in one place, and a row of the table is
 * all that it needs.
 *
 *     struct openmetrics *m = openmetrics_create(table, n);
 *     openmetrics_put_object(m, "port", port, METRIC_LABELS({"node", node}, {"port", name}));
 *     char *text = openmetrics_finish(m);
 */
#ifndef CTL_PROCESS_OPENMETRICS_H
#define CTL_PROCESS_OPENMETRICS_H 1

#include <stddef.h>
#include <stdint.h>

struct json;

#define OPENMETRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* The names of an info's samples end with _info, those of a counter's with _total. */
enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_INFO };

/* A family of metrics. */
struct metric {
    const char *name; /* without the ending of the samples. */
    enum metric_type type;
    const char *unit; /* the name ends with "_" and this; NULL: none. */
    /* Which objects have the number, and the name of their member that is it.  NULL: whoever has
     * the number calls openmetrics_put(). */
    const char *of, *key;
    unsigned int decimals; /* the member counts in 10^-decimals of the unit. */
    const char *help;      /* one sentence, without backslashes and newlines. */
};

/* An array of labels ends with one whose name is NULL. */
struct metric_label {
    const char *name, *value;
};
#define METRIC_LABELS(...) ((const struct metric_label[]){__VA_ARGS__, {NULL, NULL}})

struct openmetrics;

/* 'table' is borrowed. */
struct openmetrics *openmetrics_create(const struct metric *table, size_t n);
/* A sample of this family of the table.  A second one with the same labels is left out, and so is a
 * counter below 0: readers would refuse the whole text over them. */
void openmetrics_put(struct openmetrics *, const char *name, int64_t value,
                     const struct metric_label labels[]);
/* A sample for each row of the table about such objects whose number the object has.  True counts
 * as 1, false as 0. */
void openmetrics_put_object(struct openmetrics *, const char *of, const struct json *object,
                            const struct metric_label labels[]);
/* The text, malloc'd: families in the order of the table, without those that have no sample. */
char *openmetrics_finish(struct openmetrics *);

#endif /* ctl/process/openmetrics.h */
