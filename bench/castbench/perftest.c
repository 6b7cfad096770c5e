/* SPDX-License-Identifier: Apache-2.0
 *
 * castbench perftest (see perftest.h).
 *
 * The client, and those servers that are to run on this machine, are child processes.  The group is
 * there as long as the relay needs it, and is deleted whatever happens, unless this process is
 * killed.
 */
#include "bench/castbench/perftest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/castbench/castctl.h"
#include "bench/castbench/clock.h"
#include "bench/castbench/endpoint.h"
#include "bench/castbench/interrupt.h"
#include "bench/castbench/perftest-relay.h"
#include "bench/castbench/refuse.h"
#include "bench/castbench/values.h"
#include "lib/printable.h"
#include "version.h"

#define EXIT_USAGE   1
#define EXIT_RUN     2

#define DEFAULT_PORT "18515" /* perftest's. */
#define MAX_WORDS    64      /* of the client's command line. */
#define WAIT_END_US  20000

static const char usage[] =
    "usage: castbench perftest --source H --receivers R[=ADDRESS[:PORT]],... -- PROGRAM [OPTION...]\n"
    "Runs a client of perftest, unmodified, as the source of a group, and its servers as receivers.\n"
    "PROGRAM is ib_write_bw or ib_send_bw with its own options, but for what castbench says itself:\n"
    "device, GID, ports and the server.  Its table is printed.\n"
    "      --source H         the host of this machine that writes\n"
    "      --receivers R,...  hosts that are written to.  With '=' the server has been started there,\n"
    "                         with the client's options; without it is started on this machine\n"
    "      --group G          made for the run, and deleted (default perftest)\n"
    "      --timeout S        give up after S seconds without an answer (default 30)\n"
    "      --db ADDRESS       registry (default: ROCECAST_DB, then castctl's own)\n"
    "  -h, --help  -V, --version\n"
    "exit status: 0 the client has succeeded, and each server of this machine holds its bytes; 1 usage,\n"
    "2 it has not, they do not, or something has failed\n";

enum { OPTION_SOURCE = 256, OPTION_RECEIVERS, OPTION_GROUP, OPTION_TIMEOUT, OPTION_DB };

static const struct option long_options[] = {
    {"source", required_argument, NULL, OPTION_SOURCE},
    {"receivers", required_argument, NULL, OPTION_RECEIVERS},
    {"group", required_argument, NULL, OPTION_GROUP},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"db", required_argument, NULL, OPTION_DB},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* Takes ADDRESS[:PORT] apart. */
static bool
take_where(struct perftest_server *s, const char *text, char *error, size_t size)
{
    const char *colon = strchr(text, ':'), *port = colon ? colon + 1 : DEFAULT_PORT;
    size_t len = colon ? (size_t) (colon - text) : strlen(text);
    uint64_t v;

    if (!len || len >= sizeof s->address || !value_number(port, 1, UINT16_MAX, &v)) {
        return refuse(error, size,
                      "--receivers %s=%s: must be ADDRESS[:PORT], a name or an IPv4 "
                      "address (perftest knows no other)",
                      s->host, text);
    }
    s->given = text;
    memcpy(s->address, text, len);
    snprintf(s->port, sizeof s->port, "%u", (unsigned) v);
    return true;
}

static bool
add_receiver(struct perftest_relay *r, char *text, char *error, size_t size)
{
    char *equals = strchr(text, '=');

    if (equals) {
        *equals = '\0';
    }
    if (!text[0]) {
        return refuse(error, size, "--receivers: an entry of the list is empty");
    }
    for (unsigned i = 0; i < r->n_servers; i++) {
        if (!strcmp(text, r->servers[i].host)) {
            return refuse(error, size, "--receivers %s: named twice", text);
        }
    }
    if (r->n_servers == MAX_RECEIVERS) {
        return refuse(error, size, "--receivers %s: more than %d", text, MAX_RECEIVERS);
    }
    struct perftest_server *s = &r->servers[r->n_servers++];
    *s = (struct perftest_server){.host = text, .log = -1, .fd = -1};
    return !equals || take_where(s, equals + 1, error, size);
}

static bool
take_option(struct perftest_relay *r, int c, char *arg, char *error, size_t size)
{
    uint64_t v = 0;

    switch (c) {
    case OPTION_SOURCE: r->source = arg; return true;
    case OPTION_RECEIVERS:
        for (char *entry; (entry = strsep(&arg, ","));) {
            if (!add_receiver(r, entry, error, size)) {
                return false;
            }
        }
        return true;
    case OPTION_GROUP: r->group = arg; return true;
    case OPTION_TIMEOUT:
        if (!value_number(arg, 1, 86400, &v)) {
            return refuse(error, size, "--timeout %s: must be 1..86400", arg);
        }
        r->timeout = (unsigned) v;
        return true;
    case OPTION_DB: setenv("ROCECAST_DB", arg, 1); return true;
    case 'h': fputs(usage, stdout); exit(0);
    case 'V': printf(ROCECAST_VERSION_LINE, "castbench"); exit(0);
    default: return false; /* getopt has said why. */
    }
}

