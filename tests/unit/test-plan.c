/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: what a node gets from the topology alone, who can be served, and
 * what fits into a packet.
 */
#include <config.h>

#include "ctl/plan/plan.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "openvswitch/dynamic-string.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

static struct in6_addr
addr(const char *s)
{
    struct in6_addr a;

    ck_assert_int_eq(inet_pton(AF_INET6, s, &a), 1);
    return a;
}

#define ck_assert_addr_eq(A, TEXT)                    \
    do {                                              \
        struct in6_addr want_ = addr(TEXT);           \
        ck_assert_mem_eq(&(A), &want_, sizeof want_); \
    } while (0)

static struct plan_topology topology;

/* A link that leads nowhere, a switch apart, a host without a link. */
static void
setup(void)
{
    plan_fixture_topology(&topology,
                          "r1-n1 n1-r2 n1-a4 a4-h0 n2-n1 r9-n2 r8-n3 r7 r6-n5 n5-n1 !n5 n2-n5");
    plan_fixture_add_link(&topology, "n1", "nobody");
    plan_topology_prepare(&topology);
}

static void
teardown(void)
{
    plan_topology_uninit(&topology);
}

static struct node_config
plan_of(const char *name)
{
    struct node_config config;
    char *error = plan_node_config(&topology, plan_find_node(&topology, name), &config);

    ck_assert_msg(!error, "%s", error);
    return config;
}

static const struct port_config *
port_named(const struct node_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_ports; i++) {
        if (!strcmp(config->ports[i].name, name)) {
            return &config->ports[i];
        }
    }
    return NULL;
}

static const struct route_config *
route_to(const struct node_config *config, const struct in6_addr *prefix, uint8_t plen)
{
    for (size_t i = 0; i < config->n_routes; i++) {
        if (config->routes[i].plen == plen
            && IN6_ARE_ADDR_EQUAL(&config->routes[i].prefix, prefix)) {
            return &config->routes[i];
        }
    }
    return NULL;
}

/* The way that 'prefix' takes, "interface" or "interface via next hop"; "" if there is none. */
static const char *
way_to(const struct node_config *config, const char *prefix, uint8_t plen)
{
    static char text[IFNAMSIZ + INET6_ADDRSTRLEN + 8];
    struct in6_addr a = addr(prefix);
    const struct route_config *r = route_to(config, &a, plen);
    char next_hop[INET6_ADDRSTRLEN];

    text[0] = '\0';
    for (size_t i = 0; r && i < config->n_ports; i++) {
        if (config->ports[i].number == r->port) {
            inet_ntop(AF_INET6, &r->next_hop, next_hop, sizeof next_hop);
            snprintf(text, sizeof text, "%s via %s", config->ports[i].name, next_hop);
        }
    }
    return text;
}

START_TEST(switch_node)
    {
        struct node_config c = plan_of("n1");

        ck_assert_uint_eq(c.n_ports, 5); /* not the link to nobody. */
        for (size_t i = 0; i < c.n_ports; i++) {
            ck_assert_uint_eq(c.ports[i].number, i + 1);
        }
        ck_assert_int_eq(port_named(&c, "r1")->role, ROLE_HOST);
        ck_assert_addr_eq(port_named(&c, "r1")->peer_address, "fd00:1::1");
        ck_assert_int_eq(port_named(&c, "a4")->role, ROLE_AGENT);
        ck_assert_addr_eq(port_named(&c, "a4")->peer_address, "5f00:0:4::1");
        ck_assert_int_eq(port_named(&c, "n2")->role, ROLE_FABRIC);
        ck_assert_str_eq(port_named(&c, "n2")->peer, "n2");

        ck_assert_uint_eq(c.n_routes, 8); /* five hosts, three nodes: not n3 and what is there. */
        ck_assert_str_eq(way_to(&c, "fd00:1::1", 128), "r1 via ::");
        ck_assert_str_eq(way_to(&c, "fd00:1::100", 128), "a4 via 5f00:0:4::1");
        ck_assert_str_eq(way_to(&c, "5f00:0:4::", 48), "a4 via 5f00:0:4::1");
        ck_assert_str_eq(way_to(&c, "fd00:1::9", 128), "n2 via 5f00:0:2::1");
        ck_assert_str_eq(way_to(&c, "5f00:0:1::", 48), "");
        node_config_uninit(&c);
    }
