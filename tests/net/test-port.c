/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports on real devices, and neighbour discovery against the kernel's.
 *
 * Each test makes a network namespace, which ends with it.  Needs root, iproute2
 * and /dev/net/tun.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/inet-csum.h"
#include "lib/l3.h"
#include "lib/parse.h"
#include "lib/pcap-write.h"
#include "lib/port.h"
#include "tests/net/port-fixture.h"
#include "tests/unit/hex.h"

#define NODE_ID  0x100
#define TAGS_OFS 12 /* in a frame: VLAN tags, then the type. */

/* Kinds of port that take a veth, for tests in a loop. */
static const enum port_kind veth_kinds[] = {PORT_PACKET, PORT_XDP};
#define N_VETH_KINDS (sizeof veth_kinds / sizeof *veth_kinds)

static void
must_fail(enum port_kind kind, const char *netdev, int want)
{
    struct port *port;
    char *why = NULL;
    ck_assert_int_eq(port_open(&port, kind, netdev, -1, NULL, &why), want);
    ck_assert_ptr_null(port);
    ck_assert_ptr_nonnull(strstr(why, netdev));
    free(why);
}

/* A frame of 'len' bytes whose payload is nobody's protocol. */
static struct packet *
frame_from(struct packet_pool *from, uint32_t len, uint8_t tag)
{
    struct packet *p = packet_get(from);

    memset(p->data, 0, len);
    memcpy(p->data, "\x33\x33\0\0\0\1\2\0\0\0\0\1\x86\xdd", 14);
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (p->data + 14);
    ip6_set_vtf(ip, 0, 0);
    ip->plen = be16_put((uint16_t) (len - 54));
    ip->nh = IP6_NH_NONE;
    ip->hlim = 1;
    ip->src = (struct in6_addr){.s6_addr = {0xfd, [15] = 1}};
    ip->dst = (struct in6_addr){.s6_addr = {0xff, 2, [15] = 0xee}};
    p->data[len - 1] = tag;
    p->len = len;
    return p;
}

static struct packet *
frame(uint32_t len, uint8_t tag)
{
    return frame_from(pool, len, tag);
}

/* The next frame of frame()'s making; others on the link are the kernel's. */
static struct packet *
next_frame(struct port *port, int msec)
{
    struct packet *p;

    while ((p = next(port, msec)) && p->data[14 + 6] != IP6_NH_NONE) {
        packet_put(p);
    }
    return p;
}

static void
make_veth(const char *a, const char *b)
{
    sh("ip link add %s type veth peer name %s", a, b);
    sh("sysctl -qw net.ipv6.conf.%s.disable_ipv6=1 net.ipv6.conf.%s.disable_ipv6=1", a, b);
    sh("ip link set %s mtu 9000 up; ip link set %s mtu 9000 up", a, b);
    wait_started(a);
    wait_started(b);
}

START_TEST(only_existing_persistent_multiqueue_taps)
    {
        must_fail(PORT_TAP, "nothing0", ENODEV);
        ck_assert_uint_eq(if_nametoindex("nothing0"), 0);
        must_fail(PORT_PACKET, "nothing0", ENODEV);
        must_fail(PORT_TAP, "name-of-a-device-too-long", ENODEV);
        must_fail(PORT_TAP, "lo", EINVAL);
        must_fail(PORT_XDP, "nothing0", ENODEV);
        must_fail(PORT_XDP, "lo", EOPNOTSUPP);
        sh("ip tuntap add dev single mode tap");
        must_fail(PORT_TAP, "single", EINVAL);

        /* One that would go with the process that holds it. */
        struct ifreq ifr = {.ifr_name = "mortal"};
        ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE;
        int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(ioctl(fd, TUNSETIFF, &ifr), 0);
        must_fail(PORT_TAP, "mortal", EINVAL);
        close(fd);

        sh("ip tuntap add dev multi mode tap multi_queue; ip link set multi mtu 4200");

        struct port *port = must_open(PORT_TAP, "multi", -1);
        ck_assert_uint_eq(port_mtu(port), 4200);
        struct packet *p;
        ck_assert_int_eq(recv_one(port, pool, &p), EAGAIN);
        p = frame(60, 0);
        ck_assert_int_eq(send_one(port, p), EIO); /* it is down. */
        packet_put(p);
        port_close(port);
        ck_assert_uint_ne(if_nametoindex("multi"), 0);
    }
END_TEST

START_TEST(vanishing_devices)
    {
        sh("ip tuntap add dev t0 mode tap multi_queue; ip link set t0 up");
        make_veth("v0", "v1");
        struct port *tap = must_open(PORT_TAP, "t0", -1),
                    *packet = must_open(veth_kinds[_i], "v0", -1);
        struct packet *p;

        sh("ip link set v0 down");
        while (recv_one(packet, pool, &p) == 0) {
            packet_put(p);
        }
        sh("ip link set v0 up");
        ck_assert_int_eq(recv_one(packet, pool, &p), EAGAIN);
        sh("ip link del v0; ip link del t0");
        ck_assert_int_eq(recv_one(packet, pool, &p), ENODEV);
        ck_assert_int_eq(recv_one(tap, pool, &p), ENODEV);
        port_close(tap);
        port_close(packet);
    }
END_TEST

START_TEST(mtu_changes)
    {
        sh("ip tuntap add dev t0 mode tap multi_queue; ip link set t0 mtu 4200");
        make_veth("v0", "v1");
        struct port *tap = must_open(PORT_TAP, "t0", -1),
                    *packet = must_open(veth_kinds[_i], "v0", -1);

        sh("ip link set t0 mtu 1400; ip link set v0 mtu 1500");
        ck_assert_uint_eq(port_mtu(tap), 4200);
        ck_assert_int_eq(port_refresh(tap), 0);
        ck_assert_int_eq(port_refresh(packet), 0);
        ck_assert_uint_eq(port_mtu(tap), 1400);
        ck_assert_uint_eq(port_mtu(packet), 1500);
        sh("ip link del t0");
        ck_assert_int_eq(port_refresh(tap), ENODEV);
        port_close(tap);
        port_close(packet);
    }
