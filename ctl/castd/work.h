/* SPDX-License-Identifier: Apache-2.0
 *
 * Which groups are to be computed anew, in which order, and which request of
 * castctl that answers.
 *
 * What a group is to be follows from its own rows (Group, Source, Member, Listener,
 * Connection, its Tree_Nodes with their Branches), from the topology and the keys, and, as long
 * as it is not settled, from the generations that nodes have applied.  So a group
 * is due when one of these has changed (mirror.c).  The groups that are due wait in a queue;
 * a transaction takes some off its head.  The bound keeps a transaction short
 * however many groups are due: the connection's keepalive is answered, and the
 * daemon ends, between two of them.
 *
 * Everything here follows from the registry: a castd that starts has all groups
 * due, and finds what the one before has left.
 */
#ifndef CTL_CASTD_WORK_H
#define CTL_CASTD_WORK_H 1

#include <stdbool.h>
#include <stdint.h>

#include "openvswitch/list.h"

struct mirror_group;

struct work_group {
    struct ovs_list node;       /* in work.unsettled, or work.settled. */
    struct ovs_list queue_node; /* in work.queue or work.taken; empty: not due. */
    uint64_t ticket;            /* grows along the queue. */
    bool is_taken;              /* it is in work.taken: a transaction is about it. */
    bool again;                 /* something has changed since it was taken. */
    char *congestion; /* what was logged last of how it answers congestion; NULL: nothing. */
    struct mirror_group *group;
};

/* Since the start. */
struct work_counters {
    uint64_t n_computations;
    uint64_t n_groups;    /* that were computed, each as often as it was. */
    uint64_t n_conflicts; /* computations that were in vain: others came in between. */
};

struct work {
    struct ovs_list unsettled, settled;
    struct ovs_list queue, taken;
    uint64_t last_ticket;
    bool base;                /* nodes' ports, routes, SIDs and paths are due, */
    bool base_taken;          /* and are in the transaction. */
    bool faults;              /* what is broken is due, since probes have changed, */
    bool faults_taken;        /* and is in the transaction. */
    long long faults_at;      /* it is at this time of day; LLONG_MAX: it is not. */
    bool more;                /* there is more of what has no queue. */
    bool any_gone;            /* a group is: what it has had is free. */
    unsigned int n_conflicts; /* transactions in a row that others came in between of. */
    uint64_t probes;          /* castd_digest_probes(), */
    uint64_t planes;          /* castd_digest_planes(). */
    struct work_counters counters;
    char *topology;    /* as text; NULL: never read. */
    char *paths;       /* what only they follow from, as text. */
    char *generations; /* of the nodes, as text. */

    /* The request that is being answered.  It is answered once no group is left that was due when
     * the request was seen. */
    int64_t request;
    uint64_t request_ticket;
};

void work_init(struct work *);
void work_uninit(struct work *);

/* A group, which is due, and its end.  It may be due or taken then. */
struct work_group *work_add(struct work *, struct mirror_group *);
void work_remove(struct work *, struct work_group *);
/* A computation begins. */
void work_begin(struct work *);

void work_make_due(struct work *, struct work_group *);
void work_make_unsettled_due(struct work *);
void work_make_all_due(struct work *);
/* Can no node's generation make it due?  A new group is not settled. */
void work_settle(struct work *, struct work_group *, bool settled);

/* Notes that requests up to this number have been seen, after what they changed was made due. */
void work_request(struct work *, int64_t number, int64_t answered);
/* Is nothing due any more that the noted request has to wait for? */
bool work_is_answered(const struct work *);

/* The group at the head of the queue, which is taken off it; NULL: none. */
struct work_group *work_take(struct work *);
/* How many rows a transaction may write, more or less. */
size_t work_budget(const struct work *);

/* Is there anything left to do, whatever the registry says next? */
bool work_is_left(const struct work *);
/* Milliseconds until there is something to do whatever the registry says; LLONG_MAX: never.  'now' is the
 * time of day. */
long long work_pause(const struct work *, long long now);

/* What was taken is done; or is due again, in front of all. */
void work_done(struct work *);
void work_again(struct work *, bool conflict);

#endif /* ctl/castd/work.h */
