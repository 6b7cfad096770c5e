/* SPDX-License-Identifier: Apache-2.0
 *
 * Congestion at a node.
 *
 * Theory of operation
 * -------------------
 * A queue with RED asks what that may do to each frame.  The frame is taken apart down to its BTH,
 * through tunnel and Segment Routing headers, in a buffer of our own: copies of a group's packet
 * share most of their bytes.
 *
 * Data are requests with a payload.  They have a flow: source and destination of the packet as its
 * sender has sent it, and its DestQP.  A copy for a receiver was rewritten, so for such a frame the
 * flow is the group's, which the packet's metadata lead to.
 *
 * A sender that takes Fast CNPs is told by these alone: its packets are neither marked nor dropped
 * in place of a mark (draft-xiao section 4).  The limits of Fast CNPs do not change that.
 *
 * Probes of paths are marked as data are, so that they say what data would meet.
 */
#include "lib/node-congestion.h"

#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/defect.h"
#include "lib/ecn.h"
#include "lib/icmp6.h"
#include "lib/ioam.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "lib/stamp.h"

#define MANAGEMENT_QPN 1 /* and below: RDMA-CM and the like. */

struct node_congestion {
    struct node_base *base;
    struct congestion_config config; /* own copy. */
    uint32_t node_id;
    uint64_t posix_usec;
    struct fast_cnp_limit *limit;
    struct congestion_stats stats;
    uint8_t frame[PACKET_HEADROOM + PACKET_ROOM]; /* the one that is looked at. */
};

/* What is sent from where to where, as the sender knows it. */
struct flow {
    struct in6_addr sender, original;
    uint32_t dest_qp;
};

struct node_congestion *
node_congestion_create(struct node_base *base, uint64_t posix_usec)
{
    struct node_congestion *nc = must_calloc(1, sizeof *nc);

    nc->base = base;
    nc->posix_usec = posix_usec;
    nc->limit = fast_cnp_limit_create();
    return nc;
}

void
node_congestion_destroy(struct node_congestion *nc)
{
    if (nc) {
        fast_cnp_limit_destroy(nc->limit);
        free(nc->config.capable);
        free(nc->config.trusted);
        free(nc);
    }
}

void
node_congestion_configure(struct node_congestion *nc, const struct node_config *config)
{
    const struct congestion_config *c = &config->congestion;

    free(nc->config.capable);
    free(nc->config.trusted);
    nc->config = *c;
    nc->config.capable = must_copy(c->capable, c->n_capable, sizeof *c->capable);
    nc->config.trusted = must_copy(c->trusted, c->n_trusted, sizeof *c->trusted);
    nc->config.queue_rates = NULL; /* srcagent's. */
    nc->config.n_queue_rates = 0;
    nc->node_id = config->id;
    fast_cnp_limit_configure(nc->limit, c->interval_usec, c->fast_cnp_rate);
}

static bool
contains(const struct in6_addr *sorted, size_t n, const struct in6_addr *addr)
{
    return n && bsearch(addr, sorted, n, sizeof *sorted, address_compare);
}

bool
node_congestion_trusts(const struct node_congestion *nc, const struct in6_addr *node)
{
    return contains(nc->config.trusted, nc->config.n_trusted, node);
}

/* Does the way to this address lead out of the domain, or to a host that takes no Fast CNPs? */
static bool
is_outside(const struct node_congestion *nc, const struct in6_addr *addr)
{
    struct in6_addr next_hop;
    uint16_t number;
    const struct port_config *port =
        l3_lookup(nc->base->l3, addr, &number, &next_hop) ? l3_port(nc->base->l3, number) : NULL;

    /* A source agent takes the Fast CNPs of its host. */
    return port
           && (port->external
               || (port->role == ROLE_HOST && !nc->base->tell_host
                   && !contains(nc->config.capable, nc->config.n_capable, addr)));
}

/* Does the sender take Fast CNPs? */
static bool
is_capable(const struct node_congestion *nc, const struct in6_addr *sender, uint64_t now)
{
    return nc->config.fast_cnp && contains(nc->config.capable, nc->config.n_capable, sender)
           && !is_outside(nc, sender) && !fast_cnp_limit_is_unwanted(nc->limit, sender, now);
}

/* Is this a request with a payload?  Management datagrams are none of an application's. */
static bool
is_data(const struct parsed *h, uint32_t dest_qp)
{
    const struct roce_opcode_info *info = roce_opcode_info(h->opcode);

    if (h->opcode >= ROCE_CNP || info->flags & ROCE_F_RESPONSE || !h->payload_len) {
        return false;
    }
    return dest_qp > MANAGEMENT_QPN;
}

