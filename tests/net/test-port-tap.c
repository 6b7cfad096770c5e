/* SPDX-License-Identifier: Apache-2.0
 *
 * Segmentation offload towards taps: what arrives are the single packets that were sent.
 *
 * A capture of the tap's traffic would show super-frames.  So what counts here is what a UDP socket
 * receives, and what leaves the host by another device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/icrc.h"
#include "lib/inet-csum.h"
#include "lib/port-uso.h"
#include "lib/tap-queue.h"
#include "tests/net/port-fixture.h"
#include "tests/unit/uso-frames.h"

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#define UDP_OFS 54 /* of a frame's UDP header. */
#define N_FLOWS 3

static struct uso_flow flows[N_FLOWS];
static int sockets[N_FLOWS]; /* -1: none. */
static struct packet *frames[USO_MAX_FRAMES + 1];
static size_t n_frames;
static uint32_t psn;

/* Linux 6.2 has it; this asks no kernel. */
static bool
kernel_has_uso(void)
{
    struct utsname name;
    int major, minor;

    ck_assert_int_eq(uname(&name), 0);
    ck_assert_int_eq(sscanf(name.release, "%d.%d", &major, &minor), 2);
    return major > 6 || (major == 6 && minor >= 2);
}

/* Does the device have headers? */
static bool
tap_has_headers(const char *netdev)
{
    struct tap_queue q;
    const char *why;

    ck_assert_int_eq(tap_queue_open(&q, netdev, false, &why), 0);
    close(q.fd);
    ck_assert(!q.uso);
    return q.vnet_hdr;
}

static void
address_flow(size_t i, const char *to)
{
    flows[i] = (struct uso_flow){.sport = (uint16_t) (50000 + i)};
    ck_assert_int_eq(inet_pton(AF_INET6, to, &flows[i].dst), 1);
}

/* Frames of the flow go to the device's own MAC address. */
static void
aim(size_t i, const char *netdev)
{
    struct ifreq ifr = {0};
    int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(ifr.ifr_name, netdev, strlen(netdev));
    ck_assert_int_eq(ioctl(s, SIOCGIFHWADDR, &ifr), 0);
    memcpy(flows[i].mac, ifr.ifr_hwaddr.sa_data, sizeof flows[i].mac);
    close(s);
}

/* A socket that gets a flow's datagrams, and like rxe's takes those without a checksum. */
static int
receiver(const struct in6_addr *address)
{
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(UDP_PORT_ROCE)};
    const int on = 1, room = 1 << 24;
    int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    sin6.sin6_addr = *address;
    ck_assert_int_eq(setsockopt(s, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof on), 0);
    ck_assert_int_eq(setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room), 0);
    ck_assert_int_eq(bind(s, (struct sockaddr *) &sin6, sizeof sin6), 0);
    return s;
}

/* A tap that is a host's NIC, and a socket of the host for each flow.  Two flows differ in the UDP
 * source port only, and share a socket. */
static void
make_host(void)
{
    sh("ip tuntap add dev t0 mode tap multi_queue");
    sh("ip link set t0 mtu 9000 up");
    sh("ip addr add fd00:1::1/64 dev t0 nodad; ip addr add fd00:1::2/64 dev t0 nodad");
    address_flow(0, "fd00:1::1");
    address_flow(1, "fd00:1::2");
    address_flow(2, "fd00:1::1");
    for (size_t i = 0; i < N_FLOWS; i++) {
        aim(i, "t0");
        sockets[i] = i < 2 ? receiver(&flows[i].dst) : dup(sockets[0]);
    }
}

static void
close_sockets(void)
{
    for (size_t i = 0; i < N_FLOWS; i++) {
        close(sockets[i]);
    }
}

static void
add(size_t flow, size_t len)
{
    ck_assert_uint_lt(n_frames, sizeof frames / sizeof *frames);
    frames[n_frames++] = uso_frame(pool, &flows[flow], psn_make(psn), len, psn % 2);
    psn++;
}

static void
forget_frames(void)
{
    while (n_frames) {
        packet_put(frames[--n_frames]);
    }
}

static void
send_frames(struct port *port)
{
    int why = 0;

    ck_assert_uint_eq(port_send(port, frames, n_frames, &why), n_frames);
}

