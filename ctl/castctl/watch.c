/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl watch: a line for each event of groups and members, and of paths and faults of the network,
 * until it is told to end.
 *
 * Events are what lies between one view of the registry and the next (ctl/registry/view.h).  Lines
 * are flushed view by view, before the next one is taken: a reader that is slow gets fewer events,
 * never old ones.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"
#include "ctl/castctl/fault.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/registry/group-state.h"
#include "ctl/registry/view.h"
#include "lib/cm-conn.h"
#include "lib/quantity.h"
#include "openvswitch/dynamic-string.h"
#include "ovsdb-idl.h"
#include "util.h"

struct watch {
    const struct ctl *ctl;
    const char *only;   /* the group that is watched; NULL: all are. */
    struct view view;   /* what has been told. */
    bool begins;        /* what is told now is the start, not a change. */
    const char *until;  /* NULL: no event ends it. */
    unsigned int of;    /* whose event 'until' is. */
    const char *member; /* the one whose event it is; NULL: any. */
    uint64_t count;     /* so many events end it; 0: none does. */
    uint64_t n_events;
    bool done; /* as was asked for. */
    bool gone; /* the group that is watched. */
};

/*
 * When it ends.
 */

/* --until EVENT or EVENT:MEMBER. */
static void
parse_until(struct watch *w, const char *text)
{
    const char *colon = strchr(text, ':');
    char *word = colon ? xmemdup0(text, (size_t) (colon - text)) : xstrdup(text);
    enum view_event event;

    if (!view_event_parse(word, &event)) {
        ctl_fail(CTL_USAGE, "--until %s: must be EVENT or EVENT:MEMBER, with an EVENT of %s", text,
                 words_join(&view_event_words, WORDS_ALL, ", ", " or "));
    }
    w->until = view_event_name(event);
    w->of = view_event_of(event);
    if (w->only && (w->of & (VIEW_OF_PATH | VIEW_OF_NETWORK))) {
        ctl_fail(CTL_USAGE, "--until %s: '%s' is no event of groups", text, word);
    }
    if (colon && !(w->of & VIEW_OF_MEMBER)) {
        ctl_fail(CTL_USAGE, "--until %s: '%s' is no event of members", text, word);
    }
    if (colon) {
        w->member = colon + 1;
        ctl_check_name("--until: member", w->member);
    }
    free(word);
}

/* Does this event end the watch?  A word that both have is the group's unless a member is named. */
static bool
is_awaited(const struct watch *w, const char *event, const char *member)
{
    if (!w->until || strcmp(w->until, event)) {
        return false;
    }
    if (w->member) {
        return member && !strcmp(member, w->member);
    }
    return !member || !(w->of & VIEW_OF_GROUP);
}

/* An event has been printed.  What is there at the start is not counted. */
static void
note_event(struct watch *w, const char *event, const char *member)
{
    w->n_events += !w->begins;
    w->done = is_awaited(w, event, member) || (w->count && w->n_events >= w->count);
}

/*
 * Lines.
 */

/* Prints an event, which has 'details' as JSON and 'text'.  Takes 'details' over. */
static void
print_event(const struct watch *w, struct json *details, const char *group, const char *member,
            const char *event, const char *text)
{
    ctl_put_time(details, "time");
    ctl_put_string_or_null(details, "group", group);
    ctl_put_string_or_null(details, "member", member);
    json_object_put_string(details, "event", event);
    ctl_put_bool(details, "initial", w->begins);
    if (w->ctl->json) {
        ctl_print_json_line(details);
    } else {
        ctl_print_line("%s  %s  %s  %s%s", ctl_get_string(details, "time"), group ? group : "-",
                       member ? member : "-", event, text);
        json_destroy(details);
    }
}

static void
put_status(struct json *o, struct ds *s, const char *status)
{
    json_object_put_string(o, "status", status);
    ds_put_format(s, "%s%s", status[0] ? ": " : "", status);
}

