/* SPDX-License-Identifier: Apache-2.0
 *
 * Group state of the node, made from the configuration.
 *
 * A tree is one epoch of a group.  A configuration with the same epoch changes
 * its branch set and keeps what the reverse path has learnt; a new epoch starts
 * from nothing, because state of an earlier one would acknowledge data that
 * nobody received.
 */
#include "swedge/swedge.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/defect.h"
#include "lib/fanout.h"
#include "lib/icrc.h"

struct tree *
tree_find(const struct swedge *sw, const struct in6_addr *proxy, uint32_t designated_qpn,
          enum drop_reason *why)
{
    struct tree *t = addr_map_find(sw->trees.by_key, proxy, designated_qpn);

    if (!t || t->superseded) {
        *why = addr_map_contains(sw->trees.by_key, proxy) ? DROP_stale_epoch : DROP_group_unknown;
        return NULL;
    }
    *why = DROP_none;
    return t;
}

static void
tree_destroy(struct swedge *sw, struct tree *t)
{
    deadlines_set(&sw->deadlines, &t->deadline, UINT64_MAX, t);
    uint64_t seq = response_auth_seq(t->aggregate->auth);
    sw->base->response_seq = seq > sw->base->response_seq ? seq : sw->base->response_seq;
    aggregate_destroy(t->aggregate);
    auth_verifier_destroy(t->auth);
    free(t->branches);
    free(t->children);
    free(t->next_ports);
    tree_config_uninit(&t->config);
    free(t);
}

void
swedge_trees_uninit(struct swedge *sw)
{
    struct trees *trees = &sw->trees;

    for (size_t i = 0; i < trees->n; i++) {
        tree_destroy(sw, trees->v[i]);
    }
    deadlines_uninit(&sw->deadlines);
    free(trees->v);
    addr_map_destroy(trees->by_key);
    addr_map_destroy(trees->by_mcast);
    addr_map_destroy(trees->by_alias);
    *trees = (struct trees){0};
}

/* crc0 of what a copy for 'b' changes between the IPv6 source address and the
 * end of BTH DestQP: constant for a branch and an epoch. */
static uint32_t
header_diff(const struct tree_config *tree, const struct branch_config *b)
{
    enum {
        DEST_QP = IP6_HDR_LEN + sizeof(struct udp_hdr) + offsetof(struct bth, dest_qp),
        SRC = offsetof(struct ip6_hdr_wire, src),
    };
    uint8_t old[DEST_QP + 3 - SRC] = {0};
    uint8_t new[sizeof old] = {0};
    be24_t old_qpn = be24_put(tree->designated_qpn);
    be24_t new_qpn = be24_put(b->qpn);

    memcpy(old, &tree->source, 16);
    memcpy(old + 16, &tree->proxy, 16);
    memcpy(old + sizeof old - 3, &old_qpn, 3);
    memcpy(new, &tree->proxy, 16);
    memcpy(new + 16, &b->address, 16);
    memcpy(new + sizeof new - 3, &new_qpn, 3);
    for (size_t i = 0; i < sizeof old; i++) {
        old[i] ^= new[i];
    }
    return icrc_diff(old, sizeof old);
}

/* The same up to the end of the RETH's rkey, and what the rkey's change adds. */
static uint32_t
header_diff_reth(const struct tree_config *tree, const struct branch_config *b)
{
    enum { AFTER = sizeof(struct bth) - offsetof(struct bth, ack_req) };
    uint64_t rkeys = tree->designated_rkey ^ b->rkey; /* the lower half of 8 bytes. */

    return icrc_shift(header_diff(tree, b), AFTER + offsetof(struct reth, dma_len))
           ^ icrc_diff_be64(rkeys, 0);
}

struct tree *
tree_find_for_receiver(const struct swedge *sw, const struct in6_addr *proxy, uint32_t qpn,
                       enum drop_reason *why)
{
    struct tree *t = addr_map_find(sw->trees.by_alias, proxy, qpn);

    *why = DROP_none;
    return t ? t : tree_find(sw, proxy, qpn, why);
}

bool
swedge_has_receiver(const struct node_base *base, const struct in6_addr *proxy,
                    const struct in6_addr *host, uint32_t qpn)
{
    const struct swedge *sw = base->edge;

    for (size_t i = 0; i < sw->trees.n; i++) {
        const struct tree *t = sw->trees.v[i];

        if (!t->superseded && IN6_ARE_ADDR_EQUAL(&t->config.proxy, proxy)) {
            const struct branch *b = tree_receiver(t, host);

            return b && b->config->qpn == qpn;
        }
    }
    return false;
}

bool
swedge_copy_source(const struct node_base *base, const struct in6_addr *proxy,
                   uint32_t designated_qpn, struct in6_addr *source)
{
    const struct swedge *sw = base->edge;
    const struct tree *t = addr_map_find(sw->trees.by_key, proxy, designated_qpn);

    if (t) {
        *source = t->config.source;
    }
    return t;
}

