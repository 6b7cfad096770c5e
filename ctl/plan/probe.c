/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, probes: which ways a node probes, and the programs for that.
 *
 * First all candidates are collected, each way once; then those are taken that there is room for, and
 * get their programs, numbers and elements.  A way of which no program can be made is no candidate.
 */
#include <config.h>

#include "ctl/plan/probe.h"

#include <stdlib.h>

#include "ctl/plan/path-impl.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/shash.h"
#include "util.h"

/* The longest packet that a host with the largest path MTU sends, from its IPv6 header on: IPv6, UDP,
 * BTH, RETH, immediate data, payload, ICRC. */
#define INNER_MAX (40 + 8 + 12 + 16 + 4 + 4096 + 4)

/* What a probe is taken for; the lowest are taken first. */
enum { RANK_LOOP, RANK_WANTED, RANK_PATH, RANK_EXCLUDED = RANK_PATH + PATHS_MAX };

struct candidate {
    enum probe_kind kind;
    unsigned int rank;
    char name[PATH_NAME_SIZE];
    struct probe_times times;
    size_t n; /* links to the last node. */
    const struct plan_node *end;
    struct plan_arc *there, *back; /* malloc'd; back[i] is there[i] the other way. */
    uint16_t number;               /* once it is taken. */
    struct plan_probe probe;
};

struct draft {
    const struct plan_graph *g;
    const struct plan_node *node;
    struct node_config *out;
    struct shash by_name; /* candidates, by kind and name. */
};

static const struct plan_node *
head(const struct draft *d, const struct plan_arc *arc)
{
    return &d->g->topology->nodes[arc->head];
}

static void
candidate_free(struct candidate *c)
{
    free(c->there);
    free(c->back);
    free(c->probe.links);
    free(c->probe.elements);
    free(c);
}

/* The arc from one node to another over this link; NULL, or a node that cannot choose: the one that it
 * sends by, which the routes decide. */
static const struct plan_arc *
find_arc(const struct plan_graph *g, size_t tail, size_t head, const struct plan_link *link)
{
    const struct plan_arc *first = NULL;

    for (size_t i = g->first[tail]; i < g->first[tail + 1]; i++) {
        const struct plan_arc *arc = &g->arcs[i];

        if (arc->head == head && arc->link == link) {
            return arc;
        } else if (arc->head == head && !first) {
            first = arc; /* of all that lead there the one with the lowest number. */
        }
    }
    return first;
}

/* With the ports of parallel links, as in a path's name, and with the last node. */
static void
set_name(const struct draft *d, struct candidate *c)
{
    struct ds name = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < c->n; i++) {
        if (i || c->there[i].number) {
            ds_put_cstr(&name, d->g->topology->nodes[c->there[i].tail].name);
        }
        if (c->there[i].number) {
            ds_put_format(&name, ":%s", c->there[i].port);
        }
        if (name.length) {
            ds_put_char(&name, ',');
        }
    }
    ds_put_cstr(&name, c->end->name);
    if (name.length < sizeof c->name) {
        ovs_strlcpy(c->name, ds_cstr(&name), sizeof c->name);
    } else {
        snprintf(c->name, sizeof c->name, "unnamed-%016" PRIx64, plan_hash_text(0, ds_cstr(&name)));
    }
    ds_destroy(&name);
}

/* Programs in the making. */
struct steps {
    size_t n;
    struct usid_step *steps;
    const struct plan_node **nodes;
    bool possible;
};

static struct steps
steps_begin(const struct candidate *c)
{
    size_t n_max = 2 * c->n + 1;

    return (struct steps){0, xcalloc(n_max, sizeof(struct usid_step)),
                          xcalloc(n_max, sizeof(struct plan_node *)), true};
}

static void
add_step(struct steps *s, const struct plan_node *node, uint16_t port)
{
    s->possible = s->possible && port <= SID_PORT_MAX;
    s->nodes[s->n] = node;
    s->steps[s->n++] = plan_step(node, port);
}

/* All on the way there but the last node. */
static void
add_steps_there(const struct draft *d, const struct candidate *c, struct steps *s)
{
    for (size_t i = 0; i + 1 < c->n; i++) {
        add_step(s, head(d, &c->there[i]), c->there[i + 1].number);
    }
}

/* From the way's n-th node back to the prober. */
static void
add_steps_back(const struct draft *d, const struct candidate *c, size_t n, struct steps *s)
{
    while (n-- > 0) {
        add_step(s, head(d, &c->there[n]), c->back[n].number);
    }
    add_step(s, d->node, 0);
}

/* Makes the program that 'sender' may use; false: there is none. */
static bool
steps_end(struct steps *s, const struct plan_node *sender, struct program *program)
{
    const struct plan_node *culprit;
    bool made = s->possible && plan_pack(s->steps, s->nodes, s->n, program, &culprit)
                && plan_may_use(sender, program);

    free(s->steps);
    free(s->nodes);
    return made;
}