END_TEST

/* Waits until the port, which is looked at after each event, is up or down. */
static void
wait_link(struct port *port, int events, bool up)
{
    struct pollfd pfd = {.fd = events, .events = POLLIN};

    for (;;) {
        ck_assert_int_eq(port_refresh(port), 0);
        if (port_is_up(port) == up) {
            return;
        }
        ck_assert_int_eq(poll(&pfd, 1, WAIT_MSEC), 1);
        port_events_clear(events);
    }
}

/* Whatever takes a link down is told of: this end, the other end, the device's end.  Of devices in
 * the namespace of the port only. */
START_TEST(link_state)
    {
        int there = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), events;
        char *error = NULL;

        make_veth("v0", "v1");
        ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
        struct port *port = must_open(veth_kinds[_i], "v0", there);
        int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        ck_assert_int_eq(port_events_open(&events, there, &error), 0);
        wait_link(port, events, true);
        static const char *const commands[][2] = {
            {"ip link set v1 down", "ip link set v1 up"},
            {"ip link set v0 down", "ip link set v0 up"},
        };
        for (size_t i = 0; i < 2; i++) {
            for (size_t j = 0; j < 2; j++) {
                ck_assert_int_eq(setns(there, CLONE_NEWNET), 0);
                sh("%s", commands[i][j]);
                ck_assert_int_eq(setns(here, CLONE_NEWNET), 0);
                wait_link(port, events, j);
            }
        }
        port_close(port);
        close(events);
        close(here);
        int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ck_assert_int_eq(port_events_open(&events, none, &error), EINVAL);
        ck_assert_str_eq(error, "cannot enter the device's network namespace (Invalid argument)");
        free(error);
        close(none);
        close(there);
    }
END_TEST

/* A link that has a carrier is up at once, also if the kernel's flags of the device take their time: for
 * the second end of a veth that is started, if the other end has the same number elsewhere. */
START_TEST(new_link_is_up)
    {
        int there = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

        ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
        int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        for (unsigned i = 0; i < 4; i++) {
            sh("ip link add v%u index %u type veth peer name w%u index %u netns /proc/%d/fd/%d", i,
               50 + i, i, 50 + i, (int) getpid(), there);
            ck_assert_int_eq(setns(there, CLONE_NEWNET), 0);
            sh("ip link set w%u up", i);
            ck_assert_int_eq(setns(here, CLONE_NEWNET), 0);
            char name[IFNAMSIZ];
            snprintf(name, sizeof name, "v%u", i);
            sh("ip link set %s up", name);
            struct port *port = must_open(PORT_PACKET, name, -1);
            ck_assert(port_is_up(port));
            ck_assert_int_eq(setns(there, CLONE_NEWNET), 0);
            sh("ip link set w%u down", i);
            ck_assert_int_eq(setns(here, CLONE_NEWNET), 0);
            ck_assert_int_eq(port_refresh(port), 0);
            ck_assert(!port_is_up(port));
            port_close(port);
        }
        close(here);
        close(there);
    }
END_TEST

START_TEST(other_namespace)
    {
        int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

        sh("ip tuntap add dev t0 mode tap multi_queue; ip link set t0 mtu 1234");
        ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
        must_fail(PORT_TAP, "t0", ENODEV);
        struct port *port = must_open(PORT_TAP, "t0", here);
        ck_assert_uint_eq(port_mtu(port), 1234);
        ck_assert_uint_eq(if_nametoindex("t0"), 0); /* back again. */
        ck_assert_int_eq(port_refresh(port), 0);
        port_close(port);
        close(here);
    }
END_TEST

/* Ports of all pairs of kinds at the ends of a veth. */
static void
open_pair(size_t i, struct port **a, struct port **b)
{
    make_veth("v0", "v1");
    *a = must_open(veth_kinds[i % N_VETH_KINDS], "v0", -1);
    *b = must_open(veth_kinds[i / N_VETH_KINDS], "v1", -1);
}

START_TEST(veth_both_ways)
    {
        struct port *a, *b;
        open_pair((size_t) _i, &a, &b);
        struct packet *p;

        struct packet *whole = frame(9014, 7);
        ck_assert_int_eq(send_one(a, whole), 0);
        p = next_frame(b, WAIT_MSEC);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq(p->len, 9014);
        ck_assert_mem_eq(p->data, whole->data, 9014);
        packet_put(p);

        /* In three pieces. */
        struct packet *copy = packet_replicate(whole, 0, 54, PACKET_TAIL);
        ck_assert_int_eq(send_one(b, copy), 0);
        p = next_frame(a, WAIT_MSEC);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq(p->len, 9014);
        ck_assert_mem_eq(p->data, whole->data, 9014);
        packet_put(p);
        packet_put(copy);
        packet_put(whole);

        p = frame(9015, 0);
        ck_assert_int_eq(send_one(a, p), EMSGSIZE);
        packet_put(p);
        ck_assert_ptr_null(next_frame(a, 50)); /* what it sent is not received. */
        ck_assert_ptr_null(next_frame(b, 0));
        port_close(a);
        port_close(b);
    }
END_TEST

START_TEST(no_buffer)
    {
        struct port *a, *b;
        open_pair((size_t) _i, &a, &b);
        struct packet_pool *empty = packet_pool_create(0);
        struct packet *p;

        for (uint8_t i = 0; i < 2; i++) {
            p = frame(100, i);
            ck_assert_int_eq(send_one(a, p), 0);
            packet_put(p);
        }
        ck_assert_int_eq(recv_one(b, empty, &p), ENOBUFS);
        p = next_frame(b, WAIT_MSEC); /* the first is lost, the second is whole. */
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq(p->len, 100);
        ck_assert_uint_eq(p->data[99], 1);
        packet_put(p);
        ck_assert_int_eq(recv_one(b, empty, &p), EAGAIN);
        packet_pool_destroy(empty);
        port_close(a);
        port_close(b);
    }
END_TEST

