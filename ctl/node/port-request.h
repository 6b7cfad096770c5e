/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent and the process that opens its ports say to each other: a message each way, over a
 * socket that keeps messages apart (SOCK_SEQPACKET).  Both are of one program, so numbers are in the
 * machine's byte order.
 */
#ifndef CTL_NODE_PORT_REQUEST_H
#define CTL_NODE_PORT_REQUEST_H 1

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

enum port_request_what {
    PORT_REQUEST_OPEN,  /* the parts of a port (struct port_parts). */
    PORT_REQUEST_WATCH, /* what port_events_open() opens. */
    N_PORT_REQUESTS,
};

struct port_request {
    uint32_t sequence; /* of the reply, too. */
    uint8_t what;      /* enum port_request_what. */
    uint8_t in_netns;  /* 0 or 1: in the namespace of --netns, instead of the process's own. */
    /* To open; else 0. */
    uint8_t kind;      /* enum port_kind. */
    uint8_t offload;   /* 0 or 1. */
    uint8_t n_sharing; /* 1 or more. */
    uint8_t zero[3];
    char netdev[IFNAMSIZ]; /* a valid name, and zeros. */
};

/* Its descriptors are beside it. */
struct port_reply {
    uint32_t sequence;
    uint32_t error; /* an errno; 0: it has been done. */
    uint32_t n_fds;
    uint32_t ifindex; /* this and the next ones: of struct port_parts. */
    uint16_t bind_flags;
    uint8_t vnet_hdr, uso, is_veth, large;
    char why[82]; /* with an error; a string. */
};

/* What is wrong with a message of 'len' bytes as a request; NULL: nothing.  'has_netns': --netns was
 * given. */
const char *port_request_complaint(const struct port_request *, size_t len, int has_netns);

#endif /* ctl/node/port-request.h */
