/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's rows as plain data: one good set, and every column spoiled in turn.
 */
#include <config.h>

#include "ctl/registry/intent.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "ctl/registry/rocecast-idl.h"
#include "lib/routes.h"
#include "tests/unit/hex.h"
#include "tests/unit/suites.h"
#include "util.h"

static struct rrec_port port_rows[2];
static struct rrec_route route_rows[2];
static struct rrec_sid sid_rows[3];
static struct rrec_path path_rows[3];
static struct rrec_probe probe_rows[2];
static struct rrec_plane plane_rows[3];
static struct rrec_destination destination_rows[2];
static struct rrec_branch branch_rows[2];
static struct rrec_tree_node tree_rows[3];
static struct rrec_node node_row;
static int64_t queue_nodes[2], queue_rates[2];

static struct rrec_port *ports[2];
static struct rrec_route *routes[2];
static struct rrec_sid *sids[3];
static struct rrec_path *paths[3];
static struct rrec_probe *probes[2];
static struct rrec_plane *planes[3];
static int64_t plane_probes[2];
static char *probers[2];
static struct rrec_destination *destinations[2];
static int64_t pin_qpns[2], pin_numbers[2];
static char *programs[2];
static struct rrec_branch *branches[2];
static struct rrec_tree_node *trees[3];
static char *outer_da[2], *capable[2], *trusted[2];
static int64_t branch_psn, branch_first, branch_designated_qpn;

#define STR(S) CONST_CAST(char *, S)

static void
set_port(int i, const char *name, int64_t number, const char *peer, const char *peer_address)
{
    port_rows[i].name = STR(name);
    port_rows[i].number = number;
    port_rows[i].kind = STR("tap");
    port_rows[i].role = STR("host");
    port_rows[i].mac = STR("02:5f:01:00:00:01");
    port_rows[i].peer = STR(peer);
    port_rows[i].peer_address = STR(peer_address);
    port_rows[i].rx_impairment = STR("");
    port_rows[i].tx_impairment = STR("loss=2%");
    ports[i] = &port_rows[i];
}

static void
set_branch(int i, int64_t id, const char *name, const char *address)
{
    branch_rows[i].id = id;
    branch_rows[i].kind = STR("receiver");
    branch_rows[i].name = STR(name);
    branch_rows[i].address = STR(address);
    branch_rows[i].edge = STR("5f00:0:100::1");
    branch_rows[i].qpn = 0xfffffe;
    branch_rows[i].rkey = UINT32_MAX;
    branch_rows[i].va = STR("0xffffffffffff0000");
    branch_rows[i].len = 0xffff;
    branch_rows[i].psn = &branch_psn;
    branch_rows[i].first = &branch_first;
    branch_rows[i].designated_qpn = &branch_designated_qpn;
    branches[i] = &branch_rows[i];
}

static void
set_tree(void)
{
    struct rrec_tree_node *t = &tree_rows[0];

    t->group = STR("g");
    t->generation = 4;
    t->epoch = 2;
    t->proxy = STR("fd00:ffff::1");
    t->designated_qpn = 0x102;
    t->start_psn = 0xffffff;
    t->mtu = 4096;
    t->designated_rkey = 9;
    t->region_len = 0xffff;
    t->source_address = STR("fd00:1::100");
    t->source_qpn = 18;
    t->root = true;
    t->nak = STR("solicit");
    t->filter = true;
    t->prune = true;
    t->liveness = UINT32_MAX;
    t->min_rate = 17;
    t->lose_slow = true;
    t->timeout = 31;
    t->cnp = STR("nic");
    t->cnp_window = 10;
    t->trace_slots = 11;
    t->rate_floor = 1000000000000;
    t->started = true;
    t->outer_source = STR("5f00:0:200::1");
    t->replication_sid = STR("");
    t->parent_sid = STR("");
    t->parent_program = STR("5f00:0:500:100:e002::");
    t->outer_program = STR("5f00:0:101:200:f003::");
    t->branches = branches;
    t->n_branches = 2;
    outer_da[0] = STR("5f00:0:101:f003::");
    outer_da[1] = STR("5f00:0:100:e001::");
    t->outer_da = outer_da;
    t->n_outer_da = 2;
    t->open = true;
    trees[0] = t;
}

static void
set_path(int i, int64_t number, int64_t rank, const char *name, const char *program)
{
    path_rows[i].number = number;
    path_rows[i].rank = rank;
    path_rows[i].name = STR(name);
    path_rows[i].plane = STR("blue");
    path_rows[i].usable = true;
    path_rows[i].port = 2;
    path_rows[i].program = STR(program);
    paths[i] = &path_rows[i];
}

static void
set_destination(int i, const char *name, const char *address, struct rrec_path **of, size_t n)
{
    destination_rows[i].name = STR(name);
    destination_rows[i].address = STR(address);
    destination_rows[i].policy = STR("message");
    destination_rows[i].paths = of;
    destination_rows[i].n_paths = n;
    destinations[i] = &destination_rows[i];
}

/* h9, with two paths, is behind h2, with one, in the order of addresses. */
static void
set_paths(void)
{
    set_path(0, 7, 2, "leaf2,spine6,leaf4", "5f00:0:200:600:400::");
    set_path(1, 4095, 1, "leaf1,spine5,leaf3", "5f00:0:100:500:300::,5f00:0:3::");
    set_path(2, 1, 1, "leaf1", "5f00:0:100::");
    set_destination(0, "h9", "fd00:2::9", &paths[0], 2);
    set_destination(1, "h2", "fd00:1::2", &paths[2], 1);
    destination_rows[0].pinned = 7;
    pin_qpns[0] = 17;
    pin_numbers[0] = 4095;
    pin_qpns[1] = 0xffffff;
    pin_numbers[1] = 7;
    destination_rows[0].key_pins = pin_qpns;
    destination_rows[0].value_pins = pin_numbers;
    destination_rows[0].n_pins = 2;
    node_row.destinations = destinations;
    node_row.n_destinations = 2;
}

/* A peer probe and a loop, not in the order of their numbers; h9's first path has the former. */
static void
set_probes(void)
{
    probe_rows[0] = (struct rrec_probe){
        .number = 4095,
        .kind = STR("peer"),
        .name = STR("leaf1,spine5,leaf3,dpu3"),
        .plane = STR("A"),
        .port = 2,
        .peer = STR("5f00:0:3::1"),
        .program = STR("5f00:0:100:500:300:3::"),
        .back = STR("5f00:0:300:500:100::,5f00:0:1::"),
        .reverse = 9,
        .interval = 100,
        .timeout = 100,
        .large = 9216,
        .no_checksum = true,
    };
    probe_rows[1] = (struct rrec_probe){
        .number = 7,
        .kind = STR("loop"),
        .name = STR("leaf1"),
        .plane = STR(""),
        .port = 2,
        .peer = STR(""),
        .program = STR("5f00:0:100:1::"),
        .back = STR(""),
        .interval = 60000,
        .timeout = 1,
    };
    probes[0] = &probe_rows[0];
    probes[1] = &probe_rows[1];
    probers[0] = STR("5f00:0:3::1");
    probers[1] = STR("5f00:0:2::1");
    node_row.probes = probes;
    node_row.n_probes = 2;
    node_row.probers = probers;
    node_row.n_probers = 2;
    path_rows[1].probe = 4095;
}

