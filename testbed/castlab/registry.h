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

/* The topology may be NULL where no function below is said to need it. */
struct registry *registry_open(const char *db, const struct topology *);
void registry_close(struct registry *);

/* What is still missing, malloc'd, or NULL.  Each but the first is only for when castd was seen;
 * those that write do so until they lack nothing. */

/* That castd has been there. */
char *registry_lacks_castd(struct registry *);
/* That the registry has the topology.  Writes it: nodes, hosts, links and the fabric's MTU. */
char *registry_lacks_topology(struct registry *);
/* That castd has given every port of the topology its address. */
char *registry_lacks_plan(struct registry *);
/* That every agent of the topology, or one node's, runs what castd wants of it. */
char *registry_lacks_agents(struct registry *);
char *registry_lacks_agent(struct registry *, const char *node);
/* That the registry names no agent of this node.  Writes it, for when the agent has ended, so that
 * what is there afterwards is its successor's. */
char *registry_lacks_no_agent(struct registry *, const char *node);
/* That castd has taken up a request made since the registry was opened.  Makes it. */
char *registry_lacks_answer(struct registry *);

/* Talks to the registry for at most 'msec', or until it has news. */
void registry_wait(struct registry *, int msec);

/* MAC address of a node's port; false: not planned. */
bool
registry_port_mac(struct registry *, const char *node, const char *port, char mac[MAC_TEXT_SIZE]);

#endif /* testbed/castlab/registry.h */
