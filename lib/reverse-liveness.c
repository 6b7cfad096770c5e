/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches that are silent (docs/draft-notes.md, H16): an rxe requester with
 * retry count 7 repeats for ever what one of them does not confirm.
 *
 * While anything that went down is not confirmed, time is cut into ticks.  Each
 * tick looks at every branch.  A branch that lacks something, got no further and
 * did not ask for time with an RNR NAK has been silent for another tick.  After
 * SILENT_TICKS in a row it is lost.  That takes between 30/32 and 32/32 of the
 * liveness time: the first tick may be a part of one, and the last sign of life
 * may have come right after a tick.  Packets cost nothing by this.
 *
 * A branch can only be silent when it is asked.  If nobody sent it what it lacks
 * for half the liveness time, the source has stopped, and the silence does not
 * count.  So the liveness time has to be some time-outs of the source's QP long.
 *
 * After a start without state it is not known what a branch lacks until it speaks.
 * The response that anchors it may have been under way for so long that the source
 * has got further.  But a source goes back to what it lacks itself: that is 'lowest',
 * the lowest PSN that it keeps repeating.  A NAK there completes nothing, and one
 * below would be ignored.  'lowest' is forgotten if it is not repeated for half the
 * liveness time: then it was from a round before the source got further.
 */
#include "lib/reverse-impl.h"

#include "lib/roce.h"

#define SILENT_TICKS      (LIVENESS_TICKS - 1)
#define UNASKED_TICKS     (LIVENESS_TICKS / 2)
/* Ticks of those that wait, if the group has no liveness time. */
#define WAITING_TICK_USEC (2000000 / LIVENESS_TICKS)
/* Who is doubted is asked so often, */
#define DOUBTS            8
/* after each of these times. */
#define DOUBT_USEC        50000
/* Between the start PSN and what is asked if nothing is known. */
#define BLIND_DISTANCE    (1 << 22)
/* When 'lowest' is forgotten, a branch that did not answer it has been unasked for too long. */
#define LOWEST_TICKS      (UNASKED_TICKS + 2)
/* Most PSNs in the shared range, so that they can be compared with any una. */
#define MAX_SHARED        (1 << 22)

void
reverse_set_policy(struct reverse *r, const struct reverse_policy *policy)
{
    uint64_t tick_usec = (policy->liveness_usec + LIVENESS_TICKS - 1) / LIVENESS_TICKS;
    bool other_ticks = tick_usec != r->tick_usec;

    if (other_ticks || policy->min_rate != r->policy.min_rate
        || policy->lose_slow != r->policy.lose_slow) {
        pace_reset_all(r);
    }
    if (other_ticks) {
        /* Ticks of another length say nothing about the new time. */
        r->tick_usec = tick_usec;
        r->tick_at = UINT64_MAX;
        r->lowest_age = LOWEST_TICKS;
        r->shared_from = r->shared_to;
        for (size_t i = 0; i < r->n_branches; i++) {
            r->branches[i]->liveness = (struct liveness){.alive = false};
        }
        r->n_due = 0;
    }
    r->policy = *policy;
    branches_prune(r);
}

/* Does this branch lack something, as far as is known? */
static bool
lacks(const struct reverse *r, const struct branch *b)
{
    return !b->lost && !b->waits && (!b->anchored || psn_cmp(b->una, r->h) < 0);
}

/* Is the PSN below una one that 'b' has (R16)? */
static bool
can_ask(const struct reverse *r, const struct branch *b)
{
    bool known = b->anchored && (r->started || !r->params.started_before);

    return b->idle_asked && !b->lost && (b->waits || known);
}

/* May 'b', which is doubted, be asked though nothing is known of what it has (R16)? */
static bool
can_ask_blindly(const struct reverse *r, const struct branch *b, uint64_t now)
{
    return b->idle_asked && !b->lost && !b->waits && !can_ask(r, b)
           && (r->started || now >= b->doubted_at + REVERSE_LIFETIME_USEC);
}

/* While nothing has gone down: one of the two is behind what any queue pair expects. */
static psn_t
blind_psn(const struct reverse *r, bool above)
{
    return psn_add(r->params.start_psn, above ? BLIND_DISTANCE : -BLIND_DISTANCE);
}

bool
liveness_has_executed(const struct reverse *r, psn_t una)
{
    for (unsigned above = 0; !r->started && above < 2; above++) {
        int32_t behind = psn_cmp(una, blind_psn(r, above));

        if (behind == 0 || behind == 1) {
            return true;
        }
    }
    return false;
}

bool
liveness_may_have_executed(const struct reverse *r, const struct branch *b, psn_t q)
{
    for (unsigned above = 0; b->blind && above < 2; above++) {
        int32_t distance = psn_cmp(q, blind_psn(r, above));

        if (distance > -MAX_OUTSTANDING && distance < MAX_OUTSTANDING) {
            return true;
        }
    }
    return false;
}

