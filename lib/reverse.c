/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path of one group epoch at one node.
 *
 * Theory of operation
 * -------------------
 * docs/draft-notes.md, "The reverse-path rule", says what this machine does
 * and why; the rule numbers below (R1..) are those of that text.
 *
 * Each branch has 'una', the next PSN that it has not confirmed, and a
 * condition (none, sequence NAK, RNR NAK, fatal NAK) that stands at una.  m, the
 * circular minimum of una, decides what may go up.  The branch that gives m is
 * found at once (reverse-branches.c).
 *
 * Every setting of a condition has a number, from one counter.  A NAK sent up
 * reports all conditions that stand at m then, and 'told' becomes the counter's
 * value.  So a condition at m was reported if its number is at most 'told', and no
 * flag per branch has to be reset.  'told' begins anew when m advances.
 *
 * An event costs O(log n) in the number of branches, and so does each copy that is
 * noted; for copies that branches share see reverse-copies.c.  A tick, of which the
 * liveness time has 32, costs O(n), as do changes of the configuration and a start
 * without state.  Memory is allocated only when a branch is added.
 */
#include "lib/reverse-impl.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/defect.h"
#include "lib/roce.h"

static const struct reverse_out nothing;

/* Is everything that was sent down confirmed, and was that sent up?  Only then may
 * a branch be added as confirmed up to H: else it would acknowledge what nobody
 * received (R10). */
static bool
is_quiesced(const struct reverse *r)
{
    return !r->started || (r->f_known && psn_eq(r->f, r->h));
}

struct reverse *
reverse_create(const struct reverse_params *params)
{
    struct reverse *r = must_calloc(1, sizeof *r);

    r->params = *params;
    r->h = r->f = r->asked_to = r->asked_before = params->start_psn;
    r->f_known = true;
    r->tick_at = UINT64_MAX;
    stall_reset(r);
    return r;
}

void
reverse_destroy(struct reverse *r)
{
    if (!r) {
        return;
    }
    for (size_t i = 0; i < r->n_branches; i++) {
        free(r->branches[i]);
    }
    free(r->branches);
    free(r->heap);
    free(r);
}

int
reverse_branch_add(struct reverse *r, uint32_t id, uint64_t now)
{
    if (branch_find(r, id)) {
        return EEXIST;
    }
    if (!is_quiesced(r)) {
        return EBUSY;
    }
    struct branch *b = branch_insert(r, id);
    if (!b) {
        return ENOMEM;
    }
    branch_update(r, b, DEFECT(H9) ? psn_make(0) : r->h, REVERSE_NONE, 0, now);
    branches_prune(r); /* A lost branch that was kept as the last one. */
    return 0;
}

/* Output. */

static uint8_t
cond_syndrome(const struct branch *b)
{
    switch (b->cond) {
    case REVERSE_NAK: return AETH_NAK_PSN_SEQ;
    case REVERSE_RNR: return (uint8_t) (AETH_RNR | b->code);
    case REVERSE_FATAL: return b->code;
    case REVERSE_NONE: break;
    }
    return AETH_ACK_UNLIMITED;
}

/* Sends up ACK(m - 1), or a NAK with PSN m: 'b' gives the minimum. */
static struct reverse_out
send_up(struct reverse *r, const struct branch *b, uint8_t syndrome, uint64_t now)
{
    bool moved = !r->f_known || psn_cmp(b->una, r->f) > 0;
    psn_t psn = b->una;

    r->msn = b->late && !b->is_node ? r->msn : b->msn;

    switch (aeth_class(syndrome)) {
    case AETH_CLASS_ACK:
        psn = psn_add(psn, -1);
        r->n_sent_acks++;
        break;
    case AETH_CLASS_RNR: r->n_sent_rnrs++; break;
    default: *(syndrome == AETH_NAK_PSN_SEQ ? &r->n_sent_naks : &r->n_sent_fatals) += 1; break;
    }
    if (syndrome != AETH_ACK_UNLIMITED) {
        r->told = r->settings;
        branches_clear_held(r);
    }
    r->f = b->una;
    r->f_known = true;
    r->dup_pending = false;
    if (moved) {
        stall_moved(r, b->una, now);
    }
    if (syndrome == AETH_NAK_PSN_SEQ) {
        stall_told(r, now);
    }
    return (struct reverse_out){
        .send = true, .syndrome = syndrome, .psn = psn, .msn = r->msn, .moved = moved};
}

/* When the oldest NAK above m has waited for long enough. */
static uint64_t
held_deadline(const struct reverse *r)
{
    if (!r->held_first) {
        return UINT64_MAX;
    }
    return r->policy.nak == NAK_LITERAL ? 0 : r->held_first->since + r->params.hold_usec;
}

