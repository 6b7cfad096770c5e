/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain forwarding and neighbour discovery: frames in, frames and drops out.
 */
#include <arpa/inet.h>
#include <string.h>

#include "lib/inet-csum.h"
#include "lib/l3.h"
#include "lib/nd.h"
#include "tests/unit/suites.h"

#define SEC       1000000u
#define NODE_ID   0x100
#define HOST_PORT 1
#define UPLINK    2

static struct packet_pool *pool;
static struct l3 *l3;
static struct node_config config;
static struct port_config ports[2];
static struct route_config routes[3];
static struct in6_addr host, node, far_node;

static unsigned n_tx;
static uint64_t n_dropped[N_DROP_REASONS];
static uint16_t tx_port; /* of the last frame. */
static uint8_t tx[PACKET_ROOM];
static size_t tx_len;

static const uint8_t host_mac[6] = {2, 0xaa, 0, 0, 0, 1};
static const uint8_t far_mac[6] = {2, 0xbb, 0, 0, 0, 1};

static struct in6_addr
addr(const char *s)
{
    struct in6_addr a;
    ck_assert_int_eq(inet_pton(AF_INET6, s, &a), 1);
    return a;
}

static void
on_tx(void *aux, uint16_t port, struct packet *p)
{
    (void) aux;
    n_tx++;
    tx_port = port;
    tx_len = packet_flatten(p, tx, sizeof tx);
    packet_put(p);
}

static void
setup(void)
{
    const struct node_io io = {.tx = on_tx};

    host = addr("fd00:1::1");
    node = node_address(NODE_ID);
    far_node = node_address(NODE_ID + 1);
    ports[0] = (struct port_config){.number = HOST_PORT,
                                    .name = "h1",
                                    .kind = PORT_TAP,
                                    .role = ROLE_HOST,
                                    .peer = "h1",
                                    .peer_address = host};
    ports[1] = (struct port_config){.number = UPLINK,
                                    .name = "up",
                                    .kind = PORT_PACKET,
                                    .role = ROLE_FABRIC,
                                    .peer = "n2",
                                    .peer_address = far_node};
    node_port_mac(NODE_ID, HOST_PORT, ports[0].mac);
    node_port_mac(NODE_ID, UPLINK, ports[1].mac);
    routes[0] = (struct route_config){host, 128, HOST_PORT, in6addr_any};
    routes[1] = (struct route_config){in6addr_any, 0, UPLINK, far_node};
    routes[2] = (struct route_config){far_node, 128, UPLINK, in6addr_any};
    config = (struct node_config){.id = NODE_ID,
                                  .address = node,
                                  .n_ports = 2,
                                  .ports = ports,
                                  .n_routes = 3,
                                  .routes = routes};

    pool = packet_pool_create(64);
    l3 = l3_create(&io, pool, n_dropped);
    l3_configure(l3, &config);
    n_tx = 0;
    memset(n_dropped, 0, sizeof n_dropped);
}

static void
teardown(void)
{
    l3_destroy(l3);
    ck_assert_uint_eq(packet_pool_n_free(pool), 64);
    packet_pool_destroy(pool);
}

/* A frame to the node with an empty payload. */
static struct packet *
plain(const struct in6_addr *src, const struct in6_addr *dst, uint8_t hlim)
{
    struct packet *p = packet_get(pool);
    struct eth_hdr *eth = (struct eth_hdr *) p->data;
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (eth + 1);

    p->len = sizeof *eth + sizeof *ip;
    memset(p->data, 0, p->len);
    eth->type = be16_put(ETH_TYPE_IP6);
    ip6_set_vtf(ip, 0, 0);
    ip->nh = IP6_NH_NONE;
    ip->hlim = hlim;
    ip->src = *src;
    ip->dst = *dst;
    return p;
}

static enum drop_reason
forward(const struct in6_addr *src, const struct in6_addr *dst, uint8_t hlim, uint64_t now)
{
    struct packet *p = plain(src, dst, hlim);
    struct parsed parsed;

    ck_assert_int_eq(parse_outer(p->data, p->len, &parsed), DROP_none);
    ck_assert(!l3_input(l3, HOST_PORT, p, &parsed, now));
    return l3_forward(l3, p, &parsed, now);
}

