/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the reverse path share: the branch set and its orders.
 */
#ifndef LIB_REVERSE_IMPL_H
#define LIB_REVERSE_IMPL_H 1

#include "lib/reverse.h"

/* More PSNs than a source has outstanding. */
#define MAX_OUTSTANDING (1 << 20)
/* Ticks in the liveness time. */
#define LIVENESS_TICKS  32

/* What a branch did and was asked; reverse-liveness.c. */
struct liveness {
    bool alive;            /* it got further, or asked for time, since the last tick. */
    bool asked;            /* a copy of what it lacks was made for it since the last tick. */
    uint8_t silent_ticks;  /* ticks in a row in which it lacked something and was not alive. */
    uint8_t unasked_ticks; /* silent ticks in a row in which it was not asked. */
    bool heard;            /* it said anything since the last tick. */
    bool question;         /* it was sent one, and nothing was heard of it since. */
    bool due;              /* one is to be sent. */
};

/* How fast a branch confirms; reverse-pace.c. */
struct pace {
    bool slow;
    bool waits;          /* it has asked for time where it stands. */
    uint8_t owed_ticks;  /* in a row in which it owed an answer; LIVENESS_TICKS at most. */
    uint8_t slow_ticks;  /* since 'slow' was last judged. */
    uint8_t not_minimum; /* ticks in a row in which it was not at m; LIVENESS_TICKS at most. */
    /* At the last tick: was una known, what was it, and did the branch wait? */
    bool known, waited;
    psn_t una;
    uint8_t next;                  /* ticks so far: which of 'rose' is the oldest. */
    uint32_t rose[LIVENESS_TICKS]; /* by how much una rose in each of the last ticks... */
    uint64_t n;                    /* ...and in all of them. */
    uint64_t n_confirmed;          /* 'n' when 'slow' was last judged. */
};

struct branch {
    uint32_t id;
    bool anchored;    /* una is known, and the branch is in the heap. */
    bool risen;       /* una has risen, or was unknown. */
    bool asked_fresh; /* a question was due before that, and una is not yet above... */
    psn_t fresh;      /* ...the PSN of the answer of a queue pair that has received nothing. */
    psn_t una;
    enum reverse_cond cond;
    uint8_t code;               /* RNR timer code or fatal syndrome. */
    uint32_t msn;               /* of the last response taken in. */
    uint64_t setting;           /* number of this setting of 'cond'; 0: none. */
    uint64_t since;             /* when 'cond' was set. */
    size_t pos;                 /* index in the heap. */
    struct branch *prev, *next; /* in the held list; see is_held(). */
    enum reverse_loss lost;
    bool pruned;       /* lost, and out of the heap for good. */
    bool idle_asked;   /* it may be asked while it lacks nothing. */
    bool waits, ready; /* R17; reverse-join.c. */
    bool is_node;      /* of those that wait... */
    uint64_t own_from; /* ...what arrives from then on was said in the node's present life. */
    bool late;         /* it has waited, and has joined. */
    bool proven;       /* it was heard long enough after a start without state. */
    bool bounded;      /* PSNs below 'first' may still come. */
    psn_t expects;     /* what a receiver that waits expects, in its own numbers. */
    psn_t first;
    bool doubted;     /* somebody wants to know whether it lives... */
    uint8_t n_doubts; /* ...and has asked it so many times... */
    bool unanswered;  /* ...in vain, and it lacked nothing. */
    bool blind;       /* it was asked while una was unknown, and not heard since. */
    uint64_t doubted_at;
    struct liveness liveness;
    struct pace pace;
    bool shares;     /* it gets the same copies as others; reverse-copies.c. */
    uint64_t served; /* value of 'settings' when a copy last went out to it; see 'shared_served'. */
    uint64_t n_acks, n_dups, n_naks, n_rnrs, n_fatals;
    uint64_t n_repeats, n_useless, n_filtered;
};

/* Does m stand still? reverse-stall.c. */
struct stall {
    bool awaits;       /* an answer is awaited. */
    uint64_t from;     /* when the wait for that answer begins. */
    psn_t asked;       /* 1 + the PSN that last went down with AckReq; m if m is beyond that. */
    bool told;         /* NAK(m) went up. */
    bool served;       /* PSN m has come down since NAK(m) went up. */
    unsigned n_tries;  /* responses that went up because m stood still. */
    unsigned backoff;  /* how often the wait was doubled since an answer was timed. */
    bool timing,       /* an answer is being timed. */
        timed_any;     /* some answer was timed. */
    psn_t timed;       /* the PSN whose answer is being timed. */
    uint64_t timed_at; /* when PSN 'timed' went down. */
    uint64_t remembered_at, /* when 'longest' began anew. */
        longest,            /* the longest time of an answer since 'remembered_at'. */
        longest_before;     /* 'longest' as it was before it began anew. */
};

