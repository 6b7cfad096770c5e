/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses that nobody reports (docs/draft-notes.md, R14): at the root, the minimum stands still
 * although somebody was asked.
 *
 * A receiver says once what it misses, and once what it has if the source asks for nothing more.
 * That a packet which was sent again got lost again it never says, and a source would ignore it.
 * Where that is lost the source's own timer is all there is, and that has to be thousands of times
 * as long as an answer takes.  So the root times answers and, when one is overdue, takes the
 * source back to m.
 *
 * An answer is awaited from the first question at or above m behind what may have repaired m last.
 * That is that m got further; that PSN m went down again; and that NAK(m) went up, which the packet
 * itself has to follow.
 */
#include "lib/reverse-impl.h"

#include "lib/roce.h"

/* An answer takes this long until one was timed; and at most, unless the source's timer is longer. */
#define MAX_WAIT_USEC  1000000
/* That is so many times the least wait. */
#define TIMEOUT_WAITS  5
/* How long it is remembered what an answer took, once or twice that. */
#define MEMORY_USEC    1000000
/* How much longer a source may wait after an RNR NAK than that says: a tick of its clock. */
#define RNR_SLACK_USEC 10000
/* The shortest time that it can say (0 is the longest). */
#define RNR_AT_ONCE    (AETH_RNR | 1)
/* So often at the same m; then the source's timer is left to it. */
#define MAX_TRIES      6
/* So often the wait stays doubled when m got further: then it is longer than the source's timer. */
#define MAX_CARRIED    3

/* How long to wait for an answer; twice as long each time.  When m gets further this stays so until
 * an answer was timed: answers that now take longer than the wait are never timed, because what is
 * sent again in vain is all that they could be taken for. */
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
        /* Unless a NAK asked for it, a timer did, which takes longer than answers do. */
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

uint8_t
stall_timer(struct reverse *r, uint64_t now)
{
    const struct branch *b = branches_minimum(r);
    struct stall *s = &r->stall;

    if (now < stall_deadline(r) || !b) {
        return 0;
    }
    s->awaits = false;
    if (b->cond == REVERSE_RNR || b->cond == REVERSE_FATAL) {
        return 0; /* It has asked for time, or will not answer. */
    }
    s->n_tries++;
    s->backoff++;
    if (!s->told) {
        return AETH_NAK_PSN_SEQ;
    }
    await(s, now + RNR_SLACK_USEC);
    return RNR_AT_ONCE;
}
