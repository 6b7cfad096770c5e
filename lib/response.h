/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the responses that a node makes itself: ACKs and NAKs of the
 * aggregation, refusals of the source agent (RoCEv2 RC Acknowledge packets).
 */
#ifndef LIB_RESPONSE_H
#define LIB_RESPONSE_H 1

#include "lib/packet.h"
#include "lib/parse.h"
#include "lib/wire.h"

#define RESPONSE_LEN (IP6_HDR_LEN + 8 + 12 + 4 + ROCE_ICRC_LEN)

/* An IPv6 packet (no Ethernet header) with UDP checksum 0, a valid ICRC and hop limit 64.  NULL:
 * the pool is empty.  'sport' is the same for all responses of a group, so that they stay in
 * order. */
struct packet *
response_build(struct packet_pool *, const struct in6_addr *src, const struct in6_addr *dst,
               uint16_t sport, uint32_t dest_qp, psn_t psn, uint8_t syndrome, uint32_t msn);
/* Puts an IPv6 header from a node to its parent's response SID in front of a response or CNP, whose
 * traffic class it gets. */
void
response_wrap(struct packet *, const struct in6_addr *src, const struct in6_addr *response_sid);
/* The same with an SRH in between, whose only segment is that SID and done, and that has an empty
 * DATA-AUTH TLV at its end.  The packet is sent to 'dst'. */
void
response_wrap_srh(struct packet *, const struct in6_addr *src, const struct in6_addr *response_sid,
                  const struct in6_addr *dst, uint32_t key_id);
/* Is this frame's innermost packet exactly a response, with a good ICRC, nothing between IPv6 and
 * UDP, no payload and a P_Key of the group's?  DROP_none, or why not.  A node merges what passes
 * into a packet of its own, in which nobody would see what was wrong.  'h' is what parse_frame()
 * made of 'data'. */
enum drop_reason response_check(const uint8_t *data, const struct parsed *h);
/* Source port of a group's responses, 0xC000 or above. */
uint16_t response_sport(const struct in6_addr *proxy, uint32_t designated_qpn);

#endif /* lib/response.h */
