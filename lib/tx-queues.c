/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames on their way out.
 */
#include "lib/tx-queues.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/alloc.h"

struct tx_queue {
    size_t n;
    struct packet *frames[TX_QUEUE_LEN];
};

void
tx_queues_init(struct tx_queues *q, struct packet_pool *pool, tx_queues_send *send, void *aux)
{
    *q = (struct tx_queues){.pool = pool, .send = send, .aux = aux};
}

static void
empty(struct tx_queue *queue)
{
    for (size_t i = 0; i < queue->n; i++) {
        packet_put(queue->frames[i]);
    }
    queue->n = 0;
}

void
tx_queues_uninit(struct tx_queues *q)
{
    for (size_t port = 0; port <= PORT_NUMBER_MAX; port++) {
        if (q->queues[port]) {
            empty(q->queues[port]);
            free(q->queues[port]);
        }
    }
}

static void
send_queue(struct tx_queues *q, uint16_t port)
{
    struct tx_queue *queue = q->queues[port];

    q->send(q->aux, port, queue->frames, queue->n);
    empty(queue);
}

void
tx_queues_flush(struct tx_queues *q)
{
    for (size_t i = 0; i < q->n_waiting; i++) {
        send_queue(q, q->waiting[i]);
    }
    q->n_waiting = 0;
}

/* Frames that arrive must find buffers while others wait here. */
static bool
few_buffers(const struct packet_pool *pool)
{
    return packet_pool_n_free(pool) < packet_pool_size(pool) / 4;
}

void
tx_queues_put(struct tx_queues *q, uint16_t port, struct packet *p)
{
    assert(port <= PORT_NUMBER_MAX);
    struct tx_queue *queue = q->queues[port];

    if (!queue) {
        queue = q->queues[port] = must_calloc(1, sizeof *queue);
    }
    if (queue->n == TX_QUEUE_LEN) {
        send_queue(q, port);
    } else if (!queue->n) {
        q->waiting[q->n_waiting++] = port;
    }
    queue->frames[queue->n++] = p;
    if (few_buffers(q->pool)) {
        tx_queues_flush(q);
    }
}
