/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies between two views of the registry's groups.
 */
#include <config.h>

#include "ctl/registry/view.h"

#include <stdlib.h>
#include <string.h>

#include "openvswitch/dynamic-string.h"
#include "tests/unit/suites.h"
#include "util.h"

#define STR(S) CONST_CAST(char *, S)

/* A member; rows with the same number are the same row. */
static struct member_view
member(unsigned int row, const char *host, int64_t qpn, const char *state, const char *status)
{
    return (struct member_view){.uuid = {.parts = {row}},
                                .host = STR(host),
                                .qpn = qpn,
                                .state = STR(state),
                                .status = STR(status)};
}

/* A connection of r1's at n1, likewise. */
static struct connection_view
connection(unsigned int row, int64_t number, const char *state)
{
    return (struct connection_view){.uuid = {.parts = {row}},
                                    .node = STR("n1"),
                                    .number = number,
                                    .host = STR("r1"),
                                    .state = STR(state)};
}

static struct group_view
group(unsigned int row, const char *name, int64_t epoch, const char *state, size_t n_lacking,
      struct member_view *members, size_t n_members)
{
    return (struct group_view){.uuid = {.parts = {row}},
                               .name = STR(name),
                               .epoch = epoch,
                               .state = STR(state),
                               .status = STR(""),
                               .n_lacking = n_lacking,
                               .n_members = n_members,
                               .members = members};
}

/* "g:r1:lost(active)": group, member if it is its event, event with a "!" if that is no state,
 * state before.  "g:n1/7:connected(answered)": of a connection. */
static void
put_change(const struct view_change *c, void *s_)
{
    const struct group_view *g = c->group ? c->group : c->group_before;
    const struct member_view *m = c->member ? c->member : c->member_before;
    const struct connection_view *conn = c->connection ? c->connection : c->connection_before;
    struct ds *s = s_;

    if (c->probe) {
        ck_assert(!g && !m && !conn && !c->is_state);
        ds_put_format(s, "%s%s/%s:%s", s->length ? " " : "", c->probe->node, c->probe->name,
                      c->event);
        return;
    }
    if (c->fault) {
        ck_assert(!g && !m && !conn && !c->is_state);
        ds_put_format(s, "%s%s:%s", s->length ? " " : "", c->fault->elements.names[0], c->event);
        return;
    }
    ds_put_format(s, "%s%s", s->length ? " " : "", g->name);
    if (conn) {
        ck_assert(!m && !c->is_state);
        ds_put_format(s, ":%s/%" PRId64 ":%s(%s)", conn->node, conn->number, c->event,
                      c->connection_before ? c->connection_before->state : "");
    } else if (m) {
        ck_assert(!c->is_state || c->event == m->state);
        ds_put_format(s, ":%s:%s%s(%s)", m->host, c->event, c->is_state ? "" : "!",
                      c->member_before ? c->member_before->state : "");
    } else {
        ck_assert(!c->is_state || c->event == g->state);
        ds_put_format(s, ":%s%s(%s)", c->event, c->is_state ? "" : "!",
                      c->group_before ? c->group_before->state : "");
    }
}

static void
expect(const struct view *before, const struct view *now, const char *events)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    view_compare(before, now, put_change, &s);
    ck_assert_str_eq(ds_cstr(&s), events);
    ds_destroy(&s);
}

/* Between two states of one group; nothing lies between a view and itself. */
static void
expect_group(struct group_view before, struct group_view now, const char *events)
{
    const struct view a = {.n_groups = 1, .groups = &before}, b = {.n_groups = 1, .groups = &now};

    expect(&a, &b, events);
    expect(&a, &a, "");
    expect(&b, &b, "");
}

static const struct view nothing;

START_TEST(what_is_there_at_the_start)
    {
        struct member_view members[] = {member(1, "r1", 17, "active", ""),
                                        member(2, "r2", 17, "lost", "")};
        struct group_view groups[] = {group(1, "g", 3, "degraded", 1, members, 2),
                                      group(2, "h", 1, "pending", 0, NULL, 0)};
        const struct view view = {.n_groups = 2, .groups = groups};

        groups[0].source = STR("h0");
        expect(NULL, &view, "g:source-set!() g:r1:active() g:r2:lost() g:degraded() h:pending()");
        expect(NULL, &nothing, "");
    }
END_TEST

static struct group_view
connected(unsigned int row, struct connection_view *connections, size_t n)
{
    struct group_view g = group(row, "g", 1, "ready", 0, NULL, 0);

    g.connections = connections;
    g.n_connections = n;
    return g;
}

