/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the nodes' rows equal to what is wanted.
 *
 * Only differences are written: rows that are right stay as they are, with their
 * UUID.  A node of which anything changed gets a new generation (Node.cfg), and
 * so do those of its trees that changed.  A request in Global.next_cfg that is
 * not answered yet gives every node a new generation, so that --wait=agents
 * hears from agents and not from rows.
 *
 * Trees that nobody wants go away at source agents at once, and at switches when
 * the agent has applied that: packets on their way still find their receivers.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/group-settings.h"
#include "ctl/registry/values.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_sync);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 6);

/* Writes a column if it differs, and notes that in 'changed'. */
#define SYNC_NUMBER(TABLE, ROW, COLUMN, VALUE)       \
    do {                                             \
        if ((ROW)->COLUMN != (VALUE)) {              \
            rrec_##TABLE##_set_##COLUMN(ROW, VALUE); \
            changed = true;                          \
        }                                            \
    } while (0)
#define SYNC_STRING(TABLE, ROW, COLUMN, VALUE)       \
    do {                                             \
        if (strcmp((ROW)->COLUMN, VALUE)) {          \
            rrec_##TABLE##_set_##COLUMN(ROW, VALUE); \
            changed = true;                          \
        }                                            \
    } while (0)

static bool
sync_port(const struct rrec_port *row, const struct port_config *p)
{
    bool changed = false;
    char impairment[IMPAIR_TEXT_SIZE];
    char mac[MAC_TEXT_SIZE], peer_mac[MAC_TEXT_SIZE];

    static const uint8_t no_mac[6];
    bool has_peer_mac = memcmp(p->peer_mac, no_mac, sizeof no_mac);

    mac_format(p->mac, mac);
    mac_format(p->peer_mac, peer_mac);
    SYNC_STRING(port, row, name, p->name);
    SYNC_NUMBER(port, row, number, p->number);
    SYNC_STRING(port, row, kind, port_kind_name(p->kind));
    SYNC_STRING(port, row, role, port_role_name(p->role));
    SYNC_STRING(port, row, mac, mac);
    SYNC_STRING(port, row, peer, p->peer);
    SYNC_STRING(port, row, peer_address, ip6_text(&p->peer_address));
    SYNC_STRING(port, row, peer_mac, has_peer_mac ? peer_mac : "");
    impair_format(&p->rx, impairment);
    SYNC_STRING(port, row, rx_impairment, impairment);
    impair_format(&p->tx, impairment);
    SYNC_STRING(port, row, tx_impairment, impairment);
    return changed;
}

static bool
sync_ports(struct ovsdb_idl_txn *txn, const struct rrec_node *row, const struct node_config *want)
{
    struct rrec_port **ports = xcalloc(want->n_ports + 1, sizeof *ports);
    bool changed = row->n_ports != want->n_ports;

    for (size_t i = 0; i < want->n_ports; i++) {
        for (size_t j = 0; j < row->n_ports && !ports[i]; j++) {
            if (!strcmp(row->ports[j]->name, want->ports[i].name)) {
                ports[i] = row->ports[j];
            }
        }
        if (!ports[i]) {
            ports[i] = rrec_port_insert(txn);
            changed = true;
        }
        changed |= sync_port(ports[i], &want->ports[i]);
    }
    if (changed) {
        rrec_node_set_ports(row, ports, want->n_ports);
    }
    free(ports);
    return changed;
}

static bool
sync_routes(struct ovsdb_idl_txn *txn, const struct rrec_node *row, const struct node_config *want)
{
    struct rrec_route **routes = xcalloc(want->n_routes + 1, sizeof *routes);
    bool changed = row->n_routes != want->n_routes;

    for (size_t i = 0; i < want->n_routes; i++) {
        const struct route_config *r = &want->routes[i];
        char prefix[INET6_ADDRSTRLEN + 4];

        snprintf(prefix, sizeof prefix, "%s/%u", ip6_text(&r->prefix), r->plen);
        for (size_t j = 0; j < row->n_routes && !routes[i]; j++) {
            if (!strcmp(row->routes[j]->prefix, prefix)) {
                routes[i] = row->routes[j];
            }
        }
        if (!routes[i]) {
            routes[i] = rrec_route_insert(txn);
            changed = true;
        }
        SYNC_STRING(route, routes[i], prefix, prefix);
        SYNC_NUMBER(route, routes[i], port, r->port);
        SYNC_STRING(route, routes[i], next_hop, ip6_text(&r->next_hop));
    }
    if (changed) {
        rrec_node_set_routes(row, routes, want->n_routes);
    }
    free(routes);
    return changed;
}

