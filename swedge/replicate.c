/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of a group's packet for the next nodes of its tree (RFC 9524, section
 * 2.2): a new outer destination from the replication state and the hop limit,
 * nothing else; SRH and inner packet stay as they are.
 *
 * Everything behind the outer IPv6 header is shared.  The last node gets the
 * original itself.
 */
#include "swedge/swedge.h"

/* 'p' is the packet from its outer IPv6 header on, and is consumed. */
static enum drop_reason
send_copy(struct swedge *sw, struct packet *p, const struct in6_addr *dst, uint64_t now)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) p->data;

    ip->dst = *dst;
    ip->hlim--;
    TRACE(&sw->base.tracer, "replicate: copy to %s, hop limit %u", TRACE_ADDR(dst), ip->hlim);
    return l3_output(sw->base.l3, p, L3_ERRORS_PTB, now);
}

/* Every aggregating node below gets every packet, by whatever copy; 'sent': by all that there are. */
static void
note_copied(const struct tree *t, psn_t psn, bool sent)
{
    for (size_t i = 0; i < t->config.n_branches; i++) {
        if (t->config.branches[i].kind == BRANCH_NODE) {
            reverse_copied(t->aggregate->reverse, t->config.branches[i].id, psn, sent);
        }
    }
}

enum drop_reason
copy_to_nodes(struct swedge *sw, struct rx *rx, const struct original *o)
{
    const struct tree_config *c = &o->tree->config;
    struct packet *p = rx->p;
    bool all = true;

    rx->p = NULL;
    packet_pull(p, rx->h.ip.ofs);
    for (size_t i = 0; i + 1 < c->n_outer_da; i++) {
        struct packet *copy = packet_replicate(p, 0, IP6_HDR_LEN, 0);
        enum drop_reason why =
            copy ? send_copy(sw, copy, &c->outer_da[i], rx->now) : DROP_pool_empty;
        node_count_drop(&sw->base, why);
        all &= !why;
    }
    enum drop_reason why = send_copy(sw, p, &c->outer_da[c->n_outer_da - 1], rx->now);
    note_copied(o->tree, o->psn, all && !why);
    return why;
}
