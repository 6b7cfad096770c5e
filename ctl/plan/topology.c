/* SPDX-License-Identifier: Apache-2.0
 *
 * The topology as plain data, and the shortest ways between nodes.
 */
#include <config.h>

#include "ctl/plan/topology.h"

#include <stdlib.h>

#include "util.h"

static int
compare_nodes(const void *a_, const void *b_)
{
    const struct plan_node *a = a_, *b = b_;

    return a->id < b->id ? -1 : a->id > b->id;
}

static int
compare_hosts(const void *a_, const void *b_)
{
    const struct plan_host *a = a_, *b = b_;

    return strcmp(a->name, b->name);
}

static int
compare_links(const void *a_, const void *b_)
{
    const struct plan_link *a = a_, *b = b_;
    int cmp = strcmp(a->a, b->a);

    return cmp ? cmp : strcmp(a->a_port, b->a_port);
}

static int
compare_path_rules(const void *a_, const void *b_)
{
    const struct plan_path_rule *a = a_, *b = b_;
    int cmp = strcmp(a->from, b->from);

    cmp = cmp ? cmp : strcmp(a->to, b->to);
    cmp = cmp ? cmp : a->kind < b->kind ? -1 : a->kind > b->kind;
    cmp = cmp ? cmp : a->has_qp - b->has_qp;
    cmp = cmp || !a->has_qp ? cmp : a->dest_qp < b->dest_qp ? -1 : a->dest_qp > b->dest_qp;
    return cmp ? cmp : strcmp(a->path, b->path);
}

static void
sort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    if (n) {
        qsort(array, n, size, compare);
    }
}

const struct plan_node *
plan_find_node(const struct plan_topology *t, const char *name)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (!strcmp(t->nodes[i].name, name)) {
            return &t->nodes[i];
        }
    }
    return NULL;
}

static int
compare_host_name(const void *name, const void *host_)
{
    const struct plan_host *host = host_;

    return strcmp(name, host->name);
}

const struct plan_host *
plan_find_host(const struct plan_topology *t, const char *name)
{
    return t->n_hosts ? bsearch(name, t->hosts, t->n_hosts, sizeof *t->hosts, compare_host_name)
                      : NULL;
}

const struct plan_node *
plan_attachment(const struct plan_topology *t, const char *host)
{
    const struct plan_host *h = plan_find_host(t, host);

    return h ? h->node : NULL;
}

bool
plan_link_end(const struct plan_link *link, const char *name, struct plan_end *end)
{
    if (!strcmp(link->a, name)) {
        *end = (struct plan_end){link->a_port,   link->b,       link->b_port, link->kind,
                                 link->external, &link->a_to_b, &link->b_to_a};
    } else if (!strcmp(link->b, name)) {
        *end = (struct plan_end){link->b_port,   link->a,       link->a_port, link->kind,
                                 link->external, &link->b_to_a, &link->a_to_b};
    } else {
        return false;
    }
    return strcmp(link->a, link->b) != 0;
}

