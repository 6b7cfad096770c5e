/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, cover: the fewest sets that have all items in them.
 *
 *   1. A set that is the only one with some item is in every cover.  It is taken, its items are done,
 *      and the same is asked of what is left.
 *   2. Items that no chain of sets connects have nothing to do with each other: what is left falls into
 *      parts.
 *   3. All smallest covers of a part are looked for, first those of one set, then of two, and so on:
 *      some item is not covered yet, so one of its sets is in the cover.  Sets that are equal as far
 *      as they are left are looked at once.
 *   4. Two sets that take each other's place in some cover are of one group.
 *
 * Where step 3 would take too long the set with the most items is taken, and all begins anew with what
 * is left.
 */
#include <config.h>

#include "ctl/plan/cover.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

/* Bounds of step 3. */
#define COVER_SIZE_MAX 4
#define COVERS_MAX     256
#define SETS_MAX       256
#define STEPS_MAX      100000

struct cover {
    const struct cover_set *sets;
    size_t n_sets, n_items;
    bool *done;   /* items that are covered for good. */
    size_t *left; /* of each set how many items are not. */
    size_t *part; /* of items: the part's first item. */
    size_t *group;
    size_t n_groups;
};

/* Of one part. */
struct search {
    const struct cover *c;
    size_t n_items;
    size_t *items;
    size_t n_sets;
    size_t sets[SETS_MAX]; /* those that differ. */
    unsigned *n_times;     /* by item of the cover: in how many of the chosen sets it is. */
    size_t n_covered;      /* items of the part. */
    size_t most;           /* items that one set has at most. */
    size_t n_steps;

    size_t size; /* of the covers. */
    size_t chosen[COVER_SIZE_MAX];
    size_t n_covers;
    size_t covers[COVERS_MAX]
                 [COVER_SIZE_MAX]; /* indexes in 'sets', each cover in ascending order. */
};

/* Takes a set for good. */
static void
take(struct cover *c, size_t set)
{
    for (size_t i = 0; i < c->sets[set].n; i++) {
        c->done[c->sets[set].items[i]] = true;
    }
}

static void
count_left(struct cover *c)
{
    for (size_t i = 0; i < c->n_sets; i++) {
        c->left[i] = 0;
        for (size_t j = 0; j < c->sets[i].n; j++) {
            c->left[i] += !c->done[c->sets[i].items[j]];
        }
    }
}

/* Do the two have the same of what is left? */
static bool
is_equal(const struct cover *c, size_t a, size_t b)
{
    const struct cover_set *x = &c->sets[a], *y = &c->sets[b];
    size_t i = 0, j = 0;

    if (c->left[a] != c->left[b]) {
        return false;
    }
    for (size_t n = c->left[a]; n; n--, i++, j++) {
        while (c->done[x->items[i]]) {
            i++;
        }
        while (c->done[y->items[j]]) {
            j++;
        }
        if (x->items[i] != y->items[j]) {
            return false;
        }
    }
    return true;
}

/* The set and all that are equal to it, as far as they are left, get into the next group. */
static void
add_to_group(struct cover *c, size_t set)
{
    for (size_t i = 0; i < c->n_sets; i++) {
        if (is_equal(c, set, i)) {
            c->group[i] = c->n_groups;
        }
    }
}

/* Step 1.  Sets that are equal count as one here. */
static bool
take_the_only_one(struct cover *c)
{
    size_t *only = xmalloc((c->n_items + 1) * sizeof *only);
    bool any = false;

    memset(only, 0xff, (c->n_items + 1) * sizeof *only); /* COVER_NONE: no set yet. */
    for (size_t i = 0; i < c->n_sets; i++) {
        for (size_t j = 0; c->left[i] && j < c->sets[i].n; j++) {
            size_t *o = &only[c->sets[i].items[j]];

            *o =
                *o == COVER_NONE || (*o < c->n_sets && is_equal(c, *o, i)) ? MIN(*o, i) : c->n_sets;
        }
    }
    for (size_t i = 0; i < c->n_items && !any; i++) {
        if (!c->done[i] && only[i] < c->n_sets) {
            add_to_group(c, only[i]);
            c->n_groups++;
            take(c, only[i]);
            any = true;
        }
    }
    free(only);
    return any;
}

/* Step 2. */
static size_t
find_part(const struct cover *c, size_t item)
{
    while (c->part[item] != item) {
        item = c->part[item];
    }
    return item;
}

