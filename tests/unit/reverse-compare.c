/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/reverse.c on an event string: against the brute-force model, and against
 * a ledger that knows only what each branch can have confirmed at most, when
 * it was heard of last, and since when it has owed an answer.
 */
#include "tests/unit/reverse-compare.h"

#include <check.h>
#include <errno.h>

#include "tests/unit/reverse-model.h"

struct ledger_entry {
    uint32_t id;
    bool spoke;        /* or was known from the start. */
    int64_t confirmed; /* everything below. */
    uint64_t since;    /* it lacks something, and gave no sign of life. */
    uint64_t asked;    /* last time. */
    bool refused;
    bool waits;              /* it has asked for time where it stands. */
    bool owes;               /* so it owes, or has not confirmed all that went down with AckReq, */
    uint64_t owes_since;     /* since then. */
    bool lost, pruned, slow; /* as the machine says. */
    bool joining, is_node;   /* it does not count yet. */
    bool has_joined;         /* of nodes. */
    bool is_asked, question; /* while it lacks nothing; and was, and was not heard since. */
    bool doubted;            /* was it, ever? */
    unsigned n_questions;    /* since it was heard. */
    bool blind;              /* was it asked, ever, while nothing was known of what it has? */
};

struct run {
    const struct reverse_string *string;
    struct reverse *r;
    struct model m;
    uint64_t now;
    unsigned int event;
    bool without_state;
    struct reverse_policy policy;
    uint64_t tick;
    int64_t h; /* the ledger's. */
    int64_t first_down;
    int64_t asked;   /* 1 + the highest PSN that went down with AckReq. */
    int64_t sent_up; /* una of the last response up. */
    size_t n;
    struct ledger_entry ledger[MODEL_MAX_BRANCHES];
    uint32_t next_id;
    bool is_root;
    uint64_t shared_copy; /* settings when a copy last went out to those that share. */
};

static uint32_t
rnd(struct run *run, uint32_t limit)
{
    return run->string->choose(run->string->aux, limit);
}

/* libcheck writes to a file for every ck_assert(), even one that holds: too slow
 * for millions. */
#define REQUIRE(RUN, COND)                                                               \
    do {                                                                                 \
        if (!(COND)) {                                                                   \
            ck_abort_msg("%s, event %u: %s", (RUN)->string->title, (RUN)->event, #COND); \
        }                                                                                \
    } while (0)

/* Some share what copies they get. */
static bool
shares(uint32_t id)
{
    return id % 4 == 0;
}

static void
compare(struct run *run)
{
    struct reverse_info a, b;
    reverse_get_info(run->r, &a);
    model_get_info(&run->m, &b);
    REQUIRE(run, a.started == b.started && a.anchored == b.anchored);
    REQUIRE(run, a.h.v == b.h.v);
    REQUIRE(run, a.m.v == b.m.v);
    REQUIRE(run, a.f.v == b.f.v);
    REQUIRE(run, a.n_branches == b.n_branches && a.n_lost == b.n_lost);
    REQUIRE(run, a.n_sent_acks == b.n_sent_acks && a.n_sent_naks == b.n_sent_naks);
    REQUIRE(run, a.n_sent_rnrs == b.n_sent_rnrs && a.n_sent_fatals == b.n_sent_fatals);
    REQUIRE(run, a.n_sent_dups == b.n_sent_dups && a.n_sent_presumed == b.n_sent_presumed);
    REQUIRE(run, a.n_paced == b.n_paced);
    REQUIRE(run, a.n_waiting == b.n_waiting && a.n_joined == b.n_joined);
    REQUIRE(run, reverse_deadline(run->r) == model_deadline(&run->m));

    bool asks_shared = false;
    for (size_t i = 0; i < run->m.n; i++) {
        struct reverse_branch_info x, y;
        REQUIRE(run, reverse_get_branch(run->r, run->m.b[i].id, &x));
        model_get_branch(&run->m, run->m.b[i].id, &y);
        REQUIRE(run, x.anchored == y.anchored);
        REQUIRE(run, x.lost == y.lost && x.pruned == y.pruned);
        REQUIRE(run, x.doubted == y.doubted && x.unanswered == y.unanswered);
        REQUIRE(run, x.slow == y.slow && x.n_confirmed == y.n_confirmed);
        REQUIRE(run, x.pruned == reverse_is_pruned(run->r, x.id));
        REQUIRE(run, x.waits == y.waits && x.late == y.late && (!x.late || x.first.v == y.first.v));
        for (uint32_t k = 0; k < 3; k++) {
            psn_t psn = k ? psn_add(x.una, (int32_t) k - 2) : psn_make(PSN_MASK);
            REQUIRE(run, reverse_may_be_fresh(run->r, x.id, psn)
                             == model_may_be_fresh(&run->m, x.id, psn));
        }
        REQUIRE(run, !(x.anchored || x.pruned) || x.una.v == y.una.v);
        REQUIRE(run, x.cond == y.cond && x.code == y.code && x.msn == y.msn);
        REQUIRE(run, x.n_acks == y.n_acks && x.n_dups == y.n_dups && x.n_naks == y.n_naks);
        REQUIRE(run, x.n_rnrs == y.n_rnrs && x.n_fatals == y.n_fatals);
        REQUIRE(run, x.n_repeats == y.n_repeats && x.n_useless == y.n_useless);
        REQUIRE(run, x.n_filtered == y.n_filtered);
        REQUIRE(run, reverse_asks(run->r, x.id) == model_asks(&run->m, x.id));
        asks_shared |= shares(x.id) && model_asks(&run->m, x.id);
    }
    REQUIRE(run, reverse_asks_shared(run->r) == asks_shared);
}

/* Since when do branches owe answers? */
static void
note_debts(struct run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        struct ledger_entry *e = &run->ledger[i];
        bool owes = e->spoke && (e->confirmed < run->asked || e->waits);

        e->owes_since = owes && !e->owes ? run->now : e->owes_since;
        e->owes = owes;
    }
}

