/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse-path rule of docs/draft-notes.md, transcribed clause by clause.
 *
 * Nothing here is clever on purpose.  Every question ("what is the minimum?",
 * "which condition takes precedence?") is answered by looking at all branches.
 */
#include "reverse-model.h"

#include <assert.h>
#include <errno.h>

#define PSN_SPACE  (INT64_C(1) << 24)
#define HALF_SPACE (PSN_SPACE / 2)

static const struct reverse_out silent;

void
model_init(struct model *m, const struct reverse_params *params)
{
    *m = (struct model){
        .params = *params,
        .start = 16 * PSN_SPACE + (int64_t) params->start_psn.v,
        .f_known = true,
        .next_tick = UINT64_MAX,
        .timed = -1,
    };
    m->h = m->f = m->asked_below = m->asked_up_to = m->asked_before = m->start;
}

int64_t
model_extend(psn_t psn, int64_t near)
{
    int64_t x = near - near % PSN_SPACE + (int64_t) psn.v;
    if (x >= near + HALF_SPACE) {
        x -= PSN_SPACE;
    }
    if (x < near - HALF_SPACE) {
        x += PSN_SPACE;
    }
    return x;
}

static psn_t
wire(int64_t x)
{
    return psn_make((uint32_t) (x % PSN_SPACE));
}

/* The branch confirms up to 'una'.  Once that is above what it answers while it has nothing, that
 * says nothing any more. */
static void
note_una(struct model_branch *b, int64_t una)
{
    if (b->known && una != b->una && model_extend(wire(b->nonsense), una) < una) {
        b->asked_fresh = false;
    }
}

static struct model_branch *
find(struct model *m, uint32_t id)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->b[i].id == id) {
            return &m->b[i];
        }
    }
    return NULL;
}

static size_t
n_counted(const struct model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        n += !m->b[i].pruned && !m->b[i].joining;
    }
    return n;
}

static bool
minimum(const struct model *m, int64_t *min)
{
    *min = INT64_MAX;
    for (size_t i = 0; i < m->n; i++) {
        if (m->b[i].pruned || m->b[i].joining) {
            continue;
        }
        if (!m->b[i].known) {
            return false;
        }
        if (m->b[i].una < *min) {
            *min = m->b[i].una;
        }
    }
    return n_counted(m) > 0;
}

/* Fatal before the longest RNR before NAK before none. */
static unsigned int
precedence(const struct model_branch *b)
{
    switch (b->cond) {
    case REVERSE_NONE: return 0;
    case REVERSE_NAK: return 1;
    case REVERSE_RNR: return b->code ? 1 + b->code : 33;
    case REVERSE_FATAL: break;
    }
    return 34;
}

/* The branch at the minimum that speaks: highest precedence, then the latest
 * setting, then the lowest id. */
static const struct model_branch *
speaker(const struct model *m, int64_t min)
{
    const struct model_branch *best = NULL;
    for (size_t i = 0; i < m->n; i++) {
        const struct model_branch *b = &m->b[i];
        if (b->una != min || b->pruned || b->joining) {
            continue;
        }
        if (!best || precedence(b) > precedence(best)
            || (precedence(b) == precedence(best)
                && (b->order > best->order || (b->order == best->order && b->id < best->id)))) {
            best = b;
        }
    }
    return best;
}

/* Is there a condition of the speaker's precedence at the minimum that was not
 * reported? */
static bool
unreported(const struct model *m, int64_t min)
{
    const struct model_branch *s = speaker(m, min);
    for (size_t i = 0; i < m->n; i++) {
        const struct model_branch *b = &m->b[i];
        if (!b->pruned && !b->joining && b->una == min && b->cond != REVERSE_NONE && !b->reported
            && precedence(b) == precedence(s)) {
            return true;
        }
    }
    return false;
}

/* R14: the longest time of those that are remembered: of this second, which began with one that was
 * timed, and of the one before. */
static uint64_t
longest_time(const struct model *m)
{
    uint64_t began = m->times[0].at, longest = 0;
    size_t first[2] = {0, 0}; /* of the second before, and of this one. */

    for (size_t i = 1; i < m->n_times; i++) {
        if (m->times[i].at - began >= 1000000) {
            began = m->times[i].at;
            first[0] = first[1];
            first[1] = i;
        }
    }
    for (size_t i = first[0]; i < m->n_times; i++) {
        longest = m->times[i].usec > longest ? m->times[i].usec : longest;
    }
    return longest;
}

/* When an answer is overdue. */
static uint64_t
answer_due(const struct model *m)
{
    uint64_t usec = m->n_times ? 2 * longest_time(m) : 1000000;

    if (usec > 1000000 && usec > 5 * m->presume) {
        usec = 5 * m->presume > 1000000 ? 5 * m->presume : 1000000;
    }
    usec = usec < m->presume ? m->presume : usec;
    for (unsigned i = 0; i < m->n_carried + m->n_presumed; i++) {
        usec *= 2;
    }
    return m->presume && m->waiting && m->n_presumed < 6 ? m->waits_from + usec : UINT64_MAX;
}

static void
await_answer(struct model *m, uint64_t from)
{
    m->waiting = true;
    m->waits_from = from;
}

