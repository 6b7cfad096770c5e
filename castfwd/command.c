/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program to its end.
 *
 * Its input and output are files in memory, so that neither side can wait for
 * the other.  It inherits the namespace of the thread.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "castfwd/castfwd.h"
#include "util.h"

static int
memory_file(const char *content)
{
    int fd = memfd_create("castfwd", MFD_CLOEXEC);

    if (fd < 0 || write(fd, content, strlen(content)) != (ssize_t) strlen(content)
        || lseek(fd, 0, SEEK_SET)) {
        ovs_fatal(errno, "memfd");
    }
    return fd;
}

static char *
read_file(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = xzalloc((size_t) MAX(size, 0) + 1);

    if (size > 0 && pread(fd, text, (size_t) size, 0) != size) {
        text[0] = '\0';
    }
    return text;
}

/* Starts a program, with signals as a program expects them, not as a daemon has them.  0 or an
 * errno. */
static int
start(pid_t *pid, const char *const argv[], const int fds[3])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, ignored;
    int error;

    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++) {
        posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    }
    error =
        posix_spawnp(pid, argv[0], &actions, &attributes, CONST_CAST(char *const *, argv), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* Waits for the end of a program.  Kills it if the patience ends before. */
static char *
await_end(const struct patience *patience, const char *program, pid_t pid, int *status)
{
    int pidfd = pidfd_open(pid, 0);
    struct pollfd fds[] = {{.fd = pidfd, .events = POLLIN},
                           {.fd = patience->stop_fd, .events = POLLIN}};
    char *error = NULL;
    int n;

    do {
        n = pidfd < 0 ? -1 : poll(fds, ARRAY_SIZE(fds), patience->msec);
    } while (pidfd >= 0 && n < 0 && errno == EINTR);
    if (n < 0) {
        error = xasprintf("%s: waiting for its end: %s", program, ovs_strerror(errno));
    } else if (!n) {
        error = xasprintf("%s: has not ended after %d ms", program, patience->msec);
    } else if (!fds[0].revents) {
        error = xasprintf("%s: interrupted", program);
    }
    if (error) {
        kill(pid, SIGKILL);
    }
    while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
    return error;
}

/* What went wrong: "ovs-ofctl: " and what the program said.  If it said nothing, its status. */
static char *
complaint(const char *program, int status, const char *output, const char *errors)
{
    const char *text = errors[0] ? errors : output;
    int len = (int) strcspn(text, "\n");
    size_t n = strlen(program);

    if (!len) {
        return xasprintf("%s: ended with status 0x%x", program, (unsigned int) status);
    }
    /* Some programs say their name themselves. */
    return !strncmp(text, program, n) && text[n] == ':' ? xasprintf("%.*s", len, text)
                                                        : xasprintf("%s: %.*s", program, len, text);
}

char *
command_run(const struct patience *patience, const char *const argv[], const char *input,
            char **outputp)
{
    int fds[] = {memory_file(input ? input : ""), memory_file(""), memory_file("")};
    char *error = NULL;
    int status = 0;
    pid_t pid;
    int errnum = start(&pid, argv, fds);

    if (errnum) {
        error = xasprintf("%s: %s", argv[0], ovs_strerror(errnum));
    } else {
        error = await_end(patience, argv[0], pid, &status);
    }
    char *output = read_file(fds[1]);
    char *errors = read_file(fds[2]);
    if (!error && status) {
        error = complaint(argv[0], status, output, errors);
    }
    if (outputp) {
        *outputp = output;
    } else {
        free(output);
    }
    free(errors);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        close(fds[i]);
    }
    return error;
}