/* Who is slow now has owed an answer for long enough. */
static void
note_slow(const struct run *run, struct ledger_entry *e, const struct reverse_branch_info *b)
{
    bool slow = b->slow || (b->lost == LOSS_SLOW && !e->lost);

    REQUIRE(run, !slow || e->slow || (e->owes && run->now - e->owes_since >= 32 * run->tick));
    REQUIRE(run, !slow || run->policy.min_rate);
    REQUIRE(run, !b->slow || !b->lost);
    REQUIRE(run, b->lost != LOSS_SLOW || e->lost || run->policy.lose_slow);
    e->slow = b->slow;
}

/* Who is lost now has refused or was silent for long enough, and one at least counts. */
static void
note_losses(struct run *run)
{
    size_t n_counted = 0, n_pruned = 0;

    for (size_t i = 0; i < run->n; i++) {
        struct ledger_entry *e = &run->ledger[i];
        struct reverse_branch_info b;

        reverse_get_branch(run->r, e->id, &b);
        int64_t una = model_extend(b.una, run->h);
        note_slow(run, e, &b);
        if (b.lost && !e->lost) {
            REQUIRE(run, b.lost != LOSS_REFUSED || e->refused);
            bool silent = b.lost == LOSS_SILENT || b.lost == LOSS_UNANSWERED;
            bool in_vain = e->doubted && e->n_questions >= 8;
            bool blind = e->blind && !e->joining && b.lost != LOSS_SILENT;
            in_vain |= blind;
            REQUIRE(run, b.lost != LOSS_UNANSWERED || e->question || in_vain);
            bool owes = e->question || (!e->joining && (!e->spoke || e->confirmed < run->h));
            REQUIRE(run, !silent || owes);
            REQUIRE(run, b.lost != LOSS_ELSEWHERE || e->joining || blind);
            REQUIRE(run, !silent || in_vain || run->now - e->since >= 30 * run->tick);
            REQUIRE(run, !silent || blind || e->asked >= e->since);
            REQUIRE(run, e->joining || una < run->h || ((e->question || blind) && una == run->h));
            bool presumed = b.lost != LOSS_REFUSED && run->without_state;
            if (presumed && (!e->spoke || una > e->confirmed)) {
                e->confirmed = una; /* the source repeats from there. */
            }
            REQUIRE(run, e->joining || una <= e->confirmed);
            e->spoke = true;
        }
        REQUIRE(run, b.lost || !e->lost);
        REQUIRE(run, !b.pruned || (b.lost && (run->policy.prune || e->pruned)));
        if (e->pruned && !b.pruned && run->sent_up > e->confirmed) {
            e->confirmed = run->sent_up; /* it is the last one, and stands for all. */
        }
        e->lost = b.lost;
        e->pruned = b.pruned;
        n_counted += !b.pruned && !e->joining;
        n_pruned += b.pruned;
    }
    REQUIRE(run, !n_pruned || n_counted);
}

