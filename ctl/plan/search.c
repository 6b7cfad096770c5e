/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, search: all shortest ways between two nodes, and the most disjoint ones.
 *
 * No way goes through a source agent.  A foreign node cannot tell parallel links apart (it knows
 * its neighbours by uN only), so of those it has the first.
 *
 * Disjoint ways are a flow of least cost.  Each node in between is split in two, with one arc of
 * capacity 1 from where ways come in to where they go out; each link is an arc of capacity 1 and
 * cost 1.  One way after the other is added along the cheapest augmenting path, which may take
 * links away from ways that are there.  So after k steps the flow is the cheapest of k ways, and
 * the last step gives the most.  (Suurballe 1974; any book about flows in networks.)
 *
 * Shortest ways are found depth first by the distances that the topology has, so each step leads on.
 * There may be very many of them: the search ends after CANDIDATES_MAX, the first ones by the nodes'
 * ids.  The work for two nodes is bounded by that, and by (disjoint ways) x nodes x links.
 */
#include <config.h>

#include "ctl/plan/search.h"

#include <stdlib.h>

#include "ctl/plan/plan.h"
#include "util.h"

#define CANDIDATES_MAX 1024

/*
 * The graph.
 */

static int
compare_arcs(const void *a_, const void *b_)
{
    const struct plan_arc *a = a_, *b = b_;

    if (a->tail != b->tail) {
        return a->tail < b->tail ? -1 : 1;
    } else if (a->head != b->head) {
        return a->head < b->head ? -1 : 1;
    }
    return a->number != b->number ? a->number - b->number : strcmp(a->port, b->port);
}

static bool
is_parallel(const struct plan_arc *a, const struct plan_arc *b)
{
    return a->tail == b->tail && a->head == b->head;
}

static void
add_arcs(struct plan_graph *g, const struct plan_link *link)
{
    const struct plan_topology *t = g->topology;

    if (link->a_node && link->b_node && link->a_node != link->b_node) {
        size_t tail = (size_t) (link->a_node - t->nodes);
        size_t head = (size_t) (link->b_node - t->nodes);

        g->arcs[g->n_arcs++] = (struct plan_arc){tail, head, link, link->a_port, 0};
        g->arcs[g->n_arcs++] = (struct plan_arc){head, tail, link, link->b_port, 0};
    }
}

/* Gives parallel arcs of one node their ports' numbers. */
static void
number_arcs(struct plan_graph *g, size_t tail)
{
    struct plan_arc *arcs = &g->arcs[g->first[tail]];
    size_t n = g->first[tail + 1] - g->first[tail];
    struct node_config config = {.n_ports = 0};

    for (size_t i = 0; i < n; i++) {
        if ((i && is_parallel(&arcs[i - 1], &arcs[i]))
            || (i + 1 < n && is_parallel(&arcs[i], &arcs[i + 1]))) {
            if (!config.ports) {
                free(plan_ports(g->topology, &g->topology->nodes[tail], &config));
            }
            for (size_t j = 0; j < config.n_ports; j++) {
                if (!strcmp(config.ports[j].name, arcs[i].port)) {
                    arcs[i].number = config.ports[j].number;
                }
            }
        }
    }
    node_config_uninit(&config);
}

/* Leaves a foreign node the first of parallel arcs. */
static void
drop_arcs(struct plan_graph *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_arcs; i++) {
        struct plan_arc *arc = &g->arcs[i];
        bool is_foreign = node_role_is_foreign(g->topology->nodes[arc->tail].role);

        if (is_foreign && n && is_parallel(&g->arcs[n - 1], arc)) {
            continue;
        }
        if (is_foreign) {
            arc->number = 0;
        }
        g->arcs[n++] = *arc;
    }
    g->n_arcs = n;
}

static void
index_arcs(struct plan_graph *g)
{
    size_t n = 0;

    for (size_t node = 0; node <= g->topology->n_nodes; node++) {
        while (n < g->n_arcs && g->arcs[n].tail < node) {
            n++;
        }
        g->first[node] = n;
    }
}

