/* SPDX-License-Identifier: Apache-2.0
 *
 * One node's configuration as plain data: a snapshot of the registry's intent
 * with its generation.  Whoever reads the registry builds it whole and hands
 * it over; the node applies it as a difference and keeps nothing of it.
 *
 * The builder guarantees what nodes rely on: unique are port numbers, SID
 * prefixes, (proxy, designated_qpn) of trees, ids and addresses of a tree's
 * branches.
 */
#ifndef LIB_NODE_CONFIG_H
#define LIB_NODE_CONFIG_H 1

#include <net/if.h>
#include <stdbool.h>

#include "lib/address-plan.h"
#include "lib/auth.h"
#include "lib/group-policy.h"
#include "lib/impair.h"
#include "lib/port.h"
#include "lib/program.h"
#include "lib/rate-control.h"
#include "lib/reverse.h"
#include "lib/tree-mode.h"
#include "lib/wire.h"
#include "lib/words.h"

#define NAME_SIZE 64 /* with the terminating NUL. */

enum port_role {
    ROLE_HOST,   /* a host: may send only from its own address. */
    ROLE_AGENT,  /* a source agent: outer source is that agent's address. */
    ROLE_FABRIC, /* another forwarder. */
};
WORDS_DECLARE(port_role, enum port_role);

struct port_config {
    uint16_t number; /* 1..PORT_NUMBER_MAX, unique in the node. */
    char name[IFNAMSIZ];
    enum port_kind kind;
    enum port_role role;
    uint8_t mac[6];               /* this end's. */
    char peer[NAME_SIZE];         /* node or host on the other end. */
    struct in6_addr peer_address; /* the host's address, or the peer node's address. */
    uint8_t peer_mac[6];          /* of a node's port; only NODE_OVS and NODE_ROUTER are told. */
    bool external;                /* the other end is outside of the domain (Fast CNPs). */
    struct impair_params rx, tx;  /* how bad the link is made here. */
    /* ROLE_AGENT: destinations in the SID block that the agent may use.  0: all of them. */
    size_t n_programs;
    struct prefix *programs;
};


struct route_config {
    struct in6_addr prefix;
    uint8_t plen;
    uint16_t port;
    struct in6_addr next_hop; /* :: means on link. */
};

struct sid_config {
    struct in6_addr prefix;
    uint8_t plen;
    enum sid_behaviour behaviour;
    uint8_t block_len; /* uN, uA: bits of the block that the prefix begins with. */
    uint16_t port;     /* of a port: its number. */
};

/* How packets to one host are placed on paths. */
enum path_policy {
    PATH_NONE,     /* not at all: they are sent as they are, by the routes. */
    PATH_FAILOVER, /* all on the first path that is usable. */
    PATH_SPREAD,   /* flows in turn over all of them. */
    PATH_MESSAGE,  /* each message of a flow, when nothing of the flow is in flight. */
    PATH_SPRAY,    /* each packet: what RC does not survive (docs/paths.md). */
};
WORDS_DECLARE(path_policy, enum path_policy);

#define PATH_NAME_SIZE 256

/* What the way of a probe is. */
enum probe_kind {
    PROBE_LOOP, /* to a node and back, by the same links; nobody takes part in it. */
    PROBE_PEER, /* to another headend, which answers. */
};
WORDS_DECLARE(probe_kind, enum probe_kind);

#define PROBE_NUMBER_MAX 4095
#define PROBES_MAX       1024 /* of one node. */
#define PROBE_LARGE_MAX  9216 /* the largest MTU that a packet buffer has room for. */

/* What a node finds out regularly about a way (docs/paths.md). */
struct probe_config {
    uint16_t number; /* 1..PROBE_NUMBER_MAX, unique at the node: SSID of its packets (RFC 8972). */
    enum probe_kind kind;
    uint16_t port;             /* that its packets leave by. */
    char name[PATH_NAME_SIZE]; /* nodes up to the last one, joined by commas: "leaf1,spine5". */
    char plane[NAME_SIZE];     /* as of a path. */
    /* Of PROBE_LOOP there and back: the last uSID is the node's own.  Of PROBE_PEER there: the last
     * one is the peer's. */
    struct program program;
    struct in6_addr peer; /* PROBE_PEER: the address of who answers. */
    struct program back;  /* PROBE_PEER: what the answer is sent to: the same links. */
    uint16_t reverse;     /* PROBE_PEER: number of the peer's probe over the same links; 0: none. */
    uint32_t interval_usec;
    uint32_t timeout_usec; /* at most the interval. */
    uint32_t large;        /* length of a long one, from its IPv6 header on; 0: none is long. */
    bool no_checksum; /* UDP's checksum is 0, in the answers, too: it would be spoilt on the way. */
};

