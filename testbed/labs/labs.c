/* SPDX-License-Identifier: Apache-2.0
 *
 * The labs of this machine.
 */
#include <config.h>

#include "testbed/labs/labs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/registry/paths.h"
#include "lib/port.h"
#include "util.h"

#define UNKNOWN_BOOT "unknown"

/* Start time from /proc/PID/stat, and whether the process has ended.  One whose first thread has
 * ended has not, as long as another one has its files and sockets.  False: no such process. */
static bool
read_stat(pid_t pid, unsigned long long *start, bool *ended)
{
    char state;
    int n_threads;
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long) pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) {
        return false;
    }
    text[n] = '\0';
    /* The name, in parentheses, may hold anything, even parentheses; what follows it has none. */
    const char *rest = strrchr(text, ')');
    if (!rest
        || sscanf(rest + 1,
                  " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                  "%*d %*d %d %*d %llu",
                  &state, &n_threads, start)
               != 3) {
        return false;
    }
    *ended = state == 'X' || (state == 'Z' && n_threads <= 1);
    return true;
}

bool
process_identify(pid_t pid, struct process_id *id)
{
    bool ended;
    id->pid = pid;
    return read_stat(pid, &id->start, &ended);
}

bool
process_alive(struct process_id id)
{
    unsigned long long start;
    bool ended;
    return read_stat(id.pid, &start, &ended) && start == id.start && !ended;
}

struct lab_text
lab_text(const char *format, ...)
{
    struct lab_text t;
    va_list args;
    va_start(args, format);
    vsnprintf(t.text, sizeof t.text, format, args);
    va_end(args);
    return t;
}

struct lab_text
lab_folder(const char *name)
{
    return lab_text("%s/lab/%s", rocecast_rundir(), name);
}

struct lab_text
lab_file(const char *name, const char *file)
{
    return lab_text("%s/lab/%s/%s", rocecast_rundir(), name, file);
}

bool
lab_exists(const char *name)
{
    return !access(lab_file(name, "journal").text, F_OK);
}

