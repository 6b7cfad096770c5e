/* SPDX-License-Identifier: Apache-2.0
 *
 * CNPs of branches, merged: cases, and random events against a model that keeps a list of all CNPs.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/cnp-window.h"
#include "tests/unit/suites.h"

#define T 1000

static struct cnp_window *
window_of(size_t n)
{
    static const uint32_t ids[] = {7, 3, 0x80000005, 4};
    struct cnp_window *w = cnp_window_create();

    ck_assert_uint_le(n, sizeof ids / sizeof *ids);
    cnp_window_configure(w, T, 0, ids, n);
    return w;
}

static void
note(struct cnp_window *w, uint32_t id, unsigned n, uint64_t now)
{
    while (n--) {
        ck_assert_int_eq(cnp_window_note(w, id, true, 0, now), DROP_cnp);
    }
}

static uint32_t
count_of(const struct cnp_window *w, uint32_t id)
{
    struct cnp_branch_stats stats;

    ck_assert(cnp_window_get(w, id, &stats));
    return stats.count;
}

/* The window that ends at 'end' has chosen branch 'id'; and there is no other. */
static void
check_window(struct cnp_window *w, uint64_t end, uint32_t id)
{
    uint32_t chosen = 0;

    ck_assert_uint_eq(cnp_window_deadline(w), end);
    ck_assert(!cnp_window_timer(w, end - 1, &chosen));
    ck_assert(cnp_window_timer(w, end, &chosen));
    ck_assert_uint_eq(chosen, id);
    ck_assert_uint_eq(cnp_window_deadline(w), UINT64_MAX);
    ck_assert(!cnp_window_timer(w, end + 10 * T, &chosen));
}

/* The most in a window is chosen, whoever came first.  Each window begins with its first CNP, and
 * with nothing of those before.
 *
 * Proves MT-5.3.3-1, MT-5.3.3-2, MT-5.3.3-3, MT-8-3. */
START_TEST(most_in_each_window)
    {
        struct cnp_window *w = window_of(4);
        uint32_t last;

        ck_assert_uint_eq(cnp_window_deadline(w), UINT64_MAX);
        note(w, 3, 1, 50);
        note(w, 7, 3, 60);
        note(w, 4, 2, 49 + T);
        ck_assert_uint_eq(count_of(w, 7), 3);
        check_window(w, 50 + T, 7);
        ck_assert_uint_eq(count_of(w, 3) + count_of(w, 4) + count_of(w, 7), 0);

        note(w, 4, 2, 5 * T); /* fewer than 7 had, and fewer than 4 and 7 have had in all. */
        note(w, 3, 1, 5 * T);
        check_window(w, 6 * T, 4);
        ck_assert_uint_eq(cnp_window_n_sent(w, &last), 2);
        ck_assert_uint_eq(last, 4);
        cnp_window_destroy(w);
    }
END_TEST

/* H30, L1. */
START_TEST(of_equals_the_lowest)
    {
        struct cnp_window *w = window_of(4);

        note(w, 0x80000005, 2, 100);
        note(w, 7, 2, 100);
        note(w, 4, 2, 100);
        check_window(w, 100 + T, 4);
        cnp_window_destroy(w);
    }
END_TEST

/* A branch that leaves takes what it had with it, one that stays keeps it; a window that is empty at
 * its end sends nothing.  T may change: the next window has the new one.
 *
 * Proves MT-5.3.3-4. */
START_TEST(other_branches)
    {
        static const uint32_t without_7[] = {4, 3}, none[] = {9};
        struct cnp_window *w = window_of(4);
        uint32_t id = 0;

        note(w, 7, 3, 100);
        note(w, 3, 1, 100);
        cnp_window_configure(w, 2 * T, 0, without_7, 2);
        ck_assert_int_eq(cnp_window_note(w, 7, true, 0, 101), DROP_unknown_branch);
        check_window(w, 100 + T, 3);

        note(w, 3, 1, 10 * T);
        ck_assert_uint_eq(cnp_window_deadline(w), 12 * T);
        cnp_window_configure(w, 2 * T, 0, none, 1);
        ck_assert(!cnp_window_timer(w, 12 * T, &id));
        ck_assert_uint_eq(cnp_window_deadline(w), UINT64_MAX);
        ck_assert_uint_eq(cnp_window_n_sent(w, &id), 1);
        cnp_window_destroy(w);
    }
END_TEST

