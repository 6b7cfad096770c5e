/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches of one group epoch: an array by id, a heap by what they let go up,
 * and a list of those whose NAK is held.
 *
 * Anchored branches form a binary heap.  Its order is: lowest una; then the
 * condition that takes precedence (fatal, longest RNR, NAK, none); then the
 * latest setting; then the lowest id.  So the top alone gives m, the condition
 * to report and the MSN.  reverse_down() keeps una of all branches within 2^23
 * below H, so psn_cmp() orders them totally.
 *
 * Sequence NAKs above the minimum wait in a list.  All are held for the same time,
 * so the oldest is first.  A NAK sent up makes the source go back to m and so
 * serves all of them: 'held_floor' empties the list at once.
 */
#include "lib/reverse-impl.h"

#include <stdlib.h>
#include <string.h>

#include "lib/roce.h"

_Thread_local uint64_t reverse_n_visits;

/* Heap. */

static bool
goes_first(const struct branch *a, const struct branch *b)
{
    int32_t distance = psn_cmp(a->una, b->una);

    reverse_n_visits++;
    if (distance) {
        return distance < 0;
    }
    if (a->cond != b->cond) {
        return a->cond > b->cond;
    }
    if (a->cond == REVERSE_RNR && a->code != b->code) {
        return roce_rnr_longer(a->code, b->code) == a->code;
    }
    if (a->setting != b->setting) {
        return a->setting > b->setting;
    }
    return a->id < b->id;
}

static void
heap_put(struct reverse *r, size_t pos, struct branch *b)
{
    r->heap[pos] = b;
    b->pos = pos;
}

/* Restores the order after 'b' changed. */
static void
heap_fix(struct reverse *r, struct branch *b)
{
    size_t pos = b->pos;

    while (pos > 0 && goes_first(b, r->heap[(pos - 1) / 2])) {
        heap_put(r, pos, r->heap[(pos - 1) / 2]);
        pos = (pos - 1) / 2;
    }
    for (size_t child; (child = 2 * pos + 1) < r->n_heap; pos = child) {
        if (child + 1 < r->n_heap && goes_first(r->heap[child + 1], r->heap[child])) {
            child++;
        }
        if (!goes_first(r->heap[child], b)) {
            break;
        }
        heap_put(r, pos, r->heap[child]);
    }
    heap_put(r, pos, b);
}

static void
heap_push(struct reverse *r, struct branch *b)
{
    b->pos = r->n_heap;
    r->heap[r->n_heap++] = b;
    heap_fix(r, b);
}

static void
heap_remove(struct reverse *r, const struct branch *b)
{
    struct branch *last = r->heap[--r->n_heap];
    if (last != b) {
        heap_put(r, b->pos, last);
        heap_fix(r, last);
    }
}

/* Held sequence NAKs. */

static bool
is_held(const struct reverse *r, const struct branch *b)
{
    return b->cond == REVERSE_NAK && b->setting > r->held_floor;
}

static void
held_append(struct reverse *r, struct branch *b)
{
    b->prev = r->held_last;
    b->next = NULL;
    *(b->prev ? &b->prev->next : &r->held_first) = b;
    r->held_last = b;
}

static void
held_remove(struct reverse *r, const struct branch *b)
{
    *(b->prev ? &b->prev->next : &r->held_first) = b->next;
    *(b->next ? &b->next->prev : &r->held_last) = b->prev;
}

void
branches_clear_held(struct reverse *r)
{
    r->held_first = r->held_last = NULL;
    r->held_floor = r->settings;
}

/* Branch set. */

