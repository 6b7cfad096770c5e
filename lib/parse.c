/* SPDX-License-Identifier: Apache-2.0
 *
 * Validates a frame's lengths once and records where things are.
 *
 * Every length is compared with what remains before its bound, so nothing from
 * the wire is ever added to a position before it is known to fit.
 */
#include "lib/parse.h"

#include "lib/roce.h"

/* An SRH has at least one segment, so this many End.MT TLVs are never exceeded. */
static_assert(sizeof(struct srh_hdr) + sizeof(struct in6_addr)
                      + (PARSE_MAX_MT_TLV + 1) * sizeof(struct mt_tlv)
                  > SRH_MAX_LEN,
              "PARSE_MAX_MT_TLV");

#define EXT_MIN_LEN          8

/* The value lengths of HMAC TLVs (RFC 8754 2.1.2), with 8 to 32 bytes of digest. */
#define HMAC_TLV_LEN_OK(LEN) ((LEN) >= 14 && (LEN) <= 38 && ((LEN) -6) % 8 == 0)

/* The IPv6 header at data[ofs], whose packet must end by 'bound'.  ip->proto is
 * its Next Header, not yet followed. */
static enum drop_reason
parse_ip6(const uint8_t *data, uint16_t ofs, uint16_t bound, struct parsed_ip6 *ip)
{
    const struct ip6_hdr_wire *hdr = (const struct ip6_hdr_wire *) (data + ofs);
    uint16_t remaining = bound - ofs;

    if (remaining < IP6_HDR_LEN) {
        return DROP_ip6_short;
    }
    if (hdr->vtf.b[0] >> 4 != 6) {
        return DROP_ip6_version;
    }
    remaining -= IP6_HDR_LEN;
    if (remaining < be16_get(hdr->plen)) {
        return DROP_ip6_short;
    }
    if (IN6_IS_ADDR_MULTICAST(&hdr->src)) {
        return DROP_ip6_src; /* RFC 4291 2.7. */
    }
    ip->ofs = ofs;
    ip->end = ofs + IP6_HDR_LEN + be16_get(hdr->plen);
    ip->proto = hdr->nh;
    return DROP_none;
}

/* The End.MT TLV at data[ofs], which fits into the SRH. */
static enum drop_reason
parse_mt_tlv(const uint8_t *data, uint16_t ofs, struct parsed *p)
{
    const struct mt_tlv *mt = (const struct mt_tlv *) (data + ofs);

    if (mt->len < MT_TLV_LEN(0) || mt->len != MT_TLV_LEN(mt->n_receivers)) {
        return DROP_mt_tlv_malformed;
    }
    p->mt_tlv_ofs[p->n_mt_tlvs++] = ofs;
    return DROP_none;
}

/* The SRH's TLVs in data[ofs, end).  Of a digest TLV the first one counts, and
 * only at a length that it is defined with; unknown types are skipped. */
static enum drop_reason
parse_tlvs(const uint8_t *data, uint16_t ofs, uint16_t end, struct parsed *p)
{
    while (ofs < end) {
        const struct srh_tlv *tlv = (const struct srh_tlv *) (data + ofs);
        uint16_t remaining = end - ofs;
        enum drop_reason reason;

        if (tlv->type == SRH_TLV_PAD1) {
            ofs++;
            continue;
        }
        if (remaining < sizeof *tlv || remaining - sizeof *tlv < tlv->len) {
            return DROP_srh_tlv;
        }
        switch (tlv->type) {
        case SRH_TLV_MT:
            reason = parse_mt_tlv(data, ofs, p);
            if (reason != DROP_none) {
                return reason;
            }
            break;
        case SRH_TLV_MT_AUTH:
            if (!p->auth_ofs && tlv->len == AUTH_TLV_LEN) {
                p->auth_ofs = ofs;
            }
            break;
        case SRH_TLV_DATA:
            if (!p->data_ofs && tlv->len == AUTH_TLV_LEN) {
                p->data_ofs = ofs;
            }
            break;
        case SRH_TLV_HMAC:
            if (!p->hmac_ofs && HMAC_TLV_LEN_OK(tlv->len)) {
                p->hmac_ofs = ofs;
            }
            break;
        }
        ofs += sizeof *tlv + tlv->len;
    }
    return DROP_none;
}

/* The SRH at data[ofs], 'len' bytes of which lie within the packet. */
static enum drop_reason
parse_srh(const uint8_t *data, uint16_t ofs, uint16_t len, struct parsed *p)
{
    const struct srh_hdr *srh = (const struct srh_hdr *) (data + ofs);

    /* RFC 8754 4.3.1.1.  Segments Left = Last Entry + 1: a reduced SRH. */
    if (p->srh_ofs || srh->last_entry >= srh->hdr_ext_len / 2
        || srh->segments_left > srh->last_entry + 1) {
        p->bad_srh_ofs = ofs;
        return DROP_srh_malformed;
    }
    p->srh_ofs = ofs;
    p->srh_len = len;
    p->n_segments = srh->last_entry + 1;
    p->segments_left = srh->segments_left;
    return parse_tlvs(data, ofs + sizeof *srh + p->n_segments * sizeof(struct in6_addr), ofs + len,
                      p);
}

