/* SPDX-License-Identifier: Apache-2.0
 *
 * What the daemons have in common.
 *
 * Everything that may depend on the working folder or on the caller's terminal
 * is done before the process detaches.
 */
#include <config.h>

#include "ctl/process/daemon-common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "command-line.h"
#include "ctl/process/privileges.h"
#include "ctl/process/syscalls.h"
#include "ctl/registry/values.h"
#include "daemon.h"
#include "dirs.h"
#include "fatal-signal.h"
#include "lib/printable.h"
#include "lib/spelling.h"
#include "lib/steer.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovs-thread.h"
#include "socket-util.h"
#include "stream-ssl.h"
#include "stream.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"
#include "version.h"

VLOG_DEFINE_THIS_MODULE(daemon_common);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 3);

#define EXIT_USAGE       1
#define EXIT_REFUSED     2
#define EXIT_UNAVAILABLE 3

#define CONTROL_SOCKET   "control socket"

/* SIGTERM and SIGINT end the main loop, instead of the process where it stands. */
static int signal_fd = -1;

/* Is it of a node? */
static bool
is_agent(enum daemon_kind kind)
{
    return kind == DAEMON_AGENT || kind == DAEMON_FORWARDER;
}

static bool
serves_metrics(enum daemon_kind kind)
{
    return kind == DAEMON_CONTROLLER || kind == DAEMON_BROKER;
}

static void
usage(enum daemon_kind kind, const char *purpose)
{
    printf("%s: rocecast, %s\n"
           "usage: %s [OPTIONS]%s\n"
           "\n"
           "  --db=REMOTE       registry (default: $ROCECAST_DB, or unix:%s/db.sock)\n",
           program_name, purpose, program_name,
           is_agent(kind)          ? " --node=NAME"
           : kind == DAEMON_BROKER ? " --listen=LISTENER"
                                   : "",
           rocecast_rundir());
    if (is_agent(kind)) {
        printf("  --node=NAME       which of the registry's nodes this is\n"
               "  --netns=NAME      network namespace of ports of kind 'packet': a name below\n"
               "                    /run/netns or a path (default: this process's)\n");
    }
    if (kind == DAEMON_FORWARDER) {
        printf(
            "  --threads=N       threads that forward, each with groups of its own (default: 1)\n"
            "  --no-offload      every frame to a tap is a write of its own\n");
    }
    if (serves_metrics(kind)) {
        printf("  --metrics=LISTENER\n"
               "                    punix:FILE or ptcp:PORT:ADDRESS: where metrics are served, by\n"
               "                    HTTP (default: nowhere)\n");
    }
    if (kind == DAEMON_BROKER) {
        printf(
            "  --listen=LISTENER pssl:PORT or pssl:PORT:ADDRESS: for clients that are who their\n"
            "                    certificates say; may be given again\n"
            "  --socket=NAME:FILE\n"
            "                    unix socket for the client NAME; may be given again\n"
            "  --operator=NAME   a client that may do all but read secrets and take locks; may\n"
            "                    be given again\n"
            "  --controller=NAME a client that may do all, for castd; may be given again\n");
    }
    printf("  --no-seccomp      no filter of system calls\n"
           "  --unixctl=SOCKET  control socket (default: below %s)\n"
           "  -h, --help        this text\n"
           "  -V, --version     version\n"
           "\n"
           "Environment: ROCECAST_DB, ROCECAST_RUNDIR (default /run/rocecast)\n",
           rocecast_rundir());
    daemon_usage();
    vlog_usage();
    stream_usage("registry", true, false, true);
    exit(EXIT_SUCCESS);
}

static void
say(const char *format, va_list args)
{
    char *before = xasprintf("%s: ", program_name);

    printable_line(stderr, before, format, args);
    free(before);
}

static void OVS_PRINTF_FORMAT(2, 3) OVS_NO_RETURN exit_because(int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    exit(status);
}

