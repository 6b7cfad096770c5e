/* SPDX-License-Identifier: Apache-2.0
 *
 * A group's packet on its way down.
 *
 * A node with other nodes below it takes the packet by End.Replicate (RFC 9524).  A node with
 * receivers only takes it by End.MT (draft-li section 6, completed as in docs/draft-notes.md).
 * At edges a multicast group address is another name for the SID of End.MT; mcast.c forwards
 * such packets.
 *
 * Theory of operation
 * -------------------
 * Steps in order: segment, inner packet, group, authenticity, order of PSNs, copies for
 * receivers (end-mt.c), copies for nodes (replicate.c).  All checks come before
 * the first copy, and the reverse-path machine hears of a PSN before anybody can
 * answer it.
 *
 * A node with both nodes and receivers below it (RFC 9524: bud) is reached by its replication
 * SID, and also does what End.MT does.
 */
#include "lib/icrc.h"
#include "lib/roce.h"
#include "swedge/swedge.h"

/* RFC 8754 and draft-li 6.2, S01 to S03 and S13 to S15.  No ICMPv6 error may come from here: each
 * copy of a packet would raise one (RFC 9524 2.2.3).
 *
 * With Segments Left 1, S02 makes it 0, and S03 makes Segment List entry 0, the Proxy, the
 * destination.  With more, some SIDs would never be visited: what comes out of End.MT has no
 * SRH. */
static enum drop_reason
check_segment(const struct rx *rx)
{
    if (!rx->h.srh_ofs) {
        return DROP_mt_no_srh;
    }
    if (rx->h.segments_left != 1) {
        return DROP_mt_segments_left;
    }
    return rx_ip(rx)->hlim <= 1 ? DROP_hop_limit : DROP_none;
}

/* An option before or behind the SRH may stop the packet.  Its ICMPv6 error is the exception to the
 * rule above. */
static enum drop_reason
check_options(const struct swedge *sw, const struct rx *rx)
{
    return rx->h.ip.n_ext > 1 ? l3_check_options(sw->base->l3, rx->p, &rx->h, rx->now) : DROP_none;
}

/* The inner packet must be one request to a Proxy that may be copied, and nothing else.  Segment
 * List entry 0, which S03 would make the destination, must name the same Proxy. */
static enum drop_reason
check_inner(const struct rx *rx, struct original *o)
{
    const struct parsed *h = &rx->h;

    if (!h->inner.ofs || !h->bth_ofs || h->inner.n_ext
        || h->icrc_ofs + ROCE_ICRC_LEN != h->inner.end || h->inner.end != h->ip.end) {
        return DROP_mt_inner;
    }
    o->op = roce_opcode_info(h->opcode);
    if (!(o->op->flags & ROCE_F_MULTICAST)) {
        return DROP_opcode;
    }
    o->ip = rx_at(rx, h->inner.ofs);
    const struct in6_addr *context = rx_at(rx, (uint16_t) (h->srh_ofs + sizeof(struct srh_hdr)));
    return memcmp(context, &o->ip->dst, sizeof *context) ? DROP_mt_context : DROP_none;
}

/* Must the ICRC be good before this packet's PSN counts as sent, or receivers join with it?  *jump:
 * the PSN is a suspicious jump. */
static bool
must_verify(const struct swedge *sw, const struct original *o, bool *jump)
{
    *jump =
        o->tree->config.n_branches && reverse_jump_suspicious(o->tree->aggregate->reverse, o->psn);
    return *jump || sw->verify_always || o->admits
           || reverse_confirms_alone(o->tree->aggregate->reverse);
}

/* A node gets a group's packets from the source agent, and by one address.  By another address a
 * packet would miss some of those below who are to have it. */
static enum drop_reason
check_arrival(const struct tree_config *c, const struct ip6_hdr_wire *outer, enum arrival by)
{
    bool end_mt =
        !tree_mode(c->mode)->addressed_to_group && IN6_IS_ADDR_UNSPECIFIED(&c->replication_sid);

    if (by == BY_END_MT && !end_mt) {
        return DROP_mt_not_planned;
    }
    if (by == BY_REPLICATE && memcmp(&c->replication_sid, &outer->dst, sizeof outer->dst)) {
        return DROP_rs_unknown;
    }
    if (by == BY_MCAST && memcmp(&c->mcast_group, &outer->dst, sizeof outer->dst)) {
        return DROP_mcast_unknown;
    }
    return memcmp(&c->outer_source, &outer->src, sizeof outer->src) ? DROP_outer_source : DROP_none;
}

