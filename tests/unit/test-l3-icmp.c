/* SPDX-License-Identifier: Apache-2.0
 *
 * ICMPv6 of a node: errors about what it cannot forward, and what is addressed to
 * itself.  Neighbours are known unless a test says otherwise.
 */
#include <stdio.h>
#include <string.h>

#include "lib/icmp6.h"
#include "lib/inet-csum.h"
#include "lib/l3.h"
#include "lib/nd.h"
#include "lib/neigh.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"

#define SEC       1000000u
#define N_PACKETS 64
#define HOST_PORT 1
#define UPLINK    2
#define DEAD      3 /* nobody answers there. */
#define MTU       1500

#define HOST      "fd00:1::1"
#define NODE      "5f00:0:100::1"
#define FAR       "fd00:9::9"
#define GATEWAY   "fe80::1"

static struct packet_pool *pool;
static struct l3 *l3;
static struct node_config config;
static struct port_config ports[3];
static struct route_config routes[5];

static unsigned n_tx;
static uint64_t n_dropped[N_DROP_REASONS];
static uint16_t tx_port; /* of the last frame. */
static uint8_t tx[PACKET_ROOM];
static char trace[1024];

static const uint8_t peer_mac[6] = {2, 0xaa, 0, 0, 0, 1};

static void
on_tx(void *aux, uint16_t port, struct packet *p)
{
    (void) aux;
    n_tx++;
    tx_port = port;
    ck_assert_uint_gt(packet_flatten(p, tx, sizeof tx), 0);
    packet_put(p);
}

static uint32_t
mtu(void *aux, uint16_t port)
{
    (void) aux;
    return port == UPLINK ? MTU : 9000;
}

/* A frame of the peer, to be completed. */
static struct packet *
frame(const char *src, const char *dst, uint8_t hlim, uint8_t nh, uint16_t payload_len)
{
    struct packet *p = packet_get(pool);
    struct eth_hdr *eth = (struct eth_hdr *) p->data;
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (eth + 1);

    p->len = (uint32_t) (sizeof *eth + sizeof *ip) + payload_len;
    memset(p->data, 0, p->len);
    memcpy(eth->src, peer_mac, 6);
    eth->type = be16_put(ETH_TYPE_IP6);
    ip6_set_vtf(ip, 0, 0);
    ip->plen = be16_put(payload_len);
    ip->nh = nh;
    ip->hlim = hlim;
    ip->src = hex_addr(src);
    ip->dst = hex_addr(dst);
    return p;
}

/* The node finds its peer. */
static void
resolve_peer(const struct port_config *port)
{
    struct nd_msg na = {
        .type = ND_NA,
        .src = port->peer_address,
        .dst = hex_addr(NODE),
        .target = port->peer_address,
        .solicited = true,
        .override = true,
    };
    struct packet *p = frame(HOST, FAR, 64, IP6_NH_NONE, 0), *answer = packet_get(pool);
    struct parsed h;

    ((struct ip6_hdr_wire *) packet_pull(p, 14))->dst = port->peer_address;
    ck_assert_int_eq(l3_output(l3, p, L3_ERRORS_NONE, 0), DROP_none);
    memcpy(na.mac, peer_mac, 6);
    nd_build(answer, peer_mac, port->mac, &na);
    ck_assert_int_eq(parse_outer(answer->data, answer->len, &h), DROP_none);
    ck_assert(l3_input(l3, port->number, answer, &h, 0));
    packet_put(answer);
}

static void
setup(void)
{
    const struct node_io io = {.tx = on_tx, .mtu = mtu};
    struct in6_addr far_node = node_address(0x101), dead = node_address(0x102);

    ports[0] = (struct port_config){.number = HOST_PORT, .name = "h1", .role = ROLE_HOST};
    ports[0].peer_address = hex_addr(HOST);
    ports[1] = (struct port_config){.number = UPLINK, .name = "n2", .role = ROLE_FABRIC};
    ports[1].peer_address = far_node;
    ports[2] = (struct port_config){.number = DEAD, .name = "n3", .role = ROLE_FABRIC};
    routes[0] = (struct route_config){hex_addr(HOST), 128, HOST_PORT, in6addr_any};
    routes[1] = (struct route_config){hex_addr("fd00::"), 16, UPLINK, far_node};
    routes[2] = (struct route_config){hex_addr("5f00::"), 32, UPLINK, far_node};
    routes[3] = (struct route_config){hex_addr("fc00:3::"), 32, DEAD, dead};
    routes[4] = (struct route_config){hex_addr("fc00:4::"), 32, 77, far_node};
    config = (struct node_config){.id = 0x100,
                                  .address = node_address(0x100),
                                  .n_ports = 3,
                                  .ports = ports,
                                  .n_routes = 5,
                                  .routes = routes};
    pool = packet_pool_create(N_PACKETS);
    l3 = l3_create(&io, pool, n_dropped);
    for (size_t i = 0; i < config.n_ports; i++) {
        node_port_mac(config.id, ports[i].number, ports[i].mac);
    }
    l3_configure(l3, &config);
    resolve_peer(&ports[0]);
    resolve_peer(&ports[1]);
    n_tx = 0;
    memset(n_dropped, 0, sizeof n_dropped);
    trace[0] = '\0';
}

