/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports on AF_XDP sockets: what needs privileges.
 *
 * The port may be another process's (ctl/node/port-helper.h).  So the memory that sockets use is a file
 * without a name, which both can map, and nothing here stays mapped.  It is locked on this process's
 * account for as long as its sockets are open, whoever has them.
 *
 * Sockets are not bound here: before Linux 6.4 the rings of one that is nobody can map, and who has the
 * port is to map them.  To bind one takes no privilege.  Until then the program's frames are lost.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xdp/xsk.h>

#include "lib/port-device.h"
#include "lib/port-impl.h"
#include "lib/port-xdp.h"
#include "lib/wire.h"
#include "lib/xdp-program.h"

/* Of Linux 6.6; Debian's headers are older. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif

#define WATCH_TYPE 0x88b5 /* IEEE 802: for local experiments.  Nothing is read. */

/* What is known of the device, and what was opened; descriptors are the parts'. */
struct opening {
    const struct port_device *device;
    struct port_parts *parts;
    int watch_fd, map_fd, memory_fd;
    unsigned n_queues;
    uint32_t mode; /* XDP_FLAGS_DRV_MODE or XDP_FLAGS_SKB_MODE. */
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
check_device(struct opening *o, const char **why)
{
    const char *netdev = o->device->netdev;
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};

    if (device_ethtool(o->watch_fd, netdev, &info)) {
        memset(&info, 0, sizeof info);
    }
    o->parts->is_veth = !strcmp(info.driver, "veth");
    /* Other devices without hardware get frames from those below them, tags beside the bytes. */
    if (!o->parts->is_veth && !*info.bus_info) {
        *why = "neither hardware nor a veth; use kind 'packet'";
        return EOPNOTSUPP;
    }
    if (!o->parts->is_veth && !keep_tags(o->watch_fd, netdev)) {
        *why = "cannot turn VLAN offload off (rxvlan); use kind 'packet'";
        return EOPNOTSUPP;
    }
    return 0;
}

static int
open_watch(struct opening *o, const char **why)
{
    o->watch_fd = port_parts_add(o->parts, device_socket(why));
    if (o->watch_fd < 0) {
        return errno;
    }
    int error = check_device(o, why);
    error = error ? error : device_promiscuous(o->watch_fd, o->device->ifindex, why);
    error = error ? error : device_bind(o->watch_fd, o->device->ifindex, WATCH_TYPE, why);
    if (error) {
        return error;
    }
    device_stop_merging(o->watch_fd, o->device->netdev);
    o->n_queues = count_queues(o->watch_fd, o->device->netdev);
    if (o->n_queues > PORT_MAX_FDS - XDP_PART_QUEUES) {
        *why = "too many receive queues (ethtool -L)";
        return E2BIG;
    }
    o->parts->large = o->parts->is_veth || o->device->mtu + sizeof(struct eth_hdr) > ONE_CHUNK;
    return 0;
}

/* Attaches a program that is told of no socket yet. */
static int
attach(struct opening *o, const char **why)
{
    static const uint32_t modes[] = {XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE};
    const bool is_veth = o->parts->is_veth;
    const struct xdp_program_options options = {
        .veth = is_veth ? o->device->ifindex : 0,
        .fragments = o->parts->large,
    };
    int link_fd = -1, error = 0;

    o->map_fd = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "rocecast", sizeof(uint32_t), sizeof(uint32_t),
                               o->n_queues, NULL);
    if (o->map_fd < 0) {
        *why = "cannot make an XSKMAP";
        return errno;
    }
    int program_fd = xdp_program_load(o->map_fd, &options, why);
    if (program_fd < 0) {
        return errno;
    }
    for (size_t i = 0; i < (is_veth ? 1 : 2) && link_fd < 0 && error != EBUSY; i++) {
        LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = modes[i]);
        link_fd = bpf_link_create(program_fd, o->device->ifindex, BPF_XDP, &opts);
        error = link_fd < 0 ? errno : 0;
        o->mode = modes[i];
    }
    close(program_fd); /* the link has it. */
    port_parts_add(o->parts, link_fd);
    if (error) {
        *why = error == EBUSY ? "another XDP program is attached"
               : error == ENOSPC && is_veth
                   ? "fewer receive queues than the other end has to send on"
                   : "cannot attach the XDP program";
    }
    return error;
}