/* The machine's output against the model's and against the ledger. */
static void
check_output(struct run *run, struct reverse_out a, struct reverse_out b)
{
    note_losses(run);
    REQUIRE(run, a.send == b.send);
    if (!a.send) {
        return;
    }
    REQUIRE(run, a.syndrome == b.syndrome);
    REQUIRE(run, a.psn.v == b.psn.v);
    REQUIRE(run, a.msn == b.msn);
    REQUIRE(run, a.moved == b.moved);

    int64_t psn = model_extend(a.psn, run->h);
    int64_t una = psn + (a.syndrome == AETH_ACK_UNLIMITED);
    REQUIRE(run, run->n > 0);
    REQUIRE(run, psn < run->h);
    for (size_t i = 0; i < run->n; i++) {
        bool counts = !run->ledger[i].pruned && !run->ledger[i].joining;

        REQUIRE(run, !counts || run->ledger[i].spoke);
        REQUIRE(run, !counts || una <= run->ledger[i].confirmed);
    }
    REQUIRE(run, run->without_state || psn >= run->m.start);
    REQUIRE(run, una >= run->sent_up);
    run->sent_up = una;
}

static uint32_t
new_id(struct run *run)
{
    return run->next_id++ * 0x9e3779b1u;
}

static void
add_both(struct run *run, uint32_t id)
{
    struct reverse_info i;
    reverse_get_info(run->r, &i);
    int error = reverse_branch_add(run->r, id, run->now);
    REQUIRE(run, error == model_branch_add(&run->m, id));
    REQUIRE(run, i.quiesced == (error != EBUSY) || error == EEXIST);
    if (!error) {
        run->ledger[run->n++] = (struct ledger_entry){.id = id, .spoke = true, .confirmed = run->h};
        reverse_share(run->r, id, shares(id));
        note_losses(run);
    }
}

/* Something was heard of the branch. */
static void
note_heard(struct run *run, struct ledger_entry *e)
{
    /* If it lacks something by now the copies of that ask it, and the question may be void. */
    bool counts = e->question && (e->joining || e->confirmed >= run->h);

    e->since = counts ? run->now : e->since;
    e->question = false;
    e->n_questions = 0;
}

/* What is to be asked now; some receivers that join answer at once. */
static void
ask_both(struct run *run)
{
    uint32_t id, model_id;
    psn_t psn, model_psn;

    while (reverse_next_question(run->r, &id, &psn)) {
        REQUIRE(run, model_next_question(&run->m, &model_id, &model_psn) && id == model_id);
        for (size_t i = 0; i < run->n; i++) {
            struct ledger_entry *e = &run->ledger[i];

            if (e->id == id) {
                REQUIRE(run, e->is_asked && !e->lost);
                /* It has that PSN, and no other may be executed. */
                bool known = e->spoke && (run->m.started || !run->m.params.started_before);
                REQUIRE(run, e->joining || !known || model_extend(psn, run->h) == e->confirmed - 1);
                REQUIRE(run, e->joining || known || e->doubted);
                e->blind |= !e->joining && !known;
                REQUIRE(run, e->joining || psn_eq(psn, model_psn));
                bool lacks = !e->joining && e->confirmed < run->h;
                e->since = e->question || lacks ? e->since : run->now;
                e->question = true;
                e->n_questions++;
                e->asked = run->now;
            }
        }
    }
    REQUIRE(run, !model_next_question(&run->m, &model_id, &model_psn));
}

/* It says where its queue pair is, or just something. */
static void
event_heard(struct run *run)
{
    struct ledger_entry *e = run->n ? &run->ledger[rnd(run, (uint32_t) run->n)] : NULL;
    bool as_said = rnd(run, 16);

    if (!e) {
        return;
    }
    if (!rnd(run, 3)) {
        reverse_doubt(run->r, e->id, run->now);
        model_doubt(&run->m, e->id, run->now);
        e->doubted = true;
        return;
    }
    reverse_heard(run->r, e->id);
    model_heard(&run->m, e->id);
    note_heard(run, e);
    if (rnd(run, 2)) {
        reverse_position(run->r, e->id, as_said, run->now);
        model_position(&run->m, e->id, as_said, run->now);
        note_losses(run);
    }
}

