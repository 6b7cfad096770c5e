/* SPDX-License-Identifier: Apache-2.0
 *
 * Receivers that join an epoch under way (docs/draft-notes.md, R17): what castd does for them, and
 * what they count from.
 *
 * castd plans the larger tree, tells the switches, and waits until each new node counts at
 * its parent.  Only then may the edge admit the receiver, and the source agent names it.  Who hears
 * of what when, within one of these steps, is chance.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/model/lab.h"

#define TELL_USEC 5000
#define LOOK_USEC 6000

static struct plan *
plan_of(struct lab *lab)
{
    return &lab->whole[0].plan;
}

static unsigned
number_of(const struct lab *lab, const struct plan_node *node)
{
    return (unsigned) (node - lab->topology.nodes);
}

static void
tell(void *lab, unsigned node, unsigned unused)
{
    (void) unused;
    lab_node_configure(lab, node);
}

static void
tell_later(struct lab *lab, unsigned node)
{
    fabric_schedule(&lab->fabric, lab->fabric.now + 1 + lab_random(lab, TELL_USEC), tell, node, 0);
}

/* The nodes' heights, and whom they speak for, as planned. */
static unsigned
note_heights(struct lab *lab, const struct plan_tree *tree, struct lab_set *behind)
{
    struct lab_node *n = &lab->nodes[number_of(lab, tree->node)];
    struct lab_set own = {.words = {0}};
    unsigned highest = 0;

    for (size_t i = 0; i < tree->config.n_branches; i++) {
        const struct branch_config *b = &tree->config.branches[i];

        if (b->kind == BRANCH_RECEIVER) {
            lab_set_add(&own, b->id - 1);
            continue;
        }
        for (size_t j = 0; j < plan_of(lab)->n_trees; j++) {
            const struct plan_tree *below = &plan_of(lab)->trees[j];

            if (BRANCH_ID_NODE(below->node->id) == b->id) {
                unsigned height = note_heights(lab, below, &own);

                highest = height > highest ? height : highest;
            }
        }
    }
    n->behind = own;
    n->height = tree->config.n_branches ? highest + 1 : 0;
    lab_set_merge(behind, &own);
    return n->height;
}

static bool
has_joined(struct lab *lab, const struct plan_tree *tree, const struct branch_config *b,
           psn_t *first)
{
    const struct lab_node *n = &lab->nodes[number_of(lab, tree->node)];
    struct reverse_branch_info info;
    bool joined = n->node && n->class->n_trees(n->node)
                  && n->class->branch(n->node, 0, b->id, &info) && info.late;

    *first = joined ? info.first : psn_make(0);
    return joined;
}

/* What nodes have reported becomes what they are told.  True: a node is still to join. */
static bool
take_reports(struct lab *lab)
{
    bool waits = false;

    for (size_t i = 0; i < plan_of(lab)->n_trees; i++) {
        struct plan_tree *tree = &plan_of(lab)->trees[i];

        for (size_t j = 0; j < tree->config.n_branches; j++) {
            struct branch_config *b = &tree->config.branches[j];
            psn_t first;

            if (b->join == BRANCH_COUNTS) {
                continue;
            }
            if (has_joined(lab, tree, b, &first)) {
                b->join = BRANCH_COUNTS;
                b->late = b->kind == BRANCH_RECEIVER;
                b->first = first;
                tell_later(lab, number_of(lab, tree->node));
            } else {
                waits |= b->kind == BRANCH_NODE;
            }
        }
    }
    return waits;
}

/* All nodes count: so may the receivers. */
static void
admit(struct lab *lab)
{
    for (size_t i = 0; i < plan_of(lab)->n_trees; i++) {
        struct plan_tree *tree = &plan_of(lab)->trees[i];

        for (size_t j = 0; j < tree->config.n_branches; j++) {
            struct branch_config *b = &tree->config.branches[j];

            if (b->join == BRANCH_WAITS) {
                b->join = BRANCH_ADMITTED;
                lab->receivers[b->id - 1].named = true;
                plan_add_copy(plan_of(lab), b->id);
                tell_later(lab, number_of(lab, tree->node));
                tell_later(lab, lab_agent(lab));
            }
        }
    }
}

void
lab_take_joins(struct lab *lab)
{
    lab_note_joins(lab);
    (void) take_reports(lab);
    lab->reduced[0].valid = false;
}

static void
come_again(void *lab_, unsigned unused, unsigned unused2)
{
    struct lab *lab = lab_;

    (void) unused, (void) unused2;
    lab->leaving = false;
    for (unsigned i = 0; i < lab->n; i++) {
        if (lab->receivers[i].again) {
            lab->receivers[i].again = false;
            lab_join(lab, i);
        }
    }
}

/* Does this node admit nobody, since it was started again when nobody counted at it? */
static bool
is_blank(const struct lab_node *n)
{
    struct tree_info info;

    if (!n->node || !n->class->n_trees(n->node)) {
        return false;
    }
    n->class->tree(n->node, 0, &info);
    return info.reverse.blank;
}

