/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees of several nodes in virtual time (tests/model/lab.h): the shapes that a
 * planner can make, on links that are perfect or not, with nodes that are
 * started again or die, members that leave or are lost, and new epochs in mid-stream.
 *
 * Everything follows from topology, kind of run and a number.  A failure names
 * them; TREE_SIM=TOPOLOGY/KIND/NUMBER in the environment runs that one only and
 * traces every packet:
 *
 *     TREE_SIM=figure-1/restart/2 CK_RUN_SUITE=tree_sim build/tests/unit
 *
 * TREE_SIM_RUNS=N makes N times as many runs, CK_RUN_CASE=losses those with members that are lost.
 * Each fourth run is in another mode than replicate with TLVs.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/lab.h"
#include "tests/unit/suites.h"

#define MAX_PACKETS 200

static const struct {
    const char *name;
    const char *topology; /* NULL: a random tree. */
    unsigned n_runs;      /* of each kind, a third more with those in other modes. */
} shapes[] = {
    {"star", "s-a9 a9-n1 n1-r1 n1-r2 n1-r3", 3},
    {"figure-1", "s-a9 a9-n6 n6-n4 n6-n5 n4-n1 n4-n2 n5-n2 n5-n3 n1-r1 n1-r2 n2-r3 n3-r4 n3-r5", 4},
    {"diamond", "s-a9 a9-n1 n1-n2 n1-n3 n2-n4 n3-n4 n3-r1 n4-r2 n4-r3 n4-r4", 3},
    {"bud", "s-a9 a9-n1 n1-n2 n2-r1 n2-n3 n2-n4 n3-r2 n3-r3 n4-r4", 3},
    {"root-is-edge", "s-a9 a9-n1 n1-r1 n1-r2 n1-n2 n2-r3", 3},
    {"chain", "s-a9 a9-n1 n1-n2 n2-n3 n3-n4 n4-n5 n5-n6 n6-r1 n6-r2", 3},
    {"agent-is-root", "s-a9 a9-t1 t1-n2 t1-n3 n2-r1 n2-r2 n3-r3", 3},
    {"plain-transit", "s-a9 a9-n1 n1-t2 n1-n3 t2-n4 t2-n5 n4-r1 n5-r2 n5-r3 n3-r4", 3},
    {"random", NULL, 30},
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

/* Kinds of run: which of it. */
enum kind {
    EXACT,
    DISORDER,
    LOSSY,
    SPOILT,
    RNR,
    FORGED,
    FAILING,
    SHRINKING,
    RESTART,
    EPOCH,
    MIXED,
    LOSING, /* receivers that die, are deaf for a while, refuse, have no buffers for long. */
    DYING,  /* nodes, besides. */
    LOSING_RESTART,
    N_KINDS
};
static const char *const kind_names[] = {
    "exact",     "disorder", "lossy", "spoilt", "rnr",    "forged", "failing",
    "shrinking", "restart",  "epoch", "mixed",  "losing", "dying",  "losing-restart",
};

/* A tree that grows from node 1 in up to three levels, with links across it. */
struct sprout {
    struct fabric *chance;
    char *text;
    size_t size, len;
    char kinds[LAB_MAX_NODES + 1]; /* of nodes: n or t, by number. */
    unsigned n_nodes, n_receivers;
};

static void
add_link(struct sprout *s, const char *upper, char kind, unsigned number)
{
    int n = snprintf(s->text + s->len, s->size - s->len, "%s-%c%u ", upper, kind, number);
    s->len += (size_t) n;
}

/* Gives the node below 'upper' a kind, receivers and children. */
static void
add_node(struct sprout *s, const char *upper, unsigned levels)
{
    unsigned number = ++s->n_nodes;
    unsigned n_children = levels > 1 ? fabric_random(s->chance, 4) : 0;
    bool plain = n_children && fabric_random(s->chance, 4) == 0;
    unsigned n_receivers = plain                         ? 0
                           : !n_children                 ? 1 + fabric_random(s->chance, 4)
                           : fabric_random(s->chance, 3) ? 0
                                                         : 1 + fabric_random(s->chance, 2);
    char name[8];

    s->kinds[number] = plain ? 't' : 'n';
    snprintf(name, sizeof name, "%c%u", s->kinds[number], number);
    add_link(s, upper, name[0], number);
    for (unsigned i = 0; i < n_receivers && s->n_receivers < 20; i++) {
        add_link(s, name, 'r', ++s->n_receivers);
    }
    for (unsigned i = 0; i < n_children; i++) {
        add_node(s, name, levels - 1);
    }
}

/* A link between two nodes that have none, if chance finds such. */
static void
add_shortcut(struct sprout *s)
{
    unsigned a = 1 + fabric_random(s->chance, s->n_nodes);
    unsigned b = 1 + fabric_random(s->chance, s->n_nodes);
    char name[8], link[24];

    /* In the text a parent is before its child, and has the lower number. */
    snprintf(name, sizeof name, "%c%u", s->kinds[a], a);
    snprintf(link, sizeof link, " %s-%c%u ", name, s->kinds[b], b);
    if (a < b && !strstr(s->text, link)) {
        add_link(s, name, s->kinds[b], b);
    }
}

static void
random_topology(struct fabric *chance, char *text, size_t size)
{
    struct sprout s = {.chance = chance, .text = text, .size = size};

    s.len = (size_t) snprintf(text, size, "s-a30 ");
    add_node(&s, "a30", 1 + fabric_random(chance, 3));
    for (unsigned n = fabric_random(chance, 4); n; n--) {
        add_shortcut(&s);
    }
}

/* Most runs are in mode replicate; of each four the last is in one of the others, in turn. */
static void
choose_mode(struct lab *lab, size_t shape, enum kind kind, unsigned number)
{
    static const struct {
        enum tree_mode mode;
        bool provisioned;
    } others[] = {
        {MODE_MCAST, false}, {MODE_INGRESS, false}, {MODE_REPLICATE, true},
        {MODE_MCAST, true},  {MODE_INGRESS, true},
    };
    size_t i = (number / 4 + shape + (size_t) kind) % (sizeof others / sizeof *others);

    if (number % 4 == 3) {
        lab->mode = others[i].mode;
        lab->provisioned = others[i].provisioned;
    }
}

/* At once, within a timeout of the source, or after many of them. */
static const uint32_t max_downtimes[] = {0, 20000, 2000000};

/* Some directions of some links are bad: few, since each holds up all. */
static void
choose_links(struct lab *lab, enum kind kind)
{
    unsigned n_bad = kind == EXACT ? 0 : 1 + lab_random(lab, 5);

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            bool bad = lab_random(lab, 2 * lab->fabric.n_links) < n_bad;
            struct fabric_quality *q = &lab->fabric.links[i].quality[side];
            q->delay = 1 + lab_random(lab, 40);
            if (bad) {
                q->loss = kind == DISORDER ? 0 : lab_random(lab, kind == FAILING ? 2000 : 500);
                q->twice = lab_random(lab, 300);
                q->reorder = lab_random(lab, 500);
                q->spoil = kind == SPOILT || kind == MIXED ? lab_random(lab, 300) : 0;
            }
        }
    }
}

