/* SPDX-License-Identifier: Apache-2.0
 *
 * From the host into the tree.  A request to a Proxy is checked, waits while the group is not
 * ready or its flow is slowed down (rate.c), and is sent as it is inside outer IPv6 + SRH
 * (H.Encaps.Red of RFC 8986 with End.MT TLVs).  It is sent once, or in mode ingress to each edge,
 * with that edge's TLVs only.  Copies share the request behind its IPv6 header; the last one is the
 * request itself.
 *
 * A PSN counts when its packet leaves.  For one that waits nobody can have an answer yet.
 */
#include "lib/defect.h"
#include "lib/fanout.h"
#include "lib/icrc.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"

/* What the copies of a request have in common. */
struct request {
    struct source *tree;
    uint32_t flow_label;
    uint8_t tc;
    uint16_t len; /* of the inner packet. */
};

#define BTH_OFS (IP6_HDR_LEN + sizeof(struct udp_hdr)) /* in the inner packet. */

/* Where packets with this encapsulation go first. */
static const struct in6_addr *
encap_dst(const struct encap *encap)
{
    return &((const struct ip6_hdr_wire *) encap->template.bytes)->dst;
}

/* Puts the encapsulation in front of 'p', a copy of the request, and sends it. */
static enum drop_reason
send_copy(const struct fanout *f, void *encap_, struct packet *p, uint8_t *icrc)
{
    const struct request *r = f->aux;
    const struct tree_config *c = &r->tree->config;
    struct data_key *data = r->tree->encaps.data;
    struct encap *encap = encap_;
    const struct encap_template *template = &encap->template;
    uint8_t *outer = packet_push(p, template->len);

    (void) icrc;
    if (!outer) {
        packet_put(p);
        return DROP_too_long;
    }
    encap_template_stamp(template, outer, r->len, r->tc, r->flow_label);
    if (data && !data_seal(data, template, p, c->auth.instance, ++r->tree->data_seq)) {
        packet_put(p);
        return DROP_auth_bad;
    }
    TRACE(&f->node->tracer, "group %s epoch %u: PSN %u goes down to %s, SRH of %u bytes", c->group,
          c->epoch, f->psn.v, TRACE_ADDR(encap_dst(encap)),
          template->len - template->trace_len - IP6_HDR_LEN);
    if (encap->port) {
        return l3_output_port(f->node->l3, p, encap->port, L3_ERRORS_NONE, f->now);
    }
    return tree_mode(c->mode)->addressed_to_group
               ? l3_multicast(f->node->l3, p, r->tree->uplink, L3_ERRORS_NONE, f->now)
               : l3_output_next(f->node->l3, p, &encap->next, L3_ERRORS_NONE, f->now);
}

/* Sends a copy with each encapsulation that needs one.  Consumes 'p'. */
static enum drop_reason
send_copies(struct srcagent *sa, const struct request *r, psn_t psn, struct packet *p, uint64_t now)
{
    struct fanout f = {
        .node = &sa->base,
        .reverse = r->tree->aggregate->reverse,
        .what = "encapsulation",
        .send = send_copy,
        .aux = r,
        .psn = psn,
        .now = now,
        .original = p,
        .takes_original = true,
        .head_len = IP6_HDR_LEN,
        .bth_ofs = BTH_OFS,
        .after_qpn =
            (uint16_t) (p->len - ROCE_ICRC_LEN - (BTH_OFS + offsetof(struct bth, ack_req))),
    };

    bool has_planes = r->tree->config.n_planes;
    for (size_t i = 0; i < r->tree->encaps.n; i++) {
        struct encap *encap = &r->tree->encaps.v[i];

        if (has_planes && i != r->tree->plane.used) {
            continue;
        }
        fanout_add(&f, encap->branch, encap, encap_dst(encap));
    }
    return fanout_end(&f);
}

/* The inner packet 'p' (data at its IPv6 header) goes down.  Returns what to send to the host. */
static struct reverse_out
count_down(struct source *t, const struct packet *p, uint64_t now)
{
    const struct bth *bth = (const void *) (p->data + BTH_OFS);
    psn_t psn = bth_psn(bth);

    if (!t->started || psn_cmp(psn, t->h) >= 0) {
        t->h = psn_add(psn, 1);
    }
    t->started = true;
    t->asks = bth->ack_req & BTH_ACK_REQ;
    messages_note(t->messages, psn, roce_opcode_info(bth->opcode)->flags);
    t->down.n_packets++;
    t->down.n_bytes += p->len;
    return reverse_down(t->aggregate->reverse, psn, bth->ack_req & BTH_ACK_REQ, now);
}

