/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge: SRv6 edge and transit forwarder.  What its files share.
 *
 *   pipeline.c      a packet's way through the node: start reading here
 *   down.c          a group's packet: checked, then copied to nodes and receivers
 *   replicate.c     ... End.Replicate: copies to the next nodes of the tree
 *   mcast.c         ... to a multicast group: forwarded, and taken for End.MT
 *   end-mt.c        ... End.MT: a rewritten copy to each receiver
 *   reverse-path.c  responses, merged on their way to the source
 *   end.c           behaviours that know no groups: End, End.X, End.DT6, End.DX6, uN, uA
 *   groups.c        per-group state, from the configuration
 *   node.c          life cycle, timers, display: struct node_class swedge_class
 */
#ifndef SWEDGE_SWEDGE_H
#define SWEDGE_SWEDGE_H 1

#include "lib/addr-map.h"
#include "lib/aggregate.h"
#include "lib/deadlines.h"
#include "lib/node-base.h"

struct swedge;

/* What a SID does.  parse_rest() has validated outer IPv6 header, SRH and inner packet before the
 * call, unless the SID is to take a uSID out of the destination and nothing else.  Sets rx->p to
 * NULL if it consumes the packet.  Returns why the packet went no further. */
typedef enum drop_reason behaviour_input(struct swedge *, struct rx *);

behaviour_input end_input; /* end.c */
behaviour_input end_x_input;
behaviour_input end_dt6_input;
behaviour_input end_dx6_input;
behaviour_input un_input;
behaviour_input ua_input;
behaviour_input end_mt_input;    /* end-mt.c */
behaviour_input replicate_input; /* replicate.c */
behaviour_input response_input;  /* reverse-path.c */
behaviour_input forward_input;   /* pipeline.c: no SID's, but plain forwarding. */

/* A branch, with what goes into the copies for it if it is a receiver. */
struct branch {
    const struct branch_config *config;
    uint16_t port;           /* host port that it is reached by; 0: reached by the routes. */
    uint32_t icrc_diff;      /* crc0 of the change of SA, DA and DestQP. */
    uint32_t icrc_diff_reth; /* the same, up to the RETH's rkey, and of the rkey's change. */
    struct l3_next next;     /* for copies to it. */
    int32_t shift;           /* aggregate_shift() of a receiver. */
    bool joined;             /* 'shift' will not change any more. */
    bool direct;             /* a node that one of the outer destinations belongs to. */
    uint64_t copied;         /* n_packets of the tree when it last got a copy. */
};

/* A next node of the tree, which copies go to. */
struct child {
    const struct in6_addr *outer_da; /* in the tree's configuration. */
    uint32_t branch;                 /* id, or FANOUT_SHARED. */
    struct l3_next next;
};

/* A group epoch at this node.
 *
 * An old epoch's tree stays beside the new one's while the source agent still has the old epoch.
 * The old epoch is over all the same: its packets are stale, and nothing goes up from it.  The
 * source may use the same QPN in the new epoch, and would take an old response for a new one. */
struct tree {
    struct tree_config config; /* own copy. */
    struct aggregate *aggregate;
    struct auth_verifier *auth; /* NULL: there never were receivers. */
    struct branch *branches;    /* in the order of config.branches. */
    size_t n_receivers;         /* branches that are receivers. */
    struct child *children;     /* in the order of config.outer_da. */
    uint16_t *next_ports;       /* mode mcast: port to each config.outer_da, in order; 0: none. */
    uint64_t n_packets;         /* packets that came down, including the current one. */
    bool superseded;            /* the Proxy has a newer epoch. */
    struct deadline deadline;   /* in the node's; tree_touched() sets it. */
    struct tree *due;           /* next one whose timer is to be called. */
};

/* The receiver with this address, or NULL. */
struct branch *tree_receiver(const struct tree *, const struct in6_addr *);

struct trees {
    struct tree **v;
    size_t n;
    struct addr_map *by_key;   /* by Proxy Address and Designated QPN. */
    struct addr_map *by_mcast; /* newest epochs of mode mcast: by group address and 0. */
    /* Newest epochs, by Proxy Address and each Designated QPN of earlier ones that a receiver's
     * queue pair is still connected to. */
    struct addr_map *by_alias;
};
void swedge_trees_uninit(struct swedge *);
/* Can this configuration be applied?  0, or an errno and a sentence in *errp.  Trees of which the
 * node is the source agent are not the edge's, here and when it is applied. */
int swedge_trees_check(const struct trees *, const struct node_config *, char **errp);
/* Applies a configuration.  Trees that stay keep their reverse-path state.  Branches that leave may
 * move the minimum m, so responses may go out. */
void swedge_trees_configure(struct swedge *, const struct node_config *, uint64_t now);

/* The epoch (proxy, designated_qpn), or NULL and the reason in *why. */
struct tree *tree_find(const struct swedge *, const struct in6_addr *proxy, uint32_t designated_qpn,
                       enum drop_reason *why);

/* The epoch that a receiver means which answers to (proxy, qpn): its queue pair may have been
 * connected in an earlier one. */
struct tree *tree_find_for_receiver(const struct swedge *, const struct in6_addr *proxy,
                                    uint32_t qpn, enum drop_reason *why);

/* node_base.has_receiver. */
bool swedge_has_receiver(const struct node_base *, const struct in6_addr *proxy,
                         const struct in6_addr *host, uint32_t qpn);

