/* SPDX-License-Identifier: Apache-2.0
 *
 * What castfwd tells Open vSwitch and the kernel.
 */
#include <config.h>

#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "castfwd/castfwd.h"
#include "socket-util.h"
#include "tests/unit/suites.h"
#include "util.h"

static struct node_config config;
static struct port_config ports[2];
static struct route_config routes[4];
static struct tree_config trees[2];
static struct in6_addr das[2];
static struct svec rules;

static struct in6_addr
addr(const char *s)
{
    struct in6_addr a;

    ck_assert_int_eq(inet_pton(AF_INET6, s, &a), 1);
    return a;
}

static void
set_port(size_t i, const char *peer, enum port_role role, uint16_t peer_id)
{
    ports[i] = (struct port_config){.number = (uint16_t) (i + 1),
                                    .kind = PORT_PACKET,
                                    .role = role,
                                    .peer_address = node_address(peer_id)};
    ovs_strlcpy(ports[i].name, peer, sizeof ports[i].name);
    ovs_strlcpy(ports[i].peer, peer, sizeof ports[i].peer);
    node_port_mac(4, ports[i].number, ports[i].mac);
    node_port_mac(peer_id, 9, ports[i].peer_mac);
}

/* Node n4 between source agent a1 and n2; a tree sends copies to n2 and, behind it, n3. */
static void
setup(void)
{
    set_port(0, "a1", ROLE_AGENT, 1);
    set_port(1, "n2", ROLE_FABRIC, 2);
    routes[0] = (struct route_config){node_locator(1), 48, 1, node_address(1)};
    routes[1] = (struct route_config){node_locator(2), 48, 2, node_address(2)};
    routes[2] = (struct route_config){addr("5f00::"), 32, 2, node_address(2)};
    das[0] = node_sid(2, SID_FUNC_END_MT);
    das[1] = node_sid(3, SID_FUNC_END_MT);
    for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
        trees[i] =
            (struct tree_config){.group = "g",
                                 .epoch = (uint32_t) i + 1,
                                 .outer_source = node_address(1),
                                 .replication_sid = node_sid(4, SID_FUNC_END_REPLICATE + 0x123),
                                 .n_outer_da = 2,
                                 .outer_da = das};
    }
    config = (struct node_config){.name = "n4",
                                  .id = 4,
                                  .role = NODE_OVS,
                                  .address = node_address(4),
                                  .n_ports = 2,
                                  .ports = ports,
                                  .n_routes = 3,
                                  .routes = routes,
                                  .n_trees = 1,
                                  .trees = trees};
    svec_init(&rules);
}

static void
teardown(void)
{
    svec_destroy(&rules);
}

static void
make_rules(char *(*make)(const struct node_config *, struct svec *) )
{
    char *error = make(&config, &rules);

    ck_assert_msg(!error, "%s", error);
}

static struct kernel_abilities abilities;

static char *
router_rules(const struct node_config *c, struct svec *r)
{
    return kernel_rules(c, &abilities, r);
}

static void
expect_rule(const char *rule)
{
    ck_assert_msg(svec_contains(&rules, rule), "%s", rule);
}

#define TO_N2 "set_field:02:5f:00:04:00:02->eth_src,set_field:02:5f:00:02:00:09->eth_dst,output:2"
#define GROUP                                                                                       \
    "group group_id=292,type=all,bucket=actions=dec_ttl,set_field:5f00:0:2:e001::->ipv6_dst," TO_N2 \
    ",bucket=actions=dec_ttl,set_field:5f00:0:3:e001::->ipv6_dst," TO_N2

