/* SPDX-License-Identifier: Apache-2.0
 *
 * STAMP test packets (RFC 8762, unauthenticated mode, with the TLVs of RFC 8972 and the return path of
 * RFC 9503): what is behind the UDP header, and the packet as a whole.
 *
 *     IPv6 (SA = who probes, DA = a program) | UDP 862 | 44 bytes | TLVs
 *
 * Who probes puts into each packet a cookie, a MAC by a key that nobody else has, over what tells this
 * packet from others.  An answer has it, too, so nobody who has not seen a packet can forge or alter
 * one that is believed.
 *
 * UDP's checksum is 0 where a node on the way would spoil it (RFC 6936): an Open vSwitch counts each
 * destination that it writes into the checksum, and leaves a 0 alone.  Each end accepts that only where
 * it is meant to be (prober.c, reflector.c).
 *
 * Timestamps are in the PTP format: nanoseconds since 1970, in two words (Z = 1 in the error estimate).
 */
#ifndef LIB_STAMP_H
#define LIB_STAMP_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/packet.h"
#include "lib/program.h"
#include "lib/wire.h"

#define UDP_PORT_STAMP 862
#define STAMP_BASE_LEN 44 /* without TLVs. */

struct stamp_key {
    uint8_t secret[16];
};

/* What one packet says.  Addresses and UDP ports are not in it. */
struct stamp {
    bool is_answer;
    uint32_t seq;       /* of who has sent this one. */
    uint64_t sent_nsec; /* likewise, POSIX time. */
    uint16_t ssid;
    bool no_checksum; /* UDP's checksum is 0; stamp_parse() does not see it. */
    /* Of an answer: what it answers to, */
    uint32_t asked_seq;
    uint64_t asked_nsec;
    uint8_t asked_hop_limit;
    uint64_t came_nsec; /* and when that came. */
    /* TLVs. */
    bool has_cos;                      /* Class of Service, RFC 8972 section 4.4: */
    uint8_t dscp, dscp_seen, ecn_seen; /* what was asked for, and what came. */
    bool has_cookie;
    uint64_t cookie;
    struct program back; /* RFC 9503: what the answer is to be sent to; n 0: there is none. */
    /* All TLVs as they came, in the parsed packet.  An answer has those of what it answers to. */
    const uint8_t *tlvs;
    size_t tlvs_len;
};

/* The cookie of a packet with these fields, by this key. */
uint64_t stamp_cookie(const struct stamp_key *, uint16_t ssid, uint32_t seq, uint64_t sent_nsec);

/* An IPv6 packet, without Ethernet header, from 'src' along 'program', with an SRH if that has several
 * containers.  'len': from the IPv6 header on; if more than it needs, the rest is padding
 * (Extra Padding TLV), 0: as short as it can be.  UDP's checksum is right for the destination in
 * which the program ends, 'final', or it is 0 ('no_checksum').  NULL: the pool is empty, or 'len' is no
 * length.
 *
 * An answer echoes 'tlvs', with dscp_seen and ecn_seen in the Class of Service TLV if it has one.  The
 * flag U is set in those of types that are not known here, and cleared in the others (RFC 8972 section
 * 4).  All other packets get their TLVs by the fields. */
struct packet *stamp_build(struct packet_pool *, const struct stamp *, const struct in6_addr *src,
                           const struct program *program, const struct in6_addr *final, uint8_t tc,
                           uint32_t flow_label, uint16_t sport, uint16_t dport, uint32_t len);

/* Reads what is behind a UDP header.  Whether it is an answer says 'is_answer', which the caller knows
 * by the port.  TLVs of types that are not known are skipped.  False: it is malformed.  That is also
 * a timestamp that is not in the PTP format, and a TLV of a known type that comes twice.  A Class of
 * Service TLV that the peer has not understood (flag U of an answer) counts as none. */
bool stamp_parse(const uint8_t *payload, size_t len, bool is_answer, struct stamp *);

#endif /* lib/stamp.h */
