/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a topology file and their use in its strings.
 */
#include <config.h>

#include "testbed/castlab/parameters.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/spelling.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

#define MAX_RANGE 1024

static struct parameter *
find(const struct parameters *ps, const char *name)
{
    for (size_t i = 0; i < ps->n; i++) {
        if (!strcmp(ps->list[i].name, name)) {
            return &ps->list[i];
        }
    }
    return NULL;
}

/* " (did you mean ...)" for a parameter's name. */
static char *
hint_for(const struct parameters *ps, const char *name)
{
    const char **names = xcalloc(ps->n + 1, sizeof *names);
    for (size_t i = 0; i < ps->n; i++) {
        names[i] = ps->list[i].name;
    }
    char *hint = did_you_mean(name, names);
    free(names);
    return hint;
}

static bool
name_ok(const char *name)
{
    if (!isalpha((unsigned char) name[0]) || !strcmp(name, "i")) {
        return false;
    }
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")]
           == '\0';
}

static void
add_defaults(struct parameters *ps, struct yaml_doc *yd, yaml_node_t *map)
{
    if (!yaml_doc_has_keys(yd, map, "'parameters'", NULL)) {
        return;
    }
    yaml_node_t *key, *value;
    for (size_t i = 0; yaml_doc_pair(yd, map, i, &key, &value); i++) {
        const char *name = yaml_doc_text(key);
        if (!name_ok(name)) {
            yaml_doc_error(yd, key,
                           "parameter '%s': a name has letters, digits and '_', starts "
                           "with a letter and is not 'i'",
                           name);
            return;
        }
        char *what = xasprintf("parameter '%s'", name);
        bool ok = yaml_doc_is_scalar(yd, value, what);
        free(what);
        if (!ok) {
            return;
        }
        const char *text = yaml_doc_text(value);
        ps->list = xrealloc(ps->list, (ps->n + 1) * sizeof *ps->list);
        ps->list[ps->n++] = (struct parameter){xstrdup(name), text[0] ? xstrdup(text) : NULL};
    }
}

static void
set_given(struct parameters *ps, struct yaml_doc *yd, const char *given)
{
    const char *equals = strchr(given, '=');
    char *name = equals ? xmemdup0(given, (size_t) (equals - given)) : xstrdup(given);
    struct parameter *p = find(ps, name);
    if (!equals || !equals[1]) {
        yaml_doc_error(yd, yaml_doc_root(yd), "-p %s: must be KEY=VALUE", given);
    } else if (strpbrk(equals + 1, "{}")) {
        yaml_doc_error(yd, yaml_doc_root(yd), "-p %s: a value has no braces", given);
    } else if (!p) {
        char *hint = hint_for(ps, name);
        yaml_doc_error(yd, yaml_doc_root(yd), "-p %s: this file has no parameter '%s'%s", given,
                       name, hint);
        free(hint);
    } else {
        free(p->value);
        p->value = xstrdup(equals + 1);
    }
    free(name);
}

void
parameters_init(struct parameters *ps, struct yaml_doc *yd, yaml_node_t *map,
                const char *const given[], size_t n)
{
    *ps = (struct parameters){.n = 0};
    if (map) {
        add_defaults(ps, yd, map);
    }
    for (size_t i = 0; i < n && !yd->error; i++) {
        set_given(ps, yd, given[i]);
    }
    for (size_t i = 0; i < ps->n && !yd->error; i++) {
        if (!ps->list[i].value) {
            yaml_doc_error(yd, yaml_doc_get(yd, map, ps->list[i].name),
                           "parameter '%s' has no value: give one with -p %s=VALUE",
                           ps->list[i].name, ps->list[i].name);
        }
    }
}

void
parameters_uninit(struct parameters *ps)
{
    for (size_t i = 0; i < ps->n; i++) {
        free(ps->list[i].name);
        free(ps->list[i].value);
    }
    free(ps->list);
}

