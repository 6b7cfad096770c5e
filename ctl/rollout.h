/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order a group's receivers are put into its nodes and taken out.
 *
 * A pure step: from what the group should be and what its nodes have been told
 * and have applied, to what they are to be told next.  Nothing is remembered
 * between steps, so whoever runs it may die at any point.
 */
#ifndef CTL_ROLLOUT_H
#define CTL_ROLLOUT_H 1

#include <stdbool.h>
#include <stddef.h>

struct rollout_member {
    /* In. */
    bool wanted;      /* registered in this epoch, reachable, and not leaving. */
    bool provisioned; /* its edge has been told of it. */
    bool copied;      /* the source agent has been told of it. */

    /* Out. */
    bool provision; /* its edge is to have it. */
    bool copy;      /* the source agent is to have it. */
    bool too_late;  /* wanted, but the epoch has started without it. */
};

struct rollout {
    /* In. */
    bool source;        /* the source is bound in this epoch. */
    bool started;       /* a packet of this epoch has gone down. */
    bool agent_exists;  /* the source agent has a tree, ... */
    bool agent_open;    /* which is open, ... */
    bool agent_applied; /* and runs what it was told. */
    bool edges_applied; /* all edges that have a tree run what they were told. */
    bool was_serving;   /* 'serving' of the step before. */
    size_t n_members;
    struct rollout_member *members;

    /* Out. */
    bool agent;   /* the source agent is to have a tree, ... */
    bool open;    /* which is open. */
    bool serving; /* it is open, for all that are to be served. */
};

void rollout_step(struct rollout *);

#endif /* ctl/rollout.h */
