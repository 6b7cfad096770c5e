/* SPDX-License-Identifier: Apache-2.0
 *
 * States of a way (docs/draft-notes.md, R22), and a comparison with a model that keeps the whole
 * history and judges it anew after each probe.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/path-health.h"
#include "lib/prng.h"
#include "tests/unit/parse-check.h"
#include "tests/unit/suites.h"

#define MSEC     UINT64_C(1000)
#define SEC      (1000 * MSEC)
#define MINUTE   (60 * SEC)
#define INTERVAL (100 * MSEC)

/* A way and its clock.  Probes are letters: g and l, good and lost; G and L are long ones, s and x those of a
 * survey. */
struct way {
    struct path_health h;
    uint64_t now;
};

static struct way
new_way(void)
{
    struct way w = {.now = 5 * SEC};

    path_health_init(&w.h, w.now);
    return w;
}

static void
probe(struct path_health *h, char outcome, uint64_t now)
{
    bool large = outcome == 'G' || outcome == 'L';

    if (outcome == 's' || outcome == 'x') {
        path_health_surveyed(h, outcome == 's', now);
    } else if (outcome == 'g' || outcome == 'G') {
        path_health_came_back(h, large, now);
    } else {
        path_health_lost(h, large, now);
    }
}

/* The state after these, one in each interval. */
static enum path_state
after(struct way *w, const char *outcomes)
{
    for (const char *c = outcomes; *c; c++) {
        w->now += INTERVAL;
        probe(&w->h, *c, w->now);
    }
    return w->h.state;
}

static const struct {
    const char *outcomes;
    enum path_state state;
} histories[] = {
    /* Nothing was heard. */
    {"", PATH_UNKNOWN},
    {"g", PATH_GOOD},
    {"G", PATH_GOOD},
    {"l", PATH_SUSPECT},
    {"L", PATH_SUSPECT},
    {"ll", PATH_BAD},
    /* One is lost: three good ones in a row clear it. */
    {"gl", PATH_SUSPECT},
    {"glg", PATH_SUSPECT},
    {"glgg", PATH_SUSPECT},
    {"glggg", PATH_GOOD},
    {"glgglggg", PATH_GOOD},
    /* Two in a row. */
    {"gll", PATH_BAD},
    {"glgl", PATH_SUSPECT},
    {"glggl", PATH_SUSPECT},
    /* Five of the last 16. */
    {"glgglgglggl", PATH_SUSPECT},
    {"glgglgglgglggl", PATH_BAD},
    {"glggglggglggglgggl", PATH_SUSPECT}, /* the first is the 17th from the end. */
    {"glggglggglgglgggl", PATH_BAD},
    {"glgglggglgglggggl", PATH_BAD},
    {"glgglgggggglgglgggl", PATH_SUSPECT},
    /* Long ones that are lost are not among the 16, and count in a row with long ones. */
    {"gL", PATH_SUSPECT},
    {"gLggg", PATH_SUSPECT},
    {"gLgggG", PATH_GOOD},
    {"gLG", PATH_SUSPECT},
    {"gLGgg", PATH_GOOD},
    {"gLgggggggL", PATH_BAD},
    {"gLL", PATH_BAD},
    {"gLGL", PATH_SUSPECT},
    {"gLl", PATH_SUSPECT},
    {"glL", PATH_SUSPECT},
    {"glLl", PATH_BAD}, /* nothing came back in between. */
    {"glgglgglgglLggl", PATH_BAD},
    {"glgglggLgglggg", PATH_SUSPECT},
    /* Those of a survey are among the 16, and not in a row. */
    {"s", PATH_UNKNOWN},
    {"gx", PATH_SUSPECT},
    {"gxx", PATH_SUSPECT},
    {"gxxxxggg", PATH_GOOD},
    {"gxxxxx", PATH_BAD},
    {"gxsxsssxssssxssx", PATH_BAD},
    {"gxsxsssxssssxsssssx", PATH_SUSPECT}, /* the first is the 18th from the end. */
    {"gxlsxggsxx", PATH_BAD},
    {"glxg", PATH_SUSPECT},
    {"glxl", PATH_BAD}, /* no round came back in between. */
    {"glsl", PATH_BAD},
    {"gggxggs", PATH_SUSPECT},
    {"gggxggsg", PATH_GOOD},
    {"gllgxxxx", PATH_RECOVERING},
    {"gllgxxxxx", PATH_BAD},
    {"glls", PATH_BAD},
    /* It comes back. */
    {"gllg", PATH_RECOVERING},
    {"gllG", PATH_RECOVERING},
    {"glllllllg", PATH_RECOVERING},
    {"gllgggg", PATH_RECOVERING},
    {"gllggggg", PATH_RECOVERING}, /* the hold-down is not over. */
    {"gllgggggggggg", PATH_GOOD},
    {"gllgl", PATH_RECOVERING},
    {"gllgggggggggl", PATH_RECOVERING}, /* in the last moment. */
    {"gllgggggggggll", PATH_BAD},
    {"gllgL", PATH_RECOVERING},
    {"gllgLL", PATH_BAD},
    {"gllglglglgl", PATH_RECOVERING},
    {"gllglglglglgl", PATH_BAD}, /* five of the last 16. */
    {"gllggggggggglgggg", PATH_RECOVERING},
    {"gllggggggggglggggg", PATH_GOOD},
    /* A way that carries short packets only. */
    {"gLLgggggggggggggggggg", PATH_BAD},
    {"gLLggggG", PATH_RECOVERING},
    {"gLLggggggggGgggg", PATH_GOOD},
    {"gllLg", PATH_RECOVERING},
    {"gllLggggggggggggggg", PATH_RECOVERING}, /* the long one is still to come. */
    {"gllLggggggggggggggG", PATH_GOOD},
};

