/* SPDX-License-Identifier: Apache-2.0
 *
 * What every forwarding node has.
 */
#include "lib/node-base.h"

static void
tx(void *base_, uint16_t port, struct packet *p)
{
    struct node_base *base = base_;
    base->io.tx(base->io.aux, port, p);
}

static uint32_t
mtu(void *base_, uint16_t port)
{
    struct node_base *base = base_;
    return base->io.mtu ? base->io.mtu(base->io.aux, port) : UINT32_MAX;
}

static void
dropped(void *base, enum drop_reason why, uint16_t port)
{
    (void) port;
    node_count_drop(base, why);
}

void
node_base_init(struct node_base *base, const struct node_io *io, struct packet_pool *pool)
{
    *base = (struct node_base){.io = *io, .pool = pool};
    base->l3 =
        l3_create(&(struct l3_ops){.tx = tx, .mtu = mtu, .drop = dropped, .aux = base}, pool);
}

void
node_base_uninit(struct node_base *base)
{
    sid_table_uninit(&base->sids);
    l3_destroy(base->l3);
}

void
node_base_configure(struct node_base *base, const struct node_config *config)
{
    base->address = config->address;
    sid_table_configure(&base->sids, config);
    l3_configure(base->l3, config);
}

void
node_base_set_tracer(void *node, const struct tracer *tracer)
{
    struct node_base *base = node;

    base->tracer = tracer ? *tracer : (struct tracer){0};
    l3_set_tracer(base->l3, tracer);
}

const uint64_t *
node_base_drops(const void *node)
{
    return ((const struct node_base *) node)->drops;
}

const struct l3 *
node_base_l3(const void *node)
{
    return ((const struct node_base *) node)->l3;
}

bool
node_base_sid(const void *node, size_t i, struct sid_info *info)
{
    return sid_table_get(&((const struct node_base *) node)->sids, i, info);
}
