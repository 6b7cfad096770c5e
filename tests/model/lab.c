/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole group in virtual time: life cycle, and the run.
 */
#include "tests/model/lab.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/neigh.h"

#define NODE_POOL     512
#define MOST_MESSAGES 32       /* that are chosen. */
#define TIME_LIMIT    60000000 /* virtual; microseconds like all times. */
#define CALM_LIMIT    5000000  /* within which all is done once links are perfect. */
#define LINGER_USEC   10000    /* above any delay of a response at a node. */
#define EVENT_LIMIT   4000000  /* within which the source gets further. */
#define MOST_PERIODS \
    12 /* of so many events: many receivers, one of which takes a packet at a time. */

void
lab_fail(const struct lab *lab, const char *condition, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lab->fail(lab, condition, text);
    abort();
}

static unsigned
min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

struct lab *
lab_create(const char *topology, uint64_t seed, bool trace,
           void (*fail)(const struct lab *, const char *condition, const char *text))
{
    struct lab *lab = calloc(1, sizeof *lab);
    if (!lab) {
        abort();
    }
    lab->fail = fail;
    lab->trace = trace;
    lab->min_rnr_timer = 12;
    lab->mtu = LAB_MTU;
    lab->event_limit = EVENT_LIMIT;
    lab->time_limit = TIME_LIMIT;
    lab->timeout_usec = LAB_TIMEOUT_USEC;
    lab->timeout = LAB_TIMEOUT;
    lab->congestion.interval_usec = 10000;
    lab->congestion.fast_cnp_rate = 1000;
    lab->congestion.window_usec = CNP_WINDOW_USEC;
    fabric_init(&lab->fabric, seed, lab_deliver, lab);
    lab_topology_init(lab, topology);
    lab->pool_size = NODE_POOL * lab->n_nodes + min(NEIGH_QUEUE_MAX * lab->n, 2 * NEIGH_QUEUED_MAX);
    return lab;
}

void
lab_choose_messages(struct lab *lab, uint32_t max_packets, bool buffers)
{
    static const unsigned all_sizes[] = {1, 16, 64}, short_sizes[] = {1, 3, 16};
    const unsigned *sizes = lab->short_messages ? short_sizes : all_sizes;
    unsigned limit = 1 + lab_random(lab, MOST_MESSAGES);
    bool all_kinds = buffers || (!lab->writes_only && lab_random(lab, 2));

    while (lab->n_messages < limit && lab->n_packets + 64 <= max_packets) {
        uint32_t n = lab->warm_up && !lab->n_messages ? 1 : sizes[lab_random(lab, 3)];
        lab->messages[lab->n_messages++] = (struct lab_message){
            .op = all_kinds ? (enum rc_op) lab_random(lab, 4) : RC_OP_WRITE,
            .ofs = lab->region_len,
            .len = n * lab->mtu - lab_random(lab, lab->mtu),
        };
        lab->region_len += n * lab->mtu;
        lab->n_packets += n;
    }
    lab->depth = 1 + lab_random(lab, 8);
}

void
lab_add_action(struct lab *lab, enum lab_action_kind kind, unsigned node, uint64_t after)
{
    lab->actions[lab->n_actions++] = (struct lab_action){kind, node, after};
}

static void
start(struct lab *lab)
{
    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            bool spoils = lab->fabric.links[i].quality[side].spoil;
            lab->faults |= spoils ? LAB_FAULT_SPOIL : 0;
        }
    }
    lab->faults |= lab->forged ? LAB_FAULT_FORGED : 0;
    lab->faults |= lab->mode != MODE_REPLICATE ? LAB_FAULT_MODE : 0;
    lab_congestion_init(lab);
    lab_data_init(lab);
    lab->pool = packet_pool_create(lab->pool_size);
    lab->data = calloc(1, lab->region_len);
    for (unsigned i = 0; i < lab->n; i++) {
        lab->receivers[i].memory = calloc(1, lab->region_len);
        if (!lab->data || !lab->receivers[i].memory) {
            abort();
        }
    }
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        lab_node_start(lab, i);
    }
    lab_data_start(lab);
    lab_loss_start(lab);
    lab->of_switch.f = lab->una_at_limit = lab->start_psn;
    lab_endpoints_start(lab);
    lab_flows_start(lab);
    lab_congestion_start(lab);
}

static uint64_t
next_time(const struct lab *lab)
{
    uint64_t when = fabric_next(&lab->fabric);
    uint64_t t = rc_deadline(lab->source);

    when = t < when ? t : when;
    t = lab_congestion_deadline(lab);
    when = t < when ? t : when;
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        t = lab->nodes[i].deadline;
        when = t < when ? t : when;
    }
    return when > lab->fabric.now ? when : lab->fabric.now;
}

