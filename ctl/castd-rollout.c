/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of each group: what its nodes have now (rows and generations) goes
 * into the pure step, and what comes out is planned into trees.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd.h"
#include "ctl/values.h"
#include "util.h"

const struct rrec_tree_node *
castd_find_tree(const struct rrec_node *node, const char *proxy, int64_t epoch)
{
    for (size_t i = 0; i < node->n_trees; i++) {
        if (node->trees[i]->epoch == epoch && !strcmp(node->trees[i]->proxy, proxy)) {
            return node->trees[i];
        }
    }
    return NULL;
}

bool
castd_tree_applied(const struct rrec_node *node, const struct rrec_tree_node *tree)
{
    return node->nb_cfg >= tree->generation;
}

static bool
has_branch(struct rrec_branch *const *branches, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (branches[i]->id == id) {
            return true;
        }
    }
    return false;
}

static bool
is_registered(const struct castd_group *g, const struct rrec_member *m)
{
    return m->epoch == g->row->epoch && !strcmp(m->want, "active");
}

/* The group and its members as the planner wants them; g->error if it can not be served at all. */
static void
make_request(const struct castd *c, struct castd_group *g)
{
    const struct rrec_group *row = g->row;
    struct plan_group *r = &g->request;

    ovs_strlcpy(r->name, row->name, sizeof r->name);
    r->epoch = (uint32_t) row->epoch;
    r->designated_qpn = (uint32_t) row->designated_qpn;
    r->start_psn = psn_make((uint32_t) row->start_psn);
    r->mtu = (uint32_t) row->mtu;
    r->designated_rkey = (uint32_t) row->designated_rkey;
    for (size_t i = 0; i < g->n_members; i++) {
        const struct rrec_member *m = g->members[i].row;
        struct plan_member *p = &r->members[i];

        ovs_strlcpy(p->host, m->host, sizeof p->host);
        p->branch = (uint32_t) m->branch;
        p->qpn = (uint32_t) m->qpn;
        p->rkey = m->n_rkey ? (uint32_t) m->rkey[0] : 0;
        p->len = m->n_rkey ? (uint64_t) m->len : 0;
        if (p->len && !number_parse(m->va, 0, UINT64_MAX - p->len, &p->va)) {
            g->members[i].error = xasprintf("member %s: va \"%s\" is invalid", m->host, m->va);
        }
    }
    if (!ip6_parse(row->proxy, &r->proxy) || !is_proxy_address(&r->proxy)) {
        g->error = xasprintf("proxy \"%s\" is not in fd00:ffff::/32", row->proxy);
    } else if (strcmp(row->mode, "replicate")) {
        g->error = xasprintf("mode %s is not supported by this version", row->mode);
    } else if (g->source && g->source->epoch == row->epoch) {
        ovs_strlcpy(r->source_host, g->source->host, sizeof r->source_host);
        r->source_qpn = (uint32_t) g->source->qpn;
        g->error = plan_check_source(&c->topology, r);
    }
}

/* Which members can be served?  In the order of their branch ids, so that it is the latest who does
 * not fit. */
static void
check_members(const struct castd *c, struct castd_group *g)
{
    size_t n_fit = 0;

    for (int64_t last = 0;;) {
        struct castd_member *m = NULL;

        for (size_t i = 0; i < g->n_members; i++) {
            const struct rrec_member *row = g->members[i].row;

            if (is_registered(g, row) && row->branch > last
                && (!m || row->branch < m->row->branch)) {
                m = &g->members[i];
            }
        }
        if (!m) {
            return;
        }
        last = m->row->branch;
        if (!m->error) {
            m->error = plan_check_member(&c->topology, &g->request, m->row->host);
        }
        if (!m->error) {
            m->error = plan_check_size(&c->topology, g->request.mtu, n_fit + 1);
            n_fit += !m->error;
        }
    }
}

/* What the group's nodes have been told, and whether they have applied it. */
static void
load_rollout(const struct castd *c, struct castd_group *g)
{
    struct rollout *r = &g->rollout;

    r->source = g->source && g->source->epoch == g->row->epoch;
    r->started = g->row->started;
    r->was_serving = !strcmp(g->row->state, "ready");
    r->edges_applied = true;
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct castd_node *n = &c->nodes[i];
        const struct rrec_tree_node *tree = castd_find_tree(n->row, g->row->proxy, g->row->epoch);

        if (!tree) {
            continue;
        }
        if (n->node->agent) {
            r->agent_exists = true;
            r->agent_open = tree->open;
            r->agent_applied = castd_tree_applied(n->row, tree);
        } else {
            r->edges_applied &= castd_tree_applied(n->row, tree);
        }
        for (size_t j = 0; j < g->n_members; j++) {
            struct rollout_member *m = &r->members[j];
            int64_t id = g->members[j].row->branch;

            if (id && n->node->agent) {
                m->copied = has_branch(tree->copies, tree->n_copies, id);
            } else if (id && has_branch(tree->branches, tree->n_branches, id)) {
                m->provisioned = true;
            }
        }
    }
}

/* A group that was not set up yet fails with its first member that cannot be served; one that was
 * goes on without it. */
static void
fail_new_group(struct castd_group *g)
{
    for (size_t i = 0; i < g->n_members && !g->error && !g->rollout.agent_exists; i++) {
        if (g->members[i].error) {
            g->error = xstrdup(g->members[i].error);
        }
    }
}

static void
rollout_group(struct castd *c, struct castd_group *g)
{
    struct rollout *r = &g->rollout;

    make_request(c, g);
    load_rollout(c, g);
    if (!g->error && r->source) {
        check_members(c, g);
        fail_new_group(g);
    }
    /* Without a plan nothing is wanted at any node: castd_sync() takes out what is there. */
    if (g->error || !r->source) {
        return;
    }

    for (size_t i = 0; i < g->n_members; i++) {
        r->members[i].wanted = is_registered(g, g->members[i].row) && !g->members[i].error;
    }
    rollout_step(r);
    for (size_t i = 0; i < g->n_members; i++) {
        struct castd_member *m = &g->members[i];

        /* One that is leaving may have lost its link already. */
        if (r->members[i].provision && !m->error) {
            m->error = plan_check_member(&c->topology, &g->request, m->row->host);
        }
        g->request.members[i].provision = r->members[i].provision && !m->error;
        g->request.members[i].copy = r->members[i].copy && !m->error;
    }
    g->request.agent = r->agent;
    g->request.open = r->open;
    g->error = plan_group(&c->topology, &g->request, &g->plan);
    if (!g->error) {
        rrec_group_set_region_len(g->row, (int64_t) g->plan.region_len);
    }
}

void
castd_rollout(struct castd *c)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        rollout_group(c, &c->groups[i]);
    }
}
