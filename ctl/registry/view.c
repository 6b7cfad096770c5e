/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of groups, and what lies between two of them.
 *
 * Both views are sorted alike, so two groups or members with the same place in the order are
 * compared, and one without a partner was added or has gone.  Names are unique in the registry.
 */
#include <config.h>

#include "ctl/registry/view.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/registry/group-state.h"
#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "lib/cm-conn.h"
#include "util.h"

static const struct {
    const char *name;
    unsigned int of;
} events[] = {
#define VIEW_EVENT(ENUM, NAME, OF) [EVENT_##ENUM] = {NAME, OF},
    VIEW_EVENTS
#undef VIEW_EVENT
};
WORDS_DEFINE(view_event, enum view_event, events);

unsigned int
view_event_of(enum view_event event)
{
    return events[event].of;
}

/*
 * Reading.
 */

static int
compare_groups(const void *a_, const void *b_)
{
    const struct group_view *a = a_, *b = b_;

    return strverscmp(a->name, b->name);
}

static int
compare_members(const void *a_, const void *b_)
{
    const struct member_view *a = a_, *b = b_;

    return strverscmp(a->host, b->host);
}

static int
compare_connections(const void *a_, const void *b_)
{
    const struct connection_view *a = a_, *b = b_;
    int order = strverscmp(a->node, b->node);

    return order ? order : a->number < b->number ? -1 : a->number > b->number;
}

static char *
state_of(const char *state, enum view_event otherwise)
{
    return xstrdup(state[0] ? state : view_event_name(otherwise));
}

static void
read_group(struct group_view *g, const struct rrec_group *row)
{
    *g = (struct group_view){
        .uuid = row->header_.uuid,
        .name = xstrdup(row->name),
        .epoch = row->epoch,
        .designated_qpn = row->designated_qpn,
        .start_psn = row->start_psn,
        .state = state_of(row->state, EVENT_PENDING),
        .status = xstrdup(row->status),
    };
}

static void
read_member(struct group_view *g, const struct rrec_member *row)
{
    size_t n_message = row->n_lost_psn ? row->n_good_messages : row->n_first_message;
    const int64_t *message = row->n_lost_psn ? row->good_messages : row->first_message;

    g->members = xrealloc(g->members, (g->n_members + 1) * sizeof *g->members);
    g->members[g->n_members++] = (struct member_view){
        .uuid = row->header_.uuid,
        .host = xstrdup(row->host),
        .qpn = row->qpn,
        .state = state_of(row->state, EVENT_JOINING),
        .status = xstrdup(row->status),
        .has_first = row->n_first_psn > 0,
        .first_psn = row->n_first_psn ? row->first_psn[0] : 0,
        .has_lost_psn = row->n_lost_psn > 0,
        .lost_psn = row->n_lost_psn ? row->lost_psn[0] : 0,
        .has_message = n_message > 0,
        .message = n_message ? message[0] : 0,
        .connection = row->n_connection ? row->connection[0] : 0,
    };
    g->n_active += member_is_active(row);
    g->n_lacking += member_is_lacking(row);
    g->n_registered += row->epoch == g->epoch && !strcmp(row->want, "active");
}

/* A source of an earlier epoch is none. */
static void
read_source(struct group_view *g, const struct rrec_source *row)
{
    if (row->epoch == g->epoch) {
        g->source = xstrdup(row->host);
        g->source_qpn = row->qpn;
    }
}

/* The node with this address, by name if there is one. */
static char *
name_at(const struct ovsdb_idl *idl, const char *address)
{
    const struct rrec_node *row;

    RREC_NODE_FOR_EACH (row, idl) {
        struct in6_addr own = node_address((uint16_t) row->id);

        if (!strcmp(ip6_text(&own), address)) {
            return xstrdup(row->name);
        }
    }
    return xstrdup(address);
}

/* A source agent says that it limits the group; of an earlier epoch that says nothing. */
static void
read_rate(struct group_view *g, const struct ovsdb_idl *idl, const struct rrec_tree_node *row)
{
    if (row->n_rate && row->epoch == g->epoch && !g->rate) {
        g->rate = row->rate[0];
        g->rate_cause = nullable_xstrdup(row->rate_cause);
        g->rate_node = row->rate_node[0] ? name_at(idl, row->rate_node) : NULL;
    }
}

