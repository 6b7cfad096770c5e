/* SPDX-License-Identifier: Apache-2.0
 *
 * States and status texts: what a group or member is waiting for, by name.
 *
 * Runs last, on rows as this transaction leaves them.  A generation that another group begins later
 * makes this group due again.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/group-state.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_report);

#define NEXT_EPOCH "joins in the next epoch (castctl group reset %s)"

#define OUTDATED                                                         \
    "the topology has changed: this epoch keeps its tree, the next one " \
    "takes the new (castctl group reset %s)"

static void
put_node(const struct rrec_node *n, struct ds *s)
{
    ds_put_format(s, "%s node %s (generation %" PRId64 ", applied %" PRId64 "%s%s)",
                  s->length ? "," : "waiting for", n->name, n->cfg, n->nb_cfg,
                  n->state[0] && strcmp(n->state, "ok") ? ", " : "",
                  strcmp(n->state, "ok") ? n->state : "");
}

/* The nodes that have not applied what they were told about this group. */
static void
waiting_for(const struct castd_group *g, struct ds *s)
{
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_tree *t = &g->trees.trees[i];

        if (t->row->epoch == g->row->epoch && !castd_tree_applied(t->node->row, t->row)) {
            put_node(t->node->row, s);
        }
    }
}

/* May this source agent still send to the group's switches, although it has no tree of the group
 * any more, or one of an earlier epoch? */
static bool
may_feed(const struct castd *c, const struct castd_group *g, const struct castd_node *agent)
{
    for (size_t i = 0; i < g->trees.n; i++) {
        if (castd_tree_agent(c, g->trees.trees[i].row) == agent->node) {
            return true;
        }
    }
    return false;
}

/* The nodes that keep the group's members from leaving.  A source agent that was told to drop the
 * whole tree has no tree left to tell by; it is known by its generation. */
static void
draining_for(const struct castd *c, const struct castd_group *g, struct ds *s)
{
    waiting_for(g, s);
    bool known = s->length > 0;
    for (size_t i = 0; i < c->n_nodes && !known; i++) {
        const struct castd_node *n = &c->nodes[i];

        if (plan_is_agent(n->node) && !n->caught_up && may_feed(c, g, n)) {
            put_node(n->row, s);
        }
    }
}

/* Is the member asked where its queue pair stands, or to be asked? */
static bool
is_asked(const struct castd_group *g, size_t i)
{
    const struct rrec_member *m = g->members[i];

    return g->rollout.source && g->rollout.group.members[i].ask && m->epoch == g->row->epoch
           && !strcmp(m->want, "active") && !member_is_lost(m) && !g->rollout.members[i].error;
}

static bool
any_asked(const struct castd_group *g)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (is_asked(g, i)) {
            return true;
        }
    }
    return false;
}

/* The nodes that a member waits for who is to be asked, and so its group. */
static void
asking_waits_for(const struct castd *c, const struct castd_group *g, struct ds *s)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (is_asked(g, i) && castd_is_in_earlier_epoch(g, g->members[i]->host)) {
            draining_for(c, g, s);
            return;
        }
    }
    waiting_for(g, s);
}

/* Who is asked: the group does not open before. */
static void
put_asked(const struct castd_group *g, struct ds *s)
{
    const char *before = s->length ? "; asking " : "asking ";

    for (size_t i = 0; i < g->n_members; i++) {
        if (is_asked(g, i)) {
            ds_put_format(s, "%s%s", before, g->members[i]->host);
            before = ", ";
        }
    }
    ds_put_cstr(s, " where the queue pair stands");
}

/* Is anybody registered whom the topology does not let be served? */
static bool
any_failed(const struct castd_group *g)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->rollout.members[i].registered && g->rollout.members[i].error) {
            return true;
        }
    }
    return false;
}

/* Why a group that has a plan has nobody to serve. */
static void
missing(const struct castd_group *g, struct ds *s)
{
    const struct rrec_group *row = g->row;

    if (!g->source) {
        ds_put_format(s, "waiting for a source (castctl source set %s)", row->name);
    } else if (g->source->epoch != row->epoch) {
        ds_put_format(s,
                      "the source must be set again in epoch %" PRId64 " (castctl source set %s)",
                      row->epoch, row->name);
    } else if (row->started) {
        ds_put_format(s, "the group has started: who comes " NEXT_EPOCH, row->name);
    } else {
        ds_put_format(s, "waiting for members: none %s in epoch %" PRId64,
                      any_failed(g) ? "can be served" : "is registered", row->epoch);
    }
}