static int
open_memory(struct opening *o, const char **why)
{
    o->memory_fd = port_parts_add(o->parts, memfd_create("rocecast-frames", MFD_CLOEXEC));
    if (o->memory_fd < 0 || ftruncate(o->memory_fd, (off_t) (o->n_queues * AREA_SIZE))) {
        *why = "no memory for frames";
        return errno;
    }
    return 0;
}

static void
give_chunks(struct xsk_ring_prod *fill)
{
    uint32_t index = 0;

    xsk_ring_prod__reserve(fill, N_RX, &index);
    for (uint32_t i = 0; i < N_RX; i++) {
        *xsk_ring_prod__fill_addr(fill, index + i) = (uint64_t) i * CHUNK_SIZE;
    }
    xsk_ring_prod__submit(fill, N_RX);
}

/* Makes a socket with its memory and rings; the fill ring has the chunks to receive in. */
static int
create_socket(struct xsk_umem **umem, void *chunks, const char **why)
{
    const struct xsk_umem_config memory = {
        .fill_size = N_RX,
        .comp_size = N_TX,
        .frame_size = CHUNK_SIZE,
    };
    const int n_rx = N_RX, n_tx = N_TX;
    struct xsk_ring_prod fill;
    struct xsk_ring_cons completion;
    int error = -xsk_umem__create(umem, chunks, AREA_SIZE, &fill, &completion, &memory);

    if (error) {
        *why = error == ENOBUFS ? "cannot lock memory for frames (ulimit -l)"
                                : "cannot register memory for frames";
        return error;
    }
    give_chunks(&fill);
    int fd = xsk_umem__fd(*umem);
    if (setsockopt(fd, SOL_XDP, XDP_RX_RING, &n_rx, sizeof n_rx)
        || setsockopt(fd, SOL_XDP, XDP_TX_RING, &n_tx, sizeof n_tx)) {
        *why = "cannot make the AF_XDP socket's rings";
        return errno;
    }
    return 0;
}

static int
keep_socket(const struct opening *o, int fd, uint32_t number, const char **why)
{
    device_large_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
    if (bpf_map_update_elem(o->map_fd, &number, &fd, BPF_ANY)) {
        *why = "cannot tell the XDP program of the socket";
        return errno;
    }
    if (port_parts_add(o->parts, fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
        *why = "no descriptor for the AF_XDP socket";
        return errno;
    }
    return 0;
}

static int
open_queue(const struct opening *o, unsigned number, const char **why)
{
    struct xsk_umem *umem = NULL;
    void *chunks = mmap(NULL, AREA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, o->memory_fd,
                        (off_t) (number * AREA_SIZE));
    if (chunks == MAP_FAILED) {
        *why = "no memory for frames";
        return errno;
    }
    int error = create_socket(&umem, chunks, why);
    error = error ? error : keep_socket(o, xsk_umem__fd(umem), number, why);
    (void) xsk_umem__delete(umem);
    munmap(chunks, AREA_SIZE);
    return error;
}

int
xdp_acquire(const struct port_device *device, struct port_parts *parts, const char **why)
{
    struct opening o = {.device = device, .parts = parts, .map_fd = -1};

    if (device->n_sharing > 1) {
        *why = "a port of kind xdp needs --threads=1";
        return EINVAL;
    }
    int error = open_watch(&o, why);
    error = error ? error : attach(&o, why);
    error = error ? error : open_memory(&o, why);
    /* The kernel tries zero copy first if it is not told anything.  Generic mode has none. */
    parts->ifindex = (uint32_t) device->ifindex;
    parts->bind_flags =
        (uint16_t) (XDP_USE_NEED_WAKEUP | (o.mode == XDP_FLAGS_SKB_MODE ? XDP_COPY : 0)
                    | (parts->large ? XDP_USE_SG : 0));
    for (unsigned i = 0; i < o.n_queues && !error; i++) {
        error = open_queue(&o, i, why);
    }
    if (o.map_fd >= 0) {
        close(o.map_fd); /* the program has it. */
    }
    return error;
}
