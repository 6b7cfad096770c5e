/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks for machines with forwarders or labs: devices, privileges, what
 * earlier runs have left.
 */
#include <config.h>

#include "ctl/doctor/checks.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/registry/paths.h"
#include "openvswitch/dynamic-string.h"
#include "testbed/labs/labs.h"
#include "util.h"

/* Size of a socket's path, with the 0 at the end. */
#define SUN_PATH_SIZE sizeof(((struct sockaddr_un *) 0)->sun_path)

void
doctor_tun(struct doctor *d)
{
    char *path = doctor_path("/dev/net/tun");
    if (!access(path, R_OK | W_OK)) {
        doctor_ok(d, "%s may be opened", path);
    } else if (errno == ENOENT) {
        doctor_add(d, DOCTOR_PROBLEM, xasprintf("%s is missing: no taps", path),
                   xstrdup("modprobe tun; mkdir -p /dev/net && mknod -m 666 /dev/net/tun c 10 200; "
                           "in a container give it /dev/net/tun"));
    } else {
        doctor_add(d, DOCTOR_PROBLEM, xasprintf("%s: %s", path, ovs_strerror(errno)),
                   xstrdup("run as root, or chmod 666 /dev/net/tun"));
    }
    free(path);
}

void
doctor_capabilities(struct doctor *d)
{
    static const struct {
        unsigned int number;
        const char *name;
    } needed[] = {
        {CAP_NET_ADMIN, "CAP_NET_ADMIN"},
        {CAP_NET_RAW, "CAP_NET_RAW"},
        {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, /* to enter network namespaces. */
    };
    struct ds missing = DS_EMPTY_INITIALIZER;
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        if (!doctor_has_capability(needed[i].number)) {
            ds_put_format(&missing, "%s%s", missing.length ? ", " : "", needed[i].name);
        }
    }
    if (!missing.length) {
        doctor_ok(d, "those that swedge, srcagent and castlab need");
    } else if (geteuid()) {
        doctor_add(d, DOCTOR_WARNING, xstrdup("not root: swedge, srcagent and castlab need that"),
                   xstrdup("run this as root to see what they would find"));
    } else {
        doctor_add(d, DOCTOR_PROBLEM,
                   xasprintf("root, but without %s: swedge, srcagent and castlab need them",
                             ds_cstr(&missing)),
                   xstrdup("start the container with them (docker: --cap-add, or --privileged)"));
    }
    ds_destroy(&missing);
}

void
doctor_xdp(struct doctor *d)
{
    if (!doctor_contains(doctor_path("/proc/net/protocols"), "XDP ")) {
        doctor_ok(d, "none, and none is needed: this kernel has no AF_XDP for ports of kind xdp");
    } else if (!doctor_kernel_since(6, 8)) {
        doctor_ok(d, "ports of kind xdp on NICs; on veths they need Linux 6.8");
    } else {
        doctor_ok(d, "ports of kind xdp on NICs and veths");
    }
}

void
doctor_kvm(struct doctor *d)
{
    /* Nothing is booted to find out: testbed/vm/run does that. */
    char *path = doctor_path("/dev/kvm");
    if (!access(path, R_OK | W_OK)) {
        doctor_ok(d, "/dev/kvm may be opened: testbed/vm/run uses it if a trial boot works");
    } else if (errno == ENOENT) {
        doctor_ok(d, "no /dev/kvm, and none is needed: testbed/vm/run emulates the CPU");
    } else {
        doctor_ok(d,
                  "/dev/kvm may not be opened, and need not be: testbed/vm/run emulates the CPU");
    }
    free(path);
}

/*
 * Sockets.
 */

char *
doctor_socket_path(const char *path)
{
    return strlen(path) < SUN_PATH_SIZE
               ? NULL
               : xasprintf("%s: longer than a socket's path may be (%zu bytes, at most %zu)", path,
                           strlen(path), SUN_PATH_SIZE - 1);
}

void
doctor_socket_paths(struct doctor *d)
{
    /* The registry's, and one of a daemon whose name is short. */
    char *paths[] = {
        strncmp(d->db, "unix:", 5) || strchr(d->db, ',') ? NULL : xstrdup(d->db + 5),
        xasprintf("%s/ovsdb-server.ctl", rocecast_rundir()),
    };
    size_t before = d->n;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        char *error = paths[i] ? doctor_socket_path(paths[i]) : NULL;
        if (error) {
            doctor_add(d, DOCTOR_PROBLEM, error,
                       xstrdup("set ROCECAST_RUNDIR (default /run/rocecast) or ROCECAST_DB to a "
                               "shorter path"));
        }
        free(paths[i]);
    }
    if (d->n == before) {
        doctor_ok(d, "sockets are below %s", rocecast_rundir());
    }
}

