/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a bad link as text, for people, topology files and the registry.
 */
#include "lib/impair.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/why.h"

enum kind { RATE, TIME, SHARE, NUMBER };

/* What a suffix means: a factor in thousandths of the field's unit. */
struct suffix {
    const char *text;
    uint64_t factor;
};

static const struct suffix suffixes[][6] = {
    [RATE] = {{"G", UINT64_C(1000000000000)}, {"M", 1000000000}, {"k", 1000000}, {"", 1000}, {0}},
    [TIME] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {0}},
    [SHARE] = {{"%", 10000000}, {0}},
    [NUMBER] = {{"", 1000}, {0}},
};
static const char *const hints[] = {
    [RATE] = "bit/s: a number with k, M or G, e.g. 2.5G",
    [TIME] = "a number with us, ms or s, e.g. 1.5ms",
    [SHARE] = "a number with %, e.g. 0.1%",
    [NUMBER] = "a number",
};

struct field {
    const char *name;
    size_t offset;
    uint64_t min, max;
    uint64_t standard; /* when it is not given. */
    enum kind kind;
    bool wide; /* uint64_t; others are uint32_t. */
};

#define FIELD(NAME, KIND, MEMBER, MIN, MAX, STANDARD)                                           \
    {                                                                                           \
        .name = NAME, .offset = offsetof(struct impair_params, MEMBER), .min = MIN, .max = MAX, \
        .standard = STANDARD, .kind = KIND,                                                     \
        .wide = sizeof((struct impair_params){0}.MEMBER) == sizeof(uint64_t)                    \
    }
static const struct field fields[] = {
    FIELD("rate", RATE, rate, 1000, UINT64_C(1000000000000), 0),
    FIELD("queue", NUMBER, queue, 1, 1000000, IMPAIR_QUEUE),
    FIELD("kmin", NUMBER, kmin, 0, 1000000, 0),
    FIELD("kmax", NUMBER, kmax, 1, 1000000, 0),
    FIELD("pmax", SHARE, pmax, 0, EGRESS_PPM, EGRESS_PPM),
    FIELD("delay", TIME, delay_usec, 0, IMPAIR_MAX_USEC, 0),
    FIELD("jitter", TIME, jitter_usec, 0, IMPAIR_MAX_USEC, 0),
    FIELD("loss", SHARE, loss, 0, IMPAIR_PPM, 0),
    FIELD("duplicate", SHARE, duplicate, 0, IMPAIR_PPM, 0),
    FIELD("reorder", SHARE, reorder, 0, IMPAIR_PPM, 0),
    FIELD("late", TIME, late_usec, 0, IMPAIR_MAX_USEC, IMPAIR_LATE_USEC),
    FIELD("corrupt", SHARE, corrupt, 0, IMPAIR_PPM, 0),
    FIELD("seed", NUMBER, seed, 0, UINT32_MAX, 0),
};
#define N_FIELDS (sizeof fields / sizeof *fields)

static uint64_t
get(const struct impair_params *params, const struct field *f)
{
    const char *at = (const char *) params + f->offset;
    uint64_t wide;
    uint32_t narrow;

    if (f->wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

static void
set(struct impair_params *params, const struct field *f, uint64_t value)
{
    char *at = (char *) params + f->offset;
    uint32_t narrow = (uint32_t) value;

    if (f->wide) {
        memcpy(at, &value, sizeof value);
    } else {
        memcpy(at, &narrow, sizeof narrow);
    }
}

static const struct field *
find_field(const char *name, size_t len)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (strlen(fields[i].name) == len && !strncmp(fields[i].name, name, len)) {
            return &fields[i];
        }
    }
    return NULL;
}

/* The part of a number behind the point, in millionths; up to six digits. */
static bool
parse_fraction(const char **s, uint64_t *millionths)
{
    uint64_t unit = 100000;

    *millionths = 0;
    if (**s != '.') {
        return true;
    }
    if (!isdigit((unsigned char) *++*s)) {
        return false;
    }
    for (; isdigit((unsigned char) **s) && unit; unit /= 10) {
        *millionths += (uint64_t) (*(*s)++ - '0') * unit;
    }
    return !isdigit((unsigned char) **s);
}

