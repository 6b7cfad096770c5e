/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: what nodes probe, by which programs, and whose probes they answer.
 */
#include <config.h>

#include <arpa/inet.h>
#include <stdlib.h>

#include "ctl/plan/path.h"
#include "ctl/plan/plan.h"
#include "ctl/plan/probe.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/shash.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

/* testbed/topologies/clos.yaml: four hosts, each behind an agent with two leaves, and two spines. */
#define CLOS                                                                                          \
    "r1-a161 r2-a162 r3-a163 r4-a164 a161-n11 a161-n12 a162-n11 a162-n12 a163-n13 a163-n14 a164-n13 " \
    "a164-n14 n11-n25 n12-n25 n13-n25 n14-n25 n11-n26 n12-n26 n13-n26 n14-n26"

/* All nodes' configurations and probes, by index in the topology. */
static struct plan_topology topology;
static struct node_config configs[64];
static struct plan_probes probes[64];
static struct plan_peer_way wanted; /* of the node 'wants'; 0 nodes: none. */
static const char *wants;
static char *left_out; /* what was said of it. */

static void
forget(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
        node_config_uninit(&configs[i]);
        plan_probes_uninit(&probes[i]);
    }
    free(left_out);
    left_out = NULL;
}

static void
teardown(void)
{
    forget();
    plan_topology_uninit(&topology);
    wanted.n_nodes = 0;
}

static void
plan_node(const struct plan_graph *g, size_t i)
{
    const struct plan_node *node = &topology.nodes[i];
    bool has_wanted = wanted.n_nodes && !strcmp(node->name, wants);
    struct plan_node_paths *found;
    char *error = plan_node_config(&topology, node, &configs[i]);

    ck_assert_msg(!error, "%s", error);
    error = plan_destinations(&topology, node, &configs[i], &found);
    ck_assert_msg(!error, "%s", error);
    error = plan_probes(g, node, found, &wanted, has_wanted, &configs[i], &probes[i]);
    if (error) {
        free(left_out);
        left_out = error;
    }
    plan_node_paths_free(&topology, found);
}

static void
plan_all(void)
{
    struct plan_graph g;

    forget();
    plan_topology_prepare(&topology);
    plan_graph_init(&g, &topology);
    for (size_t i = 0; i < topology.n_nodes; i++) {
        plan_node(&g, i);
    }
    plan_graph_uninit(&g);
    plan_probes_pair(&topology, probes);
    for (size_t i = 0; i < topology.n_nodes; i++) {
        plan_probers(&topology, probes, &topology.nodes[i], &configs[i]);
        plan_probes_configure(&probes[i], &configs[i]);
    }
}

static void
set_policies(enum path_policy policy)
{
    for (size_t i = 0; i < topology.n_hosts; i++) {
        topology.hosts[i].path_policy = policy;
    }
}

static void
make(const char *text)
{
    plan_fixture_topology(&topology, text);
    set_policies(PATH_SPREAD);
    plan_all();
}

static size_t
index_of(const char *node)
{
    return (size_t) (plan_find_node(&topology, node) - topology.nodes);
}

/* NULL: there is none. */
static const struct plan_probe *
find(const char *node, enum probe_kind kind, const char *name)
{
    const struct plan_probes *of = &probes[index_of(node)];

    for (size_t i = 0; i < of->n; i++) {
        if (of->probes[i].config.kind == kind && !strcmp(of->probes[i].config.name, name)) {
            return &of->probes[i];
        }
    }
    return NULL;
}

static const struct plan_probe *
must_find(const char *node, enum probe_kind kind, const char *name)
{
    const struct plan_probe *p = find(node, kind, name);

    ck_assert_msg(p, "%s has no probe %s", node, name);
    return p;
}

static size_t
count(const char *node, enum probe_kind kind, const char *peer)
{
    const struct plan_probes *of = &probes[index_of(node)];
    size_t n = 0;

    for (size_t i = 0; i < of->n; i++) {
        const struct plan_node *has = of->probes[i].peer;

        n += of->probes[i].config.kind == kind && (!peer || (has && !strcmp(has->name, peer)));
    }
    return n;
}

