/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that take turns with their parent (see worker.h).
 *
 * On the socket the parent sends a worker one byte per step.  The worker sends
 * one report per step: an empty text for success, otherwise what went wrong.
 */
#include "bench/castbench/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/castbench/clock.h"
#include "bench/castbench/interrupt.h"
#include "bench/castbench/refuse.h"

#define REPORT_SIZE 512
#define MAX_TICK_MS 250

static void __attribute__((noreturn))
worker_serve(int fd, unsigned n_steps, worker_step *step_cb, void *aux)
{
    for (unsigned step = 0; step < n_steps; step++) {
        char go, report[REPORT_SIZE] = "";

        if (recv(fd, &go, 1, 0) != 1) {
            _exit(EXIT_FAILURE);
        }
        bool ok = step_cb(aux, step, report, sizeof report);
        if (send(fd, report, strlen(report) + 1, MSG_NOSIGNAL) < 0 || !ok) {
            _exit(EXIT_FAILURE);
        }
    }
    _exit(EXIT_SUCCESS);
}

int
worker_start(struct worker *w, unsigned n_steps, worker_step *step_cb, void *aux)
{
    pid_t parent = getpid();
    int fds[2];

    w->busy = false;
    w->steps_left = n_steps;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
        return errno;
    }
    w->pid = fork();
    if (w->pid < 0) {
        int error = errno;
        close(fds[0]);
        close(fds[1]);
        return error;
    }
    if (!w->pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        close(fds[0]);
        worker_serve(fds[1], n_steps, step_cb, aux);
    }
    close(fds[1]);
    w->fd = fds[0];
    return 0;
}

void
worker_go(struct worker *w)
{
    /* A failure means that the worker died: workers_await() will say so. */
    w->busy = send(w->fd, "", 1, MSG_NOSIGNAL) == 1 || errno == EPIPE;
}

static bool
any_busy(const struct worker *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (w[i].busy) {
            return true;
        }
    }
    return false;
}

/* Says how a worker whose socket has closed came to its end. */
static void
describe_death(struct worker *w, char *error, size_t size)
{
    int status;

    if (waitpid(w->pid, &status, 0) != w->pid) {
        snprintf(error, size, "%s died", w->name);
    } else if (WIFSIGNALED(status)) {
        snprintf(error, size, "%s (process %d) died: %s", w->name, (int) w->pid,
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(error, size, "%s (process %d) ended with status %d", w->name, (int) w->pid,
                 WEXITSTATUS(status));
    }
    w->pid = 0;
}

/* Takes a report, or the news of a death. */
static bool
worker_read(struct worker *w, char *error, size_t size)
{
    char report[REPORT_SIZE];
    ssize_t n = recv(w->fd, report, sizeof report - 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    if (n <= 0) {
        describe_death(w, error, size);
        return false;
    }
    report[n] = '\0';
    w->busy = false;
    w->steps_left--;
    if (report[0]) {
        return refuse(error, size, "%s: %s", w->name, report);
    }
    return true;
}

static uint64_t
seconds_now(void)
{
    return now_ns() / NS_PER_SEC;
}

static void
describe_timeout(const struct worker *w, size_t n, unsigned timeout, char *error, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (w[i].busy) {
            snprintf(error, size, "%s: nothing happened for %u s", w[i].name, timeout);
            return;
        }
    }
}

/* Names the workers that someone has stopped: the others only wait for them. */
static void
add_stopped(const struct worker *w, size_t n, char *error, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        siginfo_t info = {0};
        size_t len = strlen(error);

        if (w[i].pid > 0 && !waitid(P_PID, (id_t) w[i].pid, &info, WSTOPPED | WNOHANG | WNOWAIT)
            && info.si_pid) {
            snprintf(error + len, size - len, "; %s (process %d) is stopped", w[i].name,
                     (int) w[i].pid);
        }
    }
}

bool
workers_await(struct worker *w, size_t n, unsigned timeout, unsigned tick_ms,
              unsigned long (*progress)(void *), void *aux, char *error, size_t size)
{
    int tick = tick_ms < MAX_TICK_MS ? (int) tick_ms : MAX_TICK_MS;
    struct pollfd *pfds = calloc(n, sizeof *pfds);
    unsigned long last = progress(aux);
    uint64_t since = seconds_now();
    bool ok = pfds != NULL;

    if (!ok) {
        snprintf(error, size, "out of memory");
    }
    while (ok && any_busy(w, n)) {
        for (size_t i = 0; i < n; i++) {
            pfds[i] = (struct pollfd){.fd = w[i].steps_left ? w[i].fd : -1, .events = POLLIN};
        }
        if (poll(pfds, n, tick) > 0) {
            for (size_t i = 0; ok && i < n; i++) {
                ok = !pfds[i].revents || worker_read(&w[i], error, size);
            }
            since = seconds_now();
        }
        unsigned long value = progress(aux);
        if (value != last) {
            last = value;
            since = seconds_now();
        }
        if (ok && any_busy(w, n) && seconds_now() - since > timeout) {
            describe_timeout(w, n, timeout, error, size);
            ok = false;
        }
        if (interrupt_signal()) { /* it comes before whatever else it has led to. */
            snprintf(error, size, "interrupted (%s)", strsignal(interrupt_signal()));
            ok = false;
        }
    }
    if (!ok) {
        add_stopped(w, n, error, size);
    }
    free(pfds);
    return ok;
}

void
worker_kill(struct worker *w)
{
    if (w->pid > 0) {
        /* A worker that has reported its last step has nothing left to do. */
        kill(w->pid, SIGKILL);
        waitpid(w->pid, NULL, 0);
        w->pid = 0;
    }
    if (w->fd > 0) {
        close(w->fd);
        w->fd = 0;
    }
    w->busy = false;
    w->steps_left = 0;
}

void
workers_stop(struct worker *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        worker_kill(&w[i]);
    }
}
