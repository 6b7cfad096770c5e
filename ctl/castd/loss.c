/* SPDX-License-Identifier: Apache-2.0
 *
 * Lost and slow members: from what nodes report of their branches to members by name,
 * and to what becomes of the group.
 *
 * A node's report is in its tree's row, which goes away when the tree shrinks.
 * The transaction that shrinks the tree copies the report into the member's row,
 * where it stays as long as the epoch and the registration last.  Who is slow is not
 * kept: it may be fast again.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/group-state.h"
#include "ctl/registry/intent.h"
#include "ctl/registry/values.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_loss);

/* How Group.lost begins then. */
#define ALL_LOST "all members are lost: "

bool
castd_all_lost(const struct rrec_group *g)
{
    return !strncmp(g->lost, ALL_LOST, strlen(ALL_LOST));
}

static const char *
find_branch(const int64_t *ids, char *const *texts, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == id) {
            return texts[i];
        }
    }
    return NULL;
}

/* Why the node has lost the branch; NULL: it has not. */
static const char *
lost_branch(const struct rrec_tree_node *tree, int64_t id)
{
    return find_branch(tree->key_lost, tree->value_lost, tree->n_lost, id);
}

/* How slow the branch is. */
static const char *
slow_branch(const struct rrec_tree_node *tree, int64_t id)
{
    return find_branch(tree->key_slow, tree->value_slow, tree->n_slow, id);
}

const struct castd_tree *
castd_find_edge(const struct castd_group *g, int64_t branch)
{
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_tree *t = &g->trees.trees[i];

        for (size_t j = 0; t->row->epoch == g->row->epoch && j < t->row->n_branches; j++) {
            if (t->row->branches[j]->id == branch) {
                return t;
            }
        }
    }
    return NULL;
}

static bool
has_joined(const struct rrec_tree_node *tree, int64_t branch)
{
    for (size_t i = 0; i < tree->n_joined; i++) {
        if (tree->key_joined[i] == branch) {
            return true;
        }
    }
    return false;
}

/* Is the branch one that the node waits for? */
static bool
branch_counts(const struct rrec_tree_node *tree, const struct rrec_branch *b)
{
    return !b->join || has_joined(tree, b->id);
}

/* Must this epoch's completions stand for the member?  Not as long as nothing has gone down, nor as
 * long as it only waits. */
static bool
counts(const struct castd_group *g, const struct rrec_member *m)
{
    const struct castd_tree *t =
        g->row->started && m->branch ? castd_find_edge(g, m->branch) : NULL;

    for (size_t i = 0; t && i < t->row->n_branches; i++) {
        const struct rrec_branch *b = t->row->branches[i];

        if (b->id == m->branch) {
            return branch_counts(t->row, b);
        }
    }
    return false;
}

static const struct castd_tree *
find_parent(const struct castd_group *g, const struct castd_tree *below)
{
    struct in6_addr sid;

    if (!ip6_parse(below->row->parent_sid, &sid)) {
        return NULL;
    }
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_tree *t = &g->trees.trees[i];
        struct in6_addr response = node_sid(t->node->node->id, SID_FUNC_RESPONSE);

        if (t->row->epoch == below->row->epoch && IN6_ARE_ADDR_EQUAL(&sid, &response)) {
            return t;
        }
    }
    return NULL;
}

/* The first tree that has lost the branch; NULL: none has. */
static const struct rrec_tree_node *
find_loss(const struct castd_group *g, int64_t branch)
{
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct rrec_tree_node *row = g->trees.trees[i].row;

        if (row->epoch == g->row->epoch && lost_branch(row, branch)) {
            return row;
        }
    }
    return NULL;
}

/* What the first node that has something to say of this branch, in this epoch, says, with its name.
 * malloc'd; NULL: none has. */
static char *
find_report_in(const struct castd_group *g, int64_t epoch, int64_t branch,
               const char *(*say)(const struct rrec_tree_node *, int64_t branch))
{
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_tree *t = &g->trees.trees[i];
        const char *text = t->row->epoch == epoch ? say(t->row, branch) : NULL;

        if (text) {
            return xasprintf("%s (seen by %s)", text, t->node->row->name);
        }
    }
    return NULL;
}

static char *
find_report(const struct castd_group *g, int64_t branch,
            const char *(*say)(const struct rrec_tree_node *, int64_t branch))
{
    return find_report_in(g, g->row->epoch, branch, say);
}

char *
castd_find_slow(const struct castd_group *g, const struct rrec_member *m)
{
    return find_report(g, m->branch, slow_branch);
}

char *
castd_find_slow_node(const struct castd *c, const struct castd_group *g)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct plan_node *n = c->nodes[i].node;
        char *how = find_report(g, BRANCH_ID_NODE((int64_t) n->id), slow_branch);

        if (how) {
            char *text = xasprintf("node %s slow: %s", n->name, how);

            free(how);
            return text;
        }
    }
    return NULL;
}

