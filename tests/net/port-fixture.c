/* SPDX-License-Identifier: Apache-2.0
 *
 * A network namespace, and ports in it.
 */
#include "tests/net/port-fixture.h"

#include <check.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct packet_pool *pool;

void
sh(const char *format, ...)
{
    char command[512];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    ck_assert_msg(system(command) == 0, "%s", command);
}

void
setup(void)
{
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    sh("ip link set lo up");
    pool = packet_pool_create(256);
}

void
teardown(void)
{
    packet_pool_destroy(pool);
}

struct port *
must_open(enum port_kind kind, const char *netdev, int netns_fd)
{
    struct port *port;
    char *why = NULL;
    int error = port_open(&port, kind, netdev, netns_fd, NULL, &why);
    ck_assert_msg(!error, "%s", why);
    return port;
}

void
wait_started(const char *netdev)
{
    sh("for i in $(seq 100); do"
       " ip -o link show %s | grep -q 'state UP' && exit 0; sleep 0.05; done; exit 1",
       netdev);
    sh("ip link set %s up", netdev); /* takes the kernel's lock: the start is complete. */
}

struct port *
must_open_tap(const char *netdev)
{
    struct port *port = must_open(PORT_TAP, netdev, -1);
    wait_started(netdev);
    return port;
}

int
recv_one(struct port *port, struct packet_pool *from, struct packet **p)
{
    static struct port_burst burst;
    static const struct port *burst_of;
    static size_t next_frame;
    static int burst_why;

    *p = NULL;
    if (burst_of != port || (next_frame == burst.n && !burst.n_lost)) {
        ck_assert(!burst_of || next_frame == burst.n);
        burst_why = port_recv(port, from, &burst);
        burst_of = port;
        next_frame = 0;
    }
    if (next_frame < burst.n) {
        *p = burst.frames[next_frame++];
        return 0;
    }
    if (burst.n_lost) {
        burst.n_lost--;
        return burst.why_lost;
    }
    burst_of = NULL;
    return burst_why;
}

int
send_one(struct port *port, struct packet *p)
{
    int why = -1;

    return port_send(port, &p, 1, &why) == 1 ? 0 : why;
}

struct packet *
next(struct port *port, int msec)
{
    struct pollfd pfd = {.fd = port_fd(port), .events = POLLIN};
    struct packet *p;
    int error;

    do {
        error = recv_one(port, pool, &p);
    } while (error == EAGAIN && poll(&pfd, 1, msec) > 0);
    ck_assert_msg(!error || error == EAGAIN, "%s", strerror(error));
    return p;
}

uint32_t
ethtool(const char *netdev, uint32_t cmd, uint32_t data)
{
    struct ethtool_value value = {.cmd = cmd, .data = data};
    struct ifreq ifr = {.ifr_data = (void *) &value};
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(ifr.ifr_name, netdev, strlen(netdev));
    ck_assert_int_eq(ioctl(s, SIOCETHTOOL, &ifr), 0);
    close(s);
    return value.data;
}
