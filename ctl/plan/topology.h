/* SPDX-License-Identifier: Apache-2.0
 *
 * The topology as plain data: nodes, hosts, links, and the shortest ways
 * between nodes.
 *
 * A way is made of switches: a source agent may be an end of it, never in between.  Of several
 * neighbours that are equally near, the one with the lowest node id is next.  So everybody who
 * asks gets the same answer.
 */
#ifndef CTL_PLAN_TOPOLOGY_H
#define CTL_PLAN_TOPOLOGY_H 1

#include <stdbool.h>

#include "lib/congestion-settings.h"
#include "lib/node-config.h"
#include "lib/path-rule.h"
#include "lib/probe-settings.h"

/* A number that an interface has already; it keeps it. */
struct plan_port {
    char name[IFNAMSIZ];
    uint16_t number;
};

struct plan_node {
    char name[NAME_SIZE];
    uint16_t id;
    enum node_role role;
    bool no_aggregation;   /* a switch that only forwards and replicates; also each foreign node. */
    char plane[NAME_SIZE]; /* label; "": none. */
    bool excluded;         /* no path is over it. */
    size_t n_programs;     /* as in struct port_config, of a source agent. */
    struct prefix *programs;
    size_t n_ports;
    struct plan_port *ports;
};

/* Is it a source agent? */
static inline bool
plan_is_agent(const struct plan_node *node)
{
    return node->role == NODE_AGENT;
}

struct plan_host {
    char name[NAME_SIZE];
    struct in6_addr address;
    const struct plan_node *node; /* at the other end of its first link; NULL: none. */
    struct rate_settings rate;
    enum path_policy path_policy; /* of what it sends. */
};

struct plan_link {
    char a[NAME_SIZE];
    char a_port[IFNAMSIZ];
    char b[NAME_SIZE];
    char b_port[IFNAMSIZ];
    enum port_kind kind;
    bool external; /* its other end is outside of the domain. */
    bool excluded; /* no path is over it. */
    struct impair_params a_to_b, b_to_a;
    const struct plan_node *a_node, *b_node; /* its ends; NULL: a host, or nobody. */
};

struct plan_path_rule {
    enum path_rule_kind kind;
    char from[NAME_SIZE];
    char to[NAME_SIZE];
    bool has_qp; /* the pin is for packets with this DestQP only. */
    uint32_t dest_qp;
    /* A path's name, or a pin's own program: "UPLINK PROGRAM", the name of the neighbour that it is
     * sent to, and program_parse()'s text. */
    char path[PATH_NAME_SIZE];
};

/* plan_topology_prepare() sorts it and fills in what follows from the rest.  The planner needs
 * that. */
struct plan_topology {
    size_t n_nodes;
    struct plan_node *nodes; /* by id. */
    size_t n_hosts;
    struct plan_host *hosts; /* by name. */
    size_t n_links;
    struct plan_link *links; /* by a, a_port. */
    unsigned fabric_mtu;
    struct congestion_settings congestion;
    struct probe_settings probes;
    bool trace; /* a group has one. */
    enum path_form path_form;
    size_t n_path_rules;
    struct plan_path_rule *path_rules;
    uint16_t *hops; /* between any two nodes. */
    uint16_t *next; /* likewise: plan_next_node() from the second to the first, by index. */
};

void plan_topology_prepare(struct plan_topology *);
void plan_topology_uninit(struct plan_topology *);

/* NULL if there is none of that name. */
const struct plan_node *plan_find_node(const struct plan_topology *, const char *name);
const struct plan_host *plan_find_host(const struct plan_topology *, const char *name);
/* The node that a host hangs on, or NULL. */
const struct plan_node *plan_attachment(const struct plan_topology *, const char *host);
/* The switch that serves a source agent: of its neighbours the one with the lowest id, or NULL. */
const struct plan_node *
plan_agent_switch(const struct plan_topology *, const struct plan_node *agent);

/* A link seen from one of its ends. */
struct plan_end {
    const char *port;
    const char *peer;
    const char *peer_port;
    enum port_kind kind;
    bool external;
    const struct impair_params *to_peer, *from_peer;
};

/* Is 'name' an end of 'link'?  Then *end is the view from there. */
bool plan_link_end(const struct plan_link *, const char *name, struct plan_end *end);
/* Is there a link between the two? */
bool plan_linked(const struct plan_topology *, const char *a, const char *b);

#define PLAN_NO_WAY UINT16_MAX
/* Length of the shortest way, in links; PLAN_NO_WAY if there is none. */
unsigned
plan_hops(const struct plan_topology *, const struct plan_node *, const struct plan_node *);
/* Of all neighbours of 'from' on the shortest ways to 'to', is 'via' one? */
bool plan_is_next_node(const struct plan_topology *, const struct plan_node *from,
                       const struct plan_node *via, const struct plan_node *to);
/* The neighbour of 'from' that is next on the way to 'to', of several the one with the lowest id; NULL: they
 * are the same, or there is no way. */
const struct plan_node *plan_next_node(const struct plan_topology *, const struct plan_node *from,
                                       const struct plan_node *to);

#endif /* ctl/plan/topology.h */
