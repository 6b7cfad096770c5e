/* SPDX-License-Identifier: Apache-2.0
 *
 * What control of congestion does, in virtual time: tables of measurements, each with what it has to
 * reach (docs/simulation.md).
 *
 * All links have the line's rate L, but for those that a case slows down.  The source's host has a
 * link of its own with the share of L that the group's packets leave of it in the fabric, so that
 * its window waits in its NIC, as that of a real one does.  Goodput is what is new at a receiver, as
 * a share of what its branch could carry of it.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ioam.h"
#include "tests/sim/castsim.h"

#define MTU            1024
#define FRAME          1102 /* of the most frequent packets, on a host's link, */
#define FABRIC_FRAME   1142 /* and between nodes. */
#define MESSAGE        256  /* packets. */
#define N_SLOTS        4    /* messages that there is memory for; then from the front again. */
#define TIMEOUT        18   /* 4.096 us * 2^18: 1.07 s. */
#define LINK_USEC      20
#define LINE_QUEUE     1000 /* frames, at a link that is not congested. */
#define SHORT_QUEUE    64   /* at one that is, */
#define KMIN           5    /* with its RED. */
#define KMAX           20
#define PMAX           1000000
#define TRACE_SLOTS    4
#define TICK           10000 /* between two samples, microseconds. */
#define MAX_TICKS      2000
#define MAX_FLOWS      2
#define MAX_CELLS      80
#define L_OVER_C       10
#define REACTION_DELAY 500  /* of each link, microseconds. */
#define MOST           1.01 /* share: with what waited before. */
#define MBIT           UINT64_C(1000000)
#define EVENTS         200000000

#define MSEC           UINT64_C(1000)
#define SEC            UINT64_C(1000000)

/* How the source hears of congestion. */
enum control { OFF, EDGE_CNP, NIC_CNP, FAST_CNP, FAST_DEPTH, SOURCE_NIC, N_CONTROLS };

static const struct {
    const char *name;
    bool fast, nic, obeys, depth;
} controls[N_CONTROLS] = {
    [OFF] = {"off", false, false, false, false},
    [EDGE_CNP] = {"edge's CNPs", false, false, false, false},
    [NIC_CNP] = {"receivers' CNPs", false, true, false, false},
    [FAST_CNP] = {"Fast CNPs", true, false, false, false},
    [FAST_DEPTH] = {"Fast CNPs with traces", true, false, false, true},
    [SOURCE_NIC] = {"source's NIC obeys", false, true, true, false},
};

struct sample {
    uint64_t at;
    uint64_t n_new[1 + MAX_FLOWS]; /* packets that are new at the receivers looked at. */
    uint64_t n_dropped;            /* by queues. */
};

/* A run: what happens and what is seen. */
struct run {
    const char *topology;
    uint64_t line;
    enum control control;
    uint64_t delay;    /* of links. */
    unsigned receiver; /* that is looked at. */
    uint64_t end;
    struct lab *lab;
    uint64_t start;
    unsigned n_samples;
    struct sample samples[MAX_TICKS];
};

/* A row of a table, computed in a process of its own. */
struct cell {
    void (*compute)(const struct cell *);
    const char *head; /* of the table that begins here. */
    uint64_t rate;    /* of a branch that is congested. */
    enum control control;
    unsigned variant;
    bool open; /* nobody slows down. */
    /* Results. */
    bool done;
    unsigned n_passed, n_failed;
    double value;
    char text[400];
};

static struct run run;
static struct cell *cell; /* that is computed. */
static char what[160];

static void
lab_failed(const struct lab *lab, const char *condition, const char *text)
{
    printf("FAIL %s: %s (%s) at virtual time %" PRIu64 " us\n", what, text, condition,
           lab->fabric.now - run.start);
    fflush(NULL);
    _exit(1);
}

/* Prints a mark behind a value that is not as it has to be. */
static const char *
judge(bool ok)
{
    ++*(ok ? &cell->n_passed : &cell->n_failed);
    return ok ? "" : " *";
}

