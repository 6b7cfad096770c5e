/* SPDX-License-Identifier: Apache-2.0
 *
 * Which system calls a daemon may make.
 *
 * A list of what is allowed, for daemons whose every call is made by this code and its libraries: whatever an attacker
 * would like to call besides ends the process.  It has the older and the newer form of a call, since the C library
 * decides which one it makes.  castfwd runs ip, sysctl and Open vSwitch's tools, to which the filter applies as well: it
 * has a list of what is forbidden.
 *
 * Filters see numbers, not what pointers point at: an argument can be tested that is a number.
 */
#include <config.h>

#include "ctl/process/syscalls.h"

#include <errno.h>
#include <linux/if_tun.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "util.h"

/* Whose call it is. */
#define DAEMON (1u << SYSCALLS_CONTROLLER | AGENT)
#define AGENT  (1u << SYSCALLS_FORWARDER)
#define OPENER (1u << SYSCALLS_OPENER | NETNS)
#define NETNS  (1u << SYSCALLS_OPENER_NETNS)
#define ALL    (DAEMON | OPENER)

static const struct {
    const char *name;
    unsigned who;
} allowed[] = {
    /* files: logs, captures, pid files, keys, /proc. */
    {"access", ALL},
    {"chdir", DAEMON},
    {"chmod", DAEMON},
    {"close", ALL},
    {"close_range", ALL},
    {"dup", DAEMON},
    {"dup2", DAEMON},
    {"dup3", ALL},
    {"faccessat", ALL},
    {"faccessat2", ALL},
    {"fallocate", DAEMON},
    {"fchmod", DAEMON},
    {"fchmodat", DAEMON},
    {"fcntl", ALL},
    {"fdatasync", DAEMON},
    {"flock", DAEMON},
    {"fstat", ALL},
    {"fstatfs", DAEMON},
    {"fsync", DAEMON},
    {"ftruncate", ALL},
    {"getcwd", DAEMON},
    {"getdents64", DAEMON},
    {"link", DAEMON},
    {"linkat", DAEMON},
    {"lseek", ALL},
    {"lstat", ALL},
    {"mkdir", DAEMON},
    {"mkdirat", DAEMON},
    {"newfstatat", ALL},
    {"open", ALL},
    {"openat", ALL},
    {"pread64", ALL},
    {"preadv", DAEMON},
    {"pwrite64", DAEMON},
    {"pwritev", DAEMON},
    {"read", ALL},
    {"readlink", ALL},
    {"readlinkat", ALL},
    {"readv", DAEMON},
    {"rename", DAEMON},
    {"renameat", DAEMON},
    {"renameat2", DAEMON},
    {"rmdir", DAEMON},
    {"stat", ALL},
    {"statfs", DAEMON},
    {"statx", ALL},
    {"symlink", DAEMON},
    {"symlinkat", DAEMON},
    {"umask", DAEMON},
    {"unlink", DAEMON},
    {"unlinkat", DAEMON},
    {"write", ALL},
    {"writev", DAEMON},
    /* sockets, and what is waited for. */
    {"accept", DAEMON},
    {"accept4", DAEMON},
    {"bind", ALL},
    {"connect", ALL},
    {"epoll_create", DAEMON},
    {"epoll_create1", DAEMON},
    {"epoll_ctl", DAEMON},
    {"epoll_pwait", DAEMON},
    {"epoll_pwait2", DAEMON},
    {"epoll_wait", DAEMON},
    {"eventfd2", DAEMON},
    {"getpeername", DAEMON},
    {"getsockname", ALL},
    {"getsockopt", ALL},
    {"listen", DAEMON},
    {"pipe", DAEMON},
    {"pipe2", DAEMON},
    {"poll", ALL},
    {"ppoll", DAEMON},
    {"pselect6", DAEMON},
    {"recvfrom", ALL},
    {"recvmmsg", DAEMON},
    {"recvmsg", ALL},
    {"select", DAEMON},
    {"sendmmsg", DAEMON},
    {"sendmsg", ALL},
    {"sendto", ALL},
    {"setsockopt", ALL},
    {"shutdown", DAEMON},
    /* memory; mmap and mprotect are below. */
    {"brk", ALL},
    {"madvise", ALL},
    {"mlock", DAEMON},
    {"mremap", ALL},
    {"munlock", ALL},
    {"munmap", ALL},
    /* time and chance. */
    {"clock_getres", DAEMON},
    {"clock_gettime", ALL},
    {"clock_nanosleep", DAEMON},
    {"getitimer", DAEMON},
    {"getrandom", ALL},
    {"gettimeofday", ALL},
    {"nanosleep", DAEMON},
    {"setitimer", DAEMON},
    {"time", DAEMON},
    {"timer_create", DAEMON},
    {"timer_delete", DAEMON},
    {"timer_settime", DAEMON},
    {"timerfd_create", DAEMON},
    {"timerfd_settime", DAEMON},
    /* threads and signals; clone is below. */
    {"exit", ALL},
    {"exit_group", ALL},
    {"futex", ALL},
    {"get_robust_list", DAEMON},
    {"membarrier", DAEMON},
    {"restart_syscall", ALL},
    {"rseq", DAEMON},
    {"rt_sigaction", ALL},
    {"rt_sigpending", DAEMON},
    {"rt_sigprocmask", ALL},
    {"rt_sigreturn", ALL},
    {"rt_sigsuspend", DAEMON},
    {"rt_sigtimedwait", DAEMON},
    {"sched_getaffinity", DAEMON},
    {"sched_yield", DAEMON},
    {"set_robust_list", DAEMON},
    {"set_tid_address", DAEMON},
    {"sigaltstack", DAEMON},
    {"signalfd4", DAEMON},
    {"tgkill", ALL},
    /* what a process asks about itself. */
    {"capget", DAEMON},
    {"getegid", DAEMON},
    {"geteuid", ALL},
    {"getgid", DAEMON},
    {"getpid", ALL},
    {"getppid", DAEMON},
    {"getrlimit", ALL},
    {"getrusage", DAEMON},
    {"gettid", ALL},
    {"getuid", ALL},
    {"prlimit64", ALL},
    {"sysinfo", DAEMON},
    {"times", DAEMON},
    {"uname", ALL},
    /* opening ports: memory and programs for those of kind xdp. */
    {"bpf", OPENER},
    {"memfd_create", OPENER},
    {"setrlimit", OPENER},
    /* castctl trace: a child that is asked, waited for, and killed if it takes too long. */
    {"fork", AGENT},
    {"kill", AGENT},
    {"vfork", AGENT},
    {"wait4", AGENT},
};

