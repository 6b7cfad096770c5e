/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of rocecast.h, but for those that use libibverbs.
 *
 * They run in the program's threads, and may call nothing of libopenvswitch.
 */
#include "librocecast/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/address-plan.h"

static _Thread_local char last_error[ERROR_SIZE];

const char *
rocecast_error(void)
{
    return last_error;
}

int
api_fail(int error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return error;
}

/*
 * Sized structs.
 */

/* Sizes of before something was added at the end. */
#define EPOCH_SIZE_0  offsetof(struct rocecast_epoch, had_source)
#define MEMBER_SIZE_0 offsetof(struct rocecast_member, flags)
#define EVENT_SIZE_0  offsetof(struct rocecast_event, place)

static int
check_size(const char *what, size_t size, size_t least)
{
    return size >= least ? 0
                         : api_fail(EINVAL, "struct rocecast_%s: size is %zu, must be %zu", what,
                                    size, least);
}

/* The same for the caller's struct, which begins with its size. */
static int
check_struct(const char *what, const void *s, size_t least)
{
    return s ? check_size(what, *(const size_t *) s, least)
             : api_fail(EINVAL, "struct rocecast_%s: is missing", what);
}

int
epoch_check_size(const struct rocecast_epoch *e)
{
    return check_struct("epoch", e, EPOCH_SIZE_0);
}

/* Copies a struct of 'from_size' bytes into the caller's of 'to_size'.  A caller of an earlier
 * version gets what it knows, one of a later version zeros behind what this version knows. */
static void
struct_give(void *to, size_t to_size, const void *from, size_t from_size)
{
    memset(to, 0, to_size);
    memcpy(to, from, to_size < from_size ? to_size : from_size);
    memcpy(to, &to_size, sizeof to_size);
}

void
epoch_give(struct rocecast_epoch *to, const struct rocecast_epoch *from)
{
    struct_give(to, to->size, from, sizeof *from);
}

static int
check_name(const char *what, const char *name)
{
    return name && name[0] && strlen(name) < ROCECAST_NAME_SIZE
               ? 0
               : api_fail(EINVAL, "%s: must be 1 to %d characters", what, ROCECAST_NAME_SIZE - 1);
}

static int
check_qpn(uint32_t qpn)
{
    return qpn >= QPN_MIN && qpn <= QPN_MAX
               ? 0
               : api_fail(EINVAL, "QPN %#x: must be %#x to %#x", qpn, QPN_MIN, QPN_MAX);
}

/*
 * The registry.
 */

int
rocecast_open(const char *db, int timeout_ms, struct rocecast **rp)
{
    NO_CANCELLATION;
    struct rocecast *r = calloc(1, sizeof *r);

    *rp = NULL;
    if (r && db) {
        r->db = strdup(db);
    }
    if (!r || (db && !r->db)) {
        free(r);
        return api_fail(ENOMEM, "open: out of memory");
    }
    int error = loop_get();
    if (error) {
        free(r->db);
        free(r);
        return error;
    }
    loop_add(r);
    struct call call = {.class = &call_open, .r = r, .timeout_ms = timeout_ms};
    error = loop_call(&call);
    if (error) {
        rocecast_close(r);
        return error;
    }
    *rp = r;
    return 0;
}

static void
group_free(struct rocecast_group *g)
{
    close(g->fd);
    free(g->members);
    free(g);
}

void
rocecast_close(struct rocecast *r)
{
    NO_CANCELLATION;

    if (r && !loop_check_process()) {
        for (struct rocecast_group *g = r->groups; g; g = g->next) {
            requests_destroy(g);
        }
        loop_remove(r);
        while (r->groups) {
            struct rocecast_group *g = r->groups;

            r->groups = g->next;
            group_free(g);
        }
        free(r->db);
        free(r);
        loop_put();
    }
}

int
rocecast_host_address(struct rocecast *r, const char *host, int timeout_ms,
                      struct in6_addr *address)
{
    NO_CANCELLATION;
    struct call call = {
        .class = &call_host_address, .r = r, .host = host, .timeout_ms = timeout_ms};
    int error = check_name("host", host);

    error = error ? error : loop_call(&call);
    *address = call.address;
    return error;
}

/*
 * Groups.
 */

int
rocecast_group_add(struct rocecast *r, const char *name, const char *const settings[],
                   int timeout_ms)
{
    NO_CANCELLATION;
    struct call call = {.class = &call_group_add,
                        .r = r,
                        .name = name,
                        .settings = settings,
                        .timeout_ms = timeout_ms};
    int error = check_name("group", name);

    return error ? error : loop_call(&call);
}

static void
group_unlink(struct rocecast_group *g)
{
    loop_lock();
    LIST_REMOVE(g->r->groups, g);
    loop_unlock();
    group_free(g);
}

int
rocecast_group_open(struct rocecast *r, const char *name, int timeout_ms,
                    struct rocecast_group **gp)
{
    NO_CANCELLATION;
    int error = check_name("group", name);