/* Sends it, and consumes it. */
static enum drop_reason
send_down(struct srcagent *sa, struct source *t, struct packet *p, uint64_t now)
{
    struct ip6_hdr_wire *ip = (void *) p->data;
    const struct bth *bth = (const void *) (p->data + BTH_OFS);
    const struct request r = {
        .tree = t,
        .flow_label = roce_flow_label(ip, (const void *) (ip + 1), bth),
        .tc = ip6_tc(ip),
        .len = (uint16_t) p->len,
    };

    source_look_at_port(sa, t, now);
    ip->hlim--; /* RFC 2473: the tunnel is one hop. */
    struct reverse_out out = count_down(t, p, now);
    enum drop_reason why = send_copies(sa, &r, bth_psn(bth), p, now);
    source_planes_sent(sa, t);
    up_send(sa, t, &out, now);
    return why;
}

/* Is this first PSN from the host in this life of the agent also the epoch's first?  False if a
 * packet went down in an earlier life: the host may have gone through all PSNs since. */
static bool
is_first(const struct source *t, psn_t psn)
{
    return !t->config.started && psn_eq(psn, t->config.start_psn);
}

/* May this PSN be believed?  A PSN out of nowhere would move the bound for acknowledgements, so its
 * packet's ICRC must be good. */
static bool
psn_is_sound(const struct source *t, const struct packet *p, psn_t psn)
{
    bool suspicious =
        t->started ? psn_cmp(psn, t->h) >= REVERSE_MAX_UNVERIFIED_JUMP : !is_first(t, psn);
    if (t->config.n_branches) { /* this is the root. */
        suspicious |= reverse_jump_suspicious(t->aggregate->reverse, psn);
    }
    return !suspicious || icrc_ok(p->data, p->len - ROCE_ICRC_LEN);
}

/* The first PSN from the host decides whether the group's progress is known.  It is known at the
 * epoch's start, and unknown after a restart without state. */
static void
note_psn(struct source *t, psn_t psn)
{
    if (!t->seen) {
        t->seen = true;
        t->anchored = is_first(t, psn);
        t->una = t->config.start_psn;
    }
}

/* Sends the request down if the group can carry it; otherwise latches it. */
enum drop_reason
down_admit(struct srcagent *sa, struct source *t, struct packet *p, uint64_t now)
{
    const struct bth *bth = (const void *) (p->data + BTH_OFS);
    struct refusal *r = &t->refusal;
    psn_t psn = bth_psn(bth);

    if (!psn_is_sound(t, p, psn)) {
        packet_put(p);
        return DROP_psn_jump;
    }
    note_psn(t, psn);
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
        r->active = !psn_eq(psn, r->psn); /* the request at that PSN is a good one now. */
        r->n_seen = 0;
    }
    return send_down(sa, t, p, now);
}

/* The packet must be a request, and nothing else. */
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
    return bth_pkey_ok(rx_at(rx, h->bth_ofs)) ? DROP_none : DROP_pkey;
}

/* DEFECT(WAITING_COUNTS): the request begins to wait. */
static void
count_waiting(struct srcagent *sa, struct source *t, const struct packet *p, uint64_t now)
{
    psn_t psn = bth_psn((const void *) (p->data + BTH_OFS));
    struct reverse_out out = count_down(t, p, now);

    for (size_t i = 0; i < t->encaps.n; i++) {
        if (t->encaps.v[i].branch == FANOUT_SHARED) {
            reverse_copied_shared(t->aggregate->reverse, psn, true);
        } else {
            reverse_copied(t->aggregate->reverse, t->encaps.v[i].branch, psn, true);
        }
    }
    up_send(sa, t, &out, now);
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
    struct source *t = addr_map_find(sa->sources.by_key, &ip->dst, be24_get(bth->dest_qp));
    if (!t) {
        return DROP_stale_epoch;
    }
    if (memcmp(&ip->src, &t->config.source, sizeof ip->src)) {
        return DROP_inner_source;
    }

    rx->p = NULL;
    p->len = rx->h.ip.end; /* without Ethernet padding. */
    packet_pull(p, rx->h.ip.ofs);
    if (flow_is_free(&t->flow)) {
        return down_admit(sa, t, p, rx->now);
    }
    if (DEFECT(WAITING_COUNTS) && pacer_must_wait(&t->flow.pacing, rx->now)) {
        count_waiting(sa, t, p, rx->now);
    }
    enum drop_reason result = rate_send(sa, &t->flow, p, rx->now);
    source_planes_full(sa, t, rx->now);
    return result;
}
