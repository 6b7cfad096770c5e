/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports on AF_XDP sockets.
 *
 * The device belongs to the node.  An XDP program (lib/xdp-program.c) takes untagged IPv6 frames
 * before the kernel has looked at them, and only the port gets them; all others stay the kernel's,
 * those of VLANs too.  The program is attached by a link, which ends with the process however that
 * ends.
 *
 * Each receive queue of the device has a socket.  Frames are sent by that of the first, so they
 * leave in order.  A socket has memory of its own, divided into chunks of a page: some that the
 * kernel fills with what it receives, the others for frames to be sent.  Frames are copied between
 * chunks and packets.  A long frame is in several chunks.
 *
 * Where the driver can, it uses the chunks itself (zero copy); otherwise the kernel copies.  Where
 * the driver has no XDP of its own, the kernel runs the program later on the way (generic mode).
 *
 * What a kernel at the other end of a veth has left to the device reaches the program without a
 * word about it.  Segmentation offload the kernel turns off there while an XDP program is attached;
 * where a checksum is missing its field says so (gso_unmarked_checksum()).  That is found for UDP
 * and TCP directly in IPv6, not in a tunnel and not behind extension headers: where a kernel's own
 * TCP is encapsulated on the other side, use kind 'packet'.
 *
 * A frame that is accepted for sending is in the ring between the port and the kernel.  The kernel
 * empties it when told to.  What it leaves there, because the driver is full, goes with the next
 * call of either direction; until then epoll reports the socket as soon as it is writable.
 *
 * A packet socket that receives nothing makes the device promiscuous and says when it goes down or
 * away, which AF_XDP sockets do not.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xdp/xsk.h>

#include "lib/alloc.h"
#include "lib/port-device.h"
#include "lib/port-gso.h"
#include "lib/port-impl.h"
#include "lib/wire.h"
#include "lib/xdp-program.h"

/* Of Linux 6.6; Debian's headers are older. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

#define CHUNK_SIZE 4096
#define N_RX       2048 /* chunks; also the sizes of rings.  Powers of 2. */
#define N_TX       1024
#define AREA_SIZE  ((size_t) (N_RX + N_TX) * CHUNK_SIZE)
/* The longest frame that the kernel puts into one chunk. */
#define ONE_CHUNK  (CHUNK_SIZE - 256)
/* The longest packet's, with all that was pushed in front. */
#define MAX_CHUNKS ((PACKET_HEADROOM + PACKET_ROOM + PACKET_TAIL + CHUNK_SIZE - 1) / CHUNK_SIZE)
#define WATCH_TYPE 0x88b5 /* IEEE 802: for local experiments.  Nothing is read. */

struct queue {
    uint8_t *chunks; /* AREA_SIZE bytes: those to receive, then those to send. */
    struct xsk_umem *umem;
    struct xsk_socket *xsk;
    struct xsk_ring_prod fill, tx;
    struct xsk_ring_cons rx, completion;
    /* A frame that goes on in the next chunk. */
    bool in_frame;
    struct packet *p; /* NULL: the frame is lost. */
    int why_lost;
};

struct xdp_port {
    struct port up; /* its fd: epoll. */
    int watch_fd;
    int link_fd;
    struct queue *queues;
    unsigned n_queues;
    unsigned next_queue; /* that receives first. */
    uint64_t free[N_TX]; /* addresses of chunks to send in. */
    unsigned n_free;
    bool is_veth;
    bool waits_to_send; /* epoll reports when the first queue is writable. */
    int send_error;     /* of the last attempt to have the kernel send; 0 or EAGAIN: none. */
};

/* What the device is like, besides. */
struct device {
    int ifindex;
    bool fragments; /* frames are longer than a chunk. */
    uint32_t mode;  /* XDP_FLAGS_DRV_MODE or XDP_FLAGS_SKB_MODE. */
};

static unsigned
count_queues(int fd, const char *netdev)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};

    if (device_ethtool(fd, netdev, &channels)) {
        return 1;
    }
    unsigned n = channels.rx_count + channels.combined_count;
    return n ? n : 1;
}

