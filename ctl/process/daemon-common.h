/* SPDX-License-Identifier: Apache-2.0
 *
 * What the daemons have in common: options, environment, daemonizing and the
 * control socket.
 *
 *     daemon_init(&d, argc, argv, DAEMON_FORWARDER, "SRv6 edge forwarder");
 *     ... register commands, open things ...
 *     daemon_ready(&d);
 *     while (!d.exiting) {
 *         daemon_run(&d);
 *         ...
 *         daemon_wait(&d);
 *         poll_block();
 *     }
 *     daemon_done(&d);
 */
#ifndef CTL_PROCESS_DAEMON_COMMON_H
#define CTL_PROCESS_DAEMON_COMMON_H 1

#include <stdbool.h>

#include "ctl/registry/paths.h"

struct pstream;
struct unixctl_server;

enum daemon_kind {
    DAEMON_CONTROLLER, /* castd. */
    DAEMON_AGENT,      /* takes --node and --netns. */
    DAEMON_FORWARDER,  /* an agent with ports of its own: takes --threads and --no-offload. */
};

struct daemon {
    char *db;           /* --db, ROCECAST_DB or the default. */
    char *node;         /* --node; agents only. */
    int netns_fd;       /* --netns, for port_open(); -1: the daemon's own. */
    bool no_offload;    /* --no-offload, for port_use_offload(). */
    unsigned n_threads; /* --threads: that forward, 1 or more; forwarders only. */
    char *control;      /* absolute path of the control socket. */
    struct unixctl_server *unixctl;
    char *metrics; /* --metrics, castd only; NULL: not given. */
    /* That is open.  Who serves metrics takes it over. */
    struct pstream *metrics_listener;
    bool serving; /* systemd was told. */
    /* Half of what systemd's watchdog waits; 0: there is none.  And when it is told next, on
     * time_msec()'s scale. */
    long long watchdog_msec, watchdog_next;
    /* It runs programs that need its capabilities, so it keeps them.  Set before daemon_ready(). */
    bool runs_programs;
    bool exiting; /* set by "ovs-appctl exit", SIGTERM and SIGINT. */
};

/* Parses the command line.  Prints and exits on -h, -V and on errors (1: usage, 2: another daemon
 * has the control socket, 3: it cannot be made).  With --detach the caller continues as the
 * child. */
void daemon_init(struct daemon *, int argc, char *argv[], enum daemon_kind, const char *purpose);
/* Gives up the capabilities that the daemon no longer needs (ctl/process/privileges.h), or exits
 * (3).  Then tells the parent of a detached daemon that all is well. */
void daemon_ready(struct daemon *);
/* Tells systemd that the daemon serves, if systemd started it with Type=notify.  Does so once,
 * however often it is called. */
void daemon_serving(struct daemon *);
/* Once in each round of the main loop: that it gets here is what feeds systemd's watchdog. */
void daemon_run(struct daemon *);
void daemon_wait(struct daemon *);
void daemon_done(struct daemon *);

#endif /* ctl/process/daemon-common.h */
