/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes to a SID of a group, with an SRH and extension headers as a test wants them.
 */
#ifndef TESTS_UNIT_OUTER_FIXTURE_H
#define TESTS_UNIT_OUTER_FIXTURE_H 1

#include "tests/unit/transit-fixture.h"

#define MAX_SEGMENTS 4
#define OTHER_EDGE   0x777

/* A packet in the making: outer IPv6, 'before', SRH, 'behind', inner. */
struct outer {
    const char *dst_function; /* "mt" or "rs". */
    uint8_t first_nh;         /* of 'before'. */
    const uint8_t *before;    /* extension headers, the last of which has Next Header 43. */
    size_t before_len;
    struct in6_addr segments[MAX_SEGMENTS];
    uint8_t n_segments;
    uint8_t segments_left;
    uint8_t flags;
    uint16_t tag;
    uint8_t tlvs[1024];
    size_t tlvs_len;
    uint8_t inner_nh;
};

/* The SID of End.MT of the node on the bench. */
struct in6_addr outer_end_mt_sid(void);
/* As the agent makes it, without TLVs. */
struct outer outer_plain(void);
/* A TLV of unknown contents; every byte of it is 'value'. */
void outer_put_tlv(struct outer *, uint8_t type, uint8_t len, uint8_t value);
void outer_put_pad1(struct outer *);
/* An End.MT TLV for node 'edge', which names receivers first to first + n - 1; 'reserved' is in all
 * reserved bytes.  Returns where it is. */
struct mt_tlv *
outer_put_mt(struct outer *, uint16_t edge, unsigned first, uint8_t n, uint8_t reserved);

/* Writes the packet, around 'inner'; PadN makes the SRH a multiple of 8.  Returns its length. */
size_t outer_build(uint8_t *out, const struct outer *, const uint8_t *inner, size_t inner_len);
/* Feeds it with transit_write(psn) inside, which it returns. */
struct roce_spec outer_feed(struct fixture *, const struct outer *, uint32_t psn);

#endif /* tests/unit/outer-fixture.h */