/* Has VLAN tags left in the bytes, where the program sees them.  False: cannot be. */
static bool
keep_tags(int fd, const char *netdev)
{
    struct ethtool_value value = {.cmd = ETHTOOL_GFLAGS};

    if (device_ethtool(fd, netdev, &value)) {
        return false;
    }
    if (!(value.data & ETH_FLAG_RXVLAN)) {
        return true;
    }
    value.cmd = ETHTOOL_SFLAGS;
    value.data &= ~(uint32_t) ETH_FLAG_RXVLAN;
    return !device_ethtool(fd, netdev, &value);
}

/* Finds out whether the program will see all VLAN tags. */
static int
check_device(struct xdp_port *xp, const char **why)
{
    const char *netdev = xp->up.netdev;
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};

    if (device_ethtool(xp->watch_fd, netdev, &info)) {
        memset(&info, 0, sizeof info);
    }
    xp->is_veth = !strcmp(info.driver, "veth");
    /* Other devices without hardware get frames from those below them, tags beside the bytes. */
    if (!xp->is_veth && !*info.bus_info) {
        *why = "neither hardware nor a veth; use kind 'packet'";
        return EOPNOTSUPP;
    }
    if (!xp->is_veth && !keep_tags(xp->watch_fd, netdev)) {
        *why = "cannot turn VLAN offload off (rxvlan); use kind 'packet'";
        return EOPNOTSUPP;
    }
    return 0;
}

static void
queue_close(struct queue *q)
{
    packet_put(q->p);
    xsk_socket__delete(q->xsk);
    (void) xsk_umem__delete(q->umem);
    if (q->chunks) {
        munmap(q->chunks, AREA_SIZE);
    }
}

static int
queue_memory(struct queue *q, const char **why)
{
    const struct xsk_umem_config config = {
        .fill_size = N_RX,
        .comp_size = N_TX,
        .frame_size = CHUNK_SIZE,
    };
    void *chunks =
        mmap(NULL, AREA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunks == MAP_FAILED) {
        *why = "no memory for frames";
        return errno;
    }
    q->chunks = chunks;
    int error = -xsk_umem__create(&q->umem, chunks, AREA_SIZE, &q->fill, &q->completion, &config);
    if (error) {
        *why = error == ENOBUFS ? "cannot lock memory for frames (ulimit -l)"
                                : "cannot register memory for frames";
        return error;
    }
    uint32_t index = 0;
    xsk_ring_prod__reserve(&q->fill, N_RX, &index);
    for (uint32_t i = 0; i < N_RX; i++) {
        *xsk_ring_prod__fill_addr(&q->fill, index + i) = (uint64_t) i * CHUNK_SIZE;
    }
    xsk_ring_prod__submit(&q->fill, N_RX);
    return 0;
}

/* The kernel tries zero copy first if it is not told anything.  Generic mode has none. */
static int
queue_open(struct queue *q, const char *netdev, unsigned number, const struct device *device,
           const char **why)
{
    struct xsk_socket_config config = {
        .rx_size = N_RX,
        .tx_size = N_TX,
        .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
        .bind_flags = XDP_USE_NEED_WAKEUP,
    };

    config.bind_flags |= device->mode == XDP_FLAGS_SKB_MODE ? XDP_COPY : 0;
    config.bind_flags |= device->fragments ? XDP_USE_SG : 0;
    int error = queue_memory(q, why);
    if (error) {
        return error;
    }
    error = -xsk_socket__create(&q->xsk, netdev, number, q->umem, &q->rx, &q->tx, &config);
    if (error) {
        *why = error == EINVAL && device->fragments ? "frames longer than a page need Linux 6.6"
               : error == EBUSY                     ? "another program receives from it by AF_XDP"
                                                    : "cannot open an AF_XDP socket";
        return error;
    }
    device_large_buffer(xsk_socket__fd(q->xsk), SO_SNDBUFFORCE, SO_SNDBUF);
    return 0;
}

