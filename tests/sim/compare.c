/* SPDX-License-Identifier: Apache-2.0
 *
 * The policies for NAKs above the minimum against an ideal aggregator
 * (tests/model/lab-oracle.c): goodput, packets that the source sent, and why it had to
 * wait for its timer.
 *
 * A star, so that only what a single aggregator knows makes the difference.  The same
 * seeds for all.  Cells are computed in processes of their own; results are in shared memory.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sim/castsim.h"

#define TOPOLOGY      "s-a98 a98-n1 n1-r1 n1-r2 n1-r3 n1-r4 n1-r5 n1-r6 n1-r7 n1-r8"
#define N_PACKETS     4096 /* of a run. */
#define DELAY         10   /* of each link, us; three links there and three back. */
#define GAP           3    /* between two packets of the source, us. */
#define IN_FLIGHT     256  /* packets posted at a time, at most so many messages: */
#define MAX_POSTED    128

/* What is to be reached. */
#define LEAST_GOODPUT 0.9
#define MOST_SENT     1.1

static const unsigned sizes[] = {1, 16, 64};    /* packets of a message. */
static const unsigned losses[] = {10, 30, 100}; /* of 10000 frames. */

#define N_LOSSES (sizeof losses / sizeof *losses)
#define N_ROWS   (sizeof sizes / sizeof *sizes * N_LOSSES)
#define N_COLS   (N_SIM_POLICIES + 1)
#define ORACLE   N_SIM_POLICIES /* its column. */

/* All runs of a row with a policy. */
struct cell {
    bool done;
    double usec, usec2; /* sum, and of the squares. */
    uint64_t n_sent;
    uint64_t n_stalls[N_LAB_STALLS];
};

static const struct compare *compare;
static struct cell (*cells)[N_COLS];
static char what[80]; /* of this run. */

static void
lab_failed(const struct lab *lab, const char *condition, const char *text)
{
    printf("%s: %s (%s) at virtual time %" PRIu64 " us\n", what, text, condition, lab->fabric.now);
    fflush(NULL);
    _exit(1);
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

/* Links to receivers lose; the first of their ends is the switch. */
static void
choose_losses(struct lab *lab, unsigned loss)
{
    const bool loses[2] = {compare->lose_down, compare->lose_up};

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        struct fabric_link *link = &lab->fabric.links[i];
        bool last = link->ends[1].station > lab_source_station(lab);
        for (unsigned side = 0; side < 2; side++) {
            link->quality[side] =
                (struct fabric_quality){.delay = DELAY, .loss = last && loses[side] ? loss : 0};
        }
    }
}

static void
run(unsigned size, unsigned loss, unsigned col, uint64_t seed, struct cell *sum)
{
    snprintf(what, sizeof what, "%s, %u packets, loss %u, seed %" PRIu64,
             col == ORACLE ? "oracle" : sim_policies[col].name, size, loss, seed);
    struct lab *lab = lab_create(TOPOLOGY, seed, false, lab_failed);
    lab->start_psn = psn_make(0xffff00);
    lab->gap = GAP;
    lab->warm_up = true;
    lab->oracle = col == ORACLE;
    lab->nak = lab->oracle ? NAK_HOLD : sim_policies[col].nak;
    lab->filter = !lab->oracle && sim_policies[col].filter;
    choose_messages(lab, size);
    choose_losses(lab, loss);
    uint64_t start = lab->fabric.now;
    lab_run(lab);
    double usec = (double) (lab->over_since - start);
    sum->usec += usec;
    sum->usec2 += usec * usec;
    sum->n_sent += lab->n_sent;
    for (unsigned i = 0; i < N_LAB_STALLS; i++) {
        sum->n_stalls[i] += lab->n_stalls[i];
    }
    lab_destroy(lab);
}

static bool
has_column(unsigned col)
{
    return col == ORACLE || !compare->only || compare->only == &sim_policies[col];
}

/* Every n_jobs-th cell. */
static void
work(unsigned job, unsigned n_jobs)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N_ROWS * N_COLS; i++) {
        unsigned row = i / N_COLS, col = i % N_COLS;

        if (!has_column(col) || n++ % n_jobs != job) {
            continue;
        }
        for (uint64_t seed = 1; seed <= compare->n_runs; seed++) {
            run(sizes[row / N_LOSSES], losses[row % N_LOSSES], col, seed, &cells[row][col]);
        }
        cells[row][col].done = true;
    }
}

static double
goodput(const struct cell *oracle, const struct cell *c)
{
    return oracle->usec / c->usec;
}

static double
sent(const struct cell *oracle, const struct cell *c)
{
    return (double) c->n_sent / (double) oracle->n_sent;
}

/* Standard error of a mean, as a part of it. */
static double
error(const struct cell *c)
{
    double n = (double) compare->n_runs;
    double variance = c->usec2 / n - c->usec / n * c->usec / n;

    return sqrt(variance > 0 ? variance / n : 0) / (c->usec / n);
}

