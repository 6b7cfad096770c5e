/* SPDX-License-Identifier: Apache-2.0
 *
 * What castlab writes to and reads from its lab's registry.
 */
#include <config.h>

#include "testbed/castlab/registry.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/registry/probes.h"
#include "ctl/registry/reach.h"
#include "ctl/registry/request.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/schema.h"
#include "ctl/registry/values.h"
#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "util.h"

struct registry {
    struct ovsdb_idl *idl;
    struct registry_reach reach;
    struct ovsdb_idl_txn *txn; /* in flight. */
    int64_t request;           /* Global.next_cfg of the last transaction; 0: none yet. */
    const struct topology *t;
};

struct registry *
registry_open(const char *db, const struct topology *t)
{
    struct registry *r = xzalloc(sizeof *r);
    r->idl = ovsdb_idl_create(db, &rrec_idl_class, true, true);
    registry_omit_secrets(r->idl);
    ovsdb_idl_set_leader_only(r->idl, false);
    registry_reach_init(&r->reach, r->idl, db);
    r->t = t;
    return r;
}

void
registry_close(struct registry *r)
{
    if (r) {
        if (r->txn) {
            ovsdb_idl_txn_destroy(r->txn);
        }
        registry_reach_uninit(&r->reach);
        ovsdb_idl_destroy(r->idl);
        free(r);
    }
}

void
registry_wait(struct registry *r, int msec)
{
    registry_reach_run(&r->reach);
    registry_reach_wait(&r->reach);
    poll_timer_wait(msec);
    poll_block();
    registry_reach_run(&r->reach);
}

static void
insert_node(struct ovsdb_idl_txn *txn, const struct topology *t, const struct topology_node *node)
{
    if (node->kind == KIND_HOST) {
        const struct rrec_host *host = rrec_host_insert(txn);
        rrec_host_set_name(host, node->name);
        rrec_host_set_address(host, ip6_text(&node->address));
        if (t->path_policy != PATH_NONE) {
            rrec_host_set_path_policy(host, path_policy_name(t->path_policy));
        }
    } else {
        const struct rrec_node *row = rrec_node_insert(txn);
        rrec_node_set_name(row, node->name);
        rrec_node_set_id(row, node->id);
        rrec_node_set_role(row, node_role_name(topology_role(node->kind)));
        rrec_node_set_no_aggregation(row, node->no_aggregation);
        rrec_node_set_plane(row, node->plane);
    }
}

static void
insert_link(struct ovsdb_idl_txn *txn, const struct topology *t, const struct topology_link *link)
{
    const struct rrec_link *row = rrec_link_insert(txn);
    rrec_link_set_a(row, t->nodes[link->ends[0].node].name);
    rrec_link_set_a_port(row, link->ends[0].netdev);
    rrec_link_set_b(row, t->nodes[link->ends[1].node].name);
    rrec_link_set_b_port(row, link->ends[1].netdev);
    rrec_link_set_kind(row, port_kind_name(link->kind));
    rrec_link_set_a_to_b(row, link->impair[0]);
    rrec_link_set_b_to_a(row, link->impair[1]);
}

static const struct rrec_node *
find_row(struct registry *r, const char *name)
{
    const struct rrec_node *row;
    RREC_NODE_FOR_EACH (row, r->idl) {
        if (!strcmp(row->name, name)) {
            return row;
        }
    }
    return NULL;
}

/* Fills a transaction. */
typedef void filler(struct registry *, struct ovsdb_idl_txn *, const char *arg);

static void
fill_topology(struct registry *r, struct ovsdb_idl_txn *txn, const char *arg OVS_UNUSED)
{
    ovsdb_idl_txn_add_comment(txn, "castlab: topology %s", r->t->name);
    const struct rrec_global *global = rrec_global_first(r->idl);
    rrec_global_set_fabric_mtu(global, r->t->fabric_mtu);
    if (r->t->path_form != PATH_FORM_AUTO) {
        rrec_global_set_path_form(global, path_form_name(r->t->path_form));
    }
    probe_choice_write(global, "", &r->t->probes);
    for (size_t i = 0; i < r->t->n_nodes; i++) {
        insert_node(txn, r->t, &r->t->nodes[i]);
    }
    for (size_t i = 0; i < r->t->n_links; i++) {
        insert_link(txn, r->t, &r->t->links[i]);
    }
}

static void
fill_no_agent(struct registry *r, struct ovsdb_idl_txn *txn, const char *node)
{
    const struct rrec_node *row = find_row(r, node);
    ovsdb_idl_txn_add_comment(txn, "castlab: no agent of %s", node);
    if (row) {
        rrec_node_set_control(row, "");
    }
}

