/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: the hosts that a node has paths to, their numbers, and pins.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/path.h"
#include "ctl/plan/plan.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

/* Two leaves, two spines; r1 and r5 are behind one agent, r3 behind another, r4 behind a leaf. */
#define CLOS                                                                                  \
    "r1-a1 r5-a1 a1-n11 a1-n12 n11-n21 n11-n22 n12-n21 n12-n22 n13-n21 n13-n22 n13-a3 a3-r3 " \
    "n13-r4"

static struct plan_topology topology;
static struct node_config config;

static void
setup(void)
{
    plan_fixture_topology(&topology, CLOS);
    topology.path_rules = xcalloc(200, sizeof *topology.path_rules);
}

static void
teardown(void)
{
    node_config_uninit(&config);
    plan_topology_uninit(&topology);
}

static void
set_policy(const char *host, enum path_policy policy)
{
    CONST_CAST(struct plan_host *, plan_find_host(&topology, host))->path_policy = policy;
}

static void
add_rule(enum path_rule_kind kind, const char *from, const char *to, const char *path)
{
    struct plan_path_rule *rule = &topology.path_rules[topology.n_path_rules++];

    *rule = (struct plan_path_rule){.kind = kind};
    ovs_strlcpy(rule->from, from, sizeof rule->from);
    ovs_strlcpy(rule->to, to, sizeof rule->to);
    ovs_strlcpy(rule->path, path, sizeof rule->path);
}

static void
add_qp_pin(const char *from, const char *to, uint32_t dest_qp, const char *path)
{
    add_rule(PATH_PIN, from, to, path);
    topology.path_rules[topology.n_path_rules - 1].has_qp = true;
    topology.path_rules[topology.n_path_rules - 1].dest_qp = dest_qp;
}

static char *
try(const char *name)
{
    const struct plan_node *node;
    struct plan_node_paths *found;

    plan_topology_prepare(&topology);
    node = plan_find_node(&topology, name);
    node_config_uninit(&config);
    char *error = plan_node_config(&topology, node, &config);
    ck_assert_msg(!error, "%s", error);
    error = plan_destinations(&topology, node, &config, &found);
    plan_node_paths_free(&topology, found);
    return error;
}

static void
make(const char *node)
{
    char *error = try(node);
    ck_assert_msg(!error, "%s", error);
}

/* The path that has this number. */
static const struct path_config *
path_with(const struct destination_config *dest, uint16_t number)
{
    for (size_t i = 0; i < dest->n_paths; i++) {
        if (dest->paths[i].number == number) {
            return &dest->paths[i];
        }
    }
    ck_abort_msg("no path %u to %s", number, dest->name);
}

/* "HOST POLICY: NAME@PORT, ...", with "!" before one that is not usable, then "; pin NAME",
 * "; pin QP NAME". */
static char *
text_of(const struct destination_config *dest)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    ds_put_format(&s, "%s %s:", dest->name, path_policy_name(dest->policy));
    for (size_t i = 0; i < dest->n_paths; i++) {
        const struct path_config *p = &dest->paths[i];

        ds_put_format(&s, "%s %s%s@%u", i ? "," : "", p->usable ? "" : "!", p->name, p->port);
        ck_assert(!p->usable || p->program.n);
        ck_assert(!p->usable || p->port);
    }
    if (dest->pinned) {
        ds_put_format(&s, "; pin %s", path_with(dest, dest->pinned)->name);
    }
    for (size_t i = 0; i < dest->n_pins; i++) {
        ds_put_format(&s, "; pin %u %s", dest->pins[i].dest_qp,
                      path_with(dest, dest->pins[i].number)->name);
    }
    return ds_steal_cstr(&s);
}

static void
check(const char *const wants[], size_t n)
{
    ck_assert_uint_eq(config.n_destinations, n);
    for (size_t i = 0; i < n; i++) {
        char *text = text_of(&config.destinations[i]);

        ck_assert_str_eq(text, wants[i]);
        free(text);
    }
}

#define CHECK(...)                                         \
    do {                                                   \
        static const char *const wants_[] = {__VA_ARGS__}; \
        check(wants_, ARRAY_SIZE(wants_));                 \
    } while (0)

/* a1 has port 1 to n11, 2 to n12; n13 has port 1 to a3, 2 to n21, 3 to n22, 4 to r4. */
#define TO_R3 "n11,n21,n13@1, n12,n22,n13@2, n11,n22,n13@1, n12,n21,n13@2"