START_TEST(ovs_copies)
    {
        make_rules(ovs_rules);
        expect_rule(GROUP);
        /* Copies are made of what comes from the source agent. */
        expect_rule("flow table=1,priority=300,ipv6,ipv6_src=5f00:0:1::1,"
                    "ipv6_dst=5f00:0:4:f123:: actions=group:292");
        expect_rule("flow cookie=0xd6,table=1,priority=290,ipv6,ipv6_dst=5f00:0:4:f123:: "
                    "actions=drop");
        expect_rule("flow table=1,priority=148,ipv6,ipv6_dst=5f00:0:2::/48 actions=dec_ttl," TO_N2);
        expect_rule("flow table=1,priority=132,ipv6,ipv6_dst=5f00::/32 actions=dec_ttl," TO_N2);
        expect_rule(
            "flow cookie=0xd2,table=1,priority=148,ipv6,ipv6_dst=5f00:0:4::/48 actions=drop");
        /* The guard is at the source agent's port. */
        expect_rule("flow cookie=0xd4,table=0,priority=210,in_port=1,dl_dst=02:5f:00:04:00:01,ipv6,"
                    "ipv6_dst=5f00::/32 actions=drop");
        expect_rule("flow cookie=0xd5,table=0,priority=400,vlan_tci=0x1000/0x1000 actions=drop");
        expect_rule("flow table=0,priority=410,vlan_tci=0x1000/0x1fff "
                    "actions=strip_vlan,resubmit(,0)");
    }
END_TEST

/* Epochs of a group share the SID, and with it the OpenFlow group. */
START_TEST(ovs_two_epochs)
    {
        trees[0].n_outer_da = 1;
        trees[1].outer_da = &das[1];
        trees[1].n_outer_da = 1;
        trees[1].outer_source = node_address(2); /* the source has moved. */
        config.n_trees = 2;
        make_rules(ovs_rules);
        expect_rule(GROUP);
        for (unsigned i = 1; i <= 2; i++) {
            char *rule = xasprintf("flow table=1,priority=300,ipv6,ipv6_src=5f00:0:%u::1,"
                                   "ipv6_dst=5f00:0:4:f123:: actions=group:292",
                                   i);

            expect_rule(rule);
            free(rule);
        }
    }
END_TEST

/* What is not reached gets no copy; a tree without a SID is none. */
START_TEST(ovs_no_copies)
    {
        config.n_routes = 2;
        make_rules(ovs_rules);
        expect_rule("group group_id=292,type=all,bucket=actions=dec_ttl,"
                    "set_field:5f00:0:2:e001::->ipv6_dst," TO_N2);
        svec_clear(&rules);
        trees[0].replication_sid = in6addr_any;
        make_rules(ovs_rules);
        for (size_t i = 0; i < rules.n; i++) {
            ck_assert_msg(strncmp(rules.names[i], "group ", 6), "%s", rules.names[i]);
        }
    }
END_TEST

static void
expect_change(const struct svec *from, const struct svec *to, const char *bundle)
{
    char *change = ovs_rules_change(from, to);

    ck_assert_str_eq(change, bundle);
    free(change);
}

START_TEST(ovs_changes)
    {
        static const char *const names[] = {"flow cookie=0xd0,table=0,priority=0 actions=drop",
                                            "flow table=1,priority=3,ipv6 actions=group:7",
                                            "group group_id=7,type=all,bucket=actions=output:1"};
        struct svec none = SVEC_EMPTY_INITIALIZER, other = SVEC_EMPTY_INITIALIZER;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
            svec_add(&rules, names[i]);
        }
        expect_change(&none, &rules,
                      "flow delete\ngroup delete\n"
                      "group add_or_mod group_id=7,type=all,bucket=actions=output:1\n"
                      "flow add cookie=0xd0,table=0,priority=0 actions=drop\n"
                      "flow add table=1,priority=3,ipv6 actions=group:7\n");
        expect_change(&rules, &rules, "");
        svec_add(&other, names[0]);
        expect_change(&rules, &other,
                      "flow delete_strict table=1,priority=3,ipv6\ngroup delete group_id=7\n");
        svec_add(&other, names[1]);
        svec_add(&other, "group group_id=7,type=all,bucket=actions=output:2");
        expect_change(&rules, &other,
                      "group add_or_mod group_id=7,type=all,bucket=actions=output:2\n");
        /* Group 70 is not group 7. */
        svec_clear(&other);
        svec_add(&other, names[0]);
        svec_add(&other, "group group_id=70,type=all");
        expect_change(&rules, &other,
                      "flow delete_strict table=1,priority=3,ipv6\ngroup delete group_id=7\n"
                      "group add_or_mod group_id=70,type=all\n");
        svec_destroy(&other);
    }
