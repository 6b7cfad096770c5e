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
 *
 * With authenticated data nodes that merge have keys, too, for what they send up (docs/draft-notes.md,
 * R26).  That is rolled out by itself:
 *
 *   1. parents, of which the source agent is one, also accept the new key, and ask for nothing that is to
 *      go away
 *   2. (applied) all that merge make what is wanted
 *   3. (applied) parents ask for exactly that, and forget other keys
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

/*
 * Responses.
 */

/* Does it send responses to a node? */
static bool
sends_up(const struct plan_tree *tree)
{
    return tree->config.n_branches && !plan_tree_is_source(tree);
}

/* Does it take any of nodes?  The source agent takes at least the root's. */
static bool
takes_up(const struct plan_tree *tree)
{
    bool takes = plan_tree_is_source(tree);

    for (size_t i = 0; i < tree->config.n_branches && !takes; i++) {
        takes = tree->config.branches[i].kind == BRANCH_NODE;
    }
    return takes;
}

/* What the nodes have, as far as it is about responses. */
struct responses {
    uint32_t key;   /* that is wanted; 0: they are not to be authenticated. */
    uint32_t until; /* that some node makes them with; 0: none does. */
    bool accepted, made, demanded;
};

static struct responses
look_at_responses(const struct rollout *r, const struct auth_config *want)
{
    struct responses s = {
        .key = want->tlvs & AUTH_DATA ? want->key : 0, .accepted = true, .made = true};

    for (size_t i = 0; i < r->have.n_trees; i++) {
        const struct plan_tree *tree = &r->have.trees[i];
        const struct auth_config *c = &tree->config.auth;

        if (sends_up(tree)) {
            s.made &= c->key == s.key;
            s.until = c->key ? c->key : s.until;
        }
        if (takes_up(tree)) {
            s.accepted &= auth_find_key(c, s.key) != NULL;
            s.demanded |= c->responses;
        }
    }
    return s;
}

/* What a node makes and takes of responses.  'applied': all have what they were told. */
static void
set_responses(struct auth_config *c, const struct plan_tree *tree, const struct plan_tree *told,
              const struct responses *s, bool applied, bool closed)
{
    bool may_make = closed || (applied && (s->key ? s->accepted : !s->demanded));
    bool settled = closed || (applied && s->made);

    if (sends_up(tree)) {
        /* A newcomer does as others do, if that is asked for. */
        c->key = may_make ? s->key : told ? told->config.auth.key : s->demanded ? s->until : 0;
        if (c->key) {
            add_key(c, c->key);
        }
    }
    if (takes_up(tree)) {
        c->responses = s->key && (settled || (told && told->config.auth.responses));
        if (s->key) {
            add_key(c, s->key);
        }
        for (size_t i = 0; c->responses && !settled && i < told->config.auth.n_keys; i++) {
            add_key(c, told->config.auth.keys[i].id);
        }
    }
}

bool
rollout_auth_may_open(const struct rollout *r)
{
    struct auth_config want = aim(r, plan_agent_tree(&r->have));
    struct responses s = look_at_responses(r, &want);
    bool ready = rollout_auth_ready(r) && s.made;

    for (size_t i = 0; i < r->have.n_trees; i++) {
        const struct plan_tree *tree = &r->have.trees[i];

        ready &= !takes_up(tree) || plan_tree_is_source(tree)
                 || tree->config.auth.responses == (s.key != 0);
    }
    return ready;
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
    struct responses responses = look_at_responses(r, &want);
    bool closed = is_closed(r, agent);
    bool applied = r->switches_applied && (!agent || r->agent_applied);

    for (size_t i = 0; i < r->plan.n_trees; i++) {
        const struct plan_tree *tree = &r->plan.trees[i];
        const struct plan_tree *told = told_tree(r, tree);
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
            set_edge(c, told, &want, &sends, settled);
        }
        set_responses(c, tree, told, &responses, applied, closed);
    }
}
