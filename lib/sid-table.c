/* SPDX-License-Identifier: Apache-2.0
 *
 * Local SIDs by longest prefix.
 */
#include "lib/sid-table.h"

#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/fib.h"

static int
longer_first(const void *a_, const void *b_)
{
    const struct sid *a = a_;
    const struct sid *b = b_;
    return b->plen - a->plen;
}

void
sid_table_uninit(struct sid_table *t)
{
    free(t->sids);
    fib_destroy(t->fib);
    *t = (struct sid_table){0};
}

void
sid_table_configure(struct sid_table *t, const struct node_config *config)
{
    struct sid_table new = {.sids = must_calloc(config->n_sids, sizeof *new.sids),
                            .fib = fib_create()};
    for (size_t i = 0; i < config->n_sids; i++) {
        const struct sid_config *sc = &config->sids[i];
        const struct sid *old = sid_table_lookup(t, &sc->prefix);
        bool same = old && old->plen == sc->plen && old->behaviour == sc->behaviour;

        new.sids[new.n++] = (struct sid){
            .prefix = sc->prefix,
            .plen = sc->plen,
            .behaviour = sc->behaviour,
            .block_len = sc->block_len,
            .port = sc->port,
            .n_packets = same ? old->n_packets : 0,
        };
    }
    qsort(new.sids, new.n, sizeof *new.sids, longer_first);
    /* Of two SIDs with one prefix the first counts. */
    for (size_t i = new.n; i-- > 0;) {
        fib_set(new.fib, &new.sids[i].prefix, new.sids[i].plen, (uint32_t) i);
    }
    sid_table_uninit(t);
    *t = new;
}

struct sid *
sid_table_lookup(const struct sid_table *t, const struct in6_addr *addr)
{
    uint32_t i;

    return t->fib && fib_lookup(t->fib, addr, &i) ? &t->sids[i] : NULL;
}

bool
sid_table_get(const struct sid_table *t, size_t i, struct sid_info *info)
{
    if (i >= t->n) {
        return false;
    }
    const struct sid *s = &t->sids[i];
    *info = (struct sid_info){s->prefix, s->plen, sid_behaviour_name(s->behaviour), s->port,
                              s->n_packets};
    return true;
}
