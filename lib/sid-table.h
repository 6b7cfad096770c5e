/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's local SIDs: longest prefix to behaviour.  What a behaviour does is
 * the node's business.
 */
#ifndef LIB_SID_TABLE_H
#define LIB_SID_TABLE_H 1

#include "lib/node-config.h"

struct sid {
    struct in6_addr prefix;
    uint8_t plen;
    enum sid_behaviour behaviour;
    uint8_t block_len; /* as in struct sid_config. */
    uint16_t port;
    uint64_t n_packets; /* counted by the node. */
};

struct sid_table {
    struct sid *sids; /* longest prefix first. */
    size_t n;
    struct fib *fib; /* value: index in 'sids'; NULL: there are none. */
};

void sid_table_uninit(struct sid_table *);
/* Replaces the table; SIDs that stay keep their counters. */
void sid_table_configure(struct sid_table *, const struct node_config *);
/* NULL: none covers 'addr'. */
struct sid *sid_table_lookup(const struct sid_table *, const struct in6_addr *addr);

/* Entry i, for display; false: there are not so many. */
struct sid_info {
    struct in6_addr prefix;
    uint8_t plen;
    const char *behaviour;
    uint16_t port; /* 0: it is of no port. */
    uint64_t n_packets;
};
bool sid_table_get(const struct sid_table *, size_t i, struct sid_info *);

#endif /* lib/sid-table.h */