/* Is one of the group's members made by this connection? */
static bool
makes_member(const struct group_view *g, const char *host, int64_t number)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->members[i].connection == number && !strcmp(g->members[i].host, host)) {
            return true;
        }
    }
    return false;
}

static void
read_connection(struct group_view *g, const struct ovsdb_idl *idl,
                const struct rrec_connection *row)
{
    const struct rrec_host *host = request_find_host_at(idl, row->address);

    g->connections = xrealloc(g->connections, (g->n_connections + 1) * sizeof *g->connections);
    g->connections[g->n_connections++] = (struct connection_view){
        .uuid = row->header_.uuid,
        .node = xstrdup(row->node),
        .number = row->number,
        .role = xstrdup(row->role),
        .host = xstrdup(host ? host->name : row->address),
        .is_member = host && makes_member(g, host->name, row->number),
        .port = row->port,
        .qpn = row->peer_qpn,
        .state = xstrdup(row->state ? row->state : cm_state_name(CM_CONNECTING)),
        .cause = nullable_xstrdup(row->cause),
        .status = xstrdup(row->status),
    };
}

static struct group_view *
find(const struct view *view, const char *group)
{
    const struct group_view key = {.name = CONST_CAST(char *, group)};

    return view->n_groups
               ? bsearch(&key, view->groups, view->n_groups, sizeof *view->groups, compare_groups)
               : NULL;
}

const struct group_view *
view_find(const struct view *view, const char *group)
{
    return find(view, group);
}

void
view_read(struct view *view, const struct ovsdb_idl *idl, const char *only)
{
    const struct rrec_group *group;
    const struct rrec_source *source;
    const struct rrec_member *member;
    const struct rrec_connection *connection;
    const struct rrec_tree_node *tree;
    size_t allocated = 0;

    *view = (struct view){.n_groups = 0};
    if (!only) {
        view_read_probes(view, idl);
        view_read_faults(view, idl);
    }
    RREC_GROUP_FOR_EACH (group, idl) {
        if (!only || !strcmp(group->name, only)) {
            if (view->n_groups == allocated) {
                view->groups = x2nrealloc(view->groups, &allocated, sizeof *view->groups);
            }
            read_group(&view->groups[view->n_groups++], group);
        }
    }
    if (!view->n_groups) {
        return;
    }
    qsort(view->groups, view->n_groups, sizeof *view->groups, compare_groups);
    RREC_SOURCE_FOR_EACH (source, idl) {
        struct group_view *g = find(view, source->group->name);

        if (g) {
            read_source(g, source);
        }
    }
    RREC_MEMBER_FOR_EACH (member, idl) {
        struct group_view *g = find(view, member->group->name);

        if (g) {
            read_member(g, member);
        }
    }
    RREC_TREE_NODE_FOR_EACH (tree, idl) {
        struct group_view *g = find(view, tree->group);

        if (g) {
            read_rate(g, idl, tree);
        }
    }
    RREC_CONNECTION_FOR_EACH (connection, idl) {
        struct group_view *g = find(view, connection->group);

        if (g) {
            read_connection(g, idl, connection);
        }
    }
    RREC_CONNECTION_FOR_EACH_TRACKED (connection, idl) {
        struct group_view *g = find(view, connection->group);

        if (g && rrec_connection_is_deleted(connection) && connection->state
            && !strcmp(connection->state, cm_state_name(CM_ENDED))) {
            read_connection(g, idl, connection);
        }
    }
    for (size_t i = 0; i < view->n_groups; i++) {
        struct group_view *g = &view->groups[i];

        if (g->n_members) {
            qsort(g->members, g->n_members, sizeof *g->members, compare_members);
        }
        if (g->n_connections) {
            qsort(g->connections, g->n_connections, sizeof *g->connections, compare_connections);
        }
    }
}