/* Numbered frames from one end to the other, of lengths that change from one to the next. */
static void
send_burst(struct port *a, struct packet_pool *from, uint32_t n)
{
    struct packet **frames = calloc(n, sizeof *frames);
    int why;

    for (uint32_t i = 0; i < n; i++) {
        static const uint32_t lens[] = {64, 1110, 4096, 4097, 2000, 9014};
        frames[i] = frame_from(from, n > 256 ? 64 : lens[i % 6], 0);
        memcpy(frames[i]->data + 54, &i, sizeof i);
    }
    ck_assert_uint_eq(port_send(a, frames, n, &why), n);
    for (uint32_t i = 0; i < n; i++) {
        packet_put(frames[i]);
    }
    free(frames);
}

/* Returns how many came, in order. */
static uint32_t
receive_burst(struct port *b, uint32_t n)
{
    uint32_t n_received = 0, least = 0;
    struct packet *p;

    while (n_received < n && (p = next_frame(b, 300))) {
        uint32_t i;
        memcpy(&i, p->data + 54, sizeof i);
        ck_assert_uint_ge(i, least);
        ck_assert_uint_lt(i, n);
        least = i + 1;
        n_received++;
        packet_put(p);
    }
    return n_received;
}

START_TEST(bursts)
    {
        static const uint32_t sizes[] = {1, 2, 64, 65, 256, 1024, 4096, 64};
        struct packet_pool *from = packet_pool_create(4096);
        struct port *a, *b;

        open_pair((size_t) _i, &a, &b);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            send_burst(a, from, sizes[i]);
            uint32_t n = receive_burst(b, sizes[i]);
            /* The buffers of a port have room for so many in any case. */
            ck_assert_uint_ge(n, sizes[i] < 2048 ? sizes[i] : 2048);
            ck_assert_ptr_null(next_frame(b, 0));
            ck_assert_uint_eq(packet_pool_n_free(from), 4096);
            ck_assert_uint_eq(packet_pool_n_free(pool), packet_pool_size(pool));
        }
        packet_pool_destroy(from);
        port_close(a);
        port_close(b);
    }
END_TEST

START_TEST(down_and_up)
    {
        struct port *a, *b;
        struct packet *p;
        int error;

        open_pair((size_t) _i, &a, &b);
        sh("ip link set v0 down");
        struct pollfd pfd = {.fd = port_fd(a), .events = POLLIN};
        ck_assert_int_eq(poll(&pfd, 1, WAIT_MSEC), 1);
        while ((error = recv_one(a, pool, &p)) == 0) {
            packet_put(p);
        }
        ck_assert_int_eq(error, ENETDOWN);
        ck_assert_int_eq(recv_one(a, pool, &p), EAGAIN);
        ck_assert_int_eq(poll(&pfd, 1, 0), 0);
        p = frame(100, 1);
        ck_assert_int_eq(send_one(a, p), ENETDOWN);
        ck_assert_int_eq(send_one(a, p), ENETDOWN);
        packet_put(p);
        sh("ip link set v0 up");
        wait_started("v0");
        wait_started("v1");
        while ((error = recv_one(b, pool, &p)) == 0 || error == ENETDOWN) {
            packet_put(p);
        }
        send_burst(a, pool, 20);
        ck_assert_uint_eq(receive_burst(b, 20), 20);
        send_burst(b, pool, 20);
        ck_assert_uint_eq(receive_burst(a, 20), 20);
        port_close(a);
        port_close(b);
    }
END_TEST

/* What a port has taken before its device went away is gone with it. */
START_TEST(gone_in_a_burst)
    {
        struct port *a, *b;
        struct packet *p, *frames[10];
        int error, why = 0;

        open_pair((size_t) _i, &a, &b);
        send_burst(b, pool, 30);
        sh("ip link del v0");
        for (size_t i = 0; i < 10; i++) {
            frames[i] = frame(9014, 0);
        }
        for (int i = 0; i < 3 && port_send(a, frames, 10, &why) == 10; i++) {
        }
        ck_assert_int_eq(why, ENXIO);
        for (size_t i = 0; i < 10; i++) {
            packet_put(frames[i]);
        }
        while ((error = recv_one(a, pool, &p)) == 0) {
            packet_put(p);
        }
        ck_assert_int_eq(error, ENODEV);
        port_close(a);
        port_close(b);
    }
END_TEST

static void
make_host_tap(void)
{
    sh("ip tuntap add dev t0 mode tap multi_queue");
    sh("ip link set t0 mtu 4200 up && ip addr add fd00:1::1/128 dev t0 nodad");
}

START_TEST(tap_sizes)
    {
        sh("ip tuntap add dev t0 mode tap multi_queue");
        sh("sysctl -qw net.ipv6.conf.t0.disable_ipv6=1; ip link set t0 mtu 10000 up");
        struct port *tap = must_open_tap("t0"), *host = must_open(PORT_PACKET, "t0", -1);
        struct packet *p = frame(PACKET_ROOM, 3);

        ck_assert_int_eq(send_one(host, p), 0); /* leaves the host by the tap. */
        packet_put(p);
        p = next_frame(tap, WAIT_MSEC);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq(p->len, PACKET_ROOM);
        ck_assert_uint_eq(p->data[PACKET_ROOM - 1], 3);
        packet_put(p);

        p = frame(PACKET_ROOM + 1, 3);
        ck_assert_int_eq(send_one(host, p), 0);
        packet_put(p);
        struct pollfd pfd = {.fd = port_fd(tap), .events = POLLIN};
        ck_assert_int_eq(poll(&pfd, 1, WAIT_MSEC), 1);
        ck_assert_int_eq(recv_one(tap, pool, &p), EMSGSIZE);
        ck_assert_int_eq(recv_one(tap, pool, &p), EAGAIN);
        port_close(tap);
        port_close(host);
    }
END_TEST

