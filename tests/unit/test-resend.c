/* SPDX-License-Identifier: Apache-2.0
 *
 * What the policies of the reverse path cost and spare, in virtual time (tests/model/lab.h): of the
 * copies that receivers got again how many they lacked, and how many responses reach the source.
 *
 *     RESEND_TABLE=1 CK_RUN_SUITE=resend build/tests/unit
 *
 * prints the figures; RESEND_RUNS=N makes N times as many runs of each.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/registry/group-settings.h"
#include "tests/model/lab.h"
#include "tests/unit/suites.h"

#define N_RUNS 4

static const struct {
    const char *name, *topology;
} shapes[] = {
    {"one edge", "s-a9 a9-n1 n1-r1 n1-r2 n1-r3 n1-r4 n1-r5 n1-r6 n1-r7 n1-r8"},
    {"tree", "s-a9 a9-n1 n1-n2 n1-n3 n2-r1 n2-r2 n2-r3 n2-r4 n3-r5 n3-r6 n3-r7 n3-r8"},
};
#define ONE_RECEIVER "s-a9 a9-n1 n1-r1"

/* 64 KiB at path MTU 4096 and 1024, at about 10 Gb/s: the lab's packets are shorter, but as
 * many. */
static const struct {
    unsigned n_packets; /* of a message. */
    uint64_t gap;
} sizes[] = {{16, 3}, {64, 1}};

struct load {
    const char *topology;
    unsigned n_packets, gap, depth;
    unsigned loss; /* of 10000 frames, between edges and receivers, there and back. */
    enum reverse_nak nak;
    bool filter;
};

struct result {
    uint64_t n_repeats,
        n_had; /* copies that were made again, and those of them that were no use. */
    uint64_t n_filtered;
    uint64_t n_responses, n_asked;
    uint64_t n_sent, n_packets; /* by the source; and what it had to send. */
};

static void
add_message(struct lab *lab, unsigned n_packets)
{
    uint32_t len = n_packets * LAB_MTU;

    lab->messages[lab->n_messages++] =
        (struct lab_message){.op = RC_OP_WRITE, .ofs = lab->region_len, .len = len};
    lab->region_len += len;
    lab->n_packets += n_packets;
}

/* A small one first, so that nothing is resent because neighbours do not know each other. */
static void
choose_messages(struct lab *lab, unsigned n_packets)
{
    lab->warm_up = true;
    add_message(lab, 1);
    while (lab->n_messages < LAB_MAX_MESSAGES && lab->n_packets + n_packets <= 513) {
        add_message(lab, n_packets);
    }
}

/* What edges and receivers have counted. */
static void
add_counts(struct lab *lab, struct result *sum)
{
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        const struct lab_node *n = &lab->nodes[i];
        for (size_t k = 0; n->n_trees && k < n->trees[0].n_branches; k++) {
            const struct branch_config *b = &n->trees[0].branches[k];
            struct reverse_branch_info info;
            if (b->kind == BRANCH_RECEIVER && n->class->branch(n->node, 0, b->id, &info)) {
                sum->n_repeats += info.n_repeats;
                sum->n_filtered += info.n_filtered;
            }
        }
    }
    for (unsigned i = 0; i < lab->n; i++) {
        struct rc_info info;
        rc_get_info(lab->receivers[i].endpoint, &info);
        sum->n_had += info.n_duplicates;
    }
    sum->n_responses += lab->n_responses;
    sum->n_asked += lab->n_asked;
    sum->n_sent += lab->n_sent;
    sum->n_packets += lab->n_packets;
}

static char title[64]; /* of this run. */

static void
lab_failed(const struct lab *lab, const char *condition, const char *text)
{
    ck_abort_msg("%s, time %" PRIu64 ": %s: %s", title, lab->fabric.now, condition, text);
}

static void
run(const struct load *load, uint64_t seed, struct result *sum)
{
    snprintf(title, sizeof title, "%s filter=%d seed=%" PRIu64, nak_policy_name(load->nak),
             load->filter, seed);
    struct lab *lab = lab_create(load->topology, seed, false, lab_failed);

    lab->start_psn = psn_make(0xffff00);
    lab->gap = load->gap;
    lab->depth = load->depth;
    lab->nak = load->nak;
    lab->filter = load->filter;
    choose_messages(lab, load->n_packets);
    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        struct fabric_link *link = &lab->fabric.links[i];
        for (unsigned side = 0; side < 2; side++) {
            bool last = link->ends[1].station > lab_source_station(lab);
            link->quality[side] =
                (struct fabric_quality){.delay = 2, .loss = last ? load->loss : 0};
        }
    }
    lab_run(lab);
    add_counts(lab, sum);
    lab_destroy(lab);
}

