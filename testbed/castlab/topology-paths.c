/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lab's topology file says of paths.
 */
#include <config.h>

#include "testbed/castlab/topology-paths.h"

#include <stdlib.h>
#include <string.h>

#include "lib/quantity.h"
#include "util.h"

struct reader {
    struct yaml_doc *yd;
    const struct parameters *ps;
    struct topology *t;
};

/* A word of a list; 'what' is what it is called. */
static unsigned int
read_word(struct reader *r, const yaml_node_t *at, const char *what, const struct words *words)
{
    const struct range none = {.is_range = false};
    char *name = xasprintf("'%s'", what);
    unsigned int word = 0;

    if (yaml_doc_is_scalar(r->yd, at, name)) {
        char *text = parameters_expand(r->ps, r->yd, at, &none);

        if (!r->yd->error && !words_parse(words, text, &word)) {
            char *known = words_join(words, WORDS_ALL, ", ", " or ");

            yaml_doc_error(r->yd, at, "unknown %s '%s' of paths: must be %s", what, text, known);
            free(known);
        }
        free(text);
    }
    free(name);
    return word;
}

/* A time in milliseconds; 'what' is what it is called. */
static uint32_t
parse_msec(struct reader *r, const yaml_node_t *at, const char *what, const char *text,
           uint32_t min)
{
    uint64_t usec;

    if (r->yd->error) {
        return 0;
    }
    if (!quantity_parse(QUANTITY_TIME, text, &usec) || usec % 1000 || usec < UINT64_C(1000) * min
        || usec > UINT64_C(1000) * MAX_PROBE_INTERVAL) {
        yaml_doc_error(r->yd, at, "%s '%s': must be %ums to 60s, in whole milliseconds", what, text,
                       min);
        return 0;
    }
    return (uint32_t) (usec / 1000);
}

static uint32_t
read_msec(struct reader *r, const yaml_node_t *at, const char *what, uint32_t min)
{
    const struct range none = {.is_range = false};
    char *name = xasprintf("'%s'", what);
    uint32_t msec = 0;

    if (yaml_doc_is_scalar(r->yd, at, name)) {
        char *text = parameters_expand(r->ps, r->yd, at, &none);

        msec = parse_msec(r, at, what, text, min);
        free(text);
    }
    free(name);
    return msec;
}

/* "off", "default", or an interval. */
static void
read_probe_word(struct reader *r, const yaml_node_t *at)
{
    const struct range none = {.is_range = false};
    struct probe_choice *choice = &r->t->probes;
    char *text = parameters_expand(r->ps, r->yd, at, &none);

    if (!r->yd->error && strcmp(text, "default")) {
        choice->has_interval = true;
        choice->interval =
            strcmp(text, "off") ? parse_msec(r, at, "probe", text, MIN_PROBE_INTERVAL) : 0;
    }
    free(text);
}

static void
read_probe(struct reader *r, const yaml_node_t *at)
{
    static const char *const keys[] = {"interval", "timeout", NULL};
    struct probe_choice *choice = &r->t->probes;

    if (yaml_doc_text(at)) {
        read_probe_word(r, at);
        return;
    }
    if (!yaml_doc_has_keys(r->yd, at, "'probe'", keys)) {
        return;
    }
    const yaml_node_t *interval = yaml_doc_get(r->yd, at, "interval");
    const yaml_node_t *timeout = yaml_doc_get(r->yd, at, "timeout");
    if (interval) {
        choice->has_interval = true;
        choice->interval = read_msec(r, interval, "interval", MIN_PROBE_INTERVAL);
    }
    if (timeout && !r->yd->error) {
        choice->has_timeout = true;
        choice->timeout = read_msec(r, timeout, "timeout", MIN_PROBE_TIMEOUT);
    }
    const struct probe_settings all = {.all = *choice};
    if (!r->yd->error && probe_settings_are_cut(&all, "")) {
        yaml_doc_error(r->yd, timeout, "the timeout is longer than the interval, %u ms",
                       probe_settings_of(&all, "").interval);
    }
}

void
topology_read_paths(struct yaml_doc *yd, const struct parameters *ps, yaml_node_t *map,
                    struct topology *t)
{
    struct reader reader = {yd, ps, t}, *r = &reader;

    static const char *const keys[] = {"policy", "form", "probe", NULL};
    if (!yaml_doc_has_keys(r->yd, map, "'paths'", keys)) {
        return;
    }
    yaml_node_t *key, *value;
    for (size_t i = 0; !r->yd->error && yaml_doc_pair(r->yd, map, i, &key, &value); i++) {
        const char *name = yaml_doc_text(key);

        if (!strcmp(name, "policy")) {
            r->t->path_policy = read_word(r, value, name, &path_policy_words);
        } else if (!strcmp(name, "form")) {
            r->t->path_form = read_word(r, value, name, &path_form_words);
        } else {
            read_probe(r, value);
        }
    }
}
