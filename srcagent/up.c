/* SPDX-License-Identifier: Apache-2.0
 *
 * From the tree to the host.  Where a switch is the root, it has merged and addressed the
 * responses; the agent checks them and passes them on.  Where no switch can be the root, the
 * agent is (lib/aggregate.h): the nodes below send what they have merged to its response SID.
 * Either way the agent follows the group's progress, and drops what the host's stack cannot
 * use.  CNPs come the same ways and end in rate.c.
 */
#include "lib/roce.h"
#include "srcagent/srcagent.h"

/* The host is about to hear that everything below 'una' is confirmed. */
static void
note_progress(struct srcagent *sa, struct source *t, psn_t una, uint32_t msn, uint64_t now)
{
    if (!t->anchored || psn_cmp(una, t->una) > 0) {
        t->anchored = true;
        t->una = una;
        t->msn = msn;
        refuse_try(sa, t, now);
    }
}

/* The lowest PSN that a response does not confirm. */
static psn_t
response_una(psn_t psn, uint8_t syndrome)
{
    return aeth_class(syndrome) == AETH_CLASS_ACK ? psn_add(psn, 1) : psn;
}

/* Only a sound response or CNP to the host's QP passes. */
enum drop_reason
up_check(struct srcagent *sa, const struct rx *rx)
{
    const uint8_t *data = rx->p->data;
    enum drop_reason why = aggregate_check_plain(data, &rx->h);
    if (why) {
        return why;
    }
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    const struct bth *bth = rx_at(rx, rx->h.bth_ofs);
    struct source *t = addr_map_find(sa->sources.by_source, &ip->src, be24_get(bth->dest_qp));
    if (!t) {
        return DROP_stale_epoch;
    }
    if (t->config.root) {
        return DROP_unknown_branch; /* the root for this source is here. */
    }
    if (rx->h.opcode == ROCE_CNP) {
        return rate_cnp(sa, t, rx->p, rx->now);
    }
    psn_t psn = bth_psn(bth);
    const struct aeth *aeth = rx_at(rx, rx->h.ext_ofs);

    /* rxe completes work for PSNs that it never sent. */
    if (!t->started || psn_cmp(psn, t->h) >= 0) {
        return DROP_psn_not_sent;
    }
    TRACE(&sa->base.tracer, "group %s epoch %u: response for the host, PSN %u", t->config.group,
          t->config.epoch, psn.v);
    note_progress(sa, t, response_una(psn, aeth->syndrome), be24_get(aeth->msn), rx->now);
    return DROP_none;
}

enum drop_reason
up_merge(struct srcagent *sa, const struct rx *rx)
{
    const uint8_t *data = rx->p->data;
    struct reverse_out out = {.send = false};
    enum drop_reason why = aggregate_check_tunnelled(data, &rx->h);
    if (why) {
        return why;
    }
    const struct ip6_hdr_wire *inner = rx_at(rx, rx->h.inner.ofs);
    const struct bth *bth = rx_at(rx, rx->h.bth_ofs);
    struct source *t = addr_map_find(sa->sources.by_key, &inner->src, be24_get(bth->dest_qp));
    if (!t) {
        return DROP_stale_epoch;
    }
    why = aggregate_tunnelled(t->aggregate, data, &rx->h, rx->now, &out);
    TRACE(&sa->base.tracer, "group %s epoch %u: response of a node, %s", t->config.group,
          t->config.epoch, out.send ? "one goes to the host" : "nothing goes to the host");
    up_send(sa, t, &out, rx->now);
    return why;
}

void
up_timer(struct srcagent *sa, struct source *t, uint64_t now)
{
    bool cnp;
    struct reverse_out out = aggregate_timer(t->aggregate, now, &cnp);

    if (cnp && source_may_answer(sa, t)) {
        enum drop_reason why = rate_cnp(sa, t, NULL, now);

        node_count_drop(&sa->base, why == DROP_cnp ? DROP_none : why); /* it was no packet. */
    }
    up_send(sa, t, &out, now);
}

void
up_send(struct srcagent *sa, struct source *t, const struct reverse_out *out, uint64_t now)
{
    if (out->send && source_may_answer(sa, t)
        && aggregate_send(t->aggregate, &sa->base, out, now)) {
        note_progress(sa, t, response_una(out->psn, out->syndrome), out->msn, now);
        if (out->syndrome == AETH_NAK_PSN_SEQ) {
            plane_doubt(&t->plane, &sa->base, t->config.planes, t->config.n_planes, now);
        }
    }
    source_planes_settle(sa, t, now);
    uint64_t deadline = aggregate_deadline(t->aggregate);
    deadlines_set(&sa->deadlines, &t->deadline,
                  t->drain.on && t->drain.until < deadline ? t->drain.until : deadline, t);
}