/* Sends one UDP datagram from the kernel: its checksum is left to the device. */
static void
send_udp(const char *to)
{
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(inet_pton(AF_INET6, to, &sin6.sin6_addr), 1);
    ck_assert_int_eq(sendto(s, "odd", 3, 0, (struct sockaddr *) &sin6, sizeof sin6), 3);
    close(s);
}

static struct packet *
next_udp(struct port *port)
{
    struct packet *p;

    while ((p = next(port, WAIT_MSEC)) && p->data[14 + 6] != IP6_NH_UDP) {
        packet_put(p);
    }
    ck_assert_ptr_nonnull(p);
    return p;
}

START_TEST(offloaded_checksum)
    {
        sh("ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up");
        wait_started("v0");
        sh("ip addr add fd00:1::1/64 dev v0 nodad");
        sh("ip neigh add fd00:1::2 lladdr 02:00:00:00:00:02 dev v0 nud permanent");
        struct port *port = must_open(veth_kinds[_i], "v1", -1);

        send_udp("fd00:1::2");
        struct packet *p = next_udp(port);
        const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (p->data + 14);
        uint16_t len = be16_get(ip->plen);
        ck_assert_uint_eq(len, 11);
        ck_assert_uint_eq(be16_get(inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_UDP, ip + 1, len)), 0);
        packet_put(p);
        port_close(port);
    }
END_TEST

/* A TCP segment that the device is to send as several with 10 bytes of payload each, and how the
 * kernel is told: with a port's virtio_net_hdr in front.  The payload is the alphabet. */
static void
send_super_frame(const char *netdev, const char *tag, uint16_t len)
{
    static uint8_t bytes[18 + 60 + UINT16_MAX];
    const size_t eth_len = TAGS_OFS + hex_bytes(tag, bytes + TAGS_OFS, 4) + 2;
    const struct virtio_net_hdr vnet = {
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .gso_type = VIRTIO_NET_HDR_GSO_TCPV6,
        .hdr_len = (uint16_t) (eth_len + 60),
        .gso_size = 10,
        .csum_start = (uint16_t) (eth_len + 40),
        .csum_offset = 16,
    };
    const struct sockaddr_ll sll = {.sll_family = AF_PACKET,
                                    .sll_ifindex = (int) if_nametoindex(netdev)};
    const int on = 1;
    struct packet *p = frame(54, 0);
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (p->data + 14);
    ip->nh = IPPROTO_TCP;
    ip->dst = (struct in6_addr){.s6_addr = {0xfd, [15] = 2}};
    ip->plen = be16_put((uint16_t) (20 + len));
    memcpy(bytes, p->data, TAGS_OFS);
    memcpy(bytes + eth_len - 2, p->data + TAGS_OFS, 2 + 40);

    uint8_t *tcp = bytes + eth_len + 40;
    memset(tcp, 0, 20);
    tcp[12] = 5 << 4;
    for (uint16_t i = 0; i < len; i++) {
        tcp[20 + i] = (uint8_t) ('a' + i % 26);
    }
    be16_t csum = inet_csum_ip6(&ip->src, &ip->dst, IPPROTO_TCP, "", 0);
    uint32_t sum =
        (uint16_t) ~be16_get(csum) + 20u + len; /* the pseudo-header's, length and all. */
    csum = be16_put((uint16_t) (sum + (sum >> 16)));
    memcpy(tcp + 16, &csum, 2);
    packet_put(p);

    int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on), 0);
    ck_assert_int_eq(bind(s, (const struct sockaddr *) &sll, sizeof sll), 0);
    struct iovec iov[] = {{(void *) (uintptr_t) &vnet, sizeof vnet}, {bytes, eth_len + 60 + len}};
    ck_assert_int_eq(writev(s, iov, 2), (ssize_t) (sizeof vnet + eth_len + 60 + len));
    close(s);
}

START_TEST(super_frames_are_cut)
    {
        static const char *const payloads[] = {"abcdefghij", "klmnopqrst", "uvwxy"};
        struct packet_pool *empty = packet_pool_create(0);
        struct packet *p;

        make_veth("v0", "v1");
        struct port *port = must_open(veth_kinds[_i], "v1", -1);
        for (int round = 0; round < 2; round++) {
            send_super_frame("v0", "", 25);
            if (round) { /* what there is no buffer for is lost, and nothing else. */
                struct pollfd pfd = {.fd = port_fd(port), .events = POLLIN};
                ck_assert_int_eq(poll(&pfd, 1, WAIT_MSEC), 1);
                ck_assert_int_eq(recv_one(port, empty, &p), ENOBUFS);
            }
            for (size_t i = (size_t) round; i < 3; i++) {
                size_t len = strlen(payloads[i]);
                p = next(port, WAIT_MSEC);
                ck_assert_ptr_nonnull(p);
                const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (p->data + 14);
                ck_assert_uint_eq(p->len, 74 + len);
                ck_assert_uint_eq(be16_get(ip->plen), 20 + len);
                ck_assert_mem_eq(p->data + 74, payloads[i], len);
                ck_assert_uint_eq(p->data[54 + 7], 10 * i); /* sequence number. */
                ck_assert_uint_eq(
                    be16_get(inet_csum_ip6(&ip->src, &ip->dst, IPPROTO_TCP, ip + 1, 20 + len)), 0);
                packet_put(p);
            }
            ck_assert_int_eq(recv_one(port, pool, &p), EAGAIN);
        }
        port_close(port);
        packet_pool_destroy(empty);
    }
END_TEST

/* Frames on the wire with these tags before the type of IPv6, and what a port makes of them: a tag
 * without a VLAN is left out, another stays where it was. */
static const struct {
    const char *sent, *received;
} tags[] = {
    {"", ""},
    {"8100 004d", "8100 004d"},
    {"8100 6001", "8100 6001"}, /* priority 3. */
    {"8100 0fff", "8100 0fff"},
    {"88a8 0005", "88a8 0005"},
    {"8100 a000", ""},
    {"88a8 0000", ""},
    {"8100 a000 8100 6000", ""},
    {"8100 a000 8100 004d", "8100 004d"},
    {"8100 004d 8100 a000", "8100 004d 8100 a000"},
    {"88a8 0005 8100 004d", "88a8 0005 8100 004d"},
};

