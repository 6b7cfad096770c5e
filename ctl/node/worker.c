/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads that forward.
 *
 * Theory of operation
 * -------------------
 * A worker waits for its ports with epoll, and goes through rounds: what has arrived is given to
 * its node, burst by burst; what the node sends for a burst leaves at the end of it; then what
 * other workers have handed over, bad links, and the node's timers.
 *
 * For the length of a round the worker has its mutex, which nobody else wants, as a rule.  The main
 * thread takes the mutexes to apply a configuration, to read counters, and to look for what is to
 * be reported.  A worker with much to do takes its mutex again as soon as it has released it, so
 * both also need 'turn', which the one who waits for the mutex holds.
 *
 * The main thread is told by an eventfd that something may have to be reported.  It is told once,
 * until it has looked.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ctl/node/frame-ring.h"
#include "openvswitch/util.h"
#include "openvswitch/vlog.h"
#include "random.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(node_worker);

#define POOL_SIZE  4096 /* of all workers, if that leaves POOL_MIN to each. */
#define POOL_MIN   2048
#define MAX_EVENTS 64

static int
must_eventfd(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        VLOG_FATAL("eventfd: %s", ovs_strerror(errno));
    }
    return fd;
}

static void
kick(int fd)
{
    ignore(eventfd_write(fd, 1));
}

void
node_worker_tell(struct node_worker *w)
{
    if (!atomic_exchange(&w->has_told, true)) {
        kick(w->daemon->news_fd);
    }
}

/* What the worker does before it waits again; true if there is more to do. */
static bool
make_round(struct node_worker *w)
{
    const struct node_class *class = w->daemon->class;
    uint64_t now = node_daemon_now();
    uint64_t n_input = w->n_input;

    node_ports_run(w, now);
    bool more = node_ports_take_over(w, now);
    node_impair_run(w, now);
    now = node_daemon_now();
    bool timed_out = class->deadline(w->node) <= now;
    if (timed_out) {
        class->timer(w->node, now);
    }
    tx_queues_flush(&w->tx_queues);
    if (timed_out || w->n_input != n_input) {
        node_worker_tell(w);
    }
    return more || w->n_ready > 0;
}

/* Waits for events, not longer than until the node has something to do. */
static int
wait_for_events(struct node_worker *w, struct epoll_event *events, uint64_t deadline)
{
    struct timespec timeout = {.tv_sec = 0};
    uint64_t now = deadline && deadline != UINT64_MAX ? node_daemon_now() : 0;

    if (deadline > now) {
        timeout.tv_sec = (time_t) ((deadline - now) / 1000000);
        timeout.tv_nsec = (long) ((deadline - now) % 1000000 * 1000);
    }
    int n = epoll_pwait2(w->epoll_fd, events, MAX_EVENTS, deadline == UINT64_MAX ? NULL : &timeout,
                         NULL);
    if (n < 0 && errno != EINTR) {
        VLOG_FATAL("epoll_pwait2: %s", ovs_strerror(errno));
    }
    return n;
}

static void
note_events(struct node_worker *w, const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        if (events[i].data.u32 >= NODE_DEVICE_EVENT(0)) {
            node_ports_changed(w, events[i].data.u32 - NODE_DEVICE_EVENT(0));
        } else if (events[i].data.u32) {
            node_port_ready(w, (uint16_t) events[i].data.u32);
        } else {
            eventfd_t value;
            ignore(eventfd_read(w->wake_fd, &value));
        }
    }
}

static void *
worker_main(void *w_)
{
    struct node_worker *w = w_;
    struct epoll_event events[MAX_EVENTS];
    int n = 0;

    atomic_store(&w->tid, gettid());
    while (!atomic_load_explicit(&w->daemon->stopping, memory_order_relaxed)) {
        pthread_mutex_lock(&w->turn);
        pthread_mutex_lock(&w->mutex);
        pthread_mutex_unlock(&w->turn);
        note_events(w, events, n);
        bool more = make_round(w);
        uint64_t deadline = MIN(w->daemon->class->deadline(w->node), node_impair_deadline(w));
        pthread_mutex_unlock(&w->mutex);
        n = wait_for_events(w, events, more ? 0 : deadline);
    }
    return NULL;
}

