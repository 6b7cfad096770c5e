/* SPDX-License-Identifier: Apache-2.0
 *
 * From the host into the tree: a request to a Proxy is checked, held while the
 * group is not ready, and sent as it is inside outer IPv6 + SRH (H.Encaps.Red
 * of RFC 8986 with End.MT TLVs).
 */
#include "lib/icrc.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

/* As the root: nobody needs this PSN any more. */
static void
note_filtered(struct tree *t, psn_t psn)
{
    for (size_t i = 0; i < t->config.n_branches; i++) {
        reverse_filters(t->aggregate->reverse, t->config.branches[i].id, psn);
    }
}

/* As the root, when the PSN of 'p' has gone down: the packet goes to all that have to confirm it, and
 * asks them if one is to be asked.  'bth' is in 'p'. */
static void
note_copied(struct tree *t, struct bth *bth, struct packet *p)
{
    struct reverse *r = t->aggregate->reverse;
    uint8_t *icrc = p->data + p->len - ROCE_ICRC_LEN;
    uint8_t *after_qpn = (uint8_t *) bth + offsetof(struct bth, ack_req);
    bool ask = false;

    for (size_t i = 0; i < t->config.n_branches; i++) {
        uint32_t id = t->config.branches[i].id;
        ask |= reverse_asks(r, id);
        reverse_copied(r, id, bth_psn(bth), true);
    }
    if (ask) {
        icrc_set_ack_req(bth, (size_t) (icrc - after_qpn), icrc);
    }
}

/* Sends the inner packet 'p' (data at its IPv6 header) down.  Consumes it. */
static enum drop_reason
send_down(struct srcagent *sa, struct tree *t, struct packet *p, uint64_t now)
{
    struct ip6_hdr_wire *ip = (void *) p->data;
    struct udp_hdr *udp = (void *) (ip + 1);
    struct bth *bth = (void *) (udp + 1);
    struct reverse *r = t->aggregate->reverse;
    uint32_t flow_label = roce_flow_label(ip, udp, bth);
    uint8_t tc = ip6_tc(ip);
    uint16_t inner_len = (uint16_t) p->len;
    psn_t psn = bth_psn(bth);

    ip->hlim--; /* RFC 2473: the tunnel is one hop. */
    uint8_t *outer = packet_push(p, t->encap.len);
    if (!outer) {
        packet_put(p);
        return DROP_too_long;
    }
    encap_template_stamp(&t->encap, outer, inner_len, tc, flow_label);
    TRACE(&sa->base.tracer, "group %s epoch %u: PSN %u goes down to %s, SRH of %u bytes",
          t->config.group, t->config.epoch, psn.v, TRACE_ADDR(&t->config.outer_da[0]),
          t->encap.len - IP6_HDR_LEN);
    struct reverse_out out = reverse_down(r, psn, bth->ack_req & BTH_ACK_REQ, now);
    if (!t->started || psn_cmp(psn, t->h) >= 0) {
        t->h = psn_add(psn, 1);
    }
    t->started = true;
    enum drop_reason why = DROP_none;
    if (reverse_filters_all(r, psn)) {
        note_filtered(t, psn);
        packet_put(p);
    } else {
        note_copied(t, bth, p);
        why = l3_output(sa->base.l3, p, L3_ERRORS_NONE, now);
    }
    up_send(sa, t, &out, now);
    return why;
}

/* Lets a request pass that the group can carry, and latches another.  'p' is
 * the inner packet and is consumed. */
static enum drop_reason
admit(struct srcagent *sa, struct tree *t, struct packet *p, uint64_t now)
{
    const struct bth *bth = (const void *) (p->data + IP6_HDR_LEN + sizeof(struct udp_hdr));
    struct refusal *r = &t->refusal;
    psn_t psn = bth_psn(bth);
    bool confirmed = t->anchored && psn_cmp(psn, t->una) < 0; /* will be acknowledged again. */
    enum drop_reason why = confirmed ? DROP_none : refuse_check(t, p->data);

    if (why) {
        why = refuse_latch(sa, t, p->data, p->len, why, now);
        packet_put(p);
        return why;
    }
    if (r->active && psn_cmp(psn, r->psn) > 0) {
        packet_put(p);
        return DROP_refused;
    }
    if (r->active) {
        r->active = !psn_eq(psn, r->psn); /* what was wrong with it is no more. */
        r->n_seen = 0;
    }
    return send_down(sa, t, p, now);
}