static void
note_progress(struct model *m, int64_t min, uint64_t now)
{
    m->n_carried += m->n_presumed;
    m->n_carried = m->n_carried > 3 ? 3 : m->n_carried;
    if (m->timed >= 0 && min > m->timed) {
        m->n_carried = 0;
        assert(m->n_times < MODEL_MAX_TIMES);
        m->times[m->n_times].at = now;
        m->times[m->n_times++].usec = now - m->timed_from;
        m->timed = -1;
    }
    m->n_presumed = 0;
    m->nak_said = false;
    m->n_served = 0;
    m->waiting = false;
    if (m->asked_below > min) {
        await_answer(m, now);
    }
}

/* rxe never reads it; who came late counts its own messages only. */
static uint32_t
msn_up(struct model *m, int64_t min)
{
    const struct model_branch *s = speaker(m, min);

    m->msn = s->late && !s->is_node ? m->msn : s->msn;
    return m->msn;
}

static struct reverse_out
send_ack(struct model *m, int64_t min, uint64_t now)
{
    bool moved = !m->f_known || min > m->f;

    if (moved) {
        note_progress(m, min, now);
    }
    m->f = min;
    m->f_known = true;
    m->dup_waiting = false;
    m->n_sent_acks++;
    return (struct reverse_out){true, 0x1f, wire(min - 1), msn_up(m, min), moved};
}

/* A NAK speaks for all conditions at the minimum; and it takes the source back,
 * which serves all that are held above. */
static struct reverse_out
send_nak(struct model *m, int64_t min, uint8_t syndrome, uint64_t now)
{
    for (size_t i = 0; i < m->n; i++) {
        m->b[i].reported |= m->b[i].una == min;
        m->b[i].rewound = true;
    }
    bool moved = !m->f_known || min > m->f;

    if (moved) {
        note_progress(m, min, now);
    }
    if (syndrome == 0x60 && !m->nak_said) {
        m->nak_said = true;
        await_answer(m, now);
    }
    m->f = min;
    m->f_known = true;
    m->dup_waiting = false;
    *(syndrome < 0x40    ? &m->n_sent_rnrs
      : syndrome == 0x60 ? &m->n_sent_naks
                         : &m->n_sent_fatals) += 1;
    return (struct reverse_out){true, syndrome, wire(min), msn_up(m, min), moved};
}

static struct reverse_out
resend_ack(struct model *m, int64_t min, uint64_t now)
{
    m->dup_not_before = now + m->params.dup_ack_usec;
    m->n_sent_dups++;
    return send_ack(m, min, now);
}

static bool
is_held(const struct model_branch *b)
{
    return b->cond == REVERSE_NAK && !b->rewound;
}

/* When a sequence NAK above the minimum may wait no longer. */
static uint64_t
held_deadline(const struct model *m)
{
    uint64_t deadline = UINT64_MAX;
    for (size_t i = 0; i < m->n; i++) {
        uint64_t when = m->nak == NAK_LITERAL ? 0 : m->b[i].when + m->params.hold_usec;
        if (is_held(&m->b[i]) && when < deadline) {
            deadline = when;
        }
    }
    return deadline;
}

static struct reverse_out
after_event(struct model *m, bool dup, uint64_t now)
{
    int64_t min;
    if (!minimum(m, &min)) {
        return silent;
    }
    if (!m->f_known && m->may_be_new && wire(min).v == m->params.start_psn.v) {
        m->f = min;
        m->f_known = true;
    }
    bool progress = !m->f_known || min > m->f;
    m->ever_confirmed |= progress;

    const struct model_branch *s = speaker(m, min);
    if (unreported(m, min) || (dup && s->cond == REVERSE_FATAL && min < m->h)) {
        return send_nak(m, min,
                        s->cond == REVERSE_NAK   ? 0x60
                        : s->cond == REVERSE_RNR ? (uint8_t) (0x20 + s->code)
                                                 : s->code,
                        now);
    }
    if (now >= held_deadline(m)) {
        for (size_t i = 0; i < m->n; i++) {
            m->b[i].rewound = true;
        }
        if (s->cond == REVERSE_NONE) {
            return send_nak(m, min, 0x60, now);
        }
    }
    if (progress) {
        return send_ack(m, min, now);
    }
    if (dup && m->ever_confirmed) {
        if (now >= m->dup_not_before) {
            return resend_ack(m, min, now);
        }
        m->dup_waiting = true;
    }
    return silent;
}

/* The lowest id of those that are lost, or of all, beyond 'after'; NULL: none. */
static struct model_branch *
next_by_id(struct model *m, int64_t after, bool lost)
{
    struct model_branch *next = NULL;
    for (size_t i = 0; i < m->n; i++) {
        struct model_branch *b = &m->b[i];
        if (b->id > after && (!lost || (b->lost && !b->pruned && !b->joining))
            && (!next || b->id < next->id)) {
            next = b;
        }
    }
    return next;
}

/* R15: whether it is slow is not known. */
static void
forget_pace(struct model *m, struct model_branch *b)
{
    m->n_paced += b->slow;
    b->slow = false;
    b->owed_ticks = 0;
}