static void
teardown(void)
{
    l3_destroy(l3);
    ck_assert_uint_eq(packet_pool_n_free(pool), N_PACKETS);
    packet_pool_destroy(pool);
}

static enum drop_reason
forward(struct packet *p, uint64_t now)
{
    struct parsed h;

    ck_assert_int_eq(parse_outer(p->data, p->len, &h), DROP_none);
    return l3_forward(l3, p, &h, now);
}

/* The last frame sent is this message, of good checksum. */
static const struct icmp6_wire *
ck_message(uint8_t type, uint8_t code, const char *src, const char *dst)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (tx + 14);
    const struct icmp6_wire *icmp = (const struct icmp6_wire *) (ip + 1);
    struct in6_addr want_src = hex_addr(src), want_dst = hex_addr(dst);

    ck_assert_uint_eq(ip->nh, IP6_NH_ICMPV6);
    ck_assert_mem_eq(&ip->src, &want_src, 16);
    ck_assert_mem_eq(&ip->dst, &want_dst, 16);
    ck_assert(icmp6_is_valid(ip, (const uint8_t *) icmp, be16_get(ip->plen)));
    ck_assert_uint_eq(icmp->type, type);
    ck_assert_uint_eq(icmp->code, code);
    ck_assert_mem_eq(tx, peer_mac, 6);
    return icmp;
}

#define NONE 0xff

/* What is not forwarded and what the sender hears of it. */
static const struct {
    const char *src, *dst;
    uint8_t hlim;
    uint16_t len; /* of the IPv6 packet. */
    enum drop_reason why;
    uint8_t type, code; /* NONE: no error message. */
    uint32_t param;
} refusals[] = {
    {HOST, FAR, 1, 40, DROP_hop_limit, ICMP6_TIME, 0, 0},
    {HOST, FAR, 0, 1400, DROP_hop_limit, ICMP6_TIME, 0, 0},
    {HOST, "fc00:9::9", 64, 40, DROP_no_route, ICMP6_UNREACHABLE, 0, 0},
    {HOST, "::1", 64, 40, DROP_no_route, ICMP6_UNREACHABLE, 0, 0},
    {HOST, "fe80::5", 64, 40, DROP_no_route, ICMP6_UNREACHABLE, 0, 0},
    {HOST, "ff0e::5", 64, 40, DROP_no_route, NONE, 0, 0},
    {HOST, "ff0e::5", 1, 40, DROP_hop_limit, NONE, 0, 0},
    {"fe80::5", FAR, 64, 40, DROP_ip6_src, NONE, 0, 0},
    {"::", FAR, 1, 40, DROP_ip6_src, NONE, 0, 0},
    {"fd00:ffff::1", FAR, 1, 40, DROP_hop_limit, NONE, 0, 0},
    /* The own locator: no route leads out of the node, not even one that covers it. */
    {HOST, "5f00:0:100:dead::", 64, 40, DROP_sid_unknown, ICMP6_UNREACHABLE, 0, 0},
    {HOST, "5f00:0:100::2", 64, 40, DROP_sid_unknown, ICMP6_UNREACHABLE, 0, 0},
    {HOST, "5f00:0:101:dead::", 64, 40, DROP_none, NONE, 0, 0},
    {HOST, NODE, 64, 40, DROP_not_for_us, NONE, 0, 0},
    {HOST, "fc00:4::1", 64, 40, DROP_port_down, ICMP6_UNREACHABLE, 3, 0},
    {HOST, FAR, 64, MTU, DROP_none, NONE, 0, 0},
    {HOST, FAR, 64, MTU + 1, DROP_too_long, ICMP6_TOO_BIG, 0, MTU},
    {HOST, FAR, 64, 9000, DROP_too_long, ICMP6_TOO_BIG, 0, MTU},
    {HOST, HOST, 64, 9000, DROP_none, NONE, 0, 0},
    {HOST, FAR, 1, MTU + 1, DROP_hop_limit, ICMP6_TIME, 0, 0},
};