/* 0: somebody listens there; otherwise the errno that says why not. */
static int
knock(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= SUN_PATH_SIZE) {
        return ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    int error = connect(fd, (const struct sockaddr *) &address, sizeof address) ? errno : 0;
    close(fd);
    return error;
}

void
doctor_sockets(struct doctor *d)
{
    struct svec names;
    size_t before = d->n, n_live = 0;
    doctor_names(xstrdup(rocecast_rundir()), "", &names);
    for (size_t i = 0; i < names.n; i++) {
        char *path = xasprintf("%s/%s", rocecast_rundir(), names.names[i]);
        bool is_socket = string_ends_with(path, ".ctl") || string_ends_with(path, ".sock");
        int error = is_socket ? knock(path) : 0;
        if (error == ECONNREFUSED) {
            doctor_add(d, DOCTOR_WARNING,
                       xasprintf("%s: nobody listens there: its daemon has died", path),
                       xasprintf("start that daemon again, or rm %s", path));
        } else if (error) {
            doctor_add(d, DOCTOR_WARNING, xasprintf("%s: %s", path, ovs_strerror(error)),
                       xstrdup("run this as root"));
        }
        n_live += is_socket && !error;
        free(path);
    }
    if (d->n == before) {
        doctor_ok(d, "%zu in %s, all served", n_live, rocecast_rundir());
    }
    svec_destroy(&names);
}

/*
 * Labs.
 */

/* Counts a lab's processes, by the journal's last entry for each.  Returns how many are dead, and
 * names one of those. */
static size_t
count_dead(const struct journal_list *list, size_t *n_processes, const char **dead)
{
    size_t n_dead = 0;
    *n_processes = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct journal_entry *e = &list->entries[i];
        if (e->op == '+' && !strcmp(e->kind, "process")
            && lab_find_process(list, e->fields[0]) == e) {
            ++*n_processes;
            if (!process_alive(lab_process_id(e))) {
                *dead = e->fields[0];
                n_dead++;
            }
        }
    }
    return n_dead;
}

static void
check_lab(struct doctor *d, const char *name)
{
    struct journal_list list;
    const char *dead = NULL;
    size_t n_processes;
    char *error = lab_read(name, &list);
    if (error) {
        doctor_add(d, DOCTOR_WARNING, error, xstrdup("look at the journal; castlab needs it"));
        return;
    }
    size_t n_dead = count_dead(&list, &n_processes, &dead);
    if (lab_former_boot(&list)) {
        doctor_add(d, DOCTOR_WARNING,
                   xasprintf("lab '%s' is from before this machine booted", name),
                   xasprintf("castlab down %s", name));
    } else if (n_dead == n_processes) {
        doctor_add(d, DOCTOR_WARNING,
                   xasprintf("lab '%s' is left over from an earlier run: none of its %zu "
                             "processes runs",
                             name, n_processes),
                   xasprintf("castlab down %s", name));
    } else if (n_dead) {
        doctor_add(d, DOCTOR_WARNING,
                   xasprintf("lab '%s': %zu of its %zu processes are dead, among them %s", name,
                             n_dead, n_processes, dead),
                   xasprintf("castlab restart %s -l %s, or castlab down %s", dead, name, name));
    } else if (!journal_find(&list, "up")) {
        doctor_add(d, DOCTOR_WARNING,
                   xasprintf("lab '%s' is coming up, or that was cut short", name),
                   xasprintf("if no 'castlab up' runs: castlab down %s", name));
    } else {
        doctor_ok(d, "lab '%s' is up", name);
    }
    journal_list_uninit(&list);
}

void
doctor_labs(struct doctor *d)
{
    struct svec names;
    lab_list(&names);
    for (size_t i = 0; i < names.n; i++) {
        check_lab(d, names.names[i]);
    }
    if (!names.n) {
        doctor_ok(d, "no lab below %s", rocecast_rundir());
    }
    svec_destroy(&names);
}
