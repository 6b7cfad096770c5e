/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel has counted: bytes and packets that devices have sent, CPU
 * time of forwarders and of the machine, and an RDMA device's counters.
 *
 * Bytes and packets are from /proc/net/dev, which unlike sysfs shows the
 * namespace that the reader is in.
 *
 * A lab's files say what there is to count: NODE.pid in its folder is of a
 * forwarder, whose devices are in namespace LAB-NODE.
 */
#include "bench/castbench/counter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/castbench/proc.h"
#include "bench/castbench/refuse.h"

/* Devices. */

/* Opens the list of a namespace's devices (NULL: of this one).  Goes there only to open the file,
 * which stays that namespace's.  Returns NULL and sets errno on failure. */
static FILE *
open_devices(const char *netns)
{
    static const char file[] = "/proc/thread-self/net/dev";
    char path[PATH_MAX];

    if (!netns) {
        return fopen(file, "re");
    }
    if (snprintf(path, sizeof path, "/run/netns/%s", netns) >= (int) sizeof path) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    FILE *stream = NULL;
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    if (home >= 0 && there >= 0 && !setns(there, CLONE_NEWNET)) {
        stream = fopen(file, "re");
        int e = errno;
        if (setns(home, CLONE_NEWNET)) {
            abort(); /* all that follows would be in the wrong namespace. */
        }
        errno = e;
    }
    int e = errno;
    if (there >= 0) {
        close(there);
    }
    if (home >= 0) {
        close(home);
    }
    errno = e;
    return stream;
}

static struct device_count *
find_device(struct machine_count *m, const char *where)
{
    for (unsigned i = 0; i < m->n_devices; i++) {
        if (!strcmp(m->devices[i].where, where)) {
            return &m->devices[i];
        }
    }
    return NULL;
}

/* Adds a device, unless it is there already.  False: there are too many. */
static bool
add_device(struct machine_count *m, const char *netns, const struct proc_device *d)
{
    struct device_count c = {.tx_bytes = d->tx_bytes, .tx_packets = d->tx_packets};

    snprintf(c.where, sizeof c.where, "%s%s%s", netns ? netns : "", netns ? ":" : "", d->name);
    if (find_device(m, c.where)) {
        return true;
    }
    if (m->n_devices == MAX_COUNTED) {
        return false;
    }
    m->devices[m->n_devices++] = c;
    return true;
}

/* Reads one device, as a user names it. */
static bool
read_device(struct machine_count *m, const char *where, char *error, size_t size)
{
    const char *colon = strchr(where, ':');
    char netns[NAME_MAX + 1];
    struct proc_device d;
    char line[512];
    bool found = false;

    if (strlen(where) >= sizeof m->devices[0].where) {
        return refuse(error, size, "--count-bytes %s: no such namespace or device", where);
    }
    snprintf(netns, sizeof netns, "%.*s", colon ? (int) (colon - where) : 0, where);
    FILE *stream = open_devices(colon ? netns : NULL);
    if (!stream) {
        return refuse(error, size, "--count-bytes %s: %s", where,
                      errno == ENOENT ? "no such namespace or device" : strerror(errno));
    }
    const char *name = colon ? colon + 1 : where;
    while (!found && fgets(line, sizeof line, stream)) {
        found = proc_parse_device(line, &d) && !strcmp(d.name, name);
    }
    fclose(stream);
    if (!found) {
        return refuse(error, size, "--count-bytes %s: no such namespace or device", where);
    }
    return add_device(m, colon ? netns : NULL, &d)
           || refuse(error, size, "--count-bytes %s: too many devices", where);
}

/* Reads all devices of a namespace but "lo". */
static bool
read_namespace(struct machine_count *m, const char *netns, char *error, size_t size)
{
    FILE *stream = open_devices(netns);
    struct proc_device d;
    char line[512];
    bool ok = true;

    if (!stream) {
        return refuse(error, size, "namespace %s: %s", netns, strerror(errno));
    }
    while (ok && fgets(line, sizeof line, stream)) {
        ok = !proc_parse_device(line, &d) || !strcmp(d.name, "lo") || add_device(m, netns, &d);
    }
    fclose(stream);
    return ok || refuse(error, size, "namespace %s: too many devices", netns);
}

/* Processes. */

static double
seconds(uint64_t ticks)
{
    return (double) ticks / (double) sysconf(_SC_CLK_TCK);
}