/* The next datagram is this frame's: sender, length, every byte. */
static void
must_receive(size_t flow, const struct packet *p)
{
    struct pollfd pfd = {.fd = sockets[flow], .events = POLLIN};
    struct sockaddr_in6 from = {.sin6_family = AF_INET6};
    socklen_t from_len = sizeof from;
    uint8_t frame[PACKET_ROOM], got[PACKET_ROOM];
    const size_t len = packet_flatten(p, frame, sizeof frame) - UDP_OFS - 8;
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (frame + 14);

    ck_assert_int_eq(poll(&pfd, 1, WAIT_MSEC), 1);
    ssize_t n =
        recvfrom(sockets[flow], got, sizeof got, MSG_TRUNC, (struct sockaddr *) &from, &from_len);
    ck_assert_int_eq(n, (int) len);
    ck_assert_mem_eq(got, frame + UDP_OFS + 8, len);
    ck_assert_mem_eq(&from.sin6_addr, &ip->src, sizeof ip->src);
    ck_assert_uint_eq(ntohs(from.sin6_port), flows[flow].sport);

    /* The ICRC of what came. */
    memcpy(frame + UDP_OFS + 8, got, len);
    ck_assert(icrc_ok((const uint8_t *) ip, UDP_OFS + 8 + len - 14 - 4));
}

static void
must_receive_all(size_t flow)
{
    for (size_t i = 0; i < n_frames; i++) {
        must_receive(flow, frames[i]);
    }
}

static void
must_be_empty(void)
{
    uint8_t byte;

    for (size_t i = 0; i < N_FLOWS; i++) {
        ck_assert_int_eq(recv(sockets[i], &byte, 1, MSG_DONTWAIT), -1);
        ck_assert_int_eq(errno, EAGAIN);
    }
}

/* How many frames the kernel has got by a device. */
static unsigned
n_written(const char *netdev)
{
    struct ifaddrs *all;
    unsigned n = 0;

    ck_assert_int_eq(getifaddrs(&all), 0);
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_PACKET && !strcmp(a->ifa_name, netdev)) {
            n = ((const struct rtnl_link_stats *) a->ifa_data)->rx_packets;
        }
    }
    freeifaddrs(all);
    return n;
}

static const size_t lens[] = {USO_FRAME_MIN, 200, 1110, 4206, 9014};
static const size_t counts[] = {1, 2, 63, 64, 65};

static unsigned
n_runs(void)
{
    unsigned n = 0;

    for (size_t i = 0; i < n_frames; n++) {
        i += uso_count(frames + i, n_frames - i);
    }
    return n;
}

/* Trains of all sizes; the last frame is as long as the others, or shorter. */
static void
check_trains(struct port *port, bool joined)
{
    for (size_t l = 0; l < sizeof lens / sizeof *lens; l++) {
        for (size_t c = 0; c < 2 * sizeof counts / sizeof *counts; c++) {
            unsigned before = n_written("t0");

            for (size_t i = 1; i < counts[c / 2]; i++) {
                add(0, lens[l]);
            }
            add(0, c % 2 ? lens[l] : USO_FRAME_MIN);
            send_frames(port);
            must_receive_all(0);
            ck_assert_uint_eq(n_written("t0") - before, joined ? n_runs() : n_frames);
            forget_frames();
        }
    }
    must_be_empty();
}

START_TEST(trains)
    {
        make_host();
        struct port *port = must_open_tap("t0");

        ck_assert_int_eq(tap_has_headers("t0"), kernel_has_uso());
        check_trains(port, kernel_has_uso());
        port_close(port);
        close_sockets();
    }
END_TEST

START_TEST(off_on_demand)
    {
        make_host();
        port_use_offload(false);
        struct port *port = must_open_tap("t0");

        ck_assert(!tap_has_headers("t0"));
        check_trains(port, false);
        port_close(port);
        close_sockets();
    }
END_TEST

/* Frames with headers, none of which is a super-frame. */
START_TEST(headers_without_offload)
    {
        struct tap_queue held;
        const char *why;

        make_host();
        ck_assert_int_eq(tap_queue_open(&held, "t0", true, &why), 0);
        ck_assert_int_eq(held.uso, kernel_has_uso());
        port_use_offload(false);
        struct port *port = must_open_tap("t0");
        ck_assert_int_eq(tap_has_headers("t0"), kernel_has_uso());
        check_trains(port, false);
        port_close(port);
        close(held.fd);
        close_sockets();
    }
END_TEST

/* Who has the tap's first queue decides that there are no headers. */
START_TEST(held_without_headers)
    {
        struct tap_queue held;
        const char *why;

        make_host();
        ck_assert_int_eq(tap_queue_open(&held, "t0", false, &why), 0);
        ck_assert(!held.vnet_hdr);
        struct port *port = must_open_tap("t0");
        check_trains(port, false);
        port_close(port);
        close(held.fd);
        close_sockets();
    }
END_TEST

