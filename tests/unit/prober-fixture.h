/* SPDX-License-Identifier: Apache-2.0
 *
 * A small fabric of real nodes with a clock of its own, and probes in it:
 *
 *     dpu1 - leaf1 - spine5 - leaf3 - dpu3
 *
 * dpu1 and dpu3 are source agents.  Each link takes 10 us.
 */
#ifndef TESTS_UNIT_PROBER_FIXTURE_H
#define TESTS_UNIT_PROBER_FIXTURE_H 1

#include "lib/stamp.h"
#include "tests/unit/node-fixture.h"

enum { DPU1, LEAF1, SPINE5, LEAF3, DPU3, N_NODES };
enum { NEAR_LOOP = 1, LOOP, PEER, PEER_BACK }; /* numbers of probes; the last one is dpu3's. */

#define LINK_USEC     10
#define INTERVAL_USEC 100000
#define LONG_LEN      4000 /* of long probes, if there are some. */

/* What happens to packets from a node to its neighbour. */
struct wire {
    bool cut;
    unsigned max_len;   /* longer ones are lost; 0: none are. */
    unsigned lose_now;  /* so many of the next packets are lost. */
    unsigned lose_each; /* every so many-th packet is; 0: none. */
    bool marks;         /* ECT becomes CE. */
    bool
        rewrites; /* as from an Open vSwitch: a UDP checksum, unless 0, is that of another address. */
    uint64_t n;   /* packets that were sent. */
};

struct sent_packet {
    uint64_t when;
    unsigned from, to;
    size_t len;
    uint8_t bytes[PACKET_ROOM]; /* from the IPv6 header on. */
};

struct net {
    uint64_t now;
    struct fixture *nodes[N_NODES];
    struct wire wires[N_NODES][N_NODES];
    size_t n_sent;
    struct sent_packet sent[FIXTURE_MAX_FRAMES]; /* under way, the first one first. */
    struct sent_packet last[N_NODES];            /* that came to each node. */
};

/* All links work; dpu1 has the first three probes, dpu3 the last one, and both answer the other. */
struct net *net_create(uint32_t timeout_usec);
void net_destroy(struct net *);
/* To be followed by fixture_configure(net->nodes[node]). */
struct probe_config *net_add_probe(struct net *, unsigned node, uint16_t number);
/* All that happens in this time. */
void net_run(struct net *, uint64_t usec);
/* A packet comes to a node from its only or first neighbour; what it sends for it goes its way. */
void net_input(struct net *, unsigned node, const uint8_t *ip, size_t len);

struct probe_info net_probe(const struct net *, unsigned node, uint16_t number);
/* The state of dpu1's probe. */
enum path_state net_state(const struct net *, uint16_t number);
/* Drops at all nodes. */
uint64_t net_drops(const struct net *);

#endif /* tests/unit/prober-fixture.h */
