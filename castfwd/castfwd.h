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
#include "openvswitch/compiler.h"
#include "svec.h"

struct json;
struct unixctl_conn;

/* How long tools may take. */
struct patience {
    int stop_fd; /* readable: what runs is to end now. */
    int msec;    /* for each. */
};

/* Belongs to one thread, which is in the namespace of the ports. */
struct forwarder {
    const struct backend *backend; /* NULL: no configuration yet. */
    struct patience patience;
    int socket;                /* for questions about devices. */
    struct node_config config; /* the newest one. */

    /* What the back end was told last, sorted; empty: nothing, or that is not to be relied on. */
    struct svec ports, rules;
    char *identity;      /* of what was told; NULL: nothing was. */
    struct svec devices; /* of which it was told. */
};

/* One kind of forwarder. */
struct backend {
    /* What it is to be told for that configuration, sorted; if this fails, nothing.  Pure. */
    char *(*rules)(const struct node_config *, struct svec *rules);
    bool needs_up; /* what was told of a device goes when that goes down. */
    /* Makes sure of what the rules need, and of what has the identity. */
    char *(*prepare)(struct forwarder *);
    /* From f->rules, or if those are empty from whatever there is, to these. */
    char *(*change)(struct forwarder *, const struct svec *rules);
    /* What a restart of the forwarder would change, malloc'd; NULL: it does not run. */
    char *(*identity)(const struct forwarder *);
    /* Packets dropped, by reason. */
    struct json *(*drops)(const struct forwarder *);
    /* Packets copied, for each tree of the configuration; NULL: that is not known. */
    void (*copied)(const struct forwarder *, unsigned long long counts[]);
};

extern const struct backend ovs_backend, kernel_backend;

/* forwarder.c: the route to an address; NULL: none. */
const struct route_config *forwarder_route(const struct node_config *, const struct in6_addr *);
/* A route's port, which the configuration has. */
const struct port_config *forwarder_port(const struct node_config *, const struct route_config *);

/* Whether its ports are such that these forwarders can have them. */
char *forwarder_check_ports(const struct node_config *);

/* One thing that it is told, in the words of its tool. */
void rule_add(struct svec *rules, const char *format, ...) OVS_PRINTF_FORMAT(2, 3);

/* tell.c: has the forwarder do what the newest configuration says, as far as it does not yet. */
char *forwarder_tell(struct forwarder *);
/* Is it still the one that was told? */
bool forwarder_is_told(const struct forwarder *);
/* Takes a configuration. */
void forwarder_configure(struct forwarder *, struct node_config *);
void forwarder_init(struct forwarder *, const struct patience *);
void forwarder_uninit(struct forwarder *);

/* devices.c: network devices; 0: there is none of that name. */
struct device_counters {
    unsigned long long rx_bytes, rx_packets, rx_errors;
    unsigned long long tx_bytes, tx_packets, tx_errors; /* errors: dropped ones, too. */
};
int device_index(const struct forwarder *, const char *name);
int device_mtu(const struct forwarder *, const char *name);
bool device_is_up(const struct forwarder *, const char *name);
/* All zero if there is no such device. */
void device_count(const char *name, struct device_counters *);
/* A file of /proc/net, of the thread's namespace; malloc'd. */
char *proc_net(const char *file);

/* ovs-rules.c: what Open vSwitch is told, in ovs-ofctl's words: lines "flow ..." and "group ..."
 * (ovs-ofctl(8), bundle).  Pure. */
char *ovs_rules(const struct node_config *, struct svec *rules);
/* The bundle that leads from one to the other, both sorted. */
char *ovs_rules_change(const struct svec *from, const struct svec *to);
/* The bridge's ports, "NAME NUMBER", sorted. */
void ovs_ports(const struct node_config *, struct svec *ports);
/* ovs-vsctl's arguments that lead from one to the other: one transaction.  With 'from' NULL the
 * bridge is made, and the ports that it had are printed; 'stamp', another one each time, makes sure
 * that this changes something: for a change ovs-vsctl waits until Open vSwitch has done it. */
char *ovs_ports_change(const char *bridge, const struct svec *from, const struct svec *to,
                       long long int stamp);
/* Flows that drop packets have one of these cookies. */
#define OVS_DROP_COOKIE 0xd0
extern const char *const ovs_drops[]; /* names, ending with NULL: cookie OVS_DROP_COOKIE + index. */
/* The group that copies a tree's packets. */
unsigned int ovs_group_id(const struct tree_config *);

/* kernel-rules.c: what the kernel is told, in the words of ip(8) and, "sysctl ...", sysctl(8).  Pure. */
char *kernel_rules(const struct node_config *, struct svec *rules);
/* ip's commands that take back what is in the former only; both are sorted. */
char *kernel_rules_remove(const struct svec *from, const struct svec *to);
/* Is there a route to this prefix, in ip's words, among the rules? */
bool kernel_rules_route(const struct svec *rules, const char *prefix);
/* As the origin of routes: they are told from others by it. */
#define KERNEL_ROUTE_PROTOCOL "95"

/* command.c: runs a program with this input (NULL: none) to its end, or to that of the patience.
 * Its output, malloc'd, is in *outputp unless that is NULL.  An error is what it says itself. */
char *
command_run(const struct patience *, const char *const argv[], const char *input, char **outputp);

/* worker.c: the thread in which all this happens, since tools take their time. */
struct worker;
/* In that namespace; -1: ours. */
struct worker *worker_create(int netns_fd);
/* Ends what runs. */
void worker_destroy(struct worker *);
/* Takes a configuration; one before it with which the worker has not begun is left out. */
void worker_configure(struct worker *, struct node_config *);
/* True if there is news: that generation is applied, or why not: *whyp, the caller's to free. */
bool worker_outcome(struct worker *, uint64_t *generation, char **whyp);
/* One thing that a node shows. */
struct listing {
    const char *command;
    struct json *(*make)(const struct forwarder *);
};
/* Answers with what 'listing' makes, some time. */
void worker_list(struct worker *, const struct listing *, struct unixctl_conn *, bool as_json);
/* Sends answers; to be woken up for those, and for news. */
void worker_run(struct worker *);
void worker_wait(struct worker *);

/* show.c: the control socket. */
void show_init(struct worker *);

#endif /* castfwd/castfwd.h */
