/* SPDX-License-Identifier: Apache-2.0
 *
 * castbench serve: receivers of this machine, for a castbench on another one (see remote.h).
 *
 * Each connection is a receiver of a run, and has a process, the session.  That reads the run's
 * command line as castbench does, and starts the receiver's process, which takes the steps that the
 * other side asks for.  A session ends with its connection, and its receiver with it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/castbench/interrupt.h"
#include "bench/castbench/options.h"
#include "bench/castbench/remote-message.h"
#include "bench/castbench/remote.h"
#include "bench/castbench/values.h"
#include "lib/printable.h"
#include "version.h"

#define EXIT_USAGE    1
#define EXIT_RUN      2

#define MAX_ARGUMENTS 4096
#define TICK_MS       10
#define NEVER_S       1000000000 /* the other side decides when it has waited long enough. */

static const char usage[] =
    "usage: castbench serve [--listen ADDRESS] [--port PORT] [--db ADDRESS]\n"
    "Is the receivers of this machine, for castbench write|write-imm|send on the source's machine, whose\n"
    "receivers are HOST=ADDRESS[:PORT],...  Runs until it is ended.  Whoever can connect can use it.\n"
    "      --listen ADDRESS   of this machine (default: all of them)\n"
    "      --port PORT        (default " REMOTE_PORT ")\n"
    "      --db ADDRESS       registry (default: ROCECAST_DB, then castctl's own)\n"
    "  -h, --help  -V, --version\n"
    "exit status: 1 usage, 2 it cannot listen; after a signal 0\n";

enum { OPTION_LISTEN = 256, OPTION_PORT, OPTION_DB };

static const struct option long_options[] = {
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"port", required_argument, NULL, OPTION_PORT},
    {"db", required_argument, NULL, OPTION_DB},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

struct session {
    int fd;
    char **argv; /* what 'plan' points to. */
    struct plan plan;
    struct run_options options;
    struct run_ctx run;
    struct receiver_ctx receiver;
    struct worker worker;
    enum phase phase; /* of a step that lasts. */
    unsigned long n_looks;
};

/* The receiver's process reports within a step.  Meanwhile the other side may say that the step is
 * over; if it has gone, so has the session. */
static unsigned long
look(void *aux)
{
    struct session *s = aux;
    struct pollfd fd = {.fd = s->fd, .events = POLLIN};

    if (poll(&fd, 1, 0) > 0) {
        json_t *message = message_receive(s->fd);

        if (!message) {
            _exit(EXIT_RUN);
        }
        json_decref(message);
        if (write(s->run.shared->over[s->phase][1], "", 1) != 1) {
            _exit(EXIT_RUN);
        }
    }
    return ++s->n_looks;
}

static bool
take_step(struct session *s, char *error, size_t size)
{
    worker_go(&s->worker);
    return workers_await(&s->worker, 1, NEVER_S, TICK_MS, look, s, error, size);
}

/* Copies the command line of the other side. */
static bool
copy_arguments(struct session *s, const json_t *arguments, int *argc)
{
    size_t n = json_array_size(arguments);
    bool ok = n && n <= MAX_ARGUMENTS;

    s->argv = ok ? calloc(n + 1, sizeof *s->argv) : NULL;
    ok = s->argv;
    for (size_t i = 0; ok && i < n; i++) {
        const char *text = json_string_value(json_array_get(arguments, i));

        s->argv[i] = strdup(text ? text : "");
        ok = s->argv[i];
    }
    *argc = (int) n;
    return ok;
}

/* Reads that command line.  Its registry is for that machine, and not for this one. */
static bool
read_arguments(struct session *s, const json_t *message, char *error, size_t size)
{
    const char *db = getenv("ROCECAST_DB");
    char own_db[1024];
    int argc;

    snprintf(own_db, sizeof own_db, "%s", db ? db : "");
    if (!copy_arguments(s, json_object_get(message, "arguments"), &argc)) {
        return refuse(error, size, "no command line");
    }
    if (!options_parse(&s->plan, argc, s->argv, error, size)) {
        return false;
    }
    if (db) {
        setenv("ROCECAST_DB", own_db, 1);
    } else {
        unsetenv("ROCECAST_DB");
    }
    return true;
}

