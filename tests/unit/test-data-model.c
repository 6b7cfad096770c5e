/* SPDX-License-Identifier: Apache-2.0
 *
 * R25 and R26 of docs/draft-notes.md by brute force: who sends, who takes, castd, and somebody on the
 * path who may deliver any packet that was ever sent, at any time and as often as he likes.  All
 * courses of events up to a length are tried.  In each state that they lead to
 *
 * - no nonce has been used twice, and the taker has taken no packet twice in all of its lives;
 * - if castd and both nodes go on, the next packet arrives.
 *
 * With data a source agent sends and an edge takes; with responses a node sends and its parent takes.
 * They differ in what castd tells the sender.
 *
 * The windows are lib/data-auth.c's.  Rules that are left out, one at a time, must lead to a violation.
 */
#include <string.h>

#include "lib/data-auth.h"
#include "tests/unit/suites.h"

#define MAX_SENT 4

/* Rules that may be left out. */
enum {
    NO_WINDOW = 1 << 0, /* the edge does not ask what has come. */
    NO_FLOOR = 1 << 1,  /* nor for the instance. */
    NO_WAIT = 1 << 2,   /* nodes do not wait for an answer to what they have said in this life. */
    NO_STEP = 1 << 3,   /* castd answers with the instance that there is. */
    /* Of responses: who sends them is told the instance of its own life only, */
    NO_PARENT = 1 << 4,
    NO_OWN = 1 << 5, /* or that of its parent's only. */
};

#define RESPONSES (1 << 6) /* no rule: R26, and not R25. */

/* A node and its row.  What it says in a life is the life's number, which is as good as something
 * random. */
struct node {
    unsigned life;
    unsigned said, answered; /* in the row: as of which life. */
    uint32_t floor;          /* in the row: what that was answered with. */
    uint32_t row_instance;   /* in the row: that the node sends with, or the least that it takes. */
    uint32_t instance;       /* that the node has taken from the row; 0: none. */
};

struct world {
    uint32_t issued; /* by castd. */
    struct node sender, taker;
    uint64_t seq; /* the sender's, of this life. */
    struct data_window window;
    unsigned n_sent;
    struct {
        uint32_t instance;
        uint64_t seq;
        unsigned taken;
    } sent[MAX_SENT];
};

struct search {
    unsigned without;
    unsigned n_states;
    bool violated;
    const char *what;
};

static void
start_again(struct world *w, struct node *n)
{
    n->life++;
    n->instance = 0;
    if (n == &w->sender) {
        w->seq = 0;
    } else {
        w->window = (struct data_window){.floor = 0};
    }
}

/* It says which life it is in, if the row does not say so yet, and takes what is there. */
static void
look(struct world *w, struct node *n, unsigned without)
{
    n->said = n->life;
    if (n->answered == n->life || without & NO_WAIT) {
        n->instance = n->row_instance;
    }
    if (n == &w->taker) {
        w->window.floor = without & NO_FLOOR && n->instance ? 1 : n->instance;
    }
}

static uint32_t
greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* What the sender is told: of data the newest instance, of responses the newer one of its own life's
 * and its parent's. */
static uint32_t
sender_instance(const struct world *w, unsigned without)
{
    return !(without & RESPONSES) ? w->issued
           : without & NO_PARENT  ? w->sender.floor
           : without & NO_OWN     ? w->taker.floor
                                  : greater(w->sender.floor, w->taker.floor);
}

/* Who has said something new gets an instance that is new, and the sender is told of it. */
static void
castd(struct world *w, unsigned without)
{
    struct node *nodes[] = {&w->sender, &w->taker};
    bool asked = w->sender.said != w->sender.answered || w->taker.said != w->taker.answered;

    w->issued += asked && (!(without & NO_STEP) || !w->issued);
    for (size_t i = 0; i < 2; i++) {
        if (nodes[i]->said != nodes[i]->answered) {
            nodes[i]->floor = w->issued;
            nodes[i]->answered = nodes[i]->said;
        }
    }
    w->taker.row_instance = w->taker.floor;
    w->sender.row_instance = sender_instance(w, without);
}