START_TEST(connections_come_and_go)
    {
        struct connection_view one[] = {connection(1, 7, "answered")};
        struct connection_view two[] = {connection(1, 7, "established"),
                                        connection(2, 10, "connecting")};
        struct connection_view both[] = {connection(1, 7, "established"),
                                         connection(2, 10, "established")};
        struct connection_view ended[] = {connection(1, 7, "ended"), connection(2, 10, "closing")};
        struct connection_view again[] = {connection(3, 7, "established")};

        expect_group(connected(1, NULL, 0), connected(1, one, 1), "");
        expect_group(connected(1, one, 1), connected(1, two, 2), "g:n1/7:connected(answered)");
        expect_group(connected(1, NULL, 0), connected(1, both, 2),
                     "g:n1/7:connected() g:n1/10:connected()");
        expect_group(connected(1, two, 2), connected(1, both, 2), "g:n1/10:connected(connecting)");
        expect_group(connected(1, both, 2), connected(1, ended, 2),
                     "g:n1/7:disconnected(established) g:n1/10:disconnected(established)");
        expect_group(connected(1, ended, 2), connected(1, NULL, 0), "");
        expect_group(connected(1, both, 2), connected(1, &both[1], 1),
                     "g:n1/7:disconnected(established)");
        /* Another row of the same number is another connection. */
        expect_group(connected(1, two, 2), connected(1, again, 1),
                     "g:n1/7:disconnected(established) g:n1/7:connected()");

        struct group_view g = connected(1, two, 2);
        struct member_view members[] = {member(1, "r1", 17, "active", "")};
        const struct view view = {.n_groups = 1, .groups = &g};
        g.members = members;
        g.n_members = 1;
        expect(NULL, &view, "g:n1/7:connected() g:r1:active() g:ready()");
        expect(&view, &nothing,
               "g:n1/7:disconnected(established) g:r1:removed!(active) g:deleted!(ready)");
    }
END_TEST

START_TEST(groups_come_and_go)
    {
        struct member_view members[] = {member(1, "r1", 17, "joining", "")};
        struct group_view one[] = {group(1, "g2", 1, "ready", 0, members, 1)};
        struct group_view two[] = {group(1, "g2", 1, "ready", 0, members, 1),
                                   group(2, "g10", 0, "pending", 0, NULL, 0)};
        struct group_view again[] = {group(3, "g2", 1, "pending", 0, NULL, 0)};
        const struct view a = {.n_groups = 1, .groups = one}, b = {.n_groups = 2, .groups = two},
                          c = {.n_groups = 1, .groups = again};

        one[0].source = two[0].source = STR("h0");
        expect(&nothing, &a, "g2:added!() g2:epoch!() g2:source-set!() g2:r1:joining() g2:ready()");
        expect(&a, &b, "g10:added!() g10:pending()");
        expect(&b, &a, "g10:deleted!(pending)");
        expect(&a, &nothing, "g2:source-gone!(ready) g2:r1:removed!(joining) g2:deleted!(ready)");
        /* Another row of the same name is another group. */
        expect(&a, &c,
               "g2:source-gone!(ready) g2:r1:removed!(joining) g2:deleted!(ready) "
               "g2:added!() g2:epoch!() g2:pending()");
    }
END_TEST

START_TEST(states_of_groups)
    {
        struct group_view ready = group(1, "g", 1, "ready", 0, NULL, 0);
        struct group_view degraded = group(1, "g", 1, "degraded", 1, NULL, 0);
        struct group_view worse = group(1, "g", 1, "degraded", 2, NULL, 0);
        struct group_view reset = group(1, "g", 2, "pending", 0, NULL, 0);
        struct group_view odd = group(1, "g", 1, "upside down", 0, NULL, 0);
        struct group_view worst = group(1, "g", 1, "deleted", 0, NULL, 0);

        expect_group(ready, degraded, "g:degraded(ready)");
        expect_group(degraded, worse, "g:degraded(degraded)");
        expect_group(worse, degraded, "g:degraded(degraded)");
        expect_group(worse, ready, "g:ready(degraded)");
        struct group_view unseen = group(1, "g", 1, "degraded", 0, NULL, 0);
        expect_group(degraded, unseen, ""); /* its member has left: castd says more. */
        expect_group(unseen, ready, "g:ready(degraded)");
        expect_group(ready, reset, "g:epoch!(ready) g:pending(ready)");
        expect_group(ready, odd, "g:upside down(ready)");
        expect_group(ready, worst, "g:deleted(ready)");
        odd.status = STR("which way?"); /* a status by itself is no event. */
        expect_group(odd, odd, "");
    }