static enum drop_reason
hold(struct srcagent *sa, struct tree *t, struct packet *p)
{
    TRACE(&sa->base.tracer, "group %s epoch %u is not open: %u packets wait", t->config.group,
          t->config.epoch, t->n_waiting);
    if (t->n_waiting >= AGENT_QUEUE_MAX || sa->n_waiting >= AGENT_QUEUE_TOTAL) {
        packet_put(p);
        return DROP_group_closed;
    }
    p->next = NULL;
    *(t->head ? &t->tail->next : &t->head) = p;
    t->tail = p;
    t->n_waiting++;
    sa->n_waiting++;
    return DROP_none;
}

void
down_release(struct srcagent *sa, struct tree *t, uint64_t now)
{
    while (t->config.open && t->head) {
        struct packet *p = t->head;
        t->head = p->next;
        t->n_waiting--;
        sa->n_waiting--;
        node_count_drop(&sa->base, admit(sa, t, p, now));
    }
}

/* A request, and nothing else. */
static enum drop_reason
check(const struct rx *rx)
{
    const struct parsed *h = &rx->h;
    const struct ip6_hdr_wire *ip = rx_ip(rx);

    if (!h->bth_ofs || h->ip.n_ext || h->icrc_ofs + ROCE_ICRC_LEN != h->ip.end) {
        return DROP_not_for_us;
    }
    if (ip->hlim <= 1) {
        return DROP_hop_limit;
    }
    if (ROCE_TRANSPORT(h->opcode) != ROCE_TRANSPORT_RC
        || roce_opcode_info(h->opcode)->flags & ROCE_F_RESPONSE) {
        return DROP_opcode;
    }
    return DROP_none;
}

/* A PSN out of nowhere would move the bound for acknowledgements: it is believed
 * only if the packet is sound. */
static bool
psn_is_sound(const struct rx *rx, const struct tree *t, psn_t psn)
{
    bool suspicious = t->started ? psn_cmp(psn, t->h) >= REVERSE_MAX_UNVERIFIED_JUMP
                                 : !psn_eq(psn, t->config.start_psn);
    if (t->config.n_branches) { /* this is the root. */
        suspicious |= reverse_jump_suspicious(t->aggregate->reverse, psn);
    }
    return !suspicious
           || icrc_ok(rx->p->data + rx->h.ip.ofs, (size_t) (rx->h.icrc_ofs - rx->h.ip.ofs));
}

/* The first PSN of the host decides whether the group's progress is known: a
 * start at the start, or one without state after a restart. */
static void
note_psn(struct tree *t, psn_t psn)
{
    if (!t->seen) {
        t->seen = true;
        t->anchored = psn_eq(psn, t->config.start_psn);
        t->una = t->config.start_psn;
    }
}

enum drop_reason
down_input(struct srcagent *sa, struct rx *rx)
{
    struct packet *p = rx->p;
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    const struct bth *bth = rx_at(rx, rx->h.bth_ofs);
    enum drop_reason why = check(rx);
    if (why) {
        return why;
    }
    struct tree *t = addr_map_find(sa->trees.by_key, &ip->dst, be24_get(bth->dest_qp));
    if (!t) {
        return DROP_stale_epoch;
    }
    if (memcmp(&ip->src, &t->config.source, sizeof ip->src)) {
        return DROP_inner_source;
    }
    psn_t psn = bth_psn(bth);
    if (!psn_is_sound(rx, t, psn)) {
        return DROP_psn_jump;
    }
    note_psn(t, psn);

    rx->p = NULL;
    p->len = rx->h.ip.end; /* Ethernet padding is nobody's. */
    packet_pull(p, rx->h.ip.ofs);
    return t->config.open ? admit(sa, t, p, rx->now) : hold(sa, t, p);
}
