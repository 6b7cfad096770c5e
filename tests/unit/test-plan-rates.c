/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: what nodes do about congestion.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "tests/unit/hex.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

static struct plan_topology t;
static struct plan_member members[4];
static struct plan_group g;

/* Two sources with agents, and three levels of nodes. */
static void
setup(void)
{
    plan_fixture_topology(&t, "h0-a9 a9-n3 h2-a8 a8-n3 n3-n2 n2-n1 n1-r1");
    for (size_t i = 0; i < t.n_hosts; i++) {
        t.hosts[i].rate = (struct rate_settings){.line = DEFAULT_LINE_RATE};
    }
    t.congestion = (struct congestion_settings){
        .interval_usec = 10000, .fast_cnp = true, .any_icrc = true, .fast_cnp_rate = 3};
    plan_fixture_group(&g, members);
    g.mtu = 1024;
    g.policy.timeout = 20;
    g.policy.cnp_window_usec = 1000;
    plan_fixture_add_member(&g, "r1");
}

static void
teardown(void)
{
    plan_topology_uninit(&t);
}

static struct plan_host *
host(const char *name)
{
    return CONST_CAST(struct plan_host *, plan_find_host(&t, name));
}

static struct congestion_config
plan_of(const char *name)
{
    struct congestion_config c = {.n_capable = 0};

    plan_congestion(&t, plan_find_node(&t, name), &c);
    return c;
}

static void
release(struct congestion_config *c)
{
    free(c->capable);
    free(c->trusted);
    free(c->queue_rates);
}

START_TEST(a_switch_and_an_agent)
    {
        struct in6_addr h0 = host("h0")->address, n1 = node_address(1), a9 = node_address(9);
        struct congestion_config c = plan_of("n2");

        ck_assert(c.fast_cnp && !c.any_icrc && !c.trace);
        ck_assert_uint_eq(c.interval_usec, 10000);
        ck_assert_uint_eq(c.fast_cnp_rate, 3);
        ck_assert_uint_eq(c.n_capable, 2);
        ck_assert_mem_eq(&c.capable[0], &h0, sizeof h0);
        ck_assert_uint_eq(c.n_trusted, 0);
        release(&c);

        host("h2")->rate = (struct rate_settings){
            .by = RATE_BY_NIC, .controller = RATE_DEPTH, .line = 100000000, .floor = 7000000};
        t.trace = true;
        c = plan_of("a8");
        ck_assert(c.any_icrc && c.trace);
        ck_assert_int_eq(c.rate_control, RATE_BY_NIC);
        ck_assert_int_eq(c.rate.controller, RATE_DEPTH);
        ck_assert_uint_eq(c.rate.line, 100000000);
        ck_assert_uint_eq(c.rate.floor, 7000000);
        ck_assert_uint_eq(c.n_queue_rates, 0);
        ck_assert_uint_eq(c.n_trusted, 5);
        ck_assert_mem_eq(&c.trusted[0], &n1, sizeof n1);
        ck_assert_mem_eq(&c.trusted[4], &a9, sizeof a9);
        release(&c);

        t.links[0].b_to_a.rate = 20000000;
        t.links[1].a_to_b.rate = 10000000;
        c = plan_of("a8");
        ck_assert_uint_eq(c.n_queue_rates, 2);
        ck_assert_uint_lt(c.queue_rates[0].node, c.queue_rates[1].node);
        for (size_t i = 0; i < 2; i++) {
            bool first = c.queue_rates[i].node == plan_find_node(&t, t.links[0].b)->id;

            ck_assert(first || c.queue_rates[i].node == plan_find_node(&t, t.links[1].a)->id);
            ck_assert_uint_eq(c.queue_rates[i].rate, first ? 20000000 : 10000000);
        }
        release(&c);
        c = plan_of("a9"); /* a controller that does not ask. */
        ck_assert_uint_eq(c.n_queue_rates, 0);
        release(&c);
    }
END_TEST

/* Nobody needs the lists, and nobody has a reason for another generation when hosts come. */
START_TEST(no_lists_without_fast_cnps)
    {
        t.congestion.fast_cnp = false;
        struct congestion_config c = plan_of("a8");

        ck_assert(!c.fast_cnp);
        ck_assert_uint_eq(c.n_capable + c.n_trusted, 0);
        ck_assert_ptr_null(c.capable);
        release(&c);
    }
END_TEST

