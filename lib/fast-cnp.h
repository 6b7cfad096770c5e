/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast CNPs (draft-xiao-rtgwg-rocev2-fast-cnp sections 3 and 4): a node at which a packet meets
 * congestion tells the packet's sender itself.
 *
 *     IPv6   the node -> source of the packet, traffic class 0xc0, next header 60
 *     Destination Options: one option of type 0x9e
 *            option 1:  destination of the packet (16 bytes)
 *            option 2:  IOAM trace of the packet, from Namespace-ID on; destination of the packet
 *     UDP, BTH, 16 zeros, ICRC as in lib/cnp.h; DestQP is that of the packet
 *
 * (DestQP, destination) are what an outgoing request of the sender has, too: they are the flow.
 *
 * The ICRC is that of the packet without the Destination Options header ("form A").  On receipt it
 * may also cover the IPv6 header as sent with the option left out (B), or everything as sent (C).
 */
#ifndef LIB_FAST_CNP_H
#define LIB_FAST_CNP_H 1

#include <stdbool.h>

#include "lib/drop.h"
#include "lib/packet.h"
#include "lib/parse.h"

#define FAST_CNP_OPTION    0x9e /* RFC 4727: act 10, chg 0, experimental. */
#define FAST_CNP_TRACE_MAX 239  /* bytes of a trace that fit. */

/* What a Fast CNP says. */
struct fast_cnp {
    struct in6_addr node;     /* its IPv6 source: where the congestion is. */
    struct in6_addr sender;   /* its IPv6 destination: who is to slow down. */
    struct in6_addr original; /* destination of the packet that met congestion. */
    uint32_t dest_qp;         /* of that packet. */
    const uint8_t *trace;     /* option 2: IOAM data from Namespace-ID on; NULL: option 1. */
    uint8_t trace_len;        /* a multiple of 4, 8 at least. */
};

/* An IPv6 packet (no Ethernet header).  A trace that is too long has its empty slots cut out, and
 * is left out if that does not help.  NULL: the pool is empty. */
struct packet *fast_cnp_build(struct packet_pool *, const struct fast_cnp *, uint16_t sport);

/* Has this frame the option anywhere in a Destination Options header of its outermost or inner
 * packet?  For border filters.  'data' is any frame of IPv6, whose parse_outer() was DROP_none;
 * looks no further than the chain of headers is sound. */
bool fast_cnp_seen(const uint8_t *data, uint32_t len, const struct parsed *outer);

/* Takes a plain (not tunnelled) packet apart that fast_cnp_seen() was true for.
 * DROP_fast_cnp_malformed, DROP_fast_cnp_icrc (unless 'any_icrc'), or DROP_none; then *out refers
 * to 'data'. */
enum drop_reason fast_cnp_parse(const uint8_t *data, uint32_t len, const struct parsed *outer,
                                bool any_icrc, struct fast_cnp *out);

/* Limits how many are made: one for each flow and interval, FAST_CNP_PER_DST for each sender and
 * interval, so many a second in all. */
#define FAST_CNP_FLOWS   1024 /* a fixed table; the oldest is overwritten. */
#define FAST_CNP_PER_DST 8

struct fast_cnp_limit;
enum fast_cnp_verdict {
    FAST_CNP_SEND,
    FAST_CNP_TOO_SOON,   /* the flow had one in this interval: it is told. */
    FAST_CNP_DST_LIMIT,  /* the sender had too many; this flow is not told. */
    FAST_CNP_NODE_LIMIT, /* likewise, the node sent too many. */
    FAST_CNP_UNWANTED,   /* the sender said that it does not understand them (below). */
};
struct fast_cnp_limit *fast_cnp_limit_create(void);
void fast_cnp_limit_destroy(struct fast_cnp_limit *);
void fast_cnp_limit_configure(struct fast_cnp_limit *, uint32_t interval_usec, uint32_t per_second);
/* May one be made for (sender, original, dest_qp) now?  FAST_CNP_SEND notes it. */
enum fast_cnp_verdict
fast_cnp_limit_ask(struct fast_cnp_limit *, const struct in6_addr *sender,
                   const struct in6_addr *original, uint32_t dest_qp, uint64_t now);
/* ICMPv6 Parameter Problem code 2 about a Fast CNP of this node came from 'sender': it gets none
 * for FAST_CNP_UNWANTED_USEC. */
#define FAST_CNP_UNWANTED_USEC UINT64_C(60000000)
void fast_cnp_limit_unwanted(struct fast_cnp_limit *, const struct in6_addr *sender, uint64_t now);
/* Did 'sender' say so? */
bool fast_cnp_limit_is_unwanted(const struct fast_cnp_limit *, const struct in6_addr *sender,
                                uint64_t now);

#endif /* lib/fast-cnp.h */
