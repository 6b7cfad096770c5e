/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge as a node: life cycle, configuration, timers, display.
 */
#include <errno.h>
#include <stdlib.h>

#include "swedge/swedge.h"

static void
tx(void *sw_, uint16_t port, struct packet *p)
{
    struct swedge *sw = sw_;
    sw->io.tx(sw->io.aux, port, p);
}

static uint32_t
mtu(void *sw_, uint16_t port)
{
    struct swedge *sw = sw_;
    return sw->io.mtu ? sw->io.mtu(sw->io.aux, port) : UINT32_MAX;
}

static void
l3_dropped(void *sw, enum drop_reason why, uint16_t port)
{
    (void) port;
    swedge_count_drop(sw, why);
}

void
swedge_count_drop(struct swedge *sw, enum drop_reason why)
{
    sw->drops[why]++;
}

static void *
create(const struct node_io *io, struct packet_pool *pool)
{
    struct swedge *sw = calloc(1, sizeof *sw);
    if (!sw) {
        abort();
    }
    sw->io = *io;
    sw->pool = pool;
    sw->l3 = l3_create(&(struct l3_ops){.tx = tx, .mtu = mtu, .drop = l3_dropped, .aux = sw}, pool);
    return sw;
}

static void
destroy(void *sw_)
{
    struct swedge *sw = sw_;

    swedge_trees_uninit(&sw->trees);
    sid_table_uninit(&sw->sids);
    l3_destroy(sw->l3);
    free(sw);
}

/* The Proxies that hosts may ask for. */
static void
announce_proxies(struct swedge *sw)
{
    struct in6_addr *proxies = calloc(sw->trees.n + 1, sizeof *proxies);
    if (!proxies) {
        abort();
    }
    for (size_t i = 0; i < sw->trees.n; i++) {
        proxies[i] = sw->trees.v[i]->config.proxy;
    }
    l3_set_proxies(sw->l3, proxies, sw->trees.n);
    free(proxies);
}

static int
configure(void *sw_, const struct node_config *config, uint64_t now, char **errp)
{
    struct swedge *sw = sw_;
    int error = swedge_trees_check(&sw->trees, config, errp);

    if (!error) {
        sid_table_configure(&sw->sids, config);
        sw->address = config->address;
        sw->verify_always = config->verify_always;
        l3_configure(sw->l3, config);
        swedge_trees_configure(sw, config, now);
        announce_proxies(sw);
    }
    return error;
}

static uint64_t
deadline(const void *sw_)
{
    const struct swedge *sw = sw_;
    uint64_t when = l3_deadline(sw->l3);

    for (size_t i = 0; i < sw->trees.n; i++) {
        uint64_t t = reverse_deadline(sw->trees.v[i]->aggregate->reverse);
        when = t < when ? t : when;
    }
    return when;
}

static void
timer(void *sw_, uint64_t now)
{
    struct swedge *sw = sw_;

    for (size_t i = 0; i < sw->trees.n; i++) {
        struct tree *t = sw->trees.v[i];
        if (reverse_deadline(t->aggregate->reverse) <= now) {
            struct reverse_out out = reverse_timer(t->aggregate->reverse, now);
            reverse_path_send(sw, t, &out, now);
        }
    }
    l3_timer(sw->l3, now);
}

static void
set_tracer(void *sw_, const struct tracer *tracer)
{
    struct swedge *sw = sw_;

    sw->tracer = tracer ? *tracer : (struct tracer){0};
    l3_set_tracer(sw->l3, tracer);
}

static const uint64_t *
drops(const void *sw)
{
    return ((const struct swedge *) sw)->drops;
}

static const struct l3 *
get_l3(const void *sw)
{
    return ((const struct swedge *) sw)->l3;
}

static bool
get_sid(const void *sw, size_t i, struct sid_info *info)
{
    return sid_table_get(&((const struct swedge *) sw)->sids, i, info);
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

    *info = (struct tree_info){.config = &t->config, .started = t->n_packets > 0};
    reverse_get_info(t->aggregate->reverse, &info->reverse);
}

static bool
get_branch(const void *sw_, size_t i, uint32_t id, struct reverse_branch_info *info)
{
    return reverse_get_branch(((const struct swedge *) sw_)->trees.v[i]->aggregate->reverse, id,
                              info);
}

const struct node_class swedge_class = {
    .name = "swedge",
    .create = create,
    .destroy = destroy,
    .configure = configure,
    .input = swedge_input,
    .deadline = deadline,
    .timer = timer,
    .set_tracer = set_tracer,
    .drops = drops,
    .l3 = get_l3,
    .sid = get_sid,
    .n_trees = n_trees,
    .tree = get_tree,
    .branch = get_branch,
};
