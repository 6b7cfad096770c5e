/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain IPv6 forwarding and neighbour discovery of a node.
 *
 * A packet out: route (lib/fib.c) -> port and next hop -> MAC (lib/neigh.c) ->
 * Ethernet header -> port.  What waits for a MAC comes back through the table's
 * callbacks, which end here.  What goes no further is answered by lib/l3-icmp.c.
 *
 * The node is a router on every port.  Hosts know it as fe80::1 and nothing
 * else, so that is what it calls itself on host ports; between nodes it is the
 * node address.  The cache learns from answers to its own questions, and from what
 * the one station that the configuration says is at the other end of the port tells
 * of itself, in solicitations or when its MAC has changed.  A link-local address is
 * never a next hop here, so none is ever learnt; questions from one are answered to
 * the MAC that they name.
 */
#include "lib/addr-map.h"
#include "lib/alloc.h"
#include "lib/l3-impl.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/fib.h"
#include "lib/nd.h"

const struct in6_addr l3_gateway = {.s6_addr = {0xfe, 0x80, [15] = 1}};
static const struct in6_addr all_nodes = {.s6_addr = {0xff, 0x02, [15] = 1}};

void
l3_set_io(struct l3 *l3, const struct node_io *io)
{
    l3->io = *io;
}

void
l3_set_tracer(struct l3 *l3, const struct tracer *tracer)
{
    l3->tracer = tracer ? *tracer : (struct tracer){0};
}

const struct port_config *
l3_port(const struct l3 *l3, uint16_t number)
{
    return number < NEIGH_PORTS ? l3->ports[number] : NULL;
}

uint16_t
l3_host_port(const struct l3 *l3, const struct in6_addr *host)
{
    struct in6_addr next_hop;
    uint16_t number;

    if (!l3_lookup(l3, host, &number, &next_hop)) {
        return 0;
    }
    const struct port_config *port = l3_port(l3, number);
    return port && port->role == ROLE_HOST && !memcmp(&port->peer_address, host, sizeof *host)
               ? number
               : 0;
}

uint16_t
l3_port_to(const struct l3 *l3, const struct in6_addr *node)
{
    const struct port_config *port = addr_map_find(l3->nodes, node, 0);

    return port ? port->number : 0;
}

/* The port of a neighbour.  It exists: a port's neighbours are forgotten before the port is. */
static const struct port_config *
neigh_port(const struct l3 *l3, uint16_t number)
{
    assert(l3->ports[number]);
    return l3->ports[number];
}

/* What the node calls itself on this port. */
static const struct in6_addr *
own_address(const struct l3 *l3, const struct port_config *port)
{
    return port->role == ROLE_HOST ? &l3_gateway : &l3->address;
}

static void
send_nd(struct l3 *l3, const struct port_config *port, const uint8_t eth_dst[6], struct nd_msg *m)
{
    struct packet *p = packet_get(l3->pool);
    if (!p) {
        l3->drops[DROP_pool_empty]++;
        return;
    }
    m->src = *own_address(l3, port);
    memcpy(m->mac, port->mac, sizeof m->mac);
    nd_build(p, port->mac, eth_dst, m);
    l3->io.tx(l3->io.aux, port->number, p);
}

/*
 * Output.
 */

static struct eth_hdr
make_eth(const struct port_config *port, const uint8_t mac[6])
{
    struct eth_hdr eth = {.type = be16_put(ETH_TYPE_IP6)};

    memcpy(eth.dst, mac, sizeof eth.dst);
    memcpy(eth.src, port->mac, sizeof eth.src);
    return eth;
}

/* Puts 'eth' in front and sends.  Consumes p. */
static enum drop_reason
send_frame(struct l3 *l3, uint16_t port, struct packet *p, const struct eth_hdr *eth)
{
    void *start = packet_push(p, sizeof *eth);
    if (!start) {
        packet_put(p);
        return DROP_too_long;
    }
    memcpy(start, eth, sizeof *eth);
    l3->io.tx(l3->io.aux, port, p);
    return DROP_none;
}

