/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent's side of the registry's RDMA-CM connections.
 *
 * Level-triggered, as the rest of the agent's reports: each transaction writes the difference
 * between what the node has and what the rows say.  A row is made for a passive connection that the
 * configuration does not have yet.  It has one as soon as the node was given the row, so a row that
 * castd has deleted is not made again.
 */
#include <config.h>

#include "ctl/node/agent-connections.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ctl/registry/connection.h"
#include "ctl/registry/rocecast-idl.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(agent_connections);

/* What the node has. */
struct reported {
    struct hmap_node hmap_node; /* by id. */
    struct cm_conn_info info;
    struct cm_known known; /* that of 'info'. */
    bool has_row;          /* as found by agent_connections_report(). */
};

struct agent_connections {
    char *node_name;
    struct cm_conn_config *rows; /* as read last. */
    size_t n_rows;
    bool has_read; /* at least once: a node takes nothing before it knows what it has. */
    bool news;     /* they were not handed out yet. */
    struct hmap reported;
};

struct agent_connections *
agent_connections_create(struct ovsdb_idl *idl, const char *node_name)
{
    struct agent_connections *ac = xzalloc(sizeof *ac);
    struct ovsdb_idl_condition own = OVSDB_IDL_CONDITION_INIT(&own);

    ac->node_name = xstrdup(node_name);
    hmap_init(&ac->reported);
    for (size_t i = 0; i < RREC_CONNECTION_N_COLUMNS; i++) {
        const struct ovsdb_idl_column *column = &rrec_connection_columns[i];

        /* What castd says to people. */
        if (column != &rrec_connection_col_group && column != &rrec_connection_col_status) {
            ovsdb_idl_add_column(idl, column);
        }
    }
    rrec_connection_add_clause_node(&own, OVSDB_F_EQ, node_name);
    rrec_connection_set_condition(idl, &own);
    ovsdb_idl_condition_destroy(&own);
    return ac;
}

void
agent_connections_destroy(struct agent_connections *ac)
{
    agent_connections_clear(ac);
    hmap_destroy(&ac->reported);
    free(ac->rows);
    free(ac->node_name);
    free(ac);
}

void
agent_connections_read(struct agent_connections *ac, const struct ovsdb_idl *idl)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 3);
    const struct rrec_connection *row;
    struct cm_conn_config *rows;
    size_t n = 0;

    RREC_CONNECTION_FOR_EACH (row, idl) {
        n++;
    }
    rows = xcalloc(MAX(n, 1), sizeof *rows);
    n = 0;
    RREC_CONNECTION_FOR_EACH (row, idl) {
        char *error;

        if (strcmp(row->node, ac->node_name)) {
            continue; /* the condition is not in force yet. */
        }
        if (connection_read(row, &rows[n], &error)) {
            n++;
        } else {
            VLOG_WARN_RL(&rl, "node %s: connection %" PRId64 " is left out: %s", ac->node_name,
                         row->number, error);
            free(error);
        }
    }
    if (ac->has_read && n == ac->n_rows && !memcmp(rows, ac->rows, n * sizeof *rows)) {
        free(rows);
        return;
    }
    free(ac->rows);
    ac->rows = rows;
    ac->n_rows = n;
    ac->has_read = ac->news = true;
}

bool
agent_connections_news(struct agent_connections *ac, const struct cm_conn_config **rows, size_t *n)
{
    bool news = ac->news;

    ac->news = false;
    *rows = ac->rows;
    *n = ac->n_rows;
    return news;
}

void
agent_connections_clear(struct agent_connections *ac)
{
    struct reported *r;

    HMAP_FOR_EACH_SAFE (r, hmap_node, &ac->reported) {
        hmap_remove(&ac->reported, &r->hmap_node);
        free(r);
    }
}

void
agent_connections_add(struct agent_connections *ac, const struct cm_conn_info *info)
{
    struct reported *r = xzalloc(sizeof *r);

    r->info = *info;
    r->known = *info->known;
    r->info.known = &r->known;
    hmap_insert(&ac->reported, &r->hmap_node, hash_int(info->id, 0));
}

static struct reported *
find_reported(const struct agent_connections *ac, int64_t number)
{
    struct reported *r;

    HMAP_FOR_EACH_WITH_HASH (r, hmap_node, hash_int((uint32_t) number, 0), &ac->reported) {
        if (r->info.id == number) {
            return r;
        }
    }
    return NULL;
}

/* Is it one that castd is to hear of?  Who has gone already need not be. */
static bool
needs_row(const struct reported *r)
{
    return r->info.role == CM_PASSIVE && !r->info.configured && r->known.state != CM_ENDED;
}

void
agent_connections_report(struct agent_connections *ac, struct ovsdb_idl_txn *txn)
{
    const struct rrec_connection *row;
    struct reported *r;

    HMAP_FOR_EACH (r, hmap_node, &ac->reported) {
        r->has_row = false;
    }
    RREC_CONNECTION_FOR_EACH (row, ovsdb_idl_txn_get_idl(txn)) {
        r = strcmp(row->node, ac->node_name) ? NULL : find_reported(ac, row->number);
        if (r) {
            r->has_row = true;
            connection_report(row, &r->known);
        }
    }
    HMAP_FOR_EACH (r, hmap_node, &ac->reported) {
        if (!r->has_row && needs_row(r)) {
            connection_insert(txn, ac->node_name, &r->info);
        }
    }
}
