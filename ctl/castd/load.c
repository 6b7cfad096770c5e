/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry's rows as the planner's plain structures, and look-ups in both.
 *
 * Rows that castctl would not have written (a link to nowhere, a host with a
 * forbidden address) are left out and logged; ctl/registry/rows.c says which.
 *
 * The topology is looked at as a whole when something of it has changed; groups are if they are due.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/congestion.h"
#include "ctl/registry/group-settings.h"
#include "ctl/registry/probes.h"
#include "ctl/registry/rows.h"
#include "ctl/registry/values.h"
#include "hash.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_load);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(60, 60);

/* Rows of groups that are taken together, and that one transaction looks at if it finds nothing to
 * write.  The latter takes tens of milliseconds. */
#define TOGETHER      200
#define MAX_LOOKED_AT 20000

/* Logs each row once, although everything is computed anew with every change. */
static void
log_left_out(const struct registry_rows *rows)
{
    static struct svec told = SVEC_EMPTY_INITIALIZER;

    for (size_t i = 0; i < rows->left_out.n; i++) {
        if (!svec_contains(&told, rows->left_out.names[i])) {
            VLOG_WARN_RL(&rl, "left out: %s", rows->left_out.names[i]);
        }
    }
    svec_destroy(&told);
    svec_clone(&told, &rows->left_out);
}

/* Prefixes that make no sense allow nothing.  If there is no other the agent may use no program:
 * none at all would allow all of them. */
static void
load_programs(struct plan_node *node, const struct rrec_node *row)
{
    node->programs = xcalloc(row->n_programs + 1, sizeof *node->programs);
    for (size_t i = 0; i < row->n_programs; i++) {
        node->n_programs +=
            program_prefix_parse(row->programs[i], &node->programs[node->n_programs]);
    }
    if (row->n_programs && !node->n_programs) {
        ip6_prefix_parse("5f00::/128", &node->programs[0].address, &node->programs[0].plen);
        node->n_programs = 1;
    }
}

static void
load_nodes(struct plan_topology *t, const struct registry_rows *rows)
{
    t->nodes = xcalloc(rows->n_nodes + 1, sizeof *t->nodes);
    for (; t->n_nodes < rows->n_nodes; t->n_nodes++) {
        const struct rrec_node *row = rows->nodes[t->n_nodes];
        struct plan_node *node = &t->nodes[t->n_nodes];

        ovs_strlcpy(node->name, row->name, sizeof node->name);
        node->id = (uint16_t) row->id;
        node_role_parse(row->role, &node->role);
        node->no_aggregation = row->no_aggregation || node_role_is_foreign(node->role);
        node->excluded = row->excluded;
        if (!row->plane[0] || name_is_valid(row->plane)) {
            ovs_strlcpy(node->plane, row->plane, sizeof node->plane);
        }
        load_programs(node, row);
        node->ports = xcalloc(row->n_ports + 1, sizeof *node->ports);
        for (size_t i = 0; i < row->n_ports; i++) {
            if (ifname_is_valid(row->ports[i]->name)) {
                struct plan_port *port = &node->ports[node->n_ports++];

                ovs_strlcpy(port->name, row->ports[i]->name, sizeof port->name);
                port->number = (uint16_t) row->ports[i]->number;
            }
        }
    }
}

static enum path_policy
host_path_policy(const struct rrec_host *row)
{
    enum path_policy policy = PATH_NONE;

    if (row->path_policy) {
        path_policy_parse(row->path_policy, &policy);
    }
    return policy;
}

static void
load_hosts(struct plan_topology *t, const struct registry_rows *rows)
{
    t->hosts = xcalloc(rows->n_hosts + 1, sizeof *t->hosts);
    for (; t->n_hosts < rows->n_hosts; t->n_hosts++) {
        const struct rrec_host *row = rows->hosts[t->n_hosts];
        struct plan_host *host = &t->hosts[t->n_hosts];

        ovs_strlcpy(host->name, row->name, sizeof host->name);
        ip6_parse(row->address, &host->address);
        host->rate = rate_settings_read(row);
        host->path_policy = host_path_policy(row);
    }
}

