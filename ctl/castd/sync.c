/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the rows of nodes' trees equal to what is wanted.
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
#include "ctl/castd/columns.h"
#include "ctl/registry/group-settings.h"
#include "ctl/registry/intent.h"
#include "ctl/registry/values.h"
#include "timeval.h"
#include "util.h"

/* Makes a row of a tree with this start PSN equal to 'b'.  True if it changed. */
static bool
sync_branch(const struct rrec_branch *row, psn_t start_psn, const struct branch_config *b)
{
    const char *join = b->join == BRANCH_COUNTS ? NULL : branch_join_name(b->join);
    bool is_receiver = b->kind == BRANCH_RECEIVER;
    bool changed = false;
    char va[24];

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
    SYNC_OPTIONAL(branch, row, psn, is_receiver && !psn_eq(b->psn, start_psn), b->psn.v);
    SYNC_OPTIONAL(branch, row, designated_qpn, b->designated_qpn != 0, b->designated_qpn);
    SYNC_OPTIONAL(branch, row, first, b->late, b->first.v);
    if (!row->join != !join || (join && strcmp(row->join, join))) {
        rrec_branch_set_join(row, join);
        changed = true;
    }
    return changed;
}

/* Makes *rows, a set of a node's branches, equal to 'want'; true if anything changed.  The caller sets the
 * column to *rows, which is malloc'd. */
static bool
sync_branches(struct ovsdb_idl_txn *txn, const char *node, struct rrec_branch **have, size_t n_have,
              psn_t start_psn, const struct branch_config *want, size_t n_want,
              struct rrec_branch ***rows)
{
    bool changed = n_have != n_want;

