/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a group's roll-out.
 *
 *   build   1. the agent closes, unless it is closed or has no tree
 *           2. (applied, and nothing had started) switches get the planned trees
 *           3. (applied) the agent gets the copies and opens
 *   shrink  1. the agent loses the copies; the group stays open for the others
 *           2. (applied) switches lose the receivers, and nodes that are left
 *              with neither receivers nor children
 *   ask     1. (a receiver has the queue pair of an earlier epoch, and nothing of that is sent
 *              to it any more) its edge is told to ask where that stands
 *           2. (found) it is a branch like any other, before the agent opens; after an epoch's
 *              first packet it is one that waits
 *   grow    1. (applied, and nobody leaves) switches get the newcomers' branches, and new nodes
 *              with their branches: all of them wait; in mode ingress the agent gets the new edges
 *           2. (applied) the agent gets the copies
 *           3. (applied, and all nodes above a newcomer have said that they count) its edge is
 *              told to admit it
 *           4. (its edge has said from which PSN on it counts) it is a branch like any other
 *
 * Building serves for members that join and for a topology that has changed before an epoch's first
 * packet, and for asking.  Growing serves for members that join after it.
 *
 * Why each state between is safe, whatever the order in which nodes apply it.
 * "Counted" is a receiver that the epoch's completions stand for: a target.
 *
 * Build 1.  Switches are as they were.  What the agent still lets pass goes the
 *   old ways, complete, to the receivers of before.
 * Build 2.  The agent is closed and nothing of this epoch has gone down, nor
 *   can: there is no packet to lose and no response to merge.  So all switches
 *   may be told everything at once.
 * Build 3.  All switches run the whole tree; only now may a packet go down.  A switch that
 *   learnt of a child or receiver later would drop its copies.  One that learnt of a branch
 *   later would acknowledge for the others alone.
 * Shrink 1.  Switches still count the one who leaves.  Packets without a copy for it hold the
 *   others up no longer than until step 2.
 * Shrink 2.  A node may do this before its neighbours.  If it forgets a branch, its minimum is
 *   that of the branches that stay, all of which it keeps.  If it sends no copy to a child, or
 *   drops its whole tree, only receivers that have left are not reached.  A parent that still
 *   counts such a child gets no more responses from it and merges nothing higher than before.
 *   Before step 1 was applied, however, a node would acknowledge for a receiver that is still
 *   sent to.
 *   Nobody else's SID or parent changes, because those would have to change at two nodes at the
 *   same time.  So a node that loses its last child is still sent to by its Replication-SID.
 *
 * Once a packet has gone down, a new receiver does not know its first PSN, and a node that is
 * new in the tree does not know what was confirmed below it.  So the epoch keeps the tree that it
 * has: it loses those who leave, and it grows.  While the agent is closed nothing can start: so
 * step 2 of building may rely on what step 1 found.
 *
 * Grow 1.  What waits is not counted, so nobody is held up by it and nothing is confirmed on its
 *   account: nodes may apply this in any order, and copies may reach a new node before it has
 *   applied it, which are lost.  All other nodes keep parent, SIDs and children (plan_grows()).  A
 *   node's number comes back with it.  A node above may not have applied yet that it has left, if
 *   that one had left, too: it knows by the row, which says that one that counted is to join.
 * Grow 2.  An edge makes no copy for a receiver that waits, though packets name it.  A new edge in
 *   mode ingress gets packets only now.
 * Grow 3.  A node counts in its parent from the first response on that is not below the parent's
 *   minimum, which may have been said already.  A node below which everything waits confirms what
 *   passes, so that response comes.  That it counts is in the parent's row
 *   (Tree_Node.joined), so that a parent that starts anew does not take it for one that waits.
 *   An acknowledgement at the root stands for all branches that count, and those below them that
 *   do.  Every node above the receiver counts: from the PSN on that its edge admits it at, nothing
 *   is confirmed without it, and nothing below that PSN is for it.
 * Grow 4.  This only says what is so already.  An edge that starts anew learns from the row where
 *   the receiver began.
 *
 * Ask 1.  The edge sends to the queue pair, which moves it on, so nobody else may.  Who is asked
 *   gets no copies and is not counted.
 * Ask 2.  The agent opens when all switches have applied that no branch is asked any more: it is as
 *   in step 3 of building.  Who waits is as after step 1 of growing.
 *
 * Who leaves or is lost while it waits or is asked is taken out as by shrinking.
 *
 * A node that was lost leaves likewise, with everybody behind it: who counts there is lost, and who
 * waits is to wait as another branch, which the caller sees to.  Nothing that nodes have of what is
 * behind it may stay: a branch that has refused is heard no more, and its node may not say so.  The
 * node comes back by growing as any other does, when the one above has applied that it has left and
 * says no more that it has lost it.
 *
 * What packets are authenticated with has an order of its own (rollout-auth.c),
 * which goes on beside these.
 *
 * A closed agent keeps its tree, without copies, as long as there is a source:
 * the tree is where the agent reports that the epoch has started.
 */
