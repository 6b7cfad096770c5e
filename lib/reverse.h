/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path of one group epoch at one node: merges the ACKs and NAKs of
 * the branches into the one stream that an RC requester understands.
 *
 * A pure machine: no packets, clocks or I/O.  docs/draft-notes.md, "The
 * reverse-path rule", is its specification (R1..); draft-li 5.3.1, 5.3.2 and 8.
 * The glossary of una, H, m, F and told is at the top of lib/aggregate.h.
 *
 * A branch is lost when it has sent a fatal NAK, or makes no progress for the
 * liveness time although it is asked.  It then stands for a fatal NAK at its una,
 * or, with policy prune, is not counted any more.  The last branch is never
 * pruned: its NAK goes up, to a node that may have others (R12).
 *
 * A branch is slow when it owes an answer for the liveness time on end and confirms
 * less than the least rate meanwhile (R15).  That is said, or loses it.
 *
 * Times are microseconds on any monotonic scale.
 */
#ifndef LIB_REVERSE_H
#define LIB_REVERSE_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/drop.h"
#include "lib/wire.h"

struct reverse;

#define REVERSE_DUP_ACK_USEC        500
#define REVERSE_HOLD_USEC           1000
/* How far a packet whose ICRC was not verified may move H. */
#define REVERSE_MAX_UNVERIFIED_JUMP 4096
/* What is under way in the network arrives within this time, or never. */
#define REVERSE_LIFETIME_USEC       1000000
/* How far below H the first response of an unanchored branch may be. */
#define REVERSE_ANCHOR_WINDOW       (1 << 22)
/* How far above the first PSN after a start without state the source may have got before. */
#define REVERSE_AHEAD_WINDOW        (1 << 16)

struct reverse_params {
    psn_t start_psn;
    bool started_before;   /* the epoch started in an earlier life of the node, now unknown: R8. */
    bool root;             /* what goes up goes to the source. */
    uint32_t dup_ack_usec; /* least time between two re-sent ACKs. */
    uint32_t hold_usec;    /* how long a NAK above m is held before NAK(m) goes up. */
};

/* What to send up after an event: nothing, or one response. */
struct reverse_out {
    bool send;
    uint8_t syndrome; /* AETH syndrome. */
    psn_t psn;
    uint32_t msn; /* of the branch that gives m. */
    bool moved;   /* it confirms more than what was said before. */
};

struct reverse *reverse_create(const struct reverse_params *);
void reverse_destroy(struct reverse *);

/* What becomes of a branch's sequence NAK while others have confirmed less (R7). */
enum reverse_nak {
    NAK_HOLD,    /* it waits for the others, hold_usec at most; then NAK(m) goes up. */
    NAK_LITERAL, /* NAK(m) goes up at once, which is the draft's letter. */
    NAK_SOLICIT, /* as NAK_HOLD, and the others are asked: reverse_asks(). */
};

struct reverse_policy {
    enum reverse_nak nak;
    bool filter; /* a branch gets no copy of what it has confirmed: reverse_filters(). */
    /* Lost branches are not counted any more.  A change takes effect on branches that are lost
     * already with the next event. */
    bool prune;
    /* After this time a branch is silent; 0: never.  A change begins the time anew for all. */
    uint64_t liveness_usec;
    /* PSNs a second: a branch that owes an answer and confirms fewer is slow; 0: none is, nor with
     * liveness_usec 0, the time over which that is measured. */
    uint32_t min_rate;
    bool lose_slow; /* slow branches are lost. */
    /* At the root: least time until an answer is overdue and a loss presumed (R14); 0: never. */
    uint64_t presume_usec;
};
/* May be called at any time.  Before the first call all fields are 0. */
void reverse_set_policy(struct reverse *, const struct reverse_policy *);

/* Adds a branch.  The id is the caller's, unique, any value.  Before the first packet went down the
 * branch starts at start_psn.  Later it counts as confirmed up to H: its receive PSN is H by
 * agreement.  That needs quiescence: everything sent down is confirmed, and that was sent up.
 * Returns 0, EEXIST, EBUSY (not quiesced; nothing changed) or ENOMEM. */
int reverse_branch_add(struct reverse *, uint32_t id, uint64_t now);
/* R16: may this branch be asked while it lacks nothing?  At first none is. */
void reverse_ask_when_idle(struct reverse *, uint32_t id, bool may);
/* A question to be sent now, after reverse_timer(); false: there is none.  *psn is in the epoch's
 * numbers.  For a branch that waits it is not given: one below what its queue pair expects. */
bool reverse_next_question(struct reverse *, uint32_t *id, psn_t *psn);
/* Asks the branch at once whether it lives, whatever it lacks: reverse_next_question() has the
 * first question after the next reverse_timer(), or 1 s later if the epoch had started and nothing
 * went down since.  If it answers none of 8 in 0.4 s that is said (below), and it is lost if it
 * lacks something.  If una is unknown then, it is lost when the liveness time is over. */
