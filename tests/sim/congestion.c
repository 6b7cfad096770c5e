/* SPDX-License-Identifier: Apache-2.0
 *
 * What control of congestion does, in virtual time: tables of measurements, each with what it has to
 * reach (docs/simulation.md).  Goodput is what is new at a receiver, as a share of what its branch
 * could carry of it.
 *
 * Rows are computed in processes of their own; results are in shared memory.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/castsim.h"
#include "tests/sim/course.h"

#define MAX_CELLS      80
#define REACTION_DELAY 500  /* of each link, microseconds. */
#define MOST           1.01 /* share: with what waited before. */

/* A row of a table. */
struct cell {
    void (*compute)(const struct cell *);
    const char *head; /* of the table that begins here. */
    uint64_t rate;    /* of a branch that is congested. */
    enum control control;
    unsigned variant;
    bool open; /* nobody slows down. */
    /* Results. */
    unsigned n_passed, n_failed;
    double value;
    char text[400];
};

static struct cell *cell; /* that is computed. */

/* Prints a mark behind a value that is not as it has to be. */
static const char *
judge(bool ok)
{
    ++*(ok ? &cell->n_passed : &cell->n_failed);
    return ok ? "" : " *";
}

/* One slow branch. */

#define STAR "s-a98 a98-n1 n1-n2 n1-n3 n2-r1 n2-r2 n3-r3 n3-r4 n2-h1 n2-h2 n1-h3"

/* The receivers' links of STAR by number. */
static void
set_branch(unsigned receiver, uint64_t rate)
{
    char to[16];

    snprintf(to, sizeof to, "r%u", receiver);
    course_congest(receiver <= 2 ? "n2" : "n3", to, rate);
}

static void
change_branch(void *lab, unsigned receiver, unsigned slow)
{
    (void) lab;
    set_branch(receiver, slow ? course.line / L_OVER_C : course.line);
}

static void
change_later(uint64_t at, unsigned receiver, bool slow)
{
    fabric_schedule(&course.lab->fabric, course.start + at, change_branch, receiver, slow);
}

struct times {
    uint64_t onset, relief, end;
};

static struct times
choose_times(uint64_t rate)
{
    bool is_fast = rate > 100 * MBIT; /* many packets. */
    uint64_t onset = is_fast ? 50 * MSEC : 500 * MSEC;
    uint64_t relief = onset + (is_fast ? 2 * SEC : 5 * SEC);

    return (struct times){onset, relief, relief + (rate > 5 * MBIT ? 700 * MSEC : 2200 * MSEC)};
}

static uint64_t
n_resent(void)
{
    struct rc_info source;

    rc_get_info(course.lab->source, &source);
    return course.lab->n_sent - (uint64_t) psn_cmp(source.next, course.lab->start_psn);
}

static struct flow_info
group_flow(void)
{
    struct flow_info flow = {.n_cuts = 0};

    lab_group_flow(course.lab, &flow);
    return flow;
}

static void
say(const char *format, ...)
{
    size_t len = strlen(cell->text);
    va_list args;

    va_start(args, format);
    vsnprintf(cell->text + len, sizeof cell->text - len, format, args);
    va_end(args);
}

static void
say_rate_and_control(const struct cell *c)
{
    say("| %" PRIu64 " | %s |", c->rate / MBIT, controls[c->control].name);
}

