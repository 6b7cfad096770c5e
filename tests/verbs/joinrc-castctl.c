/* SPDX-License-Identifier: Apache-2.0
 *
 * What joinrc asks castctl for.
 */
#include "tests/verbs/joinrc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int
castctl(char *output, size_t size, const char *const argv[])
{
    size_t n = 0;
    ssize_t got;
    int fds[2], status;

    if (pipe2(fds, O_CLOEXEC)) {
        die(EXIT_USAGE, "pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid < 0) {
        die(EXIT_USAGE, "fork: %s", strerror(errno));
    }
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(fds[1], STDOUT_FILENO);
        execvp("castctl", (char *const *) (uintptr_t) argv);
        fprintf(stderr, "castctl: %s\n", strerror(errno));
        _exit(127);
    }
    close(fds[1]);
    while ((got = read(fds[0], output + n, size - 1 - n)) > 0) {
        n += (size_t) got;
    }
    output[n] = '\0';
    close(fds[0]);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

/* The value of 'key' in "key value" lines. */
static const char *
field(const char *text, const char *key, char *value, size_t size)
{
    size_t key_len = strlen(key);

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, key_len) && line[key_len] == ' ') {
            const char *v = line + key_len + strspn(line + key_len, " ");
            snprintf(value, size, "%.*s", (int) strcspn(v, "\n"), v);
            return value;
        }
    }
    die(EXIT_REFUSED, "castctl group show has no line '%s'", key);
}

static uint64_t
number(const char *text, const char *key)
{
    char value[64];

    return strtoull(field(text, key, value, sizeof value), NULL, 0);
}

struct group
group_show(const char *name)
{
    char text[16384], value[64];

    if (CASTCTL(text, "group", "show", name)) {
        die(EXIT_REFUSED, "castctl group show failed");
    }
    struct group g = {
        .epoch = (uint32_t) number(text, "epoch"),
        .dest_qpn = (uint32_t) number(text, "designated_qpn"),
        .start_psn = (uint32_t) number(text, "start_psn"),
        .rkey = (uint32_t) number(text, "designated_rkey"),
        .mtu = (uint32_t) number(text, "mtu"),
        .timeout = (uint32_t) number(text, "qp_timeout"),
        .region_len = number(text, "region_len"),
    };
    if (inet_pton(AF_INET6, field(text, "proxy", value, sizeof value), &g.proxy) != 1) {
        die(EXIT_REFUSED, "proxy '%s' is not an IPv6 address", value);
    }
    return g;
}
