/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent: the host side of a multicast source.  What its files share.
 *
 * It is also the edge of its own host: that part is swedge's (swedge/swedge.h), with the trees that
 * have another source.
 *
 *   pipeline.c  a packet's way: start reading here
 *   down.c      requests of the host to a Proxy: checked, held or encapsulated
 *   planes.c    which of a group's planes its packets go by, and how that changes
 *   rate.c      how fast the host's flows leave: what waits, and what CNPs do to that
 *   up.c        responses to the host; merged here if no switch can do that
 *   fast-cnp.c  Fast CNPs to the host: checked, and taken
 *   refuse.c    NAKs that are made here
 *   groups.c    per-group state, from the configuration
 *   node.c      life cycle, display: struct node_class srcagent_class
 */
#ifndef SRCAGENT_SRCAGENT_H
#define SRCAGENT_SRCAGENT_H 1

#include "lib/addr-map.h"
#include "lib/aggregate.h"
#include "lib/data-auth.h"
#include "lib/deadlines.h"
#include "lib/fanout.h"
#include "lib/fast-cnp.h"
#include "lib/messages.h"
#include "lib/node-base.h"
#include "lib/node.h"
#include "lib/pacer.h"
#include "lib/srh.h"
#include "swedge/swedge.h"

/* Packets of all flows that wait.  Half of the buffers stay for those that do not. */
#define AGENT_QUEUE_TOTAL 2048

/* What the host sends to one queue pair: the requests of a group epoch, or of another flow. */
struct flow {
    struct source *tree; /* NULL: it is no group's. */
    /* Its key; of a group's, Proxy Address and Designated QPN.  Unspecified: the entry is free. */
    struct in6_addr dst;
    uint32_t dest_qp;
    uint64_t used;                    /* not a group's: when its last packet came. */
    const struct rate_params *params; /* what its controller goes by. */
    struct rate_control control;
    struct pacer_flow pacing;
    struct deadline deadline; /* of 'control'. */
    uint64_t n_cnps, n_fast_cnps;
    uint64_t fast_cnp_at; /* the last one that was taken; n_fast_cnps 0: none was. */
    /* Of the last cut. */
    enum rate_cause last_cause;
    struct in6_addr last_node;
    uint64_t last_depth;
};

/* May what comes for the flow leave at once, as nobody slows it down or stops it? */
static inline bool
flow_is_free(const struct flow *f)
{
    return !f->pacing.rate && !f->pacing.n && !f->pacing.stopped;
}

/* Flows that are no group's and whose packets were seen: sets of some entries each, by a hash of
 * the key. */
#define FLOW_SETS     128
#define FLOW_SET_SIZE 8
#define FLOW_TABLE    (FLOW_SETS * FLOW_SET_SIZE)

struct rates {
    struct congestion_config config; /* own copy, without 'capable'. */
    struct pacer pacer;
    struct deadlines deadlines;      /* of flows' controllers. */
    struct flow unicast[FLOW_TABLE]; /* sets, one behind the other. */
};

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
 * edge gets a packet of its own, or one for each plane, of which one is used at a time. */
struct encap {
    uint32_t branch;     /* the edge's; FANOUT_SHARED: it is for all. */
    struct l3_next next; /* for packets with it. */
    uint16_t port;       /* that they leave by, whatever the routes say; 0: by the routes. */
    struct encap_template template;
};
struct encaps {
    size_t n; /* 0 unless packets may pass. */
    struct encap *v;
    struct data_key *data; /* NULL: data is not authenticated. */
};

/* A group's packets are to go by another plane, when all that was sent is confirmed.  Until then those
 * that come wait, as soon as the last one that left asks for an answer. */
struct drain {
    bool on;
    bool holds;
    size_t to;      /* index of the plane. */
    uint64_t until; /* then what is in flight is taken for lost. */
};

/* A group epoch at this source. */
struct source {
    struct tree_config config; /* own copy. */
    struct encaps encaps;
    uint64_t data_seq;      /* of the last packet whose data was authenticated. */
    uint16_t uplink;        /* mode mcast: the port that packets leave by. */
    struct plane_use plane; /* of config.planes. */
    struct drain drain;
    /* Merges responses if this is the root; sends what is made here. */
    struct aggregate *aggregate;

    bool seen;    /* a PSN came from the host. */
    bool started; /* a PSN went down; then h is valid. */
    psn_t h;      /* highest PSN sent down, + 1. */
    bool asks;    /* the packet that was sent down last has AckReq. */
    struct down_stats down;
    uint64_t n_told;           /* down.n_packets that its RDMA-CM connection was told of. */
    struct messages *messages; /* of the host that went down. */
    bool anchored;             /* una is known. */
    psn_t una;                 /* next PSN that the group has not confirmed. */
    uint32_t msn;              /* of the last response. */
    struct refusal refusal;

    struct rate_params rate_params; /* the agent's, with the group's floor. */
    struct flow flow;               /* it stops while the group is closed. */

    struct deadline deadline; /* in the agent's; up_send() sets it. */
    struct source *due;       /* next one whose timer is to be called. */
};

struct sources {
    struct source **v;
    size_t n;
    struct addr_map *by_key;    /* by Proxy Address and Designated QPN: from the host. */
    struct addr_map *by_source; /* by Proxy Address and source QPN: to the host. */
};

struct srcagent {
    struct node_base base; /* first. */
    struct sources sources;
    struct deadlines deadlines; /* of sources. */
    struct rates rates;
    struct swedge edge; /* of groups that the host receives. */
    uint64_t data_seq;  /* the highest of trees that have gone: one of them may come back. */
};

static inline struct srcagent *
srcagent_of(struct swedge *edge)
{
    return (struct srcagent *) edge->base; /* which is its first member. */
}