void
daemon_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    exit(EXIT_UNAVAILABLE);
}

/* Exits because of how the program was called. */
#define refuse(...) exit_because(EXIT_USAGE, __VA_ARGS__)

/* getopt has answered 'c', ':' or '?'. */
static void OVS_NO_RETURN
refuse_option(int c, char *argv[], const struct option *options)
{
    const char *meant;

    refuse("%s", option_complaint(c, argv, options, &meant));
}

static int
open_netns(const char *netns)
{
    char *path = strchr(netns, '/') ? xstrdup(netns) : xasprintf("/run/netns/%s", netns);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        refuse("--netns %s: %s: %s", netns, path, ovs_strerror(errno));
    }
    if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
        refuse("--netns %s: %s: not a network namespace", netns, path);
    }
    free(path);
    return fd;
}

static unsigned
parse_threads(const char *text)
{
    uint64_t n;

    if (!number_parse(text, 1, STEER_MAX, &n)) {
        refuse("--threads %s: must be a number from 1 to %d", text, STEER_MAX);
    }
    return (unsigned) n;
}

/* Is it ADDRESS or [ADDRESS]?  It has to be there: who listens at all addresses has to say so. */
static bool
listener_address_is_valid(const char *text)
{
    struct in6_addr addr;
    char *inside = text[0] == '[' ? xstrdup(text + 1) : NULL;
    size_t len = inside ? strlen(inside) : 0;
    bool valid = !inside ? inet_pton(AF_INET, text, &addr) == 1 : len && inside[len - 1] == ']';

    if (inside && valid) {
        inside[len - 1] = '\0';
        valid = inet_pton(AF_INET6, inside, &addr) == 1;
    }
    free(inside);
    return valid;
}

/* Is it 'prefix' and a port, and an address of this machine, which may be missing if it is
 * 'optional'? */
static bool
inet_listener_is_valid(const char *text, const char *prefix, bool optional)
{
    size_t prefix_len = strlen(prefix);

    if (strncmp(text, prefix, prefix_len)) {
        return false;
    }
    size_t digits = strspn(text + prefix_len, "0123456789");
    char *port = xmemdup0(text + prefix_len, digits);
    const char *rest = text + prefix_len + digits;
    uint64_t n;
    bool valid = number_parse(port, 1, UINT16_MAX, &n)
                 && (*rest == ':' ? listener_address_is_valid(rest + 1) : optional && !*rest);

    free(port);
    return valid;
}

/* What --metrics says, with an absolute path; malloc'd. */
static char *
parse_metrics(const char *text)
{
    char *result = NULL;

    if (!strncmp(text, "punix:", 6) && text[6]) {
        char *path = abs_file_name(NULL, text + 6);

        result = xasprintf("punix:%s", path);
        free(path);
    } else if (inet_listener_is_valid(text, "ptcp:", false)) {
        result = xstrdup(text);
    } else {
        refuse("--metrics %s: must be punix:FILE or ptcp:PORT:ADDRESS", text);
    }
    return result;
}

static void
add_listener(struct daemon *d, const char *text)
{
    if (!inet_listener_is_valid(text, "pssl:", true)) {
        refuse("--listen %s: must be pssl:PORT or pssl:PORT:ADDRESS", text);
    }
    svec_add(&d->listeners, text);
    svec_add(&d->listener_names, "");
}

static void
add_socket(struct daemon *d, const char *text)
{
    const char *colon = strchr(text, ':');
    char *name = xmemdup0(text, colon ? (size_t) (colon - text) : 0);

    if (!colon || !name_is_valid(name) || !colon[1]) {
        refuse("--socket %s: must be NAME:FILE", text);
    }
    char *path = abs_file_name(NULL, colon + 1);
    svec_add_nocopy(&d->listeners, xasprintf("punix:%s", path));
    svec_add_nocopy(&d->listener_names, name);
    free(path);
}

