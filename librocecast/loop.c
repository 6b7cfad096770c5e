/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop: the library's own thread, and all that libopenvswitch does.
 *
 * It runs as long as any connection exists.  It starts with all signals blocked:
 * neither the program's signals nor SIGPIPE from a broken connection to the
 * registry are delivered to it.  It is a plain thread, not one of
 * libopenvswitch's: with one of those libopenvswitch would count itself
 * multi-threaded and start a thread for RCU that never ends.
 *
 * A call has three steps: write, wait until castd has taken the request up,
 * check.  A connection has one transaction under way at a time; one that met
 * another client's is tried again.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ctl/registry/paths.h"
#include "ctl/registry/request.h"
#include "librocecast/internal.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"

/* 'life' covers start and end of the thread, 'lock' all that internal.h says. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static unsigned int n_users;   /* under 'life'. */
static _Atomic pid_t loop_pid; /* of the process that has the thread. */
static int wake_fd = -1;
static bool stopping;
static struct rocecast *connections;

void
loop_lock(void)
{
    pthread_mutex_lock(&lock);
}

void
loop_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void
wake(void)
{
    uint64_t one = 1;

    /* Only a full counter makes this fail, and that wakes as well. */
    ignore(write(wake_fd, &one, sizeof one));
}

/*
 * Calls.
 */

/* Ends the call's transaction. */
static void
release(struct call *call)
{
    ovsdb_idl_txn_destroy(call->txn);
    call->txn = NULL;
    call->r->writer = NULL;
}

static void OVS_PRINTF_FORMAT(3, 4) finish(struct call *call, int error, const char *format, ...)
{
    char text[ERROR_SIZE - 64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(call->text, sizeof call->text, "%s: %s", call->class->name, text);
    if (call->txn) {
        release(call);
        poll_immediate_wake(); /* for those that wait for their turn. */
    }
    call->error = error;
    call->done = true;
    LIST_REMOVE(call->r->calls, call);
    if (call->done_fd >= 0) {
        eventfd_write(call->done_fd, 1);
    }
    pthread_cond_broadcast(&answered);
}

/* Remembers what the call waits for.  Takes 'why'. */
static void
not_yet(struct call *call, char *why)
{
    snprintf(call->text, sizeof call->text, "%s", why);
    free(why);
}

/* Calls a class's write() or check().  True: it returned 0, the call goes on. */
static bool
go_on(struct call *call, int (*function)(struct call *, char **whyp))
{
    char *why = NULL;
    int error = function(call, &why);

    if (error == EAGAIN || error == EBUSY) {
        not_yet(call, why);
    } else if (error) {
        finish(call, error, "%s", why);
        free(why);
    }
    return !error;
}

static void
begin(struct call *call)
{
    struct rocecast *r = call->r;

    if (!r->connected || !r->follows || r->writer) {
        return;
    }
    r->writer = call;
    call->txn = ovsdb_idl_txn_create(r->idl);
    ovsdb_idl_txn_add_comment(call->txn, "librocecast: %s", call->class->name);
    if (go_on(call, call->class->write)) {
        request_number(r->idl, call->txn, false);
        call->tried = true;
    } else if (!call->done) {
        release(call);
    }
}

static void
commit(struct call *call)
{
    struct rocecast *r = call->r;
    enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(call->txn);

    if (status == TXN_INCOMPLETE) {
        return;
    }
    if (status == TXN_SUCCESS || status == TXN_UNCHANGED) {
        call->number = request_get_number(r->idl, call->txn, status);
    } else if (status != TXN_TRY_AGAIN) {
        finish(call, EIO, "the registry refused it: %s", ovsdb_idl_txn_get_error(call->txn));
        return;
    }
    release(call);
    poll_immediate_wake(); /* for those that wait for their turn, or to try again. */
}

static bool
is_taken_up(struct call *call)
{
    const struct rrec_global *global = rrec_global_first(call->r->idl);

    if (global && global->nb_cfg >= call->number) {
        return true;
    }
    not_yet(call, xasprintf("registry reachable, but castd has not taken up request %" PRId64
                            " (nb_cfg %" PRId64 ")",
                            call->number, global ? global->nb_cfg : 0));
    return false;
}

static void
call_run(struct call *call)
{
    const struct call_class *class = call->class;

    if (call->cancelled) {
        finish(call, ECANCELED, "cancelled");
        return;
    }
    if (class->write && !call->number) {
        if (!call->txn) {
            begin(call);
        }
        if (call->txn) {
            commit(call);
        }
    }
    bool current = (call->r->connected && call->r->follows) || class == &call_open;
    if (!call->done && current && (!class->write || (call->number && is_taken_up(call)))
        && (!class->check || go_on(call, class->check))) {
        finish(call, 0, "done");
    }
    if (!call->done && time_msec() >= call->deadline) {
        char *standing = xstrdup(call->text);
        const char *missing = !call->r->connected ? "the registry is unreachable"
                              : !current          ? "the registry has yet to show the group"
                                                  : "";

        finish(call, ETIMEDOUT, "not in %g s: %s%s%s", call->timeout_ms / 1000.0, missing,
               missing[0] && standing[0] ? "; " : "", standing);
        free(standing);
    }
}

/*
 * Connections.
 */

static void
monitor(struct ovsdb_idl *idl)
{
    ovsdb_idl_add_column(idl, &rrec_global_col_next_cfg);
    ovsdb_idl_add_column(idl, &rrec_global_col_nb_cfg);
    for (size_t i = 0; i < RREC_HOST_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &rrec_host_columns[i]);
    }
    for (size_t i = 0; i < RREC_GROUP_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &rrec_group_columns[i]);
    }
    for (size_t i = 0; i < RREC_SOURCE_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &rrec_source_columns[i]);
    }
    for (size_t i = 0; i < RREC_MEMBER_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &rrec_member_columns[i]);
    }
    for (size_t i = 0; i < RREC_LISTENER_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &rrec_listener_columns[i]);
    }
}