/* The nodes of a program, "n11,n25" with "|" between containers; a port's function as ":1". */
static char *
nodes_of(const struct program *program)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    char usids[PROGRAM_USIDS_SIZE], *save = NULL;
    const char *separator = "";

    program_format_usids(program, usids);
    for (char *word = strtok_r(usids, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        unsigned long usid = strtoul(word, NULL, 16);
        const struct plan_node *node = NULL;

        for (size_t i = 0; i < topology.n_nodes; i++) {
            node = topology.nodes[i].id == usid ? &topology.nodes[i] : node;
        }
        if (!strcmp(word, "|")) {
            ds_put_cstr(&s, " | ");
            separator = "";
            continue;
        } else if (usid >= SID_FUNC_UA) {
            ds_put_format(&s, ":%lu", usid - SID_FUNC_UA);
        } else {
            ck_assert_msg(node, "%s", word);
            ds_put_format(&s, "%s%s", separator, node->name);
        }
        separator = ",";
    }
    return ds_steal_cstr(&s);
}

static void
check_program(const struct program *program, const char *want)
{
    char *has = nodes_of(program);

    ck_assert_str_eq(has, want);
    free(has);
}

static const struct path_config *
path_of(const char *node, const char *host, const char *name)
{
    const struct node_config *c = &configs[index_of(node)];

    for (size_t i = 0; i < c->n_destinations; i++) {
        for (size_t j = 0; j < c->destinations[i].n_paths; j++) {
            const struct path_config *p = &c->destinations[i].paths[j];

            if (!strcmp(c->destinations[i].name, host) && !strcmp(p->name, name)) {
                return p;
            }
        }
    }
    ck_abort_msg("%s has no path %s to %s", node, name, host);
}

/* The draft's figure: of each agent 6 loops, 2 probes to its neighbour and 8 to each of the others. */
START_TEST(figure)
    {
        static const char *const agents[] = {"a161", "a162", "a163", "a164"};
        static const char *const loops[] = {"n11",     "n12",     "n11,n25",
                                            "n11,n26", "n12,n25", "n12,n26"};

        make(CLOS);
        for (size_t i = 0; i < ARRAY_SIZE(agents); i++) {
            ck_assert_uint_eq(count(agents[i], PROBE_LOOP, NULL), 6);
            ck_assert_uint_eq(count(agents[i], PROBE_PEER, NULL), 18);
            ck_assert_uint_eq(configs[index_of(agents[i])].n_probes, 24);
            ck_assert_uint_eq(configs[index_of(agents[i])].n_probers, 3);
        }
        for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
            must_find("a161", PROBE_LOOP, loops[i]);
        }
        ck_assert_uint_eq(count("a161", PROBE_PEER, "a162"), 2);
        ck_assert_uint_eq(count("a161", PROBE_PEER, "a163"), 8);
        ck_assert_uint_eq(count("a161", PROBE_PEER, "a164"), 8);
        /* Nobody else sends, or is probed. */
        ck_assert_uint_eq(configs[index_of("n11")].n_probes, 0);
        ck_assert_uint_eq(configs[index_of("n11")].n_probers, 0);
        ck_assert_ptr_null(left_out);
    }
END_TEST

