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
#include "bench/castbench/event.h"
#include "bench/castbench/gap.h"
#include "bench/castbench/histogram.h"
#include "bench/castbench/scheme.h"

#define MAX_DEPTH  4096
#define MAX_QPS    16
#define MAX_PIECES 4096 /* chunks of a block. */
#define MAX_NAME   64   /* of a host, with the zero. */

enum operation {
    OP_WRITE,     /* RDMA WRITE: receivers do not notice. */
    OP_WRITE_IMM, /* RDMA WRITE with immediate: each receiver takes a completion per block. */
    OP_SEND,      /* SEND into a receive that is where a WRITE would have gone. */
    N_OPERATIONS
};

#define MAX_PERCENTILES 16

struct percentiles {
    unsigned n;
    double percent[MAX_PERCENTILES]; /* above 0, up to 100; in ascending order. */
};

struct run_options {
    enum scheme scheme;
    enum operation op;
    enum pattern pattern;
    const char *groups[MAX_QPS];          /* mcast: one for each of 'qps'. */
    const char *source;                   /* a host's name; without mcast also an IPv6 address. */
    const char *receivers[MAX_RECEIVERS]; /* names; without mcast also IPv6 addresses. */
    unsigned n_receivers;
    /* Where castbench serve is the receiver, ADDRESS[:PORT]; NULL: it is on this machine. */
    const char *servers[MAX_RECEIVERS];
    int argc; /* the command line, for these. */
    char **argv;
    unsigned quorum; /* 1..n_receivers. */
    uint32_t size;
    uint32_t chunk;     /* chain-pipe: bytes that are passed on at a time; otherwise ignored. */
    uint64_t count;     /* blocks; 0: 'duration' decides, or as many as 'file' has. */
    unsigned duration;  /* seconds, if 'count' is 0. */
    uint64_t warmup;    /* blocks before those that are measured. */
    unsigned depth;     /* outstanding blocks of each QP. */
    unsigned qps;       /* connections to each peer, or groups; blocks take turns. */
    double rate;        /* open loop: blocks per second, of all QPs together; 0: closed loop. */
    uint32_t mtu;       /* path MTU; 0: the first group's, or 1024 if there is no group. */
    uint8_t qp_timeout; /* local ACK timeout; groups have their own. */
    bool ecn;           /* queue pairs say ECT(0). */
    bool poll;          /* the source looks for completions all the time, and does not sleep. */
    bool rdma_cm;       /* queue pairs are connected by RDMA-CM; only with mcast. */
    uint16_t port; /* where receivers listen then for the first group; one up for each other. */
    uint64_t seed;
    unsigned timeout;           /* seconds without progress. */
    size_t region_max;          /* 0: REGION_MAX. */
    const char *file;           /* the source's bytes (PATTERN_SEQ), or NULL. */
    const char *out;            /* folder for the regions, or NULL. */
    const char *store;          /* a receiver's region maps the file 'store'.HOST; or NULL. */
    const char *ib_dev;         /* RDMA device; NULL: the one that has the host's address. */
    int gid_index;              /* -1: the one that has the host's address. */
    const struct event *events; /* by time; only with mcast and 'duration'. */
    unsigned n_events;
    struct counter_options counted;
    unsigned interval_ms; /* between samples of the progress; not 0. */
    bool show_interval;   /* prints the samples, too. */
    struct percentiles
        percentiles; /* of latencies that are reported besides the usual; n 0: none. */
};

/* A block counts as written when the source knows that so many replicas have it. */
enum rule { RULE_ANY, RULE_QUORUM, RULE_ALL, N_RULES };

/* Of an event: when it was made, and what the registry has said of it. */
struct event_result {
    bool is_made;     /* the run was not over before. */
    uint32_t made_ms; /* since the transfer began. */
    /* When the receiver process that it began had registered; 0: it has not, or none began. */
    uint32_t registered_ms;
    uint32_t told_ms; /* when the registry said what follows from it: 'state'. */
    char state[16];   /* of the member; empty: the registry has said nothing. */
    char status[256]; /* why, if there is a reason. */
};

