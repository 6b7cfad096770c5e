/* SPDX-License-Identifier: Apache-2.0
 *
 * Behaviours that know no groups (RFC 8986 sections 4.1, 4.2, 4.5, 4.6, 4.16, and RFC 9800):
 *
 *     End       the next segment of the SRH, by the routes
 *     End.X     the same, out of the SID's port
 *     End.DT6   takes the inner packet out, and sends that by the routes
 *     End.DX6   the same, out of the SID's port
 *     uN        End with the flavors NEXT-CSID, PSP, USP and USD
 *     uA        End.X with the same
 *
 * uN and uA take their own uSID out of the destination and send the packet on.  If nothing is left
 * behind it they do as End and End.X do: the next segment, if there is one; otherwise the path ends
 * here, and the inner packet goes on without the outer one (USD).  The SRH goes with its last
 * segment (PSP).  USP shows nowhere, since no packet leaves the node with an SRH that it has
 * finished with.
 *
 * A program goes the way that it names, or not at all.  So uN sends to nodes on the other end of a
 * link only, whatever the routes say.
 *
 * The packet that a behaviour makes is dispatched like any other, because the next segment or the
 * inner destination may be this node's too.  That ends, because Segments Left, hop limit or length
 * goes down each time.
 */
#include "lib/ecn.h"
#include "lib/icmp6.h"
#include "lib/node-congestion.h"
#include "lib/prober.h"
#include "lib/usid.h"
#include "swedge/swedge.h"

/* Offset of Segments Left in the SRH. */
#define SEGMENTS_LEFT_OFS offsetof(struct srh_hdr, segments_left)

/* uSIDs of this node that a packet may have: all of a container, and one. */
#define OWN_USIDS_MAX     7

/* An ICMPv6 Parameter Problem about the byte at 'ofs' of the frame. */
static enum drop_reason
param_problem(struct swedge *sw, struct rx *rx, uint8_t code, size_t ofs, enum drop_reason why)
{
    l3_icmp_param_problem(sw->base->l3, rx->p, &rx->h, code, (uint32_t) (ofs - rx->h.ip.ofs),
                          rx->now);
    return why;
}

