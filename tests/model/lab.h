/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole group in virtual time: a source and receivers as rxe has them
 * (rc-endpoint.h), real source agents and switches (lib/node.h) that are
 * configured by the real planner (ctl/plan/plan.h), and links (fabric.h).
 *
 *   lab.c           life cycle, the run
 *   lab-topology.c  a topology, from one line of text
 *   lab-node.c      nodes: configuration, start and end, frames in and out
 *   lab-traffic.c   endpoints and what they send each other
 *   lab-action.c    what happens in mid-stream
 *   lab-join.c      receivers that join in mid-stream
 *   lab-loss.c      members that are lost, and who says so
 *   lab-event.c     what happened how often
 *   lab-oracle.c    an aggregator that knows all, to compare with
 *   lab-check.c     what must hold
 *   lab-congestion.c  links with a rate, and what must hold of congestion
 *   lab-planes.c    planes of the group that go dead
 *   lab-data.c      authenticated data, and who attacks it
 *   lab-flow.c      queue pairs that compete with the group's
 *
 * Everything follows from topology, seed and what the test asks for.  At every
 * event it must hold that
 * - a request that completes with success is in the memory of every counted
 *   receiver, byte for byte;
 * - no response, towards the source or from a node to its parent, speaks of a
 *   PSN that a receiver counted there has not confirmed;
 * - a node makes no more packets of one than its job allows;
 * - a node calls only those lost that refused or heard nothing for long enough, and prunes only if
 *   that is the policy, never all;
 * - it calls only those slow that are, and those that do nothing but ask for time soon enough;
 * - it says only so many RNR NAKs for each copy;
 * - with authenticated data, an edge copies nothing twice and nothing that was made or altered on the way;
 * and at the end of a run that everything was completed (or failed, where a
 * receiver did, or was lost, or with policy prune all were) within a bound of virtual
 * time, that nodes dropped nothing but for reasons that the run's faults explain, and
 * that all packet buffers are back.
 */
#ifndef TESTS_MODEL_LAB_H
#define TESTS_MODEL_LAB_H 1

#include "ctl/plan/plan.h"
#include "lib/node.h"
#include "lib/parse.h"
#include "tests/model/fabric.h"
#include "tests/model/lab-event.h"
#include "tests/model/lab-set.h"
#include "tests/model/lab-congestion.h"
#include "tests/model/rc-endpoint.h"
#include "tests/model/sent-frames.h"

/* Of the source, unless a test says otherwise. */
#define LAB_MTU            256
#define LAB_TIMEOUT_USEC   20000
#define LAB_TIMEOUT        12 /* the same as nodes are told: 4.096 us * 2^12, the nearest below. */
#define LAB_MAX_NODES      100
#define LAB_MAX_MESSAGES   4096
#define LAB_MAX_ACTIONS    8
#define LAB_HOP_LIMIT      64 /* of what endpoints and nodes send. */
/* A receiver that takes nothing is called slow within this time: a liveness time of a node that is
 * high up, and some ticks. */
#define LAB_MAX_HEIGHT     9
#define LAB_SLOW_SEEN(LAB) ((LAB)->liveness_msec * UINT64_C(1000) * LAB_MAX_HEIGHT * 35 / 32)

struct lab;

/* What a registry has of a node's life in an epoch, and that life (lab-data.c). */
struct lab_data_row {
    uint64_t own; /* 0: it has drawn nothing in this life. */
    uint64_t answered;
    uint32_t floor; /* what that was answered with. */
    uint32_t instance;
};

#define LAB_N_KEPT 8 /* frames that somebody keeps beside each edge. */
struct lab_frame {
    uint16_t port; /* that it came to. */
    size_t len;
    uint8_t bytes[1024];
};

