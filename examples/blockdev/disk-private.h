/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of a disk share.  One lock covers everything; functions are
 * called with it held.
 */
#ifndef BLOCKDEV_DISK_PRIVATE_H
#define BLOCKDEV_DISK_PRIVATE_H 1

#include <pthread.h>
#include <rocecast.h>

#include "disk.h"
#include "link.h"

#define MAX_REPLICAS 8u
/* Pieces of a resynchronisation that are under way to a replica. */
#define N_PIECES     4u
/* Reads that are under way at a replica.  With the pieces, fewer than a link can have. */
#define MAX_READS    24u

struct replica;

/* A read that is under way; on a list from replicas_read() until it is done or has failed. */
struct read {
    struct read *next;
    uint64_t tag;
    struct replica *from;
    void *data; /* where the data are to go, or NULL: 'piece' takes them. */
    struct piece *piece;
    uint32_t length;
    bool done, failed; /* failed: the replica is gone, another may be asked. */
};

/* A run of dirty blocks on its way to a replica. */
struct piece {
    struct replica *to;
    uint64_t offset;
    uint32_t length; /* 0: none. */
    bool sent;       /* it has been read. */
    struct read read;
};

enum replica_state {
    AWAY,    /* not connected, or its registration is on its way out. */
    COPYING, /* gets dirty blocks, those of before. */
    JOINING, /* registers with the group; which write will be its first is not known. */
    FILLING, /* the group brings everything from 'first' on; dirty blocks are what is missing. */
    CURRENT, /* has everything. */
};

struct replica {
    char host[ROCECAST_NAME_SIZE];
    enum replica_state state;
    struct link *link;
    struct link *broken;   /* one that is to be destroyed when nobody is in it. */
    struct rdma_cm_id *id; /* the link's. */
    bool said_hello;
    struct message hello;
    struct rocecast_request *leaving; /* an earlier registration that is on its way out. */

    uint64_t generation,
        asked_generation; /* what its image is, and what it has been told to save. */
    uint64_t join_at;     /* JOINING: no write before this one will be its first. */
    uint64_t first;       /* FILLING, CURRENT. */
    uint64_t
        durable; /* FILLING, CURRENT: writes from 'first' to before this one are durable there. */

    unsigned char *dirty; /* a bit for each block. */
    uint64_t n_dirty, cursor;
    struct piece pieces[N_PIECES];
    unsigned n_reads; /* also those for pieces of others. */
    long long patient_since;

    /* Counted since it was lost: blocks that became dirty, and those that were sent to it. */
    uint64_t n_dirtied, n_resent;
};

/* A write; it stays in its slot until it is known at all replicas that may have to be told of it. */
struct slot {
    uint64_t offset;
    uint32_t length;
};

struct disk {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a write or read is done, a slot is free, or the disk has failed. */
    char error[512];
    bool failed; /* for good. */
    bool serving, stopping;
    uint64_t size;
    int answer_msec;
    uint64_t generation;

    struct rocecast *registry;
    struct rocecast_group *group;
    struct rocecast_epoch epoch;
    struct rdma_event_channel *events;
    struct rdma_cm_id *listener;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *ring; /* what is sent, at the same places as at replicas. */
    struct slot slots[N_SLOTS];
    uint64_t next;      /* number of the next write. */
    uint64_t sent;      /* those before are in all members' memory. */
    uint64_t completed; /* those before are done. */
    unsigned n_idle;    /* writes that write nothing and are under way. */
    long long posted_at;

    struct replica replicas[MAX_REPLICAS];
    unsigned n_replicas;
    struct read *reads;
};

extern struct disk disk;

#define FOR_EACH_REPLICA(R) \
    for (struct replica *R = disk.replicas; R < disk.replicas + disk.n_replicas; R++)

/* disk.c */
long long now_msec(void);
/* A line on standard error. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Nothing can be read or written any more.  The first reason stays. */
void disk_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Takes note of writes that are done. */
void disk_advance(void);

/* replicas.c */
static inline bool
has_writes(const struct replica *r)
{
    return r->state == FILLING || r->state == CURRENT;
}
/* Takes what has come from replicas, from connections and from the registry. */
void replicas_run(void);
/* Has everybody who counts said that the group's write 'sequence' is durable? */
bool replicas_have(uint64_t sequence);
/* The first write whose slot may not be used again. */
uint64_t replicas_hold(void);
/* Is there one whose place in the group begins with the next message? */
bool replicas_join(void);
/* Asks a current replica to read.  False: not now. */
bool replicas_read(struct read *, uint64_t offset);
/* Nobody wants this read's data any more. */
void replicas_forget(struct read *);
/* Gives a replica up. */
void replica_lose(struct replica *, const char *why);
/* Begins to serve it, when it has said hello. */
void replica_begin(struct replica *, enum replica_state);
/* Another generation, which a replica that is gone has no part in. */
void generation_begin(bool clean);
/* Have all that are current saved it? */
bool generation_is_saved(void);

/* resync.c */
bool resync_init(struct replica *);
void dirty_set(struct replica *, uint64_t offset, uint64_t length);
void dirty_clear(struct replica *, uint64_t offset, uint64_t length);
/* Sends what is dirty, and has the replica join when that is done. */
void resync_run(struct replica *);
/* The data that a piece was waiting for. */
bool piece_take(struct piece *, const void *data);
/* The piece at this offset is durable.  False: there is none. */
bool piece_done(struct replica *, uint64_t offset);
/* A piece will not get there: it is dirty again. */
void piece_lose(struct piece *);
/* The same, of all that are under way to the replica. */
void pieces_lose(struct replica *);
bool pieces_busy(const struct replica *);

#endif /* disk-private.h */
