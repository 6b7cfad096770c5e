/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold in a lab.
 */
#include <inttypes.h>
#include <string.h>

#include "lib/icrc.h"
#include "lib/roce.h"
#include "tests/model/lab.h"


/* How long the source may have to do with a packet that got lost: a timeout and
 * what nodes wait before they repeat a response.  After a restart a packet may be
 * dropped because the node's neighbour is asked for, and asked for again a second later. */
#define LOSS_USEC(LAB) (30000 + (LAB)->timeout_usec)
#define RESTART_USEC   1500000

static const struct ip6_hdr_wire *
ip_at(const uint8_t *frame, const struct parsed_ip6 *ip)
{
    return (const void *) (frame + ip->ofs);
}

/* What makes RNR NAKs go up: each branch's first one since the last copy, and one that asks for
 * more time; and those that nobody asked for (R14). */
#define MAX_RNRS(N_BRANCHES) (2 * (N_BRANCHES) + 6)

static void
check_rnrs(const struct lab *lab, struct lab_node *n, const struct bth *bth, unsigned epoch)
{
    const struct aeth *aeth = (const void *) (bth + 1);
    struct lab_set counted = n->counted[epoch];

    if (aeth_class(aeth->syndrome) != AETH_CLASS_RNR) {
        return;
    }
    n->n_rnrs = psn_eq(n->rnr_psn, bth_psn(bth)) ? n->n_rnrs + 1 : 1;
    n->rnr_psn = bth_psn(bth);
    LAB_REQUIRE(lab, n->n_rnrs <= MAX_RNRS(lab_set_count(&counted)),
                "%s says %u RNR NAKs of %06x, and makes no copy", n->plan->name, n->n_rnrs,
                n->rnr_psn.v);
}

/* A response on its way: did all receivers that it speaks for confirm what it
 * says, and is it not less than what the node said before?  One that was spoilt on the way is
 * nobody's word. */
static void
check_response(struct lab *lab, struct lab_node *n, const uint8_t *frame, const struct parsed *h)
{
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    const struct aeth *aeth = (const void *) (bth + 1);
    const struct parsed_ip6 *ip = parsed_innermost(h);
    unsigned epoch = be24_get(bth->dest_qp);
    bool is_ack = aeth_class(aeth->syndrome) == AETH_CLASS_ACK;
    psn_t una = psn_add(bth_psn(bth), is_ack);
    bool own = true; /* made by 'n'. */
    /* The root's, to the source, or in a tunnel to its agent. */
    bool is_root_s = !h->inner.ofs || epoch - lab_source_qpn(0) < LAB_N_EPOCHS;
    bool is_made = h->inner.ofs && !memcmp(&ip_at(frame, &h->ip)->src, &n->base.address, 16)
                   && !lab_comes_again(n, ip_at(frame, &h->ip));
    struct lab_set counted = {.words = {0}};

    if (memcmp(&ip_at(frame, ip)->src, &lab_proxy, sizeof lab_proxy)
        || !icrc_ok(frame + ip->ofs, (size_t) (h->icrc_ofs - ip->ofs))) {
        return;
    }
    if (h->inner.ofs && !is_made) {
        return; /* another's, passing through. */
    }
    if (is_root_s) {
        epoch -= lab_source_qpn(0);
        if (epoch > lab->epoch && lab->faults & LAB_FAULT_SPOIL) {
            return; /* Its outer destination was spoilt into that of End.DT6. */
        }
        LAB_REQUIRE(lab, epoch <= lab->epoch, "response of epoch %u", epoch);
        counted = lab_counted(lab, epoch);
        own = lab_is_root(n, epoch);
    } else {
        epoch -= lab_designated_qpn(0);
        LAB_REQUIRE(lab, epoch <= lab->epoch, "response of epoch %u", epoch);
        counted = n->counted[epoch];
    }
    LAB_REQUIRE(lab, !is_made || ip_at(frame, &h->ip)->hlim == LAB_HOP_LIMIT, "%s to its parent",
                n->plan->name);
    counted = lab_set_without(&counted, &lab->pruned);
    LAB_SET_FOR_EACH (i, &counted) {
        LAB_REQUIRE(lab, psn_cmp(una, lab_confirmed_by(lab, epoch, i)) <= 0,
                    "%s says %06x, r%u confirmed up to %06x", n->plan->name, una.v, i + 1,
                    lab_confirmed_by(lab, epoch, i).v);
    }
    if (own) {
        check_rnrs(lab, n, bth, epoch);
        /* What waited for a plane's neighbour leaves behind what went by another plane. */
        bool late = lab->n_planes && lab->faults & (LAB_FAULT_RESTART | LAB_FAULT_PLANE);
        LAB_REQUIRE(lab, late || !n->said[epoch].known || psn_cmp(una, n->said[epoch].una) >= 0,
                    "%s says %06x, after %06x", n->plan->name, una.v, n->said[epoch].una.v);
        n->said[epoch].known = lab->fabric.now >= n->said[epoch].from;
        n->said[epoch].una = una;
    }
}

