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
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/port.h"

struct port {
    const struct port_class *class;
    char netdev[IFNAMSIZ];
    int fd;       /* the kind's; closed with the port. */
    int query_fd; /* socket in the device's namespace, to ask about it. */
    bool up;      /* as port_is_up(). */
    unsigned mtu;
    unsigned mtu_max; /* the kind's; 0: it has none. */
    bool offload;     /* may be used: port_use_offload(). */
};

struct port_class {
    size_t size;      /* of the kind's struct, in which open() finds zeros behind struct port. */
    bool is_host_nic; /* port_kind_is_host_nic(). */
    bool is_netdev;   /* port_kind_is_netdev(). */
    /* Runs in the device's namespace; 'ifindex' exists, 'queue' is never NULL.  Sets the kind's own
     * fields of the port.  0 or errno; then the kind's own fields need no release, and *why is a
     * static string that says what could not be done. */
    int (*open)(struct port *, int ifindex, const struct port_queue *queue, const char **why);
    /* Releases the kind's own fields of a port that was opened; NULL: nothing to do. */
    void (*close)(struct port *);
    /* As port_recv() and port_send().  Priority tags may be left.  recv() is given an empty burst;
     * send(): ENOBUFS is EAGAIN. */
    int (*recv)(struct port *, struct packet_pool *, struct port_burst *);
    size_t (*send)(struct port *, struct packet *const *, size_t n, int *why);
};

/* A frame was taken and is lost. */
static inline void
port_burst_lost(struct port_burst *b, int why)
{
    b->n_lost++;
    b->why_lost = why;
}

#define KIND(ENUM, TEXT) extern const struct port_class port_##TEXT;
PORT_KINDS(KIND)
#undef KIND

#endif /* lib/port-impl.h */