    *rows = xcalloc(n_want + 1, sizeof **rows);
    for (size_t i = 0; i < n_want; i++) {
        const struct branch_config *b = &want[i];
        struct rrec_branch *row = NULL;

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
        SYNC_OWNER(branch, row, node);
        changed |= sync_branch(row, start_psn, b);
        (*rows)[i] = row;
    }
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
sync_key(struct castd *c, const char *node, uint32_t id, struct rrec_node_key **copy)
{
    const struct rrec_key *key = castd_find_key(c, id);
    bool changed = false;

    *copy = CONST_CAST(struct rrec_node_key *, castd_find_node_key(c, node, id));
    if (!*copy) {
        *copy = rrec_node_key_insert(ovsdb_idl_txn_get(&c->global->header_));
        rrec_node_key_set_node(*copy, node);
        rrec_node_key_set_id(*copy, id);
        castd_add_node_key(c, *copy);
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
sync_auth(struct castd *c, const char *node, const struct rrec_tree_node *row,
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
    SYNC_NUMBER(tree_node, row, auth_responses, want->responses);
    if (auth_tlvs_parse(row->auth, row->n_auth) != want->tlvs) {
        rrec_tree_node_set_auth(row, names, n);
        changed = true;
    }
    return changed;
}

static bool
same_numbers(const int64_t *have, size_t n, const uint16_t *want, size_t n_want)
{
    bool same = n == n_want;

    for (size_t i = 0; i < n && same; i++) { /* both are in order. */
        same = have[i] == want[i];
    }
    return same;
}

static bool
sync_plane(const struct rrec_plane *row, const char *node, const struct plane_config *p)
{
    bool changed = false;

    SYNC_STRING(plane, row, node, node);
    SYNC_STRING(plane, row, name, p->name);
    SYNC_NUMBER(plane, row, usable, p->usable);
    SYNC_NUMBER(plane, row, preferred, p->preferred);
    SYNC_STRING(plane, row, sid, ip6_text(&p->sid));
    SYNC_STRING(plane, row, program, ip6_text(&p->program));
    SYNC_NUMBER(plane, row, port, p->port);
    if (!same_numbers(row->probes, row->n_probes, p->probes, p->n_probes)) {
        int64_t *probes = xcalloc(p->n_probes + 1, sizeof *probes);

        for (size_t i = 0; i < p->n_probes; i++) {
            probes[i] = p->probes[i];
        }
        rrec_plane_set_probes(row, probes, p->n_probes);
        free(probes);
        changed = true;
    }
    return changed;
}

/* Makes *rows, a node's planes, equal to 'want'; true if anything changed.  The caller sets the column
 * to *rows, which is malloc'd. */
static bool
sync_planes(struct ovsdb_idl_txn *txn, const char *node, struct rrec_plane **have, size_t n_have,
            const struct plane_config *want, size_t n_want, struct rrec_plane ***rows)
{
    bool changed = n_have != n_want;

    *rows = xcalloc(n_want + 1, sizeof **rows);
    for (size_t i = 0; i < n_want; i++) {
        for (size_t j = 0; j < n_have && !(*rows)[i]; j++) {
            (*rows)[i] = strcmp(have[j]->name, want[i].name) ? NULL : have[j];
        }
        if (!(*rows)[i]) {
            (*rows)[i] = rrec_plane_insert(txn);
            changed = true;
        }
        changed |= sync_plane((*rows)[i], node, &want[i]);
    }
    return changed;
}

static bool
sync_tree_planes(struct ovsdb_idl_txn *txn, const char *node, const struct rrec_tree_node *row,
                 const struct tree_config *t)
{
    struct rrec_plane **rows;
    bool changed = false;

    if (sync_planes(txn, node, row->planes, row->n_planes, t->planes, t->n_planes, &rows)) {
        rrec_tree_node_set_planes(row, rows, t->n_planes);
        changed = true;
    }
    free(rows);
    if (sync_planes(txn, node, row->parent_planes, row->n_parent_planes, t->parent_planes,
                    t->n_parent_planes, &rows)) {
        rrec_tree_node_set_parent_planes(row, rows, t->n_parent_planes);
        changed = true;
    }
    free(rows);
    return changed;
}

static bool
sync_tree(struct castd *c, struct ovsdb_idl_txn *txn, const char *node,
          const struct rrec_tree_node *row, const struct tree_config *t)
{
    struct rrec_branch **rows;
    bool changed = false;

    SYNC_OWNER(tree_node, row, node);
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
    SYNC_STRING(tree_node, row, outer_source, sid_text(&t->outer_source));
    SYNC_STRING(tree_node, row, mcast_group, sid_text(&t->mcast_group));
    SYNC_STRING(tree_node, row, upstream, sid_text(&t->upstream));
    SYNC_NUMBER(tree_node, row, root, t->root);
    SYNC_STRING(tree_node, row, replication_sid, sid_text(&t->replication_sid));
    SYNC_STRING(tree_node, row, parent_sid, sid_text(&t->parent_sid));
    SYNC_STRING(tree_node, row, parent_program, sid_text(&t->parent_program));
    changed |= tree_policy_write(row, &t->policy);
    SYNC_NUMBER(tree_node, row, rate_floor, (int64_t) t->rate_floor);
    SYNC_NUMBER(tree_node, row, open, t->open);
    SYNC_ADDRESSES(tree_node, row, outer_da, t->outer_da, t->n_outer_da);
    SYNC_STRING(tree_node, row, outer_program, sid_text(&t->outer_program));
    changed |= sync_tree_planes(txn, node, row, t);
    changed |= sync_auth(c, node, row, &t->auth);
    if (sync_branches(txn, node, row->branches, row->n_branches, t->start_psn, t->branches,
                      t->n_branches, &rows)) {
        rrec_tree_node_set_branches(row, rows, t->n_branches);
        changed = true;
    }
    free(rows);
    if (sync_branches(txn, node, row->copies, row->n_copies, t->start_psn, t->copies, t->n_copies,
                      &rows)) {
        rrec_tree_node_set_copies(row, rows, t->n_copies);
        changed = true;
    }
    free(rows);
    return changed;
}

/* The group's planned tree at 'node'; NULL: none. */
static const struct plan_tree *
find_plan(const struct castd_group *g, const struct plan_node *node)
{
    for (size_t i = 0; i < g->rollout.plan.n_trees; i++) {
        if (g->rollout.plan.trees[i].node == node) {
            return &g->rollout.plan.trees[i];
        }
    }
    return NULL;
}

/* Is this tree wanted?  Of two that somebody has written the first is.  The group may be NULL: it
 * is gone. */
static bool
is_wanted(const struct castd_group *g, const struct castd_tree *t)
{
    return g && t->row->epoch == g->row->epoch && find_plan(g, t->node->node)
           && castd_find_tree(&g->trees, t->node->node, g->row->epoch) == t->row;
}

/* May a source agent still send into this tree, which nobody wants?  Then switches and edges keep it.
 * 'trees' are those of its Proxy Address.  Ask before any row is changed. */
static bool
is_fed(const struct castd *c, const struct castd_group *g, const struct castd_trees *trees,
       const struct rrec_tree_node *row)
{
    const struct plan_node *agent = castd_tree_agent(c, row);

    for (size_t i = 0; i < trees->n; i++) {
        const struct castd_tree *t = &trees->trees[i];

        if (intent_tree_is_source(t->node->row, t->row) && t->row->epoch == row->epoch
            && !is_wanted(g, t)) {
            return true;
        }
    }
    return agent && !c->nodes[agent - c->topology.nodes].caught_up;
}

/* Takes out those of one Proxy Address's trees that nobody wants: at their source agents at
 * once, at other nodes unless they are fed. */
static void
remove_unwanted(const struct castd *c, const struct castd_group *g, struct castd_trees *trees)
{
    bool *stays = xcalloc(trees->n + 1, sizeof *stays);
    size_t n = 0;

    for (size_t i = 0; i < trees->n; i++) {
        const struct castd_tree *t = &trees->trees[i];

        stays[i] = is_wanted(g, t)
                   || (!intent_tree_is_source(t->node->row, t->row) && is_fed(c, g, trees, t->row));
    }
    for (size_t i = 0; i < trees->n; i++) {
        struct castd_tree *t = &trees->trees[i];

        if (stays[i]) {
            trees->trees[n++] = *t;
        } else {
            rrec_tree_node_verify_lost(t->row); /* a loss reported just now is looked at first. */
            /* ovsdb-server 3.1 may leave it in the list, though that is weak. */
            if (t->node->row->n_trees) {
                rrec_node_update_trees_delvalue(t->node->row, t->row);
                t->node->listed = true;
            }
            rrec_tree_node_delete(t->row);
            castd_begin_generation(t->node);
        }
    }
    trees->n = n;
    free(stays);
}

/* Is the member with this branch doubted?  NULL: it is not. */
static const struct rrec_member *
find_doubted(const struct castd_group *g, int64_t branch)
{
    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i];

        if (m->n_new_qpn && m->branch == branch && m->epoch == g->row->epoch) {
            return m;
        }
    }
    return NULL;
}

/* Tells edges whom they are to ask whether they are alive. */
static bool
sync_doubts(const struct castd_group *g, const struct rrec_tree_node *tree)
{
    bool changed = false;

    for (size_t i = 0; i < tree->n_branches; i++) {
        const struct rrec_branch *b = tree->branches[i];
        const struct rrec_member *m = find_doubted(g, b->id);

        SYNC_OPTIONAL(branch, b, doubt, m != NULL, m ? m->doubt : 0);
    }
    return changed;
}

static bool
is_asking(const struct rrec_node *node, const struct rrec_tree_node *row)
{
    return castd_tree_has_life(node, row) && row->life && row->life != row->life_answered;
}

/* If a node has begun another life in this epoch there is a new instance (docs/draft-notes.md, R25).
 * None comes again, also not when the registry is put back to what it was: it is the time, or more. */
static bool
next_instance(const struct castd_group *g)
{
    bool asked = false;

    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_tree *t = &g->trees.trees[i];

        asked |= t->row->epoch == g->row->epoch && is_asking(t->node->row, t->row);
    }
    if (asked) {
        rrec_group_set_instance(g->row, MAX(g->row->instance + 1, time_wall()));
    }
    return asked;
}

