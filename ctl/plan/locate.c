/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, faults: from what became of probes to what is broken.
 *
 *   1. All elements on the way of a probe that works are good.  Of a peer's probe that arrives here this
 *      holds for the directions towards here.
 *   2. On the way of each probe that fails one of the other elements is broken.  Where both directions
 *      of a link may be, the link is one candidate; where the other direction is good, or no probe
 *      that fails passes it, the direction is.
 *   3. The smallest explanations of all probes that fail are those of cover.h: a candidate is the set
 *      of probes that fail on it.  So a node is preferred to several of its links.
 *
 * A probe that fails although all on its way is good is a fault of its own: the way as a whole.
 */
#include <config.h>

#include "ctl/plan/locate.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/plan/cover.h"
#include "openvswitch/shash.h"
#include "util.h"

static const struct {
    const char *name;
} kinds[] = {
    [FAULT_NODE] = {"node"},
    [FAULT_LINK] = {"link"},
    [FAULT_DIRECTION] = {"direction"},
    [FAULT_PATH] = {"path"},
};
WORDS_DEFINE(fault_kind, enum fault_kind, kinds);

#define AGREEMENT   2  /* intervals. */
#define BACKOFF_MAX 16 /* by which the interval of a probe that fails is stretched. */

/* What may be broken. */
struct candidate {
    struct fault_element element;
    size_t n, allocated;
    size_t *failing; /* numbers of the failing probes that pass it. */
};

struct element {
    const char *name;
    /* NULL: it is a node. */
    struct element *tail, *head; /* of a direction: the nodes that it leads from and to. */
    struct element *reverse;     /* of a direction. */
    bool good;
    bool failing;     /* a probe that fails passes it. */
    size_t distance;  /* of a node: from that of the probe that is looked at, in links; SIZE_MAX:
                      * there is no way. */
    size_t candidate; /* SIZE_MAX: none. */
};

