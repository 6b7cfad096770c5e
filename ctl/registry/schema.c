/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a registry has the schema that this program was made for.
 */
#include <config.h>

#include "ctl/registry/schema.h"

#include "openvswitch/dynamic-string.h"
#include "ovsdb-idl-provider.h"
#include "util.h"

/* How many missing columns are named; the others are counted. */
#define MAX_NAMED 3

static size_t
put_missing(const struct ovsdb_idl *idl, const struct ovsdb_idl_table_class *table, size_t n,
            struct ds *s)
{
    const char *separator = n ? ", " : "";

    if (!ovsdb_idl_server_has_table(idl, table)) {
        if (n < MAX_NAMED) {
            ds_put_format(s, "%stable %s", separator, table->name);
        }
        return n + 1;
    }
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!ovsdb_idl_server_has_column(idl, &table->columns[i]) && n++ < MAX_NAMED) {
            ds_put_format(s, "%scolumn %s.%s", separator, table->name, table->columns[i].name);
            separator = ", ";
        }
    }
    return n;
}

char *
registry_schema_problem(const struct ovsdb_idl *idl, unsigned int tables)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    size_t n = 0;

    for (size_t i = 0; i < RREC_N_TABLES; i++) {
        if (tables & 1u << i) {
            n = put_missing(idl, &rrec_table_classes[i], n, &s);
        }
    }
    if (!n) {
        ds_destroy(&s);
        return NULL;
    }
    if (n > MAX_NAMED) {
        ds_put_format(&s, " and %" PRIuSIZE " more", n - MAX_NAMED);
    }
    char *problem = xasprintf("its schema lacks what version %s of 'rocecast' has: %s "
                              "(" REGISTRY_SCHEMA_FIX ")",
                              rrec_get_db_version(), ds_cstr(&s));
    ds_destroy(&s);
    return problem;
}

void
registry_omit_secrets(struct ovsdb_idl *idl)
{
    ovsdb_idl_omit(idl, &rrec_key_col_secret);
    ovsdb_idl_omit(idl, &rrec_node_key_col_secret);
}

void
registry_keep_viewed(struct ovsdb_idl *idl)
{
    struct ovsdb_idl_condition limited = OVSDB_IDL_CONDITION_INIT(&limited);
    struct ovsdb_idl_condition all = OVSDB_IDL_CONDITION_INIT(&all);

    rrec_tree_node_add_clause_rate(&limited, OVSDB_F_NE, NULL, 0);
    rrec_tree_node_set_condition(idl, &limited);
    ovsdb_idl_condition_destroy(&limited);
    ovsdb_idl_condition_add_clause_true(&all);
    rrec_probe_set_condition(idl, &all);
    ovsdb_idl_condition_destroy(&all);
    ovsdb_idl_omit(idl, &rrec_probe_col_program);
    ovsdb_idl_omit(idl, &rrec_probe_col_back);
    ovsdb_idl_omit(idl, &rrec_probe_col_elements);
}

void
registry_omit_intent(struct ovsdb_idl *idl)
{
    struct ovsdb_idl_condition none = OVSDB_IDL_CONDITION_INIT(&none);

    /* No rows; the columns stay, for the schema is to be looked at. */
    rrec_tree_node_set_condition(idl, &none);
    rrec_branch_set_condition(idl, &none);
    rrec_node_key_set_condition(idl, &none);
    rrec_port_set_condition(idl, &none);
    rrec_route_set_condition(idl, &none);
    rrec_location_set_condition(idl, &none);
    rrec_sid_set_condition(idl, &none);
    rrec_destination_set_condition(idl, &none);
    rrec_path_set_condition(idl, &none);
    rrec_plane_set_condition(idl, &none);
    rrec_probe_set_condition(idl, &none);
    ovsdb_idl_condition_destroy(&none);
    ovsdb_idl_omit(idl, &rrec_node_col_trees);
    ovsdb_idl_omit(idl, &rrec_node_col_ports);
    ovsdb_idl_omit(idl, &rrec_node_col_routes);
    ovsdb_idl_omit(idl, &rrec_node_col_next_hops);
    ovsdb_idl_omit(idl, &rrec_node_col_sids);
    ovsdb_idl_omit(idl, &rrec_node_col_destinations);
    ovsdb_idl_omit(idl, &rrec_node_col_probers);
    ovsdb_idl_omit(idl, &rrec_node_col_probes);
}
