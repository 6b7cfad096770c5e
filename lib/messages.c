/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the messages of a source.
 *
 * Packets are counted in the order of their PSNs, each once: 'next' is the lowest PSN that was not
 * counted.  A repeat is below it.  What comes behind a packet that is missing waits in 'ahead'; or
 * it comes again, since a source goes back to what is missing.
 *
 * Of what was counted, a bit for each PSN says whether a message begins there.  So the number
 * of a message is what was counted, less what began behind it.
 *
 * ICRCs are not checked here.  Messages follow each other without gaps, so a packet whose opcode
 * was damaged contradicts the one before it, or the one behind it does.  Nothing is counted on a
 * contradiction: receivers drop the damaged packet, and it comes again.  If it does not, numbers
 * stay unknown from there on, but none is wrong.
 */
#include "lib/messages.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/roce.h"

/* A source that is further away from 'next' has gone on without what is missing. */
#define LOST_TRACK (1 << 22)

#define WORD_BITS  64

/* Of a packet, as roce_opcode_info() has them. */
#define POSITION   (ROCE_F_START | ROCE_F_END)
#define SEEN       1

struct messages {
    bool known;
    bool doubtful;    /* the last packet that was counted, or the one at 'next', was damaged. */
    uint16_t awaited; /* ROCE_F_START: a message begins at 'next'; 0: one goes on there. */
    unsigned n_ahead;
    uint64_t start, next;                          /* PSNs that are not reduced. */
    uint64_t n_begun;                              /* messages that begin below 'next'. */
    uint8_t ahead[MESSAGES_AHEAD];                 /* by PSN: SEEN and position; 0: not seen. */
    uint64_t begins[MESSAGES_HISTORY / WORD_BITS]; /* a bit for each PSN. */
};

struct messages *
messages_create(psn_t start_psn, bool known)
{
    struct messages *m = must_calloc(1, sizeof *m);

    m->known = known;
    m->start = m->next = start_psn.v;
    m->awaited = ROCE_F_START;
    return m;
}

void
messages_destroy(struct messages *m)
{
    free(m);
}

/* What is to come behind a packet. */
static uint16_t
awaited_behind(uint16_t flags)
{
    static_assert(ROCE_F_END == 2 * ROCE_F_START, "one shift");
    return (flags & ROCE_F_END) >> 1;
}

/* Counts the packet at 'next' unless it contradicts the one before it. */
static inline bool
count(struct messages *m, uint16_t flags)
{
    uint64_t *word = &m->begins[m->next % MESSAGES_HISTORY / WORD_BITS];
    unsigned bit = m->next % WORD_BITS;
    uint64_t begins = (flags & ROCE_F_START) != 0;

    m->doubtful = (flags & ROCE_F_START) != m->awaited;
    if (m->doubtful) {
        return false;
    }
    *word = (*word & ~(UINT64_C(1) << bit)) | begins << bit;
    m->n_begun += begins;
    m->awaited = awaited_behind(flags);
    m->next++;
    return true;
}

/* Counts packets that came before what is counted now. */
static void
count_ahead(struct messages *m)
{
    bool counted = true;

    while (counted && m->n_ahead) {
        uint8_t *next = &m->ahead[m->next % MESSAGES_AHEAD];
        uint8_t flags = *next;

        m->n_ahead -= flags & SEEN;
        *next = 0;
        counted = flags && count(m, flags);
    }
}

static void
note_ahead(struct messages *m, psn_t psn, uint16_t flags)
{
    uint8_t *ahead = &m->ahead[psn.v % MESSAGES_AHEAD];

    m->n_ahead += !*ahead;
    *ahead = (uint8_t) (SEEN | (flags & POSITION));
}

void
messages_note(struct messages *m, psn_t psn, uint16_t flags)
{
    int32_t distance = psn_cmp(psn, psn_make((uint32_t) m->next));

    if (!m->known) {
        return;
    }
    if (distance == 0) {
        if (count(m, flags) && m->n_ahead) {
            count_ahead(m);
        }
    } else if (distance > 0 && distance < MESSAGES_AHEAD) {
        note_ahead(m, psn, flags);
    } else if (distance == -1 && m->next != m->start) {
        /* It may have been damaged before: no other packet says so. */
        m->awaited = awaited_behind(flags);
        m->doubtful = false;
    } else if (distance >= LOST_TRACK || distance <= -LOST_TRACK) {
        m->known = false;
    }
}

/* How many messages begin at 'n' PSNs from this one on. */
static uint64_t
n_beginning(const struct messages *m, psn_t psn, uint32_t n)
{
    uint64_t sum = 0;

    while (n) {
        unsigned bit = psn.v % WORD_BITS;
        uint32_t n_here = n < WORD_BITS - bit ? n : WORD_BITS - bit;
        uint64_t bits = m->begins[psn.v % MESSAGES_HISTORY / WORD_BITS] >> bit;

        /* cppcheck-suppress shiftTooManyBits; there is always at least one. */
        bits &= UINT64_MAX >> (WORD_BITS - n_here);
        sum += (unsigned) __builtin_popcountll(bits);
        psn = psn_add(psn, (int32_t) n_here);
        n -= n_here;
    }
    return sum;
}

enum messages_answer
messages_find(const struct messages *m, psn_t psn, uint64_t *number)
{
    int32_t back = psn_cmp(psn_make((uint32_t) m->next), psn);

    if (!m->known || back <= -MESSAGES_AHEAD || back > MESSAGES_HISTORY
        || (back > 0 && (uint64_t) back > m->next - m->start)) {
        return MESSAGE_UNKNOWN;
    }
    if (back < 0 || (back == 0 && m->doubtful)) {
        return MESSAGE_NOT_YET;
    }
    *number = back ? m->n_begun - 1 - n_beginning(m, psn_add(psn, 1), (uint32_t) back - 1)
                   : m->n_begun - !m->awaited;
    return MESSAGE_KNOWN;
}
