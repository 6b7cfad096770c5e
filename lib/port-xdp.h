/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two halves of ports on AF_XDP sockets agree on; for lib/port-xdp*.c only.
 *
 * The parts of such a port (struct port_parts) are, in this order: descriptors of a packet socket that
 * watches the device, of the link that keeps the XDP program attached, of the memory, and of a socket
 * for each receive queue.
 */
#ifndef LIB_PORT_XDP_H
#define LIB_PORT_XDP_H 1

#include <stddef.h>

#include "lib/port.h"

enum { XDP_PART_WATCH = 1, XDP_PART_LINK, XDP_PART_MEMORY, XDP_PART_QUEUES };

#define CHUNK_SIZE 4096
#define N_RX       2048 /* chunks; also the sizes of rings.  Powers of 2. */
#define N_TX       1024
/* Of each queue, in the memory one behind the other. */
#define AREA_SIZE  ((size_t) (N_RX + N_TX) * CHUNK_SIZE)
/* The longest frame that the kernel puts into one chunk. */
#define ONE_CHUNK  (CHUNK_SIZE - 256)

struct port_device;

/* struct port_class's. */
int xdp_acquire(const struct port_device *, struct port_parts *, const char **why);

#endif /* lib/port-xdp.h */
