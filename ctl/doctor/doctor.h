/* SPDX-License-Identifier: Apache-2.0
 *
 * What on this machine stands in the way of rocecast, and what to do about it.
 *
 * The checks only look: they load no module, start no machine, send no packet.
 * If $ROCECAST_SYSROOT is set, they look for /sys, /proc, /dev and /lib below
 * it: tests seed faults there.
 */
#ifndef CTL_DOCTOR_DOCTOR_H
#define CTL_DOCTOR_DOCTOR_H 1

#include <stdbool.h>
#include <stddef.h>

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_WARNING, /* worth knowing, or could not be seen. */
    DOCTOR_PROBLEM, /* something will not work. */
};

/* What a machine is used for: it decides which checks matter. */
enum doctor_role {
    DOCTOR_HOST = 1 << 0,      /* queue pairs, soft-RoCE or a RoCE NIC. */
    DOCTOR_FORWARDER = 1 << 1, /* swedge or srcagent. */
    DOCTOR_LAB = 1 << 2,       /* castlab. */
};

struct doctor_finding {
    const char *check;
    enum doctor_state state;
    char *found;
    char *fix; /* NULL: nothing to do. */
};

struct doctor {
    unsigned int roles;    /* DOCTOR_x that the machine has. */
    unsigned int path_mtu; /* wanted for queue pairs, bytes. */
    const char *db;        /* the registry, or several remotes with commas between. */
    bool db_wanted;        /* somebody named the registry: it must be there. */
    long long deadline;    /* for the registry's answers, on time_msec()'s scale. */

    /* Results. */
    bool unreachable; /* the wanted registry cannot be used. */
    size_t n;
    struct doctor_finding *findings;
    const char *check; /* name of the running check. */
};

/* Runs the checks for d->roles, in order. */
void doctor_run(struct doctor *d);
/* Runs the check with this name. */
void doctor_run_one(struct doctor *d, const char *check);
void doctor_uninit(struct doctor *d);

const char *doctor_state_name(enum doctor_state);
/* The worst finding's state. */
enum doctor_state doctor_worst(const struct doctor *);

/* NULL if a socket may have this path, otherwise a malloc'd error. */
char *doctor_socket_path(const char *path);

#endif /* ctl/doctor/doctor.h */
