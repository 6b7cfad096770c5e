/* SPDX-License-Identifier: Apache-2.0
 *
 * What a forwarding node is to those who run it: a pure object that is given
 * frames, configurations and the time, and that hands out frames.  swedge and
 * srcagent each provide one struct node_class; the daemon, the tests and the
 * simulator drive any of them alike.
 *
 * Time is in microseconds on a monotonic scale.  Single-threaded.
 */
#ifndef LIB_NODE_H
#define LIB_NODE_H 1

#include "lib/cm-conn.h"
#include "lib/cnp-window.h"
#include "lib/egress.h"
#include "lib/l3.h"
#include "lib/messages.h"
#include "lib/path-health.h"
#include "lib/reverse.h"
#include "lib/sid-table.h"

/* State of one group epoch, for display and for the registry. */
/* What a source agent has sent down, resends too: requests of the host, and their bytes from the
 * IPv6 header to the ICRC. */
struct down_stats {
    uint64_t n_packets, n_bytes;
};

struct tree_info {
    const struct tree_config *config; /* the node's own copy. */
    bool started;                     /* a PSN of this epoch went down here. */
    struct reverse_info reverse;      /* h, m, f. */
    const struct auth_stats *auth;    /* NULL: this node verifies nothing. */
    const struct down_stats *down;    /* NULL: this node is no source agent. */
    uint32_t n_waiting;               /* packets: the group is not open, or slowed down. */
    bool refused;                     /* source agent: a request was refused. */
    psn_t refused_psn;
    uint8_t refused_syndrome;
    const struct cnp_window *cnps; /* NULL: this node merges nothing. */
    /* Planes of its packets at a source agent, of its responses at an edge; NULL: it has none. */
    const struct plane_config *planes;
    size_t n_planes;
    enum path_state plane_states[PLANES_MAX];
    size_t plane_used;    /* index in 'planes'. */
    bool plane_changes;   /* packets wait until another one is taken. */
    uint64_t plane_since; /* when it was taken; 0: it is the first one. */
    uint64_t n_planes_failed,
        n_planes_moved; /* how often one was left because it was bad, or wanted. */
};

/* A flow of a source agent's host that was told of congestion. */
struct flow_info {
    struct in6_addr dst;             /* of its packets, a Proxy Address for a group's, */
    uint32_t dest_qp;                /* and their DestQP. */
    const char *group;               /* NULL: it is no group's. */
    uint64_t rate;                   /* bit/s; 0: not limited any more. */
    uint32_t n_waiting, max_waiting; /* packets, now and most ever. */
    uint64_t n_delayed, n_replaced;  /* packets that waited, or took the place of one that did. */
    uint64_t n_cnps, n_fast_cnps;    /* signals. */
    uint64_t n_cuts;
    uint64_t last_cut; /* when, microseconds; 0: never. */
    enum rate_cause last_cause;
    struct in6_addr last_node; /* who caused it; a CNP does not say: ::. */
    uint64_t last_depth;       /* bytes in the queue that a trace told of; 0: none did. */
};

/* What a node has done about congestion, since it was created. */
struct congestion_stats {
    uint64_t n_fast_cnps;            /* Fast CNPs that it made. */
    uint64_t n_too_soon;             /* not made: the flow had one in this interval, */
    uint64_t n_dst_limit;            /* its sender had enough for other flows, */
    uint64_t n_node_limit;           /* or this node had made enough. */
    uint64_t n_unwanted;             /* hosts' messages that they do not understand them. */
    uint64_t n_traced, n_trace_full; /* frames whose IOAM trace got its element, or had no room. */
};

/* Why a flow goes to another path, other than by its policy. */
enum path_move {
    PATH_MOVE_FAILED,    /* the one that it was on has failed. */
    PATH_MOVE_PLANNED,   /* somebody wants it: the operator, or failover. */
    PATH_MOVE_CONGESTED, /* the one that it was on is congested. */
    N_PATH_MOVES,
};
WORDS_DECLARE(path_move, enum path_move);