static void
wait_both(struct run *run, uint32_t id)
{
    bool is_node = shares(id) || !rnd(run, 3);
    psn_t psn = psn_make(rnd(run, 2) ? 0u - rnd(run, 20) : rnd(run, PSN_MASK));
    int error = reverse_branch_wait(run->r, id, is_node, psn, run->now);

    REQUIRE(run, error == model_branch_wait(&run->m, id, is_node, psn, run->now));
    if (!error) {
        run->ledger[run->n++] =
            (struct ledger_entry){.id = id, .joining = true, .is_node = is_node, .since = run->now};
        reverse_share(run->r, id, shares(id));
        run->m.b[run->m.n - 1].last_copy = shares(id) ? run->shared_copy : 0;
    }
}

/* Receivers may be asked. */
static void
ask_when_idle_both(struct run *run, bool may)
{
    for (size_t i = 0; i < run->n; i++) {
        struct ledger_entry *e = &run->ledger[i];

        if (!e->is_node && may != e->is_asked) {
            reverse_ask_when_idle(run->r, e->id, may);
            model_ask_when_idle(&run->m, e->id, may);
            e->is_asked = may;
        }
    }
    ask_both(run);
}

static void
event_add(struct run *run)
{
    if (run->n < MODEL_MAX_BRANCHES) {
        bool again = run->n && !rnd(run, 8);
        uint32_t id = again ? run->ledger[rnd(run, (uint32_t) run->n)].id : new_id(run);

        (rnd(run, 2) ? add_both : wait_both)(run, id);
        ask_when_idle_both(run, rnd(run, 4));
    }
}

static void
event_remove(struct run *run)
{
    if (!run->n) {
        return;
    }
    size_t i = rnd(run, (uint32_t) run->n);
    uint32_t id = run->ledger[i].id;
    run->ledger[i] = run->ledger[--run->n];
    struct reverse_out out = reverse_branches_remove(run->r, &id, 1, run->now);
    check_output(run, out, model_branch_remove(&run->m, id, run->now));
}

/* Mostly what a source does: the next PSN, or from an earlier one on again. */
static int64_t
choose_psn_down(struct run *run)
{
    struct reverse_info i;
    reverse_get_info(run->r, &i);
    int64_t m = model_extend(i.m, run->h);

    if (!i.started) {
        return run->without_state ? run->h + (int64_t) rnd(run, PSN_MASK) : run->h;
    }
    switch (rnd(run, 16)) {
    case 0: return run->h + (int64_t) rnd(run, PSN_MASK + 1);
    case 1: return run->h + 4090 + (int64_t) rnd(run, 10);
    case 2: return m + (1 << 23) - 4 + (int64_t) rnd(run, 8);
    case 3:
    case 4:
    case 5:
    case 6: return m + (int64_t) rnd(run, 4);
    default: return run->h + (int64_t) rnd(run, 3) / 2;
    }
}

/* What the ledger knows when something goes down for the first time. */
static void
note_start(struct run *run, psn_t q)
{
    bool fresh = !run->m.params.started_before && psn_eq(q, run->m.params.start_psn);

    run->without_state = !fresh;
    if (!fresh) {
        run->h = run->asked = run->h - run->h % (PSN_MASK + 1) + (int64_t) q.v;
        run->first_down = run->h;
        run->sent_up = run->h - (1 << 22);
    }
    for (size_t i = 0; i < run->n; i++) {
        struct ledger_entry *e = &run->ledger[i];
        bool may_be_new = psn_cmp(q, run->m.params.start_psn) >= 0;

        /* Who was lost before that has got nothing. */
        e->spoke = fresh || e->lost;
        e->confirmed =
            e->lost && may_be_new ? model_extend(run->m.params.start_psn, run->h) : run->sent_up;
        e->since = run->now;
    }
}

static void
note_h(struct run *run, int64_t h)
{
    for (size_t i = 0; i < run->n; i++) {
        struct ledger_entry *e = &run->ledger[i];

        if (e->confirmed == run->h && !e->question) {
            e->since = run->now;
        }
        e->question &= e->joining; /* soon it is a packet that it has not answered. */
    }
    run->h = h;
}