#include <config.h>

#include "ctl/plan/rollout.h"

#include <stdlib.h>

#include "ctl/plan/rollout-auth.h"
#include "util.h"

static bool
has_member(const struct plan_group *p, uint32_t branch)
{
    for (size_t i = 0; i < p->n_members; i++) {
        if (p->members[i].branch == branch) {
            return true;
        }
    }
    return false;
}

static void
add_former(struct rollout *r, const struct branch_config *branches, size_t n)
{
    struct plan_group *p = &r->group;

    for (size_t i = 0; i < n; i++) {
        const struct branch_config *b = &branches[i];

        if (b->kind == BRANCH_RECEIVER && !has_member(p, b->id)) {
            p->members = xrealloc(p->members, (p->n_members + 1) * sizeof *p->members);
            r->members = xrealloc(r->members, (p->n_members + 1) * sizeof *r->members);
            r->members[p->n_members] = (struct rollout_member){.registered = false};
            p->members[p->n_members] = (struct plan_member){.branch = b->id};
            ovs_strlcpy(p->members[p->n_members].host, b->name, NAME_SIZE);
            p->n_members++;
        }
    }
}

/* Receivers in the trees that are no member's branch: their registration was replaced.  They are
 * on the way out, as further members. */
static void
add_former_members(struct rollout *r)
{
    for (size_t i = 0; i < r->have.n_trees; i++) {
        const struct tree_config *c = &r->have.trees[i].config;

        add_former(r, c->branches, c->n_branches);
        add_former(r, c->copies, c->n_copies);
    }
}

static const struct branch_config *
find_receiver(const struct plan *plan, const struct plan_member *m)
{
    const struct plan_tree *tree;

    return m->branch ? plan_find_branch(plan, m->branch, &tree) : NULL;
}

/* Is its edge told to ask where its queue pair stands? */
static bool
is_asked(const struct plan *plan, const struct plan_member *m)
{
    const struct branch_config *b = find_receiver(plan, m);

    return b && b->join == BRANCH_ASKED;
}

/* Edges have found out where queue pairs stand. */
static void
take_found(struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members; i++) {
        struct plan_member *p = &r->group.members[i];
        const struct branch_config *b = find_receiver(&r->have, p);

        if (p->ask && b && b->join == BRANCH_ASKED && b->found) {
            p->ask = false;
            p->psn = b->psn;
            r->members[i].found = true;
        }
    }
}

/* Is a member to be asked where its queue pair stands, or does its edge not know yet that it has
 * been? */
static bool
any_asked(const struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members; i++) {
        const struct rollout_member *m = &r->members[i];
        const struct plan_member *p = &r->group.members[i];

        if (m->registered && !m->error && (p->ask || is_asked(&r->have, p))) {
            return true;
        }
    }
    return false;
}

/* Must its edge not know of it yet? */
static bool
is_held(const struct rollout *r, size_t i)
{
    return r->group.members[i].ask && r->members[i].fed;
}

/* The group with its targets only, as the source agent's tree allows. */
static void
ask_for_targets(struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members; i++) {
        r->group.members[i].provision = r->group.members[i].copy = r->members[i].target;
    }
}

/* The registered member with the lowest branch id above 'last'; SIZE_MAX: none. */
static size_t
next_registered(const struct rollout *r, uint32_t last)
{
    size_t next = SIZE_MAX;

    for (size_t i = 0; i < r->group.n_members; i++) {
        uint32_t branch = r->group.members[i].branch;

        if (r->members[i].registered && branch > last
            && (next == SIZE_MAX || branch < r->group.members[next].branch)) {
            next = i;
        }
    }
    return next;
}