/* The least instance that the node of 'tree' takes of responses, as soon as all are answered. */
static int64_t
response_floor(const struct castd *c, const struct castd_group *g, const struct plan_tree *tree,
               bool is_next)
{
    const struct rrec_tree_node *row = castd_find_tree(&g->trees, tree->node, g->row->epoch);
    const struct castd_node *n = &c->nodes[tree->node - c->topology.nodes];

    return !row                                ? 0
           : is_next && is_asking(n->row, row) ? g->row->instance
           : !castd_tree_has_life(n->row, row) ? 0
           : plan_tree_is_source(tree)         ? row->response_instance
                                               : row->instance;
}

/* Who takes the responses of 'tree', which is not the source agent's: the node of its parent's SID, or
 * that agent. */
static const struct plan_tree *
find_parent(const struct castd_group *g, const struct plan_tree *tree)
{
    const struct plan *plan = &g->rollout.plan;

    for (size_t i = 0; i < plan->n_trees && !tree->config.root; i++) {
        if (plan->trees[i].node->id == node_id_of(&tree->config.parent_sid)) {
            return &plan->trees[i];
        }
    }
    return tree->config.root ? plan_agent_tree(plan) : NULL;
}

/* Does the switch that answers the source know what to send that with?  True if the agent does. */
static bool
root_has_applied(const struct castd *c, const struct castd_group *g)
{
    const struct plan *plan = &g->rollout.plan;

    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct plan_tree *tree = &plan->trees[i];

        if (tree->config.root && !plan_tree_is_source(tree)) {
            const struct rrec_tree_node *row =
                castd_find_tree(&g->trees, tree->node, g->row->epoch);

            return row && castd_tree_applied(c->nodes[tree->node - c->topology.nodes].row, row);
        }
    }
    return true;
}