/* Does the node admit nobody, since it was started again when nobody counted at it? */
static bool
is_blank(const struct castd_tree *t)
{
    bool counts = false;

    for (size_t i = 0; i < t->row->n_branches; i++) {
        counts |= branch_counts(t->row, t->row->branches[i]);
    }
    return t->row->blank && !counts;
}

/* The tree of the nearest node above the member that has to be made anew; NULL: there is none. */
static const struct castd_tree *
find_blank_above(const struct castd_group *g, const struct rrec_member *m)
{
    const struct castd_tree *t = castd_find_edge(g, m->branch);

    for (size_t i = 0; t && i < g->trees.n && !is_blank(t); i++) {
        t = find_parent(g, t);
    }
    return t && is_blank(t) ? t : NULL;
}

/* The tree of the nearest lost node that the member is behind; NULL: none is lost. */
static const struct castd_tree *
find_lost_above(const struct castd_group *g, const struct rrec_member *m)
{
    const struct castd_tree *t = castd_find_edge(g, m->branch);

    /* A way up with more steps than there are trees is a circle that somebody has written. */
    for (size_t i = 0; t && i < g->trees.n; i++) {
        if (find_loss(g, BRANCH_ID_NODE((int64_t) t->node->node->id))) {
            return t;
        }
        t = find_parent(g, t);
    }
    return NULL;
}

/* Up to which PSN the branch had confirmed when it was lost. */
static const int64_t *
find_lost_psn(const struct castd_group *g, int64_t branch)
{
    const struct rrec_tree_node *tree = find_loss(g, branch);

    for (size_t i = 0; tree && i < tree->n_lost_psn; i++) {
        if (tree->key_lost_psn[i] == branch) {
            return &tree->value_lost_psn[i];
        }
    }
    return NULL;
}

/* Does this loss, which is not in the rows yet, fail the group?  With policy fail-group the first
 * of a member that is counted does.  That of one who only waits does not, unless it is a node's
 * above it. */
static bool
fails_group(const struct castd_group *g, const struct rrec_member *m)
{
    return !g->rollout.group.policy.prune && !g->row->lost[0] && !m->lost[0]
           && (counts(g, m) || find_lost_above(g, m));
}

/* The member is lost, as is said of this branch: its own, or that of a node above it.  What that is
 * to the group is decided now, by the policy of now: the epoch stays over when the member is out,
 * since the source has been told, and one that nodes have pruned hurts nobody later. */
static void
set_lost(const struct castd_group *g, const struct rrec_member *m, const char *why, int64_t branch)
{
    const int64_t *psn = find_lost_psn(g, branch);

    VLOG_WARN("group %s: member %s is lost: %s", g->row->name, m->host, why);
    if (fails_group(g, m)) {
        char *text = xasprintf("member %s is lost: %s", m->host, why);

        rrec_group_set_lost(g->row, text);
        free(text);
    }
    rrec_member_set_lost(m, why);
    rrec_member_set_lost_psn(m, psn, psn != NULL);
    rrec_member_set_good_messages(m, NULL, 0);
}

/* The member, which only waits, lacks nothing: it waits on as another branch, which joins when the
 * tree above it is made anew. */
static void
wait_anew(const struct castd_group *g, const struct rrec_member *m, const char *why)
{
    if (!strcmp(m->want, "active")) {
        VLOG_INFO("group %s: member %s waits anew, %s", g->row->name, m->host, why);
        castd_give_branch(g, m);
    }
}

/* A node above the member was lost.  Who counts is lost with it.  With policy prune one that only
 * waits waits on. */
static void
lose_behind(const struct castd_group *g, const struct rrec_member *m,
            const struct castd_tree *above)
{
    int64_t branch = BRANCH_ID_NODE((int64_t) above->node->node->id);
    char *said = find_report(g, branch, lost_branch);
    char *why = xasprintf("behind node %s: %s", above->node->node->name, said);

    if (counts(g, m) || !g->row->started || !g->rollout.group.policy.prune) {
        set_lost(g, m, why, branch);
    } else {
        wait_anew(g, m, why);
    }
    free(why);
    free(said);
}

/* What nodes say, in the epoch of this tree, of the loss of one of its branches, or of a node above
 * that.  malloc'd; NULL: nothing. */
static char *
find_loss_at(const struct castd_group *g, const struct castd_tree *edge,
             const struct rrec_branch *b)
{
    char *why = find_report_in(g, edge->row->epoch, b->id, lost_branch);
    const struct castd_tree *t = branch_counts(edge->row, b) ? edge : NULL;

    for (size_t i = 0; t && !why && i < g->trees.n; i++) {
        int64_t node = BRANCH_ID_NODE((int64_t) t->node->node->id);
        char *said = find_report_in(g, edge->row->epoch, node, lost_branch);

        why = said ? xasprintf("behind node %s: %s", t->node->node->name, said) : NULL;
        t = find_parent(g, t);
        free(said);
    }
    return why;
}