/* Is there to be no copy of PSN q for this branch?  Only if it is known to have it. */
static bool
filtered_by_both(struct run *run, const struct ledger_entry *e, psn_t q)
{
    bool filtered = reverse_filters(run->r, e->id, q);

    REQUIRE(run, filtered == model_filters(&run->m, e->id, q));
    REQUIRE(run, !filtered || (run->policy.filter && e->spoke));
    /* What is too far ahead counts as old, and does not raise H. */
    bool sent = psn_cmp(q, psn_make((uint32_t) run->h)) < 0;
    REQUIRE(run, !filtered || !sent || psn_cmp(q, psn_make((uint32_t) e->confirmed)) < 0);
    return filtered;
}

/* Does nobody count yet, or is one left who counts and is not lost? */
static bool
others_are_left(const struct run *run)
{
    bool any = false;

    for (size_t i = 0; i < run->n; i++) {
        const struct ledger_entry *e = &run->ledger[i];

        if (!e->joining && !e->lost) {
            return true;
        }
        any |= !e->joining;
    }
    return !any;
}

/* May there be a copy of PSN q for this branch?  That may be what it joins by. */
static bool
taken_by_both(struct run *run, struct ledger_entry *e, psn_t q)
{
    bool takes = reverse_takes(run->r, e->id, q, run->now);
    struct reverse_branch_info b;

    REQUIRE(run, takes == model_takes(&run->m, e->id, q, run->now));
    reverse_get_branch(run->r, e->id, &b);
    if (e->joining && !b.waits) {
        /* Whoever joins has it all from q on, and nothing behind q has gone down. */
        REQUIRE(run, !e->is_node && takes && model_extend(q, run->h) + 1 == run->h);
        REQUIRE(run, psn_eq(b.first, q) && psn_eq(b.una, q));
        REQUIRE(run, others_are_left(run));
        e->joining = false;
        e->spoke = true;
        e->question = false;
        e->confirmed = run->h - 1;
        e->since = run->now;
        note_losses(run);
    }
    REQUIRE(run, takes == (!e->joining || e->is_node)
                     || (b.late && !e->is_node && psn_cmp(q, b.first) < 0));
    return takes;
}

/* Those that share get all copies, or none. */
static void
copy_shared_both(struct run *run, psn_t q, bool all)
{
    bool sent = all || (q.v + run->event) % 16;

    if (reverse_filters_all(run->r, q)) {
        for (size_t i = 0; i < run->n; i++) {
            if (shares(run->ledger[i].id)) {
                model_filters(&run->m, run->ledger[i].id, q);
            }
        }
        reverse_filtered_shared(run->r, q);
        return;
    }
    reverse_copied_shared(run->r, q, sent);
    run->shared_copy = sent ? run->m.n_settings : run->shared_copy;
    for (size_t i = 0; i < run->n; i++) {
        if (shares(run->ledger[i].id)) {
            model_copied(&run->m, run->ledger[i].id, q, sent);
            run->ledger[i].asked = run->now;
        }
    }
}

/* Copies for most, or for all. */
static void
copy_both(struct run *run, psn_t q, bool all)
{
    copy_shared_both(run, q, all);
    for (size_t i = 0; i < run->n; i++) {
        struct ledger_entry *e = &run->ledger[i];

        if (!shares(e->id) && (all || rnd(run, 5)) && taken_by_both(run, e, q)
            && !filtered_by_both(run, e, q)) {
            bool sent = rnd(run, 16);
            reverse_copied(run->r, e->id, q, sent);
            model_copied(&run->m, e->id, q, sent);
            e->asked = run->now;
        }
    }
}

static void
down_both(struct run *run, psn_t q, bool ack_req)
{
    struct reverse_info before, after;

    reverse_get_info(run->r, &before);
    struct reverse_out out = reverse_down(run->r, q, ack_req, run->now);
    reverse_get_info(run->r, &after);
    if (!before.started && after.started) {
        note_start(run, q);
    }
    int64_t h = run->h;
    if (!psn_eq(before.h, after.h) || (!before.started && after.started)) {
        REQUIRE(run, psn_eq(after.h, psn_add(q, 1)));
        REQUIRE(run, model_extend(after.h, run->h) > run->h);
        note_h(run, model_extend(after.h, run->h));
    }
    int64_t next = model_extend(q, run->h) + 1;
    if (run->n && ack_req && next <= run->h && next > run->asked && next <= h + 257) {
        run->asked = next;
    }
    note_debts(run);
    check_output(run, out, model_down(&run->m, q, ack_req, run->now));
}