struct reverse {
    struct reverse_params params;
    struct reverse_policy policy;
    bool started;
    bool repeats;   /* the PSN that goes down had gone down before. */
    bool continues; /* the PSN that goes down is H. */
    psn_t h;
    psn_t f;
    psn_t asked_to;     /* 1 + the highest PSN that went down with AckReq; m if m is beyond that. */
    psn_t asked_before; /* the same at the last tick, or m if that is beyond. */
    bool f_known;       /* false after a start without state. */
    bool confirmed;     /* m - 1 is a PSN of this epoch, so it may be acknowledged. */
    psn_t anchor_floor; /* lowest PSN that anchors a branch. */
    bool without_state; /* started without state: the source may have got further than una. */
    bool ahead; /* H is below 'ahead_end': branches may have what went down in an earlier life... */
    psn_t ahead_end;    /* ...and was below this. */
    bool proven;        /* F is at least what was said in an earlier life. */
    uint64_t proven_by; /* when all that was under way at such a start has arrived. */
    uint64_t down_at;   /* when a PSN went down last. */
    bool may_be_new;    /* such a start was at start_psn or above: nothing may be confirmed yet. */
    psn_t lowest;       /* after a start without state: lowest PSN that the source repeats. */
    uint8_t lowest_age; /* ticks since 'lowest' went down last. */

    struct branch **branches; /* sorted by id. */
    struct branch **heap;
    size_t found; /* index of the branch that branch_find_near() found last. */
    size_t n_branches;
    size_t n_heap;
    size_t n_lost, n_pruned, n_waiting;
    size_t n_ready;      /* receivers among those that wait. */
    size_t n_bounded;    /* branches with 'bounded'. */
    psn_t last_first;    /* the highest 'first' of those. */
    size_t n_idle_asked; /* branches with 'idle_asked' that are not lost. */
    size_t n_due;        /* branches with a question due, none of them before index... */
    size_t due_from;     /* ...this. */
    size_t n_doubted;    /* branches with 'doubted'. */
    uint64_t n_decided;  /* how often a branch ceased to be doubted. */
    uint64_t doubt_at;   /* when they are asked next. */
    uint64_t n_joined;
    bool admits;  /* the PSN that goes down begins a message: it admits receivers. */
    bool passing; /* the PSN that goes down is to be answered if nobody counts. */
    psn_t down;   /* the PSN that goes down. */
    uint32_t msn; /* that went up last. */
    size_t allocated;

    uint64_t settings; /* how often a condition was set. */
    uint64_t told;     /* settings up to this one were reported at this m. */

    struct branch *held_first, *held_last;
    uint64_t held_floor; /* the list has only settings above this one. */

    bool dup_pending; /* an ACK is owed again, and the rate limit holds it back. */
    uint64_t dup_not_before;

    struct stall stall;

    uint64_t shared_served; /* as 'served', for all branches that share. */
    psn_t shared_from,      /* first PSN of the shared copies that are not yet noted per branch. */
        shared_to;          /* 1 + the last of these PSNs. */

    uint64_t n_paced; /* how often 'pace.slow' was set or cleared. */

    uint64_t tick_usec; /* length of a tick; 0: no branch that counts is ever silent. */
    uint64_t tick_at;   /* time of the next tick; UINT64_MAX: nobody is to be looked at. */

    uint64_t n_sent_acks, n_sent_naks, n_sent_rnrs, n_sent_fatals, n_sent_dups, n_sent_presumed;
};

/* reverse-branches.c */

/* Branches looked at so far, in all events of all machines: a test counts what an event costs. */
extern _Thread_local uint64_t reverse_n_visits;

/* NULL: there is none with this id. */
struct branch *branch_find(const struct reverse *, uint32_t id);
/* The same, and O(1) for the branch that it found last, and for the next one. */
struct branch *branch_find_near(struct reverse *, uint32_t id);
/* Adds a branch of which nothing is known; NULL: no memory. */
struct branch *branch_insert(struct reverse *, uint32_t id);
void branch_delete(struct reverse *, struct branch *);
/* Gives 'b' a new una and condition; anchors it if it was not. */
void branch_update(struct reverse *, struct branch *b, psn_t una, enum reverse_cond, uint8_t code,
                   uint64_t now);
