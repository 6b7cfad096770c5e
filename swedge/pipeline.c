/* SPDX-License-Identifier: Apache-2.0
 *
 * A packet's way through the node.
 *
 *     port -> parse -> a group's multicast address? forwarding, End.MT (mcast.c)
 *          -> port's guard -> neighbour discovery
 *          -> RDMA-CM for a Proxy, from a host? lib/node-cm.c
 *          -> Proxy, from a host? reverse path (reverse-path.c)
 *          -> SID of ours?        its behaviour: End.MT, End.Replicate (down.c),
 *                                 End.Response (reverse-path.c), all others (end.c)
 *          -> our address?        ICMPv6 (lib/l3.c)
 *          -> otherwise           plain IPv6 forwarding (lib/l3.c)
 *
 * Every function on the way returns a drop reason; it is counted here and
 * nowhere else, and what was not consumed is freed here and nowhere else.
 */
#include "lib/headend.h"
#include "lib/icmp6.h"
#include "lib/node-cm.h"
#include "lib/node-congestion.h"
#include "lib/node-egress.h"
#include "lib/usid.h"
#include "swedge/swedge.h"

static enum drop_reason
to_response_sid(struct swedge *sw, struct rx *rx)
{
    return sw->response(sw, rx);
}

static const struct behaviour {
    behaviour_input *input;
    bool answers; /* a Routing header that is no good draws an ICMPv6 error. */
    bool shifts;  /* flavor NEXT-CSID: with an argument, all it looks at is the IPv6 header. */
} behaviours[] = {
    [SID_UN] = {.input = un_input, .answers = true, .shifts = true},
    [SID_END] = {.input = end_input, .answers = true},
    [SID_END_MT] = {.input = end_mt_input},
    [SID_RESPONSE] = {.input = to_response_sid},
    [SID_END_DT6] = {.input = end_dt6_input, .answers = true},
    [SID_UA] = {.input = ua_input, .answers = true, .shifts = true},
    [SID_END_DX6] = {.input = end_dx6_input, .answers = true},
    [SID_END_X] = {.input = end_x_input, .answers = true},
    [SID_END_REPLICATE] = {.input = replicate_input},
};

/* Parses what this node may look into: packets to a SID or an address of its own, and whatever a
 * host sends.  An innermost packet that is no sound RoCE is an error only where nothing else may
 * go. */
static enum drop_reason
parse_own(const struct swedge *sw, struct rx *rx, const struct port_config *port,
          const struct sid *sid)
{
    const struct in6_addr *dst = &rx_ip(rx)->dst;

    if (port->role != ROLE_HOST
        && (sid ? behaviours[sid->behaviour].shifts && !usid_argument_is_zero(dst, sid->plen)
                : !l3_is_local(sw->base->l3, dst))) {
        return DROP_none;
    }
    enum drop_reason why = sid ? node_parse(rx) : parse_rest(rx->p->data, rx->p->len, &rx->h);
    if (!parse_only_roce_failed(why)) {
        return why;
    }
    bool takes_roce =
        sid ? sid_behaviour(sid->behaviour)->takes_roce : addr_map_contains(sw->trees.by_key, dst);
    return takes_roce ? why : DROP_none;
}

/* Tells the sender what is wrong with a Routing header: an inconsistent SRH (RFC 8754 section
 * 4.3.1.1), or an unknown type with segments left (RFC 8200 section 4.4). */
static void
answer_routing(struct swedge *sw, const struct rx *rx, enum drop_reason why)
{
    size_t ofs = why == DROP_routing_header
                     ? rx->h.routing_ofs + offsetof(struct srh_hdr, type)
                     : rx->h.bad_srh_ofs + offsetof(struct srh_hdr, segments_left);

    if (why == DROP_routing_header || why == DROP_srh_malformed) {
        l3_icmp_param_problem(sw->base->l3, rx->p, &rx->h, ICMP6_PARAMETER_FIELD,
                              (uint32_t) (ofs - rx->h.ip.ofs), rx->now);
    }
}

enum drop_reason
swedge_admit(struct swedge *sw, struct rx *rx)
{
    const struct port_config *port = l3_port(sw->base->l3, rx->port);
    const struct sid *sid = rx->sid = swedge_sid(sw, &rx_ip(rx)->dst);
    enum drop_reason malformed = parse_own(sw, rx, port, sid);
    enum drop_reason forbidden = node_guard(rx, port);

    if (!forbidden && sid && behaviours[sid->behaviour].answers) {
        answer_routing(sw, rx, malformed);
    }
    return malformed ? malformed : forbidden;
}

