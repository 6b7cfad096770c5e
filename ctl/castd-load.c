/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry's rows as the planner's plain structures.
 *
 * Rows that castctl would not have written (a link to nowhere, a host with a
 * forbidden address) are left out, and said so in the log.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd.h"
#include "ctl/values.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_load);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 6);

static size_t
count_nodes(struct ovsdb_idl *idl)
{
    const struct rrec_node *row;
    size_t n = 0;

    RREC_NODE_FOR_EACH (row, idl) {
        n++;
    }
    return n;
}

static void
load_nodes(struct plan_topology *t, struct ovsdb_idl *idl)
{
    const struct rrec_node *row;

    t->nodes = xcalloc(count_nodes(idl) + 1, sizeof *t->nodes);
    RREC_NODE_FOR_EACH (row, idl) {
        struct plan_node *node = &t->nodes[t->n_nodes];

        if (!name_is_valid(row->name)) {
            VLOG_WARN_RL(&rl, "Node.name \"%s\": " NAME_RULE, row->name);
            continue;
        }
        ovs_strlcpy(node->name, row->name, sizeof node->name);
        node->id = (uint16_t) row->id;
        node->agent = !strcmp(row->role, "agent");
        node->no_aggregation = row->no_aggregation;
        node->ports = xcalloc(row->n_ports + 1, sizeof *node->ports);
        for (size_t i = 0; i < row->n_ports; i++) {
            if (ifname_is_valid(row->ports[i]->name)) {
                struct plan_port *port = &node->ports[node->n_ports++];

                ovs_strlcpy(port->name, row->ports[i]->name, sizeof port->name);
                port->number = (uint16_t) row->ports[i]->number;
            }
        }
        t->n_nodes++;
    }
}

static void
load_hosts(struct plan_topology *t, struct ovsdb_idl *idl)
{
    const struct rrec_host *row;
    size_t n = 0;

    RREC_HOST_FOR_EACH (row, idl) {
        n++;
    }
    t->hosts = xcalloc(n + 1, sizeof *t->hosts);
    RREC_HOST_FOR_EACH (row, idl) {
        struct plan_host *host = &t->hosts[t->n_hosts];

        if (!name_is_valid(row->name) || !ip6_parse(row->address, &host->address)
            || host_address_check(&host->address)) {
            VLOG_WARN_RL(&rl, "host \"%s\" has no valid name and address (%s): left out", row->name,
                         row->address);
            continue;
        }
        ovs_strlcpy(host->name, row->name, sizeof host->name);
        t->n_hosts++;
    }
}

static void
load_impairment(const struct rrec_link *row, const char *column, const char *text,
                struct impair_params *params)
{
    char *error;

    if (!impair_parse(text, params, &error)) {
        VLOG_WARN_RL(&rl, "link %s:%s %s:%s: %s: %s: left out", row->a, row->a_port, row->b,
                     row->b_port, column, error);
        free(error);
        *params = (struct impair_params){0};
    }
}

static void
load_links(struct plan_topology *t, struct ovsdb_idl *idl)
{
    const struct rrec_link *row;
    size_t n = 0;

    RREC_LINK_FOR_EACH (row, idl) {
        n++;
    }
    t->links = xcalloc(n + 1, sizeof *t->links);
    RREC_LINK_FOR_EACH (row, idl) {
        struct plan_link *link = &t->links[t->n_links];

        if (!name_is_valid(row->a) || !name_is_valid(row->b) || !ifname_is_valid(row->a_port)
            || !ifname_is_valid(row->b_port)) {
            VLOG_WARN_RL(&rl, "link %s:%s %s:%s has an invalid end: left out", row->a, row->a_port,
                         row->b, row->b_port);
            continue;
        }
        ovs_strlcpy(link->a, row->a, sizeof link->a);
        ovs_strlcpy(link->a_port, row->a_port, sizeof link->a_port);
        ovs_strlcpy(link->b, row->b, sizeof link->b);
        ovs_strlcpy(link->b_port, row->b_port, sizeof link->b_port);
        link->kind = !strcmp(row->kind, "tap") ? PORT_TAP : PORT_PACKET;
        load_impairment(row, "a_to_b", row->a_to_b, &link->a_to_b);
        load_impairment(row, "b_to_a", row->b_to_a, &link->b_to_a);
        t->n_links++;
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

static void
load_group(struct castd_group *g, const struct rrec_group *row, struct ovsdb_idl *idl)
{
    const struct rrec_source *source;
    const struct rrec_member *member;
    size_t n = 0;

    g->row = row;
    g->prune = row->policy && !strcmp(row->policy, "prune");
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
    const struct rrec_group *group;
    size_t n = 0;

    memset(c, 0, sizeof *c);
    c->idl = idl;
    c->global = rrec_global_first(idl);
    c->topology.fabric_mtu = (unsigned int) c->global->fabric_mtu;
    load_nodes(&c->topology, idl);
    load_hosts(&c->topology, idl);
    load_links(&c->topology, idl);
    plan_topology_prepare(&c->topology);

    c->n_nodes = c->topology.n_nodes;
    c->nodes = xcalloc(c->n_nodes + 1, sizeof *c->nodes);
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct castd_node *node = &c->nodes[i];

        node->node = &c->topology.nodes[i];
        node->row = find_node_row(idl, node->node->name);
        node->caught_up = node->row->nb_cfg >= node->row->cfg;
    }

    RREC_GROUP_FOR_EACH (group, idl) {
        n++;
    }
    c->groups = xcalloc(n + 1, sizeof *c->groups);
    RREC_GROUP_FOR_EACH (group, idl) {
        if (name_is_valid(group->name)) {
            load_group(&c->groups[c->n_groups++], group, idl);
        } else {
            VLOG_WARN_RL(&rl, "Group.name \"%s\": " NAME_RULE, group->name);
        }
    }
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
