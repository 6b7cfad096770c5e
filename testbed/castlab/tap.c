/* SPDX-License-Identifier: Apache-2.0
 *
 * A host's NIC: a persistent tap with many queues.  One of them is held
 * detached, so that the tap has carrier while no daemon is attached.  It is the
 * first one, and so decides whether daemons can use segmentation offload.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/tap-queue.h"
#include "testbed/castlab/netops.h"
#include "util.h"

char *
tap_create(const char *netdev)
{
    struct ifreq ifr = {.ifr_flags =
                            (short) (IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE | IFF_TUN_EXCL)};
    ovs_strlcpy(ifr.ifr_name, netdev, sizeof ifr.ifr_name);
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr)) {
        char *why = xasprintf("tap %s: %s", netdev, ovs_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return why;
    }
    int error = ioctl(fd, TUNSETPERSIST, 1) ? errno : 0;
    close(fd);
    return error ? xasprintf("tap %s: persist: %s", netdev, ovs_strerror(error)) : NULL;
}

char *
tap_hold(const char *netdev, int *fdp)
{
    struct tap_queue queue;
    const char *why;
    int error = tap_queue_open(&queue, netdev, true, &why);
    if (error) {
        return xasprintf("tap %s: %s: %s", netdev, why, ovs_strerror(error));
    }
    struct ifreq ifr = {.ifr_flags = IFF_DETACH_QUEUE};
    if (ioctl(queue.fd, TUNSETQUEUE, &ifr)) {
        char *detach_error = xasprintf("tap %s: detach: %s", netdev, ovs_strerror(errno));
        close(queue.fd);
        return detach_error;
    }
    *fdp = queue.fd;
    return NULL;
}