/* Takes the frame apart, in nc->frame.  False: it is malformed. */
static bool
look(struct node_congestion *nc, const struct packet *p, struct parsed *h)
{
    size_t len = packet_flatten(p, nc->frame, sizeof nc->frame);

    return len && !parse_frame(nc->frame, (uint32_t) len, h);
}

/* Is the packet in nc->frame a probe of a path, or the answer to one?  These are to find what data
 * find, but have no flow: nobody slows down for them. */
static bool
is_probe(const struct node_congestion *nc, const struct parsed *h)
{
    const struct parsed_ip6 *ip = &h->ip;
    const struct udp_hdr *udp = (const void *) (nc->frame + ip->l4_ofs);

    return !h->inner.ofs && ip->l4_ofs && ip->proto == IP6_NH_UDP
           && (size_t) (ip->end - ip->l4_ofs) >= sizeof *udp
           && (be16_get(udp->dport) == UDP_PORT_STAMP || be16_get(udp->sport) == UDP_PORT_STAMP);
}

/* Whose packet is it, which look() has taken apart?  False: it is no data, or nobody knows any more. */
static bool
find_flow(const struct node_congestion *nc, const struct packet *p, const struct parsed *h,
          struct flow *flow)
{
    const struct node_base *base = nc->base;

    if (!h->bth_ofs) {
        return false;
    }
    const struct ip6_hdr_wire *ip = (const void *) (nc->frame + parsed_innermost(h)->ofs);
    const struct bth *bth = (const void *) (nc->frame + h->bth_ofs);

    *flow = (struct flow){ip->src, ip->dst, be24_get(bth->dest_qp)};
    if (!is_data(h, flow->dest_qp)) {
        return false;
    }
    if (!p->branch) {
        return true;
    }
    flow->original = ip->src; /* a copy comes from the Proxy. */
    flow->dest_qp = p->group_qpn;
    return base->copy_source(base, &flow->original, flow->dest_qp, &flow->sender);
}

static const struct ip6_hdr_wire *
frame_ip(const struct packet *p)
{
    return (const struct ip6_hdr_wire *) (p->data + sizeof(struct eth_hdr));
}

enum egress_kind
node_congestion_kind(struct node_congestion *nc, const struct packet *p, uint64_t now)
{
    bool markable = ip6_tc(frame_ip(p)) & ECN_MASK;
    struct parsed h;
    struct flow flow;

    if (!look(nc, p, &h)) {
        return EGRESS_EXEMPT;
    }
    if (!find_flow(nc, p, &h, &flow)) {
        return markable && is_probe(nc, &h) ? EGRESS_MARKABLE : EGRESS_EXEMPT;
    }
    if (is_capable(nc, &flow.sender, now) && !DEFECT(FAST_CNP_MARKS)) {
        return EGRESS_TOLD;
    }
    return markable ? EGRESS_MARKABLE : EGRESS_NOT_ECT;
}

/* Makes a Fast CNP and sends it; a source agent has no use for one to itself. */
static void
send_fast_cnp(struct node_congestion *nc, const struct packet *p, const struct flow *flow,
              uint64_t now)
{
    struct node_base *base = nc->base;
    uint8_t *ip = p->data + sizeof(struct eth_hdr);
    struct fast_cnp f = {
        .node = base->address,
        .sender = flow->sender,
        .original = flow->original,
        .dest_qp = flow->dest_qp,
    };

    f.trace = ioam_find(ip, p->len - (uint32_t) sizeof(struct eth_hdr), &f.trace_len);
    if (base->tell_host && l3_host_port(base->l3, &f.sender)) {
        base->tell_host(base, &f, now);
        return;
    }
    struct packet *cnp =
        fast_cnp_build(base->pool, &f, response_sport(&flow->original, flow->dest_qp));
    if (!cnp) {
        node_count_drop(base, DROP_pool_empty);
        return;
    }
    TRACE(&base->tracer, "Fast CNP to %s for %s, QPN 0x%x", TRACE_ADDR(&f.sender),
          TRACE_ADDR(&f.original), f.dest_qp);
    nc->stats.n_fast_cnps++;
    node_count_drop(base, l3_output(base->l3, cnp, L3_ERRORS_NONE, now));
}

void
node_congestion_met(struct node_congestion *nc, uint16_t port, const struct packet *p, uint64_t now)
{
    struct parsed h;
    struct flow flow;

    if (!nc->config.fast_cnp || !look(nc, p, &h) || !find_flow(nc, p, &h, &flow)
        || !is_capable(nc, &flow.sender, now)) {
        return;
    }
    TRACE(&nc->base->tracer, "congestion at port %s", l3_port(nc->base->l3, port)->name);
    switch (fast_cnp_limit_ask(nc->limit, &flow.sender, &flow.original, flow.dest_qp, now)) {
    case FAST_CNP_SEND: send_fast_cnp(nc, p, &flow, now); break;
    case FAST_CNP_TOO_SOON: nc->stats.n_too_soon++; break;
    case FAST_CNP_DST_LIMIT: nc->stats.n_dst_limit++; break;
    case FAST_CNP_NODE_LIMIT: nc->stats.n_node_limit++; break;
    case FAST_CNP_UNWANTED: break; /* is_capable() knows. */
    }
}

