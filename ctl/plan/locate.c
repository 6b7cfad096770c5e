/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, faults: from what became of probes to what is broken.
 *
 *   1. Nodes report changes only.  So what a dead one has reported last stays, and is found out: its
 *      peers' probes over the same links have failed since.  What is outdated counts as unknown.
 *   2. All elements on the way of a probe that works are good.  Of a peer's probe that arrives here this
 *      holds for the directions towards here.
 *   3. On the way of each probe that fails one of the other elements is broken.  Where both directions
 *      of a link may be, the link is one candidate; where the other direction is good, the direction
 *      is.
 *   4. The smallest explanations of all probes that fail are those of cover.h: a candidate is the set
 *      of probes that fail on it.  So a node is preferred to several of its links.
 *
 * A probe that fails although all on its way is good is a fault of its own: the way as a whole.  It is
 * none if something on its way has been good only since later: a probe that fails is sent less often,
 * so it has not noticed yet.
 */
#include <config.h>

#include "ctl/plan/locate.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/plan/cover.h"
#include "openvswitch/shash.h"
#include "util.h"

#define AGREEMENT   2       /* intervals. */
#define BACKOFF_MAX 16      /* by which the interval of a probe that fails is stretched. */
#define REPORT_USEC 1200000 /* from a change to a node's report of it, at most. */

/* What may be broken. */
struct candidate {
    struct fault_element element;
    size_t n, allocated;
    size_t *failing; /* numbers of the failing probes that pass it. */
};

struct element {
    const char *name;
    bool is_link;            /* in one direction; else it is a node. */
    struct element *reverse; /* of a link; NULL: not known. */
    bool good;
    int64_t good_since; /* the first of the probes that work: when it began to. */
    bool failing;       /* a probe that fails passes it. */
    size_t candidate;   /* SIZE_MAX: none. */
    bool silent;        /* of a node that sends probes: what it has reported is outdated. */
};

/* A probe, and what is known of it after step 1. */
struct way {
    const struct locate_probe *probe;
    struct element *node; /* that sends it. */
    size_t n, allocated;
    struct element **elements;
    size_t n_links;
    enum locate_result result;
    bool heard;
};

struct locate {
    size_t n_probes;
    const struct locate_probe *probes;
    struct way *ways; /* of each probe. */
    struct shash by_name;
    size_t n_failing, allocated_failing;
    size_t *failing; /* indexes of probes with a candidate. */
    size_t n_candidates, allocated_candidates;
    struct candidate *candidates;
    size_t n_faults, allocated_faults;
    struct fault *faults;
};

/*
 * Elements.
 */

static struct element *
find_element(struct locate *l, const char *name)
{
    struct element *e = shash_find_data(&l->by_name, name);

    if (!e) {
        e = xmalloc(sizeof *e);
        *e = (struct element){
            .is_link = strchr(name, '>') != NULL, .candidate = SIZE_MAX, .good_since = INT64_MAX};
        e->name = shash_add(&l->by_name, name, e)->name;
    }
    return e;
}

static void
add_to_way(struct way *w, struct element *e)
{
    if (w->n == w->allocated) {
        w->elements = x2nrealloc(w->elements, &w->allocated, sizeof *w->elements);
    }
    w->elements[w->n++] = e;
    w->n_links += e->is_link;
}

static void
read_elements(struct locate *l, struct way *w)
{
    char *text = xstrdup(w->probe->elements), *save = NULL;

    for (char *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
        add_to_way(w, find_element(l, name));
    }
    add_to_way(w, w->node);
    free(text);
}

/* The way back is the way there backwards: the first link is the last one's reverse. */
static void
pair_links(const struct way *w)
{
    size_t j = w->n;

    for (size_t i = 0; i < w->n; i++) {
        if (!w->elements[i]->is_link) {
            continue;
        }
        do {
            j--;
        } while (j > i && !w->elements[j]->is_link);
        if (j <= i) {
            return;
        }
        struct element *there = w->elements[i], *back = w->elements[j];
        if (there != back && !there->reverse && !back->reverse) {
            there->reverse = back;
            back->reverse = there;
        }
    }
}

static void
find_ways(struct locate *l)
{
    l->ways = xcalloc(l->n_probes + 1, sizeof *l->ways);
    for (size_t i = 0; i < l->n_probes; i++) {
        const struct locate_probe *p = &l->probes[i];

        l->ways[i] = (struct way){
            .probe = p,
            .node = find_element(l, p->node),
            .result = p->result,
            .heard = p->kind == PROBE_PEER && p->heard,
        };
        read_elements(l, &l->ways[i]);
        pair_links(&l->ways[i]);
    }
}

/*
 * Step 1: what is outdated.
 */

/* The peer's probe over the same links; NULL: there is none. */
static struct way *
reverse_way(const struct locate *l, const struct way *w)
{
    return w->probe->reverse ? &l->ways[w->probe->reverse - l->probes] : NULL;
}

/* The two probes take the same links in both directions, so one of the two is outdated. */
static bool
is_contradicted(const struct way *w, const struct way *reverse)
{
    return w->probe->result == LOCATE_WORKS && reverse->probe->result == LOCATE_FAILS;
}

