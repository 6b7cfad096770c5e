/* SPDX-License-Identifier: Apache-2.0
 *
 * Congestion in a lab: rates of links, what nodes are told, and what must hold:
 *
 * - a flow's rate is cut at most once in an interval, and is never below its floor; what waits for
 *   it is never more than the window of a queue pair, and counts as sent only when it has left;
 * - a node sends at most one CNP upwards in the time T, and none that nothing was the reason of;
 * - who is told by Fast CNPs is not told by marks as well;
 * - no host hears of a Fast CNP, nor of a CNP that is its agent's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cnp.h"
#include "lib/ecn.h"
#include "lib/pacer.h"
#include "lib/roce.h"
#include "tests/model/lab.h"

#define HOST_SEED 7

/* Rates. */

unsigned
lab_find_link(const struct lab *lab, const char *from, const char *to, unsigned *side)
{
    unsigned ends[2] = {lab_station_of(lab, from), lab_station_of(lab, to)};

    for (unsigned i = 0; i < lab->fabric.n_links; i++) {
        const struct fabric_end *e = lab->fabric.links[i].ends;

        for (*side = 0; *side < 2; ++*side) {
            if (e[*side].station == ends[0] && e[!*side].station == ends[1]) {
                return i;
            }
        }
    }
    abort();
}

static struct lab_nic *
find_nic(struct lab *lab, unsigned station)
{
    for (unsigned i = 0; i < lab->net.n_nics; i++) {
        if (lab->net.nics[i].station == station) {
            return &lab->net.nics[i];
        }
    }
    return NULL;
}

static struct port_config *
find_port(const struct lab_node *n, uint16_t number)
{
    for (size_t i = 0; i < n->base.n_ports; i++) {
        if (n->base.ports[i].number == number) {
            return &n->base.ports[i];
        }
    }
    abort();
}

/* A NIC has no RED: its host is the source. */
static void
set_nic_rate(struct lab *lab, unsigned station, const struct impair_params *p)
{
    struct egress_params params = {.rate = p->rate, .limit = p->queue};
    struct lab_nic *nic = find_nic(lab, station);

    if (nic) {
        egress_configure(nic->queue, &params, lab->fabric.now);
        return;
    }
    LAB_REQUIRE(lab, lab->net.n_nics < LAB_MAX_NICS, "too many rates of hosts");
    lab->net.nics[lab->net.n_nics++] = (struct lab_nic){station, egress_create(&params, HOST_SEED)};
}

void
lab_set_rate(struct lab *lab, unsigned link, unsigned side, const struct impair_params *p)
{
    struct fabric_end end = lab->fabric.links[link].ends[side];

    lab->net.rated = true;
    if (end.station >= lab->n_nodes) {
        set_nic_rate(lab, end.station, p);
        return;
    }
    struct lab_node *n = &lab->nodes[end.station];
    find_port(n, end.port)->tx = *p;
    n->rated = true;
    lab_node_configure(lab, end.station);
}

uint64_t
lab_slow_rate(struct lab *lab)
{
    return UINT64_C(1000000) << (1 + lab_random(lab, 7));
}

void
lab_change_rate(struct lab *lab)
{
    unsigned first = lab_random(lab, lab->n_nodes);

    for (unsigned i = 0; i < lab->n_nodes; i++) {
        unsigned station = (first + i) % lab->n_nodes;
        struct lab_node *n = &lab->nodes[station];

        for (size_t j = 0; j < n->base.n_ports; j++) {
            if (n->base.ports[j].tx.rate) {
                n->base.ports[j].tx.rate = lab_slow_rate(lab);
                lab_node_configure(lab, station);
                return;
            }
        }
    }
}

bool
lab_queue_stats(const struct lab *lab, unsigned link, unsigned side, struct egress_stats *stats)
{
    struct fabric_end end = lab->fabric.links[link].ends[side];
    const struct lab_node *n = &lab->nodes[end.station];

    return end.station < lab->n_nodes && n->node && n->class->egress
           && n->class->egress(n->node, end.port, stats);
}

