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
 *
 * Frames come and go many at a time.  Those behind a super-frame wait in the port until it is cut.
 * What is sent leaves by a socket of its own, without the virtio_net_hdr.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/port-device.h"
#include "lib/port-gso.h"
#include "lib/port-impl.h"
#include "lib/steer.h"
#include "lib/wire.h"

/* A frame as recvmmsg() has left it. */
struct received {
    struct virtio_net_hdr vnet;
    union {
        struct cmsghdr align;
        uint8_t bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control;
    struct packet *p;
};

struct packet_port {
    struct port up;
    int tx_fd;
    struct gso gso; /* the super-frame that is being cut. */
    /* What was received: entries [next, n) are still to be looked at. */
    struct received received[PORT_BURST];
    struct mmsghdr msgs[PORT_BURST];
    struct iovec iovs[PORT_BURST][3];
    unsigned next, n;
    unsigned n_wanted; /* how many frames the next call asks for. */
    /* Where a super-frame goes on, for each entry.  Pages that no super-frame has reached take no
     * memory. */
    uint8_t (*over)[GSO_MAX];
};

#define MIN_WANTED 4

/* Lets through what has the type of IPv6 or of a VLAN tag behind the tag that the kernel has taken
 * off; or nothing ('open' is false). */
static int
set_filter(int fd, bool open, const char **why)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t) (SKF_AD_OFF + SKF_AD_PROTOCOL)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021Q, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021AD, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const unsigned short len = sizeof code / sizeof *code;
    const struct sock_fprog filter = {open ? len : 1, open ? code : code + len - 1};

    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter)) {
        *why = "cannot leave out other protocols";
        return errno;
    }
    return 0;
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

    device_large_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (setsockopt(fd, SOL_PACKET, options[i].name, &on, sizeof on)) {
            *why = options[i].why;
            return errno;
        }
    }
    if (set_filter(fd, false, why)) {
        return errno;
    }
    return device_promiscuous(fd, ifindex, why);
}

static void
packet_close(struct port *port)
{
    struct packet_port *pp = (struct packet_port *) port;

    for (; pp->next < pp->n; pp->next++) {
        packet_put(pp->received[pp->next].p);
    }
    munmap(pp->over, PORT_BURST * sizeof *pp->over);
    if (pp->tx_fd >= 0) {
        close(pp->tx_fd);
    }
}

#ifndef PACKET_FANOUT_FLAG_IGNORE_OUTGOING
#define PACKET_FANOUT_FLAG_IGNORE_OUTGOING 0x4000 /* since Linux 5.14. */
#endif

/* Has the sockets of one device share its frames, those of a group going to one of them. */
static int
share(int fd, const struct port_queue *queue, const char **why)
{
    struct sock_filter code[STEER_PROGRAM_LEN];
    const struct sock_fprog program = {STEER_PROGRAM_LEN, code};
    int type = (PACKET_FANOUT_CBPF | PACKET_FANOUT_FLAG_IGNORE_OUTGOING) << 16;
    socklen_t len = sizeof type;

    if (!queue->index) {
        type |= PACKET_FANOUT_FLAG_UNIQUEID << 16;
    } else if (!queue->first) {
        *why = "the first thread's port is not open";
        return ENETDOWN;
    } else if (getsockopt(queue->first->fd, SOL_PACKET, PACKET_FANOUT, &type, &len)) {
        *why = "cannot find the sockets of other threads";
        return errno;
    }
    if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &type, sizeof type)) {
        *why = "cannot share the device between threads";
        return errno;
    }
    steer_program(code, queue->n);
    if (!queue->index && setsockopt(fd, SOL_PACKET, PACKET_FANOUT_DATA, &program, sizeof program)) {
        *why = "cannot tell which thread gets which packets";
        return errno;
    }
    return 0;
}

/* Nothing passes the filter until it is clear who gets what. */
static int
packet_acquire(const struct port_device *device, struct port_parts *parts, const char **why)
{
    int tx_fd = port_parts_add(parts, device_socket(why));
    int fd = tx_fd < 0 ? -1 : port_parts_add(parts, device_socket(why));

    if (fd < 0) {
        return errno;
    }
    device_large_buffer(tx_fd, SO_SNDBUFFORCE, SO_SNDBUF);
    int error = device_bind(tx_fd, device->ifindex, 0, why);
    error = error ? error : prepare(fd, device->ifindex, why);
    error = error ? error : device_bind(fd, device->ifindex, ETH_P_ALL, why);
    if (!error) {
        device_stop_merging(fd, device->netdev);
    }
    return error;
}

