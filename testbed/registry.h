/* SPDX-License-Identifier: Apache-2.0
 *
 * What castlab writes to and reads from its lab's registry.
 *
 * The whole topology goes in as one transaction, so castd plans it once.
 */
#ifndef TESTBED_REGISTRY_H
#define TESTBED_REGISTRY_H 1

#include <stdbool.h>

#include "testbed/topology.h"

struct registry;

#define MAC_TEXT_SIZE 18

struct registry *registry_open(const char *db, const struct topology *);
void registry_close(struct registry *);

/* What is still missing, malloc'd, or NULL: that castd is there, that the registry has the topology,
 * that castd has given every port its address, and that every agent runs what castd wants. */
char *registry_lacks_castd(struct registry *);
/* Also writes it: nodes, hosts, links and the fabric's MTU.  Only after castd was seen, and until it
 * lacks nothing. */
char *registry_lacks_topology(struct registry *);
char *registry_lacks_plan(struct registry *);
char *registry_lacks_agents(struct registry *);

/* Talks to the registry for at most 'msec', or until it has news. */
void registry_wait(struct registry *, int msec);

/* MAC address of a node's port; false: not planned. */
bool
registry_port_mac(struct registry *, const char *node, const char *port, char mac[MAC_TEXT_SIZE]);

#endif /* testbed/registry.h */