END_TEST

static void
expect_ports_change(const struct svec *from, const struct svec *to, const char *arguments)
{
    char *change = ovs_ports_change("br-n4", from, to, 77);

    ck_assert_str_eq(change, arguments);
    free(change);
}

START_TEST(ovs_ports_changes)
    {
        struct svec other = SVEC_EMPTY_INITIALIZER;

        ovs_ports(&config, &rules);
        expect_ports_change(
            NULL, &rules,
            " -- --may-exist add-br br-n4 -- set bridge br-n4 datapath_type=netdev "
            "fail_mode=secure protocols=OpenFlow10,OpenFlow15 external_ids:castfwd=77"
            " -- list-ports br-n4"
            " -- --may-exist add-port br-n4 a1 -- set interface a1 ofport_request=1"
            " -- --may-exist add-port br-n4 n2 -- set interface n2 ofport_request=2");
        expect_ports_change(&rules, &rules, "");
        /* Another number, and one port for another whose name begins with its. */
        svec_add(&other, "a1 7");
        svec_add(&other, "n22 2");
        expect_ports_change(&rules, &other,
                            " -- --if-exists del-port br-n4 n2"
                            " -- --may-exist add-port br-n4 a1 -- set interface a1 ofport_request=7"
                            " -- --may-exist add-port br-n4 n22 -- set interface n22 "
                            "ofport_request=2");
        svec_destroy(&other);
    }
END_TEST

START_TEST(kernel_routes)
    {
        config.role = NODE_ROUTER;
        config.n_trees = 0;
        make_rules(router_rules);
        expect_rule("address replace 5f00:0:4::1/128 dev n2 nodad");
        expect_rule("link set dev n2 address 02:5f:00:04:00:02");
        expect_rule("neighbour replace 5f00:0:2::1 lladdr 02:5f:00:02:00:09 dev n2 nud permanent");
        expect_rule("route replace 5f00:0:2::/48 via 5f00:0:2::1 dev n2 onlink proto 95");
        expect_rule("route replace unreachable 5f00::/32 metric 2048 proto 95");
        expect_rule("sysctl net/ipv6/conf/all/forwarding=1");
    }
END_TEST

/* With a trace the ports are those of an IOAM transit node; without, they are not any more. */
START_TEST(kernel_traces)
    {
        struct svec traced, undone = SVEC_EMPTY_INITIALIZER;

        config.role = NODE_ROUTER;
        config.n_trees = 0;
        config.congestion.trace = true;
        make_rules(router_rules);
        expect_rule("sysctl net/ipv6/ioam6_id=4");
        expect_rule("sysctl net/ipv6/conf/n2/ioam6_enabled=1");
        expect_rule("ioam namespace add 1");
        svec_clone(&traced, &rules);
        svec_clear(&rules);
        config.congestion.trace = false;
        make_rules(router_rules);
        char *commands = kernel_rules_remove(&traced, &rules);
        ck_assert_str_eq(commands, "ioam namespace del 1\n");
        free(commands);
        kernel_rules_undo(&traced, &rules, &undone);
        ck_assert_uint_eq(undone.n, config.n_ports);
        ck_assert(svec_contains_unsorted(&undone, "sysctl net/ipv6/conf/n2/ioam6_enabled=0"));
        svec_destroy(&undone);
        svec_destroy(&traced);
    }
