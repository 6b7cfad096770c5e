/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of a group's packet for the next nodes of its tree (RFC 9524, section
 * 2.2): a new outer destination from the replication state and the hop limit,
 * nothing else; SRH and inner packet stay as they are, but for AckReq in the copy for
 * a node that is to be asked how far it is.
 *
 * Everything behind the outer IPv6 header is shared; behind the BTH while somebody may
 * be asked.  The last node gets the original itself.
 *
 * A copy for a node that aggregates is for that branch.  One for a node that does not is for all branches
 * behind it, and which these are is not known here: for all that are reached "indirectly".
 */
#include "lib/icrc.h"
#include "swedge/swedge.h"

/* Has not everybody whom a copy for 'b' (NULL: for the indirect ones) would reach confirmed the PSN? */
static bool
is_needed(const struct original *o, const struct branch *b)
{
    struct reverse *r = o->tree->aggregate->reverse;

    return b ? !reverse_filters(r, b->config->id, o->psn) : !reverse_filters_all(r, o->psn);
}

/* Is 'b', or NULL: one of the indirect ones, to be asked? */
static bool
is_asked(const struct tree *t, const struct branch *b)
{
    const struct reverse *r = t->aggregate->reverse;

    return b ? reverse_asks(r, b->config->id) : reverse_asks_shared(r);
}

/* Sends 'p', which is the original from its outer IPv6 header on or a copy of it whose ICRC is at
 * 'icrc'.  Consumes it. */
static enum drop_reason
send_copy(struct swedge *sw, struct packet *p, const struct rx *rx, const struct original *o,
          const struct in6_addr *dst, bool ask, uint8_t *icrc)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) p->data;

    ip->dst = *dst;
    ip->hlim--;
    if (ask) {
        struct bth *bth = (struct bth *) (p->data + rx->h.bth_ofs - rx->h.ip.ofs);
        icrc_set_ack_req(bth, o->after_qpn, icrc);
    }
    TRACE(&sw->base.tracer, "replicate: copy to %s, hop limit %u%s", TRACE_ADDR(dst), ip->hlim,
          ask ? ", asked with AckReq" : "");
    return l3_output(sw->base.l3, p, L3_ERRORS_PTB, rx->now);
}

/* A copy of 'original' for outer destination 'dst', or if it is the last one the original itself. */
static enum drop_reason
copy_to_node(struct swedge *sw, struct packet *original, const struct rx *rx,
             const struct original *o, const struct in6_addr *dst, bool last)
{
    struct reverse *r = o->tree->aggregate->reverse;
    const struct branch *b = tree_node(o->tree, dst);
    bool may_ask = reverse_asks_any(r);
    uint32_t head_len =
        may_ask ? (uint32_t) (rx->h.bth_ofs + sizeof(struct bth) - rx->h.ip.ofs) : IP6_HDR_LEN;
    struct packet *p =
        last ? original : packet_replicate(original, 0, head_len, may_ask ? ROCE_ICRC_LEN : 0);
    enum drop_reason why = DROP_pool_empty;

    if (p) {
        why = send_copy(sw, p, rx, o, dst, is_asked(o->tree, b),
                        last ? p->data + p->len - ROCE_ICRC_LEN : p->tail);
    }
    if (b) {
        reverse_copied(r, b->config->id, o->psn, !why);
    }
    return why;
}

/* Those that are reached indirectly got what there is for them; 'sent': all of it. */
static void
note_indirect(const struct original *o, bool sent)
{
    struct reverse *r = o->tree->aggregate->reverse;

    if (o->tree->n_indirect && is_needed(o, NULL)) {
        reverse_copied_shared(r, o->psn, sent);
    } else if (o->tree->n_indirect) {
        reverse_filtered_shared(r, o->psn);
    }
}

enum drop_reason
copy_to_nodes(struct swedge *sw, struct rx *rx, const struct original *o)
{
    const struct tree_config *c = &o->tree->config;
    struct packet *p = rx->p;
    const struct in6_addr *held = NULL; /* needs a copy, and gets it when the next one is found. */
    enum drop_reason why = DROP_none;
    bool all_indirect = true;

    rx->p = NULL;
    packet_pull(p, rx->h.ip.ofs);
    for (size_t i = 0; i < c->n_outer_da; i++) {
        const struct branch *b = tree_node(o->tree, &c->outer_da[i]);

        if (b && reverse_is_pruned(o->tree->aggregate->reverse, b->config->id)) {
            TRACE(&sw->base.tracer, "replicate: no copy to %s: %s", TRACE_ADDR(&c->outer_da[i]),
                  drop_help(DROP_member_lost));
            node_count_drop(&sw->base, DROP_member_lost);
            continue;
        }
        if (!is_needed(o, b)) {
            TRACE(&sw->base.tracer, "replicate: no copy to %s, where PSN %u is confirmed",
                  TRACE_ADDR(&c->outer_da[i]), o->psn.v);
            continue;
        }
        if (held) {
            why = copy_to_node(sw, p, rx, o, held, false);
            node_count_drop(&sw->base, why);
            all_indirect &= !why;
        }
        held = &c->outer_da[i];
    }
    if (held) {
        why = copy_to_node(sw, p, rx, o, held, true);
        all_indirect &= !why;
    } else {
        packet_put(p);
    }
    note_indirect(o, all_indirect);
    return held ? why : DROP_none;
}