static void
one_slow_branch(const struct cell *c)
{
    struct times t = choose_times(c->rate);
    struct lab *lab = course_begin(STAR, c->rate * L_OVER_C, c->control);
    struct egress_stats queue;
    unsigned side, link = lab_find_link(lab, "n3", "r3", &side);
    bool judged = c->control != OFF && c->control != SOURCE_NIC;

    course.receiver = 2;
    change_later(t.onset, 3, true);
    change_later(t.relief, 3, false);
    course_go(t.end);
    lab_queue_stats(lab, link, side, &queue);
    struct flow_info flow = group_flow();
    double settled = course_share(0, t.onset + SEC, t.relief, c->rate, FRAME);
    uint64_t drop = course_last_drop(t.onset), back = course_time_back(t.onset, t.relief, 0.95);
    say_rate_and_control(c);
    say(" %.3f%s | %" PRIu64 " | %" PRIu64 "%s | %" PRIu64 " |", settled,
        judged ? judge(settled >= 0.92 && settled <= MOST) : "", course_n_dropped(), drop / 1000,
        judged ? judge(drop <= 500 * MSEC) : "", n_resent());
    if (back == UINT64_MAX) {
        say(" never%s |", judged ? judge(false) : "");
    } else {
        say(" %.2f%s |", (double) back / 1e6,
            judged ? judge(back <= (c->rate > 5 * MBIT ? 500 * MSEC : 2 * SEC)) : "");
    }
    say(" %u | %" PRIu64 " | %" PRIu64 " |", queue.max_depth, flow.n_cuts,
        flow.n_cnps + flow.n_fast_cnps);
}

/* Two flows through one branch. */

#define PAIR "s-a98 a98-n1 h1-a97 a97-n1 h3-n1 n1-n2 n2-r1 n2-h2 n2-h4"

enum rival { RIVAL_AGENT, RIVAL_NIC, RIVAL_NONE };
static const char *const rivals[] = {
    [RIVAL_AGENT] = "behind an agent",
    [RIVAL_NIC] = "without agent; its NIC obeys CNPs",
    [RIVAL_NONE] = "without agent; nobody slows it down",
};

static void
change_pair(void *lab, unsigned slow, unsigned unused)
{
    (void) lab, (void) unused;
    course_congest("n1", "n2", slow ? course.line / L_OVER_C : course.line);
}

static void
two_flows(const struct cell *c)
{
    const uint64_t onset = 500 * MSEC, end = 10500 * MSEC;
    struct lab *lab = course_begin(PAIR, c->rate * L_OVER_C, c->control);
    struct lab_flow *f =
        c->variant == RIVAL_AGENT ? course_add_flow("h1", "h2") : course_add_flow("h3", "h4");

    f->obeys = c->variant == RIVAL_NIC;
    f->ecn = c->variant != RIVAL_NONE;
    fabric_schedule(&lab->fabric, course.start + onset, change_pair, 1, 0);
    fabric_schedule(&lab->fabric, course.start + end, change_pair, 0, 0);
    course_go(end);
    double group = course_share(0, onset + 2 * SEC, end, c->rate, FABRIC_FRAME);
    double flow = course_share(1, onset + 2 * SEC, end, c->rate, FRAME);
    bool judged = c->variant == RIVAL_AGENT;
    say_rate_and_control(c);
    say(" %s | %.3f%s | %.3f%s | %.3f | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " |",
        rivals[c->variant], group, judged ? judge(group >= 0.4 && group <= 0.6) : "", flow,
        judged ? judge(flow >= 0.4 && flow <= 0.6) : "", group + flow, course_n_dropped(),
        course_last_drop(0) / 1000, n_resent());
}

/* Congestion that moves. */

static void
moving(const struct cell *c)
{
    static const unsigned branches[] = {1, 3, 4};
    const uint64_t phase = 2 * SEC, first = 500 * MSEC;
    course_begin(STAR, c->rate * L_OVER_C, c->control);
    double least = 9;
    uint64_t late = 0;

    course.receiver = 0;
    for (unsigned i = 0; i < 3; i++) {
        change_later(first + i * phase, branches[i], true);
        change_later(first + (i + 1) * phase, branches[i], false);
    }
    course_go(first + 3 * phase);
    say_rate_and_control(c);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t onset = first + i * phase;
        double settled = course_share(0, onset + SEC, onset + phase, c->rate, FRAME);

        say(" %.3f%s |", settled, judge(settled >= 0.92 && settled <= MOST));
        least = settled < least ? settled : least;
        late += course_at(onset + phase)->n_dropped - course_at(onset + 500 * MSEC)->n_dropped;
    }
    say(" %" PRIu64 " | %" PRIu64 "%s | %" PRIu64 " |", course_n_dropped(), late, judge(!late),
        n_resent());
}