/* Finds who can be served by this topology.  It goes by branch id, so that the latest is the one
 * who does not fit. */
static void
choose_targets(struct rollout *r)
{
    size_t i;

    ask_for_targets(r);
    for (uint32_t last = 0; (i = next_registered(r, last)) != SIZE_MAX;
         last = r->group.members[i].branch) {
        struct rollout_member *m = &r->members[i];
        struct plan_member *asked = &r->group.members[i];

        if (!m->error) {
            m->error = plan_check_member(r->topology, &r->group, asked->host);
        }
        if (!m->error) {
            asked->copy = true;
            m->error = plan_check_size(r->topology, &r->group);
            asked->copy = !m->error;
        }
        m->target = !m->error && !is_held(r, i);
    }
}

/* Have the nodes ever waited for what this member confirms? */
static bool
has_counted(const struct rollout *r, size_t i)
{
    const struct plan_tree *tree;
    const struct branch_config *b = plan_find_branch(&r->have, r->group.members[i].branch, &tree);

    return b ? b->join == BRANCH_COUNTS : r->members[i].has_counted;
}

/* Does the topology carry the trees, as far as they are there for those who count and for this
 * member, if it is not SIZE_MAX? */
static char *
check_carried_for(struct rollout *r, size_t member)
{
    struct plan now;
    char *error;

    for (size_t i = 0; i < r->group.n_members; i++) {
        const struct rollout_member *m = &r->members[i];
        struct plan_member *p = &r->group.members[i];

        p->provision = p->copy =
            i == member || (m->registered && !m->error && m->copied && has_counted(r, i));
    }
    plan_reduce(&r->have, &r->group, &now);
    error = plan_check_carried(r->topology, &r->group, &now);
    plan_uninit(&now);
    return error;
}

/* Whom the topology does not carry any more before it has counted, leaves.  That is no matter of
 * the group. */
static void
check_newcomers_carried(struct rollout *r)
{
    char *error = check_carried_for(r, SIZE_MAX);
    bool carried = !error;

    free(error);
    for (size_t i = 0; i < r->group.n_members && carried; i++) {
        struct rollout_member *m = &r->members[i];

        if (m->registered && !m->error && (m->provisioned || m->copied) && !has_counted(r, i)) {
            m->error = check_carried_for(r, i);
        }
    }
}

/* Finds who is in the tree of an epoch that has started. */
static void
keep_targets(struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members; i++) {
        struct rollout_member *m = &r->members[i];

        m->target = m->registered && !m->error && m->copied;
    }
}

/* A group that was not set up yet fails with its first member that cannot be served.  A group that
 * was set up goes on without that member.  A member that was kept fails alone: its host has not
 * asked for this epoch. */
static void
fail_new_group(struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members && !r->error; i++) {
        if (r->members[i].error && !r->group.members[i].designated_qpn) {
            r->error = xstrdup(r->members[i].error);
        }
    }
}

/* Do the nodes have the trees that this topology gives the targets?  *exact: also with the same
 * SIDs.  Also checks that the topology can carry the trees that they have. */
static bool
is_as_planned(struct rollout *r, bool *exact)
{
    struct plan now, want;
    char *error;
    bool same;

    ask_for_targets(r);
    r->group.agent = plan_agent_tree(&r->have) != NULL;
    plan_reduce(&r->have, &r->group, &now);
    error = plan_group(r->topology, &r->group, &want);
    same = !error && plan_same_shape(&now, &want);
    *exact = same && plan_same_addresses(&now, &want);
    if (r->started && r->n_targets) {
        r->error = plan_check_carried(r->topology, &r->group, &now);
    }
    free(error);
    plan_uninit(&now);
    plan_uninit(&want);
    return same;
}

/*
 * Growing.
 */

/* Is the member in the tree, and waits there, or is asked? */
static bool
waits(const struct plan *plan, const struct plan_member *m)
{
    const struct branch_config *b = find_receiver(plan, m);

    return b && b->join != BRANCH_COUNTS;
}

