/* SPDX-License-Identifier: Apache-2.0
 *
 * What is broken, by what nodes report of their probes: table Fault.
 *
 * A row stands for a list of candidates.  It is there as long as just these are found; another list is
 * another row.  After a while it is confirmed (ctl/plan/locate.h), for which castd computes anew then,
 * if nothing has changed before.  Only rows say since when that is: a castd that takes over goes on.
 *
 * Groups have no part in it.  It is done when a Probe row has changed.
 */
#include <config.h>

#include <limits.h>
#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/castd/columns.h"
#include "ctl/plan/locate.h"
#include "ctl/registry/values.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_faults);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(60, 60);

#define EVIDENCE_MAX 32

/*
 * Probes.
 */

struct probes {
    size_t n, allocated;
    struct locate_probe *probes;
    const struct rrec_probe **rows;
    struct svec names;
    struct shash by_number; /* "ADDRESS NUMBER", of the node that sends it. */
};

static enum locate_result
result_of(const struct rrec_probe *row)
{
    enum path_state state = PATH_UNKNOWN;

    if (row->state) {
        path_state_parse(row->state, &state);
    }
    return locate_result_of(state);
}

static int
compare_probes(const void *a_, const void *b_)
{
    const struct rrec_probe *const *a = a_, *const *b = b_;

    return (*a)->number < (*b)->number ? -1 : (*a)->number > (*b)->number;
}

static char *
number_key(const char *address, int64_t number)
{
    return xasprintf("%s %" PRId64, address, number);
}

/* Rows of one node, by number. */
static void
add_probes_of(struct probes *p, const struct castd_node *n)
{
    const struct rrec_probe **rows = xcalloc(n->row->n_probes + 1, sizeof *rows);
    struct in6_addr address = node_address(n->node->id);

    for (size_t i = 0; i < n->row->n_probes; i++) {
        rows[i] = n->row->probes[i];
    }
    qsort(rows, n->row->n_probes, sizeof *rows, compare_probes);
    for (size_t i = 0; i < n->row->n_probes; i++) {
        char *key = number_key(ip6_text(&address), rows[i]->number);

        /* From 1 on: 0 is NULL, which is no data. */
        shash_add_once(&p->by_number, key, (void *) (p->n + 1));
        free(key);
        svec_add_nocopy(&p->names, xasprintf("%s,%s", n->node->name, rows[i]->name));
        if (p->n == p->allocated) {
            p->rows = x2nrealloc(p->rows, &p->allocated, sizeof *p->rows);
        }
        p->rows[p->n++] = rows[i];
    }
    free(rows);
}

static const struct locate_probe *
reverse_of(const struct probes *p, const struct rrec_probe *row)
{
    char *key = number_key(row->peer, row->reverse);
    size_t i = (size_t) shash_find_data(&p->by_number, key);

    free(key);
    return row->reverse && i ? &p->probes[i - 1] : NULL;
}

static void
probes_init(struct probes *p, const struct castd *c)
{
    *p = (struct probes){.names = SVEC_EMPTY_INITIALIZER};
    shash_init(&p->by_number);
    for (size_t i = 0; i < c->n_nodes; i++) {
        add_probes_of(p, &c->nodes[i]);
    }
    p->probes = xcalloc(p->n + 1, sizeof *p->probes);
    for (size_t i = 0; i < p->n; i++) {
        const struct rrec_probe *row = p->rows[i];
        enum probe_kind kind = PROBE_LOOP;

        probe_kind_parse(row->kind, &kind);
        p->probes[i] = (struct locate_probe){
            .name = p->names.names[i],
            .node = row->node,
            .kind = kind,
            .elements = row->elements,
            .interval_usec = (uint32_t) row->interval * 1000,
            .result = result_of(row),
            .since = row->since,
            .heard = row->heard,
            .reverse = reverse_of(p, row),
        };
    }
}

static void
probes_uninit(struct probes *p)
{
    shash_destroy(&p->by_number);
    svec_destroy(&p->names);
    free(p->probes);
    free(p->rows);
}

/*
 * Rows of faults.
 */

static void
get_elements(struct svec *elements, const struct fault *f)
{
    svec_init(elements);
    for (size_t i = 0; i < f->n_elements; i++) {
        svec_add(elements, f->elements[i].name);
    }
    svec_sort_unique(elements);
}

