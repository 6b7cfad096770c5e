/* SPDX-License-Identifier: Apache-2.0
 *
 * Packet buffers from a fixed pool.
 *
 * A packet is up to three pieces in wire order:
 *
 *     head (private bytes, with headroom to push headers)
 *     body (bytes of another packet, read only, by reference)
 *     tail (private, at most PACKET_TAIL bytes: the ICRC of a copy)
 *
 * A packet fresh from a port is all head.  packet_replicate() makes a copy
 * with private headers that shares the payload, so that N copies cost N
 * header copies.  Nothing here allocates after packet_pool_create(); an empty
 * pool is the drop reason pool_empty.  Single-threaded.
 */
#ifndef LIB_PACKET_H
#define LIB_PACKET_H 1

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Outer Ethernet + IPv6 + the longest IOAM trace + the largest SRH, with slack.  Even but no
 * multiple of 4, so that behind an Ethernet header at a new packet's start IPv6 addresses are
 * aligned. */
#define PACKET_HEADROOM 2418
#define PACKET_ROOM     9248 /* largest frame: MTU 9216 + Ethernet. */
#define PACKET_OVER     1    /* bytes of room behind it, to find out that a frame is longer. */
#define PACKET_TAIL     4

struct packet_pool;

struct packet {
    uint8_t *data;            /* head, inside buf. */
    uint32_t len;             /* bytes in head. */
    uint32_t body_len;        /* 0: no body. */
    struct packet *body;      /* owns a reference. */
    const uint8_t *body_data; /* in body's buffer; stays put when body's head moves. */
    uint8_t tail[PACKET_TAIL];
    uint8_t tail_len;
    uint8_t l3_errors;  /* enum l3_errors, while lib/l3.c waits for a neighbour. */
    uint16_t in_port;   /* that it, or what it is a copy of, came in on; 0: was made here. */
    uint32_t group_qpn; /* of a group's copy that a queue may hold: its Designated QPN, */
    uint32_t branch;    /* and the branch that it is for; 0: it is no such copy. */
    uint64_t came_at;   /* microseconds: when it, or what it is a copy of, came in; 0: made here. */
    uint32_t refs;
    uint8_t red; /* lib/egress.c: what RED may do, or has done, to it in a queue. */
    struct packet_pool *pool;
    struct packet *next; /* free for use by the current owner (queues). */
    uint8_t buf[];
};

/* A pool of 'n' packets.  Aborts if memory cannot be had (start-up only). */
struct packet_pool *packet_pool_create(unsigned n);
/* All packets must have been returned. */
void packet_pool_destroy(struct packet_pool *);
unsigned packet_pool_n_free(const struct packet_pool *);
/* How many it has, free or not. */
unsigned packet_pool_size(const struct packet_pool *);

/* An empty packet with PACKET_HEADROOM bytes before data, or NULL. */
struct packet *packet_get(struct packet_pool *);
/* Drops one reference.  NULL is allowed. */
void packet_put(struct packet *);

/* Copies 'len' bytes in; NULL if the pool is empty or len > PACKET_ROOM. */
struct packet *packet_from_bytes(struct packet_pool *, const void *bytes, size_t len);

/* Total bytes on the wire. */
static inline size_t
packet_size(const struct packet *p)
{
    return (size_t) p->len + p->body_len + p->tail_len;
}

/* Room for 'n' more bytes in front; the caller writes them.  NULL if there is
 * no headroom. */
void *packet_push(struct packet *, size_t n);
/* Takes 'n' bytes off the front; NULL (and nothing done) if head is shorter. */
void *packet_pull(struct packet *, size_t n);

/* A new packet whose head is a private copy of src->data[ofs, ofs + head_len),
 * whose body refers to the rest of src's head except its last tail_len bytes,
 * which are copied to tail.  'src' must be all head.  NULL if the pool is empty.
 *
 * Afterwards the headers and the tail of 'src' may still be changed, pushed and
 * pulled (so it can be the last copy itself), but not the bytes shared.
 * The copy's head is aligned like the bytes that it was copied from. */
struct packet *
packet_replicate(struct packet *src, uint32_t ofs, uint32_t head_len, uint8_t tail_len);

/* Fills up to 3 vectors; returns how many. */
int packet_iov(const struct packet *, struct iovec iov[3]);

/* Copies the whole packet to 'out' (room 'size'); returns its length, or 0 if
 * it does not fit. */
size_t packet_flatten(const struct packet *, uint8_t *out, size_t size);
/* The same without its first 'ofs' bytes, which are in the head. */
size_t packet_flatten_from(const struct packet *, size_t ofs, uint8_t *out, size_t size);

#endif /* lib/packet.h */