/* A decimal number with one of the suffixes of 'kind', in the field's unit. */
static bool
parse_value(const char *s, enum kind kind, uint64_t *value)
{
    uint64_t whole = 0, millionths;
    const struct suffix *x = suffixes[kind];

    if (!isdigit((unsigned char) *s)) {
        return false;
    }
    while (isdigit((unsigned char) *s)) {
        whole = whole * 10 + (uint64_t) (*s++ - '0');
        if (whole > UINT64_C(1000000000000)) {
            return false;
        }
    }
    if (!parse_fraction(&s, &millionths)) {
        return false;
    }
    while (x->text && strcmp(x->text, s)) {
        x++;
    }
    if (!x->text || (kind == NUMBER && millionths)
        || __builtin_mul_overflow(whole, x->factor / 1000, value)) {
        return false;
    }
    /* At most 10^6 * 10^12: no overflow. */
    uint64_t scaled = millionths * x->factor;
    *value += scaled / 1000000000;
    return scaled % 1000000000 == 0;
}

/* With the largest suffix that leaves a whole number. */
static size_t
put(char *s, size_t size, const struct field *f, uint64_t value)
{
    const struct suffix *x = suffixes[f->kind];

    if (f->kind == SHARE) {
        int n = snprintf(s, size, "%" PRIu64 ".%04" PRIu64, value / 10000, value % 10000);
        while (s[n - 1] == '0') {
            s[--n] = '\0';
        }
        n -= s[n - 1] == '.';
        return (size_t) n + (size_t) snprintf(s + n, size - (size_t) n, "%%");
    }
    while (value % (x->factor / 1000) || (!value && x[1].text)) {
        x++;
    }
    return (size_t) snprintf(s, size, "%" PRIu64 "%s", value / (x->factor / 1000), x->text);
}

static bool
parse_word(char *word, struct impair_params *params, unsigned *given, char **errp)
{
    char *equals = strchr(word, '=');
    const struct field *f = equals ? find_field(word, (size_t) (equals - word)) : NULL;
    uint64_t value;

    if (!f) {
        return say_why(
            errp,
            "\"%s\": must be NAME=VALUE, with rate, queue, kmin, kmax, pmax, delay, jitter, loss, "
            "duplicate, reorder, late, corrupt or seed",
            word);
    }
    if (*given & 1u << (f - fields)) {
        return say_why(errp, "\"%s\": %s is there twice", word, f->name);
    }
    *given |= 1u << (f - fields);
    if (!parse_value(equals + 1, f->kind, &value)) {
        return say_why(errp, "\"%s\": must be %s", word, hints[f->kind]);
    }
    if (value < f->min || value > f->max) {
        char low[32], high[32];

        put(low, sizeof low, f, f->min);
        put(high, sizeof high, f, f->max);
        return say_why(errp, "\"%s\": must be %s to %s", word, low, high);
    }
    set(params, f, value);
    return true;
}

static bool
check_red(const struct impair_params *params, char **errp)
{
    bool is_standard = params->pmax == EGRESS_PPM;

    if (!params->rate && (params->kmin || params->kmax || !is_standard)) {
        return say_why(errp, "kmin, kmax and pmax need a rate");
    }
    if (params->kmin > params->kmax) {
        return say_why(errp, "kmin needs a kmax that is not less");
    }
    if (!params->kmax && !is_standard) {
        return say_why(errp, "pmax needs a kmax");
    }
    return true;
}

bool
impair_parse(const char *text, struct impair_params *params, char **errp)
{
    unsigned given = 0;
    char *copy = strdup(text);
    char *save;
    bool ok = true;

    if (!copy) {
        abort();
    }
    for (size_t i = 0; i < N_FIELDS; i++) {
        set(params, &fields[i], fields[i].standard);
    }
    for (char *word = strcmp(text, "none") ? strtok_r(copy, " ,", &save) : NULL; word && ok;
         word = strtok_r(NULL, " ,", &save)) {
        ok = parse_word(word, params, &given, errp);
    }
    free(copy);
    return ok && check_red(params, errp);
}

bool
impair_same(const struct impair_params *a, const struct impair_params *b)
{
    bool same = true;

    for (size_t i = 0; i < N_FIELDS; i++) {
        same &= get(a, &fields[i]) == get(b, &fields[i]);
    }
    return same;
}

bool
impair_is_none(const struct impair_params *c)
{
    return !c->rate && !c->delay_usec && !c->jitter_usec && !c->loss && !c->duplicate && !c->reorder
           && !c->corrupt;
}

void
impair_format(const struct impair_params *params, char text[IMPAIR_TEXT_SIZE])
{
    size_t n = 0;

    text[0] = '\0';
    if (impair_is_none(params)) {
        return;
    }
    for (size_t i = 0; i < N_FIELDS; i++) {
        uint64_t value = get(params, &fields[i]);

        if (value != fields[i].standard) {
            n += (size_t) snprintf(text + n, IMPAIR_TEXT_SIZE - n, "%s%s=", n ? " " : "",
                                   fields[i].name);
            n += put(text + n, IMPAIR_TEXT_SIZE - n, &fields[i], value);
        }
    }
}