/* A receiver process, and what its region holds.  Without events each receiver has one. */
struct replica {
    char host[MAX_NAME];
    int begin, end; /* indexes of events that began and ended it; -1: none did. */
    /* With events: */
    bool has_first;       /* the registry, or the run's begin, says what it got at first. */
    uint32_t first_psn;   /* if so. */
    uint64_t first_block; /* The blocks that it has, the warm-up's counted, too, ... */
    uint64_t end_block;   /* ... are those before this one. */
    size_t bytes_ok;
    size_t first_bad; /* first wrong offset, if bytes_ok is less than the region's length. */
    char why[128];    /* what was seen at 'first_bad'. */
    /* From a block's start to when the source knows that this replica has it.  With mcast it is
     * empty: the network only tells when all replicas have the block. */
    struct histogram confirmed;
    /* Between blocks that the source knows it to have.  With mcast it is that of all replicas. */
    struct gap gap;
    /* From a block's start to when the receiver itself was told; empty if it is not told. */
    struct histogram arrived;
    struct host_count host_count;
    /* By RDMA-CM: until it was connected from when it listened; the longest of its QPs.  0: never. */
    uint64_t connect_ns;
};

/* A lost receiver: the group went on without it, or failed because of it. */
struct lost {
    char host[MAX_NAME];
    char why[256];
    unsigned long after_ms; /* since the transfer began. */
};

/* What the source's agent says of the rate of the run's flows. */
struct rate_sample {
    bool known;      /* the agent was asked, and has answered. */
    uint64_t rate;   /* the lowest, bit/s of Ethernet frames; 0: none is limited. */
    uint64_t n_cuts; /* since the sample before. */
    char cause[16];  /* of the newest cut of all, as the agent says it; empty: there was none. */
    char node[64];   /* who caused it; empty: that is not known. */
};

struct sample {
    uint32_t ms;    /* since the transfer began. */
    uint64_t bytes; /* of blocks that all replicas got since the sample before. */
    struct rate_sample rate;
};

enum outcome {
    OUTCOME_OK,      /* every replica holds every byte. */
    OUTCOME_PARTIAL, /* every replica does, except those of lost receivers. */
    OUTCOME_FAILED,
};

#define MAX_SAMPLES 4096 /* then every second one is dropped, and the interval doubled. */

/* Large: run_result_new() makes it. */
struct run_result {
    enum outcome outcome;
    bool complete;        /* every replica was compared. */
    char error[512];      /* why 'complete' is false. */
    uint64_t count;       /* blocks that were measured. */
    uint64_t bytes;       /* of the measured blocks, counted once for all replicas. */
    uint64_t first_block; /* the first measured one: the warm-up's are before it. */
    uint64_t overdue;     /* open loop: blocks due when the time was over that had not begun. */
    size_t region_len;
    uint32_t epochs[MAX_QPS]; /* mcast. */
    uint32_t mtu;
    uint64_t connect_ns;     /* of the source, from rdma_connect() on; the longest of its QPs. */
    uint64_t first_block_at; /* when it began, in nanoseconds since 1970; 0: it has not. */
    double seconds;   /* from the first measured block's start to the last one's completion. */
    uint64_t packets; /* request packets for the measured blocks, summed over all replicas. */
    struct histogram latency[N_RULES];
    struct gap gap; /* between blocks that all replicas have; since the first block's start. */
    bool has_skew;  /* 'skew' could be seen. */
    /* From the first to the last replica that has a block.  It is seen at the receivers if they are
     * told, otherwise at the source, and then not with mcast. */
    struct histogram skew;
    struct host_count source_count;
    struct machine_count machine;
    unsigned n_samples;
    struct sample samples[MAX_SAMPLES];
    unsigned n_lost;
    struct lost lost[MAX_RECEIVERS];
    struct event_result events[MAX_EVENTS]; /* as many as the options have. */
    unsigned n_replicas;
    struct replica replicas[MAX_LIVES]; /* those that began with the run come first. */
};

/* The caller frees the result.  NULL: out of memory. */
struct run_result *run_result_new(void);

/* Are the options possible?  To be called before anything is started.  False: a sentence in 'error'
 * says why not. */
bool run_check(const struct run_options *, char *error, size_t size);

/* Runs options that run_check() has accepted.  Fills 'result'; if the run fails, with what is known
 * by then. */
void bench_run(const struct run_options *, struct run_result *);

/* How receiver 'host' was lost; NULL: it was not. */
const struct lost *run_find_lost(const struct run_result *, const char *host);

#endif /* bench/castbench/run.h */
