/* SPDX-License-Identifier: Apache-2.0
 *
 * Congestion in a lab: links with a rate, flows that compete with the group, and what nodes and
 * NICs do about it.
 *
 * Queues of nodes are their own (lib/node-egress.h); a host whose link has a rate has the same queue
 * in front of it.  Nothing here happens unless a test asks for it.
 */
#ifndef TESTS_MODEL_LAB_CONGESTION_H
#define TESTS_MODEL_LAB_CONGESTION_H 1

#include "lib/egress.h"
#include "lib/node.h"
#include "tests/model/lab-event.h"
#include "tests/model/lab-set.h"
#include "tests/model/rc-endpoint.h"

#define LAB_MAX_HOSTS      16 /* that are neither the source nor receivers. */
#define LAB_MAX_FLOWS      8
#define LAB_MAX_NICS       16
#define LAB_MAX_SEEN_FLOWS 16
#define LAB_NIC_QUEUE      1000 /* most frames that wait at a host. */
/* Queue pairs of flows have this number and higher ones, those of the group lower ones. */
#define LAB_FLOW_QPN       0x80000

struct lab;
struct lab_node;
struct parsed;

/* A queue pair from host to host, and one WRITE after the other into the same memory. */
struct lab_flow {
    struct lab *lab;
    unsigned from, to; /* stations. */
    uint64_t gap;      /* between two packets. */
    uint32_t message_len;
    unsigned n_messages; /* 0: none, until somebody says more. */
    unsigned window;     /* messages posted at a time. */
    uint64_t begins;     /* from the start of the run. */
    bool in_order;       /* nothing of it gets lost, so nothing may come early. */
    bool ecn;
    bool obeys; /* its receiver's NIC makes CNPs, and its sender's obeys them. */
    struct rc_endpoint *sender, *receiver;
    uint8_t *data, *memory;
    unsigned n_posted, n_done;
};

/* The queue of a host whose link has a rate. */
struct lab_nic {
    unsigned station;
    struct egress *queue;
};

/* A flow as its agent shows it. */
struct lab_seen_flow {
    const struct lab_node *node; /* NULL: free. */
    struct in6_addr dst;
    uint32_t dest_qp;
    uint64_t n_cuts, last_cut, n_delayed, n_replaced;
};

/* What nodes and NICs are told; all zero: nothing. */
struct lab_congestion {
    bool on;
    uint64_t line;  /* what agents take for the rate of their uplinks; 0: the default. */
    uint64_t floor; /* of flows. */
    enum rate_controller controller;
    enum rate_control_by rate_control;
    uint32_t interval_usec; /* N. */
    bool fast_cnp;
    uint32_t fast_cnp_rate; /* most of a node in a second. */
    enum cnp_source cnp;
    uint32_t window_usec; /* T. */
    uint64_t queue_rate;  /* of queues in traces. */
    uint8_t trace_slots;
    bool ecn;                /* the source's packets say so. */
    struct lab_set nic_cnps; /* receivers whose NICs make CNPs. */
    /* Station from which CNPs come without reason, as often as this; 0: never.  A receiver's are
     * for the group, another host's are forged. */
    unsigned storm_station;
    uint32_t storm_usec;
    unsigned storm_most; /* so many in all. */
};

struct lab_congestion_state {
    struct lab_nic nics[LAB_MAX_NICS];
    unsigned n_nics;
    struct lab_flow flows[LAB_MAX_FLOWS];
    unsigned n_flows;
    struct lab_seen_flow seen[LAB_MAX_SEEN_FLOWS];
    bool rated;       /* some link has a rate. */
    uint64_t n_storm; /* CNPs without reason. */
    uint64_t n_cuts;  /* of all flows. */
};

/* What a node has to do with CNPs, for checks. */
struct lab_cnps {
    uint64_t n_in, n_ce; /* that came; frames that came or left with CE. */
    uint64_t n_up;       /* that it made. */
    uint64_t last_up[LAB_N_EPOCHS];
    uint64_t n_lost; /* frames that its queues dropped, those for neighbours included. */
    /* Agent: behind the highest PSN that it sent. */
    psn_t left[LAB_N_EPOCHS];
    bool any_left[LAB_N_EPOCHS];
};

/* lab-congestion.c. */

/* The link from station 'from' to station 'to', by name; *side is the sender's end. */
unsigned lab_find_link(const struct lab *, const char *from, const char *to, unsigned *side);
/* Gives a link's sender a queue, or another one.  'params': as of a port. */
void lab_set_rate(struct lab *, unsigned link, unsigned side, const struct impair_params *);
/* One that makes packets wait. */
uint64_t lab_slow_rate(struct lab *);
/* A link that has a rate gets another one. */
void lab_change_rate(struct lab *);
/* Of the queue at this end; false: it has none. */
bool lab_queue_stats(const struct lab *, unsigned link, unsigned side, struct egress_stats *);
/* Before the nodes start: applies lab->congestion to their configurations. */
void lab_congestion_init(struct lab *);
void lab_congestion_start(struct lab *);
void lab_congestion_destroy(struct lab *);
/* A frame of a host is on its way out.  False: the host has no queue, so it is to be sent. */
bool lab_nic_takes(struct lab *, unsigned station, const uint8_t *frame, size_t len);
uint64_t lab_congestion_deadline(const struct lab *);
/* Something of that is due: does one thing.  False: nothing was. */
bool lab_congestion_timer(struct lab *);
/* A frame left a node.  True: it is none of the group's data and responses. */
bool
lab_congestion_sent(struct lab *, struct lab_node *, const uint8_t *frame, const struct parsed *);
/* A frame comes to a node. */
void lab_congestion_came(struct lab_node *, const uint8_t *frame, const struct parsed *);
/* A frame comes to a host. */
void lab_congestion_delivered(struct lab *, unsigned station, const uint8_t *frame,
                              const struct parsed *);
/* An event at a node is over. */
void lab_congestion_look(struct lab *, struct lab_node *);
/* The group as the source's agent shows it; false: it was not told of congestion. */
bool lab_group_flow(const struct lab *, struct flow_info *);

/* lab-flow.c. */
/* Adds a flow between two hosts, by name. */
struct lab_flow *lab_flow_add(struct lab *, const char *from, const char *to);
void lab_flows_start(struct lab *);
void lab_flows_destroy(struct lab *);
bool lab_flows_done(const struct lab *);
void lab_flow_post(struct lab_flow *);
/* A frame for a host is a flow's, and was taken. */
bool lab_flow_input(struct lab *, unsigned station, const uint8_t *frame, size_t len,
                    const struct parsed *);

#endif /* tests/model/lab-congestion.h */
