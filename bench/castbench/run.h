/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of castbench: a source process writes blocks to the regions of
 * receiver processes with one scheme, and every byte is compared.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, sizes are bytes.
 */
#ifndef BENCH_CASTBENCH_RUN_H
#define BENCH_CASTBENCH_RUN_H 1

#include "bench/castbench/content.h"
#include "bench/castbench/counter.h"
#include "bench/castbench/histogram.h"
#include "bench/castbench/scheme.h"

#define MAX_DEPTH  4096
#define MAX_QPS    16
#define MAX_PIECES 4096 /* chunks of a block. */
#define MAX_NAME   64   /* of a host, with the zero. */

enum operation {
    OP_WRITE,     /* RDMA WRITE: receivers do not notice. */
    OP_WRITE_IMM, /* RDMA WRITE with immediate: each receiver takes a completion per block. */
    OP_SEND,      /* SEND into a receive that lies where a WRITE would have gone. */
    N_OPERATIONS
};

struct run_options {
    enum scheme scheme;
    enum operation op;
    enum pattern pattern;
    const char *groups[MAX_QPS]; /* mcast: one for each of 'qps'. */
    const char *source;          /* hosts by name; if not mcast, or by IPv6 address. */
    const char *receivers[MAX_RECEIVERS];
    unsigned n_receivers;
    unsigned quorum; /* 1..n_receivers. */
    uint32_t size;
    uint32_t chunk;     /* chain-pipe: what is passed on at a time; otherwise ignored. */
    uint64_t count;     /* blocks; 0: 'duration', or as many as 'file' has. */
    unsigned duration;  /* seconds, if 'count' is 0. */
    uint64_t warmup;    /* blocks before those that are measured. */
    unsigned depth;     /* blocks outstanding, of each QP. */
    unsigned qps;       /* connections to each peer, or groups; blocks take turns. */
    double rate;        /* open loop: blocks per second, of all QPs; 0: closed loop. */
    uint32_t mtu;       /* path MTU; 0: that of the first group, or without any 1024. */
    uint8_t qp_timeout; /* local ACK timeout; groups have their own. */
    uint64_t seed;
    unsigned timeout;   /* seconds without progress. */
    size_t region_max;  /* 0: REGION_MAX. */
    const char *file;   /* source's bytes (PATTERN_SEQ), or NULL. */
    const char *out;    /* folder for the regions, or NULL. */
    const char *store;  /* a receiver's region maps the file 'store'.HOST; or NULL. */
    const char *ib_dev; /* RDMA device; NULL: the one that has the host's address. */
    int gid_index;      /* -1: where the host's address is. */
    struct counter_options counted;
    unsigned interval_ms; /* between samples of the progress; not 0. */
    bool show_interval;   /* print them, too. */
};

/* When a block counts as written: at the source, when so many replicas have confirmed it. */
enum rule { RULE_ANY, RULE_QUORUM, RULE_ALL, N_RULES };

struct replica {
    char host[MAX_NAME];
    size_t bytes_ok;
    size_t first_bad; /* if bytes_ok is less than the region's length, ... */
    char why[128];    /* ... and what was seen there. */
    /* From a block's start to when the source knows that this replica has it.  mcast: the network
     * tells only of all. */
    struct histogram confirmed;
    /* From a block's start to when the receiver itself was told; empty if it is not. */
    struct histogram arrived;
    struct host_count host_count;
};

/* A receiver without which a group went on, or because of which it failed. */
struct lost {
    char host[MAX_NAME];
    char why[256];
    unsigned long after_ms; /* since the transfer began. */
};

struct sample {
    uint32_t ms;    /* since the transfer began. */
    uint64_t bytes; /* of blocks that all replicas have, since then. */
};

enum outcome {
    OUTCOME_OK,      /* every replica holds every byte. */
    OUTCOME_PARTIAL, /* all do but those of receivers that were lost. */
    OUTCOME_FAILED,
};

#define MAX_SAMPLES 4096 /* then every second one is dropped, and the interval doubled. */

/* Large: from run_result_new(). */
struct run_result {
    enum outcome outcome;
    bool complete;        /* every replica was compared. */
    char error[512];      /* why not. */
    uint64_t count;       /* blocks that were measured. */
    uint64_t bytes;       /* of these, once. */
    uint64_t first_block; /* their first: the warm-up's are before it. */
    uint64_t overdue;     /* open loop: were due when the time was over, and had not begun. */
    size_t region_len;
    uint32_t epochs[MAX_QPS]; /* mcast. */
    uint32_t mtu;
    double seconds;   /* from the first's start to the last's completion. */
    uint64_t packets; /* request packets that replicas need for them, in sum. */
    struct histogram latency[N_RULES];
    /* From the first to the last replica that has a block, as far as that can be seen: at the
     * receivers if they are told, otherwise at the source, and with mcast not at all. */
    bool has_skew;
    struct histogram skew;
    struct host_count source_count;
    struct machine_count machine;
    unsigned n_samples;
    struct sample samples[MAX_SAMPLES];
    unsigned n_lost;
    struct lost lost[MAX_RECEIVERS];
    unsigned n_replicas;
    struct replica replicas[MAX_RECEIVERS];
};

/* NULL: out of memory.  To be freed. */
struct run_result *run_result_new(void);

/* What of the options cannot be, before anything is started: false with a sentence. */
bool run_check(const struct run_options *, char *error, size_t size);

/* Runs what run_check() has found nothing against.  Fills 'result', also of a run that fails: what
 * is known by then. */
void bench_run(const struct run_options *, struct run_result *);

/* Who of the receivers was lost; NULL: 'host' was not. */
const struct lost *run_find_lost(const struct run_result *, const char *host);

#endif /* bench/castbench/run.h */
