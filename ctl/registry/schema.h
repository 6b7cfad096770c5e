/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a registry has the schema that this program was made for.
 *
 * The client library goes on without a table or column that the registry does
 * not have: its rows then look empty.  Nobody may work on that.
 */
#ifndef CTL_REGISTRY_SCHEMA_H
#define CTL_REGISTRY_SCHEMA_H 1

#include "ctl/registry/rocecast-idl.h"

/* A table that is monitored, and all of them. */
#define REGISTRY_TABLE(TABLE) (1u << RREC_TABLE_##TABLE)
#define REGISTRY_ALL_TABLES   ((1u << RREC_N_TABLES) - 1)

/* What to do about it.  Before it is started anew a server goes on to tell clients the old schema. */
#define REGISTRY_SCHEMA_FIX \
    "ovsdb-client convert REMOTE rocecast.ovsschema, then restart ovsdb-server"

/* NULL if all of 'tables' are there with all columns that this program knows (more do no harm),
 * otherwise a malloc'd sentence.  To be asked of an IDL that has ever connected. */
char *registry_schema_problem(const struct ovsdb_idl *, unsigned int tables);

/* Before the IDL has connected: to do without the keys' secrets. */
void registry_omit_secrets(struct ovsdb_idl *);

#endif /* ctl/registry/schema.h */
