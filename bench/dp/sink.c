/* SPDX-License-Identifier: Apache-2.0
 *
 * dp-sink ADDRESS...: takes single datagrams to RoCE's UDP port, as endpoints with these addresses
 * do, and counts them.
 *
 * Each line on standard input is answered by one on standard output: datagrams, and their bytes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_ROCE    4791
#define AT_ONCE      64
#define READ_AT_ONCE 256
#define MAX_SOCKETS  32

struct counts {
    uint64_t n;
    uint64_t n_bytes;
};

static int
fail(const char *what)
{
    fprintf(stderr, "dp-sink: %s: %s\n", what, strerror(errno));
    return 1;
}

static int
open_socket(const char *address)
{
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(PORT_ROCE)};
    const int on = 1, size = 64 << 20;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || inet_pton(AF_INET6, address, &sin6.sin6_addr) != 1
        || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size)
        || setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_RX, &on, sizeof on)
        || bind(fd, (const struct sockaddr *) &sin6, sizeof sin6)) {
        fail(address);
        return -1;
    }
    return fd;
}

/* Takes what has come. */
static void
take(int fd, struct counts *c)
{
    /* MSG_TRUNC has the length of what does not fit: the bytes themselves are not wanted. */
    static uint8_t head[AT_ONCE][64];
    struct iovec iov[AT_ONCE];
    struct mmsghdr msgs[AT_ONCE] = {0};
    int got;

    for (size_t i = 0; i < AT_ONCE; i++) {
        iov[i] = (struct iovec){head[i], sizeof head[i]};
        msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
    }
    while ((got = recvmmsg(fd, msgs, AT_ONCE, MSG_TRUNC, NULL)) > 0) {
        c->n += (uint64_t) got;
        for (int i = 0; i < got; i++) {
            c->n_bytes += msgs[i].msg_len;
        }
    }
}

int
main(int argc, char *argv[])
{
    struct pollfd fds[1 + MAX_SOCKETS] = {{.fd = 0, .events = POLLIN}};
    struct counts c = {0};
    char line[READ_AT_ONCE];

    if (argc < 2 || argc > 1 + MAX_SOCKETS) {
        fprintf(stderr, "usage: dp-sink ADDRESS...  (at most %d)\n", MAX_SOCKETS);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        fds[i] = (struct pollfd){.fd = open_socket(argv[i]), .events = POLLIN};
        if (fds[i].fd < 0) {
            return 1;
        }
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (poll(fds, (nfds_t) argc, -1) < 0) {
            return fail("poll");
        }
        for (int i = 1; i < argc; i++) {
            take(fds[i].fd, &c);
        }
        if (fds[0].revents) {
            if (read(0, line, sizeof line) <= 0) {
                return 0;
            }
            printf("%" PRIu64 " %" PRIu64 "\n", c.n, c.n_bytes);
            fflush(stdout);
        }
    }
}