END_TEST

START_TEST(sources)
    {
        struct group_view none = group(1, "g", 1, "ready", 0, NULL, 0), set = none, other = none,
                          next = none;

        set.source = other.source = next.source = STR("h0");
        set.source_qpn = next.source_qpn = 18;
        other.source_qpn = 19;
        next.epoch = 2;
        expect_group(none, set, "g:source-set!(ready)");
        expect_group(set, none, "g:source-gone!(ready)");
        expect_group(set, other, "g:source-set!(ready)");
        expect_group(set, next, "g:epoch!(ready) g:source-set!(ready)");
        other = set;
        other.source = STR("h1");
        expect_group(set, other, "g:source-set!(ready)");
    }
END_TEST

/* Between two sets of members of a group that stays as it is. */
static void
expect_members(struct member_view *before, size_t n_before, struct member_view *now, size_t n_now,
               const char *events)
{
    expect_group(group(1, "g", 1, "ready", 0, before, n_before),
                 group(1, "g", 1, "ready", 0, now, n_now), events);
}

START_TEST(members)
    {
        struct member_view a[] = {member(1, "r1", 17, "active", ""),
                                  member(2, "r9", 17, "active", ""),
                                  member(3, "r10", 17, "draining", "")};
        struct member_view b[] = {
            member(1, "r1", 17, "lost", "why"), member(4, "r2", 17, "joining", ""),
            member(2, "r9", 18, "active", ""), member(3, "r10", 17, "left", "")};
        struct member_view c[] = {member(1, "r1", 18, "joining", "")};
        struct member_view d[] = {member(5, "r1", 17, "active", "")};

        expect_members(
            a, 3, b, 4,
            "g:r1:lost(active) g:r2:joining() g:r9:replaced!(active) g:r9:active(active) g:r10:left(draining)");
        expect_members(b, 4, a, 3,
                       "g:r1:active(lost) g:r2:removed!(joining) g:r9:replaced!(active) "
                       "g:r9:active(active) g:r10:draining(left)");
        expect_members(b, 1, c, 1, "g:r1:replaced!(lost) g:r1:joining(lost)");
        /* Removed and registered again between two views. */
        expect_members(a, 1, d, 1, "g:r1:removed!(active) g:r1:active()");
        expect_members(a, 3, NULL, 0,
                       "g:r1:removed!(active) g:r9:removed!(active) g:r10:removed!(draining)");
    }
END_TEST

START_TEST(finds_groups)
    {
        struct group_view groups[] = {group(1, "g9", 1, "ready", 0, NULL, 0),
                                      group(2, "g10", 1, "ready", 0, NULL, 0)};
        const struct view view = {.n_groups = 2, .groups = groups};

        ck_assert_ptr_eq(view_find(&view, "g9"), &groups[0]);
        ck_assert_ptr_eq(view_find(&view, "g10"), &groups[1]);
        ck_assert_ptr_null(view_find(&view, "g1"));
        ck_assert_ptr_null(view_find(&nothing, "g9"));
    }
END_TEST

/* What is known of messages is told once, behind the state: of who came late, and of who is
 * lost. */
START_TEST(numbers)
    {
        struct member_view start = member(1, "r1", 17, "active", "");
        struct member_view unknown = start, late, lost = member(1, "r1", 17, "lost", "why"), known;

        unknown.has_first = true;
        start = late = unknown;
        start.has_message = late.has_message = true;
        late.message = 100;
        lost.has_lost_psn = true;
        known = lost;
        known.has_message = true;
        expect_members(&unknown, 1, &start, 1, "");
        expect_members(&unknown, 1, &late, 1, "g:r1:numbered!(active)");
        expect_members(&late, 1, &late, 1, "");
        expect_members(NULL, 0, &late, 1, "g:r1:active() g:r1:numbered!()");
        expect_members(&late, 1, &lost, 1, "g:r1:lost(active)");
        expect_members(&lost, 1, &known, 1, "g:r1:numbered!(lost)");
        known.message = 100;
        expect_members(&late, 1, &known, 1, "g:r1:lost(active) g:r1:numbered!(active)");
        expect_members(&known, 1, &known, 1, "");
    }
END_TEST

static struct probe_view
probe(unsigned int row, const char *node, const char *kind, const char *name, bool is_bad)
{
    return (struct probe_view){.uuid = {.parts = {row}},
                               .node = STR(node),
                               .kind = STR(kind),
                               .name = STR(name),
                               .plane = STR(""),
                               .is_bad = is_bad};
}