START_TEST(history)
    {
        struct way w = new_way();
        enum path_state state = after(&w, histories[_i].outcomes);

        ck_assert_msg(state == histories[_i].state, "'%s': %s, not %s", histories[_i].outcomes,
                      path_state_name(state), path_state_name(histories[_i].state));
    }
END_TEST

START_TEST(since)
    {
        struct way w = new_way();

        ck_assert(w.h.since == 5 * SEC);
        after(&w, "g");
        uint64_t good = w.now;
        after(&w, "ggg");
        ck_assert(w.h.since == good);
        after(&w, "l");
        ck_assert(w.h.since == w.now && !w.h.bad_since);
        after(&w, "l");
        ck_assert(w.h.since == w.now && w.h.bad_since == w.now);
        uint64_t bad = w.now;
        after(&w, "lll");
        ck_assert(w.h.since == bad && w.h.bad_since == bad);
    }
END_TEST

/* While it is bad it is probed less and less often, down to a 16th. */
START_TEST(backoff)
    {
        struct way w = new_way();
        static const unsigned expected[] = {1, 2, 4, 8, 16, 16, 16};

        ck_assert_uint_eq(path_health_backoff(&w.h), 1);
        after(&w, "gl");
        ck_assert_uint_eq(path_health_backoff(&w.h), 1);
        for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
            ck_assert(after(&w, "l") == PATH_BAD);
            ck_assert_uint_eq(path_health_backoff(&w.h), expected[i]);
        }
        for (unsigned i = 0; i < 300; i++) { /* more than its counters count. */
            after(&w, "l");
        }
        ck_assert_uint_eq(path_health_backoff(&w.h), 16);
        ck_assert(after(&w, "g") == PATH_RECOVERING);
        ck_assert_uint_eq(path_health_backoff(&w.h), 1);
        ck_assert(after(&w, "ll") == PATH_BAD);
        ck_assert_uint_eq(path_health_backoff(&w.h), 1);
    }
END_TEST

/* Likewise if only long ones are lost, however many short ones come back. */
START_TEST(backoff_large)
    {
        struct way w = new_way();

        ck_assert(after(&w, "gLL") == PATH_BAD);
        ck_assert_uint_eq(path_health_backoff(&w.h), 1);
        ck_assert(after(&w, "gL") == PATH_BAD);
        ck_assert_uint_eq(path_health_backoff(&w.h), 2);
        ck_assert(after(&w, "gLgL") == PATH_BAD);
        ck_assert_uint_eq(path_health_backoff(&w.h), 8);
        ck_assert(after(&w, "G") == PATH_RECOVERING);
        ck_assert_uint_eq(path_health_backoff(&w.h), 1);
    }
END_TEST

/* How long after it became bad it is good again, if all probes from now on come back. */
static uint64_t
time_to_good(struct way *w)
{
    while (after(w, "g") != PATH_GOOD) {
        ck_assert(w->now - w->h.bad_since < 2 * MINUTE);
    }
    return w->now - w->h.bad_since;
}