    *gp = NULL;
    error = error ? error : loop_check_process();
    if (error) {
        return error;
    }
    struct rocecast_group *g = calloc(1, sizeof *g);
    if (!g) {
        return api_fail(ENOMEM, "group open: out of memory");
    }
    g->r = r;
    snprintf(g->name, sizeof g->name, "%s", name);
    g->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (g->fd < 0) {
        error = api_fail(errno, "group open: eventfd: %s", strerror(errno));
        free(g);
        return error;
    }
    loop_lock();
    g->told_connected = r->connected;
    LIST_APPEND(r->groups, g);
    loop_unlock();

    struct call call = {.class = &call_group_open, .r = r, .group = g, .timeout_ms = timeout_ms};
    error = loop_call(&call);
    if (error) {
        group_unlink(g);
        return error;
    }
    *gp = g;
    return 0;
}

void
rocecast_group_close(struct rocecast_group *g)
{
    NO_CANCELLATION;

    if (g && !loop_check_process()) {
        requests_destroy(g);
        group_unlink(g);
    }
}

int
rocecast_get_epoch(struct rocecast_group *g, struct rocecast_epoch *e)
{
    NO_CANCELLATION;
    int error = epoch_check_size(e);

    error = error ? error : loop_check_process();
    if (error) {
        return error;
    }
    loop_lock();
    bool exists = g->exists;
    if (exists) {
        epoch_give(e, &g->epoch);
        view_know_epoch(g);
    }
    loop_unlock();
    return exists ? 0 : api_fail(ENOENT, "group %s has been deleted", g->name);
}

int
request_set_endpoint(struct rocecast_request *q, const char *host, uint32_t qpn)
{
    int error = check_name("host", host);

    error = error ? error : check_qpn(qpn);
    if (!error) {
        snprintf(q->host, sizeof q->host, "%s", host);
        q->member.host = q->host;
        q->member.qpn = qpn;
    }
    return error;
}

int
request_set_seen(struct rocecast_request *q, const struct rocecast_epoch *seen)
{
    int error = seen ? check_struct("epoch", seen, sizeof *seen) : 0;

    if (!error && seen) {
        q->seen = *seen;
        q->has_seen = true;
    }
    return error;
}

int
request_take_epoch(struct rocecast_request *q)
{
    q->epoch = q->call.attributes;
    return 0;
}

static int
source_set_begin(struct rocecast_request *q, const char *host, uint32_t qpn,
                 const struct rocecast_epoch *seen)
{
    int error = request_set_endpoint(q, host, qpn);

    error = error ? error : request_set_seen(q, seen);
    return error ? error : request_call(q, &call_source_set, request_take_epoch);
}

static int
source_set(struct rocecast_group *g, const char *host, uint32_t qpn,
           const struct rocecast_epoch *seen, int timeout_ms, struct rocecast_epoch *e)
{
    struct rocecast_request q;
    int error = epoch_check_size(e);

    request_init(&q, g, timeout_ms);
    error = error ? error : source_set_begin(&q, host, qpn, seen);
    return error ? error : request_wait(&q, e);
}

int
rocecast_source_set(struct rocecast_group *g, const char *host, uint32_t qpn, int timeout_ms,
                    struct rocecast_epoch *e)
{
    NO_CANCELLATION;

    return source_set(g, host, qpn, NULL, timeout_ms, e);
}

int
rocecast_source_set_if(struct rocecast_group *g, const char *host, uint32_t qpn,
                       const struct rocecast_epoch *seen, int timeout_ms, struct rocecast_epoch *e)
{
    NO_CANCELLATION;
    int error = check_struct("epoch", seen, sizeof *seen);

    return error ? error : source_set(g, host, qpn, seen, timeout_ms, e);
}

int
rocecast_source_set_start(struct rocecast_group *g, const char *host, uint32_t qpn,
                          const struct rocecast_epoch *seen, int timeout_ms,
                          struct rocecast_request **qp)
{
    NO_CANCELLATION;
    int error = request_create(g, timeout_ms, qp);

    return error ? error : request_created(qp, source_set_begin(*qp, host, qpn, seen));
}

int
rocecast_source_del(struct rocecast_group *g, int timeout_ms)
{
    NO_CANCELLATION;
    struct call call = {.class = &call_source_del, .r = g->r, .group = g, .timeout_ms = timeout_ms};

    return loop_call(&call);
}

int
member_check_flags(uint64_t flags)
{
    uint64_t unknown = flags & ~(uint64_t) (ROCECAST_MEMBER_REPLACE | ROCECAST_MEMBER_KEEP);

    return unknown ? api_fail(EINVAL, "member: flags %#" PRIx64 " are not known", unknown) : 0;
}