void
node_congestion_marked(struct node_congestion *nc, uint16_t port, const struct packet *p,
                       uint64_t now)
{
    struct node_base *base = nc->base;

    TRACE(&base->tracer, "port %s: marked with CE", l3_port(base->l3, port)->name);

    if (p->branch && base->ce_left) {
        base->ce_left(base, &frame_ip(p)->src, p->group_qpn, p->branch, now);
    }
}

bool
node_congestion_may_leave(const struct node_congestion *nc, const struct rx *rx)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);

    return ip->nh == IP6_NH_UDP || ip->nh == IP6_NH_ICMPV6
           || !fast_cnp_seen(rx->p->data, rx->p->len, &rx->h) || !is_outside(nc, &ip->dst);
}

/* Is the header that may have a trace a host's own, or from outside of the domain?  It would take
 * what nodes write out of the domain. */
static bool
is_foreign_trace(const struct node_congestion *nc, const struct packet *p,
                 const struct ip6_hdr_wire *ip)
{
    const struct port_config *from = l3_port(nc->base->l3, p->in_port);

    return from && (from->role == ROLE_HOST || from->external)
           && !IN6_ARE_ADDR_EQUAL(&ip->src, &nc->base->address); /* a source agent's tunnel. */
}

void
node_congestion_trace(struct node_congestion *nc, uint16_t number, struct packet *p,
                      uint64_t queue_bytes, uint64_t sent_bytes)
{
    const struct port_config *port = l3_port(nc->base->l3, number);
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (p->data + sizeof(struct eth_hdr));
    uint8_t trace_len;

    if (!nc->config.trace || !port || port->role == ROLE_HOST || port->external
        || is_foreign_trace(nc, p, ip)) {
        return;
    }
    uint8_t *trace =
        ioam_find((uint8_t *) ip, p->len - (uint32_t) sizeof(struct eth_hdr), &trace_len);
    if (!trace) {
        return;
    }
    uint64_t came = p->came_at + nc->posix_usec;
    struct ioam_element e = {
        .hop_limit = ip->hlim,
        .node_id = nc->node_id,
        .seconds = (uint32_t) (came / 1000000),
        .usec = (uint32_t) (came % 1000000),
        .sent_bytes = (uint32_t) sent_bytes,
        .queue_bytes = queue_bytes < UINT32_MAX ? (uint32_t) queue_bytes : UINT32_MAX - 1,
    };

    switch (ioam_fill(trace, trace_len, &e)) {
    case IOAM_FILLED: nc->stats.n_traced++; break;
    case IOAM_OVERFLOW: nc->stats.n_trace_full++; break;
    case IOAM_IGNORED: break;
    }
}

void
node_congestion_icmp(struct node_congestion *nc, const struct packet *p, const struct parsed *h,
                     uint64_t now)
{
    const struct ip6_hdr_wire *ip = (const void *) (p->data + h->ip.ofs);
    size_t len = (size_t) (h->ip.end - h->ip.ofs);
    const struct port_config *port = l3_port(nc->base->l3, p->in_port);
    struct icmp6_upper upper;

    if (!nc->config.fast_cnp || !port || port->external) {
        return;
    }
    const struct icmp6_wire *icmp = icmp6_find_error((const uint8_t *) ip, len, &upper);
    if (!icmp) {
        return;
    }
    const struct ip6_hdr_wire *about = (const void *) (icmp + 1);
    size_t about_len = len - upper.ofs - sizeof *icmp;
    uint32_t pointer = be32_get(icmp->param);

    if (icmp->type == ICMP6_PARAMETER && icmp->code == ICMP6_PARAMETER_OPTION
        && pointer >= IP6_HDR_LEN && pointer < about_len
        && ((const uint8_t *) about)[pointer] == FAST_CNP_OPTION
        && IN6_ARE_ADDR_EQUAL(&about->src, &nc->base->address)
        && IN6_ARE_ADDR_EQUAL(&about->dst, &ip->src)
        && contains(nc->config.capable, nc->config.n_capable, &about->dst)
        && icmp6_is_valid(ip, (const uint8_t *) icmp, len - upper.ofs)) {
        nc->stats.n_unwanted++;
        fast_cnp_limit_unwanted(nc->limit, &about->dst, now);
    }
}

const struct congestion_stats *
node_congestion_stats(const struct node_congestion *nc)
{
    return &nc->stats;
}
