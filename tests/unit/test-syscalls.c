/* SPDX-License-Identifier: Apache-2.0
 *
 * What daemons may call: processes with a daemon's filter that call something, and what becomes of them.
 */
#include <config.h>

#include "ctl/process/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "util.h"

/* What processes try.  They return an errno, or 0 if it worked. */

static int
execute(void)
{
    char *argv[] = {(char[]){"true"}, NULL};

    return execv("/bin/true", argv) ? errno : 0;
}

static int
trace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? errno : 0;
}

static int
mount_nothing(void)
{
    return syscall(SYS_mount, NULL, NULL, NULL, 0UL, NULL) ? errno : 0;
}

static int
load_module(void)
{
    return syscall(SYS_init_module, NULL, 0UL, "") ? errno : 0;
}

static int
become_root(void)
{
    return syscall(SYS_setuid, 0) ? errno : 0;
}

static int
load_bpf(void)
{
    return syscall(SYS_bpf, -1, NULL, 0) ? errno : 0;
}

static int
socket_of(int family, int type)
{
    int fd = socket(family, type, 0);

    return fd < 0 ? errno : close(fd);
}

static int
packet_socket(void)
{
    /* The type is none, so that the answer does not depend on capabilities. */
    int error = socket_of(AF_PACKET, 0);

    return error == EPERM ? ESOCKTNOSUPPORT : error;
}

static int
unix_socket(void)
{
    return socket_of(AF_UNIX, SOCK_STREAM);
}

static int
internet_socket(void)
{
    return socket_of(AF_INET6, SOCK_DGRAM);
}

static int
route_socket(void)
{
    return socket_of(AF_NETLINK, SOCK_RAW);
}

static int
attach_tap(void)
{
    struct ifreq ifr = {.ifr_flags = IFF_TAP};

    return ioctl(-1, TUNSETIFF, &ifr) ? errno : 0;
}

static int
vsock_socket(void)
{
    return socket_of(AF_VSOCK, SOCK_STREAM);
}

static int
map(int protection)
{
    return mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno
                                                                                          : 0;
}

static int
map_writable(void)
{
    return map(PROT_READ | PROT_WRITE);
}

static int
map_library(void)
{
    return map(PROT_READ | PROT_EXEC);
}

static int
map_shellcode(void)
{
    return map(PROT_READ | PROT_WRITE | PROT_EXEC);
}

static int
make_executable(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return mprotect(page, 4096, PROT_READ | PROT_EXEC) ? errno : 0;
}

static int
enter_network(void)
{
    return setns(-1, CLONE_NEWNET) ? errno : 0;
}

static int
enter_mounts(void)
{
    return setns(-1, CLONE_NEWNS) ? errno : 0;
}

static int
new_namespace(void)
{
    return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0UL) < 0 ? errno : 0;
}

static int
type_for_user(void)
{
    return ioctl(STDIN_FILENO, TIOCSTI, "x") ? errno : 0;
}

static int
look_at_terminal(void)
{
    return isatty(-1) ? 0 : errno;
}

static int
change_securebits(void)
{
    return prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) ? errno : 0;
}

static int
crash(void)
{
    abort();
}

static void *
nothing(void *arg)
{
    return arg;
}

static int
start_thread(void)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, nothing, NULL);

    return error ? error : pthread_join(thread, NULL);
}

static int
fork_and_wait(void)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        _exit(7);
    }
    return pid < 0 || waitpid(pid, &status, 0) != pid ? errno : WEXITSTATUS(status) != 7;
}

