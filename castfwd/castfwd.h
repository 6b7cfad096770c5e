/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent of a node whose packets another program forwards: Open vSwitch or the kernel.  It
 * follows the node's row in the registry, like swedge, and makes that program do what the row
 * says.  Packets never come here.
 *
 * Functions return NULL, or a malloc'd sentence that says what went wrong, unless they say
 * otherwise.
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
    int stop_fd; /* readable: the running tool must end now. */
    int msec;    /* limit for each tool. */
};

/* What a kernel does with SIDs of its own, as it has shown itself (kernel.c). */
struct kernel_abilities {
    bool known;
    const char *anchor; /* type of device that routes to SIDs are on; NULL: there is none. */
    bool end_next_csid;
    bool end_x_next_csid;
    bool end_x;
    bool end_dt6;
    bool end_dx6;
};

/* Belongs to one thread, which is in the namespace of the ports. */
struct forwarder {
    const struct backend *backend; /* NULL: no configuration yet. */
    struct patience patience;
    int socket; /* for questions about devices. */
    struct kernel_abilities abilities;
    struct node_config config; /* the newest one. */

    /* What the back end was told last, sorted.  Empty: nothing, or nothing to rely on. */
    struct svec ports, rules;
    char *identity;      /* of the program that was told; NULL: none was. */
    struct svec devices; /* network devices that it was told of. */
};

/* One kind of forwarder. */
struct backend {
    /* Makes the rules for the newest configuration, sorted; makes none on failure. */
    char *(*rules)(struct forwarder *, struct svec *rules);
    bool needs_up; /* a device that goes down loses what was told of it. */
    /* Makes sure of what the rules need, and of what identity() looks at. */
    char *(*prepare)(struct forwarder *);
    /* Changes f->rules to 'rules'.  If f->rules is empty, starts from whatever there is. */
    char *(*change)(struct forwarder *, const struct svec *rules);
    /* A string that a restart of the forwarder changes, malloc'd; NULL: it does not run. */
    char *(*identity)(const struct forwarder *);
    /* Packets dropped, by reason. */
    struct json *(*drops)(const struct forwarder *);
    /* Packets that came to a SID of the configuration; false: it has none such. */
    bool (*counted)(const struct sid_config *, const char *statistics, unsigned long long *packets);
    /* What counted() and drops() look at, malloc'd; NULL: no answer. */
    char *(*statistics)(const struct forwarder *);
    /* Packets copied, for each tree of the configuration; NULL: not known. */
    void (*copied)(const struct forwarder *, unsigned long long counts[]);
};

extern const struct backend ovs_backend, kernel_backend;

/* forwarder.c: the route to an address; NULL: none. */
const struct route_config *forwarder_route(const struct node_config *, const struct in6_addr *);
/* The port with this number; NULL: none. */
const struct port_config *forwarder_find_port(const struct node_config *, uint16_t number);
/* The port by which packets go straight to the node with this address; NULL: it is no neighbour.
 * Of several links it is that of the routes, or else the first one. */
const struct port_config *forwarder_port_to(const struct node_config *, const struct in6_addr *);
/* The port of a route; the configuration has it. */
const struct port_config *forwarder_port(const struct node_config *, const struct route_config *);

/* Checks that these forwarders can have the configuration's ports. */
char *forwarder_check_ports(const struct node_config *);

/* Adds one thing that a forwarder is told, in the words of its tool. */
void rule_add(struct svec *rules, const char *format, ...) OVS_PRINTF_FORMAT(2, 3);

/* The number that comes after 'key' in what a tool prints, from 'where' on; 0: there is none. */
unsigned long long number_after(const char *where, const char *key);

/* tell.c: makes the forwarder do what the newest configuration says.  Tells it only what is new to
 * it. */
char *forwarder_tell(struct forwarder *);
/* Is the forwarder still the one that was told? */
bool forwarder_is_told(const struct forwarder *);
/* Takes over the contents of a configuration. */
void forwarder_configure(struct forwarder *, struct node_config *);
void forwarder_init(struct forwarder *, const struct patience *);
void forwarder_uninit(struct forwarder *);

/* devices.c: network devices.  0 or false: there is none of that name. */
struct device_counters {
    unsigned long long rx_bytes, rx_packets, rx_errors;
    unsigned long long tx_bytes, tx_packets, tx_errors; /* tx_errors counts drops, too. */
};
int device_index(const struct forwarder *, const char *name);
int device_mtu(const struct forwarder *, const char *name);
bool device_is_up(const struct forwarder *, const char *name);
/* All zero if there is no such device. */
void device_count(const char *name, struct device_counters *);
/* The contents of a file of /proc/net, of the thread's namespace; malloc'd. */
char *proc_net(const char *file);

