/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the last sequence numbers were seen, so that each counts once.  Numbers wrap.  All zero at
 * first: none was.
 */
#ifndef LIB_SEQ_WINDOW_H
#define LIB_SEQ_WINDOW_H 1

#include <stdint.h>

#define SEQ_WINDOW 64

struct seq_window {
    uint32_t next; /* behind the highest number. */
    uint64_t seen; /* bit i: next - 1 - i was. */
};

enum seq_verdict {
    SEQ_NEW,
    SEQ_SEEN,
    SEQ_OLD, /* below the window: nobody knows. */
};

/* 'seq' is the highest number from now on. */
static inline void
seq_window_advance(struct seq_window *w, uint32_t seq)
{
    uint32_t by = seq + 1 - w->next;

    w->seen = by < SEQ_WINDOW ? w->seen << by : 0;
    w->next = seq + 1;
}

/* Notes a number that is not above the highest. */
static inline enum seq_verdict
seq_window_note(struct seq_window *w, uint32_t seq)
{
    uint32_t age = w->next - 1 - seq;

    if (age >= SEQ_WINDOW) {
        return SEQ_OLD;
    }
    uint64_t bit = UINT64_C(1) << age;
    enum seq_verdict verdict = w->seen & bit ? SEQ_SEEN : SEQ_NEW;

    w->seen |= bit;
    return verdict;
}

#endif /* lib/seq-window.h */
