/* SPDX-License-Identifier: Apache-2.0
 *
 * ECN when a tunnel header is taken off (RFC 6040 section 4.2).
 */
#ifndef LIB_ECN_H
#define LIB_ECN_H 1

#include <stdbool.h>
#include <stdint.h>

#define ECN_MASK    3
#define ECN_NOT_ECT 0
#define ECN_ECT1    1
#define ECN_ECT0    2
#define ECN_CE      3

/* The traffic class of the decapsulated packet: the inner one's DSCP, and the
 * congestion mark of both.  False: drop, since the path has marked a packet
 * whose sender does not understand marks (*tc is untouched). */
bool ecn_decap(uint8_t outer_tc, uint8_t inner_tc, uint8_t *tc);

#endif /* lib/ecn.h */
