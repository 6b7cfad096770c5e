/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that opens an agent's ports.
 *
 * Theory of operation
 * -------------------
 * It reads a request, does it, sends the reply with the descriptors, closes these, and has forgotten
 * all about it.  So it serves whoever has the other end of its socket: with --monitor one daemon after
 * the other.  A reply that a daemon did not live to read is there for the next; sequence numbers tell.
 *
 * It has what a process inherits that is forked early, and keeps nothing of that but its socket and
 * the namespace of --netns.  Signals to end are for the agent.
 */
#include <config.h>

#include "ctl/node/port-helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command-line.h"
#include "ctl/node/port-request.h"
#include "ctl/process/privileges.h"
#include "ctl/process/syscalls.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/util.h"
#include "util.h"

struct port_helper {
    int fd;
    uint32_t sequence; /* of the last request. */
};

#define ENDED "the process that opens ports has ended"

/* Descriptors beside a message. */
union beside {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PORT_MAX_FDS * sizeof(int))];
};

/* The process. */

static void
say(struct port_reply *reply, int error, const char *why)
{
    reply->error = (uint32_t) error;
    ovs_strlcpy(reply->why, why ? why : "", sizeof reply->why);
}

static void
watch(struct port_reply *reply, struct port_parts *parts, int netns_fd)
{
    char *why = NULL;
    int fd;
    int error = port_events_open(&fd, netns_fd, &why);

    free(why);
    if (error) {
        say(reply, error, "cannot listen to changes of network devices");
    } else {
        parts->fds[parts->n_fds++] = fd;
    }
}

static void
open_parts(struct port_reply *reply, struct port_parts *parts, const struct port_request *r,
           int netns_fd)
{
    const char *why = NULL;
    int error = port_acquire(parts, r->kind, r->netdev, netns_fd, r->n_sharing, r->offload, &why);

    if (error) {
        say(reply, error, why);
    }
    reply->vnet_hdr = parts->vnet_hdr;
    reply->uso = parts->uso;
    reply->is_veth = parts->is_veth;
    reply->large = parts->large;
    reply->ifindex = parts->ifindex;
    reply->bind_flags = parts->bind_flags;
}

static void
answer(struct port_reply *reply, struct port_parts *parts, const struct port_request *r, size_t len,
       int netns_fd)
{
    const char *complaint = port_request_complaint(r, len, netns_fd >= 0);

    if (complaint) {
        say(reply, EINVAL, complaint);
    } else if (r->what == PORT_REQUEST_WATCH) {
        watch(reply, parts, r->in_netns ? netns_fd : -1);
    } else {
        open_parts(reply, parts, r, r->in_netns ? netns_fd : -1);
    }
}

/* Sends the reply; false: nobody is there any more. */
static bool
send_reply(int fd, struct port_reply *reply, const struct port_parts *parts)
{
    union beside beside;
    struct iovec iov = {reply, sizeof *reply};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    size_t size = parts->n_fds * sizeof(int);

    reply->n_fds = parts->n_fds;
    if (size) {
        memset(&beside, 0, sizeof beside);
        msg.msg_control = &beside;
        msg.msg_controllen = CMSG_SPACE(size);
        beside.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(size),
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
        };
        memcpy(CMSG_DATA(&beside.header), parts->fds, size);
    }
    return sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0;
}

/* Descriptors that come with a request are not taken: there is no room for them. */
void
port_helper_serve(int fd, int netns_fd)
{
    for (;;) {
        struct port_request r = {.sequence = 0};
        struct port_parts parts = {.n_fds = 0};
        ssize_t len = recv(fd, &r, sizeof r, MSG_TRUNC);

        if (len < 0 && errno == EINTR) {
            continue;
        }
        if (len <= 0) {
            return;
        }
        struct port_reply reply = {.sequence = r.sequence};
        answer(&reply, &parts, &r, (size_t) len, netns_fd);
        bool sent = send_reply(fd, &reply, &parts);
        port_parts_discard(&parts);
        if (!sent) {
            return;
        }
    }
}

/* Moves descriptors to 'fd' and 'netns_fd' and closes all others; standard ones lead nowhere. */
static int
keep_only(int *fd, int *netns_fd)
{
    int null = open("/dev/null", O_RDWR);
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, 10);
    int netns = *netns_fd < 0 ? -1 : fcntl(*netns_fd, F_DUPFD_CLOEXEC, 10);

    if (null < 0 || moved < 0 || (*netns_fd >= 0 && netns < 0)) {
        return errno;
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(null, i) < 0) {
            return errno;
        }
    }
    if (dup3(moved, 3, O_CLOEXEC) < 0 || (netns >= 0 && dup3(netns, 4, O_CLOEXEC) < 0)
        || close_range(netns >= 0 ? 5 : 4, ~0U, 0)) {
        return errno;
    }
    *fd = 3;
    *netns_fd = netns >= 0 ? 4 : -1;
    return 0;
}

static void OVS_NO_RETURN
helper_main(int fd, int netns_fd, bool filter)
{
    struct port_reply ready = {.sequence = 0};
    struct port_parts none = {.n_fds = 0};

    setsid();
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    ovs_cmdl_proctitle_set("opens ports");
    prctl(PR_SET_NAME, "opens-ports", 0, 0, 0);
    int error = chdir("/") ? errno : keep_only(&fd, &netns_fd);
    say(&ready, error, "what it inherits");
    if (!error) {
        error = privileges_drop(netns_fd >= 0 ? PRIVILEGES_NETNS : PRIVILEGES_PORTS);
        say(&ready, error, "capabilities cannot be given up");
    }
    if (!error && filter) {
        error = syscalls_restrict(netns_fd >= 0 ? SYSCALLS_OPENER_NETNS : SYSCALLS_OPENER);
        say(&ready, error, "system calls cannot be filtered");
    }
    if (send_reply(fd, &ready, &none) && !error) {
        port_helper_serve(fd, netns_fd);
    }
    _exit(0);
}

