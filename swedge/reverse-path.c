/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path: a receiver's ACKs and NAKs to the Proxy end here and feed
 * the group's machine (lib/reverse.h); what that decides goes towards the
 * source as a new packet.
 */
#include "lib/response.h"
#include "swedge/swedge.h"

enum drop_reason
reverse_path_input(struct swedge *sw, struct rx *rx)
{
    const uint8_t *data = rx->p->data;
    const struct ip6_hdr_wire *ip = (const void *) (data + rx->h.ip.ofs);
    enum drop_reason why = response_check(data, &rx->h);
    if (why) {
        return why;
    }

    const struct bth *bth = (const void *) (data + rx->h.bth_ofs);
    struct tree *tree = tree_find(sw, &ip->dst, be24_get(bth->dest_qp), &why);
    if (!tree) {
        return why;
    }
    const struct branch *b = addr_map_find(tree->by_addr, &ip->src, 0);
    if (!b) {
        return DROP_unknown_branch;
    }
    if (b->port && b->port != rx->port) {
        return DROP_wrong_port;
    }

    const struct aeth *aeth = (const void *) (data + rx->h.ext_ofs);
    struct reverse_out out = reverse_response(tree->reverse, b->config.id, bth_psn(bth),
                                              aeth->syndrome, be24_get(aeth->msn), rx->now, &why);
    reverse_path_send(sw, tree, &out, rx->now);
    return why;
}

void
reverse_path_send(struct swedge *sw, struct tree *t, const struct reverse_out *out, uint64_t now)
{
    if (!out->send || t->superseded) {
        return;
    }
    if (!t->config.root) {
        swedge_count_drop(sw, DROP_no_parent);
        return;
    }
    struct packet *p = response_build(sw->pool, &t->config.proxy, &t->config.source, t->sport,
                                      t->config.source_qpn, out->psn, out->syndrome, out->msn);
    swedge_count_drop(sw, p ? l3_output(sw->l3, p, L3_ERRORS_NONE, now) : DROP_pool_empty);
}
