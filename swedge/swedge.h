/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge: SRv6 edge forwarder.  What its files share.
 *
 *   pipeline.c      a packet's way through the node: start reading here
 *   end-mt.c        behaviour End.MT: one packet in, a rewritten copy per receiver out
 *   reverse-path.c  responses of the receivers, merged on their way to the source
 *   groups.c        per-group state, from the configuration
 *   node.c          life cycle, timers, display: struct node_class swedge_class
 */
#ifndef SWEDGE_SWEDGE_H
#define SWEDGE_SWEDGE_H 1

#include "lib/addr-map.h"
#include "lib/l3.h"
#include "lib/node.h"
#include "lib/parse.h"
#include "lib/reverse.h"
#include "lib/sid-table.h"

struct swedge;

/* A received frame on its way. */
struct rx {
    struct packet *p; /* NULL once somebody has consumed it. */
    struct parsed h;  /* offsets into p's bytes. */
    uint16_t port;
    uint64_t now;
};

/* A SID's behaviour.  input() returns why the packet went no further, having
 * set rx->p to NULL if it consumed it.  Validated before the call: outer IPv6
 * header, SRH and inner packet (parse_rest()). */
struct behaviour {
    const char *name;
    enum drop_reason (*input)(struct swedge *, struct rx *);
};

extern const struct behaviour behaviour_end_mt;

/* A branch of a group at this node: what to write into a copy for it. */
struct branch {
    struct branch_config config;
    uint16_t port;      /* host port it is reached by; 0: by the routes. */
    uint32_t icrc_diff; /* crc0 of the change of SA, DA and DestQP. */
    uint64_t n_copies;
    uint64_t copied; /* number of the packet of which it last had a copy. */
};

/* A group epoch at this node.  An old epoch's may be there beside a new one's
 * while the source agent still has the old one.  It is over all the same: its
 * packets are stale, and nothing goes up from it, because the source may use the
 * same QPN in the new epoch and would take an old response for a new one. */
struct tree {
    struct tree_config config; /* own copy. */
    struct reverse *reverse;
    uint16_t sport; /* of responses made here. */
    struct branch *branches;
    struct addr_map *by_addr; /* receivers by address. */
    uint64_t n_packets;       /* that came down, this one included. */
    bool superseded;          /* there is a newer epoch of the Proxy. */
};

struct trees {
    struct tree **v;
    size_t n;
    struct addr_map *by_key; /* by Proxy Address and Designated QPN. */
};
void swedge_trees_uninit(struct trees *);
/* May this be applied?  If not, an errno value and a sentence. */
int swedge_trees_check(const struct trees *, const struct node_config *, char **errp);
/* Trees that stay keep their reverse-path state; branches that leave may move
 * the minimum, hence responses go out. */
void swedge_trees_configure(struct swedge *, const struct node_config *, uint64_t now);

/* The epoch (proxy, designated_qpn), or NULL and the reason. */
struct tree *tree_find(const struct swedge *, const struct in6_addr *proxy, uint32_t designated_qpn,
                       enum drop_reason *why);

/* reverse-path.c. */
enum drop_reason reverse_path_input(struct swedge *, struct rx *);
/* Sends what the machine decided, if anything. */
void reverse_path_send(struct swedge *, struct tree *, const struct reverse_out *, uint64_t now);

struct swedge {
    struct node_io io;
    struct tracer tracer;
    struct packet_pool *pool;
    struct l3 *l3;
    struct in6_addr address;
    bool verify_always; /* the ICRC of what comes down, not only where H jumps. */
    struct sid_table sids;
    struct trees trees;
    uint64_t drops[N_DROP_REASONS];
};

void swedge_count_drop(struct swedge *, enum drop_reason);

/* pipeline.c. */
void swedge_input(void *sw, uint16_t port, struct packet *, uint64_t now);

extern const struct node_class swedge_class;

#endif /* swedge/swedge.h */
