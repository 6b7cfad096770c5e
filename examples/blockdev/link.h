/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on an ordinary reliable connection, one to one.
 */
#ifndef BLOCKDEV_LINK_H
#define BLOCKDEV_LINK_H 1

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "protocol.h"

struct link;

/* Makes a queue pair for a connection that is not yet asked for or accepted, with receives posted.
 * Takes over 'id'; if it fails (NULL, errno) not. */
struct link *link_create(struct rdma_cm_id *id, struct ibv_pd *);
/* Also destroys the id. */
void link_destroy(struct link *);

/* A message to be filled in and given to link_send(), with room for SLOT_DATA bytes behind it, all
 * of the struct 0; NULL: too many are under way. */
struct message *link_prepare(struct link *);
/* Sends a message; of its struct everything but what link_prepare() has set to 0 is the caller's,
 * in the host's byte order.  'data' bytes follow it. */
void link_send(struct link *, struct message *, uint32_t data);
/* A message without data.  False: too many are under way. */
bool link_say(struct link *, enum message_type, uint64_t value, uint64_t offset, uint32_t flags);

/* Readable when there is something for link_run(). */
int link_fd(const struct link *);
/* Gives what has come to 'receive', in the host's byte order.  False: the connection is broken.
 * 'receive' may send, but not destroy the link; if it returns false nothing more is given. */
bool link_run(struct link *, bool (*receive)(void *aux, const struct message *), void *aux);

/* The data behind a message. */
static inline void *
message_data(const struct message *m)
{
    return (char *) (uintptr_t) (m + 1);
}

#endif /* link.h */
