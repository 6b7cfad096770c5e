/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets made by hand (see peer.h).
 */
#include "bench/castprobe/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/icrc.h"
#include "lib/roce.h"

/* Of linux/in6.h, whose other definitions conflict with netinet/in.h. */
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

#define MAX_PACKET (IP6_HDR_LEN + PEER_MAX_PAYLOAD + ROCE_OVERHEAD)
#define PORT       0xc123
#define OTHER_PORT 0xe456

uint64_t
peer_now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

static bool __attribute__((format(printf, 2, 3))) refuse(struct peer *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->error, sizeof p->error, format, args);
    va_end(args);
    return false;
}

static int
open_socket(struct peer *p, const struct in6_addr *address, uint16_t port)
{
    struct sockaddr_in6 sa = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = *address};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1, error;
    char text[INET6_ADDRSTRLEN];

    /* The other address is in no interface. */
    if (fd >= 0 && !setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof one)
        && !bind(fd, (struct sockaddr *) &sa, sizeof sa)) {
        return fd;
    }
    error = errno;
    if (fd >= 0) {
        close(fd);
    }
    inet_ntop(AF_INET6, address, text, sizeof text);
    refuse(p, "UDP port %u of %s: %s%s", port, text, strerror(error),
           error == EADDRINUSE ? ": another program, or soft-RoCE, has it" : "");
    return -1;
}

/* Is it one of this machine?  open_socket() does not ask. */
static bool
check_own(struct peer *p)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_addr = p->own};
    char text[INET6_ADDRSTRLEN];
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 || bind(fd, (struct sockaddr *) &sa, sizeof sa) ? errno : 0;

    if (fd >= 0) {
        close(fd);
    }
    inet_ntop(AF_INET6, &p->own, text, sizeof text);
    return !error || refuse(p, "%s: %s", text, strerror(error));
}

bool
peer_open(struct peer *p, const struct in6_addr *own, const struct in6_addr *device)
{
    int one = 1, size = 1 << 20;

    *p = (struct peer){
        .own = *own,
        .other = *own,
        .device = *device,
        .receive_fd = -1,
        .send_fd = {-1, -1, -1},
        .send_port = {PORT, OTHER_PORT, PORT},
    };
    p->other.s6_addr[15] ^= 0x80;
    if (!memcmp(&p->other, device, sizeof *device)) {
        p->other.s6_addr[15] ^= 0x40;
    }
    if (!check_own(p)) {
        return false;
    }
    p->receive_fd = open_socket(p, own, UDP_PORT_ROCE);
    bool open = p->receive_fd >= 0;
    for (unsigned i = 0; i < N_PEER_FROM && open; i++) {
        p->send_fd[i] =
            open_socket(p, i == PEER_FROM_OTHER_ADDRESS ? &p->other : own, p->send_port[i]);
        open = p->send_fd[i] >= 0;
    }
    if (!open) {
        peer_close(p);
        return false;
    }
    setsockopt(p->receive_fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    setsockopt(p->receive_fd, SOL_UDP, UDP_NO_CHECK6_RX, &one, sizeof one);
    setsockopt(p->receive_fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof one);
    setsockopt(p->receive_fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &one, sizeof one);
    setsockopt(p->receive_fd, IPPROTO_IPV6, IPV6_FLOWINFO, &one, sizeof one);
    return true;
}

void
peer_close(struct peer *p)
{
    for (unsigned i = 0; i < N_PEER_FROM; i++) {
        if (p->send_fd[i] >= 0) {
            close(p->send_fd[i]);
            p->send_fd[i] = -1;
        }
    }
    if (p->receive_fd >= 0) {
        close(p->receive_fd);
        p->receive_fd = -1;
    }
}

/* IPv6 and UDP headers of a packet whose UDP payload has 'len' bytes, as far as the ICRC wants
 * them. */
static void
put_headers(uint8_t *packet, const struct in6_addr *src, const struct in6_addr *dst, uint16_t sport,
            size_t len)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) packet;
    struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);
    uint16_t udp_len = (uint16_t) (sizeof *udp + len);

    ip6_set_vtf(ip, 0, 0);
    ip->plen = be16_put(udp_len);
    ip->nh = IP6_NH_UDP;
    ip->hlim = 0;
    ip->src = *src;
    ip->dst = *dst;
    *udp = (struct udp_hdr){be16_put(sport), be16_put(UDP_PORT_ROCE), be16_put(udp_len), {{0}}};
}

/* Returns the length of BTH and what follows, with the ICRC. */
static size_t
build(const struct peer *p, const struct craft *c, uint8_t *packet)
{
    const struct roce_opcode_info *op = roce_opcode_info(c->opcode);
    struct bth *bth = (struct bth *) (packet + IP6_HDR_LEN + sizeof(struct udp_hdr));
    uint8_t *ext = (uint8_t *) (bth + 1), *payload = ext + op->ext_len;
    uint32_t pad = -c->len & 3;
    size_t len = sizeof *bth + op->ext_len + c->len + pad + ROCE_ICRC_LEN;

    put_headers(packet, c->from == PEER_FROM_OTHER_ADDRESS ? &p->other : &p->own, &p->device,
                p->send_port[c->from], len);
    *bth = (struct bth){
        .opcode = c->opcode,
        .flags = (uint8_t) ((c->mig_req ? 0x40 : 0) | pad << 4),
        .pkey = be16_put(c->pkey),
        .dest_qp = be24_put(c->dest_qpn),
        .ack_req = c->ack_req ? BTH_ACK_REQ : 0,
    };
    bth_set_psn(bth, c->psn);
    memset(ext, 0, op->ext_len);
    if (op->flags & ROCE_F_RETH) {
        *(struct reth *) ext =
            (struct reth){be64_put(c->va), be32_put(c->rkey), be32_put(c->dma_len)};
    }
    if (op->flags & ROCE_F_AETH) {
        *(struct aeth *) ext = (struct aeth){c->syndrome, be24_put(c->msn)};
    }
    memset(payload, c->fill, c->len);
    memset(payload + c->len, 0, pad);
    size_t end = IP6_HDR_LEN + sizeof(struct udp_hdr) + len - ROCE_ICRC_LEN;
    icrc_store(packet + end, icrc_compute(packet, end) ^ (c->bad_icrc ? 1 : 0));
    return len;
}

