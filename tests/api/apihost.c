/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that librocecast must leave as it is: with a thread, signal
 * handlers and an event loop of its own.  It does what standard input says, a
 * command a line, and answers each with one line; events come as lines between.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "librocecast/rocecast.h"

#define MAX_ARGS           12
#define N_REQUESTS         256
#define N_THREADS          8

/* Of structs in version 0.1.0. */
#define EARLIER_EPOCH_SIZE offsetof(struct rocecast_epoch, had_source)
#define EARLIER_EVENT_SIZE offsetof(struct rocecast_event, place)
#define MAX_MEMBERS        16

static size_t event_size = sizeof(struct rocecast_event);
static struct rocecast_epoch seen; /* what "see" has returned. */
/* What was started, and not closed, and its queue pair if it has one. */
static struct rocecast_request *requests[N_REQUESTS];
static struct ibv_qp queue_pairs[N_REQUESTS];
static bool deaf; /* asks for no events. */
static struct rocecast *r;
static struct rocecast_group *g;
static pthread_t main_thread, own_thread;
static atomic_uint n_signals, n_foreign; /* handled; by threads that are not the program's. */

static void
answer(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static void
answer_status(int status)
{
    if (status) {
        answer("error %d %s", status, rocecast_error());
    } else {
        answer("ok");
    }
}

static void
answer_epoch(int status, const struct rocecast_epoch *e)
{
    char proxy[INET6_ADDRSTRLEN];

    if (status) {
        answer_status(status);
    } else {
        inet_ntop(AF_INET6, &e->proxy, proxy, sizeof proxy);
        answer("ok epoch=%" PRIu32 " proxy=%s qpn=%" PRIu32 " psn=%" PRIu32 " mtu=%" PRIu32
               " timeout=%" PRIu32 " rkey=%" PRIu32 " len=%" PRIu64 " connect_port=%" PRIu32,
               e->epoch, proxy, e->designated_qpn, e->start_psn, e->mtu, e->qp_timeout,
               e->designated_rkey, e->region_len, e->connect_port);
    }
}

/*
 * The program's own signals and thread.
 */

static struct sigaction actions[NSIG];
static sigset_t main_mask;
static unsigned n_threads, n_files, n_inherited;

static void
handler(int number)
{
    (void) number;
    n_signals++;
    n_foreign +=
        !pthread_equal(pthread_self(), main_thread) && !pthread_equal(pthread_self(), own_thread);
}

static void *
own_thread_main(void *aux)
{
    sigset_t set;
    int number;

    (void) aux;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    while (!sigwait(&set, &number)) {
        kill(getpid(), SIGUSR1);
    }
    return NULL;
}

static unsigned
count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned n = 0;

    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

/* The kernel fills in only a part of a sigset_t. */
static bool
same_set(const sigset_t *a, const sigset_t *b)
{
    bool same = true;

    for (int i = 1; i < NSIG; i++) {
        same = same && sigismember(a, i) == sigismember(b, i);
    }
    return same;
}

/* Open files that a program started by exec() gets. */
static unsigned
count_inherited(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);

        n += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return n;
}

static void
note_state(void)
{
    for (int i = 1; i < NSIG; i++) {
        sigaction(i, NULL, &actions[i]);
    }
    pthread_sigmask(SIG_BLOCK, NULL, &main_mask);
    n_threads = count_entries("/proc/self/task");
    n_files = count_entries("/proc/self/fd");
    n_inherited = count_inherited();
}

static void
start_own(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigset_t set;

    main_thread = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_flags |= SA_NODEFER;
    sigaction(SIGINT, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&own_thread, NULL, own_thread_main, NULL);
    note_state();
}

/* A thread that was joined may be in /proc for a moment. */
static unsigned
count_threads(unsigned wanted)
{
    for (int i = 0; i < 100 && count_entries("/proc/self/task") != wanted; i++) {
        usleep(10000);
    }
    return count_entries("/proc/self/task");
}

