/* SPDX-License-Identifier: Apache-2.0
 *
 * One course of a congested lab.
 */
#include "tests/sim/course.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/ioam.h"

#define MTU         1024
#define MESSAGE     256 /* packets. */
#define N_SLOTS     4   /* messages that there is memory for; then from the front again. */
#define TIMEOUT     18  /* 4.096 us * 2^18: 1.07 s. */
#define LINK_USEC   2
#define SHORT_QUEUE 64
#define KMAX        20
#define PMAX        1000000
#define TRACE_SLOTS 4
#define TICK        10000 /* between two samples, microseconds. */
#define EVENTS      200000000

struct course course;
char course_name[160];

const struct control_means controls[N_CONTROLS] = {
    [OFF] = {"off", false, false, false, false},
    [EDGE_CNP] = {"edge's CNPs", false, false, false, false},
    [NIC_CNP] = {"receivers' CNPs", false, true, false, false},
    [FAST_CNP] = {"Fast CNPs", true, false, false, false},
    [FAST_DEPTH] = {"Fast CNPs with traces", true, false, false, true},
    [SOURCE_NIC] = {"source's NIC obeys", false, true, true, false},
};

void
course_failed(const struct lab *lab, const char *condition, const char *text)
{
    printf("FAIL %s: %s (%s) at virtual time %" PRIu64 " us\n", course_name, text, condition,
           lab->fabric.now - course.start);
    fflush(NULL);
    _exit(1);
}

/* Setting up. */

struct impair_params
course_congested(uint64_t rate)
{
    return (struct impair_params){
        .rate = rate, .queue = SHORT_QUEUE, .kmin = KMIN, .kmax = KMAX, .pmax = PMAX};
}

void
course_congest(const char *from, const char *to, uint64_t rate)
{
    struct impair_params params = course_congested(rate);
    unsigned side;
    unsigned link = lab_find_link(course.lab, from, to, &side);

    lab_set_rate(course.lab, link, side, &params);
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

struct lab *
course_begin(const char *topology, uint64_t line, enum control control)
{
    struct lab *lab = lab_create(topology, 1, false, course_failed);
    struct lab_congestion *c = &lab->congestion;

    course = (struct course){.line = line, .lab = lab, .start = lab->fabric.now};
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
    if (line > 100 * MBIT) { /* as short as packets are. */
        c->interval_usec = (uint32_t) (c->interval_usec * 100 * MBIT / line);
        c->window_usec = c->interval_usec / 10;
    }
    c->fast_cnp_rate = (uint32_t) (4 * SEC / c->interval_usec); /* one for a flow in each N. */
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

struct lab_flow *
course_add_flow(const char *from, const char *to)
{
    struct lab_flow *f = lab_flow_add(course.lab, from, to);

    f->ecn = true;
    f->gap = frame_usec(course.line);
    f->message_len = MESSAGE * MTU;
    f->n_messages = 1u << 30;
    return f;
}

/* Looking. */

uint64_t
course_n_dropped(void)
{
    const struct lab *lab = course.lab;
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
    struct sample *s = &course.samples[course.n_samples++];

    (void) unused, (void) unused2;
    s->at = lab->fabric.now - course.start;
    s->n_new[0] =
        (uint64_t) psn_cmp(rc_expected(lab->receivers[course.receiver].endpoint), lab->start_psn);
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        s->n_new[1 + i] =
            (uint64_t) psn_cmp(rc_expected(lab->net.flows[i].receiver), lab->start_psn);
    }
    s->n_dropped = course_n_dropped();
    if (s->at < course.end && course.n_samples < MAX_TICKS) {
        fabric_schedule(&lab->fabric, lab->fabric.now + TICK, look, 0, 0);
        return;
    }
    /* No more: what is posted is completed. */
    lab->n_messages = lab->n_posted;
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        lab->net.flows[i].n_messages = lab->net.flows[i].n_posted;
    }
}

void
course_go(uint64_t end)
{
    course.end = end;
    fabric_schedule(&course.lab->fabric, course.lab->fabric.now, look, 0, 0);
    lab_run(course.lab);
}

const struct sample *
course_at(uint64_t at)
{
    unsigned i = (unsigned) (at / TICK);

    return &course.samples[i < course.n_samples ? i : course.n_samples - 1];
}

double
course_share(unsigned i, uint64_t from, uint64_t to, uint64_t rate, unsigned frame)
{
    const struct sample *a = course_at(from), *b = course_at(to);

    return (double) (b->n_new[i] - a->n_new[i]) * frame * 8 * 1e6
           / ((double) (b->at - a->at) * (double) rate);
}

uint64_t
course_last_drop(uint64_t from)
{
    uint64_t last = 0;

    for (unsigned i = 1; i < course.n_samples; i++) {
        if (course.samples[i].n_dropped > course.samples[i - 1].n_dropped
            && course.samples[i].at > from) {
            last = course.samples[i].at - from;
        }
    }
    return last;
}

uint64_t
course_time_back(uint64_t onset, uint64_t from, double least)
{
    const uint64_t over = onset / 2 < 100 * MSEC ? onset / 2 : 100 * MSEC;
    double before = course_share(0, onset - over, onset, course.line, FRAME);

    for (uint64_t t = from + over; t <= course.end; t += TICK) {
        if (course_share(0, t - over, t, course.line, FRAME) >= least * before) {
            return t - from;
        }
    }
    return UINT64_MAX;
}
