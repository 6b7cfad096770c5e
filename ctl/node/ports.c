/* SPDX-License-Identifier: Apache-2.0
 *
 * The ports of a node's process.  Each worker has its own descriptor of each.
 *
 * A host's NIC is in the namespace in which the daemon was started (lab hosts
 * are there, because rxe works only in the initial one); every other device is
 * in the daemon's --netns.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "ctl/node/frame-ring.h"
#include "ctl/node/port-helper.h"
#include "openvswitch/util.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(node_ports);

#define BURST_BYTES  32768   /* of frames whose copies leave together: caches should have them. */
#define REFRESH_USEC 1000000 /* if nobody has said that a device changed. */

/* Opens the port for a worker; 0 or an errno. */
static int
open_port(struct node_worker *w, struct node_port *np, char **why)
{
    const struct port_config *pc = &np->config;
    const struct node_port *first = w->daemon->workers[0]->ports[pc->number];
    const struct port_queue queue = {
        .index = w->index,
        .n = w->daemon->n_workers,
        .first = w->index ? first->port : NULL,
    };
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = pc->number};

    bool in_netns = w->daemon->has_netns && !port_kind_is_host_nic(pc->kind);
    int error =
        port_helper_open(w->daemon->helper, &np->port, pc->kind, pc->name, in_netns, &queue, why);
    if (!error && epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, port_fd(np->port), &event)) {
        error = errno;
        *why = xasprintf("%s: cannot wait for it (%s)", pc->name, ovs_strerror(error));
        port_close(np->port);
        np->port = NULL;
    }
    return error;
}

/* Has the worker told when devices change.  If that cannot be had, it looks all the same, later. */
static void
watch_devices(struct node_worker *w)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

    for (unsigned i = 0; i < (w->daemon->has_netns ? 2 : 1); i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = NODE_DEVICE_EVENT(i)};
        char *why = NULL;

        if (w->device_fds[i] >= 0) {
            continue;
        }
        int error = port_helper_watch(w->daemon->helper, &w->device_fds[i], i != 0, &why);
        if (error || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->device_fds[i], &event)) {
            VLOG_WARN_RL(&rl, "%s", why ? why : "cannot wait for changes of network devices");
        }
        free(why);
    }
}

static bool
open_ports(struct node_worker *w, char **errp)
{
    bool all_open = true;

    watch_devices(w);
    for (size_t i = 0; i < w->n_ports; i++) {
        struct node_port *np = w->ports[w->numbers[i]];
        char *why = NULL;

        if (np->port) {
            continue;
        }
        if (open_port(w, np, &why)) {
            free(*errp);
            *errp = why;
            all_open = false;
        } else if (!w->index) {
            VLOG_INFO("port %s: open, number %d, peer %s", np->config.name, np->config.number,
                      np->config.peer);
        }
    }
    return all_open;
}

static void
close_port(struct node_worker *w, struct node_port *np)
{
    if (!w->index) {
        VLOG_INFO("port %s: closed", np->config.name);
        node_capture_stop(w->daemon, np->config.number);
    }
    w->ports[np->config.number] = NULL;
    node_impair_close(np);
    port_close(np->port);
    free(np);
}

static void
list_ports(struct node_worker *w)
{
    w->n_ports = w->n_ready = 0;
    for (uint16_t i = 0; i < NODE_MAX_PORTS; i++) {
        if (w->ports[i]) {
            w->numbers[w->n_ports++] = i;
            w->ports[i]->ready = false;
            node_port_ready(w, i);
        }
    }
}

static void
configure_ports(struct node_worker *w)
{
    const struct node_config *config = &w->daemon->config;
    const struct port_config *want[NODE_MAX_PORTS] = {NULL};

    for (size_t i = 0; i < config->n_ports; i++) {
        want[config->ports[i].number] = &config->ports[i];
    }
    for (size_t i = 0; i < w->n_ports; i++) {
        struct node_port *np = w->ports[w->numbers[i]];
        const struct port_config *pc = want[np->config.number];

        if (!pc || strcmp(pc->name, np->config.name) || pc->kind != np->config.kind) {
            close_port(w, np);
        }
    }
    for (size_t i = 0; i < config->n_ports; i++) {
        const struct port_config *pc = &config->ports[i];
        if (!w->ports[pc->number]) {
            w->ports[pc->number] = xzalloc(sizeof *w->ports[pc->number]);
        }
        node_impair_configure(w, w->ports[pc->number], pc, config->id);
        w->ports[pc->number]->config = *pc;
        w->ports[pc->number]->config.programs = NULL; /* they are the node's business. */
        w->ports[pc->number]->config.n_programs = 0;
    }
    list_ports(w);
}

