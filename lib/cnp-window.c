/* SPDX-License-Identifier: Apache-2.0
 *
 * CNPs of a group's branches at one node, merged.
 */
#include "lib/cnp-window.h"

#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/defect.h"

struct branch {
    uint32_t id;
    bool counted;        /* some CNP of it has... */
    uint64_t counted_at; /* ...the last one then. */
    struct cnp_branch_stats stats;
};

struct cnp_window {
    uint32_t usec;           /* T */
    uint32_t gap_usec;       /* N */
    uint64_t sent_at;        /* last CNP that went up, if n_sent. */
    uint64_t end;            /* of the window; UINT64_MAX: none has begun. */
    struct branch *branches; /* sorted by id. */
    size_t n_branches;
    uint64_t n_sent;
    uint32_t last;
};

struct cnp_window *
cnp_window_create(void)
{
    struct cnp_window *w = must_calloc(1, sizeof *w);

    w->end = UINT64_MAX;
    return w;
}

void
cnp_window_destroy(struct cnp_window *w)
{
    if (w) {
        free(w->branches);
        free(w);
    }
}

static int
by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct branch *) a)->id, y = ((const struct branch *) b)->id;

    return (x > y) - (x < y);
}

/* NULL: there is none with this id. */
static struct branch *
find(const struct cnp_window *w, uint32_t id)
{
    struct branch key = {.id = id};

    return w->n_branches ? bsearch(&key, w->branches, w->n_branches, sizeof key, by_id) : NULL;
}

void
cnp_window_configure(struct cnp_window *w, uint32_t window_usec, uint32_t gap_usec,
                     const uint32_t *ids, size_t n)
{
    struct branch *branches = must_calloc(n, sizeof *branches);

    for (size_t i = 0; i < n; i++) {
        const struct branch *before = find(w, ids[i]);

        branches[i] = before ? *before : (struct branch){.id = ids[i]};
    }
    qsort(branches, n, sizeof *branches, by_id);
    free(w->branches);
    w->branches = branches;
    w->n_branches = n;
    w->usec = window_usec;
    w->gap_usec = gap_usec;
}

/* When a window is over that begins now: not before another CNP may go up. */
static uint64_t
end_of_window(const struct cnp_window *w, uint64_t now)
{
    uint64_t end = now + w->usec, next = w->n_sent ? w->sent_at + w->gap_usec : 0;

    return end > next ? end : next;
}

enum drop_reason
cnp_window_note(struct cnp_window *w, uint32_t id, bool own, uint32_t interval_usec, uint64_t now)
{
    struct branch *b = find(w, id);

    if (!b) {
        return DROP_unknown_branch;
    }
    b->stats.n_own += own;
    if (b->counted && now - b->counted_at < interval_usec) {
        b->stats.n_limited++;
        return DROP_cnp_soon;
    }
    b->counted = true;
    b->counted_at = now;
    b->stats.n++;
    b->stats.count += b->stats.count < UINT32_MAX;
    b->stats.max = b->stats.count > b->stats.max ? b->stats.count : b->stats.max;
    if (w->end == UINT64_MAX) {
        w->end = end_of_window(w, now);
    }
    return DROP_cnp;
}

uint64_t
cnp_window_deadline(const struct cnp_window *w)
{
    return w->end;
}

/* The branch with the highest count, of several the first; NULL: nothing has come. */
static struct branch *
most_congested(const struct cnp_window *w)
{
    struct branch *most = NULL;

    for (size_t i = 0; i < w->n_branches; i++) {
        struct branch *b = &w->branches[i];

        if (b->stats.count > (most ? most->stats.count : 0)) {
            most = b;
        }
    }
    return most;
}

/* The window is over; the next one begins with all counts zero. */
static void
reset(struct cnp_window *w, uint64_t now)
{
    if (DEFECT(CNP_COUNT)) {
        w->end = now + w->usec;
        return;
    }
    for (size_t i = 0; i < w->n_branches; i++) {
        w->branches[i].stats.count = 0;
    }
    w->end = UINT64_MAX;
}

bool
cnp_window_timer(struct cnp_window *w, uint64_t now, uint32_t *id)
{
    if (now < w->end) {
        return false;
    }
    struct branch *most = most_congested(w);

    if (most) {
        *id = w->last = most->id;
        most->stats.n_chosen++;
        w->n_sent++;
        w->sent_at = now;
    }
    reset(w, now);
    return most;
}

uint64_t
cnp_window_n_sent(const struct cnp_window *w, uint32_t *last)
{
    *last = w->last;
    return w->n_sent;
}

bool
cnp_window_get(const struct cnp_window *w, uint32_t id, struct cnp_branch_stats *stats)
{
    const struct branch *b = find(w, id);

    if (b) {
        *stats = b->stats;
    }
    return b;
}
