/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a receiver's queue pair stands that has served an earlier source: which PSN it expects, and
 * whether that begins a message (docs/draft-notes.md, R18).
 *
 * A pure machine.  The caller sends the questions that it asks for (lib/question.h), and gives it
 * what the queue pair answers.  Nobody else may send to that queue pair meanwhile.
 *
 * Times are microseconds on any monotonic scale.
 */
#ifndef LIB_POSITION_H
#define LIB_POSITION_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire.h"

enum position_state {
    POSITION_LOOKING, /* which PSN it expects is not known yet. */
    POSITION_TESTING, /* it is known, and not whether a message begins there. */
    POSITION_FOUND,   /* it expects 'psn', which begins a message. */
    POSITION_HALF,    /* it had a part of a message: it refused the test, or fell silent. */
    POSITION_SILENT,  /* it does not answer. */
};

struct position {
    enum position_state state;
    psn_t psn;    /* what it expects, as far as is known. */
    uint32_t msn; /* messages that it has completed, likewise. */
    psn_t hint;
    bool guessed;         /* 'psn' is only the hint: it has received nothing. */
    bool far;             /* the next question is half the PSN space ahead of the hint. */
    unsigned n_questions; /* since it was heard... */
    unsigned n_all;       /* ...and ever. */
    uint64_t next;        /* when it is asked next. */
};

/* 'hint' is a PSN that it expected at some time, at best when it was connected. */
void position_init(struct position *, psn_t hint, uint64_t now);
/* When position_timer() wants to be called; UINT64_MAX: never. */
uint64_t position_deadline(const struct position *);
/* True: a question with PSN *psn is to be sent now. */
bool position_timer(struct position *, uint64_t now, psn_t *psn);
/* It has said this: AETH syndrome, PSN of the BTH, MSN of the AETH. */
void position_answer(struct position *, uint8_t syndrome, psn_t psn, uint32_t msn, uint64_t now);

#endif /* lib/position.h */
