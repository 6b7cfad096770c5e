/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of a node's workers a frame is for.
 *
 * All packets with a Proxy Address belong to one worker: a new epoch of its group ends the ones
 * before it, and an RDMA-CM connection is one machine's, also with a Proxy that no group has.  The
 * rest belongs to worker 0.  Pure.
 */
#ifndef LIB_STEER_H
#define LIB_STEER_H 1

#include <linux/filter.h>

#include <netinet/in.h>

#include "lib/packet.h"

#define STEER_MAX 16         /* workers. */
#define STEER_ALL UINT32_MAX /* a frame that each worker needs: who is at the end of a link. */

/* Which of n workers has this Proxy Address. */
unsigned steer_proxy(unsigned n, const struct in6_addr *proxy);
/* Which of n workers takes a received frame, or STEER_ALL. */
unsigned steer_frame(unsigned n, const struct packet *frame);

/* A program for PACKET_FANOUT_DATA that gives the packets of a group between nodes, and those from
 * its Proxy, to the socket with the number of the group's worker: what steer_frame() says, for all
 * that it need not look twice at.  Other frames go to any socket. */
#define STEER_PROGRAM_LEN 8
void steer_program(struct sock_filter program[STEER_PROGRAM_LEN], unsigned n);

#endif /* lib/steer.h */
