/* SPDX-License-Identifier: Apache-2.0
 *
 * Soft-RoCE devices on network devices, through NETLINK_RDMA.
 */
#ifndef TESTBED_CASTLAB_RDMA_H
#define TESTBED_CASTLAB_RDMA_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Index of an RDMA device; false: there is none. */
bool rdma_find(const char *device, uint32_t *indexp);
/* The process that has the device open; 0: none.  While there is one, removing the device or its
 * network device blocks in the kernel, and no signal ends that. */
pid_t rdma_user(const char *device);
/* Functions return NULL or a malloc'd error. */
char *rdma_link_add(const char *device, const char *netdev);
/* Removes the device if it has this index (-1: any). */
char *rdma_link_delete(const char *device, int64_t index);

/* State of the device's port: "4: ACTIVE", or NULL.  malloc'd. */
char *rdma_port_state(const char *device);
/* Is the port active, and is this address in its GID table? */
bool rdma_port_ready(const char *device, const struct in6_addr *address);

#endif /* testbed/castlab/rdma.h */
