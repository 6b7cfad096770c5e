/* SPDX-License-Identifier: Apache-2.0
 *
 * From the tree to the host.  Where a switch is the root, it has merged and addressed the
 * responses; the agent checks them and passes them on.  Where no switch can be the root, the
 * agent is (lib/aggregate.h): the nodes below send what they have merged to its response SID.
 * Either way the agent follows the group's progress, and drops what the host's stack cannot
 * use.  CNPs come the same ways and end in rate.c.
 */
#include "lib/defect.h"
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

/* What is sound, and comes from the root of 't', another node. */
static enum drop_reason
check_progress(struct srcagent *sa, struct source *t, const struct rx *rx)
{
    const struct bth *bth = rx_at(rx, rx->h.bth_ofs);

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

/* Only a sound response or CNP to the host's QP passes. */
enum drop_reason
up_check(struct srcagent *sa, const struct rx *rx)
{
    enum drop_reason why = aggregate_check_plain(rx->p->data, &rx->h);
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
    return t->config.auth.responses && !DEFECT(RESPONSE_ROOT) ? DROP_auth_missing
                                                              : check_progress(sa, t, rx);
}

/* A response to the host's QP that the root has authenticated.  Such a root is where packets come to
 * first. */
static enum drop_reason
from_root(struct srcagent *sa, struct source *t, struct rx *rx)
{
    const struct tree_config *c = &t->config;
    const struct ip6_hdr_wire *inner = rx_at(rx, rx->h.inner.ofs);

    if (!c->auth.n_keys || !c->n_outer_da) {
        return DROP_unknown_branch;
    }
    struct in6_addr root = node_address(node_id_of(&c->outer_da[0]));
    if (memcmp(&rx_ip(rx)->src, &root, sizeof root)) {
        return DROP_unknown_branch;
    }
    enum drop_reason why = aggregate_verify(t->aggregate, &root, rx->p->data, &rx->h);
    if (why) {
        return why;
    }
    if (memcmp(&inner->dst, &c->source, sizeof inner->dst)) {
        return DROP_response_outer;
    }
    TRACE(&sa->base.tracer, "group %s epoch %u: response of the root %s, %s", c->group, c->epoch,
          TRACE_ADDR(&root), c->auth.responses ? "verified" : "not to be verified yet");
    struct eth_hdr eth = *(const struct eth_hdr *) rx->p->data;
    packet_pull(rx->p, rx->h.inner.ofs);
    *(struct eth_hdr *) packet_push(rx->p, sizeof eth) = eth;
    why = parse_frame(rx->p->data, rx->p->len, &rx->h);
    why = why ? why : check_progress(sa, t, rx);
    return why ? why : srcagent_pass(sa, rx);
}

enum drop_reason
up_merge(struct srcagent *sa, struct rx *rx)
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
    struct source *s = addr_map_find(sa->sources.by_source, &inner->src, be24_get(bth->dest_qp));
    if (s && !s->config.root && (!t || !t->config.root)) {
        return from_root(sa, s, rx);
    }
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