END_TEST

/* A SID in short: "PREFIX/PLEN BEHAVIOUR", and ":PORT" of a port. */
static char *
sids_text(const struct node_config *c)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < c->n_sids; i++) {
        const struct sid_config *sid = &c->sids[i];
        bool shifts = sid->behaviour == SID_UN || sid->behaviour == SID_UA;
        char prefix[INET6_ADDRSTRLEN];

        ck_assert_uint_eq(sid->block_len, shifts ? 32 : 0);
        ck_assert_int_eq(!sid->port, !sid_behaviour_is_of_port(sid->behaviour));
        inet_ntop(AF_INET6, &sid->prefix, prefix, sizeof prefix);
        ds_put_format(&s, "%s%s/%u %s", i ? ", " : "", prefix, sid->plen,
                      sid_behaviour_name(sid->behaviour));
        if (sid->port) {
            ds_put_format(&s, ":%u", sid->port);
        }
    }
    return ds_steal_cstr(&s);
}

/* By role; n1 has port 1 to a4, 2 to n2, 3 to r1. */
static const struct {
    const char *topology, *node, *sids;
} sid_cases[] = {
    {"n1-a4 n1-n2 n1-r1", "n1",
     "5f00:0:1::/48 uN, 5f00:0:1:e000::/64 End, 5f00:0:1:e001::/64 End.MT, "
     "5f00:0:1:e002::/64 End.Response, 5f00:0:1:e003::/64 End.DT6, "
     "5f00:0:1:e101::/64 uA:1, 5f00:0:1:e102::/64 uA:2, "
     "5f00:0:1:e201::/64 End.DX6:1, 5f00:0:1:e203::/64 End.DX6:3, "
     "5f00:0:1:e301::/64 End.X:1, 5f00:0:1:e302::/64 End.X:2, 5f00:0:1:f000::/52 End.Replicate, "
     "5f00:0:e101::/48 uA:1, 5f00:0:e102::/48 uA:2"},
    {"n1-a4 n2-a4 a4-r1", "a4",
     "5f00:0:4::/48 uN, 5f00:0:4:e001::/64 End.MT, 5f00:0:4:e002::/64 End.Response, "
     "5f00:0:4:e003::/64 End.DT6"},
    {"@n1 n1-a4 n1-n2", "n1",
     "5f00:0:1::/48 uN, 5f00:0:1:e101::/64 uA:1, 5f00:0:1:e102::/64 uA:2, "
     "5f00:0:1:f000::/52 End.Replicate, 5f00:0:e101::/48 uA:1, 5f00:0:e102::/48 uA:2"},
    {"~n1 n1-n2", "n1",
     "5f00:0:1::/48 uN, 5f00:0:1:e003::/64 End.DT6, 5f00:0:1:e101::/64 uA:1, "
     "5f00:0:1:e301::/64 End.X:1, 5f00:0:e101::/48 uA:1"},
};

/* Proves MT-5.1-5. */
START_TEST(sids)
    {
        struct node_config c;
        char *text;

        teardown();
        plan_fixture_topology(&topology, sid_cases[_i].topology);
        c = plan_of(sid_cases[_i].node);
        text = sids_text(&c);
        ck_assert_str_eq(text, sid_cases[_i].sids);
        free(text);
        node_config_uninit(&c);
    }
END_TEST

/* Functions of ports end with port 255.  Prefixes are unique: the registry's rows are found by
 * them. */
