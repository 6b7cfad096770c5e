/* SPDX-License-Identifier: Apache-2.0
 *
 * What a group looks like, and what the program knows of that.
 *
 * Events are not queued: they are the difference between the two, found when
 * the program asks for events.  They take a bounded amount of memory however long
 * it does not ask, and the descriptor is readable exactly while there is a
 * difference.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "ctl/registry/group-state.h"
#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "ctl/registry/view.h"
#include "librocecast/internal.h"
#include "util.h"

#define HAS_LEFT       "has left"
/* How the reason begins for which a member is lost whose queue pair has half a message. */
#define RESTART_NEEDED "restart needed: "

static bool
same_epoch(const struct rocecast_epoch *a, const struct rocecast_epoch *b)
{
    /* A group that was deleted and made again counts from 1, with another Proxy. */
    return a->epoch == b->epoch && !memcmp(&a->proxy, &b->proxy, sizeof a->proxy);
}

/* The event that tells the member's state, or which place it has in the epoch. */
static enum rocecast_event_type
state_event(const struct seen_member *m)
{
    switch (m->now.state) {
    case ROCECAST_MEMBER_LEFT: return ROCECAST_EVENT_MEMBER_LEFT;
    case ROCECAST_MEMBER_WAITING: return ROCECAST_EVENT_MEMBER_WAITING;
    case ROCECAST_MEMBER_ACTIVE:
        return m->came_later ? ROCECAST_EVENT_MEMBER_JOINED : ROCECAST_EVENT_MEMBER_ACTIVE;
    case ROCECAST_MEMBER_LEAVING: break; /* it is told when it is out. */
    case ROCECAST_MEMBER_LOST:
        return m->needs_reset ? ROCECAST_EVENT_RESTART_NEEDED : ROCECAST_EVENT_MEMBER_LOST;
    case ROCECAST_MEMBER_FAILED: return ROCECAST_EVENT_MEMBER_FAILED;
    }
    return ROCECAST_EVENT_NONE;
}

/* The program has not been told what the member is now.  One that came back is another member: that
 * it was away may not have been seen. */
static bool
member_differs(const struct seen_member *m)
{
    bool other_state = m->told != m->now.state;

    switch (m->now.state) {
    case ROCECAST_MEMBER_ACTIVE:
    case ROCECAST_MEMBER_LOST: return other_state || m->told_branch != m->branch;
    case ROCECAST_MEMBER_WAITING: /* without a text castd has yet to see it. */
        return m->now.text[0] && (other_state || strcmp(m->told_text, m->now.text));
    case ROCECAST_MEMBER_LEAVING: return false;
    case ROCECAST_MEMBER_LEFT:
    case ROCECAST_MEMBER_FAILED: break;
    }
    return other_state;
}

/* The first event there is; '*memberp' is the member it is about, if any. */
static enum rocecast_event_type
difference(struct rocecast_group *g, struct seen_member **memberp)
{
    *memberp = NULL;
    if (g->told_connected != g->r->connected) {
        return g->told_connected ? ROCECAST_EVENT_REGISTRY_LOST : ROCECAST_EVENT_REGISTRY_BACK;
    }
    if (g->told_exists && !g->exists) {
        return ROCECAST_EVENT_GONE;
    }
    if (g->exists && (!g->told_exists || !same_epoch(&g->epoch, &g->told_epoch))) {
        return ROCECAST_EVENT_EPOCH;
    }
    for (size_t i = 0; i < g->n_members; i++) {
        if (member_differs(&g->members[i])) {
            *memberp = &g->members[i];
            return state_event(*memberp);
        }
    }
    if (g->told_ready != g->ready) {
        return g->ready ? ROCECAST_EVENT_READY : ROCECAST_EVENT_NOT_READY;
    }
    if (g->ready && g->told_degraded != g->degraded) {
        return g->degraded ? ROCECAST_EVENT_GROUP_DEGRADED : ROCECAST_EVENT_GROUP_WHOLE;
    }
    return ROCECAST_EVENT_NONE;
}

