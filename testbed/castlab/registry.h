/* SPDX-License-Identifier: Apache-2.0
 *
 * What castlab writes to and reads from its lab's registry.
 *
 * The whole topology goes in as one transaction, so castd plans it once.
 */
#ifndef TESTBED_CASTLAB_REGISTRY_H
#define TESTBED_CASTLAB_REGISTRY_H 1

#include <stdbool.h>

#include "ctl/registry/values.h"
#include "testbed/castlab/topology.h"

struct registry;

/* The topology may be NULL unless a function below that speaks of it is called. */
struct registry *registry_open(const char *db, const struct topology *);
void registry_close(struct registry *);

/* registry_lacks_...() return what is still missing, malloc'd, or NULL if nothing is.  All but
 * registry_lacks_castd() are for when castd was seen.  Those that write do so until nothing is
 * missing. */

/* 'node' is NULL for what is not about one node. */
typedef char *registry_lacks(struct registry *, const char *node);

/* Has castd been there? */
registry_lacks registry_lacks_castd;
/* Does the registry have the topology?  Writes it: nodes, hosts, links and the fabric's MTU. */
registry_lacks registry_lacks_topology;
/* Has castd given every port of the topology its address? */
registry_lacks registry_lacks_plan;
/* Does every agent of the topology run what castd wants of it? */
registry_lacks registry_lacks_agents;
/* Does this node's agent run what castd wants of it? */
registry_lacks registry_lacks_agent;
/* Has the registry forgotten this node's agent?  Makes it forget the agent.  To be called when the
 * agent has ended, so that what is there afterwards is its successor's. */
registry_lacks registry_lacks_no_agent;
/* Has castd taken up a request made since the registry was opened?  Makes the request. */
registry_lacks registry_lacks_answer;

/* Talks to the registry for at most 'msec', or until it has news. */
void registry_wait(struct registry *, int msec);

/* MAC address of a node's port; false: not planned. */
bool
registry_port_mac(struct registry *, const char *node, const char *port, char mac[MAC_TEXT_SIZE]);

#endif /* testbed/castlab/registry.h */
