/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge as a node: life cycle, configuration, timers, display.
 */
#include <errno.h>
#include <stdlib.h>

#include "swedge/swedge.h"

#include "lib/alloc.h"
#include "lib/node-cm.h"
#include "lib/node-egress.h"

static void *
create(const struct node_io *io, struct packet_pool *pool)
{
    struct swedge *sw = must_calloc(1, sizeof *sw);
    node_base_init(&sw->base, io, pool);
    sw->base.has_receiver = swedge_has_receiver;
    sw->base.ce_left = swedge_ce_left;
    sw->base.copy_source = swedge_copy_source;
    return sw;
}

static void
destroy(void *sw_)
{
    struct swedge *sw = sw_;

    swedge_trees_uninit(sw);
    node_base_uninit(&sw->base);
    free(sw);
}

static int
configure(void *sw_, const struct node_config *config, uint64_t now, char **errp)
{
    struct swedge *sw = sw_;
    int error = swedge_trees_check(&sw->trees, config, errp);

    if (!error) {
        sw->verify_always = config->verify_always;
        node_base_configure(&sw->base, config, now);
        swedge_trees_configure(sw, config, now);
        node_cm_trees_changed(&sw->base, now);
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

static uint64_t
deadline(const void *sw_)
{
    const struct swedge *sw = sw_;
    uint64_t base = node_base_deadline(&sw->base);
    uint64_t trees = deadlines_first(&sw->deadlines);

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

static void
timer(void *sw_, uint64_t now)
{
    struct swedge *sw = sw_;

    struct tree *due = NULL;
    struct tree *t;

    node_egress_set_now(sw->base.egress, now);
    /* Each is called once, whatever its next deadline is. */
    while ((t = deadlines_due(&sw->deadlines, now))) {
        deadlines_set(&sw->deadlines, &t->deadline, UINT64_MAX, t);
        t->due = due;
        due = t;
    }
    for (; due; due = due->due) {
        tree_timer(sw, due, now);
    }
    node_base_timer(&sw->base, now);
}

static size_t
n_trees(const void *sw)
{
    return ((const struct swedge *) sw)->trees.n;
}

static void
get_tree(const void *sw_, size_t i, struct tree_info *info)
{
    const struct tree *t = ((const struct swedge *) sw_)->trees.v[i];

    *info = (struct tree_info){
        .config = &t->config,
        .started = t->n_packets > 0,
        .auth = t->auth ? auth_verifier_stats(t->auth) : NULL,
        .cnps = t->config.n_branches ? t->aggregate->cnps : NULL,
    };
    aggregate_get_info(t->aggregate, &info->reverse);
}

static bool
get_branch(const void *sw_, size_t i, uint32_t id, struct reverse_branch_info *info)
{
    return aggregate_get_branch(((const struct swedge *) sw_)->trees.v[i]->aggregate, id, info);
}

const struct node_class swedge_class = {
    .name = "swedge",
    .role = NODE_SWITCH,
    .create = create,
    .destroy = destroy,
    .configure = configure,
    .configure_connections = node_cm_configure,
    .input = swedge_input,
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
    .n_connections = node_cm_n,
    .connection = node_cm_get,
    .connections_version = node_cm_version,
};
