/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of a lab: configuration by the planner, start and end, frames in
 * and out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/plan/path.h"
#include "lib/nd.h"
#include "lib/neigh.h"
#include "lib/roce.h"
#include "tests/model/lab.h"

/* Their headers cannot both be included: each names its own things. */
extern const struct node_class srcagent_class, swedge_class;

void
lab_node_init(struct lab *lab, unsigned i)
{
    struct lab_node *n = &lab->nodes[i];

    n->lab = lab;
    n->class = n->plan->role == NODE_AGENT ? &srcagent_class : &swedge_class;
    struct plan_node_paths *found;
    char *error = plan_node_config(&lab->topology, n->plan, &n->base);
    LAB_REQUIRE(lab, !error, "%s", error);
    error = plan_destinations(&lab->topology, n->plan, &n->base, &found);
    LAB_REQUIRE(lab, !error, "%s", error);
    plan_node_paths_free(&lab->topology, found);
}

void
lab_set_path_policy(struct lab *lab, const char *host, enum path_policy policy)
{
    for (size_t i = 0; i < lab->topology.n_hosts; i++) {
        if (!strcmp(lab->topology.hosts[i].name, host)) {
            lab->topology.hosts[i].path_policy = policy;
        }
    }
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        node_config_uninit(&lab->nodes[i].base);
        lab_node_init(lab, i);
    }
}

/* Configuration. */

/* The plan of an epoch with everybody. */
static const struct plan *
whole_plan(struct lab *lab, unsigned epoch)
{
    struct lab_plan *p = &lab->whole[epoch];

    if (!p->valid) {
        struct plan_group all = lab_plan_group(lab, epoch, &(struct lab_set){.words = {0}});
        char *error = plan_group(&lab->topology, &all, &p->plan);

        LAB_REQUIRE(lab, !error, "planner: %s", error);
        p->valid = true;
        free(all.members);
    }
    return &p->plan;
}

/* The same without 'removed'; kept, since a whole level is told the same. */
static const struct plan *
reduced_plan(struct lab *lab, unsigned epoch, const struct lab_set *removed)
{
    struct lab_plan *p = &lab->reduced[epoch];

    if (!p->valid || !lab_set_equal(&p->removed, removed)) {
        struct plan_group g = lab_plan_group(lab, epoch, removed);
        const struct plan *whole = whole_plan(lab, epoch);

        plan_uninit(&p->plan);
        plan_reduce(whole, &g, &p->plan);
        p->removed = *removed;
        p->valid = true;
        free(g.members);
    }
    return &p->plan;
}

void
lab_replan(struct lab *lab, unsigned epoch)
{
    plan_uninit(&lab->whole[epoch].plan);
    lab->whole[epoch].valid = lab->reduced[epoch].valid = false;
}

void
lab_prefer_in_plan(struct lab *lab, unsigned epoch)
{
    struct lab_plan *p = &lab->whole[epoch];

    if (p->valid) {
        struct plan_group g = lab_plan_group(lab, epoch, &(struct lab_set){.words = {0}});

        plan_set_planes(&lab->topology, &g, &p->plan);
        free(g.members);
    }
    lab->reduced[epoch].valid = false;
}

const struct lab_node *
lab_edge_of(struct lab *lab, unsigned receiver)
{
    const struct plan_tree *tree;
    const struct branch_config *b =
        plan_find_branch(whole_plan(lab, lab->epoch), receiver + 1, &tree);

    return b ? &lab->nodes[tree->node - lab->topology.nodes] : NULL;
}

/* What the planner has for this node. */
static void
plan_trees(struct lab_node *n)
{
    n->n_trees = 0;
    for (unsigned epoch = n->first_epoch; epoch <= n->last_epoch; epoch++) {
        const struct plan *plan = reduced_plan(n->lab, epoch, &n->removed);

        for (size_t i = 0; i < plan->n_trees; i++) {
            if (plan->trees[i].node == n->plan) {
                tree_config_clone(&n->trees[n->n_trees++], &plan->trees[i].config);
            }
        }
    }
}

static const struct tree_config *
tree_of(const struct lab_node *n, unsigned epoch)
{
    for (size_t i = 0; i < n->n_trees; i++) {
        if (n->trees[i].designated_qpn == lab_designated_qpn(epoch)) {
            return &n->trees[i];
        }
    }
    return NULL;
}

