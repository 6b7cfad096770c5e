/* SPDX-License-Identifier: Apache-2.0
 *
 * What the registry has about how often paths are probed.
 */
#include <config.h>

#include "ctl/registry/probes.h"

#include <stdlib.h>

#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "util.h"

/* What the plane with this label has; NULL: it is no label. */
static struct probe_choice *
choice_of(struct probe_settings *s, const char *name)
{
    if (!name_is_valid(name)) {
        return NULL;
    }
    for (size_t i = 0; i < s->n_planes; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): xcalloc() always has memory. */
        if (!strcmp(s->planes[i].name, name)) {
            return &s->planes[i].choice;
        }
    }
    struct probe_plane *plane = &s->planes[s->n_planes++];
    ovs_strlcpy(plane->name, name, sizeof plane->name);
    return &plane->choice;
}

static int
compare_planes(const void *a_, const void *b_)
{
    const struct probe_plane *a = a_, *b = b_;

    return strcmp(a->name, b->name);
}

void
probe_settings_read(const struct rrec_global *row, struct probe_settings *s)
{
    struct probe_choice *choice;

    *s = (struct probe_settings){.n_planes = 0};
    if (!row) {
        return;
    }
    s->planes = xcalloc(row->n_probe_intervals + row->n_probe_timeouts + 1, sizeof *s->planes);
    s->all = (struct probe_choice){
        .has_interval = row->n_probe_interval,
        .has_timeout = row->n_probe_timeout,
        .interval = row->n_probe_interval ? (uint32_t) row->probe_interval[0] : 0,
        .timeout = row->n_probe_timeout ? (uint32_t) row->probe_timeout[0] : 0,
    };
    for (size_t i = 0; i < row->n_probe_intervals; i++) {
        if ((choice = choice_of(s, row->key_probe_intervals[i]))) {
            choice->has_interval = true;
            choice->interval = (uint32_t) row->value_probe_intervals[i];
        }
    }
    for (size_t i = 0; i < row->n_probe_timeouts; i++) {
        if ((choice = choice_of(s, row->key_probe_timeouts[i]))) {
            choice->has_timeout = true;
            choice->timeout = (uint32_t) row->value_probe_timeouts[i];
        }
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): xcalloc() always has memory. */
    qsort(s->planes, s->n_planes, sizeof *s->planes, compare_planes);
}

void
probe_settings_uninit(struct probe_settings *s)
{
    free(s->planes);
    s->planes = NULL;
    s->n_planes = 0;
}

const struct rrec_probe *
probe_find(const struct rrec_node *node, int64_t number)
{
    for (size_t i = 0; i < node->n_probes; i++) {
        if (node->probes[i]->number == number) {
            return node->probes[i];
        }
    }
    return NULL;
}

void
probe_choice_write(const struct rrec_global *row, const char *plane, const struct probe_choice *c)
{
    int64_t interval = c->interval, timeout = c->timeout;

    if (!plane[0]) {
        rrec_global_set_probe_interval(row, &interval, c->has_interval);
        rrec_global_set_probe_timeout(row, &timeout, c->has_timeout);
        return;
    }
    if (c->has_interval) {
        rrec_global_update_probe_intervals_setkey(row, plane, c->interval);
    } else {
        rrec_global_update_probe_intervals_delkey(row, plane);
    }
    if (c->has_timeout) {
        rrec_global_update_probe_timeouts_setkey(row, plane, c->timeout);
    } else {
        rrec_global_update_probe_timeouts_delkey(row, plane);
    }
}