struct branch *
tree_receiver(const struct tree *t, const struct in6_addr *addr)
{
    const struct branch_config *b = aggregate_branch(t->aggregate, BRANCH_RECEIVER, addr);
    return b ? &t->branches[b - t->config.branches] : NULL;
}

/* Keeps what 'old', the tree before, counted for branch 'b'. */
static void
keep_counts(struct branch *b, const struct tree *old)
{
    for (size_t i = 0; i < old->config.n_branches; i++) {
        if (old->config.branches[i].id == b->config->id) {
            b->copied = old->branches[i].copied;
        }
    }
}

/* The branch that is the node with this SID or address, or NULL.  A node that does not aggregate is
 * no branch: a copy to it goes through to nodes that do. */
static struct branch *
tree_node(const struct tree *t, const struct in6_addr *outer_da)
{
    struct in6_addr addr = node_address(node_id_of(outer_da));
    const struct branch_config *b = aggregate_branch(t->aggregate, BRANCH_NODE, &addr);
    return b ? &t->branches[b - t->config.branches] : NULL;
}

/* Who gets copies, and which branches get those of others. */
static void
find_children(struct tree *t)
{
    const struct tree_config *c = &t->config;

    t->children = must_calloc(c->n_outer_da, sizeof *t->children);
    for (size_t i = 0; i < c->n_outer_da; i++) {
        struct branch *b = tree_node(t, &c->outer_da[i]);

        t->children[i] = (struct child){
            .outer_da = &c->outer_da[i],
            .branch = b                    ? b->config->id
                      : c->n_parent_planes ? FANOUT_OTHERS
                                           : FANOUT_SHARED,
        };
        if (b) {
            b->direct = true;
        }
    }
    assert(!c->n_branches || t->branches);
    for (size_t i = 0; i < c->n_branches; i++) {
        const struct branch *b = &t->branches[i];
        bool indirect = b->config->kind == BRANCH_NODE && !b->direct;

        reverse_share(t->aggregate->reverse, b->config->id, indirect);
    }
}

/* Fills in the ports by which packets to the group's multicast address go on. */
static void
find_next_ports(const struct swedge *sw, struct tree *t)
{
    const struct tree_config *c = &t->config;

    t->next_ports = must_calloc(c->n_outer_da, sizeof *t->next_ports);
    for (size_t i = 0; i < c->n_outer_da && tree_mode(c->mode)->addressed_to_group; i++) {
        t->next_ports[i] = l3_port_to(sw->base->l3, &c->outer_da[i]);
    }
}

/* A node without receivers verifies nothing, and forgets what it asked for, but not what has come. */
static void
configure_auth(struct tree *t, uint64_t now)
{
    if (!t->n_receivers) {
        if (t->auth) {
            auth_verifier_forget(t->auth);
        }
        return;
    }
    if (!t->auth) {
        struct auth_epoch epoch = tree_config_auth_epoch(&t->config);

        t->auth = auth_verifier_create(&epoch);
    }
    auth_verifier_configure(t->auth, &t->config.auth, now);
}

/* Gives 't' the branch set of 'config'. */
static void
tree_configure(struct swedge *sw, struct tree *t, const struct tree_config *config, uint64_t now)
{
    struct tree old = *t;

    tree_config_clone(&t->config, config);
    find_next_ports(sw, t);
    t->n_receivers = 0;
    t->branches = must_calloc(config->n_branches, sizeof *t->branches);
    for (size_t i = 0; i < config->n_branches; i++) {
        struct branch *b = &t->branches[i];

        b->config = &t->config.branches[i];
        if (b->config->kind == BRANCH_RECEIVER) {
            t->n_receivers++;
            b->port = l3_host_port(sw->base->l3, &b->config->address);
            b->icrc_diff = header_diff(config, b->config);
            b->icrc_diff_reth = header_diff_reth(config, b->config);
        }
        keep_counts(b, &old);
    }
    configure_auth(t, now);
    struct reverse_out out = aggregate_configure(t->aggregate, &old.config, &t->config, now);
    find_children(t);
    for (size_t i = 0; i < config->n_branches; i++) {
        t->branches[i].shift = aggregate_shift(t->aggregate, t->branches[i].config);
        t->branches[i].joined = t->branches[i].config->join == BRANCH_COUNTS;
    }
    reverse_path_send(sw, t, &out, now);
    out = aggregate_look_at_planes(t->aggregate, sw->base, now);
    reverse_path_send(sw, t, &out, now);
    reverse_path_ask(sw, t, now);
    free(old.branches);
    free(old.children);
    free(old.next_ports);
    tree_config_uninit(&old.config);
}