static void
find_parts(struct cover *c)
{
    for (size_t i = 0; i < c->n_items; i++) {
        c->part[i] = i;
    }
    for (size_t i = 0; i < c->n_sets; i++) {
        size_t first = COVER_NONE;

        for (size_t j = 0; j < c->sets[i].n; j++) {
            size_t item = c->sets[i].items[j];

            if (c->done[item]) {
                continue;
            }
            if (first == COVER_NONE) {
                first = item;
            }
            size_t a = find_part(c, first), b = find_part(c, item);
            c->part[MAX(a, b)] = MIN(a, b);
        }
    }
    for (size_t i = 0; i < c->n_items; i++) {
        c->part[i] = find_part(c, i);
    }
}

/* Is it one of the sets of this part? */
static bool
is_of_part(const struct cover *c, size_t set, size_t part)
{
    for (size_t i = 0; i < c->sets[set].n; i++) {
        if (!c->done[c->sets[set].items[i]]) {
            return c->part[c->sets[set].items[i]] == part;
        }
    }
    return false;
}

/*
 * Step 3.
 */

/* False: it is too big. */
static bool
search_begin(struct search *s, const struct cover *c, size_t part)
{
    *s = (struct search){.c = c, .size = 1};
    for (size_t i = 0; i < c->n_sets; i++) {
        bool is_new = is_of_part(c, i, part);

        for (size_t j = 0; j < s->n_sets && is_new; j++) {
            is_new = !is_equal(c, s->sets[j], i);
        }
        if (is_new && s->n_sets == SETS_MAX) {
            return false;
        }
        if (is_new) {
            s->sets[s->n_sets++] = i;
            s->most = MAX(s->most, c->left[i]);
        }
    }
    s->items = xcalloc(c->n_items, sizeof *s->items);
    s->n_times = xcalloc(c->n_items, sizeof *s->n_times);
    for (size_t i = part; i < c->n_items; i++) {
        if (!c->done[i] && c->part[i] == part) {
            s->items[s->n_items++] = i;
        }
    }
    return true;
}

static void
search_end(struct search *s)
{
    free(s->items);
    free(s->n_times);
}

static bool
has_item(const struct cover_set *set, size_t item)
{
    size_t low = 0, high = set->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (set->items[middle] < item) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < set->n && set->items[low] == item;
}

static void
choose(struct search *s, size_t depth, size_t i)
{
    const struct cover_set *set = &s->c->sets[s->sets[i]];

    s->chosen[depth] = i;
    for (size_t j = 0; j < set->n; j++) {
        s->n_covered += !s->c->done[set->items[j]] && !s->n_times[set->items[j]]++;
    }
}

static void
unchoose(struct search *s, size_t i)
{
    const struct cover_set *set = &s->c->sets[s->sets[i]];

    for (size_t j = 0; j < set->n; j++) {
        s->n_covered -= !s->c->done[set->items[j]] && !--s->n_times[set->items[j]];
    }
}

static int
compare_sizes(const void *a_, const void *b_)
{
    const size_t *a = a_, *b = b_;

    return *a < *b ? -1 : *a > *b;
}

/* Notes what is chosen, once in whatever order it was. */
static void
note_cover(struct search *s)
{
    size_t cover[COVER_SIZE_MAX];

    memcpy(cover, s->chosen, sizeof cover);
    qsort(cover, s->size, sizeof *cover, compare_sizes);
    for (size_t i = 0; i < s->n_covers; i++) {
        if (!memcmp(s->covers[i], cover, s->size * sizeof *cover)) {
            return;
        }
    }
    if (s->n_covers < COVERS_MAX) {
        memcpy(s->covers[s->n_covers], cover, sizeof cover);
    }
    s->n_covers++;
}

static bool
is_too_long(const struct search *s)
{
    return s->n_covers > COVERS_MAX || s->n_steps > STEPS_MAX;
}

static void
search_from(struct search *s, size_t depth)
{
    size_t item = 0;

    if (s->n_covered == s->n_items) {
        note_cover(s);
        return;
    }
    if (depth == s->size || s->n_items - s->n_covered > (s->size - depth) * s->most) {
        return;
    }
    while (s->n_times[s->items[item]]) {
        item++;
    }
    for (size_t i = 0; i < s->n_sets && !is_too_long(s); i++) {
        s->n_steps++;
        if (has_item(&s->c->sets[s->sets[i]], s->items[item])) {
            choose(s, depth, i);
            search_from(s, depth + 1);
            unchoose(s, i);
        }
    }
}

