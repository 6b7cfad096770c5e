/* SPDX-License-Identifier: Apache-2.0
 *
 * A slow second implementation of the reverse-path rule, to compare
 * lib/reverse.c with: linear scans, flags on every branch, and PSNs that are
 * counted on in 64 bits, so that it shares no comparison with the machine.
 */
#ifndef TESTS_UNIT_REVERSE_MODEL_H
#define TESTS_UNIT_REVERSE_MODEL_H 1

#include "lib/reverse.h"

#define MODEL_MAX_BRANCHES 128
#define MODEL_MAX_TIMES    4096

struct model_branch {
    uint32_t id;
    bool known; /* una is known. */
    int64_t una;
    enum reverse_cond cond;
    uint8_t code;
    uint32_t msn;
    bool reported;  /* this setting of cond, at the minimum. */
    bool rewound;   /* this setting of cond, while held above the minimum. */
    uint64_t when;  /* time of this setting. */
    uint64_t order; /* number of this setting. */
    enum reverse_loss lost;
    bool pruned;
    /* R17: does it wait, for what, and may it be admitted?  What it counts from. */
    bool joining, is_node, ready, late;
    uint64_t added; /* of a branch that waits: when. */
    int64_t first;
    bool unbounded; /* nothing below that can still come. */
    bool rose, asked_fresh;
    psn_t expects;    /* in its own numbers; */
    int64_t nonsense; /* what it answers while it has nothing. */
    /* R16: may it be asked, was it asked and not heard since, is a question to be sent, and was it
     * heard in this tick? */
    bool idle_asked, question, due, heard;
    /* Liveness.  In this tick: was there a sign of life, and was it asked?  And in those before,
     * the latest in bit 0: was it silent, and silent without being asked? */
    bool life, asked;
    uint64_t silent_ticks, unasked_ticks, question_ticks;
    /* R16: asked again and again, and in vain. */
    bool doubted, unanswered;
    unsigned n_doubts;
    uint64_t doubted_at;
    bool blind;  /* it was asked so while its una was unknown, and not heard since. */
    bool proven; /* R17: heard long enough after a start without state. */
    /* R15: has it asked for time where it stands?  In the ticks so far, the latest in bit 0: did it
     * owe, being asked, and was it at the minimum?  At the end of each, the latest first: what had
     * it confirmed, was that known, and did it wait for its time? */
    bool waits;
    uint64_t owed_ticks, minimum_ticks;
    int64_t una_at[33];
    bool known_at[33];
    bool waits_at[33];
    bool slow;
    unsigned n_slow; /* ticks since that was said. */
    uint64_t n_confirmed;
    uint64_t last_copy; /* settings until then. */
    uint64_t n_acks, n_dups, n_naks, n_rnrs, n_fatals;
    uint64_t n_repeats, n_useless, n_filtered;
};

struct model {
    struct reverse_params params;
    bool started;
    int64_t start;
    int64_t h;
    int64_t f;
    bool f_known;
    bool ever_confirmed;
    bool lost_state; /* started in the middle, */
    bool may_be_new; /* though not below the start PSN. */
    int64_t anchor_floor;
    int64_t ahead_end; /* 1 + the highest PSN of an earlier life that may be confirmed; 0: none. */
    int64_t repeated;  /* what a source repeats from, if no branch tells; */
    unsigned repeated_ago; /* ticks since. */
    enum reverse_nak nak;
    bool filter;
    bool prune;
    uint32_t min_rate;
    bool lose_slow;
    int64_t asked_up_to;  /* what had AckReq is below, */
    int64_t asked_before; /* and at the last tick was. */
    bool repeats;         /* what goes down is not new. */
    uint64_t tick;        /* length; 0: none. */
    uint64_t next_tick;
    uint64_t n_settings;
    bool dup_waiting;
    uint64_t dup_not_before;
    /* Does the minimum stand still? */
    uint64_t presume;    /* No sooner than this; 0: it does not matter. */
    bool waiting;        /* for an answer, */
    uint64_t waits_from; /* from then on. */
    int64_t asked_below; /* the last question was one below. */
    bool nak_said;       /* at this minimum, */
    unsigned n_served;   /* so often it has come down since, */
    unsigned n_presumed; /* and so often because it stood still. */
    unsigned n_carried;  /* so often before, since an answer was timed; 3 at most. */
    int64_t timed;       /* the answer to this PSN is timed; -1: none is. */
    uint64_t timed_from;
    /* What answers took, and when that was. */
    size_t n_times;
    struct {
        uint64_t at, usec;
    } times[MODEL_MAX_TIMES];
    uint64_t n_paced, n_joined;
    bool admits;       /* what goes down begins a message, */
    bool wants_answer; /* or asks. */
    psn_t down;        /* what goes down. */
    bool proven;       /* all were heard long enough after a start without state: then. */
    uint64_t proven_by, last_down, doubt_at;
    uint32_t msn; /* of the last response up. */
    size_t n;
    struct model_branch b[MODEL_MAX_BRANCHES];
    uint64_t n_sent_acks, n_sent_naks, n_sent_rnrs, n_sent_fatals, n_sent_dups, n_sent_presumed;
};

void model_init(struct model *, const struct reverse_params *);
/* The 64-bit PSN that a 24-bit one means: the nearest to 'near'. */
int64_t model_extend(psn_t, int64_t near);

/* As the functions of lib/reverse.h with the same names. */
int model_branch_add(struct model *, uint32_t id);
void model_ask_when_idle(struct model *, uint32_t id, bool may);
bool model_next_question(struct model *, uint32_t *id, psn_t *psn);
void model_heard(struct model *, uint32_t id);
void model_doubt(struct model *, uint32_t id, uint64_t now);
bool model_may_be_fresh(struct model *, uint32_t id, psn_t psn);
int model_branch_wait(struct model *, uint32_t id, bool is_node, psn_t psn, uint64_t now);
void model_position(struct model *, uint32_t id, bool as_said, uint64_t now);
bool model_may_admit(struct model *, psn_t q);
void model_admit(struct model *);
bool model_takes(struct model *, uint32_t id, psn_t q, uint64_t now);
struct reverse_out model_passed(struct model *, uint64_t now);
struct reverse_out model_branch_remove(struct model *, uint32_t id, uint64_t now);
void model_set_policy(struct model *, const struct reverse_policy *);
/* What is to be said once the policy has changed. */
struct reverse_out model_after_policy(struct model *, uint64_t now);
bool model_jump_suspicious(const struct model *, psn_t q);
struct reverse_out model_down(struct model *, psn_t q, bool ack_req, uint64_t now);
bool model_filters(struct model *, uint32_t id, psn_t q);
bool model_asks(struct model *, uint32_t id);
void model_copied(struct model *, uint32_t id, psn_t q, bool sent);
struct reverse_out model_response(struct model *, uint32_t id, psn_t psn, uint8_t syndrome,
                                  uint32_t msn, uint64_t now, enum drop_reason *why);
uint64_t model_deadline(const struct model *);
struct reverse_out model_timer(struct model *, uint64_t now);
void model_get_info(const struct model *, struct reverse_info *);
bool model_get_branch(const struct model *, uint32_t id, struct reverse_branch_info *);

#endif /* tests/unit/reverse-model.h */