static void
forget_paces(struct model *m)
{
    m->asked_before = m->asked_up_to;
    for (size_t i = 0; i < m->n; i++) {
        forget_pace(m, &m->b[i]);
    }
}

/* With policy prune nobody waits for those that are lost, as long as there is another one. */
static void
prune(struct model *m)
{
    struct model_branch *b;
    while (m->prune && n_counted(m) > 1 && (b = next_by_id(m, -1, true))) {
        b->pruned = true;
        b->known = false;
    }
}

void
model_set_policy(struct model *m, const struct reverse_policy *policy)
{
    uint64_t tick = policy->liveness_usec / 32 + (policy->liveness_usec % 32 != 0);
    bool new_ticks = tick != m->tick;
    if (new_ticks) {
        m->tick = tick;
        m->next_tick = UINT64_MAX;
        m->repeated_ago = 18;
        for (size_t i = 0; i < m->n; i++) {
            m->b[i].life = m->b[i].asked = false;
            m->b[i].silent_ticks = m->b[i].unasked_ticks = 0;
            m->b[i].question = m->b[i].due = m->b[i].heard = false;
        }
    }
    if (new_ticks || m->min_rate != policy->min_rate || m->lose_slow != policy->lose_slow) {
        forget_paces(m);
    }
    m->min_rate = policy->min_rate;
    m->lose_slow = policy->lose_slow;
    m->nak = policy->nak;
    m->filter = policy->filter;
    m->prune = policy->prune;
    m->presume = policy->presume_usec;
    prune(m);
}

struct reverse_out
model_after_policy(struct model *m, uint64_t now)
{
    return after_event(m, false, now);
}

int
model_branch_add(struct model *m, uint32_t id)
{
    if (find(m, id)) {
        return EEXIST;
    }
    if (m->started && (!m->f_known || m->f != m->h)) {
        return EBUSY;
    }
    m->b[m->n++] =
        (struct model_branch){.id = id, .known = true, .una = m->h, .nonsense = PSN_SPACE - 1};
    prune(m);
    return 0;
}

struct reverse_out
model_branch_remove(struct model *m, uint32_t id, uint64_t now)
{
    struct model_branch *b = find(m, id);
    if (!b) {
        return silent;
    }
    *b = m->b[--m->n];
    b = next_by_id(m, -1, false);
    while (b && !b->pruned) {
        b = next_by_id(m, b->id, false);
    }
    if (b && !n_counted(m)) {
        /* Somebody has to say that all are lost. */
        b->pruned = false;
        b->known = true;
        b->una = m->f_known ? m->f : b->una;
        b->reported = true; /* it is said when an answer is owed. */
        b->order = 0;
    }
    return after_event(m, false, now);
}

bool
model_jump_suspicious(const struct model *m, psn_t q)
{
    return m->started ? model_extend(q, m->h) + 1 > m->h + 4096
                      : m->params.started_before || q.v != m->params.start_psn.v;
}

/* As PSNs are compared: what is too far ahead counts as old. */
static bool
is_before(int64_t a, int64_t b)
{
    return a < b || a - b >= HALF_SPACE;
}

/* PSN x went down, and may repair the minimum or ask about it. */
static void
note_question(struct model *m, int64_t x, bool ack_req, int64_t min, uint64_t now)
{
    if (x == min) {
        m->waiting = false;
        m->n_served += m->nak_said;
        if (m->n_served != 1 || m->n_presumed) {
            m->timed = -1; /* that takes as long as a timer does. */
        }
    }
    if (!ack_req) {
        return;
    }
    m->asked_below = x + 1;
    if (!m->repeats && m->timed < 0) {
        m->timed = x;
        m->timed_from = now;
    }
    if (x >= min && !m->waiting) {
        await_answer(m, now);
    }
}

static void
set(struct model *m, struct model_branch *b, enum reverse_cond cond, uint8_t code, uint64_t now)
{
    b->cond = cond;
    b->code = code;
    b->reported = b->rewound = false;
    b->when = now;
    b->order = ++m->n_settings;
}

static void
lose(struct model *m, struct model_branch *b, int64_t una, enum reverse_loss loss, uint8_t code,
     uint64_t now)
{
    b->doubted = false;
    if (b->joining) {
        b->lost = loss;
        b->code = code;
        b->ready = false;
        return;
    }
    note_una(b, una);
    b->known = true;
    b->una = una;
    b->lost = loss;
    set(m, b, REVERSE_FATAL, code, now);
    if (una >= m->h) {
        b->reported = true; /* nothing went down that it could name. */
        b->order = 0;
        m->n_settings--;
    }
    prune(m);
    forget_paces(m);
}

/* R16: what a question has if nothing went down yet, and nothing is known: below the start PSN, or
 * above it. */
static psn_t
blind_psn(const struct model *m, bool above)
{
    return wire(m->start + (above ? 1 : -1) * (INT64_C(1) << 22));
}

/* How far apart are two PSNs? */
static int64_t
distance(psn_t a, psn_t b)
{
    int64_t x = model_extend(a, 16 * PSN_SPACE + (int64_t) b.v) - (16 * PSN_SPACE + (int64_t) b.v);
    return x < 0 ? -x : x;
}