/* The PSN of a question to 'b', in the epoch's numbers. */
static psn_t
question_psn(const struct reverse *r, const struct branch *b)
{
    if (can_ask(r, b)) {
        return psn_add(b->una, -1);
    }
    return r->started ? psn_add(r->anchor_floor, -1) : blind_psn(r, b->n_doubts % 2 == 0);
}

/* R16: is 'b' to be asked?  Not if copies of what it lacks ask it. */
static bool
may_ask(const struct reverse *r, const struct branch *b)
{
    bool copies_ask = !b->waits && lacks(r, b) && b->liveness.unasked_ticks <= UNASKED_TICKS;

    return can_ask(r, b) && !copies_ask;
}

static void
ask(struct reverse *r, struct branch *b)
{
    b->liveness.question = true;
    b->asked_fresh |= !b->risen;
    if (!b->liveness.due) {
        b->liveness.due = true;
        r->n_due++;
        r->due_from = 0;
    }
}

void
reverse_ask_when_idle(struct reverse *r, uint32_t id, bool may)
{
    struct branch *b = branch_find(r, id);

    if (b && b->idle_asked != may) {
        b->idle_asked = may;
        if (!b->lost) {
            r->n_idle_asked += may ? 1 : (size_t) -1;
        }
        if (may && b->waits) {
            ask(r, b); /* It cannot be admitted before it has answered. */
        }
    }
}

bool
reverse_next_question(struct reverse *r, uint32_t *id, psn_t *psn)
{
    for (; r->n_due && r->due_from < r->n_branches; r->due_from++) {
        struct branch *b = r->branches[r->due_from];

        if (b->liveness.due) {
            b->liveness.due = false;
            r->n_due--;
            if (!may_ask(r, b) && !(b->doubted && (can_ask(r, b) || b->blind))) {
                continue;
            }
            *id = b->id;
            *psn = question_psn(r, b);
            return true;
        }
    }
    return false;
}

bool
liveness_hear(struct reverse *r, struct branch *b)
{
    bool was_asked = b->liveness.question;

    b->liveness.heard = true;
    if (b->doubted || b->unanswered) {
        r->n_decided++;
        r->n_doubted -= b->doubted;
        b->doubted = b->unanswered = false;
    }
    b->blind = false;
    b->liveness.alive |= was_asked; /* even if it has come to lack something meanwhile. */
    b->liveness.question = false;
    return was_asked;
}

void
reverse_heard(struct reverse *r, uint32_t id)
{
    struct branch *b = branch_find(r, id);

    if (b) {
        (void) liveness_hear(r, b);
    }
}

void
reverse_doubt(struct reverse *r, uint32_t id, uint64_t now)
{
    struct branch *b = branch_find(r, id);

    if (b && !b->lost) {
        r->n_doubted += !b->doubted;
        b->doubted = true;
        b->unanswered = false;
        b->n_doubts = 0;
        b->doubted_at = now;
        r->doubt_at = now;
    }
}

/* Somebody is to be looked at, even if nothing goes down: who may be asked.  Without a liveness
 * time that is only who waits. */
static bool
ticks_always(const struct reverse *r)
{
    return r->n_idle_asked && (r->tick_usec || r->n_waiting);
}

static uint64_t
tick_length(const struct reverse *r)
{
    return r->tick_usec ? r->tick_usec : WAITING_TICK_USEC;
}

uint64_t
liveness_deadline(const struct reverse *r)
{
    uint64_t tick = r->tick_at == UINT64_MAX && ticks_always(r) ? 0 : r->tick_at;

    return r->n_doubted && r->doubt_at < tick ? r->doubt_at : tick;
}

void
liveness_expect(struct reverse *r, psn_t q, psn_t floor, uint64_t now)
{
    bool is_lowest = r->lowest_age >= LOWEST_TICKS || psn_cmp(q, r->lowest) <= 0;

    if (is_lowest && psn_cmp(q, floor) >= 0 && psn_cmp(q, r->h) < 0) {
        r->lowest = q;
        r->lowest_age = 0;
    }
    if (r->tick_usec && r->tick_at == UINT64_MAX) {
        r->tick_at = now + r->tick_usec;
    }
}

/* The PSN that the source has to repeat for this branch. */
static psn_t
wants(const struct reverse *r, const struct branch *b)
{
    bool behind = r->without_state && psn_cmp(b->una, r->lowest) < 0;

    return !b->anchored || behind ? r->lowest : b->una;
}

void
liveness_ask(const struct reverse *r, struct branch *b, psn_t q)
{
    b->liveness.asked |= psn_eq(q, wants(r, b));
}

