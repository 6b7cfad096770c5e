/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a roll-out that is about authentication: parts of rollout_step().
 */
#ifndef CTL_PLAN_ROLLOUT_AUTH_H
#define CTL_PLAN_ROLLOUT_AUTH_H 1

#include "ctl/plan/rollout.h"

/* Checks whether the packets of an epoch under way have room for authentication, when the members
 * to copy to are known.  Fills r->auth_error. */
void rollout_auth_check(struct rollout *);

/* Do all edges accept what the source agent is to make? */
bool rollout_auth_ready(const struct rollout *);

/* The same, and do all nodes do with responses what is wanted?  Of a closed agent. */
bool rollout_auth_may_open(const struct rollout *);

/* Gives the trees of r->plan their part: key ids without secrets. */
void rollout_auth(struct rollout *);

#endif /* ctl/plan/rollout-auth.h */