static const struct {
    enum syscalls whose;
    int (*function)(void);
    int signal; /* that ends the process; 0: it goes on, */
    int error;  /* with this errno. */
} cases[] = {
    {SYSCALLS_CONTROLLER, execute, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, trace, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, mount_nothing, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, become_root, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, load_bpf, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, unix_socket, 0, 0},
    {SYSCALLS_CONTROLLER, packet_socket, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, vsock_socket, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, map_writable, 0, 0},
    {SYSCALLS_CONTROLLER, map_library, 0, 0},
    {SYSCALLS_CONTROLLER, map_shellcode, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, make_executable, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, enter_network, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, new_namespace, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, type_for_user, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, look_at_terminal, 0, EBADF},
    {SYSCALLS_CONTROLLER, change_securebits, SIGSYS, 0},
    {SYSCALLS_CONTROLLER, crash, SIGABRT, 0},
    {SYSCALLS_CONTROLLER, start_thread, 0, 0},
    {SYSCALLS_FORWARDER, execute, SIGSYS, 0},
    {SYSCALLS_FORWARDER, trace, SIGSYS, 0},
    {SYSCALLS_FORWARDER, mount_nothing, SIGSYS, 0},
    {SYSCALLS_FORWARDER, load_module, SIGSYS, 0},
    {SYSCALLS_FORWARDER, load_bpf, SIGSYS, 0},
    {SYSCALLS_FORWARDER, packet_socket, SIGSYS, 0},
    {SYSCALLS_FORWARDER, route_socket, SIGSYS, 0},
    {SYSCALLS_FORWARDER, unix_socket, 0, 0},
    {SYSCALLS_FORWARDER, attach_tap, SIGSYS, 0},
    {SYSCALLS_FORWARDER, vsock_socket, SIGSYS, 0},
    {SYSCALLS_FORWARDER, map_shellcode, SIGSYS, 0},
    {SYSCALLS_FORWARDER, enter_network, SIGSYS, 0},
    {SYSCALLS_FORWARDER, fork_and_wait, 0, 0},
    {SYSCALLS_OPENER, execute, SIGSYS, 0},
    {SYSCALLS_OPENER, trace, SIGSYS, 0},
    {SYSCALLS_OPENER, mount_nothing, SIGSYS, 0},
    {SYSCALLS_OPENER, load_module, SIGSYS, 0},
    {SYSCALLS_OPENER, become_root, SIGSYS, 0},
    {SYSCALLS_OPENER, load_bpf, 0, EINVAL},
    {SYSCALLS_OPENER, packet_socket, 0, ESOCKTNOSUPPORT},
    {SYSCALLS_OPENER, route_socket, 0, 0},
    {SYSCALLS_OPENER, internet_socket, SIGSYS, 0},
    {SYSCALLS_OPENER, vsock_socket, SIGSYS, 0},
    {SYSCALLS_OPENER, attach_tap, 0, EBADF},
    {SYSCALLS_OPENER, map_shellcode, SIGSYS, 0},
    {SYSCALLS_OPENER, start_thread, SIGSYS, 0},
    {SYSCALLS_OPENER, fork_and_wait, SIGSYS, 0},
    {SYSCALLS_OPENER, enter_network, SIGSYS, 0},
    {SYSCALLS_OPENER, crash, SIGABRT, 0},
    {SYSCALLS_OPENER_NETNS, execute, SIGSYS, 0},
    {SYSCALLS_OPENER_NETNS, enter_network, 0, EBADF},
    {SYSCALLS_OPENER_NETNS, enter_mounts, SIGSYS, 0},
    {SYSCALLS_OPENER_NETNS, new_namespace, SIGSYS, 0},
    {SYSCALLS_RUNNER, execute, 0, 0},
    {SYSCALLS_RUNNER, trace, SIGSYS, 0},
    {SYSCALLS_RUNNER, load_module, SIGSYS, 0},
    {SYSCALLS_RUNNER, enter_network, 0, EBADF},
    {SYSCALLS_RUNNER, fork_and_wait, 0, 0},
};

/* No core files of processes that are meant to die. */
static void OVS_NO_RETURN
child(int (*function)(void), enum syscalls whose)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int error = syscalls_restrict(whose);
    _exit(error ? 255 : function());
}

static int
status_of(pid_t pid)
{
    int status;

    ck_assert(pid > 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

/* AddressSanitizer makes calls of its own, which the process that opens ports has no use for: built with it that
 * process has no filter, and only what is forbidden can be tried. */
static bool
can_try(size_t i)
{
#ifdef __SANITIZE_ADDRESS__
    return cases[i].signal == SIGSYS
           || (cases[i].whose != SYSCALLS_OPENER && cases[i].whose != SYSCALLS_OPENER_NETNS);
#else
    return i < ARRAY_SIZE(cases);
#endif
}

START_TEST(calls)
    {
        if (!can_try((size_t) _i)) {
            return;
        }
        pid_t pid = fork();

        if (!pid) {
            signal(SIGABRT, SIG_DFL);
            child(cases[_i].function, cases[_i].whose);
        }
        int status = status_of(pid);
        ck_assert_msg(WIFSIGNALED(status) == (cases[_i].signal != 0)
                          && (cases[_i].signal ? WTERMSIG(status) == cases[_i].signal
                                               : WEXITSTATUS(status) == cases[_i].error),
                      "case %d: status %#x, wanted signal %d or errno %d", _i, (unsigned) status,
                      cases[_i].signal, cases[_i].error);
    }
END_TEST

static int go[2];

/* Runs already when the filter comes. */
static void *
early_thread(void *arg)
{
    char c;

    if (read(go[0], &c, 1) == 1) {
        trace();
    }
    return arg;
}

static int
tell_early_thread(void)
{
    return write(go[1], "x", 1) == 1 && pause() ? errno : 0;
}

START_TEST(threads)
    {
        pid_t pid = fork();

        if (!pid) {
            pthread_t thread;

            alarm(20);
            if (pipe2(go, O_CLOEXEC) || pthread_create(&thread, NULL, early_thread, NULL)) {
                _exit(254);
            }
            child(tell_early_thread, SYSCALLS_RUNNER);
        }
        int status = status_of(pid);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status %#x",
                      (unsigned) status);
    }
END_TEST

/* A name that is written wrongly would be left out, as those that another architecture has. */
START_TEST(names)
    {
        const char *name;
        size_t n = 0;

        for (; (name = syscalls_name(n)); n++) {
            ck_assert_msg(seccomp_syscall_resolve_name(name) != __NR_SCMP_ERROR,
                          "there is no system call %s", name);
        }
        ck_assert_uint_gt(n, 150);
    }
END_TEST

Suite *
syscalls_suite(void)
{
    Suite *s = suite_create("syscalls");
    TCase *tc = tcase_create("syscalls");

    tcase_add_loop_test(tc, calls, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tc, threads);
    tcase_add_test(tc, names);
    suite_add_tcase(s, tc);
    return s;
}
