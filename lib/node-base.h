/* SPDX-License-Identifier: Apache-2.0
 *
 * What every forwarding node has: ports to send from, plain forwarding, SIDs,
 * counters, a listener for traces.  The first member of a node's structure, so
 * that the functions here that take a 'void *node' serve in its node_class.
 */
#ifndef LIB_NODE_BASE_H
#define LIB_NODE_BASE_H 1

#include "lib/node.h"
#include "lib/parse.h"

struct fast_cnp;

struct node_base {
    struct tracer tracer;
    struct packet_pool *pool;
    struct l3 *l3;
    struct node_cm *cm;  /* RDMA-CM connections, lib/node-cm.h. */
    struct swedge *edge; /* of swedge/swedge.h; NULL: the node has no receivers. */
    /* Does the newest epoch of this Proxy copy to the queue pair?  NULL: the node has no
     * receivers. */
    bool (*has_receiver)(const struct node_base *, const struct in6_addr *proxy,
                         const struct in6_addr *host, uint32_t qpn);
    struct node_egress *egress;         /* lib/node-egress.h */
    struct node_congestion *congestion; /* lib/node-congestion.h */
    struct headend *headend;            /* lib/headend.h */
    struct prober *prober;              /* lib/prober.h */
    /* A way that probe 'number' is about is another one now: lib/headend.h has been told.  NULL:
     * nobody else asks. */
    void (*way_changed)(struct node_base *, uint16_t number, uint64_t now);
    /* As in struct node_io. */
    enum path_state (*way_state)(void *aux, uint16_t probe);
    void *way_aux;
    bool has_paths; /* to some host, so that packets have to do with it. */
    /* A copy for a branch of the group epoch (Proxy, Designated QPN) met congestion here, and leaves
     * with CE.  NULL: the node has no receivers. */
    void (*ce_left)(struct node_base *, const struct in6_addr *proxy, uint32_t designated_qpn,
                    uint32_t branch, uint64_t now);
    /* Where the packet of a group's copy came from: its flow's source and Designated QPN, for one
     * that was rewritten.  False: it is not known any more. */
    bool (*copy_source)(const struct node_base *, const struct in6_addr *proxy,
                        uint32_t designated_qpn, struct in6_addr *source);
    /* A packet of this node's own host met congestion here.  NULL: the node is no source agent. */
    void (*tell_host)(struct node_base *, const struct fast_cnp *, uint64_t now);
    struct in6_addr address;
    struct sid_table sids;
    uint64_t response_seq; /* the highest of trees that have gone: one of them may come back. */
    uint64_t drops[N_DROP_REASONS];
};

void node_base_init(struct node_base *, const struct node_io *, struct packet_pool *);
void node_base_uninit(struct node_base *);
/* Address, ports, routes and SIDs of 'config'. */
void node_base_configure(struct node_base *, const struct node_config *, uint64_t now);

static inline void
node_count_drop(struct node_base *base, enum drop_reason why)
{
    base->drops[why]++;
}

/* When node_base_timer() wants to be called; UINT64_MAX: never. */
uint64_t node_base_deadline(const struct node_base *);
void node_base_timer(struct node_base *, uint64_t now);

/* Members of struct node_class.  What a node that has a tracer sends does not wait in queues. */
void node_base_set_tracer(void *node, const struct tracer *);
const uint64_t *node_base_drops(const void *node);
const struct l3 *node_base_l3(const void *node);
bool node_base_egress(const void *node, uint16_t port, struct egress_stats *);
bool node_base_sid(const void *node, size_t i, struct sid_info *);
void node_base_follow_ways(void *node, const void *first, uint64_t now);
const struct congestion_stats *node_base_congestion(const void *node);

/* A received frame on its way. */
struct rx {
    struct packet *p; /* NULL once somebody has consumed it. */
    struct parsed h;  /* offsets into p's bytes. */
    struct sid *sid;  /* swedge: that it is addressed to, once it is admitted; NULL: none. */
    uint16_t port;
    uint8_t n_usids; /* swedge: of this node that it has had. */
    bool unwrapped;  /* swedge: came in another packet, whose path ends at this node. */
    uint64_t now;
};

static inline void *
rx_at(const struct rx *rx, uint16_t ofs)
{
    return rx->p->data + ofs;
}

/* The outermost IPv6 header. */
static inline struct ip6_hdr_wire *
rx_ip(const struct rx *rx)
{
    return rx_at(rx, rx->h.ip.ofs);
}

/* Parses a packet that is addressed to this node: parse_rest(), and DROP_routing_header. */
enum drop_reason node_parse(struct rx *);

/* May the station on this port send this frame, by the port's role (BCP 38, RFC 8754 section
 * 5.1)?  A host speaks with its own address only, without routing header or tunnel, and not to
 * SIDs, wherever they are.  What an agent sends to a SID comes from the agent.  Fast CNPs come from
 * within their domain (draft-xiao section 5).  'rx' is parsed
 * as far as this node looks into it: fully if it comes from a host.  DROP_program_guard: an agent's
 * program is not one of those that the port is configured for. */
enum drop_reason node_guard(const struct rx *, const struct port_config *);

#endif /* lib/node-base.h */
