/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path of one group epoch at one node: merges the ACKs and NAKs of
 * the branches into the one stream that an RC requester understands.
 *
 * A pure machine: no packets, clocks or I/O.  docs/draft-notes.md, "The
 * reverse-path rule", is its specification; draft-li 5.3.1, 5.3.2 and 8.
 *
 * A branch is lost when it has sent a fatal NAK, or makes no progress for the
 * liveness time although it is asked.  It then stands for a fatal NAK at its una,
 * or, with policy prune, is not counted any more.  The last branch is never
 * pruned: its NAK goes up, to a node that may have others.  (R12 of that text.)
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
/* How far below H the first response of an unanchored branch may be. */
#define REVERSE_ANCHOR_WINDOW       (1 << 22)

struct reverse_params {
    psn_t start_psn;
    bool started_before;   /* in an earlier life of the node, of which nothing is known: R8. */
    uint32_t dup_ack_usec; /* least time between two re-sent ACKs. */
    uint32_t hold_usec;    /* how long a NAK above the minimum is held before NAK(m). */
};

/* What is to be sent up after an event: nothing, or one response. */
struct reverse_out {
    bool send;
    uint8_t syndrome; /* AETH syndrome. */
    psn_t psn;
    uint32_t msn; /* of the branch that gives the minimum. */
    bool moved;   /* it confirms more than what was said before. */
};

struct reverse *reverse_create(const struct reverse_params *);
void reverse_destroy(struct reverse *);

/* What becomes of a branch's sequence NAK while others have confirmed less (R7). */
enum reverse_nak {
    NAK_HOLD,    /* it waits for them, hold_usec at most; then NAK(m) goes up. */
    NAK_LITERAL, /* NAK(m) at once, which is the draft's letter. */
    NAK_SOLICIT, /* as NAK_HOLD, and they are asked: reverse_asks(). */
};

struct reverse_policy {
    enum reverse_nak nak;
    bool filter; /* no copy of what a branch has confirmed: reverse_filters(). */
    /* What becomes of branches that are lost; takes effect on those that are lost already with the
     * next event.  'liveness_usec' 0: no branch is ever silent.  Another time than before begins
     * anew for all. */
    bool prune;
    uint64_t liveness_usec;
    /* At the root: losses that nobody reports are presumed when answers are overdue (R14), which they
     * are no sooner than that; 0: never. */
    uint64_t presume_usec;
};
/* May be called at any time.  At first everything is 0. */
void reverse_set_policy(struct reverse *, const struct reverse_policy *);

/* Branch set.  Ids are the caller's, unique, any value.  A branch added before the first packet went
 * down starts at start_psn; one added later counts as confirmed up to H (its receive PSN is H by
 * agreement), which is possible only while everything sent down is confirmed and that was sent up.
 * reverse_branch_add() returns 0, EEXIST, EBUSY (not quiesced; nothing changed) or ENOMEM.
 * Removal may move the minimum: the result says what to send, once all
 * 'ids' (or none) have gone.  If only pruned branches are left, one of them counts again, as lost. */
int reverse_branch_add(struct reverse *, uint32_t id, uint64_t now);
struct reverse_out
reverse_branches_remove(struct reverse *, const uint32_t *ids, size_t n, uint64_t now);

/* Would PSN q raise H by more than an unverified packet may?  Then the caller
 * verifies the ICRC first. */
bool reverse_jump_suspicious(const struct reverse *, psn_t q);
/* PSN q goes down.  The first call decides between start and anchoring; with no
 * branches nothing goes down and nothing changes.
 * 'ack_req' says that a response is owed: the packet's AckReq bit.  If a fatal
 * NAK is latched and owed again, the result is that NAK.  If all have confirmed q, the result
 * answers, since it may be that nobody below does. */
