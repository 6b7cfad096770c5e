/* SPDX-License-Identifier: Apache-2.0
 *
 * A packet's way through the node.
 *
 *     port -> parse -> port's guard -> neighbour discovery
 *          -> SID of ours?        its behaviour (end-mt.c)
 *          -> Proxy, from a host? reverse path (reverse-path.c)
 *          -> ours?               nothing listens here
 *          -> otherwise           plain IPv6 forwarding (lib/l3.c)
 *
 * Every function on the way returns a drop reason; it is counted here and
 * nowhere else, and what was not consumed is freed here and nowhere else.
 */
#include "swedge/swedge.h"

static const struct behaviour *const behaviours[] = {
    [SID_END] = NULL,     [SID_END_MT] = &behaviour_end_mt, [SID_RESPONSE] = NULL,
    [SID_END_DT6] = NULL, [SID_END_REPLICATE] = NULL,
};

static inline const struct ip6_hdr_wire *
outer_ip(const struct rx *rx)
{
    return (const struct ip6_hdr_wire *) (rx->p->data + rx->h.ip.ofs);
}

/* BCP 38, by the port's role: a host speaks with its own address only and
 * without routing header or tunnel; what an agent sends to a SID comes from the agent. */
static enum drop_reason
guard(const struct rx *rx, const struct port_config *port, bool to_sid)
{
    const struct ip6_hdr_wire *ip = outer_ip(rx);

    switch (port->role) {
    case ROLE_HOST:
        if (rx->h.srh_ofs || rx->h.inner.ofs || rx->h.ip.proto == IP6_NH_IPV6 || to_sid) {
            return DROP_source_guard;
        }
        if (IN6_IS_ADDR_LINKLOCAL(&ip->src) || IN6_IS_ADDR_UNSPECIFIED(&ip->src)) {
            return DROP_none; /* neighbour discovery; never forwarded. */
        }
        return IN6_ARE_ADDR_EQUAL(&ip->src, &port->peer_address) ? DROP_none : DROP_source_guard;
    case ROLE_AGENT:
        return !to_sid || IN6_ARE_ADDR_EQUAL(&ip->src, &port->peer_address) ? DROP_none
                                                                            : DROP_source_guard;
    case ROLE_FABRIC: break;
    }
    return DROP_none;
}

/* The pipeline itself. */
static enum drop_reason
run(struct swedge *sw, struct rx *rx)
{
    const struct port_config *port = l3_port(sw->l3, rx->port);
    enum drop_reason why = parse_outer(rx->p->data, rx->p->len, &rx->h);
    if (why) {
        return why;
    }
    if (!port || !l3_mac_ok(sw->l3, rx->port, rx->p)) {
        return DROP_eth_not_mine;
    }

    const struct in6_addr *dst = &outer_ip(rx)->dst;
    struct sid *sid = sid_table_lookup(&sw->sids, dst);
    bool to_proxy = port->role == ROLE_HOST && addr_map_contains(sw->trees.by_key, dst);
    if (sid || port->role == ROLE_HOST) {
        why = parse_rest(rx->p->data, rx->p->len, &rx->h);
        if (why) {
            return why;
        }
    }
    why = guard(rx, port, sid != NULL);
    if (why) {
        return why;
    }

    if (l3_input(sw->l3, rx->port, rx->p, &rx->h, rx->now)) {
        return DROP_none;
    }
    if (sid) {
        sid->n_packets++;
        return behaviours[sid->behaviour]->input(sw, rx);
    }
    if (to_proxy) {
        return reverse_path_input(sw, rx);
    }
    if (l3_is_local(sw->l3, dst)) {
        return DROP_not_for_us;
    }
    struct packet *p = rx->p;
    rx->p = NULL;
    return l3_forward(sw->l3, p, &rx->h, rx->now);
}

void
swedge_input(void *sw_, uint16_t port, struct packet *p, uint64_t now)
{
    struct swedge *sw = sw_;
    struct rx rx = {.p = p, .port = port, .now = now};

    swedge_count_drop(sw, run(sw, &rx));
    packet_put(rx.p);
}
