/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay between a client of perftest and its servers (see perftest-relay.h).
 *
 * The client says something, each server answers with as many bytes, and so on: first the version,
 * two sizes of the machine and the path MTU, then keys (perftest-keys.h), again and again so that
 * each side knows how far the other is; then the client transfers, and says so by the next message;
 * at last reports, and "done".  All goes through as it is, but for the keys, in which client and
 * servers find the group as the other side.  Up to the transfer all servers must say the same, other
 * than keys, since the client hears only one of them.
 *
 * The group is made when the client has said its first PSN, with which the group begins.  The
 * servers are members when they have sent keys for a second time, as by then their queue pairs are
 * ready for packets.
 */
#include "bench/castbench/perftest-relay.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/castbench/castctl.h"
#include "bench/castbench/clock.h"
#include "bench/castbench/interrupt.h"
#include "bench/castbench/refuse.h"
#include "lib/printable.h"

#define MAX_MESSAGE         256
#define VERSION_LEN         16
#define MAX_PAGE            (1u << 24)
#define TICK_MS             100

/* castctl's exit status when it has written something that is not done in time. */
#define CASTCTL_NOT_IN_TIME 3

/* Which of a client's messages are not keys. */
enum { MESSAGE_VERSION = 1, MESSAGE_PAGE, MESSAGE_CACHE_LINE, MESSAGE_MTU };

/* How often the client has sent its keys when the servers can be members, and when it transfers. */
#define KEYS_JOIN        2
#define KEYS_BEGIN_WRITE 3
#define KEYS_BEGIN_SEND  4

static const char *
name_of(const struct perftest_args *a)
{
    const char *slash = strrchr(a->program, '/');

    return slash ? slash + 1 : a->program;
}

/* How a process has ended. */
static void
describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status)) {
        snprintf(text, size, "died: %s", strsignal(WTERMSIG(status)));
    } else {
        snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
    }
}

/* The last line that a server has printed, in brackets; empty: none. */
static void
last_words(const struct perftest_server *s, char *text, size_t size)
{
    char printed[4096];
    off_t end = s->log < 0 ? 0 : lseek(s->log, 0, SEEK_END);
    off_t from = end > (off_t) sizeof printed - 1 ? end - (off_t) sizeof printed + 1 : 0;
    ssize_t n = end > 0 ? pread(s->log, printed, sizeof printed - 1, from) : 0;
    char *line = NULL, *rest = printed, *next;

    text[0] = '\0';
    printed[n > 0 ? n : 0] = '\0';
    while ((next = strsep(&rest, "\n"))) {
        next += strspn(next, " -*");
        line = next[0] ? next : line;
    }
    if (line) {
        snprintf(text, size, " (%s)", line);
    }
}

bool
perftest_relay_alive(struct perftest_relay *r, char *error, size_t size)
{
    char how[64], said[256];
    int status;

    if (interrupt_signal()) {
        return refuse(error, size, "interrupted (%s)", strsignal(interrupt_signal()));
    }
    for (unsigned i = 0; i < r->n_servers; i++) {
        struct perftest_server *s = &r->servers[i];

        if (s->pid && waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            /* After its last keys a server waits for nobody. */
            if (!status && r->n_keys >= r->args->n_keys) {
                continue;
            }
            describe_end(status, how, sizeof how);
            last_words(s, said, sizeof said);
            return refuse(error, size, "the server of %s %s%s", s->host, how, said);
        }
    }
    if (r->client && r->fd < 0 && waitpid(r->client, &status, WNOHANG) == r->client) {
        r->client = 0;
        describe_end(status, how, sizeof how);
        return refuse(error, size, "%s %s before it had connected", name_of(r->args), how);
    }
    return true;
}

/* Waits until a descriptor can be read, at most so many seconds (0: for ever).  False with an empty
 * error: it could not in time. */
