/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of paths, and what lies between two of them.
 *
 * A path that was bad and comes back is tried for a while before it is good: until then it is bad
 * here.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/view.h"
#include "lib/path-health.h"
#include "util.h"

static int
compare_probes(const void *a_, const void *b_)
{
    const struct probe_view *a = a_, *b = b_;
    int order = strverscmp(a->node, b->node);

    order = order ? order : strcmp(a->kind, b->kind);
    return order ? order : strverscmp(a->name, b->name);
}

/* Is that a state of a path that was bad, and is not good again? */
static bool
is_bad(const char *word)
{
    enum path_state state;

    return word && path_state_parse(word, &state)
           && (state == PATH_BAD || state == PATH_RECOVERING);
}

void
view_read_probes(struct view *view, const struct ovsdb_idl *idl)
{
    const struct rrec_probe *row;
    size_t allocated = 0;

    RREC_PROBE_FOR_EACH(row, idl)
    {
        if (view->n_probes == allocated) {
            view->probes = x2nrealloc(view->probes, &allocated, sizeof *view->probes);
        }
        view->probes[view->n_probes++] = (struct probe_view){
            .uuid = row->header_.uuid,
            .node = xstrdup(row->node),
            .kind = xstrdup(row->kind),
            .name = xstrdup(row->name),
            .plane = xstrdup(row->plane),
            .is_bad = is_bad(row->state),
            .since = row->since,
        };
    }
    if (view->n_probes) {
        qsort(view->probes, view->n_probes, sizeof *view->probes, compare_probes);
    }
}

void
view_uninit_probes(struct view *view)
{
    for (size_t i = 0; i < view->n_probes; i++) {
        free(view->probes[i].node);
        free(view->probes[i].kind);
        free(view->probes[i].name);
        free(view->probes[i].plane);
    }
    free(view->probes);
    view->probes = NULL;
    view->n_probes = 0;
}

/* One that both views have, or one of them.  What has gone is neither good nor bad. */
static void
compare_probe(const struct probe_view *before, const struct probe_view *now,
              void (*report)(const struct view_change *, void *aux), void *aux)
{
    bool same = before && now && uuid_equals(&before->uuid, &now->uuid);
    bool was_bad = same && before->is_bad;

    if (now && now->is_bad != was_bad) {
        enum view_event event = now->is_bad ? EVENT_PATH_BAD : EVENT_PATH_GOOD;

        report(&(struct view_change){.event = view_event_name(event), .probe = now}, aux);
    }
}

void
view_compare_probes(const struct view *before, const struct view *now,
                    void (*report)(const struct view_change *, void *aux), void *aux)
{
    size_t n_before = before ? before->n_probes : 0;

    for (size_t i = 0, j = 0; i < n_before || j < now->n_probes;) {
        const struct probe_view *b = i < n_before ? &before->probes[i] : NULL;
        const struct probe_view *n = j < now->n_probes ? &now->probes[j] : NULL;
        int order = b && n ? compare_probes(b, n) : b ? -1 : 1;

        i += order <= 0;
        j += order >= 0;
        compare_probe(order <= 0 ? b : NULL, order >= 0 ? n : NULL, report, aux);
    }
}
