/* SPDX-License-Identifier: Apache-2.0
 *
 * Fast CNPs: made, found and taken apart.
 *
 * One is a standard CNP into which a Destination Options header is put, so its ICRC is that of
 * form A.  The option comes last in the header, which needs no padding behind it: a PadN of 4
 * bytes stands in front where the option's data have a multiple of 8.  On receipt padding may be
 * anywhere.
 */
#include "lib/fast-cnp.h"

#include "lib/cnp.h"
#include "lib/icrc.h"
#include "lib/ioam.h"
#include "lib/ip6-option.h"
#include "lib/roce.h"

#define FRONT_PAD       4
#define EXT_MIN_LEN     8
#define ADDR_LEN        sizeof(struct in6_addr)
#define CNP_PAYLOAD_LEN (CNP_LEN - IP6_HDR_LEN)

struct packet *
fast_cnp_build(struct packet_pool *pool, const struct fast_cnp *say, uint16_t sport)
{
    uint8_t compact[UINT8_MAX];
    const uint8_t *trace = say->trace;
    uint8_t trace_len = trace ? say->trace_len : 0;
    struct packet *p = cnp_build(pool, &say->node, &say->sender, sport, say->dest_qp);

    if (!p) {
        return NULL;
    }
    if (trace_len > FAST_CNP_TRACE_MAX) {
        trace_len = ioam_compact(trace, trace_len, compact);
        trace = compact;
    }
    if (trace_len > FAST_CNP_TRACE_MAX) {
        trace_len = 0;
    }
    assert(!trace_len || (trace_len >= IOAM_TRACE_HDR_LEN && trace_len % 4 == 0));
    size_t data_len = trace_len + ADDR_LEN, pad = data_len % 8 ? 0 : FRONT_PAD;
    size_t len = IP6_EXT_HDR_LEN + pad + IP6_OPTION_HDR_LEN + data_len;

    struct ip6_hdr_wire ip = *(const struct ip6_hdr_wire *) p->data;
    uint8_t *at = packet_push(p, len);
    assert(at);
    ip.nh = IP6_NH_DSTOPT;
    ip.plen = be16_put((uint16_t) (CNP_PAYLOAD_LEN + len));
    memcpy(at, &ip, sizeof ip);
    at += sizeof ip;
    *at++ = IP6_NH_UDP;
    *at++ = (uint8_t) (len / 8 - 1);
    if (pad) {
        memcpy(at, (const uint8_t[FRONT_PAD]){IP6_OPTION_PADN, FRONT_PAD - IP6_OPTION_HDR_LEN},
               FRONT_PAD);
        at += FRONT_PAD;
    }
    *at++ = FAST_CNP_OPTION;
    *at++ = (uint8_t) data_len;
    if (trace_len) {
        memcpy(at, trace, trace_len);
    }
    memcpy(at + trace_len, &say->original, ADDR_LEN);
    return p;
}

/* Bytes of the extension header at data[ofs], or 0 if it runs over 'end'. */
static uint32_t
ext_len(const uint8_t *data, uint32_t ofs, uint32_t end)
{
    if (end - ofs < EXT_MIN_LEN) {
        return 0;
    }
    uint32_t len = (data[ofs + 1] + 1u) * 8;
    return end - ofs < len ? 0 : len;
}

/* Bytes of the header at data[ofs] that is no last one, or 0: it is one, or unsound.  *end becomes
 * where an inner packet ends. */
static uint32_t
hdr_len(const uint8_t *data, uint32_t ofs, uint8_t proto, uint32_t *end)
{
    switch (proto) {
    case IP6_NH_HOPOPT:
    case IP6_NH_ROUTING:
    case IP6_NH_DSTOPT: return ext_len(data, ofs, *end);
    case IP6_NH_FRAGMENT: {
        /* The first fragment has all headers (RFC 7112). */
        bool first = *end - ofs >= EXT_MIN_LEN && !data[ofs + 2] && data[ofs + 3] < 8;
        return first ? EXT_MIN_LEN : 0;
    }
    case IP6_NH_IPV6: {
        const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (data + ofs);

        if (*end - ofs < sizeof *ip || ip->vtf.b[0] >> 4 != 6
            || *end - ofs - sizeof *ip < be16_get(ip->plen)) {
            return 0;
        }
        *end = ofs + (uint32_t) sizeof *ip + be16_get(ip->plen);
        return sizeof *ip;
    }
    }
    return 0;
}

