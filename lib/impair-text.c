/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a bad link as text, for people, topology files and the registry.
 */
#include "lib/impair.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/quantity.h"
#include "lib/why.h"

struct field {
    const char *name;
    size_t offset;
    uint64_t min, max;
    uint64_t standard; /* when it is not given. */
    enum quantity kind;
    bool wide; /* uint64_t; others are uint32_t. */
};

#define FIELD(NAME, KIND, MEMBER, MIN, MAX, STANDARD)                                           \
    {                                                                                           \
        .name = NAME, .offset = offsetof(struct impair_params, MEMBER), .min = MIN, .max = MAX, \
        .standard = STANDARD, .kind = KIND,                                                     \
        .wide = sizeof((struct impair_params){0}.MEMBER) == sizeof(uint64_t)                    \
    }
static const struct field fields[] = {
    FIELD("rate", QUANTITY_RATE, rate, 1000, UINT64_C(1000000000000), 0),
    FIELD("queue", QUANTITY_NUMBER, queue, 1, 1000000, IMPAIR_QUEUE),
    FIELD("kmin", QUANTITY_NUMBER, kmin, 0, 1000000, 0),
    FIELD("kmax", QUANTITY_NUMBER, kmax, 1, 1000000, 0),
    FIELD("pmax", QUANTITY_SHARE, pmax, 0, EGRESS_PPM, EGRESS_PPM),
    FIELD("delay", QUANTITY_TIME, delay_usec, 0, IMPAIR_MAX_USEC, 0),
    FIELD("jitter", QUANTITY_TIME, jitter_usec, 0, IMPAIR_MAX_USEC, 0),
    FIELD("loss", QUANTITY_SHARE, loss, 0, IMPAIR_PPM, 0),
    FIELD("duplicate", QUANTITY_SHARE, duplicate, 0, IMPAIR_PPM, 0),
    FIELD("reorder", QUANTITY_SHARE, reorder, 0, IMPAIR_PPM, 0),
    FIELD("late", QUANTITY_TIME, late_usec, 0, IMPAIR_MAX_USEC, IMPAIR_LATE_USEC),
    FIELD("corrupt", QUANTITY_SHARE, corrupt, 0, IMPAIR_PPM, 0),
    FIELD("seed", QUANTITY_NUMBER, seed, 0, UINT32_MAX, 0),
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
    if (!quantity_parse(f->kind, equals + 1, &value)) {
        return say_why(errp, "\"%s\": must be %s", word, quantity_hint(f->kind));
    }
    if (value < f->min || value > f->max) {
        char low[QUANTITY_SIZE], high[QUANTITY_SIZE];

        quantity_format(f->kind, f->min, low, sizeof low);
        quantity_format(f->kind, f->max, high, sizeof high);
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
            n += quantity_format(fields[i].kind, value, text + n, IMPAIR_TEXT_SIZE - n);
        }
    }
}
