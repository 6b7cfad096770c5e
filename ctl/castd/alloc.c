/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations: Proxy Addresses, Replication-IDs, epochs with their Designated
 * QPN and start PSN, designated rkeys, branch ids.
 *
 * A Proxy Address is never given twice in a registry's life, a Designated QPN
 * never in its Proxy Address's life (so that no epoch has one that a kept queue
 * pair is connected to), a branch id never in its group's life.
 * Replication-IDs are few: one is given again when its group and all trees that
 * have it are gone.  The rows say what was given, so a castd that starts anew
 * continues where the last one stopped.
 */
#include <config.h>

#include "bitmap.h"
#include "ctl/castd/castd.h"
#include "ctl/registry/group-state.h"
#include "ctl/registry/request.h"
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

/* Does the epoch that begins find this member's queue pair as the last one has left it? */
static bool
is_kept(const struct castd_group *g, const struct rrec_member *m)
{
    return m->keep && m->epoch == g->row->epoch && !strcmp(m->want, "active") && !member_is_lost(m);
}

/* Takes those members into the next epoch. */
static void
keep_members(const struct castd_group *g)
{
    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i];

        if (is_kept(g, m)) {
            if (!m->n_designated_qpn) {
                rrec_member_set_designated_qpn(m, &g->row->designated_qpn, 1);
            }
            rrec_member_set_epoch(m, g->row->epoch + 1);
            rrec_member_set_psn(m, NULL, 0);
            if (m->n_new_qpn) {
                request_member_close(m, "another epoch has begun"); /* its QP was set up before. */
            }
        }
    }
}

/* Nothing of an earlier registration or epoch is said of the member any more. */
static void
forget_past(const struct rrec_member *m)
{
    rrec_member_set_lost(m, "");
    rrec_member_set_lost_psn(m, NULL, 0);
    rrec_member_set_good_messages(m, NULL, 0);
    rrec_member_set_first_psn(m, NULL, 0);
    rrec_member_set_first_message(m, NULL, 0);
}

static void
new_epoch(struct castd_group *g)
{
    const struct rrec_group *row = g->row;

    g->written = true;
    keep_members(g);
    rrec_group_set_epoch(row, row->epoch + 1);
    rrec_group_set_designated_qpn(row, DESIGNATED_QPN_BASE + row->epoch);
    rrec_group_set_start_psn(row, start_psn(row));
    rrec_group_set_started(row, false);
    rrec_group_set_region_len(row, 0);
    rrec_group_set_lost(row, "");
    for (size_t i = 0; i < g->n_members; i++) {
        rrec_member_set_branch(g->members[i], 0);
        forget_past(g->members[i]);
    }
    VLOG_INFO("group %s: epoch %" PRId64 ", Designated QPN 0x%" PRIx64, row->name, row->epoch,
              row->designated_qpn);
}

static void
use_replication_id(struct castd *c, int64_t id)
{
    if (id >= 0 && id <= REPLICATION_ID_MAX) {
        bitmap_set1(c->replication_ids, (size_t) id);
    }
}

/* A tree has its group's in one of its two addresses. */
static void
use_tree_replication_id(struct castd *c, const struct rrec_node *node,
                        const struct rrec_tree_node *tree)
{
    struct in6_addr sid, group;

    if (ip6_parse(tree->replication_sid, &sid)) {
        uint16_t id = replication_id_of(&sid);
        struct in6_addr own = node_replication_sid((uint16_t) node->id, id);

        if (IN6_ARE_ADDR_EQUAL(&sid, &own)) {
            use_replication_id(c, id);
        }
    }
    if (ip6_parse(tree->mcast_group, &group) && is_mcast_group_address(&group)) {
        use_replication_id(c, group.s6_addr[14] << 8 | group.s6_addr[15]);
    }
}

/* There are as many groups as IDs at most.  Trees whose group is there have that group's; those of a group
 * that is gone may be on nodes for a while. */
static void
find_replication_ids(struct castd *c)
{
    const struct mirror_group *g;
    const struct mirror_proxy *p;
    const struct mirror_part *part;

    c->replication_ids = bitmap_allocate(REPLICATION_ID_MAX + 1);
    HMAP_FOR_EACH (g, hmap_node, &c->mirror->groups) {
        if (g->proxy) {
            use_replication_id(c, g->row->replication_id);
        }
    }
    LIST_FOR_EACH (p, orphan_node, &c->mirror->orphans) {
        LIST_FOR_EACH (part, owner_node, &p->trees) {
            if (part->node) {
                use_tree_replication_id(c, part->node->row, part->row);
            }
        }
    }
}

/* Gives the group its addresses and its first epoch.  False: all Replication-IDs or Proxy Addresses
 * are in use. */
static bool
new_group(struct castd *c, struct castd_group *g)
{
    size_t replication_id;
    int64_t number = MAX(c->global->next_proxy, 1);
    uint32_t rkey;

    /* No number is used twice, nor one of somebody who wrote nonsense to the registry. */
    if (c->global->next_proxy < 0 || number > UINT32_MAX) {
        g->rollout.error = xasprintf("group %s: there is no Proxy Address left: "
                                     "Global.next_proxy is %" PRId64 ", must be 0..%" PRIu32,
                                     g->row->name, c->global->next_proxy, UINT32_MAX);
        return false;
    }
    struct in6_addr proxy = proxy_address((uint32_t) number);

    if (!c->replication_ids) {
        find_replication_ids(c);
    }
    replication_id = bitmap_scan(c->replication_ids, false, 0, REPLICATION_ID_MAX + 1);
    if (replication_id > REPLICATION_ID_MAX) {
        g->rollout.error = xasprintf("group %s: all %d Replication-IDs are in use", g->row->name,
                                     REPLICATION_ID_MAX + 1);
        return false;
    }
    bitmap_set1(c->replication_ids, replication_id);
    rrec_group_set_replication_id(g->row, (int64_t) replication_id);
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

void
castd_give_branch(const struct castd_group *g, const struct rrec_member *m)
{
    rrec_group_set_next_branch(g->row, g->row->next_branch + 1);
    rrec_member_set_branch(m, g->row->next_branch);
    forget_past(m);
}

void
castd_allocate(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        struct castd_group *g = c->due[i];

        if (!g->row->proxy[0]) {
            if (!new_group(c, g)) {
                continue;
            }
        } else if (g->row->resets != g->row->epoch_resets) {
            rrec_group_set_epoch_resets(g->row, g->row->resets);
            new_epoch(g);
        }
        bind_source(g);
        for (size_t j = 0; j < g->n_members; j++) {
            const struct rrec_member *m = g->members[j];

            if (m->epoch == g->row->epoch && !m->branch && !strcmp(m->want, "active")) {
                castd_give_branch(g, m);
            }
        }
    }
}