/* Gives l3 the frame, which it must take. */
static void
input(uint16_t port, struct packet *p, uint64_t now)
{
    struct parsed parsed;

    ck_assert_int_eq(parse_outer(p->data, p->len, &parsed), DROP_none);
    ck_assert(l3_input(l3, port, p, &parsed, now));
    packet_put(p);
}

static struct packet *
nd(const uint8_t mac[6], const struct nd_msg *m)
{
    struct packet *p = packet_get(pool);
    struct nd_msg with_mac = *m;
    uint8_t group_mac[6];

    memcpy(with_mac.mac, mac, 6);
    nd_multicast_mac(&m->dst, group_mac);
    nd_build(p, mac, group_mac, &with_mac);
    return p;
}

static struct packet *
ns(const struct in6_addr *src, const uint8_t mac[6], const struct in6_addr *target)
{
    return nd(mac,
              &(struct nd_msg){
                  .type = ND_NS, .src = *src, .dst = nd_solicited_node(target), .target = *target});
}

static struct packet *
na(const struct in6_addr *target, const uint8_t mac[6], const struct in6_addr *dst,
   bool is_solicited)
{
    return nd(mac, &(struct nd_msg){.type = ND_NA,
                                    .src = *target,
                                    .dst = *dst,
                                    .target = *target,
                                    .solicited = is_solicited,
                                    .override = true});
}

/* The last frame sent, read as neighbour discovery. */
static struct nd_msg
sent_nd(void)
{
    struct nd_msg m;
    struct parsed parsed;
    struct packet *p = packet_from_bytes(pool, tx, tx_len);

    ck_assert_int_eq(parse_outer(p->data, p->len, &parsed), DROP_none);
    ck_assert_int_eq(nd_parse(p->data, &parsed, &m), ND_VALID);
    packet_put(p);
    return m;
}

static void
ck_eq(const struct in6_addr *a, const struct in6_addr *b)
{
    ck_assert_mem_eq(a, b, sizeof *a);
}

/* From scapy 2.5.0: Ether/IPv6/ICMPv6ND_NS/ICMPv6NDOptSrcLLAddr and ..._NA/...DstLLAddr. */
static const uint8_t scapy_ns[86] =
    "\x33\x33\xff\x00\x00\x01\x02\x5f\x01\x00\x00\x01\x86\xdd\x60\x00\x00\x00\x00\x20\x3a\xff"
    "\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xff\x02\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x01\xff\x00\x00\x01\x87\x00\x7a\xb9\x00\x00\x00\x00\xfd\x00\x00\x01"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x01\x02\x5f\x01\x00\x00\x01";
static const uint8_t scapy_na[86] =
    "\x02\xaa\x00\x00\x00\x01\x02\x5f\x01\x00\x00\x01\x86\xdd\x60\x00\x00\x00\x00\x20\x3a\xff"
    "\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xfd\x00\x00\x01\x00\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x88\x00\x39\xb7\x40\x00\x00\x00\xfd\x00\xff\xff"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x02\x01\x02\x5f\x01\x00\x00\x01";

START_TEST(frames_as_scapy_makes_them)
    {
        struct in6_addr src = addr("fd00:1::9"), proxy = addr("fd00:ffff::7");

        ck_assert_int_eq(forward(&src, &host, 64, 0), DROP_none);
        ck_assert_uint_eq(tx_len, sizeof scapy_ns);
        ck_assert_mem_eq(tx, scapy_ns, sizeof scapy_ns);

        input(HOST_PORT, ns(&host, host_mac, &proxy), 0);
        ck_assert_uint_eq(tx_len, sizeof scapy_na);
        ck_assert_mem_eq(tx, scapy_na, sizeof scapy_na);
    }
END_TEST