END_TEST

/* A route to somewhere else is replaced; the rest of what is not wanted goes. */
START_TEST(kernel_removes)
    {
        struct svec before;

        config.role = NODE_ROUTER;
        config.n_trees = 0;
        make_rules(router_rules);
        svec_clone(&before, &rules);
        svec_clear(&rules);
        config.n_ports = 1;
        config.n_routes = 2;
        routes[1] = (struct route_config){node_locator(2), 48, 1, node_address(1)};
        make_rules(router_rules);
        char *commands = kernel_rules_remove(&before, &rules);
        ck_assert_str_eq(commands,
                         "address del 5f00:0:4::1/128 dev n2 nodad\n"
                         "neighbour del 5f00:0:2::1 lladdr 02:5f:00:02:00:09 dev n2 nud permanent\n"
                         "route del 5f00:0:2::/48 via 5f00:0:2::1 dev n2 onlink proto 95\n"
                         "route del 5f00::/32 via 5f00:0:2::1 dev n2 onlink proto 95\n");
        free(commands);
        commands = kernel_rules_remove(&rules, &rules);
        ck_assert_str_eq(commands, "");
        free(commands);
        svec_destroy(&before);
    }
END_TEST

/* uN, uA to n2 in both forms, and what routers have besides. */
static void
set_sids(void)
{
    static struct sid_config sids[7];

    sids[0] = (struct sid_config){node_locator(4), 48, SID_UN, 32, 0};
    sids[1] = (struct sid_config){node_sid(4, 0xe102), 64, SID_UA, 32, 2};
    sids[2] = (struct sid_config){local_sid(0xe102), 48, SID_UA, 32, 2};
    sids[3] = (struct sid_config){node_sid(4, SID_FUNC_END_DT6), 64, SID_END_DT6, 0, 0};
    sids[4] = (struct sid_config){node_sid(4, 0xe302), 64, SID_END_X, 0, 2};
    sids[5] = (struct sid_config){node_sid(4, 0xe201), 64, SID_END_DX6, 0, 1};
    sids[6] = (struct sid_config){node_sid(4, 0xe109), 64, SID_UA, 32, 9}; /* no such port. */
    config.sids = sids;
    config.n_sids = ARRAY_SIZE(sids);
}

static void
expect_no_rule(const char *words)
{
    for (size_t i = 0; i < rules.n; i++) {
        ck_assert_msg(!strstr(rules.names[i], words), "%s", rules.names[i]);
    }
}

#define TO_ROUTES "actions=load:0->NXM_OF_IN_PORT[],resubmit(,1)"
#define SHIFT_16                                                                       \
    "move:NXM_NX_IPV6_DST[0..79]->NXM_NX_XXREG0[16..95],load:0->NXM_NX_XXREG0[0..15]," \
    "move:NXM_NX_XXREG0[0..95]->NXM_NX_IPV6_DST[0..95],"
#define SHIFT_32                                                                       \
    "move:NXM_NX_IPV6_DST[0..63]->NXM_NX_XXREG0[32..95],load:0->NXM_NX_XXREG0[0..31]," \
    "move:NXM_NX_XXREG0[0..95]->NXM_NX_IPV6_DST[0..95],"

