/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl as a process (see castctl.h).
 */
#include "bench/castbench/castctl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/castbench/refuse.h"

#define MAX_ARGS     16
#define WAIT_LINE_MS 100
#define WAIT_END_US  1000

int
program_beside(const char *name, char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size);

    if (n < 0) {
        return errno;
    }
    if ((size_t) n == size) {
        return ENAMETOOLONG;
    }
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    size_t left = size - (size_t) (slash - path);
    return (size_t) snprintf(slash, left, "/%s", name) < left ? 0 : ENAMETOOLONG;
}

static void __attribute__((noreturn))
exec_castctl(const char *path, const char *const argv[], int out, pid_t parent)
{
    char *args[MAX_ARGS + 1] = {(char *) (uintptr_t) path};
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* Ctrl-C is for castbench, which may have to wait for this. */
    if (getppid() == parent && null >= 0) {
        for (unsigned i = 0; argv[i] && i + 1 < MAX_ARGS; i++) {
            args[i + 1] = (char *) (uintptr_t) argv[i]; /* execv() only reads. */
        }
        dup2(null, STDIN_FILENO);
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        execv(path, args);
        dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(errno));
    }
    _exit(127);
}

bool
castctl_start(struct castctl *c, const char *const argv[], char *error, size_t size)
{
    char path[PATH_MAX];
    pid_t parent = getpid();
    int fds[2], status = program_beside("castctl", path, sizeof path);

    *c = (struct castctl){.fd = -1};
    status = status ? status : pipe2(fds, O_CLOEXEC) ? errno : 0;
    if (status) {
        return refuse(error, size, "cannot start castctl: %s", strerror(status));
    }
    c->pid = fork();
    if (!c->pid) {
        exec_castctl(path, argv, fds[1], parent);
    }
    status = errno;
    close(fds[1]);
    if (c->pid < 0) {
        c->pid = 0;
        close(fds[0]);
        return refuse(error, size, "cannot start castctl: %s", strerror(status));
    }
    c->fd = fds[0];
    return true;
}

/* Takes a line out of the buffer; what is full without one counts as a line. */
static bool
take_line(struct castctl *c, char *line, size_t size)
{
    char *end = memchr(c->buf, '\n', c->len);
    bool is_full = c->len == sizeof c->buf;

    if (!end && !is_full) {
        return false;
    }
    size_t n = end ? (size_t) (end - c->buf) : c->len, taken = end ? n + 1 : n;
    snprintf(line, size, "%.*s", (int) n, c->buf);
    c->len -= taken;
    memmove(c->buf, c->buf + taken, c->len);
    return true;
}

bool
castctl_line(struct castctl *c, int wait_ms, char *line, size_t size)
{
    while (!take_line(c, line, size)) {
        struct pollfd fd = {.fd = c->fd, .events = POLLIN};

        if (c->fd < 0 || poll(&fd, 1, wait_ms) <= 0) {
            return false;
        }
        ssize_t n = read(c->fd, c->buf + c->len, sizeof c->buf - c->len);
        if (n <= 0) {
            return false;
        }
        c->len += (size_t) n;
    }
    return true;
}

bool
castctl_ended(struct castctl *c, int *status)
{
    if (!c->pid || waitpid(c->pid, status, WNOHANG) != c->pid) {
        return false;
    }
    c->pid = 0;
    return true;
}

int
castctl_run(const char *const argv[], char *error, size_t size)
{
    static const char prefix[] = "castctl: ";
    char line[512], last[512] = "";
    struct castctl c;
    int status = 0;

    if (!castctl_start(&c, argv, error, size)) {
        return -1;
    }
    do {
        while (castctl_line(&c, WAIT_LINE_MS, line, sizeof line)) {
            memcpy(last, line, sizeof last);
        }
    } while (!castctl_ended(&c, &status) && !usleep(WAIT_END_US));
    castctl_stop(&c);
    size_t ofs = strncmp(last, prefix, sizeof prefix - 1) ? 0 : sizeof prefix - 1;
    if (status) {
        refuse(error, size, "%s", last[0] ? last + ofs : "castctl has failed, and says nothing");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void
castctl_stop(struct castctl *c)
{
    if (c->pid) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    if (c->fd >= 0) {
        close(c->fd);
    }
    *c = (struct castctl){.fd = -1};
}