/* A question (R16) is a WRITE of nothing that no source sends. */
static bool
is_question(const uint8_t *frame, const struct parsed *h)
{
    const struct reth *reth = (const void *) (frame + h->ext_ofs);

    return !h->inner.ofs && h->opcode == RC_WRITE_ONLY && !be32_get(reth->dma_len)
           && !be32_get(reth->rkey);
}

/* Nobody who is asked may execute the question: it has that PSN. */
static void
check_question(const struct lab *lab, const struct lab_node *n, const uint8_t *frame,
               const struct parsed *h)
{
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    struct in6_addr dst;

    memcpy(&dst, &ip_at(frame, parsed_innermost(h))->dst, sizeof dst);
    uint32_t number = lab_receiver_number(&dst);
    LAB_REQUIRE(lab, number && bth->ack_req & BTH_ACK_REQ, "%s asks nobody", n->plan->name);
    for (unsigned epoch = 0; epoch <= lab->epoch; epoch++) {
        const struct lab_receiver *r = &lab->receivers[number - 1];
        bool of_epoch =
            be24_get(bth->dest_qp) == lab_receiver_qpn(r->made_in[epoch], number - 1) && !r->asked;
        LAB_REQUIRE(lab,
                    !of_epoch || psn_cmp(bth_psn(bth), lab_expected_by(lab, epoch, number - 1)) < 0,
                    "%s asks r%u with %06x", n->plan->name, number, bth_psn(bth).v);
    }
}

/* With the filter a copy is for somebody who has not confirmed the PSN, as far as the node
 * knows. */
static void
check_filter(const struct lab *lab, const struct lab_node *n, const uint8_t *frame,
             const struct parsed *h)
{
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    struct in6_addr dst;
    memcpy(&dst, &ip_at(frame, h->inner.ofs ? &h->ip : parsed_innermost(h))->dst, sizeof dst);
    uint32_t qpn = be24_get(bth->dest_qp);
    uint32_t id = h->inner.ofs ? BRANCH_ID_NODE(node_id_of(&dst)) : lab_receiver_number(&dst);

    if (!lab->filter || lab->faults & LAB_FAULT_RESTART || n->rated) {
        return; /* What waits for a neighbour, or in a queue, may be confirmed meanwhile. */
    }
    if (n->in_front || ((lab->via[0] || lab->n_planes) && n == &lab->nodes[lab->agent])) {
        return; /* What is on its path to the root is addressed to a node on the way. */
    }
    for (size_t i = 0; i < n->class->n_trees(n->node); i++) {
        struct reverse_branch_info info;
        struct tree_info t;
        const struct lab_receiver *r = h->inner.ofs || !id ? NULL : &lab->receivers[id - 1];

        n->class->tree(n->node, i, &t);
        unsigned epoch = t.config->designated_qpn - lab_designated_qpn(0);
        bool of_tree = h->inner.ofs ? qpn == t.config->designated_qpn
                                    : r && qpn == lab_receiver_qpn(r->made_in[epoch], id - 1);
        int32_t shift = r ? lab_shift(r, epoch) : 0;
        LAB_REQUIRE(lab,
                    !of_tree || !n->class->branch(n->node, i, id, &info) || !info.anchored
                        || psn_cmp(psn_add(bth_psn(bth), -shift), info.una) >= 0,
                    "%s sends %06x to branch %x, which has confirmed it", n->plan->name,
                    bth_psn(bth).v, id);
    }
}

