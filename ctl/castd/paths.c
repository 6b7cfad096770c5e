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
#include "util.h"

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

/* The paths of the topology to one destination. */
struct planned {
    size_t n;
    struct plan_path *paths;
};

static void
planned_init(struct planned *planned, const struct plan_topology *t, const struct plan_node *node,
             const char *to)
{
    *planned = (struct planned){.n = 0};
    /* The paths of all hosts of a node are the same. */
    for (size_t i = 0; i < t->n_hosts; i++) {
        if (t->hosts[i].node == node) {
            free(plan_paths(t, t->hosts[i].name, to, &planned->paths, &planned->n));
            return;
        }
    }
}

/* NULL: there is none of this name. */
static const struct plan_path *
planned_find(const struct planned *planned, const char *name)
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
                 const struct destination_config *d, const struct planned *planned)
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
            sync_path(paths[i], node, &d->paths[i], i + 1, planned_find(planned, d->paths[i].name));
    }
    if (other_paths) {
        rrec_destination_set_paths(row, paths, d->n_paths);
    }
    free(paths);
    return changed || other_paths;
}

bool
castd_sync_paths(const struct castd *c, const struct castd_node *n, const struct node_config *want)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_get(&c->global->header_);
    const struct rrec_node *node = n->row;
    struct rrec_destination **rows = xcalloc(want->n_destinations + 1, sizeof *rows);
    bool changed = false, others = node->n_destinations != want->n_destinations;
    struct shash by_name = SHASH_INITIALIZER(&by_name);

    for (size_t i = 0; i < node->n_destinations; i++) {
        shash_add_once(&by_name, node->destinations[i]->name, node->destinations[i]);
    }
    for (size_t i = 0; i < want->n_destinations; i++) {
        const struct destination_config *d = &want->destinations[i];
        struct planned planned;

        rows[i] = shash_find_data(&by_name, d->name);
        if (!rows[i]) {
            rows[i] = rrec_destination_insert(txn);
            others = true;
        }
        planned_init(&planned, &c->topology, n->node, d->name);
        changed |= sync_destination(txn, rows[i], node->name, d, &planned);
        plan_paths_free(planned.paths, planned.n);
    }
    if (others) {
        rrec_node_set_destinations(node, rows, want->n_destinations);
    }
    shash_destroy(&by_name);
    free(rows);
    return changed || others;
}