START_TEST(what_they_say)
    {
        make(CLOS);
        const struct plan_probe *loop = must_find("a161", PROBE_LOOP, "n11,n25");
        check_program(&loop->config.program, "n11,n25,n11,a161");
        ck_assert_uint_eq(loop->config.program.n, 1);
        ck_assert_uint_eq(loop->config.back.n, 0);
        ck_assert_uint_eq(loop->config.reverse, 0);
        ck_assert_uint_eq(loop->config.port, 1);
        ck_assert_str_eq(loop->elements, "a161>n11 n11 n11>n25 n25 n25>n11 n11 n11>a161");
        ck_assert(IN6_IS_ADDR_UNSPECIFIED(&loop->config.peer));

        const struct plan_probe *peer = must_find("a161", PROBE_PEER, "n12,n26,n14,a163");
        struct in6_addr address = node_address(163);
        check_program(&peer->config.program, "n12,n26,n14,a163");
        check_program(&peer->config.back, "n14,n26,n12,a161");
        ck_assert(IN6_ARE_ADDR_EQUAL(&peer->config.peer, &address));
        ck_assert_uint_eq(peer->config.port, 2);
        ck_assert_str_eq(peer->elements, "a161>n12 n12 n12>n26 n26 n26>n14 n14 n14>a163 a163 "
                                         "a163>n14 n14 n14>n26 n26 n26>n12 n12 n12>a161");
        /* The peer's own, over the same links. */
        const struct plan_probe *other = must_find("a163", PROBE_PEER, "n14,n26,n12,a161");
        ck_assert_uint_eq(peer->config.reverse, other->config.number);
        ck_assert_uint_eq(other->config.reverse, peer->config.number);
        /* What hosts send at most, with the header. */
        ck_assert_uint_eq(peer->config.large, 40 + 4180);
        ck_assert_uint_eq(peer->config.interval_usec, 100000);
        ck_assert_uint_eq(peer->config.timeout_usec, 50000);
    }
END_TEST

/* All hosts behind a node have the probes of its ways: those go where data go.  Proves AB-49. */
START_TEST(paths_have_probes)
    {
        make(CLOS " r5-a163 r6-n13");
        uint16_t number = must_find("a161", PROBE_PEER, "n11,n25,n13,a163")->config.number;
        ck_assert_uint_eq(path_of("a161", "r3", "n11,n25,n13")->probe, number);
        ck_assert_uint_eq(path_of("a161", "r5", "n11,n25,n13")->probe, number);
        /* The same switches, but another peer: the last switch. */
        number = must_find("a161", PROBE_PEER, "n11,n25,n13")->config.number;
        ck_assert_uint_eq(path_of("a161", "r6", "n11,n25,n13")->probe, number);
        ck_assert_uint_eq(count("a161", PROBE_PEER, "n13"), 4);
        ck_assert_uint_eq(count("a161", PROBE_LOOP, NULL), 6);
        /* A switch with a host places packets, too: loops to its neighbours that paths go over, and a
         * peer that is its neighbour. */
        must_find("n13", PROBE_LOOP, "n25");
        ck_assert_ptr_null(find("n13", PROBE_LOOP, "n25,n11"));
        check_program(&must_find("n13", PROBE_PEER, "a163")->config.program, "a163");
        check_program(&must_find("n13", PROBE_PEER, "a163")->config.back, "n13");
        ck_assert_uint_eq(path_of("n13", "r3", "direct")->probe,
                          find("n13", PROBE_PEER, "a163")->config.number);
        ck_assert_uint_eq(configs[index_of("n13")].n_probers, 4);
    }
END_TEST

/* Without destinations there is nothing to probe; what an operator has excluded is probed. */
START_TEST(who_probes)
    {
        plan_fixture_topology(&topology, CLOS);
        CONST_CAST(struct plan_host *, plan_find_host(&topology, "r1"))->path_policy =
            PATH_FAILOVER;
        plan_fixture_node(&topology, "n26")->excluded = true;
        plan_all();
        ck_assert_uint_eq(configs[index_of("a161")].n_probes, 24);
        ck_assert_uint_eq(configs[index_of("a163")].n_probes, 0);
        ck_assert_uint_eq(configs[index_of("a163")].n_probers, 1);
        ck_assert_uint_eq(must_find("a161", PROBE_PEER, "n11,n25,n13,a163")->config.reverse, 0);
        ck_assert(!path_of("a161", "r3", "n11,n26,n13")->usable);
        ck_assert_uint_ne(path_of("a161", "r3", "n11,n26,n13")->probe, 0);
    }
END_TEST

/* Three tiers, and both programs with two containers. */
#define TIERS "a161-n11 n11-n21 n21-n31 n31-n32 n32-n22 n22-n12 n12-a163 r1-a161 r3-a163"