enum drop_reason
l3_send_to_mac(struct l3 *l3, const struct port_config *port, struct packet *p,
               const uint8_t mac[6])
{
    struct eth_hdr eth = make_eth(port, mac);

    return send_frame(l3, port->number, p, &eth);
}

static const struct route_config *
find_route(const struct l3 *l3, const struct in6_addr *addr)
{
    uint32_t i;

    return fib_lookup(l3->fib, addr, &i) ? &l3->routes[i] : NULL;
}

static struct in6_addr
next_hop_of(const struct route_config *route, const struct in6_addr *dst)
{
    return IN6_IS_ADDR_UNSPECIFIED(&route->next_hop) ? *dst : route->next_hop;
}

/* What a router does not pass on, RFC 4291 sections 2.5.2, 2.5.3, 2.5.6 and 2.7. */
static bool
is_link_scope(const struct in6_addr *addr)
{
    return IN6_IS_ADDR_LINKLOCAL(addr) || IN6_IS_ADDR_MULTICAST(addr)
           || IN6_IS_ADDR_UNSPECIFIED(addr) || IN6_IS_ADDR_LOOPBACK(addr);
}

/* Where a packet for 'dst' leaves. */
static enum drop_reason
route(const struct l3 *l3, const struct in6_addr *dst, const struct port_config **port,
      struct in6_addr *next_hop)
{
    if (l3_is_local(l3, dst)) {
        return DROP_not_for_us;
    }
    if (!memcmp(dst, &l3->locator, NODE_LOCATOR_LEN)) {
        TRACE(&l3->tracer, "%s: in this node's locator, no SID", TRACE_ADDR(dst));
        return DROP_sid_unknown;
    }
    const struct route_config *r = is_link_scope(dst) ? NULL : find_route(l3, dst);
    if (!r) {
        TRACE(&l3->tracer, "%s: no route", TRACE_ADDR(dst));
        return DROP_no_route;
    }
    *port = l3_port(l3, r->port);
    *next_hop = next_hop_of(r, dst);
    TRACE(&l3->tracer, "route %s/%d: port %s, next hop %s", TRACE_ADDR(&r->prefix), r->plen,
          *port ? (*port)->name : "none", TRACE_ADDR(next_hop));
    return *port ? DROP_none : DROP_port_down;
}

static uint32_t
mtu_of(const struct l3 *l3, uint16_t port)
{
    return l3->io.mtu ? l3->io.mtu(l3->io.aux, port) : UINT32_MAX;
}

/* Does the packet fit the port, whose MTU is put into *mtu? */
static enum drop_reason
check_mtu(const struct l3 *l3, const struct packet *p, const struct port_config *port,
          uint32_t *mtu)
{
    /* cppcheck-suppress ctunullpointer; nobody asks without a port. */
    *mtu = mtu_of(l3, port->number);
    if (packet_size(p) <= *mtu) {
        return DROP_none;
    }
    TRACE(&l3->tracer, "%zu bytes, mtu of port %s is %u", packet_size(p), port->name, *mtu);
    return DROP_too_long;
}

enum drop_reason
l3_multicast(struct l3 *l3, struct packet *p, uint16_t number, enum l3_errors errors, uint64_t now)
{
    const struct port_config *port = l3_port(l3, number);
    uint32_t mtu = 0;
    uint8_t mac[6];

    enum drop_reason why = port ? check_mtu(l3, p, port, &mtu) : DROP_port_down;
    if (why) {
        l3_answer_drop(l3, p, 0, errors, why, mtu, now);
        packet_put(p);
        return why;
    }
    nd_multicast_mac(&((const struct ip6_hdr_wire *) p->data)->dst, mac);
    return l3_send_to_mac(l3, port, p, mac);
}

/* Does *next hold for 'p'?  A listener to traces hears how it was found out. */
static bool
is_known(const struct l3 *l3, const struct packet *p, const struct l3_next *next, uint64_t now)
{
    return now < next->until && *next->changes == next->seen && !l3->tracer.line
           && packet_size(p) <= mtu_of(l3, next->port);
}