START_TEST(refused)
    {
        const uint16_t len = refusals[_i].len;
        struct packet *p = frame(refusals[_i].src, refusals[_i].dst, refusals[_i].hlim, IP6_NH_NONE,
                                 (uint16_t) (len - 40));
        uint8_t sent[PACKET_ROOM];

        memcpy(sent, p->data + 14, len);
        memset(p->data + p->len, 0xee, 6); /* the link's padding. */
        p->len += 6;
        ck_assert_int_eq(forward(p, 0), refusals[_i].why);
        if (refusals[_i].type == NONE) {
            ck_assert_uint_eq(n_tx, refusals[_i].why == DROP_none);
            return;
        }
        ck_assert_uint_eq(n_tx, 1);
        ck_assert_uint_eq(tx_port, HOST_PORT);
        const struct icmp6_wire *icmp =
            ck_message(refusals[_i].type, refusals[_i].code, NODE, HOST);
        ck_assert_uint_eq(be32_get(icmp->param), refusals[_i].param);
        size_t quoted = len < 1232 ? len : 1232;
        ck_assert_uint_eq(be16_get(((struct ip6_hdr_wire *) (tx + 14))->plen), 8 + quoted);
        ck_assert_mem_eq((const uint8_t *) (icmp + 1) + 8, sent + 8, quoted - 8);
    }
END_TEST

/* What many stations have is not passed on by any, and none is told so. */
START_TEST(refused_group_frame)
    {
        struct packet *p[] = {
            frame(HOST, FAR, 64, IP6_NH_NONE, 0),
            frame(HOST, FAR, 1, IP6_NH_NONE, 0),
            frame(HOST, "fc00:9::9", 64, IP6_NH_NONE, 0),
        };

        for (size_t i = 0; i < 3; i++) {
            p[i]->data[0] = 0x33;
            ck_assert_int_eq(forward(p[i], 0), DROP_eth_not_mine);
        }
        ck_assert_uint_eq(n_tx, 0);
    }
END_TEST

START_TEST(output_sends_what_is_allowed)
    {
        static const struct {
            enum l3_errors errors;
            bool no_route, too_big;
        } levels[] = {
            {L3_ERRORS_NONE, false, false},
            {L3_ERRORS_PTB, false, true},
            {L3_ERRORS_ALL, true, true},
        };
        for (size_t i = 0; i < 3; i++) {
            struct packet *p = frame(HOST, "fc00:9::9", 64, IP6_NH_NONE, 0);
            packet_pull(p, 14);
            n_tx = 0;
            ck_assert_int_eq(l3_output(l3, p, levels[i].errors, 0), DROP_no_route);
            ck_assert_uint_eq(n_tx, levels[i].no_route);

            /* In three pieces. */
            struct packet *whole = frame(HOST, FAR, 64, IP6_NH_NONE, MTU);
            p = packet_replicate(whole, 14, 40, PACKET_TAIL);
            packet_put(whole);
            n_tx = 0;
            ck_assert_int_eq(l3_output(l3, p, levels[i].errors, 0), DROP_too_long);
            ck_assert_uint_eq(n_tx, levels[i].too_big);
        }
    }
END_TEST

