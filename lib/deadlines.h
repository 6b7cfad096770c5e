/* SPDX-License-Identifier: Apache-2.0
 *
 * Times at which somebody wants to be called, the earliest first: a heap of those whose time
 * is not "never".
 *
 * An owner has one struct deadline inside.  Pure; time is in any unit.
 */
#ifndef LIB_DEADLINES_H
#define LIB_DEADLINES_H 1

#include <stddef.h>
#include <stdint.h>

/* Starts all zero. */
struct deadline {
    uint64_t when;
    size_t pos; /* index in the heap, plus 1; 0: it is never. */
    void *owner;
};

/* Starts all zero. */
struct deadlines {
    struct deadline **heap;
    size_t n;
    size_t allocated;
};

void deadlines_uninit(struct deadlines *);
/* Makes room for so many, so that deadlines_set() has no need to allocate. */
void deadlines_reserve(struct deadlines *, size_t n);
/* The owner of 'd' wants to be called at 'when'; UINT64_MAX: never, and nobody refers to 'd' any
 * more.  O(log n) if 'when' is another time than before, else O(1). */
void deadlines_set(struct deadlines *, struct deadline *d, uint64_t when, void *owner);

/* The earliest time; UINT64_MAX: there is none. */
static inline uint64_t
deadlines_first(const struct deadlines *ds)
{
    return ds->n ? ds->heap[0]->when : UINT64_MAX;
}

/* Owner of the earliest time, if that is not after 'now'; else NULL. */
static inline void *
deadlines_due(const struct deadlines *ds, uint64_t now)
{
    return ds->n && ds->heap[0]->when <= now ? ds->heap[0]->owner : NULL;
}

#endif /* lib/deadlines.h */