START_TEST(three_tiers)
    {
        make(TIERS);
        const struct plan_probe *p = must_find("a161", PROBE_PEER, "n11,n21,n31,n32,n22,n12,a163");
        check_program(&p->config.program, "n11,n21,n31,n32,n22,n12 | a163");
        check_program(&p->config.back, "n12,n22,n32,n31,n21,n11 | a161");
        ck_assert_uint_eq(p->config.large, 40 + 8 + 16 + 4180);
        ck_assert_uint_eq(count("a161", PROBE_LOOP, NULL), 2);
        check_program(&must_find("a161", PROBE_LOOP, "n11,n21")->config.program,
                      "n11,n21,n11,a161");
    }
END_TEST

/* Who is foreign is crossed, but no container ends there. */
START_TEST(foreign_on_the_way)
    {
        make(TIERS " @n21 ~n22");
        must_find("a161", PROBE_PEER, "n11,n21,n31,n32,n22,n12,a163");
        must_find("a161", PROBE_LOOP, "n11,n21");
        forget();
        plan_topology_uninit(&topology);
        make(TIERS " @n12"); /* the sixth: data's path ends at the agent, too. */
        ck_assert_uint_eq(count("a161", PROBE_PEER, NULL), 0);
        ck_assert_uint_eq(count("a161", PROBE_LOOP, NULL), 0);
    }
END_TEST

/* Spines of the figure.  Open vSwitch spoils checksums, a router does not. */
START_TEST(foreign_spines)
    {
        make(CLOS " @n25 ~n26");
        const struct plan_probes *of = &probes[index_of("a161")];
        for (size_t i = 0; i < of->n; i++) {
            const struct probe_config *c = &of->probes[i].config;
            ck_assert_msg(c->no_checksum == (strstr(c->name, "n25") != NULL), "%s", c->name);
        }
        ck_assert_uint_eq(configs[index_of("a161")].n_probes, 24);
        check_program(&must_find("a161", PROBE_LOOP, "n12,n25")->config.program,
                      "n12,n25,n12,a161");
        ck_assert_uint_eq(configs[index_of("n25")].n_probes, 0);
    }
END_TEST

/* A host behind a router: nobody answers there, but the router sends on. */
START_TEST(foreign_peer)
    {
        make("r1-a161 a161-n11 n11-n21 n21-n12 n12-r3 ~n12");
        ck_assert_uint_eq(count("a161", PROBE_PEER, NULL), 0);
        const struct plan_probe *p = must_find("a161", PROBE_LOOP, "n11,n21,n12");
        check_program(&p->config.program, "n11,n21,n12,n21,n11,a161");
        ck_assert_uint_eq(path_of("a161", "r3", "n11,n21,n12")->probe, p->config.number);
    }
END_TEST

/* Of parallel links each has a probe, and the way back takes the same one. */
START_TEST(parallel_links)
    {
        make("r1-a161 a161-n11 n11-n21 n11-n21 n21-a163 r3-a163");
        const struct plan_probe *p = must_find("a161", PROBE_PEER, "n11:n21.1,n21,a163");
        check_program(&p->config.program, "n11:3,n21,a163");
        check_program(&p->config.back, "n21:2,n11,a161");
        ck_assert_str_eq(p->elements, "a161>n11 n11 n11:n21.1>n21 n21 n21>a163 a163 a163>n21 n21 "
                                      "n21:n11.1>n11 n11 n11>a161");
        ck_assert_uint_eq(p->config.reverse,
                          must_find("a163", PROBE_PEER, "n21:n11.1,n11,a161")->config.number);
        must_find("a161", PROBE_PEER, "n11:n21,n21,a163");
        must_find("a161", PROBE_LOOP, "n11:n21.1,n21");
        /* The agent's own: by the port, and back over the same link. */
        forget();
        plan_topology_uninit(&topology);
        make("r1-a161 a161-n11 a161-n11 n11-n21 n21-a163 r3-a163");
        p = must_find("a161", PROBE_LOOP, "a161:n11.1,n11");
        check_program(&p->config.program, "n11:2,a161");
        ck_assert_uint_eq(p->config.port, 2);
        ck_assert_str_eq(p->elements, "a161:n11.1>n11 n11 n11:a161.1>a161");
    }