/* node_base.copy_source. */
bool swedge_copy_source(const struct node_base *, const struct in6_addr *proxy,
                        uint32_t designated_qpn, struct in6_addr *source);

/* What a group's packet is addressed to at this node. */
enum arrival { BY_END_MT, BY_REPLICATE, BY_MCAST };

/* down.c: checks a group's packet and copies it.  BY_MCAST copies to the receivers here only, and
 * may use the packet up if it goes no further. */
enum drop_reason group_input(struct swedge *, struct rx *, enum arrival);

/* A checked packet of a group: what its copies have in common. */
struct original {
    struct tree *tree;
    struct ip6_hdr_wire *ip; /* inner. */
    const struct roce_opcode_info *op;
    psn_t psn;
    bool admits; /* it may admit receivers that wait: it begins a message, and its ICRC is good. */
    uint64_t va;
    uint32_t dma_len;
    uint8_t tc;         /* traffic class of receivers' copies, after RFC 6040. */
    uint16_t after_qpn; /* bytes from behind DestQP to the ICRC. */
    uint16_t head_len;  /* inner headers up to the payload. */
};

/* end-mt.c: may receivers get this packet?  Fills o->tc. */
enum drop_reason check_receivers(const struct rx *, struct original *);
/* Sends a copy to each receiver that a TLV of this edge names.  'last': nobody else gets the
 * packet.  Then it is used up, and the absence of such a TLV is an error. */
enum drop_reason
copy_to_receivers(struct swedge *, struct rx *, const struct original *, bool last);
/* replicate.c: sends copies to the next nodes of the tree.  Uses the packet up. */
enum drop_reason copy_to_nodes(struct swedge *, struct rx *, const struct original *);

/* mcast.c: a packet to a group address of mode mcast. */
enum drop_reason mcast_input(struct swedge *, struct rx *);

/* reverse-path.c: a response or CNP of a receiver to the Proxy. */
enum drop_reason reverse_path_input(struct swedge *, struct rx *);
/* The end of each event at a tree: sends what the machine decided, if anything, and notes the
 * tree's deadline. */
void reverse_path_send(struct swedge *, struct tree *, const struct reverse_out *, uint64_t now);
/* Sends the CNP of a window that is over. */
void reverse_path_send_cnp(struct swedge *, struct tree *, uint64_t now);
/* node_base.ce_left. */
void swedge_ce_left(struct node_base *, const struct in6_addr *proxy, uint32_t designated_qpn,
                    uint32_t branch, uint64_t now);
/* What a probe says has changed: trees that have it in a plane may answer by another one.
 * node_base.way_changed of a node that is nothing else. */
void reverse_path_way_changed(struct swedge *, uint16_t probe, uint64_t now);
void swedge_way_changed(struct node_base *, uint16_t probe, uint64_t now);
/* Asks receivers that are idle, wait, or have served an earlier source: those that are to be asked
 * now.  After a timer and a configuration. */
void reverse_path_ask(struct swedge *, struct tree *, uint64_t now);

/* The part of a node that replicates, serves receivers and knows SIDs. */
struct swedge {
    struct node_base *base; /* the node's. */
    bool verify_always;     /* verify the ICRC of all that comes down, not only where H jumps. */
    struct trees trees;
    struct deadlines deadlines; /* of trees. */

    /* As swedge_init() sets them the node is nothing else.  Another node has its own. */
    bool transit;              /* programs go on from here. */
    behaviour_input *response; /* packets to the response SID. */
    behaviour_input *forward;  /* packets that are neither for a SID nor for the node's address. */
};

/* The SID of the node that covers 'addr', or NULL.  The node's own address is none, although uN's
 * prefix covers it, too. */
static inline struct sid *
swedge_sid(const struct swedge *sw, const struct in6_addr *addr)
{
    struct sid *sid = sid_table_lookup(&sw->base->sids, addr);

    return sid && sid->behaviour == SID_UN && l3_is_local(sw->base->l3, addr) ? NULL : sid;
}

/* node.c. */
/* Makes 'sw', which has no trees, the edge of the node. */
void swedge_init(struct swedge *sw, struct node_base *);
/* Members of struct node_class, of the edge alone. */
uint64_t swedge_deadline(const struct swedge *);
void swedge_timer(struct swedge *, uint64_t now);
void swedge_get_tree(const struct swedge *, size_t i, struct tree_info *);
bool swedge_get_branch(const struct swedge *, size_t i, uint32_t id, struct reverse_branch_info *);
/* The edge of a node of swedge_class. */
const struct swedge *swedge_of(const void *node);

/* pipeline.c. */
void swedge_input(struct swedge *, uint16_t port, struct packet *, uint64_t now);
/* Parses as much as this node may look into, and checks that the port may send it.  Also for a
 * packet that a SID has taken out of another. */
enum drop_reason swedge_admit(struct swedge *, struct rx *);
/* Handles an admitted packet to this node or beyond, whatever port it came in on.  Also for a new
 * packet that a SID has made. */
enum drop_reason swedge_dispatch(struct swedge *, struct rx *);

/* node.c: the reverse path or the authentication of a tree may have another deadline. */
void tree_touched(struct swedge *, struct tree *);

extern const struct node_class swedge_class;

#endif /* swedge/swedge.h */