static void
set_plane(int i, const char *name, const char *sid)
{
    plane_rows[i] = (struct rrec_plane){
        .name = STR(name),
        .sid = STR(sid),
        .program = STR("5f00:0:500:101:f003::"),
        .port = 2,
        .probes = plane_probes,
        .n_probes = 2,
    };
    planes[i] = &plane_rows[i];
}

/* B before A, and an edge's way. */
static void
set_planes(void)
{
    plane_probes[0] = 7;
    plane_probes[1] = 4095;
    set_plane(0, "B", "5f00:0:100:e001::");
    set_plane(1, "A", "5f00:0:101:f003::");
    set_plane(2, "A", "5f00:0:200:e002::");
    tree_rows[0].planes = planes;
    tree_rows[0].n_planes = 2;
    tree_rows[0].parent_planes = &planes[2];
    tree_rows[0].n_parent_planes = 1;
}

static void
setup(void)
{
    /* As no test has changed them. */
    memset(branch_rows, 0, sizeof branch_rows);
    memset(tree_rows, 0, sizeof tree_rows);
    set_port(0, "tr1", 7, "r1", "fd00:1::1");
    set_port(1, "up", 2, "a0", "5f00:0:200::1");
    route_rows[0] =
        (struct rrec_route){.prefix = STR("fd00:1::1/128"), .port = 7, .next_hop = STR("::")};
    route_rows[1] = (struct rrec_route){
        .prefix = STR("5f00:0:200::/48"), .port = 2, .next_hop = STR("5f00:0:200::1")};
    routes[0] = &route_rows[0];
    routes[1] = &route_rows[1];
    sid_rows[0].prefix = STR("5f00:0:100:e001::/64");
    sid_rows[0].behaviour = STR("End.MT");
    sids[0] = &sid_rows[0];
    sid_rows[1] = (struct rrec_sid){
        .prefix = STR("5f00:0:100::/48"), .behaviour = STR("uN"), .block_len = 32};
    sids[1] = &sid_rows[1];
    sid_rows[2] = (struct rrec_sid){
        .prefix = STR("5f00:0:e102::/48"), .behaviour = STR("uA"), .block_len = 32, .port = 2};
    sids[2] = &sid_rows[2];
    programs[0] = STR("5f00:0:100::/48");
    programs[1] = STR("5f00::/16");
    port_rows[1].programs = programs;
    port_rows[1].n_programs = 2;
    set_paths();
    set_branch(0, 5, "r5", "fd00:1::5");
    set_branch(1, 1, "r1", "fd00:1::1");
    set_tree();
    set_probes();
    set_planes();
    node_row.name = STR("n1");
    node_row.role = STR("switch");
    node_row.id = 256;
    node_row.cfg = 12;
    node_row.cnp_interval = 20000;
    node_row.fast_cnp = true;
    node_row.fast_cnp_rate = 7;
    node_row.trace = true;
    node_row.rate_control = STR("nic");
    node_row.controller = STR("depth");
    node_row.line_rate = 100000000;
    node_row.rate_floor = 3000000;
    node_row.key_queue_rates = queue_nodes;
    node_row.value_queue_rates = queue_rates;
    node_row.n_queue_rates = 2;
    queue_nodes[0] = 3;
    queue_rates[0] = 5000000;
    queue_nodes[1] = 0x200;
    queue_rates[1] = 6000000;
    capable[0] = STR("fd00:1::100");
    capable[1] = STR("fd00:1::2");
    node_row.capable = capable;
    node_row.n_capable = 2;
    trusted[0] = STR("5f00:0:200::1");
    trusted[1] = STR("5f00:0:100::1");
    node_row.trusted = trusted;
    node_row.n_trusted = 2;
    node_row.ports = ports;
    node_row.n_ports = 2;
    node_row.routes = routes;
    node_row.n_routes = 2;
    node_row.sids = sids;
    node_row.n_sids = 3;
    node_row.trees = trees;
    node_row.n_trees = 1;
}

static const struct intent_rows *
read_rows(void)
{
    static struct intent_rows rows = {.node = &node_row};

    rows.trees = (const struct rrec_tree_node *const *) node_row.trees;
    rows.n_trees = node_row.n_trees;
    return &rows;
}

START_TEST(good)
    {
        struct node_config c;
        char *error;

        ck_assert(intent_read(read_rows(), &c, &error));
        ck_assert_ptr_null(error);
        ck_assert_uint_eq(c.generation, 12);
        ck_assert_uint_eq(c.id, 256);
        ck_assert_uint_eq(c.n_ports, 2);
        ck_assert_uint_eq(c.ports[0].number, 2); /* sorted. */
        ck_assert_str_eq(c.ports[1].name, "tr1");
        ck_assert_uint_eq(c.ports[1].mac[1], 0x5f);
        ck_assert_uint_eq(c.n_routes, 2);
        ck_assert_uint_eq(c.routes[0].plen, 48);
        ck_assert_int_eq(c.sids[1].behaviour, SID_END_MT);
        ck_assert_uint_eq(c.n_trees, 1);

        const struct tree_config *t = &c.trees[0];
        ck_assert_uint_eq(t->start_psn.v, 0xffffff);
        ck_assert(t->root && t->open && t->started);
        ck_assert(t->policy.prune && t->policy.liveness_msec == UINT32_MAX);
        ck_assert(t->policy.min_rate == 17 && t->policy.lose_slow);
        ck_assert_uint_eq(t->policy.timeout, 31);
        ck_assert(t->policy.nak == NAK_SOLICIT && t->policy.filter);
        ck_assert_uint_eq(t->n_branches, 2);
        ck_assert_uint_eq(t->branches[0].id, 1);
        ck_assert_uint_eq(t->branches[1].va, 0xffffffffffff0000);
        ck_assert_uint_eq(t->branches[1].rkey, UINT32_MAX);
        ck_assert_uint_eq(t->n_outer_da, 2);
        ck_assert_uint_eq(t->outer_da[0].s6_addr[5], 1); /* by planes. */
        struct in6_addr agent = node_address(0x200);
        ck_assert(IN6_ARE_ADDR_EQUAL(&t->outer_source, &agent));
        ck_assert(IN6_IS_ADDR_UNSPECIFIED(&t->replication_sid));
        ck_assert(IN6_IS_ADDR_UNSPECIFIED(&t->parent_sid));
        node_config_uninit(&c);
    }
END_TEST

