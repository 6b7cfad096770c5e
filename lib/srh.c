/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the outer IPv6 header and SRH of a multicast data packet.
 *
 *     IPv6: source, destination = SID of the first replicator or the edge
 *     SRH:  Last Entry 0, Segments Left 1, Segment List[0] = Proxy Address
 *           End.MT TLV per edge, repeated after MT_TLV_MAX_RECEIVERS receivers
 *           PadN
 *
 * and, on request, a Hop-by-Hop header with an IOAM trace between the two.
 *
 * Header and TLVs are multiples of 4, so the padding is 4 bytes or none; Pad1
 * never occurs.
 */
#include "lib/srh.h"

#include <errno.h>

#define TEMPLATE_HOP_LIMIT 64
#define SRH_ALIGN          8
#define SRH_FIXED_LEN      (sizeof(struct srh_hdr) + sizeof(struct in6_addr))

/* How many of the first pairs go into one End.MT TLV. */
static size_t
tlv_n_receivers(const struct srh_copy *copies, size_t n_copies)
{
    size_t n = 1;

    while (n < n_copies && n < MT_TLV_MAX_RECEIVERS
           && IN6_ARE_ADDR_EQUAL(&copies[n].edge, &copies[0].edge)) {
        n++;
    }
    return n;
}

/* Without the padding. */
static size_t
srh_unpadded_len(const struct srh_copy *copies, size_t n_copies)
{
    size_t len = SRH_FIXED_LEN;

    for (size_t i = 0; i < n_copies;) {
        size_t n = tlv_n_receivers(&copies[i], n_copies - i);

        len += sizeof(struct mt_tlv) + n * sizeof(struct mt_receiver);
        i += n;
    }
    return len;
}

static size_t
srh_pad_len(size_t len)
{
    return (SRH_ALIGN - len % SRH_ALIGN) % SRH_ALIGN;
}

size_t
srh_len(const struct srh_copy *copies, size_t n_copies)
{
    size_t len = srh_unpadded_len(copies, n_copies);

    return len + srh_pad_len(len);
}

/* The End.MT TLV of n pairs of one edge; 'out' is all zeros.  Returns its end. */
static uint8_t *
put_mt_tlv(uint8_t *out, const struct srh_copy *copies, size_t n)
{
    struct mt_tlv *mt = (struct mt_tlv *) out;
    struct mt_receiver *r = (struct mt_receiver *) (mt + 1);

    mt->type = SRH_TLV_MT;
    mt->len = (uint8_t) MT_TLV_LEN(n);
    mt->edge = copies[0].edge;
    mt->n_receivers = (uint8_t) n;
    for (size_t i = 0; i < n; i++, r++) {
        r->addr = copies[i].addr;
        r->qpn = be24_put(copies[i].qpn);
    }
    return (uint8_t *) r;
}

int
encap_template_build(struct encap_template *t, const struct in6_addr *src,
                     const struct in6_addr *dst, const struct in6_addr *proxy,
                     const struct srh_copy *copies, size_t n_copies)
{
    size_t len = srh_len(copies, n_copies);
    if (len > SRH_MAX_LEN) {
        return EMSGSIZE;
    }
    t->len = (uint16_t) (IP6_HDR_LEN + len);
    t->trace_len = 0;
    memset(t->bytes, 0, t->len);

    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) t->bytes;
    ip->nh = IP6_NH_ROUTING;
    ip->hlim = TEMPLATE_HOP_LIMIT;
    ip->src = *src;
    ip->dst = *dst;

    struct srh_hdr *srh = (struct srh_hdr *) (ip + 1);
    srh->nh = IP6_NH_IPV6;
    srh->hdr_ext_len = (uint8_t) (len / 8 - 1);
    srh->type = SRH_ROUTING_TYPE;
    srh->segments_left = 1;
    srh->last_entry = 0;

    uint8_t *out = (uint8_t *) (srh + 1);
    memcpy(out, proxy, sizeof *proxy);
    out += sizeof *proxy;
    for (size_t i = 0; i < n_copies;) {
        size_t n = tlv_n_receivers(&copies[i], n_copies - i);

        out = put_mt_tlv(out, &copies[i], n);
        i += n;
    }

    size_t pad = (size_t) (t->bytes + t->len - out);
    if (pad) {
        struct srh_tlv *padn = (struct srh_tlv *) out;
        padn->type = SRH_TLV_PADN;
        padn->len = (uint8_t) (pad - sizeof *padn);
    }
    return 0;
}

void
encap_template_add_trace(struct encap_template *t, unsigned slots)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) t->bytes;
    uint8_t *hbh = (uint8_t *) (ip + 1);

    t->trace_len = (uint16_t) IOAM_HBH_LEN(slots);
    memmove(hbh + t->trace_len, hbh, t->len - IP6_HDR_LEN);
    ioam_build(hbh, ip->nh, slots);
    ip->nh = IP6_NH_HOPOPT;
    t->len = (uint16_t) (t->len + t->trace_len);
}

void
encap_template_stamp(const struct encap_template *t, uint8_t *out, uint16_t inner_len, uint8_t tc,
                     uint32_t flow_label)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) out;

    memcpy(out, t->bytes, t->len);
    ip6_set_vtf(ip, tc, flow_label);
    ip->plen = be16_put((uint16_t) (t->len - IP6_HDR_LEN + inner_len));
}