/* Is this a branch of the queue pair that the member was kept with?  The QPN that it is connected
 * to tells it from one of another epoch that had its number. */
static bool
is_kept_branch(const struct rrec_member *m, const struct rrec_tree_node *tree,
               const struct rrec_branch *b)
{
    int64_t designated_qpn = b->n_designated_qpn ? b->designated_qpn[0] : tree->designated_qpn;

    return m->n_designated_qpn && m->designated_qpn[0] == designated_qpn && m->qpn == b->qpn
           && !strcmp(m->host, b->name);
}

/* Why the queue pair that the member was kept with is lost in an epoch that is over: it may lack
 * messages of that, wherever it stands now.  malloc'd; NULL: it is not. */
static char *
find_past_loss(const struct castd_group *g, const struct rrec_member *m)
{
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_tree *t = &g->trees.trees[i];

        for (size_t j = 0; t->row->epoch != g->row->epoch && j < t->row->n_branches; j++) {
            const struct rrec_branch *b = t->row->branches[j];
            char *said = is_kept_branch(m, t->row, b) ? find_loss_at(g, t, b) : NULL;

            if (said) {
                char *why = xasprintf("was lost in epoch %" PRId64 ": %s", t->row->epoch, said);

                free(said);
                return why;
            }
        }
    }
    return NULL;
}

/* Includes members that are leaving: as long as one is counted, its loss is the group's.  An edge
 * may refuse for its last receiver, and the node above prune the edge for that: both report at the
 * same time.  The edge's report tells more, so it wins, also if it comes later; but not when its tree
 * has ended by then, and it is in the edge's log alone. */
static void
find_lost_members(const struct castd_group *g)
{
    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i];

        if (m->epoch != g->row->epoch || !m->branch) {
            continue;
        }
        char *why = find_report(g, m->branch, lost_branch);
        if (!why && !m->lost[0]) {
            why = find_past_loss(g, m);
        }
        const struct castd_tree *above = why || m->lost[0] ? NULL : find_lost_above(g, m);
        if (above) {
            lose_behind(g, m, above);
        } else if (!why && !m->lost[0] && find_blank_above(g, m)) {
            wait_anew(g, m, "since a node above it was started again");
        } else if (why && strcmp(why, m->lost)) {
            set_lost(g, m, why, m->branch);
        }
        free(why);
    }
}

/* Does the tree have a member that stays: neither lost nor leaving, nor only waiting? */
static bool
any_left(const struct castd_group *g)
{
    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i];

        if (m->epoch == g->row->epoch && !strcmp(m->want, "active") && !m->lost[0]
            && counts(g, m)) {
            return true;
        }
    }
    return false;
}

/* Policy prune: the epoch is over when nobody is left, once it has begun.  It stays over: the
 * source is told, and who is admitted after that does not change it. */
static void
find_all_lost(const struct castd_group *g)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    if (castd_all_lost(g->row)) {
        return;
    }
    if (!g->row->started || any_left(g)) {
        rrec_group_set_lost(g->row, "");
        return;
    }
    for (size_t i = 0; i < g->n_members; i++) {
        if (member_is_lost(g->members[i])) {
            ds_put_format(&s, "%s%s (%s)", s.length ? ", " : ALL_LOST, g->members[i]->host,
                          g->members[i]->lost);
        }
    }
    if (s.length) {
        rrec_group_set_lost(g->row, ds_cstr(&s));
    }
    ds_destroy(&s);
}

/* Has the node lost a branch that it was not only asking?  None is lost otherwise before a packet
 * went down. */
static bool
has_lost(const struct rrec_tree_node *tree)
{
    for (size_t i = 0; i < tree->n_branches; i++) {
        const struct rrec_branch *b = tree->branches[i];

        if ((!b->join || strcmp(b->join, branch_join_name(BRANCH_ASKED)))
            && lost_branch(tree, b->id)) {
            return true;
        }
    }
    return false;
}

/* Keeps what the source agent reported, beyond the row that it reported it in.  A loss also says
 * that the epoch has started, as long as there is an agent that a packet may have come from. */
static void
latch_started(const struct castd_group *g)
{
    bool has_agent = false, any_lost = false;

    for (size_t i = 0; i < g->trees.n; i++) {
        const struct rrec_tree_node *tree = g->trees.trees[i].row;

        if (tree->epoch == g->row->epoch) {
            has_agent |= intent_tree_is_source(g->trees.trees[i].node->row, tree);
            any_lost |= has_lost(tree);
            if (tree->started) {
                rrec_group_set_started(g->row, true);
            }
        }
    }
    if (has_agent && any_lost) {
        rrec_group_set_started(g->row, true);
    }
}

void
castd_find_lost(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        const struct castd_group *g = c->due[i];

        latch_started(g);
        find_lost_members(g);
        if (g->rollout.group.policy.prune) {
            find_all_lost(g);
        }
    }
}