START_TEST(paths_good)
    {
        struct in6_addr first = hex_addr("5f00:0:100:500:300::"), last = hex_addr("5f00:0:3::");
        struct in6_addr outer = hex_addr("5f00:0:101:200:f003::");
        struct in6_addr parent = hex_addr("5f00:0:500:100:e002::");
        struct node_config c;
        char *error;

        path_rows[0].usable = false;
        path_rows[0].program = STR("");
        path_rows[0].port = 0;
        ck_assert_msg(intent_read(read_rows(), &c, &error), "%s", error);
        ck_assert_uint_eq(c.n_destinations, 2);
        ck_assert_str_eq(c.destinations[0].name, "h2"); /* sorted. */
        const struct destination_config *d = &c.destinations[1];
        ck_assert_str_eq(d->name, "h9");
        ck_assert_int_eq(d->policy, PATH_MESSAGE);
        ck_assert_uint_eq(d->pinned, 7);
        ck_assert_uint_eq(d->n_pins, 2);
        ck_assert_uint_eq(d->pins[0].dest_qp, 17);
        ck_assert_uint_eq(d->pins[0].number, 4095);
        ck_assert_uint_eq(d->pins[1].dest_qp, 0xffffff);
        ck_assert_uint_eq(d->n_paths, 2);
        const struct path_config *p = &d->paths[0]; /* by rank. */
        ck_assert_uint_eq(p->number, 4095);
        ck_assert_uint_eq(p->port, 2);
        ck_assert_str_eq(p->name, "leaf1,spine5,leaf3");
        ck_assert_str_eq(p->plane, "blue");
        ck_assert(p->usable);
        ck_assert_uint_eq(p->program.n, 2);
        ck_assert_mem_eq(&p->program.containers[0], &first, sizeof first);
        ck_assert_mem_eq(&p->program.containers[1], &last, sizeof last);
        ck_assert(!d->paths[1].usable && !d->paths[1].program.n && !d->paths[1].port);

        ck_assert_int_eq(c.sids[0].behaviour, SID_UN); /* sorted. */
        ck_assert_uint_eq(c.sids[0].block_len, 32);
        ck_assert_int_eq(c.sids[2].behaviour, SID_UA);
        ck_assert_uint_eq(c.sids[2].port, 2);
        ck_assert_uint_eq(c.sids[1].block_len, 0);
        ck_assert_uint_eq(c.ports[0].n_programs, 2);
        ck_assert_uint_eq(c.ports[0].programs[0].plen, 48);
        ck_assert_uint_eq(c.ports[1].n_programs, 0);
        ck_assert_mem_eq(&c.trees[0].outer_program, &outer, sizeof outer);
        ck_assert_mem_eq(&c.trees[0].parent_program, &parent, sizeof parent);
        node_config_uninit(&c);
    }
END_TEST

START_TEST(probes_good)
    {
        struct in6_addr peer = hex_addr("5f00:0:3::1"), sid = hex_addr("5f00:0:101:f003::");
        struct in6_addr last = hex_addr("5f00:0:1::");
        struct node_config c;
        char *error;

        ck_assert_msg(intent_read(read_rows(), &c, &error), "%s", error);
        ck_assert_uint_eq(c.n_probes, 2);
        ck_assert_uint_eq(c.probes[0].number, 7); /* sorted. */
        ck_assert_int_eq(c.probes[0].kind, PROBE_LOOP);
        ck_assert_uint_eq(c.probes[0].interval_usec, 60000000);
        ck_assert_uint_eq(c.probes[0].timeout_usec, 1000);
        const struct probe_config *p = &c.probes[1];
        ck_assert_int_eq(p->kind, PROBE_PEER);
        ck_assert_str_eq(p->name, "leaf1,spine5,leaf3,dpu3");
        ck_assert_str_eq(p->plane, "A");
        ck_assert_uint_eq(p->port, 2);
        ck_assert_mem_eq(&p->peer, &peer, sizeof peer);
        ck_assert_uint_eq(p->program.n, 1);
        ck_assert_uint_eq(p->back.n, 2);
        ck_assert_mem_eq(&p->back.containers[1], &last, sizeof last);
        ck_assert_uint_eq(p->reverse, 9);
        ck_assert_uint_eq(p->large, 9216);
        ck_assert(p->no_checksum && !c.probes[0].no_checksum);
        ck_assert_uint_eq(c.n_probers, 2);
        ck_assert_mem_eq(&c.probers[1], &peer, sizeof peer); /* sorted. */
        ck_assert_uint_eq(c.destinations[1].paths[0].probe, 4095);
        ck_assert_uint_eq(c.destinations[1].paths[1].probe, 0);

        const struct tree_config *t = &c.trees[0];
        ck_assert_uint_eq(t->n_planes, 2);
        ck_assert_str_eq(t->planes[0].name, "A");
        ck_assert_mem_eq(&t->planes[0].sid, &sid, sizeof sid);
        ck_assert_mem_eq(&t->outer_da[0], &sid, sizeof sid);
        ck_assert_uint_eq(t->planes[1].n_probes, 2);
        ck_assert_uint_eq(t->planes[1].probes[1], 4095);
        ck_assert_uint_eq(t->n_parent_planes, 1);
        ck_assert_uint_eq(t->parent_planes[0].port, 2);
        node_config_uninit(&c);
    }
END_TEST

START_TEST(too_many_probes)
    {
        static struct rrec_probe many[PROBES_MAX + 1];
        static struct rrec_probe *rows[PROBES_MAX + 1];
        struct node_config c;
        char *error;

        for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
            many[i] = probe_rows[1];
            many[i].number = (int64_t) i + 1;
            rows[i] = &many[i];
        }
        many[1].number = 4095; /* which a path has. */
        node_row.probes = rows;
        node_row.n_probes = PROBES_MAX;
        ck_assert_msg(intent_read(read_rows(), &c, &error), "%s", error);
        ck_assert_uint_eq(c.n_probes, PROBES_MAX);
        node_config_uninit(&c);
        node_row.n_probes++;
        ck_assert(!intent_read(read_rows(), &c, &error));
        ck_assert_str_eq(error, "Node.probes \"n1\": more than 1024");
        free(error);
    }
END_TEST

START_TEST(too_many_paths)
    {
        static struct rrec_path many[PATHS_MAX + 1];
        static struct rrec_path *rows[PATHS_MAX + 1];
        struct node_config c;
        char *error;

        for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
            many[i] = path_rows[0];
            many[i].number = (int64_t) i + 100;
            rows[i] = &many[i];
        }
        set_destination(1, "h2", "fd00:1::2", rows, PATHS_MAX);
        ck_assert(intent_read(read_rows(), &c, &error));
        ck_assert_uint_eq(c.destinations[0].n_paths, PATHS_MAX);
        node_config_uninit(&c);
        destination_rows[1].n_paths++;
        ck_assert(!intent_read(read_rows(), &c, &error));
        ck_assert_str_eq(error, "Destination.paths \"h2\": more than 64");
        free(error);
    }
END_TEST