struct locate {
    const struct locate_probe *probes;
    size_t n_probes;
    struct element ***elements; /* of each probe. */
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

static struct element *find_element(struct locate *, const char *name);

/* The node at an end of a direction: "leaf1" of "leaf1:eth3". */
static struct element *
find_end(struct locate *l, const char *end, size_t len)
{
    char *name = xmemdup0(end, MIN(len, strcspn(end, ":")));
    struct element *e = find_element(l, name);

    free(name);
    return e;
}

static struct element *
find_element(struct locate *l, const char *name)
{
    struct element *e = shash_find_data(&l->by_name, name);
    const char *sign = strchr(name, '>');

    if (e) {
        return e;
    }
    e = xmalloc(sizeof *e);
    *e = (struct element){.candidate = SIZE_MAX};
    e->name = shash_add(&l->by_name, name, e)->name;
    if (sign) {
        char *reverse = xasprintf("%s>%.*s", sign + 1, (int) (sign - name), name);

        e->tail = find_end(l, name, (size_t) (sign - name));
        e->head = find_end(l, sign + 1, strlen(sign + 1));
        e->reverse = find_element(l, reverse);
        free(reverse);
    }
    return e;
}

static void
find_elements(struct locate *l)
{
    l->elements = xcalloc(l->n_probes + 1, sizeof *l->elements);
    for (size_t i = 0; i < l->n_probes; i++) {
        const struct locate_probe *p = &l->probes[i];

        l->elements[i] = xcalloc(p->n_elements + 1, sizeof *l->elements[i]);
        for (size_t j = 0; j < p->n_elements; j++) {
            l->elements[i][j] = find_element(l, p->elements[j]);
        }
    }
}

/*
 * Step 1: what is good.
 */

static void
set_distance(struct element *node, size_t distance)
{
    if (node->tail) {
        node->tail->distance = node->head->distance = distance;
    } else {
        node->distance = distance;
    }
}

/* How far the nodes on the probe's way are from who sends it. */
static void
find_distances(struct locate *l, size_t i)
{
    const struct locate_probe *p = &l->probes[i];
    bool any = true;

    for (size_t j = 0; j < p->n_elements; j++) {
        set_distance(l->elements[i][j], SIZE_MAX);
    }
    find_element(l, p->from)->distance = 0;
    for (size_t far = 0; any; far++) {
        any = false;
        for (size_t j = 0; j < p->n_elements; j++) {
            const struct element *e = l->elements[i][j];

            if (e->tail && e->tail->distance == far && e->head->distance == SIZE_MAX) {
                e->head->distance = far + 1;
                any = true;
            }
        }
    }
}

/* Leads this direction towards who sends the probe?  Nodes are on both ways. */
static bool
leads_here(const struct element *e)
{
    return !e->tail || (e->tail->distance != SIZE_MAX && e->head->distance < e->tail->distance);
}

static void
find_good(struct locate *l)
{
    for (size_t i = 0; i < l->n_probes; i++) {
        const struct locate_probe *p = &l->probes[i];
        bool heard = p->result != LOCATE_WORKS && p->kind == PROBE_PEER && p->heard;

        if (heard) {
            find_distances(l, i);
        }
        for (size_t j = 0; j < p->n_elements; j++) {
            struct element *e = l->elements[i][j];

            e->good |= p->result == LOCATE_WORKS || (heard && leads_here(e));
            e->failing |= p->result == LOCATE_FAILS;
        }
    }
}

/*
 * Step 2: what may be broken.
 */

static bool
is_suspect(const struct element *e)
{
    return e->failing && !e->good;
}

/* "leaf1-spine5". */
static char *
link_name(const struct element *direction)
{
    const char *a = direction->name, *b = strchr(a, '>') + 1;
    int a_len = (int) (b - a - 1), b_len = (int) strlen(b);
    bool in_order = strverscmp(direction->name, direction->reverse->name) < 0;

    return in_order ? xasprintf("%.*s-%.*s", a_len, a, b_len, b)
                    : xasprintf("%.*s-%.*s", b_len, b, a_len, a);
}

static void
add_candidate(struct locate *l, struct element *e)
{
    bool is_link = e->tail && is_suspect(e->reverse);

    if (l->n_candidates == l->allocated_candidates) {
        l->candidates = x2nrealloc(l->candidates, &l->allocated_candidates, sizeof *l->candidates);
    }
    e->candidate = l->n_candidates;
    if (is_link) {
        e->reverse->candidate = l->n_candidates;
    }
    l->candidates[l->n_candidates++] = (struct candidate){
        .element.kind = is_link   ? FAULT_LINK
                        : e->tail ? FAULT_DIRECTION
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

/* All on its way is good elsewhere. */
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
        const struct locate_probe *p = &l->probes[i];
        bool any = false;

        for (size_t j = 0; p->result == LOCATE_FAILS && j < p->n_elements; j++) {
            struct element *e = l->elements[i][j];

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
        } else if (p->result == LOCATE_FAILS) {
            add_path_fault(l, p);
        }
    }
}

/*
 * Step 3: what explains it.
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
    qsort(f->elements, f->n_elements, sizeof *f->elements, compare_elements);
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

void
locate_faults(const struct locate_probe *probes, size_t n_probes, struct fault **faults, size_t *n)
{
    struct locate l = {.probes = probes, .n_probes = n_probes};

    shash_init(&l.by_name);
    find_elements(&l);
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
        free(l.elements[i]);
    }
    free(l.candidates);
    free(l.elements);
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
fault_agreement_usec(const struct fault *f)
{
    bool is_path = f->elements[0].kind == FAULT_PATH;
    uint64_t interval = 0;

    for (size_t i = 0; i < f->n_evidence; i++) {
        interval = MAX(interval, f->evidence[i]->interval_usec);
    }
    /* Other ways may have recovered, and this probe not yet have been sent again. */
    return AGREEMENT * interval * (is_path ? BACKOFF_MAX : 1);
}
