/* SPDX-License-Identifier: Apache-2.0
 *
 * How good a way is.
 *
 * A long probe that comes back shows all that a short one does, and more.  One that is lost says only
 * that long packets do not pass: it is not among the last 16, and counts in a row with other long ones.
 * As long as the last long one was lost the way is not good, and after two it does not recover by short
 * ones.
 */
#include "lib/path-health.h"

#define LOST_IN_A_ROW   2 /* then it is bad, short or long. */
#define LOST_OF_LAST    5 /* likewise, of the last 16. */
#define GOOD_IN_A_ROW   3 /* from suspect to good. */
#define GOOD_AGAIN      5 /* from recovering to good. */
#define BACKOFF_MAX     4 /* the interval is doubled so often. */

#define HOLD_DOWN_FIRST UINT64_C(1000000)
#define HOLD_DOWN_MAX   UINT64_C(60000000)
#define QUIET           UINT64_C(60000000)

static const char *const path_state_rows[] = {
    [PATH_GOOD] = "good",       [PATH_UNKNOWN] = "unknown",
    [PATH_SUSPECT] = "suspect", [PATH_RECOVERING] = "recovering",
    [PATH_BAD] = "bad",
};
WORDS_DEFINE(path_state, enum path_state, path_state_rows);

void
path_health_init(struct path_health *h, uint64_t now)
{
    *h = (struct path_health){.state = PATH_UNKNOWN, .since = now};
}

static void
count_up(uint8_t *n)
{
    *n += *n < UINT8_MAX;
}

static void
enter(struct path_health *h, enum path_state state, uint64_t now)
{
    if (h->state != state) {
        h->state = state;
        h->since = now;
    }
}

/* Each whole minute since it was bad or the hold-down was made shorter halves the hold-down. */
static void
forget_old_troubles(struct path_health *h, uint64_t now)
{
    if (h->state == PATH_BAD || h->state == PATH_RECOVERING) {
        return;
    }
    while (h->hold_down && now - h->quiet_from >= QUIET) {
        h->quiet_from += QUIET;
        h->hold_down = h->hold_down / 2 < HOLD_DOWN_FIRST ? 0 : h->hold_down / 2;
    }
}

static void
become_bad(struct path_health *h, uint64_t now)
{
    enter(h, PATH_BAD, now);
    h->bad_since = now;
    h->hold_down = !h->hold_down                      ? HOLD_DOWN_FIRST
                   : h->hold_down < HOLD_DOWN_MAX / 2 ? h->hold_down * 2
                                                      : HOLD_DOWN_MAX;
    h->lost = 0; /* these are judged. */
}

static void
become_good(struct path_health *h, uint64_t now)
{
    if (h->state == PATH_RECOVERING) {
        h->quiet_from = now;
    }
    enter(h, PATH_GOOD, now);
}

void
path_health_came_back(struct path_health *h, bool large, uint64_t now)
{
    forget_old_troubles(h, now);
    h->n_lost = 0;
    h->lost = (uint16_t) (h->lost << 1);
    count_up(&h->n_good);
    if (large) {
        h->n_large_lost = 0;
    }
    switch (h->state) {
    case PATH_GOOD: break;
    case PATH_UNKNOWN: become_good(h, now); break;
    case PATH_SUSPECT:
        if (h->n_good >= GOOD_IN_A_ROW && !h->n_large_lost) {
            become_good(h, now);
        }
        break;
    case PATH_RECOVERING:
        if (h->n_good >= GOOD_AGAIN && !h->n_large_lost && now - h->bad_since >= h->hold_down) {
            become_good(h, now);
        }
        break;
    case PATH_BAD:
        if (h->n_large_lost < LOST_IN_A_ROW) {
            h->n_good = 1;
            enter(h, PATH_RECOVERING, now);
        }
        break;
    }
}

static bool
is_bad(const struct path_health *h)
{
    return h->n_lost >= LOST_IN_A_ROW || h->n_large_lost >= LOST_IN_A_ROW
           || __builtin_popcount(h->lost) >= LOST_OF_LAST;
}

/* One more is. */
static void
judge_loss(struct path_health *h, uint64_t now)
{
    h->n_good = 0;
    switch (h->state) {
    case PATH_GOOD:
    case PATH_UNKNOWN:
    case PATH_SUSPECT:
        if (is_bad(h)) {
            become_bad(h, now);
        } else {
            enter(h, PATH_SUSPECT, now);
        }
        break;
    case PATH_RECOVERING:
        if (is_bad(h)) {
            become_bad(h, now);
        }
        break;
    case PATH_BAD: h->lost = 0; break;
    }
}

void
path_health_lost(struct path_health *h, bool large, uint64_t now)
{
    forget_old_troubles(h, now);
    if (large) {
        count_up(&h->n_large_lost);
    } else {
        count_up(&h->n_lost);
        h->lost = (uint16_t) (h->lost << 1 | 1);
    }
    judge_loss(h, now);
}

void
path_health_surveyed(struct path_health *h, bool came_back, uint64_t now)
{
    forget_old_troubles(h, now);
    h->lost = (uint16_t) (h->lost << 1 | !came_back);
    if (!came_back) {
        judge_loss(h, now);
    }
}

bool
path_health_loses_long(const struct path_health *h)
{
    return h->state == PATH_BAD && h->n_large_lost >= LOST_IN_A_ROW && h->n_lost < LOST_IN_A_ROW;
}

unsigned
path_health_backoff(const struct path_health *h)
{
    unsigned n = h->n_lost > h->n_large_lost ? h->n_lost : h->n_large_lost;
    unsigned more = n > LOST_IN_A_ROW ? n - LOST_IN_A_ROW : 0;

    return h->state == PATH_BAD ? 1u << (more < BACKOFF_MAX ? more : BACKOFF_MAX) : 1;
}