END_TEST

/* What an agent may not use it does not send. */
START_TEST(permission)
    {
        struct plan_node *agent;

        plan_fixture_topology(&topology, CLOS);
        set_policies(PATH_SPREAD);
        agent = plan_fixture_node(&topology, "a161");
        agent->programs = xcalloc(1, sizeof *agent->programs);
        agent->n_programs = 1;
        agent->programs[0].plen = 64;
        inet_pton(AF_INET6, "5f00:0:b:19::", &agent->programs[0].address); /* n11, n25 */
        plan_all();
        ck_assert_uint_eq(count("a161", PROBE_LOOP, NULL), 1);
        ck_assert_uint_eq(count("a161", PROBE_PEER, NULL), 4);
        /* Others are not answered where it may not: a loop says what it can. */
        ck_assert_ptr_null(find("a163", PROBE_PEER, "n13,n26,n11,a161"));
        ck_assert_uint_eq(path_of("a163", "r1", "n13,n26,n11")->probe,
                          must_find("a163", PROBE_LOOP, "n13,n26,n11,a161")->config.number);
    }
END_TEST

static const struct probe_choice off = {.has_interval = true};

START_TEST(settings)
    {
        plan_fixture_topology(&topology, CLOS);
        set_policies(PATH_SPREAD);
        ovs_strlcpy(plan_fixture_node(&topology, "n25")->plane, "A", NAME_SIZE);
        ovs_strlcpy(plan_fixture_node(&topology, "n26")->plane, "B", NAME_SIZE);
        topology.probes.all = (struct probe_choice){true, true, 200, 20};
        topology.probes.planes = xcalloc(1, sizeof *topology.probes.planes);
        topology.probes.n_planes = 1;
        topology.probes.planes[0] =
            (struct probe_plane){"B", {.has_interval = true, .interval = 30}};
        topology.fabric_mtu = 1500;
        plan_all();
        const struct probe_config *c = &must_find("a161", PROBE_LOOP, "n11")->config;
        ck_assert_uint_eq(c->interval_usec, 200000);
        ck_assert_uint_eq(c->timeout_usec, 20000);
        ck_assert_uint_eq(c->large, 1500);
        c = &must_find("a161", PROBE_PEER, "n11,n25,n13,a163")->config;
        ck_assert_str_eq(c->plane, "A");
        ck_assert_uint_eq(c->interval_usec, 200000);
        c = &must_find("a161", PROBE_PEER, "n11,n26,n13,a163")->config;
        ck_assert_uint_eq(c->interval_usec, 30000);
        ck_assert_uint_eq(c->timeout_usec, 15000);
        /* One plane is off. */
        topology.probes.planes[0].choice = off;
        plan_all();
        ck_assert_ptr_null(find("a161", PROBE_PEER, "n11,n26,n13,a163"));
        ck_assert_uint_eq(path_of("a161", "r3", "n11,n26,n13")->probe, 0);
        ck_assert_uint_eq(configs[index_of("a161")].n_probes, 4 + 2 + 4 + 4);
        /* All are. */
        topology.probes.n_planes = 0;
        topology.probes.all = off;
        plan_all();
        ck_assert_uint_eq(configs[index_of("a161")].n_probes, 0);
        ck_assert_uint_eq(configs[index_of("a161")].n_probers, 0);
    }
END_TEST