/* Packets that all queues have room for. */
static unsigned
n_queued(const struct lab *lab)
{
    unsigned n = (lab->net.n_nics * LAB_NIC_QUEUE) + (1 + lab->net.n_flows) * PACER_QUEUE_MAX;

    for (unsigned i = 0; i < lab->n_nodes; i++) {
        const struct node_config *c = &lab->nodes[i].base;

        for (size_t j = 0; j < c->n_ports; j++) {
            n += c->ports[j].tx.rate ? c->ports[j].tx.queue : 0;
        }
    }
    return n;
}

/* Configuration. */

static bool
has_agent(const struct plan_host *host)
{
    return plan_is_agent(host->node);
}

/* As castd does: who has an agent takes Fast CNPs, of all nodes. */
static void
set_addresses(const struct lab *lab, struct congestion_config *c)
{
    const struct plan_topology *t = &lab->topology;

    c->capable = calloc(t->n_hosts, sizeof *c->capable);
    c->trusted = calloc(lab->n_nodes, sizeof *c->trusted);
    if (!c->capable || !c->trusted) {
        abort();
    }
    for (size_t i = 0; i < t->n_hosts; i++) {
        if (has_agent(&t->hosts[i])) {
            c->capable[c->n_capable++] = t->hosts[i].address;
        }
    }
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        c->trusted[c->n_trusted++] = lab->nodes[i].base.address;
    }
    qsort(c->capable, c->n_capable, sizeof *c->capable, address_compare);
    qsort(c->trusted, c->n_trusted, sizeof *c->trusted, address_compare);
}

static void
init_node(const struct lab *lab, struct congestion_config *c)
{
    const struct lab_congestion *want = &lab->congestion;

    c->interval_usec = want->interval_usec;
    c->fast_cnp = want->fast_cnp;
    c->fast_cnp_rate = want->fast_cnp_rate;
    c->trace = want->trace_slots;
    c->rate_control = want->rate_control;
    c->rate = rate_params_default(want->line, want->floor);
    c->rate.controller = want->controller;
    c->rate.interval_usec = want->interval_usec;
    c->rate.alpha_usec = c->rate.timer_usec = want->interval_usec + want->interval_usec / 10;
    c->queue_rates = calloc(lab->n_nodes, sizeof *c->queue_rates);
    if (!c->queue_rates) {
        abort();
    }
    for (unsigned i = 0; want->queue_rate && i < lab->n_nodes; i++) {
        c->queue_rates[c->n_queue_rates++] =
            (struct queue_rate){lab->nodes[i].base.id, want->queue_rate};
    }
    qsort(c->queue_rates, c->n_queue_rates, sizeof *c->queue_rates, queue_rate_compare);
    set_addresses(lab, c);
}

void
lab_congestion_init(struct lab *lab)
{
    if (lab->congestion.on) {
        lab->faults |= LAB_FAULT_CONGESTION;
        lab->faults |= lab->congestion.storm_usec ? LAB_FAULT_STORM : 0;
        for (unsigned i = 0; i < lab->n_nodes; i++) {
            init_node(lab, &lab->nodes[i].base.congestion);
        }
    }
    lab->pool_size += n_queued(lab);
}

void
lab_congestion_destroy(struct lab *lab)
{
    lab_flows_destroy(lab);
    for (unsigned i = 0; i < lab->net.n_nics; i++) {
        egress_destroy(lab->net.nics[i].queue);
    }
}

/* Hosts. */

bool
lab_nic_takes(struct lab *lab, unsigned station, const uint8_t *frame, size_t len)
{
    struct lab_nic *nic = find_nic(lab, station);
    bool congested;

    if (!nic) {
        return false;
    }
    struct packet *p = packet_from_bytes(lab->pool, frame, len);
    LAB_REQUIRE(lab, p, "the pool is empty");
    if (egress_put(nic->queue, p, EGRESS_EXEMPT, lab->fabric.now, &congested) != EGRESS_QUEUED) {
        packet_put(p);
        lab->fabric.last_loss = lab->fabric.now;
    }
    return true;
}

uint64_t
lab_congestion_deadline(const struct lab *lab)
{
    uint64_t when = UINT64_MAX;

    for (unsigned i = 0; i < lab->net.n_nics; i++) {
        uint64_t t = egress_deadline(lab->net.nics[i].queue);
        when = t < when ? t : when;
    }
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        uint64_t t = rc_deadline(lab->net.flows[i].sender);
        when = t < when ? t : when;
    }
    return when;
}

