/* SPDX-License-Identifier: Apache-2.0
 *
 * From the tree to the host: the root has already merged and addressed the
 * responses; the agent checks them, follows the group's progress and takes out
 * what the host's stack cannot use.
 */
#include "lib/response.h"
#include "srcagent/srcagent.h"

/* Nothing from the Proxy reaches the host but a sound response to its QP. */
enum drop_reason
up_check(struct srcagent *sa, const struct rx *rx)
{
    const uint8_t *data = rx->p->data;
    enum drop_reason why = response_check(data, &rx->h);
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