struct reverse_out
model_down(struct model *m, psn_t q, bool ack_req, uint64_t now)
{
    int64_t min;

    if (!m->n) {
        return silent;
    }
    m->last_down = now;
    if (!m->started) {
        m->started = true;
        if (m->params.started_before || q.v != m->params.start_psn.v) {
            m->may_be_new = model_extend(q, m->start) >= m->start;
            m->h = m->start - m->start % PSN_SPACE + (int64_t) q.v;
            m->f_known = false;
            m->lost_state = true;
            m->anchor_floor = m->h - (INT64_C(1) << 22);
            m->ahead_end = m->h + 65536;
            m->repeated = m->h;
            m->repeated_ago = 0;
            m->asked_below = m->asked_up_to = m->asked_before = m->h;
            m->proven_by = now + 1000000;
            for (struct model_branch *b = NULL;
                 (b = next_by_id(m, b ? (int64_t) b->id : -1, false));) {
                b->known = b->known_at[0] = false;
                if (b->blind && !b->lost
                    && (distance(q, blind_psn(m, false)) < 1 << 20
                        || distance(q, blind_psn(m, true)) < 1 << 20)) {
                    lose(m, b, m->anchor_floor, LOSS_UNANSWERED, 0x63, now);
                } else if (b->lost && !b->joining && !b->pruned) {
                    int64_t una =
                        m->may_be_new ? model_extend(m->params.start_psn, m->h) : m->anchor_floor;
                    note_una(b, una);
                    b->known = true;
                    b->una = una;
                    set(m, b, REVERSE_FATAL, b->code, now);
                    if (una >= m->h) {
                        b->reported = true;
                        b->order = 0;
                        m->n_settings--;
                    }
                }
            }
        }
    }
    bool known = minimum(m, &min);
    int64_t h_before = m->h;
    int64_t h = model_extend(q, m->h) + 1;
    int64_t lowest = known ? min : !n_counted(m) && m->f_known ? m->f : m->anchor_floor;
    m->repeats = h <= m->h;
    m->admits = false;
    m->down = q;
    m->wants_answer = ack_req || (m->f_known && is_before(model_extend(q, m->f), m->f));
    if (h > m->h && h < lowest + HALF_SPACE) {
        m->h = h;
    }
    /* H may not have moved: below that q means what it says. */
    int64_t x = model_extend(q, m->h);
    if (x >= lowest && x < m->h
        && (m->repeated_ago > 17 || x == m->repeated || is_before(x, m->repeated))) {
        m->repeated = x;
        m->repeated_ago = 0;
    }
    if (m->tick && m->next_tick == UINT64_MAX) {
        m->next_tick = now + m->tick;
    }
    if (x < m->h && ack_req && x >= m->asked_up_to && x <= h_before + 256) {
        m->asked_up_to = x + 1;
    }
    if (x < m->h && x >= lowest) {
        note_question(m, x, ack_req, known ? min : INT64_MAX, now);
    }
    bool fatal = ack_req && known && speaker(m, min)->cond == REVERSE_FATAL;
    bool confirmed = known && is_before(x, min);
    return fatal || confirmed ? after_event(m, true, now) : silent;
}

static bool
has_confirmed(const struct model *m, const struct model_branch *b, psn_t q)
{
    return b->known && is_before(model_extend(q, m->h), b->una);
}

bool
model_filters(struct model *m, uint32_t id, psn_t q)
{
    struct model_branch *b = find(m, id);
    if (!b || !m->filter || !has_confirmed(m, b, q)) {
        return false;
    }
    b->n_filtered++;
    return true;
}

/* Is it behind the NAK that is held since last, and got no copy since then? */
bool
model_asks(struct model *m, uint32_t id)
{
    const struct model_branch *b = find(m, id), *latest = NULL;
    for (size_t i = 0; i < m->n; i++) {
        if (is_held(&m->b[i]) && (!latest || m->b[i].order > latest->order)) {
            latest = &m->b[i];
        }
    }
    return m->nak == NAK_SOLICIT && latest && b && b->known && !b->lost && b->una < latest->una
           && b->last_copy < latest->order;
}

/* What a source has to repeat for a branch to be asked.  If the node does not know how far the
 * source is, that may be beyond what it knows of the branch. */
static int64_t
wanted_by(const struct model *m, const struct model_branch *b)
{
    return !b->known || (m->lost_state && is_before(b->una, m->repeated)) ? m->repeated : b->una;
}

void
model_copied(struct model *m, uint32_t id, psn_t q, bool sent)
{
    struct model_branch *b = find(m, id);
    if (b) {
        b->asked |= wire(wanted_by(m, b)).v == q.v;
        b->n_repeats += m->repeats;
        b->n_useless += m->repeats && has_confirmed(m, b, q);
        b->last_copy = sent ? m->n_settings : b->last_copy;
    }
    if (b && sent && b->known && wire(b->una).v == q.v && b->cond != REVERSE_FATAL) {
        b->cond = REVERSE_NONE;
        b->code = 0;
        b->order = 0;
    }
}

static bool
lacks_something(const struct model *m, const struct model_branch *b)
{
    return !b->lost && !b->joining && (!b->known || b->una < m->h);
}