static void
event_down(struct run *run)
{
    psn_t q = psn_make((uint32_t) choose_psn_down(run));
    bool ack_req = !rnd(run, 4);

    bool suspicious = reverse_jump_suspicious(run->r, q);
    REQUIRE(run, suspicious == model_jump_suspicious(&run->m, q));
    if (suspicious && run->m.started && rnd(run, 8)) {
        return; /* The caller found its ICRC wrong. */
    }
    bool starts = !rnd(run, 3) && reverse_may_admit(run->r, q);
    REQUIRE(run, reverse_may_admit(run->r, q) == model_may_admit(&run->m, q));
    int64_t h = run->h;
    down_both(run, q, ack_req);
    if (starts && run->h > h) {
        reverse_admit(run->r);
        model_admit(&run->m);
    }
    copy_both(run, q, false);
    if (!run->is_root) {
        struct reverse_out out = reverse_passed(run->r, run->now);
        check_output(run, out, model_passed(&run->m, run->now));
    }
}

static int64_t
choose_psn_up(struct run *run, uint32_t id)
{
    struct reverse_branch_info i;
    int64_t una = run->h;
    if (reverse_get_branch(run->r, id, &i) && i.anchored) {
        una = model_extend(i.una, run->h);
    }
    switch (rnd(run, 16)) {
    case 0: return run->h + (int64_t) rnd(run, PSN_MASK + 1);
    case 1: return run->h + (rnd(run, 2) ? 65533 : -(1 << 22) - 3) + (int64_t) rnd(run, 6);
    case 2:
    case 3:
    case 4: return run->h - 4 + (int64_t) rnd(run, 5);
    default: return una - 2 + (int64_t) rnd(run, 5);
    }
}

static uint8_t
choose_syndrome(struct run *run)
{
    static const uint8_t rnr[] = {0x20, 0x21, 0x2c, 0x3f};
    uint32_t x = rnd(run, 64);
    return x < 36   ? AETH_ACK_UNLIMITED
           : x < 51 ? AETH_NAK_PSN_SEQ
           : x < 61 ? rnr[rnd(run, 4)]
           : x < 62 ? (uint8_t) (AETH_NAK_INVALID_REQ + rnd(run, 3))
                    : (uint8_t) rnd(run, 256);
}

static void
respond_both(struct run *run, uint32_t id, psn_t psn, uint8_t syndrome)
{
    enum drop_reason why_a, why_b;
    uint32_t msn = rnd(run, PSN_MASK + 1);
    struct reverse_out a = reverse_response(run->r, id, psn, syndrome, msn, run->now, &why_a);
    struct reverse_out b = model_response(&run->m, id, psn, syndrome, msn, run->now, &why_b);

    REQUIRE(run, why_a == why_b);
    for (size_t i = 0; why_a != DROP_unknown_branch && why_a != DROP_resp_opcode && i < run->n;
         i++) {
        if (run->ledger[i].id == id) {
            note_heard(run, &run->ledger[i]);
        }
    }
    for (size_t i = 0; why_a == DROP_none && i < run->n; i++) {
        struct ledger_entry *e = &run->ledger[i];
        int64_t x = model_extend(psn, run->h);
        struct reverse_branch_info branch;

        if (x >= run->h && e->id == id && !e->pruned && !e->joining) {
            /* From before a start without state, since it counts (R8). */
            REQUIRE(run, run->without_state && x < run->first_down + 65536
                             && syndrome <= AETH_NAK_PSN_SEQ);
            x = run->h - 1;
            syndrome = AETH_ACK_UNLIMITED;
        }

        if (e->id == id && e->is_node && reverse_get_branch(run->r, id, &branch) && branch.late
            && !e->has_joined) {
            /* It is at least where the source may have been told that all are. */
            REQUIRE(run, x + (aeth_class(syndrome) == AETH_CLASS_ACK) >= run->sent_up);
            e->has_joined = true;
        }
        if (e->id == id && e->joining) {
            reverse_get_branch(run->r, id, &branch);
            e->joining = branch.waits;
            if (!branch.waits) {
                /* A node, of which nothing was needed below what it has said, or has gone up. */
                int64_t first = model_extend(branch.first, run->h);
                e->joining = true;
                REQUIRE(run, others_are_left(run));
                e->joining = false;
                REQUIRE(run, e->is_node && aeth_class(syndrome) == AETH_CLASS_ACK);
                /* That is the start PSN if nothing of the epoch may be confirmed (R8). */
                bool is_f = first == run->sent_up || psn_eq(branch.first, run->m.params.start_psn);
                REQUIRE(run, first == x + 1 || (first > x + 1 && is_f));
                e->spoke = true;
                e->confirmed = first;
                e->since = run->now;
            }
        } else if (e->id == id && !e->pruned) {
            REQUIRE(run, x < run->h);
            int64_t confirmed = x + (aeth_class(syndrome) == AETH_CLASS_ACK);
            bool rnr = aeth_class(syndrome) == AETH_CLASS_RNR && confirmed == e->confirmed;
            e->refused |= syndrome > AETH_NAK_PSN_SEQ && confirmed >= e->confirmed;
            if (rnr || !e->spoke || confirmed > e->confirmed) {
                e->since = run->now;
            }
            e->waits &= e->spoke && confirmed <= e->confirmed;
            e->waits |=
                aeth_class(syndrome) == AETH_CLASS_RNR && (!e->spoke || confirmed >= e->confirmed);
            if (!e->spoke || confirmed > e->confirmed) {
                e->confirmed = confirmed;
            }
            e->spoke = true;
        }
    }
    note_debts(run);
    check_output(run, a, b);
}

