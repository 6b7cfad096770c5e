/* SPDX-License-Identifier: Apache-2.0
 *
 * l3_output_next() against l3_output(): the same packets, at the same times, with the same
 * neighbours, configurations and MTUs, give the same frames and drops.
 */
#include <string.h>

#include "lib/l3.h"
#include "lib/nd.h"
#include "tests/unit/suites.h"

#define NODE_ID   0x100
#define N_PORTS   3
#define N_DSTS    6
#define N_PACKETS 400
#define LOG_SIZE  65536

enum { SLOW, FAST, N_SIDES };

static struct side {
    struct packet_pool *pool;
    struct l3 *l3;
    uint64_t drops[N_DROP_REASONS];
    size_t log_len;
    uint8_t log[LOG_SIZE]; /* port and bytes of what was sent. */
} sides[N_SIDES];

static struct node_config config;
static struct port_config ports[N_PORTS];
static struct route_config routes[N_DSTS];
static struct l3_next nexts[N_DSTS];
static uint32_t mtus[N_PORTS + 1];
static uint64_t now;
static uint32_t n_sent, n_known; /* on the FAST side; before the neighbour table was looked into. */
static uint64_t random_state;

static uint32_t
pick(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ((random_state >> 33) * limit >> 31);
}

static void
on_tx(void *side_, uint16_t port, struct packet *p)
{
    struct side *side = side_;
    size_t len = packet_size(p);

    ck_assert_uint_le(side->log_len + sizeof port + len, LOG_SIZE);
    memcpy(side->log + side->log_len, &port, sizeof port);
    packet_flatten(p, side->log + side->log_len + sizeof port, len);
    side->log_len += sizeof port + len;
    packet_put(p);
}

static uint32_t
mtu(void *side, uint16_t port)
{
    (void) side;
    return mtus[port];
}

/* Port 1 is to one host.  Destinations 1 to 3 are hosts on port 2's link.  The others are behind a
 * node on port 3, which changes. */
static struct in6_addr
destination(unsigned i)
{
    return (struct in6_addr){.s6_addr = {0xfd, 0, 0, 1, [15] = (uint8_t) (i + 1)}};
}

static struct in6_addr
peer_of(unsigned i)
{
    return i == 0 ? destination(0) : node_address((uint16_t) (NODE_ID + i));
}

static uint16_t
port_to(unsigned dst)
{
    return dst == 0 ? 1 : dst < 4 ? 2 : 3;
}

static void
configure(void)
{
    config = (struct node_config){
        .id = NODE_ID, .address = node_address(NODE_ID), .ports = ports, .routes = routes};
    for (unsigned i = 0; i < N_PORTS; i++) {
        struct port_config *port = &ports[config.n_ports];

        *port = (struct port_config){
            .number = (uint16_t) (i + 1), .role = ROLE_FABRIC, .peer_address = peer_of(i)};
        node_port_mac(NODE_ID, port->number, port->mac);
        port->mac[3] = (uint8_t) (pick(4) == 0);
        config.n_ports += pick(6) != 0;
    }
    for (unsigned i = 0; i < N_DSTS; i++) {
        routes[config.n_routes] = (struct route_config){
            .prefix = destination(i),
            .plen = 128,
            .port = port_to(i),
            .next_hop = i < 4 ? in6addr_any : peer_of(2 + pick(2)),
        };
        config.n_routes += pick(8) != 0;
    }
    for (unsigned s = 0; s < N_SIDES; s++) {
        l3_configure(sides[s].l3, &config);
    }
}

static void
setup(void)
{
    now = 1000000;
    memset(nexts, 0, sizeof nexts);
    memset(mtus, 0xff, sizeof mtus);
    for (unsigned s = 0; s < N_SIDES; s++) {
        sides[s] = (struct side){.pool = packet_pool_create(N_PACKETS)};
        sides[s].l3 = l3_create(&(struct node_io){.tx = on_tx, .mtu = mtu, .aux = &sides[s]},
                                sides[s].pool, sides[s].drops);
    }
    configure();
}

static void
teardown(void)
{
    for (unsigned s = 0; s < N_SIDES; s++) {
        l3_destroy(sides[s].l3);
        ck_assert_uint_eq(packet_pool_n_free(sides[s].pool), N_PACKETS);
        packet_pool_destroy(sides[s].pool);
    }
}

