/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows that leave at a rate each: a queue for each flow, and a time at which its next packet may
 * go.
 *
 * A flow that is not limited and has nothing waiting does not pass here at all.  A queue has at most
 * PACER_QUEUE_MAX packets, which is the window of one queue pair of rxe.  When an RC requester goes
 * back to a PSN, what waits from that PSN on is freed: it comes again (pacer.c says why).  So the
 * PSNs of a queue only grow, and it never has two of one.
 *
 * A flow may be stopped: then nothing leaves, whatever its rate, until it goes on.
 *
 * Flows are independent of each other.  Pure; time in microseconds, rates in bit/s.
 */
#ifndef LIB_PACER_H
#define LIB_PACER_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/deadlines.h"
#include "lib/packet.h"
#include "lib/wire.h"

#define PACER_QUEUE_MAX  129
/* What a flow may save up that had nothing to send: so much time, or two packets. */
#define PACER_BURST_USEC 100
/* A wake-up that is late is made up for with so many packets at once. */
#define PACER_LATE_MAX   16

struct pacer_flow; /* below. */

struct pacer {
    struct deadlines deadlines; /* of flows. */
    uint32_t n_flows;           /* that have been limited, and are not removed. */
    uint32_t n_waiting;         /* packets, of all flows. */
};

/* Embedded in its owner; starts all zero but for 'owner'. */
struct pacer_flow {
    void *owner;
    bool stopped;
    uint64_t rate;     /* bit/s; 0: not limited. */
    uint64_t next;     /* when the bucket is full for the next packet, in nanoseconds, */
    uint64_t rest;     /* and what the division by the rate has left of it. */
    uint32_t overhead; /* bytes that a frame of the flow has beside the packet. */
    bool is_known;     /* it is one of n_flows. */
    struct packet *head, *tail;
    uint32_t n;                             /* packets that wait. */
    uint32_t max_n;                         /* most ever. */
    uint64_t n_delayed, n_replaced, n_full; /* packets: queued; freed for a new one; no room. */
    struct deadline deadline;
};

void pacer_init(struct pacer *);
/* All flows must be gone. */
void pacer_uninit(struct pacer *);

/* Must a packet that comes now go through pacer_put()?  False: it may leave at once, and the caller
 * calls pacer_sent(). */
bool pacer_must_wait(const struct pacer_flow *, uint64_t now);
/* Consumes 'p' (data at its IPv6 header, BTH right behind UDP: its PSN is read), which is 'frame'
 * bytes long on the wire of the rate.  False: the queue is full, and 'p' was freed. */
bool pacer_put(struct pacer *, struct pacer_flow *, struct packet *p, uint32_t frame, uint64_t now);
/* A packet of so many bytes left past the queue. */
void pacer_sent(struct pacer_flow *, uint32_t frame, uint64_t now);
void pacer_set_rate(struct pacer *, struct pacer_flow *, uint64_t rate, uint64_t now);
void pacer_stop(struct pacer *, struct pacer_flow *, bool stopped);
/* Frees what waits and forgets the flow. */
void pacer_remove(struct pacer *, struct pacer_flow *);

/* When pacer_get() has something; UINT64_MAX: nothing waits. */
uint64_t pacer_deadline(const struct pacer *);
/* The next packet that may leave now, which becomes the caller's, and its flow; NULL: none. */
struct packet *pacer_get(struct pacer *, uint64_t now, struct pacer_flow **);

#endif /* lib/pacer.h */
