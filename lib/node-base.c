/* SPDX-License-Identifier: Apache-2.0
 *
 * What every forwarding node has.
 */
#include "lib/node-base.h"

#include "lib/fast-cnp.h"
#include "lib/headend.h"
#include "lib/node-cm.h"
#include "lib/node-congestion.h"
#include "lib/node-egress.h"
#include "lib/prober.h"

void
node_base_init(struct node_base *base, const struct node_io *io, struct packet_pool *pool)
{
    *base = (struct node_base){.pool = pool, .way_state = io->way_state, .way_aux = io->aux};
    base->egress = node_egress_create(base, io);
    base->congestion = node_congestion_create(base, io->posix_usec);
    base->l3 = l3_create(io, pool, base->drops);
    base->cm = node_cm_create(base, io->seed);
    base->headend = headend_create(base, io->seed);
    base->prober = prober_create(base, io);
}

void
node_base_uninit(struct node_base *base)
{
    prober_destroy(base->prober);
    headend_destroy(base->headend);
    node_cm_destroy(base->cm);
    sid_table_uninit(&base->sids);
    l3_destroy(base->l3);
    node_egress_destroy(base->egress);
    node_congestion_destroy(base->congestion);
}

void
node_base_configure(struct node_base *base, const struct node_config *config, uint64_t now)
{
    node_egress_set_now(base->egress, now);
    base->address = config->address;
    sid_table_configure(&base->sids, config);
    node_congestion_configure(base->congestion, config);
    node_egress_configure(base->egress, config, now);
    struct node_io io = node_egress_io(base->egress);
    l3_set_io(base->l3, &io);
    l3_configure(base->l3, config);
    prober_configure(base->prober, config, now);
    headend_configure(base->headend, config, now);
}

uint64_t
node_base_deadline(const struct node_base *base)
{
    const uint64_t deadlines[] = {
        l3_deadline(base->l3),
        node_cm_deadline(base),
        node_egress_deadline(base->egress),
        prober_deadline(base->prober),
        headend_deadline(base->headend),
    };
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        first = deadlines[i] < first ? deadlines[i] : first;
    }
    return first;
}

void
node_base_timer(struct node_base *base, uint64_t now)
{
    l3_timer(base->l3, now);
    if (node_cm_deadline(base) <= now) {
        node_cm_timer(base, now);
    }
    prober_timer(base->prober, now);
    if (headend_deadline(base->headend) <= now) {
        headend_timer(base->headend, now);
    }
    node_egress_timer(base->egress, now);
}

void
node_base_set_tracer(void *node, const struct tracer *tracer)
{
    struct node_base *base = node;

    base->tracer = tracer ? *tracer : (struct tracer){0};
    l3_set_tracer(base->l3, tracer);
}

const uint64_t *
node_base_drops(const void *node)
{
    return ((const struct node_base *) node)->drops;
}

const struct l3 *
node_base_l3(const void *node)
{
    return ((const struct node_base *) node)->l3;
}

bool
node_base_egress(const void *node, uint16_t port, struct egress_stats *stats)
{
    return node_egress_stats(((const struct node_base *) node)->egress, port, stats);
}

bool
node_base_sid(const void *node, size_t i, struct sid_info *info)
{
    return sid_table_get(&((const struct node_base *) node)->sids, i, info);
}

void
node_base_follow_ways(void *node, const void *first, uint64_t now)
{
    struct node_base *base = node;

    node_egress_set_now(base->egress, now);
    prober_follow(base->prober, ((const struct node_base *) first)->prober, now);
}

const struct congestion_stats *
node_base_congestion(const void *node)
{
    return node_congestion_stats(((const struct node_base *) node)->congestion);
}

enum drop_reason
node_parse(struct rx *rx)
{
    enum drop_reason why = parse_rest(rx->p->data, rx->p->len, &rx->h);

    return parsed_routing_stops(&rx->h) ? DROP_routing_header : why;
}

/* May the agent on this port send to the SID, or by the program that it begins with? */
static bool
may_use(const struct port_config *port, const struct in6_addr *sid)
{
    for (size_t i = 0; i < port->n_programs; i++) {
        if (prefix_covers(&port->programs[i], sid)) {
            return true;
        }
    }
    return !port->n_programs;
}

enum drop_reason
node_guard(const struct rx *rx, const struct port_config *port)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);

    if ((port->role == ROLE_HOST || port->external) && ip->nh != IP6_NH_UDP
        && fast_cnp_seen(rx->p->data, rx->p->len, &rx->h)) {
        return DROP_fast_cnp_border;
    }
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
        if (!address_is_sid(&ip->dst)) {
            return DROP_none;
        }
        if (!IN6_ARE_ADDR_EQUAL(&ip->src, &port->peer_address)) {
            return DROP_source_guard;
        }
        return may_use(port, &ip->dst) ? DROP_none : DROP_program_guard;
    case ROLE_FABRIC: break;
    }
    return DROP_none;
}