/* Is all as it was?  'closed': the library has been left as well. */
static void
check_unharmed(bool closed)
{
    struct sigaction now;
    sigset_t mask;
    int status;

    for (int i = 1; i < NSIG; i++) {
        sigaction(i, NULL, &now);
        if (now.sa_handler != actions[i].sa_handler || now.sa_flags != actions[i].sa_flags
            || !same_set(&now.sa_mask, &actions[i].sa_mask)) {
            answer("error: signal %d is handled in another way", i);
            return;
        }
    }
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (!same_set(&mask, &main_mask)) {
        answer("error: the signal mask is another");
    } else if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD) {
        answer("error: there are child processes");
    } else if (count_threads(n_threads + !closed) != n_threads + !closed) {
        answer("error: %u threads instead of %u", count_entries("/proc/self/task"),
               n_threads + !closed);
    } else if (count_inherited() != n_inherited) {
        answer("error: exec() passes on %u files instead of %u", count_inherited(), n_inherited);
    } else if (closed && count_entries("/proc/self/fd") != n_files) {
        answer("error: %u open files instead of %u", count_entries("/proc/self/fd"), n_files);
    } else {
        answer("ok signals=%u foreign=%u", n_signals, n_foreign);
    }
}

/*
 * Commands.
 */

/* Uses everything that may be used in parallel. */
static void *
storm_main(void *aux)
{
    const char *group = aux;

    for (int i = 0; i < 10; i++) {
        struct rocecast_epoch e = {.size = sizeof e};
        struct rocecast_event event = {.size = sizeof event};
        struct rocecast_group *own, *shared;
        struct rocecast *mine;

        if (rocecast_open(NULL, 30000, &mine) || rocecast_group_open(mine, group, 30000, &own)
            || rocecast_group_open(r, group, 30000, &shared) || rocecast_get_epoch(own, &e)
            || rocecast_next_event(shared, &event) || rocecast_next_event(g, &event)
            || rocecast_wait_ready(shared, 1, 1, 30000, &e)) {
            return strdup(rocecast_error());
        }
        if (rocecast_wait_ready(own, 1, 1000, 10, NULL) != ETIMEDOUT
            || strncmp(rocecast_error(), "wait: not in 0.01 s", 19) != 0) {
            return strdup("a wait for 1000 members did not time out");
        }
        rocecast_group_close(shared);
        rocecast_close(mine);
    }
    return NULL;
}

static void
storm(char *group)
{
    pthread_t threads[N_THREADS];
    char *first = NULL;

    for (int i = 0; i < N_THREADS; i++) {
        pthread_create(&threads[i], NULL, storm_main, group);
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *error;

        pthread_join(threads[i], &error);
        first = first ? first : error;
    }
    answer("%s", first ? first : "ok");
}

static void
in_child(void)
{
    struct rocecast_epoch e = {.size = sizeof e};
    struct rocecast_event event = {.size = sizeof event};
    struct rocecast_request *request, *pending;
    struct rocecast_group *other_group;
    struct rocecast *other;
    int status;

    if (rocecast_source_set_start(g, "nosuch", 18, NULL, 30000, &pending)) {
        answer("error: nothing could be started: %s", rocecast_error());
        return;
    }
    if (!fork()) {
        alarm(30); /* nothing may hang. */
        if (rocecast_open(NULL, 1000, &other) != EPERM
            || rocecast_group_open(r, "g", 1000, &other_group) != EPERM
            || rocecast_member_leave_start(g, "r1", 1000, &request) != EPERM
            || rocecast_request_poll(pending, &e) != EPERM
            || rocecast_request_wait(pending, &e) != EPERM || rocecast_get_epoch(g, &e) != EPERM
            || rocecast_next_event(g, &event) != EPERM
            || rocecast_wait_ready(g, 1, 1, 1000, &e) != EPERM) {
            _exit(1);
        }
        rocecast_request_close(pending);
        rocecast_group_close(g);
        rocecast_close(r);
        _exit(0);
    }
    wait(&status);
    rocecast_request_close(pending);
    answer(status ? "error: the child could use the library" : "ok");
}

