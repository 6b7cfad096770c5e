/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds of the probes of any topology, for fuzz-plan.c.
 */
#include <config.h>

#include "tests/fuzz/plan-probes.h"

#include <check.h>
#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "ctl/plan/probe.h"
#include "tests/unit/parse-check.h"
#include "util.h"

struct planned {
    struct node_config *configs; /* by index in the topology. */
    struct plan_probes *probes;
};

static void
plan_all(struct plan_topology *t, struct planned *p)
{
    struct plan_graph g;

    *p = (struct planned){xcalloc(t->n_nodes, sizeof *p->configs),
                          xcalloc(t->n_nodes, sizeof *p->probes)};
    for (size_t i = 0; i < t->n_hosts; i++) {
        t->hosts[i].path_policy = PATH_SPREAD;
    }
    plan_graph_init(&g, t);
    for (size_t i = 0; i < t->n_nodes; i++) {
        struct plan_node_paths *found;

        REQUIRE(!plan_node_config(t, &t->nodes[i], &p->configs[i]));
        REQUIRE(!plan_destinations(t, &t->nodes[i], &p->configs[i], &found));
        REQUIRE(!plan_probes(&g, &t->nodes[i], found, NULL, 0, &p->configs[i], &p->probes[i]));
        plan_node_paths_free(t, found);
    }
    plan_graph_uninit(&g);
    plan_probes_pair(t, p->probes);
    for (size_t i = 0; i < t->n_nodes; i++) {
        plan_probes_configure(&p->probes[i], &p->configs[i]);
        plan_probers(t, p->probes, &t->nodes[i], &p->configs[i]);
    }
}

static void
uninit(const struct plan_topology *t, struct planned *p)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        node_config_uninit(&p->configs[i]);
        plan_probes_uninit(&p->probes[i]);
    }
    free(p->configs);
    free(p->probes);
}

/* NULL: none has this number. */
static const struct probe_config *
find(const struct node_config *c, uint16_t number)
{
    for (size_t i = 0; i < c->n_probes; i++) {
        if (c->probes[i].number == number) {
            return &c->probes[i];
        }
    }
    return NULL;
}

static void
check_peer(const struct plan_topology *t, const struct planned *p, size_t node,
           const struct plan_probe *probe)
{
    size_t peer = (size_t) (probe->peer - t->nodes);
    const struct probe_config *c = &probe->config;
    const struct probe_config *other = c->reverse ? find(&p->configs[peer], c->reverse) : NULL;
    struct in6_addr address = node_address(t->nodes[node].id);

    REQUIRE(!node_role_is_foreign(probe->peer->role));
    REQUIRE(c->program.n && c->back.n);
    REQUIRE(!c->reverse || (other && other->reverse == c->number));
    REQUIRE(bsearch(&address, p->configs[peer].probers, p->configs[peer].n_probers, sizeof address,
                    address_compare));
}

static bool
has_foreign(const struct plan_topology *t)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (node_role_is_foreign(t->nodes[i].role)) {
            return true;
        }
    }
    return false;
}

static void
check_node(const struct plan_topology *t, const struct planned *p, size_t node)
{
    const struct node_config *c = &p->configs[node];

    REQUIRE(!c->n_probes || !node_role_is_foreign(c->role));
    for (size_t i = 0; i < c->n_probes; i++) {
        const struct plan_probe *probe = &p->probes[node].probes[i];

        REQUIRE(!i || c->probes[i - 1].number < c->probes[i].number);
        REQUIRE(c->probes[i].port && c->probes[i].program.n && probe->elements[0]);
        REQUIRE(c->probes[i].timeout_usec <= c->probes[i].interval_usec);
        if (probe->peer) {
            check_peer(t, p, node, probe);
        } else {
            REQUIRE(!c->probes[i].back.n && !c->probes[i].reverse);
        }
    }
    for (size_t i = 0; i < c->n_destinations; i++) {
        for (size_t j = 0; j < c->destinations[i].n_paths; j++) {
            const struct path_config *path = &c->destinations[i].paths[j];

            REQUIRE(!path->probe || (path->usable && find(c, path->probe)));
            REQUIRE(path->probe || !path->usable || has_foreign(t));
        }
    }
}

void
check_probes(struct plan_topology *a, struct plan_topology *b)
{
    struct planned p, q;

    plan_all(a, &p);
    plan_all(b, &q);
    for (size_t i = 0; i < a->n_nodes; i++) {
        check_node(a, &p, i);
        REQUIRE(p.configs[i].n_probes == q.configs[i].n_probes);
        for (size_t j = 0; j < p.configs[i].n_probes; j++) {
            const struct probe_config *x = &p.configs[i].probes[j], *y = &q.configs[i].probes[j];

            REQUIRE(x->number == y->number && !strcmp(x->name, y->name) && x->kind == y->kind);
            REQUIRE(!memcmp(&x->program, &y->program, sizeof x->program));
            REQUIRE(x->reverse == y->reverse);
        }
    }
    uninit(a, &p);
    uninit(b, &q);
}
