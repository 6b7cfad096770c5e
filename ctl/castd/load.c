/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry's rows as the planner's plain structures, and look-ups in both.
 *
 * Rows that castctl would not have written (a link to nowhere, a host with a
 * forbidden address) are left out and logged; ctl/registry/rows.c says which.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/group-settings.h"
#include "ctl/registry/rows.h"
#include "ctl/registry/values.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_load);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(60, 60);

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

static void
load_hosts(struct plan_topology *t, const struct registry_rows *rows)
{
    t->hosts = xcalloc(rows->n_hosts + 1, sizeof *t->hosts);
    for (; t->n_hosts < rows->n_hosts; t->n_hosts++) {
        const struct rrec_host *row = rows->hosts[t->n_hosts];
        struct plan_host *host = &t->hosts[t->n_hosts];

        ovs_strlcpy(host->name, row->name, sizeof host->name);
        ip6_parse(row->address, &host->address);
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
        link->a_to_b = load_impairment(row->a_to_b);
        link->b_to_a = load_impairment(row->b_to_a);
    }
}

static const struct rrec_node *
find_node_row(struct ovsdb_idl *idl, const char *name)
{
    const struct rrec_node *row;

    RREC_NODE_FOR_EACH (row, idl) {
        if (!strcmp(row->name, name)) {
            return row;
        }
    }
    return NULL;
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

static void
load_group(struct castd_group *g, const struct rrec_group *row, struct ovsdb_idl *idl)
{
    const struct rrec_source *source;
    const struct rrec_member *member;
    size_t n = 0;

    g->row = row;
    load_settings(&g->rollout.group, row);
    RREC_SOURCE_FOR_EACH (source, idl) {
        if (source->group == row) {
            g->source = source;
        }
    }
    RREC_MEMBER_FOR_EACH (member, idl) {
        n += member->group == row;
    }
    g->members = xcalloc(n + 1, sizeof *g->members);
    RREC_MEMBER_FOR_EACH (member, idl) {
        if (member->group == row) {
            g->members[g->n_members++] = member;
        }
    }
    qsort(g->members, g->n_members, sizeof *g->members, compare_members);
    g->rollout.members = xcalloc(n + 1, sizeof *g->rollout.members);
    g->rollout.group.members = xcalloc(n + 1, sizeof *g->rollout.group.members);
    g->rollout.group.n_members = g->n_members;
}

void
castd_load(struct castd *c, struct ovsdb_idl *idl)
{
    struct registry_rows rows;

    memset(c, 0, sizeof *c);
    c->idl = idl;
    c->global = rrec_global_first(idl);
    c->topology.fabric_mtu = (unsigned int) c->global->fabric_mtu;
    registry_rows_init(&rows, idl);
    log_left_out(&rows);
    load_nodes(&c->topology, &rows);
    load_hosts(&c->topology, &rows);
    load_links(&c->topology, &rows);
    plan_topology_prepare(&c->topology);

    c->n_nodes = c->topology.n_nodes;
    c->nodes = xcalloc(c->n_nodes + 1, sizeof *c->nodes);
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct castd_node *node = &c->nodes[i];

        node->node = &c->topology.nodes[i];
        node->row = find_node_row(idl, node->node->name);
        node->caught_up = node->row->nb_cfg >= node->row->cfg;
    }

    c->groups = xcalloc(rows.n_groups + 1, sizeof *c->groups);
    for (; c->n_groups < rows.n_groups; c->n_groups++) {
        load_group(&c->groups[c->n_groups], rows.groups[c->n_groups], idl);
    }
    registry_rows_uninit(&rows);
}

void
castd_unload(struct castd *c)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        rollout_uninit(&c->groups[i].rollout);
        free(c->groups[i].members);
    }
    free(c->groups);
    free(c->nodes);
    plan_topology_uninit(&c->topology);
}

/*
 * Look-ups in rows and plain structures.
 */

const struct rrec_key *
castd_find_key(const struct ovsdb_idl *idl, int64_t id)
{
    const struct rrec_key *row;

    RREC_KEY_FOR_EACH (row, idl) {
        if (row->id == id) {
            return row;
        }
    }
    return NULL;
}

const struct rrec_tree_node *
castd_find_tree(const struct rrec_node *node, const char *proxy, int64_t epoch)
{
    for (size_t i = 0; i < node->n_trees; i++) {
        if (node->trees[i]->epoch == epoch && !strcmp(node->trees[i]->proxy, proxy)) {
            return node->trees[i];
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
