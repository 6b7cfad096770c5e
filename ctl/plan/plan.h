/* SPDX-License-Identifier: Apache-2.0
 *
 * What each node is to do, computed from topology and groups: ports, routes and
 * SIDs of a node, and the trees of a group.
 *
 * Pure: plain data in, plain data out, no registry and no I/O.  The same input
 * gives the same output, whatever its order.
 */
#ifndef CTL_PLAN_PLAN_H
#define CTL_PLAN_PLAN_H 1

#include "ctl/plan/topology.h"
#include "lib/routes.h"

/* Fills *out with the node's ports, routes and SIDs, each sorted by its key, and no destinations
 * (path.h) and trees.  NULL, or a malloc'd sentence that says why not, with *out empty. */
char *
plan_node_config(const struct plan_topology *, const struct plan_node *, struct node_config *out);

/* The same without routes. */
char *
plan_node_base(const struct plan_topology *, const struct plan_node *, struct node_config *out);

/* The next hop to each other node, in ascending order, by the shortest way, from the base of its
 * configuration.  A source agent sends everything else to its switch.  And where all hosts are.  Malloc'd. */
struct next_hop *plan_next_hops(const struct plan_topology *, const struct plan_node *,
                                const struct node_config *base, size_t *n);
struct host_location *plan_locations(const struct plan_topology *, size_t *n);

/* Adds the routes that follow from these to *base. */
void plan_routes(const struct plan_topology *, const struct plan_node *, struct node_config *base);

/* Only the ports, for *out that is empty. */
char *plan_ports(const struct plan_topology *, const struct plan_node *, struct node_config *out);

struct plan_member {
    char host[NAME_SIZE];
    uint64_t va;  /* start of the region. */
    uint64_t len; /* of the region; 0: there is none. */
    uint32_t rkey;
    uint32_t branch; /* id, unique in the group epoch. */
    uint32_t qpn;
    psn_t psn;               /* what its queue pair expects first. */
    bool ask;                /* nobody knows that: its edge is to find out. */
    uint32_t designated_qpn; /* what its queue pair is connected to; 0: the group's. */
    bool provision;          /* a branch of the tree at its edge. */
    bool copy;               /* the source agent has copies made for it. */
};