static int
member_add_begin(struct rocecast_request *q, const struct rocecast_member *m)
{
    int error = check_struct("member", m, MEMBER_SIZE_0);

    if (error) {
        return error;
    }
    struct_give(&q->member, sizeof q->member, m, m->size);
    error = request_set_endpoint(q, m->host, m->qpn);
    m = &q->member;
    error = error ? error : member_check_flags(m->flags);
    if (!error && !m->epoch) {
        error = api_fail(EINVAL, "member: the epoch is missing");
    }
    if (!error && (m->length > INT64_MAX || m->address > UINT64_MAX - m->length)) {
        error = api_fail(EINVAL, "member: the region runs over the end of the address space");
    }
    if (!error && !m->length && (m->address || m->rkey)) {
        error = api_fail(EINVAL, "member: the region has an address or rkey, but no length");
    }
    return error ? error : request_call(q, &call_member_add, NULL);
}

int
rocecast_member_add(struct rocecast_group *g, const struct rocecast_member *m, int timeout_ms)
{
    NO_CANCELLATION;
    struct rocecast_request q;

    request_init(&q, g, timeout_ms);
    int error = member_add_begin(&q, m);
    return error ? error : request_wait(&q, NULL);
}

int
rocecast_member_add_start(struct rocecast_group *g, const struct rocecast_member *m, int timeout_ms,
                          struct rocecast_request **qp)
{
    NO_CANCELLATION;
    int error = request_create(g, timeout_ms, qp);

    return error ? error : request_created(qp, member_add_begin(*qp, m));
}

int
rocecast_member_listen(struct rocecast_group *g, const char *host, uint16_t port,
                       const char *private_data, uint64_t flags, int timeout_ms)
{
    NO_CANCELLATION;
    struct call call = {.class = &call_member_listen,
                        .r = g->r,
                        .group = g,
                        .host = host,
                        .port = port,
                        .private_data = private_data ? private_data : "",
                        .replace = flags & ROCECAST_MEMBER_REPLACE,
                        .timeout_ms = timeout_ms};
    int error = check_name("host", host);

    if (!error && !port) {
        error = api_fail(EINVAL, "port: must be 1 to %d", UINT16_MAX);
    }
    if (!error && flags & ~(uint64_t) ROCECAST_MEMBER_REPLACE) {
        error = api_fail(EINVAL, "member: flags %#" PRIx64 ": must be 0 or %#x", flags,
                         ROCECAST_MEMBER_REPLACE);
    }
    return error ? error : loop_call(&call);
}

static int
member_leave_begin(struct rocecast_request *q, const char *host)
{
    int error = request_set_endpoint(q, host, QPN_MIN);

    return error ? error : request_call(q, &call_member_leave, NULL);
}

int
rocecast_member_leave(struct rocecast_group *g, const char *host, int timeout_ms)
{
    NO_CANCELLATION;
    struct rocecast_request q;

    request_init(&q, g, timeout_ms);
    int error = member_leave_begin(&q, host);
    return error ? error : request_wait(&q, NULL);
}

int
rocecast_member_leave_start(struct rocecast_group *g, const char *host, int timeout_ms,
                            struct rocecast_request **qp)
{
    NO_CANCELLATION;
    int error = request_create(g, timeout_ms, qp);

    return error ? error : request_created(qp, member_leave_begin(*qp, host));
}

int
rocecast_wait_ready(struct rocecast_group *g, uint32_t epoch, uint32_t n_members, int timeout_ms,
                    struct rocecast_epoch *e)
{
    NO_CANCELLATION;
    struct call call = {.class = &call_wait_ready,
                        .r = g->r,
                        .group = g,
                        .epoch = epoch,
                        .n_members = n_members,
                        .timeout_ms = timeout_ms};
    int error = e ? epoch_check_size(e) : 0;

    error = error ? error : loop_call(&call);
    if (!error && e) {
        epoch_give(e, &call.attributes);
    }
    return error;
}

int
rocecast_get_members(struct rocecast_group *g, struct rocecast_member_status *members, size_t size,
                     size_t *n)
{
    NO_CANCELLATION;
    int error = n ? check_size("member_status", size, sizeof *members)
                  : api_fail(EINVAL, "members: their number is missing");

    if (!error && n && *n && !members) {
        error = api_fail(EINVAL, "members: no room, although there is for %zu", *n);
    }
    error = error ? error : loop_check_process();
    if (error || !n) {
        return error;
    }
    size_t room = *n;
    *n = 0;
    loop_lock();
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->members[i].exists && (*n)++ < room && members) {
            struct_give((char *) members + (*n - 1) * size, size, &g->members[i].now,
                        sizeof g->members[i].now);
        }
    }
    loop_unlock();
    return 0;
}

/*
 * Events.
 */

int
rocecast_fd(const struct rocecast_group *g)
{
    return g->fd;
}

int
rocecast_next_event(struct rocecast_group *g, struct rocecast_event *event)
{
    NO_CANCELLATION;
    struct rocecast_event next = {.size = sizeof next};
    int error = check_struct("event", event, EVENT_SIZE_0);

    error = error ? error : loop_check_process();
    if (error) {
        return error;
    }
    loop_lock();
    view_next_event(g, &next, event->size < sizeof next);
    loop_unlock();
    struct_give(event, event->size, &next, sizeof next);
    return 0;
}