/* The receivers that responses of this node speak for, by what nodes have now. */
static struct lab_set
counted_by(const struct lab_node *n, unsigned epoch)
{
    const struct tree_config *t = tree_of(n, epoch);
    struct lab_set counted = {.words = {0}};

    for (size_t i = 0; t && i < t->n_branches; i++) {
        const struct branch_config *b = &t->branches[i];

        if (b->kind == BRANCH_RECEIVER) {
            const struct lab_receiver *r = &n->lab->receivers[b->id - 1];

            if ((!r->is_late || r->joined) && b->join != BRANCH_ASKED) {
                lab_set_add(&counted, b->id - 1);
            }
            continue;
        }
        const struct plan_node *child = plan_find_node(&n->lab->topology, b->name);
        LAB_REQUIRE(n->lab, child && child != n->plan && b->id == BRANCH_ID_NODE(child->id),
                    "branch %s", b->name);
        struct lab_set more = counted_by(&n->lab->nodes[child - n->lab->topology.nodes], epoch);
        lab_set_merge(&counted, &more);
    }
    return counted;
}

/* As castd does: who has receivers verifies, the source's agent makes what is verified; with
 * authenticated data each node that merges does both with responses. */
static void
set_auth(struct lab_node *n, struct tree_config *t)
{
    static const struct auth_key key = {.id = 9, .len = 32, .secret = "of this lab"};
    struct auth_config own = {
        .tlvs = n->lab->auth, .n_keys = 1, .keys = &(struct auth_key){.id = key.id}};
    bool concerned = n == &n->lab->nodes[n->lab->agent];

    own.key = concerned || own.tlvs & AUTH_DATA ? key.id : 0;
    own.responses = own.tlvs & AUTH_DATA;

    for (size_t i = 0; i < t->n_branches; i++) {
        concerned |= t->branches[i].kind == BRANCH_RECEIVER || own.tlvs & AUTH_DATA;
    }
    if (concerned && own.tlvs) {
        own.keys[0] = key;
        auth_config_uninit(&t->auth);
        auth_config_clone(&t->auth, &own);
    }
    if (concerned && own.tlvs & AUTH_DATA) {
        lab_data_set(n, t);
    }
}

static void
free_trees(struct lab_node *n)
{
    for (size_t i = 0; i < n->n_trees; i++) {
        tree_config_uninit(&n->trees[i]);
    }
    n->n_trees = 0;
}

unsigned
lab_node_n_crossing(const struct lab_node *n)
{
    const struct lab *lab = n->lab;
    const struct plan_topology *t = &lab->topology;
    const struct lab_node *agent = &lab->nodes[lab->agent];
    unsigned n_crossing = n->in_front;

    for (size_t i = 0;
         lab->mode == MODE_INGRESS && agent->n_trees && i < agent->trees[0].n_branches; i++) {
        const struct plan_node *node = agent->plan;
        const struct plan_node *edge = plan_find_node(t, agent->trees[0].branches[i].name);

        while ((node = plan_next_node(t, node, edge)) != edge) {
            n_crossing += node == n->plan;
        }
    }
    return n_crossing;
}

static void
note_outputs(struct lab_node *n)
{
    unsigned n_crossing = lab_node_n_crossing(n);

    n->n_outputs = n_crossing > n->n_outputs ? n_crossing : n->n_outputs;
    for (size_t t = 0; t < n->n_trees; t++) {
        unsigned n_outputs =
            (unsigned) (n->trees[t].n_outer_da + n->trees[t].n_branches) + n_crossing;
        n->n_outputs = n_outputs > n->n_outputs ? n_outputs : n->n_outputs;
    }
}

/* As agents do: something has gone down. */
static void
report_started(struct lab_node *n)
{
    for (size_t i = 0; i < n->class->n_trees(n->node); i++) {
        struct tree_info info;

        n->class->tree(n->node, i, &info);
        n->started[info.config->designated_qpn - lab_designated_qpn(0)] |= info.started;
    }
}

/* The event at the node is over: what it has sent leaves. */
static void
settle(struct lab *lab, struct lab_node *n)
{
    LAB_REQUIRE(lab, sent_frames_flush(&n->sent), "%s changed a frame after it was sent",
                n->plan->name);
}

void
lab_recount(struct lab *lab)
{
    for (unsigned j = 0; j < lab->n_nodes; j++) {
        for (unsigned epoch = 0; epoch < LAB_N_EPOCHS; epoch++) {
            lab->nodes[j].counted[epoch] = counted_by(&lab->nodes[j], epoch);
        }
    }
}