/* False: the command line is wrong; an empty error has been printed. */
static bool
parse(struct perftest_relay *r, struct perftest_args *args, int argc, char *argv[], char *error,
      size_t size)
{
    *r = (struct perftest_relay){
        .args = args, .group = "perftest", .timeout = 30, .listener = -1, .fd = -1};
    optind = 0;
    opterr = 1;
    for (int c; (c = getopt_long(argc, argv, "+hV", long_options, NULL)) != -1;) {
        if (!take_option(r, c, optarg, error, size)) {
            return false;
        }
    }
    int first = optind; /* of the client's words. */
    if (!r->source || !r->n_servers) {
        return refuse(error, size, "%s is missing (castbench perftest --help)",
                      r->source ? "--receivers" : "--source");
    }
    if (first == argc) {
        return refuse(error, size,
                      "a program is missing behind --: ib_write_bw or ib_send_bw "
                      "(castbench perftest --help)");
    }
    if (argc - first > MAX_WORDS) {
        return refuse(error, size, "%s: more than %d words", argv[first], MAX_WORDS);
    }
    return perftest_args_parse(args, argc - first, argv + first, error, size);
}

/* The device and GID of a host of this machine, as perftest's options. */
struct place {
    char device[64];
    char gid_index[16];
};

static bool
find_place(const struct in6_addr *address, struct place *place, char *error, size_t size)
{
    const struct endpoint_where anywhere = {.gid_index = -1};
    static unsigned char buf[4096];
    struct endpoint ep;

    if (endpoint_open(&ep, address, &anywhere, buf, sizeof buf, false, 1)) {
        return refuse(error, size, "%s", ep.error);
    }
    snprintf(place->device, sizeof place->device, "%s", ibv_get_device_name(ep.ctx->device));
    snprintf(place->gid_index, sizeof place->gid_index, "%d", ep.gid_index);
    endpoint_close(&ep);
    return true;
}

/* A socket at a free port of the loopback address; '*port' is that. */
static int
listen_anywhere(uint16_t *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0
        && (bind(fd, (struct sockaddr *) &in, len) || listen(fd, 1)
            || getsockname(fd, (struct sockaddr *) &in, &len))) {
        close(fd);
        fd = -1;
    }
    *port = ntohs(in.sin_port);
    return fd;
}

/* Becomes a program that ends with its parent.  'output' is where it prints; -1: where the parent
 * does. */
static void __attribute__((noreturn)) become(char *const words[], int output, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && null >= 0) {
        dup2(null, STDIN_FILENO);
        if (output >= 0) {
            dup2(output, STDOUT_FILENO);
            dup2(output, STDERR_FILENO);
        }
        execvp(words[0], words);
        dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
    }
    _exit(127);
}

static bool
start(char *const words[], int output, pid_t *pid, char *error, size_t size)
{
    pid_t parent = getpid();

    fflush(stdout);
    *pid = fork();
    if (!*pid) {
        become(words, output, parent);
    }
    if (*pid < 0) {
        *pid = 0;
        return refuse(error, size, "cannot start %s: %s", words[0], strerror(errno));
    }
    return true;
}

/* What castbench adds to the program's own words. */
static void
add_words(char *words[], int n, const struct place *place, const char *port, const char *server)
{
    const char *const more[] = {"-d", place->device, "-x", place->gid_index, "-p", port, server};

    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        words[n++] = (char *) (uintptr_t) more[i]; /* execvp() only reads. */
    }
    words[n] = NULL;
}

static bool
start_server(struct perftest_server *s, const struct in6_addr *address, char *argv[], char *error,
             size_t size)
{
    char *words[MAX_WORDS + 8];
    struct place place;
    uint16_t port;

    if (!find_place(address, &place, error, size)) {
        return false;
    }
    int fd = listen_anywhere(&port);
    if (fd < 0) {
        return refuse(error, size, "cannot find a free port: %s", strerror(errno));
    }
    close(fd); /* the server listens there next. */
    snprintf(s->address, sizeof s->address, "127.0.0.1");
    snprintf(s->port, sizeof s->port, "%u", port);
    s->log = memfd_create("server", MFD_CLOEXEC);
    if (s->log < 0) {
        return refuse(error, size, "cannot make a file in memory: %s", strerror(errno));
    }
    add_words(words, perftest_args_of_server(argv, words), &place, s->port, NULL);
    return start(words, s->log, &s->pid, error, size);
}

