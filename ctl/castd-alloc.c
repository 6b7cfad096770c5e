/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations: Proxy Addresses, epochs with their Designated QPN and start PSN,
 * designated rkeys, branch ids.
 *
 * None is ever given twice: a Proxy Address not in the registry's life, a
 * Designated QPN not while its Proxy Address lives, a branch id not while its
 * group lives.  What was given is in the rows, so a castd that starts anew
 * continues where the last one stopped.
 */
#include <config.h>

#include "ctl/castd.h"
#include "ctl/values.h"
#include "openvswitch/vlog.h"
#include "random.h"

VLOG_DEFINE_THIS_MODULE(castd_alloc);

/* Above 0 and 1, which are special, and above the numbers that a fresh RDMA device
 * gives to its first QPs: a mix-up is then seen. */
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
    for (size_t i = 0; i < g->n_members; i++) {
        rrec_member_set_branch(g->members[i].row, 0);
    }
    VLOG_INFO("group %s: epoch %" PRId64 ", Designated QPN 0x%" PRIx64, row->name, row->epoch,
              row->designated_qpn);
}

static void
new_proxy(struct castd *c, struct castd_group *g)
{
    int64_t number = MAX(c->global->next_proxy, 1);
    struct in6_addr proxy = proxy_address((uint32_t) number);
    uint32_t rkey;

    rrec_global_set_next_proxy(c->global, number + 1);
    rrec_group_set_proxy(g->row, ip6_text(&proxy));
    do {
        rkey = random_uint32();
    } while (!rkey);
    rrec_group_set_designated_rkey(g->row, rkey);
    rrec_group_set_epoch_resets(g->row, g->row->resets);
    new_epoch(g);
}

/* The first source of an epoch is bound to it; every later one starts an epoch, since the receivers'
 * expected PSNs are no longer the start PSN. */
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

/* What the source agent reported outlives the row that it reported it in. */
static void
latch_started(const struct castd *c, struct castd_group *g)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct rrec_tree_node *tree =
            castd_find_tree(c->nodes[i].row, g->row->proxy, g->row->epoch);

        if (tree && tree->started) {
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
            new_proxy(c, g);
        } else if (g->row->resets != g->row->epoch_resets) {
            rrec_group_set_epoch_resets(g->row, g->row->resets);
            new_epoch(g);
        }
        bind_source(g);
        latch_started(c, g);
        for (size_t j = 0; j < g->n_members; j++) {
            const struct rrec_member *m = g->members[j].row;

            if (m->epoch == g->row->epoch && !m->branch && !strcmp(m->want, "active")) {
                rrec_group_set_next_branch(g->row, g->row->next_branch + 1);
                rrec_member_set_branch(m, g->row->next_branch);
            }
        }
    }
}