/* Proves MT-9-5. */
START_TEST(one_in_an_interval)
    {
        struct cnp_window *w = window_of(2);
        struct cnp_branch_stats stats;

        ck_assert_int_eq(cnp_window_note(w, 3, true, 500, 0), DROP_cnp);
        ck_assert_int_eq(cnp_window_note(w, 3, false, 500, 499), DROP_cnp_soon);
        ck_assert_int_eq(cnp_window_note(w, 7, true, 500, 499), DROP_cnp); /* another branch. */
        ck_assert_int_eq(cnp_window_note(w, 3, true, 500, 500), DROP_cnp);
        ck_assert_int_eq(cnp_window_note(w, 3, true, 500, 999), DROP_cnp_soon);
        ck_assert(cnp_window_get(w, 3, &stats));
        ck_assert_uint_eq(stats.n, 2);
        ck_assert_uint_eq(stats.n_limited, 2);
        ck_assert_uint_eq(stats.n_own, 3);
        ck_assert_uint_eq(stats.count, 2);
        ck_assert_uint_eq(stats.max, 2);
        ck_assert(!cnp_window_get(w, 4, &stats));
        cnp_window_destroy(w);
    }
END_TEST

/*
 * The model: every CNP that came is kept, and all numbers are counted anew from that.
 */

#define MODEL_BRANCHES 6
#define MODEL_CNPS     4000

struct model {
    struct {
        uint32_t id;
        uint64_t at;
        bool own, counts;
        unsigned window; /* number of the window that it counts in; 0 none. */
    } cnps[MODEL_CNPS];
    size_t n;
    bool there[MODEL_BRANCHES + 1]; /* by id. */
    uint32_t usec, gap;
    uint64_t sent[MODEL_CNPS]; /* when CNPs went up. */
    size_t n_sent;
    uint64_t end; /* of the window that runs; UINT64_MAX: none does. */
    unsigned window;
    uint32_t chosen[MODEL_CNPS]; /* by window; 0: none, or one that has left. */
};

static unsigned
model_count(const struct model *m, uint32_t id, unsigned window)
{
    unsigned n = 0;

    for (size_t i = 0; i < m->n; i++) {
        n += m->cnps[i].id == id && m->cnps[i].counts && m->cnps[i].window == window;
    }
    return n;
}

/* A branch that leaves is forgotten. */
static void
model_forget(struct model *m, uint32_t id)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->cnps[i].id == id) {
            m->cnps[i].id = 0;
        }
    }
    for (unsigned window = 1; window <= m->window; window++) {
        m->chosen[window] = m->chosen[window] == id ? 0 : m->chosen[window];
    }
}

static enum drop_reason
model_note(struct model *m, uint32_t id, bool own, uint32_t interval, uint64_t now)
{
    bool soon = false;

    if (!m->there[id]) {
        return DROP_unknown_branch;
    }
    for (size_t i = 0; i < m->n; i++) {
        soon |= m->cnps[i].id == id && m->cnps[i].counts && m->cnps[i].at + interval > now;
    }
    ck_assert_uint_lt(m->n, MODEL_CNPS);
    if (!soon && m->end == UINT64_MAX) {
        m->window++;
        m->end = now + m->usec;
        for (size_t i = 0; i < m->n_sent; i++) {
            m->end = m->sent[i] + m->gap > m->end ? m->sent[i] + m->gap : m->end;
        }
    }
    m->cnps[m->n].id = id;
    m->cnps[m->n].at = now;
    m->cnps[m->n].own = own;
    m->cnps[m->n].counts = !soon;
    m->cnps[m->n++].window = m->window;
    return soon ? DROP_cnp_soon : DROP_cnp;
}

/* The branch that the window chooses, 0: none. */
static uint32_t
model_end(struct model *m)
{
    uint32_t most = 0;

    for (uint32_t id = MODEL_BRANCHES; id > 0; id--) {
        unsigned n = model_count(m, id, m->window);

        if (n && (!most || n >= model_count(m, most, m->window))) {
            most = id;
        }
    }
    m->chosen[m->window] = most;
    m->end = UINT64_MAX;
    return most;
}

static void
model_compare(const struct model *m, const struct cnp_window *w)
{
    ck_assert_uint_eq(cnp_window_deadline(w), m->end);
    for (uint32_t id = 1; id <= MODEL_BRANCHES; id++) {
        struct cnp_branch_stats s, e = {0};

        ck_assert(cnp_window_get(w, id, &s) == m->there[id]);
        if (!m->there[id]) {
            continue;
        }
        for (size_t i = 0; i < m->n; i++) {
            bool is = m->cnps[i].id == id;

            e.n += is && m->cnps[i].counts;
            e.n_limited += is && !m->cnps[i].counts;
            e.n_own += is && m->cnps[i].own;
        }
        for (unsigned window = 1; window <= m->window; window++) {
            uint32_t n = model_count(m, id, window);

            e.max = n > e.max ? n : e.max;
            e.n_chosen += m->chosen[window] == id;
        }
        e.count = m->end == UINT64_MAX ? 0 : model_count(m, id, m->window);
        ck_assert_uint_eq(s.n, e.n);
        ck_assert_uint_eq(s.n_limited, e.n_limited);
        ck_assert_uint_eq(s.n_own, e.n_own);
        ck_assert_uint_eq(s.n_chosen, e.n_chosen);
        ck_assert_uint_eq(s.max, e.max);
        ck_assert_uint_eq(s.count, e.count);
    }
}