static struct result
run_all(const struct load *load)
{
    const char *factor = getenv("RESEND_RUNS");
    unsigned n = N_RUNS * (factor ? (unsigned) strtoul(factor, NULL, 0) : 1);
    struct result sum = {0};

    for (unsigned i = 0; i < n; i++) {
        run(load, i + 1, &sum);
    }
    return sum;
}

static double
useful(const struct result *r)
{
    return r->n_repeats ? (double) (r->n_repeats - r->n_had) / (double) r->n_repeats : 1;
}

static bool
wants_table(void)
{
    return getenv("RESEND_TABLE") != NULL;
}

/* In one case, without and with the filter. */
static void
run_case(enum reverse_nak nak, size_t k, struct result *off, struct result *on)
{
    struct load load = {
        .topology = shapes[k / 4].topology,
        .n_packets = sizes[k / 2 % 2].n_packets,
        .gap = (unsigned) sizes[k / 2 % 2].gap,
        .depth = k % 2 ? 8 : 1,
        .loss = 20,
        .nak = nak,
    };
    *off = run_all(&load);
    load.filter = true;
    *on = run_all(&load);
    if (wants_table()) {
        printf("%-8s %-8s %2u packets, %u at a time: sent %.2f times, useful %.2f of %" PRIu64
               "; filter: sent %.2f times, useful %.2f of %" PRIu64 ", spared %" PRIu64 "\n",
               nak_policy_name(nak), shapes[k / 4].name, load.n_packets, load.depth,
               (double) off->n_sent / (double) off->n_packets, useful(off), off->n_repeats,
               (double) on->n_sent / (double) on->n_packets, useful(on), on->n_repeats,
               on->n_filtered);
    }
}

static void
add(struct result *sum, const struct result *r)
{
    sum->n_repeats += r->n_repeats;
    sum->n_had += r->n_had;
    sum->n_filtered += r->n_filtered;
}

/* With the filter receivers get again what they lack, more than with the same policy without it;
 * and as the default is, it is at least half of what they get. */
START_TEST(resent_copies)
    {
        enum reverse_nak nak = (enum reverse_nak) _i;
        enum reverse_nak standard = group_settings_default().policy.nak;
        struct result off = {0}, on = {0};

        for (size_t k = 0; k < 8; k++) {
            struct result case_off, case_on;

            run_case(nak, k, &case_off, &case_on);
            ck_assert_uint_gt(case_on.n_repeats, 0);
            ck_assert(nak != standard || k % 2 || useful(&case_on) >= 0.5);
            add(&off, &case_off);
            add(&on, &case_on);
        }
        if (wants_table()) {
            printf("%-8s useful %.2f, filter: %.2f\n", nak_policy_name(nak), useful(&off),
                   useful(&on));
        }
        ck_assert(useful(&on) > useful(&off));
        ck_assert(nak != standard || useful(&on) >= 0.5);
    }
END_TEST

/* Without loss eight receivers cost the source no more responses than one. */
START_TEST(responses)
    {
        struct load load = {
            .n_packets = sizes[_i % 2].n_packets,
            .gap = (unsigned) sizes[_i % 2].gap,
            .depth = 8,
            .nak = (enum reverse_nak)(_i / 2 % 3),
            .filter = _i / 6,
        };

        load.topology = ONE_RECEIVER;
        struct result one = run_all(&load);
        for (size_t k = 0; k < 2; k++) {
            load.topology = shapes[k].topology;
            struct result eight = run_all(&load);
            double ratio = (double) eight.n_responses / (double) one.n_responses;

            if (wants_table()) {
                printf("%-8s %-8s %2u packets, filter %d: responses of 8 / of 1: %.3f\n",
                       nak_policy_name(load.nak), shapes[k].name, load.n_packets, load.filter,
                       ratio);
            }
            ck_assert(ratio <= 1.1);
        }
    }
END_TEST

Suite *
resend_suite(void)
{
    Suite *s = suite_create("resend");
    TCase *tc = tcase_create("policies");

    tcase_add_loop_test(tc, resent_copies, 0, 3);
    tcase_add_loop_test(tc, responses, 0, 12);
    suite_add_tcase(s, tc);
    return s;
}