/* Behind a group's state: how many members are active, if it is degraded. */
static void
put_lack(struct ds *s, const struct group_view *g)
{
    if (!strcmp(g->state, group_state_name(GROUP_DEGRADED))) {
        ds_put_format(s, " %" PRIuSIZE "/%" PRIuSIZE, g->n_active, g->n_active + g->n_lacking);
    }
}

static void
put_source(struct json *o, struct ds *s, const struct group_view *g)
{
    json_object_put_string(o, "host", g->source);
    ctl_put_int(o, "qpn", g->source_qpn);
    ds_put_format(s, ": %s, QPN 0x%" PRIx64, g->source, g->source_qpn);
}

/* To which rate a group's source is slowed down, and why. */
static void
put_rate(struct json *o, struct ds *s, const struct group_view *g)
{
    char rate[QUANTITY_SIZE];

    quantity_format(QUANTITY_RATE, (uint64_t) g->rate, rate, sizeof rate);
    ctl_put_int(o, "rate", g->rate);
    ctl_put_string_or_null(o, "cause", g->rate_cause);
    ctl_put_string_or_null(o, "node", g->rate_node);
    ds_put_format(s, " to %s bit/s", rate);
    if (g->rate_cause) {
        ds_put_format(s, ": %s", g->rate_cause);
    }
    if (g->rate_node) {
        ds_put_format(s, " from %s", g->rate_node);
    }
}

static void
put_group_event(struct json *o, struct ds *s, const struct view_change *c)
{
    const struct group_view *before = c->group_before, *now = c->group;
    const struct group_view *g = now ? now : before;

    ctl_put_string_or_null(o, "before", before ? before->state : NULL);
    ctl_put_string_or_null(o, "state", now ? now->state : NULL);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is one of both. */
    ctl_put_int(o, "active_members", (int64_t) g->n_active);
    ctl_put_int(o, "wanted_members", (int64_t) (g->n_active + g->n_lacking));
    if (c->is_state && now) {
        put_lack(s, now);
        if (before) {
            ds_put_format(s, " (was %s", before->state);
            put_lack(s, before);
            ds_put_char(s, ')');
        }
        put_status(o, s, now->status);
    } else if (!strcmp(c->event, view_event_name(EVENT_EPOCH))) {
        ctl_put_int(o, "designated_qpn", g->designated_qpn);
        ctl_put_int(o, "start_psn", g->start_psn);
        ds_put_format(s, " %" PRId64 ": Designated QPN 0x%" PRIx64 ", start PSN %" PRId64, g->epoch,
                      g->designated_qpn, g->start_psn);
    } else if (!strcmp(c->event, view_event_name(EVENT_SLOWED)) && now) {
        put_rate(o, s, now);
    } else if (!strcmp(c->event, view_event_name(EVENT_SOURCE_SET)) && now) {
        put_source(o, s, now);
    } else if (!strcmp(c->event, view_event_name(EVENT_SOURCE_GONE)) && before) {
        put_source(o, s, before);
    }
}

static void
put_member_event(struct json *o, struct ds *s, const struct view_change *c)
{
    const struct member_view *before = c->member_before, *now = c->member;
    const struct member_view *m = now ? now : before;

    ctl_put_string_or_null(o, "before", before ? before->state : NULL);
    ctl_put_string_or_null(o, "state", now ? now->state : NULL);
    ctl_put_int(o, "qpn", m->qpn);
    if (now && now->has_lost_psn) {
        ctl_put_int(o, "psn", now->lost_psn);
    }
    if (now && now->has_first) {
        ctl_put_int(o, "first_psn", now->first_psn);
    }
    if (now && now->has_message) {
        ctl_put_int(o, "message", now->message);
    }
    if (now && !c->is_state && !strcmp(c->event, view_event_name(EVENT_NUMBERED))) {
        ds_put_format(s,
                      now->has_lost_psn ? ": it has all messages before %" PRId64
                                        : ": it begins with message %" PRId64,
                      now->message);
        return;
    }
    if (!c->is_state && before && now) { /* replaced. */
        ctl_put_int(o, "qpn_before", before->qpn);
        ds_put_format(s, ": QPN 0x%" PRIx64 ", it was 0x%" PRIx64, now->qpn, before->qpn);
        return;
    }
    if (before) {
        ds_put_format(s, " (was %s)", before->state);
    }
    if (now) {
        if (now->has_first && !strcmp(c->event, view_event_name(EVENT_ACTIVE))) {
            ds_put_format(s, " from PSN %" PRId64, now->first_psn);
        }
        put_status(o, s, now->status);
    }
}