/* Notes in *next how neigh_resolve() has just sent to 'mac'. */
static void
note_next(const struct l3 *l3, struct l3_next *next, const struct port_config *port,
          const uint8_t mac[6])
{
    const uint64_t *changes = neigh_changes(l3->neighs, port->number);

    *next = (struct l3_next){
        .until = neigh_until(l3->neighs, port->number),
        .changes = changes,
        .seen = *changes,
        .port = port->number,
        .eth = make_eth(port, mac),
    };
}

enum drop_reason
l3_output(struct l3 *l3, struct packet *p, enum l3_errors errors, uint64_t now)
{
    struct l3_next next = {.until = 0};

    return l3_output_next(l3, p, &next, errors, now);
}

/* Sends 'p' out of 'port' to 'next_hop', unless there is a reason 'why' not.  Consumes it. */
static enum drop_reason
send_to_next_hop(struct l3 *l3, struct packet *p, enum drop_reason why,
                 const struct port_config *port, const struct in6_addr *next_hop,
                 struct l3_next *next, enum l3_errors errors, uint64_t now)
{
    const uint8_t *mac = NULL;
    uint32_t mtu = 0;

    if (!why) {
        why = check_mtu(l3, p, port, &mtu);
    }
    if (!why) {
        p->l3_errors = (uint8_t) errors;
        why = neigh_resolve(l3->neighs, port->number, next_hop, p, now, &mac);
        TRACE(&l3->tracer, "neighbour %s: %s", TRACE_ADDR(next_hop),
              why   ? drop_name(why)
              : mac ? "known"
                    : "asked for, packet waits");
    }

    if (why) {
        l3_answer_drop(l3, p, 0, errors, why, mtu, now);
        packet_put(p);
    } else if (mac) {
        note_next(l3, next, port, mac);
        why = send_frame(l3, port->number, p, &next->eth);
    }
    return why;
}

enum drop_reason
l3_output_next(struct l3 *l3, struct packet *p, struct l3_next *next, enum l3_errors errors,
               uint64_t now)
{
    if (is_known(l3, p, next, now)) {
        return send_frame(l3, next->port, p, &next->eth);
    }
    const struct in6_addr *dst = &((const struct ip6_hdr_wire *) p->data)->dst;
    const struct port_config *port = NULL;
    struct in6_addr next_hop;
    enum drop_reason why = route(l3, dst, &port, &next_hop);

    return send_to_next_hop(l3, p, why, port, &next_hop, next, errors, now);
}

enum drop_reason
l3_output_port(struct l3 *l3, struct packet *p, uint16_t number, enum l3_errors errors,
               uint64_t now)
{
    const struct port_config *port = l3_port(l3, number);
    const struct in6_addr *dst = &((const struct ip6_hdr_wire *) p->data)->dst;
    enum drop_reason why = is_link_scope(dst) ? DROP_no_route : port ? DROP_none : DROP_port_down;
    struct l3_next next;

    return send_to_next_hop(l3, p, why, port, port ? &port->peer_address : NULL, &next, errors,
                            now);
}

bool
l3_port_is_up(const struct l3 *l3, uint16_t port)
{
    return l3_port(l3, port) && (!l3->io.up || l3->io.up(l3->io.aux, port));
}

bool
l3_fits_with_header(struct l3 *l3, const struct packet *p, size_t header_len, uint16_t number,
                    const struct in6_addr *dst, uint64_t now)
{
    struct in6_addr next_hop;

    if (number ? !l3_port(l3, number) : !l3_lookup(l3, dst, &number, &next_hop)) {
        return true; /* there is another reason not to send it. */
    }
    uint32_t mtu = mtu_of(l3, number);
    if (packet_size(p) + header_len <= mtu) {
        return true;
    }
    TRACE(&l3->tracer, "%zu bytes and a header of %zu, mtu of port %u is %u", packet_size(p),
          header_len, number, mtu);
    mtu = mtu > header_len ? mtu - (uint32_t) header_len : 0;
    l3_answer_drop(l3, p, 0, L3_ERRORS_ALL, DROP_too_long, mtu, now);
    return false;
}

