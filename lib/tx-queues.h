/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames on their way out: a queue for each port, sent many at a time.
 *
 * Frames of one port leave in the order in which they were put in; those of different ports in any
 * order.  Who puts frames in sends them when a burst is done, by tx_queues_flush().  Before that a
 * queue is sent when it is full, and all are when few buffers are left.  Pure.
 */
#ifndef LIB_TX_QUEUES_H
#define LIB_TX_QUEUES_H 1

#include "lib/address-plan.h"
#include "lib/packet.h"

#define TX_QUEUE_LEN 64

/* Sends frames of one port, in order.  They stay the queues'. */
typedef void tx_queues_send(void *aux, uint16_t port, struct packet **frames, size_t n);

struct tx_queue;

struct tx_queues {
    struct packet_pool *pool; /* that frames are from. */
    tx_queues_send *send;
    void *aux;
    struct tx_queue *queues[PORT_NUMBER_MAX + 1]; /* by port; NULL: not used yet. */
    uint16_t waiting[PORT_NUMBER_MAX + 1];        /* ports whose queues are not empty. */
    size_t n_waiting;
};

void tx_queues_init(struct tx_queues *, struct packet_pool *, tx_queues_send *, void *aux);
/* Frames that wait are freed, not sent. */
void tx_queues_uninit(struct tx_queues *);
/* Consumes 'p'.  'port' is at most PORT_NUMBER_MAX. */
void tx_queues_put(struct tx_queues *, uint16_t port, struct packet *p);
void tx_queues_flush(struct tx_queues *);

#endif /* lib/tx-queues.h */
