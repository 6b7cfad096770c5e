/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON lines over TCP (see control.h).
 */
#include "bench/castprobe/control.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int
open_port(int type, uint16_t port)
{
    struct sockaddr_in6 any = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_ANY_INIT};
    int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, (struct sockaddr *) &any, sizeof any) || (type == SOCK_STREAM && listen(fd, 1))) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int
control_listen(uint16_t port)
{
    return open_port(SOCK_STREAM, port);
}

int
control_hear(uint16_t port)
{
    return open_port(SOCK_DGRAM, port);
}

static bool
control_open(struct control *c, int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    *c = (struct control){.in = fdopen(fd, "r"), .fd = fd};
    if (!c->in) {
        close(fd);
    }
    return c->in != NULL;
}

bool
control_accept(struct control *c, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    return fd >= 0 && control_open(c, fd);
}

const char *
control_connect(struct control *c, const char *host, uint16_t port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    char service[8];
    int fd = -1, error = 0;

    snprintf(service, sizeof service, "%u", port);
    int unknown = getaddrinfo(host, service, &hints, &list);
    if (unknown) {
        return gai_strerror(unknown);
    }
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
            error = errno;
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd < 0 || !control_open(c, fd) ? strerror(error ? error : errno) : NULL;
}

void
control_close(struct control *c)
{
    if (c->in) {
        fclose(c->in);
    }
    *c = (struct control){.fd = -1};
}

bool
control_send(struct control *c, json_t *value)
{
    char line[CONTROL_LINE];
    size_t len = json_dumpb(value, line, sizeof line - 1, JSON_COMPACT);

    json_decref(value);
    if (!len || len >= sizeof line) {
        return false;
    }
    line[len++] = '\n';
    for (size_t done = 0; done < len;) {
        ssize_t n = send(c->fd, line + done, len - done, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t) n : 0;
    }
    return true;
}

json_t *
control_receive(struct control *c)
{
    char line[CONTROL_LINE];

    return fgets(line, sizeof line, c->in) ? json_loads(line, 0, NULL) : NULL;
}
