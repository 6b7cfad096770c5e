/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes of a group at its source agent (docs/draft-notes.md, R24): which one the group's packets go by.
 *
 * The encapsulations of all planes are ready, so to take another one is to store its index.
 *
 *   failure   what is in flight is lost: the host is taken back to what nobody lacks, at once.
 *   planned   what is in flight arrives: as soon as the last packet that left asks for an answer, those
 *             that come wait (rate.c), until all is confirmed.  Then the plane changes and they leave.
 *             Nothing is sent again, and nothing overtakes.  If it takes too long, or no more can
 *             wait, it is as after a failure.
 */
#include "srcagent/srcagent.h"

#define DRAIN_USEC 500000

/* Is what was sent by the plane in use not all confirmed, as far as is known? */
static bool
is_in_flight(const struct source *t)
{
    return t->started && (!t->anchored || !psn_eq(t->una, t->h));
}

static void
take(struct srcagent *sa, struct source *t, size_t to, enum plane_move move, uint64_t now)
{
    const struct tree_config *c = &t->config;
    bool held = t->drain.holds;

    TRACE(&sa->base.tracer, "group %s epoch %u: packets go by plane %s", c->group, c->epoch,
          c->planes[to].name);
    plane_use_move(&t->plane, to, move, now);
    t->drain = (struct drain){.on = false};
    if (held) {
        rate_tree_stop(sa, t);
    }
    if (move == PLANE_FAILED) {
        struct reverse_out out = reverse_go_back(t->aggregate->reverse, now);

        up_send(sa, t, &out, now);
    }
}

/* Nobody wants another plane any more. */
static void
stay(struct srcagent *sa, struct source *t)
{
    if (t->drain.on) {
        t->drain = (struct drain){.on = false};
        rate_tree_stop(sa, t);
    }
}

static void
drain(struct srcagent *sa, struct source *t, size_t to, uint64_t now)
{
    if (t->drain.on) {
        t->drain.to = to;
        return;
    }
    t->drain = (struct drain){.on = true, .holds = t->asks, .to = to, .until = now + DRAIN_USEC};
    rate_tree_stop(sa, t);
    up_send(sa, t, &(struct reverse_out){.send = false}, now); /* it has another deadline. */
}

void
source_look_at_planes(struct srcagent *sa, struct source *t, uint64_t now)
{
    const struct tree_config *c = &t->config;
    size_t to;

    switch (plane_use_look(&t->plane, &sa->base, c->planes, c->n_planes, &to)) {
    case PLANE_STAYS: stay(sa, t); break;
    case PLANE_FAILED: take(sa, t, to, PLANE_FAILED, now); break;
    case PLANE_PLANNED:
        if (is_in_flight(t)) {
            drain(sa, t, to, now);
        } else {
            take(sa, t, to, PLANE_PLANNED, now);
        }
        break;
    }
}

void
source_look_at_port(struct srcagent *sa, struct source *t, uint64_t now)
{
    if (t->config.n_planes > 1 && plane_is_down(&sa->base, &t->config.planes[t->plane.used])) {
        source_look_at_planes(sa, t, now);
    }
}

void
source_planes_sent(struct srcagent *sa, struct source *t)
{
    if (t->drain.on && !t->drain.holds && t->asks) {
        t->drain.holds = true;
        rate_tree_stop(sa, t);
    }
}

void
source_planes_settle(struct srcagent *sa, struct source *t, uint64_t now)
{
    if (t->drain.on && !is_in_flight(t)) {
        take(sa, t, t->drain.to, PLANE_PLANNED, now);
    } else if (t->drain.on && now >= t->drain.until) {
        take(sa, t, t->drain.to, PLANE_FAILED, now);
    }
}

void
source_planes_full(struct srcagent *sa, struct source *t, uint64_t now)
{
    if (t->drain.holds && t->flow.pacing.n >= PACER_QUEUE_MAX) {
        take(sa, t, t->drain.to, PLANE_FAILED, now);
    }
}

void
srcagent_way_changed(struct node_base *base, uint16_t probe, uint64_t now)
{
    struct srcagent *sa = (struct srcagent *) base; /* its first member. */

    for (size_t i = 0; i < sa->sources.n; i++) {
        struct source *t = sa->sources.v[i];

        if (planes_have_probe(t->config.planes, t->config.n_planes, probe)) {
            source_look_at_planes(sa, t, now);
        }
    }
    reverse_path_way_changed(&sa->edge, probe, now);
}