/* R16: what it has is known, or it waits and said so. */
static bool
can_be_asked(const struct model *m, const struct model_branch *b)
{
    return b->idle_asked && !b->lost
           && (b->joining || ((m->started || !m->params.started_before) && b->known));
}

/* R16: it is doubted, and nothing is known of what it has. */
static bool
can_be_asked_blindly(const struct model *m, const struct model_branch *b, uint64_t now)
{
    return b->idle_asked && !b->lost && !b->joining && !can_be_asked(m, b)
           && (m->started || now >= b->doubted_at + 1000000);
}

/* No copy of what it lacks was made for it for 17 ticks on end. */
static bool
is_forgotten(const struct model_branch *b)
{
    return (b->unasked_ticks & 0x1ffff) == 0x1ffff;
}

static bool
may_be_asked(const struct model *m, const struct model_branch *b)
{
    return can_be_asked(m, b) && (!lacks_something(m, b) || is_forgotten(b));
}

static void
ask(struct model_branch *b)
{
    b->question = b->due = true;
    b->asked_fresh = b->asked_fresh || !b->rose;
}

void
model_ask_when_idle(struct model *m, uint32_t id, bool may)
{
    struct model_branch *b = find(m, id);

    if (b && may && !b->idle_asked && b->joining) {
        ask(b);
    }
    if (b) {
        b->idle_asked = may;
    }
}

bool
model_next_question(struct model *m, uint32_t *id, psn_t *psn)
{
    for (struct model_branch *b = NULL; (b = next_by_id(m, b ? (int64_t) b->id : -1, false));) {
        bool due = b->due;
        b->due = false;
        bool known = can_be_asked(m, b);
        if (due && (may_be_asked(m, b) || (b->doubted && (known || b->blind)))) {
            *id = b->id;
            *psn = known        ? wire(b->una - 1)
                   : m->started ? wire(m->anchor_floor - 1)
                                : blind_psn(m, b->n_doubts % 2 == 0);
            return true;
        }
    }
    return false;
}

void
model_heard(struct model *m, uint32_t id)
{
    struct model_branch *b = find(m, id);

    if (b) {
        b->heard = true;
        b->blind = false;
        b->life = b->life || b->question;
        b->question = false;
        b->doubted = b->unanswered = false;
    }
}

void
model_doubt(struct model *m, uint32_t id, uint64_t now)
{
    struct model_branch *b = find(m, id);

    if (b && !b->lost) {
        b->doubted = true;
        b->unanswered = false;
        b->n_doubts = 0;
        b->doubted_at = now;
        m->doubt_at = now;
    }
}

bool
model_may_be_fresh(struct model *m, uint32_t id, psn_t psn)
{
    struct model_branch *b = find(m, id);
    return b && b->asked_fresh && wire(b->nonsense).v == psn.v;
}

static size_t
n_waiting(const struct model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        n += m->b[i].joining;
    }
    return n;
}

/* Ticks go on whether anything goes down or not. */
static bool
ticks_needed(const struct model *m)
{
    bool any = false;

    for (size_t i = 0; i < m->n; i++) {
        any |= m->b[i].idle_asked && !m->b[i].lost;
    }
    return any && (m->tick || n_waiting(m));
}

/* R17. */
int
model_branch_wait(struct model *m, uint32_t id, bool is_node, psn_t psn, uint64_t now)
{
    if (find(m, id)) {
        return EEXIST;
    }
    m->b[m->n++] = (struct model_branch){.id = id,
                                         .joining = true,
                                         .is_node = is_node,
                                         .added = now,
                                         .expects = psn,
                                         .nonsense = PSN_SPACE - 1};
    return 0;
}

void
model_position(struct model *m, uint32_t id, bool as_said, uint64_t now)
{
    struct model_branch *b = find(m, id);

    if (!b || !b->joining || b->is_node || b->lost) {
        return;
    }
    b->ready = as_said;
    if (!as_said) {
        lose(m, b, 0, LOSS_ELSEWHERE, 0x63, now);
    }
}

/* Was nothing more said upwards, in any life, than this one knows? */
static bool
is_proven(struct model *m)
{
    size_t n_proven = 0;

    for (size_t i = 0; i < m->n; i++) {
        n_proven += !m->b[i].joining && !m->b[i].pruned && m->b[i].proven;
    }
    if (m->lost_state && !m->proven) {
        m->proven = !n_counted(m) && m->params.started_before
                        ? m->params.root && m->last_down >= m->proven_by + 1000000
                        : n_proven == n_counted(m);
        return m->proven;
    }
    return m->started || !m->params.started_before;
}

/* R17: does somebody count, and is everybody lost who does? */
static bool
all_lost(const struct model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        if (!m->b[i].joining && !m->b[i].lost) {
            return false;
        }
    }
    return n_counted(m) > 0;
}

bool
model_may_admit(struct model *m, psn_t q)
{
    bool any = false;

    for (size_t i = 0; i < m->n; i++) {
        any |= m->b[i].ready;
    }
    return any && m->f_known && model_extend(q, m->h) >= m->h && !all_lost(m) && is_proven(m);
}