#define PATH_NUMBER_MAX 4095 /* 12 bits of the flow label. */
#define PATHS_MAX       64   /* to one host. */

/* A way to a host, with the program for it. */
struct path_config {
    uint16_t number; /* 1..PATH_NUMBER_MAX, unique at the node. */
    uint16_t port;   /* that packets leave by, whatever the routes say; 0: by the routes. */
    bool usable;     /* castd does not know better. */
    char name[PATH_NAME_SIZE]; /* nodes on the way, joined by commas: "leaf1,spine5,leaf3". */
    char plane[NAME_SIZE];     /* label of the spines on the way; "": none, or not one. */
    uint16_t probe;            /* number of the probe that says how good it is; 0: none does. */
    struct program program;
};

/* A flow that the operator has given a path of its own. */
struct path_pin {
    uint32_t dest_qp;
    uint16_t number; /* of the path. */
};

/* A host for which this node, which its packets come to first, has paths. */
struct destination_config {
    struct in6_addr address;
    char name[NAME_SIZE];
    enum path_policy policy;
    /* All its packets take this path, whatever the policy; 0: not so.  If that is not usable they
     * are dropped, since an operator has said so. */
    uint16_t pinned;
    size_t n_paths;
    struct path_config *paths; /* by rank. */
    size_t n_pins;
    struct path_pin *pins; /* by dest_qp. */
};

#define PLANES_MAX 4 /* of a group. */

/* One of several ways of a group's packets, or of its responses. */
struct plane_config {
    char name[NAME_SIZE];    /* its label. */
    bool usable;             /* castd does not know better: nothing of it is gone, or excluded. */
    bool preferred;          /* the operator wants it to be used. */
    struct in6_addr sid;     /* that it leads to. */
    struct in6_addr program; /* the same with the uSIDs of a path in front, one container. */
    uint16_t port;           /* that packets leave by; 0: by the routes. */
    size_t n_probes;
    uint16_t *probes; /* numbers; the plane is as good as the worst of them. */
};

enum branch_kind {
    BRANCH_RECEIVER, /* a host: responses have its inner source address. */
    BRANCH_NODE,     /* a forwarder: responses come in IPv6 from its address. */
};
WORDS_DECLARE(branch_kind, enum branch_kind);

/* How far a branch is that joins an epoch under way. */
enum branch_join {
    BRANCH_COUNTS, /* it has joined, as the node itself has said, or was there from the start. */
    /* It does not count.  A node does with its first response that is not below what may be
     * confirmed without it: some of that may have been said already. */
    BRANCH_WAITS,
    BRANCH_ADMITTED, /* receiver: it counts from the next message on whose packets name it. */
    /* Receiver: its queue pair is from an earlier epoch, and where it stands is to be found out.
     * It does not count, nor gets copies. */
    BRANCH_ASKED,
};
WORDS_DECLARE(branch_join, enum branch_join);

struct branch_config {
    uint32_t id; /* unique in the group epoch. */
    enum branch_kind kind;
    char name[NAME_SIZE];
    struct in6_addr address;
    struct in6_addr edge; /* receiver: its edge node's address (what the TLV names). */
    uint32_t qpn;         /* receiver: its QPN. */
    uint32_t rkey;        /* receiver: its rkey. */
    uint64_t va;          /* receiver: its base address. */
    uint64_t len;
    enum branch_join join;
    bool found; /* BRANCH_ASKED: where its queue pair stands was found out: 'psn'. */
    psn_t psn;  /* receiver: what its queue pair expects first. */
    /* Receiver: its PSNs are not the epoch's.  It counts from 'first' on; otherwise from the start
     * PSN. */
    bool late;
    psn_t first; /* as the source counts; its queue pair has 'psn' there. */
    /* Receiver: what its queue pair is connected to, and its responses have as DestQP, if that is
     * the Designated QPN of an earlier epoch.  0: it is the tree's. */
    uint32_t designated_qpn;
    /* Receiver: a number, each of which asks once whether its queue pair lives.  0: none. */
    uint32_t doubt;
};