/* Index of branch 'id', or the index where it would be inserted. */
static size_t
branch_index(const struct reverse *r, uint32_t id)
{
    size_t low = 0;
    size_t high = r->n_branches;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        reverse_n_visits++;
        if (r->branches[mid]->id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

struct branch *
branch_find(const struct reverse *r, uint32_t id)
{
    size_t i = branch_index(r, id);
    return i < r->n_branches && r->branches[i]->id == id ? r->branches[i] : NULL;
}

struct branch *
branch_find_near(struct reverse *r, uint32_t id)
{
    size_t i = r->found;

    for (; i < r->n_branches && i <= r->found + 1; i++) {
        reverse_n_visits++;
        if (r->branches[i]->id == id) {
            r->found = i;
            return r->branches[i];
        }
    }
    i = branch_index(r, id);
    if (i == r->n_branches || r->branches[i]->id != id) {
        return NULL;
    }
    r->found = i;
    return r->branches[i];
}

void
branch_update(struct reverse *r, struct branch *b, psn_t una, enum reverse_cond cond, uint8_t code,
              uint64_t now)
{
    if (is_held(r, b)) {
        held_remove(r, b);
    }
    b->asked_fresh =
        b->asked_fresh && (!b->anchored || psn_eq(b->una, una) || psn_cmp(b->fresh, una) >= 0);
    b->pace.waits &= psn_eq(b->una, una);
    b->una = una;
    b->cond = cond;
    b->code = code;
    b->since = now;
    /* What stands where nothing has gone down is no news: it cannot be named (R16). */
    bool news = cond != REVERSE_NONE && (cond != REVERSE_FATAL || psn_cmp(una, r->h) < 0);
    b->setting = news ? ++r->settings : 0;
    if (b->bounded) {
        join_bound(r, b);
    }
    if (cond == REVERSE_NAK) {
        held_append(r, b);
    }
    if (b->anchored) {
        heap_fix(r, b);
    } else {
        b->anchored = true;
        heap_push(r, b);
    }
}

/* Makes room for one more branch. */
static bool
reserve(struct reverse *r)
{
    if (r->n_branches < r->allocated) {
        return true;
    }

    size_t n = r->allocated ? 2 * r->allocated : 8;
    struct branch **branches = realloc(r->branches, n * sizeof(struct branch *));
    if (!branches) {
        return false;
    }
    r->branches = branches;
    struct branch **heap = realloc(r->heap, n * sizeof(struct branch *));
    if (!heap) {
        return false;
    }
    r->heap = heap;
    r->allocated = n;
    return true;
}

struct branch *
branch_insert(struct reverse *r, uint32_t id)
{
    struct branch *b = reserve(r) ? calloc(1, sizeof *b) : NULL;
    if (b) {
        size_t i = branch_index(r, id);

        memmove(&r->branches[i + 1], &r->branches[i],
                (r->n_branches - i) * sizeof(struct branch *));
        r->branches[i] = b;
        r->n_branches++;
        b->id = id;
        b->fresh = psn_make(PSN_MASK);
    }
    return b;
}

/* Takes 'b' out of the held list and the heap. */
static void
branch_release(struct reverse *r, struct branch *b)
{
    if (is_held(r, b)) {
        held_remove(r, b);
    }
    if (b->anchored) {
        heap_remove(r, b);
        b->anchored = false;
    }
}

void
branch_delete(struct reverse *r, struct branch *b)
{
    size_t i = branch_index(r, b->id);

    branch_release(r, b);
    r->n_lost -= b->lost != LOSS_NONE;
    r->n_pruned -= b->pruned;
    r->n_waiting -= b->waits;
    r->n_ready -= b->ready;
    r->n_bounded -= b->bounded;
    r->n_idle_asked -= b->idle_asked && !b->lost;
    r->n_due -= b->liveness.due;
    r->n_doubted -= b->doubted;
    r->due_from = 0;
    r->n_branches--;
    memmove(&r->branches[i], &r->branches[i + 1], (r->n_branches - i) * sizeof(struct branch *));
    free(b);
}

const struct branch *
branches_minimum(const struct reverse *r)
{
    return r->n_heap && r->n_heap == branches_counted(r) ? r->heap[0] : NULL;
}

void
branch_join(struct reverse *r, struct branch *b, psn_t una, uint64_t now)
{
    b->waits = false;
    r->n_waiting--;
    b->liveness = (struct liveness){.alive = true};
    branch_update(r, b, una, REVERSE_NONE, 0, now);
    branches_prune(r); /* A lost branch that was kept as the last one. */
}

static void
prune_if_lost(struct reverse *r, struct branch *b)
{
    reverse_n_visits++;
    if (b->lost && !b->pruned && !b->waits && r->policy.prune && branches_counted(r) > 1) {
        branch_release(r, b);
        b->pruned = true;
        r->n_pruned++;
    }
}

void
branches_prune(struct reverse *r)
{
    for (size_t i = 0; r->n_lost > r->n_pruned && i < r->n_branches; i++) {
        prune_if_lost(r, r->branches[i]);
    }
}

bool
branches_all_lost(const struct reverse *r)
{
    bool may_be = r->n_lost > r->n_pruned && branches_counted(r);

    for (size_t i = 0; may_be && i < r->n_branches; i++) {
        reverse_n_visits++;
        may_be = r->branches[i]->lost || r->branches[i]->waits;
    }
    return may_be;
}

void
branches_count_last(struct reverse *r, uint64_t now)
{
    size_t i = 0;

    if (!r->n_pruned || branches_counted(r)) {
        return;
    }
    while (!r->branches[i]->pruned) {
        i++; /* it waits. */
    }
    struct branch *b = r->branches[i];

    b->pruned = false;
    r->n_pruned--;
    /* The branch gets F as its una: its own may be too old to be compared with anything.
     * Nothing may have gone down at F yet, so the NAK goes up only when an answer is owed:
     * setting 0. */
    branch_update(r, b, r->f_known ? r->f : b->una, REVERSE_FATAL, b->code, now);
    b->setting = 0;
}

void
branch_lose(struct reverse *r, struct branch *b, psn_t una, enum reverse_loss loss, uint8_t code,
            uint64_t now)
{
    r->n_lost++; /* A branch is lost once, and stays lost. */
    r->n_idle_asked -= b->idle_asked;
    r->n_doubted -= b->doubted;
    b->doubted = false;
    b->lost = loss;
    if (b->waits) {
        r->n_ready -= b->ready;
        b->ready = false;
        b->code = code;
        return; /* It does not count, and never will. */
    }
    branch_update(r, b, una, REVERSE_FATAL, code, now);
    prune_if_lost(r, b); /* Other lost branches are pruned already. */
    pace_reset_all(r);   /* It may have held up the others. */
}