/* Answers the node if it has asked.  The source agent has the new instance in any case; others send
 * responses with none that is below what their parent takes.  The agent's first one waits for that: what
 * the root said at first would be refused. */
static bool
sync_life(const struct castd *c, const struct castd_group *g, const struct plan_tree *tree,
          const struct rrec_tree_node *row, bool is_next)
{
    const struct rrec_node *node = c->nodes[tree->node - c->topology.nodes].row;
    bool asks = is_asking(node, row), is_source = plan_tree_is_source(tree);
    int64_t response = row->response_instance;
    bool changed = false;

    if (is_source) {
        response = asks && is_next ? g->row->instance : response;
    } else if (castd_tree_has_life(node, row)) {
        const struct plan_tree *parent = find_parent(g, tree);

        response = response_floor(c, g, tree, is_next);
        response = MAX(response, parent ? response_floor(c, g, parent, is_next) : 0);
    }
    SYNC_NUMBER(tree_node, row, response_instance, response);

    bool is_first = is_source && castd_tree_has_life(node, row) && !row->instance;
    bool is_answered = row->life && (asks ? is_next : row->life == row->life_answered);

    if (is_first ? is_answered && root_has_applied(c, g)
                 : is_next && (asks || (is_source && row->life_answered))) {
        SYNC_NUMBER(tree_node, row, instance, g->row->instance);
    }
    if (is_next && asks) {
        SYNC_NUMBER(tree_node, row, life_answered, row->life);
    }
    return changed;
}

