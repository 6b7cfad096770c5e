/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports on a queue of a persistent multi-queue tap.
 *
 * With segmentation offload frames that go together leave as one super-frame (lib/port-uso.h).
 * The kernel cuts it in front of what wants single packets: a socket, or a device.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/port-impl.h"
#include "lib/port-uso.h"
#include "lib/tap-queue.h"

#define VNET_HDR_LEN (sizeof(struct virtio_net_hdr))

struct tap_port {
    struct port port;
    bool vnet_hdr, uso; /* of struct tap_queue. */
};

static struct tap_port *
tap_port(struct port *port)
{
    return (struct tap_port *) port;
}

static int
tap_acquire(const struct port_device *device, struct port_parts *parts, const char **why)
{
    struct tap_queue queue;
    int error = tap_queue_open(&queue, device->netdev, device->offload, why);

    if (!error) {
        port_parts_add(parts, queue.fd);
        parts->vnet_hdr = queue.vnet_hdr;
        parts->uso = queue.uso;
    }
    return error;
}

static int
tap_assemble(struct port *port, struct port_parts *parts,
             const struct port_queue *queue __attribute__((unused)), const char **why)
{
    port->fd = port_parts_take(parts, 1);
    if (port->fd < 0) {
        *why = "no descriptor";
        return EBADF;
    }
    tap_port(port)->vnet_hdr = parts->vnet_hdr;
    tap_port(port)->uso = parts->uso;
    return 0;
}

/* The device is gone. */
static int
device_error(void)
{
    return errno == EBADFD ? ENODEV : errno;
}

/* Completes a frame by the header in front of it; false: it is a super-frame.  There is something
 * to do only if another program has turned receive offload on for the device. */
static bool
complete(struct packet *p)
{
    struct virtio_net_hdr vnet;

    memcpy(&vnet, p->data - sizeof vnet, sizeof vnet);
    return vnet.gso_type == VIRTIO_NET_HDR_GSO_NONE
           && (!(vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || gso_checksum(&vnet, p->data, p->len));
}

/* One frame; the room behind PACKET_ROOM shows whether it was longer. */
static int
recv_one(struct port *port, struct packet_pool *pool, struct port_burst *burst)
{
    struct packet *p = packet_get(pool);
    const size_t hdr_len = tap_port(port)->vnet_hdr ? VNET_HDR_LEN : 0;
    uint8_t nowhere[VNET_HDR_LEN];

    /* Without a buffer the frame is taken all the same: left where it is it would keep the
     * descriptor readable. */
    ssize_t n = read(port->fd, p ? p->data - hdr_len : nowhere,
                     p ? hdr_len + PACKET_ROOM + PACKET_OVER : sizeof nowhere);
    if (n < 0) {
        int error = device_error();
        packet_put(p);
        return error;
    }
    if (p) {
        p->len = (uint32_t) ((size_t) n - hdr_len);
    }
    if (!p || p->len > PACKET_ROOM || (hdr_len && !complete(p))) {
        port_burst_lost(burst, p ? EMSGSIZE : ENOBUFS);
        packet_put(p);
        return 0;
    }
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

/* Sends frames in one write, in one piece: copying them together costs less than a vector does. */
static ssize_t
send_joined(const struct tap_port *tap, struct packet *const *frames, size_t n)
{
    struct {
        struct virtio_net_hdr vnet;
        uint8_t frame[GSO_MAX];
    } buf;
    static_assert(offsetof(typeof(buf), frame) == VNET_HDR_LEN, "frame behind the header");
    size_t len;

    if (n > 1) {
        len = uso_join(frames, n, &buf.vnet, buf.frame);
    } else {
        memset(&buf.vnet, 0, sizeof buf.vnet);
        len = packet_flatten(frames[0], buf.frame, sizeof buf.frame);
    }
    return tap->vnet_hdr ? write(tap->port.fd, &buf, VNET_HDR_LEN + len)
                         : write(tap->port.fd, buf.frame, len);
}

static ssize_t
send_run(const struct tap_port *tap, struct packet *const *frames, size_t n)
{
    const struct packet *p = frames[0];
    const bool in_one_piece = !tap->vnet_hdr && !p->body_len && !p->tail_len;

    return in_one_piece ? write(tap->port.fd, p->data, p->len) : send_joined(tap, frames, n);
}

static size_t
tap_send(struct port *port, struct packet *const *frames, size_t n, int *why)
{
    const struct tap_port *tap = tap_port(port);

    for (size_t i = 0, count; i < n; i += count) {
        count = tap->uso ? uso_count(frames + i, n - i) : 1;
        if (send_run(tap, frames + i, count) < 0) {
            *why = device_error();
            return i;
        }
    }
    return n;
}

const struct port_class port_tap = {
    .size = sizeof(struct tap_port),
    .is_host_nic = true,
    .acquire = tap_acquire,
    .assemble = tap_assemble,
    .recv = tap_recv,
    .send = tap_send,
};
