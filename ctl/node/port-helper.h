/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that opens an agent's ports.
 *
 * Ports come and go with the configuration, and opening one needs capabilities.  An agent has none of
 * them.  Before it changes its user it forks this process, which keeps those that ports need, and
 * hands it descriptors.  What the agent may ask for is in port-request.h.
 */
#ifndef CTL_NODE_PORT_HELPER_H
#define CTL_NODE_PORT_HELPER_H 1

#include <stdbool.h>

#include "lib/port.h"

struct port_helper;

/* Forks; the caller has one thread.  'netns_fd': that of --netns, or -1.  'filter': it has a filter of
 * system calls.  It ends when the last process ends that has the returned socket.  NULL: it could not
 * be had, and *errp says why. */
struct port_helper *port_helper_start(int netns_fd, bool filter, char **errp);
void port_helper_close(struct port_helper *);

/* port_open() and port_events_open(), done by the process.  'in_netns': in the namespace of --netns.
 * Returns when that has answered. */
int port_helper_open(struct port_helper *, struct port **, enum port_kind, const char *netdev,
                     bool in_netns, const struct port_queue *, char **errp);
int port_helper_watch(struct port_helper *, int *fdp, bool in_netns, char **errp);

/* Has it ended?  Wakes poll_block() when it does. */
bool port_helper_has_ended(const struct port_helper *);
void port_helper_wait(const struct port_helper *);

/* What the process does: answers what comes from the socket until that is closed.  For tests, too. */
void port_helper_serve(int socket_fd, int netns_fd);

#endif /* ctl/node/port-helper.h */
