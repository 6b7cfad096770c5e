/* SPDX-License-Identifier: Apache-2.0
 *
 * The fabric that castscale makes in a registry, and who is in which group.
 *
 *     cores      core1 core2, if there is more than one pod
 *     pods       two spines each, and up to 48 leaves, each linked to both
 *     leaves     leaf1...: receivers on taps; some have a source agent
 *     agents     agent1...: a quarter of the nodes, each with one source host
 *
 * All follows from a few numbers, so nothing of it is kept: nodes and hosts are told apart by index.
 */
#ifndef BENCH_CASTSCALE_FABRIC_H
#define BENCH_CASTSCALE_FABRIC_H 1

#include <stddef.h>

#include "ctl/registry/request.h"
#include "ctl/registry/rocecast-idl.h"

#define FABRIC_NODES_MIN  4
#define FABRIC_NODES_MAX  4000
#define FABRIC_NAME_SIZE  24
#define FABRIC_GROUPS_MAX 4096 /* as many as there are Replication-IDs. */

struct fabric {
    unsigned n_nodes; /* all of the below. */
    unsigned n_cores, n_pods, n_spines, n_leaves, n_agents;
    unsigned n_receivers; /* hosts, spread over leaves. */
    unsigned n_members;   /* of each group, at most n_receivers. */
};

/* 'n_receivers' of 0: one for each leaf. */
void fabric_init(struct fabric *, unsigned n_nodes, unsigned n_receivers, unsigned n_members);

/* Adds all nodes, hosts and links. */
void fabric_insert(const struct fabric *, struct ovsdb_idl_txn *);
/* Adds a host with a name that no other one has, or removes it, with its link.  It hangs on the first
 * leaf.  Each node has another route then. */
void fabric_add_guest(const struct fabric *, struct ovsdb_idl_txn *);
void fabric_remove_guest(const struct ovsdb_idl *);

/* Adds group number 'group', with its source and members. */
void fabric_insert_group(const struct fabric *, struct ovsdb_idl_txn *, unsigned group);

/* The name of a group, and the host of one of its members. */
void fabric_group_name(unsigned group, char name[FABRIC_NAME_SIZE]);
void fabric_member_host(const struct fabric *, unsigned group, unsigned member,
                        char name[FABRIC_NAME_SIZE]);
/* How the host registers with the group; the names are borrowed. */
struct request_member fabric_member(unsigned group, const char *group_name, const char *host);

#endif /* bench/castscale/fabric.h */
