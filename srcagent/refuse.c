/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that no group can carry are answered here with a NAK, because a
 * silent drop would be retried for ever (rxe: retry_cnt 7 is infinite):
 *
 *   READ, ATOMIC, SEND with invalidate, unknown    0x61 invalid request
 *   WRITE with another rkey or outside the region  0x62 remote access error
 *
 * A NAK with PSN e also acknowledges everything before e, so it waits until the group has
 * confirmed e - 1.  A restarted agent has no state and does not know how far that is.  It
 * learns it from a response or, if nothing else is outstanding, from the host.  A requester
 * that rewinds starts at its lowest unacknowledged PSN.  So a refused PSN that keeps coming
 * with nothing lower in between is that PSN, unless the lower ones were lost each time between
 * host and agent.  Hence REFUSE_REPEATS.
 */
#include "lib/icrc.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

#define REFUSE_REPEATS 3

static const struct bth *
bth_of(const uint8_t *ip)
{
    return (const void *) (ip + IP6_HDR_LEN + sizeof(struct udp_hdr));
}

enum drop_reason
refuse_check(const struct source *t, const uint8_t *ip)
{
    const struct bth *bth = bth_of(ip);
    const struct roce_opcode_info *op = roce_opcode_info(bth->opcode);

    if (!(op->flags & ROCE_F_MULTICAST)) {
        return DROP_opcode;
    }
    if (op->flags & ROCE_F_RETH) {
        const struct reth *reth = (const void *) (bth + 1);
        uint64_t va = be64_get(reth->va);
        uint32_t len = be32_get(reth->dma_len);

        if (len && be32_get(reth->rkey) != t->config.designated_rkey) {
            return DROP_rkey;
        }
        if (len && (va > t->config.region_len || len > t->config.region_len - va)) {
            return DROP_mr_range;
        }
    }
    return DROP_none;
}

enum drop_reason
refuse_latch(struct srcagent *sa, struct source *t, const uint8_t *ip, size_t len,
             enum drop_reason why, uint64_t now)
{
    struct refusal *r = &t->refusal;
    uint8_t syndrome = why == DROP_opcode ? AETH_NAK_INVALID_REQ : AETH_NAK_REM_ACCESS;
    psn_t psn = bth_psn(bth_of(ip));

    if (!icrc_ok(ip, len - ROCE_ICRC_LEN)) {
        return DROP_icrc;
    }
    if (r->active && psn_cmp(psn, r->psn) > 0) {
        return DROP_refused;
    }
    unsigned n_seen = r->active && psn_eq(psn, r->psn) ? r->n_seen + 1 : 1;
    *r = (struct refusal){.active = true, .psn = psn, .syndrome = syndrome, .n_seen = n_seen};
    if (!t->anchored && n_seen >= REFUSE_REPEATS) {
        t->anchored = true;
        t->una = psn;
    }
    refuse_try(sa, t, now);
    return why;
}

void
refuse_try(struct srcagent *sa, struct source *t, uint64_t now)
{
    const struct refusal *r = &t->refusal;

    if (!r->active || !t->anchored || !psn_eq(t->una, r->psn) || !source_may_answer(sa, t)) {
        return;
    }
    struct packet *p =
        response_build(sa->base.pool, &t->config.proxy, &t->config.source, t->aggregate->sport,
                       t->config.source_qpn, r->psn, r->syndrome, t->msn);
    node_count_drop(&sa->base,
                    p ? l3_output(sa->base.l3, p, L3_ERRORS_NONE, now) : DROP_pool_empty);
}
