/* SPDX-License-Identifier: Apache-2.0
 *
 * Times at which somebody wants to be called: a binary heap whose elements know where they are.
 */
#include "lib/deadlines.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/alloc.h"

void
deadlines_uninit(struct deadlines *ds)
{
    free(ds->heap);
    *ds = (struct deadlines){0};
}

void
deadlines_reserve(struct deadlines *ds, size_t n)
{
    if (n > ds->allocated) {
        struct deadline **heap = must_calloc(n, sizeof(struct deadline *));

        for (size_t i = 0; i < ds->n; i++) {
            heap[i] = ds->heap[i];
        }
        free(ds->heap);
        ds->heap = heap;
        ds->allocated = n;
    }
}

static void
put(struct deadlines *ds, size_t i, struct deadline *d)
{
    ds->heap[i] = d;
    d->pos = i + 1;
}

/* Puts 'd' where it belongs; the place at 'i' is free. */
static void
place(struct deadlines *ds, size_t i, struct deadline *d)
{
    while (i > 0 && d->when < ds->heap[(i - 1) / 2]->when) {
        put(ds, i, ds->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (size_t child; (child = 2 * i + 1) < ds->n; i = child) {
        if (child + 1 < ds->n && ds->heap[child + 1]->when < ds->heap[child]->when) {
            child++;
        }
        if (ds->heap[child]->when >= d->when) {
            break;
        }
        put(ds, i, ds->heap[child]);
    }
    put(ds, i, d);
}

static void
take_out(struct deadlines *ds, struct deadline *d)
{
    struct deadline *last = ds->heap[--ds->n];

    if (last != d) {
        place(ds, d->pos - 1, last);
    }
    d->pos = 0;
}

void
deadlines_set(struct deadlines *ds, struct deadline *d, uint64_t when, void *owner)
{
    d->owner = owner;
    if (when == UINT64_MAX) {
        if (d->pos) {
            take_out(ds, d);
        }
    } else if (!d->pos) {
        assert(ds->n < ds->allocated);
        d->when = when;
        place(ds, ds->n++, d);
    } else if (when != d->when) {
        d->when = when;
        place(ds, d->pos - 1, d);
    }
}