static void
event_response(struct run *run)
{
    uint32_t id = run->n && rnd(run, 40) ? run->ledger[rnd(run, (uint32_t) run->n)].id : 1;
    uint8_t syndrome = choose_syndrome(run);
    respond_both(run, id, psn_make((uint32_t) choose_psn_up(run, id)), syndrome);
}

static void
timer_both(struct run *run)
{
    struct reverse_out out = reverse_timer(run->r, run->now);
    check_output(run, out, model_timer(&run->m, run->now));
    ask_both(run);
}

static void
event_timer(struct run *run)
{
    uint64_t deadline = reverse_deadline(run->r);
    if (deadline != UINT64_MAX && deadline > run->now && rnd(run, 2)) {
        run->now = deadline - rnd(run, 2);
    } else {
        run->now += rnd(run, 400);
    }
    timer_both(run);
}

/* What is done with NAKs and copies. */
static void
choose_policy(struct run *run)
{
    static const uint64_t least[] = {1, 4000, 13421, 1759218};
    static const uint32_t rates[] = {0, 10, 500, UINT32_MAX};

    run->policy.nak = (enum reverse_nak) rnd(run, 3);
    run->policy.filter = rnd(run, 2);
    run->policy.presume_usec = rnd(run, 2) ? least[rnd(run, 4)] : 0;
    run->policy.min_rate = rates[rnd(run, 4)];
    run->policy.lose_slow = !rnd(run, 4);
}

static void
event_policy(struct run *run)
{
    static const uint64_t times[] = {0, 1, 3200, 20001, 64000};
    struct reverse_policy *policy = &run->policy;
    uint64_t tick = run->tick;

    choose_policy(run);
    policy->prune = rnd(run, 4);
    policy->liveness_usec = rnd(run, 4) ? times[rnd(run, 5)] : policy->liveness_usec;
    run->tick = (policy->liveness_usec + 31) / 32;
    for (size_t i = 0; tick != run->tick && i < run->n; i++) {
        run->ledger[i].since = run->ledger[i].owes_since = run->now;
        run->ledger[i].question = false;
    }
    reverse_set_policy(run->r, policy);
    model_set_policy(&run->m, policy);
    note_losses(run);
    struct reverse_out out = reverse_branches_remove(run->r, NULL, 0, run->now);
    check_output(run, out, model_after_policy(&run->m, run->now));
}

/* Time passes; the source repeats from some PSN on, or does nothing, and some branches answer. */
static void
event_silence(struct run *run)
{
    uint32_t n = rnd(run, 80), often = 1 + rnd(run, 24), answers = rnd(run, 3);
    psn_t q = psn_make((uint32_t) choose_psn_down(run));

    for (uint32_t i = 0; run->m.started && i < n; i++) {
        if (!rnd(run, often) && !reverse_jump_suspicious(run->r, q)) {
            down_both(run, q, rnd(run, 2));
            copy_both(run, q, true);
        }
        if (answers && !rnd(run, 12) && run->n) {
            event_response(run);
        }
        uint64_t deadline = reverse_deadline(run->r);
        run->now = deadline == UINT64_MAX || deadline < run->now ? run->now + 100 : deadline;
        timer_both(run);
        compare(run);
    }
}

