/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues of taps.
 *
 * TUNSETIFF makes a device if there is none of that name in the namespace, and
 * a tap that only this process holds would take a host's NIC with it when the
 * process ends.  So a device must exist before, and be persistent after;
 * one that came to be in between is not, and goes with the descriptor.
 *
 * USO is for what a queue sends.  A kernel cannot be asked for that.  But it refuses to hand over
 * super-frames, the other direction, if it does not know them, and both came with Linux 6.2.  So
 * this is turned on, and off again at once: what a queue receives is complete.  Frames that the
 * host sends in between may be incomplete; their headers say so.
 *
 * A header costs about 0.1 us a frame.  So there is none where the kernel has no USO.
 */
#include "lib/tap-queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef TUN_F_USO4 /* since Linux 6.2. */
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

/* Attaches fd, and says which flags the tap has. */
static int
attach(int fd, const char *netdev, int more_flags, int *flags, const char **why)
{
    struct ifreq ifr;

    memset(&ifr, 0, sizeof ifr);
    memcpy(ifr.ifr_name, netdev, strlen(netdev));
    ifr.ifr_flags = (short) (IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE | more_flags);
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
    *flags = ifr.ifr_flags;
    return 0;
}

/* Has the kernel USO?  Turns receive offload off, which others may have left on. */
static bool
has_uso(int fd)
{
    bool uso = !ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_USO4 | TUN_F_USO6);

    return !ioctl(fd, TUNSETOFFLOAD, 0) && uso;
}

static int
check_header_size(int fd, const char **why)
{
    int size = 0;

    if (ioctl(fd, TUNGETVNETHDRSZ, &size) || size != sizeof(struct virtio_net_hdr)) {
        *why = "the tap's frames have headers of another size";
        return EINVAL;
    }
    return 0;
}

static int
open_queue(struct tap_queue *q, const char *netdev, int more_flags, const char **why)
{
    int flags = 0;

    *q = (struct tap_queue){.fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)};
    if (q->fd < 0) {
        *why = "cannot open /dev/net/tun";
        return errno;
    }
    int error = attach(q->fd, netdev, more_flags, &flags, why);
    if (!error && flags & IFF_VNET_HDR) {
        q->vnet_hdr = true;
        q->uso = has_uso(q->fd) && more_flags & IFF_VNET_HDR;
        error = check_header_size(q->fd, why);
    }
    if (error) {
        close(q->fd);
    }
    return error;
}

int
tap_queue_open(struct tap_queue *q, const char *netdev, bool offload, const char **why)
{
    if (strlen(netdev) >= IFNAMSIZ || !if_nametoindex(netdev)) {
        *why = "no such network device";
        return ENODEV;
    }
    int error = open_queue(q, netdev, offload ? IFF_VNET_HDR : 0, why);

    if (!error && offload && q->vnet_hdr && !q->uso) {
        close(q->fd);
        error = open_queue(q, netdev, 0, why);
    }
    return error;
}
