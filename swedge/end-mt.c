/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of a group's packet for the receivers of this edge (draft-li 6.2, S05 to S12).  Each
 * receiver that a TLV names gets one plain RoCEv2 packet.  In a group whose packets have no
 * TLVs, each provisioned receiver does (section 8).
 *
 * A copy differs from the original in IPv6 SA, DA, hop limit, ECN, UDP checksum (0), BTH
 * DestQP, where there is a RETH rkey and VA, and, for a receiver that joined later, PSN.  The SA is
 * the Proxy: an unmodified endpoint drops anything else.  AckReq is lib/fanout.c's.
 *
 * The copy's ICRC is the original's plus the CRC of these differences (lib/icrc.h).  So
 * payloads are never read.  What arrived corrupt stays corrupt, so that the receiver drops it.
 *
 * The original met congestion on its way if copies get CE from it.  That counts as a CNP of each
 * receiver, and so does CE that a copy gets in the queue of its port: swedge_ce_left().
 *
 * The payload is shared: a copy has private headers and ICRC and refers to the
 * original's buffer for the rest.  The last receiver gets the original itself,
 * unless that is still to go to other nodes.
 */
#include "lib/defect.h"
#include "lib/ecn.h"
#include "lib/fanout.h"
#include "lib/icrc.h"
#include "lib/roce.h"
#include "swedge/swedge.h"

/* Rewrites a packet for branch 'b'.  'ip_bytes' is its inner IPv6 header; headers are contiguous up
 * to the payload.  'icrc' is where its ICRC is. */
static void
rewrite(const struct original *o, const struct branch *b, uint8_t *ip_bytes, uint8_t *icrc)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) ip_bytes;
    struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);
    struct bth *bth = (struct bth *) (udp + 1);
    uint32_t change, psn_diff = 0; /* the latter of AckReq and PSN, which follow DestQP. */

    ip6_set_vtf(ip, o->tc, ip6_flow_label(ip));
    ip->hlim--;
    if (!DEFECT(H1)) {
        ip->src = o->tree->config.proxy;
    }
    ip->dst = b->config->address;
    udp->csum = be16_put(0);
    bth->dest_qp = be24_put(b->config->qpn);
    if (b->shift) {
        psn_t psn = psn_add(o->psn, b->shift);

        bth_set_psn(bth, psn);
        psn_diff = icrc_word(o->psn.v ^ psn.v);
    }
    if (o->op->flags & ROCE_F_RETH && o->dma_len) {
        struct reth *reth = (struct reth *) (bth + 1);
        uint64_t va = o->va + b->config->va;
        const uint8_t *after_rkey = (const uint8_t *) &reth->dma_len;

        reth->va = be64_put(va);
        reth->rkey = be32_put(b->config->rkey);
        change = b->icrc_diff_reth ^ icrc_diff_be64(o->va ^ va, sizeof reth->rkey);
        change = icrc_shift(change, o->after_qpn - (size_t) (after_rkey - &bth->ack_req));
        change ^= psn_diff ? icrc_shift(psn_diff, o->after_qpn) : 0;
    } else {
        change = icrc_shift(b->icrc_diff ^ psn_diff, o->after_qpn);
    }
    icrc_store(icrc, icrc_load(icrc) ^ change);
}

/* Sends receiver 'branch' its copy 'p', which begins with the inner IPv6 header. */
static enum drop_reason
send_copy(const struct fanout *f, void *branch, struct packet *p, uint8_t *icrc)
{
    struct branch *b = branch;
    const struct original *o = f->aux;

    if (!b->joined) {
        /* The copy that it joins by, or one soon after. */
        b->shift = aggregate_shift(o->tree->aggregate, b->config);
        b->joined = true;
    }
    rewrite(f->aux, b, p->data, icrc);
    TRACE(&f->node->tracer, "End.MT: copy to %s, QPN 0x%x", TRACE_ADDR(&b->config->address),
          b->config->qpn);
    p->group_qpn = o->tree->config.designated_qpn;
    p->branch = b->config->id;
    enum drop_reason why = l3_output_next(f->node->l3, p, &b->next, L3_ERRORS_NONE, f->now);

    if (!why && (o->tc & ECN_MASK) == ECN_CE) {
        aggregate_marked(o->tree->aggregate, b->config->id, f->now);
    }
    return why;
}

