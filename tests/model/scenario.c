/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lab may go through.
 */
#include "tests/model/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PACKETS   200
#define N_SMALL       75 /* receivers; more are given less to do. */
#define N_STRAY       20 /* receivers, of which frames stray. */
#define LARGE_PACKETS 64

static const char *const names[] = {
    "exact",   "disorder", "lossy", "spoilt", "rnr",   "forged",         "failing", "shrinking",
    "restart", "epoch",    "mixed", "losing", "dying", "losing-restart", "joining", "slow",
};

const char *
scenario_name(enum scenario_kind kind)
{
    return names[kind];
}

/* Topologies. */

#define MAX_LEVELS  4
#define BROAD_NODES 6

struct sprout {
    struct fabric *chance;
    char *text;
    size_t size, len;
    unsigned n_nodes;
    struct {
        unsigned parent, level;
        bool plain; /* it does not aggregate. */
        bool leaf;
    } nodes[LAB_MAX_NODES]; /* by number, from 1 on. */
};

static void
add_link(struct sprout *s, const char *upper, char kind, unsigned number)
{
    int n = snprintf(s->text + s->len, s->size - s->len, "%s-%c%u ", upper, kind, number);
    s->len += (size_t) n;
}

static void
name_node(const struct sprout *s, unsigned number, char *name, size_t size)
{
    snprintf(name, size, "%c%u", s->nodes[number].plain ? 't' : 'n', number);
}

static void
grow(struct sprout *s, unsigned n_nodes)
{
    unsigned levels = n_nodes > 1 ? 2 + fabric_random(s->chance, MAX_LEVELS - 1) : 1;

    s->n_nodes = n_nodes;
    s->nodes[1].level = 1;
    s->nodes[1].leaf = true;
    for (unsigned i = 2; i <= n_nodes; i++) {
        unsigned parent = i - 1; /* at first it gets deep, then broad. */
        while (s->nodes[parent].level == levels || (i > levels && fabric_random(s->chance, 2))) {
            parent = 1 + fabric_random(s->chance, i - 1);
        }
        s->nodes[i].parent = parent;
        s->nodes[i].level = s->nodes[parent].level + 1;
        s->nodes[i].leaf = true;
        s->nodes[parent].leaf = false;
    }
    for (unsigned i = 1; i <= n_nodes; i++) {
        s->nodes[i].plain = !s->nodes[i].leaf && fabric_random(s->chance, 4) == 0;
    }
}

static void
add_nodes(struct sprout *s)
{
    char name[16] = "a98";

    for (unsigned i = 1; i <= s->n_nodes; i++) {
        if (i > 1) {
            name_node(s, s->nodes[i].parent, name, sizeof name);
        }
        add_link(s, name, s->nodes[i].plain ? 't' : 'n', i);
    }
}

/* One for each leaf, the others anywhere. */
static void
add_receivers(struct sprout *s, unsigned n_receivers)
{
    unsigned n = 0;
    char name[16];

    for (unsigned i = 1; i <= s->n_nodes; i++) {
        if (s->nodes[i].leaf) {
            name_node(s, i, name, sizeof name);
            add_link(s, name, 'r', ++n);
        }
    }
    while (n < n_receivers) {
        unsigned i = 1 + fabric_random(s->chance, s->n_nodes);
        bool wanted = s->nodes[i].leaf || fabric_random(s->chance, 4) == 0;
        if (wanted && !s->nodes[i].plain) {
            name_node(s, i, name, sizeof name);
            add_link(s, name, 'r', ++n);
        }
    }
}

/* A link between two nodes that have none, if chance finds such. */
static void
add_shortcut(struct sprout *s)
{
    unsigned a = 1 + fabric_random(s->chance, s->n_nodes);
    unsigned b = 1 + fabric_random(s->chance, s->n_nodes);
    char upper[16], lower[16], link[40];

    /* In the text a parent is before its child, and has the lower number. */
    name_node(s, a, upper, sizeof upper);
    name_node(s, b, lower, sizeof lower);
    snprintf(link, sizeof link, " %s-%s ", upper, lower);
    if (a < b && !strstr(s->text, link)) {
        add_link(s, upper, lower[0], b);
    }
}

char *
scenario_topology(struct fabric *chance, unsigned n_receivers, bool broad)
{
    struct sprout s = {.chance = chance, .size = 64 + 16 * (LAB_MAX_NODES + n_receivers)};
    unsigned most = n_receivers > N_SMALL ? 60 : 12;

    s.text = calloc(1, s.size);
    if (!s.text) {
        abort();
    }
    s.len = (size_t) snprintf(s.text, s.size, "s-a98 ");
    unsigned n_nodes = 1 + fabric_random(chance, n_receivers < most ? n_receivers : most);
    grow(&s, broad && n_nodes < BROAD_NODES ? BROAD_NODES : n_nodes);
    add_nodes(&s);
    for (unsigned n = fabric_random(chance, 4); n; n--) {
        add_shortcut(&s);
    }
    add_receivers(&s, n_receivers);
    return s.text;
}