static void
add_client(struct svec *names, const char *option, const char *name)
{
    if (!name_is_valid(name)) {
        refuse("--%s '%s': " NAME_RULE, option, name);
    }
    svec_add(names, name);
}

/* Otherwise a missing file would be noticed only in the log, when a connection needs it. */
static void
check_readable(const char *option, const char *file)
{
    if (access(file, R_OK)) {
        refuse("--%s %s: %s", option, file, ovs_strerror(errno));
    }
}

/* Refuses a target that libopenvswitch cannot parse or has to look up: messages would go
 * nowhere. */
static void
check_syslog_target(const char *target)
{
    struct sockaddr_storage ss;

    if (!inet_parse_active(target, -1, &ss, false, NULL)) {
        refuse("--syslog-target %s: must be ADDRESS:PORT", target);
    }
}

static void
parse_options(struct daemon *d, int argc, char *argv[], enum daemon_kind kind, const char *purpose)
{
    enum {
        OPT_DB = UCHAR_MAX + 1,
        OPT_NODE,
        OPT_NETNS,
        OPT_NO_OFFLOAD,
        OPT_NO_SECCOMP,
        OPT_UNIXCTL,
        OPT_METRICS,
        OPT_THREADS,
        OPT_LISTEN,
        OPT_SOCKET,
        OPT_OPERATOR,
        OPT_CONTROLLER,
        OPT_PEER_CA_CERT,
        OPT_BOOTSTRAP_CA_CERT,
        DAEMON_OPTION_ENUMS,
        VLOG_OPTION_ENUMS,
        SSL_OPTION_ENUMS,
    };
    static const struct option long_options[] = {
        {"db", required_argument, NULL, OPT_DB},
        {"node", required_argument, NULL, OPT_NODE},
        {"netns", required_argument, NULL, OPT_NETNS},
        {"no-offload", no_argument, NULL, OPT_NO_OFFLOAD},
        {"no-seccomp", no_argument, NULL, OPT_NO_SECCOMP},
        {"unixctl", required_argument, NULL, OPT_UNIXCTL},
        {"metrics", required_argument, NULL, OPT_METRICS},
        {"threads", required_argument, NULL, OPT_THREADS},
        {"listen", required_argument, NULL, OPT_LISTEN},
        {"socket", required_argument, NULL, OPT_SOCKET},
        {"operator", required_argument, NULL, OPT_OPERATOR},
        {"controller", required_argument, NULL, OPT_CONTROLLER},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        DAEMON_LONG_OPTIONS,
        VLOG_LONG_OPTIONS,
        STREAM_SSL_LONG_OPTIONS,
        {"peer-ca-cert", required_argument, NULL, OPT_PEER_CA_CERT},
        {"bootstrap-ca-cert", required_argument, NULL, OPT_BOOTSTRAP_CA_CERT},
        {NULL, 0, NULL, 0},
    };
    char *letters = ovs_cmdl_long_options_to_short_options(long_options);
    char *short_options = xasprintf(":%s", letters); /* ':': refuse_option() says what is wrong. */
    int c;

    while ((c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        if (c == OPT_SYSLOG_TARGET) {
            check_syslog_target(optarg);
        }
        if (c == 'p' || c == 'c' || c == 'C' || c == OPT_PEER_CA_CERT) {
            check_readable(c == 'p'   ? "private-key"
                           : c == 'c' ? "certificate"
                           : c == 'C' ? "ca-cert"
                                      : "peer-ca-cert",
                           optarg);
        }
        switch (c) {
        case OPT_DB:
            free(d->db);
            d->db = xstrdup(optarg);
            break;
        case OPT_NODE:
            free(d->node);
            d->node = xstrdup(optarg);
            break;
        case OPT_NETNS: d->netns_fd = open_netns(optarg); break;
        case OPT_NO_OFFLOAD: d->no_offload = true; break;
        case OPT_NO_SECCOMP: d->no_seccomp = true; break;
        case OPT_UNIXCTL:
            free(d->control);
            d->control = abs_file_name(NULL, optarg);
            break;
        case OPT_METRICS:
            free(d->metrics);
            d->metrics = parse_metrics(optarg);
            break;
        case OPT_THREADS: d->n_threads = parse_threads(optarg); break;
        case OPT_LISTEN: add_listener(d, optarg); break;
        case OPT_SOCKET: add_socket(d, optarg); break;
        case OPT_OPERATOR: add_client(&d->operators, "operator", optarg); break;
        case OPT_CONTROLLER: add_client(&d->controllers, "controller", optarg); break;
        case 'h': usage(kind, purpose); break;
        case 'V':
            printf(ROCECAST_VERSION_LINE, program_name);
            exit(EXIT_SUCCESS);

            DAEMON_OPTION_HANDLERS
            VLOG_OPTION_HANDLERS
            STREAM_SSL_OPTION_HANDLERS

        case OPT_PEER_CA_CERT: stream_ssl_set_peer_ca_cert_file(optarg); break;
        case OPT_BOOTSTRAP_CA_CERT: stream_ssl_set_ca_cert_file(optarg, true); break;
        default: refuse_option(c, argv, long_options);
        }
    }
    free(short_options);
    free(letters);
    if (optind < argc) {
        refuse("unexpected argument '%s' (try --help)", argv[optind]);
    }
    if (!is_agent(kind) && (d->node || d->netns_fd >= 0)) {
        refuse("--node and --netns are for agents");
    }
    if (!serves_metrics(kind) && d->metrics) {
        refuse("--metrics is for castd and castbroker");
    }
    if (kind != DAEMON_FORWARDER && d->n_threads) {
        refuse("--threads is for swedge and srcagent");
    }
    d->n_threads = MAX(d->n_threads, 1);
    if (kind != DAEMON_FORWARDER && d->no_offload) {
        refuse("--no-offload is for swedge and srcagent");
    }
    if (kind != DAEMON_BROKER && (d->listeners.n || d->operators.n || d->controllers.n)) {
        refuse("--listen, --socket, --operator and --controller are for castbroker");
    }
    if (kind == DAEMON_BROKER && !d->listeners.n) {
        refuse("--listen=LISTENER or --socket=NAME:FILE is missing (try --help)");
    }
    if (is_agent(kind) && !d->node) {
        refuse("--node=NAME is missing (try --help)");
    }
    if (d->node && !name_is_valid(d->node)) {
        refuse("--node '%s': " NAME_RULE, d->node);
    }
    if (d->db && !db_is_valid(d->db)) {
        refuse("--db %s: " DB_RULE, d->db);
    }
}

/* Making a socket removes what has its name.  That must be neither another daemon's socket nor a
 * file. */
static void
check_socket(const char *what, const char *path)
{
    int fd = make_unix_socket(SOCK_STREAM, true, NULL, path);
    char *folder = dir_name(path);
    struct stat s;

    if (fd >= 0 || fd == -EAGAIN) {
        exit_because(EXIT_REFUSED, "%s %s: another daemon answers there", what, path);
    }
    if (access(folder, W_OK | X_OK)) {
        exit_because(EXIT_UNAVAILABLE, "%s %s: %s", what, path, ovs_strerror(errno));
    }
    if (!lstat(path, &s) && !S_ISSOCK(s.st_mode)) {
        exit_because(EXIT_UNAVAILABLE, "%s %s: exists and is no socket", what, path);
    }
    free(folder);
}

/* Root may write everywhere only as long as it has capabilities.  So another user's folder is of no
 * use: what is in it could not be reached later, nor removed. */
static void
check_folder(const char *what, const char *path)
{
    char *folder = dir_name(path);
    int error = privileges_access(folder, W_OK | X_OK);

    if (error) {
        exit_because(EXIT_UNAVAILABLE, "%s %s: %s, without capabilities", what, path,
                     ovs_strerror(error));
    }
    free(folder);
}

/* The file of a unix socket that is listened at; NULL: it is another listener, or none. */
static const char *
socket_file(const char *listener)
{
    return listener && !strncmp(listener, "punix:", 6) ? listener + 6 : NULL;
}

static void
open_metrics(struct daemon *d)
{
    if (socket_file(d->metrics)) {
        check_folder("--metrics", socket_file(d->metrics));
    }
    int error = pstream_open(d->metrics, &d->metrics_listener, DSCP_DEFAULT);
    if (error) {
        exit_because(EXIT_UNAVAILABLE, "--metrics %s: %s", d->metrics, ovs_strerror(error));
    }
}

/* The broker listens when it is a process of its own; what is wrong is said before. */
static void
check_listeners(const struct daemon *d)
{
    if (d->listeners.n && strchr(d->db, ',')) {
        refuse("registry %s: a broker is for one server", d->db);
    }
    for (size_t i = 0; i < d->listeners.n; i++) {
        const char *file = socket_file(d->listeners.names[i]);

        if (file) {
            check_socket("--socket", file);
        } else if (!stream_ssl_is_configured()) {
            refuse("--listen %s: needs --private-key, --certificate and --ca-cert",
                   d->listeners.names[i]);
        }
    }
}

static void
check_listener_folders(const struct daemon *d)
{
    for (size_t i = 0; i < d->listeners.n; i++) {
        const char *file = socket_file(d->listeners.names[i]);

        if (file) {
            check_folder("--socket", file);
        }
    }
}

void
daemon_cannot_listen(const char *listener, int error)
{
    exit_because(EXIT_UNAVAILABLE, "%s: %s", listener, ovs_strerror(error));
}

static void
exit_cb(struct unixctl_conn *conn, int argc OVS_UNUSED, const char *argv[] OVS_UNUSED, void *d_)
{
    struct daemon *d = d_;

    d->exiting = true;
    unixctl_command_reply(conn, NULL);
}

static void
catch_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signal_fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL)) {
        ovs_fatal(errno, "signals");
    }
}

