/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lab may go through.
 */
#include "tests/model/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/in-flight.h"

#define MAX_PACKETS    200
#define N_SMALL        75 /* receivers; more are given less to do. */
#define N_STRAY        20 /* receivers, of which frames stray. */
#define MAX_AGENTS     20 /* that have receivers. */
#define MAX_VIA        5  /* nodes from the first switch to the root. */
/* Of flows on paths. */
#define MAX_PATH_DELAY 5000
#define PATHS_TIMEOUT  18 /* 1.07 s. */
#define LARGE_PACKETS  64

static const char *const names[] = {
    "exact",     "disorder", "lossy",     "spoilt", "rnr",    "forged", "failing",
    "shrinking", "restart",  "epoch",     "mixed",  "losing", "dying",  "losing-restart",
    "joining",   "slow",     "congested", "paths",  "planes",
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
    bool has_agents;   /* receivers may be behind agents, */
    unsigned n_agents; /* and so many are there; their numbers come after those of nodes. */
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

/* At this node: there, or behind an agent that has another uplink as well, unless chance finds the
 * same node again. */
static void
add_receiver(struct sprout *s, unsigned node, unsigned number)
{
    char name[16], agent[16], link[40];

    name_node(s, node, name, sizeof name);
    if (!s->has_agents || fabric_random(s->chance, 2)) {
        add_link(s, name, 'r', number);
        return;
    }
    snprintf(agent, sizeof agent, "a%u", s->n_nodes + s->n_agents);
    if (!s->n_agents || (s->n_agents < MAX_AGENTS && fabric_random(s->chance, 4))) {
        unsigned other = 1 + fabric_random(s->chance, s->n_nodes);

        s->n_agents++;
        add_link(s, name, 'a', s->n_nodes + s->n_agents);
        if (other != node) {
            name_node(s, other, name, sizeof name);
            add_link(s, name, 'a', s->n_nodes + s->n_agents);
        }
    }
    snprintf(link, sizeof link, "a%u", s->n_nodes + s->n_agents);
    add_link(s, link, 'r', number);
}

/* One for each leaf, the others anywhere. */
static void
add_receivers(struct sprout *s, unsigned n_receivers)
{
    unsigned n = 0;

    for (unsigned i = 1; i <= s->n_nodes; i++) {
        if (s->nodes[i].leaf) {
            add_receiver(s, i, ++n);
        }
    }
    while (n < n_receivers) {
        unsigned i = 1 + fabric_random(s->chance, s->n_nodes);
        bool wanted = s->nodes[i].leaf || fabric_random(s->chance, 4) == 0;
        if (wanted && !s->nodes[i].plain) {
            add_receiver(s, i, ++n);
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
    struct sprout s = {.chance = chance, .size = 64 + 16 * (2 * LAB_MAX_NODES + n_receivers)};
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
    s.has_agents = fabric_random(chance, 3) == 0;
    add_receivers(&s, n_receivers);
    return s.text;
}

/* Up to three pairs: the first of each sends, and has an agent of its own or none. */
char *
scenario_add_hosts(struct fabric *chance, char *topology)
{
    size_t len = strlen(topology), size = len + 1 + 3 * 48;
    char *text = realloc(topology, size);
    unsigned n_nodes = 0;
    char nodes[LAB_MAX_NODES][16];

    if (!text) {
        abort();
    }
    /* Nodes that may have hosts. */
    for (const char *s = text; (s = strstr(s, "-n")); s++) {
        unsigned i = 0;

        sscanf(s + 1, "%15[^ ]", nodes[n_nodes]);
        while (strcmp(nodes[i], nodes[n_nodes])) {
            i++;
        }
        n_nodes += i == n_nodes;
    }
    for (unsigned n = fabric_random(chance, 4), i = 0; n_nodes && i < n; i++) {
        const char *from = nodes[fabric_random(chance, n_nodes)];
        const char *to = nodes[fabric_random(chance, n_nodes)];

        len += (size_t) (fabric_random(chance, 2)
                             ? snprintf(text + len, size - len, "h%u-a%u a%u-%s %s-h%u ", 2 * i + 1,
                                        90 + i, 90 + i, from, to, 2 * i + 2)
                             : snprintf(text + len, size - len, "%s-h%u %s-h%u ", from, 2 * i + 1,
                                        to, 2 * i + 2));
    }
    return text;
}

char *
scenario_path_topology(struct fabric *chance)
{
    enum { N_LEAVES = 4, MAX_SPINES = 4 };
    size_t size = 128 + 16 * N_LEAVES * MAX_SPINES, len;
    char *text = malloc(size);

    if (!text) {
        abort();
    }
    len = (size_t) snprintf(text, size,
                            "s-a98 a98-n1 n4-r1 h1-a90 a90-n1 a90-n2 n3-a91 n4-a91 "
                            "a91-h2 ");
    for (unsigned spine = 2 + fabric_random(chance, MAX_SPINES - 1); spine; spine--) {
        for (unsigned leaf = 1; leaf <= N_LEAVES; leaf++) {
            len += (size_t) snprintf(text + len, size - len, "n%u-n%u ", leaf, N_LEAVES + spine);
        }
    }
    return text;
}

/* Spines' numbers.  Those that are even are in plane A. */
#define FIRST_SPINE 20
#define LAST_SPINE  24

char *
scenario_plane_topology(struct fabric *chance, unsigned n_receivers)
{
    unsigned n_spines = 2 + fabric_random(chance, LAST_SPINE - FIRST_SPINE);
    unsigned n_pairs = 1 + fabric_random(chance, 3), n_agents = 0;
    size_t size = 256 + 16 * (2 * n_pairs * n_spines + 4 * n_receivers), len;
    char *text = malloc(size);

    if (!text) {
        abort();
    }
    len = (size_t) snprintf(text, size, "s-a98 a98-n1 ");
    if (fabric_random(chance, 4)) {
        len += (size_t) snprintf(text + len, size - len, "a98-n2 ");
    }
    for (unsigned leaf = 1; leaf <= 2 * n_pairs; leaf++) {
        for (unsigned spine = 0; spine < n_spines; spine++) {
            len += (size_t) snprintf(text + len, size - len, "n%u-%c%u ", leaf,
                                     spine == 1 ? 't' : 'n', FIRST_SPINE + spine);
        }
    }
    for (unsigned i = 1; i <= n_receivers; i++) {
        unsigned leaf = 1 + 2 * fabric_random(chance, n_pairs);

        if (fabric_random(chance, 8) == 0) {
            len += (size_t) snprintf(text + len, size - len, "n%u-r%u ",
                                     leaf + fabric_random(chance, 2), i);
        } else if (n_agents < MAX_AGENTS) {
            unsigned agent = LAST_SPINE + ++n_agents;

            len += (size_t) snprintf(text + len, size - len, "n%u-a%u n%u-a%u a%u-r%u ", leaf,
                                     agent, leaf + 1, agent, agent, i);
        } else {
            len += (size_t) snprintf(text + len, size - len, "a%u-r%u ",
                                     LAST_SPINE + 1 + fabric_random(chance, n_agents), i);
        }
    }
    return text;
}

/* What happens there. */

/* Between two packets, of a source that has a window of them and waits 20 ms. */
#define MAX_RESTART_GAP 300

/* At once, within a timeout of the source, or after many of them. */
static const uint32_t max_downtimes[] = {0, 20000, 2000000};

/* Otherwise a queue that is full may drop the ACKs of the same nodes for ever, of which one would do. */
#define CONGESTED_JITTER 100

/* Some directions of some links are bad: few, since each holds up all. */
static void
choose_links(struct lab *lab, enum scenario_kind kind)
{
    unsigned n_bad = kind == SCENARIO_EXACT || kind == SCENARIO_SLOW || kind == SCENARIO_PATHS ? 0
                     : kind == SCENARIO_CONGESTED ? lab_random(lab, 2)
                                                  : 1 + lab_random(lab, 5);

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            bool bad = lab_random(lab, 2 * lab->fabric.n_links) < n_bad;
            struct fabric_quality *q = &lab->fabric.links[i].quality[side];
            q->delay = 1 + lab_random(lab, kind == SCENARIO_PATHS ? MAX_PATH_DELAY : 40);
            q->jitter = kind == SCENARIO_CONGESTED ? CONGESTED_JITTER : 0;
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

    static const enum lab_action_kind planes[] = {
        LAB_PLANE,  LAB_PLANE,       LAB_PLANE,  LAB_PLANE,   LAB_PREFER,
        LAB_PREFER, LAB_RECONFIGURE, LAB_REMOVE, LAB_RESTART,
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
    case SCENARIO_PLANES: return planes[lab_random(lab, 9)];
    case SCENARIO_SLOW: return i ? LAB_RECONFIGURE : LAB_SLOW;
    case SCENARIO_CONGESTED: return i % 2 ? mix[lab_random(lab, 5)] : LAB_CHANGE_RATE;
    case SCENARIO_LOSING_RESTART: return i ? LAB_RESTART : losses[lab_random(lab, 6)];
    default: return mix[lab_random(lab, 5)];
    }
}

static void
choose_actions(struct lab *lab, enum scenario_kind kind)
{
    unsigned n = kind == SCENARIO_JOINING     ? LAB_MAX_ACTIONS - lab_random(lab, 3)
                 : kind == SCENARIO_CONGESTED ? lab_random(lab, 7)
                 : kind == SCENARIO_PATHS     ? 0
                 : kind > SCENARIO_FAILING    ? 3 + lab_random(lab, 4)
                                              : kind == SCENARIO_FAILING;
    /* A receiver is to fail in the middle of something. */
    uint64_t after = kind == SCENARIO_FAILING ? lab_random(lab, lab->n_packets) : 0;

    for (unsigned i = 0; i < n; i++) {
        enum lab_action_kind action = choose_action(lab, kind, i);

        after += lab_random(lab, 1 + lab->n_packets / n);
        lab_add_action(lab, action, lab_random(lab, lab->n_nodes), after);
        after = action == LAB_NEW_EPOCH ? 0 : after; /* the source counts anew. */
    }
    bool ends = kind == SCENARIO_PLANES || (kind != SCENARIO_EXACT && kind < SCENARIO_LOSING);
    if (ends && lab_random(lab, 4)) {
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

#define CONGESTED_TIMEOUT 16 /* 268 ms. */
#define CONGESTED_PACKETS 500
/* A link that does not carry a window in the time-out is never without loss, whatever the agent does:
 * the floor of rates keeps the source from taking its packets for lost sooner.  So does a sender that
 * cannot be marked: it goes back. */
#define CONGESTED_LIMIT   600000000
#define MOST_FRAME        1200 /* with SRH and TLVs, of what is sent to few receivers. */

/* Some links are slower than the others, which have none: in front of them packets wait. */
static void
choose_rates(struct lab *lab)
{
    for (unsigned n = 1 + lab_random(lab, 4); n; n--) {
        unsigned link = lab_random(lab, lab->fabric.n_links);
        unsigned side = lab_random(lab, 8) == 0; /* mostly downwards. */
        uint32_t kmin = 1 + lab_random(lab, 8);

        if (!side && lab->fabric.links[link].ends[0].station == lab_source_station(lab)) {
            continue; /* Its window is all that there is. */
        }
        lab_set_rate(lab, link, side,
                     &(struct impair_params){
                         .rate = lab_slow_rate(lab),
                         .queue = 16 + lab_random(lab, 120),
                         .kmin = kmin,
                         .kmax = lab_random(lab, 6) ? 4 * kmin : 0,
                         .pmax = 200000 + lab_random(lab, 800001),
                     });
    }
}

static void
choose_congestion(struct lab *lab)
{
    struct lab_congestion *c = &lab->congestion;
    unsigned n_hosts = (unsigned) lab->topology.n_hosts - 1 - lab->n;

    lab->time_limit = CONGESTED_LIMIT;
    lab->timeout = CONGESTED_TIMEOUT;
    lab->timeout_usec = 4096u * (1 << CONGESTED_TIMEOUT) / 1000 + 1;
    c->on = true;
    c->line = 100000000;
    c->floor = rate_floor_for(MOST_FRAME, CONGESTED_TIMEOUT);
    c->controller = lab_random(lab, 2) ? RATE_DCQCN : RATE_DEPTH;
    c->rate_control = lab_random(lab, 5)   ? RATE_BY_AGENT
                      : lab_random(lab, 2) ? RATE_BY_NIC
                                           : RATE_BY_NONE;
    c->interval_usec = 1000 + lab_random(lab, 10000);
    c->fast_cnp = lab_random(lab, 2);
    c->cnp = (enum cnp_source) lab_random(lab, 4);
    c->window_usec = 200 + lab_random(lab, 2000);
    c->trace_slots = lab_random(lab, 2) ? (uint8_t) lab_random(lab, 5) : 0;
    c->queue_rate = lab_random(lab, 2) ? 10000000 : 0;
    c->ecn = lab_random(lab, 5);
    for (unsigned i = 0; i < lab->n; i++) {
        if (lab_random(lab, 2)) {
            lab_set_add(&c->nic_cnps, i);
        }
    }
    for (unsigned i = 0; i + 1 < n_hosts; i += 2) {
        char from[16], to[16];

        snprintf(from, sizeof from, "h%u", i + 1);
        snprintf(to, sizeof to, "h%u", i + 2);
        struct lab_flow *f = lab_flow_add(lab, from, to);
        f->ecn = lab_random(lab, 4);
        f->obeys = lab_random(lab, 2);
        f->message_len = (1 + lab_random(lab, 32)) * lab->mtu;
        f->n_messages = 1 + lab_random(lab, 10);
    }
    if (lab_random(lab, 4) == 0) {
        unsigned n_stations = lab->n + n_hosts;

        c->storm_station = lab_source_station(lab) + 1 + lab_random(lab, n_stations);
        c->storm_most = 3000;
        c->storm_usec = 20 + lab_random(lab, 1000);
    }
    choose_rates(lab);
}

/* Are there hosts besides the group's? */
static bool
has_hosts(const struct lab *lab)
{
    return lab->topology.n_hosts > 1 + lab->n;
}

/* Queue pairs in both directions between two hosts.  Nothing gets lost: what a receiver does not
 * expect yet has overtaken something.  A headend takes no answer for one to a flow at first. */
static void
choose_flows(struct lab *lab)
{
    struct lab_congestion *c = &lab->congestion;

    lab->timeout = PATHS_TIMEOUT;
    lab->timeout_usec = 4096u * (1 << PATHS_TIMEOUT) / 1000 + 1;
    c->on = true;
    c->line = 100000000;
    c->rate_control = lab_random(lab, 2) ? RATE_BY_AGENT : RATE_BY_NONE;
    for (unsigned n = has_hosts(lab) ? 1 + lab_random(lab, 4) : 0; n; n--) {
        struct lab_flow *f =
            lab_random(lab, 2) ? lab_flow_add(lab, "h1", "h2") : lab_flow_add(lab, "h2", "h1");

        f->in_order = true;
        f->begins = IN_FLIGHT_LIFE + lab_random(lab, 100000);
        f->window = 1 + lab_random(lab, 4);
        f->message_len = (1 + lab_random(lab, 8)) * lab->mtu;
        f->n_messages = 20 + lab_random(lab, 40);
        f->gap = 1 + lab_random(lab, 200);
    }
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

/* Is there a receiver behind an agent?  Mode mcast is for switches only. */
static bool
has_edge_agent(const struct lab *lab)
{
    for (size_t i = 0; i < lab->topology.n_hosts; i++) {
        const struct plan_host *host = &lab->topology.hosts[i];

        if (host->name[0] == 'r' && plan_is_agent(host->node)) {
            return true;
        }
    }
    return false;
}

/* A quarter of the runs is in another mode than replicate with TLVs; SRHs have no room for all
 * receivers of a large one. */
static void
choose_mode(struct lab *lab)
{
    static const enum tree_mode modes[] = {MODE_REPLICATE, MODE_MCAST, MODE_INGRESS};

    bool large = lab->n > (has_edge_agent(lab) ? N_SMALL / 2 : N_SMALL); /* each edge takes room. */

    if (large || lab_random(lab, 4) == 0) {
        lab->mode = modes[lab_random(lab, 3)];
        if (lab->mode == MODE_MCAST && has_edge_agent(lab)) {
            lab->mode = MODE_REPLICATE;
        }
        lab->provisioned = large || lab_random(lab, 2);
    }
}

/* A neighbour of 'node' that is not in 'via' yet, or NULL. */
static const struct plan_node *
next_via(struct lab *lab, const struct plan_node *node, const char *via)
{
    const struct plan_topology *t = &lab->topology;
    size_t first = lab_random(lab, (uint32_t) t->n_links);
    char list[sizeof lab->via + 2], name[NAME_SIZE + 2];

    snprintf(list, sizeof list, ",%s,", via);
    for (size_t i = 0; i < t->n_links; i++) {
        const struct plan_link *link = &t->links[(first + i) % t->n_links];
        const struct plan_node *next = link->a_node == node   ? link->b_node
                                       : link->b_node == node ? link->a_node
                                                              : NULL;

        snprintf(name, sizeof name, ",%s,", next ? next->name : "");
        if (next && !plan_is_agent(next) && !strstr(list, name)) {
            return next;
        }
    }
    return NULL;
}

/* Can the group have its root there? */
static bool
may_have_via(struct lab *lab)
{
    struct plan_group g = lab_plan_group(lab, 0, &(struct lab_set){.words = {0}});
    struct plan plan;
    char *error = plan_group(&lab->topology, &g, &plan);
    bool ok = !error;

    free(error);
    free(g.members);
    plan_uninit(&plan);
    return ok;
}

/* Some groups have their root somewhere else than at the first switch. */
static void
choose_via(struct lab *lab)
{
    const struct plan_topology *t = &lab->topology;
    const struct plan_node *node = plan_agent_switch(t, lab->nodes[lab->agent].plan);
    char via[sizeof lab->via];

    if (lab->mode != MODE_REPLICATE || lab_random(lab, 3)) {
        return;
    }
    size_t len = (size_t) snprintf(via, sizeof via, "%s", node->name);
    for (unsigned n = lab_random(lab, MAX_VIA); n && (node = next_via(lab, node, via)); n--) {
        len += (size_t) snprintf(via + len, sizeof via - len, ",%s", node->name);
    }
    lab_set_via(lab, via);
    if (!may_have_via(lab)) {
        lab_set_via(lab, "");
    }
}

/* As spines have their numbers; in other topologies as it comes. */
static void
choose_planes(struct lab *lab)
{
    char labels[256] = "";
    size_t len = 0;

    for (unsigned i = 0; i < lab->n_nodes; i++) {
        const char *name = lab->nodes[i].plan->name;
        unsigned number = (unsigned) atoi(name + 1);

        if (number >= FIRST_SPINE && number <= LAST_SPINE) {
            len += (size_t) snprintf(labels + len, sizeof labels - len, "%c:%s ",
                                     number % 2 ? 'B' : 'A', name);
        }
    }
    lab->mode = MODE_REPLICATE;
    lab_set_planes(lab, labels);
}

/* Most of the groups are authenticated, by one TLV, another, or both.  Takes no chance from the
 * rest of the run. */
static void
choose_auth(struct lab *lab, uint64_t seed)
{
    static const unsigned int kinds[] = {0, AUTH_MT, AUTH_DATA, AUTH_HMAC, 0, AUTH_MT | AUTH_HMAC};

    lab->auth = kinds[(seed ^ seed >> 16) % (sizeof kinds / sizeof *kinds)];
}

struct lab *
scenario_create(const char *topology, enum scenario_kind kind, uint64_t seed, bool trace,
                void (*fail)(const struct lab *, const char *condition, const char *text))
{
    struct lab *lab = lab_create(topology, seed, trace, fail);

    if (kind == SCENARIO_PATHS && has_hosts(lab)) {
        lab_set_path_policy(lab, "h1", PATH_MESSAGE);
        lab_set_path_policy(lab, "h2", PATH_MESSAGE);
    }
    choose_mode(lab);
    if (kind == SCENARIO_PLANES) {
        choose_planes(lab);
    } else {
        choose_via(lab);
    }
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
    if (kind == SCENARIO_PATHS) {
        choose_flows(lab);
    } else if (kind == SCENARIO_CONGESTED) {
        choose_congestion(lab);
    } else if (kind == SCENARIO_SLOW) {
        choose_slow(lab);
    } else if (kind == SCENARIO_JOINING) {
        choose_late(lab);
    } else if (kind >= SCENARIO_LOSING && kind != SCENARIO_PLANES) {
        choose_losses(lab);
    }
    if (kind == SCENARIO_EPOCH && seed / SCENARIO_CONGESTED % 2) {
        choose_kept(lab, seed);
    }
    choose_links(lab, kind);
    lab_choose_messages(lab,
                        lab->n > N_SMALL             ? LARGE_PACKETS
                        : kind == SCENARIO_CONGESTED ? CONGESTED_PACKETS
                                                     : MAX_PACKETS,
                        kind == SCENARIO_RNR);
    lab->rests = kind == SCENARIO_LOSING || kind == SCENARIO_LOSING_RESTART;
    lab->rests_before = lab_random(lab, 1 + lab->n_messages);
    choose_actions(lab, kind);
    return lab;
}
