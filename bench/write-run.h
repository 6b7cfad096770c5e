/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processes of one run share, and the steps of each role.
 */
#ifndef BENCH_WRITE_RUN_H
#define BENCH_WRITE_RUN_H 1

#include <netinet/in.h>
#include <stdatomic.h>

#include "bench/content.h"
#include "bench/write.h"

/* In memory mapped by all processes.  Who writes a field is said; others read
 * it in a later step. */
struct write_shared {
    /* Parent, before the start. */
    struct in6_addr source;
    struct in6_addr receivers[MAX_RECEIVERS];
    struct content content;
    uint32_t unicast_psn;

    /* Source. */
    uint32_t source_qpn[MAX_RECEIVERS]; /* replicate: the first only. */
    uint32_t epoch;
    uint32_t mtu;
    double seconds;
    atomic_ulong completed; /* work requests; read at any time. */

    /* Each receiver its own element. */
    struct write_remote {
        uint32_t qpn;
        uint32_t rkey;
        uint64_t va;
        size_t bytes_ok;
        size_t first_bad;
    } remotes[MAX_RECEIVERS];

    /* Parent: what every region must hold at the end. */
    unsigned char expected[];
};

struct write_run {
    const struct write_options *options;
    struct write_shared *shared;
    unsigned long shown; /* parent: last progress on the terminal. */

    /* Parent, from the transfer on, with a group. */
    struct registry_watch *watch;
    long long started; /* milliseconds of a monotonic clock. */
    struct write_result *result;
};

/* Puts 'text' into the error of 'size' bytes; false. */
bool write_fail(char *error, size_t size, const char *text);
/* Page-aligned memory for 'len' bytes, or NULL. */
void *write_buffer(size_t len);

/* Steps of both roles. */
enum write_step {
    STEP_OPEN, /* device, memory, queue pairs in INIT. */
    STEP_ARM,  /* registered and in RTS; the source first: it starts the epoch. */
    STEP_WORK, /* source: transfer; receiver, afterwards: compare. */
    N_WRITE_STEPS
};

/* 'aux' is the struct write_run. */
bool write_source_step(void *aux, unsigned step, char *error, size_t size);

struct write_receiver {
    const struct write_run *run;
    unsigned index;
};

/* 'aux' is the struct write_receiver. */
bool write_receiver_step(void *aux, unsigned step, char *error, size_t size);

/* Path MTU of unicast connections unless told otherwise. */
#define UNICAST_MTU 1024

#endif /* bench/write-run.h */