/* Interval, time-out of all; of plane A; what holds there. */
static const struct times_case {
    struct probe_choice all, plane;
    struct probe_times want;
    bool is_cut;
} times_cases[] = {
    {{0}, {0}, {100, 50}, false},
    {{.has_interval = true, .interval = 15}, {0}, {15, 10}, false},
    {{.has_interval = true, .interval = 10}, {0}, {10, 10}, false},
    {{true, true, 100, 100}, {0}, {100, 100}, false},
    {{true, true, 100, 101}, {0}, {100, 100}, true},
    {{true, true, 100, 70}, {.has_interval = true, .interval = 60}, {60, 30}, false},
    {{true, true, 100, 70}, {.has_timeout = true, .timeout = 5}, {100, 5}, false},
    {{true, true, 100, 70}, {true, true, 40, 50}, {40, 40}, true},
    {{true, true, 0, 70}, {0}, {0, 0}, false},
    {{true, false, 0, 0}, {true, false, 50, 0}, {50, 25}, false},
};

START_TEST(times_of_planes)
    {
        const struct times_case *t = &times_cases[_i];
        struct probe_plane plane = {"A", t->plane};
        struct probe_settings s = {t->all, 1, &plane};
        struct probe_times has = probe_settings_of(&s, "A");

        ck_assert_uint_eq(has.interval, t->want.interval);
        ck_assert_uint_eq(has.timeout, t->want.timeout);
        ck_assert_int_eq(probe_settings_are_cut(&s, "A"), t->is_cut);
        s.planes = NULL;
        s.n_planes = 0;
        has = probe_settings_of(&s, "A");
        ck_assert_uint_eq(has.interval, probe_settings_of(&s, "").interval);
        ck_assert_uint_eq(has.timeout, probe_settings_of(&s, "").timeout);
    }
END_TEST

/* Numbers of one node's probes, by kind and name. */
static void
collect(const char *node, struct shash *numbers)
{
    const struct plan_probes *of = &probes[index_of(node)];

    shash_init(numbers);
    for (size_t i = 0; i < of->n; i++) {
        const struct probe_config *c = &of->probes[i].config;
        char *key = xasprintf("%d %s", c->kind, c->name);

        ck_assert(shash_add_once(numbers, key, (void *) (uintptr_t) c->number));
        ck_assert(!i || of->probes[i - 1].config.number < c->number);
        free(key);
    }
}

static void
check_kept(const char *node, const struct shash *before)
{
    struct shash now;
    struct shash_node *s;

    collect(node, &now);
    SHASH_FOR_EACH (s, before) {
        ck_assert_ptr_eq(shash_find_data(&now, s->name), s->data);
    }
    shash_destroy(&now);
}

START_TEST(numbers_stay)
    {
        struct shash before;

        make(CLOS);
        collect("a161", &before);
        for (int i = 30; i < 36; i++) {
            char agent[8], host[8];

            snprintf(agent, sizeof agent, "a%d", i);
            snprintf(host, sizeof host, "r%d", i);
            plan_fixture_add_node(&topology, agent);
            plan_fixture_add_host(&topology, host);
            plan_fixture_add_link(&topology, agent, "n13");
            plan_fixture_add_link(&topology, agent, host);
        }
        plan_all();
        ck_assert_uint_eq(configs[index_of("a161")].n_probes, 24 + 6 * 4);
        check_kept("a161", &before);
        shash_destroy(&before);
    }
END_TEST

/* The same rows in another order are the same plan. */
START_TEST(order)
    {
        struct shash before;

        make(CLOS);
        collect("a163", &before);
        for (size_t i = 0; i < topology.n_links / 2; i++) {
            struct plan_link link = topology.links[i];

            topology.links[i] = topology.links[topology.n_links - 1 - i];
            topology.links[topology.n_links - 1 - i] = link;
        }
        for (size_t i = 0; i < topology.n_nodes / 2; i++) {
            struct plan_node node = topology.nodes[i];

            topology.nodes[i] = topology.nodes[topology.n_nodes - 1 - i];
            topology.nodes[topology.n_nodes - 1 - i] = node;
        }
        plan_all();
        check_kept("a163", &before);
        ck_assert_uint_eq(shash_count(&before), configs[index_of("a163")].n_probes);
        shash_destroy(&before);
    }
END_TEST

