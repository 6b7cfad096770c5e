/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics as text in the format of OpenMetrics 1.0.
 *
 * The samples of a family stand together in the text, in whichever order they were put.
 */
#include <config.h>

#include "ctl/process/openmetrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/registry/json.h"
#include "lib/printable.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "sset.h"
#include "util.h"

struct family {
    struct ds samples;
    struct sset names; /* of samples, with their labels. */
};

struct openmetrics {
    const struct metric *table;
    size_t n;
    struct family *families; /* in the order of the table. */
};

static const char *const types[] = {
    [METRIC_GAUGE] = "gauge", [METRIC_COUNTER] = "counter", [METRIC_INFO] = "info"};
static const char *const endings[] = {
    [METRIC_GAUGE] = "", [METRIC_COUNTER] = "_total", [METRIC_INFO] = "_info"};

struct openmetrics *
openmetrics_create(const struct metric *table, size_t n)
{
    struct openmetrics *m = xmalloc(sizeof *m);

    *m = (struct openmetrics){.table = table, .n = n, .families = xcalloc(n, sizeof *m->families)};
    for (size_t i = 0; i < n; i++) {
        ds_init(&m->families[i].samples);
        sset_init(&m->families[i].names);
    }
    return m;
}

/* The three escapes that the format has, and those of printable() for what commands a terminal. */
static void
put_label_value(struct ds *s, const char *value)
{
    struct ds escaped = DS_EMPTY_INITIALIZER;

    for (const char *p = value; *p; p++) {
        if (*p == '\n') {
            ds_put_cstr(&escaped, "\\n");
        } else {
            if (*p == '"' || *p == '\\') {
                ds_put_char(&escaped, '\\');
            }
            ds_put_char(&escaped, *p);
        }
    }
    char *text = printable(ds_cstr(&escaped));

    ds_put_cstr(s, text);
    free(text);
    ds_destroy(&escaped);
}

/* The sample's name with its labels, malloc'd. */
static char *
sample_name(const struct metric *metric, const struct metric_label labels[])
{
    struct ds s = DS_EMPTY_INITIALIZER;

    ds_put_format(&s, "%s%s", metric->name, endings[metric->type]);
    for (size_t i = 0; labels[i].name; i++) {
        ds_put_format(&s, "%s%s=\"", i ? "," : "{", labels[i].name);
        put_label_value(&s, labels[i].value);
        ds_put_char(&s, '"');
    }
    if (labels[0].name) {
        ds_put_char(&s, '}');
    }
    return ds_steal_cstr(&s);
}

static void
put_number(struct ds *s, int64_t value, unsigned int decimals)
{
    uint64_t magnitude = value < 0 ? -(uint64_t) value : (uint64_t) value;
    uint64_t one = 1;

    for (unsigned int i = 0; i < decimals; i++) {
        one *= 10;
    }
    ds_put_format(s, "%s%" PRIu64, value < 0 ? "-" : "", magnitude / one);
    if (decimals) {
        ds_put_format(s, ".%0*" PRIu64, (int) decimals, magnitude % one);
    }
}

static void
put_sample(struct openmetrics *m, size_t i, int64_t value, const struct metric_label labels[])
{
    struct family *f = &m->families[i];
    char *name = sample_name(&m->table[i], labels);

    if ((m->table[i].type != METRIC_COUNTER || value >= 0) && sset_add(&f->names, name)) {
        ds_put_format(&f->samples, "%s ", name);
        put_number(&f->samples, value, m->table[i].decimals);
        ds_put_char(&f->samples, '\n');
    }
    free(name);
}

void
openmetrics_put(struct openmetrics *m, const char *name, int64_t value,
                const struct metric_label labels[])
{
    for (size_t i = 0; i < m->n; i++) {
        if (!strcmp(m->table[i].name, name)) {
            put_sample(m, i, value, labels);
            return;
        }
    }
    OVS_NOT_REACHED();
}

void
openmetrics_put_object(struct openmetrics *m, const char *of, const struct json *object,
                       const struct metric_label labels[])
{
    for (size_t i = 0; i < m->n; i++) {
        if (!m->table[i].of || strcmp(m->table[i].of, of)) {
            continue;
        }
        const struct json *value = ctl_get(object, m->table[i].key);
        if (value && value->type == JSON_INTEGER) {
            put_sample(m, i, json_integer(value), labels);
        } else if (value && (value->type == JSON_TRUE || value->type == JSON_FALSE)) {
            put_sample(m, i, value->type == JSON_TRUE, labels);
        }
    }
}

static void
put_family(struct ds *s, const struct metric *metric, const struct family *f)
{
    ds_put_format(s, "# TYPE %s %s\n", metric->name, types[metric->type]);
    if (metric->unit) {
        ds_put_format(s, "# UNIT %s %s\n", metric->name, metric->unit);
    }
    ds_put_format(s, "# HELP %s %s\n%s", metric->name, metric->help, ds_cstr_ro(&f->samples));
}

char *
openmetrics_finish(struct openmetrics *m)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < m->n; i++) {
        struct family *f = &m->families[i];

        if (f->samples.length) {
            put_family(&s, &m->table[i], f);
        }
        ds_destroy(&f->samples);
        sset_destroy(&f->names);
    }
    ds_put_cstr(&s, "# EOF\n");
    free(m->families);
    free(m);
    return ds_steal_cstr(&s);
}