void
daemon_init(struct daemon *d, int argc, char *argv[], enum daemon_kind kind, const char *purpose)
{
    *d = (struct daemon){.netns_fd = -1};

    set_program_name(argv[0]);
    /* Where libopenvswitch puts pid files and logs that are given without a folder. */
    if (rocecast_rundir()[0] != '/') {
        refuse("ROCECAST_RUNDIR=%s: must be an absolute path", rocecast_rundir());
    }
    setenv("OVS_RUNDIR", rocecast_rundir(), 1);
    setenv("OVS_LOGDIR", rocecast_rundir(), 0);
    ignore(mkdir(rocecast_rundir(), 0755)); /* if this fails, what is to be made there says so. */
    ovsthread_id_init();
    ovs_cmdl_proctitle_init(argc, argv);
    service_start(&argc, &argv);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_WARN);
    parse_options(d, argc, argv, kind, purpose);
    if (!d->db) {
        d->db = rocecast_default_db();
        if (!db_is_valid(d->db)) {
            refuse("ROCECAST_DB=%s: " DB_RULE, d->db);
        }
    }
    if (db_needs_keys(d->db) && !stream_ssl_is_configured()) {
        refuse("registry %s: ssl: needs --private-key, --certificate and --ca-cert", d->db);
    }
    if (!d->control) {
        d->control = xasprintf("%s/%s%s%s.ctl", rocecast_rundir(), program_name, d->node ? "-" : "",
                               d->node ? d->node : "");
    }
    check_socket(CONTROL_SOCKET, d->control);
    if (socket_file(d->metrics)) {
        check_socket("--metrics", socket_file(d->metrics));
    }
    check_listeners(d);
    fatal_ignore_sigpipe();
}

