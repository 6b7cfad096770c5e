/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks for hosts with queue pairs: soft-RoCE in the kernel, RDMA devices,
 * what verbs programs need.
 */
#include <config.h>

#include "ctl/doctor/checks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/wire.h"
#include "util.h"

#define CLASS         "/sys/class/infiniband"
/* Below this much lockable memory a warning is due. */
#define MEMLOCK_USUAL ((rlim_t) 64 << 20)

#define NO_RDMA_HINT \
    "a machine that runs only castd, swedge or srcagent needs none (castctl doctor --role switch)"

void
doctor_rdma_devices(struct svec *devices)
{
    doctor_names(doctor_path(CLASS), "", devices);
}

static bool
module_is_loaded(const char *name)
{
    return doctor_exists(doctor_path("/sys/module/%s", name));
}

/* Whether the running kernel has the module, loaded, built in or on the disk. */
static bool
module_exists(const char *name)
{
    char *release = doctor_line(doctor_path("/proc/sys/kernel/osrelease"));
    char *file = xasprintf("/%s.ko", name);
    bool exists = module_is_loaded(name);
    if (release && !exists) {
        exists = doctor_contains(doctor_path("/lib/modules/%s/modules.dep", release), file)
                 || doctor_contains(doctor_path("/lib/modules/%s/modules.builtin", release), file);
    }
    free(file);
    free(release);
    return exists;
}

void
doctor_rdma_rxe(struct doctor *d)
{
    struct svec devices;
    doctor_rdma_devices(&devices);
    if (module_is_loaded("rdma_rxe")) {
        doctor_ok(d, "loaded");
    } else if (module_exists("rdma_rxe")) {
        doctor_ok(d, "not loaded; 'rdma link add ... type rxe' loads it");
    } else if (devices.n) {
        doctor_ok(d, "this kernel has none; there is RDMA device %s", devices.names[0]);
    } else {
        doctor_add(d, DOCTOR_PROBLEM, xstrdup("this kernel has no module rdma_rxe (soft-RoCE)"),
                   xstrdup("boot a kernel that has it (Debian: linux-image-amd64; cloud kernels "
                           "lack it), or run the lab in testbed/vm/run; " NO_RDMA_HINT));
    }
    svec_destroy(&devices);
}

void
doctor_crc32(struct doctor *d)
{
    if (doctor_kernel_since(6, 15)) {
        doctor_ok(d, "rdma_rxe of this kernel needs no module for it");
    } else if (doctor_contains(doctor_path("/proc/crypto"), ": crc32\n")) {
        doctor_ok(d, "there");
    } else if (module_exists("crc32_generic")) {
        doctor_ok(d, "crc32_generic is not loaded; rdma_rxe loads it");
    } else {
        doctor_add(d, DOCTOR_PROBLEM,
                   xstrdup("this kernel has no crc32 (crypto API): 'rdma link add' fails"),
                   xstrdup("install the kernel's modules (crc32_generic); modprobe crc32_generic"));
    }
}

void
doctor_rxe_netns(struct doctor *d)
{
    /* The kernel has netdev_max_backlog once, and shows it in the initial namespace only.
     * Comparing with process 1 would need root, and in a container process 1 is the container's. */
    if (doctor_kernel_since(7, 1)) {
        doctor_ok(d, "soft-RoCE of this kernel works in any namespace");
    } else if (doctor_exists(doctor_path("/proc/sys/net/core/netdev_max_backlog"))) {
        doctor_ok(d, "this is the initial network namespace");
    } else if (!doctor_exists(doctor_path("/proc/sys/net/core"))) {
        doctor_add(d, DOCTOR_WARNING,
                   xstrdup("cannot see whether this is the initial network namespace: no "
                           "/proc/sys/net/core"),
                   xstrdup("mount -t proc proc /proc"));
    } else {
        doctor_add(d, DOCTOR_PROBLEM,
                   xstrdup("soft-RoCE before Linux 7.1 works in the initial network namespace "
                           "only, and this is another: 'rdma link add' would succeed, but "
                           "nothing would arrive"),
                   xstrdup("make RDMA devices in the initial namespace: nsenter -t 1 -n (docker: "
                           "--network host), or testbed/vm/run"));
    }
}

void
doctor_infiniband(struct doctor *d)
{
    struct svec devices, files;
    size_t before = d->n;
    doctor_rdma_devices(&devices);
    doctor_names(doctor_path("/dev/infiniband"), "uverbs", &files);
    for (size_t i = 0; i < files.n; i++) {
        char *path = doctor_path("/dev/infiniband/%s", files.names[i]);
        if (access(path, R_OK | W_OK)) {
            doctor_add(d, DOCTOR_PROBLEM, xasprintf("%s: %s", path, ovs_strerror(errno)),
                       xasprintf("run verbs programs as root, or make it accessible by a udev "
                                 "rule: chmod 666 %s",
                                 path));
        }
        free(path);
    }
    if (devices.n && !files.n) {
        doctor_add(
            d, DOCTOR_PROBLEM,
            xasprintf("there is RDMA device %s but no /dev/infiniband/uverbs*", devices.names[0]),
            xstrdup("modprobe ib_uverbs; in a container give it /dev/infiniband"));
    } else if (d->n == before) {
        doctor_add(d, DOCTOR_OK,
                   files.n ? xasprintf("%zu devices may be opened", files.n)
                           : xstrdup("no RDMA device yet"),
                   NULL);
    }
    svec_destroy(&files);
    svec_destroy(&devices);
}

/* Which kinds of address a device's GID table has, and the first usable one. */
struct gid_table {
    bool link_local, ip4, usable;
    struct in6_addr address;
};

