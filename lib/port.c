/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports: what does not depend on the kind.
 *
 * Sockets and taps belong to the network namespace in which they were made, so
 * opening means a visit there.  The visit is the calling thread's only.
 */
#include "lib/port.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/alloc.h"
#include "lib/port-impl.h"
#include "lib/why.h"
#include "lib/wire.h"

static const struct kind_row {
    const char *text;
    const struct port_class *class;
} port_kinds[] = {
#define KIND(ENUM, TEXT) [ENUM] = {#TEXT, &port_##TEXT},
    PORT_KINDS(KIND)
#undef KIND
};
WORDS_DEFINE(port_kind, enum port_kind, port_kinds);

#define CANNOT_READ "cannot read the MTU and the state"

static bool use_offload = true;

void
port_use_offload(bool use)
{
    use_offload = use;
}

bool
port_uses_offload(void)
{
    return use_offload;
}

enum port_kind
port_kind_usual(bool host)
{
    return host ? PORT_TAP : PORT_PACKET;
}

bool
port_kind_is_host_nic(enum port_kind kind)
{
    return port_kinds[kind].class->is_host_nic;
}

bool
port_kind_is_netdev(enum port_kind kind)
{
    return port_kinds[kind].class->is_netdev;
}

/* Has the device a carrier?  'flags' have that, too, but on a new link up to a second late, since the
 * kernel limits how often it looks (its linkwatch); they are for drivers that cannot be asked. */
static bool
has_carrier(const struct port *port, short flags)
{
    struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
    struct ifreq ifr = {.ifr_data = (char *) &link};

    memcpy(ifr.ifr_name, port->netdev, sizeof ifr.ifr_name);
    return ioctl(port->query_fd, SIOCETHTOOL, &ifr) ? flags & IFF_RUNNING : link.data;
}

int
port_refresh(struct port *port)
{
    struct ifreq ifr;

    memset(&ifr, 0, sizeof ifr);
    memcpy(ifr.ifr_name, port->netdev, sizeof ifr.ifr_name);
    if (ioctl(port->query_fd, SIOCGIFFLAGS, &ifr)) {
        return errno;
    }
    port->up = has_carrier(port, ifr.ifr_flags);
    if (ioctl(port->query_fd, SIOCGIFMTU, &ifr)) {
        return errno;
    }
    port->mtu = (unsigned) ifr.ifr_mtu;
    if (port->mtu_max && port->mtu > port->mtu_max) {
        port->mtu = port->mtu_max;
    }
    return 0;
}