/* pipeline.c. */
void srcagent_input(void *sa, uint16_t port, struct packet *, uint64_t now);
/* What the edge leaves to the rest of the agent: swedge.response and swedge.forward. */
behaviour_input srcagent_response, srcagent_to_host;
/* What the host may get goes there. */
enum drop_reason srcagent_pass(struct srcagent *, struct rx *);

/* down.c: a packet from the host to a Proxy. */
enum drop_reason down_input(struct srcagent *, struct rx *);
/* Its inner packet, whose turn it is.  Consumes it. */
enum drop_reason down_admit(struct srcagent *, struct source *, struct packet *, uint64_t now);

/* planes.c: a group with planes (R24).  For one without they do nothing. */
/* May its packets have to take another plane? */
void source_look_at_planes(struct srcagent *, struct source *, uint64_t now);
/* The same before a packet leaves, by what is known of the port only. */
void source_look_at_port(struct srcagent *, struct source *, uint64_t now);
/* A packet has left; something was confirmed, or was not for some time; no more can wait. */
void source_planes_sent(struct srcagent *, struct source *);
void source_planes_settle(struct srcagent *, struct source *, uint64_t now);
void source_planes_full(struct srcagent *, struct source *, uint64_t now);
/* node_base.way_changed, also of the edge. */
void srcagent_way_changed(struct node_base *, uint16_t probe, uint64_t now);

/* rate.c. */
void rate_uninit(struct srcagent *);
/* Before the trees' are.  Sends what waits if the agent does not control rates any more. */
void rate_configure(struct srcagent *, const struct node_config *, uint64_t now);
/* A tree's configuration is new, or it has one for the first time; it ends. */
void rate_tree_configure(struct srcagent *, struct source *, uint64_t now);
void rate_tree_remove(struct srcagent *, struct source *);
/* Whether it is stopped may have changed: it is not open, or changes its plane. */
void rate_tree_stop(struct srcagent *, struct source *);
/* A packet of a flow that is not free, from its IPv6 header on: sends it, or keeps it until it may
 * leave.  Consumes it. */
enum drop_reason rate_send(struct srcagent *, struct flow *, struct packet *, uint64_t now);
/* A packet of the host that is not for a Proxy came.  The flow with which it has to go to
 * rate_send(); NULL: it may pass. */
struct flow *rate_note(struct srcagent *, const struct rx *);
/* The flow of the host with this key, or NULL. */
struct flow *rate_find(struct srcagent *, const struct in6_addr *dst, uint32_t dest_qp);
/* A CNP of the group is due at the host: 'cnp', which is on its way there, or one that the agent
 * has to say since it is the root (NULL).  DROP_none: 'cnp' may go on, or one was sent.  DROP_cnp: it
 * is used up.  'cnp' stays the caller's. */
enum drop_reason
rate_cnp(struct srcagent *, struct source *, const struct packet *cnp, uint64_t now);
/* A Fast CNP of the flow, which has passed all checks.  DROP_fast_cnp, or why it was not taken. */
enum drop_reason
rate_fast_cnp(struct srcagent *, struct flow *, const struct fast_cnp *, uint64_t now);
uint64_t rate_deadline(const struct srcagent *);
void rate_timer(struct srcagent *, uint64_t now);
/* Members of struct node_class. */
size_t rate_n_flows(const void *sa);
void rate_flow(const void *sa, size_t i, struct flow_info *);

/* fast-cnp.c: a Fast CNP from the fabric.  Says which of its checks stopped it, or DROP_fast_cnp. */
enum drop_reason fast_cnp_input(struct srcagent *, const struct rx *);
/* node_base.tell_host: the queue of the agent's own uplink is congested. */
void fast_cnp_tell(struct node_base *, const struct fast_cnp *, uint64_t now);

/* up.c: may this packet from a Proxy go to the host?  The root of its group is another node. */
enum drop_reason up_check(struct srcagent *, const struct rx *);
/* What came to the response SID.  If the agent is the root: merges a response of a node below, or counts
 * its CNP.  Otherwise it is for the host, with something in front of it that says that it is the root's. */
enum drop_reason up_merge(struct srcagent *, struct rx *);
/* The timer of a tree. */
void up_timer(struct srcagent *, struct source *, uint64_t now);
/* The end of each event at a tree: sends the host what the group's machine decided, if anything,
 * and notes the tree's deadline. */
void up_send(struct srcagent *, struct source *, const struct reverse_out *, uint64_t now);

/* refuse.c.  'ip' is a request to 't' from its IPv6 header on, with all headers of its opcode. */
/* Why the group cannot carry the request, or DROP_none. */
enum drop_reason refuse_check(const struct source *, const uint8_t *ip);
/* Latches a request that is refused because of 'why'.  'len' counts the ICRC. */
enum drop_reason refuse_latch(struct srcagent *, struct source *, const uint8_t *ip, size_t len,
                              enum drop_reason why, uint64_t now);
/* Sends the NAK if everything before it is confirmed. */
void refuse_try(struct srcagent *, struct source *, uint64_t now);

/* groups.c. */
/* May the host hear from this epoch?  False if the host uses the same QPN in a newer epoch: it
 * would take the answer for that one's. */
bool source_may_answer(const struct srcagent *, const struct source *);
void sources_uninit(struct srcagent *);
/* Builds the encapsulations, one per tree of 'config'.  0, or an errno and a sentence in *errp. */
int sources_prepare(const struct sources *, const struct node_config *config,
                    struct encaps **encaps, char **errp);
/* Applies a configuration.  Takes over 'encaps'. */
void sources_configure(struct srcagent *, const struct node_config *, struct encaps *encaps,
                       uint64_t now);

extern const struct node_class srcagent_class;

#endif /* srcagent/srcagent.h */
