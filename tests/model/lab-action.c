/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to a lab in mid-stream, and in which order nodes hear of it.
 *
 * castd gives out what grows from the leaves up, the source agent last, and
 * what shrinks in the opposite order; each level waits for the one before.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/roce.h"
#include "tests/model/lab.h"

/* Is something under way that nobody has confirmed yet? */
static bool
in_flight(const struct lab *lab)
{
    struct rc_info info;

    rc_get_info(lab->source, &info);
    return psn_cmp(info.next, info.una) > 0;
}

/* Nodes at this depth do without what the agent does without. */
static void
shrink(void *lab_, unsigned depth, unsigned unused)
{
    struct lab *lab = lab_;
    const struct lab_node *agent = &lab->nodes[lab_agent(lab)];

    (void) unused;
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        struct lab_node *n = &lab->nodes[i];
        if (n->depth == depth) {
            n->removed = agent->removed;
            n->first_epoch = agent->first_epoch;
            lab_node_configure(lab, i);
        }
    }
    if (depth < lab->max_depth) {
        fabric_schedule(&lab->fabric, lab->fabric.now + 1 + lab_random(lab, 5000), shrink,
                        depth + 1, 0);
    }
}

/* Nodes at this depth get an epoch; the agent leaves the old one at once. */
static void
grow(void *lab_, unsigned depth, unsigned epoch)
{
    struct lab *lab = lab_;

    for (unsigned i = 0; i < lab->n_nodes; i++) {
        struct lab_node *n = &lab->nodes[i];
        if (n->depth == depth) {
            n->last_epoch = epoch;
            n->first_epoch = depth ? n->first_epoch : epoch;
            lab_node_configure(lab, i);
        }
    }
    uint64_t next = lab->fabric.now + 1 + lab_random(lab, 5000);
    if (depth) {
        fabric_schedule(&lab->fabric, next, grow, depth - 1, epoch);
    } else {
        fabric_schedule(&lab->fabric, next, shrink, 1, 0);
        lab->rolling = false;
        lab_post_work(lab);
    }
}

#define TELL_USEC 5000
#define LOOK_USEC 6000

/* Where do queue pairs stand, as their edges have found out?  When that is known of all, the epoch
 * begins as any.  Who has half a message comes back with another queue pair. */
static void
look_at_kept(void *lab_, unsigned unused, unsigned unused2)
{
    struct lab *lab = lab_;
    bool waits = false;

    (void) unused, (void) unused2;
    for (unsigned i = 0; i < lab->n; i++) {
        struct lab_receiver *r = &lab->receivers[i];
        struct reverse_branch_info info;
        const struct lab_node *edge = r->asked ? lab_edge_of(lab, i) : NULL;

        if (!edge) {
            continue;
        }
        bool told = edge->n_trees && edge->trees[0].designated_qpn == lab_designated_qpn(lab->epoch)
                    && edge->class->branch(edge->node, 0, i + 1, &info);
        if (told && info.found) {
            LAB_REQUIRE(lab, psn_eq(info.una, rc_expected(r->endpoint)),
                        "r%u expects %06x, not %06x", i + 1, rc_expected(r->endpoint).v,
                        info.una.v);
            r->shift[lab->epoch] = psn_cmp(info.una, lab_epoch_start(lab, lab->epoch));
            lab->n_seen[LAB_SAW_kept]++;
        } else if (told && info.lost) {
            struct rc_info rc;

            rc_get_info(r->endpoint, &rc);
            /* Or it has received nothing, and the only NAK that names what it expects got lost. */
            LAB_REQUIRE(lab,
                        (info.lost == LOSS_HALF && rc.failed)
                            || (info.lost == LOSS_UNANSWERED && rc.missing && !rc.msn),
                        "r%u had no half message", i + 1);
            lab_receiver_restart(lab, i);
            lab->n_seen[LAB_SAW_half]++;
        } else {
            waits = true;
            continue;
        }
        r->asked = false;
    }
    if (waits) {
        fabric_schedule(&lab->fabric, lab->fabric.now + LOOK_USEC, look_at_kept, 0, 0);
    } else {
        lab_replan(lab, lab->epoch);
        grow(lab, lab->max_depth, lab->epoch);
    }
}

