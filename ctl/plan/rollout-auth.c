/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which a group's nodes learn what its packets are authenticated
 * with.
 *
 *   1. edges also accept the new key, and ask for nothing that is to go away
 *   2. (applied) the source agent makes what is wanted
 *   3. (applied) edges ask for exactly that, and forget other keys
 *
 * At any time all edges accept what the source agent was told and what it may still run.
 * Before an edge gives anything up or asks for anything new, the agent has applied what it was
 * told last, and that is what is wanted.  Packets that were sent before are on their way when
 * step 3 comes: edges take them for AUTH_LINGER_USEC.
 *
 * While the agent is closed nothing is on its way.  Then edges get what is wanted at once, and
 * the agent opens when they have applied it.
 *
 * Only nodes with receivers have keys, and the source agent its own.
 */
#include <config.h>

#include "ctl/plan/rollout-auth.h"

#include <stdlib.h>

#include "util.h"

static bool
has_receivers(const struct plan_tree *tree)
{
    for (size_t i = 0; i < tree->config.n_branches && !plan_tree_is_source(tree); i++) {
        if (tree->config.branches[i].kind == BRANCH_RECEIVER) {
            return true;
        }
    }
    return false;
}

static bool
same_auth(const struct auth_config *a, const struct auth_config *b)
{
    return a->tlvs == b->tlvs && (!a->tlvs || a->key == b->key);
}

static bool
is_closed(const struct rollout *r, const struct plan_tree *agent)
{
    return !agent || (!agent->config.open && r->agent_applied);
}

/* What is aimed at: what is wanted, unless the packets of an epoch under way would not fit. */
static struct auth_config
aim(const struct rollout *r, const struct plan_tree *agent)
{
    return r->auth_error && agent ? agent->config.auth : r->group.auth;
}

void
rollout_auth_check(struct rollout *r)
{
    const struct plan_tree *agent = plan_agent_tree(&r->have);

    if (r->started && agent && !same_auth(&agent->config.auth, &r->group.auth)) {
        /* The sizes of a tree that the topology carries no more cannot be known. */
        r->auth_error = r->error ? xstrdup(r->error) : plan_check_size(r->topology, &r->group);
    }
}

bool
rollout_auth_ready(const struct rollout *r)
{
    struct auth_config want = aim(r, plan_agent_tree(&r->have));

    for (size_t i = 0; i < r->have.n_trees; i++) {
        const struct auth_config *c = &r->have.trees[i].config.auth;

        if (has_receivers(&r->have.trees[i])
            && ((c->tlvs & ~want.tlvs) || (want.tlvs && !auth_find_key(c, want.key)))) {
            return false;
        }
    }
    return r->switches_applied;
}

static void
add_key(struct auth_config *c, uint32_t id)
{
    if (!auth_find_key(c, id)) {
        c->keys = xrealloc(c->keys, (c->n_keys + 1) * sizeof *c->keys);
        c->keys[c->n_keys++] = (struct auth_key){.id = id};
    }
}

/* What an edge asks for and accepts. */
static void
set_edge(struct auth_config *c, const struct plan_tree *told, const struct auth_config *want,
         const struct auth_config *sends, bool settled)
{
    c->tlvs = want->tlvs;
    if (want->tlvs) {
        add_key(c, want->key);
    }
    if (settled) {
        return;
    }
    c->tlvs &= told ? told->config.auth.tlvs : sends->tlvs;
    if (sends->tlvs) {
        add_key(c, sends->key);
    }
    for (size_t i = 0; told && i < told->config.auth.n_keys; i++) {
        add_key(c, told->config.auth.keys[i].id);
    }
}

static const struct plan_tree *
told_tree(const struct rollout *r, const struct plan_tree *tree)
{
    for (size_t i = 0; i < r->have.n_trees; i++) {
        if (r->have.trees[i].node == tree->node) {
            return &r->have.trees[i];
        }
    }
    return NULL;
}

void
rollout_auth(struct rollout *r)
{
    const struct plan_tree *agent = plan_agent_tree(&r->have);
    struct auth_config want = aim(r, agent);
    struct auth_config sends = agent ? agent->config.auth : want;
    bool settled = is_closed(r, agent) || (same_auth(&sends, &want) && r->agent_applied);
    bool ready = rollout_auth_ready(r);

    for (size_t i = 0; i < r->plan.n_trees; i++) {
        const struct plan_tree *tree = &r->plan.trees[i];
        struct auth_config *c = &r->plan.trees[i].config.auth;

        auth_config_uninit(c);
        if (plan_tree_is_source(tree)) {
            const struct auth_config *makes = ready || !agent ? &want : &sends;

            c->tlvs = makes->tlvs;
            if (c->tlvs) {
                c->key = makes->key;
                add_key(c, c->key);
            }
        } else if (has_receivers(tree)) {
            set_edge(c, told_tree(r, tree), &want, &sends, settled);
        }
    }
}