/* Is the run still within its limits?  One that has many events and gets further is slow, not endless. */
static bool
goes_on(struct lab *lab)
{
    if (lab->fabric.n_events >= lab->event_limit) {
        struct rc_info info;

        rc_get_info(lab->source, &info);
        if (++lab->n_periods >= MOST_PERIODS || psn_eq(info.una, lab->una_at_limit)) {
            return false;
        }
        lab->una_at_limit = info.una;
        lab->event_limit = lab->fabric.n_events + EVENT_LIMIT;
    }
    return lab->fabric.now < lab->time_limit;
}

/* Whatever is due first; timers before packets.  (Receivers have no timers:
 * they only answer.) */
static void
step(struct lab *lab)
{
    uint64_t now = lab->fabric.now = next_time(lab);

    LAB_REQUIRE(lab, goes_on(lab), "no end: %u of %u messages done", lab->n_done, lab->n_messages);
    LAB_REQUIRE(lab, !lab->calm_since || now - lab->calm_since < CALM_LIMIT,
                "no end in the calm: %u of %u messages done", lab->n_done, lab->n_messages);
    if (rc_deadline(lab->source) <= now) {
        struct rc_info before, after;

        rc_get_info(lab->source, &before);
        rc_timer(lab->source, now);
        rc_get_info(lab->source, &after);
        if (after.n_timeouts > before.n_timeouts) {
            lab_event_timeout(lab, &before);
        }
        return;
    }
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        if (lab->nodes[i].deadline <= now) {
            lab_node_timer(lab, &lab->nodes[i]);
            return;
        }
    }
    if (lab_congestion_timer(lab)) {
        return;
    }
    fabric_run(&lab->fabric);
}

bool
lab_is_over(const struct lab *lab)
{
    struct rc_info info;

    rc_get_info(lab->source, &info);
    return lab_flows_done(lab) && (lab->n_done == lab->n_messages || info.error || info.stuck);
}

static bool
is_quiet(const struct lab *lab)
{
    return fabric_next(&lab->fabric) == UINT64_MAX
           && packet_pool_n_free(lab->pool) == lab->pool_size;
}

/* Gives nodes the time to say what they have held back; that may be what a source
 * is stuck for. */
static void
linger(void *lab_, unsigned a, unsigned b)
{
    struct lab *lab = lab_;

    (void) a, (void) b;
    if (!lab_is_over(lab)) {
        return; /* It was stuck for a while. */
    }
    lab->asks_no_more = true;
    for (unsigned i = 0; lab->liveness_msec && i < lab->n_nodes; i++) {
        lab_node_configure(lab, i); /* Questions would go on for ever. */
    }
}

void
lab_run(struct lab *lab)
{
    start(lab);
    lab_post_work(lab);
    while (!lab_is_over(lab) || !is_quiet(lab)) {
        bool was_over = lab_is_over(lab);
        step(lab);
        if (lab->probe) {
            lab->probe(lab);
        }
        if (!lab_is_over(lab)) {
            lab->over_since = lab->fabric.now;
            lab_act_if_due(lab);
        } else if (!was_over) {
            fabric_schedule(&lab->fabric, lab->fabric.now + LINGER_USEC, linger, 0, 0);
        }
    }
    lab_check_end(lab);
    lab_event_end(lab);
}

void
lab_destroy(struct lab *lab)
{
    lab_endpoints_stop(lab, true);
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        struct lab_node *n = &lab->nodes[i];
        lab_node_stop(lab, i);
        for (size_t t = 0; t < n->n_trees; t++) {
            tree_config_uninit(&n->trees[t]);
        }
        node_config_uninit(&n->base);
    }
    lab_congestion_destroy(lab);
    LAB_REQUIRE(lab, packet_pool_n_free(lab->pool) == lab->pool_size, "buffers are missing");
    packet_pool_destroy(lab->pool);
    fabric_uninit(&lab->fabric);
    for (unsigned epoch = 0; epoch < LAB_N_EPOCHS; epoch++) {
        plan_uninit(&lab->whole[epoch].plan);
        plan_uninit(&lab->reduced[epoch].plan);
    }
    plan_topology_uninit(&lab->topology);
    for (unsigned i = 0; i < lab->n; i++) {
        free(lab->receivers[i].memory);
    }
    free(lab->nonces.v);
    free(lab->data);
    free(lab);
}