/* The agent. */

/* Takes descriptors that are beside a message; false: some were lost, since there are too many
 * here already. */
static bool
take_fds(struct msghdr *msg, struct port_parts *parts)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

            memcpy(parts->fds + parts->n_fds, CMSG_DATA(c), n * sizeof(int));
            parts->n_fds += (unsigned) n;
        }
    }
    return !(msg->msg_flags & MSG_CTRUNC);
}

/* Reads one reply; false: there is nobody. */
static bool
read_reply(const struct port_helper *h, struct port_reply *reply, struct port_parts *parts)
{
    union beside beside;
    struct iovec iov = {reply, sizeof *reply};
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &beside,
        .msg_controllen = sizeof beside,
    };
    ssize_t n;

    *parts = (struct port_parts){.n_fds = 0};
    do {
        n = recvmsg(h->fd, &msg, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n != sizeof *reply) {
        say(reply, EPIPE, ENDED);
        return false;
    }
    if (!take_fds(&msg, parts) || parts->n_fds != reply->n_fds) {
        say(reply, EMFILE, "no descriptor left");
    }
    reply->why[sizeof reply->why - 1] = '\0';
    parts->vnet_hdr = reply->vnet_hdr;
    parts->uso = reply->uso;
    parts->is_veth = reply->is_veth;
    parts->large = reply->large;
    parts->ifindex = reply->ifindex;
    parts->bind_flags = reply->bind_flags;
    return true;
}

/* Has a request answered; reply->error is 0 or says what is wrong, and then there are no parts. */
static void
ask(struct port_helper *h, struct port_request *r, struct port_reply *reply,
    struct port_parts *parts)
{
    bool again = true;

    *parts = (struct port_parts){.n_fds = 0};
    r->sequence = ++h->sequence;
    if (send(h->fd, r, sizeof *r, MSG_NOSIGNAL) < 0) {
        say(reply, EPIPE, ENDED);
        return;
    }
    while (again) {
        port_parts_discard(parts);
        again = read_reply(h, reply, parts) && reply->sequence != r->sequence;
    }
    if (reply->error) {
        port_parts_discard(parts);
    }
}

int
port_helper_open(struct port_helper *h, struct port **portp, enum port_kind kind,
                 const char *netdev, bool in_netns, const struct port_queue *queue, char **errp)
{
    struct port_request r = {
        .what = PORT_REQUEST_OPEN,
        .in_netns = in_netns,
        .kind = (uint8_t) kind,
        .offload = port_uses_offload(),
        .n_sharing = queue ? (uint8_t) queue->n : 1,
    };
    struct port_reply reply;
    struct port_parts parts;

    *portp = NULL;
    if (strlen(netdev) >= sizeof r.netdev) {
        *errp = xasprintf("%s: no such network device (%s)", netdev, ovs_strerror(ENODEV));
        return ENODEV;
    }
    ovs_strlcpy(r.netdev, netdev, sizeof r.netdev);
    ask(h, &r, &reply, &parts);
    if (reply.error) {
        *errp = xasprintf("%s: %s (%s)", netdev, reply.why, ovs_strerror((int) reply.error));
        return (int) reply.error;
    }
    return port_assemble(portp, kind, netdev, &parts, queue, errp);
}

int
port_helper_watch(struct port_helper *h, int *fdp, bool in_netns, char **errp)
{
    struct port_request r = {.what = PORT_REQUEST_WATCH, .in_netns = in_netns};
    struct port_reply reply;
    struct port_parts parts;

    ask(h, &r, &reply, &parts);
    if (!reply.error && !parts.n_fds) {
        say(&reply, EBADF, "no descriptor");
    }
    if (reply.error) {
        *errp = xasprintf("%s (%s)", reply.why, ovs_strerror((int) reply.error));
        return (int) reply.error;
    }
    *fdp = parts.fds[0];
    return 0;
}

bool
port_helper_has_ended(const struct port_helper *h)
{
    struct pollfd pfd = {.fd = h->fd, .events = POLLIN};

    /* Nothing is asked now, so what may come is the end, or a reply to a daemon that is dead. */
    return poll(&pfd, 1, 0) > 0 && pfd.revents & POLLHUP;
}

void
port_helper_wait(const struct port_helper *h)
{
    poll_fd_wait(h->fd, POLLHUP);
}

void
port_helper_close(struct port_helper *h)
{
    close(h->fd);
    free(h);
}

struct port_helper *
port_helper_start(int netns_fd, bool filter, char **errp)
{
    struct port_reply ready = {0};
    struct port_parts none;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
        *errp = xasprintf("a socket for the process that opens ports: %s", ovs_strerror(errno));
        return NULL;
    }
    pid_t pid = fork();
    if (!pid) {
        close(fds[0]);
        helper_main(fds[1], netns_fd, filter);
    }
    close(fds[1]);
    struct port_helper *h = xmalloc(sizeof *h);
    *h = (struct port_helper){.fd = fds[0]};
    if (pid < 0) {
        *errp = xasprintf("the process that opens ports: %s", ovs_strerror(errno));
    } else if (!read_reply(h, &ready, &none) || ready.error) {
        *errp = xasprintf("the process that opens ports: %s: %s", ready.why,
                          ovs_strerror((int) ready.error));
    } else {
        return h;
    }
    port_helper_close(h);
    return NULL;
}
