/* SPDX-License-Identifier: Apache-2.0
 *
 * What is counted around a transfer.  The kernel counts for devices and
 * processes, and a host's RDMA device counts for itself.
 */
#ifndef BENCH_CASTBENCH_COUNTER_H
#define BENCH_CASTBENCH_COUNTER_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_COUNTED    1024 /* devices. */
#define MAX_FORWARDERS 256  /* processes. */

struct device_count {
    char where[80];    /* "NETNS:DEV", or "DEV" in this namespace. */
    uint64_t tx_bytes; /* with the Ethernet header. */
    uint64_t tx_packets;
};

struct process_count {
    char name[64]; /* of the node. */
    long pid;
    uint64_t started; /* no other process has had the same 'pid' and 'started'. */
    double seconds;
};

struct machine_count {
    unsigned n_devices;
    struct device_count devices[MAX_COUNTED];
    double busy_seconds;   /* of all CPUs together: whatever was not idle. */
    bool has_fabric;       /* there is a lab. */
    double fabric_seconds; /* CPU seconds of the lab's forwarders, in sum. */
    unsigned n_forwarders;
    struct process_count forwarders[MAX_FORWARDERS]; /* CPU seconds of each. */
};

/* Where to look. */
struct counter_options {
    const char *const *devices; /* those that the user names. */
    unsigned n_devices;
    /* NULL, or a lab.  It adds the devices of all its links between forwarders that are not yet
     * among 'devices'.  It also adds its forwarders' processes: of each node that runs, an Open
     * vSwitch too, but neither the registry nor castd.  What the kernel does as a router is no
     * process's. */
    const char *lab;
};

/* Reads everything.  False: a sentence in 'error' names what is not there. */
bool machine_count_read(const struct counter_options *, struct machine_count *, char *error,
                        size_t size);
/* Reduces 'after' to what has come since 'before'.  Both were read with the same options.  False: a
 * device or a process went away meanwhile, or was started anew; 'error' says which. */
bool machine_count_since(struct machine_count *after, const struct machine_count *before,
                         char *error, size_t size);

/* What a host's process has used and its RDMA device has counted. */
struct host_count {
    double cpu_seconds; /* of the calling process. */
    bool has_rdma;      /* the device has soft-RoCE's counters. */
    uint64_t repeated;  /* request packets that it got again, plus gaps that it found in them. */
    uint64_t retries;   /* times that it went back, because of its timer or a NAK. */
    uint64_t rnr_naks;  /* received. */
};

/* Takes some 30 ms if 'rdma_device' has such counters. */
void host_count_read(const char *rdma_device, struct host_count *);
void host_count_since(struct host_count *after, const struct host_count *before);

#endif /* bench/castbench/counter.h */
