/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame of the RoCEv2 packets that a node makes itself.
 */
#include "lib/roce-packet.h"

#include "lib/icrc.h"
#include "lib/roce.h"

struct headers {
    struct ip6_hdr_wire ip;
    struct udp_hdr udp;
    struct bth bth;
};

struct packet *
roce_packet_begin(struct packet_pool *pool, uint32_t len, const struct in6_addr *src,
                  const struct in6_addr *dst, uint16_t sport, uint8_t opcode, uint32_t dest_qp,
                  psn_t psn)
{
    struct packet *p = packet_get(pool);
    if (!p) {
        return NULL;
    }
    p->data += sizeof(struct eth_hdr); /* aligned, see PACKET_HEADROOM. */
    p->len = len;
    memset(p->data, 0, len);

    struct headers *h = (struct headers *) p->data;
    uint16_t udp_len = (uint16_t) (len - sizeof h->ip);

    ip6_set_vtf(&h->ip, 0, 0);
    h->ip.plen = be16_put(udp_len);
    h->ip.nh = IP6_NH_UDP;
    h->ip.hlim = ROCE_PACKET_HOP_LIMIT;
    h->ip.src = *src;
    h->ip.dst = *dst;

    h->udp.sport = be16_put(sport);
    h->udp.dport = be16_put(UDP_PORT_ROCE);
    h->udp.len = be16_put(udp_len);

    h->bth.opcode = opcode;
    h->bth.pkey = be16_put(ROCE_PKEY_DEFAULT);
    h->bth.dest_qp = be24_put(dest_qp);
    bth_set_psn(&h->bth, psn);
    return p;
}

void
roce_packet_end(struct packet *p)
{
    size_t icrc_ofs = p->len - ROCE_ICRC_LEN;

    icrc_store(p->data + icrc_ofs, icrc_compute(p->data, icrc_ofs));
}
