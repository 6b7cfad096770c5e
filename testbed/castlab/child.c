/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of a lab.
 */
#include <config.h>

#include "testbed/castlab/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util.h"

/* How long a process may take to end after SIGTERM, and after SIGKILL. */
#define TERM_MSEC 5000
#define KILL_MSEC 5000

static volatile sig_atomic_t interrupted;

static void
on_signal(int signo)
{
    interrupted = signo;
}

void
child_catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        sigaction(signals[i], &action, NULL);
    }
    /* A server of the registry that goes, or who reads what castlab says, is not to end it halfway. */
    signal(SIGPIPE, SIG_IGN);
}

bool
child_interrupted(void)
{
    return interrupted != 0;
}

/* In the child: never returns. */
static void __attribute__((noreturn)) become(char *const argv[], int go_fd, int output_fd)
{
    char go;
    setsid();
    if (read(go_fd, &go, 1) != 1) {
        _exit(0); /* castlab has abandoned it, or is gone. */
    }
    int null_fd = open("/dev/null", O_RDONLY);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(output_fd, STDOUT_FILENO) < 0
        || dup2(output_fd, STDERR_FILENO) < 0) {
        _exit(126);
    }
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        signal(signals[i], SIG_DFL);
    }
    /* Not every library marks what it opens. */
    close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    execv(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

char *
child_prepare(struct child *p, char *const argv[], const char *output)
{
    int pipe_fds[2];
    int output_fd = open(output, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (output_fd < 0) {
        return xasprintf("%s: %s", output, ovs_strerror(errno));
    }
    if (pipe2(pipe_fds, O_CLOEXEC)) {
        char *error = xasprintf("pipe: %s", ovs_strerror(errno));
        close(output_fd);
        return error;
    }
    pid_t pid = fork();
    if (!pid) {
        close(pipe_fds[1]);
        become(argv, pipe_fds[0], output_fd);
    }
    int fork_error = errno;
    close(pipe_fds[0]);
    close(output_fd);
    *p = (struct child){.id.pid = pid, .go_fd = pipe_fds[1]};
    if (pid < 0) {
        close(p->go_fd);
        return xasprintf("fork: %s", ovs_strerror(fork_error));
    }
    if (!process_identify(pid, &p->id)) {
        child_abandon(p);
        return xasprintf("%s: cannot read /proc/%ld/stat", argv[0], (long) pid);
    }
    return NULL;
}

char *
child_release(struct child *p)
{
    ssize_t n = write(p->go_fd, "g", 1);
    int error = n < 0 ? errno : 0;
    close(p->go_fd);
    return error ? xasprintf("process %ld: %s", (long) p->id.pid, ovs_strerror(error)) : NULL;
}

void
child_abandon(struct child *p)
{
    close(p->go_fd);
    waitpid(p->id.pid, NULL, 0);
}

/* True if the process behind 'fd' ends within so many milliseconds. */
static bool
ends_within(int fd, int msec)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    int n;
    do {
        n = poll(&pfd, 1, msec);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

char *
child_stop(struct process_id id, bool at_once)
{
    char *error = NULL;
    int fd = pidfd_open(id.pid, 0);
    if (fd < 0) {
        return errno == ESRCH ? NULL
                              : xasprintf("process %ld: %s", (long) id.pid, ovs_strerror(errno));
    }
    /* The descriptor holds the process, so from now on its identity cannot change. */
    if (process_alive(id)) {
        if (!at_once) {
            pidfd_send_signal(fd, SIGTERM, NULL, 0);
        }
        if (at_once || !ends_within(fd, TERM_MSEC)) {
            pidfd_send_signal(fd, SIGKILL, NULL, 0);
            if (!ends_within(fd, KILL_MSEC)) {
                error = xasprintf("process %ld does not end", (long) id.pid);
            }
        }
    }
    close(fd);
    /* It is a child of ours if this castlab started it. */
    waitpid(id.pid, NULL, WNOHANG);
    return error;
}

/* What the program has written, on one line. */
static char *
read_output(int fd)
{
    char text[2048];
    size_t len = 0;
    ssize_t n;
    while (len < sizeof text - 1 && (n = read(fd, text + len, sizeof text - 1 - len)) != 0) {
        if (n > 0) {
            len += (size_t) n;
        } else if (errno != EINTR) {
            break;
        }
    }
    while (len && text[len - 1] == '\n') {
        len--;
    }
    text[len] = '\0';
    return xstrdup(text);
}

char *
child_run(char *const argv[])
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC)) {
        return xasprintf("pipe: %s", ovs_strerror(errno));
    }
    pid_t pid = fork();
    if (!pid) {
        signal(SIGPIPE, SIG_DFL);
        if (dup2(fds[1], STDOUT_FILENO) >= 0 && dup2(fds[1], STDERR_FILENO) >= 0) {
            close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
            execvp(argv[0], argv);
            dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
        }
        _exit(127);
    }
    int fork_error = errno;
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return xasprintf("fork: %s", ovs_strerror(fork_error));
    }
    char *text = read_output(fds[0]);
    close(fds[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    char *error = NULL;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        error = xasprintf("%s failed: %s", argv[0], text);
    }
    free(text);
    return error;
}