/* What all have goes to nobody: so the answer, which may have got lost, comes from here. */
static void
ask_again(struct run *run)
{
    struct reverse_info before, after;
    psn_t q = psn_make((uint32_t) run->h - 1 - rnd(run, 3));

    reverse_get_info(run->r, &before);
    down_both(run, q, false);
    for (size_t i = 0; i < run->n; i++) {
        struct reverse_branch_info b;
        reverse_get_branch(run->r, run->ledger[i].id, &b);
        REQUIRE(run, b.lost || b.waits || filtered_by_both(run, &run->ledger[i], q));
    }
    if (reverse_deadline(run->r) != UINT64_MAX) {
        run->now += REVERSE_DUP_ACK_USEC;
        timer_both(run);
    }
    reverse_get_info(run->r, &after);
    REQUIRE(run,
            after.n_sent_acks + after.n_sent_fatals > before.n_sent_acks + before.n_sent_fatals);
    compare(run);
}

/* Nothing has gone down since the node was started; somebody is doubted. */
static void
idle(struct run *run)
{
    ask_when_idle_both(run, true);
    for (uint32_t i = rnd(run, 64); i > 0; i--) {
        uint64_t deadline = reverse_deadline(run->r);

        run->now = deadline == UINT64_MAX || deadline < run->now ? run->now + 100 : deadline;
        timer_both(run);
        compare(run);
        if (!rnd(run, 8)) {
            event_heard(run);
        } else if (!rnd(run, 16)) {
            event_response(run);
        }
        compare(run);
    }
}

/* Every branch that can confirms everything: then so does the aggregate. */
static void
finish(struct run *run)
{
    struct reverse_info i;
    bool failed = false, any = false;

    ask_when_idle_both(run, false);
    for (size_t k = 0; k < run->n; k++) {
        struct reverse_branch_info b;
        reverse_get_branch(run->r, run->ledger[k].id, &b);
        any |= !b.waits && !b.pruned;
        failed |= b.cond == REVERSE_FATAL && !b.pruned;
        if (run->m.started) {
            respond_both(run, b.id, psn_make((uint32_t) run->h - 1), AETH_ACK_UNLIMITED);
        }
    }
    for (int n = 0; reverse_deadline(run->r) != UINT64_MAX; n++) {
        REQUIRE(run, n < 5);
        if (reverse_deadline(run->r) > run->now) {
            run->now = reverse_deadline(run->r);
        }
        timer_both(run);
    }
    reverse_get_info(run->r, &i);
    REQUIRE(run, !any || failed || psn_eq(i.f, i.h));
    compare(run);
    if (run->policy.filter && any && i.started && !failed) {
        ask_again(run);
    }
}

void
reverse_compare(const struct reverse_string *string)
{
    struct run run = {.string = string, .now = 1000};
    uint32_t n = string->many ? 100 : 1 + rnd(&run, 8);
    const struct reverse_params params = {
        .start_psn = psn_make(rnd(&run, 4) ? 0u - rnd(&run, 40) : rnd(&run, PSN_MASK + 1)),
        .dup_ack_usec = REVERSE_DUP_ACK_USEC,
        .hold_usec = REVERSE_HOLD_USEC,
        .started_before = !rnd(&run, 4),
        .root = rnd(&run, 2),
    };

    run.r = reverse_create(&params);
    model_init(&run.m, &params);
    run.h = run.asked = run.sent_up = run.m.start;
    run.without_state = !rnd(&run, 4); /* or not, until something goes down: note_start(). */
    run.next_id = 2;
    run.is_root = params.root;
    choose_policy(&run);
    reverse_set_policy(run.r, &run.policy);
    model_set_policy(&run.m, &run.policy);
    if (string->policy) {
        event_policy(&run);
    }
    while (run.n < n) {
        add_both(&run, new_id(&run));
    }
    if (params.started_before && rnd(&run, 2)) {
        idle(&run);
    }
    for (run.event = 0; run.event < string->n_events; run.event++) {
        uint32_t x = rnd(&run, 256);
        (x < 90    ? event_down
         : x < 220 ? event_response
         : x < 244 ? event_timer
         : x < 246 ? event_policy
         : x < 250 ? event_silence
         : x < 252 ? event_heard
         : x < 254 ? event_add
                   : event_remove)(&run);
        compare(&run);
    }
    finish(&run);
    reverse_destroy(run.r);
}
