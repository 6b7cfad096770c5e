/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses that nobody reports (docs/draft-notes.md, R14): at the root, m stands still although some
 * branch was asked.
 *
 * A receiver says once what it misses.  It says once what it has, if the source asks for nothing
 * more.  It never says that a packet that was sent again got lost again, and a source would ignore
 * it.  Without such a response only the source's own timer is left, which has to be thousands of
 * times as long as an answer takes.  So the root times answers and, when one is overdue, takes the
 * source back to m.
 *
 * An answer is awaited anew after each event that may repair m.  m gets further: at once, if a
 * packet with AckReq at or above m has gone down, else from the next such packet on.  PSN m goes
 * down again: from the next AckReq on, which may be its own.  NAK(m) goes up: at once, since PSN m
 * itself has to follow.
 */
#include "lib/reverse-impl.h"

#include "lib/roce.h"

/* The wait until an answer was timed, and the longest unless the source's timer is longer. */
#define MAX_WAIT_USEC  1000000
/* The source's timer, in least waits. */
#define TIMEOUT_WAITS  5
/* The longest time of an answer is remembered for this long, or up to twice as long. */
#define MEMORY_USEC    1000000
/* How much longer than an RNR NAK says a source may wait: a tick of its clock. */
#define RNR_SLACK_USEC 10000
/* Tries at the same m; then it is left to the source's timer. */
#define MAX_TRIES      6
/* Doublings of the wait that stay when m gets further: it is then longer than the source's
 * timer. */
#define MAX_CARRIED    3

/* How long to wait for an answer; twice as long each time.  The doubling stays when m gets further,
 * until an answer was timed.  Without that, answers that take longer than the wait are never timed:
 * each is taken for the answer to what was sent again in vain. */
static uint64_t
wait_usec(const struct reverse *r)
{
    const struct stall *s = &r->stall;
    uint64_t least = r->policy.presume_usec;
    uint64_t most = TIMEOUT_WAITS * least > MAX_WAIT_USEC ? TIMEOUT_WAITS * least : MAX_WAIT_USEC;
    uint64_t usec = 2 * (s->longest > s->longest_before ? s->longest : s->longest_before);

    if (!s->timed_any) {
        usec = MAX_WAIT_USEC;
    }
    usec = usec > most ? most : usec;
    return (usec < least ? least : usec) << s->backoff;
}

static void
await(struct stall *s, uint64_t from)
{
    s->awaits = true;
    s->from = from;
}

static void
note_time(struct stall *s, uint64_t now)
{
    uint64_t usec = now - s->timed_at;

    if (!s->timed_any || now - s->remembered_at >= MEMORY_USEC) {
        s->longest_before = s->longest;
        s->longest = 0;
        s->remembered_at = now;
    }
    s->longest = usec > s->longest ? usec : s->longest;
    s->timed_any = true;
    s->timing = false;
    s->backoff = 0;
}

void
stall_reset(struct reverse *r)
{
    r->stall = (struct stall){.asked = r->h};
}

void
stall_down(struct reverse *r, psn_t q, psn_t floor, bool ack_req, uint64_t now)
{
    const struct branch *b = branches_minimum(r);
    struct stall *s = &r->stall;

    if (psn_cmp(q, r->h) >= 0 || psn_cmp(q, floor) < 0) {
        return;
    }
    if (b && psn_eq(q, b->una)) {
        s->awaits = false;
        /* If no NAK asked for PSN m, a timer did, and that takes longer than answers do. */
        s->timing &= s->told && !s->n_tries && !s->served;
        s->served = s->told;
    }
    if (!ack_req) {
        return;
    }
    s->asked = psn_add(q, 1);
    if (!r->repeats && !s->timing) {
        s->timing = true;
        s->timed = q;
        s->timed_at = now;
    }
    if (b && !s->awaits) {
        await(s, now);
    }
}

void
stall_moved(struct reverse *r, psn_t m, uint64_t now)
{
    struct stall *s = &r->stall;

    if (s->timing && psn_cmp(s->timed, m) < 0) {
        note_time(s, now);
    }
    s->n_tries = 0;
    s->backoff = s->backoff < MAX_CARRIED ? s->backoff : MAX_CARRIED;
    s->told = s->served = false;
    s->awaits = false;
    if (psn_cmp(s->asked, m) > 0) {
        await(s, now);
    } else {
        s->asked = m;
    }
}

void
stall_told(struct reverse *r, uint64_t now)
{
    if (!r->stall.told) {
        r->stall.told = true;
        await(&r->stall, now);
    }
}

uint64_t
stall_deadline(const struct reverse *r)
{
    const struct stall *s = &r->stall;

    return r->policy.presume_usec && s->awaits && s->n_tries < MAX_TRIES ? s->from + wait_usec(r)
                                                                         : UINT64_MAX;
}

/* The branch has asked for time, or will not answer. */
static bool
asks_for_none(const struct branch *b)
{
    return b->cond == REVERSE_RNR || b->cond == REVERSE_FATAL;
}

/* NAK(m), and if that was said, what a source does not ignore. */
static uint8_t
say(struct stall *s, uint64_t now)
{
    if (!s->told) {
        return AETH_NAK_PSN_SEQ;
    }
    await(s, now + RNR_SLACK_USEC);
    return AETH_RNR_AT_ONCE;
}

uint8_t
stall_timer(struct reverse *r, uint64_t now)
{
    const struct branch *b = branches_minimum(r);
    struct stall *s = &r->stall;

    if (now < stall_deadline(r) || !b) {
        return 0;
    }
    s->awaits = false;
    if (asks_for_none(b)) {
        return 0;
    }
    s->n_tries++;
    s->backoff++;
    return say(s, now);
}

/* The wait stays as it is: no answer took longer than others. */
uint8_t
stall_go_back(struct reverse *r, const struct branch *b, uint64_t now)
{
    return asks_for_none(b) ? 0 : say(&r->stall, now);
}