void
node_ports_configure(struct node_daemon *d)
{
    for (unsigned i = 0; i < d->n_workers; i++) {
        configure_ports(d->workers[i]);
    }
}

bool
node_ports_open(struct node_daemon *d, char **errp)
{
    bool all_open = true;

    for (unsigned i = 0; i < d->n_workers; i++) {
        all_open = open_ports(d->workers[i], errp) && all_open;
    }
    return all_open;
}

bool
node_ports_all_open(const struct node_daemon *d)
{
    for (unsigned i = 0; i < d->n_workers; i++) {
        const struct node_worker *w = d->workers[i];
        for (size_t j = 0; j < w->n_ports; j++) {
            if (!w->ports[w->numbers[j]]->port) {
                return false;
            }
        }
    }
    return true;
}

void
node_ports_close(struct node_worker *w)
{
    for (size_t i = 0; i < w->n_ports; i++) {
        close_port(w, w->ports[w->numbers[i]]);
    }
    w->n_ports = 0;
}

struct node_port *
node_ports_find(const struct node_daemon *d, const char *name)
{
    const struct node_worker *w = d->workers[0];

    for (size_t i = 0; i < w->n_ports; i++) {
        if (!strcmp(w->ports[w->numbers[i]]->config.name, name)) {
            return w->ports[w->numbers[i]];
        }
    }
    return NULL;
}

void
node_port_ready(struct node_worker *w, uint16_t number)
{
    struct node_port *np = w->ports[number];

    if (np && !np->ready) { /* it may be gone since the event. */
        np->ready = true;
        w->ready[w->n_ready++] = number;
    }
}

static void
hand_over(struct node_worker *w, unsigned to, const struct node_port *np, const struct packet *p)
{
    if (frame_ring_put(w->daemon->workers[to]->from[w->index], np->config.number, p->data,
                       p->len)) {
        w->n_handed_over++;
    } else {
        w->n_handover_full++;
    }
}

/* Gives the frame to whose it is: this worker's node, or other workers.  Returns the worker, or
 * STEER_ALL. */
static unsigned
dispatch(struct node_worker *w, const struct node_port *np, struct packet *p, uint64_t now)
{
    struct node_daemon *d = w->daemon;
    unsigned to = steer_frame(d->n_workers, p);

    for (unsigned i = 0; i < d->n_workers; i++) {
        if (i != w->index && (to == i || to == STEER_ALL)) {
            hand_over(w, i, np, p);
        }
    }
    if (to == w->index || to == STEER_ALL) {
        w->n_input++;
        d->class->input(w->node, np->config.number, p, now);
    } else {
        packet_put(p);
    }
    return to;
}

static void
wake(const struct node_worker *w, const bool handed[NODE_MAX_THREADS])
{
    for (unsigned i = 0; i < w->daemon->n_workers; i++) {
        if (handed[i] && i != w->index) {
            ignore(eventfd_write(w->daemon->workers[i]->wake_fd, 1));
        }
    }
}

static void
input(struct node_worker *w, struct node_port *np, const struct port_burst *burst, uint64_t now)
{
    bool handed[NODE_MAX_THREADS] = {false};
    size_t n_bytes = 0;

    for (size_t i = 0; i < burst->n; i++) {
        struct packet *p = burst->frames[i];

        n_bytes += packet_size(p);
        if (n_bytes > BURST_BYTES) {
            tx_queues_flush(&w->tx_queues);
            n_bytes = 0;
        }
        np->rx_packets++;
        np->rx_bytes += packet_size(p);
        node_capture_put(np, p);
        if (np->rx) {
            impair_input(np->rx, w->pool, p, now);
            packet_put(p);
            continue;
        }
        unsigned to = dispatch(w, np, p, now);
        for (unsigned j = 0; j < w->daemon->n_workers; j++) {
            handed[j] |= to == j || to == STEER_ALL;
        }
    }
    wake(w, handed);
}

static void
receive_failed(struct node_port *np, unsigned n, int why)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

    np->rx_errors += n;
    VLOG_WARN_RL(&rl, "port %s: receive: %s", np->config.name, ovs_strerror(why));
}