START_TEST(congestion)
    {
        struct in6_addr r2 = hex_addr("fd00:1::2"), n1 = node_address(0x100);
        struct node_config c;
        char *error;

        port_rows[0].external = true;
        ck_assert(intent_read(read_rows(), &c, &error));
        const struct congestion_config *cc = &c.congestion;
        ck_assert_uint_eq(cc->interval_usec, 20000);
        ck_assert(cc->fast_cnp && !cc->any_icrc && cc->trace);
        ck_assert_uint_eq(cc->fast_cnp_rate, 7);
        ck_assert_uint_eq(cc->n_capable, 2); /* sorted. */
        ck_assert_mem_eq(&cc->capable[0], &r2, sizeof r2);
        ck_assert_uint_eq(cc->n_trusted, 2);
        ck_assert_mem_eq(&cc->trusted[0], &n1, sizeof n1);
        ck_assert_int_eq(cc->rate_control, RATE_BY_NIC);
        ck_assert_int_eq(cc->rate.controller, RATE_DEPTH);
        ck_assert_uint_eq(cc->rate.line, 100000000);
        ck_assert_uint_eq(cc->rate.floor, 3000000);
        ck_assert_uint_eq(cc->rate.interval_usec, 20000);
        ck_assert_uint_eq(cc->rate.alpha_usec, 22000);
        ck_assert_uint_eq(cc->rate.timer_usec, 22000);
        ck_assert_uint_eq(cc->n_queue_rates, 2);
        ck_assert_uint_eq(cc->queue_rates[1].node, 0x200);
        ck_assert_uint_eq(cc->queue_rates[1].rate, 6000000);
        ck_assert(!c.ports[0].external && c.ports[1].external);
        ck_assert_int_eq(c.trees[0].policy.cnp, CNP_NIC);
        ck_assert_uint_eq(c.trees[0].policy.cnp_window_usec, 10);
        ck_assert_uint_eq(c.trees[0].policy.trace_slots, 11);
        ck_assert_uint_eq(c.trees[0].rate_floor, 1000000000000);
        node_config_uninit(&c);

        /* In a converted registry. */
        node_row.cnp_interval = node_row.fast_cnp_rate = node_row.line_rate = 0;
        node_row.rate_floor = 0;
        node_row.n_queue_rates = 0;
        node_row.rate_control = node_row.controller = NULL;
        node_row.n_capable = node_row.n_trusted = 0;
        tree_rows[0].cnp = NULL;
        tree_rows[0].cnp_window = tree_rows[0].trace_slots = tree_rows[0].rate_floor = 0;
        ck_assert(intent_read(read_rows(), &c, &error));
        ck_assert_uint_eq(cc->interval_usec, 10000);
        ck_assert_uint_eq(cc->fast_cnp_rate, 1000);
        ck_assert_int_eq(cc->rate_control, RATE_BY_AGENT);
        ck_assert_int_eq(cc->rate.controller, RATE_DCQCN);
        ck_assert_uint_eq(cc->rate.line, 1000000000);
        ck_assert_uint_eq(cc->rate.floor, 5000000); /* a 200th. */
        ck_assert_uint_eq(cc->n_queue_rates, 0);
        ck_assert_int_eq(c.trees[0].policy.cnp, CNP_AUTO);
        ck_assert_uint_eq(c.trees[0].policy.cnp_window_usec, 1000);
        node_config_uninit(&c);
    }
END_TEST

