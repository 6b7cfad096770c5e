/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, paths: names and programs of the ways between two hosts.
 */
#include <config.h>

#include "ctl/plan/path.h"

#include <stdlib.h>

#include "ctl/plan/path-impl.h"
#include "lib/hash-index.h"
#include "lib/usid.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

/* A path in the making. */
struct draft {
    const struct plan_topology *t;
    const struct plan_way *way;
    const struct plan_node *from, *to; /* where the hosts are. */
    enum path_form form;
    struct plan_path *path;
};

/* The node that the way's i-th link leads to. */
static const struct plan_node *
head(const struct draft *d, size_t i)
{
    return &d->t->nodes[d->way->arcs[i]->head];
}

uint64_t
plan_hash_text(uint64_t hash, const char *text)
{
    while (*text) {
        hash = hash_number(hash, (uint8_t) *text++);
    }
    return hash_number(hash, 0);
}

static const struct plan_node *
last_node(const struct draft *d)
{
    return d->path->n_nodes ? d->path->nodes[d->path->n_nodes - 1] : NULL;
}

static enum path_form
choose_form(const struct draft *d)
{
    if (d->t->path_form != PATH_FORM_AUTO) {
        return d->t->path_form;
    } else if (plan_is_agent(d->to)) {
        return PATH_FORM_AGENT;
    }
    return last_node(d)->role == NODE_ROUTER ? PATH_FORM_DT6 : PATH_FORM_USD;
}

/* Must the path say which of several links it takes as its i-th?  Who takes the header off in front
 * of an agent knows the agent only. */
static bool
names_port(const struct draft *d, size_t i)
{
    bool is_last = i + 1 == d->way->n;

    return d->way->arcs[i]->number
           && !(is_last && plan_is_agent(d->to) && d->form != PATH_FORM_AGENT);
}

/* Would one of its ports' names look like two nodes'? */
static bool
has_comma(const struct draft *d)
{
    for (size_t i = 0; i < d->way->n; i++) {
        if (names_port(d, i) && strchr(d->way->arcs[i]->port, ',')) {
            return true;
        }
    }
    return false;
}

static void
set_name(struct draft *d)
{
    struct plan_path *path = d->path;
    struct ds name = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i <= path->n_nodes; i++) {
        bool has_port = i < d->way->n && names_port(d, i); /* of the link behind the node. */

        if (i || has_port) {
            ds_put_format(&name, "%s%s", name.length ? "," : "",
                          i ? path->nodes[i - 1]->name : d->from->name);
        }
        if (has_port) {
            ds_put_format(&name, ":%s", d->way->arcs[i]->port);
        }
    }
    ovs_strlcpy(path->name, name.length ? ds_cstr(&name) : PLAN_PATH_DIRECT, sizeof path->name);
    if (name.length >= sizeof path->name) {
        path->problem = xasprintf("its name is longer than %d characters", PATH_NAME_SIZE - 1);
    } else if (has_comma(d)) {
        path->problem = xstrdup("a port on it has a comma in its name");
    }
    if (path->problem) { /* Paths are known by their names, so each has one that is valid. */
        snprintf(path->name, sizeof path->name, "unnamed-%016" PRIx64,
                 plan_hash_text(0, ds_cstr(&name)));
    }
    ds_destroy(&name);
}

void
plan_set_plane(char plane[NAME_SIZE], const struct plan_node *const nodes[], size_t n)
{
    plane[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const char *label = nodes[i]->plane;

        if (label[0] && plane[0] && strcmp(label, plane)) {
            plane[0] = '\0';
            return;
        } else if (label[0]) {
            ovs_strlcpy(plane, label, NAME_SIZE);
        }
    }
}

/* Can the path end as it is to? */
static char *
check_end(const struct draft *d)
{
    const struct plan_node *last = last_node(d);

    if (d->form == PATH_FORM_AGENT) {
        return plan_is_agent(d->to)
                   ? NULL
                   : xasprintf("%s is no source agent: it cannot end a path", d->to->name);
    } else if (!last) {
        return xasprintf("no switch is between %s and %s: none can end a path", d->from->name,
                         d->to->name);
    } else if (last->role == NODE_OVS) {
        return xasprintf("%s is an ovs: it cannot end a path", last->name);
    }
    return NULL;
}

static struct usid_step
make_step(const struct plan_node *node, enum sid_behaviour behaviour, uint16_t port)
{
    const struct sid_behaviour_row *row = sid_behaviour(behaviour);

    return (struct usid_step){node_sid(node->id, (uint16_t) (row->function + port)), SID_BLOCK_PLEN,
                              row->plen};
}