static void
tell_to_ask(void *lab_, unsigned node, unsigned unused)
{
    struct lab *lab = lab_;

    (void) unused;
    lab->nodes[node].last_epoch = lab->epoch;
    lab_node_configure(lab, node);
}

/* No node has a tree of the old epoch any more. */
static void
ask_kept(void *lab_, unsigned unused, unsigned unused2)
{
    struct lab *lab = lab_;
    uint64_t now = lab->fabric.now;

    (void) unused, (void) unused2;
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        if (i != lab_agent(lab)) {
            fabric_schedule(&lab->fabric, now + 1 + lab_random(lab, TELL_USEC), tell_to_ask, i, 0);
        }
    }
    fabric_schedule(&lab->fabric, now + TELL_USEC + LOOK_USEC, look_at_kept, 0, 0);
}

/* Another source comes, and some receivers stay (docs/draft-notes.md, R18).  First nobody sends
 * them anything of the old epoch any more. */
static void
turn_over(struct lab *lab)
{
    unsigned agent = lab_agent(lab);

    lab->nodes[agent].first_epoch = lab->epoch;
    lab_node_configure(lab, agent);
    shrink(lab, 1, 0);
    fabric_schedule(&lab->fabric, lab->fabric.now + (lab->max_depth + 1) * (TELL_USEC + 1),
                    ask_kept, 0, 0);
}

static void
act_remove(struct lab *lab)
{
    unsigned agent = lab_agent(lab);
    struct lab_set *removed = &lab->nodes[agent].removed;
    unsigned i = lab_random(lab, lab->n);
    unsigned n = 1 + lab_set_count(removed);

    if (lab_set_has(removed, i) || n > lab->max_removed || n == lab->n) {
        return; /* never the last. */
    }
    if (lab_random(lab, 2)) {
        lab_set_add(&lab->silent, i);
    }
    lab_set_add(removed, i);
    lab->n_seen[LAB_SAW_left_in_flight] += in_flight(lab);
    lab->faults |= LAB_FAULT_REMOVE;
    lab_node_configure(lab, agent);
    fabric_schedule(&lab->fabric, lab->fabric.now + 1 + lab_random(lab, 20000), shrink, 1, 0);
}

static void
act_new_epoch(struct lab *lab)
{
    if (lab->epoch + 1 == LAB_N_EPOCHS || lab->rolling) {
        return;
    }
    lab->rolling = true;
    lab->faults |= LAB_FAULT_EPOCH;
    lab->n_seen[LAB_SAW_epoch_in_flight] += in_flight(lab);
    lab_endpoints_stop(lab, false);
    lab->epoch++;
    lab_endpoints_start(lab);
    if (lab->faults & LAB_FAULT_KEPT) {
        turn_over(lab);
    } else {
        grow(lab, lab->max_depth, lab->epoch);
    }
    if (lab_random(lab, 2)) {
        lab_post_work(lab);
    }
}

/* It says so once.  If that got lost it would be a silent receiver, for which
 * the group waits until it is removed. */
static void
act_fail(struct lab *lab)
{
    unsigned i = lab_random(lab, lab->n);
    unsigned station = lab_source_station(lab) + 1 + i;

    for (unsigned l = 0; l < lab->fabric.n_links; l++) {
        struct fabric_link *link = &lab->fabric.links[l];
        if (link->ends[1].station == station) {
            link->quality[1].loss = link->quality[1].spoil = 0;
        }
    }
    if (!lab->fatal) { /* All fail alike. */
        lab->fatal = (uint8_t) (AETH_NAK_INVALID_REQ + lab_random(lab, 3));
    }
    rc_fail_next(lab->receivers[i].endpoint, lab->fatal);
}

static void
hear_again(void *lab_, unsigned receiver, unsigned unused)
{
    struct lab *lab = lab_;

    (void) unused;
    lab_set_remove(&lab->silent, receiver);
    lab->receivers[receiver].deaf_until = lab->fabric.now;
}