/* Each packet that waited is answered as far as it may be. */
START_TEST(neighbour_gives_up)
    {
        static const enum l3_errors errors[] = {L3_ERRORS_ALL, L3_ERRORS_NONE, L3_ERRORS_PTB,
                                                L3_ERRORS_ALL};

        for (size_t i = 0; i < 4; i++) {
            struct packet *p = frame(HOST, "fc00:3::1", 64, IP6_NH_NONE, 0);
            packet_pull(p, 14);
            ck_assert_int_eq(l3_output(l3, p, errors[i], 0), DROP_none);
        }
        for (unsigned i = 1; i < NEIGH_N_SOLICITS; i++) {
            l3_timer(l3, i * NEIGH_RETRANS_USEC);
        }
        n_tx = 0;
        l3_timer(l3, NEIGH_N_SOLICITS * NEIGH_RETRANS_USEC);
        ck_assert_uint_eq(n_tx, 2);
        ck_message(ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_ADDRESS, NODE, HOST);
        ck_assert_uint_eq(n_dropped[DROP_no_neighbour], 4);

        ck_assert_int_eq(forward(frame(HOST, "fc00:3::1", 64, IP6_NH_NONE, 0),
                                 NEIGH_N_SOLICITS * NEIGH_RETRANS_USEC),
                         DROP_no_neighbour);
        ck_assert_uint_eq(n_tx, 3);
        ck_message(ICMP6_UNREACHABLE, ICMP6_UNREACHABLE_ADDRESS, NODE, HOST);
    }
END_TEST

/* An error message behind the neighbour that has just been given up waits for it in turn. */
START_TEST(neighbour_gives_up_on_the_way_back)
    {
        uint64_t now = NEIGH_N_SOLICITS * NEIGH_RETRANS_USEC;

        ck_assert_int_eq(forward(frame("fc00:3::2", "fc00:3::1", 64, IP6_NH_NONE, 0), 0),
                         DROP_none);
        for (unsigned i = 1; i <= NEIGH_N_SOLICITS; i++) {
            l3_timer(l3, i * NEIGH_RETRANS_USEC);
        }
        ck_assert_uint_eq(n_dropped[DROP_no_neighbour], 2); /* packet, error message. */
        l3_timer(l3, now + NEIGH_HOLD_USEC);
        ck_assert_uint_eq(n_tx, NEIGH_N_SOLICITS);
    }
END_TEST

START_TEST(rate_is_limited)
    {
        for (unsigned i = 0; i < 2 * ICMP6_ERRORS_BURST; i++) {
            ck_assert_int_eq(forward(frame(HOST, FAR, 1, IP6_NH_NONE, 0), SEC), DROP_hop_limit);
        }
        ck_assert_uint_eq(n_tx, ICMP6_ERRORS_BURST);
        (void) forward(frame(HOST, FAR, 1, IP6_NH_NONE, 0), SEC + SEC / ICMP6_ERRORS_PER_SEC);
        ck_assert_uint_eq(n_tx, ICMP6_ERRORS_BURST + 1);

        /* What is not answered takes no token. */
        for (unsigned i = 0; i < 100; i++) {
            (void) forward(frame("fd00:ffff::1", FAR, 1, IP6_NH_NONE, 0), 2 * SEC);
        }
        (void) forward(frame(HOST, FAR, 1, IP6_NH_NONE, 0), 2 * SEC);
        ck_assert_uint_eq(n_tx, ICMP6_ERRORS_BURST + 2);
    }
END_TEST

START_TEST(error_that_cannot_be_sent)
    {
        struct packet *all[N_PACKETS + 1] = {frame(HOST, FAR, 1, IP6_NH_NONE, 0)};
        unsigned n = 0;

        while ((all[++n] = packet_get(pool))) {
        }
        ck_assert_int_eq(forward(all[0], 0), DROP_hop_limit);
        while (--n) {
            packet_put(all[n]);
        }
        ck_assert_int_eq(forward(frame("fc00:9::9", FAR, 1, IP6_NH_NONE, 0), 0), DROP_hop_limit);
        ck_assert_uint_eq(n_tx, 0);
        ck_assert_uint_eq(n_dropped[DROP_no_route], 1); /* to the sender. */
    }
END_TEST

/* For behaviours of SIDs, which say where the trouble is. */
START_TEST(messages_on_demand)
    {
        struct packet *p = frame(HOST, FAR, 9, IP6_NH_UDP, 8);
        struct parsed h;

        ck_assert_int_eq(parse_outer(p->data, p->len, &h), DROP_none);
        l3_icmp_param_problem(l3, p, &h, ICMP6_PARAMETER_FIELD, 43, 0);
        ck_assert_uint_eq(
            be32_get(ck_message(ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD, NODE, HOST)->param), 43);
        ck_assert_mem_eq(tx + 14 + 48, p->data + 14, 48);
        l3_icmp_time_exceeded(l3, p, &h, 0);
        ck_message(ICMP6_TIME, ICMP6_TIME_HOP_LIMIT, NODE, HOST);
        ck_assert_uint_eq(n_tx, 2);

        p->data[0] = 0x33; /* to many stations. */
        l3_icmp_time_exceeded(l3, p, &h, 0);
        l3_icmp_param_problem(l3, p, &h, ICMP6_PARAMETER_FIELD, 43, 0);
        ck_assert_uint_eq(n_tx, 2);
        packet_put(p);
    }