static struct reverse_out
send_again(struct reverse *r, const struct branch *b, uint64_t now)
{
    r->n_sent_dups++;
    r->dup_not_before = now + r->params.dup_ack_usec;
    return send_up(r, b, AETH_ACK_UNLIMITED, now);
}

/* Decides what to send up now (R6).  'dup': what was said before is asked for again. */
static struct reverse_out
decide(struct reverse *r, bool dup, uint64_t now)
{
    const struct branch *b = branches_minimum(r);
    if (!b) {
        return nothing;
    }

    if (!r->f_known && r->may_be_new && psn_eq(b->una, r->params.start_psn)) {
        /* The epoch's first packet got lost: nothing is confirmed yet. */
        r->f = b->una;
        r->f_known = true;
    }
    bool advanced = !r->f_known || psn_cmp(b->una, r->f) > 0;
    if (advanced) {
        r->told = 0;
        r->confirmed = true;
    }

    /* A branch that counts again (branches_count_last()) may be at H. */
    bool fatal = b->cond == REVERSE_FATAL && psn_cmp(b->una, r->h) < 0;
    if (b->setting > r->told || (dup && fatal)) {
        return send_up(r, b, cond_syndrome(b), now);
    }
    if (now >= held_deadline(r)) {
        branches_clear_held(r);
        /* With a condition at m the source was already sent back there. */
        if (b->cond == REVERSE_NONE) {
            return send_up(r, b, AETH_NAK_PSN_SEQ, now);
        }
    }
    if (advanced) {
        return send_up(r, b, AETH_ACK_UNLIMITED, now);
    }
    if (dup && r->confirmed && !DEFECT(H13)) {
        if (now >= r->dup_not_before) {
            return send_again(r, b, now);
        }
        r->dup_pending = true;
    }
    return nothing;
}

/* Events. */

struct reverse_out
reverse_branches_remove(struct reverse *r, const uint32_t *ids, size_t n, uint64_t now)
{
    for (size_t i = 0; i < n; i++) {
        struct branch *b = branch_find(r, ids[i]);
        if (b && !DEFECT(H27)) {
            branch_delete(r, b);
        }
    }
    branches_count_last(r, now);
    return decide(r, false, now);
}

/* Is PSN q, the first to go down here, the epoch's first?  In an epoch that started in an
 * earlier life of the node, start_psn is not: the source may have gone through all PSNs since. */
static bool
is_first(const struct reverse *r, psn_t q)
{
    return !r->params.started_before && psn_eq(q, r->params.start_psn);
}

bool
reverse_jump_suspicious(const struct reverse *r, psn_t q)
{
    return r->started ? psn_cmp(q, r->h) >= REVERSE_MAX_UNVERIFIED_JUMP : !is_first(r, q);
}

/* The first packet that goes down here is not the epoch's first: the node was
 * restarted, or packets got lost on the way here.  Nothing is known (R8). */
static void
start_without_state(struct reverse *r, psn_t q, uint64_t now)
{
    r->h = r->asked_to = r->asked_before = r->lowest = q;
    r->lowest_age = 0;
    r->f_known = false;
    r->without_state = true;
    r->proven_by = now + REVERSE_LIFETIME_USEC;
    r->may_be_new = psn_cmp(q, r->params.start_psn) >= 0;
    r->anchor_floor = psn_add(q, -REVERSE_ANCHOR_WINDOW);
    r->ahead = !DEFECT(NOT_AHEAD);
    r->ahead_end = psn_add(q, REVERSE_AHEAD_WINDOW);
    r->n_heap = 0;
    stall_reset(r);
    for (size_t i = 0; i < r->n_branches; i++) {
        struct branch *b = r->branches[i];

        b->anchored = b->pace.known = false;
        reverse_n_visits++;
        if (DEFECT(ANCHOR)) {
            branch_update(r, b, q, REVERSE_NONE, 0, now);
        } else if (b->lost && !b->waits && !b->pruned) {
            /* It had answered no question, and has got nothing. */
            branch_update(r, b, r->may_be_new ? r->params.start_psn : r->anchor_floor,
                          REVERSE_FATAL, b->code, now);
        } else if (!b->lost && liveness_may_have_executed(r, b, q)) {
            branch_lose(r, b, r->anchor_floor, LOSS_UNANSWERED, AETH_NAK_REM_OP, now);
        }
    }
}