/* A call that is allowed if the bits 'mask' of argument 'arg' are 'value'; several lines of a call are alternatives. */
#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif
#define EQUAL UINT32_MAX
static const struct {
    const char *name;
    unsigned who;
    unsigned arg;
    uint64_t mask, value;
} conditional[] = {
    /* What is written to is not executed. */
    {"mmap", ALL, 2, PROT_WRITE, 0},
    {"mmap", ALL, 2, PROT_EXEC, 0},
    {"mprotect", ALL, 2, PROT_EXEC, 0},
    /* Threads, and children in the same namespaces. */
    {"clone", DAEMON, CLONE_FLAGS,
     CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID
         | CLONE_NEWNET,
     0},
    {"setns", NETNS, 1, EQUAL, CLONE_NEWNET},
    {"socket", ALL, 0, EQUAL, AF_UNIX},
    {"socket", DAEMON, 0, EQUAL, AF_INET},
    {"socket", DAEMON, 0, EQUAL, AF_INET6},
    {"socket", OPENER, 0, EQUAL, AF_NETLINK},
    {"socket", OPENER, 0, EQUAL, AF_PACKET},
    {"socket", OPENER, 0, EQUAL, AF_XDP},
    {"socketpair", DAEMON, 0, EQUAL, AF_UNIX},
    {"prctl", DAEMON, 0, EQUAL, PR_SET_NAME},
    {"prctl", DAEMON, 0, EQUAL, PR_GET_NAME},
    {"prctl", DAEMON, 0, EQUAL, PR_CAPBSET_READ},
    {"prctl", DAEMON, 0, EQUAL, PR_CAP_AMBIENT},
    {"ioctl", DAEMON, 1, EQUAL, FIONBIO},
    {"ioctl", DAEMON, 1, EQUAL, FIONREAD},
    {"ioctl", ALL, 1, EQUAL, SIOCGIFNAME},
    {"ioctl", ALL, 1, EQUAL, SIOCGIFINDEX},
    {"ioctl", DAEMON, 1, EQUAL, TCGETS},
    {"ioctl", AGENT | OPENER, 1, EQUAL, SIOCETHTOOL},
    {"ioctl", AGENT | OPENER, 1, EQUAL, SIOCGIFFLAGS},
    {"ioctl", OPENER, 1, EQUAL, SIOCGIFHWADDR},
    {"ioctl", AGENT | OPENER, 1, EQUAL, SIOCGIFMTU},
    {"ioctl", OPENER, 1, EQUAL, TUNGETIFF},
    {"ioctl", OPENER, 1, EQUAL, TUNGETVNETHDRSZ},
    {"ioctl", OPENER, 1, EQUAL, TUNSETIFF},
    {"ioctl", OPENER, 1, EQUAL, TUNSETOFFLOAD},
    {"ioctl", OPENER, 1, EQUAL, TUNSETVNETHDRSZ},
};