START_TEST(forwards)
    {
        struct in6_addr dst = addr("fd00:9::9"), next_hop;
        uint16_t port;
        const struct eth_hdr *eth = (const struct eth_hdr *) tx;

        ck_assert(l3_lookup(l3, &dst, &port, &next_hop));
        ck_assert_uint_eq(port, UPLINK);
        ck_eq(&next_hop, &far_node);
        ck_assert_int_eq(forward(&host, &dst, 64, 0), DROP_none);
        struct nd_msg m = sent_nd();
        ck_eq(&m.src, &node); /* between nodes the node has its address. */
        ck_eq(&m.target, &far_node);
        ck_assert_uint_eq(tx_port, UPLINK);

        input(UPLINK, na(&far_node, far_mac, &node, true), 1);
        ck_assert_uint_eq(n_tx, 2); /* what waited. */
        ck_assert_uint_eq(tx_len, 54);
        ck_assert_mem_eq(eth->dst, far_mac, 6);
        ck_assert_mem_eq(eth->src, ports[1].mac, 6);
        ck_assert_uint_eq(tx[14 + 7], 63);
        ck_assert_int_eq(forward(&host, &dst, 2, 2), DROP_none);
        ck_assert_uint_eq(n_tx, 3);
        ck_assert_uint_eq(tx[14 + 7], 1);
    }
END_TEST

START_TEST(does_not_forward)
    {
        struct in6_addr dst = addr("fd00:9::9"), ll = addr("fe80::5"), mc = addr("ff0e::5");

        ck_assert_int_eq(forward(&host, &dst, 1, 0), DROP_hop_limit);
        ck_assert_int_eq(forward(&host, &dst, 0, 0), DROP_hop_limit);
        ck_assert_int_eq(forward(&host, &ll, 64, 0), DROP_no_route);
        ck_assert_int_eq(forward(&host, &mc, 64, 0), DROP_no_route);
        ck_assert_int_eq(forward(&host, &in6addr_any, 64, 0), DROP_no_route);
        ck_assert_int_eq(forward(&ll, &dst, 64, 0), DROP_ip6_src);
        ck_assert_int_eq(forward(&in6addr_any, &dst, 64, 0), DROP_ip6_src);
        ck_assert_int_eq(forward(&host, &node, 64, 0), DROP_not_for_us);
        config.n_routes = 1;
        l3_configure(l3, &config);
        ck_assert_int_eq(forward(&host, &dst, 64, 0), DROP_no_route);
        config.n_routes = 3;
        config.n_ports = 1;
        l3_configure(l3, &config);
        ck_assert_int_eq(forward(&host, &dst, 64, 0), DROP_port_down);
    }
END_TEST

START_TEST(padding_is_not_forwarded)
    {
        struct in6_addr dst = addr("fd00:9::9");
        struct packet *p = plain(&host, &dst, 9);
        struct parsed parsed;

        input(UPLINK, ns(&far_node, far_mac, &node), 0);
        memset(p->data + p->len, 0, 6);
        p->len += 6;
        ck_assert_int_eq(parse_outer(p->data, p->len, &parsed), DROP_none);
        ck_assert_int_eq(l3_forward(l3, p, &parsed, 0), DROP_none);
        ck_assert_uint_eq(tx_len, 54);
    }
END_TEST

START_TEST(gives_up)
    {
        ck_assert_int_eq(forward(&far_node, &host, 64, 0), DROP_none);
        for (unsigned i = 1; i <= 3; i++) {
            ck_assert_uint_eq(l3_deadline(l3), i * SEC);
            l3_timer(l3, i * SEC);
        }
        ck_assert_uint_eq(n_tx, 4); /* asked three times, then told the sender: asked for that. */
        ck_assert_uint_eq(n_dropped[DROP_no_neighbour], 1);
        ck_assert_int_eq(forward(&far_node, &host, 64, 3 * SEC), DROP_no_neighbour);
    }
END_TEST

START_TEST(probe_is_unicast)
    {
        input(HOST_PORT, ns(&host, host_mac, &node), 0); /* learns the peer. */
        n_tx = 0;
        ck_assert_int_eq(forward(&far_node, &host, 64, 0), DROP_none);
        ck_assert_uint_eq(n_tx, 2); /* the question, then the packet. */
        ck_assert_int_eq(forward(&far_node, &host, 64, 0), DROP_none);
        ck_assert_mem_eq(tx, host_mac, 6);
        l3_timer(l3, SEC); /* asks again. */
        struct nd_msg m = sent_nd();
        ck_eq(&m.dst, &host);
        ck_assert_mem_eq(tx, host_mac, 6);
    }
END_TEST