/* A frame of 'len' bytes without its tags. */
static struct packet *
tagged_frame(const char *text, uint32_t len)
{
    struct packet *p = frame(len, 0x5a);
    uint8_t bytes[8];
    size_t n = hex_bytes(text, bytes, sizeof bytes);

    memmove(p->data + TAGS_OFS + n, p->data + TAGS_OFS, p->len - TAGS_OFS);
    memcpy(p->data + TAGS_OFS, bytes, n);
    p->len += (uint32_t) n;
    return p;
}

/* Sends a frame with these tags to 'port', whatever is at its other end. */
static void
check_tags(struct port *sender, struct port *port, size_t i, uint32_t len)
{
    struct packet *p = tagged_frame(tags[i].sent, len);
    struct packet *want = tagged_frame(tags[i].received, len);
    struct parsed h;

    ck_assert_int_eq(send_one(sender, p), 0);
    packet_put(p);
    do {
        p = next(port, WAIT_MSEC);
        ck_assert_ptr_nonnull(p);
    } while (p->len != want->len && (packet_put(p), true)); /* the kernel's. */
    ck_assert_mem_eq(p->data, want->data, want->len);
    ck_assert_int_eq(parse_outer(p->data, p->len, &h), *tags[i].received ? DROP_vlan : DROP_none);
    packet_put(p);
    packet_put(want);
}

START_TEST(vlan_tags)
    {
        make_veth("v0", "v1");
        struct port *a = must_open(PORT_PACKET, "v0", -1), *b = must_open(PORT_PACKET, "v1", -1);
        check_tags(a, b, (size_t) _i, 777);
        port_close(a);
        port_close(b);
    }
END_TEST

START_TEST(vlan_tags_on_a_tap)
    {
        sh("ip tuntap add dev t0 mode tap multi_queue");
        sh("sysctl -qw net.ipv6.conf.t0.disable_ipv6=1; ip link set t0 up");
        struct port *tap = must_open_tap("t0"), *host = must_open(PORT_PACKET, "t0", -1);
        check_tags(host, tap, (size_t) _i, 777);
        port_close(tap);
        port_close(host);
    }
END_TEST

/* An XDP port leaves frames of VLANs to the kernel, whatever sends them. */
START_TEST(vlan_tags_by_xdp)
    {
        const bool is_vlan = *tags[_i].received;

        for (size_t k = 0; k < N_VETH_KINDS; k++) {
            make_veth("v0", "v1");
            struct port *a = must_open(veth_kinds[k], "v0", -1), *b = must_open(PORT_XDP, "v1", -1),
                        *kernel = must_open(PORT_PACKET, "v1", -1);
            check_tags(a, is_vlan ? kernel : b, (size_t) _i, 777);
            ck_assert_ptr_null(next_frame(is_vlan ? b : kernel, 0));
            port_close(a);
            port_close(b);
            port_close(kernel);
            sh("ip link del v0");
        }
    }
END_TEST

/* Has the kernel tag what leaves by the device, beside the bytes as its VLAN devices do. */
static void
push_tags(const char *netdev, uint16_t tci)
{
    const struct bpf_insn program[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = htons(ETH_P_8021Q)},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = tci},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_vlan_push},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0}, /* TC_ACT_OK. */
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int) if_nametoindex(netdev),
                .attach_point = BPF_TC_EGRESS);
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1, .flags = BPF_TC_F_REPLACE);

    libbpf_set_print(NULL); /* the second time there is a hook. */
    opts.prog_fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "tag", "GPL", program,
                                 sizeof program / sizeof *program, NULL);
    ck_assert_int_ge(opts.prog_fd, 0);
    int error = bpf_tc_hook_create(&hook);
    ck_assert(!error || error == -EEXIST);
    ck_assert_int_eq(bpf_tc_attach(&hook, &opts), 0);
    close(opts.prog_fd);
}

/* A tag that is not in the bytes, where the kernel at the other end of a veth leaves it. */
START_TEST(hidden_vlan_tags)
    {
        struct packet *p;
        struct parsed h;

        make_veth("v0", "v1");
        struct port *a = must_open(PORT_PACKET, "v0", -1), *b = must_open(PORT_XDP, "v1", -1),
                    *kernel = must_open(PORT_PACKET, "v1", -1);
        push_tags("v0", 3 << 13 | 77);
        send_burst(a, pool, 10);
        for (int i = 0; i < 10; i++) {
            p = next(kernel, WAIT_MSEC);
            ck_assert_ptr_nonnull(p);
            ck_assert_int_eq(parse_outer(p->data, p->len, &h), DROP_vlan);
            packet_put(p);
        }
        ck_assert_ptr_null(next(b, 0));

        push_tags("v0", 3 << 13); /* a priority and no VLAN. */
        send_burst(a, pool, 10);
        ck_assert_uint_eq(receive_burst(b, 10), 10);
        ck_assert_ptr_null(next(kernel, 0));
        port_close(a);
        port_close(b);
        port_close(kernel);
    }
END_TEST

/* What is not IPv6 stays the kernel's: here a question for its IPv4 address, from which it learns
 * who asks. */
START_TEST(xdp_leaves_the_rest)
    {
        struct packet *p = packet_get(pool);

        make_veth("v0", "v1");
        sh("ip addr add 192.0.2.2/24 dev v1");
        struct port *a = must_open(PORT_PACKET, "v0", -1), *b = must_open(PORT_XDP, "v1", -1);
        p->len = (uint32_t) hex_bytes("ffffffffffff 020000000001 0806 0001 0800 06 04 0001"
                                      "020000000001 c0000201 000000000000 c0000202",
                                      p->data, PACKET_ROOM);
        ck_assert_int_eq(send_one(a, p), 0);
        packet_put(p);
        sh("for i in $(seq 60); do"
           " ip neigh show 192.0.2.1 dev v1 | grep -q 02:00:00:00:00:01 && exit 0; sleep 0.05;"
           " done; exit 1");
        ck_assert_ptr_null(next(b, 0));
        port_close(a);
        port_close(b);
    }
