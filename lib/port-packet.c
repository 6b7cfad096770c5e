/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports on an AF_PACKET socket.
 *
 * The socket sees all that arrives, before the kernel has looked for who wants it: later
 * nothing says any more of which VLAN a frame was.  A filter leaves IPv6 and frames with several
 * tags; nothing else is forwarded.  What the host itself sends on the device is left out.
 *
 * The kernel has taken a frame's outermost VLAN tag out of the bytes and says what it was
 * (PACKET_AUXDATA).  A tag of a VLAN goes back to where it was, so that captures show it and the
 * node drops the frame.  A tag without a VLAN (IEEE 802.1Q: priority-tagged) makes no
 * difference, here as in lib/port.c.
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
#include <linux/filter.h>
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
#include "lib/wire.h"

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

/* Lets through what has the type of IPv6 or of a VLAN tag behind the tag that the kernel has taken
 * off. */
static int
set_filter(int fd)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t) (SKF_AD_OFF + SKF_AD_PROTOCOL)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021Q, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021AD, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog filter = {sizeof code / sizeof *code, code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

static int
prepare(int fd, int ifindex, const char **why)
{
    static const struct {
        int name;
        const char *why;
    } options[] = {
        {PACKET_VNET_HDR, "cannot ask for offload information"},
        {PACKET_AUXDATA, "cannot ask for VLAN tags"},
        {PACKET_IGNORE_OUTGOING, "cannot leave out what the host itself sends"},
    };
    const int on = 1;
    const struct packet_mreq promisc = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    const struct sockaddr_ll sll = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = ifindex,
    };

    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
    set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (setsockopt(fd, SOL_PACKET, options[i].name, &on, sizeof on)) {
            *why = options[i].why;
            return errno;
        }
    }
    if (set_filter(fd)) {
        *why = "cannot leave out other protocols";
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

/* The tag that the kernel has taken out of the frame.  False: there was none, or it has no VLAN. */
static bool
vlan_of(struct msghdr *msg, struct vlan_tag *tag)
{
    struct tpacket_auxdata aux;
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);

    if (!c || c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) {
        return false;
    }
    memcpy(&aux, CMSG_DATA(c), sizeof aux);
    if (!(aux.tp_status & TP_STATUS_VLAN_VALID)) {
        return false;
    }
    bool has_type = aux.tp_status & TP_STATUS_VLAN_TPID_VALID;
    *tag = (struct vlan_tag){be16_put(has_type ? aux.tp_vlan_tpid : ETH_TYPE_VLAN),
                             be16_put(aux.tp_vlan_tci)};
    return vlan_id(tag);
}

/* Puts a tag back into the frame of 'len' bytes, of which 'buf' has up to 'size'.  Returns the
 * frame's length.  What does not fit any more is cut off, since the frame goes nowhere. */
static size_t
put_tag(const struct vlan_tag *tag, uint8_t *buf, size_t size, size_t len)
{
    const size_t ofs = offsetof(struct eth_hdr, type);

    if (size < ofs + sizeof *tag || len < ofs) {
        return len;
    }
    len = len < size - sizeof *tag ? len : size - sizeof *tag;
    memmove(buf + ofs + sizeof *tag, buf + ofs, len - ofs);
    memcpy(buf + ofs, tag, sizeof *tag);
    return len + sizeof *tag;
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
    union {
        struct cmsghdr align;
        uint8_t bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control;
    struct msghdr msg = {
        .msg_iov = iov,
        .msg_iovlen = 3,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    struct vlan_tag tag;

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
    if (vlan_of(&msg, &tag)) {
        *len = put_tag(&tag, buf, size, *len);
        return 0;
    }
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