/* What uN has shifted goes to neighbours, whatever the routes are; what uA has, out of its port. */
START_TEST(ovs_sids)
    {
        static const char *const wanted[] = {
            "flow table=1,priority=148,ipv6,ipv6_dst=5f00:0:4::/48 actions=" SHIFT_16
            "resubmit(,3)",
            "flow cookie=0xd7,table=1,priority=228,ipv6,ipv6_dst=5f00:0:4:: actions=drop",
            "flow cookie=0xd9,table=1,priority=164,ipv6,ipv6_dst=5f00:0:4::/64 actions=drop",
            "flow cookie=0xd2,table=1,priority=151,ipv6,ipv6_dst=5f00:0:4:e000::/51 actions=drop",
            "flow cookie=0xd2,table=1,priority=228,ipv6,ipv6_dst=5f00:0:4::1 actions=drop",
            "flow table=3,priority=148,ipv6,ipv6_dst=5f00:0:4::/48 actions=resubmit(,1)",
            "flow table=3,priority=148,ipv6,ipv6_dst=5f00:0:2::/48 actions=dec_ttl," TO_N2,
            "flow cookie=0xd8,table=3,priority=0 actions=drop",
            "flow table=1,priority=164,ipv6,ipv6_dst=5f00:0:4:e102::/64 actions=" SHIFT_32
            "dec_ttl," TO_N2,
            "flow table=1,priority=148,ipv6,ipv6_dst=5f00:0:e102::/48 actions=" SHIFT_16
            "dec_ttl," TO_N2,
            "flow cookie=0xd7,table=1,priority=228,ipv6,ipv6_dst=5f00:0:e102:: actions=drop",
        };

        set_sids();
        routes[2] = (struct route_config){node_locator(3), 48, 2, node_address(2)};
        make_rules(ovs_rules);
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
            expect_rule(wanted[i]);
        }
        expect_no_rule("table=3,priority=148,ipv6,ipv6_dst=5f00:0:3::/48");
        expect_no_rule("e109");
        expect_no_rule("e003"); /* it cannot take headers away. */
        expect_no_rule("e302");
        expect_no_rule("e201");
        /* Other lengths. */
        config.sids[0].block_len = 16;
        svec_clear(&rules);
        make_rules(ovs_rules);
        expect_rule("flow table=1,priority=148,ipv6,ipv6_dst=5f00:0:4::/48 actions="
                    "move:NXM_NX_IPV6_DST[0..79]->NXM_NX_XXREG0[32..111],"
                    "load:0->NXM_NX_XXREG0[0..31],"
                    "move:NXM_NX_XXREG0[0..111]->NXM_NX_IPV6_DST[0..111],resubmit(,3)");
    }
END_TEST

/* A list of programs is the agent's; its own address and those of nodes are not on it. */
START_TEST(ovs_programs)
    {
        struct prefix programs[] = {{addr("5f00:0:4:2::"), 64}, {addr("5f00:0:4:f000::"), 52}};

        ports[0].programs = programs;
        ports[0].n_programs = ARRAY_SIZE(programs);
        make_rules(ovs_rules);
        expect_rule("flow table=0,priority=260,in_port=1,dl_dst=02:5f:00:04:00:01,ipv6,"
                    "ipv6_src=5f00:0:1::1,ipv6_dst=5f00:0:4:2::/64 " TO_ROUTES);
        expect_rule("flow table=0,priority=260,in_port=1,dl_dst=02:5f:00:04:00:01,ipv6,"
                    "ipv6_src=5f00:0:1::1,ipv6_dst=5f00:0:4:f000::/52 " TO_ROUTES);
        expect_rule("flow cookie=0xda,table=0,priority=240,in_port=1,dl_dst=02:5f:00:04:00:01,ipv6,"
                    "ipv6_src=5f00:0:1::1,ipv6_dst=5f00::/32 actions=drop");
        ports[0].n_programs = 0;
        svec_clear(&rules);
        make_rules(ovs_rules);
        expect_no_rule("cookie=0xda");
    }
END_TEST

