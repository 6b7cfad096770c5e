/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes to a SID of a group, with an SRH and extension headers as a test wants them.
 */
#include "tests/unit/outer-fixture.h"

#include <check.h>

struct in6_addr
outer_end_mt_sid(void)
{
    return node_sid(STAR_EDGE_ID, SID_FUNC_END_MT);
}

struct outer
outer_plain(void)
{
    return (struct outer){
        .dst_function = "mt",
        .segments = {star_proxy},
        .n_segments = 1,
        .segments_left = 1,
        .inner_nh = IP6_NH_IPV6,
    };
}

static void
put(struct outer *o, const void *bytes, size_t len)
{
    ck_assert_uint_le(len, sizeof o->tlvs - o->tlvs_len);
    memcpy(o->tlvs + o->tlvs_len, bytes, len);
    o->tlvs_len += len;
}

void
outer_put_tlv(struct outer *o, uint8_t type, uint8_t len, uint8_t value)
{
    uint8_t bytes[257] = {type, len};

    memset(bytes + 2, value, len);
    put(o, bytes, 2u + len);
}

void
outer_put_pad1(struct outer *o)
{
    put(o, (const uint8_t[]){SRH_TLV_PAD1}, 1);
}

struct mt_tlv *
outer_put_mt(struct outer *o, uint16_t edge, unsigned first, uint8_t n, uint8_t reserved)
{
    struct mt_tlv *mt = (struct mt_tlv *) (o->tlvs + o->tlvs_len);
    struct mt_tlv head = {
        .type = SRH_TLV_MT,
        .len = (uint8_t) MT_TLV_LEN(n),
        .rsv = {reserved, reserved},
        .n_receivers = n,
        .rsv2 = {reserved, reserved, reserved},
    };
    head.edge = node_address(edge);
    put(o, &head, sizeof head);
    for (unsigned i = first; i < first + n; i++) {
        struct mt_receiver r = {.qpn = be24_put(star_qpn(i)), .rsv = reserved};
        r.addr = star_receiver(i);
        put(o, &r, sizeof r);
    }
    return mt;
}

size_t
outer_build(uint8_t *out, const struct outer *o, const uint8_t *inner, size_t inner_len)
{
    static const uint8_t padding[8] = {SRH_TLV_PADN};
    size_t pad = -o->tlvs_len & 7;
    struct in6_addr dst = strcmp(o->dst_function, "rs") ? outer_end_mt_sid() : transit_rs();
    size_t list_len = sizeof(struct srh_hdr) + o->n_segments * sizeof *o->segments;
    size_t srh_len = list_len + o->tlvs_len + pad;
    uint8_t *at = ip6_build(out, node_address(STAR_AGENT_ID), dst,
                            o->before_len ? o->first_nh : IP6_NH_ROUTING,
                            o->before_len + srh_len + inner_len);

    ((struct ip6_hdr_wire *) out)->hlim = 64;
    if (o->before_len) {
        memcpy(at, o->before, o->before_len);
        at += o->before_len;
    }
    srh_build(at, o->segments, o->n_segments, o->segments_left, o->inner_nh);
    struct srh_hdr *srh = (struct srh_hdr *) at;
    srh->hdr_ext_len = (uint8_t) (srh_len / 8 - 1);
    srh->flags = o->flags;
    srh->tag = be16_put(o->tag);
    memcpy(at + list_len, o->tlvs, o->tlvs_len);
    if (pad) {
        uint8_t *padn = at + list_len + o->tlvs_len;
        memcpy(padn, padding, pad);
        if (pad == 1) {
            *padn = SRH_TLV_PAD1;
        } else {
            padn[1] = (uint8_t) (pad - 2);
        }
    }
    memcpy(at + srh_len, inner, inner_len);
    return (size_t) (at - out) + srh_len + inner_len;
}

struct roce_spec
outer_feed(struct fixture *f, const struct outer *o, uint32_t psn)
{
    struct roce_spec spec = transit_write(psn);
    uint8_t inner[PACKET_ROOM], bytes[PACKET_ROOM];
    size_t inner_len = roce_build(inner, &spec);

    fixture_input(f, AGENT_PORT, bytes, outer_build(bytes, o, inner, inner_len));
    return spec;
}