static void
update_fd(struct rocecast_group *g)
{
    struct seen_member *m;
    bool raise = difference(g, &m) != ROCECAST_EVENT_NONE;
    eventfd_t count;

    if (raise && !g->raised) {
        eventfd_write(g->fd, 1);
    } else if (!raise && g->raised) {
        eventfd_read(g->fd, &count);
    }
    g->raised = raise;
}

static void
know_epoch(struct rocecast_group *g)
{
    g->told_exists = g->exists;
    if (!same_epoch(&g->epoch, &g->told_epoch)) {
        g->told_epoch = g->epoch;
        g->told_ready = g->told_degraded = false;
        for (size_t i = 0; i < g->n_members; i++) {
            g->members[i].told = ROCECAST_MEMBER_LEFT;
        }
    }
}

void
view_know_epoch(struct rocecast_group *g)
{
    know_epoch(g);
    update_fd(g);
}

/* Puts into the event what there is to say about the member, and notes that it is told. */
static void
tell_member(struct seen_member *m, struct rocecast_event *event)
{
    bool left = m->now.state == ROCECAST_MEMBER_LEFT;

    snprintf(event->host, sizeof event->host, "%s", m->now.host);
    snprintf(event->text, sizeof event->text, "%s", left ? HAS_LEFT : m->now.text);
    if (m->now.state == ROCECAST_MEMBER_LOST) {
        event->place = m->now.good;
    } else if (m->came_later) {
        event->place = m->now.first;
    }
    m->told = m->now.state;
    m->told_branch = m->branch;
    snprintf(m->told_text, sizeof m->told_text, "%s", m->now.text);
}

/* What a program gets that knows only the earlier events.  NONE: nothing. */
static enum rocecast_event_type
earlier_type(enum rocecast_event_type type, enum rocecast_member_state before)
{
    bool served = before == ROCECAST_MEMBER_ACTIVE || before == ROCECAST_MEMBER_FAILED;

    switch (type) {
    case ROCECAST_EVENT_MEMBER_JOINED: return ROCECAST_EVENT_MEMBER_ACTIVE;
    case ROCECAST_EVENT_RESTART_NEEDED: return ROCECAST_EVENT_MEMBER_LOST;
    case ROCECAST_EVENT_MEMBER_WAITING:
    case ROCECAST_EVENT_MEMBER_LEFT:
        return served ? ROCECAST_EVENT_MEMBER_LOST : ROCECAST_EVENT_NONE;
    case ROCECAST_EVENT_GROUP_DEGRADED:
    case ROCECAST_EVENT_GROUP_WHOLE: return ROCECAST_EVENT_NONE;
    case ROCECAST_EVENT_NONE:
    case ROCECAST_EVENT_READY:
    case ROCECAST_EVENT_NOT_READY:
    case ROCECAST_EVENT_EPOCH:
    case ROCECAST_EVENT_GONE:
    case ROCECAST_EVENT_MEMBER_ACTIVE:
    case ROCECAST_EVENT_MEMBER_LOST:
    case ROCECAST_EVENT_MEMBER_FAILED:
    case ROCECAST_EVENT_REGISTRY_LOST:
    case ROCECAST_EVENT_REGISTRY_BACK: break;
    }
    return type;
}