/* A group's state and status, but for members that are lacking. */
static enum group_state
whole_state(const struct castd *c, const struct castd_group *g, struct ds *status)
{
    const struct rrec_group *row = g->row;
    enum group_state state = GROUP_PENDING;

    if (g->rollout.error) {
        state = GROUP_FAILED;
        ds_put_cstr(status, g->rollout.error);
    } else if (row->lost[0]) {
        state = GROUP_FAILED;
        ds_put_format(status, "%s (castctl group reset %s)", row->lost, row->name);
    } else if (!row->started && any_asked(g)) {
        asking_waits_for(c, g, status);
        put_asked(g, status);
    } else if (!g->rollout.n_targets) {
        missing(g, status);
    } else {
        if (g->rollout.serving) {
            state = GROUP_READY;
        }
        waiting_for(g, status);
        if (g->rollout.auth_error) {
            ds_put_format(status, "%sauthentication stays as it is: %s", status->length ? "; " : "",
                          g->rollout.auth_error);
        }
        char *planes = plan_planes_problem(&c->topology, &g->rollout.group, &g->rollout.plan);
        if (planes) {
            ds_put_format(status, "%s%s", status->length ? "; " : "", planes);
            free(planes);
        }
        if (g->rollout.outdated) {
            ds_put_format(status, "%s" OUTDATED, status->length ? "; " : "", row->name);
        }
    }
    return state;
}

/* A ready group's state, after its members': it is degraded as long as any is lacking, otherwise
 * slow as long as any is slow, and the status says which and why.  A slow member makes the nodes
 * above it slow, too: of nodes the status speaks only if no member is. */
static enum group_state
with_members(const struct castd *c, const struct castd_group *g, struct ds *status)
{
    bool lacking = false, slow = false;

    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i];

        lacking |= member_is_lacking(m);
        slow |= member_is_slow(m);
        if (member_is_lacking(m) || member_is_slow(m)) {
            ds_put_format(status, "%s%s %s: %s", status->length ? "; " : "", m->host, m->state,
                          m->status);
        }
    }
    char *node = slow ? NULL : castd_find_slow_node(c, g);
    if (node) {
        ds_put_format(status, "%s%s", status->length ? "; " : "", node);
        free(node);
        slow = true;
    }
    return lacking ? GROUP_DEGRADED : slow ? GROUP_SLOW : GROUP_READY;
}

static void
set_group(struct castd_group *g, enum group_state state, const char *status)
{
    const struct rrec_group *row = g->row;
    const char *name = group_state_name(state);

    if (strcmp(row->state, name)) {
        VLOG_INFO("group %s: %s%s%s", row->name, name, status[0] ? ": " : "", status);
    }
    g->written |= strcmp(row->state, name) || strcmp(row->status, status);
    rrec_group_set_state(row, name);
    rrec_group_set_status(row, status);
    if (g->changed) {
        rrec_group_set_generation(row, row->generation + 1);
    }
}

/* Is a member that is leaving, perhaps from an earlier epoch, out everywhere?  Who has left stays
 * out, whatever switches have to apply since. */
static bool
is_out(const struct castd_group *g, size_t i)
{
    const struct rollout_member *in = &g->rollout.members[i];
    const struct plan_member *out = &g->rollout.group.members[i];
    bool applied = g->rollout.switches_applied || !strcmp(g->members[i]->state, "left");

    return !in->copied && !in->provisioned && !out->copy && !out->provision && applied
           && !castd_is_in_earlier_epoch(g, g->members[i]->host);
}

static void
set_member(struct castd_group *g, size_t i, const char *state, const char *status)
{
    const struct rrec_member *m = g->members[i];

    g->written |= strcmp(m->state, state) || strcmp(m->status, status);
    rrec_member_set_state(m, state);
    rrec_member_set_status(m, status);
}

static void
report_leaving(const struct castd *c, struct castd_group *g, size_t i)
{
    const struct rrec_member *m = g->members[i];
    struct ds status = DS_EMPTY_INITIALIZER;

    if (!is_out(g, i)) {
        draining_for(c, g, &status);
        set_member(g, i, "draining", ds_cstr(&status));
    } else if (!strcmp(m->want, "removed")) {
        rrec_member_delete(m);
        g->written = true;
    } else {
        rrec_member_set_branch(m, 0);
        set_member(g, i, "left", "");
    }
    ds_destroy(&status);
}

/* What a member waits for that joins an epoch under way. */
static void
report_newcomer(struct castd_group *g, size_t i)
{
    const struct rollout_member *r = &g->rollout.members[i];
    struct ds status = DS_EMPTY_INITIALIZER;

    waiting_for(g, &status);
    if (!status.length && r->lost_above) {
        ds_put_format(&status, "waiting for node %s to forget that it has lost node %s",
                      r->lost_by->name, r->lost_above->name);
    } else if (!status.length && r->unanswered) {
        ds_put_format(&status, "waiting for node %s to answer", r->unanswered->name);
    } else if (!status.length && r->admitted) {
        ds_put_cstr(&status, "waiting for the next message");
    }
    set_member(g, i, "joining", ds_cstr(&status));
    ds_destroy(&status);
}

