/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds RC Acknowledge packets.
 */
#include "lib/response.h"

#include <assert.h>
#include <zlib.h>

#include "lib/icrc.h"
#include "lib/roce-packet.h"
#include "lib/roce.h"

/* rxe and hardware choose RoCE source ports from here on. */
#define SPORT_BASE 0xc000
#define SPORT_MASK 0x3fff

struct packet *
response_build(struct packet_pool *pool, const struct in6_addr *src, const struct in6_addr *dst,
               uint16_t sport, uint32_t dest_qp, psn_t psn, uint8_t syndrome, uint32_t msn)
{
    struct packet *p = roce_packet_begin(pool, RESPONSE_LEN, src, dst, sport, RC_ACK, dest_qp, psn);

    if (p) {
        uint8_t *bth = p->data + IP6_HDR_LEN + sizeof(struct udp_hdr);
        struct aeth *aeth = (struct aeth *) (bth + sizeof(struct bth));

        aeth->syndrome = syndrome;
        aeth->msn = be24_put(msn);
        roce_packet_end(p);
    }
    return p;
}

/* Puts an IPv6 header in front of what is there. */
static void
push_outer(struct packet *p, uint8_t next_header, uint8_t tc, const struct in6_addr *src,
           const struct in6_addr *dst)
{
    uint16_t len = (uint16_t) p->len;
    struct ip6_hdr_wire *ip = packet_push(p, sizeof *ip);

    assert(ip);
    ip6_set_vtf(ip, tc, 0);
    ip->plen = be16_put(len);
    ip->nh = next_header;
    ip->hlim = ROCE_PACKET_HOP_LIMIT;
    ip->src = *src;
    ip->dst = *dst;
}

void
response_wrap(struct packet *p, const struct in6_addr *src, const struct in6_addr *response_sid)
{
    push_outer(p, IP6_NH_IPV6, ip6_tc((const struct ip6_hdr_wire *) p->data), src, response_sid);
}

void
response_wrap_srh(struct packet *p, const struct in6_addr *src, const struct in6_addr *response_sid,
                  const struct in6_addr *dst, uint32_t key_id)
{
    struct header {
        struct srh_hdr srh;
        in6_wire_t segment;
        struct data_tlv tlv;
    };
    static_assert(sizeof(struct header) == 64, "no padding");
    uint8_t tc = ip6_tc((const struct ip6_hdr_wire *) p->data);
    struct header *h = packet_push(p, sizeof *h);

    assert(h);
    *h = (struct header){
        .srh = {.nh = IP6_NH_IPV6, .hdr_ext_len = sizeof *h / 8 - 1, .type = SRH_ROUTING_TYPE},
        .segment = *response_sid,
        .tlv = {.type = SRH_TLV_DATA, .len = AUTH_TLV_LEN, .key_id = be32_put(key_id)},
    };
    push_outer(p, IP6_NH_ROUTING, tc, src, dst);
}

enum drop_reason
response_check(const uint8_t *data, const struct parsed *h)
{
    const struct parsed_ip6 *ip = parsed_innermost(h);

    if (!h->bth_ofs || ip->n_ext || h->icrc_ofs + ROCE_ICRC_LEN != ip->end) {
        return DROP_not_for_us;
    }
    if (!icrc_ok(data + ip->ofs, (size_t) (h->icrc_ofs - ip->ofs))) {
        return DROP_icrc;
    }
    if (h->opcode != RC_ACK) {
        return DROP_resp_opcode;
    }
    if (h->payload_ofs != h->icrc_ofs) {
        return DROP_resp_payload;
    }
    return bth_pkey_ok((const struct bth *) (data + h->bth_ofs)) ? DROP_none : DROP_pkey;
}

uint16_t
response_sport(const struct in6_addr *proxy, uint32_t designated_qpn)
{
    be32_t qpn = be32_put(designated_qpn);
    uLong hash = crc32(crc32(0, proxy->s6_addr, sizeof *proxy), qpn.b, sizeof qpn);

    return (uint16_t) (SPORT_BASE | ((hash ^ hash >> 14) & SPORT_MASK));
}
