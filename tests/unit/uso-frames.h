/* SPDX-License-Identifier: Apache-2.0
 *
 * RoCEv2 frames of a few flows, with ICRC and without a UDP checksum: what leaves an edge.
 */
#ifndef TESTS_UNIT_USO_FRAMES_H
#define TESTS_UNIT_USO_FRAMES_H 1

#include <stdbool.h>
#include <stddef.h>

#include "lib/packet.h"
#include "lib/wire.h"

#define USO_FRAME_HEADERS (14 + 40 + 8 + 12)      /* to the end of the BTH. */
#define USO_FRAME_MIN     (USO_FRAME_HEADERS + 4) /* with the ICRC. */

struct uso_flow {
    uint8_t mac[6]; /* destination's. */
    struct in6_addr dst;
    uint16_t sport;
};

/* A frame of 'len' bytes, whose payload depends on the PSN.  'pieces': in three, as a copy is. */
struct packet *
uso_frame(struct packet_pool *, const struct uso_flow *, psn_t psn, size_t len, bool pieces);

#endif /* tests/unit/uso-frames.h */