/* Does a packet to 'dst', whose path ends at this node, go to a host or an agent here?  Any other
 * way would be a detour, which hides that the last link is gone.  What has no route at all is told
 * so. */
static bool
stays_here(const struct l3 *l3, const struct in6_addr *dst)
{
    struct in6_addr next_hop;
    uint16_t number;

    if (!l3_lookup(l3, dst, &number, &next_hop)) {
        return true;
    }
    return l3_port_is_up(l3, number) && l3_port(l3, number)->role != ROLE_FABRIC;
}

/* Is it a program that goes on behind this node's uN? */
static bool
goes_on(const struct rx *rx)
{
    return rx->sid->behaviour == SID_UN
           && (rx->h.segments_left || !usid_argument_is_zero(&rx_ip(rx)->dst, rx->sid->plen));
}

enum drop_reason
forward_input(struct swedge *sw, struct rx *rx)
{
    const struct in6_addr *dst = &rx_ip(rx)->dst;

    if (!node_congestion_may_leave(sw->base->congestion, rx)) {
        return DROP_fast_cnp_border;
    }
    if (rx->unwrapped && !stays_here(sw->base->l3, dst)) {
        TRACE(&sw->base->tracer, "no link from here to %s", TRACE_ADDR(dst));
        return DROP_usid_link_down;
    }
    struct packet *p = rx->p;
    rx->p = NULL;
    if (sw->base->has_paths) {
        if (l3_port(sw->base->l3, rx->port)->role == ROLE_HOST) {
            return headend_forward(sw->base->headend, p, &rx->h, rx->now);
        }
        headend_note_arrival(sw->base->headend, p->data + rx->h.ip.ofs,
                             (size_t) (rx->h.ip.end - rx->h.ip.ofs), rx->now);
    }
    return l3_forward(sw->base->l3, p, &rx->h, rx->now);
}

enum drop_reason
swedge_dispatch(struct swedge *sw, struct rx *rx)
{
    const struct in6_addr *dst = &rx_ip(rx)->dst;
    struct sid *sid = rx->sid;

    if (sid) {
        TRACE(&sw->base->tracer, "SID %s/%u: %s", TRACE_ADDR(&sid->prefix), sid->plen,
              sid_behaviour_name(sid->behaviour));
        sid->n_packets++;
        if (!sw->transit && goes_on(rx)) {
            return DROP_not_for_us;
        }
        return behaviours[sid->behaviour].input(sw, rx);
    }
    if (l3_is_local(sw->base->l3, dst)) {
        TRACE(&sw->base->tracer, "%s is this node's own address", TRACE_ADDR(dst));
        node_congestion_icmp(sw->base->congestion, rx->p, &rx->h, rx->now);
        headend_icmp(sw->base->headend, rx->p, &rx->h);
        return l3_local_input(sw->base->l3, rx->port, rx->p, &rx->h, rx->now);
    }
    return sw->forward(sw, rx);
}

static enum drop_reason
pipeline(struct swedge *sw, struct rx *rx)
{
    const struct port_config *port = l3_port(sw->base->l3, rx->port);
    enum drop_reason why = parse_outer(rx->p->data, rx->p->len, &rx->h);
    if (why) {
        return why;
    }
    if (!port || !l3_mac_ok(sw->base->l3, rx->port, rx->p)) {
        return DROP_eth_not_mine;
    }

    if (is_mcast_group_address(&rx_ip(rx)->dst)) {
        return mcast_input(sw, rx);
    }
    bool to_proxy = port->role == ROLE_HOST && addr_map_contains(sw->trees.by_key, &rx_ip(rx)->dst);
    why = swedge_admit(sw, rx);
    if (why) {
        return why;
    }
    if (l3_input(sw->base->l3, rx->port, rx->p, &rx->h, rx->now)) {
        return DROP_none;
    }
    if (port->role == ROLE_HOST && node_cm_takes(rx)) {
        return node_cm_input(sw->base, rx);
    }
    return to_proxy ? reverse_path_input(sw, rx) : swedge_dispatch(sw, rx);
}

void
swedge_input(struct swedge *sw, uint16_t port, struct packet *p, uint64_t now)
{
    struct rx rx = {.p = p, .port = port, .now = now};

    p->in_port = port;
    p->came_at = now;
    node_egress_set_now(sw->base->egress, now);
    node_count_drop(sw->base, pipeline(sw, &rx));
    packet_put(rx.p);
}
