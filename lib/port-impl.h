/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kinds of port share; for lib/port*.c only.
 */
#ifndef LIB_PORT_IMPL_H
#define LIB_PORT_IMPL_H 1

#include <net/if.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/port.h"

struct gso;

struct port {
    const struct port_class *class;
    char netdev[IFNAMSIZ];
    int fd;
    int query_fd; /* socket in the device's namespace, to ask about it. */
    unsigned mtu;
    struct gso *gso; /* packet: what was received with several frames in one. */
};

struct port_class {
    /* Runs in the device's namespace; 'ifindex' exists.  Sets what is its own in the port.  0 or
     * errno, then *why is a static string: what could not be done. */
    int (*open)(struct port *, int ifindex, const char **why);
    /* Receives up to 'size' bytes of one frame to 'buf'.  0 and *len, the length of
     * the whole frame, or errno. */
    int (*recv)(struct port *, uint8_t *buf, size_t size, size_t *len);
    int (*send)(const struct port *, const struct packet *);
};

extern const struct port_class port_tap;
extern const struct port_class port_packet;

#endif /* lib/port-impl.h */