/* Who is answered, on which port. */
static const struct {
    const char *target;
    uint16_t port;
    bool answered, own;
} questions[] = {
    {"5f00:0:100::1", HOST_PORT, true, true},
    {"5f00:0:100::1", UPLINK, true, true},
    {"fe80::1", HOST_PORT, true, true},
    {"fe80::1", UPLINK, false, false},
    {"fd00:ffff::7", HOST_PORT, true, false},
    {"fd00:ffff::7", UPLINK, false, false},
    {"fd00:fffe::7", HOST_PORT, false, false},
    {"fd00:1::1", UPLINK, true, false}, /* the host, proxied. */
    {"fd00:1::1", HOST_PORT, false, false},
    {"fd00:1::2", UPLINK, false, false},
};

START_TEST(answers)
    {
        uint16_t port = questions[_i].port;
        struct in6_addr target = addr(questions[_i].target);
        struct in6_addr asker = addr("fe80::77");

        l3_proxy_host(l3, &host);
        input(port, ns(&asker, far_mac, &target), 0);
        ck_assert_uint_eq(n_tx, questions[_i].answered);
        ck_assert_uint_eq(l3_n_neighs(l3), 0);
        if (questions[_i].answered) {
            struct nd_msg m = sent_nd();
            ck_assert_int_eq(m.type, ND_NA);
            ck_assert(m.solicited);
            ck_assert_int_eq(m.router, questions[_i].own);
            ck_assert_int_eq(m.override, questions[_i].own);
            ck_eq(&m.target, &target);
            ck_eq(&m.dst, &asker);
            ck_assert_mem_eq(m.mac, ports[port - 1].mac, 6);
            ck_assert_mem_eq(tx, far_mac, 6);
            ck_assert_uint_eq(tx_port, port);
        }
    }
END_TEST

static void
fix_csum(struct packet *p)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (p->data + 14);
    uint8_t *icmp = (uint8_t *) (ip + 1);

    memset(icmp + 2, 0, 2);
    be16_t csum = inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_ICMPV6, icmp, be16_get(ip->plen));
    memcpy(icmp + 2, &csum, 2);
}

/* Cuts the option off. */
static void
drop_option(struct packet *p)
{
    ((struct ip6_hdr_wire *) (p->data + 14))->plen = be16_put(24);
    p->len -= 8;
    fix_csum(p);
}

START_TEST(address_test_is_answered_to_all)
    {
        struct packet *p = ns(&in6addr_any, host_mac, &node);
        struct in6_addr all_nodes = addr("ff02::1");

        drop_option(p);
        input(HOST_PORT, p, 0);
        struct nd_msg m = sent_nd();
        ck_eq(&m.dst, &all_nodes);
        ck_assert(!m.solicited);
        ck_assert_mem_eq(tx, "\x33\x33\0\0\0\1", 6);

        input(HOST_PORT, ns(&in6addr_any, host_mac, &node), 0); /* with a MAC: invalid. */
        ck_assert_uint_eq(n_dropped[DROP_nd_invalid], 1);
    }
END_TEST

START_TEST(question_without_mac)
    {
        struct packet *p = ns(&host, host_mac, &node);

        drop_option(p);
        input(HOST_PORT, p, 0);
        ck_assert_mem_eq(tx, host_mac, 6); /* Ethernet's source. */
        ck_assert_uint_eq(l3_n_neighs(l3), 0);
    }
END_TEST

/* One byte changed in a good advertisement; 'sum' says whether the checksum is made good. */
static const struct {
    size_t ofs;
    uint8_t value;
    bool sum;
} corruptions[] = {
    {14 + 7, 254, true},        /* hop limit. */
    {14 + 40 + 1, 1, true},     /* code. */
    {14 + 40 + 2, 0x5a, false}, /* checksum. */
    {14 + 40 + 8, 0xff, true},  /* multicast target. */
    {14 + 40 + 25, 0, true},    /* option length 0. */
    {14 + 40 + 25, 2, true},    /* option runs over. */
    {14 + 40 + 26, 1, true},    /* multicast MAC. */
    {14 + 24, 0xff, true},      /* solicited, yet sent to a group. */
};