bool
peer_send(struct peer *p, const struct craft *c)
{
    struct sockaddr_in6 to = {
        .sin6_family = AF_INET6, .sin6_port = htons(UDP_PORT_ROCE), .sin6_addr = p->device};
    uint8_t packet[MAX_PACKET];
    size_t len = build(p, c, packet);
    int fd = p->send_fd[c->from], no_csum = !c->has_csum;

    setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_TX, &no_csum, sizeof no_csum);
    setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &c->traffic_class, sizeof c->traffic_class);
    setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &c->hop_limit, sizeof c->hop_limit);
    return sendto(fd, packet + IP6_HDR_LEN + sizeof(struct udp_hdr), len, 0,
                  (struct sockaddr *) &to, sizeof to)
               == (ssize_t) len
           || refuse(p, "cannot send to the device: %s", strerror(errno));
}

bool
peer_send_plain(struct peer *p, uint16_t port)
{
    struct sockaddr_in6 to = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = p->device};
    int csum = 0;

    setsockopt(p->send_fd[PEER_FROM_OTHER_ADDRESS], SOL_UDP, UDP_NO_CHECK6_TX, &csum, sizeof csum);
    return sendto(p->send_fd[PEER_FROM_OTHER_ADDRESS], "", 1, 0, (struct sockaddr *) &to, sizeof to)
               == 1
           || refuse(p, "cannot send to the device: %s", strerror(errno));
}

static void
take_cmsgs(struct msghdr *msg, struct seen *s)
{
    s->traffic_class = s->hop_limit = -1;
    s->flow_label = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        int value;

        memcpy(&value, CMSG_DATA(c), sizeof value);
        if (c->cmsg_level != IPPROTO_IPV6) {
            continue;
        }
        switch (c->cmsg_type) {
        case IPV6_TCLASS: s->traffic_class = value; break;
        case IPV6_HOPLIMIT: s->hop_limit = value; break;
        case IPV6_FLOWINFO: s->flow_label = ntohl((uint32_t) value) & 0xfffff; break;
        default: break;
        }
    }
}

/* False: it is no RoCEv2 packet. */
static bool
parse(const struct peer *p, uint8_t *packet, size_t len, struct seen *s)
{
    const struct bth *bth = (struct bth *) (packet + IP6_HDR_LEN + sizeof(struct udp_hdr));
    const struct roce_opcode_info *op = roce_opcode_info(bth->opcode);
    const uint8_t *ext = (const uint8_t *) (bth + 1);
    size_t pad = BTH_PAD(bth->flags);

    if (len < sizeof *bth + ROCE_ICRC_LEN
        || len - sizeof *bth - ROCE_ICRC_LEN < op->ext_len + pad) {
        return false;
    }
    put_headers(packet, &p->device, &p->own, s->sport, len);
    s->icrc_ok = icrc_ok(packet, IP6_HDR_LEN + sizeof(struct udp_hdr) + len - ROCE_ICRC_LEN);
    s->opcode = bth->opcode;
    s->dest_qpn = be24_get(bth->dest_qp);
    s->psn = bth_psn(bth);
    s->ack_req = bth->ack_req & BTH_ACK_REQ;
    s->pkey = be16_get(bth->pkey);
    s->len = (uint32_t) (len - sizeof *bth - ROCE_ICRC_LEN - op->ext_len - pad);
    s->rkey = op->flags & ROCE_F_RETH ? be32_get(((const struct reth *) ext)->rkey) : 0;
    s->syndrome = op->flags & ROCE_F_AETH ? ((const struct aeth *) ext)->syndrome : 0;
    s->msn = op->flags & ROCE_F_AETH ? be24_get(((const struct aeth *) ext)->msn) : 0;
    return true;
}

bool
peer_receive(struct peer *p, struct seen *s, unsigned ms)
{
    uint64_t end = peer_now_us() + (uint64_t) ms * 1000;

    for (;;) {
        uint8_t packet[MAX_PACKET];
        union {
            char bytes[256];
            struct cmsghdr align;
        } control;
        struct sockaddr_in6 from;
        struct iovec iov = {packet + IP6_HDR_LEN + sizeof(struct udp_hdr),
                            sizeof packet - IP6_HDR_LEN - sizeof(struct udp_hdr)};
        struct msghdr msg = {.msg_name = &from,
                             .msg_namelen = sizeof from,
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
        struct pollfd pfd = {.fd = p->receive_fd, .events = POLLIN};
        uint64_t now = peer_now_us();

        if (poll(&pfd, 1, end > now ? (int) ((end - now + 999) / 1000) : 0) <= 0) {
            return false;
        }
        ssize_t len = recvmsg(p->receive_fd, &msg, MSG_DONTWAIT);
        *s = (struct seen){.sport = ntohs(from.sin6_port), .at_us = peer_now_us()};
        if (len >= 0 && !memcmp(&from.sin6_addr, &p->device, sizeof p->device)
            && parse(p, packet, (size_t) len, s)) {
            take_cmsgs(&msg, s);
            return true;
        }
        if (peer_now_us() >= end) {
            return false;
        }
    }
}