struct lab_node {
    struct lab *lab;
    const struct plan_node *plan;
    const struct node_class *class;
    void *node;              /* NULL: it is down. */
    struct node_config base; /* without trees. */
    unsigned depth;          /* links that packets of the group take to it from the source agent. */
    bool in_front;           /* packets cross it on their path to the root. */
    unsigned height;         /* in the aggregation tree; runs with losses only, like 'behind': */
    struct lab_set behind;   /* receivers that it spoke for at first. */
    struct lab_set pruned;   /* receivers, by itself in this life. */
    bool killed;
    bool starts; /* it is given its first configuration in another life than its first. */
    bool lived;  /* it has had one. */
    /* What it is to have: epochs, and receivers that are not in its tree any more. */
    unsigned first_epoch, last_epoch;
    struct lab_set removed;
    /* What it has. */
    struct tree_config trees[LAB_N_EPOCHS];
    size_t n_trees;
    bool started[LAB_N_EPOCHS]; /* as it has reported to the registry, in all of its lives. */
    struct lab_set counted[LAB_N_EPOCHS]; /* receivers that its responses speak for. */
    unsigned n_outputs; /* most packets that it may make of one, or forward for one. */
    /* What it has said in this life: nothing below is said again.  What it said before it left the
     * tree may leave it some time later. */
    struct {
        bool known;
        psn_t una;
        uint64_t from;
    } said[LAB_N_EPOCHS];
    /* RNR NAKs that it has said of a PSN since a copy of that one left it. */
    psn_t rnr_psn;
    unsigned n_rnrs;
    struct sent_frames sent; /* until the event is over. */
    struct lab_data_row data[LAB_N_EPOCHS];
    struct lab_frame kept[LAB_N_KEPT];     /* data, */
    struct lab_frame kept_ups[LAB_N_KEPT]; /* and responses of nodes. */
    uint64_t drops_before;                 /* the frame that is dealt with. */
    uint64_t auth_drops;                   /* as far as they have been looked at. */
    struct lab_cnps cnps;
    bool rated;                               /* it has a queue. */
    enum path_state ways[PLANES_MAX];         /* what it knows of planes, */
    uint64_t n_planes_failed, n_planes_moved; /* and how often it has left one in this life. */
    struct lab_seen seen;                     /* lab-event.c. */
    size_t n_lost;                            /* branches, when lab-loss.c looked, */
    uint64_t n_paced;                         /* likewise; */
    uint64_t lost_generation;                 /* and with which configuration. */
    uint64_t deadline;                        /* of 'node'. */
    /* Packets that left it, neighbour discovery excluded, and those of them that are requests. */
    uint64_t n_out, n_requests_out;
    uint64_t drops[N_DROP_REASONS]; /* of earlier lives. */
};

struct lab_receiver {
    struct lab *lab;
    struct rc_endpoint *endpoint;
    uint8_t *memory;
    unsigned n_buffers;              /* messages looked at for receive buffers. */
    psn_t confirmed[LAB_N_EPOCHS];   /* in epochs that are over. */
    bool keeps;                      /* its queue pair outlives epochs. */
    bool asked;                      /* where that stands is not known in this epoch. */
    unsigned made_in[LAB_N_EPOCHS];  /* epoch from which its queue pair in each epoch is... */
    int32_t shift[LAB_N_EPOCHS];     /* ...and how much its PSNs are ahead of the epoch's. */
    uint64_t n_requests;             /* packets that reached it in all epochs. */
    uint64_t deaf_since, deaf_until; /* hears nothing and says nothing; 0: never. */
    uint64_t slow_since;             /* it takes its time; 0: it never did. */
    bool slow_seen;                  /* a node has said that it is slow. */
    /* It is not there at first.  It is in no tree; its edge may admit it; it counts. */
    bool is_late, absent, named, joined;
    bool again;  /* it waited behind a node that was started again, and is to come once more. */
    psn_t psn;   /* what it expects at first. */
    psn_t first; /* the same for the source, if it counts. */
    /* What it said at first, which the network says once more later. */
    uint8_t repeat[RC_MAX_PACKET];
    size_t repeat_len;
};

/* A plan and what it was made for. */
struct lab_plan {
    bool valid;
    struct lab_set removed;
    struct plan plan;
};

struct lab_message {
    enum rc_op op;
    uint32_t ofs, len;
    psn_t last_psn;
};

struct lab_plane {
    char name[NAME_SIZE];
    bool links[FABRIC_MAX_LINKS]; /* those of its tree. */
};

/* When receivers have a buffer for what needs one. */
enum lab_buffers { LAB_BUFFERS_READY, LAB_BUFFERS_LATE, LAB_BUFFERS_MIXED };