/* True for "i", "i+2", "i-1" and so on; *addp is what is added. */
static bool
is_index(const char *inner, long *addp)
{
    *addp = 0;
    if (inner[0] != 'i' || !inner[1]) {
        return inner[0] == 'i';
    }
    char *end;
    errno = 0;
    *addp = strtol(inner + 1, &end, 10);
    return (inner[1] == '+' || inner[1] == '-') && isdigit((unsigned char) inner[2]) && !*end
           && !errno && *addp >= -MAX_RANGE && *addp <= MAX_RANGE;
}

/* A parameter's value, "" after an error. */
static const char *
value_of(const struct parameters *ps, struct yaml_doc *yd, const yaml_node_t *scalar,
         const char *name)
{
    const struct parameter *p = find(ps, name);
    if (p) {
        return p->value;
    }
    long add;
    if (is_index(name, &add)) {
        yaml_doc_error(yd, scalar, "{%s} is only known in an entry with a range like {1..4}", name);
    } else {
        char *hint = hint_for(ps, name);
        yaml_doc_error(yd, scalar, "unknown parameter '%s'%s", name, hint);
        free(hint);
    }
    return "";
}

/* One end of a range: a number, or a parameter whose value is one. */
static long
range_end(const struct parameters *ps, struct yaml_doc *yd, const yaml_node_t *scalar,
          const char *text)
{
    const char *value = isdigit((unsigned char) text[0]) ? text : value_of(ps, yd, scalar, text);
    char *end;
    errno = 0;
    long n = strtol(value, &end, 10);
    if (errno || end == value || *end || n < 0 || n > INT_MAX) {
        yaml_doc_error(yd, scalar, "'%s' in a range: '%s' is not a number", text, value);
    }
    return n;
}

/* The text between the next pair of braces at or after *pos, malloc'd.  *pos
 * moves behind the pair, *startp to its opening brace.  NULL: no more. */
static char *
next_braces(struct yaml_doc *yd, const yaml_node_t *scalar, const char **pos, const char **startp)
{
    const char *start = strchr(*pos, '{');
    if (!start) {
        return NULL;
    }
    const char *end = strchr(start, '}');
    if (!end) {
        yaml_doc_error(yd, scalar, "'%s': '{' without '}'", yaml_doc_text(scalar));
        return NULL;
    }
    *startp = start;
    *pos = end + 1;
    return xmemdup0(start + 1, (size_t) (end - start - 1));
}

void
parameters_find_range(const struct parameters *ps, struct yaml_doc *yd, const yaml_node_t *scalar,
                      struct range *range)
{
    const char *pos = yaml_doc_text(scalar);
    const char *start;
    for (char *inner; !yd->error && (inner = next_braces(yd, scalar, &pos, &start)); free(inner)) {
        char *dots = strstr(inner, "..");
        if (!dots) {
            continue;
        }
        if (range->is_range) {
            yaml_doc_error(yd, scalar, "a second range in one entry: use {i} here");
        }
        *dots = '\0';
        range->is_range = true;
        range->first = range_end(ps, yd, scalar, inner);
        range->last = range_end(ps, yd, scalar, dots + 2);
        if (range->first > range->last) {
            yaml_doc_error(yd, scalar, "range %ld..%ld is empty", range->first, range->last);
        } else if (range->last - range->first >= MAX_RANGE) {
            yaml_doc_error(yd, scalar, "range %ld..%ld has more than %d numbers", range->first,
                           range->last, MAX_RANGE);
        }
    }
}

char *
parameters_expand(const struct parameters *ps, struct yaml_doc *yd, const yaml_node_t *scalar,
                  const struct range *range)
{
    struct ds out = DS_EMPTY_INITIALIZER;
    const char *done = yaml_doc_text(scalar);
    const char *pos = done;
    const char *start;
    long add;
    for (char *inner; (inner = next_braces(yd, scalar, &pos, &start)); free(inner)) {
        ds_put_buffer(&out, done, (size_t) (start - done));
        if (range->is_range && (is_index(inner, &add) || strstr(inner, ".."))) {
            ds_put_format(&out, "%ld", range->i + add);
        } else {
            ds_put_cstr(&out, value_of(ps, yd, scalar, inner));
        }
        done = pos;
    }
    ds_put_cstr(&out, done);
    return ds_steal_cstr(&out);
}
