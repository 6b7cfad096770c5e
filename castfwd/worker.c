/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that tells the forwarder, and asks it.
 *
 * Tools may take long, or wait for a forwarder that does not run.  The registry and the control
 * socket do not wait for them.  The thread has the forwarder to itself: what goes in and out is
 * in the mailbox, under the lock.
 *
 * Configurations come first, and of those only the newest matters.  Once a second the thread
 * looks whether the forwarder is still the one that was told.  So what has failed is tried
 * again.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "castfwd/castfwd.h"
#include "latch.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "ovs-thread.h"
#include "timeval.h"
#include "util.h"

#define CHECK_MSEC 1000
#define TOOL_MSEC  20000

struct request {
    struct request *next;
    const struct listing *listing;
    struct unixctl_conn *conn; /* never touched by the thread. */
    bool as_json;
    struct json *answer;
};

struct queue {
    struct request *first, **end;
};

struct worker {
    pthread_t thread;
    struct latch stop; /* set for good. */
    struct latch work; /* there is something for the thread. */
    struct latch news; /* there is something from the thread. */

    struct ovs_mutex lock;
    struct node_config *config; /* to be told; NULL: none. */
    struct queue requests;      /* answers to be made. */
    struct queue answers;       /* answers that were made. */
    bool has_outcome;
    uint64_t generation;
    char *why; /* why the generation is not applied; NULL: it is. */
};

static struct node_config *
take_config(struct worker *w)
{
    ovs_mutex_lock(&w->lock);
    struct node_config *config = w->config;

    w->config = NULL;
    ovs_mutex_unlock(&w->lock);
    return config;
}

static void
queue_init(struct queue *q)
{
    q->first = NULL;
    q->end = &q->first;
}

/* The first request of 'from', or NULL. */
static struct request *
take(struct worker *w, struct queue *from)
{
    ovs_mutex_lock(&w->lock);
    struct request *r = from->first;

    if (r) {
        from->first = r->next;
        if (!r->next) {
            from->end = &from->first;
        }
    }
    ovs_mutex_unlock(&w->lock);
    return r;
}

static void
put(struct worker *w, struct queue *to, struct request *r)
{
    r->next = NULL;
    ovs_mutex_lock(&w->lock);
    *to->end = r;
    to->end = &r->next;
    ovs_mutex_unlock(&w->lock);
}

static void
tell(struct worker *w, struct forwarder *f)
{
    char *why = forwarder_tell(f);

    ovs_mutex_lock(&w->lock);
    free(w->why);
    w->why = why;
    w->generation = f->config.generation;
    w->has_outcome = !w->config; /* nobody wants to know of an old one. */
    ovs_mutex_unlock(&w->lock);
    latch_set(&w->news);
}

/* Does the first thing that there is to do.  False if there was nothing. */
static bool
work(struct worker *w, struct forwarder *f)
{
    struct node_config *config = take_config(w);
    struct request *r = config ? NULL : take(w, &w->requests);

    if (config) {
        forwarder_configure(f, config);
        free(config);
        tell(w, f);
    } else if (r) {
        r->answer = r->listing->make(f);
        put(w, &w->answers, r);
        latch_set(&w->news);
    }
    return config || r;
}

/* poll_block() would warn of work that took long. */
static void
wait_for_work(const struct worker *w, long long int msec)
{
    struct pollfd fds[] = {{.fd = w->work.fds[0], .events = POLLIN},
                           {.fd = w->stop.fds[0], .events = POLLIN}};

    ignore(poll(fds, ARRAY_SIZE(fds), (int) msec));
}

static void *
worker_main(void *w_)
{
    struct worker *w = w_;
    struct patience patience = {.stop_fd = w->stop.fds[0], .msec = TOOL_MSEC};
    long long int check_at = 0;
    struct forwarder f;

    forwarder_init(&f, &patience);
    while (!latch_is_set(&w->stop)) {
        latch_poll(&w->work);
        if (work(w, &f)) {
            continue;
        }
        if (f.backend && time_msec() >= check_at) {
            if (!forwarder_is_told(&f)) {
                tell(w, &f);
            }
            check_at = time_msec() + CHECK_MSEC;
        }
        wait_for_work(w, f.backend ? MAX(check_at - time_msec(), 0) : -1);
    }
    forwarder_uninit(&f);
    return NULL;
}

/* A thread starts in the namespace of the one that creates it. */
struct worker *
worker_create(int netns_fd)
{
    int own_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    struct worker *w = xzalloc(sizeof *w);

    latch_init(&w->stop);
    latch_init(&w->work);
    latch_init(&w->news);
    ovs_mutex_init(&w->lock);
    queue_init(&w->requests);
    queue_init(&w->answers);
    if (own_fd < 0 || (netns_fd >= 0 && setns(netns_fd, CLONE_NEWNET))) {
        ovs_fatal(errno, "entering the network namespace");
    }
    w->thread = ovs_thread_create("worker", worker_main, w);
    if (netns_fd >= 0 && setns(own_fd, CLONE_NEWNET)) {
        ovs_fatal(errno, "leaving the network namespace");
    }
    close(own_fd);
    return w;
}

static void
free_requests(struct worker *w, struct queue *requests)
{
    struct request *r;

    while ((r = take(w, requests))) {
        json_destroy(r->answer);
        free(r);
    }
}

void
worker_destroy(struct worker *w)
{
    latch_set(&w->stop);
    xpthread_join(w->thread, NULL);
    free_requests(w, &w->requests);
    free_requests(w, &w->answers);
    if (w->config) {
        node_config_uninit(w->config);
        free(w->config);
    }
    free(w->why);
    ovs_mutex_destroy(&w->lock);
    latch_destroy(&w->stop);
    latch_destroy(&w->work);
    latch_destroy(&w->news);
    free(w);
}

void
worker_configure(struct worker *w, struct node_config *config)
{
    struct node_config *old = take_config(w);

    if (old) {
        node_config_uninit(old);
        free(old);
    }
    ovs_mutex_lock(&w->lock);
    w->config = xmemdup(config, sizeof *config);
    w->has_outcome = false;
    ovs_mutex_unlock(&w->lock);
    *config = (struct node_config){.generation = 0};
    latch_set(&w->work);
}

bool
worker_outcome(struct worker *w, uint64_t *generation, char **whyp)
{
    ovs_mutex_lock(&w->lock);
    bool news = w->has_outcome;

    if (news) {
        *generation = w->generation;
        *whyp = w->why;
        w->why = NULL;
        w->has_outcome = false;
    }
    ovs_mutex_unlock(&w->lock);
    return news;
}

void
worker_list(struct worker *w, const struct listing *listing, struct unixctl_conn *conn,
            bool as_json)
{
    struct request *r = xmalloc(sizeof *r);

    *r = (struct request){.listing = listing, .conn = conn, .as_json = as_json};
    put(w, &w->requests, r);
    latch_set(&w->work);
}

void
worker_run(struct worker *w)
{
    struct request *r;

    latch_poll(&w->news);
    while ((r = take(w, &w->answers))) {
        r->listing->reply(r->conn, r->answer, r->as_json);
        json_destroy(r->answer);
        free(r);
    }
}

void
worker_wait(struct worker *w)
{
    latch_wait(&w->news);
}