START_TEST(policies)
    {
        make("a1");
        ck_assert_uint_eq(config.n_destinations, 0);
        set_policy("r3", PATH_SPREAD); /* not what r1 sends. */
        make("a1");
        ck_assert_uint_eq(config.n_destinations, 0);
        /* The second host has one, the first none. */
        set_policy("r5", PATH_MESSAGE);
        make("a1");
        CHECK("r3 message: " TO_R3, "r4 message: " TO_R3);
        set_policy("r1", PATH_FAILOVER);
        make("a1");
        CHECK("r3 failover: " TO_R3, "r4 failover: " TO_R3);
        /* A switch with a host is a headend as well.  r3 is straight behind its neighbour. */
        set_policy("r4", PATH_SPRAY);
        make("n13");
        CHECK("r1 spray: n21,n11@2, n22,n12@3, n21,n12@2, n22,n11@3", "r3 spray: direct@1",
              "r5 spray: n21,n11@2, n22,n12@3, n21,n12@2, n22,n11@3");
        make("n21");
        ck_assert_uint_eq(config.n_destinations, 0);
    }
END_TEST

START_TEST(pins)
    {
        set_policy("r1", PATH_SPREAD);
        add_rule(PATH_PIN, "r1", "r3", "n12,n21,n13");
        add_qp_pin("r1", "r3", 99, "n11,n21,n13");
        add_qp_pin("r5", "r3", 17, "n12,n22,n13");
        add_qp_pin("r5", "r3", 99, "n12,n22,n13"); /* r1's is before it. */
        add_rule(PATH_EXCLUDE, "r1", "r3", "n12,n22,n13");
        add_rule(PATH_PIN, "r4", "r3", "direct"); /* another node's. */
        make("a1");
        CHECK("r3 spread: n11,n21,n13@1, !n12,n22,n13@2, n11,n22,n13@1, n12,n21,n13@2; "
              "pin n12,n21,n13; pin 17 n12,n22,n13; pin 99 n11,n21,n13",
              "r4 spread: " TO_R3);
    }
END_TEST

/* Without a policy, hosts that are pinned are destinations, and no others. */
START_TEST(pins_alone)
    {
        add_qp_pin("r1", "r4", 5, "n12,n21,n13");
        make("a1");
        CHECK("r4 none: " TO_R3 "; pin 5 n12,n21,n13");
    }
END_TEST

/* A path that is not there is kept, not usable: packets are to be dropped. */
START_TEST(pin_without_path)
    {
        set_policy("r1", PATH_FAILOVER);
        add_rule(PATH_PIN, "r1", "r3", "n11,n29,n13");
        make("a1");
        CHECK("r3 failover: " TO_R3 ", !n11,n29,n13@0; pin n11,n29,n13", "r4 failover: " TO_R3);
        /* Not even a way. */
        for (size_t i = 0; i < topology.n_links; i++) {
            if (!strcmp(topology.links[i].a, "n13") && !strcmp(topology.links[i].b, "a3")) {
                topology.links[i] = topology.links[--topology.n_links];
            }
        }
        make("a1");
        CHECK("r3 failover: !n11,n29,n13@0; pin n11,n29,n13", "r4 failover: " TO_R3);
    }
END_TEST

START_TEST(own_programs)
    {
        set_policy("r1", PATH_FAILOVER);
        add_rule(PATH_PIN, "r1", "r3", "n12 5f00:0:c:e101:d:3::,5f00::");
        add_rule(PATH_PIN, "r1", "r4", "n13 5f00:0:d::"); /* no neighbour. */
        add_qp_pin("r1", "r4", 5, "n12 what");
        make("a1");
        CHECK("r3 failover: " TO_R3 ", n12 5f00:0:c:e101:d:3::,5f00::@2; "
              "pin n12 5f00:0:c:e101:d:3::,5f00::",
              "r4 failover: " TO_R3 ", !n13 5f00:0:d::@0, !n12 what@0; pin n13 5f00:0:d::; "
              "pin 5 n12 what");
        const struct path_config *own = &config.destinations[0].paths[4];
        char text[PROGRAM_TEXT_SIZE];
        program_format(&own->program, text);
        ck_assert_str_eq(text, "5f00:0:c:e101:d:3::,5f00::");
        ck_assert_uint_eq(config.destinations[1].paths[4].program.n, 0);
    }
END_TEST

/* A path keeps its number if hosts come. */
START_TEST(numbers_stay)
    {
        uint16_t before[4];

        set_policy("r1", PATH_FAILOVER);
        make("a1");
        for (size_t i = 0; i < 4; i++) {
            before[i] = config.destinations[0].paths[i].number;
        }
        for (int i = 10; i < 40; i++) {
            char name[8];

            snprintf(name, sizeof name, "r%d", i);
            plan_fixture_add_host(&topology, name);
            plan_fixture_add_link(&topology, "n13", name);
        }
        make("a1");
        ck_assert_uint_eq(config.n_destinations, 32);
        for (size_t i = 0; i < 4; i++) {
            ck_assert_uint_eq(config.destinations[0].paths[i].number, before[i]);
        }
    }