enum lab_action_kind {
    LAB_RECONFIGURE, /* with the same again. */
    LAB_REMOVE,      /* a receiver. */
    LAB_RESTART,     /* a node, which loses its state. */
    LAB_NEW_EPOCH,
    LAB_FATAL,       /* a receiver fails. */
    LAB_CALM,        /* the links get perfect. */
    LAB_DEAFEN,      /* a receiver, for good, for a while or for long. */
    LAB_KILL,        /* a node, for good. */
    LAB_SLOW,        /* a receiver, for some time. */
    LAB_JOIN,        /* a receiver. */
    LAB_CHANGE_RATE, /* of a link that has one. */
    LAB_PLANE,       /* goes dead, and comes back. */
    LAB_PREFER,      /* a plane. */
};

/* What has interfered, and explains drops. */
enum {
    LAB_FAULT_SPOIL = 1 << 0,
    LAB_FAULT_FORGED = 1 << 1,
    LAB_FAULT_RESTART = 1 << 2,
    LAB_FAULT_REMOVE = 1 << 3,
    LAB_FAULT_EPOCH = 1 << 4,
    LAB_FAULT_LOSS = 1 << 5,
    LAB_FAULT_MODE =
        1 << 6, /* not replicate: bursts to cold neighbours, ICMPv6 errors from afar. */
    LAB_FAULT_JOIN = 1 << 7,
    LAB_FAULT_KEPT = 1 << 8, /* queue pairs outlive epochs. */
    LAB_FAULT_CONGESTION = 1 << 9,
    LAB_FAULT_STORM = 1 << 10, /* somebody makes CNPs without reason. */
    LAB_FAULT_PLANE = 1 << 11, /* a group was to take another plane. */
    LAB_FAULT_DATA = 1 << 12,  /* edges are attacked, and wait for answers. */
};

struct lab_action {
    enum lab_action_kind kind;
    unsigned node;  /* LAB_RESTART. */
    uint64_t after; /* as many packets were sent in this epoch. */
};

/* What the oracle has said. */
struct lab_oracle {
    psn_t f;            /* everything below was acknowledged. */
    bool told;          /* NAK(f) was sent. */
    uint64_t served_at; /* PSN f went down after that; 0: it did not. */
    uint64_t dup_not_before;
};

struct lab {
    bool trace;
    void (*fail)(const struct lab *, const char *condition,
                 const char *text); /* does not return. */
    struct fabric fabric;
    struct packet_pool *pool; /* of all nodes. */
    unsigned pool_size;

    /* The topology: stations are nodes, then the source, then receivers. */
    struct plan_topology topology;
    struct lab_node nodes[LAB_MAX_NODES];
    unsigned n_nodes;
    struct lab_receiver receivers[LAB_MAX_RECEIVERS];
    unsigned n;
    unsigned agent;     /* the source's, of 'nodes'. */
    unsigned max_depth; /* of nodes. */
    struct lab_plan whole[LAB_N_EPOCHS], reduced[LAB_N_EPOCHS];

    /* To be chosen between lab_create() and lab_run(). */
    enum tree_mode mode;
    bool provisioned;         /* packets name no receivers. */
    char via[PATH_NAME_SIZE]; /* as of a group; by lab_set_via(). */
    unsigned n_planes;        /* of the group, by lab_set_planes(). */
    struct lab_plane planes[2];
    unsigned preferred_plane; /* 1 + its number; 0: none. */
    unsigned int auth;        /* TLVs that authenticate packets; 0: none. */
    psn_t start_psn;
    uint32_t mtu;
    uint64_t event_limit;        /* more are allowed to a source that gets further meanwhile. */
    uint64_t time_limit;         /* virtual. */
    void (*probe)(struct lab *); /* after each event; NULL: nobody looks. */
    uint32_t timeout_usec;       /* of the source, */
    uint8_t timeout;             /* and as nodes are told. */
    struct lab_congestion congestion;
    int32_t epoch_step; /* from one epoch's start PSN to the next one's. */
    uint64_t gap;       /* between two packets of the source. */
    uint32_t max_pause; /* before it posts a message; in runs of one epoch. */
    unsigned depth;     /* messages posted at a time. */
    bool warm_up;       /* the first message is alone. */
    enum lab_buffers buffers;
    bool forged;            /* receivers speak of what nobody sent, too. */
    bool exact;             /* nothing interferes: packets are counted one by one. */
    bool oracle;            /* the only switch merges as lab-oracle.c does. */
    unsigned max_removed;   /* receivers. */
    uint32_t max_downtime;  /* of a node that is started again. */
    uint32_t liveness_msec; /* of a node with receivers only; 0: nobody is ever lost. */
    uint32_t min_rate;      /* of branches, in PSNs a second; 0: nobody is ever slow. */
    bool lose_slow;
    enum reverse_nak nak; /* policies of the group, like the next. */
    bool filter;
    bool prune;
    bool castd;            /* takes members out that were pruned. */
    bool rests;            /* the source, for some liveness times, while receivers die... */
    unsigned rests_before; /* ...before it posts this message. */
    uint32_t max_stall;    /* before a receiver posts its first late buffer. */
    uint8_t min_rnr_timer;
    struct lab_message messages[LAB_MAX_MESSAGES];
    unsigned n_messages;
    uint32_t n_packets; /* of all of them. */
    bool writes_only;   /* messages are. */
    bool short_messages;
    struct lab_action actions[LAB_MAX_ACTIONS];
    unsigned n_actions;

