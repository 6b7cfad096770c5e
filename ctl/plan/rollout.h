/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order a group's trees are put into its nodes, changed and taken out.
 *
 * A pure step: from what the group should be and what its nodes have been told
 * and have applied, to what they are to be told next.  Nothing is remembered
 * between steps, so whoever runs it may die at any point.
 */
#ifndef CTL_PLAN_ROLLOUT_H
#define CTL_PLAN_ROLLOUT_H 1

#include "ctl/plan/plan.h"

struct rollout_member {
    /* In. */
    bool registered;  /* in this epoch, and not leaving. */
    bool fed;         /* nodes may still send it packets of an earlier epoch. */
    bool has_counted; /* in this epoch, whether its branch is still there or not. */

    /* Out.  An error that is there before the step says that the member's registration makes no
     * sense; 'too_late' of one that is not registered stays as it is. */
    char *error;      /* why it cannot be served. */
    bool provisioned; /* a node has been told of it. */
    bool copied;      /* the source agent has been told of it. */
    bool target;      /* it is served, or is to be, or is about to join. */
    char *too_late;   /* why it cannot join before the next epoch. */
    bool counts;      /* nodes wait for what it confirms, 'first' and what follows. */
    psn_t first;
    bool found;    /* its edge has found out what its queue pair expects, which is in its 'psn'. */
    bool late;     /* it has joined in mid-stream: 'first' is not the start PSN. */
    bool admitted; /* its edge was told to let it join. */
    /* It cannot be admitted yet: the node above this one does not count this one. */
    const struct plan_node *unanswered;
    /* It cannot join yet: a node that it would be behind was lost, and this one still says so. */
    const struct plan_node *lost_above, *lost_by;
};

/* A node says of a branch that it has lost it. */
struct rollout_loss {
    const struct plan_node *node;
    uint32_t branch;
};

struct rollout {
    /* In. */
    const struct plan_topology *topology;
    struct plan have;      /* what the nodes have been told in this epoch. */
    bool source;           /* the source is bound in this epoch. */
    bool started;          /* a packet of this epoch has gone down. */
    bool agent_applied;    /* the source agent runs what it was told. */
    bool switches_applied; /* all switches that have a tree run what they were told. */
    bool was_serving;      /* 'serving' of the step before. */
    bool over;             /* the epoch has failed: nobody joins it. */
    size_t n_lost;
    struct rollout_loss *lost; /* what the nodes' rows have of losses in this epoch. */

    /* In; the step sets 'agent' and 'open', its members' 'provision' and 'copy', and 'psn' and
     * 'ask' of those that were found. */
    struct plan_group group;
    /* In the order of group.members.  The step adds receivers that the nodes have and that are no
     * member's branch any more: they are on the way out. */
    struct rollout_member *members;

    /* Out.  An error that is there before the step says that the group has no plan. */
    char *error;      /* why the group is not served. */
    struct plan plan; /* what the nodes are to be told. */
    size_t n_targets;
    char *auth_error; /* why authentication stays as it is. */
    bool serving;     /* the agent is open, for all targets. */
    bool outdated;    /* the topology would now give another tree than this epoch has. */
};

void rollout_step(struct rollout *);
/* Frees what it refers to, but for the topology. */
void rollout_uninit(struct rollout *);

#endif /* ctl/plan/rollout.h */
