/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent: the host side of a multicast source.  What its files share.
 *
 *   pipeline.c  a packet's way: start reading here
 *   down.c      requests of the host to a Proxy: checked, held or encapsulated
 *   up.c        responses to the host; merged here if no switch can do that
 *   refuse.c    NAKs that are made here
 *   rate.c      what CNPs do to what the host sends
 *   groups.c    per-group state, from the configuration
 *   node.c      life cycle, display: struct node_class srcagent_class
 */
#ifndef SRCAGENT_SRCAGENT_H
#define SRCAGENT_SRCAGENT_H 1

#include "lib/addr-map.h"
#include "lib/aggregate.h"
#include "lib/deadlines.h"
#include "lib/fanout.h"
#include "lib/messages.h"
#include "lib/node-base.h"
#include "lib/node.h"
#include "lib/srh.h"

/* A requester has at most this many packets in flight (rxe: 128 unacknowledged
 * and one more), so a queue of this length loses none of them. */
#define AGENT_QUEUE_MAX   129
/* Packets that all groups hold together.  Half of the buffers stay for groups that are open. */
#define AGENT_QUEUE_TOTAL 2048

/* A request that no receiver may see.  It is latched: what is behind it is not forwarded either.
 * Its NAK acknowledges everything before it, so the NAK goes to the host only when all receivers
 * have confirmed that. */
struct refusal {
    bool active;
    psn_t psn;
    uint8_t syndrome;
    unsigned n_seen; /* how often it came in a row, with nothing lower in between. */
};

/* What is put in front of a copy of each request.  A group has one, or one for each edge if each
 * edge gets a packet of its own. */
struct encap {
    uint32_t branch;     /* the edge's; FANOUT_SHARED: it is for all. */
    struct l3_next next; /* for packets with it. */
    struct encap_template template;
};
struct encaps {
    size_t n; /* 0 unless the group is open. */
    struct encap *v;
};

/* A group epoch at this source. */
struct tree {
    struct tree_config config; /* own copy. */
    struct encaps encaps;
    uint16_t uplink; /* mode mcast: the port that packets leave by. */
    /* Merges responses if this is the root; sends what is made here. */
    struct aggregate *aggregate;

    bool seen;    /* a PSN came from the host. */
    bool started; /* a PSN went down; then h is valid. */
    psn_t h;      /* highest PSN sent down, + 1. */
    struct down_stats down;
    uint64_t n_told;           /* down.n_packets that its RDMA-CM connection was told of. */
    struct messages *messages; /* of the host that went down. */
    bool anchored;             /* una is known. */
    psn_t una;                 /* next PSN that the group has not confirmed. */
    uint32_t msn;              /* of the last response. */
    struct refusal refusal;

    struct packet *head, *tail; /* packets held while the group is closed. */
    uint32_t n_waiting;

    struct deadline deadline; /* in the agent's; up_send() sets it. */
    struct tree *due;         /* next one whose timer is to be called. */
};

struct trees {
    struct tree **v;
    size_t n;
    struct addr_map *by_key;    /* by Proxy Address and Designated QPN: from the host. */
    struct addr_map *by_source; /* by Proxy Address and source QPN: to the host. */
};

struct srcagent {
    struct node_base base; /* first. */
    struct trees trees;
    struct deadlines deadlines; /* of trees. */
    uint32_t n_waiting;         /* packets held in all groups. */
};

/* pipeline.c. */
void srcagent_input(void *sa, uint16_t port, struct packet *, uint64_t now);

/* down.c: a packet from the host to a Proxy. */
enum drop_reason down_input(struct srcagent *, struct rx *);
/* Sends what was held while the group was closed. */
void down_release(struct srcagent *, struct tree *, uint64_t now);

/* up.c: may this packet from a Proxy go to the host?  The root of its group is another node. */
enum drop_reason up_check(struct srcagent *, const struct rx *);
/* Merges a response of a node below, or counts its CNP.  The agent is the root. */
enum drop_reason up_merge(struct srcagent *, const struct rx *);
/* The timer of a tree. */
void up_timer(struct srcagent *, struct tree *, uint64_t now);
/* The end of each event at a tree: sends the host what the group's machine decided, if anything,
 * and notes the tree's deadline. */
void up_send(struct srcagent *, struct tree *, const struct reverse_out *, uint64_t now);

/* refuse.c.  'ip' is a request to 't' from its IPv6 header on, with all headers of its opcode. */
/* Why the group cannot carry the request, or DROP_none. */
enum drop_reason refuse_check(const struct tree *, const uint8_t *ip);
/* Latches a request that is refused because of 'why'.  'len' counts the ICRC. */
enum drop_reason refuse_latch(struct srcagent *, struct tree *, const uint8_t *ip, size_t len,
                              enum drop_reason why, uint64_t now);
/* Sends the NAK if everything before it is confirmed. */
void refuse_try(struct srcagent *, struct tree *, uint64_t now);

/* rate.c: a CNP for the group's source, which the host's queue pair would get, or NULL: of all that
 * were counted here in a window one is due.  DROP_none: it is to go on to the host. */
enum drop_reason rate_cnp(struct srcagent *, struct tree *, const struct packet *cnp, uint64_t now);

/* groups.c. */
/* May the host hear from this epoch?  False if the host uses the same QPN in a newer epoch: it
 * would take the answer for that one's. */
bool tree_may_answer(const struct srcagent *, const struct tree *);
void srcagent_trees_uninit(struct srcagent *);
/* Builds the encapsulations, one per tree of 'config'.  0, or an errno and a sentence in *errp. */
int srcagent_trees_prepare(const struct trees *, const struct node_config *config,
                           struct encaps **encaps, char **errp);
/* Applies a configuration.  Takes over 'encaps'. */
void srcagent_trees_configure(struct srcagent *, const struct node_config *, struct encaps *encaps,
                              uint64_t now);

extern const struct node_class srcagent_class;

#endif /* srcagent/srcagent.h */