END_TEST

/* A process that is killed leaves no program behind. */
START_TEST(xdp_ends_with_the_process)
    {
        int opened[2];
        char c;

        make_veth("v0", "v1");
        ck_assert_int_eq(pipe(opened), 0);
        pid_t child = fork();
        if (!child) {
            must_open(PORT_XDP, "v1", -1);
            (void) !write(opened[1], "", 1);
            pause();
        }
        ck_assert_int_eq(read(opened[0], &c, 1), 1);
        must_fail(PORT_XDP, "v1", EBUSY);
        sh("ip link show v1 | grep -q xdp");
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        sh("! ip link show v1 | grep -q xdp");
        port_close(must_open(PORT_XDP, "v1", -1));
    }
END_TEST

/* The calling process keeps these capabilities only. */
static void
keep(uint64_t capabilities)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.permitted = (uint32_t) capabilities},
                                             {.permitted = (uint32_t) (capabilities >> 32)}};

    data[0].effective = data[0].permitted;
    data[1].effective = data[1].permitted;
    ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
}

/* What a port needs of what daemons keep (ctl/process/privileges.c), and what it says otherwise. */
#define ENOUGH (1 << CAP_NET_ADMIN | 1 << CAP_NET_RAW | 1ull << CAP_BPF | 1 << CAP_IPC_LOCK)
static const struct {
    uint64_t capabilities;
    int error;
} privileges[] = {
    {ENOUGH, 0},
    {ENOUGH & ~(1ull << CAP_NET_ADMIN), EPERM},
    {ENOUGH & ~(1ull << CAP_NET_RAW), EPERM},
    {ENOUGH & ~(1ull << CAP_BPF), EPERM},
    {ENOUGH & ~(1ull << CAP_IPC_LOCK), ENOBUFS},
};
START_TEST(xdp_needs_capabilities)
    {
        make_veth("v0", "v1");
        ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0}), 0);
        keep(privileges[_i].capabilities);
        if (privileges[_i].error) {
            must_fail(PORT_XDP, "v0", privileges[_i].error);
        } else {
            struct port *a = must_open(PORT_XDP, "v0", -1), *b = must_open(PORT_XDP, "v1", -1);
            keep(0); /* from here on none is needed. */
            send_burst(a, pool, 20);
            ck_assert_uint_eq(receive_burst(b, 20), 20);
            port_close(a);
            port_close(b);
        }
    }
END_TEST

/* A tap is as hardware is: tags are in the bytes, and there is no call to ask for them.  With a
 * long MTU the kernel runs the program in generic mode. */
enum { N_SHORT_MTUS = 2, N_TAP_MTUS = 4 }; /* those with which a frame is one chunk; all. */
START_TEST(xdp_on_a_tap)
    {
        static const uint32_t mtus[N_TAP_MTUS] = {1500, 3826, 3827, 9000};
        uint32_t mtu = mtus[_i];
        struct packet *p;

        sh("ip tuntap add dev t0 mode tap multi_queue");
        sh("sysctl -qw net.ipv6.conf.t0.disable_ipv6=1; ip link set t0 mtu %u up", mtu);
        struct port *tap = must_open_tap("t0"), *b = must_open(PORT_XDP, "t0", -1),
                    *kernel = must_open(PORT_PACKET, "t0", -1);
        ck_assert_uint_eq(port_mtu(b), mtu);
        for (uint32_t len = 64; len <= mtu + 14; len += (mtu - 50) / 10) {
            struct packet *sent = frame(len, 7);
            ck_assert_int_eq(send_one(tap, sent), 0);
            p = next_frame(b, WAIT_MSEC);
            ck_assert_ptr_nonnull(p);
            ck_assert_uint_eq(p->len, len);
            ck_assert_mem_eq(p->data, sent->data, len);
            packet_put(p);
            ck_assert_int_eq(send_one(b, sent), 0);
            p = next_frame(tap, WAIT_MSEC);
            ck_assert_ptr_nonnull(p);
            ck_assert_mem_eq(p->data, sent->data, len);
            packet_put(p);
            packet_put(sent);
        }
        for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
            check_tags(tap, *tags[i].received ? kernel : b, i, 777);
        }
        ck_assert_ptr_null(next_frame(b, 0));
        ck_assert_ptr_null(next_frame(kernel, 0));

        /* A port whose frames are one chunk each does not grow. */
        sh("ip link set t0 mtu 9100");
        ck_assert_int_eq(port_refresh(b), 0);
        ck_assert_uint_eq(port_mtu(b), mtu <= 3826 ? 3826 : 9100);
        port_close(tap);
        port_close(b);
        port_close(kernel);
    }
END_TEST

/* Otherwise there would be frames that nobody takes. */
START_TEST(xdp_needs_queues)
    {
        sh("ip link add v0 numrxqueues 1 numtxqueues 4 type veth peer name v1 numrxqueues 4"
           " numtxqueues 4");
        must_fail(PORT_XDP, "v0", ENOSPC);
    }
END_TEST

START_TEST(xdp_takes_all_queues)
    {
        bool in_order = true;
        uint32_t n = 0;
        struct packet *p;

        sh("ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1"
           " numtxqueues 4 numrxqueues 4");
        sh("sysctl -qw net.ipv6.conf.v0.disable_ipv6=1 net.ipv6.conf.v1.disable_ipv6=1");
        sh("ip link set v0 up; ip link set v1 up");
        wait_started("v0");
        wait_started("v1");
        struct port *a = must_open(PORT_PACKET, "v0", -1), *b = must_open(PORT_XDP, "v1", -1);
        for (uint8_t i = 0; i < 60; i++) {
            p = frame(100, i);
            p->data[14 + 8 + 15] = i; /* another flow. */
            ck_assert_int_eq(send_one(a, p), 0);
            packet_put(p);
        }
        while (n < 60 && (p = next_frame(b, WAIT_MSEC))) {
            in_order = in_order && p->data[99] == n;
            n++;
            packet_put(p);
        }
        ck_assert_uint_eq(n, 60);
        ck_assert(!in_order); /* otherwise one queue had all. */
        port_close(a);
        port_close(b);
    }