/* How an edge knows for whom a packet is: is it provisioned, or do the packet's TLVs say so? */
WORDS_DECLARE(receivers, bool);
/* What becomes of a group when a member is lost: does it go on without the member? */
WORDS_DECLARE(loss_policy, bool);
WORDS_DECLARE(slow_policy, bool);
WORDS_DECLARE(nak_policy, enum reverse_nak);

/* A group epoch's part in this node: RFC 9524 would call the forwarding half
 * of it a replication segment. */
struct tree_config {
    char group[NAME_SIZE];
    uint64_t row; /* which row of the registry this is from: another one is another tree. */
    uint64_t generation;
    uint32_t epoch;
    struct in6_addr proxy;
    uint32_t designated_qpn;
    psn_t start_psn;
    bool started;   /* a packet of this epoch went down here, as far as the registry knows. */
    bool restarted; /* the node was started when it had this tree already. */
    uint32_t mtu;   /* path MTU of all QPs. */
    uint32_t designated_rkey; /* of the region with VA 0 and length region_len; 0: no WRITE. */
    uint64_t region_len;
    struct in6_addr source; /* the source host. */
    uint32_t source_qpn;
    enum tree_mode mode;
    /* Packets name no receivers: an edge copies to all that it has, the source agent sends no
     * TLVs. */
    bool provisioned;
    struct in6_addr outer_source; /* of all packets: the source agent's address. */
    struct in6_addr mcast_group;  /* mode mcast: outer destination of all packets. */
    /* Mode mcast: the node whose packets this one takes, and nobody else's; :: at the source
     * agent. */
    struct in6_addr upstream;
    /* Mode replicate: the only SID by which the group's packets come to this node.  :: means its
     * End.MT SID, or that this is the source agent. */
    struct in6_addr replication_sid;
    size_t n_outer_da;
    /* Destinations of the copies that this node sends: SIDs of its replication children; at the
     * source agent the SID of the tree's first node, in mode ingress those of all edges.  Mode
     * mcast: addresses of the nodes on the ports to which the copies go, not their destinations. */
    struct in6_addr *outer_da;
    /* Source agent: what packets to outer_da[0] are sent to: the same SID with the uSIDs of a path in
     * front of it, one container.  ::, and modes other than replicate: the SID itself. */
    struct in6_addr outer_program;
    /* Source agent, mode replicate: trees to the same receivers, of which one is used at a time.  0:
     * there is one, that of outer_da.  Otherwise outer_da[i] is the SID of planes[i]. */
    size_t n_planes;
    struct plane_config *planes;
    /* Likewise, an edge: ways of its responses to parent_sid, with the names of the agent's planes. */
    size_t n_parent_planes;
    struct plane_config *parent_planes;
    bool root;                  /* merged responses go to the source, not to parent_sid. */
    struct in6_addr parent_sid; /* the parent's response SID. */
    struct in6_addr
        parent_program;         /* likewise: what they are sent to, with a path.  ::: the SID. */
    struct group_policy policy; /* liveness_msec grows with this node's height in the tree. */
    size_t n_branches;          /* 0: this node does not aggregate. */
    struct branch_config *branches; /* those whose responses are merged here. */
    /* At a node with receivers: what packets must have.  At the source agent: what they get. */
    struct auth_config auth;
    uint64_t rate_floor;          /* source agent: bit/s; its rate is never cut below. */
    bool open;                    /* source agent: packets may pass. */
    size_t n_copies;              /* source agent: length of 'copies'. */
    struct branch_config *copies; /* source agent: what the TLVs name, sorted by edge. */
};