/* A path of a node that places packets. */
struct path_info {
    struct in6_addr destination;
    enum path_policy policy;
    const struct path_config *config;  /* the node's own copy. */
    bool up;                           /* its port is. */
    enum path_state state;             /* as its probe says. */
    uint32_t n_flows;                  /* flows that are on it now. */
    uint32_t n_held;                   /* packets of them that wait to take another one. */
    uint64_t n_packets, n_bytes;       /* sent, with the header. */
    uint64_t n_moved;                  /* flows that came to it from another path, */
    uint64_t n_moved_by[N_PATH_MOVES]; /* and those of them that did for a reason. */
    uint64_t n_naks;                   /* made for hosts whose flows came to it: */
    uint64_t n_repeated;               /* answers of hosts, said again likewise. */
    uint64_t last_switch;              /* when a flow last came, microseconds; 0: never. */
    uint32_t congested;                /* how much it is, of 256. */
    uint64_t n_errors;                 /* ICMPv6 errors about packets on it. */
};

/* A probe. */
struct probe_info {
    const struct probe_config *config; /* the node's own copy. */
    struct path_health health;
    uint64_t n_sent, n_returned, n_lost;
    uint64_t n_marked;      /* with CE; PROBE_PEER: on the way there, */
    uint64_t n_marked_back; /* and answers on the way back. */
    uint64_t n_late;        /* came back after their time. */
    uint32_t rtt_usec;      /* of the last one that came back; smoothed: */
    uint32_t rtt_mean_usec;
    /* PROBE_PEER: of the last ones that were answered, lost on the way there, and back. */
    uint64_t n_lost_there, n_lost_back;
    bool heard; /* the peer's probe over the same links was heard of lately. */
};

struct node_class {
    const char *name;
    enum node_role role; /* as in its row in the registry. */
    void *(*create)(const struct node_io *, struct packet_pool *);
    void (*destroy)(void *node);

    /* Applies a whole configuration as a difference.  0, or an errno value and
     * a malloc'd sentence in *errp; then nothing has changed. */
    int (*configure)(void *node, const struct node_config *, uint64_t now, char **errp);

    /* Applies all RDMA-CM connections that the registry has, whatever generation the node runs.
     * Of each it decides itself whether it is 'ready'.  No message is taken before the first
     * call. */
    void (*configure_connections)(void *node, const struct cm_conn_config *, size_t n,
                                  uint64_t now);

    /* Consumes 'p', a frame received on 'port'. */
    void (*input)(void *node, uint16_t port, struct packet *p, uint64_t now);

    /* When timer() wants to be called; UINT64_MAX: never. */
    uint64_t (*deadline)(const void *node);
    void (*timer)(void *node, uint64_t now);

    /* Who is told what packets meet (with lib/trace.h); NULL: nobody. */
    void (*set_tracer)(void *node, const struct tracer *);

    /* Display. */
    const uint64_t *(*drops)(const void *node); /* [N_DROP_REASONS] */
    const struct l3 *(*l3)(const void *node);
    bool (*sid)(const void *node, size_t i, struct sid_info *);
    size_t (*n_trees)(const void *node);
    void (*tree)(const void *node, size_t i, struct tree_info *);
    bool (*branch)(const void *node, size_t i, uint32_t id, struct reverse_branch_info *);
    /* Queue of a port; false: it has none. */
    bool (*egress)(const void *node, uint16_t port, struct egress_stats *);
    const struct congestion_stats *(*congestion)(const void *node);
    /* Source agent: flows that were told of congestion.  NULL: this node is none. */
    size_t (*n_flows)(const void *node);
    void (*flow)(const void *node, size_t i, struct flow_info *);
    /* Paths; NULL or false: there are not so many. */
    bool (*path)(const void *node, size_t i, struct path_info *);
    /* Is a host told what was lost when its flow leaves a path that has failed, and are its answers
     * said again?  They are at first. */
    void (*make_naks)(void *node, bool);
    /* Probes, likewise. */
    bool (*probe)(const void *node, size_t i, struct probe_info *);
    /* Of another worker of the node: takes over what 'first', which probes, knows of ways.  NULL: the
     * class has no probes. */
    void (*follow_ways)(void *node, const void *first, uint64_t now);
    /* RDMA-CM connections, and another number after each change of what is said of them. */
    size_t (*n_connections)(const void *node);
    void (*connection)(const void *node, size_t i, struct cm_conn_info *);
    uint64_t (*connections_version)(const void *node);
    /* Source agent: messages_find() for tree i.  NULL: this node is none. */
    enum messages_answer (*message)(const void *node, size_t i, psn_t, uint64_t *number);
};

#endif /* lib/node.h */