static bool
reaches(const struct cell *oracle, const struct cell *c)
{
    return goodput(oracle, c) >= LEAST_GOODPUT && sent(oracle, c) <= MOST_SENT;
}

static void
print_head(const char *of_oracle)
{
    const char *rule = "|---|---|---|";

    printf("\n| packets a message | loss a branch | %s |", of_oracle);
    for (unsigned col = 0; col < ORACLE; col++) {
        printf(has_column(col) ? " %s |" : "", sim_policies[col].name);
    }
    printf("\n%s", rule);
    for (unsigned col = 0; col < ORACLE; col++) {
        printf("%s", has_column(col) ? "---|" : "");
    }
    printf("\n");
}

static void
print_row_name(unsigned row)
{
    unsigned loss = losses[row % N_LOSSES];

    printf("| %u | %u.%u %% |", sizes[row / N_LOSSES], loss / 100, loss / 10 % 10);
}

/* Of each policy: what goodput is multiplied by in all cells together, that is, the geometric
 * mean. */
static void
print_means(void)
{
    printf("| all | | |");
    for (unsigned col = 0; col < ORACLE; col++) {
        double log_goodput = 0, log_sent = 0;
        size_t n = N_ROWS;

        for (unsigned row = 0; row < N_ROWS; row++) {
            log_goodput += log(goodput(&cells[row][ORACLE], &cells[row][col]));
            log_sent += log(sent(&cells[row][ORACLE], &cells[row][col]));
        }
        if (has_column(col)) {
            printf(" %.2f, %.2f |", exp(log_goodput / (double) n), exp(log_sent / (double) n));
        }
    }
    printf("\n");
}

static void
print_goodput(unsigned *n_passed, unsigned *n_failed)
{
    double n = (double) compare->n_runs * N_PACKETS;

    print_head("oracle: us a packet, sent");
    for (unsigned row = 0; row < N_ROWS; row++) {
        const struct cell *oracle = &cells[row][ORACLE];

        print_row_name(row);
        printf(" %.2f, %.2f |", oracle->usec / n, (double) oracle->n_sent / n);
        for (unsigned col = 0; col < ORACLE; col++) {
            const struct cell *c = &cells[row][col];

            if (has_column(col)) {
                bool ok = reaches(oracle, c);

                printf(" %.2f ± %.2f, %.2f%s |", goodput(oracle, c),
                       goodput(oracle, c) * hypot(error(oracle), error(c)), sent(oracle, c),
                       ok ? "" : " *");
                ++*(ok ? n_passed : n_failed);
            }
        }
        printf("\n");
    }
    print_means();
}

static void
print_stalls_of(const struct cell *c)
{
    for (unsigned i = 0; i < N_LAB_STALLS; i++) {
        printf("%s%.2f", i ? ", " : " ", (double) c->n_stalls[i] / compare->n_runs);
    }
    printf(" |");
}

static void
print_stalls(void)
{
    printf("\nHow often in a run the source's timer had to move things, because a packet\n"
           "- got lost again when it was sent again;\n"
           "- is missed, but the source had gone back elsewhere and ignored that;\n"
           "- is missed, but the one NAK got lost;\n"
           "- is missed, but nothing came behind it that would have told;\n"
           "or nothing is missed, but\n"
           "- the root does not know: an ACK got lost, or nobody was asked;\n"
           "- only the source does not know.\n");
    print_head("oracle");
    for (unsigned row = 0; row < N_ROWS; row++) {
        print_row_name(row);
        print_stalls_of(&cells[row][ORACLE]);
        for (unsigned col = 0; col < ORACLE; col++) {
            if (has_column(col)) {
                print_stalls_of(&cells[row][col]);
            }
        }
        printf("\n");
    }
}

int
compare_run(const struct compare *c)
{
    const char *lossy = !c->lose_up     ? "towards receivers"
                        : !c->lose_down ? "from receivers"
                                        : "in both directions";
    unsigned n_passed = 0, n_failed = 0;
    size_t size = N_ROWS * sizeof *cells;

    compare = c;
    cells = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cells == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    printf(
        "8 receivers at one switch, round trip %d us, timeout %d ms, a packet every %d us;\n"
        "%d packets a run, %u runs a cell, at most %d packets or %d messages posted;\n"
        "loss on the links of receivers, %s.\n"
        "Goodput (± its standard error) and packets sent against those of an ideal aggregator.\n",
        6 * DELAY, LAB_TIMEOUT_USEC / 1000, GAP, N_PACKETS, c->n_runs, IN_FLIGHT, MAX_POSTED,
        lossy);
    if (jobs_run(c->n_jobs, work)) {
        exit(1); /* It has said why. */
    }
    print_goodput(&n_passed, &n_failed);
    printf("\n*: not %.1f of the goodput, or more than %.1f times as many packets.\n",
           LEAST_GOODPUT, MOST_SENT);
    print_stalls();
    printf("\n%u passed, %u failed\n", n_passed, n_failed);
    munmap(cells, size);
    return n_failed ? 1 : 0;
}