/* Each step goes on by 8 bytes at least, so that it ends with the packet. */
bool
fast_cnp_seen(const uint8_t *data, uint32_t len, const struct parsed *outer)
{
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (data + outer->ip.ofs);
    uint32_t ofs = outer->ip.ofs + IP6_HDR_LEN, end = outer->ip.end, n;
    uint8_t proto = ip->nh;

    assert(end <= len);
    while ((n = hdr_len(data, ofs, proto, &end))) {
        if (proto == IP6_NH_DSTOPT) {
            struct ip6_options o = ip6_options(data + ofs, n);
            struct ip6_option option;

            while (ip6_options_next(&o, &option)) {
                if (option.type == FAST_CNP_OPTION) {
                    return true;
                }
            }
        }
        proto = proto == IP6_NH_IPV6 ? ((const struct ip6_hdr_wire *) (data + ofs))->nh : data[ofs];
        ofs += n;
    }
    return false;
}

/* Is this a CNP behind a Destination Options header that has one option, and is that Fast CNP's?
 * Fills in all of *out but the addresses of the IPv6 header. */
static bool
parse_shape(const uint8_t *data, const struct parsed_ip6 *ip, uint32_t *l4_ofs,
            struct fast_cnp *out)
{
    const struct ip6_hdr_wire *hdr = (const struct ip6_hdr_wire *) (data + ip->ofs);
    uint32_t ofs = ip->ofs + IP6_HDR_LEN;
    uint32_t len = hdr->nh == IP6_NH_DSTOPT ? ext_len(data, ofs, ip->end) : 0;

    if (!len || data[ofs] != IP6_NH_UDP || ip->end - ofs - len != CNP_PAYLOAD_LEN) {
        return false;
    }
    struct ip6_options o = ip6_options(data + ofs, len);
    struct ip6_option option, other;
    if (!ip6_options_next(&o, &option) || option.type != FAST_CNP_OPTION
        || ip6_options_next(&o, &other) || !o.sound) {
        return false;
    }
    if (option.len != ADDR_LEN && (option.len < ADDR_LEN + IOAM_TRACE_HDR_LEN || option.len % 4)) {
        return false;
    }
    *l4_ofs = ofs + len;
    const struct udp_hdr *udp = (const struct udp_hdr *) (data + *l4_ofs);
    const struct bth *bth = (const struct bth *) (udp + 1);
    if (be16_get(udp->dport) != UDP_PORT_ROCE || be16_get(udp->len) != CNP_PAYLOAD_LEN
        || bth->opcode != ROCE_CNP || BTH_TVER(bth->flags) != 0) {
        return false;
    }
    out->dest_qp = be24_get(bth->dest_qp);
    out->trace_len = (uint8_t) (option.len - ADDR_LEN);
    out->trace = out->trace_len ? option.data : NULL;
    memcpy(&out->original, option.data + out->trace_len, ADDR_LEN);
    return true;
}

/* Does the ICRC fit in one of the three forms? */
static bool
any_form_ok(const uint8_t *ip, size_t l4_ofs, size_t len)
{
    const uint8_t *icrc = ip + len - ROCE_ICRC_LEN;
    uint8_t plain[CNP_LEN]; /* the packet without its Destination Options header. */
    struct ip6_hdr_wire *hdr = (struct ip6_hdr_wire *) plain;

    memcpy(plain, ip, IP6_HDR_LEN);
    memcpy(plain + IP6_HDR_LEN, ip + l4_ofs, CNP_PAYLOAD_LEN);
    if (icrc_ok(plain, CNP_LEN - ROCE_ICRC_LEN)) {
        return true; /* B. */
    }
    hdr->nh = IP6_NH_UDP;
    hdr->plen = be16_put(CNP_PAYLOAD_LEN);
    return icrc_ok(plain, CNP_LEN - ROCE_ICRC_LEN)                                       /* A. */
           || icrc_load(icrc) == icrc_compute_with_ext(ip, l4_ofs, len - ROCE_ICRC_LEN); /* C. */
}

enum drop_reason
fast_cnp_parse(const uint8_t *data, uint32_t len, const struct parsed *outer, bool any_icrc,
               struct fast_cnp *out)
{
    const struct parsed_ip6 *ip = &outer->ip;
    const struct ip6_hdr_wire *hdr = (const struct ip6_hdr_wire *) (data + ip->ofs);
    uint32_t l4_ofs;

    assert(ip->end <= len);
    if (!parse_shape(data, ip, &l4_ofs, out)) {
        return DROP_fast_cnp_malformed;
    }
    if (!any_icrc && !any_form_ok(data + ip->ofs, l4_ofs - ip->ofs, ip->end - ip->ofs)) {
        return DROP_fast_cnp_icrc;
    }
    out->node = hdr->src;
    out->sender = hdr->dst;
    return DROP_none;
}
