/* SPDX-License-Identifier: Apache-2.0
 *
 * Local SIDs by longest prefix.  A node has a handful: they are looked through in
 * order.
 */
#include "lib/sid-table.h"

#include <stdlib.h>

#include "lib/alloc.h"

static bool
prefix_match(const struct in6_addr *prefix, uint8_t plen, const struct in6_addr *addr)
{
    uint8_t bytes = plen / 8;
    uint8_t mask = (uint8_t) (0xff00 >> (plen % 8));

    return !memcmp(prefix, addr, bytes)
           && (plen % 8 == 0 || !((prefix->s6_addr[bytes] ^ addr->s6_addr[bytes]) & mask));
}

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
    *t = (struct sid_table){0};
}

void
sid_table_configure(struct sid_table *t, const struct node_config *config)
{
    struct sid_table new = {.sids = must_calloc(config->n_sids, sizeof *new.sids)};
    for (size_t i = 0; i < config->n_sids; i++) {
        const struct sid_config *sc = &config->sids[i];
        const struct sid *old = sid_table_lookup(t, &sc->prefix);
        bool same = old && old->plen == sc->plen && old->behaviour == sc->behaviour;

        new.sids[new.n++] = (struct sid){
            .prefix = sc->prefix,
            .plen = sc->plen,
            .behaviour = sc->behaviour,
            .n_packets = same ? old->n_packets : 0,
        };
    }
    qsort(new.sids, new.n, sizeof *new.sids, longer_first);
    sid_table_uninit(t);
    *t = new;
}

struct sid *
sid_table_lookup(const struct sid_table *t, const struct in6_addr *addr)
{
    for (size_t i = 0; i < t->n; i++) {
        if (prefix_match(&t->sids[i].prefix, t->sids[i].plen, addr)) {
            return &t->sids[i];
        }
    }
    return NULL;
}

bool
sid_table_get(const struct sid_table *t, size_t i, struct sid_info *info)
{
    if (i >= t->n) {
        return false;
    }
    const struct sid *s = &t->sids[i];
    *info = (struct sid_info){s->prefix, s->plen, sid_behaviour_name(s->behaviour), s->n_packets};
    return true;
}
