/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports on an AF_PACKET socket.
 *
 * The socket is bound to IPv6 frames: nothing else is forwarded, and unlike
 * ETH_P_ALL this does not show what the host itself sends on the device.
 *
 * Each frame comes and goes with a virtio_net_hdr (PACKET_VNET_HDR).  A frame
 * that a kernel at the other end of a veth sent with checksum offload says there
 * where the checksum is missing and what it covers, so it can be completed without
 * looking into the packet.  One that segmentation offload made was never a frame of
 * this link; it is cut into those that it stands for (lib/port-gso.c), which are
 * received one by one.
 *
 * A device that merges frames as they come in loses what they were.  It is told not
 * to; what it merges all the same is cut again like the above.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/port-gso.h"
#include "lib/port-impl.h"

struct packet_port {
    struct port up;
    struct gso gso; /* what was received with several frames in one. */
};

#define SOCKET_BUFFER (8 << 20) /* bursts of 129 packets from several QPs. */

static void
set_buffer(int fd, int force, int plain)
{
    int size = SOCKET_BUFFER;

    /* Above the system's maximum with CAP_NET_ADMIN, up to it without; less is
     * slower, not wrong. */
    if (setsockopt(fd, SOL_SOCKET, force, &size, sizeof size)) {
        (void) setsockopt(fd, SOL_SOCKET, plain, &size, sizeof size);
    }
}

static int
prepare(int fd, int ifindex, const char **why)
{
    const int on = 1;
    const struct packet_mreq promisc = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    const struct sockaddr_ll sll = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_IPV6),
        .sll_ifindex = ifindex,
    };

    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
    set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
    if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on)) {
        *why = "cannot ask for offload information";
        return errno;
    }
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof promisc)) {
        *why = "cannot make the device promiscuous";
        return errno;
    }
    if (bind(fd, (const struct sockaddr *) &sll, sizeof sll)) {
        *why = "cannot bind to the device";
        return errno;
    }
    return 0;
}

/* Generic and large receive offload off.  Not every device has them. */
static void
stop_merging(int fd, const char *netdev)
{
    struct ethtool_value value = {.cmd = ETHTOOL_SGRO, .data = 0};
    struct ifreq ifr = {.ifr_data = (void *) &value};

    memcpy(ifr.ifr_name, netdev, strlen(netdev));
    (void) ioctl(fd, SIOCETHTOOL, &ifr);
    value.cmd = ETHTOOL_GFLAGS;
    if (!ioctl(fd, SIOCETHTOOL, &ifr) && value.data & ETH_FLAG_LRO) {
        value.cmd = ETHTOOL_SFLAGS;
        value.data &= ~(uint32_t) ETH_FLAG_LRO;
        (void) ioctl(fd, SIOCETHTOOL, &ifr);
    }
}

static int
packet_open(struct port *port, int ifindex, const char **why)
{
    /* Protocol 0: nothing arrives before bind() has named the device. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *why = "cannot open a packet socket";
        return errno;
    }
    int error = prepare(fd, ifindex, why);
    if (error) {
        close(fd);
        return error;
    }
    stop_merging(fd, port->netdev);
    port->fd = fd;
    return 0;
}

/* ENETDOWN is said once for a device that went down, and for one that went away:
 * the former comes back by itself, from the latter the socket is unbound. */
static int
down_or_gone(int fd)
{
    struct sockaddr_ll sll = {.sll_ifindex = 0};
    socklen_t len = sizeof sll;

    return !getsockname(fd, (struct sockaddr *) &sll, &len) && sll.sll_ifindex <= 0 ? ENODEV
                                                                                    : ENETDOWN;
}

static int
packet_recv(struct port *port, uint8_t *buf, size_t size, size_t *len)
{
    struct gso *gso = &((struct packet_port *) port)->gso;
    struct virtio_net_hdr vnet;
    struct iovec iov[] = {
        {&vnet, sizeof vnet},
        {buf, size},
        {gso->frame + size, sizeof gso->frame - size}, /* where a super-frame goes on. */
    };
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 3};

    *len = gso_next(gso, buf, size);
    if (*len) {
        return 0;
    }
    ssize_t n = recvmsg(port->fd, &msg, MSG_TRUNC);
    if (n < 0) {
        switch (errno) {
        case EINVAL: return EMSGSIZE; /* offload of a kind that the header cannot describe. */
        case ENETDOWN: return down_or_gone(port->fd);
        default: return errno;
        }
    }
    *len = (size_t) n - sizeof vnet;
    if (vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
        memcpy(gso->frame, buf, *len < size ? *len : size);
        if (!gso_start(gso, &vnet, *len, PACKET_ROOM)) {
            return EMSGSIZE;
        }
        *len = gso_next(gso, buf, size);
        return 0;
    }
    if (vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && *len <= size
        && !gso_checksum(&vnet, buf, *len)) {
        return EMSGSIZE;
    }
    return 0;
}

static int
packet_send(const struct port *port, const struct packet *p)
{
    static const struct virtio_net_hdr no_offload;
    struct iovec iov[4] = {{(void *) (uintptr_t) &no_offload, sizeof no_offload}};
    struct msghdr msg = {.msg_iov = iov};

    msg.msg_iovlen = 1 + (size_t) packet_iov(p, iov + 1);
    return sendmsg(port->fd, &msg, 0) < 0 ? errno : 0;
}

const struct port_class port_packet = {
    .size = sizeof(struct packet_port),
    .is_netdev = true,
    .open = packet_open,
    .recv = packet_recv,
    .send = packet_send,
};