static bool
await(struct perftest_relay *r, int fd, unsigned seconds, char *error, size_t size)
{
    uint64_t end = now_ns() + seconds * (uint64_t) NS_PER_SEC;
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    struct lost_info lost;

    error[0] = '\0';
    while (poll(&pfd, 1, TICK_MS) <= 0) {
        if (!perftest_relay_alive(r, error, size) || (seconds && now_ns() > end)) {
            return false;
        }
        while (r->watch && registry_watch_lost(r->watch, 0, &lost)) {
            printable_put(stderr, "castbench: ", "%s is lost: %s", lost.host, lost.why);
        }
    }
    return true;
}

static int
connect_once(const struct perftest_server *s, int *fd)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *info;
    int status = getaddrinfo(s->address, s->port, &hints, &info);

    *fd = -1;
    if (status) {
        return status == EAI_SYSTEM ? errno : EADDRNOTAVAIL;
    }
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    status = *fd < 0 || connect(*fd, info->ai_addr, info->ai_addrlen) ? errno : 0;
    if (status && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    freeaddrinfo(info);
    return status;
}

bool
perftest_relay_connect(struct perftest_relay *r, struct perftest_server *s, char *error,
                       size_t size)
{
    uint64_t end = now_ns() + r->timeout * (uint64_t) NS_PER_SEC;
    int status = connect_once(s, &s->fd);

    while (status == ECONNREFUSED && now_ns() < end) {
        usleep(TICK_MS * 1000);
        if (!perftest_relay_alive(r, error, size)) {
            return false;
        }
        status = connect_once(s, &s->fd);
    }
    return !status
           || refuse(error, size, "the server of %s at %s, port %s, does not answer: %s", s->host,
                     s->address, s->port, strerror(status));
}

static bool
accept_client(struct perftest_relay *r, char *error, size_t size)
{
    if (!await(r, r->listener, r->timeout, error, size)) {
        return !error[0]
               && refuse(error, size, "%s does not connect within %u s", name_of(r->args),
                         r->timeout);
    }
    r->fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
    return r->fd >= 0 || refuse(error, size, "accept: %s", strerror(errno));
}

/* Takes the client's next message; 0: it has closed the connection.  Before the transfer it has the
 * time of an answer, later any. */
static bool
read_client(struct perftest_relay *r, char *message, size_t *len, char *error, size_t size)
{
    bool transfers = r->n_keys >= (r->args->is_send ? KEYS_BEGIN_SEND : KEYS_BEGIN_WRITE);

    if (!await(r, r->fd, transfers ? 0 : r->timeout, error, size)) {
        return !error[0]
               && refuse(error, size, "%s has said nothing for %u s", name_of(r->args), r->timeout);
    }
    ssize_t n = recv(r->fd, message, MAX_MESSAGE, 0);
    *len = n > 0 ? (size_t) n : 0;
    return true;
}

/* Takes a server's answer, which is as long as what it answers. */
static bool
read_server(struct perftest_relay *r, const struct perftest_server *s, char *message, size_t len,
            char *error, size_t size)
{
    for (size_t have = 0; have < len;) {
        if (!await(r, s->fd, r->timeout, error, size)) {
            return !error[0]
                   && refuse(error, size, "the server of %s has not answered for %u s", s->host,
                             r->timeout);
        }
        ssize_t n = recv(s->fd, message + have, len - have, 0);
        if (n <= 0) {
            /* The end of its process says more, if it is one of this machine. */
            usleep(TICK_MS * 1000);
            return perftest_relay_alive(r, error, size)
                   && refuse(error, size, "the server of %s has closed the connection", s->host);
        }
        have += (size_t) n;
    }
    return true;
}

static bool
write_to(int fd, const char *who, const char *message, size_t len, char *error, size_t size)
{
    return send(fd, message, len, MSG_NOSIGNAL) == (ssize_t) len
           || refuse(error, size, "cannot write to %s: %s", who, strerror(errno));
}

