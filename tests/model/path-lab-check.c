/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold of queue pairs over a fabric in which things break (docs/draft-notes.md, R22, R23).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/headend.h"
#include "lib/roce.h"
#include "tests/model/path-lab-impl.h"

#define DRAIN_MAX   500000 /* a planned move waits so long. */
#define SLACK       20000  /* between two looks of the headend, and then some. */
#define GAP         150000 /* in completions, besides four intervals. */
#define NO_PROGRESS 200000 /* then a flow stands still. */
#define HEADER_PATH 8      /* in the flow label. */

/*
 * What leaves.
 */

static const struct path_config *
find_path(const struct node_config *c, const struct in6_addr *address, unsigned number,
          const struct destination_config **to)
{
    for (size_t i = 0; i < c->n_destinations; i++) {
        const struct destination_config *d = &c->destinations[i];

        for (size_t j = 0; IN6_ARE_ADDR_EQUAL(&d->address, address) && j < d->n_paths; j++) {
            if (d->paths[j].number == number) {
                *to = d;
                return &d->paths[j];
            }
        }
    }
    return NULL;
}

static bool
has_usable(const struct destination_config *d)
{
    for (size_t i = 0; i < d->n_paths; i++) {
        if (d->paths[i].usable) {
            return true;
        }
    }
    return false;
}

/* A packet of a host leaves its agent: always on a path, and not on one that is denied. */
static void
check_placed(struct path_lab *lab, const struct clos_frame *f)
{
    const struct node_config *c = &lab->clos->nodes[f->station].config;
    const struct ip6_hdr_wire *outer = (const void *) (f->bytes + f->h->ip.ofs);
    const struct ip6_hdr_wire *inner = (const void *) (f->bytes + f->h->inner.ofs);
    const struct destination_config *d = NULL;
    const struct in6_addr dst = inner->dst; /* frames are not aligned. */

    PATH_REQUIRE(lab, f->h->inner.ofs, "a packet of a host leaves %s on no path",
                 clos_name(lab->clos, f->station));
    const struct path_config *path = find_path(c, &dst, ip6_flow_label(outer) >> HEADER_PATH, &d);
    PATH_REQUIRE(lab, path, "a packet leaves %s on a path that is not there",
                 clos_name(lab->clos, f->station));
    PATH_REQUIRE(lab,
                 path->usable || !has_usable(d) || d->pinned == path->number
                     || lab->clos->fabric.now <= lab->denied_at + DRAIN_MAX + SLACK,
                 "a packet leaves %s on %s, which is denied", clos_name(lab->clos, f->station),
                 path->name);
}

static psn_t
expected_of(const struct flow *f)
{
    return rc_expected(f->receiver);
}

/* Was nothing confirmed of the flow for so long that its host may be told without a switch (R23)? */
static bool
stands_still(const struct flow *flow, uint64_t now)
{
    uint64_t posted =
        flow->n_done < flow->n_posted ? flow->posted_at[flow->n_done % flow->window] : now;
    uint64_t since = posted > flow->heard_at ? posted : flow->heard_at;

    return now - since >= NO_PROGRESS;
}

/* An acknowledgement for a host: it says no more than what its peer has.  One that the agent has made
 * belongs to a switch, or to a flow that stands still. */
static void
check_answer(struct path_lab *lab, const struct clos_frame *f)
{
    const struct bth *bth = (const void *) (f->bytes + f->h->bth_ofs);
    const struct aeth *aeth = (const void *) (bth + 1);
    bool nak = aeth_class(aeth->syndrome) != AETH_CLASS_ACK;
    psn_t una = psn_add(bth_psn(bth), nak ? 0 : 1);
    uint32_t qpn = be24_get(bth->dest_qp);
    uint64_t now = lab->clos->fabric.now;
    bool is_sender;
    struct flow *flow = path_lab_flow(lab, f->to - lab->clos->n_nodes, qpn, &is_sender);

    if (flow && is_sender) {
        PATH_REQUIRE(lab, psn_cmp(una, expected_of(flow)) <= 0,
                     "QPN %x hears that its peer has all below %06x, which expects %06x", qpn,
                     una.v, expected_of(flow).v);
    }
    /* The peer may have said the same; it is never without a buffer. */
    bool made = aeth_class(aeth->syndrome) == AETH_CLASS_RNR
                || (aeth->syndrome == AETH_NAK_PSN_SEQ
                    && !(flow && flow->nak_said && psn_eq(flow->nak_psn, bth_psn(bth))));
    if (made) {
        lab->n_seen[LAB_SAW_nak_made]++;
        if (lab->trace) {
            fprintf(stderr, "%10" PRIu64 " %s makes NAK %06x for qp %x\n", now,
                    clos_name(lab->clos, f->station), una.v, qpn);
        }
    }
    if (flow) {
        flow->n_made += made && !stands_still(flow, now);
        if (psn_cmp(una, flow->heard) > 0) {
            flow->heard = una;
            flow->heard_at = now;
        }
    }
}