static bool
make_programs(const struct draft *d, struct candidate *c)
{
    struct probe_config *config = &c->probe.config;
    struct steps s = steps_begin(c);

    add_steps_there(d, c, &s);
    if (c->kind == PROBE_LOOP) {
        add_steps_back(d, c, c->n, &s);
        return steps_end(&s, d->node, &config->program);
    }
    add_step(&s, c->end, 0);
    if (!steps_end(&s, d->node, &config->program)) {
        return false;
    }
    s = steps_begin(c);
    add_steps_back(d, c, c->n - 1, &s);
    return steps_end(&s, c->end, &config->back);
}

static void
put_link(const struct draft *d, const struct plan_arc *arc, struct ds *s)
{
    const struct plan_node *nodes = d->g->topology->nodes;

    ds_put_format(s, "%s%s", s->length ? " " : "", nodes[arc->tail].name);
    /* A wanted way does not say by which link it goes, but the routes do. */
    if (find_arc(d->g, arc->tail, arc->head, arc->link)->number) {
        ds_put_format(s, ":%s", arc->port);
    }
    ds_put_format(s, ">%s", nodes[arc->head].name);
}

static char *
make_elements(const struct draft *d, const struct candidate *c)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < c->n; i++) {
        put_link(d, &c->there[i], &s);
        ds_put_format(&s, " %s", head(d, &c->there[i])->name);
    }
    for (size_t i = c->n; i-- > 0;) {
        const struct plan_arc *back = &c->back[i];

        /* The peer's own routes decide by which link an answer leaves. */
        put_link(d,
                 c->kind == PROBE_PEER && i + 1 == c->n
                     ? find_arc(d->g, back->tail, back->head, NULL)
                     : back,
                 &s);
        if (i) {
            ds_put_format(&s, " %s", head(d, back)->name);
        }
    }
    return ds_steal_cstr(&s);
}

static uint16_t
find_port(const struct node_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_ports; i++) {
        if (!strcmp(config->ports[i].name, name)) {
            return config->ports[i].number;
        }
    }
    return 0;
}

/* An Open vSwitch takes it that a UDP checksum is that of the destination which it replaces, but that of a
 * program is that of its end. */
static bool
passes_ovs(const struct plan_node *const nodes[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (nodes[i]->role == NODE_OVS) {
            return true;
        }
    }
    return false;
}

/* Fills in all but what depends on other probes. */
static void
set_config(const struct draft *d, struct candidate *c)
{
    struct probe_config *config = &c->probe.config;
    const struct plan_node **nodes = xcalloc(c->n, sizeof *nodes);
    uint32_t room = MIN(d->g->topology->fabric_mtu, PROBE_LARGE_MAX);

    for (size_t i = 0; i < c->n; i++) {
        nodes[i] = head(d, &c->there[i]);
    }
    plan_set_plane(config->plane, nodes, c->n);
    c->times = probe_settings_of(&d->g->topology->probes, config->plane);
    config->kind = c->kind;
    config->port = find_port(d->out, c->there[0].port);
    ovs_strlcpy(config->name, c->name, sizeof config->name);
    config->no_checksum = passes_ovs(nodes, c->n);
    free(nodes);
    config->interval_usec = c->times.interval * 1000;
    config->timeout_usec = c->times.timeout * 1000;
    config->large = MIN(room, (uint32_t) program_encap_len(&config->program) + INNER_MAX);
    if (c->kind == PROBE_PEER) {
        c->probe.peer = c->end;
        config->peer = node_address(c->end->id);
    }
}

static struct candidate *
find_candidate(const struct draft *d, enum probe_kind kind, const char *name)
{
    char *key = xasprintf("%s %s", probe_kind_name(kind), name);
    struct candidate *c = shash_find_data(&d->by_name, key);

    free(key);
    return c;
}

/* Adds the probe over the first 'n' links, or finds the one that is there.  NULL: there is no program for
 * it, or it is turned off. */
static struct candidate *
add_candidate(struct draft *d, enum probe_kind kind, unsigned int rank, const struct plan_arc *arcs,
              size_t n)
{
    struct candidate *c = xzalloc(sizeof *c), *same;

    c->kind = kind;
    c->rank = rank;
    c->n = n;
    c->there = xmemdup(arcs, n * sizeof *arcs);
    c->back = xcalloc(n, sizeof *c->back);
    c->end = head(d, &arcs[n - 1]);
    set_name(d, c);
    same = find_candidate(d, kind, c->name);
    if (same) {
        same->rank = MIN(same->rank, rank);
        candidate_free(c);
        return same;
    }
    for (size_t i = 0; i < n; i++) {
        c->back[i] = *find_arc(d->g, arcs[i].head, arcs[i].tail, arcs[i].link);
    }
    bool possible = make_programs(d, c);
    set_config(d, c);
    if (!possible || !c->times.interval || !c->probe.config.port) {
        candidate_free(c);
        return NULL;
    }
    char *key = xasprintf("%s %s", probe_kind_name(kind), c->name);
    shash_add_once(&d->by_name, key, c);
    free(key);
    return c;
}