/* Who waits behind blank nodes leaves, from the agent down, and comes once more when all nodes have
 * heard of that. */
static void
leave_blank(struct lab *lab)
{
    struct lab_set behind = {.words = {0}};
    struct plan now;
    bool any = false;

    for (unsigned i = 0; i < lab->n_nodes; i++) {
        if (is_blank(&lab->nodes[i])) {
            lab_set_merge(&behind, &lab->nodes[i].behind);
        }
    }
    LAB_SET_FOR_EACH (i, &behind) {
        struct lab_receiver *r = &lab->receivers[i];

        if (r->is_late && !r->absent && !r->joined) {
            r->absent = r->again = any = true;
            r->named = false;
            if (lab->trace) {
                fprintf(stderr, "%10" PRIu64 " r%u waits anew\n", lab->fabric.now, i + 1);
            }
        }
    }
    if (!any) {
        return;
    }
    struct plan_group g = lab_plan_group(lab, 0, &(struct lab_set){.words = {0}});

    plan_reduce(plan_of(lab), &g, &now);
    free(g.members);
    plan_uninit(plan_of(lab));
    *plan_of(lab) = now;
    lab->faults |= LAB_FAULT_REMOVE;
    lab->leaving = true;
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        uint64_t after = lab->nodes[i].depth * TELL_USEC + 1 + lab_random(lab, TELL_USEC);

        fabric_schedule(&lab->fabric, lab->fabric.now + after, tell, i, 0);
    }
    fabric_schedule(&lab->fabric, lab->fabric.now + (lab->max_depth + 1) * TELL_USEC + LOOK_USEC,
                    come_again, 0, 0);
}

static void
look(void *lab_, unsigned unused, unsigned unused2)
{
    struct lab *lab = lab_;
    bool waits = false;

    (void) unused, (void) unused2;
    if (lab->n_done == lab->n_messages || lab->failure) {
        return;
    }
    lab->awaits_node = take_reports(lab);
    if (!lab->leaving) {
        leave_blank(lab);
    }
    if (!lab->awaits_node && !lab->leaving) {
        admit(lab);
    }
    lab->reduced[0].valid = false;
    for (unsigned i = 0; i < lab->n; i++) {
        waits |=
            lab->receivers[i].is_late && !lab->receivers[i].absent && !lab->receivers[i].joined;
    }
    if (waits) {
        fabric_schedule(&lab->fabric, lab->fabric.now + LOOK_USEC, look, 0, 0);
    }
}

void
lab_join(struct lab *lab, unsigned i)
{
    struct lab_receiver *r = &lab->receivers[i];
    struct plan want;

    if (!r->absent) {
        return;
    }
    if (lab->leaving) {
        r->again = true;
        return;
    }
    r->absent = false;
    struct plan_group g = lab_plan_group(lab, 0, &(struct lab_set){.words = {0}});
    char *error = plan_group(&lab->topology, &g, &want);

    free(g.members);
    LAB_REQUIRE(lab, !error, "planner: %s", error);
    error = plan_grows(plan_of(lab), &want);
    if (error) { /* castd waits for the next epoch. */
        free(error);
        plan_uninit(&want);
        r->absent = true;
        return;
    }
    plan_join(plan_of(lab), &want);
    plan_uninit(plan_of(lab));
    *plan_of(lab) = want;
    lab->reduced[0].valid = false;
    lab->faults |= LAB_FAULT_JOIN;
    for (size_t j = 0; j < want.n_trees; j++) {
        struct lab_set behind = {.words = {0}};

        if (want.trees[j].config.root) {
            note_heights(lab, &want.trees[j], &behind);
        }
        tell_later(lab, number_of(lab, want.trees[j].node));
    }
    fabric_schedule(&lab->fabric, lab->fabric.now + LOOK_USEC, look, 0, 0);
}

void
lab_note_joins(struct lab *lab)
{
    for (unsigned i = 0; i < lab->n; i++) {
        struct lab_receiver *r = &lab->receivers[i];
        const struct plan_tree *tree;
        const struct branch_config *b =
            r->named && !r->joined ? plan_find_branch(plan_of(lab), i + 1, &tree) : NULL;

        if (b && has_joined(lab, tree, b, &r->first)) {
            r->joined = true;
            lab_set_add(&lab->members, i);
            lab->n_seen[LAB_SAW_joined]++;
            lab_recount(lab);
            if (lab->trace) {
                fprintf(stderr, "%10" PRIu64 " r%u has joined at %06x\n", lab->fabric.now, i + 1,
                        r->first.v);
            }
        }
    }
}

int32_t
lab_shift(const struct lab_receiver *r, unsigned epoch)
{
    return r->joined ? psn_cmp(r->psn, r->first) : r->shift[epoch];
}