static void
sync_group(struct castd *c, struct ovsdb_idl_txn *txn, struct castd_group *g)
{
    size_t n_before = g->trees.n;
    bool is_next = next_instance(g);

    castd_set_plane_probes(c, &g->rollout.plan);
    remove_unwanted(c, g, &g->trees);
    g->written |= g->trees.n < n_before;
    for (size_t i = 0; i < g->rollout.plan.n_trees; i++) {
        const struct plan_tree *tree = &g->rollout.plan.trees[i];
        struct castd_node *n = &c->nodes[tree->node - c->topology.nodes];
        const struct rrec_tree_node *row = castd_find_tree(&g->trees, tree->node, g->row->epoch);
        bool is_new = !row;

        if (is_new) {
            row = rrec_tree_node_insert(txn);
            if (!n->row->named_trees) {
                rrec_node_update_trees_addvalue(n->row, row);
                n->listed = true;
            }
        }
        if (sync_tree(c, txn, n->row->name, row, &tree->config) | sync_doubts(g, row)
            | sync_life(c, g, tree, row, is_next)) {
            castd_begin_generation(n);
            rrec_tree_node_set_generation(row, n->row->cfg);
            g->changed = g->written = true;
        }
        if (is_new) {
            castd_add_tree(&g->trees, n, row);
        }
    }
}

static int
compare_proxies(const void *a_, const void *b_)
{
    const struct castd_tree *a = a_, *b = b_;

    return strcmp(a->row->proxy, b->row->proxy);
}

/* Takes out the trees of groups that are gone, as many as a transaction may be about. */
static void
remove_orphans(struct castd *c)
{
    struct castd_trees *all = &c->orphans;
    size_t n_removed = 0;

    if (all->n) {
        qsort(all->trees, all->n, sizeof *all->trees, compare_proxies);
    }
    c->work->more = false;
    for (size_t i = 0, n; i < all->n && !c->work->more; i += n) {
        struct castd_trees one = {.trees = &all->trees[i]};

        while (i + one.n < all->n && !compare_proxies(one.trees, &one.trees[one.n])) {
            one.n++;
        }
        n = one.n;
        remove_unwanted(c, NULL, &one);
        n_removed += n - one.n;
        c->work->more = n_removed >= work_budget(c->work);
    }
}

/* Likewise those that no node has: it is gone, or a castd of before 2.10 has taken them off its list, for
 * the registry to delete. */
static void
remove_homeless(struct castd *c)
{
    const struct mirror_part *tree;
    size_t n = 0;

    LIST_FOR_EACH (tree, node_node, &c->mirror->homeless) {
        if (n++ == work_budget(c->work)) {
            c->work->more = true;
            return;
        }
        rrec_tree_node_delete(tree->row);
    }
}

/* An agent that finds its trees needs no list of them, once they say whose they are. */
static void
clear_list(const struct castd_node *n)
{
    const struct rrec_node *row = n->row;
    bool named = row->finds_rows && !row->named_trees && !n->listed;

    for (size_t i = 0; i < row->n_trees && named; i++) {
        named = !strcmp(row->trees[i]->node, row->name);
    }
    if (named) {
        rrec_node_set_named_trees(row, true);
        rrec_node_set_trees(row, NULL, 0);
    }
}

void
castd_sync(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        sync_group(c, ovsdb_idl_txn_get(&c->global->header_), c->due[i]);
    }
}

void
castd_sync_rest(struct castd *c)
{
    bool all_applied = true;

    remove_orphans(c);
    remove_homeless(c);
    bool asked =
        work_is_answered(c->work) && !c->work->more && c->global->nb_cfg != c->work->request;
    bool all_nodes = asked && c->global->all_cfg > c->global->nb_cfg;
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct castd_node *n = &c->nodes[i];

        if (all_nodes || !n->row->cfg) {
            castd_begin_generation(n);
        }
        all_applied &= n->row->nb_cfg >= n->row->cfg;
        clear_list(n);
    }
    if (asked) {
        rrec_global_set_nb_cfg(c->global, c->work->request);
    }
    /* A group that is due may have another step to take. */
    if (all_applied && !work_is_left(c->work)) {
        rrec_global_set_agents_cfg(c->global, c->global->nb_cfg);
    }
}