/* CNPs without reason. */

static void
storm(const struct cell *c)
{
    const uint64_t end = 2 * SEC;
    bool forged = c->variant;
    struct lab *lab = course_begin(STAR, c->rate * L_OVER_C, c->control);
    struct lab_congestion *g = &lab->congestion;

    course_add_flow("h1", "h2");
    g->storm_station = lab_station_of(lab, forged ? "h3" : "r1");
    g->storm_usec = 100;
    g->storm_most = UINT_MAX;
    course_go(end);
    struct flow_info flow = group_flow();
    double group = course_share(0, SEC, end, lab->congestion.line, FRAME);
    double rival = course_share(1, SEC, end, lab->congestion.line, FRAME);
    uint64_t lasted = lab->over_since - course.start, n_intervals = lasted / g->interval_usec + 1;
    say("| %" PRIu64 " | %s | %" PRIu64 " | %" PRIu64 "%s | %" PRIu64 "%s | %.2f%s | %.2f%s |"
        " %.3f%s |",
        c->rate / MBIT * L_OVER_C, forged ? "a host that is no member" : "a receiver's NIC",
        lab->net.n_storm, flow.n_cnps, judge(flow.n_cnps <= lasted / g->window_usec + 1),
        flow.n_cuts, judge(forged ? !flow.n_cuts : flow.n_cuts <= n_intervals),
        (double) flow.rate / 1e6, judge(forged ? !flow.rate : flow.rate >= g->floor), group,
        judge(!forged || group >= 0.9), rival, judge(rival >= 0.9));
}

/* Many congested branches.  With control off, and queues that take the whole window, all of them
 * are congested all the time. */

#define EIGHT "s-a98 a98-n1 n1-n2 n1-n3 n1-n4 n1-n5 n2-r1 n2-r2 n3-r3 n3-r4 n4-r5 n4-r6 n5-r7 n5-r8"

enum { N_BRANCHES = 8 };

static void
many_branches(const struct cell *c)
{
    const uint64_t end = 5 * SEC;
    unsigned n_slow = c->variant, n_edges = (n_slow + 1) / 2;
    enum control control = c->control;
    struct lab *lab = course_begin(EIGHT, c->rate * L_OVER_C, control);

    lab->congestion.rate_control = c->open ? RATE_BY_NONE : RATE_BY_AGENT;
    for (unsigned i = 1; i <= n_slow; i++) {
        char edge[16], receiver[16];
        unsigned side;

        snprintf(edge, sizeof edge, "n%u", 2 + (i - 1) / 2);
        snprintf(receiver, sizeof receiver, "r%u", i);
        unsigned link = lab_find_link(lab, edge, receiver, &side);
        struct impair_params params = course_congested(c->rate);
        params.queue = c->open ? LINE_QUEUE : params.queue;
        lab_set_rate(lab, link, side, &params);
    }
    course_go(end);
    struct flow_info flow = group_flow();
    double n_intervals =
        (double) (lab->over_since - course.start) / lab->congestion.interval_usec + 1;
    uint64_t n_fast = lab_node_drops(&lab->nodes[lab->agent], DROP_fast_cnp)
                      + lab_node_drops(&lab->nodes[lab->agent], DROP_fast_cnp_soon);
    bool fast = controls[control].fast;
    double a_interval = (double) (fast ? n_fast : flow.n_cnps) / n_intervals;
    cell->value = a_interval;
    say_rate_and_control(c);
    say(" %s | %u | %u | %.3f | %.3f%s |", c->open ? "nobody" : "the agent", n_slow, n_edges,
        course_share(0, SEC, end, c->rate, FRAME), a_interval,
        fast ? judge(a_interval <= n_edges) : judge(a_interval <= 1));
    if (!fast && c->open && n_slow == N_BRANCHES) {
        double ratio = a_interval / cell[-1].value;
        say(" %.2f%s |", ratio, judge(ratio <= 1.1));
    } else {
        say(" |");
    }
    say(" %.3f%s |", (double) flow.n_cuts / n_intervals, judge(flow.n_cuts <= n_intervals));
}

