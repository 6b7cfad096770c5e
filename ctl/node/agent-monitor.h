/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent reads of the registry: its own Node row and what belongs to that, in columns that
 * castd writes for it or that it writes itself.
 */
#ifndef CTL_NODE_AGENT_MONITOR_H
#define CTL_NODE_AGENT_MONITOR_H 1

#include "ctl/registry/schema.h"

/* The tables, those of RDMA-CM connections (agent-connections.c) among them. */
#define AGENT_TABLES                                                                           \
    (REGISTRY_TABLE(NODE) | REGISTRY_TABLE(PORT) | REGISTRY_TABLE(ROUTE) | REGISTRY_TABLE(SID) \
     | REGISTRY_TABLE(DESTINATION) | REGISTRY_TABLE(PATH) | REGISTRY_TABLE(PROBE)              \
     | REGISTRY_TABLE(TREE_NODE) | REGISTRY_TABLE(PLANE) | REGISTRY_TABLE(BRANCH)              \
     | REGISTRY_TABLE(NODE_KEY) | REGISTRY_TABLE(CONNECTION))

/* Before the IDL connects; connections are not among it. */
void agent_monitor(struct ovsdb_idl *, const char *node_name);

#endif /* ctl/node/agent-monitor.h */