void
model_admit(struct model *m)
{
    m->admits = true;
}

static void
join(struct model *m, struct model_branch *b, int64_t una)
{
    b->joining = b->ready = false;
    b->first = b->una = una;
    b->nonsense = una + PSN_SPACE - 1 - (int64_t) b->expects.v;
    b->known = true;
    b->life = true;
    b->asked = b->heard = b->question = b->due = false;
    b->silent_ticks = b->unasked_ticks = 0;
    prune(m);
}

/* A node has said everything below x. */
static void
join_node(struct model *m, struct model_branch *b, int64_t x)
{
    if (b->joining) {
        join(m, b, m->f > x ? m->f : x);
    }
    if (!b->late && x >= b->first) {
        b->late = true;
        m->n_joined++;
    }
}

bool
model_takes(struct model *m, uint32_t id, psn_t q, uint64_t now)
{
    struct model_branch *b = find(m, id);

    (void) now;
    if (!b || b->is_node) {
        return true;
    }
    if (b->joining && b->ready && m->admits) {
        join(m, b, model_extend(q, m->h));
        b->late = true;
        m->n_joined++;
    }
    b->unbounded = b->unbounded || b->una - b->first > 1 << 20;
    return !b->joining && (!b->late || b->unbounded || !is_before(model_extend(q, m->h), b->first));
}

struct reverse_out
model_passed(struct model *m, uint64_t now)
{
    bool any = false;

    for (size_t i = 0; i < m->n; i++) {
        any |= m->b[i].joining;
    }
    if (!m->wants_answer || n_counted(m) || !any) {
        return silent;
    }
    int64_t next = model_extend(m->down, m->h) + 1;
    bool moved = m->f_known ? next <= m->h && next > m->f : next == m->h;

    if (!moved && !(m->f_known && m->ever_confirmed)) {
        return silent;
    }

    if (moved) {
        note_progress(m, next, now);
        m->f = next;
    }
    m->f_known = true;
    m->ever_confirmed = true;
    m->n_sent_acks++;
    return (struct reverse_out){true, 0x1f, wire(m->f - 1), m->msn, moved};
}

/* R15: fewer PSNs in 32 ticks than so many a second. */
static bool
is_few(const struct model *m, int64_t n)
{
    return (double) n < (double) m->min_rate * 32 * (double) m->tick / 1e6;
}

/* R15.  True: it is slow. */
static bool
look_at_pace(struct model *m, struct model_branch *b)
{
    int64_t min, n = 0;
    bool known = minimum(m, &min);
    bool asked = !is_forgotten(b);
    bool owed = !b->lost && b->known && b->known_at[0]
                && (b->una < m->asked_before || (b->waits_at[0] && b->una == b->una_at[0]));
    bool was_slow = b->slow;

    for (unsigned i = 32; i > 0; i--) {
        b->una_at[i] = b->una_at[i - 1];
        b->known_at[i] = b->known_at[i - 1];
        b->waits_at[i] = b->waits_at[i - 1];
    }
    b->una_at[0] = b->una;
    b->known_at[0] = b->known;
    b->waits_at[0] = b->waits;
    b->minimum_ticks = b->minimum_ticks << 1 | (known && b->known && b->una == min);
    if (!owed) {
        forget_pace(m, b);
    } else {
        b->owed_ticks = asked ? b->owed_ticks << 1 | 1 : 0;
    }
    if ((b->owed_ticks & UINT32_MAX) != UINT32_MAX || (was_slow && ++b->n_slow < 32)) {
        return b->slow;
    }
    n = b->una_at[0] - b->una_at[32];
    b->slow = is_few(m, n) && b->minimum_ticks & UINT32_MAX;
    m->n_paced += b->slow || was_slow;
    b->n_slow = 0;
    b->n_confirmed = (uint64_t) n;
    return b->slow;
}

/* Silent for 31 ticks, and at each of them there was a question among the last 17. */
static bool
is_silent(const struct model_branch *b)
{
    for (unsigned i = 0; i < 31; i++) {
        unsigned unasked = 0;
        while (unasked < 17 && b->unasked_ticks >> (i + unasked) & 1) {
            unasked++;
        }
        if (!(b->silent_ticks >> i & 1) || (unasked == 17 && !(b->question_ticks >> i & 1))) {
            return false;
        }
    }
    return true;
}

static void
end_of_tick(struct model *m, uint64_t now)
{
    bool more = false;

    m->repeated_ago++;
    for (struct model_branch *b = next_by_id(m, -1, false); b; b = next_by_id(m, b->id, false)) {
        bool lacks = lacks_something(m, b);
        bool quiet = lacks ? !b->life : b->question && !b->heard && !b->lost;
        if (!m->tick && !b->joining) {
            continue;
        }
        b->silent_ticks = b->silent_ticks << 1 | quiet;
        b->question_ticks = b->question_ticks << 1 | b->question;
        b->unasked_ticks = b->unasked_ticks << 1 | (quiet && lacks && !b->asked);
        b->life = b->asked = false;
        bool slow = look_at_pace(m, b);
        if (is_silent(b) || (slow && m->lose_slow)) {
            lose(m, b, wanted_by(m, b),
                 !is_silent(b) ? LOSS_SLOW
                 : lacks       ? LOSS_SILENT
                               : LOSS_UNANSWERED,
                 0x63, now);
        }
        b->question = b->question && may_be_asked(m, b);
        if (may_be_asked(m, b) && !b->heard) {
            ask(b);
        }
        b->heard = false;
        more = more || lacks_something(m, b);
    }
    m->asked_before = m->asked_up_to;
    m->next_tick =
        (m->tick && more) || ticks_needed(m) ? now + (m->tick ? m->tick : 62500) : UINT64_MAX;
}

