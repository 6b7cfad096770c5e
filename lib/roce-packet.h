/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame of the RoCEv2 packets that a node makes itself: responses (lib/response.h) and
 * questions (lib/question.h).
 */
#ifndef LIB_ROCE_PACKET_H
#define LIB_ROCE_PACKET_H 1

#include "lib/packet.h"
#include "lib/wire.h"

#define ROCE_PACKET_HOP_LIMIT 64

/* A packet of 'len' bytes without Ethernet header: IPv6, UDP with checksum 0, BTH, and zeros for
 * what else it has, up to and with the ICRC.  The caller fills that in and calls roce_packet_end().
 * NULL: the pool is empty. */
struct packet *roce_packet_begin(struct packet_pool *, uint32_t len, const struct in6_addr *src,
                                 const struct in6_addr *dst, uint16_t sport, uint8_t opcode,
                                 uint32_t dest_qp, psn_t psn);
/* Gives it its ICRC. */
void roce_packet_end(struct packet *);

#endif /* lib/roce-packet.h */
