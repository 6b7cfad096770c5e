/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the outer IPv6 header and SRH of a multicast data packet (design:
 * outer DA = a SID, reduced SRH with Segment List = [Proxy], Last Entry 0,
 * Segments Left 1, End.MT TLVs, PadN to a multiple of 8).  Built once per
 * configuration; stamped on each packet.
 */
#ifndef LIB_SRH_H
#define LIB_SRH_H 1

#include "lib/ioam.h"
#include "lib/wire.h"

/* One (edge, receiver) pair.  Pairs of one edge must be adjacent. */
struct srh_copy {
    struct in6_addr edge;
    struct in6_addr addr;
    uint32_t qpn;
};

#define ENCAP_MAX_LEN (IP6_HDR_LEN + IOAM_HBH_LEN(IOAM_MAX_SLOTS) + SRH_MAX_LEN)

struct encap_template {
    uint16_t len;       /* IPv6 header + Hop-by-Hop header + SRH. */
    uint16_t trace_len; /* Hop-by-Hop header; 0: there is none. */
    uint8_t bytes[ENCAP_MAX_LEN];
};

/* SRH length in bytes for these pairs, without looking at SRH_MAX_LEN. */
size_t srh_len(const struct srh_copy *, size_t n_copies);

/* Fills 't'.  Returns 0, or EMSGSIZE if the SRH would exceed SRH_MAX_LEN. */
int encap_template_build(struct encap_template *t, const struct in6_addr *src,
                         const struct in6_addr *dst, const struct in6_addr *proxy,
                         const struct srh_copy *, size_t n_copies);

/* Puts an empty IOAM trace of so many slots (1..IOAM_MAX_SLOTS) in front of the SRH, which is
 * complete: nothing that auth_sign() covers changes. */
void encap_template_add_trace(struct encap_template *t, unsigned slots);

/* Writes template to 'out' (t->len bytes) for an inner packet of inner_len
 * bytes: payload length, traffic class (RFC 6040 normal mode: the inner one)
 * and flow label; hop limit 64. */
void encap_template_stamp(const struct encap_template *t, uint8_t *out, uint16_t inner_len,
                          uint8_t tc, uint32_t flow_label);

#endif /* lib/srh.h */
