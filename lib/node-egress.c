/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's way out.
 *
 * Theory of operation
 * -------------------
 * A port that is watched has a queue, or its frames are looked at for IOAM traces; what it sends is
 * counted.  Frames of the others go straight on.  A node that watches no port, as most do, has its
 * frames go to its struct node_io without a detour.
 *
 * A queue is emptied by the timer only.  What is told of a frame that leaves may make the node send
 * something else: that enters its queue, behind the frame, and the order stays.
 */
#include "lib/node-egress.h"

#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/node-base.h"
#include "lib/node-congestion.h"
#include "lib/trace.h"

struct port_egress {
    char name[NAME_SIZE]; /* the port's. */
    struct egress *queue; /* NULL: the port has no rate. */
    uint64_t sent_bytes;  /* since it is watched. */
};

struct node_egress {
    struct node_base *base;
    struct node_io io;
    uint64_t now;
    struct port_egress *ports[PORT_NUMBER_MAX + 1]; /* by number; NULL: not watched. */
    uint16_t watched[PORT_NUMBER_MAX + 1];          /* their numbers. */
    size_t n_watched;
};

static void
send_frame(struct node_egress *ne, uint16_t number, struct packet *p)
{
    ne->ports[number]->sent_bytes += packet_size(p);
    ne->io.tx(ne->io.aux, number, p);
}

/* May the frame have an IOAM trace? */
static bool
has_hop_by_hop(const struct packet *p)
{
    const struct eth_hdr *eth = (const void *) p->data;
    const struct ip6_hdr_wire *ip = (const void *) (eth + 1);

    return p->len >= sizeof *eth + sizeof *ip && ip->nh == IP6_NH_HOPOPT;
}

static void
enter_queue(struct node_egress *ne, uint16_t number, struct packet *p)
{
    struct node_base *base = ne->base;
    struct egress *queue = ne->ports[number]->queue;
    enum egress_kind kind =
        egress_has_red(queue) ? node_congestion_kind(base->congestion, p, ne->now) : EGRESS_EXEMPT;
    bool congested;
    enum egress_result result = egress_put(queue, p, kind, ne->now, &congested);

    if (congested) {
        node_congestion_met(base->congestion, number, p, ne->now);
    }
    switch (result) {
    case EGRESS_QUEUED: return;
    case EGRESS_FULL: node_count_drop(base, DROP_egress_full); break;
    case EGRESS_RED: node_count_drop(base, DROP_egress_red); break;
    }
    packet_put(p);
}

/* A frame for a port that is watched. */
static void
attend(struct node_egress *ne, uint16_t number, struct packet *p)
{
    struct port_egress *port = ne->ports[number];
    struct egress_stats stats = {.depth = 0};

    if (port->queue) {
        egress_get_stats(port->queue, &stats);
    }
    if (has_hop_by_hop(p)) {
        node_congestion_trace(ne->base->congestion, number, p, stats.depth_bytes, port->sent_bytes);
    }
    if (port->queue && ne->base->tracer.line) {
        TRACE(&ne->base->tracer, "queue of port %s: %u frames before it", port->name, stats.depth);
    } else if (port->queue) {
        enter_queue(ne, number, p);
        return;
    }
    send_frame(ne, number, p);
}

static void
tx(void *ne_, uint16_t number, struct packet *p)
{
    struct node_egress *ne = ne_;

    if (ne->ports[number]) {
        attend(ne, number, p);
    } else {
        ne->io.tx(ne->io.aux, number, p);
    }
}

static uint32_t
mtu(void *ne_, uint16_t number)
{
    struct node_egress *ne = ne_;

    return ne->io.mtu(ne->io.aux, number);
}

static bool
up(void *ne_, uint16_t number)
{
    struct node_egress *ne = ne_;

    return ne->io.up(ne->io.aux, number);
}

struct node_egress *
node_egress_create(struct node_base *base, const struct node_io *io)
{
    struct node_egress *ne = must_calloc(1, sizeof *ne);

    ne->base = base;
    ne->io = *io;
    return ne;
}

