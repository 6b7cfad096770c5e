/* SPDX-License-Identifier: Apache-2.0
 *
 * The policies for NAKs above the minimum against an ideal aggregator
 * (tests/model/lab-oracle.c): goodput, and packets that the source sent.
 *
 * A star, so that only what a single aggregator knows makes the difference.  The same
 * seeds for all; loss on the links of the receivers, in both directions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/castsim.h"

#define TOPOLOGY      "s-a98 a98-n1 n1-r1 n1-r2 n1-r3 n1-r4 n1-r5 n1-r6 n1-r7 n1-r8"
#define N_PACKETS     4096 /* of a run. */
#define N_RUNS        5    /* of a cell. */
#define DELAY         10   /* of each link, us; three links there and three back. */
#define GAP           3    /* between two packets of the source, us. */
#define IN_FLIGHT     256  /* packets posted at a time, at most so many messages: */
#define MAX_POSTED    128

/* What is to be reached. */
#define LEAST_GOODPUT 0.9
#define MOST_SENT     1.1

static const unsigned sizes[] = {1, 16, 64};    /* packets of a message. */
static const unsigned losses[] = {10, 30, 100}; /* of 10000 frames. */

struct cell {
    uint64_t usec, n_sent, n_retries, n_responses;
};

static char what[64]; /* of this run. */

static void
lab_failed(const struct lab *lab, const char *condition, const char *text)
{
    printf("%s: %s (%s) at virtual time %" PRIu64 " us\n", what, text, condition, lab->fabric.now);
    exit(1);
}

static void
choose_messages(struct lab *lab, unsigned size)
{
    unsigned depth = IN_FLIGHT / size;

    lab->depth = depth < MAX_POSTED ? depth : MAX_POSTED;
    for (unsigned i = 0; i < N_PACKETS / size; i++) {
        lab->messages[lab->n_messages++] =
            (struct lab_message){.op = RC_OP_WRITE, .ofs = lab->region_len, .len = size * LAB_MTU};
        lab->region_len += size * LAB_MTU;
        lab->n_packets += size;
    }
}

/* 'nak' N_POLICIES: the oracle. */
#define N_POLICIES 3

static void
run(unsigned nak, bool filter, unsigned size, unsigned loss, uint64_t seed, struct cell *sum)
{
    struct rc_info info;

    snprintf(what, sizeof what, "policy %u, %u packets, loss %u, seed %" PRIu64, nak, size, loss,
             seed);
    struct lab *lab = lab_create(TOPOLOGY, seed, false, lab_failed);
    lab->start_psn = psn_make(0xffff00);
    lab->gap = GAP;
    lab->warm_up = true;
    lab->oracle = nak == N_POLICIES;
    lab->nak = lab->oracle ? NAK_HOLD : (enum reverse_nak) nak;
    lab->filter = filter && !lab->oracle;
    choose_messages(lab, size);
    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        struct fabric_link *link = &lab->fabric.links[i];
        bool last = link->ends[1].station > lab_source_station(lab);
        for (unsigned side = 0; side < 2; side++) {
            link->quality[side] = (struct fabric_quality){.delay = DELAY, .loss = last ? loss : 0};
        }
    }
    uint64_t start = lab->fabric.now;
    lab_run(lab);
    rc_get_info(lab->source, &info);
    sum->usec += lab->over_since - start;
    sum->n_sent += lab->n_sent;
    sum->n_retries += info.n_retries;
    sum->n_responses += lab->n_responses;
    lab_destroy(lab);
}

static struct cell
run_cell(unsigned nak, bool filter, unsigned size, unsigned loss)
{
    struct cell sum = {0};

    for (uint64_t seed = 1; seed <= N_RUNS; seed++) {
        run(nak, filter, size, loss, seed, &sum);
    }
    return sum;
}

static double
ratio(uint64_t a, uint64_t b)
{
    return (double) a / (double) b;
}

void
compare_run(void)
{
    printf("8 receivers at one switch, round trip %d us, timeout 20 ms, a packet every %d us;\n"
           "%d packets a run, %d runs a cell, at most %d packets or %d messages posted.\n"
           "Goodput and packets sent against those of an ideal aggregator.\n\n"
           "| packets a message | loss a branch | oracle: us a packet, sent | "
           "hold | literal | solicit | hold, filter | literal, filter | solicit, filter |\n"
           "|---|---|---|---|---|---|---|---|---|\n",
           6 * DELAY, GAP, N_PACKETS, N_RUNS, IN_FLIGHT, MAX_POSTED);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (unsigned j = 0; j < sizeof losses / sizeof *losses; j++) {
            struct cell oracle = run_cell(N_POLICIES, false, sizes[i], losses[j]);
            printf("| %u | %u.%u %% | %.2f, %.3f |", sizes[i], losses[j] / 100, losses[j] / 10 % 10,
                   ratio(oracle.usec, (uint64_t) N_RUNS * N_PACKETS),
                   ratio(oracle.n_sent, (uint64_t) N_RUNS * N_PACKETS));
            for (unsigned k = 0; k < 2 * N_POLICIES; k++) {
                struct cell c = run_cell(k % N_POLICIES, k / N_POLICIES, sizes[i], losses[j]);
                double goodput = ratio(oracle.usec, c.usec);
                double sent = ratio(c.n_sent, oracle.n_sent);
                bool ok = goodput >= LEAST_GOODPUT && sent <= MOST_SENT;
                printf(" %.2f, %.2f%s |", goodput, sent, ok ? "" : " *");
                fflush(stdout);
            }
            printf("\n");
        }
    }
    printf("\n*: not %.1f of the goodput, or more than %.1f times as many packets.\n",
           LEAST_GOODPUT, MOST_SENT);
}