/* Who slows down what a host sends. */
enum rate_control_by {
    RATE_BY_AGENT, /* its source agent; the host hears of no CNP. */
    RATE_BY_NIC,   /* its NIC: the agent passes CNPs on, and makes CNPs of Fast CNPs. */
    RATE_BY_NONE,  /* nobody. */
};
WORDS_DECLARE(rate_control_by, enum rate_control_by);

/* Of the queues of a node, the one that is emptied slowest. */
struct queue_rate {
    uint16_t node; /* its id. */
    uint64_t rate; /* bit/s. */
};

/* What a node does about congestion (docs/congestion.md). */
struct congestion_config {
    uint32_t interval_usec; /* N: one cut of a rate, one counted mark of a branch, one Fast CNP of
                             * a flow in this time. */
    bool fast_cnp;          /* the node makes, and a source agent takes, Fast CNPs. */
    bool any_icrc;          /* source agent: also Fast CNPs whose ICRC fits in no form. */
    uint32_t fast_cnp_rate; /* most that the node makes in a second. */
    /* Hosts whose agents take Fast CNPs, in ascending order. */
    size_t n_capable;
    struct in6_addr *capable;
    /* Nodes whose Fast CNPs a source agent takes, in ascending order. */
    size_t n_trusted;
    struct in6_addr *trusted;
    bool trace; /* the node writes into IOAM traces of packets that it forwards to nodes. */
    /* Source agent: */
    enum rate_control_by rate_control;
    struct rate_params rate; /* of what its host sends. */
    /* Queues in traces: those of other nodes say nothing.  In ascending order. */
    size_t n_queue_rates;
    struct queue_rate *queue_rates;
};

/* What forwards at a node. */
enum node_role {
    NODE_SWITCH, /* swedge. */
    NODE_AGENT,  /* srcagent. */
    NODE_OVS,    /* Open vSwitch: replicates, merges nothing. */
    NODE_ROUTER, /* a plain IPv6 router. */
};
WORDS_DECLARE(node_role, enum node_role);
/* Does a foreign program forward there?  Such a node has no hosts and makes no link bad. */
bool node_role_is_foreign(enum node_role);
/* Does it make copies, for other nodes, of packets that come to a SID of its own? */
bool node_role_replicates(enum node_role);

struct node_config {
    uint64_t generation;
    char name[NAME_SIZE];
    enum node_role role;
    uint16_t id;
    struct in6_addr address;
    bool verify_always; /* the ICRC of every group packet (docs/draft-notes.md, H22). */
    struct congestion_config congestion;
    size_t n_ports;
    struct port_config *ports;
    size_t n_routes;
    struct route_config *routes;
    size_t n_sids;
    struct sid_config *sids;
    size_t n_destinations;
    struct destination_config *destinations; /* by address. */
    size_t n_probes;
    struct probe_config *probes; /* by number. */
    /* Other nodes whose probes this one answers, in ascending order. */
    size_t n_probers;
    struct in6_addr *probers;
    size_t n_trees;
    struct tree_config *trees;
};

/* Frees what the pointers refer to. */
void node_config_uninit(struct node_config *);
/* For qsort() and bsearch(): struct in6_addr, and struct queue_rate by node. */
int address_compare(const void *, const void *);
int queue_rate_compare(const void *, const void *);
/* Deep copy of a port's configuration, and its end. */
struct port_config *port_config_clone(const struct port_config *);
void port_config_destroy(struct port_config *);
/* Is the node with this address the tree's source agent?  Otherwise it is one of those below. */
bool tree_config_is_source(const struct tree_config *, const struct in6_addr *node);
/* Deep copy of a tree's configuration, and its end. */
void tree_config_clone(struct tree_config *dst, const struct tree_config *src);
void tree_config_uninit(struct tree_config *);
/* At the source agent: may packets pass?  Not as long as there is no instance to authenticate their
 * data with. */
bool tree_config_passes(const struct tree_config *);
/* What its digests are bound to. */
struct auth_epoch tree_config_auth_epoch(const struct tree_config *);

/* Branch ids: members have numbers from 1 on, nodes these. */
#define BRANCH_ID_NODE(NODE_ID) (0x80000000u + (NODE_ID))

#endif /* lib/node-config.h */
