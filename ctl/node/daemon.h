/* SPDX-License-Identifier: Apache-2.0
 *
 * The process around a pure node (lib/node.h): ports, registry, control socket
 * and threads.  swedge and srcagent are node_daemon_main() with their class.
 *
 * Packets are the business of workers: threads that each have a whole node, with ports, buffers
 * and neighbours of its own.  Each group belongs to one of them (lib/steer.h), so nothing that is
 * read or written for a packet is shared.  The main thread has the registry and the control socket.
 * What it does with a worker, it does while the worker stands still (node_workers_stop()).
 */
#ifndef CTL_NODE_DAEMON_H
#define CTL_NODE_DAEMON_H 1

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/node.h"
#include "lib/pcap-write.h"
#include "lib/steer.h"
#include "lib/tx-queues.h"
#include "simap.h"

#define NODE_MAX_PORTS   (PORT_NUMBER_MAX + 1)
#define NODE_MAX_THREADS STEER_MAX

struct frame_ring;
struct json;
struct node_daemon;
struct node_trace;
struct port_helper;

/* A worker's part of a port. */
struct node_port {
    struct port_config config;
    struct port *port;           /* NULL: could not be opened; retried. */
    struct pcap_writer *capture; /* NULL: off.  All workers have the same one. */
    uint64_t rx_packets, rx_bytes, rx_errors;
    uint64_t tx_packets, tx_bytes, tx_errors, tx_too_long;
    struct impair *rx, *tx; /* frames that a bad link holds; NULL: the link is good. */
    bool ready;             /* is in the worker's 'ready'. */
};

/* A thread that forwards. */
struct node_worker {
    struct node_daemon *daemon;
    unsigned index;
    pthread_t thread;
    atomic_int tid; /* the thread's number in /proc. */
    int epoll_fd;   /* the ports and wake_fd. */
    int wake_fd;    /* an eventfd: there is something to do besides frames. */
    /* Says when devices change in the daemon's own network namespace, and in that of packet ports;
     * -1: not open. */
    int device_fds[2];
    /* The worker takes both, one after the other, for each round.  Who has 'turn' has it standing
     * still, however much there is to do. */
    pthread_mutex_t turn, mutex;
    atomic_bool has_told; /* the main thread was told that there is something new. */

    /* The rest is the worker's, or that of who has stopped it. */
    void *node;
    struct packet_pool *pool;
    struct tx_queues tx_queues;
    struct node_port *ports[NODE_MAX_PORTS]; /* by number; NULL: none. */
    uint16_t numbers[NODE_MAX_PORTS];        /* of the ports that exist. */
    size_t n_ports;
    uint16_t ready[NODE_MAX_PORTS]; /* numbers of ports that may have frames. */
    size_t n_ready;
    struct frame_ring *from[NODE_MAX_THREADS]; /* frames that other workers got for this one. */
    uint64_t n_input;                          /* frames that the node has got. */
    uint64_t n_rounds;                         /* how often it looked for frames and found some. */
    uint64_t n_handed_over, n_handover_full;   /* frames for other workers; those lost. */
    uint64_t no_port;                          /* frames for a port that does not exist. */
    uint64_t refresh_at;                       /* when to refresh ports, microseconds. */
    size_t next_tree; /* which tree is looked at next for what is to be reported. */
    size_t n_unseen;  /* how many have to be looked at before nothing can be new. */

    /* In a process that explains a frame: gets what is sent.  Else NULL. */
    struct node_trace *trace;
};

struct node_daemon {
    const struct node_class *class;
    const char *name;           /* of the node, in the registry. */
    struct port_helper *helper; /* opens ports. */
    bool has_netns;             /* packet ports are in another network namespace than ours. */
    struct node_worker *workers[NODE_MAX_THREADS];
    unsigned n_workers;
    atomic_bool stopping;
    int news_fd; /* an eventfd: a worker has something new to report. */

    struct node_config config; /* the newest one. */
    bool pending;              /* the node does not run 'config' yet. */
    bool complete;             /* all ports were open when looked at last. */
    char *why;                 /* why something is not as 'config' says, or NULL. */
    long long int retry_at;    /* msec. */
    long long int report_at;   /* msec: not before. */
    long long int rates_at;    /* msec: when rates are looked at again. */
    long long int probes_at;   /* msec: likewise probes. */