void reverse_doubt(struct reverse *, uint32_t id, uint64_t now);
/* The branch has shown that it lives, and nothing else. */
void reverse_heard(struct reverse *, uint32_t id);
/* May ACK(psn) with MSN 0 be what a queue pair answers that has received nothing (R16)?  It may if
 * the branch was asked before it had confirmed anything, and PSN 'psn' is what that answer has. */
bool reverse_may_be_fresh(const struct reverse *, uint32_t id, psn_t psn);

/* R17: the machine has no branches, so its node is nobody's: what it has said counts no more. */
void reverse_forget_past(struct reverse *);
/* R17: adds a branch that waits, at any time: a node, or a receiver whose queue pair expects 'psn'.
 * A node does not join before what it may have said in an earlier life has arrived.  0, EEXIST or
 * ENOMEM. */
int reverse_branch_wait(struct reverse *, uint32_t id, bool is_node, psn_t psn, uint64_t now);
/* The branch has joined in an earlier life of the node: it counts from PSN 'first' on, where its
 * queue pair expected 'psn'. */
void reverse_set_first(struct reverse *, uint32_t id, psn_t first, psn_t psn);
/* The branch, if it waits, is said to have joined in an earlier life of the node: una is unknown
 * (R8). */
void reverse_branch_count(struct reverse *, uint32_t id);
/* A receiver that waits has answered: is its queue pair where it was said to be?  If so it is
 * ready, otherwise lost. */
void reverse_position(struct reverse *, uint32_t id, bool as_said, uint64_t now);
/* Would receivers be admitted if a message began with PSN q?  Then the caller verifies that
 * packet's ICRC first. */
bool reverse_may_admit(struct reverse *, psn_t q);
/* Does the node confirm by itself what goes down, as all branches wait?  Then the caller verifies
 * each packet's ICRC first. */
bool reverse_confirms_alone(const struct reverse *);
/* The packet of the last reverse_down() begins a message and is intact: the copies that are made of
 * it admit receivers. */
void reverse_admit(struct reverse *);
/* May this branch have a copy of PSN q, the one that goes down?  May admit the branch. */
bool reverse_takes(struct reverse *, uint32_t id, psn_t q, uint64_t now);
/* Is that known to be true of each branch, and that none is pruned or spared the copy? */
bool reverse_serves_all(const struct reverse *, psn_t q);
/* Copies of the PSN of the last reverse_down() were made.  If all branches wait, it answers. */
struct reverse_out reverse_passed(struct reverse *, uint64_t now);

/* Removes n branches, or none.  That may move m: the result says what to send once all have gone.
 * If only pruned branches are left, one of them counts again, as lost. */
struct reverse_out
reverse_branches_remove(struct reverse *, const uint32_t *ids, size_t n, uint64_t now);

/* Would PSN q raise H by more than an unverified packet may?  Then the caller
 * verifies the ICRC first. */
bool reverse_jump_suspicious(const struct reverse *, psn_t q);
/* PSN q goes down.  The first call decides between start and anchoring (R8).  Without branches
 * nothing goes down and nothing changes (R9).  'ack_req' is the packet's AckReq bit: a response
 * is owed.  If a fatal NAK is latched at m and a response is owed, the result is that NAK.  If
 * all have confirmed q, the result answers, since those below may not. */
struct reverse_out reverse_down(struct reverse *, psn_t q, bool ack_req, uint64_t now);
/* With the filter: have all branches confirmed q?  Then it goes to nobody. */
bool reverse_filters_all(const struct reverse *, psn_t q);
/* reverse_filters(), reverse_asks() and reverse_copied() are called in this order, for each branch
 * that would get a copy of the PSN q that goes down. */
/* With the filter: has the branch confirmed q?  Then it needs no copy, and that is counted. */
bool reverse_filters(struct reverse *, uint32_t id, psn_t q);
/* Is this branch asked how far it is?  Then its copy gets AckReq. */
bool reverse_asks(const struct reverse *, uint32_t id);
/* Can reverse_asks() be true for any branch? */
bool reverse_asks_any(const struct reverse *);
/* A copy was made for the branch, so an answer may be expected from it.  'sent': the copy went out
 * and serves the branch: its sequence or RNR NAK at q is cleared. */
void reverse_copied(struct reverse *, uint32_t id, psn_t q, bool sent);
/* Branches that share all get the same copies.  At first none does.  For them the three _shared()
 * calls replace the three above, which would cost too much for each. */
