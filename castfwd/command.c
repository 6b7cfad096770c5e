/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program to its end.
 *
 * Its input and output are files in memory, so that neither side can wait for
 * the other.
 */
#include <config.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static void OVS_NO_RETURN
run_child(int netns_fd, const char *const argv[], const int fds[3])
{
    const char *path = getenv("PATH");
    char *folders = xasprintf("%s:/usr/sbin:/usr/bin:/sbin:/bin", path ? path : "");
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setenv("PATH", folders, 1);
    if ((netns_fd < 0 || !setns(netns_fd, CLONE_NEWNET)) && dup2(fds[0], 0) == 0
        && dup2(fds[1], 1) == 1 && dup2(fds[2], 2) == 2) {
        execvp(argv[0], CONST_CAST(char *const *, argv));
    }
    dprintf(fds[2], "%s", ovs_strerror(errno));
    _exit(127);
}

/* "ovs-ofctl: " and what it has said; a status without words is said too. */
static char *
complaint(const char *program, int status, const char *output, const char *errors)
{
    const char *text = errors[0] ? errors : output;
    int len = (int) strcspn(text, "\n");
    size_t n = strlen(program);

    if (!len) {
        return xasprintf("%s: ended with status 0x%x", program, (unsigned int) status);
    }
    /* Some say their name themselves. */
    return !strncmp(text, program, n) && text[n] == ':' ? xasprintf("%.*s", len, text)
                                                        : xasprintf("%s: %.*s", program, len, text);
}

char *
command_run(int netns_fd, const char *const argv[], const char *input, char **outputp)
{
    int fds[] = {memory_file(input ? input : ""), memory_file(""), memory_file("")};
    char *error = NULL;
    int status = 0;
    pid_t pid = fork();

    if (!pid) {
        run_child(netns_fd, argv, fds);
    }
    if (pid < 0) {
        error = xasprintf("%s: fork: %s", argv[0], ovs_strerror(errno));
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    char *output = read_file(fds[1]);
    char *errors = read_file(fds[2]);
    if (status) {
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