static void
trace(const struct path_lab *lab, const struct clos_frame *f)
{
    const struct bth *bth = (const void *) (f->bytes + f->h->bth_ofs);
    const struct ip6_hdr_wire *outer = (const void *) (f->bytes + f->h->ip.ofs);
    const char *name = f->h->opcode == ROCE_CNP ? "CNP" : roce_opcode_info(f->h->opcode)->name;

    fprintf(stderr, "%10" PRIu64 " %s to %s: %s psn %06x qp %x", lab->clos->fabric.now,
            clos_name(lab->clos, f->station), clos_name(lab->clos, f->to), name ? name : "?",
            bth_psn(bth).v, be24_get(bth->dest_qp));
    if (f->h->opcode == RC_ACK) {
        fprintf(stderr, " syndrome %02x", ((const struct aeth *) (bth + 1))->syndrome);
    }
    if (f->h->inner.ofs) {
        fprintf(stderr, " path %u", ip6_flow_label(outer) >> HEADER_PATH);
    }
    fprintf(stderr, "%s\n", bth->ack_req & BTH_ACK_REQ ? " ackreq" : "");
}

void
path_lab_sent(void *lab_, const struct clos_frame *f)
{
    struct path_lab *lab = lab_;

    if (!clos_is_agent(lab->clos, f->station)) {
        return;
    }
    if (lab->trace && f->h->bth_ofs) {
        trace(lab, f);
    }
    if (!f->h->bth_ofs) {
        if (f->h->ip.proto == IP6_NH_UDP) {
            path_lab_probe_sent(lab, f);
        }
    } else if (f->to < lab->clos->n_nodes) {
        check_placed(lab, f);
    } else if (f->h->opcode == RC_ACK) {
        check_answer(lab, f);
    }
}

/*
 * Where flows are.
 */

/* Is there a path to the same destination that is better than bad? */
static bool
has_better(const struct clos_node *n, const struct in6_addr *destination)
{
    struct path_info p;

    for (size_t i = 0; n->class->path(n->node, i, &p); i++) {
        if (IN6_ARE_ADDR_EQUAL(&p.destination, destination) && p.config->usable
            && p.state < PATH_BAD) {
            return true;
        }
    }
    return false;
}

static bool
is_pinned(const struct clos_node *n, const struct in6_addr *address)
{
    for (size_t i = 0; i < n->config.n_destinations; i++) {
        const struct destination_config *d = &n->config.destinations[i];

        if (IN6_ARE_ADDR_EQUAL(&d->address, address)) {
            return d->pinned;
        }
    }
    return false;
}

/* After an event in which the state of ways may have changed: flows have left those that are bad.
 * Notes how many have switched. */
static void
check_left(struct path_lab *lab, const struct clos_node *n)
{
    struct agent_seen *seen = &lab->agents[n - lab->clos->nodes];
    uint64_t n_failed = 0, n_planned = 0;
    struct path_info p;

    for (size_t i = 0; n->class->path(n->node, i, &p); i++) {
        n_failed += p.n_moved_by[PATH_MOVE_FAILED];
        n_planned += p.n_moved_by[PATH_MOVE_PLANNED];
        if (lab->trace && p.last_switch == lab->clos->fabric.now) {
            fprintf(stderr, "%10" PRIu64 " %s: a flow takes path %u, %s, which is %s\n",
                    p.last_switch, n->plan->name, p.config->number, p.config->name,
                    path_state_name(p.state));
        }
        PATH_REQUIRE(lab,
                     p.state != PATH_BAD || !p.n_flows || is_pinned(n, &p.destination)
                         || !has_better(n, &p.destination),
                     "%s: a flow is on %s, which is bad", n->plan->name, p.config->name);
    }
    if (lab->broken && n_failed > seen->n_failed && lab->lossy.left == UINT64_MAX) {
        lab->lossy.left = lab->clos->fabric.now - lab->now.begun;
    }
    seen->n_switch_events += n_failed > seen->n_failed || n_planned > seen->n_planned;
    lab->n_seen[LAB_SAW_switched] += n_failed - seen->n_failed;
    lab->n_seen[LAB_SAW_switch_planned] += n_planned - seen->n_planned;
    seen->n_failed = n_failed;
    seen->n_planned = n_planned;
}

void
path_lab_after(void *lab_, struct clos_node *n)
{
    struct path_lab *lab = lab_;

    if (clos_is_agent(lab->clos, (unsigned) (n - lab->clos->nodes)) && n->node
        && !lab->clos->coming) {
        check_left(lab, n);
    }
}

/* Does the way of a probe pass what is broken? */
static bool
is_hit(const struct path_lab *lab, const struct clos_node *n, const struct plan_probe *p)
{
    return lab->now.on_link ? clos_passes_link(lab->clos, p, lab->now.link)
                            : clos_passes_node(lab->clos, n, p, lab->now.node);
}

/* Does the path, of which the node knows what 'p' says, pass it? */
static bool
path_is_hit(const struct path_lab *lab, const struct clos_node *n, const struct path_info *p)
{
    size_t i = 0;

    while (n->probes.probes[i].config.number != p->config->probe) {
        i++;
    }
    return is_hit(lab, n, &n->probes.probes[i]);
}