void
view_uninit(struct view *view)
{
    for (size_t i = 0; i < view->n_groups; i++) {
        struct group_view *g = &view->groups[i];

        for (size_t j = 0; j < g->n_members; j++) {
            free(g->members[j].host);
            free(g->members[j].state);
            free(g->members[j].status);
        }
        for (size_t j = 0; j < g->n_connections; j++) {
            free(g->connections[j].node);
            free(g->connections[j].role);
            free(g->connections[j].host);
            free(g->connections[j].state);
            free(g->connections[j].cause);
            free(g->connections[j].status);
        }
        free(g->connections);
        free(g->members);
        free(g->name);
        free(g->state);
        free(g->status);
        free(g->source);
        free(g->rate_cause);
        free(g->rate_node);
    }
    free(view->groups);
    view_uninit_probes(view);
    view_uninit_faults(view);
    *view = (struct view){.n_groups = 0};
}

/*
 * Comparing.
 */

struct comparison {
    void (*report)(const struct view_change *, void *aux);
    void *aux;
    bool begins; /* there is no earlier view: what is there now has not happened now. */
};

static void
report_event(const struct comparison *c, enum view_event event,
             const struct group_view *group_before, const struct group_view *group,
             const struct member_view *member_before, const struct member_view *member)
{
    c->report(&(struct view_change){.event = view_event_name(event),
                                    .group_before = group_before,
                                    .group = group,
                                    .member_before = member_before,
                                    .member = member},
              c->aux);
}

/* The state is another: that of the member, or without one of the group. */
static void
report_state(const struct comparison *c, const struct group_view *group_before,
             const struct group_view *group, const struct member_view *member_before,
             const struct member_view *member)
{
    c->report(&(struct view_change){.event = member ? member->state : group->state,
                                    .is_state = true,
                                    .group_before = group_before,
                                    .group = group,
                                    .member_before = member_before,
                                    .member = member},
              c->aux);
}

static void
compare_source(const struct comparison *c, const struct group_view *before,
               const struct group_view *now)
{
    const char *was = before ? before->source : NULL, *is = now ? now->source : NULL;

    if (is
        && (!was || strcmp(was, is) || before->source_qpn != now->source_qpn
            || before->epoch != now->epoch)) {
        report_event(c, EVENT_SOURCE_SET, before, now, NULL, NULL);
    } else if (was && !is) {
        report_event(c, EVENT_SOURCE_GONE, before, now, NULL, NULL);
    }
}

static bool
is_established(const struct connection_view *connection)
{
    return connection && !strcmp(connection->state, cm_state_name(CM_ESTABLISHED));
}

/* One connection, which both views have, or one of them. */
static void
compare_connection(const struct comparison *c, const struct group_view *group_before,
                   const struct group_view *group, const struct connection_view *before,
                   const struct connection_view *now)
{
    struct view_change change = {.group_before = group_before,
                                 .group = group,
                                 .connection_before = before,
                                 .connection = now};

    if (before && now && !uuid_equals(&before->uuid, &now->uuid)) {
        compare_connection(c, group_before, group, before, NULL);
        compare_connection(c, group_before, group, NULL, now);
        return;
    }
    if (is_established(before) != is_established(now)) {
        change.event = view_event_name(is_established(now) ? EVENT_CONNECTED : EVENT_DISCONNECTED);
        c->report(&change, c->aux);
    }
}

static void
compare_connections_of(const struct comparison *c, const struct group_view *before,
                       const struct group_view *now)
{
    size_t n_before = before ? before->n_connections : 0, n_now = now ? now->n_connections : 0;

    for (size_t i = 0, j = 0; i < n_before || j < n_now;) {
        const struct connection_view *b = i < n_before ? &before->connections[i] : NULL;
        const struct connection_view *n = j < n_now ? &now->connections[j] : NULL;
        int order = b && n ? compare_connections(b, n) : b ? -1 : 1;

        i += order <= 0;
        j += order >= 0;
        compare_connection(c, before, now, order <= 0 ? b : NULL, order >= 0 ? n : NULL);
    }
}

/* Is there a number to tell?  That who was there from the start begins with message 0 is none. */
static bool
is_numbered(const struct member_view *m)
{
    return m->has_message && (m->message || m->has_lost_psn);
}