static void
reconfigure(struct model *m, struct cnp_window *w)
{
    uint32_t ids[MODEL_BRANCHES];
    size_t n = 0;

    m->usec = (uint32_t) (rand() % 300);
    m->gap = (uint32_t) (rand() % 2 ? rand() % 900 : 0);
    for (uint32_t id = MODEL_BRANCHES; id > 0; id--) {
        m->there[id] = rand() % 4;
        if (m->there[id]) {
            ids[n++] = id;
        } else {
            model_forget(m, id);
        }
    }
    if (n > 1) { /* any order. */
        uint32_t first = ids[0];

        ids[0] = ids[n - 1];
        ids[n - 1] = first;
    }
    cnp_window_configure(w, m->usec, m->gap, ids, n);
}

START_TEST(as_the_model)
    {
        struct cnp_window *w = cnp_window_create();
        struct model *m = calloc(1, sizeof *m);
        uint64_t now = 1000;
        unsigned n_soon = 0;
        uint32_t last, chosen = 0;

        srand((unsigned) _i);
        m->end = UINT64_MAX;
        reconfigure(m, w);
        for (unsigned i = 0; i < 400; i++) {
            uint32_t id = 1 + (uint32_t) rand() % MODEL_BRANCHES, interval = rand() % 2 ? 0 : 60;
            bool own = rand() % 2;

            now += (uint64_t) (rand() % 30);
            if (rand() % 40 == 0) {
                reconfigure(m, w);
            } else if (rand() % 4) {
                enum drop_reason why = model_note(m, id, own, interval, now);

                ck_assert_int_eq(cnp_window_note(w, id, own, interval, now), why);
                n_soon += why == DROP_cnp_soon;
            }
            if (rand() % 3) { /* late, mostly. */
                uint32_t got = 0;
                bool over = m->end <= now;
                uint32_t expected = over ? model_end(m) : 0;

                ck_assert(cnp_window_timer(w, now, &got) == (expected > 0));
                ck_assert_uint_eq(got, expected);
                if (expected) {
                    m->sent[m->n_sent++] = now;
                }
                chosen = expected ? expected : chosen;
            }
            model_compare(m, w);
            ck_assert_uint_eq(cnp_window_n_sent(w, &last), m->n_sent);
            ck_assert_uint_eq(last, chosen);
        }
        ck_assert_uint_gt(m->n_sent, 10);
        ck_assert_uint_gt(n_soon, 10);
        free(m);
        cnp_window_destroy(w);
    }
END_TEST

/* No CNP goes up sooner than N after another: what comes meanwhile goes up then. */
START_TEST(longer_after_another)
    {
        static const uint32_t ids[] = {1, 2};
        struct cnp_window *w = cnp_window_create();
        uint32_t id;

        cnp_window_configure(w, T, 10 * T, ids, 2);
        cnp_window_note(w, 1, true, 0, 100);
        ck_assert_uint_eq(cnp_window_deadline(w), 100 + T);
        ck_assert(cnp_window_timer(w, 100 + T, &id));
        cnp_window_note(w, 2, true, 0, 100 + 2 * T);
        ck_assert_uint_eq(cnp_window_deadline(w), 100 + 11 * T);
        ck_assert(!cnp_window_timer(w, 100 + 11 * T - 1, &id));
        cnp_window_note(w, 1, true, 0, 100 + 3 * T);
        cnp_window_note(w, 1, true, 0, 100 + 4 * T);
        ck_assert(cnp_window_timer(w, 100 + 11 * T, &id));
        ck_assert_uint_eq(id, 1);
        cnp_window_note(w, 2, true, 0, 100 + 30 * T);
        ck_assert_uint_eq(cnp_window_deadline(w), 100 + 31 * T);
        cnp_window_destroy(w);
    }
END_TEST

Suite *
cnp_window_suite(void)
{
    Suite *s = suite_create("cnp_window");
    TCase *tc = tcase_create("cnp_window");

    tcase_add_test(tc, most_in_each_window);
    tcase_add_test(tc, of_equals_the_lowest);
    tcase_add_test(tc, other_branches);
    tcase_add_test(tc, one_in_an_interval);
    tcase_add_test(tc, longer_after_another);
    tcase_add_loop_test(tc, as_the_model, 0, 50);
    suite_add_tcase(s, tc);
    return s;
}
