/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches that are slow (docs/draft-notes.md, R15): they hold up the group and are
 * neither silent nor dead.
 *
 * A branch owes an answer while it has not confirmed a PSN that went down with AckReq,
 * or one below it.  What went down without AckReq behind that is not owed: a receiver
 * that has it says so when it is asked.  The ticks of the liveness time look at each
 * branch.  One that owed at each of them for that time on end, and never had caught up
 * in between, is slow if it confirmed less than the least rate asks for.
 *
 * A source that stops in mid-message makes nobody slow: ticks of a branch that was not
 * asked for half the liveness time do not count (R12).
 */
#include "lib/defect.h"
#include "lib/reverse-impl.h"

void
pace_expect(struct reverse *r, psn_t q, psn_t floor, bool ack_req)
{
    psn_t next = psn_add(q, 1);

    if (psn_cmp(r->asked_to, floor) < 0) {
        r->asked_to = floor; /* It stays near enough to be compared with. */
    }
    if (ack_req && psn_cmp(next, r->h) <= 0 && psn_cmp(next, r->asked_to) > 0) {
        r->asked_to = next;
    }
}

static bool
owes(const struct reverse *r, const struct branch *b)
{
    return !b->lost && b->anchored && psn_cmp(b->una, r->asked_to) < 0;
}

void
pace_moved(const struct reverse *r, struct branch *b)
{
    b->pace.caught_up |= !owes(r, b);
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

/* Were so few PSNs confirmed in a liveness time? */
static bool
is_too_few(const struct reverse *r, uint32_t n)
{
    return UINT64_C(1000000) * n < (uint64_t) LIVENESS_TICKS * r->policy.min_rate * r->tick_usec;
}

/* 'b' has owed an answer for the liveness time, and confirmed 'n' PSNs meanwhile.  What was said of
 * it holds for as long, so that one that is about as fast as it should be is not news at each
 * tick. */
static void
judge(struct reverse *r, struct branch *b, uint32_t n)
{
    struct pace *p = &b->pace;
    bool few = is_too_few(r, n) && !DEFECT(PACE_UNSEEN);

    if (p->slow ? ++p->slow_ticks == LIVENESS_TICKS : few) {
        p->n_confirmed = n;
        set_slow(r, b, few);
    }
}

void
pace_tick(struct reverse *r, struct branch *b, bool asked)
{
    struct pace *p = &b->pace;
    psn_t *una = &p->una_at[p->next++ % LIVENESS_TICKS]; /* as it was 32 ticks ago. */
    bool caught_up = p->caught_up;

    p->caught_up = !owes(r, b);
    if (caught_up || p->caught_up) {
        pace_reset(r, b);
    } else if (!asked) {
        p->owed_ticks = 0; /* It may be slow still. */
    } else {
        p->owed_ticks += p->owed_ticks < LIVENESS_TICKS;
        if (p->owed_ticks == LIVENESS_TICKS
            || (p->owed_ticks == LIVENESS_TICKS / 4 && DEFECT(PACE_EARLY))) {
            judge(r, b, (uint32_t) psn_cmp(b->una, *una));
        }
    }
    *una = b->una;
}
