/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, destinations: the hosts that a node has paths to.
 *
 * A node places the packets of its hosts by the policy of one of them: the first by name that has
 * one.  If none has, only pinned hosts are destinations.
 *
 * A path's number is a hash of the names of its host and itself, so it stays if others come and go.
 * Only where two have the same hash, the later one (by the host's address and rank) has the next
 * number that is free.  There are PATH_NUMBER_MAX: a node with many destinations has fewer paths to
 * each, those that are pinned and the first by rank.
 *
 * A pin's own program is a path as well, the last by rank.
 *
 * A pin to a path that the topology does not have, or not any more, is kept: a path of that name
 * is there that is not usable.  So packets are dropped and counted, not placed elsewhere.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/path-impl.h"
#include "util.h"

struct draft {
    const struct plan_topology *t;
    const struct plan_node *node;
    struct node_config *out;
    enum path_policy policy;
    size_t n_each; /* most paths to each host, but for pins. */
    bool is_taken[PATH_NUMBER_MAX + 1];
    struct plan_graph graph;
    struct plan_node_paths *found; /* by index of the other node; without paths: not found yet. */
};

static enum path_policy
policy_of(const struct plan_topology *t, const struct plan_node *node)
{
    for (size_t i = 0; i < t->n_hosts; i++) {
        if (t->hosts[i].node == node && t->hosts[i].path_policy != PATH_NONE) {
            return t->hosts[i].path_policy;
        }
    }
    return PATH_NONE;
}

/* The next pin of packets to the host after rule *i, which is moved behind it; NULL: no more. */
static const struct plan_path_rule *
next_pin(const struct draft *d, const struct plan_host *host, size_t *i)
{
    while (*i < d->t->n_path_rules) {
        const struct plan_path_rule *rule = &d->t->path_rules[(*i)++];

        if (rule->kind == PATH_PIN && plan_path_rule_is_for(d->t, rule, d->node, host)) {
            return rule;
        }
    }
    return NULL;
}

static size_t
count_pins(const struct draft *d, const struct plan_host *host)
{
    size_t n = 0;

    for (size_t i = 0; next_pin(d, host, &i);) {
        n++;
    }
    return n;
}

static uint16_t
take_number(struct draft *d, const char *host, const char *path)
{
    uint16_t number =
        (uint16_t) (plan_hash_text(plan_hash_text(0, host), path) % PATH_NUMBER_MAX + 1);

    while (d->is_taken[number]) {
        number = number % PATH_NUMBER_MAX + 1;
    }
    d->is_taken[number] = true;
    return number;
}

/* Number of the first port with this name, or with this peer; 0: none. */
static uint16_t
find_port(const struct node_config *config, const char *name, const char *peer)
{
    for (size_t i = 0; i < config->n_ports; i++) {
        const struct port_config *port = &config->ports[i];

        if ((name && !strcmp(port->name, name)) || (peer && !strcmp(port->peer, peer))) {
            return port->number;
        }
    }
    return 0;
}

static struct path_config *
add_path(struct draft *d, struct destination_config *dest, const char *name)
{
    struct path_config *path = &dest->paths[dest->n_paths++];

    ovs_strlcpy(path->name, name, sizeof path->name);
    path->number = take_number(d, dest->name, name);
    return path;
}

static void
add_planned(struct draft *d, const struct plan_host *host, const struct plan_path *planned,
            struct destination_config *dest)
{
    struct path_config *path = add_path(d, dest, planned->name);

    path->port = find_port(d->out, planned->uplink, NULL);
    path->usable = !planned->problem && !plan_path_is_excluded(d->t, d->node, host, planned);
    ovs_strlcpy(path->plane, planned->plane, sizeof path->plane);
    path->program = planned->program;
}

/* Adds what a pin names that is no path of the topology: a program of the operator's own, or
 * nothing. */
static const struct path_config *
add_own(struct draft *d, const char *text, struct destination_config *dest)
{
    struct path_config *path = add_path(d, dest, text);
    char uplink[NAME_SIZE];
    size_t len = strcspn(text, " ");

    if (len < sizeof uplink && text[len] && program_parse(text + len + 1, &path->program)) {
        ovs_strzcpy(uplink, text, len + 1);
        path->port = find_port(d->out, NULL, uplink);
    }
    path->usable = path->port != 0;
    if (!path->usable) {
        path->program = (struct program){.n = 0};
    }
    return path;
}

static const struct path_config *
find_path(const struct destination_config *dest, const char *name)
{
    for (size_t i = 0; i < dest->n_paths; i++) {
        if (!strcmp(dest->paths[i].name, name)) {
            return &dest->paths[i];
        }
    }
    return NULL;
}

static bool
has_qp(const struct destination_config *dest, uint32_t dest_qp)
{
    for (size_t i = 0; i < dest->n_pins; i++) {
        if (dest->pins[i].dest_qp == dest_qp) {
            return true;
        }
    }
    return false;
}

static int
compare_pins(const void *a_, const void *b_)
{
    const struct path_pin *a = a_, *b = b_;

    return a->dest_qp < b->dest_qp ? -1 : a->dest_qp > b->dest_qp;
}

/* If several rules pin the same packets, the first one holds. */
static void
add_pins(struct draft *d, const struct plan_host *host, struct destination_config *dest)
{
    const struct plan_path_rule *rule;

    dest->pins = xcalloc(count_pins(d, host) + 1, sizeof *dest->pins);
    for (size_t i = 0; (rule = next_pin(d, host, &i));) {
        const struct path_config *path = find_path(dest, rule->path);

        if (!path) {
            path = add_own(d, rule->path, dest);
        }
        if (!rule->has_qp) {
            dest->pinned = dest->pinned ? dest->pinned : path->number;
        } else if (!has_qp(dest, rule->dest_qp)) {
            dest->pins[dest->n_pins++] = (struct path_pin){rule->dest_qp, path->number};
        }
    }
    qsort(dest->pins, dest->n_pins, sizeof *dest->pins, compare_pins);
}

static bool
refers_to(const struct destination_config *dest, uint16_t number)
{
    for (size_t i = 0; i < dest->n_pins; i++) {
        if (dest->pins[i].number == number) {
            return true;
        }
    }
    return dest->pinned == number;
}

/* Leaves the destination those paths that are pinned, and the first of the others. */
static void
trim(struct draft *d, struct destination_config *dest)
{
    for (size_t i = dest->n_paths; i-- > 0 && dest->n_paths > d->n_each;) {
        if (!refers_to(dest, dest->paths[i].number)) {
            d->is_taken[dest->paths[i].number] = false;
            memmove(&dest->paths[i], &dest->paths[i + 1],
                    (--dest->n_paths - i) * sizeof *dest->paths);
        }
    }
}

/* The paths to another node. */
static const struct plan_node_paths *
find_paths(struct draft *d, const struct plan_node *to)
{
    struct plan_node_paths *found = &d->found[to - d->t->nodes];

    if (!found->paths) {
        found->n = plan_paths_between(&d->graph, d->node, to, &found->paths);
    }
    return found;
}

static char *
add_destination(struct draft *d, const struct plan_host *host)
{
    const struct plan_node_paths *found = find_paths(d, host->node);
    struct destination_config *dest = &d->out->destinations[d->out->n_destinations];
    size_t n_pins = count_pins(d, host);

    if (!n_pins && !found->n) {
        return NULL;
    }
    d->out->n_destinations++;
    dest->address = host->address;
    ovs_strlcpy(dest->name, host->name, sizeof dest->name);
    dest->policy = d->policy;
    dest->paths = xcalloc(found->n + n_pins, sizeof *dest->paths);
    for (size_t i = 0; i < found->n; i++) {
        add_planned(d, host, &found->paths[i], dest);
    }
    add_pins(d, host, dest);
    trim(d, dest);
    if (dest->n_paths <= PATHS_MAX) {
        return NULL;
    }
    free(dest->paths);
    free(dest->pins);
    *dest = (struct destination_config){.n_paths = 0};
    d->out->n_destinations--;
    return xasprintf("node %s: more than %d paths to %s are pinned", d->node->name, PATHS_MAX,
                     host->name);
}

static int
compare_hosts(const void *a_, const void *b_)
{
    const struct plan_host *const *a = a_, *const *b = b_;
    int cmp = address_compare(&(*a)->address, &(*b)->address);

    return cmp ? cmp : strcmp((*a)->name, (*b)->name);
}

/* The hosts behind other nodes that packets may be placed to, by address, malloc'd. */
static const struct plan_host **
list_hosts(const struct draft *d, size_t *np)
{
    const struct plan_host **hosts = xcalloc(d->t->n_hosts + 1, sizeof *hosts);

    *np = 0;
    for (size_t i = 0; i < d->t->n_hosts; i++) {
        const struct plan_host *host = &d->t->hosts[i];

        if (host->node && host->node != d->node
            && (d->policy != PATH_NONE || count_pins(d, host))) {
            hosts[(*np)++] = host;
        }
    }
    qsort(hosts, *np, sizeof *hosts, compare_hosts);
    return hosts;
}

/* Finds how many paths there can be to each host, so that there are numbers for all, and for one
 * host's before they are trimmed. */
static char *
share_numbers(struct draft *d, const struct plan_host **hosts, size_t n)
{
    size_t n_reserved = PATHS_MAX;

    for (size_t i = 0; i < n; i++) {
        n_reserved += count_pins(d, hosts[i]);
    }
    d->n_each = n_reserved < PATH_NUMBER_MAX ? (PATH_NUMBER_MAX - n_reserved) / MAX(n, 1) : 0;
    d->n_each = MIN(d->n_each, PATHS_MAX);
    return d->n_each ? NULL
                     : xasprintf("node %s: there are not enough numbers for paths to %" PRIuSIZE
                                 " hosts and %" PRIuSIZE " pins",
                                 d->node->name, n, n_reserved - PATHS_MAX);
}

/* Is there nothing to place? */
static bool
has_no_destinations(const struct draft *d)
{
    if (node_role_is_foreign(d->node->role)) {
        return true;
    }
    for (size_t i = 0; i < d->t->n_path_rules; i++) {
        const struct plan_path_rule *rule = &d->t->path_rules[i];

        if (rule->kind == PATH_PIN && plan_attachment(d->t, rule->from) == d->node) {
            return false;
        }
    }
    return d->policy == PATH_NONE;
}

char *
plan_destinations(const struct plan_topology *t, const struct plan_node *node,
                  struct node_config *out, struct plan_node_paths **found)
{
    struct draft d = {.t = t, .node = node, .out = out, .policy = policy_of(t, node)};
    const struct plan_host **hosts;
    size_t n;
    char *error;

    *found = NULL;
    if (has_no_destinations(&d)) {
        return NULL;
    }
    hosts = list_hosts(&d, &n);
    out->destinations = xcalloc(n + 1, sizeof *out->destinations);
    error = share_numbers(&d, hosts, n);
    plan_graph_init(&d.graph, t);
    *found = d.found = xcalloc(t->n_nodes, sizeof *d.found);
    for (size_t i = 0; i < n && d.n_each; i++) {
        char *problem = add_destination(&d, hosts[i]);

        if (error) {
            free(problem);
        } else {
            error = problem;
        }
    }
    plan_graph_uninit(&d.graph);
    free(hosts);
    return error;
}

void
plan_node_paths_free(const struct plan_topology *t, struct plan_node_paths *found)
{
    for (size_t i = 0; found && i < t->n_nodes; i++) {
        plan_paths_free(found[i].paths, found[i].n);
    }
    free(found);
}
