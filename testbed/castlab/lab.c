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
#include "lib/printable.h"
#include "testbed/castlab/netops.h"
#include "util.h"

/* The names of the first are those of a registry with one server. */
static struct lab_text
numbered(const char *name, unsigned int number, const char *end)
{
    return number == 1 ? lab_text("%s%s", name, end) : lab_text("%s-%u%s", name, number, end);
}

struct lab_text
lab_server_name(unsigned int number)
{
    return numbered(OVSDB_NAME, number, "");
}

struct lab_text
lab_server_db(const char *lab, unsigned int number)
{
    return lab_file(lab, numbered("registry", number, ".db").text);
}

struct lab_text
lab_server_socket(const char *lab, unsigned int number)
{
    return lab_file(lab, numbered("db", number, ".sock").text);
}

unsigned int
lab_count_servers(const char *lab)
{
    unsigned int n = 1;

    while (n < REGISTRY_MAX_SERVERS && !access(lab_server_db(lab, n + 1).text, F_OK)) {
        n++;
    }
    return n;
}

struct lab_text
lab_db(const char *lab)
{
    struct lab_text all = lab_text("unix:%s", lab_server_socket(lab, 1).text);

    for (unsigned int i = 2; i <= lab_count_servers(lab); i++) {
        all = lab_text("%s,unix:%s", all.text, lab_server_socket(lab, i).text);
    }
    return all;
}

int
lab_refuse(char *error)
{
    lab_complain("%s", error);
    free(error);
    return EXIT_REFUSED;
}

void
lab_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printable_line(stderr, "castlab: ", format, args);
    va_end(args);
}

char *
lab_lock(void)
{
    const struct lab_text folder = lab_text("%s/lab", rocecast_rundir());
    int fd = -1;
    if ((!mkdir(rocecast_rundir(), 0755) || errno == EEXIST)
        && (!mkdir(folder.text, 0755) || errno == EEXIST)) {
        fd = open(folder.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return fd < 0 || flock(fd, LOCK_EX) ? xasprintf("%s: %s", folder.text, ovs_strerror(errno))
                                        : NULL;
}

const struct journal_entry *
lab_find_node(const struct journal_list *list, const char *name)
{
    return journal_next(list, NULL, '.', "node", name);
}

char *
lab_is_of_former_boot(const char *name)
{
    return xasprintf("lab '%s' is from before this machine booted: castlab down %s removes its "
                     "files",
                     name, name);
}

/* Opens the network namespace with this inode, which is that of one of the lab's processes.  Nearly
 * all were started there: an Open vSwitch is in its node's. */
static int
open_process_netns(const struct journal_list *list, uint64_t inode)
{
    const struct journal_entry *e = NULL;
    while ((e = journal_next(list, e, '+', "process", NULL))) {
        if (process_alive(lab_process_id(e))) {
            long pid = lab_process_id(e).pid;
            int fd = open(lab_text("/proc/%ld/ns/net", pid).text, O_RDONLY | O_CLOEXEC);
            if (fd >= 0 && netns_inode(lab_text("/proc/self/fd/%d", fd).text) == inode) {
                return fd;
            }
            if (fd >= 0) {
                close(fd);
            }
        }
    }
    return -1;
}

char *
lab_enter(const char *name, const struct journal_list *list)
{
    if (lab_former_boot(list)) {
        return lab_is_of_former_boot(name);
    }
    const struct journal_entry *fact = journal_find(list, "netns");
    uint64_t inode = fact ? strtoull(fact->fields[0], NULL, 10) : 0;
    if (!fact || inode == netns_inode("/proc/self/ns/net")) {
        return NULL;
    }
    int fd = open_process_netns(list, inode);
    if (fd < 0) {
        return xasprintf("lab '%s' was made in another network namespace and none of its "
                         "processes runs: run castlab there, or remove %s if that namespace is "
                         "gone",
                         name, lab_folder(name).text);
    }
    char *error = setns(fd, CLONE_NEWNET) ? xasprintf("entering the network namespace of lab "
                                                      "'%s': %s",
                                                      name, ovs_strerror(errno))
                                          : NULL;
    close(fd);
    return error;
}