/* Locators only of neighbours; of others what is not a step of a program. */
START_TEST(kernel_strict)
    {
        config.role = NODE_ROUTER;
        config.n_trees = 0;
        config.n_routes = 4;
        routes[2] = (struct route_config){node_locator(3), 48, 2, node_address(2)};
        routes[3] = (struct route_config){addr("fd00::7"), 128, 1, node_address(1)};
        make_rules(router_rules);
        expect_rule("route replace 5f00:0:2::/48 via 5f00:0:2::1 dev n2 onlink proto 95");
        expect_no_rule(" 5f00:0:3::/48");
        expect_rule("route replace 5f00:0:3::1/128 via 5f00:0:2::1 dev n2 onlink proto 95");
        expect_rule("route replace 5f00:0:3:e000::/51 via 5f00:0:2::1 dev n2 onlink proto 95");
        expect_rule("route replace fd00::7/128 via 5f00:0:1::1 dev a1 onlink proto 95");
        expect_rule("route replace fd00::7/128 via 5f00:0:1::1 dev a1 onlink table 95 proto 95");
        expect_no_rule("encap");
    }
END_TEST

#define ACTION " encap seg6local action "
#define ANCHOR " count dev rocecast-sids proto 95"

START_TEST(kernel_sids)
    {
        config.role = NODE_ROUTER;
        config.n_trees = 0;
        set_sids();
        /* 6.1: no uA, since it takes End.X's flavor and leaves it out; no device. */
        abilities = (struct kernel_abilities){.known = true,
                                              .anchor = "dummy",
                                              .end_next_csid = true,
                                              .end_x = true,
                                              .end_dt6 = true,
                                              .end_dx6 = true};
        make_rules(router_rules);
        expect_rule("route replace 5f00:0:4::/48" ACTION
                    "End flavors next-csid lblen 32 nflen 16" ANCHOR);
        expect_rule("route replace 5f00:0:4::/128" ACTION "End.DT6 table 95" ANCHOR);
        expect_rule("route replace 5f00:0:4:e003::/64" ACTION "End.DT6 table 95" ANCHOR);
        expect_rule("route replace 5f00:0:4:e302::/64" ACTION "End.X nh6 100::2" ANCHOR);
        expect_rule("route replace 5f00:0:4:e201::/64" ACTION "End.DX6 nh6 100::1" ANCHOR);
        expect_no_rule("e102");
        svec_clear(&rules);
        /* 6.6. */
        abilities.end_x_next_csid = true;
        make_rules(router_rules);
        expect_rule("route replace 5f00:0:4:e102::/64" ACTION
                    "End.X nh6 100::2 flavors next-csid lblen 32 nflen 32" ANCHOR);
        expect_rule("route replace 5f00:0:e102::/48" ACTION
                    "End.X nh6 100::2 flavors next-csid lblen 32 nflen 16" ANCHOR);
        expect_rule("route replace 100::2/128 via fe80::2 dev n2 proto 95");
        expect_rule("neighbour replace fe80::2 lladdr 02:5f:00:02:00:09 dev n2 nud permanent");
        expect_rule("route replace unreachable 100::/64 metric 2048 proto 95");
        expect_no_rule("e109");
        /* Without a device to be on there are none. */
        abilities.anchor = NULL;
        svec_clear(&rules);
        make_rules(router_rules);
        expect_no_rule("encap");
    }
END_TEST

/* Each of two links to a node has next hops of its own. */
START_TEST(kernel_two_links)
    {
        config.role = NODE_ROUTER;
        config.n_trees = 0;
        set_sids();
        set_port(0, "other", ROLE_FABRIC, 2);
        config.sids[1].port = 1;
        abilities = (struct kernel_abilities){.anchor = "dummy", .end_x_next_csid = true};
        make_rules(router_rules);
        expect_rule("route replace 5f00:0:e102::/48" ACTION
                    "End.X nh6 100::2 flavors next-csid lblen 32 nflen 16" ANCHOR);
        expect_rule("route replace 5f00:0:4:e102::/64" ACTION
                    "End.X nh6 100::1 flavors next-csid lblen 32 nflen 32" ANCHOR);
        expect_rule("route replace 100::1/128 via fe80::1 dev other proto 95");
        expect_rule("route replace 100::2/128 via fe80::2 dev n2 proto 95");
    }
END_TEST

