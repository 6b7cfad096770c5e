/* SPDX-License-Identifier: Apache-2.0
 *
 * The fabric of draft-filsfils-srv6ops-srv6-ai-backend, section 7, in virtual time: source agents with
 * two uplinks, leaves and spines, real nodes (lib/node.h) with the paths and probes that the planner
 * gives them (ctl/plan), and links (fabric.h) that may break.
 *
 * Agent dpuI has host gpuI; it hangs on leaf1 and leaf2 if I is 1 or 2, else on leaf3 and leaf4.  If
 * there are two, these are dpu1 and dpu3.  Each leaf is linked to all spines, spine5 and on, which are
 * in planes A and B in turn.
 *
 * Stations of the fabric are nodes, by id: agents, leaves, spines; then hosts.
 */
#ifndef TESTS_MODEL_CLOS_H
#define TESTS_MODEL_CLOS_H 1

#include "ctl/plan/plan.h"
#include "ctl/plan/probe.h"
#include "lib/node.h"
#include "lib/parse.h"
#include "tests/model/fabric.h"
#include "tests/model/sent-frames.h"

#define CLOS_MAX_AGENTS 4
#define CLOS_N_LEAVES   4
#define CLOS_MAX_SPINES 3
#define CLOS_MAX_NODES  (CLOS_MAX_AGENTS + CLOS_N_LEAVES + CLOS_MAX_SPINES)
#define CLOS_POSIX_USEC UINT64_C(1700000000000000) /* POSIX time is so far ahead of virtual time. */

struct clos;

struct clos_node {
    struct clos *clos;
    const struct plan_node *plan;
    const struct node_class *class;
    void *node;  /* NULL: it is down. */
    bool silent; /* nothing of what comes is heard, and nothing is done; its links are up. */
    struct node_config config;
    struct plan_probes probes;
    struct sent_frames sent; /* until the event is over. */
    uint64_t deadline;
    uint64_t drops[N_DROP_REASONS]; /* of earlier lives. */
};

/* What a frame is that a node sends. */
struct clos_frame {
    unsigned station;
    uint16_t port;
    unsigned to; /* the station at the other end. */
    const uint8_t *bytes;
    size_t len;
    const struct parsed *h;
};

struct clos_ops {
    /* A frame leaves a node, neighbour discovery excluded. */
    void (*sent)(void *aux, const struct clos_frame *);
    /* Something has happened at a node, and all that it sends has left. */
    void (*after)(void *aux, struct clos_node *);
    /* A packet comes to a host. */
    void (*to_host)(void *aux, unsigned host, const uint8_t *ip, size_t len);
    /* Does not return. */
    void (*fail)(void *aux, const char *text);
    void *aux;
};

struct clos {
    struct fabric fabric;
    struct clos_ops ops;
    struct packet_pool *pool;
    struct plan_topology topology;
    unsigned n_agents, n_spines, n_nodes; /* each agent has a host. */
    struct clos_node nodes[CLOS_MAX_NODES];
    bool probes; /* nodes are told of theirs. */
    /* The frame that a node is being given, its station and port; NULL: something else happens. */
    const uint8_t *coming;
    size_t coming_len;
};

/* All links take 1 us.  Before clos_start(): hosts' policies, the interval of probes. */
struct clos *
clos_create(unsigned n_agents, unsigned n_spines, uint64_t seed, const struct clos_ops *);
void clos_destroy(struct clos *);
struct plan_host *clos_host(struct clos *, unsigned host);
/* In milliseconds; the time-out is what the product has for that. */
void clos_set_interval(struct clos *, uint32_t msec);
/* Plans, and starts all nodes. */
void clos_start(struct clos *);
/* Plans anew what follows from the topology and the rules of operators, and tells all nodes. */
void clos_replan(struct clos *);
/* Tells a node of its configuration. */
void clos_configure(struct clos *, unsigned node);

void clos_stop_node(struct clos *, unsigned node);
void clos_start_node(struct clos *, unsigned node);
/* Takes a link of two nodes, by its number in the fabric; 'rate' 0: none any more. */
void clos_set_rate(struct clos *, unsigned link, unsigned side, const struct impair_params *);

/* Of the first event, UINT64_MAX: there is none; and makes it happen. */
uint64_t clos_next(const struct clos *);
void clos_step(struct clos *);
/* A host sends a packet. */
void clos_send(struct clos *, unsigned host, const uint8_t *ip, size_t len);
/* A frame comes to a node by this port, besides those that its links carry. */
void clos_input(struct clos *, struct fabric_end, const uint8_t *frame, size_t len);

unsigned clos_station_of_host(const struct clos *, unsigned host);
bool clos_is_agent(const struct clos *, unsigned station);
const char *clos_name(const struct clos *, unsigned station);
/* Is it a link of two nodes?  They are the first ones in the fabric. */
unsigned clos_n_links(const struct clos *);
/* Does the probe pass the link, or the node? */
bool clos_passes_link(const struct clos *, const struct plan_probe *, unsigned link);
bool clos_passes_node(const struct clos *, const struct clos_node *prober,
                      const struct plan_probe *, unsigned node);
/* Of one reason, in all lives of a node. */
uint64_t clos_drops(const struct clos_node *, enum drop_reason);

#endif /* tests/model/clos.h */
