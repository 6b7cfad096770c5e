/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of a node's workers a frame is for.
 *
 * All epochs of a group, that is, all packets with its Proxy Address, belong to one worker: a new
 * epoch ends the ones before it.  What is no group's belongs to worker 0.  Pure.
 */
#ifndef LIB_STEER_H
#define LIB_STEER_H 1

#include <linux/filter.h>

#include "lib/addr-map.h"
#include "lib/node-config.h"
#include "lib/packet.h"

#define STEER_MAX 16         /* workers. */
#define STEER_ALL UINT32_MAX /* a frame that each worker needs: who is at the end of a link. */

struct steer {
    unsigned n;               /* workers. */
    struct addr_map *proxies; /* by Proxy Address and 0; NULL: none. */
};

/* Takes over the Proxies of 'config'. */
void steer_configure(struct steer *, const struct node_config *config);
void steer_uninit(struct steer *);

/* The worker that has the group. */
unsigned steer_proxy(const struct steer *, const struct in6_addr *proxy);
/* The worker that takes a received frame, or STEER_ALL. */
unsigned steer_frame(const struct steer *, const struct packet *frame);

/* A program for PACKET_FANOUT_DATA that gives the packets of a group between nodes, and those from
 * its Proxy, to the socket with the number of the group's worker: what steer_frame() says, for all
 * that it need not look twice at.  Other frames go to any socket. */
#define STEER_PROGRAM_LEN 8
void steer_program(struct sock_filter program[STEER_PROGRAM_LEN], unsigned n);

#endif /* lib/steer.h */
