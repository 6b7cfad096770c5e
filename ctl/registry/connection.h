/* SPDX-License-Identifier: Apache-2.0
 *
 * One RDMA-CM connection's row as plain data, and what a node has found out about it as columns.
 */
#ifndef CTL_REGISTRY_CONNECTION_H
#define CTL_REGISTRY_CONNECTION_H 1

#include <stdbool.h>

#include "lib/cm-conn.h"

struct ovsdb_idl_txn;
struct rrec_connection;

/* Reads a row.  'out' has no padding or unused byte that is not 0.  False, and a malloc'd sentence
 * in *errp that names column and value, if something in it makes no sense. */
bool connection_read(const struct rrec_connection *, struct cm_conn_config *out, char **errp);

/* Writes the columns that do not say 'known' yet. */
void connection_report(const struct rrec_connection *, const struct cm_known *);

/* A row for a connection that a program of a host of 'node' has asked for. */
void connection_insert(struct ovsdb_idl_txn *, const char *node, const struct cm_conn_info *);

#endif /* ctl/registry/connection.h */
