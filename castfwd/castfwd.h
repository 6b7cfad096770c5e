/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent of a node at which a program forwards that is not rocecast's: Open
 * vSwitch, or the kernel.  It follows the node's row in the registry, like swedge,
 * and has that program do what the row says.  Packets never come here.
 *
 * Functions return NULL or a malloc'd sentence, unless they say otherwise.
 */
#ifndef CASTFWD_CASTFWD_H
#define CASTFWD_CASTFWD_H 1

#include <stdbool.h>

#include "lib/node-config.h"
#include "svec.h"

struct json;

/* What an interface is at the moment: an index, 0 if there is none. */
struct devices {
    int socket;   /* in the namespace of the ports. */
    int netns_fd; /* of that; -1: ours. */
};

struct forwarder {
    const struct backend *backend; /* NULL: no configuration yet. */
    struct devices devices;
    struct node_config config; /* the newest one. */

    /* What the back end was told last, sorted; empty: nothing, or that is not to be relied on. */
    struct svec rules;
    char *identity; /* of what was told; NULL: nothing was. */
    char *why;      /* why not, said already; NULL. */
};

/* One kind of forwarder. */
struct backend {
    enum node_role role;
    /* Has it do what f->config says; the difference to f->rules, unless those are empty. */
    char *(*apply)(struct forwarder *);
    /* What a restart of the forwarder would change, malloc'd; NULL: it does not run. */
    char *(*identity)(const struct forwarder *);
    /* Packets dropped, by reason, and copied for a tree; NULL or 0 if that is not known. */
    struct json *(*drops)(const struct forwarder *);
    unsigned long long (*copied)(const struct forwarder *, const struct tree_config *);
};

extern const struct backend ovs_backend, kernel_backend;

/* forwarder.c: the route to an address; NULL: none. */
const struct route_config *forwarder_route(const struct node_config *, const struct in6_addr *);
/* A route's port, which the configuration has. */
const struct port_config *forwarder_port(const struct node_config *, const struct route_config *);

/* Whether its ports are such that these forwarders can have them. */
char *forwarder_check_ports(const struct node_config *);

/* ovs-rules.c: what Open vSwitch is told, in ovs-ofctl's words: lines "flow ..." and "group ..."
 * (ovs-ofctl(8), bundle).  Pure. */
char *ovs_rules(const struct node_config *, struct svec *rules);
/* The bundle that leads from one to the other, both sorted. */
char *ovs_rules_change(const struct svec *from, const struct svec *to);
/* Flows that drop packets have one of these cookies. */
#define OVS_DROP_COOKIE 0xd0
extern const char *const ovs_drops[]; /* names, ending with NULL: cookie OVS_DROP_COOKIE + index. */
/* The group that copies a tree's packets. */
unsigned int ovs_group_id(const struct tree_config *);

/* kernel-rules.c: what the kernel is told, in the words of ip(8) and, "sysctl ...", sysctl(8).  Pure. */
char *kernel_rules(const struct node_config *, struct svec *rules);
/* As the origin of routes: they are told from others by it. */
#define KERNEL_ROUTE_PROTOCOL "95"

/* command.c: runs a program in the namespace (-1: ours) with this input.  Its output, malloc'd, is in
 * *outputp unless that is NULL.  An error is what it says itself. */
char *command_run(int netns_fd, const char *const argv[], const char *input, char **outputp);

/* show.c: the control socket. */
void show_init(const struct forwarder *);

#endif /* castfwd/castfwd.h */