static inline enum drop_reason
forward_begin(struct l3 *l3, struct packet *p, const struct parsed *parsed, uint64_t now)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (p->data + parsed->ip.ofs);

    if (is_link_scope(&ip->src)) {
        packet_put(p);
        return DROP_ip6_src;
    }
    if (l3_is_group_frame(p)) {
        packet_put(p); /* all routers of the link have it: it would multiply. */
        return DROP_eth_not_mine;
    }
    TRACE(&l3->tracer, "forward to %s: hop limit %d", TRACE_ADDR(&ip->dst), ip->hlim);
    if (ip->hlim <= 1) {
        l3_icmp_time_exceeded(l3, p, parsed, now);
        packet_put(p);
        return DROP_hop_limit;
    }
    ip->hlim--;
    p->len = parsed->ip.end; /* without the link's padding. */
    packet_pull(p, parsed->ip.ofs);
    return DROP_none;
}

enum drop_reason
l3_forward_begin(struct l3 *l3, struct packet *p, const struct parsed *parsed, uint64_t now)
{
    return forward_begin(l3, p, parsed, now);
}

enum drop_reason
l3_forward(struct l3 *l3, struct packet *p, const struct parsed *parsed, uint64_t now)
{
    enum drop_reason why = forward_begin(l3, p, parsed, now);

    return why ? why : l3_output(l3, p, L3_ERRORS_ALL, now);
}

enum drop_reason
l3_forward_port(struct l3 *l3, struct packet *p, const struct parsed *parsed, uint16_t port,
                uint64_t now)
{
    enum drop_reason why = l3_forward_begin(l3, p, parsed, now);

    return why ? why : l3_output_port(l3, p, port, L3_ERRORS_ALL, now);
}

static void
neigh_solicit(void *l3_, uint16_t number, const struct in6_addr *addr, const uint8_t *mac)
{
    struct l3 *l3 = l3_;
    struct nd_msg m = {.type = ND_NS, .target = *addr};
    uint8_t group_mac[6];

    if (mac) {
        m.dst = *addr;
    } else {
        m.dst = nd_solicited_node(addr);
        nd_multicast_mac(&m.dst, group_mac);
        mac = group_mac;
    }
    send_nd(l3, neigh_port(l3, number), mac, &m);
}

static void
neigh_send(void *l3_, uint16_t number, struct packet *p, const uint8_t mac[6])
{
    struct l3 *l3 = l3_;
    enum drop_reason why = l3_send_to_mac(l3, neigh_port(l3, number), p, mac);
    if (why) {
        l3->drops[why]++;
    }
}

static void
neigh_drop(void *l3_, uint16_t number, struct packet *p, enum drop_reason why)
{
    struct l3 *l3 = l3_;

    (void) number;
    l3->drops[why]++;
    if (why == DROP_no_neighbour) {
        p->next = l3->unreachable; /* the table is busy: l3_timer() answers. */
        l3->unreachable = p;
    } else {
        packet_put(p);
    }
}

/*
 * Neighbour discovery, received.
 */

/* Is 'target' an address to answer for on this port, and is it the node's own? */
static bool
answers_for(const struct l3 *l3, const struct port_config *port, const struct in6_addr *target,
            bool *own)
{
    *own = IN6_ARE_ADDR_EQUAL(target, &l3->address)
           || (port->role == ROLE_HOST && IN6_ARE_ADDR_EQUAL(target, &l3_gateway));
    if (*own) {
        return true;
    }
    if (port->role == ROLE_HOST && is_proxy_address(target)) {
        return true;
    }
    return l3->has_host && port->role != ROLE_HOST && IN6_ARE_ADDR_EQUAL(target, &l3->host);
}