static void
fill_nothing(struct registry *r OVS_UNUSED, struct ovsdb_idl_txn *txn, const char *arg OVS_UNUSED)
{
    ovsdb_idl_txn_add_comment(txn, "castlab: is castd there?");
}

/* Goes on with a transaction until it is done.  Each is a request, which castd answers, and gives all nodes a
 * generation: by that an agent shows that it is a new process. */
static char *
lacks_txn(struct registry *r, filler *fill, const char *arg, const char *what)
{
    if (!r->txn) {
        r->txn = ovsdb_idl_txn_create(r->idl);
        fill(r, r->txn, arg);
        request_number(r->idl, r->txn, true);
    }
    enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(r->txn);
    if (status == TXN_INCOMPLETE) {
        return xasprintf("the registry has not taken %s", what);
    }
    char *lack = NULL;
    if (status == TXN_SUCCESS) {
        r->request = ovsdb_idl_txn_get_increment_new_value(r->txn);
    } else {
        lack = xasprintf("the registry has not taken %s: %s", what,
                         status == TXN_ERROR ? ovsdb_idl_txn_get_error(r->txn)
                                             : ovsdb_idl_txn_status_to_string(status));
    }
    ovsdb_idl_txn_destroy(r->txn);
    r->txn = NULL;
    return lack;
}

char *
registry_lacks_castd(struct registry *r, const char *name OVS_UNUSED)
{
    return rrec_global_first(r->idl)              ? NULL
           : ovsdb_idl_has_ever_connected(r->idl) ? xstrdup("castd has not set up the registry")
                                                  : xstrdup("the registry does not answer");
}

char *
registry_lacks_topology(struct registry *r, const char *name OVS_UNUSED)
{
    return lacks_txn(r, fill_topology, NULL, "the topology");
}

char *
registry_lacks_no_agent(struct registry *r, const char *node)
{
    return lacks_txn(r, fill_no_agent, node, "the news that an agent ends");
}

char *
registry_lacks_answer(struct registry *r, const char *name OVS_UNUSED)
{
    char *lack = r->request ? NULL : lacks_txn(r, fill_nothing, NULL, "a request");
    if (!lack && rrec_global_first(r->idl)->nb_cfg < r->request) {
        lack = xstrdup("castd does not answer");
    }
    return lack;
}

bool
registry_port_mac(struct registry *r, const char *node, const char *port, char mac[MAC_TEXT_SIZE])
{
    const struct rrec_node *row = find_row(r, node);
    for (size_t i = 0; row && i < row->n_ports; i++) {
        const struct rrec_port *p = row->ports[i];
        if (!strcmp(p->name, port) && strlen(p->mac) < MAC_TEXT_SIZE) {
            ovs_strlcpy(mac, p->mac, MAC_TEXT_SIZE);
            return true;
        }
    }
    return false;
}

char *
registry_lacks_plan(struct registry *r, const char *name OVS_UNUSED)
{
    for (size_t i = 0; i < r->t->n_links; i++) {
        for (size_t j = 0; j < 2; j++) {
            const struct topology_end *end = &r->t->links[i].ends[j];
            const struct topology_node *node = &r->t->nodes[end->node];
            char mac[MAC_TEXT_SIZE];
            if (node->kind != KIND_HOST && !registry_port_mac(r, node->name, end->netdev, mac)) {
                return xasprintf("castd has not planned port '%s' of '%s'", end->netdev,
                                 node->name);
            }
        }
    }
    return NULL;
}

char *
registry_lacks_agent(struct registry *r, const char *node)
{
    const struct rrec_node *row = find_row(r, node);
    if (!row || !row->cfg || row->nb_cfg != row->cfg || strcmp(row->state, "ok") != 0) {
        return xasprintf("'%s' runs generation %lld, wanted %lld (state '%s')", node,
                         row ? (long long) row->nb_cfg : -1LL, row ? (long long) row->cfg : -1LL,
                         row ? row->state : "no such node");
    }
    return row->control[0] ? NULL : xasprintf("'%s' has not come back to the registry", node);
}

char *
registry_lacks_agents(struct registry *r, const char *name OVS_UNUSED)
{
    char *lack = NULL;
    for (size_t i = 0; i < r->t->n_nodes && !lack; i++) {
        if (r->t->nodes[i].kind != KIND_HOST) {
            lack = registry_lacks_agent(r, r->t->nodes[i].name);
        }
    }
    return lack;
}
