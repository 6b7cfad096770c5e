/* SPDX-License-Identifier: Apache-2.0
 *
 * The ports of a node's process.
 *
 * A host's NIC is in the namespace in which the daemon was started (lab hosts
 * are there, because rxe works only in the initial one); every other device is
 * in the daemon's --netns.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <errno.h>
#include <poll.h>

#include "ctl/process/privileges.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/util.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(node_ports);

#define REFRESH_USEC 1000000 /* how long a changed MTU may go unnoticed. */

static void
open_port(const struct node_daemon *d, struct node_port *np, char **errp)
{
    const struct port_config *pc = &np->config;
    char *why = NULL;

    privileges_use(true);
    int netns_fd = port_kind_is_host_nic(pc->kind) ? -1 : d->netns_fd;
    int error = port_open(&np->port, pc->kind, pc->name, netns_fd, &why);
    privileges_use(false);
    if (error) {
        np->port = NULL;
        free(*errp);
        *errp = why;
    } else {
        VLOG_INFO("port %s: open, number %d, peer %s", pc->name, pc->number, pc->peer);
    }
}

static void
close_port(struct node_daemon *d, struct node_port *np)
{
    VLOG_INFO("port %s: closed", np->config.name);
    d->ports[np->config.number] = NULL;
    node_capture_stop(np);
    node_impair_close(np);
    port_close(np->port);
    free(np);
}

static void
list_ports(struct node_daemon *d)
{
    d->n_ports = 0;
    for (uint16_t i = 0; i < NODE_MAX_PORTS; i++) {
        if (d->ports[i]) {
            d->numbers[d->n_ports++] = i;
        }
    }
}

void
node_ports_configure(struct node_daemon *d)
{
    const struct node_config *config = &d->config;
    const struct port_config *want[NODE_MAX_PORTS] = {NULL};

    for (size_t i = 0; i < config->n_ports; i++) {
        want[config->ports[i].number] = &config->ports[i];
    }
    for (size_t i = 0; i < d->n_ports; i++) {
        struct node_port *np = d->ports[d->numbers[i]];
        const struct port_config *pc = want[np->config.number];

        if (!pc || strcmp(pc->name, np->config.name) || pc->kind != np->config.kind) {
            close_port(d, np);
        }
    }
    for (size_t i = 0; i < config->n_ports; i++) {
        const struct port_config *pc = &config->ports[i];
        if (!d->ports[pc->number]) {
            d->ports[pc->number] = xzalloc(sizeof *d->ports[pc->number]);
        }
        node_impair_configure(d, d->ports[pc->number], pc, config->id);
        d->ports[pc->number]->config = *pc;
    }
    list_ports(d);
}

bool
node_ports_open(struct node_daemon *d, char **errp)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        struct node_port *np = d->ports[d->numbers[i]];
        if (!np->port) {
            open_port(d, np, errp);
        }
    }
    return node_ports_all_open(d);
}

bool
node_ports_all_open(const struct node_daemon *d)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        if (!d->ports[d->numbers[i]]->port) {
            return false;
        }
    }
    return true;
}

void
node_ports_close(struct node_daemon *d)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        close_port(d, d->ports[d->numbers[i]]);
    }
    d->n_ports = 0;
}

struct node_port *
node_ports_find(const struct node_daemon *d, const char *name)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        if (!strcmp(d->ports[d->numbers[i]]->config.name, name)) {
            return d->ports[d->numbers[i]];
        }
    }
    return NULL;
}

/* Gives the node what came in. */
static void
input(struct node_daemon *d, struct node_port *np, const struct port_burst *burst, uint64_t now)
{
    for (size_t i = 0; i < burst->n; i++) {
        struct packet *p = burst->frames[i];

        np->rx_packets++;
        np->rx_bytes += packet_size(p);
        pcap_writer_put(np->capture, p);
        if (np->rx) {
            impair_input(np->rx, d->pool, p, now);
            packet_put(p);
        } else {
            d->n_input++;
            d->class->input(d->node, np->config.number, p, now);
        }
    }
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
receive(struct node_daemon *d, struct node_port *np, uint64_t now)
{
    struct port_burst burst;
    int why = port_recv(np->port, d->pool, &burst);

    input(d, np, &burst, now);
    if (burst.n_lost) {
        receive_failed(np, burst.n_lost, burst.why_lost);
    }
    if (why && why != EAGAIN) {
        receive_failed(np, 1, why);
        if (why != EIO && why != ENETDOWN) {
            port_close(np->port); /* the device went away: look for a new one. */
            np->port = NULL;
        }
    }
    return !why;
}

/* port_recv() finds out that a device is gone. */
static void
refresh(struct node_daemon *d, uint64_t now)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        struct node_port *np = d->ports[d->numbers[i]];
        if (np->port) {
            (void) port_refresh(np->port);
        }
    }
    d->refresh_at = now + REFRESH_USEC;
}

bool
node_ports_run(struct node_daemon *d, uint64_t now)
{
    bool more = false;

    if (now >= d->refresh_at) {
        refresh(d, now);
    }
    for (size_t i = 0; i < d->n_ports; i++) {
        struct node_port *np = d->ports[d->numbers[i]];
        more = (np->port && receive(d, np, now)) || more;
        tx_queues_flush(&d->tx_queues);
    }
    return more;
}

void
node_ports_wait(const struct node_daemon *d)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        const struct node_port *np = d->ports[d->numbers[i]];
        if (np->port) {
            poll_fd_wait(port_fd(np->port), POLLIN);
        }
    }
}

uint32_t
node_ports_mtu(void *d_, uint16_t number)
{
    const struct node_daemon *d = d_;
    const struct node_port *np = number < NODE_MAX_PORTS ? d->ports[number] : NULL;

    return np && np->port ? port_mtu(np->port) : UINT32_MAX;
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
            pcap_writer_put(np->capture, frames[i]);
        }
        if (i < n) {
            np->tx_errors++;
            i++;
        }
    }
}

void
node_ports_send(void *d_, uint16_t number, struct packet **frames, size_t n)
{
    struct node_daemon *d = d_;
    struct node_port *np = d->ports[number];

    if (np) {
        node_port_send(np, frames, n);
    } else {
        d->no_port += n;
    }
}

void
node_ports_tx(void *d_, uint16_t number, struct packet *p)
{
    struct node_daemon *d = d_;
    struct node_port *np = number < NODE_MAX_PORTS ? d->ports[number] : NULL;

    if (!np) {
        d->no_port++;
    } else if (!np->port) {
        np->tx_errors++;
    } else if (packet_size(p) > port_mtu(np->port) + sizeof(struct eth_hdr)) {
        np->tx_too_long++;
    } else if (d->trace) {
        node_trace_sent(d->trace, np, p);
    } else if (np->tx) {
        impair_input(np->tx, d->pool, p, node_daemon_now());
    } else {
        tx_queues_put(&d->tx_queues, number, p);
        return;
    }
    packet_put(p);
}