/* False: there are too many, or it would take too long. */
static bool
find_covers(struct search *s)
{
    for (; s->size <= COVER_SIZE_MAX; s->size++) {
        search_from(s, 0);
        if (s->n_covers || is_too_long(s)) {
            break;
        }
    }
    return s->n_covers && !is_too_long(s);
}

/*
 * Step 4.
 */

/* Do the two covers differ in one set only?  Then that is *a of the one and *b of the other. */
static bool
differ_in_one(const struct search *s, const size_t x[], const size_t y[], size_t *a, size_t *b)
{
    size_t i = 0, j = 0, n_a = 0, n_b = 0;

    while (i < s->size || j < s->size) {
        if (j == s->size || (i < s->size && x[i] < y[j])) {
            *a = x[i++];
            n_a++;
        } else if (i == s->size || x[i] > y[j]) {
            *b = y[j++];
            n_b++;
        } else {
            i++;
            j++;
        }
    }
    return n_a == 1 && n_b == 1;
}

/* Has each cover a set in each of the groups that there are? */
static bool
is_in_all_covers(const struct search *s, const size_t group[])
{
    for (size_t i = 0; i < s->n_covers; i++) {
        for (size_t j = 0; j < s->n_covers * s->size; j++) {
            size_t wanted = group[s->covers[j / s->size][j % s->size]];
            bool found = false;

            for (size_t k = 0; k < s->size && !found; k++) {
                found = group[s->covers[i][k]] == wanted;
            }
            if (!found) {
                return false;
            }
        }
    }
    return true;
}

/* Gives the sets of the part their groups.  If some cover goes without one of those that exchanges make
 * there is one for all. */
static void
make_groups(struct cover *c, const struct search *s)
{
    size_t group[SETS_MAX], a = 0, b = 0;

    for (size_t i = 0; i < s->n_sets; i++) {
        group[i] = i;
    }
    for (size_t i = 0; i < s->n_covers; i++) {
        for (size_t j = 0; j < i; j++) {
            if (differ_in_one(s, s->covers[i], s->covers[j], &a, &b)) {
                size_t from = MAX(group[a], group[b]), to = MIN(group[a], group[b]);

                for (size_t k = 0; k < s->n_sets; k++) {
                    group[k] = group[k] == from ? to : group[k];
                }
            }
        }
    }
    if (!is_in_all_covers(s, group)) {
        memset(group, 0, sizeof group);
    }
    for (size_t i = 0; i < s->n_sets; i++) {
        bool any = false;

        for (size_t j = 0; j < s->n_covers * s->size; j++) {
            size_t member = s->covers[j / s->size][j % s->size];

            if (group[member] == i) {
                add_to_group(c, s->sets[member]);
                any = true;
            }
        }
        c->n_groups += any;
    }
}

static size_t
biggest_set(const struct cover *c, size_t part)
{
    size_t best = COVER_NONE;

    for (size_t i = 0; i < c->n_sets; i++) {
        if (is_of_part(c, i, part) && (best == COVER_NONE || c->left[i] > c->left[best])) {
            best = i;
        }
    }
    return best;
}

static void
solve_part(struct cover *c, size_t part)
{
    struct search *s = xmalloc(sizeof *s);

    if (search_begin(s, c, part) && find_covers(s)) {
        make_groups(c, s);
        for (size_t i = 0; i < s->n_items; i++) {
            c->done[s->items[i]] = true;
        }
    } else {
        size_t best = biggest_set(c, part);

        add_to_group(c, best);
        c->n_groups++;
        take(c, best);
    }
    search_end(s);
    free(s);
}

static bool
is_anything_left(const struct cover *c)
{
    for (size_t i = 0; i < c->n_items; i++) {
        if (!c->done[i]) {
            return true;
        }
    }
    return false;
}

size_t
cover_find(const struct cover_set *sets, size_t n_sets, size_t n_items, size_t group[])
{
    struct cover c = {
        .sets = sets,
        .n_sets = n_sets,
        .n_items = n_items,
        .done = xcalloc(n_items + 1, sizeof *c.done),
        .left = xcalloc(n_sets + 1, sizeof *c.left),
        .part = xcalloc(n_items + 1, sizeof *c.part),
        .group = group,
    };

    for (size_t i = 0; i < n_sets; i++) {
        group[i] = COVER_NONE;
    }
    while (is_anything_left(&c)) {
        count_left(&c);
        if (take_the_only_one(&c)) {
            continue;
        }
        find_parts(&c);
        size_t part = 0;
        while (c.done[part]) {
            part++;
        }
        solve_part(&c, c.part[part]);
    }
    free(c.done);
    free(c.left);
    free(c.part);
    return c.n_groups;
}
