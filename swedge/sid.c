/* SPDX-License-Identifier: Apache-2.0
 *
 * The SID table: local SIDs by longest prefix.
 */
#include "swedge/swedge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct behaviour *const behaviours[] = {
    [SID_END] = NULL,     [SID_END_MT] = &behaviour_end_mt, [SID_RESPONSE] = NULL,
    [SID_END_DT6] = NULL, [SID_END_REPLICATE] = NULL,
};

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

int
sid_table_configure(struct sid_table *t, const struct node_config *config, char **errp)
{
    struct sid_table new = {.sids = calloc(config->n_sids + 1, sizeof *new.sids)};
    if (!new.sids) {
        abort();
    }
    for (size_t i = 0; i < config->n_sids; i++) {
        const struct sid_config *sc = &config->sids[i];
        const struct behaviour *b = behaviours[sc->behaviour];

        if (!b) {
            char text[INET6_ADDRSTRLEN];
            inet_ntop(AF_INET6, &sc->prefix, text, sizeof text);
            if (asprintf(errp, "SID %s/%d: behaviour %d is not supported", text, sc->plen,
                         sc->behaviour)
                < 0) {
                abort();
            }
            sid_table_uninit(&new);
            return EOPNOTSUPP;
        }
        struct sid *s = &new.sids[new.n++];
        *s = (struct sid){.prefix = sc->prefix, .plen = sc->plen, .behaviour = b};
        const struct sid *old = sid_table_lookup(t, &sc->prefix);
        if (old && old->plen == s->plen && old->behaviour == b) {
            s->n_packets = old->n_packets;
        }
    }
    qsort(new.sids, new.n, sizeof *new.sids, longer_first);
    sid_table_uninit(t);
    *t = new;
    return 0;
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