END_TEST

/* The device of a VLAN is a port of that VLAN; the device below it has other traffic. */
START_TEST(vlan_device)
    {
        make_veth("v0", "v1");
        if (system("ip link add link v1 name v1.77 type vlan id 77")) {
            fprintf(stderr, "not tested: this kernel has no VLAN devices\n");
            return;
        }
        sh("sysctl -qw net.ipv6.conf.v1/77.disable_ipv6=1; ip link set v1.77 up");
        struct port *a = must_open(PORT_PACKET, "v0", -1);
        struct port *below = must_open(PORT_PACKET, "v1", -1);
        struct port *vlan = must_open(PORT_PACKET, "v1.77", -1);
        struct packet *p = tagged_frame("8100 004d", 100);
        struct parsed h;

        ck_assert_int_eq(send_one(a, p), 0);
        packet_put(p);
        p = next(below, WAIT_MSEC);
        ck_assert_ptr_nonnull(p);
        ck_assert_int_eq(parse_outer(p->data, p->len, &h), DROP_vlan);
        packet_put(p);
        p = next(vlan, WAIT_MSEC);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq(p->len, 100);
        ck_assert_int_eq(parse_outer(p->data, p->len, &h), DROP_none);
        packet_put(p);

        /* And back. */
        p = frame(100, 0);
        ck_assert_int_eq(send_one(vlan, p), 0);
        packet_put(p);
        p = next(a, WAIT_MSEC);
        ck_assert_ptr_nonnull(p);
        ck_assert_mem_eq(p->data + TAGS_OFS, "\x81\x00\x00\x4d\x86\xdd", 6);
        packet_put(p);
        port_close(a);
        port_close(below);
        port_close(vlan);
    }
END_TEST

/* Frames of VLANs that are too long for a buffer are dropped like others of their VLAN. */
START_TEST(vlan_frames_are_long)
    {
        struct packet *p;
        struct parsed h;

        make_veth("v0", "v1");
        struct port *port = must_open(PORT_PACKET, "v1", -1);
        send_super_frame("v0", "8100004d", 60000);
        p = next(port, WAIT_MSEC);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq(p->len, PACKET_ROOM);
        ck_assert_int_eq(parse_outer(p->data, p->len, &h), DROP_vlan);
        packet_put(p);
        ck_assert_int_eq(recv_one(port, pool, &p), EAGAIN);

        /* Where there is no buffer nothing is written. */
        struct packet_pool *empty = packet_pool_create(0);
        send_super_frame("v0", "8100004d", 60000);
        struct pollfd pfd = {.fd = port_fd(port), .events = POLLIN};
        ck_assert_int_eq(poll(&pfd, 1, WAIT_MSEC), 1);
        ck_assert_int_eq(recv_one(port, empty, &p), ENOBUFS);
        ck_assert_int_eq(recv_one(port, pool, &p), EAGAIN);
        packet_pool_destroy(empty);
        port_close(port);
    }
END_TEST

START_TEST(receive_offload_is_off)
    {
        make_veth("v0", "v1");
        (void) ethtool("v0", ETHTOOL_SGRO, 1);
        ck_assert_uint_eq(ethtool("v0", ETHTOOL_GGRO, 0), 1);
        port_close(must_open(PORT_PACKET, "v0", -1));
        ck_assert_uint_eq(ethtool("v0", ETHTOOL_GGRO, 0), 0);
    }
END_TEST

/* A node with a host on its only port, driven by hand. */
static struct port *node_port;
static uint64_t node_drops[N_DROP_REASONS];

static void
node_tx(void *capture, uint16_t number, struct packet *p)
{
    (void) number;
    pcap_writer_put(capture, p);
    ck_assert_int_eq(send_one(node_port, p), 0);
    packet_put(p);
}

/* Hands l3 what arrives until the host's neighbour is resolved, or time is up. */
static bool
run_until_resolved(struct l3 *l3)
{
    struct l3_neigh_info info;
    struct packet *p;

    while (!(l3_get_neigh(l3, 0, &info) && info.resolved) && (p = next(node_port, WAIT_MSEC))) {
        struct parsed parsed;
        if (parse_outer(p->data, p->len, &parsed) == DROP_none && l3_mac_ok(l3, 1, p)) {
            (void) l3_input(l3, 1, p, &parsed, 0);
        }
        packet_put(p);
    }
    return l3_get_neigh(l3, 0, &info) && info.resolved;
}

static struct l3 *
make_node(struct port_config *port, struct pcap_writer *capture)
{
    struct in6_addr host;
    ck_assert_int_eq(inet_pton(AF_INET6, "fd00:1::1", &host), 1);
    *port = (struct port_config){.number = 1, .role = ROLE_HOST, .peer_address = host};
    node_port_mac(NODE_ID, 1, port->mac);
    struct route_config route = {host, 128, 1, IN6ADDR_ANY_INIT};
    struct node_config config = {.address = node_address(NODE_ID),
                                 .n_ports = 1,
                                 .ports = port,
                                 .n_routes = 1,
                                 .routes = &route};
    struct l3 *l3 = l3_create(&(struct node_io){.tx = node_tx, .aux = capture}, pool, node_drops);
    l3_configure(l3, &config);
    return l3;
}

