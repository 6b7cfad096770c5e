/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent's side of the registry's RDMA-CM connections: the rows of its node, and what the node
 * has found out.  Part of ctl/node/agent-registry.c, which has the registry and the transactions.
 */
#ifndef CTL_NODE_AGENT_CONNECTIONS_H
#define CTL_NODE_AGENT_CONNECTIONS_H 1

#include <stdbool.h>
#include <stddef.h>

struct agent_connections;
struct cm_conn_config;
struct cm_conn_info;
struct ovsdb_idl;
struct ovsdb_idl_txn;

/* Has 'idl' read the node's rows. */
struct agent_connections *agent_connections_create(struct ovsdb_idl *idl, const char *node_name);
void agent_connections_destroy(struct agent_connections *);

/* Reads the rows. */
void agent_connections_read(struct agent_connections *, const struct ovsdb_idl *);
/* What the rows say, if that is not what the last call has said, or they were read for the first
 * time; it is valid until they are read again. */
bool agent_connections_news(struct agent_connections *, const struct cm_conn_config **, size_t *n);

/* Takes what the node has: forgets all of before, then one call for each. */
void agent_connections_clear(struct agent_connections *);
void agent_connections_add(struct agent_connections *, const struct cm_conn_info *);

/* Writes what the rows do not say yet, and rows of those that have none. */
void agent_connections_report(struct agent_connections *, struct ovsdb_idl_txn *);

#endif /* ctl/node/agent-connections.h */