/* No impairment if the text is nonsense. */
static struct impair_params
load_impairment(const char *text)
{
    struct impair_params params;
    char *error;

    if (!impair_parse(text, &params, &error)) {
        free(error);
        params = (struct impair_params){0};
    }
    return params;
}

static void
load_links(struct plan_topology *t, const struct registry_rows *rows)
{
    t->links = xcalloc(rows->n_links + 1, sizeof *t->links);
    for (; t->n_links < rows->n_links; t->n_links++) {
        const struct rrec_link *row = rows->links[t->n_links];
        struct plan_link *link = &t->links[t->n_links];

        ovs_strlcpy(link->a, row->a, sizeof link->a);
        ovs_strlcpy(link->a_port, row->a_port, sizeof link->a_port);
        ovs_strlcpy(link->b, row->b, sizeof link->b);
        ovs_strlcpy(link->b_port, row->b_port, sizeof link->b_port);
        port_kind_parse(row->kind, &link->kind);
        link->external = row->external;
        link->excluded = row->excluded;
        link->a_to_b = load_impairment(row->a_to_b);
        link->b_to_a = load_impairment(row->b_to_a);
    }
}

static void
load_congestion(struct plan_topology *t, const struct rrec_global *row, const struct mirror *m)
{
    t->congestion = congestion_settings_read(row);
    t->trace = m->n_traced > 0;
}

static void
load_path_rules(struct plan_topology *t, const struct rrec_global *global,
                const struct registry_rows *rows)
{
    if (global->path_form) {
        path_form_parse(global->path_form, &t->path_form);
    }
    t->path_rules = xcalloc(rows->n_path_rules + 1, sizeof *t->path_rules);
    for (; t->n_path_rules < rows->n_path_rules; t->n_path_rules++) {
        const struct rrec_path_rule *row = rows->path_rules[t->n_path_rules];
        struct plan_path_rule *rule = &t->path_rules[t->n_path_rules];

        path_rule_kind_parse(row->kind, &rule->kind);
        ovs_strlcpy(rule->from, row->from, sizeof rule->from);
        ovs_strlcpy(rule->to, row->to, sizeof rule->to);
        rule->has_qp = row->n_qpn > 0;
        rule->dest_qp = row->n_qpn ? (uint32_t) row->qpn[0] : 0;
        ovs_strlcpy(rule->path, row->path, sizeof rule->path);
    }
}

/*
 * What has changed since the registry was read last.
 */

/* Stores what there is now, and tells if it differs from what there was. */
static bool
is_news(char **before, struct ds *now)
{
    bool news = !*before || strcmp(*before, ds_cstr(now));

    free(*before);
    *before = ds_steal_cstr(now);
    return news;
}

/* All that groups and nodes' ports, routes, SIDs and paths follow from. */
static bool
topology_has_changed(const struct castd *c, const struct castd_topology *t,
                     const struct registry_rows *rows)
{
    const struct congestion_settings *congestion = &c->topology.congestion;
    struct ds s = DS_EMPTY_INITIALIZER;

    ds_put_format(&s, "mtu %" PRId64 " cnp %d %d %u %u %d\n", c->global->fabric_mtu,
                  congestion->fast_cnp, congestion->any_icrc, congestion->interval_usec,
                  congestion->fast_cnp_rate, c->topology.trace);
    for (size_t i = 0; i < c->topology.n_nodes; i++) {
        const struct plan_node *n = &c->topology.nodes[i];

        ds_put_format(&s, "node " UUID_FMT " %s %u %d %d %s %d",
                      UUID_ARGS(&t->nodes[i]->header_.uuid), n->name, n->id, n->role,
                      n->no_aggregation, n->plane, n->excluded);
        for (size_t j = 0; j < n->n_ports; j++) {
            ds_put_format(&s, " %s %u", n->ports[j].name, n->ports[j].number);
        }
        ds_put_char(&s, '\n');
    }
    for (size_t i = 0; i < rows->n_hosts; i++) {
        const struct rate_settings r = rate_settings_read(rows->hosts[i]);

        ds_put_format(&s, "host %s %s %d %d %" PRIu64 " %" PRIu64 " %d\n", rows->hosts[i]->name,
                      rows->hosts[i]->address, r.by, r.controller, r.line, r.floor, r.fast_cnp);
    }
    for (size_t i = 0; i < rows->n_links; i++) {
        const struct rrec_link *l = rows->links[i];

        ds_put_format(&s, "link %s %s %s %s %s %d %d %s, %s\n", l->a, l->a_port, l->b, l->b_port,
                      l->kind, l->external, l->excluded, l->a_to_b, l->b_to_a);
    }
    return is_news(&c->work->topology, &s);
}

