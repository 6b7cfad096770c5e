/* SPDX-License-Identifier: Apache-2.0
 *
 * Behaviours that know no groups: End (RFC 8986 section 4.1) and End.DT6 (4.6).
 *
 * The packet that they make is dispatched like any other, because the next segment or the inner
 * destination may be this node's too.  That ends, because Segments Left, hop limit or length goes
 * down each time.
 */
#include "lib/ecn.h"
#include "lib/icmp6.h"
#include "swedge/swedge.h"

/* Offset of Segments Left in the SRH. */
#define SEGMENTS_LEFT_OFS offsetof(struct srh_hdr, segments_left)

/* An ICMPv6 Parameter Problem about the byte at 'ofs' of the frame. */
static enum drop_reason
param_problem(struct swedge *sw, struct rx *rx, uint8_t code, size_t ofs, enum drop_reason why)
{
    l3_icmp_param_problem(sw->base->l3, rx->p, &rx->h, code, (uint32_t) (ofs - rx->h.ip.ofs),
                          rx->now);
    return why;
}

/* The packet has a new destination.  What is behind its headers may be another node's business. */
static enum drop_reason
dispatch_again(struct swedge *sw, struct rx *rx)
{
    enum drop_reason why = parse_outer(rx->p->data, rx->p->len, &rx->h);

    if (!why) {
        why = swedge_admit(sw, rx);
    }
    return why ? why : swedge_dispatch(sw, rx);
}

/* The path ends here: only ICMPv6 is for an End SID itself (section 4.1.1). */
static enum drop_reason
end_upper_layer(struct swedge *sw, struct rx *rx)
{
    if (rx->h.ip.proto == IP6_NH_ICMPV6) {
        return l3_local_input(sw->base->l3, rx->port, rx->p, &rx->h, rx->now);
    }
    return param_problem(sw, rx, ICMP6_PARAMETER_SR_UPPER, rx->h.ip.l4_ofs, DROP_sid_upper);
}

enum drop_reason
end_input(struct swedge *sw, struct rx *rx)
{
    struct ip6_hdr_wire *ip = rx_ip(rx);

    if (!rx->h.srh_ofs || !rx->h.segments_left) {
        return end_upper_layer(sw, rx);
    }
    if (ip->hlim <= 1) {
        l3_icmp_time_exceeded(sw->base->l3, rx->p, &rx->h, rx->now);
        return DROP_hop_limit;
    }
    struct srh_hdr *srh = rx_at(rx, rx->h.srh_ofs);
    const struct in6_addr *segments = (const struct in6_addr *) (srh + 1);
    srh->segments_left--;
    ip->dst = segments[srh->segments_left];
    if (sid_table_lookup(&sw->base->sids, &ip->dst) || l3_is_local(sw->base->l3, &ip->dst)) {
        ip->hlim--; /* otherwise forwarding does that. */
    }
    TRACE(&sw->base->tracer, "End: next segment %s, Segments Left %u", TRACE_ADDR(&ip->dst),
          srh->segments_left);
    return dispatch_again(sw, rx);
}

enum drop_reason
end_dt6_input(struct swedge *sw, struct rx *rx)
{
    if (rx->h.srh_ofs && rx->h.segments_left) {
        return param_problem(sw, rx, ICMP6_PARAMETER_FIELD, rx->h.srh_ofs + SEGMENTS_LEFT_OFS,
                             DROP_sid_segments_left);
    }
    if (!rx->h.inner.ofs) {
        return param_problem(sw, rx, ICMP6_PARAMETER_SR_UPPER, rx->h.ip.l4_ofs, DROP_sid_upper);
    }
    struct ip6_hdr_wire *inner = rx_at(rx, rx->h.inner.ofs);
    uint8_t tc;
    if (!ecn_decap(ip6_tc(rx_ip(rx)), ip6_tc(inner), &tc)) {
        return DROP_ecn_ce;
    }
    ip6_set_vtf(inner, tc, ip6_flow_label(inner));
    TRACE(&sw->base->tracer, "End.DT6: inner packet to %s", TRACE_ADDR(&inner->dst));

    /* The link's header moves in front of the inner packet. */
    struct eth_hdr eth = *(const struct eth_hdr *) rx->p->data;
    packet_pull(rx->p, rx->h.inner.ofs);
    *(struct eth_hdr *) packet_push(rx->p, sizeof eth) = eth;
    return dispatch_again(sw, rx);
}