void
daemon_start(struct daemon *d)
{
    daemonize_start(false);
    check_folder(CONTROL_SOCKET, d->control);
    check_listener_folders(d);

    if (unixctl_server_create(d->control, &d->unixctl)) {
        exit_because(EXIT_UNAVAILABLE, "%s: the control socket cannot be made", d->control);
    }
    if (d->metrics) {
        open_metrics(d);
    }
    unixctl_command_register("exit", "", 0, 0, exit_cb, d);
    catch_signals();
}

/* LeakSanitizer traces the process when it ends. */
#ifdef __SANITIZE_ADDRESS__
#define FILTERS_SYSCALLS false
#else
#define FILTERS_SYSCALLS true
#endif

bool
daemon_filters_syscalls(const struct daemon *d)
{
    return FILTERS_SYSCALLS && !d->no_seccomp;
}

static void
give_up_privileges(void)
{
    int error = privileges_drop(PRIVILEGES_NONE);

    if (error) {
        daemon_fail("capabilities cannot be given up: %s", ovs_strerror(error));
    }
}

static void
give_up_syscalls(const struct daemon *d)
{
    if (!daemon_filters_syscalls(d)) {
        return;
    }
    int error = syscalls_restrict(d->runs_programs ? SYSCALLS_RUNNER
                                  : d->node        ? SYSCALLS_FORWARDER
                                                   : SYSCALLS_CONTROLLER);
    if (error) {
        daemon_fail("system calls cannot be filtered: %s (--no-seccomp)", ovs_strerror(error));
    }
}