/* What ip has printed: on 6.1, and, shortened, on 6.18. */
START_TEST(kernel_trials)
    {
        struct kernel_abilities a;

        kernel_abilities_parse(
            "unicast 5f00:0:1::/48  encap seg6local action End flavors next-csid lblen 32 nflen 16 dev x\n"
            "unicast 5f00:0:2::/48  encap seg6local action End.X nh6 5f00::1 dev rocecast-sids\n"
            "unicast 5f00:0:3::/48  encap seg6local action End.X nh6 5f00::1 dev rocecast-sids\n"
            "unicast 5f00:0:4::/48  encap seg6local action End.DT6 table 95 dev rocecast-sids\n"
            "2: rocecast-sids: <BROADCAST>\n    link/ether 00 \n    dummy addrgenmode eui64\n",
            &a);
        ck_assert(a.known && a.end_next_csid && a.end_x && a.end_dt6);
        ck_assert(!a.end_x_next_csid && !a.end_dx6);
        ck_assert_str_eq(a.anchor, "dummy");
        kernel_abilities_parse(
            "5f00:0:2::/48  encap seg6local action End.X nh6 5f00::1 flavors next-csid dev rocecast-sids\n"
            "    bridge forward_delay\n",
            &a);
        ck_assert(a.end_x_next_csid && !a.end_next_csid);
        ck_assert_str_eq(a.anchor, "bridge");
        kernel_abilities_parse("", &a);
        ck_assert_ptr_null(a.anchor);
    }
END_TEST

/* Routes as ip shows them are known again, and a prefix in the other table is another route. */
START_TEST(kernel_finds_routes)
    {
        svec_add(&rules,
                 "route replace fd00::7/128 via 5f00:0:1::1 dev a1 onlink table 95 proto 95");
        svec_add(&rules, "route replace 5f00:0:4:e003::/64" ACTION "End.DT6 table 95" ANCHOR);
        svec_add(&rules, "route replace unreachable 5f00::/32 metric 2048 proto 95");
        ck_assert(kernel_rules_route(
            &rules, "fd00::7 via 5f00:0:1::1 dev a1 table 95 metric 1024 onlink pref medium"));
        ck_assert(!kernel_rules_route(
            &rules, "fd00::7 via 5f00:0:1::1 dev a1 metric 1024 onlink pref medium"));
        ck_assert(kernel_rules_route(
            &rules, "5f00:0:4:e003::/64  encap seg6local action End.DT6 table 95 dev "
                    "rocecast-sids metric 1024 pref medium"));
        ck_assert(
            kernel_rules_route(&rules, "unreachable 5f00::/32 dev lo metric 2048 pref medium"));
        ck_assert(
            !kernel_rules_route(&rules, "unreachable 5f00::/32 dev lo metric 1024 pref medium"));
        char *removal =
            kernel_route_removal("unreachable 5f00::/32 dev lo metric 2048 error -113 pref medium");
        ck_assert_str_eq(removal, "route del unreachable 5f00::/32 metric 2048 proto 95");
        free(removal);
        removal = kernel_route_removal("fd00::7 via 5f00:0:1::1 dev a1 table 95 metric 1024");
        ck_assert_str_eq(removal, "route del fd00::7/128 table 95 proto 95");
        free(removal);
    }
END_TEST

static void
expect_run(const struct patience *patience, const char *const argv[], const char *error,
           const char *output)
{
    char *printed = NULL;
    char *why = command_run(patience, argv, "in\n", &printed);

    ck_assert_msg(why && error ? !strcmp(why, error) : why == error, "%s", why);
    ck_assert_str_eq(printed, output);
    free(printed);
    free(why);
}

