/* SPDX-License-Identifier: Apache-2.0
 *
 * ICMPv6 messages.
 */
#include "lib/icmp6.h"

#include "lib/address-plan.h"
#include "lib/inet-csum.h"

#define HOP_LIMIT           64
#define MIN_MTU             1280 /* no error message is longer, RFC 4443 section 2.4(c). */
#define MAX_EXT             16

#define NH_AUTH             51 /* RFC 4302; its length is in 4-octet units. */
#define FRAGMENT_LEN        8
#define FRAGMENT_MORE       1

/* Options of Hop-by-Hop and Destination Options headers: the upper bits say what to do about
 * unknown options. */
#define OPTION_PAD1         0
#define OPTION_ACTION_SHIFT 6

/* Extension headers begin with Next Header and, but for Fragment, a length in 8-octet units after
 * the first 8.  Routing headers of all types go on with type and Segments Left. */
struct ext_hdr {
    uint8_t nh;
    uint8_t len;
    union {
        struct {
            uint8_t type;
            uint8_t segments_left;
        } routing;
        be16_t fragment; /* offset, 13 bits; reserved, 2; more fragments. */
    } u;
};
static_assert(sizeof(struct ext_hdr) == 4, "extension header");

/* Length of the extension header of type 'nh'.  0: it is the upper layer's header, or that of a
 * fragment other than the first. */
static size_t
ext_len(uint8_t nh, const struct ext_hdr *ext)
{
    switch (nh) {
    case IP6_NH_HOPOPT:
    case IP6_NH_DSTOPT:
    case IP6_NH_ROUTING: return (ext->len + 1u) * 8;
    case IP6_NH_FRAGMENT: return be16_get(ext->u.fragment) >> 3 ? 0 : FRAGMENT_LEN;
    case NH_AUTH: return (ext->len + 2u) * 4;
    default: return 0;
    }
}

/* The first option in ip[ofs, end), the contents of an options header, that a node must know to
 * go on (RFC 8200 section 4.2), or 0.  This node knows the paddings only. */
static uint32_t
find_mandatory_option(const uint8_t *ip, size_t ofs, size_t end)
{
    while (ofs < end) {
        if (ip[ofs] >> OPTION_ACTION_SHIFT) {
            return (uint32_t) ofs;
        }
        if (ip[ofs] == OPTION_PAD1) {
            ofs++;
        } else if (end - ofs < 2 || end - ofs - 2 < ip[ofs + 1]) {
            return 0;
        } else {
            ofs += 2u + ip[ofs + 1];
        }
    }
    return 0;
}

/* Unlike lib/parse.c this takes all that can be walked, and first fragments: it is also for packets
 * that are none of this node's business. */
bool
icmp6_find_upper(const uint8_t *ip, size_t len, struct icmp6_upper *upper)
{
    *upper = (struct icmp6_upper){
        .proto = ((const struct ip6_hdr_wire *) ip)->nh,
        .ofs = IP6_HDR_LEN,
        .proto_ofs = offsetof(struct ip6_hdr_wire, nh),
    };
    for (unsigned i = 0; i <= MAX_EXT; i++) {
        static const struct ext_hdr absent;
        size_t remaining = len - upper->ofs;
        bool there = remaining >= sizeof absent;
        const struct ext_hdr *ext = there ? (const struct ext_hdr *) (ip + upper->ofs) : &absent;

        if (upper->proto == IP6_NH_FRAGMENT) {
            upper->is_fragment =
                be16_get(ext->u.fragment) >> 3 || ext->u.fragment.b[1] & FRAGMENT_MORE;
        }
        size_t n = ext_len(upper->proto, ext);
        if (!n) {
            return true;
        }
        if (!there || remaining < n) {
            return false;
        }
        if (upper->proto == IP6_NH_ROUTING && ext->u.routing.segments_left && !upper->routing_ofs) {
            upper->routing_ofs = upper->ofs;
        }
        if ((upper->proto == IP6_NH_HOPOPT || upper->proto == IP6_NH_DSTOPT)
            && !upper->option_ofs) {
            upper->option_ofs = find_mandatory_option(ip, upper->ofs + 2, upper->ofs + n);
        }
        upper->proto = ext->nh;
        upper->proto_ofs = upper->ofs;
        upper->ofs += (uint32_t) n;
    }
    return false;
}

const struct icmp6_wire *
icmp6_find_error(const uint8_t *ip, size_t len, struct icmp6_upper *upper)
{
    if (!icmp6_find_upper(ip, len, upper) || upper->proto != IP6_NH_ICMPV6 || upper->is_fragment
        || len - upper->ofs < sizeof(struct icmp6_wire) + IP6_HDR_LEN) {
        return NULL;
    }
    const struct icmp6_wire *icmp = (const void *) (ip + upper->ofs);

    return ICMP6_IS_ERROR(icmp->type) ? icmp : NULL;
}

bool
icmp6_is_valid(const struct ip6_hdr_wire *ip, const uint8_t *icmp, size_t len)
{
    return len >= sizeof(struct icmp6_wire)
           && !be16_get(inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_ICMPV6, icmp, len));
}

/*
 * Building.
 */

/* An empty packet aligned for an IPv6 header (see PACKET_HEADROOM), or NULL. */
static struct packet *
start(struct packet_pool *pool)
{
    struct packet *p = packet_get(pool);
    if (p) {
        p->data += sizeof(struct eth_hdr);
    }
    return p;
}

