/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of /proc that hold counters.
 *
 * All return false if a line is not of that form, such as a heading.
 */
#ifndef BENCH_CASTBENCH_PROC_H
#define BENCH_CASTBENCH_PROC_H 1

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct proc_device {
    char name[IFNAMSIZ];
    uint64_t tx_bytes;
    uint64_t tx_packets;
};

/* A line of /proc/net/dev. */
bool proc_parse_device(const char *line, struct proc_device *);

struct proc_process {
    uint64_t ticks;   /* of CPU time, its own and the kernel's on its behalf. */
    uint64_t started; /* ticks since the machine's start; with its id, unique to a process. */
};

/* /proc/PID/stat. */
bool proc_parse_process(const char *line, struct proc_process *);

/* The first line of /proc/stat.  '*ticks' are those of all CPUs together that were not idle. */
bool proc_parse_busy(const char *line, uint64_t *ticks);

#endif /* bench/castbench/proc.h */