/* The nearest node above this branch that its parent does not count; NULL: all are counted. */
static const struct plan_node *
find_unanswered(const struct plan *plan, uint32_t branch)
{
    const struct plan_tree *tree = NULL;

    plan_find_branch(plan, branch, &tree);
    /* A way up with more steps than there are trees is a circle that somebody has written. */
    for (size_t i = 0; i < plan->n_trees && tree && !tree->config.root; i++) {
        const struct plan_node *node = tree->node;
        const struct branch_config *b = plan_find_branch(plan, BRANCH_ID_NODE(node->id), &tree);

        if (!b || b->join != BRANCH_COUNTS) {
            return node;
        }
    }
    ovs_assert(tree);
    return tree->config.root ? NULL : tree->node;
}

/* Is anybody on the way out, as of this step? */
static bool
any_leaving(const struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members; i++) {
        const struct rollout_member *m = &r->members[i];
        const struct plan_member *p = &r->group.members[i];

        if ((m->provisioned && !p->provision) || (m->copied && !p->copy)) {
            return true;
        }
    }
    return false;
}

/* Can the epoch under way take this member, whatever its tree is?  Its source may be writing all of
 * the region that there is. */
static char *
check_newcomer(const struct rollout *r, const struct plan_member *newcomer)
{
    uint64_t len = plan_agent_tree(&r->have)->config.region_len;
    char *error = plan_check_member(r->topology, &r->group, newcomer->host);

    if (!error && newcomer->len < len) {
        error = xasprintf("member %s: its region has %" PRIu64 " bytes, that of the group has "
                          "%" PRIu64 " in this epoch",
                          newcomer->host, newcomer->len, len);
    }
    return error;
}

/* Do the packets fit, with all that stay in the tree and this member? */
static char *
check_size_with(struct rollout *r, struct plan_member *newcomer)
{
    char *error;

    for (size_t i = 0; i < r->group.n_members; i++) {
        struct plan_member *p = &r->group.members[i];

        p->copy = (p->provision && r->members[i].registered) || p == newcomer;
    }
    error = plan_check_size(r->topology, &r->group);
    for (size_t i = 0; i < r->group.n_members; i++) {
        r->group.members[i].copy = r->members[i].target;
    }
    return error;
}

/* Which node says of this branch that it has lost it?  NULL: none. */
static const struct plan_node *
find_loss(const struct rollout *r, uint32_t branch)
{
    for (size_t i = 0; i < r->n_lost; i++) {
        if (r->lost[i].branch == branch) {
            return r->lost[i].node;
        }
    }
    return NULL;
}

/* Finds the nearest node above the member, in this plan, that was lost. */
static void
find_lost_above(const struct rollout *r, const struct plan *plan, uint32_t branch,
                struct rollout_member *m)
{
    const struct plan_tree *tree;

    for (size_t i = 0; i < plan->n_trees && plan_find_branch(plan, branch, &tree); i++) {
        branch = BRANCH_ID_NODE(tree->node->id);
        m->lost_by = find_loss(r, branch);
        if (m->lost_by) {
            m->lost_above = tree->node;
            return;
        }
    }
}

/* The plan with this member, too, who is not in it.  NULL, or why that cannot be. */
static char *
plan_with(struct rollout *r, struct plan_member *newcomer, struct plan *want)
{
    struct plan_group g = r->group;
    char *error;

    plan_keep_planes(&r->plan, &g);
    newcomer->provision = true;
    error = plan_group(r->topology, &g, want);
    newcomer->provision = false;
    return error ? error : plan_grows(&r->plan, want);
}

/* Takes a member into the plan, or says why not. */
static void
add_newcomer(struct rollout *r, size_t i, bool settled)
{
    struct rollout_member *m = &r->members[i];
    struct plan_member *newcomer = &r->group.members[i];
    struct plan want = {.n_trees = 0};

    m->too_late = r->over ? xstrdup("it has failed") : plan_check_source(r->topology, &r->group);
    m->error = m->too_late ? NULL : check_newcomer(r, newcomer);
    if (!m->error && !m->too_late) {
        m->too_late = plan_with(r, newcomer, &want);
    }
    if (!m->error && !m->too_late) {
        m->error = check_size_with(r, newcomer); /* all in the tree were checked. */
    }
    if (!m->error && !m->too_late) {
        find_lost_above(r, &want, newcomer->branch, m);
    }
    if (!m->error && !m->too_late && !m->lost_above && settled) {
        plan_join(&r->plan, &want);
        plan_uninit(&r->plan);
        r->plan = want;
        newcomer->provision = true;
    } else {
        plan_uninit(&want);
    }
}