/* Notes that the program is told the first event there is, and puts it into '*event'. */
static void
tell(struct rocecast_group *g, struct rocecast_event *event, bool earlier)
{
    struct seen_member *m;

    event->type = difference(g, &m);
    event->epoch = g->epoch.epoch;
    switch (event->type) {
    case ROCECAST_EVENT_REGISTRY_LOST:
    case ROCECAST_EVENT_REGISTRY_BACK: g->told_connected = g->r->connected; break;
    case ROCECAST_EVENT_GONE:
        g->told_exists = false;
        g->told_ready = g->told_degraded = false;
        break;
    case ROCECAST_EVENT_EPOCH: know_epoch(g); break;
    case ROCECAST_EVENT_READY:
    case ROCECAST_EVENT_NOT_READY:
        g->told_ready = g->ready;
        g->told_degraded = false;
        snprintf(event->text, sizeof event->text, "%s", g->text);
        break;
    case ROCECAST_EVENT_GROUP_DEGRADED:
    case ROCECAST_EVENT_GROUP_WHOLE:
        g->told_degraded = g->degraded;
        snprintf(event->text, sizeof event->text, "%s", g->text);
        break;
    case ROCECAST_EVENT_NONE:
    case ROCECAST_EVENT_MEMBER_ACTIVE:
    case ROCECAST_EVENT_MEMBER_JOINED:
    case ROCECAST_EVENT_MEMBER_WAITING:
    case ROCECAST_EVENT_MEMBER_LEFT:
    case ROCECAST_EVENT_MEMBER_LOST:
    case ROCECAST_EVENT_MEMBER_FAILED:
    case ROCECAST_EVENT_RESTART_NEEDED: break;
    }
    enum rocecast_member_state before = m ? m->told : ROCECAST_MEMBER_LEFT;
    if (m) {
        tell_member(m, event);
    }
    if (earlier) {
        event->type = earlier_type(event->type, before);
    }
}

void
view_next_event(struct rocecast_group *g, struct rocecast_event *event, bool earlier)
{
    struct seen_member *m;

    do {
        *event = (struct rocecast_event){.size = sizeof *event};
        tell(g, event, earlier);
    } while (event->type == ROCECAST_EVENT_NONE && difference(g, &m) != ROCECAST_EVENT_NONE);
    update_fd(g);
}

/*
 * From the registry.  Runs in the loop's thread.
 */

static struct seen_member *
find_member(struct rocecast_group *g, const char *host)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (!strcmp(g->members[i].now.host, host)) {
            return &g->members[i];
        }
    }
    g->members = xrealloc(g->members, (g->n_members + 1) * sizeof *g->members);
    struct seen_member *m = &g->members[g->n_members++];
    *m = (struct seen_member){.told = ROCECAST_MEMBER_LEFT};
    snprintf(m->now.host, sizeof m->now.host, "%s", host);
    return m;
}

static enum rocecast_member_state
state_of(const struct rrec_member *row)
{
    if (strcmp(row->want, "active")) {
        return strcmp(row->state, "left") ? ROCECAST_MEMBER_LEAVING : ROCECAST_MEMBER_LEFT;
    }
    if (!row->branch) {
        return ROCECAST_MEMBER_WAITING; /* castd has yet to see it: the state is of one before. */
    }
    return member_is_active(row)           ? ROCECAST_MEMBER_ACTIVE
           : !strcmp(row->state, "failed") ? ROCECAST_MEMBER_FAILED
           : !strcmp(row->state, "lost")   ? ROCECAST_MEMBER_LOST
                                           : ROCECAST_MEMBER_WAITING;
}

/* What is known of these two, each of which may be missing. */
static struct rocecast_place
place(const int64_t *psn, size_t n_psn, const int64_t *message, size_t n_message)
{
    return (struct rocecast_place){
        .known = (n_psn ? ROCECAST_PLACE_PSN : 0) | (n_message ? ROCECAST_PLACE_MESSAGE : 0),
        .psn = n_psn ? (uint32_t) psn[0] : 0,
        .message = n_message ? (uint64_t) message[0] : 0,
    };
}

static struct rocecast_place
first_place(const struct rrec_member *m)
{
    return place(m->first_psn, m->n_first_psn, m->first_message, m->n_first_message);
}

static struct rocecast_place
good_place(const struct rrec_member *m)
{
    return place(m->lost_psn, m->n_lost_psn, m->good_messages, m->n_good_messages);
}