static uint32_t
mtu_bytes(unsigned code)
{
    return 128u << code;
}

/* The group begins with the client's PSN, and has the client as its source. */
static bool
make_group(struct perftest_relay *r, char *error, size_t size)
{
    char psn[16], mtu[16], timeout[16];
    const char *argv[] = {"group", "add", r->group,    "--psn", psn,
                          "--mtu", mtu,   "--timeout", timeout, NULL};

    snprintf(psn, sizeof psn, "%u", r->keys.psn);
    snprintf(mtu, sizeof mtu, "%u", mtu_bytes(r->mtu_code));
    snprintf(timeout, sizeof timeout, "%u", r->args->qp_timeout);
    if (!r->args->qp_timeout) {
        argv[7] = NULL;
    }
    int status = castctl_run(argv, error, size);
    r->group_made = !status || status == CASTCTL_NOT_IN_TIME;
    return !status && !registry_source_set(r->group, r->source, r->keys.qpn, &r->epoch, error, size)
           && !registry_watch_open(r->group, &r->watch, error, size);
}

/* Bytes at the address in a server's keys. */
static uint32_t
buffer_len(const struct perftest_relay *r)
{
    return r->args->size > r->page ? r->args->size : r->page;
}

/* Copies between memory of another process, one of castbench's own children, and 'buf'. */
static bool
copy(ssize_t how(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                 unsigned long),
     pid_t pid, uint64_t va, unsigned char *buf, size_t len)
{
    struct iovec own = {.iov_base = buf, .iov_len = len};
    struct iovec other = {.iov_base = (void *) (uintptr_t) va, .iov_len = len};

    return how(pid, &own, 1, &other, 1, 0) == (ssize_t) len;
}

/* perftest fills its memory with bytes that follow from the second in which it starts: those of
 * client and servers are often equal from the start.  So every byte of a server's is changed. */
static bool
poison(const struct perftest_relay *r, const struct perftest_server *s, char *error, size_t size)
{
    size_t len = buffer_len(r);
    unsigned char *buf = malloc(len);
    bool ok = buf && copy(process_vm_readv, s->pid, s->keys.va, buf, len);

    for (size_t i = 0; ok && i < len; i++) {
        buf[i] = (unsigned char) ~buf[i];
    }
    ok = ok && copy(process_vm_writev, s->pid, s->keys.va, buf, len);
    free(buf);
    return ok
           || refuse(error, size, "cannot write to the memory of the server of %s: %s", s->host,
                     strerror(errno));
}

static bool
join(struct perftest_relay *r, char *error, size_t size)
{
    struct rocecast_epoch ready;

    for (unsigned i = 0; i < r->n_servers; i++) {
        const struct perftest_server *s = &r->servers[i];
        struct rocecast_member member = {
            .size = sizeof member,
            .host = s->host,
            .qpn = s->keys.qpn,
            .epoch = r->epoch.epoch,
            .address = s->keys.va,
            .length = buffer_len(r),
            .rkey = s->keys.rkey,
        };
        if ((s->pid && !poison(r, s, error, size))
            || registry_member_add(r->group, &member, error, size)) {
            return false;
        }
    }
    return !registry_group_wait(r->group, r->n_servers, r->epoch.epoch, r->timeout, &ready, error,
                                size);
}

/* Does a server's buffer begin with a message of the client's?  Small messages are spread over a page,
 * each in a slot.  A WRITE goes from a slot to the same, but a SEND into the next receive's: perftest
 * begins with the first slot again, whichever the client is at, when it has used up those receives
 * that it had posted at the start. */
static bool
holds_message(const struct perftest_relay *r, const unsigned char *got, const unsigned char *sent)
{
    uint32_t size = r->args->size, line = r->cache_line ? r->cache_line : 1;
    size_t slot = (size + line - 1) / line * line;
    bool is_spread = r->args->is_send && size <= r->page / 2;

    for (size_t ofs = 0; is_spread && ofs + size <= buffer_len(r); ofs += slot) {
        if (!memcmp(got, sent + ofs, size)) {
            return true;
        }
    }
    return !memcmp(got, sent, size);
}

