/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard RoCEv2 congestion notification packets.
 */
#include "lib/cnp.h"

#include "lib/icrc.h"
#include "lib/roce-packet.h"
#include "lib/roce.h"

struct packet *
cnp_build(struct packet_pool *pool, const struct in6_addr *src, const struct in6_addr *dst,
          uint16_t sport, uint32_t dest_qp)
{
    struct packet *p =
        roce_packet_begin(pool, CNP_LEN, src, dst, sport, ROCE_CNP, dest_qp, psn_make(0));

    if (p) {
        struct bth *bth = (struct bth *) (p->data + IP6_HDR_LEN + sizeof(struct udp_hdr));

        ip6_set_vtf((struct ip6_hdr_wire *) p->data, CNP_TRAFFIC_CLASS, 0);
        bth->resv8a = BTH_BECN;
        roce_packet_end(p);
    }
    return p;
}

enum drop_reason
cnp_check(const uint8_t *data, const struct parsed *h)
{
    const struct parsed_ip6 *ip = parsed_innermost(h);

    assert(h->bth_ofs && h->opcode == ROCE_CNP);
    if (ip->n_ext || ip->end - ip->ofs != CNP_LEN || h->icrc_ofs + ROCE_ICRC_LEN != ip->end) {
        return DROP_not_for_us;
    }
    if (!icrc_ok(data + ip->ofs, (size_t) (h->icrc_ofs - ip->ofs))) {
        return DROP_icrc;
    }
    return bth_pkey_ok((const struct bth *) (data + h->bth_ofs)) ? DROP_none : DROP_pkey;
}