START_TEST(sids_of_many_ports)
    {
        static const uint16_t numbers[] = {255, 256};

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
            struct plan_node *n1 = CONST_CAST(struct plan_node *, plan_find_node(&topology, "n1"));
            size_t n_uas = 0;

            free(n1->ports);
            n1->ports = xcalloc(1, sizeof *n1->ports);
            n1->n_ports = 1;
            n1->ports[0] = (struct plan_port){"n2", numbers[i]};
            struct node_config c = plan_of("n1");
            for (size_t j = 0; j < c.n_sids; j++) {
                n_uas += c.sids[j].behaviour == SID_UA;
                ck_assert_uint_le(c.sids[j].port, 255);
                ck_assert(!j || memcmp(&c.sids[j - 1].prefix, &c.sids[j].prefix, 16) < 0);
            }
            ck_assert_uint_eq(n_uas, numbers[i] == 255 ? 6 : 4); /* n2, n5, a4. */
            node_config_uninit(&c);
        }
    }
END_TEST

START_TEST(agent_node)
    {
        struct node_config c = plan_of("a4");

        ck_assert_str_eq(way_to(&c, "fd00:1::100", 128), "h0 via ::");
        ck_assert_str_eq(way_to(&c, "::", 0), "n1 via 5f00:0:1::1");
        ck_assert_str_eq(way_to(&c, "5f00:0:2::", 48), "n1 via 5f00:0:1::1");
        node_config_uninit(&c);
    }
END_TEST

/* Forwarders that are not ours: only what they can do, and where their neighbours' ports are. */
START_TEST(foreign_nodes)
    {
        static const char *const names[] = {"n7", "n8"};

        plan_topology_uninit(&topology);
        plan_fixture_topology(&topology, "a9-n6 n6-n8 n8-n7 n7-n6 n7-n1 n7-n1 @n7 ~n8");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
            struct node_config c = plan_of(names[i]), peer = plan_of("n6");

            ck_assert_int_eq(c.role, i ? NODE_ROUTER : NODE_OVS);
            ck_assert_mem_eq(port_named(&c, "n6")->peer_mac, port_named(&peer, names[i])->mac, 6);
            node_config_uninit(&c);
            node_config_uninit(&peer);
        }
        struct node_config c = plan_of("n7"), peer = plan_of("n1");
        ck_assert_mem_eq(port_named(&c, "n1")->peer_mac, port_named(&peer, "n7")->mac, 6);
        ck_assert_mem_eq(port_named(&c, "n1.1")->peer_mac, port_named(&peer, "n7.1")->mac, 6);
        ck_assert_str_eq(way_to(&c, "5f00:0:9::", 48), "n6 via 5f00:0:6::1");
        ck_assert_mem_eq(port_named(&peer, "n7")->peer_mac, (uint8_t[6]){0}, 6);
        node_config_uninit(&c);
        node_config_uninit(&peer);
    }
END_TEST

/* What they cannot do in each mode; NULL: they can. */
START_TEST(foreign_cannot)
    {
        static const char no_ovs[] =
            "member r1 is behind n2, which has role ovs: a receiver must be "
            "behind a switch";
        static const char no_router[] = "member r1 is behind n2, which has role router: a receiver "
                                        "must be behind a switch";
        static const struct {
            const char *topology, *why[3];
        } cases[] = {
            {"h0-a9 a9-n1 n1-n2 n2-r1 @n2", {no_ovs, no_ovs, no_ovs}},
            {"h0-a9 a9-n1 n1-n2 n2-r1 ~n2", {no_router, no_router, no_router}},
            {"h0-a9 a9-n1 n1-n2 n2-r1 ~n1",
             {[MODE_REPLICATE] = "source h0: the first switch after source agent a9 is n1, a plain "
                                 "router: it cannot replicate, which mode ingress does not need",
              [MODE_MCAST] = "member r1 is reached by n1, which has role router: mode mcast is for "
                             "switches only"}},
            {"h0-a9 a9-n1 n1-n2 n2-n3 n3-r1 @n2",
             {[MODE_MCAST] = "member r1 is reached by n2, which has role ovs: mode mcast is for "
                             "switches only"}},
        };
        struct plan_member members[1];
        struct plan_group g;
        struct plan plan;

        plan_fixture_group(&g, members);
        plan_fixture_add_member(&g, "r1");
        g.mode = (enum tree_mode)(_i % 3);
        plan_topology_uninit(&topology);
        plan_fixture_topology(&topology, cases[_i / 3].topology);
        const char *why = cases[_i / 3].why[g.mode];
        char *error = plan_group(&topology, &g, &plan);
        ck_assert_msg(!error == !why, "%s", error);
        if (why) {
            ck_assert_str_eq(error, why);
        }
        free(error);
        plan_uninit(&plan);
    }