static void
put_probe_choice(const char *plane, const struct probe_choice *c, struct ds *s)
{
    ds_put_format(s, "probes %s %d %u %d %u\n", plane, c->has_interval, c->interval, c->has_timeout,
                  c->timeout);
}

/* What nodes' paths and probes, and programs that they let pass, follow from besides.  Groups do
 * not. */
static bool
paths_have_changed(const struct castd *c)
{
    const struct plan_topology *t = &c->topology;
    struct ds s = DS_EMPTY_INITIALIZER;

    ds_put_format(&s, "form %d\n", t->path_form);
    put_probe_choice("", &t->probes.all, &s);
    for (size_t i = 0; i < t->probes.n_planes; i++) {
        put_probe_choice(t->probes.planes[i].name, &t->probes.planes[i].choice, &s);
    }
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct plan_node *n = &t->nodes[i];

        for (size_t j = 0; j < n->n_programs; j++) {
            ds_put_format(&s, "program %s %s/%u\n", n->name, ip6_text(&n->programs[j].address),
                          n->programs[j].plen);
        }
    }
    for (size_t i = 0; i < t->n_hosts; i++) {
        ds_put_format(&s, "policy %s %d\n", t->hosts[i].name, t->hosts[i].path_policy);
    }
    for (size_t i = 0; i < t->n_path_rules; i++) {
        const struct plan_path_rule *r = &t->path_rules[i];

        ds_put_format(&s, "rule %d %s %s %d %u %s\n", r->kind, r->from, r->to, r->has_qp,
                      r->dest_qp, r->path);
    }
    return is_news(&c->work->paths, &s);
}

/* What groups that are not settled wait for: nodes, and addresses. */
static bool
generations_have_changed(const struct castd *c)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    ds_put_format(&s, "%" PRId64 "\n", c->global->next_proxy);
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct rrec_node *n = c->nodes[i].row;

        ds_put_format(&s, "%s %" PRId64 " %" PRId64 " %s\n", n->name, n->cfg, n->nb_cfg, n->state);
    }
    return is_news(&c->work->generations, &s);
}

/* Of what else nodes' rows follow from: probes, where agents write, too, and the ways of planes. */
static bool
digests_have_changed(const struct castd *c)
{
    uint64_t probes = castd_digest_probes(c), planes = castd_digest_planes(c);
    bool changed = probes != c->work->probes || planes != c->work->planes;

    c->work->probes = probes;
    c->work->planes = planes;
    return changed;
}

/*
 * Groups, and what belongs to them.
 */

static void
load_keys(struct castd *c)
{
    const struct rrec_key *key;
    const struct rrec_node_key *copy;

    RREC_KEY_FOR_EACH (key, c->idl) {
        struct castd_key *k = xzalloc(sizeof *k);

        k->key = key;
        hmap_insert(&c->keys, &k->hmap_node, hash_uint64((uint64_t) key->id));
    }
    RREC_NODE_KEY_FOR_EACH(copy, c->idl)
    {
        castd_add_node_key(c, copy);
    }
}