static void
refresh_member(struct seen_member *m, const struct rrec_member *row)
{
    struct rocecast_member_status *now = &m->now;

    m->exists = true;
    m->branch = row->branch;
    now->state = state_of(row);
    now->qpn = (uint32_t) row->qpn;
    snprintf(now->text, sizeof now->text, "%s", row->branch ? row->status : "");
    if (now->state == ROCECAST_MEMBER_ACTIVE || now->state == ROCECAST_MEMBER_LOST) {
        now->first = first_place(row);
        m->came_later = row->n_first_message
                            ? row->first_message[0] > 0
                            : row->n_first_psn && row->first_psn[0] != row->group->start_psn;
    }
    if (now->state == ROCECAST_MEMBER_LOST) {
        now->good = good_place(row);
        m->needs_reset = !strncmp(row->status, RESTART_NEEDED, strlen(RESTART_NEEDED));
    }
}

static void
refresh_members(struct rocecast_group *g, const struct rrec_group *group)
{
    const struct rrec_member *row;
    size_t n = 0;

    for (size_t i = 0; i < g->n_members; i++) {
        struct seen_member *m = &g->members[i];

        m->exists = m->came_later = m->needs_reset = false;
        m->now.state = ROCECAST_MEMBER_LEFT;
        m->now.first = m->now.good = (struct rocecast_place){.known = 0};
    }
    g->degraded = false;
    RREC_MEMBER_FOR_EACH (row, g->r->idl) {
        if (group && row->group == group && row->epoch == group->epoch) {
            refresh_member(find_member(g, row->host), row);
            g->degraded |= member_is_lacking(row);
        }
    }
    for (size_t i = 0; i < g->n_members; i++) {
        struct seen_member *m = &g->members[i];

        if (m->told == ROCECAST_MEMBER_LOST && m->now.state == ROCECAST_MEMBER_LEFT) {
            m->told = ROCECAST_MEMBER_LEFT; /* it is not told again that it is out. */
        }
        if (m->exists || m->told != ROCECAST_MEMBER_LEFT) {
            g->members[n++] = *m;
        }
    }
    g->n_members = n;
}

static void
refresh_epoch(struct rocecast_epoch *e, const struct rrec_group *row)
{
    *e = (struct rocecast_epoch){
        .size = sizeof *e,
        .epoch = (uint32_t) row->epoch,
        .designated_qpn = (uint32_t) row->designated_qpn,
        .start_psn = (uint32_t) row->start_psn,
        .mtu = (uint32_t) row->mtu,
        .qp_timeout = (uint32_t) row->timeout,
        .designated_rkey = (uint32_t) row->designated_rkey,
        .region_len = (uint64_t) row->region_len,
        .had_source = row->source_epoch == row->epoch,
        .connect_port = row->n_connect_port ? (uint32_t) row->connect_port[0] : 0,
    };
    if (!ip6_parse(row->proxy, &e->proxy)) {
        e->proxy = in6addr_any;
    }
}

/* Is the member that the program has registered, to be kept, in the group's new epoch without the
 * program? */
static bool
is_kept(const struct rocecast_group *g, const struct rrec_group *group)
{
    const struct rrec_member *m =
        group && g->keeps[0] ? request_find_member(g->r->idl, group, g->keeps) : NULL;

    return m && m->keep && m->epoch == group->epoch && !strcmp(m->want, "active");
}

void
view_refresh(struct rocecast_group *g)
{
    const struct rrec_group *row;

    if (g->r->connected && g->r->follows) {
        row = request_find_group(g->r->idl, g->name);
        if (row && !row->epoch) {
            row = NULL; /* castd has not seen the group yet. */
        }
        g->exists = row != NULL;
        g->ready = row && group_serves(row);
        snprintf(g->text, sizeof g->text, "%s", row ? row->status : "");
        if (row) {
            refresh_epoch(&g->epoch, row);
        }
        refresh_members(g, row);
        if (is_kept(g, row)) {
            know_epoch(g);
        }
    }
    update_fd(g);
}
