/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes calls of a program fail, or has it be killed there: preloaded (LD_PRELOAD) into the real daemons.
 *
 * INJECT=CALL[/KIND]:WHAT,... has up to MAX_RULES rules.  CALL is one of the functions below.  KIND says of which
 * descriptors: "file", "unix" (a socket), "packet" (likewise), "char" (a device, such as a tap); without it, of all.
 * WHAT is an error by its name, or "kill" (before the call does anything) or "killed" (after it).
 *
 * INJECT_STATE names a file with a struct rule_state for each rule, which the test makes and may write to at any time.
 * It outlives the process, and processes that fork share it: counts go on.  With INJECT_ONCE programs that the process
 * runs are without all this.
 *
 * The C library's own calls, such as those of stdio, are not seen; hence fflush, with which stdio writes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_RULES 8
#define KILL      (-1)
#define KILLED    (-2)

/* Calls from number 'first' to number 'last' are hit, counted from 1; last 0: none. */
struct rule_state {
    _Atomic uint64_t n_calls, n_hit, first, last;
};

static struct rule {
    char call[16], kind[8];
    int what; /* an errno, KILL or KILLED. */
} rules[MAX_RULES];

static size_t n_rules;
static struct rule_state *states;

static const struct {
    const char *name;
    int what;
} whats[] = {
    {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"ENOBUFS", ENOBUFS},           {"ENOMEM", ENOMEM},
    {"EAGAIN", EAGAIN}, {"EMFILE", EMFILE}, {"ECONNREFUSED", ECONNREFUSED}, {"kill", KILL},
    {"EPIPE", EPIPE},   {"killed", KILLED},
};

static void __attribute__((noreturn)) give_up(const char *what)
{
    fprintf(stderr, "inject: %s\n", what);
    _exit(120);
}

static void
add_rule(const char *text)
{
    struct rule *r = &rules[n_rules];
    char call[sizeof r->call + sizeof r->kind], what[16];

    if (n_rules == MAX_RULES || sscanf(text, "%23[^:]:%15s", call, what) != 2) {
        give_up(text);
    }
    char *slash = strchr(call, '/');
    if (slash) {
        *slash = '\0';
        snprintf(r->kind, sizeof r->kind, "%.7s", slash + 1);
    }
    snprintf(r->call, sizeof r->call, "%.15s", call);
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
        if (!strcmp(whats[i].name, what)) {
            r->what = whats[i].what;
            n_rules++;
            return;
        }
    }
    give_up(text);
}

static void __attribute__((constructor)) read_rules(void)
{
    const char *env = getenv("INJECT"), *file = getenv("INJECT_STATE");

    if (!env || !file) {
        return;
    }
    char *text = strdup(env), *rest = text;
    for (char *rule; (rule = strsep(&rest, ","));) {
        add_rule(rule);
    }
    free(text);
    if (getenv("INJECT_ONCE")) {
        unsetenv("LD_PRELOAD");
    }
    size_t size = n_rules * sizeof *states;
    int fd = open(file, O_RDWR | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t) size) {
        give_up(file);
    }
    states = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (states == MAP_FAILED) {
        give_up(file);
    }
}

static bool
is_of_kind(int fd, const char *kind)
{
    struct stat st;
    int domain = -1;
    socklen_t size = sizeof domain;

    if (!kind[0]) {
        return true;
    }
    if (fstat(fd, &st)) {
        return false;
    }
    if (S_ISSOCK(st.st_mode)) {
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    }
    return !strcmp(kind, "file")     ? S_ISREG(st.st_mode)
           : !strcmp(kind, "char")   ? S_ISCHR(st.st_mode)
           : !strcmp(kind, "unix")   ? domain == AF_UNIX
           : !strcmp(kind, "packet") ? domain == AF_PACKET
                                     : false;
}

/* What is to become of this call; 0: nothing.  errno stays as it is. */
static int
inject(const char *call, int fd)
{
    int saved = errno, what = 0;

    for (size_t i = 0; i < n_rules && !what; i++) {
        struct rule_state *s = &states[i];

        if (!strcmp(rules[i].call, call) && is_of_kind(fd, rules[i].kind)) {
            uint64_t n = atomic_fetch_add(&s->n_calls, 1) + 1;

            if (n >= atomic_load(&s->first) && n <= atomic_load(&s->last)) {
                atomic_fetch_add(&s->n_hit, 1);
                what = rules[i].what;
            }
        }
    }
    errno = saved;
    if (what == KILL) {
        raise(SIGKILL);
    } else if (what == EPIPE) {
        raise(SIGPIPE); /* as the kernel does. */
    }
    return what;
}

/* The function of that name that would have been called; its type is the left side's. */
#define NEXT(NAME) ((__typeof__(&NAME)) dlsym(RTLD_NEXT, #NAME))

/* The body of a function that is called with a descriptor, fails with -1 and says why in errno. */
#define INJECTED(NAME, FD, ...)                               \
    static __typeof__(&NAME) next;                            \
    int what = inject(#NAME, FD);                             \
    if (what > 0) {                                           \
        errno = what;                                         \
        return -1;                                            \
    }                                                         \
    next = next ? next : NEXT(NAME);                          \
    __typeof__(next(__VA_ARGS__)) result = next(__VA_ARGS__); \
    if (what == KILLED) {                                     \
        raise(SIGKILL);                                       \
    }                                                         \
    return result

int
fsync(int fd)
{
    INJECTED(fsync, fd, fd);
}

int
fdatasync(int fd)
{
    INJECTED(fdatasync, fd, fd);
}

ssize_t
write(int fd, const void *buf, size_t n)
{
    INJECTED(write, fd, fd, buf, n);
}

ssize_t
writev(int fd, const struct iovec *iov, int n)
{
    INJECTED(writev, fd, fd, iov, n);
}

ssize_t
send(int fd, const void *buf, size_t n, int flags)
{
    INJECTED(send, fd, fd, buf, n, flags);
}

int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
    INJECTED(sendmmsg, fd, fd, msgs, n, flags);
}

int
connect(int fd, const struct sockaddr *address, socklen_t size)
{
    INJECTED(connect, fd, fd, address, size);
}

pid_t
fork(void)
{
    INJECTED(fork, -1);
}

/* What stdio would have written is lost, as when a write fails. */
int
fflush(FILE *stream)
{
    static __typeof__(&fflush) next;
    int what = stream ? inject("fflush", fileno(stream)) : 0;

    if (what > 0) {
        __fpurge(stream);
        errno = what;
        return EOF;
    }
    next = next ? next : NEXT(fflush);
    int result = next(stream);
    if (what == KILLED) {
        raise(SIGKILL);
    }
    return result;
}

/* Returns the error. */
int
posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
             const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    static __typeof__(&posix_spawnp) next;
    int what = inject("posix_spawnp", -1);

    if (what > 0) {
        return what;
    }
    next = next ? next : NEXT(posix_spawnp);
    return next(pid, file, actions, attributes, argv, envp);
}