END_TEST

/* Packets for the node. */
#define ECHO "80000000 12340007 61"
#define UDP  "0035003500080000"
#define OPT  "00010400000000"
#define LIST "fd00000000000000 0000000000000001"
#define SEGS "00000000" LIST /* Last Entry and on. */
static const struct {
    unsigned port, nh;
    const char *src, *dst;
    const char *payload; /* an ICMPv6 message's checksum is made good. */
    enum drop_reason why;
    uint8_t type, code; /* of the answer; NONE: none. */
    uint32_t param;
} locals[] = {
    {HOST_PORT, 58, HOST, NODE, ECHO, DROP_none, ICMP6_REPLY, 0, 0x12340007},
    {UPLINK, 58, "5f00:0:101::1", NODE, ECHO, DROP_none, ICMP6_REPLY, 0, 0x12340007},
    {HOST_PORT, 58, HOST, GATEWAY, ECHO, DROP_none, ICMP6_REPLY, 0, 0x12340007},
    {HOST_PORT, 58, "fe80::77", GATEWAY, ECHO, DROP_none, ICMP6_REPLY, 0, 0x12340007},
    {UPLINK, 58, "fe80::77", NODE, ECHO, DROP_none, ICMP6_REPLY, 0, 0x12340007},
    {UPLINK, 58, "fe80::77", GATEWAY, ECHO, DROP_not_for_us, NONE, 0, 0},
    {HOST_PORT, 58, "::", NODE, ECHO, DROP_ip6_src, NONE, 0, 0},
    {HOST_PORT, 58, "::1", NODE, ECHO, DROP_ip6_src, NONE, 0, 0},
    {HOST_PORT, 58, "fc00:9::9", NODE, ECHO, DROP_no_route, NONE, 0, 0},
    {HOST_PORT, 60, HOST, NODE, "3a" OPT ECHO, DROP_none, ICMP6_REPLY, 0, 0x12340007},
    {HOST_PORT, 58, HOST, NODE, "81000000 12340007", DROP_not_for_us, NONE, 0, 0},
    {HOST_PORT, 58, HOST, NODE, "01000000 00000000", DROP_icmp_error, NONE, 0, 0},
    {HOST_PORT, 58, HOST, NODE, "02000000 00000500", DROP_icmp_error, NONE, 0, 0},
    {HOST_PORT, 58, HOST, NODE, "80000000", DROP_icmp_malformed, NONE, 0, 0},
    {HOST_PORT, 58, HOST, NODE, "", DROP_icmp_malformed, NONE, 0, 0},
    {HOST_PORT, 17, HOST, NODE, UDP, DROP_not_for_us, ICMP6_UNREACHABLE, 4, 0},
    {HOST_PORT, 17, HOST, GATEWAY, UDP, DROP_not_for_us, ICMP6_UNREACHABLE, 4, 0},
    {HOST_PORT, 17, "fe80::77", GATEWAY, UDP, DROP_not_for_us, ICMP6_UNREACHABLE, 4, 0},
    {HOST_PORT, 6, HOST, NODE, UDP, DROP_not_for_us, ICMP6_PARAMETER, 1, 6},
    {HOST_PORT, 41, HOST, NODE, UDP, DROP_not_for_us, ICMP6_PARAMETER, 1, 6},
    {HOST_PORT, 60, HOST, NODE, "06" OPT UDP, DROP_not_for_us, ICMP6_PARAMETER, 1, 40},
    {HOST_PORT, 59, HOST, NODE, "", DROP_not_for_us, NONE, 0, 0},
    {HOST_PORT, 60, HOST, NODE, "11010104", DROP_ext_chain, NONE, 0, 0},
    /* A segment list that goes on although this is no SID, and one that does not. */
    {UPLINK, 43, HOST, NODE, "11020401" SEGS UDP, DROP_not_for_us, ICMP6_PARAMETER, 0, 42},
    {UPLINK, 43, HOST, NODE, "11020400" SEGS UDP, DROP_not_for_us, ICMP6_UNREACHABLE, 4, 0},
    /* Other Routing headers: RFC 8200 section 4.4. */
    {HOST_PORT, 43, HOST, NODE, "11000001 00000000" UDP, DROP_not_for_us, ICMP6_PARAMETER, 0, 42},
    {UPLINK, 43, HOST, NODE, "3a00fd05 00000000" ECHO, DROP_not_for_us, ICMP6_PARAMETER, 0, 42},
    {UPLINK, 43, HOST, NODE, "3a00fd00 00000000" ECHO, DROP_none, ICMP6_REPLY, 0, 0x12340007},
    {UPLINK, 43, HOST, NODE, "2b020400 00000000" LIST "11000001 00000000" UDP, DROP_not_for_us,
     ICMP6_PARAMETER, 0, 66},
    {UPLINK, 43, HOST, NODE, "2b00fd00 00000000 11000001 00000000" UDP, DROP_not_for_us,
     ICMP6_PARAMETER, 0, 50},
    /* Options that nobody here knows: to be skipped, dropped, or told about. */
    {HOST_PORT, 60, HOST, NODE, "3a001e0400000000" ECHO, DROP_none, ICMP6_REPLY, 0, 0x12340007},
    {HOST_PORT, 60, HOST, NODE, "3a005e0400000000" ECHO, DROP_not_for_us, NONE, 0, 0},
    {HOST_PORT, 60, HOST, NODE, "3a009e0400000000" ECHO, DROP_not_for_us, ICMP6_PARAMETER, 2, 42},
    {HOST_PORT, 0, HOST, NODE, "3a00de0400000000" ECHO, DROP_not_for_us, ICMP6_PARAMETER, 2, 42},
    {HOST_PORT, 44, HOST, NODE, "1100000100000000" UDP, DROP_not_for_us, NONE, 0, 0},
    {HOST_PORT, 44, HOST, NODE, "110005c800000000" UDP, DROP_not_for_us, NONE, 0, 0},
    {HOST_PORT, 44, HOST, NODE, "1100000000000000" UDP, DROP_not_for_us, ICMP6_UNREACHABLE, 4, 0},
};

