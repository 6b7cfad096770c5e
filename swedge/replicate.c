/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of a group's packet for the next nodes of its tree (RFC 9524, section 2.2).
 *
 * A copy gets a new outer destination, from the replication state, and a lower hop limit.  SRH
 * and inner packet stay as they are.  The one exception is AckReq in the copy for a node that
 * is asked how far it is (lib/fanout.c).
 *
 * Everything behind the outer IPv6 header is shared, but for a Hop-by-Hop Options header, in which
 * each copy has an IOAM trace of its own.  The last node gets the original itself.
 *
 * A copy for a node that aggregates is for that branch.  A copy for a node that does not is for
 * all branches behind it.  Which these are is not known here, so it counts for all branches
 * that are reached through others.  In a group with planes all branches behind are the source
 * agent's (docs/draft-notes.md, R24): what this node's own receivers have says nothing of them.
 */
#include "lib/fanout.h"
#include "swedge/swedge.h"

/* Sends a node its copy 'p', which begins with the outer IPv6 header. */
static enum drop_reason
send_copy(const struct fanout *f, void *child_, struct packet *p, uint8_t *icrc)
{
    struct child *child = child_;
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) p->data;

    (void) icrc;
    ip->dst = *child->outer_da;
    ip->hlim--;
    TRACE(&f->node->tracer, "replicate: copy to %s, hop limit %u", TRACE_ADDR(&ip->dst), ip->hlim);
    return l3_output_next(f->node->l3, p, &child->next, L3_ERRORS_PTB, f->now);
}

enum drop_reason
copy_to_nodes(struct swedge *sw, struct rx *rx, const struct original *o)
{
    const struct tree_config *c = &o->tree->config;
    struct fanout f = {
        .node = sw->base,
        .reverse = o->tree->aggregate->reverse,
        .what = "replicate",
        .send = send_copy,
        .psn = o->psn,
        .now = rx->now,
        .original = rx->p,
        .takes_original = true,
        .ofs = rx->h.ip.ofs,
        .head_len =
            (uint16_t) (IP6_HDR_LEN
                        + parse_hop_by_hop_len(rx_ip(rx), (size_t) (rx->h.ip.end - rx->h.ip.ofs))),
        .bth_ofs = (uint16_t) (rx->h.bth_ofs - rx->h.ip.ofs),
        .after_qpn = o->after_qpn,
    };

    rx->p = NULL;
    for (size_t i = 0; i < c->n_outer_da; i++) {
        struct child *child = &o->tree->children[i];

        fanout_add(&f, child->branch, child, child->outer_da);
    }
    return fanout_end(&f);
}

enum drop_reason
replicate_input(struct swedge *sw, struct rx *rx)
{
    return group_input(sw, rx, BY_REPLICATE);
}
