/* SPDX-License-Identifier: Apache-2.0
 *
 * Which groups are to be computed anew.
 */
#include <config.h>

#include "ctl/castd/work.h"

#include <limits.h>
#include <stdlib.h>

#include "util.h"

/* Rows of one transaction: it takes tens of milliseconds. */
#define BUDGET     1000
#define BUDGET_MIN 1

void
work_init(struct work *w)
{
    *w = (struct work){.base = true, .faults = true, .faults_at = LLONG_MAX};
    hmap_init(&w->groups);
    ovs_list_init(&w->queue);
    ovs_list_init(&w->taken);
}

static void
forget(struct work *w, struct work_group *g)
{
    hmap_remove(&w->groups, &g->hmap_node);
    ovs_list_remove(&g->queue_node);
    free(g->congestion);
    free(g);
}

void
work_uninit(struct work *w)
{
    struct work_group *g;

    HMAP_FOR_EACH_SAFE (g, hmap_node, &w->groups) {
        forget(w, g);
    }
    hmap_destroy(&w->groups);
    free(w->topology);
    free(w->paths);
    free(w->generations);
}

void
work_begin(struct work *w)
{
    w->round++;
    w->counters.n_computations++;
}

struct work_group *
work_find(struct work *w, const struct uuid *uuid)
{
    struct work_group *g;

    HMAP_FOR_EACH_WITH_HASH (g, hmap_node, uuid_hash(uuid), &w->groups) {
        if (uuid_equals(&g->uuid, uuid)) {
            g->round = w->round;
            return g;
        }
    }
    g = xzalloc(sizeof *g);
    g->uuid = *uuid;
    g->round = w->round;
    ovs_list_init(&g->queue_node);
    hmap_insert(&w->groups, &g->hmap_node, uuid_hash(uuid));
    work_make_due(w, g);
    return g;
}

void
work_end(struct work *w, unsigned int seqno)
{
    struct work_group *g;
    bool any_gone = false;

    HMAP_FOR_EACH_SAFE (g, hmap_node, &w->groups) {
        if (g->round != w->round) {
            forget(w, g);
            any_gone = true;
        }
    }
    if (any_gone) { /* its Replication-ID is free. */
        work_make_all_due(w, true);
    }
    w->seqno = seqno;
}

void
work_make_due(struct work *w, struct work_group *g)
{
    if (ovs_list_is_empty(&g->queue_node)) {
        g->ticket = ++w->last_ticket;
        ovs_list_push_back(&w->queue, &g->queue_node);
    }
}

void
work_make_all_due(struct work *w, bool only_unsettled)
{
    struct work_group *g;

    HMAP_FOR_EACH (g, hmap_node, &w->groups) {
        if (!only_unsettled || !g->settled) {
            work_make_due(w, g);
        }
    }
}

void
work_request(struct work *w, int64_t number, int64_t answered)
{
    /* A registry that was replaced may count from the start. */
    if (number < w->request || (w->request <= answered && number != w->request)) {
        w->request = number;
        w->request_ticket = w->last_ticket;
    }
}

bool
work_is_answered(const struct work *w)
{
    return ovs_list_is_empty(&w->queue)
           || CONTAINER_OF(ovs_list_front(&w->queue), struct work_group, queue_node)->ticket
                  > w->request_ticket;
}

struct work_group *
work_take(struct work *w)
{
    struct work_group *g;

    if (ovs_list_is_empty(&w->queue)) {
        return NULL;
    }
    g = CONTAINER_OF(ovs_list_pop_front(&w->queue), struct work_group, queue_node);
    ovs_list_push_back(&w->taken, &g->queue_node);
    w->counters.n_groups++;
    return g;
}

/* The longer a transaction takes, the more likely others come in between. */
size_t
work_budget(const struct work *w)
{
    return MAX(BUDGET >> MIN(w->n_conflicts, 10), BUDGET_MIN);
}

bool
work_is_left(const struct work *w)
{
    return w->more || !ovs_list_is_empty(&w->queue);
}

long long
work_pause(const struct work *w, long long now)
{
    return w->faults_at == LLONG_MAX ? LLONG_MAX : MAX(w->faults_at - now, 0);
}

void
work_done(struct work *w)
{
    struct work_group *g;

    LIST_FOR_EACH_POP (g, queue_node, &w->taken) {
        ovs_list_init(&g->queue_node);
    }
    w->n_conflicts = 0;
    w->base_taken = false;
    w->faults_taken = false;
}

void
work_again(struct work *w, bool conflict)
{
    ovs_list_push_back_all(&w->taken, &w->queue);
    ovs_list_push_back_all(&w->queue, &w->taken);
    w->base |= w->base_taken;
    w->base_taken = false;
    w->faults |= w->faults_taken;
    w->faults_taken = false;
    w->n_conflicts += conflict;
    w->counters.n_conflicts += conflict;
}