struct usid_step
plan_step(const struct plan_node *node, uint16_t port)
{
    return make_step(node, port ? SID_UA : SID_UN, port);
}

/* The step that brings a packet from the path's i-th node on. */
static struct usid_step
step_of(const struct draft *d, size_t i)
{
    const struct plan_node *node = d->path->nodes[i];
    bool has_port = i + 1 < d->way->n && names_port(d, i + 1);

    if (!has_port && d->form == PATH_FORM_DT6 && node == last_node(d)) {
        return make_step(node, SID_END_DT6, 0);
    }
    return plan_step(node, has_port ? d->way->arcs[i + 1]->number : 0);
}

/* Have all ports that it names a function? */
static char *
check_ports(const struct draft *d)
{
    for (size_t i = 1; i < d->way->n; i++) {
        if (names_port(d, i) && d->way->arcs[i]->number > SID_PORT_MAX) {
            return xasprintf("port %s of %s has number %u, and ports above %d have no uA",
                             d->way->arcs[i]->port, head(d, i - 1)->name, d->way->arcs[i]->number,
                             SID_PORT_MAX);
        }
    }
    return NULL;
}

bool
plan_pack(const struct usid_step *steps, const struct plan_node *const nodes[], size_t n,
          struct program *program, const struct plan_node **culprit)
{
    *culprit = NULL;
    program->n = (uint8_t) usid_pack(steps, n, program->containers, PROGRAM_MAX);
    for (size_t i = 1; i < n && program->n; i++) {
        struct in6_addr containers[PROGRAM_MAX];

        if (nodes[i - 1]->role != NODE_SWITCH
            && usid_pack(steps, i + 1, containers, PROGRAM_MAX)
                   > usid_pack(steps, i, containers, PROGRAM_MAX)) {
            *culprit = nodes[i - 1];
            program->n = 0;
        }
    }
    return program->n != 0;
}

static bool
has_prefix(const struct in6_addr *addr, const struct prefix *prefix)
{
    for (size_t i = 0; i < prefix->plen; i++) {
        if ((addr->s6_addr[i / 8] ^ prefix->address.s6_addr[i / 8]) & 0x80 >> i % 8) {
            return false;
        }
    }
    return true;
}

bool
plan_may_use(const struct plan_node *agent, const struct program *program)
{
    for (size_t i = 0; i < agent->n_programs; i++) {
        if (has_prefix(&program->containers[0], &agent->programs[i])) {
            return true;
        }
    }
    return !agent->n_programs;
}

static char *
make_program(struct draft *d)
{
    size_t n_max = d->path->n_nodes + 1, n = 0;
    struct usid_step *steps = xcalloc(n_max, sizeof *steps);
    const struct plan_node **nodes = xcalloc(n_max, sizeof *nodes);
    struct program *program = &d->path->program;
    const struct plan_node *culprit;
    char *problem = NULL;

    for (; n < d->path->n_nodes; n++) {
        steps[n] = step_of(d, n);
        nodes[n] = d->path->nodes[n];
    }
    if (d->form == PATH_FORM_AGENT) {
        nodes[n] = d->to;
        steps[n++] = plan_step(d->to, 0);
    }
    if (!plan_pack(steps, nodes, n, program, &culprit)) {
        problem =
            culprit
                ? xasprintf("%s is of role %s: it cannot end a container that another one "
                            "follows",
                            culprit->name, node_role_name(culprit->role))
                : xasprintf("it has %" PRIuSIZE " steps, and a program has room for %d containers",
                            n, PROGRAM_MAX);
    } else if (!plan_may_use(d->from, program)) {
        problem = xasprintf("%s may not use it, as an operator has said", d->from->name);
        *program = (struct program){.n = 0};
    }
    free(nodes);
    free(steps);
    return problem;
}

static bool
is_over_excluded(const struct draft *d)
{
    for (size_t i = 0; i < d->way->n; i++) {
        if (d->way->arcs[i]->link->excluded
            || (i < d->path->n_nodes && d->path->nodes[i]->excluded)) {
            return true;
        }
    }
    return false;
}