/* The rows of a list of the mirror; the caller frees them.  They are in no order. */
static void *
take_rows(const struct ovs_list *list, size_t *n)
{
    const void **rows = xcalloc(ovs_list_size(list) + 1, sizeof *rows);
    const struct mirror_part *part;

    *n = 0;
    LIST_FOR_EACH (part, owner_node, list) {
        rows[(*n)++] = part->row;
    }
    return rows;
}

/* Trees of nodes that are let in. */
static void
take_trees(struct castd *c, const struct mirror_proxy *p, struct castd_trees *trees)
{
    const struct mirror_part *tree;

    LIST_FOR_EACH (tree, owner_node, &p->trees) {
        if (tree->node && tree->node->index != SIZE_MAX) {
            castd_add_tree(trees, &c->nodes[tree->node->index], tree->row);
        }
    }
}

static struct castd_connection *
take_connections(const struct mirror_proxy *p, struct castd_connection *before, size_t *n)
{
    struct castd_connection *all =
        xrealloc(before, (*n + ovs_list_size(&p->connections) + 1) * sizeof *all);
    const struct mirror_part *part;

    LIST_FOR_EACH (part, owner_node, &p->connections) {
        all[(*n)++] = (struct castd_connection){.row = part->row};
    }
    return all;
}

/* Of each node the order of their UUIDs. */
static int
compare_trees(const void *a_, const void *b_)
{
    const struct castd_tree *a = a_, *b = b_;

    return a->node != b->node ? (a->node < b->node ? -1 : 1)
                              : uuid_compare_3way(&a->row->header_.uuid, &b->row->header_.uuid);
}

static void
load_orphans(struct castd *c)
{
    const struct mirror_proxy *p;

    LIST_FOR_EACH (p, orphan_node, &c->mirror->orphans) {
        take_trees(c, p, &c->orphans);
        c->strays = take_connections(p, c->strays, &c->n_strays);
    }
}

static int
compare_members(const void *a_, const void *b_)
{
    const struct rrec_member *const *a = a_, *const *b = b_;

    return strcmp((*a)->host, (*b)->host);
}

/* log_left_out() has logged what is wrong with a group's settings. */
static void
load_settings(struct plan_group *p, const struct rrec_group *row)
{
    struct group_settings settings;

    group_settings_read(row, &settings);
    free(group_settings_mend(&settings));
    p->mode = settings.mode;
    p->provisioned = settings.provisioned;
    p->mtu = settings.mtu;
    p->policy = settings.policy;
}

/* About how many rows a group has, or will have. */
static size_t
size_of(const struct castd_group *g)
{
    return 1 + 4 * (g->n_members + g->n_listeners) + g->n_rows;
}

static void
release(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        struct castd_group *g = c->due[i];

        c->n_looked_at += size_of(g);
        c->n_written += g->written ? size_of(g) : 0;
        rollout_uninit(&g->rollout);
        svec_destroy(&g->newcomers);
        free(g->members);
        free(g->trees.trees);
        free(g->connections);
        free(g->listeners);
        free(g);
    }
    c->n_due = 0;
}

static void
count_rows(struct castd_group *g)
{
    g->n_rows = g->n_members + g->n_listeners + g->n_connections + g->trees.n + (g->source != NULL);
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct rrec_tree_node *row = g->trees.trees[i].row;

        g->n_rows += row->n_branches + row->n_copies + row->n_keys;
    }
}

/* The rows that belong to the group. */
static struct castd_group *
make_group(struct castd *c, const struct mirror_group *from)
{
    struct castd_group *g = xzalloc(sizeof *g);
    const struct ovs_list *sources = &from->parts[MIRROR_SOURCE];

    g->work = from->work;
    g->row = from->row;
    if (!ovs_list_is_empty(sources)) {
        g->source = CONTAINER_OF(ovs_list_front(sources), struct mirror_part, owner_node)->row;
    }
    g->members = take_rows(&from->parts[MIRROR_MEMBER], &g->n_members);
    if (g->n_members) {
        qsort(g->members, g->n_members, sizeof *g->members, compare_members);
    }
    g->listeners = take_rows(&from->parts[MIRROR_LISTENER], &g->n_listeners);
    if (mirror_group_has_proxy(from)) {
        take_trees(c, from->proxy, &g->trees);
        g->connections = take_connections(from->proxy, NULL, &g->n_connections);
    }
    if (g->trees.n) {
        qsort(g->trees.trees, g->trees.n, sizeof *g->trees.trees, compare_trees);
    }
    count_rows(g);
    return g;
}

