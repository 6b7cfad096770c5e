/* SPDX-License-Identifier: Apache-2.0
 *
 * castd's own structures.  One computation leads from the registry's rows to
 * what they must be, within one transaction:
 *
 *   load.c     castd_load()        rows -> topology, nodes; which groups are due for these
 *   nodes.c    castd_sync_nodes()  ports, routes, SIDs and paths
 *   load.c     castd_take()        some of the groups that are due, again and again:
 *   replace.c  castd_replace()     who gets the place of a member that is registered
 *   loss.c     castd_find_lost()   members that nodes have lost
 *   connect.c  castd_connect()     RDMA-CM programs that connect, listen, and go
 *   alloc.c    castd_allocate()    addresses, Replication-IDs, epochs, QPNs, rkeys, branch ids
 *   rollout.c  castd_rollout()     each group's next step -> trees wanted
 *   sync.c     castd_sync()        nodes' trees made equal to what is wanted; generations
 *   report.c   castd_report()      states and status texts of groups and members
 *   messages.c castd_number_messages()  which messages members begin with, and lost ones have
 *   sync.c     castd_sync_rest()   trees of groups that are gone; requests that are answered
 *   connect.c  castd_connect_rest() connections to Proxies of no group
 *   faults.c   castd_find_faults() what is broken, by nodes' probes
 *   load.c     castd_unload()
 *
 * Losses are found before another epoch begins, which keeps only members that are not lost.
 *
 * Calls between these files go up this list, but for castd_find_edge() and castd_give_branch().
 * From one computation to the next mirror.c keeps which rows belong together, and work.c which groups are
 * due.  follow.c brings both up to date when the registry has changed.
 */
#ifndef CTL_CASTD_CASTD_H
#define CTL_CASTD_CASTD_H 1

#include "ctl/castd/mirror.h"
#include "ctl/castd/work.h"
#include "ctl/plan/probe.h"
#include "ctl/plan/rollout.h"
#include "ctl/registry/rocecast-idl.h"
#include "openvswitch/hmap.h"
#include "svec.h"

struct castd_node {
    const struct rrec_node *row;
    const struct plan_node *node;
    bool caught_up; /* it had applied its generation before this computation. */
    bool changed;   /* it has a new generation: something of what it is told was written. */
    bool listed;    /* Node.trees was written. */
};

/* A tree that a node has. */
struct castd_tree {
    struct castd_node *node;
    const struct rrec_tree_node *row;
};

struct castd_trees {
    size_t n, allocated;
    struct castd_tree *trees; /* by node, in the order of castd.nodes. */
};

/* An RDMA-CM connection. */
struct castd_connection {
    const struct rrec_connection *row;
    /* Of the program, if the group is due.  NULL: none has the address. */
    const struct plan_host *host;
};

/* A group that is due. */
struct castd_group {
    struct work_group *work;
    const struct rrec_group *row;
    const struct rrec_source *source; /* NULL: none. */
    size_t n_members;
    const struct rrec_member **members;
    struct castd_trees trees; /* of its Proxy Address, in any epoch. */
    size_t n_connections;
    struct castd_connection *connections; /* of its Proxy Address. */
    size_t n_listeners;
    const struct rrec_listener **listeners;
    size_t n_rows; /* of all of these, and of the trees' branches and keys. */

    struct rollout rollout; /* its first members are in the order of 'members'. */
    struct svec newcomers;  /* hosts of members that castd_connect() has made. */
    bool has_new_source;    /* castd_connect() has made one, beside 'source'. */
    bool changed;           /* one of its trees was written. */
    bool written;           /* anything was. */
};

/* A key, or a node's copy of one. */
struct castd_key {
    struct hmap_node hmap_node;
    const struct rrec_key *key;
    const struct rrec_node_key *copy;
};

/* The topology, from one computation to the next. */
struct castd_topology {
    bool known;
    struct plan_topology plan;
    const struct rrec_node **nodes; /* rows, in the order of plan.nodes. */
};

struct castd {
    struct ovsdb_idl *idl;
    struct work *work;
    const struct rrec_global *global;
    struct plan_topology topology; /* borrowed. */
    size_t n_nodes;
    struct castd_node *nodes; /* in the order of topology.nodes. */
    const struct mirror *mirror;
    size_t n_due, allocated_due;
    struct castd_group **due;      /* taken together. */
    size_t n_looked_at, n_written; /* rows, more or less. */
    struct castd_trees orphans;    /* trees of no group. */
    size_t n_strays;
    struct castd_connection *strays; /* connections of no group. */
    struct hmap keys, node_keys;
    unsigned long *replication_ids; /* those in use; NULL: not known yet. */
};