static void
act_deafen(struct lab *lab)
{
    unsigned i = lab_random(lab, lab->n);
    struct lab_receiver *r = &lab->receivers[i];
    uint64_t liveness = lab->liveness_msec * UINT64_C(1000);

    if (r->deaf_since) {
        return; /* Once is enough: between two times it may have had nothing to answer. */
    }
    lab_set_add(&lab->silent, i);
    r->deaf_since = lab->fabric.now;
    r->deaf_until = 0;
    switch (lab_random(lab, 3)) {
    case 0: break; /* For good. */
    case 1:        /* Not for as long as it takes to be lost ... */
        fabric_schedule(&lab->fabric, lab->fabric.now + lab_random(lab, (uint32_t) liveness / 2),
                        hear_again, i, 0);
        break;
    default: /* ... and for longer than that. */
        fabric_schedule(&lab->fabric,
                        lab->fabric.now + liveness + lab_random(lab, (uint32_t) liveness * 4),
                        hear_again, i, 0);
    }
}

static void
wake_up(void *lab_, unsigned unused, unsigned unused2)
{
    struct lab *lab = lab_;

    (void) unused, (void) unused2;
    lab->rests = false;
    lab_post_work(lab);
}

static void
deafen_idle(void *lab, unsigned unused, unsigned unused2)
{
    (void) unused, (void) unused2;
    act_deafen(lab);
}

void
lab_rest(struct lab *lab)
{
    uint32_t liveness = lab->liveness_msec * 1000;
    uint64_t now = lab->fabric.now;

    lab->rests_before = UINT_MAX; /* It is asked again. */
    for (unsigned n = 1 + lab_random(lab, 2); n; n--) {
        fabric_schedule(&lab->fabric, now + lab_random(lab, liveness), deafen_idle, 0, 0);
    }
    fabric_schedule(&lab->fabric, now + 2 * liveness + lab_random(lab, 3 * liveness), wake_up, 0,
                    0);
}

static void
get_fast(void *lab_, unsigned receiver, unsigned unused)
{
    struct lab *lab = lab_;
    struct lab_receiver *r = &lab->receivers[receiver];

    (void) unused;
    lab_slow_check_end(lab, r);
    rc_slow(r->endpoint, 0);
}

/* It takes a packet now and then, less often than it has to, or none at all. */
static void
act_slow(struct lab *lab)
{
    unsigned i = lab_random(lab, lab->n);
    uint32_t liveness = lab->liveness_msec * 1000;
    uint64_t usec = lab_random(lab, 2) ? UINT64_MAX : 3 * UINT64_C(1000000) / lab->min_rate;

    lab->receivers[i].slow_since = lab->fabric.now;
    rc_slow(lab->receivers[i].endpoint, usec);
    fabric_schedule(&lab->fabric,
                    lab->fabric.now + LAB_SLOW_SEEN(lab) + lab_random(lab, 4 * liveness), get_fast,
                    i, 0);
}

static void
start_again(void *lab_, unsigned node, unsigned unused)
{
    struct lab *lab = lab_;

    (void) unused;
    if (lab->nodes[node].killed) {
        return;
    }
    lab->restarts = true;
    lab_node_stop(lab, node); /* It may have been told so twice. */
    lab_node_start(lab, node);
    lab->last_restart = lab->fabric.now;
}

static void
note_down(struct lab *lab, unsigned node)
{
    lab_node_stop(lab, node);
    if (!lab->node_down_since) {
        lab->node_down_since = lab->fabric.now;
    }
}

/* Is it between the source's agent and the root, on the path down or on the way that answers take by
 * the routes, or the root? */
static bool
is_above_tree(const struct lab *lab, const struct lab_node *n)
{
    const struct plan_node *agent = lab->nodes[lab->agent].plan;
    const char *last = strrchr(lab->via, ',');
    const struct plan_node *node =
        plan_find_node(&lab->topology, last ? last + 1 : lab->via); /* the root. */

    for (; node && node != agent; node = plan_next_node(&lab->topology, node, agent)) {
        if (node == n->plan) {
            return true;
        }
    }
    return n->in_front;
}