void reverse_share(struct reverse *, uint32_t id, bool shares);
/* Is a branch that shares asked how far it is? */
bool reverse_asks_shared(const struct reverse *);
/* A copy was made for all that share.  Costs O(n) if q is not the next PSN, or else every 2^22. */
void reverse_copied_shared(struct reverse *, psn_t q, bool sent);
/* The filter spared all that share a copy of q: reverse_filters_all().  Costs O(n). */
void reverse_filtered_shared(struct reverse *, psn_t q);
/* Is the branch lost, and not counted any more?  Copies are of no use to it. */
bool reverse_is_pruned(const struct reverse *, uint32_t id);

/* Response from a branch.  *why is DROP_none if it was taken in, otherwise
 * unknown_branch, psn_not_sent or resp_opcode (reserved syndrome). */
struct reverse_out reverse_response(struct reverse *, uint32_t id, psn_t psn, uint8_t syndrome,
                                    uint32_t msn, uint64_t now, enum drop_reason *why);

/* ACK(m - 1), which goes up before 'nak', a NAK(m). */
struct reverse_out reverse_ack_before(struct reverse *, const struct reverse_out *nak);

/* Time at which reverse_timer() wants to be called; UINT64_MAX: never. */
uint64_t reverse_deadline(const struct reverse *);
struct reverse_out reverse_timer(struct reverse *, uint64_t now);

/* R24, at the root: what is in flight is lost, as its way is.  Takes the source back to m; does nothing
 * if nothing is in flight, m is not known, or the branch that gives m has asked for time or refused. */
struct reverse_out reverse_go_back(struct reverse *, uint64_t now);
/* R24, below it: what was said last may be lost, as its way is.  Says it again. */
struct reverse_out reverse_repeat(struct reverse *, uint64_t now);

/* For display and tests. */
enum reverse_cond { REVERSE_NONE, REVERSE_NAK, REVERSE_RNR, REVERSE_FATAL };
enum reverse_loss {
    LOSS_NONE,
    LOSS_REFUSED, /* it sent a fatal NAK: 'code'. */
    LOSS_SILENT,
    LOSS_SLOW,
    LOSS_UNANSWERED, /* it answered no question: it lacked nothing, or was doubted. */
    LOSS_ELSEWHERE,  /* while it waited: its queue pair expects another PSN. */
    LOSS_HALF,       /* while it was asked where it stands: it had a part of a message. */
};
struct reverse_branch_info {
    uint32_t id;
    bool anchored; /* una is known, and the branch counts. */
    bool waits;    /* R17: it does not count yet. */
    bool late;     /* it has waited, and has joined... */
    psn_t first;   /* ...from this PSN on. */
    bool found; /* lib/aggregate.h: where its queue pair stands is known: 'una', in its numbers. */
    enum reverse_loss lost;
    bool doubted;         /* reverse_doubt(), and it has not answered yet... */
    bool unanswered;      /* ...nor ever. */
    bool pruned;          /* lost, and does not count: una is where it was lost. */
    bool slow;            /* not lost for that. */
    uint64_t n_confirmed; /* if slow: PSNs in the last liveness time. */
    psn_t una;            /* next PSN not confirmed. */
    enum reverse_cond cond;
    uint8_t code; /* RNR timer code, or fatal syndrome. */
    uint32_t msn;
    uint64_t n_acks, /* ACKs taken in that said something new; n_naks and so on likewise. */
        n_dups,      /* responses of any kind that said nothing new. */
        n_naks, n_rnrs, n_fatals;
    uint64_t n_repeats, /* copies of PSNs that had gone down before. */
        n_useless,      /* of n_repeats: copies of PSNs that the branch had confirmed. */
        n_filtered;     /* copies that the filter spared the branch. */
};
struct reverse_info {
    bool started;  /* a PSN went down. */
    bool anchored; /* there are branches that count, and una of all is known. */
    bool quiesced; /* a branch may be added now. */
    bool blank;    /* R17: nobody joins, since nothing bounds what an earlier life has said. */
    psn_t h;       /* H: highest PSN sent down, + 1. */
    psn_t m;       /* minimum of una; f if it is not known. */
    psn_t f;       /* F: last una sent up. */
    size_t n_branches;
    size_t n_lost;      /* branches that are lost. */
    size_t n_waiting;   /* branches that wait. */
    uint64_t n_joined;  /* how often a branch ceased to wait. */
    uint64_t n_decided; /* how often it became known whether or where a branch is. */
    uint64_t n_paced;   /* how often a branch began or ceased to be slow, or was found so again. */
    uint64_t n_sent_acks, n_sent_naks, n_sent_rnrs, n_sent_fatals,
        n_sent_dups,     /* of n_sent_acks: sent again. */
        n_sent_presumed; /* of n_sent_naks and n_sent_rnrs: no branch asked for them. */
};
void reverse_get_info(const struct reverse *, struct reverse_info *);
bool reverse_get_branch(const struct reverse *, uint32_t id, struct reverse_branch_info *);

#endif /* lib/reverse.h */
