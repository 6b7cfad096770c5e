/* SPDX-License-Identifier: Apache-2.0
 *
 * A packet's way through the source agent.
 *
 *     from the host:   Fast CNP? dropped : guard -> neighbour discovery
 *                          -> RDMA-CM for a Proxy? lib/node-cm.c
 *                          -> to a Proxy? down.c : of a flow that is slowed down? rate.c
 *                          -> on a path? lib/headend.c : forward
 *     from the fabric: Fast CNP? fast-cnp.c : neighbour discovery -> to our response SID? up.c
 *                          -> for the host? from a Proxy? up.c : forward
 *
 * The agent is a router of one host: what is not multicast passes unchanged, on a
 * path if there is one.
 * Drops are counted here and nowhere else; what was not consumed is freed here.
 */
#include "lib/headend.h"
#include "lib/node-cm.h"
#include "lib/node-congestion.h"
#include "lib/node-egress.h"
#include "srcagent/srcagent.h"

/* A packet of the fabric for the host. */
static enum drop_reason
forward_to_host(struct srcagent *sa, struct rx *rx)
{
    struct packet *p = rx->p;

    rx->p = NULL;
    if (sa->base.has_paths) {
        headend_note_arrival(sa->base.headend, p->data + rx->h.ip.ofs,
                             (size_t) (rx->h.ip.end - rx->h.ip.ofs), rx->now);
    }
    return l3_forward(sa->base.l3, p, &rx->h, rx->now);
}

/* A packet of the host that is no group's. */
static enum drop_reason
forward_from_host(struct srcagent *sa, struct rx *rx)
{
    struct flow *f = rate_note(sa, rx);
    struct packet *p = rx->p;

    rx->p = NULL;
    if (!f) {
        return sa->base.has_paths ? headend_forward(sa->base.headend, p, &rx->h, rx->now)
                                  : l3_forward(sa->base.l3, p, &rx->h, rx->now);
    }
    p->len = rx->h.ip.end; /* without Ethernet padding. */
    packet_pull(p, rx->h.ip.ofs);
    return rate_send(sa, f, p, rx->now);
}

/* Parses what this node may look into: packets from the host, to a SID, or from a Proxy. */
static enum drop_reason
parse_own(const struct srcagent *sa, struct rx *rx, const struct sid *sid, bool from_host)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    bool of_group = sid || addr_map_contains(sa->sources.by_key, from_host ? &ip->dst : &ip->src);

    if (!of_group && !from_host) {
        return DROP_none;
    }
    enum drop_reason why = sid ? node_parse(rx) : parse_rest(rx->p->data, rx->p->len, &rx->h);
    return parse_only_roce_failed(why) && !of_group ? DROP_none : why;
}

static enum drop_reason
pipeline(struct srcagent *sa, struct rx *rx)
{
    const struct port_config *port = l3_port(sa->base.l3, rx->port);
    enum drop_reason why = parse_outer(rx->p->data, rx->p->len, &rx->h);
    if (why) {
        return why;
    }
    if (!port || !l3_mac_ok(sa->base.l3, rx->port, rx->p)) {
        return DROP_eth_not_mine;
    }

    const struct ip6_hdr_wire *ip = rx_ip(rx);
    bool from_host = port->role == ROLE_HOST;
    if (ip->nh != IP6_NH_UDP && fast_cnp_seen(rx->p->data, rx->p->len, &rx->h)) {
        return from_host ? DROP_fast_cnp_border : fast_cnp_input(sa, rx);
    }
    struct sid *sid = sid_table_lookup(&sa->base.sids, &ip->dst);
    why = parse_own(sa, rx, sid, from_host);
    why = why ? why : node_guard(rx, port);
    if (why) {
        return why;
    }
    if (l3_input(sa->base.l3, rx->port, rx->p, &rx->h, rx->now)) {
        return DROP_none;
    }
    if (sid) {
        sid->n_packets++;
        return up_merge(sa, rx);
    }
    if (l3_is_local(sa->base.l3, &ip->dst)) {
        node_congestion_icmp(sa->base.congestion, rx->p, &rx->h, rx->now);
        headend_icmp(sa->base.headend, rx->p, &rx->h);
        return l3_local_input(sa->base.l3, rx->port, rx->p, &rx->h, rx->now);
    }
    if (from_host && node_cm_takes(rx)) {
        return node_cm_input(&sa->base, rx);
    }
    if (from_host) {
        return addr_map_contains(sa->sources.by_key, &ip->dst) ? down_input(sa, rx)
                                                               : forward_from_host(sa, rx);
    }
    if (!l3_host_port(sa->base.l3, &ip->dst)) {
        return DROP_not_for_us;
    }
    why = addr_map_contains(sa->sources.by_key, &ip->src) ? up_check(sa, rx) : DROP_none;
    return why ? why : forward_to_host(sa, rx);
}

void
srcagent_input(void *sa_, uint16_t port, struct packet *p, uint64_t now)
{
    struct srcagent *sa = sa_;
    struct rx rx = {.p = p, .port = port, .now = now};

    p->in_port = port;
    p->came_at = now;
    node_egress_set_now(sa->base.egress, now);
    node_count_drop(&sa->base, pipeline(sa, &rx));
    packet_put(rx.p);
}
