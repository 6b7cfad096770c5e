/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: what a program starts, and goes on with when the registry has answered.
 *
 * A request is one call after another.  The loop works on the call that is under way.  When that is
 * done, the program's thread does what follows: it takes the answer, changes a queue pair, begins
 * the next call.  Queue pairs are thus changed only in functions that the program has called.
 *
 * Functions that block make the same request on their stack, and wait for it.
 */
#include "librocecast/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void
request_init(struct rocecast_request *q, struct rocecast_group *g, int timeout_ms)
{
    *q = (struct rocecast_request){
        .g = g,
        .epoch = {.size = sizeof q->epoch},
        .call = {.r = g->r, .group = g, .timeout_ms = timeout_ms, .done_fd = -1},
    };
}

int
request_create(struct rocecast_group *g, int timeout_ms, struct rocecast_request **qp)
{
    if (!qp) {
        return api_fail(EINVAL, "start: no place to put the request");
    }
    *qp = NULL;
    int error = loop_check_process();
    if (error) {
        return error;
    }
    struct rocecast_request *q = malloc(sizeof *q);
    if (!q) {
        return api_fail(ENOMEM, "start: out of memory");
    }
    request_init(q, g, timeout_ms);
    q->call.done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (q->call.done_fd < 0) {
        error = api_fail(errno, "start: eventfd: %s", strerror(errno));
        free(q);
        return error;
    }
    loop_lock();
    LIST_APPEND(g->requests, q);
    loop_unlock();
    *qp = q;
    return 0;
}

static void
destroy(struct rocecast_request *q)
{
    if (q->under_way) {
        loop_cancel(&q->call);
    }
    loop_lock();
    LIST_REMOVE(q->g->requests, q);
    loop_unlock();
    close(q->call.done_fd);
    free(q);
}

int
request_created(struct rocecast_request **qp, int error)
{
    if (error) {
        destroy(*qp);
        *qp = NULL;
    }
    return error;
}

void
requests_destroy(struct rocecast_group *g)
{
    while (g->requests) {
        destroy(g->requests);
    }
}

int
request_call(struct rocecast_request *q, const struct call_class *class,
             int (*then)(struct rocecast_request *))
{
    const struct call *before = &q->call;
    eventfd_t count;

    q->call = (struct call){
        .class = class,
        .r = before->r,
        .group = before->group,
        .host = q->member.host,
        .qpn = q->member.qpn,
        .member = &q->member,
        .seen = q->has_seen ? &q->seen : NULL,
        .timeout_ms = before->timeout_ms,
        .deadline = before->deadline,
        .done_fd = before->done_fd,
    };
    if (q->call.done_fd >= 0) {
        eventfd_read(q->call.done_fd, &count);
    }
    int error = loop_start(&q->call);
    q->under_way = !error;
    q->then = then;
    return error;
}

/* Takes what is done, and what follows from it, until a call is under way again or there is nothing
 * more to do. */
static void
go_on(struct rocecast_request *q)
{
    while (q->under_way && loop_is_done(&q->call)) {
        int (*then)(struct rocecast_request *) = q->then;

        q->under_way = false;
        q->error = q->call.error ? api_fail(q->call.error, "%s", q->call.text) : then ? then(q) : 0;
        snprintf(q->text, sizeof q->text, "%s", q->error ? rocecast_error() : "");
    }
}

static int
result(const struct rocecast_request *q, struct rocecast_epoch *e)
{
    if (q->error) {
        return api_fail(q->error, "%s", q->text);
    }
    if (e) {
        epoch_give(e, &q->epoch);
    }
    return 0;
}

int
request_wait(struct rocecast_request *q, struct rocecast_epoch *e)
{
    for (go_on(q); q->under_way; go_on(q)) {
        loop_wait(&q->call);
    }
    return result(q, e);
}

/* What poll and wait have in common. */
static int
check(const struct rocecast_request *q, const struct rocecast_epoch *e)
{
    int error = q ? loop_check_process() : api_fail(EINVAL, "request: is missing");

    return error ? error : e ? epoch_check_size(e) : 0;
}

int
rocecast_request_fd(const struct rocecast_request *q)
{
    return q ? q->call.done_fd : -1;
}

int
rocecast_request_poll(struct rocecast_request *q, struct rocecast_epoch *e)
{
    NO_CANCELLATION;
    int error = check(q, e);

    if (error) {
        return error;
    }
    go_on(q);
    if (q->under_way) {
        char standing[ERROR_SIZE];

        loop_lock();
        snprintf(standing, sizeof standing, "%s", q->call.text);
        loop_unlock();
        return api_fail(EINPROGRESS, "%s: %s", q->call.class->name, standing);
    }
    return result(q, e);
}

int
rocecast_request_wait(struct rocecast_request *q, struct rocecast_epoch *e)
{
    NO_CANCELLATION;
    int error = check(q, e);

    return error ? error : request_wait(q, e);
}

void
rocecast_request_close(struct rocecast_request *q)
{
    NO_CANCELLATION;

    if (q && !loop_check_process()) {
        destroy(q);
    }
}
