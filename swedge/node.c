/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge as a node: life cycle, configuration, timers, display.
 */
#include <errno.h>
#include <stdlib.h>

#include "swedge/swedge.h"

#include "lib/alloc.h"
#include "lib/headend.h"
#include "lib/node-cm.h"
#include "lib/node-egress.h"
#include "lib/prober.h"

/* A switch: an edge on a node of its own. */
struct node {
    struct node_base base; /* first. */
    struct swedge edge;
};

void
swedge_init(struct swedge *sw, struct node_base *base)
{
    *sw = (struct swedge){
        .base = base,
        .transit = true,
        .response = response_input,
        .forward = forward_input,
    };
    base->edge = sw;
    base->has_receiver = swedge_has_receiver;
    base->ce_left = swedge_ce_left;
    base->copy_source = swedge_copy_source;
    base->way_changed = swedge_way_changed;
}

static void *
create(const struct node_io *io, struct packet_pool *pool)
{
    struct node *node = must_calloc(1, sizeof *node);
    node_base_init(&node->base, io, pool);
    swedge_init(&node->edge, &node->base);
    return node;
}

static void
destroy(void *node_)
{
    struct node *node = node_;

    swedge_trees_uninit(&node->edge);
    node_base_uninit(&node->base);
    free(node);
}

static int
configure(void *node, const struct node_config *config, uint64_t now, char **errp)
{
    struct swedge *sw = &((struct node *) node)->edge;
    int error = swedge_trees_check(&sw->trees, config, errp);

    if (!error) {
        node_base_configure(sw->base, config, now);
        swedge_trees_configure(sw, config, now);
        node_cm_trees_changed(sw->base, now);
    }
    return error;
}

static uint64_t
tree_deadline(const struct tree *t)
{
    uint64_t reverse = aggregate_deadline(t->aggregate);
    uint64_t auth = t->auth ? auth_verifier_deadline(t->auth) : UINT64_MAX;

    return auth < reverse ? auth : reverse;
}

void
tree_touched(struct swedge *sw, struct tree *t)
{
    deadlines_set(&sw->deadlines, &t->deadline, tree_deadline(t), t);
}

static void
input(void *node, uint16_t port, struct packet *p, uint64_t now)
{
    swedge_input(&((struct node *) node)->edge, port, p, now);
}

uint64_t
swedge_deadline(const struct swedge *sw)
{
    return deadlines_first(&sw->deadlines);
}

static uint64_t
deadline(const void *node)
{
    const struct swedge *sw = swedge_of(node);
    uint64_t base = node_base_deadline(sw->base);
    uint64_t trees = swedge_deadline(sw);

    return base < trees ? base : trees;
}

static void
tree_timer(struct swedge *sw, struct tree *t, uint64_t now)
{
    if (t->auth) {
        auth_verifier_timer(t->auth, now);
    }
    bool cnp;
    struct reverse_out out = aggregate_timer(t->aggregate, now, &cnp);

    if (cnp) {
        reverse_path_send_cnp(sw, t, now);
    }
    reverse_path_send(sw, t, &out, now);
    reverse_path_ask(sw, t, now);
}

void
swedge_timer(struct swedge *sw, uint64_t now)
{
    struct tree *due = NULL;
    struct tree *t;

    /* Each is called once, whatever its next deadline is. */
    while ((t = deadlines_due(&sw->deadlines, now))) {
        deadlines_set(&sw->deadlines, &t->deadline, UINT64_MAX, t);
        t->due = due;
        due = t;
    }
    for (; due; due = due->due) {
        tree_timer(sw, due, now);
    }
}

static void
timer(void *node, uint64_t now)
{
    struct swedge *sw = &((struct node *) node)->edge;

    node_egress_set_now(sw->base->egress, now);
    swedge_timer(sw, now);
    node_base_timer(sw->base, now);
}

static size_t
n_trees(const void *node)
{
    return swedge_of(node)->trees.n;
}

void
swedge_get_tree(const struct swedge *sw, size_t i, struct tree_info *info)
{
    const struct tree *t = sw->trees.v[i];

    *info = (struct tree_info){
        .config = &t->config,
        .started = t->n_packets > 0,
        .auth = t->n_receivers ? auth_verifier_stats(t->auth) : NULL,
        .cnps = t->config.n_branches ? t->aggregate->cnps : NULL,
    };
    aggregate_get_info(t->aggregate, &info->reverse);
    plane_use_info(&t->aggregate->plane, sw->base, t->config.parent_planes,
                   t->config.n_parent_planes, info);
}

static void
get_tree(const void *node, size_t i, struct tree_info *info)
{
    swedge_get_tree(swedge_of(node), i, info);
}

bool
swedge_get_branch(const struct swedge *sw, size_t i, uint32_t id, struct reverse_branch_info *info)
{
    return aggregate_get_branch(sw->trees.v[i]->aggregate, id, info);
}

static bool
get_branch(const void *node, size_t i, uint32_t id, struct reverse_branch_info *info)
{
    return swedge_get_branch(swedge_of(node), i, id, info);
}

const struct swedge *
swedge_of(const void *node)
{
    return &((const struct node *) node)->edge;
}

const struct node_class swedge_class = {
    .name = "swedge",
    .role = NODE_SWITCH,
    .create = create,
    .destroy = destroy,
    .configure = configure,
    .configure_connections = node_cm_configure,
    .input = input,
    .deadline = deadline,
    .timer = timer,
    .set_tracer = node_base_set_tracer,
    .drops = node_base_drops,
    .l3 = node_base_l3,
    .egress = node_base_egress,
    .congestion = node_base_congestion,
    .sid = node_base_sid,
    .n_trees = n_trees,
    .tree = get_tree,
    .branch = get_branch,
    .path = headend_path,
    .make_naks = headend_make_naks,
    .probe = prober_probe,
    .follow_ways = node_base_follow_ways,
    .n_connections = node_cm_n,
    .connection = node_cm_get,
    .connections_version = node_cm_version,
};