struct reverse_out
reverse_down(struct reverse *r, psn_t q, bool ack_req, uint64_t now)
{
    if (!r->n_branches) {
        return nothing; /* It goes to nobody (R9). */
    }
    r->down_at = now;
    if (!r->started) {
        r->started = true;
        if (!is_first(r, q)) {
            start_without_state(r, q, now);
        }
    }

    const struct branch *b = branches_minimum(r);
    psn_t floor = b ? b->una : r->f_known && !branches_counted(r) ? r->f : r->anchor_floor;
    psn_t h = psn_add(q, 1);
    int32_t gap = psn_cmp(q, r->h);
    r->repeats = gap < 0;
    r->continues = !gap;
    r->admits = false;
    r->down = q;
    r->passing = ack_req || (r->f_known && psn_cmp(q, r->f) < 0);
    if (psn_cmp(h, r->h) > 0 && psn_cmp(h, floor) > 0) {
        r->h = h;
        r->ahead &= psn_cmp(h, r->ahead_end) < 0;
    }
    liveness_expect(r, q, floor, now);
    pace_expect(r, q, floor, ack_req, gap);
    stall_down(r, q, floor, ack_req, now);
    /* A failed group says so whenever an answer is owed.  A PSN that all have confirmed comes again
     * because an answer got lost.  The node answers: those below may have died since, and as they
     * lack nothing, they never count as silent. */
    bool fatal = ack_req && b && b->cond == REVERSE_FATAL;
    bool confirmed = b && psn_cmp(q, b->una) < 0;
    return fatal || confirmed ? decide(r, true, now) : nothing;
}

bool
reverse_is_pruned(const struct reverse *r, uint32_t id)
{
    const struct branch *b = r->n_pruned ? branch_find(r, id) : NULL;
    return b && b->pruned;
}

/* What a syndrome says.  False: reserved, or not for RC. */
static bool
parse_syndrome(uint8_t syndrome, enum reverse_cond *cond, uint8_t *code)
{
    if (syndrome & 0x80) {
        return false;
    }
    *code = 0;
    switch (aeth_class(syndrome)) {
    case AETH_CLASS_ACK: *cond = REVERSE_NONE; return true;
    case AETH_CLASS_RNR:
        *cond = REVERSE_RNR;
        *code = syndrome & 0x1f;
        return true;
    case AETH_CLASS_NAK:
        if (syndrome == AETH_NAK_PSN_SEQ) {
            *cond = REVERSE_NAK;
            return true;
        }
        *cond = REVERSE_FATAL;
        *code = syndrome;
        return syndrome <= AETH_NAK_REM_OP;
    case AETH_CLASS_RESERVED: break;
    }
    return false;
}

/* Was what the response confirms sent in an earlier life of the node, and not again in this one (R8)?  A refusal is
 * not taken for that. */
static bool
is_ahead(const struct reverse *r, psn_t psn, enum reverse_cond cond)
{
    return r->ahead && cond != REVERSE_FATAL && psn_cmp(psn, r->h) >= 0
           && psn_cmp(psn, r->ahead_end) < 0;
}

/* May 'b' speak about 'psn'?  It must have been sent, and be above the floor if the branch is not
 * anchored (R5, R8). */
static inline bool
psn_acceptable(const struct reverse *r, const struct branch *b, psn_t psn, psn_t floor)
{
    return r->started && (psn_cmp(psn, r->h) < 0 || DEFECT(H28))
           && (b->anchored || psn_cmp(psn, floor) >= 0);
}

/* Is an RNR NAK with this code no news where the branch stands?  Only one with a longer time is:
 * a receiver says RNR once for each copy, and a copy clears what stands. */
static bool
rnr_is_known(const struct branch *b, uint8_t code)
{
    return b->cond == REVERSE_RNR
           && (b->code == code
               || (roce_rnr_longer(b->code, code) == b->code && !DEFECT(RNR_CODES)));
}

/* Does the response leave the branch as it is? (R2, R3, R4) */
static bool
says_nothing_new(const struct branch *b, psn_t psn, enum reverse_cond cond, uint8_t code)
{
    if (!b->anchored) {
        return false;
    }
    if (b->cond == REVERSE_FATAL || (psn_cmp(psn, b->una) < 0 && !DEFECT(H10))) {
        return true;
    }
    if (!psn_eq(psn, b->una)) {
        return false;
    }
    return cond == REVERSE_RNR ? rnr_is_known(b, code)
                               : cond == REVERSE_NAK && b->cond != REVERSE_NONE;
}

/* Is the response a sign of life (R12): does it anchor the branch, raise una, or ask for time at
 * una (RNR)?  Repeating an ACK or another NAK does not count. */