/* The packet is another one now: may the station that has sent it send that? */
static enum drop_reason
check_again(struct swedge *sw, struct rx *rx)
{
    enum drop_reason why = parse_outer(rx->p->data, rx->p->len, &rx->h);

    return why ? why : node_guard(rx, l3_port(sw->base->l3, rx->port));
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

static void
trace_port(struct swedge *sw, struct rx *rx, const struct port_config *port)
{
    const struct in6_addr *dst = &rx_ip(rx)->dst;
    const char *behaviour = sid_behaviour_name(rx->sid->behaviour);
    const char *name = port ? port->name : "none", *peer = port ? port->peer : "";

    if (address_is_sid(dst)) {
        TRACE(&sw->base->tracer, "%s: next uSID %04x, to port %s (%s)", behaviour, node_id_of(dst),
              name, peer);
    } else {
        TRACE(&sw->base->tracer, "%s: to port %s (%s)", behaviour, name, peer);
    }
}

/* Sends the packet to the node or host on the other end of a port. */
static enum drop_reason
forward_to(struct swedge *sw, struct rx *rx, uint16_t number)
{
    trace_port(sw, rx, l3_port(sw->base->l3, number));
    if (!l3_port_is_up(sw->base->l3, number)) {
        TRACE(&sw->base->tracer, "its link is down");
        return DROP_usid_link_down;
    }
    struct packet *p = rx->p;
    rx->p = NULL;
    return l3_forward_port(sw->base->l3, p, &rx->h, number, rx->now);
}

static bool
hop_is_left(struct swedge *sw, struct rx *rx)
{
    if (rx_ip(rx)->hlim > 1) {
        return true;
    }
    l3_icmp_time_exceeded(sw->base->l3, rx->p, &rx->h, rx->now);
    return false;
}

/*
 * The next segment.
 */

static bool
has_next_segment(const struct rx *rx)
{
    return rx->h.srh_ofs && rx->h.segments_left;
}

static void
remove_srh(struct rx *rx)
{
    const struct srh_hdr *srh = rx_at(rx, rx->h.srh_ofs);
    struct ip6_hdr_wire *ip = rx_ip(rx);
    uint8_t *next_header = &ip->nh;
    uint8_t *header = (uint8_t *) (ip + 1);

    while (header != (const uint8_t *) srh) {
        next_header = header;
        header += (header[1] + 1) * 8;
    }
    *next_header = srh->nh;
    ip->plen = be16_put((uint16_t) (be16_get(ip->plen) - rx->h.srh_len));
    memmove(rx->p->data + rx->h.srh_len, rx->p->data, rx->h.srh_ofs);
    packet_pull(rx->p, rx->h.srh_len);
}

/* The next segment becomes the destination; 'psp': if it is the last one, the SRH is removed. */
static enum drop_reason
to_next_segment(struct swedge *sw, struct rx *rx, bool psp)
{
    struct ip6_hdr_wire *ip = rx_ip(rx);

    if (!hop_is_left(sw, rx)) {
        return DROP_hop_limit;
    }
    struct srh_hdr *srh = rx_at(rx, rx->h.srh_ofs);
    const struct in6_addr *segments = (const struct in6_addr *) (srh + 1);
    srh->segments_left--;
    ip->dst = segments[srh->segments_left];
    TRACE(&sw->base->tracer, "%s: next segment %s, Segments Left %u",
          sid_behaviour_name(rx->sid->behaviour), TRACE_ADDR(&ip->dst), srh->segments_left);
    if (psp && !srh->segments_left) {
        remove_srh(rx);
    }
    return check_again(sw, rx);
}

/* Is the new destination this node's?  Then that is a hop, too, which forwarding does not count. */
static bool
is_own_hop(struct swedge *sw, struct rx *rx)
{
    struct ip6_hdr_wire *ip = rx_ip(rx);
    bool own = swedge_sid(sw, &ip->dst) || l3_is_local(sw->base->l3, &ip->dst);

    ip->hlim -= own;
    return own;
}

/*
 * The end of the path.
 */

/* Only ICMPv6 is for any SID itself (RFC 8986 section 4.1.1). */
static enum drop_reason
upper_layer(struct swedge *sw, struct rx *rx)
{
    if (rx->h.ip.proto == IP6_NH_ICMPV6) {
        return l3_local_input(sw->base->l3, rx->port, rx->p, &rx->h, rx->now);
    }
    return param_problem(sw, rx, ICMP6_PARAMETER_SR_UPPER, rx->h.ip.l4_ofs, DROP_sid_upper);
}

/* Takes the inner packet out.  The link's header moves in front of it. */
static enum drop_reason
unwrap(struct swedge *sw, struct rx *rx)
{
    struct ip6_hdr_wire *inner = rx_at(rx, rx->h.inner.ofs);
    uint8_t tc;

    if (!ecn_decap(ip6_tc(rx_ip(rx)), ip6_tc(inner), &tc)) {
        return DROP_ecn_ce;
    }
    ip6_set_vtf(inner, tc, ip6_flow_label(inner));
    TRACE(&sw->base->tracer, "%s: inner packet to %s", sid_behaviour_name(rx->sid->behaviour),
          TRACE_ADDR(&inner->dst));
    struct eth_hdr eth = *(const struct eth_hdr *) rx->p->data;
    packet_pull(rx->p, rx->h.inner.ofs);
    *(struct eth_hdr *) packet_push(rx->p, sizeof eth) = eth;
    rx->unwrapped = true;
    return check_again(sw, rx);
}

/* For a SID that does nothing but that (RFC 8986 sections 4.5 and 4.6). */
static enum drop_reason
unwrap_only(struct swedge *sw, struct rx *rx)
{
    if (has_next_segment(rx)) {
        return param_problem(sw, rx, ICMP6_PARAMETER_FIELD, rx->h.srh_ofs + SEGMENTS_LEFT_OFS,
                             DROP_sid_segments_left);
    }
    if (!rx->h.inner.ofs) {
        return param_problem(sw, rx, ICMP6_PARAMETER_SR_UPPER, rx->h.ip.l4_ofs, DROP_sid_upper);
    }
    return unwrap(sw, rx);
}

/*
 * Behaviours without flavors.
 */

enum drop_reason
end_input(struct swedge *sw, struct rx *rx)
{
    if (!has_next_segment(rx)) {
        return upper_layer(sw, rx);
    }
    enum drop_reason why = to_next_segment(sw, rx, false);
    if (why) {
        return why;
    }
    (void) is_own_hop(sw, rx);
    return dispatch_again(sw, rx);
}

enum drop_reason
end_x_input(struct swedge *sw, struct rx *rx)
{
    if (!has_next_segment(rx)) {
        return upper_layer(sw, rx);
    }
    enum drop_reason why = to_next_segment(sw, rx, false);
    return why ? why : forward_to(sw, rx, rx->sid->port);
}

enum drop_reason
end_dt6_input(struct swedge *sw, struct rx *rx)
{
    enum drop_reason why = unwrap_only(sw, rx);

    return why ? why : dispatch_again(sw, rx);
}

enum drop_reason
end_dx6_input(struct swedge *sw, struct rx *rx)
{
    enum drop_reason why = unwrap_only(sw, rx);

    if (!why && !node_congestion_may_leave(sw->base->congestion, rx)) {
        why = DROP_fast_cnp_border;
    }
    return why ? why : forward_to(sw, rx, rx->sid->port);
}

/*
 * Behaviours with NEXT-CSID.
 */

/* Takes the SID's uSID out of the destination (RFC 9800 section 4.1.1, N02 to N07). */
static enum drop_reason
shift(struct swedge *sw, struct rx *rx)
{
    struct ip6_hdr_wire *ip = rx_ip(rx);

    if (!hop_is_left(sw, rx)) {
        return DROP_hop_limit;
    }
    usid_shift(&ip->dst, rx->sid->block_len, rx->sid->plen);
    return DROP_none;
}

/* Sends a packet on, to whichever node the destination begins with. */
static enum drop_reason
forward_to_neighbour(struct swedge *sw, struct rx *rx)
{
    const struct in6_addr *dst = &rx_ip(rx)->dst;
    uint16_t id = node_id_of(dst);

    if (is_own_hop(sw, rx)) {
        TRACE(&sw->base->tracer, "uN: next uSID %04x, here again", id);
        return dispatch_again(sw, rx);
    }
    if (!address_is_sid(dst) || !id) { /* not of the plan's uSIDs: by the routes. */
        return dispatch_again(sw, rx);
    }
    struct in6_addr node = node_address(id);
    uint16_t port = l3_port_to(sw->base->l3, &node);
    if (!port) {
        TRACE(&sw->base->tracer, "uN: next uSID %04x, no link leads there", id);
        return DROP_usid_unknown;
    }
    return forward_to(sw, rx, port);
}

/* Is the next uSID behind the SID's own one a function?  As a longer prefix covers none of those
 * that the node has, it has not got this one. */
static bool
next_is_function(const struct rx *rx)
{
    struct in6_addr next = rx_ip(rx)->dst;

    usid_shift(&next, rx->sid->block_len, rx->sid->plen);
    return address_is_sid(&next) && node_id_of(&next) >= USID_FIRST_FUNCTION;
}

static enum drop_reason
un_shift(struct swedge *sw, struct rx *rx)
{
    const struct sid *sid = rx->sid;

    if (usid_next_is_zero(&rx_ip(rx)->dst, sid->plen, sid->plen - sid->block_len)) {
        return DROP_usid_zero;
    }
    if (next_is_function(rx)) {
        struct packet *p = rx->p;
        rx->p = NULL;
        return l3_forward(sw->base->l3, p, &rx->h, rx->now); /* says that it is unknown. */
    }
    enum drop_reason why = shift(sw, rx);
    return why ? why : forward_to_neighbour(sw, rx);
}

enum drop_reason
un_input(struct swedge *sw, struct rx *rx)
{
    enum drop_reason why;

    if (rx->n_usids++ == OWN_USIDS_MAX) {
        return DROP_usid_own_limit;
    }
    if (!usid_argument_is_zero(&rx_ip(rx)->dst, rx->sid->plen)) {
        return un_shift(sw, rx);
    }
    if (has_next_segment(rx)) {
        why = to_next_segment(sw, rx, true);
        return why ? why : forward_to_neighbour(sw, rx);
    }
    if (!rx->h.inner.ofs) {
        /* This SID takes probes, too. */
        return prober_takes(rx) ? prober_input(sw->base->prober, rx) : upper_layer(sw, rx);
    }
    why = unwrap(sw, rx);
    return why ? why : dispatch_again(sw, rx);
}

enum drop_reason
ua_input(struct swedge *sw, struct rx *rx)
{
    enum drop_reason why;

    if (rx->n_usids++ == OWN_USIDS_MAX) {
        return DROP_usid_own_limit;
    }
    if (!usid_argument_is_zero(&rx_ip(rx)->dst, rx->sid->plen)) {
        why = shift(sw, rx);
    } else if (has_next_segment(rx)) {
        why = to_next_segment(sw, rx, true);
    } else if (rx->h.inner.ofs) {
        why = unwrap(sw, rx);
    } else {
        return upper_layer(sw, rx);
    }
    return why ? why : forward_to(sw, rx, rx->sid->port);
}
