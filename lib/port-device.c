/* SPDX-License-Identifier: Apache-2.0
 *
 * Network devices that a port takes over.
 */
#include "lib/port-device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define SOCKET_BUFFER (8 << 20)

int
device_socket(const char **why)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *why = "cannot open a packet socket";
    }
    return fd;
}

int
device_bind(int fd, int ifindex, uint16_t type, const char **why)
{
    const struct sockaddr_ll sll = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(type),
        .sll_ifindex = ifindex,
    };

    if (bind(fd, (const struct sockaddr *) &sll, sizeof sll)) {
        *why = "cannot bind to the device";
        return errno;
    }
    return 0;
}

int
device_promiscuous(int fd, int ifindex, const char **why)
{
    const struct packet_mreq promisc = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};

    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof promisc)) {
        *why = "cannot make the device promiscuous";
        return errno;
    }
    return 0;
}

int
device_down_or_gone(int fd)
{
    struct sockaddr_ll sll = {.sll_ifindex = 0};
    socklen_t len = sizeof sll;

    return !getsockname(fd, (struct sockaddr *) &sll, &len) && sll.sll_ifindex <= 0 ? ENODEV
                                                                                    : ENETDOWN;
}

void
device_large_buffer(int fd, int force, int plain)
{
    int size = SOCKET_BUFFER;

    /* Above the system's maximum with CAP_NET_ADMIN, up to it without; less is
     * slower, not wrong. */
    if (setsockopt(fd, SOL_SOCKET, force, &size, sizeof size)) {
        (void) setsockopt(fd, SOL_SOCKET, plain, &size, sizeof size);
    }
}

int
device_ethtool(int fd, const char *netdev, void *command)
{
    struct ifreq ifr = {.ifr_data = command};

    memcpy(ifr.ifr_name, netdev, strlen(netdev));
    return ioctl(fd, SIOCETHTOOL, &ifr) ? errno : 0;
}

void
device_stop_merging(int fd, const char *netdev)
{
    struct ethtool_value value = {.cmd = ETHTOOL_SGRO, .data = 0};

    (void) device_ethtool(fd, netdev, &value);
    value.cmd = ETHTOOL_GFLAGS;
    if (!device_ethtool(fd, netdev, &value) && value.data & ETH_FLAG_LRO) {
        value.cmd = ETHTOOL_SFLAGS;
        value.data &= ~(uint32_t) ETH_FLAG_LRO;
        (void) device_ethtool(fd, netdev, &value);
    }
}
