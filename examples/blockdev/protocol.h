/* SPDX-License-Identifier: Apache-2.0
 *
 * What the source of a replicated disk and its replicas say to each other.
 *
 * By the group: RDMA WRITEs with immediate into a ring of slots, which is each
 * replica's region.  A write of the disk is one slot.  Writes have sequence
 * numbers from 0 on, and number n is in slot n modulo N_SLOTS.  The immediate
 * says which write it is, by the low bits of its number.
 *
 * By an ordinary queue pair to each replica: messages, each one SEND.
 *
 * All numbers are big-endian.
 */
#ifndef BLOCKDEV_PROTOCOL_H
#define BLOCKDEV_PROTOCOL_H 1

#include <stdint.h>

#define BLOCKDEV_PORT 7480u

/* Offsets and lengths are multiples of it; a block is dirty or not as a whole. */
#define BLOCK_SIZE    4096u

/*
 * The ring.
 */

struct slot_header {
    uint64_t sequence;
    uint64_t offset; /* in the disk. */
    uint32_t length; /* bytes of data, which follow. */
    uint32_t zero;
};

#define N_SLOTS      32u
#define SLOT_DATA    65536u
#define SLOT_SIZE    (SLOT_DATA + BLOCK_SIZE)
/* Behind the ring is a place for writes that write nothing: a member's place in a group begins with
 * a message, so somebody who joins when nobody writes needs one. */
#define IDLE_SLOT    N_SLOTS
#define RING_SIZE    ((N_SLOTS + 1) * SLOT_SIZE)

/* Immediate: IMM_IDLE for one that writes nothing, then the number is that of the next write. */
#define IMM_IDLE     0x80000000u
#define IMM_SEQUENCE 0x7fffffffu

/*
 * Messages.
 */

enum message_type {
    /* From a replica. */
    MSG_HELLO = 1, /* value: generation; offset: size of the image, 0 if it is new; flags. */
    MSG_FIRST,     /* value: the group brings this write and all after it. */
    MSG_DURABLE,   /* value: all writes before this one that the group has brought are durable. */
    MSG_DATA,      /* answer to MSG_READ, with the same value and offset, and the data. */
    MSG_WRITTEN,   /* answer to MSG_RESYNC, with the same offset, when that is durable. */
    MSG_SAVED,     /* answer to MSG_SAVE, with the same value. */
    /* From the source. */
    MSG_WELCOME, /* offset: size of the disk. */
    MSG_JOIN,    /* be a member of the group; value: no write before this one will come. */
    MSG_READ,    /* value: any; offset; length. */
    MSG_RESYNC,  /* offset, and the data; not where the group has written since MSG_FIRST. */
    MSG_SAVE,    /* value: generation; flags.  Keep it with the image. */
};

/* The disk was closed in order: images of one generation are the same. */
#define MSG_CLEAN 1u

struct message {
    uint32_t type;
    uint32_t flags;
    uint64_t value;
    uint64_t offset;
    uint32_t length; /* MSG_DATA, MSG_RESYNC: of the data, which follow; MSG_READ: wanted. */
    uint32_t zero;
};

/* Private data of a replica's request to connect: the name of its host, with a zero at the end. */
#define HOST_NAME_SIZE 56

#endif /* protocol.h */
