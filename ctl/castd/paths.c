/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a node's paths equal to what is wanted, and says what operators want to know of them.
 * Destinations and paths are known by their names.
 */
#include <config.h>

#include "ctl/castd/castd.h"
#include "ctl/castd/columns.h"
#include "ctl/plan/path.h"
#include "ctl/registry/values.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_paths);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 6);

/* The row of the path with this name; NULL: none.  The destination's may be NULL. */
static const struct rrec_path *
find_path(const struct rrec_destination *row, const char *name)
{
    for (size_t i = 0; row && i < row->n_paths; i++) {
        if (!strcmp(row->paths[i]->name, name)) {
            return row->paths[i];
        }
    }
    return NULL;
}

/* NULL: there is none of this name. */
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

/* Why a path is not usable, malloc'd.  One that the topology does not have is an operator's. */
static char *
find_problem(const struct path_config *p, const struct plan_path *planned)
{
    if (!planned) {
        int len = (int) strcspn(p->name, " ");

        return p->name[len] ? xasprintf("there is no link to %.*s", len, p->name)
                            : xstrdup("there is no such path");
    }
    if (planned->problem) {
        return xstrdup(planned->problem);
    }
    for (size_t i = 0; i < planned->n_nodes; i++) {
        if (planned->nodes[i]->excluded) {
            return xasprintf("node %s is excluded", planned->nodes[i]->name);
        }
    }
    return xstrdup("it is excluded, or a link of it");
}

/* True if anything changed that the node is told. */
static bool
sync_path(const struct rrec_path *row, const char *node, const struct path_config *p, size_t rank,
          const struct plan_path *planned)
{
    char *status = p->usable ? xstrdup("") : find_problem(p, planned);
    char program[PROGRAM_TEXT_SIZE];
    bool changed = false;

    program_format(&p->program, program);
    SYNC_STRING(path, row, node, node);
    SYNC_NUMBER(path, row, number, p->number);
    SYNC_NUMBER(path, row, rank, (int64_t) rank);
    SYNC_STRING(path, row, name, p->name);
    SYNC_STRING(path, row, plane, p->plane);
    SYNC_NUMBER(path, row, usable, p->usable);
    SYNC_NUMBER(path, row, port, p->port);
    SYNC_STRING(path, row, program, program);
    SYNC_NUMBER(path, row, probe, p->probe);
    rrec_path_set_disjoint(row, planned && planned->disjoint);
    rrec_path_set_status(row, status);
    free(status);
    return changed;
}

static bool
sync_pins(const struct rrec_destination *row, const struct destination_config *d)
{
    int64_t *qpns = xcalloc(d->n_pins + 1, sizeof *qpns);
    int64_t *numbers = xcalloc(d->n_pins + 1, sizeof *numbers);
    bool same = row->n_pins == d->n_pins;

    for (size_t i = 0; i < d->n_pins; i++) {
        qpns[i] = d->pins[i].dest_qp;
        numbers[i] = d->pins[i].number;
        same = same && row->key_pins[i] == qpns[i]
               && row->value_pins[i] == numbers[i]; /* both in ascending order. */
    }
    if (!same) {
        rrec_destination_set_pins(row, qpns, numbers, d->n_pins);
    }
    free(qpns);
    free(numbers);
    return !same;
}

static bool
sync_destination(struct ovsdb_idl_txn *txn, const struct rrec_destination *row, const char *node,
                 const struct destination_config *d, const struct plan_node_paths *planned)
{
    struct rrec_path **paths = xcalloc(d->n_paths + 1, sizeof *paths);
    bool changed = false, other_paths = row->n_paths != d->n_paths;

    SYNC_STRING(destination, row, node, node);
    SYNC_STRING(destination, row, name, d->name);
    SYNC_STRING(destination, row, address, ip6_text(&d->address));
    SYNC_STRING(destination, row, policy, path_policy_name(d->policy));
    SYNC_NUMBER(destination, row, pinned, d->pinned);
    changed |= sync_pins(row, d);
    for (size_t i = 0; i < d->n_paths; i++) {
        paths[i] = CONST_CAST(struct rrec_path *, find_path(row, d->paths[i].name));
        if (!paths[i]) {
            paths[i] = rrec_path_insert(txn);
            other_paths = true;
        }
        changed |=
            sync_path(paths[i], node, &d->paths[i], i + 1, find_planned(planned, d->paths[i].name));
    }
    if (other_paths) {
        rrec_destination_set_paths(row, paths, d->n_paths);
    }
    free(paths);
    return changed || other_paths;
}

bool
castd_sync_paths(const struct castd *c, const struct castd_node *n, const struct plan_graph *graph,
                 const struct castd_ways *ways, struct node_config *want,
                 struct plan_probes *probes)
{
    struct plan_node_paths *planned;
    char *error = plan_destinations(&c->topology, n->node, want, &planned);
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_get(&c->global->header_);
    const struct rrec_node *node = n->row;
    struct rrec_destination **rows = xcalloc(want->n_destinations + 1, sizeof *rows);
    bool changed = false, others = node->n_destinations != want->n_destinations;
    struct shash by_name = SHASH_INITIALIZER(&by_name);

    if (error) {
        VLOG_ERR_RL(&rl, "%s: it is given none", error);
        free(error);
    }
    error = plan_probes(graph, n->node, planned, ways->ways, ways->n, want, probes);
    if (error) {
        VLOG_WARN_RL(&rl, "%s", error);
        free(error);
    }
    for (size_t i = 0; i < node->n_destinations; i++) {
        shash_add_once(&by_name, node->destinations[i]->name, node->destinations[i]);
    }
    for (size_t i = 0; i < want->n_destinations; i++) {
        const struct destination_config *d = &want->destinations[i];
        const struct plan_node *to = plan_attachment(&c->topology, d->name);

        rows[i] = shash_find_data(&by_name, d->name);
        if (!rows[i]) {
            rows[i] = rrec_destination_insert(txn);
            others = true;
        }
        changed |= sync_destination(txn, rows[i], node->name, d, &planned[to - c->topology.nodes]);
    }
    if (others) {
        rrec_node_set_destinations(node, rows, want->n_destinations);
    }
    plan_node_paths_free(&c->topology, planned);
    shash_destroy(&by_name);
    free(rows);
    return changed || others;
}