static void
make_path(struct draft *d)
{
    const struct plan_way *way = d->way;
    struct plan_path *path = d->path;

    path->n_nodes = way->n - plan_is_agent(d->to);
    path->nodes = xcalloc(way->n, sizeof *path->nodes);
    for (size_t i = 0; i < path->n_nodes; i++) {
        path->nodes[i] = head(d, i);
    }
    path->n_arcs = way->n;
    path->arcs = xcalloc(way->n, sizeof *path->arcs);
    for (size_t i = 0; i < way->n; i++) {
        path->arcs[i] = *way->arcs[i];
    }
    d->form = choose_form(d);
    ovs_strlcpy(path->uplink, way->arcs[0]->port, sizeof path->uplink);
    path->disjoint = way->disjoint;
    path->excluded = is_over_excluded(d);
    plan_set_plane(path->plane, path->nodes, path->n_nodes);
    set_name(d);
    if (!path->problem) {
        path->problem = check_end(d);
    }
    if (!path->problem) {
        path->problem = check_ports(d);
    }
    if (!path->problem) {
        path->problem = make_program(d);
    }
}

size_t
plan_paths_between(const struct plan_graph *g, const struct plan_node *from,
                   const struct plan_node *to, struct plan_path **paths)
{
    const struct plan_topology *t = g->topology;
    bool by_agent = t->path_form == PATH_FORM_AUTO || t->path_form == PATH_FORM_AGENT;
    struct plan_way ways[PATHS_MAX];
    size_t n =
        plan_find_ways(g, (size_t) (from - t->nodes), (size_t) (to - t->nodes), by_agent, ways);

    *paths = xcalloc(n + 1, sizeof **paths);
    for (size_t i = 0; i < n; i++) {
        struct draft d = {.t = t, .way = &ways[i], .from = from, .to = to, .path = &(*paths)[i]};

        make_path(&d);
    }
    plan_ways_uninit(ways, n);
    return n;
}

bool
plan_path_rule_is_for(const struct plan_topology *t, const struct plan_path_rule *rule,
                      const struct plan_node *from, const struct plan_host *to)
{
    return !strcmp(rule->to, to->name) && plan_attachment(t, rule->from) == from;
}

bool
plan_path_is_excluded(const struct plan_topology *t, const struct plan_node *from,
                      const struct plan_host *to, const struct plan_path *path)
{
    for (size_t i = 0; i < t->n_path_rules; i++) {
        const struct plan_path_rule *rule = &t->path_rules[i];

        if (rule->kind == PATH_EXCLUDE && !strcmp(rule->path, path->name)
            && plan_path_rule_is_for(t, rule, from, to)) {
            return true;
        }
    }
    return path->excluded;
}

static char *
check_host(const struct plan_host *host, const char *name)
{
    return !host         ? xasprintf("host %s: no such host", name)
           : !host->node ? xasprintf("host %s has no link to a node", name)
                         : NULL;
}

/* Can there be paths from one host to the other? */
static char *
check_hosts(const struct plan_topology *t, const char *from, const char *to)
{
    const struct plan_host *a = plan_find_host(t, from), *b = plan_find_host(t, to);
    char *error = check_host(a, from);

    if (!error) {
        error = check_host(b, to);
    }
    if (error) {
        return error;
    } else if (a->node == b->node) {
        return xasprintf("%s and %s are both behind %s: there is nothing to choose", from, to,
                         a->node->name);
    } else if (node_role_is_foreign(a->node->role)) {
        return xasprintf("host %s is behind %s, which has role %s: it cannot place packets", from,
                         a->node->name, node_role_name(a->node->role));
    }
    return NULL;
}

char *
plan_paths(const struct plan_topology *t, const char *from, const char *to,
           struct plan_path **paths, size_t *n)
{
    char *error = check_hosts(t, from, to);
    struct plan_graph graph;

    *paths = NULL;
    *n = 0;
    if (error) {
        return error;
    }
    const struct plan_node *node = plan_attachment(t, from);
    const struct plan_host *host = plan_find_host(t, to);

    plan_graph_init(&graph, t);
    *n = plan_paths_between(&graph, node, host->node, paths);
    plan_graph_uninit(&graph);
    for (size_t i = 0; i < *n; i++) {
        (*paths)[i].excluded = plan_path_is_excluded(t, node, host, &(*paths)[i]);
    }
    if (!*n) {
        free(*paths);
        *paths = NULL;
        return xasprintf("no way from %s to %s", node->name, host->node->name);
    }
    return NULL;
}

void
plan_paths_free(struct plan_path *paths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(paths[i].nodes);
        free(paths[i].arcs);
        free(paths[i].problem);
    }
    free(paths);
}
