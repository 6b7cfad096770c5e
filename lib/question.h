/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the questions that an edge puts to a receiver (docs/draft-notes.md, R16, R18): an RDMA
 * WRITE ONLY of no bytes.  For a PSN that it has, the receiver takes that for a duplicate, and
 * acknowledges it.
 */
#ifndef LIB_QUESTION_H
#define LIB_QUESTION_H 1

#include "lib/packet.h"
#include "lib/wire.h"

#define QUESTION_LEN (IP6_HDR_LEN + 8 + 12 + 16 + 4)

/* An IPv6 packet (no Ethernet header) with AckReq, UDP checksum 0, a valid ICRC and hop limit 64.
 * NULL: the pool is empty.  The PSN that the queue pair expects would be executed, although it
 * changes no memory: only a test of where it stands (lib/position.h) may have that. */
struct packet *
question_build(struct packet_pool *, const struct in6_addr *src, const struct in6_addr *dst,
               uint16_t sport, uint32_t dest_qp, psn_t psn);

#endif /* lib/question.h */
