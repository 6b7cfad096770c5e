/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets to the multicast group address of a group in mode mcast: static
 * forwarding entries, from the trees of the configuration.
 *
 * A packet that came from the node that its entry names goes on to the ports of that entry.
 * Only the hop limit changes, and what nodes write into a Hop-by-Hop Options header.  A packet that came from elsewhere is dropped (reverse path
 * forwarding): otherwise one link too many would make a loop.
 *
 * This is a multicast router's job.  A node without receivers of the group is not addressed,
 * and does not look behind the IPv6 header (RFC 8754 section 4.2).  A node with receivers is a
 * listener, and also takes the packet as if it were addressed to its SID of End.MT.
 *
 * Packet Too Big is the only ICMPv6 error that answers such a packet (RFC 4443 section 2.4(e),
 * RFC 9524 section 2.2.3).
 */
#include "swedge/swedge.h"

/* The entry of a packet that came in on 'port', or NULL and the reason. */
static const struct tree *
find_entry(const struct swedge *sw, const struct ip6_hdr_wire *ip, const struct port_config *port,
           enum drop_reason *why)
{
    const struct tree *t = addr_map_find(sw->trees.by_mcast, &ip->dst, 0);

    if (!t || memcmp(&t->config.outer_source, &ip->src, sizeof ip->src)) {
        *why = DROP_mcast_unknown;
        return NULL;
    }
    if (port->role == ROLE_HOST || !IN6_ARE_ADDR_EQUAL(&port->peer_address, &t->config.upstream)) {
        *why = DROP_mcast_rpf;
        return NULL;
    }
    *why = DROP_none;
    return t;
}

/* Sends 'p', the packet from its IPv6 header on.  Consumes it. */
static enum drop_reason
send_copy(struct swedge *sw, struct packet *p, uint16_t port, uint64_t now)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) p->data;

    ip->hlim--;
    TRACE(&sw->base->tracer, "multicast: copy to port %u, hop limit %u", port, ip->hlim);
    return l3_multicast(sw->base->l3, p, port, L3_ERRORS_PTB, now);
}

/* Sends the packet to the next nodes.  Uses it up. */
static enum drop_reason
forward(struct swedge *sw, struct rx *rx, const struct tree *t)
{
    struct packet *p = rx->p;
    size_t n = t->config.n_outer_da;

    rx->p = NULL;
    p->len = rx->h.ip.end; /* without the link's padding. */
    packet_pull(p, rx->h.ip.ofs);
    uint32_t own_len = IP6_HDR_LEN + parse_hop_by_hop_len((void *) p->data, p->len);
    for (size_t i = 0; i + 1 < n; i++) {
        struct packet *copy = packet_replicate(p, 0, own_len, 0);
        node_count_drop(sw->base,
                        copy ? send_copy(sw, copy, t->next_ports[i], rx->now) : DROP_pool_empty);
    }
    return send_copy(sw, p, t->next_ports[n - 1], rx->now);
}

enum drop_reason
mcast_input(struct swedge *sw, struct rx *rx)
{
    enum drop_reason why;
    const struct tree *t = find_entry(sw, rx_ip(rx), l3_port(sw->base->l3, rx->port), &why);

    if (!t) {
        return why;
    }
    if (rx_ip(rx)->hlim <= 1) {
        return DROP_hop_limit;
    }
    TRACE(&sw->base->tracer, "multicast group %s: %zu ports%s", TRACE_ADDR(&rx_ip(rx)->dst),
          t->config.n_outer_da, t->n_receivers ? ", and End.MT" : "");
    if (t->n_receivers) {
        why = node_parse(rx);
        if (!why) {
            why = group_input(sw, rx, BY_MCAST);
        }
    }
    if (!t->config.n_outer_da) {
        return t->n_receivers ? why : DROP_mcast_unknown;
    }
    node_count_drop(sw->base, why);
    return forward(sw, rx, t);
}