/* What happens there. */

/* Between two packets, of a source that has a window of them and waits 20 ms. */
#define MAX_RESTART_GAP 300

/* At once, within a timeout of the source, or after many of them. */
static const uint32_t max_downtimes[] = {0, 20000, 2000000};

/* Some directions of some links are bad: few, since each holds up all. */
static void
choose_links(struct lab *lab, enum scenario_kind kind)
{
    unsigned n_bad = kind == SCENARIO_EXACT || kind == SCENARIO_SLOW ? 0 : 1 + lab_random(lab, 5);

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            bool bad = lab_random(lab, 2 * lab->fabric.n_links) < n_bad;
            struct fabric_quality *q = &lab->fabric.links[i].quality[side];
            q->delay = 1 + lab_random(lab, 40);
            /* Few: as long as ACKs come, however old, a source does not repeat anything. */
            q->stray = kind == SCENARIO_JOINING && lab->n <= N_STRAY ? 200 : 0;
            if (kind == SCENARIO_JOINING && lab_random(lab, 4) == 0) {
                q->delay += lab_random(lab, 15000); /* Some are far behind the others. */
            }
            if (bad) {
                q->loss = kind == SCENARIO_DISORDER
                              ? 0
                              : lab_random(lab, kind == SCENARIO_FAILING ? 2000 : 500);
                q->twice = lab_random(lab, 300);
                q->reorder = lab_random(lab, 500);
                q->spoil =
                    kind == SCENARIO_SPOILT || kind == SCENARIO_MIXED ? lab_random(lab, 300) : 0;
            }
        }
    }
}

static enum lab_action_kind
choose_action(struct lab *lab, enum scenario_kind kind, unsigned i)
{
    static const enum lab_action_kind mix[] = {
        LAB_RECONFIGURE, LAB_REMOVE, LAB_RESTART, LAB_RESTART, LAB_NEW_EPOCH,
    };
    static const enum lab_action_kind losses[] = {
        LAB_DEAFEN, LAB_DEAFEN, LAB_DEAFEN, LAB_FATAL, LAB_FATAL, LAB_RECONFIGURE,
    };

    switch (kind) {
    case SCENARIO_FAILING: return LAB_FATAL;
    case SCENARIO_SHRINKING: return LAB_REMOVE;
    case SCENARIO_RESTART: return LAB_RESTART;
    case SCENARIO_EPOCH: return LAB_NEW_EPOCH;
    case SCENARIO_LOSING: return losses[lab_random(lab, 6)];
    case SCENARIO_DYING: return i < 2 ? LAB_KILL : losses[lab_random(lab, 6)];
    case SCENARIO_JOINING:
        return i % 4 == 3                                                   ? LAB_RECONFIGURE
               : i && lab->gap < MAX_RESTART_GAP && lab_random(lab, 3) == 0 ? LAB_RESTART
                                                                            : LAB_JOIN;
    case SCENARIO_SLOW: return i ? LAB_RECONFIGURE : LAB_SLOW;
    case SCENARIO_LOSING_RESTART: return i ? LAB_RESTART : losses[lab_random(lab, 6)];
    default: return mix[lab_random(lab, 5)];
    }
}