/* Step 1. */
static void
add_newcomers(struct rollout *r, bool settled)
{
    size_t i;

    for (uint32_t last = 0; (i = next_registered(r, last)) != SIZE_MAX;
         last = r->group.members[i].branch) {
        if (!r->members[i].error && !r->members[i].copied && !r->members[i].provisioned
            && !is_held(r, i)) {
            add_newcomer(r, i, settled);
        }
    }
}

/* Step 2. */
static void
add_copies(struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members; i++) {
        struct rollout_member *m = &r->members[i];

        struct plan_member *p = &r->group.members[i];

        if (m->registered && !m->error && !m->copied && waits(&r->have, p)
            && !is_asked(&r->have, p)) {
            plan_add_copy(&r->plan, p->branch);
            p->copy = true;
        }
    }
}

/* Step 3. */
static void
admit(const struct rollout *r, struct tree_config *c)
{
    for (size_t i = 0; i < c->n_branches; i++) {
        struct branch_config *b = &c->branches[i];

        if (b->kind == BRANCH_RECEIVER && b->join == BRANCH_WAITS
            && plan_is_provisioned(&r->have, b->id) && !find_unanswered(&r->have, b->id)) {
            b->join = BRANCH_ADMITTED;
        }
    }
}

/* Who was asked, and is found after the epoch's first packet, waits from now on. */
static void
let_found_wait(struct rollout *r)
{
    for (size_t i = 0; i < r->plan.n_trees; i++) {
        struct tree_config *c = &r->plan.trees[i].config;

        for (size_t j = 0; j < c->n_branches; j++) {
            struct branch_config *b = &c->branches[j];

            if (b->join == BRANCH_ASKED && b->found) {
                b->join = BRANCH_WAITS;
                b->found = false;
            }
        }
    }
}

/* r->plan is what stays of what nodes have. */
static void
grow(struct rollout *r)
{
    bool settled = r->switches_applied && r->agent_applied && !any_leaving(r);

    add_newcomers(r, settled);
    if (settled && !r->over) {
        add_copies(r);
    }
    for (size_t i = 0; i < r->plan.n_trees && settled && !r->over; i++) {
        admit(r, &r->plan.trees[i].config);
    }
    let_found_wait(r);
}

/* The region of an epoch that has started stays as it is: its source knows it, and who comes back
 * may have no more. */
static void
keep_region(struct rollout *r, const struct plan_tree *agent)
{
    r->plan.region_len = agent->config.region_len;
    for (size_t i = 0; i < r->plan.n_trees; i++) {
        r->plan.trees[i].config.region_len = r->plan.region_len;
    }
}

/* What became of each member in this step. */
static void
note_members(struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members; i++) {
        struct rollout_member *m = &r->members[i];
        uint32_t branch = r->group.members[i].branch;
        const struct branch_config *b = find_receiver(&r->plan, &r->group.members[i]);

        if (b) {
            m->counts = b->join == BRANCH_COUNTS;
            m->admitted = b->join == BRANCH_ADMITTED;
            m->late = b->late;
            m->first = b->late ? b->first : r->group.start_psn;
            m->unanswered = b->join == BRANCH_WAITS ? find_unanswered(&r->plan, branch) : NULL;
        }
    }
}

/*
 * The step.
 */

/* May a closed agent open, if the nodes have what all targets need? */
static bool
may_open(const struct rollout *r)
{
    return rollout_auth_may_open(r) && (r->started || !any_asked(r));
}

/* No target is left: take out everyone, agent first. */
static void
step_down(struct rollout *r, const struct plan_tree *agent)
{
    bool agent_clear = !agent || (!agent->config.open && r->agent_applied);

    for (size_t i = 0; i < r->group.n_members; i++) {
        agent_clear &= !r->members[i].copied;
    }
    for (size_t i = 0; i < r->group.n_members; i++) {
        struct rollout_member *m = &r->members[i];

        r->group.members[i].provision = m->provisioned && !agent_clear;
        r->group.members[i].copy = false;
        if (r->started && m->registered && !m->error) {
            m->too_late = xstrdup("nobody is left in it");
        }
    }
    r->group.agent = agent != NULL;
    r->group.open = false;
    plan_reduce(&r->have, &r->group, &r->plan);
}

