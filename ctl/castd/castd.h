/* SPDX-License-Identifier: Apache-2.0
 *
 * castd's own structures.  One computation leads from the registry's rows to
 * what they must be, within one transaction:
 *
 *   load.c     castd_load()      rows -> topology, nodes, groups
 *   alloc.c    castd_allocate()  Proxy Addresses, Replication-IDs, epochs, QPNs, rkeys, branch ids
 *   loss.c     castd_find_lost() members that nodes have lost
 *   rollout.c  castd_rollout()   each group's next step -> trees wanted
 *   sync.c     castd_sync()      nodes' rows made equal to what is wanted; generations
 *   report.c   castd_report()    states and status texts of groups and members
 *   load.c     castd_unload()
 *
 * Calls between these files go up this list, never down.
 */
#ifndef CTL_CASTD_CASTD_H
#define CTL_CASTD_CASTD_H 1

#include "ctl/plan/rollout.h"
#include "ctl/registry/rocecast-idl.h"

struct castd_node {
    const struct rrec_node *row;
    const struct plan_node *node;
    bool caught_up; /* it had applied its generation before this computation. */
};

struct castd_group {
    const struct rrec_group *row;
    const struct rrec_source *source; /* NULL: none. */
    size_t n_members;
    const struct rrec_member **members;
    struct rollout rollout; /* its members are in the order of 'members'. */
    bool changed;           /* one of its trees was written. */
};

struct castd {
    struct ovsdb_idl *idl;
    const struct rrec_global *global;
    struct plan_topology topology;
    size_t n_nodes;
    struct castd_node *nodes; /* in the order of topology.nodes. */
    size_t n_groups;
    struct castd_group *groups;
};

void castd_load(struct castd *, struct ovsdb_idl *);
void castd_unload(struct castd *);

void castd_allocate(struct castd *);
void castd_find_lost(struct castd *);
void castd_rollout(struct castd *);
void castd_sync(struct castd *);
void castd_report(struct castd *);

/* load.c. */
/* The key with this id; NULL: none. */
const struct rrec_key *castd_find_key(const struct ovsdb_idl *, int64_t id);
/* A group's tree at a node in the current epoch; NULL: none. */
const struct rrec_tree_node *
castd_find_tree(const struct rrec_node *, const char *proxy, int64_t epoch);
/* The source agent of a tree; NULL: the topology does not know it. */
const struct plan_node *castd_tree_agent(const struct castd *, const struct rrec_tree_node *);

/* loss.c: is this registration lost in this epoch? */
bool castd_is_lost(const struct rrec_member *);

/* rollout.c: does the node run this tree as it was last written? */
bool castd_tree_applied(const struct rrec_node *, const struct rrec_tree_node *);

#endif /* ctl/castd/castd.h */