static struct packet *
local(int i)
{
    uint8_t payload[128];
    uint16_t len = (uint16_t) hex_bytes(locals[i].payload, payload, sizeof payload);
    struct packet *p = frame(locals[i].src, locals[i].dst, 1, (uint8_t) locals[i].nh, len);
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (p->data + 14);
    uint8_t *bytes = p->data + 14 + IP6_HDR_LEN;
    struct icmp6_upper upper;

    memcpy(bytes, payload, len);
    if (icmp6_find_upper((const uint8_t *) ip, 40u + len, &upper) && upper.proto == IP6_NH_ICMPV6
        && 40u + len - upper.ofs >= 4) {
        struct icmp6_wire *icmp = (struct icmp6_wire *) (p->data + 14 + upper.ofs);
        icmp->csum = inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_ICMPV6, icmp, 40u + len - upper.ofs);
    }
    return p;
}

static enum drop_reason
local_input(unsigned number, struct packet *p)
{
    const uint16_t port = (uint16_t) number;
    struct parsed h;

    ck_assert_int_eq(parse_outer(p->data, p->len, &h), DROP_none);
    ck_assert(!l3_input(l3, port, p, &h, 0));
    return l3_local_input(l3, port, p, &h, 0);
}

START_TEST(for_the_node)
    {
        struct packet *p = local(_i);

        ck_assert_int_eq(local_input(locals[_i].port, p), locals[_i].why);
        ck_assert_uint_eq(n_tx, locals[_i].type != NONE);
        if (n_tx) {
            const struct icmp6_wire *icmp =
                ck_message(locals[_i].type, locals[_i].code, locals[_i].dst, locals[_i].src);
            ck_assert_uint_eq(be32_get(icmp->param), locals[_i].param);
            ck_assert_uint_eq(tx_port, locals[_i].port == HOST_PORT || locals[_i].src[1] == 'd'
                                           ? HOST_PORT
                                           : UPLINK);
        }

        /* Sent to many stations: only echo requests are answered, and unknown options of a type
         * that begins with 10. */
        n_tx = 0;
        p->data[0] = 0x33;
        ck_assert_int_eq(local_input(locals[_i].port, p), locals[_i].why);
        ck_assert_uint_eq(n_tx, locals[_i].type == ICMP6_REPLY
                                    || (locals[_i].type == ICMP6_PARAMETER
                                        && locals[_i].code == ICMP6_PARAMETER_OPTION
                                        && p->data[14 + locals[_i].param] >> 6 == 2));
        packet_put(p);
    }