void
plan_graph_init(struct plan_graph *g, const struct plan_topology *t)
{
    *g = (struct plan_graph){
        .topology = t,
        .arcs = xcalloc(2 * t->n_links + 1, sizeof *g->arcs),
        .first = xcalloc(t->n_nodes + 1, sizeof *g->first),
    };
    for (size_t i = 0; i < t->n_links; i++) {
        add_arcs(g, &t->links[i]);
    }
    qsort(g->arcs, g->n_arcs, sizeof *g->arcs, compare_arcs);
    index_arcs(g);
    for (size_t i = 0; i < t->n_nodes; i++) {
        number_arcs(g, i);
    }
    qsort(g->arcs, g->n_arcs, sizeof *g->arcs, compare_arcs);
    drop_arcs(g);
    index_arcs(g);
}

void
plan_graph_uninit(struct plan_graph *g)
{
    free(g->arcs);
    free(g->first);
}

/*
 * A search.
 */

struct search {
    const struct plan_graph *g;
    size_t from, to;
    bool any_last_link;
};

/* May a way go by this arc? */
static bool
may_use(const struct search *s, const struct plan_arc *arc)
{
    const struct plan_node *head = &s->g->topology->nodes[arc->head];

    if (arc->head != s->to) {
        return arc->head != s->from && !plan_is_agent(head);
    }
    return s->any_last_link || !plan_is_agent(head) || arc == s->g->arcs
           || !is_parallel(arc - 1, arc);
}

static int
compare_ways(const struct plan_way *a, const struct plan_way *b)
{
    if (a->n != b->n) {
        return a->n < b->n ? -1 : 1;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->arcs[i] != b->arcs[i]) {
            return a->arcs[i] < b->arcs[i] ? -1 : 1; /* arcs are sorted. */
        }
    }
    return 0;
}

static int
compare_ways_void(const void *a, const void *b)
{
    return compare_ways(a, b);
}

void
plan_ways_uninit(struct plan_way *ways, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(ways[i].arcs);
    }
}

/*
 * Disjoint ways.
 */

#define NONE      SIZE_MAX

/* A node is two vertices: where ways come in, and where they go out. */
#define IN(NODE)  (2 * (NODE))
#define OUT(NODE) (2 * (NODE) + 1)

struct flow {
    const struct search *s;
    size_t n_vertices;
    bool *has;        /* of each arc: a way goes by it. */
    size_t *entering; /* of each node in between: the arc by which a way comes in, or NONE. */
    /* Of each vertex, in the search for an augmenting path: */
    int *cost;
    size_t *before;  /* the vertex before it. */
    size_t *by;      /* the arc from there, or the one that is taken away; NONE: inside a node. */
    bool *is_queued; /* it is in 'queue', a ring. */
    size_t *queue, queue_head, n_queued;
};

static void
flow_init(struct flow *f, const struct search *s)
{
    size_t n_nodes = s->g->topology->n_nodes, n = 2 * n_nodes;

    *f = (struct flow){
        .s = s,
        .n_vertices = n,
        .has = xcalloc(s->g->n_arcs + 1, sizeof *f->has),
        .entering = xcalloc(n_nodes, sizeof *f->entering),
        .cost = xcalloc(n, sizeof *f->cost),
        .before = xcalloc(n, sizeof *f->before),
        .by = xcalloc(n, sizeof *f->by),
        .is_queued = xcalloc(n, sizeof *f->is_queued),
        .queue = xcalloc(n, sizeof *f->queue),
    };
    for (size_t i = 0; i < n_nodes; i++) {
        f->entering[i] = NONE;
    }
}

static void
flow_uninit(struct flow *f)
{
    free(f->has);
    free(f->entering);
    free(f->cost);
    free(f->before);
    free(f->by);
    free(f->is_queued);
    free(f->queue);
}

/* 'vertex' may be reached from 'before'.  If that is cheaper, all behind it is looked at again. */
static void
reach(struct flow *f, size_t vertex, size_t before, size_t by, int cost)
{
    if (f->cost[vertex] <= cost) {
        return;
    }
    f->cost[vertex] = cost;
    f->before[vertex] = before;
    f->by[vertex] = by;
    if (!f->is_queued[vertex]) {
        ovs_assert(vertex < f->n_vertices);
        f->is_queued[vertex] = true;
        f->queue[(f->queue_head + f->n_queued++) % f->n_vertices] = vertex;
    }
}

