/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames with RDMA-CM messages, for tests and fuzz targets.
 */
#ifndef TESTS_UNIT_CM_CHECK_H
#define TESTS_UNIT_CM_CHECK_H 1

#include "lib/cm.h"

/* The name of the first member in which they differ, or NULL. */
const char *cm_msg_differs(const struct cm_msg *, const struct cm_msg *);

/* A message in a frame: an Ethernet header in front of what cm_build() makes; and where things are
 * in it. */
#define CM_IP_OFS        14
#define CM_UDP_OFS       (CM_IP_OFS + IP6_HDR_LEN)
#define CM_BTH_OFS       (CM_UDP_OFS + 8)
#define CM_DETH_OFS      (CM_BTH_OFS + 12)
#define CM_MAD_OFS       (CM_DETH_OFS + CM_DETH_LEN)
#define CM_BODY_OFS      (CM_MAD_OFS + 24)
#define CM_BODY_LEN      232
#define CM_ICRC_OFS      (CM_BODY_OFS + CM_BODY_LEN)
#define CM_FRAME_LEN     (CM_ICRC_OFS + ROCE_ICRC_LEN)
#define CM_ATTRIBUTE_OFS (CM_MAD_OFS + 16)

void cm_frame_build(uint8_t frame[CM_FRAME_LEN], const struct cm_msg *);
/* Gives it the ICRC that it should have. */
void cm_frame_mend(uint8_t frame[CM_FRAME_LEN]);
/* Parses it in a buffer of exactly its size, so that sanitizers notice any access past it.  What
 * parse_frame() complains of, or what cm_parse() returns; fails the test if cm_is() says no. */
enum drop_reason cm_frame_parse(const uint8_t *frame, size_t len, struct cm_msg *);

#endif /* tests/unit/cm-check.h */