/* The mirror is up to date, and the topology is, or will be, what the last computation has left. */
void castd_load(struct castd *, struct ovsdb_idl *, struct mirror *, struct castd_topology *,
                struct work *);
void castd_unload(struct castd *);
void castd_topology_uninit(struct castd_topology *);

void castd_sync_nodes(struct castd *);
/* Takes up groups that are due, in c->due; the functions below are about these.  False: none is
 * left, or the transaction is big enough. */
bool castd_take(struct castd *);
void castd_replace(struct castd *);
void castd_allocate(struct castd *);
void castd_find_lost(struct castd *);
void castd_connect(struct castd *);
void castd_rollout(struct castd *);
void castd_sync(struct castd *);
void castd_report(struct castd *);
void castd_number_messages(struct castd *);
void castd_sync_rest(struct castd *);
void castd_connect_rest(struct castd *);
/* 'now' is the time of day, in milliseconds. */
void castd_find_faults(struct castd *, long long now);

/* load.c. */
/* The key with this id; NULL: none. */
const struct rrec_key *castd_find_key(const struct castd *, int64_t id);
/* A node's copy of a key; NULL: it has none. */
const struct rrec_node_key *castd_find_node_key(const struct castd *, const char *node, int64_t id);
void castd_add_node_key(struct castd *, const struct rrec_node_key *);
void castd_add_tree(struct castd_trees *, struct castd_node *, const struct rrec_tree_node *);
/* A node's tree of this epoch; NULL: none. */
const struct rrec_tree_node *
castd_find_tree(const struct castd_trees *, const struct plan_node *, int64_t epoch);
/* The source agent of a tree; NULL: the topology does not know it. */
const struct plan_node *castd_tree_agent(const struct castd *, const struct rrec_tree_node *);

/* nodes.c: are its routes rows, since its agent is of before 2.10, which does not find them?  One that has never
 * had an agent waits for the first. */
bool castd_has_route_rows(const struct rrec_node *);
/* The node is told something else.  Of each node once in a transaction. */
void castd_begin_generation(struct castd_node *);

/* paths.c: adds the destinations to what is wanted, and makes Node.destinations equal to them; true if
 * anything changed that the node is told.  *probes has what the node is to probe. */
struct castd_ways;
bool
castd_sync_paths(const struct castd *, const struct castd_node *, const struct plan_graph *,
                 const struct castd_ways *, struct node_config *want, struct plan_probes *probes);

/* planes.c: the ways of all groups' planes, which their ends probe, by index in the topology. */
struct castd_ways {
    size_t n;
    struct plan_peer_way *ways;
};
struct castd_ways *castd_plane_ways(const struct castd *);
void castd_plane_ways_free(const struct castd *, struct castd_ways *);
/* Of these ways.  0: there are none. */
uint64_t castd_digest_planes(const struct castd *);
/* Gives planes the numbers of the nodes' probes that are about them. */
void castd_set_plane_probes(const struct castd *, struct plan *);

/* probes.c: makes Node.probes and Node.probers equal to what all nodes are to probe, by index in the
 * topology; true if anything changed that the node is told. */
bool
castd_sync_probes(const struct castd *, const struct castd_node *, const struct plan_probes all[]);
/* Of all that castd has written of probes.  Another one: something has changed. */
uint64_t castd_digest_probes(const struct castd *);

/* alloc.c: from now on the member is another branch, of which nothing is known. */
void castd_give_branch(const struct castd_group *, const struct rrec_member *);

/* loss.c: has this epoch failed because all were lost who counted? */
bool castd_all_lost(const struct rrec_group *);
/* The tree of this epoch that has this branch; NULL: none. */
const struct castd_tree *castd_find_edge(const struct castd_group *, int64_t branch);
/* How slow the member is, or a node of the group's tree, with its name; malloc'd.  NULL: it is not,
 * or none is. */
char *castd_find_slow(const struct castd_group *, const struct rrec_member *);
char *castd_find_slow_node(const struct castd *, const struct castd_group *);

/* rollout.c: does the node draw a number for each life of the tree (R25, R26)? */
bool castd_tree_has_life(const struct rrec_node *, const struct rrec_tree_node *);
/* Does it run this tree as it was last written? */
bool castd_tree_applied(const struct rrec_node *, const struct rrec_tree_node *);
/* Does a switch keep a tree of an earlier epoch with this host?  It does as long as a source agent
 * may send into that tree. */
bool castd_is_in_earlier_epoch(const struct castd_group *, const char *host);

#endif /* ctl/castd/castd.h */
