/* SPDX-License-Identifier: Apache-2.0
 *
 * A packet's way through the source agent.
 *
 *     from the host:   Fast CNP? dropped : guard -> neighbour discovery
 *                          -> RDMA-CM for a Proxy? lib/node-cm.c
 *                          -> to a Proxy? of a group that it receives: swedge/reverse-path.c
 *                                         of a group that it sends:    down.c
 *                          -> of a flow that is slowed down? rate.c
 *                          -> on a path? lib/headend.c : forward
 *     from the fabric: Fast CNP? fast-cnp.c
 *                          -> a group's multicast address? swedge/mcast.c
 *                          -> neighbour discovery
 *                          -> our response SID? up.c : another SID of ours? its behaviour in swedge/
 *                          -> for the host, as it is or out of a SID's tunnel?
 *                                 from a Proxy? up.c : forward
 *
 * Of one group the host may be a source in an epoch and a receiver in another.  What it sends to the
 * Proxy is told apart by what it is: requests go down, responses and CNPs go up.
 *
 * The agent is a router of one host: what is not multicast passes unchanged, and nothing from the
 * fabric goes back there.
 * Drops are counted here and nowhere else; what was not consumed is freed here.
 */
#include "lib/headend.h"
#include "lib/node-cm.h"
#include "lib/node-congestion.h"
#include "lib/node-egress.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

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

/* Is it what a receiver sends to the Proxy, and not a source? */
static bool
is_answer(const struct rx *rx)
{
    return rx->h.bth_ofs
           && (rx->h.opcode == ROCE_CNP || roce_opcode_info(rx->h.opcode)->flags & ROCE_F_RESPONSE);
}

/* RoCE that makes no sense is an error only where nothing else may go: to a SID, or to a Proxy. */
static enum drop_reason
parse_from_host(const struct srcagent *sa, struct rx *rx, bool to_proxy)
{
    const struct sid *sid = swedge_sid(&sa->edge, &rx_ip(rx)->dst);
    enum drop_reason why = sid ? node_parse(rx) : parse_rest(rx->p->data, rx->p->len, &rx->h);

    return parse_only_roce_failed(why) && !sid && !to_proxy ? DROP_none : why;
}

static enum drop_reason
from_host(struct srcagent *sa, struct rx *rx, const struct port_config *port)
{
    const struct in6_addr *dst = &rx_ip(rx)->dst;
    bool to_source = addr_map_contains(sa->sources.by_key, dst);
    bool to_edge = addr_map_contains(sa->edge.trees.by_key, dst);
    enum drop_reason why = parse_from_host(sa, rx, to_source || to_edge);

    why = why ? why : node_guard(rx, port);
    if (why) {
        return why;
    }
    if (l3_input(sa->base.l3, rx->port, rx->p, &rx->h, rx->now)) {
        return DROP_none;
    }
    if (l3_is_local(sa->base.l3, dst)) {
        node_congestion_icmp(sa->base.congestion, rx->p, &rx->h, rx->now);
        headend_icmp(sa->base.headend, rx->p, &rx->h);
        return l3_local_input(sa->base.l3, rx->port, rx->p, &rx->h, rx->now);
    }
    if (node_cm_takes(rx)) {
        return node_cm_input(&sa->base, rx);
    }
    if (to_edge && (!to_source || is_answer(rx))) {
        return reverse_path_input(&sa->edge, rx);
    }
    return to_source ? down_input(sa, rx) : forward_from_host(sa, rx);
}

enum drop_reason
srcagent_response(struct swedge *edge, struct rx *rx)
{
    return up_merge(srcagent_of(edge), rx);
}

enum drop_reason
srcagent_pass(struct srcagent *sa, struct rx *rx)
{
    struct packet *p = rx->p;

    rx->p = NULL;
    if (sa->base.has_paths) {
        headend_note_arrival(sa->base.headend, p->data + rx->h.ip.ofs,
                             (size_t) (rx->h.ip.end - rx->h.ip.ofs), rx->now);
    }
    return l3_forward(sa->base.l3, p, &rx->h, rx->now);
}

/* Comes from the fabric, as it is or in a tunnel that has ended here. */
enum drop_reason
srcagent_to_host(struct swedge *edge, struct rx *rx)
{
    struct srcagent *sa = srcagent_of(edge);
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    enum drop_reason why = DROP_none;

    if (!l3_host_port(sa->base.l3, &ip->dst)) {
        return DROP_not_for_us;
    }
    if (addr_map_contains(sa->sources.by_key, &ip->src)) {
        why = parse_rest(rx->p->data, rx->p->len, &rx->h);
        why = why ? why : up_check(sa, rx);
    }
    return why ? why : srcagent_pass(sa, rx);
}

static enum drop_reason
from_fabric(struct srcagent *sa, struct rx *rx)
{
    struct swedge *edge = &sa->edge;

    if (is_mcast_group_address(&rx_ip(rx)->dst)) {
        return mcast_input(edge, rx);
    }
    enum drop_reason why = swedge_admit(edge, rx);
    if (why) {
        return why;
    }
    if (l3_input(sa->base.l3, rx->port, rx->p, &rx->h, rx->now)) {
        return DROP_none;
    }
    return swedge_dispatch(edge, rx);
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

    bool is_from_host = port->role == ROLE_HOST;
    if (rx_ip(rx)->nh != IP6_NH_UDP && fast_cnp_seen(rx->p->data, rx->p->len, &rx->h)) {
        return is_from_host ? DROP_fast_cnp_border : fast_cnp_input(sa, rx);
    }
    return is_from_host ? from_host(sa, rx, port) : from_fabric(sa, rx);
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