static enum drop_reason
check_group(const struct swedge *sw, const struct rx *rx, enum arrival by, struct original *o)
{
    const struct bth *bth = rx_at(rx, rx->h.bth_ofs);
    enum drop_reason why;
    bool jump;

    o->tree = tree_find(sw, &o->ip->dst, be24_get(bth->dest_qp), &why);
    if (!o->tree) {
        return why;
    }
    const struct tree_config *c = &o->tree->config;
    if ((why = check_arrival(c, rx_ip(rx), by))) {
        return why;
    }
    if (memcmp(&o->ip->src, &c->source, sizeof o->ip->src)) {
        return DROP_inner_source;
    }
    if (o->op->flags & ROCE_F_RETH) {
        const struct reth *reth = rx_at(rx, rx->h.ext_ofs);
        o->va = be64_get(reth->va);
        o->dma_len = be32_get(reth->dma_len);
        if (o->dma_len && be32_get(reth->rkey) != c->designated_rkey) {
            return DROP_rkey;
        }
    }
    o->psn = bth_psn(bth);
    o->admits =
        o->op->flags & ROCE_F_START && reverse_may_admit(o->tree->aggregate->reverse, o->psn);
    if (must_verify(sw, o, &jump)
        && !icrc_ok((const uint8_t *) o->ip, (size_t) (rx->h.icrc_ofs - rx->h.inner.ofs))) {
        return jump ? DROP_psn_jump : DROP_icrc;
    }
    o->after_qpn =
        (uint16_t) (rx->h.icrc_ofs - (rx->h.bth_ofs + offsetof(struct bth, dest_qp) + 3));
    o->head_len = (uint16_t) (rx->h.payload_ofs - rx->h.inner.ofs);
    return DROP_none;
}

/* A node with receivers verifies who made the SRH, or the packet, before it uses the TLVs or lets the
 * PSN move H.  A node without receivers passes the SRH on as it is. */
static enum drop_reason
check_auth(const struct swedge *sw, const struct rx *rx, const struct tree *t)
{
    if (!t->n_receivers || !t->config.auth.tlvs) {
        return DROP_none;
    }
    struct auth_result r = auth_verify(t->auth, rx->p->data, &rx->h, rx->now);

    TRACE(&sw->base->tracer, "group %s epoch %u: SRH %s, key %u", t->config.group, t->config.epoch,
          r.why      ? drop_help(r.why)
          : r.cached ? "is one that was verified before"
                     : "verified",
          r.key);
    return r.why;
}

enum drop_reason
group_input(struct swedge *sw, struct rx *rx, enum arrival by)
{
    struct original o = {0};
    enum drop_reason why, to_receivers;

    if ((why = check_segment(rx)) || (why = check_options(sw, rx)) || (why = check_inner(rx, &o))
        || (why = check_group(sw, rx, by, &o)) || (why = check_auth(sw, rx, o.tree))) {
        return why;
    }
    bool more = by != BY_END_MT && o.tree->config.n_outer_da; /* other nodes get it too. */
    bool to_nodes = more && by == BY_REPLICATE;
    to_receivers = o.tree->n_receivers ? check_receivers(rx, &o) : DROP_none;
    if (to_receivers && !to_nodes) {
        return to_receivers;
    }
    TRACE(&sw->base->tracer, "group %s epoch %u: %s, PSN %u", o.tree->config.group,
          o.tree->config.epoch, o.op->name, o.psn.v);
    rx->p->len = rx->h.inner.end; /* without Ethernet padding. */

    const struct bth *bth = rx_at(rx, rx->h.bth_ofs);
    struct reverse_out out =
        reverse_down(o.tree->aggregate->reverse, o.psn, bth->ack_req & BTH_ACK_REQ, rx->now);
    o.tree->n_packets++;
    if (o.admits) {
        reverse_admit(o.tree->aggregate->reverse);
    }
    if (!to_receivers && (o.tree->n_receivers || !to_nodes)) {
        to_receivers = copy_to_receivers(sw, rx, &o, !more);
    }
    if (to_nodes) {
        node_count_drop(sw->base, to_receivers);
    }
    why = to_nodes ? copy_to_nodes(sw, rx, &o) : to_receivers;
    if (!out.send) {
        out = reverse_passed(o.tree->aggregate->reverse, rx->now);
    }
    reverse_path_send(sw, o.tree, &out, rx->now);
    return why;
}
