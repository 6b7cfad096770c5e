/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations: Proxy Addresses, Replication-IDs, epochs with their Designated
 * QPN and start PSN, designated rkeys, branch ids.
 *
 * A Proxy Address is never given twice in a registry's life, a Designated QPN
 * never in its Proxy Address's life, a branch id never in its group's life.
 * Replication-IDs are few: one is given again when its group and all trees that
 * have it are gone.  The rows say what was given, so a castd that starts anew
 * continues where the last one stopped.
 */
#include <config.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/values.h"
#include "openvswitch/vlog.h"
#include "random.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_alloc);

/* Above 0 and 1, which are special, and above the numbers that a fresh RDMA device gives to its
 * first QPs, so that a mix-up is noticed. */
#define DESIGNATED_QPN_BASE 0x100

static uint32_t
start_psn(const struct rrec_group *row)
{
    return row->n_psn ? (uint32_t) row->psn[0] : random_uint32() & PSN_MASK;
}

static void
new_epoch(struct castd_group *g)
{
    const struct rrec_group *row = g->row;

    rrec_group_set_epoch(row, row->epoch + 1);
    rrec_group_set_designated_qpn(row, DESIGNATED_QPN_BASE + row->epoch);
    rrec_group_set_start_psn(row, start_psn(row));
    rrec_group_set_started(row, false);
    rrec_group_set_region_len(row, 0);
    rrec_group_set_lost(row, "");
    for (size_t i = 0; i < g->n_members; i++) {
        rrec_member_set_branch(g->members[i], 0);
        rrec_member_set_lost(g->members[i], "");
    }
    VLOG_INFO("group %s: epoch %" PRId64 ", Designated QPN 0x%" PRIx64, row->name, row->epoch,
              row->designated_qpn);
}

static bool
replication_id_is_used(const struct castd *c, int64_t id)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        if (c->groups[i].row->proxy[0] && c->groups[i].row->replication_id == id) {
            return true;
        }
    }
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct rrec_node *n = c->nodes[i].row;
        struct in6_addr sid = node_replication_sid(c->nodes[i].node->id, (uint16_t) id);
        struct in6_addr group = mcast_group_address((uint16_t) id);

        for (size_t j = 0; j < n->n_trees; j++) {
            if (!strcmp(n->trees[j]->replication_sid, ip6_text(&sid))
                || !strcmp(n->trees[j]->mcast_group, ip6_text(&group))) {
                return true;
            }
        }
    }
    return false;
}

/* Gives the group its addresses and its first epoch.  False: all Replication-IDs are in use. */
static bool
new_group(struct castd *c, struct castd_group *g)
{
    int64_t replication_id = 0;
    int64_t number = MAX(c->global->next_proxy, 1);
    struct in6_addr proxy = proxy_address((uint32_t) number);
    uint32_t rkey;

    while (replication_id_is_used(c, replication_id)) {
        if (++replication_id > REPLICATION_ID_MAX) {
            g->rollout.error = xasprintf("group %s: all %d Replication-IDs are in use",
                                         g->row->name, REPLICATION_ID_MAX + 1);
            return false;
        }
    }
    rrec_group_set_replication_id(g->row, replication_id);
    rrec_global_set_next_proxy(c->global, number + 1);
    rrec_group_set_proxy(g->row, ip6_text(&proxy));
    do {
        rkey = random_uint32();
    } while (!rkey);
    rrec_group_set_designated_rkey(g->row, rkey);
    rrec_group_set_epoch_resets(g->row, g->row->resets);
    new_epoch(g);
    return true;
}

/* The first source of an epoch is bound to it.  Every later one starts a new epoch, since the
 * receivers' expected PSNs are no longer the start PSN. */
static void
bind_source(struct castd_group *g)
{
    if (!g->source) {
        return;
    }
    if (!g->source->epoch) {
        if (g->row->source_epoch == g->row->epoch) {
            new_epoch(g);
        }
        rrec_source_set_epoch(g->source, g->row->epoch);
    }
    if (g->source->epoch == g->row->epoch) {
        rrec_group_set_source_epoch(g->row, g->row->epoch);
    }
}

/* Keeps what the source agent reported, beyond the row that it reported it in.  A loss also says
 * that the epoch has started: nobody is lost before a packet went down. */
static void
latch_started(const struct castd *c, struct castd_group *g)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct rrec_tree_node *tree =
            castd_find_tree(c->nodes[i].row, g->row->proxy, g->row->epoch);

        if (tree && (tree->started || tree->n_lost)) {
            rrec_group_set_started(g->row, true);
        }
    }
}

void
castd_allocate(struct castd *c)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        struct castd_group *g = &c->groups[i];

        if (!g->row->proxy[0]) {
            if (!new_group(c, g)) {
                continue;
            }
        } else if (g->row->resets != g->row->epoch_resets) {
            rrec_group_set_epoch_resets(g->row, g->row->resets);
            new_epoch(g);
        }
        bind_source(g);
        latch_started(c, g);
        for (size_t j = 0; j < g->n_members; j++) {
            const struct rrec_member *m = g->members[j];

            if (m->epoch == g->row->epoch && !m->branch && !strcmp(m->want, "active")) {
                rrec_group_set_next_branch(g->row, g->row->next_branch + 1);
                rrec_member_set_branch(m, g->row->next_branch);
                rrec_member_set_lost(m, "");
            }
        }
    }
}
