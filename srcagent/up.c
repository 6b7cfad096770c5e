/* SPDX-License-Identifier: Apache-2.0
 *
 * From the tree to the host: the root has already merged and addressed the
 * responses; the agent checks them, follows the group's progress and takes out
 * what the host's stack cannot use.
 */
#include "lib/icrc.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

/* Nothing from the Proxy reaches the host but a sound response to its QP. */
static enum drop_reason
check(const struct rx *rx)
{
    const struct parsed *h = &rx->h;

    if (!h->bth_ofs || h->inner.ofs || h->ip.n_ext || h->icrc_ofs + ROCE_ICRC_LEN != h->ip.end) {
        return DROP_not_for_us;
    }
    if (!icrc_ok(rx->p->data + h->ip.ofs, (size_t) (h->icrc_ofs - h->ip.ofs))) {
        return DROP_icrc;
    }
    if (h->opcode == ROCE_CNP) {
        return DROP_cnp;
    }
    return h->opcode == RC_ACK ? DROP_none : DROP_resp_opcode;
}

enum drop_reason
up_check(struct srcagent *sa, const struct rx *rx)
{
    const uint8_t *data = rx->p->data;
    enum drop_reason why = check(rx);
    if (why) {
        return why;
    }
    const struct ip6_hdr_wire *ip = (const void *) (data + rx->h.ip.ofs);
    const struct bth *bth = (const void *) (data + rx->h.bth_ofs);
    struct tree *t = addr_map_find(sa->trees.by_source, &ip->src, be24_get(bth->dest_qp));
    if (!t) {
        return DROP_stale_epoch;
    }
    psn_t psn = bth_psn(bth);
    const struct aeth *aeth = (const void *) (data + rx->h.ext_ofs);

    /* rxe completes work for PSNs that it never sent. */
    if (!t->started || psn_cmp(psn, t->h) >= 0) {
        return DROP_psn_not_sent;
    }
    psn_t una = aeth_class(aeth->syndrome) == AETH_CLASS_ACK ? psn_add(psn, 1) : psn;
    if (!t->anchored || psn_cmp(una, t->una) > 0) {
        t->anchored = true;
        t->una = una;
        t->msn = be24_get(aeth->msn);
        refuse_try(sa, t, rx->now);
    }
    return DROP_none;
}