/* The tree that this is another configuration of, or NULL.  One that was in the node's row before,
 * and has left that meanwhile, is another one: others have gone on without this node. */
static struct tree *
find_same(const struct trees *trees, const struct tree_config *config)
{
    struct tree *t = addr_map_find(trees->by_key, &config->proxy, config->designated_qpn);

    return t && t->config.row == config->row ? t : NULL;
}

static struct tree *
tree_create(const struct swedge *sw, const struct tree_config *config)
{
    struct tree *t = must_calloc(1, sizeof *t);
    t->aggregate = aggregate_create(config, sw->base->response_seq);
    return t;
}

/* DEFECT(EPOCH): 't' takes over the reverse-path state of an earlier epoch of its group. */
static void
inherit(struct tree *t, const struct trees *trees)
{
    for (size_t i = 0; i < trees->n; i++) {
        struct aggregate *a = trees->v[i]->aggregate;
        if (IN6_ARE_ADDR_EQUAL(&trees->v[i]->config.proxy, &t->config.proxy)) {
            struct reverse *r = a->reverse;
            a->reverse = t->aggregate->reverse;
            t->aggregate->reverse = r;
        }
    }
}

int
swedge_trees_check(const struct trees *trees, const struct node_config *config, char **errp)
{
    int error = 0;

    for (size_t i = 0; i < config->n_trees && !error; i++) {
        const struct tree_config *tc = &config->trees[i];
        const struct tree *t = find_same(trees, tc);

        if (!tree_config_is_source(tc, &config->address)) {
            error = aggregate_check(t ? t->aggregate : NULL, tc, errp);
        }
    }
    return error;
}

/* Does 'config' have a newer epoch of the same Proxy? */
static bool
is_superseded(const struct node_config *config, const struct tree_config *tree)
{
    for (size_t i = 0; i < config->n_trees; i++) {
        const struct tree_config *other = &config->trees[i];
        if (other->epoch > tree->epoch && IN6_ARE_ADDR_EQUAL(&other->proxy, &tree->proxy)) {
            return true;
        }
    }
    return false;
}

/* Receivers whose queue pairs are connected to the Designated QPN of an earlier epoch. */
static size_t
count_aliases(const struct node_config *config)
{
    size_t n = 0;

    for (size_t i = 0; i < config->n_trees; i++) {
        for (size_t j = 0; j < config->trees[i].n_branches; j++) {
            n += config->trees[i].branches[j].designated_qpn != 0;
        }
    }
    return n;
}

static void
insert_aliases(struct addr_map *by_alias, struct tree *t)
{
    for (size_t i = 0; i < t->config.n_branches; i++) {
        uint32_t qpn = t->config.branches[i].designated_qpn;

        if (qpn && !addr_map_find(by_alias, &t->config.proxy, qpn)) {
            addr_map_insert(by_alias, &t->config.proxy, qpn, t);
        }
    }
}

void
swedge_trees_configure(struct swedge *sw, const struct node_config *config, uint64_t now)
{
    struct trees *trees = &sw->trees;
    struct trees new = {
        .v = must_calloc(config->n_trees, sizeof *new.v),
        .by_key = addr_map_create(config->n_trees),
        .by_mcast = addr_map_create(config->n_trees),
        .by_alias = addr_map_create(count_aliases(config)),
    };
    sw->verify_always = config->verify_always;
    deadlines_reserve(&sw->deadlines, trees->n + config->n_trees);
    for (size_t i = 0; i < config->n_trees; i++) {
        if (tree_config_is_source(&config->trees[i], &config->address)) {
            continue;
        }
        struct tree *t = find_same(trees, &config->trees[i]);
        bool is_new = !t;
        if (is_new) {
            t = tree_create(sw, &config->trees[i]);
        }
        t->superseded = is_superseded(config, &config->trees[i]);
        t->aggregate->cnp_interval_usec = config->congestion.interval_usec;
        tree_configure(sw, t, &config->trees[i], now);
        if (is_new && DEFECT(EPOCH)) {
            inherit(t, trees);
            tree_touched(sw, t);
        }
        new.v[new.n++] = t;
        addr_map_insert(new.by_key, &t->config.proxy, t->config.designated_qpn, t);
        if (!t->superseded) {
            insert_aliases(new.by_alias, t);
        }
        if (tree_mode(t->config.mode)->addressed_to_group && !t->superseded) {
            addr_map_insert(new.by_mcast, &t->config.mcast_group, 0, t);
        }
    }
    for (size_t i = 0; i < trees->n; i++) {
        if (find_same(&new, &trees->v[i]->config) != trees->v[i]) {
            tree_destroy(sw, trees->v[i]);
        }
    }
    free(trees->v);
    addr_map_destroy(trees->by_key);
    addr_map_destroy(trees->by_mcast);
    addr_map_destroy(trees->by_alias);
    *trees = new;
}
