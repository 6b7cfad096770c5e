/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports: the only place where frames enter and leave a process.
 *
 * Non-blocking, single-threaded.  Errors are positive errno values.
 */
#ifndef LIB_PORT_H
#define LIB_PORT_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/packet.h"
#include "lib/words.h"

/* Enumerator, text; port-<text>.c has the kind's struct port_class port_<text>
 * (lib/port-impl.h). */
#define PORT_KINDS(KIND)                                                           \
    /* A queue of an existing persistent IFF_MULTI_QUEUE tap, a lab host's NIC. */ \
    KIND(PORT_TAP, tap)                                                            \
    /* An AF_PACKET socket on any existing network device. */                      \
    KIND(PORT_PACKET, packet)                                                      \
    /* AF_XDP sockets on an existing network device, hardware or veth. */          \
    KIND(PORT_XDP, xdp)

enum port_kind {
#define KIND(ENUM, TEXT) ENUM,
    PORT_KINDS(KIND)
#undef KIND
};
#define KIND(ENUM, TEXT) +1
enum { N_PORT_KINDS = PORT_KINDS(KIND) };
#undef KIND
WORDS_DECLARE(port_kind, enum port_kind);
/* The kind for a link whose kind is not given: a link to a host ('host'), or between nodes. */
enum port_kind port_kind_usual(bool host);
/* Is the device a host's NIC?  It is then in the namespace in which the daemon was started,
 * wherever the node's other devices are. */
bool port_kind_is_host_nic(enum port_kind);
/* Is the port just the network device?  Then Open vSwitch or the kernel can have it, too. */
bool port_kind_is_netdev(enum port_kind);

#define PORT_BURST 64 /* most frames that a call receives. */

struct port;

/* Which part of a device's frames a port is to get, if several ports share it. */
struct port_queue {
    unsigned index, n;        /* 0 <= index < n; n is 1 if the port has the device to itself. */
    const struct port *first; /* the open port with index 0, for the others. */
};

/* Opens 'netdev'.  'netns_fd' is the network namespace that the device is in, -1 for
 * the caller's; the caller's namespace is unchanged on return.  ENODEV if there is no
 * such device (a tap is never created), EINVAL if a tap is not persistent or not
 * multi-queue.  *errp gets a malloc'd sentence on failure.
 *
 * 'queue', NULL for all: each frame comes to one of the ports that share the device; to which, the
 * kernel decides for a tap, and lib/steer.h's program for a packet port.  An XDP port cannot share:
 * EINVAL.
 *
 * A packet or XDP port takes the device over: it is promiscuous while open, and generic and
 * large receive offload, which merge frames that others sent, are turned off for good.
 * So is, for an XDP port, the offload of VLAN tags (rxvlan).  EOPNOTSUPP: the device is neither
 * hardware nor a veth, or the kernel is too old for it; EBUSY: another program has it by XDP. */
int port_open(struct port **, enum port_kind, const char *netdev, int netns_fd,
              const struct port_queue *queue, char **errp);
void port_close(struct port *);

/* port_open() in two steps, of which only the first needs capabilities: another process can have them
 * (ctl/node/port-helper.h).  port_acquire() has the errors of port_open(); *why is then a static
 * string.  'n_sharing' is queue->n.  On failure there are no parts. */
#define PORT_MAX_FDS 240 /* a message takes 253 (SCM_MAX_FD). */
struct port_parts {
    int fds[PORT_MAX_FDS]; /* the first: to ask about the device; the others are the kind's. */
    unsigned n_fds;
    bool vnet_hdr, uso;  /* tap: of struct tap_queue. */
    bool is_veth, large; /* xdp: the device is a veth; a frame may take several chunks. */
    uint32_t ifindex;    /* xdp: of the device, for bind(), */
    uint16_t bind_flags; /* XDP_COPY and others. */
};
int port_acquire(struct port_parts *, enum port_kind, const char *netdev, int netns_fd,
                 unsigned n_sharing, bool offload, const char **why);
/* Makes a port of the parts, whose descriptors it takes over in any case. */
int port_assemble(struct port **, enum port_kind, const char *netdev, struct port_parts *,
                  const struct port_queue *queue, char **errp);
/* Closes descriptors of which nothing was made. */
void port_parts_discard(struct port_parts *);

/* Whether ports that are opened from now on may send frames by segmentation offload, where their
 * kind and the kernel have it.  They may unless told otherwise. */
void port_use_offload(bool use);
bool port_uses_offload(void);

/* For poll(), after port_recv() has said EAGAIN: before, frames may be left in the port. */
int port_fd(const struct port *);
/* The device's MTU when the port was opened or refreshed. */
unsigned port_mtu(const struct port *);
/* Was the device up, with a carrier, when the port was opened or refreshed? */
bool port_is_up(const struct port *);
/* Reads MTU and link state again.  Errors: the device is gone. */
int port_refresh(struct port *);

/* A descriptor that becomes readable when a network device in the namespace ('netns_fd' as for
 * port_open()) has changed: ports there are then to be refreshed.  0 and *fdp, or an errno and a
 * malloc'd sentence in *errp. */
int port_events_open(int *fdp, int netns_fd, char **errp);
/* Makes it wait for the next change. */
void port_events_clear(int fd);

/* What port_recv() got, in the order in which it arrived. */
struct port_burst {
    struct packet *frames[PORT_BURST]; /* owned by the caller. */
    size_t n;
    unsigned n_lost; /* frames that were taken and lost, the last of them for 'why_lost'. */
    int why_lost;    /* ENOBUFS: the pool is empty; EMSGSIZE: too long, or segmentation offload of
                      * a kind not known. */
};

/* Receives up to PORT_BURST frames.  Returns 0: there may be more; EAGAIN: none is left; EIO,
 * ENETDOWN: device down, try later; ENODEV: device gone, close and open again.  Whatever it
 * returns, *burst has what came before.
 * An AF_PACKET port returns IPv6 frames and frames of VLANs only, none that this host sent on the
 * device itself, and completes what was left to offload: checksums, and segmentation of TCP and
 * (since Linux 6.2) UDP that is not in a tunnel.
 * A frame of a VLAN has its tag, and goes nowhere (DROP_vlan); if it is too long it is cut off.
 * For the tag's sake frames come before the device's ingress filters (tc, nftables netdev).
 * An XDP port returns untagged IPv6 frames only, and nobody else gets these. */
int port_recv(struct port *, struct packet_pool *, struct port_burst *burst);
/* What port_recv() has done: tags without a VLAN (802.1p) are not in a frame. */
void port_strip_priority_tags(struct packet *);
/* Sends frames in order, without taking ownership.  Returns how many were sent.  If that is fewer
 * than 'n', *why says what is wrong with the next one, and what is behind it was not tried: EAGAIN:
 * full; EMSGSIZE: over the MTU; ENXIO: device gone; others as above. */
size_t port_send(struct port *, struct packet *const *frames, size_t n, int *why);

#endif /* lib/port.h */