START_TEST(commands)
    {
        static const char *const cat[] = {"cat", NULL};
        static const char *const fails[] = {"sh", "-c", "echo one; echo two >&2; exit 3", NULL};
        static const char *const ends[] = {"sh", "-c", "exit 3", NULL};
        static const char *const nothing[] = {"no-such-program", NULL};
        static const char *const never[] = {"sleep", "infinity", NULL};
        int pipe_fds[2];

        xpipe(pipe_fds);
        struct patience patience = {.stop_fd = pipe_fds[0], .msec = -1};
        expect_run(&patience, cat, NULL, "in\n");
        expect_run(&patience, fails, "sh: two", "one\n");
        expect_run(&patience, ends, "sh: ended with status 0x300", "");
        expect_run(&patience, nothing, "no-such-program: No such file or directory", "");
        ck_assert_int_eq(write(pipe_fds[1], "", 1), 1);
        expect_run(&patience, never, "sleep: interrupted", "");
        patience = (struct patience){.stop_fd = -1, .msec = 10};
        expect_run(&patience, never, "sleep: has not ended after 10 ms", "");
        close(pipe_fds[0]);
        close(pipe_fds[1]);
    }
END_TEST

static void
expect_refusal(char *(*make)(const struct node_config *, struct svec *), const char *why)
{
    char *error = make(&config, &rules);

    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error, why);
    ck_assert_uint_eq(rules.n, 0);
    free(error);
}

START_TEST(refusals)
    {
        expect_refusal(router_rules, "group g: a router does not replicate");
        ovs_strlcpy(config.name, "a-bridge-name", sizeof config.name);
        expect_refusal(
            ovs_rules,
            "node a-bridge-name: the name of a node with role ovs must be at most 12 characters");
        memset(ports[1].peer_mac, 0, sizeof ports[1].peer_mac);
        expect_refusal(ovs_rules,
                       "port n2: the registry does not say which MAC address n2 has there");
        ports[1].role = ROLE_HOST;
        expect_refusal(ovs_rules, "port n2: n2 cannot be at a node with role ovs");
        expect_refusal(router_rules, "port n2: n2 cannot be at a node with role ovs");
    }
END_TEST

START_TEST(longest_route)
    {
        struct in6_addr a = addr("5f00:0:2:e001::"), other = addr("fd00::1");
        struct in6_addr b = addr("5f00:0:8::1");

        ck_assert_ptr_eq(forwarder_route(&config, &a), &routes[1]);
        ck_assert_ptr_eq(forwarder_route(&config, &b), &routes[2]);
        ck_assert_ptr_null(forwarder_route(&config, &other));
        routes[2].plen = 0;
        ck_assert_ptr_eq(forwarder_route(&config, &other), &routes[2]);
        routes[2] = (struct route_config){addr("5f00:0:2:e000::"), 51, 2, node_address(2)};
        ck_assert_ptr_eq(forwarder_route(&config, &a), &routes[2]);
        a = addr("5f00:0:2:c001::");
        ck_assert_ptr_eq(forwarder_route(&config, &a), &routes[1]);
    }
END_TEST

Suite *
castfwd_suite(void)
{
    Suite *suite = suite_create("castfwd");
    TCase *tcase = tcase_create("castfwd");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, ovs_copies);
    tcase_add_test(tcase, ovs_two_epochs);
    tcase_add_test(tcase, ovs_no_copies);
    tcase_add_test(tcase, ovs_changes);
    tcase_add_test(tcase, ovs_ports_changes);
    tcase_add_test(tcase, kernel_routes);
    tcase_add_test(tcase, kernel_traces);
    tcase_add_test(tcase, kernel_removes);
    tcase_add_test(tcase, ovs_sids);
    tcase_add_test(tcase, ovs_programs);
    tcase_add_test(tcase, kernel_strict);
    tcase_add_test(tcase, kernel_sids);
    tcase_add_test(tcase, kernel_two_links);
    tcase_add_test(tcase, kernel_trials);
    tcase_add_test(tcase, kernel_finds_routes);
    tcase_add_test(tcase, commands);
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, longest_route);
    suite_add_tcase(suite, tcase);
    return suite;
}