/* Sizes that are too small, and one of a later version. */
static void
sizes(void)
{
    struct rocecast_epoch e = {.size = EARLIER_EPOCH_SIZE - 1};
    struct rocecast_epoch earlier = {.size = EARLIER_EPOCH_SIZE, .had_source = 77};
    struct rocecast_event event = {.size = EARLIER_EVENT_SIZE - 1};
    struct rocecast_member m = {.size = 1, .host = "r1", .qpn = 17};
    struct rocecast_member_status status;
    struct rocecast_request *request = (void *) &m;
    size_t none = 0, one = 1;
    struct {
        struct rocecast_epoch e;
        uint64_t later;
    } larger = {.e.size = sizeof larger, .later = 1};

    if (rocecast_get_epoch(g, &e) != EINVAL || rocecast_next_event(g, &event) != EINVAL
        || rocecast_source_set(g, "h0", 18, 30000, &e) != EINVAL
        || rocecast_source_set_if(g, "h0", 18, &earlier, 30000, &seen) != EINVAL
        || rocecast_wait_ready(g, 0, 0, 30000, &e) != EINVAL
        || rocecast_member_add(g, &m, 0) != EINVAL
        || rocecast_get_members(g, &status, sizeof status - 1, &one) != EINVAL) {
        answer("error: too small a size was taken");
    } else if (rocecast_get_epoch(g, &earlier) || earlier.size != EARLIER_EPOCH_SIZE
               || !earlier.epoch || earlier.had_source != 77) {
        answer("error: a size of an earlier version was not taken, or written past");
    } else if (rocecast_source_set_if(g, "h0", 18, NULL, 30000, &earlier) != EINVAL
               || rocecast_get_epoch(g, NULL) != EINVAL || rocecast_next_event(g, NULL) != EINVAL
               || rocecast_member_add(g, NULL, 0) != EINVAL
               || rocecast_get_members(g, &status, sizeof status, NULL) != EINVAL
               || rocecast_get_members(g, NULL, sizeof status, &one) != EINVAL) {
        answer("error: NULL was taken");
    } else if (rocecast_member_add_start(g, &m, 0, &request) != EINVAL || request
               || rocecast_member_add_start(g, NULL, 0, &request) != EINVAL
               || rocecast_member_leave_start(g, NULL, 0, &request) != EINVAL
               || rocecast_member_leave_start(g, "r1", 0, NULL) != EINVAL
               || rocecast_source_set_start(g, "h0", 18, &earlier, 0, &request) != EINVAL
               || rocecast_source_join_start(g, "h0", NULL, NULL, 0, &request) != EINVAL
               || rocecast_member_join_start(g, "r1", NULL, NULL, 0, 0, &request) != EINVAL
               || request || rocecast_request_poll(NULL, NULL) != EINVAL
               || rocecast_request_wait(NULL, NULL) != EINVAL || rocecast_request_fd(NULL) != -1) {
        answer("error: a request that cannot be was started");
    } else if (rocecast_get_members(g, NULL, sizeof status, &none)) {
        answer("error: members could not be counted: %s", rocecast_error());
    } else if (rocecast_get_epoch(g, &larger.e) || larger.e.size != sizeof larger || larger.later) {
        answer("error: a larger size was not taken");
    } else {
        answer("ok");
    }
}

/* Calls everything while pthread_cancel() is pending. */
static void *
cancelled_main(void *aux)
{
    struct rocecast_epoch e = {.size = sizeof e};
    struct rocecast_event event = {.size = sizeof event};
    struct rocecast_member m = {
        .size = sizeof m, .host = "r1", .qpn = 17, .epoch = 1, .length = 4096};
    struct rocecast_group *group;
    struct in6_addr address;
    struct rocecast *mine;
    sem_t *ready = aux;

    sem_post(&ready[0]);
    while (sem_trywait(&ready[1])) {
        sched_yield();
    }
    if (rocecast_open(NULL, 30000, &mine) || rocecast_host_address(mine, "h0", 30000, &address)
        || rocecast_group_open(mine, "g", 30000, &group)
        || rocecast_source_set(group, "h0", 18, 30000, &e)
        || rocecast_member_add(group, &m, 30000)) {
        return NULL;
    }
    /* The removal of the source undoes readiness: an event, whose descriptor is read. */
    rocecast_source_del(group, 30000);
    rocecast_member_leave(group, "r1", 0);
    rocecast_wait_ready(group, 1, 1, 0, &e);
    rocecast_get_epoch(group, &e);
    rocecast_qp_init(NULL, ROCECAST_SOURCE);
    while (!rocecast_next_event(group, &event) && event.type != ROCECAST_EVENT_NONE) {
        continue;
    }
    rocecast_group_close(group);
    rocecast_close(mine);
    return &n_signals; /* anything but NULL: nothing of it was a cancellation point. */
}

static void
cancel(void)
{
    sem_t ready[2];
    pthread_t thread;
    void *result;

    sem_init(&ready[0], 0, 0);
    sem_init(&ready[1], 0, 0);
    pthread_create(&thread, NULL, cancelled_main, ready);
    sem_wait(&ready[0]);
    pthread_cancel(thread);
    sem_post(&ready[1]);
    pthread_join(thread, &result);
    answer(result == PTHREAD_CANCELED ? "error: a function was left in the middle"
           : result                   ? "ok"
                                      : "error: a function failed");
}

