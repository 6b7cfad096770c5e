/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbour cache: which MAC an address on a port has, and the packets that wait
 * for the answer (RFC 4861 section 7).  Pure; time is in microseconds.
 */
#ifndef LIB_NEIGH_H
#define LIB_NEIGH_H 1

#include <netinet/in.h>
#include <stdbool.h>

#include "lib/address-plan.h"
#include "lib/drop.h"
#include "lib/packet.h"

#define NEIGH_MAX            4096 /* entries in all. */
#define NEIGH_MAX_PER_PORT   64   /* links are point to point: one is the rule. */
#define NEIGH_QUEUE_MAX      160  /* packets waiting per entry: a requester sends 129 at once. */
#define NEIGH_QUEUED_MAX     2048 /* packets in all: buffers must be left to receive the answers. */
#define NEIGH_N_SOLICITS     3
#define NEIGH_RETRANS_USEC   1000000
#define NEIGH_REACHABLE_USEC 30000000
#define NEIGH_HOLD_USEC      1000000 /* time without a new question after one without answer. */
#define NEIGH_PORTS          (PORT_NUMBER_MAX + 1)

struct neigh_table;

struct neigh_ops {
    /* Ask who has 'addr' on 'port': at 'mac' if it is thought to be there, else
     * (NULL) everybody. */
    void (*solicit)(void *aux, uint16_t port, const struct in6_addr *addr, const uint8_t *mac);
    /* The neighbour's MAC is known: send the packet that waited for it.  'p' goes
     * to the callee. */
    void (*send)(void *aux, uint16_t port, struct packet *p, const uint8_t mac[6]);
    /* A packet that waited is given up.  'p' goes to the callee. */
    void (*drop)(void *aux, uint16_t port, struct packet *p, enum drop_reason);
    void *aux;
};

/* All memory is had here; the rest does not allocate.  Aborts if there is none. */
struct neigh_table *neigh_table_create(const struct neigh_ops *);
/* Releases packets that wait; calls nothing back. */
void neigh_table_destroy(struct neigh_table *);

/* Looks for the MAC of 'addr' on 'port' and asks if it is not known.
 *
 *   DROP_none, *mac set    known; 'p' is still the caller's, *mac is valid until
 *                          the next call
 *   DROP_none, *mac NULL   'p' waits in the table
 *   other                  'p' is still the caller's, to be dropped for this */
enum drop_reason neigh_resolve(struct neigh_table *, uint16_t port, const struct in6_addr *addr,
                               struct packet *p, uint64_t now, const uint8_t **mac);

/* Calls of neigh_resolve() that can be left out.
 *
 * If one has set *mac, the next ones for this neighbour would set the same and do nothing else as
 * long as *neigh_changes() of its port stays as it is after the call, and 'now' is below
 * neigh_until().  The counter's address stays until the table is destroyed. */
const uint64_t *neigh_changes(const struct neigh_table *, uint16_t port);
/* Of the neighbour that neigh_resolve() was called for last on this port. */
uint64_t neigh_until(const struct neigh_table *, uint16_t port);
/* Changes the counters of all ports. */
void neigh_touch(struct neigh_table *);

/* An answer to a question: 'mac' is NULL if it named none.  Ignored unless this
 * table has asked and waits.  'override' is the advertisement's O flag. */
void neigh_answer(struct neigh_table *, uint16_t port, const struct in6_addr *addr,
                  const uint8_t *mac, bool override, uint64_t now);

/* The neighbour itself said what its MAC is, unasked.  Makes or updates the entry;
 * it is verified when it is used.  The caller bounds who may do this. */
void neigh_learn(struct neigh_table *, uint16_t port, const struct in6_addr *addr,
                 const uint8_t mac[6], uint64_t now);

/* Forgets the port's entries; packets that wait are dropped as port_down. */
void neigh_flush(struct neigh_table *, uint16_t port);

/* When neigh_timer() wants to be called, UINT64_MAX: never.  May be early. */
uint64_t neigh_deadline(const struct neigh_table *);
void neigh_timer(struct neigh_table *, uint64_t now);

/* For display: entry i of neigh_count(), in no particular order.  *mac is NULL if
 * it is not known. */
size_t neigh_count(const struct neigh_table *);
bool neigh_get(const struct neigh_table *, size_t i, uint16_t *port, struct in6_addr *addr,
               const uint8_t **mac);

#endif /* lib/neigh.h */