/* The Routing header at data[ofs], 'len' bytes of which lie within the packet. */
static enum drop_reason
parse_routing(const uint8_t *data, uint16_t ofs, uint16_t len, struct parsed *p)
{
    const struct srh_hdr *hdr = (const struct srh_hdr *) (data + ofs); /* the same in all types. */

    if (hdr->type == SRH_ROUTING_TYPE) {
        return parse_srh(data, ofs, len, p);
    }
    if (hdr->segments_left && !p->routing_ofs) {
        p->routing_ofs = ofs;
    }
    return DROP_none;
}

/* Follows the extension headers of 'ip'.  Routing headers go to *srh_to, or are skipped
 * like any other header if that is NULL. */
static enum drop_reason
parse_ext(const uint8_t *data, struct parsed_ip6 *ip, struct parsed *srh_to)
{
    uint16_t ofs = ip->ofs + IP6_HDR_LEN;

    while (ip->proto == IP6_NH_HOPOPT || ip->proto == IP6_NH_DSTOPT
           || ip->proto == IP6_NH_ROUTING) {
        uint16_t remaining = ip->end - ofs;

        if (ip->n_ext >= PARSE_MAX_EXT || remaining < EXT_MIN_LEN) {
            return DROP_ext_chain;
        }
        if (ip->proto == IP6_NH_HOPOPT && ip->n_ext > 0) {
            return DROP_ext_chain; /* RFC 8200 4.1: first or not at all. */
        }
        uint16_t len = (data[ofs + 1] + 1) * 8;
        if (remaining < len) {
            return DROP_ext_chain;
        }
        if (srh_to && ip->proto == IP6_NH_ROUTING) {
            enum drop_reason reason = parse_routing(data, ofs, len, srh_to);
            if (reason != DROP_none) {
                return reason;
            }
        }
        ip->n_ext++;
        ip->proto = data[ofs];
        ofs += len;
    }
    ip->l4_ofs = ofs;
    return DROP_none;
}

/* BTH to ICRC in data[ofs, end). */
static enum drop_reason
parse_bth(const uint8_t *data, uint16_t ofs, uint16_t end, struct parsed *p)
{
    const struct bth *bth = (const struct bth *) (data + ofs);
    uint16_t remaining = end - ofs;

    if (remaining < sizeof *bth + ROCE_ICRC_LEN) {
        return DROP_roce_short;
    }
    if (BTH_TVER(bth->flags) != 0) {
        return DROP_roce_tver;
    }
    const struct roce_opcode_info *info = roce_opcode_info(bth->opcode);
    uint8_t pad = info->name ? BTH_PAD(bth->flags) : 0;

    remaining -= sizeof *bth + ROCE_ICRC_LEN;
    if (remaining < info->ext_len + pad) {
        return DROP_roce_short;
    }
    p->bth_ofs = ofs;
    p->ext_ofs = ofs + sizeof *bth;
    p->payload_ofs = p->ext_ofs + info->ext_len;
    p->payload_len = remaining - info->ext_len - pad;
    p->icrc_ofs = end - ROCE_ICRC_LEN;
    p->opcode = bth->opcode;
    return DROP_none;
}

static enum drop_reason
parse_udp(const uint8_t *data, const struct parsed_ip6 *ip, struct parsed *p)
{
    const struct udp_hdr *udp = (const struct udp_hdr *) (data + ip->l4_ofs);
    uint16_t remaining = ip->end - ip->l4_ofs;

    if (remaining < sizeof *udp) {
        return DROP_udp_short;
    }
    if (be16_get(udp->dport) != UDP_PORT_ROCE) {
        return DROP_none;
    }
    uint16_t len = be16_get(udp->len);
    if (len < sizeof *udp || remaining < len) {
        return DROP_udp_short;
    }
    p->udp_ofs = ip->l4_ofs;
    return parse_bth(data, p->udp_ofs + sizeof *udp, p->udp_ofs + len, p);
}

enum drop_reason
parse_outer(const uint8_t *data, uint32_t len, struct parsed *p)
{
    memset(p, 0, sizeof *p);
    if (len < sizeof(struct eth_hdr)) {
        return DROP_eth_short;
    }
    if (be16_get(((const struct eth_hdr *) data)->type) != ETH_TYPE_IP6) {
        return eth_vlan_tag(data, len) ? DROP_vlan : DROP_eth_type;
    }
    if (len > UINT16_MAX) {
        return DROP_too_long;
    }
    return parse_ip6(data, sizeof(struct eth_hdr), (uint16_t) len, &p->ip);
}

enum drop_reason
parse_rest(const uint8_t *data, uint32_t len, struct parsed *p)
{
    assert(p->ip.ofs && p->ip.end <= len);

    enum drop_reason reason = parse_ext(data, &p->ip, p);
    if (reason != DROP_none) {
        return reason;
    }
    if (p->ip.proto == IP6_NH_IPV6
        && (parse_ip6(data, p->ip.l4_ofs, p->ip.end, &p->inner) != DROP_none
            || parse_ext(data, &p->inner, NULL) != DROP_none)) {
        return DROP_inner_malformed;
    }

    const struct parsed_ip6 *last = parsed_innermost(p);
    return last->proto == IP6_NH_UDP ? parse_udp(data, last, p) : DROP_none;
}

enum drop_reason
parse_frame(const uint8_t *data, uint32_t len, struct parsed *p)
{
    enum drop_reason reason = parse_outer(data, len, p);

    return reason == DROP_none ? parse_rest(data, len, p) : reason;
}