static bool
sync_sids(struct ovsdb_idl_txn *txn, const struct rrec_node *row, const struct node_config *want)
{
    struct rrec_sid **sids = xcalloc(want->n_sids + 1, sizeof *sids);
    bool changed = row->n_sids != want->n_sids;

    for (size_t i = 0; i < want->n_sids; i++) {
        char prefix[INET6_ADDRSTRLEN + 4];

        snprintf(prefix, sizeof prefix, "%s/%u", ip6_text(&want->sids[i].prefix),
                 want->sids[i].plen);
        for (size_t j = 0; j < row->n_sids && !sids[i]; j++) {
            if (!strcmp(row->sids[j]->prefix, prefix)) {
                sids[i] = row->sids[j];
            }
        }
        if (!sids[i]) {
            sids[i] = rrec_sid_insert(txn);
            changed = true;
        }
        SYNC_STRING(sid, sids[i], prefix, prefix);
        SYNC_STRING(sid, sids[i], behaviour, sid_behaviour_name(want->sids[i].behaviour));
    }
    if (changed) {
        rrec_node_set_sids(row, sids, want->n_sids);
    }
    free(sids);
    return changed;
}

/* Makes *rows, a set of branches, equal to 'want'; true if anything changed.  The caller sets the
 * column to *rows, which is malloc'd. */
static bool
sync_branches(struct ovsdb_idl_txn *txn, struct rrec_branch **have, size_t n_have,
              const struct branch_config *want, size_t n_want, struct rrec_branch ***rows)
{
    bool changed = n_have != n_want;

    *rows = xcalloc(n_want + 1, sizeof **rows);
    for (size_t i = 0; i < n_want; i++) {
        const struct branch_config *b = &want[i];
        struct rrec_branch *row = NULL;
        char va[24];

        for (size_t j = 0; j < n_have && !row; j++) {
            if (have[j]->id == b->id) {
                row = have[j];
            }
        }
        if (!row) {
            row = rrec_branch_insert(txn);
            rrec_branch_set_kind(row, branch_kind_name(b->kind));
            changed = true;
        }
        snprintf(va, sizeof va, "0x%" PRIx64, b->va);
        SYNC_NUMBER(branch, row, id, b->id);
        SYNC_STRING(branch, row, kind, branch_kind_name(b->kind));
        SYNC_STRING(branch, row, name, b->name);
        SYNC_STRING(branch, row, address, ip6_text(&b->address));
        SYNC_STRING(branch, row, edge, ip6_text(&b->edge));
        SYNC_NUMBER(branch, row, qpn, b->qpn);
        SYNC_NUMBER(branch, row, rkey, b->rkey);
        SYNC_STRING(branch, row, va, va);
        SYNC_NUMBER(branch, row, len, (int64_t) b->len);
        (*rows)[i] = row;
    }
    return changed;
}

static bool
sync_outer_das(const struct rrec_tree_node *row, const struct tree_config *t)
{
    const char **das = xcalloc(t->n_outer_da + 1, sizeof *das);
    bool changed = row->n_outer_da != t->n_outer_da;

    for (size_t i = 0; i < t->n_outer_da; i++) {
        bool found = false;

        das[i] = xstrdup(ip6_text(&t->outer_da[i]));
        for (size_t j = 0; j < row->n_outer_da; j++) {
            found |= !strcmp(row->outer_da[j], das[i]);
        }
        changed |= !found;
    }
    if (changed) {
        rrec_tree_node_set_outer_da(row, das, t->n_outer_da);
    }
    for (size_t i = 0; i < t->n_outer_da; i++) {
        free(CONST_CAST(char *, das[i]));
    }
    free(das);
    return changed;
}

/* "" if there is no SID. */
static const char *
sid_text(const struct in6_addr *sid)
{
    return IN6_IS_ADDR_UNSPECIFIED(sid) ? "" : ip6_text(sid);
}

