/* SPDX-License-Identifier: Apache-2.0
 *
 * What all commands need to know of a lab.
 */
#include <config.h>

#include "testbed/castlab/lab.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/registry/paths.h"
#include "testbed/castlab/netops.h"
#include "util.h"

char *
lab_db(const char *name)
{
    return xasprintf("unix:%s/lab/%s/db.sock", rocecast_rundir(), name);
}

char *
lab_netns_name(const char *name, const char *node)
{
    return xasprintf("%s-%s", name, node);
}

void
lab_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "castlab: ");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

char *
lab_lock(void)
{
    char *folder = xasprintf("%s/lab", rocecast_rundir());
    int fd = -1;
    if ((!mkdir(rocecast_rundir(), 0755) || errno == EEXIST)
        && (!mkdir(folder, 0755) || errno == EEXIST)) {
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    char *error = NULL;
    if (fd < 0 || flock(fd, LOCK_EX)) {
        error = xasprintf("%s: %s", folder, ovs_strerror(errno));
    }
    free(folder);
    return error;
}

const struct journal_entry *
lab_find_node(const struct journal_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct journal_entry *e = &list->entries[i];
        if (e->op == '.' && !strcmp(e->kind, "node") && !strcmp(e->fields[0], name)) {
            return e;
        }
    }
    return NULL;
}

/* Opens the network namespace of one of the lab's processes.  All were started
 * in the hosts' namespace. */
static int
open_process_netns(const struct journal_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct journal_entry *e = &list->entries[i];
        if (e->op == '+' && !strcmp(e->kind, "process") && process_alive(lab_process_id(e))) {
            char *path = xasprintf("/proc/%ld/ns/net", (long) lab_process_id(e).pid);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            free(path);
            if (fd >= 0) {
                return fd;
            }
        }
    }
    return -1;
}

char *
lab_enter(const char *name, const struct journal_list *list)
{
    const struct journal_entry *fact = journal_find(list, "netns");
    if (!fact || strtoull(fact->fields[0], NULL, 10) == netns_inode("/proc/self/ns/net")) {
        return NULL;
    }
    int fd = open_process_netns(list);
    if (fd < 0) {
        char *folder = lab_folder(name);
        char *error = xasprintf("lab '%s' was made in another network namespace and none of its "
                                "processes runs: run castlab there, or remove %s if that "
                                "namespace is gone",
                                name, folder);
        free(folder);
        return error;
    }
    char *error = setns(fd, CLONE_NEWNET) ? xasprintf("entering the network namespace of lab "
                                                      "'%s': %s",
                                                      name, ovs_strerror(errno))
                                          : NULL;
    close(fd);
    return error;
}
