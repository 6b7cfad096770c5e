/* SPDX-License-Identifier: Apache-2.0
 *
 * A host with model RC endpoints on real sockets (see model-host.h).
 */
#include "tests/net/model-host.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/roce.h"

#define BATCH         32
#define HEADERS_LEN   (IP6_HDR_LEN + sizeof(struct udp_hdr))
#define SOCKET_BUFFER (4 << 20) /* a window of the largest packets, more than once. */

static struct sockaddr_in6
socket_address(const struct in6_addr *address, uint16_t port)
{
    return (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_addr = *address, .sin6_port = htons(port)};
}

/* A socket bound to the address, or -1 with errno set. */
static int
bound_socket(int type, int protocol, const struct in6_addr *address, uint16_t port)
{
    struct sockaddr_in6 sin6 = socket_address(address, port);
    int fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

    if (fd >= 0 && bind(fd, (struct sockaddr *) &sin6, sizeof sin6)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int
model_host_open(struct model_host *h, const struct in6_addr *address)
{
    const int size = SOCKET_BUFFER, on = 1;

    *h = (struct model_host){.address = *address};
    h->rx_fd = bound_socket(SOCK_DGRAM, 0, address, UDP_PORT_ROCE);
    if (h->rx_fd < 0) {
        return errno;
    }
    h->tx_fd = bound_socket(SOCK_RAW, IPPROTO_RAW, address, 0);
    if (h->tx_fd < 0) {
        int error = errno;
        close(h->rx_fd);
        return error;
    }
    /* RoCE has UDP checksum 0, which a socket does not take in IPv6 unless told to. */
    if (setsockopt(h->rx_fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size)
        || setsockopt(h->rx_fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on)
        || setsockopt(h->rx_fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof on)) {
        int error = errno;
        model_host_close(h);
        return error;
    }
    return 0;
}

void
model_host_close(struct model_host *h)
{
    for (size_t i = 0; i < h->n_qps; i++) {
        if (h->qps[i].ep) {
            rc_destroy(h->qps[i].ep);
        }
    }
    close(h->rx_fd);
    close(h->tx_fd);
}

void
model_host_send(const struct model_host *h, const uint8_t *ip, size_t len)
{
    struct sockaddr_in6 to = socket_address(&((const struct ip6_hdr_wire *) ip)->dst, 0);

    if (sendto(h->tx_fd, ip, len, 0, (struct sockaddr *) &to, sizeof to) < 0) {
        perror("sendto");
    }
}

static void
transmit(void *aux, const uint8_t *ip, size_t len)
{
    const struct model_qp *qp = aux;

    model_host_send(qp->host, ip, len);
}

static void
complete(void *aux, uint64_t id, enum rc_status status)
{
    const struct model_qp *qp = aux;

    if (qp->complete) {
        qp->complete(qp->aux, id, status);
    }
}

struct rc_endpoint *
model_host_add(struct model_host *h, struct rc_config config, model_complete *done, void *aux)
{
    struct model_qp *qp = h->qps;

    while (qp < h->qps + h->n_qps && qp->ep) {
        qp++;
    }
    h->n_qps += qp == h->qps + h->n_qps;
    assert(h->n_qps <= MODEL_HOST_MAX_QPS);
    struct rc_ops ops = {.tx = transmit, .complete = complete, .aux = qp};

    config.own = h->address;
    *qp = (struct model_qp){
        .host = h,
        .qpn = config.qpn,
        .ep = rc_create(&config, &ops),
        .complete = done,
        .aux = aux,
    };
    return qp->ep;
}

static struct rc_endpoint *
find(const struct model_host *h, uint32_t qpn)
{
    for (size_t i = 0; i < h->n_qps; i++) {
        if (h->qps[i].ep && h->qps[i].qpn == qpn) {
            return h->qps[i].ep;
        }
    }
    return NULL;
}

void
model_host_remove(struct model_host *h, uint32_t qpn)
{
    for (size_t i = 0; i < h->n_qps; i++) {
        if (h->qps[i].ep && h->qps[i].qpn == qpn) {
            rc_destroy(h->qps[i].ep);
            h->qps[i].ep = NULL;
        }
    }
}

/* The traffic class that a datagram came with. */
static uint8_t
traffic_class(struct msghdr *message)
{
    int tc = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&tc, CMSG_DATA(c), sizeof tc);
        }
    }
    return (uint8_t) tc;
}

/* A datagram whose payload is at ip + HEADERS_LEN.  Puts the headers that the kernel took off in
 * front of it: the checksum is checked, and flow label and hop limit are nothing to an endpoint or
 * its ICRC. */
static void
datagram_input(struct model_host *h, uint8_t *ip, size_t payload_len, uint8_t tc,
               const struct sockaddr_in6 *from, uint64_t now)
{
    struct ip6_hdr_wire *hdr = (struct ip6_hdr_wire *) ip;
    struct udp_hdr *udp = (struct udp_hdr *) (hdr + 1);
    const struct bth *bth = (const struct bth *) (udp + 1);
    be16_t udp_len = be16_put((uint16_t) (sizeof *udp + payload_len));

    memset(ip, 0, HEADERS_LEN);
    ip6_set_vtf(hdr, tc, 0);
    hdr->plen = udp_len;
    hdr->nh = IP6_NH_UDP;
    hdr->src = from->sin6_addr;
    hdr->dst = h->address;
    udp->sport = be16_put(ntohs(from->sin6_port));
    udp->dport = be16_put(UDP_PORT_ROCE);
    udp->len = udp_len;
    struct rc_endpoint *ep = payload_len >= sizeof *bth ? find(h, be24_get(bth->dest_qp)) : NULL;
    if (ep) {
        rc_input(ep, ip, HEADERS_LEN + payload_len, now);
    } else {
        h->n_stray++;
        if (h->other) {
            h->other(h->other_aux, ip, HEADERS_LEN + payload_len, now);
        }
    }
}

void
model_host_receive(struct model_host *h, uint64_t now)
{
    static uint8_t packets[BATCH][RC_MAX_PACKET];
    char control[BATCH][CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
    struct sockaddr_in6 from[BATCH];
    struct iovec iov[BATCH];
    struct mmsghdr messages[BATCH];
    int n;

    do {
        for (size_t i = 0; i < BATCH; i++) {
            iov[i] = (struct iovec){packets[i] + HEADERS_LEN, sizeof packets[i] - HEADERS_LEN};
            messages[i].msg_hdr = (struct msghdr){
                .msg_name = &from[i],
                .msg_namelen = sizeof from[i],
                .msg_iov = &iov[i],
                .msg_iovlen = 1,
                .msg_control = control[i],
                .msg_controllen = sizeof control[i],
            };
        }
        n = recvmmsg(h->rx_fd, messages, BATCH, 0, NULL);
        for (int i = 0; i < n; i++) {
            datagram_input(h, packets[i], messages[i].msg_len, traffic_class(&messages[i].msg_hdr),
                           &from[i], now);
        }
    } while (n == BATCH);
}
