/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path: responses of a group's branches end here and feed the group's machine
 * (lib/aggregate.h).  What the machine decides goes towards the source as a new packet.  So do CNPs,
 * which are counted and merged apart.
 *
 * A receiver answers to the Proxy, on its host port.  A node answers to this
 * node's response SID (behaviour End.Response), on any port: its packet took the
 * fabric's shortest path.
 */
#include "lib/roce.h"
#include "swedge/swedge.h"

/* The QPN that a response came for. */
static uint32_t
dest_qp(const struct rx *rx)
{
    const struct bth *bth = rx_at(rx, rx->h.bth_ofs);

    return be24_get(bth->dest_qp);
}

static const char *
what(const struct rx *rx)
{
    return rx->h.opcode == ROCE_CNP ? "CNP" : "response";
}

static void
trace_result(const struct swedge *sw, const struct tree *t, const struct reverse_out *out)
{
    struct reverse_info info;

    if (!sw->base->tracer.line) {
        return;
    }
    reverse_get_info(t->aggregate->reverse, &info);
    TRACE(&sw->base->tracer, "group %s epoch %u: minimum %u, %s", t->config.group, t->config.epoch,
          info.m.v, out->send ? "a response goes up" : "nothing goes up");
}

enum drop_reason
reverse_path_input(struct swedge *sw, struct rx *rx)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    struct reverse_out out = {.send = false};
    enum drop_reason why = aggregate_check_plain(rx->p->data, &rx->h);
    if (why) {
        return why;
    }
    struct tree *tree = tree_find_for_receiver(sw, &ip->dst, dest_qp(rx), &why);
    if (!tree) {
        return why;
    }
    const struct branch *b = tree_receiver(tree, &ip->src);
    if (!b) {
        return DROP_unknown_branch;
    }
    if (b->port && b->port != rx->port) {
        return DROP_wrong_port;
    }
    uint32_t own = b->config->designated_qpn;
    if (dest_qp(rx) != (own ? own : tree->config.designated_qpn)) {
        return DROP_stale_epoch;
    }
    TRACE(&sw->base->tracer, "%s of receiver %s", what(rx), b->config->name);
    why = aggregate_response(tree->aggregate, b->config, rx->p->data, &rx->h, rx->now, &out);
    trace_result(sw, tree, &out);
    reverse_path_send(sw, tree, &out, rx->now);
    return why;
}

enum drop_reason
response_input(struct swedge *sw, struct rx *rx)
{
    struct reverse_out out = {.send = false};
    enum drop_reason why = aggregate_check_tunnelled(rx->p->data, &rx->h);
    if (why) {
        return why;
    }
    const struct ip6_hdr_wire *inner = rx_at(rx, rx->h.inner.ofs);
    struct tree *tree = tree_find(sw, &inner->src, dest_qp(rx), &why);
    if (!tree) {
        return why;
    }
    TRACE(&sw->base->tracer, "%s of node %s", what(rx), TRACE_ADDR(&rx_ip(rx)->src));
    why = aggregate_tunnelled(tree->aggregate, rx->p->data, &rx->h, rx->now, &out);
    if (why) {
        TRACE(&sw->base->tracer, "group %s epoch %u: %s", tree->config.group, tree->config.epoch,
              drop_help(why));
    }
    trace_result(sw, tree, &out);
    reverse_path_send(sw, tree, &out, rx->now);
    return why;
}

void
reverse_path_send(struct swedge *sw, struct tree *t, const struct reverse_out *out, uint64_t now)
{
    if (!t->superseded) {
        aggregate_send(t->aggregate, sw->base, out, now);
    }
    tree_touched(sw, t);
}

void
reverse_path_send_cnp(struct swedge *sw, struct tree *t, uint64_t now)
{
    uint32_t branch;

    if (t->superseded) {
        return;
    }
    cnp_window_n_sent(t->aggregate->cnps, &branch);
    TRACE(&sw->base->tracer, "group %s epoch %u: a CNP goes up for branch %u", t->config.group,
          t->config.epoch, branch);
    aggregate_send_cnp(t->aggregate, sw->base, now);
}

void
reverse_path_way_changed(struct swedge *sw, uint16_t probe, uint64_t now)
{
    for (size_t i = 0; i < sw->trees.n; i++) {
        struct tree *t = sw->trees.v[i];
        const struct tree_config *c = &t->config;

        if (planes_have_probe(c->parent_planes, c->n_parent_planes, probe)) {
            struct reverse_out out = aggregate_look_at_planes(t->aggregate, sw->base, now);

            reverse_path_send(sw, t, &out, now);
        }
    }
}

void
swedge_way_changed(struct node_base *base, uint16_t probe, uint64_t now)
{
    reverse_path_way_changed(base->edge, probe, now);
}

void
swedge_ce_left(struct node_base *base, const struct in6_addr *proxy, uint32_t designated_qpn,
               uint32_t branch, uint64_t now)
{
    struct swedge *sw = base->edge;
    enum drop_reason why;
    struct tree *t = tree_find(sw, proxy, designated_qpn, &why);

    if (t) {
        aggregate_marked(t->aggregate, branch, now);
        tree_touched(sw, t);
    }
}

void
reverse_path_ask(struct swedge *sw, struct tree *t, uint64_t now)
{
    const struct branch_config *b;
    struct packet *p;

    if (t->superseded) {
        return;
    }
    while ((p = aggregate_question(t->aggregate, sw->base->pool, now, &b))) {
        TRACE(&sw->base->tracer, "group %s epoch %u: a question to %s", t->config.group,
              t->config.epoch, b->name);
        node_count_drop(sw->base,
                        l3_output_next(sw->base->l3, p, &t->branches[b - t->config.branches].next,
                                       L3_ERRORS_NONE, now));
    }
    tree_touched(sw, t);
}
