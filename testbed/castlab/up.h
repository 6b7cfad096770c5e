/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files that bring up a lab, or one of its daemons again.
 * Functions return NULL or a malloc'd error.
 */
#ifndef TESTBED_CASTLAB_UP_H
#define TESTBED_CASTLAB_UP_H 1

#include <stdbool.h>
#include <stdint.h>

#include "testbed/castlab/lab.h"
#include "testbed/castlab/netops.h"
#include "testbed/castlab/registry.h"

struct programs {
    char *ovsdb_server, *ovsdb_tool;
    char *castd, *swedge, *srcagent, *castfwd, *castlab;
    char *ovs_vswitchd, *ovs_vsctl, *nsenter; /* NULL: not looked for. */
    char *schema;
};

/* A daemon that must be running. */
struct lab_daemon {
    char *name;
    struct process_id id;
};

struct lab {
    const char *name;
    const struct topology *t; /* NULL: only one of its daemons is dealt with. */
    bool rdma;
    unsigned int n_threads;
    int timeout; /* seconds that anything may take. */
    struct programs programs;
    struct journal journal;
    struct net *net; /* the hosts' namespace. */
    struct registry *registry;
    size_t n_daemons;
    struct lab_daemon *daemons;
    int exit_code; /* in case of an error. */
};

void lab_uninit(struct lab *);

/* check.c: returns what stands in the way of this lab, and finds the programs. */
char *lab_check(struct lab *);
/* Checks that the paths of the lab's sockets are short enough, before anything at all is done. */
char *lab_check_path(const char *name);
/* The same for one path. */
char *check_socket_path(const char *path);
char *programs_find(struct programs *);
char *programs_find_ovs(struct programs *);
void programs_uninit(struct programs *);

/* hosts.c */
char *lab_hosts_create(struct lab *);
/* Moves 'lookup local' behind the hosts' rules and makes the soft-RoCE devices. */
char *lab_hosts_add_rdma(struct lab *);
/* Does the host at the end of this link get an RDMA device? */
bool lab_has_rdma(const struct lab *, const struct topology_link *);

/* daemons.c */
/* Starts a daemon with a NULL-terminated list of arguments; the first is its path.  It is in the
 * journal before it runs. */
char *lab_start(struct lab *, const char *name, char *const argv[]);
/* Starts an OVSDB-style daemon with the options that all of them have.  'prefix' is NULL or begins
 * the command, 'extra' ends it.  Both end with NULL.  What is in 'extra' is freed. */
char *lab_start_daemon(struct lab *, const char *const prefix[], const char *program,
                       const char *name, char *extra[]);
/* A server of the registry; returns when it listens. */
char *lab_start_ovsdb(struct lab *, unsigned int number);
char *lab_start_castd(struct lab *);
/* Starts a forwarder, the number-th of the lab.  It stays on one CPU: a veth queues frames on the
 * sender's, so a forwarder that migrates between two frames reorders them, and RC answers that with
 * a retransmission. */
char *lab_start_agent(struct lab *, const char *name, enum topology_kind, unsigned int number);
/* Waits until 'lacks' returns NULL.  Fails if that takes too long, a started daemon has died or the
 * user has interrupted. */
char *lab_wait(struct lab *, char *(*lacks)(struct lab *, const void *), const void *arg);

/* Likewise, for what the registry lacks. */
char *lab_wait_registry(struct lab *, registry_lacks *lacks, const char *node);
/* Waits until ovsdb-server listens there. */
char *lab_wait_socket(struct lab *, const char *path);
/* Opens the registry and waits until castd has set it up. */
char *lab_connect_registry(struct lab *);
/* Likewise, to one of its servers only. */
char *lab_connect_server(struct lab *, unsigned int number);

/* ovs.c: nodes of kind 'ovs'. */
enum lab_ovs_part { LAB_OVS_DB, LAB_OVS_SWITCH, LAB_OVS_N_PARTS };
/* The name of one of its processes. */
struct lab_text lab_ovs_part(const char *node, enum lab_ovs_part);
/* Returns what stands in the way of such a node. */
char *lab_check_ovs(struct lab *, const char *node);
/* Starts all its processes but castfwd. */
char *lab_start_ovs(struct lab *, const char *node);

/* up.c */
/* Journal lines with printf() formats. */
char *lab_fact(struct lab *, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *lab_intent(struct lab *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends an intent.  If there is an 'error', nothing was made, and it is passed on.  Otherwise the
 * object has this identity, if 'id' is not NO_ID; UNKNOWN_ID is an error. */
#define NO_ID      UINT64_MAX
#define UNKNOWN_ID (UINT64_MAX - 1)
char *lab_outcome(struct lab *, char *error, uint64_t id);

#endif /* testbed/castlab/up.h */
