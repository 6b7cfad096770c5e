/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad links: what a port's configuration does to the frames that come from its device (rx) and
 * go to it (tx).  Rate and queue of tx are the node's (lib/node-egress.h): frames that come here
 * have left that queue.  A capture has what was on the device: received frames before rx, sent frames
 * after tx.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include "util.h"

/* Gives the node the frames that have left the link by 'now'. */
static void
release_rx(struct node_worker *w, struct node_port *np, uint64_t now)
{
    struct packet *p;

    while (np->rx && (p = impair_output(np->rx, now))) {
        w->n_input++;
        w->daemon->class->input(w->node, np->config.number, p, node_daemon_now());
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
node_impair_run(struct node_worker *w, uint64_t now)
{
    for (size_t i = 0; i < w->n_ports; i++) {
        release_rx(w, w->ports[w->numbers[i]], now);
    }
    tx_queues_flush(&w->tx_queues);
    for (size_t i = 0; i < w->n_ports; i++) {
        release_tx(w->ports[w->numbers[i]], now);
    }
}

uint64_t
node_impair_deadline(const struct node_worker *w)
{
    uint64_t when = UINT64_MAX;

    for (size_t i = 0; i < w->n_ports; i++) {
        const struct node_port *np = w->ports[w->numbers[i]];
        uint64_t rx = np->rx ? impair_deadline(np->rx) : UINT64_MAX;
        uint64_t tx = np->tx ? impair_deadline(np->tx) : UINT64_MAX;
        when = MIN(when, MIN(rx, tx));
    }
    return when;
}

static struct impair *
renew(struct impair *im, const struct impair_params *params, uint64_t salt)
{
    impair_destroy(im);
    return impair_is_none(params) ? NULL : impair_create(params, salt);
}

void
node_impair_configure(struct node_worker *w, struct node_port *np, const struct port_config *new,
                      uint64_t salt)
{
    const struct port_config *old = &np->config;
    salt = salt << 16 | (uint64_t) new->number << 1;

    if (!impair_same(&old->rx, &new->rx)) {
        release_rx(w, np, UINT64_MAX);
        np->rx = renew(np->rx, &new->rx, salt);
    }
    struct impair_params old_tx = impair_way(&old->tx), new_tx = impair_way(&new->tx);
    if (!impair_same(&old_tx, &new_tx)) {
        release_tx(np, UINT64_MAX);
        np->tx = renew(np->tx, &new_tx, salt | 1);
    }
}

void
node_impair_close(struct node_port *np)
{
    impair_destroy(np->rx);
    impair_destroy(np->tx);
    np->rx = np->tx = NULL;
}
