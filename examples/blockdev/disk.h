/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that is kept by replicas.  A process has at most one.
 *
 * A write is done when it is durable at every replica that counts.  There is thus
 * nothing to flush.  A replica that is gone does not count: the disk goes on as
 * long as one is left.  Blocks that are written meanwhile are dirty, and are all
 * that the replica gets when it is back.
 */
#ifndef BLOCKDEV_DISK_H
#define BLOCKDEV_DISK_H 1

#include <stdbool.h>
#include <stdint.h>

struct disk_options {
    const char *group;    /* its name; it is to have the policy 'prune'. */
    const char *host;     /* this one, the source. */
    const char *replicas; /* names of hosts, with commas. */
    uint64_t size;        /* bytes, a multiple of BLOCK_SIZE. */
    int wait_msec;        /* until all replicas are there. */
    int answer_msec;      /* a replica that owes an answer for longer is given up. */
};

/* Waits for all replicas, and makes their images alike where they are not known to be.  False:
 * disk_error() says why. */
bool disk_open(const struct disk_options *);
/* Nobody may be reading or writing. */
void disk_close(void);
const char *disk_error(void);

/* 0 or EIO, when no replica is left or another source has taken over; disk_error() says which.
 * Offsets and lengths are multiples of BLOCK_SIZE, within the disk.  Any thread may call these. */
int disk_read(void *data, uint32_t length, uint64_t offset);
int disk_write(const void *data, uint32_t length, uint64_t offset);

#endif /* disk.h */
