/* SPDX-License-Identifier: Apache-2.0
 *
 * What is broken, by the probes that the planner gives to the nodes of the draft's figure: each node, link
 * and direction is found.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "ctl/plan/locate.h"
#include "ctl/plan/plan.h"
#include "ctl/plan/probe.h"
#include "svec.h"
#include "tests/unit/plan-fixture.h"
#include "tests/unit/suites.h"
#include "util.h"

/* testbed/topologies/clos.yaml: four hosts, each behind an agent with two leaves, and two spines. */
#define CLOS                                                                                          \
    "r1-a161 r2-a162 r3-a163 r4-a164 a161-n11 a161-n12 a162-n11 a162-n12 a163-n13 a163-n14 a164-n13 " \
    "a164-n14 n11-n25 n12-n25 n13-n25 n14-n25 n11-n26 n12-n26 n13-n26 n14-n26"
#define MAX_NODES  16
#define MAX_PROBES 128
#define N_PROBES   (4 * (6 + 18)) /* loops, and ways to three peers. */

static struct plan_topology topology;
static struct node_config configs[MAX_NODES];
static struct plan_probes planned[MAX_NODES];
static struct locate_probe probes[MAX_PROBES];
static size_t n_probes;

static void
plan_all(void)
{
    struct plan_graph g;

    plan_graph_init(&g, &topology);
    for (size_t i = 0; i < topology.n_nodes; i++) {
        struct plan_node_paths *found;
        char *error = plan_node_config(&topology, &topology.nodes[i], &configs[i]);

        ck_assert_ptr_null(error);
        error = plan_destinations(&topology, &topology.nodes[i], &configs[i], &found);
        ck_assert_ptr_null(error);
        error = plan_probes(&g, &topology.nodes[i], found, NULL, 0, &configs[i], &planned[i]);
        ck_assert_ptr_null(error);
        plan_node_paths_free(&topology, found);
    }
    plan_graph_uninit(&g);
    plan_probes_pair(&topology, planned);
}

/* The probe of this number at the node, among those that are there already. */
static struct locate_probe *
find_probe(const struct plan_node *node, uint16_t number)
{
    const struct plan_probes *of = &planned[node - topology.nodes];
    size_t i = 0;

    while (of->probes[i].config.number != number) {
        i++;
        ck_assert_uint_lt(i, of->n);
    }
    for (size_t j = 0; j < n_probes; j++) {
        if (probes[j].elements == of->probes[i].elements) {
            return &probes[j];
        }
    }
    return NULL;
}

static void
setup(void)
{
    plan_fixture_topology(&topology, CLOS);
    for (size_t i = 0; i < topology.n_hosts; i++) {
        topology.hosts[i].path_policy = PATH_SPREAD;
    }
    plan_topology_prepare(&topology);
    plan_all();
    n_probes = 0;
    for (size_t i = 0; i < topology.n_nodes; i++) {
        for (size_t j = 0; j < planned[i].n; j++) {
            const struct plan_probe *p = &planned[i].probes[j];
            struct locate_probe *probe = &probes[n_probes++];

            *probe = (struct locate_probe){
                .name = p->config.name,
                .node = topology.nodes[i].name,
                .kind = p->config.kind,
                .elements = p->elements,
                .interval_usec = p->config.interval_usec,
            };
            struct locate_probe *reverse = p->peer ? find_probe(p->peer, p->config.reverse) : NULL;
            if (reverse) {
                probe->reverse = reverse;
                reverse->reverse = probe;
            }
        }
    }
    ck_assert_uint_eq(n_probes, N_PROBES);
}

static void
teardown(void)
{
    for (size_t i = 0; i < topology.n_nodes; i++) {
        node_config_uninit(&configs[i]);
        plan_probes_uninit(&planned[i]);
    }
    plan_topology_uninit(&topology);
}

/* Everything that probes pass. */
static void
find_elements(struct svec *elements)
{
    svec_init(elements);
    for (size_t i = 0; i < n_probes; i++) {
        struct svec words = SVEC_EMPTY_INITIALIZER;

        svec_parse_words(&words, probes[i].elements);
        svec_append(elements, &words);
        svec_destroy(&words);
    }
    svec_sort_unique(elements);
}

/* Does the probe pass it?  Only on its way back, which is the second half? */
static bool
passes(const struct locate_probe *p, const char *element, bool back)
{
    struct svec words = SVEC_EMPTY_INITIALIZER;
    bool found = false;

    svec_parse_words(&words, p->elements);
    for (size_t i = back && strchr(element, '>') ? words.n / 2 : 0; i < words.n; i++) {
        found |= !strcmp(words.names[i], element);
    }
    svec_destroy(&words);
    return found;
}

/* Sets what probes say while these are broken; 'other' may be NULL.  A node that is broken says
 * nothing any more. */
static void
break_elements(const char *element, const char *other)
{
    for (size_t i = 0; i < n_probes; i++) {
        struct locate_probe *p = &probes[i];
        bool fails = passes(p, element, false) || (other && passes(p, other, false));
        bool silent = !strcmp(p->node, element);

        p->result = fails && !silent ? LOCATE_FAILS : LOCATE_WORKS;
        p->since = fails && !silent ? 1000 : 10;
        p->heard = p->kind == PROBE_PEER
                   && (silent || !(passes(p, element, true) || (other && passes(p, other, true))));
    }
}

static void
expect(enum fault_kind kind, const char *name)
{
    struct fault *faults;
    size_t n;

    locate_faults(probes, n_probes, &faults, &n);
    ck_assert_msg(n == 1, "%s: %zu faults", name, n);
    ck_assert_str_eq(faults[0].elements[0].name, name);
    ck_assert_uint_eq(faults[0].n_elements, 1);
    ck_assert_int_eq(faults[0].elements[0].kind, kind);
    ck_assert_int_eq(fault_element_kind(name), kind);
    locate_faults_free(faults, n);
}

/* All 10 nodes and 32 directions. */
START_TEST(one_element)
    {
        struct svec elements;

        find_elements(&elements);
        ck_assert_uint_eq(elements.n, 10 + 32);
        for (size_t i = 0; i < elements.n; i++) {
            break_elements(elements.names[i], NULL);
            expect(strchr(elements.names[i], '>') ? FAULT_DIRECTION : FAULT_NODE,
                   elements.names[i]);
        }
        svec_destroy(&elements);
    }
END_TEST

/* All 16 links. */
START_TEST(one_link)
    {
        unsigned n = 0;

        for (size_t i = 0; i < topology.n_links; i++) {
            const struct plan_link *l = &topology.links[i];

            if (!l->a_node || !l->b_node) {
                continue;
            }
            char *there = xasprintf("%s>%s", l->a, l->b), *back = xasprintf("%s>%s", l->b, l->a);
            bool in_order = strverscmp(there, back) < 0;
            char *name = xasprintf("%s<>%s", in_order ? l->a : l->b, in_order ? l->b : l->a);

            break_elements(there, back);
            expect(FAULT_LINK, name);
            free(there);
            free(back);
            free(name);
            n++;
        }
        ck_assert_uint_eq(n, 16);
    }
END_TEST

Suite *
plan_locate_suite(void)
{
    Suite *s = suite_create("plan_locate");
    TCase *tc = tcase_create("plan_locate");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_element);
    tcase_add_test(tc, one_link);
    suite_add_tcase(s, tc);
    return s;
}
