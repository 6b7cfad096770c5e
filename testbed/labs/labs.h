/* SPDX-License-Identifier: Apache-2.0
 *
 * The labs of this machine: their folders, <rundir>/lab/<name>, and processes
 * as their journals name them.
 */
#ifndef TESTBED_LABS_LABS_H
#define TESTBED_LABS_LABS_H 1

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/words.h"
#include "svec.h"
#include "testbed/labs/journal.h"

/* A process as the kernel knows it: the pid alone may have been reused. */
struct process_id {
    pid_t pid;
    unsigned long long start; /* field 22 of /proc/PID/stat. */
};

/* The process that has this pid now; false: there is none. */
bool process_identify(pid_t, struct process_id *);
/* Does it still run?  A zombie does not. */
bool process_alive(struct process_id);

/* A name or a path, by value.  One that is cut off is too long for every system call. */
struct lab_text {
    char text[PATH_MAX + 16];
};
struct lab_text lab_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct lab_text lab_folder(const char *name);
struct lab_text lab_file(const char *name, const char *file);

/* What a node is.  A forwarder is a swedge, a srcagent, an Open vSwitch or the kernel. */
enum topology_kind { KIND_HOST, KIND_SWEDGE, KIND_SRCAGENT, KIND_OVS, KIND_ROUTER };
WORDS_DECLARE(topology_kind, enum topology_kind);

/* Names of all labs, sorted. */
void lab_list(struct svec *names);
bool lab_exists(const char *name);

/* Preferences of a host's rules, and where the kernel's 'lookup local' goes behind them. */
#define DEVICE_RULE_PREF 9
#define HOST_RULE_PREF   10
#define LOCAL_RULE_PREF  100
/* Name of a forwarder's namespace. */
struct lab_text lab_netns_name(const char *name, const char *node);
/* Name of a host's RDMA device. */
struct lab_text lab_rdma_device(const char *host);

/* The lab's journal, which names no object that the lab would not make.  NULL or a malloc'd error
 * that names file and line. */
char *lab_read(const char *name, struct journal_list *);
/* Identity of this boot of the machine. */
struct lab_text lab_boot_id(void);
/* Was the lab made before the machine booted?  Then none of its objects exists, whatever has their
 * names and numbers now. */
bool lab_former_boot(const struct journal_list *);
struct process_id lab_process_id(const struct journal_entry *);
/* The newest process of the lab with this name; NULL: there is none. */
const struct journal_entry *lab_find_process(const struct journal_list *, const char *name);

#endif /* testbed/labs/labs.h */
