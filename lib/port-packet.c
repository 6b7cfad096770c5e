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
 * looking into the packet; one that segmentation offload made says so too, and
 * is refused, because it was never a frame of this link.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/inet-csum.h"
#include "lib/port-impl.h"

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

static int
packet_open(const char *netdev __attribute__((unused)), int ifindex, int *fdp, const char **why)
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
    *fdp = fd;
    return 0;
}

/* Computes the checksum that the sender left to the device: over frame[csum_start,
 * len), in which the field holds the sum of the pseudo-header.  False if the frame does
 * not contain what the header says. */
static bool
complete_checksum(const struct virtio_net_hdr *vnet, uint8_t *frame, size_t len)
{
    size_t start = vnet->csum_start;
    be16_t csum;

    if (start > len || len - start < sizeof csum || vnet->csum_offset > len - start - sizeof csum) {
        return false;
    }
    csum = inet_csum(frame + start, len - start);
    if (!be16_get(csum)) {
        csum = be16_put(0xffff); /* UDP: 0 would mean none, and they are equal otherwise. */
    }
    memcpy(frame + start + vnet->csum_offset, &csum, sizeof csum);
    return true;
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
packet_recv(int fd, uint8_t *buf, size_t size, size_t *len)
{
    struct virtio_net_hdr vnet;
    struct iovec iov[] = {{&vnet, sizeof vnet}, {buf, size}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n = recvmsg(fd, &msg, MSG_TRUNC);

    if (n < 0) {
        switch (errno) {
        case EINVAL: return EMSGSIZE; /* offload of a kind that the header cannot describe. */
        case ENETDOWN: return down_or_gone(fd);
        default: return errno;
        }
    }
    if (vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
        return EMSGSIZE;
    }
    *len = (size_t) n - sizeof vnet;
    if (vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && *len <= size
        && !complete_checksum(&vnet, buf, *len)) {
        return EMSGSIZE;
    }
    return 0;
}

static int
packet_send(int fd, const struct packet *p)
{
    static const struct virtio_net_hdr no_offload;
    struct iovec iov[4] = {{(void *) (uintptr_t) &no_offload, sizeof no_offload}};
    struct msghdr msg = {.msg_iov = iov};

    msg.msg_iovlen = 1 + (size_t) packet_iov(p, iov + 1);
    return sendmsg(fd, &msg, 0) < 0 ? errno : 0;
}

const struct port_class port_packet = {packet_open, packet_recv, packet_send};