static bool
shows_life(const struct branch *b, psn_t una, enum reverse_cond cond)
{
    int32_t further = b->anchored ? psn_cmp(una, b->una) : 1;

    return further > 0 || (!further && cond == REVERSE_RNR);
}

/* R17: what a branch says that waits. */
static struct reverse_out
wait_response(struct reverse *r, struct branch *b, psn_t psn, enum reverse_cond cond, uint32_t msn,
              uint64_t now, enum drop_reason *why)
{
    *why = DROP_none;
    if (!b->is_node || cond != REVERSE_NONE) {
        b->n_dups++;
        return nothing;
    }
    if (!psn_acceptable(r, b, psn, psn_add(r->h, -REVERSE_ANCHOR_WINDOW))) {
        *why = DROP_psn_not_sent;
        return nothing;
    }
    if (!join_may_count(r, b, now)) {
        b->n_dups++;
        return nothing;
    }
    b->n_acks++;
    b->msn = msn;
    join_node(r, b, psn_add(psn, 1), now);
    return decide(r, false, now);
}

struct reverse_out
reverse_response(struct reverse *r, uint32_t id, psn_t psn, uint8_t syndrome, uint32_t msn,
                 uint64_t now, enum drop_reason *why)
{
    enum reverse_cond cond;
    uint8_t code;
    struct branch *b = branch_find_near(r, id);

    if (!b) {
        *why = DROP_unknown_branch;
        return nothing;
    }
    if (!parse_syndrome(syndrome, &cond, &code)) {
        *why = DROP_resp_opcode;
        return nothing;
    }
    bool blind = b->blind && !b->lost;
    bool was_asked = liveness_hear(r, b);
    if (b->waits) {
        return wait_response(r, b, psn, cond, msn, now, why);
    }
    if (b->pruned) {
        *why = DROP_none;
        b->n_dups++;
        return nothing;
    }
    psn_t una = cond == REVERSE_NONE ? psn_add(psn, 1) : psn;
    if (blind && liveness_has_executed(r, una)) {
        *why = DROP_none;
        branch_lose(r, b, b->una, LOSS_ELSEWHERE, AETH_NAK_REM_OP, now);
        return decide(r, false, now);
    }
    if (was_asked && cond == REVERSE_NONE && b->cond == REVERSE_NONE && b->anchored
        && psn_eq(una, b->una)) {
        *why = DROP_none;
        b->n_dups++;
        b->proven |= now >= r->proven_by;
        return nothing; /* the answer to a question, perhaps before anything went down. */
    }
    if (is_ahead(r, psn, cond)) {
        una = r->h;
        psn = psn_add(una, -1);
        cond = REVERSE_NONE;
        code = 0;
    }
    if (!psn_acceptable(r, b, psn, r->anchor_floor)) {
        *why = DROP_psn_not_sent;
        return nothing;
    }
    *why = DROP_none;
    if (b->is_node && !b->late) {
        join_node(r, b, una, now);
    }
    b->liveness.alive |= shows_life(b, una, cond);
    b->proven |= now >= r->proven_by;

    if (says_nothing_new(b, psn, cond, code)) {
        b->n_dups++;
        b->pace.waits |= cond == REVERSE_RNR && psn_eq(psn, b->una);
        if (DEFECT(ACK_CLEARS_NAK) && cond == REVERSE_NONE && b->cond == REVERSE_NAK) {
            branch_update(r, b, b->una, REVERSE_NONE, 0, now);
        }
        return decide(r, cond == REVERSE_NONE, now);
    }

    uint64_t *counters[] = {
        [REVERSE_NONE] = &b->n_acks,
        [REVERSE_NAK] = &b->n_naks,
        [REVERSE_RNR] = &b->n_rnrs,
        [REVERSE_FATAL] = &b->n_fatals,
    };
    ++*counters[cond];
    b->msn = msn;
    b->risen |= !b->anchored || psn_cmp(una, b->una) > 0;
    if (cond == REVERSE_FATAL) {
        branch_lose(r, b, una, LOSS_REFUSED, code, now);
    } else {
        branch_update(r, b, una, cond, code, now);
        b->pace.waits |= cond == REVERSE_RNR;
    }
    if (DEFECT(H14) && cond == REVERSE_RNR) {
        return send_up(r, b, syndrome, now);
    }
    return decide(r, false, now);
}

bool
reverse_may_be_fresh(const struct reverse *r, uint32_t id, psn_t psn)
{
    const struct branch *b = branch_find(r, id);
    return b && b->asked_fresh && psn_eq(psn, b->fresh);
}

