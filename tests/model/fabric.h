/* SPDX-License-Identifier: Apache-2.0
 *
 * A network in virtual time: an event queue, links that delay, reorder, lose,
 * repeat and spoil frames, and the one source of chance.
 *
 * It carries frames between the ports of stations, which are numbers to it.
 * Everything follows from the seed.  Times are microseconds.
 */
#ifndef TESTS_MODEL_FABRIC_H
#define TESTS_MODEL_FABRIC_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FABRIC_STRAY_USEC  900000
#define FABRIC_MAX_LINKS   1200
#define FABRIC_MAX_ENDS    8192 /* of the index: a power of 2, well above that of ends. */

/* No real network keeps for long to a rhythm in which a full queue always drops the same. */
#define FABRIC_JITTER_FROM 60000000

/* Of one direction of a link. */
struct fabric_quality {
    uint32_t delay; /* always, and 30 times that at most where reordered. */
    uint32_t
        jitter; /* up to so much more from FABRIC_JITTER_FROM on; none overtakes another for that. */
    uint32_t loss, twice, spoil, reorder; /* of 10000 frames... */
    uint32_t stray;                       /* ...which arrive once more, within FABRIC_STRAY_USEC. */
};

/* A station's end of a link. */
struct fabric_end {
    unsigned station;
    uint16_t port;
};

struct fabric_link {
    struct fabric_end ends[2];
    struct fabric_quality quality[2]; /* of what ends[i] sends. */
    uint64_t last[2];                 /* with jitter: when that arrives last. */
};

struct fabric_event;

struct fabric {
    /* A frame arrives. */
    void (*deliver)(void *aux, struct fabric_end, const uint8_t *frame, size_t len);
    void *aux;

    uint64_t now;
    uint64_t random;
    uint64_t n_events;  /* so far. */
    uint64_t last_loss; /* when a frame got lost or spoilt last; 0: never. */
    uint64_t n_lost, n_twice, n_spoilt, n_late; /* frames so far. */
    struct fabric_link links[FABRIC_MAX_LINKS];
    unsigned n_links;
    uint16_t ends[FABRIC_MAX_ENDS]; /* 1 + 2 * link + side, hashed by station and port; 0: free. */
    struct fabric_event **heap;
    size_t n_heap, heap_size;
};

void fabric_init(struct fabric *, uint64_t seed,
                 void (*deliver)(void *aux, struct fabric_end, const uint8_t *frame, size_t len),
                 void *aux);
void fabric_uninit(struct fabric *);

/* A number below 'limit'. */
uint32_t fabric_random(struct fabric *, uint32_t limit);

void fabric_connect(struct fabric *, struct fabric_end, struct fabric_end);
/* What a station's port is connected with. */
struct fabric_end fabric_peer(struct fabric *, struct fabric_end);
/* Sends a frame from a port that is connected.  One that is 'ideal' meets no
 * more than the delay. */
void
fabric_send(struct fabric *, struct fabric_end from, const uint8_t *frame, size_t len, bool ideal);
/* From now on all links only delay. */
void fabric_calm(struct fabric *);

/* run(aux, a, b) at that time. */
void fabric_schedule(struct fabric *, uint64_t at, void (*run)(void *aux, unsigned a, unsigned b),
                     unsigned a, unsigned b);
/* Time of the next event, UINT64_MAX: none. */
uint64_t fabric_next(const struct fabric *);
/* Takes the next event, at 'now'. */
void fabric_run(struct fabric *);

#endif /* tests/model/fabric.h */