/* sd_watchdog_enabled(3): how often the watchdog is to be fed, in milliseconds; 0: there is none,
 * or it watches another process. */
static long long
watchdog_interval(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t n;

    if ((pid && (!number_parse(pid, 1, INT32_MAX, &n) || (pid_t) n != getpid())) || !usec
        || !number_parse(usec, 1, INT64_MAX, &n)) {
        return 0;
    }
    return MAX((long long) (n / 1000 / 2), 1);
}

void
daemon_ready(struct daemon *d)
{
    if (!d->runs_programs) {
        give_up_privileges();
    }
    give_up_syscalls(d);
    daemonize_complete();
    d->watchdog_msec = watchdog_interval();
}

/* sd_notify(3), without libsystemd: one datagram to the socket that is named in the environment.
 * The socket is an abstract one if its name begins with '@'. */
static void
notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd;

    if (!len || len >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    /* Who forwards packets does not wait for a service manager. */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0
        || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *) &address,
                  (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len))
               < 0) {
        VLOG_WARN_RL(&rl, "%s: %s", path, ovs_strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

void
daemon_serving(struct daemon *d)
{
    if (!d->serving) {
        d->serving = true;
        notify("READY=1");
    }
}

static void
feed_watchdog(struct daemon *d)
{
    if (d->watchdog_msec && time_msec() >= d->watchdog_next) {
        d->watchdog_next = time_msec() + d->watchdog_msec;
        notify("WATCHDOG=1");
    }
}

void
daemon_run(struct daemon *d)
{
    struct signalfd_siginfo info;

    feed_watchdog(d);
    unixctl_server_run(d->unixctl);
    if (read(signal_fd, &info, sizeof info) == sizeof info) {
        d->exiting = true;
    }
}

void
daemon_wait(struct daemon *d)
{
    unixctl_server_wait(d->unixctl);
    poll_fd_wait(signal_fd, POLLIN);
    if (d->watchdog_msec) {
        poll_timer_wait_until(d->watchdog_next);
    }
    if (d->exiting) {
        poll_immediate_wake();
    }
}

void
daemon_done(struct daemon *d)
{
    notify("STOPPING=1");
    unixctl_server_destroy(d->unixctl);
    close(signal_fd);
    if (d->netns_fd >= 0) {
        close(d->netns_fd);
    }
    free(d->db);
    free(d->node);
    free(d->control);
    free(d->metrics);
    svec_destroy(&d->listeners);
    svec_destroy(&d->listener_names);
    svec_destroy(&d->operators);
    svec_destroy(&d->controllers);
    service_stop();
}