/* Is there a link whose ends are these, in this order? */
static bool
any_link_from(const struct plan_topology *t, const char *a, const char *b)
{
    size_t low = 0, high = t->n_links;

    while (low < high) { /* the first link that is a's. */
        size_t middle = low + (high - low) / 2;

        if (strcmp(t->links[middle].a, a) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (size_t i = low; i < t->n_links && !strcmp(t->links[i].a, a); i++) {
        if (!strcmp(t->links[i].b, b)) {
            return true;
        }
    }
    return false;
}

bool
plan_linked(const struct plan_topology *t, const char *a, const char *b)
{
    return strcmp(a, b) && (any_link_from(t, a, b) || any_link_from(t, b, a));
}

/* Fills in the nodes that are links' ends. */
static void
attach_links(struct plan_topology *t)
{
    for (size_t i = 0; i < t->n_links; i++) {
        t->links[i].a_node = plan_find_node(t, t->links[i].a);
        t->links[i].b_node = plan_find_node(t, t->links[i].b);
    }
}

/* Fills in the nodes that hosts hang on. */
static void
attach_hosts(struct plan_topology *t)
{
    for (size_t i = 0; i < t->n_hosts; i++) {
        struct plan_host *host = &t->hosts[i];
        struct plan_end end;

        host->node = NULL;
        for (size_t j = 0; j < t->n_links && !host->node; j++) {
            if (plan_link_end(&t->links[j], host->name, &end)) {
                host->node = plan_find_node(t, end.peer);
            }
        }
    }
}

/*
 * Shortest ways.
 */

/* The ends of a link between nodes, as indexes. */
struct edge {
    size_t a, b;
};

static size_t
node_index(const struct plan_topology *t, const struct plan_node *node)
{
    return (size_t) (node - t->nodes);
}

/* If 'from' is 'distance' hops away from the origin, 'to' is at most one farther.  True: that is new. */
static bool
relax(const struct plan_topology *t, size_t origin, size_t from, size_t to, uint16_t distance)
{
    uint16_t *hops = &t->hops[origin * t->n_nodes], *next = &t->next[origin * t->n_nodes];
    bool is_new = hops[to] == PLAN_NO_WAY;

    if (hops[from] != distance || hops[to] <= distance
        || (distance && plan_is_agent(&t->nodes[from]))) {
        return false;
    }
    hops[to] = distance + 1;
    next[to] = MIN(next[to], from); /* nodes are sorted by id. */
    return is_new;
}

/* Breadth first: the distances of all nodes from 'origin'. */
static void
measure(const struct plan_topology *t, const struct edge *edges, size_t n_edges, size_t origin)
{
    uint16_t *hops = &t->hops[origin * t->n_nodes], *next = &t->next[origin * t->n_nodes];
    bool grew = true;

    for (size_t i = 0; i < t->n_nodes; i++) {
        hops[i] = i == origin ? 0 : PLAN_NO_WAY;
        next[i] = PLAN_NO_WAY;
    }
    for (uint16_t distance = 0; grew; distance++) {
        grew = false;
        for (size_t i = 0; i < n_edges; i++) {
            grew |= relax(t, origin, edges[i].a, edges[i].b, distance);
            grew |= relax(t, origin, edges[i].b, edges[i].a, distance);
        }
    }
}

static void
measure_all(struct plan_topology *t)
{
    struct edge *edges = xcalloc(t->n_links + 1, sizeof *edges);
    size_t n_edges = 0;

    for (size_t i = 0; i < t->n_links; i++) {
        const struct plan_link *link = &t->links[i];

        if (link->a_node && link->b_node) {
            edges[n_edges++] =
                (struct edge){node_index(t, link->a_node), node_index(t, link->b_node)};
        }
    }
    free(t->hops);
    free(t->next);
    t->hops = xcalloc(t->n_nodes * t->n_nodes + 1, sizeof *t->hops);
    t->next = xcalloc(t->n_nodes * t->n_nodes + 1, sizeof *t->next);
    for (size_t i = 0; i < t->n_nodes; i++) {
        measure(t, edges, n_edges, i);
    }
    free(edges);
}

unsigned
plan_hops(const struct plan_topology *t, const struct plan_node *a, const struct plan_node *b)
{
    return t->hops[node_index(t, a) * t->n_nodes + node_index(t, b)];
}

bool
plan_is_next_node(const struct plan_topology *t, const struct plan_node *from,
                  const struct plan_node *via, const struct plan_node *to)
{
    unsigned distance = plan_hops(t, from, to);

    return distance && distance != PLAN_NO_WAY && plan_hops(t, from, via) == 1
           && plan_hops(t, via, to) == distance - 1 && (via == to || !plan_is_agent(via));
}

const struct plan_node *
plan_next_node(const struct plan_topology *t, const struct plan_node *from,
               const struct plan_node *to)
{
    uint16_t next = t->next[node_index(t, to) * t->n_nodes + node_index(t, from)];

    return next == PLAN_NO_WAY ? NULL : &t->nodes[next];
}

const struct plan_node *
plan_agent_switch(const struct plan_topology *t, const struct plan_node *agent)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (!plan_is_agent(&t->nodes[i]) && plan_hops(t, agent, &t->nodes[i]) == 1) {
            return &t->nodes[i];
        }
    }
    return NULL;
}

void
plan_topology_prepare(struct plan_topology *t)
{
    sort(t->nodes, t->n_nodes, sizeof *t->nodes, compare_nodes);
    sort(t->hosts, t->n_hosts, sizeof *t->hosts, compare_hosts);
    sort(t->links, t->n_links, sizeof *t->links, compare_links);
    sort(t->path_rules, t->n_path_rules, sizeof *t->path_rules, compare_path_rules);
    attach_links(t);
    attach_hosts(t);
    measure_all(t);
}

void
plan_topology_uninit(struct plan_topology *t)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        free(t->nodes[i].ports);
        free(t->nodes[i].programs);
    }
    free(t->nodes);
    free(t->hosts);
    free(t->links);
    free(t->hops);
    free(t->next);
    free(t->path_rules);
    free(t->probes.planes);
    memset(t, 0, sizeof *t);
}