/* A node that is contradicted is silent, unless one that is not says the same as it of another way. */
static void
find_silent(struct locate *l)
{
    bool changed = true;

    for (size_t i = 0; i < l->n_probes; i++) {
        struct way *w = &l->ways[i], *r = reverse_way(l, w);

        w->node->silent |= r && is_contradicted(w, r) && w->probe->since <= r->probe->since;
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < l->n_probes; i++) {
            struct way *w = &l->ways[i], *r = reverse_way(l, w);

            if (r && w->node->silent && !r->node->silent && w->probe->result == LOCATE_WORKS
                && r->probe->result == LOCATE_WORKS) {
                w->node->silent = false;
                changed = true;
            }
        }
    }
}

static void
forget_outdated(struct locate *l)
{
    for (size_t i = 0; i < l->n_probes; i++) {
        struct way *w = &l->ways[i], *r = reverse_way(l, w);

        if (w->node->silent) {
            w->result = LOCATE_UNKNOWN;
            w->heard = false;
        } else if (r && is_contradicted(w, r) && w->probe->since <= r->probe->since) {
            w->result = LOCATE_UNKNOWN;
        } else if (r && is_contradicted(r, w) && w->probe->since < r->probe->since
                   && !r->node->silent) {
            w->result = LOCATE_UNKNOWN; /* it was not sent again yet. */
        }
    }
}

/*
 * Step 2: what is good.
 */

static void
find_good(struct locate *l)
{
    for (size_t i = 0; i < l->n_probes; i++) {
        struct way *w = &l->ways[i];
        size_t n_links = 0;

        for (size_t j = 0; j < w->n; j++) {
            struct element *e = w->elements[j];

            n_links += e->is_link;
            /* Nodes are on both ways; of the links the second half are those of the way back. */
            bool leads_here = !e->is_link || n_links > w->n_links / 2;
            if (w->result == LOCATE_WORKS || (w->heard && leads_here)) {
                e->good = true;
                e->good_since = MIN(e->good_since, w->probe->since);
            }
            e->failing |= w->result == LOCATE_FAILS;
        }
    }
}

/*
 * Step 3: what may be broken.
 */

static bool
is_suspect(const struct element *e)
{
    return e->failing && !e->good;
}

/* "leaf1:eth3<>spine5:eth0", of "leaf1:eth3>spine5" and "spine5:eth0>leaf1". */
static char *
link_name(const struct element *e)
{
    bool in_order = strverscmp(e->name, e->reverse->name) < 0;
    const char *a = in_order ? e->name : e->reverse->name;
    const char *b = in_order ? e->reverse->name : e->name;

    return xasprintf("%.*s<>%.*s", (int) strcspn(a, ">"), a, (int) strcspn(b, ">"), b);
}

static void
add_candidate(struct locate *l, struct element *e)
{
    bool is_link = e->reverse && is_suspect(e->reverse);

    if (l->n_candidates == l->allocated_candidates) {
        l->candidates = x2nrealloc(l->candidates, &l->allocated_candidates, sizeof *l->candidates);
    }
    e->candidate = l->n_candidates;
    if (is_link) {
        e->reverse->candidate = l->n_candidates;
    }
    l->candidates[l->n_candidates++] = (struct candidate){
        .element.kind = is_link      ? FAULT_LINK
                        : e->is_link ? FAULT_DIRECTION
                                     : FAULT_NODE,
        .element.name = is_link ? link_name(e) : xstrdup(e->name),
    };
}

/* The failing probe with this number passes it. */
static void
note_failing(struct candidate *c, size_t number)
{
    if (c->n && c->failing[c->n - 1] == number) {
        return; /* in the other direction. */
    }
    if (c->n == c->allocated) {
        c->failing = x2nrealloc(c->failing, &c->allocated, sizeof *c->failing);
    }
    c->failing[c->n++] = number;
}

static struct fault *
add_fault(struct locate *l)
{
    if (l->n_faults == l->allocated_faults) {
        l->faults = x2nrealloc(l->faults, &l->allocated_faults, sizeof *l->faults);
    }
    l->faults[l->n_faults] = (struct fault){.n_elements = 0};
    return &l->faults[l->n_faults++];
}

static void
add_element(struct fault *f, enum fault_kind kind, const char *name)
{
    f->elements = xrealloc(f->elements, (f->n_elements + 1) * sizeof *f->elements);
    f->elements[f->n_elements++] = (struct fault_element){kind, xstrdup(name)};
}

static void
add_evidence(struct fault *f, const struct locate_probe *p)
{
    f->evidence = xrealloc(f->evidence, (f->n_evidence + 1) * sizeof *f->evidence);
    f->evidence[f->n_evidence++] = p;
}

/* All on its way is good.  Was it when the probe began to fail? */
static bool
was_good(const struct way *w)
{
    bool good = true;

    for (size_t i = 0; i < w->n; i++) {
        good = good && w->elements[i]->good_since <= w->probe->since;
    }
    return good;
}

static void
add_path_fault(struct locate *l, const struct locate_probe *p)
{
    struct fault *f = add_fault(l);

    add_element(f, FAULT_PATH, p->name);
    add_evidence(f, p);
}