    struct simap refused; /* per group epoch: packets that were not authentic, as last logged. */
    struct simap lost;    /* per group epoch: lost branches, as last reported. */
    struct simap decided; /* likewise, how often it became known whether or where a branch is. */
    struct simap paced;   /* likewise, how often branches began or ceased to be slow. */
    uint64_t connections; /* sum of the workers' connections_version(), as last reported. */
};

/* Now, on the scale of a node's times: microseconds. */
uint64_t node_daemon_now(void);

/* Runs the daemon until told to exit; the exit status. */
int node_daemon_main(int argc, char *argv[], const struct node_class *, const char *purpose);

/* worker.c: the threads.  Who calls these is the main thread. */
void node_workers_create(struct node_daemon *, unsigned n);
void node_workers_start(struct node_daemon *);
void node_workers_destroy(struct node_daemon *);
/* Has all workers stand still until node_workers_go(). */
void node_workers_stop(struct node_daemon *);
void node_workers_go(struct node_daemon *);
/* The worker has found out something that the main thread may have to report. */
void node_worker_tell(struct node_worker *);

/* ports.c: opens, closes and keeps ports so that they are as d->config says.  node_ports_open()
 * tries those that could not be opened, or whose device went away since.  False: some are still not
 * open, and *errp names one.  All workers stand still. */
void node_ports_configure(struct node_daemon *d);
bool node_ports_open(struct node_daemon *, char **errp);
bool node_ports_all_open(const struct node_daemon *);
void node_ports_close(struct node_worker *);
/* The port of this name, as the first worker has it; NULL: none. */
struct node_port *node_ports_find(const struct node_daemon *, const char *name);
/* Receives a burst from every port that is ready.  Those that may have more are ready then. */
void node_ports_run(struct node_worker *, uint64_t now);
/* Gives the node what other workers have received for it; true if there may be more. */
bool node_ports_take_over(struct node_worker *, uint64_t now);
/* The port may have frames. */
void node_port_ready(struct node_worker *, uint16_t number);
/* device_fds[i] is readable. */
void node_ports_changed(struct node_worker *, unsigned i);
/* What epoll says instead of a port's number if it is about device_fds[i]. */
#define NODE_DEVICE_EVENT(I) (NODE_MAX_PORTS + (I))
/* Sends frames from a port, past its impairment and its queue. */
void node_port_send(struct node_port *, struct packet *const *frames, size_t n);
/* Of the output queues: tx_queues_send. */
void node_ports_send(void *worker, uint16_t port, struct packet **frames, size_t n);
/* struct node_io's functions. */
void node_ports_tx(void *worker, uint16_t port, struct packet *);
uint32_t node_ports_mtu(void *worker, uint16_t port);
bool node_ports_up(void *worker, uint16_t port);

/* impair.c: impaired links.  They let a frame go when its time has come, or when the link is about
 * to change.  'salt' makes the links of different nodes differ. */
void node_impair_run(struct node_worker *, uint64_t now);
uint64_t node_impair_deadline(const struct node_worker *);
void node_impair_configure(struct node_worker *, struct node_port *, const struct port_config *new,
                           uint64_t salt);
void node_impair_close(struct node_port *);

/* show.c: the control socket's listings. */
void node_show_init(struct node_daemon *);

/* show-probes.c: likewise, each probe, and numbers about all of them. */
struct json *node_probes_to_json(const struct node_daemon *);
struct json *node_probes_sum(const struct node_daemon *);

/* capture.c: captures to files. */
void node_capture_init(struct node_daemon *);
struct json *node_captures_to_json(const struct node_daemon *);
/* Puts a frame into the port's capture, if there is one. */
void node_capture_put(struct node_port *, const struct packet *);
/* Ends a port's capture, if there is one. */
void node_capture_stop(const struct node_daemon *, uint16_t number);

/* path-naks.c: are hosts told what was lost on a path that has failed? */
void node_path_naks_init(struct node_daemon *);

/* trace.c: what a frame would meet. */
void node_trace_init(struct node_daemon *);
/* Takes a frame that would be sent from this port. */
void node_trace_sent(struct node_trace *, const struct node_port *, const struct packet *);

#endif /* ctl/node/daemon.h */
