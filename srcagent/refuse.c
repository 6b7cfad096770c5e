/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that no group can carry are answered here with a NAK, because a
 * silent drop would be retried for ever (rxe: retry_cnt 7 is infinite):
 *
 *   READ, ATOMIC, SEND with invalidate, unknown    0x61 invalid request
 *   WRITE with another rkey or outside the region  0x62 remote access error
 *
 * A NAK with PSN e also acknowledges everything before e, so it has to wait
 * until the group has confirmed e - 1.  An agent without state (restarted) does not know that; it
 * learns it from a response, or from the host itself: a requester that rewinds starts at its lowest
 * unacknowledged PSN, so the refused PSN twice with nothing lower in between is that PSN.
 */
#include "lib/icrc.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

uint8_t
refuse_check(const struct tree *t, const struct rx *rx)
{
    const struct roce_opcode_info *op = roce_opcode_info(rx->h.opcode);

    if (!(op->flags & ROCE_F_MULTICAST)) {
        return AETH_NAK_INVALID_REQ;
    }
    if (op->flags & ROCE_F_RETH) {
        const struct reth *reth = (const void *) (rx->p->data + rx->h.ext_ofs);
        uint64_t va = be64_get(reth->va);
        uint32_t len = be32_get(reth->dma_len);

        if (len
            && (be32_get(reth->rkey) != t->config.designated_rkey || va > t->config.region_len
                || len > t->config.region_len - va)) {
            return AETH_NAK_REM_ACCESS;
        }
    }
    return 0;
}

enum drop_reason
refuse_latch(struct srcagent *sa, struct tree *t, const struct rx *rx, psn_t psn, uint8_t syndrome)
{
    struct refusal *r = &t->refusal;

    if (!icrc_ok(rx->p->data + rx->h.ip.ofs, (size_t) (rx->h.icrc_ofs - rx->h.ip.ofs))) {
        return DROP_icrc;
    }
    if (r->active && psn_cmp(psn, r->psn) > 0) {
        return DROP_refused;
    }
    if (r->active && psn_eq(psn, r->psn)) {
        if (r->repeated && !t->anchored) {
            t->anchored = true;
            t->una = psn;
        }
        r->repeated = true;
    } else {
        *r = (struct refusal){.active = true, .psn = psn, .repeated = true};
    }
    r->syndrome = syndrome;
    refuse_try(sa, t, rx->now);
    return syndrome == AETH_NAK_REM_ACCESS ? DROP_rkey : DROP_opcode;
}

void
refuse_try(struct srcagent *sa, struct tree *t, uint64_t now)
{
    const struct refusal *r = &t->refusal;

    if (!r->active || !t->anchored || !psn_eq(t->una, r->psn)) {
        return;
    }
    struct packet *p = response_build(sa->pool, &t->config.proxy, &t->config.source, t->sport,
                                      t->config.source_qpn, r->psn, r->syndrome, t->msn);
    srcagent_count_drop(sa, p ? l3_output(sa->l3, p, now) : DROP_pool_empty);
}