END_TEST

/* An interface keeps its number; a new one gets the lowest that is free. */
START_TEST(port_numbers_stay)
    {
        struct plan_node *n1 = CONST_CAST(struct plan_node *, plan_find_node(&topology, "n1"));

        n1->ports = xcalloc(2, sizeof *n1->ports);
        n1->n_ports = 2;
        ovs_strlcpy(n1->ports[0].name, "n2", IFNAMSIZ);
        n1->ports[0].number = 1;
        ovs_strlcpy(n1->ports[1].name, "gone", IFNAMSIZ);
        n1->ports[1].number = 2;

        struct node_config c = plan_of("n1");
        ck_assert_uint_eq(port_named(&c, "n2")->number, 1);
        for (size_t i = 0; i < c.n_ports; i++) {
            ck_assert_uint_ne(c.ports[i].number, 2);
        }
        node_config_uninit(&c);
    }
END_TEST

START_TEST(interface_used_twice)
    {
        struct plan_node *n1 = CONST_CAST(struct plan_node *, plan_find_node(&topology, "n1"));
        struct node_config c;

        n1->ports = xcalloc(1, sizeof *n1->ports);
        n1->n_ports = 1;
        ovs_strlcpy(n1->ports[0].name, "r1", IFNAMSIZ);
        n1->ports[0].number = 1;
        plan_fixture_add_link(&topology, "n1", "n2");
        ovs_strlcpy(topology.links[topology.n_links - 1].a_port, "r1", IFNAMSIZ);
        plan_topology_prepare(&topology);

        char *error = plan_node_config(&topology, n1, &c);
        ck_assert_str_eq(error, "node n1: interface r1 is used by two links");
        ck_assert_ptr_null(c.ports);
        free(error);
    }
END_TEST

/*
 * Ways.
 */

static const struct {
    const char *topology, *node, *to, *way;
} ways[] = {
    /* A tie: the lowest node id, whatever the order of links. */
    {"n1-n3 n1-n2 n2-n4 n3-n4", "n1", "5f00:0:4::", "n2 via 5f00:0:2::1"},
    {"n4-n3 n4-n2 n2-n1 n3-n1", "n4", "5f00:0:1::", "n2 via 5f00:0:2::1"},
    /* The id counts, not the name: n10 is after n9. */
    {"n1-n9 n1-n10 n9-n4 n10-n4", "n1", "5f00:0:4::", "n9 via 5f00:0:9::1"},
    /* Parallel links: the lowest port. */
    {"n1-n2 n1-n2 n1-n2", "n1", "5f00:0:2::", "n2 via 5f00:0:2::1"},
    /* No way leads through a source agent, though it be the shortest, or the only one. */
    {"n2-a1 a1-n3 n2-n4 n4-n5 n5-n3", "n2", "5f00:0:3::", "n4 via 5f00:0:4::1"},
    {"n2-a1 a1-n3", "n2", "5f00:0:3::", ""},
    {"n2-a1 a1-n3", "a1", "5f00:0:3::", "n3 via 5f00:0:3::1"},
    {"a1-n2 a1-n3", "a1", "::", "n2 via 5f00:0:2::1"},
    {"a1-a2 a2-n3", "a1", "::", ""},
    {"n1-n2 n3", "n1", "5f00:0:3::", ""},
    /* A loop, and a link to itself. */
    {"n1-n2 n2-n3 n3-n1 n1-n1", "n1", "5f00:0:3::", "n3 via 5f00:0:3::1"},
};

