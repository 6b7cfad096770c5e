/* SPDX-License-Identifier: Apache-2.0
 *
 * ICMPv6 (RFC 4443): checks what comes, makes error messages and echo replies,
 * and knows what no error message may answer.
 */
#ifndef LIB_ICMP6_H
#define LIB_ICMP6_H 1

#include "lib/packet.h"
#include "lib/wire.h"

enum icmp6_type {
    ICMP6_UNREACHABLE = 1,
    ICMP6_TOO_BIG = 2,
    ICMP6_TIME = 3,
    ICMP6_PARAMETER = 4,
    ICMP6_ECHO = 128,
    ICMP6_REPLY = 129,
    ICMP6_REDIRECT = 137,
};

#define ICMP6_IS_ERROR(TYPE)        ((TYPE) < 128)

/* Codes, by type. */
#define ICMP6_UNREACHABLE_NO_ROUTE  0
#define ICMP6_UNREACHABLE_ADDRESS   3
#define ICMP6_UNREACHABLE_PORT      4
#define ICMP6_TIME_HOP_LIMIT        0
#define ICMP6_PARAMETER_FIELD       0
#define ICMP6_PARAMETER_NEXT_HEADER 1
#define ICMP6_PARAMETER_OPTION      2
#define ICMP6_PARAMETER_SR_UPPER    4 /* RFC 8986 section 10.2 (SR Upper-layer Header Error). */

/* RFC 4443 section 2.1, and what all messages of it have next. */
struct icmp6_wire {
    uint8_t type;
    uint8_t code;
    be16_t csum;
    be32_t param; /* error messages: MTU, pointer or 0; echo: identifier and number. */
};
static_assert(sizeof(struct icmp6_wire) == 8, "ICMPv6 header");

/* An error message to be made. */
struct icmp6_error {
    enum icmp6_type type;
    uint8_t code;
    uint32_t param;
};

/* Where the extension headers of an IPv6 packet end. */
struct icmp6_upper {
    uint8_t proto;        /* what follows; IP6_NH_FRAGMENT: a fragment other than the first. */
    bool is_fragment;     /* the packet is a fragment of a longer one. */
    uint32_t ofs;         /* header of 'proto', from the IPv6 header; may be the packet's end. */
    uint32_t proto_ofs;   /* the field that says 'proto'. */
    uint32_t routing_ofs; /* first Routing header with segments left, 0: none. */
    uint32_t option_ofs;  /* first option that a destination must know to go on, 0: none. */
};

/* Walks the extension headers of the IPv6 packet ip[0, len), of which a part may be
 * missing at its end; an IPv6 header is there.  False if what is there does not reach
 * the upper layer, or after too many headers. */
bool icmp6_find_upper(const uint8_t *ip, size_t len, struct icmp6_upper *);

/* Is icmp[0, len) a message with a header and a good checksum? */
bool icmp6_is_valid(const struct ip6_hdr_wire *, const uint8_t *icmp, size_t len);

/* Is the IPv6 packet ip[0, len) an error message, with all of the IPv6 header of the packet that it
 * is about?  Then the message, whose checksum nobody has looked at, and in *upper where it begins;
 * the header is behind it.  Otherwise NULL. */
const struct icmp6_wire *icmp6_find_error(const uint8_t *ip, size_t len, struct icmp6_upper *upper);

/* Makes the error message from 'src' about the IPv6 packet that starts at byte 'ofs' of
 * 'offender' (link padding behind it is left out).  NULL, and *whyp is why: none may be sent about
 * this packet, or the pool is empty. */
struct packet *
icmp6_error_build(struct packet_pool *, const struct icmp6_error *, const struct in6_addr *src,
                  const struct packet *offender, uint32_t ofs, const char **whyp);

/* Makes the reply to the valid echo request icmp[0, len).  NULL: the pool is empty. */
struct packet *icmp6_echo_build(struct packet_pool *, const struct ip6_hdr_wire *request,
                                const uint8_t *icmp, size_t len);

/* Rate limit for error messages about packets of one port (RFC 4443 section 2.4(f)): a token
 * bucket. */
#define ICMP6_ERRORS_PER_SEC 100
#define ICMP6_ERRORS_BURST   20

struct icmp6_limit {
    uint64_t full_at; /* when the bucket is full, microseconds; zero at start. */
};

/* Takes a token, if there is one. */
bool icmp6_limit_take(struct icmp6_limit *, uint64_t now);

#endif /* lib/icmp6.h */
