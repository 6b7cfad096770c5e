/* SPDX-License-Identifier: Apache-2.0
 *
 * One pass over a frame that validates every length once and records where
 * things are.  Later code uses the offsets and never parses again.
 *
 * Bounds nest: frame > IPv6 payload > SRH > TLV; frame > inner packet.
 * All offsets are from the frame's first byte; 0 means absent (no header of
 * interest starts at 0 but Ethernet's).
 */
#ifndef LIB_PARSE_H
#define LIB_PARSE_H 1

#include "lib/drop.h"
#include "lib/wire.h"

#define PARSE_MAX_EXT    8  /* extension headers per IPv6 packet. */
#define PARSE_MAX_MT_TLV 84 /* more do not fit into an SRH: (2048 - 24) / 24. */

/* One IPv6 packet. */
struct parsed_ip6 {
    uint16_t ofs;    /* IPv6 header; 0: absent. */
    uint16_t end;    /* first byte after the payload by Payload Length. */
    uint16_t l4_ofs; /* upper-layer header; absent until parse_rest(). */
    uint8_t proto;   /* its protocol; IP6_NH_FRAGMENT if a fragment (not looked into).  After
                     * parse_outer() only: the IPv6 header's Next Header. */
    uint8_t n_ext;   /* extension headers before it. */
};

struct parsed {
    struct parsed_ip6 ip;    /* outermost. */
    struct parsed_ip6 inner; /* IPv6 in IPv6, if any. */

    /* SRH of the outermost packet. */
    uint16_t srh_ofs;
    uint16_t srh_len;     /* bytes. */
    uint16_t bad_srh_ofs; /* one that DROP_srh_malformed is about. */
    uint16_t routing_ofs; /* first Routing header of another type with segments left. */
    uint8_t n_segments;   /* last_entry + 1. */
    uint8_t segments_left;
    uint8_t n_mt_tlvs;
    uint16_t mt_tlv_ofs[PARSE_MAX_MT_TLV];
    uint16_t auth_ofs; /* first MT-AUTH TLV of the right length. */
    uint16_t hmac_ofs; /* first RFC 8754 HMAC TLV of a defined length. */
    uint16_t data_ofs; /* first DATA-AUTH TLV of the right length. */

    /* RoCE in the innermost packet: set only if UDP destination port 4791. */
    uint16_t udp_ofs;
    uint16_t bth_ofs;
    uint16_t ext_ofs;     /* first extended header, after the BTH. */
    uint16_t payload_ofs; /* after the opcode's extended headers. */
    uint16_t payload_len; /* pad excluded. */
    uint16_t icrc_ofs;    /* by UDP length, not by frame end. */
    uint8_t opcode;       /* valid if bth_ofs. */
};

/* Parses the Ethernet frame data[0, len).  Returns DROP_none and fills *p, or
 * the reason; *p is then still safe to read but not complete.
 *
 * - Something that is IPv6 but neither SRH, IPv6-in-IPv6 nor RoCE is not an
 *   error: proto says what it is, the forwarder passes it on.
 * - A RoCE packet whose opcode is unknown has ext_ofs == payload_ofs, and all up to the ICRC counts
 *   as its payload.
 * - Bytes after the end of a packet inside its bound (Ethernet padding) are allowed; whoever sends
 *   the packet on leaves them out.
 * - An SRH behind which the inner packet is malformed, or one whose own lengths
 *   are inconsistent, is an error only for the node that it is addressed to
 *   (RFC 8754 4.2: others must not look).  Hence parse_outer() stops after the
 *   outermost IPv6 header, parse_frame() does everything. */
enum drop_reason parse_outer(const uint8_t *data, uint32_t len, struct parsed *p);
/* To be called once after parse_outer() returned DROP_none for the same frame. */
enum drop_reason parse_rest(const uint8_t *data, uint32_t len, struct parsed *p);
enum drop_reason parse_frame(const uint8_t *data, uint32_t len, struct parsed *p);

/* Is this reason of parse_rest() only about the RoCE port's upper layer?  Then all the rest is
 * parsed (bth_ofs is 0), and the packet is sound to everybody who does not want RoCE. */
static inline bool
parse_only_roce_failed(enum drop_reason why)
{
    return why == DROP_udp_short || why == DROP_roce_short || why == DROP_roce_tver;
}

/* Must the node that the packet is addressed to discard it because of a Routing header of unknown
 * type (RFC 8200 section 4.4)?  Says so also if parse_rest() has found something wrong behind that.
 * One behind an SRH with segments left is the business of the next segment. */
static inline bool
parsed_routing_stops(const struct parsed *p)
{
    return p->routing_ofs && (p->routing_ofs < p->srh_ofs || !p->segments_left);
}

/* Bytes of the Hop-by-Hop Options header behind the IPv6 header at ip[0, len), which every node on
 * the way may change; 0: there is none, or it is not whole. */
static inline uint16_t
parse_hop_by_hop_len(const struct ip6_hdr_wire *ip, size_t len)
{
    const uint8_t *header = (const uint8_t *) (ip + 1);

    if (ip->nh != IP6_NH_HOPOPT || len < sizeof *ip + 8) {
        return 0;
    }
    uint16_t header_len = (uint16_t) ((header[1] + 1) * 8);
    return header_len <= len - sizeof *ip ? header_len : 0;
}

/* The packet that carries the RoCE headers: inner if there is one. */
static inline const struct parsed_ip6 *
parsed_innermost(const struct parsed *p)
{
    return p->inner.ofs ? &p->inner : &p->ip;
}

#endif /* lib/parse.h */