static void
choose_actions(struct lab *lab, enum kind kind)
{
    static const enum lab_action_kind mix[] = {
        LAB_RECONFIGURE, LAB_REMOVE, LAB_RESTART, LAB_RESTART, LAB_NEW_EPOCH,
    };
    static const enum lab_action_kind losses[] = {
        LAB_DEAFEN, LAB_DEAFEN, LAB_DEAFEN, LAB_FATAL, LAB_RECONFIGURE,
    };
    unsigned n = kind >= SHRINKING ? 1 + lab_random(lab, 4) : kind == FAILING;
    uint64_t after = 0;

    for (unsigned i = 0; i < n; i++) {
        enum lab_action_kind action = kind == FAILING               ? LAB_FATAL
                                      : kind == SHRINKING           ? LAB_REMOVE
                                      : kind == RESTART             ? LAB_RESTART
                                      : kind == EPOCH               ? LAB_NEW_EPOCH
                                      : kind == LOSING              ? losses[lab_random(lab, 5)]
                                      : kind == DYING && !i         ? LAB_KILL
                                      : kind == LOSING_RESTART && i ? LAB_RESTART
                                      : kind >= LOSING              ? losses[lab_random(lab, 5)]
                                                                    : mix[lab_random(lab, 5)];
        after += lab_random(lab, 1 + lab->n_packets / n);
        lab_add_action(lab, action, lab_random(lab, lab->n_nodes), after);
        after = action == LAB_NEW_EPOCH ? 0 : after; /* the source counts anew. */
    }
    if (kind != EXACT && kind < LOSING && lab_random(lab, 2)) {
        lab_add_action(lab, LAB_CALM, 0, after + lab_random(lab, 1 + lab->n_packets));
    }
}