static void
solicited(struct l3 *l3, const struct port_config *port, const uint8_t eth_src[6],
          const struct nd_msg *ns, uint64_t now)
{
    bool own;

    if (ns->has_mac && IN6_ARE_ADDR_EQUAL(&ns->src, &port->peer_address)) {
        neigh_learn(l3->neighs, port->number, &ns->src, ns->mac, now);
    }
    if (!answers_for(l3, port, &ns->target, &own)) {
        return;
    }

    /* A station that tests whether it may use the address (RFC 4862) has none to
     * answer to yet. */
    bool to_all = IN6_IS_ADDR_UNSPECIFIED(&ns->src);
    struct nd_msg na = {
        .type = ND_NA,
        .dst = to_all ? all_nodes : ns->src,
        .target = ns->target,
        .router = own,
        .solicited = !to_all,
        .override = own, /* not in a proxy's answer, RFC 4861 section 7.2.8. */
    };
    uint8_t mac[6];
    if (to_all) {
        nd_multicast_mac(&all_nodes, mac);
    } else {
        memcpy(mac, ns->has_mac ? ns->mac : eth_src, sizeof mac);
    }
    send_nd(l3, port, mac, &na);
}

bool
l3_input(struct l3 *l3, uint16_t number, const struct packet *p, const struct parsed *parsed,
         uint64_t now)
{
    const struct port_config *port = l3_port(l3, number);
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (p->data + parsed->ip.ofs);
    struct nd_msg m;

    if (!port) {
        return false;
    }
    const struct eth_hdr *eth = (const struct eth_hdr *) p->data;
    switch (nd_parse(p->data, parsed, &m)) {
    case ND_VALID:
        if (m.type == ND_NS) {
            solicited(l3, port, eth->src, &m, now);
        } else if (m.solicited) {
            neigh_answer(l3->neighs, number, &m.target, m.has_mac ? m.mac : NULL, m.override, now);
        } else if (m.has_mac && m.override && IN6_ARE_ADDR_EQUAL(&m.target, &port->peer_address)) {
            neigh_learn(l3->neighs, number, &m.target, m.mac, now);
        }
        return true;
    case ND_INVALID: l3->drops[DROP_nd_invalid]++; return true;
    case ND_OTHER: return true;
    case ND_NONE: break;
    }
    return IN6_IS_ADDR_MC_LINKLOCAL(&ip->dst) || IN6_IS_ADDR_MC_NODELOCAL(&ip->dst);
}

bool
l3_mac_ok(const struct l3 *l3, uint16_t number, const struct packet *p)
{
    const struct port_config *port = l3_port(l3, number);
    const struct eth_hdr *eth = (const struct eth_hdr *) p->data;

    return port && p->len >= sizeof *eth
           && (eth->dst[0] & 1 || !memcmp(eth->dst, port->mac, sizeof eth->dst));
}

/*
 * Configuration.
 */

struct l3 *
l3_create(const struct node_io *io, struct packet_pool *pool, uint64_t drops[N_DROP_REASONS])
{
    struct l3 *l3 = must_calloc(1, sizeof *l3);
    l3->io = *io;
    l3->drops = drops;
    l3->pool = pool;
    l3->fib = fib_create();
    l3->neighs = neigh_table_create(&(struct neigh_ops){
        .solicit = neigh_solicit,
        .send = neigh_send,
        .drop = neigh_drop,
        .aux = l3,
    });
    return l3;
}

void
l3_destroy(struct l3 *l3)
{
    if (!l3) {
        return;
    }
    neigh_table_destroy(l3->neighs);
    fib_destroy(l3->fib);
    for (size_t i = 0; i < NEIGH_PORTS; i++) {
        port_config_destroy(l3->ports[i]);
    }
    addr_map_destroy(l3->nodes);
    free(l3->routes);
    free(l3);
}

/* Do neighbours learnt on 'a' hold for 'b'? */
static bool
same_link(const struct port_config *a, const struct port_config *b)
{
    return a->kind == b->kind && a->role == b->role && !strcmp(a->name, b->name)
           && !memcmp(a->mac, b->mac, sizeof a->mac)
           && IN6_ARE_ADDR_EQUAL(&a->peer_address, &b->peer_address);
}