void
lab_list(struct svec *names)
{
    svec_init(names);
    DIR *dir = opendir(lab_text("%s/lab", rocecast_rundir()).text);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (d->d_name[0] != '.' && lab_exists(d->d_name)) {
            svec_add(names, d->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    svec_sort(names);
}

struct lab_text
lab_netns_name(const char *name, const char *node)
{
    return lab_text("%s-%s", name, node);
}

struct lab_text
lab_rdma_device(const char *host)
{
    return lab_text("rxe_%s", host);
}

static const char *const kinds[] = {
    [KIND_HOST] = "host", [KIND_SWEDGE] = "swedge", [KIND_SRCAGENT] = "srcagent",
    [KIND_OVS] = "ovs",   [KIND_ROUTER] = "router",
};
WORDS_DEFINE(topology_kind, enum topology_kind, kinds);

/* The lab's facts that come before 'object' tell what it may be: with them, all that a crash has
 * left of a journal reads as the whole of it did. */
static const struct journal_entry *
next_fact(const struct journal_list *list, const struct journal_entry *object,
          const struct journal_entry *previous, const char *kind)
{
    const struct journal_entry *e = journal_next(list, previous, '.', kind, NULL);
    return e && e < object ? e : NULL;
}

static bool
is_tap(const struct journal_list *list, const struct journal_entry *object, const char *netdev)
{
    const struct journal_entry *e = NULL;
    while ((e = next_fact(list, object, e, "port"))) {
        if (!strcmp(e->fields[1], netdev) && !strcmp(e->fields[2], port_kind_name(PORT_TAP))) {
            return true;
        }
    }
    return false;
}

static bool
is_netns(const struct journal_list *list, const char *lab, const struct journal_entry *object)
{
    const struct journal_entry *e = NULL;
    while ((e = next_fact(list, object, e, "node"))) {
        if (!strcmp(lab_netns_name(lab, e->fields[0]).text, object->fields[0])) {
            return true;
        }
    }
    return false;
}

static bool
is_rdma_device(const struct journal_list *list, const struct journal_entry *object)
{
    const struct journal_entry *e = NULL;
    while ((e = next_fact(list, object, e, "node"))) {
        if (!strcmp(lab_rdma_device(e->fields[0]).text, object->fields[0])) {
            return true;
        }
    }
    return false;
}

/* Would the lab, as its facts describe it, have made this?  Returns NULL, or what it is not. */
static const char *
foreign(const struct journal_list *list, const char *lab, const struct journal_entry *e)
{
    const char *name = e->fields[0];
    enum topology_kind kind;
    if (e->op == '.' && !strcmp(e->kind, "lab")) {
        return strcmp(name, lab) ? "the name" : NULL;
    }
    if (e->op == '.') {
        bool bad_kind = !strcmp(e->kind, "node") && !topology_kind_parse(e->fields[1], &kind);
        return bad_kind ? "a node of a known kind" : NULL;
    }
    if (!strcmp(e->kind, "netns")) {
        return is_netns(list, lab, e) ? NULL : "a namespace";
    }
    if (!strcmp(e->kind, "tap")) {
        return is_tap(list, e, name) ? NULL : "a tap";
    }
    if (!strcmp(e->kind, "rxe")) {
        return is_rdma_device(list, e) && is_tap(list, e, e->fields[1]) ? NULL : "an RDMA device";
    }
    if (!strcmp(e->kind, "rule")) {
        return strtoul(name, NULL, 10) == HOST_RULE_PREF ? NULL : "the preference of a rule";
    }
    if (!strcmp(e->kind, "device-rule")) {
        return strtoul(name, NULL, 10) == DEVICE_RULE_PREF && is_tap(list, e, e->fields[1])
                   ? NULL
                   : "the preference of a tap's rule";
    }
    if (!strcmp(e->kind, "local-rule")) {
        return strtoul(name, NULL, 10) == LOCAL_RULE_PREF ? NULL
                                                          : "the preference of 'lookup local'";
    }
    return NULL; /* a process, which its start time identifies. */
}

char *
lab_read(const char *name, struct journal_list *list)
{
    const struct lab_text path = lab_file(name, "journal");
    char *error = journal_read(path.text, list);
    for (size_t i = 0; i < list->n && !error; i++) {
        const struct journal_entry *e = &list->entries[i];
        const char *what = foreign(list, name, e);
        if (what) {
            error = xasprintf("%s:%u: '%s' is not %s of lab '%s'", path.text, e->line, e->fields[0],
                              what, name);
        }
    }
    if (error) {
        journal_list_uninit(list);
    }
    return error;
}

struct lab_text
lab_boot_id(void)
{
    struct lab_text id = lab_text(UNKNOWN_BOOT);
    FILE *stream = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (stream) {
        ignore(fscanf(stream, "%63s", id.text));
        fclose(stream);
    }
    return id;
}

bool
lab_former_boot(const struct journal_list *list)
{
    const struct lab_text now = lab_boot_id();
    const struct journal_entry *e = NULL;
    while ((e = journal_next(list, e, '.', "boot", NULL))) {
        /* What is not known is no reason to leave a lab's processes alone. */
        if (strcmp(e->fields[0], now.text) != 0 && strcmp(e->fields[0], UNKNOWN_BOOT) != 0
            && strcmp(now.text, UNKNOWN_BOOT) != 0) {
            return true;
        }
    }
    return false;
}

struct process_id
lab_process_id(const struct journal_entry *e)
{
    return (struct process_id){.pid = (pid_t) atol(e->fields[1]),
                               .start = strtoull(e->fields[2], NULL, 10)};
}

const struct journal_entry *
lab_find_process(const struct journal_list *list, const char *name)
{
    const struct journal_entry *newest = NULL, *e = NULL;
    while ((e = journal_next(list, e, '+', "process", name))) {
        newest = e;
    }
    return newest;
}