static int
packet_assemble(struct port *port, struct port_parts *parts, const struct port_queue *queue,
                const char **why)
{
    struct packet_port *pp = (struct packet_port *) port;
    void *over = mmap(NULL, PORT_BURST * sizeof *pp->over, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    pp->n_wanted = MIN_WANTED;
    if (over == MAP_FAILED) {
        *why = "no memory for long frames";
        return errno;
    }
    pp->over = over;
    pp->tx_fd = port_parts_take(parts, 1);
    port->fd = port_parts_take(parts, 2);
    int error = queue->n == 1 ? 0 : share(port->fd, queue, why);
    error = error ? error : set_filter(port->fd, true, why);
    if (error) {
        packet_close(port);
    }
    return error;
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

/* Completes a frame of 'len' bytes, of which r->p has up to PACKET_ROOM.  Returns its length, or 0:
 * it is lost.  A super-frame becomes its first segment. */
static size_t
complete(struct packet_port *pp, struct received *r, struct msghdr *msg, size_t len)
{
    struct vlan_tag tag;

    if (vlan_of(msg, &tag)) {
        return put_tag(&tag, r->p->data, PACKET_ROOM, len);
    }
    if (r->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
        size_t here = len < PACKET_ROOM ? len : PACKET_ROOM;

        if (len > sizeof pp->gso.frame) {
            return 0;
        }
        memcpy(pp->gso.frame, r->p->data, here);
        memcpy(pp->gso.frame + here, pp->over[r - pp->received], len - here);
        bool can_cut = gso_start(&pp->gso, &r->vnet, len, PACKET_ROOM);
        return can_cut ? gso_next(&pp->gso, r->p->data, PACKET_ROOM) : 0;
    }
    if (len > PACKET_ROOM
        || (r->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM
            && !gso_checksum(&r->vnet, r->p->data, len))) {
        return 0;
    }
    return len;
}

static void
put_frame(struct port_burst *burst, struct packet *p, size_t len)
{
    if (len) {
        p->len = (uint32_t) len;
        burst->frames[burst->n++] = p;
    } else {
        port_burst_lost(burst, EMSGSIZE);
        packet_put(p);
    }
}

/* Puts one more frame into the burst, or counts it as lost.  False: the port has none. */
static bool
take(struct packet_port *pp, struct packet_pool *pool, struct port_burst *burst)
{
    uint8_t nowhere[1];

    if (pp->gso.len) {
        struct packet *p = packet_get(pool);
        if (p) {
            put_frame(burst, p, gso_next(&pp->gso, p->data, PACKET_ROOM));
        } else {
            gso_next(&pp->gso, nowhere, sizeof nowhere);
            port_burst_lost(burst, ENOBUFS);
        }
        return true;
    }
    if (pp->next == pp->n) {
        return false;
    }
    struct mmsghdr *msg = &pp->msgs[pp->next];
    struct received *r = &pp->received[pp->next++];
    put_frame(burst, r->p, complete(pp, r, &msg->msg_hdr, msg->msg_len - sizeof r->vnet));
    return true;
}

static int
receive_error(const struct packet_port *pp, struct port_burst *burst)
{
    switch (errno) {
    case EINVAL: /* offload of a kind that the header cannot describe. */
        port_burst_lost(burst, EMSGSIZE);
        return 0;
    case ENETDOWN: return device_down_or_gone(pp->up.fd);
    default: return errno;
    }
}

/* Without a buffer the frame is taken all the same: left where it is it would keep the descriptor
 * readable.  Of a super-frame one segment is lost. */
static int
throw_away(struct packet_port *pp, struct port_burst *burst)
{
    struct received r;
    struct iovec iov[] = {{&r.vnet, sizeof r.vnet}, {pp->gso.frame, sizeof pp->gso.frame}};
    struct msghdr msg = {
        .msg_iov = iov,
        .msg_iovlen = 2,
        .msg_control = &r.control,
        .msg_controllen = sizeof r.control,
    };
    struct vlan_tag tag;
    uint8_t nowhere[1];

    ssize_t n = recvmsg(pp->up.fd, &msg, 0);
    if (n < 0) {
        return receive_error(pp, burst);
    }
    if (r.vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE && !vlan_of(&msg, &tag)
        && gso_start(&pp->gso, &r.vnet, (size_t) n - sizeof r.vnet, PACKET_ROOM)) {
        gso_next(&pp->gso, nowhere, sizeof nowhere);
    }
    port_burst_lost(burst, ENOBUFS);
    return 0;
}

/* Has up to 'max' frames received.  At least one, unless it returns an error or has counted
 * one as lost. */
static int
receive(struct packet_port *pp, struct packet_pool *pool, unsigned max, struct port_burst *burst)
{
    unsigned want = max < pp->n_wanted ? max : pp->n_wanted;
    unsigned n_bufs = 0;

    for (struct packet *p; n_bufs < want && (p = packet_get(pool)); n_bufs++) {
        struct received *r = &pp->received[n_bufs];
        struct iovec *iov = pp->iovs[n_bufs];

        r->p = p;
        iov[0] = (struct iovec){&r->vnet, sizeof r->vnet};
        iov[1] = (struct iovec){p->data, PACKET_ROOM};
        iov[2] = (struct iovec){pp->over[n_bufs], GSO_MAX - PACKET_ROOM};
        pp->msgs[n_bufs].msg_hdr = (struct msghdr){
            .msg_iov = iov,
            .msg_iovlen = 3,
            .msg_control = &r->control,
            .msg_controllen = sizeof r->control,
        };
    }
    if (!n_bufs) {
        return throw_away(pp, burst);
    }
    int n = recvmmsg(pp->up.fd, pp->msgs, n_bufs, MSG_TRUNC, NULL);
    int error = n < 0 ? receive_error(pp, burst) : (unsigned) n < n_bufs ? EAGAIN : 0;
    pp->next = 0;
    pp->n = n < 0 ? 0 : (unsigned) n;
    for (unsigned i = pp->n; i < n_bufs; i++) {
        packet_put(pp->received[i].p);
    }
    /* As many as come at a time, since buffers for more cost time as well. */
    pp->n_wanted = pp->n == n_bufs ? 2 * n_bufs : 2 * pp->n;
    pp->n_wanted = pp->n_wanted < MIN_WANTED   ? MIN_WANTED
                   : pp->n_wanted > PORT_BURST ? PORT_BURST
                                               : pp->n_wanted;
    return error;
}

static int
packet_recv(struct port *port, struct packet_pool *pool, struct port_burst *burst)
{
    struct packet_port *pp = (struct packet_port *) port;
    int why = 0;

    while (burst->n + burst->n_lost < PORT_BURST) {
        if (burst->n_lost && burst->why_lost == ENOBUFS) {
            return 0; /* who has the buffers may return some. */
        }
        if (take(pp, pool, burst)) {
            continue;
        }
        if (why) {
            return why;
        }
        why = receive(pp, pool, (unsigned) (PORT_BURST - burst->n - burst->n_lost), burst);
    }
    return 0;
}

static size_t
packet_send(struct port *port, struct packet *const *frames, size_t n, int *why)
{
    const struct packet_port *pp = (struct packet_port *) port;
    struct mmsghdr msgs[PORT_BURST];
    struct iovec iovs[PORT_BURST][3];
    size_t n_sent = 0;

    while (n_sent < n) {
        unsigned k = 0;

        for (; k < PORT_BURST && n_sent + k < n; k++) {
            size_t n_iov = (size_t) packet_iov(frames[n_sent + k], iovs[k]);
            msgs[k].msg_hdr = (struct msghdr){.msg_iov = iovs[k], .msg_iovlen = n_iov};
        }
        int n_taken = sendmmsg(pp->tx_fd, msgs, k, 0);
        if (n_taken < 0) {
            *why = errno;
            break;
        }
        n_sent += (size_t) n_taken;
    }
    return n_sent;
}

const struct port_class port_packet = {
    .size = sizeof(struct packet_port),
    .is_netdev = true,
    .acquire = packet_acquire,
    .assemble = packet_assemble,
    .close = packet_close,
    .recv = packet_recv,
    .send = packet_send,
};