START_TEST(invalid)
    {
        struct packet *p = na(&host, host_mac, &node, true);

        ck_assert_int_eq(forward(&far_node, &host, 64, 0), DROP_none);
        p->data[corruptions[_i].ofs] = corruptions[_i].value;
        if (corruptions[_i].sum) {
            fix_csum(p);
        }
        input(HOST_PORT, p, 0);
        ck_assert_uint_eq(n_dropped[DROP_nd_invalid], 1);
        ck_assert_uint_eq(n_tx, 1);
        input(HOST_PORT, na(&host, host_mac, &node, true), 0); /* the good one is taken. */
        ck_assert_uint_eq(n_tx, 2);
    }
END_TEST

START_TEST(unknown_option)
    {
        struct packet *p = na(&host, host_mac, &node, true);

        ck_assert_int_eq(forward(&far_node, &host, 64, 0), DROP_none);
        p->data[14 + 40 + 24] = 99; /* skipped, so that no MAC is left. */
        fix_csum(p);
        input(HOST_PORT, p, 0);
        ck_assert_uint_eq(n_dropped[DROP_nd_invalid], 0);
        ck_assert_uint_eq(n_tx, 1);

        p = na(&host, host_mac, &node, true);
        p->data[14 + 40 + 24] = 99;
        p->data[14 + 40 + 25] = 0; /* of no length: would be skipped for ever. */
        fix_csum(p);
        input(HOST_PORT, p, 0);
        ck_assert_uint_eq(n_dropped[DROP_nd_invalid], 1);
    }
END_TEST

/* A question or an answer cut at any length, in bounds that are its own. */
START_TEST(truncated)
    {
        struct packet *p = _i & 1 ? na(&host, host_mac, &node, true) : ns(&host, host_mac, &node);
        uint16_t plen = (uint16_t) (_i / 2);

        ((struct ip6_hdr_wire *) (p->data + 14))->plen = be16_put(plen);
        p->len = 14u + 40u + plen;
        if (plen >= 4) {
            fix_csum(p);
        }
        struct parsed parsed;
        ck_assert_int_eq(parse_outer(p->data, p->len, &parsed), DROP_none);
        (void) l3_input(l3, HOST_PORT, p, &parsed, 0);
        packet_put(p);
        ck_assert_uint_eq(n_tx, plen == 24 && !(_i & 1)); /* without option it is whole. */
        ck_assert_uint_eq(l3_n_neighs(l3), 0);
    }
END_TEST

START_TEST(forgeries)
    {
        struct in6_addr other = addr("fd00:1::2");
        struct l3_neigh_info info;

        input(HOST_PORT, na(&host, host_mac, &node, true), 0); /* not asked. */
        input(HOST_PORT, ns(&far_node, host_mac, &node), 0);   /* another port's peer. */
        input(HOST_PORT, ns(&other, host_mac, &node), 0);      /* nobody's. */
        ck_assert_uint_eq(l3_n_neighs(l3), 0);

        ck_assert_int_eq(forward(&host, &far_node, 64, 0), DROP_none);
        input(HOST_PORT, na(&far_node, host_mac, &node, true), 0); /* from another port. */
        input(UPLINK, na(&host, far_mac, &node, false), 0);        /* not the peer's. */
        ck_assert(l3_get_neigh(l3, 0, &info));
        ck_assert(!info.resolved);
        input(UPLINK, na(&far_node, far_mac, &node, true), 0);
        input(HOST_PORT, ns(&far_node, host_mac, &node), 0);
        ck_assert_uint_eq(l3_n_neighs(l3), 1);
        ck_assert(l3_get_neigh(l3, 0, &info));
        ck_assert(info.resolved);
        ck_assert_uint_eq(info.port, UPLINK);
        ck_assert_mem_eq(info.mac, far_mac, 6);
    }
END_TEST

/* The peer's MAC has changed: what waits goes there, but it is verified. */
START_TEST(unsolicited_advertisement)
    {
        static const uint8_t new_mac[6] = {2, 0xbb, 0, 0, 0, 2};
        const struct eth_hdr *eth = (const struct eth_hdr *) tx;

        ck_assert_int_eq(forward(&host, &far_node, 64, 0), DROP_none);
        input(UPLINK, na(&far_node, far_mac, &node, false), 0);
        ck_assert_uint_eq(n_tx, 2);
        ck_assert_mem_eq(eth->dst, far_mac, 6);

        input(UPLINK, na(&far_node, new_mac, &node, false), 1);
        ck_assert_int_eq(forward(&host, &far_node, 64, 1), DROP_none);
        ck_assert_uint_eq(n_tx, 4); /* a question before the packet. */
        ck_assert_mem_eq(eth->dst, new_mac, 6);
    }
