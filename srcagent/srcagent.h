/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent: the host side of a multicast source.  What its files share.
 *
 *   pipeline.c  a packet's way: start reading here
 *   down.c      requests of the host to a Proxy: checked, held or encapsulated
 *   up.c        responses to the host
 *   refuse.c    NAKs that are made here
 *   groups.c    per-group state, from the configuration
 *   node.c      life cycle, display: struct node_class srcagent_class
 */
#ifndef SRCAGENT_SRCAGENT_H
#define SRCAGENT_SRCAGENT_H 1

#include "lib/addr-map.h"
#include "lib/l3.h"
#include "lib/node.h"
#include "lib/parse.h"
#include "lib/srh.h"

/* A requester has at most this many packets in flight (rxe: 128 unacknowledged
 * and one more), so a queue of this length loses none of them. */
#define AGENT_QUEUE_MAX 129

/* A received frame on its way. */
struct rx {
    struct packet *p; /* NULL once somebody has consumed it. */
    struct parsed h;
    uint16_t port;
    uint64_t now;
};

/* A request that no receiver shall see.  Latched: what is behind it is not
 * forwarded either, and the NAK, which acknowledges everything before it, goes
 * to the host only when all receivers have confirmed that. */
struct refusal {
    bool active;
    psn_t psn;
    uint8_t syndrome;
    bool repeated; /* seen again with nothing lower in between. */
};

/* A group epoch at this source. */
struct tree {
    struct tree_config config;   /* own copy. */
    struct encap_template encap; /* empty unless the group is open. */
    uint16_t sport;              /* of responses made here. */

    bool seen;     /* a PSN came from the host. */
    bool started;  /* a PSN went down; then h is valid. */
    psn_t h;       /* highest PSN sent down, + 1. */
    bool anchored; /* una is known. */
    psn_t una;     /* next PSN that the group has not confirmed. */
    uint32_t msn;  /* of the last response. */
    struct refusal refusal;

    struct packet *head, *tail; /* held while the group is closed. */
    uint32_t n_waiting;
};

struct trees {
    struct tree **v;
    size_t n;
    struct addr_map *by_proxy;
};

struct srcagent {
    struct node_io io;
    struct packet_pool *pool;
    struct l3 *l3;
    struct in6_addr address;
    struct port_config *ports;
    size_t n_ports;
    struct trees trees;
    uint64_t drops[N_DROP_REASONS];
};

const struct port_config *srcagent_port(const struct srcagent *, uint16_t number);
void srcagent_count_drop(struct srcagent *, enum drop_reason);

/* pipeline.c. */
void srcagent_input(void *sa, uint16_t port, struct packet *, uint64_t now);

/* down.c: a packet from the host to the Proxy of 't'. */
enum drop_reason down_input(struct srcagent *, struct rx *, struct tree *);
/* Sends what was held while the group was closed. */
void down_release(struct srcagent *, struct tree *, uint64_t now);

/* up.c: a packet from the fabric whose source is the Proxy of 't'. */
enum drop_reason up_input(struct srcagent *, struct rx *, struct tree *);

/* refuse.c. */
/* The syndrome to refuse this request with, or 0.  Valid RoCE request to 't'. */
uint8_t refuse_check(const struct tree *, const struct rx *);
enum drop_reason
refuse_latch(struct srcagent *, struct tree *, const struct rx *, psn_t, uint8_t syndrome);
/* Sends the NAK if everything before it is confirmed. */
void refuse_try(struct srcagent *, struct tree *, uint64_t now);

/* groups.c. */
void srcagent_trees_uninit(struct trees *);
int
srcagent_trees_configure(struct srcagent *, const struct node_config *, uint64_t now, char **errp);

extern const struct node_class srcagent_class;

#endif /* srcagent/srcagent.h */