/* May this branch have a copy?  'r' is its entry in the TLV; NULL: there is no TLV. */
static enum drop_reason
check_branch(const struct original *o, const struct branch *b, const struct mt_receiver *r)
{
    if (!b || b->config->join == BRANCH_ASKED) {
        return DROP_not_provisioned;
    }
    if (r && be24_get(r->qpn) != b->config->qpn) {
        return DROP_qpn_mismatch;
    }
    if (b->copied == o->tree->n_packets) {
        return DROP_mt_repeated;
    }
    if (o->op->flags & ROCE_F_RETH && o->dma_len
        && (o->va > b->config->len || o->dma_len > b->config->len - o->va)) {
        return DROP_mr_range;
    }
    return DROP_none;
}

enum drop_reason
check_receivers(const struct rx *rx, struct original *o)
{
    if (rx->h.routing_ofs) {
        return DROP_routing_header; /* behind the SRH, which ends here. */
    }
    if (o->ip->hlim <= 1) {
        return DROP_hop_limit;
    }
    return ecn_decap(ip6_tc(rx_ip(rx)), ip6_tc(o->ip), &o->tc) ? DROP_none : DROP_ecn_ce;
}

/* Adds a copy for branch 'b', if it may have one. */
static void
add_branch(struct fanout *f, const struct original *o, struct branch *b,
           const struct mt_receiver *r)
{
    enum drop_reason why = check_branch(o, b, r);

    if (why) {
        fanout_leave_out(f, r ? &r->addr : &b->config->address, why);
        return;
    }
    b->copied = o->tree->n_packets;
    fanout_add(f, b->config->id, b, &b->config->address);
}

/* The receiver with this address, or NULL.  It is tried first whether it is the one behind the last
 * that was found, at *next: packets mostly name them in the order of the configuration. */
static struct branch *
next_receiver(const struct tree *t, const struct in6_addr *addr, size_t *next)
{
    struct branch *b = *next < t->config.n_branches ? &t->branches[*next] : NULL;

    if (!b || b->config->kind != BRANCH_RECEIVER
        || memcmp(&b->config->address, addr, sizeof *addr)) {
        b = tree_receiver(t, addr);
    }
    if (b) {
        *next = (size_t) (b - t->branches) + 1;
    }
    return b;
}

enum drop_reason
copy_to_receivers(struct swedge *sw, struct rx *rx, const struct original *o, bool last)
{
    const struct tree_config *c = &o->tree->config;
    unsigned n_named = c->provisioned;
    size_t next = 0;
    struct fanout f = {
        .node = sw->base,
        .reverse = o->tree->aggregate->reverse,
        .what = "End.MT",
        .send = send_copy,
        .aux = o,
        .psn = o->psn,
        .now = rx->now,
        .original = rx->p,
        .takes_original = last,
        .rewrites = true,
        .ofs = rx->h.inner.ofs,
        .head_len = o->head_len,
        .bth_ofs = (uint16_t) (rx->h.bth_ofs - rx->h.inner.ofs),
        .after_qpn = o->after_qpn,
    };

    for (size_t i = 0; c->provisioned && i < c->n_branches; i++) {
        if (c->branches[i].kind == BRANCH_RECEIVER && c->branches[i].join != BRANCH_ASKED) {
            add_branch(&f, o, &o->tree->branches[i], NULL);
        }
    }
    for (uint8_t t = 0; !c->provisioned && t < rx->h.n_mt_tlvs; t++) {
        const struct mt_tlv *tlv = rx_at(rx, rx->h.mt_tlv_ofs[t]);
        const struct mt_receiver *receivers = (const struct mt_receiver *) (tlv + 1);

        if (memcmp(&tlv->edge, &sw->base->address, sizeof tlv->edge)) {
            continue; /* another edge's. */
        }
        n_named += tlv->n_receivers;
        for (uint8_t i = 0; i < tlv->n_receivers; i++) {
            const struct mt_receiver *r = &receivers[i];

            add_branch(&f, o, next_receiver(o->tree, &r->addr, &next), r);
        }
    }
    if (last) {
        rx->p = NULL;
    }
    enum drop_reason why = fanout_end(&f);
    /* As long as all wait nobody is named. */
    bool wait = reverse_confirms_alone(o->tree->aggregate->reverse);
    return n_named || !last || wait ? why : DROP_mt_no_tlv;
}

enum drop_reason
end_mt_input(struct swedge *sw, struct rx *rx)
{
    return group_input(sw, rx, BY_END_MT);
}