START_TEST(way)
    {
        struct in6_addr any = IN6ADDR_ANY_INIT, to = addr(ways[_i].to);
        struct node_config c;

        teardown();
        plan_fixture_topology(&topology, ways[_i].topology);
        c = plan_of(ways[_i].node);
        ck_assert_str_eq(way_to(&c, ways[_i].to, IN6_ARE_ADDR_EQUAL(&to, &any) ? 0 : 48),
                         ways[_i].way);
        node_config_uninit(&c);
    }
END_TEST

/* Distances by another method: Floyd and Warshall, with agents barred as intermediate nodes. */
static void
measure(const struct plan_topology *t, unsigned d[16][16])
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        for (size_t j = 0; j < t->n_nodes; j++) {
            d[i][j] = i == j ? 0 : plan_linked(t, t->nodes[i].name, t->nodes[j].name) ? 1 : 1000;
        }
    }
    for (size_t k = 0; k < t->n_nodes; k++) {
        for (size_t i = 0; t->nodes[k].role != NODE_AGENT && i < t->n_nodes; i++) {
            for (size_t j = 0; j < t->n_nodes; j++) {
                d[i][j] = MIN(d[i][j], d[i][k] + d[k][j]);
            }
        }
    }
}

/* Follows routes from node 'from' until node 'to' has the destination; how many links that are. */
static unsigned
follow(const struct plan_topology *t, const struct node_config *configs, size_t from, size_t to,
       const struct in6_addr *prefix, uint8_t plen)
{
    unsigned n = 0;

    while (from != to) {
        const struct route_config *r = route_to(&configs[from], prefix, plen);
        const struct port_config *port = NULL;

        if (!r) {
            return 1000;
        }
        for (size_t i = 0; i < configs[from].n_ports; i++) {
            if (configs[from].ports[i].number == r->port) {
                port = &configs[from].ports[i];
            }
        }
        ck_assert_ptr_nonnull(port);
        ck_assert_mem_eq(&r->next_hop, &port->peer_address, sizeof r->next_hop);
        ck_assert_uint_ne(port->role, ROLE_HOST);
        from = (size_t) (plan_find_node(t, port->peer) - t->nodes);
        ck_assert_uint_lt(n++, t->n_nodes);
    }
    return n;
}

static void
random_topology(struct plan_topology *t)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    int n_nodes = 2 + rand() % 8;

    for (int i = 1; i <= n_nodes; i++) {
        ds_put_format(&s, "%c%d ", rand() % 5 ? 'n' : 'a', i);
    }
    plan_fixture_topology(t, ds_cstr(&s));
    ds_destroy(&s);
    for (int i = rand() % (2 * n_nodes + 1); i > 0; i--) {
        plan_fixture_add_link(t, t->nodes[rand() % n_nodes].name, t->nodes[rand() % n_nodes].name);
    }
    for (int i = 1; i <= 4; i++) {
        char name[8];

        snprintf(name, sizeof name, "r%d", i);
        plan_fixture_add_host(t, name);
        plan_fixture_add_link(t, t->nodes[rand() % n_nodes].name, name);
    }
    plan_topology_prepare(t);
}