/* Setting up. */

static struct impair_params
congested_params(uint64_t rate)
{
    return (struct impair_params){
        .rate = rate, .queue = SHORT_QUEUE, .kmin = KMIN, .kmax = KMAX, .pmax = PMAX};
}

/* Makes a link congested. */
static void
set_rate(const char *from, const char *to, uint64_t rate)
{
    struct impair_params params = congested_params(rate);
    unsigned side;
    unsigned link = lab_find_link(run.lab, from, to, &side);

    lab_set_rate(run.lab, link, side, &params);
}

/* What a host can send so that its packets fill a link of the line's rate when they are in the
 * tunnel. */
static uint64_t
host_rate(uint64_t line, enum control control)
{
    return line * FRAME
           / (FABRIC_FRAME + (controls[control].depth ? IOAM_HBH_LEN(TRACE_SLOTS) : 0));
}

/* Between two packets of a host, rounded down: its link does the rest. */
static uint64_t
frame_usec(uint64_t line)
{
    uint64_t usec = FRAME * 8 * SEC / line;

    return usec ? usec : 1;
}

static void
choose_messages(struct lab *lab)
{
    lab->depth = 2;
    for (unsigned i = 0; i < LAB_MAX_MESSAGES; i++) {
        lab->messages[i] = (struct lab_message){
            .op = RC_OP_WRITE, .ofs = i % N_SLOTS * MESSAGE * MTU, .len = MESSAGE * MTU};
    }
    lab->n_messages = LAB_MAX_MESSAGES;
    lab->region_len = N_SLOTS * MESSAGE * MTU;
    lab->n_packets = LAB_MAX_MESSAGES * MESSAGE;
}

static struct lab *
setup(const char *topology, uint64_t line, enum control control)
{
    struct lab *lab = lab_create(topology, 1, false, lab_failed);
    struct lab_congestion *c = &lab->congestion;

    run = (struct run){.topology = topology,
                       .line = line,
                       .control = control,
                       .lab = lab,
                       .start = lab->fabric.now};
    lab->mtu = MTU;
    lab->provisioned = true;
    lab->start_psn = psn_make(1);
    lab->gap = frame_usec(line);
    lab->nak = NAK_HOLD;
    lab->filter = true;
    lab->timeout = TIMEOUT;
    lab->timeout_usec = (uint32_t) (4.096 * (1 << TIMEOUT));
    lab->event_limit = EVENTS;
    c->on = true;
    c->line = line;
    c->floor = rate_floor_for(FABRIC_FRAME, TIMEOUT);
    c->ecn = true;
    c->fast_cnp = controls[control].fast;
    c->controller = controls[control].depth ? RATE_DEPTH : RATE_DCQCN;
    c->trace_slots = controls[control].depth ? TRACE_SLOTS : 0;
    c->rate_control = control == OFF            ? RATE_BY_NONE
                      : controls[control].obeys ? RATE_BY_NIC
                                                : RATE_BY_AGENT;
    c->cnp = controls[control].nic ? CNP_NIC : CNP_EDGE;
    for (unsigned i = 0; controls[control].nic && i < lab->n; i++) {
        lab_set_add(&c->nic_cnps, i);
    }
    if (line >= 1000 * MBIT) { /* packets are short. */
        c->interval_usec = 1000;
        c->window_usec = 100;
    }
    lab->warm_up = true;
    choose_messages(lab);
    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        struct fabric_link *link = &lab->fabric.links[i];
        for (unsigned side = 0; side < 2; side++) {
            bool from_source = link->ends[side].station == lab_source_station(lab);

            link->quality[side].delay = LINK_USEC;
            lab_set_rate(
                lab, i, side,
                &(struct impair_params){.rate = from_source ? host_rate(line, control) : line,
                                        .queue = LINE_QUEUE});
        }
    }
    return lab;
}

