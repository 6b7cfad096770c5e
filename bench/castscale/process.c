/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that castscale starts (see process.h).
 */
#include <config.h>

#include "bench/castscale/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/castbench/proc.h"
#include "latch.h"
#include "timeval.h"
#include "util.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static struct latch interrupted;

static void
on_signal(int signo OVS_UNUSED)
{
    latch_set(&interrupted);
}

void
process_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    latch_init(&interrupted);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        sigaction(signals[i], &action, NULL);
    }
}

bool
process_interrupted(void)
{
    return latch_is_set(&interrupted);
}

void
process_interrupted_wait(void)
{
    latch_wait(&interrupted);
}

/* In the child: output goes to the file, and it ends with its parent. */
static void
settle(pid_t parent, int output)
{
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setpgid(0, 0); /* an interrupt from the terminal is castscale's. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0
        || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) {
        _exit(126);
    }
}

static void __attribute__((noreturn)) become(const char *const argv[])
{
    char **copy = xcalloc(64, sizeof *copy);

    for (size_t i = 0; argv[i]; i++) {
        ovs_assert(i < 63);
        copy[i] = xstrdup(argv[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        signal(signals[i], SIG_DFL);
    }
    close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    execvp(copy[0], copy);
    dprintf(STDERR_FILENO, "%s: %s\n", copy[0], strerror(errno));
    _exit(127);
}

/* Forks; 0 in the child. */
static char *
fork_to(struct process *p, const char *name, const char *folder)
{
    pid_t parent = getpid();

    *p = (struct process){.name = name, .output = xasprintf("%s/%s.log", folder, name)};
    int output = open(p->output, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (output < 0) {
        return xasprintf("%s: %s", p->output, ovs_strerror(errno));
    }
    p->pid = fork();
    if (!p->pid) {
        settle(parent, output);
    }
    int error = errno;
    close(output);
    return p->pid < 0 ? xasprintf("%s: fork: %s", name, ovs_strerror(error)) : NULL;
}

char *
process_start(struct process *p, const char *name, const char *folder, const char *const argv[])
{
    char *error = fork_to(p, name, folder);

    if (!error && !p->pid) {
        become(argv);
    }
    return error;
}

char *
process_fork(struct process *p, const char *name, const char *folder, void (*run)(const void *aux),
             const void *aux)
{
    char *error = fork_to(p, name, folder);

    if (!error && !p->pid) {
        close_range(STDERR_FILENO + 1, UINT_MAX, 0);
        process_catch_signals(); /* with a latch of its own. */
        run(aux);
        _exit(0);
    }
    return error;
}

/* What it has said last, of at most a line. */
static char *
last_words(const struct process *p)
{
    FILE *f = fopen(p->output, "r");
    char line[256], last[256] = "";

    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0]) {
            ovs_strlcpy(last, line, sizeof last);
        }
    }
    if (f) {
        fclose(f);
    }
    return xstrdup(last);
}

static char *
ended(const struct process *p, int status)
{
    char *words = last_words(p);
    char *sentence = xasprintf(
        "%s has ended (%s %d)%s%s", p->name, WIFSIGNALED(status) ? "signal" : "status",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), words[0] ? ": " : "", words);

    free(words);
    return sentence;
}

char *
process_run(const char *name, const char *folder, const char *const argv[])
{
    struct process p;
    char *error = process_start(&p, name, folder, argv);
    int status;

    if (!error && waitpid(p.pid, &status, 0) == p.pid && status) {
        error = ended(&p, status);
    }
    p.pid = 0;
    process_uninit(&p);
    return error;
}

char *
process_check(struct process *p)
{
    int status;

    if (!p->pid || waitpid(p->pid, &status, WNOHANG) != p->pid) {
        return NULL;
    }
    p->pid = 0;
    return ended(p, status);
}

bool
process_stop(struct process *p, int patience_msec)
{
    long long deadline = time_msec() + patience_msec;
    bool in_time = true;

    if (!p->pid) {
        return true;
    }
    kill(p->pid, SIGTERM);
    while (!waitpid(p->pid, NULL, WNOHANG)) {
        if (in_time && time_msec() >= deadline) {
            in_time = false;
            kill(p->pid, SIGKILL);
        }
        usleep(500);
    }
    p->pid = 0;
    return in_time;
}

void
process_uninit(struct process *p)
{
    free(p->output);
    p->output = NULL;
}

/* The value of a line "NAME: value kB" of /proc/PID/status. */
static bool
take_kib(const char *line, const char *name, uint64_t *kib)
{
    size_t n = strlen(name);

    if (strncmp(line, name, n) || line[n] != ':') {
        return false;
    }
    *kib = strtoull(line + n + 1, NULL, 10);
    return true;
}

static void
read_memory(pid_t pid, struct process_usage *u)
{
    char path[64], line[256];

    snprintf(path, sizeof path, "/proc/%ld/status", (long) pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (!take_kib(line, "VmRSS", &u->rss_kib)) {
            take_kib(line, "VmHWM", &u->peak_kib);
        }
    }
    if (f) {
        fclose(f);
    }
}

static void
read_cpu(pid_t pid, struct process_usage *u)
{
    char path[64], line[1024];
    struct proc_process counters;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long) pid);
    FILE *f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f) && proc_parse_process(line, &counters)) {
        u->cpu_msec = counters.ticks * 1000 / (uint64_t) sysconf(_SC_CLK_TCK);
    }
    if (f) {
        fclose(f);
    }
}

struct process_usage
process_usage(const struct process *p)
{
    struct process_usage u = {0, 0, 0};

    if (p->pid) {
        read_memory(p->pid, &u);
        read_cpu(p->pid, &u);
    }
    return u;
}