static struct rocecast_member
parse_member(char *const argv[])
{
    return (struct rocecast_member){
        .size = sizeof(struct rocecast_member),
        .host = argv[1],
        .qpn = (uint32_t) strtoul(argv[2], NULL, 0),
        .epoch = (uint32_t) strtoul(argv[3], NULL, 0),
        .rkey = (uint32_t) strtoul(argv[4], NULL, 0),
        .address = strtoull(argv[5], NULL, 0),
        .length = strtoull(argv[6], NULL, 0),
        .flags = argv[8] ? strtoull(argv[8], NULL, 0) : 0,
    };
}

static void
add_member(char *const argv[])
{
    struct rocecast_member m = parse_member(argv);

    answer_status(rocecast_member_add(g, &m, atoi(argv[7])));
}

/* "@PSN/MESSAGE", as far as it is known. */
static const char *
place_text(const struct rocecast_place *place)
{
    static char text[40];
    size_t n = 0;

    text[0] = '\0';
    if (place->known & ROCECAST_PLACE_PSN) {
        n += (size_t) snprintf(text, sizeof text, "@%" PRIu32, place->psn);
    }
    if (place->known & ROCECAST_PLACE_MESSAGE) {
        snprintf(&text[n], sizeof text - n, "/%" PRIu64, place->message);
    }
    return text;
}

/* Members as the library has them, in one line. */
static void
print_members(void)
{
    static const char *const states[] = {"left", "waiting", "active", "leaving", "lost", "failed"};
    struct rocecast_member_status all[MAX_MEMBERS];
    char line[4096] = "ok";
    size_t n = MAX_MEMBERS;
    int status = rocecast_get_members(g, all, sizeof *all, &n);

    for (size_t i = 0; !status && i < n; i++) {
        const struct rocecast_member_status *m = &all[i];
        size_t used = strlen(line);

        snprintf(&line[used], sizeof line - used, "; %s %s 0x%" PRIx32 " first%s", m->host,
                 states[m->state], m->qpn, place_text(&m->first));
        used = strlen(line);
        snprintf(&line[used], sizeof line - used, " good%s %s", place_text(&m->good), m->text);
    }
    if (status) {
        answer_status(status);
    } else {
        answer("%s", line);
    }
}

/* Needs a libibverbs, maybe a made-up one. */
static void
join(const char *host, bool source)
{
    struct rocecast_epoch e = {.size = sizeof e};
    struct ibv_qp qp = {.qp_num = 0x21};
    struct ibv_mr mr = {.addr = (void *) (uintptr_t) 0x7000, .length = 8192, .rkey = 9};
    int status = rocecast_device_open(r, host, 30000, &qp.context);

    status = status ? status : rocecast_qp_init(&qp, source ? ROCECAST_SOURCE : ROCECAST_RECEIVER);
    if (!status) {
        status = source ? rocecast_source_join(g, host, &qp, 30000, &e)
                        : rocecast_member_join(g, host, &qp, &mr, 30000, &e);
    }
    answer_epoch(status, &e);
}

/* The same without blocking, to the point where the request is started. */
static int
join_start(const char *host, bool source, int timeout_ms, struct ibv_qp *qp,
           struct rocecast_request **request)
{
    struct ibv_mr mr = {.addr = (void *) (uintptr_t) 0x7000, .length = 8192, .rkey = 9};

    *qp = (struct ibv_qp){.qp_num = 0x21};
    int status = rocecast_device_open(r, host, 30000, &qp->context);
    status = status ? status : rocecast_qp_init(qp, source ? ROCECAST_SOURCE : ROCECAST_RECEIVER);
    return status   ? status
           : source ? rocecast_source_join_start(g, host, qp, NULL, timeout_ms, request)
                    : rocecast_member_join_start(g, host, qp, &mr, 0, timeout_ms, request);
}

