/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard RoCEv2 congestion notification packets (CNPs):
 *
 *     IPv6, traffic class 0xc0 | UDP to 4791, checksum 0 | BTH 81 00 ffff 40 QPN 00 000000 |
 *     16 bytes of zeros | ICRC
 *
 * BECN is set, the DestQP is the queue pair that is to slow down, the PSN is 0 and means nothing.
 */
#ifndef LIB_CNP_H
#define LIB_CNP_H 1

#include "lib/drop.h"
#include "lib/packet.h"
#include "lib/parse.h"

#define CNP_TRAFFIC_CLASS 0xc0 /* DSCP 48, Not-ECT. */
#define CNP_RESERVED_LEN  16
#define CNP_LEN           (IP6_HDR_LEN + 8 + 12 + CNP_RESERVED_LEN + ROCE_ICRC_LEN) /* 80. */

/* An IPv6 packet (no Ethernet header) with hop limit 64.  NULL: the pool is empty. */
struct packet *cnp_build(struct packet_pool *, const struct in6_addr *src,
                         const struct in6_addr *dst, uint16_t sport, uint32_t dest_qp);
/* Is this frame's innermost packet exactly a CNP, with a good ICRC, nothing between IPv6 and UDP,
 * and a P_Key of the default partition?  DROP_none, or why not.  'h' is what parse_frame() made of
 * 'data', and says opcode ROCE_CNP. */
enum drop_reason cnp_check(const uint8_t *data, const struct parsed *h);

#endif /* lib/cnp.h */
