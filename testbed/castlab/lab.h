/* SPDX-License-Identifier: Apache-2.0
 *
 * A lab: its folder, and what brings it up, takes it down and describes it.
 *
 * The folder is <rundir>/lab/<name>: the journal, the registry's file and
 * socket, and for every daemon NAME.ctl (control socket), NAME.pid, NAME.log
 * and NAME.out (what it printed).
 */
#ifndef TESTBED_CASTLAB_LAB_H
#define TESTBED_CASTLAB_LAB_H 1

#include <stdbool.h>

#include "testbed/castlab/child.h"
#include "testbed/castlab/topology.h"
#include "testbed/labs/labs.h"

/* Exit codes, those of castctl. */
enum {
    EXIT_OK = 0,
    EXIT_USAGE = 1,
    EXIT_REFUSED = 2,
    EXIT_TIMEOUT = 3,
    EXIT_PARTIAL = 4,
    EXIT_INTERRUPTED = 130,
};

/* Processes that every lab has.  A forwarder's process has the name of its node. */
#define OVSDB_NAME       "ovsdb-server"
#define OVSDB_SHORT_NAME "ovsdb" /* what users may say instead. */
#define CASTD_NAME       "castd"
#define HOLDER_NAME      "holder"

/* lab.c */

/* The registry's servers are numbered from 1.  Each has a process, and files in the lab's folder. */
struct lab_text lab_server_name(unsigned int number);
/* The number of the server of which this is the process's name, or what users may say instead; 0: it
 * is none's. */
unsigned int lab_server_number(const char *name);
struct lab_text lab_server_db(const char *lab, unsigned int number);
struct lab_text lab_server_socket(const char *lab, unsigned int number);
/* How many the lab has: those with a database. */
unsigned int lab_count_servers(const char *lab);
/* All of them: unix:...,unix:... */
struct lab_text lab_db(const char *lab);
/* Holds off other castlabs that make or remove labs, until this program ends.  NULL or a malloc'd
 * error. */
char *lab_lock(void);
/* The fact that names a node; NULL: none of this name. */
const struct journal_entry *lab_find_node(const struct journal_list *, const char *name);
/* Enters the network namespace in which the lab's hosts are.  Refuses a lab of a former boot.  NULL
 * or a malloc'd error. */
char *lab_enter(const char *name, const struct journal_list *);
/* Prints an error and frees it; returns EXIT_REFUSED. */
int lab_refuse(char *error);
/* What is wrong with a lab of a former boot; malloc'd. */
char *lab_is_of_former_boot(const char *name);
void lab_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* up.c: returns an exit code; errors have been printed.  A failure undoes itself. */
struct lab_up {
    bool rdma;
    int timeout;            /* seconds for each wait. */
    unsigned int n_threads; /* of each swedge and srcagent. */
};
int lab_up(const struct topology *, const struct lab_up *);

/* down.c: returns an exit code; errors have been printed. */
int lab_down(const char *name);

/* restart.c: ends a daemon, starts it, or both.  Returns an exit code; errors have been printed. */
struct lab_restart {
    const char *daemon; /* CASTD_NAME, a registry's server or a forwarder. */
    bool stop, start;
    bool kill;   /* stop: by SIGKILL. */
    int timeout; /* start: seconds for each wait until it is back. */
};
int lab_restart(const char *name, const struct lab_restart *);

/* status.c: returns an exit code; errors have been printed. */
int lab_status(const char *name);

#endif /* testbed/castlab/lab.h */