/* The peer's probe on a way; if there can be none, a loop. */
static struct candidate *
add_way(struct draft *d, unsigned int rank, const struct plan_arc *arcs, size_t n)
{
    bool is_foreign = node_role_is_foreign(head(d, &arcs[n - 1])->role);
    struct candidate *c = is_foreign ? NULL : add_candidate(d, PROBE_PEER, rank, arcs, n);

    return c ? c : add_candidate(d, PROBE_LOOP, rank, arcs, n);
}

/* Those of a path. */
static struct candidate *
add_path(struct draft *d, const struct plan_path *path, unsigned int rank)
{
    size_t n_near = plan_is_agent(d->node) ? 2 : 1;

    for (size_t i = 1; i <= MIN(n_near, path->n_nodes); i++) {
        add_candidate(d, PROBE_LOOP, RANK_LOOP, path->arcs, i);
    }
    return add_way(d, rank, path->arcs, path->n_arcs);
}

static const struct plan_path *
find_planned(const struct plan_node_paths *planned, const char *name)
{
    for (size_t i = 0; i < planned->n; i++) {
        if (!strcmp(planned->paths[i].name, name)) {
            return &planned->paths[i];
        }
    }
    return NULL;
}

/* Calls add_path() for all paths that have a program of the planner's own, and notes in 'probes', by
 * destination and path, what says how good they are. */
static void
add_paths(struct draft *d, const struct plan_node_paths *found,
          struct candidate *(*probes)[PATHS_MAX])
{
    for (size_t i = 0; i < d->out->n_destinations; i++) {
        const struct destination_config *dest = &d->out->destinations[i];
        const struct plan_node *to = plan_attachment(d->g->topology, dest->name);
        const struct plan_node_paths *planned = &found[to - d->g->topology->nodes];

        for (size_t j = 0; j < dest->n_paths; j++) {
            const struct plan_path *path = find_planned(planned, dest->paths[j].name);
            unsigned int rank = (dest->paths[j].usable ? RANK_PATH : RANK_EXCLUDED) + (unsigned) j;

            if (path && !path->problem) {
                probes[i][j] = add_path(d, path, rank);
            }
        }
    }
}

/* The links of a wanted way, malloc'd; of parallel ones those by which the routes lead.  NULL: its nodes
 * are not linked. */
static struct plan_arc *
find_arcs(const struct draft *d, const struct plan_peer_way *way)
{
    const struct plan_topology *t = d->g->topology;
    struct plan_arc *arcs = xcalloc(way->n_nodes + 1, sizeof *arcs);
    const struct plan_node *at = d->node;

    for (size_t i = 0; i < way->n_nodes; at = way->nodes[i++]) {
        const struct plan_arc *arc =
            find_arc(d->g, (size_t) (at - t->nodes), (size_t) (way->nodes[i] - t->nodes), NULL);

        if (!arc) {
            free(arcs);
            return NULL;
        }
        arcs[i] = *arc;
        arcs[i].number = 0;
    }
    return arcs;
}

static void
add_wanted(struct draft *d, const struct plan_peer_way *way)
{
    struct plan_arc *arcs = way->n_nodes ? find_arcs(d, way) : NULL;

    if (arcs) {
        add_way(d, RANK_WANTED, arcs, way->n_nodes);
        free(arcs);
    }
}

static int
compare_ranks(const void *a_, const void *b_)
{
    const struct candidate *const *a = a_, *const *b = b_;
    int cmp = (*a)->rank < (*b)->rank ? -1 : (*a)->rank > (*b)->rank;

    cmp = cmp ? cmp : (int) (*a)->kind - (int) (*b)->kind;
    return cmp ? cmp : strcmp((*a)->name, (*b)->name);
}

static int
compare_names(const void *a_, const void *b_)
{
    const struct candidate *const *a = a_, *const *b = b_;
    int cmp = (int) (*a)->kind - (int) (*b)->kind;

    return cmp ? cmp : strcmp((*a)->name, (*b)->name);
}

static int
compare_numbers(const void *a_, const void *b_)
{
    const struct plan_probe *a = a_, *b = b_;

    return a->config.number < b->config.number ? -1 : a->config.number > b->config.number;
}

