/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad links: what a port's configuration does to the frames that come from its device (rx) and
 * go to it (tx).  A capture has what was on the device: received frames before rx, sent frames
 * after tx.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(node_impair);

/* Gives the node the frames that have left the link by 'now'. */
static void
release_rx(struct node_daemon *d, struct node_port *np, uint64_t now)
{
    struct packet *p;

    while (np->rx && (p = impair_output(np->rx, now))) {
        d->n_input++;
        d->class->input(d->node, np->config.number, p, node_daemon_now());
    }
}

static void
release_tx(struct node_port *np, uint64_t now)
{
    struct packet *p;

    while (np->tx && (p = impair_output(np->tx, now))) {
        node_port_send(np, &p, 1);
        packet_put(p);
    }
}

void
node_impair_run(struct node_daemon *d, uint64_t now)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        release_rx(d, d->ports[d->numbers[i]], now);
    }
    for (size_t i = 0; i < d->n_ports; i++) {
        release_tx(d->ports[d->numbers[i]], now);
    }
}

static uint64_t
deadline(const struct node_daemon *d)
{
    uint64_t when = UINT64_MAX;

    for (size_t i = 0; i < d->n_ports; i++) {
        const struct node_port *np = d->ports[d->numbers[i]];
        uint64_t rx = np->rx ? impair_deadline(np->rx) : UINT64_MAX;
        uint64_t tx = np->tx ? impair_deadline(np->tx) : UINT64_MAX;
        when = MIN(when, MIN(rx, tx));
    }
    return when;
}

/* A timer wakes up the poll loop, which counts milliseconds: in one a fast link sends many
 * frames. */
void
node_impair_wait(struct node_daemon *d, uint64_t now)
{
    uint64_t when = deadline(d);

    if (when == UINT64_MAX) {
        return;
    }
    if (when <= now) {
        poll_immediate_wake();
        return;
    }
    if (d->timer_fd < 0) {
        d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    }
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t) (when / 1000000),
                     .tv_nsec = (long) (when % 1000000 * 1000)},
    };
    if (d->timer_fd >= 0 && !timerfd_settime(d->timer_fd, TFD_TIMER_ABSTIME, &at, NULL)) {
        poll_fd_wait(d->timer_fd, POLLIN);
    } else {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 1);
        VLOG_WARN_RL(&rl, "timer of impaired links: %s", ovs_strerror(errno));
        poll_timer_wait(1);
    }
}

static struct impair *
renew(struct impair *im, const struct impair_params *params, uint64_t salt)
{
    impair_destroy(im);
    return impair_is_none(params) ? NULL : impair_create(params, salt);
}

void
node_impair_configure(struct node_daemon *d, struct node_port *np, const struct port_config *new,
                      uint64_t salt)
{
    const struct port_config *old = &np->config;
    salt = salt << 16 | (uint64_t) new->number << 1;

    if (!impair_same(&old->rx, &new->rx)) {
        release_rx(d, np, UINT64_MAX);
        np->rx = renew(np->rx, &new->rx, salt);
    }
    if (!impair_same(&old->tx, &new->tx)) {
        release_tx(np, UINT64_MAX);
        np->tx = renew(np->tx, &new->tx, salt | 1);
    }
}

void
node_impair_close(struct node_port *np)
{
    impair_destroy(np->rx);
    impair_destroy(np->tx);
    np->rx = np->tx = NULL;
}
