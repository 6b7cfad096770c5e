/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses a frame for a test, under suspicion.
 */
#include "tests/unit/parse-check.h"

#include <stdlib.h>

#define ETH_LEN sizeof(struct eth_hdr)

/* What must hold for whatever is said to be present, also after an error. */
static void
check_nesting(const struct parsed *p, uint32_t len)
{
    const struct parsed_ip6 *last = parsed_innermost(p);
    uint16_t tlv_start = p->srh_ofs + 8 + 16 * p->n_segments;
    uint16_t srh_end = p->srh_ofs + p->srh_len;

    if (p->ip.ofs) {
        REQUIRE(p->ip.ofs == ETH_LEN);
        REQUIRE(p->ip.end >= p->ip.ofs + IP6_HDR_LEN);
        REQUIRE(p->ip.end <= len);
        REQUIRE(p->ip.n_ext <= PARSE_MAX_EXT);
    }
    if (p->ip.l4_ofs) {
        REQUIRE(p->ip.l4_ofs >= p->ip.ofs + IP6_HDR_LEN + 8 * p->ip.n_ext);
        REQUIRE(p->ip.l4_ofs <= p->ip.end);
    }
    if (p->srh_ofs) {
        REQUIRE(p->srh_ofs >= ETH_LEN + IP6_HDR_LEN);
        REQUIRE(srh_end <= (p->ip.l4_ofs ? p->ip.l4_ofs : p->ip.end));
        REQUIRE(p->n_segments >= 1);
        REQUIRE(tlv_start <= srh_end);
        REQUIRE(p->segments_left <= p->n_segments);
    }
    REQUIRE(p->n_mt_tlvs <= PARSE_MAX_MT_TLV);
    for (uint8_t i = 0; i < p->n_mt_tlvs; i++) {
        REQUIRE(p->mt_tlv_ofs[i] >= (i ? p->mt_tlv_ofs[i - 1] + 24 : tlv_start));
        REQUIRE(p->mt_tlv_ofs[i] + 24 <= srh_end);
    }
    if (p->auth_ofs) {
        REQUIRE(p->auth_ofs >= tlv_start);
        REQUIRE(p->auth_ofs + 40 <= srh_end);
    }
    if (p->data_ofs) {
        REQUIRE(p->data_ofs >= tlv_start);
        REQUIRE(p->data_ofs + 40 <= srh_end);
    }
    if (p->hmac_ofs) {
        REQUIRE(p->hmac_ofs >= tlv_start);
        REQUIRE(p->hmac_ofs + 16 <= srh_end);
    }
    if (p->inner.ofs) {
        REQUIRE(p->inner.ofs == p->ip.l4_ofs);
        REQUIRE(p->inner.end >= p->inner.ofs + IP6_HDR_LEN);
        REQUIRE(p->inner.end <= p->ip.end);
    }
    if (p->bth_ofs) {
        REQUIRE(p->udp_ofs == last->l4_ofs);
        REQUIRE(p->bth_ofs == p->udp_ofs + 8);
        REQUIRE(p->ext_ofs == p->bth_ofs + 12);
        REQUIRE(p->payload_ofs >= p->ext_ofs);
        REQUIRE(p->payload_ofs + p->payload_len <= p->icrc_ofs);
        REQUIRE(p->icrc_ofs + 4 <= last->end);
    }
}

enum drop_reason
parse_check(const uint8_t *data, size_t len, struct parsed *p)
{
    uint8_t *exact = malloc(len ? len : 1);
    memcpy(exact, data, len);
    enum drop_reason reason = parse_frame(exact, (uint32_t) len, p);
    free(exact);

    REQUIRE(reason < N_DROP_REASONS);
    check_nesting(p, (uint32_t) len);
    return reason;
}