START_TEST(mixed_flows)
    {
        unsigned short seed[3] = {4, 0, (unsigned short) _i};
        size_t flow_of[USO_MAX_FRAMES], flow = 0, len = *lens;

        make_host();
        struct port *port = must_open_tap("t0");
        for (unsigned burst = 0; burst < 10; burst++) {
            unsigned before = n_written("t0");

            for (size_t i = 0; i < USO_MAX_FRAMES; i++) {
                flow = nrand48(seed) % 6 ? flow : (size_t) nrand48(seed) % N_FLOWS;
                len = nrand48(seed) % 6 ? len : lens[nrand48(seed) % 5];
                flow_of[i] = flow;
                add(flow, len);
            }
            send_frames(port);
            for (size_t i = 0; i < USO_MAX_FRAMES; i++) {
                must_receive(flow_of[i], frames[i]);
            }
            ck_assert_uint_eq(n_written("t0") - before, kernel_has_uso() ? n_runs() : n_frames);
            forget_frames();
        }
        must_be_empty();
        port_close(port);
        close_sockets();
    }
END_TEST

/* Nothing of a super-frame is sent if it cannot be, and the caller knows where to go on. */
START_TEST(errors)
    {
        int why = 0;

        make_host();
        struct port *port = must_open_tap("t0");
        add(1, 200);
        add(0, 200);
        add(0, 200);
        sh("ip link set t0 down");
        ck_assert_uint_eq(port_send(port, frames, n_frames, &why), 0);
        ck_assert_int_eq(why, EIO);
        sh("ip link del t0");
        ck_assert_uint_eq(port_send(port, frames, n_frames, &why), 0);
        ck_assert_int_eq(why, ENODEV);
        forget_frames();
        port_close(port);
        close_sockets();
    }
END_TEST

START_TEST(headers_of_another_size)
    {
        struct tap_queue held;
        struct port *port;
        const char *reason;
        char *why = NULL;
        int size = 12;

        if (!kernel_has_uso()) {
            return;
        }
        make_host();
        ck_assert_int_eq(tap_queue_open(&held, "t0", true, &reason), 0);
        ck_assert_int_eq(ioctl(held.fd, TUNSETVNETHDRSZ, &size), 0);
        ck_assert_int_eq(port_open(&port, PORT_TAP, "t0", -1, NULL, &why), EINVAL);
        ck_assert_ptr_nonnull(strstr(why, "headers of another size"));
        free(why);
        close(held.fd);
        close_sockets();
    }
END_TEST

/* Sends 'n' datagrams of 1,000 bytes through the tap, in one super-frame if n > 1. */
static void
host_sends(const char *to, size_t n)
{
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    const int segment = 1000;
    uint8_t bytes[4000] = {1, 2, 3};
    int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(inet_pton(AF_INET6, to, &sin6.sin6_addr), 1);
    if (n > 1) {
        ck_assert_int_eq(setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
    }
    ck_assert_uint_eq(sendto(s, bytes, n * 1000, 0, (struct sockaddr *) &sin6, sizeof sin6),
                      n * 1000);
    close(s);
}

static bool
is_udp_ok(const struct packet *p)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (p->data + 14);

    return !be16_get(inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_UDP, ip + 1, be16_get(ip->plen)));
}

/* What the port does with the next UDP packet of the host.  Others are the kernel's own. */
static int
receive_udp(struct port *port, struct packet **p)
{
    struct pollfd pfd = {.fd = port_fd(port), .events = POLLIN};
    int error;

    while ((error = recv_one(port, pool, p)) == EAGAIN || (*p && (*p)->data[20] != IP6_NH_UDP)) {
        packet_put(*p);
        ck_assert(error != EAGAIN || poll(&pfd, 1, WAIT_MSEC) > 0);
    }
    return error;
}

/* Frames from the host are complete.  If another has turned receive offload on, they are completed,
 * or lost by name. */
START_TEST(from_the_host)
    {
        struct tap_queue other;
        struct packet *p;
        const char *why;
        struct ifreq detach = {.ifr_flags = IFF_DETACH_QUEUE};

        make_host();
        sh("ip neigh add fd00:1::9 lladdr 02:00:00:00:00:09 dev t0 nud permanent");
        ck_assert_int_eq(tap_queue_open(&other, "t0", true, &why), 0);
        ck_assert_int_eq(ioctl(other.fd, TUNSETQUEUE, &detach), 0);
        struct port *port = must_open_tap("t0");
        host_sends("fd00:1::9", 1);
        ck_assert_int_eq(receive_udp(port, &p), 0);
        ck_assert_uint_eq(p->len, 1062);
        ck_assert(is_udp_ok(p));
        packet_put(p);
        if (other.uso) {
            ck_assert_int_eq(ioctl(other.fd, TUNSETOFFLOAD, TUN_F_CSUM), 0);
            host_sends("fd00:1::9", 1);
            ck_assert_int_eq(receive_udp(port, &p), 0);
            ck_assert_uint_eq(p->len, 1062);
            ck_assert(is_udp_ok(p));
            packet_put(p);
            ck_assert_int_eq(ioctl(other.fd, TUNSETOFFLOAD, TUN_F_CSUM | 0x20 | 0x40), 0);
            host_sends("fd00:1::9", 3);
            ck_assert_int_eq(receive_udp(port, &p), EMSGSIZE);
        }
        struct packet_pool *empty = packet_pool_create(0);
        while (recv_one(port, pool, &p) == 0) {
            packet_put(p);
        }
        host_sends("fd00:1::9", 1);
        struct pollfd pfd = {.fd = port_fd(port), .events = POLLIN};
        ck_assert_int_eq(poll(&pfd, 1, WAIT_MSEC), 1);
        ck_assert_int_eq(recv_one(port, empty, &p), ENOBUFS);
        packet_pool_destroy(empty);
        close(other.fd);
        port_close(port);
        close_sockets();
    }