static void
choose_actions(struct lab *lab, enum scenario_kind kind)
{
    unsigned n = kind == SCENARIO_JOINING  ? LAB_MAX_ACTIONS - lab_random(lab, 3)
                 : kind > SCENARIO_FAILING ? 3 + lab_random(lab, 4)
                                           : kind == SCENARIO_FAILING;
    /* A receiver is to fail in the middle of something. */
    uint64_t after = kind == SCENARIO_FAILING ? lab_random(lab, lab->n_packets) : 0;

    for (unsigned i = 0; i < n; i++) {
        enum lab_action_kind action = choose_action(lab, kind, i);

        after += lab_random(lab, 1 + lab->n_packets / n);
        lab_add_action(lab, action, lab_random(lab, lab->n_nodes), after);
        after = action == LAB_NEW_EPOCH ? 0 : after; /* the source counts anew. */
    }
    if (kind != SCENARIO_EXACT && kind < SCENARIO_LOSING && lab_random(lab, 4)) {
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

/* All but one do what they can. */
static void
choose_slow(struct lab *lab)
{
    choose_losses(lab);
    lab->min_rate = 100;
    lab->lose_slow = lab_random(lab, 3);
    lab->buffers = LAB_BUFFERS_READY;
}

/* Some are not there at first: not all.  What they expect is their own affair. */
static void
choose_late(struct lab *lab)
{
    lab->prune = true;
    lab->buffers = LAB_BUFFERS_READY;
    lab->writes_only = true;
    /* It takes a while.  A node that was started again knows no more than what comes down: the
     * source must be able to repeat what it has outstanding before it loses patience. */
    lab->gap = 100 + lab_random(lab, lab_random(lab, 2) ? MAX_RESTART_GAP - 100 : 1000);
    /* A bad link may hold up one for long.  Who looks for a neighbour that is down does so again
     * after 1 s. */
    lab->liveness_msec = lab->gap < MAX_RESTART_GAP ? 1500 : 600;
    lab->short_messages = true; /* Who joins does so at the beginning of one. */
    lab->max_pause = lab_random(lab, 3) ? 1 + lab_random(lab, 300000) : 0;
    lab->max_downtime = max_downtimes[lab_random(lab, 2)];
    /* Where all are, whole parts of the tree grow. */
    bool by_edges = lab_random(lab, 3);
    uint32_t edges = lab_random(lab, UINT32_MAX);
    for (unsigned i = 1; i < lab->n; i++) {
        struct lab_receiver *r = &lab->receivers[i];
        struct fabric_end own = {lab_source_station(lab) + 1 + i, 0};
        unsigned edge = fabric_peer(&lab->fabric, own).station;

        r->is_late = r->absent = by_edges ? edges >> edge % 32 & 1 : lab_random(lab, 2);
        r->psn =
            psn_make(lab_random(lab, 2) ? 0u - lab_random(lab, 100) : lab_random(lab, PSN_MASK));
    }
}

/* The queue pairs of some receivers, or of all, outlive epochs. */
static void
choose_kept(struct lab *lab, uint64_t seed)
{
    lab->faults |= LAB_FAULT_KEPT;
    lab->writes_only = true;
    for (unsigned i = 0; i < lab->n; i++) {
        lab->receivers[i].keeps = (seed / 64 + i) % 4 != 0;
    }
}

/* A quarter of the runs is in another mode than replicate with TLVs; SRHs have no room for all
 * receivers of a large one. */
static void
choose_mode(struct lab *lab)
{
    static const enum tree_mode modes[] = {MODE_REPLICATE, MODE_MCAST, MODE_INGRESS};

    if (lab->n > N_SMALL || lab_random(lab, 4) == 0) {
        lab->mode = modes[lab_random(lab, 3)];
        lab->provisioned = lab->n > N_SMALL || lab_random(lab, 2);
    }
}

/* Half of the groups are authenticated, by one TLV, the other, or both.  Takes no chance from the
 * rest of the run. */
static void
choose_auth(struct lab *lab, uint64_t seed)
{
    static const unsigned int kinds[] = {0, AUTH_MT, 0, AUTH_HMAC, 0, AUTH_MT | AUTH_HMAC};

    lab->auth = kinds[(seed ^ seed >> 16) % (sizeof kinds / sizeof *kinds)];
}

struct lab *
scenario_create(const char *topology, enum scenario_kind kind, uint64_t seed, bool trace,
                void (*fail)(const struct lab *, const char *condition, const char *text))
{
    struct lab *lab = lab_create(topology, seed, trace, fail);

    choose_mode(lab);
    choose_auth(lab, seed);
    lab->start_psn =
        psn_make(lab_random(lab, 2) ? PSN_MASK - lab_random(lab, 200) : lab_random(lab, PSN_MASK));
    lab->epoch_step = lab_random(lab, 2) ? 77 : 0;
    lab->gap = 1 + lab_random(lab, 4);
    lab->exact = kind == SCENARIO_EXACT;
    /* A burst to neighbours that are not known yet can be more than what may wait for them. */
    lab->warm_up = true;
    lab->forged = kind == SCENARIO_FORGED;
    lab->max_removed = 4;
    lab->nak = (enum reverse_nak) lab_random(lab, 3);
    lab->filter = lab_random(lab, 2);
    lab->max_downtime = max_downtimes[lab_random(lab, 3)];
    lab->buffers = kind == SCENARIO_RNR     ? LAB_BUFFERS_LATE
                   : kind == SCENARIO_MIXED ? LAB_BUFFERS_MIXED
                                            : LAB_BUFFERS_READY;
    if (kind == SCENARIO_SLOW) {
        choose_slow(lab);
    } else if (kind == SCENARIO_JOINING) {
        choose_late(lab);
    } else if (kind >= SCENARIO_LOSING) {
        choose_losses(lab);
    }
    if (kind == SCENARIO_EPOCH && seed / N_SCENARIO_KINDS % 2) {
        choose_kept(lab, seed);
    }
    choose_links(lab, kind);
    lab_choose_messages(lab, lab->n > N_SMALL ? LARGE_PACKETS : MAX_PACKETS, kind == SCENARIO_RNR);
    lab->rests = kind == SCENARIO_LOSING || kind == SCENARIO_LOSING_RESTART;
    lab->rests_before = lab_random(lab, 1 + lab->n_messages);
    choose_actions(lab, kind);
    return lab;
}