/* Where a node's ways come in.  If one does, all that can be done there is to take its arc away. */
static void
reach_from_in(struct flow *f, size_t node)
{
    size_t entering = f->entering[node];
    int cost = f->cost[IN(node)];

    if (entering == NONE) {
        reach(f, OUT(node), IN(node), NONE, cost);
    } else {
        reach(f, OUT(f->s->g->arcs[entering].tail), IN(node), entering, cost - 1);
    }
}

static void
reach_from_out(struct flow *f, size_t node)
{
    const struct plan_graph *g = f->s->g;
    int cost = f->cost[OUT(node)];

    for (size_t i = g->first[node]; i < g->first[node + 1]; i++) {
        if (!f->has[i] && may_use(f->s, &g->arcs[i])) {
            reach(f, IN(g->arcs[i].head), OUT(node), i, cost + 1);
        }
    }
    if (f->entering[node] != NONE) {
        reach(f, IN(node), OUT(node), NONE, cost);
    }
}

/* Finds the cheapest augmenting path (Bellman and Ford, with a queue).  False: there is none. */
static bool
find_augmenting(struct flow *f)
{
    size_t from = OUT(f->s->from), to = IN(f->s->to);

    for (size_t i = 0; i < f->n_vertices; i++) {
        f->cost[i] = INT_MAX;
    }
    reach(f, from, NONE, NONE, 0);
    while (f->n_queued) {
        size_t vertex = f->queue[f->queue_head];

        f->queue_head = (f->queue_head + 1) % f->n_vertices;
        f->n_queued--;
        f->is_queued[vertex] = false;
        if (vertex == to) {
            continue;
        } else if (vertex == OUT(vertex / 2)) {
            reach_from_out(f, vertex / 2);
        } else {
            reach_from_in(f, vertex / 2);
        }
    }
    return f->cost[to] != INT_MAX;
}

static void
augment(struct flow *f)
{
    const struct plan_graph *g = f->s->g;

    for (size_t v = IN(f->s->to); v != OUT(f->s->from); v = f->before[v]) {
        if (f->by[v] != NONE) {
            f->has[f->by[v]] = !f->has[f->by[v]];
        }
    }
    for (size_t i = 0; i < g->topology->n_nodes; i++) {
        f->entering[i] = NONE;
    }
    for (size_t i = 0; i < g->n_arcs; i++) {
        if (f->has[i] && g->arcs[i].head != f->s->to) {
            f->entering[g->arcs[i].head] = i;
        }
    }
}

/* The way that begins with this arc. */
static struct plan_way
follow(const struct flow *f, const struct plan_arc *arc)
{
    const struct plan_graph *g = f->s->g;
    struct plan_way way = {
        .arcs = xcalloc(g->topology->n_nodes, sizeof(struct plan_arc *)),
        .disjoint = true,
    };

    for (;;) {
        way.arcs[way.n++] = arc;
        if (arc->head == f->s->to) {
            return way;
        }
        size_t next = g->first[arc->head];
        while (!f->has[next]) {
            next++;
        }
        arc = &g->arcs[next];
    }
}

/* Fills in the most disjoint ways that there are, the shortest first, and returns how many. */
static size_t
find_disjoint(const struct search *s, struct plan_way ways[PATHS_MAX])
{
    const struct plan_graph *g = s->g;
    struct flow f;
    size_t n = 0;

    flow_init(&f, s);
    while (n < PATHS_MAX && find_augmenting(&f)) {
        augment(&f);
        n++;
    }
    n = 0;
    for (size_t i = g->first[s->from]; i < g->first[s->from + 1]; i++) {
        if (f.has[i]) {
            ways[n++] = follow(&f, &g->arcs[i]);
        }
    }
    flow_uninit(&f);
    qsort(ways, n, sizeof *ways, compare_ways_void);
    return n;
}

/*
 * Shortest ways.
 */

struct candidates {
    size_t n;
    struct plan_way ways[CANDIDATES_MAX];
};