/* "start SLOT", and what a command without "start" would be. */
static void
start(size_t slot, int argc, char *argv[])
{
    struct rocecast_request **request = &requests[slot];
    const char *what = argv[0];
    int timeout_ms = atoi(argv[argc - 1]), status = ENOSYS;

    if (!strcmp(what, "member") && argc == 8) {
        struct rocecast_member m = parse_member(argv);

        status = rocecast_member_add_start(g, &m, timeout_ms, request);
        memset(&m, 0xff, sizeof m); /* it was copied. */
    } else if (!strcmp(what, "leave") && argc == 3) {
        status = rocecast_member_leave_start(g, argv[1], timeout_ms, request);
    } else if (!strncmp(what, "source", strlen("source")) && argc == 4) {
        status = rocecast_source_set_start(g, argv[1], (uint32_t) strtoul(argv[2], NULL, 0),
                                           strcmp(what, "source-if") ? NULL : &seen, timeout_ms,
                                           request);
    } else if (!strcmp(what, "join") && argc == 4) {
        status = join_start(argv[1], !strcmp(argv[2], "source"), timeout_ms, &queue_pairs[slot],
                            request);
    }
    answer_status(status);
}

/* Goes on with a request, and closes it if it has ended. */
static void
go_on(size_t slot)
{
    struct rocecast_epoch e = {.size = sizeof e}, again = {.size = sizeof again};
    int status = rocecast_request_poll(requests[slot], &e);

    if (status == EINPROGRESS) {
        return;
    }
    printf("event done %zu ", slot);
    answer_epoch(status, &e);
    if (rocecast_request_poll(requests[slot], &again) != status
        || rocecast_request_wait(requests[slot], &again) != status
        || memcmp(&e, &again, sizeof e) != 0) {
        answer("error: a request ends in two ways");
    }
    rocecast_request_close(requests[slot]);
    requests[slot] = NULL;
}

static void
host_address(const char *host)
{
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];
    int status = rocecast_host_address(r, host, 30000, &address);

    if (status) {
        answer_status(status);
    } else {
        answer("ok %s", inet_ntop(AF_INET6, &address, text, sizeof text));
    }
}

static bool
run(int argc, char *argv[])
{
    struct rocecast_epoch e = {.size = sizeof e};
    const char *command = argv[0];

    if (!strcmp(command, "open") && argc == 3) {
        answer_status(rocecast_open(strcmp(argv[1], "-") ? argv[1] : NULL, atoi(argv[2]), &r));
    } else if (!strcmp(command, "group") && argc == 3) {
        answer_status(rocecast_group_open(r, argv[1], atoi(argv[2]), &g));
    } else if (!strcmp(command, "add-group") && argc > 1) {
        answer_status(rocecast_group_add(r, argv[1], (const char *const *) &argv[2], 30000));
    } else if (!strcmp(command, "address") && argc == 2) {
        host_address(argv[1]);
    } else if (!strcmp(command, "epoch")) {
        answer_epoch(rocecast_get_epoch(g, &e), &e);
    } else if (!strcmp(command, "source") && argc == 4) {
        answer_epoch(rocecast_source_set(g, argv[1], (uint32_t) strtoul(argv[2], NULL, 0),
                                         atoi(argv[3]), &e),
                     &e);
    } else if (!strcmp(command, "see")) {
        seen = (struct rocecast_epoch){.size = sizeof seen};
        answer_epoch(rocecast_get_epoch(g, &seen), &seen);
    } else if (!strcmp(command, "source-if") && argc == 4) {
        answer_epoch(rocecast_source_set_if(g, argv[1], (uint32_t) strtoul(argv[2], NULL, 0), &seen,
                                            atoi(argv[3]), &e),
                     &e);
    } else if (!strcmp(command, "unsource")) {
        answer_status(rocecast_source_del(g, 30000));
    } else if (!strcmp(command, "member") && (argc == 8 || argc == 9)) {
        add_member(argv);
    } else if (!strcmp(command, "listen") && argc == 6) {
        answer_status(rocecast_member_listen(g, argv[1], (uint16_t) atoi(argv[2]),
                                             strcmp(argv[3], "-") ? argv[3] : NULL,
                                             strtoull(argv[4], NULL, 0), atoi(argv[5])));
    } else if (!strcmp(command, "leave") && argc == 3) {
        answer_status(rocecast_member_leave(g, argv[1], atoi(argv[2])));
    } else if (!strcmp(command, "wait") && argc == 4) {
        answer_epoch(rocecast_wait_ready(g, (uint32_t) strtoul(argv[1], NULL, 0),
                                         (uint32_t) strtoul(argv[2], NULL, 0), atoi(argv[3]), &e),
                     &e);
    } else if (!strcmp(command, "storm") && argc == 2) {
        storm(argv[1]);
    } else if (!strcmp(command, "child")) {
        in_child();
    } else if (!strcmp(command, "sizes")) {
        sizes();
    } else if (!strcmp(command, "cancel")) {
        cancel();
    } else if (!strcmp(command, "join") && argc == 3) {
        join(argv[1], !strcmp(argv[2], "source"));
    } else if (!strcmp(command, "ecn") && argc == 2) {
        answer_status(rocecast_qp_set_ecn(g, atoi(argv[1])));
    } else if (!strcmp(command, "start") && argc > 3 && atoi(argv[1]) < N_REQUESTS) {
        start((size_t) atoi(argv[1]), argc - 2, &argv[2]);
    } else if (!strcmp(command, "standing") && argc == 2) {
        answer_status(rocecast_request_poll(requests[atoi(argv[1])], NULL));
    } else if (!strcmp(command, "await") && argc == 2) {
        answer_epoch(rocecast_request_wait(requests[atoi(argv[1])], &e), &e);
    } else if (!strcmp(command, "drop") && argc == 2) {
        rocecast_request_close(requests[atoi(argv[1])]);
        requests[atoi(argv[1])] = NULL;
        answer("ok");
    } else if (!strcmp(command, "ungroup")) {
        rocecast_group_close(g);
        g = NULL;
        memset(requests, 0, sizeof requests);
        answer("ok");
    } else if (!strcmp(command, "members")) {
        print_members();
    } else if (!strcmp(command, "deaf") || !strcmp(command, "hear")) {
        deaf = !strcmp(command, "deaf");
        answer("ok");
    } else if (!strcmp(command, "earlier")) {
        event_size = EARLIER_EVENT_SIZE;
        answer("ok");
    } else if (!strcmp(command, "qp")) {
        answer_status(rocecast_qp_init(NULL, ROCECAST_SOURCE));
    } else if (!strcmp(command, "unharmed")) {
        check_unharmed(!r);
    } else if (!strcmp(command, "close")) {
        rocecast_close(r);
        r = NULL;
        g = NULL;
        memset(requests, 0, sizeof requests);
        answer("ok");
    } else {
        return false;
    }
    return true;
}