/* Moves what a candidate has of the probe. */
static void
take(const struct draft *d, struct candidate *c, struct plan_probe *out)
{
    *out = c->probe;
    out->config.number = c->number;
    out->n_links = c->n;
    out->links = xcalloc(c->n, sizeof *out->links);
    for (size_t i = 0; i < c->n; i++) {
        out->links[i] = c->there[i].link;
    }
    out->elements = make_elements(d, c);
}

/* Takes as many as there is room for.  Returns how many are left out. */
static size_t
take_all(const struct draft *d, struct plan_probes *out)
{
    size_t n_all = shash_count(&d->by_name), n = 0;
    struct candidate **all = xcalloc(n_all + 1, sizeof *all);
    bool *is_taken = xcalloc(PROBE_NUMBER_MAX + 1, sizeof *is_taken);
    struct shash_node *node;

    SHASH_FOR_EACH (node, &d->by_name) {
        all[n++] = node->data;
    }
    qsort(all, n, sizeof *all, compare_ranks);
    n = MIN(n, PROBES_MAX);
    qsort(all, n, sizeof *all, compare_names);
    out->probes = xcalloc(n + 1, sizeof *out->probes);
    for (size_t i = 0; i < n; i++) {
        uint64_t hash =
            plan_hash_text(plan_hash_text(0, probe_kind_name(all[i]->kind)), all[i]->name);
        uint16_t number = (uint16_t) (hash % PROBE_NUMBER_MAX + 1);

        while (is_taken[number]) {
            number = number % PROBE_NUMBER_MAX + 1;
        }
        is_taken[number] = true;
        all[i]->number = number;
        take(d, all[i], &out->probes[out->n++]);
    }
    qsort(out->probes, out->n, sizeof *out->probes, compare_numbers);
    free(is_taken);
    free(all);
    return n_all - n;
}

char *
plan_probes(const struct plan_graph *g, const struct plan_node *node,
            const struct plan_node_paths *found, const struct plan_peer_way *wanted,
            size_t n_wanted, struct node_config *out, struct plan_probes *probes)
{
    struct draft d = {.g = g, .node = node, .out = out, .by_name = SHASH_INITIALIZER(&d.by_name)};
    struct candidate *(*of_paths)[PATHS_MAX] = xcalloc(out->n_destinations + 1, sizeof *of_paths);
    struct shash_node *c;

    *probes = (struct plan_probes){.n = 0};
    if (!node_role_is_foreign(node->role)) {
        add_paths(&d, found, of_paths);
        for (size_t i = 0; i < n_wanted; i++) {
            add_wanted(&d, &wanted[i]);
        }
    }
    size_t n_left_out = take_all(&d, probes);
    for (size_t i = 0; i < out->n_destinations; i++) {
        for (size_t j = 0; j < out->destinations[i].n_paths; j++) {
            out->destinations[i].paths[j].probe = of_paths[i][j] ? of_paths[i][j]->number : 0;
        }
    }
    SHASH_FOR_EACH (c, &d.by_name) {
        struct candidate *candidate = c->data;

        candidate->probe =
            (struct plan_probe){.n_links = 0}; /* it was moved, or there is nothing. */
        candidate_free(candidate);
    }
    shash_destroy(&d.by_name);
    free(of_paths);
    return n_left_out
               ? xasprintf("node %s: %" PRIuSIZE " of its paths' probes are left out, a node "
                           "may have %d",
                           node->name, n_left_out, PROBES_MAX)
               : NULL;
}

void
plan_probes_uninit(struct plan_probes *probes)
{
    for (size_t i = 0; i < probes->n; i++) {
        free(probes->probes[i].links);
        free(probes->probes[i].elements);
    }
    free(probes->probes);
    *probes = (struct plan_probes){.n = 0};
}

uint16_t
plan_probe_number(const struct plan_probes *probes, const struct plan_peer_way *way)
{
    struct ds name = DS_EMPTY_INITIALIZER;
    uint16_t number = 0;

    for (size_t i = 0; i < way->n_nodes; i++) {
        ds_put_format(&name, "%s%s", i ? "," : "", way->nodes[i]->name);
    }
    for (size_t i = 0; i < probes->n; i++) {
        const struct probe_config *p = &probes->probes[i].config;

        /* A loop stands in for a peer probe that there cannot be. */
        if (!strcmp(p->name, ds_cstr_ro(&name)) && (p->kind == PROBE_PEER || !number)) {
            number = p->number;
        }
    }
    ds_destroy(&name);
    return number;
}

void
plan_probes_configure(const struct plan_probes *probes, struct node_config *out)
{
    out->probes = xcalloc(probes->n + 1, sizeof *out->probes);
    for (size_t i = 0; i < probes->n; i++) {
        out->probes[out->n_probes++] = probes->probes[i].config;
    }
}