/* Would the source be alone without it? */
static bool
carries_all(const struct lab *lab, const struct lab_node *n)
{
    struct lab_set others = lab_set_without(&lab->members, &n->behind);

    return n == &lab->nodes[lab->agent] || is_above_tree(lab, n) || lab_set_is_empty(&others)
           || (n->plan->no_aggregation && n->depth == 1);
}

/* For good: this node, or the next one that can be spared. */
static void
act_kill(struct lab *lab, unsigned node)
{
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        struct lab_node *n = &lab->nodes[(node + i) % lab->n_nodes];
        if (!n->killed && !carries_all(lab, n)) {
            lab->faults |= LAB_FAULT_RESTART;
            n->killed = true;
            note_down(lab, (node + i) % lab->n_nodes);
            return;
        }
    }
}

/* The edge of a receiver that waits, if there is one, otherwise 'node'. */
static unsigned
edge_of_who_waits(struct lab *lab, unsigned node)
{
    for (unsigned i = 0; i < lab->n; i++) {
        const struct lab_receiver *r = &lab->receivers[i];
        const struct lab_node *edge =
            r->is_late && !r->absent && !r->joined ? lab_edge_of(lab, i) : NULL;

        if (edge) {
            return (unsigned) (edge - lab->nodes);
        }
    }
    return node;
}

static void
act_restart(struct lab *lab, unsigned node)
{
    node = edge_of_who_waits(lab, node);
    lab->faults |= LAB_FAULT_RESTART;
    lab->n_seen[LAB_SAW_restart_in_flight] += in_flight(lab);
    lab_castd(lab, 0, 0); /* It knows by now who is lost there... */
    lab_take_joins(lab);  /* ...and who has joined. */
    lab->restarts = true;
    note_down(lab, node);
    if (lab->max_downtime) {
        fabric_schedule(&lab->fabric, lab->fabric.now + lab_random(lab, lab->max_downtime),
                        start_again, node, 0);
    } else {
        start_again(lab, node, 0);
    }
}

/* One of those that are not there; they are in their order. */
static void
act_join(struct lab *lab)
{
    unsigned start = lab_random(lab, lab->n);

    for (unsigned i = 0; i < lab->n; i++) {
        if (lab->receivers[(start + i) % lab->n].absent) {
            lab_join(lab, (start + i) % lab->n);
            return;
        }
    }
}

static void
act(struct lab *lab, const struct lab_action *action)
{
    static const char *const names[] = {
        "reconfigure", "remove", "restart", "new epoch",   "fatal", "calm",   "deafen",
        "kill",        "slow",   "join",    "change rate", "plane", "prefer",
    };

    if (lab->trace) {
        fprintf(stderr, "%10" PRIu64 " action: %s %s\n", lab->fabric.now, names[action->kind],
                action->kind == LAB_RESTART || action->kind == LAB_KILL
                    ? lab_station_name(lab, action->node)
                    : "");
    }
    switch (action->kind) {
    case LAB_RECONFIGURE:
        for (unsigned i = 0; i < lab->n_nodes; i++) {
            lab_node_configure(lab, i);
        }
        break;
    case LAB_REMOVE: act_remove(lab); break;
    case LAB_RESTART: act_restart(lab, action->node); break;
    case LAB_NEW_EPOCH: act_new_epoch(lab); break;
    case LAB_FATAL: act_fail(lab); break;
    case LAB_DEAFEN: act_deafen(lab); break;
    case LAB_KILL: act_kill(lab, action->node); break;
    case LAB_SLOW: act_slow(lab); break;
    case LAB_JOIN: act_join(lab); break;
    case LAB_CHANGE_RATE: lab_change_rate(lab); break;
    case LAB_PLANE: lab_act_plane(lab); break;
    case LAB_PREFER: lab_act_prefer(lab); break;
    case LAB_CALM:
        fabric_calm(&lab->fabric);
        lab->calm_since = lab->fabric.now;
        lab->calm_in_flight = in_flight(lab);
        break;
    }
}

void
lab_act_if_due(struct lab *lab)
{
    while (lab->next_action < lab->n_actions) {
        struct rc_info info;
        rc_get_info(lab->source, &info);
        if (info.n_sent < lab->actions[lab->next_action].after) {
            return;
        }
        act(lab, &lab->actions[lab->next_action++]);
    }
}
