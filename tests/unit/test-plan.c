/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner on plain topologies, the order of roll-out against a model of
 * nodes that apply when they like, and the strict values.
 */
#include <config.h>

#include "ctl/plan.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "ctl/rollout.h"
#include "ctl/values.h"
#include "tests/unit/suites.h"
#include "util.h"

/*
 * Topologies.
 */

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

static void
add_node(const char *name, uint16_t id, bool agent)
{
    struct plan_node *n = &topology.nodes[topology.n_nodes++];

    ovs_strlcpy(n->name, name, sizeof n->name);
    n->id = id;
    n->agent = agent;
}

static void
add_host(const char *name, const char *address)
{
    struct plan_host *h = &topology.hosts[topology.n_hosts++];

    ovs_strlcpy(h->name, name, sizeof h->name);
    h->address = addr(address);
}

static void
add_link(const char *a, const char *a_port, const char *b, const char *b_port)
{
    struct plan_link *l = &topology.links[topology.n_links++];

    ovs_strlcpy(l->a, a, sizeof l->a);
    ovs_strlcpy(l->a_port, a_port, sizeof l->a_port);
    ovs_strlcpy(l->b, b, sizeof l->b);
    ovs_strlcpy(l->b_port, b_port, sizeof l->b_port);
    l->kind = PORT_PACKET;
}