END_TEST

START_TEST(link_groups_stay)
    {
        struct in6_addr ll = addr("fe80::5"), routers = addr("ff02::2"), mdns = addr("ff02::fb");

        input(HOST_PORT, plain(&ll, &routers, 255), 0);
        input(HOST_PORT, plain(&host, &mdns, 255), 0);
        ck_assert_uint_eq(n_tx, 0);
    }
END_TEST

START_TEST(reconfigure)
    {
        struct packet *held = plain(&host, &host, 64);

        input(HOST_PORT, ns(&host, host_mac, &node), 0);
        packet_pull(held, 14);
        ((struct ip6_hdr_wire *) held->data)->dst = far_node;
        ck_assert_int_eq(l3_output(l3, held, L3_ERRORS_ALL, 0), DROP_none);
        ck_assert_uint_eq(l3_n_neighs(l3), 2);
        l3_configure(l3, &config);
        ck_assert_uint_eq(l3_n_neighs(l3), 2);

        ports[1].peer_address = host; /* another station there. */
        l3_configure(l3, &config);
        ck_assert_uint_eq(l3_n_neighs(l3), 1);
        ck_assert_uint_eq(n_dropped[DROP_port_down], 1);
        config.n_ports = 0;
        l3_configure(l3, &config);
        ck_assert_uint_eq(l3_n_neighs(l3), 0);
        ck_assert_uint_eq(l3_n_routes(l3), 3);
    }
END_TEST

START_TEST(mac_filter)
    {
        struct packet *p = plain(&host, &node, 64);

        memcpy(p->data, ports[0].mac, 6);
        ck_assert(l3_mac_ok(l3, HOST_PORT, p));
        ck_assert(!l3_mac_ok(l3, UPLINK, p));
        ck_assert(!l3_mac_ok(l3, 77, p));
        memcpy(p->data, "\x33\x33\0\0\0\1", 6);
        ck_assert(l3_mac_ok(l3, UPLINK, p));
        packet_put(p);
    }
END_TEST

START_TEST(no_buffer_for_the_question)
    {
        struct packet *all[64];
        unsigned n = 0;
        struct packet *p = plain(&far_node, &host, 64);

        packet_pull(p, 14);
        while ((all[n] = packet_get(pool))) {
            n++;
        }
        ck_assert_int_eq(l3_output(l3, p, L3_ERRORS_ALL, 0), DROP_none);
        ck_assert_uint_eq(n_dropped[DROP_pool_empty], 1);
        while (n) {
            packet_put(all[--n]);
        }
        l3_timer(l3, SEC); /* asked after all. */
        ck_assert_uint_eq(n_tx, 1);
    }
END_TEST

Suite *
l3_suite(void)
{
    Suite *s = suite_create("l3");
    TCase *tc = tcase_create("l3");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, frames_as_scapy_makes_them);
    tcase_add_test(tc, forwards);
    tcase_add_test(tc, does_not_forward);
    tcase_add_test(tc, padding_is_not_forwarded);
    tcase_add_test(tc, gives_up);
    tcase_add_test(tc, probe_is_unicast);
    tcase_add_loop_test(tc, answers, 0, sizeof questions / sizeof questions[0]);
    tcase_add_test(tc, address_test_is_answered_to_all);
    tcase_add_test(tc, question_without_mac);
    tcase_add_loop_test(tc, invalid, 0, sizeof corruptions / sizeof corruptions[0]);
    tcase_add_test(tc, unknown_option);
    tcase_add_loop_test(tc, truncated, 0, 2 * 32);
    tcase_add_test(tc, forgeries);
    tcase_add_test(tc, unsolicited_advertisement);
    tcase_add_test(tc, link_groups_stay);
    tcase_add_test(tc, reconfigure);
    tcase_add_test(tc, mac_filter);
    tcase_add_test(tc, no_buffer_for_the_question);
    suite_add_tcase(s, tc);
    return s;
}
