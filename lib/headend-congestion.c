/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows that leave a congested path, and what data say of a way (docs/draft-notes.md, R23).
 *
 * Theory of operation
 * -------------------
 * Rates react to congestion at once, and for most of it that is enough.  A path is left only if it stays
 * congested, another one is not, and slowly: other sources see the same, and would all go to the same
 * place.
 *
 *     each interval, of each path:  score = (score + what was seen) / 2, of 256
 *         seen: the share of probes that were marked; all, if somebody said so of a flow on it
 *     above 1/2 for 4 intervals: its flows may leave for a path below 1/4,
 *         each from a random time on, one in an interval, and not soon after its last move
 *     the path that was left counts as congested for a time
 *
 * A node on all paths, as the last switch before a host that has one link, cannot be avoided: what it says
 * does not count.  If all paths are congested none is below 1/4.
 *
 * What data say of loss has the way probed, and moves nothing: only probes know whether it is the way.  A host
 * that stands still is told what is missing if its way loses probes, too.
 */
#include "lib/headend-impl.h"
#include "lib/prng.h"
#include "lib/prober.h"

#define FULL          256
#define HOT_SCORE     (FULL / 2)
#define COLD_SCORE    (FULL / 4)
#define HOT_INTERVALS 4
#define START_MAX     400000   /* random. */
#define REST_MIN      4000000  /* after a move, doubled with each, */
#define REST_MAX      64000000 /* up to this, */
#define REST_HALF     60000000 /* and halved in so long without one. */
#define PENALTY_HALF  30000000
#define NO_PROGRESS   (2 * HEADEND_INTERVAL) /* then a flow stands still; it is doubted before. */
#define TOLD_MAX      4 /* a host is told so often, after twice as long each time. */

void
headend_doubt(struct headend *h, const struct path *path, bool lost, uint64_t now)
{
    if (path && path->config.probe) {
        h->ways->doubt(h->base->prober, path->config.probe, lost, now);
    }
}

/*
 * Signals.
 */

/* Does the path lead through the node? */
static bool
leads_through(const struct headend *h, const struct path *path, const struct in6_addr *node,
              const struct path *of)
{
    uint16_t id = node_id_of(node);

    if (IN6_ARE_ADDR_EQUAL(node, &h->base->address)) {
        return path->config.port == of->config.port; /* it is the queue of this node's port. */
    }
    for (size_t i = 0; i < path->config.program.n; i++) {
        const uint8_t *usid = path->config.program.containers[i].s6_addr;

        for (size_t j = SID_BLOCK_PLEN / 8; j < 16; j += 2) {
            if (id && (usid[j] << 8 | usid[j + 1]) == id) {
                return true;
            }
        }
    }
    return false;
}

/* Is there another usable path, not through the node?  ::: nobody says which node. */
static bool
is_avoidable(const struct headend *h, const struct flow *f, const struct in6_addr *node)
{
    const struct destination *d = f->to;

    for (size_t i = 0; i < d->n_paths; i++) {
        const struct path *path = &d->paths[i];

        if (path != f->path && headend_class(h, path) < CLASS_BAD
            && (IN6_IS_ADDR_UNSPECIFIED(node) || !leads_through(h, path, node, f->path))) {
            return true;
        }
    }
    return false;
}

void
headend_signal(struct headend *h, struct flow *f, const struct in6_addr *node, uint64_t now)
{
    if (!f->path) {
        return;
    }
    if (!IN6_IS_ADDR_UNSPECIFIED(node)) {
        headend_doubt(h, f->path, false, now);
    }
    f->path->load.signalled |= is_avoidable(h, f, node);
}

void
headend_congested(struct headend *h, const struct in6_addr *dst, uint32_t dest_qp,
                  const struct in6_addr *node, uint64_t now)
{
    struct destination *d = headend_find(h, dst);

    if (!d || !headend_tracks(d)) {
        return;
    }
    for (struct flow *f = d->flows; f; f = f->next) {
        if (f->requests && f->dest_qp == dest_qp) {
            headend_signal(h, f, node, now);
        }
    }
}

/*
 * Time.
 */

static void
measure(const struct headend *h, struct path *path, uint64_t now)
{
    struct path_load *l = &path->load;
    unsigned seen = path->config.probe ? h->ways->marked(h->base->prober, path->config.probe) : 0;

    l->score = (uint16_t) ((l->score + (l->signalled ? FULL : seen)) / 2);
    l->signalled = false;
    if (l->score <= HOT_SCORE) {
        l->n_hot = 0;
        l->hot_at = 0;
    } else if (l->n_hot < HOT_INTERVALS && ++l->n_hot == HOT_INTERVALS) {
        l->hot_at = now;
    }
}

/* 'n' is halved each 'half'. */
static uint64_t
halved(uint64_t n, uint64_t age, uint64_t half)
{
    return age / half < 64 ? n >> age / half : 0;
}