struct plan_group {
    char name[NAME_SIZE];
    uint32_t epoch;
    struct in6_addr proxy;
    uint16_t replication_id;
    uint32_t designated_qpn;
    psn_t start_psn;
    uint32_t mtu;
    uint32_t designated_rkey;
    char source_host[NAME_SIZE];
    uint32_t source_qpn;
    enum tree_mode mode;
    bool provisioned; /* packets name no receivers. */
    /* Nodes from the source agent's first switch to the tree's root, joined by commas.  The packets
     * are sent to the root with the uSIDs of those before it.  "": the root is the first switch. */
    char via[PATH_NAME_SIZE];
    char plane[NAME_SIZE]; /* nodes of other planes have no part in the tree; "": all may. */
    /* Labels: a tree in each of these planes (planes.h).  0: one tree, by 'via' and 'plane'. */
    size_t n_planes;
    char planes[PLANES_MAX][NAME_SIZE];
    char preferred_plane[NAME_SIZE]; /* "": none. */
    struct group_policy policy;      /* liveness_msec: of a node with receivers only. */
    uint64_t rate_floor;             /* bit/s, of its source agent (plan_rate_floor()). */
    struct auth_config auth;         /* what its packets are to have, and the key; no secrets. */
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

/* Is it the source agent's?  Else it is a switch's, or an agent's that is an edge. */
bool plan_tree_is_source(const struct plan_tree *);

struct plan {
    uint64_t region_len; /* least of the provisioned members. */
    size_t n_trees;
    struct plan_tree *trees; /* switches and edges, then the source agent. */
};

/*
 * tree.c, check.c: trees from the topology.
 */

/* For qsort(): the order of a tree's branches and copies, by edge and id. */
int plan_compare_branches(const void *, const void *);

/* Can the group's source be served at all?  NULL, or a malloc'd sentence why not. */
char *plan_check_source(const struct plan_topology *, const struct plan_group *);
/* Can this host be a receiver?  Supposes that plan_check_source() is content.  In a group with
 * planes: together with the members that have 'copy'. */
char *plan_check_member(const struct plan_topology *, const struct plan_group *, const char *host);
/* Do the packets for all members that have 'copy' fit an SRH and the fabric?  Supposes that source
 * and members were checked. */
char *plan_check_size(const struct plan_topology *, const struct plan_group *);

/* Why the group has fewer planes than it asks for, or cannot use one that it has, as a malloc'd
 * sentence; NULL: neither is so. */
char *
plan_planes_problem(const struct plan_topology *, const struct plan_group *, const struct plan *);

/* Says at all nodes of the plan which planes can be used, and which one the operator wants. */
void plan_set_planes(const struct plan_topology *, const struct plan_group *, struct plan *);

/* The group asks for those planes only that the source agent has in this plan: an epoch under way
 * keeps them. */
void plan_keep_planes(const struct plan *, struct plan_group *);

/* The least region of the members that have 'provision'; 0 as soon as one has none. */
uint64_t plan_region_len(const struct plan_group *);

/* The group's trees, with those members that have 'provision' or 'copy'.  Supposes that source and
 * members were checked.  NULL, or the sentence of the first check that fails, with *out empty. */
char *plan_group(const struct plan_topology *, const struct plan_group *, struct plan *out);
void plan_uninit(struct plan *);

/* Levels of the tree of aggregation: nodes that merge, on the longest way up. */
uint32_t plan_height(const struct plan *);

/* Gives all trees the group's policy.  A tree's 'liveness_msec' is the group's times its height in
 * the tree of aggregation, its 'min_rate' the group's divided by that.  So of all nodes above a
 * silent or slow receiver the nearest notices first. */
void plan_set_policy(const struct plan_group *, struct plan *);

/*
 * congestion.c: what nodes do about congestion.
 */

/* Fills *out for the node; it is empty before.  Its addresses are malloc'd. */
void plan_congestion(const struct plan_topology *, const struct plan_node *,
                     struct congestion_config *out);

/* Below this the source agent must not slow down packets of this group, whose source is the host:
 * else queue pairs with its time-out would think them lost.  Bit/s, at most the host's line rate. */
uint64_t plan_rate_floor(const struct plan_host *, const struct plan_group *);

/* What is wrong with how the group answers congestion, as a malloc'd sentence; NULL: nothing. */
char *plan_congestion_problem(const struct plan_topology *, const struct plan_group *,
                              const struct plan *);

/*
 * epoch.c, carried.c: trees that are there.
 */

/* Is this the source agent's part?  That of another agent is an edge's: it has the receiver behind
 * it. */
bool plan_tree_is_source(const struct plan_tree *);
/* The source agent's part, or NULL. */
const struct plan_tree *plan_agent_tree(const struct plan *);
/* The branch with this id, and in *tree the node that merges it; NULL: none does. */
const struct branch_config *
plan_find_branch(const struct plan *, uint32_t id, const struct plan_tree **tree);
/* Is the member with this branch id a receiver of an edge?  Does the source agent copy to it? */
bool plan_is_provisioned(const struct plan *, uint32_t branch);
bool plan_is_copied(const struct plan *, uint32_t branch);

/* Fills *out with the trees of 'have' as they are, less the receivers that have no 'provision', the
 * copies that have no 'copy', the nodes that are left with nothing to do, and the deleted nodes
 * that have nobody behind them.  Open if the group is.  Nobody gets another SID or another
 * parent. */
void plan_reduce(const struct plan *have, const struct plan_group *, struct plan *out);

/* Do both have the same ways down and up, in the same mode and the same planes, and the same paths to
 * the root and back?
 * It makes no difference how a node that has lost a child is addressed, nor what the source agent
 * may send. */
bool plan_same_shape(const struct plan *, const struct plan *);

/* For trees of one shape: are all switches addressed alike? */
bool plan_same_addresses(const struct plan *, const struct plan *);

/* Is 'want' only more than 'have', so that all nodes go on with what they do while they learn the
 * rest?  NULL, or a malloc'd sentence that names what would change.  A node that has lost all nodes
 * behind it may keep the SID that it has for them: plan_join() sees to that. */
char *plan_grows(const struct plan *have, const struct plan *want);

/* After plan_grows() was content: what 'have' has of 'want' keeps its addresses, and each branch
 * what it has of joining.  New branches wait, or are asked. */
void plan_join(const struct plan *have, struct plan *want);

/* Has the source agent make copies for this receiver of an edge, too. */
void plan_add_copy(struct plan *, uint32_t branch);

/* Does this topology still carry trees that were made for an earlier one?  NULL, or a malloc'd
 * sentence that names what is gone. */
char *
plan_check_carried(const struct plan_topology *, const struct plan_group *, const struct plan *);

#endif /* ctl/plan/plan.h */
