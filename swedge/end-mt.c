/* SPDX-License-Identifier: Apache-2.0
 *
 * Behaviour End.MT (draft-li section 6, completed as in docs/draft-notes.md):
 * one SRv6 packet in, for each receiver that a TLV names for this edge one
 * plain RoCEv2 packet out.
 *
 * Theory of operation
 * -------------------
 * Steps in order: segment, inner packet, group, order of PSNs, copies.  All
 * checks come before the first copy, and the reverse-path machine hears of a
 * PSN before any receiver can answer it.
 *
 * A copy differs from the original in IPv6 SA (the Proxy: an unmodified
 * endpoint drops anything else), DA, hop limit, ECN, UDP checksum (0), BTH
 * DestQP and, where there is a RETH, rkey and VA.  Its ICRC is the original's
 * plus the CRC of those differences (lib/icrc.h): payloads are never read, and
 * what arrived corrupt stays corrupt, so that the receiver drops it.
 *
 * The payload is shared: a copy has private headers and ICRC and refers to the
 * original's buffer for the rest.  The last receiver gets the original itself.
 */
#include "lib/ecn.h"
#include "lib/icrc.h"
#include "lib/roce.h"
#include "swedge/swedge.h"

/* What is the same for all copies of one packet. */
struct original {
    struct tree *tree;
    struct ip6_hdr_wire *ip; /* inner. */
    const struct roce_opcode_info *op;
    psn_t psn;
    uint64_t va;
    uint32_t dma_len;
    uint8_t tc;         /* of the copies, after RFC 6040. */
    uint16_t after_qpn; /* bytes from behind DestQP to the ICRC. */
    uint16_t head_len;  /* inner headers up to the payload. */
};

static inline void *
at(const struct rx *rx, uint16_t ofs)
{
    return rx->p->data + ofs;
}

/* RFC 8754 and draft-li 6.2, S01 to S04 and S14. */
static enum drop_reason
check_segment(const struct rx *rx)
{
    if (!rx->h.srh_ofs) {
        return DROP_mt_no_srh;
    }
    if (!rx->h.segments_left) {
        return DROP_mt_segments_left;
    }
    const struct ip6_hdr_wire *outer = at(rx, rx->h.ip.ofs);
    return outer->hlim <= 1 ? DROP_hop_limit : DROP_none;
}

/* The inner packet is one request to a Proxy that may be copied, and nothing
 * else; Segment List entry 0, which S03 would make the destination, names the
 * same Proxy. */
static enum drop_reason
check_inner(const struct rx *rx, struct original *o)
{
    const struct parsed *h = &rx->h;

    if (!h->inner.ofs || !h->bth_ofs || h->inner.n_ext
        || h->icrc_ofs + ROCE_ICRC_LEN != h->inner.end) {
        return DROP_mt_inner;
    }
    o->op = roce_opcode_info(h->opcode);
    if (!(o->op->flags & ROCE_F_MULTICAST)) {
        return DROP_opcode;
    }
    o->ip = at(rx, h->inner.ofs);
    if (o->ip->hlim <= 1) {
        return DROP_hop_limit;
    }
    const struct in6_addr *context = at(rx, (uint16_t) (h->srh_ofs + sizeof(struct srh_hdr)));
    if (memcmp(context, &o->ip->dst, sizeof *context)) {
        return DROP_mt_context;
    }
    const struct ip6_hdr_wire *outer = at(rx, h->ip.ofs);
    return ecn_decap(ip6_tc(outer), ip6_tc(o->ip), &o->tc) ? DROP_none : DROP_ecn_ce;
}

static enum drop_reason
check_group(const struct swedge *sw, const struct rx *rx, struct original *o)
{
    const struct bth *bth = at(rx, rx->h.bth_ofs);
    enum drop_reason why;

    o->tree = tree_find(sw, &o->ip->dst, be24_get(bth->dest_qp), &why);
    if (!o->tree) {
        return why;
    }
    if (memcmp(&o->ip->src, &o->tree->config.source, sizeof o->ip->src)) {
        return DROP_inner_source;
    }
    if (o->op->flags & ROCE_F_RETH) {
        const struct reth *reth = at(rx, rx->h.ext_ofs);
        o->va = be64_get(reth->va);
        o->dma_len = be32_get(reth->dma_len);
        if (o->dma_len && be32_get(reth->rkey) != o->tree->config.designated_rkey) {
            return DROP_rkey;
        }
    }
    o->psn = bth_psn(bth);
    bool jump = reverse_jump_suspicious(o->tree->reverse, o->psn);
    if ((jump || sw->verify_always)
        && !icrc_ok((const uint8_t *) o->ip, (size_t) (rx->h.icrc_ofs - rx->h.inner.ofs))) {
        return jump ? DROP_psn_jump : DROP_icrc;
    }
    o->after_qpn =
        (uint16_t) (rx->h.icrc_ofs - (rx->h.bth_ofs + offsetof(struct bth, dest_qp) + 3));
    o->head_len = (uint16_t) (rx->h.payload_ofs - rx->h.inner.ofs);
    return DROP_none;
}

/* Makes the packet whose inner IPv6 header is at 'ip' (headers contiguous up to
 * the payload) the branch's.  'icrc' is where its ICRC is. */
