/* SPDX-License-Identifier: Apache-2.0
 *
 * What is counted around a transfer: by the kernel, of devices and processes,
 * and by a host's RDMA device.
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
    uint64_t started; /* no other process has had both. */
    double seconds;
};

struct machine_count {
    unsigned n_devices;
    struct device_count devices[MAX_COUNTED];
    double busy_seconds;   /* of all CPUs together: whatever was not idle. */
    bool has_fabric;       /* with a lab: */
    double fabric_seconds; /* CPU seconds of its forwarders, in sum, ... */
    unsigned n_forwarders; /* ... and of each. */
    struct process_count forwarders[MAX_FORWARDERS];
};

/* Where to look.  'devices' are of the user; 'lab' (or NULL) adds those of all its links between
 * forwarders that are not yet among them, and its forwarders' processes: of each node that runs,
 * an Open vSwitch too, but neither the registry nor castd.  What the kernel does as a router is no
 * process's. */
struct counter_options {
    const char *const *devices;
    unsigned n_devices;
    const char *lab;
};

/* Reads everything.  False: a sentence is in 'error' that names what is not there. */
bool machine_count_read(const struct counter_options *, struct machine_count *, char *error,
                        size_t size);
/* Makes of 'after' what has come since 'before', which is of the same options.  False: a device or
 * a process went away meanwhile, or was started anew; 'error' says which. */
bool machine_count_since(struct machine_count *after, const struct machine_count *before,
                         char *error, size_t size);

/* What a host's process has used and its RDMA device has counted. */
struct host_count {
    double cpu_seconds; /* of the calling process. */
    bool has_rdma;      /* the device has soft-RoCE's counters. */
    uint64_t repeated;  /* request packets that it got again, and gaps that it found in them. */
    uint64_t retries;   /* times that it went back: its timer, or a NAK. */
    uint64_t rnr_naks;  /* received. */
};

/* Takes some 30 ms if there is such a device. */
void host_count_read(const char *rdma_device, struct host_count *);
void host_count_since(struct host_count *after, const struct host_count *before);

#endif /* bench/castbench/counter.h */
