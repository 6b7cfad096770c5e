/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the headend share; nobody else includes it.
 *
 *     headend.c             configuration, a packet's way, display
 *     headend-flows.c       who sends what to whom: flows, and whose answers are whose (R20, R21)
 *     headend-switch.c      flows change their paths (R23)
 *     headend-congestion.c  which paths are congested, and what data say of a way (R23)
 */
#ifndef LIB_HEADEND_IMPL_H
#define LIB_HEADEND_IMPL_H 1

#include "lib/addr-map.h"
#include "lib/deadlines.h"
#include "lib/headend.h"
#include "lib/in-flight.h"
#include "lib/pacer.h"
#include "lib/path-health.h"

/* Flows, and own queue pairs, are in sets of some entries each, by a hash of their key. */
#define HEADEND_SETS      128
#define HEADEND_SET_SIZE  8
#define HEADEND_TABLE     (HEADEND_SETS * HEADEND_SET_SIZE)

/* A planned move waits so long for what is in flight. */
#define HEADEND_DRAIN_MAX 500000
/* What was sent so long ago is not in flight any more: paths' delays do not differ by as much. */
#define HEADEND_GAP       50000
/* Who is looked at from time to time, while hosts send. */
#define HEADEND_TICK      10000
/* How congested paths are is found out once in this time. */
#define HEADEND_INTERVAL  100000

/* How good a path is to be chosen; a lower one is better. */
enum path_class {
    CLASS_GOOD, /* or nobody knows better. */
    CLASS_SUSPECT,
    CLASS_RECOVERING,
    CLASS_BAD,
    CLASS_NONE, /* its port is down, or the operator denies it. */
};

/* How congested a path is. */
struct path_load {
    bool signalled;   /* in this interval. */
    uint8_t n_hot;    /* intervals in a row in which it was. */
    uint16_t score;   /* of 256. */
    uint64_t hot_at;  /* when it had been for long enough; 0: it is not. */
    uint64_t left_at; /* when a flow last left it for that; 0: never. */
};

/* Of a flow that may leave a congested path. */
struct flow_load {
    uint64_t hot_at;   /* that of its path, when this was decided: */
    uint64_t start_at; /* not before this time. */
    uint64_t moved_at; /* 0: never. */
    uint64_t rest;     /* no other move for so long. */
};

struct path {
    struct path_config config;
    enum path_state state; /* what its probe says. */
    uint32_t n_flows;
    uint64_t n_packets, n_bytes, n_moved, n_errors;
    uint64_t n_moved_by[N_PATH_MOVES];
    uint64_t n_naks, n_repeated; /* made for flows that came to it. */
    uint64_t last_switch;
    struct path_load load;
};

struct destination {
    struct in6_addr address;
    uint64_t hash; /* of the address. */
    enum path_policy policy;
    uint16_t pinned;
    size_t n_pins;
    struct path_pin *pins; /* by dest_qp. */
    size_t n_paths;
    struct path *paths;   /* by rank. */
    size_t turn;          /* of 'paths', the first one to be asked when it goes in turn. */
    uint64_t doubt_until; /* before this time no answer is ascribed to a flow. */
    uint64_t used;        /* when its last packet came. */
    struct flow *flows;
};

/* Last ACK or NAK that the host has given to a queue pair of the peer. */
struct last_answer {
    bool any;
    bool
        in_read; /* the last packet was neither the only one nor the last one of a READ's answer. */
    uint8_t syndrome;
    uint16_t sport;
    psn_t psn;
    uint32_t msn;
    uint64_t at;
};

/* What a host sends to one queue pair of a destination: its requests, or all else. */
struct flow {
    struct destination *to; /* NULL: the entry is free. */
    uint32_t dest_qp;
    bool requests; /* of a Reliable Connection. */
    bool asked;    /* the request with the highest PSN wants an answer. */
    bool holds;    /* it leaves its path: requests from 'hold_from' on wait in 'held'. */
    bool back;     /* requests came again since something was confirmed, as own_qp.back. */
    bool owes_nak; /* when the READ's answer is over that the host is in the midst of. */
    uint8_t label; /* its part of the flow label. */
    enum path_move why;
    psn_t hold_from;
    struct in6_addr host;
    uint64_t used;
    uint64_t gap;               /* before that nothing came for so long. */
    struct flow *next;          /* to the same destination. */
    struct path *path;          /* NULL: none was chosen. */
    struct path *going_to;      /* NULL: it stays where it is. */
    struct in_flight in_flight; /* of requests. */
    struct own_qp *own; /* the queue pair that sends the requests, if that is known (R21). */
    struct last_answer answered; /* of a flow that is no requests. */
    uint64_t progress_at;        /* when something was confirmed, or nothing was in flight. */
    uint64_t told_at;            /* when its host was last told what is missing, */
    unsigned n_told;             /* and how often since 'progress_at'. */
    uint16_t failed;             /* probe of the path that it left last since that had failed. */
    bool switched;               /* by a failure, and then */
    psn_t switch_h;              /* one NAK below this is no surprise. */
    struct flow_load load;
    struct pacer_flow held;
    struct deadline deadline; /* to have left 'path', or to make the NAK that it owes. */
};

