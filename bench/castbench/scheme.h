/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways of writing one block to N replicas, as trees: the source and relays each
 * write to their children.  With SCHEME_MCAST the network does it: the source
 * has one child, which is the group.
 *
 * A relay is told of what arrives (WRITE with immediate, or SEND).  It writes it
 * to its children from its own region.  When all of them have it, the relay
 * tells the source in a message of its own.  A leaf is not involved.
 */
#ifndef BENCH_CASTBENCH_SCHEME_H
#define BENCH_CASTBENCH_SCHEME_H 1

#include <stdbool.h>
#include <stdint.h>

#define MAX_RECEIVERS 88 /* what fits one SRH. */

enum scheme {
    SCHEME_MCAST,          /* one connection to the group, copies made in the network. */
    SCHEME_UNICAST,        /* one connection per receiver, all at a time. */
    SCHEME_UNICAST_SERIAL, /* one connection per receiver, one after the other. */
    SCHEME_PRIMARY,        /* to the first receiver, which writes to all others at a time. */
    SCHEME_CHAIN,          /* each to the next, whole blocks. */
    SCHEME_CHAIN_PIPE,     /* each to the next, in chunks. */
    SCHEME_BTREE,          /* binomial tree: whoever has the block writes it to one that has not. */
    N_SCHEMES
};

/* Lower case with '-', as users write them. */
const char *scheme_name(enum scheme);
/* False: there is none of that name. */
bool scheme_from_name(const char *, enum scheme *);

/* Member 0 is the source, member i > 0 receiver i - 1. */
struct relay_plan {
    unsigned n_members;
    /* A member writes to its children one after the other: to each when the one before has it. */
    bool serial;
    struct relay_member {
        unsigned parent; /* the source's is 0. */
        unsigned n_children;
        unsigned children[MAX_RECEIVERS]; /* in the order in which they are written to. */
    } members[1 + MAX_RECEIVERS];
};

/* For any scheme but SCHEME_MCAST. */
void relay_plan_make(struct relay_plan *, enum scheme, unsigned n_receivers);

#endif /* bench/castbench/scheme.h */