struct reverse_out reverse_down(struct reverse *, psn_t q, bool ack_req, uint64_t now);
/* With the filter: have all branches confirmed q, so that it goes to nobody? */
bool reverse_filters_all(const struct reverse *, psn_t q);
/* For each branch that would get a copy of the PSN q that goes down, in this order: */
/* With the filter: has it confirmed q?  Then no copy is made for it, and that is counted. */
bool reverse_filters(struct reverse *, uint32_t id, psn_t q);
/* Is it to be asked how far it is?  Then its copy gets AckReq. */
bool reverse_asks(const struct reverse *, uint32_t id);
/* May it be that somebody is to be asked? */
bool reverse_asks_any(const struct reverse *);
/* A copy was made for it, so an answer may be expected from it.  'sent': the copy went
 * out (the branch is being served: clears its sequence or RNR NAK at q). */
void reverse_copied(struct reverse *, uint32_t id, psn_t q, bool sent);
/* Branches that share all get the same copies; at first none does.  For them, instead of the three above,
 * which would cost so much for each: */
void reverse_share(struct reverse *, uint32_t id, bool shares);
/* Is one of them to be asked? */
bool reverse_asks_shared(const struct reverse *);
/* A copy was made for them.  Of a PSN that was not the next one, or else every 2^22, this costs O(n). */
void reverse_copied_shared(struct reverse *, psn_t q, bool sent);
/* None was, because of reverse_filters_all(); O(n). */
void reverse_filtered_shared(struct reverse *, psn_t q);
/* Was the branch lost, and is it not counted any more?  Copies are of no use to it. */
bool reverse_is_pruned(const struct reverse *, uint32_t id);

/* Response from a branch.  *why is DROP_none if it was taken in, otherwise
 * unknown_branch, psn_not_sent or resp_opcode (reserved syndrome). */
struct reverse_out reverse_response(struct reverse *, uint32_t id, psn_t psn, uint8_t syndrome,
                                    uint32_t msn, uint64_t now, enum drop_reason *why);

/* ACK(m - 1), which goes up before 'nak', the NAK(m) that was to be sent. */
struct reverse_out reverse_ack_before(struct reverse *, const struct reverse_out *nak);

/* Time at which reverse_timer() wants to be called; UINT64_MAX: never. */
uint64_t reverse_deadline(const struct reverse *);
struct reverse_out reverse_timer(struct reverse *, uint64_t now);

/* For display and tests. */
enum reverse_cond { REVERSE_NONE, REVERSE_NAK, REVERSE_RNR, REVERSE_FATAL };
enum reverse_loss {
    LOSS_NONE,
    LOSS_REFUSED, /* it sent a fatal NAK: 'code'. */
    LOSS_SILENT,
};
struct reverse_branch_info {
    uint32_t id;
    bool anchored; /* una is known, and it counts. */
    enum reverse_loss lost;
    bool pruned; /* lost, and does not count: una is where it was lost. */
    psn_t una;   /* next PSN not confirmed. */
    enum reverse_cond cond;
    uint8_t code; /* RNR timer code, or fatal syndrome. */
    uint32_t msn;
    /* Responses taken in, by kind; n_dups: those that said nothing new. */
    uint64_t n_acks, n_dups, n_naks, n_rnrs, n_fatals;
    /* Copies of PSNs that had gone down before; of them: those of what it had confirmed.  And copies
     * that the filter spared it. */
    uint64_t n_repeats, n_useless, n_filtered;
};
struct reverse_info {
    bool started;  /* a PSN went down. */
    bool anchored; /* there are branches, and una of all is known. */
    bool quiesced; /* a branch may be added now. */
    psn_t h;       /* highest PSN sent down, + 1. */
    psn_t m;       /* minimum of una; f if it is not known. */
    psn_t f;       /* last una sent up. */
    size_t n_branches;
    size_t n_lost; /* of them. */
    /* n_sent_dups: those of n_sent_acks that were sent again.  n_sent_presumed: those of n_sent_naks
     * and n_sent_rnrs that no branch asked for. */
    uint64_t n_sent_acks, n_sent_naks, n_sent_rnrs, n_sent_fatals, n_sent_dups, n_sent_presumed;
};
void reverse_get_info(const struct reverse *, struct reverse_info *);
bool reverse_get_branch(const struct reverse *, uint32_t id, struct reverse_branch_info *);

#endif /* lib/reverse.h */