static void
expect_probes(struct probe_view *before, size_t n_before, struct probe_view *now, size_t n_now,
              const char *events)
{
    const struct view a = {.n_probes = n_before, .probes = before};
    const struct view b = {.n_probes = n_now, .probes = now};

    expect(&a, &b, events);
    expect(&a, &a, "");
    expect(&b, &b, "");
}

/* What has gone is not good, and another row of the same name begins anew. */
START_TEST(paths)
    {
        struct probe_view good[] = {probe(1, "a1", "loop", "n1", false),
                                    probe(2, "a1", "peer", "n1,a2", false),
                                    probe(3, "a2", "peer", "n1,a1", false)};
        struct probe_view bad[] = {good[0], good[1], good[2]};
        const struct view start = {.n_probes = 3, .probes = bad};

        bad[1].is_bad = true;
        expect_probes(good, 3, bad, 3, "a1/n1,a2:path-bad");
        expect_probes(bad, 3, good, 3, "a1/n1,a2:path-good");
        expect_probes(bad, 3, bad, 1, "");
        expect_probes(good, 0, bad, 3, "a1/n1,a2:path-bad");
        expect(NULL, &start, "a1/n1,a2:path-bad");
        good[1].uuid.parts[0] = 9;
        expect_probes(bad, 3, good, 3, "");
        good[1].is_bad = true;
        expect_probes(bad, 3, good, 3, "a1/n1,a2:path-bad");
    }
END_TEST

/* Faults are told by their rows: one that comes back is another one.  They come before groups. */
START_TEST(faults)
    {
        char *leaf1[] = {STR("leaf1")}, *spine5[] = {STR("leaf1>spine5"), STR("spine5")};
        struct fault_view one[] = {{.uuid = {.parts = {1}}, .elements = {leaf1, 1, 1}}};
        struct fault_view two[] = {{.uuid = {.parts = {1}}, .elements = {leaf1, 1, 1}},
                                   {.uuid = {.parts = {2}}, .elements = {spine5, 2, 2}}};
        struct fault_view again[] = {{.uuid = {.parts = {3}}, .elements = {leaf1, 1, 1}}};
        struct group_view g = group(1, "g", 1, "ready", 0, NULL, 0);
        const struct view a = {.n_faults = 1, .faults = one}, b = {.n_faults = 2, .faults = two};
        const struct view c = {.n_faults = 1, .faults = again, .n_groups = 1, .groups = &g};

        expect(NULL, &b, "leaf1:fault leaf1>spine5:fault");
        expect(NULL, &c, "leaf1:fault g:ready()");
        expect(&b, &b, "");
        expect(&nothing, &a, "leaf1:fault");
        expect(&a, &b, "leaf1>spine5:fault");
        expect(&b, &a, "leaf1>spine5:fault-cleared");
        expect(&a, &nothing, "leaf1:fault-cleared");
        expect(&a, &c, "leaf1:fault-cleared leaf1:fault g:added!() g:epoch!() g:ready()");
    }
END_TEST

START_TEST(words)
    {
        enum view_event event;

        ck_assert(view_event_parse("source-set", &event));
        ck_assert_int_eq(view_event_of(event), VIEW_OF_GROUP);
        ck_assert(view_event_parse("failed", &event));
        ck_assert_int_eq(view_event_of(event), VIEW_OF_GROUP | VIEW_OF_MEMBER);
        ck_assert(view_event_parse("path-bad", &event));
        ck_assert_int_eq(view_event_of(event), VIEW_OF_PATH);
        ck_assert(view_event_parse("fault-cleared", &event));
        ck_assert_int_eq(view_event_of(event), VIEW_OF_NETWORK);
        ck_assert(!view_event_parse("registry", &event));
    }
END_TEST

Suite *
view_suite(void)
{
    Suite *suite = suite_create("view");
    TCase *tc = tcase_create("core");

    tcase_add_test(tc, what_is_there_at_the_start);
    tcase_add_test(tc, connections_come_and_go);
    tcase_add_test(tc, groups_come_and_go);
    tcase_add_test(tc, states_of_groups);
    tcase_add_test(tc, sources);
    tcase_add_test(tc, members);
    tcase_add_test(tc, finds_groups);
    tcase_add_test(tc, numbers);
    tcase_add_test(tc, paths);
    tcase_add_test(tc, faults);
    tcase_add_test(tc, words);
    suite_add_tcase(suite, tc);
    return suite;
}
