/* SPDX-License-Identifier: Apache-2.0
 *
 * How many of the packets on a way are lost?
 */
#include "lib/survey.h"

#include <stddef.h>

#define LOST_FOR_ANOTHER 2 /* so many lost, and there is another one. */

void
survey_begin(struct survey *s, uint64_t now)
{
    if (!s->on) {
        *s = (struct survey){.on = true, .next = now};
    }
}

void
survey_sent(struct survey *s, uint32_t seq, uint64_t gap, uint64_t now)
{
    s->packets[s->n_sent++] = (struct survey_packet){.seq = seq, .sent = now};
    s->next = now + gap;
}

static void
decide(struct survey *s, struct survey_packet *p, bool lost, uint64_t now)
{
    p->decided = true;
    s->n_lost += lost;
    if (++s->n_decided == SURVEY_PACKETS) {
        s->on = false;
        if (s->n_lost >= LOST_FOR_ANOTHER) {
            survey_begin(s, now);
        }
    }
}

bool
survey_came_back(struct survey *s, uint32_t seq, uint64_t now)
{
    for (unsigned i = 0; s->on && i < s->n_sent; i++) {
        struct survey_packet *p = &s->packets[i];

        if (p->seq == seq && !p->decided) {
            decide(s, p, false, now);
            return true;
        }
    }
    return false;
}

/* The one that has been awaited for the longest time; NULL: none is. */
static const struct survey_packet *
oldest(const struct survey *s)
{
    for (unsigned i = 0; s->on && i < s->n_sent; i++) {
        if (!s->packets[i].decided) {
            return &s->packets[i];
        }
    }
    return NULL;
}

bool
survey_take_lost(struct survey *s, uint64_t timeout, uint64_t now)
{
    const struct survey_packet *p = oldest(s);

    if (!p || now - p->sent < timeout) {
        return false;
    }
    decide(s, &s->packets[p - s->packets], true, now);
    return true;
}

bool
survey_is_due(const struct survey *s, uint64_t now)
{
    return s->on && s->n_sent < SURVEY_PACKETS && now >= s->next;
}

uint64_t
survey_deadline(const struct survey *s, uint64_t timeout)
{
    const struct survey_packet *p = oldest(s);
    uint64_t next = s->on && s->n_sent < SURVEY_PACKETS ? s->next : UINT64_MAX;
    uint64_t lost = p ? p->sent + timeout : UINT64_MAX;

    return next < lost ? next : lost;
}
