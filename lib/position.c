/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a queue pair stands (docs/draft-notes.md, R18).
 *
 * A question whose PSN the queue pair has is a duplicate: it answers with the last PSN that it has.
 * Of two PSNs that are half the PSN space apart one is behind what it expects.  One that has
 * received nothing says ACK(ffffff) with MSN 0, wherever it starts; there the hint is tried.
 *
 * The test is a question at the PSN that it expects.  At the begin of a message it is executed: it
 * writes no bytes, and takes a PSN and a number of a message.  Within a message it is refused for
 * good.  The number tells the answer to the test from that to a duplicate.
 */
#include "lib/position.h"

#include "lib/defect.h"
#include "lib/roce.h"

/* What was sent for an earlier source has left the wire after this time. */
#define QUIET_USEC    100000
#define QUESTION_USEC 50000
/* Questions without any answer, and at all. */
#define MAX_QUESTIONS 40
#define MAX_ALL       400

#define MSN_MASK      0xffffffu

void
position_init(struct position *p, psn_t hint, uint64_t now)
{
    *p = (struct position){
        .state = POSITION_LOOKING,
        .psn = hint,
        .hint = hint,
        .next = now + QUIET_USEC,
    };
}

static bool
is_over(const struct position *p)
{
    return p->state != POSITION_LOOKING && p->state != POSITION_TESTING;
}

uint64_t
position_deadline(const struct position *p)
{
    return is_over(p) ? UINT64_MAX : p->next;
}

/* A PSN behind what it expects, this time or the next. */
static psn_t
look(struct position *p)
{
    int32_t ahead = p->far ? INT32_C(1) << 23 : 0;

    p->far = !p->far;
    return psn_add(p->hint, ahead - 1);
}

bool
position_timer(struct position *p, uint64_t now, psn_t *psn)
{
    if (is_over(p) || now < p->next) {
        return false;
    }
    if (p->n_questions == MAX_QUESTIONS || p->n_all == MAX_ALL) {
        /* What it said to the test, and only once, may have got lost. */
        bool refused = p->state == POSITION_TESTING && !p->guessed && p->n_all < MAX_ALL;

        p->state = refused ? POSITION_HALF : POSITION_SILENT;
        return false;
    }
    /* One that has received nothing names what it expects if it is asked for a PSN ahead of
     * that. */
    bool looks = p->state == POSITION_LOOKING || (p->guessed && p->n_all % 2);

    *psn = looks ? look(p) : p->psn;
    p->n_questions++;
    p->n_all++;
    p->next = now + QUESTION_USEC;
    return true;
}

/* It expects 'psn' and has completed 'msn' messages. */
static void
test(struct position *p, psn_t psn, uint32_t msn, bool guessed, uint64_t now)
{
    p->state = DEFECT(POSITION_UNTESTED) ? POSITION_FOUND : POSITION_TESTING;
    p->psn = psn;
    p->msn = msn;
    p->guessed = guessed;
    p->next = now;
}

static void
take_ack(struct position *p, psn_t psn, uint32_t msn, uint64_t now)
{
    bool tests = p->state == POSITION_TESTING;
    psn_t expects = psn_add(psn, 1);

    if (tests && psn_eq(psn, p->psn) && msn == ((p->msn + 1) & MSN_MASK)) {
        p->state = POSITION_FOUND;
        p->psn = DEFECT(POSITION_TEST) ? psn : expects;
        p->msn = msn;
    } else if (psn.v == PSN_MASK && !msn) {
        if (!tests) {
            test(p, p->hint, 0, true, now);
        }
    } else if (!tests || p->guessed || psn_cmp(expects, p->psn) > 0) {
        test(p, expects, msn, false, now);
    }
}

void
position_answer(struct position *p, uint8_t syndrome, psn_t psn, uint32_t msn, uint64_t now)
{
    if (is_over(p) || !p->n_all) {
        return; /* It was not asked yet. */
    }
    p->n_questions = 0;
    if (aeth_class(syndrome) == AETH_CLASS_ACK) {
        take_ack(p, psn, msn, now);
    } else if (syndrome == AETH_NAK_PSN_SEQ) {
        if (p->state == POSITION_LOOKING || !psn_eq(psn, p->psn)) {
            test(p, psn, msn, false, now);
        }
    } else if (aeth_class(syndrome) == AETH_CLASS_NAK) {
        p->state = POSITION_HALF;
    }
}