static void
nic_timer(struct lab *lab, struct lab_nic *nic)
{
    struct packet *p;
    bool marked;

    while ((p = egress_get(nic->queue, lab->fabric.now, &marked))) {
        uint8_t frame[PACKET_ROOM];
        size_t len = packet_flatten(p, frame, sizeof frame);

        packet_put(p);
        fabric_send(&lab->fabric, (struct fabric_end){nic->station, 0}, frame, len, false);
    }
}

bool
lab_congestion_timer(struct lab *lab)
{
    for (unsigned i = 0; i < lab->net.n_nics; i++) {
        if (egress_deadline(lab->net.nics[i].queue) <= lab->fabric.now) {
            nic_timer(lab, &lab->net.nics[i]);
            return true;
        }
    }
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        struct rc_endpoint *ep = lab->net.flows[i].sender;

        if (rc_deadline(ep) <= lab->fabric.now) {
            rc_timer(ep, lab->fabric.now);
            return true;
        }
    }
    return false;
}

/* A CNP that nothing is the reason of. */
static void
send_cnp(struct lab *lab, unsigned station)
{
    struct in6_addr own = lab_station_address(lab, station);
    struct packet *p =
        cnp_build(lab->pool, &own, &lab_proxy, 0xc000, lab_designated_qpn(lab->epoch));
    uint8_t ip[CNP_LEN];

    LAB_REQUIRE(lab, p, "the pool is empty");
    size_t len = packet_flatten(p, ip, sizeof ip);
    packet_put(p);
    lab->net.n_storm++;
    lab_host_send(lab, station, ip, len);
}

static void
storm(void *lab_, unsigned station, unsigned unused)
{
    struct lab *lab = lab_;

    (void) unused;
    if (!lab_is_over(lab) && lab->net.n_storm < lab->congestion.storm_most) {
        send_cnp(lab, station);
        fabric_schedule(&lab->fabric, lab->fabric.now + lab->congestion.storm_usec, storm, station,
                        0);
    }
}

void
lab_congestion_start(struct lab *lab)
{
    if (lab->congestion.storm_usec) {
        fabric_schedule(&lab->fabric, lab->fabric.now + lab->congestion.storm_usec, storm,
                        lab->congestion.storm_station, 0);
    }
}

/* What must hold of frames. */

static const struct bth *
bth_of(const uint8_t *frame, const struct parsed *h)
{
    return (const void *) (frame + h->bth_ofs);
}

static bool
is_marked(const uint8_t *frame, const struct parsed *h)
{
    return (ip6_tc((const struct ip6_hdr_wire *) (frame + h->ip.ofs)) & ECN_MASK) == ECN_CE;
}

static bool
is_fast_cnp(const struct parsed *h)
{
    return h->opcode == ROCE_CNP && !h->inner.ofs && h->ip.n_ext;
}

/* Does the source of these data take Fast CNPs?  A copy at an edge comes from the Proxy. */
static bool
is_told(const struct lab *lab, const uint8_t *frame, const struct parsed *h)
{
    struct in6_addr src;

    memcpy(&src, &((const struct ip6_hdr_wire *) (frame + parsed_innermost(h)->ofs))->src,
           sizeof src);
    if (!memcmp(&src, &lab_proxy, sizeof src)) {
        return true;
    }
    for (size_t i = 0; i < lab->topology.n_hosts; i++) {
        const struct plan_host *host = &lab->topology.hosts[i];

        if (!memcmp(&src, &host->address, sizeof src)) {
            return has_agent(host);
        }
    }
    return false;
}

/* May CNPs of this node leave together?  They may wait in a queue, or for a neighbour that is not
 * there, or not known yet; and an agent makes them of Fast CNPs, too. */
static bool
may_catch_up(const struct lab *lab, const struct lab_node *n)
{
    return n->rated || n->cnps.n_up < 2 || lab->faults & LAB_FAULT_RESTART
           || (n == &lab->nodes[lab->agent] && lab->congestion.fast_cnp);
}

