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
#include <sys/uio.h>
#include <unistd.h>

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
tap_open(struct port *port, int ifindex __attribute__((unused)), const char **why)
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

static int
tap_recv(struct port *port, uint8_t *buf, size_t size, size_t *len)
{
    /* read() does not say that it cut a frame short: one byte more finds out. */
    uint8_t over;
    const struct iovec iov[] = {{buf, size}, {&over, sizeof over}};
    ssize_t n = readv(port->fd, iov, 2);

    if (n < 0) {
        return errno == EBADFD ? ENODEV : errno; /* EBADFD: the device is gone. */
    }
    *len = (size_t) n;
    return 0;
}

static int
tap_send(const struct port *port, const struct packet *p)
{
    struct iovec iov[3];
    int n = packet_iov(p, iov);

    if (writev(port->fd, iov, n) < 0) {
        return errno == EBADFD ? ENODEV : errno;
    }
    return 0;
}

const struct port_class port_tap = {
    .size = sizeof(struct port),
    .is_host_nic = true,
    .open = tap_open,
    .recv = tap_recv,
    .send = tap_send,
};