/* The fault that this row is about; n_faults: it is gone. */
static size_t
find_fault(const struct fault *faults, size_t n_faults, const struct rrec_fault *row)
{
    size_t i = 0;
    bool found = false;

    while (i < n_faults && !found) {
        struct svec elements;

        get_elements(&elements, &faults[i]);
        found = columns_same_set(row->elements, row->n_elements, &elements);
        svec_destroy(&elements);
        i += !found;
    }
    return i;
}

static void
sync_evidence(const struct rrec_fault *row, const struct fault *f)
{
    struct svec names = SVEC_EMPTY_INITIALIZER;

    for (size_t i = 0; i < f->n_evidence && i < EVIDENCE_MAX; i++) {
        svec_add(&names, f->evidence[i]->name);
    }
    svec_sort_unique(&names);
    if (!columns_same_set(row->evidence, row->n_evidence, &names)) {
        rrec_fault_set_evidence(row, (void *) names.names, names.n);
    }
    svec_destroy(&names);
}

static void
log_fault(const struct rrec_fault *row, const char *what)
{
    struct svec elements = SVEC_EMPTY_INITIALIZER;

    for (size_t i = 0; i < row->n_elements; i++) {
        svec_add(&elements, row->elements[i]);
    }
    char *text = svec_join(&elements, " or ", "");
    VLOG_WARN_RL(&rl, "%s %s", what, text);
    free(text);
    svec_destroy(&elements);
}

/* Returns when it is to be confirmed; LLONG_MAX: it is. */
static long long
sync_fault(const struct rrec_fault *row, const struct fault *f, long long now)
{
    long long agreement = (long long) (fault_agreement_usec(f, row->since) / 1000);

    sync_evidence(row, f);
    if (row->confirmed) {
        return LLONG_MAX;
    } else if (row->since > now) { /* somebody has set the clock. */
        rrec_fault_set_since(row, now);
        return now + agreement;
    } else if (now - row->since < agreement) {
        return row->since + agreement;
    }
    log_fault(row, "broken:");
    rrec_fault_set_confirmed(row, true);
    return LLONG_MAX;
}

/* Likewise. */
static long long
add_fault(struct ovsdb_idl_txn *txn, const struct fault *f, long long now)
{
    const struct rrec_fault *row = rrec_fault_insert(txn);
    struct svec elements;

    get_elements(&elements, f);
    rrec_fault_set_elements(row, (void *) elements.names, elements.n);
    rrec_fault_set_since(row, now);
    sync_evidence(row, f);
    svec_destroy(&elements);
    return now + (long long) (fault_agreement_usec(f, now) / 1000);
}

static void
delete_fault(const struct rrec_fault *row)
{
    if (row->confirmed) {
        log_fault(row, "not broken any more:");
    }
    rrec_fault_delete(row);
}

/* Returns when the next one is to be confirmed. */
static long long
sync_faults(struct castd *c, const struct fault *faults, size_t n_faults, long long now)
{
    const struct rrec_fault *row, *next;
    bool *has_row = xcalloc(n_faults + 1, sizeof *has_row);
    long long due = LLONG_MAX;

    RREC_FAULT_FOR_EACH_SAFE(row, next, c->idl)
    {
        size_t i = find_fault(faults, n_faults, row);

        if (i < n_faults && !has_row[i]) {
            has_row[i] = true;
            due = MIN(due, sync_fault(row, &faults[i], now));
        } else {
            delete_fault(row);
        }
    }
    for (size_t i = 0; i < n_faults; i++) {
        if (!has_row[i]) {
            due = MIN(due, add_fault(ovsdb_idl_txn_get(&c->global->header_), &faults[i], now));
        }
    }
    free(has_row);
    return due;
}

void
castd_find_faults(struct castd *c, long long now)
{
    struct fault *faults;
    struct probes probes;
    size_t n_faults;

    if (c->work->faults || now >= c->work->faults_at) {
        probes_init(&probes, c);
        locate_faults(probes.probes, probes.n, &faults, &n_faults);
        c->work->faults_at = sync_faults(c, faults, n_faults, now);
        locate_faults_free(faults, n_faults);
        probes_uninit(&probes);
        c->work->faults = false;
        c->work->faults_taken = true;
    }
}
