/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches that are slow (docs/draft-notes.md, R15): they hold up the group and are
 * neither silent nor dead.
 *
 * The ticks of the liveness time look at each branch.  In a tick a branch has owed an
 * answer if at its end it has not confirmed what went down with AckReq before it, or
 * if it has stood all the while where it had asked for time.  What went down without
 * AckReq is not owed: a receiver that has it says so when it is asked.  A branch that
 * owed in each tick of the liveness time is slow if it confirmed less than the least
 * rate asks for, and was at the minimum meanwhile: others wait for the one that is.
 *
 * A source that stops in mid-message makes nobody slow: ticks of a branch that was not
 * asked for half the liveness time do not count (R12).
 */
#include "lib/defect.h"
#include "lib/reverse-impl.h"

/* What goes down with AckReq further above H is asked for when it comes again: H may be spoilt. */
#define MAX_GAP 256

static psn_t
later(psn_t a, psn_t b)
{
    return psn_cmp(a, b) < 0 ? b : a;
}

void
pace_expect(struct reverse *r, psn_t q, psn_t floor, bool ack_req, int32_t gap)
{
    psn_t next = psn_add(q, 1);

    /* They stay near enough to be compared with. */
    r->asked_to = later(r->asked_to, floor);
    r->asked_before = later(r->asked_before, floor);
    if (ack_req && gap <= MAX_GAP && psn_cmp(next, r->h) <= 0 && psn_cmp(next, r->asked_to) > 0) {
        r->asked_to = next;
    }
}

static void
set_slow(struct reverse *r, struct branch *b, bool slow)
{
    r->n_paced += slow || b->pace.slow;
    b->pace.slow = slow;
    b->pace.slow_ticks = 0;
}

void
pace_reset(struct reverse *r, struct branch *b)
{
    set_slow(r, b, false);
    b->pace.owed_ticks = 0;
}

void
pace_reset_all(struct reverse *r)
{
    r->asked_before = r->asked_to;
    for (size_t i = 0; i < r->n_branches; i++) {
        pace_reset(r, r->branches[i]);
    }
}

/* Has it owed an answer since the last tick? */
static bool
has_owed(const struct reverse *r, const struct branch *b)
{
    const struct pace *p = &b->pace;

    return !b->lost && b->anchored && p->known
           && (psn_cmp(b->una, r->asked_before) < 0 || (p->waited && psn_eq(b->una, p->una)));
}

/* Was so little confirmed in a liveness time, with others waiting for it? */
static bool
holds_up(const struct reverse *r, const struct pace *p)
{
    return UINT64_C(1000000) * p->n < (uint64_t) LIVENESS_TICKS * r->policy.min_rate * r->tick_usec
           && p->not_minimum < LIVENESS_TICKS && !DEFECT(PACE_UNSEEN);
}

/* What was said of a branch holds for a liveness time, so that one that is about as fast as it
 * should be is not news at each tick. */
static void
judge(struct reverse *r, struct branch *b)
{
    struct pace *p = &b->pace;
    bool slow = holds_up(r, p);

    if (p->slow ? ++p->slow_ticks == LIVENESS_TICKS : slow) {
        p->n_confirmed = p->n;
        set_slow(r, b, slow);
    }
}

static void
count(struct pace *p, uint32_t rose)
{
    uint32_t *slot = &p->rose[p->next++ % LIVENESS_TICKS];

    p->n += rose - (uint64_t) *slot;
    *slot = rose;
}

void
pace_tick(struct reverse *r, struct branch *b, bool asked)
{
    const struct branch *minimum = branches_minimum(r);
    struct pace *p = &b->pace;
    bool owed = has_owed(r, b);
    bool is_minimum = minimum && b->anchored && psn_eq(b->una, minimum->una);

    count(p, b->anchored && p->known ? (uint32_t) psn_cmp(b->una, p->una) : 0);
    p->not_minimum = is_minimum                        ? 0
                     : p->not_minimum < LIVENESS_TICKS ? p->not_minimum + 1
                                                       : LIVENESS_TICKS;
    if (!owed) {
        pace_reset(r, b);
    } else if (!asked) {
        p->owed_ticks = 0; /* It may be slow still. */
    } else {
        p->owed_ticks += p->owed_ticks < LIVENESS_TICKS;
        if (p->owed_ticks == LIVENESS_TICKS
            || (p->owed_ticks == LIVENESS_TICKS / 4 && DEFECT(PACE_EARLY))) {
            judge(r, b);
        }
    }
    p->known = b->anchored;
    p->una = b->una;
    p->waited = p->waits;
}
