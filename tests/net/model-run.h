/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of castmodel: a source writes blocks to the regions of many receivers, over a
 * group or over one connection to each.  What goes wrong ends the process.
 */
#ifndef TESTS_NET_MODEL_RUN_H
#define TESTS_NET_MODEL_RUN_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/castbench/content.h"
#include "bench/castbench/gap.h"
#include "tests/net/model-host.h"

#define EXIT_RUN            2  /* the run failed, or a receiver lacks bytes. */
#define MODEL_MAX_RECEIVERS 91 /* one more than an SRH holds for one edge. */
#define MODEL_MAX_SIZE      (1u << 20)

struct model_names {
    char *names[MODEL_MAX_RECEIVERS];
    unsigned n;
};

struct model_options {
    const char *group, *source;
    struct model_names receivers;
    struct model_names late;                 /* of 'receivers': those that join on SIGUSR1. */
    struct model_names silent, slow, refuse; /* those that do so from SIGUSR1 on. */
    uint32_t size;
    uint64_t count;
    unsigned depth;
    uint32_t mtu;
    enum rc_op op;
    uint64_t gap;
    bool ecn;
    uint32_t obey_usec; /* of the source: rc_config's. */
    uint32_t cnp_usec;  /* of receivers: a CNP at most once in this time; 0: none make CNPs. */
    uint64_t seed;
    uint8_t qp_timeout; /* of unicast connections; a group has its own. */
    unsigned timeout;
};

/* A connection of the source. */
struct lane {
    struct rc_endpoint *ep;
    uint64_t va;
    uint32_t rkey;
    uint64_t posted, done;
    struct gap gap;        /* between completions. */
    enum rc_status status; /* the first that is not success. */
};

struct receiver {
    struct model_host *host; /* its own, or that of the first receiver at this host. */
    struct model_host own;
    struct rc_endpoint *ep;
    uint8_t *region;
    bool silent;        /* takes nothing more. */
    bool slow;          /* takes a packet now and then. */
    uint64_t n_buffers; /* posted. */
    size_t bytes_ok;
};

struct model_run {
    struct model_options options;
    struct content content;
    struct rc_config config; /* what all endpoints have in common. */
    uint32_t epoch;
    struct model_host source;
    uint8_t *buf;
    unsigned n_lanes;
    struct lane lanes[MODEL_MAX_RECEIVERS];
    struct receiver receivers[MODEL_MAX_RECEIVERS];
    uint64_t n_blocks; /* UINT64_MAX: until SIGTERM. */
    uint64_t n_stamped, n_completed;
    double seconds;
};

/* Opens all hosts and connects them: all that comes before the first block.  'options' are set. */
void model_run_prepare(struct model_run *);
/* Sends all blocks, until SIGTERM if there is no last one, and waits for the completions. */
void model_run_transfer(struct model_run *);
/* Returns whether all receivers have all bytes. */
bool model_run_compare(struct model_run *);

#endif /* tests/net/model-run.h */