static struct gid_table
read_gids(const char *device)
{
    struct gid_table table = {.usable = false};
    struct svec slots;
    doctor_names(doctor_path(CLASS "/%s/ports/1/gids", device), "", &slots);
    for (size_t i = 0; i < slots.n; i++) {
        struct in6_addr gid;
        char *line = doctor_line(doctor_path(CLASS "/%s/ports/1/gids/%s", device, slots.names[i]));
        if (!line || inet_pton(AF_INET6, line, &gid) != 1 || IN6_IS_ADDR_UNSPECIFIED(&gid)) {
            /* An empty slot. */
        } else if (IN6_IS_ADDR_LINKLOCAL(&gid)) {
            table.link_local = true;
        } else if (IN6_IS_ADDR_V4MAPPED(&gid)) {
            table.ip4 = true;
        } else if (!table.usable) {
            table.usable = true;
            table.address = gid;
        }
        free(line);
    }
    svec_destroy(&slots);
    return table;
}

bool
doctor_address(const char *device, struct in6_addr *address)
{
    struct gid_table table = read_gids(device);
    *address = table.address;
    return table.usable;
}

void
doctor_gids(struct doctor *d)
{
    struct svec devices;
    size_t before = d->n;
    doctor_rdma_devices(&devices);
    for (size_t i = 0; i < devices.n; i++) {
        struct gid_table table = read_gids(devices.names[i]);
        const char *lack = table.usable       ? NULL
                           : table.ip4        ? "has IPv4 addresses only"
                           : table.link_local ? "has fe80:: only"
                                              : "is empty";
        if (lack) {
            doctor_add(d, DOCTOR_PROBLEM,
                       xasprintf("the GID table of %s %s", devices.names[i], lack),
                       xstrdup("give its network device the host's address, and set it up: ip -6 "
                               "addr add ADDRESS/128 dev NETDEV nodad; ip link set NETDEV up"));
        }
    }
    if (d->n == before) {
        doctor_add(d, DOCTOR_OK,
                   devices.n ? xasprintf("%zu devices have an IPv6 address", devices.n)
                             : xstrdup("no RDMA device yet"),
                   NULL);
    }
    svec_destroy(&devices);
}

char *
doctor_netdev(const char *device)
{
    char *name = doctor_line(doctor_path(CLASS "/%s/ports/1/gid_attrs/ndevs/0", device));
    return name ? name : doctor_line(doctor_path(CLASS "/%s/parent", device));
}

static unsigned int
largest_path_mtu(unsigned long netdev_mtu)
{
    unsigned int mtu = 4096;
    while (mtu > 256 && mtu + ROCE_OVERHEAD > netdev_mtu) {
        mtu /= 2;
    }
    return mtu;
}

void
doctor_mtu(struct doctor *d)
{
    struct svec devices;
    size_t before = d->n;
    doctor_rdma_devices(&devices);
    for (size_t i = 0; i < devices.n; i++) {
        char *netdev = doctor_netdev(devices.names[i]);
        char *line = netdev ? doctor_line(doctor_path("/sys/class/net/%s/mtu", netdev)) : NULL;
        unsigned long mtu = line ? strtoul(line, NULL, 10) : 0;
        if (!line) {
            doctor_add(d, DOCTOR_WARNING,
                       xasprintf("cannot see the network device of %s", devices.names[i]),
                       xstrdup("look at it with 'rdma link', in its network namespace"));
        } else if (mtu < d->path_mtu + ROCE_OVERHEAD) {
            doctor_add(d, DOCTOR_PROBLEM,
                       xasprintf("MTU %lu of %s (%s) is too small for path MTU %u with %d bytes "
                                 "of headers: it carries %u",
                                 mtu, netdev, devices.names[i], d->path_mtu, ROCE_OVERHEAD,
                                 largest_path_mtu(mtu)),
                       xasprintf("ip link set dev %s mtu %u or more, and the same at the other "
                                 "end; the fabric needs room for the outer IPv6 header and the "
                                 "SRH, too (9000)",
                                 netdev, d->path_mtu + ROCE_OVERHEAD));
        } else {
            doctor_ok(d, "%s (%s): MTU %lu carries path MTU %u", netdev, devices.names[i], mtu,
                      largest_path_mtu(mtu));
        }
        free(line);
        free(netdev);
    }
    if (d->n == before) {
        doctor_ok(d, "no RDMA device yet");
    }
    svec_destroy(&devices);
}

void
doctor_memlock(struct doctor *d)
{
    struct rlimit limit;
    if (doctor_has_capability(CAP_IPC_LOCK)) {
        doctor_ok(d, "no limit: CAP_IPC_LOCK");
    } else if (getrlimit(RLIMIT_MEMLOCK, &limit)) {
        doctor_add(d, DOCTOR_WARNING, xasprintf("getrlimit: %s", ovs_strerror(errno)), NULL);
    } else if (limit.rlim_cur == RLIM_INFINITY) {
        doctor_ok(d, "no limit");
    } else if (limit.rlim_cur >= MEMLOCK_USUAL) {
        doctor_ok(d, "%llu KiB", (unsigned long long) limit.rlim_cur >> 10);
    } else {
        doctor_add(d, DOCTOR_WARNING,
                   xasprintf("a program may lock %llu KiB: its memory regions and queues "
                             "together must be smaller",
                             (unsigned long long) limit.rlim_cur >> 10),
                   xstrdup("ulimit -l unlimited, 'memlock' in /etc/security/limits.conf, or "
                           "LimitMEMLOCK=infinity in a systemd unit"));
    }
}
