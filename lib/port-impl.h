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
};

/* The device that a port is to be opened on. */
struct port_device {
    char netdev[IFNAMSIZ];
    int ifindex;
    unsigned mtu;
    unsigned n_sharing; /* ports that are to share it. */
    bool offload;       /* may be used: port_use_offload(). */
};

struct port_class {
    size_t size; /* of the kind's struct, in which assemble() finds zeros behind struct port. */
    bool is_host_nic; /* port_kind_is_host_nic(). */
    bool is_netdev;   /* port_kind_is_netdev(). */
    /* Runs in the device's namespace.  Adds descriptors to the parts, which the caller closes if this
     * fails.  0 or errno; then *why is a static string that says what could not be done. */
    int (*acquire)(const struct port_device *, struct port_parts *, const char **why);
    /* Sets the kind's own fields of the port from the parts; 'queue' is never NULL.  Takes descriptors
     * by port_parts_take().  Errors as above; then the kind's own fields need no release. */
    int (*assemble)(struct port *, struct port_parts *, const struct port_queue *queue,
                    const char **why);
    /* Releases the kind's own fields of a port that was opened; NULL: nothing to do. */
    void (*close)(struct port *);
    /* As port_recv() and port_send().  Priority tags may be left.  recv() is given an empty burst;
     * send(): ENOBUFS is EAGAIN. */
    int (*recv)(struct port *, struct packet_pool *, struct port_burst *);
    size_t (*send)(struct port *, struct packet *const *, size_t n, int *why);
};

/* Adds a descriptor, -1: nothing; there must be room.  Returns it. */
static inline int
port_parts_add(struct port_parts *parts, int fd)
{
    if (fd >= 0) {
        parts->fds[parts->n_fds++] = fd;
    }
    return fd;
}

/* Takes the descriptor of a place, which others must not close then; -1: there is none. */
static inline int
port_parts_take(struct port_parts *parts, unsigned place)
{
    int fd = place < parts->n_fds ? parts->fds[place] : -1;

    if (fd >= 0) {
        parts->fds[place] = -1;
    }
    return fd;
}

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