/* Who is doubted is asked 8 times, 50 ms apart, and then lost. */
static void
ask_doubted(struct model *m, uint64_t now)
{
    bool any = false;

    if (now < m->doubt_at) {
        return;
    }
    for (struct model_branch *b = NULL; (b = next_by_id(m, b ? (int64_t) b->id : -1, false));) {
        any = any || b->doubted;
        bool unknown = lacks_something(m, b) && !b->known;
        if (b->doubted && b->n_doubts == 8 && unknown && m->tick) {
            continue;
        }
        if (b->doubted && b->n_doubts == 8 && (!lacks_something(m, b) || unknown)) {
            b->doubted = false;
            b->unanswered = true;
        } else if (b->doubted && b->n_doubts == 8) {
            lose(m, b, wanted_by(m, b), LOSS_UNANSWERED, 0x63, now);
        } else if (b->doubted && can_be_asked(m, b)) {
            b->n_doubts++;
            ask(b);
        } else if (b->doubted && can_be_asked_blindly(m, b, now)) {
            b->n_doubts++;
            b->blind = true;
            ask(b);
        }
    }
    m->doubt_at = any ? now + 50000 : m->doubt_at;
}

/* ACK(p): everything up to p is confirmed.  Returns true for a duplicate. */
static bool
take_ack(struct model_branch *b, int64_t p, uint32_t msn)
{
    if (b->known && (b->cond == REVERSE_FATAL || p < b->una)) {
        b->n_dups++;
        return true;
    }
    b->rose = b->rose || !b->known || p + 1 > b->una;
    note_una(b, p + 1);
    b->known = true;
    b->una = p + 1;
    b->waits = false;
    b->life = true;
    b->cond = REVERSE_NONE;
    b->code = 0;
    b->order = 0;
    b->msn = msn;
    b->n_acks++;
    return false;
}

/* NAK, RNR or fatal at e: e - 1 is confirmed. */
static void
take_nak(struct model *m, struct model_branch *b, int64_t e, enum reverse_cond cond, uint8_t code,
         uint32_t msn, uint64_t now)
{
    bool stale = b->known && (b->cond == REVERSE_FATAL || e < b->una);
    bool repeated = b->known && e == b->una && b->cond == cond && b->code == code;
    b->life = b->life || !b->known || e > b->una || (e == b->una && cond == REVERSE_RNR);
    bool trailing = b->known && e == b->una && b->cond == REVERSE_RNR && cond == REVERSE_NAK;
    bool shorter = b->known && e == b->una && b->cond == REVERSE_RNR && cond == REVERSE_RNR && code
                   && (!b->code || code < b->code);

    b->waits = (b->waits && e == b->una) || (b->waits && stale)
               || (cond == REVERSE_RNR && !(b->known && e < b->una));
    if (stale || repeated || trailing || shorter) {
        b->n_dups++;
        return;
    }
    b->rose = b->rose || !b->known || e > b->una;
    note_una(b, e);
    b->known = true;
    b->una = e;
    b->msn = msn;
    b->n_naks += cond == REVERSE_NAK;
    b->n_rnrs += cond == REVERSE_RNR;
    b->n_fatals += cond == REVERSE_FATAL;
    if (cond == REVERSE_FATAL) {
        lose(m, b, e, LOSS_REFUSED, code, now);
    } else {
        set(m, b, cond, code, now);
    }
}