static struct lab_flow *
add_flow(const char *from, const char *to)
{
    struct lab_flow *f = lab_flow_add(run.lab, from, to);

    f->ecn = true;
    f->gap = frame_usec(run.line);
    f->message_len = MESSAGE * MTU;
    f->n_messages = 1u << 30;
    return f;
}

/* Looking. */

static uint64_t
n_dropped(const struct lab *lab)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < lab->n_nodes; i++) {
        n += lab_node_drops(&lab->nodes[i], DROP_egress_full)
             + lab_node_drops(&lab->nodes[i], DROP_egress_red);
    }
    return n;
}

static void
look(void *lab_, unsigned unused, unsigned unused2)
{
    struct lab *lab = lab_;
    struct sample *s = &run.samples[run.n_samples++];

    (void) unused, (void) unused2;
    s->at = lab->fabric.now - run.start;
    s->n_new[0] =
        (uint64_t) psn_cmp(rc_expected(lab->receivers[run.receiver].endpoint), lab->start_psn);
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        s->n_new[1 + i] =
            (uint64_t) psn_cmp(rc_expected(lab->net.flows[i].receiver), lab->start_psn);
    }
    s->n_dropped = n_dropped(lab);
    if (s->at < run.end && run.n_samples < MAX_TICKS) {
        fabric_schedule(&lab->fabric, lab->fabric.now + TICK, look, 0, 0);
        return;
    }
    /* No more: what is posted is completed. */
    lab->n_messages = lab->n_posted;
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        lab->net.flows[i].n_messages = lab->net.flows[i].n_posted;
    }
}

/* At most 'end' microseconds, and what is under way then. */
static void
go(uint64_t end)
{
    run.end = end;
    fabric_schedule(&run.lab->fabric, run.lab->fabric.now, look, 0, 0);
    lab_run(run.lab);
}

static const struct sample *
sample_at(uint64_t at)
{
    unsigned i = (unsigned) (at / TICK);

    return &run.samples[i < run.n_samples ? i : run.n_samples - 1];
}

/* Share of a link of this rate that flow 'i' had between two times. */
static double
share(unsigned i, uint64_t from, uint64_t to, uint64_t rate, unsigned frame)
{
    const struct sample *a = sample_at(from), *b = sample_at(to);

    return (double) (b->n_new[i] - a->n_new[i]) * frame * 8 * 1e6
           / ((double) (b->at - a->at) * (double) rate);
}

/* When drops came last, from 'from' on; 0: none did. */
static uint64_t
last_drop(uint64_t from)
{
    uint64_t last = 0;

    for (unsigned i = 1; i < run.n_samples; i++) {
        if (run.samples[i].n_dropped > run.samples[i - 1].n_dropped && run.samples[i].at > from) {
            last = run.samples[i].at - from;
        }
    }
    return last;
}

/* How long it took from 'from' on until the group had this share of what it had in the same time
 * before 'onset'; UINT64_MAX: it did not. */
static uint64_t
time_back(uint64_t onset, uint64_t from, double least)
{
    const uint64_t over = onset / 2 < 100 * MSEC ? onset / 2 : 100 * MSEC;
    double before = share(0, onset - over, onset, run.line, FRAME);

    for (uint64_t t = from + over; t <= run.end; t += TICK) {
        if (share(0, t - over, t, run.line, FRAME) >= least * before) {
            return t - from;
        }
    }
    return UINT64_MAX;
}

/* One slow branch. */

#define STAR "s-a98 a98-n1 n1-n2 n1-n3 n2-r1 n2-r2 n3-r3 n3-r4 n2-h1 n2-h2 n1-h3"

/* The receivers' links of STAR by number. */
static void
set_branch(unsigned receiver, uint64_t rate)
{
    char to[16];

    snprintf(to, sizeof to, "r%u", receiver);
    set_rate(receiver <= 2 ? "n2" : "n3", to, rate);
}

static void
change_branch(void *lab, unsigned receiver, unsigned slow)
{
    (void) lab;
    set_branch(receiver, slow ? run.line / L_OVER_C : run.line);
}

