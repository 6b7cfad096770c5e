/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of `castbench write`: a source process writes blocks to the regions
 * of receiver processes, over a group or over one connection per receiver.
 */
#ifndef BENCH_WRITE_H
#define BENCH_WRITE_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_RECEIVERS 88 /* what fits one SRH. */
#define MAX_DEPTH     4096
#define MAX_COUNTED   256 /* devices. */

enum write_scheme {
    SCHEME_REPLICATE, /* one connection to the group, copies made in the network. */
    SCHEME_UNICAST,   /* one connection per receiver: the baseline. */
};

struct write_options {
    enum write_scheme scheme;
    const char *group;  /* replicate only. */
    const char *source; /* hosts by name; unicast: or by IPv6 address. */
    const char *receivers[MAX_RECEIVERS];
    unsigned n_receivers;
    uint32_t size;
    uint64_t count; /* 0: as many blocks as 'file' has. */
    unsigned depth;
    uint32_t mtu;       /* unicast: path MTU; replicate: if not 0, what the group must have. */
    uint8_t qp_timeout; /* unicast: local ACK timeout; a group has its own. */
    uint64_t seed;
    unsigned timeout; /* seconds without progress. */
    const char *file; /* source's bytes, or NULL. */
    const char *out;  /* folder for the regions, or NULL. */
    unsigned n_counted;
    const char *counted[MAX_COUNTED]; /* [NETNS:]DEV whose sent bytes are counted. */
};

struct write_replica {
    const char *host;
    size_t bytes_ok;
    size_t first_bad; /* if bytes_ok is less than the region's length. */
};

/* A receiver without which the group went on, or because of which it failed. */
struct write_lost {
    char host[64];
    char why[256];
    unsigned long after_ms; /* since the transfer began. */
};

enum write_outcome {
    WRITE_OK,      /* every replica holds every byte. */
    WRITE_PARTIAL, /* all do but those of receivers that were lost. */
    WRITE_FAILED,
};

struct write_result {
    bool complete;   /* every replica was compared. */
    char error[512]; /* why not. */
    uint64_t count;  /* blocks. */
    uint64_t bytes;  /* of all blocks, once. */
    size_t region_len;
    uint32_t epoch; /* replicate only. */
    uint32_t mtu;
    double seconds;                 /* first post to last completion. */
    uint64_t tx_bytes[MAX_COUNTED]; /* of each device counted. */
    unsigned n_replicas;
    struct write_replica replicas[MAX_RECEIVERS];
    unsigned n_lost;
    struct write_lost lost[MAX_RECEIVERS];
};

/* Who of the receivers was lost; NULL: 'host' was not. */
const struct write_lost *write_find_lost(const struct write_result *, const char *host);

enum write_outcome write_run(const struct write_options *, struct write_result *);

#endif /* bench/write.h */