/* Every route leads to its end by a shortest way, and there is one if there is a way. */
START_TEST(random_routes)
    {
        srand((unsigned int) _i);
        for (int run = 0; run < 30; run++) {
            struct plan_topology t;
            struct node_config configs[16];
            unsigned d[16][16];

            random_topology(&t);
            measure(&t, d);
            for (size_t i = 0; i < t.n_nodes; i++) {
                ck_assert_ptr_null(plan_node_config(&t, &t.nodes[i], &configs[i]));
            }
            for (size_t i = 0; i < t.n_nodes; i++) {
                for (size_t j = 0; j < t.n_nodes; j++) {
                    struct in6_addr locator = node_locator(t.nodes[j].id);

                    ck_assert_uint_eq(follow(&t, configs, i, j, &locator, 48), d[i][j]);
                }
                for (size_t j = 0; j < t.n_hosts; j++) {
                    size_t edge = (size_t) (t.hosts[j].node - t.nodes);

                    ck_assert_uint_eq(follow(&t, configs, i, edge, &t.hosts[j].address, 128),
                                      d[i][edge]);
                    ck_assert_ptr_nonnull(route_to(&configs[edge], &t.hosts[j].address, 128));
                }
            }
            for (size_t i = 0; i < t.n_nodes; i++) {
                node_config_uninit(&configs[i]);
            }
            plan_topology_uninit(&t);
        }
    }
END_TEST

/*
 * Who and how many can be served.
 */

static const struct {
    const char *source, *member, *why; /* why: NULL: can be served. */
} reach[] = {
    {"h0", "r1", NULL},
    {"h0", "r9", NULL},
    {"h0", "r8", "member r8: no path from n1 to n3"},
    {"h0", "r7", "member r7: no path, the host has no link"},
    {"h0", "r6", "member r6: its edge n5 does not aggregate"},
    {"h0", "r5", "member r5: no such host"},
    {"h0", "h0",
     "member h0 is behind source agent a4, which sends the group's packets: it cannot be an edge of "
     "the same group"},
    {"r1", "r2", "source r1 is behind switch n1: a source must be behind a source agent"},
    {"r7", "r2", "source r7: no path, the host has no link"},
    {"r5", "r2", "source r5: no such host"},
};

START_TEST(who_can_be_served)
    {
        struct plan_member members[1];
        struct plan_group g;
        struct plan plan;

        plan_fixture_group(&g, members);
        ovs_strlcpy(g.source_host, reach[_i].source, sizeof g.source_host);
        plan_fixture_add_member(&g, reach[_i].member);
        char *error = plan_group(&topology, &g, &plan);
        if (reach[_i].why) {
            ck_assert_ptr_nonnull(error);
            ck_assert_str_eq(error, reach[_i].why);
            ck_assert_uint_eq(plan.n_trees, 0);
        } else {
            ck_assert_msg(!error, "%s", error);
        }
        free(error);
        error = plan_check_member(&topology, &g, reach[_i].member);
        ck_assert_int_eq(!error, !reach[_i].why);
        free(error);
        plan_uninit(&plan);
    }
END_TEST

#define N_EDGES 13

