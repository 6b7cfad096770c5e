/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client of perftest and its servers tell each other by TCP, through a relay that puts the
 * group in place of the other side.
 */
#ifndef BENCH_CASTBENCH_PERFTEST_RELAY_H
#define BENCH_CASTBENCH_PERFTEST_RELAY_H 1

#include <sys/types.h>

#include "bench/castbench/perftest-args.h"
#include "bench/castbench/perftest-keys.h"
#include "bench/castbench/registry.h"
#include "bench/castbench/scheme.h"

struct perftest_server {
    const char *host;  /* of the registry. */
    const char *given; /* where it listens, as the user says it; NULL: castbench starts it. */
    char address[256]; /* name or IPv4 address. */
    char port[8];
    pid_t pid; /* 0: it is on another machine, or has ended. */
    int log;   /* what it prints; -1: it is on another machine. */
    int fd;
    struct perftest_keys keys;
};

struct perftest_relay {
    const struct perftest_args *args;
    const char *group, *source;
    unsigned timeout; /* seconds for an answer. */
    unsigned n_servers;
    struct perftest_server servers[MAX_RECEIVERS];
    pid_t client; /* 0: it has ended. */
    int listener; /* for the client. */
    int fd;       /* the client's connection; -1: it has none. */

    /* Of what has been said: */
    bool group_made;
    unsigned n_messages;       /* of the client. */
    unsigned n_keys;           /* of them, about its queue pair. */
    uint32_t cache_line;       /* bytes, the largest of all. */
    uint32_t page;             /* bytes over which small messages are spread, the largest of all. */
    unsigned mtu_code;         /* the smallest path MTU that anyone has said, 1: 256 to 5: 4096. */
    struct perftest_keys keys; /* of the client. */
    struct rocecast_epoch epoch;
    struct registry_watch *watch;
    unsigned n_compared; /* servers whose memory holds the client's bytes. */
};

/* Relays until the client has closed its connection.  The servers are connected, the client runs.
 * False: 'error' says who has said what it should not, or nothing. */
bool perftest_relay_run(struct perftest_relay *, char *error, size_t size);

/* Connects to a server within the time of an answer; one that castbench starts may not listen
 * yet. */
bool
perftest_relay_connect(struct perftest_relay *, struct perftest_server *, char *error, size_t size);

/* Takes note of a process that has ended: false if that is one of the servers', or the client
 * before it has connected.  Also false after a signal that ends castbench. */
bool perftest_relay_alive(struct perftest_relay *, char *error, size_t size);

#endif /* bench/castbench/perftest-relay.h */