/* The message of p, behind the IPv6 header. */
static struct icmp6_wire *
message(struct packet *p)
{
    return (struct icmp6_wire *) (p->data + IP6_HDR_LEN);
}

/* Completes p, whose message has 'len' bytes: IPv6 header, checksum. */
static void
finish(struct packet *p, const struct in6_addr *src, const struct in6_addr *dst, size_t len)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) p->data;
    struct icmp6_wire *icmp = message(p);

    ip6_set_vtf(ip, 0, 0);
    ip->plen = be16_put((uint16_t) len);
    ip->nh = IP6_NH_ICMPV6;
    ip->hlim = HOP_LIMIT;
    ip->src = *src;
    ip->dst = *dst;
    icmp->csum = be16_put(0);
    icmp->csum = inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_ICMPV6, icmp, len);
    p->len = (uint32_t) (sizeof *ip + len);
}

struct packet *
icmp6_echo_build(struct packet_pool *pool, const struct ip6_hdr_wire *request, const uint8_t *icmp,
                 size_t len)
{
    struct packet *p = start(pool);
    if (p) {
        memcpy(message(p), icmp, len);
        message(p)->type = ICMP6_REPLY;
        message(p)->code = 0;
        finish(p, &request->dst, &request->src, len);
    }
    return p;
}

/*
 * Error messages.
 */

/* Checks the first 'len' bytes of the offender by RFC 4443 section 2.4(e).  NULL, or what is
 * against an error message. */
static const char *
objection(const struct icmp6_error *error, const uint8_t *offender, size_t len)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) offender;
    bool multicast_ok =
        error->type == ICMP6_TOO_BIG
        || (error->type == ICMP6_PARAMETER && error->code == ICMP6_PARAMETER_OPTION);
    struct icmp6_upper upper;

    if (IN6_IS_ADDR_UNSPECIFIED(&ip->src) || IN6_IS_ADDR_MULTICAST(&ip->src)
        || IN6_IS_ADDR_LOOPBACK(&ip->src)) {
        return "source is not one node";
    }
    if (is_proxy_address(&ip->src)) { /* it is on no interface: nobody would hear. */
        return "source is a proxy";
    }
    if (IN6_IS_ADDR_MULTICAST(&ip->dst) && !multicast_ok) {
        return "sent to a group";
    }
    if (!icmp6_find_upper(offender, len, &upper)) {
        return "what it carries is not known"; /* and might be an error message. */
    }
    if (upper.proto == IP6_NH_FRAGMENT) {
        return "the middle of a packet";
    }
    if (upper.proto == IP6_NH_ICMPV6
        && (upper.ofs == len || ICMP6_IS_ERROR(offender[upper.ofs])
            || offender[upper.ofs] == ICMP6_REDIRECT)) {
        return "an error message itself";
    }
    return NULL;
}

/* Copies up to 'size' bytes of the packet from byte 'ofs' of its head on. */
static size_t
copy_out(const struct packet *p, uint32_t ofs, uint8_t *out, size_t size)
{
    struct iovec iov[3];
    size_t len = 0;

    int n = packet_iov(p, iov);
    for (int i = 0; i < n; i++) {
        const uint8_t *bytes = iov[i].iov_base;
        size_t skip = i ? 0 : ofs;
        size_t n_bytes = iov[i].iov_len - skip;
        if (n_bytes > size - len) {
            n_bytes = size - len;
        }
        memcpy(out + len, bytes + skip, n_bytes);
        len += n_bytes;
    }
    return len;
}

struct packet *
icmp6_error_build(struct packet_pool *pool, const struct icmp6_error *error,
                  const struct in6_addr *src, const struct packet *offender, uint32_t ofs,
                  const char **whyp)
{
    const struct ip6_hdr_wire *bad = (const struct ip6_hdr_wire *) (offender->data + ofs);
    struct packet *p = start(pool);
    if (!p) {
        *whyp = "no packet buffer free";
        return NULL;
    }

    struct icmp6_wire *icmp = message(p);
    uint8_t *quote = (uint8_t *) (icmp + 1);
    size_t size = IP6_HDR_LEN + be16_get(bad->plen);
    size_t max = MIN_MTU - IP6_HDR_LEN - sizeof *icmp;
    size_t len = copy_out(offender, ofs, quote, size < max ? size : max);

    *whyp = objection(error, quote, len);
    if (*whyp) {
        packet_put(p);
        return NULL;
    }
    *icmp = (struct icmp6_wire){
        .type = (uint8_t) error->type,
        .code = error->code,
        .param = be32_put(error->param),
    };
    finish(p, src, &bad->src, sizeof *icmp + len);
    return p;
}

/*
 * Rate limit.
 */

/* The bucket loses a token's worth of time per message and refills as time passes; it is empty
 * when it would take longer than all its tokens to be full. */
bool
icmp6_limit_take(struct icmp6_limit *limit, uint64_t now)
{
    const uint64_t token = 1000000 / ICMP6_ERRORS_PER_SEC;

    if (limit->full_at < now) {
        limit->full_at = now;
    }
    if (limit->full_at - now > (ICMP6_ERRORS_BURST - 1) * token) {
        return false;
    }
    limit->full_at += token;
    return true;
}