static void
change_later(uint64_t at, unsigned receiver, bool slow)
{
    fabric_schedule(&run.lab->fabric, run.start + at, change_branch, receiver, slow);
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

    rc_get_info(run.lab->source, &source);
    return run.lab->n_sent - (uint64_t) psn_cmp(source.next, run.lab->start_psn);
}

static struct flow_info
group_flow(void)
{
    struct flow_info flow = {.n_cuts = 0};

    lab_group_flow(run.lab, &flow);
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
    struct lab *lab = setup(STAR, c->rate * L_OVER_C, c->control);
    struct egress_stats queue;
    unsigned side, link = lab_find_link(lab, "n3", "r3", &side);
    bool judged = c->control != OFF && c->control != SOURCE_NIC;

    run.receiver = 2;
    change_later(t.onset, 3, true);
    change_later(t.relief, 3, false);
    go(t.end);
    lab_queue_stats(lab, link, side, &queue);
    struct flow_info flow = group_flow();
    double settled = share(0, t.onset + SEC, t.relief, c->rate, FRAME);
    uint64_t drop = last_drop(t.onset), back = time_back(t.onset, t.relief, 0.95);
    say_rate_and_control(c);
    say(" %.3f%s | %" PRIu64 " | %" PRIu64 "%s | %" PRIu64 " |", settled,
        judged ? judge(settled >= 0.92 && settled <= MOST) : "", n_dropped(lab), drop / 1000,
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
    set_rate("n1", "n2", slow ? run.line / L_OVER_C : run.line);
}

static void
two_flows(const struct cell *c)
{
    const uint64_t onset = 500 * MSEC, end = 10500 * MSEC;
    struct lab *lab = setup(PAIR, c->rate * L_OVER_C, c->control);
    struct lab_flow *f = c->variant == RIVAL_AGENT ? add_flow("h1", "h2") : add_flow("h3", "h4");

    f->obeys = c->variant == RIVAL_NIC;
    f->ecn = c->variant != RIVAL_NONE;
    fabric_schedule(&lab->fabric, run.start + onset, change_pair, 1, 0);
    fabric_schedule(&lab->fabric, run.start + end, change_pair, 0, 0);
    go(end);
    double group = share(0, onset + 2 * SEC, end, c->rate, FABRIC_FRAME);
    double flow = share(1, onset + 2 * SEC, end, c->rate, FRAME);
    bool judged = c->variant == RIVAL_AGENT;
    say_rate_and_control(c);
    say(" %s | %.3f%s | %.3f%s | %.3f | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " |",
        rivals[c->variant], group, judged ? judge(group >= 0.4 && group <= 0.6) : "", flow,
        judged ? judge(flow >= 0.4 && flow <= 0.6) : "", group + flow, n_dropped(lab),
        last_drop(0) / 1000, n_resent());
}

/* Congestion that moves. */

static void
moving(const struct cell *c)
{
    static const unsigned branches[] = {1, 3, 4};
    const uint64_t phase = 2 * SEC, first = 500 * MSEC;
    struct lab *lab = setup(STAR, c->rate * L_OVER_C, c->control);
    double least = 9;
    uint64_t late = 0;

    run.receiver = 0;
    for (unsigned i = 0; i < 3; i++) {
        change_later(first + i * phase, branches[i], true);
        change_later(first + (i + 1) * phase, branches[i], false);
    }
    go(first + 3 * phase);
    say_rate_and_control(c);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t onset = first + i * phase;
        double settled = share(0, onset + SEC, onset + phase, c->rate, FRAME);

        say(" %.3f%s |", settled, judge(settled >= 0.92 && settled <= MOST));
        least = settled < least ? settled : least;
        late += sample_at(onset + phase)->n_dropped - sample_at(onset + 500 * MSEC)->n_dropped;
    }
    say(" %" PRIu64 " | %" PRIu64 "%s | %" PRIu64 " |", n_dropped(lab), late, judge(!late),
        n_resent());
}

