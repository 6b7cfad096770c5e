/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent reads of the registry.
 *
 * A condition cannot follow references.  So rows name their node, and an agent gets no others' rows.  Where
 * hosts are is the same for all, and for all to read.  Of trees it takes those that name it; they are not in a
 * column of its Node row, whose size would be the price of each generation.  It looks at those other rows that
 * its Node row refers to.
 */
#include <config.h>

#include "ctl/node/agent-monitor.h"

#include "ovsdb-idl.h"
#include "util.h"

static struct ovsdb_idl_column *const node_columns[] = {
    &rrec_node_col_name,          &rrec_node_col_id,
    &rrec_node_col_cfg,           &rrec_node_col_nb_cfg,
    &rrec_node_col_state,         &rrec_node_col_control,
    &rrec_node_col_ports,         &rrec_node_col_routes,
    &rrec_node_col_sids,          &rrec_node_col_trees,
    &rrec_node_col_finds_rows,    &rrec_node_col_named_trees,
    &rrec_node_col_verify_always, &rrec_node_col_role,
    &rrec_node_col_cnp_interval,  &rrec_node_col_fast_cnp,
    &rrec_node_col_fast_cnp_rate, &rrec_node_col_fast_cnp_any_icrc,
    &rrec_node_col_capable,       &rrec_node_col_trusted,
    &rrec_node_col_trace,         &rrec_node_col_rate_control,
    &rrec_node_col_controller,    &rrec_node_col_line_rate,
    &rrec_node_col_rate_floor,    &rrec_node_col_queue_rates,
    &rrec_node_col_destinations,  &rrec_node_col_probes,
    &rrec_node_col_probers,       &rrec_node_col_next_hops,
};

/* Of these it is told when they refer to other rows, though no row has changed: one may become another
 * node's, and of one whose columns have their defaults the IDL does not say that it is new. */
static struct ovsdb_idl_column *const node_references[] = {
    &rrec_node_col_ports,     &rrec_node_col_routes, &rrec_node_col_sids,
    &rrec_node_col_probes,    &rrec_node_col_trees,  &rrec_node_col_named_trees,
    &rrec_node_col_next_hops,
};

/* Not why a path is not usable, nor what it has in common with others. */
static struct ovsdb_idl_column *const path_columns[] = {
    &rrec_path_col_node, &rrec_path_col_number,  &rrec_path_col_rank,
    &rrec_path_col_name, &rrec_path_col_plane,   &rrec_path_col_usable,
    &rrec_path_col_port, &rrec_path_col_program, &rrec_path_col_probe,
};

/* Not what its packets pass. */
static struct ovsdb_idl_column *const probe_columns[] = {
    &rrec_probe_col_node,    &rrec_probe_col_number,      &rrec_probe_col_kind,
    &rrec_probe_col_name,    &rrec_probe_col_plane,       &rrec_probe_col_port,
    &rrec_probe_col_peer,    &rrec_probe_col_program,     &rrec_probe_col_back,
    &rrec_probe_col_reverse, &rrec_probe_col_large,       &rrec_probe_col_interval,
    &rrec_probe_col_timeout, &rrec_probe_col_state,       &rrec_probe_col_since,
    &rrec_probe_col_heard,   &rrec_probe_col_no_checksum,
};

/* Tables of which it reads all columns, and is told what has changed. */
static const struct {
    struct ovsdb_idl_column *columns;
    size_t n;
} whole_tables[] = {
    {rrec_port_columns, RREC_PORT_N_COLUMNS},
    {rrec_route_columns, RREC_ROUTE_N_COLUMNS},
    {rrec_location_columns, RREC_LOCATION_N_COLUMNS},
    {rrec_sid_columns, RREC_SID_N_COLUMNS},
    {rrec_destination_columns, RREC_DESTINATION_N_COLUMNS},
    {rrec_tree_node_columns, RREC_TREE_NODE_N_COLUMNS},
    {rrec_branch_columns, RREC_BRANCH_N_COLUMNS},
    {rrec_plane_columns, RREC_PLANE_N_COLUMNS},
    {rrec_node_key_columns, RREC_NODE_KEY_N_COLUMNS},
};

/* Lets in only rows of a table whose column has the node's name, or the other text. */
#define ONLY_OWN_OR(TABLE, COLUMN, OTHER)                                  \
    do {                                                                   \
        struct ovsdb_idl_condition own_ = OVSDB_IDL_CONDITION_INIT(&own_); \
        rrec_##TABLE##_add_clause_##COLUMN(&own_, OVSDB_F_EQ, OTHER);      \
        rrec_##TABLE##_add_clause_##COLUMN(&own_, OVSDB_F_EQ, node_name);  \
        rrec_##TABLE##_set_condition(idl, &own_);                          \
        ovsdb_idl_condition_destroy(&own_);                                \
    } while (0)
#define ONLY_OWN(TABLE, COLUMN) ONLY_OWN_OR(TABLE, COLUMN, node_name)
/* Also what is nobody's: in a converted registry until castd has said whose it is.  No row that the
 * agent has goes away when castd does. */
#define NO_OTHERS(TABLE)        ONLY_OWN_OR(TABLE, node, "")

void
agent_monitor(struct ovsdb_idl *idl, const char *node_name)
{
    for (size_t i = 0; i < ARRAY_SIZE(node_columns); i++) {
        ovsdb_idl_add_column(idl, node_columns[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(node_references); i++) {
        ovsdb_idl_track_add_column(idl, node_references[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(path_columns); i++) {
        ovsdb_idl_add_column(idl, path_columns[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(probe_columns); i++) {
        ovsdb_idl_add_column(idl, probe_columns[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(whole_tables); i++) {
        for (size_t j = 0; j < whole_tables[i].n; j++) {
            ovsdb_idl_track_add_column(idl, &whole_tables[i].columns[j]);
        }
    }
    /* Planes refer to them by number; what the agent itself says of them is no change. */
    ovsdb_idl_track_add_column(idl, &rrec_probe_col_number);
    ONLY_OWN(node, name);
    ONLY_OWN(node_key, node); /* other nodes' keys are none of its business. */
    ONLY_OWN(destination, node);
    ONLY_OWN(path, node);
    ONLY_OWN(probe, node);
    ONLY_OWN(plane, node);
    NO_OTHERS(port);
    NO_OTHERS(route);
    NO_OTHERS(sid);
    NO_OTHERS(tree_node);
    NO_OTHERS(branch);
}