/* Reads a file's first line. */
static bool
read_line(const char *path, char *line, int size)
{
    FILE *stream = fopen(path, "re");
    bool ok = stream && fgets(line, size, stream);

    if (stream) {
        fclose(stream);
    }
    return ok;
}

static bool
read_busy(struct machine_count *m, char *error, size_t size)
{
    char line[512];
    uint64_t ticks;

    if (!read_line("/proc/stat", line, sizeof line) || !proc_parse_busy(line, &ticks)) {
        return refuse(error, size, "/proc/stat : cannot be read");
    }
    m->busy_seconds = seconds(ticks);
    return true;
}

/* Reads what the process with this pid file has used. */
static bool
read_forwarder(struct machine_count *m, const char *path, const char *name, char *error,
               size_t size)
{
    struct process_count *c = &m->forwarders[m->n_forwarders];
    struct proc_process p;
    char stat[64], line[1024];

    if (m->n_forwarders == MAX_FORWARDERS) {
        return refuse(error, size, "forwarder %s: too many forwarders", name);
    }
    if (!read_line(path, line, sizeof line) || sscanf(line, "%ld", &c->pid) != 1) {
        return refuse(error, size, "forwarder %s: its pid file cannot be read", name);
    }
    snprintf(stat, sizeof stat, "/proc/%ld/stat", c->pid);
    if (!read_line(stat, line, sizeof line) || !proc_parse_process(line, &p)) {
        return refuse(error, size, "forwarder %s: does not run (castlab status)", name);
    }
    if (snprintf(c->name, sizeof c->name, "%s", name) >= (int) sizeof c->name) {
        return refuse(error, size, "forwarder %s: %s", name, strerror(ENAMETOOLONG));
    }
    c->started = p.started;
    c->seconds = seconds(p.ticks);
    m->fabric_seconds += c->seconds;
    m->n_forwarders++;
    return true;
}

/* Labs. */

static bool
ends_in(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len > end_len && !strcmp(name + len - end_len, end);
}

static int
is_pid_file(const struct dirent *e)
{
    return ends_in(e->d_name, ".pid");
}

/* A node NAME may be several processes: NAME, and of an Open vSwitch NAME.vswitchd and its database
 * NAME.ovsdb, which forwards nothing. */
static bool
read_pid_file(struct machine_count *m, const char *lab, const char *folder, const char *file,
              char *error, size_t size)
{
    char name[NAME_MAX + 1], netns[2 * NAME_MAX], path[PATH_MAX];

    snprintf(name, sizeof name, "%.*s", (int) strlen(file) - 4, file);
    if (!strcmp(name, "castd") || !strncmp(name, "ovsdb-server", strlen("ovsdb-server"))
        || ends_in(name, ".ovsdb")) {
        return true;
    }
    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int) sizeof path) {
        return refuse(error, size, "--lab %s: %s", lab, strerror(ENAMETOOLONG));
    }
    if (!read_forwarder(m, path, name, error, size)) {
        return false;
    }
    snprintf(netns, sizeof netns, "%s-%s", lab, name);
    return ends_in(name, ".vswitchd") || read_namespace(m, netns, error, size);
}

static bool
read_lab(struct machine_count *m, const char *lab, char *error, size_t size)
{
    const char *run = getenv("ROCECAST_RUNDIR");
    char folder[PATH_MAX];
    struct dirent **files = NULL;
    bool ok = true;

    if (strchr(lab, '/')
        || snprintf(folder, sizeof folder, "%s/lab/%s", run && run[0] ? run : "/run/rocecast", lab)
               >= (int) sizeof folder) {
        return refuse(error, size, "--lab %s: no such lab", lab);
    }
    int n = scandir(folder, &files, is_pid_file, versionsort);
    if (n < 0) {
        return refuse(error, size, "--lab %s: %s", lab,
                      errno == ENOENT ? "no such lab" : strerror(errno));
    }
    for (int i = 0; i < n; i++) {
        ok = ok && read_pid_file(m, lab, folder, files[i]->d_name, error, size);
        free(files[i]);
    }
    free(files);
    if (ok && !m->n_forwarders) {
        return refuse(error, size, "--lab %s: none of its forwarders runs", lab);
    }
    m->has_fabric = true;
    return ok;
}

bool
machine_count_read(const struct counter_options *o, struct machine_count *m, char *error,
                   size_t size)
{
    *m = (struct machine_count){0};
    for (unsigned i = 0; i < o->n_devices; i++) {
        if (!read_device(m, o->devices[i], error, size)) {
            return false;
        }
    }
    return (!o->lab || read_lab(m, o->lab, error, size)) && read_busy(m, error, size);
}