struct reverse_out
reverse_ack_before(struct reverse *r, const struct reverse_out *nak)
{
    struct reverse_out ack = *nak;

    ack.syndrome = AETH_ACK_UNLIMITED;
    ack.psn = psn_add(nak->psn, -1);
    r->n_sent_acks++;
    return ack;
}

/* Timer. */

/* When something is to be sent. */
static uint64_t
send_deadline(const struct reverse *r)
{
    const struct branch *b = branches_minimum(r);
    if (!b) {
        return UINT64_MAX;
    }
    if (b->setting > r->told) {
        return 0; /* reverse_copied() uncovered this condition. */
    }
    uint64_t at = held_deadline(r);
    at = r->dup_pending && r->dup_not_before < at ? r->dup_not_before : at;
    return stall_deadline(r) < at ? stall_deadline(r) : at;
}

uint64_t
reverse_deadline(const struct reverse *r)
{
    uint64_t send = send_deadline(r), look = liveness_deadline(r);
    return look < send ? look : send;
}

struct reverse_out
reverse_timer(struct reverse *r, uint64_t now)
{
    liveness_timer(r, now);
    struct reverse_out out = decide(r, false, now);
    const struct branch *b = branches_minimum(r);
    if (out.send || !b) {
        return out;
    }
    if (r->dup_pending && now >= r->dup_not_before) {
        return send_again(r, b, now);
    }
    uint8_t syndrome = stall_timer(r, now);
    if (syndrome) {
        r->n_sent_presumed++;
        return send_up(r, b, syndrome, now);
    }
    return out;
}

/* Other ways. */

struct reverse_out
reverse_go_back(struct reverse *r, uint64_t now)
{
    const struct branch *b = branches_minimum(r);

    if (!b || !r->started || psn_cmp(b->una, r->h) >= 0) {
        return nothing;
    }
    uint8_t syndrome = stall_go_back(r, b, now);
    if (!syndrome) {
        return nothing;
    }
    r->n_sent_presumed++;
    return send_up(r, b, syndrome, now);
}

struct reverse_out
reverse_repeat(struct reverse *r, uint64_t now)
{
    struct reverse_out out = decide(r, false, now);
    const struct branch *b = branches_minimum(r);

    if (out.send || !b || !r->f_known) {
        return out;
    }
    if (b->cond != REVERSE_NONE && psn_cmp(b->una, r->h) < 0) {
        return send_up(r, b, cond_syndrome(b), now);
    }
    return r->confirmed ? send_again(r, b, now) : nothing;
}

/* Display. */

void
reverse_get_info(const struct reverse *r, struct reverse_info *info)
{
    const struct branch *b = branches_minimum(r);

    *info = (struct reverse_info){
        .started = r->started,
        .anchored = b != NULL,
        .quiesced = is_quiesced(r),
        .blank = join_is_blank(r),
        .h = r->h,
        .m = b ? b->una : r->f,
        .f = r->f,
        .n_branches = r->n_branches,
        .n_lost = r->n_lost,
        .n_waiting = r->n_waiting,
        .n_joined = r->n_joined,
        .n_decided = r->n_decided,
        .n_paced = r->n_paced,
        .n_sent_acks = r->n_sent_acks,
        .n_sent_naks = r->n_sent_naks,
        .n_sent_rnrs = r->n_sent_rnrs,
        .n_sent_fatals = r->n_sent_fatals,
        .n_sent_dups = r->n_sent_dups,
        .n_sent_presumed = r->n_sent_presumed,
    };
}

bool
reverse_get_branch(const struct reverse *r, uint32_t id, struct reverse_branch_info *info)
{
    const struct branch *b = branch_find(r, id);
    if (b) {
        *info = (struct reverse_branch_info){
            .id = id,
            .anchored = b->anchored,
            .waits = b->waits,
            .late = b->late,
            .first = b->first,
            .lost = b->lost,
            .doubted = b->doubted,
            .unanswered = b->unanswered,
            .pruned = b->pruned,
            .slow = b->pace.slow,
            .n_confirmed = b->pace.slow ? b->pace.n_confirmed : 0,
            .una = b->una,
            .cond = b->cond,
            .code = b->code,
            .msn = b->msn,
            .n_acks = b->n_acks,
            .n_dups = b->n_dups,
            .n_naks = b->n_naks,
            .n_rnrs = b->n_rnrs,
            .n_fatals = b->n_fatals,
            .n_repeats = b->n_repeats,
            .n_useless = b->n_useless,
            .n_filtered = b->n_filtered,
        };
    }
    return b != NULL;
}