void
lab_node_configure(struct lab *lab, unsigned i)
{
    struct lab_node *n = &lab->nodes[i];
    char *error = NULL;

    if (!n->node) {
        return; /* It will be when it starts. */
    }
    size_t n_before = n->n_trees ? n->trees[0].n_branches : 0;
    bool had[LAB_N_EPOCHS];
    for (unsigned epoch = 0; epoch < LAB_N_EPOCHS; epoch++) {
        had[epoch] = tree_of(n, epoch);
    }
    report_started(n);
    free_trees(n);
    plan_trees(n);
    for (unsigned epoch = 0; epoch < LAB_N_EPOCHS; epoch++) {
        if (had[epoch] && !tree_of(n, epoch)) { /* The next one is another. */
            n->started[epoch] = n->said[epoch].known = false;
            n->data[epoch] = (struct lab_data_row){.own = 0};
            n->said[epoch].from = lab->fabric.now + REVERSE_LIFETIME_USEC;
        }
    }
    lab_loss_configure(lab, n);
    for (size_t t = 0; t < n->n_trees; t++) {
        n->trees[t].policy.nak = lab->nak;
        n->trees[t].policy.filter = lab->filter;
        n->trees[t].policy.timeout = lab->timeout;
        n->trees[t].policy.cnp = lab->congestion.cnp;
        n->trees[t].policy.cnp_window_usec = lab->congestion.window_usec;
        n->trees[t].policy.trace_slots = lab->congestion.trace_slots;
        n->trees[t].rate_floor = lab->congestion.floor;
        n->trees[t].restarted = n->starts;
        n->trees[t].started = n->started[n->trees[t].designated_qpn - lab_designated_qpn(0)];
        set_auth(n, &n->trees[t]);
        lab_planes_configure(lab, &n->trees[t]);
    }
    for (unsigned j = 0; j < lab->n_nodes; j++) {
        note_outputs(&lab->nodes[j]);
    }
    lab_recount(lab);

    n->base.generation++;
    struct node_config c = n->base;
    c.trees = n->trees;
    c.n_trees = n->n_trees;
    int err = n->class->configure(n->node, &c, lab->fabric.now, &error);
    LAB_REQUIRE(lab, !err, "configure %s: %s", n->plan->name, error ? error : "");
    settle(lab, n);
    n->deadline = n->class->deadline(n->node);
    lab_congestion_look(lab, n); /* what was held back may have gone. */
    lab_planes_look(lab, n);
    lab_event_look(lab, n, false, n->n_trees && n->trees[0].n_branches < n_before);
}

bool
lab_is_root(const struct lab_node *n, unsigned epoch)
{
    const struct tree_config *t = tree_of(n, epoch);

    return t && t->root;
}

struct lab_set
lab_counted(const struct lab *lab, unsigned epoch)
{
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        if (lab_is_root(&lab->nodes[i], epoch)) {
            return lab->nodes[i].counted[epoch];
        }
    }
    return (struct lab_set){.words = {0}};
}

/* Start and end. */

static void
node_tx(void *n_, uint16_t port, struct packet *p)
{
    struct lab_node *n = n_;
    struct lab *lab = n->lab;
    uint8_t frame[PACKET_ROOM];
    size_t len = packet_flatten(p, frame, sizeof frame);

    sent_frames_put(&n->sent, p);
    struct fabric_end from = {(unsigned) (n - lab->nodes), port};
    struct fabric_end to = fabric_peer(&lab->fabric, from);
    struct parsed h;
    struct nd_msg m;

    if (parse_frame(frame, (uint32_t) len, &h)) {
        h.bth_ofs = 0; /* spoilt on the way, and not this node's to look at. */
    } else if (nd_parse(frame, &h, &m) == ND_VALID) {
        if (to.station < lab->n_nodes) {
            fabric_send(&lab->fabric, from, frame, len, true);
        } else if (m.type == ND_NS) {
            struct packet *na_packet = packet_get(lab->pool);
            struct nd_msg na = {
                .type = ND_NA,
                .src = m.target,
                .dst = m.src,
                .target = m.target,
                .solicited = true,
                .override = true,
                .has_mac = true,
                .mac = {0x02, 0xee, 0, 0, (uint8_t) (to.station >> 8), (uint8_t) to.station},
            };
            uint8_t mac[6];

            node_port_mac(n->base.id, port, mac);
            nd_build(na_packet, na.mac, mac, &na);
            len = packet_flatten(na_packet, frame, sizeof frame);
            packet_put(na_packet);
            fabric_send(&lab->fabric, to, frame, len, true);
        }
        return;
    }
    lab_trace_frame(lab, from.station, &h, frame);
    lab_data_sent(lab, n, frame, &h);
    n->n_out++;
    if (!lab_congestion_sent(lab, n, frame, &h)) {
        lab_check_sent(lab, n, frame, &h);
    }
    fabric_send(&lab->fabric, from, frame, len, false);
}