static bool
start_client(struct perftest_relay *r, const struct in6_addr *address, char *argv[], char *error,
             size_t size)
{
    char *words[MAX_WORDS + 8], port_text[8];
    struct place place;
    uint16_t port;
    int n = 0;

    if (!find_place(address, &place, error, size)) {
        return false;
    }
    r->listener = listen_anywhere(&port);
    if (r->listener < 0) {
        return refuse(error, size, "cannot listen for the client: %s", strerror(errno));
    }
    snprintf(port_text, sizeof port_text, "%u", port);
    for (; argv[n]; n++) {
        words[n] = argv[n];
    }
    add_words(words, n, &place, port_text, "127.0.0.1");
    return start(words, -1, &r->client, error, size);
}

/* Starts and connects all that takes part.  Servers come first: the client has them answer at
 * once. */
static bool
start_all(struct perftest_relay *r, char *argv[], char *error, size_t size)
{
    struct in6_addr addresses[1 + MAX_RECEIVERS];
    const char *hosts[1 + MAX_RECEIVERS] = {r->source};
    bool ok = true;

    for (unsigned i = 0; i < r->n_servers; i++) {
        hosts[1 + i] = r->servers[i].host;
    }
    if (registry_host_addresses(hosts, 1 + r->n_servers, addresses, error, size)) {
        return false;
    }
    for (unsigned i = 0; ok && i < r->n_servers; i++) {
        struct perftest_server *s = &r->servers[i];

        ok = s->given || start_server(s, &addresses[1 + i], argv, error, size);
    }
    for (unsigned i = 0; ok && i < r->n_servers; i++) {
        ok = perftest_relay_connect(r, &r->servers[i], error, size);
    }
    return ok && start_client(r, &addresses[0], argv, error, size);
}

/* Waits for the end of a process, and puts what waitpid() says into '*status'.  False: it has not
 * ended within the time of an answer, or castbench is to end. */
static bool
wait_end(const struct perftest_relay *r, pid_t *pid, int *status)
{
    uint64_t end = now_ns() + r->timeout * (uint64_t) NS_PER_SEC;

    while (waitpid(*pid, status, WNOHANG) != *pid) {
        if (interrupt_signal() || now_ns() > end) {
            return false;
        }
        usleep(WAIT_END_US);
    }
    *pid = 0;
    return true;
}

/* All has been said: client and servers end by themselves. */
static bool
end_all(struct perftest_relay *r, char *error, size_t size)
{
    int status = 0;

    if (!wait_end(r, &r->client, &status) || status) {
        return refuse(error, size, "%s has not ended well", r->args->program);
    }
    for (unsigned i = 0; i < r->n_servers; i++) {
        if (r->servers[i].pid && (!wait_end(r, &r->servers[i].pid, &status) || status)) {
            return refuse(error, size, "the server of %s has not ended well", r->servers[i].host);
        }
    }
    return true;
}

static void
kill_one(pid_t pid)
{
    if (pid) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

/* Leaves nothing behind, whatever there is by now. */
static void
clean_up(struct perftest_relay *r)
{
    const char *const del[] = {"group", "del", r->group, "--if-exists", NULL};
    char error[512];

    kill_one(r->client);
    for (unsigned i = 0; i < r->n_servers; i++) {
        kill_one(r->servers[i].pid);
        if (r->servers[i].fd >= 0) {
            close(r->servers[i].fd);
        }
        if (r->servers[i].log >= 0) {
            close(r->servers[i].log);
        }
    }
    registry_watch_close(r->watch);
    if (r->group_made && castctl_run(del, error, sizeof error)) {
        printable_put(stderr, "castbench: ", "group %s stays: %s", r->group, error);
    }
}

static void
say_compared(const struct perftest_relay *r)
{
    unsigned n_local = 0;

    for (unsigned i = 0; i < r->n_servers; i++) {
        n_local += !r->servers[i].given;
    }
    if (r->n_compared) {
        printf(" %u of %u receivers compared: all hold the client's %u bytes\n", r->n_compared,
               r->n_servers, r->args->size);
    }
    if (n_local < r->n_servers) {
        printf(" %u on other machines: not compared\n", r->n_servers - n_local);
    }
}

int
perftest_main(int argc, char *argv[])
{
    static struct perftest_relay r;
    struct perftest_args args = {.argv = NULL};
    char error[512] = "";

    if (!parse(&r, &args, argc, argv, error, sizeof error)) {
        if (error[0]) {
            printable_put(stderr, "castbench: ", "%s", error);
        }
        return EXIT_USAGE;
    }
    interrupt_catch();
    bool ok = start_all(&r, args.argv, error, sizeof error)
              && perftest_relay_run(&r, error, sizeof error) && end_all(&r, error, sizeof error);
    clean_up(&r);
    if (!ok) {
        printable_put(stderr, "castbench: ", "%s", error);
        return EXIT_RUN;
    }
    say_compared(&r);
    return 0;
}
