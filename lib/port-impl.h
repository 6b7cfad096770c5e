/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kinds of port share; for lib/port*.c only.
 *
 * A kind has a class.  If it has a state of its own, that is a struct which begins with a struct
 * port.
 */
#ifndef LIB_PORT_IMPL_H
#define LIB_PORT_IMPL_H 1

#include <net/if.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/port.h"

struct port {
    const struct port_class *class;
    char netdev[IFNAMSIZ];
    int fd;       /* the kind's; closed with the port. */
    int query_fd; /* socket in the device's namespace, to ask about it. */
    unsigned mtu;
};

struct port_class {
    size_t size;      /* of the kind's struct, in which open() finds zeros behind struct port. */
    bool is_host_nic; /* port_kind_is_host_nic(). */
    bool is_netdev;   /* port_kind_is_netdev(). */
    /* Runs in the device's namespace; 'ifindex' exists.  Sets the kind's own fields of the port.
     * 0 or errno; then *why is a static string that says what could not be done. */
    int (*open)(struct port *, int ifindex, const char **why);
    /* Receives up to 'size' bytes of one frame to 'buf'.  0 and *len, the length of
     * the whole frame, or errno. */
    int (*recv)(struct port *, uint8_t *buf, size_t size, size_t *len);
    int (*send)(const struct port *, const struct packet *);
};

#define KIND(ENUM, TEXT) extern const struct port_class port_##TEXT;
PORT_KINDS(KIND)
#undef KIND

#endif /* lib/port-impl.h */