void
lab_check_sent(struct lab *lab, struct lab_node *n, const uint8_t *frame, const struct parsed *h)
{
    lab_note_joins(lab);
    lab_note_losses(lab, n);
    if (h->bth_ofs && h->opcode == RC_ACK) {
        check_response(lab, n, frame, h);
        return;
    }
    if (is_question(frame, h)) {
        check_question(lab, n, frame, h);
        return;
    }
    n->n_requests_out++;
    if (psn_eq(bth_psn((const void *) (frame + h->bth_ofs)), n->rnr_psn)) {
        n->n_rnrs = 0;
    }
    check_filter(lab, n, frame, h);
    /* Nor what waited for a neighbour of a node that was started again. */
    if (!h->inner.ofs && !(lab->faults & LAB_FAULT_RESTART)) {
        LAB_SET_FOR_EACH (i, &n->pruned) {
            struct in6_addr address = lab_receiver_address(i);
            LAB_REQUIRE(lab, memcmp(&ip_at(frame, &h->ip)->dst, &address, sizeof address) != 0,
                        "%s sends a copy to r%u, which it pruned", n->plan->name, i + 1);
        }
    }
    LAB_REQUIRE(lab,
                !lab->exact || !h->inner.ofs || n->in_front || lab->n_planes
                    || ip_at(frame, &h->ip)->hlim == LAB_HOP_LIMIT - n->depth,
                "hop limit %u behind %s", ip_at(frame, &h->ip)->hlim, n->plan->name);
}

static const struct lab_node *
root_of(const struct lab *lab)
{
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        if (lab->nodes[i].n_trees && lab->nodes[i].trees[0].root) {
            return &lab->nodes[i];
        }
    }
    return NULL;
}

/* Links that a response of the root takes to the source's agent, by the routes; in a tunnel they do not
 * count. */
static unsigned
hops_to_source(const struct lab *lab)
{
    if (lab->auth & AUTH_DATA) {
        return root_of(lab) != &lab->nodes[lab->agent];
    }
    return plan_hops(&lab->topology, root_of(lab)->plan, lab->nodes[lab->agent].plan);
}

void
lab_check_delivered(struct lab *lab, unsigned station, const uint8_t *frame, const struct parsed *h)
{
    unsigned source = lab_source_station(lab);
    unsigned hlim = LAB_HOP_LIMIT - 2; /* into the tunnel, and out of it. */

    if (station == source) {
        lab->n_responses++;
        hlim = LAB_HOP_LIMIT - (lab->exact ? hops_to_source(lab) : 0);
    } else {
        lab->receivers[station - source - 1].n_requests++;
    }
    LAB_REQUIRE(lab, !lab->exact || ip_at(frame, &h->ip)->hlim == hlim, "hop limit at %s",
                lab_station_name(lab, station));
}

void
lab_check_accepted(struct lab *lab, unsigned station, const struct rc_endpoint *ep)
{
    struct rc_info info;

    if (lab->faults & LAB_FAULT_SPOIL) {
        return;
    }
    rc_get_info(ep, &info);
    LAB_REQUIRE(lab, !info.n_wrong_source, "%s drops what does not come from its peer",
                lab_station_name(lab, station));
}

bool
lab_has_to_have(const struct lab_receiver *r, const struct lab_message *m)
{
    return !r->is_late || (r->joined && psn_cmp(m->last_psn, r->first) >= 0);
}