static void
connection_close(struct rocecast *r)
{
    if (r->idl) {
        registry_reach_uninit(&r->reach);
        ovsdb_idl_destroy(r->idl);
        r->idl = NULL;
    }
    LIST_REMOVE(connections, r);
    r->closed = true;
    pthread_cond_broadcast(&answered);
}

/* Makes no IDL if the registry's name is nonsense; call_open says so. */
static void
connection_start(struct rocecast *r)
{
    char *why = NULL;

    if (!r->db) {
        r->db = rocecast_default_db();
    }
    if (!remote_check(r->db, &why)) {
        r->idl = ovsdb_idl_create(r->db, &rrec_idl_class, false, true);
        monitor(r->idl);
        registry_reach_init(&r->reach, r->idl, r->db);
    }
    free(why);
}

static void
connection_update(struct rocecast *r)
{
    bool followed = r->follows;

    registry_reach_run(&r->reach);
    follow_update(r);
    bool connected = registry_reach_is_served(&r->reach);
    unsigned int seqno = ovsdb_idl_get_seqno(r->idl);
    if (connected != r->connected || seqno != r->seqno || r->follows != followed) {
        r->connected = connected;
        r->seqno = seqno;
        for (struct rocecast_group *group = r->groups; group; group = group->next) {
            view_refresh(group);
        }
    }
}

static void
connection_run(struct rocecast *r)
{
    if (r->closing) {
        connection_close(r);
        return;
    }
    if (!r->idl) {
        connection_start(r);
    }
    if (r->idl) {
        connection_update(r);
    }
    for (struct call *call = r->calls, *next; call; call = next) {
        next = call->next;
        call_run(call);
    }
}
static void
connection_wait(const struct rocecast *r)
{
    if (r->idl) {
        registry_reach_wait(&r->reach);
    }
    for (const struct call *call = r->calls; call; call = call->next) {
        if (call->txn) {
            ovsdb_idl_txn_wait(call->txn);
        }
        if (call->deadline != LLONG_MAX) {
            poll_timer_wait_until(call->deadline);
        }
    }
}

/*
 * The thread.
 */

static void *
loop_main(void *aux OVS_UNUSED)
{
    uint64_t count;

    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    loop_lock();
    while (!stopping) {
        for (struct rocecast *r = connections, *next; r; r = next) {
            next = r->next;
            connection_run(r);
        }
        for (const struct rocecast *r = connections; r; r = r->next) {
            connection_wait(r);
        }
        poll_fd_wait(wake_fd, POLLIN);
        loop_unlock();
        poll_block();
        loop_lock();
        ignore(read(wake_fd, &count, sizeof count));
    }
    loop_unlock();
    return NULL;
}

static int
start(void)
{
    sigset_t all, old;

    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_fd < 0) {
        return api_fail(errno, "open: eventfd: %s", strerror(errno));
    }
    stopping = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(&thread, NULL, loop_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error) {
        close(wake_fd);
        return api_fail(error, "open: cannot start a thread: %s", strerror(error));
    }
    pthread_setname_np(thread, "rocecast");
    loop_pid = getpid();
    return 0;
}

int
loop_check_process(void)
{
    pid_t pid = loop_pid;

    return pid && pid != getpid()
               ? api_fail(EPERM, "not in a child process of the one that opened its connections")
               : 0;
}

int
loop_get(void)
{
    int error = loop_check_process();

    if (!error) {
        pthread_mutex_lock(&life);
        error = n_users ? 0 : start();
        n_users += !error;
        pthread_mutex_unlock(&life);
    }
    return error;
}

void
loop_put(void)
{
    pthread_mutex_lock(&life);
    if (!--n_users) {
        loop_lock();
        stopping = true;
        wake();
        loop_unlock();
        pthread_join(thread, NULL);
        close(wake_fd);
        wake_fd = -1;
        loop_pid = 0;
    }
    pthread_mutex_unlock(&life);
}

void
loop_add(struct rocecast *r)
{
    loop_lock();
    LIST_APPEND(connections, r);
    wake();
    loop_unlock();
}

void
loop_remove(struct rocecast *r)
{
    loop_lock();
    r->closing = true;
    wake();
    while (!r->closed) {
        pthread_cond_wait(&answered, &lock);
    }
    loop_unlock();
}

static long long
deadline(int timeout_ms)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts); /* as time_msec(). */
    return timeout_ms < 0 ? LLONG_MAX
                          : (long long) ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + timeout_ms;
}

int
loop_start(struct call *call)
{
    int error = loop_check_process();

    if (!error) {
        call->deadline = call->deadline ? call->deadline : deadline(call->timeout_ms);
        loop_lock();
        LIST_APPEND(call->r->calls, call);
        wake();
        loop_unlock();
    }
    return error;
}

bool
loop_is_done(struct call *call)
{
    loop_lock();
    bool done = call->done;
    loop_unlock();
    return done;
}

void
loop_wait(struct call *call)
{
    loop_lock();
    while (!call->done) {
        pthread_cond_wait(&answered, &lock);
    }
    loop_unlock();
}

void
loop_cancel(struct call *call)
{
    loop_lock();
    call->cancelled = true;
    wake();
    loop_unlock();
    loop_wait(call);
}

int
loop_call(struct call *call)
{
    call->done_fd = -1;
    int error = loop_start(call);

    if (error) {
        return error;
    }
    loop_wait(call);
    return call->error ? api_fail(call->error, "%s", call->text) : 0;
}
