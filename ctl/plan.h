/* SPDX-License-Identifier: Apache-2.0
 *
 * What each node is to do, computed from topology and groups: ports, routes and
 * SIDs of a node, and the trees of a group.
 *
 * Pure: plain data in, plain data out, no registry and no I/O.  The same input
 * gives the same output, whatever its order.
 */
#ifndef CTL_PLAN_H
#define CTL_PLAN_H 1

#include <stdbool.h>

#include "lib/node-config.h"

/* A number that an interface has already; it keeps it. */
struct plan_port {
    char name[IFNAMSIZ];
    uint16_t number;
};

struct plan_node {
    char name[NAME_SIZE];
    uint16_t id;
    bool agent; /* a source agent, otherwise a switch. */
    size_t n_ports;
    struct plan_port *ports;
};

struct plan_host {
    char name[NAME_SIZE];
    struct in6_addr address;
};

struct plan_link {
    char a[NAME_SIZE];
    char a_port[IFNAMSIZ];
    char b[NAME_SIZE];
    char b_port[IFNAMSIZ];
    enum port_kind kind;
};

/* plan_topology_prepare() sorts it; the planner wants it so. */
struct plan_topology {
    size_t n_nodes;
    struct plan_node *nodes; /* by id. */
    size_t n_hosts;
    struct plan_host *hosts; /* by name. */
    size_t n_links;
    struct plan_link *links; /* by a, a_port. */
    unsigned fabric_mtu;
};

void plan_topology_prepare(struct plan_topology *);
void plan_topology_uninit(struct plan_topology *);

/* NULL if there is none of that name. */
const struct plan_node *plan_find_node(const struct plan_topology *, const char *name);
const struct plan_host *plan_find_host(const struct plan_topology *, const char *name);
/* The node that a host hangs on, by the first of its links. */
const struct plan_node *plan_attachment(const struct plan_topology *, const char *host);

/* Fills *out with the node's ports, routes and SIDs, each sorted by its key, and no trees.  NULL, or
 * a malloc'd sentence that says why not, with *out empty. */
char *
plan_node_config(const struct plan_topology *, const struct plan_node *, struct node_config *out);

struct plan_member {
    char host[NAME_SIZE];
    uint64_t va; /* region; len 0: none. */
    uint64_t len;
    uint32_t rkey;
    uint32_t branch; /* id, unique in the group epoch. */
    uint32_t qpn;
    bool provision; /* a branch of the tree at its edge. */
    bool copy;      /* the source agent has copies made for it. */
};

struct plan_group {
    char name[NAME_SIZE];
    uint32_t epoch;
    struct in6_addr proxy;
    uint32_t designated_qpn;
    psn_t start_psn;
    uint32_t mtu;
    uint32_t designated_rkey;
    char source_host[NAME_SIZE];
    uint32_t source_qpn;
    size_t n_members;
    struct plan_member *members;
    bool agent; /* the source agent has a tree. */
    bool open;  /* it lets packets pass. */
};

/* One node's part. */
struct plan_tree {
    const struct plan_node *node;
    struct tree_config config; /* 'generation' is 0. */
};

struct plan {
    uint64_t region_len; /* least of the provisioned members. */
    size_t n_trees;
    struct plan_tree *trees; /* switches, then the source agent. */
};

/* Can the group's source be served at all?  NULL, or a malloc'd sentence why not. */
char *plan_check_source(const struct plan_topology *, const struct plan_group *);
/* Can this host be a receiver?  Supposes that plan_check_source() is content. */
char *plan_check_member(const struct plan_topology *, const struct plan_group *, const char *host);
/* Does a packet that names 'n' receivers at one edge fit the fabric and an SRH? */
char *plan_check_size(const struct plan_topology *, uint32_t path_mtu, size_t n);

/* The group's trees, with those members that have 'provision' or 'copy'.  Supposes that source and
 * members were checked: NULL, or the first sentence of a check that fails. */
char *plan_group(const struct plan_topology *, const struct plan_group *, struct plan *out);
void plan_uninit(struct plan *);

#endif /* ctl/plan.h */
