/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the reverse path share: the branch set and its orders.
 */
#ifndef LIB_REVERSE_IMPL_H
#define LIB_REVERSE_IMPL_H 1

#include "lib/reverse.h"

/* What a branch did and was asked; reverse-liveness.c. */
struct liveness {
    bool alive;            /* since the last tick it got further, or asked for time. */
    bool asked;            /* since the last tick a copy of what it lacks was made for it. */
    uint8_t silent_ticks;  /* in a row: it lacked something and was not alive. */
    uint8_t unasked_ticks; /* in a row, among these: it was not asked. */
};

struct branch {
    uint32_t id;
    bool anchored; /* una is known, and the branch is in the heap. */
    psn_t una;
    enum reverse_cond cond;
    uint8_t code;               /* RNR timer code or fatal syndrome. */
    uint32_t msn;               /* of the last response taken in. */
    uint64_t setting;           /* number of this setting of 'cond'; 0: none. */
    uint64_t since;             /* when 'cond' was set. */
    size_t pos;                 /* index in the heap. */
    struct branch *prev, *next; /* in the held list; see is_held(). */
    enum reverse_loss lost;
    bool pruned; /* lost, and out of the heap for good. */
    struct liveness liveness;
    bool shares;     /* copies with others; reverse-copies.c. */
    uint64_t served; /* settings until a copy went out to it last; see 'shared_served'. */
    uint64_t n_acks, n_dups, n_naks, n_rnrs, n_fatals;
    uint64_t n_repeats, n_useless, n_filtered;
};

/* Does m stand still? reverse-stall.c. */
struct stall {
    bool awaits;   /* an answer, */
    uint64_t from; /* from then on. */
    psn_t asked;   /* what went down below it last asked for an answer; m if there was nothing. */
    bool told;     /* NAK(m) went up, */
    bool served;   /* and PSN m has come down since, */
    unsigned n_tries; /* and so many responses went up because m stood still. */
    unsigned backoff; /* The wait was doubled so often since an answer was timed. */
    /* An answer that is timed; how long the longest took since 'remembered_at', and before. */
    bool timing, timed_any;
    psn_t timed;
    uint64_t timed_at;
    uint64_t remembered_at, longest, longest_before;
};

struct reverse {
    struct reverse_params params;
    struct reverse_policy policy;
    bool started;
    bool repeats;   /* what goes down had gone down before. */
    bool continues; /* it is what comes next. */
    psn_t h;
    psn_t f;
    bool f_known;       /* false after a start without state. */
    bool confirmed;     /* m - 1 is a PSN of this epoch, so it may be acknowledged. */
    psn_t anchor_floor; /* lowest PSN that anchors a branch. */
    bool without_state; /* so it started: the source may have got further than una. */
    bool may_be_new;    /* then: so far on that the epoch may be new, and nothing be confirmed. */
    psn_t lowest;       /* after a start without state: lowest PSN that the source repeats, */
    uint8_t lowest_age; /* and ticks since it went down last. */

    struct branch **branches; /* sorted by id. */
    struct branch **heap;
    size_t n_branches;
    size_t n_heap;
    size_t n_lost, n_pruned;
    size_t allocated;

    uint64_t settings; /* how often a condition was set. */
    uint64_t told;     /* settings up to this one were reported at this m. */

    struct branch *held_first, *held_last;
    uint64_t held_floor; /* later settings only are in the list. */

    bool dup_pending; /* an ACK was asked for again and the rate limit kept it back. */
    uint64_t dup_not_before;

    struct stall stall;

    uint64_t shared_served;       /* as 'served', for all branches that share. */
    psn_t shared_from, shared_to; /* of these PSNs they got copies that branches have no note of. */

    uint64_t tick_usec; /* 0: nobody is ever silent. */
    uint64_t tick_at;   /* UINT64_MAX: nobody lacks anything. */

    uint64_t n_sent_acks, n_sent_naks, n_sent_rnrs, n_sent_fatals, n_sent_dups, n_sent_presumed;
};

/* reverse-branches.c */

/* Branches that were looked at so far, in all events of all machines: a test counts what an event costs. */
extern uint64_t reverse_n_visits;

/* NULL: there is none with this id. */
struct branch *branch_find(const struct reverse *, uint32_t id);
/* A new one, which nothing is known of; NULL: no memory. */
struct branch *branch_insert(struct reverse *, uint32_t id);
void branch_delete(struct reverse *, struct branch *);
/* Gives 'b' a new una and condition; anchors it if it was not. */
void branch_update(struct reverse *, struct branch *b, psn_t una, enum reverse_cond, uint8_t code,
                   uint64_t now);
/* The list of held NAKs is empty from now on. */
void branches_clear_held(struct reverse *);
/* The branch that gives the minimum, or NULL while the minimum is unknown or there are no branches
 * that count: nothing goes up then (R8, R9). */
const struct branch *branches_minimum(const struct reverse *);
/* 'b' stands for a fatal NAK at 'una' from now on, until it is pruned. */
void branch_lose(struct reverse *, struct branch *b, psn_t una, enum reverse_loss, uint8_t code,
                 uint64_t now);
/* Takes lost branches out of the minimum, all but the last that counts, if that is the policy. */
void branches_prune(struct reverse *);
/* If only pruned branches are left, one of them counts again, as lost. */
void branches_count_last(struct reverse *, uint64_t now);

/* reverse-liveness.c */

/* PSN q went down and has to be confirmed, unless it is below 'floor'. */
void liveness_expect(struct reverse *, psn_t q, psn_t floor, uint64_t now);
/* A copy of PSN q was made for 'b'. */
void liveness_ask(const struct reverse *, struct branch *b, psn_t q);
/* Likewise, of the PSN that comes next, for all that share.  False: to be noted for each. */
bool liveness_ask_shared(struct reverse *, psn_t q);
/* Notes for each what was noted for all that share. */
void liveness_settle_shared(struct reverse *);
/* At 'tick_at': may lose branches. */
void liveness_tick(struct reverse *, uint64_t now);

/* reverse-stall.c */

/* Nothing is known, and nothing awaited. */
void stall_reset(struct reverse *);
/* PSN q went down; 'h' and 'repeats' are set.  Below 'floor' it asks for nothing. */
void stall_down(struct reverse *, psn_t q, psn_t floor, bool ack_req, uint64_t now);
/* m got further, and that goes up. */
void stall_moved(struct reverse *, psn_t m, uint64_t now);
/* A sequence NAK of m goes up. */
void stall_told(struct reverse *, uint64_t now);
/* UINT64_MAX: never. */
uint64_t stall_deadline(const struct reverse *);
/* Then.  What is to go up with PSN m; 0: nothing. */
uint8_t stall_timer(struct reverse *, uint64_t now);

#endif /* lib/reverse-impl.h */