/* Adds all shortest ways that go on from 'node', to which 'so_far' leads. */
static void
find_shortest(const struct search *s, size_t node, struct plan_way *so_far, struct candidates *out)
{
    const struct plan_topology *t = s->g->topology;
    unsigned left = plan_hops(t, &t->nodes[node], &t->nodes[s->to]);

    if (node == s->to) {
        out->ways[out->n++] = (struct plan_way){
            .n = so_far->n, .arcs = xmemdup(so_far->arcs, so_far->n * sizeof *so_far->arcs)};
        return;
    }
    for (size_t i = s->g->first[node]; i < s->g->first[node + 1]; i++) {
        const struct plan_arc *arc = &s->g->arcs[i];

        if (out->n < CANDIDATES_MAX && may_use(s, arc)
            && plan_hops(t, &t->nodes[arc->head], &t->nodes[s->to]) == left - 1) {
            so_far->arcs[so_far->n++] = arc;
            find_shortest(s, arc->head, so_far, out);
            so_far->n--;
        }
    }
}

static bool
is_among(const struct plan_way *way, const struct plan_way *ways, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!compare_ways(way, &ways[i])) {
            return true;
        }
    }
    return false;
}

/*
 * Ranks.
 */

/* How many ways go over each node, but the ends, and each link. */
struct uses {
    size_t *nodes, *links;
};

static void
use(const struct search *s, struct uses *u, const struct plan_way *way)
{
    for (size_t i = 0; i < way->n; i++) {
        u->links[way->arcs[i]->link - s->g->topology->links]++;
        u->nodes[way->arcs[i]->head] += way->arcs[i]->head != s->to;
    }
}

/* How much the way has in common with others: a node or link counts once for each of them. */
static size_t
in_common(const struct search *s, const struct uses *u, const struct plan_way *way)
{
    size_t n = 0;

    for (size_t i = 0; i < way->n; i++) {
        n += u->links[way->arcs[i]->link - s->g->topology->links] + u->nodes[way->arcs[i]->head];
    }
    return n;
}

/* Moves candidates to the n ways that are there, the one with the least in common with all of them
 * first.  Returns how many they are then. */
static size_t
rank(const struct search *s, struct candidates *c, struct plan_way ways[PATHS_MAX], size_t n)
{
    struct uses u = {
        .nodes = xcalloc(s->g->topology->n_nodes, sizeof *u.nodes),
        .links = xcalloc(s->g->topology->n_links + 1, sizeof *u.links),
    };

    for (size_t i = 0; i < n; i++) {
        use(s, &u, &ways[i]);
    }
    for (; n < PATHS_MAX && c->n; n++) {
        size_t best = 0, least = SIZE_MAX;

        for (size_t i = 0; i < c->n; i++) {
            size_t common = in_common(s, &u, &c->ways[i]);

            if (common < least) {
                best = i;
                least = common;
            }
        }
        ways[n] = c->ways[best];
        use(s, &u, &ways[n]);
        memmove(&c->ways[best], &c->ways[best + 1], (--c->n - best) * sizeof *c->ways);
    }
    free(u.nodes);
    free(u.links);
    return n;
}

/* Takes out the candidates that are among the n ways. */
static void
remove_known(struct candidates *c, const struct plan_way *ways, size_t n)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (is_among(&c->ways[i], ways, n)) {
            free(c->ways[i].arcs);
        } else {
            c->ways[n_kept++] = c->ways[i];
        }
    }
    c->n = n_kept;
}

size_t
plan_find_ways(const struct plan_graph *g, size_t from, size_t to, bool any_last_link,
               struct plan_way ways[PATHS_MAX])
{
    const struct plan_topology *t = g->topology;
    struct search s = {g, from, to, any_last_link};
    struct plan_way so_far = {.n = 0};
    struct candidates *candidates;
    size_t n;

    ovs_assert(from != to);
    if (plan_hops(t, &t->nodes[from], &t->nodes[to]) == PLAN_NO_WAY) {
        return 0;
    }
    n = find_disjoint(&s, ways);
    candidates = xzalloc(sizeof *candidates);
    so_far.arcs = xcalloc(t->n_nodes, sizeof *so_far.arcs);
    find_shortest(&s, from, &so_far, candidates);
    free(so_far.arcs);
    remove_known(candidates, ways, n);
    n = rank(&s, candidates, ways, n);
    plan_ways_uninit(candidates->ways, candidates->n);
    free(candidates);
    return n;
}