    /* The run. */
    unsigned epoch; /* of the endpoints. */
    struct rc_endpoint *source;
    uint8_t *data;
    uint32_t region_len;
    unsigned n_posted, n_done;
    bool pauses;            /* the source, before it posts a message. */
    uint64_t n_sent;        /* request packets of the source in all epochs, */
    uint64_t n_asked;       /* and those of them with AckReq. */
    uint64_t n_responses;   /* that reached the source in all epochs. */
    struct lab_set silent;  /* receivers that hear nothing. */
    enum rc_status failure; /* of the source; RC_WC_SUCCESS: none. */
    uint8_t fatal;          /* syndrome that a receiver was told to answer; 0: none. */
    unsigned faults;        /* LAB_FAULT_..., so far. */
    struct lab_set members, lost, pruned; /* receivers, by what nodes said of them. */
    uint64_t node_down_since;             /* the first one; 0: never. */
    bool restarts;                        /* a node was started again. */
    psn_t una_at_limit;         /* the source's, when the events were as many as allowed, */
    unsigned n_periods;         /* and how often they were. */
    uint64_t calm_since;        /* 0: the links are not calm. */
    bool wrapped[LAB_N_EPOCHS]; /* PSN 0 was sent. */
    bool plane_is_dead;         /* or recovering. */
    uint32_t plane_loss[FABRIC_MAX_LINKS][2]; /* of its links, before. */
    bool rolling;                             /* nodes are being told of a new epoch. */
    bool calm_in_flight;                      /* something was in flight then. */
    uint64_t last_restart;                    /* of a node; 0: never. */
    bool awaits_node;                         /* one is to join before receivers behind it. */
    bool leaving;        /* those who are to come once more, are on the way out. */
    uint64_t over_since; /* all is done, or the source failed or is stuck. */
    bool asks_no_more;   /* nodes are told of no liveness time any more. */
    unsigned next_action;
    uint64_t n_seen[N_LAB_EVENTS]; /* lab-event.c. */
    struct lab_oracle of_switch;
    struct lab_congestion_state net;
    struct lab_attacks {
        uint64_t random;
        bool under_way; /* what is dropped is nobody's loss. */
    } attacks;
    bool data_started;
    uint64_t n_lives; /* of nodes in epochs. */
    uint32_t instance;
    struct lab_nonces {
        struct lab_nonce *v;
        size_t n, size;
    } nonces;
    uint64_t n_stalls[N_LAB_STALLS];
};