/* Why a connection is not established any more; NULL: its row had gone before anybody looked. */
static const char *
cause_of(const struct connection_view *now)
{
    if (now && !strcmp(now->state, cm_state_name(CM_CLOSING))) {
        return cm_cause_name(CM_BY_DECISION); /* its node says so when it has ended. */
    }
    return now ? now->cause : NULL;
}

static void
put_connection_event(struct json *o, struct ds *s, const struct view_change *c)
{
    const struct connection_view *before = c->connection_before, *now = c->connection;
    const struct connection_view *one = now ? now : before;

    ctl_put_string_or_null(o, "before", before ? before->state : NULL);
    ctl_put_string_or_null(o, "state", now ? now->state : NULL);
    json_object_put_string(o, "host", one->host);
    json_object_put_string(o, "role", one->role);
    json_object_put_string(o, "node", one->node);
    ctl_put_int(o, "number", one->number);
    ctl_put_int(o, "port", one->port);
    ctl_put_int(o, "qpn", one->qpn);
    if (!strcmp(c->event, view_event_name(EVENT_DISCONNECTED))) {
        const char *cause = cause_of(now);

        ctl_put_string_or_null(o, "cause", cause);
        ds_put_format(s, " (%s)", cause ? cause : "gone");
    }
    ds_put_format(s, ": %s, QPN 0x%" PRIx64 ", %s at %s", one->host, one->qpn, one->role,
                  one->node);
    put_status(o, s, now ? now->status : "");
}

static void
put_fault_event(struct json *o, struct ds *s, const struct view_change *c)
{
    const struct fault_view *f = c->fault;
    char *elements = fault_text(&f->elements), *evidence = fault_evidence_text(&f->evidence);

    fault_put(o, &f->elements, f->since, &f->evidence);
    ds_put_format(s, ": %s", elements);
    if (!strcmp(c->event, view_event_name(EVENT_FAULT))) {
        ds_put_format(s, " (%s)", evidence);
    }
    free(elements);
    free(evidence);
}

/* The member whose event it is; NULL: it is the group's. */
static const char *
member_of(const struct view_change *c)
{
    const struct member_view *member = c->member ? c->member : c->member_before;
    const struct connection_view *before = c->connection_before, *now = c->connection;

    if (before && before->is_member) {
        return before->host;
    }
    if (now && now->is_member) {
        return now->host;
    }
    return member ? member->host : NULL;
}

/* A path is a node's, which probes it, and no group's. */
static void
print_path_event(struct watch *w, const char *event, const struct probe_view *p)
{
    struct json *o = json_object_create();
    struct ds s = DS_EMPTY_INITIALIZER;

    json_object_put_string(o, "node", p->node);
    json_object_put_string(o, "path", p->name);
    json_object_put_string(o, "kind", p->kind);
    ctl_put_string_or_null(o, "plane", p->plane[0] ? p->plane : NULL);
    ctl_put_time_at(o, "since", p->since);
    ds_put_format(&s, ": %s by %s (%s%s%s)", p->node, p->name, p->kind,
                  p->plane[0] ? ", plane " : "", p->plane);
    print_event(w, o, NULL, NULL, event, ds_cstr(&s));
    ds_destroy(&s);
    note_event(w, event, NULL);
}