void
lab_check_completed(struct lab *lab, unsigned message)
{
    const struct lab_message *m = &lab->messages[message];

    lab_note_joins(lab);
    struct lab_set all = lab_counted(lab, lab->epoch);
    struct lab_set counted = lab_set_without(&all, &lab->pruned);

    LAB_REQUIRE(lab, !lab_set_is_empty(&counted), "message %u completed, and nobody counts",
                message);
    LAB_SET_FOR_EACH (i, &counted) {
        if (!lab_has_to_have(&lab->receivers[i], m)) {
            continue;
        }
        LAB_REQUIRE(lab,
                    psn_cmp(lab_confirmed_by(lab, lab->epoch, i), m->last_psn) > 0
                        && !memcmp(lab->receivers[i].memory + m->ofs, lab->data + m->ofs, m->len),
                    "message %u completed, and r%u does not have it", message, i + 1);
    }
}

/* A source fails if and only if a receiver did, and alike. */
static void
check_failure(struct lab *lab)
{
    static const enum rc_status status[] = {RC_WC_REM_INV_REQ, RC_WC_REM_ACCESS, RC_WC_REM_OP};
    bool failed = false;

    for (unsigned i = 0; i < lab->n; i++) {
        struct rc_info info;
        rc_get_info(lab->receivers[i].endpoint, &info);
        failed = failed || info.failed;
    }
    LAB_REQUIRE(lab, !failed || lab->fatal, "a receiver refused a request");
    LAB_REQUIRE(
        lab, lab->failure == (failed ? status[lab->fatal - AETH_NAK_INVALID_REQ] : RC_WC_SUCCESS),
        "the source says %d", lab->failure);
}

/* Faults that explain a drop; what is not listed needs a spoilt frame. */
static const struct {
    enum drop_reason why;
    unsigned faults;
} drop_faults[] = {
    {DROP_pool_empty, 0},
    {DROP_too_long, 0},
    {DROP_no_parent, 0},
    /* An agent that was started again waits for castd's answer, and a link repeats what waits. */
    {DROP_group_closed, LAB_FAULT_DATA},
    /* A node that was started again learns anew what was sent; a forger names what never was; and
     * who has nothing names any. */
    {DROP_psn_not_sent, LAB_FAULT_RESTART | LAB_FAULT_FORGED | LAB_FAULT_JOIN | LAB_FAULT_KEPT},
    /* A solicitation to a node that was down is repeated after a second.  A flow begins at once, also on
     * a plane that nobody was on before; for a neighbour there, and for all of them, so many may wait. */
    {DROP_neigh_queue, LAB_FAULT_RESTART | LAB_FAULT_MODE | LAB_FAULT_CONGESTION | LAB_FAULT_PLANE},
    {DROP_icmp_error, LAB_FAULT_MODE},
    {DROP_no_neighbour, LAB_FAULT_RESTART},
    /* An answer to a Proxy that is none any more at an edge whose last receiver has left. */
    {DROP_no_route, LAB_FAULT_STORM | LAB_FAULT_REMOVE | LAB_FAULT_JOIN | LAB_FAULT_KEPT},
    /* While one node has the change and another has not. */
    {DROP_unknown_branch, LAB_FAULT_STORM | LAB_FAULT_REMOVE | LAB_FAULT_JOIN | LAB_FAULT_KEPT},
    {DROP_not_provisioned, LAB_FAULT_REMOVE | LAB_FAULT_JOIN},
    {DROP_mt_no_tlv, LAB_FAULT_REMOVE | LAB_FAULT_JOIN},
    {DROP_group_unknown, LAB_FAULT_REMOVE | LAB_FAULT_EPOCH | LAB_FAULT_JOIN},
    {DROP_rs_unknown, LAB_FAULT_REMOVE | LAB_FAULT_EPOCH | LAB_FAULT_JOIN},
    {DROP_mcast_unknown, LAB_FAULT_REMOVE | LAB_FAULT_EPOCH | LAB_FAULT_JOIN},
    {DROP_stale_epoch, LAB_FAULT_EPOCH},
    {DROP_member_lost, LAB_FAULT_LOSS},
    {DROP_cnp, LAB_FAULT_CONGESTION},
    {DROP_cnp_soon, LAB_FAULT_CONGESTION},
    {DROP_egress_full, LAB_FAULT_CONGESTION},
    {DROP_egress_red, LAB_FAULT_CONGESTION},
    {DROP_fast_cnp, LAB_FAULT_CONGESTION},
    {DROP_fast_cnp_soon, LAB_FAULT_CONGESTION},
    /* A flow of no group is not known to an agent that leaves rates to NICs. */
    {DROP_fast_cnp_flow, LAB_FAULT_CONGESTION},
    {DROP_source_guard, LAB_FAULT_STORM},
    {DROP_auth_missing, LAB_FAULT_DATA},
    {DROP_auth_bad, LAB_FAULT_DATA},
    {DROP_auth_replay, LAB_FAULT_DATA},
};