/* One tree alone: the part of a node in the middle. */
START_TEST(good_tree)
    {
        struct in6_addr parent = node_sid(0x100, SID_FUNC_RESPONSE);
        struct in6_addr own = node_sid(0x101, SID_FUNC_END_REPLICATE + 3);
        struct tree_config t;
        char *error;

        tree_rows[0].root = false;
        tree_rows[0].parent_sid = STR("5f00:0:100:e002::");
        tree_rows[0].replication_sid = STR("5f00:0:101:f003::");
        branch_rows[0] = (struct rrec_branch){
            .id = BRANCH_ID_NODE(7),
            .kind = STR("node"),
            .name = STR("n7"),
            .address = STR("5f00:0:7::1"),
        };
        ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_ptr_null(error);
        ck_assert(!t.root);
        ck_assert_mem_eq(&t.parent_sid, &parent, sizeof parent);
        ck_assert_mem_eq(&t.replication_sid, &own, sizeof own);
        ck_assert_uint_eq(t.n_branches, 2);
        ck_assert_int_eq(t.branches[0].kind, BRANCH_NODE);
        ck_assert_uint_eq(t.branches[0].id, 0x80000007);
        tree_config_uninit(&t);

        /* In a converted registry. */
        tree_rows[0].outer_source = STR("");
        ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert(IN6_IS_ADDR_UNSPECIFIED(&t.outer_source));
        tree_config_uninit(&t);

        tree_rows[0].mtu = 1000;
        ck_assert(!intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_ptr_null(t.branches);
        ck_assert_ptr_nonnull(strstr(error, "1000 is no path MTU"));
        free(error);
    }
END_TEST

/* A receiver's queue pair expects the epoch's start PSN unless its row says something else, and it
 * counts from there on unless it has joined later. */
static const struct {
    const char *join;
    size_t n_psn, n_first;
    struct branch_config want;
} joins[] = {
    {NULL, 0, 0, {.psn = {0xffffff}, .first = {0xffffff}}},
    {NULL, 1, 0, {.psn = {7}, .first = {0xffffff}}},
    {NULL, 0, 1, {.psn = {0xffffff}, .late = true, .first = {9}}},
    {NULL, 1, 1, {.psn = {7}, .late = true, .first = {9}}},
    {"wait", 1, 0, {.join = BRANCH_WAITS, .psn = {7}, .first = {0xffffff}}},
    {"admit", 0, 0, {.join = BRANCH_ADMITTED, .psn = {0xffffff}, .first = {0xffffff}}},
    {"ask", 0, 0, {.join = BRANCH_ASKED, .psn = {0xffffff}, .first = {0xffffff}}},
};

START_TEST(joining)
    {
        const struct branch_config *want = &joins[_i].want;
        struct tree_config t;
        char *error;

        branch_psn = 7;
        branch_first = 9;
        branch_rows[1].join = STR(joins[_i].join);
        branch_rows[1].n_psn = joins[_i].n_psn;
        branch_rows[1].n_first = joins[_i].n_first;
        ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_int_eq(t.branches[0].join, want->join);
        ck_assert_uint_eq(t.branches[0].psn.v, want->psn.v);
        ck_assert_int_eq(t.branches[0].late, want->late);
        ck_assert_uint_eq(t.branches[0].first.v, want->first.v);
        ck_assert_int_eq(t.branches[1].join, BRANCH_COUNTS);
        tree_config_uninit(&t);
    }
END_TEST

static const struct {
    const char *kind, *join;
    size_t n_psn;
    int64_t psn;
    size_t n_first;
    int64_t first;
    const char *named;
} bad_joins[] = {
    {"receiver", "later", 0, 0, 0, 0, "Branch.join \"later\": unknown"},
    {"receiver", "", 0, 0, 0, 0, "Branch.join \"\": unknown"},
    {"receiver", NULL, 1, -1, 0, 0, "Branch.psn \"-1\": must be 0..16777215"},
    {"receiver", NULL, 1, 1 << 24, 0, 0, "Branch.psn \"16777216\""},
    {"receiver", NULL, 0, 0, 1, -1, "Branch.first \"-1\": must be 0..16777215"},
    {"receiver", NULL, 0, 0, 1, 1 << 24, "Branch.first \"16777216\""},
    {"receiver", "wait", 0, 0, 1, 9, "Branch.join \"wait\": r1 has joined: it has Branch.first 9"},
    {"receiver", "admit", 0, 0, 1, 9, "Branch.join \"admit\": r1 has joined"},
    {"receiver", "ask", 0, 0, 1, 9, "Branch.join \"ask\": r1 has joined"},
    {"node", "admit", 0, 0, 0, 0, "Branch.join \"admit\": r1 is a node, which only waits"},
    {"node", "ask", 0, 0, 0, 0, "Branch.join \"ask\": r1 is a node, which"},
    {"node", "later", 0, 0, 0, 0, "Branch.join \"later\": unknown"},
};

START_TEST(bad_joining)
    {
        struct tree_config t;
        char *error;

        branch_psn = bad_joins[_i].psn;
        branch_first = bad_joins[_i].first;
        branch_rows[1].kind = STR(bad_joins[_i].kind);
        branch_rows[1].join = STR(bad_joins[_i].join);
        branch_rows[1].n_psn = bad_joins[_i].n_psn;
        branch_rows[1].n_first = bad_joins[_i].n_first;
        ck_assert(!intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_msg(strstr(error, bad_joins[_i].named), "%s", error);
        free(error);
    }
END_TEST

/* Who has joined counts, whatever castd has written by then. */
START_TEST(joined)
    {
        int64_t ids[] = {5, BRANCH_ID_NODE(7), 9}, psns[] = {77, 78, 79};
        struct tree_config t;
        char *error;

        branch_rows[0].join = STR("admit"); /* r5. */
        branch_rows[1] = (struct rrec_branch){
            .id = BRANCH_ID_NODE(7),
            .kind = STR("node"),
            .name = STR("n7"),
            .address = STR("5f00:0:7::1"),
            .join = STR("wait"),
        };
        tree_rows[0].key_joined = ids;
        tree_rows[0].value_joined = psns;
        for (tree_rows[0].n_joined = 0; tree_rows[0].n_joined <= 3; tree_rows[0].n_joined++) {
            ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
            const struct branch_config *node = &t.branches[0], *r5 = &t.branches[1];
            ck_assert_uint_eq(r5->id, 5);
            ck_assert_int_eq(r5->join, tree_rows[0].n_joined > 0 ? BRANCH_COUNTS : BRANCH_ADMITTED);
            ck_assert_int_eq(r5->late, tree_rows[0].n_joined > 0);
            ck_assert_uint_eq(r5->first.v, tree_rows[0].n_joined > 0 ? 77 : 0xffffff);
            ck_assert_int_eq(node->join, tree_rows[0].n_joined > 1 ? BRANCH_COUNTS : BRANCH_WAITS);
            ck_assert(!node->late);
            tree_config_uninit(&t);
        }
        /* The row has it from castd, who had it from an earlier report. */
        tree_rows[0].n_joined = 1;
        branch_rows[0].join = NULL;
        branch_first = 76;
        branch_rows[0].n_first = 1;
        ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_uint_eq(t.branches[1].first.v, 76);
        tree_config_uninit(&t);
        psns[0] = 1 << 24;
        ck_assert(!intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_ptr_nonnull(strstr(error, "Tree_Node.joined \"16777216\": must be 0..16777215"));
        free(error);
    }
END_TEST

/* Where a queue pair stands that is from an earlier epoch, as soon as the node has found it out;
 * and whom it answers. */
START_TEST(found)
    {
        int64_t ids[] = {9, 5}, psns[] = {77, 78};
        struct tree_config t;
        char *error;

        branch_designated_qpn = 0x100;
        branch_rows[0].join = STR("ask"); /* r5. */
        branch_rows[0].n_designated_qpn = 1;
        tree_rows[0].key_found = tree_rows[0].key_joined = ids;
        tree_rows[0].value_found = tree_rows[0].value_joined = psns;
        tree_rows[0].n_joined = 2; /* nonsense of somebody's: who is asked has not joined. */
        for (tree_rows[0].n_found = 0; tree_rows[0].n_found <= 2; tree_rows[0].n_found++) {
            ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
            ck_assert_uint_eq(t.branches[1].id, 5);
            ck_assert_int_eq(t.branches[1].join, BRANCH_ASKED);
            ck_assert_int_eq(t.branches[1].found, tree_rows[0].n_found == 2);
            ck_assert_uint_eq(t.branches[1].psn.v, tree_rows[0].n_found == 2 ? 78 : 0xffffff);
            ck_assert_uint_eq(t.branches[1].designated_qpn, 0x100);
            ck_assert_uint_eq(t.branches[0].designated_qpn, 0);
            ck_assert(!t.branches[0].found);
            tree_config_uninit(&t);
        }
        /* castd has taken it up. */
        tree_rows[0].n_found = 2;
        tree_rows[0].n_joined = 0;
        branch_rows[0].join = NULL;
        branch_rows[0].n_psn = 1;
        branch_psn = 7;
        ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert(!t.branches[1].found);
        ck_assert_uint_eq(t.branches[1].psn.v, 7);
        tree_config_uninit(&t);
        psns[0] = -1;
        ck_assert(!intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_ptr_nonnull(strstr(error, "Tree_Node.found \"-1\": must be 0..16777215"));
        free(error);
        psns[0] = 0;
        branch_designated_qpn = 1;
        ck_assert(!intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_ptr_nonnull(strstr(error, "Branch.designated_qpn \"1\": must be 2..16777214"));
        free(error);
    }
END_TEST

/* Who was lost while it waited is not admitted; who has joined before it was lost counts. */
START_TEST(lost_while_waiting)
    {
        int64_t lost[] = {9, 5}, id = 5, psn = 77;
        struct tree_config t;
        char *error;

        branch_rows[0].join = STR("admit"); /* r5. */
        tree_rows[0].key_lost = lost;
        for (size_t n = 0; n <= 2; n++) {
            tree_rows[0].n_lost = n;
            ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
            ck_assert_uint_eq(t.branches[1].id, 5);
            ck_assert_int_eq(t.branches[1].join, n == 2 ? BRANCH_WAITS : BRANCH_ADMITTED);
            tree_config_uninit(&t);
        }
        tree_rows[0].key_joined = &id;
        tree_rows[0].value_joined = &psn;
        tree_rows[0].n_joined = 1;
        ck_assert(intent_read_tree(&tree_rows[0], &t, &error));
        ck_assert_int_eq(t.branches[1].join, BRANCH_COUNTS);
        tree_config_uninit(&t);
    }
END_TEST

/* One column spoiled: a string or a number, and what the sentence must name. */
static const struct {
    char **string;
    const char *text;
    int64_t *number;
    int64_t value;
    const char *named;
} spoilt[] = {
    {&node_row.role, "bridge", NULL, 0, "Node.role \"bridge\": unknown"},
    {&node_row.name, "", NULL, 0, "Node.name"},
    {NULL, NULL, &node_row.id, 0xe000, "Node.id \"57344\": must be 1..57343"},
    {&port_rows[0].name, "a/b", NULL, 0, "Port.name \"a/b\""},
    {&port_rows[0].name, "up", NULL, 0, "Port.name \"up\""},
    {NULL, NULL, &node_row.cnp_interval, 99, "Node.cnp_interval \"99\": must be 100..1000000"},
    {NULL, NULL, &node_row.fast_cnp_rate, -1, "Node.fast_cnp_rate \"-1\": must be 1..1000000"},
    {NULL, NULL, &node_row.line_rate, 1, "Node.line_rate \"1\": must be 100000..1000000000000"},
    {NULL, NULL, &node_row.rate_floor, -1, "Node.rate_floor \"-1\""},
    {NULL, NULL, &queue_rates[1], 1LL << 40, "Node.queue_rates \"1099511627776\""},
    {NULL, NULL, &queue_nodes[0], 0, "Node.queue_rates \"0\": must be 1..57343"},
    {&node_row.rate_control, "both", NULL, 0, "Node.rate_control \"both\": unknown"},
    {&node_row.controller, "hpcc", NULL, 0, "Node.controller \"hpcc\": unknown"},
    {&capable[0], "h0", NULL, 0, "Node.capable \"h0\": not an IPv6 address"},
    {&capable[0], "fd00:1:0::2", NULL, 0, "Node.capable \"fd00:1::2\": is there twice"},
    {&trusted[0], "5f00:0:100::1/128", NULL, 0, "Node.trusted \"5f00:0:100::1/128\""},
    {&tree_rows[0].cnp, "agent", NULL, 0, "Tree_Node.cnp \"agent\": unknown"},
    {NULL, NULL, &tree_rows[0].cnp_window, 1000001, "Tree_Node.cnp_window \"1000001\""},
    {NULL, NULL, &tree_rows[0].trace_slots, 12, "Tree_Node.trace_slots \"12\": must be 0..11"},
    {NULL, NULL, &tree_rows[0].rate_floor, -1, "Tree_Node.rate_floor \"-1\""},
    {NULL, NULL, &port_rows[0].number, 2, "twice"},
    {NULL, NULL, &port_rows[0].number, 4096, "Port.number \"4096\""},
    {&port_rows[0].mac, "02:5f:01:00:00", NULL, 0, "Port.mac"},
    {&port_rows[0].mac, "02:5f:01:00:00:01x", NULL, 0, "Port.mac"},
    {&port_rows[0].mac, "03:5f:01:00:00:01", NULL, 0, "Port.mac"},
    {&port_rows[0].peer, "r 1", NULL, 0, "Port.peer \"r 1\""},
    {&port_rows[0].peer_address, "fd00::x", NULL, 0, "Port.peer_address \"fd00::x\""},
    {&port_rows[0].rx_impairment, "loss=2", NULL, 0, "Port.rx_impairment \"loss=2\""},
    {&port_rows[0].tx_impairment, "x", NULL, 0, "Port.tx_impairment \"x\""},
    {&route_rows[0].prefix, "fd00::1/64", NULL, 0, "Route.prefix \"fd00::1/64\""},
    {&route_rows[0].prefix, "5f00:0:200::/48", NULL, 0, "two routes"},
    {&route_rows[0].next_hop, "", NULL, 0, "Route.next_hop \"\""},
    {NULL, NULL, &route_rows[0].port, 3, "no port has number 3"},
    {NULL, NULL, &route_rows[0].port, 65543, "Route.port \"65543\""},
    {&sid_rows[0].prefix, "5f00::/129", NULL, 0, "Sid.prefix"},
    {&sid_rows[0].behaviour, "End.T", NULL, 0, "Sid.behaviour \"End.T\""},
    {NULL, NULL, &sid_rows[1].block_len, 0, "Sid.block_len \"5f00:0:100::/48\": no uSID has a"},
    {NULL, NULL, &sid_rows[1].block_len, 48, "block of 48 bits"},
    {NULL, NULL, &sid_rows[1].block_len, -1, "Sid.block_len"},
    {NULL, NULL, &sid_rows[2].block_len, 288, "Sid.block_len"},
    {NULL, NULL, &sid_rows[2].port, 0, "Sid.port \"0\": must be 1..4095"},
    {NULL, NULL, &sid_rows[2].port, 3, "Sid.port \"5f00:0:e102::/48\": no port has number 3"},
    {&programs[1], "5f00::/15", NULL, 0, "Port.programs \"5f00::/15\": must be an IPv6 prefix in"},
    {&programs[0], "fd00:1::/32", NULL, 0, "Port.programs \"fd00:1::/32\""},
    {&destination_rows[0].name, "h 9", NULL, 0, "Destination.name \"h 9\""},
    {&destination_rows[0].address, "h9", NULL, 0, "Destination.address \"h9\": not an IPv6"},
    {&destination_rows[0].address, "fd00:1::2", NULL, 0, "\"fd00:1::2\": is there twice"},
    {&destination_rows[0].policy, "all", NULL, 0, "Destination.policy \"all\": unknown"},
    {NULL, NULL, &destination_rows[0].pinned, 1, "Destination.pinned \"h9\": no path has number 1"},
    {NULL, NULL, &pin_numbers[0], 8, "Destination.pins \"h9\": no path has number 8"},
    {NULL, NULL, &pin_qpns[0], 0, "Destination.pins \"0\": must be 1..16777215"},
    {NULL, NULL, &path_rows[0].number, 0, "Path.number \"0\": must be 1..4095"},
    {NULL, NULL, &path_rows[0].number, 4096, "Path.number \"4096\""},
    {NULL, NULL, &path_rows[2].number, 4095, "Path.number \"leaf1\": 4095 is there twice"},
    {&path_rows[0].name, "", NULL, 0, "Path.name \"\": must be names of nodes"},
    {&path_rows[0].name, "a\nb", NULL, 0, "Path.name"},
    {&path_rows[0].plane, "a b", NULL, 0, "Path.plane \"a b\""},
    {NULL, NULL, &path_rows[0].port, 3, "Path.port \"leaf2,spine6,leaf4\": no port has number 3"},
    {&path_rows[0].program, "", NULL, 0, "Path.program \"\": must be at most 4 IPv6 addresses"},
    {&path_rows[0].program, "5f00::,", NULL, 0, "Path.program \"5f00::,\""},
    {&path_rows[0].program, "::,::,::,::,::", NULL, 0, "Path.program"},
    {NULL, NULL, &path_rows[1].probe, 8,
     "Path.probe \"leaf1,spine5,leaf3\": no probe has number 8"},
    {NULL, NULL, &path_rows[1].probe, -1, "Path.probe \"-1\": must be 1..4095"},
    {NULL, NULL, &probe_rows[1].number, 4095, "Probe.number \"leaf1"},
    {NULL, NULL, &probe_rows[0].number, 0, "Probe.number \"0\": must be 1..4095"},
    {&probe_rows[0].kind, "ping", NULL, 0, "Probe.kind \"ping\": unknown"},
    {&probe_rows[0].name, "", NULL, 0, "Probe.name \"\": must be names of nodes"},
    {&probe_rows[0].name, "leaf1 5f00::", NULL, 0, "Probe.name \"leaf1 5f00::\""},
    {&probe_rows[0].plane, "a b", NULL, 0, "Probe.plane \"a b\""},
    {NULL, NULL, &probe_rows[1].port, 3, "Probe.port \"leaf1\": no port has number 3"},
    {&probe_rows[0].peer, "dpu3", NULL, 0, "Probe.peer \"dpu3\": not an IPv6 address"},
    {&probe_rows[1].peer, "5f00:0:3::1", NULL, 0,
     "Probe.peer \"5f00:0:3::1\": probe leaf1 is a loop"},
    {&probe_rows[0].program, "", NULL, 0, "Probe.program \"\": must be at most 4 IPv6 addresses"},
    {&probe_rows[0].back, "", NULL, 0, "Probe.back \"\": must be at most 4 IPv6 addresses"},
    {&probe_rows[1].back, "5f00::", NULL, 0, "Probe.back \"5f00::\": probe leaf1 is a loop"},
    {NULL, NULL, &probe_rows[0].reverse, 4096, "Probe.reverse \"4096\": must be 0..4095"},
    {NULL, NULL, &probe_rows[1].reverse, 1, "Probe.reverse \"leaf1\": the probe is a loop"},
    {NULL, NULL, &probe_rows[0].interval, 60001, "Probe.interval \"60001\": must be 1..60000"},
    {NULL, NULL, &probe_rows[0].timeout, 0, "Probe.timeout \"0\""},
    {NULL, NULL, &probe_rows[0].timeout, 101,
     "Probe.timeout \"leaf1,spine5,leaf3,dpu3\": 101 is more"},
    {NULL, NULL, &probe_rows[0].large, 9217, "Probe.large \"9217\": must be 0..9216"},
    {&probers[0], "dpu3", NULL, 0, "Node.probers \"dpu3\": not an IPv6 address"},
    {&probers[0], "5f00:0:2::1", NULL, 0, "Node.probers \"5f00:0:2::1\": is there twice"},
    {&plane_rows[0].name, "", NULL, 0, "Plane.name \"\""},
    {&plane_rows[0].name, "A", NULL, 0, "Tree_Node.planes \"A\": is there twice"},
    {&plane_rows[0].sid, "", NULL, 0, "Plane.sid \"\": not an IPv6 address"},
    {&plane_rows[0].sid, "5f00::", NULL, 0, "Plane.sid \"5f00::\": not in Tree_Node.outer_da"},
    {&plane_rows[2].program, "x", NULL, 0, "Plane.program \"x\": not an IPv6 address"},
    {NULL, NULL, &plane_rows[2].port, 3, "Plane.port \"A\": no port has number 3"},
    {NULL, NULL, &plane_probes[0], 8, "Plane.probes \"B\": no probe has number 8"},
    {&tree_rows[0].parent_program, "x", NULL, 0, "Tree_Node.parent_program \"x\""},
    {&tree_rows[0].outer_program, "5f00::/32", NULL, 0, "Tree_Node.outer_program"},
    {&tree_rows[0].group, "g g", NULL, 0, "Tree_Node.group"},
    {NULL, NULL, &tree_rows[0].epoch, 0, "Tree_Node.epoch"},
    {&tree_rows[0].proxy, "fd00::1", NULL, 0, "Tree_Node.proxy"},
    {NULL, NULL, &tree_rows[0].designated_qpn, 1, "Tree_Node.designated_qpn"},
    {NULL, NULL, &tree_rows[0].start_psn, 1 << 24, "Tree_Node.start_psn"},
    {NULL, NULL, &tree_rows[0].mtu, 1000, "1000 is no path MTU"},
    {NULL, NULL, &tree_rows[0].region_len, -1, "Tree_Node.region_len \"-1\""},
    {&tree_rows[0].source_address, "h0", NULL, 0, "Tree_Node.source_address"},
    {NULL, NULL, &tree_rows[0].source_qpn, 0xffffff, "Tree_Node.source_qpn"},
    {&tree_rows[0].outer_source, "sa", NULL, 0, "Tree_Node.outer_source \"sa\""},
    {&tree_rows[0].parent_sid, "x", NULL, 0, "Tree_Node.parent_sid"},
    {NULL, NULL, &tree_rows[0].liveness, 1LL << 32, "Tree_Node.liveness \"4294967296\""},
    {NULL, NULL, &tree_rows[0].min_rate, 1LL << 32, "Tree_Node.min_rate \"4294967296\""},
    {NULL, NULL, &tree_rows[0].min_rate, -1, "Tree_Node.min_rate \"-1\""},
    {NULL, NULL, &tree_rows[0].timeout, 32, "Tree_Node.timeout \"32\": must be 0..31"},
    {NULL, NULL, &tree_rows[0].timeout, -1, "Tree_Node.timeout \"-1\""},
    {&tree_rows[0].replication_sid, "5f00::/64", NULL, 0, "Tree_Node.replication_sid"},
    {&outer_da[0], "5f00:0:0100:e001::", NULL, 0, "Tree_Node.outer_da \"5f00:0:100:e001::\": is"},
    {&outer_da[0], "5f00:0:100:e001::/64", NULL, 0, "Tree_Node.outer_da"},
    {NULL, NULL, &branch_rows[0].id, 1, "id 1 is there twice"},
    {NULL, NULL, &branch_rows[0].id, -1, "Branch.id"},
    {NULL, NULL, &branch_rows[0].id, 0, "Branch.id \"0\": must be 1..4294967295"},
    {&branch_rows[0].name, "", NULL, 0, "Branch.name"},
    {&branch_rows[0].address, "", NULL, 0, "Branch.address"},
    {&branch_rows[0].address, "fd00:1::1", NULL, 0, "Branch.address \"fd00:1::1\": is there twice"},
    {&branch_rows[0].edge, "n1", NULL, 0, "Branch.edge"},
    {NULL, NULL, &branch_rows[0].qpn, 0, "Branch.qpn"},
    {NULL, NULL, &branch_rows[0].rkey, 1LL << 32, "Branch.rkey"},
    {NULL, NULL, &branch_rows[0].len, 0x10000, "Branch.va"}, /* over the end. */
    {&branch_rows[0].va, "-1", NULL, 0, "Branch.va \"-1\""},
};

START_TEST(bad)
    {
        struct node_config c;
        char *error;

        if (spoilt[_i].string) {
            *spoilt[_i].string = STR(spoilt[_i].text);
        } else {
            *spoilt[_i].number = spoilt[_i].value;
        }
        ck_assert(!intent_read(read_rows(), &c, &error));
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(strstr(error, spoilt[_i].named), "%s", error);
        ck_assert_ptr_null(c.ports);
        ck_assert_ptr_null(c.destinations);
        ck_assert_uint_eq(c.n_trees, 0);
        free(error);
    }
END_TEST

/* Trees in 'trees', with the Proxy Addresses that end so, in which each row's number is its index. */
static void
set_trees(const char *const *proxies, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tree_rows[i] = tree_rows[0];
        tree_rows[i].proxy = STR(proxies[i]);
        tree_rows[i].header_.uuid.parts[3] = (uint32_t) i;
        trees[i] = &tree_rows[i];
    }
    node_row.n_trees = n;
}

/* Those rows are as they were whose bit is set. */
static bool
is_as_it_was(const void *rows, uint64_t row)
{
    return *(const unsigned int *) rows >> row & 1;
}

/* Where hosts are, and by which port each node is reached: ports are those of set_up(), 1 of them a host's. */
static int64_t hop_nodes[3], hop_ports[3];
static struct rrec_location location_rows[2];
static const struct rrec_location *const locations[] = {&location_rows[0], &location_rows[1]};

static const struct intent_rows *
rows_with_next_hops(void)
{
    static struct intent_rows rows;

    rows = *read_rows();
    rows.locations = locations;
    rows.n_locations = 2;
    location_rows[0] = (struct rrec_location){.address = STR("fd00:1::5"), .node = 300};
    location_rows[1] = (struct rrec_location){.address = STR("fd00:1::6"), .node = 301};
    hop_nodes[0] = 0;
    hop_nodes[1] = 300;
    hop_nodes[2] = 400;
    for (size_t i = 0; i < 3; i++) {
        hop_ports[i] = 2;
    }
    port_rows[1].role = STR("agent");
    node_row.n_routes = 0;
    node_row.key_next_hops = hop_nodes;
    node_row.value_next_hops = hop_ports;
    node_row.n_next_hops = 3;
    return &rows;
}

START_TEST(next_hops)
    {
        const struct intent_rows *rows = rows_with_next_hops();
        struct node_config c, only_routes;
        char *error;

        ck_assert_msg(intent_read(rows, &c, &error), "%s", error);
        ck_assert_uint_eq(c.n_routes, 5); /* the host's port, any, two locators, one host. */
        ck_assert(!c.routes[0].plen && c.routes[0].port == 2);
        ck_assert_uint_eq(c.routes[1].plen, 48);
        ck_assert_msg(intent_read_routes(rows, &only_routes, &error), "%s", error);
        ck_assert_uint_eq(only_routes.n_routes, c.n_routes);
        for (size_t i = 0; i < c.n_routes; i++) {
            ck_assert_int_eq(route_compare(&c.routes[i], &only_routes.routes[i]), 0);
        }
        node_config_uninit(&c);
        node_config_uninit(&only_routes);

        /* Rows are there for who does not know next hops: they are all that counts. */
        node_row.n_routes = 2;
        ck_assert_msg(intent_read(rows, &c, &error), "%s", error);
        ck_assert_uint_eq(c.n_routes, 2);
        node_config_uninit(&c);
    }
END_TEST

START_TEST(bad_next_hops)
    {
        static const char *const why[] = {"Node.next_hops \"300\": no port has number 9",
                                          "Node.next_hops \"57344\": must be 0..57343",
                                          "Location.address \"x\": not an IPv6 address",
                                          "Location.node \"0\": must be 1..57343",
                                          "Node.next_hops \"0\": port 7 leads to a host",
                                          "Route.prefix \"fd00:1::5\": has two routes"};
        const struct intent_rows *rows = rows_with_next_hops();
        struct node_config c;
        char *error;

        switch (_i) {
        case 0: hop_ports[1] = 9; break;
        case 1: hop_nodes[2] = 57344; break;
        case 2: location_rows[0].address = STR("x"); break;
        case 3: location_rows[1].node = 0; break;
        case 4: hop_ports[0] = 7; break;
        case 5:
            location_rows[1].address = STR("fd00:1::0:5");
            location_rows[1].node = 400;
            break;
        }
        ck_assert(!intent_read(rows, &c, &error));
        ck_assert_str_eq(error, why[_i]);
        free(error);
        ck_assert(!c.ports && !c.routes);
        ck_assert(!intent_read_routes(rows, &c, &error));
        ck_assert_str_eq(error, why[_i]);
        free(error);
        ck_assert(!c.ports && !c.routes);
    }
END_TEST

static const char *const three[] = {"fd00:ffff::2", "fd00:ffff::3", "fd00:ffff::1"};

/* What is as it was is taken over, also if the rows say otherwise by now, in its place; the rest is
 * read. */
START_TEST(changes)
    {
        struct node_config before, c;
        unsigned int unchanged = 1u << 0 | 1u << 2;
        const struct intent_before b = {&before, true, true, is_as_it_was, &unchanged};
        char *error;

        set_trees(three, 3);
        ck_assert_msg(intent_read(read_rows(), &before, &error), "%s", error);
        const void *branches_of_2 = before.trees[0].branches,
                   *branches_of_0 = before.trees[1].branches;
        const struct sid_config *sids_before = before.sids;
        const struct route_config *routes_before = before.routes;
        for (size_t i = 0; i < 3; i++) {
            tree_rows[i].region_len = 77;
        }
        node_row.n_sids = node_row.n_routes = 1;
        node_row.cfg = 13;
        ck_assert_msg(intent_read_changes(read_rows(), &b, &c, &error), "%s", error);
        ck_assert_uint_eq(c.generation, 13);
        ck_assert_uint_eq(c.n_trees, 3);
        ck_assert_uint_eq(c.trees[0].row, 2);
        ck_assert_uint_eq(c.trees[0].region_len, 0xffff);
        ck_assert_ptr_eq(c.trees[0].branches, branches_of_2);
        ck_assert_ptr_eq(c.trees[1].branches, branches_of_0);
        ck_assert_uint_eq(c.trees[2].row, 1);
        ck_assert_uint_eq(c.trees[2].region_len, 77);
        ck_assert(c.sids == sids_before && c.n_sids == 3);
        ck_assert(c.routes == routes_before && c.n_routes == 2);
        ck_assert_uint_eq(before.n_trees, 1); /* the one that was read anew. */
        ck_assert(!before.sids && !before.routes);
        node_config_uninit(&before);

        /* A row that is gone is none that is as it was. */
        const struct intent_before last = {&c, false, false, is_as_it_was, &unchanged};
        unchanged = 1u << 2;
        trees[0] = &tree_rows[2];
        node_row.n_trees = 1;
        ck_assert_msg(intent_read_changes(read_rows(), &last, &before, &error), "%s", error);
        ck_assert_uint_eq(before.n_trees, 1);
        ck_assert_ptr_eq(before.trees[0].branches, branches_of_2);
        ck_assert(before.n_sids == 1 && before.n_routes == 1);
        node_config_uninit(&c);
        node_config_uninit(&before);
    }
END_TEST

/* What cannot be read, or does not go with the rest, leaves all of it. */
START_TEST(bad_changes)
    {
        struct node_config before, c;
        const unsigned int unchanged = 1u << 0 | 1u << 2;
        const struct intent_before b = {&before, true, true, is_as_it_was, &unchanged};
        static const char *const wrong[] = {"fd00:ffff::1", "::1"};
        static const char *const why[] = {"are there twice", "not in fd00:ffff::/32"};
        char *error;

        set_trees(three, 3);
        ck_assert_msg(intent_read(read_rows(), &before, &error), "%s", error);
        tree_rows[1].proxy = STR(wrong[_i]);
        ck_assert(!intent_read_changes(read_rows(), &b, &c, &error));
        ck_assert_msg(strstr(error, why[_i]), "%s", error);
        free(error);
        ck_assert(!c.trees && !c.sids && !c.routes);
        ck_assert_uint_eq(before.n_trees, 3);
        ck_assert_uint_eq(before.n_sids, 3);
        tree_rows[1].proxy = STR(three[1]);
        ck_assert_msg(intent_read_changes(read_rows(), &b, &c, &error), "%s", error);
        ck_assert_uint_eq(c.n_trees, 3);
        node_config_uninit(&before);
        node_config_uninit(&c);
    }
END_TEST

Suite *
intent_suite(void)
{
    Suite *suite = suite_create("intent");
    TCase *tcase = tcase_create("intent");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, good);
    tcase_add_test(tcase, changes);
    tcase_add_test(tcase, next_hops);
    tcase_add_loop_test(tcase, bad_next_hops, 0, 6);
    tcase_add_loop_test(tcase, bad_changes, 0, 2);
    tcase_add_test(tcase, paths_good);
    tcase_add_test(tcase, probes_good);
    tcase_add_test(tcase, too_many_probes);
    tcase_add_test(tcase, too_many_paths);
    tcase_add_test(tcase, congestion);
    tcase_add_test(tcase, good_tree);
    tcase_add_loop_test(tcase, joining, 0, ARRAY_SIZE(joins));
    tcase_add_loop_test(tcase, bad_joining, 0, ARRAY_SIZE(bad_joins));
    tcase_add_test(tcase, joined);
    tcase_add_test(tcase, found);
    tcase_add_test(tcase, lost_while_waiting);
    tcase_add_loop_test(tcase, bad, 0, ARRAY_SIZE(spoilt));
    suite_add_tcase(suite, tcase);
    return suite;
}
