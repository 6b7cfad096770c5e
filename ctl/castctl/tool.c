/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools of Open vSwitch: see tool.h.
 *
 * Who interrupts castctl interrupts the tool that runs; castctl ends when that has, and leaves
 * nothing half-made.  Whatever else castctl waits for then, it ends as well: tool_is_interrupted().
 */
#include <config.h>

#include "ctl/castctl/tool.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "openvswitch/poll-loop.h"
#include "process.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define NOT_INSTALLED 127

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static char *scratch;                 /* the folder; NULL: none is made yet. */
static volatile sig_atomic_t running; /* the tool's process, or 0. */
static volatile sig_atomic_t interrupted;
static int wakeup = -1; /* eventfd: readable once somebody interrupts. */

static void
interrupt(int signo OVS_UNUSED)
{
    int error = errno;
    uint64_t one = 1;

    interrupted = 1;
    if (running) {
        kill(running, SIGTERM);
    }
    ignore(write(wakeup, &one, sizeof one));
    errno = error;
}

/* From now on, until castctl ends: somebody has to remove the folder. */
static void
catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART}, old;

    wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN) { /* nohup. */
            sigaction(signals[i], &action, NULL);
        }
    }
}

bool
tool_is_interrupted(void)
{
    return interrupted;
}

void
tool_wait_interrupt(void)
{
    if (wakeup >= 0) {
        poll_fd_wait(wakeup, POLLIN);
    }
}

/* Holds the signals back, or lets them in, those that have come meanwhile, too. */
static void
hold_signals(bool hold)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        sigaddset(&set, signals[i]);
    }
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* In the child, with signals held back: never returns.  The tool ends with castctl, and with its
 * deadline, if it has none of its own. */
static void OVS_NO_RETURN
become(const struct svec *argv, pid_t parent, int in, int out, int err, unsigned int seconds)
{
    struct sigaction old;

    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN) {
            signal(signals[i], SIG_DFL);
        }
    }
    hold_signals(false);
    int null = open("/dev/null", O_RDWR);
    if (!prctl(PR_SET_PDEATHSIG, SIGTERM) && getppid() == parent && null >= 0
        && dup2(in < 0 ? null : in, STDIN_FILENO) >= 0
        && dup2(out < 0 ? null : out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0) {
        alarm(seconds);
        execvp(argv->names[0], argv->names);
    }
    _exit(errno == ENOENT ? NOT_INSTALLED : 126);
}

/* All that a file has, as text; malloc'd. */
static char *
read_all(int fd)
{
    struct stat st;
    size_t size = fstat(fd, &st) ? 0 : (size_t) st.st_size;
    char *text = xmalloc(size + 1);
    ssize_t n = pread(fd, text, size, 0);

    n = MAX(n, 0);
    while (n && isspace((unsigned char) text[n - 1])) {
        n--;
    }
    text[n] = '\0';
    return text;
}

static int
memory_file(void)
{
    int fd = memfd_create("castctl", MFD_CLOEXEC);

    if (fd < 0) {
        ctl_fail(CTL_UNAVAILABLE, "memfd: %s", ovs_strerror(errno));
    }
    return fd;
}

/* The last line that the tool said, without its name; malloc'd. */
static char *
last_words(const char *tool, int fd)
{
    char *text = read_all(fd);
    const char *line = strrchr(text, '\n');
    size_t len = strlen(tool);

    line = line ? line + 1 : text;
    if (!strncmp(line, tool, len) && !strncmp(line + len, ": ", 2)) {
        line += len + 2;
    }
    char *words = line[0] ? xstrdup(line) : NULL;
    free(text);
    return words;
}

static enum tool_end
judge(const char *tool, int status, int err, char **whyp)
{
    if (WIFEXITED(status) && !WEXITSTATUS(status)) {
        return TOOL_DONE;
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        *whyp = xasprintf("%s did not end in time", tool);
        return TOOL_TOO_LATE;
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_INSTALLED) {
        *whyp = xasprintf("%s is not installed (Debian package openvswitch-common)", tool);
    } else {
        char *words = last_words(tool, err);
        char *what = process_status_msg(status);

        *whyp = words ? words : xasprintf("%s: %s", tool, what);
        free(what);
    }
    return TOOL_FAILED;
}

/* Waits for the tool's end.  A signal must not reach another process that has got its number. */
static int
reap(pid_t pid)
{
    siginfo_t info;
    int status = 0;

    while (waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT) && errno == EINTR) {
    }
    hold_signals(true);
    running = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    hold_signals(false);
    return status;
}

enum tool_end
tool_run(const struct ctl *ctl, struct svec *argv, int out, char **whyp)
{
    int err = memory_file();
    pid_t parent = getpid();
    unsigned int seconds = (unsigned int) MAX((ctl->deadline - time_msec() + 999) / 1000, 1);

    ovs_assert(scratch); /* signals are caught. */
    svec_terminate(argv);
    hold_signals(true); /* until somebody can end the tool for them. */
    pid_t pid = fork();
    if (!pid) {
        become(argv, parent, -1, out, err, seconds);
    }
    if (pid < 0) {
        ctl_fail(CTL_UNAVAILABLE, "fork: %s", ovs_strerror(errno));
    }
    running = pid;
    if (interrupted) {
        kill(pid, SIGTERM);
    }
    hold_signals(false);
    int status = reap(pid);
    if (interrupted) {
        ctl_fail(CTL_UNAVAILABLE, "%s: interrupted", ctl->command->name);
    }
    enum tool_end end = judge(argv->names[0], status, err, whyp);
    close(err);
    svec_destroy(argv);
    return end;
}

enum tool_end
tool_read(const struct ctl *ctl, struct svec *argv, char **outputp, char **whyp)
{
    int out = memory_file();
    enum tool_end end = tool_run(ctl, argv, out, whyp);

    *outputp = end == TOOL_DONE ? read_all(out) : NULL;
    close(out);
    return end;
}

struct svec
tool_ovsdb_tool(const char *command, ...)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;
    va_list args;

    svec_add(&argv, "ovsdb-tool");
    svec_add(&argv, "--"); /* names of files may begin with "-". */
    va_start(args, command);
    for (const char *arg = command; arg; arg = va_arg(args, const char *)) {
        svec_add(&argv, arg);
    }
    va_end(args);
    return argv;
}

struct svec
tool_ovsdb_client(const struct ctl *ctl, const char *command, const char *remote)
{
    struct svec argv = SVEC_EMPTY_INITIALIZER;

    svec_add(&argv, "ovsdb-client");
    svec_append(&argv, &ctl->key_options);
    svec_add(&argv, "--verbose=console:off"); /* its errors have lines of their own. */
    svec_add(&argv, command);
    svec_add(&argv, remote);
    return argv;
}

/*
 * The folder.
 */

static void
remove_scratch(void)
{
    DIR *dir = opendir(scratch);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        unlinkat(dirfd(dir), entry->d_name, 0); /* not so "." and "..". */
    }
    if (dir) {
        closedir(dir);
    }
    rmdir(scratch);
}

const char *
tool_scratch(const char *parent)
{
    char *folder = xasprintf("%s/.castctl.XXXXXX", parent);

    hold_signals(true); /* until somebody removes the folder. */
    catch_signals();
    if (!mkdtemp(folder)) {
        free(folder);
        folder = NULL;
    }
    scratch = folder;
    if (scratch) {
        atexit(remove_scratch);
    }
    hold_signals(false);
    return scratch;
}
