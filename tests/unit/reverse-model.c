/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse-path rule of docs/draft-notes.md, transcribed clause by clause.
 *
 * Nothing here is clever on purpose.  Every question ("what is the minimum?",
 * "which condition takes precedence?") is answered by looking at all branches.
 */
#include "reverse-model.h"

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
    };
    m->h = m->f = m->start;
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

static bool
minimum(const struct model *m, int64_t *min)
{
    *min = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!m->b[i].known) {
            return false;
        }
        if (!i || m->b[i].una < *min) {
            *min = m->b[i].una;
        }
    }
    return m->n > 0;
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
        if (b->una != min) {
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
        if (b->una == min && b->cond != REVERSE_NONE && !b->reported
            && precedence(b) == precedence(s)) {
            return true;
        }
    }
    return false;
}

static struct reverse_out
send_ack(struct model *m, int64_t min)
{
    m->f = min;
    m->f_known = true;
    m->dup_waiting = false;
    m->n_sent_acks++;
    return (struct reverse_out){true, 0x1f, wire(min - 1), speaker(m, min)->msn};
}

/* A NAK speaks for all conditions at the minimum; and it takes the source back,
 * which serves all that are held above. */
static struct reverse_out
send_nak(struct model *m, int64_t min, uint8_t syndrome)
{
    for (size_t i = 0; i < m->n; i++) {
        m->b[i].reported |= m->b[i].una == min;
        m->b[i].rewound = true;
    }
    m->f = min;
    m->f_known = true;
    m->dup_waiting = false;
    *(syndrome < 0x40    ? &m->n_sent_rnrs
      : syndrome == 0x60 ? &m->n_sent_naks
                         : &m->n_sent_fatals) += 1;
    return (struct reverse_out){true, syndrome, wire(min), speaker(m, min)->msn};
}

static struct reverse_out
resend_ack(struct model *m, int64_t min, uint64_t now)
{
    m->dup_not_before = now + m->params.dup_ack_usec;
    m->n_sent_dups++;
    return send_ack(m, min);
}

static struct reverse_out
after_event(struct model *m, bool dup, uint64_t now)
{
    int64_t min;
    if (!minimum(m, &min)) {
        return silent;
    }
    if (!m->f_known && wire(min).v == m->params.start_psn.v) {
        m->f = min;
        m->f_known = true;
    }
    bool progress = !m->f_known || min > m->f;
    m->ever_confirmed |= progress;

    const struct model_branch *s = speaker(m, min);
    if (unreported(m, min) || (dup && s->cond == REVERSE_FATAL)) {
        return send_nak(m, min,
                        s->cond == REVERSE_NAK   ? 0x60
                        : s->cond == REVERSE_RNR ? (uint8_t) (0x20 + s->code)
                                                 : s->code);
    }
    if (progress) {
        return send_ack(m, min);
    }
    if (dup && m->ever_confirmed) {
        if (now >= m->dup_not_before) {
            return resend_ack(m, min, now);
        }
        m->dup_waiting = true;
    }
    return silent;
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
    m->b[m->n++] = (struct model_branch){.id = id, .known = true, .una = m->h};
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
    return after_event(m, false, now);
}

bool
model_jump_suspicious(const struct model *m, psn_t q)
{
    return m->started ? model_extend(q, m->h) + 1 > m->h + 4096 : q.v != m->params.start_psn.v;
}

struct reverse_out
model_down(struct model *m, psn_t q, bool ack_req)
{
    int64_t min;

    if (!m->n) {
        return silent;
    }
    if (!m->started) {
        m->started = true;
        if (q.v != m->params.start_psn.v) {
            m->h = m->start - m->start % PSN_SPACE + (int64_t) q.v;
            m->f_known = false;
            m->anchor_floor = m->h - (INT64_C(1) << 22);
            for (size_t i = 0; i < m->n; i++) {
                m->b[i].known = false;
            }
        }
    }
    bool known = minimum(m, &min);
    int64_t h = model_extend(q, m->h) + 1;
    if (h > m->h && h < (known ? min : m->anchor_floor) + HALF_SPACE) {
        m->h = h;
    }
    if (ack_req && known && speaker(m, min)->cond == REVERSE_FATAL) {
        return send_nak(m, min, speaker(m, min)->code);
    }
    return silent;
}

void
model_copied(struct model *m, uint32_t id, psn_t q)
{
    struct model_branch *b = find(m, id);
    if (b && b->known && wire(b->una).v == q.v && b->cond != REVERSE_FATAL) {
        b->cond = REVERSE_NONE;
        b->code = 0;
        b->order = 0;
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

/* ACK(p): everything up to p is confirmed.  Returns true for a duplicate. */
static bool
take_ack(struct model_branch *b, int64_t p, uint32_t msn)
{
    if (b->known && (b->cond == REVERSE_FATAL || p < b->una)) {
        b->n_dups++;
        return true;
    }
    b->known = true;
    b->una = p + 1;
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
    bool trailing = b->known && e == b->una && b->cond == REVERSE_RNR && cond == REVERSE_NAK;

    if (stale || repeated || trailing) {
        b->n_dups++;
        return;
    }
    b->known = true;
    b->una = e;
    b->msn = msn;
    b->n_naks += cond == REVERSE_NAK;
    b->n_rnrs += cond == REVERSE_RNR;
    b->n_fatals += cond == REVERSE_FATAL;
    set(m, b, cond, code, now);
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
    if (!m->started || x >= m->h || (!b->known && x < m->anchor_floor)) {
        *why = DROP_psn_not_sent;
        return silent;
    }
    *why = DROP_none;
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

static bool
is_held(const struct model_branch *b)
{
    return b->cond == REVERSE_NAK && !b->rewound;
}

static uint64_t
held_deadline(const struct model *m)
{
    uint64_t deadline = UINT64_MAX;
    for (size_t i = 0; i < m->n; i++) {
        if (is_held(&m->b[i]) && m->b[i].when + m->params.hold_usec < deadline) {
            deadline = m->b[i].when + m->params.hold_usec;
        }
    }
    return deadline;
}

uint64_t
model_deadline(const struct model *m)
{
    int64_t min;
    if (!minimum(m, &min)) {
        return UINT64_MAX;
    }
    if (unreported(m, min)) {
        return 0;
    }
    uint64_t held = held_deadline(m);
    return m->dup_waiting && m->dup_not_before < held ? m->dup_not_before : held;
}

struct reverse_out
model_timer(struct model *m, uint64_t now)
{
    int64_t min;
    struct reverse_out out = after_event(m, false, now);
    if (out.send || !minimum(m, &min)) {
        return out;
    }
    if (now >= held_deadline(m)) {
        for (size_t i = 0; i < m->n; i++) {
            m->b[i].rewound = true;
        }
        if (speaker(m, min)->cond == REVERSE_NONE) {
            return send_nak(m, min, 0x60);
        }
    }
    if (m->dup_waiting && now >= m->dup_not_before) {
        return resend_ack(m, min, now);
    }
    return silent;
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
        .n_sent_acks = m->n_sent_acks,
        .n_sent_naks = m->n_sent_naks,
        .n_sent_rnrs = m->n_sent_rnrs,
        .n_sent_fatals = m->n_sent_fatals,
        .n_sent_dups = m->n_sent_dups,
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
                .una = wire(b->una),
                .cond = b->cond,
                .code = b->code,
                .msn = b->msn,
                .n_acks = b->n_acks,
                .n_dups = b->n_dups,
                .n_naks = b->n_naks,
                .n_rnrs = b->n_rnrs,
                .n_fatals = b->n_fatals,
            };
            return true;
        }
    }
    return false;
}