START_TEST(kernel_answers_us)
    {
        struct port_config config;
        char path[] = "/tmp/test-port-XXXXXX";
        char *why = NULL;
        int fd = mkstemp(path);
        struct pcap_writer *capture = pcap_writer_open(path, true, &why);
        ck_assert_msg(capture != NULL, "%s", why);

        make_host_tap();
        node_port = must_open_tap("t0");
        struct l3 *l3 = make_node(&config, capture);
        sh("ip neigh add fe80::1 lladdr %02x:%02x:%02x:%02x:%02x:%02x dev t0 nud permanent",
           config.mac[0], config.mac[1], config.mac[2], config.mac[3], config.mac[4],
           config.mac[5]);

        /* An echo request to the host; it leaves when the kernel has answered. */
        struct packet *p = frame(62, 0);
        struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) packet_pull(p, 14);
        uint8_t *echo = (uint8_t *) (ip + 1);
        const uint8_t request[8] = {128, [5] = 1, [7] = 1};
        memcpy(echo, request, sizeof request);
        ip->nh = IP6_NH_ICMPV6;
        ip->hlim = 64;
        ip->src = node_address(NODE_ID);
        ip->dst = config.peer_address;
        be16_t csum = inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_ICMPV6, echo, 8);
        memcpy(echo + 2, &csum, 2);
        sh("ip -6 route add default via fe80::1 dev t0");
        ck_assert_int_eq(l3_output(l3, p, L3_ERRORS_NONE, 0), DROP_none);
        ck_assert(run_until_resolved(l3));

        while ((p = next(node_port, WAIT_MSEC)) && p->data[54] != 129) { /* echo reply. */
            packet_put(p);
        }
        ck_assert_ptr_nonnull(p);
        ck_assert_mem_eq(p->data, config.mac, 6);
        packet_put(p);
        for (size_t i = 0; i < N_DROP_REASONS; i++) {
            ck_assert_uint_eq(node_drops[i], 0);
        }

        ck_assert_int_eq(pcap_writer_error(capture), 0);
        ck_assert_uint_eq(pcap_writer_n_frames(capture), 2);
        pcap_writer_close(capture);
        ck_assert_int_eq(lseek(fd, 0, SEEK_END), 24 + 16 + 86 + 16 + 62); /* question, echo. */
        unlink(path);
        close(fd);
        l3_destroy(l3);
        port_close(node_port);
    }
END_TEST

START_TEST(we_answer_the_kernel)
    {
        struct port_config config;

        make_host_tap();
        node_port = must_open_tap("t0");
        struct l3 *l3 = make_node(&config, NULL);

        /* The kernel asks for the Proxy Address with its own MAC in the question, from which
     * the node learns; the answer lets the datagram out. */
        sh("ip -6 route add fd00:ffff::/32 dev t0");
        send_udp("fd00:ffff::7");
        ck_assert(run_until_resolved(l3));
        struct packet *p = next_udp(node_port);
        ck_assert_mem_eq(p->data, config.mac, 6);
        packet_put(p);
        l3_destroy(l3);
        port_close(node_port);
    }
END_TEST

/* Has the kernel AF_XDP sockets, and is it this one or a later one? */
static bool
has_xdp(int wanted_major, int wanted_minor)
{
    struct utsname u;
    int major = 0, minor = 0;
    int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return false;
    }
    close(fd);
    return !uname(&u) && sscanf(u.release, "%d.%d", &major, &minor) == 2
           && (major > wanted_major || (major == wanted_major && minor >= wanted_minor));
}

int
main(void)
{
    const bool xdp = has_xdp(6, 8);             /* on veths. */
    const int n_kinds = xdp ? N_VETH_KINDS : 1; /* packet is the first. */
    Suite *s = suite_create("port");
    TCase *tc = tcase_create("port");

    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, only_existing_persistent_multiqueue_taps);
    tcase_add_loop_test(tc, vanishing_devices, 0, n_kinds);
    tcase_add_loop_test(tc, mtu_changes, 0, n_kinds);
    tcase_add_loop_test(tc, link_state, 0, n_kinds);
    tcase_add_test(tc, new_link_is_up);
    tcase_add_test(tc, other_namespace);
    tcase_add_loop_test(tc, veth_both_ways, 0, n_kinds * n_kinds);
    tcase_add_loop_test(tc, no_buffer, 0, n_kinds * n_kinds);
    tcase_add_loop_test(tc, bursts, 0, n_kinds * n_kinds);
    tcase_add_loop_test(tc, down_and_up, 0, n_kinds * n_kinds);
    tcase_add_loop_test(tc, gone_in_a_burst, 0, n_kinds * n_kinds);
    tcase_add_test(tc, tap_sizes);
    tcase_add_loop_test(tc, offloaded_checksum, 0, n_kinds);
    tcase_add_loop_test(tc, super_frames_are_cut, 0, n_kinds);
    tcase_add_test(tc, receive_offload_is_off);
    tcase_add_loop_test(tc, vlan_tags, 0, sizeof tags / sizeof *tags);
    tcase_add_loop_test(tc, vlan_tags_on_a_tap, 0, sizeof tags / sizeof *tags);
    tcase_add_test(tc, vlan_device);
    tcase_add_test(tc, vlan_frames_are_long);
    tcase_add_test(tc, kernel_answers_us);
    tcase_add_test(tc, we_answer_the_kernel);
    if (xdp) {
        tcase_add_loop_test(tc, vlan_tags_by_xdp, 0, sizeof tags / sizeof *tags);
        tcase_add_test(tc, hidden_vlan_tags);
        tcase_add_test(tc, xdp_leaves_the_rest);
        tcase_add_test(tc, xdp_ends_with_the_process);
        tcase_add_loop_test(tc, xdp_needs_capabilities, 0, sizeof privileges / sizeof *privileges);
        tcase_add_test(tc, xdp_takes_all_queues);
        tcase_add_test(tc, xdp_needs_queues);
    } else {
        fprintf(stderr, "not tested: on veths ports of kind xdp need Linux 6.8\n");
    }
    suite_add_tcase(s, tc);
    if (has_xdp(5, 4)) {
        tc = tcase_create("xdp");
        tcase_set_timeout(tc, 30);
        tcase_add_checked_fixture(tc, setup, teardown);
        tcase_add_loop_test(tc, xdp_on_a_tap, 0, has_xdp(6, 6) ? N_TAP_MTUS : N_SHORT_MTUS);
        suite_add_tcase(s, tc);
    }

    SRunner *runner = srunner_create(s);
    srunner_add_suite(runner, port_tap_suite());
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
