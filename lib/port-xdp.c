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
#include <assert.h>
#include <errno.h>
#include <linux/if_xdp.h>
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
#include "lib/port-xdp.h"
#include "lib/wire.h"

/* Of Linux 6.6; Debian's headers are older. */
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

/* The longest packet's, with all that was pushed in front. */
#define MAX_CHUNKS ((PACKET_HEADROOM + PACKET_ROOM + PACKET_TAIL + CHUNK_SIZE - 1) / CHUNK_SIZE)

/* A ring that the kernel shares. */
struct shared {
    void *map; /* NULL: not mapped. */
    size_t size;
};

enum { RING_FILL, RING_COMPLETION, RING_RX, RING_TX, N_RINGS };

struct queue {
    int fd;
    uint8_t *chunks; /* AREA_SIZE bytes: those to receive, then those to send. */
    struct shared shared[N_RINGS];
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

static void
queue_close(struct queue *q)
{
    packet_put(q->p);
    for (size_t i = 0; i < N_RINGS; i++) {
        if (q->shared[i].map) {
            munmap(q->shared[i].map, q->shared[i].size);
        }
    }
    if (q->chunks) {
        munmap(q->chunks, AREA_SIZE);
    }
    if (q->fd >= 0) {
        close(q->fd);
    }
}

/* Maps a ring of n entries.  Both kinds of ring of libxdp have the same members. */
static int
map_ring(struct queue *q, int which, off_t page, const struct xdp_ring_offset *ofs, uint32_t n,
         size_t entry_size, struct xsk_ring_prod *ring)
{
    struct shared *s = &q->shared[which];
    size_t size = ofs->desc + n * entry_size;
    uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, q->fd, page);

    if (map == MAP_FAILED) {
        return errno;
    }
    *s = (struct shared){map, size};
    *ring = (struct xsk_ring_prod){
        .mask = n - 1,
        .size = n,
        .producer = (void *) (map + ofs->producer),
        .consumer = (void *) (map + ofs->consumer),
        .flags = (void *) (map + ofs->flags),
        .ring = map + ofs->desc,
    };
    ring->cached_prod = *ring->producer;
    ring->cached_cons = *ring->consumer;
    return 0;
}

static int
map_rings(struct queue *q)
{
    struct xdp_mmap_offsets ofs;
    socklen_t len = sizeof ofs;
    struct xsk_ring_prod rx, completion;

    if (getsockopt(q->fd, SOL_XDP, XDP_MMAP_OFFSETS, &ofs, &len)) {
        return errno;
    }
    if (len != sizeof ofs) {
        return EINVAL; /* of a kernel before 5.4. */
    }
    int error = map_ring(q, RING_FILL, (off_t) XDP_UMEM_PGOFF_FILL_RING, &ofs.fr, N_RX,
                         sizeof(uint64_t), &q->fill);
    error = error ? error
                  : map_ring(q, RING_COMPLETION, (off_t) XDP_UMEM_PGOFF_COMPLETION_RING, &ofs.cr,
                             N_TX, sizeof(uint64_t), &completion);
    error = error ? error
                  : map_ring(q, RING_RX, XDP_PGOFF_RX_RING, &ofs.rx, N_RX, sizeof(struct xdp_desc),
                             &rx);
    error = error ? error
                  : map_ring(q, RING_TX, XDP_PGOFF_TX_RING, &ofs.tx, N_TX, sizeof(struct xdp_desc),
                             &q->tx);
    if (!error) {
        static_assert(sizeof q->rx == sizeof rx, "one struct by two names");
        memcpy(&q->rx, &rx, sizeof rx);
        memcpy(&q->completion, &completion, sizeof completion);
        /* A producer's has the ring's size added: room is what is behind it. */
        q->fill.cached_cons += N_RX;
        q->tx.cached_cons += N_TX;
    }
    return error;
}

static int
watch(struct xdp_port *xp, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};

    return epoll_ctl(xp->up.fd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

static int
bind_queue(const struct queue *q, unsigned number, const struct port_parts *parts, const char **why)
{
    const struct sockaddr_xdp address = {
        .sxdp_family = AF_XDP,
        .sxdp_flags = parts->bind_flags,
        .sxdp_ifindex = parts->ifindex,
        .sxdp_queue_id = number,
    };
    int error = bind(q->fd, (const struct sockaddr *) &address, sizeof address) ? errno : 0;

    if (error) {
        *why = error == EINVAL && parts->large ? "frames longer than a page need Linux 6.6"
               : error == EBUSY                ? "another program receives from it by AF_XDP"
                                               : "cannot bind an AF_XDP socket";
    }
    return error;
}

static int
open_queue(struct xdp_port *xp, unsigned number, struct port_parts *parts, int memory_fd,
           const char **why)
{
    struct queue *q = &xp->queues[number];

    q->fd = port_parts_take(parts, XDP_PART_QUEUES + number);
    void *chunks = mmap(NULL, AREA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd,
                        (off_t) (number * AREA_SIZE));
    if (chunks == MAP_FAILED) {
        *why = "no memory for frames";
        return errno;
    }
    q->chunks = chunks;
    int error = map_rings(q);
    if (error) {
        *why = "cannot map the AF_XDP socket's rings";
        return error;
    }
    error = bind_queue(q, number, parts, why);
    if (error) {
        return error;
    }
    *why = "cannot wait for the AF_XDP socket";
    return watch(xp, q->fd, EPOLLIN);
}

static int
open_queues(struct xdp_port *xp, struct port_parts *parts, const char **why)
{
    int memory_fd = port_parts_take(parts, XDP_PART_MEMORY);

    *why = "cannot wait for the device";
    int error = xp->up.fd < 0 ? errno : watch(xp, xp->watch_fd, 0);
    for (unsigned i = 0; i < xp->n_queues && !error; i++) {
        error = open_queue(xp, i, parts, memory_fd, why);
    }
    close(memory_fd);
    return error;
}

static void
xdp_close(struct port *port)
{
    struct xdp_port *xp = (struct xdp_port *) port;

    close(xp->link_fd);
    for (unsigned i = 0; i < xp->n_queues; i++) {
        queue_close(&xp->queues[i]);
    }
    free(xp->queues);
    close(xp->watch_fd);
}

static int
xdp_assemble(struct port *port, struct port_parts *parts,
             const struct port_queue *share __attribute__((unused)), const char **why)
{
    struct xdp_port *xp = (struct xdp_port *) port;

    if (parts->n_fds <= XDP_PART_QUEUES) {
        *why = "no descriptor";
        return EBADF;
    }
    xp->watch_fd = port_parts_take(parts, XDP_PART_WATCH);
    xp->link_fd = port_parts_take(parts, XDP_PART_LINK);
    xp->is_veth = parts->is_veth;
    port->mtu_max = parts->large ? 0 : ONE_CHUNK - sizeof(struct eth_hdr);
    xp->n_queues = parts->n_fds - XDP_PART_QUEUES;
    xp->queues = must_calloc(xp->n_queues, sizeof *xp->queues);
    for (unsigned i = 0; i < xp->n_queues; i++) {
        xp->queues[i].fd = -1;
    }
    port->fd = epoll_create1(EPOLL_CLOEXEC);
    int error = open_queues(xp, parts, why);
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
        (void) recvfrom(q->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
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
        (void) epoll_ctl(xp->up.fd, EPOLL_CTL_MOD, xp->queues->fd, &event);
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
        error = sendto(q->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? errno : 0;
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
    .acquire = xdp_acquire,
    .assemble = xdp_assemble,
    .close = xdp_close,
    .recv = xdp_recv,
    .send = xdp_send,
};