/* Eight leaves on each side and eight spines: 64 paths to each of 17 agents, and room for fewer. */
START_TEST(too_many)
    {
        struct ds text = DS_EMPTY_INITIALIZER;

        for (int leaf = 11; leaf < 19; leaf++) {
            ds_put_format(&text, "a161-n%d ", leaf);
            for (int spine = 41; spine < 49; spine++) {
                ds_put_format(&text, "n%d-n%d ", leaf, spine);
            }
        }
        for (int spine = 41; spine < 49; spine++) {
            ds_put_format(&text, "n%d-n21 ", spine);
        }
        for (int i = 1; i < 18; i++) {
            ds_put_format(&text, "n21-a%d a%d-r%d ", 60 + i, 60 + i, i);
        }
        ds_put_cstr(&text, "r40-a161");
        plan_fixture_topology(&topology, ds_cstr(&text));
        CONST_CAST(struct plan_host *, plan_find_host(&topology, "r40"))->path_policy = PATH_SPREAD;
        plan_all();
        const struct node_config *c = &configs[index_of("a161")];
        ck_assert_uint_eq(c->n_probes, PROBES_MAX);
        ck_assert_uint_eq(count("a161", PROBE_LOOP, NULL), 8 + 64);
        ck_assert_str_eq(left_out,
                         "node a161: 136 of its paths' probes are left out, a node may have "
                         "1024");
        for (size_t i = 0; i < c->n_destinations; i++) {
            ck_assert_uint_eq(c->destinations[i].n_paths, 64);
            ck_assert_uint_ne(c->destinations[i].paths[0].probe, 0);
        }
        ds_destroy(&text);
    }
END_TEST

/* A way of which there is no path, as a group's; of parallel links the one by which routes lead. */
START_TEST(wanted_ways)
    {
        const struct plan_node *nodes[3];

        plan_fixture_topology(&topology, CLOS " n11-n25");
        plan_topology_prepare(&topology);
        wants = "a161";
        wanted = (struct plan_peer_way){3, nodes};
        nodes[0] = plan_find_node(&topology, "n11");
        nodes[1] = plan_find_node(&topology, "n25");
        nodes[2] = plan_find_node(&topology, "n13");
        plan_all();
        const struct plan_probe *p = must_find("a161", PROBE_PEER, "n11,n25,n13");
        check_program(&p->config.program, "n11,n25,n13");
        ck_assert_str_eq(p->elements, "a161>n11 n11 n11:n25>n25 n25 n25>n13 n13 n13>n25 n25 "
                                      "n25:n11>n11 n11 n11>a161");
        ck_assert_uint_eq(plan_probe_number(&probes[index_of("a161")], &wanted), p->config.number);
        ck_assert_uint_eq(configs[index_of("a161")].n_probes, 1);
        ck_assert_uint_eq(configs[index_of("n13")].n_probers, 1);
        /* Nodes that are no neighbours. */
        nodes[1] = plan_find_node(&topology, "n14");
        plan_all();
        ck_assert_uint_eq(configs[index_of("a161")].n_probes, 0);
        ck_assert_uint_eq(plan_probe_number(&probes[index_of("a161")], &wanted), 0);
    }
END_TEST

Suite *
plan_probe_suite(void)
{
    Suite *s = suite_create("plan-probe");
    TCase *tc = tcase_create("probes");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, figure);
    tcase_add_test(tc, what_they_say);
    tcase_add_test(tc, paths_have_probes);
    tcase_add_test(tc, who_probes);
    tcase_add_test(tc, three_tiers);
    tcase_add_test(tc, foreign_on_the_way);
    tcase_add_test(tc, foreign_spines);
    tcase_add_test(tc, foreign_peer);
    tcase_add_test(tc, parallel_links);
    tcase_add_test(tc, permission);
    tcase_add_test(tc, settings);
    tcase_add_loop_test(tc, times_of_planes, 0, ARRAY_SIZE(times_cases));
    tcase_add_test(tc, numbers_stay);
    tcase_add_test(tc, order);
    tcase_add_test(tc, too_many);
    tcase_add_test(tc, wanted_ways);
    suite_add_tcase(s, tc);
    return s;
}
