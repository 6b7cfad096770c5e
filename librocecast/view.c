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
#include "librocecast/internal.h"
#include "util.h"

#define HAS_LEFT "has left"

static bool
same_epoch(const struct rocecast_epoch *a, const struct rocecast_epoch *b)
{
    /* A group that was deleted and made again counts from 1, with another Proxy. */
    return a->epoch == b->epoch && !memcmp(&a->proxy, &b->proxy, sizeof a->proxy);
}

/* The first event there is; '*memberp' is the member it is about, if any. */
static enum rocecast_event_type
difference(struct rocecast_group *g, struct member_view **memberp)
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
        struct member_view *m = &g->members[i];

        if (m->told != m->now) {
            *memberp = m;
            return m->now == MEMBER_ACTIVE   ? ROCECAST_EVENT_MEMBER_ACTIVE
                   : m->now == MEMBER_FAILED ? ROCECAST_EVENT_MEMBER_FAILED
                                             : ROCECAST_EVENT_MEMBER_LOST;
        }
    }
    if (g->told_ready != g->ready) {
        return g->ready ? ROCECAST_EVENT_READY : ROCECAST_EVENT_NOT_READY;
    }
    return ROCECAST_EVENT_NONE;
}

static void
update_fd(struct rocecast_group *g)
{
    struct member_view *m;
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
        g->told_ready = false;
        for (size_t i = 0; i < g->n_members; i++) {
            g->members[i].told = MEMBER_ABSENT;
        }
    }
}

void
view_know_epoch(struct rocecast_group *g)
{
    know_epoch(g);
    update_fd(g);
}

void
view_next_event(struct rocecast_group *g, struct rocecast_event *event)
{
    struct member_view *m;

    event->type = difference(g, &m);
    event->epoch = g->epoch.epoch;
    if (m) {
        snprintf(event->host, sizeof event->host, "%s", m->host);
        snprintf(event->text, sizeof event->text, "%s", m->text);
        m->told = m->now;
    }
    switch (event->type) {
    case ROCECAST_EVENT_REGISTRY_LOST:
    case ROCECAST_EVENT_REGISTRY_BACK: g->told_connected = g->r->connected; break;
    case ROCECAST_EVENT_GONE:
        g->told_exists = false;
        g->told_ready = false;
        break;
    case ROCECAST_EVENT_EPOCH: know_epoch(g); break;
    case ROCECAST_EVENT_READY:
    case ROCECAST_EVENT_NOT_READY:
        g->told_ready = g->ready;
        snprintf(event->text, sizeof event->text, "%s", g->text);
        break;
    case ROCECAST_EVENT_NONE:
    case ROCECAST_EVENT_MEMBER_ACTIVE:
    case ROCECAST_EVENT_MEMBER_LOST:
    case ROCECAST_EVENT_MEMBER_FAILED: break;
    }
    update_fd(g);
}

/*
 * From the registry.  Runs in the loop's thread.
 */

static struct member_view *
find_member(struct rocecast_group *g, const char *host)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (!strcmp(g->members[i].host, host)) {
            return &g->members[i];
        }
    }
    g->members = xrealloc(g->members, (g->n_members + 1) * sizeof *g->members);
    struct member_view *m = &g->members[g->n_members++];
    *m = (struct member_view){.now = MEMBER_ABSENT};
    snprintf(m->host, sizeof m->host, "%s", host);
    return m;
}

static enum member_state
state_of(const struct rrec_member *row)
{
    return member_is_active(row)           ? MEMBER_ACTIVE
           : !strcmp(row->state, "failed") ? MEMBER_FAILED
           : !strcmp(row->state, "lost")   ? MEMBER_LOST
                                           : MEMBER_ABSENT;
}

static void
refresh_members(struct rocecast_group *g, const struct rrec_group *group)
{
    const struct rrec_member *row;
    size_t n = 0;

    for (size_t i = 0; i < g->n_members; i++) {
        g->members[i].now = MEMBER_ABSENT;
        snprintf(g->members[i].text, sizeof g->members[i].text, HAS_LEFT);
    }
    RREC_MEMBER_FOR_EACH (row, g->r->idl) {
        if (group && row->group == group && row->epoch == group->epoch) {
            struct member_view *m = find_member(g, row->host);

            m->now = state_of(row);
            snprintf(m->text, sizeof m->text, "%s",
                     strcmp(row->want, "active") ? HAS_LEFT : row->status);
        }
    }
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->members[i].told == MEMBER_LOST && g->members[i].now == MEMBER_ABSENT) {
            g->members[i].told = MEMBER_ABSENT; /* it is not told again that it left. */
        }
        if (g->members[i].now != MEMBER_ABSENT || g->members[i].told != MEMBER_ABSENT) {
            g->members[n++] = g->members[i];
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
    };
    if (!ip6_parse(row->proxy, &e->proxy)) {
        e->proxy = in6addr_any;
    }
}

void
view_refresh(struct rocecast_group *g)
{
    const struct rrec_group *row;

    if (g->r->connected) {
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
    }
    update_fd(g);
}