static void
configure_ports(struct l3 *l3, const struct node_config *config)
{
    const struct port_config *wanted[NEIGH_PORTS] = {NULL};

    for (size_t i = 0; i < config->n_ports; i++) {
        if (config->ports[i].number < NEIGH_PORTS) {
            wanted[config->ports[i].number] = &config->ports[i];
        }
    }
    addr_map_destroy(l3->nodes);
    l3->nodes = addr_map_create(config->n_ports);
    for (uint16_t i = 0; i < NEIGH_PORTS; i++) {
        if (l3->ports[i] && !(wanted[i] && same_link(l3->ports[i], wanted[i]))) {
            neigh_flush(l3->neighs, i);
            l3->errors[i] = (struct icmp6_limit){0};
        }
        port_config_destroy(l3->ports[i]);
        l3->ports[i] = wanted[i] ? port_config_clone(wanted[i]) : NULL;
        if (wanted[i] && wanted[i]->role != ROLE_HOST) { /* the first one to a node stays. */
            addr_map_insert(l3->nodes, &wanted[i]->peer_address, 0, l3->ports[i]);
        }
    }
}

void
l3_configure(struct l3 *l3, const struct node_config *config)
{
    l3->address = config->address;
    l3->locator = node_locator(config->id);
    neigh_touch(l3->neighs);
    configure_ports(l3, config);

    free(l3->routes);
    l3->routes = must_copy(config->routes, config->n_routes, sizeof *l3->routes);
    l3->n_routes = config->n_routes;
    fib_destroy(l3->fib);
    l3->fib = fib_create();
    for (size_t i = 0; i < l3->n_routes; i++) {
        fib_set(l3->fib, &l3->routes[i].prefix, l3->routes[i].plen, (uint32_t) i);
    }
}

void
l3_proxy_host(struct l3 *l3, const struct in6_addr *host)
{
    l3->has_host = host;
    if (host) {
        l3->host = *host;
    }
}

bool
l3_is_local(const struct l3 *l3, const struct in6_addr *addr)
{
    return IN6_ARE_ADDR_EQUAL(addr, &l3->address) || IN6_ARE_ADDR_EQUAL(addr, &l3_gateway);
}

uint64_t
l3_deadline(const struct l3 *l3)
{
    return neigh_deadline(l3->neighs);
}

void
l3_timer(struct l3 *l3, uint64_t now)
{
    struct packet *p;

    neigh_timer(l3->neighs, now);
    while ((p = l3->unreachable)) {
        l3->unreachable = p->next;
        l3_answer_drop(l3, p, 0, (enum l3_errors) p->l3_errors, DROP_no_neighbour, 0, now);
        packet_put(p);
    }
}

size_t
l3_n_neighs(const struct l3 *l3)
{
    return neigh_count(l3->neighs);
}

bool
l3_get_neigh(const struct l3 *l3, size_t i, struct l3_neigh_info *info)
{
    const uint8_t *mac;

    memset(info, 0, sizeof *info);
    if (!neigh_get(l3->neighs, i, &info->port, &info->addr, &mac)) {
        return false;
    }
    info->resolved = mac != NULL;
    if (mac) {
        memcpy(info->mac, mac, sizeof info->mac);
    }
    return true;
}

size_t
l3_n_routes(const struct l3 *l3)
{
    return l3->n_routes;
}

bool
l3_get_route(const struct l3 *l3, size_t i, struct route_config *route)
{
    if (i >= l3->n_routes) {
        return false;
    }
    *route = l3->routes[i];
    return true;
}

bool
l3_lookup(const struct l3 *l3, const struct in6_addr *addr, uint16_t *port,
          struct in6_addr *next_hop)
{
    const struct route_config *r = find_route(l3, addr);
    if (!r) {
        return false;
    }
    *port = r->port;
    *next_hop = next_hop_of(r, addr);
    return true;
}