static void
find_candidates(struct locate *l)
{
    for (size_t i = 0; i < l->n_probes; i++) {
        const struct way *w = &l->ways[i];
        bool any = false;

        for (size_t j = 0; w->result == LOCATE_FAILS && j < w->n; j++) {
            struct element *e = w->elements[j];

            if (is_suspect(e) && e->candidate == SIZE_MAX) {
                add_candidate(l, e);
            }
            if (is_suspect(e)) {
                note_failing(&l->candidates[e->candidate], l->n_failing);
                any = true;
            }
        }
        if (any) {
            if (l->n_failing == l->allocated_failing) {
                l->failing = x2nrealloc(l->failing, &l->allocated_failing, sizeof *l->failing);
            }
            l->failing[l->n_failing++] = i;
        } else if (w->result == LOCATE_FAILS && was_good(w)) {
            add_path_fault(l, w->probe);
        }
    }
}

/*
 * Step 4: what explains it.
 */

static int
compare_elements(const void *a_, const void *b_)
{
    const struct fault_element *a = a_, *b = b_;

    return a->kind != b->kind ? (int) a->kind - (int) b->kind : strverscmp(a->name, b->name);
}

static int
compare_faults(const void *a_, const void *b_)
{
    const struct fault *a = a_, *b = b_;

    return compare_elements(&a->elements[0], &b->elements[0]);
}

static void
add_explanation(struct locate *l, const size_t group[], size_t number)
{
    struct fault *f = add_fault(l);
    bool *fails = xcalloc(l->n_failing, sizeof *fails);

    for (size_t i = 0; i < l->n_candidates; i++) {
        const struct candidate *c = &l->candidates[i];

        for (size_t j = 0; group[i] == number && j < c->n; j++) {
            fails[c->failing[j]] = true;
        }
        if (group[i] == number) {
            add_element(f, c->element.kind, c->element.name);
        }
    }
    for (size_t i = 0; i < l->n_failing; i++) {
        if (fails[i]) {
            add_evidence(f, &l->probes[l->failing[i]]);
        }
    }
    if (f->n_elements) { /* always: a group has a member. */
        qsort(f->elements, f->n_elements, sizeof *f->elements, compare_elements);
    }
    free(fails);
}

static void
explain(struct locate *l)
{
    struct cover_set *sets = xcalloc(l->n_candidates + 1, sizeof *sets);
    size_t *group = xcalloc(l->n_candidates + 1, sizeof *group);

    for (size_t i = 0; i < l->n_candidates; i++) {
        sets[i] = (struct cover_set){l->candidates[i].n, l->candidates[i].failing};
    }
    size_t n = cover_find(sets, l->n_candidates, l->n_failing, group);
    for (size_t i = 0; i < n; i++) {
        add_explanation(l, group, i);
    }
    if (l->n_faults) {
        qsort(l->faults, l->n_faults, sizeof *l->faults, compare_faults);
    }
    free(sets);
    free(group);
}

enum locate_result
locate_result_of(enum path_state state)
{
    switch (state) {
    case PATH_GOOD:
    case PATH_RECOVERING: return LOCATE_WORKS;
    case PATH_BAD: return LOCATE_FAILS;
    case PATH_SUSPECT:
    case PATH_UNKNOWN: break;
    }
    return LOCATE_UNKNOWN;
}

void
locate_faults(const struct locate_probe *probes, size_t n_probes, struct fault **faults, size_t *n)
{
    struct locate l = {.probes = probes, .n_probes = n_probes};

    shash_init(&l.by_name);
    find_ways(&l);
    find_silent(&l);
    forget_outdated(&l);
    find_good(&l);
    find_candidates(&l);
    explain(&l);
    *faults = l.faults;
    *n = l.n_faults;

    for (size_t i = 0; i < l.n_candidates; i++) {
        free(l.candidates[i].element.name);
        free(l.candidates[i].failing);
    }
    for (size_t i = 0; i < n_probes; i++) {
        free(l.ways[i].elements);
    }
    free(l.candidates);
    free(l.ways);
    free(l.failing);
    shash_destroy_free_data(&l.by_name);
}

void
locate_faults_free(struct fault *faults, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < faults[i].n_elements; j++) {
            free(faults[i].elements[j].name);
        }
        free(faults[i].elements);
        free(faults[i].evidence);
    }
    free(faults);
}

uint64_t
fault_agreement_usec(const struct fault *f, int64_t found)
{
    uint64_t interval = 0, agreement;
    int64_t newest = INT64_MIN;

    for (size_t i = 0; i < f->n_evidence; i++) {
        interval = MAX(interval, f->evidence[i]->interval_usec);
        newest = MAX(newest, f->evidence[i]->since);
    }
    agreement = AGREEMENT * interval + REPORT_USEC;
    /* If all of the probes have failed for longer they may be left from another fault, and the next
     * one of each may be late. */
    return newest < found - (int64_t) (agreement / 1000)
               ? AGREEMENT * interval * BACKOFF_MAX + REPORT_USEC
               : agreement;
}
