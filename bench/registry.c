/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry through castctl (see registry.h).
 *
 * castctl's standard output is "key value" lines; indented lines belong to
 * something inside (the source, a member) and are not looked at.  castctl ends
 * by itself within its --timeout, so nothing here needs a clock.
 */
#include "bench/registry.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NO_CASTCTL 127

struct castctl_run {
    int status;
    char output[16384]; /* standard output, then a NUL. */
};

static void
run_child(const char *const argv[], int out, int err)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execvp(argv[0], (char *const *) (uintptr_t) argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(EXIT_NO_CASTCTL);
}

/* Reads 'fd' into 'text', as far as it fits, and closes it. */
static void
read_all(int fd, char *text, size_t size)
{
    ssize_t got;
    size_t n = 0;

    while (n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0) {
        n += (size_t) got;
    }
    text[n] = '\0';
    close(fd);
}

/* Keeps the last line of 'text', without its end. */
static void
last_line(char *text)
{
    size_t n = strlen(text);

    while (n && text[n - 1] == '\n') {
        text[--n] = '\0';
    }
    char *start = strrchr(text, '\n');
    if (start) {
        memmove(text, start + 1, strlen(start));
    }
}

/* Runs castctl with 'argv'.  Its standard error, a few lines at most, stays in
 * the pipe until standard output has ended. */
static int
castctl(struct castctl_run *run, const char *const argv[], char *error, size_t size)
{
    int out[2], err[2], status;

    run->output[0] = '\0';
    if (pipe2(out, O_CLOEXEC)) {
        snprintf(error, size, "pipe: %s", strerror(errno));
        return EXIT_NO_CASTCTL;
    }
    if (pipe2(err, O_CLOEXEC)) {
        snprintf(error, size, "pipe: %s", strerror(errno));
        close(out[0]);
        close(out[1]);
        return EXIT_NO_CASTCTL;
    }
    pid_t pid = fork();
    if (!pid) {
        run_child(argv, out[1], err[1]);
    }
    close(out[1]);
    close(err[1]);
    read_all(out[0], run->output, sizeof run->output);
    read_all(err[0], error, size);
    last_line(error);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        snprintf(error, size, "castctl did not run to its end");
        return EXIT_NO_CASTCTL;
    }
    if (WEXITSTATUS(status) && !error[0]) {
        snprintf(error, size, "castctl %s %s: exit status %d", argv[1], argv[2],
                 WEXITSTATUS(status));
    }
    return WEXITSTATUS(status);
}

#define CASTCTL(RUN, ERROR, SIZE, ...) \
    castctl(RUN, (const char *const[]){"castctl", __VA_ARGS__, NULL}, ERROR, SIZE)

/* Copies the value of 'key' to 'value'.  Returns false if there is none. */
static bool
field(const struct castctl_run *run, const char *key, char *value, size_t size)
{
    size_t key_len = strlen(key);

    for (const char *line = run->output; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, key_len) && line[key_len] == ' ') {
            const char *v = line + key_len + strspn(line + key_len, " ");
            snprintf(value, size, "%.*s", (int) strcspn(v, "\n"), v);
            return true;
        }
    }
    return false;
}

static bool
number(const struct castctl_run *run, const char *key, uint64_t max, uint64_t *v)
{
    char value[64], *end;

    if (!field(run, key, value, sizeof value)) {
        return false;
    }
    errno = 0;
    *v = strtoull(value, &end, 0);
    return !errno && end != value && !*end && *v <= max;
}

static bool
number32(const struct castctl_run *run, const char *key, uint32_t *v)
{
    uint64_t wide;

    if (!number(run, key, UINT32_MAX, &wide)) {
        return false;
    }
    *v = (uint32_t) wide;
    return true;
}

static bool
address(const struct castctl_run *run, const char *key, struct in6_addr *a)
{
    char value[INET6_ADDRSTRLEN];

    return field(run, key, value, sizeof value) && inet_pton(AF_INET6, value, a) == 1;
}

int
registry_host_address(const char *host, struct in6_addr *a, char *error, size_t size)
{
    struct castctl_run run;

    int status = CASTCTL(&run, error, size, "host", "show", host);
    if (!status && !address(&run, "address", a)) {
        snprintf(error, size, "castctl host show %s: no address", host);
        return EXIT_NO_CASTCTL;
    }
    return status;
}

int
registry_group_show(const char *group, struct group_info *info, char *error, size_t size)
{
    struct castctl_run run;
    uint64_t timeout;

    int status = CASTCTL(&run, error, size, "group", "show", group);
    if (status) {
        return status;
    }
    if (!number32(&run, "epoch", &info->epoch) || !address(&run, "proxy", &info->proxy)
        || !number32(&run, "designated_qpn", &info->designated_qpn)
        || !number32(&run, "start_psn", &info->start_psn)
        || !number32(&run, "designated_rkey", &info->designated_rkey)
        || !number32(&run, "mtu", &info->mtu) || !number(&run, "qp_timeout", 31, &timeout)
        || !number(&run, "region_len", UINT64_MAX, &info->region_len)) {
        snprintf(error, size, "castctl group show %s: a value is missing or malformed", group);
        return EXIT_NO_CASTCTL;
    }
    info->qp_timeout = (uint8_t) timeout;
    return 0;
}

int
registry_source_set(const char *group, const char *host, uint32_t qpn, char *error, size_t size)
{
    struct castctl_run run;
    char text[16];

    snprintf(text, sizeof text, "%" PRIu32, qpn);
    return CASTCTL(&run, error, size, "source", "set", group, "--host", host, "--qpn", text);
}

int
registry_member_add(const char *group, const struct member_info *member, uint32_t epoch,
                    char *error, size_t size)
{
    struct castctl_run run;
    char qpn[16], rkey[16], va[24], len[24], epoch_text[16];

    snprintf(qpn, sizeof qpn, "%" PRIu32, member->qpn);
    snprintf(rkey, sizeof rkey, "%" PRIu32, member->rkey);
    snprintf(va, sizeof va, "0x%" PRIx64, member->va);
    snprintf(len, sizeof len, "%" PRIu64, member->len);
    snprintf(epoch_text, sizeof epoch_text, "%" PRIu32, epoch);
    return CASTCTL(&run, error, size, "member", "add", group, member->host, "--qpn", qpn, "--rkey",
                   rkey, "--va", va, "--len", len, "--epoch", epoch_text, "--may-exist");
}

int
registry_group_wait(const char *group, unsigned members, uint32_t epoch, unsigned timeout,
                    char *error, size_t size)
{
    struct castctl_run run;
    char members_text[16], epoch_text[16], timeout_text[16];

    snprintf(members_text, sizeof members_text, "%u", members);
    snprintf(epoch_text, sizeof epoch_text, "%" PRIu32, epoch);
    snprintf(timeout_text, sizeof timeout_text, "%u", timeout);
    return CASTCTL(&run, error, size, "--timeout", timeout_text, "group", "wait", group,
                   "--members", members_text, "--epoch", epoch_text);
}