static void
print_change(const struct view_change *c, void *w_)
{
    struct watch *w = w_;
    struct ds s = DS_EMPTY_INITIALIZER;
    struct json *o;

    if (w->done || w->gone) {
        return;
    }
    if (c->probe) {
        print_path_event(w, c->event, c->probe);
        return;
    }
    const struct group_view *g = c->group ? c->group : c->group_before;
    const char *group = g ? g->name : NULL;
    const char *member = member_of(c);
    o = json_object_create();
    if (g) {
        ctl_put_int(o, "epoch", g->epoch);
    }
    (c->fault                                ? put_fault_event
     : c->connection || c->connection_before ? put_connection_event
     : member                                ? put_member_event
                                             : put_group_event)(o, &s, c);
    print_event(w, o, group, member, c->event, ds_cstr(&s));
    ds_destroy(&s);
    note_event(w, c->event, member);
    w->gone =
        w->only && !member && !c->is_state && !strcmp(c->event, view_event_name(EVENT_DELETED));
}

static void
print_registry_event(struct watch *w, enum view_event event)
{
    int error = event == EVENT_REGISTRY_LOST ? registry_reach_error(&w->ctl->reach) : 0;
    const char *status = error ? ovs_retval_to_string(error) : "";
    struct json *o = json_object_create();
    struct ds s = DS_EMPTY_INITIALIZER;

    put_status(o, &s, status);
    print_event(w, o, NULL, NULL, view_event_name(event), ds_cstr(&s));
    ds_destroy(&s);
    note_event(w, view_event_name(event), NULL);
}

/*
 * The command.
 */

/* Prints what has changed since the last view, or at first what there is. */
static void
take_view(struct watch *w)
{
    struct view now;

    view_read(&now, w->ctl->idl, w->only);
    view_compare(w->begins ? NULL : &w->view, &now, print_change, w);
    view_uninit(&w->view);
    w->view = now;
    w->begins = false;
}

static void
end_at_deadline(const struct watch *w)
{
    if (w->until) {
        ctl_fail(CTL_UNAVAILABLE, "watch: no '%s' in %d s", w->ctl->options[OPT_UNTIL],
                 w->ctl->timeout);
    } else if (w->count) {
        ctl_fail(CTL_UNAVAILABLE, "watch: %" PRIu64 " of %" PRIu64 " events in %d s", w->n_events,
                 w->count, w->ctl->timeout);
    }
}

static void
watch(struct ctl *ctl)
{
    struct watch w = {
        .ctl = ctl,
        .only = ctl->argc ? ctl->argv[0] : NULL,
        .begins = true,
        .count = ctl_option_number(ctl, OPT_COUNT, 1, UINT32_MAX, 0),
    };
    enum ctl_news news = NEWS_CHANGED;

    if (ctl->options[OPT_UNTIL]) {
        parse_until(&w, ctl->options[OPT_UNTIL]);
    }
    if (w.only) {
        ctl_require_group(ctl, w.only);
    }
    if (!ctl->timeout_given) {
        ctl->deadline = LLONG_MAX;
    }
    do {
        if (news == NEWS_LOST || news == NEWS_BACK) {
            print_registry_event(&w, news == NEWS_LOST ? EVENT_REGISTRY_LOST : EVENT_REGISTRY_BACK);
        }
        if (!w.done && news != NEWS_LOST) {
            take_view(&w);
        }
        if (fflush(stdout) || ferror(stdout)) {
            break; /* main() says so. */
        }
        if (!w.done && w.gone) {
            ctl_refuse(ctl, "group %s was deleted", w.only);
        }
    } while (!w.done && (news = ctl_next_news(ctl)) != NEWS_NONE);
    if (news == NEWS_NONE) {
        end_at_deadline(&w);
    }
    view_uninit(&w.view);
}

const struct ctl_command ctl_watch_commands[] = {
    {"watch", "[GROUP]", 0, 1, CTL_STREAM | FLAG(OPT_UNTIL) | FLAG(OPT_COUNT), 0, NULL, watch,
     "print a line for each state of groups and members that there is, and for each event from then\n"
     "        on, without GROUP also for paths that become bad or good and for faults;\n"
     "        ends after N events, with an EVENT (EVENT:MEMBER for one member's), or with the group"},
    {.name = NULL},
};