void
node_workers_stop(struct node_daemon *d)
{
    for (unsigned i = 0; i < d->n_workers; i++) {
        pthread_mutex_lock(&d->workers[i]->turn);
        pthread_mutex_lock(&d->workers[i]->mutex);
    }
}

void
node_workers_go(struct node_daemon *d)
{
    for (unsigned i = d->n_workers; i-- > 0;) {
        pthread_mutex_unlock(&d->workers[i]->mutex);
        pthread_mutex_unlock(&d->workers[i]->turn);
        kick(d->workers[i]->wake_fd); /* there may be something else to wait for. */
    }
}

/* RDMA-CM connections' IDs begin there: no two workers of a node may give the same. */
static uint32_t
worker_seed(unsigned index)
{
    static_assert(NODE_MAX_THREADS <= 1 << 4, "4 bits");
    return index << 27 | (random_uint32() & ((1u << 27) - 1));
}

/* What POSIX time in microseconds is ahead of node_daemon_now(). */
static uint64_t
posix_ahead(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000 - node_daemon_now();
}

static struct node_worker *
create(struct node_daemon *d, unsigned index)
{
    struct node_worker *w = xzalloc(sizeof *w);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 0};

    w->daemon = d;
    w->index = index;
    w->wake_fd = must_eventfd();
    w->device_fds[0] = w->device_fds[1] = -1;
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll_fd < 0 || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &event)) {
        VLOG_FATAL("epoll: %s", ovs_strerror(errno));
    }
    pthread_mutex_init(&w->turn, NULL);
    pthread_mutex_init(&w->mutex, NULL);
    w->pool = packet_pool_create(MAX(POOL_SIZE / d->n_workers, POOL_MIN));
    tx_queues_init(&w->tx_queues, w->pool, node_ports_send, w);
    w->node = d->class->create(
        &(struct node_io){
            .tx = node_ports_tx,
            .mtu = node_ports_mtu,
            .up = node_ports_up,
            .aux = w,
            .seed = worker_seed(index),
            .follows = index != 0,
            .posix_usec = posix_ahead(),
        },
        w->pool);
    for (unsigned i = 0; i < d->n_workers; i++) {
        w->from[i] = i != index ? frame_ring_create() : NULL;
    }
    return w;
}

void
node_workers_create(struct node_daemon *d, unsigned n)
{
    d->news_fd = must_eventfd();
    d->n_workers = n;
    for (unsigned i = 0; i < n; i++) {
        d->workers[i] = create(d, i);
    }
}

/* Signals are for the main thread. */
void
node_workers_start(struct node_daemon *d)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < d->n_workers; i++) {
        int error = pthread_create(&d->workers[i]->thread, NULL, worker_main, d->workers[i]);
        if (error) {
            VLOG_FATAL("cannot start a thread: %s", ovs_strerror(error));
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void
destroy(struct node_worker *w)
{
    node_ports_close(w);
    w->daemon->class->destroy(w->node);
    tx_queues_uninit(&w->tx_queues);
    for (unsigned i = 0; i < w->daemon->n_workers; i++) {
        frame_ring_destroy(w->from[i]);
    }
    packet_pool_destroy(w->pool);
    pthread_mutex_destroy(&w->turn);
    pthread_mutex_destroy(&w->mutex);
    close(w->epoll_fd);
    close(w->wake_fd);
    for (unsigned i = 0; i < ARRAY_SIZE(w->device_fds); i++) {
        if (w->device_fds[i] >= 0) {
            close(w->device_fds[i]);
        }
    }
    free(w);
}

void
node_workers_destroy(struct node_daemon *d)
{
    atomic_store(&d->stopping, true);
    for (unsigned i = 0; i < d->n_workers; i++) {
        kick(d->workers[i]->wake_fd);
    }
    for (unsigned i = 0; i < d->n_workers; i++) {
        pthread_join(d->workers[i]->thread, NULL);
    }
    for (unsigned i = 0; i < d->n_workers; i++) {
        destroy(d->workers[i]);
    }
    close(d->news_fd);
}