/* In the device's namespace. */
static int
acquire_here(struct port_parts *parts, const struct port_class *class, struct port_device *device,
             const char **why)
{
    struct port probe = {.query_fd = -1};

    device->ifindex = (int) if_nametoindex(device->netdev);
    if (!device->ifindex) {
        *why = "no such network device";
        return ENODEV;
    }
    memcpy(probe.netdev, device->netdev, sizeof probe.netdev);
    probe.query_fd = port_parts_add(parts, socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    int error = probe.query_fd < 0 ? errno : port_refresh(&probe);
    if (error) {
        *why = CANNOT_READ;
        return error;
    }
    device->mtu = probe.mtu;
    return class->acquire(device, parts, why);
}

/* Enters a network namespace, -1: stays in this one.  If it returns 0, leave(*back) is to follow. */
static int
enter(int netns_fd, int *back, const char **why)
{
    *back = -1;
    if (netns_fd < 0) {
        return 0;
    }
    *back = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (*back < 0) {
        *why = "cannot open the current network namespace";
        return errno;
    }
    if (setns(netns_fd, CLONE_NEWNET)) {
        int error = errno;

        *why = "cannot enter the device's network namespace";
        close(*back);
        return error;
    }
    return 0;
}

static void
leave(int back)
{
    if (back < 0) {
        return;
    }
    /* In the wrong namespace everything that follows would be wrong. */
    if (setns(back, CLONE_NEWNET)) {
        perror("returning to the network namespace");
        abort();
    }
    close(back);
}

static void
close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void
discard(struct port *port)
{
    close_fd(port->fd);
    close_fd(port->query_fd);
    free(port);
}

void
port_close(struct port *port)
{
    if (port) {
        if (port->class->close) {
            port->class->close(port);
        }
        discard(port);
    }
}

void
port_parts_discard(struct port_parts *parts)
{
    for (unsigned i = 0; i < parts->n_fds; i++) {
        close_fd(parts->fds[i]);
    }
    parts->n_fds = 0;
}

int
port_acquire(struct port_parts *parts, enum port_kind kind, const char *netdev, int netns_fd,
             unsigned n_sharing, bool offload, const char **why)
{
    struct port_device device = {.n_sharing = n_sharing, .offload = offload};
    int back;

    *parts = (struct port_parts){.n_fds = 0};
    if (strlen(netdev) >= sizeof device.netdev) {
        *why = "no such network device";
        return ENODEV;
    }
    memcpy(device.netdev, netdev, strlen(netdev));
    int error = enter(netns_fd, &back, why);
    if (!error) {
        error = acquire_here(parts, port_kinds[kind].class, &device, why);
        leave(back);
    }
    if (error) {
        port_parts_discard(parts);
    }
    return error;
}

static int
assemble(struct port *port, struct port_parts *parts, const struct port_queue *queue,
         const char **why)
{
    port->query_fd = port_parts_take(parts, 0);
    int error = port_refresh(port);
    if (error) {
        *why = CANNOT_READ;
        return error;
    }
    return port->class->assemble(port, parts, queue, why);
}

static int
say_not_open(int error, const char *netdev, const char *why, char **errp)
{
    if (error) {
        say_why(errp, "%s: %s (%s)", netdev, why, strerror(error));
    }
    return error;
}

int
port_assemble(struct port **portp, enum port_kind kind, const char *netdev,
              struct port_parts *parts, const struct port_queue *queue, char **errp)
{
    static const struct port_queue whole = {.n = 1};
    const struct port_class *class = port_kinds[kind].class;
    struct port *port = must_calloc(1, class->size);
    const char *why = NULL;

    *port = (struct port){.class = class, .fd = -1, .query_fd = -1};
    memcpy(port->netdev, netdev, strnlen(netdev, sizeof port->netdev - 1));
    int error = assemble(port, parts, queue ? queue : &whole, &why);
    port_parts_discard(parts);
    if (error) {
        discard(port);
        port = NULL;
    }
    *portp = port;
    return say_not_open(error, netdev, why, errp);
}

int
port_open(struct port **portp, enum port_kind kind, const char *netdev, int netns_fd,
          const struct port_queue *queue, char **errp)
{
    struct port_parts parts;
    const char *why = NULL;

    *portp = NULL;
    int error =
        port_acquire(&parts, kind, netdev, netns_fd, queue ? queue->n : 1, use_offload, &why);
    return error ? say_not_open(error, netdev, why, errp)
                 : port_assemble(portp, kind, netdev, &parts, queue, errp);
}

int
port_fd(const struct port *port)
{
    return port->fd;
}

unsigned
port_mtu(const struct port *port)
{
    return port->mtu;
}

bool
port_is_up(const struct port *port)
{
    return port->up;
}

/* In the namespace whose devices are meant. */
static int
open_events(int *fdp)
{
    const struct sockaddr_nl links = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0) {
        return errno;
    }
    if (bind(fd, (const struct sockaddr *) &links, sizeof links)) {
        int error = errno;

        close(fd);
        return error;
    }
    *fdp = fd;
    return 0;
}

int
port_events_open(int *fdp, int netns_fd, char **errp)
{
    const char *why = "cannot listen to changes of network devices";
    int back;
    int error = enter(netns_fd, &back, &why);

    if (!error) {
        error = open_events(fdp);
        leave(back);
    }
    if (error) {
        say_why(errp, "%s (%s)", why, strerror(error));
    }
    return error;
}

/* What a message says is not asked: if too much was said at once it is lost, but not that something
 * was. */
void
port_events_clear(int fd)
{
    char message;

    while (recv(fd, &message, sizeof message, 0) >= 0 || errno == ENOBUFS) {
    }
}

void
port_strip_priority_tags(struct packet *p)
{
    const size_t ofs = offsetof(struct eth_hdr, type);
    const struct vlan_tag *tag;

    while ((tag = eth_vlan_tag(p->data, p->len)) && !vlan_id(tag)) {
        memmove(p->data + sizeof *tag, p->data, ofs);
        packet_pull(p, sizeof *tag);
    }
}

int
port_recv(struct port *port, struct packet_pool *pool, struct port_burst *burst)
{
    burst->n = 0;
    burst->n_lost = 0;
    int why = port->class->recv(port, pool, burst);
    for (size_t i = 0; i < burst->n; i++) {
        port_strip_priority_tags(burst->frames[i]);
    }
    return why;
}

size_t
port_send(struct port *port, struct packet *const *frames, size_t n, int *why)
{
    size_t n_sent = port->class->send(port, frames, n, why);
    /* The kernel says ENOBUFS where a queueing discipline or a driver is full. */
    if (n_sent < n && *why == ENOBUFS) {
        *why = EAGAIN;
    }
    return n_sent;
}
