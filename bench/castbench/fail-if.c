/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions of --fail-if (see fail-if.h).
 */
#include "bench/castbench/fail-if.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/castbench/refuse.h"
#include "bench/castbench/values.h"

struct unit {
    const char *name;
    double factor;
};

/* The last one, "", is for numbers without a unit. */
static const struct unit times[] = {{"us", 1}, {"ns", 1e-3}, {"ms", 1e3}, {"s", 1e6}, {"", 1}};
static const struct unit rates[] = {{"MB/s", 1}, {"", 1}};
static const struct unit percents[] = {{"%", 1}, {"", 1}};
static const struct unit bytes[] = {{"B", 1}, {"", 1}};
static const struct unit none[] = {{"", 1}};

/* The first unit is the metric's own. */
static const struct metric_word {
    const char *name;
    enum metric metric;
    const struct unit *units;
} words[] = {
    {"p50", METRIC_P50, times},
    {"p90", METRIC_P90, times},
    {"p95", METRIC_P95, times},
    {"p99", METRIC_P99, times},
    {"p99.9", METRIC_P999, times},
    {"max", METRIC_MAX, times},
    {"mean", METRIC_MEAN, times},
    {"skew", METRIC_SKEW, times},
    {"gap", METRIC_GAP, times},
    {"throughput", METRIC_MB_PER_S, rates},
    {"messages", METRIC_MESSAGES_PER_S, none},
    {"retransmissions", METRIC_RETRANSMISSIONS, percents},
    {"uplink", METRIC_UPLINK, bytes},
    {"overdue", METRIC_OVERDUE, none},
};

#define N_WORDS (sizeof words / sizeof words[0])

static const char *
skip_spaces(const char *p)
{
    return p + strspn(p, " \t");
}

/* Length of the word at 'p', which ends before any of 'stops', without the spaces at its end. */
static size_t
word_len(const char *p, const char *stops)
{
    size_t n = strcspn(p, stops);

    while (n && isspace((unsigned char) p[n - 1])) {
        n--;
    }
    return n;
}

static bool
equal(const char *p, size_t len, const char *name)
{
    return strlen(name) == len && !memcmp(p, name, len);
}

static const struct metric_word *
find_metric(const char *p, size_t len)
{
    for (size_t i = 0; i < N_WORDS; i++) {
        if (equal(p, len, words[i].name)) {
            return &words[i];
        }
    }
    return NULL;
}

static const struct metric_word *
word_of(enum metric metric)
{
    size_t i = 0;

    while (words[i].metric != metric) {
        i++;
    }
    return &words[i];
}

static bool
parse_scheme(struct fail_if *f, const char **p, char *error, size_t size)
{
    const char *colon = strchr(*p, ':');
    char name[32];

    f->has_scheme = colon != NULL;
    if (!colon) {
        return true;
    }
    size_t len = word_len(*p, ":");
    snprintf(name, sizeof name, "%.*s", (int) len, *p);
    if (!scheme_from_name(name, &f->scheme)) {
        return refuse(error, size, "unknown scheme '%.*s'", (int) len, *p);
    }
    *p = skip_spaces(colon + 1);
    return true;
}

static bool
parse_comparison(struct fail_if *f, const char **p)
{
    bool greater = **p == '>', equals;

    if (!greater && **p != '<') {
        return false;
    }
    equals = (*p)[1] == '=';
    f->comparison = greater ? (equals ? COMPARE_GREATER_EQUAL : COMPARE_GREATER)
                            : (equals ? COMPARE_LESS_EQUAL : COMPARE_LESS);
    *p = skip_spaces(*p + 1 + equals);
    return true;
}

static bool
parse_limit(struct fail_if *f, const struct unit *units, const char *p, char *error, size_t size)
{
    char known[64] = "";
    const char *end;

    if (!value_decimal(p, 0, 1e18, &f->limit, &end)) {
        return refuse(error, size, "'%s' is no number from 0 to 10^18", p);
    }
    end = skip_spaces(end);
    size_t len = word_len(end, "");
    for (const struct unit *u = units;; u++) {
        if (equal(end, len, u->name)) {
            f->limit *= u->factor;
            return true;
        }
        if (!u->name[0]) {
            break;
        }
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", u->name);
    }
    if (known[0]) {
        snprintf(error, size, "unknown unit '%.*s': must be %s", (int) len, end, known);
    } else {
        snprintf(error, size, "unknown unit '%.*s': this metric has none", (int) len, end);
    }
    return false;
}

bool
fail_if_parse(struct fail_if *f, const char *text, char *error, size_t size)
{
    const char *p = skip_spaces(text);

    *f = (struct fail_if){.text = text};
    if (!parse_scheme(f, &p, error, size)) {
        return false;
    }
    size_t len = word_len(p, "<>=!");
    const struct metric_word *word = find_metric(p, len);
    if (!word) {
        size_t n = (size_t) snprintf(error, size, "unknown metric '%.*s': must be", (int) len, p);
        for (size_t i = 0; i < N_WORDS && n < size; i++) {
            n += (size_t) snprintf(error + n, size - n, "%s %s", i ? "," : "", words[i].name);
        }
        return false;
    }
    f->metric = word->metric;
    p = skip_spaces(p + len);
    if (!parse_comparison(f, &p)) {
        return refuse(error, size, "an operator must follow '%s': >, >=, < or <=", word->name);
    }
    return parse_limit(f, word->units, p, error, size);
}

bool
fail_if_holds(const struct fail_if *f, double value)
{
    if (isnan(value)) {
        return true;
    }
    switch (f->comparison) {
    case COMPARE_GREATER: return value > f->limit;
    case COMPARE_GREATER_EQUAL: return value >= f->limit;
    case COMPARE_LESS: return value < f->limit;
    case COMPARE_LESS_EQUAL: return value <= f->limit;
    }
    return true;
}

const char *
fail_if_metric(const struct fail_if *f)
{
    return word_of(f->metric)->name;
}

const char *
fail_if_unit(const struct fail_if *f)
{
    return word_of(f->metric)->units[0].name;
}