static const struct {
    unsigned fabric_mtu;
    uint32_t path_mtu;
    size_t n[N_EDGES]; /* receivers at each edge. */
    const char *why;   /* NULL: it fits. */
} sizes[] = {
    /* 4096 + 84 + 40, SRH 8 + 16 + 24 + 20, padded to 72. */
    {4292, 4096, {1, 0}, NULL},
    {4291,
     4096,
     {1, 0},
     "path MTU 4096 with 1 members makes packets of 4292 bytes (4096 + 84 RoCE "
     "+ 40 IPv6 + 72 SRH), and the fabric MTU is 4291"},
    /* SRH 8 + 16 + 24 + 11 * 20, padded to 272; one more receiver is another TLV. */
    {1024 + 124 + 272, 1024, {11, 0}, NULL},
    {1024 + 124 + 272,
     1024,
     {12, 0},
     "path MTU 1024 with 12 members makes packets of 1460 bytes "
     "(1024 + 84 RoCE + 40 IPv6 + 312 SRH), and the fabric MTU "
     "is 1420"},
    {1024 + 124 + 312, 1024, {12, 0}, NULL},
    /* As many receivers, but a TLV for each edge: 8 + 16 + 2 * 24 + 11 * 20 = 292, padded. */
    {1024 + 124 + 296, 1024, {10, 1}, NULL},
    {1024 + 124 + 295,
     1024,
     {10, 1},
     "path MTU 1024 with 11 members makes packets of 1444 bytes "
     "(1024 + 84 RoCE + 40 IPv6 + 296 SRH), and the fabric MTU "
     "is 1443"},
    /* Eight full TLVs: 8 + 16 + 8 * 244 = 1976; a ninth has room for two receivers: 2040. */
    {65535, 256, {88, 0}, NULL},
    {65535, 256, {89, 0}, NULL},
    {65535, 256, {90, 0}, NULL},
    {65535, 256, {91, 0}, "91 members need an SRH of 2064 bytes, and 2048 is the most"},
    {65535, 256, {88, 2}, NULL},
    {65535, 256, {45, 45}, "90 members need an SRH of 2064 bytes, and 2048 is the most"},
    /* To the byte. */
    {65535, 256, {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, NULL},
    {65535,
     256,
     {7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6},
     "86 members need an SRH of 2056 bytes, and 2048 is the most"},
};

/* Proves MT-6-R8754-11. */
START_TEST(packet_sizes)
    {
        struct plan_member members[100];
        struct plan_topology t;
        struct plan_group g;

        plan_fixture_topology(&t, "h0-a9 a9-n1 n1-n2 n1-n3 n1-n4 n1-n5 n1-n6 n1-n7 n1-n8 n1-n10 "
                                  "n1-n11 n1-n12 n1-n13 n1-n14");
        plan_fixture_group(&g, members);
        g.mtu = sizes[_i].path_mtu;
        t.fabric_mtu = sizes[_i].fabric_mtu;
        for (size_t edge = 0; edge < N_EDGES; edge++) {
            for (size_t i = 0; i < sizes[_i].n[edge]; i++) {
                char name[24], node[24];

                snprintf(name, sizeof name, "r%zu", i + 1 + edge * 100);
                /* Id 9 is the source agent's. */
                snprintf(node, sizeof node, "n%zu", edge + 1 + (edge >= 8));
                plan_fixture_add_host(&t, name);
                plan_fixture_add_link(&t, node, name);
                plan_fixture_add_member(&g, name);
            }
        }
        plan_topology_prepare(&t);
        char *error = plan_check_size(&t, &g);
        if (sizes[_i].why) {
            ck_assert_ptr_nonnull(error);
            ck_assert_str_eq(error, sizes[_i].why);
        } else {
            ck_assert_msg(!error, "%s", error);
        }
        free(error);
        plan_topology_uninit(&t);
    }
END_TEST

Suite *
plan_suite(void)
{
    Suite *suite = suite_create("plan");
    TCase *plan = tcase_create("plan");

    tcase_add_checked_fixture(plan, setup, teardown);
    tcase_add_test(plan, switch_node);
    tcase_add_loop_test(plan, sids, 0, ARRAY_SIZE(sid_cases));
    tcase_add_test(plan, sids_of_many_ports);
    tcase_add_test(plan, agent_node);
    tcase_add_test(plan, foreign_nodes);
    tcase_add_loop_test(plan, foreign_cannot, 0, 12);
    tcase_add_test(plan, port_numbers_stay);
    tcase_add_test(plan, interface_used_twice);
    tcase_add_loop_test(plan, way, 0, ARRAY_SIZE(ways));
    tcase_add_loop_test(plan, random_routes, 0, 10);
    tcase_add_loop_test(plan, who_can_be_served, 0, ARRAY_SIZE(reach));
    tcase_add_loop_test(plan, packet_sizes, 0, ARRAY_SIZE(sizes));
    suite_add_tcase(suite, plan);
    return suite;
}
