/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds questions.
 */
#include "lib/question.h"

#include "lib/roce-packet.h"
#include "lib/roce.h"

struct packet *
question_build(struct packet_pool *pool, const struct in6_addr *src, const struct in6_addr *dst,
               uint16_t sport, uint32_t dest_qp, psn_t psn)
{
    struct packet *p =
        roce_packet_begin(pool, QUESTION_LEN, src, dst, sport, RC_WRITE_ONLY, dest_qp, psn);

    if (p) {
        struct bth *bth = (struct bth *) (p->data + IP6_HDR_LEN + sizeof(struct udp_hdr));

        bth->ack_req = BTH_ACK_REQ; /* The RETH stays 0: nothing is written. */
        roce_packet_end(p);
    }
    return p;
}
