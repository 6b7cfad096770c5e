/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of what is broken in the network.
 *
 * A row is one list of candidates, so a fault is the same as long as its row is there.
 */
#include <config.h>

#include "ctl/registry/view.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/registry/rocecast-idl.h"
#include "util.h"

static int
compare_faults(const void *a_, const void *b_)
{
    const struct fault_view *a = a_, *b = b_;

    for (size_t i = 0; i < a->elements.n && i < b->elements.n; i++) {
        int order = strverscmp(a->elements.names[i], b->elements.names[i]);

        if (order) {
            return order;
        }
    }
    return a->elements.n < b->elements.n ? -1 : a->elements.n > b->elements.n;
}

/* Those that are not confirmed may be none. */
void
view_read_faults(struct view *view, const struct ovsdb_idl *idl)
{
    const struct rrec_fault *row;
    size_t allocated = 0;

    RREC_FAULT_FOR_EACH(row, idl)
    {
        if (!row->confirmed) {
            continue;
        }
        if (view->n_faults == allocated) {
            view->faults = x2nrealloc(view->faults, &allocated, sizeof *view->faults);
        }
        struct fault_view *f = &view->faults[view->n_faults++];
        *f = (struct fault_view){.uuid = row->header_.uuid, .since = row->since};
        for (size_t i = 0; i < row->n_elements; i++) {
            svec_add(&f->elements, row->elements[i]);
        }
        for (size_t i = 0; i < row->n_evidence; i++) {
            svec_add(&f->evidence, row->evidence[i]);
        }
    }
    if (view->n_faults) {
        qsort(view->faults, view->n_faults, sizeof *view->faults, compare_faults);
    }
}

void
view_uninit_faults(struct view *view)
{
    for (size_t i = 0; i < view->n_faults; i++) {
        svec_destroy(&view->faults[i].elements);
        svec_destroy(&view->faults[i].evidence);
    }
    free(view->faults);
}

/* Has the view the row of this fault? */
static bool
has_fault(const struct view *view, const struct fault_view *f)
{
    bool found = false;

    for (size_t i = 0; view && i < view->n_faults && !found; i++) {
        found = uuid_equals(&view->faults[i].uuid, &f->uuid);
    }
    return found;
}

/* Faults of the one view that the other one has not. */
static void
report_faults(enum view_event event, const struct view *view, const struct view *other,
              void (*report)(const struct view_change *, void *aux), void *aux)
{
    for (size_t i = 0; view && i < view->n_faults; i++) {
        if (!has_fault(other, &view->faults[i])) {
            report(
                &(struct view_change){.event = view_event_name(event), .fault = &view->faults[i]},
                aux);
        }
    }
}

void
view_compare_faults(const struct view *before, const struct view *now,
                    void (*report)(const struct view_change *, void *aux), void *aux)
{
    report_faults(EVENT_FAULT_CLEARED, before, now, report, aux);
    report_faults(EVENT_FAULT, now, before, report, aux);
}
