/* SPDX-License-Identifier: Apache-2.0
 *
 * What the daemons have in common: options, environment, daemonizing and the
 * control socket.
 *
 *     daemon_init(&d, argc, argv, DAEMON_FORWARDER, "SRv6 edge forwarder");
 *     ... start processes that keep what the daemon is about to lose ...
 *     daemon_start(&d);
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
#include "svec.h"

struct pstream;
struct unixctl_server;

enum daemon_kind {
    DAEMON_CONTROLLER, /* castd. */
    DAEMON_AGENT,      /* takes --node and --netns. */
    DAEMON_FORWARDER,  /* an agent with ports of its own: takes --threads and --no-offload. */
    DAEMON_BROKER,     /* castbroker: takes --listen, --socket, --operator and --controller. */
};

struct daemon {
    char *db;           /* --db, ROCECAST_DB or the default. */
    char *node;         /* --node; agents only. */
    int netns_fd;       /* --netns; -1: the daemon's own. */
    bool no_offload;    /* --no-offload, for port_use_offload(). */
    bool no_seccomp;    /* --no-seccomp. */
    unsigned n_threads; /* --threads: that forward, 1 or more; forwarders only. */
    char *control;      /* absolute path of the control socket. */
    struct unixctl_server *unixctl;
    char *metrics; /* --metrics, castd and castbroker only; NULL: not given. */
    /* That is open.  Who serves metrics takes it over. */
    struct pstream *metrics_listener;
    /* --listen and --socket, as OVSDB passive remotes, and whose clients these are; "": their
     * certificates say it.  castbroker only, as the next. */
    struct svec listeners, listener_names;
    struct svec operators, controllers; /* --operator, --controller. */
    bool serving;                       /* systemd was told. */
    /* Half of what systemd's watchdog waits; 0: there is none.  And when it is told next, on
     * time_msec()'s scale. */
    long long watchdog_msec, watchdog_next;
    /* It runs programs that need its capabilities, so it keeps them.  Set before daemon_ready(). */
    bool runs_programs;
    bool exiting; /* set by "ovs-appctl exit", SIGTERM and SIGINT. */
};

/* Parses the command line.  Prints and exits on -h, -V and on errors (1: usage, 2: another daemon
 * has the control socket, 3: there it cannot be made). */
void daemon_init(struct daemon *, int argc, char *argv[], enum daemon_kind, const char *purpose);
/* Changes the user if --user says so, and makes the control socket, or exits (3).  With --detach the
 * caller continues as the child. */
void daemon_start(struct daemon *);
/* Has it a filter of system calls? */
bool daemon_filters_syscalls(const struct daemon *);
/* Ends the program before it serves: something that it needs is not there (3). */
void daemon_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Gives up the capabilities and system calls that the daemon no longer needs (ctl/process/privileges.h,
 * ctl/process/syscalls.h), or exits (3).  Then tells the parent of a detached daemon that all is well. */
void daemon_ready(struct daemon *);
/* Tells systemd that the daemon serves, if systemd started it with Type=notify.  Does so once,
 * however often it is called. */
void daemon_serving(struct daemon *);
/* Once in each round of the main loop: that it gets here is what feeds systemd's watchdog. */
void daemon_run(struct daemon *);
void daemon_wait(struct daemon *);
void daemon_done(struct daemon *);

/* Exits (3): it cannot listen there, for 'error', an errno. */
void daemon_cannot_listen(const char *listener, int error) __attribute__((noreturn));

#endif /* ctl/process/daemon-common.h */
