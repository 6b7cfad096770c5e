/* SPDX-License-Identifier: Apache-2.0
 *
 * The star in virtual time (tests/model/lab.h): a source agent, one edge, up to
 * eight receivers, and everything that may go wrong between them.
 *
 * Everything follows from a seed.  A failure names it; STAR_SEED=N in the
 * environment runs that one only and traces every packet:
 *
 *     STAR_SEED=3007 CK_RUN_SUITE=star build/tests/unit
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/lab.h"
#include "tests/unit/suites.h"

#define MAX_RECEIVERS  8
#define SEEDS_PER_TYPE 60
#define SEEDS_OF(TYPE) ((TYPE) *1000)

/* Kinds of run: which of it. */
enum run_type {
    PLAIN,
    RNR,
    FORGED,
    FAILING,
    CONFIGURED,
    SHRINKING,
    RESTARTED,
    EPOCHS,
    MIXED,
    N_RUN_TYPES
};

/* Nodes by id. */
enum { EDGE, AGENT };

static void
choose_links(struct lab *lab, bool spoil)
{
    unsigned badness = lab_random(lab, 4); /* 0: all links are perfect. */

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            uint32_t bad = lab_random(lab, 3) ? badness : 0;
            lab->fabric.links[i].quality[side] = (struct fabric_quality){
                .delay = 1 + lab_random(lab, 40),
                .loss = lab_random(lab, 1 + 80 * bad),
                .twice = lab_random(lab, 1 + 40 * bad),
                .spoil = spoil ? lab_random(lab, 1 + 40 * bad) : 0,
                .reorder = lab_random(lab, 1 + 40 * bad),
            };
        }
    }
}

static void
choose_actions(struct lab *lab, enum run_type type)
{
    static const struct {
        enum lab_action_kind kind;
        unsigned node;
    } mix[] = {
        {LAB_RECONFIGURE, 0}, {LAB_REMOVE, 0},    {LAB_RESTART, EDGE},
        {LAB_RESTART, AGENT}, {LAB_NEW_EPOCH, 0},
    };
    unsigned n = 1 + lab_random(lab, 4);
    uint64_t after = 0;

    if (type <= FORGED) {
        return;
    }
    if (type == FAILING || type == SHRINKING || type == EPOCHS) {
        n = 1;
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned choice = lab_random(lab, 5);
        enum lab_action_kind kind = mix[choice].kind;
        unsigned node = mix[choice].node;
        switch (type) {
        case FAILING: kind = LAB_FATAL; break;
        case CONFIGURED: kind = LAB_RECONFIGURE; break;
        case SHRINKING: kind = LAB_REMOVE; break;
        case RESTARTED:
            kind = LAB_RESTART;
            node = lab_random(lab, 2) ? EDGE : AGENT;
            break;
        case EPOCHS: kind = LAB_NEW_EPOCH; break;
        default: break;
        }
        after += lab_random(lab, 1 + lab->n_packets / n);
        lab_add_action(lab, kind, node, after);
        after = kind == LAB_NEW_EPOCH ? 0 : after; /* the source counts anew. */
    }
}

static void
run_seed(unsigned seed, bool trace)
{
    enum run_type type = (enum run_type)(seed / SEEDS_OF(1));
    char topology[128] = "s-a2 a2-n1";
    char title[32];
    /* splitmix64 starts with the same number whoever takes it. */
    struct fabric chance = {.random = seed};
    unsigned n = 1 + fabric_random(&chance, MAX_RECEIVERS);

    for (unsigned i = 0; i < n; i++) {
        size_t len = strlen(topology);
        snprintf(topology + len, sizeof topology - len, " n1-r%u", i + 1);
    }
    snprintf(title, sizeof title, "STAR_SEED=%u", seed);
    struct lab *lab = lab_create(topology, chance.random, title, trace);
    lab->start_psn =
        psn_make(lab_random(lab, 2) ? PSN_MASK - lab_random(lab, 300) : lab_random(lab, PSN_MASK));
    lab->epoch_step = seed & 2 ? 77 : 0;
    lab->gap = 1 + lab_random(lab, 4);
    /* A spoilt PSN would raise the bound that stops forged ones. */
    choose_links(lab, type != FORGED);
    lab->buffers = type == RNR     ? LAB_BUFFERS_LATE
                   : type == MIXED ? LAB_BUFFERS_MIXED
                                   : LAB_BUFFERS_READY;
    lab->forged = type == FORGED;
    lab->max_removed = 1;
    lab_choose_messages(lab, LAB_MAX_PACKETS, type == RNR);
    choose_actions(lab, type);
    lab_run(lab);
    lab_destroy(lab);
}

START_TEST(star)
    {
        const char *only = getenv("STAR_SEED");

        for (unsigned i = 0; i < SEEDS_PER_TYPE; i++) {
            unsigned seed = SEEDS_OF((unsigned) _i) + i;
            if (!only || strtoul(only, NULL, 0) == seed) {
                run_seed(seed, only != NULL);
            }
        }
    }
END_TEST

Suite *
star_suite(void)
{
    Suite *s = suite_create("star");
    TCase *tc = tcase_create("seeds");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, star, 0, N_RUN_TYPES);
    suite_add_tcase(s, tc);
    return s;
}
