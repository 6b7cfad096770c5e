/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of each group.  What its nodes have now (rows and generations) goes
 * into the pure step; the trees that come out are what is wanted.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/castd/castd.h"
#include "ctl/registry/group-state.h"
#include "ctl/registry/intent.h"
#include "ctl/registry/values.h"
#include "openvswitch/vlog.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd_rollout);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 6);

bool
castd_tree_has_life(const struct rrec_node *node, const struct rrec_tree_node *tree)
{
    return auth_tlvs_parse(tree->auth, tree->n_auth) & AUTH_DATA
           || (tree->auth_key && !intent_tree_is_source(node, tree));
}

bool
castd_tree_applied(const struct rrec_node *node, const struct rrec_tree_node *tree)
{
    bool waits = castd_tree_has_life(node, tree)
                 && (!tree->life || tree->life != tree->life_answered || !tree->instance);

    return node->nb_cfg >= tree->generation && !waits;
}

bool
castd_is_in_earlier_epoch(const struct castd_group *g, const char *host)
{
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct rrec_tree_node *tree = g->trees.trees[i].row;

        for (size_t j = 0; j < tree->n_branches; j++) {
            if (tree->epoch != g->row->epoch && !strcmp(tree->branches[j]->name, host)) {
                return true;
            }
        }
    }
    return false;
}

/* A lost member is taken out if the group goes on without it.  If nobody is left the lost ones
 * stay: their nodes must go on telling the source. */
static bool
is_pruned(const struct rrec_member *m, const struct castd_group *g)
{
    return member_is_lost(m) && !g->row->lost[0];
}

/* If nobody is left, who waits is taken out, or was admitted just then: else its edge would confirm
 * what passes, and the nodes above not tell the source that the others are lost. */
static bool
is_left_over(const struct rrec_member *m, const struct castd_group *g)
{
    return g->row->started && castd_all_lost(g->row) && !member_is_lost(m);
}

static void
load_member(struct plan_member *p, struct rollout_member *r, const struct rrec_member *m,
            const struct castd_group *g)
{
    bool wanted = m->epoch == g->row->epoch && !strcmp(m->want, "active");
    bool left_over = wanted && is_left_over(m, g);

    r->registered = wanted && !left_over && !is_pruned(m, g);
    r->too_late = left_over ? xstrdup("it has failed") : NULL;
    r->fed = castd_is_in_earlier_epoch(g, m->host);
    r->has_counted = m->n_first_psn > 0;
    ovs_strlcpy(p->host, m->host, sizeof p->host);
    p->branch = (uint32_t) m->branch;
    p->qpn = (uint32_t) m->qpn;
    p->psn = m->n_psn ? psn_make((uint32_t) m->psn[0]) : g->rollout.group.start_psn;
    p->ask = m->n_designated_qpn && !m->n_psn;
    p->designated_qpn = m->n_designated_qpn ? (uint32_t) m->designated_qpn[0] : 0;
    p->rkey = m->n_rkey ? (uint32_t) m->rkey[0] : 0;
    p->len = m->n_rkey ? (uint64_t) m->len : 0;
    if (p->len && !number_parse(m->va, 0, UINT64_MAX - p->len, &p->va)) {
        r->error = xasprintf("member %s: va \"%s\" is invalid", m->host, m->va);
    }
}

/* Which way its packets go.  The planner finds out whether there is such a way.  What has no name is
 * an epoch's only that has not started: one that has keeps its tree. */
static void
load_way(struct castd_group *g)
{
    const struct rrec_group *row = g->row;
    struct rollout *r = &g->rollout;
    const char *why = row->via[0] ? path_text_check(row->via, false) : NULL;

    if (why) {
        r->error = row->started ? NULL : xasprintf("via \"%s\" %s", row->via, why);
    } else if (row->plane[0] && !name_is_valid(row->plane)) {
        r->error = row->started ? NULL : xasprintf("plane \"%s\" " NAME_RULE, row->plane);
    }
    ovs_strlcpy(r->group.via, row->via, sizeof r->group.via);
    ovs_strlcpy(r->group.plane, row->plane, sizeof r->group.plane);
    ovs_strlcpy(r->group.preferred_plane, row->preferred_plane, sizeof r->group.preferred_plane);
    for (size_t i = 0; i < row->n_planes && !r->error; i++) {
        if (i == PLANES_MAX || !name_is_valid(row->planes[i])) {
            r->error = row->started      ? NULL
                       : i == PLANES_MAX ? xasprintf("planes: %d are the most", PLANES_MAX)
                                         : xasprintf("plane \"%s\" " NAME_RULE, row->planes[i]);
            break;
        }
        ovs_strlcpy(r->group.planes[r->group.n_planes++], row->planes[i], NAME_SIZE);
    }
}

