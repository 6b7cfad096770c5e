/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner, epochs under way: trees that nodes have.  This topology might give others.
 *
 * Another path to the same root (outer_program, parent_program) is another shape.  Before an epoch's
 * first packet the group is built again, which closes the agent first, so no packet overtakes one on
 * the old path.  After it the epoch keeps the path that it has, as it keeps its tree: it grows by
 * plan_join(), which takes the programs of 'have', and is told to be outdated.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/plan/epoch-impl.h"
#include "ctl/plan/planes.h"
#include "util.h"

bool
plan_tree_is_source(const struct plan_tree *tree)
{
    struct in6_addr own = node_address(tree->node->id);

    /* Trees in a converted registry do not have the address. */
    return plan_is_agent(tree->node)
           && (IN6_IS_ADDR_UNSPECIFIED(&tree->config.outer_source)
               || tree_config_is_source(&tree->config, &own));
}

const struct plan_tree *
plan_agent_tree(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        if (plan_tree_is_source(&plan->trees[i])) {
            return &plan->trees[i];
        }
    }
    return NULL;
}

const struct plan_tree *
epoch_tree(const struct plan *plan, uint16_t id)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        if (plan->trees[i].node->id == id) {
            return &plan->trees[i];
        }
    }
    return NULL;
}

const struct branch_config *
epoch_branch(const struct branch_config *branches, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++) {
        if (branches[i].id == id) {
            return &branches[i];
        }
    }
    return NULL;
}

const struct branch_config *
plan_find_branch(const struct plan *plan, uint32_t id, const struct plan_tree **tree)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct tree_config *c = &plan->trees[i].config;
        const struct branch_config *b = epoch_branch(c->branches, c->n_branches, id);

        if (b) {
            *tree = &plan->trees[i];
            return b;
        }
    }
    return NULL;
}

bool
plan_is_provisioned(const struct plan *plan, uint32_t branch)
{
    const struct plan_tree *tree;

    return plan_find_branch(plan, branch, &tree) != NULL;
}

bool
plan_is_copied(const struct plan *plan, uint32_t branch)
{
    const struct plan_tree *agent = plan_agent_tree(plan);

    return agent && epoch_branch(agent->config.copies, agent->config.n_copies, branch);
}

/*
 * Less of a tree.
 */

static bool
is_kept(const struct plan_group *g, const struct branch_config *b, bool copies)
{
    if (b->kind == BRANCH_NODE) {
        return true;
    }
    for (size_t i = 0; i < g->n_members; i++) {
        const struct plan_member *m = &g->members[i];

        if (m->branch == b->id) {
            return copies ? m->copy : m->provision;
        }
    }
    return false;
}

static size_t
keep_branches(const struct plan_group *g, struct branch_config *branches, size_t n, bool copies)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (is_kept(g, &branches[i], copies)) {
            branches[n_kept++] = branches[i];
        }
    }
    return n_kept;
}

/* Is this a node with nobody below it, and without receivers? */
static bool
is_idle(const struct plan_tree *tree)
{
    const struct tree_config *c = &tree->config;

    for (size_t i = 0; i < c->n_branches; i++) {
        if (c->branches[i].kind == BRANCH_RECEIVER) {
            return false;
        }
    }
    return !plan_tree_is_source(tree) && !c->n_outer_da;
}

static void
forget_branch(struct tree_config *c, uint16_t id)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_branches; i++) {
        if (c->branches[i].id != BRANCH_ID_NODE(id)) {
            c->branches[n++] = c->branches[i];
        }
    }
    c->n_branches = n;
}

/* Makes 'tree' forget the node with this id.  A source agent keeps its destination, unless it sends
 * to each edge. */
static void
forget_node(struct plan_tree *tree, uint16_t id)
{
    struct tree_config *c = &tree->config;
    size_t n = 0;

    forget_branch(c, id);
    if (plan_tree_is_source(tree) && !tree_mode(c->mode)->packet_per_edge) {
        return;
    }
    for (size_t i = 0; i < c->n_outer_da; i++) {
        if (node_id_of(&c->outer_da[i]) != id) {
            c->outer_da[n++] = c->outer_da[i];
        }
    }
    c->n_outer_da = n;
}

/* Takes one idle node out; false: there is none. */
static bool
remove_idle(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        if (is_idle(&plan->trees[i])) {
            uint16_t id = plan->trees[i].node->id;

            tree_config_uninit(&plan->trees[i].config);
            plan->n_trees--;
            memmove(&plan->trees[i], &plan->trees[i + 1],
                    (plan->n_trees - i) * sizeof *plan->trees);
            for (size_t j = 0; j < plan->n_trees; j++) {
                forget_node(&plan->trees[j], id);
            }
            return true;
        }
    }
    return false;
}