static struct castd_group *
take(struct castd *c, const struct mirror_group *from)
{
    struct castd_group *g = make_group(c, from);
    struct rollout *r = &g->rollout;

    if (c->n_due == c->allocated_due) {
        c->due = x2nrealloc(c->due, &c->allocated_due, sizeof *c->due);
    }
    c->due[c->n_due++] = g;
    svec_init(&g->newcomers);
    load_settings(&r->group, g->row);
    r->members = xcalloc(g->n_members + 1, sizeof *r->members);
    r->group.members = xcalloc(g->n_members + 1, sizeof *r->group.members);
    r->group.n_members = g->n_members;
    return g;
}

bool
castd_take(struct castd *c)
{
    size_t budget = work_budget(c->work);
    struct work_group *work;
    size_t n = 0;

    release(c);
    while (c->n_written + n < budget && c->n_looked_at + n < MAX_LOOKED_AT && n < TOGETHER
           && (work = work_take(c->work)) != NULL) {
        n += size_of(take(c, work->group));
    }
    return n > 0;
}

/* The rows of the topology's nodes, and where the mirror's nodes are among them. */
static void
find_node_rows(struct castd_topology *t, const struct registry_rows *rows, const struct mirror *m)
{
    struct shash by_name = SHASH_INITIALIZER(&by_name);
    struct mirror_node *n;

    HMAP_FOR_EACH (n, hmap_node, &m->nodes) {
        n->index = SIZE_MAX;
    }
    for (size_t i = 0; i < rows->n_nodes; i++) {
        shash_add(&by_name, rows->nodes[i]->name, rows->nodes[i]);
    }
    t->nodes = xcalloc(t->plan.n_nodes + 1, sizeof *t->nodes);
    for (size_t i = 0; i < t->plan.n_nodes; i++) {
        t->nodes[i] = shash_find_data(&by_name, t->plan.nodes[i].name);
        mirror_find_node(m, &t->nodes[i]->header_.uuid)->index = i;
    }
    shash_destroy(&by_name);
}

void
castd_topology_uninit(struct castd_topology *t)
{
    if (t->known) {
        plan_topology_uninit(&t->plan);
        free(t->nodes);
    }
    *t = (struct castd_topology){.known = false};
}

static void
load_topology(struct castd *c, struct castd_topology *t, const struct registry_rows *rows)
{
    castd_topology_uninit(t);
    t->known = true;
    t->plan.fabric_mtu = (unsigned int) c->global->fabric_mtu;
    load_nodes(&t->plan, rows);
    load_hosts(&t->plan, rows);
    load_links(&t->plan, rows);
    load_congestion(&t->plan, c->global, c->mirror);
    load_path_rules(&t->plan, c->global, rows);
    probe_settings_read(c->global, &t->plan.probes);
    plan_topology_prepare(&t->plan);
    find_node_rows(t, rows, c->mirror);
}

/* Brings the topology up to date, and has due what follows from it. */
static void
update_topology(struct castd *c, struct castd_topology *t, bool changed)
{
    struct registry_rows rows;

    if (t->known && !changed) {
        c->topology = t->plan;
        return;
    }
    registry_rows_init_topology(&rows, c->idl);
    log_left_out(&rows);
    load_topology(c, t, &rows);
    c->topology = t->plan;
    if (topology_has_changed(c, t, &rows)) {
        c->work->base = true;
        work_make_all_due(c->work);
    }
    c->work->base |= paths_have_changed(c);
    registry_rows_uninit(&rows);
}

