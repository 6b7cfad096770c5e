/* SPDX-License-Identifier: Apache-2.0
 *
 * RoCEv2 frames of a few flows.
 */
#include "tests/unit/uso-frames.h"

#include <check.h>

#include "lib/icrc.h"
#include "lib/roce.h"

struct frame {
    struct eth_hdr eth;
    struct ip6_hdr_wire ip;
    struct udp_hdr udp;
    struct bth bth;
};
static_assert(sizeof(struct frame) == USO_FRAME_HEADERS, "frame's headers");

struct packet *
uso_frame(struct packet_pool *pool, const struct uso_flow *flow, psn_t psn, size_t len, bool pieces)
{
    struct packet *p = packet_get(pool);
    const uint16_t udp_len = (uint16_t) (len - offsetof(struct frame, udp));
    const size_t ip_len = len - sizeof(struct eth_hdr) - ROCE_ICRC_LEN;

    ck_assert_ptr_nonnull(p);
    struct frame *f = (struct frame *) p->data;
    *f = (struct frame){
        .eth = {.src = {2, 0x5f, [5] = 1}, .type = be16_put(ETH_TYPE_IP6)},
        .ip = {.plen = be16_put(udp_len), .nh = IP6_NH_UDP, .hlim = 63, .dst = flow->dst},
        .udp = {be16_put(flow->sport), be16_put(UDP_PORT_ROCE), be16_put(udp_len), {{0}}},
        .bth = {.opcode = 7, .pkey = be16_put(ROCE_PKEY_DEFAULT), .dest_qp = be24_put(17)},
    };
    memcpy(f->eth.dst, flow->mac, sizeof f->eth.dst);
    ip6_set_vtf(&f->ip, 2, 0x12345);
    f->ip.src = (struct in6_addr){.s6_addr = {0xfd, 0, 0xff, 0xff, [15] = 1}};
    bth_set_psn(&f->bth, psn);
    for (size_t i = sizeof *f; i < len - ROCE_ICRC_LEN; i++) {
        p->data[i] = (uint8_t) (i * 7 + psn.v);
    }
    p->len = (uint32_t) len;
    icrc_store(p->data + len - ROCE_ICRC_LEN, icrc_compute(p->data + sizeof f->eth, ip_len));
    if (!pieces) {
        return p;
    }
    struct packet *copy = packet_replicate(p, 0, USO_FRAME_HEADERS, ROCE_ICRC_LEN);
    packet_put(p);
    return copy;
}