/* una never goes back: a branch that lacks a PSN of the range now lacked it when it went down. */
void
liveness_settle_shared(struct reverse *r)
{
    for (size_t i = 0; !psn_eq(r->shared_from, r->shared_to) && i < r->n_branches; i++) {
        struct branch *b = r->branches[i];

        reverse_n_visits++;
        b->liveness.asked |= b->shares && b->anchored && psn_cmp(b->una, r->shared_from) >= 0
                             && psn_cmp(b->una, r->shared_to) < 0;
    }
    r->shared_from = r->shared_to;
}

bool
liveness_ask_shared(struct reverse *r, psn_t q)
{
    psn_t next = psn_add(q, 1);

    if (r->without_state && psn_eq(q, r->lowest)) {
        return false; /* wants(): the branches may lack this PSN. */
    }
    bool is_last = psn_eq(next, r->shared_to) && !psn_eq(r->shared_from, r->shared_to);

    if (!psn_eq(q, r->shared_to) && !is_last) {
        liveness_settle_shared(r);
        r->shared_from = q;
    } else if (psn_cmp(next, r->shared_from) >= MAX_SHARED) {
        liveness_settle_shared(r);
    }
    r->shared_to = next;
    return true;
}

/* True: 'b' has been silent for too long. */
static bool
tick_branch(const struct reverse *r, struct branch *b)
{
    struct liveness *l = &b->liveness;
    bool lacking = lacks(r, b);
    bool silent = lacking ? !l->alive : l->question && !l->heard && !b->lost;

    if (!silent || l->asked || !lacking) {
        l->unasked_ticks = 0;
    } else if (l->unasked_ticks <= UNASKED_TICKS) {
        l->unasked_ticks++;
    }
    if (silent && (l->question || l->unasked_ticks <= UNASKED_TICKS)) {
        l->silent_ticks++;
    } else {
        l->silent_ticks = 0;
    }
    return l->silent_ticks >= SILENT_TICKS;
}

/* A new tick begins for 'b'. */
static void
begin_tick(struct reverse *r, struct branch *b)
{
    struct liveness *l = &b->liveness;

    l->question &= may_ask(r, b);
    if (may_ask(r, b) && !l->heard) {
        ask(r, b);
    }
    l->alive = l->asked = l->heard = false;
}

static enum reverse_loss
loss_of(const struct reverse *r, const struct branch *b, bool silent)
{
    return !silent ? LOSS_SLOW : lacks(r, b) ? LOSS_SILENT : LOSS_UNANSWERED;
}

static void
tick(struct reverse *r, uint64_t now)
{
    bool more = false;

    liveness_settle_shared(r);
    r->lowest_age += r->lowest_age < LOWEST_TICKS;
    for (size_t i = 0; i < r->n_branches; i++) {
        struct branch *b = r->branches[i];

        reverse_n_visits++;
        if (!r->tick_usec && !b->waits) {
            continue;
        }
        bool silent = tick_branch(r, b);
        pace_tick(r, b, b->liveness.unasked_ticks <= UNASKED_TICKS);
        bool slow = b->pace.slow && r->policy.lose_slow;
        if (silent || slow) {
            branch_lose(r, b, wants(r, b), loss_of(r, b, silent), AETH_NAK_REM_OP, now);
        }
        begin_tick(r, b);
        more |= lacks(r, b);
    }
    r->asked_before = r->asked_to;
    r->tick_at = (r->tick_usec && more) || ticks_always(r) ? now + tick_length(r) : UINT64_MAX;
}

/* Asks those who are doubted.  Who never answers is lost if it lacks something; otherwise nobody
 * waits for it, and it is only said. */
static void
doubt(struct reverse *r, uint64_t now)
{
    for (size_t i = 0; i < r->n_branches; i++) {
        struct branch *b = r->branches[i];

        if (!b->doubted) {
            continue;
        }
        /* Without una nothing may be said upwards before a liveness time has passed. */
        if (b->n_doubts == DOUBTS && (!lacks(r, b) || (!b->anchored && !r->tick_usec))) {
            b->doubted = false;
            b->unanswered = true;
            r->n_decided++;
            r->n_doubted--;
        } else if (b->n_doubts == DOUBTS && b->anchored) {
            branch_lose(r, b, wants(r, b), LOSS_UNANSWERED, AETH_NAK_REM_OP, now);
        } else if (b->n_doubts < DOUBTS && (can_ask(r, b) || can_ask_blindly(r, b, now))) {
            b->blind |= !can_ask(r, b);
            b->n_doubts++;
            ask(r, b);
        }
    }
    r->doubt_at = now + DOUBT_USEC;
}

void
liveness_timer(struct reverse *r, uint64_t now)
{
    if (r->tick_at == UINT64_MAX && ticks_always(r)) {
        r->tick_at = now + tick_length(r);
    }
    if (now >= r->tick_at) {
        tick(r, now);
    }
    if (r->n_doubted && now >= r->doubt_at) {
        doubt(r, now);
    }
}
