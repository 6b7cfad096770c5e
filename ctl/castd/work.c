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
    ovs_list_init(&w->unsettled);
    ovs_list_init(&w->settled);
    ovs_list_init(&w->queue);
    ovs_list_init(&w->taken);
}

void
work_uninit(struct work *w)
{
    struct work_group *g;

    LIST_FOR_EACH_SAFE (g, node, &w->unsettled) {
        work_remove(w, g);
    }
    LIST_FOR_EACH_SAFE (g, node, &w->settled) {
        work_remove(w, g);
    }
    free(w->topology);
    free(w->paths);
    free(w->generations);
}

struct work_group *
work_add(struct work *w, struct mirror_group *group)
{
    struct work_group *g = xzalloc(sizeof *g);

    g->group = group;
    ovs_list_init(&g->queue_node);
    ovs_list_push_back(&w->unsettled, &g->node);
    work_make_due(w, g);
    return g;
}

void
work_remove(struct work *w, struct work_group *g)
{
    ovs_list_remove(&g->node);
    ovs_list_remove(&g->queue_node);
    free(g->congestion);
    free(g);
    w->any_gone = true;
}

void
work_begin(struct work *w)
{
    w->counters.n_computations++;
    if (w->any_gone) { /* a Replication-ID is free. */
        w->any_gone = false;
        work_make_unsettled_due(w);
    }
}

void
work_make_due(struct work *w, struct work_group *g)
{
    if (g->is_taken) {
        g->again = true;
    } else if (ovs_list_is_empty(&g->queue_node)) {
        g->ticket = ++w->last_ticket;
        ovs_list_push_back(&w->queue, &g->queue_node);
    }
}

void
work_make_unsettled_due(struct work *w)
{
    struct work_group *g;

    LIST_FOR_EACH (g, node, &w->unsettled) {
        work_make_due(w, g);
    }
}

void
work_make_all_due(struct work *w)
{
    struct work_group *g;

    work_make_unsettled_due(w);
    LIST_FOR_EACH (g, node, &w->settled) {
        work_make_due(w, g);
    }
}

void
work_settle(struct work *w, struct work_group *g, bool settled)
{
    ovs_list_remove(&g->node);
    ovs_list_push_back(settled ? &w->settled : &w->unsettled, &g->node);
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
    g->is_taken = true;
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
        g->is_taken = false;
        if (g->again) {
            g->again = false;
            work_make_due(w, g);
        }
    }
    w->n_conflicts = 0;
    w->base_taken = false;
    w->faults_taken = false;
}

void
work_again(struct work *w, bool conflict)
{
    struct work_group *g;

    LIST_FOR_EACH (g, queue_node, &w->taken) {
        g->is_taken = g->again = false;
    }
    ovs_list_push_back_all(&w->taken, &w->queue);
    ovs_list_push_back_all(&w->queue, &w->taken);
    w->base |= w->base_taken;
    w->base_taken = false;
    w->faults |= w->faults_taken;
    w->faults_taken = false;
    w->n_conflicts += conflict;
    w->counters.n_conflicts += conflict;
}