/* Which run of the command line, and which receiver. */
static bool
read_run(struct session *s, const json_t *message, char *error, size_t size)
{
    const char *scheme = json_string_value(json_object_get(message, "scheme"));
    struct run_options *o = &s->options;
    struct cell cell = {.scheme = SCHEME_MCAST};
    uint64_t receiver, n_replicas, bytes;

    if (!scheme || !scheme_from_name(scheme, &cell.scheme)
        || !message_number(message, "replicas", s->plan.base.n_receivers, &n_replicas)
        || !n_replicas || !message_number(message, "size", UINT32_MAX, &bytes)
        || !message_number(message, "receiver", n_replicas - 1, &receiver)) {
        return refuse(error, size, "no run of that command line");
    }
    cell.n_replicas = (unsigned) n_replicas;
    cell.size = (uint32_t) bytes;
    *o = plan_run_options(&s->plan, &cell);
    o->counted = (struct counter_options){.n_devices = 0};
    o->ib_dev = NULL;
    o->gid_index = -1;
    memset(o->servers, 0, sizeof o->servers);
    s->receiver.index = (unsigned) receiver;
    return run_check(o, error, size);
}

static json_t *
open_receiver(struct session *s, const json_t *message, char *error, size_t size)
{
    const char *version = json_string_value(json_object_get(message, "castbench"));

    if (!version || strcmp(version, ROCECAST_VERSION)) {
        refuse(error, size, "castbench serve has version %s, the source's castbench %s",
               ROCECAST_VERSION, version ? version : "none");
        return NULL;
    }
    if (!read_arguments(s, message, error, size) || !read_run(s, message, error, size)) {
        return NULL;
    }
    s->run =
        (struct run_ctx){.options = &s->options, .shared = shared_new(&s->options, error, size)};
    if (!s->run.shared
        || !receiver_start(&s->worker, &s->receiver, &s->run, s->receiver.index, error, size)
        || !take_step(s, error, size)) {
        return NULL;
    }
    const struct shared_member *me = &s->run.shared->members[1 + s->receiver.index];
    return json_pack("{s:o, s:I, s:I}", "qpn", message_list(me->qpn, s->options.qps), "rkey",
                     (json_int_t) me->rkey, "va", (json_int_t) me->va);
}

static json_t *
arm(struct session *s, const json_t *message, char *error, size_t size)
{
    struct shared *shared = s->run.shared;
    struct shared_member *me = &shared->members[1 + s->receiver.index];
    uint32_t listens[MAX_QPS];
    unsigned qps = s->options.qps;

    if (!message_read_groups(json_object_get(message, "groups"), shared->groups,
                             is_mcast(&s->run) ? qps : 0)
        || !message_numbers(message, "peer_qpn", me->child_qpn, qps)) {
        refuse(error, size, "no groups, or no queue pairs");
        return NULL;
    }
    if (!take_step(s, error, size)) {
        return NULL;
    }
    for (unsigned q = 0; q < qps; q++) {
        listens[q] = me->listens[q];
    }
    return json_pack("{s:o, s:I}", "listens", message_list(listens, qps), "connect_ns",
                     (json_int_t) me->connect_ns);
}

static json_t *
compare(struct session *s, const json_t *message, char *error, size_t size)
{
    struct shared *shared = s->run.shared;

    if (!message_number(message, "end", INT64_MAX, &shared->end)) {
        refuse(error, size, "no number of blocks");
        return NULL;
    }
    content_finish(&shared->content, shared->expected, (struct block_range){0, shared->end});
    return take_step(s, error, size) ? message_results(
               &shared->replicas[s->receiver.index], &shared->members[1 + s->receiver.index].count)
                                     : NULL;
}

