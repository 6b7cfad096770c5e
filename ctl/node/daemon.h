/* SPDX-License-Identifier: Apache-2.0
 *
 * The process around a pure node (lib/node.h): ports, registry, control socket
 * and main loop.  swedge and srcagent are node_daemon_main() with their class.
 */
#ifndef CTL_NODE_DAEMON_H
#define CTL_NODE_DAEMON_H 1

#include <stdint.h>
#include <stdio.h>

#include "lib/node.h"
#include "lib/pcap-write.h"
#include "lib/tx-queues.h"
#include "simap.h"

#define NODE_MAX_PORTS (PORT_NUMBER_MAX + 1)

struct json;
struct node_trace;

/* An open port. */
struct node_port {
    struct port_config config;
    struct port *port;           /* NULL: could not be opened; retried. */
    struct pcap_writer *capture; /* NULL: off. */
    char *capture_file;          /* its path, or NULL. */
    uint64_t rx_packets, rx_bytes, rx_errors;
    uint64_t tx_packets, tx_bytes, tx_errors, tx_too_long;
    struct impair *rx, *tx; /* frames that a bad link holds; NULL: the link is good. */
};

struct node_daemon {
    const struct node_class *class;
    void *node;
    struct packet_pool *pool;
    int netns_fd;                            /* of packet ports; -1: ours. */
    struct node_port *ports[NODE_MAX_PORTS]; /* by number; NULL: none. */
    uint16_t numbers[NODE_MAX_PORTS];        /* of the ports that exist. */
    size_t n_ports;
    struct tx_queues tx_queues;
    uint64_t no_port; /* frames for a port that does not exist. */
    uint64_t n_input; /* frames that the node has got. */
    size_t next_tree; /* which tree is looked at next for what is to be reported. */
    size_t n_unseen;  /* how many have to be looked at before nothing can be new. */

    struct node_config config; /* the newest one. */
    bool pending;              /* the node does not run 'config' yet. */
    char *why;                 /* why something is not as 'config' says, or NULL. */
    long long int retry_at;    /* msec. */
    uint64_t refresh_at;       /* when to read ports' MTUs again, microseconds. */
    int timer_fd;              /* wakes up for impaired links; -1: there was none yet. */

    struct simap refused; /* per group epoch: packets that were not authentic, as last logged. */
    struct simap lost;    /* per group epoch: lost branches, as last reported. */
    struct simap paced;   /* likewise, how often branches began or ceased to be slow. */

    /* In a process that explains a frame: gets what is sent.  Else NULL. */
    struct node_trace *trace;
};

/* Now, on the scale of a node's times: microseconds. */
uint64_t node_daemon_now(void);

/* Runs the daemon until told to exit; the exit status. */
int node_daemon_main(int argc, char *argv[], const struct node_class *, const char *purpose);

/* ports.c: opens, closes and keeps ports so that they are as d->config says.  node_ports_open()
 * tries those that could not be opened, or whose device went away since.  False: some are still not
 * open, and *errp names one. */
void node_ports_configure(struct node_daemon *d);
bool node_ports_open(struct node_daemon *, char **errp);
bool node_ports_all_open(const struct node_daemon *);
void node_ports_close(struct node_daemon *);
/* Receives a burst from every port; true if there may be more. */
bool node_ports_run(struct node_daemon *, uint64_t now);
void node_ports_wait(const struct node_daemon *);
struct node_port *node_ports_find(const struct node_daemon *, const char *name);
/* Sends frames from a port, past its impairment and its queue. */
void node_port_send(struct node_port *, struct packet *const *frames, size_t n);
/* Of the output queues: tx_queues_send. */
void node_ports_send(void *daemon, uint16_t port, struct packet **frames, size_t n);
/* struct node_io's functions. */
void node_ports_tx(void *daemon, uint16_t port, struct packet *);
uint32_t node_ports_mtu(void *daemon, uint16_t port);

/* impair.c: impaired links.  They let a frame go when its time has come, or when the link is about
 * to change.  'salt' makes the links of different nodes differ. */
void node_impair_run(struct node_daemon *, uint64_t now);
void node_impair_wait(struct node_daemon *, uint64_t now);
void node_impair_configure(struct node_daemon *, struct node_port *, const struct port_config *new,
                           uint64_t salt);
void node_impair_close(struct node_port *);

/* show.c: the control socket's listings. */
void node_show_init(struct node_daemon *);

/* capture.c: captures to files. */
void node_capture_init(struct node_daemon *);
struct json *node_captures_to_json(const struct node_daemon *);
/* Ends a port's capture, if there is one. */
void node_capture_stop(struct node_port *);

/* trace.c: what a frame would meet. */
void node_trace_init(struct node_daemon *);
/* Takes a frame that would be sent from this port. */
void node_trace_sent(struct node_trace *, const struct node_port *, const struct packet *);

#endif /* ctl/node/daemon.h */