struct reverse_out
model_response(struct model *m, uint32_t id, psn_t psn, uint8_t syndrome, uint32_t msn,
               uint64_t now, enum drop_reason *why)
{
    struct model_branch *b = find(m, id);
    int64_t x = model_extend(psn, m->h);
    bool dup = false;

    if (!b) {
        *why = DROP_unknown_branch;
        return silent;
    }
    if (!(syndrome < 0x40 || (syndrome >= 0x60 && syndrome <= 0x63))) {
        *why = DROP_resp_opcode;
        return silent;
    }
    bool was_asked = b->question;
    bool proven = now >= m->proven_by;
    bool blind = b->blind && !m->started && !b->lost;
    model_heard(m, id);
    for (int above = 0; blind && above < 2; above++) {
        /* A question that had what it expects is confirmed now. */
        uint32_t expects = psn_add(psn, syndrome < 0x20).v;
        psn_t asked = blind_psn(m, above);
        if (expects == asked.v || expects == psn_add(asked, 1).v) {
            *why = DROP_none;
            lose(m, b, b->una, LOSS_ELSEWHERE, 0x63, now);
            return after_event(m, false, now);
        }
    }
    if (b->pruned || (b->joining && (!b->is_node || syndrome >= 0x20))) {
        *why = DROP_none;
        b->n_dups++;
        return silent;
    }
    if (was_asked && syndrome < 0x20 && b->known && b->cond == REVERSE_NONE && x + 1 == b->una) {
        *why = DROP_none;
        b->n_dups++;
        b->proven = b->proven || proven;
        return silent;
    }
    if (m->started && x >= m->h && x < m->ahead_end && !b->joining && syndrome <= 0x60) {
        /* It had that before the node was started again, and all that is below. */
        x = m->h - 1;
        syndrome = 0x1f;
    }
    if (!m->started || x >= m->h
        || (!b->known && x < (b->joining ? m->h - (1 << 22) : m->anchor_floor))) {
        *why = DROP_psn_not_sent;
        return silent;
    }
    *why = DROP_none;
    if (b->joining && (now - b->added < 1000000 || !m->f_known || all_lost(m) || !is_proven(m))) {
        b->n_dups++;
        return silent;
    }
    if (b->joining) {
        b->n_acks++;
        b->msn = msn;
        join_node(m, b, x + 1);
        return after_event(m, false, now);
    }
    if (b->is_node && !b->late) {
        join_node(m, b, syndrome < 0x20 ? x + 1 : x);
    }
    b->proven = b->proven || proven;
    if (syndrome < 0x20) {
        dup = take_ack(b, x, msn);
    } else if (syndrome < 0x40) {
        take_nak(m, b, x, REVERSE_RNR, syndrome - 0x20, msn, now);
    } else if (syndrome == 0x60) {
        take_nak(m, b, x, REVERSE_NAK, 0, msn, now);
    } else {
        take_nak(m, b, x, REVERSE_FATAL, syndrome, msn, now);
    }
    return after_event(m, dup, now);
}

static uint64_t
send_deadline(const struct model *m)
{
    int64_t min;
    if (!minimum(m, &min)) {
        return UINT64_MAX;
    }
    if (unreported(m, min)) {
        return 0;
    }
    uint64_t when = held_deadline(m);
    when = m->dup_waiting && m->dup_not_before < when ? m->dup_not_before : when;
    return answer_due(m) < when ? answer_due(m) : when;
}

uint64_t
model_deadline(const struct model *m)
{
    uint64_t when = send_deadline(m);
    uint64_t tick = m->next_tick == UINT64_MAX && ticks_needed(m) ? 0 : m->next_tick;

    for (size_t i = 0; i < m->n; i++) {
        when = m->b[i].doubted && m->doubt_at < when ? m->doubt_at : when;
    }
    return when < tick ? when : tick;
}

struct reverse_out
model_timer(struct model *m, uint64_t now)
{
    int64_t min;
    if (m->next_tick == UINT64_MAX && ticks_needed(m)) {
        m->next_tick = now + (m->tick ? m->tick : 62500);
    }
    if (now >= m->next_tick) {
        end_of_tick(m, now);
    }
    ask_doubted(m, now);
    struct reverse_out out = after_event(m, false, now);
    if (out.send || !minimum(m, &min)) {
        return out;
    }
    if (m->dup_waiting && now >= m->dup_not_before) {
        return resend_ack(m, min, now);
    }
    if (now < answer_due(m)) {
        return silent;
    }
    m->waiting = false;
    if (precedence(speaker(m, min)) > 1) {
        return silent;
    }
    m->n_presumed++;
    m->n_sent_presumed++;
    if (!m->nak_said) {
        return send_nak(m, min, 0x60, now);
    }
    await_answer(m, now + 10000);
    return send_nak(m, min, 0x21, now);
}

static size_t
n_lost(const struct model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        n += m->b[i].lost != LOSS_NONE;
    }
    return n;
}

void
model_get_info(const struct model *m, struct reverse_info *info)
{
    int64_t min;
    bool known = minimum(m, &min);

    *info = (struct reverse_info){
        .started = m->started,
        .anchored = known,
        .h = wire(m->h),
        .m = wire(known ? min : m->f),
        .f = wire(m->f),
        .n_branches = m->n,
        .n_waiting = n_waiting(m),
        .n_joined = m->n_joined,
        .n_lost = n_lost(m),
        .n_paced = m->n_paced,
        .n_sent_acks = m->n_sent_acks,
        .n_sent_naks = m->n_sent_naks,
        .n_sent_rnrs = m->n_sent_rnrs,
        .n_sent_fatals = m->n_sent_fatals,
        .n_sent_dups = m->n_sent_dups,
        .n_sent_presumed = m->n_sent_presumed,
    };
}

bool
model_get_branch(const struct model *m, uint32_t id, struct reverse_branch_info *info)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct model_branch *b = &m->b[i];
        if (b->id == id) {
            *info = (struct reverse_branch_info){
                .id = id,
                .anchored = b->known,
                .waits = b->joining,
                .late = b->late,
                .first = wire(b->first),
                .lost = b->lost,
                .doubted = b->doubted,
                .unanswered = b->unanswered,
                .pruned = b->pruned,
                .slow = b->slow,
                .n_confirmed = b->slow ? b->n_confirmed : 0,
                .una = wire(b->una),
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
            return true;
        }
    }
    return false;
}