/* The group and its members as the planner wants them; castd_load() has read the settings. */
static void
load_request(const struct castd *c, struct castd_group *g)
{
    const struct rrec_group *row = g->row;
    struct rollout *r = &g->rollout;
    struct plan_group *p = &r->group;

    ovs_strlcpy(p->name, row->name, sizeof p->name);
    p->epoch = (uint32_t) row->epoch;
    p->replication_id = (uint16_t) row->replication_id;
    p->designated_qpn = (uint32_t) row->designated_qpn;
    p->start_psn = psn_make((uint32_t) row->start_psn);
    p->designated_rkey = (uint32_t) row->designated_rkey;
    load_way(g);
    p->auth.tlvs = auth_tlvs_parse(row->auth, row->n_auth);
    p->auth.key = row->n_auth_key ? (uint32_t) row->auth_key[0] : 0;
    if (!r->error && p->auth.tlvs && !castd_find_key(c, p->auth.key)) {
        r->error = row->n_auth_key ? xasprintf("key %" PRIu32 " does not exist", p->auth.key)
                                   : xstrdup("it is to be authenticated, but has no key");
    }
    for (size_t i = 0; i < g->n_members; i++) {
        load_member(&p->members[i], &r->members[i], g->members[i], g);
    }
    if (g->source && g->source->epoch == row->epoch) {
        r->source = true;
        ovs_strlcpy(p->source_host, g->source->host, sizeof p->source_host);
        p->source_qpn = (uint32_t) g->source->qpn;
        const struct plan_host *host = plan_find_host(&c->topology, p->source_host);
        p->rate_floor = host ? plan_rate_floor(host, p) : 0;
    }
    if (!r->error && (!ip6_parse(row->proxy, &p->proxy) || !is_proxy_address(&p->proxy))) {
        r->error = xasprintf("proxy \"%s\" is not in " PROXY_PREFIX_TEXT, row->proxy);
    }
}

/* Adds one node's tree, as the node was told it, to the plan that the nodes have. */
static void
load_tree(struct plan *have, const struct castd_node *n, const struct rrec_tree_node *row)
{
    struct plan_tree *tree = &have->trees[have->n_trees];
    char *error;

    if (intent_read_tree(row, &tree->config, &error)) {
        tree->node = n->node;
        have->n_trees++;
    } else {
        VLOG_WARN_RL(&rl, "node %s: a tree makes no sense and does not count: %s", n->node->name,
                     error);
        free(error);
    }
}

/* What the group's nodes have been told, and whether they have applied it. */
static void
load_state(const struct castd *c, struct castd_group *g)
{
    struct rollout *r = &g->rollout;

    r->topology = &c->topology;
    r->started = g->row->started;
    r->over = g->row->lost[0];
    r->was_serving = group_serves(g->row);
    r->switches_applied = true;
    r->have.trees = xcalloc(g->trees.n + 1, sizeof *r->have.trees);
    for (size_t i = 0; i < g->trees.n; i++) {
        const struct castd_node *n = g->trees.trees[i].node;
        const struct rrec_tree_node *row = g->trees.trees[i].row;

        /* Of two that somebody has written the first counts. */
        if (row != castd_find_tree(&g->trees, n->node, g->row->epoch)) {
            continue;
        }
        if (intent_tree_is_source(n->row, row)) {
            r->agent_applied = castd_tree_applied(n->row, row);
        } else {
            r->switches_applied &= castd_tree_applied(n->row, row);
        }
        load_tree(&r->have, n, row);
        r->lost = xrealloc(r->lost, (r->n_lost + row->n_lost + 1) * sizeof *r->lost);
        for (size_t j = 0; j < row->n_lost; j++) {
            r->lost[r->n_lost++] = (struct rollout_loss){n->node, (uint32_t) row->key_lost[j]};
        }
    }
}

/* What edges have found out stays true when their trees are gone. */
static void
keep_found(struct castd_group *g)
{
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->rollout.members[i].found) {
            int64_t psn = g->rollout.group.members[i].psn.v;

            rrec_member_set_psn(g->members[i], &psn, 1);
            g->written = true;
        }
    }
}

/* Logs what is wrong with how the group answers congestion, once. */
static void
log_congestion(const struct castd *c, const struct castd_group *g)
{
    const struct rollout *r = &g->rollout;
    char *problem = plan_agent_tree(&r->plan)
                        ? plan_congestion_problem(&c->topology, &r->group, &r->plan)
                        : NULL;

    if (problem && (!g->work->congestion || strcmp(problem, g->work->congestion))) {
        VLOG_WARN_RL(&rl, "group %s: %s", r->group.name, problem);
    }
    free(g->work->congestion);
    g->work->congestion = problem;
}

/* A group without a plan wants no tree at any node: castd_sync() takes out what is there. */
void
castd_rollout(struct castd *c)
{
    for (size_t i = 0; i < c->n_due; i++) {
        struct castd_group *g = c->due[i];

        load_request(c, g);
        load_state(c, g);
        rollout_step(&g->rollout);
        keep_found(g);
        log_congestion(c, g);
        if (g->rollout.plan.n_trees) {
            rrec_group_set_region_len(g->row, (int64_t) g->rollout.plan.region_len);
        }
    }
}