static void
print_events(void)
{
    static const char *const names[] = {
        "none", "ready", "not-ready", "epoch",   "gone", "active",   "lost",  "failed",
        "away", "back",  "joined",    "waiting", "left", "degraded", "whole", "restart-needed"};
    struct rocecast_event event = {.size = event_size};

    while (!rocecast_next_event(g, &event) && event.type != ROCECAST_EVENT_NONE) {
        answer("event %s %" PRIu32 " %s%s %s", names[event.type], event.epoch, event.host,
               place_text(&event.place), event.text);
    }
}

/* Reads a line from standard input by byte: poll() must see what is left.  False: end. */
static bool
read_command(void)
{
    char line[512], *argv[MAX_ARGS + 1], *save = NULL;
    size_t n = 0;
    int argc = 0;

    while (read(STDIN_FILENO, &line[n], 1) == 1) {
        if (line[n] == '\n' || n == sizeof line - 1) {
            line[n] = '\0';
            for (char *word = strtok_r(line, " ", &save); word && argc < MAX_ARGS;
                 word = strtok_r(NULL, " ", &save)) {
                argv[argc++] = word;
            }
            argv[argc] = NULL;
            if (!argc || !run(argc, argv)) {
                answer("error: unknown command");
            }
            return true;
        }
        n++;
    }
    return false;
}

int
main(void)
{
    start_own();
    for (;;) {
        struct pollfd fds[2 + N_REQUESTS] = {
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = g && !deaf ? rocecast_fd(g) : -1, .events = POLLIN},
        };

        for (size_t i = 0; i < N_REQUESTS; i++) {
            fds[2 + i] =
                (struct pollfd){.fd = requests[i] && !deaf ? rocecast_request_fd(requests[i]) : -1,
                                .events = POLLIN};
        }
        if (poll(fds, 2 + N_REQUESTS, -1) < 0 && errno != EINTR) {
            return 1;
        }
        for (size_t i = 0; i < N_REQUESTS; i++) {
            if (fds[2 + i].revents) {
                go_on(i);
            }
        }
        if (fds[1].revents) {
            print_events();
        } else if (fds[0].revents && !read_command()) {
            return 0;
        }
    }
}