/* ovs-rules.c: what Open vSwitch is told, in ovs-ofctl's words: lines "flow ..." and "group ..."
 * (ovs-ofctl(8), bundle).  Pure. */
char *ovs_rules(const struct node_config *, struct svec *rules);
/* The bundle that leads from 'from' to 'to', both sorted. */
char *ovs_rules_change(const struct svec *from, const struct svec *to);
/* The bridge's ports, "NAME NUMBER", sorted. */
void ovs_ports(const struct node_config *, struct svec *ports);
/* ovs-vsctl's arguments that lead from 'from' to 'to', in one transaction.  With 'from' NULL they
 * make the bridge, and print the ports that it had.  Then 'stamp', another one each time, makes
 * sure that something changes: ovs-vsctl waits until Open vSwitch has done a change. */
char *ovs_ports_change(const char *bridge, const struct svec *from, const struct svec *to,
                       long long int stamp);
/* Flows that drop packets have one of these cookies. */
#define OVS_DROP_COOKIE 0xd0
extern const char *const ovs_drops[]; /* names, ending with NULL: cookie OVS_DROP_COOKIE + index. */
/* The group that copies a tree's packets. */
unsigned int ovs_group_id(const struct tree_config *);

/* kernel-rules.c: what the kernel is told: lines of ip(8), and lines "sysctl ..." of sysctl(8).  SIDs
 * that the kernel cannot do are left out.  Pure. */
char *kernel_rules(const struct node_config *, const struct kernel_abilities *, struct svec *rules);
/* Commands for ip that try what a kernel can do, and have it say what it has understood; and what its
 * answer means.  They change a namespace. */
extern const char kernel_trial[];
void kernel_abilities_parse(const char *answer, struct kernel_abilities *);
/* ip's commands that take back what 'from' has and 'to' has not.  Both are sorted. */
char *kernel_rules_remove(const struct svec *from, const struct svec *to);
/* Adds to 'undone' sysctl's rules that take back what 'from' has and 'to' has not: a port is an IOAM
 * port no more.  Both are sorted. */
void kernel_rules_undo(const struct svec *from, const struct svec *to, struct svec *undone);
/* Do the rules have this route, one that ip shows, or one that goes another way but would be
 * replaced by it? */
bool kernel_rules_route(const struct svec *rules, const char *shown);
/* ip's command that removes a route that it shows. */
char *kernel_route_removal(const char *shown);
/* The origin of our routes, which tells them from others. */
#define KERNEL_ROUTE_PROTOCOL "95"
/* The routes of packets whose program ends here: to the hosts behind agents that are neighbours. */
#define KERNEL_LAST_TABLE     "95"
/* The device that routes to SIDs are on.  On a port's they would go when that goes down. */
#define KERNEL_ANCHOR         "rocecast-sids"

/* command.c: runs a program with 'input' (NULL: none) until it ends or the patience does.  Its
 * output, malloc'd, goes to *outputp unless 'outputp' is NULL.  An error is what the program says
 * itself. */
char *
command_run(const struct patience *, const char *const argv[], const char *input, char **outputp);

/* worker.c: the thread in which all this happens, because tools take their time. */
struct worker;
/* A worker in that namespace; -1: the caller's. */
struct worker *worker_create(int netns_fd);
/* Also ends the tool that runs. */
void worker_destroy(struct worker *);
/* Takes over the contents of a configuration.  An earlier one that the worker has not begun is left
 * out. */
void worker_configure(struct worker *, struct node_config *);
/* True if there is news of a generation.  *whyp is NULL if it is applied, else the reason why not,
 * the caller's to free. */
bool worker_outcome(struct worker *, uint64_t *generation, char **whyp);
/* One thing that a node shows. */
struct listing {
    const char *command;
    struct json *(*make)(const struct forwarder *);
    void (*reply)(struct unixctl_conn *, const struct json *, bool as_json);
};
/* Answers with what 'listing' makes, some time later. */
void worker_list(struct worker *, const struct listing *, struct unixctl_conn *, bool as_json);
/* worker_run() sends answers.  worker_wait() wakes up poll_block() for answers and for news. */
void worker_run(struct worker *);
void worker_wait(struct worker *);

/* show.c: the control socket of the node with this name, which is borrowed. */
void show_init(struct worker *, const char *node);

#endif /* castfwd/castfwd.h */