/* Attaches a program that is told of no socket yet.  Returns the map, or -1 and errno. */
static int
attach(struct xdp_port *xp, struct device *device, const char **why)
{
    static const uint32_t modes[] = {XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE};
    const struct xdp_program_options options = {
        .veth = xp->is_veth ? device->ifindex : 0,
        .fragments = device->fragments,
    };
    int map_fd = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "rocecast", sizeof(uint32_t), sizeof(uint32_t),
                                xp->n_queues, NULL);
    if (map_fd < 0) {
        *why = "cannot make an XSKMAP";
        return -1;
    }
    int program_fd = xdp_program_load(map_fd, &options, why);
    for (size_t i = 0; program_fd >= 0 && i < (xp->is_veth ? 1 : 2); i++) {
        LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = modes[i]);
        xp->link_fd = bpf_link_create(program_fd, device->ifindex, BPF_XDP, &opts);
        device->mode = modes[i];
        if (xp->link_fd >= 0 || errno == EBUSY) {
            break;
        }
    }
    if (xp->link_fd < 0) {
        int error = errno;
        if (program_fd >= 0) {
            *why = error == EBUSY ? "another XDP program is attached"
                   : error == ENOSPC && xp->is_veth
                       ? "fewer receive queues than the other end has to send on"
                       : "cannot attach the XDP program";
            close(program_fd);
        }
        close(map_fd);
        errno = error;
        return -1;
    }
    close(program_fd); /* the link has it. */
    return map_fd;
}