/* Has the node a path there that is not hit, and that it does not take for bad? */
static bool
has_way_out(const struct path_lab *lab, const struct clos_node *n, const struct in6_addr *to)
{
    struct path_info p;

    for (size_t i = 0; n->class->path(n->node, i, &p); i++) {
        if (IN6_ARE_ADDR_EQUAL(&p.destination, to) && p.state < PATH_BAD
            && !path_is_hit(lab, n, &p)) {
            return true;
        }
    }
    return false;
}

bool
path_lab_has_way_out(const struct path_lab *lab)
{
    const struct clos *c = lab->clos;

    for (unsigned i = 0; i < c->n_agents * c->n_agents; i++) {
        const struct clos_node *n = &c->nodes[i / c->n_agents];
        unsigned to = i % c->n_agents;

        if (to != i / c->n_agents && !has_way_out(lab, n, &c->topology.hosts[to].address)) {
            return false;
        }
    }
    return true;
}

bool
path_lab_hits_flow(const struct path_lab *lab)
{
    struct path_info p;

    for (unsigned i = 0; i < lab->clos->n_agents; i++) {
        const struct clos_node *n = &lab->clos->nodes[i];

        for (size_t j = 0; n->class->path(n->node, j, &p); j++) {
            if (p.n_flows && path_is_hit(lab, n, &p)) {
                return true;
            }
        }
    }
    return false;
}

void
path_lab_check_seen(struct path_lab *lab)
{
    const struct clos *c = lab->clos;
    struct probe_info info;

    for (unsigned i = 0; i < c->n_agents; i++) {
        const struct clos_node *n = &c->nodes[i];

        for (size_t j = 0; n->class->probe(n->node, j, &info); j++) {
            const struct plan_probe *p = &n->probes.probes[j];
            bool passes = is_hit(lab, n, p);

            PATH_REQUIRE(lab, !passes || info.health.state == PATH_BAD,
                         "%s: probe %s is %s after three intervals", n->plan->name, p->config.name,
                         path_state_name(info.health.state));
            lab->n_seen[LAB_SAW_way_bad] += passes;
        }
    }
}

/*
 * Completions.
 */

void
path_lab_check_completed(struct path_lab *lab, const struct flow *f, uint64_t posted)
{
    uint64_t now = lab->clos->fabric.now;
    uint64_t since = posted > f->done_at ? posted : f->done_at;
    bool known = f->n_done > 0; /* before its first answer nobody knows its queue pair. */

    if (known && now - since > lab->lossy.longest) {
        lab->lossy.longest = now - since;
    }
    PATH_REQUIRE(lab, lab->unbounded || !known || now - since <= 4 * lab->interval + GAP,
                 "%s to %s, QPN %x: nothing was completed for %" PRIu64 " us",
                 clos_name(lab->clos, clos_station_of_host(lab->clos, f->from)),
                 clos_name(lab->clos, clos_station_of_host(lab->clos, f->to)), f->qpn, now - since);
}

static void
check_flow(struct path_lab *lab, const struct flow *f)
{
    struct rc_info from, to;
    unsigned n_events = lab->agents[f->from].n_switch_events;

    rc_get_info(f->sender, &from);
    rc_get_info(f->receiver, &to);
    PATH_REQUIRE(lab, f->n_made <= n_events, "%u NAKs for QPN %x, and %u switches", f->n_made,
                 f->qpn, n_events);
    if (lab->kind == RUN_PLANNED) {
        uint64_t n_sent = f->n_sent + from.n_sent;

        PATH_REQUIRE(lab, n_sent == f->n_packets, "QPN %x: %" PRIu64 " of %" PRIu64 " packets sent",
                     f->qpn, n_sent, f->n_packets);
        PATH_REQUIRE(lab, !to.n_ahead && !to.n_naks, "QPN %x: packets were overtaken", f->qpn);
    }
}

void
path_lab_count(struct path_lab *lab)
{
    const struct clos *c = lab->clos;

    for (unsigned i = 0; i < c->n_agents; i++) {
        const struct clos_node *n = &c->nodes[i];
        struct probe_info probe;
        struct path_info p;

        for (size_t j = 0; n->class->path(n->node, j, &p); j++) {
            lab->n_seen[LAB_SAW_answer_repeated] += p.n_repeated;
        }
        for (size_t j = 0; n->class->probe(n->node, j, &probe); j++) {
            lab->n_seen[LAB_SAW_probe_lost] += probe.n_lost;
        }
    }
}

void
path_lab_check_end(struct path_lab *lab)
{
    static const enum drop_reason never[] = {DROP_path_none, DROP_probe_malformed, DROP_pool_empty};

    for (unsigned i = 0; i < lab->n_flows; i++) {
        check_flow(lab, &lab->flows[i]);
    }
    for (unsigned i = 0; i < lab->clos->n_nodes; i++) {
        for (size_t j = 0; j < sizeof never / sizeof *never; j++) {
            PATH_REQUIRE(lab, !clos_drops(&lab->clos->nodes[i], never[j]), "%s dropped: %s",
                         clos_name(lab->clos, i), drop_name(never[j]));
        }
    }
}
