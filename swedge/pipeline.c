/* SPDX-License-Identifier: Apache-2.0
 *
 * A packet's way through the node.
 *
 *     port -> parse -> a group's multicast address? forwarding, End.MT (mcast.c)
 *          -> port's guard -> neighbour discovery
 *          -> Proxy, from a host? reverse path (reverse-path.c)
 *          -> SID of ours?        its behaviour: End.MT, End.Replicate (down.c),
 *                                 End.Response (reverse-path.c), End, End.DT6 (end.c)
 *          -> our address?        ICMPv6 (lib/l3.c)
 *          -> otherwise           plain IPv6 forwarding (lib/l3.c)
 *
 * Every function on the way returns a drop reason; it is counted here and
 * nowhere else, and what was not consumed is freed here and nowhere else.
 */
#include "swedge/swedge.h"

static behaviour_input *const behaviours[] = {
    [SID_END] = end_input,
    [SID_END_MT] = end_mt_input,
    [SID_RESPONSE] = response_input,
    [SID_END_DT6] = end_dt6_input,
    [SID_END_REPLICATE] = replicate_input,
};

/* BCP 38 and RFC 8754 section 5.1, by the port's role: a host speaks with its own
 * address only, without routing header or tunnel, and not to SIDs, wherever they
 * are; what an agent sends to a SID comes from the agent. */
static enum drop_reason
guard(const struct rx *rx, const struct port_config *port)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);

    switch (port->role) {
    case ROLE_HOST:
        if (rx->h.srh_ofs || rx->h.inner.ofs || rx->h.ip.proto == IP6_NH_IPV6
            || address_is_sid(&ip->dst)) {
            return DROP_source_guard;
        }
        if (IN6_IS_ADDR_LINKLOCAL(&ip->src) || IN6_IS_ADDR_UNSPECIFIED(&ip->src)) {
            return DROP_none; /* neighbour discovery; never forwarded. */
        }
        return IN6_ARE_ADDR_EQUAL(&ip->src, &port->peer_address) ? DROP_none : DROP_source_guard;
    case ROLE_AGENT:
        return !address_is_sid(&ip->dst) || IN6_ARE_ADDR_EQUAL(&ip->src, &port->peer_address)
                   ? DROP_none
                   : DROP_source_guard;
    case ROLE_FABRIC: break;
    }
    return DROP_none;
}

/* What goes there is a group's packet or a response, or nothing. */
static bool
takes_roce(const struct swedge *sw, const struct sid *sid, const struct in6_addr *dst)
{
    return sid ? sid->behaviour != SID_END && sid->behaviour != SID_END_DT6
               : addr_map_contains(sw->trees.by_key, dst);
}

enum drop_reason
swedge_admit(struct swedge *sw, struct rx *rx)
{
    const struct port_config *port = l3_port(sw->base.l3, rx->port);
    const struct in6_addr *dst = &rx_ip(rx)->dst;
    const struct sid *sid = sid_table_lookup(&sw->base.sids, dst);

    if (sid || l3_is_local(sw->base.l3, dst) || port->role == ROLE_HOST) {
        enum drop_reason why = parse_rest(rx->p->data, rx->p->len, &rx->h);
        if (why == DROP_srh_malformed && sid && sid->behaviour == SID_END && !guard(rx, port)) {
            end_malformed(sw, rx);
        }
        if (why && !(parse_only_roce_failed(why) && !takes_roce(sw, sid, dst))) {
            return why;
        }
    }
    return guard(rx, port);
}

enum drop_reason
swedge_dispatch(struct swedge *sw, struct rx *rx)
{
    const struct in6_addr *dst = &rx_ip(rx)->dst;
    struct sid *sid = sid_table_lookup(&sw->base.sids, dst);

    if (sid) {
        TRACE(&sw->base.tracer, "SID %s/%u: %s", TRACE_ADDR(&sid->prefix), sid->plen,
              sid_behaviour_name(sid->behaviour));
        sid->n_packets++;
        return behaviours[sid->behaviour](sw, rx);
    }
    if (l3_is_local(sw->base.l3, dst)) {
        TRACE(&sw->base.tracer, "%s is this node's own address", TRACE_ADDR(dst));
        return l3_local_input(sw->base.l3, rx->port, rx->p, &rx->h, rx->now);
    }
    struct packet *p = rx->p;
    rx->p = NULL;
    return l3_forward(sw->base.l3, p, &rx->h, rx->now);
}

/* The pipeline itself. */
static enum drop_reason
run(struct swedge *sw, struct rx *rx)
{
    const struct port_config *port = l3_port(sw->base.l3, rx->port);
    enum drop_reason why = parse_outer(rx->p->data, rx->p->len, &rx->h);
    if (why) {
        return why;
    }
    if (!port || !l3_mac_ok(sw->base.l3, rx->port, rx->p)) {
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
    if (l3_input(sw->base.l3, rx->port, rx->p, &rx->h, rx->now)) {
        return DROP_none;
    }
    return to_proxy ? reverse_path_input(sw, rx) : swedge_dispatch(sw, rx);
}

void
swedge_input(void *sw_, uint16_t port, struct packet *p, uint64_t now)
{
    struct swedge *sw = sw_;
    struct rx rx = {.p = p, .port = port, .now = now};

    node_count_drop(&sw->base, run(sw, &rx));
    packet_put(rx.p);
}