END_TEST

/* Many hosts share the numbers; pinned paths have theirs. */
START_TEST(many_hosts)
    {
        bool taken[PATH_NUMBER_MAX + 1] = {false};
        struct ds s = DS_EMPTY_INITIALIZER;

        teardown();
        ds_put_cstr(&s, "r1-a1 a1-n1");
        for (int i = 0; i < 70; i++) {
            ds_put_format(&s, " n1-n%d n%d-n2", 100 + i, 100 + i);
        }
        for (int i = 0; i < 90; i++) {
            ds_put_format(&s, " n2-r%d", 10 + i);
        }
        plan_fixture_topology(&topology, ds_cstr(&s));
        ds_destroy(&s);
        topology.path_rules = xcalloc(200, sizeof *topology.path_rules);
        set_policy("r1", PATH_SPREAD);
        add_rule(PATH_PIN, "r1", "r15", "n1,n160,n2");
        make("a1");
        ck_assert_uint_eq(config.n_destinations, 90);
        for (size_t i = 0; i < config.n_destinations; i++) {
            const struct destination_config *dest = &config.destinations[i];

            /* (4095 - 64 - 1) / 90. */
            ck_assert_uint_eq(dest->n_paths, 44);
            ck_assert_str_eq(dest->paths[0].name, "n1,n100,n2");
            ck_assert_str_eq(dest->paths[42].name, "n1,n142,n2");
            ck_assert_str_eq(dest->paths[43].name,
                             strcmp(dest->name, "r15") ? "n1,n143,n2" : "n1,n160,n2");
            for (size_t j = 0; j < dest->n_paths; j++) {
                ck_assert(!taken[dest->paths[j].number]);
                taken[dest->paths[j].number] = true;
            }
        }
    }
END_TEST

START_TEST(too_many_pins)
    {
        set_policy("r1", PATH_SPREAD);
        for (unsigned i = 0; i < PATHS_MAX; i++) {
            char path[64];

            snprintf(path, sizeof path, "n11 5f00:0:%x::", i + 1);
            add_qp_pin("r1", "r3", i + 2, path);
        }
        make("a1"); /* the others make room. */
        ck_assert_uint_eq(config.destinations[0].n_paths, PATHS_MAX);
        add_qp_pin("r1", "r3", 1000, "n11,n21,n13");
        char *error = try("a1");
        ck_assert_str_eq(error, "node a1: more than 64 paths to r3 are pinned");
        free(error);
        /* The rest is as it was. */
        ck_assert_uint_eq(config.n_destinations, 1);
        ck_assert_str_eq(config.destinations[0].name, "r4");
        ck_assert_uint_ne(config.n_routes, 0);
    }
END_TEST

/* Hosts without pins take no numbers where there is no policy. */
START_TEST(pin_among_many)
    {
        size_t n = topology.n_hosts + PATH_NUMBER_MAX;

        topology.hosts = xrealloc(topology.hosts, n * sizeof *topology.hosts);
        topology.links = xrealloc(topology.links, (topology.n_links + n) * sizeof *topology.links);
        for (unsigned i = 0; i < PATH_NUMBER_MAX; i++) {
            struct plan_host *host = &topology.hosts[topology.n_hosts++];
            struct plan_link *link = &topology.links[topology.n_links++];

            *host = (struct plan_host){.address = node_address((uint16_t) (i + 1))};
            snprintf(host->name, sizeof host->name, "x%u", i);
            *link = (struct plan_link){.a = "n13"};
            snprintf(link->a_port, sizeof link->a_port, "x%u", i);
            ovs_strlcpy(link->b, host->name, sizeof link->b);
        }
        add_rule(PATH_PIN, "r1", "r3", "n11,n21,n13");
        make("a1");
        ck_assert_uint_eq(config.n_destinations, 1);
        ck_assert_uint_ne(config.destinations[0].pinned, 0);
    }
END_TEST

Suite *
plan_headend_suite(void)
{
    Suite *suite = suite_create("plan-headend");
    TCase *headend = tcase_create("plan-headend");

    tcase_add_checked_fixture(headend, setup, teardown);
    tcase_add_test(headend, policies);
    tcase_add_test(headend, pins);
    tcase_add_test(headend, pins_alone);
    tcase_add_test(headend, pin_without_path);
    tcase_add_test(headend, own_programs);
    tcase_add_test(headend, numbers_stay);
    tcase_add_test(headend, many_hosts);
    tcase_add_test(headend, too_many_pins);
    tcase_add_test(headend, pin_among_many);
    suite_add_tcase(suite, headend);
    return suite;
}
