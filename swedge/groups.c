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

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/icrc.h"
#include "lib/response.h"

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
tree_destroy(struct tree *t)
{
    reverse_destroy(t->reverse);
    addr_map_destroy(t->by_addr);
    free(t->branches);
    tree_config_uninit(&t->config);
    free(t);
}

void
swedge_trees_uninit(struct trees *trees)
{
    for (size_t i = 0; i < trees->n; i++) {
        tree_destroy(trees->v[i]);
    }
    free(trees->v);
    addr_map_destroy(trees->by_key);
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

static const struct branch *
find_branch(const struct tree *t, uint32_t id)
{
    for (size_t i = 0; i < t->config.n_branches; i++) {
        if (t->branches[i].config.id == id) {
            return &t->branches[i];
        }
    }
    return NULL;
}

/* Gives 't' the branch set of 'config'. */
static void
tree_configure(struct swedge *sw, struct tree *t, const struct tree_config *config, uint64_t now)
{
    struct tree old = *t;

    tree_config_clone(&t->config, config);
    t->sport = response_sport(&config->proxy, config->designated_qpn);
    t->branches = calloc(config->n_branches + 1, sizeof *t->branches);
    t->by_addr = addr_map_create(config->n_branches);
    if (!t->branches) {
        abort();
    }
    for (size_t i = 0; i < config->n_branches; i++) {
        struct branch *b = &t->branches[i];
        const struct branch *was = find_branch(&old, config->branches[i].id);

        *b = (struct branch){
            .config = config->branches[i],
            .port = l3_host_port(sw->l3, &config->branches[i].address),
            .icrc_diff = header_diff(config, &config->branches[i]),
            .n_copies = was ? was->n_copies : 0,
            .copied = was ? was->copied : 0,
        };
        if (b->config.kind == BRANCH_RECEIVER) {
            addr_map_insert(t->by_addr, &b->config.address, 0, b);
        }
        if (!was && reverse_branch_add(t->reverse, b->config.id, now)) {
            abort(); /* swedge_trees_check() has been asked. */
        }
    }
    for (size_t i = 0; i < old.config.n_branches; i++) {
        if (!find_branch(t, old.branches[i].config.id)) {
            struct reverse_out out =
                reverse_branch_remove(t->reverse, old.branches[i].config.id, now);
            reverse_path_send(sw, t, &out, now);
        }
    }
    addr_map_destroy(old.by_addr);
    free(old.branches);
    tree_config_uninit(&old.config);
}

/* The tree of this epoch, or NULL. */
static struct tree *
find_epoch(const struct trees *trees, const struct tree_config *config)
{
    return addr_map_find(trees->by_key, &config->proxy, config->designated_qpn);
}

static struct tree *
tree_create(const struct tree_config *config)
{
    struct tree *t = calloc(1, sizeof *t);
    struct reverse *r = reverse_create(&(struct reverse_params){
        .start_psn = config->start_psn,
        .dup_ack_usec = REVERSE_DUP_ACK_USEC,
        .hold_usec = REVERSE_HOLD_USEC,
    });
    if (!t || !r) {
        abort();
    }
    t->reverse = r;
    return t;
}

int
swedge_trees_check(const struct trees *trees, const struct node_config *config, char **errp)
{
    for (size_t i = 0; i < config->n_trees; i++) {
        const struct tree_config *tc = &config->trees[i];
        const struct tree *t = find_epoch(trees, tc);
        struct reverse_info info = {.quiesced = true};

        if (t) {
            reverse_get_info(t->reverse, &info);
        }
        for (size_t j = 0; !info.quiesced && j < tc->n_branches; j++) {
            if (!find_branch(t, tc->branches[j].id)) {
                if (asprintf(errp, "group %s: member %s cannot join while packets are in flight",
                             tc->group, tc->branches[j].name)
                    < 0) {
                    abort();
                }
                return EBUSY;
            }
        }
    }
    return 0;
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

void
swedge_trees_configure(struct swedge *sw, const struct node_config *config, uint64_t now)
{
    struct trees *trees = &sw->trees;
    struct trees new = {
        .v = calloc(config->n_trees + 1, sizeof *new.v),
        .by_key = addr_map_create(config->n_trees),
    };
    if (!new.v) {
        abort();
    }
    for (size_t i = 0; i < config->n_trees; i++) {
        struct tree *t = find_epoch(trees, &config->trees[i]);
        if (!t) {
            t = tree_create(&config->trees[i]);
        }
        t->superseded = is_superseded(config, &config->trees[i]);
        tree_configure(sw, t, &config->trees[i], now);
        new.v[new.n++] = t;
        addr_map_insert(new.by_key, &t->config.proxy, t->config.designated_qpn, t);
    }
    for (size_t i = 0; i < trees->n; i++) {
        if (!find_epoch(&new, &trees->v[i]->config)) {
            tree_destroy(trees->v[i]);
        }
    }
    free(trees->v);
    addr_map_destroy(trees->by_key);
    *trees = new;
}