/* h0 - a0 - n1 - {r1, r2}; n1 - n2 - r9; n3 apart with r8; hosts without link: r7. */
static void
setup(void)
{
    topology = (struct plan_topology){.fabric_mtu = 9000};
    topology.nodes = xcalloc(16, sizeof *topology.nodes);
    topology.hosts = xcalloc(16, sizeof *topology.hosts);
    topology.links = xcalloc(16, sizeof *topology.links);
    add_node("n3", 0x300, false);
    add_node("n2", 0x200, false);
    add_node("a0", 0x400, true);
    add_node("n1", 0x100, false);
    add_host("r9", "fd00:1::9");
    add_host("r8", "fd00:1::8");
    add_host("r7", "fd00:1::7");
    add_host("r2", "fd00:1::2");
    add_host("r1", "fd00:1::1");
    add_host("h0", "fd00:1::100");
    add_link("r1", "t1", "n1", "t1");
    add_link("n1", "t2", "r2", "t2");
    add_link("n1", "up", "a0", "down");
    add_link("a0", "t0", "h0", "t0");
    add_link("n2", "x", "n1", "y");
    add_link("r9", "t9", "n2", "t9");
    add_link("r8", "t8", "n3", "t8");
    add_link("n1", "lost", "nobody", "z");
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
route_to(const struct node_config *config, const char *prefix, uint8_t plen)
{
    struct in6_addr a = addr(prefix);

    for (size_t i = 0; i < config->n_routes; i++) {
        if (config->routes[i].plen == plen && !memcmp(&config->routes[i].prefix, &a, sizeof a)) {
            return &config->routes[i];
        }
    }
    return NULL;
}

START_TEST(switch_node)
    {
        struct node_config c = plan_of("n1");

        ck_assert_uint_eq(c.n_ports, 4); /* not the link to nobody. */
        for (size_t i = 0; i < c.n_ports; i++) {
            ck_assert_uint_eq(c.ports[i].number, i + 1);
        }
        ck_assert_int_eq(port_named(&c, "t1")->role, ROLE_HOST);
        ck_assert_addr_eq(port_named(&c, "t1")->peer_address, "fd00:1::1");
        ck_assert_int_eq(port_named(&c, "up")->role, ROLE_AGENT);
        ck_assert_addr_eq(port_named(&c, "up")->peer_address, "5f00:0:400::1");
        ck_assert_int_eq(port_named(&c, "y")->role, ROLE_FABRIC);
        ck_assert_str_eq(port_named(&c, "y")->peer, "n2");

        ck_assert_uint_eq(c.n_routes, 6);
        ck_assert_addr_eq(route_to(&c, "fd00:1::1", 128)->next_hop, "::");
        ck_assert_uint_eq(route_to(&c, "fd00:1::1", 128)->port, port_named(&c, "t1")->number);
        ck_assert_addr_eq(route_to(&c, "fd00:1::100", 128)->next_hop, "5f00:0:400::1");
        ck_assert_addr_eq(route_to(&c, "5f00:0:400::", 48)->next_hop, "5f00:0:400::1");
        ck_assert_addr_eq(route_to(&c, "fd00:1::9", 128)->next_hop, "5f00:0:200::1");
        ck_assert_ptr_null(route_to(&c, "::", 0));
        node_config_uninit(&c);
    }
END_TEST

START_TEST(agent_node)
    {
        struct node_config c = plan_of("a0");

        ck_assert_uint_eq(c.n_sids, 0);
        ck_assert_addr_eq(route_to(&c, "fd00:1::100", 128)->next_hop, "::");
        ck_assert_addr_eq(route_to(&c, "::", 0)->next_hop, "5f00:0:100::1");
        ck_assert_uint_eq(route_to(&c, "::", 0)->port, port_named(&c, "down")->number);
        node_config_uninit(&c);
    }
END_TEST

/* An interface keeps its number; a new one gets the lowest that is free. */
START_TEST(port_numbers_stay)
    {
        struct plan_node *n1 = CONST_CAST(struct plan_node *, plan_find_node(&topology, "n1"));

        n1->ports = xcalloc(2, sizeof *n1->ports);
        n1->n_ports = 2;
        ovs_strlcpy(n1->ports[0].name, "y", IFNAMSIZ);
        n1->ports[0].number = 1;
        ovs_strlcpy(n1->ports[1].name, "gone", IFNAMSIZ);
        n1->ports[1].number = 2;

        struct node_config c = plan_of("n1");
        ck_assert_uint_eq(port_named(&c, "y")->number, 1);
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
        ovs_strlcpy(n1->ports[0].name, "up", IFNAMSIZ);
        n1->ports[0].number = 1;
        add_link("n1", "up", "n2", "other");
        plan_topology_prepare(&topology);

        char *error = plan_node_config(&topology, n1, &c);
        ck_assert_str_eq(error, "node n1: interface up is used by two links");
        ck_assert_ptr_null(c.ports);
        free(error);
    }
END_TEST

/*
 * Groups.
 */

static struct plan_member members[4];

static struct plan_group
group_of(const char *source)
{
    struct plan_group g = {
        .name = "g",
        .epoch = 3,
        .proxy = proxy_address(1),
        .designated_qpn = 0x103,
        .start_psn = {0xffffff},
        .mtu = 1024,
        .designated_rkey = 9,
        .source_qpn = 18,
        .members = members,
        .agent = true,
        .open = true,
    };

    ovs_strlcpy(g.source_host, source, sizeof g.source_host);
    memset(members, 0, sizeof members);
    return g;
}

static void
add_member(struct plan_group *g, const char *host, uint32_t branch, uint64_t len, bool copy)
{
    struct plan_member *m = &g->members[g->n_members++];

    ovs_strlcpy(m->host, host, sizeof m->host);
    m->branch = branch;
    m->qpn = 100 + branch;
    m->rkey = 200 + branch;
    m->va = 0x1000 * branch;
    m->len = len;
    m->provision = true;
    m->copy = copy;
}

START_TEST(trees)
    {
        struct plan_group g = group_of("h0");
        struct plan plan;

        add_member(&g, "r2", 2, 5000, true);
        add_member(&g, "r1", 7, 4096, false);
        char *error = plan_group(&topology, &g, &plan);
        ck_assert_msg(!error, "%s", error);
        ck_assert_uint_eq(plan.n_trees, 2);
        ck_assert_uint_eq(plan.region_len, 4096);

        const struct tree_config *edge = &plan.trees[0].config;
        ck_assert_str_eq(plan.trees[0].node->name, "n1");
        ck_assert(edge->root);
        ck_assert_uint_eq(edge->epoch, 3);
        ck_assert_uint_eq(edge->start_psn.v, 0xffffff);
        ck_assert_addr_eq(edge->source, "fd00:1::100");
        ck_assert_uint_eq(edge->n_branches, 2);
        ck_assert_uint_eq(edge->branches[0].id, 2);
        ck_assert_addr_eq(edge->branches[1].address, "fd00:1::1");
        ck_assert_addr_eq(edge->branches[1].edge, "5f00:0:100::1");
        ck_assert_uint_eq(edge->branches[1].qpn, 107);
        ck_assert_uint_eq(edge->branches[1].va, 0x7000);

        const struct tree_config *agent = &plan.trees[1].config;
        ck_assert_str_eq(plan.trees[1].node->name, "a0");
        ck_assert(agent->open && !agent->root);
        ck_assert_uint_eq(agent->n_branches, 0);
        ck_assert_uint_eq(agent->n_copies, 1);
        ck_assert_str_eq(agent->copies[0].name, "r2");
        ck_assert_uint_eq(agent->n_outer_da, 1);
        ck_assert_addr_eq(agent->outer_da[0], "5f00:0:100:e001::");
        plan_uninit(&plan);
    }
END_TEST

/* One member without a region: no WRITE for anybody. */
START_TEST(no_common_region)
    {
        struct plan_group g = group_of("h0");
        struct plan plan;

        add_member(&g, "r1", 1, 4096, true);
        add_member(&g, "r2", 2, 0, true);
        ck_assert_ptr_null(plan_group(&topology, &g, &plan));
        ck_assert_uint_eq(plan.region_len, 0);
        plan_uninit(&plan);
    }
END_TEST

static const struct {
    const char *source, *member, *why; /* why: NULL: can be served. */
} reach[] = {
    {"h0", "r1", NULL},
    {"h0", "r9",
     "member r9 is behind n2: trees with transit nodes are not supported by this version"},
    {"h0", "r8", "member r8: no path from n1 to n3"},
    {"h0", "r7", "member r7: no path, the host has no link"},
    {"h0", "r6", "member r6: no such host"},
    {"h0", "h0", "member h0 is behind source agent a0: a receiver must be behind a switch"},
    {"r1", "r2", "source r1 is behind switch n1: a source must be behind a source agent"},
    {"r7", "r2", "source r7: no path, the host has no link"},
    {"r6", "r2", "source r6: no such host"},
};

START_TEST(who_can_be_served)
    {
        struct plan_group g = group_of(reach[_i].source);
        struct plan plan;

        add_member(&g, reach[_i].member, 1, 0, true);
        char *error = plan_group(&topology, &g, &plan);
        if (reach[_i].why) {
            ck_assert_ptr_nonnull(error);
            ck_assert_str_eq(error, reach[_i].why);
            ck_assert_uint_eq(plan.n_trees, 0);
        } else {
            ck_assert_msg(!error, "%s", error);
        }
        free(error);
        plan_uninit(&plan);
    }
END_TEST

static const struct {
    unsigned fabric_mtu;
    uint32_t path_mtu;
    size_t n;
    bool fits;
} sizes[] = {
    /* 4096 + 84 + 40, SRH 8 + 16 + 24 + 20, padded to 72. */
    {4292, 4096, 1, true},
    {4291, 4096, 1, false},
    /* SRH 8 + 16 + 24 + 11 * 20, padded to 272; one more receiver is another TLV. */
    {1024 + 124 + 272, 1024, 11, true},
    {1024 + 124 + 272, 1024, 12, false},
    {1024 + 124 + 312, 1024, 12, true},
    /* SRH: 8 + 16 + 8 * 244 + 24 + 2 * 20 = 2040; three in the last TLV would be 2060. */
    {65535, 256, 90, true},
    {65535, 256, 91, false},
};

START_TEST(packet_sizes)
    {
        topology.fabric_mtu = sizes[_i].fabric_mtu;
        char *error = plan_check_size(&topology, sizes[_i].path_mtu, sizes[_i].n);
        ck_assert_msg(!error == sizes[_i].fits, "%s", error ? error : "fits");
        free(error);
    }
END_TEST

/*
 * Roll-out: members come and go, nodes apply when they like, the epoch starts
 * at any time that it can.
 */

#define N_MEMBERS 4

struct told {
    bool exists, open;
    bool has[N_MEMBERS];
};

struct model {
    struct rollout_member members[N_MEMBERS];
    bool want[N_MEMBERS];
    struct told edge, agent;           /* rows. */
    struct told edge_runs, agent_runs; /* what the nodes have applied. */
    bool source, started, serving;
};

static struct rollout
model_step(struct model *m)
{
    struct rollout r = {
        .source = m->source,
        .started = m->started,
        .agent_exists = m->agent.exists,
        .agent_open = m->agent.open,
        .agent_applied = !memcmp(&m->agent, &m->agent_runs, sizeof m->agent),
        .edges_applied = !memcmp(&m->edge, &m->edge_runs, sizeof m->edge),
        .was_serving = m->serving,
        .n_members = N_MEMBERS,
        .members = m->members,
    };
    bool any = false;

    for (size_t i = 0; i < N_MEMBERS; i++) {
        m->members[i] = (struct rollout_member){
            .wanted = m->want[i], .provisioned = m->edge.has[i], .copied = m->agent.has[i]};
    }
    rollout_step(&r);
    for (size_t i = 0; i < N_MEMBERS; i++) {
        /* A receiver is not added beneath packets that are on their way. */
        ck_assert(!(m->members[i].provision && !m->edge.has[i] && m->agent_runs.open));
        /* Nobody joins an epoch that has started. */
        ck_assert(!(m->members[i].copy && !m->agent.has[i] && m->started));
        m->edge.has[i] = m->members[i].provision;
        m->agent.has[i] = m->members[i].copy;
        any |= m->edge.has[i];
    }
    m->edge.exists = any;
    m->agent.exists = r.agent;
    m->agent.open = r.open;
    m->serving = r.serving;
    return r;
}

static void
check_model(const struct model *m)
{
    for (size_t i = 0; i < N_MEMBERS; i++) {
        /* Whatever the agent sends, the edge has a receiver for it. */
        ck_assert(!(m->agent_runs.open && m->agent_runs.has[i]) || m->edge_runs.has[i]);
    }
}

/* All nodes apply at once until nothing changes. */
static struct rollout
settle(struct model *m)
{
    struct rollout r = model_step(m);

    for (int i = 0; i < 20; i++) {
        m->edge_runs = m->edge;
        m->agent_runs = m->agent;
        r = model_step(m);
    }
    return r;
}

static void
random_event(struct model *m)
{
    switch (rand() % 6) {
    case 0: {
        size_t i = (size_t) rand() % N_MEMBERS;

        m->want[i] = !m->want[i];
        break;
    }
    case 1: m->edge_runs = m->edge; break;
    case 2: m->agent_runs = m->agent; break;
    case 3: m->started |= m->agent_runs.open && rand() % 8 == 0; break;
    default: model_step(m); break;
    }
}

START_TEST(rollout_random)
    {
        srand((unsigned int) _i);
        for (int run = 0; run < 200; run++) {
            struct model m = {.source = true};

            for (int n = rand() % 100; n > 0; n--) {
                random_event(&m);
                check_model(&m);
            }

            struct rollout r = settle(&m);
            bool any = false;
            for (size_t i = 0; i < N_MEMBERS; i++) {
                any |= m.agent.has[i];
                ck_assert(m.agent.has[i] == m.edge.has[i]);
                ck_assert(m.agent.has[i] == (m.want[i] && !m.members[i].too_late));
                ck_assert(m.started || !m.members[i].too_late);
            }
            ck_assert(r.serving == any && m.agent.open == any);
        }
    }
END_TEST

/*
 * Values.
 */

static const struct {
    const char *text;
    uint64_t min, max, value;
    bool valid;
} numbers[] = {
    {"0", 0, 1, 0, true},
    {"0x10", 2, 16, 16, true},
    {"18446744073709551615", 0, UINT64_MAX, UINT64_MAX, true},
    {"18446744073709551616", 0, UINT64_MAX, 0, false},
    {"0xffffffffffffffff", 0, UINT64_MAX, UINT64_MAX, true},
    {"010", 0, 10, 10, true},
    {"17", 2, 16, 0, false},
    {"1", 2, 16, 0, false},
    {"", 0, 9, 0, false},
    {"0x", 0, 9, 0, false},
    {"-1", 0, 9, 0, false},
    {"+1", 0, 9, 0, false},
    {" 1", 0, 9, 0, false},
    {"1 ", 0, 9, 0, false},
    {"1x", 0, 9, 0, false},
};

START_TEST(number_values)
    {
        uint64_t value;
        bool valid = number_parse(numbers[_i].text, numbers[_i].min, numbers[_i].max, &value);

        ck_assert_int_eq(valid, numbers[_i].valid);
        ck_assert(!valid || value == numbers[_i].value);
    }
END_TEST

START_TEST(name_values)
    {
        char name[65];

        memset(name, 'x', sizeof name);
        name[64] = '\0';
        ck_assert(!name_is_valid(name));
        name[63] = '\0';
        ck_assert(name_is_valid(name));
        ck_assert(name_is_valid("a.B_9-"));
        ck_assert(!name_is_valid(""));
        ck_assert(!name_is_valid("a b"));
        ck_assert(!name_is_valid("a\n"));
        ck_assert(ifname_is_valid("abcdefghijklmno"));
        ck_assert(!ifname_is_valid("abcdefghijklmnop"));
        ck_assert(!ifname_is_valid(".."));
        ck_assert(!ifname_is_valid("a:b"));
    }
END_TEST

START_TEST(prefix_values)
    {
        struct in6_addr a;
        uint8_t plen;

        ck_assert(ip6_prefix_parse("5f00:0:1::/48", &a, &plen));
        ck_assert_uint_eq(plen, 48);
        ck_assert(ip6_prefix_parse("::/0", &a, &plen));
        ck_assert(ip6_prefix_parse("fd00::1/128", &a, &plen));
        ck_assert(!ip6_prefix_parse("fd00::1/127", &a, &plen));
        ck_assert(!ip6_prefix_parse("fd00::/129", &a, &plen));
        ck_assert(!ip6_prefix_parse("fd00::", &a, &plen));
        ck_assert(!ip6_prefix_parse("/64", &a, &plen));
    }
END_TEST

static const struct {
    const char *text;
    bool allowed;
} addresses[] = {
    {"fd00::1", true},
    {"2001:db8::1", true},
    {"::", false},
    {"::1", false},
    {"ff02::1", false},
    {"fe80::1", false},
    {"::ffff:1.2.3.4", false},
    {"5f00::1", false},
    {"5f01::1", true},
    {"fd00:ffff::1", false},
    {"fd00:fffe::1", true},
};

START_TEST(host_addresses)
    {
        struct in6_addr a = addr(addresses[_i].text);

        ck_assert_int_eq(!host_address_check(&a), addresses[_i].allowed);
    }
END_TEST

Suite *
plan_suite(void)
{
    Suite *suite = suite_create("plan");
    TCase *plan = tcase_create("plan");
    TCase *rollout = tcase_create("rollout");
    TCase *values = tcase_create("values");

    tcase_add_checked_fixture(plan, setup, teardown);
    tcase_add_test(plan, switch_node);
    tcase_add_test(plan, agent_node);
    tcase_add_test(plan, port_numbers_stay);
    tcase_add_test(plan, interface_used_twice);
    tcase_add_test(plan, trees);
    tcase_add_test(plan, no_common_region);
    tcase_add_loop_test(plan, who_can_be_served, 0, ARRAY_SIZE(reach));
    tcase_add_loop_test(plan, packet_sizes, 0, ARRAY_SIZE(sizes));
    suite_add_tcase(suite, plan);

    tcase_add_loop_test(rollout, rollout_random, 0, 10);
    suite_add_tcase(suite, rollout);

    tcase_add_loop_test(values, number_values, 0, ARRAY_SIZE(numbers));
    tcase_add_test(values, name_values);
    tcase_add_test(values, prefix_values);
    tcase_add_loop_test(values, host_addresses, 0, ARRAY_SIZE(addresses));
    suite_add_tcase(suite, values);
    return suite;
}
