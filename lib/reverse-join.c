/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches that come while data flows (docs/draft-notes.md, R17).
 *
 * A branch that waits is in the array, and neither in the heap nor in the held list: it
 * does not count.  A node ceases to wait with its first ACK, a receiver with the first
 * copy of a new message.
 *
 * A receiver that was admitted gets no PSN below its first.  That is asked only as long as such a
 * PSN can still come, since a source repeats what it has outstanding, and only for PSNs that are
 * below the first of the receiver that was admitted last.
 */
#include <errno.h>

#include "lib/defect.h"
#include "lib/reverse-impl.h"
#include "lib/roce.h"

static const struct reverse_out nothing;

int
reverse_branch_wait(struct reverse *r, uint32_t id, bool is_node, psn_t psn, uint64_t now)
{
    if (branch_find(r, id)) {
        return EEXIST;
    }
    struct branch *b = branch_insert(r, id);
    if (!b) {
        return ENOMEM;
    }
    b->waits = true;
    b->is_node = is_node;
    b->own_from = now + REVERSE_LIFETIME_USEC;
    b->expects = psn;
    r->n_waiting++;
    return 0;
}

static void
set_first(struct branch *b, psn_t first)
{
    b->first = first;
    b->fresh = psn_add(first, psn_cmp(psn_make(PSN_MASK), b->expects));
}

/* PSNs below 'first' are no matter: what is below what it expects is a duplicate for its queue
 * pair. */
void
reverse_set_first(struct reverse *r, uint32_t id, psn_t first, psn_t psn)
{
    struct branch *b = branch_find(r, id);

    if (b) {
        b->late = true;
        b->expects = psn;
        b->asked_fresh = true; /* it may have been. */
        set_first(b, first);
    }
}

void
reverse_branch_count(struct reverse *r, uint32_t id)
{
    struct branch *b = branch_find(r, id);

    if (!b || !b->waits) {
        return;
    }
    b->waits = false;
    r->n_waiting--;
    r->n_ready -= b->ready;
    b->ready = false;
    if (b->lost) {
        /* It was lost as one that waits, which said nothing upwards. */
        b->lost = LOSS_NONE;
        r->n_lost--;
        r->n_idle_asked += b->idle_asked;
    }
    if (r->started) {
        r->anchor_floor = psn_add(r->h, -REVERSE_ANCHOR_WINDOW);
    }
}

void
reverse_position(struct reverse *r, uint32_t id, bool as_said, uint64_t now)
{
    struct branch *b = branch_find(r, id);

    if (!b || !b->waits || b->is_node || b->lost) {
        return;
    }
    if (as_said) {
        r->n_ready += !b->ready;
        b->ready = true;
    } else {
        branch_lose(r, b, b->una, LOSS_ELSEWHERE, AETH_NAK_REM_OP, now);
    }
}

/* Did an earlier life say something that no branch bounds, since it confirmed what passed (R17)? */
static bool
is_unbounded(const struct reverse *r)
{
    return r->params.started_before && r->n_waiting && !branches_counted(r) && !r->proven;
}

void
reverse_forget_past(struct reverse *r)
{
    r->params.started_before = false;
    r->proven = true;
}

bool
join_is_blank(const struct reverse *r)
{
    return is_unbounded(r) && (r->without_state || !r->started) && !r->params.root;
}

bool
join_is_proven(struct reverse *r)
{
    if (!r->without_state || r->proven) {
        return r->started || !r->params.started_before;
    }
    if (is_unbounded(r)) {
        /* By now the source sends nothing that it has an acknowledgement for. */
        r->proven = r->params.root && r->down_at >= r->proven_by + REVERSE_LIFETIME_USEC;
        return r->proven;
    }
    for (size_t i = 0; i < r->n_branches; i++) {
        const struct branch *b = r->branches[i];

        reverse_n_visits++;
        if (!b->proven && !b->waits && !b->pruned) {
            return false;
        }
    }
    r->proven = true;
    return true;
}

bool
reverse_may_admit(struct reverse *r, psn_t q)
{
    return r->n_ready && r->f_known && psn_cmp(q, r->h) >= 0 && !branches_all_lost(r)
           && join_is_proven(r);
}

bool
reverse_confirms_alone(const struct reverse *r)
{
    return r->n_waiting && !branches_counted(r);
}

void
reverse_admit(struct reverse *r)
{
    r->admits = true;
}

/* It counts from 'una' on. */
static void
join(struct reverse *r, struct branch *b, psn_t una, uint64_t now)
{
    set_first(b, una);
    if (!b->is_node) {
        b->bounded = true;
        r->n_bounded++;
        r->last_first = una; /* It is new here. */
    }
    r->n_ready -= b->ready;
    b->ready = false;
    branch_join(r, b,
                DEFECT(JOIN_EARLY)  ? psn_add(una, -1)
                : DEFECT(JOIN_LATE) ? psn_add(una, 1)
                                    : una,
                now);
}

static void
has_joined(struct reverse *r, struct branch *b)
{
    b->late = true;
    r->n_joined++;
}

bool
join_may_count(struct reverse *r, const struct branch *b, uint64_t now)
{
    return r->f_known && now >= b->own_from && !branches_all_lost(r) && join_is_proven(r);
}

void
join_node(struct reverse *r, struct branch *b, psn_t una, uint64_t now)
{
    if (b->waits) {
        join(r, b, psn_cmp(r->f, una) > 0 && !DEFECT(JOIN_BEHIND) ? r->f : una, now);
    }
    if (!b->late && (psn_cmp(una, b->first) >= 0 || DEFECT(JOIN_BEHIND))) {
        has_joined(r, b);
    }
}

void
join_bound(struct reverse *r, struct branch *b)
{
    if (psn_cmp(b->una, b->first) > MAX_OUTSTANDING) {
        b->bounded = false;
        r->n_bounded--;
    }
}

static bool
takes_all(const struct reverse *r, psn_t q)
{
    return !r->n_waiting && (!r->n_bounded || psn_cmp(q, r->last_first) >= 0);
}

bool
reverse_serves_all(const struct reverse *r, psn_t q)
{
    return takes_all(r, q) && !r->n_pruned && !r->policy.filter;
}

bool
reverse_takes(struct reverse *r, uint32_t id, psn_t q, uint64_t now)
{
    if (takes_all(r, q)) {
        return true;
    }
    struct branch *b = branch_find_near(r, id);

    if (!b || (!b->waits && !b->bounded) || (b->waits && b->is_node)) {
        return true;
    }
    if (b->waits && b->ready && r->admits) {
        join(r, b, q, now);
        has_joined(r, b);
    }
    return !b->waits && psn_cmp(q, b->first) >= 0;
}

struct reverse_out
reverse_passed(struct reverse *r, uint64_t now)
{
    if (!r->passing || !reverse_confirms_alone(r)) {
        return nothing;
    }
    psn_t next = psn_add(r->down, 1);
    bool moved =
        r->f_known ? psn_cmp(next, r->h) <= 0 && psn_cmp(next, r->f) > 0 : psn_eq(next, r->h);

    if (!moved && !(r->f_known && r->confirmed)) {
        return nothing;
    }
    r->f = moved ? next : r->f;
    r->f_known = true;
    r->confirmed = true;
    r->told = 0;
    r->n_sent_acks++;
    if (moved) {
        stall_moved(r, r->f, now);
    }
    return (struct reverse_out){
        .send = true,
        .syndrome = AETH_ACK_UNLIMITED,
        .psn = psn_add(r->f, -1),
        .msn = r->msn,
        .moved = moved,
    };
}