/* Reaction. */

#define CHAIN   "s-a98 a98-n1 n1-n2 n2-n3 n3-r1"
#define CHAIN_N 4 /* links from the agent to the receiver. */

static struct {
    unsigned link, side;
    bool begun;
    uint64_t crossed, cut, paced;
    uint64_t n_before;
} reaction;

static void
look_for_reaction(struct lab *lab)
{
    struct egress_stats queue;
    const struct lab_node *agent = &lab->nodes[lab->agent];

    if (!reaction.crossed && reaction.begun
        && lab_queue_stats(lab, reaction.link, reaction.side, &queue) && queue.depth > KMIN) {
        reaction.crossed = lab->fabric.now;
    }
    if (!reaction.cut && group_flow().n_cuts) {
        reaction.cut = lab->fabric.now;
        reaction.n_before = agent->n_requests_out;
    }
    if (reaction.cut && !reaction.paced && agent->n_requests_out > reaction.n_before) {
        reaction.paced = lab->fabric.now;
    }
}

static const char *const chain[] = {"n1", "n2", "n3", "r1"};

/* The one that is 'a' links away from the agent. */
static void
slow_down_link(void *lab, unsigned a, unsigned unused)
{
    (void) lab, (void) unused;
    reaction.begun = true;
    course_congest(chain[a - 1], chain[a], course.line / L_OVER_C);
}

static void
react(const struct cell *c)
{
    unsigned a = c->variant;
    struct lab *lab = course_begin(CHAIN, c->rate * L_OVER_C, c->control);

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            bool is_hosts = lab->fabric.links[i].ends[0].station == lab_source_station(lab);
            lab->fabric.links[i].quality[side].delay = is_hosts ? 0 : REACTION_DELAY;
        }
    }
    memset(&reaction, 0, sizeof reaction);
    reaction.link = lab_find_link(lab, chain[a - 1], chain[a], &reaction.side);
    fabric_schedule(&lab->fabric, course.start + 500 * MSEC, slow_down_link, a, 0);
    lab->probe = look_for_reaction;
    course_go(SEC);
    cell->value = (double) (reaction.paced - reaction.crossed) / 1000;
    if (c->control == FAST_CNP) {
        say("| %u | %u | %.2f |", a, CHAIN_N, cell->value);
        return;
    }
    double ratio = cell[c->control == NIC_CNP ? -1 : -2].value / cell->value;
    bool judged = c->control == NIC_CNP && 3 * a <= 2 * CHAIN_N;
    say(" %.2f | %.2f%s |", cell->value, ratio, judged ? judge(ratio <= 0.5) : "");
    if (c->control == EDGE_CNP) {
        say(" %.2f |", (double) a / (2 * CHAIN_N - a));
    }
}

/* All of them. */

static struct cell *cells;
static unsigned n_cells;

static void
add(void (*compute)(const struct cell *), const char *title, uint64_t rate, enum control control,
    unsigned variant)
{
    if (n_cells == MAX_CELLS) {
        abort();
    }
    cells[n_cells++] = (struct cell){
        .compute = compute, .head = title, .rate = rate, .control = control, .variant = variant};
}