/* CNPs without reason. */

static void
storm(const struct cell *c)
{
    const uint64_t end = 2 * SEC;
    bool forged = c->variant;
    struct lab *lab = setup(STAR, c->rate * L_OVER_C, c->control);
    struct lab_congestion *g = &lab->congestion;

    add_flow("h1", "h2");
    g->storm_station = lab_station_of(lab, forged ? "h3" : "r1");
    g->storm_usec = 100;
    g->storm_most = UINT_MAX;
    go(end);
    struct flow_info flow = group_flow();
    double group = share(0, SEC, end, lab->congestion.line, FRAME);
    double rival = share(1, SEC, end, lab->congestion.line, FRAME);
    uint64_t lasted = lab->over_since - run.start, n_intervals = lasted / g->interval_usec + 1;
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
    struct lab *lab = setup(EIGHT, c->rate * L_OVER_C, control);

    lab->congestion.rate_control = c->open ? RATE_BY_NONE : RATE_BY_AGENT;
    for (unsigned i = 1; i <= n_slow; i++) {
        char edge[16], receiver[16];
        unsigned side;

        snprintf(edge, sizeof edge, "n%u", 2 + (i - 1) / 2);
        snprintf(receiver, sizeof receiver, "r%u", i);
        unsigned link = lab_find_link(lab, edge, receiver, &side);
        struct impair_params params = congested_params(c->rate);
        params.queue = c->open ? LINE_QUEUE : SHORT_QUEUE;
        lab_set_rate(lab, link, side, &params);
    }
    go(end);
    struct flow_info flow = group_flow();
    double n_intervals = (double) (lab->over_since - run.start) / lab->congestion.interval_usec + 1;
    uint64_t n_fast = lab_node_drops(&lab->nodes[lab->agent], DROP_fast_cnp)
                      + lab_node_drops(&lab->nodes[lab->agent], DROP_fast_cnp_soon);
    bool fast = controls[control].fast;
    double a_interval = (double) (fast ? n_fast : flow.n_cnps) / n_intervals;
    cell->value = a_interval;
    say_rate_and_control(c);
    say(" %s | %u | %u | %.3f | %.3f%s |", c->open ? "nobody" : "the agent", n_slow, n_edges,
        share(0, SEC, end, c->rate, FRAME), a_interval,
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
    set_rate(chain[a - 1], chain[a], run.line / L_OVER_C);
}

static void
react(const struct cell *c)
{
    unsigned a = c->variant;
    struct lab *lab = setup(CHAIN, c->rate * L_OVER_C, c->control);

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            bool is_hosts = lab->fabric.links[i].ends[0].station == lab_source_station(lab);
            lab->fabric.links[i].quality[side].delay = is_hosts ? 0 : REACTION_DELAY;
        }
    }
    memset(&reaction, 0, sizeof reaction);
    reaction.link = lab_find_link(lab, chain[a - 1], chain[a], &reaction.side);
    fabric_schedule(&lab->fabric, run.start + 500 * MSEC, slow_down_link, a, 0);
    lab->probe = look_for_reaction;
    go(SEC);
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
            snprintf(what, sizeof what, "row %u, %s", (unsigned) (cell - cells),
                     controls[cell->control].name);
            cell->compute(cell);
            lab_destroy(run.lab);
            cell->done = true;
        }
    }
}

int
congestion_run(unsigned n_jobs)
{
    unsigned n_passed = 0, n_failed = 0;
    size_t size = MAX_CELLS * sizeof *cells;

    cells = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cells == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    add_all();
    for (unsigned job = 0; job < n_jobs; job++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0) {
            perror("fork");
            exit(1);
        }
        if (!pid) {
            work(job, n_jobs);
            exit(0);
        }
    }
    for (int status; wait(&status) > 0;) {
        n_failed += status != 0; /* It has said why. */
    }
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