static bool
has_child(const struct tree_config *c, uint16_t id)
{
    for (size_t i = 0; i < c->n_outer_da; i++) {
        if (node_id_of(&c->outer_da[i]) == id) {
            return true;
        }
    }
    return false;
}

/* Do copies come to each node that has a tree, and is each provisioned member in one of the
 * trees? */
static bool
is_whole(const struct plan *plan, const struct plan_group *g)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        bool is_child = plan_tree_is_source(&plan->trees[i]);

        for (size_t j = 0; j < plan->n_trees && !is_child; j++) {
            is_child = has_child(&plan->trees[j].config, plan->trees[i].node->id);
        }
        if (!is_child) {
            return false;
        }
    }
    for (size_t i = 0; i < g->n_members; i++) {
        if (g->members[i].provision && !plan_is_provisioned(plan, g->members[i].branch)) {
            return false;
        }
    }
    return true;
}

/* The id of a deleted node, which has no tree, that is a child or a branch of this one; 0: none. */
static uint16_t
lost_below(const struct plan *plan, const struct plan_tree *tree)
{
    const struct tree_config *c = &tree->config;

    for (size_t i = 0; i < c->n_outer_da && !plan_tree_is_source(tree); i++) {
        if (!epoch_tree(plan, node_id_of(&c->outer_da[i]))) {
            return node_id_of(&c->outer_da[i]);
        }
    }
    for (size_t i = 0; i < c->n_branches; i++) {
        uint16_t id = (uint16_t) (c->branches[i].id - BRANCH_ID_NODE(0));

        if (c->branches[i].kind == BRANCH_NODE && !epoch_tree(plan, id)) {
            return id;
        }
    }
    return 0;
}

/* Makes all trees forget one deleted node; false: they know of none. */
static bool
remove_lost(struct plan *plan)
{
    uint16_t lost = 0;

    for (size_t i = 0; i < plan->n_trees && !lost; i++) {
        lost = lost_below(plan, &plan->trees[i]);
    }
    for (size_t i = 0; i < plan->n_trees && lost; i++) {
        forget_node(&plan->trees[i], lost);
    }
    return lost != 0;
}

/* Do only edges merge, and the source agent what they say? */
static bool
only_edges_merge(const struct tree_config *c)
{
    return !tree_mode(c->mode)->switches_merge || c->n_parent_planes;
}

static void
forget_parent(struct tree_config *c)
{
    c->parent_sid = c->parent_program = in6addr_any;
    for (size_t i = 0; i < c->n_parent_planes; i++) {
        free(c->parent_planes[i].probes);
    }
    c->n_parent_planes = 0;
}

/* Where only edges merge, an edge that has lost its last receiver merges no more, even if others
 * are behind it. */
static void
retire_edges(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_trees; i++) {
        struct tree_config *c = &plan->trees[i].config;

        if (!only_edges_merge(c) || c->n_branches || plan_tree_is_source(&plan->trees[i])) {
            continue;
        }
        forget_parent(c);
        for (size_t j = 0; j < plan->n_trees; j++) {
            forget_branch(&plan->trees[j].config, plan->trees[i].node->id);
        }
    }
}

void
plan_reduce(const struct plan *have, const struct plan_group *g, struct plan *out)
{
    const struct plan_tree *agent = plan_agent_tree(have);

    out->region_len = plan_region_len(g);
    out->n_trees = 0;
    out->trees = xcalloc(have->n_trees + 1, sizeof *out->trees);
    for (size_t i = 0; i < have->n_trees; i++) {
        struct plan_tree *tree = &out->trees[out->n_trees++];
        struct tree_config *c = &tree->config;

        tree->node = have->trees[i].node;
        tree_config_clone(c, &have->trees[i].config);
        c->generation = 0;
        c->region_len = out->region_len;
        if (agent) { /* some do not have it. */
            c->outer_source = node_address(agent->node->id);
        }
        c->open = plan_tree_is_source(tree) && g->open;
        c->n_branches = keep_branches(g, c->branches, c->n_branches, false);
        c->n_copies = keep_branches(g, c->copies, c->n_copies, true);
    }
    retire_edges(out);
    while (remove_idle(out) || (is_whole(out, g) && remove_lost(out))) {
    }
    plan_set_policy(g, out);
}

/*
 * Comparison.
 */

static bool
same_branches(const struct tree_config *a, const struct tree_config *b)
{
    for (size_t i = 0; i < a->n_branches; i++) {
        const struct branch_config *x = &a->branches[i];
        const struct branch_config *y = epoch_branch(b->branches, b->n_branches, x->id);

        if (!y || !IN6_ARE_ADDR_EQUAL(&x->address, &y->address)) {
            return false;
        }
    }
    return a->n_branches == b->n_branches;
}