/* A device that is not in 'before' has counted from 0. */
static bool
devices_since(struct machine_count *after, const struct machine_count *before, char *error,
              size_t size)
{
    for (unsigned i = 0; i < before->n_devices; i++) {
        const struct device_count *b = &before->devices[i];
        struct device_count *a = find_device(after, b->where);
        if (!a) {
            return refuse(error, size, "device %s: went away during the run", b->where);
        }
        if (a->tx_bytes < b->tx_bytes || a->tx_packets < b->tx_packets) {
            return refuse(error, size, "device %s: was made anew during the run", b->where);
        }
        a->tx_bytes -= b->tx_bytes;
        a->tx_packets -= b->tx_packets;
    }
    return true;
}

static bool
forwarders_since(struct machine_count *after, const struct machine_count *before, char *error,
                 size_t size)
{
    for (unsigned i = 0; i < before->n_forwarders; i++) {
        const struct process_count *b = &before->forwarders[i];
        unsigned j = 0;
        while (j < after->n_forwarders && strcmp(after->forwarders[j].name, b->name) != 0) {
            j++;
        }
        if (j == after->n_forwarders) {
            return refuse(error, size, "forwarder %s: was stopped during the run", b->name);
        }
        struct process_count *a = &after->forwarders[j];
        if (a->pid != b->pid || a->started != b->started) {
            return refuse(error, size, "forwarder %s: was started anew during the run", b->name);
        }
        a->seconds -= b->seconds;
    }
    after->fabric_seconds = 0;
    for (unsigned i = 0; i < after->n_forwarders; i++) {
        after->fabric_seconds += after->forwarders[i].seconds;
    }
    return true;
}

bool
machine_count_since(struct machine_count *after, const struct machine_count *before, char *error,
                    size_t size)
{
    after->busy_seconds -= before->busy_seconds;
    return devices_since(after, before, error, size)
           && forwarders_since(after, before, error, size);
}

/* Hosts. */

/* Reads a counter.  Only soft-RoCE's have these names, the same in Linux 6.1 and 6.12. */
static bool
read_rdma(const char *device, const char *name, uint64_t *value)
{
    char path[PATH_MAX], line[32];

    return snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/hw_counters/%s", device,
                    name)
               < (int) sizeof path
           && read_line(path, line, sizeof line) && sscanf(line, "%" SCNu64, value) == 1;
}

/* Waits until what has happened by now is seen.  The kernel reads counters afresh only when it last
 * did so more than "lifespan" milliseconds ago, and it counts in ticks of up to 10 ms. */
static void
wait_until_seen(const char *device)
{
    uint64_t ms;

    if (read_rdma(device, "lifespan", &ms)) {
        ms += 20;
        struct timespec left = {.tv_sec = (time_t) (ms / 1000),
                                .tv_nsec = (long) (ms % 1000) * 1000000};
        while (nanosleep(&left, &left) && errno == EINTR) {
        }
    }
}

void
host_count_read(const char *rdma_device, struct host_count *c)
{
    uint64_t duplicate, out_of_order;
    struct timespec cpu;

    *c = (struct host_count){0};
    if (!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu)) {
        c->cpu_seconds = (double) cpu.tv_sec + (double) cpu.tv_nsec / 1e9;
    }
    if (rdma_device) {
        wait_until_seen(rdma_device);
    }
    /* completer_retry_err also counts retries because of a NAK. */
    if (rdma_device && read_rdma(rdma_device, "duplicate_request", &duplicate)
        && read_rdma(rdma_device, "out_of_seq_request", &out_of_order)
        && read_rdma(rdma_device, "completer_retry_err", &c->retries)
        && read_rdma(rdma_device, "rcvd_rnr_err", &c->rnr_naks)) {
        c->repeated = duplicate + out_of_order;
        c->has_rdma = true;
    }
}

void
host_count_since(struct host_count *after, const struct host_count *before)
{
    after->cpu_seconds -= before->cpu_seconds;
    after->has_rdma = after->has_rdma && before->has_rdma;
    if (!after->has_rdma) {
        after->repeated = after->retries = after->rnr_naks = 0;
        return;
    }
    after->repeated -= before->repeated;
    after->retries -= before->retries;
    after->rnr_naks -= before->rnr_naks;
}