/* A path of the best class for the flow to go to; NULL: none is much better. */
static struct path *
cool_path(const struct headend *h, const struct flow *f, uint64_t now)
{
    struct destination *d = f->to;
    uint64_t least = COLD_SCORE;
    struct path *found = NULL;

    for (size_t i = 0; i < d->n_paths; i++) {
        struct path *path = &d->paths[(d->turn + i) % d->n_paths];
        const struct path_load *l = &path->load;
        uint64_t score = l->score + (l->left_at ? halved(FULL, now - l->left_at, PENALTY_HALF) : 0);

        if (path != f->path && score < least && headend_class(h, path) == CLASS_GOOD) {
            least = score;
            found = path;
        }
    }
    return found;
}

/* May the flow leave its path, which is congested? */
static bool
may_go(struct headend *h, struct flow *f, uint64_t now)
{
    struct flow_load *l = &f->load;

    if (l->hot_at != f->path->load.hot_at) {
        l->hot_at = f->path->load.hot_at;
        l->start_at = now + prng_below(&h->random, START_MAX);
    }
    return now >= l->start_at && (!l->moved_at || now - l->moved_at >= l->rest);
}

static void
go(struct headend *h, struct flow *f, struct path *to, uint64_t now)
{
    struct flow_load *l = &f->load;
    uint64_t rest = l->moved_at ? 2 * halved(l->rest, now - l->moved_at, REST_HALF) : 0;

    l->rest = rest < REST_MIN ? REST_MIN : rest < REST_MAX ? rest : REST_MAX;
    l->moved_at = now;
    f->path->load.left_at = now;
    f->to->turn = (size_t) (to - f->to->paths) + 1;
    headend_plan(h, f, to, PATH_MOVE_CONGESTED, now);
}

/* One flow at most leaves in an interval. */
static void
relieve(struct headend *h, struct destination *d, uint64_t now)
{
    for (struct flow *f = d->flows; f; f = f->next) {
        if (!f->requests || !f->path || !f->path->load.hot_at || f->going_to
            || now - f->used > 2 * HEADEND_INTERVAL || headend_pin_of(d, f->dest_qp)
            || !may_go(h, f, now)) {
            continue;
        }
        struct path *to = cool_path(h, f, now);

        if (to) {
            go(h, f, to, now);
            return;
        }
    }
}

/* Has a probe been lost on the path, and not enough of them come back since? */
static bool
loses(const struct path *path)
{
    return path->state != PATH_GOOD && path->state != PATH_UNKNOWN;
}

/* May an answer of the destination have come to grief?  Which path they take nobody knows here. */
static bool
any_loses(const struct destination *d)
{
    for (size_t i = 0; i < d->n_paths; i++) {
        if (loses(&d->paths[i])) {
            return true;
        }
    }
    return false;
}

/* For how long nothing was confirmed of the flow, nor said to its host. */
static uint64_t
still_for(const struct flow *f, uint64_t now)
{
    return now - (f->n_told ? f->told_at : f->progress_at);
}

/* The flow stands still: if its path loses something it takes a good one, if there is one.  Its host is told
 * anyway, since what it has sent again may be lost again: of that nobody would tell it. */
static void
help(struct headend *h, struct destination *d, struct flow *f, uint64_t now)
{
    bool may_go = loses(f->path) && !headend_pin_of(d, f->dest_qp);
    struct path *to = may_go ? headend_choose(h, d, f->path) : NULL;

    if (to && headend_class(h, to) == CLASS_GOOD) {
        headend_fail(h, f, to, now);
    } else {
        headend_ask_again(h, f, now);
    }
}

/* Flows of which nothing is confirmed. */
static void
look_for_progress(struct headend *h, struct destination *d, uint64_t now)
{
    bool in_trouble = any_loses(d);

    for (struct flow *f = d->flows; f; f = f->next) {
        /* Of one that is not bound progress may not be seen. */
        if (!f->own || in_flight_is_idle(&f->in_flight) || now - f->progress_at < HEADEND_INTERVAL
            || now - f->used > IN_FLIGHT_LIFE) {
            continue;
        }
        headend_doubt(h, f->path, true, now);
        if (f->path && in_trouble && !f->going_to && f->n_told < TOLD_MAX
            && still_for(f, now) >= (uint64_t) NO_PROGRESS << f->n_told) {
            help(h, d, f, now);
        }
    }
}

void
headend_look_at_load(struct headend *h, uint64_t now)
{
    for (size_t i = 0; i < h->n; i++) {
        struct destination *d = &h->destinations[i];

        if (!headend_tracks(d)) {
            continue;
        }
        if (now - d->used > IN_FLIGHT_LIFE) {
            for (size_t j = 0; j < d->n_paths; j++) {
                d->paths[j].load = (struct path_load){.left_at = d->paths[j].load.left_at};
            }
            continue;
        }
        for (size_t j = 0; j < d->n_paths; j++) {
            measure(h, &d->paths[j], now);
        }
        if (d->policy == PATH_SPREAD) {
            relieve(h, d, now);
        }
        look_for_progress(h, d, now);
    }
}
