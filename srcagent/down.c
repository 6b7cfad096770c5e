/* SPDX-License-Identifier: Apache-2.0
 *
 * From the host into the tree: a request to a Proxy is checked, held while the
 * group is not ready, and sent as it is inside outer IPv6 + SRH (H.Encaps.Red
 * of RFC 8986 with End.MT TLVs): once, or, in mode ingress, to each edge, with that
 * edge's TLVs only.  Copies share the request behind its IPv6 header; the last one
 * is the request itself.
 */
#include "lib/icrc.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

/* What the copies of a request have in common. */
struct request {
    uint32_t flow_label;
    uint8_t tc;
    uint16_t len;       /* of the inner packet. */
    uint16_t after_qpn; /* bytes from behind DestQP to the ICRC. */
    psn_t psn;
};

#define BTH_OFS (IP6_HDR_LEN + sizeof(struct udp_hdr)) /* in the inner packet. */

/* As the root: has somebody whom a copy would reach not confirmed the PSN? */
static bool
is_needed(const struct tree *t, const struct encap *encap, psn_t psn)
{
    struct reverse *r = t->aggregate->reverse;

    return encap->edge ? !reverse_filters(r, encap->edge, psn) : !reverse_filters_all(r, psn);
}

/* As the root: is one of those that a copy would reach to be asked? */
static bool
is_asked(const struct tree *t, const struct encap *encap)
{
    const struct reverse *r = t->aggregate->reverse;

    return encap->edge ? reverse_asks(r, encap->edge) : reverse_asks_shared(r);
}

/* As the root: they got a copy, if it was 'sent'. */
static void
note_copied(const struct tree *t, const struct encap *encap, psn_t psn, bool sent)
{
    if (encap->edge) {
        reverse_copied(t->aggregate->reverse, encap->edge, psn, sent);
    } else {
        reverse_copied_shared(t->aggregate->reverse, psn, sent);
    }
}

/* As the root: nobody needs this PSN any more. */
static void
note_filtered(const struct tree *t, psn_t psn)
{
    for (size_t i = 0; i < t->config.n_branches; i++) {
        reverse_filters(t->aggregate->reverse, t->config.branches[i].id, psn);
    }
}

/* Sends 'p', the inner packet or a copy of it, whose ICRC is at 'icrc'.  Consumes it. */
static enum drop_reason
encapsulate(struct srcagent *sa, const struct tree *t, const struct encap *encap,
            const struct request *r, struct packet *p, uint8_t *icrc, uint64_t now)
{
    const struct encap_template *template = &encap->template;

    if (is_asked(t, encap)) {
        icrc_set_ack_req((struct bth *) (p->data + BTH_OFS), r->after_qpn, icrc);
    }
    uint8_t *outer = packet_push(p, template->len);
    if (!outer) {
        packet_put(p);
        return DROP_too_long;
    }
    encap_template_stamp(template, outer, r->len, r->tc, r->flow_label);
    TRACE(&sa->base.tracer, "group %s epoch %u: PSN %u goes down to %s, SRH of %u bytes",
          t->config.group, t->config.epoch, r->psn.v,
          TRACE_ADDR(&((const struct ip6_hdr_wire *) outer)->dst), template->len - IP6_HDR_LEN);
    return t->config.mode == MODE_MCAST
               ? l3_multicast(sa->base.l3, p, t->uplink, L3_ERRORS_NONE, now)
               : l3_output(sa->base.l3, p, L3_ERRORS_NONE, now);
}

/* Sends a copy of 'original', or if it is the 'last' one the original itself. */
static enum drop_reason
send_copy(struct srcagent *sa, const struct tree *t, const struct encap *encap,
          const struct request *r, struct packet *original, bool last, uint64_t now)
{
    bool may_ask = reverse_asks_any(t->aggregate->reverse);
    uint32_t head_len = (uint32_t) (may_ask ? BTH_OFS + sizeof(struct bth) : IP6_HDR_LEN);
    struct packet *p =
        last ? original : packet_replicate(original, 0, head_len, may_ask ? ROCE_ICRC_LEN : 0);
    enum drop_reason why = DROP_pool_empty;

    if (p) {
        why =
            encapsulate(sa, t, encap, r, p, last ? p->data + p->len - ROCE_ICRC_LEN : p->tail, now);
    }
    note_copied(t, encap, r->psn, !why);
    return why;
}

/* To all that need it.  Consumes 'p'. */
static enum drop_reason
send_copies(struct srcagent *sa, const struct tree *t, const struct request *r, struct packet *p,
            uint64_t now)
{
    const struct encap *held = NULL; /* gets its copy when the next one is found. */

    for (size_t i = 0; i < t->encaps.n; i++) {
        const struct encap *encap = &t->encaps.v[i];

        if (encap->edge && reverse_is_pruned(t->aggregate->reverse, encap->edge)) {
            node_count_drop(&sa->base, DROP_member_lost);
            continue;
        }
        if (!is_needed(t, encap, r->psn)) {
            continue;
        }
        if (held) {
            node_count_drop(&sa->base, send_copy(sa, t, held, r, p, false, now));
        }
        held = encap;
    }
    if (!held) {
        packet_put(p);
        return DROP_none;
    }
    return send_copy(sa, t, held, r, p, true, now);
}

/* Sends the inner packet 'p' (data at its IPv6 header) down.  Consumes it. */
static enum drop_reason
send_down(struct srcagent *sa, struct tree *t, struct packet *p, uint64_t now)
{
    struct ip6_hdr_wire *ip = (void *) p->data;
    const struct bth *bth = (const void *) (p->data + BTH_OFS);
    const struct request r = {
        .flow_label = roce_flow_label(ip, (const void *) (ip + 1), bth),
        .tc = ip6_tc(ip),
        .len = (uint16_t) p->len,
        .after_qpn =
            (uint16_t) (p->len - ROCE_ICRC_LEN - (BTH_OFS + offsetof(struct bth, ack_req))),
        .psn = bth_psn(bth),
    };
    enum drop_reason why = DROP_none;

    ip->hlim--; /* RFC 2473: the tunnel is one hop. */
    struct reverse_out out =
        reverse_down(t->aggregate->reverse, r.psn, bth->ack_req & BTH_ACK_REQ, now);
    if (!t->started || psn_cmp(r.psn, t->h) >= 0) {
        t->h = psn_add(r.psn, 1);
    }
    t->started = true;
    if (reverse_filters_all(t->aggregate->reverse, r.psn)) {
        note_filtered(t, r.psn);
        packet_put(p);
    } else {
        why = send_copies(sa, t, &r, p, now);
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

/* Is this, the first PSN of the host in this life of the agent, the epoch's first?  Not if one went
 * down in an earlier life: the host may have gone through all of them since. */
static bool
is_first(const struct tree *t, psn_t psn)
{
    return !t->config.started && psn_eq(psn, t->config.start_psn);
}

/* A PSN out of nowhere would move the bound for acknowledgements: it is believed
 * only if the packet is sound. */
static bool
psn_is_sound(const struct rx *rx, const struct tree *t, psn_t psn)
{
    bool suspicious =
        t->started ? psn_cmp(psn, t->h) >= REVERSE_MAX_UNVERIFIED_JUMP : !is_first(t, psn);
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
        t->anchored = is_first(t, psn);
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