START_TEST(hold_down)
    {
        static const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
        struct way w = new_way();

        for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
            ck_assert(after(&w, "gll") == PATH_BAD);
            uint64_t took = time_to_good(&w);
            ck_assert(took == seconds[i] * SEC);
        }
        /* A quiet minute halves it, from when it was good: 60, 30, 15, 7.5. */
        for (unsigned i = 0; i < 3 * MINUTE / INTERVAL; i++) {
            ck_assert(after(&w, "g") == PATH_GOOD);
        }
        ck_assert(w.h.hold_down == 7500 * MSEC);
        ck_assert(after(&w, "ll") == PATH_BAD);
        ck_assert(time_to_good(&w) == 15 * SEC);
    }
END_TEST

/* What is below the first one is none at all. */
START_TEST(hold_down_ends)
    {
        struct way w = new_way();

        ck_assert(after(&w, "gll") == PATH_BAD);
        time_to_good(&w);
        w.now += 60 * MINUTE;
        after(&w, "g");
        ck_assert(w.h.hold_down == 0);
        ck_assert(after(&w, "ll") == PATH_BAD);
        ck_assert(time_to_good(&w) == SEC);
    }
END_TEST

/* A long outage outlasts the hold-down: then five are enough, and not fewer. */
START_TEST(long_outage)
    {
        struct way w = new_way();

        after(&w, "gll");
        for (unsigned i = 0; i < 100; i++) {
            ck_assert(after(&w, "l") == PATH_BAD);
        }
        ck_assert(after(&w, "gggg") == PATH_RECOVERING);
        ck_assert(after(&w, "g") == PATH_GOOD);
    }
END_TEST

/* Each relapse while it recovers doubles the hold-down. */
START_TEST(flapping)
    {
        struct way w = new_way();

        after(&w, "gll");
        ck_assert(after(&w, "gllgllgll") == PATH_BAD);
        ck_assert(w.h.hold_down == 8 * SEC);
        ck_assert(time_to_good(&w) == 8 * SEC);
    }
END_TEST

/*
 * The model: it keeps all outcomes, and looks at them anew after each.
 */

#define MODEL_MAX 400

struct model {
    char outcome[MODEL_MAX];
    unsigned n;
    unsigned judged;   /* how many there were when it was last bad: these are not of the 16. */
    unsigned recovers; /* likewise, before it began to recover. */
    enum path_state state;
    uint64_t bad_since;
    uint64_t hold_down;   /* 0: none. */
    uint64_t quiet_since; /* good after it was bad. */
    unsigned n_halved;    /* since then. */
};

static bool
in(char c, const char *set)
{
    return strchr(set, c) != NULL;
}

/* Of the last ones, from 'first' on, how many in a row are in 'set', those in 'skip' left out? */
static unsigned
row(const struct model *m, unsigned first, const char *set, const char *skip)
{
    unsigned n = 0;

    for (unsigned i = m->n; i-- > first && (in(m->outcome[i], set) || in(m->outcome[i], skip));) {
        n += in(m->outcome[i], set);
    }
    return n;
}

static unsigned
lost_of_16(const struct model *m)
{
    unsigned n_seen = 0, n_lost = 0;

    for (unsigned i = m->n; i-- > m->judged && n_seen < 16;) {
        n_seen += m->outcome[i] != 'L';
        n_lost += in(m->outcome[i], "lx");
    }
    return n_lost;
}

static unsigned
large_lost(const struct model *m)
{
    return row(m, 0, "L", "glsx");
}

static void
model_bad(struct model *m, uint64_t now)
{
    m->state = PATH_BAD;
    m->bad_since = now;
    m->hold_down = m->hold_down ? m->hold_down * 2 : SEC;
    m->hold_down = m->hold_down > MINUTE ? MINUTE : m->hold_down;
    m->judged = m->n;
}

static void
model_probe(struct model *m, char outcome, uint64_t now)
{
    bool calm = m->state != PATH_BAD && m->state != PATH_RECOVERING;
    bool was_bad = m->state == PATH_BAD;

    for (; calm && m->n_halved < (now - m->quiet_since) / MINUTE; m->n_halved++) {
        m->hold_down = m->hold_down / 2 >= SEC ? m->hold_down / 2 : 0;
    }
    m->outcome[m->n++] = outcome;
    if (in(outcome, "lLx")) {
        if (was_bad) {
            m->judged = m->n;
        } else if (row(m, 0, "l", "Lsx") >= 2 || large_lost(m) >= 2 || lost_of_16(m) >= 5) {
            model_bad(m, now);
        } else if (m->state != PATH_RECOVERING) {
            m->state = PATH_SUSPECT;
        }
        return;
    }
    if (outcome == 's') {
        return;
    }
    unsigned n_good = row(m, m->state == PATH_RECOVERING ? m->recovers : 0, "gG", "s");
    if (was_bad && large_lost(m) < 2) {
        m->state = PATH_RECOVERING;
        m->recovers = m->n - 1;
    } else if (m->state == PATH_RECOVERING) {
        if (n_good >= 5 && !large_lost(m) && now >= m->bad_since + m->hold_down) {
            m->state = PATH_GOOD;
            m->quiet_since = now;
            m->n_halved = 0;
        }
    } else if (m->state == PATH_UNKNOWN
               || (m->state == PATH_SUSPECT && n_good >= 3 && !large_lost(m))) {
        m->state = PATH_GOOD;
    }
}

