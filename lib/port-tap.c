/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports on a queue of a persistent multi-queue tap.
 *
 * TUNSETIFF makes a device if there is none of that name in the namespace, and
 * a tap that only this process holds would take a host's NIC with it when the
 * process ends.  So a device must exist before, and be persistent after;
 * one that came to be in between is not, and goes with the descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/port-gso.h"
#include "lib/port-impl.h"

static int
attach(int fd, const char *netdev, const char **why)
{
    struct ifreq ifr;

    memset(&ifr, 0, sizeof ifr);
    memcpy(ifr.ifr_name, netdev, strlen(netdev));
    ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE;
    if (ioctl(fd, TUNSETIFF, &ifr)) {
        *why = errno == EINVAL ? "not a multi-queue tap" : "cannot attach to the tap";
        return errno;
    }
    if (ioctl(fd, TUNGETIFF, &ifr)) {
        *why = "cannot read the tap's flags";
        return errno;
    }
    if (!(ifr.ifr_flags & IFF_PERSIST)) {
        *why = "the tap is not persistent";
        return EINVAL;
    }
    return 0;
}

static int
tap_open(struct port *port, int ifindex __attribute__((unused)),
         const struct port_queue *queue __attribute__((unused)), const char **why)
{
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        *why = "cannot open /dev/net/tun";
        return errno;
    }
    int error = attach(fd, port->netdev, why);
    if (error) {
        close(fd);
        return error;
    }
    port->fd = fd;
    return 0;
}

/* The device is gone. */
static int
device_error(void)
{
    return errno == EBADFD ? ENODEV : errno;
}

/* One frame; the room behind PACKET_ROOM shows whether it was longer. */
static int
recv_one(struct port *port, struct packet_pool *pool, struct port_burst *burst)
{
    struct packet *p = packet_get(pool);
    uint8_t nowhere[1];

    /* Without a buffer the frame is taken all the same: left where it is it would keep the
     * descriptor readable. */
    ssize_t n =
        read(port->fd, p ? p->data : nowhere, p ? PACKET_ROOM + PACKET_OVER : sizeof nowhere);
    if (n < 0) {
        int error = device_error();
        packet_put(p);
        return error;
    }
    if (!p || n > PACKET_ROOM) {
        port_burst_lost(burst, p ? EMSGSIZE : ENOBUFS);
        packet_put(p);
        return 0;
    }
    p->len = (uint32_t) n;
    burst->frames[burst->n++] = p;
    return 0;
}

static int
tap_recv(struct port *port, struct packet_pool *pool, struct port_burst *burst)
{
    int why = 0;

    while (!why && burst->n < PORT_BURST && !burst->n_lost) {
        why = recv_one(port, pool, burst);
    }
    return why;
}

/* One frame in one piece: a copy into a buffer costs less than a vector of three. */
static ssize_t
send_one(const struct port *port, const struct packet *p)
{
    uint8_t buf[GSO_MAX];

    if (!p->body_len && !p->tail_len) {
        return write(port->fd, p->data, p->len);
    }
    return write(port->fd, buf, packet_flatten(p, buf, sizeof buf));
}

static size_t
tap_send(struct port *port, struct packet *const *frames, size_t n, int *why)
{
    for (size_t i = 0; i < n; i++) {
        if (send_one(port, frames[i]) < 0) {
            *why = device_error();
            return i;
        }
    }
    return n;
}

const struct port_class port_tap = {
    .size = sizeof(struct port),
    .is_host_nic = true,
    .open = tap_open,
    .recv = tap_recv,
    .send = tap_send,
};
