/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes sent by a device (see counter.h), from /proc/net/dev: unlike sysfs it
 * shows the namespace that the reader is in.
 */
#include "bench/counter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In /proc/net/dev, "bytes" of the transmit half is the ninth number. */
static bool
device_tx_bytes(const char *dev, uint64_t *tx_bytes)
{
    char line[512], name[IFNAMSIZ];
    bool found = false;
    FILE *f = fopen("/proc/thread-self/net/dev", "re");

    while (f && !found && fgets(line, sizeof line, f)) {
        found =
            sscanf(line, " %15[^: ]: %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, name, tx_bytes) == 2
            && !strcmp(name, dev);
    }
    if (f) {
        fclose(f);
    }
    return found;
}

/* Enters the namespace for the time of reading. */
static bool
tx_bytes_get(const char *where, uint64_t *tx_bytes)
{
    const char *colon = strchr(where, ':');
    char path[300];

    if (!colon) {
        return device_tx_bytes(where, tx_bytes);
    }
    snprintf(path, sizeof path, "/run/netns/%.*s", (int) (colon - where), where);
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = home >= 0 && there >= 0 && !setns(there, CLONE_NEWNET);
    if (ok) {
        ok = device_tx_bytes(colon + 1, tx_bytes);
        ok = !setns(home, CLONE_NEWNET) && ok;
    }
    if (there >= 0) {
        close(there);
    }
    if (home >= 0) {
        close(home);
    }
    return ok;
}

bool
counter_start(struct counter *c, const char *where, char *error, size_t size)
{
    c->where = where;
    if (!tx_bytes_get(where, &c->before)) {
        snprintf(error, size, "--count-bytes %s: no such namespace or device", where);
        return false;
    }
    return true;
}

bool
counter_stop(const struct counter *c, uint64_t *tx_bytes, char *error, size_t size)
{
    uint64_t after;

    if (!tx_bytes_get(c->where, &after)) {
        snprintf(error, size, "--count-bytes %s: the device went away", c->where);
        return false;
    }
    *tx_bytes = after - c->before;
    return true;
}