static void
add_all(void)
{
    static const uint64_t rates[] = {5 * MBIT, 10 * MBIT, 100 * MBIT, 1000 * MBIT};
    const char *title =
        "One of four branches slows down to the rate given, a tenth of the line's, and recovers.\n"
        "| Mb/s | control | goodput of the branch | drops | last, ms from the onset | resent |"
        " back, s | longest queue | cuts | signals |\n|---|---|---|---|---|---|---|---|---|---|\n";

    for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
        for (enum control c = OFF; c <= SOURCE_NIC; c++, title = NULL) {
            add(one_slow_branch, title, rates[i], c, 0);
        }
    }
    title = "The group and a unicast flow share a branch.\n"
            "| Mb/s | control | the flow's host is | group | flow | both | drops | last, ms |"
            " resent |\n|---|---|---|---|---|---|---|---|---|\n";
    for (unsigned i = 0; i < 3; i++, title = NULL) {
        add(two_flows, title, rates[i], FAST_CNP, RIVAL_AGENT);
    }
    for (enum rival r = RIVAL_NIC; r <= RIVAL_NONE; r++) {
        add(two_flows, NULL, 10 * MBIT, EDGE_CNP, r);
        add(two_flows, NULL, 10 * MBIT, FAST_CNP, r);
    }
    title = "Congestion moves to another branch every 2 s.\n"
            "| Mb/s | control | goodput of the first | second | third branch | drops |"
            " later than 500 ms after an onset | resent |\n|---|---|---|---|---|---|---|---|\n";
    for (enum control c = EDGE_CNP; c <= FAST_CNP; c++, title = NULL) {
        add(moving, title, 10 * MBIT, c, 0);
    }
    title = "CNPs without reason, every 100 us for 2 s.\n"
            "| line, Mb/s | made by | of them | CNPs at the agent | cuts | rate at the end, Mb/s |"
            " goodput of the group | of another flow |\n|---|---|---|---|---|---|---|---|\n";
    add(storm, title, 10 * MBIT, NIC_CNP, 0);
    add(storm, NULL, 10 * MBIT, NIC_CNP, 1);
    title = "Several congested branches.\n"
            "| Mb/s | signals | slows down | branches congested | of nodes | goodput |"
            " signals an interval | eight against one | cuts an interval |\n"
            "|---|---|---|---|---|---|---|---|---|\n";
    for (enum control c = EDGE_CNP; c <= FAST_CNP; c++) {
        for (unsigned open = 0; open < 2; open++) {
            for (unsigned n = 1; n <= N_BRANCHES; n += N_BRANCHES - 1, title = NULL) {
                add(many_branches, title, 10 * MBIT, c, n);
                cells[n_cells - 1].open = open;
            }
        }
    }
    title = "From the queue's threshold to the first packet at a lower rate, ms; 0.5 ms a link, 10 "
            "Mb/s behind 100 Mb/s, N 10 ms, T 1 ms.\n"
            "| links from the agent | to the receiver | Fast CNP | receiver's CNP | ratio |"
            " edge's CNP | ratio | a/(2n - a) |\n|---|---|---|---|---|---|---|---|\n";
    for (unsigned a = 1; a <= 3; a++, title = NULL) {
        add(react, title, 10 * MBIT, FAST_CNP, a);
        add(react, NULL, 10 * MBIT, NIC_CNP, a);
        add(react, NULL, 10 * MBIT, EDGE_CNP, a);
    }
}

/* A cell may look at those before it of its table, so a job has tables as a whole. */
static void
work(unsigned job, unsigned n_jobs)
{
    unsigned table = 0;

    for (cell = cells; cell < cells + n_cells; cell++) {
        table += cell->head != NULL;
        bool alone = cell->compute == one_slow_branch || cell->compute == two_flows;

        if ((alone ? (unsigned) (cell - cells) : table) % n_jobs == job) {
            snprintf(course_name, sizeof course_name, "row %u, %s", (unsigned) (cell - cells),
                     controls[cell->control].name);
            cell->compute(cell);
            lab_destroy(course.lab);
        }
    }
}

int
congestion_run(unsigned n_jobs)
{
    unsigned n_passed = 0, n_failed;
    size_t size = MAX_CELLS * sizeof *cells;

    cells = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cells == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    add_all();
    n_failed = jobs_run(n_jobs, work); /* They have said why. */
    for (unsigned i = 0; i < n_cells; i++) {
        bool goes_on = i + 1 < n_cells && cells[i + 1].compute == react && !cells[i + 1].head
                       && cells[i + 1].control != FAST_CNP;

        printf("%s%s%s%s", cells[i].head ? "\n" : "", cells[i].head ? cells[i].head : "",
               cells[i].text, goes_on ? "" : "\n");
        n_passed += cells[i].n_passed;
        n_failed += cells[i].n_failed;
    }
    printf("\n*: not as it has to be.\n%u passed, %u failed\n", n_passed, n_failed);
    munmap(cells, size);
    return n_failed ? 1 : 0;
}
