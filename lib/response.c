/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds RC Acknowledge packets.
 */
#include "lib/response.h"

#include <assert.h>
#include <zlib.h>

#include "lib/icrc.h"
#include "lib/roce.h"

#define RESPONSE_HOP_LIMIT 64

/* rxe and hardware choose RoCE source ports from here on. */
#define SPORT_BASE         0xc000
#define SPORT_MASK         0x3fff

struct response {
    struct ip6_hdr_wire ip;
    struct udp_hdr udp;
    struct bth bth;
    struct aeth aeth;
    uint8_t icrc[ROCE_ICRC_LEN];
};
static_assert(sizeof(struct response) == RESPONSE_LEN, "response");

struct packet *
response_build(struct packet_pool *pool, const struct in6_addr *src, const struct in6_addr *dst,
               uint16_t sport, uint32_t dest_qp, psn_t psn, uint8_t syndrome, uint32_t msn)
{
    struct packet *p = packet_get(pool);
    if (!p) {
        return NULL;
    }
    p->data += sizeof(struct eth_hdr); /* aligned, see PACKET_HEADROOM. */
    p->len = RESPONSE_LEN;

    struct response *r = (struct response *) p->data;
    memset(r, 0, sizeof *r);
    ip6_set_vtf(&r->ip, 0, 0);
    r->ip.plen = be16_put(sizeof *r - sizeof r->ip);
    r->ip.nh = IP6_NH_UDP;
    r->ip.hlim = RESPONSE_HOP_LIMIT;
    r->ip.src = *src;
    r->ip.dst = *dst;

    r->udp.sport = be16_put(sport);
    r->udp.dport = be16_put(UDP_PORT_ROCE);
    r->udp.len = be16_put(sizeof *r - sizeof r->ip);

    r->bth.opcode = RC_ACK;
    r->bth.pkey = be16_put(ROCE_PKEY_DEFAULT);
    r->bth.dest_qp = be24_put(dest_qp);
    bth_set_psn(&r->bth, psn);

    r->aeth.syndrome = syndrome;
    r->aeth.msn = be24_put(msn);

    icrc_store(r->icrc, icrc_compute(p->data, offsetof(struct response, icrc)));
    return p;
}

void
response_wrap(struct packet *p, const struct in6_addr *src, const struct in6_addr *response_sid)
{
    uint16_t inner_len = (uint16_t) p->len;
    struct ip6_hdr_wire *ip = packet_push(p, sizeof *ip);

    assert(ip);
    ip6_set_vtf(ip, 0, 0);
    ip->plen = be16_put(inner_len);
    ip->nh = IP6_NH_IPV6;
    ip->hlim = RESPONSE_HOP_LIMIT;
    ip->src = *src;
    ip->dst = *response_sid;
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
    if (h->opcode == ROCE_CNP) {
        return DROP_cnp;
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