/* Random histories, of different weather, agree with the model after each probe. */
START_TEST(random_histories)
    {
        uint64_t seed = (uint64_t) _i;
        unsigned loss = (unsigned) prng_below(&seed, 60), large = (unsigned) prng_below(&seed, 40);
        unsigned surveyed = (unsigned) prng_below(&seed, 80);
        struct model m = {.state = PATH_UNKNOWN};
        struct path_health h;
        uint64_t now = SEC;

        path_health_init(&h, now);
        m.quiet_since = 0;
        while (m.n < MODEL_MAX) {
            bool is_lost = prng_below(&seed, 100) < loss, is_large = prng_below(&seed, 100) < large;
            bool is_survey = prng_below(&seed, 100) < surveyed;
            char outcome = is_survey  ? (is_lost ? 'x' : 's')
                           : is_large ? (is_lost ? 'L' : 'G')
                                      : (is_lost ? 'l' : 'g');

            now += prng_below(&seed, 50) ? prng_below(&seed, SEC) : prng_below(&seed, 5 * MINUTE);
            probe(&h, outcome, now);
            model_probe(&m, outcome, now);
            REQUIRE(h.state == m.state);
            REQUIRE(h.hold_down == m.hold_down && h.bad_since == m.bad_since);
            REQUIRE(h.n_large_lost == large_lost(&m));
            if (!prng_below(&seed, 40)) {
                loss = (unsigned) prng_below(&seed, 60);
            }
        }
    }
END_TEST

/* 0.1 % of loss, in both directions, and three packets for a confirmation: no verdict in a
 * million intervals. */
START_TEST(little_loss)
    {
        uint64_t seed = 22, now = 0;
        unsigned n_suspect = 0;
        struct path_health h;

        path_health_init(&h, now);
        for (unsigned i = 0; i < 1000000; i++) {
            now += INTERVAL;
            bool lost = prng_below(&seed, 1000) < 2;
            probe(&h, lost ? 'l' : 'g', now);
            if (lost) {
                bool all = true;

                n_suspect++;
                for (unsigned j = 0; j < 3; j++) {
                    all &= prng_below(&seed, 1000) < 2;
                }
                probe(&h, all ? 'l' : 'g', now);
            }
            REQUIRE(h.state != PATH_BAD);
        }
        ck_assert_uint_gt(n_suspect, 1000);
    }
END_TEST

/* 1 % of loss, confirmed: a way whose hold-down is as long as it gets is good again soon after that. */
START_TEST(little_loss_while_it_recovers)
    {
        struct way w = new_way();
        uint64_t seed = (uint64_t) _i;

        for (unsigned i = 0; i < 10; i++) {
            after(&w, "gll");
        }
        ck_assert(w.h.hold_down == MINUTE);
        uint64_t bad_since = w.now;
        while (w.h.state != PATH_GOOD) {
            bool lost = prng_below(&seed, 100) == 0;

            after(&w, lost ? "l" : "g");
            if (lost) {
                after(&w, "g");
            }
            REQUIRE(w.now - bad_since <= MINUTE + 10 * SEC);
        }
        ck_assert(w.now - bad_since >= MINUTE);
    }
END_TEST

Suite *
path_health_suite(void)
{
    Suite *s = suite_create("path_health");
    TCase *tc = tcase_create("path_health");

    tcase_add_loop_test(tc, history, 0, sizeof histories / sizeof histories[0]);
    tcase_add_test(tc, since);
    tcase_add_test(tc, backoff);
    tcase_add_test(tc, backoff_large);
    tcase_add_test(tc, hold_down);
    tcase_add_test(tc, hold_down_ends);
    tcase_add_test(tc, long_outage);
    tcase_add_test(tc, flapping);
    tcase_add_loop_test(tc, random_histories, 0, 500);
    tcase_add_test(tc, little_loss);
    tcase_add_loop_test(tc, little_loss_while_it_recovers, 0, 20);
    suite_add_tcase(s, tc);
    return s;
}