static bool
compare_server(struct perftest_relay *r, const struct perftest_server *s, const unsigned char *sent,
               unsigned char *got, char *error, size_t size)
{
    size_t len = r->args->size, at = 0;

    if (!copy(process_vm_readv, s->pid, s->keys.va, got, len)) {
        return refuse(error, size, "cannot read the memory of the server of %s: %s", s->host,
                      strerror(errno));
    }
    if (!holds_message(r, got, sent)) {
        for (; at < len && got[at] == sent[at]; at++) {
        }
        return refuse(error, size, "%s: byte %zu of %zu differs from the client's", s->host, at,
                      len);
    }
    r->n_compared++;
    return true;
}

/* Client and servers have come to the end of the transfer, and wait: compares memory.  The client
 * sends from its buffer's first half, and its keys have the second half's address. */
static bool
compare(struct perftest_relay *r, char *error, size_t size)
{
    size_t len = buffer_len(r);
    unsigned char *sent = malloc(len), *got = malloc(len);
    bool ok = sent && got && copy(process_vm_readv, r->client, r->keys.va - len, sent, len);

    if (!ok) {
        refuse(error, size, "cannot read the memory of %s: %s", name_of(r->args), strerror(errno));
    }
    for (unsigned i = 0; ok && i < r->n_servers; i++) {
        ok = !r->servers[i].pid || compare_server(r, &r->servers[i], sent, got, error, size);
    }
    free(sent);
    free(got);
    return ok;
}

/* Takes note of what the client says, and puts the group's side of it into the message. */
static bool
take_client(struct perftest_relay *r, char *message, size_t len, char *error, size_t size)
{
    struct perftest_keys keys;

    r->n_messages++;
    if (r->n_messages == MESSAGE_VERSION) {
        return (len == VERSION_LEN && memchr(message, '\0', len) && strtod(message, NULL) > 0)
               || refuse(error, size,
                         "%s says %zu bytes instead of its version: must be of perftest "
                         "4.5",
                         name_of(r->args), len);
    }
    if (!perftest_keys_parse(&keys, message, len)) {
        return r->n_messages <= MESSAGE_MTU || r->n_keys >= r->args->n_keys
               || refuse(error, size,
                         "%s says its keys in another form than perftest 4.5 (%zu bytes)",
                         name_of(r->args), len);
    }
    if (r->n_keys && (keys.qpn != r->keys.qpn || keys.psn != r->keys.psn)) {
        return refuse(error, size, "%s has several queue pairs", name_of(r->args));
    }
    r->keys = keys;
    if ((!r->n_keys && !make_group(r, error, size))
        || (++r->n_keys == r->args->n_keys && !compare(r, error, size))) {
        return false;
    }
    keys.qpn = r->epoch.designated_qpn;
    keys.gid = r->epoch.proxy;
    perftest_keys_format(&keys, message);
    return true;
}

/* The numbers that decide about the path MTU and the buffer: the client's, and all servers'. */
static void
take_machine(struct perftest_relay *r, const char *message, size_t len)
{
    uint32_t *largest = r->n_messages == MESSAGE_PAGE         ? &r->page
                        : r->n_messages == MESSAGE_CACHE_LINE ? &r->cache_line
                                                              : NULL;
    uint32_t v;

    if (largest && len == sizeof v) {
        memcpy(&v, message, sizeof v);
        v = ntohl(v);
        *largest = v <= MAX_PAGE && v > *largest ? v : *largest;
    }
    if (r->n_messages == MESSAGE_MTU && message[0] >= '1' && message[0] <= '5') {
        unsigned code = (unsigned) (message[0] - '0');

        r->mtu_code = !r->mtu_code || code < r->mtu_code ? code : r->mtu_code;
    }
}