/* The nodes have what all targets need: open, and take out those who leave. */
static void
step_hold(struct rollout *r, const struct plan_tree *agent)
{
    bool all_provisioned = true;

    for (size_t i = 0; i < r->group.n_members; i++) {
        const struct rollout_member *m = &r->members[i];

        all_provisioned &= !m->target || m->provisioned;
        r->group.members[i].copy = m->target;
        r->group.members[i].provision =
            m->target || (m->provisioned && (m->copied || !r->agent_applied))
            || (m->registered && !m->error && waits(&r->have, &r->group.members[i]));
    }
    r->group.agent = true;
    r->group.open = agent->config.open || (all_provisioned && may_open(r));
    plan_reduce(&r->have, &r->group, &r->plan);
    if (r->started && !r->error) {
        grow(r);
    }
}

/* Some targets are new, or the tree changes.  'exact': switches have what will be planned, so that
 * they are told of no other SIDs when the agent opens. */
static void
step_build(struct rollout *r, const struct plan_tree *agent, bool exact)
{
    bool closed = !agent || (!agent->config.open && r->agent_applied);
    bool complete = closed && exact && may_open(r);

    for (size_t i = 0; i < r->group.n_members; i++) {
        const struct rollout_member *m = &r->members[i];

        r->group.members[i].provision = closed ? m->target : m->provisioned;
        r->group.members[i].copy = m->target && (m->copied || complete);
    }
    r->group.agent = agent || complete;
    r->group.open = complete;
    if (closed) {
        r->error = plan_group(r->topology, &r->group, &r->plan);
    } else {
        plan_reduce(&r->have, &r->group, &r->plan);
    }
}

void
rollout_step(struct rollout *r)
{
    const struct plan_tree *agent = plan_agent_tree(&r->have);
    bool any_new = false;
    bool build, as_planned, exact;

    add_former_members(r);
    take_found(r);
    for (size_t i = 0; i < r->group.n_members; i++) {
        uint32_t branch = r->group.members[i].branch;

        r->members[i].provisioned = branch && plan_is_provisioned(&r->have, branch);
        r->members[i].copied = branch && plan_is_copied(&r->have, branch);
    }
    if (!r->error && r->source && !r->started) {
        r->error = plan_check_source(r->topology, &r->group);
    }
    if (!r->error && r->source && r->started && !agent) {
        r->error = xasprintf("the source agent was deleted, and this epoch with it "
                             "(castctl group reset %s)",
                             r->group.name);
    }
    if (r->error || !r->source) {
        return;
    }
    if (r->started) {
        check_newcomers_carried(r);
        keep_targets(r);
    } else {
        choose_targets(r);
        if (!agent) {
            fail_new_group(r);
            if (r->error) {
                return;
            }
        }
    }
    for (size_t i = 0; i < r->group.n_members; i++) {
        r->n_targets += r->members[i].target;
        any_new |= r->members[i].target && !r->members[i].copied;
    }
    as_planned = is_as_planned(r, &exact);
    rollout_auth_check(r);
    build = !r->started && (any_new || !as_planned);
    r->outdated = r->started && r->n_targets && !as_planned;
    /* A target that needs no building is copied to, by the agent. */
    ovs_assert(agent || build || !r->n_targets);
    if (!r->n_targets) {
        step_down(r, agent);
    } else if (build) {
        step_build(r, agent, exact);
    } else {
        step_hold(r, agent);
    }
    if (r->started) {
        keep_region(r, agent);
    }
    note_members(r);
    rollout_auth(r);
    plan_set_planes(r->topology, &r->group, &r->plan);
    /* Shrinking does not interrupt the others, so nobody waits for it. */
    r->serving = r->n_targets && !build && !r->error && r->group.open && agent && agent->config.open
                 && (r->agent_applied || r->was_serving);
}

void
rollout_uninit(struct rollout *r)
{
    for (size_t i = 0; i < r->group.n_members; i++) {
        free(r->members[i].error);
        free(r->members[i].too_late);
    }
    free(r->lost);
    free(r->members);
    free(r->group.members);
    free(r->error);
    free(r->auth_error);
    plan_uninit(&r->have);
    plan_uninit(&r->plan);
}