/* Watches a port no longer; what waits there is lost. */
static void
forget(struct node_egress *ne, uint16_t number)
{
    egress_destroy(ne->ports[number]->queue);
    free(ne->ports[number]);
    ne->ports[number] = NULL;
}

void
node_egress_destroy(struct node_egress *ne)
{
    for (size_t i = 0; i < ne->n_watched; i++) {
        forget(ne, ne->watched[i]);
    }
    free(ne);
}

struct node_io
node_egress_io(struct node_egress *ne)
{
    struct node_io io = ne->io;

    if (!ne->n_watched) {
        return io;
    }
    io.tx = tx;
    io.mtu = ne->io.mtu ? mtu : NULL;
    io.up = ne->io.up ? up : NULL;
    io.aux = ne;
    return io;
}

/* Sends what has left a port's queue by 'now'. */
static void
release(struct node_egress *ne, uint16_t number, uint64_t now)
{
    struct egress *queue = ne->ports[number]->queue;
    struct packet *p;
    bool marked;

    while ((p = egress_get(queue, now, &marked))) {
        if (marked) {
            node_congestion_marked(ne->base->congestion, number, p, ne->now);
        }
        send_frame(ne, number, p);
    }
}

static void
configure_queue(struct node_egress *ne, uint16_t node, const struct port_config *pc, uint64_t now)
{
    struct port_egress *port = ne->ports[pc->number];
    struct egress_params params = impair_queue(&pc->tx);

    if (pc->tx.rate && port->queue) {
        egress_configure(port->queue, &params, now);
    } else if (pc->tx.rate) {
        uint64_t salt = (uint64_t) node << 16 | pc->number;
        port->queue = egress_create(&params, salt << 32 | pc->tx.seed);
    } else if (port->queue) {
        release(ne, pc->number, UINT64_MAX);
        egress_destroy(port->queue);
        port->queue = NULL;
    }
}

static const struct port_config *
find_port(const struct node_config *config, uint16_t number)
{
    for (size_t i = 0; i < config->n_ports; i++) {
        if (config->ports[i].number == number) {
            return &config->ports[i];
        }
    }
    return NULL;
}

void
node_egress_configure(struct node_egress *ne, const struct node_config *config, uint64_t now)
{
    bool trace = config->congestion.trace;

    for (size_t i = 0; i < ne->n_watched; i++) {
        const struct port_config *pc = find_port(config, ne->watched[i]);

        if (!pc || strcmp(pc->name, ne->ports[ne->watched[i]]->name)) {
            forget(ne, ne->watched[i]);
        }
    }
    ne->n_watched = 0;
    for (size_t i = 0; i < config->n_ports; i++) {
        const struct port_config *pc = &config->ports[i];
        struct port_egress **port = &ne->ports[pc->number];

        if (!*port && (pc->tx.rate || trace)) {
            *port = must_calloc(1, sizeof **port);
            memcpy((*port)->name, pc->name, sizeof(*port)->name);
        }
        if (*port) {
            configure_queue(ne, config->id, pc, now);
        }
        if (*port && !pc->tx.rate && !trace) {
            forget(ne, pc->number);
        }
        if (*port) {
            ne->watched[ne->n_watched++] = pc->number;
        }
    }
}

void
node_egress_set_now(struct node_egress *ne, uint64_t now)
{
    ne->now = now;
}

uint64_t
node_egress_deadline(const struct node_egress *ne)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < ne->n_watched; i++) {
        const struct egress *queue = ne->ports[ne->watched[i]]->queue;
        uint64_t when = queue ? egress_deadline(queue) : UINT64_MAX;

        first = when < first ? when : first;
    }
    return first;
}

void
node_egress_timer(struct node_egress *ne, uint64_t now)
{
    for (size_t i = 0; i < ne->n_watched; i++) {
        if (ne->ports[ne->watched[i]]->queue) {
            release(ne, ne->watched[i], now);
        }
    }
}

bool
node_egress_stats(const struct node_egress *ne, uint16_t port, struct egress_stats *stats)
{
    if (!ne->ports[port] || !ne->ports[port]->queue) {
        return false;
    }
    egress_get_stats(ne->ports[port]->queue, stats);
    return true;
}