void
lab_node_start(struct lab *lab, unsigned i)
{
    struct lab_node *n = &lab->nodes[i];
    struct lab_set forgotten = lab_set_without(&n->pruned, &n->removed);

    if (lab_set_equal(&lab->lost, &lab->members)) {
        lab->pruned = lab_set_without(&lab->pruned, &forgotten); /* castd takes none of them out. */
    }
    n->pruned = (struct lab_set){.words = {0}};
    n->seen = (struct lab_seen){.trees = {{.valid = false}}};
    n->n_lost = 0;
    n->n_planes_failed = n->n_planes_moved = 0;
    memset(n->said, 0, sizeof n->said);
    n->cnps = (struct lab_cnps){.n_lost = n->cnps.n_lost};
    n->node = n->class->create(
        &(struct node_io){.tx = node_tx, .way_state = lab_way_state, .aux = n}, lab->pool);
    n->starts = n->lived;
    n->lived = true;
    lab_data_new_life(n);
    lab_node_configure(lab, i);
    n->starts = false;
}

void
lab_node_stop(struct lab *lab, unsigned i)
{
    struct lab_node *n = &lab->nodes[i];

    if (n->node) {
        const uint64_t *drops = n->class->drops(n->node);

        report_started(n);
        for (unsigned why = 0; why < N_DROP_REASONS; why++) {
            n->drops[why] += drops[why];
        }
        n->class->destroy(n->node);
        n->node = NULL;
        n->deadline = UINT64_MAX;
    }
}

/* After an event at this node. */
static void
note_event(struct lab *lab, struct lab_node *n)
{
    settle(lab, n);
    lab_data_look(n);
    n->deadline = n->class->deadline(n->node);
    lab_note_losses(lab, n);
    lab_congestion_look(lab, n);
    lab_planes_look(lab, n);
}

void
lab_node_event(struct lab *lab, struct lab_node *n)
{
    note_event(lab, n);
    lab_event_look(lab, n, false, false);
}

void
lab_node_timer(struct lab *lab, struct lab_node *n)
{
    n->class->timer(n->node, lab->fabric.now);
    note_event(lab, n);
    lab_event_look(lab, n, true, false);
}

uint64_t
lab_node_drops(const struct lab_node *n, enum drop_reason why)
{
    return n->drops[why] + (n->node ? n->class->drops(n->node)[why] : 0);
}

/* Frames. */

void
lab_trace_frame(const struct lab *lab, unsigned station, const struct parsed *h,
                const uint8_t *frame)
{
    if (!lab->trace || !h->bth_ofs) {
        return;
    }
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    const char *name = h->opcode == ROCE_CNP ? "CNP" : roce_opcode_info(h->opcode)->name;
    fprintf(stderr, "%10" PRIu64 " %s sends: %s psn %06x qp %x%s", lab->fabric.now,
            lab_station_name(lab, station), name ? name : "?", be24_get(bth->psn),
            be24_get(bth->dest_qp), bth->ack_req & BTH_ACK_REQ ? " ackreq" : "");
    if (h->opcode == RC_ACK) {
        fprintf(stderr, " syndrome %02x", ((const struct aeth *) (bth + 1))->syndrome);
    }
    fputc('\n', stderr);
}

/* Has this frame, which came to a node, been for the oracle? */
static bool
oracle_takes(struct lab *lab, struct fabric_end to, const uint8_t *frame, size_t len)
{
    struct parsed h;

    if (to.station == lab->agent || parse_frame(frame, (uint32_t) len, &h) || !h.bth_ofs) {
        return false;
    }
    const struct bth *bth = (const void *) (frame + h.bth_ofs);
    if (h.opcode != RC_ACK) {
        lab_oracle_down(lab, bth_psn(bth));
        return false;
    }
    lab_oracle_look(lab, ((const struct aeth *) (bth + 1))->syndrome, bth_psn(bth));
    return true;
}

