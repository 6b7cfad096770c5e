/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a registry has the schema that this program was made for.
 *
 * The client library goes on without a table or column that the registry does
 * not have: its rows then look empty.  No program may work on such rows.
 */
#ifndef CTL_REGISTRY_SCHEMA_H
#define CTL_REGISTRY_SCHEMA_H 1

#include "ctl/registry/rocecast-idl.h"

/* Sets of monitored tables: one table, all tables. */
#define REGISTRY_TABLE(TABLE) (1u << RREC_TABLE_##TABLE)
#define REGISTRY_ALL_TABLES   ((1u << RREC_N_TABLES) - 1)

/* How to mend a registry with another schema.  A server goes on telling clients the old schema
 * until it is restarted. */
#define REGISTRY_SCHEMA_FIX \
    "ovsdb-client convert REMOTE rocecast.ovsschema, then restart ovsdb-server"

/* NULL if all of 'tables' are there with all columns that this program knows (more do no harm),
 * otherwise a malloc'd sentence.  The IDL must have connected at least once. */
char *registry_schema_problem(const struct ovsdb_idl *, unsigned int tables);

/* Leaves the keys' secrets out of what the IDL reads.  Call it before the IDL connects. */
void registry_omit_secrets(struct ovsdb_idl *);

/* Likewise what nodes are told: nearly all of a registry with many groups. */
void registry_omit_intent(struct ovsdb_idl *);
/* After that: nevertheless what view.h has of it, which is the trees whose source agent limits the
 * group's rate, and how probes are. */
void registry_keep_viewed(struct ovsdb_idl *);

#endif /* ctl/registry/schema.h */