/* The answer to a message; NULL: 'error' says why there is none. */
static json_t *
answer(struct session *s, const json_t *message, char *error, size_t size)
{
    const char *step = json_string_value(json_object_get(message, "step"));

    if (!step && !s->run.shared) {
        return open_receiver(s, message, error, size);
    }
    /* The receiver's process takes its steps in their order, whatever is said. */
    static const char *const order[N_RUN_STEPS] = {"open",  "arm",  "warmup",
                                                   "count", "work", "compare"};
    unsigned next = N_RUN_STEPS - s->worker.steps_left;
    if (!s->run.shared || !step || next == N_RUN_STEPS || strcmp(step, order[next])) {
        refuse(error, size, "a step that is not the next one");
        return NULL;
    }
    switch ((enum run_step) next) {
    case STEP_ARM: return arm(s, message, error, size);
    case STEP_COMPARE: return compare(s, message, error, size);
    case STEP_WARMUP: s->phase = PHASE_WARMUP; break;
    case STEP_WORK: s->phase = PHASE_WORK; break;
    case STEP_OPEN:
    case STEP_COUNT:
    case N_RUN_STEPS: break;
    }
    return take_step(s, error, size) ? json_object() : NULL;
}

/* Does all that a connection asks for, then ends the process. */
static void __attribute__((noreturn)) serve(int fd)
{
    static struct session s;
    char error[512];
    bool ok = true;

    s.fd = fd;
    while (ok) {
        json_t *message = message_receive(fd);
        const char *step = json_string_value(json_object_get(message, "step"));

        if (!message) {
            break;
        }
        if (!step || strcmp(step, "over")) { /* said just when the step had ended: nothing to do. */
            error[0] = '\0';
            json_t *said = answer(&s, message, error, sizeof error);
            ok = said;
            if (!ok) {
                /* The other side has the receiver's name already. */
                const char *colon = strstr(error, ": ");
                bool is_named = !strncmp(error, "receiver ", 9) && colon;
                said = json_pack("{s:s}", "error", is_named ? colon + 2 : error);
            }
            ok = message_send(fd, said) && ok;
        }
        json_decref(message);
    }
    worker_kill(&s.worker);
    _exit(ok ? 0 : EXIT_RUN);
}

static int
listen_at(const char *address, const char *port, char *error, size_t size)
{
    struct addrinfo hints = {.ai_family = address ? AF_UNSPEC : AF_INET6,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE},
                    *info;
    int status = getaddrinfo(address, port, &hints, &info), fd = -1;

    if (!status) {
        fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        status = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int))
                         || bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, MAX_RECEIVERS)
                     ? EAI_SYSTEM
                     : 0;
    }
    if (status) {
        refuse(error, size, "--listen %s --port %s: %s", address ? address : "::", port,
               status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
        fd = -1;
    }
    return fd;
}

static void
accept_all(int listener)
{
    pid_t parent = getpid();

    while (!interrupt_signal()) {
        struct pollfd pfd = {.fd = listener, .events = POLLIN};
        int fd = poll(&pfd, 1, 1000) > 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;

        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (fd < 0) {
            continue;
        }
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent) {
                serve(fd);
            }
            _exit(EXIT_RUN);
        }
        close(fd);
    }
}

int
serve_main(int argc, char *argv[])
{
    const char *address = NULL, *port = REMOTE_PORT;
    char error[512];
    uint64_t v;

    optind = 0;
    for (int c; (c = getopt_long(argc, argv, "hV", long_options, NULL)) != -1;) {
        switch (c) {
        case OPTION_LISTEN: address = optarg; break;
        case OPTION_PORT: port = optarg; break;
        case OPTION_DB: setenv("ROCECAST_DB", optarg, 1); break;
        case 'h': fputs(usage, stdout); return 0;
        case 'V': printf(ROCECAST_VERSION_LINE, "castbench"); return 0;
        default: return EXIT_USAGE; /* getopt has said why. */
        }
    }
    if (optind < argc) {
        printable_put(stderr, "castbench: ", "unexpected argument '%s' (castbench serve --help)",
                      argv[optind]);
        return EXIT_USAGE;
    }
    if (!value_number(port, 1, UINT16_MAX, &v)) {
        printable_put(stderr, "castbench: ", "--port %s: must be 1..65535", port);
        return EXIT_USAGE;
    }
    int listener = listen_at(address, port, error, sizeof error);
    if (listener < 0) {
        printable_put(stderr, "castbench: ", "%s", error);
        return EXIT_RUN;
    }
    interrupt_catch();
    accept_all(listener);
    return 0;
}