static void
check_drops(struct lab *lab, const struct lab_node *n)
{
    for (enum drop_reason why = DROP_none + 1; why < N_DROP_REASONS; why++) {
        unsigned faults = LAB_FAULT_SPOIL;
        for (size_t i = 0; i < sizeof drop_faults / sizeof *drop_faults; i++) {
            if (drop_faults[i].why == why) {
                faults = drop_faults[i].faults | (drop_faults[i].faults ? LAB_FAULT_SPOIL : 0);
            }
        }
        LAB_REQUIRE(lab, !lab_node_drops(n, why) || lab->faults & faults,
                    "%s dropped %" PRIu64 " packets: %s", n->plan->name, lab_node_drops(n, why),
                    drop_name(why));
    }
}

/* Copies of one request that a node makes. */
static unsigned
copies_at(const struct lab_node *n)
{
    unsigned copies = 0;
    for (size_t i = 0; n->n_trees && i < n->trees[0].n_branches; i++) {
        copies += n->trees[0].branches[i].kind == BRANCH_RECEIVER;
    }
    return copies + (n->n_trees ? (unsigned) n->trees[0].n_outer_da : 0) + lab_node_n_crossing(n);
}

/* With nothing in the way each receiver gets each packet once, and the source one
 * response for each that asks for it. */
static void
check_counts(struct lab *lab)
{
    LAB_REQUIRE(lab, lab->n_sent == lab->n_packets, "%" PRIu64 " packets sent", lab->n_sent);
    LAB_REQUIRE(lab, lab->n_responses == lab->n_asked, "%" PRIu64 " responses to %" PRIu64,
                lab->n_responses, lab->n_asked);
    for (unsigned i = 0; i < lab->n; i++) {
        LAB_REQUIRE(lab, lab->receivers[i].n_requests == lab->n_packets,
                    "r%u got %" PRIu64 " packets", i + 1, lab->receivers[i].n_requests);
    }
    for (unsigned i = 0; i < lab->n_nodes && !lab->n_planes; i++) {
        const struct lab_node *n = &lab->nodes[i];
        LAB_REQUIRE(lab, n->n_requests_out == copies_at(n) * (uint64_t) lab->n_packets,
                    "%s sent %" PRIu64 " requests", n->plan->name, n->n_requests_out);
    }
}

/* Does the source wait for a response (rc-endpoint.h) that may have got lost?  If
 * not, a node has swallowed it. */
static bool
is_stuck_alone(const struct lab *lab)
{
    return (lab->fabric.last_loss && lab->fabric.last_loss + LOSS_USEC(lab) > lab->over_since)
           || (lab->last_restart && lab->last_restart + RESTART_USEC > lab->over_since);
}

void
lab_check_end(struct lab *lab)
{
    struct rc_info info;

    rc_get_info(lab->source, &info);
    lab_data_check_end(lab);
    LAB_REQUIRE(lab, !info.stuck || is_stuck_alone(lab), "no response was lost");
    (lab->liveness_msec ? lab_loss_check_end : check_failure)(lab);
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        const struct lab_node *n = &lab->nodes[i];
        check_drops(lab, n);
        /* Links repeat a few of a hundred. */
        LAB_REQUIRE(lab, n->n_requests_out <= 2 * lab->n_sent * n->n_outputs + 200,
                    "%s sent %" PRIu64 " requests of %" PRIu64, n->plan->name, n->n_requests_out,
                    lab->n_sent);
    }
    if (lab->exact) {
        check_counts(lab);
    }
}
