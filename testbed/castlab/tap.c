/* SPDX-License-Identifier: Apache-2.0
 *
 * A host's NIC: a persistent tap with many queues.  One of them is held
 * detached, so that the tap has carrier while no daemon is attached.
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

#include "testbed/castlab/netops.h"
#include "util.h"

#define TUN_DEVICE "/dev/net/tun"

/* A queue of the tap; negative errno on failure. */
static int
attach(const char *netdev, short flags)
{
    struct ifreq ifr = {.ifr_flags = (short) (IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE | flags)};
    ovs_strlcpy(ifr.ifr_name, netdev, sizeof ifr.ifr_name);
    int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr)) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        return -error;
    }
    return fd;
}

char *
tap_create(const char *netdev)
{
    int fd = attach(netdev, (short) IFF_TUN_EXCL);
    if (fd < 0) {
        return xasprintf("tap %s: %s", netdev, ovs_strerror(-fd));
    }
    int error = ioctl(fd, TUNSETPERSIST, 1) ? errno : 0;
    close(fd);
    return error ? xasprintf("tap %s: persist: %s", netdev, ovs_strerror(error)) : NULL;
}

char *
tap_hold(const char *netdev, int *fdp)
{
    /* TUNSETIFF would create a device that does not exist. */
    if (!if_nametoindex(netdev)) {
        return xasprintf("tap %s: %s", netdev, ovs_strerror(errno));
    }
    int fd = attach(netdev, 0);
    if (fd < 0) {
        return xasprintf("tap %s: %s", netdev, ovs_strerror(-fd));
    }
    struct ifreq ifr = {.ifr_flags = IFF_DETACH_QUEUE};
    if (ioctl(fd, TUNSETQUEUE, &ifr)) {
        char *error = xasprintf("tap %s: detach: %s", netdev, ovs_strerror(errno));
        close(fd);
        return error;
    }
    *fdp = fd;
    return NULL;
}