/* Updates the node's copy of a key, which all trees of the node share.  True if it changed. */
static bool
sync_key(const struct castd *c, const char *node, uint32_t id, struct rrec_node_key **copy)
{
    const struct rrec_key *key = castd_find_key(c->idl, id);
    const struct rrec_node_key *row;
    bool changed = false;

    *copy = NULL;
    RREC_NODE_KEY_FOR_EACH(row, c->idl)
    {
        if (row->id == id && !strcmp(row->node, node)) {
            *copy = CONST_CAST(struct rrec_node_key *, row);
        }
    }
    if (!*copy) {
        *copy = rrec_node_key_insert(ovsdb_idl_txn_get(&c->global->header_));
        rrec_node_key_set_node(*copy, node);
        rrec_node_key_set_id(*copy, id);
        changed = true;
    }
    if (key) { /* NULL: deleted past castctl; the copy keeps what it has. */
        SYNC_STRING(node_key, *copy, secret, key->secret);
    }
    return changed;
}

static bool
has_key(const struct rrec_tree_node *row, uint32_t id)
{
    for (size_t i = 0; i < row->n_keys; i++) {
        if (row->keys[i]->id == id) {
            return true;
        }
    }
    return false;
}

static bool
sync_auth(const struct castd *c, const char *node, const struct rrec_tree_node *row,
          const struct auth_config *want)
{
    struct rrec_node_key **keys = xcalloc(want->n_keys + 1, sizeof *keys);
    bool changed = row->n_keys != want->n_keys;
    const char *names[2];
    size_t n = auth_tlvs_names(want->tlvs, names);

    for (size_t i = 0; i < want->n_keys; i++) {
        changed |= !has_key(row, want->keys[i].id);
        changed |= sync_key(c, node, want->keys[i].id, &keys[i]);
    }
    if (changed) {
        rrec_tree_node_set_keys(row, keys, want->n_keys);
    }
    free(keys);
    SYNC_NUMBER(tree_node, row, auth_key, want->key);
    if (auth_tlvs_parse(row->auth, row->n_auth) != want->tlvs) {
        rrec_tree_node_set_auth(row, names, n);
        changed = true;
    }
    return changed;
}

static bool
sync_tree(const struct castd *c, struct ovsdb_idl_txn *txn, const char *node,
          const struct rrec_tree_node *row, const struct tree_config *t)
{
    struct rrec_branch **rows;
    bool changed = false;

    SYNC_STRING(tree_node, row, group, t->group);
    SYNC_NUMBER(tree_node, row, epoch, t->epoch);
    SYNC_STRING(tree_node, row, proxy, ip6_text(&t->proxy));
    SYNC_NUMBER(tree_node, row, designated_qpn, t->designated_qpn);
    SYNC_NUMBER(tree_node, row, start_psn, t->start_psn.v);
    SYNC_NUMBER(tree_node, row, mtu, t->mtu);
    SYNC_NUMBER(tree_node, row, designated_rkey, t->designated_rkey);
    SYNC_NUMBER(tree_node, row, region_len, (int64_t) t->region_len);
    SYNC_STRING(tree_node, row, source_address, ip6_text(&t->source));
    SYNC_NUMBER(tree_node, row, source_qpn, t->source_qpn);
    if (!row->mode || strcmp(row->mode, tree_mode_name(t->mode))) {
        rrec_tree_node_set_mode(row, tree_mode_name(t->mode));
        changed = true;
    }
    SYNC_NUMBER(tree_node, row, provisioned, t->provisioned);
    SYNC_STRING(tree_node, row, mcast_group, sid_text(&t->mcast_group));
    SYNC_STRING(tree_node, row, mcast_source, sid_text(&t->mcast_source));
    SYNC_STRING(tree_node, row, upstream, sid_text(&t->upstream));
    SYNC_NUMBER(tree_node, row, root, t->root);
    SYNC_STRING(tree_node, row, replication_sid, sid_text(&t->replication_sid));
    SYNC_STRING(tree_node, row, parent_sid, sid_text(&t->parent_sid));
    changed |= tree_policy_write(row, &t->policy);
    SYNC_NUMBER(tree_node, row, open, t->open);
    changed |= sync_outer_das(row, t);
    changed |= sync_auth(c, node, row, &t->auth);
    if (sync_branches(txn, row->branches, row->n_branches, t->branches, t->n_branches, &rows)) {
        rrec_tree_node_set_branches(row, rows, t->n_branches);
        changed = true;
    }
    free(rows);
    if (sync_branches(txn, row->copies, row->n_copies, t->copies, t->n_copies, &rows)) {
        rrec_tree_node_set_copies(row, rows, t->n_copies);
        changed = true;
    }
    free(rows);
    return changed;
}