/* What a member waits for that came into the epoch with the queue pair of an earlier one. */
static void
report_asked(const struct castd *c, struct castd_group *g, size_t i)
{
    struct ds status = DS_EMPTY_INITIALIZER;

    asking_waits_for(c, g, &status);
    if (!status.length) {
        ds_put_cstr(&status, "where its queue pair stands is being asked");
    }
    set_member(g, i, "joining", ds_cstr(&status));
    ds_destroy(&status);
}

/* What becomes of one that wants the member's place, malloc'd; NULL: there was none. */
static char *
wanted_place(const struct castd_group *g, const struct rrec_member *m)
{
    const struct castd_tree *edge = m->n_new_qpn ? castd_find_edge(g, m->branch) : NULL;
    struct ds s = DS_EMPTY_INITIALIZER;

    if (!edge) {
        return m->refused[0] ? xstrdup(m->refused) : NULL;
    }
    if (castd_tree_applied(edge->node->row, edge->row)) {
        ds_put_format(&s, "node %s asks its queue pair", edge->node->row->name);
    } else {
        put_node(edge->node->row, &s);
    }
    char *text =
        xasprintf("QPN 0x%" PRIx64 " is to take its place: %s", m->new_qpn[0], ds_cstr(&s));
    ds_destroy(&s);
    return text;
}

/* The number of a late member's first message is the source agent's to say (messages.c). */
static void
set_first_psn(struct castd_group *g, size_t i)
{
    static const int64_t first_message = 0;
    const struct rrec_member *m = g->members[i];
    int64_t first = g->rollout.members[i].first.v;

    g->written |= !m->n_first_psn || m->first_psn[0] != first;
    rrec_member_set_first_psn(m, &first, 1);
    if (!g->rollout.members[i].late) {
        rrec_member_set_first_message(m, &first_message, 1);
    }
}

static void
report_member(const struct castd *c, struct castd_group *g, size_t i, const char *group_status)
{
    const struct rrec_member *m = g->members[i];
    const struct rollout_member *r = &g->rollout.members[i];
    char *status = NULL;

    if (strcmp(m->want, "active")) {
        report_leaving(c, g, i);
    } else if (m->epoch != g->row->epoch) {
        status = xasprintf("must register again in epoch %" PRId64, g->row->epoch);
        set_member(g, i, "joining", status);
    } else if (member_is_lost(m)) {
        set_member(g, i, "lost", m->lost);
    } else if (r->error) {
        set_member(g, i, "failed", r->error);
    } else if (is_asked(g, i) && !g->rollout.error && !r->too_late) {
        report_asked(c, g, i);
    } else if (r->too_late) {
        status = xasprintf("the group has started, and %s: " NEXT_EPOCH, r->too_late, g->row->name);
        set_member(g, i, "joining", status);
    } else if (r->lost_above
               || (g->rollout.started && g->rollout.group.members[i].provision && !r->counts)) {
        report_newcomer(g, i);
    } else if (r->copied && g->rollout.group.members[i].copy && r->counts
               && (g->rollout.serving || member_is_active(m))) {
        char *place = wanted_place(g, m);

        set_first_psn(g, i);
        status = castd_find_slow(g, m);
        set_member(g, i, status ? "slow" : "active", status ? status : place ? place : "");
        free(place);
    } else {
        set_member(g, i, "joining", group_status);
    }
    free(status);
}

/* Is nothing of the group in flight that a node's generation would move on? */
static bool
is_settled(const struct castd_group *g)
{
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_tree *t = &g->trees.trees[i];

        if (t->row->epoch != g->row->epoch || !castd_tree_applied(t->node->row, t->row)) {
            return false;
        }
    }
    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i];

        if (strcmp(m->want, "active") && strcmp(m->state, "left")) {
            return false;
        }
    }
    return g->row->proxy[0] && g->trees.n == g->rollout.plan.n_trees;
}

void
castd_report(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        struct castd_group *g = c->due[i];
        struct ds status = DS_EMPTY_INITIALIZER;

        enum group_state state = whole_state(c, g, &status);
        work_settle(c->work, g->work, is_settled(g));
        for (size_t j = 0; j < g->n_members; j++) {
            report_member(c, g, j, ds_cstr(&status));
        }
        if (state == GROUP_READY) {
            state = with_members(c, g, &status);
        }
        set_group(g, state, ds_cstr(&status));
        ds_destroy(&status);
    }
}