/* Takes the answer of server i.  'first' is that of the first server. */
static bool
take_server(struct perftest_relay *r, unsigned i, const char *message, const char *first,
            size_t len, char *error, size_t size)
{
    struct perftest_server *s = &r->servers[i];
    struct perftest_keys keys;

    take_machine(r, message, len);
    if (len == PERFTEST_KEYS_LEN) {
        if (!perftest_keys_parse(&keys, message, len)) {
            return refuse(error, size,
                          "the server of %s says its keys in another form than perftest "
                          "4.5",
                          s->host);
        }
        s->keys = keys;
        return true;
    }
    if (r->n_messages == MESSAGE_VERSION) {
        return !strncmp(message, first, len)
               || refuse(error, size, "the server of %s has version %.*s of perftest, %s %.*s",
                         s->host, VERSION_LEN, message,
                         i ? "that of the first receiver" : name_of(r->args), VERSION_LEN, first);
    }
    return r->n_keys || !memcmp(message, first, len)
           || refuse(error, size,
                     "the server of %s differs from that of %s in what it says of its "
                     "machine: message %u",
                     s->host, r->servers[0].host, r->n_messages);
}

static bool
tell_servers(struct perftest_relay *r, const char *message, size_t len, char *error, size_t size)
{
    char who[128];

    for (unsigned i = 0; i < r->n_servers; i++) {
        snprintf(who, sizeof who, "the server of %s", r->servers[i].host);
        if (!write_to(r->servers[i].fd, who, message, len, error, size)) {
            return false;
        }
    }
    return true;
}

/* Makes one answer of those that all servers give to the client's message, which it replaces. */
static bool
hear_servers(struct perftest_relay *r, char *message, size_t len, char *error, size_t size)
{
    char answer[MAX_MESSAGE], first[MAX_MESSAGE];

    memcpy(first, message, len); /* the first server has to have the client's version. */
    for (unsigned i = 0; i < r->n_servers; i++) {
        if (!read_server(r, &r->servers[i], answer, len, error, size)) {
            return false;
        }
        if (!i && r->n_messages != MESSAGE_VERSION) {
            memcpy(first, answer, len);
        }
        if (!take_server(r, i, answer, first, len, error, size)) {
            return false;
        }
    }
    memcpy(message, first, len);
    return true;
}

/* Puts the group in place of the servers. */
static void
answer_keys(const struct perftest_relay *r, char *message)
{
    struct perftest_keys keys = r->servers[0].keys;

    keys.qpn = r->epoch.designated_qpn;
    keys.psn = r->epoch.start_psn;
    keys.rkey = r->epoch.designated_rkey;
    keys.va = 0;
    keys.gid = r->epoch.proxy;
    perftest_keys_format(&keys, message);
}

bool
perftest_relay_run(struct perftest_relay *r, char *error, size_t size)
{
    char message[MAX_MESSAGE];
    size_t len = 0;

    if (!accept_client(r, error, size)) {
        return false;
    }
    while (read_client(r, message, &len, error, size)) {
        bool is_done = len == sizeof "done" && !memcmp(message, "done", len);

        if (!len) {
            return refuse(error, size, "%s has closed its connection before the end",
                          name_of(r->args));
        }
        take_machine(r, message, len);
        if (!take_client(r, message, len, error, size)) {
            return false;
        }
        /* Servers say the same by themselves, which nobody reads, and may have ended. */
        if (!tell_servers(r, message, len, error, size) || is_done) {
            return is_done;
        }
        if (!hear_servers(r, message, len, error, size)) {
            return false;
        }
        if (len == PERFTEST_KEYS_LEN) {
            if (r->n_keys == KEYS_JOIN && !join(r, error, size)) {
                return false;
            }
            answer_keys(r, message);
        }
        if (!write_to(r->fd, name_of(r->args), message, len, error, size)) {
            return false;
        }
    }
    return false;
}