static void
send_next(struct search *s, struct world *w)
{
    if (w->n_sent == MAX_SENT || !w->sender.instance) {
        return;
    }
    w->seq++;
    for (unsigned i = 0; i < w->n_sent; i++) {
        if (w->sent[i].instance == w->sender.instance && w->sent[i].seq == w->seq) {
            s->violated = true;
            s->what = "a nonce came twice";
        }
    }
    w->sent[w->n_sent].instance = w->sender.instance;
    w->sent[w->n_sent++].seq = w->seq;
}

static void
deliver(struct search *s, struct world *w, unsigned i)
{
    if (i >= w->n_sent) {
        return;
    }
    if (s->without & NO_WINDOW) {
        w->window = (struct data_window){.floor = w->window.floor};
    }
    if (data_window_take(&w->window, w->sent[i].instance, w->sent[i].seq) && w->sent[i].taken++) {
        s->violated = true;
        s->what = "a packet was taken twice";
    }
}

/* All go on: both look, castd answers, they look again. */
static void
check_goes_on(struct search *s, struct world w)
{
    struct search ignored = {.without = s->without};

    w.n_sent = w.n_sent == MAX_SENT ? MAX_SENT - 1 : w.n_sent;
    for (unsigned i = 0; i < 2; i++) {
        look(&w, &w.taker, s->without);
        look(&w, &w.sender, s->without);
        castd(&w, s->without);
    }
    look(&w, &w.taker, s->without);
    look(&w, &w.sender, s->without);
    send_next(&ignored, &w);
    struct data_window before = w.window;
    if (!data_window_take(&before, w.sent[w.n_sent - 1].instance, w.sent[w.n_sent - 1].seq)) {
        s->violated = true;
        s->what = "nothing arrives any more";
    }
}

enum { SEND, START_SENDER, START_TAKER, LOOK_SENDER, LOOK_TAKER, CASTD, DELIVER };
#define N_EVENTS (DELIVER + MAX_SENT)

static void
explore(struct search *s, const struct world *from, unsigned depth)
{
    s->n_states++;
    check_goes_on(s, *from);
    for (unsigned event = 0; depth && event < N_EVENTS && !s->violated; event++) {
        struct world w = *from;

        switch (event) {
        case SEND: send_next(s, &w); break;
        case START_SENDER: start_again(&w, &w.sender); break;
        case START_TAKER: start_again(&w, &w.taker); break;
        case LOOK_SENDER: look(&w, &w.sender, s->without); break;
        case LOOK_TAKER: look(&w, &w.taker, s->without); break;
        case CASTD: castd(&w, s->without); break;
        default: deliver(s, &w, event - DELIVER);
        }
        if (memcmp(&w, from, sizeof w)) {
            explore(s, &w, depth - 1);
        }
    }
}

static struct search
explore_without(unsigned rules, unsigned depth)
{
    struct search s = {.without = rules};
    struct world w;

    memset(&w, 0, sizeof w); /* padding counts. */
    w.sender.life = w.taker.life = 1;
    /* Both have been answered: what comes before is the same for all courses. */
    look(&w, &w.sender, rules);
    look(&w, &w.taker, rules);
    castd(&w, rules);
    look(&w, &w.sender, rules);
    look(&w, &w.taker, rules);
    explore(&s, &w, depth);
    return s;
}

#define DEPTH 10

START_TEST(all_courses)
    {
        struct search s = explore_without(_i ? RESPONSES : 0, DEPTH);

        ck_assert_msg(!s.violated, "%s", s.what);
        ck_assert_uint_gt(s.n_states, 100000);
    }
END_TEST

START_TEST(each_rule_is_needed)
    {
        static const unsigned rules[] = {
            NO_WINDOW,
            NO_FLOOR,
            NO_WAIT,
            NO_STEP,
            RESPONSES | NO_WINDOW,
            RESPONSES | NO_FLOOR,
            RESPONSES | NO_WAIT,
            RESPONSES | NO_STEP,
            RESPONSES | NO_PARENT,
            RESPONSES | NO_OWN,
        };
        struct search s = explore_without(rules[_i], DEPTH);

        ck_assert_msg(s.violated, "rules %u, %u states", rules[_i], s.n_states);
    }
END_TEST

Suite *
data_model_suite(void)
{
    Suite *suite = suite_create("data_model");
    TCase *tc = tcase_create("data_model");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, all_courses, 0, 2);
    tcase_add_loop_test(tc, each_rule_is_needed, 0, 10);
    suite_add_tcase(suite, tc);
    return suite;
}
