/* SPDX-License-Identifier: Apache-2.0
 *
 * dp-bare: the least that a forwarder with these ports can do.  One frame is read, and written to
 * each output, by one system call each; nothing else happens.
 *
 * A frame to a tap gets that tap's MAC address, so that its host takes it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FRAME_MAX     9216
#define SOCKET_BUFFER (8 << 20) /* as lib/port-packet.c. */

struct end {
    int fd;
    bool is_tap;
    uint8_t mac[ETH_ALEN]; /* a tap's. */
};

static void __attribute__((noreturn)) fail(const char *what)
{
    fprintf(stderr, "dp-bare: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int
open_tap(const char *netdev, uint8_t mac[ETH_ALEN])
{
    struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE};
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

    strncpy(ifr.ifr_name, netdev, IFNAMSIZ - 1);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr) || ioctl(fd, SIOCGIFHWADDR, &ifr)) {
        fail(netdev);
    }
    memcpy(mac, ifr.ifr_hwaddr.sa_data, ETH_ALEN);
    return fd;
}

static int
open_packet(const char *netdev)
{
    const struct sockaddr_ll sll = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = (int) if_nametoindex(netdev),
    };
    const int on = 1, size = SOCKET_BUFFER;
    int fd = sll.sll_ifindex ? socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) : -1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size)
        || setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size)
        || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on)
        || bind(fd, (const struct sockaddr *) &sll, sizeof sll)) {
        fail(netdev);
    }
    return fd;
}

/* KIND:NETDEV. */
static struct end
open_end(const char *text)
{
    const char *colon = strchr(text, ':');
    struct end e = {.is_tap = colon && !strncmp(text, "tap:", 4)};

    if (!colon || (!e.is_tap && strncmp(text, "packet:", 7))) {
        errno = EINVAL;
        fail(text);
    }
    e.fd = e.is_tap ? open_tap(colon + 1, e.mac) : open_packet(colon + 1);
    return e;
}

int
main(int argc, char *argv[])
{
    uint8_t frame[FRAME_MAX];

    if (argc < 3) {
        fputs("usage: dp-bare INPUT OUTPUT...  (each tap:NETDEV or packet:NETDEV)\n", stderr);
        return 1;
    }
    const struct end in = open_end(argv[1]);
    struct end *out = calloc((size_t) argc, sizeof *out);
    const size_t n_out = (size_t) argc - 2;

    if (!out) {
        fail("calloc");
    }
    for (size_t i = 0; i < n_out; i++) {
        out[i] = open_end(argv[2 + i]);
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        ssize_t len = read(in.fd, frame, sizeof frame);

        if (len < ETH_HLEN) {
            fail("read");
        }
        for (size_t i = 0; i < n_out; i++) {
            if (out[i].is_tap) {
                memcpy(frame, out[i].mac, ETH_ALEN);
            }
            if (write(out[i].fd, frame, (size_t) len) < 0) {
                fail("write");
            }
        }
    }
}