/* Is this tree at 'node' one of those wanted? */
static bool
is_wanted(const struct castd *c, const struct plan_node *node, const struct rrec_tree_node *row)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        const struct castd_group *g = &c->groups[i];

        for (size_t j = 0; j < g->rollout.plan.n_trees; j++) {
            if (g->rollout.plan.trees[j].node == node && row->epoch == g->row->epoch
                && !strcmp(row->proxy, g->row->proxy)) {
                return true;
            }
        }
    }
    return false;
}

/* May a source agent still send into this tree, which nobody wants?  Then switches keep it.  Ask
 * before any row is changed. */
static bool
is_fed(const struct castd *c, const struct rrec_tree_node *row)
{
    const struct plan_node *agent = castd_tree_agent(c, row);

    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct castd_node *n = &c->nodes[i];
        const struct rrec_tree_node *tree = castd_find_tree(n->row, row->proxy, row->epoch);

        if (plan_is_agent(n->node)
            && ((tree && !is_wanted(c, n->node, tree)) || (n->node == agent && !n->caught_up))) {
            return true;
        }
    }
    return false;
}

/* Fills rows[] with the trees that stay although nobody wants them. */
static size_t
kept_trees(const struct castd *c, const struct castd_node *n, struct rrec_tree_node **rows)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n->row->n_trees && !plan_is_agent(n->node); i++) {
        if (!is_wanted(c, n->node, n->row->trees[i]) && is_fed(c, n->row->trees[i])) {
            rows[n_kept++] = n->row->trees[i];
        }
    }
    return n_kept;
}

static bool
sync_trees(struct castd *c, struct ovsdb_idl_txn *txn, const struct castd_node *n,
           struct rrec_tree_node **rows, size_t n_rows)
{
    bool changed = false;

    for (size_t i = 0; i < c->n_groups; i++) {
        struct castd_group *g = &c->groups[i];

        for (size_t j = 0; j < g->rollout.plan.n_trees; j++) {
            const struct plan_tree *tree = &g->rollout.plan.trees[j];
            const struct rrec_tree_node *row;

            if (tree->node != n->node) {
                continue;
            }
            row = castd_find_tree(n->row, g->row->proxy, g->row->epoch);
            if (!row) {
                row = rrec_tree_node_insert(txn);
            }
            if (sync_tree(c, txn, n->row->name, row, &tree->config)) {
                rrec_tree_node_set_generation(row, n->row->cfg + 1);
                g->changed = true;
                changed = true;
            }
            rows[n_rows++] = CONST_CAST(struct rrec_tree_node *, row);
        }
    }
    if (changed || n_rows != n->row->n_trees) {
        rrec_node_set_trees(n->row, rows, n_rows);
        return true;
    }
    return false;
}

static bool
sync_base(const struct castd *c, struct ovsdb_idl_txn *txn, const struct castd_node *n)
{
    struct node_config want;
    char *error = plan_node_config(&c->topology, n->node, &want);
    bool changed;

    if (error) {
        VLOG_ERR_RL(&rl, "%s: what it had stays", error);
        free(error);
        return false;
    }
    changed = sync_ports(txn, n->row, &want);
    changed |= sync_routes(txn, n->row, &want);
    changed |= sync_sids(txn, n->row, &want);
    node_config_uninit(&want);
    return changed;
}

void
castd_sync(struct castd *c)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_get(&c->global->header_);
    bool asked = c->global->nb_cfg != c->global->next_cfg;
    struct rrec_tree_node ***trees = xcalloc(c->n_nodes + 1, sizeof *trees);
    size_t *n_kept = xcalloc(c->n_nodes + 1, sizeof *n_kept);

    for (size_t i = 0; i < c->n_nodes; i++) {
        trees[i] = xcalloc(c->nodes[i].row->n_trees + c->n_groups + 1, sizeof *trees[i]);
        n_kept[i] = kept_trees(c, &c->nodes[i], trees[i]);
    }
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct castd_node *n = &c->nodes[i];
        bool changed = sync_base(c, txn, n);

        changed |= sync_trees(c, txn, n, trees[i], n_kept[i]);
        if (changed || asked || !n->row->cfg) {
            rrec_node_set_cfg(n->row, n->row->cfg + 1);
        }
        free(trees[i]);
    }
    free(trees);
    free(n_kept);
}
