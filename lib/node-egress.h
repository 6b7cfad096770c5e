/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's way out: every frame that it sends goes past here, through the queue of its port if that
 * has a rate (lib/egress.h), and then to the node's struct node_io.
 *
 *     lib/l3.c -> node_egress_tx() -> [queue] -> io.tx()
 *
 * Part of struct node_base.  What a frame is to RED, and what becomes of the news that it met
 * congestion, is lib/node-congestion.h's.
 */
#ifndef LIB_NODE_EGRESS_H
#define LIB_NODE_EGRESS_H 1

#include "lib/egress.h"
#include "lib/node.h"

struct node_base;
struct node_egress;

struct node_egress *node_egress_create(struct node_base *, const struct node_io *);
void node_egress_destroy(struct node_egress *);
/* What the node's struct l3 is given in place of 'io', after each node_egress_configure(). */
struct node_io node_egress_io(struct node_egress *);
/* Queues follow the ports' config.tx: frames of a port that stays are kept, or leave at once if it
 * has no rate any more; those of one that goes are lost. */
void node_egress_configure(struct node_egress *, const struct node_config *, uint64_t now);
/* Time of the event that the node is at.  Before anything that may send. */
void node_egress_set_now(struct node_egress *, uint64_t now);

uint64_t node_egress_deadline(const struct node_egress *);
/* Sends what has left the queues by now. */
void node_egress_timer(struct node_egress *, uint64_t now);

/* Of a port with a queue; false: it has none. */
bool node_egress_stats(const struct node_egress *, uint16_t port, struct egress_stats *);

#endif /* lib/node-egress.h */