/* (libcheck writes to a file for every ck_assert(), even one that holds.) */
#define LAB_REQUIRE(LAB, COND, ...)            \
    do {                                       \
        if (!(COND)) {                         \
            lab_fail(LAB, #COND, __VA_ARGS__); \
        }                                      \
    } while (0)
_Noreturn void lab_fail(const struct lab *, const char *condition, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* lab.c. */

/* The topology is a list of links, "a1-n1 n1-r1 n1-n2 ...", the upper end first.
 * A name's first letter says what it is, the number behind it is unique among nodes and
 * among receivers, in both cases from 1 on:
 *
 *   s  the source       a  a source agent, which may have receivers       n  a switch
 *   r  a receiver       t  a switch that replicates but does not aggregate
 *   h  a host that is not in the group
 */
struct lab *lab_create(const char *topology, uint64_t seed, bool trace,
                       void (*fail)(const struct lab *, const char *condition, const char *text));
/* Runs until everything is completed, the source failed, or is stuck as only an
 * endpoint can be; then until all is quiet. */
void lab_run(struct lab *);
void lab_destroy(struct lab *);
/* Chooses messages; 'buffers': of all kinds, not WRITEs only by chance. */
void lab_choose_messages(struct lab *, uint32_t max_packets, bool buffers);
void lab_add_action(struct lab *, enum lab_action_kind, unsigned node, uint64_t after);

static inline uint32_t
lab_random(struct lab *lab, uint32_t limit)
{
    return fabric_random(&lab->fabric, limit);
}

/* lab-topology.c. */
void lab_topology_init(struct lab *, const char *text);
unsigned lab_agent(const struct lab *); /* index of the source's agent. */
/* The group takes this path to its root, which is its last node. */
void lab_set_via(struct lab *, const char *via);
unsigned lab_source_station(const struct lab *);
unsigned lab_station_of(const struct lab *, const char *name);
struct in6_addr lab_station_address(const struct lab *, unsigned station); /* a host's. */
/* Name of a station; a host's is valid until the next call. */
const char *lab_station_name(const struct lab *, unsigned station);
struct in6_addr lab_receiver_address(unsigned i);
unsigned lab_receiver_number(const struct in6_addr *); /* 1 + i; 0: it is not a receiver's. */
extern const struct in6_addr lab_source_address, lab_proxy;

/* lab-node.c. */
void lab_node_init(struct lab *, unsigned i);
/* Before anything else is chosen: by which policy the host's packets are placed on paths. */
void lab_set_path_policy(struct lab *, const char *host, enum path_policy);
void lab_node_start(struct lab *, unsigned i);
void lab_node_stop(struct lab *, unsigned i);
/* Gives a node what it is to have. */
void lab_node_configure(struct lab *, unsigned i);
/* The members of this epoch are planned for anew when nodes are configured next. */
void lab_replan(struct lab *, unsigned epoch);
/* The node that this receiver of the current epoch is at. */
const struct lab_node *lab_edge_of(struct lab *, unsigned receiver);
/* Of the packets that the source's agent makes of one, those for other nodes that cross this one: to
 * the root of a group with a path, or in mode ingress to edges. */
unsigned lab_node_n_crossing(const struct lab_node *);
uint64_t lab_node_drops(const struct lab_node *, enum drop_reason); /* in all its lives. */
/* Whom nodes speak for may have changed. */
void lab_recount(struct lab *);
void lab_node_timer(struct lab *, struct lab_node *);
void lab_deliver(void *lab, struct fabric_end, const uint8_t *frame, size_t len);
void lab_host_send(struct lab *, unsigned station, const uint8_t *ip, size_t len);
/* Is all done that was to be done, or can the source not go on? */
bool lab_is_over(const struct lab *);
void
lab_trace_frame(const struct lab *, unsigned station, const struct parsed *, const uint8_t *frame);

/* lab-traffic.c. */
uint32_t lab_designated_qpn(unsigned epoch);
uint32_t lab_source_qpn(unsigned epoch);
uint32_t lab_receiver_qpn(unsigned epoch, unsigned i);
/* The planner's view of an epoch from which 'removed' are gone; free 'members'. */
struct plan_group lab_plan_group(const struct lab *, unsigned epoch, const struct lab_set *removed);
/* What it expects next, in its own numbers and, as the next one, in those of the epoch. */
psn_t lab_expected_by(const struct lab *, unsigned epoch, unsigned receiver);
psn_t lab_confirmed_by(const struct lab *, unsigned epoch, unsigned receiver);
void lab_post_work(struct lab *);
void lab_endpoints_start(struct lab *);
/* Not 'for_good': those that keep their queue pairs are left alone. */
void lab_endpoints_stop(struct lab *, bool for_good);
/* A receiver comes back with a new queue pair, in the current epoch. */
void lab_receiver_restart(struct lab *, unsigned receiver);
psn_t lab_epoch_start(const struct lab *, unsigned epoch);

/* An event that did not come by a frame or timer is over. */
void lab_node_event(struct lab *, struct lab_node *);
/* Says in the plans that are there which plane is preferred. */
void lab_prefer_in_plan(struct lab *, unsigned epoch);

/* lab-planes.c. */
/* The group gets planes A and B; 'labels' of nodes are "A:n5 B:n6".  False: there are not two; then it
 * has none. */
bool lab_set_planes(struct lab *, const char *labels);
/* Member of struct node_io. */
enum path_state lab_way_state(void *node, uint16_t probe);
void lab_planes_configure(const struct lab *, struct tree_config *);
/* After an event at this node. */
void lab_planes_look(struct lab *, struct lab_node *);
/* Links of one plane only carry nothing any more; nodes hear of that within 'learn_usec'.  If one is
 * dead already the other one stays. */
void lab_kill_plane(struct lab *, unsigned plane, uint32_t learn_usec, bool for_good);
void lab_act_plane(struct lab *);
void lab_act_prefer(struct lab *);

/* lab-data.c: a group whose data is authenticated. */
void lab_data_init(struct lab *);
/* Nodes have been started for the first time. */
void lab_data_start(struct lab *);
void lab_data_new_life(struct lab_node *);
/* Gives the node's tree what counts of the instances in its row.  Asks if that is the first time. */
void lab_data_set(struct lab_node *, struct tree_config *);
/* After an event at this node. */
void lab_data_look(struct lab_node *);
/* Before and after a frame comes to the node; the latter only if the former says so. */
bool lab_data_before(struct lab_node *, struct fabric_end, const uint8_t *frame, size_t len,
                     const struct parsed *);
void lab_data_after(struct lab_node *, struct fabric_end, const uint8_t *frame, size_t len);
void
lab_data_sent(struct lab *, const struct lab_node *, const uint8_t *frame, const struct parsed *);
void lab_data_check_end(struct lab *);

/* lab-action.c. */
void lab_act_if_due(struct lab *);
/* The source rests: all is confirmed, and receivers go deaf. */
void lab_rest(struct lab *);

/* lab-join.c. */
/* Receiver i joins, if the tree can grow by it. */
void lab_join(struct lab *, unsigned i);
/* What nodes have said so far of branches that join has reached castd. */
void lab_take_joins(struct lab *);
/* Has a receiver been admitted since? */
void lab_note_joins(struct lab *);
/* How far its numbers are above the epoch's. */
int32_t lab_shift(const struct lab_receiver *, unsigned epoch);

/* lab-loss.c. */
void lab_loss_start(struct lab *);
void lab_loss_configure(struct lab *, struct lab_node *);
/* What does this node say of its branches? */
void lab_note_losses(struct lab *, struct lab_node *);
void lab_castd(void *lab, unsigned unused, unsigned unused2);
void lab_loss_check_end(struct lab *);
/* A receiver that was slow gets fast again: somebody must have said what it was. */
void lab_slow_check_end(const struct lab *, const struct lab_receiver *);

/* lab-oracle.c. */
/* PSN q goes down. */
void lab_oracle_down(struct lab *, psn_t q);
/* A receiver has answered. */
void lab_oracle_look(struct lab *, uint8_t syndrome, psn_t psn);

/* lab-check.c. */
/* Does this node speak to the source itself? */
bool lab_is_root(const struct lab_node *, unsigned epoch);
/* Does a packet of its own come by here once more, on the path back from a root that does not merge?
 * The node is in front of that, and below it. */
static inline bool
lab_comes_again(const struct lab_node *n, const struct ip6_hdr_wire *own)
{
    return n->in_front && own->hlim != LAB_HOP_LIMIT;
}
/* The receivers for which the source waits. */
struct lab_set lab_counted(const struct lab *, unsigned epoch);
void lab_check_sent(struct lab *, struct lab_node *, const uint8_t *frame, const struct parsed *);
void
lab_check_delivered(struct lab *, unsigned station, const uint8_t *frame, const struct parsed *);
/* Is this message for the receiver?  It is not if it began before the receiver joined. */
bool lab_has_to_have(const struct lab_receiver *, const struct lab_message *);
/* After a frame that came to an endpoint. */
void lab_check_accepted(struct lab *, unsigned station, const struct rc_endpoint *);
void lab_check_completed(struct lab *, unsigned message);
void lab_check_end(struct lab *);

#endif /* tests/model/lab.h */
