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

/* Has castd been there? */
char *registry_lacks_castd(struct registry *);
/* Does the registry have the topology?  Writes it: nodes, hosts, links and the fabric's MTU. */
char *registry_lacks_topology(struct registry *);
/* Has castd given every port of the topology its address? */
char *registry_lacks_plan(struct registry *);
/* Does every agent of the topology run what castd wants of it? */
char *registry_lacks_agents(struct registry *);
/* Does this node's agent run what castd wants of it? */
char *registry_lacks_agent(struct registry *, const char *node);
/* Has the registry forgotten this node's agent?  Makes it forget the agent.  To be called when the
 * agent has ended, so that what is there afterwards is its successor's. */
char *registry_lacks_no_agent(struct registry *, const char *node);
/* Has castd taken up a request made since the registry was opened?  Makes the request. */
char *registry_lacks_answer(struct registry *);

/* Talks to the registry for at most 'msec', or until it has news. */
void registry_wait(struct registry *, int msec);

/* MAC address of a node's port; false: not planned. */
bool
registry_port_mac(struct registry *, const char *node, const char *port, char mac[MAC_TEXT_SIZE]);

#endif /* testbed/castlab/registry.h */
