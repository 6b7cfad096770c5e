/* SPDX-License-Identifier: Apache-2.0
 *
 * From the host into the tree: a request to a Proxy is checked, held while the
 * group is not ready, and sent as it is inside outer IPv6 + SRH (H.Encaps.Red
 * of RFC 8986 with End.MT TLVs).
 */
#include "lib/roce.h"
#include "srcagent/srcagent.h"

/* Sends the inner packet 'p' (data at its IPv6 header) down.  Consumes it. */
static enum drop_reason
send_down(struct srcagent *sa, struct tree *t, struct packet *p, uint64_t now)
{
    struct ip6_hdr_wire *ip = (void *) p->data;
    const struct udp_hdr *udp = (const void *) (ip + 1);
    const struct bth *bth = (const void *) (udp + 1);
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
    if (!t->started || psn_cmp(psn, t->h) >= 0) {
        t->h = psn_add(psn, 1);
    }
    t->started = true;
    return l3_output(sa->l3, p, now);
}

void
down_release(struct srcagent *sa, struct tree *t, uint64_t now)
{
    while (t->config.open && t->head) {
        struct packet *p = t->head;
        t->head = p->next;
        t->n_waiting--;
        srcagent_count_drop(sa, send_down(sa, t, p, now));
    }
}

/* A request to the current epoch's QP, and nothing else. */
static enum drop_reason
check(const struct rx *rx, const struct tree *t)
{
    const struct parsed *h = &rx->h;

    if (!h->bth_ofs || h->ip.n_ext || h->icrc_ofs + ROCE_ICRC_LEN != h->ip.end) {
        return DROP_not_for_us;
    }
    const struct bth *bth = (const void *) (rx->p->data + h->bth_ofs);
    if (be24_get(bth->dest_qp) != t->config.designated_qpn) {
        return DROP_stale_epoch;
    }
    const struct ip6_hdr_wire *ip = (const void *) (rx->p->data + h->ip.ofs);
    if (!IN6_ARE_ADDR_EQUAL(&ip->src, &t->config.source)) {
        return DROP_inner_source;
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

static enum drop_reason
hold(struct tree *t, struct packet *p)
{
    if (t->n_waiting >= AGENT_QUEUE_MAX) {
        packet_put(p);
        return DROP_group_closed;
    }
    p->next = NULL;
    *(t->head ? &t->tail->next : &t->head) = p;
    t->tail = p;
    t->n_waiting++;
    return DROP_none;
}

enum drop_reason
down_input(struct srcagent *sa, struct rx *rx, struct tree *t)
{
    enum drop_reason why = check(rx, t);
    if (why) {
        return why;
    }
    psn_t psn = bth_psn((const void *) (rx->p->data + rx->h.bth_ofs));
    note_psn(t, psn);
    uint8_t syndrome = refuse_check(t, rx);
    if (syndrome) {
        return refuse_latch(sa, t, rx, psn, syndrome);
    }
    if (t->refusal.active) {
        if (psn_cmp(psn, t->refusal.psn) > 0) {
            return DROP_refused;
        }
        t->refusal.repeated = false;
    }

    struct packet *p = rx->p;
    rx->p = NULL;
    p->len = rx->h.ip.end; /* Ethernet padding is nobody's. */
    packet_pull(p, rx->h.ip.ofs);
    return t->config.open ? send_down(sa, t, p, rx->now) : hold(t, p);
}