END_TEST

/* Cut at any length: the answer to a part is none, or an error message about that part. */
START_TEST(for_the_node_truncated)
    {
        struct packet *p = local(_i);
        uint32_t whole = p->len;

        for (uint16_t len = 0; 14u + IP6_HDR_LEN + len < whole; len++) {
            struct packet *part = packet_from_bytes(pool, p->data, 14u + IP6_HDR_LEN + len);
            ((struct ip6_hdr_wire *) (part->data + 14))->plen = be16_put(len);
            n_tx = 0;
            enum drop_reason why = local_input(locals[_i].port, part);
            ck_assert_int_ne(why, DROP_none);
            if (n_tx) {
                ck_assert_int_eq(why, DROP_not_for_us);
                ck_assert_uint_lt(tx[14 + IP6_HDR_LEN], 128);
            }
            packet_put(part);
        }
        packet_put(p);
    }
END_TEST

static void
on_line(void *aux, const char *text)
{
    (void) aux;
    size_t used = strlen(trace);
    ck_assert_int_lt(snprintf(trace + used, sizeof trace - used, "%s\n", text),
                     (int) (sizeof trace - used));
}

static const struct {
    const char *dst;
    uint8_t hlim;
    uint16_t payload_len;
    const char *lines;
} traces[] = {
    {FAR, 7, 0,
     "forward to fd00:9::9: hop limit 7\n"
     "route fd00::/16: port n2, next hop 5f00:0:101::1\n"
     "neighbour 5f00:0:101::1: known\n"},
    {FAR, 7, MTU,
     "forward to fd00:9::9: hop limit 7\n"
     "route fd00::/16: port n2, next hop 5f00:0:101::1\n"
     "1540 bytes, mtu of port n2 is 1500\n"
     "icmpv6 error type 2 code 0 to fd00:1::1\n"
     "route fd00:1::1/128: port h1, next hop fd00:1::1\n"
     "neighbour fd00:1::1: known\n"},
    {"fc00:3::1", 7, 0,
     "forward to fc00:3::1: hop limit 7\n"
     "route fc00:3::/32: port n3, next hop 5f00:0:102::1\n"
     "neighbour 5f00:0:102::1: asked for, packet waits\n"},
    {"5f00:0:100:dead::", 7, 0,
     "forward to 5f00:0:100:dead::: hop limit 7\n"
     "5f00:0:100:dead::: in this node's locator, no SID\n"
     "icmpv6 error type 1 code 0 to fd00:1::1\n"
     "route fd00:1::1/128: port h1, next hop fd00:1::1\n"
     "neighbour fd00:1::1: known\n"},
    {"ff0e::5", 1, 0,
     "forward to ff0e::5: hop limit 1\n"
     "no icmpv6 error: sent to a group\n"},
};

START_TEST(explains_itself)
    {
        l3_set_tracer(l3, &(struct tracer){.line = on_line});
        (void) forward(
            frame(HOST, traces[_i].dst, traces[_i].hlim, IP6_NH_NONE, traces[_i].payload_len), 0);
        ck_assert_str_eq(trace, traces[_i].lines);
    }
END_TEST

Suite *
l3_icmp_suite(void)
{
    Suite *s = suite_create("l3_icmp");
    TCase *tc = tcase_create("l3_icmp");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, refused, 0, sizeof refusals / sizeof refusals[0]);
    tcase_add_test(tc, refused_group_frame);
    tcase_add_test(tc, output_sends_what_is_allowed);
    tcase_add_test(tc, neighbour_gives_up);
    tcase_add_test(tc, neighbour_gives_up_on_the_way_back);
    tcase_add_test(tc, rate_is_limited);
    tcase_add_test(tc, error_that_cannot_be_sent);
    tcase_add_test(tc, messages_on_demand);
    tcase_add_loop_test(tc, for_the_node, 0, sizeof locals / sizeof locals[0]);
    tcase_add_loop_test(tc, for_the_node_truncated, 0, sizeof locals / sizeof locals[0]);
    tcase_add_loop_test(tc, explains_itself, 0, sizeof traces / sizeof traces[0]);
    suite_add_tcase(s, tc);
    return s;
}