static bool
same_children(const struct tree_config *a, const struct tree_config *b)
{
    for (size_t i = 0; i < a->n_outer_da; i++) {
        if (!has_child(b, node_id_of(&a->outer_da[i]))) {
            return false;
        }
    }
    return a->n_outer_da == b->n_outer_da;
}

bool
epoch_same_program(const struct in6_addr *a, const struct in6_addr *b)
{
    for (size_t i = 0; i < EPOCH_USIDS; i++) {
        uint16_t x = epoch_usid(a, i), y = epoch_usid(b, i);

        if (x >= USID_FIRST_FUNCTION && y >= USID_FIRST_FUNCTION) {
            return true;
        } else if (x != y) {
            return false;
        }
    }
    return true;
}

bool
plan_same_shape(const struct plan *a, const struct plan *b)
{
    for (size_t i = 0; i < a->n_trees; i++) {
        const struct tree_config *x = &a->trees[i].config;
        const struct plan_tree *tree = epoch_tree(b, a->trees[i].node->id);
        const struct tree_config *y;

        if (!tree) {
            return false;
        }
        y = &tree->config;
        if (x->root != y->root || !IN6_ARE_ADDR_EQUAL(&x->parent_sid, &y->parent_sid)
            || x->mode != y->mode || x->provisioned != y->provisioned
            || !IN6_ARE_ADDR_EQUAL(&x->upstream, &y->upstream) || !same_children(x, y)
            || !epoch_same_program(&x->outer_program, &y->outer_program)
            || !epoch_same_program(&x->parent_program, &y->parent_program)
            || !planes_same(x->planes, x->n_planes, y->planes, y->n_planes)
            || !planes_same(x->parent_planes, x->n_parent_planes, y->parent_planes,
                            y->n_parent_planes)
            || !same_branches(x, y)) {
            return false;
        }
    }
    return a->n_trees == b->n_trees;
}

static bool
has_outer_da(const struct tree_config *c, const struct in6_addr *da)
{
    for (size_t i = 0; i < c->n_outer_da; i++) {
        if (IN6_ARE_ADDR_EQUAL(&c->outer_da[i], da)) {
            return true;
        }
    }
    return false;
}

bool
plan_same_addresses(const struct plan *a, const struct plan *b)
{
    for (size_t i = 0; i < a->n_trees; i++) {
        const struct tree_config *x = &a->trees[i].config;
        const struct plan_tree *tree = epoch_tree(b, a->trees[i].node->id);

        if (plan_tree_is_source(&a->trees[i])) {
            continue;
        }
        if (!tree || !IN6_ARE_ADDR_EQUAL(&x->replication_sid, &tree->config.replication_sid)) {
            return false;
        }
        for (size_t j = 0; j < x->n_outer_da; j++) {
            if (!has_outer_da(&tree->config, &x->outer_da[j])) {
                return false;
            }
        }
    }
    return true;
}

/*
 * More of a tree.
 */

char *
epoch_node_name(const struct plan *plan, uint16_t id)
{
    const struct plan_tree *tree = epoch_tree(plan, id);

    if (tree) {
        return xstrdup(tree->node->name);
    }
    for (size_t i = 0; i < plan->n_trees; i++) {
        const struct tree_config *c = &plan->trees[i].config;
        const struct branch_config *b =
            epoch_branch(c->branches, c->n_branches, BRANCH_ID_NODE(id));

        if (b) {
            return xstrdup(b->name);
        }
    }
    return xasprintf("with id %u", id);
}

/* The ways of packets through 'old', which would be 'new': what is different? */
static char *
check_way_down(const struct plan *want, const struct plan_tree *old, const struct plan_tree *new)
{
    const struct tree_config *x = &old->config, *y = &new->config;
    const char *name = old->node->name;

    if (!IN6_ARE_ADDR_EQUAL(&x->outer_source, &y->outer_source)) {
        return xasprintf("%s would get packets from another source agent", name);
    }
    if (!IN6_ARE_ADDR_EQUAL(&x->upstream, &y->upstream)) {
        return xasprintf("%s would get packets from another node", name);
    }
    if (IN6_IS_ADDR_UNSPECIFIED(&x->replication_sid)
        && !IN6_IS_ADDR_UNSPECIFIED(&y->replication_sid)) {
        char *child = epoch_node_name(want, node_id_of(&y->outer_da[0]));
        char *error = xasprintf("%s would be behind %s, which gets packets by another SID as long "
                                "as no node is behind it",
                                child, name);

        free(child);
        return error;
    }
    for (size_t i = 0; i < x->n_outer_da; i++) {
        uint16_t id = node_id_of(&x->outer_da[i]);

        if (!has_child(y, id)) {
            char *child = epoch_node_name(want, id);
            char *error = xasprintf("%s would get packets from another node than %s", child, name);

            free(child);
            return error;
        }
    }
    return NULL;
}