/* A burst from one port; true if it may have more. */
static bool
receive(struct node_worker *w, struct node_port *np, uint64_t now)
{
    struct port_burst burst;
    int why = port_recv(np->port, w->pool, &burst);

    input(w, np, &burst, now);
    if (burst.n_lost) {
        receive_failed(np, burst.n_lost, burst.why_lost);
    }
    if (why && why != EAGAIN) {
        receive_failed(np, 1, why);
        if (why != EIO && why != ENETDOWN) {
            port_close(np->port); /* the device went away: look for a new one. */
            np->port = NULL;
            node_worker_tell(w);
        }
    }
    return !why;
}

/* port_recv() finds out that a device is gone. */
static void
refresh(struct node_worker *w, uint64_t now)
{
    for (size_t i = 0; i < w->n_ports; i++) {
        struct node_port *np = w->ports[w->numbers[i]];
        if (np->port && port_refresh(np->port)) {
            node_port_ready(w, np->config.number);
        }
    }
    w->refresh_at = now + REFRESH_USEC;
}

void
node_ports_changed(struct node_worker *w, unsigned i)
{
    port_events_clear(w->device_fds[i]);
    w->refresh_at = 0;
}

void
node_ports_run(struct node_worker *w, uint64_t now)
{
    if (now >= w->refresh_at) {
        refresh(w, now);
    }
    size_t n = w->n_ready, n_more = 0;
    for (size_t i = 0; i < n; i++) {
        uint16_t number = w->ready[i];
        struct node_port *np = w->ports[number];

        np->ready = np->port && receive(w, np, now);
        if (np->ready) {
            w->ready[n_more++] = number;
        }
        tx_queues_flush(&w->tx_queues);
    }
    w->n_ready = n_more;
    w->n_rounds += n > 0;
}

/* As many frames as a port gives at a time; true if there may be more. */
static bool
take_over(struct node_worker *w, struct frame_ring *ring, uint64_t now)
{
    const uint8_t *frame;
    uint16_t number;
    size_t len;
    int n;

    for (n = 0; n < PORT_BURST && (frame = frame_ring_peek(ring, &number, &len)); n++) {
        struct packet *p = w->ports[number] ? packet_from_bytes(w->pool, frame, len) : NULL;

        frame_ring_drop(ring);
        if (p) {
            w->n_input++;
            w->daemon->class->input(w->node, number, p, now);
        } else {
            w->n_handover_full++;
        }
    }
    tx_queues_flush(&w->tx_queues);
    return n == PORT_BURST;
}

bool
node_ports_take_over(struct node_worker *w, uint64_t now)
{
    bool more = false;

    for (unsigned i = 0; i < w->daemon->n_workers; i++) {
        more = (w->from[i] && take_over(w, w->from[i], now)) || more;
    }
    return more;
}

uint32_t
node_ports_mtu(void *w_, uint16_t number)
{
    const struct node_worker *w = w_;
    const struct node_port *np = number < NODE_MAX_PORTS ? w->ports[number] : NULL;

    return np && np->port ? port_mtu(np->port) : UINT32_MAX;
}

bool
node_ports_up(void *w_, uint16_t number)
{
    const struct node_worker *w = w_;
    const struct node_port *np = number < NODE_MAX_PORTS ? w->ports[number] : NULL;

    return np && np->port && port_is_up(np->port);
}

void
node_port_send(struct node_port *np, struct packet *const *frames, size_t n)
{
    size_t i = 0;

    while (i < n) {
        int why;
        size_t n_sent = np->port ? port_send(np->port, frames + i, n - i, &why) : 0;

        for (size_t end = i + n_sent; i < end; i++) {
            np->tx_packets++;
            np->tx_bytes += packet_size(frames[i]);
            node_capture_put(np, frames[i]);
        }
        if (i < n) {
            np->tx_errors++;
            i++;
        }
    }
}

void
node_ports_send(void *w_, uint16_t number, struct packet **frames, size_t n)
{
    struct node_worker *w = w_;
    struct node_port *np = w->ports[number];

    if (np) {
        node_port_send(np, frames, n);
    } else {
        w->no_port += n;
    }
}

void
node_ports_tx(void *w_, uint16_t number, struct packet *p)
{
    struct node_worker *w = w_;
    struct node_port *np = number < NODE_MAX_PORTS ? w->ports[number] : NULL;

    if (!np) {
        w->no_port++;
    } else if (!np->port) {
        np->tx_errors++;
    } else if (packet_size(p) > port_mtu(np->port) + sizeof(struct eth_hdr)) {
        np->tx_too_long++;
    } else if (w->trace) {
        node_trace_sent(w->trace, np, p);
    } else if (np->tx) {
        impair_input(np->tx, w->pool, p, node_daemon_now());
    } else {
        tx_queues_put(&w->tx_queues, number, p);
        return;
    }
    packet_put(p);
}