/* A CNP that this node made for what is above it, or forwards. */
static void
check_cnp(struct lab *lab, struct lab_node *n, const uint8_t *frame, const struct parsed *h)
{
    const struct ip6_hdr_wire *ip = (const void *) (frame + h->ip.ofs);
    uint32_t qpn = be24_get(bth_of(frame, h)->dest_qp);
    bool to_parent = h->inner.ofs && !memcmp(&ip->src, &n->base.address, sizeof ip->src)
                     && !lab_comes_again(n, ip);
    bool to_source = !h->inner.ofs && !memcmp(&ip->src, &lab_proxy, sizeof ip->src)
                     && !memcmp(&ip->dst, &lab_source_address, sizeof ip->dst);
    bool of_root = qpn - lab_source_qpn(0) < LAB_N_EPOCHS;
    unsigned epoch = qpn - (to_parent && !of_root ? lab_designated_qpn(0) : lab_source_qpn(0));
    struct lab_cnps *c = &n->cnps;

    if (!to_parent && !(to_source && epoch < LAB_N_EPOCHS && lab_is_root(n, epoch))) {
        return;
    }
    LAB_REQUIRE(lab, epoch < LAB_N_EPOCHS, "%s sends a CNP for QP %x", n->plan->name, qpn);
    LAB_REQUIRE(lab,
                may_catch_up(lab, n) || !c->last_up[epoch]
                    || lab->fabric.now - c->last_up[epoch] >= lab->congestion.interval_usec,
                "%s sends CNPs within %" PRIu64 " us", n->plan->name,
                lab->fabric.now - c->last_up[epoch]);
    c->last_up[epoch] = lab->fabric.now;
    c->n_up++;
    /* An agent also tells its host's NIC of its own queue. */
    LAB_REQUIRE(lab, c->n_up <= c->n_in + c->n_ce || (n->rated && plan_is_agent(n->plan)),
                "%s has sent %" PRIu64 " CNPs: %" PRIu64 " came, %" PRIu64 " copies had CE",
                n->plan->name, c->n_up, c->n_in, c->n_ce);
}

static void
check_data(struct lab *lab, struct lab_node *n, const uint8_t *frame, const struct parsed *h)
{
    bool marked = is_marked(frame, h);

    LAB_REQUIRE(lab, !marked || !lab->congestion.fast_cnp || !is_told(lab, frame, h),
                "%s sends CE, and the sender takes Fast CNPs", n->plan->name);
    n->cnps.n_ce += marked;
    lab->n_seen[LAB_SAW_marked] += marked;
}

bool
lab_congestion_sent(struct lab *lab, struct lab_node *n, const uint8_t *frame,
                    const struct parsed *h)
{
    if (!lab->congestion.on) {
        return false;
    }
    if (!h->bth_ofs || is_fast_cnp(h)) {
        return true;
    }
    if (h->opcode == ROCE_CNP) {
        check_cnp(lab, n, frame, h);
        return true;
    }
    if (h->opcode != RC_ACK) {
        check_data(lab, n, frame, h);
    }
    uint32_t qpn = be24_get(bth_of(frame, h)->dest_qp);
    if (qpn >= LAB_FLOW_QPN) {
        return true;
    }
    if (n == &lab->nodes[lab->agent] && h->opcode != RC_ACK) {
        unsigned epoch = qpn - lab_designated_qpn(0);
        psn_t behind = psn_add(bth_psn(bth_of(frame, h)), 1);
        struct lab_cnps *c = &n->cnps;

        if (!c->any_left[epoch] || psn_cmp(behind, c->left[epoch]) > 0) {
            c->left[epoch] = behind;
            c->any_left[epoch] = true;
        }
    }
    return false;
}

void
lab_congestion_came(struct lab_node *n, const uint8_t *frame, const struct parsed *h)
{
    n->cnps.n_in += h->opcode == ROCE_CNP;
    n->cnps.n_ce += is_marked(frame, h);
}

void
lab_congestion_delivered(struct lab *lab, unsigned station, const uint8_t *frame,
                         const struct parsed *h)
{
    if (!h->bth_ofs || h->opcode != ROCE_CNP) {
        return;
    }
    LAB_REQUIRE(lab, !is_fast_cnp(h), "a Fast CNP came to %s", lab_station_name(lab, station));
    bool is_groups = be24_get(bth_of(frame, h)->dest_qp) < LAB_FLOW_QPN;
    LAB_REQUIRE(lab, !is_groups || lab->congestion.rate_control == RATE_BY_NIC,
                "a CNP of the group came to %s", lab_station_name(lab, station));
}

/* What must hold of agents. */