/* Losses take time: a few packets are enough. */
static void
choose_losses(struct lab *lab)
{
    lab->liveness_msec = 200;
    lab->prune = lab_random(lab, 3);
    lab->castd = lab_random(lab, 2);
    lab->buffers = lab_random(lab, 3) ? LAB_BUFFERS_READY : LAB_BUFFERS_MIXED;
    lab->max_stall = 1000000;
    lab->min_rnr_timer = 20; /* 10 ms. */
}

static void
run(size_t shape, enum kind kind, unsigned number, bool trace)
{
    struct fabric chance = {.random = ((uint64_t) number << 16) + (shape << 8) + kind};
    char topology[1024];
    char title[64];

    snprintf(title, sizeof title, "TREE_SIM=%s/%s/%u", shapes[shape].name, kind_names[kind],
             number);
    if (shapes[shape].topology) {
        snprintf(topology, sizeof topology, "%s", shapes[shape].topology);
    } else {
        random_topology(&chance, topology, sizeof topology);
    }
    if (trace) {
        fprintf(stderr, "%s\n", topology);
    }
    struct lab *lab = lab_create(topology, chance.random, title, trace);
    choose_mode(lab, shape, kind, number);
    lab->start_psn =
        psn_make(lab_random(lab, 2) ? PSN_MASK - lab_random(lab, 200) : lab_random(lab, PSN_MASK));
    lab->epoch_step = lab_random(lab, 2) ? 77 : 0;
    lab->gap = 1 + lab_random(lab, 4);
    lab->exact = lab->warm_up = kind == EXACT;
    lab->forged = kind == FORGED;
    lab->max_removed = 4;
    lab->nak = (enum reverse_nak) lab_random(lab, 3);
    lab->filter = lab_random(lab, 2);
    lab->max_downtime = max_downtimes[lab_random(lab, 3)];
    lab->buffers = kind == RNR     ? LAB_BUFFERS_LATE
                   : kind == MIXED ? LAB_BUFFERS_MIXED
                                   : LAB_BUFFERS_READY;
    if (kind >= LOSING) {
        choose_losses(lab);
    }
    choose_links(lab, kind);
    lab_choose_messages(lab, MAX_PACKETS, kind == RNR);
    choose_actions(lab, kind);
    lab_run(lab);
    lab_destroy(lab);
}

/* Is this run wanted?  'only' is TOPOLOGY/KIND/NUMBER; NULL: all are. */
static bool
is_wanted(const char *only, size_t shape, enum kind kind, unsigned number)
{
    char name[64];

    snprintf(name, sizeof name, "%s/%s/%u", shapes[shape].name, kind_names[kind], number);
    return !only || !strcmp(only, name);
}

static void
run_all(size_t shape, enum kind kind)
{
    const char *only = getenv("TREE_SIM");
    const char *factor = getenv("TREE_SIM_RUNS");
    unsigned n = shapes[shape].n_runs * (factor ? (unsigned) strtoul(factor, NULL, 0) : 1) * 4 / 3;

    for (unsigned i = 0; i < n; i++) {
        if (is_wanted(only, shape, kind, i)) {
            run(shape, kind, i, only != NULL);
        }
    }
}

/* Proves MT-5.3-1, MT-5.3.1-1, MT-5.3.2-1. */
START_TEST(trees)
    {
        run_all((size_t) _i / LOSING, (enum kind)(_i % LOSING));
    }
END_TEST

START_TEST(losses)
    {
        run_all((size_t) _i / (N_KINDS - LOSING), (enum kind)(LOSING + _i % (N_KINDS - LOSING)));
    }
END_TEST

Suite *
tree_sim_suite(void)
{
    Suite *s = suite_create("tree_sim");
    TCase *tc = tcase_create("runs");

    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, trees, 0, (int) (N_SHAPES * LOSING));
    suite_add_tcase(s, tc);
    tc = tcase_create("losses");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, losses, 0, (int) (N_SHAPES * (N_KINDS - LOSING)));
    suite_add_tcase(s, tc);
    return s;
}