/* A queue pair of a host of ours, as answers to it name it: with its peer, by its own number. */
struct own_qp {
    struct destination *peer; /* NULL: the entry is free. */
    uint32_t qpn;
    bool in_read; /* the last answer was neither the only packet nor the last one of a READ's. */
    bool back;    /* it has heard a sequence NAK since something was confirmed. */
    psn_t psn;    /* of the last answer, */
    psn_t una;    /* and up to where that confirms. */
    uint32_t msn;
    struct in6_addr host;
    struct flow *flow; /* whose requests the answers are to (R21); NULL: that is not known. */
    uint64_t used;
    uint64_t try_at; /* no search for 'flow' before this time. */
    uint64_t nak_at; /* when a NAK was last made for it. */
};

struct headend {
    struct node_base *base;
    const struct headend_ways *ways;
    size_t n;
    struct destination *destinations;
    struct addr_map *by_address; /* with 0. */
    bool tracks;                 /* what is in flight to some destination. */
    bool silent;                 /* a path that fails is followed by no NAK and no answer. */
    uint16_t n_ports;            /* of paths. */
    uint16_t *ports;
    bool *ports_up; /* as they were when last looked at. */
    uint64_t random;
    uint64_t tick_at;
    uint64_t load_at;    /* when congestion is looked at next. */
    uint64_t busy_until; /* hosts have sent lately. */
    struct pacer pacer;  /* of flows that wait. */
    struct deadlines deadlines;
    struct own_qp own_qps[HEADEND_TABLE];
    struct flow flows[HEADEND_TABLE];
};

/* What a packet says. */
struct seen {
    bool requests; /* of a Reliable Connection. */
    uint8_t opcode;
    psn_t psn;
    uint32_t dest_qp;      /* 0: it is no RoCE. */
    const struct bth *bth; /* NULL: it is no RoCE. */
    size_t len;            /* from the BTH on. */
};

/* Is it known what is in flight to the destination? */
static inline bool
headend_tracks(const struct destination *d)
{
    return d->n_paths
           && (d->policy == PATH_FAILOVER || d->policy == PATH_SPREAD || d->policy == PATH_MESSAGE);
}

/* headend.c. */
struct destination *headend_find(const struct headend *, const struct in6_addr *address);
enum path_class headend_class(const struct headend *, const struct path *);
/* Has the path carried something since the way of probe 'failed' began to lose all? */
bool headend_outlives(const struct headend *, const struct path *, uint16_t failed);
/* A path by the destination's policy, of the best class.  In place of 'failed', if that is not NULL:
 * first one that outlives it, with spread then one of the same plane.  There are paths. */
struct path *
headend_choose(const struct headend *, struct destination *, const struct path *failed);
/* Number of the path that the operator has chosen for the queue pair; 0: none. */
uint16_t headend_pin_of(const struct destination *, uint32_t dest_qp);
/* Puts the path's header in front of 'p', and sends it.  Consumes it. */
enum drop_reason
headend_send_on(struct headend *, struct packet *p, struct path *, uint8_t label, uint64_t now);

/* headend-flows.c. */
/* Looks into the packet ip[0, len), which nobody has validated behind its IPv6 header. */
struct seen headend_look(const uint8_t *ip, size_t len);
/* Of the flow of such a packet. */
uint64_t headend_hash(const struct destination *, const struct seen *);
/* The packet's flow, which is noted if it is new. */
struct flow *headend_flow(struct headend *, struct destination *, const struct in6_addr *host,
                          const struct seen *, uint64_t now);
/* The flow is on this path from now on. */
void headend_flow_take(struct flow *, struct path *);
/* A packet of the flow leaves. */
void headend_flow_sent(struct headend *, struct flow *, const struct seen *, uint64_t now);
/* Does the packet begin a message when nothing of the flow is in flight? */
bool headend_flow_pauses(const struct flow *, const struct seen *);
/* Whose requests the answers to the queue pair are to is not known any more. */
void headend_unbind(struct own_qp *);

/* headend-switch.c. */
/* The flow's packet is about to leave.  False: it waits, and was consumed. */
bool headend_may_leave(struct headend *, struct flow *, const struct seen *, struct packet *p,
                       uint64_t now);
/* The flow's path is not usable any more, and 'to' is. */
void headend_fail(struct headend *, struct flow *, struct path *to, uint64_t now);
/* The flow is to be on 'to' when nothing of it is in flight on its path. */
void headend_plan(struct headend *, struct flow *, struct path *to, enum path_move, uint64_t now);
/* It goes there now, or stays: what waits leaves. */
void headend_finish(struct headend *, struct flow *, uint64_t now);
void headend_stay(struct headend *, struct flow *, uint64_t now);
/* Has the host send again what is not confirmed. */
void headend_ask_again(struct headend *, struct flow *, uint64_t now);
/* Something about the paths to the destination has changed. */
void headend_review(struct headend *, struct destination *, uint64_t now);
/* An answer to a queue pair has been noted, which may confirm what 'f' has sent. */
void headend_progress(struct headend *, struct flow *, const struct own_qp *, uint64_t now);

/* headend-congestion.c. */
/* Data give reason to doubt the path, or NULL; lost: some of them were. */
void headend_doubt(struct headend *, const struct path *, bool lost, uint64_t now);
/* A packet of the flow has met congestion at this node; ::: nobody says where. */
void headend_signal(struct headend *, struct flow *, const struct in6_addr *node, uint64_t now);
/* Once in each interval. */
void headend_look_at_load(struct headend *, uint64_t now);

#endif /* lib/headend-impl.h */