static void
rewrite(const struct original *o, const struct branch *b, uint8_t *ip_bytes, uint8_t *icrc)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) ip_bytes;
    struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);
    struct bth *bth = (struct bth *) (udp + 1);
    uint32_t change = icrc_shift(b->icrc_diff, o->after_qpn);

    ip6_set_vtf(ip, o->tc, ip6_flow_label(ip));
    ip->hlim--;
    ip->src = o->tree->config.proxy;
    ip->dst = b->config.address;
    udp->csum = be16_put(0);
    bth->dest_qp = be24_put(b->config.qpn);
    if (o->op->flags & ROCE_F_RETH && o->dma_len) {
        struct reth *reth = (struct reth *) (bth + 1);
        struct reth old = *reth;
        uint8_t diff[offsetof(struct reth, dma_len)];

        reth->va = be64_put(o->va + b->config.va);
        reth->rkey = be32_put(b->config.rkey);
        for (size_t i = 0; i < sizeof diff; i++) {
            diff[i] = ((const uint8_t *) &old)[i] ^ ((const uint8_t *) reth)[i];
        }
        size_t after_rkey =
            o->after_qpn - (sizeof *bth - offsetof(struct bth, ack_req)) - sizeof diff;
        change ^= icrc_shift(icrc_diff(diff, sizeof diff), after_rkey);
    }
    icrc_store(icrc, icrc_load(icrc) ^ change);
}

/* May this branch have a copy? */
static enum drop_reason
check_branch(const struct original *o, const struct branch *b, const struct mt_receiver *r)
{
    if (!b) {
        return DROP_not_provisioned;
    }
    if (be24_get(r->qpn) != b->config.qpn) {
        return DROP_qpn_mismatch;
    }
    if (b->copied == o->tree->n_packets) {
        return DROP_mt_repeated;
    }
    if (o->op->flags & ROCE_F_RETH && o->dma_len
        && (o->va > b->config.len || o->dma_len > b->config.len - o->va)) {
        return DROP_mr_range;
    }
    return DROP_none;
}

/* A copy for branch 'b'.  The last one is made of the original. */
static enum drop_reason
send_copy(struct swedge *sw, struct rx *rx, const struct original *o, struct branch *b, bool last)
{
    struct packet *p;

    if (last) {
        p = rx->p;
        rx->p = NULL;
        packet_pull(p, rx->h.inner.ofs);
        rewrite(o, b, p->data, p->data + p->len - ROCE_ICRC_LEN);
    } else {
        p = packet_replicate(rx->p, rx->h.inner.ofs, o->head_len, ROCE_ICRC_LEN);
        if (!p) {
            return DROP_pool_empty;
        }
        rewrite(o, b, p->data, p->tail);
    }
    b->n_copies++;
    reverse_copied(o->tree->reverse, b->config.id, o->psn);
    return l3_output(sw->l3, p, L3_ERRORS_NONE, rx->now);
}

/* Draft-li 6.2 S05 to S12: a copy for each receiver in the TLVs of this edge. */
static enum drop_reason
copy_to_receivers(struct swedge *sw, struct rx *rx, const struct original *o)
{
    struct branch *held = NULL; /* found, and sent when the next one is. */
    unsigned n_mine = 0;

    for (uint8_t t = 0; t < rx->h.n_mt_tlvs; t++) {
        const struct mt_tlv *tlv = at(rx, rx->h.mt_tlv_ofs[t]);
        const struct mt_receiver *receivers = (const struct mt_receiver *) (tlv + 1);

        if (memcmp(&tlv->edge, &sw->address, sizeof tlv->edge)) {
            continue; /* another edge's. */
        }
        n_mine++;
        for (uint8_t i = 0; i < tlv->n_receivers; i++) {
            struct branch *b = addr_map_find(o->tree->by_addr, &receivers[i].addr, 0);
            enum drop_reason why = check_branch(o, b, &receivers[i]);

            if (why) {
                swedge_count_drop(sw, why);
                continue;
            }
            if (held) {
                swedge_count_drop(sw, send_copy(sw, rx, o, held, false));
            }
            held = b;
            b->copied = o->tree->n_packets;
        }
    }
    if (held) {
        return send_copy(sw, rx, o, held, true);
    }
    return n_mine ? DROP_none : DROP_mt_no_tlv;
}

static enum drop_reason
end_mt_input(struct swedge *sw, struct rx *rx)
{
    struct original o = {0};
    enum drop_reason why;

    if ((why = check_segment(rx)) || (why = check_inner(rx, &o))
        || (why = check_group(sw, rx, &o))) {
        return why;
    }
    rx->p->len = rx->h.inner.end; /* Ethernet padding is nobody's. */

    const struct bth *bth = at(rx, rx->h.bth_ofs);
    struct reverse_out out =
        reverse_down(o.tree->reverse, o.psn, bth->ack_req & BTH_ACK_REQ, rx->now);
    o.tree->n_packets++;
    why = copy_to_receivers(sw, rx, &o);
    reverse_path_send(sw, o.tree, &out, rx->now);
    return why;
}

const struct behaviour behaviour_end_mt = {"End.MT", end_mt_input};