static bool
has_new_number(const struct member_view *before, const struct member_view *now)
{
    bool same = before && is_numbered(before) && before->message == now->message
                && before->has_lost_psn == now->has_lost_psn;

    return is_numbered(now) && !same;
}

/* One member, which both views have, or one of them. */
static void
compare_member(const struct comparison *c, const struct group_view *group_before,
               const struct group_view *group, const struct member_view *before,
               const struct member_view *now)
{
    if (before && now && !uuid_equals(&before->uuid, &now->uuid)) {
        compare_member(c, group_before, group, before, NULL);
        compare_member(c, group_before, group, NULL, now);
        return;
    }
    if (!now) {
        report_event(c, EVENT_REMOVED, group_before, group, before, NULL);
        return;
    }
    bool replaced = before && before->qpn != now->qpn;
    if (replaced) {
        report_event(c, EVENT_REPLACED, group_before, group, before, now);
    }
    /* Who looked away meanwhile is told of the newcomer's state, too, if that is what it was before. */
    if (!before || replaced || strcmp(before->state, now->state)) {
        report_state(c, group_before, group, before, now);
    }
    if (has_new_number(before, now)) {
        report_event(c, EVENT_NUMBERED, group_before, group, before, now);
    }
}

static void
compare_members_of(const struct comparison *c, const struct group_view *before,
                   const struct group_view *now)
{
    size_t n_before = before ? before->n_members : 0, n_now = now ? now->n_members : 0;

    for (size_t i = 0, j = 0; i < n_before || j < n_now;) {
        const struct member_view *b = i < n_before ? &before->members[i] : NULL;
        const struct member_view *n = j < n_now ? &now->members[j] : NULL;
        int order = b && n ? compare_members(b, n) : b ? -1 : 1;

        i += order <= 0;
        j += order >= 0;
        compare_member(c, before, now, order <= 0 ? b : NULL, order >= 0 ? n : NULL);
    }
}

/* Is the group's state another, or does it lack another number of members?  If it lacks none and is
 * degraded all the same, castd has yet to see that. */
static bool
has_other_state(const struct group_view *before, const struct group_view *now)
{
    return strcmp(before->state, now->state)
           || (now->n_lacking && before->n_lacking != now->n_lacking);
}

/* One group, which both views have, or one of them. */
static void
compare_group(const struct comparison *c, const struct group_view *before,
              const struct group_view *now)
{
    if (before && now && !uuid_equals(&before->uuid, &now->uuid)) {
        compare_group(c, before, NULL);
        compare_group(c, NULL, now);
        return;
    }
    if (!before && !c->begins) {
        report_event(c, EVENT_ADDED, before, now, NULL, NULL);
    }
    if (now && now->epoch != (before ? before->epoch : 0) && !c->begins) {
        report_event(c, EVENT_EPOCH, before, now, NULL, NULL);
    }
    compare_source(c, before, now);
    compare_connections_of(c, before, now);
    compare_members_of(c, before, now);
    bool was_slowed = before && before->rate, is_slowed = now && now->rate;
    if (now && was_slowed != is_slowed) {
        report_event(c, is_slowed ? EVENT_SLOWED : EVENT_RECOVERED, before, now, NULL, NULL);
    }
    if (!now) {
        report_event(c, EVENT_DELETED, before, now, NULL, NULL);
    } else if (!before || has_other_state(before, now)) {
        report_state(c, before, now, NULL, NULL);
    }
}

void
view_compare(const struct view *before, const struct view *now,
             void (*report_)(const struct view_change *, void *aux), void *aux)
{
    const struct comparison c = {.report = report_, .aux = aux, .begins = !before};
    size_t n_before = before ? before->n_groups : 0;

    view_compare_probes(before, now, report_, aux);
    view_compare_faults(before, now, report_, aux);
    for (size_t i = 0, j = 0; i < n_before || j < now->n_groups;) {
        const struct group_view *b = i < n_before ? &before->groups[i] : NULL;
        const struct group_view *n = j < now->n_groups ? &now->groups[j] : NULL;
        int order = b && n ? compare_groups(b, n) : b ? -1 : 1;

        i += order <= 0;
        j += order >= 0;
        compare_group(&c, order <= 0 ? b : NULL, order >= 0 ? n : NULL);
    }
}
