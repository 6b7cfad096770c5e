/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a group's roll-out.
 *
 *   grow    1. the agent closes, unless it is closed or has no tree
 *           2. (applied, and nothing had started) edges get the new members
 *           3. (applied) the agent gets the copies and opens
 *   shrink  1. the agent loses the copies; the group stays open for the others
 *           2. (applied) edges lose the members
 *
 * An edge that knew a receiver later than the agent would drop its copies; one
 * that forgot it earlier would acknowledge for it what it never got.
 *
 * Once a packet has gone down, a new receiver's first PSN is unknown to it, so
 * nobody joins before the next epoch.  While the agent is closed nothing can
 * start: that is why step 2 of growing may rely on what step 1 found.
 *
 * A closed agent keeps its tree, without copies, as long as there is a source:
 * the tree is where the agent reports that the epoch has started.
 */
#include <config.h>

#include "ctl/rollout.h"

static bool
is_target(const struct rollout *r, const struct rollout_member *m)
{
    return r->source && m->wanted && (!r->started || m->copied);
}

/* No target is left: take out everyone, agent first. */
static void
step_down(struct rollout *r)
{
    bool agent_clear = !r->agent_exists || (!r->agent_open && r->agent_applied);

    for (size_t i = 0; i < r->n_members; i++) {
        agent_clear &= !(r->agent_exists && r->members[i].copied);
    }
    for (size_t i = 0; i < r->n_members; i++) {
        r->members[i].provision = r->members[i].provisioned && !agent_clear;
        r->members[i].copy = false;
    }
    r->agent = r->agent_exists;
    r->open = false;
}

/* All targets are copied to: open, and take out those who leave. */
static void
step_hold(struct rollout *r, bool all_provisioned)
{
    for (size_t i = 0; i < r->n_members; i++) {
        struct rollout_member *m = &r->members[i];

        m->copy = is_target(r, m);
        m->provision = m->copy || (m->provisioned && (m->copied || !r->agent_applied));
    }
    r->agent = true;
    r->open = r->agent_open || (all_provisioned && r->edges_applied);
}

/* Some targets are new. */
static void
step_up(struct rollout *r, bool all_provisioned)
{
    bool closed = !r->agent_exists || (!r->agent_open && r->agent_applied);
    bool complete = closed && all_provisioned && r->edges_applied;

    for (size_t i = 0; i < r->n_members; i++) {
        struct rollout_member *m = &r->members[i];
        bool target = is_target(r, m);
        bool leaving = !target && m->provisioned && (m->copied || !closed);

        m->copy = target && (m->copied || complete);
        m->provision = leaving || (target && (closed || m->provisioned));
    }
    r->agent = r->agent_exists || complete;
    r->open = complete;
}

void
rollout_step(struct rollout *r)
{
    size_t n_targets = 0;
    bool any_new = false;
    bool all_provisioned = true;

    for (size_t i = 0; i < r->n_members; i++) {
        struct rollout_member *m = &r->members[i];
        bool target = is_target(r, m);

        m->too_late = r->source && m->wanted && !target;
        n_targets += target;
        any_new |= target && !m->copied;
        all_provisioned &= !target || m->provisioned;
    }
    if (!n_targets) {
        step_down(r);
    } else if (any_new) {
        step_up(r, all_provisioned);
    } else {
        step_hold(r, all_provisioned);
    }
    /* Shrinking does not interrupt the others, so it need not be waited for. */
    r->serving =
        n_targets && !any_new && r->open && r->agent_open && (r->agent_applied || r->was_serving);
}