static void
output(void)
{
    unsigned dst = pick(N_DSTS);
    enum l3_errors errors = (enum l3_errors) pick(3);
    size_t payload = pick(3) * 100;
    enum drop_reason why[N_SIDES];

    n_known += now < nexts[dst].until && *nexts[dst].changes == nexts[dst].seen;
    n_sent++;
    for (unsigned s = 0; s < N_SIDES; s++) {
        struct packet *p = packet_get(sides[s].pool);

        ck_assert_ptr_nonnull(p);
        p->data += sizeof(struct eth_hdr); /* aligned, see PACKET_HEADROOM. */
        p->len = (uint32_t) (IP6_HDR_LEN + payload);
        memset(p->data, 0, p->len);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) p->data;
        ip6_set_vtf(ip, 0, 0);
        ip->plen = be16_put((uint16_t) payload);
        ip->nh = IP6_NH_NONE;
        ip->hlim = 9;
        ip->src = peer_of(1);
        ip->dst = destination(dst);
        why[s] = s == SLOW ? l3_output(sides[s].l3, p, errors, now)
                           : l3_output_next(sides[s].l3, p, &nexts[dst], errors, now);
    }
    ck_assert_int_eq(why[SLOW], why[FAST]);
}

/* Somebody who may be a next hop says where he is: answers, or asks by himself. */
static void
neighbour_speaks(void)
{
    uint16_t port = (uint16_t) (1 + pick(N_PORTS));
    unsigned who = pick(N_DSTS + 3);
    struct in6_addr addr = who < N_DSTS ? destination(who) : peer_of(1 + who - N_DSTS);
    struct nd_msg m = {
        .type = pick(4) ? ND_NA : ND_NS,
        .src = addr,
        .dst = node_address(NODE_ID),
        .target = addr,
        .solicited = pick(4),
        .override = pick(3),
        .has_mac = pick(5),
        .mac = {2, 0xaa, 0, (uint8_t) who, 0, (uint8_t) (pick(4) == 0)},
    };
    uint8_t mac[6];

    if (m.type == ND_NS) {
        m.target = node_address(NODE_ID);
    }
    node_port_mac(NODE_ID, port, mac);
    for (unsigned s = 0; s < N_SIDES; s++) {
        struct packet *p = packet_get(sides[s].pool);
        struct parsed parsed;

        nd_build(p, m.mac, mac, &m);
        ck_assert_int_eq(parse_outer(p->data, p->len, &parsed), DROP_none);
        l3_input(sides[s].l3, port, p, &parsed, now);
        packet_put(p);
    }
}

static void
step(void)
{
    uint32_t what = pick(1000);

    now += pick(50) ? pick(1000) : pick(40000000);
    if (what < 700) {
        output();
    } else if (what < 930) {
        neighbour_speaks();
    } else if (what < 975) {
        for (unsigned s = 0; s < N_SIDES; s++) {
            l3_timer(sides[s].l3, now);
        }
    } else if (what < 990) {
        mtus[1 + pick(N_PORTS)] = pick(2) ? UINT32_MAX : 100 + pick(100);
    } else {
        configure();
    }
}

START_TEST(same_as_without)
    {
        random_state = (uint64_t) _i;
        for (unsigned i = 0; i < 3000; i++) {
            step();
            ck_assert_uint_eq(sides[FAST].log_len, sides[SLOW].log_len);
            ck_assert_mem_eq(sides[FAST].log, sides[SLOW].log, sides[SLOW].log_len);
            sides[FAST].log_len = sides[SLOW].log_len = 0;
            ck_assert_mem_eq(sides[FAST].drops, sides[SLOW].drops, sizeof sides->drops);
            ck_assert_uint_eq(l3_deadline(sides[FAST].l3), l3_deadline(sides[SLOW].l3));
        }
        /* Both ways were gone. */
        ck_assert_uint_gt(n_known, n_sent / 20);
        ck_assert_uint_lt(n_known, n_sent / 10 * 9);
    }
END_TEST

/* A destination that is known is not looked for: neither routes nor neighbours are. */
START_TEST(known_is_not_looked_for)
    {
        random_state = 1;
        for (unsigned i = 0; i < N_PORTS; i++) {
            ports[i].number = (uint16_t) (i + 1);
        }
        do {
            configure();
        } while (config.n_ports < N_PORTS || config.n_routes < N_DSTS);
        while (nexts[0].until <= now || *nexts[0].changes != nexts[0].seen) {
            output();
            neighbour_speaks();
        }
        nexts[0].eth.dst[5] = 0x77; /* only *next says so. */
        sides[FAST].log_len = 0;
        struct packet *p = packet_get(sides[FAST].pool);
        p->data += sizeof(struct eth_hdr);
        p->len = IP6_HDR_LEN;
        memset(p->data, 0, p->len);
        ck_assert_int_eq(l3_output_next(sides[FAST].l3, p, &nexts[0], L3_ERRORS_NONE, now),
                         DROP_none);
        ck_assert_uint_eq(sides[FAST].log_len,
                          sizeof(uint16_t) + sizeof(struct eth_hdr) + IP6_HDR_LEN);
        ck_assert_uint_eq(sides[FAST].log[sizeof(uint16_t) + 5], 0x77);
    }
END_TEST

Suite *
l3_next_suite(void)
{
    Suite *suite = suite_create("l3-next");
    TCase *tc = tcase_create("l3-next");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, same_as_without, 0, 40);
    tcase_add_test(tc, known_is_not_looked_for);
    suite_add_tcase(suite, tc);
    return suite;
}