static int
watch(struct xdp_port *xp, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};

    return epoll_ctl(xp->up.fd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

static int
open_queues(struct xdp_port *xp, const struct device *device, int map_fd, const char **why)
{
    for (uint32_t i = 0; i < xp->n_queues; i++) {
        struct queue *q = &xp->queues[i];
        int error = queue_open(q, xp->up.netdev, i, device, why);
        if (error) {
            return error;
        }
        int fd = xsk_socket__fd(q->xsk);
        *why = "cannot wait for the AF_XDP socket";
        error = watch(xp, fd, EPOLLIN);
        if (error) {
            return error;
        }
        if (bpf_map_update_elem(map_fd, &i, &fd, BPF_ANY)) {
            *why = "cannot tell the XDP program of the socket";
            return errno;
        }
    }
    return 0;
}

static int
open_device(struct xdp_port *xp, struct device *device, const char **why)
{
    xp->watch_fd = device_socket(why);
    if (xp->watch_fd < 0) {
        return errno;
    }
    int error = check_device(xp, why);
    error = error ? error : device_promiscuous(xp->watch_fd, device->ifindex, why);
    error = error ? error : device_bind(xp->watch_fd, device->ifindex, WATCH_TYPE, why);
    if (error) {
        return error;
    }
    device_stop_merging(xp->watch_fd, xp->up.netdev);
    xp->n_queues = count_queues(xp->watch_fd, xp->up.netdev);
    xp->queues = must_calloc(xp->n_queues, sizeof *xp->queues);
    device->fragments = xp->is_veth || xp->up.mtu + sizeof(struct eth_hdr) > ONE_CHUNK;
    xp->up.mtu_max = device->fragments ? 0 : ONE_CHUNK - sizeof(struct eth_hdr);

    *why = "cannot wait for the device";
    xp->up.fd = epoll_create1(EPOLL_CLOEXEC);
    error = xp->up.fd < 0 ? errno : watch(xp, xp->watch_fd, 0);
    if (error) {
        return error;
    }
    int map_fd = attach(xp, device, why);
    if (map_fd < 0) {
        return errno;
    }
    error = open_queues(xp, device, map_fd, why);
    close(map_fd); /* the program has it. */
    return error;
}

static void
xdp_close(struct port *port)
{
    struct xdp_port *xp = (struct xdp_port *) port;

    if (xp->link_fd >= 0) {
        close(xp->link_fd);
    }
    for (unsigned i = 0; i < xp->n_queues; i++) {
        queue_close(&xp->queues[i]);
    }
    free(xp->queues);
    if (xp->watch_fd >= 0) {
        close(xp->watch_fd);
    }
}

static int
xdp_open(struct port *port, int ifindex, const struct port_queue *share, const char **why)
{
    struct xdp_port *xp = (struct xdp_port *) port;
    struct device device = {.ifindex = ifindex};

    if (share->n > 1) {
        *why = "a port of kind xdp needs --threads=1";
        return EINVAL;
    }

    xp->watch_fd = xp->link_fd = -1;
    int error = open_device(xp, &device, why);
    if (error) {
        xdp_close(port);
        return error;
    }
    for (uint64_t i = 0; i < N_TX; i++) {
        xp->free[xp->n_free++] = (N_RX + i) * CHUNK_SIZE;
    }
    return 0;
}

/* Starts the frame whose first chunk has come. */
static void
start_frame(struct queue *q, struct packet_pool *pool)
{
    q->p = packet_get(pool);
    q->why_lost = q->p ? 0 : ENOBUFS;
    q->in_frame = true;
}

/* Ends it. */
static void
end_frame(struct xdp_port *xp, struct queue *q, struct port_burst *burst)
{
    if (q->p) {
        if (xp->is_veth) {
            gso_unmarked_checksum(q->p->data, q->p->len);
        }
        burst->frames[burst->n++] = q->p;
    } else {
        port_burst_lost(burst, q->why_lost);
    }
    q->p = NULL;
    q->in_frame = false;
}

/* The next bytes of the frame. */
static void
append(struct queue *q, const uint8_t *bytes, uint32_t len)
{
    if (q->p && len > PACKET_ROOM - q->p->len) {
        packet_put(q->p);
        q->p = NULL;
        q->why_lost = EMSGSIZE;
    }
    if (q->p) {
        memcpy(q->p->data + q->p->len, bytes, len);
        q->p->len += len;
    }
}

/* No more frames now?  Who has the buffers may return some. */
static bool
is_full(const struct port_burst *burst)
{
    return burst->n + burst->n_lost == PORT_BURST || (burst->n_lost && burst->why_lost == ENOBUFS);
}

static void
wake_receiver(struct queue *q)
{
    if (xsk_ring_prod__needs_wakeup(&q->fill)) {
        (void) recvfrom(xsk_socket__fd(q->xsk), NULL, 0, MSG_DONTWAIT, NULL, NULL);
    }
}

/* Takes what a queue has received, as far as the burst has room. */
static void
receive(struct xdp_port *xp, struct queue *q, struct packet_pool *pool, struct port_burst *burst)
{
    uint64_t used[PORT_BURST];
    uint32_t from = 0, to = 0, n;

    while (!is_full(burst) && (n = xsk_ring_cons__peek(&q->rx, PORT_BURST, &from))) {
        uint32_t i = 0;

        for (; i < n && !is_full(burst); i++) {
            const struct xdp_desc *desc = xsk_ring_cons__rx_desc(&q->rx, from + i);

            if (i + 1 < n) {
                __builtin_prefetch(q->chunks + xsk_ring_cons__rx_desc(&q->rx, from + i + 1)->addr);
            }
            if (!q->in_frame) {
                start_frame(q, pool);
            }
            append(q, q->chunks + desc->addr, desc->len);
            if (!(desc->options & XDP_PKT_CONTD)) {
                end_frame(xp, q, burst);
            }
            used[i] = desc->addr;
        }
        xsk_ring_cons__cancel(&q->rx, n - i);
        xsk_ring_cons__release(&q->rx, i);
        /* The ring has room for all chunks that there are. */
        xsk_ring_prod__reserve(&q->fill, i, &to);
        for (uint32_t k = 0; k < i; k++) {
            *xsk_ring_prod__fill_addr(&q->fill, to + k) = used[k];
        }
        xsk_ring_prod__submit(&q->fill, i);
    }
    wake_receiver(q);
}

/* The position up to which the kernel has taken what was to be sent. */
static uint32_t
n_taken(const struct queue *q)
{
    return __atomic_load_n(q->tx.consumer, __ATOMIC_ACQUIRE);
}

static bool
has_unsent(const struct queue *q)
{
    return n_taken(q) != *q->tx.producer;
}

/* Has epoll say when the first queue can send, or not. */
static void
wait_to_send(struct xdp_port *xp, bool wait)
{
    if (xp->waits_to_send != wait) {
        struct epoll_event event = {.events = EPOLLIN | (wait ? EPOLLOUT : 0)};
        (void) epoll_ctl(xp->up.fd, EPOLL_CTL_MOD, xsk_socket__fd(xp->queues->xsk), &event);
        xp->waits_to_send = wait;
    }
}

/* Has the kernel send what is in the ring.  A call takes only so many frames; EAGAIN says
 * that some are left, or that the driver has no room. */
static void
transmit(struct xdp_port *xp)
{
    struct queue *q = xp->queues;
    int error = 0;

    /* After an error, also to find out whether that is over. */
    while (xp->send_error || (has_unsent(q) && xsk_ring_prod__needs_wakeup(&q->tx))) {
        uint32_t before = n_taken(q);

        xp->send_error = 0;
        error = sendto(xsk_socket__fd(q->xsk), NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? errno : 0;
        if (error == EBUSY || error == ENOBUFS) {
            error = EAGAIN;
        }
        if (error != EAGAIN || n_taken(q) == before) {
            break;
        }
    }
    wait_to_send(xp, error == EAGAIN && has_unsent(q));
    xp->send_error = error == EAGAIN ? 0 : error;
}

static int
xdp_recv(struct port *port, struct packet_pool *pool, struct port_burst *burst)
{
    struct xdp_port *xp = (struct xdp_port *) port;
    int error;
    socklen_t len = sizeof error;

    if (xp->waits_to_send) {
        transmit(xp);
    }
    for (unsigned i = 0; i < xp->n_queues && !is_full(burst); i++) {
        receive(xp, &xp->queues[xp->next_queue], pool, burst);
        xp->next_queue = (xp->next_queue + 1) % xp->n_queues;
    }
    if (is_full(burst)) {
        return 0;
    }
    if (burst->n || burst->n_lost) {
        return EAGAIN; /* an error is for the next call. */
    }
    if (getsockopt(xp->watch_fd, SOL_SOCKET, SO_ERROR, &error, &len)) {
        return errno;
    }
    if (error != ENETDOWN) {
        return error ? error : EAGAIN;
    }
    xp->send_error = ENETDOWN; /* the next attempt asks the kernel first. */
    return device_down_or_gone(xp->watch_fd);
}

/* Takes back chunks whose frames were sent. */
static void
reclaim(struct xdp_port *xp)
{
    struct xsk_ring_cons *ring = &xp->queues->completion;
    uint32_t index = 0;
    uint32_t n = xsk_ring_cons__peek(ring, N_TX, &index);

    for (uint32_t i = 0; i < n; i++) {
        xp->free[xp->n_free++] = *xsk_ring_cons__comp_addr(ring, index + i);
    }
    xsk_ring_cons__release(ring, n);
}

/* Copies the frame to chunks, each of which gets a place in the ring.  There must be enough. */
static unsigned
put_frame(struct xdp_port *xp, const struct packet *p)
{
    struct queue *q = xp->queues;
    struct xdp_desc *desc = NULL;
    struct iovec iov[3];
    int n_iov = packet_iov(p, iov);
    unsigned n_chunks = 0;

    for (int i = 0; i < n_iov; i++) {
        const uint8_t *from = iov[i].iov_base;
        size_t left = iov[i].iov_len;

        while (left) {
            if (!desc || desc->len == CHUNK_SIZE) {
                uint32_t index = 0;

                if (desc) {
                    desc->options = XDP_PKT_CONTD;
                }
                xsk_ring_prod__reserve(&q->tx, 1, &index);
                desc = xsk_ring_prod__tx_desc(&q->tx, index);
                *desc = (struct xdp_desc){.addr = xp->free[--xp->n_free]};
                n_chunks++;
            }
            size_t n = CHUNK_SIZE - desc->len < left ? CHUNK_SIZE - desc->len : left;
            memcpy(q->chunks + desc->addr + desc->len, from, n);
            desc->len += (uint32_t) n;
            from += n;
            left -= n;
        }
    }
    return n_chunks;
}

static size_t
xdp_send(struct port *port, struct packet *const *frames, size_t n, int *why)
{
    struct xdp_port *xp = (struct xdp_port *) port;
    unsigned n_chunks = 0;
    size_t i = 0;

    if (xp->send_error) {
        transmit(xp);
        if (xp->send_error) {
            *why = xp->send_error;
            return 0;
        }
    }
    reclaim(xp);
    for (; i < n; i++) {
        if (packet_size(frames[i]) > port->mtu + sizeof(struct eth_hdr)) {
            *why = EMSGSIZE;
            break;
        }
        if (xp->n_free < MAX_CHUNKS) {
            /* Sent frames return their chunks. */
            xsk_ring_prod__submit(&xp->queues->tx, n_chunks);
            n_chunks = 0;
            transmit(xp);
            reclaim(xp);
            if (xp->n_free < MAX_CHUNKS) {
                *why = xp->send_error ? xp->send_error : EAGAIN;
                break;
            }
        }
        n_chunks += put_frame(xp, frames[i]);
    }
    xsk_ring_prod__submit(&xp->queues->tx, n_chunks);
    transmit(xp);
    return i;
}

const struct port_class port_xdp = {
    .size = sizeof(struct xdp_port),
    .is_netdev = true,
    .open = xdp_open,
    .close = xdp_close,
    .recv = xdp_recv,
    .send = xdp_send,
};
