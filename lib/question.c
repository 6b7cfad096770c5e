/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds questions.
 */
#include "lib/question.h"

#include <assert.h>

#include "lib/icrc.h"
#include "lib/roce.h"

#define QUESTION_HOP_LIMIT 64

struct question {
    struct ip6_hdr_wire ip;
    struct udp_hdr udp;
    struct bth bth;
    struct reth reth;
    uint8_t icrc[ROCE_ICRC_LEN];
};
static_assert(sizeof(struct question) == QUESTION_LEN, "question");

struct packet *
question_build(struct packet_pool *pool, const struct in6_addr *src, const struct in6_addr *dst,
               uint16_t sport, uint32_t dest_qp, psn_t psn)
{
    struct packet *p = packet_get(pool);
    if (!p) {
        return NULL;
    }
    p->data += sizeof(struct eth_hdr); /* aligned, see PACKET_HEADROOM. */
    p->len = QUESTION_LEN;

    struct question *q = (struct question *) p->data;
    memset(q, 0, sizeof *q);
    ip6_set_vtf(&q->ip, 0, 0);
    q->ip.plen = be16_put(sizeof *q - sizeof q->ip);
    q->ip.nh = IP6_NH_UDP;
    q->ip.hlim = QUESTION_HOP_LIMIT;
    q->ip.src = *src;
    q->ip.dst = *dst;

    q->udp.sport = be16_put(sport);
    q->udp.dport = be16_put(UDP_PORT_ROCE);
    q->udp.len = be16_put(sizeof *q - sizeof q->ip);

    q->bth.opcode = RC_WRITE_ONLY;
    q->bth.pkey = be16_put(ROCE_PKEY_DEFAULT);
    q->bth.dest_qp = be24_put(dest_qp);
    q->bth.ack_req = BTH_ACK_REQ;
    bth_set_psn(&q->bth, psn);

    icrc_store(q->icrc, icrc_compute(p->data, offsetof(struct question, icrc)));
    return p;
}