/* The same for responses. */
static char *
check_way_up(const struct plan_tree *old, const struct plan_tree *new)
{
    const struct tree_config *x = &old->config, *y = &new->config;

    /* A node that merges nothing yet answers nobody: it may begin to. */
    if (x->n_branches
        && (x->root != y->root || !IN6_ARE_ADDR_EQUAL(&x->parent_sid, &y->parent_sid))) {
        return xasprintf("%s would answer to another node", old->node->name);
    }
    for (size_t i = 0; i < x->n_branches; i++) {
        const struct branch_config *b = epoch_branch(y->branches, y->n_branches, x->branches[i].id);

        if (!b) {
            return xasprintf("%s would answer to another node than %s", x->branches[i].name,
                             old->node->name);
        }
        if (!IN6_ARE_ADDR_EQUAL(&b->address, &x->branches[i].address)) {
            return xasprintf("%s would have another address", b->name);
        }
    }
    return NULL;
}

char *
plan_grows(const struct plan *have, const struct plan *want)
{
    const struct plan_tree *agent = plan_agent_tree(have), *wanted = plan_agent_tree(want);
    char *error = agent && wanted
                      ? planes_same_names(agent->config.planes, agent->config.n_planes,
                                          wanted->config.planes, wanted->config.n_planes)
                      : NULL;

    for (size_t i = 0; i < have->n_trees && !error; i++) {
        const struct plan_tree *old = &have->trees[i];
        const struct plan_tree *new = epoch_tree(want, old->node->id);

        if (!new) {
            return xasprintf("%s would have no part in the tree", old->node->name);
        }
        if (old->config.mode != new->config.mode
            || old->config.provisioned != new->config.provisioned) {
            return xasprintf(
                "mode %s with receivers %s would be %s with %s", tree_mode_name(old->config.mode),
                receivers_name(old->config.provisioned), tree_mode_name(new->config.mode),
                receivers_name(new->config.provisioned));
        }
        error = check_way_down(want, old, new);
        if (!error) {
            error = check_way_up(old, new);
        }
    }
    return error;
}

static void
keep_outer_das(const struct tree_config *old, struct tree_config *c)
{
    for (size_t i = 0; i < old->n_outer_da; i++) {
        for (size_t j = 0; j < c->n_outer_da; j++) {
            if (node_id_of(&old->outer_da[i]) == node_id_of(&c->outer_da[j])) {
                c->outer_da[j] = old->outer_da[i];
            }
        }
    }
}

void
plan_join(const struct plan *have, struct plan *want)
{
    for (size_t i = 0; i < want->n_trees; i++) {
        const struct plan_tree *tree = epoch_tree(have, want->trees[i].node->id);
        const struct tree_config *old = tree ? &tree->config : NULL;
        struct tree_config *c = &want->trees[i].config;

        for (size_t j = 0; j < c->n_branches; j++) {
            struct branch_config *b = &c->branches[j];
            const struct branch_config *was =
                old ? epoch_branch(old->branches, old->n_branches, b->id) : NULL;

            if (was) {
                *b = *was;
            } else if (b->join != BRANCH_ASKED) {
                b->join = BRANCH_WAITS;
                b->late = false; /* where it begins is not known yet. */
            }
        }
        if (old) {
            c->replication_sid = old->replication_sid;
            keep_outer_das(old, c);
            c->outer_program = old->outer_program;
            planes_keep(old->planes, old->n_planes, c->planes, c->n_planes);
            if (IN6_ARE_ADDR_EQUAL(&c->parent_sid, &old->parent_sid)) {
                c->parent_program = old->parent_program;
                planes_keep(old->parent_planes, old->n_parent_planes, c->parent_planes,
                            c->n_parent_planes);
            }
        }
    }
}

void
plan_add_copy(struct plan *plan, uint32_t branch)
{
    const struct plan_tree *tree;
    const struct branch_config *b = plan_find_branch(plan, branch, &tree);

    for (size_t i = 0; i < plan->n_trees; i++) {
        struct tree_config *c = &plan->trees[i].config;

        if (plan_tree_is_source(&plan->trees[i])) {
            c->copies = xrealloc(c->copies, (c->n_copies + 1) * sizeof *c->copies);
            c->copies[c->n_copies] = *b;
            c->copies[c->n_copies++].join = BRANCH_COUNTS;
            qsort(c->copies, c->n_copies, sizeof *c->copies, plan_compare_branches);
        }
    }
}