static void
deliver_to_node(struct lab *lab, struct fabric_end to, const uint8_t *frame, size_t len)
{
    struct lab_node *n = &lab->nodes[to.station];
    struct lab_response response = {.valid = false};
    struct parsed h;

    if (!n->node) {
        lab->fabric.last_loss = lab->fabric.now;
        return;
    }
    if (lab->oracle && oracle_takes(lab, to, frame, len)) {
        return;
    }
    struct packet *p = packet_from_bytes(lab->pool, frame, len);
    LAB_REQUIRE(lab, p, "the pool is empty");
    bool attackable = false;
    if (!parse_frame(frame, (uint32_t) len, &h) && h.bth_ofs) {
        attackable = lab_data_before(n, to, frame, len, &h);
        lab_event_before(lab, n, frame, &h, &response);
        lab_congestion_came(n, frame, &h);
    }
    uint64_t before = n->n_out;
    n->class->input(n->node, to.port, p, lab->fabric.now);
    note_event(lab, n);
    lab_event_after(lab, n, &response);
    /* A copy for each, a response, and what waited for a neighbour. */
    LAB_REQUIRE(lab, n->n_out - before <= n->n_outputs + 1 + NEIGH_QUEUE_MAX,
                "packets multiply at %s", n->plan->name);
    if (attackable) {
        lab_data_after(n, to, frame, len);
    }
}

void
lab_deliver(void *lab_, struct fabric_end to, const uint8_t *frame, size_t len)
{
    struct lab *lab = lab_;
    unsigned source = lab_source_station(lab);
    struct parsed h;

    if (to.station < source) {
        deliver_to_node(lab, to, frame, len);
        return;
    }
    if (parse_frame(frame, (uint32_t) len, &h)) {
        h.bth_ofs = 0;
    }
    lab_congestion_delivered(lab, to.station, frame, &h);
    if (lab_flow_input(lab, to.station, frame, len, &h) || to.station > source + lab->n) {
        return;
    }
    struct rc_endpoint *ep =
        to.station == source ? lab->source : lab->receivers[to.station - source - 1].endpoint;
    if (to.station > source && lab_set_has(&lab->silent, to.station - source - 1)) {
        return;
    }
    if (h.bth_ofs && h.opcode != ROCE_CNP) {
        lab_check_delivered(lab, to.station, frame, &h);
    }
    rc_input(ep, frame + sizeof(struct eth_hdr), len - sizeof(struct eth_hdr), lab->fabric.now);
    lab_check_accepted(lab, to.station, ep);
}

void
lab_host_send(struct lab *lab, unsigned station, const uint8_t *ip, size_t len)
{
    struct fabric_end from = {station, 0};
    struct fabric_end to = fabric_peer(&lab->fabric, from);
    uint8_t frame[PACKET_ROOM] = {0};
    struct eth_hdr *eth = (struct eth_hdr *) frame;
    struct parsed h;

    node_port_mac(lab->nodes[to.station].base.id, to.port, eth->dst);
    memcpy(eth->src, (uint8_t[]){0x02, 0xee, 0, 0, (uint8_t) (station >> 8), (uint8_t) station},
           sizeof eth->src);
    eth->type = be16_put(ETH_TYPE_IP6);
    memcpy(eth + 1, ip, len);
    LAB_REQUIRE(lab, !parse_frame(frame, (uint32_t) (len + sizeof *eth), &h),
                "an endpoint's packet");
    lab_trace_frame(lab, station, &h, frame);
    if (station == lab_source_station(lab)) {
        const struct bth *bth = (const void *) (frame + h.bth_ofs);
        lab->n_sent++;
        lab->n_asked += (bth->ack_req & BTH_ACK_REQ) != 0;
        if (!bth_psn(bth).v && !lab->wrapped[lab->epoch]) {
            lab->wrapped[lab->epoch] = true;
            lab->n_seen[LAB_SAW_wrap]++;
        }
    } else if (lab_set_has(&lab->silent, station - lab_source_station(lab) - 1)) {
        return;
    }
    if (lab_nic_takes(lab, station, frame, len + sizeof *eth)) {
        return;
    }
    fabric_send(&lab->fabric, from, frame, len + sizeof *eth,
                lab->oracle && station != lab_source_station(lab));
}