static void
load_nodes_of(struct castd *c, const struct castd_topology *t)
{
    c->n_nodes = c->topology.n_nodes;
    c->nodes = xcalloc(c->n_nodes + 1, sizeof *c->nodes);
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct rrec_node *row = t->nodes[i];

        c->nodes[i] = (struct castd_node){
            .node = &c->topology.nodes[i],
            .row = row,
            .caught_up = row->nb_cfg >= row->cfg,
        };
    }
}

void
castd_load(struct castd *c, struct ovsdb_idl *idl, struct mirror *m, struct castd_topology *t,
           struct work *work)
{
    memset(c, 0, sizeof *c);
    c->idl = idl;
    c->mirror = m;
    c->work = work;
    c->global = rrec_global_first(idl);
    hmap_init(&c->keys);
    hmap_init(&c->node_keys);
    work_begin(work);
    update_topology(c, t, m->topology_changed);
    load_nodes_of(c, t);
    load_keys(c);
    load_orphans(c);
    if (m->ways_changed) {
        work->base |= digests_have_changed(c);
    }
    if (generations_have_changed(c)) {
        work_make_unsettled_due(work);
    }
    m->topology_changed = m->ways_changed = false;
    work_request(work, c->global->next_cfg, c->global->nb_cfg);
}

static void
destroy_keys(struct hmap *keys)
{
    struct castd_key *k;

    HMAP_FOR_EACH_SAFE (k, hmap_node, keys) {
        hmap_remove(keys, &k->hmap_node);
        free(k);
    }
    hmap_destroy(keys);
}

void
castd_unload(struct castd *c)
{
    release(c);
    free(c->due);
    free(c->nodes);
    free(c->orphans.trees);
    free(c->strays);
    free(c->replication_ids);
    destroy_keys(&c->keys);
    destroy_keys(&c->node_keys);
}

/*
 * Look-ups in rows and plain structures.
 */

const struct rrec_key *
castd_find_key(const struct castd *c, int64_t id)
{
    const struct castd_key *k;

    HMAP_FOR_EACH_WITH_HASH (k, hmap_node, hash_uint64((uint64_t) id), &c->keys) {
        if (k->key->id == id) {
            return k->key;
        }
    }
    return NULL;
}

static uint32_t
hash_node_key(const char *node, int64_t id)
{
    return hash_string(node, hash_uint64((uint64_t) id));
}

const struct rrec_node_key *
castd_find_node_key(const struct castd *c, const char *node, int64_t id)
{
    const struct castd_key *k;

    HMAP_FOR_EACH_WITH_HASH (k, hmap_node, hash_node_key(node, id), &c->node_keys) {
        if (k->copy->id == id && !strcmp(k->copy->node, node)) {
            return k->copy;
        }
    }
    return NULL;
}

void
castd_add_node_key(struct castd *c, const struct rrec_node_key *copy)
{
    struct castd_key *k = xzalloc(sizeof *k);

    k->copy = copy;
    hmap_insert(&c->node_keys, &k->hmap_node, hash_node_key(copy->node, copy->id));
}

void
castd_add_tree(struct castd_trees *t, struct castd_node *node, const struct rrec_tree_node *row)
{
    if (t->n == t->allocated) {
        t->trees = x2nrealloc(t->trees, &t->allocated, sizeof *t->trees);
    }
    t->trees[t->n++] = (struct castd_tree){node, row};
}

const struct rrec_tree_node *
castd_find_tree(const struct castd_trees *t, const struct plan_node *node, int64_t epoch)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->trees[i].node->node == node && t->trees[i].row->epoch == epoch) {
            return t->trees[i].row;
        }
    }
    return NULL;
}

const struct plan_node *
castd_tree_agent(const struct castd *c, const struct rrec_tree_node *row)
{
    struct in6_addr source;

    if (ip6_parse(row->source_address, &source)) {
        for (size_t i = 0; i < c->topology.n_hosts; i++) {
            const struct plan_host *host = &c->topology.hosts[i];

            if (!memcmp(&host->address, &source, sizeof source)) {
                return plan_attachment(&c->topology, host->name);
            }
        }
    }
    return NULL;
}
