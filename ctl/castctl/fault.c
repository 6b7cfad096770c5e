/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl path fault: what is broken, by what nodes' probes say.
 */
#include <config.h>

#include "ctl/castctl/fault.h"

#include <stdlib.h>
#include <string.h>

#include "lib/fault-element.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

#define EVIDENCE_SHOWN 3 /* in text. */

/* A direction's link, "leaf1<>spine5"; malloc'd.  What is none stays. */
static char *
link_of(const char *element)
{
    const char *sign = strchr(element, '>');

    if (fault_element_kind(element) != FAULT_DIRECTION) {
        return xstrdup(element);
    }
    char *a = xmemdup0(element, (size_t) (sign - element)), *b = xstrdup(sign + 1);
    char *link = strverscmp(a, b) < 0 ? xasprintf("%s<>%s", a, b) : xasprintf("%s<>%s", b, a);
    free(a);
    free(b);
    return link;
}

/* A direction is one of a link: that is what it is shown as. */
static enum fault_kind
shown_kind(const char *element)
{
    enum fault_kind kind = fault_element_kind(element);

    return kind == FAULT_DIRECTION ? FAULT_LINK : kind;
}

static void
put_names(struct json *o, const char *key, const struct svec *names)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < names->n; i++) {
        json_array_add(array, json_string_create(names->names[i]));
    }
    json_object_put(o, key, array);
}

void
fault_put(struct json *o, const struct svec *elements, int64_t since, const struct svec *evidence)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < elements->n; i++) {
        const char *element = elements->names[i];
        bool one_way = fault_element_kind(element) == FAULT_DIRECTION;
        struct json *e = ctl_add_object(array);

        json_object_put(e, "element", json_string_create_nocopy(link_of(element)));
        json_object_put_string(e, "kind", fault_kind_name(shown_kind(element)));
        ctl_put_string_or_null(e, "direction", one_way ? element : NULL);
    }
    json_object_put(o, "candidates", array);
    ctl_put_time_at(o, "since", since);
    put_names(o, "evidence", evidence);
}

char *
fault_text(const struct svec *elements)
{
    return svec_join(elements, " or ", "");
}

char *
fault_evidence_text(const struct svec *evidence)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < evidence->n && i < EVIDENCE_SHOWN; i++) {
        ds_put_format(&s, "%s%s", i ? " " : "", evidence->names[i]);
    }
    if (evidence->n > EVIDENCE_SHOWN) {
        ds_put_format(&s, " +%" PRIuSIZE, evidence->n - EVIDENCE_SHOWN);
    }
    return ds_steal_cstr(&s);
}

/* A line of the table: candidates are joined. */
static void
put_line(struct json *o, const struct svec *elements, int64_t since, const struct svec *evidence)
{
    struct svec links = SVEC_EMPTY_INITIALIZER, kinds = SVEC_EMPTY_INITIALIZER;
    struct svec directions = SVEC_EMPTY_INITIALIZER;

    for (size_t i = 0; i < elements->n; i++) {
        const char *element = elements->names[i], *kind = fault_kind_name(shown_kind(element));

        svec_add_nocopy(&links, link_of(element));
        if (!svec_contains_unsorted(&kinds, kind)) {
            svec_add(&kinds, kind);
        }
        if (fault_element_kind(element) == FAULT_DIRECTION) {
            svec_add(&directions, element);
        }
    }
    json_object_put(o, "element", json_string_create_nocopy(fault_text(&links)));
    json_object_put(o, "kind", json_string_create_nocopy(fault_text(&kinds)));
    json_object_put(o, "direction", json_string_create_nocopy(fault_text(&directions)));
    ctl_put_time_at(o, "since", since);
    json_object_put(o, "evidence", json_string_create_nocopy(fault_evidence_text(evidence)));
    svec_destroy(&links);
    svec_destroy(&kinds);
    svec_destroy(&directions);
}

static void
get_names(struct svec *names, char *const from[], size_t n)
{
    svec_init(names);
    for (size_t i = 0; i < n; i++) {
        svec_add(names, from[i]);
    }
}

static int
compare_faults(const void *a_, const void *b_)
{
    const struct rrec_fault *const *a = a_, *const *b = b_;

    return strverscmp((*a)->elements[0], (*b)->elements[0]);
}

static void
path_fault(struct ctl *ctl)
{
    static const char *const keys[] = {"element",   "kind",     "direction", "since",
                                       "confirmed", "evidence", NULL};
    struct json *array = json_array_create_empty();
    const struct rrec_fault **rows, *row;
    size_t n = 0;

    RREC_FAULT_FOR_EACH(row, ctl->idl)
    {
        n++;
    }
    rows = xcalloc(n + 1, sizeof *rows);
    n = 0;
    RREC_FAULT_FOR_EACH(row, ctl->idl)
    {
        rows[n++] = row;
    }
    qsort(rows, n, sizeof *rows, compare_faults);
    for (size_t i = 0; i < n; i++) {
        struct svec elements, evidence;
        struct json *o = ctl_add_object(array);

        get_names(&elements, rows[i]->elements, rows[i]->n_elements);
        get_names(&evidence, rows[i]->evidence, rows[i]->n_evidence);
        (ctl->json ? fault_put : put_line)(o, &elements, rows[i]->since, &evidence);
        ctl_put_bool(o, "confirmed", rows[i]->confirmed);
        svec_destroy(&elements);
        svec_destroy(&evidence);
    }
    free(rows);
    ctl_print(ctl, array, keys);
}

const struct ctl_command ctl_fault_commands[] = {
    {"path fault", "", 0, 0, 0, 0, NULL, path_fault,
     "list what probes find broken: nodes, links, directions of links; several candidates of one fault\n"
     "        if they cannot be told apart"},
    {.name = NULL},
};
