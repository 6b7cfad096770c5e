/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kinds of port share; for lib/port*.c only.
 */
#ifndef LIB_PORT_IMPL_H
#define LIB_PORT_IMPL_H 1

#include <stddef.h>
#include <sys/types.h>

#include "lib/port.h"

struct port_class {
    /* Runs in the device's namespace; 'ifindex' exists.  Sets *fd.  0 or errno,
     * then *why is a static string: what could not be done. */
    int (*open)(const char *netdev, int ifindex, int *fd, const char **why);
    /* Receives up to 'size' bytes of one frame to 'buf'.  0 and *len, the length of
     * the whole frame, or errno. */
    int (*recv)(int fd, uint8_t *buf, size_t size, size_t *len);
    int (*send)(int fd, const struct packet *);
};

extern const struct port_class port_tap;
extern const struct port_class port_packet;

#endif /* lib/port-impl.h */