/* Empties the list of held NAKs. */
void branches_clear_held(struct reverse *);
/* The branch that gives m.  NULL while m is unknown or no branch counts: nothing goes up then (R8,
 * R9). */
const struct branch *branches_minimum(const struct reverse *);
/* 'b' stands for a fatal NAK at 'una' from now on, until it is pruned. */
void branch_lose(struct reverse *, struct branch *b, psn_t una, enum reverse_loss, uint8_t code,
                 uint64_t now);
/* With policy prune: takes lost branches out of the minimum, all but the last that counts. */
void branches_prune(struct reverse *);
/* Does some branch count, and is each that does lost? */
bool branches_all_lost(const struct reverse *);
/* If only pruned branches are left, one of them counts again, as lost. */
void branches_count_last(struct reverse *, uint64_t now);

/* How many branches count. */
static inline size_t
branches_counted(const struct reverse *r)
{
    return r->n_branches - r->n_pruned - r->n_waiting;
}

/* A branch that waits counts from 'una' on. */
void branch_join(struct reverse *, struct branch *b, psn_t una, uint64_t now);

/* reverse-join.c */

/* May branches join?  Not as long as more may have been said upwards than is known here: that is
 * known, after a start without state, when all that count were heard long enough after it. */
bool join_is_proven(struct reverse *);
/* Will that never be known?  At the root it will. */
bool join_is_blank(const struct reverse *);
/* May a node that waits join with what it says now? */
bool join_may_count(struct reverse *, const struct branch *b, uint64_t now);
/* A node that waits, or has not joined yet, has confirmed what is below 'una'. */
void join_node(struct reverse *, struct branch *b, psn_t una, uint64_t now);
/* 'b', which is bounded, has confirmed up to 'una': is there an end to its bound? */
void join_bound(struct reverse *, struct branch *b);

/* reverse-liveness.c */

/* Something was heard of 'b'.  Had it been asked, and was it silent since? */
bool liveness_hear(struct reverse *, struct branch *b);
/* A branch with 'blind' expects PSN 'una': may it have executed a question (R16)? */
bool liveness_has_executed(const struct reverse *, psn_t una);
/* The same, of a branch that was not heard since, when q goes down first. */
bool liveness_may_have_executed(const struct reverse *, const struct branch *, psn_t q);
/* PSN q went down and has to be confirmed, unless it is below 'floor'. */
void liveness_expect(struct reverse *, psn_t q, psn_t floor, uint64_t now);
/* A copy of PSN q was made for 'b'. */
void liveness_ask(const struct reverse *, struct branch *b, psn_t q);
/* A copy of q, the next PSN, was made for all that share.  False: the caller notes it for each. */
bool liveness_ask_shared(struct reverse *, psn_t q);
/* Notes for each branch what was noted for all that share. */
void liveness_settle_shared(struct reverse *);
/* The tick at 'tick_at', and questions to those who are doubted.  May lose branches. */
void liveness_timer(struct reverse *, uint64_t now);
/* When liveness_timer() wants to be called; UINT64_MAX: never. */
uint64_t liveness_deadline(const struct reverse *);

/* reverse-pace.c */

/* PSN q went down; 'h' is set.  'floor': m, or what is below it.  'gap': how many PSNs are between
 * H, as it was before, and q. */
void pace_expect(struct reverse *, psn_t q, psn_t floor, bool ack_req, int32_t gap);
/* A tick, after that of its liveness.  'asked': it was, or answered, not too long ago. */
void pace_tick(struct reverse *, struct branch *, bool asked);
/* Nothing is known of how fast it is, or how fast any is. */
void pace_reset(struct reverse *, struct branch *);
void pace_reset_all(struct reverse *);

/* reverse-stall.c */

/* Forgets everything, and awaits nothing. */
void stall_reset(struct reverse *);
/* PSN q went down; 'h' and 'repeats' are set.  A PSN below 'floor' asks for nothing. */
void stall_down(struct reverse *, psn_t q, psn_t floor, bool ack_req, uint64_t now);
/* m got further, and that goes up. */
void stall_moved(struct reverse *, psn_t m, uint64_t now);
/* A sequence NAK(m) goes up. */
void stall_told(struct reverse *, uint64_t now);
/* When stall_timer() wants to be called; UINT64_MAX: never. */
uint64_t stall_deadline(const struct reverse *);
/* Syndrome of the response that goes up with PSN m because m stands still; 0: none does. */
uint8_t stall_timer(struct reverse *, uint64_t now);
/* The same because what is in flight is lost.  'b' gives m. */
uint8_t stall_go_back(struct reverse *, const struct branch *b, uint64_t now);

#endif /* lib/reverse-impl.h */