static struct lab_seen_flow *
find_seen(struct lab *lab, const struct lab_node *n, const struct flow_info *f)
{
    for (unsigned i = 0; i < LAB_MAX_SEEN_FLOWS; i++) {
        struct lab_seen_flow *s = &lab->net.seen[i];

        if (!s->node) {
            *s = (struct lab_seen_flow){.node = n, .dst = f->dst, .dest_qp = f->dest_qp};
        }
        if (s->node == n && !memcmp(&s->dst, &f->dst, sizeof s->dst) && s->dest_qp == f->dest_qp) {
            return s;
        }
    }
    lab_fail(lab, "", "too many flows");
}

static void
check_flow(struct lab *lab, const struct lab_node *n, const struct flow_info *f)
{
    struct lab_seen_flow *s = find_seen(lab, n, f);
    uint32_t interval = lab->congestion.interval_usec;
    /* It may have been forgotten, or the agent was started again. */
    uint64_t before = f->n_cuts < s->n_cuts ? 0 : s->n_cuts;

    LAB_REQUIRE(lab, f->n_cuts - before <= 1, "%s cuts a rate twice at once", n->plan->name);
    if (f->n_cuts > before) {
        LAB_REQUIRE(lab, !before || lab->fabric.now - s->last_cut >= interval,
                    "%s cuts a rate again after %" PRIu64 " us", n->plan->name,
                    lab->fabric.now - s->last_cut);
        s->last_cut = lab->fabric.now;
        lab->net.n_cuts++;
        lab->n_seen[LAB_SAW_cut]++;
    }
    s->n_cuts = f->n_cuts;
    lab->n_seen[LAB_SAW_paced] += f->n_delayed > s->n_delayed;
    lab->n_seen[LAB_SAW_replaced] += f->n_replaced > s->n_replaced;
    s->n_delayed = f->n_delayed;
    s->n_replaced = f->n_replaced;
    LAB_REQUIRE(lab, !f->rate || f->rate >= lab->congestion.floor,
                "%s has a rate of %" PRIu64 ", below the floor", n->plan->name, f->rate);
    LAB_REQUIRE(lab, f->n_waiting <= PACER_QUEUE_MAX && f->max_waiting <= PACER_QUEUE_MAX,
                "%u packets wait at %s", f->max_waiting, n->plan->name);
}

/* What waits has not gone down.  With a queue behind the pacer nobody can tell from outside. */
static void
check_down(struct lab *lab, const struct lab_node *n)
{
    for (size_t i = 0; !n->rated && lab->n_done && i < n->class->n_trees(n->node); i++) {
        struct tree_info t;

        n->class->tree(n->node, i, &t);
        unsigned epoch = t.config->designated_qpn - lab_designated_qpn(0);
        LAB_REQUIRE(lab,
                    !t.reverse.started || !n->cnps.any_left[epoch]
                        || psn_cmp(t.reverse.h, n->cnps.left[epoch]) <= 0,
                    "%s counts %06x as gone down, and has sent up to %06x", n->plan->name,
                    t.reverse.h.v, n->cnps.left[epoch].v);
    }
}

void
lab_congestion_look(struct lab *lab, struct lab_node *n)
{
    if (!lab->congestion.on) {
        return;
    }
    uint64_t n_lost = lab_node_drops(n, DROP_egress_full) + lab_node_drops(n, DROP_egress_red)
                      + lab_node_drops(n, DROP_neigh_queue);

    if (n_lost > n->cnps.n_lost) {
        lab->fabric.last_loss = lab->fabric.now;
        n->cnps.n_lost = n_lost;
    }
    for (size_t i = 0; n->class->n_flows && i < n->class->n_flows(n->node); i++) {
        struct flow_info f;

        n->class->flow(n->node, i, &f);
        check_flow(lab, n, &f);
    }
    if (n == &lab->nodes[lab->agent]) {
        check_down(lab, n);
    }
}

bool
lab_group_flow(const struct lab *lab, struct flow_info *f)
{
    const struct lab_node *n = &lab->nodes[lab->agent];

    for (size_t i = 0; n->node && n->class->n_flows && i < n->class->n_flows(n->node); i++) {
        n->class->flow(n->node, i, f);
        if (!memcmp(&f->dst, &lab_proxy, sizeof f->dst)) {
            return true;
        }
    }
    return false;
}