/* Its arguments are in memory.  The C library makes do with clone, if it is told that there is no such call. */
#define UNFILTERABLE "clone3"

/* Of a daemon that runs programs: what none of them is for. */
static const char *const forbidden[] = {
    /* other processes. */
    "kcmp",
    "pidfd_getfd",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    /* the kernel itself, and the machine. */
    "acct",
    "create_module",
    "delete_module",
    "finit_module",
    "init_module",
    "ioperm",
    "iopl",
    "kexec_file_load",
    "kexec_load",
    "lookup_dcookie",
    "perf_event_open",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "swapoff",
    "swapon",
    "syslog",
    "userfaultfd",
    "vhangup",
    /* clocks and names. */
    "adjtimex",
    "clock_adjtime",
    "clock_settime",
    "setdomainname",
    "sethostname",
    "settimeofday",
    /* keys, other roots, files by handle. */
    "add_key",
    "chroot",
    "fanotify_init",
    "keyctl",
    "open_by_handle_at",
    "pivot_root",
    "request_key",
};

const char *
syscalls_name(size_t i)
{
    if (i < ARRAY_SIZE(allowed)) {
        return allowed[i].name;
    }
    i -= ARRAY_SIZE(allowed);
    if (i < ARRAY_SIZE(conditional)) {
        return conditional[i].name;
    }
    i -= ARRAY_SIZE(conditional);
    return i < ARRAY_SIZE(forbidden) ? forbidden[i] : NULL;
}

/* Calls that this machine's architecture, or an older libseccomp, does not know are left out. */
static int
add_rule(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned n_args,
         const struct scmp_arg_cmp *args)
{
    int number = seccomp_syscall_resolve_name(name);
    int error = number == __NR_SCMP_ERROR
                    ? EDOM
                    : -seccomp_rule_add_array(filter, action, number, n_args, args);

    return error == EDOM ? 0 : error;
}

static int
allow(scmp_filter_ctx filter, enum syscalls whose)
{
    int error = add_rule(filter, SCMP_ACT_ERRNO(ENOSYS), UNFILTERABLE, 0, NULL);

    for (size_t i = 0; !error && i < ARRAY_SIZE(allowed); i++) {
        if (allowed[i].who & 1u << whose) {
            error = add_rule(filter, SCMP_ACT_ALLOW, allowed[i].name, 0, NULL);
        }
    }
    for (size_t i = 0; !error && i < ARRAY_SIZE(conditional); i++) {
        if (conditional[i].who & 1u << whose) {
            const struct scmp_arg_cmp test = {
                .arg = conditional[i].arg,
                .op = SCMP_CMP_MASKED_EQ,
                .datum_a = conditional[i].mask,
                .datum_b = conditional[i].value,
            };
            error = add_rule(filter, SCMP_ACT_ALLOW, conditional[i].name, 1, &test);
        }
    }
    return error;
}

static int
forbid(scmp_filter_ctx filter)
{
    int error = 0;

    for (size_t i = 0; !error && i < ARRAY_SIZE(forbidden); i++) {
        error = add_rule(filter, SCMP_ACT_KILL_PROCESS, forbidden[i], 0, NULL);
    }
    return error;
}

int
syscalls_restrict(enum syscalls whose)
{
    static const struct {
        enum scmp_filter_attr attribute;
        uint32_t value;
    } attributes[] = {
        {SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS},
        {SCMP_FLTATR_CTL_TSYNC, 1},    /* threads that run already, too. */
        {SCMP_FLTATR_CTL_OPTIMIZE, 2}, /* a binary tree. */
        {SCMP_FLTATR_CTL_SSB, 1}, /* no mitigation for code of others, which there is none of. */
        {SCMP_FLTATR_API_SYSRAWRC, 1}, /* what the kernel says goes wrong. */
    };
    bool runs_programs = whose == SYSCALLS_RUNNER;
    scmp_filter_ctx filter = seccomp_init(runs_programs ? SCMP_ACT_ALLOW : SCMP_ACT_KILL_PROCESS);
    int error = filter ? 0 : ENOMEM;

    for (size_t i = 0; !error && i < ARRAY_SIZE(attributes); i++) {
        error = -seccomp_attr_set(filter, attributes[i].attribute, attributes[i].value);
    }
    if (!error) {
        error = runs_programs ? forbid(filter) : allow(filter, whose);
    }
    if (!error) {
        error = -seccomp_load(filter);
    }
    seccomp_release(filter);
    return error;
}