static const struct {
    const char *host;
    enum rate_control_by by;
    enum fast_cnp_choice choice;
    bool capable;
} who[] = {
    {"h0", RATE_BY_AGENT, FAST_CNP_AUTO, true}, {"h0", RATE_BY_NIC, FAST_CNP_AUTO, false},
    {"h0", RATE_BY_NONE, FAST_CNP_AUTO, false}, {"h0", RATE_BY_NONE, FAST_CNP_ON, true},
    {"h0", RATE_BY_AGENT, FAST_CNP_OFF, false}, {"r1", RATE_BY_AGENT, FAST_CNP_AUTO, false},
    {"r1", RATE_BY_NIC, FAST_CNP_ON, true},
};

START_TEST(capable)
    {
        struct plan_host *h = host(who[_i].host);
        bool found = false;

        h->rate.by = who[_i].by;
        h->rate.fast_cnp = who[_i].choice;
        struct congestion_config c = plan_of("n1");
        for (size_t i = 0; i < c.n_capable; i++) {
            found |= IN6_ARE_ADDR_EQUAL(&c.capable[i], &h->address);
        }
        ck_assert_int_eq(found, who[_i].capable);
        release(&c);
    }
END_TEST

START_TEST(external_port)
    {
        struct node_config c;

        for (size_t i = 0; i < t.n_links; i++) {
            t.links[i].external = !strcmp(t.links[i].a, "n2");
        }
        ck_assert_ptr_null(plan_node_config(&t, plan_find_node(&t, "n2"), &c));
        ck_assert_uint_eq(c.n_ports, 2);
        for (size_t i = 0; i < c.n_ports; i++) {
            ck_assert_int_eq(c.ports[i].external, !strcmp(c.ports[i].peer, "n1"));
        }
        node_config_uninit(&c);
    }
END_TEST

/* 132 frames of 14 + 1024 + 84 bytes in 4.3 s; 2^-13 of that time needs 2^13 times the rate. */
START_TEST(floors)
    {
        struct plan_host *h0 = host("h0");
        uint64_t need = plan_rate_floor(h0, &g);

        ck_assert_uint_ge(need, 275000);
        ck_assert_uint_le(need, 277000);
        h0->rate.floor = 5000000;
        ck_assert_uint_eq(plan_rate_floor(h0, &g), 5000000);
        g.policy.timeout = 7;
        ck_assert_uint_eq(plan_rate_floor(h0, &g), h0->rate.line);
    }
END_TEST

START_TEST(only_the_agent_is_told_the_floor)
    {
        struct plan plan;

        g.rate_floor = 99;
        g.agent = true;
        g.members[0].provision = g.members[0].copy = true;
        ck_assert_ptr_null(plan_group(&t, &g, &plan));
        ck_assert_uint_eq(plan.n_trees, 4);
        ck_assert_uint_eq(plan_height(&plan), 3);
        for (size_t i = 0; i < plan.n_trees; i++) {
            ck_assert_uint_eq(plan.trees[i].config.rate_floor,
                              plan_is_agent(plan.trees[i].node) ? 99 : 0);
        }
        ck_assert_ptr_null(plan_congestion_problem(&t, &g, &plan));

        g.policy.cnp_window_usec = 1667;
        char *problem = plan_congestion_problem(&t, &g, &plan);
        ck_assert_str_eq(problem, "CNPs may wait 5001 us on their way up (3 nodes, windows of 1667 "
                                  "us), more than half of the interval of 10000 us");
        free(problem);
        g.policy.timeout = 7;
        problem = plan_congestion_problem(&t, &g, &plan);
        ck_assert_ptr_nonnull(strstr(problem, "its rate is never cut: with QP time-out 7 "));
        free(problem);
        plan_uninit(&plan);
    }
END_TEST

START_TEST(a_trace_needs_room)
    {
        t.fabric_mtu = 1024 + 84 + 40 + 72 + 96;
        g.members[0].copy = true;
        g.policy.trace_slots = 4;
        char *none = plan_check_size(&t, &g);
        ck_assert_msg(!none, "%s", none);
        g.policy.trace_slots = 5;
        char *error = plan_check_size(&t, &g);
        ck_assert_msg(error && strstr(error, "(1024 + 84 RoCE + 40 IPv6 + 120 IOAM + "), "%s",
                      error);
        free(error);
    }
END_TEST

Suite *
plan_rates_suite(void)
{
    Suite *suite = suite_create("plan_rates");
    TCase *tcase = tcase_create("congestion");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_switch_and_an_agent);
    tcase_add_test(tcase, no_lists_without_fast_cnps);
    tcase_add_loop_test(tcase, capable, 0, ARRAY_SIZE(who));
    tcase_add_test(tcase, external_port);
    tcase_add_test(tcase, floors);
    tcase_add_test(tcase, only_the_agent_is_told_the_floor);
    tcase_add_test(tcase, a_trace_needs_room);
    suite_add_tcase(suite, tcase);
    return suite;
}