END_TEST

/* The next frame of a flow that comes out of another device. */
static void
must_come_out(struct port *out, const struct packet *p)
{
    struct packet *got;
    uint8_t want[PACKET_ROOM];
    const size_t len = packet_flatten(p, want, sizeof want);

    do {
        got = next(out, WAIT_MSEC);
        ck_assert_ptr_nonnull(got);
    } while (got->data[20] != IP6_NH_UDP && (packet_put(got), true));
    ck_assert_uint_eq(got->len, len);
    ck_assert_mem_eq(got->data + 14 + 8, want + 14 + 8, UDP_OFS + 6 - 14 - 8);
    ck_assert_mem_eq(got->data + UDP_OFS + 8, want + UDP_OFS + 8, len - UDP_OFS - 8);
    ck_assert(icrc_ok(got->data + 14, len - 14 - 4));
    packet_put(got);
}

/* What a host does with what comes by the tap: routes it, or has it in a bridge; and the device by
 * which it leaves cuts super-frames, or gets them cut. */
static const struct {
    bool bridge, device_cuts;
} ways[] = {{false, false}, {false, true}, {true, false}, {true, true}};

START_TEST(forwarded)
    {
        struct port *tap, *out;

        sh("ip tuntap add dev t0 mode tap multi_queue; ip link set t0 mtu 9000 up");
        sh("ip link add v0 type veth peer name v1; sysctl -qw net.ipv6.conf.v1.disable_ipv6=1");
        sh("ip link set v0 mtu 9000 up; ip link set v1 mtu 9000 up");
        if (!ways[_i].device_cuts) {
            (void) ethtool("v0", ETHTOOL_STXCSUM, 0);
        }
        address_flow(0, "fd00:2::1");
        if (ways[_i].bridge) {
            if (system("ip link add b0 type bridge")) {
                fprintf(stderr, "not tested: this kernel has no bridges\n");
                return;
            }
            sh("ip link set t0 master b0; ip link set v0 master b0; ip link set b0 mtu 9000 up");
            memcpy(flows[0].mac, "\2\0\0\0\0\x9", 6);
        } else {
            sh("sysctl -qw net.ipv6.conf.all.forwarding=1; ip -6 route add default dev t0");
            sh("ip -6 route add fd00:2::/64 dev v0");
            sh("ip neigh add fd00:2::1 lladdr 02:00:00:00:00:09 dev v0 nud permanent");
            aim(0, "t0");
        }
        tap = must_open_tap("t0");
        out = must_open(PORT_PACKET, "v1", -1);
        wait_started("v0");
        for (size_t l = 0; l < sizeof lens / sizeof *lens; l++) {
            for (size_t i = 0; i < 30; i++) {
                add(0, lens[l]);
            }
            add(0, USO_FRAME_MIN);
            unsigned before = n_written("v1");
            send_frames(tap);
            for (size_t i = 0; i < n_frames; i++) {
                must_come_out(out, frames[i]);
            }
            bool cut = n_written("v1") - before >= n_frames;
            ck_assert_int_eq(cut, !kernel_has_uso() || !ways[_i].device_cuts);
            forget_frames();
        }
        port_close(tap);
        port_close(out);
    }
END_TEST

Suite *
port_tap_suite(void)
{
    Suite *s = suite_create("port_tap");
    TCase *tc = tcase_create("port_tap");

    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, trains);
    tcase_add_test(tc, off_on_demand);
    tcase_add_test(tc, headers_without_offload);
    tcase_add_test(tc, held_without_headers);
    tcase_add_loop_test(tc, mixed_flows, 0, 5);
    tcase_add_test(tc, errors);
    tcase_add_test(tc, headers_of_another_size);
    tcase_add_test(tc, from_the_host);
    tcase_add_loop_test(tc, forwarded, 0, sizeof ways / sizeof *ways);
    suite_add_tcase(s, tc);
    return s;
}
