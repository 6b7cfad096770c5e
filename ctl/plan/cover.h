/* SPDX-License-Identifier: Apache-2.0
 *
 * The fewest of some sets that have all items in them, and which sets would do equally well.
 */
#ifndef CTL_PLAN_COVER_H
#define CTL_PLAN_COVER_H 1

#include <stddef.h>
#include <stdint.h>

struct cover_set {
    size_t n;
    const size_t *items; /* in ascending order. */
};

#define COVER_NONE SIZE_MAX

/* Each of the items 0..n_items-1 is in one of the sets at least.  Gives the sets that are in a smallest
 * cover a group each, from 0 on, and all others COVER_NONE.  Returns how many groups there are.
 *
 * Each smallest cover has a set in each group, and from most groups exactly one: the sets of a group can
 * take each other's place.  So a group of one set is in all of them.  If many sets are needed where
 * they overlap, the answer is what a greedy choice gives: still a cover. */
size_t cover_find(const struct cover_set *, size_t n_sets, size_t n_items, size_t group[]);

#endif /* ctl/plan/cover.h */
